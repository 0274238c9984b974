# SPDX-License-Identifier: Apache-2.0
"""What contractions are, and what runs them."""
import collections
import dataclasses
import functools

from .._device import DeviceTensor
from .._errors import ArgumentError, ShapeError
from .._locks import Lock
from .._path import path as _path
from .._trnsci import UnsupportedError
from ._library import library

_MOST_PLANS = 4096
TYPES = {"bf16": "bf16", "bfloat16": "bf16", "fp16": "f16", "float16": "f16", "f16": "f16", "f32": "f32", "fp32": "f32", "float32": "f32",
         "f64": "f64", "fp64": "f64", "float64": "f64"}
_REFUSED = {"dd": "sums of two bf16 for each f32: the device multiplies f32 as such", "sr": "rounding at random: engines round to the nearest here"}
_plans = collections.OrderedDict()
_lock = Lock()


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


def check_precision(precision):
    """Raises NotImplementedError, ValueError."""
    if precision in _REFUSED:
        raise UnsupportedError(f"einsum: precision {precision!r} is {_REFUSED[precision]}; \"kahan\" computes in f64")
    if precision not in ("fast", "kahan"):
        raise ArgumentError(f"einsum: precision must be \"fast\" or \"kahan\", not {precision!r}", "precision")


def choose(multiply_adds, type_name, resident, precision):
    """"c" or "nki"."""
    no_form = f"{type_name}, precision {precision!r}" if precision != "fast" else None
    return library.choose("this contraction", multiply_adds, type_name, resident, no_form)


def _terms(subscripts):
    text = subscripts.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    terms = inputs.split(",")
    if not arrow:
        every = "".join(terms).replace(".", "")
        output = ("..." if "..." in text else "") + "".join(sorted(c for c in set(every) if every.count(c) == 1))
    return terms, output


def check_terms(subscripts, shapes):
    """Raises ValueError with the number of the operand and the name of the index where they do not fit. What else is wrong with a string, the compiler says."""
    if not isinstance(subscripts, str):
        raise ArgumentError(f"einsum: the string is {subscripts!r}", "subscripts")
    wrong = sorted({c for c in subscripts if not (c.isalpha() and c.isascii()) and c not in " ,.->"})
    if wrong:
        raise ArgumentError(f"einsum: {subscripts!r} has invalid characters: {' '.join(map(repr, wrong))}", "subscripts")
    terms = subscripts.replace(" ", "").partition("->")[0].split(",")
    if len(terms) != len(shapes):
        raise ArgumentError(f"einsum: {subscripts!r} has {len(terms)} operand term{'s' * (len(terms) > 1)}, and there are {len(shapes)} tensors", "subscripts")
    sizes = {}
    for k, (term, shape) in enumerate(zip(terms, shapes)):
        if "." in term:
            continue
        if len(term) != len(shape):
            raise ShapeError(f"einsum: operand {k} has shape {tuple(shape)}, and its term {term!r} {len(term)} indices", k)
        for c, n in zip(term, shape):
            size, where = sizes.setdefault(c, (n, k))
            if 1 not in (size, n) and size != n:
                raise ShapeError(f"einsum: index {c!r} is {size} in operand {where} and {n} in operand {k}", k)
            if size == 1:
                sizes[c] = n, k


@functools.lru_cache(maxsize=_MOST_PLANS)
def _describe(subscripts, shapes):
    terms, output = _terms(subscripts)
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


def multiply_adds(subscripts, operands):
    """Those of the order that runs."""
    return _describe(subscripts, tuple(tuple(x.shape) for x in operands)).estimated_flops


def plan_contraction(subscripts, *operands, precision="fast"):
    """The ContractionPlan of a contraction, which is not run: the same object as long as its string, shapes, precision and backend are. The backend is the one that
    `einsum` with the same arguments takes."""
    check_precision(precision)
    shapes = tuple(tuple(int(n) for n in x.shape) for x in operands)
    check_terms(subscripts, shapes)
    resident = any(isinstance(x, DeviceTensor) for x in operands)
    backend = choose(lambda: _describe(subscripts, shapes).estimated_flops, _type_of(operands), resident, precision)
    key = subscripts, shapes, precision, backend
    with _lock:
        plan = _plans.get(key)
        if plan is None:
            plan = _plans[key] = dataclasses.replace(_describe(subscripts, shapes), backend=backend, precision=precision)
            if len(_plans) > _MOST_PLANS:
                _plans.popitem(last=False)
        else:
            _plans.move_to_end(key)
    return plan


def _type_of(operands):
    names = {str(x.dtype).rpartition(".")[2] for x in operands}
    name = names.pop() if len(names) == 1 else None
    return TYPES.get(name, name)


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
