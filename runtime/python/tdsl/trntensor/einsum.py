# SPDX-License-Identifier: Apache-2.0
"""Contractions."""
from .. import _equation, _sharded
from .._arrays import name_of, to_dtype
from .._device import DeviceTensor
from .._einsum import einsum as _einsum
from .._errors import ArgumentError, ShapeError
from .._sharded import ShardedTensor
from .._trnsci import BACKENDS, UnsupportedError, array_of, back, kind_of
from ._library import library
from .plan import TYPES, check_precision, check_terms, choose, multiply_adds
from .shard import of_chunks


def _dtype(dtype):
    if dtype is None:
        return None
    if isinstance(dtype, str):
        if dtype not in TYPES:
            raise ArgumentError(f"einsum: unknown dtype {dtype!r}, not one of {', '.join(TYPES)}", "dtype")
        return to_dtype(TYPES[dtype])
    if type(dtype).__module__.partition(".")[0] == "torch":
        return _dtype(str(dtype).rpartition(".")[2])
    return to_dtype(dtype)


def _contract(subscripts, arrays, backend):
    if backend == "c":
        return _einsum(subscripts, *arrays)
    from .._program import Program
    shapes, kind = tuple(a.shape for a in arrays), name_of(arrays[0].dtype)
    make = lambda: Program([*_equation.arguments(subscripts, shapes), f"--dtype={kind}"])
    return library.on_device((subscripts, shapes, kind), make, "einsum", arrays)


def einsum(subscripts, *operands, alpha=1, beta=0, out=None, dtype=None, precision="fast"):
    """alpha * (the contraction) + beta * out, as a new tensor; `out` is not written, and not read where beta is 0.

    dtype: operands are converted to it first, and the result has it: "bf16", "fp16", "f32", "f64" or a dtype. precision: "fast", or "kahan", which
    computes in f64. A result of operands on the device is on the device. Operands may be ShardedTensors: each chunk is computed by a rank, chunks of
    several labels by a mesh of ranks, and the result is in chunks where a label of its own is; its bits do not depend on how many there are. Raises ValueError for wrong strings, shapes and words,
    NotImplementedError for precision "dd" and "sr".
    """
    import numpy as np
    check_precision(precision)
    kind = kind_of(operands)
    wanted = _dtype(dtype)
    arrays = [of_chunks(x, lambda part, k=k: array_of(part, k)) for k, x in enumerate(operands)]
    if wanted is not None:
        arrays = [of_chunks(a, lambda part: part.astype(wanted, copy=False)) for a in arrays]
    if not arrays:
        raise ArgumentError("einsum: no operands")
    check_terms(subscripts, [tuple(a.shape) for a in arrays])
    dtypes = {part.dtype for a in arrays for part in (a.chunks if isinstance(a, ShardedTensor) else [a])}
    result_type = np.result_type(*dtypes) if len(dtypes) > 1 else dtypes.pop()
    type_name = name_of(result_type)
    resident = [isinstance(x, DeviceTensor) for x in operands]
    compute_type = result_type
    if precision == "kahan":
        compute_type = np.complex128 if result_type.kind == "c" else np.float64
        type_name = "f64"
    converted = [of_chunks(a, lambda part: part.astype(compute_type, copy=False)) for a in arrays]
    if any(isinstance(a, ShardedTensor) for a in arrays):
        if library.required() or BACKENDS[library.backend] == "nki":
            raise UnsupportedError("einsum: chunks are contracted by ranks of the host, and the backend \"nki\" is required")
        result = _sharded.einsum(subscripts, converted)
    else:
        backend = choose(lambda: multiply_adds(subscripts, arrays), type_name, any(resident), precision)
        result = np.asarray(_contract(subscripts, converted, backend))
    work = np.float32 if name_of(result_type) in ("bf16", "f16") and precision != "kahan" else result.dtype
    accumulated = None
    if out is not None and beta != 0:
        accumulated = of_chunks(out, lambda part: array_of(part, "out"))
        if tuple(accumulated.shape) != tuple(result.shape):
            raise ShapeError(f"einsum: out has shape {tuple(accumulated.shape)}, the result {tuple(result.shape)}", "out")

    def finished(part, added):
        if alpha != 1:
            part = part.astype(work, copy=False) * alpha
        if added is not None:
            part = part.astype(work, copy=False) + beta * added.astype(work, copy=False)
        return np.asarray(part).astype(result_type, copy=False)
    if isinstance(result, ShardedTensor):
        chunks = zip(result.chunks, _sharded.parts_like(accumulated, result))
        return ShardedTensor([back(finished(part, added), kind) for part, added in chunks], result.partition_dim)
    result = finished(result, None if accumulated is None else _sharded.gathered(accumulated))
    if resident and all(resident):
        return DeviceTensor(result, kind)
    return back(result, kind)


def multi_einsum(*contractions, precision="fast"):
    """[the result of each `(subscripts, *operands)`]."""
    return [einsum(item[0], *item[1:], precision=precision) for item in contractions]
