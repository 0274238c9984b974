#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What people type who know compilers and other tools: dependency files, values in the order of parameters, n=3. See cli.py."""
import json
import sys

from support import *

GEMM = "kernel gemm(A: f64[m, k], B: f64[k, n], s: f64) -> (C: f64[m, n]) {\n    C[i,j] = s * A[i,p] * B[p,j];\n}\n"


# ---- dependency files

@test
def a_rule_names_what_mt_says():
    write("part.tdsl", "const two = 2;\n")
    write("k.tdsl", 'include "part.tdsl";\ninclude <nn.tdsl>;\n' + GEMM.replace("s *", "two * s *"))
    files_ = ": k.tdsl \\\n  part.tdsl\n"
    tdslc("k.tdsl", "-o", "k.c", "-MMD")
    equal(read("k.c.d").decode(), "k.c" + files_)
    tdslc("k.tdsl", "-o", "k.c", "-MD", "-MT", "obj/k.o", "-MT", "$(dir)/k.d", "-MF", "k.d")
    equal(read("k.d").decode(), "obj/k.o $(dir)/k.d" + files_)
    tdslc("k.tdsl", "-o", "-", "-MT", "k.o", "-MF", "k.d")
    equal(read("k.d").decode(), "k.o" + files_)
    tdslc("k.tdsl", "-o", "k.c", "-MT", "k.o", status=2)
    tdslc("k.tdsl", "-o", "-", "-MMD", status=2)


# ---- values

@test
def values_without_names_come_in_the_order_of_parameters():
    write("k.tdsl", GEMM)
    a, b = fill((3, 4), 1), fill((4, 5), 2)
    save("A.npy", a)
    save("B.npy", b)
    for words in (["A.npy", "B.npy", "2"], ["A=A.npy", "s=2", "B=B.npy"], ["A.npy", "s=2", "B.npy"], ["A.npy", "B=B.npy", "s=2"]):
        tdsl_run("k.tdsl", "--target=interp", *words, "-o", "C.npy")
        same(load("C.npy"), 2 * a @ b)
    assert "'A' is given twice" in tdsl_run("k.tdsl", "A.npy", "B.npy", "2", "A=A.npy", status=1).messages
    assert "4 values without a name are given, the kernel has 3" in tdsl_run("k.tdsl", "A.npy", "B.npy", "2", "3", status=1).messages
    assert "no value is given for 's'" in tdsl_run("k.tdsl", "A.npy", "B.npy", status=1).messages
    # Random numbers do not depend on how a value is given.
    sums = {tdsl_run("k.tdsl", "--target=interp", "-D", "m=3", "-D", "k=4", "-D", "n=5", *words, "--checksum").text
            for words in (["random:1", "random:2", "0.5"], ["A=random:1", "B=random:2", "s=0.5"])}
    equal(len(sums), 1)


@test
def an_extent_without_d_is_taken_with_a_note():
    write("k.tdsl", GEMM)
    done = tdslc("k.tdsl", "n=3", "k~100", "--dump=graph")
    equal(done.text, tdslc("k.tdsl", "-D", "n=3", "-D", "k~100", "--dump=graph").text)
    equal(done.messages, "tdslc: note: 'n=3' is taken for -D n=3\ntdslc: note: 'k~100' is taken for -D k~100\n")
    notes = [json.loads(line) for line in tdslc("k.tdsl", "n=3", "--stop-after=graph", "--diagnostics=json").messages.splitlines()]
    equal(notes, [{"level": "note", "message": "'n=3' is taken for -D n=3"}])
    assert "-Wdefine" in tdslc("k.tdsl", "q=3", "--stop-after=graph").messages
    write("n=3", GEMM)  # a file is a file
    assert "more than one input" in tdslc("k.tdsl", "n=3", status=2).messages
    words = ["A=ones", "B=ones", "s=1", "--target=interp", "--checksum"]
    with_d = tdsl_run("k.tdsl", "-D", "m=2", "-D", "k=3", "-D", "n=4", *words)
    without = tdsl_run("k.tdsl", "m=2", "k=3", "n=4", *words)
    equal(without.text, with_d.text)
    equal(without.messages.count("is taken for -D"), 3)
    equal(tdsl_run("k.tdsl", "m=2", "k=3", "n=4", "A=ones", "B=ones", "s=1", "--checksum").text, with_d.text)
    assert "no parameter 'q'" in tdsl_run("k.tdsl", "q=3", "m=2", "k=3", "n=4", *words, status=1).messages


sys.exit(main())
