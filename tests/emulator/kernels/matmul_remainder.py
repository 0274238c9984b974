# SPDX-License-Identifier: Apache-2.0
"""c[m,n] = sum_k a[k,m] b[k,n], bfloat16 in, float32 out; k 200, m 300, n 700.

No extent is a multiple of a tile: k = 128 + 72, m = 2 x 128 + 44, n = 512 + 188. b stays in
SBUF for the whole kernel (one slab for each k chunk), a is loaded once for each m tile, every
accumulation group has a fresh PSUM tile, remainders are peeled into literal blocks.
Profile: NKI 0.3.0 to 0.6.0.
"""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def matmul_remainder(a, b):
    c = nl.ndarray(shape=(300, 700), dtype=nl.float32, buffer=nl.shared_hbm)
    b0 = nl.ndarray(shape=(128, 700), dtype=nl.bfloat16, buffer=nl.sbuf)
    b1 = nl.ndarray(shape=(72, 700), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.dma_copy(dst=b0[0:128, 0:700], src=b[0:128, 0:700])
    nisa.dma_copy(dst=b1[0:72, 0:700], src=b[128:200, 0:700])
    for m in range(2):
        a0 = nl.ndarray(shape=(128, 128), dtype=nl.bfloat16, buffer=nl.sbuf)
        a1 = nl.ndarray(shape=(72, 128), dtype=nl.bfloat16, buffer=nl.sbuf)
        nisa.dma_copy(dst=a0[0:128, 0:128], src=a[0:128, m * 128:m * 128 + 128])
        nisa.dma_copy(dst=a1[0:72, 0:128], src=a[128:200, m * 128:m * 128 + 128])
        row = nl.ndarray(shape=(128, 700), dtype=nl.float32, buffer=nl.sbuf)
        p0 = nl.ndarray(shape=(128, 512), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=p0[0:128, 0:512], stationary=a0[0:128, 0:128],
                       moving=b0[0:128, 0:512])
        nisa.nc_matmul(dst=p0[0:128, 0:512], stationary=a1[0:72, 0:128],
                       moving=b1[0:72, 0:512])
        nisa.tensor_copy(dst=row[0:128, 0:512], src=p0[0:128, 0:512])
        p1 = nl.ndarray(shape=(128, 188), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=p1[0:128, 0:188], stationary=a0[0:128, 0:128],
                       moving=b0[0:128, 512:700])
        nisa.nc_matmul(dst=p1[0:128, 0:188], stationary=a1[0:72, 0:128],
                       moving=b1[0:72, 512:700])
        nisa.tensor_copy(dst=row[0:128, 512:700], src=p1[0:128, 0:188])
        nisa.dma_copy(dst=c[m * 128:m * 128 + 128, 0:700], src=row[0:128, 0:700])
    # m = 256..300
    a2 = nl.ndarray(shape=(128, 44), dtype=nl.bfloat16, buffer=nl.sbuf)
    a3 = nl.ndarray(shape=(72, 44), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.dma_copy(dst=a2[0:128, 0:44], src=a[0:128, 256:300])
    nisa.dma_copy(dst=a3[0:72, 0:44], src=a[128:200, 256:300])
    last = nl.ndarray(shape=(44, 700), dtype=nl.float32, buffer=nl.sbuf)
    p2 = nl.ndarray(shape=(44, 512), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=p2[0:44, 0:512], stationary=a2[0:128, 0:44], moving=b0[0:128, 0:512])
    nisa.nc_matmul(dst=p2[0:44, 0:512], stationary=a3[0:72, 0:44], moving=b1[0:72, 0:512])
    nisa.tensor_copy(dst=last[0:44, 0:512], src=p2[0:44, 0:512])
    p3 = nl.ndarray(shape=(44, 188), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=p3[0:44, 0:188], stationary=a2[0:128, 0:44], moving=b0[0:128, 512:700])
    nisa.nc_matmul(dst=p3[0:44, 0:188], stationary=a3[0:72, 0:44], moving=b1[0:72, 512:700])
    nisa.tensor_copy(dst=last[0:44, 512:700], src=p3[0:44, 0:188])
    nisa.dma_copy(dst=c[256:300, 0:700], src=last[0:44, 0:700])
    return c
