# SPDX-License-Identifier: Apache-2.0
"""Fused kernels at the sizes that matter: how long they are predicted to take, in how many lines, without a value in memory, and that the
nest was priced within a third of that.

    fused.py --bin DIR"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
from quick import share  # noqa: E402

ATTENTION = ("kernel k(Q: bf16[%s,128], K: bf16[%s,128], V: bf16[%s,128]) -> (O: bf16[%s,128]) { S[%sq,k] = Q[%sq,d] * K[%sk,d] / 11.3137; "
             "W[%sq,k] = exp(S[%sq,k] - max[l](S[%sq,l])); O[%sq,d] = W[%sq,k] * V[%sk,d] / sum[l](W[%sq,l]); }")
CAUSAL = ("kernel k(Q: bf16[8,2048,128], K: bf16[8,2048,128], V: bf16[8,2048,128]) -> (O: bf16[8,2048,128]) { S[h,q,k] = %s; "
          "M[h,q] = %s(S[h,q,k]); W[h,q,k] = %s; O[h,q,d] = %s(W[h,q,k] * V[h,k,d]) / %s(W[h,q,k]); }")
SCORES, EXP, BELOW = "0.088 * sum[d](Q[h,q,d] * K[h,k,d])", "exp(S[h,q,k] - M[h,q])", "index(k) <= index(q)"
# One attention in three spellings, one of another layout, a sum over short rows, and a matrix times a vector: sums under a condition, weights that are 0, and scores that are -inf. The nest counts all of them.
SPELLINGS = [
    ("causal sums", CAUSAL % (SCORES, "max[k <= q]", EXP, "sum[k <= q]", "sum[k <= q]"), 590, 330),
    ("causal weights", CAUSAL % (SCORES, "max[k <= q]", f"select({BELOW}, {EXP}, 0)", "sum[k]", "sum[k]"), 590, 330),
    ("causal scores", CAUSAL % (f"select({BELOW}, {SCORES}, -inf)", "max[k]", EXP, "sum[k]", "sum[k]"), 590, 330),
    ("attention of heads behind positions", "kernel k(Q: bf16[4,1024,8,64], K: bf16[4,1024,8,64], V: bf16[4,1024,8,64]) -> (O: bf16[4,1024,8,64]) "
     "{ S[b,h,q,k] = Q[b,q,h,d] * K[b,k,h,d] * 0.125; W[b,h,q,k] = exp(S[b,h,q,k] - max[l](S[b,h,q,l])); "
     "O[b,q,h,d] = sum[k](W[b,h,q,k] * V[b,k,h,d]) / sum[l](W[b,h,q,l]); }", 760, 130),
    ("sum over short rows", "kernel k(A: bf16[32768,64], B: bf16[32768,64]) -> (C: bf16[64,64]) { C[i,j] = A[k,i] * B[k,j]; }", 30, 40),
    ("states of linear attention", "kernel k(K: bf16[32,1024,64], V: bf16[32,1024,64]) -> (S: f32[32,64,64]) { S[n,i,j] = K[n,t,i] * V[n,t,j]; }", 31, 40),
    ("a chain of steps", "kernel k(x: f32[64,64,64], U: f32[64,64], V: f32[64,64], z: f32[64,64]) -> (y: f32[64,64]) "
     "{ s[-1,b,h] = z[b,h]; s[t,b,j] = tanh(sum[d](x[t,b,d] * U[d,j]) + sum[k](s[t - 1,b,k] * V[k,j])); y[b,h] = s[63,b,h]; }", 100, 70),
    ("matrix times vector", "kernel k(A: f32[4096,4096], x: f32[4096]) -> (y: f32[4096]) { y[i] = A[i,j] * x[j]; }", 360, 60),
]
# (name, program, microseconds at most, lines at most)
CASES = [
    ("attention", ATTENTION % (*["8,2048"] * 4, *["h,"] * 10), 625, 100),
    ("attention of many keys", ATTENTION % ("256", "32768", "32768", "256", *[""] * 10), 225, 200),
    ("product of two types", "kernel k(A: f32[256,2048], B: bf16[2048,128]) -> (C: f32[256,128]) { C[i,j] = A[i,k] * B[k,j]; }", 25, 60),
    ("grouped decode", "kernel k(Q: bf16[8,4,128], K: bf16[8,8192,128], V: bf16[8,8192,128]) -> (O: bf16[8,4,128]) { S[h,r,k] = Q[h,r,d] * K[h,k,d] * 0.088388; "
     "W[h,r,k] = exp(S[h,r,k] - max[l](S[h,r,l])); O[h,r,d] = W[h,r,k] * V[h,k,d] / sum[l](W[h,r,l]); }", 135, 125),
    ("softmax", "kernel k(X: bf16[4096,4096]) -> (Y: bf16[4096,4096]) "
     "{ E[i,j] = exp(X[i,j] - max[l](X[i,l])); Y[i,j] = E[i,j] / sum[l](E[i,l]); }", 300, 90),
    ("norms of sums of rows", "kernel k(X: f32[512,1024], Z: f32[512,1024]) -> (Y: f32[512,1024]) "
     "{ S[i,j] = X[i,j] + Z[i,j]; R[i] = rsqrt(sum[j](S[i,j] * S[i,j]) / 1024); Y[i,j] = S[i,j] * R[i]; }", 30, 45),
    ("layer norm and product", "kernel k(X: bf16[2048,1024], g: bf16[1024], b: bf16[1024], W: bf16[1024,4096]) -> (Y: bf16[2048,4096]) "
     "{ m[i] = sum[k](X[i,k]) / 1024; v[i] = sum[k]((X[i,k] - m[i]) * (X[i,k] - m[i])) / 1024; "
     "N: bf16[i,k] = (X[i,k] - m[i]) / sqrt(v[i] + 1e-5) * g[k] + b[k]; Y[i,j] = N[i,k] * W[k,j]; }", 285, 110),
]


# The same for trn1, in f32: what read its weights again in each of 32 programs, and a result of two pieces.
TRN1 = [
    ("gated layer", "kernel k(X: f32[4096,1024], U: f32[1024,3072], D: f32[3072,1024], G: f32[1024,3072]) -> (Y: f32[4096,1024]) "
     "{ u[i,k] = X[i,j] * U[j,k]; g[i,k] = X[i,j] * G[j,k]; a[i,k] = g[i,k] / (1 + exp(-g[i,k])) * u[i,k]; Y[i,j] = a[i,k] * D[k,j]; }", 4600, 150),
    ("pieces", "kernel k(X: f32[128,262144], C: f32[64,262144], S: f32[64,262144]) -> (Y: f32[128,262144]) "
     "{ Y[d,n] = X[d,n] * C[d,n] - X[d + 64,n] * S[d,n]; Y[d + 64,n] = X[d,n] * S[d,n] + X[d + 64,n] * C[d,n]; }", 2600, 90),
    # Chains from engine to engine and back, of which two iterations are interleaved.
    ("silu", "kernel k(X: f32[4096,7168]) -> (Y: f32[4096,7168]) { Y[i,j] = X[i,j] / (1 + exp(-X[i,j])); }", 820, 40),
    ("adamw", "kernel k(T: f32[10944,2048], G: f32[10944,2048], M: f32[10944,2048], V: f32[10944,2048]) -> (Y: f32[10944,2048]) "
     "{ n[i,j] = M[i,j] * 0.9 + G[i,j] * 0.1; w[i,j] = V[i,j] * 0.999 + G[i,j] * G[i,j] * 0.001; "
     "Y[i,j] = T[i,j] * (1 - 1e-5) - 0.01 * n[i,j] / (sqrt(w[i,j]) + 1e-8); }", 2300, 130),
]


def problems(options, program, most_us, most_lines, target="trn2", priced=True):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "p.tdsl")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(program)
        run = subprocess.run([os.path.join(options.bin, "tdslc"), path, f"--target={target}", "-w", "--report=json", "-o", os.path.join(folder, "o")],
                             capture_output=True, text=True, check=True)
        kernel = json.loads(run.stdout)["kernels"][0]
    printed = kernel["model"]["printed"]["total_seconds"] * 1e6
    chosen = kernel["model"]["chosen"]["total_seconds"] * 1e6
    if printed > most_us:
        yield f"{printed:.0f} us, at most {most_us} were wanted"
    if kernel["text_lines"] > most_lines:
        yield f"{kernel['text_lines']} lines, at most {most_lines} were wanted"
    if kernel["model"]["printed"]["bytes_spilled"] > 0 and target == "trn2":
        yield "a value is in memory"
    if kernel["model"]["compulsory_bytes"] != kernel["bytes_compulsory"]:
        yield f"{kernel['model']['compulsory_bytes']} bytes are compulsory by the model, {kernel['bytes_compulsory']} all of its arguments and results"
    if priced and not 0.67 < chosen / printed < 1.5:
        yield f"priced at {chosen:.0f} us, and takes {printed:.0f}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    options = parser.parse_args()
    failed = 0
    for name, *case in share(CASES + [(*row, "trn1") for row in TRN1] + [(*row, "trn2", False) for row in SPELLINGS], 4):
        found = list(problems(options, *case))
        failed += len(found)
        print("\n".join(f"FAILED {name}: {p}" for p in found) or f"passed {name}")
    return 1 if failed else 0


sys.exit(main())
