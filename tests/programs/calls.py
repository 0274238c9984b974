#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels in kernels.

Every kernel of this folder's programs is called by another one whose operands have one more index, b: slice b of each result is what the
kernel gives for slice b of its operands, to the bit by the interpreter. Operands take turns in lacking b. And the kernels of the libraries,
called with batch indices, give what NumPy does, by the interpreter and as C.

usage: calls.py TDSLC TDSL-RUN
"""
import itertools
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from quick import CFLAGS, share  # noqa: E402

HERE = pathlib.Path(__file__).parent
TYPES = {"f64": np.float64, "f32": np.float32, "i64": np.int64, "i32": np.int32, "bool": np.bool_, "c128": np.complex128, "c64": np.complex64}
DIMS = dict(zip("nmktpqrsxyzwhdeoviabcjlgu", [4, 3, 5, 2, 3, 2, 3, 2, 4, 3, 2, 2, 4, 3, 2, 3, 4, 3, 2, 3, 4, 2, 3, 2, 3]))


def run(tool, program, kernel, arrays, results, folder, target, dims=()):
    for name, array in arrays.items():
        np.save(f"{folder}/in_{name}.npy", array)
    words = [w for r in results for w in ("-o", f"{r}={folder}/out_{r}.npy")]
    done = subprocess.run([pathlib.Path(tool).resolve(), program.name, f"--kernel={kernel}", "-w", CFLAGS, f"--target={target}", *dims, *[f"{a}={folder}/in_{a}.npy" for a in arrays], *words],
                          capture_output=True, text=True, timeout=120, cwd=program.parent)
    assert done.returncode == 0, (kernel, target, done.stderr)
    return {r: np.load(f"{folder}/out_{r}.npy") for r in results}


def parts(text):
    """`A: f64[n, m] symmetric(0, 1), ...`: name, type, extents."""
    return [(name, kind, [e.strip() for e in extents.split(",")] if extents else [])
            for name, kind, extents in re.findall(r"(\w+): (?:inout )?(\w+)(?:\[([^\]]*)\])?", text)]


def heads(tdslc, program):
    text = subprocess.run([tdslc, program, "--dump=ast"], capture_output=True, text=True, check=True).stdout
    for name, params, results in re.findall(r"^kernel (\w+)\((.*)\) -> \((.*)\) \{$", text, re.M):
        if "inout" not in params and "symmetric" not in params and "shard" not in params:
            yield name, parts(params), parts(results)


def extent(e, names):
    return eval(e, {}, names)  # noqa: S307: of our own programs


def definite(x, extents, least=3):
    """Symmetric in dimensions of one name, with n + `least` on the diagonal: such a matrix has a cholesky, and a triangle of it is no near-singular one."""
    for a, b in itertools.combinations(range(x.ndim), 2):
        if extents[a] == extents[b]:
            x = (x + x.swapaxes(a, b)) / 2 + ((least + x.shape[a]) * np.eye(x.shape[a])).reshape([n if d in (a, b) else 1 for d, n in enumerate(x.shape)]).astype(x.dtype)
    return x


def wrapper(name, params, results, bare):
    """The caller: operand `bare` has no batch index."""
    named, operands, used = [], [], {}
    for number, (p, kind, extents) in enumerate(params):
        index, seen = [], {}
        for d, e in enumerate(extents):
            word = f"d{number}_{d}" if not re.fullmatch(r"[A-Za-z]\w*", e) else f"{e}_{seen.setdefault(e, 0)}"
            if re.fullmatch(r"[A-Za-z]\w*", e):
                seen[e] += 1
            index.append(word)
            if word not in named:
                named.append(word)
        indices = ["batch"] * (number != bare) + index
        operands.append(p + (f"[{','.join(indices)}]" if indices else ""))
    lefts, heads_of_results = [], []
    for r, kind, extents in results:
        seen, index = {}, []
        for d, e in enumerate(extents):
            plain = re.fullmatch(r"[A-Za-z]\w*", e)
            free = [w for w in named if re.match(r"[dr]\d", w) and w not in index]  # what no name of a dim stands for goes in turn
            word = f"{e}_{seen.setdefault(e, 0)}" if plain else free[0] if free else f"r{len(named)}_{d}"
            seen[e] = seen.get(e, 0) + 1
            if word not in named:
                named.append(word)
            index.append(word)
        lefts.append(f"{r}[{','.join(['batch < 2'] + index)}]")
        heads_of_results.append(f"{r}: {kind}[{', '.join(['2'] + extents)}]")
    head = ", ".join(f"{p}: {kind}" + (f"[{', '.join(['2'] * (k != bare) + extents)}]" if extents or k != bare else "")
                     for k, (p, kind, extents) in enumerate(params))
    left = lefts[0] if len(lefts) == 1 else f"({', '.join(lefts)})"
    brackets = f"[{','.join(named)}]" if named else ""
    return f"kernel outer({head}) -> ({', '.join(heads_of_results)}) {{\n    {left} = {name}{brackets}({', '.join(operands)});\n}}\n"


def every_kernel_with_one_more_index(tdslc, tool, folder):
    count = 0
    random = np.random.default_rng(5)
    for path in sorted(HERE.glob("*.tdsl")):
        for k, (name, params, results) in share(enumerate(heads(tdslc, path)), 1, gate=3):
            names = {d: DIMS.get(d[0].lower(), 3) for _, _, extents in params + results for e in extents for d in re.findall(r"[A-Za-z]\w*", e)}
            if any(kind not in TYPES for _, kind, _ in params + results) or len(params) < 2:
                continue
            given = {d for _, _, extents in params for d in extents if re.fullmatch(r"[A-Za-z]\w*", d)}
            if any(set(re.findall(r"[A-Za-z]\w*", e)) - given for _, _, extents in params + results for e in extents):
                continue  # a dim that no operand gives: the call would be refused
            bare = k % len(params)
            arrays = {}
            for number, (p, kind, extents) in enumerate(params):
                shape = [2] * (number != bare) + [extent(e, names) for e in extents]
                integer = kind.startswith("i")
                arrays[p] = random.integers(0 if integer else -4, 2 if integer else 5, shape).astype(TYPES[kind])
                if path.name == "dense.tdsl":
                    arrays[p] = definite(arrays[p], [None] * (number != bare) + extents, 9) if p != "F" else arrays[p] / 8
            source = folder / "outer.tdsl"
            source.write_text(f'include "{path.name}";\n' + wrapper(name, params, results, bare))
            (folder / path.name).write_text(path.read_text())
            dims = [f"-D{d}={n}" for d, n in names.items()]
            whole = run(tool, source, "outer", arrays, [r for r, _, _ in results], folder, "interp", dims)
            for b in range(2):
                one = {p: a if number == bare else a[b] for number, (p, a) in enumerate(arrays.items())}
                alone = run(tool, path, name, one, [r for r, _, _ in results], folder, "interp", dims)
                for r, value in alone.items():
                    assert np.array_equal(whole[r][b], value, equal_nan=True), (path.name, name, r, source.read_text(), whole[r][b], value)
            count += 1
    assert count > 10, count


# ---- libraries ----

def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(Q, K, V, allowed=None):
    S = np.einsum("...qd,...kd->...qk", Q, K) / np.sqrt(Q.shape[-1])
    S = S if allowed is None else np.where(allowed, S, -np.inf)
    return np.einsum("...qk,...ke->...qe", softmax(S), V)


def networks(f):
    random = np.random.default_rng(3)
    x, g, c = (random.standard_normal(s).astype(f) for s in ((2, 3, 8), (8,), (8,)))
    Q, K, V = (random.standard_normal(s).astype(f) for s in ((2, 3, 5, 4), (2, 3, 5, 4), (2, 3, 5, 6)))
    filled, t = np.array([1, 5], np.int64), random.integers(0, 8, (2, 3))
    image, filters = random.standard_normal((2, 3, 7, 6)).astype(f), random.standard_normal((4, 3, 3, 2)).astype(f)
    cosine, sine = np.cos(random.random((3, 4))).astype(f), np.sin(random.random((3, 4))).astype(f)
    i, j = np.arange(5)[:, None], np.arange(5)[None]
    erf = np.vectorize(__import__("math").erf)
    wide = x.astype(np.float64)
    centred = wide - wide.mean(-1, keepdims=True)
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 2), axis=(2, 3))
    return {"x": x, "g": g, "c": c, "Q": Q, "K": K, "V": V, "filled": filled, "t": t, "image": image, "filters": filters, "cosine": cosine, "sine": sine}, {
        "p": softmax(wide), "lp": np.log(softmax(wide)), "ln": centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + 1e-5) * g + c,
        "rms": wide / np.sqrt((wide ** 2).mean(-1, keepdims=True) + 1e-5) * g, "xe": -np.log(np.take_along_axis(softmax(wide), t[..., None], -1))[..., 0],
        "ge": 0.5 * wide * (1 + erf(wide / np.sqrt(2))), "si": wide / (1 + np.exp(-wide)), "sp": np.logaddexp(0, wide),
        "at": attention(Q, K, V), "ca": attention(Q, K, V, j <= i), "wa": attention(Q, K, V, (j <= i) & (j > i - 2)),
        "co": attention(Q[:, :, :1], K, V, np.arange(5) < filled[:, None, None, None])[:, :, 0],
        "ro": np.concatenate([x[..., :4] * cosine - x[..., 4:] * sine, x[..., 4:] * cosine + x[..., :4] * sine], -1),
        "cv": np.einsum("bchwpq,ocpq->bohw", windows, filters)}


NETWORKS = """include <nn.tdsl>;
kernel layers(x: T[b, s, 8], g: T[8], c: T[8], t: i64[b, s], cosine: T[s, 4], sine: T[s, 4])
    -> (p: T[b, s, 8], lp: T[b, s, 8], ln: T[b, s, 8], rms: T[b, s, 8], xe: T[b, s], ge: T[b, s, 8], si: T[b, s, 8], sp: T[b, s, 8], ro: T[b, s, 8]) {
    p[b,s,k] = softmax[k](x[b,s,k]);
    lp[b,s,k] = log_softmax[k](x[b,s,k]);
    ln[b,s,k] = layernorm[k](x[b,s,k], g[k], c[k], 1e-5);
    rms[b,s,k] = rmsnorm[k](x[b,s,k], g[k], 1e-5);
    xe[b,s] = cross_entropy[k](x[b,s,k], t[b,s]);
    ge = gelu(x);
    si[b,s,k] = silu(x[b,s,k]);
    sp = softplus(x);
    ro[b,s,i] = rope[i,m](x[b,s,i], cosine[s,m], sine[s,m]);
}
kernel heads(Q: T[b, h, q, d], K: T[b, h, q, d], V: T[b, h, q, e], filled: i64[b])
    -> (at: T[b, h, q, e], ca: T[b, h, q, e], wa: T[b, h, q, e], co: T[b, h, e]) {
    at[b,h,q,e] = attention[q,k,d,e](Q[b,h,q,d], K[b,h,k,d], V[b,h,k,e]);
    ca[b,h,q,e] = causal_attention[q,k,d,e](Q[b,h,q,d], K[b,h,k,d], V[b,h,k,e]);
    wa[b,h,q,e] = window_attention[q,k,d,e](Q[b,h,q,d], K[b,h,k,d], V[b,h,k,e], 2);
    co[b,h,e] = cached_attention[k,d,e](Q[b,h,0,d], K[b,h,k,d], V[b,h,k,e], filled[b]);
}
kernel convolution(image: T[b, c, h, w], filters: T[o, c, p, q]) -> (cv: T[b, o, h - p + 1, w - q + 1]) {
    cv[b,o,i,j] = conv2d[c,h,w,o,p,q,i,j](image[b,c,h,w], filters[o,c,p,q]);
}
"""

CHEMISTRY = """include <chem.tdsl>;
kernel field(h: f64[n, n], G: f64[n, n, n, n], C: f64[n, 3], B: f64[n, n, x]) -> (D: f64[n, n], F: f64[n, n], E: f64, J: f64[n, n], K: f64[n, n]) {
    D = density(C);
    F = fock(h, G, D);
    E = hf_energy(h, F, D);
    J = df_coulomb(B, D);
    K = df_exchange(B, C);
}
kernel pairs(G: f64[n, n, n, n], C: f64[n, 3], U: f64[n, v], e: f64[3], u: f64[v], B: f64[3, v, x])
    -> (M: f64[3, v, 3, v], E: f64, S: f64, Z: f64) {
    M[i,a,j,b] = ao_to_mo[p,q,r,s,i,a,j,b](G[p,q,r,s], C[p,i], U[q,a], C[r,j], U[s,b]);
    E = mp2(M, e, u);
    S = scs_mp2(M, e, u);
    Z = df_mp2(B, e, u);
}
kernel doubles(t: f64[o, o, v, v], W: f64[v, v, v, v], X: f64[o, v, o, v]) -> (L: f64[o, o, v, v], R: f64[o, o, v, v], E: f64) {
    L = ladder(t, W);
    R = ring(t, X);
    E = ccd_energy(t, X);
}
"""


LINEAR = """include <linalg.tdsl>;
kernel systems(S: f64[b, n, n], B: f64[b, n, r], A: f64[m, n], C: f64[m, r], x: f64[b, n])
    -> (X: f64[b, n, r], Y: f64[n, r], Q: f64[m, n], R: f64[n, n], l: f64[b]) {
    X[b,i,r] = solve_spd[i,j,r](S[b,i,j], B[b,i,r]);
    Y = lstsq(A, C);
    (Q, R) = qr2(A);
    l[b] = normal_log[i,j](S[b,i,j], x[b,i]);
}
"""


def linear():
    random = np.random.default_rng(5)
    V, B, A, C, x = (random.random(s) - 0.5 for s in ((3, 5, 5), (3, 5, 2), (9, 5), (9, 2), (3, 5)))
    S = V @ V.swapaxes(1, 2) + np.eye(5)
    Q, R = np.linalg.qr(A)
    sign = np.sign(np.diag(R))
    density = [-0.5 * x[i] @ np.linalg.solve(S[i], x[i]) - 0.5 * np.linalg.slogdet(2 * np.pi * S[i])[1] for i in range(3)]
    return {"systems": ({"S": S, "B": B, "A": A, "C": C, "x": x}, {
        "X": np.linalg.solve(S, B), "Y": np.linalg.lstsq(A, C, rcond=None)[0], "Q": Q * sign, "R": R * sign[:, None], "l": np.array(density)})}


def mp2_energies(M, e, u):
    d = e[:, None, None, None] + e[None, None, :, None] - u[None, :, None, None] - u
    x = M.transpose(0, 3, 2, 1)
    return (M * (2 * M - x) / d).sum(), 1.2 * (M * M / d).sum() + (M * (M - x) / d).sum() / 3


def chemistry():
    random = np.random.default_rng(4)
    h, G, C, B, U, t, W, X, b = (random.integers(-3, 4, s).astype(float) for s in (
        (4, 4), (4, 4, 4, 4), (4, 3), (4, 4, 5), (4, 2), (3, 3, 2, 2), (2, 2, 2, 2), (3, 2, 3, 2), (3, 2, 5)))
    e, u = -1.0 - np.arange(3.0), 1.0 + np.arange(2.0)
    D = 2 * C @ C.T
    J = np.einsum("pqrs,rs", G, D)
    F = h + J - 0.5 * np.einsum("prqs,rs", G, D)
    T = np.einsum("pqx,qi->ipx", B, C)
    M = np.einsum("pqrs,pi,qa,rj,sb->iajb", G, C, U, C, U)
    E, S = mp2_energies(M, e, u)
    return {"field": ({"h": h, "G": G, "C": C, "B": B}, {
        "D": D, "F": F, "E": 0.5 * (D * (h + F)).sum(), "J": np.einsum("pqx,rsx,rs->pq", B, B, D), "K": np.einsum("ipx,iqx->pq", T, T)}),
        "pairs": ({"G": G, "C": C, "U": U, "e": e, "u": u, "B": b}, {
            "M": M, "E": E, "S": S, "Z": mp2_energies(np.einsum("iax,jbx->iajb", b, b), e, u)[0]}),
        "doubles": ({"t": t, "W": W, "X": X}, {
            "L": np.einsum("ijcd,acbd->ijab", t, W), "R": np.einsum("kjcb,kcia->ijab", t, X), "E": (t * (2 * X.transpose(0, 2, 1, 3) - X.transpose(0, 2, 3, 1))).sum()})}


def compare(tool, program, kernel, arrays, wanted, folder, bound):
    for target in ("interp", "c"):
        got = run(tool, program, kernel, arrays, wanted, folder, target)
        for r, value in wanted.items():
            scale = max(1.0, np.abs(value).max())
            assert got[r].shape == np.shape(value) and np.abs(got[r] - value).max() <= bound * scale, (kernel, target, r, got[r], value)


def libraries(tool, folder):
    for word, f, bound in (("f64", np.float64, 1e-13), ("f32", np.float32, 3e-6)):
        program = folder / "networks.tdsl"
        program.write_text(NETWORKS.replace(": T[", f": {word}["))
        arrays, wanted = networks(f)
        for kernel, params, results in (("layers", "x g c t cosine sine", "p lp ln rms xe ge si sp ro"), ("heads", "Q K V filled", "at ca wa co"),
                                        ("convolution", "image filters", "cv")):
            compare(tool, program, kernel, {p: arrays[p] for p in params.split()}, {r: wanted[r] for r in results.split()}, folder, bound)
    program = folder / "chemistry.tdsl"
    program.write_text(CHEMISTRY)
    for kernel, (arrays, wanted) in chemistry().items():
        compare(tool, program, kernel, arrays, wanted, folder, 1e-13)
    program = folder / "linear.tdsl"
    program.write_text(LINEAR)
    for kernel, (arrays, wanted) in linear().items():
        compare(tool, program, kernel, arrays, wanted, folder, 1e-11)


def main():
    tdslc, tool = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        libraries(tool, folder)
        every_kernel_with_one_more_index(tdslc, tool, folder)
    print("kernels that are called give what they give alone")


if __name__ == "__main__":
    main()
