# SPDX-License-Identifier: Apache-2.0
"""Element types: sizes, how values are held, and exact rounding.

Floating tiles are held as NumPy float32 whose values are always representable in the tile's
own type: bfloat16 and tfloat32 are rounded to nearest even on the bit pattern, float16 by
NumPy's conversion (nearest even as well), floats of 8 bits by their step at each exponent.
Integers are held in their own NumPy type. On the outside (files), bfloat16 travels as its bit
pattern in uint16, a float of 8 bits in uint8, and float16 as NumPy float16. Conversion from
floating point to integers rounds to nearest even and saturates; what a float of 8 bits becomes of
a number beyond the largest no document says (rule E15, memory.py).
"""

import numpy as np

from .errors import broken


class DType:
    """One element type. Compared by identity; the table below holds the only instances."""

    def __init__(self, name, size, kind, held, outside, fraction=None):
        self.name, self.size, self.kind = name, size, kind
        self.held, self.outside = np.dtype(held), np.dtype(outside)
        self.fraction = fraction        # of a float of 8 bits: bits behind the leading one

    @property
    def exponent(self):
        """The largest exponent of a float of 8 bits; the smallest is one less, negated."""
        return 2 ** (6 - self.fraction) - 1

    @property
    def most(self):
        """The largest finite number of a float of 8 bits."""
        return (2.0 - 2.0 ** -self.fraction) * 2.0 ** self.exponent

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
            ("bfloat16", 2, "f", "f4", "u2"), ("float16", 2, "f", "f4", "f2"),
            ("float8_e4m3", 1, "f", "f4", "u1", 3), ("float8_e5m2", 1, "f", "f4", "u1", 2)]
    for bits in (8, 16, 32):
        rows.append((f"int{bits}", bits // 8, "i", f"i{bits // 8}", f"i{bits // 8}"))
        rows.append((f"uint{bits}", bits // 8, "u", f"u{bits // 8}", f"u{bits // 8}"))
    return {row[0]: DType(*row) for row in rows}


TYPES = _table()
# Types the dialect has and this emulator does not hold: asking for one is not a typing error.
NOT_EMULATED = ("float8_e4m3fn", "float8_e8m0fnu", "bool_")


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


def _exponents(size, dtype):
    """Those of finite magnitudes as floats of 8 bits, where each has at most one digit before the point."""
    return np.where(size > 0, np.maximum(np.frexp(size)[1] - 1, 1 - dtype.exponent), 1 - dtype.exponent)


def _round_byte(values, dtype):
    """Float32 values to nearest even; infinite where that is beyond the largest."""
    wide = values.astype(np.float64)
    step = np.ldexp(1.0, _exponents(np.where(np.isfinite(wide), np.abs(wide), 0.0), dtype) - dtype.fraction)
    near = np.where(np.isfinite(wide), np.rint(wide / step) * step, wide)
    return np.where(np.abs(near) > dtype.most, np.copysign(np.inf, near), near).astype(np.float32)


def _byte_bits(values, dtype):
    """The patterns of held floats of 8 bits."""
    size = np.abs(values.astype(np.float64))
    finite = np.where(np.isfinite(size), size, 0.0)
    exponent = _exponents(finite, dtype)
    digits = np.ldexp(finite, dtype.fraction - exponent).astype(np.int64)   # the leading one adds to the exponent
    bits = ((exponent + dtype.exponent - 1) << dtype.fraction) + digits
    top = (2 * dtype.exponent + 1) << dtype.fraction
    bits = np.where(np.isinf(size), top, np.where(np.isnan(size), top | 1 << (dtype.fraction - 1), bits))
    return (bits | np.where(np.signbit(values), 128, 0)).astype(np.uint8)


def _of_byte_bits(bits, dtype):
    size = bits.astype(np.int64) & 127
    exponent, low = size >> dtype.fraction, size & ((1 << dtype.fraction) - 1)
    digits = np.where(exponent > 0, low + (1 << dtype.fraction), low)
    value = np.ldexp(digits.astype(np.float64), np.maximum(exponent, 1) - dtype.exponent - dtype.fraction)
    last = exponent == 2 * dtype.exponent + 1
    value = np.where(last, np.where(low == 0, np.inf, np.nan), value)
    return np.where(bits >= 128, -value, value).astype(np.float32)


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
            if dtype.fraction is not None:
                return _round_byte(single, dtype)
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
    if dtype.fraction is not None:
        return _of_byte_bits(array, dtype)
    return cast(array, dtype) if dtype.is_float else array.copy()


def to_outside(values, dtype):
    """Held values as the array to write to a file."""
    values = np.ascontiguousarray(values)
    if dtype.name == "bfloat16":
        return (values.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    if dtype.fraction is not None:
        return _byte_bits(values, dtype)
    return values.astype(dtype.outside)


def of_numpy(array):
    """The element type of a plain NumPy array, or None if no device type fits."""
    for dtype in TYPES.values():
        if dtype.name not in ("bfloat16", "tfloat32") and dtype.fraction is None and dtype.outside == array.dtype:
            return dtype
    return None
