# SPDX-License-Identifier: Apache-2.0
"""The precision in which transforms are computed."""
from .._errors import ArgumentError
from .._trnsci import UnsupportedError

_REFUSED = "bf16", "bf16_refined", "ozaki", "ozaki_hq"
_state = {"precision": "fast"}


def set_precision(mode):
    """"fast": in the type of the tensors; "kahan" and "double": in f64. Raises NotImplementedError for the others, which split f32 into bf16."""
    if mode in _REFUSED:
        raise UnsupportedError(f"set_precision: {mode!r} splits f32 into bf16 for the tensor engine, which multiplies f32 here; \"double\" computes in f64")
    if mode not in ("fast", "kahan", "double"):
        raise ArgumentError(f"set_precision: {mode!r} is not \"fast\", \"kahan\" or \"double\"", "mode")
    _state["precision"] = mode


def get_precision():
    """What set_precision was given last."""
    return _state["precision"]


def set_ozaki_product_precision_verified(verified):
    """Raises NotImplementedError for True: there are no "ozaki" modes."""
    if verified:
        raise UnsupportedError("there is no precision \"ozaki\" here; \"double\" computes in f64")
