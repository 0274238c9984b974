# SPDX-License-Identifier: Apache-2.0
"""Data movement: dma_copy and dma_transpose (rules D1 to D7).

A copy between HBM and SBUF pairs elements in row-major order of the two views. The views have
equal shapes up to dimensions of size one, or the leading dimensions of the HBM view multiply
to the partition count of the tile: anything else would fold partitions into rows, which the
profile leaves out. DMA reaches any partition, so G5 to G7 do not apply.
"""

import numpy as np

from .errors import broken
from .memory import check_overlap, read, write
from .optable import MEMBERS, operation

_DGE = MEMBERS["dge_mode"]["unknown"]
_OOB = MEMBERS["oob_mode"]["error"]
_ANY = MEMBERS["engine"]["unknown"]


def _check_spaces(op, dst, src):
    for view in (dst, src):
        if view.space == "psum":
            broken("D1", f"{view} lies in PSUM; copy to SBUF by tensor_copy", op=op)


def _check_descriptors(session, op, a):
    hardware = a.dge_mode.name == "hwdge"
    if hardware and session.machine.gen < 3:
        broken("D2", "hardware descriptors need generation 3", op=op)
    if hardware and a.dst.dtype is not a.src.dtype:
        broken("D2", f"hardware descriptors do not cast {a.src.dtype.name} to "
                     f"{a.dst.dtype.name}", op=op)
    engine = getattr(a, "engine", _ANY).name
    if engine in ("sync", "scalar") and not hardware:
        broken("D2", f"engine {engine} only with hardware descriptors", op=op)
    if engine not in ("unknown", "sync", "scalar", "gpsimd", "dma"):
        broken("D2", f"engine {engine} does not start copies", op=op)
    if a.oob_mode.name != "error":
        broken("A1", f"{a.oob_mode} is not emulated", op=op)


def _squeezed(shape):
    return [n for n in shape if n != 1]


def _splits_at(shape, partitions):
    """Whether some leading dimensions of a shape multiply to the partition count."""
    product = 1
    for extent in shape:
        if product == partitions:
            return True
        product *= extent
    return product == partitions


def _check_shapes(op, dst, src):
    if dst.values.size != src.values.size:
        broken("D1", f"dst is {list(dst.shape)}, src is {list(src.shape)}", op=op)
    if dst.space == "sbuf" and src.space == "sbuf" and dst.partitions != src.partitions:
        broken("D3", f"{src.partitions} partitions to {dst.partitions}", op=op)
    if _squeezed(dst.shape) == _squeezed(src.shape):
        return
    for tile, other in ((dst, src), (src, dst)):
        if tile.space == "sbuf" and not _splits_at(other.shape, tile.partitions):
            broken("D1", f"dst is {list(dst.shape)}, src is {list(src.shape)}", op=op)
    if dst.space != "sbuf" and src.space != "sbuf":
        broken("D1", f"dst is {list(dst.shape)}, src is {list(src.shape)}", op=op)


@operation("dma_copy", ("dst", "out"), ("src", "in"), ("oob_mode", "oob_mode", _OOB),
           ("dge_mode", "dge_mode", _DGE), ("engine", "engine", _ANY))
def dma_copy(session, a):
    op = "nisa.dma_copy"
    _check_spaces(op, a.dst, a.src)
    _check_descriptors(session, op, a)
    _check_shapes(op, a.dst, a.src)
    if a.dst.positions is not None:
        broken("A1", "indirect stores are not emulated", op=op)
    if a.src.positions is not None and session.machine.gen < 3:
        broken("D8", f"indirect access on {session.machine.name}", op=op)
    check_overlap(a.dst, a.src, op)
    write(a.dst, read(a.src, op).reshape(a.dst.shape), op)
    return {"engine": "dma"}


@operation("dma_transpose", ("dst", "out"), ("src", "in"), ("axes", "ints?", None),
           ("dge_mode", "dge_mode", _DGE), ("oob_mode", "oob_mode", _OOB))
def dma_transpose(session, a):
    op = "nisa.dma_transpose"
    _check_spaces(op, a.dst, a.src)
    _check_descriptors(session, op, a)
    rank = len(a.src.shape)
    known = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}
    axes = known.get(rank) if a.axes is None else tuple(a.axes)
    if axes is None or axes != known.get(rank):
        broken("D4", f"axes {axes} of a {rank}-dimensional source", op=op)
    if a.dst.space != "sbuf":
        broken("D4", f"{a.dst} must lie in SBUF", op=op)
    if a.dst.dtype is not a.src.dtype:
        broken("D4", f"dst is {a.dst.dtype.name}, src is {a.src.dtype.name}", op=op)
    expected = tuple(a.src.shape[d] for d in axes)
    if a.dst.shape != expected:
        broken("D4", f"dst is {list(a.dst.shape)}, the transpose is {list(expected)}", op=op)
    if a.src.space != "sbuf" and a.src.tensor.role != "input":
        broken("D7", f"{a.src} is scratch of this kernel", op=op)
    if a.dge_mode.name == "hwdge":
        rows, columns = a.src.shape[0], a.src.shape[-1]
        if rows != 16 or columns % 128 != 0 or a.src.dtype.size != 2:
            broken("D5", f"hardware transpose of {list(a.src.shape)} {a.src.dtype.name}", op=op)
    row_bytes = a.dst.strides[0] * a.dst.dtype.size
    if row_bytes % 32 != 0:
        broken("D6", f"rows of {a.dst} are {row_bytes} bytes apart, no multiple of 32", op=op)
    check_overlap(a.dst, a.src, op)
    write(a.dst, np.transpose(read(a.src, op), axes), op)
    return {"engine": "dma"}
