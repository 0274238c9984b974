# SPDX-License-Identifier: Apache-2.0
"""The names and signatures of trntensor: `import tdsl.trntensor as trntensor`. docs/trntensor.md of TDSL says what differs.

Tensors are arrays of NumPy, or of torch on the CPU, and results of the same kind. With the backend "nki", or where there is a device and work enough for
it, contractions are compiled for Trainium too, and run there by `tdsl.nki`.
"""
from .._sharded import ShardedTensor
from .._trnsci import from_xla, to_xla
from ._library import library
from .decompose import cp_decompose, cp_reconstruct, tt_decompose, tt_reconstruct, tucker_decompose, tucker_reconstruct
from .einsum import einsum, multi_einsum
from .plan import ContractionPlan, clear_plan_cache, estimate_flops, plan_cache_info, plan_contraction
from .quantum import ao_to_mo_transform, mp2_energy
from .shard import gather, scatter, shard_boundaries

__all__ = ["HAS_NKI", "ContractionPlan", "ShardedTensor", "ao_to_mo_transform", "clear_plan_cache", "cp_decompose", "cp_reconstruct", "einsum", "estimate_flops",
           "from_xla", "gather", "get_backend", "mp2_energy", "multi_einsum", "plan_cache_info", "plan_contraction", "scatter", "set_backend", "shard_boundaries",
           "to_xla", "tt_decompose", "tt_reconstruct", "tucker_decompose", "tucker_reconstruct"]
__version__ = "0.4.0"  # of trntensor, whose names these are

set_backend, get_backend, __getattr__ = library.set_backend, library.get_backend, library.attribute
