#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Elements at positions that are values, by the interpreter and as C, beside NumPy: lookups, sparse rows, experts, pages, attention; scatters; and positions outside,
which are an error unless a condition leaves them out.

usage: gather.py TDSLC TDSL-RUN
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from expansions import dumps_of, problem, run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from quick import CFLAGS, share  # noqa: E402

OPEN = {"hist": (), "segments": (("v", "G", 0),), "folds": (("m", "p", 0),), "pairs": (("m", "c", 0), ("q", "c", 1)), "grids": (("s", "d", 2),)}  # dims that no argument has
PROGRAM = pathlib.Path(__file__).parent / "gather.tdsl"


def small(random, *shape, kind=float):
    return random.integers(-4, 5, shape).astype(kind)


def taken(array, *index):
    return array[tuple(np.broadcast_arrays(*index))]


def guarded(random, n, m):
    """Positions outside wherever a condition does not hold."""
    T, x, p = small(random, m, m), small(random, m), random.integers(-3, m + 3, n).astype(np.int32)
    inside = (p >= 0) & (p < m)
    row, lengths = np.where(inside, random.integers(0, m, n), random.choice([-1, m, 1 << 40], n)), random.integers(0, 5, n).astype(np.int32)
    q = np.where(inside, random.integers(-2, m, n), 1 << 40)
    ids = np.where(np.arange(4) < lengths[:, None], random.integers(0, m, (n, 4)), -7).astype(np.int32)
    safe, s = np.where(inside, p, 0), np.zeros(m)
    np.add.at(s, row[inside], x[p[inside]])
    picked = np.where(q < 0, -1, T[safe, np.clip(q, 0, m - 1)])
    padded = np.concatenate([np.full(3, -np.inf), x, np.full(6, -np.inf)])
    return "guarded", {"T": T, "p": p, "q": q, "id": ids, "len": lengths, "row": row, "x": x}, {
        "y": np.where(inside, picked, 0), "z": (x[np.maximum(ids, 0)] * (ids >= 0)).sum(1), "s": s,
        "w": np.max([padded[p + 3 + k] for k in range(3)], axis=0)}


def scattered(random, n, m, k):
    dY, tok, w = small(random, n, k, kind=np.float32), random.integers(-2, m + 2, n).astype(np.int32), small(random, n, kind=np.float32)
    hit = tok[:, None] == np.arange(m)
    segments = np.einsum("nv,ne->ve", hit.astype(np.float32), dY)
    yield "segments", {"dY": dY, "tok": tok, "w": w}, {
        "G": segments, "H": np.einsum("nv,ne,n->ve", hit.astype(np.float32), dY, w * (w > 0)),
        "M": np.where(hit[:, :, None], dY[:, None], np.float32(-np.inf)).max(0, initial=-np.inf)}
    x = w.astype(float)
    yield "folds", {"x": x, "k": tok}, {"p": np.where(hit, x[:, None], 1).prod(0), "a": (hit & (x[:, None] > 0)).any(0), "z": (x[:, None] * hit).sum(0) * 1j}
    G = small(random, m, k, kind=np.float32)
    yield "halves", {"x": dY.astype(np.float16), "k": tok, "G": G}, {"s": segments.astype(np.float16), "G": G + segments}
    l = random.integers(-1, 5, n)
    yield "pairs", {"x": x, "k": tok, "l": l}, {"c": np.einsum("n,ni,nj->ij", x, hit.astype(float), (l[:, None] == np.arange(4)).astype(float)), "d": x}
    many, l, r = small(random, 3, n), random.integers(-1, 5, (3, n)), random.integers(-1, 4, n)
    two, three, L = (l[:, :, None] == np.arange(4)).astype(float), (r[:, None] == np.arange(3)).astype(float), small(random, 3, m, 4)
    new = L.copy()
    np.add.at(new[:, :, 1], (np.arange(3)[:, None], tok % m), many)
    yield "grids", {"x": many, "k": tok, "l": l, "r": r, "L": L}, {
        "c": np.einsum("bn,ni,bnj->ibj", many, hit.astype(float), two), "d": np.einsum("bn,bnj,ni,ns->ijs", many > 0, two, hit.astype(float), three).astype(int),
        "t": np.einsum("n,ni,nj,j->in", many[0], hit.astype(float), three, np.arange(3)), "L": new}
    nodes, source = small(random, m, k), random.integers(0, m, n)
    yield "edges", {"x": nodes, "src": source, "dst": tok.astype(np.int64), "w": x}, {
        "y": np.einsum("n,nv,ne->ve", x, hit.astype(float), nodes[source]), "d": ((x > 0)[:, None] & hit).sum(0)}
    W = small(random, m, k, kind=np.float32)
    yield "lookup", {"W": W, "tok": tok}, {"Y": np.einsum("nv,ve->ne", hit.astype(np.float32), W)}


def updated(random, n, m, k):
    dY, tok, p, q = small(random, n, k, kind=np.float32), random.integers(0, m, n).astype(np.int32), random.integers(0, m, n), random.integers(0, 4, n).astype(np.int32)
    x, w, B = small(random, n, k), small(random, k, 3), random.random(m) < 0.2
    G, H, C, hit = small(random, m, k, kind=np.float32), small(random, m, 3), small(random, m, 5), p[:, None] == np.arange(m)
    new = [array.copy() for array in (G, H, C)]
    np.add.at(new[0], tok, dY)
    np.subtract.at(new[1], p, x @ w + 1)
    np.add.at(new[2], (p, q + 1), 2)
    yield "updates", {"dY": dY, "tok": tok, "x": x, "w": w, "p": p, "q": q, "G": G, "H": H, "C": C, "B": B}, {
        "G": new[0], "H": new[1], "C": new[2], "B": B | (hit & (dY[:, :1] > 0)).any(0)}
    rows, at, K = small(random, n, 2, k, kind=np.float16), random.integers(0, m, n).astype(np.int32), small(random, n, m, 2, k, kind=np.float16)
    R, Z, x, c, row = small(random, m, k), small(random, m, n).astype(complex), small(random, k), small(random, n) * 1j, np.int64(random.integers(0, m))
    new = [array.copy() for array in (K, R, Z)]
    new[0][np.arange(n), at], new[1][row], new[2][at, np.arange(n)] = rows, x, c
    yield "append", {"k": rows, "at": at, "row": row, "x": x, "c": c, "K": K, "R": R, "Z": Z}, {"K": new[0], "R": new[1], "Z": new[2]}
    x, W = small(random, n), small(random, m, m)
    s = W[:, 0] + np.array([x[tok == j].sum() for j in range(m)])
    s[s.argmax()] += 1
    count = np.bincount(tok, minlength=m)
    yield "counted", {"k": tok, "x": x, "W": W}, {"c": count, "s": s, "y": s * count}


def computed(random, n, m, k):
    x, p, G = small(random, n), random.integers(0, n, n), small(random, n)
    yield "hops", {"x": x, "p": p, "G": G}, {"y": 2 * x[p][p] + 1, "o": G[p], "G": G[p] + 1}
    A, B, q = small(random, n, k), small(random, k, m), random.integers(0, n, 2 * n)
    yield "product_rows", {"A": A, "B": B, "p": q}, {"y": (A @ B)[q], "z": ((A @ B)[q] ** 2).sum(1)}
    x, p, r = small(random, m, n), random.integers(0, n, 2 * n), random.integers(0, m, 2 * n)
    yield "moved", {"x": x, "p": p, "r": r}, {"y": x[r, p], "z": x[0, p], "c": np.full(2 * n, 5.0), "b": x[0, ::-1][p]}
    s, T, e = small(random, k, m), small(random, m, m), small(random, k, m)
    sums = s[:, :, None] + T
    t = sums.max(1) + e
    yield "viterbi_step", {"s": s, "A": T, "e": e}, {"t": t, "from": sums.argmax(1), "prev": np.take_along_axis(t, sums.argmax(1), 1)}
    x, R, W = small(random, n, k), small(random, k, 6), small(random, 6, k, 5)
    s = x @ R
    best = s.argmax(1)
    others = np.where(np.arange(6) == best[:, None], -np.inf, s)
    picked = [s[np.arange(n), at][:, None] * np.einsum("nd,ndf->nf", x, W[at]) for at in (best, others.argmax(1))]
    yield "experts", {"x": x, "R": R, "W": W}, {"one": picked[0], "both": sum(picked), "best": best}


def attentions(random, n, m, k):
    q, K, V = random.standard_normal((n, k)), random.standard_normal((m, 4, k)), random.standard_normal((m, 4, k))
    tab, length = random.integers(0, m, (n, 5)).astype(np.int32), random.integers(1, 21, n).astype(np.int32)
    scores = np.einsum("be,bmue->bmu", q, K[tab]).reshape(n, 20)
    scores = np.where(np.arange(20) < length[:, None], scores, -np.inf)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    yield "paged_attention", {"q": q, "K": K, "V": V, "tab": tab, "len": length}, {
        "o": np.einsum("bk,bke->be", weights, V[tab].reshape(n, 20, k)) / weights.sum(1, keepdims=True)}
    h, a, source, target = random.standard_normal((m, k)), random.standard_normal(3 * n), random.integers(0, m, 3 * n), random.integers(0, m, 3 * n)
    hit = target[:, None] == np.arange(m)
    w = np.where(hit, np.exp(a[:, None] - np.where(hit, a[:, None], -np.inf).max(0)), 0)
    yield "graph_attention", {"h": h, "a": a, "src": source, "dst": target}, {"o": np.einsum("km,kf->mf", w, h[source]) / np.maximum(w.sum(0)[:, None], 1e-30)}


def outside():
    """Kernels with one position outside, and what is said of it."""
    W, tok, x = np.ones((4, 3), np.float32), np.array([1, 3, 0, 2], np.int32), np.ones(4)
    for at in (4, -1, 2 ** 31 - 1, -2 ** 31):
        bad = tok.copy()
        bad[2] = at
        yield "embed", {"W": W, "tok": bad}, f"dimension 0 of 'W' has 4 positions, and tok[n] is {at} at n = 2"
    for at in (1 << 33, -1 << 62):
        columns = np.array([[0, 1], [2, at]])
        yield "spmv", {"a": np.ones((2, 2)), "col": columns, "x": x}, f"dimension 0 of 'x' has 4 positions, and col[i,k] is {at} at i = 1, k = 1"
    many = dict(dY=W, tok=tok, x=W.astype(float), w=np.ones((3, 1)), p=np.array([0, 1, 0, 1]), q=tok, H=np.ones((2, 1)), C=np.ones((2, 5)), B=np.ones(2, bool))
    yield "updates", {**many, "G": np.ones((4, 3), np.float32)}, None
    yield "updates", {**many, "G": np.ones((3, 3), np.float32)}, "dimension 0 of 'G' has 3 positions, and tok[n] is 3 at n = 1"
    yield "updates", {**many, "q": tok + 2, "G": np.ones((4, 3), np.float32)}, "dimension 1 of 'C' has 5 positions, and q[n]+1 is 6 at n = 1"
    yield "embed", {"W": W[:0], "tok": tok}, "dimension 0 of 'W' has 0 positions, and tok[n] is 1 at n = 0"
    ids = np.array([[0, 9]], np.int32)
    yield "bag", {"T": np.ones((4, 2)), "id": ids, "len": np.array([2], np.int32)}, "dimension 0 of 'T' has 4 positions, and id[b,l] is 9 at b = 0, l = 1"
    yield "bag", {"T": np.ones((4, 2)), "id": ids, "len": np.array([1], np.int32)}, None
    yield "embed", {"W": W[:0], "tok": tok[:0]}, None
    k = np.array([0, 1, 5, 3], np.int32)
    yield ("positions", {"T": np.ones((4, 4)), "h": np.ones(4, np.float16), "c": np.ones(4, complex), "b": np.ones(4, bool), "k": k,
                         "p": np.array([0], np.int32), "q": np.array([1]), "at": np.int64(4)}, "dimension 1 of 'T' has 4 positions, and at+0 is 4")
    yield ("positions", {"T": np.ones((4, 4)), "h": np.ones(4, np.float16), "c": np.ones(4, complex), "b": np.ones(4, bool), "k": k,
                         "p": np.array([1, 2], np.int32)[:1], "q": np.array([3]), "at": np.int64(3)}, "dimension 1 of 'T' has 4 positions, and (2*q[i])-1 is 5 at i = 0")
    yield "triples", {"a": x, "col": np.array([0, 9, 1, 2]), "row": np.array([0, -1, 1, 2]), "x": x}, None
    yield "triples", {"a": x, "col": np.array([0, 9, 1, 2]), "row": np.array([0, 3, 1, 2]), "x": x}, "dimension 0 of 'x' has 4 positions, and col[k] is 9 at k = 1"


def said(tool, target, kernel, arrays, folder, program):
    """The error of a run, or None."""
    for name, array in arrays.items():
        np.save(f"{folder}/{name}.npy", array)
    done = subprocess.run([pathlib.Path(tool).resolve(), program.name, f"--kernel={kernel}", "-w", CFLAGS, f"--target={target}", *[f"{a}={folder}/{a}.npy" for a in arrays]],
                          capture_output=True, text=True, timeout=300, cwd=program.parent)
    return None if done.returncode == 0 else done.stderr


def cases(n, m, k):
    random = np.random.default_rng(n + m)
    W, tok = small(random, m, k, kind=np.float32), random.integers(0, m, n).astype(np.int32)
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
    T, p, q = small(random, m, m), random.integers(0, m - 2, n).astype(np.int32), random.integers(1, (m + 1) // 2, n)
    h, c, b = small(random, m, kind=np.float16), small(random, m) + 1j * small(random, m), random.random(m) < 0.5
    places = random.integers(0, m, m).astype(np.int32)
    at = np.int64(m - 1)
    yield "positions", {"T": T, "h": h, "c": c, "b": b, "k": places, "p": p, "q": q, "at": at}, {
        "y": taken(T, p, q), "z": sum(taken(T, p + i, 2 * q - 1) for i in range(3)), "w": T[:, at], "o": taken(h, p),
        "d": c[np.clip(p, 0, 2)] * 2j, "e": taken(b, p), "g": taken(places, taken(places, p))}
    yield guarded(random, n, m)
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
    yield from scattered(random, n, m, k)
    yield from updated(random, n, m, k)
    x = small(random, n, m)
    rolled = np.roll(x, -1, 0) + 2 * np.roll(x, 1, 0) + 4 * np.roll(x, -9, 1) + 8 * np.roll(x, 1, 1)
    i, j = np.ogrid[:n, :m]
    yield "torus", {"x": x}, {"y": rolled, "z": x[(2 * i - j) % n, (j + n) % m]}
    yield from computed(random, n, m, k)
    yield from attentions(random, n, m, k)
    yield "triples", {"a": a, "col": col, "row": row, "x": v}, {"y": y}


def main():
    tdslc, tool = sys.argv[1:3]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        dumps, failed = dumps_of(tdslc, PROGRAM, folder, ("checked", "graph", "nest", "loop", "legal"))
        for extents in share(((5, 3, 2), (70, 40, 33)), 2):
            for number, (kernel, arrays, wanted) in enumerate(cases(*extents)):
                dims = [f"-D{name}={wanted[result].shape[d]}" for name, result, d in OPEN.get(kernel, ())]
                for target, program in (("interp", PROGRAM), ("c", PROGRAM), *(("interp", dump) for dump in share(dumps.values(), 5, number, gate=2) if extents[0] == 5)):
                    got = run(tool, target, kernel, arrays, wanted, folder, program, dims)
                    for name, want in wanted.items():
                        wrong = problem(got[name], want, kernel not in ("pick", "paged_attention", "graph_attention"), 1e-12)
                        if wrong is not None:
                            failed += 1
                            print(f"FAILED {kernel} {name} by {target} of {program.name}: {wrong}")
        for number, (kernel, arrays, wanted) in enumerate(outside()):
            for target, program in share((("interp", PROGRAM), ("c", PROGRAM), ("interp", dumps["loop"]), ("c", dumps["legal"])), 2, number):
                got = said(tool, target, kernel, arrays, folder, program)
                if (got is None) != (wanted is None) or (wanted is not None and f"error[E0804]: {wanted}\n" not in got):
                    failed += 1
                    print(f"FAILED {kernel} by {target} of {program.name}: {got} instead of {wanted}")
    print(f"{failed} failures")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
