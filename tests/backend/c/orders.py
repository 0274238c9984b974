#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Contractions that are read in several orders, so large and cheap that one is computed for each order: as C they give what the
interpreter and one value in memory give, to the bit, since all values are small whole numbers.

    orders.py --tdslc PATH --tdsl-run PATH
"""
import argparse
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import steps  # noqa: E402

PROGRAM = """dim n ~ 48, m ~ 8, o ~ 4;
kernel cyclic(A: f64[n, n, m], B: f64[n, m]) -> (R: f64[n, n, n]) {
    X[a,b,c] = A[a,b,d] * B[c,d];
    R[a,b,c] = X[a,b,c] + X[b,c,a] - 2 * X[c,a,b];
}
kernel folded(A: f64[n, n, m], B: f64[n, m], v: f64[n]) -> (E: f64, F: f64[n]) {
    X[a,b,c] = A[a,b,d] * B[c,d];
    Y[a,b,c] = X[a,b,c] * v[c] - X[b,a,c];
    E = sum[a,b,c](Y[a,b,c] * (Y[a,b,c] - Y[c,b,a]));
    F[b] = sum[a,c](Y[a,b,c] + X[c,b,a]);
}
kernel triples(V: f64[o, n, n, m], T: f64[o, o, n, m]) -> (E: f64) {
    W[i,j,k,a,b,c] = V[i,a,b,d] * T[k,j,c,d] + V[j,b,c,d] * T[i,k,a,d] + V[k,c,a,d] * T[j,i,b,d];
    E = sum[i,j,k,a,b,c](W[i,j,k,a,b,c] * W[i,j,k,a,b,c]);
}
"""
CASES = [("cyclic", "AB", dict(n=48, m=8)), ("cyclic", "AB", dict(n=53, m=3)), ("folded", "ABv", dict(n=48, m=8)),
         ("triples", "VT", dict(o=3, n=12, m=4)), ("triples", "VT", dict(o=4, n=11, m=5)), ("cyclic", "AB", None),
         ("folded", "ABv", None)]


def output(command):
    return steps.run("run", command)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tdslc", required=True)
    parser.add_argument("--tdsl-run", required=True)
    given = parser.parse_args()
    failed = several = 0
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "orders.tdsl"
        program.write_text(PROGRAM)
        for kernel, names, size in CASES:
            bound = [f"-D{d}={n}" for d, n in (size or {}).items()]
            common = [str(program), f"--kernel={kernel}", "-w"]
            nest = output([given.tdslc, *common, *bound, "--dump=nest"])
            several += nest.count(" as X") > 1
            if size is None:  # open in the C, other sizes than it is planned for
                dump = Path(folder) / "open.nest"
                dump.write_text(nest)
                common[0] = str(dump)
                bound = ["-Dn=19", "-Dm=7"]
            values = ["--checksum", *bound] + [f"{name}=fill" for name in names]
            expected = output([given.tdsl_run, *common, *values, "--target=interp"])
            forms = [["--target=c"], ["--target=c", "--cflags=-O2 -DTDSL_ISA=plain"]]
            forms += [["--target=c", "--no-fuse"]] if size is not None else []
            for form in forms:
                if output([given.tdsl_run, *common, *values, *form]) != expected:
                    failed += 1
                    print(f"FAILED {kernel} {size} {form}")
    print(f"{len(CASES)} kernels, {several} with a value for each order, {failed} failed")
    return failed > 0 or several < 5


if __name__ == "__main__":
    sys.exit(main())
