#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Dense steps by the interpreter, as C, in two threads and from dumps, beside NumPy. A triangular solve is backward stable: its error is at most a few n roundings times
the condition of the matrix, and so is that of a cholesky of a matrix of that condition. Halves that are promised to be 0 hold NaN: they are not read.

usage: dense.py TDSLC TDSL-RUN
"""
import os
import pathlib
import sys
import tempfile

import numpy as np

from expansions import dumps_of, problem, run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from quick import share  # noqa: E402

PROGRAM = pathlib.Path(__file__).parent / "dense.tdsl"
EPS = {np.dtype(np.float64): 2.0 ** -52, np.dtype(np.float32): 2.0 ** -23, np.dtype(np.float16): 2.0 ** -10}


def definite(random, *shape):
    n = shape[-1]
    A = random.random((*shape, n)) - 0.5
    return A @ A.swapaxes(-1, -2) + (0.5 + n / 8) * np.eye(n)


def solved(T, B):
    return np.linalg.solve(T, B) if T.shape[-1] > 0 else B.copy()


def half(random, n, upper):
    """A triangle, and the same with NaN where it is 0."""
    T = np.tril(random.random((n, n)) - 0.5) / (1 + n) + np.diag(1 + random.random(n))
    T = T.T.copy() if upper else T
    return T, np.where(np.tril(np.ones((n, n)), -1) > 0 if upper else np.triu(np.ones((n, n)), 1) > 0, np.nan, T)


def matrices(random, n):
    S = definite(random, n)
    yield "factor", {"S": S}, {"L": np.linalg.cholesky(S)}
    H = (definite(random, n) / (1 + n)).astype(np.float16)
    yield ("factor_t", {"S": S.astype(np.float32), "H": H},
           {"U": np.linalg.cholesky(S).T.astype(np.float32), "V": np.linalg.cholesky(H.astype(float)).astype(np.float16)})
    b, c, k = 3, 2, 5
    A, C, x = random.random((b, n, 4)), definite(random, b, c, n), random.random((b, n))
    R = np.linalg.cholesky(A @ A.swapaxes(1, 2) + n * np.eye(n))
    yield ("batches", {"A": A, "C": C.transpose(2, 0, 3, 1).copy(), "x": x},
           {"z": np.array([solved(R[i], x[i]) for i in range(b)]).reshape(b, n), "L": np.linalg.cholesky(C)})
    (L, L_nan), (U, U_nan), y, v = half(random, n, False), half(random, n, True), random.random((n, k)), random.random(n)
    yield ("triangles", {"L": L_nan, "U": U_nan, "y": y, "v": v},
           {"a": solved(L, y), "b": solved(L.T, y), "c": solved(U, y), "d": solved(U.T, y), "e": solved(L, v), "f": solved(L.T, v),
            "g": solved(U, 2 * y - v[:, None]).T.copy()})
    want = -0.5 * v @ solved(S, v) - 0.5 * np.linalg.slogdet(S)[1]
    yield "gaussian_process", {"K": S, "y": v}, {"l": np.array(want), "q": np.array(want)}
    L = np.linalg.cholesky(S)
    x = random.random((b, n, c))
    inverse = solved(L, np.eye(n))
    yield ("shared", {"S": S, "x": x}, {"z": np.array([solved(L, x[i]) for i in range(b)]).reshape(b, n, c), "V": inverse, "W": inverse.T.copy(),
                                        "d": np.array(np.log(np.diag(L)).sum())})
    yield "in_place", {"A": S, "x": v}, {"A": L, "x": solved(L, v)}
    B, e, f = random.random((n, 3, 4)), -1 - random.random(3), 1 + random.random(4)
    X = solved(L, B.reshape(n, 12)).reshape(n, 3, 4)
    G = np.einsum("qia,qjb->iajb", X, X)
    gaps = e[:, None, None, None] + e[None, None, :, None] - f[None, :, None, None] - f
    yield "fitted", {"J": S, "B": B, "e": e, "f": f}, {"E": np.array((G * (2 * G - G.transpose(0, 3, 2, 1)) / gaps).sum())}


def filters(random, T, n, m):
    F, H = np.eye(n) + 0.1 * random.random((n, n)), random.random((m, n))
    Q, R, z = definite(random, n), definite(random, m), random.random((T, m))
    x, P, steps = np.zeros(n), np.eye(n), []
    for t in range(T):
        a, A = F @ x, F @ P @ F.T + Q
        gain = A @ H.T @ np.linalg.inv(H @ A @ H.T + R)
        x, P = a + gain @ (z[t] - H @ a), A - gain @ H @ A
        steps.append((x, P))
    yield ("kalman", {"z": z, "F": F, "H": H, "Q": Q, "R": R},
           {"x": np.array([s[0] for s in steps]).reshape(T, n), "P": np.array([s[1] for s in steps]).reshape(T, n, n)})


def known(random):
    S, x = definite(random, 7, 12), random.random((7, 12, 3))
    yield "small", {"S": S, "x": x}, {"z": np.linalg.solve(S, x)}
    S, x = definite(random, 150), random.random(150)
    yield "large", {"S": S, "x": x}, {"z": np.linalg.solve(S, x)}


def cases(n):
    random = np.random.default_rng(n)
    yield from matrices(random, n)
    if n in (2, 64):
        yield from filters(random, 5, 4, 3)
        yield from filters(random, 0, 2, 1)
        yield from known(random)


def main():
    tdslc, tool = sys.argv[1:3]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        dumps, changed = dumps_of(tdslc, PROGRAM, folder)
        failed += changed
        for n in share((64, 65, 0, 2, 200), 1, gate=3, first=0):
            for number, (kernel, arrays, wanted) in enumerate(cases(n)):
                ways = [("c", PROGRAM, "2")]
                ways += [("interp", PROGRAM, "1")] if n < 65 else []
                ways += [("interp", dump, "1") for dump in share(dumps.values(), 6, number, gate=3) if n == 2] + [("interp", dumps["legal"], "1")] * (n == 65)
                for target, program, threads in ways:
                    os.environ["OMP_NUM_THREADS"] = threads
                    got = run(tool, target, kernel, arrays, wanted, folder, program)
                    for name, want in wanted.items():
                        wrong = problem(got[name], want, False, (40 + 8 * n) * EPS[want.dtype])
                        if wrong is not None:
                            failed += 1
                            print(f"FAILED {kernel} {name} by {target} of {program.name} at {n}: {wrong}")
    print(f"{failed} failures")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
