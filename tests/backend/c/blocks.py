#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Folds of functions that run as vectors, block by block, along summed indices and along those of the result, around the length of
blocks and vectors: exponentials are all 0 or 1, so C gives what the interpreter gives, to the bit.

    blocks.py --tdslc PATH --tdsl-run PATH
"""
import argparse
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import steps  # noqa: E402

PROGRAM = """kernel folds(A: {t}[n, m], V: {t}[m], C: {t}[k, n, m])
    -> (rows: {t}[n], columns: {t}[m], all: {t}, most: {t}[n], weighted: {t}[n], some: {t}[k], kept: {t}[n, m]) {{
    rows[i] = sum[j](exp(1000 * min(A[i,j], 0)));
    columns[j] = sum[i](exp(1000 * min(A[i,j], V[j])));
    all = sum[i,j](sqrt(abs(A[i,j])) * sqrt(abs(A[i,j])) * 0 + exp(1000 * min(A[i,j], 0)));
    most[i] = max[j](exp(1000 * min(A[i,j], 0)) * A[i,j]);
    weighted[i] = sum[j](exp(1000 * min(A[i,j], 0)) * V[j]);
    some[h] = sum[i,j](exp(1000 * min(C[h,i,j], A[i,j])));
    kept[i,j] = sum[h](exp(1000 * min(C[h,i,j], 0)));
}}
"""
SIZES = [dict(n=3, m=16, k=2), dict(n=5, m=511, k=3), dict(n=2, m=513, k=2), dict(n=33, m=1024, k=2), dict(n=1030, m=17, k=2),
         dict(n=3, m=1009, k=1)]


def output(command):
    return steps.run("run", command)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tdslc", required=True)
    parser.add_argument("--tdsl-run", required=True)
    given = parser.parse_args()
    failed = count = 0
    with tempfile.TemporaryDirectory() as folder:
        for t in ("f32", "f64"):
            program, opened = Path(folder) / f"{t}.tdsl", Path(folder) / f"{t}.nest"
            program.write_text(PROGRAM.format(t=t))
            opened.write_text(output([given.tdslc, str(program), "-w", "--dump=nest"]))
            blocks = output([given.tdslc, str(program), "-w", "--dump=legal"]).count(" lanes] @e")
            for k, size in enumerate(SIZES):
                source = opened if k % 2 == 1 else program  # extents open in the C, and known
                command = [given.tdsl_run, str(source), "-w", "--checksum"] + [f"-D{d}={n}" for d, n in size.items()]
                command += [f"{name}=fill" for name in "AVC"]
                row = [[], ["--cflags=-O2 -DTDSL_ISA=plain"]][k // 2 % 2]
                count += 1
                if output(command + ["--target=interp"]) != output(command + ["--target=c"] + row):
                    failed += 1
                    print(f"FAILED {t} {size} {row}")
            failed += blocks == 0
    print(f"{count} runs, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
