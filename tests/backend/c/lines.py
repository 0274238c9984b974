#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lines.py --tdslc PATH --cc CC --tree TOP: --emit=c-lines is the C of the same program with `#line` in it, object files know the program's lines and
no others of it, and gdb stops at one and shows it."""
import argparse
import os
import pathlib
import re
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent / "../../support"))
import steps  # noqa: E402
from steps import expect  # noqa: E402

SOURCE = """kernel gram(A: f64[m, k], B: f64[k, n]) -> (G: f64[n, n], s: f64) {
    C[i,j] = A[i,p] * B[p,j];
    G[i,j] = C[p,i] * C[p,j]
             + 1;

    s = sum[i,j](exp(G[i,j]));
}
"""
MAIN = """#include "k.h"
int main(void)
{
    static double A[6] = {1, 2, 3, 4, 5, 6}, B[4], G[4], s;
    static unsigned char space[1 << 24];
    return gram(3, 2, 2, A, B, G, &s, space, sizeof space);
}
"""


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--tdslc", type=pathlib.Path, required=True)
    p.add_argument("--cc", default="cc")
    p.add_argument("--tree", type=pathlib.Path, required=True)
    a = p.parse_args()
    tdslc = a.tdslc.resolve()
    with tempfile.TemporaryDirectory() as top:
        folder = pathlib.Path(top)
        sources = {"k": SOURCE, "mp2": (a.tree / "examples/mp2/mp2.tdsl").read_text(encoding="utf-8"),
                   "attention": (a.tree / "examples/attention/attention.tdsl").read_text(encoding="utf-8")}
        for name, text in sources.items():
            (folder / f"{name}.tdsl").write_text(text, encoding="utf-8")
            steps.run("tdslc", [tdslc, f"{name}.tdsl", "-w", "-o", f"{name}.c"], cwd=folder)
            plain = (folder / f"{name}.c").read_text(encoding="utf-8")
            steps.run("tdslc", [tdslc, f"{name}.tdsl", "-w", "--emit=c-lines", "-o", f"{name}.c"], cwd=folder)
            lined = (folder / f"{name}.c").read_text(encoding="utf-8")
            without = "".join(line for line in lined.splitlines(True) if not line.startswith("#line"))
            # register tiles are macros, in which no #line may stand, or functions for each instruction set: all behind the kernels. Functions of
            # different lines are not one, so tiles have other numbers.
            kernels = [re.sub(r"\btile\d+_\w+", "tile", text[text.index("static void tdsl_loops"): text.index("/* Functions of register tiles")]).split()
                       for text in (without, plain)]
            expect(f"{name}: kernels are the same but for #line, and lines that are one", (kernels[0] == kernels[1], lined == plain), (True, False))
            own = re.findall(rf'^#line (\d+) "{name}.c"$', lined, re.M)
            places = [number for number, line in enumerate(lined.splitlines(), 1) if line.startswith("#line") and line.endswith(f'"{name}.c"')]
            expect(f"{name}: lines of the C count on", [int(n) for n in own], [n + 1 for n in places])
            steps.run("cc", [a.cc, "-O2", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-c", f"{name}.c"], cwd=folder)
        if shutil.which("objdump"):
            known = set(re.findall(r"\bk\.tdsl:(\d+)", steps.run("objdump", ["objdump", "-dl", "k.o"], cwd=folder)))
            expect("lines in the object file", sorted(known - {"4"}), ["2", "3", "6"])
        if shutil.which("gdb"):
            (folder / "main.c").write_text(MAIN, encoding="utf-8")
            steps.run("cc", [a.cc, "-O0", "-g", "-o", "app", "main.c", "k.c", "-lm"], cwd=folder)
            said = steps.run("gdb", ["gdb", "-nx", "-batch", "-ex", "set confirm off", "-ex", "break k.tdsl:6", "-ex", "run", "-ex", "bt 1", "./app"], cwd=folder,
                             env=dict(os.environ, DEBUGINFOD_URLS=""))
            expect("gdb shows the program's line", "k.tdsl:6" in said and "s = sum[i,j](exp(G[i,j]))" in said, True)
        else:
            print("skipped: no gdb")


main()
