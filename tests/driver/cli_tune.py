#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tdslc --tune: what it writes, what later builds make of it, what it says, and that it fails like everything else. No time is
asserted. See cli.py."""
import signal
import sys

import support
from support import *

PROGRAM = """dim n ~ 40, m ~ 24;
kernel f(A: f32[n,m], B: f32[m,n], X: inout f32[n,n]) -> (R: f32[n,n], s: f32) {
    T[i,k] = A[i,j] * B[j,k];
    R[i,l] = T[i,k] * X[k,l];
    s = max[i,j](R[i,j]);
    X[i,j] = X[i,j] + T[i,j];
}
kernel g(Z: f64[n]) -> (Q: f64[n]) { Q[i] = 2 * Z[i]; }
"""
SHORT = ["--tune", f"--tune-time={1 if QUICK else 3}", "--cflags=-O0"]
VALUES = ["--kernel=f", "-w", "--checksum", "-Dn=21", "-Dm=9", "A=fill", "B=fill", "X=fill"]
TRIED = r"f +(\d+): predicted (\S+) ms, measured (\S+) ms, ratio (\S+?)(, best)?: (.*)"


@test
def a_plan_is_what_later_builds_use():
    write("p.tdsl", PROGRAM)
    done = tdslc("p.tdsl", "-w", *SHORT, "-o", "plan")
    tried = re.findall(TRIED, done.messages)
    assert len(tried) >= 2, done.messages
    equal([int(t[0]) for t in tried], list(range(1, len(tried) + 1)), "numbers")
    equal(tried[0][4:], (", best", "the model's choice"), "first")
    for _, predicted, measured, ratio, _, what in tried:
        assert float(measured) > 0 and what, what
        got = float(predicted) / float(measured)
        assert abs(got - float(ratio)) <= 0.006 + 0.01 * got, (got, ratio)
    assert re.search(rf"f: {len(tried)} nests tried, .*geometric mean", done.messages), done.messages
    assert re.search(r"^g: \d+ nests tried", done.messages, re.M), done.messages
    equal(files(), ["p.tdsl", "plan"])
    tdslc("p.tdsl", "-w", "--nest=plan", "-o", "p.c")
    equal(tdslc("plan", "--dump=nest").out, read("plan"))
    want = tdsl_run("p.tdsl", *VALUES).text
    equal(tdsl_run("p.tdsl", *VALUES, "--nest=plan").text, want)
    equal(tdsl_run("plan", *VALUES).text, want)
    tdslc("p.tdsl", "-w", *SHORT, "--nest=plan", "--kernel=g", "-o", "again")  # starts from it
    tdslc("p.tdsl", "-w", "--kernel=g", "--nest=again", "-o", "g.c")


@test
def what_was_tried_is_a_tree():
    """On two threads, of which the C compiler is told. Each nest stands below the one that it is a change of."""
    write("p.tdsl", PROGRAM)
    write("mycc", '#!/bin/sh\necho "$*" >> called\nexec cc "$@"\n')
    os.chmod("mycc", 0o755)
    said = tdslc("p.tdsl", "-w", "--kernel=f", *SHORT, "-Dn=300", "-Dm=200", "--tune-threads=2", f"--cc={os.getcwd()}/mycc", "-o", "plan").messages
    assert "-fopenmp" in read("called").decode().split(), read("called")
    numbered = [int(t[0]) for t in re.findall(TRIED, said)]
    rows = re.findall(r"^ *(\d+\.\d\d)  ((?:[|] {2}| {3})*(?:[+`]- )?)(\d+) (.+)$", said, re.M)
    equal(sorted(int(r[2]) for r in rows), numbered)
    equal(rows[0], ("1.00", "", "1", "the model's choice, best"))
    assert all(len(r[1]) >= 3 for r in rows[1:]), said
    tdslc("p.tdsl", "-w", "--nest=plan", "--kernel=f", "-Dn=300", "-Dm=200", "-o", "k.c")
    for args in (["--tune-threads=2"], ["--tune", "--tune-threads=0"], ["--tune", "--tune-threads=x"]):
        assert "--tune-threads" in tdslc("p.tdsl", *args, "-o", "no", status=2).messages


@test
def a_store_of_plans_is_found_by_what_a_program_computes():
    write("p.tdsl", PROGRAM)
    os.environ["TDSL_PLANS"] = "plans/of mine"
    os.mkdir("plans")
    try:
        said = tdslc("p.tdsl", "-w", *SHORT, "--tune-time=1").messages
        equal(len(files()), 2)
        kept = files()[1]
        assert f"tdslc: note: the plan is kept as '{kept}'" in said, said
        assert kept.startswith("plans/of mine/") and kept.endswith(".nest"), kept
        equal(tdslc("p.tdsl", "--dump=nest").out, read(kept))
        # Names of values, comments and sizes to plan for may change, what is computed may not.
        same_ = PROGRAM.replace("T[", "Tx[").replace("~ 40", "~ 50") + "// more\n"
        for text, used in ((PROGRAM, True), (same_, True), (PROGRAM.replace("2 * Z", "3 * Z"), False), (PROGRAM.replace("dim n ~ 40", "dim n = 40"), False)):
            write("q.tdsl", text)
            done = tdslc("q.tdsl", "-Wno-spill", "-o", "q.c")
            equal(f"tdslc: note: the plan '{kept}' of TDSL_PLANS is used" in done.messages, used, text)
        want = tdsl_run("p.tdsl", *VALUES, "--nest=" + kept).text
        equal(tdsl_run("p.tdsl", *VALUES).text, want)
        # What is decided on the command line is not asked for; other stages, targets and machines have no plan.
        for more in (["--effort=0", "-o", "q.c"], ["--dump=graph"], ["--threads~4", "-o", "q.c"], ["--target=null", "-o", "q"], ["--nest=" + kept, "-o", "q.c"]):
            assert "is used" not in tdslc("p.tdsl", "-Wno-spill", *more).messages, more
        tdslc("p.tdsl", "-w", *SHORT, "--tune-time=1", "-o", "plan")  # a file beside it
        equal(read("plan"), read(kept))
        write(kept, "nonsense")
        assert kept in tdslc("p.tdsl", "-o", "q.c", status=1).messages
    finally:
        del os.environ["TDSL_PLANS"]


@test
def a_plan_of_another_program_is_refused():
    write("p.tdsl", PROGRAM)
    tdslc("p.tdsl", "-w", *SHORT, "--tune-time=1", "-o", "plan")
    for old, new, message in (("X[i,j] + T[i,j]", "X[i,j] - T[i,j]", "kernel 'f' computes something else"),
                              ("2 * Z[i]", "3 * Z[i]", "kernel 'g' computes something else"),
                              ("T[i,k] * X[k,l]", "T[k,i] * X[k,l]", "kernel 'f' computes something else"),
                              ("Z: f64[n]", "Z: f64[m]", "kernel 'g'"), ("Z", "Y", "parameter 'Y'")):
        assert old in PROGRAM
        write("q.tdsl", PROGRAM.replace(old, new).replace("Q: f64[n]", "Q: f64[m]" if "[m]" in new and "Z" in old else "Q: f64[n]"))
        both = [(tdslc, ["-o", "q.c"]), (tdsl_run, VALUES)]
        for tool, more in both if "'f'" in message else both[:1]:  # VALUES are for kernel f
            refused = tool("q.tdsl", "-w", "--nest=plan", *more, status=1).messages
            assert "E0402" in refused and "another program" in refused and message in refused, refused
    # Names of values, places and typical sizes are nothing that a plan depends on.
    write("q.tdsl", "// moved\n" + PROGRAM.replace("T[", "Moved[").replace("~ 40", "~ 30"))
    tdslc("q.tdsl", "-w", "--nest=plan", "-o", "q.c")


@test
def the_time_that_is_gone_is_shown_on_a_terminal():
    # Long enough for the line to be shown, whatever the C compiler finds in a cache: it begins after half a second.
    write("t.tdsl", "kernel f(A: f64[900,900], B: f64[900,900]) -> (C: f64[900,900]) { C[i,j] = A[i,k]*B[k,j]; }")
    command = (support.ARGS.tdslc, "t.tdsl", "--tune", "--tune-time=2", "-o", "t.nest")
    text, status = on_terminal(*command)
    assert status == 0 and re.search(r"\rf: \d+ nests tried, \d+ of 2 s\033\[K\r\033\[K", text), text
    text, status = on_terminal(*command, term="dumb")
    assert status == 0 and re.search(r"\d+ nests tried, \d+ not for", text) and " of 2 s" not in text, text


@test
def equations_dumps_and_bound_dims_are_tuned():
    tdslc("-e", "ij,jk->ik", "--shape=30x20", "--shape=20x40", *SHORT, "--tune-time=1", "-o", "plan")
    tdslc("-e", "ij,jk->ik", "--shape=30x20", "--shape=20x40", "--nest=plan", "-o", "e.c")
    refused = tdslc("-e", "ij,kj->ik", "--shape=30x20", "--shape=40x20", "--nest=plan", "-o", "e.c", status=1).messages
    assert "another program" in refused, refused
    write("p.tdsl", PROGRAM)
    done = tdslc("p.tdsl", "-w", "--kernel=f", *SHORT, "--tune-time=1", "-Dn=12", "-Dm=7", "-o", "bound")
    assert "f32[12,7]" in read("bound").decode()
    tdslc("p.tdsl", "-w", "--kernel=f", "-Dn=12", "-Dm=7", "--nest=bound", "-o", "p.c")
    for stage in share(("graph", "path", "nest"), 3):
        tdslc("p.tdsl", "-w", "--dump=" + stage, "-o", "d.dump")
        tdslc("d.dump", "-w", *SHORT, "--tune-time=1", "-o", "plan")
        tdslc("plan", "-w", "-o", "p.c")
    equal(re.findall(TRIED, done.messages)[0][5], "the model's choice")


@test
def what_cannot_be_tuned_is_refused_and_nothing_is_written():
    write("p.tdsl", PROGRAM)
    tdslc("p.tdsl", "-w", "--dump=loop", "-o", "loop.dump")
    before = files()
    for status, message, args in (
            (2, "--tune-time=0", ["p.tdsl", "--tune", "--tune-time=0"]), (2, "--tune-time=soon", ["p.tdsl", "--tune", "--tune-time=soon"]),
            (2, "--tune", ["p.tdsl", "--tune-time=3"]), (2, "--tune", ["p.tdsl", "--cc=cc"]),
            (2, "--dump", ["p.tdsl", "--tune", "--dump=nest"]), (2, "--report", ["p.tdsl", "--tune", "--report"]),
            (2, "--no-fuse", ["p.tdsl", "--tune", "--no-fuse"]), (2, "--header", ["p.tdsl", "--tune", "--header=p.h"]),
            (2, "trn2", ["p.tdsl", "--tune", "--target=trn2"]), (2, "--tune", ["-e", "i->i", "--shape=3", "--emit=path", "--tune"]),
            (3, "absent.tdsl", ["absent.tdsl", "--tune"]), (3, "absent.nest", ["p.tdsl", "--tune", "--nest=absent.nest"]),
            (1, "past stage 'nest'", ["loop.dump", "--tune"]),
            (5, "cannot run '/nowhere/cc'", ["p.tdsl", *SHORT, "--cc=/nowhere/cc"]),
            (5, "the C compiler failed", ["p.tdsl", *SHORT, "--cflags=-no-such-flag"]),
            (3, "nowhere/plan", ["p.tdsl", *SHORT, "--tune-time=1", "-o", "nowhere/plan"])):
        done = tdslc("-w", *args, *(["-o", "plan"] if "-o" not in args else []), status=status)
        assert message in done.messages, (args, done.messages)
        equal(files(), before, str(args))


@test
def the_c_compiler_is_that_of_the_environment():
    write("my cc", '#!/bin/sh\necho "$*" >> called\nexec cc "$@"\n')
    os.chmod("my cc", 0o755)
    os.rename("my cc", "mycc")
    os.environ["CC"] = f"{os.getcwd()}/mycc -DFROM_CC"
    try:
        tdslc("-e", "ij,jk->ik", "--shape=3x2", "--shape=2x4", "--tune", "--tune-time=1", "-o", "plan")
        assert "-DFROM_CC -O2 -shared" in read("called").decode()
        os.unlink("called")
        run("tdsl-run", "-e", "ij->i", "--shape=3x4", "ones")
        assert "-DFROM_CC -O2 -shared" in read("called").decode()
        os.unlink("called")
        run("tdsl-run", "--cc=cc", "-e", "ij->i", "--shape=3x4", "ones")
        equal(os.path.exists("called"), False)
    finally:
        del os.environ["CC"]


WORTH = ["-e", "ij->i", "--shape=2000x600", "random:1"]  # two threads


@test
def threads_are_those_of_the_environment():
    """What OpenMP does not understand is all CPUs; an option says otherwise. The C compiler is told of threads when there are several
    and the kernel has a loop for them."""
    cpus = os.sched_getaffinity(0)
    many = len(cpus) > 1
    write("mycc", '#!/bin/sh\necho "$*" > called\nfor x; do shift; [ "$x" = -fopenmp ] || set -- "$@" "$x"; done\nexec cc "$@"\n')
    os.chmod("mycc", 0o755)
    had = os.environ.pop("OMP_NUM_THREADS", None)
    try:
        for said, option, several in share(((None, [], many), ("1", [], False), ("2", [], True), ("3,2", [], True), (" 2 ", [], True),
                                      ("", [], many), ("two", [], many), ("2x", [], many), ("0", [], many), ("-2", [], many),
                                      ("1025", [], True), ("9" * 30, [], many), ("2", ["--threads=1"], False), ("1", ["--threads=2"], True)), 2):
            os.environ.pop("OMP_NUM_THREADS", None)
            if said is not None:
                os.environ["OMP_NUM_THREADS"] = said
            tdsl_run(f"--cc={os.getcwd()}/mycc", *option, *WORTH)
            equal("-fopenmp" in read("called").decode().split(), several, (said, option))
        os.environ.pop("OMP_NUM_THREADS", None)
        os.sched_setaffinity(0, {min(cpus)})
        tdsl_run(f"--cc={os.getcwd()}/mycc", *WORTH)
        equal("-fopenmp" in read("called").decode().split(), False)
        os.sched_setaffinity(0, cpus)
        tdsl_run(f"--cc={os.getcwd()}/mycc", "--threads=2", "-e", "ij->i", "--shape=3x4", "ones")
        equal("-fopenmp" in read("called").decode().split(), False)
    finally:
        os.sched_setaffinity(0, cpus)
        os.environ.pop("OMP_NUM_THREADS", None)
        if had is not None:
            os.environ["OMP_NUM_THREADS"] = had


@test
def a_compiler_without_openmp_computes_in_one_thread():
    """Without a word, unless threads were asked for. Its other messages are there once."""
    write("old", '#!/bin/sh\nfor x; do [ "$x" != -fopenmp ] || { echo "what is $x?" >&2; exit 1; }; done\nexec cc "$@"\n')
    write("chatty", '#!/bin/sh\necho hello >&2\nexec cc "$@"\n')
    for name in "old", "chatty":
        os.chmod(name, 0o755)
    os.environ["OMP_NUM_THREADS"] = "2"
    try:
        done = tdsl_run("--cc=./old", "--checksum", "--time", *WORTH)
        equal(done.messages, "")
        assert "\nthreads=1: the C compiler has no -fopenmp\n" in done.text, done.text
        equal(tdsl_run("--checksum", *WORTH).text, "".join(done.text.splitlines(True)[:1]))
        equal(tdsl_run("--cc=./chatty", *WORTH).messages, "hello\n")
        for command in ["--cc=./old", "--threads=2", *WORTH], ["--cc=./old", "--cflags=-Dint=3", *WORTH]:
            done = tdsl_run(*command, status=5)
            assert "the C compiler failed" in done.messages, done.messages
    finally:
        del os.environ["OMP_NUM_THREADS"]


@test
def time_says_what_threads_share_and_no_bit_depends_on_them():
    sums = set()
    for n in 1, 2, 3, 7:
        sums.add(tdsl_run("--checksum", f"--threads={n}", *WORTH).text)
        said = tdsl_run("--time", f"--threads={n}", *WORTH).text.splitlines()[-1]
        equal(said, "threads=1; several share the loop over i" if n == 1 else f"threads={n} share the loop over i")
    equal(len(sums), 1, str(sums))
    said = tdsl_run("--time", "--threads=2", "-e", "i->", "--shape=4", "ones").text.splitlines()[-1]
    assert re.fullmatch(r"threads=1; several share nothing: \S+ us of work, and from 20 us on two are worth it", said), said


def wait_until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.01)


@test
def a_signal_ends_it_and_leaves_nothing():
    """While a C compiler runs, and while kernels do."""
    os.mkdir("tmp")
    write("p.tdsl", PROGRAM)
    write("slow", f"#!/bin/sh\n: > '{os.getcwd()}/started'\nsleep 300\n")
    os.chmod("slow", 0o755)
    for more, number, ready in ((["--cc=./slow"], signal.SIGINT, lambda c: os.path.exists("started")),
                                ([], signal.SIGTERM, lambda c: b"f " in c.stderr.readline())):
        child = subprocess.Popen([support.ARGS.tdslc, "-w", "p.tdsl", "--tune", "--tune-time=100", *more, "-o", "plan"],
                                 env={**os.environ, "TMPDIR": os.getcwd() + "/tmp"}, stderr=subprocess.PIPE)
        wait_until(lambda: ready(child))
        child.send_signal(number)
        child.communicate(timeout=60)
        equal((child.returncode, os.listdir("tmp"), os.path.exists("plan")), (-number, [], False))


@test
def an_interrupt_writes_the_best_so_far():
    write("p.tdsl", PROGRAM)
    child = subprocess.Popen([support.ARGS.tdslc, "-w", "p.tdsl", "--tune", "--tune-time=100", "-o", "plan"], stderr=subprocess.PIPE)
    wait_until(lambda: b"measured" in child.stderr.readline())
    child.send_signal(signal.SIGINT)
    said = child.communicate(timeout=60)[1].decode()
    equal(child.returncode, 0)
    assert "stopped: the best nests so far are written" in said, said
    tdslc("-w", "p.tdsl", "--nest=plan", "-o", "k.c")


@test
def a_mistake_in_a_nest_has_the_line_of_the_dump():
    write("t.tdsl", "kernel g(A: f64[512, 512], B: f64[512, 512]) -> (s: f64) { C[i,j] = A[i,k] * B[k,j]; s = sum[i,j](exp(C[i,j])); }\n")
    text = tdslc("--dump=nest", "--threads~1", "t.tdsl").text
    loop = re.search(r"^ *for i step (\d+)( parallel)? \{\n", text, re.M)
    line = text[:loop.end()].count("\n") + 1
    for inner, what in ((int(loop[1]) - 1, f"the tile of i, {int(loop[1]) - 1}, does not divide the tile of the loop around it, {loop[1]}"),
                        (int(loop[1]), f"the tile of i, {loop[1]}, is that of the loop around it")):
        leaves = re.match(r"(?: *%.*\n)+", text[loop.end():])
        write("n.dump", text[:loop.end()] + f"for i step {inner} {{\n" + leaves[0] + "}\n" + text[loop.end() + leaves.end():])
        said = tdslc("n.dump", "--stop-after=nest", status=1).messages
        assert f"n.dump:{line}:" in said and what in said, said


if __name__ == "__main__":
    sys.exit(main())
