# SPDX-License-Identifier: Apache-2.0
"""The backend of trntensor, what brings tensors to the device, and products of matrices."""
from ..._trnsci import from_xla, to_xla
from .._library import library
from ..einsum import einsum

__all__ = ["HAS_NKI", "from_xla", "get_backend", "nki_batched_matmul", "nki_matmul", "set_backend", "to_xla"]

set_backend, get_backend = library.set_backend, library.get_backend


def nki_matmul(A, B):
    """A B"""
    return einsum("ij,jk->ik", A, B)


def nki_batched_matmul(A, B):
    """A[b] B[b]"""
    return einsum("bij,bjk->bik", A, B)


def __getattr__(name):
    """HAS_NKI, and what the variables say: _MIN_NKI_FLOPS, _MIN_NKI_FLOPS_PINNED, _REQUIRE_NKI, _USE_SIMULATOR."""
    if name.startswith("_MIN_NKI_FLOPS"):
        return library.threshold(name == "_MIN_NKI_FLOPS_PINNED")
    if name in ("_REQUIRE_NKI", "_USE_SIMULATOR"):
        return library.required() if name == "_REQUIRE_NKI" else library.simulated()
    return library.attribute(name)
