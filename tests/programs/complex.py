#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Imaginary numbers, and real numbers among complex ones, by the interpreter and as C, beside NumPy.

usage: complex.py TDSLC TDSL-RUN
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from expansions import problem, run

PROGRAM = pathlib.Path(__file__).parent / "complex.tdsl"


def complex_numbers(random, *shape):
    return random.integers(-4, 5, shape) + 1j * random.integers(-4, 5, shape)


def cases(n, m, k):
    random = np.random.default_rng(n)
    x, z = random.integers(-4, 5, n).astype(float), complex_numbers(random, n)
    yield "phase", {"x": z, "k": x / 8}, {"y": z * np.exp(2j * np.pi * x / 8), "q": (2 + 3j) * x / 8 - 1j / (x / 8 + z + 100),
                                         "r": (z * x / 8).real + abs(1.5j * z)}
    U, c = random.integers(-4, 5, (n, m)).astype(float), complex_numbers(random, m, k)
    yield "back", {"U": U, "c": c}, {"y": U @ c, "z": 2j * (U @ c.conj()) + U[:, :1]}
    f, g = x.astype(np.float32), z.astype(np.complex64)
    yield "mixed", {"x": f, "z": g}, {"y": np.where(f > 0, f, g) + 1j * np.arange(n), "p": g ** 2 * f - g / 2j, "b": f == g}
    yield "twiddle", {"x": z}, {"y": np.fft.fft(z)}


def main():
    tdslc, tool = sys.argv[1:3]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        checked = pathlib.Path(folder) / "checked.tdsl"
        checked.write_text(subprocess.run([tdslc, str(PROGRAM), "--dump=checked"], check=True, capture_output=True, text=True).stdout)
        for extents in ((5, 3, 2), (40, 70, 33)):
            for kernel, arrays, wanted in cases(*extents):
                for target, program in (("interp", PROGRAM), ("c", PROGRAM), ("interp", checked)):
                    got = run(tool, target, kernel, arrays, wanted, folder, program)
                    for name, want in wanted.items():
                        # sums of up to 70 numbers below 100; exp of sums of positions
                        step = 1e-5 if kernel == "mixed" else 1e-12
                        wrong = problem(got[name], want, False, step)
                        if wrong is not None:
                            failed += 1
                            print(f"FAILED {kernel} {name} by {target}: {wrong}")
    print(f"{failed} failures")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
