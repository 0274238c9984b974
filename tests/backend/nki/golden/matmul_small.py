"""kernel matmul_small(A: f32[m, k], B: f32[k, n]) -> (C: f32[m, n])

Made from programs.tdsl by tdslc for trn2. Dialect: NKI 0.3.0 to 0.6.0.
Tile plan: 29 instructions, SBUF peak 64 of 212984 bytes per partition, PSUM peak 1 of 8 banks.
Predicted (a model, nobody has measured it): 18900 multiply-adds on the Tensor engine,
HBM read 19200 and written 252 bytes (19452 are compulsory); busiest: dma, 3.349 us.
"""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def matmul_small(A, B):
    C = nl.ndarray(shape=(7, 9), dtype=nl.float32, buffer=nl.shared_hbm)
    # line 18: kernel matmul_small(A: f32[m, k], B: f32[k, n]) -> (C: f32[m, n]) { C[i,j] = A[i,l] * B[l,j]; }
    psum_0 = nl.ndarray(shape=(7, 9), dtype=nl.float32, buffer=nl.psum)
    A_1 = nl.ndarray(shape=(128, 7), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=A_1[0:128, 0:1], src=A[0, 0:128])
    nisa.dma_copy(dst=A_1[0:128, 1:2], src=A[1, 0:128])
    nisa.dma_copy(dst=A_1[0:128, 2:3], src=A[2, 0:128])
    nisa.dma_copy(dst=A_1[0:128, 3:4], src=A[3, 0:128])
    nisa.dma_copy(dst=A_1[0:128, 4:5], src=A[4, 0:128])
    nisa.dma_copy(dst=A_1[0:128, 5:6], src=A[5, 0:128])
    nisa.dma_copy(dst=A_1[0:128, 6:7], src=A[6, 0:128])
    B_2 = nl.ndarray(shape=(128, 9), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=B_2[0:128, 0:9], src=B[0:128, 0:9])
    nisa.nc_matmul(dst=psum_0[0:7, 0:9], stationary=A_1[0:128, 0:7], moving=B_2[0:128, 0:9])
    A_3 = nl.ndarray(shape=(128, 7), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=A_3[0:128, 0:1], src=A[0, 128:256])
    nisa.dma_copy(dst=A_3[0:128, 1:2], src=A[1, 128:256])
    nisa.dma_copy(dst=A_3[0:128, 2:3], src=A[2, 128:256])
    nisa.dma_copy(dst=A_3[0:128, 3:4], src=A[3, 128:256])
    nisa.dma_copy(dst=A_3[0:128, 4:5], src=A[4, 128:256])
    nisa.dma_copy(dst=A_3[0:128, 5:6], src=A[5, 128:256])
    nisa.dma_copy(dst=A_3[0:128, 6:7], src=A[6, 128:256])
    B_4 = nl.ndarray(shape=(128, 9), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=B_4[0:128, 0:9], src=B[128:256, 0:9])
    nisa.nc_matmul(dst=psum_0[0:7, 0:9], stationary=A_3[0:128, 0:7], moving=B_4[0:128, 0:9])
    A_5 = nl.ndarray(shape=(44, 7), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=A_5[0:44, 0:1], src=A[0, 256:300])
    nisa.dma_copy(dst=A_5[0:44, 1:2], src=A[1, 256:300])
    nisa.dma_copy(dst=A_5[0:44, 2:3], src=A[2, 256:300])
    nisa.dma_copy(dst=A_5[0:44, 3:4], src=A[3, 256:300])
    nisa.dma_copy(dst=A_5[0:44, 4:5], src=A[4, 256:300])
    nisa.dma_copy(dst=A_5[0:44, 5:6], src=A[5, 256:300])
    nisa.dma_copy(dst=A_5[0:44, 6:7], src=A[6, 256:300])
    B_6 = nl.ndarray(shape=(44, 9), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=B_6[0:44, 0:9], src=B[256:300, 0:9])
    nisa.nc_matmul(dst=psum_0[0:7, 0:9], stationary=A_5[0:44, 0:7], moving=B_6[0:44, 0:9])
    C_7 = nl.ndarray(shape=(7, 9), dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation(dst=C_7[0:7, 0:9], op=nl.copy, data=psum_0[0:7, 0:9])
    nisa.dma_copy(dst=C[0:7, 0:9], src=C_7[0:7, 0:9])
    return C
