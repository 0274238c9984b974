# SPDX-License-Identifier: Apache-2.0
"""TDSL on NumPy arrays: `einsum`, `expression`, `compile`, `load`, `path`.

Kernels are compiled to C and kept on disk; docs/python.md of TDSL has examples of everything here. Importing this
package imports neither NumPy nor its own parts, which come when they are first used.
"""
__version__ = "0.1.0"
_PARTS = {
    "_cache": ["cache_clear", "cache_info"],
    "_einsum": ["Expression", "einsum", "expression"],
    "_errors": ["ArgumentError", "CCompilerError", "CompileError", "CompileWarning", "CopyWarning", "DtypeError", "Error",
                "OverlapError", "ShapeError", "SlowWarning", "WorkspaceError"],
    "_path": ["Path", "path"],
    "_program": ["Kernel", "Program", "compile", "load"],
}
_MODULES = ["nki"]
_PART_OF = {name: part for part, names in _PARTS.items() for name in names}
__all__ = sorted(_PART_OF)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import nki
    from ._cache import cache_clear, cache_info
    from ._einsum import Expression, einsum, expression
    from ._errors import (ArgumentError, CCompilerError, CompileError, CompileWarning, CopyWarning, DtypeError, Error,
                          OverlapError, ShapeError, SlowWarning, WorkspaceError)
    from ._path import Path, path
    from ._program import Kernel, Program, compile, load


def __getattr__(name):
    from importlib import import_module
    part = _PART_OF.get(name)
    if name in _MODULES:
        return import_module("." + name, __name__)
    if part is None:
        raise AttributeError(f"module 'tdsl' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module("." + part, __name__), name)
    return value


def __dir__():
    return sorted({*globals(), *__all__, *_MODULES})
