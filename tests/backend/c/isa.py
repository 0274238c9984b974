# SPDX-License-Identifier: Apache-2.0
"""What of instruction sets the other tests do not see: multiply-adds are fused whatever the language mode is, or never; NEON's functions run.

    isa.py --tdslc PATH

Exit 77: there is no compiler or emulator for NEON; the rest passed.
"""
import argparse
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import steps  # noqa: E402
from quick import share  # noqa: E402

PROGRAM = """dim m ~ 50, k ~ 60, n ~ 70;
kernel open_{t}(A: {t}[m, k], B: {t}[k, n]) -> (C: {t}[m, n]) {{ C[i,j] = A[i,p] * B[p,j]; }}
kernel fixed_{t}(A: {t}[13, 9], B: {t}[9, 21]) -> (C: {t}[13, 21]) {{ C[i,j] = A[i,p] * B[p,j]; }}
kernel sums_{t}(A: {t}[m, n]) -> (s: {t}, t: {t}[n]) {{ s = sum[i,j](A[i,j] * A[i,j]); t[j] = sum[i](A[i,j]); }}
kernel turned_{t}(A: {t}[m, n]) -> (B: {t}[n, m]) {{ B[j,i] = A[i,j]; }}
kernel wide_{t}(A: {t}[m, 6], B: {t}[6, n]) -> (C: {t}[m, n]) {{ C[i,j] = A[i,p] * B[p,j]; }}
"""
PAIRS = "kernel wide_c64(A: c64[1100, 6], B: c64[6, 4096]) -> (C: c64[1100, 4096]) { C[i,j] = A[i,p] * B[p,j]; }\n"
MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "k.h"
static int wrong;
#define CHECK(T, t, name, M, K, N, ...)                                                        \\
    do {                                                                                       \\
        T *a = malloc((M * K + 1) * sizeof(T)), *b = malloc((K * N + 1) * sizeof(T)),           \\
          *c = malloc((M * N + 1) * sizeof(T)), s = 0, sum = 0;                                 \\
        for (long x = 0; x < M * K; x++) a[x] = (T)(x * 7 % 11 - 4);                            \\
        for (long x = 0; x < K * N; x++) b[x] = (T)(x * 5 % 13 - 6);                            \\
        wrong += name##_##t(__VA_ARGS__ a, b, c, malloc(1 << 22), 1 << 22) != TDSL_OK;          \\
        for (long i = 0; i < M; i++)                                                            \\
            for (long j = 0; j < N; j++) {                                                      \\
                T e = 0;                                                                        \\
                for (long p = 0; p < K; p++) e += a[i * K + p] * b[p * N + j];                  \\
                wrong += c[i * N + j] != e;                                                     \\
            }                                                                                   \\
        wrong += sums_##t(M, K, a, &s, b, malloc(1 << 22), 1 << 22) != TDSL_OK;                 \\
        for (long x = 0; x < M * K; x++) sum += a[x] * a[x];                                    \\
        wrong += s != sum;                                                                      \\
    } while (0)
/* Larger than the last cache, so that it is stored past it; first, last and middle lines begin anywhere. */
#define TURN(T, t, M, N)                                                                       \\
    do {                                                                                       \\
        T *a = malloc((long)M * N * sizeof(T)), *b = malloc((long)M * N * sizeof(T) + 64);      \\
        for (long x = 0; x < (long)M * N; x++) a[x] = (T)(x % 8191);                           \\
        wrong += turned_##t(M, N, a, b + 1, NULL, 0) != TDSL_OK;                                        \\
        for (long j = 0; j < N; j++)                                                           \\
            for (long i = 0; i < M; i++) wrong += b[1 + j * M + i] != a[i * N + j];            \\
    } while (0)
/* The same of products: lines of the result are lines of memory, or not since it begins elsewhere or they are of other lengths. */
#define WIDE(T, t, M, N, FROM, ...)                                                            \\
    do {                                                                                       \\
        T *a = malloc((long)M * 6 * sizeof(T)), *b = malloc(6l * N * sizeof(T)),                \\
          *c = (T *)aligned_alloc(64, ((long)M * N * sizeof(T) + 127) / 64 * 64) + FROM;         \\
        for (long x = 0; x < (long)M * 6; x++) a[x] = (T)(x * 7 % 11 - 4);                      \\
        for (long x = 0; x < 6l * N; x++) b[x] = (T)(x * 5 % 13 - 6);                           \\
        wrong += wide_##t(__VA_ARGS__ a, b, c, malloc(1 << 22), 1 << 22) != TDSL_OK;            \\
        for (long i = 0; i < M; i++)                                                           \\
            for (long j = 0; j < N; j++) {                                                     \\
                T e = 0;                                                                       \\
                for (long p = 0; p < 6; p++) e += a[i * 6 + p] * b[p * N + j];                 \\
                wrong += c[i * N + j] != e;                                                    \\
            }                                                                                  \\
        free(c - FROM);                                                                        \\
    } while (0)
int main(int argc, char **argv)
{
    (void)argv;
    static const long sizes[][3] = {{1, 1, 1}, {12, 5, 32}, {13, 300, 33}, {25, 7, 65}, {5, 64, 3}, {24, 2, 16}};
    for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        long m = sizes[k][0], d = sizes[k][1], n = sizes[k][2];
        CHECK(float, f32, open, m, d, n, m, d, n, );
        CHECK(double, f64, open, m, d, n, m, d, n, );
        CHECK(int32_t, i32, open, m, d, n, m, d, n, );
        CHECK(int64_t, i64, open, m, d, n, m, d, n, );
    }
    if (argc > 1) {
        TURN(float, f32, 2999, 3003);
        TURN(double, f64, 3000, 1501);
        WIDE(float, f32, 2101, 4096, 0, 2101, 4096, );
        WIDE(float, f32, 2101, 4096, 1, 2101, 4096, );
        WIDE(float, f32, 2101, 4104, 0, 2101, 4104, );
        WIDE(float, f32, 2101, 4115, 0, 2101, 4115, );
        WIDE(double, f64, 1100, 4096, 0, 1100, 4096, );
        WIDE(double, f64, 1100, 4096, 1, 1100, 4096, );
        WIDE(int32_t, i32, 2101, 4096, 0, 2101, 4096, );
        WIDE(int64_t, i64, 1100, 4096, 4, 1100, 4096, );
        WIDE(float _Complex, c64, 1100, 4096, 0, );
        WIDE(float _Complex, c64, 1100, 4096, 4, );
    }
    CHECK(float, f32, fixed, 13, 9, 21, );
    CHECK(double, f64, fixed, 13, 9, 21, );
    CHECK(int32_t, i32, fixed, 13, 9, 21, );
    CHECK(int64_t, i64, fixed, 13, 9, 21, );
    return wrong != 0;
}
"""
FUSED = {"x86": "vfmadd", "aarch64": "fmla"}


def compile_to(folder, cc, flags, *args):
    steps.run("compile", [*cc.split(), *flags.split(), *args], cwd=folder)


def fused(folder, cc, flags):
    """Are there fused multiply-adds in what is made of the kernels?"""
    compile_to(folder, cc, flags, "-S", "k.c", "-o", "k.s")
    with open(os.path.join(folder, "k.s"), encoding="utf-8") as f:
        text = f.read()
    return any(word in text for word in FUSED.values())


def fusion(folder, cc, target):
    for mode in share(("-std=c11", "-std=gnu17", "-std=c11 -ffp-contract=off"), 1, gate=3):
        if not fused(folder, cc, f"-O2 {mode} {target}"):
            return f"{cc} {mode} {target}: no fused multiply-adds"
        if fused(folder, cc, f"-O2 {mode} {target} -DTDSL_NO_FMA"):
            return f"{cc} {mode} {target}: fused in spite of TDSL_NO_FMA"
    return ""


def runnable(cc):
    """What the processor finds itself; with gcc AVX2 too, where it has that."""
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        flags = f.read().split()
    return ["", " -DTDSL_ISA=avx2"] if cc == "gcc" and "avx2" in flags and "fma" in flags else [""]


def streams(folder, cc, isa):
    """Does what is made of the kernels store past the caches with the widest vectors?"""
    compile_to(folder, cc, f"-O2 -DTDSL_ISA={isa}", "-S", "k.c", "-o", "k.s")
    with open(os.path.join(folder, "k.s"), encoding="utf-8") as f:
        return any("movnt" in line and {"avx2": "%ymm", "avx512": "%zmm"}[isa] in line for line in f)


def check(folder, tdslc):
    with open(os.path.join(folder, "k.tdsl"), "w", encoding="utf-8") as f:
        text = PROGRAM.format(t="f32")
        f.write(text + "".join(PROGRAM.format(t=t).split("\n", 1)[1] for t in ("f64", "i32", "i64")) + PAIRS)
    with open(os.path.join(folder, "main.c"), "w", encoding="utf-8") as f:
        f.write(MAIN)
    steps.run("tdslc", [tdslc, "-w", "k.tdsl", "-o", "k.c"], cwd=folder)
    for cc in ("gcc", "clang"):
        for target in ("-DTDSL_ISA=avx2", "-DTDSL_ISA=avx512") if os.uname().machine == "x86_64" and shutil.which(cc) else ():
            problem = fusion(folder, cc, target)
            if problem:
                return problem
            if not streams(folder, cc, target.rsplit("=", 1)[1]):
                return f"{cc} {target}: nothing is stored past the caches"
    for cc in filter(shutil.which, ("gcc", "clang")):
        for isa in runnable(cc):
            compile_to(folder, cc, f"-O1{isa}", "k.c", "main.c", "-o", "app", "-lm")
            steps.run(f"kernels of {cc}{isa}", ["./app", "large"], cwd=folder)
    cross = "aarch64-linux-gnu-gcc"
    if not shutil.which(cross) or not shutil.which("qemu-aarch64"):
        return None
    for flags in share(("-O2", "-O1 -DTDSL_ISA=vectors", "-O2 -std=c11 -DTDSL_NO_FMA"), 1, gate=2):
        compile_to(folder, cross, flags + " -static", "k.c", "main.c", "-o", "app", "-lm")
        steps.run(f"kernels of {cross} {flags}", ["qemu-aarch64", "./app"], cwd=folder)
    return fusion(folder, cross, "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tdslc", required=True)
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        problem = check(folder, os.path.abspath(a.tdslc))
    print(problem or ("passed" if problem == "" else "no NEON here"))
    return 77 if problem is None else 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
