# SPDX-License-Identifier: Apache-2.0
"""The kernels of positions.tdsl against NumPy, by the interpreter at tiny extents and as C at small ones; whole numbers exactly.

usage: positions.py TDSL-RUN [KERNEL...]"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from quick import CFLAGS, share  # noqa: E402

PROGRAM = Path(__file__).resolve().parent / "positions.tdsl"


def softmax(s):
    w = np.exp(s - s.max(-1, keepdims=True))
    return w / w.sum(-1, keepdims=True)


def attention(mask):
    def of(Q, K, V):
        i = np.arange(len(Q))
        return dict(O=softmax(np.where(mask(i[None], i[:, None]), Q @ K.T, -np.inf)) @ V)
    return of


def windows(x, k, stride=1, dilation=1):
    """Convolution of the last dimensions of x with k[f, c, ...]."""
    n = [(s - dilation * (w - 1) - 1) // stride + 1 for s, w in zip(x.shape[x.ndim - (k.ndim - 2):], k.shape[2:])]
    y = 0
    for at in np.ndindex(*k.shape[2:]):
        cut = tuple(slice(a * dilation, a * dilation + stride * (m - 1) + 1, stride) for a, m in zip(at, n))
        y = y + np.einsum("...cx,fc->...fx", x[(..., *cut)].reshape(*x.shape[:x.ndim - len(n)], -1), k[(..., *at)])
    return y.reshape(*y.shape[:-1], *n)


def rope(x, f):
    a = np.arange(len(x))[:, None] * f
    y = np.empty_like(x)
    y[:, ::2] = x[:, ::2] * np.cos(a) - x[:, 1::2] * np.sin(a)
    y[:, 1::2] = x[:, ::2] * np.sin(a) + x[:, 1::2] * np.cos(a)
    return dict(y=y)


def gqa(Q, K, V):
    q, k, v = Q.reshape(-1, 3, 2, 4), K.reshape(-1, 3, 4), V.reshape(-1, 3, 4)
    w = softmax(np.einsum("qgre,kge->qgrk", q, k))
    return dict(O=np.einsum("qgrk,kge->qgre", w, v).reshape(len(Q), 24))


def frozen(B, e, f):
    t = np.einsum("iap,jbp->iajb", B[2:], B[2:])
    d = e[2:, None, None, None] + e[None, None, 2:, None] - f[None, :, None, None] - f
    return dict(E=(t * (2 * t - t.transpose(0, 3, 2, 1)) / d).sum())


def triples(x, t):
    n = range(len(x))
    return dict(E=sum(t[i, j] * t[j, k] * t[i, k] * x[i] * x[j] * x[k] for i in n for j in range(i) for k in range(j)))


def restricted_pairs(g):
    n = len(g)
    lower, strict = np.tri(n), np.tri(n, k=-1)
    return dict(E=np.einsum("ijp,jip,ij->", g, g, lower), F=np.einsum("ijp,ij->i", g, strict))


def cumulative_softmax(x):
    y = np.empty_like(x)
    for t in range(x.shape[1]):
        y[:, t] = softmax(x[:, :t + 1])[:, t]
    return dict(y=y)


def scans(x):
    return dict(r=np.cumsum(x[..., ::-1], axis=2)[..., ::-1], c=np.cumsum(x * x, axis=1) - x * x, p=np.maximum.accumulate(x, axis=0))


def running(x):
    n = range(len(x))
    return dict(s=np.cumsum(x), p=np.array([np.prod(x[:i]) for i in n]), m=np.array([x[i:].min() for i in n]),
                t=np.array([(x[max(0, i - 2):i + 1] ** 2).sum() for i in n]), u=np.maximum.accumulate(x) - x.min())


def toeplitz(t, x):
    i = np.arange(len(x))
    return dict(y=t[i[:, None] - i + len(x) - 1] @ x, z=t[i[:, None] + i] @ x)


def blocks(A, B, D):
    R = np.block([[A, B], [B.T, D @ D]])
    return dict(R=R, t=np.trace(R))


def fir(w, x):
    k = w.shape[1]
    return dict(y=np.einsum("ck,bnk->bcn", w, np.lib.stride_tricks.sliding_window_view(x, k, axis=1)))


def update(C, A):
    C = C.copy()
    C[len(A):] -= A @ A
    return dict(C=C)


def upwind(u, c):
    v = u.copy()
    v[1:] -= c * (u[1:] - u[:-1])
    return dict(v=v)


def heads(x, n):
    """[s, n*dh] as [n, s, dh]"""
    return x.reshape(len(x), n, -1).swapaxes(0, 1)


def open_heads(Q, K, V, scale):
    q, k, v = heads(Q, len(scale)), heads(K, len(scale)), heads(V, len(scale))
    w = softmax(q @ k.swapaxes(1, 2) * scale[:, None, None])
    return dict(O=(w @ v).swapaxes(0, 1).reshape(Q.shape))


def projected(X, A, B, f):
    P = X @ A + np.arange(A.shape[1])
    p = heads(P, A.shape[1] // len(f))
    o = (p * f) @ p.swapaxes(1, 2) @ p
    return dict(P=P, Y=o.swapaxes(0, 1).reshape(P.shape) @ B)


def grouped(Q, K, V, u, w):
    q = Q.reshape(len(Q), len(u), len(w), -1)
    k, v = K.reshape(len(K), len(u), -1), V.reshape(len(V), len(u), -1)
    s = softmax(np.einsum("qabe,kae,a,b->abqk", q, k, u, w))
    return dict(O=np.einsum("abqk,kae->qabe", s, v).reshape(Q.shape))


def packed(X, f):
    q, k, v = X.reshape(len(X), 3, -1, len(f)).transpose(1, 2, 0, 3)
    T = (q * f) @ k.swapaxes(1, 2)
    return dict(T=T, Y=np.stack([T @ v, q * f]).transpose(2, 0, 1, 3).reshape(len(X), -1))


def flat(x, y, w):
    return dict(z=((x.reshape(-1, len(w)) * w) @ y.reshape(len(w), -1)).ravel())


def flat_rows(x, u):
    x = x.reshape(-1, len(u) + 2)
    y = x[:, :-2] - 2 * x[:, 1:-1] + x[:, 2:]
    d = y * np.arange(y.size).reshape(y.shape)
    return dict(y=y.ravel(), r=(y[:, ::-1] * u).ravel(), b=y.ravel()[::-1], d=d, t=d.T.ravel())


def flat_update(C, A, f):
    c = C.reshape(len(A), A.shape[1], -1) + A[..., None] * f
    c[..., 0] += A
    return dict(C=c.reshape(C.shape), R=(c * c).reshape(C.shape), e=(c * c)[..., ::-1].reshape(C.shape))


def last(x, z):
    return dict(y=x * x[-1], s=x[-1] * x.sum(), d=z - z[:, -1:] * x[0], f=z[-1] * z[:, -1].sum())


def folded_twice(T, w):
    return dict(s=np.cumsum(T.sum(1)), l=np.maximum.accumulate(T.max(1)[::-1])[::-1], p=np.cumsum(T @ w) - T @ w, c=T.cumsum(0).cumsum(1))


def conditions(x, C):
    n = range(len(x))
    e = sum(x[i] * x[j] * x[k] for i in n for j in n for k in n if j != i and k != j)
    return dict(a=x.sum() - x, b=x, c=np.array([x[:i // 2 + 1].sum() for i in n]), e=e, w=1 + np.concatenate([x, -x]), C=C + np.concatenate([2 * x, 0 * x]))


def repeated(x, A):
    return dict(s=8 * x, c=3 * len(x), p=x ** 3, q=2 * x, t=4 * x * A.sum(1), u=len(x) * x * x, e=1)


# of each kernel: what it computes, and the shapes of its arguments for a set of extents
CASES = {
    "causal": (attention(lambda k, q: k <= q), lambda s, d: [(s, d)] * 3, (5, 3), (150, 16)),
    "sliding": (attention(lambda k, q: (k <= q) & (q - k < 5)), lambda s, d: [(s, d)] * 3, (7, 2), (150, 16)),
    "rope": (rope, lambda s, h: [(s, 2 * h), (h,)], (3, 2), (40, 16)),
    "gqa": (gqa, lambda s, t: [(s, 24), (t, 12), (t, 12)], (2, 3), (30, 40)),
    "conv1d": (lambda x, k: dict(y=windows(x, k, 2)), lambda c, w, f: [(c, 2 * w + 3), (f, c, 5)], (1, 3, 2), (7, 50, 9)),
    "conv2d": (lambda x, k: dict(y=windows(x, k)), lambda b, c, h, w, f: [(b, c, h + 2, w + 2), (f, c, 3, 3)],
               (1, 2, 2, 3, 2), (2, 16, 12, 20, 24)),
    "dilated": (lambda x, k: dict(y=windows(x, k, 1, 2)), lambda c, h, w, f: [(c, h + 4, w + 4), (f, c, 3, 3)],
                (2, 2, 3, 1), (8, 10, 20, 12)),
    "padded": (lambda x, k: dict(y=windows(np.pad(x, ((0, 0), (1, 1), (1, 1))), k)), lambda c, h, w, f: [(c, h, w), (f, c, 3, 3)],
               (2, 3, 2, 2), (8, 10, 20, 12)),
    "depthwise": (lambda x, k: dict(y=sum(x[:, a:x.shape[1] - 2 + a] * k[:, a:a + 1] for a in range(3))),
                  lambda c, w: [(c, w + 2), (c, 3)], (2, 3), (20, 70)),
    "pool_max": (lambda x: dict(y=x.reshape(len(x) // 2, 2, -1, 2).max((1, 3))), lambda n, m: [(2 * n, 2 * m)], (2, 3), (20, 70)),
    "pool_average": (lambda x: dict(y=x.reshape(len(x) // 3, 3, -1, 2).sum((1, 3)) / 6), lambda n, m: [(3 * n, 2 * m)], (2, 3), (20, 70)),
    "stencil": (lambda u: dict(v=u[1:-1, 1:-1] + .25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1])),
                lambda n, m: [(n + 2, m + 2)], (1, 2), (40, 70)),
    "stencil_twice": (lambda u: dict(w=np.convolve(u, [1, 2, 3, 2, 1], "valid")), lambda n: [(n + 4,)], (2,), (300,)),
    "frozen": (frozen, lambda o, v, x: [(o + 2, v, x), (o + 2,), (v,)], (2, 3, 2), (5, 20, 30)),
    "triples": (triples, lambda n: [(n,), (n, n)], (4,), (30,)),
    "restricted_pairs": (restricted_pairs, lambda n, m: [(n, n, m)], (4, 2), (40, 9)),
    "cumulative_softmax": (cumulative_softmax, lambda n, m: [(n, m)], (2, 4), (20, 50)),
    "scans": (scans, lambda b, n, m: [(b, n, m)], (2, 3, 4), (5, 40, 700)),
    "running": (running, lambda n: [(n,)], (5,), (60,)),
    "differences": (lambda u, h: dict(d=(u[2:] - u[:-2]) / (2 * h), dd=(u[:-2] - 2 * u[1:-1] + u[2:]) / (h * h), r=u[-2:0:-1]),
                    lambda n: [(n + 2,), ()], (3,), (100,)),
    "toeplitz": (toeplitz, lambda n: [(2 * n - 1,), (n,)], (3,), (80,)),
    "blocks": (blocks, lambda m, n: [(m, m), (m, n), (n, n)], (2, 3), (30, 40)),
    "fir": (fir, lambda c, k, b, n: [(c, k), (b, n + k - 1)], (2, 3, 1, 2), (5, 9, 6, 100)),
    "update": (update, lambda n: [(2 * n, n), (n, n)], (3,), (40,)),
    "diagonal": (lambda x, A: dict(D=np.diag(x), U=np.triu(A), t=A[0, 0] + A[-1, -1], c=(A[:, 0] * np.arange(len(x))).sum()),
                 lambda n: [(n,), (n, n)], (3,), (50,)),
    "trapezoid": (lambda y, h: dict(s=(h * (y[1:] + y[:-1]) / 2).sum()), lambda n: [(n + 1,), ()], (3,), (200,)),
    "backwards": (lambda x: dict(y=x[::-1], Z=np.full((3, len(x)), 7.0)), lambda n: [(n,)], (3,), (130,)),
    "last": (last, lambda n, m: [(n,), (m, n)], (3, 2), (40, 30)),
    "folded_twice": (folded_twice, lambda n, m: [(n, m), (m,)], (3, 2), (40, 30)),
    "conditions": (conditions, lambda n: [(n,), (2 * n,)], (4,), (30,)),
    "repeated": (repeated, lambda n, m: [(n,), (n, m)], (4, 2), (30, 7)),
    "upwind": (upwind, lambda n: [(n,), ()], (4,), (99,)),
    "open_heads": (open_heads, lambda s, t, n, d: [(s, n * d), (t, n * d), (t, n * d), (n,)], (2, 3, 2, 3), (60, 90, 5, 24)),
    "projected": (projected, lambda s, d, n, h: [(s, d), (d, n * h), (n * h, d), (h,)], (2, 3, 2, 3), (50, 30, 5, 16)),
    "grouped": (grouped, lambda s, t, g, r, d: [(s, g * r * d), (t, g * d), (t, g * d), (g,), (r,)], (2, 3, 2, 2, 3), (60, 70, 3, 4, 16)),
    "packed": (packed, lambda s, n, d: [(s, 3 * n * d), (d,)], (2, 2, 3), (40, 5, 16)),
    "flat": (flat, lambda m, k, n: [(m * k,), (k * n,), (k,)], (2, 3, 2), (50, 70, 60)),
    "flat_rows": (flat_rows, lambda h, w: [(h * (w + 2),), (w,)], (2, 3), (20, 37)),
    "flat_update": (flat_update, lambda s, n, d: [(s, n * d), (s, n), (d,)], (2, 2, 3), (30, 5, 16)),
}
INEXACT = {"causal", "sliding", "rope", "gqa", "open_heads", "projected", "grouped", "pool_average", "stencil", "frozen", "cumulative_softmax", "differences", "trapezoid", "upwind"}


# Kernels in rows, and their dims: they compute the same with any of them bound, also to 1.
ROWS = {"open_heads": "s t n dh", "projected": "s d n dh", "grouped": "s t g r dh", "packed": "s n dh", "flat": "m k n", "flat_rows": "h w",
        "flat_update": "s n dh"}


def check_bound(tool, folder):
    """The number of failures with each dim bound alone, and with all but each."""
    failed, random = 0, np.random.default_rng(5)
    for name, dims in ROWS.items():
        path = Path(folder) / "one.tdsl"
        path.write_text("kernel " + next(k for k in PROGRAM.read_text().split("\nkernel ") if k.startswith(name + "(")).split("\n}")[0] + "\n}\n")
        dims = dims.split()
        for one in range(len(dims)):
            for bound in ([one], [d for d in range(len(dims)) if d != one]):
                extents = [int(random.choice((1, 2, 3, 5))) for _ in dims]
                more = [word for d in bound for word in ("-D", f"{dims[d]}={extents[d]}")]
                problem = check(tool, name, "c", extents, folder, path.name, more=more)
                if problem is not None:
                    failed += 1
                    print(f"FAILED {name} {extents} with {' '.join(more)}: {problem}")
    return failed


def parameters(name):
    head = PROGRAM.read_text().split(f"kernel {name}(")[1].split("{")[0]
    depth, found, word = 0, [], ""
    for c in head:
        depth += (c in "([") - (c in ")]")
        if depth < 0:
            break
        word = "" if c == "," and depth == 0 else word + c
        if c == ":" and depth == 0:
            found.append(word[:-1].strip())
    return found


def check(tool, name, target, extents, folder, program=PROGRAM, step=1e-13, more=()):
    of, shapes, *_ = CASES[name]
    random = np.random.default_rng(7)
    arrays = {p: random.integers(-3, 4, s).astype(float) for p, s in zip(parameters(name), shapes(*extents))}
    if name == "frozen":
        arrays["e"], arrays["f"] = -5.0 - arrays["e"], 5.0 + arrays["f"]
    if name in ("differences", "trapezoid", "upwind"):
        arrays["c" if name == "upwind" else "h"] = np.float64(0.5)
    # Its C names the program: without a folder, so that ccache knows it again.
    program = (Path(folder) / program).resolve()
    command = [Path(tool).resolve(), program.name, f"--kernel={name}", f"--target={target}", "-w", CFLAGS, *more]
    for p, array in arrays.items():
        if array.ndim == 0:
            command.append(f"{p}={array}")
            continue
        np.save(f"{folder}/{p}.npy", array)
        command.append(f"{p}={folder}/{p}.npy")
    wanted = of(**arrays)
    for r in wanted:
        command += ["-o", f"{r}={folder}/out_{r}.npy"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=program.parent)
    if done.returncode != 0:
        return f"status {done.returncode}\n{done.stderr}"
    for r, want in wanted.items():
        got, want = np.load(f"{folder}/out_{r}.npy"), np.asarray(want)
        if got.shape != want.shape:
            return f"{r}: shape {got.shape}, not {want.shape}"
        scale = np.abs(want).max() if want.size else 0
        bound = step * (1 + scale) * max(got.size, 16) if name in INEXACT else 0
        if not (np.abs(got - want) <= bound).all():
            return f"{r}: off by {np.abs(got - want).max()}"
    return None


def main():
    tool, only = sys.argv[1], set(sys.argv[2:])
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, case) in enumerate(CASES.items()):
            for target, extents in share((("interp", case[2]), ("interp", case[3]), ("c", case[2]), ("c", case[3])), 1, gate=3, first=number):
                if only and name not in only:
                    continue
                problem = check(tool, name, target, extents, folder)
                if problem is not None:
                    failed += 1
                    print(f"FAILED {name} {extents} by {target}: {problem}")
        failed += 0 if only else check_bound(tool, folder)
    print(f"{len(CASES)} kernels, {failed} failures")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
