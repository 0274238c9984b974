#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Derivatives of kernels beside differences: for random v and w, w times the change of the results along v is v times the derivatives that
vjp gives for w. Of gradients.tdsl and of every other program of this folder, by the interpreter; gradients.tdsl as C too.

usage: gradients.py TDSLC TDSL-RUN
"""
import pathlib
import re
import sys
import tempfile

import numpy as np

from calls import DIMS, HERE, TYPES, definite, extent, heads, run

FLOAT = {"f64", "f32", "f16", "c128", "c64"}
SIZES = {"strides": {"n": 3}, "pieces": {"n": 3, "m": 3}, "lookups": {"n": 4, "v": 5, "e": 3}, "conditions": {"n": 3, "m": 4},
         "windows": {"c": 2, "h": 5, "w": 4, "o": 2, "p": 3, "q": 2, "u": 2}}
STEEP = {"conjugate_gradients"}  # of a random matrix differences show little
TYPES = dict(TYPES, f16=np.float16)


def draw(random, kind, shape, near=False):
    if kind.startswith("i"):
        return np.asarray(random.integers(0, 2, shape)).astype(TYPES[kind])
    if kind == "bool":
        return np.asarray(random.random(shape) < 0.5)
    x = random.standard_normal(shape)
    return np.asarray(x + 1j * random.standard_normal(shape) if kind.startswith("c") else x).astype(TYPES[kind])


def inner(x, y):
    return np.sum(np.conj(x) * y).real


def check(tool, path, folder, name, params, results, dims, target, seed=0):
    random = np.random.default_rng(seed + len(name))
    wanted = [p for p, kind, _ in params if kind in FLOAT]
    counted = [r for r, kind, _ in results if kind in FLOAT]
    if not wanted or not counted or any(kind not in TYPES for _, kind, _ in params + results):
        return False
    source = folder / "derivative.tdsl"
    also = f" with {', '.join(counted)}" if path.name == "gradients.tdsl" else ""
    (folder / path.name).write_text(path.read_text())
    source.write_text(f'include "{path.name}";\nkernel derivative = vjp {name}({", ".join(wanted)}){also};\n')
    words = [f"-D{d}={n}" for d, n in dims.items()]
    shapes = {p: [extent(e, dims) for e in extents] for p, _, extents in params + results}
    kinds = {p: kind for p, kind, _ in params + results}
    x = {p: draw(random, kinds[p], shapes[p]) for p, _, _ in params}
    if path.name == "dense.tdsl":
        x = {p: definite(x[p], extents) if p != "F" else x[p] for p, _, extents in params}
    v = {p: draw(random, kinds[p], shapes[p]) for p in wanted}
    w = {r: draw(random, kinds[r], shapes[r]) for r in counted}
    single = any(kind in ("f32", "c64") for _, kind, _ in params + results)
    half = any(kind == "f16" for _, kind, _ in params + results)
    step, bound = (0.25, 2e-2) if half else (1e-3, 3e-3) if single else (1e-5, 1e-7)
    if any(kind.startswith("i") for _, kind, _ in params) and path.name != "gradients.tdsl":
        try:
            run(tool, path, name, x, counted, folder, target, words)
        except AssertionError:  # these positions lie outside
            return False
    sides = [run(tool, path, name, {p: (a + side * step * v[p]).astype(a.dtype) if p in v else a for p, a in x.items()}, counted, folder, target, words)
             for side in (-1, 1)]
    if not all(np.isfinite(a).all() for side in sides for a in side.values()):
        return False
    got = run(tool, source, "derivative", {**x, **{f"d{r}": w[r] for r in counted}}, [f"d{p}" for p in wanted] + counted * bool(also), folder, target, words)
    change = sum(inner(w[r], sides[1][r].astype(complex) - sides[0][r]) for r in counted) / (2 * step)
    told = sum(inner(got[f"d{p}"].astype(complex), v[p]) for p in wanted)
    scale = 1 + sum(np.abs(w[r]).sum() for r in counted) + sum(np.abs(got[f"d{p}"] * v[p]).sum() for p in wanted)
    if scale > 1e4 and not also:
        return False  # near a pole differences show little
    assert abs(change - told) <= bound * scale, (path.name, name, target, change, told, scale)
    return True


def second(tool, path, folder, name, params, results, dims):
    """Derivatives of derivatives."""
    wanted = [p for p, kind, _ in params if kind in FLOAT]
    counted = [(f"d{r}", kind, extents) for r, kind, extents in results if kind in FLOAT]
    first = folder / "first.tdsl"
    first.write_text(f'{path.read_text()}\nkernel first = vjp {name}({", ".join(wanted)});\n')
    return check(tool, first, folder, "first", params + counted, [(f"d{p}", kind, extents) for p, kind, extents in params if kind in FLOAT], dims, "interp", 3)


def main():
    tdslc, tool = sys.argv[1:]
    count = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for path in sorted(HERE.glob("*.tdsl")):
            for kernel, params, results in heads(tdslc, path):
                dims = {d: DIMS.get(d[0].lower(), 3) for _, _, extents in params + results for e in extents for d in re.findall(r"[A-Za-z]\w*", e)}
                dims.update(SIZES.get(kernel, {}) if path.name == "gradients.tdsl" else {})
                if path.name == "gradients.tdsl":
                    for target in ("interp", "c"):
                        assert check(tool, path, folder, kernel, params, results, dims, target)
                    count += 1 + second(tool, path, folder, kernel, params, results, dims)
                elif kernel not in STEEP:
                    count += check(tool, path, folder, kernel, params, results, dims, "interp")
    assert count > 50, count
    print(f"derivatives of {count} kernels are those that differences show")


if __name__ == "__main__":
    main()
