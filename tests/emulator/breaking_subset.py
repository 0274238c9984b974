# SPDX-License-Identifier: Apache-2.0
"""Texts that leave the Python subset (P rules), as rows of breaking_general.py or modules.

A row of MODULES is: rule, sentence, text with <<bad||good>>, file name or None.
"""

from support import CLOSING, HEAD, indented, tile

S = tile("s", (8, 8))

CASES = [
    ("P1", "a lambda", "", "f = <<lambda: 1||1>>\n"),
    ("P1", "a list comprehension", "", "f = <<[i for i in range(3)]||[0, 1, 2]>>\n"),
    ("P1", "a set", "", "f = <<{1, 2}||(1, 2)>>\n"),
    ("P1", "a dictionary", "", "f = <<{'a': 1}||1>>\n"),
    ("P1", "a walrus", "", "f = <<(g := 1)||1>>\n"),
    ("P1", "a yield", "", "<<yield 1||pass>>\n"),
    ("P1", "a floor division", "", "f = <<7 // 2||3>>\n"),
    ("P1", "a power", "", "f = <<2 ** 3||8>>\n"),
    ("P1", "a bytes literal", "", "f = <<b'x'||'x'>>\n"),
    ("P1", "a complex literal", "", "f = <<1j||1.0>>\n"),
    ("P1", "a minus before a name", "", "g = 1\nf = <<-g||0 - g>>\n"),
    ("P1", "a tuple as an index", "", S + "nisa.memset(dst=s[<<(0, 1)||0>>, (0)], value=1.0)\n"
     .replace(", (0)]", ", 0:1]")),
    ("P2", "an inner function", "", "<<def f(): pass||pass>>\n"),
    ("P2", "an inner class", "", "<<class F: pass||pass>>\n"),
    ("P2", "a with statement", "", "<<with nl.ndarray: pass||pass>>\n"),
    ("P2", "a try statement", "", "<<try: pass\nfinally: pass||pass>>\n"),
    ("P2", "a raise", "", "<<raise 1||pass>>\n"),
    ("P2", "a del", "", "f = 1\n<<del f||pass>>\n"),
    ("P2", "a global", "", "<<global f||pass>>\n"),
    ("P2", "an import", "", "<<import nki.isa as ni||pass>>\n"),
    ("P2", "a match", "", "<<match 1:\n    case _: pass||pass>>\n"),
    ("P2", "an annotation", "", "f<<: int||>> = 1\n"),
    ("P2", "an expression without effect", "", "<<1 + 1||pass>>\n"),
    ("P3", "is", "a:float32:8x8", "f = 1\nif <<f is 1||f == 1>>:\n    pass\n"),
    ("P3", "in", "", "if <<1 in (1, 2)||1 == 1>>:\n    pass\n"),
    ("P4", "star arguments in a call", "", "f = (1, 2)\n<<nisa.memset(*f)||pass>>\n"),
    ("P4", "keyword expansion", "", "f = 1\n<<nisa.memset(**f)||pass>>\n"),
    ("P5", "the @ operator", "a:float32:8x8", "<<f = a @ a||pass>>\n"),
    ("P5", "a sum of tensors", "a:float32:8x8", "<<f = a + a||pass>>\n"),
    ("P5", "a tensor as a condition", "a:float32:8x8", "if <<a||True>>:\n    pass\n"),
    ("P5", "a comparison of tensors", "a:float32:8x8", "f = <<a == a||a.shape == a.shape>>\n"),
    ("P5", "a loop over a tensor", "a:float32:8x8", "for i in <<a||(1, 2)>>:\n    pass\n"),
    ("P6", "assignment into a tile", "", S + "<<s[0:8, 0:8] = 1.0||pass>>\n"),
    ("P6", "augmented assignment into a tile", "", S + "<<s[0:8, 0:8] += 1.0||pass>>\n"),
    ("P7", "a while loop", "", "<<while True: break||pass>>\n"),
    ("P7", "two loop targets", "", "for <<i, j||i>> in ((1, 2), (3, 4)):\n    pass\n"),
    ("P7", "for..else", "", "for i in range(2):  #!\n    pass\n<<else:||if True:>>\n    "
     "pass\n"),
    ("P7", "a loop over affine_range", "", "for i in <<nl.affine_range||range>>(2):\n    "
     "pass\n"),
    ("P8", "an integer beyond int32", "", "f = <<2147483648||2147483647>>\n"),
    ("P8", "a product beyond int32", "", "f = 65536\nf <<*||+>>= f\n"),
    ("P1", "a string times a number", "", "f = <<'ab' * 3||'ababab'>>\n"),
    ("P2", "a break outside of a loop", "", "<<break||pass>>\n"),
    ("P8", "an infinite float", "", "f = <<1e999||1e30>>\n"),
    ("P8", "arithmetic with infinity", "", "f = float('inf')\nf <<+||= 1.0 #>>= f\n"),
    ("P13", "a number from text", "", "f = float('<<nan||inf>>')\n"),
    ("P1", "minus of a call", "", "f = <<-nl.program_id(axis=0)||-float('inf')>>\n"),
    ("P9", "a formatted string", "", "f = <<f'{1:3d}'||'1'>>\n"),
    ("P10", "range with a keyword", "", "for i in range(<<stop=2||2>>):\n    pass\n"),
    ("P11", "positional arguments", "", S + "nisa.memset(<<s[...], 1.0||dst=s[...], value=1.0>>"
     ")\n"),
    ("P11", "a positional shape", "",
     "t = nl.ndarray(<<||shape=>>(8, 8), dtype=nl.float32, buffer=nl.sbuf)\n"),
    ("P13", "an undefined name", "", S + "nisa.memset(dst=<<z||s>>[...], value=1.0)\n"),
    ("P13", "a name not yet defined", "", "f = <<g||1>>\ng = 1\n"),
    ("P13", "a builtin function", "", "f = <<min(1, 2)||1>>\n"),
    ("P13", "an attribute nobody knows", "a:float32:8x8", "f = a.<<strides||shape>>\n"),
    ("P15", "a slice of a slice", "", S + "nisa.memset(dst=s[0:8, 0:4]<<[0:4, 0:4]||>>, "
     "value=1.0)\n"),
    ("P15", "a slice of a slice of a tile in a list", "", S + "ts = [s]\n"
     "nisa.memset(dst=ts[0][0:8, 0:4]<<[0:4, 0:4]||>>, value=1.0)\n"),
    ("P15", "a slice of a named slice", "", S + "t = s<<[0:8, 0:4]||>>\n"
     "nisa.memset(dst=t[0:4, 0:4], value=1.0)  #!\n"),
]

_BODY = indented(CLOSING)

MODULES = [
    ("P4", "a star parameter", HEAD + f"@nki.jit\ndef k(<<*a||>>):\n{_BODY}", None),
    ("P4", "a default value", HEAD + f"@nki.jit\ndef k(<<a=1||>>):\n{_BODY}", None),
    ("P4", "a keyword-only parameter", HEAD + f"@nki.jit\ndef k(<<*, a||>>):\n{_BODY}", None),
    ("P12", "another import", HEAD + f"<<import os||>>\n@nki.jit\ndef k():\n{_BODY}", None),
    ("P12", "a second function", HEAD + f"@nki.jit\ndef k():\n{_BODY}"
     "<<def g(): pass||>>\n", None),
    ("P12", "a call at module level", HEAD +
     f"<<range(3)||N = 3>>\n@nki.jit\ndef k():\n{_BODY}", None),
    ("P12", "a computed constant", HEAD + f"N = <<range(3)||(1, 2)>>\n@nki.jit\ndef k():\n"
     f"{_BODY}", None),
    ("P12", "no kernel", HEAD + f"<<||@nki.jit>>\ndef k():  #!\n{_BODY}", None),
    ("P12", "another decorator", HEAD + f"<<@range||@nki.jit>>\ndef k():\n{_BODY}", None),
    ("P13", "a name that hides a module", HEAD + f"@nki.jit\ndef k(<<nl||>>):\n{_BODY}", None),
    ("P14", "a file name that begins with nki", HEAD + f"@nki.jit\ndef k():\n{_BODY}",
     ("nki_k.py", "k_nki.py")),
    ("P14", "a file name that is no identifier", HEAD + f"@nki.jit\ndef k():\n{_BODY}",
     ("my-kernel.py", "my_kernel.py")),
    ("A1", "the old package", HEAD +
     f"<<import neuronxcc.nki||>>\n@nki.jit\ndef k():\n{_BODY}", None),
    ("P1", "text that is not Python", HEAD + f"@nki.jit\ndef k(<<)||>>):\n{_BODY}", None),
]
