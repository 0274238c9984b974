# SPDX-License-Identifier: Apache-2.0
"""The names and signatures of trntensor: `import tdsl.trntensor as trntensor`. docs/trntensor.md of TDSL says what differs.

Tensors are arrays of NumPy, or of torch on the CPU, and results of the same kind. With the backend "nki", or where there is a device and work enough for
it, contractions are compiled for Trainium too, and run there by `tdsl.nki`.
"""
import collections
import dataclasses

from . import _decompose, _equation, _sharded
from ._arrays import name_of, to_dtype
from ._device import DeviceTensor
from ._einsum import einsum as _einsum
from ._errors import ArgumentError, DtypeError, ShapeError
from ._locks import Lock
from ._path import path as _path
from ._sharded import ShardedTensor
from ._trnsci import BACKENDS, Library, UnsupportedError, array_of, back, from_xla, kind_of, to_xla  # noqa: F401

__all__ = ["HAS_NKI", "ContractionPlan", "ShardedTensor", "ao_to_mo_transform", "clear_plan_cache", "cp_decompose", "cp_reconstruct", "einsum", "estimate_flops",
           "from_xla", "gather", "get_backend", "mp2_energy", "multi_einsum", "plan_cache_info", "plan_contraction", "scatter", "set_backend", "shard_boundaries",
           "to_xla", "tt_decompose", "tt_reconstruct", "tucker_decompose", "tucker_reconstruct"]

_TYPES = {"bf16": "bf16", "bfloat16": "bf16", "fp16": "f16", "float16": "f16", "f16": "f16", "f32": "f32", "fp32": "f32", "float32": "f32",
          "f64": "f64", "fp64": "f64", "float64": "f64"}
_MOST_PLANS = 4096
_plans = collections.OrderedDict()
_programs = {}
_lock = Lock()
_library = Library("trntensor")
set_backend, get_backend, __getattr__ = _library.set_backend, _library.get_backend, _library.attribute


# Tensors

def _dtype(dtype):
    if dtype is None:
        return None
    if isinstance(dtype, str):
        if dtype not in _TYPES:
            raise ArgumentError(f"einsum: dtype {dtype!r} is not one of {', '.join(_TYPES)}", "dtype")
        return to_dtype(_TYPES[dtype])
    if type(dtype).__module__.partition(".")[0] == "torch":
        return _dtype(str(dtype).rpartition(".")[2])
    return to_dtype(dtype)


# Chunks

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
    return back(_sharded.gathered(_of_chunks(sharded, lambda chunk: array_of(chunk, 0))), kind_of([sharded]))


def _of_chunks(x, function):
    """A function of arrays, done to each of the chunks; to an array itself."""
    return ShardedTensor([function(c) for c in x.chunks], x.partition_dim) if isinstance(x, ShardedTensor) else function(x)


# Plans

@dataclasses.dataclass
class ContractionPlan:
    """What a contraction is, and what will run it. strategy: "matmul", "bmm", "path" (three operands or more), or "einsum". backend: "c" or "nki".
    estimated_flops: multiply-adds of the order that runs, contraction_path."""
    subscripts: str
    strategy: str
    backend: str = "c"
    transA: bool = False
    transB: bool = False
    contraction_indices: list = dataclasses.field(default_factory=list)
    batch_indices: list = dataclasses.field(default_factory=list)
    output_indices: list = dataclasses.field(default_factory=list)
    estimated_flops: int = 0
    contraction_path: list = dataclasses.field(default_factory=list)
    precision: str = "fast"

    @property
    def dispatch(self):
        """The strategy, as trntensor's first page calls it."""
        return self.strategy

    @property
    def flops(self):
        """estimated_flops, as trntensor's first page calls it."""
        return self.estimated_flops


def _check_precision(precision):
    if precision in ("dd", "sr"):
        raise UnsupportedError(f"einsum: precision {precision!r}; \"kahan\" computes in f64")
    if precision not in ("fast", "kahan"):
        raise ArgumentError(f"einsum: precision {precision!r} is not \"fast\" or \"kahan\"", "precision")


def _choose(multiply_adds, type_name, resident, precision):
    no_form = f"{type_name}, precision {precision!r}" if precision != "fast" else None
    return _library.choose("this contraction", multiply_adds, type_name, resident, no_form)


def _terms(subscripts):
    text = subscripts.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    terms = inputs.split(",")
    if not arrow:
        every = "".join(terms).replace(".", "")
        output = ("..." if "..." in text else "") + "".join(sorted(c for c in set(every) if every.count(c) == 1))
    return terms, output


def _describe(subscripts, terms, output, shapes):
    found = _path(subscripts, *shapes)
    plan = ContractionPlan(subscripts, "einsum", output_indices=list(output), estimated_flops=found.multiply_adds, contraction_path=found.path)
    if len(terms) > 2:
        plan.strategy = "path"
    if len(terms) == 2 and "." not in subscripts:
        first, second = terms
        shared = [c for c in dict.fromkeys(first) if c in second]
        plan.contraction_indices = [c for c in shared if c not in output]
        plan.batch_indices = [c for c in shared if c in output]
        clean = all(len(set(t)) == len(t) for t in terms) and set(output) == set(first) ^ set(second) | set(plan.batch_indices)
        if clean and len(plan.contraction_indices) == 1 and len(first) == len(second) == 2 + len(plan.batch_indices) <= 3:
            c = plan.contraction_indices[0]
            plan.strategy = "bmm" if plan.batch_indices else "matmul"
            row, column = ([n for n in t if n not in plan.batch_indices] for t in terms)
            plan.transA, plan.transB = row[0] == c, column[1] == c
    return plan


def _plan(subscripts, operands):
    shapes = tuple(tuple(x.shape) for x in operands)
    with _lock:
        plan = _plans.get((subscripts, shapes))
        if plan is None:
            plan = _plans[subscripts, shapes] = _describe(subscripts, *_terms(subscripts), shapes)
            if len(_plans) > _MOST_PLANS:
                _plans.popitem(last=False)
        else:
            _plans.move_to_end((subscripts, shapes))
    return plan


def plan_contraction(subscripts, *operands, precision="fast"):
    """The ContractionPlan of a contraction, which is not run. Its backend is the one that `einsum` with the same arguments takes."""
    _check_precision(precision)
    plan = _plan(subscripts, operands)
    resident = any(isinstance(x, DeviceTensor) for x in operands)
    backend = _choose(lambda: plan.estimated_flops, _type_of(operands), resident, precision)
    return dataclasses.replace(plan, backend=backend, precision=precision)


def _type_of(operands):
    names = {str(x.dtype).rpartition(".")[2] for x in operands}
    name = names.pop() if len(names) == 1 else None
    return _TYPES.get(name, name)


def estimate_flops(subscripts, *operands):
    """Multiply-adds where all operands are multiplied at once: the product of all extents. A plan has those of its order."""
    sizes = {}
    for term, x in zip(_terms(subscripts)[0], operands):
        sizes.update(zip(term, x.shape))
    flops = 1
    for n in sizes.values():
        flops *= int(n)
    return flops


def clear_plan_cache():
    """Forgets plans."""
    with _lock:
        _plans.clear()


def plan_cache_info():
    """{"size": how many plans are kept}."""
    return {"size": len(_plans)}


# Contractions

def _contract(subscripts, arrays, backend):
    if backend == "c":
        return _einsum(subscripts, *arrays)
    from ._program import Program
    shapes, kind = tuple(a.shape for a in arrays), name_of(arrays[0].dtype)
    make = lambda: Program([*_equation.arguments(subscripts, shapes), f"--dtype={kind}"])
    return _library.on_device((subscripts, shapes, kind), make, "einsum", arrays)


def einsum(subscripts, *operands, alpha=1, beta=0, out=None, dtype=None, precision="fast"):
    """alpha * (the contraction) + beta * out, as a new tensor; `out` is not written, and not read where beta is 0.

    dtype: operands are converted to it first, and the result has it: "bf16", "fp16", "f32", "f64" or a dtype. precision: "fast", or "kahan", which
    computes in f64. A result of operands on the device is on the device. Operands may be ShardedTensors: each chunk is computed by a rank, chunks of
    several labels by a mesh of ranks, and the result is in chunks where a label of its own is; its bits do not depend on how many there are. Raises ValueError for wrong strings, shapes and words,
    NotImplementedError for precision "dd" and "sr".
    """
    import numpy as np
    _check_precision(precision)
    kind = kind_of(operands)
    wanted = _dtype(dtype)
    arrays = [_of_chunks(x, lambda part, k=k: array_of(part, k)) for k, x in enumerate(operands)]
    if wanted is not None:
        arrays = [_of_chunks(a, lambda part: part.astype(wanted, copy=False)) for a in arrays]
    if not arrays:
        raise ArgumentError("einsum: no operands")
    dtypes = {part.dtype for a in arrays for part in (a.chunks if isinstance(a, ShardedTensor) else [a])}
    result_type = np.result_type(*dtypes) if len(dtypes) > 1 else dtypes.pop()
    type_name = name_of(result_type)
    resident = [isinstance(x, DeviceTensor) for x in operands]
    compute_type = result_type
    if precision == "kahan":
        compute_type = np.complex128 if result_type.kind == "c" else np.float64
        type_name = "f64"
    converted = [_of_chunks(a, lambda part: part.astype(compute_type, copy=False)) for a in arrays]
    if any(isinstance(a, ShardedTensor) for a in arrays):
        if _library.required() or BACKENDS[_library.backend] == "nki":
            raise UnsupportedError("einsum: chunks are contracted by ranks of the host, and the backend \"nki\" is required")
        result = _sharded.einsum(subscripts, converted)
    else:
        backend = _choose(lambda: _plan(subscripts, arrays).estimated_flops, type_name, any(resident), precision)
        result = np.asarray(_contract(subscripts, converted, backend))
    work = np.float32 if name_of(result_type) in ("bf16", "f16") and precision != "kahan" else result.dtype
    accumulated = None
    if out is not None and beta != 0:
        accumulated = _of_chunks(out, lambda part: array_of(part, "out"))
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


# Quantum chemistry

_MP2 = """dim o ~ 16, v ~ 128, x ~ 384, n ~ 144;
kernel mp2_energy(B: TYPE[o, v, x], eo: TYPE[o], ev: TYPE[v]) -> (E: RESULT) {
    T[i,a,j,b] = B[i,a,P] * B[j,b,P];
    D[i,a,j,b] = eo[i] + eo[j] - ev[a] - ev[b];
    E = sum[i,j,a,b]( T[i,a,j,b] * (2*T[i,a,j,b] - T[i,b,j,a]) / D[i,a,j,b] );
}
kernel ao_to_mo(eri: TYPE[n, n, x], Co: TYPE[n, o], Cv: TYPE[n, v]) -> (B: TYPE[o, v, x]) {
    spill B;
    B = einsum("mi,na,mnP->iaP", Co, Cv, eri);
}
"""


def _mp2_program(kind, result):
    from ._program import compile as compile_program
    with _lock:
        if (kind, result) not in _programs:
            _programs[kind, result] = compile_program(_MP2.replace("TYPE", kind).replace("RESULT", result))
        return _programs[kind, result]


def _primitive(name, tensors, multiply_adds, dims):
    import numpy as np
    arrays = [array_of(x, k) for k, x in enumerate(tensors)]
    dtype = np.result_type(*(a.dtype for a in arrays))
    if dtype not in (np.float32, np.float64):
        raise DtypeError(f"{name}: {dtype}, not f32 or f64")
    arrays = [a.astype(dtype, copy=False) for a in arrays]
    resident = [isinstance(x, DeviceTensor) for x in tensors]
    if _choose(lambda: multiply_adds, name_of(dtype), any(resident), "fast") == "nki":
        text = _MP2.replace("TYPE", "f32").replace("RESULT", "f32")
        from ._program import compile as compile_program
        result = _library.on_device((name, tuple(dims.items())), lambda: compile_program(text, **dims), name, arrays)
    else:
        result = _mp2_program(name_of(dtype), "f64")[name](*arrays)
    result = np.asarray(result).astype(dtype, copy=False)
    return DeviceTensor(result, kind_of(tensors)) if all(resident) else back(result, kind_of(tensors))


def _shape(name, x, wanted, argument):
    if len(x.shape) != len(wanted) or any(w is not None and n != w for n, w in zip(x.shape, wanted)):
        text = ", ".join("any" if w is None else str(w) for w in wanted)
        raise ShapeError(f"{name}: {argument} has shape {tuple(x.shape)}, not ({text})", argument)


def mp2_energy(B, eps_occ, eps_vir):
    """Closed-shell DF-MP2 energy of B[i, a, P] and the orbital energies, a tensor without dimensions: the sum over i, j, a, b of T (2 T - T') / D, in one kernel
    that never holds T; sums run in f64."""
    _shape("mp2_energy", B, (None, None, None), "B")
    o, v, x = (int(n) for n in B.shape)
    _shape("mp2_energy", eps_occ, (o,), "eps_occ")
    _shape("mp2_energy", eps_vir, (v,), "eps_vir")
    return _primitive("mp2_energy", (B, eps_occ, eps_vir), o * o * v * v * x, {"o": o, "v": v, "x": x, "n": 1})


def ao_to_mo_transform(eri, C_occ, C_vir):
    """B[i, a, P], the sum over m, n of C_occ[m, i] C_vir[n, a] eri[m, n, P], in one kernel."""
    _shape("ao_to_mo_transform", eri, (None, None, None), "eri")
    n, x = int(eri.shape[0]), int(eri.shape[2])
    _shape("ao_to_mo_transform", eri, (n, n, x), "eri")
    _shape("ao_to_mo_transform", C_occ, (n, None), "C_occ")
    _shape("ao_to_mo_transform", C_vir, (n, None), "C_vir")
    o, v = int(C_occ.shape[1]), int(C_vir.shape[1])
    return _primitive("ao_to_mo", (eri, C_occ, C_vir), o * n * x * (n + v), {"o": o, "v": v, "x": x, "n": n})


# Decompositions

def _floating(tensor, name):
    import numpy as np
    a = array_of(tensor, 0)
    if a.dtype not in (np.float32, np.float64):
        raise DtypeError(f"{name}: {a.dtype}, not f32 or f64", "tensor")
    return np.ascontiguousarray(a)


def _random(kind):
    """Normal random numbers by the kind's own generator, so that its seed counts."""
    if kind == "torch":
        import torch
        return lambda shape: torch.randn(*shape).numpy()
    import numpy as np
    return lambda shape: np.random.standard_normal(shape)


def cp_decompose(tensor, rank, max_iter=100, tol=1e-6, nonneg=False, factors=None):
    """(factors, weights) with tensor = sum over r of weights[r] times the outer product of the r-th columns, by alternating least squares; with `nonneg`
    by multiplicative updates. Ends when the relative error is below tol. factors: what to start from; default normal random numbers."""
    kind = kind_of([tensor])
    given = None if factors is None else [array_of(f, k) for k, f in enumerate(factors)]
    found, weights = _decompose.cp(_floating(tensor, "cp_decompose"), int(rank), max_iter, tol, nonneg, given, _random(kind))
    return [back(f, kind) for f in found], back(weights, kind)


def cp_reconstruct(factors, weights=None):
    """The tensor of CP factors and weights, or of the pair of both that cp_decompose returns."""
    if weights is None:
        factors, weights = factors
    return back(_decompose.cp_tensor([array_of(f, k) for k, f in enumerate(factors)], array_of(weights, 0)), kind_of(factors))


def tucker_decompose(tensor, ranks):
    """(core, factors), with orthonormal factors [extent, rank] of each dimension, by singular vectors (HOSVD)."""
    kind = kind_of([tensor])
    core, factors = _decompose.tucker(_floating(tensor, "tucker_decompose"), tuple(ranks))
    return back(core, kind), [back(f, kind) for f in factors]


def tucker_reconstruct(core, factors):
    """The tensor of a Tucker core and factors."""
    return back(_decompose.tucker_tensor(array_of(core, 0), [array_of(f, k) for k, f in enumerate(factors)]), kind_of([core]))


def tt_decompose(tensor, max_rank):
    """Cores [left rank, extent, right rank], ranks at most max_rank (TT-SVD)."""
    kind = kind_of([tensor])
    return [back(c, kind) for c in _decompose.tensor_train(_floating(tensor, "tt_decompose"), int(max_rank))]


def tt_reconstruct(cores):
    """The tensor of a train."""
    return back(_decompose.tensor_of_train([array_of(c, k) for k, c in enumerate(cores)]), kind_of(cores))
