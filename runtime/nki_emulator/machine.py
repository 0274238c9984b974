# SPDX-License-Identifier: Apache-2.0
"""What a generation of the device is, as numbers.

Capacities bound what a kernel may do (rules G3, G4, M2); clocks, cycles and bandwidths feed the
cost model (cost.py). Nothing else in this package names a target: every difference between
generations is a number or a flag of this table. The compiler has the same numbers
(backend/nki/chip.c); tests compare what the two predict.

Those of trn1 in f32 follow sixteen kernels that others have timed on one
(tests/emulator/test_calibration.py). Nobody has measured trn2, trn3 or 16-bit types: they have the
form that fits trn1, with the vendor's published cycles and bandwidths.
"""

from collections import namedtuple

Machine = namedtuple("Machine", [
    "name", "gen",
    "sbuf_bytes",          # usable per partition
    "psum_banks", "bank_bytes",
    "matmul_n",            # largest moving free size, float32 result
    "tensor_ghz", "vector_ghz", "scalar_ghz", "gpsimd_ghz",
    "matmul_cycles",       # of each matmul or transpose of 16-bit operands beside its columns
    "matmul_f32_cycles",   # the same in float32, whose two loads of weights nothing hides
    "transpose_passes",    # of a float32 transpose over the array
    "reciprocal_cycles",   # of an element on the vector engine
    "dma_gbps",            # one direction, all 16 queues of one core
    "dma_both_gbps",       # both directions together
    "hbm_gbps",            # share of one core
    "peak_tflops",         # bfloat16, one core
    "launch_us",           # what one launch costs besides
])

_NUMBERS = {
    "trn1": Machine("trn1", 2, 180224, 8, 2048, 512, 2.8, 1.12, 1.4, 1.4, 48, 304, 4, 2.65,
                    265.0, 300.0, 410.0, 92.0, 100.0),
    "trn2": Machine("trn2", 3, 212984, 8, 2048, 512, 2.4, 0.96, 1.2, 1.2, 48, 304, 2, 8,
                    368.0, 368.0, 716.0, 79.0, 16.0),
    "trn3": Machine("trn3", 4, 245752, 8, 2048, 4096, 2.4, 1.2, 1.2, 1.2, 48, 304, 2, 8,
                    528.0, 528.0, 1178.0, 79.0, 16.0),
}
_ALIASES = {"inf2": "trn1", "gen2": "trn1", "gen3": "trn2", "gen4": "trn3"}


def machine_named(name):
    """The machine of a target name, or None."""
    return _NUMBERS.get(_ALIASES.get(name, name))


def machine_names():
    return sorted(_NUMBERS)
