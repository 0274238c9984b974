#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adding an element type is adding a row: a copy of the tree gets one, made up, and its number in the ABI; tdsl-run is built of it, casts the
type to and from every other one (tests/backend/c/elements.py), and runs programs with it.

    adding.py --tree FOLDER --cc PROGRAM
"""
import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import steps  # noqa: E402

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is not here (python3-numpy)")
    sys.exit(77)

# 3 bits of exponent, 4 of fraction: the largest number is 15.5.
NAME = "f8e3m4"
ROW = f'TYPE(F8E3M4, "{NAME}", FLOAT, 1, 3, 4, INFINITE, "", F32, F32, "uint8_t", "V1", "", "", "integer(c_int8_t)", "u8")\n'
PROGRAMS = {
    "product": f"kernel k(X: {NAME}[n, p], W: {NAME}[p, m]) -> (R: f32[n, m]) {{ R[i,j] = X[i,p] * W[p,j]; }}",
    "scaled": f"kernel k(X: {NAME}[n, p], W: {NAME}[p, m]) -> (R: {NAME}[n, p], S: f32) {{ r[i] = max[p](abs(X[i,p])); R[i,p] = X[i,p] / r[i]; S = sum[p,j](W[p,j]); }}",
    "places": f"kernel k(X: {NAME}[n, p], W: {NAME}[p, m]) -> (R: {NAME}[m], S: {NAME}[p, m]) {{ R[j] = X[i64(abs(W[0,j])), 1]; S[p,j] = select(W[p,j] > 0, W[p,j], -1); }}",
}


def copied(tree, to):
    """The tree without what was built, with the row."""
    shutil.copytree(tree, to, symlinks=True, ignore=lambda folder, names: [n for n in names if n in (".git", "build", "__pycache__")])
    types, abi = to / "compiler/op/types.def", to / "runtime/include/tdsl/abi.h"
    types.write_text(types.read_text() + ROW)
    text = abi.read_text()
    number = text[text.index("typedef enum tdsl_dtype"):text.index("} tdsl_dtype")].count(" = ") + 1
    abi.write_text(text.replace("} tdsl_dtype;", f"    , TDSL_{NAME.upper()} = {number}\n}} tdsl_dtype;"))


def results(tool, folder, text, target):
    (folder / "k.tdsl").write_text(text + "\n")
    given = [f"{name}={folder / name}.npy" for name in "XW"]
    return steps.run(f"{target}: {text}", [tool, folder / "k.tdsl", f"--target={target}", "-w", "--checksum", *given])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tree", required=True)
    parser.add_argument("--cc", required=True)
    a = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tdsl-adding-") as place:
        folder = Path(place)
        tree, build = folder / "tree", folder / "build"
        copied(a.tree, tree)
        steps.run("configure", ["cmake", "-S", tree, "-B", build, f"-DCMAKE_C_COMPILER={a.cc}", "-DCMAKE_BUILD_TYPE=Release"])
        steps.run("build", ["cmake", "--build", build, "--target", "tdsl-run", "-j", str(min(4, os.cpu_count() or 1))], timeout=1500)
        tool = build / "bin/tdsl-run"
        print(steps.run("casts", [sys.executable, "-B", tree / "tests/backend/c/elements.py", "--tdsl-run", tool, "--only", NAME], timeout=600).strip())
        rng = np.random.default_rng(1)
        np.save(folder / "X.npy", rng.integers(1, 0x6f, (33, 40), dtype=np.uint8))
        np.save(folder / "W.npy", rng.integers(0x10, 0x60, (40, 17), dtype=np.uint8) | (rng.integers(0, 2, (40, 17), dtype=np.uint8) << 7))
        for name, text in PROGRAMS.items():
            wanted = results(tool, folder, text, "interp")
            steps.expect(f"{name} of {NAME}", results(tool, folder, text, "c"), wanted)


if __name__ == "__main__":
    main()
