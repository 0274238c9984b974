# SPDX-License-Identifier: Apache-2.0
"""Element types: sizes, how values are held, and exact rounding.

Floating tiles are held as NumPy float32 whose values are always representable in the tile's
own type: bfloat16 and tfloat32 are rounded to nearest even on the bit pattern, float16 by
NumPy's conversion (nearest even as well). Integers are held in their own NumPy type. On the
outside (files), bfloat16 travels as its bit pattern in uint16 and float16 as NumPy float16.
Conversion from floating point to integers rounds to nearest even and saturates.
"""

import numpy as np

from .errors import broken


class DType:
    """One element type. Compared by identity; the table below holds the only instances."""

    def __init__(self, name, size, kind, held, outside):
        self.name, self.size, self.kind = name, size, kind
        self.held, self.outside = np.dtype(held), np.dtype(outside)

    @property
    def is_float(self):
        return self.kind == "f"

    @property
    def is_int(self):
        return self.kind in "iu"

    def __repr__(self):
        return f"nl.{self.name}"


def _table():
    rows = [("float32", 4, "f", "f4", "f4"), ("tfloat32", 4, "f", "f4", "f4"),
            ("bfloat16", 2, "f", "f4", "u2"), ("float16", 2, "f", "f4", "f2")]
    for bits in (8, 16, 32):
        rows.append((f"int{bits}", bits // 8, "i", f"i{bits // 8}", f"i{bits // 8}"))
        rows.append((f"uint{bits}", bits // 8, "u", f"u{bits // 8}", f"u{bits // 8}"))
    return {row[0]: DType(*row) for row in rows}


TYPES = _table()
# Types the dialect has and this emulator does not hold: asking for one is not a typing error.
NOT_EMULATED = ("float8_e4m3", "float8_e5m2", "float8_e4m3fn", "float8_e8m0fnu", "bool_")


def round_low_bits(values, bits):
    """Round float32 values to nearest even, dropping `bits` low bits of the pattern."""
    values = np.ascontiguousarray(values, dtype=np.float32)
    word = values.view(np.uint32)
    half = np.uint32((1 << (bits - 1)) - 1)
    odd = (word >> np.uint32(bits)) & np.uint32(1)
    with np.errstate(over="ignore"):
        rounded = (word + half + odd) & np.uint32(~((1 << bits) - 1) & 0xFFFFFFFF)
    quiet = (word | np.uint32(0x00400000)) & np.uint32(~((1 << bits) - 1) & 0xFFFFFFFF)
    return np.where(np.isnan(values), quiet, rounded).astype(np.uint32).view(np.float32)


def cast(values, dtype):
    """Values (any NumPy array) as the held form of `dtype`, rounded as the device rounds."""
    values = np.asarray(values)
    if dtype.is_float:
        if values.dtype.kind in "iub":
            values = values.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            single = values.astype(np.float32, copy=False)
            if dtype.name == "bfloat16":
                return round_low_bits(single, 16)
            if dtype.name == "tfloat32":
                return round_low_bits(single, 13)
            if dtype.name == "float16":
                return single.astype(np.float16).astype(np.float32)
        return single
    info = np.iinfo(dtype.held)
    if values.dtype.kind == "f":
        values = np.nan_to_num(np.rint(values.astype(np.float64)), nan=0.0,
                               posinf=float(info.max), neginf=float(info.min))
        return np.clip(values, info.min, info.max).astype(dtype.held)
    return np.clip(values.astype(np.int64), info.min, info.max).astype(dtype.held)


def from_outside(array, dtype):
    """An array as read from a file, as held values of `dtype`; the array's type must match."""
    array = np.asarray(array)
    if array.dtype != dtype.outside:
        broken("H3", f"the file holds {array.dtype}, {dtype.name} travels as {dtype.outside}")
    if dtype.name == "bfloat16":
        return (array.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return cast(array, dtype) if dtype.is_float else array.copy()


def to_outside(values, dtype):
    """Held values as the array to write to a file."""
    values = np.ascontiguousarray(values)
    if dtype.name == "bfloat16":
        return (values.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    return values.astype(dtype.outside)


def of_numpy(array):
    """The element type of a plain NumPy array, or None if no device type fits."""
    for dtype in TYPES.values():
        if dtype.name not in ("bfloat16", "tfloat32") and dtype.outside == array.dtype:
            return dtype
    return None
