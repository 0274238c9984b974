# SPDX-License-Identifier: Apache-2.0
"""Functions of our own at every f32, and at many f64, against libm with more digits: units in the last place they are off at most, and the
same bits for every instruction set and compiler, wherever an element stands in a vector.

    every_f32.py --tdslc PATH [--step N]        every Nth f32 only
"""
import argparse
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import steps  # noqa: E402

NAMES = ("exp", "log", "tanh", "erf", "sigmoid", "gelu", "rsqrt", "sin", "cos", "exp2", "expm1", "log2", "log1p", "atan")
BOUND = {"exp": (0.8, 0.8), "log": (0.8, 0.9), "tanh": (0.51, 1), "erf": (0.52, 2.5), "sigmoid": (3, 3), "gelu": (2, 6), "rsqrt": (1.5, 1.5),
         "sin": (0.61, 0.8), "cos": (0.61, 0.8), "exp2": (0.51, 1), "expm1": (0.51, 1.7), "log2": (0.51, 1.3), "log1p": (0.51, 1.5),
         "atan": (0.51, 1.7)}
HUGE = ("sin", "cos")  # f64: tried near multiples of pi/2, and at operands of every size
MAIN = """
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "k.h"
#define N 65521
typedef long double real;
static double exact_exp(double x) { return exp(x); }
static double exact_log(double x) { return log(x); }
static double exact_tanh(double x) { return tanh(x); }
static double exact_erf(double x) { return erf(x); }
static double exact_sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double exact_gelu(double x) { return 0.5 * x * erfc(-x * sqrt(0.5)); }
static double exact_rsqrt(double x) { return 1 / sqrt(x); }
static double exact_sin(double x) { return sin(x); }
static double exact_cos(double x) { return cos(x); }
static double exact_exp2(double x) { return exp2(x); }
static double exact_expm1(double x) { return expm1(x); }
static double exact_log2(double x) { return log2(x); }
static double exact_log1p(double x) { return log1p(x); }
static double exact_atan(double x) { return atan(x); }
static real long_exp2(real x) { return exp2l(x); }
static real long_expm1(real x) { return expm1l(x); }
static real long_log2(real x) { return log2l(x); }
static real long_log1p(real x) { return log1pl(x); }
static real long_atan(real x) { return atanl(x); }
static real long_sin(real x) { return sinl(x); }
static real long_cos(real x) { return cosl(x); }
static real long_exp(real x) { return expl(x); }
static real long_log(real x) { return logl(x); }
static real long_tanh(real x) { return tanhl(x); }
static real long_erf(real x) { return erfl(x); }
static real long_sigmoid(real x) { return 1 / (1 + expl(-x)); }
static real long_gelu(real x) { return 0.5L * x * erfcl(-x * sqrtl(0.5L)); }
static real long_rsqrt(real x) { return 1 / sqrtl(x); }
static uint64_t hash;
static void mix(uint64_t bits) { hash = (hash ^ bits) * 0x100000001b3u; }
/* In units of the last place of the exact value; of gelu, which cancels, of its operand. */
static double off(real got, real exact, real scale, int digits, int least, real most)
{
    int e;
    if (exact != exact || got != got) return (exact != exact) == (got != got) ? 0 : 1e9;
    if (fabsl(exact) > most) return got == exact || fabsl(got) >= most ? 0 : 1e9;
    frexpl(scale, &e);
    return (double)(fabsl(got - exact) / ldexpl(1, (e < least ? least : e) - digits));
}
#define CASE(name, special, huge)                                                              \\
    static void run_##name(uint64_t step)                                                      \\
    {                                                                                          \\
        static float x[N], y[N];                                                               \\
        static double u[N], v[N];                                                              \\
        double worst = 0, worse = 0;                                                           \\
        hash = 0xcbf29ce484222325u;                                                            \\
        for (uint64_t at = 0, n = 0; at < 1ull << 32; n = 0) {                                 \\
            for (; n < N && at < 1ull << 32; at += step, n++) {                                \\
                uint32_t bits = (uint32_t)at;                                                  \\
                memcpy(&x[n], &bits, 4);                                                       \\
            }                                                                                  \\
            if (name##_f32((int64_t)n, x, y, NULL, 0) != TDSL_OK) exit(1);                     \\
            for (uint64_t i = 0; i < n; i++) {                                                 \\
                uint32_t bits;                                                                 \\
                memcpy(&bits, &y[i], 4);                                                       \\
                mix(y[i] != y[i] ? 1 : bits);                                                  \\
                double e = exact ? exact_##name(x[i]) : 0;                                     \\
                if (exact && !((float)e <= y[i] && (float)e >= y[i])) { /* else at most 0.5 */ \\
                    double o = special && (e < 0x1p-126 || e != e) ? 0                             \\
                             : off(y[i], e, #name[0] == 'g' ? x[i] : e, 24, -125, 0x1.ffffffp127); \\
                    worst = o > worst ? o : worst;                                             \\
                }                                                                              \\
            }                                                                                  \\
        }                                                                                      \\
        srand48(7);                                                                            \\
        for (int round = 0; round < 40; round++) {                                             \\
            for (int i = 0; i < N; i++) {                                                      \\
                u[i] = (drand48() - 0.3) * (round % 4 == 0 ? 1000 : round % 4 == 1 ? 20 : 3);  \\
                u[i] = round % 4 == 3 ? ldexp(u[i], -(i % 60)) : u[i];                         \\
                if (huge && round % 4 == 2) u[i] = (i * 40 + round) * 1.57079632679489662;     \\
                if (huge && round % 4 == 0) u[i] = ldexp(u[i], i % 1000);                      \\
            }                                                                                  \\
            if (name##_f64(N, u, v, NULL, 0) != TDSL_OK) exit(1);                              \\
            for (int i = 0; i < N; i++) {                                                      \\
                uint64_t bits;                                                                 \\
                memcpy(&bits, &v[i], 8);                                                       \\
                mix(v[i] != v[i] ? 1 : bits);                                                  \\
                real e = long_##name(u[i]);                                                    \\
                double o = special && (e < 0x1p-1022L || e != e) ? 0                             \\
                         : off(v[i], e, #name[0] == 'g' ? u[i] : e, 53, -1021, 0x1.fffffffffffff8p1023L); \\
                worse = exact && o > worse ? o : worse;                                        \\
            }                                                                                  \\
        }                                                                                      \\
        printf(#name " %.3f %.3f %016llx\\n", worst, worse, (unsigned long long)hash);          \\
    }
static int exact;
@CASES@
int main(int argc, char **argv)
{
    uint64_t step = strtoull(argv[1], NULL, 10);
    exact = argc > 2;
@CALLS@
    return 0;
}
"""


def rows():
    """(compiler, flags) of what this machine runs."""
    path = pathlib.Path("/proc/cpuinfo")
    cpu = path.read_text(encoding="utf-8") if path.exists() else ""
    sets = ["plain", "vectors"] + [s for s, flag in (("avx2", " avx2"), ("avx512", " avx512vl")) if flag in cpu]
    return [(cc, f"-DTDSL_ISA={s}") for cc in ("gcc", "clang") for s in sets]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tdslc", required=True)
    parser.add_argument("--step", type=int, default=1)
    a = parser.parse_args()
    tdslc, wrong, seen = os.path.abspath(a.tdslc), [], None
    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(folder)
        (here / "k.tdsl").write_text("".join(f"kernel {f}_{t}(x: {t}[n]) -> (y: {t}[n]) {{ y[i] = {f}(x[i]); }}\n" for f in NAMES for t in ("f32", "f64")))
        text = MAIN.replace("@CASES@", "\n".join(f"CASE({f}, {int(f == 'sigmoid')}, {int(f in HUGE)})" for f in NAMES))
        (here / "main.c").write_text(text.replace("@CALLS@", "\n".join(f"    run_{f}(step);" for f in NAMES)))
        steps.run("tdslc", [tdslc, "-w", "k.tdsl", "-o", "k.c"], cwd=folder)
        for cc, flag in rows():
            steps.run("compile", [cc, "-O2", "-ffp-contract=off", flag, "k.c", "main.c", "-o", "every", "-lm"], cwd=folder)
            printed = steps.run(f"functions of {cc} {flag}", ["./every", str(a.step), *([] if seen else ["exact"])], timeout=None, cwd=folder)
            got = {line.split()[0]: line.split()[1:] for line in printed.splitlines()}
            if seen is None:
                print(printed, end="", flush=True)
                wrong += [f"{f} of {t}: {got[f][k]} off" for f in NAMES for k, t in enumerate(("f32", "f64")) if float(got[f][k]) > BOUND[f][k]]
                seen = got
            wrong += [f"{f}: {cc} {flag} has other bits" for f in NAMES if got[f][2] != seen[f][2]]
    print("\n".join(wrong) or "passed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
