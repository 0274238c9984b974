# SPDX-License-Identifier: Apache-2.0
"""`einsum` and `expression`: contractions given as strings."""
from __future__ import annotations

import math
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence, Union

    from ._path import Path
    Optimize = Union[bool, str, Path, Sequence[Any], None]

from . import _equation
from ._arrays import Ready, as_array, dtype_of, is_plain, key_of, name_of, overlap, plain, scalar, to_dtype
from ._calls import Calls, fast, run_of
from ._errors import ArgumentError, CallError, CompileError, DtypeError, Error, ShapeError
from ._interpreter import InterpretedKernel
from ._locks import Lock, Once
from ._program import Shape, Source, bind, threads_of
from ._typical import UNSAID, Planned, near

_MOST_CALLS = 4096
_MOST_SHAPES = 2  # sets of extents that are compiled each for itself, before open ones are
_MOST_STRIDES = 4  # sets of strides of a string that are compiled each for itself, before open ones are, or such views are copied
_plans: dict[Any, _Plan] = {}  # by what einsum was called with
_calls = Calls()  # the same, in the C module
_calls._take((), _MOST_CALLS)
_sources: dict[Any, Source] = {}  # by what is compiled
_seen: dict[Any, set[Any]] = {}  # sets of extents by string and types
_chosen: dict[Any, Any] = {}  # which extents are open, and what is planned for, of what is compiled ahead
_lock = Lock()
_once = Once()

# Types that the language does not have, and the one in which the same ring operations give the same bits.
_NARROW = {"int8": "i32", "int16": "i32", "uint8": "i32", "uint16": "i32", "uint32": "i32", "uint64": "i64"}


def _forget():
    with _lock:
        for table in (_plans, _sources, _seen, _chosen):
            table.clear()
        _calls._forget()


_CASTINGS = "no", "equiv", "safe", "same_kind", "unsafe"


def _keep_source(key, source):
    _sources[key] = source
    if len(_sources) > _MOST_CALLS:
        _sources.pop(next(iter(_sources)))


_warm: Any = None  # the module, where NumPy is to compute while kernels are compiled
_in_background = False


def set_background(on):
    global _warm, _in_background
    from . import _warm as module
    _warm, _in_background = module, bool(on)


class Options(tuple):
    """Options of tdslc, given as `optimize`."""


def _search(optimize):
    """Options of tdslc for NumPy's, opt_einsum's and our own words."""
    words = {"auto": [], "auto-hq": [], "greedy": ["--search=greedy"], "optimal": ["--search=exact"], "dp": ["--search=exact"]}
    if optimize is None or isinstance(optimize, bool):
        return ()
    if isinstance(optimize, Options):
        return optimize
    if isinstance(optimize, str):
        return tuple(words.get(optimize, [f"--search={optimize}"]))
    return path_options(optimize, _search)


def path_options(optimize, search):
    """Options for a path: a list of steps, or what has one, or numpy's ["einsum_path", step...], or its (name, most elements of a tensor)."""
    try:
        steps = list(getattr(optimize, "path", optimize))
        if len(steps) == 2 and isinstance(steps[0], (str, bool)) and not isinstance(steps[1], (tuple, list)):
            limit = int(steps[1])
            return (*search(steps[0]), *([f"--memory-limit={limit}"] if limit >= 0 else []))
        if steps and steps[0] == "einsum_path":
            steps = steps[1:]
        return ("--path=" + "".join(f"({','.join(str(int(k)) for k in step)})" for step in steps),)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"optimize is a search's name, a path, or (name, most elements of a tensor), not {optimize!r}", "optimize") from None


class _Scaled:
    """The program of alpha * einsum(...) + beta * R."""

    def __init__(self, equation, shapes, type_name, options):
        kernel = Source([*options, *_equation.arguments(equation, shapes), f"--dtype={type_name}"], described=True).heads[0]
        extents = lambda shape: f"[{', '.join(str(n) for n in shape)}]" if shape else ""
        operands = [f"a{k}: {type_name}{extents(s)}" for k, s in enumerate(shapes)]
        result = f"R: inout {type_name}{extents(kernel[3][-1].shape)}"
        head = ", ".join([*operands, result, f"alpha: {type_name}", f"beta: {type_name}"])
        names = ", ".join(f"a{k}" for k in range(len(shapes)))
        self.text = f'kernel einsum({head}) {{ R = alpha * einsum("{equation}", {names}) + beta * R; }}\n'


def _choose(equation, shapes, type_name, options, scaled):
    """(shapes, in which None is open; shapes to plan open ones for, or None)."""
    with _lock:
        seen = _seen.setdefault((equation, type_name, options, scaled, tuple(map(len, shapes))), set())
        planned = None
        if not scaled and shapes not in seen and len(seen) >= _MOST_SHAPES:
            given, shapes = shapes, _equation.open_shapes(equation, shapes)
            known = [other for other in seen if not any(n is None for shape in other for n in shape)]
            planned = _equation.planned_shapes(shapes, [*known, given])
        seen.add(shapes)
        return shapes, planned


def choose(equation, shapes, dtype, scaled, optimize):
    """Says now what is compiled for these shapes, though it is compiled later, side by side with others."""
    type_name = _NARROW.get(dtype.name) or name_of(dtype)
    options = _search(optimize) if len(shapes) > 2 else ()
    _chosen[equation, shapes, type_name, options, scaled] = _choose(equation, shapes, type_name, options, scaled)


class _Plan:
    """A string prepared for arrays of some shapes and one type, or the text of a program that is the same."""

    def __init__(self, equation, shapes, dtype, threads, optimize, scaled, text=None, sizes=()):
        self.dtype, self.scaled, self.shapes = dtype, scaled, shapes
        narrow = _NARROW.get(dtype.name)
        type_name = narrow or name_of(dtype)
        if type_name is None:
            raise DtypeError(f"einsum: {dtype} is no element type of kernels")
        if scaled and type_name == "bool":
            raise DtypeError("einsum: alpha and beta are for numbers, not for bool", "alpha")
        self.type, self.compute = type_name, dtype_of(type_name)
        if type_name == "bf16":
            self.dtype = self.compute  # which V2 is another name of
        threads = threads_of(threads)
        options = _search(optimize) if len(shapes) > 2 else ()
        kernel = self._kernel(equation, shapes, type_name, threads, options, scaled) if text is None else self._positions(text, sizes, threads)
        arrays = {arg.name: Shape(s) for arg, s in zip(kernel.args, shapes)}
        dims = bind(kernel, arrays, dict(sizes))
        size = dict(zip(kernel.dims, dims))
        result = next(arg for arg in kernel.args if arg.role in ("out", "inout"))
        self.shape = tuple(size.get(n, n) for n in result.shape)
        self.run = kernel.prepare(dims, threads)
        self.ready = Ready(self.run, [(self.shape, self.compute)])
        self._runs = {}
        self._kernel_of_runs = kernel, dims, threads

    @staticmethod
    def _kernel(equation, shapes, type_name, threads, options, scaled):
        asked = equation, shapes, type_name, options, scaled
        shapes, planned = _chosen.get(asked) or _choose(*asked)
        key = equation, shapes, type_name, options, scaled
        with _once.of(key):
            if key not in _sources:
                if scaled:
                    _keep_source(key, Source(["-"], _Scaled(equation, shapes, type_name, options).text))
                else:
                    _keep_source(key, Source([*options, *_equation.arguments(equation, shapes, planned), f"--dtype={type_name}"]))
            source = _sources[key]
        return source.kernels(threads)["einsum"]

    @staticmethod
    def _positions(text, sizes, threads):
        with _once.of(text):
            if text not in _sources:
                _keep_source(text, Source(["-", *(f"-D{name}~{near(n)}" for name, n in sizes)], text))
            source = _sources[text]
        return source.kernels(threads)["einsum"]

    def __call__(self, arrays):
        """A new array (a scalar of NumPy where it has no dimensions) from arrays of the plan's shapes and type; None where they are not in C order."""
        made = self.ready(arrays)
        return made if made is None else made[0] if self.shape else made[0][()]

    def c_run(self, arrays, out):
        """Such calls in the C module, which does nothing with arrays that have to be converted; or None."""
        roles = "".join("r" if a.flags.c_contiguous else "R" for a in arrays) + ("n" if out is None else "o" if out.flags.c_contiguous else "O")
        if roles not in self._runs:
            self._runs[roles] = einsum_run(*self._kernel_of_runs, self.shapes, self.shape, self.compute, roles)
        return self._runs[roles]

    def _convert(self, arrays, views):
        ready = []
        for k, a in enumerate(arrays):
            if self.type == "bf16" and name_of(a.dtype) == "bf16":
                a = a.view(self.compute)
            elif self.dtype != self.compute and a.dtype.itemsize == self.compute.itemsize:
                a = a.astype(self.dtype, copy=False).view(self.compute) if a.ndim else a.astype(self.compute)
            elif a.dtype.newbyteorder("=") != self.compute:
                a = a.astype(self.compute, order="C")
            ready.append(a if views is not None and views.strided[k] else plain(a))
        return ready

    def call(self, arrays, out, alpha, beta, views=None):
        """With everything that einsum takes."""
        import numpy as np
        given = out
        if views is not None:
            arrays, out = views.memory(arrays), views.memory_of_out(out)
        ready = self._convert([as_array(a, k) for k, a in enumerate(arrays)], views)
        direct = out is not None and is_plain(out) and out.dtype == self.compute and not any(overlap(out, a) for a in ready)
        if direct:
            place = out
        else:
            place = np.empty(self.shape, self.compute)
            if out is not None and beta:
                place[...] = out if self.dtype == self.compute else out.astype(self.compute)
        if self.scaled:
            self.run((*ready, place, scalar(1 if alpha is None else alpha, self.type, "alpha"),
                      scalar(0 if beta is None else beta, self.type, "beta")))
        else:
            self.run((*ready, place), not direct)
        if not direct and self.compute != self.dtype:
            place = place.astype(self.dtype)
        if out is None:
            return place if self.shape else place[()]
        if not direct:
            out[...] = place
        return given


class _OfViews:
    """What `_Plan` is, for arrays that are the views for which it was made."""

    def __init__(self, plan, views):
        self.plan, self.views = plan, views

    def __call__(self, arrays):
        import numpy as np
        if not all(type(a) is np.ndarray and a.flags.aligned for a in arrays):
            return None
        place = np.empty(self.plan.shape, self.plan.compute)
        self.plan.run((*self.views.memory(arrays), place), True)
        return place if self.plan.shape else place[()]


def einsum_run(kernel, dims, threads, shapes, shape, dtype, roles):
    """The call of an einsum's kernel in the C module, or None."""
    elements = sum(math.prod(s) for s in (*shapes, shape))
    made = (None,) * len(shapes) + ((shape, dtype) if roles[-1] == "n" else None,)
    return run_of(kernel, dims, threads, roles, made, None, elements)


def _remember(key, plan):
    with _lock:
        if len(_plans) >= _MOST_CALLS:
            for old in list(_plans)[: _MOST_CALLS // 8]:
                del _plans[old]
        _plans[key] = plan


def _common_dtype(arrays, dtype, casting):
    import numpy as np
    if casting not in _CASTINGS:
        raise ArgumentError(f"casting is one of {', '.join(_CASTINGS)}, not {casting!r}", "casting")
    types = [a.dtype for a in arrays]
    if dtype is not None:
        dtype = to_dtype(dtype)
    elif all(t == types[0] for t in types):
        dtype = types[0]
    else:
        try:
            dtype = np.result_type(*types)
        except TypeError:
            wrong = next((k for k, t in enumerate(types) if name_of(t) is None and t.name not in _NARROW), None)
            raise DtypeError(f"einsum: no type has the values of all of {', '.join(map(str, types))}", wrong) from None
    same = lambda t: t == dtype or (name_of(t) == "bf16" and name_of(dtype) == "bf16")
    for k, t in enumerate(types):
        if not same(t) and not np.can_cast(t, dtype, casting):
            raise DtypeError(f"einsum: operand {k} is {t}, which casting={casting!r} does not make {dtype}", k)
    return dtype.newbyteorder("=")


def _slow(equation, arrays, out, alpha, beta, dtype, threads, optimize, casting):
    import numpy as np
    if not arrays:
        raise ArgumentError("einsum: no operands")
    arrays = [as_array(a, k) for k, a in enumerate(arrays)]
    common = _common_dtype(arrays, dtype, casting)
    scaled = alpha is not None or beta is not None
    if beta is not None and out is None and beta != 0:
        raise ArgumentError("einsum: beta is for a result that there is: out=", "out")
    if _in_background and not scaled and (out is None or isinstance(out, np.ndarray)):
        made = _warm.numpys(equation, arrays, common, out, threads, optimize)
        if made is not None:
            return None, None, made
    plan, views = _plan_of(equation, arrays, out, common, threads, optimize, scaled)
    if out is not None:
        if not isinstance(out, np.ndarray):
            raise DtypeError(f"einsum: out is an array of NumPy, not {type(out).__name__}", "out")
        wanted = plan.shape if views is None or views.out is None else out.shape
        if out.shape != wanted:
            raise ShapeError(f"einsum: out has shape {out.shape}, the result {wanted}", "out")
        place = out.view(plan.compute) if plan.type == name_of(out.dtype) == "bf16" else out
        if place is out and out.dtype != common and not np.can_cast(common, out.dtype, casting):
            raise DtypeError(f"einsum: out is {out.dtype}, to which casting={casting!r} does not bring {common}", "out")
        if not out.flags.writeable:
            raise ArgumentError("einsum: out is read-only", "out")
        plan.call(arrays, place, alpha, beta, views)
        return plan, views, out
    return plan, views, plan.call(arrays, None, alpha, beta, views)


def _plan_of(equation, arrays, out, common, threads, optimize, scaled):
    """(plan, Views or None) for arrays of NumPy."""
    found = _plan_of_views(equation, arrays, out, common, threads, optimize, scaled)
    return found or (_found_plan(equation, tuple(a.shape for a in arrays), common, threads, optimize, scaled), None)


def _found_plan(equation, shapes, common, threads, optimize, scaled, text=None, sizes=()):
    order = optimize if isinstance(optimize, (str, bool, type(None), Options)) else tuple(map(str, _search(optimize)))
    key = ("full", equation, shapes, common, threads, order, scaled, text, sizes)
    plan = _plans.get(key)
    if plan is None:
        with _once.of(key):
            plan = _plans.get(key)
            if plan is None:
                plan = _Plan(equation, shapes, common, threads, optimize, scaled, text, sizes)
                _remember(key, plan)
    return plan


def _plan_of_views(equation, arrays, out, common, threads, optimize, scaled):
    """(plan, Views) where some arrays are not in C order and kernels can read them so, or None."""
    views = _views_of(equation, arrays, out, common, scaled or bool(_search(optimize)))
    if views is None:
        return None
    try:
        plan = _found_plan(views.equation, views.shapes, common, threads, optimize, scaled, views.text, views.dims)
    except CompileError:
        return None  # it is told better of what the caller wrote
    if views.text is not None and isinstance(plan._kernel_of_runs[0], InterpretedKernel):
        return None  # which reads whole arrays from files
    return plan, views


def _views_of(equation, arrays, out, common, strings_only):
    """The Views of arrays of which some are not in C order, where kernels can read them so."""
    import numpy as np
    order = out if isinstance(out, np.ndarray) else None
    if all(a.flags.c_contiguous for a in arrays) and (order is None or order.flags.c_contiguous):
        return None
    from ._views import views_of
    narrow = _NARROW.get(common.name)
    compute = narrow or name_of(common)
    keeps = compute is not None and (narrow is None or dtype_of(narrow).itemsize == common.itemsize)
    readable = [keeps and a.dtype == common and a.flags.aligned and a.dtype.isnative for a in arrays]
    try:
        views = views_of(equation, arrays, readable, order, compute)
    except Error:
        return None  # and the string, as it was given, is refused
    if views is None or views.text is None:
        return views
    seen = _seen.setdefault(("views", equation, common, tuple(a.ndim for a in arrays)), set())
    if strings_only:
        return None
    if views.text not in seen and len(seen) >= _MOST_STRIDES:
        return views.opened()
    seen.add(views.text)
    return views


def einsum(equation: Any, *arrays: Any, out: Any = None, alpha: Any = None, beta: Any = None, dtype: Any = None, threads: int | None = None,
           optimize: Optimize = None, casting: str = "safe") -> Any:
    """A contraction, with the meaning of `numpy.einsum`: `tdsl.einsum("ij,jk->ik", A, B)`.

    equation: labels of each operand's dimensions, `...` for those without one, and of the result; without `->` those that
    occur once, in alphabetical order. Or the interleaved form, `einsum(A, [0, 1], B, [1, 2], [0, 2])`.
    out: an array of the result's shape, which may overlap operands, or be in any order. alpha, beta: out becomes
    alpha * einsum + beta * out; with beta 0 it is not read. dtype: the type to compute in, by name ("f32") or as NumPy has it; default that to which all
    operands promote. casting: what conversions may lose, as in NumPy. threads: how many may compute where that is worth it
    (default OMP_NUM_THREADS, else all CPUs that the process may use). optimize: a search ("greedy", "optimal", others of docs/paths.md), a path, or what numpy.einsum takes, where there are three
    operands or more.

    Returns a new array in C order, a scalar of NumPy where it has no dimensions, or `out`. A new string, or new shapes,
    are compiled first (about half a second, once for all processes); from the third set of shapes on for all shapes.
    Raises CompileError for a wrong string or shapes that do not fit it, DtypeError, ShapeError, ArgumentError.
    """
    options = None if dtype is None and optimize is None and casting == "safe" else (dtype, optimize, casting)
    if alpha is None and beta is None:
        result = _find(equation, arrays, out, threads, options)
        if result is not None:
            return result
    if not isinstance(equation, str):
        equation, arrays = _equation.interleaved((equation, *arrays))
    if out is None and alpha is None and beta is None and not all(hasattr(a, "flags") for a in arrays):
        from . import _foreign
        if any(_foreign.defers(a) for a in arrays):
            return _foreign.einsum(equation, arrays, dtype, optimize, casting)
    plan, views, result = _slow(equation, arrays, out, alpha, beta, dtype, threads, optimize, casting)
    if plan is not None and alpha is None and beta is None and all(hasattr(a, "flags") and a.dtype == plan.compute for a in arrays):
        _keep(equation, arrays, out, threads, options, plan, views)
    return result


def _find_by_python(equation, arrays, out, threads, options):
    """The result of a call that is prepared, or None."""
    if out is not None or type(equation) is not str:
        return None
    try:
        key = equation, threads, options, *key_of(arrays)
        plan = _plans.get(key)
        if plan is not None:
            result = plan(arrays)
            if result is not None:
                return result
        plan = _plans.get((*key, *[a.strides for a in arrays]))
    except (AttributeError, TypeError):
        return None
    return plan(arrays) if plan is not None else None


def _keep(equation, arrays, out, threads, options, plan, views):
    """Prepares such calls."""
    import numpy as np
    if not all(type(a) is np.ndarray and (a.flags.c_contiguous or views is not None) for a in arrays):
        return
    if fast is not None:
        if out is None or (type(out) is np.ndarray and (out.flags.c_contiguous or (views is not None and views.out is not None))):
            run = plan.c_run(arrays, out)
            if run is not None:
                _calls._add(equation, tuple(arrays), out, threads, options, run)
        return
    if out is not None:
        return
    try:
        key = equation, threads, options, *key_of(arrays)
        if views is None:
            _remember(key, plan)
        else:
            _remember((*key, *[a.strides for a in arrays]), _OfViews(plan, views))
    except TypeError:
        pass  # options that have no hash


if os.environ.get("TDSL_BACKGROUND", "0") not in ("", "0"):
    set_background(True)
_find = _calls._find if fast is not None else _find_by_python


def _check_out(out):
    import numpy as np
    if out is not None and not isinstance(out, np.ndarray):
        raise DtypeError(f"out is an array of NumPy, not {type(out).__name__}", "out")


class Expression(Calls):
    """A contraction for given shapes: a function of arrays, as `einsum` without the string."""

    def __init__(self, equation: str, shapes: tuple[tuple[int | None, ...], ...], type_name: str, threads: int | None, optimize: Optimize) -> None:
        self._take(tuple(map(str, range(len(shapes)))), 256)
        self.equation, self.shapes, self.type, self._threads = equation, shapes, type_name, threads_of(threads)
        self._asked, self._optimize = threads, optimize  # as another process is told
        options = _search(optimize) if len(shapes) > 2 else ()
        source = lambda planned: Source([*options, *_equation.arguments(equation, shapes, planned), f"--dtype={type_name}"])
        self._source = source(None)
        axes = [(k, d) for k, shape in enumerate(shapes) for d, n in enumerate(shape) if n is None]
        sizes_of = lambda sizes: [[sizes.get((k, d), n) for d, n in enumerate(shape)] for k, shape in enumerate(shapes)]
        self._planned = Planned(self._source, ((axis, UNSAID) for axis in axes), lambda sizes: source(sizes_of(sizes)))
        self._axes = axes
        self._plans: dict[Any, Any] = {}
        self._ready: dict[Any, Ready] = {}

    def __reduce__(self):
        return Expression, (self.equation, self.shapes, self.type, self._asked, self._optimize)

    def __repr__(self):
        return f"<einsum {self.equation!r} of {self.shapes}, {self.type}>"

    def _slow(self, *arrays: Any, out: Any = None) -> Any:
        if out is None and fast is None:
            try:
                call = self._ready.get(key_of(arrays))
            except AttributeError:
                call = None
            made = call(arrays) if call is not None else None
            if made is not None:
                return made[0] if made[0].shape else made[0][()]
        import numpy as np
        given = arrays
        if len(arrays) != len(self.shapes):
            raise CallError(f"the expression takes {len(self.shapes)} arrays, not {len(arrays)}")
        arrays = tuple(as_array(a, k) for k, a in enumerate(arrays))
        for k, a in enumerate(arrays):
            if name_of(a.dtype) != self.type:
                raise DtypeError(f"operand {k} is {a.dtype}, the expression takes {self.type}", k)
        _check_out(out)
        if not all(a.flags.c_contiguous for a in arrays):
            found = self._call_views(given, arrays, out)
            if found is not None:
                return found
        sizes = {(k, d): arrays[k].shape[d] for k, d in self._axes if d < arrays[k].ndim}
        kernel = self._planned.source_for(sizes, sum(a.size for a in arrays)).kernels(self._threads)["einsum"]
        names = [arg.name for arg in kernel.args]
        dims = bind(kernel, dict(zip(names, arrays)), None)
        run, shape = self._plans.get(dims, (None, None))
        if run is None:
            size = dict(zip(kernel.dims, dims))
            run, shape = kernel.prepare(dims, self._threads), tuple(size.get(n, n) for n in kernel.args[-1].shape)
            if len(self._plans) > 256:
                self._plans.clear()
                self._ready.clear()
            self._plans[dims] = (run, shape)
        self._remember(kernel, dims, given, arrays, out, run, shape)
        ready = [plain(a) for a in arrays]
        if out is not None and (out.shape != shape or name_of(out.dtype) != self.type):
            raise ShapeError(f"out is {out.dtype} of shape {out.shape}, the result {self.type} of shape {shape}", "out")
        if out is not None and not out.flags.writeable:
            raise ArgumentError("out is read-only", "out")
        direct = out is not None and is_plain(out) and not any(overlap(out, a) for a in ready)
        place = out if direct else np.empty(shape, dtype_of(self.type))
        run((*ready, place), not direct)
        if out is None:
            return place if shape else place[()]
        if not direct:
            out[...] = place
        return out

    def _call_views(self, given, arrays, out):
        """The result of arrays that are not in C order, where kernels can read them so, or None."""
        import numpy as np
        fits = all(len(a.shape) == len(shape) and all(n is None or n == m for n, m in zip(shape, a.shape)) for a, shape in zip(arrays, self.shapes))
        if not fits or (out is not None and (name_of(out.dtype) != self.type or not out.flags.writeable)):
            return None
        key = *key_of(arrays), *[a.strides for a in arrays]
        known = self._ready.get(key) if out is None else None
        if known is not None:
            return known(arrays)
        found = _plan_of_views(self.equation, arrays, out, dtype_of(self.type), self._asked, self._optimize, False)
        if found is None:
            return None
        plan, views = found
        if out is not None and out.shape != (plan.shape if views.out is None else out.shape):
            return None
        if fast is None and out is None:
            self._ready[key] = _OfViews(plan, views)
        elif fast is not None and all(type(a) is np.ndarray and a.dtype == plan.compute for a in given) and (out is None or out.flags.c_contiguous or views.out is not None):
            run = plan.c_run(arrays, out)
            if run is not None:
                self._add(None, given, out, None, None, run)
        return plan.call(arrays, out, None, None, views)

    def _remember(self, kernel, dims, given, arrays, out, run, shape):
        """Prepares calls of arrays like these."""
        if not all(a.dtype == dtype_of(self.type) for a in arrays):
            return
        if fast is None:
            self._ready[key_of(arrays)] = Ready(run, [(shape, dtype_of(self.type))])
            return
        c_run = einsum_run(kernel, dims, self._threads, [a.shape for a in arrays], shape, dtype_of(self.type), "r" * len(arrays) + ("n" if out is None else "o"))
        if c_run is not None:
            self._add(None, given, out, None, None, c_run)


def expression(equation: Any, *operands: Any, dtype: Any = None, threads: int | None = None, optimize: Optimize = None) -> Expression:
    """A contraction that is compiled once and called often: `f = tdsl.expression("ij,jk->ik", (None, 3), (3, None))`, then `f(A, B)`.

    operands: of each the shape, in which None leaves an extent to the call, or an array that has the shape and the type. dtype: the type of all
    of them, by name or as NumPy has it; default that to which given arrays promote, f64 without any. threads, optimize: as of `einsum`.
    The interleaved form is taken too. Raises CompileError, DtypeError.
    """
    if not isinstance(equation, str):
        equation, operands = _equation.interleaved((equation, *operands))
    arrays = [x for x in operands if hasattr(x, "shape") and hasattr(x, "dtype")]
    shapes = [x.shape if hasattr(x, "shape") else x for x in operands]
    if dtype is None:
        dtype = _common_dtype([as_array(a, k) for k, a in enumerate(arrays)], None, "safe") if arrays else "f64"
    wanted = to_dtype(dtype)
    type_name = name_of(wanted)
    if type_name is None or wanted.name in _NARROW:  # what is summed of short integers is another type
        raise DtypeError(f"{dtype} is no element type of kernels", "dtype")
    return Expression(equation, _equation.shapes_of(shapes), type_name, threads, optimize)
