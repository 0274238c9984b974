# SPDX-License-Identifier: Apache-2.0
"""R[m,n] = sum_k A[k,m] B[k,n], float32, all extents 2: for the runtime's tests of the emulator."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def matmul(A, B):
    R = nl.ndarray(shape=(2, 2), dtype=nl.float32, buffer=nl.shared_hbm)
    a = nl.ndarray(shape=(2, 2), dtype=nl.float32, buffer=nl.sbuf)
    b = nl.ndarray(shape=(2, 2), dtype=nl.float32, buffer=nl.sbuf)
    r = nl.ndarray(shape=(2, 2), dtype=nl.float32, buffer=nl.sbuf)
    p = nl.ndarray(shape=(2, 2), dtype=nl.float32, buffer=nl.psum)
    nisa.dma_copy(dst=a[0:2, 0:2], src=A[0:2, 0:2])
    nisa.dma_copy(dst=b[0:2, 0:2], src=B[0:2, 0:2])
    nisa.nc_matmul(dst=p[0:2, 0:2], stationary=a[0:2, 0:2], moving=b[0:2, 0:2])
    nisa.tensor_copy(dst=r[0:2, 0:2], src=p[0:2, 0:2])
    nisa.dma_copy(dst=R[0:2, 0:2], src=r[0:2, 0:2])
    return R
