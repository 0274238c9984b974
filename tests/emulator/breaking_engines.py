# SPDX-License-Identifier: Apache-2.0
"""Kernels that break the rules of the engines: matrix (M), vector, scalar, GpSimd (E), DMA (D).

Rows as in breaking_general.py: rule, sentence, inputs, body; a fifth field names the target
where it is not trn2.
"""

from support import filled, tile

X = filled("x", (128, 128))
Y = filled("y", (128, 512))
P = tile("p", (128, 512), space="psum")
T = filled("t", (8, 8))
U = filled("u", (8, 8))
Q = filled("q", (8, 8), space="psum")
R = filled("r", (8, 8), space="psum")
C = filled("c", (8, 1))
D = tile("d", (8, 8))
W = tile("w", (8, 1), "int32")
I = filled("i", (8, 8), "int32")                                    # noqa: E741
J = filled("j", (8, 8), "int32")
MM = "nisa.nc_matmul(dst=p[...], stationary=x[...], moving=y[...])\n"

MATRIX = [
    ("M1", "the result lies in SBUF", "", X + Y +
     "p = nl.ndarray(shape=(128, 512), dtype=nl.float32, buffer=nl.<<sbuf||psum>>)\n" +
     MM.rstrip("\n") + "  #!\n"),
    ("M1", "an operand lies in PSUM", "", X + P +
     "y = nl.ndarray(shape=(128, 512), dtype=nl.float32, buffer=nl.<<psum||sbuf>>)\n"
     "nisa.memset(dst=y[...], value=1.0)\n" + MM.rstrip("\n") + "  #!\n"),
    ("M2", "k differs", "", X + Y + P + "nisa.nc_matmul(dst=p[...], stationary=x[0:<<64||128>>"
     ", 0:128], moving=y[...])\n"),
    ("M2", "m above 128", "", filled("x", (128, 129)) + Y + P + "nisa.nc_matmul(dst=p[...], "
     "stationary=x[0:128, 0:<<129||128>>], moving=y[...])\n"),
    ("M2", "n above 512", "", X + filled("y", (128, 513)) + tile("p", (128, 1024), "float32",
     "psum") + "nisa.nc_matmul(dst=p[0:128, 0:<<513||512>>], stationary=x[...], "
     "moving=y[0:128, 0:<<513||512>>])\n"),
    ("M2", "the result has another shape", "", X + Y + P +
     "nisa.nc_matmul(dst=p[0:128, 0:<<256||512>>], stationary=x[...], moving=y[...])\n"),
    ("M3", "a bfloat16 result", "", X + Y +
     "p = nl.ndarray(shape=(128, 512), dtype=nl.<<bfloat16||float32>>, buffer=nl.psum)\n" +
     MM.rstrip("\n") + "  #!\n"),
    ("M4", "bfloat16 with float32", "", X +
     "y = nl.ndarray(shape=(128, 512), dtype=nl.<<bfloat16||float32>>, buffer=nl.sbuf)\n"
     "nisa.memset(dst=y[...], value=1.0)\n" + P + MM.rstrip("\n") + "  #!\n"),
    ("M5", "integers", "", tile("x", (128, 128)) + tile("y", (128, 512)) + P +
     "xi = nl.ndarray(shape=(128, 128), dtype=nl.<<int32||float32>>, buffer=nl.sbuf)\n"
     "nisa.memset(dst=xi[...], value=<<1||1.0>>)\nnisa.memset(dst=y[...], value=1.0)\n"
     "nisa.nc_matmul(dst=p[...], stationary=xi[...], moving=y[...])  #!\n"),
    ("M6", "a position without a size", "", X + Y + P + "nisa.nc_matmul(dst=p[...], "
     "stationary=x[0:64, 0:128], moving=y[0:64, 0:512], tile_position=(0, 0)"
     "<<||, tile_size=(64, 128)>>)\n"),
    ("M6", "a size of 48", "", X + Y + P + "nisa.nc_matmul(dst=p[...], stationary=x[0:32, "
     "0:128], moving=y[0:32, 0:512], tile_position=(0, 0), tile_size=(<<48||32>>, 128))\n"),
    ("M6", "columns are tiled", "", X + Y + P + "nisa.nc_matmul(dst=p[...], stationary=x[0:64, "
     "0:128], moving=y[0:64, 0:512], tile_position=(0, 0), tile_size=(64, <<64||128>>))\n"),
    ("M6", "operands at another row than the position", "", X + Y + P +
     "nisa.nc_matmul(dst=p[...], stationary=x[64:128, 0:128], moving=y[64:128, 0:512], "
     "tile_position=(<<0||64>>, 0), tile_size=(64, 128))\n"),
    ("M7", "double rows of float32", "", X + Y + P + "nisa.nc_matmul(dst=p[...], "
     "stationary=x[...], moving=y[...]<<, perf_mode=nisa.matmul_perf_mode.double_row||>>)\n"),
    ("M8", "a second contribution to part of the region", "", X + Y + P + MM +
     "nisa.nc_matmul(dst=p[0:128, 0:<<256||512>>], stationary=x[...], "
     "moving=y[0:128, 0:<<256||512>>])\n"),
    ("M8", "a region across two groups", "", X + Y + P +
     "nisa.nc_matmul(dst=p[0:128, 0:256], stationary=x[...], moving=y[0:128, 0:256])\n"
     "nisa.nc_matmul(dst=p[0:128, <<128:384||256:512>>], stationary=x[...], "
     "moving=y[0:128, 0:256])\n"),
    ("M8", "two groups of a bank are added to in turn", "", X + Y + P +
     "nisa.nc_matmul(dst=p[0:128, 0:256], stationary=x[...], moving=y[0:128, 0:256])\n"
     "<<nisa.nc_matmul(dst=p[0:128, 256:512], stationary=x[...], moving=y[0:128, 0:256])||pass>>\n"
     "nisa.nc_matmul(dst=p[0:128, 0:256], stationary=x[...], moving=y[0:128, 0:256])  #!\n"
     "nisa.nc_matmul(dst=p[0:128, 256:512], stationary=x[...], moving=y[0:128, 0:256])\n"),
    ("M9", "accumulation onto a memset", "", X + Y + P +
     "<<nisa.memset(dst=p[...], value=0.0)||pass>>\n" + MM.rstrip("\n") + "  #!\n"),
    ("M9", "accumulate=True onto a memset", "", X + Y + P +
     "nisa.memset(dst=p[...], value=0.0)\nnisa.nc_matmul(dst=p[...], stationary=x[...], "
     "moving=y[...], accumulate=<<True||False>>)\n"),
    ("M9", "accumulate=True onto nothing", "", X + Y + P + "nisa.nc_matmul(dst=p[...], "
     "stationary=x[...], moving=y[...], accumulate=<<True||False>>)\n"),
    ("M9", "a second group in a tile that was read", "", X + Y + P +
     tile("s", (128, 512)) + MM + "nisa.tensor_copy(dst=s[...], src=p[...])\n"
     "nisa.nc_matmul(dst=p[...], stationary=x[...], moving=y[...]<<||, accumulate=False>>)\n"),
    ("M10", "a transpose of 129 columns", "", filled("x", (128, 130)) +
     tile("p", (128, 128), space="psum") +
     "nisa.nc_transpose(dst=p[...], data=x[0:128, 0:<<129||128>>])\n"),
    ("M10", "a transpose into SBUF", "", X +
     "p = nl.ndarray(shape=(128, 128), dtype=nl.float32, buffer=nl.<<sbuf||psum>>)\n"
     "nisa.nc_transpose(dst=p[...], data=x[...])  #!\n"),
    ("M10", "a transpose into another type", "",
     filled("x", (128, 128), "bfloat16") +
     "p = nl.ndarray(shape=(128, 128), dtype=nl.<<float32||bfloat16>>, buffer=nl.psum)\n"
     "nisa.nc_transpose(dst=p[...], data=x[...])  #!\n"),
    ("M10", "a transpose into another shape", "", X + tile("p", (64, 128), space="psum") +
     "nisa.nc_transpose(dst=p[...], data=x[0:128, 0:<<128||64>>])\n"),
    ("M10", "a vector transpose above 32", "", X + tile("s", (64, 64)) +
     "nisa.nc_transpose(dst=s[0:<<64||32>>, 0:<<64||32>>], data=x[0:<<64||32>>, "
     "0:<<64||32>>], engine=nisa.engine.vector)\n"),
    ("M5", "a transpose of integers", "", filled("x", (32, 32), "<<int32||float32>>").replace(
        "value=1)", "value=1<<||.0>>)").replace("value=1.0", "value=<<1||1.0>>") +
     "p = nl.ndarray(shape=(32, 32), dtype=nl.<<int32||float32>>, buffer=nl.psum)\n"
     "nisa.nc_transpose(dst=p[...], data=x[...])  #!\n"),
    ("M11", "a onezero promise about twos", "", X + Y + P +
     "nisa.memset(dst=x[0:1, 0:1], value=<<2.0||0.0>>)\nnisa.nc_matmul(dst=p[...], "
     "stationary=x[...], moving=y[...], is_stationary_onezero=True)  #!\n"),
    ("M12", "an identity matrix without a type", "",
     "<<i = nl.shared_identity_matrix(n=128)||pass>>\n"),
]

ENGINES = [
    ("E1", "different shapes", "", T + U + "nisa.tensor_tensor(dst=t[...], data1=t[...], "
     "data2=u[0:8, 0:<<4||8>>], op=nl.add)\n"),
    ("E1", "both inputs in PSUM", "", D + Q + R + T + "nisa.tensor_tensor(dst=d[...], "
     "data1=q[...], data2=<<r||t>>[...], op=nl.add)\n"),
    ("E1", "int32 in PSUM on GpSimd's path", "", I +
     "p = nl.ndarray(shape=(8, 8), dtype=nl.int32, buffer=nl.<<psum||sbuf>>)\n"
     "nisa.tensor_tensor(dst=p[...], data1=i[...], data2=i[...], op=nl.add)  #!\n"),
    ("E1", "a bitwise operator on floats", "", T + U + I + J +
     "nisa.tensor_tensor(dst=<<t||i>>[...], data1=<<t||i>>[...], data2=<<u||j>>[...], "
     "op=nl.bitwise_and)\n"),
    ("E2", "an operand of two columns", "", T + filled("c", (8, 2)) + "nisa.tensor_scalar("
     "dst=t[...], data=t[...], op0=nl.add, operand0=c[0:8, 0:<<2||1>>])\n"),
    ("E2", "a bfloat16 operand", "", T + "c = nl.ndarray(shape=(8, 1), dtype=nl."
     "<<bfloat16||float32>>, buffer=nl.sbuf)\nnisa.memset(dst=c[...], value=1.0)\n"
     "nisa.tensor_scalar(dst=t[...], data=t[...], op0=nl.add, operand0=c[...])  #!\n"),
    ("E2", "an operator without its operand", "", T + "nisa.tensor_scalar(dst=t[...], "
     "data=t[...], op0=nl.add, operand0=1.0, op1=nl.multiply<<||, operand1=2.0>>)\n"),
    ("E2", "arithmetic and bitwise together", "", I + "nisa.tensor_scalar(dst=i[...], "
     "data=i[...], op0=nl.bitwise_and, operand0=1, op1=nl.<<add||bitwise_or>>, operand1=2)\n"),
    ("E2", "engine=gpsimd", "", T + "nisa.tensor_scalar(dst=t[...], data=t[...], op0=nl.add, "
     "operand0=1.0, engine=nisa.engine.<<gpsimd||vector>>)\n"),
    ("E2", "the scalar engine's maximum", "", T + "nisa.tensor_scalar(dst=t[...], data=t[...], "
     "op0=nl.<<maximum||multiply>>, operand0=1.0, engine=nisa.engine.scalar)\n"),
    ("E3", "different shapes", "", T + U + "nisa.scalar_tensor_tensor(dst=t[...], data=t[...], "
     "op0=nl.add, operand0=1.0, op1=nl.multiply, operand1=u[0:8, 0:<<4||8>>])\n"),
    ("E3", "both inputs in PSUM", "", D + Q + R + T + "nisa.scalar_tensor_tensor(dst=d[...], "
     "data=q[...], op0=nl.add, operand0=1.0, op1=nl.multiply, operand1=<<r||t>>[...])\n"),
    ("E3", "a bitwise operator", "", I + J + T + "nisa.scalar_tensor_tensor(dst=i[...], "
     "data=i[...], op0=nl.<<bitwise_and||add>>, operand0=1, op1=nl.add, operand1=j[...])\n"),
    ("E4", "a bias of two columns", "", T + filled("c", (8, 2)) + "nisa.activation(dst=t[...], "
     "op=nl.exp, data=t[...], bias=c[0:8, 0:<<2||1>>])\n"),
    ("E4", "a scalar bias on generation 2", "", T + C + "nisa.activation(dst=t[...], "
     "op=nl.exp, data=t[...], bias=<<1.0||c[...]>>)\n", "trn1"),
    ("E4", "a reciprocal with a bias on generation 2", "", T + C + "nisa.activation("
     "dst=t[...], op=nl.reciprocal, data=t[...]<<, bias=c[...]||>>)\n", "trn1"),
    ("E4", "an integer bias", "", T + "c = nl.ndarray(shape=(8, 1), dtype=nl.<<int32||bfloat16"
     ">>, buffer=nl.sbuf)\nnisa.memset(dst=c[...], value=<<1||1.0>>)\nnisa.activation("
     "dst=t[...], op=nl.exp, data=t[...], bias=c[...])  #!\n"),
    ("E4", "a bfloat16 scale", "", T + "c = nl.ndarray(shape=(8, 1), dtype=nl."
     "<<bfloat16||float32>>, buffer=nl.sbuf)\nnisa.memset(dst=c[...], value=1.0)\n"
     "nisa.activation(dst=t[...], op=nl.exp, data=t[...], scale=c[...])  #!\n"),
    ("E4", "a reduction by maximum", "", T + C + "nisa.activation_reduce(dst=t[...], "
     "op=nl.exp, data=t[...], reduce_op=nl.<<maximum||add>>, reduce_res=c[...])\n"),
    ("E4", "a reduction into two columns", "", T + tile("c", (8, 2)) +
     "nisa.activation_reduce(dst=t[...], op=nl.exp, data=t[...], reduce_op=nl.add, "
     "reduce_res=c[0:8, 0:<<2||1>>])\n"),
    ("E4", "a reduction without its command", "", T + C + "nisa.activation(dst=t[...], "
     "op=nl.exp, data=t[...], reduce_op=nl.add, reduce_res=c[...]"
     "<<||, reduce_cmd=nisa.reduce_cmd.reset_reduce>>)\n"),
    ("E5", "a reduction over partitions", "", T + C + "nisa.tensor_reduce(dst=c[...], "
     "op=nl.add, data=t[...], axis=<<0||1>>)\n"),
    ("E5", "a middle axis", "", filled("t", (8, 4, 8)) + tile("d", (8, 4)) +
     "nisa.tensor_reduce(dst=d[0:8, 0:4], op=nl.add, data=t[...], axis=<<1||2>>)\n"),
    ("E5", "a result of another shape", "", T + tile("c", (8, 2)) + "nisa.tensor_reduce("
     "dst=c[0:8, 0:<<2||1>>], op=nl.add, data=t[...], axis=1)\n"),
    ("E5", "a partition reduction into all partitions", "", T + D +
     "nisa.tensor_partition_reduce(dst=d[0:<<8||1>>, 0:8], op=nl.add, data=t[...])\n"),
    ("E6", "different shapes", "", T + U +
     "nisa.tensor_copy(dst=t[...], src=u[0:8, 0:<<4||8>>])\n"),
    ("E6", "the scalar engine of generation 2", "", T + U + "nisa.tensor_copy(dst=t[...], "
     "src=u[...], engine=nisa.engine.<<scalar||vector>>)\n", "trn1"),
    ("E7", "both inputs in PSUM", "", D + Q + R + T + "nisa.tensor_tensor_scan(dst=d[...], "
     "data0=q[...], data1=<<r||t>>[...], initial=0.0, op0=nl.multiply, op1=nl.add)\n"),
    ("E7", "an initial tile of two columns", "", T + U + D + filled("c", (8, 2)) +
     "nisa.tensor_tensor_scan(dst=d[...], data0=t[...], data1=u[...], initial=c[0:8, "
     "0:<<2||1>>], op0=nl.multiply, op1=nl.add)\n"),
    ("E8", "an iota into PSUM", "", "p = nl.ndarray(shape=(8, 8), dtype=nl.int32, "
     "buffer=nl.<<psum||sbuf>>)\nnisa.iota(dst=p[...], pattern=[[1, 8]])  #!\n"),
    ("E8", "a pattern of another count", "", I +
     "nisa.iota(dst=i[...], pattern=[[1, <<7||8>>]])\n"),
    ("E8", "five pattern dimensions", "", I + "nisa.iota(dst=i[...], pattern=[<<[1, 1], ||>>"
     "[1, 1], [1, 2], [1, 2], [1, 2]])\n"),
    ("E8", "a select out of PSUM", "", Q + T + D + "nisa.affine_select(dst=d[...], "
     "pattern=[[1, 8]], channel_multiplier=1, on_true_tile=<<q||t>>[...], "
     "on_false_value=0.0)\n"),
    ("E9", "a float predicate", "", T + D + filled("m", (8, 8), "uint8") +
     "nisa.select_reduce(dst=d[...], predicate=<<t||m>>[...], on_true=t[...], "
     "on_false=0.0)\n"),
    ("E9", "an int32 value", "", I + D + T + filled("m", (8, 8), "uint8") +
     "nisa.select_reduce(dst=d[...], predicate=m[...], on_true=<<i||t>>[...], "
     "on_false=0.0)\n"),
    ("E10", "a signed predicate", "", T + U + filled("m", (8, 8), "uint8") + I +
     "nisa.tensor_copy_predicated(dst=t[...], src=u[...], predicate=<<i||m>>[...])\n"),
    ("E10", "another type", "", T + filled("u", (8, 8), "float32") +
     filled("v", (8, 8), "bfloat16") + filled("m", (8, 8), "uint8") +
     "nisa.tensor_copy_predicated(dst=t[...], src=<<v||u>>[...], predicate=m[...])\n"),
    ("E11", "a mask of three entries", "", filled("t", (32, 8)) + tile("d", (32, 8)) +
     "nisa.nc_stream_shuffle(dst=d[...], src=t[...], shuffle_mask=<<[0, 0, 0]||[0, 0, 0, 0, 0, "
     "0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]>>)\n"),
    ("E11", "another type", "", filled("t", (32, 8)) + "d = nl.ndarray(shape=(32, 8), "
     "dtype=nl.<<bfloat16||float32>>, buffer=nl.sbuf)\nnisa.nc_stream_shuffle(dst=d[...], "
     "src=t[...], shuffle_mask=[" + ", ".join(["1"] * 32) + "])  #!\n"),
    ("A4", "a factor that is infinite", "", T + "nisa.tensor_scalar(dst=t[...], data=t[...], op0=nl.multiply, "
     "operand0=<<float('inf')||2.0>>)\n"),
    ("E12", "infinity into integers", "", I + "nisa.memset(dst=i[...], value=<<-float('inf')||2>>)\n"),
    ("E12", "a float into integers", "", I + "nisa.memset(dst=i[...], value=<<2.0||2>>)\n"),
    ("E12", "an integer into floats", "", T + "nisa.memset(dst=t[...], value=<<2||2.0>>)\n"),
    ("E12", "a value float16 does not hold", "", tile("h", (8, 8), "float16") +
     "nisa.memset(dst=h[...], value=<<100000.0||60000.0>>)\n"),
    ("E12", "a value uint8 does not hold", "", tile("h", (8, 8), "uint8") +
     "nisa.memset(dst=h[...], value=<<256||255>>)\n"),
    ("E13", "a large integer through float32", "", I +
     "nisa.memset(dst=i[...], value=<<16777217||16777216>>)\nnisa.tensor_scalar(dst=i[...], "
     "data=i[...], op0=nl.multiply, operand0=1.0)  #!\n"),
    ("E13", "an exact sum beyond int32", "", I + "nisa.memset(dst=i[...], value=<<1073741824||1073741823>>)\n"
     "nisa.tensor_tensor(dst=i[...], data1=i[...], data2=i[...], op=nl.add)  #!\n"),
    ("E13", "a large integer result", "", I + "nisa.memset(dst=i[...], value=10000)\n"
     "nisa.tensor_scalar(dst=i[...], data=i[...], op0=nl.multiply, operand0=<<10000.0||1000.0"
     ">>)\n"),
    ("E15", "a number beyond the largest of e4m3", "", T + tile("h", (8, 8), "float8_e4m3") +
     "nisa.memset(dst=t[...], value=<<249.0||247.0>>)\nnisa.tensor_scalar(dst=h[...], data=t[...], op0=nl.multiply, operand0=1.0)  #!\n"),
    ("E14", "the logarithm of zero", "", T + "nisa.memset(dst=t[0:8, 0:1], "
     "value=<<0.0||1.0>>)\nnisa.activation(dst=t[...], op=nl.log, data=t[...])  #!\n"),
    ("E14", "the sine of four", "", T + "nisa.activation(dst=t[...], op=nl.sin, data=t[...], "
     "scale=<<4.0||3.0>>)\n"),
    ("E14", "the root of a negative number", "", T + "nisa.activation(dst=t[...], op=nl.sqrt, "
     "data=t[...], scale=<<-1.0||1.0>>)\n"),
    ("E14", "the reciprocal of zero", "", T + "nisa.activation(dst=t[...], op=nl.reciprocal, "
     "data=t[...], scale=<<0.0||2.0>>)\n"),
]

DMA = [
    ("D1", "a copy out of PSUM", "", Q + T + tile("h", (8, 8), space="private_hbm") +
     "nisa.dma_copy(dst=h[...], src=<<q||t>>[...])\n"),
    ("D1", "another element count", "a:float32:8x8", D +
     "nisa.dma_copy(dst=d[...], src=a[0:8, 0:<<7||8>>])\n"),
    ("D1", "partitions folded into rows", "a:float32:16x4", D +
     "nisa.dma_copy(dst=d[0:8, 0:<<8||4>>], src=a[0:<<16||8>>, 0:4])\n"),
    ("D2", "hardware descriptors cast", "a:float32:8x8",
     "t = nl.ndarray(shape=(8, 8), dtype=nl.<<bfloat16||float32>>, buffer=nl.sbuf)\n"
     "nisa.dma_copy(dst=t[...], src=a[0:8, 0:8], dge_mode=nisa.dge_mode.hwdge)  #!\n"),
    ("D2", "hardware descriptors on generation 2", "a:float32:8x8", D + "nisa.dma_copy("
     "dst=d[...], src=a[0:8, 0:8], dge_mode=nisa.dge_mode.<<hwdge||swdge>>)\n", "trn1"),
    ("D2", "an engine without hardware descriptors", "a:float32:8x8", D + "nisa.dma_copy("
     "dst=d[...], src=a[0:8, 0:8], engine=nisa.engine.<<sync||unknown>>)\n"),
    ("D3", "partitions change inside SBUF", "", T + tile("v", (4, 16)) +
     "nisa.dma_copy(dst=v[0:4, 0:<<16||8>>], src=t[0:<<8||4>>, 0:8])\n"),
    ("D4", "axes that are no transpose", "a:float32:8x8", D +
     "nisa.dma_transpose(dst=d[...], src=a[0:8, 0:8], axes=<<(0, 1)||(1, 0)>>)\n"),
    ("D4", "a transpose into HBM", "a:float32:8x8", "h = nl.ndarray(shape=(8, 8), "
     "dtype=nl.float32, buffer=nl.<<private_hbm||sbuf>>)\n"
     "nisa.dma_transpose(dst=h[...], src=a[0:8, 0:8])  #!\n"),
    ("D4", "a transpose into another type", "a:float32:16x16", "h = nl.ndarray("
     "shape=(16, 16), dtype=nl.<<bfloat16||float32>>, buffer=nl.sbuf)\n"
     "nisa.dma_transpose(dst=h[...], src=a[0:16, 0:16])  #!\n"),
    ("D4", "a transpose into another shape", "a:float32:8x16", tile("v", (16, 8)) + D +
     "nisa.dma_transpose(dst=v[0:<<8||16>>, 0:8], src=a[0:8, 0:16])\n"),
    ("D5", "a hardware transpose of 8 rows", "a:bfloat16:16x128", tile("v", (128, 16),
     "bfloat16") + "nisa.dma_transpose(dst=v[0:128, 0:<<8||16>>], src=a[0:<<8||16>>, 0:128], "
     "dge_mode=nisa.dge_mode.hwdge)\n"),
    ("D6", "rows 20 bytes apart", "a:float32:8x8", "v = nl.ndarray(shape=(8, <<5||8>>), "
     "dtype=nl.float32, buffer=nl.sbuf)\nnisa.dma_transpose(dst=v[0:8, 0:5], "
     "src=a[0:5, 0:8])  #!\n"),
    ("D7", "a transpose of scratch", "a:float32:8x8", T + D + tile("h", (8, 8),
     space="private_hbm") + "nisa.dma_copy(dst=h[...], src=t[...])\n"
     "nisa.dma_transpose(dst=d[...], src=<<h||a>>[0:8, 0:8])\n"),
    ("D8", "two kinds of offset", "a:float32:8x8", D + "nisa.dma_copy(dst=d[...], src="
     "a.ap(pattern=[[8, 8], [1, 8]], offset=0<<, scalar_offset=1, vector_offset=1||>>))\n"),
    ("D8", "a position of no row", "a:float32:8x8", D + W + "nisa.memset(dst=w[...], value=<<8||7>>)\n"
     "nisa.dma_copy(dst=d[...], src=a.ap(pattern=[[8, 8], [1, 8]], offset=0, vector_offset=w[0:8, 0:1], indirect_dim=0))  #!\n"),
    ("D8", "positions that are no integers", "a:float32:8x8", D + C + "nisa.memset(dst=c[...], value=1.0)\n" + W +
     "nisa.memset(dst=w[...], value=1)\n"
     "nisa.dma_copy(dst=d[...], src=a.ap(pattern=[[8, 8], [1, 8]], offset=0, vector_offset=<<c||w>>[0:8, 0:1], indirect_dim=0))\n"),
    ("D8", "positions of other partitions", "a:float32:8x8", D + W + "nisa.memset(dst=w[...], value=1)\n"
     "nisa.dma_copy(dst=d[...], src=a.ap(pattern=[[8, 8], [1, 8]], offset=0, vector_offset=w[0:<<4||8>>, 0:1], indirect_dim=0))\n"),
    ("D8", "rows of another length", "a:float32:8x8", D + W + "nisa.memset(dst=w[...], value=1)\n"
     "nisa.dma_copy(dst=d[...], src=a.ap(pattern=[[<<4||8>>, 8], [1, 8]], offset=0, vector_offset=w[0:8, 0:1], indirect_dim=0))\n"),
    ("G11", "an indirect pattern that leaves its row", "a:float32:8x16", D + W + "nisa.memset(dst=w[...], value=1)\n"
     "nisa.dma_copy(dst=d[...], src=a.ap(pattern=[[16, 8], [1, 8]], offset=<<9||8>>, vector_offset=w[0:8, 0:1], indirect_dim=0))\n"),
    ("G12", "positions that nothing wrote", "a:float32:8x8", D + W + "<<||nisa.memset(dst=w[...], value=1)>>\n"
     "nisa.dma_copy(dst=d[...], src=a.ap(pattern=[[8, 8], [1, 8]], offset=0, vector_offset=w[0:8, 0:1], indirect_dim=0))  #!\n"),
    ("D9", "a zero-stride partition dimension of size 1", "a:float32:8x8", tile("v", (1, 8)) +
     "nisa.dma_copy(dst=v[...], src=a.ap(pattern=[[<<0||8>>, 1], [1, 8]], offset=0))\n"),
]

CASES = MATRIX + ENGINES + DMA
