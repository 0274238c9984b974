# SPDX-License-Identifier: Apache-2.0
"""Kernels whose extents are arithmetic with open dims: small integers against NumPy's, and sizes that are refused before anything is touched.

    extents.py --tdslc PATH

By each C compiler that is here, as warnings are errors and overflow stops the program, where the compiler has what is needed for that.
"""
import argparse
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import steps  # noqa: E402

PROGRAM = """
kernel second(x: f64[n]) -> (y: f64[n - 2]) { y[i] = x[i] - 2*x[i + 1] + x[i + 2]; }
kernel fir(w: f64[k], x: f64[n + k - 1]) -> (y: f64[n]) { y[i] = w[d] * x[i + d]; }
kernel pool(x: f32[2*n, 2*m]) -> (y: f32[n, m]) { y[i,j] = max[a < 2, b < 2](x[2*i + a, 2*j + b]); }
kernel conv(x: f64[n + 2*p], w: f64[k]) -> (y: f64[(n + 2*p - k)/2 + 1]) { y[i] = x[2*i + d] * w[d]; }
kernel heads(X: f64[s, h*dh - 1], g: f64[h, dh]) -> (y: f64[s, h*dh - 1], z: f64[h, dh]) { y[i,j] = X[i,j] * 2; z[a,b] = g[a,b] + 1; }
kernel flat(X: i64[h*dh], A: f64[n + 1, m]) -> (y: i64[h*dh], C: f64[m, m]) { y[j] = X[j] * 3; C[a,b] = A[i,a] * A[i,b]; }
kernel inside(x: f64[n]) -> (y: f64[n], s: f64) { T[i < n - 3] = x[i] + x[i + 3]; spill T; y[i] = x[i]; s = sum[i](T[i] * T[i]); }
kernel range(x: f64[n]) -> (s: f64) { s = sum[i < n - 2](x[i] * x[i + 2]); }
kernel wide(X: f64[s, h*dh]) -> (y: f64[s, h*dh]) { y[i,j] = X[i,j] * 2; }
kernel plain(x: f64[n]) -> (y: f64[n]) { y[i] = x[i] + 1; }
"""
TYPES = {"f64": np.float64, "f32": np.float32, "i64": np.int64}
OK, SHAPE, OVERFLOW, ARGUMENT = 0, -2, -7, -1
SIZES = [0, 1, 2, 7]
HUGE = 1 << 62


def second(n):
    return {"x": [n]}, {"y": [n - 2]}, lambda x: [x[:-2] - 2 * x[1:-1] + x[2:]], 0


def fir(k, n):
    return {"w": [k], "x": [n + k - 1]}, {"y": [n]}, lambda w, x: [np.array([sum(w * x[i:i + k]) for i in range(n)])], k * n


def pool(n, m):
    return {"x": [2 * n, 2 * m]}, {"y": [n, m]}, lambda x: [x.reshape(n, 2, m, 2).max((1, 3))], 0


def conv(n, p, k):
    length = (n + 2 * p - k) // 2 + 1
    return {"x": [n + 2 * p], "w": [k]}, {"y": [length]}, lambda x, w: [np.array([sum(w * x[2 * i:2 * i + k]) for i in range(length)])], length * k


def heads(s, h, dh):
    return {"X": [s, h * dh - 1], "g": [h, dh]}, {"y": [s, h * dh - 1], "z": [h, dh]}, lambda x, g: [2 * x, g + 1], 0


def flat(h, dh, n, m):
    return {"X": [h * dh], "A": [n + 1, m]}, {"y": [h * dh], "C": [m, m]}, lambda x, a: [3 * x, a.T @ a], (n + 1) * m * m


def inside(n):
    return {"x": [n], "T": [n - 3]}, {"y": [n], "s": []}, lambda x, t: [x, np.array(sum((x[:max(n - 3, 0)] + x[3:]) ** 2))], max(n - 3, 0)


def range_(n):
    return {"x": [n], "T": [n - 2]}, {"s": []}, lambda x, t: [np.array(sum(x[:max(n - 2, 0)] * x[2:]))], n - 2


def wide(s, h, dh):
    return {"X": [s, h * dh]}, {"y": [s, h * dh]}, lambda x: [2 * x], 0


def plain(n):
    return {"x": [n]}, {"y": [n]}, lambda x: [x + 1], 0


# Each with how many dims it has, types of its arguments, and sizes with which a number does not fit.
KERNELS = {"second": (second, 1, "f64 f64", [[HUGE]]), "fir": (fir, 2, "f64 f64 f64", [[HUGE, 1], [1 << 61, 1 << 61], [HUGE, HUGE]]),
           "pool": (pool, 2, "f32 f32", [[HUGE, 1], [1 << 31, 1 << 31]]), "conv": (conv, 3, "f64 f64 f64", [[1, HUGE, 1], [HUGE, 0, HUGE], [5, 5, HUGE]]),
           "heads": (heads, 3, "f64 f64 f64 f64", [[1, 1 << 33, 1 << 33], [0, 1 << 61, 2], [1 << 40, 1 << 11, 1 << 11]]),
           "flat": (flat, 4, "i64 f64 i64 f64", [[1 << 32, 1 << 32, 1, 1], [1, 1, HUGE, 1], [1, 1, (1 << 63) - 1, 0]]),
           "inside": (inside, 1, "f64 f64 f64", [[1 << 61]]), "range": (range_, 1, "f64 f64", [[HUGE]]),
           "wide": (wide, 3, "f64 f64", [[0, 1 << 40, 1 << 40], [1 << 30, 1 << 30, 1]]),
           "plain": (plain, 1, "f64 f64", [[HUGE]])}


class Info(ctypes.Structure):
    """The members of tdsl_kernel_info up to those that are called here."""
    _fields_ = [("head", ctypes.c_uint32 * 6), ("texts", ctypes.c_void_p * 4), ("counts", ctypes.c_int32 * 2), ("tables", ctypes.c_void_p * 2),
                ("workspace_bytes", ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p)),
                ("multiply_adds", ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)),
                ("call", ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3, ctypes.c_size_t))]


class Tests:
    def __init__(self, library, label):
        self.library, self.label, self.failed, self.calls = library, label, 0, 0
        self.random = np.random.default_rng(1)

    def check(self, good, *what):
        self.failed += 0 if good else 1
        if not good:
            print("FAILED", self.label, *what, file=sys.stderr)

    def call(self, name, dims, arrays, by_table):
        """(status, bytes of workspace) of a call through the typed entry, or through the table."""
        self.calls += 1
        info = Info.in_dll(self.library, name + "_info")
        c_dims = (ctypes.c_int64 * (len(dims) + 1))(*dims)
        need = getattr(self.library, name + "_workspace_bytes")
        need.restype = ctypes.c_size_t
        size = need(*map(ctypes.c_int64, dims))
        self.check(size == info.workspace_bytes(c_dims), name, dims, "workspace")
        space = np.full((size if size < 1 << 40 else 0) + 64, 0x5a, np.uint8)
        pointers = [ctypes.c_void_p(a.ctypes.data if a is not None else None) for a in arrays]
        if by_table:
            status = info.call(c_dims, (ctypes.c_void_p * len(pointers))(*pointers), space.ctypes.data, size)
        else:
            status = getattr(self.library, name)(*map(ctypes.c_int64, dims), *pointers, ctypes.c_void_p(space.ctypes.data), ctypes.c_size_t(size))
        self.check((space[-64:] == 0x5a).all(), name, dims, "wrote behind the workspace")
        return status, size

    def sizes(self, name, dims):
        """One call that must give NumPy's numbers, or be refused."""
        make, _, types, _ = KERNELS[name]
        given, results, compute, work = make(*dims)
        shapes = [*given.values(), *results.values()]
        possible = all(n >= 0 for shape in shapes for n in shape)
        types = iter(types.split())
        room = [[max(n, 0) for n in shape] for shape in shapes]
        values = [self.random.integers(-3, 4, s) for s in room[:len(given)]]
        if possible:
            wanted = compute(*[np.asarray(v, dtype=np.float64) for v in values])
        handed = [np.ascontiguousarray(v, dtype=TYPES[next(types)]) for v, key in zip(values, given) if key != "T"]
        for by_table in (False, True):
            got = [np.full(s, 77, dtype=TYPES[t]) for s, t in zip(room[len(given):], KERNELS[name][2].split()[len(handed):])]
            status, size = self.call(name, dims, [*handed, *got], by_table)
            if possible:
                self.check(status == OK and all(np.array_equal(a, b) for a, b in zip(got, wanted)), name, dims, by_table, "status", status, got, wanted)
            else:
                self.check(status == SHAPE and size == ctypes.c_size_t(-1).value and all((a == 77).all() for a in got), name, dims, by_table, "status", status)
        count = Info.in_dll(self.library, name + "_info").multiply_adds((ctypes.c_int64 * 8)(*dims))
        self.check(count == (work if possible else 0), name, dims, "multiply-adds", count, work)

    def run(self):
        for name, (_, n, _, too_large) in KERNELS.items():
            for k in range(len(SIZES) ** n):
                self.sizes(name, [SIZES[k // len(SIZES) ** d % len(SIZES)] for d in range(n)])
            arguments = len(KERNELS[name][2].split())
            for dims in too_large:
                nothing = [np.full(4, 77.0) for _ in range(arguments)]
                for by_table in (False, True):
                    status, size = self.call(name, dims, nothing, by_table)
                    self.check(status == OVERFLOW and size == ctypes.c_size_t(-1).value, name, dims, by_table, "status", status)
                self.check(all((a == 77).all() for a in nothing), name, dims, "touched")
            for dims in ([-1] * n, [5] * (n - 1) + [-(1 << 63)]):
                status, _ = self.call(name, dims, [None] * arguments, False)
                self.check(status == SHAPE, name, dims, "status", status)
            status, _ = self.call(name, [7] * n, [None] * arguments, False)
            self.check(status == ARGUMENT, name, "null pointers", status)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tdslc", required=True)
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "p")
        with open(path + ".tdsl", "w", encoding="utf-8") as stream:
            stream.write(PROGRAM)
        steps_ = [([options.tdslc, "-w", "--check-each", "p.tdsl", "-o", "p.c"], None)]
        for cc in filter(shutil.which, ("gcc", "clang")):
            for level, trap in (("-O2", []), ("-O1", ["-fsanitize=signed-integer-overflow", "-fsanitize-undefined-trap-on-error"])):
                library = f"{path}_{cc}{level}.so"
                steps_.append(([cc, "-std=c11", level, *trap, "-shared", "-fPIC", "-Wall", "-Wextra", "-Wconversion", "-Werror", path + ".c", "-o", library, "-lm"],
                               library))
        for command, library in steps_:
            made = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, cwd=folder)
            if made.returncode != 0:
                print(steps.report(PROGRAM, command, made), file=sys.stderr)
                return 1
            if library is not None:
                tests = Tests(ctypes.CDLL(library), os.path.basename(library))
                tests.run()
                failed += tests.failed
                print(f"{tests.label}: {tests.calls} calls, {tests.failed} failed")
        with open(path + ".h", encoding="utf-8") as stream:
            header = stream.read()
        for shape in ("[n - 2] */", "[2*n][2*m] */", "[s][h*dh - 1] */", "[(n + 2*p + 2 - k)/2] */", "The caller gives n, p, k;\n"):
            if shape not in header:
                failed += 1
                print(f"FAILED: no {shape} in the header", file=sys.stderr)
    return failed > 0


sys.exit(main())
