# SPDX-License-Identifier: Apache-2.0
"""Kernels that break the rules of memory (G), of whole programs (H) and of the interface (A).

Each row: rule, a sentence, inputs, body. `<<bad||good>>` gives the broken and the mended text;
the rule must be raised for the line of the mark `#!`, or else of the first `<<`.
"""

from support import filled, tile
from nki_emulator.dtype import TYPES
from nki_emulator.manifest import Argument, Manifest



def _square(name, number):
    return Argument(name, "", TYPES["float32"], (8, 8), number=number)


S = tile("s", (128, 512))
SF = filled("s", (128, 512))
PF = filled("p", (128, 512), space="psum")

CASES = [
    ("G1", "a tile has more than 128 partitions", "",
     "t = nl.ndarray(shape=(<<129||128>>, 8), dtype=nl.float32, buffer=nl.sbuf)\n"),
    ("G2", "a tile has one dimension", "",
     "t = nl.ndarray(shape=<<(128,)||(128, 1)>>, dtype=nl.float32, buffer=nl.sbuf)\n"),
    ("G3", "one tile exceeds SBUF", "",
     "t = nl.ndarray(shape=(128, <<53247||53246>>), dtype=nl.float32, buffer=nl.sbuf)\n"),
    ("G3", "two live tiles exceed SBUF", "",
     filled("t", (128, 40000)) + "u = nl.ndarray(shape=(128, <<14000||13000>>), "
     "dtype=nl.float32, buffer=nl.sbuf)\nnisa.memset(dst=u[...], value=1.0)\n"
     "nisa.tensor_copy(dst=t[0:1, 0:8], src=u[0:1, 0:8])\n"),
    ("G4", "one tile exceeds PSUM", "",
     "t = nl.ndarray(shape=(128, <<4097||4096>>), dtype=nl.float32, buffer=nl.psum)\n"),
    ("G4", "nine banks are live", "",
     filled("t", (128, 4096), space="psum").replace("4096", "<<4096||3584>>", 1) +
     "u = nl.ndarray(shape=(128, 1), dtype=nl.float32, buffer=nl.psum)  #!\n"
     "nisa.memset(dst=u[...], value=1.0)\n" + tile("v", (128, 1)) +
     "nisa.tensor_copy(dst=v[...], src=t[0:128, 0:1])\n"),
    ("G4", "a matmul result crosses a bank", "a:float32:128x128 b:float32:128x512",
     filled("x", (128, 128)) + filled("y", (128, 512)) + tile("p", (128, 1024), space="psum") +
     "nisa.nc_matmul(dst=p[0:128, <<256:768||512:1024>>], stationary=x[...], moving=y[...])\n"),
    ("G5", "8 partitions start at 48", "",
     S + "nisa.memset(dst=s[<<48:56||32:40>>, 0:8], value=1.0)\n"),
    ("G5", "48 partitions start at 32", "",
     S + "nisa.memset(dst=s[<<32:80||64:112>>, 0:8], value=1.0)\n"),
    ("G5", "every other partition", "",
     S + "nisa.memset(dst=s[<<0:64:2||0:32>>, 0:8], value=1.0)\n"),
    ("G6", "a single partition at 1", "",
     S + "nisa.memset(dst=s[<<1||32>>, 0:8], value=1.0)\n"),
    ("G6", "a single partition at 127 of a copy's source", "",
     SF + tile("t", (1, 8)) + "nisa.tensor_copy(dst=t[0:1, 0:8], src=s[<<127:128||96:97>>, "
     "0:8])\n"),
    ("G5", "96 partitions move up by 32", "",
     SF + tile("t", (128, 512)) +
     "nisa.tensor_copy(dst=t[<<32:128||0:96>>, 0:8], src=s[0:96, 0:8])\n"),
    ("G7", "matmul operands start at different partitions", "",
     SF + tile("p", (8, 8), space="psum") + "nisa.nc_matmul(dst=p[...], "
     "stationary=s[<<32||0>>:<<64||32>>, 0:8], moving=s[0:32, 8:16])\n"),
    ("G7", "inputs in different quadrants", "", SF + tile("t", (128, 8)) +
     "nisa.tensor_tensor(dst=t[0:32, 0:8], data1=s[0:32, 0:8], data2=s[<<32:64||0:32>>, 8:16], "
     "op=nl.add)\n"),
    ("G7", "an operand column in another quadrant", "", SF + tile("t", (128, 8)) +
     "nisa.tensor_scalar(dst=t[0:32, 0:8], data=s[32:64, 0:8], op0=nl.add, "
     "operand0=s[<<0:32||32:64>>, 8:9])\n"),
    ("G8", "more than 4K elements of PSUM", "",
     tile("p", (128, 8000), "bfloat16", "psum") +
     "nisa.memset(dst=p[0:128, 0:<<5000||4096>>], value=1.0)\n"),
    ("G8", "more than 64K elements of SBUF", "",
     tile("t", (128, 100000), "uint8") +
     "nisa.memset(dst=t[0:128, 0:<<65537||65535>>], value=1)\n"),
    ("G9", "a stride above 32767", "",
     tile("t", (128, 2, 40000), "uint8") +
     "nisa.memset(dst=t[0:128, 0:<<2||1>>, 0:8], value=1)\n"),
    ("G9", "a free size above 65535", "",
     tile("t", (128, 65536), "uint8") +
     "nisa.memset(dst=t[0:128, 0:<<65536||65535>>], value=1)\n"),
    ("G9", "four free dimensions that do not join", "",
     tile("t", (128, 4, 4, 4, 4)) +
     "nisa.memset(dst=t[0:128, 0:4:2, 0:4:2, 0:4:2, <<0:4:2||0:1>>], value=1.0)\n"),
    ("G9", "a sum over a tile of five free dimensions", "",
     tile("t", (128, 1)) + filled("x", (128, 4, 4, 4, 4)) +
     "nisa.tensor_reduce(dst=t, op=nl.add, data=x.ap(pattern=[[256, 128], [64, 2], [16, 2], [4, 2], [1, 2]<<, [0, 2]||>>], "
     "offset=0), axis=[1, 2, 3, 4<<, 5||>>])\n"),
    ("G9", "a stationary of two free dimensions", "",
     filled("x", (128, 4, 64)) + filled("y", (128, 64)) + tile("p", (128, 64), space="psum") +
     "nisa.nc_matmul(dst=p[0:64, 0:64], stationary=x[0:128, 0:2, <<0:32||0:64:2>>], moving=y)\n"),
    ("G9", "six dimensions", "",
     "t = nl.ndarray(shape=(8, 2, 2, 2, 2<<, 2||>>), dtype=nl.float32, buffer=nl.sbuf)\n"),
    ("G10", "a pattern with another partition stride", "",
     SF + "nisa.memset(dst=s.ap(pattern=[[<<256||512>>, 128], [1, 8]], offset=0), "
     "value=1.0)\n"),
    ("G10", "a pattern on a slice", "",
     S + "t = s<<[0:128, 0:8]||[...]>>\nnisa.memset(dst=<<t||s>>.ap(pattern=[[512, 128], "
     "[1, 8]], offset=0), value=1.0)  #!\n"),
    ("G10", "a reshape that folds partitions into rows", "",
     "s = nl.ndarray(shape=(1, 64), dtype=nl.float32, buffer=nl.sbuf)\n"
     "t = s.reshape(shape=<<(64, 1)||(1, 8, 8)>>)\nnisa.memset(dst=t, value=1.0)\n"),
    ("G11", "a slice end beyond the size", "a:float32:128x128",
     S + "nisa.dma_copy(dst=s[0:128, 0:128], src=a[0:128, 0:<<129||128>>])\n"),
    ("G11", "a start at the size", "", S + "nisa.memset(dst=s[0:128, <<512:512||511:512>>], "
     "value=1.0)\n"),
    ("G11", "an empty range", "", S + "nisa.memset(dst=s[0:128, <<5:5||5:6>>], value=1.0)\n"),
    ("G11", "a negative start", "", S + "nisa.memset(dst=s[0:128, <<-2||510>>:512], "
     "value=1.0)\n"),
    ("G11", "an index out of range", "a:float32:4x128", tile("t", (1, 128)) +
     "nisa.dma_copy(dst=t[...], src=a[<<4||3>>, 0:128])\n"),
    ("G11", "a step of zero", "", S + "nisa.memset(dst=s[0:128, 0:8:<<0||2>>], value=1.0)\n"),
    ("G11", "too many indices", "", S + "nisa.memset(dst=s[0:128, 0:8<<, 0:1||>>], "
     "value=1.0)\n"),
    ("G11", "a pattern beyond its row", "", S + "nisa.memset(dst=s.ap(pattern=[[512, 128], [1, "
     "<<512||8>>]], offset=8), value=1.0)\n"),
    ("G12", "a tile is read that nothing wrote", "", tile("t", (8, 8)) + tile("u", (8, 8)) +
     "nisa.<<tensor_copy(dst=u[...], src=t[...])||memset(dst=t[...], value=1.0)>>\n"),
    ("G12", "one column of a tile was never written", "", tile("t", (8, 8)) +
     tile("u", (8, 8)) + "nisa.memset(dst=t[0:8, 0:<<7||8>>], value=1.0)\n"
     "nisa.tensor_copy(dst=u[...], src=t[...])  #!\n"),
    ("G12", "an output is read before it is written", "",
     tile("t", (8, 8)) + tile("h", (8, 8), space="private_hbm") +
     "<<pass||nisa.memset(dst=t[...], value=1.0)>>\n"
     "<<pass||nisa.dma_copy(dst=h[...], src=t[...])>>\n"
     "nisa.dma_copy(dst=t[...], src=h[...])  #!\n"),
    ("G13", "an address at partition 16", "",
     "t = nl.ndarray(shape=(8, 8), dtype=nl.float32, buffer=nl.sbuf, "
     "address=(<<16||0>>, 0))\n"),
    ("G13", "an address that is not aligned", "",
     "t = nl.ndarray(shape=(8, 8), dtype=nl.float32, buffer=nl.sbuf, address=(0, <<6||8>>))\n"),
    ("G13", "an address within a PSUM bank", "", "t = nl.ndarray(shape=(8, 8), "
     "dtype=nl.float32, buffer=nl.psum, address=(0, <<1024||2048>>))\n"),
    ("G14", "bfloat16 in PSUM from an odd element", "",
     tile("p", (8, 8), "bfloat16", "psum") +
     "nisa.memset(dst=p[0:8, <<1:5||2:6>>], value=1.0)\n"),
    ("G14", "single bytes of PSUM", "", tile("p", (8, 8), "<<float8_e5m2||bfloat16>>", "psum") + "nisa.memset(dst=p[...], value=1.0)  #!\n"),
    ("G14", "every other half word of PSUM", "", tile("p", (8, 8), "bfloat16", "psum") +
     "nisa.memset(dst=p[0:8, 0:8:<<2||1>>], value=1.0)\n"),
    ("G16", "GpSimd fills PSUM", "", tile("p", (8, 8), space="psum") +
     "nisa.memset(dst=p[...], value=1.0, engine=nisa.engine.<<gpsimd||vector>>)\n"),
    ("G16", "GpSimd copies from PSUM", "", PF + tile("t", (128, 512)) +
     "nisa.tensor_copy(dst=t[...], src=p[...], engine=nisa.engine.<<gpsimd||vector>>)\n"),
    ("G17", "two tiles have one name", "", "t = nl.ndarray(shape=(8, 8), dtype=nl.float32, "
     "buffer=nl.sbuf, name='x')\nu = nl.ndarray(shape=(8, 8), dtype=nl.float32, "
     "buffer=nl.sbuf, name='<<x||y>>')\n"),
    ("G18", "(1,1) beside (P,1)", "", filled("t", (8, 1)) + filled("u", (8, 1)) +
     "nisa.tensor_tensor(dst=t[...], data1=t[...], data2=u[0:<<1||8>>, 0:1], op=nl.add)\n"),
    ("H1", "a copy onto its own shifted source", "", SF +
     "nisa.tensor_copy(dst=s[0:128, 0:8], src=s[0:128, <<4:12||8:16>>])\n"),
    ("H1", "row sums into the result they sum", "", SF + tile("t", (128, 9)) +
     "nisa.activation_reduce(dst=t[0:128, 0:8], op=nl.exp, data=s[0:128, 0:8], "
     "reduce_op=nl.add, reduce_res=t[0:128, <<7:8||8:9>>])\n"),
    ("H1", "a pattern that writes an element twice", "", S + "nisa.memset(dst=s.ap("
     "pattern=[[512, 128], [<<0||1>>, 8]], offset=0), value=1.0)\n"),
    ("D10", "a copy into a parameter", "a:float32:8x8", filled("t", (8, 8)) +
     tile("h", (8, 8), space="private_hbm") +
     "nisa.dma_copy(dst=<<a||h>>[0:4, 0:8], src=t[0:4, 0:8])\n"),
    ("H4", "scratch beyond what is emulated", "", "h = nl.ndarray(shape=(1000, 1000, "
     "<<1000||10>>), dtype=nl.float32, buffer=nl.private_hbm)\n"),
    ("A1", "an operation nobody knows", "", "<<nisa.frobnicate(dst=1)||pass>>\n"),
    ("A1", "a wrapper of nl", "a:float32:8x8", "<<t = nl.load(src=a)||pass>>\n"),
    ("A1", "an operator called", "a:float32:8x8", "<<t = nl.add(x=a, y=a)||pass>>\n"),
    ("A1", "a type this emulator does not hold", "",
     "t = nl.ndarray(shape=(8, 8), dtype=nl.<<float8_e4m3fn||float8_e4m3>>, buffer=nl.sbuf)\n"),
    ("A1", "an engine nobody knows", "", S + "nisa.memset(dst=s[...], value=1.0, "
     "engine=nisa.engine.<<warp||vector>>)\n"),
    ("A2", "an unknown keyword", "", S + "nisa.memset(dst=s[...], value=1.0<<, mask=3||>>)\n"),
    ("A2", "an unknown keyword of ndarray", "",
     "t = nl.ndarray(shape=(8, 8), dtype=nl.float32, buffer=nl.sbuf<<, init=0||>>)\n"),
    ("A3", "a missing dst", "", S + "nisa.memset(<<||dst=s[...], >>value=1.0)\n"),
    ("A3", "a missing operand", "", SF + tile("t", (128, 512)) +
     "nisa.tensor_copy(dst=t[...]<<||, src=s[...]>>)\n"),
    ("A3", "a missing buffer", "",
     "t = nl.ndarray(shape=(8, 8), dtype=nl.float32<<||, buffer=nl.sbuf>>)\n"),
    ("A4", "a buffer as a string", "",
     "t = nl.ndarray(shape=(8, 8), dtype=nl.float32, buffer=<<'sbuf'||nl.sbuf>>)\n"),
    ("A4", "a type as a string", "",
     "t = nl.ndarray(shape=(8, 8), dtype=<<'float32'||nl.float32>>, buffer=nl.sbuf)\n"),
    ("A4", "an engine as a number", "", S +
     "nisa.memset(dst=s[...], value=1.0, engine=<<5||nisa.engine.vector>>)\n"),
    ("A4", "an engine reads HBM", "a:float32:8x8", tile("t", (8, 8)) +
     "nisa.<<tensor_copy||dma_copy>>(dst=t[...], src=a[0:8, 0:8])\n"),
    ("A4", "a result used as a value", "", S +
     "<<x = ||>>nisa.memset(dst=s[...], value=1.0)\n"),
    ("A4", "an operator that is none", "", SF + "nisa.tensor_scalar(dst=s[...], data=s[...], "
     "op0=nl.<<exp||add>>, operand0=1.0)\n"),
]

RESULT = "o = nl.ndarray(shape=(8, 8), dtype=nl.float32, buffer=nl.shared_hbm)\n"

# Rules that whole texts break: rule, sentence, inputs, options, text of a body with its return.
WHOLE = [
    ("G15", "an output in plain hbm", "", {},
     filled("t", (1, 1)) + "o = nl.ndarray(shape=(1, 1), dtype=nl.float32, "
     "buffer=nl.<<hbm||shared_hbm>>)\nnisa.dma_copy(dst=o[...], src=t[...])\nreturn o  #!\n"),
    ("G15", "an output with a hole", "", {},
     filled("t", (1, 8)) + "o = nl.ndarray(shape=(1, 8), dtype=nl.float32, "
     "buffer=nl.shared_hbm)  #!\nnisa.dma_copy(dst=o[0:1, 0:<<7||8>>], "
     "src=t[0:1, 0:<<7||8>>])\nreturn o\n"),
    ("G15", "a shared_hbm tensor that is not returned", "", {},
     filled("t", (1, 1)) + "s = nl.ndarray(shape=(1, 1), dtype=nl.float32, "
     "buffer=nl.<<shared_hbm||private_hbm>>)\no = nl.ndarray(shape=(1, 1), "
     "dtype=nl.float32, buffer=nl.shared_hbm)\nnisa.dma_copy(dst=s[...], src=t[...])\n"
     "nisa.dma_copy(dst=o[...], src=s[...])\nreturn o\n"),
    ("G15", "nothing is returned", "", {},
     filled("t", (1, 1)) + "o = nl.ndarray(shape=(1, 1), dtype=nl.float32, "
     "buffer=nl.shared_hbm)\nnisa.dma_copy(dst=o[...], src=t[...])\n<<pass||return o>>\n"),
    ("H5", "rows of a result are stored twice", "", {},
     filled("t", (8, 8)) + RESULT + "nisa.dma_copy(dst=o[0:4, 0:8], src=t[0:4, 0:8])\n"
     "nisa.dma_copy(dst=o[<<3||4>>:8, 0:8], src=t[<<3||4>>:8, 0:8])\nreturn o\n"),
    ("H5", "an element read between two stores is not what the second one overwrites", "", {},
     filled("t", (8, 8)) + RESULT + "nisa.dma_copy(dst=o[0:8, 0:8], src=t[...])\n"
     "nisa.dma_copy(dst=t[0:8, 0:<<7||8>>], src=o[0:8, 0:<<7||8>>])\n"
     "nisa.dma_copy(dst=o[0:8, 0:8], src=t[...])  #!\nreturn o\n"),
    ("H5", "a result is summed up where it lies, and updates no argument", "a:float32:8x8",
     {"manifest": Manifest("k", [_square("a", 0)], [_square("o", 1)])},
     tile("t", (8, 8)) + RESULT + "nisa.dma_copy(dst=t[...], src=a[0:8, 0:8])\n"
     "nisa.dma_copy(dst=o[0:8, 0:8], src=t[...])\n"
     "nisa.dma_copy(dst=t[...], src=o[0:8, 0:8])\n"
     "<<nisa.dma_copy(dst=o[0:8, 0:8], src=t[...])||pass>>\nreturn o\n"),
    ("H6", "halves of two cores overlap", "", {"lnc": 2},
     filled("t", (8, 8)) + RESULT + "core = nl.program_id(axis=0)\n"
     "nisa.dma_copy(dst=o[<<3||4>> * core:<<3||4>> * core + 4, 0:8], src=t[0:4, 0:8])\n"
     "return o\n"),
    ("G15", "a half is missed", "", {"lnc": 2},
     filled("t", (8, 8)) + RESULT.replace("\n", "  #!\n") + "core = nl.program_id(axis=0)\n"
     "if core < <<1||2>>:\n"
     "    nisa.dma_copy(dst=o[4 * core:4 * core + 4, 0:8], src=t[0:4, 0:8])\nreturn o\n"),
    ("H6", "a core reads what the other has stored", "", {"lnc": 2},
     filled("t", (8, 8)) + RESULT + "core = nl.program_id(axis=0)\n"
     "nisa.dma_copy(dst=o[4 * core:4 * core + 4, 0:8], src=t[0:4, 0:8])\n"
     "nisa.dma_copy(dst=t[0:4, 0:8], src=o[<<0:4||4 * core:4 * core + 4>>, 0:8])\nreturn o\n"),
    ("H6", "a core has another result", "", {"lnc": 2},
     filled("t", (8, 8)) + "core = nl.program_id(axis=0)\n"
     "o = nl.ndarray(shape=(8 + <<core||0 * core>>, 8), dtype=nl.float32, buffer=nl.shared_hbm)\n"
     "nisa.dma_copy(dst=o[4 * core:4 * core + 4, 0:8], src=t[0:4, 0:8])\n"
     "return o\n"),
    ("H6", "a kernel for two cores is launched for one", "", {"lnc": 1},
     filled("t", (8, 8)) + RESULT + "assert <<nl.num_programs(axes=0)||1>> == 1\n"
     "nisa.dma_copy(dst=o[0:8, 0:8], src=t[...])\nreturn o\n"),
    ("A4", "a grid of two dimensions", "", {"lnc": 2},
     filled("t", (8, 8)) + RESULT + "core = nl.program_id(axis=<<1||0>>)\n"
     "nisa.dma_copy(dst=o[4 * core:4 * core + 4, 0:8], src=t[0:4, 0:8])\nreturn o\n"),
    ("D11", "more single elements are copied than a queue has descriptors", "a:float32:128x1024", {},
     tile("t", (128, 512)) + "for i in range(<<256||255>>):\n"
     "    nisa.dma_copy(dst=t[...], src=a[0:128, 0:1024:2])  #!\n" +
     "o = nl.ndarray(shape=(128, 512), dtype=nl.float32, buffer=nl.shared_hbm)\n"
     "nisa.dma_copy(dst=o[0:128, 0:512], src=t[...])\nreturn o\n"),
    ("H2", "too many instructions", "", {"max_instructions": 10},
     filled("t", (1, 1)) + "for i in range(<<10||8>>):\n    nisa.memset(dst=t[...], value=2.0)"
     "  #!\no = nl.ndarray(shape=(1, 1), dtype=nl.float32, buffer=nl.shared_hbm)\n"
     "nisa.dma_copy(dst=o[...], src=t[...])\nreturn o\n"),
    ("H2", "loops without an end", "", {"max_instructions": 100},
     "for i in range(<<10000||9>>):\n    for j in (1, 2, 3):  #!\n        pass\n" +
     filled("t", (1, 1)) +
     "o = nl.ndarray(shape=(1, 1), dtype=nl.float32, buffer=nl.shared_hbm)\n"
     "nisa.dma_copy(dst=o[...], src=t[...])\nreturn o\n"),
    ("H2", "a tuple that holds itself twice, and so on", "", {},
     "s = (1, 2)\nt = (1, 2)\nfor i in range(<<60||6>>):\n    s = (s, s)  #!\n    t = (t, t)\nassert s == t\n" +
     filled("t", (1, 1)) +
     "o = nl.ndarray(shape=(1, 1), dtype=nl.float32, buffer=nl.shared_hbm)\n"
     "nisa.dma_copy(dst=o[...], src=t[...])\nreturn o\n"),
    ("H2", "a tuple in a tuple, and so on", "", {},
     "s = (1,)\nfor i in range(<<60||6>>):\n    s = (s,)  #!\nassert 1 < 2, s\n" +
     filled("t", (1, 1)) +
     "o = nl.ndarray(shape=(1, 1), dtype=nl.float32, buffer=nl.shared_hbm)\n"
     "nisa.dma_copy(dst=o[...], src=t[...])\nreturn o\n"),
    ("H2", "a long tuple is compared again and again", "", {"max_instructions": 100},
     "s = (1, 2)\nt = (1, 2)\nfor i in range(7):\n    s = (s, s)\n    t = (t, t)\n"
     "for i in range(<<1000||9>>):\n    assert s == t  #!\n" + filled("t", (1, 1)) +
     "o = nl.ndarray(shape=(1, 1), dtype=nl.float32, buffer=nl.shared_hbm)\n"
     "nisa.dma_copy(dst=o[...], src=t[...])\nreturn o\n"),
    ("H3", "an assertion about shapes fails", "a:float32:8x8", {},
     "assert a.shape == (8, <<9||8>>)\n" + filled("t", (1, 1)) + "o = nl.ndarray(shape=(1, 1), "
     "dtype=nl.float32, buffer=nl.shared_hbm)\nnisa.dma_copy(dst=o[...], src=t[...])\n"
     "return o\n"),
    ("G13", "two live tiles at one address", "", {},
     "t = nl.ndarray(shape=(8, 8), dtype=nl.float32, buffer=nl.sbuf, address=(0, 0))\n"
     "u = nl.ndarray(shape=(8, 8), dtype=nl.float32, buffer=nl.sbuf, address=(0, <<16||32>>))\n"
     "nisa.memset(dst=t[...], value=1.0)\nnisa.memset(dst=u[...], value=1.0)\n"
     "o = nl.ndarray(shape=(8, 8), dtype=nl.float32, buffer=nl.shared_hbm)\n"
     "nisa.dma_copy(dst=o[...], src=t[...])\nreturn o\n"),
]
