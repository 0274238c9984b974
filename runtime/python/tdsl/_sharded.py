# SPDX-License-Identifier: Apache-2.0
"""Tensors in chunks along one dimension, and contractions of them: a kernel with `shard` on ranks that are threads of this process.

A label whose dimension is in chunks is an axis of the mesh, so that chunks of two labels are a rectangle of ranks. The result is in chunks along the first
of its labels that has an axis; sums over a label that has one are added in the fixed tree of ranks."""
from ._arrays import name_of
from ._comm import thread_ranks
from ._errors import ArgumentError, ShapeError
from ._explicit import explicit, split
from ._locks import Lock

_AXES = 8  # of a mesh
_programs = {}
_lock = Lock()


class ShardedTensor:
    """A tensor in chunks along dimension `partition_dim`; others agree. Chunks are arrays, not copied; some may be empty."""

    def __init__(self, chunks, partition_dim=0):
        self.chunks = list(chunks)
        if not self.chunks:
            raise ArgumentError("ShardedTensor: no chunks", "chunks")
        rank = len(self.chunks[0].shape)
        if not -rank <= partition_dim < rank:
            raise ArgumentError(f"ShardedTensor: partition_dim is {partition_dim}; the chunks have {rank} dimensions", "partition_dim")
        self.partition_dim = partition_dim % rank
        for k, chunk in enumerate(self.chunks):
            if self._others(chunk.shape) != self._others(self.chunks[0].shape):
                raise ShapeError(f"ShardedTensor: chunk {k} has shape {tuple(chunk.shape)}, chunk 0 {tuple(self.chunks[0].shape)}; "
                                 f"they may differ in dimension {self.partition_dim} only", "chunks")

    def _others(self, shape):
        return len(shape), *shape[:self.partition_dim], *shape[self.partition_dim + 1:]

    @property
    def shape(self):
        """Of the whole tensor."""
        whole = list(self.chunks[0].shape)
        whole[self.partition_dim] = sum(chunk.shape[self.partition_dim] for chunk in self.chunks)
        return tuple(whole)

    @property
    def ndim(self):
        """How many dimensions it has."""
        return len(self.chunks[0].shape)

    @property
    def dtype(self):
        """Of the first chunk."""
        return self.chunks[0].dtype

    @property
    def num_shards(self):
        """How many chunks there are."""
        return len(self.chunks)

    @property
    def boundaries(self):
        """Where chunks begin, and where the last one ends."""
        ends = [0]
        for chunk in self.chunks:
            ends.append(ends[-1] + chunk.shape[self.partition_dim])
        return ends

    def __repr__(self):
        return f"ShardedTensor(shape={tuple(self.shape)}, {self.num_shards} chunks along dimension {self.partition_dim})"


def boundaries(extent, num_shards):
    """Where each of the chunks begins, and where the last one ends: as equal as can be, longer ones first."""
    if num_shards < 1:
        raise ArgumentError(f"{num_shards} chunks", "num_shards")
    base, more = divmod(extent, num_shards)
    return [k * base + min(k, more) for k in range(num_shards + 1)]


def _shards(labels, operands):
    """Number of chunks by label."""
    found = {}
    for k, (term, x) in enumerate(zip(labels, operands)):
        if isinstance(x, ShardedTensor):
            label = term[x.partition_dim]
            if found.setdefault(label, x.num_shards) != x.num_shards:
                raise ArgumentError(f"einsum: {label!r} is in {found[label]} chunks, and in {x.num_shards} in operand {k}", k)
    if len(found) > _AXES:
        raise ArgumentError(f"einsum: {len(found)} labels are in chunks, {_AXES} may be")
    return found


def _program(labels, output, shards, shapes, kind):
    """The kernel of a contraction: a label is a dim, but a number where it stretches."""
    from ._program import compile as compile_program
    extents = {}
    for term, shape in zip(labels, shapes):
        for label, n in zip(term, shape):
            extents.setdefault(label, set()).add(n)
    names = {label: f"d{k}" for k, label in enumerate(extents)}
    axes = {label: f"r{k}" for k, label in enumerate(shards)}

    def declared(name, term, shape):
        dims = [str(n) if len(extents[label]) > 1 else names[label] for label, n in zip(term, shape)]
        cut = [f"{axes[label]}({d})" for d, label in enumerate(term) if label in axes and shape[d] == max(extents[label]) and label not in term[:d]]
        return f"{name}: {kind}" + (f"[{', '.join(dims)}]" if dims else "") + (f" shard({', '.join(cut)})" if cut else "")
    whole = [max(extents.get(label, {1})) for label in output]
    heads = ", ".join(declared(f"a{k}", term, shape) for k, (term, shape) in enumerate(zip(labels, shapes)))
    text = (f"kernel contraction({heads}) -> ({declared('r', output, whole)}) "
            f"{{ r = einsum(\"{','.join(labels)}->{output}\", {', '.join(f'a{k}' for k in range(len(labels)))}); }}")
    with _lock:
        if text not in _programs:
            _programs[text] = compile_program(text)
        return _programs[text], dict(zip(axes.values(), shards.values())), {n: max(extents[label]) for label, n in names.items() if len(extents[label]) == 1}


def _part(x, slices):
    """What a rank has of an operand: a chunk itself, where it is just that."""
    import numpy as np
    if not isinstance(x, ShardedTensor):
        return x[slices]
    d, ends = x.partition_dim, x.boundaries
    low, high = slices[d].start, slices[d].stop
    parts = []
    for k, chunk in enumerate(x.chunks):
        first, last = max(low, ends[k]), min(high, ends[k + 1])
        if first < last or low == high == first:
            parts.append(chunk[(*slices[:d], slice(first - ends[k], max(first, last) - ends[k]), *slices[d + 1:])])
            if low == high:
                break
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=d)


def gathered(x):
    """The array of a ShardedTensor of arrays; other arrays as they are."""
    import numpy as np
    return np.concatenate(x.chunks, axis=x.partition_dim) if isinstance(x, ShardedTensor) else x


def parts_like(x, sharded):
    """An array's parts, or a ShardedTensor's, one for each chunk of another tensor of its shape; Nones where it is None."""
    d, ends = sharded.partition_dim, sharded.boundaries
    slices = [(*[slice(0, n) for n in sharded.shape[:d]], slice(low, high), *[slice(0, n) for n in sharded.shape[d + 1:]]) for low, high in zip(ends, ends[1:])]
    return [None if x is None else _part(x, s) for s in slices]


def einsum(subscripts, operands):
    """The contraction of arrays and of ShardedTensors of arrays, of one dtype: a ShardedTensor where a label of the result is in chunks, else an array.

    Each chunk is a rank, and ranks of several labels a mesh of so many; they are threads. The result has the bits of one chunk."""
    import numpy as np
    subscripts, _ = explicit(subscripts, [x.ndim for x in operands], [()] * len(operands))
    labels, output = split(subscripts)
    shards = _shards(labels, operands)
    program, mesh, dims = _program(labels, output, shards, [x.shape for x in operands], name_of(operands[0].dtype))
    kernel = program["contraction"]
    ranks = 1
    for size in mesh.values():
        ranks *= size

    def run(comm):
        parts = [np.ascontiguousarray(_part(x, kernel.cut(f"a{k}", comm, dims=dims, mesh=mesh))) if x.ndim else x for k, x in enumerate(operands)]
        return kernel(*parts, comm=comm, mesh=mesh, dims=dims, threads=1)
    results = thread_ranks(ranks, run)
    return _collected(results, output, shards, mesh)


def _collected(results, output, shards, mesh):
    """Blocks of the ranks as chunks along the first label that has some: the last axis of the mesh is the fastest."""
    import numpy as np
    cut = [label for label in output if label in shards]
    if not cut:
        return results[0]
    sizes = list(mesh.values())
    order = list(shards)
    strides = [int(np.prod(sizes[k + 1:])) for k in range(len(sizes))]

    def assembled(rank, others):
        if not others:
            return results[rank]
        axis = order.index(others[0])
        blocks = [assembled(rank + at * strides[axis], others[1:]) for at in range(sizes[axis])]
        return np.concatenate(blocks, axis=output.index(others[0]))
    axis = order.index(cut[0])
    chunks = [assembled(at * strides[axis], cut[1:]) for at in range(sizes[axis])]
    return ShardedTensor(chunks, output.index(cut[0]))
