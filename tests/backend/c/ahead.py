#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tiles ask for ahead is what is packed next: the C of contractions of one large operand with few rows is compiled with
prefetches that are written down. Nearly all lines of the operand must be asked for by tiles, little else, and results be those of plain
loops, to the bit.

    ahead.py --tdslc PATH --cc CC --include FOLDER
"""
import argparse
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import steps  # noqa: E402
from quick import share  # noqa: E402

# A[x, y, z] * B[the sum, r]: lines of A run along the sum, or along columns.
CASES = [("xyz,zr->yrx", "z"), ("xyz,yr->zrx", "y"), ("xyz,yr->xrz", "y"), ("xyz,xr->yrz", "x")]
SIZES = [dict(x=96, y=72, z=96, r=24), dict(x=128, y=70, z=80, r=20), dict(x=72, y=120, z=80, r=24)]  # a sum of 64 and few rows would be read in place
ROWS = ["vectors", None]

HARNESS = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static unsigned char *asked; static uintptr_t first, last; static long beside;
static void note(const char *what, const void *p)
{{
    const uintptr_t at = (uintptr_t)p;
    if (strstr(what, "ahead") == NULL) return;
    if (at < first || at >= last) beside++; else asked[(at - first) / 64] = 1;
}}
#define __builtin_prefetch(p, ...) note(#p, (const void *)(p))
#include "{source}"
int main(void)
{{
    enum {{ X = {x}, Y = {y}, Z = {z}, R = {r} }};
    const long n = (long)X * Y * Z, lines = (n * 4 + 63) / 64, results = n / {sum} * R;
    float *A = aligned_alloc(64, (size_t)lines * 64), *B = malloc({sum} * R * 4u), *C = malloc((size_t)results * 4u);
    asked = calloc(1, (size_t)lines); first = (uintptr_t)A; last = first + (uintptr_t)lines * 64;
    for (long i = 0; i < n; i++) A[i] = (float)((7 * i + 3) % 11) - 5;
    for (long i = 0; i < {sum} * R; i++) B[i] = (float)((5 * i + 1) % 7) - 3;
    const size_t bytes = t_info.workspace_bytes(NULL);
    void *ws = malloc(bytes + 1), *args[3] = {{A, B, C}};
    if (t_info.call(NULL, args, ws, bytes) != 0) return 1;
    long count = 0, wrong = 0;
    for (long i = 0; i < lines; i++) count += asked[i];
    float *D = calloc((size_t)results, 4);
    for (int x = 0; x < X; x++) for (int y = 0; y < Y; y++) for (int z = 0; z < Z; z++) for (int r = 0; r < R; r++)
        D[{out}] += A[((long)x * Y + y) * Z + z] * B[{summed} * R + r];
    for (long i = 0; i < results; i++) wrong += C[i] != D[i];
    printf("%ld wrong %ld asked %ld lines %ld beside\\n", wrong, count, lines, beside);
    free(A); free(B); free(C); free(D); free(ws); free(asked);
    return 0;
}}
"""


def case(args, folder, equation, summed, size, row):
    """What is wrong, or None."""
    out = equation.split("->")[1]
    shapes = [[size[label] for label in operand] for operand in equation.split("->")[0].split(",")]
    source = folder / "t.c"
    command = [args.tdslc, "-e", equation, "--name=t", "--dtype=f32", "-w", "-o", source]
    steps.run("print C", command + ["--shape=" + "x".join(map(str, s)) for s in shapes])
    if "_ahead(" not in source.read_text():
        return "asks for nothing"
    at = out[0]
    for label in out[1:]:
        at = f"({at}) * {label.upper()} + {label}"
    names = {**size, "sum": size[summed], "summed": summed, "source": source, "out": f"(long){at}" if len(out) == 1 else at}
    (folder / "h.c").write_text(HARNESS.format(**names))
    command = [args.cc, "-O2", "-w", f"-I{args.include}", folder / "h.c", "-o", folder / "h", "-lm"]
    steps.run("compile", command + ([f"-DTDSL_ISA={row}"] if row else []))
    said = steps.run("run", [folder / "h"]).split()
    wrong, asked, lines, beside = map(int, said[::2])
    if wrong:
        return f"{wrong} wrong results"
    if asked < 0.75 * lines:
        return f"{asked} of {lines} lines are asked for"
    return f"{beside} lines beside {lines}" if beside > lines / 2 else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tdslc", required=True)
    parser.add_argument("--cc", required=True)
    parser.add_argument("--include", required=True)
    args = parser.parse_args()
    failed = count = 0
    with tempfile.TemporaryDirectory() as folder:
        for i, (equation, summed) in enumerate(CASES):
            for k, size in share(enumerate(SIZES), 3, i):
                row = ROWS[(i + k) % len(ROWS)]
                why = case(args, Path(folder), equation, summed, size, row)
                count += 1
                if why is not None:
                    failed += 1
                    print(f"FAILED {equation}, {size}, {row or 'any instructions'}: {why}")
    print(f"{count - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
