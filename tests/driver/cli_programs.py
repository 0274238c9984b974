#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tdslc on whole programs, their C through every compiler with every warning: too long for quick runs. See cli.py."""
import os
import shutil
import sys

from support import *


@test
def emitted_c_compiles_alone_without_a_warning():
    write("t.tdsl", TOUR)
    compilers = [c for c in ("gcc", "clang") if shutil.which(c)]
    assert compilers
    programs = [["t.tdsl"], [*CHAIN, "--dtype=f64"], ["-e", "i,i->", "--shape=?", "--shape=?", "--dtype=c64"],
                ["-e", "->", "--shape="], ["-e", "ij,jk->ik", "--shape=?x0", "--shape=0x4", "--dtype=i32"],
                ["-e", "iij->j", "--shape=4x4x?", "--dtype=bool"],
                ["programs.tdsl", "-w"]]
    shutil.copy(ROOT / "tests/programs/programs.tdsl", ".")
    for program in programs:
        tdslc(*program, "-o", "k.c")
        for compiler in compilers:
            done = run(compiler, *STRICT, *(["-O1"] if "-w" in program else []), "k.c", "-o", "k.o")  # half a minute at -O2
            equal(done.err, b"", " ".join(program))
        if shutil.which("g++"):
            write("user.cc", '#include "k.h"\nint main() { return 0; }\n')
            run("g++", "-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "user.cc")


@test
def what_c_has_no_room_for_is_a_stated_limit():
    def kernel(n, open_dims):
        shapes = [f"n{k}" if k < open_dims else "4" for k in range(n)]
        return "dim " + ", ".join(f"n{k} ~ 4" for k in range(open_dims)) + ";\nkernel k(" + \
            ", ".join(f"p{k}: f64[{x}]" for k, x in enumerate(shapes)) + ") -> (s: f64) {\n    s = " + \
            " + ".join(f"sum[i](p{k}[i])" for k in range(n)) + ";\n}\n"
    for n, open_dims, fits in ((109, 10, True), (110, 10, False), (59, 60, True), (60, 60, False), (600, 1, False)):
        write("t.tdsl", kernel(n, open_dims))
        done = tdslc("t.tdsl", "-o", "k.c", status=0 if fits else 4)
        equal("at most 120 arguments and open dims" in done.messages, not fits)
        if fits:
            run("gcc", *STRICT, "k.c", "-o", "k.o")
            os.unlink("k.c")
        assert not os.path.exists("k.c")
    assert "| 120: C promises 127 parameters" in (ROOT / "docs/language.md").read_text()


@test
def a_dump_of_every_stage_reads_back_and_gives_the_same_c():
    write("t.tdsl", TOUR)
    programs = [("t.tdsl",), (str(ROOT / "tests/programs/programs.tdsl"), "-w")]
    for name, *more in programs:
        tdslc(name, *more, "-o", "want.c", "--header=k.h")
        for stage in STAGES:
            tdslc(name, *more, "--dump=" + stage, "-o", "d.dump")
            equal(tdslc(name, *more, "--dump=" + stage).out, read("d.dump"), stage)
            assert f"tdsl-dump {stage}" in read("d.dump").decode().splitlines()[0] or stage == "legal", stage
            equal(tdslc("d.dump", *more, "--dump=" + stage).out, read("d.dump"), f"{stage} of its dump")
            tdslc("d.dump", *more, "-o", "got.c", "--header=k.h")
            assert read("got.c") == read("want.c"), f"C from the {stage} dump of {name} differs"


if __name__ == "__main__":
    sys.exit(main())
