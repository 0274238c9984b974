#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""f64 results of sums on a device that has f32: as two words, exactly where rows of terms are exact, else to the bound of
docs/trainium.md; programs with faults in the two words are found out; what is no sum is refused.

    double_word.py --bin FOLDER"""
import argparse
import contextlib
import math
import os
import re
import sys
import tempfile
from fractions import Fraction

import numpy as np

import harness
from harness import Failure, Refused, compile_for, emulated, generations, kernels_of

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "double_word.tdsl")
UNIT = 2.0 ** -24
BOUND = 896 * UNIT   # of the sum of absolute values: docs/trainium.md

# Extents: short, about the edges of blocks, long enough for several blocks and groups of them.
SIZES = {
    "total": [dict(n=1), dict(n=500), dict(n=513), dict(n=70001), dict(n=4400000)],
    "all": [dict(n=40, m=30), dict(n=700, m=1100)],
    "rows": [dict(n=5, m=9), dict(n=129, m=1500), dict(n=300, m=40000)],
    "columns": [dict(n=700, m=90), dict(n=3000, m=40)],
    "few": [dict(n=5, m=7), dict(n=130, m=600)],
    "dot": [dict(n=300), dict(n=70001)],
    "squares": [dict(n=5, m=60), dict(n=140, m=1500)],
    "product": [dict(n=40, m=30, k=50), dict(n=140, m=530, k=4500)],
    "chain": [dict(n=20, k=30, m=40, v=33)],
    "linear": [dict(n=90), dict(n=3000)],
    "plus": [dict(n=200, m=700)],
    "used": [dict(n=130, m=700)],
    "triangle": [dict(m=140)],
    "shifted": [dict(n=3000)],
    "little": [dict(n=0), dict(n=1)],
    "apart": [dict(n=1), dict(n=50)],
    "pairs": [dict(o=3, v=6, x=5), dict(o=4, v=130, x=9), dict(o=9, v=65, x=3)],
}


def most(kernel, sizes):
    """Whole numbers up to here: terms and rows of them are exact in f32, sums of all are not."""
    if kernel == "pairs":
        return 3
    if kernel in ("product", "chain", "dot", "squares", "linear", "shifted", "little"):
        return 40
    if kernel == "all":
        return 255
    return 8191


def wanted(kernel, a):
    """In whole numbers of any size."""
    a = [x.astype(np.int64) for x in a]
    a = [x.astype(object) if x.size < 10 ** 5 else x for x in a]
    f = {
        "total": lambda X: [X.sum()], "all": lambda X: [X.sum()], "rows": lambda X: [X.sum(1)],
        "columns": lambda X: [X.sum(0), X.max(1)], "few": lambda X: [X.sum((1, 2))], "dot": lambda X, Y: [(X * Y).sum()],
        "squares": lambda X: [(X * X).sum(1)], "product": lambda X, Y: [X.astype(np.int64) @ Y.astype(np.int64)],
        "chain": lambda X, Y, Z: [X.dot(Y).dot(Z)],
        "linear": lambda X, Y, c: [c.item() * X.sum() - Fraction(3, 2) * (X * Y).sum() + 7, -1000003 * Y.sum() - Fraction(X.sum(), 2)],
        "plus": lambda X, Y: [X.sum() + Y.sum()], "used": lambda X: [X.sum(1), None],
        "triangle": lambda X: [sum(X[i, j] for i in range(len(X)) for j in range(i + 1)),
                               np.array([X[i, :i].sum() for i in range(len(X))])],
        "little": lambda X: [0, X * X[:len(X) - 90].sum(), X[:len(X) - 90].sum() - X.sum()],
        "apart": lambda X: [X.sum(2)],
        "shifted": lambda X: [(X[:-2] * X[2:] - 2 * X[1:-1]).sum()],
    }
    if kernel == "pairs":
        B, eo, ev = (x.astype(np.int64) for x in a)
        T = np.einsum("iap,jbp->iajb", B, B)
        D = eo[:, None, None, None] + eo[None, None, :, None] - ev[None, :, None, None] - ev
        return [(T * (2 * T - T.transpose(0, 3, 2, 1)) - D).sum()]
    return f[kernel](*a)


def data(kernel, sizes, rng):
    """More is added than subtracted, so that sums grow beyond f32."""
    top = most(kernel.name, sizes)
    arrays = []
    for p in kernel.params:
        shape = [eval(d, {}, sizes) for d in p.dims]  # noqa: S307 (extents of our own file)
        arrays.append(rng.integers(-top // 4, top + 1, shape).astype(np.float64))
    return arrays


def manifest_of(bin_, target, folder, kernel, sizes, *more):
    words = [SOURCE, f"--kernel={kernel}", *(f"-D{d}={n}" for d, n in sizes.items()), *more]
    return compile_for(bin_, target, os.path.join(folder, f"{kernel}_{target}_{len(os.listdir(folder))}"), words)[kernel]


def check_exact(bin_, kernel, sizes, target, *more):
    arrays = data(kernel, sizes, np.random.default_rng(3))
    with tempfile.TemporaryDirectory() as folder:
        manifest = manifest_of(bin_, target, folder, kernel.name, sizes, *more)
        given = [x.reshape(1, 1) if x.ndim == 0 else x for x in arrays]
        got, result = emulated(manifest, given, target)
        if not manifest.parts:
            harness.check_prediction(manifest, result)
    large = 0
    for name, x, y in zip([r.name for r in kernel.results], got, wanted(kernel.name, arrays)):
        if y is None:
            continue
        y = np.vectorize(float, otypes=[np.float64])(y)
        large += (np.abs(y) > 2 ** 24).sum() + (y != y.astype(np.float32)).sum()
        if not np.array_equal(np.asarray(x).reshape(y.shape), y):
            at = np.argmax(np.abs(np.asarray(x).reshape(y.shape) - y))
            raise Failure(f"{kernel.name} {sizes} {target}: {name} is {np.ravel(x)[at]!r}, not {np.ravel(y)[at]!r}")
    return large, len(manifest.parts or [0])


def exact(bin_):
    with open(SOURCE, encoding="utf-8") as f:
        kernels = kernels_of(f.read())
    beyond = 0
    for number, kernel in enumerate(kernels):
        for at, sizes in enumerate(SIZES[kernel.name]):
            for target in generations(number + at):
                beyond += check_exact(bin_, kernel, sizes, target)[0]
    if beyond < 400:
        raise Failure(f"only {beyond} sums that f32 cannot hold")
    for kernel in kernels:                     # by the interpreter, pass by pass
        sizes = [f"-D{d}={n}" for d, n in SIZES[kernel.name][0].items()]
        with tempfile.TemporaryDirectory() as folder:
            compile_for(bin_, "trn2", os.path.join(folder, "out"), [SOURCE, f"--kernel={kernel.name}", "--check-each", *sizes])
    programs = 0
    for kernel, sizes, limit in (("pairs", dict(o=16, v=128, x=3), 400), ("rows", dict(n=300, m=3000), 60),
                                 ("product", dict(n=300, m=1100, k=700), 150)):
        kernel = next(k for k in kernels if k.name == kernel)
        try:
            programs += check_exact(bin_, kernel, sizes, "trn2", f"--max-instructions={limit}")[1] - 1
        except Refused as error:
            raise Failure(f"{kernel.name} in programs of {limit} instructions: {error}") from None
    if programs < 6:
        raise Failure(f"only {programs} cuts between programs")
    print(f"double words: {sum(map(len, SIZES.values()))} kernels exact, {beyond} sums beyond f32, {programs} cuts between programs")


def compiled(bin_, folder, text, name, *words):
    path = os.path.join(folder, "k.tdsl")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return compile_for(bin_, "trn2", os.path.join(folder, f"out{len(os.listdir(folder))}"), [path, f"--kernel={name}", *words])[name]


def bounded(bin_):
    """Sums that cancel, and random ones: within the bound, and far below what f32 makes of them."""
    rng = np.random.default_rng(11)
    text = "dim n;\nkernel t(X: f32[n]) -> (E: %s) { E = sum[i](X[i]); }\n"
    worst = 0
    for n, spread in ((3000, 1), (100003, 1), (100003, 1e7), (1000000, 1e7)):
        x = (spread * (1 + rng.random(n))).astype(np.float32)
        if spread > 1:                                  # 10^7-like numbers that cancel to one
            x[n // 2:2 * (n // 2)] = -rng.permutation(x[:n // 2])
            x[-1] = 1.25
        true, scale = math.fsum(map(float, x)), float(np.abs(x).astype(np.float64).sum())
        with tempfile.TemporaryDirectory() as folder:
            error = {t: abs(float(emulated(compiled(bin_, folder, text % t, "t", f"-Dn={n}"), [x], "trn2")[0][0].item()) - true)
                     for t in ("f64", "f32")}
        plain = abs(float(np.cumsum(x, dtype=np.float32)[-1]) - true)
        if error["f64"] > BOUND * scale:
            raise Failure(f"n={n} spread={spread}: off by {error['f64']}, the bound is {BOUND * scale}")
        if error["f64"] > UNIT / 2 * scale:
            raise Failure(f"n={n} spread={spread}: off by {error['f64'] / scale / UNIT:.3} units, which are f32's")
        if plain < 20 * error["f64"]:
            raise Failure(f"n={n} spread={spread}: f32 one after the other is off by {plain}, as good: the case says nothing")
        worst = max(worst, error["f64"] / scale / UNIT)
        print(f"  {n} terms about {spread:g}: off by {error['f64']:.3g}; as f32 result {error['f32']:.3g}; f32 one by one {plain:.3g}")
    x = rng.integers(-50, 200, 4000).astype(float)
    for factor in ("0.3", "1e-7", "s"):                     # times a number: as good as f64 nearly
        s = np.float32(0.7)
        text = f"kernel t(X: f32[4000], s: f32) -> (E: f64) {{ E = {factor} * sum[i](X[i] * X[i]) + 0 * s; }}\n"
        with tempfile.TemporaryDirectory() as folder:
            got = float(emulated(compiled(bin_, folder, text, "t"), [x, np.array([[s]])], "trn2")[0][0].item())
        true = (float(s) if factor == "s" else float(factor)) * float((x * x).sum())
        if abs(got - true) > 1e-12 * true:
            raise Failure(f"{factor} times a sum is {got!r}, not {true!r}")
    print(f"double words: at most {worst:.3g} units of 2^-24 of the sum of absolute values (bound 896)")


def readme(bin_):
    """The program of the README as it stands."""
    with open(os.path.join(harness.ROOT, "README.md"), encoding="utf-8") as f:
        text = f.read()
    program = text[text.index("    dim o ~"):]
    program = re.sub("^    ", "", program[:program.index("\n    }") + 6], flags=re.M) + "\n"
    o, v, x = 4, 24, 40
    rng = np.random.default_rng(4)
    B = rng.normal(size=(o, v, x)).astype(np.float32).astype(float)
    eo, ev = -1 - rng.random(o).astype(np.float32).astype(float), 1 + rng.random(v).astype(np.float32).astype(float)
    T = np.einsum("iap,jbp->iajb", B, B)
    terms = T * (2 * T - T.transpose(0, 3, 2, 1)) / (eo[:, None, None, None] + eo[None, None, :, None] - ev[None, :, None, None] - ev)
    sizes = [f"-Do={o}", f"-Dv={v}", f"-Dx={x}"]
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.suppress(Refused):
            compiled(bin_, folder, program, "mp2_energy", *sizes)
            raise Failure("the README's program has f64 arguments, and is not refused without --f64")
        manifest = compiled(bin_, folder, program, "mp2_energy", "--f64=sums", *sizes)
        got = float(emulated(manifest, [B, eo, ev], "trn2")[0][0].item())
        if manifest.outputs[0].whole != () or not manifest.outputs[0].words:
            raise Failure("E is no f64")
    if abs(got - terms.sum()) > 2e-7 * np.abs(terms).sum():
        raise Failure(f"the README's energy is {got}, not {terms.sum()}")
    print(f"double words: the README's program, {got:.9f} and {terms.sum():.9f}")


# Programs in f64 whose results read results, with --f64=sums: body, results, what they are.
READS = [
    ("F = sum[i,j](x[i,j] * x[i,j]); E = sum[i](x[i,i] * F);", "F: f64, E: f64", lambda x: [(x * x).sum(), np.trace(x) * (x * x).sum()]),
    ("F[i] = sum[j](x[i,j]); G[i] = sum[j](x[i,j] * x[i,j]) - F[i]; H[i] = x[i,0] - F[i];", "F: f64[n], G: f64[n], H: f64[n]",
     lambda x: [x.sum(1), (x * x).sum(1) - x.sum(1), x[:, 0] - x.sum(1)]),
    ("F[i] = sum[j](x[i,j]); T[i] = F[i] * x[i,i]; S: f64[i] = F[i] * 2; G = sum[i](T[i]); H[i] = sum[j](x[i,j] * S[j]);",
     "F: f64[n], G: f64, H: f64[n]", lambda x: [x.sum(1), (x.sum(1) * np.diag(x)).sum(), 2 * (x @ x.sum(1))]),
    ('F[i] = sum[j](x[i,j]); G = einsum("i,ij->", F, x); M = max[i](F[i]); H = sum[i](select(F[i] < M, x[i,0], F[i]));',
     "F: f64[n], G: f64, H: f64", lambda x: [x.sum(1), x.sum(1) @ x.sum(1), np.where(x.sum(1) < x.sum(1).max(), x[:, 0], x.sum(1)).sum()]),
    ("F = sum[i,j](x[i,j]); E = F * F - 3 * F * sum[i](x[i,i]);", "F: f64, E: f64", lambda x: [x.sum(), x.sum() ** 2 - 3 * x.sum() * np.trace(x)]),
]


def reads(bin_):
    for body, results, wanted_of in READS:
        for n, most_ in ((5, 9), (150, 3)):
            x = np.random.default_rng(n).integers(-most_, most_ + 2, (n, n)).astype(float)
            with tempfile.TemporaryDirectory() as folder:
                manifest = compiled(bin_, folder, f"kernel k(x: f64[n, n]) -> ({results}) {{ {body} }}\n", "k", "--f64=sums", f"-Dn={n}")
                got = emulated(manifest, [x], "trn2")[0]
            for g, want in zip(got, wanted_of(x), strict=True):
                if not np.array_equal(np.asarray(g).reshape(np.shape(want)), want):
                    raise Failure(f"{body} of {n}: {np.ravel(g)[:4]}, not {np.ravel(want)[:4]}")
    print(f"double words: {len(READS)} programs read their results")


# Faults in a program that adds up double words in a loop: (what, pattern, what instead).
FAULTS = [
    ("the second word is dropped", r"nisa\.\w+\(dst=e_tile\[0:1, 1:2\].*\)", "nisa.memset(dst=e_tile[0:1, 1:2], value=0.0)"),
    ("the first word is stored twice", r"(nisa\.\w+\(dst=e_tile\[0:1, 1:2\].*(?:data|src)=)\w+\)", r"\g<1>E_hi)"),
    ("the double word begins in each iteration", r"(\n +)(s\d* = nl\.ndarray)",
     r"\1nisa.memset(dst=sums_hi, value=0.0)\1nisa.memset(dst=sums_lo, value=0.0)\1\2"),
    ("the error is subtracted", r"(nisa\.tensor_tensor\(dst=sums_lo, .*op=nl\.)add", r"\1subtract"),
    ("the error is lost", r"        nisa\.tensor_tensor\(dst=sums_lo, .*\n", ""),
    ("the sum is not kept", r"        nisa\.tensor_tensor\(dst=sums_hi, .*\n", ""),
]


def faults(bin_):
    """Each planted fault changes the result; without one it is exact."""
    o, v, x = 16, 128, 3
    rng = np.random.default_rng(3)
    B = rng.integers(7, 10, (o, v, x)).astype(float)            # rows are below 2^24, four of them are not
    eo, ev = rng.integers(-3, 9, o).astype(float), rng.integers(-3, 9, v).astype(float)
    true = float(wanted("pairs", [B, eo, ev])[0])
    with tempfile.TemporaryDirectory() as folder:
        manifest = manifest_of(bin_, "trn2", folder, "pairs", dict(o=o, v=v, x=x))
        with open(manifest.file, encoding="utf-8") as f:
            text = f.read()
        manifest.counts = {}

        def run(program):
            with open(manifest.file, "w", encoding="utf-8") as f:
                f.write(program)
            return float(emulated(manifest, [B, eo, ev], "trn2")[0][0].item())
        if run(text) != true:
            raise Failure(f"{run(text)} and not {true}, without a fault")
        for what, pattern, instead in FAULTS:
            broken, n = re.subn(pattern, instead, text)
            if n == 0:
                raise Failure(f"no place in the text for the fault: {what}\n{text}")
            got = None
            with contextlib.suppress(Failure):
                got = run(broken)
            if got == true:
                raise Failure(f"not found: {what}")
    print(f"double words: {len(FAULTS)} planted faults found")


REFUSED = [
    ("kernel k(X: f32[9]) -> (E: f64[9]) { E[i] = X[i]; }", "it is no sum"),
    ("kernel k(X: f32[9]) -> (E: f64) { E = prod[i](X[i]); }", "it is no sum"),
    ("kernel k(X: f32[9]) -> (E: f64) { E = max[i](X[i]); }", "it is no sum"),
    ("kernel k(X: f32[9]) -> (E: f64) { E = sum[i](exp(f64(X[i]))); }", "terms of a sum are computed in f32"),
    ("kernel k(X: f32[9]) -> (E: f64) { E = sum[i](X[i]) / sum[i](X[i]); }", "it is computed in f64"),
    ("kernel k(X: f32[9]) -> (E: f64) { E = sqrt(f64(sum[i](X[i]))); }", "computed in f64"),
    ("kernel k(X: c64[9]) -> (E: c128) { E = sum[i](X[i]); }", "does not have c128"),
    ("kernel k(X: f64[9]) -> (E: f64) { E = sum[i](X[i]); }", "--f64=sums all but f64 results"),
    ("kernel k(X: f32[9], E: inout f64) { E += sum[i](X[i]); }", "does not have f64 (of 'E')"),
]


def refused(bin_):
    for text, why in REFUSED:
        with tempfile.TemporaryDirectory() as folder:
            try:
                compiled(bin_, folder, text + "\n", "k")
            except Refused as error:
                if why not in error.text or "--f64=f32" not in error.text:
                    raise Failure(f"{text}: {error.text}") from None
                continue
            raise Failure(f"{text}: compiles")
    print(f"double words: {len(REFUSED)} kernels refused with the reason")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--bin", required=True)
    a = p.parse_args()
    failed = 0
    for part in harness.share((exact, bounded, readme, reads, faults, refused), 2, first=1):
        try:
            part(a.bin)
        except Failure as error:
            failed += 1
            print(f"FAILED {part.__name__}: {error}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
