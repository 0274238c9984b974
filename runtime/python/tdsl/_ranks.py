# SPDX-License-Identifier: Apache-2.0
"""Kernels with `shard` on ranks: calls with `comm=`, which blocks a rank has, and whole arrays cut into blocks and put together."""
from __future__ import annotations

import ctypes
import itertools
import re
import types

from . import _tools
from ._arrays import plain, pointer
from ._comm import E_PEER, OTHER, CComm, Link
from ._errors import ArgumentError, CallError, DtypeError, Error, PeerError, RankTimeoutError, ShapeError, WorkspaceError, raise_status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._program import Kernel

_VERSION, _AXES = 3, 8
_i32, _i64, _pointer = ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p
_MOST = (1 << 63) - 1


class _Info(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("version", ctypes.c_uint32), ("kernel", _pointer), ("n_axes", _i32), ("n_cuts", _i32), ("n_values", _i32),
                ("n_steps", _i32), ("n_grid", _i32), ("reserved", _i32), ("axes", ctypes.POINTER(ctypes.c_char_p)), ("args", _pointer), ("cuts", _pointer), ("values", _pointer), ("steps", _pointer)]


class _Piece(ctypes.Structure):
    _fields_ = [("axis", _i32), ("dim", _i32), ("leaves", _i64)]


class _Arg(ctypes.Structure):
    _fields_ = [("partial", _i32), ("n_pieces", _i32), ("pieces", ctypes.POINTER(_Piece))]


class _Mesh(ctypes.Structure):
    _fields_ = [("n_axes", _i32), ("size", _i32 * _AXES), ("grid", _i32 * (2 * _AXES))]


class _Range(ctypes.Structure):
    _fields_ = [("first", _i64), ("count", _i64)]


class _Threads(ctypes.Structure):
    _fields_ = [("count", _i32), ("reserved", _i32), ("run", _pointer), ("pool", _pointer)]


class _Options(ctypes.Structure):
    _fields_ = [("workspace", _pointer), ("bytes", ctypes.c_size_t), ("threads", ctypes.POINTER(_Threads)), ("before", _i32), ("bad_rank", _i32), ("store", _pointer)]


def _library():
    library = _tools.libtdsl()
    library.tdsl_dist_block.restype = _Range
    library.tdsl_dist_refuse.restype = None
    return library


def _status(error):
    """Of tdsl/abi.h, for the other ranks."""
    for kind, status in ((ShapeError, -2), (DtypeError, -3), (WorkspaceError, -6), (MemoryError, -6), (ArgumentError, -5), (CallError, -5)):
        if isinstance(error, kind):
            return status
    return OTHER


class Layouts:
    """How the arguments of a kernel lie on a mesh of ranks, as its table in a loaded library says."""

    def __init__(self, kernel, info, mesh, ranks):
        self.kernel, self.info, self.library = kernel, info, _library()
        self.axes = [info.axes[a].decode() for a in range(info.n_axes)]
        sizes = self._sizes(mesh, ranks)
        self.mesh = _Mesh(len(sizes), (_i32 * _AXES)(*sizes))
        rows = ctypes.cast(info.args, ctypes.POINTER(_Arg))
        self.pieces = [[(p.axis, p.dim) for p in rows[a].pieces[:rows[a].n_pieces]] for a in range(len(kernel.args))]
        self.partial = [rows[a].partial != 0 for a in range(len(kernel.args))]

    def _sizes(self, mesh, ranks):
        n = len(self.axes)
        if mesh is None:
            sizes = []
            for left in range(n, 0, -1):  # as nearly equal as divisors allow, as tdsl-run does
                share = max(d for d in range(1, ranks + 1) if ranks % d == 0 and d ** left <= ranks) if left > 1 else ranks
                sizes.append(share)
                ranks //= share
            return sizes
        given = dict(mesh) if not isinstance(mesh, int) else {self.axes[0]: mesh} if n == 1 else {}
        if n == 1 and len(given) == 1:  # the only axis, whatever it is called
            given = {self.axes[0]: next(iter(given.values()))}
        unknown = [name for name in given if name not in self.axes]
        if not unknown or all(name in given for name in self.axes):  # others come behind: no array lies over them
            self.axes += unknown[:_AXES - n]
            unknown = unknown[_AXES - n:]
        if unknown or not given:
            raise ArgumentError(f"{self.kernel.name}: mesh is {mesh!r}; its axes are {', '.join(self.axes) or 'one'}", "mesh")
        sizes = [given.get(name, 1) for name in self.axes]
        product = 1
        for size in sizes:
            product *= size
        if product != ranks or min(sizes) < 1:
            raise ArgumentError(f"{self.kernel.name}: the mesh {mesh!r} has {product} ranks, the communicator {ranks}", "mesh")
        return sizes

    def place(self, rank):
        """Coordinates of a rank: the last axis is the fastest."""
        at = []
        for a in reversed(range(len(self.axes))):
            at.insert(0, rank % self.mesh.size[a])
            rank //= self.mesh.size[a]
        return at

    def number(self, at):
        rank = 0
        for a, size in enumerate(self.mesh.size[:len(self.axes)]):
            rank = rank * size + at[a]
        return rank

    def is_first(self, rank, arg):
        """Is it the first of the ranks that have the same block of an argument?"""
        cut = {axis for axis, _ in self.pieces[arg]}
        return all(n == 0 for a, n in enumerate(self.place(rank)) if a not in cut)

    def along(self, rank, arg, d):
        """Ranks that have the parts of dimension d, in their order, as this one's neighbours see them."""
        axes, at = [axis for axis, dim in self.pieces[arg] if dim == d], self.place(rank)
        for parts in itertools.product(*[range(self.mesh.size[a]) for a in axes]):
            for a, n in zip(axes, parts):
                at[a] = n
            yield self.number(at)

    def block(self, rank, arg, dims):
        """(first, count) of each dimension of an argument."""
        c_dims = (_i64 * max(1, len(dims)))(*dims)
        ranges = [self.library.tdsl_dist_block(ctypes.byref(self.info), ctypes.byref(self.mesh), rank, c_dims, arg, d) for d in range(len(self.kernel.args[arg].shape))]
        return [(r.first, r.count) for r in ranges]


_PLANS = re.compile(r"^const tdsl_dist_info (\w+) = ", re.M)


def layouts_of(kernel, native, c_text, mesh, ranks):
    """Of a kernel of a library that was made from this C."""
    if not hasattr(native, "address_of_call"):
        raise Error(f"{kernel.name}: ranks need a C compiler")
    for symbol in _PLANS.findall(c_text):
        info = _Info.in_dll(native._library, symbol)
        if info.kernel == ctypes.addressof(native._info):
            if info.version != _VERSION or info.struct_size < ctypes.sizeof(_Info):
                raise Error(f"{kernel.name} has a table of version {info.version}; this package needs {_VERSION}")
            return Layouts(native, info, mesh, ranks)
    raise ArgumentError(f"{kernel.name} has no `shard`: one process computes it", "comm")


def whole_shapes(layouts, link, shapes):
    """Shapes of whole arrays, from those of all ranks' blocks. shapes: for each argument a tuple, or None; None too where some rank has none."""
    rows = layouts.kernel.args
    every = link.every([n for row, shape in zip(rows, shapes) for n in shape or [0 if shape is not None else -1] * max(1, len(row.shape))])
    whole, at = [], 0
    for arg, row in enumerate(rows):
        here = [numbers[at:at + max(1, len(row.shape))] for numbers in every]
        at += max(1, len(row.shape))
        known = all(numbers[0] >= 0 for numbers in here)
        whole.append(tuple(sum(here[r][d] for r in layouts.along(link.rank, arg, d)) for d in range(len(row.shape))) if known else None)
    return whole


def _check_ranks(kernel, blocks):
    for arg in kernel.args:
        a = blocks.get(arg.name)
        if a is not None and a.ndim != len(arg.shape):
            raise ShapeError(f"argument {arg.name!r} of {kernel.name} has {a.ndim} dimensions, not {len(arg.shape)}", arg.name)


def _check_blocks(layouts, link, dims, shapes):
    for arg, shape in enumerate(shapes):
        wanted = None if shape is None else tuple(count for _, count in layouts.block(link.rank, arg, dims))
        if wanted != shape and shape is not None:
            row = layouts.kernel.args[arg]
            raise ShapeError(f"argument {row.name!r} of {layouts.kernel.name}: rank {link.rank} of {link.size} has {wanted} of it, not {shape}; `cut` says which", row.name)


def prepare(kernel, link, mesh, threads):
    """The library's kernel and its layouts."""
    native = kernel._source.kernels(threads)[kernel.name]
    return native, layouts_of(kernel, native, kernel._source.c, mesh, link.size)


def _first_agreement(link, fault, numbers):
    """All ranks know of one's failure, which is raised there."""
    try:
        return link.agree(0 if fault is None else _status(fault), numbers)
    except (PeerError, RankTimeoutError):
        if fault is None:
            raise
    return numbers


def call(kernel, link, read, outputs, given_dims, threads, mesh):
    """The results of a call on ranks. read: a function that gives the arrays of the parameters by name, or raises."""
    from ._program import bind, threads_of
    fault = native = layouts = None
    arrays: dict[str, Any] = {}
    try:
        arrays, outputs, threads = read(), outputs(), threads_of(threads)
        _check_ranks(kernel, {**arrays, **outputs})
        native, layouts = prepare(kernel, link, mesh, threads)
        lacks = set(native.dims) - set(given_dims or ())
    except Exception as error:  # noqa: BLE001  (told to the others first)
        fault, lacks = error, set()
    all_said, = _first_agreement(link, fault, [0 if lacks else 1])
    if fault is not None:
        raise fault
    blocks = {**arrays, **outputs}
    shapes = [blocks[arg.name].shape if arg.name in blocks else None for arg in native.args]
    places, back, options = [], [], _Options(threads=ctypes.pointer(_Threads(threads)))
    try:
        if all_said:
            dims = bind(native, {}, given_dims)
        else:
            whole = whole_shapes(layouts, link, shapes)
            dims = bind(native, {arg.name: types.SimpleNamespace(shape=s, ndim=len(s)) for arg, s in zip(native.args, whole) if s is not None}, given_dims)
        _check_blocks(layouts, link, dims, shapes)
        places, back = _places(layouts, link, dims, blocks)
        kernel._check_overlap(native, places)
    except (PeerError, RankTimeoutError):
        raise
    except Exception as error:  # noqa: BLE001
        layouts.library.tdsl_dist_refuse(ctypes.byref(link.c), _i32(_status(error)))
        raise
    _run(native, layouts, link, dims, places, options)
    for a, computed in back:
        a[...] = computed
    return [outputs.get(arg.name, place if arg.shape else place[()]) for arg, place in zip(native.args, places) if arg.role == "out"]


def _places(layouts, link, dims, blocks):
    """An array in C order for each argument, and pairs of an array of the caller and what is copied to it."""
    import numpy as np

    from ._arrays import is_plain
    places, back = [], []
    for arg, row in enumerate(layouts.kernel.args):
        a = blocks.get(row.name)
        if a is None:
            places.append(np.empty([count for _, count in layouts.block(link.rank, arg, dims)], row.dtype))
        else:
            places.append(plain(a))
            if row.role in ("out", "inout") and not is_plain(a):
                back.append((a, places[-1]))
    return places, back


def _run(native, layouts, link, dims, places, options):
    c_dims = (_i64 * max(1, len(dims)))(*dims)
    addresses = (_pointer * len(places))(*[pointer(a) for a in places])
    link.fault = None
    status = layouts.library.tdsl_dist_call(ctypes.byref(link.c), ctypes.byref(layouts.info), ctypes.byref(layouts.mesh), c_dims, addresses, ctypes.byref(options), None)
    if link.fault is not None:
        raise link.fault
    if status == E_PEER:
        raise PeerError(f"{native.name}: rank {options.bad_rank} of {link.size} failed", options.bad_rank, status)
    if status == -4:
        raise ArgumentError(f"{native.name}: ranks have other programs, extents or meshes", None)
    if status != 0:
        raise_status(status, native.name)


def cut(kernel, name, comm, dims, mesh):
    """Slices of an argument that this rank has."""
    from ._program import bind, threads_of
    link = Link(comm)
    native, layouts = prepare(kernel, link, mesh, threads_of(1))
    arg = next((k for k, row in enumerate(native.args) if row.name == name), None)
    if arg is None:
        raise CallError(f"{kernel.name} has no argument {name!r}")
    return tuple(slice(first, first + count) for first, count in layouts.block(link.rank, arg, bind(native, {}, dims)))


# ---- whole arrays ----


class Blocks(dict):  # type: ignore[type-arg]
    """Arrays of one rank by name. `dims`: the extents of the whole ones."""
    dims: dict[str, int]


def scatter(kernel: Kernel, comm: Any, root: int = 0, dims: dict[str, int] | None = None, mesh: Any = None, timeout: float | None = None, **arrays: Any) -> Blocks:
    """This rank's blocks of whole arrays, which rank `root` has: `blocks = tdsl.scatter(m.mp2_energy, comm, B=B, eo=eo, ev=ev)`, then
    `m.mp2_energy(**blocks, comm=comm, dims=blocks.dims)`. All ranks call it, the others without arrays. Of a `partial` argument the first rank has all, others zeros."""
    from ._program import bind
    link, fault, given, values = Link(comm, timeout), None, {}, ()
    names = [arg.name for arg in kernel._in]
    try:
        native, layouts = prepare(kernel, link, mesh, 1)
        if link.rank == root:
            given = {name: _whole(kernel, name, a) for name, a in arrays.items()}
            values = bind(native, given, dims)
    except Exception as error:  # noqa: BLE001
        fault = error
    numbers = [*(values or [_MOST] * len(kernel.dims)), *[int(name in given) if link.rank == root else 1 for name in names]]
    agreed = _first_agreement(link, fault, numbers)
    if fault is not None:
        raise fault
    values, mine = tuple(agreed[:len(kernel.dims)]), Blocks()
    mine.dims = dict(zip(native.dims, values))
    for (arg, row), there in zip(((k, row) for k, row in enumerate(native.args) if row.role != "out"), agreed[len(values):]):
        if there:
            mine[row.name] = _deal(layouts, link, root, arg, values, given.get(row.name))
    return mine


def _whole(kernel, name, a):
    arg = next((arg for arg in kernel._in if arg.name == name), None)
    if arg is None:
        raise CallError(f"{kernel.name} has no argument {name!r}")
    return plain(kernel._read(arg, a))


def _slices(block):
    return tuple(slice(first, first + count) for first, count in block)


def _bytes(a):
    import numpy as np
    return a.reshape(-1).view(np.uint8)


def _deal(layouts, link, root, arg, dims, whole):
    """Blocks of one array from rank `root`."""
    import numpy as np
    row = layouts.kernel.args[arg]
    block = layouts.block(link.rank, arg, dims)
    mine = np.zeros([count for _, count in block], row.dtype)
    gets = [not layouts.partial[arg] or layouts.is_first(r, arg) for r in range(link.size)]
    send, receive = [None] * link.size, [None] * link.size
    if link.rank == root:
        pieces = {r: whole[_slices(layouts.block(r, arg, dims))] for r in range(link.size) if gets[r]}
        send = [_bytes(np.array(pieces[r])) if r in pieces and r != root else None for r in range(link.size)]
        if root in pieces:
            mine[...] = pieces[root]
    elif gets[link.rank]:
        receive[root] = _bytes(mine)
    link.exchange(send, receive)
    return mine


def gather(kernel: Kernel, comm: Any, root: int = 0, mesh: Any = None, timeout: float | None = None, **blocks: Any) -> Any:
    """The whole of arrays that ranks have blocks of, on rank `root`: one array, or a dict by name of several; None on other ranks. All ranks call it, with the
    same names: `E = tdsl.gather(m.gemm, comm, C=block)`. Of a `partial` argument it is the sum of what ranks have."""
    import numpy as np
    link, fault, mine = Link(comm, timeout), None, {}
    try:
        native, layouts = prepare(kernel, link, mesh, 1)
        numbers = {row.name: k for k, row in enumerate(native.args)}
        for name, a in blocks.items():
            if name not in numbers:
                raise CallError(f"{kernel.name} has no argument {name!r}")
            mine[numbers[name]] = _block(kernel, native.args[numbers[name]], a)
    except Exception as error:  # noqa: BLE001
        fault = error
    flags = [int(row.name in blocks) for row in kernel.args]
    least = _first_agreement(link, fault, [*flags, *[-n for n in flags]])
    if fault is not None:
        raise fault
    if any(least[k] != -least[k + len(flags)] for k in range(len(flags))):
        raise CallError(f"{kernel.name}: ranks give other arrays")
    every = link.every([n for arg in sorted(mine) for n in mine[arg].shape])
    whole, at = {}, 0
    for arg in sorted(mine):
        rank = mine[arg].ndim
        shapes = [tuple(numbers[at:at + rank]) for numbers in every]
        whole[native.args[arg].name] = _collect(layouts, link, root, arg, mine[arg], shapes)
        at += rank
    if link.rank != root:
        return None
    made = {name: a if np.ndim(a) else a[()] for name, a in whole.items()}
    return made if len(blocks) != 1 else next(iter(made.values()))


def _block(kernel, row, a):
    from ._arrays import as_array
    from ._program import _check_dtype
    import numpy as np
    a = as_array(np.asarray(a), row.name)
    _check_dtype(kernel, row, a)
    _check_ranks(kernel, {row.name: a})
    return plain(a)


def _collect(layouts, link, root, arg, mine, shapes):
    """One array on rank `root`."""
    import numpy as np
    gives = [layouts.partial[arg] or layouts.is_first(r, arg) for r in range(link.size)]
    send, receive = [None] * link.size, [None] * link.size
    parts = {r: np.empty(shapes[r], mine.dtype) for r in range(link.size) if gives[r] and link.rank == root and r != root}
    for r, part in parts.items():
        receive[r] = _bytes(part)
    if link.rank != root and gives[link.rank]:
        send[root] = _bytes(mine)
    link.exchange(send, receive)
    if link.rank != root:
        return None
    if gives[root]:
        parts[root] = mine
    spans = {}  # of each rank: what it has of each dimension
    for r in parts:
        spans[r] = []
        for d in range(mine.ndim):
            before = 0
            for other in layouts.along(r, arg, d):
                if other == r:
                    break
                before += shapes[other][d]
            spans[r].append((before, shapes[r][d]))
    whole = np.zeros([max(first + count for first, count in (s[d] for s in spans.values())) for d in range(mine.ndim)], mine.dtype)
    for r in sorted(parts):
        if layouts.partial[arg] and not layouts.is_first(r, arg):
            whole[_slices(spans[r])] += parts[r]
        else:
            whole[_slices(spans[r])] = parts[r]
    return whole
