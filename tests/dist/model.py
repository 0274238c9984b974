#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Predicted and measured time of kernels on two ranks that are threads, as a table (bench_ranks.c); fails where they differ by more than a quarter, or
a call costs 5 us, in each of some tries: on a machine that does other things times are upper bounds. CPU times are compared.

usage: model.py TDSLC BENCH CC [--repeat=N] [--tries=N]"""
import argparse
import subprocess
import tempfile
from pathlib import Path

from compiled import compiled, dims_of

PROGRAM = """
dim o ~ 16, v ~ 128, x ~ 384;
dim n ~ 144, m ~ 1024, k ~ 1024, l ~ 1024;

kernel mp2(B: f64[o, v, x] shard(o), eo: f64[o], ev: f64[v]) -> (E: f64) {
    T[i,a,j,b] = B[i,a,P] * B[j,b,P];
    E = sum[i,j,a,b](T[i,a,j,b] * (2*T[i,a,j,b] - T[i,b,j,a]) / (eo[i] + eo[j] - ev[a] - ev[b] - 100));
}
kernel gemm(A: f64[m, k] shard(m), B: f64[k, l] shard(l)) -> (C: f64[m, l] shard(m)) { C[i,j] = A[i,p] * B[p,j]; }
kernel aomo(E: f64[n, n, x] shard(x), Co: f64[n, o] shard(n), Cv: f64[n, v]) -> (B: f64[o, v, x] shard(x)) {
    B = einsum("mi,na,mnP->iaP", Co, Cv, E);
}
kernel small(A: f64[m, k] shard(m), B: f64[k, l]) -> (C: f64[m, l] shard(m)) { C[i,j] = A[i,p] * B[p,j]; }
"""
CALLS = {"mp2": {"o": 16, "v": 128, "x": 384}, "gemm": {"m": 1024, "k": 1024, "l": 1024}, "aomo": {"n": 144, "o": 16, "v": 128, "x": 384}, "small": {"m": 4, "k": 4, "l": 4}}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tdslc")
    parser.add_argument("bench")
    parser.add_argument("cc")
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--tries", type=int, default=1)
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "model.tdsl").write_text(PROGRAM)
        made, lines = compiled(a.tdslc, a.cc, folder / "model.tdsl", optimize="-O2"), []
        for symbol, sizes in CALLS.items():
            dims = dims_of(made, symbol)
            lines.append(" ".join([symbol, str(len(dims)), *(str(sizes[d]) for d in dims)]))
        for _ in range(a.tries):
            done = subprocess.run([a.bench, made, str(a.repeat)], input="\n".join(lines) + "\n", text=True, stdout=subprocess.PIPE)
            print(done.stdout, flush=True)
            if done.returncode == 0:
                return
    raise SystemExit("predicted and measured time differ by more than a quarter")


main()
