#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functions of our own in compiled C, and maps that run as vectors: each position has the same bits wherever it stands and for every
instruction set, and no further off than docs/language.md says. (tests/backend/c/every_f32.py has all f32 and more digits.)

usage: functions.py --tdslc TDSLC --tdsl-run TDSL-RUN [--only TEST]"""
import itertools
import math
import os
import pathlib
import platform

from support import main, np, save, share, tdsl_run, test, write

STEP = 1009
TURN = itertools.count()
ROWS = {"plain": ["-DTDSL_ISA=plain"], "vectors": ["-DTDSL_ISA=vectors"], "clang": ["--cc=clang"]}
CPU = pathlib.Path("/proc/cpuinfo").read_text() if platform.machine() == "x86_64" and os.path.exists("/proc/cpuinfo") else ""
for row, flag in {"avx2": " avx2", "avx512": " avx512vl"}.items():
    if flag in CPU:
        ROWS[row] = [f"-DTDSL_ISA={row}"]


def compute(text, arrays, names, row):
    """The results of a kernel that runs on one row of instruction sets."""
    write("k.tdsl", text)
    for name, a in arrays.items():
        save(f"{name}.npy", a)
    flags = [f for f in ROWS[row] if f.startswith("-D")]
    cc = [f for f in ROWS[row] if f.startswith("--cc")]
    tdsl_run("k.tdsl", *cc, "--cflags=" + " ".join(["-O2", *flags]), *[f"{n}={n}.npy" for n in arrays],
             *[part for n in names for part in ("-o", f"{n}={n}.npy")])
    return [np.load(f"{n}.npy") for n in names]


def same_everywhere(text, arrays, names):
    """The gate takes `plain` and every second of the other rows, in turn."""
    rows = ["plain", *share([row for row in ROWS if row != "plain"], 1, next(TURN), gate=2)]
    results = {row: compute(text, arrays, names, row) for row in rows}
    first = results["plain"]
    for row, got in results.items():
        for name, a, b in zip(names, first, got):
            same = (a == b) | (np.isnan(a) & np.isnan(b)) if a.dtype.kind == "f" else a == b
            assert same.all(), (text, row, name, a[~same][:4], b[~same][:4])
    return first


def units_off(got, exact, kind):
    """Units in the last place of the result between what came out and what is exact (of more digits)."""
    least = np.finfo(kind).smallest_subnormal.astype(exact.dtype)
    with np.errstate(divide="ignore"):
        unit = np.exp2(np.floor(np.log2(np.abs(exact))) - np.finfo(kind).nmant)
    return np.abs(got.astype(exact.dtype) - exact) / np.maximum(unit, least)


def check_exp(x, got, kind):
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        exact = np.exp(x.astype(np.longdouble if kind is np.float64 else np.float64))
        nearest = exact.astype(kind)
    assert (np.isnan(got) == np.isnan(x)).all()
    assert (got[np.isinf(nearest)] == np.inf).all() and (got[x == -np.inf] == 0).all() and (got[x == 0] == 1).all()
    here = np.isfinite(nearest) & ~np.isnan(x)
    off = units_off(got[here], exact[here], kind)
    assert off.max() <= 0.8, (x[here][off.argmax()], got[here][off.argmax()], off.max())


@test
def exp_of_f32_is_close_everywhere():
    x = np.arange(0, 1 << 32, STEP, dtype=np.uint64).astype(np.uint32).view(np.float32)
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 88.72283, 88.722839, 88.72284, 89, 1e30, -103.97208, -103.97207, -87.33655, -104, -1e30,
                      1e-40, 0.34657359, -0.34657359], np.float32)
    x = np.concatenate([x, edges])
    got, = same_everywhere("kernel k(x: f32[n]) -> (R: f32[n]) { R[i] = exp(x[i]); }", {"x": x}, ["R"])
    check_exp(x, got, np.float32)


@test
def exp_of_f64_is_close():
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.uniform(-760, 720, 400000), rng.uniform(-1, 1, 400000), rng.standard_normal(100000) * 1e-5,
                        [0.0, -0.0, np.inf, -np.inf, np.nan, 709.782712893384, 709.7827128933841, 710, 1e300, -745.1332191019412, -746, -1e300]])
    got, = same_everywhere("kernel k(x: f64[n]) -> (R: f64[n]) { R[i] = exp(x[i]); }", {"x": x}, ["R"])
    if np.finfo(np.longdouble).nmant > 52:
        check_exp(x, got, np.float64)


FUNCTIONS = {"log": np.log, "tanh": np.tanh, "erf": np.vectorize(math.erf, otypes=[np.float64])}
BOUNDS = {"f32": {"log": 0.8, "tanh": 0.51, "erf": 0.52}, "f64": {"log": 0.9, "tanh": 1, "erf": 3.5}}  # erf: of math.erf, itself 1 off


def check_functions(x, kind, dtype):
    text = f"kernel k(x: {kind}[n]) -> (L: {kind}[n], T: {kind}[n], E: {kind}[n], G: {kind}[n], S: {kind}[n]) {{\n" \
           "L[i] = log(x[i]); T[i] = tanh(x[i]); E[i] = erf(x[i]); G[i] = gelu(x[i]); S[i] = sigmoid(x[i]); }"
    *results, g, s = same_everywhere(text, {"x": x}, "LTEGS")
    with np.errstate(all="ignore"):
        for (name, f), got in zip(FUNCTIONS.items(), results):
            wide = x.astype(np.longdouble if kind == "f64" and name != "erf" else np.float64)
            exact = f(wide)
            assert (np.isnan(got) == np.isnan(exact)).all(), (kind, name)
            whole = np.isinf(exact) | (exact == 0)
            assert (got[whole] == exact[whole]).all() and (np.signbit(got[exact == 0]) == np.signbit(exact[exact == 0])).all(), (kind, name)
            here = ~whole & ~np.isnan(exact)
            off = units_off(got[here], exact[here], dtype)
            assert off.max() <= BOUNDS[kind][name], (kind, name, x[here][off.argmax()], off.max())
        here = np.isfinite(x) & (np.abs(x) < 1e30)
        wide = x[here].astype(np.float64)
        gelu = wide * 0.5 * (1 + FUNCTIONS["erf"](wide * math.sqrt(0.5)))
        eps = np.finfo(dtype).eps
        assert (np.abs(g[here] - gelu) <= (2 if kind == "f32" else 6) * eps * np.abs(wide) + np.finfo(dtype).smallest_subnormal).all(), kind
        near = here & (np.abs(x) < 80)
        exact = 1 / (1 + np.exp(-x[near].astype(np.longdouble)))
        assert units_off(s[near], exact, dtype).max() <= 3, kind


@test
def functions_of_f32_are_close_everywhere():
    x = np.arange(0, 1 << 32, 16 * STEP + 1, dtype=np.uint64).astype(np.uint32).view(np.float32)
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.99999994, 1.0000001, 20, 20.000002, 3.9999998, 4, 1e-40, -1e-45, 3.4028235e38], np.float32)
    check_functions(np.concatenate([x, edges]), "f32", np.float32)


@test
def functions_of_f64_are_close():
    rng = np.random.default_rng(6)
    x = np.concatenate([rng.uniform(-8, 8, 100000), rng.uniform(0, 3, 100000), np.exp(rng.uniform(-740, 700, 50000)), rng.standard_normal(20000) * 1e-7,
                        [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 1.2, 6, 40, 5e-324, -5e-324, 1.7976931348623157e308, 2.2250738585072014e-308]])
    if np.finfo(np.longdouble).nmant > 52:
        check_functions(x, "f64", np.float64)


def check_turns(x, kind, dtype, most):
    got = same_everywhere(f"kernel k(x: {kind}[n]) -> (S: {kind}[n], C: {kind}[n]) {{ S[i] = sin(x[i]); C[i] = cos(x[i]); }}", {"x": x}, "SC")
    with np.errstate(all="ignore"):
        for f, y in zip((np.sin, np.cos), got):
            exact = f(x.astype(np.longdouble if kind == "f64" else np.float64))
            assert (np.isnan(y) == ~np.isfinite(x)).all(), kind
            here = np.isfinite(x) & (x != 0)
            off = units_off(y[here], exact[here], dtype)
            assert off.max() <= most, (f, kind, x[here][off.argmax()], off.max())
    zero = x == 0
    assert (np.signbit(got[0][zero]) == np.signbit(x[zero])).all() and (got[0][zero] == 0).all() and (got[1][zero] == 1).all()


@test
def sin_and_cos_are_close_for_operands_of_any_size():
    """Strips with large operands and without, so that both forms of the functions are seen in every place of a vector."""
    rng = np.random.default_rng(8)
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 131071.99, 131072, -131072, 1e5, 1e-40, -1e-45, 3.4028235e38, 355, -710, 33, 1e22]
    x = np.arange(0, 1 << 32, 16 * STEP + 1, dtype=np.uint64).astype(np.uint32).view(np.float32)
    check_turns(np.concatenate([x, edges, rng.uniform(-300, 300, 20000), x[::7], [1e6], np.ones(254)], dtype=np.float32, casting="unsafe"), "f32", np.float32, 0.61)
    hard = [6381956970095103 * 2.0**797, 5.319372648326541e255, 1.7976931348623157e308, 2.0**20, -2.0**20, 2.0**20 - 2.0**-33, 5e-324, -2.2250738585072014e-308]
    near = np.arange(1, 100000) * (math.pi / 2)
    wide = np.concatenate([near, rng.uniform(-8, 8, 50000), np.ldexp(rng.standard_normal(50000), rng.integers(-1070, 1023, 50000)), edges, hard])
    if np.finfo(np.longdouble).nmant > 52:
        check_turns(wide, "f64", np.float64, 0.8)


def check_pow(x, y, kind, dtype, most):
    """NumPy's pow has C's special cases."""
    got, = same_everywhere(f"kernel k(x: {kind}[n], y: {kind}[n]) -> (R: {kind}[n]) {{ R[i] = pow(x[i], y[i]); }}", {"x": x, "y": y}, "R")
    with np.errstate(all="ignore"):
        wide = np.longdouble if kind == "f64" else np.float64
        exact = np.power(x.astype(wide), y.astype(wide))
        far = ~np.isfinite(x) | ~(np.abs(y) < 2.0**62)  # for which powl of some systems is wrong
        exact = np.where(far, np.power(x, y), exact)
        near = exact.astype(dtype)
        assert (np.isnan(got) == np.isnan(near)).all(), (kind, x[np.isnan(got) != np.isnan(near)][:4], y[np.isnan(got) != np.isnan(near)][:4])
        here = ~np.isnan(near)
        assert (np.signbit(got) == np.signbit(near))[here].all(), kind
        whole = np.isinf(near) | (exact == 0) | (np.abs(exact) < np.finfo(dtype).smallest_subnormal / 2)
        assert (got == near)[here & whole].all(), (kind, x[here & whole & (got != near)][:4], y[here & whole & (got != near)][:4])
        here &= ~whole
        off = units_off(got[here], exact[here], dtype)
        assert off.max() <= most, (kind, x[here][off.argmax()], y[here][off.argmax()], off.max())


SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 2, -2, 0.5, -0.5, 3, -3, 1.5, -2.5, 1e-40, 1e-45, -1e-45, 1e30, -1e30, 2**23 + 1, 1 - 2**23, 2**24 - 1,
           2.0**31, 2.0**31 + 256, 2.0**63, -2.0**63, 150, -149, 127, 128, 1 + 2.0**-23, 1 - 2.0**-24, -1 - 2.0**-23, 3.4e38]
LARGE = [5e-324, -5e-324, 1e-310, 1.7e308, -1.7e308, 2.0**53, 2.0**53 + 2, 2 - 2.0**53, 2.0**52 + 1, 2.0**51 + 1, 2.0**51 + 0.5, 1 + 2.0**-52, 1 - 2.0**-53, -1 - 2.0**-52,
         1074, -1074, 1023, 1024]


def pairs(values, kind):
    a, b = np.meshgrid(np.array(values, kind), np.array(values, kind))
    return a.ravel(), b.ravel()


@test
def pow_is_close_and_has_the_special_cases_of_c():
    rng = np.random.default_rng(10)
    for kind, dtype, most, special, top in (("f32", np.float32, 0.53, SPECIAL, 126), ("f64", np.float64, 1, SPECIAL + LARGE, 1022)):
        if kind == "f64" and np.finfo(np.longdouble).nmant <= 52:
            continue
        a, b = pairs(special, dtype)
        x = np.concatenate([np.exp2(rng.uniform(-top, top, 100000)), 1 + np.ldexp(rng.uniform(-0.5, 0.5, 50000), -rng.integers(0, 20, 50000)), -rng.uniform(0, 9, 512)])
        y = rng.uniform(-1.1, 1.1, x.size) * top / np.abs(np.log2(np.abs(x)))
        y[-512:] = np.arange(512) % 40 - 20
        y[:20000] = rng.uniform(-9, 9, 20000)
        check_pow(np.concatenate([a, x]).astype(dtype), np.concatenate([b, y]).astype(dtype), kind, dtype, most)


@test
def powers_that_the_type_holds_are_exact():
    for kind, dtype, digits in (("f32", np.float32, 24), ("f64", np.float64, 53)):
        found = [(x, y, x**y) for x in range(-300, 301) for y in range(60) if abs(x**y) <= 2**digits]
        found += [(float(x) ** 2, 0.5, x) for x in range(1, 2**(digits // 2), max(1, 2**(digits // 2) // 9999))]
        x, y, exact = (np.array(column, dtype) for column in zip(*found))
        got, = same_everywhere(f"kernel k(x: {kind}[n], y: {kind}[n]) -> (R: {kind}[n]) {{ R[i] = pow(x[i], y[i]); }}", {"x": x, "y": y}, "R")
        assert (got == exact).all(), (kind, x[got != exact][:4], y[got != exact][:4])


@test
def maps_have_the_same_bits_at_every_place():
    """Lengths around vectors; each operation rounds once, as NumPy's do."""
    rng = np.random.default_rng(7)
    for kind, dtype in (("f32", np.float32), ("f64", np.float64)):
        for n in (1, 15, 16, 17, 31, 33, 100):
            a, b = rng.standard_normal((2, 5, n)).astype(dtype)
            c = rng.standard_normal(5).astype(dtype)
            text = f"kernel k(a: {kind}[m,{n}], b: {kind}[m,{n}], c: {kind}[m]) -> (Q: {kind}[m,{n}], S: {kind}[m,{n}], U: {kind}[m,{n}]) {{\n" \
                   "Q[i,j] = (a[i,j] * b[i,j] + c[i]) / b[i,j]; S[i,j] = sqrt(max(a[i,j] * a[i,j], b[i,j])) - c[i];\n" \
                   "U[i,j] = sigmoid(min(a[i,j], c[i])); }"
            q, s, u = same_everywhere(text, {"a": a, "b": b, "c": c}, "QSU")
            wide = c[:, None]
            assert (q == (a * b + wide) / b).all() and (s == np.sqrt(np.maximum(a * a, b)) - wide).all(), (kind, n)
            exact = 1 / (1 + np.exp(-np.minimum(a, wide).astype(np.longdouble)))
            assert units_off(u, exact, dtype).max() <= 3


@test
def extremes_are_those_of_numpy():
    """Along both axes; a NaN wins wherever it stands."""
    rng = np.random.default_rng(9)
    for kind, m, n in (("f32", 3, 15), ("f32", 33, 31), ("f64", 5, 64), ("f32", 40, 300), ("f64", 7, 1000)):
        a, b = rng.standard_normal((2, m, n)).astype({"f32": np.float32, "f64": np.float64}[kind])
        for at in ((0, 0), (m // 2, n // 3), (m - 1, n - 1)):
            b[at] = np.nan
        text = f"kernel k(a: {kind}[{m},{n}], b: {kind}[{m},{n}]) -> (P: {kind}[{m}], Q: {kind}[{n}], R: {kind}[{m}], S: {kind}[{n}], T: {kind}) {{\n" \
               "P[i] = max[j](2 * a[i,j]); Q[j] = min[i](a[i,j]); R[i] = min[j](b[i,j]); S[j] = max[i](-b[i,j]); T = max[i,j](a[i,j] * a[i,j]); }"
        p, q, r, s, t = same_everywhere(text, {"a": a, "b": b}, "PQRST")
        for got, want in ((p, 2 * a.max(1)), (q, a.min(0)), (r, b.min(1)), (s, -b.min(0)), (t, (a * a).max())):
            assert ((got == want) | (np.isnan(got) & np.isnan(want))).all(), (kind, m, n)


if __name__ == "__main__":
    raise SystemExit(main())
