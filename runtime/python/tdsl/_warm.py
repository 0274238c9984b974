# SPDX-License-Identifier: Apache-2.0
"""Kernels that are compiled before they are called, or while NumPy computes: `warm`, `background`."""
from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor
    from typing import Any, Iterable

from . import _cache, _einsum, _equation, _progress
from ._arrays import as_array, to_dtype
from ._errors import ArgumentError, CallError, ShapeError
from ._locks import Lock
from ._program import Kernel, Program, threads_of, usable_cpus


def _einsum_of(item, dtype, threads):
    """(what is shared by others of the string, a function that compiles it) of (equation, operand...)."""
    equation, *operands = item
    if not isinstance(equation, str):
        equation, operands = _equation.interleaved(item)
    is_array = [hasattr(x, "shape") for x in operands]
    arrays = [as_array(x, k) for k, x in enumerate(operands) if is_array[k]]
    common = to_dtype(dtype) if dtype is not None else _einsum._common_dtype(arrays, None, "safe") if arrays else to_dtype("f64")
    if operands and all(is_array):
        return lambda: _einsum._plan_of(equation, arrays, None, common, threads, None, False)
    shapes = _equation.shapes_of([getattr(x, "shape", x) for x in operands])
    if any(n is None for shape in shapes for n in shape):
        raise ShapeError(f"warm: {equation!r} with open extents: tdsl.expression makes such a function, which warm takes too", "what")
    _einsum.choose(equation, shapes, common, False, None)
    return lambda: _einsum._found_plan(equation, shapes, common, threads, None, False)


def _work_of(item, dtype, threads):
    """A function that compiles what is named."""
    if isinstance(item, (Program, Kernel, _einsum.Expression)):
        return lambda: item._source.kernels(threads_of(threads))
    if isinstance(item, (tuple, list)) and item:
        return _einsum_of(item, dtype, threads)
    raise CallError(f"warm takes (string, operand...), kernels, programs and expressions, not {type(item).__name__}")


def warm(what: Iterable[Any], dtype: Any = None, threads: int | None = None, jobs: int | None = None) -> int:
    """Compiles side by side what will be called: `tdsl.warm([("ij,jk->ik", (300, 200), (200, 100)), ("ij->i", A), program])`.

    what: for an einsum its string and of each operand the shape, or an array; programs, kernels, and expressions. dtype: of the einsums of shapes, default that of
    the arrays beside them, else f64. threads: with how many they will be called. jobs: how many compilers run at a time, default one for each CPU that the process may use. Returns how many kernels were
    not on disk yet. Raises what the calls would raise.
    """
    from concurrent.futures import ThreadPoolExecutor
    if isinstance(what, (str, Program, Kernel, _einsum.Expression)):
        raise CallError(f"warm takes a list of what is to be compiled, not {type(what).__name__}")
    if jobs is not None and jobs < 1:
        raise ArgumentError(f"jobs is {jobs}", "jobs")
    work = [_work_of(item, dtype, threads) for item in what]
    before = _cache.compiled()
    with _progress.Expected(len(work)), ThreadPoolExecutor(jobs or usable_cpus()) as pool:
        try:
            for done in [pool.submit(task) for task in work]:
                done.result()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return _cache.compiled() - before


_TYPES = "float64", "float32", "complex128", "complex64", "int64", "int32"  # in which NumPy computes as kernels do, to rounding
_WAIT = 0.03  # seconds in which what is on disk is loaded
_lock = Lock()
_pool: tuple[int, ThreadPoolExecutor] | None = None  # the process, and its pool
_pending: dict[Any, Future[Any]] = {}


def _submit(task):
    global _pool
    with _lock:
        if _pool is None or _pool[0] != os.getpid():  # threads are not there in a process that was forked
            from concurrent.futures import ThreadPoolExecutor
            _pending.clear()
            _pool = os.getpid(), ThreadPoolExecutor(usable_cpus(), thread_name_prefix="tdsl-compile")
        return _pool[1].submit(task)


def numpys(equation, arrays, common, out, threads, optimize):
    """The result by NumPy while the kernel is compiled; None where it is there, or NumPy cannot compute it."""
    import numpy as np
    if common.name not in _TYPES:
        return None
    key = equation, common, threads, str(optimize), *[(a.shape, a.strides) for a in arrays], os.getpid()
    future = _pending.get(key)
    if future is None:
        future = _pending[key] = _submit(lambda: _einsum._plan_of(equation, arrays, out, common, threads, optimize, False))
        from concurrent.futures import wait
        wait([future], _WAIT)
    if future.done():
        _pending.pop(key, None)
        return None
    try:
        made = np.asarray(np.einsum(equation, *[a.astype(common, copy=False) for a in arrays], optimize=True), order="C")
    except (ValueError, TypeError):
        return None  # the string is to be refused, or has labels that NumPy has not
    if out is None:
        return made if made.ndim else made[()]
    if out.shape != made.shape or not np.can_cast(common, out.dtype, "safe") or not out.flags.writeable:
        return None
    out[...] = made
    return out


def background(on: bool = True) -> None:
    """From now on, einsum computes by NumPy while a kernel that it has not yet is compiled behind its back; `background(False)`: it waits for the kernel, as
    at first. TDSL_BACKGROUND=1 is the same from the start. Results of both agree to rounding; of f16, bf16 and short integers calls wait always."""
    _einsum.set_background(on)
