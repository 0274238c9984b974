#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Elements at positions that are values, by the interpreter and as C, beside NumPy: lookups, sparse rows, experts, pages, positions outside.

usage: gather.py TDSLC TDSL-RUN
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from expansions import problem, run

PROGRAM = pathlib.Path(__file__).parent / "gather.tdsl"


def small(random, *shape, kind=float):
    return random.integers(-4, 5, shape).astype(kind)


def taken(array, *index):
    """array[index], 0 where that is outside."""
    index = np.broadcast_arrays(*index)
    inside = np.all([(i >= 0) & (i < n) for i, n in zip(index, array.shape)], axis=0)
    values = array[tuple(np.where(inside, i, 0) for i in index)]
    return np.where(inside.reshape(inside.shape + (1,) * (values.ndim - inside.ndim)), values, np.zeros(1, array.dtype))


def cases(n, m, k):
    random = np.random.default_rng(n + m)
    W, tok = small(random, m, k, kind=np.float32), random.integers(-1, m + 1, n).astype(np.int32)
    yield "embed", {"W": W, "tok": tok}, {"Y": taken(W, tok)}
    a, col, x = small(random, n, k), random.integers(0, m, (n, k)), small(random, m)
    yield "spmv", {"a": a, "col": col, "x": x}, {"y": (a * x[col]).sum(1)}
    x, p, W = small(random, n, k, kind=np.float32), random.integers(0, m, n).astype(np.int32), small(random, m, k, 6, kind=np.float32)
    yield "route", {"x": x, "p": p, "W": W}, {"y": np.einsum("nd,ndf->nf", x, W[p])}
    q, K, tab = small(random, n, k, kind=np.float32), small(random, m, 4, k, kind=np.float32), random.integers(0, m, (n, 5)).astype(np.int32)
    scores, length = np.einsum("be,bmue->bmu", q, K[tab]), random.integers(0, 21, n).astype(np.int32)
    kept = np.where(np.arange(20).reshape(1, 5, 4) < length.reshape(-1, 1, 1), scores, -np.inf)
    yield "paged", {"q": q, "K": K, "tab": tab, "len": length}, {"S": scores, "top": kept.max((1, 2))}
    s, p = small(random, n, k), random.integers(0, k, n)
    yield "pick", {"s": s, "p": p}, {"z": np.log(np.exp(s).sum(1)) - s[np.arange(n), p], "w": s.max(1)}
    T, p, q = small(random, m, m), random.integers(-3, m + 3, n).astype(np.int32), random.integers(-1, m, n)
    h, c, b = small(random, m, kind=np.float16), small(random, m) + 1j * small(random, m), random.random(m) < 0.5
    places = random.integers(0, m, m).astype(np.int32)
    q[0], at = 1 << 40, np.int64(m - 1)
    yield "positions", {"T": T, "h": h, "c": c, "b": b, "k": places, "p": p, "q": q, "at": at}, {
        "y": taken(T, p, q), "z": sum(taken(T, p + i, 2 * q - 1) for i in range(3)), "w": T[:, at], "o": taken(h, p),
        "d": c[np.clip(p, 0, 2)] * 2j, "e": taken(b, p), "g": taken(places, taken(places, p))}
    table, ids, lengths = small(random, m, k), random.integers(0, m, (n, 9)).astype(np.int32), random.integers(1, 10, n).astype(np.int32)
    kept = (np.arange(9) < lengths[:, None])[:, :, None]
    total = (table[ids] * kept).sum(1)
    yield "bag", {"T": table, "id": ids, "len": lengths}, {"s": total, "m": total / lengths[:, None]}
    x, width = small(random, n), np.int64(min(n, 3))
    yield "window", {"x": x, "w": width}, {"y": np.array([x[max(0, i - width + 1):i + 1].max() for i in range(n)]), "z": x[:width].sum()}
    key, p = random.integers(0, m, n).astype(np.int32), random.integers(0, m, m).astype(np.int32)
    yield "hist", {"x": x, "k": key, "p": p}, {"c": np.bincount(key, minlength=m), "top": np.array([max([-np.inf, *x[key == j]]) for j in range(m)]),
                                               "t": np.array([x[key == j].sum() for j in p])}
    x, b, v = small(random, n, m), random.random((n, m)) < 0.5, small(random, m)
    yield "masked", {"x": x, "b": b, "v": v}, {"s": (x * v * b).sum(1), "c": ((x > 0) & ~b).sum(1), "a": np.where(b | (x > 1), x, -np.inf).max(1)}
    a, col, row, y = small(random, n), random.integers(0, m, n), random.integers(0, m, n), np.zeros(m)
    np.add.at(y, row, a * v[col])
    wide, w = small(random, m, 9), small(random, 4)
    yield "ranges", {"T": wide, "p": col, "w": w}, {"y": wide[col, :3].sum(1), "z": (wide[col, :4] * wide[col, 2:6] * w).sum(1)}
    yield "triples", {"a": a, "col": col, "row": row, "x": v}, {"y": y}


def main():
    tdslc, tool = sys.argv[1:3]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        dumps = {}
        for stage in ("checked", "graph", "nest", "loop", "legal"):
            dumps[stage] = pathlib.Path(folder) / f"{stage}.tdsl"
            text = subprocess.run([tdslc, "-w", str(PROGRAM), f"--dump={stage}"], check=True, capture_output=True, text=True).stdout
            dumps[stage].write_text(text)
        for extents in ((5, 3, 2), (70, 40, 33)):
            for kernel, arrays, wanted in cases(*extents):
                for target, program in (("interp", PROGRAM), ("c", PROGRAM), *(("interp", dump) for dump in dumps.values())):
                    got = run(tool, target, kernel, arrays, wanted, folder, program)
                    for name, want in wanted.items():
                        wrong = problem(got[name], want, kernel != "pick", 1e-12)
                        if wrong is not None:
                            failed += 1
                            print(f"FAILED {kernel} {name} by {target} of {program.name}: {wrong}")
    print(f"{failed} failures")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
