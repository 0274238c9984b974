# SPDX-License-Identifier: Apache-2.0
"""Random programs at the device's element types: compiled for each generation, emulated, compared with the interpreter exactly.

    random_kernels.py --bin DIR --generator random_programs [--seed N] [--count N] [--targets trn2,trn1,trn3] [--limit N]

The programs are those of tests/random with extents about the device's tiles; every value in them is an exact integer. A kernel may be
refused for its number of instructions (E0602), nothing else.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import zlib

import numpy as np

from harness import Failure, Refused, compare, compile_for, emulated, kernels_of, reference, share


def make_arrays(kernel, seed):
    rng = np.random.default_rng(seed)
    arrays = []
    for p in kernel.params:
        shape = tuple(int(d) for d in p.dims)
        most = 1 if p.dtype in ("bf16", "f16") else 3
        array = rng.integers(1, most + 1, shape) * rng.choice((-1, 1), shape)
        if p.dtype == "c64":
            array = array + 1j * rng.integers(-1, 2, shape)
        arrays.append(np.asarray(array, np.complex128 if p.dtype == "c64" else np.float64))
    return arrays


def check(options, text, kernel, target, folder):
    path = os.path.join(folder, "p.tdsl")
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text + "\n")
    out = os.path.join(folder, "out")
    manifest = compile_for(options.bin, target, out, [path, *options.words])[kernel.name]
    arrays = make_arrays(kernel, zlib.crc32(kernel.name.encode()))
    got, _ = emulated(manifest, arrays, target)
    types = {p.dtype for p in kernel.params}
    cast = types.pop() if len(types) == 1 else None
    wanted = reference(options.bin, folder, [path], kernel, arrays, dtype=cast if cast in ("bf16", "f16") else None)
    compare([p.name for p in kernel.outputs], got, wanted, [0] * len(got))


def check_all(options, numbered, targets, what):
    """Whether (number, kernel) pairs fail, on one target each. Too large for a target (E0602) is no failure, but in a fifth of them, or
    half of them where a limit is given."""
    failed = refused = 0
    for number, kernel in numbered:
        target = targets[number % len(targets)]
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(options, kernel.text, kernel, target, folder)
            except Refused as no:
                refused += 1
                if no.code != "E0602":
                    failed += 1
                    print(f"FAILED {number} {kernel.name} {target}: refused, {no.text}\n{kernel.text}", flush=True)
                elif options.verbose:
                    print(f"refused {number} {kernel.name} {target}: {no}")
            except (Failure, subprocess.TimeoutExpired) as error:
                failed += 1
                print(f"FAILED {number} {kernel.name} {target}: {error}\n{kernel.text}", flush=True)
    print(f"{len(numbered) - failed - refused} of {len(numbered)} {what} are exact, {refused} refused, {failed} failed")
    return failed > 0 or refused * (2 if options.words else 5) > len(numbered)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--generator", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--targets", default="trn2,trn1,trn3")
    parser.add_argument("--limit", type=int, help="instructions of a device program: longer kernels are several")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    options.words = [f"--max-instructions={options.limit}"] if options.limit else []
    text = subprocess.run([options.generator, "--print-device", f"--seed={options.seed}", f"--count={options.count}"],
                          capture_output=True, text=True, check=True).stdout
    targets = options.targets.split(",")
    found = kernels_of(text)
    if len(found) != options.count:
        sys.exit(f"{len(found)} kernels read, {options.count} printed")
    return check_all(options, list(enumerate(share(found, 6))), targets, "random kernels")


if __name__ == "__main__":
    sys.exit(main())
