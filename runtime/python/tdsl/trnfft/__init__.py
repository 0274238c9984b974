# SPDX-License-Identifier: Apache-2.0
"""The names and signatures of trnfft: `import tdsl.trnfft as trnfft`. docs/trnfft.md of TDSL says what differs.

Tensors are arrays of NumPy, or of torch on the CPU; results are ComplexTensors of the same kind, whose `real` and `imag` are such tensors.
"""
from .._trnsci import from_xla, to_xla
from ._library import library
from .api import (fft, fft2, fftn, hfft, ifft, ifftn, ihfft, irfft, irfft2, irfftn, istft, rfft, rfft2, rfftn, stft)
from .complex import ComplexTensor, complex_matmul
from .plan import FFTPlan, clear_plan_cache, create_plan
from .precision import get_precision, set_ozaki_product_precision_verified, set_precision

__all__ = ["ComplexTensor", "FFTPlan", "HAS_NKI", "clear_plan_cache", "complex_matmul", "create_plan", "fft", "fft2", "fftn", "from_xla", "get_backend", "get_precision", "hfft", "ifft",
           "ifftn", "ihfft", "irfft", "irfft2", "irfftn", "istft", "rfft", "rfft2", "rfftn", "set_backend", "set_ozaki_product_precision_verified", "set_precision", "stft", "to_xla"]
__version__ = "0.22.0"  # of trnfft, whose names these are

set_backend, get_backend, __getattr__ = library.set_backend, library.get_backend, library.attribute
