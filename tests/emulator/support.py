# SPDX-License-Identifier: Apache-2.0
"""What the emulator's tests share: the package, kernels made of a few lines, and test data.

A kernel here is a body; `kernel_text` puts imports, decorator, a scalar output and the return
around it. In a body, `<<bad||good>>` stands for one of two spellings: `variant` picks one, so
that a rule's test shows both the broken kernel and its nearest legal neighbour.
"""

import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
RUNNER = os.path.join(ROOT, "runtime", "nki_emulator", "run.py")
KERNELS = os.path.join(HERE, "kernels")
sys.path.insert(0, os.path.join(ROOT, "runtime"))

import numpy as np                                               # noqa: E402
from nki_emulator.dtype import TYPES, cast, to_outside           # noqa: E402
from nki_emulator.emulate import emulate                         # noqa: E402

_CHOICE = re.compile(r"<<(.*?)\|\|(.*?)>>", re.DOTALL)
HEAD = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n\n\n"


def variant(text, good):
    """The broken or the mended spelling of a text with <<bad||good>> in it."""
    return _CHOICE.sub(lambda m: m.group(2 if good else 1), text)


def marked_line(text):
    """The line (from 1) of `#!` if there is one, else of the first `<<`; markers stay."""
    for mark in ("#!", "<<"):
        for at, line in enumerate(text.split("\n")):
            if mark in line:
                return at + 1
    return None


def tile(name, shape, dtype="float32", space="sbuf"):
    """Text of a tile's allocation."""
    return f"{name} = nl.ndarray(shape={tuple(shape)}, dtype=nl.{dtype}, buffer=nl.{space})\n"


def filled(name, shape, dtype="float32", space="sbuf"):
    """Text of a tile's allocation and its filling with ones."""
    value = "1" if "int" in dtype else "1.0"
    return tile(name, shape, dtype, space) + f"nisa.memset(dst={name}[...], value={value})\n"


def indented(body):
    return "".join(f"    {line}\n" if line else "\n" for line in body.rstrip("\n").split("\n"))


# The scalar output of kernels whose result does not matter.
CLOSING = """\
zz = nl.ndarray(shape=(1, 1), dtype=nl.float32, buffer=nl.sbuf)
nisa.memset(dst=zz[0:1, 0:1], value=1.0)
out = nl.ndarray(shape=(1, 1), dtype=nl.float32, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out[0:1, 0:1], src=zz[0:1, 0:1])
return out
"""


def kernel_text(body, parameters="", closing=CLOSING):
    return f"{HEAD}@nki.jit\ndef k({parameters}):\n" + indented(body + closing)


def arrays_of(specs, seed=7, low=-3, high=4):
    """Arrays of small integers in their outside form; a spec is 'name:dtype:2x3'."""
    rng = np.random.default_rng(seed)
    arrays, types, plain = [], {}, []
    for spec in specs.split() if specs else []:
        name, dtype, shape = spec.split(":")
        types[name] = dtype
        if "uint" in dtype:
            values = rng.integers(0, high, [int(n) for n in shape.split("x")])
        else:
            values = rng.integers(low, high, [int(n) for n in shape.split("x")])
        held = cast(values, TYPES[dtype])
        plain.append(held)
        arrays.append(to_outside(held, TYPES[dtype]))
    return arrays, types, plain


def run_body(body, specs="", closing=CLOSING, target="trn2", **options):
    """Emulate a body on arrays of small integers; returns (result, plain arrays)."""
    arrays, types, plain = arrays_of(specs)
    text = kernel_text(body, ", ".join(types), closing)
    return emulate(text, arrays, types=types, target=target, path="k.py", **options), plain
