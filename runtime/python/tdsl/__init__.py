# SPDX-License-Identifier: Apache-2.0
"""TDSL on NumPy arrays: `einsum`, `expression`, `compile`, `load`, `path`.

Kernels are compiled to C and kept on disk; docs/python.md of TDSL has examples of everything here. Importing this
package imports neither NumPy nor its own parts, which come when they are first used.
"""
__version__ = "0.1.0"
_PARTS = {
    "_cache": ["cache_clear", "cache_info"],
    "_comm": ["ThreadComm", "thread_ranks"],
    "convert": ["Converted", "from_einsum_list", "from_jaxpr", "from_onnx", "from_pdaggerq"],
    "_contract": ["contract", "tensordot", "transpose"],
    "_einsum": ["Expression", "einsum", "expression"],
    "_errors": ["ArgumentError", "CCompilerError", "CallError", "CompileError", "CompileWarning", "ConversionError", "CopyWarning", "DtypeError", "Error",
                "DefiniteError", "FileError", "OverlapError", "PeerError", "PositionError", "RankTimeoutError", "ShapeError", "SlowWarning", "WorkspaceError"],
    "_path": ["Path", "einsum_path", "path"],
    "_program": ["Kernel", "Program", "compile", "load"],
    "_ranks": ["Blocks", "gather", "scatter"],
    "_warm": ["background", "warm"],
}
_PART_OF = {name: part for part, names in _PARTS.items() for name in names}
__all__ = sorted(_PART_OF)
_MODULES = "convert", "cotengra", "jax", "nki", "opt_einsum", "pictures", "pyscf", "torch", "trnblas", "trnfft", "trnsolver", "trntensor", "xarray"  # most import the package of their name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._cache import cache_clear as cache_clear, cache_info as cache_info
    from ._comm import ThreadComm as ThreadComm, thread_ranks as thread_ranks
    from .convert import (Converted as Converted, from_einsum_list as from_einsum_list, from_jaxpr as from_jaxpr, from_onnx as from_onnx,
                          from_pdaggerq as from_pdaggerq)
    from ._contract import contract as contract, tensordot as tensordot, transpose as transpose
    from ._einsum import Expression as Expression, einsum as einsum, expression as expression
    from ._errors import (ArgumentError as ArgumentError, CCompilerError as CCompilerError, CallError as CallError, CompileError as CompileError,
                          CompileWarning as CompileWarning, ConversionError as ConversionError, CopyWarning as CopyWarning, DtypeError as DtypeError, Error as Error,
                          DefiniteError as DefiniteError, FileError as FileError, OverlapError as OverlapError, PeerError as PeerError, PositionError as PositionError,
                          RankTimeoutError as RankTimeoutError, ShapeError as ShapeError, SlowWarning as SlowWarning, WorkspaceError as WorkspaceError)
    from ._path import Path as Path, einsum_path as einsum_path, path as path
    from ._program import Kernel as Kernel, Program as Program, compile as compile, load as load
    from ._ranks import Blocks as Blocks, gather as gather, scatter as scatter
    from ._warm import background as background, warm as warm
else:
    def __getattr__(name: str):
        from importlib import import_module
        if name in _MODULES:
            return import_module("." + name, __name__)
        part = _PART_OF.get(name)
        if part is None:
            raise AttributeError(f"module 'tdsl' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module("." + part, __name__), name)
        return value

    def __dir__():
        return sorted({*globals(), *__all__, *_MODULES})

from . import _hooks  # noqa: E402

_hooks.install()
