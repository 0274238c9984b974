# SPDX-License-Identifier: Apache-2.0
"""einsum as a target of XLA's typed foreign function interface (CPU): compiled code calls kernels without Python in between.

The handler is C (_xla.c) and needs the header of the jaxlib that is there, so it is compiled when jax is first used; where that cannot be, `jax.py` calls back to Python.
"""
import ctypes
import os

from . import _cache, _einsum
from ._arrays import dtype_of
from ._errors import Error
from ._table import NativeKernel, _Threads

TARGET = "tdsl_einsum"
# XLA's numbers of element types that kernels compute in
_TYPES = {1: "bool", 4: "i32", 5: "i64", 10: "f16", 11: "f32", 12: "f64", 15: "c64", 16: "bf16", 18: "c128"}
NAMES = {"bool", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128", "bfloat16"}
_MESSAGE_SIZE = 1024  # as _xla.c has it


class _Prepared(ctypes.Structure):
    _fields_ = [("call", ctypes.c_void_p), ("dims", ctypes.c_void_p), ("workspace", ctypes.c_size_t), ("threads", ctypes.c_void_p)]


class _Request(ctypes.Structure):
    _fields_ = [("text", ctypes.c_void_p), ("length", ctypes.c_int64), ("words", ctypes.POINTER(ctypes.c_int64)), ("message", ctypes.c_void_p)]


_kept = []  # what XLA's table points to, for the life of the process


def _prepare(equation, dtypes, shapes):
    """The call of a kernel for operands in C order."""
    names = {_TYPES[t] for t in dtypes}
    if len(names) != 1:
        raise Error(f"einsum: operands and result of types {names}")
    plan = _einsum._found_plan(equation, tuple(shapes[:-1]), dtype_of(names.pop()), None, None, False)
    kernel, dims, threads = plan._kernel_of_runs
    if not isinstance(kernel, NativeKernel) or plan.shape != shapes[-1]:
        raise Error(f"einsum: {equation!r} has no compiled kernel for {shapes}")
    c_dims = (ctypes.c_int64 * max(1, len(dims)))(*dims)
    c_threads = _Threads(threads, 0, None, None) if threads > 1 else None
    made = _Prepared(kernel.address_of_call, ctypes.addressof(c_dims), kernel.workspace(dims, threads), ctypes.addressof(c_threads) if c_threads is not None else None)
    _kept.append((made, kernel, c_dims, c_threads))
    return ctypes.addressof(made)


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
def _answer(address):
    request = _Request.from_address(address)
    try:
        words, at, dtypes, shapes = request.words, 1, [], []
        for _ in range(words[0]):
            dtypes.append(words[at])
            shapes.append(tuple(words[at + 2 + k] for k in range(words[at + 1])))
            at += 2 + len(shapes[-1])
        return _prepare(ctypes.string_at(request.text, request.length).decode(), dtypes, shapes)
    except BaseException as error:  # noqa: BLE001  (nothing may pass through XLA)
        text = f"tdsl: {error}".encode()[: _MESSAGE_SIZE - 1]
        ctypes.memmove(request.message, text + b"\0", len(text) + 1)
        return None


def register():
    """Makes the target known to jax; False where the handler cannot be compiled."""
    import jax
    cc = _cache.compiler()
    header = os.path.join(jax.ffi.include_dir(), "xla", "ffi", "api", "c_api.h")
    if cc is None or not os.path.exists(header):
        return False
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "_xla.c"), encoding="utf-8") as f:
        text = f.read()
    try:
        library = _cache.library(f'/* of jaxlib {jax.lib.__version__} */\n#include "{header}"\n{text}', cc, False)
    except (Error, OSError):
        return False
    library.tdsl_xla_begin.argtypes = [ctypes.c_void_p]
    library.tdsl_xla_begin(ctypes.cast(_answer, ctypes.c_void_p))
    jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(library.tdsl_xla_call), platform="cpu")
    _kept.append(library)
    return True
