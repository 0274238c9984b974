#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Products of integers of 8 and 16 bits whose sums are i32, which wrap: every pair of types and every row of instruction sets, against sums in
plain C. Operands are least, most and random numbers, extents end before, at and after groups, vectors and panels.

    dots.py --tdslc PATH [--few]

--few: what this processor finds itself, and gcc alone. Otherwise NEON too, where there are a compiler and an emulator, and each defect that
is planted in what was printed must be found.
"""
import argparse
import os
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import steps  # noqa: E402

TYPES = {"i8": "int8_t", "u8": "uint8_t", "i16": "int16_t", "u16": "uint16_t"}
HEAD = "dim n ~ 300, k ~ 300, m ~ 300, b ~ 3, p ~ 7, q ~ 9;\n"
PAIR = """kernel nn_{a}_{b}(X: {a}[n, k], W: {b}[k, m]) -> (Y: i32[n, m]) {{ Y[n,m] = X[n,k] * W[k,m]; }}
kernel tt_{a}_{b}(X: {a}[k, n], W: {b}[m, k]) -> (Y: i32[n, m]) {{ Y[n,m] = X[k,n] * W[m,k]; }}
"""
SINGLE = """kernel fixed_{a}_{b}(X: {a}[37, 99], W: {b}[99, 41]) -> (Y: i32[37, 41]) {{ Y[n,m] = X[n,k] * W[k,m]; }}
kernel cut_{a}_{b}(X: {a}[61, 1000], W: {b}[1000, 33]) -> (Y: i32[61, 33]) {{ Y[n,m] = X[n,k] * W[k,m]; }}
kernel batch_{a}_{b}(X: {a}[b, n, k], W: {b}[b, k, m]) -> (Y: i32[b, n, m]) {{ Y[b,n,m] = X[b,n,k] * W[b,k,m]; }}
kernel labels_{a}_{b}(X: {a}[n, p, q], W: {b}[q, p, m]) -> (Y: i32[n, m]) {{ Y[n,m] = X[n,p,q] * W[q,p,m]; }}
kernel scaled_{a}_{b}(X: {a}[n, k], W: {b}[k, m], s: f32[m]) -> (Y: f32[n, m]) {{
    A: i32[n,m] = X[n,k] * W[k,m];
    Y[n,m] = f32(A[n,m]) * s[m];
}}
kernel added_{a}_{b}(X: {a}[n, k], W: {b}[k, m], Y: inout i32[n, m]) {{ Y[n,m] += 3 * (X[n,k] * W[k,m]); }}
kernel zero_{a}_{b}(X: {a}[n, k], W: {b}[k, m], z: i32) -> (Y: i32[n, m]) {{ Y[n,m] = sum[k]((i32(X[n,k]) - z) * W[k,m]); }}
"""
SINGLES = [("i8", "i8"), ("u8", "i8"), ("i16", "i8"), ("i16", "i16")]
MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "k.h"
static int wrong;
static uint32_t seed = 1;
static uint32_t next(void) { seed = seed * 1664525u + 1013904223u; return seed >> 8; }
static void *space(long bytes) { void *p = malloc((size_t)bytes + 64); memset(p, 0x5a, (size_t)bytes + 64); return p; }
static void differs(const char *name, long n, long k, long m, int how)
{
    if (wrong++ < 10) printf("%s of %ld, %ld, %ld, values %d\\n", name, n, k, m, how);
}
/* Least, most, or any. */
#define FILL(T, x, count, low, high, how) \\
    for (long i = 0; i < (count); i++) (x)[i] = (T)((how) == 0 ? (low) : (how) == 1 ? (high) : (long)(next() & 65535));
#define SUM(n, k, m, X, W, TERM) \\
    uint32_t *e = space((n) * (m) * 4); \\
    for (long i = 0; i < (n); i++) for (long j = 0; j < (m); j++) { \\
        uint32_t sum = 0; \\
        for (long l = 0; l < (k); l++) sum += TERM; \\
        e[i * (m) + j] = sum; }
#define TERM_OF(x, y) ((uint32_t)(int32_t)(x) * (uint32_t)(int32_t)(y))
#define BEGIN(NAME, A, B, LA, HA, LB, HB, xs, ws, ys) \\
    A *X = space((xs) * sizeof(A)); B *W = space((ws) * sizeof(B)); int32_t *Y = space((ys) * 4); \\
    const char *name = #NAME; long n_ys = (ys); \\
    FILL(A, X, xs, LA, HA, how % 3) FILL(B, W, ws, LB, HB, how / 3)
#define END(...) if (memcmp(Y, e, (size_t)n_ys * 4)) differs(name, __VA_ARGS__, how); free(X); free(W); free(Y); free(e);
#define WS space_of_ws, sizeof space_of_ws
static unsigned char space_of_ws[1 << 24];
"""
CASE = """
static void {f}_{a}_{b}_of(long n, long k, long m, int how)
{{
    BEGIN({f}_{a}_{b}, {A}, {B}, {la}, {ha}, {lb}, {hb}, {xs}, {ws}, {ys})
    {before}
    if ({f}_{a}_{b}({args}) != TDSL_OK) differs("call", n, k, m, how);
    {sums}
    {after}
    END(n, k, m)
}}
"""
FORMS = {
    "nn": dict(args="n, k, m, X, W, Y, WS", sums="SUM(n, k, m, X, W, TERM_OF(X[i * k + l], W[l * m + j]))"),
    "tt": dict(args="k, n, m, X, W, Y, WS", sums="SUM(n, k, m, X, W, TERM_OF(X[l * n + i], W[j * k + l]))"),
    "fixed": dict(args="X, W, Y, WS", sums="SUM(n, k, m, X, W, TERM_OF(X[i * k + l], W[l * m + j]))"),
    "cut": dict(args="X, W, Y, WS", sums="SUM(n, k, m, X, W, TERM_OF(X[i * k + l], W[l * m + j]))"),
    "batch": dict(args="3, n, k, m, X, W, Y, WS", xs="3 * n * k", ws="3 * k * m", ys="3 * n * m",
                  sums="SUM(3 * n, k, m, X, W, TERM_OF(X[i * k + l], W[i / n * k * m + l * m + j]))"),
    "labels": dict(args="n, 7, k, m, X, W, Y, WS", xs="n * 7 * k", ws="k * 7 * m",
                   sums="SUM(n, 7 * k, m, X, W, TERM_OF(X[i * 7 * k + l], W[(l % k * 7 + l / k) * m + j]))"),
    "scaled": dict(args="n, k, m, X, W, s, (float *)Y, WS", sums="SUM(n, k, m, X, W, TERM_OF(X[i * k + l], W[l * m + j]))",
                   before="float *s = space(m * 4); for (long j = 0; j < m; j++) s[j] = (float)(j % 5) * 0.5f - 1;",
                   after="for (long i = 0; i < n * m; i++) { const float y = (float)(int32_t)e[i] * s[i % m]; "
                         "memcpy(&e[i], &y, 4); } free(s);"),
    "added": dict(args="n, k, m, X, W, Y, WS", sums="SUM(n, k, m, X, W, TERM_OF(X[i * k + l], W[l * m + j]))",
                  before="for (long i = 0; i < n * m; i++) Y[i] = (int32_t)i - 9;",
                  after="for (long i = 0; i < n * m; i++) e[i] = 3 * e[i] + (uint32_t)i - 9;"),
    "zero": dict(args="n, k, m, X, W, z, Y, WS", before="int32_t z = 117;",
                 sums="SUM(n, k, m, X, W, TERM_OF((int32_t)X[i * k + l] - z, W[l * m + j]))"),
}
SIZES = [(n, k, m) for k in (0, 1, 2, 3, 4, 5, 63, 64, 65) for n, m in ((19, 41),)] + \
    [(1, 9, 70), (70, 10, 1), (13, 1000, 33), (12, 256, 32), (131, 259, 67), (2, 130, 64), (7, 66, 35), (0, 5, 9), (40, 8, 4)]
LONG = (9, 140000, 33)  # -128 * -128, added so often, is beyond 2^31
ONCE = {"fixed": [(37, 99, 41)], "cut": [(61, 1000, 33)]}
PLANTS = [
    ("the sign of the correction", r"(x##r##_\d) -= s\[r\]", r"\1 += s[r]", True),
    ("a correction that is left out", r"(x##r##_0) -= s\[r\];", r"(void)s[r];", True),
    ("ones behind the last line", r"(_pack\[[^;=]*\]) = \((\w+)\)0;", r"\1 = (\2)1;", False),
    ("the last group", r"\((\w+) \+ 3\) / 4, (\(const int32_t)", r"\1 / 4, \2", False),
    ("the last pair", r"\((\w+) \+ 1\) / 2, (\(const int32_t)", r"\1 / 2, \2", False),
]


def bounds(t):
    bits = int(t[1:])
    return (0, 2 ** bits - 1) if t[0] == "u" else (-2 ** (bits - 1), 2 ** (bits - 1) - 1)


def case(form, a, b):
    f = dict(xs="n * k", ws="k * m", ys="n * m", before="", after="")
    f.update(FORMS[form])
    (la, ha), (lb, hb) = bounds(a), bounds(b)
    return CASE.format(f=form, a=a, b=b, A=TYPES[a], B=TYPES[b], la=la, ha=ha, lb=lb, hb=hb, **f)


def main_text(calls):
    text = MAIN + "".join(case(f, a, b) for f, a, b in dict.fromkeys(call[:3] for call in calls)) + "int main(void)\n{\n"
    for f, a, b, sizes in calls:
        for n, k, m in sizes:
            text += f"    for (int how = 0; how < 9; how++) {f}_{a}_{b}_of({n}, {k}, {m}, how);\n"
    return text + "    return wrong != 0;\n}\n"


def all_calls(few):
    calls = []
    for a in TYPES:
        for b in TYPES:
            sizes = SIZES[::2] if few and "16" in a + b else SIZES
            calls += [("nn", a, b, sizes), ("tt", a, b, sizes)]
    for a, b in SINGLES:
        calls += [(f, a, b, ONCE.get(f, [(19, 9, 41), (30, 100, 64)])) for f in FORMS if f not in ("nn", "tt")]
    return calls if few else calls + [("nn", "i8", "i8", [LONG])]


def rows():
    """Of instruction sets that this processor has."""
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        flags = set(f.read().split())
    needs = {"plain": [], "vectors": [], "avx2": ["avx2", "fma"], "avxvnni": ["avx2", "fma", "avx_vnni"],
             "avx512": ["avx512f", "avx512dq", "avx512vl", "avx512bw"], "avx512vnni": ["avx512bw", "avx512vl", "avx512dq", "avx512_vnni"]}
    return [row for row, need in needs.items() if flags.issuperset(need)] if os.uname().machine == "x86_64" else ["plain", "vectors"]


def build(folder, cc, flags, text="k.c"):
    steps.run(f"{cc} {flags}", [*cc.split(), *flags.split(), text, "main.c", "-o", "app", "-lm"], cwd=folder)


def passes(folder, *runner):
    got = steps.subprocess.run([*runner, "./app"], cwd=folder, capture_output=True, text=True, check=False)
    return got.returncode == 0, got.stdout


def plants(folder, cc, flags):
    """Is each defect found?"""
    with open(os.path.join(folder, "k.c"), encoding="utf-8") as f:
        text = f.read()
    for name, old, new, of_dots in PLANTS:
        if of_dots and "vnni" not in flags:
            continue
        with open(os.path.join(folder, "planted.c"), "w", encoding="utf-8") as f:
            planted, count = re.subn(old, new, text)
            f.write(planted)
        if count == 0:
            return f"there is nothing to plant {name} in"
        build(folder, cc, flags, "planted.c")
        if passes(folder)[0]:
            return f"{name}: not found"
    return ""


def without(folder, tdslc):
    """A machine without such instructions has panels of i32."""
    for number in ("0", "1e-11"):
        with open(os.path.join(folder, "machine"), "w", encoding="utf-8") as f:
            f.write(f"time.dot {number}\n")
        text = steps.run("tdslc", [tdslc, "-w", "--machine=machine", "--dump=legal", "k.tdsl"], cwd=folder)
        if ("groups 4" in text) != (number != "0"):
            return f"time.dot {number}: {text.count('groups')} panels in groups"
    return ""


def check(folder, tdslc, few):
    calls = all_calls(few)
    with open(os.path.join(folder, "k.tdsl"), "w", encoding="utf-8") as f:
        f.write(HEAD + "".join(PAIR.format(a=a, b=b) for a in TYPES for b in TYPES))
        f.write("".join(SINGLE.format(a=a, b=b) for a, b in SINGLES))
    with open(os.path.join(folder, "main.c"), "w", encoding="utf-8") as f:
        f.write(main_text(calls))
    steps.run("tdslc", [tdslc, "-w", "k.tdsl", "-o", "k.c"], cwd=folder)
    problem = without(folder, tdslc)
    if problem:
        return problem
    flags = "-O1 -Wall -Wextra -Wno-type-limits -Wno-sign-compare"
    builds = [(cc, f"{flags}{isa}") for cc in filter(shutil.which, ("gcc", "clang"))
              for isa in [""] + [f" -DTDSL_ISA={row}" for row in rows()]]
    for cc, isa in builds[:1] if few else builds:
        build(folder, cc, isa)
        good, out = passes(folder)
        if not good:
            return f"{cc} {isa}:\n{out}"
    if not few and "avx512vnni" in rows() and shutil.which("gcc"):
        problem = plants(folder, "gcc", f"{flags} -DTDSL_ISA=avx512vnni")
        if problem:
            return problem
    cross = "aarch64-linux-gnu-gcc"
    for isa in ("", " -march=armv8.2-a+dotprod") if not few and shutil.which(cross) and shutil.which("qemu-aarch64") else ():
        build(folder, cross, f"{flags} -static{isa}")
        good, out = passes(folder, "qemu-aarch64")
        if not good:
            return f"{cross} {isa}:\n{out}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tdslc", required=True)
    parser.add_argument("--few", action="store_true")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        problem = check(folder, os.path.abspath(a.tdslc), a.few)
    print(problem or "passed")
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
