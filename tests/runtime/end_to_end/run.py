#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The whole way: tdslc prints C and NKI forms, build_neff.py makes NEFFs (for the stub of libnrt, see ../fake_neuron), a
program registers both and compares their results through libtdsl (program.c).

    run.py --bin FOLDER --stub FOLDER --library LIBTDSL.a --tree FOLDER --cc CC [--cflags FLAGS]"""
import argparse
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def run(*argv, **options):
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        print(" ".join(argv), done.stdout, f"exit status {done.returncode}", sep="\n")
        sys.exit(1)
    return done.stdout


def main():
    p = argparse.ArgumentParser()
    for name in ("bin", "stub", "library", "tree", "cc"):
        p.add_argument("--" + name, required=True)
    p.add_argument("--cflags", default="")
    a = p.parse_args()
    emulator = os.path.join(a.tree, "runtime", "nki_emulator", "run.py")
    with tempfile.TemporaryDirectory() as work:
        tdslc = os.path.join(a.bin, "tdslc")
        env = dict(os.environ, PYTHONPATH=os.path.join(a.tree, "tests", "runtime", "fake_neuron"),
                   FAKE_EMULATOR=emulator, FAKE_MAKE_NEFF=os.path.join(a.stub, "make_stub_neff"),
                   PYTHONDONTWRITEBYTECODE="1")
        files = []
        for name, more in (("kernels", ["-D", "m=40"]), ("parts", ["-D", "p=300", "-D", "q=260", "--max-instructions=20"])):
            source, out = os.path.join(HERE, name + ".tdsl"), os.path.join(work, name)
            run(tdslc, source, "-o", out + ".c")
            run(tdslc, source, "--target=trn2", "-w", "-D", "k=30", "-D", "n=50", *more, "-o", out)
            run(sys.executable, os.path.join(out, "build_neff.py"), env=env)
            run(a.cc, "-std=c11", "-Wall", "-Wextra", "-Werror", "-c", os.path.join(out, name + "_trn2.c"), "-o", out + ".o",
                "-I" + os.path.join(a.tree, "runtime", "include"), f'-DTDSL_NKI_FOLDER="{out}/"')
            files += [out + ".c", out + ".o"]
        program = os.path.join(work, "program")
        run(a.cc, "-std=c11", "-O1", "-D_POSIX_C_SOURCE=200809L", *a.cflags.split(), f"-I{work}",
            "-I" + os.path.join(a.tree, "runtime", "include"), os.path.join(HERE, "program.c"), *files, a.library, "-lm", "-ldl", "-lpthread", "-o", program)
        print(run(program, os.path.join(a.stub, "libnrt.so.1"), emulator, sys.executable), end="")


main()
