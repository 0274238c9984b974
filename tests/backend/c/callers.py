#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""callers.py LANGUAGE --tdslc PATH --cc CC: the wrappers of --emit=hpp, fortran and rust, with every kind of argument, names that the language
has, extents that are computed, and what must be refused. Ends with 77 where there is no compiler of the language."""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE / "../../support"))
import steps  # noqa: E402

SOURCE = """dim o ~ 10, v ~ 20;
kernel wide(In: f64[o*v, 3], type: c64[v], Size: bool[o], size: i32[o], alpha: f64, beta: c64, flag: bool,
            acc: inout f64[2*v - 1], h: f16[o], total: inout i64) -> (Out: f64[o*v], Z: c64[v], any_: bool[o]) {
    Out[i] = alpha * sum[j](In[i,j]);
    Z[a] = beta * type[a];
    any_[i] = Size[i] && flag || size[i] > 0;
    acc[a] += 1;
    total += sum[i](i64(size[i])) + sum[i](i64(h[i] > 0));
}
kernel hidden(x: f64[(n + m) / 2]) -> (s: f64[(n + m) / 2]) { s[i] = 2 * x[i]; }
kernel square(A: f64[n, n], a: f64[n]) -> (AA: f64[n]) { AA[i] = A[i,j] * a[j]; }
kernel fixed(A: f64[2, 3]) -> (s: f64) { s = sum[i,j](A[i,j]); }
kernel apart(x: f64[n + 2*k - 1], y: f64[6 - k]) -> (s: f64[n]) { s[i] = f64(index(i)) + sum[j](x[j]) + sum[l](y[l]); }
kernel lengthy(a_name_that_is_longer_than_fortran_has_names_of_which_there_are_sixty_three_characters: f64[some_dim_with_a_long_name + another_dim_with_a_long_name + 3*a_third_dim_with_a_long_name - 2*a_fourth_dim_with_a_long_name],
    A_name_that_is_longer_than_fortran_has_names_of_which_there_are_sixty_three_characters: f64[some_dim_with_a_long_name, another_dim_with_a_long_name, a_third_dim_with_a_long_name, a_fourth_dim_with_a_long_name]) -> (s: f64) {
    s = sum[i](a_name_that_is_longer_than_fortran_has_names_of_which_there_are_sixty_three_characters[i]); }
kernel large(A: f64[m, k], B: f64[k, n]) -> (G: f64[n, n]) { C[i,j] = A[i,p] * B[p,j]; G[i,j] = C[p,i] * C[p,j]; }
"""


def found(name, variable):
    return shutil.which(os.environ.get(variable, name))


def outcome(what, got, want):
    if got != want:
        sys.exit(f"{what} printed\n{got}\nexpected\n{want}")
    print(f"ok: {what}")


def emit(tdslc, folder, kind, suffix):
    steps.run("tdslc", [tdslc, "wide.tdsl", "-w", f"--emit={kind}", "-o", "wide" + suffix], cwd=folder)


WANT = (HERE / "callers/expected.txt").read_text(encoding="utf-8")


def cpp(a, folder):
    emit(a.tdslc, folder, "hpp", ".hpp")
    flags = "-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wsign-conversion -Werror -O1".split()
    tries = [(compiler, standard, []) for compiler in ("g++", "clang++") for standard in ("c++17", "c++20", "c++2b")]
    tries += [(f"clang++-{version}", "c++23", ["-stdlib=libc++"]) for version in (19, 20, 21)]
    count = 0
    for compiler, standard, more in tries:
        if not shutil.which(compiler):
            continue
        count += 1
        steps.run("C++", [compiler, f"-std={standard}", *flags, *more, "-o", "cpp", HERE / "callers/wide.cpp", "-I.", "wide.o", "-lm"], cwd=folder)
        outcome(f"{compiler} -std={standard}", steps.run("C++", [folder / "cpp"]), WANT)
        steps.run("C++", [compiler, f"-std={standard}", "-fno-exceptions", *flags, *more, "-fsyntax-only", "-x", "c++", "wide.hpp",
                          "-Wno-pragma-once-outside-header"], cwd=folder)
    return count


def fortran(a, folder):
    compiler = found("gfortran", "FC")
    if not compiler:
        return 0
    emit(a.tdslc, folder, "fortran", ".f90")
    steps.run("Fortran", [compiler, "-std=f2018", "-Wall", "-Wextra", "-Werror", "-fcheck=all", "-c", "wide.f90"], cwd=folder)
    steps.run("Fortran", [compiler, "-std=f2018", "-Wall", "-Werror", "-fcheck=all", "-o", "fortran", HERE / "callers/wide.f90", "wide.o", "kernels.o", "-lm"],
              cwd=folder)
    outcome("Fortran", steps.run("Fortran", [folder / "fortran"]), (HERE / "callers/expected_fortran.txt").read_text(encoding="utf-8"))
    ended = subprocess.run([folder / "fortran", "stop"], capture_output=True, text=True, check=False)
    outcome("a failure that nobody asks for", (ended.returncode, ended.stderr.splitlines()[0]),
            (1, "square: extent of axis 1 of a is 3, the kernel's (n, n) makes it 2 (status -2)"))
    return 1


def rust(a, folder):
    compiler = found("rustc", "RUSTC")
    if not compiler:
        return 0
    emit(a.tdslc, folder, "rust", ".rs")
    for edition in ("2018", "2021"):
        shutil.copy(HERE / "callers/main.rs", folder)
        steps.run("Rust", [compiler, "--edition", edition, "-D", "warnings", "-o", "rust", "main.rs", "-C", "link-arg=wide.o", "-C", "link-arg=-lm"],
                  cwd=folder)
        outcome(f"Rust {edition}", steps.run("Rust", [folder / "rust"]), WANT)
    return 1


def main():
    p = argparse.ArgumentParser()
    p.add_argument("language", choices=["cpp", "fortran", "rust"])
    p.add_argument("--tdslc", type=pathlib.Path, required=True)
    p.add_argument("--cc", default="cc")
    a = p.parse_args()
    a.tdslc = a.tdslc.resolve()
    with tempfile.TemporaryDirectory() as top:
        folder = pathlib.Path(top)
        (folder / "wide.tdsl").write_text(SOURCE, encoding="utf-8")
        steps.run("tdslc", [a.tdslc, "wide.tdsl", "-w", "-o", "wide.c"], cwd=folder)
        steps.run("cc", [a.cc, "-O1", "-c", "wide.c", "-o", "kernels.o" if a.language == "fortran" else "wide.o"], cwd=folder)
        if not {"cpp": cpp, "fortran": fortran, "rust": rust}[a.language](a, folder):
            print(f"skipped: no compiler for {a.language}")
            sys.exit(77)


if __name__ == "__main__":
    main()
