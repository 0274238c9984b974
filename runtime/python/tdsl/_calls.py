# SPDX-License-Identifier: Apache-2.0
"""Prepared calls: by the C module `_fast` where it loads, else by Python code and ctypes.

`Calls` is the base of kernels and expressions. Its `__call__` looks for a prepared call of the same shapes and types, and calls
`_slow` where there is none. TDSL_NO_MODULE=1 turns the module off.
"""
from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys

from . import _tools
from ._table import LONG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_VERSION = 3


def _places() -> Any:
    """Where the module is: in the package, in the build tree of a checkout, or beside the tools that TDSL_TDSLC names."""
    yield from _tools.package_folders()
    if os.environ.get("TDSL_TDSLC"):
        yield os.path.join(os.path.dirname(os.environ["TDSL_TDSLC"]), "..", "python")
    yield os.path.join(_tools.HERE, "..", "..", "..", "build", "python")


def _load() -> Any:
    suffix = ".abi3.so"
    if os.environ.get("TDSL_NO_MODULE", "0") not in ("", "0") or sys.version_info < (3, 11):
        return None
    if sys.implementation.name != "cpython" or suffix not in importlib.machinery.EXTENSION_SUFFIXES:
        return None
    for folder in _places():
        path = os.path.join(folder, "_fast" + suffix)
        if os.path.exists(path):
            try:
                spec = importlib.util.spec_from_file_location("tdsl._fast", path)
                module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
                spec.loader.exec_module(module)  # type: ignore[union-attr]
            except ImportError:
                continue
            if module.VERSION == _VERSION:
                return module
    return None


class _PythonCalls:
    """What `_fast.Calls` is, without prepared calls."""

    def __call__(self, /, *given, **named):
        return self._slow(*given, **named)

    def _take(self, names, most):
        pass

    def _forget(self):
        pass

    def _count(self):
        return 0


fast = _load()
if TYPE_CHECKING:
    class Calls:
        def __call__(self, *given: Any, **named: Any) -> Any: ...
        def _take(self, names: tuple[str, ...], most: int) -> None: ...
        def _forget(self) -> None: ...
        def _count(self) -> int: ...
        def _add(self, equation: str | None, arrays: tuple[Any, ...], out: Any, threads: int | None, options: Any, run: Any) -> bool: ...
        def _find(self, equation: str | None, arrays: tuple[Any, ...], out: Any, threads: int | None, options: Any) -> Any: ...
else:
    Calls = fast.Calls if fast is not None else _PythonCalls
_is_set_up = False


def run_of(kernel, dims, threads, roles, results, gather, elements):
    """The call of a compiled kernel for `Calls._add`, or None where the module cannot take it.

    roles: for each argument "r" read, "w" updated in place, "s" a number, "n" a new result, "o" a result that the caller gives, "R" and "O" of
    arrays that are not in C order, for which the kernel was made;
    results: for each argument (shape, dtype) if its role is "n"; gather: the type of several results, or None; elements: of
    all arrays, for a guess whether the call is long enough to release the GIL. Calls that a Ctrl-C may leave stay in Python.
    """
    global _is_set_up
    if fast is None or not hasattr(kernel, "address_of_call") or len(roles) >= 32 or kernel.multiply_adds(dims) > LONG:
        return None
    if not _is_set_up:
        import numpy as np
        fast.setup(np.ndarray, np.empty)
        _is_set_up = True
    long = max(kernel.multiply_adds(dims), elements) > 100000
    codes = bytes(kernel.codes)
    return fast.Run(kernel.address_of_call, b"".join(int(n).to_bytes(8, sys.byteorder, signed=True) for n in dims), threads, kernel.workspace(dims, threads), long,
                    roles.encode(), codes, tuple(results), gather, kernel)
