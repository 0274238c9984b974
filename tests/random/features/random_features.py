#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random programs of what the language has beside products: positions, strides, windows, index(i), restricted sums, scans, masks, values made of
pieces, halos, open extents, inout, 16-bit types, declared locals, positions that are values. The values are integers, so that all ways to compute them are exact.

    random_features.py --bin=FOLDER [--seed=S] [--count=N] [--per=4] [--clang=0.34] [--emulator=0.25] [--show]

--count programs of --per kernels. Each is called as C by gcc, and a share by clang, with 1 to 3 threads, and run by the interpreter and a share by the
emulator of Trainium; NumPy says what is right (expressions.py). A kernel that fails is cut to the fewest of its statements that still fail, and
printed with its seed; `--seed=S --only=K` runs program K of a seed alone.
"""
import argparse
import collections
import random
import sys
import tempfile

import numpy as np

from expressions import Rejected
from forms import FORMS
from kernel import Kernel
from programs import Program, Wrong
from quick import share


def draw_kernel(seed, name, most=None):
    """The first that is one, of those that this seed gives; `most` of its statements."""
    for attempt in range(1000):
        try:
            whole = Kernel(f"{seed}/{attempt}", name, FORMS)
            return Kernel(f"{seed}/{attempt}", name, FORMS, most) if most else whole
        except Rejected:
            pass
    raise SystemExit(f"seed {seed} gives no kernel")


def checked(options, seed, kernels):
    """The program, checked, and what is wrong with it as a whole."""
    with tempfile.TemporaryDirectory(prefix="tdsl-features-") as folder:
        program = Program(options, random.Random(f"{seed}/flags"), kernels, folder)
        try:
            program.check(random.Random(f"{seed}/sizes"))
        except Wrong as wrong:
            return program, str(wrong)
        return program, None


def reduced(options, seed, number, name):
    """Text and faults of a kernel alone, with the fewest of its first statements that fail; None where it does not fail alone."""
    whole = draw_kernel(f"{seed}/{number}", name)
    for most in range(1, whole.n_statements + 1):
        try:
            kernel = draw_kernel(f"{seed}/{number}", name, most)
        except Rejected:
            continue
        program, wrong = checked(options, seed, [kernel])
        if program.faults or wrong:
            return program.head + kernel.text(), [wrong] if wrong else program.faults[kernel]
    return None


def report(options, seed, program, wrong):
    """Prints each kernel that fails."""
    numbers = [k for k, kernel in enumerate(program.kernels) if wrong or kernel in program.faults]
    for number in numbers:
        kernel = program.kernels[number]
        alone = reduced(options, seed, number, kernel.name)
        if alone is None and wrong:
            continue
        text, faults = alone or (program.head + kernel.text(), program.faults[kernel])
        print(f"FAILED {seed} {kernel.name}\n" + "\n".join(faults[:6]) + f"\n{text}", flush=True)
    if wrong:
        print(f"FAILED {seed}: {wrong}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="the folder of tdslc and tdsl-run")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--only", type=int)
    parser.add_argument("--per", type=int, default=4)
    parser.add_argument("--clang", type=float, default=0.34, help="the share of programs that clang compiles too")
    parser.add_argument("--emulator", type=float, default=0.25, help="the share of programs that the emulator runs too")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    np.seterr(all="ignore")
    failed = kernels = calls = 0
    features = collections.Counter()
    for number in share(range(options.count), 1, gate=2) if options.only is None else [options.only]:
        seed = f"{options.seed}/{number}"
        drawn = [draw_kernel(f"{seed}/{k}", f"k{k}") for k in range(options.per)]
        if options.show:
            print("\n".join(kernel.text() for kernel in drawn))
        program, wrong = checked(options, seed, drawn)
        if program.faults or wrong:
            failed += 1
            report(options, seed, program, wrong)
        kernels += len(drawn)
        calls += program.calls
        for kernel in drawn:
            features.update(kernel.features)
    print(f"{kernels} kernels, {calls} calls; {failed} programs failed; " + ", ".join(f"{name} {n}" for name, n in sorted(features.items())))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
