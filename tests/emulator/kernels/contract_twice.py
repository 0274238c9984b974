# SPDX-License-Identifier: Apache-2.0
"""c[i,j] = sum_b t[i,b] d[b,j], t[i,b] = sum_k a[k,i] b[k,b]; k 200, i 100, b 150, j 96.

The intermediate t goes from PSUM to SBUF, is transposed on the matrix engine in blocks of at
most 128 x 128, and contracts again; it never reaches HBM. Where the printer can choose, it
makes t[b,i] in the first place (roles of stationary and moving exchanged) and no transpose is
needed: this kernel shows the case where it cannot, because t is a result as well.
Profile: NKI 0.3.0 to 0.6.0.
"""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def contract_twice(a, b, d):
    c = nl.ndarray(shape=(100, 96), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.ndarray(shape=(100, 150), dtype=nl.float32, buffer=nl.shared_hbm)
    a0 = nl.ndarray(shape=(128, 100), dtype=nl.float32, buffer=nl.sbuf)
    a1 = nl.ndarray(shape=(72, 100), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=a0[0:128, 0:100], src=a[0:128, 0:100])
    nisa.dma_copy(dst=a1[0:72, 0:100], src=a[128:200, 0:100])
    b0 = nl.ndarray(shape=(128, 150), dtype=nl.float32, buffer=nl.sbuf)
    b1 = nl.ndarray(shape=(72, 150), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=b0[0:128, 0:150], src=b[0:128, 0:150])
    nisa.dma_copy(dst=b1[0:72, 0:150], src=b[128:200, 0:150])
    d0 = nl.ndarray(shape=(128, 96), dtype=nl.float32, buffer=nl.sbuf)
    d1 = nl.ndarray(shape=(22, 96), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=d0[0:128, 0:96], src=d[0:128, 0:96])
    nisa.dma_copy(dst=d1[0:22, 0:96], src=d[128:150, 0:96])

    # t[i,b]: first contraction, evicted to SBUF
    p0 = nl.ndarray(shape=(100, 150), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=p0[0:100, 0:150], stationary=a0[0:128, 0:100], moving=b0[0:128, 0:150])
    nisa.nc_matmul(dst=p0[0:100, 0:150], stationary=a1[0:72, 0:100], moving=b1[0:72, 0:150])
    ts = nl.ndarray(shape=(100, 150), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=ts[0:100, 0:150], src=p0[0:100, 0:150])
    nisa.dma_copy(dst=t[0:100, 0:150], src=ts[0:100, 0:150])

    # t[b,i] in two blocks of b
    q0 = nl.ndarray(shape=(128, 100), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_transpose(dst=q0[0:128, 0:100], data=ts[0:100, 0:128])
    t0 = nl.ndarray(shape=(128, 100), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=t0[0:128, 0:100], src=q0[0:128, 0:100])
    q1 = nl.ndarray(shape=(22, 100), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_transpose(dst=q1[0:22, 0:100], data=ts[0:100, 128:150])
    t1 = nl.ndarray(shape=(22, 100), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=t1[0:22, 0:100], src=q1[0:22, 0:100])

    # c[i,j]: second contraction, over b
    p1 = nl.ndarray(shape=(100, 96), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=p1[0:100, 0:96], stationary=t0[0:128, 0:100], moving=d0[0:128, 0:96])
    nisa.nc_matmul(dst=p1[0:100, 0:96], stationary=t1[0:22, 0:100], moving=d1[0:22, 0:96])
    cs = nl.ndarray(shape=(100, 96), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=cs[0:100, 0:96], src=p1[0:100, 0:96])
    nisa.dma_copy(dst=c[0:100, 0:96], src=cs[0:100, 0:96])
    return c, t
