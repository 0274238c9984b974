# SPDX-License-Identifier: Apache-2.0
"""Tensors in chunks."""
from .. import _sharded
from .._errors import ArgumentError
from .._sharded import ShardedTensor
from .._trnsci import array_of, back, kind_of


def shard_boundaries(extent, num_shards):
    """Where each of the chunks of a dimension begins, and where the last one ends: as equal as can be, longer ones first."""
    return _sharded.boundaries(extent, num_shards)


def scatter(tensor, num_shards, partition_dim=0):
    """The tensor in so many chunks along a dimension, which are views of it."""
    rank = len(tensor.shape)
    if not -rank <= partition_dim < rank:
        raise ArgumentError(f"scatter: partition_dim is {partition_dim}; the tensor has {rank} dimensions", "partition_dim")
    ends = shard_boundaries(tensor.shape[partition_dim], num_shards)
    before = (slice(None),) * (partition_dim % rank)
    return ShardedTensor([tensor[(*before, slice(first, last))] for first, last in zip(ends, ends[1:])], partition_dim)


def gather(sharded):
    """The whole of chunks, as a new tensor of their kind; other tensors are returned as they are."""
    if not isinstance(sharded, ShardedTensor):
        return sharded
    return back(_sharded.gathered(of_chunks(sharded, lambda chunk: array_of(chunk, 0))), kind_of([sharded]))


def of_chunks(x, function):
    """A function of arrays, done to each of the chunks; to an array itself."""
    return ShardedTensor([function(c) for c in x.chunks], x.partition_dim) if isinstance(x, ShardedTensor) else function(x)
