# SPDX-License-Identifier: Apache-2.0
"""How long printed C is: the commands of the table in docs/performance.md, run as they stand there, print no more lines than it says, nor much fewer,
so that it stays true. The file of many small kernels that one of them compiles is written by

    lengths.py --many > many.tdsl
    lengths.py --tdslc PATH --tree FOLDER
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

KERNELS = 300
SLACK = 0.05  # of lines fewer than the table says


def many():
    """Small kernels of nine kinds, each of sizes of its own."""
    kinds = [
        "kernel k{i}(A: f64[{m}, {k}], B: f64[{k}, {n}]) -> (C: f64[{m}, {n}]) {{ C[i,j] = A[i,k] * B[k,j]; }}",
        "kernel k{i}(A: f64[{m}, {k}], B: f64[{k}, {n}]) -> (E: f64) {{ C[i,j] = A[i,k] * B[k,j]; E = sum[i,j](C[i,j] * C[i,j]); }}",
        "kernel k{i}(X: f32[{m}, {w}]) -> (Y: f32[{m}, {w}]) {{ M[i] = max[j](X[i,j]); W[i,j] = exp(X[i,j] - M[i]); "
        "Z[i] = sum[j](W[i,j]); Y[i,j] = W[i,j] / Z[i]; }}",
        "kernel k{i}(X: f32[{m}, {w}]) -> (Y: f32[{m}]) {{ Y[i] = sum[j](X[i,j] * X[i,j]); }}",
        "kernel k{i}(x: f64[{w}], y: f64[{w}], a: f64) -> (z: f64[{w}]) {{ z[i] = a * x[i] + y[i] * {i}; }}",
        "kernel k{i}(X: f32[{m}, {w}]) -> (Y: f32[{w}, {m}]) {{ Y[j,i] = X[i,j]; }}",
        "kernel k{i}(A: f64[m, k], B: f64[k, n]) -> (C: f64[m, n]) {{ C[i,j] = A[i,k] * B[k,j] + {i}; }}",
        "kernel k{i}(A: f64[m, k]) -> (C: f64[m]) {{ C[i] = sum[k](A[i,k] * {i}); }}",
        'kernel k{i}(A: f64[{m}, {k}], B: f64[{k}, {n}], x: f64[{n}]) -> (C: f64[{m}]) {{ C = einsum("ik,kj,j->i", A, B, x); }}',
    ]
    return "".join(kinds[i % len(kinds)].format(i=i, m=4 + i % 13, n=4 + i * 7 % 17, k=4 + i * 5 % 11, w=4 + i * 7 % 37) + "\n" for i in range(KERNELS))


def table(tree):
    """(command, lines) of each row."""
    text = (tree / "docs/performance.md").read_text()
    section = text[text.index("## How long the C is"):]
    return [(command, int(lines.replace(",", ""))) for command, lines in re.findall(r"^\| [^|]+ \| `(tdslc [^`]+)` \| ([\d,]+) ", section, re.M)]


def lines_of(command, tdslc, tree, folder):
    words = [str(tdslc), *re.findall(r"\S+", command)[1:]]
    words = [str(tree / w) if w.startswith("examples/") else w for w in words]
    subprocess.run([*words, "-w", "-o", "out.c"], cwd=folder, check=True)
    return len((folder / "out.c").read_text().splitlines())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--many", action="store_true")
    parser.add_argument("--tdslc")
    parser.add_argument("--tree", type=pathlib.Path)
    args = parser.parse_args()
    if args.many:
        sys.stdout.write(many())
        return 0
    rows, wrong = table(args.tree), 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "many.tdsl").write_text(many())
        for command, most in rows:
            found = lines_of(command, os.path.abspath(args.tdslc), args.tree.resolve(), folder)
            bad = found > most or found < most * (1 - SLACK)
            wrong += bad
            print(f"{'FAIL' if bad else 'ok  '} {found} lines, {most} in docs/performance.md: {command}")
    return 1 if wrong or len(rows) < 6 else 0


if __name__ == "__main__":
    sys.exit(main())
