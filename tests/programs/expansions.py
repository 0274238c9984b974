#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""argmax, mean, logsumexp and their like, and functions that round, by the interpreter and as C, beside NumPy: NaN, infinities, ties, signs
of zero, and what the checked program says in full.

usage: expansions.py TDSLC TDSL-RUN
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from quick import CFLAGS  # noqa: E402

PROGRAM = pathlib.Path(__file__).parent / "expansions.tdsl"


def run(tool, target, kernel, arrays, results, folder, program=PROGRAM, dims=()):
    for name, array in arrays.items():
        np.save(f"{folder}/{name}.npy", array)
    words = [word for r in results for word in ("-o", f"{r}={folder}/out_{r}.npy")]
    # Its C names the program: without a folder, so that ccache knows it again.
    subprocess.run([pathlib.Path(tool).resolve(), program.name, f"--kernel={kernel}", "-w", CFLAGS, f"--target={target}", *dims, *[f"{a}={folder}/{a}.npy" for a in arrays], *words],
                   check=True, timeout=300, cwd=program.parent)
    return {r: np.load(f"{folder}/out_{r}.npy") for r in results}


def dumps_of(tdslc, program, folder, stages=("checked", "graph", "path", "nest", "loop", "legal"), others=("checked",)):
    """The dump of each stage, by its name, and how many are others when they are read back; but those of `others` may be."""
    def dump(file, stage):
        return subprocess.run([tdslc, "-w", str(file), f"--dump={stage}"], check=True, capture_output=True, text=True).stdout

    dumps, changed = {}, 0
    for stage in stages:
        dumps[stage] = pathlib.Path(folder) / f"{stage}.tdsl"
        dumps[stage].write_text(dump(program, stage))
        if stage not in others and dump(dumps[stage], stage) != dumps[stage].read_text():
            changed += 1
            print(f"FAILED: the dump of stage {stage} is another one when it is read back")
    return dumps, changed


def reductions(n, m):
    random = np.random.default_rng(n + m)
    x = random.integers(-4, 5, (n, m)).astype(float)
    if n > 3 and m > 1:
        x[2, 1], x[3, :], x[1, 0] = np.nan, -np.inf, np.inf
    z = random.integers(-4, 5, (n, m)) + 1j * random.integers(-4, 5, (n, m))
    b = random.random((n, m)) < 0.5
    most = x.max(1, keepdims=True)
    finite = np.where(np.isinf(most), 0, most)
    first = x[:, 0]
    wanted = {
        "p": x.argmax(1), "q": x.argmin(1), "l": finite[:, 0] + np.log(np.exp(x - finite).sum(1)), "u": x.mean(1), "v": x.var(1),
        "w": np.sqrt((x * x).sum(1)), "c": b.sum(1), "a": z.real ** 2 + z.imag ** 2 + x * x, "g": np.angle(z), "zm": z.mean(1), "zv": z.var(1),
        "zn": np.linalg.norm(z, axis=1), "tri": np.array([first[:i + 1].mean() for i in range(n)]),
        "cl": np.array([np.logaddexp.reduce(first[:i + 1]) for i in range(n)])}
    return "expansions", {"x": x, "z": z, "b": b}, wanted


def rounded():
    special = np.array([0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -0.3, 0.3, 4503599627370495.5, -4503599627370497.0, 1e300, np.inf, -np.inf, np.nan, 7, -7, 0.75])
    x, y = (a.ravel() for a in np.meshgrid(special, special))
    i, j = (a.ravel() for a in np.meshgrid(np.arange(-8, 9), np.arange(-8, 9)))
    n = min(len(x), len(i))
    x, y, i, j = x[:n], y[:n], i[:n], j[:n]
    quotient = np.where(j == 0, 1, j)
    wanted = {"f": np.floor(x), "c": np.ceil(x), "r": np.round(x), "s": np.where(x == 0, x, np.sign(x)),
              "t": np.where(np.isinf(x), 0, x), "m": np.mod(x, y), "k": np.where(j == 0, 0, i % quotient), "l": np.sign(i) * j, "a": np.arctan2(x, y)}
    return "rounded", {"x": x, "y": y, "i": i, "j": j}, wanted


def permuted(o, v):
    random = np.random.default_rng(o)
    t, W = random.integers(-4, 5, (o, o, v, v)).astype(float), random.integers(-4, 5, (o, o, o, v, v, v)).astype(float)
    A, B = random.integers(-4, 5, (o, v)).astype(float), random.integers(-4, 5, (v, o)).astype(float)
    once = t - t.transpose(0, 1, 3, 2)
    orders = ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
    return "permuted", {"t": t, "W": W, "A": A, "B": B}, {
        "P": once - once.transpose(1, 0, 2, 3), "R": sum(W.transpose(*p, *(3 + i for i in p)) for p in orders), "S": A @ B + (A @ B).T}


def problem(got, want, exact, step=1e-13):
    same = (got == want) | (np.isnan(got) & np.isnan(want)) if got.dtype.kind in "fc" else got == want
    if exact and got.dtype.kind == "f":
        same &= (np.signbit(got) == np.signbit(want)) | np.isnan(got)
    if not exact and got.dtype != bool:
        same |= np.abs(got - want) <= step * (1 + np.abs(want))
    return None if same.all() else f"{got[~same][:4]} instead of {want[~same][:4]}"


def main():
    tdslc, tool = sys.argv[1:3]
    failed = 0
    with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
        checked = pathlib.Path(folder) / "checked.tdsl"
        checked.write_text(subprocess.run([tdslc, str(PROGRAM), "--dump=checked"], check=True, capture_output=True, text=True).stdout)
        for kernel, arrays, wanted in (reductions(5, 7), reductions(40, 130), reductions(1, 1), rounded(), permuted(3, 4)):
            for target, program in (("interp", PROGRAM), ("c", PROGRAM), ("interp", checked)):
                got = run(tool, target, kernel, arrays, wanted, folder, program)
                for name, want in wanted.items():
                    exact = kernel == "rounded" and name != "a"
                    wrong = problem(got[name], want, exact)
                    if wrong is not None:
                        failed += 1
                        print(f"FAILED {kernel} {name} by {target}: {wrong}")
    print(f"{failed} failures")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
