#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast and how large tdslc is, beside its targets. Times are user + system time of the process, the least of a few runs,
so that other work on the machine counts little.

    python3 tests/bench/compile.py [--tdslc build/bin/tdslc] [--runs 5]
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ONE = """dim n ~ 512, m ~ 512, k ~ 512;
kernel gemm%d(A: f32[m, k], B: f32[k, n], C: inout f32[m, n], alpha: f32, beta: f32) {
    C[i, j] = alpha * A[i, p] * B[p, j] + beta * C[i, j];
}
"""


def seconds(command, runs):
    """The least CPU time of some runs, and the largest memory in MiB."""
    least, memory = float("inf"), 0
    for _ in range(runs):
        child = os.posix_spawn(command[0], command, os.environ,
                               file_actions=[(os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0)])
        _, status, used = os.wait4(child, 0)
        if status != 0:
            sys.exit(f"{' '.join(command)}: failed")
        least = min(least, used.ru_utime + used.ru_stime)
        memory = max(memory, used.ru_maxrss / 1024)
    return least, memory


def main():
    here = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser()
    parser.add_argument("--tdslc", default=str(here / "build/bin/tdslc"))
    parser.add_argument("--runs", type=int, default=5)
    a = parser.parse_args()
    tdslc = os.path.abspath(a.tdslc)
    with tempfile.TemporaryDirectory() as folder:
        def path(name, text=None):
            place = os.path.join(folder, name)
            if text is not None:
                pathlib.Path(place).write_text(text)
            return place
        one = path("one.tdsl", ONE % 0)
        head, body = ONE.split("\n", 1)
        many = path("many.tdsl", head + "\n" + "".join(body % k for k in range(1000)))
        maps = path("maps.tdsl", "dim n;\n" + "".join(
            f"kernel scale{k}(A: f64[n]) -> (R: f64[n]) {{ R[i] = {k} * A[i]; }}\n" for k in range(1000)))
        start, _ = seconds([tdslc, "--version"], a.runs)
        small, _ = seconds([tdslc, one, "-o", path("one.c")], a.runs * 2)
        equation, _ = seconds([tdslc, "-e", "ij,jk->ik", "--shape=4x4", "--shape=4x4", "-o", path("e.c")], a.runs * 2)
        thousand, memory = seconds([tdslc, many, "-o", path("many.c")], a.runs)
        elementwise, _ = seconds([tdslc, maps, "-o", path("maps.c")], a.runs)
        checked, _ = seconds([tdslc, many, "--stop-after=graph"], a.runs)
        legal, _ = seconds([tdslc, many, "--stop-after=legal"], a.runs)
        written = os.path.getsize(path("many.c"))
        stripped = path("tdslc")
        shutil.copy(tdslc, stripped)
        subprocess.run(["strip", stripped], check=True)
        size = os.path.getsize(stripped)
    rows = [("start (--version)", start * 1e3, "ms", None), ("one gemm", small * 1e3, "ms", 5),
            ("one equation", equation * 1e3, "ms", 5), ("1,000 gemms in one file", thousand * 1e3, "ms", 1000),
            ("  of that: to the graph", checked * 1e3, "ms", None), ("  to the legal kernel", legal * 1e3, "ms", None),
            ("  C written", written / 1e6, "MB", None), ("  MB of C a second", written / 1e6 / thousand, "MB/s", None),
            ("  memory", memory, "MiB", 512), ("1,000 elementwise kernels", elementwise * 1e3, "ms", 1000),
            ("stripped tdslc", size / 1e6, "MB", 2)]
    print(f"{'':28}{'measured':>10}        {'target':>8}  ratio")
    missed = 0
    for name, value, unit, target in rows:
        line = f"{name:28}{value:10.2f} {unit:5}"
        if target is not None:
            missed += value > target
            line += f"{target:10}  {value / target:.2f}{'  MISSED' if value > target else ''}"
        print(line)
    print(f"one of 1,000 costs {thousand / 1000 / max(small, 1e-6):.2f} of one alone; targets missed: {missed}")


if __name__ == "__main__":
    main()
