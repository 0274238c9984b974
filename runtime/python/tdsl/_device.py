# SPDX-License-Identifier: Apache-2.0
"""Tensors in the memory of a Neuron device, by libtdsl and its library of the device (docs/runtime.md)."""
import ctypes
import functools

from . import _tools
from ._arrays import NAMES, dtype_of, name_of, plain, pointer
from ._errors import DtypeError, Error
from ._locks import Lock
from ._nki_dispatch import DeviceError

_NUMBERS = {name: number for number, name in NAMES.items()}


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("extents", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32), ("device", ctypes.c_void_p)]


class _Report(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("status", ctypes.c_int32), ("backend", ctypes.c_int32), ("reason", ctypes.c_int32),
                ("cause", ctypes.c_int32), ("native", ctypes.c_int32), ("multiply_adds", ctypes.c_uint64), ("min_nki_flops", ctypes.c_double),
                ("device_writes", ctypes.c_uint32), ("device_reads", ctypes.c_uint32), ("kernel", ctypes.c_char_p),
                ("message", ctypes.c_char * 512)]


def _library():
    try:
        return _tools.libtdsl()
    except Error as error:
        raise DeviceError(str(error)) from None


class _Context:
    """libtdsl's context, one for the process."""

    def __init__(self):
        self.library = _library()
        self.lock = Lock()
        self._context = ctypes.c_void_p()
        self.call("tdsl_context_create", None, ctypes.byref(self._context))

    def call(self, function, *arguments):
        """Calls a function that ends with a report, which is returned; raises DeviceError."""
        report = _Report(struct_size=ctypes.sizeof(_Report))
        status = getattr(self.library, function)(*arguments, ctypes.byref(report))
        if status != 0:
            raise DeviceError(report.message.decode(errors="replace") or f"{function}: status {status}")
        return report

    def tensor(self, function, tensor):
        """The same for a function of the context and a tensor."""
        with self.lock:
            return self.call(function, self._context, ctypes.byref(tensor))

    def free(self, tensor):
        """Gives device memory back."""
        with self.lock:
            self.library.tdsl_device_free(self._context, ctypes.byref(tensor))


@functools.lru_cache(maxsize=None)
def context():
    """The process's context; DeviceError without libtdsl."""
    return _Context()


class DeviceTensor:
    """An array in the memory of a device; `numpy()` brings it back, and so does whatever takes arrays."""

    def __init__(self, array, kind=None):
        name = name_of(array.dtype)
        if name is None:
            raise DtypeError(f"{array.dtype} is no element type of kernels")
        self.dtype, self.shape, self.ndim, self.kind = array.dtype, array.shape, array.ndim, kind
        self._host = plain(array, 3).copy()
        self._extents = (ctypes.c_int64 * max(1, array.ndim))(*array.shape)
        self._tensor = _Tensor(pointer(self._host), ctypes.addressof(self._extents), None, _NUMBERS[name], array.ndim, None)
        self._context = context()
        self._context.tensor("tdsl_to_device", self._tensor)
        if not self._tensor.device:
            raise DeviceError("there is no device: TDSL_BACKEND is c")

    def numpy(self):
        """A new array of NumPy."""
        self._context.tensor("tdsl_from_device", self._tensor)
        return self._host.copy()

    def __array__(self, dtype=None, copy=None):
        del copy
        a = self.numpy()
        return a if dtype is None else a.astype(dtype)

    def __repr__(self):
        return f"<tensor of {self.dtype} {list(self.shape)} on the device>"

    def __del__(self):
        tensor = getattr(self, "_tensor", None)
        if tensor is not None and tensor.device:
            self._context.free(tensor)


def present():
    """Does a small tensor reach a device?"""
    import numpy as np
    try:
        DeviceTensor(np.zeros(1, dtype_of("f32")))
    except Error:
        return False
    return True
