# SPDX-License-Identifier: Apache-2.0
"""The table of operations, and what the operation families share.

An operation is a row: its name, its parameters in the order of the published signature with
their defaults and kinds, and a function that checks the rules, computes, and says which engine
did it. The kind of a parameter is one word, checked before the function sees it (rule A4):

    out, in       a tensor (in? also None)        num      a number
    num|in        a number or a tensor (num|in?; value|in: infinities too)  bool     True or False (bool? also None)
    alu, act      an operator, a function (alu?)  int      an integer
    ints          a tuple or list of integers     pairs    a list of [step, count] pairs
    axis          an integer or a sequence        engine, dge_mode, ...  a member of that enum
    value         int or float, kept as written   name     a string or None

The functions take the session and a namespace of arguments and return a dict with the engine
and, for the matrix engine, the multiply-adds.
"""

import math

from .errors import broken
from .memory import View, check_operand, check_overlap, check_written_words

REQUIRED = object()


class Enum:
    """A member of a vendor enumeration, e.g. nisa.engine.vector."""

    def __init__(self, family, name):
        self.family, self.name = family, name

    def __repr__(self):
        return f"nisa.{self.family}.{self.name}"


class OpName:
    """nl.add, nl.exp, ...: a name that operations take; it is not callable in the dialect."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"nl.{self.name}"

    def __call__(self, *_, **__):
        broken("A1", f"nl.{self.name}(...) is a wrapper outside the dialect; use nki.isa")


ENUMS = {
    "engine": ("unknown", "tensor", "scalar", "gpsimd", "dma", "vector", "sync"),
    "dge_mode": ("unknown", "swdge", "hwdge", "none"),
    "oob_mode": ("error", "skip"),
    "reduce_cmd": ("idle", "reset", "reduce", "reset_reduce", "load_reduce"),
    "matmul_perf_mode": ("none", "double_row"),
}
MEMBERS = {family: {name: Enum(family, name) for name in names}
           for family, names in ENUMS.items()}


class Operation:
    """A row of the table."""

    def __init__(self, name, parameters, function):
        self.name, self.parameters, self.function = name, parameters, function

    @property
    def title(self):
        return "nisa." + self.name


OPERATIONS = {}


def operation(name, *parameters):
    """Register a function; parameters are (name, kind) or (name, kind, default)."""
    rows = [(p[0], p[1], p[2] if len(p) > 2 else REQUIRED) for p in parameters]
    rows.append(("name", "name", None))

    def register(function):
        OPERATIONS[name] = Operation(name, rows, function)
        return function
    return register


# --- kinds -----------------------------------------------------------------------------

def _is_int(v):
    return isinstance(v, int) and not isinstance(v, bool)


def _is_number(v):
    return _is_int(v) or (isinstance(v, float) and math.isfinite(v))


def _is_filler(v):
    """What fills tiles: infinities too, which have words (float('inf'), np.inf); NaN has none."""
    return _is_number(v) or (isinstance(v, float) and math.isinf(v))


def _is_pairs(v):
    return isinstance(v, (list, tuple)) and all(
        isinstance(p, (list, tuple)) and len(p) == 2 and all(_is_int(n) for n in p) for p in v)


_KINDS = {
    "out": (lambda v: isinstance(v, View), "a tensor"),
    "in": (lambda v: isinstance(v, View), "a tensor"),
    "num": (_is_number, "a finite number"),
    "num|in": (lambda v: _is_number(v) or isinstance(v, View), "a number or a tensor"),
    "bool": (lambda v: isinstance(v, bool), "True or False"),
    "int": (_is_int, "an integer"),
    "ints": (lambda v: isinstance(v, (list, tuple)) and all(_is_int(n) for n in v),
             "a sequence of integers"),
    "pairs": (_is_pairs, "a list of [step, count] pairs"),
    "axis": (lambda v: _is_int(v) or (isinstance(v, (list, tuple)) and v and
                                      all(_is_int(n) for n in v)), "an axis or axes"),
    "alu": (lambda v: isinstance(v, OpName), "an operator such as nl.add"),
    "act": (lambda v: isinstance(v, OpName), "a function such as nl.exp"),
    "value": (_is_filler, "a number"),
    "value|in": (lambda v: _is_filler(v) or isinstance(v, View), "a number or a tensor"),
    "name": (lambda v: v is None or isinstance(v, str), "a string"),
}


def check_kind(op, parameter, kind, value):
    """A4 for one argument."""
    if kind in ENUMS:
        if not (isinstance(value, Enum) and value.family == kind):
            broken("A4", f"{parameter} is {value!r}, not a member of nisa.{kind}", op=op)
        return
    if kind.endswith("?"):
        if value is None:
            return
        kind = kind[:-1]
    test, text = _KINDS[kind]
    if not test(value):
        shown = "a tensor" if isinstance(value, View) else repr(value)
        broken("A4", f"{parameter} is {shown}, not {text}", op=op)


# --- what families share ---------------------------------------------------------------

def check_operands(op, engine, dst, *sources, max_dims=3):
    """Space, window and overlap rules of one instruction's tensors."""
    for view in (dst, *sources):
        check_operand(view, op, engine, max_dims)
    check_written_words(dst, op)
    for source in sources:
        check_overlap(dst, source, op)
        if source.start_partition != sources[0].start_partition:
            broken("G7", f"inputs start at partitions {sources[0].start_partition} and "
                         f"{source.start_partition}; all inputs use the same lanes", op=op)


def check_same(rule, op, dst, source, what="data"):
    """Equal partitions and equal elements per partition. (G7 follows from G5: above 64
    partitions every operand starts at 0.)"""
    if (dst.partitions, dst.elements) != (source.partitions, source.elements):
        broken(rule, f"dst is {list(dst.shape)}, {what} is {list(source.shape)}", op=op)


def check_column(rule, op, what, column, partitions, single=True):
    """A (P,1) tile beside data of P partitions, float32 unless the caller says otherwise."""
    if column.elements != 1 or column.partitions != partitions:
        broken(rule, f"{what} is {list(column.shape)}, not ({partitions}, 1)", op=op)
    if single and column.dtype.name != "float32":
        broken(rule, f"{what} is {column.dtype.name}, not float32", op=op)


def check_not_both_psum(rule, op, a, b):
    if a.space == "psum" and b.space == "psum":
        broken(rule, "both inputs lie in PSUM", op=op)


def rows(values):
    """Held values as (partitions, elements)."""
    return values.reshape(values.shape[0], -1)
