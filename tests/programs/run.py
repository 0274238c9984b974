#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every kernel of programs.tdsl at small extents, by the interpreter and as C, and compares.

usage: run.py TDSL-RUN [KERNEL...]
       run.py --sizes TDSLC TDSL-RUN [KERNEL...]
       run.py --fusion TDSLC [KERNEL...]

Arguments are small integers ("fill"), so kernels of sums and products agree exactly (--checksum prints exact digits); kernels that
divide or call exp agree to 1e-5 of the largest sum. Two sets of extents: all different, and with a 1.

With --fusion nothing runs: for every program, at all sizes of sizes.json, at half of them and at some that were slower once, the nest that is
chosen takes at most 2 % longer than no fusion does, by the price of both.

With --sizes the extents stay open in the C: kernels that have several nests are run on both sides of each border between them."""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SIZES = [
    dict(n=4, o=3, v=5, x=6, t=7, i=4, j=3, k=5, r=2, a=2, b=2, c=3, D=4, w=3, d=2, h=3, s=6, g=2, m=5, z=3, e=2, p=3, q=4),
    dict(n=3, o=1, v=9, x=17, t=1, i=17, j=1, k=8, r=9, a=3, b=1, c=5, D=3, w=1, d=2, h=1, s=9, g=1, m=17, z=8, e=3, p=2, q=3),
]
SLOWER_ONCE = {
    "conv1x1_bn": [dict(b=2, c=64, o=64, h=28, w=28)],
    "ccsd_energy": [dict(o=10, v=60)],
}
INEXACT = {"dfmp2_energy", "dfmp2_density", "attention", "attention_gqa"}


def kernels(text):
    for m in re.finditer(r"^kernel (\w+)\((.*?)\) ->", text, re.M):
        params = re.findall(r"(\w+): \w+\[([^\]]*)\]", m.group(2))
        yield m.group(1), [name for name, _ in params], {
            d.strip() for _, dims in params for d in dims.split(",") if not d.strip().isdigit()}


def run(tool, kernel, names, dims, target, program=HERE / "programs.tdsl"):
    values = "random:7" if kernel in INEXACT else "fill"
    command = [tool, str(program), f"--kernel={kernel}", f"--target={target}", "-w", "--checksum"]
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


def fusion_costs_nothing():
    tdslc, only = sys.argv[2], set(sys.argv[3:])
    sizes = json.loads((HERE / "sizes.json").read_text())
    failed = count = 0
    for kernel, _, used in kernels((HERE / "programs.tdsl").read_text()):
        if only and kernel not in only:
            continue
        named = list(sizes[kernel].values())
        tried = named + [{d: max(1, n // 2) for d, n in s.items()} for s in named] + SLOWER_ONCE.get(kernel, [])
        for dims in tried:
            assert set(dims) == used, kernel
            report = subprocess.run([tdslc, str(HERE / "programs.tdsl"), "-w", f"--kernel={kernel}", "--report=json", "--stop-after=nest"]
                                    + [f"-D{d}={n}" for d, n in dims.items()], capture_output=True, text=True, check=True, timeout=120)
            cost = json.loads(report.stdout)["kernels"][0]
            count += 1
            # A loop that threads share may cost one thread as much as nest/parallel.c says.
            shared = json.dumps(cost["nest"]).count('"parallel": true')
            if cost["seconds"] > (1.02 + 0.05 * shared) * cost["seconds_unfused"]:
                failed += 1
                print(f"FAILED {kernel} {dims}: {cost['seconds'] / cost['seconds_unfused']:.3f} times the time of no fusion")
    print(f"{count - failed} passed, {failed} failed")
    return failed > 0


def both_sides():
    tdslc, tool, only = sys.argv[2], sys.argv[3], set(sys.argv[4:])
    failed = count = several = 0
    for kernel, names, used in kernels((HERE / "programs.tdsl").read_text()):
        if only and kernel not in only:
            continue
        dump = subprocess.run([tdslc, str(HERE / "programs.tdsl"), "-w", f"--kernel={kernel}", "--dump=nest"],
                              capture_output=True, text=True, check=True, timeout=120).stdout
        tests = re.findall(r"^  when (?:\d+ < )?(\w+)(?: < (\d+))? ~", dump, re.M)
        several += len(tests) > 1
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "open.nest"
            program.write_text(dump)
            for dim, border in ((d, int(b)) for d, b in tests if b):
                for n in (border - 1, border):
                    dims = {d: 2 for d in sorted(used)} | {dim: n}
                    expected = run(tool, kernel, names, dims, "interp", program)
                    got = run(tool, kernel, names, dims, "c", program)
                    count += 1
                    if not (close(expected, got) if kernel in INEXACT else expected == got):
                        failed += 1
                        print(f"FAILED {kernel} {dims}\n  interpreter {expected}  C           {got}", end="")
    print(f"{several} kernels with several nests: {count - failed} passed, {failed} failed")
    return failed > 0 or (several < 3 and not only)


def main():
    if sys.argv[1] == "--fusion":
        return fusion_costs_nothing()
    if sys.argv[1] == "--sizes":
        return both_sides()
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
