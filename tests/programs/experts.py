#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rows times the matrices that they choose, by groups of rows: by the interpreter, as written and as rewritten, and as C with one thread and
several, beside NumPy; groups that are empty, exactly full, and all in one; positions outside.

usage: experts.py TDSLC TDSL-RUN
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from expansions import problem, run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from quick import GATE  # noqa: E402

PROGRAM = pathlib.Path(__file__).parent / "experts.tdsl"
KERNELS = ("route", "top1", "top2", "layer", "heads")


def small(random, *shape, kind=float):
    return random.integers(-3, 4, shape).astype(kind)


def choices(random, n, g):
    """At random; all of the last group; in turns."""
    yield random.integers(0, g, n)
    yield np.full(n, g - 1)
    yield np.arange(n) % g


def cases(n, h, d, f, g, p, random):
    x, W = small(random, n, d), small(random, g, d, f)
    yield "route", {"x": x.astype("f4"), "p": p.astype("i4"), "W": W.astype("f4")}, {"y": np.einsum("nd,ndf->nf", x, W[p])}
    s = small(random, n, g) + np.arange(g) / 16
    s[np.arange(n), p] = 8
    R = small(random, d, g)
    scores = x @ R
    best = scores.argmax(1)
    yield "top1", {"x": x, "R": R, "W": W}, {"best": best, "y": scores.max(1)[:, None] * np.einsum("nd,ndf->nf", x, W[best])}
    if g > 1:
        others = np.where(np.arange(g) == p[:, None], -np.inf, s)
        y = sum(s[np.arange(n), at][:, None] * np.einsum("nd,ndf->nf", x, W[at]) for at in (p, others.argmax(1)))
        yield "top2", {"x": x, "s": s, "W": W}, {"y": y}
    U, V, b = small(random, g, f, d), small(random, d, g, f), small(random, g, f)
    t = np.maximum(np.einsum("nd,nfd->nf", x, U[p]) + b[p], 0)
    yield "layer", {"x": x.astype("f4"), "p": p, "U": U.astype("f4"), "V": V.astype("f4"), "b": b.astype("f4")}, {
        "y": np.einsum("nf,dnf->nd", t, V[:, p])}
    x, W = small(random, h, n, d, kind="f4"), small(random, g, h, d, f, kind="f4")
    yield "heads", {"x": x, "p": p.astype("i4"), "W": W}, {"y": np.einsum("hnd,nhdf->hfn", 2 * x, W[p])}


def main():
    tdslc, tool = sys.argv[1:3]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        rewritten = pathlib.Path(folder) / "experts.dump"
        for kernel in KERNELS:
            subprocess.run([tdslc, str(PROGRAM), f"--kernel={kernel}", "-w", "--dump=groups", "-o", str(rewritten)], check=True)
            if "_over_96" not in rewritten.read_text():
                failed += 1
                print(f"FAILED {kernel}: no blocks of rows")
        random = np.random.default_rng(1)
        for extents in ((0, 1, 2, 3, 2), (193, 2, 5, 4, 2), (385, 1, 17, 33, 5)):
            for p in list(choices(random, extents[0], extents[4]))[:1 if extents[0] < 200 or GATE else 3]:
                for kernel, arrays, wanted in cases(*extents, p, random):
                    got = {"C": run(tool, "c", kernel, arrays, wanted, folder, PROGRAM, ("--threads=1",))}
                    if extents[0] > 200:
                        got["C with threads"] = run(tool, "c", kernel, arrays, wanted, folder, PROGRAM, ("--threads=3",))
                    else:
                        got["the interpreter"] = run(tool, "interp", kernel, arrays, wanted, folder, PROGRAM)
                        subprocess.run([tdslc, str(PROGRAM), f"--kernel={kernel}", "-w", "--dump=groups", "-o", str(rewritten)], check=True)
                        got["the interpreter of blocks"] = run(tool, "interp", kernel, arrays, wanted, folder, rewritten)
                    for how, results in got.items():
                        for name, want in wanted.items():
                            wrong = problem(results[name], want, False, 0)
                            if wrong is not None:
                                failed += 1
                                print(f"FAILED {kernel} {name} by {how} at {extents}: {wrong}")
        # a position outside is found, and nothing is written
        x, W, p = np.ones((3, 2), "f4"), np.ones((2, 2, 2), "f4"), np.array([0, 2, 1], "i4")
        for name, array in (("x", x), ("W", W), ("p", p)):
            np.save(f"{folder}/{name}.npy", array)
        done = subprocess.run([tool, str(PROGRAM), "--kernel=route", "-w", *[f"{a}={folder}/{a}.npy" for a in "xpW"]], capture_output=True, text=True)
        if done.returncode == 0 or "p[n] is 2 at n = 1" not in done.stderr:
            failed += 1
            print(f"FAILED route with a position outside: {done.stderr}")
    print(f"{failed} failures")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
