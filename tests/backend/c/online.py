# SPDX-License-Identifier: Apache-2.0
"""Sums in one pass with the maximum that they need, as C: scores are multiples of 1000, infinite or NaN here and there, so that every
exponential is 0 or 1 and the result is that of two passes to the bit, for each row of the table of instruction sets, with extents
around the tiles of the loops, rows of -inf, leading tiles of -inf, one infinity, NaN, no keys.

    online.py --tdslc PATH
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import steps  # noqa: E402
from quick import QUICK, share  # noqa: E402

PROGRAM = """dim s ~ 4096, t ~ 65536, d ~ 64;
kernel pass_{t}(S: {t}[s, t], V: {t}[t, d]) -> (N: {t}[s, d], Z: {t}[s], M: {t}[s]) {{
    M[q] = max[k](S[q,k]);
    W[q,k] = exp(S[q,k] - M[q]);
    Z[q] = sum[k](W[q,k]);
    N[q,e] = W[q,k] * V[k,e];
}}
kernel lse_{t}(S: {t}[s, t]) -> (L: {t}[s]) {{
    m[q] = max[k](S[q,k]);
    L[q] = m[q] + log(sum[k](exp(S[q,k] - m[q])));
}}
"""
MAIN = r"""
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "k.h"
static unsigned long long state = 1;
static unsigned below(unsigned n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % n;
}
static double score(int kind, long k, long t)
{
    double v = 1000.0 * ((double)below(9) - 4);
    unsigned one = below(40);
    switch (kind) {
    case 0: return v;
    case 1: return 1000.0 * (double)(k / 3); /* the maximum grows */
    case 2: return 1000.0 * (double)((t - k) / 3);
    case 3: return 2 * k < t ? -INFINITY : v;
    case 4: return -INFINITY;
    case 5: return one == 0 ? INFINITY : v;
    case 6: return one == 0 ? NAN : one < 9 ? -INFINITY : v;
    default: return k + 1 == t ? 9000 : v; /* the last is the largest */
    }
}
static long wrong;
static void same(double a, double b, const char *what, const long *at)
{
    if (!(a == b || (isnan(a) && isnan(b))) && wrong++ < 5) {
        printf("%s: %g instead of %g (rows %ld, keys %ld, columns %ld, kind %ld)\n", what, b, a, at[0], at[1], at[2], at[3]);
    }
}
#define CHECK(T, n, exp)                                                                       \
    static void check_##n(long s, long t, long d, int kind)                                    \
    {                                                                                          \
        T *S = malloc((s * t + 1) * sizeof(T)), *V = malloc((t * d + 1) * sizeof(T)),           \
          *N = malloc((s * d + 1) * sizeof(T)), *Z = malloc((s + 1) * sizeof(T)),               \
          *M = malloc((s + 1) * sizeof(T)), *L = malloc((s + 1) * sizeof(T));                   \
        const int64_t dims[] = {s, t, d};                                                      \
        const long at[] = {s, t, d, kind};                                                     \
        size_t bytes = pass_##n##_info.workspace_bytes(dims);                               \
        size_t more = lse_##n##_info.workspace_bytes(dims);                                 \
        void *ws = malloc(bytes + more + 64);                                                  \
        for (long k = 0; k < s * t; k++) S[k] = (T)score(kind, k % t, t);                       \
        for (long k = 0; k < t * d; k++)                                                       \
            V[k] = kind == 6 && below(50) == 0 ? (T)NAN : (T)below(7) - 3;                      \
        wrong += pass_##n(s, t, d, S, V, N, Z, M, ws, bytes) != TDSL_OK;                       \
        wrong += lse_##n(s, t, S, L, ws, more) != TDSL_OK;                                     \
        for (long q = 0; q < s; q++) {                                                         \
            T m = -INFINITY, z = 0;                                                            \
            for (long k = 0; k < t; k++) m = S[q * t + k] > m || isnan(S[q * t + k]) ? S[q * t + k] : m; \
            for (long k = 0; k < t; k++) z += exp(S[q * t + k] - m);                            \
            same(m, M[q], "maximum", at);                                                      \
            same(z, Z[q], "sum", at);                                                          \
            double l = (double)m + log((double)z);                                             \
            if (isfinite(l) ? !(fabs(L[q] - l) <= 2e-6 * (fabs(l) + 1)) : 1) same(l, L[q], "logsumexp", at); \
            for (long e = 0; e < d; e++) {                                                     \
                T sum = 0;                                                                     \
                for (long k = 0; k < t; k++) sum += exp(S[q * t + k] - m) * V[k * d + e];       \
                same(sum, N[q * d + e], "product", at);                                        \
            }                                                                                  \
        }                                                                                      \
        free(S); free(V); free(N); free(Z); free(M); free(L); free(ws);                         \
    }
CHECK(float, f32, expf)
CHECK(double, f64, exp)
int main(void)
{
    static const long rows[] = {0, 1, 7, 8, 9, 17}, keys[] = {0, 1, 15, 16, 17, 33, 300}, columns[] = {1, 5, 33};
    for (int s = 0; s < 6; s++)
        for (int t = 0; t < 7; t++)
            for (int d = 0; d < 3; d++)
                for (int kind = 0; kind < 8; kind++) {
                    check_f32(rows[s], keys[t], columns[d], kind);
                    check_f64(rows[s], keys[t], columns[d], kind);
                }
    return wrong != 0;
}
"""
ROWS = ["plain", "vectors", "neon", "avx2", "avx512"]


NESTS = {
    "pass": """nest {
  axis i [%2[a], %4[a], %5[a], %6[a]]
  axis j [%2[b], %4[b], %5[b], %6[b]]
  for i step 8 parallel {
    for j step 16 online {
      %2 result 2
      %4 tile
      %5 result 1
      %6 result 0
    }
  }
}
""",
    "lse": """nest {
  axis i [%1[a], %4[a], %6[a]]
  axis j [%1[b], %4[b]]
  for i step 8 parallel {
    for j step 16 online {
      %1 tile
      %4 tile
    }
    %6 result 0
  }
}
"""}


def nest(folder, tdslc):
    """The program with these nests."""
    with open(os.path.join(folder, "k.tdsl"), "w", encoding="utf-8") as f:
        text = PROGRAM.format(t="f32")
        f.write(text + PROGRAM.format(t="f64").split("\n", 1)[1])
    dump = subprocess.run([tdslc, "-w", "--one-nest", "--dump=nest", "k.tdsl"], cwd=folder, check=True,
                          capture_output=True, text=True).stdout
    parts = re.split(r"^(?=kernel )", dump, flags=re.M)
    with open(os.path.join(folder, "k.nest"), "w", encoding="utf-8") as f:
        f.write(parts[0])
        for part in parts[1:]:
            f.write(part[:part.index("\nnest {") + 1] + NESTS[re.match(r"kernel ([a-z]+)_", part).group(1)])
    subprocess.run([tdslc, "-w", "k.nest", "-o", "k.c"], cwd=folder, check=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tdslc", required=True)
    args = parser.parse_args()
    flags = open("/proc/cpuinfo", encoding="utf-8").read() if os.path.exists("/proc/cpuinfo") else ""
    with tempfile.TemporaryDirectory() as folder:
        nest(folder, os.path.abspath(args.tdslc))
        with open(os.path.join(folder, "main.c"), "w", encoding="utf-8") as f:
            f.write(MAIN)
        for row in share(ROWS, 2):
            if (row == "avx2" and "avx2" not in flags) or (row == "avx512" and "avx512dq" not in flags):
                continue
            steps.run(f"compile row {row}", ["cc", "-O0" if QUICK else "-O1", f"-DTDSL_ISA={row}", "k.c", "main.c", "-o", "run", "-lm"], cwd=folder)
            steps.run(f"run row {row}", ["./run"], cwd=folder)
    print("all rows agree")


if __name__ == "__main__":
    main()
