#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Products whose operands have narrower types than the sum, each along rows and along columns, with extents around panels and
vectors: what the C converts as it packs is what the interpreter does, to the bit, since all values are small whole numbers.

    narrow.py --tdsl-run PATH
"""
import argparse
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import steps  # noqa: E402
from quick import QUICK, share  # noqa: E402

PAIRS = [("bf16", "f32"), ("f16", "f32"), ("f32", "f64"), ("f16", "f64"), ("i32", "i64")]
PROGRAM = """kernel products(A: {n}[s, k], B: {n}[k, s], C: {n}[k, t], D: {n}[t, k], F: {w}[k, t], U: {n}[s, b, k], V: {n}[k, t, b])
    -> (R: {w}[s, t], S: {w}[s, t], T: {w}[s, t], X: {w}[s, t], Y: {w}[s, t]) {{
    R[i,j] = sum[p]({w}(A[i,p]) * {w}(C[p,j]));
    S[i,j] = sum[p]({w}(B[p,i]) * {w}(D[j,p]));
    T[i,j] = sum[p]({w}(A[i,p]) * F[p,j]);
    X[i,j] = sum[p]({w}(B[p,i]) * F[p,j]);
    Y[i,j] = sum[p,h]({w}(U[i,h,p]) * {w}(V[p,j,h]));
}}
"""
SIZES = [dict(s=70, t=45, k=300, b=3), dict(s=17, t=129, k=16, b=2), dict(s=256, t=8, k=1100, b=1), dict(s=9, t=33, k=1, b=5)]
ROWS = ["plain", "vectors", None]


def run(tool, program, size, target, row):
    command = [tool, str(program), f"--target={target}", "-w", "--checksum"] + [f"-D{d}={n}" for d, n in size.items()]
    command += [f"--cflags=-O{0 if QUICK else 2}" + (f" -DTDSL_ISA={row}" if row else "")] if target == "c" else []
    command += [f"{name}=fill" for name in "ABCDFUV"]
    return steps.run(f"{target}, {row or 'any instructions'}", command)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tdsl-run", required=True)
    tool = parser.parse_args().tdsl_run
    failed = count = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, (narrow, wide) in enumerate(PAIRS):
            program = Path(folder) / f"{narrow}_{wide}.tdsl"
            program.write_text(PROGRAM.format(n=narrow, w=wide))
            for k, size in share(enumerate(SIZES), 4, number):
                expected = run(tool, program, size, "interp", None)
                row = ROWS[k % len(ROWS)]
                got = run(tool, program, size, "c", row)
                count += 1
                if got != expected or " wsum=0\n" in expected:
                    failed += 1
                    print(f"FAILED {narrow} in {wide}, {size}, {row or 'any instructions'}\n{expected}{got}")
    print(f"{count - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
