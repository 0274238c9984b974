# SPDX-License-Identifier: Apache-2.0
"""The matrix engine: nc_matmul and nc_transpose (rules M1 to M11, G4).

A product of one K chunk is computed in float64, rounded to float32 once, and added in float32
to what the accumulation group holds, which is what PSUM does between chunks. Whether a matmul
overwrites or accumulates is decided the way every dialect agrees on: into a region nothing
has written it overwrites, into the region of an accumulation group it accumulates. What the
dialects do not agree on (PSUM set by other instructions, a group that has already been read)
is refused: allocate a fresh PSUM tile for each group.
"""

import numpy as np

from .errors import broken
from .memory import check_operand, check_overlap, check_written_words, read, write
from .optable import MEMBERS, operation, rows

_FLOATS = ("float32", "tfloat32", "bfloat16", "float16", "float8_e4m3", "float8_e5m2")


def _check_types(op, *views):
    for view in views:
        if view.dtype.is_int:
            broken("M5", f"{view} is {view.dtype.name}", op=op)
        if view.dtype.name not in _FLOATS:
            broken("M4", f"{view} is {view.dtype.name}", op=op)
    wide = {v.dtype.name in ("float32", "tfloat32") for v in views}
    if len(wide) > 1:
        broken("M4", "float32 goes only with float32: " +
               ", ".join(v.dtype.name for v in views), op=op)


def _check_bank(session, op, dst):
    """G4: the result row lies within one bank (its tile begins at a bank's start)."""
    if session.machine.gen >= 4:
        return
    size = dst.dtype.size
    first = dst.offset % dst.tensor.free_elements * size
    last = first + sum((n - 1) * s for n, s in zip(dst.shape[1:], dst.strides[1:])) * size
    bank = session.machine.bank_bytes
    if first // bank != last // bank:
        broken("G4", f"{dst} crosses a PSUM bank of {bank} bytes", op=op)


def _check_position(session, op, a):
    """M6: row tiling of the matrix array."""
    position, size = tuple(a.tile_position or ()), tuple(a.tile_size or ())
    if not position and not size:
        return
    if len(position) != 2 or len(size) != 2:
        broken("M6", "tile_position and tile_size are given together, as pairs", op=op)
    legal = (64, 128) if session.machine.gen < 3 else (32, 64, 128)
    if size[0] not in legal or size[1] not in legal:
        broken("M6", f"tile_size {size}, legal are {legal}", op=op)
    if position[1] != 0 or size[1] != 128:
        broken("M6", "only rows are tiled: column 0 and size 128", op=op)
    if position[0] % size[0] != 0 or position[0] + size[0] > 128:
        broken("M6", f"tile_position {position} is no multiple of {size}", op=op)
    if a.stationary.partitions > size[0] or a.stationary.elements > size[1]:
        broken("M6", f"stationary {list(a.stationary.shape)} exceeds {size}", op=op)
    for view in (a.stationary, a.moving):
        if view.start_partition != position[0]:
            broken("M6", f"{view} does not start at row {position[0]}", op=op)


def _check_onezero(op, view, values, promised):
    if promised and not np.isin(values, (0.0, 1.0)).all():
        broken("M11", f"{view} was promised to hold ones and zeros", op=op)


def _group_of(session, op, a):
    """The accumulation group a matmul writes, and whether it overwrites (M8, M9)."""
    dst = a.dst
    held = np.unique(dst.group)
    fresh = len(session.records) + 1
    if held.size == 1 and held[0] == 0:
        if a.accumulate is True:
            broken("M9", f"accumulate=True onto {dst}, which nothing has written", op=op)
        return fresh, True
    if (held == -1).any():
        if a.accumulate is False:
            return fresh, True
        broken("M9", f"{dst} was written by another instruction than a matmul; allocate a "
                     f"fresh PSUM tile", op=op)
    if held.size != 1 or int((dst.store.group == held[0]).sum()) != dst.values.size:
        broken("M8", f"{dst} is not the region of one accumulation group", op=op)
    if a.accumulate is False:
        return fresh, True
    if a.accumulate is None and int(held[0]) in session.groups_read(dst.tensor):
        broken("M9", f"the accumulation group in {dst} has been read; allocate a fresh PSUM "
                     f"tile for the next group", op=op)
    return int(held[0]), False


def _alone_in_bank(session, op, dst, group, overwrite):
    """M8: groups lie side by side in a PSUM bank, but one at a time is added to."""
    bank = dst.offset % dst.tensor.free_elements * dst.dtype.size // session.machine.bank_bytes
    if not overwrite and dst.store.open.get(bank) != group:
        broken("M8", f"{dst} is added to while another accumulation group of its PSUM bank is "
                     f"open", op=op)
    dst.store.open[bank] = group


@operation("nc_matmul", ("dst", "out"), ("stationary", "in"), ("moving", "in"),
           ("is_stationary_onezero", "bool", False), ("is_moving_onezero", "bool", False),
           ("is_transpose", "bool", False), ("accumulate", "bool?", None),
           ("tile_position", "ints", ()), ("tile_size", "ints", ()),
           ("perf_mode", "matmul_perf_mode", MEMBERS["matmul_perf_mode"]["none"]))
def nc_matmul(session, a):
    op = "nisa.nc_matmul"
    for view, space in ((a.stationary, "sbuf"), (a.moving, "sbuf"), (a.dst, "psum")):
        if view.space != space:
            broken("M1", f"{view} must lie in {space.upper()}", op=op)
    _check_types(op, a.stationary, a.moving)
    if a.is_transpose:
        broken("A1", "is_transpose is not emulated; use nc_transpose", op=op)
    if a.perf_mode.name != "none":
        broken("M7", f"{a.perf_mode} with {a.stationary.dtype.name} operands", op=op)
    allowed = ("float32",) if session.machine.gen < 4 else ("float32", "bfloat16")
    if a.dst.dtype.name not in allowed:
        broken("M3", f"{a.dst} is {a.dst.dtype.name}", op=op)
    k, m, n = a.stationary.partitions, a.stationary.elements, a.moving.elements
    if a.moving.partitions != k:
        broken("M2", f"stationary has {k} partitions, moving {a.moving.partitions}", op=op)
    if m > 128:
        broken("M2", f"stationary free size {m}, limit 128", op=op)
    if n > session.machine.matmul_n:
        broken("M2", f"moving free size {n}, limit {session.machine.matmul_n}", op=op)
    if (a.dst.partitions, a.dst.elements) != (m, n):
        broken("M2", f"dst is {list(a.dst.shape)}, the product is ({m}, {n})", op=op)
    check_operand(a.stationary, op, "tensor", max_dims=1)
    for view in (a.dst, a.moving):
        check_operand(view, op, "tensor")
    check_written_words(a.dst, op)
    if a.stationary.start_partition != a.moving.start_partition:
        broken("G7", "stationary and moving start at different partitions", op=op)
    _check_bank(session, op, a.dst)
    _check_position(session, op, a)
    group, overwrite = _group_of(session, op, a)
    _alone_in_bank(session, op, a.dst, group, overwrite)
    left, right = rows(read(a.stationary, op)), rows(read(a.moving, op))
    _check_onezero(op, a.stationary, left, a.is_stationary_onezero)
    _check_onezero(op, a.moving, right, a.is_moving_onezero)
    with np.errstate(all="ignore"):
        chunk = (left.T.astype(np.float64) @ right.astype(np.float64)).astype(np.float32)
        if not overwrite:
            chunk = rows(a.dst.values) + chunk
    write(a.dst, chunk, op, group)
    return {"engine": "tensor", "macs": k * m * n, "overwrites": overwrite}


@operation("nc_transpose", ("dst", "out"), ("data", "in"),
           ("engine", "engine", MEMBERS["engine"]["unknown"]))
def nc_transpose(session, a):
    op = "nisa.nc_transpose"
    vector = a.engine.name == "vector"
    if a.engine.name not in ("unknown", "tensor", "vector"):
        broken("M10", f"{a.engine} does not transpose", op=op)
    limit = 32 if vector else 128
    p, f = a.data.partitions, a.data.elements
    if p > limit or f > limit:
        broken("M10", f"data is {list(a.data.shape)}, limit {limit}x{limit}", op=op)
    if (a.dst.partitions, a.dst.elements) != (f, p):
        broken("M10", f"dst is {list(a.dst.shape)}, the transpose is ({f}, {p})", op=op)
    if a.dst.dtype is not a.data.dtype:
        broken("M10", f"dst is {a.dst.dtype.name}, data is {a.data.dtype.name}", op=op)
    if not vector:
        if a.data.space != "sbuf" or a.dst.space != "psum":
            broken("M10", f"the tensor engine transposes SBUF to PSUM, not {a.data.space} to "
                          f"{a.dst.space}", op=op)
        _check_types(op, a.data)
    for view in (a.dst, a.data):
        check_operand(view, op, "vector" if vector else "tensor")
    check_written_words(a.dst, op)
    check_overlap(a.dst, a.data, op)
    if not vector:
        _check_bank(session, op, a.dst)
    write(a.dst, rows(read(a.data, op)).T, op)
    return {"engine": "vector" if vector else "tensor"}
