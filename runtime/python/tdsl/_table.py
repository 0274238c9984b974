# SPDX-License-Identifier: Apache-2.0
"""Compiled kernels, called through the tables of tdsl/abi.h by ctypes, which releases the GIL meanwhile."""
import ctypes
import os
import threading

from . import _arrays
from ._arrays import NAMES, dtype_of
from ._errors import Error, WorkspaceError, raise_definite, raise_position, raise_status
from ._extents import Extent, text_of

ABI_VERSION = 6
_KEPT = 1 << 26  # bytes of workspace that a thread keeps between calls
_ROLES = {1: "in", 2: "out", 3: "inout", 4: "scalar"}
_c_int32, _c_size, _c_pointer = ctypes.c_int32, ctypes.c_size_t, ctypes.c_void_p


class _Extent(ctypes.Structure):
    _fields_ = [("dim", _c_int32), ("reserved", _c_int32), ("fixed", ctypes.c_int64)]


class _Dim(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("typical", ctypes.c_int64)]


class _Term(ctypes.Structure):
    _fields_ = [("dim", ctypes.c_int64), ("coefficient", ctypes.c_int64)]


class _Computed(ctypes.Structure):
    _fields_ = [("base", ctypes.c_int64), ("divisor", ctypes.c_int64), ("product", _c_int32), ("n_terms", _c_int32), ("terms", _c_pointer)]


class _Arg(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("role", _c_int32), ("dtype", _c_int32), ("rank", _c_int32),
                ("reserved", _c_int32), ("extents", _c_pointer), ("exchanges", _c_pointer), ("n_exchanges", ctypes.c_int64)]


_forked = []  # not empty: in such a process OpenMP's threads are not there, and GNU's waits for them
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _forked.append(True))


class _Threads(ctypes.Structure):
    _fields_ = [("count", _c_int32), ("reserved", _c_int32), ("run", _c_pointer), ("pool", _c_pointer)]


class _Outside(ctypes.Structure):
    _fields_ = [("array", ctypes.c_char_p), ("text", ctypes.c_char_p), ("indices", ctypes.c_char_p), ("dimension", _c_int32),
                ("n_indices", _c_int32), ("position", ctypes.c_int64), ("extent", ctypes.c_int64), ("index", ctypes.c_int64 * 64)]


class _Info(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("abi_version", ctypes.c_uint32), ("dim_size", ctypes.c_uint32),
                ("arg_size", ctypes.c_uint32), ("extent_size", ctypes.c_uint32), ("computed_size", ctypes.c_uint32),
                ("name", ctypes.c_char_p), ("source", ctypes.c_char_p), ("signature", ctypes.c_char_p),
                ("digest", ctypes.c_char_p), ("n_dims", _c_int32), ("n_args", _c_int32), ("dims", _c_pointer),
                ("args", _c_pointer), ("workspace_bytes", _c_pointer), ("multiply_adds", _c_pointer),
                ("call", _c_pointer), ("workspace_bytes_threads", _c_pointer), ("call_threads", _c_pointer),
                ("computed", _c_pointer), ("n_computed", _c_int32), ("reserved", _c_int32), ("outside", _c_pointer)]


_WORKSPACE = ctypes.CFUNCTYPE(_c_size, _c_pointer, _c_int32)
_CALL = ctypes.CFUNCTYPE(_c_int32, _c_pointer, _c_pointer, _c_pointer, _c_size, _c_pointer)
_OUTSIDE = ctypes.CFUNCTYPE(_c_int32, _c_pointer, _c_pointer, _c_pointer)
_COUNT = ctypes.CFUNCTYPE(ctypes.c_uint64, _c_pointer)


LONG = 2_000_000_000  # multiply-adds of calls that a Ctrl-C leaves: some tenths of a second


def _aside(compute, fresh):
    """Computes in another thread, so that this one hears of a Ctrl-C. With `fresh` results, which nobody else has, KeyboardInterrupt comes at once, and the kernel
    goes on by itself to its end; else it comes when the kernel has ended."""
    failed, ended = [], threading.Event()  # Thread.join takes a thread for ended where an interrupt came

    def work():
        try:
            compute()
        except BaseException as error:  # noqa: BLE001  (told below)
            failed.append(error)
        ended.set()
    threading.Thread(target=work, daemon=True).start()
    try:
        while not ended.wait(0.1):
            pass
    except KeyboardInterrupt:
        if not fresh:
            ended.wait()
        raise
    if failed:
        raise failed[0]


class Argument:
    """An argument of a kernel: its role ("in", "out", "inout", "scalar"), the language's name of its type, and its extents,
    each a number, the name of an open dim, or arithmetic with open dims as a text."""

    def __init__(self, name, role, type_name, shape):
        self.name, self.role, self.type, self.shape = name, role, type_name, tuple(shape)

    @property
    def dtype(self):
        return dtype_of(self.type)


class _Space(threading.local):
    """The workspace of this thread, which grows. A signal handler that computes in between leaves what it was."""
    array = None
    size = -1

    def take(self, size):
        import numpy as np
        if size <= self.size:
            return self.array
        array = np.empty(size, np.uint8)
        if size <= _KEPT:
            self.array, self.size = array, size
        return array


_space = _Space()


def _steps(structure, address, step, count):
    return [structure.from_address(address + k * step) for k in range(count)]


def _dims(dims):
    return (ctypes.c_int64 * max(1, len(dims)))(*dims)


class NativeKernel:
    """A kernel of a loaded library."""

    def __init__(self, library, address):
        info = _Info.from_address(address)
        if info.abi_version != ABI_VERSION or info.struct_size < ctypes.sizeof(_Info):
            raise Error(f"a compiled kernel has interface {info.abi_version}; this package needs {ABI_VERSION}")
        self._library, self._info = library, info
        self.name, self.signature = info.name.decode(), info.signature.decode()
        self.dims = [d.name.decode() for d in _steps(_Dim, info.dims, info.dim_size, info.n_dims)]
        names = [*self.dims]
        for c in _steps(_Computed, info.computed, info.computed_size, info.n_computed):
            terms = [(names[t.dim], t.coefficient) for t in _steps(_Term, c.terms, ctypes.sizeof(_Term), c.n_terms)]
            what = c.base, c.divisor, c.product != 0, terms
            names.append(Extent(text_of(*what), *what))
        self.computed = names[info.n_dims:]
        self.args = []
        for a in _steps(_Arg, info.args, info.arg_size, info.n_args):
            extents = _steps(_Extent, a.extents, info.extent_size, a.rank)
            shape = [e.fixed if e.dim < 0 else names[e.dim] for e in extents]
            self.args.append(Argument(a.name.decode(), _ROLES[a.role], NAMES[a.dtype], shape))
        self._workspace, self._call = _WORKSPACE(info.workspace_bytes_threads), _CALL(info.call_threads)
        self._multiply_adds = _COUNT(info.multiply_adds)
        self.address_of_call = info.call_threads
        self.codes = [a.dtype for a in _steps(_Arg, info.args, info.arg_size, info.n_args)]  # element types, as tdsl/abi.h has them

    def fail(self, status, dims, args, workspace=None):
        """Raises what a status means; dims, args, workspace: what the kernel was called with, arrays of C or their addresses; no workspace: it is gone."""
        first = _Outside()
        if status == -9 and self._info.outside and _OUTSIDE(self._info.outside)(dims, args, ctypes.addressof(first)):
            names = first.indices.decode().split(",")
            raise_position(self.name, first.array.decode(), first.dimension, first.position, first.extent, first.text.decode(),
                           dict(zip(names, first.index[:first.n_indices])))
        if status == -11 and workspace is not None:
            code = ctypes.c_int64.from_address(workspace + -workspace % 64).value
            raise_definite(self.name, code >> 31, code & 0x7fffffff)
        raise_status(status, self.name)

    def multiply_adds(self, dims):
        """How many a call performs."""
        return self._multiply_adds(_dims(dims))

    def workspace(self, dims, threads):
        """The bytes of workspace that a call needs."""
        size = self._workspace(_dims(dims), threads)
        if size == _c_size(-1).value:
            raise WorkspaceError(f"{self.name}: the size of an array or of its workspace does not fit 64 bits")
        return size

    def prepare(self, dims, threads):
        """A function of arrays in C order, one for each argument, for these open extents; and of whether all that is written is new, and may be left."""
        import numpy as np
        is_long = self.multiply_adds(dims) > LONG
        c_dims, size = _dims(dims), self.workspace(dims, threads)
        pointers, call, name = _c_pointer * len(self.args), self._call, self.name
        c_threads = ctypes.byref(_Threads(threads, 0, None, None)) if threads > 1 else None
        take = _space.take
        _arrays.pointer(np.empty(0))  # which then is the fast one
        pointer = _arrays.pointer

        def run(arrays, fresh=False):
            if is_long and threading.current_thread() is threading.main_thread():
                _aside(lambda: compute(arrays), fresh)
            else:
                compute(arrays)

        def compute(arrays):
            addresses, workspace = pointers(*[pointer(a) for a in arrays]), None
            if size > 0:
                try:
                    space = take(size)
                except MemoryError:
                    raise WorkspaceError(f"{name}: no memory for its workspace of {size} bytes") from None
                workspace = pointer(space)
            status = call(c_dims, addresses, workspace, size, None if _forked else c_threads)
            if status != 0:
                self.fail(status, c_dims, addresses, workspace)
        return run


def kernels_of(library, symbol):
    """The kernels of a generated file's list."""
    entries = (_c_pointer * (1 << 20)).in_dll(library, symbol)
    found = []
    while entries[len(found)]:
        found.append(NativeKernel(library, entries[len(found)]))
    return found
