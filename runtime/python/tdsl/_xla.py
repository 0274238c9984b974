# SPDX-License-Identifier: Apache-2.0
"""einsum, and kernels of programs, as targets of XLA's typed foreign function interface (CPU): compiled code calls them without Python in between.

The handler is C (_xla.c) and needs the header of the jaxlib that is there, so it is compiled when jax is first used; where that cannot be, `jax.py` calls back to Python.
"""
from __future__ import annotations

import ctypes
import functools
import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

from . import _cache, _einsum
from ._arrays import dtype_of
from ._errors import Error
from ._program import Shape, _kernel_again, threads_of
from ._table import NativeKernel, _Threads

EINSUM, KERNEL = "tdsl_einsum", "tdsl_kernel"
# XLA's numbers of element types
TYPES = {1: "bool", 2: "i8", 3: "i16", 4: "i32", 5: "i64", 6: "u8", 7: "u16", 8: "u32", 10: "f16", 11: "f32", 12: "f64", 15: "c64", 16: "bf16", 18: "c128"}
OF_EINSUM = {"bool", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128", "bfloat16"}
_MESSAGE_SIZE = 1024  # as _xla.c has it


class _Prepared(ctypes.Structure):
    _fields_ = [("call", ctypes.c_void_p), ("dims", ctypes.c_void_p), ("workspace", ctypes.c_size_t), ("threads", ctypes.c_void_p)]


class _Request(ctypes.Structure):
    _fields_ = [("text", ctypes.c_void_p), ("length", ctypes.c_int64), ("words", ctypes.POINTER(ctypes.c_int64)), ("message", ctypes.c_void_p)]


_kept: dict[int, Any] = {}  # by address, what XLA's table points to, for the life of the process


def program_of(kernel):
    """What says which kernel it is, in other processes too where its program is a text."""
    arguments, text = kernel._source.made_of
    return json.dumps({"arguments": arguments, "text": text, "kernel": kernel.name})


@functools.lru_cache(maxsize=256)
def _kernel_of(program):
    said = json.loads(program)
    return _kernel_again(tuple(said["arguments"]), said["text"], said["kernel"])


def _of_einsum(equation, types, shapes):
    """(kernel, open dims, threads) for operands in C order, and the result."""
    if len(set(types)) != 1:
        raise Error(f"einsum: operands and result of types {types}")
    plan = _einsum._found_plan(equation, tuple(shapes[:-1]), dtype_of(types[0]), None, None, False)
    if plan.shape != shapes[-1]:
        raise Error(f"einsum: {equation!r} of {shapes[:-1]} has shape {plan.shape}, not {shapes[-1]}")
    return plan._kernel_of_runs


def _of_program(program, types, shapes):
    """The same for the parameters of a kernel, and its results."""
    of = _kernel_of(program)
    args = {arg.name: Shape(shape) for arg, shape in zip(of.args, shapes)}
    if [arg.type for arg in of.args] != types:
        raise Error(f"{of.name}: called with types {types}")
    threads = threads_of(None)
    kernel, dims = of._compiled(args, None, threads)
    return kernel, dims, threads


def _prepare(text, types, shapes):
    """The call of a kernel for arrays in C order."""
    kernel, dims, threads = (_of_program if text.startswith("{") else _of_einsum)(text, types, shapes)
    if not isinstance(kernel, NativeKernel):
        raise Error(f"{kernel.name} is not compiled")
    c_dims = (ctypes.c_int64 * max(1, len(dims)))(*dims)
    c_threads = _Threads(threads, 0, None, None) if threads > 1 else None
    made = _Prepared(kernel.address_of_call, ctypes.addressof(c_dims), kernel.workspace(dims, threads), ctypes.addressof(c_threads) if c_threads is not None else None)
    _kept[ctypes.addressof(made)] = made, kernel, c_dims, c_threads
    return ctypes.addressof(made)


def _write(message, error):
    text = f"tdsl: {error}".encode()[: _MESSAGE_SIZE - 1]
    ctypes.memmove(message, text + b"\0", len(text) + 1)


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
def _answer(address):
    request = _Request.from_address(address)
    try:
        words, at, types, shapes = request.words, 1, [], []
        for _ in range(words[0]):
            types.append(TYPES[words[at]])
            shapes.append(tuple(words[at + 2 + k] for k in range(words[at + 1])))
            at += 2 + len(shapes[-1])
        return _prepare(ctypes.string_at(request.text, request.length).decode(), types, shapes)
    except BaseException as error:  # noqa: BLE001  (nothing may pass through XLA)
        _write(request.message, error)
        return None


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
def _explain(prepared, status, arguments, message):
    _, kernel, c_dims, _ = _kept[prepared]
    try:
        kernel.fail(status, ctypes.cast(c_dims, ctypes.c_void_p), arguments)
    except BaseException as error:  # noqa: BLE001
        _write(message, error)


def register():
    """Makes the targets known to jax; False where the handler cannot be compiled."""
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
    library.tdsl_xla_begin.argtypes = [ctypes.c_void_p] * 2
    library.tdsl_xla_begin(ctypes.cast(_answer, ctypes.c_void_p), ctypes.cast(_explain, ctypes.c_void_p))
    for target in EINSUM, KERNEL:
        jax.ffi.register_ffi_target(target, jax.ffi.pycapsule(library.tdsl_xla_call), platform="cpu")
    _kept[0] = library
    return True
