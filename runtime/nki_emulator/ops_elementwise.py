# SPDX-License-Identifier: Apache-2.0
"""Elementwise operations of the vector, scalar and GpSimd engines (rules E1 to E4, E6, E14).

All arithmetic is float32 whatever the tiles hold, with one exception the vendor documents:
tensor_tensor on two 32-bit integer tiles runs exactly on GpSimd, out of SBUF. Results are
rounded to the type of dst as they are stored.
"""

import numpy as np

from .alu import (ACTIVATIONS, GPSIMD_ONLY, activation_apply, activation_range, alu_apply,
                  alu_kind, alu_reduce)
from .errors import broken
from .memory import View, check_overlap, read, read_single, write
from .optable import (MEMBERS, check_column, check_not_both_psum, check_operands, check_same,
                      operation, rows)

_ANY = MEMBERS["engine"]["unknown"]
_IDLE = MEMBERS["reduce_cmd"]["idle"]


def _check_bit_types(rule, op, *views):
    for view in views:
        if not view.dtype.is_int:
            broken(rule, f"a bitwise operator on {view.dtype.name}: {view}", op=op)


def _pick_engine(op, asked, *choices):
    """The engine an instruction runs on; the first choice is the default."""
    if asked.name == "unknown":
        return choices[0]
    if asked.name not in choices:
        broken("A4", f"{asked} does not run this operation", op=op)
    return asked.name


@operation("tensor_tensor", ("dst", "out"), ("data1", "in"), ("data2", "in"), ("op", "alu"),
           ("engine", "engine", _ANY))
def tensor_tensor(session, a):
    op = "nisa.tensor_tensor"
    kind = alu_kind(a.op.name, op)
    wide = all(v.dtype.is_int and v.dtype.size == 4 for v in (a.data1, a.data2))
    exact = kind == "arith" and wide and a.engine.name in ("unknown", "gpsimd")
    if a.op.name in GPSIMD_ONLY or exact:
        engine = _pick_engine(op, a.engine, "gpsimd")
        for view in (a.dst, a.data1, a.data2):
            if view.space == "psum":
                broken("E1", f"nl.{a.op.name} runs on GpSimd here, needs SBUF: {view}", op=op)
    else:
        engine = _pick_engine(op, a.engine, "vector", "gpsimd")
    check_operands(op, engine, a.dst, a.data1, a.data2)
    counts = {v.partitions for v in (a.dst, a.data1, a.data2)}
    if len(counts) > 1 and 1 in (a.data1.partitions, a.data2.partitions):
        broken("G18", f"data1 {list(a.data1.shape)} and data2 {list(a.data2.shape)}: one "
                      f"partition is not broadcast", op=op)
    check_same("E1", op, a.dst, a.data1, "data1")
    check_same("E1", op, a.dst, a.data2, "data2")
    check_not_both_psum("E1", op, a.data1, a.data2)
    if kind == "bit":
        _check_bit_types("E1", op, a.dst, a.data1, a.data2)
    if kind == "bit" or exact:
        left, right = rows(read(a.data1, op)), rows(read(a.data2, op))
        if exact:
            left, right = left.astype(np.int64), right.astype(np.int64)
        result = alu_apply(a.op.name, left, right)
        info = np.iinfo(a.dst.dtype.held) if exact and a.dst.dtype.is_int else None
        if info is not None and (result.max() > info.max or result.min() < info.min):
            broken("E13", f"a result beyond {a.dst.dtype.name}", op=op)
    else:
        result = alu_apply(a.op.name, rows(read_single(a.data1, op)),
                           rows(read_single(a.data2, op)))
    write(a.dst, result, op)
    return {"engine": engine}


def _scalar_operand(rule, op, what, operand, data, kind):
    """A scalar or (P,1) tile as an array that broadcasts along the free axis."""
    if isinstance(operand, View):
        check_column(rule, op, what, operand, data.partitions, single=kind == "arith")
        if kind == "bit":
            return rows(read(operand, op))
        return rows(read_single(operand, op))
    if kind == "bit":
        if not isinstance(operand, int):
            broken(rule, f"{what} of a bitwise operator is {operand!r}", op=op)
        return np.asarray(operand, dtype=data.dtype.held)
    return np.float32(operand)


def _apply(name, data, operand, reverse):
    return alu_apply(name, operand, data) if reverse else alu_apply(name, data, operand)


_SCALAR_ENGINE = {("multiply", "add"), ("multiply", None), ("add", None)}


@operation("tensor_scalar", ("dst", "out"), ("data", "in"), ("op0", "alu"),
           ("operand0", "num|in"), ("reverse0", "bool", False), ("op1", "alu?", None),
           ("operand1", "num|in?", None), ("reverse1", "bool", False),
           ("engine", "engine", _ANY))
def tensor_scalar(session, a):
    op = "nisa.tensor_scalar"
    if (a.op1 is None) != (a.operand1 is None):
        broken("E2", "op1 and operand1 are given together", op=op)
    names = [a.op0.name] + ([a.op1.name] if a.op1 else [])
    kinds = {alu_kind(name, op) for name in names}
    if len(kinds) > 1:
        broken("E2", f"{' and '.join(names)} mix arithmetic and bitwise", op=op)
    kind = kinds.pop()
    if a.engine.name == "gpsimd":
        broken("E2", "engine=gpsimd is for rsqrt only", op=op)
    engine = _pick_engine(op, a.engine, "vector", "scalar")
    if engine == "scalar" and (session.machine.gen < 3 or (names + [None])[0:2] not in
                               [list(pair) for pair in _SCALAR_ENGINE]):
        broken("E2", f"the scalar engine of {session.machine.name} does not do "
                     f"{' then '.join(names)}", op=op)
    if any(name in GPSIMD_ONLY for name in names):
        engine = "gpsimd"
    columns = [v for v in (a.operand0, a.operand1) if isinstance(v, View)]
    check_operands(op, engine, a.dst, a.data, *columns)
    check_same("E2", op, a.dst, a.data)
    if kind == "bit":
        _check_bit_types("E2", op, a.dst, a.data)
        result = rows(read(a.data, op))
    else:
        result = rows(read_single(a.data, op))
    first = _scalar_operand("E2", op, "operand0", a.operand0, a.data, kind)
    result = _apply(names[0], result, first, a.reverse0)
    if a.op1 is not None:
        second = _scalar_operand("E2", op, "operand1", a.operand1, a.data, kind)
        result = _apply(names[1], result, second, a.reverse1)
    write(a.dst, result, op)
    return {"engine": engine}


@operation("scalar_tensor_tensor", ("dst", "out"), ("data", "in"), ("op0", "alu"),
           ("operand0", "num|in"), ("op1", "alu"), ("operand1", "in"),
           ("reverse0", "bool", False), ("reverse1", "bool", False))
def scalar_tensor_tensor(session, a):
    op = "nisa.scalar_tensor_tensor"
    for name in (a.op0.name, a.op1.name):
        if alu_kind(name, op) != "arith":
            broken("E3", f"nl.{name} is not arithmetic", op=op)
    columns = [a.operand0] if isinstance(a.operand0, View) else []
    gpsimd = {a.op0.name, a.op1.name} & set(GPSIMD_ONLY)
    engine = "gpsimd" if gpsimd else "vector"
    check_operands(op, engine, a.dst, a.data, a.operand1, *columns)
    check_same("E3", op, a.dst, a.data)
    check_same("E3", op, a.dst, a.operand1, "operand1")
    check_not_both_psum("E3", op, a.data, a.operand1)
    scalar = _scalar_operand("E3", op, "operand0", a.operand0, a.data, "arith")
    result = _apply(a.op0.name, rows(read_single(a.data, op)), scalar, a.reverse0)
    result = _apply(a.op1.name, result, rows(read_single(a.operand1, op)), a.reverse1)
    write(a.dst, result, op)
    return {"engine": engine}


def _activate(session, a, op):
    """op(data * scale + bias) as float32 rows, with the checks activation variants share."""
    if a.op.name not in ACTIVATIONS:
        broken("A4", f"nl.{a.op.name} is not an activation function", op=op)
    columns = [v for v in (a.bias, a.scale) if isinstance(v, View)]
    check_operands(op, "scalar", a.dst, a.data, *columns)
    check_same("E4", op, a.dst, a.data)
    x = rows(read_single(a.data, op))
    if isinstance(a.scale, View):
        check_column("E4", op, "scale", a.scale, a.data.partitions)
        x = x * rows(read_single(a.scale, op))
    else:
        with np.errstate(over="ignore"):
            x = x * np.float32(a.scale)
    if a.bias is not None:
        if a.op.name == "reciprocal" and session.machine.gen < 3:
            broken("E4", "reciprocal takes no bias on generation 2", op=op)
        if isinstance(a.bias, View):
            check_column("E4", op, "bias", a.bias, a.data.partitions, single=False)
            if a.bias.dtype.name == "tfloat32" or a.bias.dtype.is_int:
                broken("E4", f"bias is {a.bias.dtype.name}", op=op)
            x = x + rows(read_single(a.bias, op))
        elif session.machine.gen < 3:
            broken("E4", "bias is a (P, 1) tile on generation 2, not a scalar", op=op)
        else:
            x = x + np.float32(a.bias)
    complaint = activation_range(a.op.name, x)
    if complaint:
        session.range_complaint(complaint, op, a.line)
    return activation_apply(a.op.name, x)


def _reduce_into(session, a, op, result, command):
    """The running sum an activation leaves beside its result."""
    if a.reduce_op.name != "add":
        broken("E4", f"reduce_op is nl.{a.reduce_op.name}, only nl.add", op=op)
    check_operands(op, "scalar", a.reduce_res, a.data)
    check_overlap(a.reduce_res, a.dst, op)
    check_column("E4", op, "reduce_res", a.reduce_res, a.data.partitions)
    total = alu_reduce("add", result)
    if command == "reduce":
        total = rows(read_single(a.reduce_res, op)) + total
    write(a.reduce_res, total, op)


@operation("activation", ("dst", "out"), ("op", "act"), ("data", "in"),
           ("bias", "num|in?", None), ("scale", "num|in", 1.0), ("reduce_op", "alu?", None),
           ("reduce_res", "out?", None), ("reduce_cmd", "reduce_cmd", _IDLE))
def activation(session, a):
    op = "nisa.activation"
    given = (a.reduce_op is not None, a.reduce_res is not None, a.reduce_cmd.name != "idle")
    if any(given) and not all(given):
        broken("E4", "reduce_op, reduce_res and reduce_cmd are given together", op=op)
    if a.reduce_cmd.name not in ("idle", "reset_reduce", "reduce"):
        broken("A1", f"{a.reduce_cmd} is not emulated", op=op)
    result = _activate(session, a, op)
    write(a.dst, result, op)
    if all(given):
        _reduce_into(session, a, op, result, a.reduce_cmd.name)
    return {"engine": "scalar"}


@operation("activation_reduce", ("dst", "out"), ("op", "act"), ("data", "in"),
           ("reduce_op", "alu"), ("reduce_res", "out"), ("bias", "num|in?", None),
           ("scale", "num|in", 1.0))
def activation_reduce(session, a):
    op = "nisa.activation_reduce"
    result = _activate(session, a, op)
    write(a.dst, result, op)
    _reduce_into(session, a, op, result, "reset_reduce")
    return {"engine": "scalar"}


@operation("reciprocal", ("dst", "out"), ("data", "in"))
def reciprocal(session, a):
    op = "nisa.reciprocal"
    check_operands(op, "vector", a.dst, a.data)
    check_same("E6", op, a.dst, a.data)
    with np.errstate(all="ignore"):
        result = np.float32(1.0) / rows(read_single(a.data, op))
    write(a.dst, result, op)
    return {"engine": "vector"}


@operation("tensor_copy", ("dst", "out"), ("src", "in"), ("engine", "engine", _ANY))
def tensor_copy(session, a):
    op = "nisa.tensor_copy"
    engine = _pick_engine(op, a.engine, "vector", "scalar", "gpsimd")
    if engine == "scalar" and session.machine.gen < 3:
        broken("E6", "not on the scalar engine of generation 2; use "
                     "activation(op=nl.copy)", op=op)
    check_operands(op, engine, a.dst, a.src)
    check_same("E6", op, a.dst, a.src, "src")
    values = read(a.src, op) if a.src.dtype is a.dst.dtype else read_single(a.src, op)
    write(a.dst, rows(values), op)
    return {"engine": engine}


@operation("tensor_copy_predicated", ("dst", "out"), ("src", "in"), ("predicate", "in"),
           ("reverse_pred", "bool", False))
def tensor_copy_predicated(session, a):
    op = "nisa.tensor_copy_predicated"
    check_operands(op, "vector", a.dst, a.src, a.predicate)
    if a.predicate.dtype.kind != "u":
        broken("E10", f"predicate is {a.predicate.dtype.name}, not an unsigned type", op=op)
    if a.src.dtype is not a.dst.dtype:
        broken("E10", f"src is {a.src.dtype.name}, dst is {a.dst.dtype.name}", op=op)
    check_same("E10", op, a.dst, a.src, "src")
    check_same("E10", op, a.dst, a.predicate, "predicate")
    source = read(a.src, op).reshape(a.dst.shape)
    chosen = (read(a.predicate, op) != 0).reshape(a.dst.shape)
    if a.reverse_pred:
        chosen = ~chosen
    a.dst.values[chosen] = source[chosen]
    a.dst.written[chosen] = True
    if a.dst.group is not None:
        a.dst.group[chosen] = -1
    return {"engine": "vector"}


@operation("select_reduce", ("dst", "out"), ("predicate", "in"), ("on_true", "in"),
           ("on_false", "num|in"), ("reduce_res", "out?", None),
           ("reduce_cmd", "reduce_cmd", _IDLE), ("reduce_op", "alu", None),
           ("reverse_pred", "bool", False))
def select_reduce(session, a):
    op = "nisa.select_reduce"
    if a.predicate.dtype.name not in ("int8", "uint8", "int16", "uint16"):
        broken("E9", f"predicate is {a.predicate.dtype.name}", op=op)
    if a.on_true.dtype.name in ("int32", "uint32", "tfloat32"):
        broken("E9", f"on_true is {a.on_true.dtype.name}", op=op)
    if a.reduce_op is not None and a.reduce_op.name != "maximum":
        broken("E9", f"reduce_op is nl.{a.reduce_op.name}, only nl.maximum", op=op)
    if a.reduce_res is not None or a.reduce_cmd.name != "idle":
        broken("A1", "the reduction of select_reduce is not emulated", op=op)
    columns = [a.on_false] if isinstance(a.on_false, View) else []
    check_operands(op, "vector", a.dst, a.predicate, a.on_true, *columns)
    check_same("E9", op, a.dst, a.predicate, "predicate")
    check_same("E9", op, a.dst, a.on_true, "on_true")
    check_not_both_psum("E9", op, a.predicate, a.on_true)
    chosen = rows(read(a.predicate, op)) != 0
    if a.reverse_pred:
        chosen = ~chosen
    other = _scalar_operand("E9", op, "on_false", a.on_false, a.on_true, "arith")
    write(a.dst, np.where(chosen, rows(read_single(a.on_true, op)), other), op)
    return {"engine": "vector"}
