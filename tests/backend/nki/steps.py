#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Linear recurrences as scans: kernels of whole numbers by the emulator beside the interpreter, to the bit, and how many scans their texts have.

    steps.py --bin FOLDER
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import steps  # noqa: E402

# kernel, shapes of its arguments, scans on trn2 (rows of more than 128 positions are several)
KERNELS = [
    ("(a: f32[n, t], b: f32[n, t]) -> (h: f32[n, t]) { h[i < n,-1] = 0; h[i,t] = a[i,t] * h[i,t - 1] + b[i,t]; }", {"n": 200, "t": 30}, 2),
    ("(a: f32[n, t], b: f32[n, t], z: f32[n]) -> (h: f32[n, t]) { h[i < n,-1] = z[i]; h[i,t] = b[i,t] + h[i,t - 1] * a[i,t]; }", {"n": 5, "t": 40}, 1),
    ("(a: f32[t, n], b: f32[t, n], z: f32[n]) -> (h: f32[t, n]) { h[-1,i] = z[i]; h[t,i] = a[t,i] * h[t - 1,i] + b[t,i]; }", {"n": 130, "t": 50}, 2),
    ("(a: f32[t, n]) -> (h: f32[t, n]) { h[-1,i < n] = 0; h[t,i] = 2 * h[t - 1,i] + a[t,i]; }", {"n": 130, "t": 12}, 2),
    # other first values than those of the steps, no product with what is before, a step that is not linear, the last value alone
    ("(a: f32[t, n], b: f32[t, n]) -> (h: f32[t, n]) { h[0,i] = b[0,i]; h[t,i] = a[t,i] * h[t - 1,i] + b[t,i]; }", {"n": 9, "t": 12}, 0),
    ("(a: f32[t, n]) -> (h: f32[t, n]) { h[-1,i < n] = 0; h[t,i] = h[t - 1,i] + a[t,i]; }", {"n": 9, "t": 12}, 0),
    ("(a: f32[t, n]) -> (h: f32[t, n]) { h[-1,i < n] = 0; h[t,i] = h[t - 1,i] * h[t - 1,i] * a[t,i] + a[t,i]; }", {"n": 9, "t": 4}, 0),
    # state spaces: of 256 rows two blocks, each with a scan in a loop over the states
    ("(d: f32[c, t], A: f32[c, s], B: f32[s, t], C: f32[s, t]) -> (y: f32[c, t]) { h[c < c,s < s,-1] = 0; h[c,s,t] = A[c,s] * h[c,s,t - 1] + d[c,t] * B[s,t];"
     " y[c,t] = sum[s](h[c,s,t] * C[s,t]); }", {"c": 256, "s": 3, "t": 20}, 1),
    ("(d: f32[c, t], A: f32[c, s], B: f32[s, t], C: f32[s, t]) -> (y: f32[t, c]) { h[c < c,s < s,-1] = 0; h[c,s,t] = d[c,t] * B[s,t] + h[c,s,t - 1] * A[c,s];"
     " y[t,c] = sum[s](C[s,t] * h[c,s,t]); }", {"c": 7, "s": 4, "t": 20}, 1),
]


def check(folder, binaries, number, body, sizes, scans):
    random = np.random.default_rng(number)
    path = folder / f"k{number}.tdsl"
    path.write_text("".join(f"const {d.upper()} = {n};\n" for d, n in sizes.items()) + f"kernel k{fixed(body, sizes)}\n")
    arguments = []
    for name, shape in arguments_of(body):
        array = random.integers(-1, 2, [sizes[d] for d in shape]).astype(np.float32)
        np.save(folder / f"{name}.npy", array)
        arguments.append(f"{name}={folder / name}.npy")
    result = "h" if "(h:" in body else "y"
    made = {}
    for target in ("interp", "trn1", "trn2"):
        steps.run(f"{body}, {target}", [binaries / "tdsl-run", path, "-w", f"--target={target}", *arguments, "-o", f"{result}={folder}/out.npy"])
        made[target] = np.load(folder / "out.npy")
        assert np.array_equal(made[target], made["interp"]), (body, target)
    assert np.abs(made["interp"]).max() > 1, body
    done = subprocess.run([binaries / "tdslc", path, "-w", "--target=trn2", "-o", folder / f"out{number}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text = (folder / f"out{number}" / "k.py").read_text()
    assert text.count("nisa.tensor_tensor_scan(") == scans, (body, scans, text.count("nisa.tensor_tensor_scan("))


def fixed(body, sizes):
    """The kernel with numbers for its extents: in brackets of types, and of ranges."""
    head, _, rest = body.partition("{")
    for d in sizes:
        head = head.replace(f"[{d}", f"[{d.upper()}").replace(f", {d}]", f", {d.upper()}]")
        rest = rest.replace(f"< {d},", f"< {d.upper()},").replace(f"< {d}]", f"< {d.upper()}]")
    return head + "{" + rest


def arguments_of(body):
    for part in body[1:body.index(") ->")].split("], "):
        name, _, kind = part.partition(": f32[")
        yield name, kind.rstrip("]").split(", ")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        for number, (body, sizes, scans) in enumerate(KERNELS):
            check(pathlib.Path(name), options.bin, number, body, sizes, scans)
    print(f"{len(KERNELS)} recurrences on Trainium are those of the interpreter")


main()
