# SPDX-License-Identifier: Apache-2.0
"""The modules a kernel imports: `nki`, `nki.language`, `nki.isa`, made on demand.

Nothing of this is on the import path. `installed()` puts the three modules into sys.modules
while a kernel's text is loaded and takes them out again, restoring whatever was there, so that
a vendor's `nki` in the same process is never hidden from anybody else.
"""

import contextlib
import sys
import types

from . import ops_dma, ops_elementwise, ops_reduce, ops_tensor   # fill the table of operations
from .alu import ACTIVATIONS, ARITHMETIC, BITWISE, UNARY_ALU
from .dtype import NOT_EMULATED, TYPES, DType
from .errors import RuleError, broken
from .memory import View
from .optable import MEMBERS, OPERATIONS, REQUIRED, OpName, check_kind
from .session import current
from .trace import call_record

BUFFERS = ("sbuf", "psum", "hbm", "private_hbm", "shared_hbm")
OP_NAMES = sorted({*ARITHMETIC, *BITWISE, *UNARY_ALU, *ACTIVATIONS})
# Names of the dialect that are deliberately not here; the message is better than "unknown".
WRAPPERS = ("load", "store", "load_transpose2d", "copy_", "broadcast_to", "transpose", "matmul",
            "zeros", "ones", "full", "zeros_like", "empty_like", "sum", "max", "min", "mean",
            "var", "where", "softmax", "expand_dims", "affine_range", "sequential_range",
            "static_range", "dynamic_range", "ds", "tile_size", "program_ndim",
            "no_reorder", "device_print", "negative", "divide", "floor", "ceil", "cos", "tan",
            "fori_loop", "while_loop", "arange", "mgrid", "all", "prod")

assert ops_dma and ops_elementwise and ops_reduce and ops_tensor


class Buffer:
    """nl.sbuf and the other memory spaces."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"nl.{self.name}"


class Kernel:
    """What @nki.jit makes of a function."""

    def __init__(self, function):
        self.function, self.__name__ = function, function.__name__

    def __call__(self, *_, **__):
        raise RuntimeError("run this kernel through nki_emulator.emulate")


def _no_positional(op, args):
    if args:
        broken("P11", f"{len(args)} positional arguments", op=op)


def _ndarray(*args, shape=None, dtype=None, buffer=None, name="", address=None, **unknown):
    op = "nl.ndarray"
    _no_positional(op, args)
    if unknown:
        broken("A2", f"unknown keyword {sorted(unknown)[0]}", op=op)
    for what, value in (("shape", shape), ("dtype", dtype), ("buffer", buffer)):
        if value is None:
            broken("A3", f"{what} is missing", op=op)
    if not isinstance(dtype, DType):
        broken("A4", f"dtype is {dtype!r}, not a type such as nl.float32", op=op)
    if not isinstance(buffer, Buffer):
        broken("A4", f"buffer is {buffer!r}, not a memory space such as nl.sbuf", op=op)
    return current().allocate(shape, dtype, buffer.name, name, address,
                              sys._getframe(1).f_lineno)


def _shared_identity_matrix(*args, n=None, dtype=None, dst=None, **_):
    op = "nl.shared_identity_matrix"
    _no_positional(op, args)
    if dtype is None:
        broken("M12", "without dtype the matrix is uint8; give it the type of the data", op=op)
    broken("A1", "not in the dialect; nc_transpose needs no identity", op=op)


def _program_id(*args, axis=None, **unknown):
    return _ask_grid("nl.program_id", args, unknown, "axis", axis).program


def _num_programs(*args, axes=None, **unknown):
    return _ask_grid("nl.num_programs", args, unknown, "axes", axes).programs


def _ask_grid(op, args, unknown, name, axis):
    _no_positional(op, args)
    if unknown:
        broken("A2", f"unknown keyword {sorted(unknown)[0]}", op=op)
    if axis is None:
        broken("A3", f"{name} is missing", op=op)
    session = current()
    session.place_in_grid(op, axis)
    return session


def _bind(op, given):
    """Arguments with defaults filled in, or A2, A3, A4."""
    known = {name for name, _, _ in op.parameters}
    for name in given:
        if name not in known:
            broken("A2", f"unknown keyword {name}")
    values = types.SimpleNamespace()
    for name, kind, default in op.parameters:
        if name in given:
            check_kind(op.title, name, kind, given[name])
        elif default is REQUIRED:
            broken("A3", f"{name} is missing")
        setattr(values, name, given.get(name, default))
    return values


def _caller(op):
    def call(*args, **given):
        session, line = current(), sys._getframe(1).f_lineno
        try:
            _no_positional(op.title, args)
            at = session.begin_instruction(op.title)
            values = _bind(op, given)
            values.line = line
            facts = op.function(session, values)
        except RuleError as error:
            raise error.locate(op.title, line, session.path)
        for name, kind, _ in op.parameters:
            value = getattr(values, name)
            if isinstance(value, View):
                session.touch(value, at)
                if value.positions is not None:
                    session.touch(value.positions, at)
                if not kind.startswith("out"):
                    session.note_read(value)
        session.records.append(call_record(op, given, line, facts))
    call.__name__ = op.name
    return call


class _Module(types.ModuleType):
    """A module whose unknown names are A1 with a reason."""

    _title = "nki"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        unknown_name(self._title, name)


def unknown_name(module, name):
    """A1 for a name of nl, nisa or nki that kernels may not use."""
    if module == "nl" and name in NOT_EMULATED:
        broken("A1", f"nl.{name}: this type is not emulated")
    if module == "nl" and name in WRAPPERS:
        broken("A1", f"nl.{name} is outside the dialect; use nki.isa operations, plain range "
                     f"and literal slices")
    broken("A1", f"{module}.{name} is not a name of the dialect")


def api_names():
    """Names a kernel may use: {'nl': {...}, 'nisa': {...}, 'nki': {...}}."""
    return {"nl": {*TYPES, *BUFFERS, *OP_NAMES, "ndarray", "shared_identity_matrix",
                   "program_id", "num_programs"},
            "nisa": {*OPERATIONS, *MEMBERS}, "nki": {"jit", "language", "isa"}}


def _make_modules():
    nki, language, isa = _Module("nki"), _Module("nki.language"), _Module("nki.isa")
    language._title, isa._title = "nl", "nisa"
    nki.__path__ = []
    nki.jit, nki.language, nki.isa = Kernel, language, isa
    for name, dtype in TYPES.items():
        setattr(language, name, dtype)
    for name in BUFFERS:
        setattr(language, name, Buffer(name))
    for name in OP_NAMES:
        setattr(language, name, OpName(name))
    language.ndarray = _ndarray
    language.shared_identity_matrix = _shared_identity_matrix
    language.program_id, language.num_programs = _program_id, _num_programs
    for family, members in MEMBERS.items():
        setattr(isa, family, types.SimpleNamespace(**members))
    for op in OPERATIONS.values():
        setattr(isa, op.name, _caller(op))
    return {"nki": nki, "nki.language": language, "nki.isa": isa}


@contextlib.contextmanager
def installed():
    """`import nki` means the emulator inside this block, and only there."""
    hidden = {name: module for name, module in sys.modules.items()
              if name == "nki" or name.startswith("nki.")}
    for name in hidden:
        del sys.modules[name]
    sys.modules.update(_make_modules())
    try:
        yield
    finally:
        for name in [n for n in sys.modules if n == "nki" or n.startswith("nki.")]:
            del sys.modules[name]
        sys.modules.update(hidden)
