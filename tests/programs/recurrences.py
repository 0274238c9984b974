#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Values that are computed step by step, by the interpreter, as C and from dumps, beside loops over NumPy's arrays: filters, recurrent networks, state spaces, waves,
tridiagonal systems, Viterbi, Kalman, iterations.

usage: recurrences.py TDSLC TDSL-RUN
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from expansions import dumps_of, problem, run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from quick import share  # noqa: E402

PROGRAM = pathlib.Path(__file__).parent / "recurrences.tdsl"
OPEN = {"wave": (("steps", "u", 0),), "walk": (("t", "at", 0),)}  # dims that no argument has


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def stacked(steps, *shape, kind=float):
    return np.array(steps, kind).reshape(len(steps), *shape)


def filters(random, T, n):
    a, b, h0 = random.random((T, n)), random.random((T, n)), random.random(n)
    h, steps = h0, []
    for t in range(T):
        h = a[t] * h + b[t]
        steps.append(h)
    yield "gated", {"a": a, "b": b, "h0": h0}, {"h": stacked(steps, n)}
    if T > 0:
        x, c = random.random((n, T)), 0.3
        y = x.copy()
        for t in range(1, T):
            y[:, t] = c * x[:, t] + (1 - c) * y[:, t - 1]
        yield "ema", {"x": x, "a": c}, {"y": y}
        before, second, y = x[:, 0], np.zeros(n), np.zeros((n, T))
        for t in range(T):
            y[:, t] = x[:, t] - c * before + second
            before, second = y[:, t], before
        yield "filter", {"x": x, "c": c}, {"y": y}
    u0, u1 = random.random(n), random.random(n)
    u = [u0, u1]
    for s in range(2, T):
        u.append(2 * u[-1] - u[-2] + 0.1 * (np.roll(u[-1], -1) - 2 * u[-1] + np.roll(u[-1], 1)))
    yield "wave", {"u0": u0, "u1": u1, "c": 0.1}, {"u": stacked(u[:T], n)}
    if T > 0:
        a = random.random(T)
        yield "numbers", {"a": a}, {"h": np.cumprod(a), "g": np.array(0.5 + a.sum())}
    x, y, z = random.random((T, n)).astype(np.float32), np.zeros(n, np.float32), np.ones(n, np.float16)
    steps = [[], []]
    for t in range(T):
        y = y + np.float32(t) * x[t]
        z = (z.astype(np.float32) * np.float32(0.5) + x[t].astype(np.float16).astype(np.float32)).astype(np.float16)
        steps[0].append(y)
        steps[1].append(z)
    yield "numbered", {"x": x}, {"y": stacked(steps[0], n, kind=np.float32), "z": stacked(steps[1], n, kind=np.float16)}


def scanned(x, before):
    steps = []
    for each in x:
        before = 0.5 * before + each
        steps.append(before)
    return np.array(steps)


def readers(random, T, n, m):
    x, p, w, A = random.random((T, n, m)), random.integers(0, n, (T, n)), random.random(m), random.random((n, n))
    h, g, steps = x[0], np.zeros(n), [[], []]
    for t in range(T):
        before, h = h, x[t] + h[p[t]] - np.roll(h, -1, 0)
        g = g + h.sum() * t + before @ w
        steps[0].append(h)
        steps[1].append(g)
    yield "mixed", {"x": x, "p": p, "w": w}, {"h": stacked(steps[0], n, m), "g": stacked(steps[1], n)}
    x = x[:, :, 0]
    h, v, d = x.copy(), np.zeros((T, n)), np.zeros((T, n))
    for t in range(1, T):
        h[t] = 0.5 * h[t - 1] + x[t]
        v[t] = A @ h[t] * h[t - 1].sum()
        d[t] = h[t] - h[t - 1]
    yield "followed", {"x": x, "A": A}, {"h": h, "v": v, "d": d}
    c = random.random(n)
    y = scanned(x, c)
    v = y.copy()
    for t in range(T - 2, -1, -1):
        v[t] = c * v[t + 1] + y[t]
    yield "called", {"x": x, "c": c}, {"y": y.T, "first": v[0], "z": scanned(x[:, 0], v[0, 0])}


def networks(random, T, n, m):
    x, U, V, s = ((random.random(shape) - 0.5).astype(np.float32) for shape in ((T, n, m), (m, 9), (9, 9), (n, 9)))
    arrays = {"x": x, "U": U, "V": V, "s0": s}
    for t in range(T):
        s = np.tanh(x[t] @ U + s @ V)
    if T > 0:
        yield "rnn", arrays, {"last": s}
    x, W, R, bias = (random.random(shape) - 0.5 for shape in ((T, n, m), (m, 4, 5), (5, 4, 5), (4, 5)))
    h, c, steps = np.zeros((n, 5)), np.zeros((n, 5)), []
    for t in range(T):
        z = np.einsum("bd,dgu->bgu", x[t], W) + np.einsum("bk,kgu->bgu", h, R) + bias
        c = sigmoid(z[:, 0]) * c + sigmoid(z[:, 1]) * np.tanh(z[:, 2])
        h = sigmoid(z[:, 3]) * np.tanh(c)
        steps.append(h)
    if T > 0:
        yield "lstm", {"x": x, "W": W, "R": R, "bias": bias}, {"h": stacked(steps, n, 5), "cell": c}
    k, v, w, u = (random.random(shape) for shape in ((T, m), (T, m), (m,), (m,)))
    most, number, below, steps = np.full(m, -1e30), np.zeros(m), np.zeros(m), []
    for t in range(T):
        q = np.maximum(most, u + k[t])
        old, new = np.exp(most - q), np.exp(u + k[t] - q)
        steps.append((old * number + new * v[t]) / (old * below + new))
        q = np.maximum(most - w, k[t])
        old, new = np.exp(most - w - q), np.exp(k[t] - q)
        most, number, below = q, old * number + new * v[t], old * below + new
    yield "rwkv", {"k": k, "v": v, "w": w, "u": u}, {"y": stacked(steps, m)}
    x, dt, A, B, C = (random.random(shape) for shape in ((T, m), (T, m), (m, n), (T, n), (T, n)))
    h, steps = np.zeros((m, n)), []
    for t in range(T):
        h = np.exp(-dt[t][:, None] * A) * h + dt[t][:, None] * B[t] * x[t][:, None]
        steps.append(h @ C[t])
    yield "mamba", {"x": x, "dt": dt, "A": A, "B": B, "C": C}, {"y": stacked(steps, m)}
    Q, K, o, steps = random.random((T, m)), random.random((n, m)), np.ones(m), []
    for t in range(T):
        w = np.exp(K @ (Q[t] + o) - (K @ (Q[t] + o)).max())
        o = w @ K / w.sum()
        steps.append(o)
    yield "scores", {"Q": Q, "K": K}, {"o": stacked(steps, m)}


def chains(random, T, n, m):
    e, A, p0 = random.random((T, n)), random.random((n, n)), random.random(n)
    v, back = p0 + e[0], np.zeros((T, n), np.int64)
    for t in range(1, T):
        sums = v[:, None] + A
        back[t], v = sums.argmax(0), sums.max(0) + e[t]
    path = [int(v.argmax())]
    for t in range(T - 1, 0, -1):
        path.append(int(back[t, path[-1]]))
    yield "viterbi", {"e": e, "A": A, "p0": p0}, {"path": np.array(path[::-1]), "best": np.array(v.max())}
    z, F, Q, r = random.random(T), np.array([[1, 0.1], [0, 1]]), 0.01 * np.eye(2), 0.5
    mean, P, steps = np.zeros(2), 10 * np.eye(2), []
    for t in range(T):
        mean, P = F @ mean, F @ P @ F.T + Q
        gain = P[:, 0] / (P[0, 0] + r)
        mean, P = mean + gain * (z[t] - mean[0]), P - np.outer(gain, P[0])
        steps.append((mean, P))
    yield "kalman", {"z": z, "F": F, "Q": Q, "r": r}, {"m": stacked([s[0] for s in steps], 2), "P": stacked([s[1] for s in steps], 2, 2)}
    a, d, c, r = random.random((m, T)), 3 + random.random((m, T)), random.random((m, T)), random.random((m, T))
    x = np.array([np.linalg.solve(np.diag(d[i]) + np.diag(a[i, 1:], -1) + np.diag(c[i, :-1], 1), r[i]) for i in range(m)])
    yield "thomas", {"a": a, "d": d, "c": c, "r": r}, {"x": x}
    following, start = random.integers(0, n, n), random.integers(0, n, m)
    at, steps = start, []
    for t in range(T):
        at = following[at]
        steps.append(at)
    yield "walk", {"next": following, "start": start}, {"at": stacked(steps, m, kind=np.int64)}


def iterations(random, n):
    A = random.random((n, n))
    A = A @ A.T + n * np.eye(n)
    z, size = random.random(n), []
    arrays = {"A": A, "y0": z}
    for _ in range(8):
        w = A @ z
        size.append(np.sqrt(w @ w))
        z = w / size[-1]
    yield "power", arrays, {"y": z, "size": np.array(size)}
    X = A.T / (np.abs(A).sum(0).max() * np.abs(A).sum(1).max())
    arrays = {"A": A, "X0": X}
    for _ in range(12):
        X = 2 * X - X @ A @ X
    yield "newton_schulz", arrays, {"X": X}
    b = random.random(n) + np.arange(n)
    u, r, p = np.zeros(n), b.copy(), b.copy()
    for _ in range(8):
        q, old = A @ p, r @ r
        alpha = old / (p @ q) if n > 1 else 0
        u, r = u + alpha * p, r - alpha * q
        p = r + (r @ r / old if n > 1 else 0) * p
    if n > 1:
        yield "conjugate_gradients", {"A": A, "b": b}, {"x": u}
    x, c = random.random(n), random.random(9)
    yield "chebyshev", {"x": x, "c": c}, {"y": np.polynomial.chebyshev.chebval(x, c)}
    u = random.random((n, 4))
    v = u
    for _ in range(5):
        v = v + 0.1 * (np.roll(v, -1, 0) + np.roll(v, -1, 1) - 2 * v)
    yield "heat", {"u": u, "a": 0.1}, {"u": v}


def cases(T, n, m):
    random = np.random.default_rng(T + n)
    yield from filters(random, T, n)
    yield from networks(random, T, n, m)
    if T > 0:
        yield from chains(random, T, n, m)
        yield from readers(random, T, n, m)
    yield from iterations(random, n)


def main():
    tdslc, tool = sys.argv[1:3]
    failed = 0
    for option in ("--report", "--report=json", "--report=html", "--emit=dot"):
        subprocess.run([tdslc, "-w", str(PROGRAM), option], check=True, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as folder:
        dumps, changed = dumps_of(tdslc, PROGRAM, folder)
        failed += changed
        for extents in share(((9, 6, 5), (1, 1, 1), (40, 600, 33), (2, 1, 3), (0, 3, 2)), 1, gate=2):
            for number, (kernel, arrays, wanted) in enumerate(cases(*extents)):
                dims = [f"-D{name}={wanted[result].shape[d]}" for name, result, d in OPEN.get(kernel, ())]
                for target, program in (("interp", PROGRAM), ("c", PROGRAM), *(("interp", dump) for dump in share(dumps.values(), 6, number, gate=3) if extents[0] == 9)):
                    if extents[1] == 600 and target == "interp":
                        continue
                    got = run(tool, target, kernel, arrays, wanted, folder, program, dims)
                    for name, want in wanted.items():
                        step = 2e-5 if want.dtype == np.float32 else 2e-3 if want.dtype == np.float16 else 1e-11
                        wrong = problem(got[name], want, False, step)
                        if wrong is not None:
                            failed += 1
                            print(f"FAILED {kernel} {name} by {target} of {program.name} at {extents}: {wrong}")
    print(f"{failed} failures")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
