#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--print-machine and --machine: what is printed reads back, each number is read within its limits and compiles there, and
changes the C where it is to."""
import re

from support import equal, main, read, share, tdsl_run, tdslc, test, write

PROGRAM = """dim n ~ 300;
kernel f(A: f64[n,p,k], B: f64[k,q,n], x: f64[200]) -> (C: f64[p,n,q], S: f64[p], m: f64) {
    C[i,a,j] = A[a,i,k] * B[k,j,b] * A[b,i,k];
    S[i] = sum[a,j](exp(C[i,a,j]) / (1 + C[i,a,j]));
    m = max[i](x[i]);
}
""".replace("[n,p,k]", "[n,9,5]").replace("[k,q,n]", "[5,33,n]").replace("[p,n,q]", "[9,n,33]").replace("[p]", "[9]")
MATRICES = "kernel f(A: f32[300,700], B: f32[700,500]) -> (C: f32[300,500]) { C[i,j] = A[i,k] * B[k,j]; }\n"


def lines():
    return tdslc("--print-machine").text.splitlines()


@test
def printed_and_read():
    write("p.tdsl", MATRICES)
    write("m", tdslc("--print-machine").text)
    equal(tdslc("--print-machine", "--machine=m").text, read("m").decode())
    equal(tdslc("p.tdsl", "-o", "-", "--machine=m").text, tdslc("p.tdsl", "-o", "-").text)
    write("m", "# nothing but\n\n  block.sum \t 128 # positions\r\nL2.capacity 1e6")
    changed = tdslc("--print-machine", "--machine=m").text
    assert re.search(r"^block.sum +128 ", changed, re.M) and re.search(r"^L2.capacity +1000000 ", changed, re.M), changed
    equal(len(changed.splitlines()), len(lines()))
    text = tdslc("p.tdsl", "-o", "-", "--machine=m").text
    assert "128" in text and text != tdslc("p.tdsl", "-o", "-").text
    sums = [tdsl_run("p.tdsl", "A=fill", "B=fill", "--checksum", *more).text for more in ([], ["--machine=m"])]
    equal(sums[0], sums[1])
    names = [line.split()[0] for line in lines()]
    equal([line.split()[0] for line in tdslc("--print-machine=native").text.splitlines()], names)
    tdslc("--print-machine=native", "-o", "here")
    tdslc("p.tdsl", "-o", "p.c", "--machine=here")


@test
def refused():
    write("p.tdsl", MATRICES)
    for text, said in (("L2.capaciti 3\n", "did you mean 'L2.capacity'?"), ("tea 3", "--print-machine prints all of them"),
                       ("block.sum 15", "'block.sum' is a whole number from 16 to 340"), ("block.sum 1.5", "a whole number"),
                       ("block.sum", "followed by one number"), ("block.sum 16 17", "followed by one number"), ("time.op nan", "from 0 to 1"),
                       ("time.op -1", "from 0 to 1"), ("time.op 1e", "from 0 to 1"), ("time.op 0x1", "from 0 to 1"),
                       ("time.op 1\ntime.op 1", "given twice"), ("time.op 0\0", "from 0 to 1"), ("time.op " + 50 * "0", "from 0 to 1")):
        write("m", text)
        for done in (tdslc("p.tdsl", "-o", "p.c", "--machine=m", status=1), tdslc("--print-machine", "--machine=m", status=1),
                     tdsl_run("p.tdsl", "A=fill", "B=fill", "--machine=m", status=1)):
            assert "E0404" in done.messages and said in done.messages, done.messages
    write("m", "")
    tdslc("p.tdsl", "-o", "p.c", "--machine=absent", status=3)
    tdslc("p.tdsl", "-o", "m", "--emit=c", "--machine=m", status=2)  # an input is no output
    tdslc("p.tdsl", "-o", "p", "--machine=m", "--target=trn2", status=2)
    tdslc("--print-machine", "--target=trn2", status=2)
    tdslc("--print-machine=here", status=2)


@test
def limits():
    """At both ends of what a number may be the program compiles and means the same."""
    write("p.tdsl", PROGRAM)
    for line in share(lines(), 24, gate=3):
        name = line.split()[0]
        write("m", name + " -1")
        low, high = re.search(r"from (\S+) to (\S+)", tdslc("--print-machine", "--machine=m", status=1).messages).groups()
        for value in {low, high}:
            write("m", f"{name} {value}\n")
            tdslc("p.tdsl", "-w", "-D", "n=13", "-o", "p.c", "--machine=m", "--check-each")
            tdslc("p.tdsl", "-w", "-o", "p.c", "--machine=m")


main()
