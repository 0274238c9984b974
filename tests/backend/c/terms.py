#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Contractions that are added up where their sum is, as C of every instruction set that this processor has, against the interpreter:
small integers, so exactly.

usage: terms.py TDSL-RUN [--cc=CC]"""
import pathlib
import platform
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import steps  # noqa: E402

KERNELS = """
kernel update(A: f64[n, k], B: f64[k, n], s: f64, R: inout f64[n, n]) {
    R[i,j] += A[i,p] * B[p,j];
    R[i,j] -= s * A[j,p] * B[p,i];
    R[i,j] -= 2 * A[j,p] * B[p,i];
}
kernel sums(A: f32[n, k], B: f32[k, n], W: f32[n, n]) -> (R: f32[n, n], S: f32[n, n]) {
    R[i,j] = A[i,p] * B[p,j] - A[j,p] * B[p,i];
    S[i,j] = W[i,j] - A[i,p] * B[p,j] + 3 * A[j,p] * B[p,i];
}
kernel parts(A: c128[n, k], B: c128[k, n], D: f64[n, k], R: inout c128[n, n]) {
    R[i,j] -= A[i,p] * B[p,j];
    R[i,j] += 2 * sum[p](conj(A[j,p]) * B[p,i]);
    R[i,j] -= sum[p](c128(D[i,p]) * B[p,j]);
}
kernel whole(A: i32[n, k], B: i32[k, n]) -> (R: i32[n, n]) {
    R[i,j] = A[i,p] * B[p,j] - 7 * A[j,p] * B[p,i];
}
kernel known(A: f32[13, 9], B: f32[9, 21], C: f32[13, 700], D: f32[700, 21]) -> (R: f32[13, 21]) {
    R[i,j] = C[i,p] * D[p,j] - A[i,p] * B[p,j];
}
"""
NAMES = {"update": "A B R", "sums": "A B W", "parts": "A B D R", "whole": "A B", "known": "A B C D"}
SIZES = [(1, 1), (5, 3), (33, 40), (70, 17), (16, 600), (3, 0), (0, 4)]


def rows():
    """Those of which the processor has what the first word names."""
    names = ["plain", "vectors"]
    if platform.machine() == "x86_64":
        flags = pathlib.Path("/proc/cpuinfo").read_text().split()
        names += ["avx2"] * ("avx2" in flags and "fma" in flags) + ["avx512"] * ("avx512f" in flags)
    return names


def run(tool, program, kernel, n, k, more):
    extents = [] if kernel == "known" else [f"-Dn={n}", f"-Dk={k}"]
    values = [f"{name}=fill" for name in NAMES[kernel].split()] + (["s=3"] if kernel == "update" else [])
    command = [tool, program, f"--kernel={kernel}", "-w", "--checksum", *extents, *values, *more]
    return steps.run("run", command)


def main():
    tool, more = sys.argv[1], sys.argv[2:]
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        program = str(pathlib.Path(folder) / "terms.tdsl")
        pathlib.Path(program).write_text(KERNELS)
        for kernel in NAMES:
            for n, k in SIZES[:1] if kernel == "known" else SIZES:
                expected = run(tool, program, kernel, n, k, ["--target=interp"])
                for row in rows():
                    got = run(tool, program, kernel, n, k, [f"--cflags=-O1 -DTDSL_ISA={row}", *more])
                    count += 1
                    if got != expected:
                        sys.exit(f"{kernel} n={n} k={k} {row}:\n{expected}{got}")
    print(f"{count} runs agree")


if __name__ == "__main__":
    main()
