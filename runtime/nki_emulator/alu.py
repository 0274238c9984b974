# SPDX-License-Identifier: Apache-2.0
"""What the arithmetic units compute: two-operand operators, and activation functions.

Both work on float32 arrays; operators of kind 'bit' work on integers. Activation functions
are evaluated in float64 and rounded once, so they are better than the device's tables: what
is emulated is their meaning and their valid range (rule E14), not their last digits.
Operators that name one-operand functions (rsqrt, reciprocal, abs as an ALU operator) are not
emulated: not every front end takes them, and activation or nisa.reciprocal say the same.
"""

import math

import numpy as np

from .errors import broken

_F32 = np.float32


def _truth(function):
    return lambda a, b: function(a != 0, b != 0).astype(_F32)


def _compare(function):
    return lambda a, b: function(a, b).astype(_F32)


ARITHMETIC = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply,
    "maximum": np.maximum, "minimum": np.minimum, "power": np.power,
    "equal": _compare(np.equal), "not_equal": _compare(np.not_equal),
    "greater_equal": _compare(np.greater_equal), "greater": _compare(np.greater),
    "less_equal": _compare(np.less_equal), "less": _compare(np.less),
    "logical_and": _truth(np.logical_and), "logical_or": _truth(np.logical_or),
    "logical_xor": _truth(np.logical_xor),
}
BITWISE = {
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "left_shift": np.left_shift, "right_shift": np.right_shift,
}
UNARY_ALU = ("rsqrt", "reciprocal", "abs", "invert")
REDUCERS = ("add", "subtract", "multiply", "maximum", "minimum", "logical_and", "logical_or",
            "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor")
GPSIMD_ONLY = ("power",)


def alu_kind(name, op):
    """'arith' or 'bit'; refuses what is no two-operand operator."""
    if name in ARITHMETIC:
        return "arith"
    if name in BITWISE:
        return "bit"
    if name in UNARY_ALU:
        broken("A4", f"nl.{name} as an ALU operator is not taken by every front end; use "
                     f"nisa.activation or nisa.reciprocal", op=op)
    broken("A4", f"nl.{name} is not an ALU operator", op=op)


def alu_apply(name, a, b):
    """a op b, elementwise with NumPy broadcasting; float32 in, float32 out, or integers."""
    with np.errstate(all="ignore"):
        if name in ARITHMETIC:
            return np.asarray(ARITHMETIC[name](a, b))
        return np.asarray(BITWISE[name](a, b))


def alu_reduce(name, values):
    """Reduce axis 1 of a 2-D array in order, in float32, as a running accumulator does."""
    with np.errstate(all="ignore"):
        if name in ("add", "multiply", "subtract"):
            function = ARITHMETIC[name]
            return function.accumulate(values.astype(_F32), axis=1, dtype=_F32)[:, -1:]
        if name in ("maximum", "minimum"):
            return ARITHMETIC[name].reduce(values, axis=1, keepdims=True)
        if name in BITWISE:
            return BITWISE[name].reduce(values, axis=1, keepdims=True)
        logical = {"logical_and": np.logical_and, "logical_or": np.logical_or,
                   "logical_xor": np.logical_xor}[name]
        return logical.reduce(values != 0, axis=1, keepdims=True).astype(_F32)


# --- activation functions --------------------------------------------------------------

def _each(function):
    vector = np.vectorize(function, otypes=[np.float64])
    return lambda x: vector(x) if x.size else x


_erf = _each(math.erf)


def _sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def _softplus(x):
    return np.logaddexp(0.0, x)


def _normal_cdf(x):
    return 0.5 * (1.0 + _erf(x / math.sqrt(2.0)))


def _normal_pdf(x):
    return np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)


def _gelu_tanh(x):
    return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x ** 3)))


def _silu_dx(x):
    s = _sigmoid(x)
    return s * (1.0 + x * (1.0 - s))


def _gelu_sigmoid_dx(x):
    s = _sigmoid(1.702 * x)
    return s * (1.0 + 1.702 * x * (1.0 - s))


ACTIVATIONS = {
    "copy": lambda x: x, "square": lambda x: x * x, "sigmoid": _sigmoid,
    "relu": lambda x: np.maximum(x, 0.0), "gelu": lambda x: x * _normal_cdf(x),
    "gelu_dx": lambda x: _normal_cdf(x) + x * _normal_pdf(x),
    "gelu_apprx_tanh": _gelu_tanh,
    "gelu_apprx_sigmoid": lambda x: x * _sigmoid(1.702 * x),
    "gelu_apprx_sigmoid_dx": _gelu_sigmoid_dx,
    "silu": lambda x: x * _sigmoid(x), "silu_dx": _silu_dx,
    "tanh": np.tanh, "softplus": _softplus, "mish": lambda x: x * np.tanh(_softplus(x)),
    "erf": _erf, "erf_dx": lambda x: 2.0 / math.sqrt(math.pi) * np.exp(-x * x),
    "exp": np.exp, "sign": np.sign, "abs": np.abs,
    "log": np.log, "sin": np.sin, "arctan": np.arctan, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x), "reciprocal": lambda x: 1.0 / x,
}
# Inclusive input ranges outside of which the device's tables give wrong results; the range of
# reciprocal is one of magnitudes.
RANGES = {
    "log": (2.0 ** -64, 2.0 ** 64), "sin": (-math.pi, math.pi),
    "arctan": (-math.pi / 2, math.pi / 2), "sqrt": (2.0 ** -116, 2.0 ** 118),
    "rsqrt": (2.0 ** -87, 2.0 ** 97),
}
MAGNITUDES = {"reciprocal": (2.0 ** -42, 2.0 ** 42)}


def activation_range(name, x):
    """None if every input is in range, else a sentence about the first that is not."""
    low, high, values = None, None, x
    if name in RANGES:
        low, high = RANGES[name]
    elif name in MAGNITUDES:
        low, high = MAGNITUDES[name]
        values = np.abs(x)
    if low is None:
        return None
    # The bounds are float32 bounds: pi as the device holds it counts as pi.
    bad = ~((values >= _F32(low)) & (values <= _F32(high)))
    if not bad.any():
        return None
    return (f"{int(bad.sum())} of {x.size} inputs of {name} outside "
            f"[{low:g}, {high:g}], first {float(x[bad][0])!r}")


def activation_apply(name, x):
    """The function of float32 inputs, rounded to float32."""
    with np.errstate(all="ignore"):
        return ACTIVATIONS[name](x.astype(np.float64)).astype(_F32)
