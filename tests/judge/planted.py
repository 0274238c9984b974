# SPDX-License-Identifier: Apache-2.0
"""Planted errors: the judge must refuse every one, and accept the same kernel without it.

One kernel with a hole at each of three places: among the module's lines, in the kernel's body,
and in a slice. A judge that was silently broken (a wrong path, a placeholder package in front)
would accept them.
"""

TEMPLATE = """\
import nki
import nki.isa as nisa
import nki.language as nl

WIDTH = 8


@nki.jit
def k(a{parameter}):
    out = nl.ndarray(shape=(8, 8), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.ndarray(shape=(8, 8), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t[0:8, 0:8], src=a[{slice}])
{body}
    nisa.dma_copy(dst=out[0:8, 0:8], src=t[0:8, 0:8])
    return out
"""
GOOD = {"parameter": "", "slice": "0:8, 0:8", "body": "    pass"}

PLANTED = [
    ("a lambda", {"body": "    f = lambda: 1"}),
    ("a list comprehension", {"body": "    f = [i for i in range(3)]"}),
    ("a dictionary comprehension", {"body": "    f = {i: i for i in range(3)}"}),
    ("a set", {"body": "    f = {1, 2}"}),
    ("a walrus", {"body": "    f = (g := 1)"}),
    ("a generator in a call", {"body": "    nisa.memset(dst=t, value=(i for i in range(3)))"}),
    ("an inner function", {"body": "    def f():\n        pass"}),
    ("an inner class", {"body": "    class F:\n        pass"}),
    ("a try statement", {"body": "    try:\n        f = 1\n    finally:\n        f = 2"}),
    ("a while loop", {"body": "    f = 1\n    while f == 1:\n        f = 2"}),
    ("a global", {"body": "    global f\n    f = 1"}),
    ("an import", {"body": "    import math"}),
    ("a del", {"body": "    f = 1\n    del f"}),
    ("star arguments", {"body": "    f = (1, 2)\n    nisa.memset(*f)"}),
    ("a raise", {"body": "    if WIDTH == 8:\n        raise WIDTH"}),
    ("a star parameter", {"parameter": ", *b"}),
    ("an undefined name", {"body": "    nisa.memset(dst=zz[0:8, 0:8], value=1.0)"}),
    ("a false assertion", {"body": "    assert WIDTH == 9"}),
    ("assignment into a tile", {"body": "    t[0:8, 0:8] = t"}),
    ("a sum of tiles", {"body": "    f = t + t"}),
    ("a buffer as a string",
     {"body": "    f = nl.ndarray(shape=(8, 8), dtype=nl.float32, buffer='sbuf')"}),
    ("an unknown type",
     {"body": "    f = nl.ndarray(shape=(8, 8), dtype=nl.float99, buffer=nl.sbuf)"}),
    ("a slice end beyond the size", {"slice": "0:8, 0:9"}),
    ("a slice start at the size", {"slice": "8:8, 0:8"}),
    ("too many indices", {"slice": "0:8, 0:8, 0:1"}),
    ("a tile of 129 partitions",
     {"body": "    f = nl.ndarray(shape=(129, 8), dtype=nl.float32, buffer=nl.sbuf)"}),
    ("a matrix product operator", {"body": "    f = t @ t"}),
]


def text_with(hole):
    return TEMPLATE.format(**{**GOOD, **hole})
