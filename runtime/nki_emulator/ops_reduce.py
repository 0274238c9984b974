# SPDX-License-Identifier: Apache-2.0
"""Reductions, scans, fills and index operations (rules E5, E7, E8, E11, E12).

Running sums accumulate in order in float32. GpSimd runs the index operations and the
reduction over partitions.
"""

import math

import numpy as np

from .alu import REDUCERS, alu_apply, alu_kind, alu_reduce
from .dtype import cast
from .errors import broken
from .memory import View, check_exact, read, read_single, write
from .optable import (MEMBERS, check_column, check_not_both_psum, check_operands, check_same,
                      operation, rows)


def _check_reducer(op, name):
    alu_kind(name, op)
    if name not in REDUCERS:
        broken("A4", f"nl.{name} does not reduce", op=op)


@operation("tensor_reduce", ("dst", "out"), ("op", "alu"), ("data", "in"), ("axis", "axis"),
           ("negate", "bool", False), ("keepdims", "bool", False))
def tensor_reduce(session, a):
    op = "nisa.tensor_reduce"
    _check_reducer(op, a.op.name)
    check_operands(op, "vector", a.dst, a.data, max_dims=4)
    rank = len(a.data.shape)
    axes = [a.axis] if isinstance(a.axis, int) else list(a.axis)
    wanted = list(range(rank - len(axes), rank))
    if sorted(axes) != wanted or 0 in axes:
        broken("E5", f"axis {a.axis} of a {rank}-dimensional tile: only the trailing free "
                     f"axes, never 0", op=op)
    kept = math.prod(a.data.shape[1:rank - len(axes)])
    if (a.dst.partitions, a.dst.elements) != (a.data.partitions, kept):
        broken("E5", f"dst is {list(a.dst.shape)}, the result is ({a.data.partitions}, "
                     f"{kept})", op=op)
    bit = alu_kind(a.op.name, op) == "bit"
    if bit and not (a.data.dtype.is_int and a.dst.dtype.is_int):
        broken("E5", f"a bitwise reduction of {a.data.dtype.name}", op=op)
    values = read(a.data, op) if bit else read_single(a.data, op)
    flat = values.reshape(a.data.partitions * kept, -1)
    result = alu_reduce(a.op.name, flat).reshape(a.data.partitions, kept)
    write(a.dst, -result if a.negate else result, op)
    return {"engine": "vector"}


@operation("tensor_partition_reduce", ("dst", "out"), ("op", "alu"), ("data", "in"))
def tensor_partition_reduce(session, a):
    op = "nisa.tensor_partition_reduce"
    if a.op.name not in ("add", "maximum", "bitwise_or", "bitwise_and"):
        broken("A4", f"nl.{a.op.name} does not reduce over partitions", op=op)
    check_operands(op, "gpsimd", a.dst, a.data)
    if (a.dst.partitions, a.dst.elements) != (1, a.data.elements):
        broken("E5", f"dst is {list(a.dst.shape)}, the result is (1, {a.data.elements})", op=op)
    bit = a.op.name.startswith("bitwise")
    if bit and not a.data.dtype.is_int:
        broken("E5", f"a bitwise reduction of {a.data.dtype.name}", op=op)
    values = rows(read(a.data, op) if bit else read_single(a.data, op))
    write(a.dst, alu_reduce(a.op.name, values.T.copy()).T, op)
    return {"engine": "gpsimd"}


@operation("tensor_tensor_scan", ("dst", "out"), ("data0", "in"), ("data1", "in"),
           ("initial", "value|in"), ("op0", "alu"), ("op1", "alu"), ("reverse0", "bool", False),
           ("reverse1", "bool", False))
def tensor_tensor_scan(session, a):
    op = "nisa.tensor_tensor_scan"
    for name in (a.op0.name, a.op1.name):
        if alu_kind(name, op) != "arith":
            broken("E7", f"nl.{name} is not arithmetic", op=op)
    columns = [a.initial] if isinstance(a.initial, View) else []
    check_operands(op, "vector", a.dst, a.data0, a.data1, *columns)
    check_same("E7", op, a.dst, a.data0, "data0")
    check_same("E7", op, a.dst, a.data1, "data1")
    check_not_both_psum("E7", op, a.data0, a.data1)
    left, right = rows(read_single(a.data0, op)), rows(read_single(a.data1, op))
    if columns:
        check_column("E7", op, "initial", a.initial, a.data0.partitions)
        state = rows(read_single(a.initial, op))[:, 0]
    else:
        state = np.full(left.shape[0], a.initial, np.float32)
    result = np.empty_like(left)
    for j in range(left.shape[1]):
        first = (left[:, j], state) if not a.reverse0 else (state, left[:, j])
        step = alu_apply(a.op0.name, *first).astype(np.float32)
        second = (step, right[:, j]) if not a.reverse1 else (right[:, j], step)
        state = alu_apply(a.op1.name, *second).astype(np.float32)
        result[:, j] = state
    write(a.dst, result, op)
    return {"engine": "vector"}


@operation("memset", ("dst", "out"), ("value", "value"),
           ("engine", "engine", MEMBERS["engine"]["unknown"]))
def memset(session, a):
    op = "nisa.memset"
    engine = {"unknown": "vector", "vector": "vector", "gpsimd": "gpsimd"}.get(a.engine.name)
    if engine is None:
        broken("A4", f"{a.engine} does not fill memory", op=op)
    check_operands(op, engine, a.dst)
    if a.dst.dtype.is_int != isinstance(a.value, int):
        broken("E12", f"value {a.value!r} for a tile of {a.dst.dtype.name}", op=op)
    held = cast(np.asarray([a.value]), a.dst.dtype)[0]
    fits = held == a.value if a.dst.dtype.is_int else np.isfinite(held) or np.isinf(a.value)
    if not fits:
        broken("E12", f"value {a.value!r} does not fit {a.dst.dtype.name}", op=op)
    write(a.dst, np.full(a.dst.shape, held), op)
    return {"engine": engine}


def _index_values(op, pattern, offset, multiplier, view):
    """offset + partition * multiplier + the pattern, as (partitions, elements) of int64."""
    if view.space != "sbuf":
        broken("E8", f"{view} must lie in SBUF", op=op)
    if not 1 <= len(pattern) <= 4:
        broken("E8", f"{len(pattern)} pattern dimensions, 1 to 4", op=op)
    counts = [count for _, count in pattern]
    if any(c < 1 for c in counts) or math.prod(counts) != view.elements:
        broken("E8", f"pattern {pattern} counts {math.prod(counts)} "
                     f"elements, {view} has {view.elements}", op=op)
    free = np.zeros((1,), np.int64)
    for step, count in pattern:
        free = (free[:, None] + step * np.arange(count, dtype=np.int64)[None, :]).reshape(-1)
    values = offset + multiplier * np.arange(view.partitions, dtype=np.int64)[:, None] + free
    if int(np.abs(values).max()) >= 2 ** 31:
        broken("E8", "an index value leaves int32", op=op)
    return values


@operation("iota", ("dst", "out"), ("pattern", "pairs"), ("offset", "int", 0),
           ("channel_multiplier", "int", 0))
def iota(session, a):
    op = "nisa.iota"
    values = _index_values(op, a.pattern, a.offset, a.channel_multiplier, a.dst)
    check_operands(op, "gpsimd", a.dst, max_dims=4)
    if a.dst.dtype.is_float:
        check_exact(values, op)
    write(a.dst, values, op)
    return {"engine": "gpsimd"}


@operation("affine_select", ("dst", "out"), ("pattern", "pairs"),
           ("channel_multiplier", "int"), ("on_true_tile", "in"), ("on_false_value", "value"),
           ("cmp_op", "alu", None), ("offset", "int", 0))
def affine_select(session, a):
    op = "nisa.affine_select"
    for view in (a.dst, a.on_true_tile):
        if view.space != "sbuf":
            broken("E8", f"{view} must lie in SBUF", op=op)
    values = _index_values(op, a.pattern, a.offset, a.channel_multiplier, a.on_true_tile)
    check_operands(op, "gpsimd", a.dst, a.on_true_tile, max_dims=4)
    check_same("E8", op, a.dst, a.on_true_tile, "on_true_tile")
    name = "equal" if a.cmp_op is None else a.cmp_op.name
    if name not in ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal"):
        broken("A4", f"nl.{name} does not compare", op=op)
    chosen = alu_apply(name, values, np.int64(0)) != 0
    source = rows(read_single(a.on_true_tile, op))
    write(a.dst, np.where(chosen, source, np.float32(a.on_false_value)), op)
    return {"engine": "gpsimd"}


@operation("nc_stream_shuffle", ("dst", "out"), ("src", "in"), ("shuffle_mask", "ints"))
def nc_stream_shuffle(session, a):
    op = "nisa.nc_stream_shuffle"
    mask = list(a.shuffle_mask)
    if len(mask) != 32 or any(not (0 <= m < 32 or m == 255) for m in mask):
        broken("E11", "the mask has 32 entries, each 0 to 31 or 255", op=op)
    if a.dst.dtype is not a.src.dtype:
        broken("E11", f"dst is {a.dst.dtype.name}, src is {a.src.dtype.name}", op=op)
    if a.dst.elements != a.src.elements:
        broken("E11", f"dst is {list(a.dst.shape)}, src is {list(a.src.shape)}", op=op)
    active = a.dst.partitions
    if active % 32 != 0 and not active < 32:
        broken("E11", f"{active} partitions are no whole quadrants", op=op)
    legal = {32: (0, 32, 64, 96), 64: (0, 64)}.get(max(active, 32), (0,))
    for view in (a.dst, a.src):
        if view.start_partition not in legal:
            broken("E11", f"{active} partitions starting at {view.start_partition}: {view}",
                   op=op)
    used = [m for m in mask[:min(active, 32)] if m != 255]
    quadrants = max(1, active // 32)
    if used and a.src.partitions < (quadrants - 1) * 32 + max(used) + 1:
        broken("E11", f"the mask reaches partition {max(used)} of {a.src}", op=op)
    check_operands(op, "vector", a.dst, a.src)
    source = rows(read(a.src, op))
    for p in range(a.dst.partitions):
        chosen = mask[p % 32]
        if chosen == 255:
            continue
        row = source[(p // 32) * 32 + chosen]
        a.dst.values[p] = row.reshape(a.dst.shape[1:])
        a.dst.written[p] = True
        if a.dst.group is not None:
            a.dst.group[p] = -1
    return {"engine": "vector"}
