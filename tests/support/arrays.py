# SPDX-License-Identifier: Apache-2.0
"""Results that tdsl-run wrote, and bf16, which NumPy does not have."""


def load(path):
    """bf16 as its bits."""
    import numpy as np
    array = np.load(path)
    return array.view(np.uint16) if array.dtype == np.dtype("V2") else array


def bfloat16_bits(values):
    """Rounded to nearest even, as bits."""
    import numpy as np
    word = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((word + 0x7FFF + (word >> 16 & 1)) >> 16).astype(np.uint16)


def bfloat16_values(bits):
    """As float64."""
    import numpy as np
    word = np.ascontiguousarray(bits).astype(np.uint32) << 16
    return word.view(np.float32).astype(np.float64).reshape(np.shape(bits))
