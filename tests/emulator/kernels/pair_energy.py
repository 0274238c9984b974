# SPDX-License-Identifier: Apache-2.0
"""e = sum_ab t[a,b] (2 t[a,b] - d[a,b]), t[a,b] = sum_k x[k,a] y[k,b]; k 130, a 150, b 200.

Contract, elementwise, reduce in one kernel; t never leaves PSUM. The epilogue reads the PSUM
tile directly (one PSUM operand for each instruction), the free axis is reduced by
tensor_reduce into one column for each a tile, the partition axis by a matmul with ones, which
adds the columns of all a tiles in one accumulation group.
Profile: NKI 0.3.0 to 0.6.0.
"""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def pair_energy(x, y, d):
    e = nl.ndarray(shape=(1, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    y0 = nl.ndarray(shape=(128, 200), dtype=nl.float32, buffer=nl.sbuf)
    y1 = nl.ndarray(shape=(2, 200), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=y0[0:128, 0:200], src=y[0:128, 0:200])
    nisa.dma_copy(dst=y1[0:2, 0:200], src=y[128:130, 0:200])
    x0 = nl.ndarray(shape=(128, 150), dtype=nl.float32, buffer=nl.sbuf)
    x1 = nl.ndarray(shape=(2, 150), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x0[0:128, 0:150], src=x[0:128, 0:150])
    nisa.dma_copy(dst=x1[0:2, 0:150], src=x[128:130, 0:150])
    ones = nl.ndarray(shape=(128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=ones[0:128, 0:1], value=1.0)
    total = nl.ndarray(shape=(1, 1), dtype=nl.float32, buffer=nl.psum)

    # a = 0..128
    d0 = nl.ndarray(shape=(128, 200), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=d0[0:128, 0:200], src=d[0:128, 0:200])
    t0 = nl.ndarray(shape=(128, 200), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=t0[0:128, 0:200], stationary=x0[0:128, 0:128], moving=y0[0:128, 0:200])
    nisa.nc_matmul(dst=t0[0:128, 0:200], stationary=x1[0:2, 0:128], moving=y1[0:2, 0:200])
    u0 = nl.ndarray(shape=(128, 200), dtype=nl.float32, buffer=nl.sbuf)
    nisa.scalar_tensor_tensor(dst=u0[0:128, 0:200], data=t0[0:128, 0:200], op0=nl.multiply,
                              operand0=2.0, op1=nl.subtract, operand1=d0[0:128, 0:200])
    nisa.tensor_tensor(dst=u0[0:128, 0:200], data1=t0[0:128, 0:200], data2=u0[0:128, 0:200],
                       op=nl.multiply)
    s0 = nl.ndarray(shape=(128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=s0[0:128, 0:1], op=nl.add, data=u0[0:128, 0:200], axis=1)
    nisa.nc_matmul(dst=total[0:1, 0:1], stationary=s0[0:128, 0:1], moving=ones[0:128, 0:1])

    # a = 128..150
    d1 = nl.ndarray(shape=(22, 200), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=d1[0:22, 0:200], src=d[128:150, 0:200])
    t1 = nl.ndarray(shape=(22, 200), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=t1[0:22, 0:200], stationary=x0[0:128, 128:150], moving=y0[0:128, 0:200])
    nisa.nc_matmul(dst=t1[0:22, 0:200], stationary=x1[0:2, 128:150], moving=y1[0:2, 0:200])
    u1 = nl.ndarray(shape=(22, 200), dtype=nl.float32, buffer=nl.sbuf)
    nisa.scalar_tensor_tensor(dst=u1[0:22, 0:200], data=t1[0:22, 0:200], op0=nl.multiply,
                              operand0=2.0, op1=nl.subtract, operand1=d1[0:22, 0:200])
    nisa.tensor_tensor(dst=u1[0:22, 0:200], data1=t1[0:22, 0:200], data2=u1[0:22, 0:200],
                       op=nl.multiply)
    s1 = nl.ndarray(shape=(22, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=s1[0:22, 0:1], op=nl.add, data=u1[0:22, 0:200], axis=1)
    nisa.nc_matmul(dst=total[0:1, 0:1], stationary=s1[0:22, 0:1], moving=ones[0:22, 0:1])

    out = nl.ndarray(shape=(1, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=out[0:1, 0:1], src=total[0:1, 0:1])
    nisa.dma_copy(dst=e[0:1, 0:1], src=out[0:1, 0:1])
    return e
