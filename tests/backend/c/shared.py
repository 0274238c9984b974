# SPDX-License-Identifier: Apache-2.0
"""What files of one build share (--emit=shared): two files and the shared one compute the same bits as files that have all themselves, by gcc
and clang, on each instruction set that this machine has; texts do not depend on where they are written; a shared file of other programs, of
another version of them or compiled otherwise is refused by the compiler or the linker.

    shared.py --tdslc PATH --tree FOLDER
"""
import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "support"))
import steps  # noqa: E402

ONE = """dim m ~ 300, n ~ 200, k ~ 100, r ~ 30;
kernel product(A: f64[m, k], B: f64[k, n]) -> (C: f64[m, n]) { C[i,j] = A[i,p] * B[p,j]; }
kernel soft(X: f32[m, n]) -> (Y: f32[m, n]) {
    M[i] = max[j](X[i,j]);
    W[i,j] = exp(X[i,j] - M[i]);
    Y[i,j] = W[i,j] / sum[l](W[i,l]);
}
kernel scaled(X: f32[m, n]) -> (Y: f32[m, n]) { Y[i,j] = X[i,j] * 2 + 1; }
kernel roots(X: f32[m, n]) -> (Y: f32[m, n]) { Y[i,j] = exp(X[i,j]); }
kernel looked(W: f32[m, n], t: i64[r]) -> (Y: f32[r, n]) { Y[i,j] = W[t[i],j]; }
"""
TWO = """dim m ~ 300, n ~ 200, k ~ 100;
kernel gram(A: f64[m, k], x: f64[k]) -> (G: f64[k, k], y: f64[m]) { G[i,j] = A[p,i] * A[p,j]; y[i] = A[i,p] * x[p]; }
kernel turned(A: c128[24, 30], B: c128[30, 17]) -> (C: c128[24, 17]) { C[i,j] = conj(A[i,p]) * B[p,j]; }
kernel bytes(A: i8[m, k], B: i8[k, n]) -> (C: i32[m, n]) { C[i,j] = A[i,p] * B[p,j]; }
kernel smooth(x: f64[n + 4], w: f64[5]) -> (y: f64[n]) { y[i] = x[i + d] * w[d]; }
kernel near(A: f64[m, k], B: f64[n, k]) -> (D: f64[m, n]) { D[i,j] = min[p](A[i,p] + B[j,p]); }
kernel factored(A: f64[n, n]) -> (L: f64[n, n]) { L[i,j] = cholesky[i,j](A[i,j]); }
"""
WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Werror"]


class Build:
    """Programs in a folder, and what is made of them."""

    def __init__(self, tdslc, folder):
        self.tdslc, self.folder = tdslc, folder
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "one.tdsl").write_text(ONE)
        (folder / "two.tdsl").write_text(TWO)
        (folder / "all.h").write_text('#include "one.h"\n#include "two.h"\n')

    def run(self, *words):
        steps.run("tdslc", [self.tdslc, "-w", *words], cwd=self.folder)

    def cc(self, cc, *words):
        """The compiler's exit status and what it says."""
        done = subprocess.run([cc, "-O2", "-I.", *words], cwd=self.folder, capture_output=True, text=True, check=False, timeout=300)
        return done.returncode, done.stderr

    def program(self, cc, name, files, *flags):
        status, said = self.cc(cc, *WARNINGS, *flags, '-DHEADERS="all.h"', "-DLISTS=one_kernels, two_kernels", HERE / "shared.c", *files, "-o", name, "-lm")
        assert status == 0, f"{cc} {flags}: {said}"
        return steps.run("the kernels", [self.folder / name])


def share(b):
    b.run("one.tdsl", "two.tdsl", "--emit=shared", "-o", "tdsl_tiles.c", "-MD")
    for name in ("one", "two"):
        b.run(f"{name}.tdsl", "-o", f"{name}.c", "--shared=tdsl_tiles.h")


PROJECT = """cmake_minimum_required(VERSION 3.23)
project(Sharing LANGUAGES C)
include("{tree}/compiler/cmake/TdslLibrary.cmake")
tdsl_add_library(kernels SOURCES one.tdsl two.tdsl SHARE)
add_executable(app "{here}/shared.c")
target_compile_definitions(app PRIVATE HEADERS="all.h" "LISTS=one_kernels, two_kernels")
target_include_directories(app PRIVATE .)
target_link_libraries(app PRIVATE kernels)
"""


def by_cmake(b, tree, want):
    """tdsl_add_library(... SHARE); a second build has nothing to do."""
    (b.folder / "CMakeLists.txt").write_text(PROJECT.format(tree=tree, here=HERE))
    steps.run("cmake", ["cmake", "-S", ".", "-B", "build", "-G", "Ninja", f"-DTDSLC_EXECUTABLE={b.tdslc}", "-DCMAKE_BUILD_TYPE=Release"], cwd=b.folder)
    steps.run("build", ["cmake", "--build", "build"], cwd=b.folder)
    assert "no work to do" in steps.run("build again", ["cmake", "--build", "build"], cwd=b.folder)
    steps.expect("tdsl_add_library(SHARE)", steps.run("the kernels", [b.folder / "build/app"]), want)


def refused(b, what, expected, *words):
    status, said = b.cc("gcc", *words)
    assert status != 0 and expected in said, f"{what}: {status}\n{said}"
    print(f"ok: {what} is refused: {expected}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tdslc", required=True, type=pathlib.Path)
    parser.add_argument("--tree", required=True, type=pathlib.Path)
    options = parser.parse_args()
    tdslc = options.tdslc.resolve()
    with tempfile.TemporaryDirectory() as name:
        top = pathlib.Path(name)
        alone, b, again = (Build(tdslc, top / n) for n in ("alone", "shared", "elsewhere/again"))
        for file in ("one", "two"):
            alone.run(f"{file}.tdsl", "-o", f"{file}.c")
        share(b)
        share(again)
        for file in ("tdsl_tiles.c", "tdsl_tiles.h", "one.c", "two.c"):
            assert (b.folder / file).read_bytes() == (again.folder / file).read_bytes(), file
        rule = (b.folder / "tdsl_tiles.c.d").read_text()
        assert "one.tdsl" in rule and "two.tdsl" in rule, rule
        lines, fewer = ({n: (f.folder / f"{n}.c").read_text().count("\n") for n in ("one", "two")} for f in (alone, b))
        print(f"lines alone {lines}, shared {fewer}")
        assert all(2 * fewer[n] < lines[n] for n in fewer), "files that share are not much shorter"
        processor = pathlib.Path("/proc/cpuinfo")
        has = processor.read_text() if processor.exists() else ""
        natural = None
        rows = [None, "plain", "vectors", *(["avx2"] if " avx2 " in has else []), *(["avx512"] if " avx512vl " in has else [])]
        for cc in ("gcc", "clang"):
            for row in (rows if cc == "gcc" else rows[:2]) if shutil.which(cc) else []:
                flags = [f"-DTDSL_ISA={row}"] if row else []
                want = alone.program(cc, "app", ["one.c", "two.c"], *flags)
                steps.expect(f"{cc} {row or 'as found'}", b.program(cc, "app", ["one.c", "two.c", "tdsl_tiles.c"], *flags), want)
                natural = natural or want
                assert want.count("status 0") == 20 and want.count("status -11") == 2, want
        by_cmake(b, options.tree.resolve(), natural)
        main_c = ['-DHEADERS="all.h"', "-DLISTS=one_kernels, two_kernels", HERE / "shared.c"]
        b.cc("gcc", "-c", "one.c", "two.c")
        refused(b, "a shared file without fused multiply-adds", "undefined reference", *main_c, "one.o", "two.o", "-DTDSL_NO_FMA", "tdsl_tiles.c", "-lm", "-o", "no")
        b.run("one.tdsl", "--emit=shared", "-o", "tdsl_tiles.c")
        refused(b, "the object of another header", "undefined reference", *main_c, "one.o", "two.o", "tdsl_tiles.c", "-lm", "-o", "no")
        b.run("one.tdsl", "--kernel=scaled", "--emit=shared", "-o", "tdsl_tiles.c")
        b.run("one.tdsl", "--kernel=roots", "-o", "roots.c", "--shared=tdsl_tiles.h")
        refused(b, "a header without a function that a kernel needs", "tdsl_exp_f32", *main_c, "roots.c", "tdsl_tiles.c", "-lm", "-o", "no")
        refused(b, "a header of other programs", "the shared header is of other programs", "-c", "two.c")
        header = b.folder / "tdsl_tiles.h"
        for macro in ("TDSL_SHARED_BY", "TDSL_JOIN_BYTES", "TDSL_SHARES_join_f64"):
            share(b)
            assert f"#define {macro} " in header.read_text(), macro
            header.write_text(header.read_text().replace(f"#define {macro} ", f"#define {macro} -"))
            refused(b, f"a header of less {macro}", "the shared header is of other programs", "-c", "one.c")
        for words in (["one.tdsl", "two.tdsl"], ["one.tdsl", "two.tdsl", "--emit=shared"], ["one.tdsl", "two.tdsl", "--emit=shared", "--report", "-o", "t.c"],
                      ["one.tdsl", "one.tdsl", "--emit=shared", "-o", "t.c"], ["one.tdsl", "--emit=shared", "--shared=t.h", "-o", "t.c"],
                      ["one.tdsl", "--shared=t.h", "--dump=legal"], ["one.tdsl", "two.tdsl", "--emit=shared", "--target=trn2", "-o", "t"]):
            done = subprocess.run([tdslc, *words], cwd=b.folder, capture_output=True, text=True, check=False, timeout=300)
            assert done.returncode in (1, 2) and "error" in done.stderr, f"{words}: {done.returncode} {done.stderr}"
            print(f"ok: {' '.join(words)}: {done.stderr.splitlines()[0]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
