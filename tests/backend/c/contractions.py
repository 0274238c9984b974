# SPDX-License-Identifier: Apache-2.0
"""Contractions that fold other terms than products, `sum((x - y)^2)`, `max(x + y)`, with register tiles of every instruction set that runs
here, against NumPy: small integers, so exactly, then with NaN and infinities among them.

    contractions.py --tdslc PATH [--cc=PROGRAM] [--few]

Each kernel is there with open extents and with known ones, and the legal form of each must have a tile that folds its term.
"""
import argparse
import ctypes
import os
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import steps  # noqa: E402

MAX, MIN, ADD = (np.maximum, -np.inf), (np.minimum, np.inf), (np.add, 0)
# name: element type, labels of X, of Y, of the result; the value; the term for NumPy, and how it folds
KERNELS = {
    "squares": ("f64", "ie", "je", "ij", "sum[e]((X[i,e] - Y[j,e]) * (X[i,e] - Y[j,e]))", lambda x, y: (x - y) * (x - y), ADD),
    "powers": ("f32", "ie", "je", "ij", "sum[e](pow(X[i,e] - Y[j,e], 2))", lambda x, y: (x - y) * (x - y), ADD),
    "magnitudes": ("f32", "ie", "ej", "ij", "sum[e](abs(X[i,e] - Y[e,j]))", lambda x, y: abs(x - y), ADD),
    "tropical": ("f64", "ie", "ej", "ij", "max[e](X[i,e] + Y[e,j])", lambda x, y: x + y, MAX),
    "shortest": ("f32", "ei", "ej", "ij", "min[e](X[e,i] + Y[e,j])", lambda x, y: x + y, MIN),
    "narrowest": ("f64", "ie", "je", "ij", "min[e](max(X[i,e], Y[j,e]))", np.maximum, MIN),
    "widest": ("f32", "ie", "je", "ji", "max[e](min(Y[j,e], X[i,e]))", lambda x, y: np.minimum(y, x), MAX),
    "products": ("f32", "ie", "ej", "ij", "max[e](X[i,e] * Y[e,j])", lambda x, y: x * y, MAX),
    "mixed": ("f64", "ie", "je", "ij", "min[e](max(abs(X[i,e]), -Y[j,e]) - min(X[i,e], X[i,e] * Y[j,e]))",
              lambda x, y: np.maximum(abs(x), -y) - np.minimum(x, x * y), MIN),
    "batches": ("f64", "bie", "bje", "bij", "sum[e](abs(X[b,i,e] - Y[b,j,e]))", lambda x, y: abs(x - y), ADD),
    "labels": ("f32", "aeif", "fbej", "aibj", "max[e,f](X[a,e,i,f] - Y[f,b,e,j])", lambda x, y: x - y, MAX),
    "crossed": ("f64", "aie", "ebj", "jaib", "sum[e]((X[a,i,e] + Y[e,b,j]) * X[a,i,e])", lambda x, y: (x + y) * x, ADD),
    "ratios": ("f64", "eif", "fej", "ij", "sum[e,f](abs(X[e,i,f] / Y[f,e,j]))", lambda x, y: abs(x / y), ADD),
    "reaches": ("bool", "ie", "ej", "ij", "any[e](X[i,e] && Y[e,j])", np.logical_and, (np.logical_or, False)),
    "integers": ("i32", "ie", "je", "ij", "sum[e]((X[i,e] - Y[j,e]) * (X[i,e] - Y[j,e]))", lambda x, y: (x - y) * (x - y), ADD),
}
TYPES = {"bool": np.bool_, "f64": np.float64, "f32": np.float32, "i32": np.int32}
SIZES = [{}, {"e": 300}, {"i": 33, "e": 40, "j": 37}, {"i": 1, "j": 1}, {"j": 1}, {"i": 1}, {"e": 1}, {"i": 70, "j": 50, "e": 530}, {"e": 0}, {"i": 0}, {"j": 0}]
USUAL = {"a": 3, "b": 2, "i": 13, "j": 21, "e": 9, "f": 5}
KNOWN = [{}, {"i": 6, "j": 16, "e": 8}, {"i": 31, "j": 45, "e": 270}, {"i": 1, "j": 100, "e": 3}]


def program(name, sizes, known):
    dtype, x, y, out, value = KERNELS[name][:5]

    def shape(labels):
        return "[" + ", ".join(str(sizes[c]) if known else "d" + c for c in labels) + "]"
    return (f"kernel {name}{known}(X: {dtype}{shape(x)}, Y: {dtype}{shape(y)}) -> (R: {dtype}{shape(out)}) "
            f"{{ R[{','.join(out)}] = {value}; }}\n")


def wanted(name, x, y):
    _, a, b, out, _, term, (fold, start) = KERNELS[name]
    labels = out + "".join(sorted(set(a + b) - set(out)))

    def spread(array, own):
        places = [own.index(c) for c in labels if c in own]
        return array.transpose(places).reshape([array.shape[own.index(c)] if c in own else 1 for c in labels])
    with np.errstate(all="ignore"):
        terms = term(spread(x, a), spread(y, b))
        return fold.reduce(terms, axis=tuple(range(len(out), len(labels))), initial=None if terms.size and fold in (np.maximum, np.minimum) else start)


def check(library, name, sizes, known, special, rng):
    dtype, x, y, out = KERNELS[name][:4]
    size = {**USUAL, **sizes}

    def array(labels):
        a = rng.integers(-9, 10, [size[c] for c in labels])
        a = (a == 9 if dtype == "bool" else a).astype(TYPES[dtype])
        if name == "ratios":  # exact, but for 0 / 0 where there are holes
            a = rng.choice([-4, -2, -1, 1, 2, 4], a.shape).astype(a.dtype)
        for value in (np.nan, np.inf, -np.inf) if special else ():
            a[rng.random(a.shape) < 0.01] = value
        return a
    a, b = array(x), array(y)
    got = np.full([size[c] for c in out], 1 if dtype == "bool" else 77, dtype=TYPES[dtype])
    order = dict.fromkeys(x + y) if known == "" else ()
    dims = [ctypes.c_int64(size[c]) for c in order]
    need = getattr(library, f"{name}{known}_workspace_bytes", None)
    workspace = np.full(64, 0x5a, np.uint8)
    arguments = [*dims, *[ctypes.c_void_p(v.ctypes.data) for v in (a, b, got)]]
    if need is not None:
        need.restype = ctypes.c_size_t
        count = need(*dims)
        workspace = np.full(count + 64, 0x5a, np.uint8)
        arguments += [ctypes.c_void_p(workspace.ctypes.data), ctypes.c_size_t(count)]
    status = getattr(library, f"{name}{known}")(*arguments)
    right = wanted(name, a, b)
    fine = status == 0 and np.array_equal(got, right, equal_nan=special) and (workspace[-64:] == 0x5a).all()
    if not fine:
        print(f"FAILED {name}{known} at {size}, status {status}, special {special}", file=sys.stderr)
    return fine


def has_tile(tdslc, name, sizes):
    """Does the legal form fold the term in a register tile?"""
    with open("one.tdsl", "w", encoding="utf-8") as stream:
        stream.write(program(name, sizes, 1))
    legal = subprocess.run([tdslc, "-w", "one.tdsl", "--dump=legal"], capture_output=True, text=True, check=True).stdout
    return any(line.strip().startswith(("reduce", "matmul")) and "unroll" in line and "vector" in line and line.count(" in ") == 3 for line in legal.splitlines())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tdslc", required=True, type=os.path.abspath)
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--few", action="store_true", help="some kernels, the first and the last instruction set")
    options = parser.parse_args()
    flags = open("/proc/cpuinfo", encoding="utf-8").read() if os.path.exists("/proc/cpuinfo") else ""
    sets = ["plain", "vectors"] + (["avx2"] if " avx2 " in flags else []) + (["avx512"] if " avx512bw " in flags else [])
    kernels = [name for name in KERNELS if not options.few or name in ("squares", "magnitudes", "tropical", "labels", "reaches")]
    sets = [sets[0], sets[-1]] if options.few else sets
    failed = calls = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name in kernels:
            if not has_tile(options.tdslc, name, {**USUAL, "i": 60, "j": 64, "e": 40}):
                failed += 1
                print(f"FAILED {name}: no register tile", file=sys.stderr)
        with open("k.tdsl", "w", encoding="utf-8") as stream:
            stream.write("dim da ~ 4, db ~ 4, di ~ 100, dj ~ 100, de ~ 100, df ~ 4;\n")
            for name in kernels:
                stream.write(program(name, {}, ""))
                for known, sizes in enumerate(KNOWN):
                    stream.write(program(name, {**USUAL, **sizes}, known + 1))
        steps.run("compile", [options.tdslc, "-w", "k.tdsl", "-o", "k.c"])
        for isa in sets:
            steps.run(f"C for {isa}", [options.cc, "-std=c11", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Wconversion", "-Werror",
                                       f"-DTDSL_ISA={isa}", "k.c", "-o", f"{isa}.so", "-lm"])
            library = ctypes.CDLL(os.path.join(folder, f"{isa}.so"))
            rng = np.random.default_rng(1)
            for name in kernels:
                for known, sizes in [("", s) for s in SIZES] + [(k + 1, s) for k, s in enumerate(KNOWN)]:
                    for special in (False, True) if KERNELS[name][0][0] == "f" else (False,):
                        calls += 1
                        failed += 0 if check(library, name, sizes, known, special, rng) else 1
    print(f"{calls} calls, {failed} failed")
    return failed > 0


sys.exit(main())
