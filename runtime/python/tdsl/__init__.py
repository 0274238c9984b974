# SPDX-License-Identifier: Apache-2.0
"""TDSL on NumPy arrays: `einsum`, `expression`, `compile`, `load`, `path`.

Kernels are compiled to C and kept on disk; docs/python.md of TDSL has examples of everything here. Importing this
package imports no NumPy.
"""
from ._cache import cache_clear, cache_info
from ._einsum import Expression, einsum, expression
from ._errors import (ArgumentError, CCompilerError, CompileError, CompileWarning, CopyWarning, DtypeError, Error,
                      OverlapError, ShapeError, SlowWarning, WorkspaceError)
from ._path import Path, path
from ._program import Kernel, Program, compile, load  # noqa: A004

__version__ = "0.1.0"
__all__ = ["ArgumentError", "CCompilerError", "CompileError", "CompileWarning", "CopyWarning", "DtypeError", "Error",
           "Expression", "Kernel", "OverlapError", "Path", "Program", "ShapeError", "SlowWarning", "WorkspaceError",
           "cache_clear", "cache_info", "compile", "einsum", "expression", "load", "path"]
