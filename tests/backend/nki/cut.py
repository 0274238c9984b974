# SPDX-License-Identifier: Apache-2.0
"""Programs of tests/programs as several device programs, in the emulator, against the interpreter.

    cut.py --bin DIR [--only NAME] [--all]

Each kernel is compiled with a small limit of instructions. One may be refused for it (E0602), nothing else. Arrays are small whole numbers:
results that are whole numbers, and below 2^24, are the same, others to single precision.
"""
import argparse
import json
import os
import re
import sys
import tempfile

import numpy as np

from harness import ROOT, run, share

FILES = ("programs", "symmetry", "positions", "recurrences", "complex")
LIMITS = (30, 100)
SIZES = (12, 18, 10, 14, 9, 20)
RELATIVE = 3e-5     # of the largest element: rows of some hundred terms, in another order


def kernels(options):
    for file in FILES:
        path = os.path.join(ROOT, "tests/programs", file + ".tdsl")
        status, text, said = run([os.path.join(options.bin, "tdslc"), path, "-w", "--f64=f32", "--emit=manifest"])
        if status != 0:
            raise RuntimeError(said)
        for kernel in json.loads(text)["kernels"]:
            yield path, kernel


def extent(term, dims):
    return int(eval(str(term), {"__builtins__": {}}, dims))     # pylint: disable=eval-used (what our compiler has written)


def arguments(kernel, dims, folder):
    """NAME=VALUE of each parameter, and the results."""
    rng = np.random.default_rng(3)
    words, results = [], []
    for i, a in enumerate(kernel["arguments"]):
        if a["role"] in ("out", "inout"):
            results.append(a["name"])
        if a["role"] == "out":
            continue
        shape = [extent(e, dims) for e in a["shape"]]
        x = rng.integers(1, 3, shape).astype(np.complex64 if a["dtype"].startswith("c") else np.float32)
        x += 7 * i if len(shape) == 1 else 0      # energies: no difference of them is 0
        path = os.path.join(folder, a["name"] + ".npy")
        np.save(path, x)
        words.append(f"{a['name']}={path}" if shape else f"{a['name']}={int(x.real)}")
    return words, results


def differs(got, want):
    scale = np.abs(want).max(initial=0)
    whole = np.array_equal(want, np.round(want)) and scale < 2 ** 24
    return not (np.array_equal(got, want, equal_nan=True) if whole else np.allclose(got, want, rtol=0, atol=RELATIVE * scale, equal_nan=True))


def check(options, path, kernel, limit):
    """True: it was cut, and is right. None: refused, or not cut."""
    dims = {d["name"]: SIZES[i % len(SIZES)] for i, d in enumerate(kernel["dims"])}
    with tempfile.TemporaryDirectory() as folder:
        words, results = arguments(kernel, dims, folder)
        common = [path, f"--kernel={kernel['name']}", "-w", "--f64=f32", *(f"-D{d}={n}" for d, n in dims.items())]
        out = os.path.join(folder, "out")
        status, _, said = run([os.path.join(options.bin, "tdslc"), *common, "--target=trn2", f"--max-instructions={limit}", "-o", out])
        if status != 0:
            if re.search(r"E0602|E0501", said):
                return None
            raise RuntimeError(said[-500:])
        if not any("_part2.py" in f for f in os.listdir(out)):
            return None
        arrays = []
        for target in ("interp", "emulator"):
            files = [os.path.join(folder, f"{target}_{r}.npy") for r in results]
            status, _, said = run([os.path.join(options.bin, "tdsl-run"), *common, *words, f"--target={target}",
                                   *([f"--max-instructions={limit}"] if target == "emulator" else []),
                                   *(w for r, f in zip(results, files) for w in ("-o", f"{r}={f}"))])
            if status != 0:
                if target == "interp":      # positions that these values are not
                    return None
                raise RuntimeError(said[-500:])
            arrays.append([np.load(f) for f in files])
        for r, want, got in zip(results, *arrays):
            if differs(got, want):
                raise RuntimeError(f"'{r}' is another by {np.abs(got - want).max()} of {np.abs(want).max()}")
        return True


def main():
    parser = argparse.ArgumentParser(description="Programs cut into several device programs.")
    parser.add_argument("--bin", required=True)
    parser.add_argument("--only")
    options = parser.parse_args()
    failed = done = 0
    cases = [(path, k, limit) for path, k in kernels(options) for limit in LIMITS if options.only in (None, k["name"])]
    for path, kernel, limit in share(cases, 24, gate=3):
        try:
            done += check(options, path, kernel, limit) is True
        except RuntimeError as error:
            failed += 1
            print(f"FAILED {os.path.basename(path)} {kernel['name']} {limit}: {error}")
    print(f"{done} kernels give the interpreter's results in several programs, {failed} do not")
    return 1 if failed or done == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
