#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sums of products under conditions on positions: lower and upper triangles, bands wider and narrower than a register tile, conditions on
columns, on both sides, with batches, in each layout, causal attention, products of which a selection reads a part, windows, and rows
that a value selects. What the C computes is what the interpreter computes of the
program as it is written, to the bit, with infinities where conditions leave terms out: values are small whole numbers.

    where.py --tdsl-run PATH
"""
import argparse
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import steps  # noqa: E402
from quick import GATE, QUICK  # noqa: E402

CONDITIONS = ["j <= i", "j >= i + 2", "j <= i, j > i - 70", "j <= i, j > i - 3", "j <= k", "j >= 2*k - 5", "j >= k, j <= i", "j < i + k"]
PRODUCT = """dim n ~ 600, m ~ 300, p ~ 200;
kernel product(A: {t}[n, m], B: {t}[m, p]) -> (R: {t}[n, p]) {{
    X[i,j] = select(index(j) == 3, inf, A[i,j]);
    Y[j,k] = select(index(j) == 20, -inf, B[j,k]);
    C[i,k] = sum[{c}](X[i,j] * Y[j,k]);
    R[i,k] = select(C[i,k] == C[i,k], min(max(C[i,k], -100000), 100000), 99999);
}}
"""
OTHERS = """dim n ~ 600, m ~ 300, p ~ 200;
kernel batch(A: f64[3, n, m], B: f64[3, m, p]) -> (C: f64[3, n, p]) { C[b,i,k] = sum[j <= i + b](A[b,i,j] * B[b,j,k]); }
kernel negated(A: f64[n, m], B: f64[m, p]) -> (C: f64[n, p]) { C[i,k] = sum[j](select(index(j) <= index(i), 0, A[i,j] * B[j,k])); }
kernel turned(A: f32[m, n], B: f32[p, m]) -> (C: f32[n, p]) { C[i,k] = sum[j <= i](A[j,i] * B[k,j]); }
kernel several(A: f64[n, 4, m], B: f64[m, 5, p]) -> (C: f64[n, 4, 5, p]) { C[i,a,b,k] = sum[j <= i](A[i,a,j] * B[j,b,k]); }
kernel scaled(A: f64[n, m], B: f64[m, p], s: f64) -> (C: f64[n, p]) { C[i,k] = s * sum[j < i](A[i,j] * B[j,k]) / 2; }
kernel adds(A: f64[n, m], B: f64[m, p], C: inout f64[n, p]) { C[i,k] += sum[j < i](A[i,j] * B[j,k]); }
kernel masked(A: f64[n, m], B: f64[m, p]) -> (C: f64[n, p]) { L[i,j] = select(index(j) <= index(i), A[i,j], 0); C[i,k] = sum[j](L[i,j] * B[j,k]); }
kernel below(A: f64[n, m], B: f64[m, p]) -> (C: f64[n, p]) { C[i,k] = select(index(k) <= index(i), sum[j](A[i,j] * B[j,k]), -1); }
kernel above(A: f32[n, m], B: f32[p, m]) -> (C: f32[n, p]) { C[i,k] = select(index(k) > 2*index(i) + 3, sum[j](A[i,j] * B[k,j]), 0); }
kernel around(A: f64[3, n, m], B: f64[3, m, p]) -> (C: f64[3, p, n]) {
    C[b,k,i] = select(index(k) <= index(i) + 20 && index(k) > index(i) - index(b), sum[j](A[b,i,j] * B[b,j,k]), 7);
}
kernel pairs(A: f64[n, 4, m], B: f64[m, 5, p]) -> (C: f64[n, 4, 5, p]) { C[i,a,b,k] = select(index(k) <= index(i), sum[j](A[i,a,j] * B[j,b,k]), 0); }
kernel windows(A: f64[n, 3], x: f32[m]) -> (S: f64[n, 3], M: f32[m], P: f64[3, n]) {
    S[i,a] = sum[j <= i, j > i - 20](A[j,a]);
    M[i] = max[j < i, j >= i - 7](x[j]);
    P[a,i] = sum[j <= i, j > i - 5](A[j,a] * A[i,a]);
}
kernel lookup(t: i64[n], W: f32[m, p], k: f64[n, m]) -> (Y: f32[n, p], M: f32[n, p], P: f64[p], S: f32[m, p]) {
    Y[i,e] = sum[j](select(t[i] == index(j), W[j,e], 0));
    M[i,e] = max[j](select(k[i,j] > 2, W[j,e], -inf));
    P[e] = sum[i,j](select(k[i,j] > 3, f64(W[j,e]), 0));
    S[v,e] = sum[i](select(t[i] == index(v), f32(index(e)), 0));
}
kernel whole(A: i64[n, m], B: i64[m, p], t: i32[n], q: i32[m, p]) -> (C: i64[n, p], D: i64[n, p], Y: i32[n, p], Z: bool[n, p]) {
    C[i,k] = select(index(k) <= index(i), sum[j](A[i,j] * B[j,k]), 7);
    D[i,k] = sum[j <= i](A[i,j] * B[j,k]);
    Y[i,e] = sum[j](select(t[i] == i32(index(j)), q[j,e], 0));
    Z[i,e] = any[j](select(t[i] < q[j,0], q[j,e] > 1, false));
}
kernel half(A: bf16[n, m], B: bf16[m, p]) -> (C: f32[n, p]) { C[i,k] = sum[j <= i](f32(A[i,j]) * f32(B[j,k])); }
"""
ATTENTION = """dim h ~ 8, n ~ 1024;
kernel attention(Q: f32[h, n], K: f32[h, n], V: f32[h, n, 24]) -> (O: f32[h, n, 24]) {{
    S[a,q,k] = 1000 * (Q[a,q] + K[a,k]);
    m[a,q] = max[{c}](S[a,q,k]);
    W[a,q,k] = exp(S[a,q,k] - m[a,q]);
    l[a,q] = sum[{c}](W[a,q,k]);
    U[a,k,e] = select(index(k) == extent(n) - 1, inf, V[a,k,e]);
    O[a,q,e] = sum[{c}](W[a,q,k] * U[a,k,e]) + 1000 * l[a,q];
}}
"""
SIZES = [(70, 90, 33), (257, 300, 17), (6, 100, 16), (61, 1, 1), (130, 0, 5), (1, 40, 100)]
ROWS = [None, "plain", "vectors", "avx2"]


def run(tool, program, kernel, size, options):
    values = {"attention": "QKV", "scaled": "AB", "adds": "ABC", "windows": "Ax", "lookup": "tWk", "whole": "ABtq"}.get(kernel, "AB")
    command = [tool, program.name, f"--kernel={kernel}", "-w", "--checksum"] + [f"-D{d}={n}" for d, n in size.items()] + options
    command += [f"{name}=fill" for name in values] + (["s=4"] if kernel == "scaled" else [])
    return steps.run(" ".join(options), command, cwd=program.parent)


def programs(folder):
    for number, condition in enumerate(CONDITIONS):
        path = Path(folder) / f"product{number}.tdsl"
        path.write_text(PRODUCT.format(t="f64" if number % 2 else "f32", c=condition if condition.startswith("j") else f"j, {condition}"))
        yield path, "product"
    path = Path(folder) / "others.tdsl"
    path.write_text(OTHERS)
    for kernel in ["batch", "negated", "turned", "several", "scaled", "adds", "half", "masked", "below", "above", "around", "pairs", "windows", "lookup", "whole"]:
        yield path, kernel
    for number, condition in enumerate(["k <= q", "k >= q", "k <= q, k > q - 9", "k < q"]):
        path = Path(folder) / f"attention{number}.tdsl"
        path.write_text(ATTENTION.format(c=condition))
        yield path, "attention"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tdsl-run", required=True)
    tool = parser.parse_args().tdsl_run
    failed = count = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, (program, kernel) in enumerate(programs(folder)):
            for k, (n, m, p) in list(enumerate(SIZES))[number % 3 * 2::len(SIZES)] if QUICK else list(enumerate(SIZES))[number % 2::4 if GATE else 2]:
                size = {"h": 2, "n": n} if kernel == "attention" else {"n": n, "m": m} if kernel == "windows" else {"n": n, "m": m, "p": p}
                expected = run(tool, program, kernel, size, ["--target=interp", "--without=products,fuse,online"])
                row = ROWS[(number + k) % len(ROWS)]
                flags = f"--cflags=-O{0 if GATE else 2}" + (f" -DTDSL_ISA={row}" if row else "")
                options = [flags, "--no-fuse"] if (number + k) % 2 else [flags]
                got = run(tool, program, kernel, size, options)
                count += 1
                if got != expected:
                    failed += 1
                    print(f"FAILED {program.name}, {kernel}, {size}, {options}\n{expected}{got}")
    print(f"{count - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
