#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every element type cast to every other one, and integers of 8 bits through every operation that takes them, all 256 of them: what
the C and the interpreter make is what a model says that computes with fractions and whole numbers.

    elements.py --tdsl-run PATH [--only TYPE]
"""
import argparse
import math
import os
import re
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import steps  # noqa: E402
from quick import share  # noqa: E402

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is not here (python3-numpy)")
    sys.exit(77)
ROOT = Path(__file__).resolve().parents[3]


class Element:
    """A row of op/types.def, and what the model needs of it."""

    def __init__(self, row):
        column = [part.strip('"') for part in re.findall(r'"[^"]*"|[^\s,()]+', row)]
        self.name, self.kind, self.beyond, self.computes = column[1], column[2], column[6], column[8].lower()
        self.bytes, self.exponent, self.fraction = (int(n) for n in column[3:6])
        self.exact = self.kind in ("INT", "UINT", "BOOL")
        self.lowest = -(1 << self.fraction) if self.kind == "INT" else 0
        self.highest = (1 << self.fraction) - 1
        self.bias = (1 << self.exponent - 1) - 1 if self.exponent else 0

    def most(self):
        if self.beyond == "FINITE":
            return (2 - Fraction(2, 1 << self.fraction)) * 2 ** (self.bias + 1)
        return (2 - Fraction(1, 1 << self.fraction)) * 2 ** self.bias

    def of_pattern(self, bits):
        sign, top, low = bits >> self.exponent + self.fraction, bits >> self.fraction & (1 << self.exponent) - 1, bits & (1 << self.fraction) - 1
        last = top == (1 << self.exponent) - 1
        if last and (self.beyond != "FINITE" or low == (1 << self.fraction) - 1):
            v = math.inf if low == 0 else math.nan
        else:
            v = Fraction(low + (1 << self.fraction if top else 0)) * Fraction(2) ** (max(top, 1) - self.bias - self.fraction)
        return -v if sign else v

    def round(self, v):
        """The float that is nearest to v, to even in the middle."""
        if not isinstance(v, Fraction):
            return self.end(v > 0) if self.beyond == "FINITE" and v == v else v  # not finite
        if v == 0:
            return v
        e = max(v.numerator.bit_length() - v.denominator.bit_length() - 1, 1 - self.bias)
        while abs(v) >= Fraction(2) ** (e + 1):
            e += 1
        unit = Fraction(2) ** (e - self.fraction)
        near = round(v / unit) * unit  # Python's round is to even
        return near if abs(near) <= self.most() else self.end(v > 0)

    def end(self, positive):
        """What is beyond the largest number."""
        end = math.inf if self.beyond == "INFINITE" else self.most()
        return end if positive else -end

    def of(self, v):
        """What a value becomes: a number, exactly, or NaN or an infinity."""
        finite = isinstance(v, (int, Fraction))
        if self.kind == "BOOL":
            return int(not finite or v != 0)
        if self.exact and isinstance(v, int):
            return (v - self.lowest) % (self.highest - self.lowest + 1) + self.lowest
        if self.exact:
            return 0 if v != v else max(self.lowest, min(self.highest, math.trunc(v) if finite else int(math.copysign(1 << 70, v))))
        return self.round(Fraction(v) if finite else v)

    def numbers(self, array):
        """Of an array, exactly."""
        if self.exact:
            return [int(v) for v in array]
        if self.kind == "FLOAT" and self.bytes == 1:
            return [self.of_pattern(int(bits)) for bits in array.view(np.uint8)]
        if self.name == "bf16":
            array = (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        with np.errstate(invalid="ignore"):
            return [Fraction(float(v)) if math.isfinite(v) else float(v) for v in array.astype(np.float64)]

    def array(self, bits):
        """Of patterns."""
        bits = np.array(bits, np.uint64).astype(f"u{self.bytes}")
        if self.kind == "BOOL":
            return (bits & 1).astype(np.bool_)
        if self.name == "bf16":
            return bits.view("V2")
        if self.kind == "FLOAT" and self.bytes == 1:
            return bits
        return bits.view(f"{dict(FLOAT='f', INT='i', UINT='u')[self.kind]}{self.bytes}")


ELEMENTS = [e for e in map(Element, re.findall(r"^TYPE\((.*)\)$", (ROOT / "compiler/op/types.def").read_text(), re.M)) if e.kind != "COMPLEX"]
MAPS = {"neg": ("-x[i]", lambda x: -x), "abs": ("abs(x[i])", abs), "sign": ("sign(x[i])", lambda x: (x > 0) - (x < 0)),
        "add": ("x[i] + 100", lambda x: x + 100), "mul": ("x[i] * x[i] * x[i] * x[i] * x[i]", lambda x: x ** 5),
        "div": ("x[i] / 3", lambda x: int(Fraction(x, 3))), "over": ("100 / x[i]", lambda x: int(Fraction(100, x)) if x else 0),
        "mod": ("mod(x[i], 7)", lambda x: x % 7), "least": ("min(x[i], 3)", lambda x: min(x, 3)), "most": ("max(x[i], 3)", lambda x: max(x, 3)),
        "relu": ("relu(x[i])", lambda x: max(x, 0)), "chosen": ("select(x[i] < 5, x[i], 2 * x[i])", lambda x: x if x < 5 else 2 * x),
        "less": ("x[i] < 5", lambda x: int(x < 5)), "same": ("x[i] == 7", lambda x: int(x == 7)), "back": ("{t}(x[i] + 77)", None)}


def patterns(e):
    """All of 8 bits; of others those around the ends of every type, powers of 2, and some between."""
    if e.bytes == 1:
        return list(range(256))
    rng = np.random.default_rng(e.bytes)
    some = list(rng.integers(0, 1 << 63, 400, dtype=np.uint64) >> np.uint64(63 - 8 * e.bytes) if e.bytes < 8 else rng.integers(0, 1 << 63, 400, dtype=np.uint64) * np.uint64(2))
    if e.exact:
        near = [s * (1 << k) + d for k in range(8 * e.bytes) for s in (1, -1) for d in (-1, 0, 1)]
        return [int(v) for v in some] + [v % (1 << 8 * e.bytes) for v in near]
    values = [s * (2.0 ** k) * (1 + d * 2.0 ** -f) for k in (*range(-30, 34), 62, 63, 64, 126, 127, -126, -133, -149) for s in (1, -1)
              for f, d in ((60, 0), (3, 1), (8, 1), (8, -1), (11, 1), (11, 3), (24, 1), (24, -1))] + [0.0, -0.0, math.inf, -math.inf, math.nan]
    with np.errstate(all="ignore"):
        wide = np.array(values)
        if e.name == "bf16":
            return [int(v) for v in some] + [int(v) for v in wide.astype(np.float32).view(np.uint32) >> 16]
        return [int(v) for v in some] + [int(v) for v in wide.astype(f"f{e.bytes}").view(f"u{e.bytes}")]


def same(got, wanted):
    return len(got) == len(wanted) and all(a == b or (a != a and b != b) for a, b in zip(got, wanted))


class Tests:
    def __init__(self, tool, folder):
        self.tool, self.folder, self.failed, self.count = tool, Path(folder), 0, 0

    def run(self, what, text, array, wanted):
        """`wanted`: of each result its element type and its values."""
        (self.folder / "k.tdsl").write_text(text)
        np.save(self.folder / "x.npy", array)
        for target in ("interp", "c"):
            outputs = [part for name in wanted for part in ("-o", f"{name}={self.folder / name}.npy")]
            steps.run(f"{what}, {target}", [self.tool, "k.tdsl", f"--target={target}", "-w", f"x={self.folder / 'x.npy'}", *outputs], cwd=self.folder)
            for name, (element, values) in wanted.items():
                got = element.numbers(np.load(self.folder / f"{name}.npy"))
                self.count += 1
                if not same(got, values):
                    self.failed += 1
                    k = next(k for k, (a, b) in enumerate(zip(got, values)) if not same([a], [b]))
                    print(f"FAILED {what}, {target}, {name}: element {k} is {got[k]}, not {values[k]}")

    def casts(self, e, only=None):
        others = [t for t in ELEMENTS if only in (None, e.name, t.name)]
        array = e.array(patterns(e))
        x = e.numbers(array)
        heads = ", ".join(f"to_{t.name}: {t.name}[n]" for t in others)
        body = " ".join(f"to_{t.name}[i] = {t.name}(x[i]);" for t in others)
        self.run(f"casts of {e.name}", f"kernel k(x: {e.name}[n]) -> ({heads}) {{ {body} }}\n", array, {f"to_{t.name}": (t, [t.of(v) for v in x]) for t in others})

    def maps(self, e):
        array = e.array(patterns(e))
        x = e.numbers(array)
        by = {t.name: t for t in ELEMENTS}
        wide = by[e.computes]
        types = {name: by["bool"] if name in ("less", "same") else e if name == "back" else wide for name in MAPS}
        heads = ", ".join(f"{name}: {t.name}[n]" for name, t in types.items())
        body = " ".join(f"{name}[i] = {text.format(t=e.name)};" for name, (text, _) in MAPS.items())
        wanted = {name: (types[name], [e.of(wide.of(v + 77)) if f is None else wide.of(f(v)) for v in x]) for name, (_, f) in MAPS.items()}
        self.run(f"operations of {e.name}", f"kernel k(x: {e.name}[n]) -> ({heads}) {{ {body} }}\n", array, wanted)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tdsl-run", required=True)
    parser.add_argument("--only", help="casts to and from this type")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tests = Tests(a.tdsl_run, folder)
        for e in share(ELEMENTS, 3) if a.only is None else ELEMENTS:
            tests.casts(e, a.only)
            if a.only is None and e.exact and e.kind != "BOOL":
                tests.maps(e)
    print(f"{tests.count - tests.failed} passed, {tests.failed} failed")
    return tests.failed > 0


if __name__ == "__main__":
    sys.exit(main())
