#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every kernel of programs.tdsl at small extents, by the interpreter and as C, and compares.

usage: run.py TDSL-RUN [KERNEL...]

Arguments are small integers ("fill"), so kernels of sums and products agree exactly (--checksum prints exact digits); kernels that
divide or call exp agree to 1e-5 of the largest sum. Two sets of extents: all different, and with a 1."""
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SIZES = [
    dict(n=4, o=3, v=5, x=6, t=7, i=4, j=3, k=5, r=2, a=2, b=2, c=3, D=4, w=3, d=2, h=3, s=6, g=2, m=5, z=3, e=2, p=3, q=4),
    dict(n=3, o=1, v=9, x=17, t=1, i=17, j=1, k=8, r=9, a=3, b=1, c=5, D=3, w=1, d=2, h=1, s=9, g=1, m=17, z=8, e=3, p=2, q=3),
]
INEXACT = {"dfmp2_energy", "dfmp2_density", "attention", "attention_gqa"}


def kernels(text):
    for m in re.finditer(r"^kernel (\w+)\((.*?)\) ->", text, re.M):
        params = re.findall(r"(\w+): \w+\[([^\]]*)\]", m.group(2))
        yield m.group(1), [name for name, _ in params], {
            d.strip() for _, dims in params for d in dims.split(",") if not d.strip().isdigit()}


def run(tool, kernel, names, dims, target):
    values = "random:7" if kernel in INEXACT else "fill"
    command = [tool, str(HERE / "programs.tdsl"), f"--kernel={kernel}", f"--target={target}", "-w", "--checksum"]
    command += [f"-D{d}={n}" for d, n in dims.items()] + [f"{name}={values}" for name in names]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if result.returncode != 0:
        sys.exit(f"{kernel} by {target}: status {result.returncode}\n{result.stderr}")
    return result.stdout


def close(a, b):
    x = [float(v) for v in re.findall(r"[-+]?\d[\d.]*(?:e[-+]?\d+)?", a)]
    y = [float(v) for v in re.findall(r"[-+]?\d[\d.]*(?:e[-+]?\d+)?", b)]
    scale = max([1.0] + [abs(v) for v in x])
    return len(x) == len(y) and all(abs(p - q) <= 1e-5 * scale for p, q in zip(x, y))


def main():
    tool, only = sys.argv[1], set(sys.argv[2:])
    failed = count = 0
    for kernel, names, used in kernels((HERE / "programs.tdsl").read_text()):
        if only and kernel not in only:
            continue
        for sizes in SIZES:
            dims = {d: sizes[d] for d in sorted(used)}
            expected = run(tool, kernel, names, dims, "interp")
            got = run(tool, kernel, names, dims, "c")
            count += 1
            if not (close(expected, got) if kernel in INEXACT else expected == got):
                failed += 1
                print(f"FAILED {kernel} {dims}\n  interpreter {expected}  C           {got}", end="")
    print(f"{count - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
