# SPDX-License-Identifier: Apache-2.0
"""languages.py --build BUILD --work FOLDER: projects that are no C projects use the installed package: C++ alone, kernels in a folder below, installed
with their headers and found by another project; Fortran. What is wrong in a project is said in words."""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support"))
import steps  # noqa: E402
from steps import expect  # noqa: E402

KERNEL = "kernel twice(x: f64[n]) -> (y: f64[n]) { y[i] = 2 * x[i]; }\n"
MAIN = """#include <cstdio>
#include <vector>
#include "kern.hpp"
int main()
{
    std::vector<double> x = {1, 2}, y(2);
    tdsl::twice(x, y);
    std::printf("%g %g\\n", y[0], y[1]);
}
"""
APP = """cmake_minimum_required(VERSION 3.25)
project(app CXX)
find_package(Tdsl 0.1 REQUIRED)
add_subdirectory(kernels)
add_executable(app main.cpp)
target_link_libraries(app PRIVATE kern)
"""
EXPORT = """install(TARGETS kern EXPORT app FILE_SET HEADERS)
install(EXPORT app NAMESPACE app:: FILE app-config.cmake DESTINATION lib/cmake/app)
"""
USER = """cmake_minimum_required(VERSION 3.25)
project(user C CXX)
set(CMAKE_CXX_STANDARD 17)
find_package(OpenMP)
find_package(app REQUIRED)
add_executable(user main.cpp)
target_link_libraries(user PRIVATE app::kern)
"""
FORTRAN = """cmake_minimum_required(VERSION 3.25)
project(app Fortran)
find_package(Tdsl 0.1 REQUIRED)
tdsl_add_library(kern SOURCES kern.tdsl EMIT fortran)
add_executable(app main.f90)
target_link_libraries(app PRIVATE kern_fortran)
"""
MAIN_FORTRAN = """program main
  use kern_kernels
  double precision :: x(2) = [1, 2], y(2)
  call twice(x, y)
  print '(i0, " ", i0)', int(y)
end program
"""


def project(folder, files):
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in files.items():
        path = pathlib.Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def build(folder, prefix, generator, *options):
    made = os.path.join(folder, "build")
    steps.run("configure", ["cmake", "-S", folder, "-B", made, "-G", generator, f"-DCMAKE_PREFIX_PATH={prefix}", *options])
    steps.run("build", ["cmake", "--build", made])
    return made


def refused(folder, prefix, want):
    done = subprocess.run(["cmake", "-S", folder, "-B", os.path.join(folder, "build"), f"-DCMAKE_PREFIX_PATH={prefix}"],
                          capture_output=True, text=True, check=False)
    text = " ".join(done.stderr.split())
    if done.returncode == 0 or want not in text:
        sys.exit(f"expected to be refused with\n{want}\ngot status {done.returncode}\n{done.stderr}")
    print(f"ok: refused: {want}")


def cpp(work, prefix, generator):
    lib = "tdsl_add_library(kern SOURCES kern.tdsl EMIT hpp)\n"
    files = {"CMakeLists.txt": APP + EXPORT, "kernels/CMakeLists.txt": lib, "kernels/kern.tdsl": KERNEL, "main.cpp": MAIN}
    made = build(project(os.path.join(work, "cpp"), files), prefix, generator, "-DCMAKE_CXX_FLAGS=-std=c++14")
    expect("C++ alone", steps.run("run", [os.path.join(made, "app")]), "2 4\n")
    placed = os.path.join(work, "placed")
    shutil.rmtree(placed, ignore_errors=True)
    steps.run("install", ["cmake", "--install", made, "--prefix", placed])
    expect("headers", sorted(os.listdir(os.path.join(placed, "include"))), ["kern.h", "kern.hpp"])
    user = project(os.path.join(work, "user"), {"CMakeLists.txt": USER, "main.cpp": MAIN})
    expect("from another project", steps.run("run", [os.path.join(build(user, placed, generator), "user")]), "2 4\n")
    plain = project(os.path.join(work, "plain"), dict(files, **{"CMakeLists.txt": APP + "install(TARGETS kern)\n"}))
    made, placed = build(plain, prefix, generator), os.path.join(work, "placed plainly")
    shutil.rmtree(placed, ignore_errors=True)
    steps.run("install", ["cmake", "--install", made, "--prefix", placed])
    expect("install(TARGETS kern)", sorted(os.listdir(os.path.join(placed, "include"))), ["kern.h", "kern.hpp"])
    inside = "function(mine)\n  tdsl_add_library(kern SOURCES kern.tdsl)\nendfunction()\nmine()\n"
    refused(project(os.path.join(work, "inside"), dict(files, **{"kernels/CMakeLists.txt": inside})), prefix,
            "a function such as mine cannot enable")
    refused(project(os.path.join(work, "kind"), dict(files, **{"kernels/CMakeLists.txt": lib.replace("hpp", "ada")})), prefix,
            "EMIT is 'ada'; it takes hpp, fortran and rust")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--build", required=True)
    p.add_argument("--work", required=True)
    a = p.parse_args()
    if not shutil.which("c++"):
        print("skipped: no c++")
        sys.exit(77)
    prefix = os.path.join(a.work, "prefix")
    shutil.rmtree(prefix, ignore_errors=True)
    steps.run("install", ["cmake", "--install", a.build, "--prefix", prefix])
    for generator in ["Unix Makefiles", *(["Ninja"] if shutil.which("ninja") else [])]:
        cpp(os.path.join(a.work, generator), prefix, generator)
        if shutil.which("gfortran"):
            made = build(project(os.path.join(a.work, generator, "fortran"),
                                 {"CMakeLists.txt": FORTRAN, "kern.tdsl": KERNEL, "main.f90": MAIN_FORTRAN}), prefix, generator)
            expect("Fortran alone", steps.run("run", [os.path.join(made, "app")]), "2 4\n")
        else:
            print("skipped: no gfortran")


main()
