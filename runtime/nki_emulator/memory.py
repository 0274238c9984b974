# SPDX-License-Identifier: Apache-2.0
"""Tensors, the views kernels take of them, and the rules every access obeys.

A Tensor is the facts of an allocation; its Store owns the values (held form, see dtype.py), a
`written` mask of the same shape, in PSUM a `group` number per element that says which
accumulation group produced it (0 nothing, -1 anything that is not a matmul), and in shared_hbm,
where results lie, a mask `pending` of what was stored and not read since, and bits `used` of
which core's program has written and read an element. Only views keep
a store alive, so a tile that the kernel has dropped costs no memory, while its facts stay for
the live-range check. A View is a rectangular or strided window on one tensor; it shares memory
with it, so that reading and writing through it is reading and writing the tensor. Kernels see
views only (a whole tensor is its own full view) and can do nothing with them but index, ask for
shape and dtype, and pass them to operations: everything else is P5.

Checks that do not depend on the operation live here: G1, G2, G5 to G12, G14, G16, D10, H5, H6.
"""

import math

import numpy as np

from .dtype import cast
from .errors import broken

HBM_SPACES = ("hbm", "private_hbm", "shared_hbm")


class Tensor:
    """One allocation. `role` is 'input' for parameters, else 'local'."""

    def __init__(self, name, shape, dtype, space, serial, line, role="local"):
        self.name, self.shape, self.dtype, self.space = name, tuple(shape), dtype, space
        self.serial, self.line, self.role = serial, line, role
        self.address = None
        self.born = None            # index of the first instruction that touches it
        self.died = None            # index of the last one
        self.read_count = 0
        self.stored_again = False   # over elements that were stored before, and read since
        self.stored_again_at = None # the first instruction that did
        self.program = 0            # of which core this is a tensor

    @property
    def on_chip(self):
        return self.space in ("sbuf", "psum")

    @property
    def free_elements(self):
        return math.prod(self.shape[1:])

    @property
    def row_bytes(self):
        return self.free_elements * self.dtype.size

    def __str__(self):
        return f"{self.space} tensor '{self.name}' {list(self.shape)}"


class Store:
    """The memory of one tensor."""

    def __init__(self, tensor, values=None):
        self.values = np.zeros(tensor.shape, tensor.dtype.held) if values is None else values
        self.written = np.zeros(tensor.shape, bool)
        if values is not None:
            self.written[...] = True
        self.group = np.zeros(tensor.shape, np.int32) if tensor.space == "psum" else None
        shared = tensor.space == "shared_hbm"
        self.pending = np.zeros(tensor.shape, bool) if shared else None
        self.used = np.zeros(tensor.shape, np.uint8) if shared else None
        self.open = {}              # PSUM: bank -> the accumulation group added to last

    def window(self, function):
        """(values, written, group, pending, used) after the same selection from each."""
        return tuple(None if array is None else function(array) for array in
                     (self.values, self.written, self.group, self.pending, self.used))


def _refuse(what):
    def method(self, *_):
        broken("P5", f"{what} on a tensor; use an nki.isa operation")
    return method


class View:
    """A window on a tensor. `index` is a list of (start, end, step) or plain ints, one per
    dimension of the tensor, or None for an access pattern; `pattern` is then its text."""

    def __init__(self, tensor, store, window, index, offset, whole, pattern=None):
        self.tensor, self.store = tensor, store
        self.values, self.written, self.group, self.pending, self.used = window
        self.index, self.offset, self.whole, self.pattern = index, offset, whole, pattern
        self.positions = None       # of rows that are read indirectly: a column on chip

    @property
    def shape(self):
        return self.values.shape

    @property
    def dtype(self):
        return self.tensor.dtype

    @property
    def space(self):
        return self.tensor.space

    @property
    def partitions(self):
        return self.shape[0]

    @property
    def start_partition(self):
        return self.offset // max(1, self.tensor.free_elements)

    @property
    def elements(self):
        """Elements per partition."""
        return math.prod(self.shape[1:])

    @property
    def strides(self):
        """Element strides, one per dimension of the view."""
        return tuple(s // self.values.itemsize for s in self.values.strides)

    def __str__(self):
        if self.pattern is not None:
            return f"{self.tensor}.ap({self.pattern})"
        return f"{self.tensor}[{', '.join(_index_text(i) for i in self.index)}]"

    def __getitem__(self, key):
        if not self.whole:
            broken("P15", f"{self} is already a slice; index the tensor once")
        return _indexed(self.tensor, self.store, key)

    def ap(self, pattern=None, offset=0, scalar_offset=None, vector_offset=None,
           indirect_dim=None, dtype=None):
        if scalar_offset is not None and vector_offset is not None:
            broken("D8", "scalar_offset and vector_offset exclude each other", op="ap")
        if scalar_offset is not None:
            broken("A1", "a scalar_offset is not emulated", op="ap")
        if (vector_offset is None) != (indirect_dim is None):
            broken("D8", "vector_offset and indirect_dim are given together", op="ap")
        if dtype is not None:
            broken("A1", "reinterpreting the type is not emulated", op="ap")
        if not self.whole:
            broken("G10", "cannot specify an access pattern on an already indexed tensor",
                   op="ap")
        if vector_offset is not None:
            return _indirect(self.tensor, self.store, pattern, offset, vector_offset, indirect_dim)
        return _patterned(self.tensor, self.store, pattern, offset)

    def reshape(self, shape=None):
        if not self.whole:
            broken("P15", "reshape a whole tensor, not a slice", op="reshape")
        return _reshaped(self, shape)

    __add__ = __radd__ = _refuse("addition")
    __sub__ = __rsub__ = _refuse("subtraction")
    __mul__ = __rmul__ = _refuse("multiplication")
    __matmul__ = __rmatmul__ = _refuse("the @ operator")
    __truediv__ = __rtruediv__ = __floordiv__ = __mod__ = _refuse("division")
    __neg__ = __invert__ = __abs__ = _refuse("a unary operator")
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse("comparison")
    __bool__ = _refuse("a truth value")
    __iter__ = _refuse("iteration")
    __len__ = _refuse("len")
    __hash__ = None

    def __setitem__(self, key, value):
        broken("P6", "updating a tile with an assignment is not allowed; pass dst=")


def _index_text(item):
    if isinstance(item, int):
        return str(item)
    start, end, step = item
    return f"{start}:{end}" + (f":{step}" if step != 1 else "")


def full_view(tensor, values=None, store=None):
    """The view of a whole new tensor, with its memory: new, or what another core has made."""
    store = Store(tensor, values) if store is None else store
    return View(tensor, store, store.window(lambda array: array),
                [(0, n, 1) for n in tensor.shape], 0, True)


def _whole_number(value, what):
    if isinstance(value, bool) or not isinstance(value, int):
        broken("A4", f"{what} is {type(value).__name__}, not an integer")
    return value


def _expand_ellipsis(key, rank):
    key = key if isinstance(key, tuple) else (key,)
    if sum(1 for k in key if k is Ellipsis) > 1:
        broken("G11", "more than one ... in an index")
    for at, item in enumerate(key):
        if item is Ellipsis:
            fill = rank - (len(key) - 1)
            return key[:at] + (slice(None),) * max(0, fill) + key[at + 1:]
    return key


def _indexed(tensor, store, key):
    """t[key] with exact bounds; on chip an int on dimension 0 keeps it, elsewhere drops it."""
    rank = len(tensor.shape)
    key = _expand_ellipsis(key, rank)
    if len(key) > rank:
        broken("G11", f"{len(key)} indices for {tensor}")
    key = key + (slice(None),) * (rank - len(key))
    index, slices, offset = [], [], 0
    strides = [math.prod(tensor.shape[d + 1:]) for d in range(rank)]
    for dim, (item, size) in enumerate(zip(key, tensor.shape)):
        if isinstance(item, slice):
            start = 0 if item.start is None else _whole_number(item.start, "a slice start")
            end = size if item.stop is None else _whole_number(item.stop, "a slice end")
            step = 1 if item.step is None else _whole_number(item.step, "a slice step")
            if step < 1:
                broken("G11", f"step {step} in dimension {dim} of {tensor}")
            if not (0 <= start < size and end <= size):
                broken("G11", f"index out of range of tensor dimension: {start}:{end} in "
                              f"dimension {dim} of {tensor}")
            if end <= start:
                broken("G11", f"empty range {start}:{end} in dimension {dim} of {tensor}")
            index.append((start, end, step))
            slices.append(slice(start, end, step))
        else:
            start = _whole_number(item, "an index")
            if not 0 <= start < size:
                broken("G11", f"index out of range of tensor dimension: {start} in dimension "
                              f"{dim} of {tensor}")
            index.append(start)
            keep = tensor.on_chip and dim == 0
            slices.append(slice(start, start + 1) if keep else start)
        offset += start * strides[dim]
    slices = tuple(slices)
    rank = sum(1 for s in slices if isinstance(s, slice))
    minimum = 2 if tensor.on_chip else 1
    for dim in reversed(range(len(slices))):
        if rank < minimum and not isinstance(slices[dim], slice):
            slices, rank = slices[:dim] + (slice(index[dim], index[dim] + 1),) + \
                slices[dim + 1:], rank + 1
    return View(tensor, store, store.window(lambda array: array[slices]), index, offset, False)


def _patterned(tensor, store, pattern, offset):
    """t.ap(pattern=[[stride, count], ...], offset=n): strides and offset in elements."""
    offset = _whole_number(offset, "offset")
    if not isinstance(pattern, (list, tuple)) or not pattern:
        broken("A4", "pattern is a list of [stride, count] pairs", op="ap")
    pairs = []
    for pair in pattern:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            broken("A4", "pattern is a list of [stride, count] pairs", op="ap")
        pairs.append((_whole_number(pair[0], "a stride"), _whole_number(pair[1], "a count")))
    if any(count < 1 or stride < 0 for stride, count in pairs):
        broken("G11", "counts are at least 1, strides at least 0", op="ap")
    if tensor.on_chip and pairs[0][0] != tensor.free_elements:
        broken("G10", f"the first stride is {pairs[0][0]}; the partition stride of {tensor} "
                      f"is {tensor.free_elements}", op="ap")
    if tensor.on_chip and len(pairs) < 2:
        broken("G2", "an on-chip pattern has a partition and a free dimension", op="ap")
    if not tensor.on_chip and pairs[0][0] == 0 and pairs[0][1] == 1:
        broken("D9", "a partition dimension of stride 0 and size 1", op="ap")
    size = math.prod(tensor.shape)
    last = offset + sum(stride * (count - 1) for stride, count in pairs)
    if offset < 0 or last >= size:
        broken("G11", f"pattern reaches element {last} of {size} of {tensor}", op="ap")
    if tensor.on_chip:
        inside = offset % tensor.free_elements
        if inside + sum(s * (c - 1) for s, c in pairs[1:]) >= tensor.free_elements:
            broken("G11", f"pattern leaves the partition row of {tensor}", op="ap")

    def window(array):
        flat = array.reshape(-1)[offset:]
        return np.lib.stride_tricks.as_strided(
            flat, [c for _, c in pairs], [s * array.itemsize for s, _ in pairs])

    text = f"pattern={[list(p) for p in pairs]}, offset={offset}"
    return View(tensor, store, store.window(window), None, offset, False, text)


class IndirectView(View):
    """Rows of an argument in HBM, one for each position in a column on chip (rule D8)."""

    @property
    def strides(self):
        return (0, *super().strides[1:])


def _indirect(tensor, store, pattern, offset, positions, dim):
    """t.ap(pattern=[[row, P], ...], offset=n, vector_offset=positions, indirect_dim=0): row
    positions[p] of dimension 0 for each p of the first pair."""
    if not isinstance(positions, View) or positions.space != "sbuf" or not positions.dtype.is_int:
        broken("D8", "vector_offset is a column of integers in SBUF", op="ap")
    if tensor.role != "input" or dim != 0:
        broken("A1", "indirect access other than along dimension 0 of an argument is not emulated", op="ap")
    _patterned(tensor, store, [[1, 1], *pattern[1:]], offset)
    row = math.prod(tensor.shape[1:])
    if pattern[0] != [row, positions.partitions] or positions.elements != 1:
        broken("D8", f"pattern {pattern[0]} for positions {list(positions.shape)} of rows of {row}", op="ap")
    if offset + sum(step * (count - 1) for step, count in pattern[1:]) >= row:
        broken("G11", f"pattern leaves a row of {tensor}", op="ap")
    at = read(positions, "ap").reshape(-1).astype(np.int64)
    if at.min() < 0 or at.max() >= tensor.shape[0]:
        broken("D8", f"position {at.min() if at.min() < 0 else at.max()} of {tensor.shape[0]} rows", op="ap")

    def window(array):
        item = np.zeros((1,) * (len(pattern) - 1), np.int64)
        for d, (step, count) in enumerate(pattern[1:]):
            item = item + (np.arange(count) * step).reshape([count if d == e else 1 for e in range(item.ndim)])
        return array.reshape(-1)[at.reshape(-1, *[1] * item.ndim) * row + offset + item]

    text = f"pattern={[list(p) for p in pattern]}, offset={offset}, rows at {positions}"
    view = IndirectView(tensor, store, store.window(window), None, offset, False, text)
    view.positions = positions
    return view


def _reshaped(view, shape):
    tensor = view.tensor
    if not isinstance(shape, (list, tuple)):
        broken("A4", "shape is a tuple of integers", op="reshape")
    shape = tuple(_whole_number(n, "an extent") for n in shape)
    if any(n < 1 for n in shape) or (math.prod(shape) !=
                                     math.prod(tensor.shape)):
        broken("G10", f"{list(shape)} has not the elements of {tensor}", op="reshape")
    if tensor.on_chip and (len(shape) < 2 or shape[0] != tensor.shape[0]):
        broken("G10", f"a reshape keeps the {tensor.shape[0]} partitions of {tensor}",
               op="reshape")
    return View(tensor, view.store, view.store.window(lambda array: array.reshape(shape)),
                None, 0, False, f"reshape {list(shape)}")


# --- checks of one operand -------------------------------------------------------------

def merged_free_dims(view):
    """(stride, size) of the free dimensions after joining those that run on."""
    dims = []
    for size, stride in zip(view.shape[1:], view.strides[1:]):
        if size == 1:
            continue
        if dims and dims[-1][0] == stride * size:
            dims[-1] = (stride, dims[-1][1] * size)
        else:
            dims.append((stride, size))
    return dims


def check_start(view, op):
    """G5 and G6: the window of partitions an engine can address."""
    start, count = view.start_partition, view.partitions
    step = 1
    if view.index is not None and isinstance(view.index[0], tuple):
        step = view.index[0][2]
    if step != 1:
        broken("G5", f"partitions of {view} are not consecutive", op=op)
    if count == 1 and start not in (0, 32, 64, 96):
        broken("G6", f"Invalid access of 1 partitions starting at partition {start}: {view}",
               op=op)
    legal = (0,) if count > 64 else (0, 64) if count > 32 else (0, 32, 64, 96)
    if start not in legal:
        broken("G5", f"Invalid access of {count} partitions starting at partition {start}: "
                     f"{view}", op=op)


def check_operand(view, op, engine, max_dims=3):
    """Rules of any on-chip operand of a compute engine."""
    if not isinstance(view, View):
        broken("A4", f"a tensor is needed, not {type(view).__name__}", op=op)
    if not view.tensor.on_chip:
        broken("A4", f"engines do not reach HBM: {view}; copy by dma_copy", op=op)
    check_start(view, op)
    if engine == "gpsimd" and view.space == "psum":
        broken("G16", f"GpSimd cannot access PSUM: {view}", op=op)
    limit = 4096 if view.space == "psum" else 65536
    if engine in ("vector", "gpsimd") and view.elements > limit:
        broken("G8", f"{view.elements} elements per partition of {view}, limit {limit}", op=op)
    dims = merged_free_dims(view)
    if len(dims) > max_dims:
        broken("G9", f"{len(dims)} free dimensions in {view}, limit {max_dims}", op=op)
    for stride, size in dims:
        if size > 65535 or stride > 32767:
            broken("G9", f"free dimension of size {size} and stride {stride} in {view}", op=op)
    if view.space == "psum" and view.dtype.size < 4:
        inside = view.offset % view.tensor.free_elements
        if (inside * view.dtype.size) % 4 != 0:
            broken("G14", f"{view} starts within a 4-byte word", op=op)


def check_written_words(view, op):
    """G14 for results: 2-byte PSUM writes are contiguous runs, not every other half word; of single bytes no document says."""
    if view.space == "psum" and view.dtype.size == 1:
        broken("G14", f"{view} writes single bytes", op=op)
    if view.space == "psum" and view.dtype.size == 2:
        dims = merged_free_dims(view)
        if dims and dims[-1][0] != 1:
            broken("G14", f"{view} writes single half words", op=op)


def check_overlap(dst, src, op):
    """H1: an instruction reads and writes the same elements or disjoint ones."""
    if dst.tensor is not src.tensor:
        return
    if dst.index is None or src.index is None:
        same = dst.pattern == src.pattern and dst.offset == src.offset
        if not same and np.may_share_memory(dst.values, src.values):
            broken("H1", f"{dst} and {src} overlap", op=op)
        return
    if dst.index == src.index:
        return
    for a, b in zip(dst.index, src.index):
        a = (a, a + 1, 1) if isinstance(a, int) else a
        b = (b, b + 1, 1) if isinstance(b, int) else b
        if a[1] <= b[0] or b[1] <= a[0]:
            return
    broken("H1", f"{dst} and {src} overlap", op=op)


# --- values ----------------------------------------------------------------------------

def unwritten(view):
    """None, or a phrase about the elements of a view that nothing has written."""
    written = int(np.count_nonzero(view.written))
    if written == view.values.size:
        return None
    first = np.unravel_index(int(np.argmin(view.written)), view.shape)
    return (f"{view.values.size - written} of {view.values.size} elements of {view} were never "
            f"written, first {[int(n) for n in first]}")


_WRITES, _READS = (1, 2), (4, 8)        # bits of `used`, by program


def _note_use(view, op, writes):
    """H6: cores run at the same time, so neither uses what the other writes."""
    if view.used is None:
        return
    own, other = view.tensor.program, 1 - view.tensor.program
    against = _WRITES[other] | (_READS[other] if writes else 0)
    if (view.used & against).any():
        broken("H6", f"core {own} {'writes' if writes else 'reads'} {view}, of which core "
                     f"{other} uses elements", op=op)
    view.used[...] |= _WRITES[own] if writes else _READS[own]


def read(view, op):
    """The held values of a view, as a copy; G12 where something was never written."""
    _note_use(view, op, False)
    missing = unwritten(view)
    if missing:
        broken("G12", missing, op=op)
    view.tensor.read_count += 1
    if view.pending is not None:
        view.pending[...] = False
    return np.array(view.values)


def read_single(view, op):
    """The values as float32, in which every engine computes; E13 if an integer cannot be."""
    values = read(view, op)
    if view.dtype.is_int:
        check_exact(values, op)
    return values.astype(np.float32, copy=False)


def check_exact(values, op):
    if values.size and int(np.abs(values.astype(np.int64)).max()) > 2 ** 24:
        broken("E13", "an integer above 2^24 is not exact in float32 arithmetic", op=op)


def _check_store(view, op):
    """D10, and H5 where nothing was read between two stores. Whether a store after a read is
    the update of an argument the manifest says, at the end of the run (emulate.py)."""
    if view.tensor.role == "input":
        broken("D10", f"{view} is a parameter", op=op)
    if view.pending is not None and view.pending.any():
        broken("H5", f"{view} was stored before and not read since", op=op)
    if view.pending is not None and view.written.any():
        view.tensor.stored_again = True


def write(view, values, op, group=-1):
    """Store values through a view, rounded to its type; PSUM remembers who wrote."""
    if len(set(view.strides) & {0}) and view.values.size > 1:
        if any(s == 0 and n > 1 for s, n in zip(view.strides, view.shape)):
            broken("H1", f"{view} writes an element more than once", op=op)
    _note_use(view, op, True)
    _check_store(view, op)
    values = np.asarray(values).reshape(view.shape)
    if view.dtype.is_int and values.dtype.kind == "f":
        finite = values[np.isfinite(values)]
        if finite.size and view.dtype.size == 4 and float(np.abs(finite).max()) > 2 ** 24:
            broken("E13", "an integer result above 2^24 is not exact in float32 arithmetic",
                   op=op)
    if view.dtype.fraction is not None:
        finite = values[np.isfinite(values)]
        if finite.size and not np.isfinite(cast(finite, view.dtype)).all():
            broken("E15", f"{view} is {view.dtype.name}, whose largest number is {view.dtype.most:g}", op=op)
    view.values[...] = cast(values, view.dtype)
    view.written[...] = True
    if view.group is not None:
        view.group[...] = group
    if view.pending is not None:
        view.pending[...] = True
