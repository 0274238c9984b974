#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Seconds to the first result on a machine that has never seen TDSL, by each door: C, CMake, Python, Fortran. Nobody runs it by itself.

    python3 tests/bench/first.py [c cmake python fortran] [--most=60]

Each door is a copy of the sources in a new folder, with an empty home, no ccache and nothing built, in which the lines of docs/using.md and docs/python.md are
typed. Packages of the system (a C compiler, cmake, flex, bison, gmp, jansson) are there before: `examples/run` installs them. Standard output has a row for each
door: seconds on the clock, of processor time, and the same for a second program, when the tools are there. Exit status 1: a result is wrong; 2: a door takes
longer than --most seconds on the clock.
"""
import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
PARTS = "CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md", "compiler", "docs", "grammar", "runtime"
KERNEL = "kernel product(A: f64[m, k], B: f64[k, n]) -> (C: f64[m, n]) { C[i,j] = A[i,l] * B[l,j]; }\n"
MAIN = """#include <stdio.h>
#include <stdlib.h>
#include "product.h"

int main(void)
{
    const double A[] = {1, 2, 3, 4, 5, 6}, B[] = {1, 0, 1, 1};
    double C[6];
    size_t bytes = product_workspace_bytes(3, 2, 2);
    void *workspace = malloc(bytes + 1);
    tdsl_status status = product(3, 2, 2, A, B, C, workspace, bytes);
    free(workspace);
    printf("%g %g %g %g %g %g\\n", C[0], C[1], C[2], C[3], C[4], C[5]);
    return status != TDSL_OK;
}
"""
FORTRAN = """program main
  use product_kernels
  double precision :: a(2, 3), b(2, 2), c(2, 3)
  a = reshape([1d0, 2d0, 3d0, 4d0, 5d0, 6d0], [2, 3])
  b = reshape([1d0, 0d0, 1d0, 1d0], [2, 2])
  call product(a, b, c)
  print '(6(i0, " "))', nint(c)
end program
"""
CMAKE = """cmake_minimum_required(VERSION 3.25)
project(app C)
set(CMAKE_BUILD_TYPE Release)
add_subdirectory(tdsl)
tdsl_add_library(kernels SOURCES product.tdsl)
add_executable(app main.c)
target_link_libraries(app PRIVATE kernels)
"""
PYTHON = "import numpy as np, tdsl; print(*map(int, tdsl.einsum('ij,jk->ik', np.arange(1.0, 7).reshape(3, 2), np.array([[1.0, 0], [1, 1]])).ravel()))"
WANTED = "3 2 7 4 11 6"
BUILD = "cmake -S tdsl -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DTDSL_TESTS=OFF && cmake --build build --target tdslc"
# Of each door: its files, what is typed once, and what is typed for each program, which prints the result at its end.
DOORS = {
    "c": ({"product.tdsl": KERNEL, "main.c": MAIN}, BUILD, "tdslc product.tdsl -o product.c && cc -O2 -o app main.c product.c -lm && ./app"),
    "cmake": ({"product.tdsl": KERNEL, "main.c": MAIN, "CMakeLists.txt": CMAKE}, "cmake -S . -B build -G Ninja", "touch product.tdsl main.c && cmake --build build --target app && build/app"),
    "python": ({"first.py": PYTHON}, "python3 -m venv venv && . venv/bin/activate && pip install ./tdsl/runtime/python", "rm -rf $HOME/.cache/tdsl && python first.py"),
    "fortran": ({"product.tdsl": KERNEL, "main.f90": FORTRAN}, BUILD,
                "tdslc product.tdsl -o product.c && tdslc product.tdsl --emit=fortran -o product.f90 && cc -O2 -c product.c -o product_c.o && gfortran -O2 -o app product.f90 main.f90 product_c.o -lm && ./app"),
}


def bare(folder):
    """An environment without caches and without anything of TDSL."""
    keep = {name: value for name, value in os.environ.items() if not name.startswith(("TDSL_", "CCACHE", "PYTHON", "VIRTUAL_ENV"))}
    path = os.pathsep.join(p for p in keep.get("PATH", "").split(os.pathsep) if "ccache" not in p)
    return {**keep, "PATH": path, "HOME": folder, "XDG_CACHE_HOME": os.path.join(folder, ".cache"), "CCACHE_DISABLE": "1"}


def typed(line, folder):
    """(seconds on the clock, of processor time, what it printed last); ends the program where a line fails."""
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(["bash", "-ec", line], cwd=folder, env=bare(folder), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{line}\n{done.stdout[-3000:]}\nexit status {done.returncode}")
    lines = done.stdout.strip().splitlines()
    return time.monotonic() - start, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, lines[-1].strip() if lines else ""


def copied(folder):
    """The sources, as a checkout has them."""
    for part in PARTS:
        source, target = os.path.join(TOP, part), os.path.join(folder, "tdsl", part)
        if os.path.isdir(source):
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "*.so"))
        else:
            shutil.copy(source, target)


def measure(door, built):
    """Seconds on the clock and of processor time to the first result and to another one. `built` keeps what doors have in common: the folder in which the same
    lines were typed once, and their seconds."""
    files, once, each = DOORS[door]
    if once not in built:
        folder = built[once] = [tempfile.mkdtemp(prefix="tdsl-first-"), 0.0, 0.0]
        os.mkdir(os.path.join(folder[0], "tdsl"))
        copied(folder[0])
        write(folder[0], files)
        folder[1:] = typed(once, folder[0])[:2]
    folder, clock, processor = built[once]
    write(folder, files)
    ready = "PATH=$PWD/build/bin:$PATH" if once == BUILD else ". venv/bin/activate" if door == "python" else "true"
    first, again = (typed(f"{ready} && {each}", folder) for _ in range(2))
    for _, _, said in (first, again):
        if said != WANTED:
            sys.exit(f"{door}: '{said}' is not '{WANTED}'")
    return (first[0] + clock, first[1] + processor), again[:2]


def write(folder, files):
    for name, text in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("doors", nargs="*", metavar="DOOR", help=f"of {' '.join(DOORS)} (default all)")
    p.add_argument("--most", type=float, metavar="SECONDS", help="exit status 2 where a first result takes longer")
    a = p.parse_args()
    unknown = [d for d in a.doors if d not in DOORS]
    if unknown:
        p.error(f"no door {unknown[0]}")
    cpus = len(os.sched_getaffinity(0))
    print(f"{cpus} CPUs, load {os.getloadavg()[0]:.1f}\n{'door':8} {'first':>8} {'of processor':>13} {'another':>8} {'of processor':>13}   seconds", flush=True)
    late, built = False, {}
    try:
        for door in a.doors or DOORS:
            first, again = measure(door, built)
            late |= a.most is not None and first[0] > a.most
            print(f"{door:8} {first[0]:8.1f} {first[1]:13.1f} {again[0]:8.2f} {again[1]:13.2f}", flush=True)
    finally:
        for folder, *_ in built.values():
            shutil.rmtree(folder, ignore_errors=True)
    return 2 if late else 0


if __name__ == "__main__":
    sys.exit(main())
