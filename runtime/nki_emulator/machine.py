# SPDX-License-Identifier: Apache-2.0
"""What a generation of the device is, as numbers.

Capacities bound what a kernel may do (rules G3, G4, M2); clocks and bandwidths feed the cost
model. Nothing else in this package names a target: every difference between generations is
a number or a flag of this table.
"""

from collections import namedtuple

Machine = namedtuple("Machine", [
    "name", "gen",
    "sbuf_bytes",          # usable per partition
    "psum_banks", "bank_bytes",
    "matmul_n",            # largest moving free size, float32 result
    "tensor_ghz", "vector_ghz", "scalar_ghz", "gpsimd_ghz",
    "dma_gbps",            # aggregate of the 16 queues of one core
    "hbm_gbps",            # share of one core
    "peak_tflops",         # bfloat16, one core
])

_NUMBERS = {
    "trn1": Machine("trn1", 2, 180224, 8, 2048, 512, 2.8, 1.12, 1.4, 1.4, 272.0, 410.0, 92.0),
    "trn2": Machine("trn2", 3, 212984, 8, 2048, 512, 2.4, 0.96, 1.2, 1.2, 368.0, 716.0, 79.0),
    "trn3": Machine("trn3", 4, 245752, 8, 2048, 4096, 2.4, 1.2, 1.2, 1.2, 528.0, 1178.0, 79.0),
}
_ALIASES = {"inf2": "trn1", "gen2": "trn1", "gen3": "trn2", "gen4": "trn3"}


def machine_named(name):
    """The machine of a target name, or None."""
    return _NUMBERS.get(_ALIASES.get(name, name))


def machine_names():
    return sorted(_NUMBERS)
