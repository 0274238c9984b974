# SPDX-License-Identifier: Apache-2.0
"""c[z,m,n] = sum_k a[z,k,m] b[z,k,n]; w[n] = sum_{z,m} max(c, 0); z 12, k 32, m 16, n 40.

A small batched product: four batches stand on the four quadrants of the partitions, so one
copy loads four of them, and each multiplies in its rows of the array (tile_position). The
products are kept in scratch memory (private_hbm: a spill), read back as one tile with the
batch folded into the partitions, and reduced over partitions by a matmul with ones.
Profile: NKI 0.3.0 to 0.6.0.
"""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def batch_spill(a, b):
    c = nl.ndarray(shape=(12, 16, 40), dtype=nl.float32, buffer=nl.shared_hbm)
    w = nl.ndarray(shape=(1, 40), dtype=nl.float32, buffer=nl.shared_hbm)
    h = nl.ndarray(shape=(192, 40), dtype=nl.float32, buffer=nl.private_hbm)
    for z in range(0, 12, 4):
        at = nl.ndarray(shape=(128, 16), dtype=nl.float16, buffer=nl.sbuf)
        nisa.dma_copy(dst=at[0:128, 0:16], src=a[z:z + 4, 0:32, 0:16])
        bt = nl.ndarray(shape=(128, 40), dtype=nl.float16, buffer=nl.sbuf)
        nisa.dma_copy(dst=bt[0:128, 0:40], src=b[z:z + 4, 0:32, 0:40])
        for y in range(4):
            p = nl.ndarray(shape=(16, 40), dtype=nl.float32, buffer=nl.psum)
            nisa.nc_matmul(dst=p[0:16, 0:40], stationary=at[y * 32:y * 32 + 32, 0:16],
                           moving=bt[y * 32:y * 32 + 32, 0:40], tile_position=(y * 32, 0),
                           tile_size=(32, 128))
            s = nl.ndarray(shape=(16, 40), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_copy(dst=s[0:16, 0:40], src=p[0:16, 0:40])
            nisa.dma_copy(dst=c[z + y, 0:16, 0:40], src=s[0:16, 0:40])
            nisa.dma_copy(dst=h[(z + y) * 16:(z + y) * 16 + 16, 0:40], src=s[0:16, 0:40])
    ones = nl.ndarray(shape=(128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=ones[0:128, 0:1], value=1.0)
    u = nl.ndarray(shape=(1, 40), dtype=nl.float32, buffer=nl.psum)
    # rows 0..128 and 128..192 of the folded (z, m)
    g0 = nl.ndarray(shape=(128, 40), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=g0[0:128, 0:40], src=h[0:128, 0:40])
    nisa.tensor_scalar(dst=g0[0:128, 0:40], data=g0[0:128, 0:40], op0=nl.maximum, operand0=0.0)
    nisa.nc_matmul(dst=u[0:1, 0:40], stationary=ones[0:128, 0:1], moving=g0[0:128, 0:40])
    g1 = nl.ndarray(shape=(64, 40), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=g1[0:64, 0:40], src=h[128:192, 0:40])
    nisa.tensor_scalar(dst=g1[0:64, 0:40], data=g1[0:64, 0:40], op0=nl.maximum, operand0=0.0)
    nisa.nc_matmul(dst=u[0:1, 0:40], stationary=ones[0:64, 0:1], moving=g1[0:64, 0:40])
    us = nl.ndarray(shape=(1, 40), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=us[0:1, 0:40], src=u[0:1, 0:40])
    nisa.dma_copy(dst=w[0:1, 0:40], src=us[0:1, 0:40])
    return c, w
