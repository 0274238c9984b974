#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A new back end is a folder and nothing else: the null target's folder, copied under another name into a copy of the tree, is found by
the build, keeps the rules of the house, and compiles kernels as the one it was copied from.

    folder.py --source ROOT --tdslc PATH --cc CC LIBRARY...

The libraries of the build are linked with what is new: the folder, and the table of targets that the build has made with it.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

PROGRAM = "dim n ~ 9;\nkernel add(a: f32[n], b: f32[n]) -> (c: f32[n]) { c[i] = 2 * a[i] + b[i]; }\n"


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def main():
    p = argparse.ArgumentParser()
    for option in ("source", "tdslc", "cc"):
        p.add_argument(f"--{option}", required=True)
    p.add_argument("libraries", nargs="+")
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tree = os.path.join(folder, "tree")
        for part in ("compiler", "grammar", "runtime"):
            shutil.copytree(os.path.join(a.source, part), os.path.join(tree, part))
        shutil.copy(os.path.join(a.source, "CMakeLists.txt"), tree)
        home = os.path.join(tree, "compiler/backend")
        shutil.copytree(os.path.join(home, "null"), os.path.join(home, "probe"))
        for name in os.listdir(os.path.join(home, "probe")):
            path = os.path.join(home, "probe", name)
            with open(path, encoding="utf-8") as f:
                text = f.read()
            with open(path, "w", encoding="utf-8") as f:
                f.write(re.sub(r"\btarget_null\b", "target_probe", text).replace('"null"', '"probe"'))

        for rule in ("layers", "targets", "sizes"):
            run(sys.executable, "-B", os.path.join(a.source, "tests/meta", f"{rule}.py"), tree)
        build = os.path.join(folder, "build")
        run("cmake", "-S", tree, "-B", build, "-DTDSL_TESTS=OFF", "-DTDSL_INSTALL=OFF", f"-DCMAKE_C_COMPILER={a.cc}")
        with open(os.path.join(build, "generated/backend/targets.inc"), encoding="utf-8") as f:
            if "TARGET(probe)\n" not in f.read():
                sys.exit("the build has not found the folder")

        compiler = os.path.join(tree, "compiler")
        tool, source = os.path.join(folder, "tdslc"), os.path.join(folder, "add.tdsl")
        run(a.cc, "-std=c11", "-D_POSIX_C_SOURCE=200809L", '-DTDSL_VERSION="0"', f"-I{compiler}", f"-I{build}/generated", "-o", tool,
            f"{compiler}/driver/main.c", f"{compiler}/driver/targets.c", f"{compiler}/backend/probe/target.c",
            "-Wl,--start-group", *a.libraries, "-Wl,--end-group", "-lgmp", "-ljansson", "-lm", "-ldl")
        with open(source, "w", encoding="utf-8") as f:
            f.write(PROGRAM)
        made = run(tool, source, "--target=probe", "-o", "-")
        expected = run(a.tdslc, source, "--target=null", "-o", "-").replace('form legal "null"', 'form legal "probe"')
        if made != expected or 'form legal "probe"' not in made:
            sys.exit(f"--target=probe prints\n{made}\nnot\n{expected}")
        if run(tool, source, "--target=c", "-o", "-").count("\n") < 10:
            sys.exit("the other targets are gone")


main()
