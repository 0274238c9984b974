"""kernel bias_relu(A: f32[m, k], B: f32[n, k], c: f32[n]) -> (C: f32[m, n])

Made from programs.tdsl by tdslc for trn2. Dialect: NKI 0.3.0 to 0.6.0.
Tile plan: 29 instructions, SBUF peak 2512 of 212984 bytes per partition, PSUM peak 2 of 8 banks.
Predicted (a model, nobody has measured it): 1375500 multiply-adds on the Tensor engine,
HBM read 116440 and written 42000 bytes (156680 are compulsory); busiest: dma, 1.133 us.
"""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def bias_relu(A, B, c):
    C = nl.ndarray(shape=(150, 70), dtype=nl.float32, buffer=nl.shared_hbm)
    T_0 = nl.ndarray(shape=(128, 140), dtype=nl.float32, buffer=nl.sbuf)
    # line 37: T[i,j] = A[i,l] * B[j,l];
    psum_1 = nl.ndarray(shape=(128, 70), dtype=nl.float32, buffer=nl.psum)
    A_2 = nl.ndarray(shape=(128, 128), dtype=nl.float32, buffer=nl.sbuf)
    A_3 = nl.ndarray(shape=(128, 130), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=A_3[0:128, 0:130], src=A[0:128, 0:130])
    psum_4 = nl.ndarray(shape=(128, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_transpose(dst=psum_4[0:128, 0:128], data=A_3[0:128, 0:128])
    nisa.activation(dst=A_2[0:128, 0:128], op=nl.copy, data=psum_4[0:128, 0:128])
    B_5 = nl.ndarray(shape=(128, 70), dtype=nl.float32, buffer=nl.sbuf)
    B_6 = nl.ndarray(shape=(70, 130), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=B_6[0:70, 0:130], src=B[0:70, 0:130])
    psum_7 = nl.ndarray(shape=(128, 70), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_transpose(dst=psum_7[0:128, 0:70], data=B_6[0:70, 0:128])
    nisa.tensor_copy(dst=B_5[0:128, 0:70], src=psum_7[0:128, 0:70])
    nisa.nc_matmul(dst=psum_1[0:128, 0:70], stationary=A_2[0:128, 0:128], moving=B_5[0:128, 0:70])
    A_8 = nl.ndarray(shape=(2, 150), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=A_8[0:1, 0:150], src=A[0:150, 128])
    nisa.dma_copy(dst=A_8[1:2, 0:150], src=A[0:150, 129])
    B_9 = nl.ndarray(shape=(2, 70), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=B_9[0:1, 0:70], src=B[0:70, 128])
    nisa.dma_copy(dst=B_9[1:2, 0:70], src=B[0:70, 129])
    nisa.nc_matmul(dst=psum_1[0:128, 0:70], stationary=A_8[0:2, 0:128], moving=B_9[0:2, 0:70])
    c_10 = nl.ndarray(shape=(1, 70), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=c_10[0:1, 0:70], src=c[0:70])
    spread_11 = nl.ndarray(shape=(128, 70), dtype=nl.float32, buffer=nl.sbuf)
    ones_12 = nl.ndarray(shape=(128, 128), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=ones_12[0:128, 0:128], value=1.0)
    psum_13 = nl.ndarray(shape=(128, 70), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=psum_13[0:128, 0:70], stationary=ones_12[0:1, 0:128], moving=c_10[0:1, 0:70])
    nisa.activation(dst=spread_11[0:128, 0:70], op=nl.copy, data=psum_13[0:128, 0:70])
    t_14 = nl.ndarray(shape=(128, 70), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=t_14[0:128, 0:70], data1=psum_1[0:128, 0:70], data2=spread_11[0:128, 0:70], op=nl.add)
    t_15 = nl.ndarray(shape=(128, 70), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=t_15[0:128, 0:70], data=t_14[0:128, 0:70], op0=nl.maximum, operand0=0.0)
    nisa.dma_copy(dst=C[0:128, 0:70], src=t_15[0:128, 0:70])
    psum_16 = nl.ndarray(shape=(22, 70), dtype=nl.float32, buffer=nl.psum)
    A_17 = nl.ndarray(shape=(128, 22), dtype=nl.float32, buffer=nl.sbuf)
    A_18 = nl.ndarray(shape=(22, 130), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=A_18[0:22, 0:130], src=A[128:150, 0:130])
    psum_19 = nl.ndarray(shape=(128, 22), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_transpose(dst=psum_19[0:128, 0:22], data=A_18[0:22, 0:128])
    nisa.activation(dst=A_17[0:128, 0:22], op=nl.copy, data=psum_19[0:128, 0:22])
    nisa.nc_matmul(dst=psum_16[0:22, 0:70], stationary=A_17[0:128, 0:22], moving=B_5[0:128, 0:70])
    nisa.nc_matmul(dst=psum_16[0:22, 0:70], stationary=A_8[0:2, 128:150], moving=B_9[0:2, 0:70])
    spread_20 = nl.ndarray(shape=(22, 70), dtype=nl.float32, buffer=nl.sbuf)
    psum_21 = nl.ndarray(shape=(22, 70), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=psum_21[0:22, 0:70], stationary=ones_12[0:1, 0:22], moving=c_10[0:1, 0:70])
    nisa.activation(dst=spread_20[0:22, 0:70], op=nl.copy, data=psum_21[0:22, 0:70])
    t_22 = nl.ndarray(shape=(22, 70), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=t_22[0:22, 0:70], data1=psum_16[0:22, 0:70], data2=spread_20[0:22, 0:70], op=nl.add)
    t_23 = nl.ndarray(shape=(22, 70), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=t_23[0:22, 0:70], data=t_22[0:22, 0:70], op0=nl.maximum, operand0=0.0)
    nisa.dma_copy(dst=C[128:150, 0:70], src=t_23[0:22, 0:70])
    return C
