# SPDX-License-Identifier: Apache-2.0
"""`contract` with opt_einsum's signature, and what its `backend="tdsl"` calls: `tensordot`, `transpose`."""
import functools

from . import _equation, _foreign
from ._arrays import as_array
from ._einsum import Options, einsum, path_options
from ._errors import ArgumentError, CallError, ShapeError

# opt_einsum's words for searches, and cotengra's of these; other words are tdslc's own.
_SEARCHES = {"auto": (), "auto-hq": (), "tdsl": (), "greedy": ("--search=greedy",), "eager": ("--search=greedy",),
             "opportunistic": ("--search=greedy",), "optimal": ("--search=exact",), "dp": ("--search=exact",),
             "dynamic-programming": ("--search=exact",), "branch-all": ("--search=exact",), "branch-1": (), "branch-2": (),
             "random-greedy": ("--search=random-greedy",), "random-greedy-128": ("--search=random-greedy",)}
_MOST_EXACT = 16


def _options(optimize, operands):
    if optimize is None or isinstance(optimize, bool):
        return ()
    if isinstance(optimize, str):
        found = _SEARCHES.get(optimize.lower(), (f"--search={optimize}",))
        return () if found == ("--search=exact",) and operands > _MOST_EXACT else found
    if hasattr(optimize, "options"):  # our own Optimizer
        return tuple(f"--{name.replace('_', '-')}={value}" for name, value in optimize.options.items() if value is not None)
    return path_options(optimize, lambda name: _options(name, operands))


def _limit(memory_limit, arrays):
    if memory_limit is None or (not isinstance(memory_limit, str) and memory_limit == -1):
        return ()
    if memory_limit == "max_input":
        memory_limit = max((a.size for a in arrays), default=1)
    if isinstance(memory_limit, str) or memory_limit < 1:
        raise ArgumentError(f'contract: memory_limit is a number of elements, -1, None, or "max_input", not {memory_limit!r}', "memory_limit")
    return (f"--memory-limit={int(memory_limit)}",)


def _string(arguments):
    """(string, arrays) of the interleaved form, in which any things that can be sorted are labels."""
    terms = [list(term) for term in arguments[1::2]]
    if len(arguments) % 2:
        terms.append(list(arguments[-1]))
    try:
        labels = sorted({label for term in terms for label in term if label is not Ellipsis})
    except TypeError:
        raise CallError("contract: labels of the interleaved form can be hashed and sorted: numbers, or strings") from None
    number = {label: k for k, label in enumerate(labels)}
    numbers = [[n if n is Ellipsis else number[n] for n in term] for term in terms]
    operands = arguments[: len(arguments) // 2 * 2 : 2]
    both = [x for pair in zip(operands, numbers) for x in pair]
    return _equation.interleaved((*both, *numbers[len(operands):]))


def contract(subscripts, *operands, out=None, use_blas=True, optimize=True, memory_limit=None, backend="auto", **kwargs):
    """`opt_einsum.contract` as one fused kernel: `tdsl.contract("ij,jk,kl->il", A, B, C)`.

    subscripts, operands: a string and arrays, or arrays and their labels in turn. out: an array for the result. optimize: True, None, False
    or "auto" for the default search, a search's name there or here, a path, or an optimizer of opt_einsum. memory_limit: the most
    elements of a tensor, or "max_input"; what does not fit is sliced. use_blas is ignored. backend: "auto", "numpy" or "tdsl", or the package of arrays to which
    einsum defers. kwargs: as of
    `tdsl.einsum`. Returns and raises what `tdsl.einsum` does.
    """
    del use_blas
    foreign = [type(a).__module__.partition(".")[0] for a in operands if _foreign.defers(a)]
    if backend not in (None, "auto", "numpy", "tdsl", *foreign):
        raise ArgumentError(f"contract: backend={backend!r}: arrays are NumPy's here; opt_einsum has others", "backend")
    if not isinstance(subscripts, str):
        subscripts, operands = _string((subscripts, *operands))
    if foreign and out is None:
        return einsum(subscripts, *operands, **kwargs)
    arrays = [as_array(a, k) for k, a in enumerate(operands)]
    if callable(optimize) and not hasattr(optimize, "options"):  # a PathOptimizer
        import opt_einsum
        optimize = opt_einsum.contract_path(subscripts, *arrays, optimize=optimize, memory_limit=memory_limit)[0]
    options = (*_options(optimize, len(arrays)), *_limit(memory_limit, arrays))
    return einsum(subscripts, *arrays, out=out, optimize=Options(options), **kwargs)


@functools.lru_cache(maxsize=1024)
def _tensordot_string(a, b, axes):
    if isinstance(axes, int):
        if not 0 <= axes <= min(a, b):
            raise ShapeError(f"tensordot: {axes} axes of arrays with {a} and {b}", "axes")
        axes = tuple(range(a - axes, a)), tuple(range(axes))
    first, second = axes
    if len(first) != len(second):
        raise ShapeError(f"tensordot: {len(first)} axes of one array, {len(second)} of the other", "axes")
    for n, which in ((a, first), (b, second)):
        if any(not -n <= k < n for k in which) or len({k % n for k in which}) < len(which):
            raise ShapeError(f"tensordot: {which} are no axes of an array with {n}", "axes")
    left, right = list(range(a)), list(range(a, a + b))
    for k, m in zip(first, second):
        right[m] = left[k]
    kept = [n for k, n in enumerate(left) if k - a not in first and k not in first]
    kept += [n for k, n in enumerate(right) if k - b not in second and k not in second]
    text = lambda labels: "".join(map(_equation.symbol, labels))
    return f"{text(left)},{text(right)}->{text(kept)}", tuple((k % a, m % b) for k, m in zip(first, second))


@functools.lru_cache(maxsize=1024)
def _transpose_string(n, axes):
    axes = range(n)[::-1] if axes is None else axes
    if sorted(k % n if -n <= k < n else -1 for k in axes) != list(range(n)):
        raise ShapeError(f"transpose: {axes} are not the axes of an array with {n}", "axes")
    text = lambda labels: "".join(map(_equation.symbol, labels))
    return f"{text(range(n))}->{text(k % n for k in axes)}"


def _axes(axes):
    """As a key: a number, or two tuples."""
    if hasattr(axes, "__index__"):
        return axes.__index__()
    try:
        first, second = axes
    except (TypeError, ValueError):
        raise ArgumentError(f"tensordot: axes is a number, or two lists of axes, not {axes!r}", "axes") from None
    try:
        return tuple((k.__index__(),) if hasattr(k, "__index__") else tuple(n.__index__() for n in k) for k in (first, second))
    except (TypeError, AttributeError):
        raise ArgumentError(f"tensordot: axes are numbers, not {axes!r}", "axes") from None


def tensordot(a, b, axes=2):
    """`numpy.tensordot`: a sum over pairs of axes, the last `axes` of a and the first of b, or `axes=((of a, ...), (of b, ...))`. Returns a new array in C order."""
    a, b = as_array(a, 0), as_array(b, 1)
    text, pairs = _tensordot_string(a.ndim, b.ndim, _axes(axes))
    for k, m in pairs:
        if a.shape[k] != b.shape[m]:  # of which einsum would stretch a 1
            raise ShapeError(f"tensordot: axis {k} of one array is {a.shape[k]}, axis {m} of the other {b.shape[m]}", "axes")
    return einsum(text, a, b)


def transpose(a, axes=None):
    """`numpy.transpose`, but a new array in C order. axes: where each axis of the result comes from; default the reverse."""
    a = as_array(a, 0)
    try:
        axes = None if axes is None else tuple(k.__index__() for k in axes)
    except (TypeError, AttributeError):
        raise ArgumentError(f"transpose: axes are numbers, not {axes!r}", "axes") from None
    return einsum(_transpose_string(a.ndim, axes), a)
