#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our kernels beside NumPy and, where it is installed, opt_einsum, over sizes, on one core: a table, and a picture (SVG, by hand).

    sizes.py [--largest 1024] [-o sizes.svg]"""
import argparse
import math
import os
import pathlib
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
import numpy as np  # noqa: E402
import tdsl  # noqa: E402

try:
    import opt_einsum
except ImportError:
    opt_einsum = None
MP2 = pathlib.Path(__file__).parents[1] / "mp2" / "mp2.tdsl"
COLOURS = {"tdsl": "#c0392b", "numpy": "#2c6fbb", "opt_einsum": "#3a8f3a"}


def mp2_by(einsum):
    """The pair energies as one writes them with an einsum: T and D are in memory as a whole."""
    def energy(B, eo, ev):
        T = einsum("iaP,jbP->iajb", B, B)
        D = eo[:, None, None, None] + eo[:, None] - ev[:, None, None] - ev
        return (T * (2 * T - T.transpose(0, 3, 2, 1)) / D).sum()
    return energy


def cases(largest):
    """(title, [(n, multiply-adds, {name: function}, arrays)])."""
    rng = np.random.default_rng(1)
    by = {"numpy": lambda *a: np.einsum(*a, optimize=True)}
    if opt_einsum:
        by["opt_einsum"] = opt_einsum.contract
    sizes = [2 ** k for k in range(2, 11) if 2 ** k <= largest]

    def einsum(text):
        return {"tdsl": lambda *a: tdsl.einsum(text, *a), **{name: lambda *a, f=f: f(text, *a) for name, f in by.items()}}

    def product(n):
        return n, n ** 3, einsum("ij,jk->ik"), [rng.random((n, n)) for _ in "AB"]

    def mttkrp(n):
        return n, n ** 3 * 16, einsum("ijk,jr,kr->ir"), [rng.random((n, n, n)), rng.random((n, 16)), rng.random((n, 16))]

    def mp2(v):
        o = max(2, v // 4)
        fused = tdsl.load(MP2).mp2_energy
        return v, o * o * v * v * 3 * v, {"tdsl": fused, **{name: mp2_by(f) for name, f in by.items()}}, \
            [rng.random((o, v, 3 * v)), -rng.random(o) - 1, rng.random(v)]
    yield "matrix product ij,jk->ik", map(product, sizes)
    yield "CP step ijk,jr,kr->ir, r = 16", map(mttkrp, [n for n in sizes if n <= 256])
    yield "MP2 energy, o = v/4, x = 3v", map(mp2, [n for n in sizes if n <= 128])


def seconds(f, arrays):
    """The least of some runs, of which each takes a while."""
    f(*arrays)
    best, spent, repeat = math.inf, 0.0, 1
    while spent < 0.1:
        start = time.perf_counter()
        for _ in range(repeat):
            f(*arrays)
        took = time.perf_counter() - start
        best, spent = min(best, took / repeat), spent + took
        repeat = repeat if took > 0.005 else repeat * 4
    return best


def chart(title, curves, left):
    """One panel of the picture: multiply-adds per second over n, both axes logarithmic."""
    xs = [n for points in curves.values() for n, _ in points]
    ys = [y for points in curves.values() for _, y in points]
    low, high = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)))
    at = lambda n, y: (left + 50 + 220 * math.log(n / min(xs)) / max(1, math.log(max(xs) / min(xs))),
                       250 - 200 * (math.log10(y) - low) / max(1, high - low))
    text = lambda x, y, s, more="": f'<text x="{x:.0f}" y="{y:.0f}" {more}>{s.replace(">", "&gt;")}</text>'
    parts = [text(left + 50, 24, title, 'font-weight="bold"')]
    for e in range(low, high + 1):
        y = at(min(xs), 10 ** e)[1]
        parts += [f'<path d="M{left + 50} {y:.0f}h220" stroke="#ddd"/>', text(left + 44, y + 4, f"{10.0 ** (e - 9):g}", 'text-anchor="end"')]
    for n in sorted(set(xs)):
        parts.append(text(at(n, ys[0])[0], 268, str(n), 'text-anchor="middle"'))
    for k, (name, points) in enumerate(curves.items()):
        places = [at(n, y) for n, y in points]
        parts.append(f'<polyline fill="none" stroke="{COLOURS[name]}" stroke-width="2" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{COLOURS[name]}"/>' for x, y in places]
        parts.append(text(left + 190, 216 + 14 * k, name, f'fill="{COLOURS[name]}"'))
    return "\n".join(parts)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--largest", type=int, default=1024)
    p.add_argument("-o", default="sizes.svg")
    a = p.parse_args()
    panels = []
    for title, rows in cases(a.largest):
        print(title)
        curves = {}
        for n, multiply_adds, functions, arrays in rows:
            results = {name: f(*arrays) for name, f in functions.items()}
            assert all(np.allclose(results["tdsl"], r) for r in results.values())
            for name, f in functions.items():
                curves.setdefault(name, []).append((n, multiply_adds / seconds(f, arrays)))
            print(f"  n = {n:5}: " + ", ".join(f"{name} {points[-1][1] / 1e9:.3g}" for name, points in curves.items()) + " G multiply-adds/s")
        panels.append(chart(title, curves, 290 * len(panels)))
    axis = '<text x="435" y="290" text-anchor="middle">10^9 multiply-adds per second over n, one core</text>'
    with open(a.o, "w", encoding="utf-8") as f:
        f.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 300" font-family="sans-serif" font-size="11">\n'
                f'<rect width="880" height="300" fill="white"/>\n{axis}\n' + "\n".join(panels) + "\n</svg>\n")
    print(f"-> {a.o}")


if __name__ == "__main__":
    main()
