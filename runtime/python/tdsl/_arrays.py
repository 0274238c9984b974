# SPDX-License-Identifier: Apache-2.0
"""Element types, and arrays as kernels take them: C order, aligned, in the machine's byte order."""
import functools

from ._errors import ArgumentError, CopyWarning, DtypeError, warn

# By the number in tdsl/abi.h.
NAMES = {1: "f64", 2: "f32", 3: "f16", 4: "bf16", 5: "i32", 6: "i64", 7: "bool", 8: "c64", 9: "c128",
         10: "i8", 11: "u8", 12: "i16", 13: "u16", 14: "u32", 15: "f8e4m3", 16: "f8e5m2", 17: "f8e4m3fn"}
_NUMPY = {"f64": "float64", "f32": "float32", "f16": "float16", "i32": "int32", "i64": "int64", "bool": "bool",
          "c64": "complex64", "c128": "complex128", "i8": "int8", "u8": "uint8", "i16": "int16", "u16": "uint16", "u32": "uint32"}
SHORT = {"f8e4m3": "float8_e4m3", "f8e5m2": "float8_e5m2", "f8e4m3fn": "float8_e4m3fn", "bf16": "bfloat16"}  # of ml_dtypes
_HOST = 1, 3, 11, 13  # DLPack's numbers: the CPU, and what a CPU reads of CUDA's and ROCm's host memory
_PATTERNS = [name for name in SHORT if name != "bf16"]
_TDSL = {name: ours for ours, name in (_NUMPY | {ours: SHORT[ours] for ours in _PATTERNS}).items()}


@functools.lru_cache(maxsize=None)
def dtype_of(name):
    """NumPy's dtype for a type of the language. bf16 and floats of 8 bits are those of ml_dtypes; where that package is not installed, V2 and uint8."""
    import numpy as np
    if name in SHORT:
        try:
            import ml_dtypes  # type: ignore[import-not-found, unused-ignore]
            return np.dtype(getattr(ml_dtypes, SHORT[name]))
        except (ImportError, AttributeError):
            return np.dtype("V2" if name == "bf16" else "u1")
    return np.dtype(_NUMPY[name])


def is_bf16(dtype):
    """V2 is what NumPy's files have for it."""
    return dtype.itemsize == 2 and (dtype.name == "bfloat16" or (dtype.kind == "V" and dtype.names is None))


def name_of(dtype):
    """The language's name of a NumPy dtype, or None."""
    return "bf16" if is_bf16(dtype) else _TDSL.get(dtype.name)


def is_of(dtype, name):
    """Does a NumPy dtype have elements of a type of the language? Floats of 8 bits may be their patterns."""
    return name_of(dtype) == name or (name in _PATTERNS and dtype.name == "uint8")


def to_dtype(dtype):
    """A dtype from a name of the language or from whatever NumPy takes."""
    import numpy as np
    if isinstance(dtype, str) and (dtype in _NUMPY or dtype in SHORT):
        return dtype_of(dtype)
    try:
        return np.dtype(dtype)
    except TypeError:
        raise DtypeError(f"{dtype!r} is no element type", "dtype") from None


def as_array(x, argument):
    """An ndarray of x without a copy where that is possible."""
    import numpy as np
    if type(x) is np.ndarray:
        return x
    device = getattr(x, "__dlpack_device__", None)
    if hasattr(x, "__cuda_array_interface__") or (device is not None and device()[0] not in _HOST):
        raise DtypeError(f"argument {argument!r} is in the memory of a GPU or another device; kernels take arrays in the host's memory", argument)
    if str(getattr(x, "dtype", "")).startswith("torch."):
        from .torch import has_derivative, to_numpy
        if has_derivative(x):
            raise DtypeError(f"argument {argument!r} is followed for derivatives, which arrays of NumPy lose: .detach() it, or call tdsl.torch.einsum", argument)
        return to_numpy(x)
    if hasattr(x, "__dlpack__") and not hasattr(x, "__array__"):
        return np.from_dlpack(x)
    if not isinstance(x, np.ndarray):
        from . import _foreign
        _foreign.refuse(x, argument)
    try:
        return np.asarray(x)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"argument {argument!r} is no array: {error}", argument) from None


def is_plain(a):
    """Can a kernel read it where it is?"""
    flags = a.flags
    return flags.c_contiguous and flags.aligned and a.dtype.isnative


def plain(a, _level=None):
    """The array, or a copy that a kernel can read, with a warning."""
    import numpy as np
    if is_plain(a):
        return a
    why = "is not in C order" if a.dtype.isnative and a.flags.aligned else "is not aligned" if a.dtype.isnative else "has swapped bytes"
    warn(f"an array of shape {a.shape} {why} and was copied", CopyWarning)
    return np.array(a, dtype=a.dtype.newbyteorder("="), order="C", copy=True)


def _from_interface(a):
    return a.__array_interface__["data"][0]


def _make_pointer():
    """In CPython an ndarray begins with the object's head and the address, as NumPy's C interface has it, which is read four times faster
    than by __array_interface__; where that turns out otherwise, that is used."""
    import ctypes
    import sys

    import numpy as np
    if sys.implementation.name != "cpython":
        return _from_interface
    offset, read = object.__basicsize__, ctypes.c_size_t.from_address

    def from_object(a):
        return read(id(a) + offset).value
    tests = np.arange(6.0), np.arange(6)[2:], np.empty((2, 0))
    direct = all(from_object(a) == _from_interface(a) for a in tests)
    return from_object if direct else _from_interface


def pointer(a):
    """The address of the first element of an ndarray."""
    global pointer
    pointer = _make_pointer()
    return pointer(a)


class Ready:
    """A call that was prepared for arrays of some shapes and types: `run` of a kernel, shapes and types of its results, and the
    positions of arrays that are updated in place."""
    __slots__ = "run", "results", "updated"

    def __init__(self, run, results, updated=()):
        self.run, self.results, self.updated = run, results, updated

    def __call__(self, arrays):
        """New results; None, and nothing is done, where an array has to be copied first, or Python has to say what is wrong."""
        import numpy as np
        for a in arrays:
            if type(a) is not np.ndarray:
                return None
            flags = a.flags
            if not (flags.c_contiguous and flags.aligned):
                return None
        for k in self.updated:
            if not arrays[k].flags.writeable or any(i != k and overlap(arrays[k], a) for i, a in enumerate(arrays)):
                return None
        made = [np.empty(shape, dtype) for shape, dtype in self.results]
        self.run((*arrays, *made), not self.updated)
        return made


def key_of(arrays):
    """Shapes and types of things that have them; AttributeError else."""
    return *[a.shape for a in arrays], *[a.dtype for a in arrays]


def overlap(a, b):
    """Do two arrays share bytes? Of those that are not in C order, all between their ends count."""
    if a.nbytes == 0 or b.nbytes == 0:
        return False
    if not (a.flags.c_contiguous and b.flags.c_contiguous):
        import numpy as np
        return np.may_share_memory(a, b)
    first, second = pointer(a), pointer(b)
    return first < second + b.nbytes and second < first + a.nbytes


def scalar(x, name, argument):
    """A number as an array without dimensions, in a type of the language; nothing is cut off."""
    import numpy as np
    wanted = dtype_of(name)
    whole = type(x) is int and wanted.kind in "iu" and name not in SHORT
    if whole and not np.iinfo(wanted).min <= x <= np.iinfo(wanted).max:
        raise ArgumentError(f"argument {argument!r}: {x} does not fit {name}", argument)
    a = np.asarray(x, dtype=wanted if whole else None)
    if a.shape != ():
        raise ArgumentError(f"argument {argument!r} is a scalar, not an array of shape {a.shape}", argument)
    if name == "bf16":
        if is_bf16(a.dtype):
            return a
    if name in SHORT and wanted.name != SHORT[name]:
        raise DtypeError(f"argument {argument!r} is {name}: its numbers need the package ml_dtypes", argument)
    if isinstance(x, (bool, int, float, complex)):
        order = "biufc" if name != "bool" else "b"
        if order.find(a.dtype.kind) > order.find("f" if name in SHORT else wanted.kind) or a.dtype.kind not in order:
            raise DtypeError(f"argument {argument!r} is {name}, not {type(x).__name__}", argument)
    elif not (a.dtype.kind in "biufc" and (np.can_cast(a.dtype, wanted, "same_kind"))):
        raise DtypeError(f"argument {argument!r} is {name}, not {a.dtype}", argument)
    return a.astype(wanted)
