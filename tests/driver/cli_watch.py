#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tdslc --watch, --time-trace, and the line that a terminal shows of long searches. See cli.py."""
import signal
import sys
import threading

import support
from support import *

KERNEL = "include \"size.tdsl\";\nkernel f(x: f64[n]) -> (y: f64[n]) { y[i] = 2 * x[i]; }\n"


class Watched:
    """A tdslc that watches; `wait` waits until it has said so once more, and gives what it said meanwhile."""

    def __init__(self, *arguments):
        self.child = subprocess.Popen([support.ARGS.tdslc, "--watch", *arguments], stderr=subprocess.PIPE, text=True)
        self.timer = threading.Timer(60, self.child.kill)
        self.timer.start()

    def wait(self):
        said = ""
        while "Ctrl-C ends" not in said:
            line = self.child.stderr.readline()
            assert line, said
            said += line
        return said

    def end(self):
        self.child.send_signal(signal.SIGINT)
        self.child.communicate(timeout=60)
        self.timer.cancel()
        return self.child.returncode


@test
def a_change_is_compiled_and_errors_do_not_end_it():
    write("size.tdsl", "dim n = 3;\n")
    write("p.tdsl", KERNEL)
    w = Watched("p.tdsl", "-o", "p.c")
    try:
        said = w.wait()
        assert re.fullmatch(r"tdslc: \d\d:\d\d:\d\d compiled in \d+\.\d\d s; watching p\.tdsl and 1 file more, Ctrl-C ends\n", said), said
        first = read("p.c")
        write("size.tdsl", "dim n = 44;\n")
        w.wait()
        assert b"44" in read("p.c") and read("p.c") != first
        before = read("p.c")
        write("p.tdsl", KERNEL.replace("2 * x", "2 * z"))
        said = w.wait()
        assert "E0201" in said and " failed in " in said, said
        equal(read("p.c"), before)
        write("new", KERNEL.replace("2 * x", "3 * x"))  # as editors do it
        os.unlink("p.tdsl")
        os.rename("new", "p.tdsl")
        assert " compiled in " in w.wait()
        assert read("p.c") != before
    finally:
        status = w.end()
    equal(status, -signal.SIGINT)
    equal(files(), ["p.c", "p.h", "p.tdsl", "size.tdsl"])


@test
def what_is_no_file_cannot_be_watched():
    for args in (["-", "-o", "p.c"], ["-e", "ij->i", "--shape=2x3"]):
        assert "--watch needs a FILE.tdsl" in tdslc("--watch", *args, status=2).messages
    equal(files(), [])


@test
def a_trace_has_each_pass_and_the_kernels_in_it():
    write("p.tdsl", "kernel f(A: f64[9,9]) -> (B: f64[9,9]) { B[i,j] = A[i,k] * A[k,j]; }\nkernel g(x: f64) -> (y: f64) { y = x; }\n")
    tdslc("p.tdsl", "-o", "p.c", "--time-trace=t.json")
    events = json.loads(read("t.json"))["traceEvents"]
    timed = [e for e in events if e["ph"] == "X"]
    passes = [e["name"] for e in timed if e["cat"] == "pass"]
    listed = [line.split()[0] for line in tdslc("--list-passes").text.splitlines() if line]
    equal([p for p in listed if p in passes], [p for p in passes if p != "read"])
    assert passes[0] == "read" and passes[-1] == "emit" and "fuse" in passes, passes
    fuse = next(e for e in timed if e["name"] == "fuse")
    inside = [e["name"] for e in timed if e["cat"] == "kernel" and fuse["ts"] <= e["ts"] and e["ts"] + e["dur"] <= fuse["ts"] + fuse["dur"] + 0.002]
    equal(inside, ["f", "g"])
    assert all(e["dur"] >= 0 and e["ts"] >= 0 for e in timed)
    tdslc("absent.tdsl", "--time-trace=none.json", status=3)
    equal(os.path.exists("none.json"), False)


@test
def a_long_search_for_loops_is_shown_on_a_terminal():
    statements = "".join(f"    T{k}[i,j] = sum[l](exp(T{k - 1}[i,l]) * A[l,j]) + max[l](T{k - 1}[l,j]);\n" for k in range(2, 12))
    write("p.tdsl", "".join(f"kernel f{n}(A: f64[64,64]) -> (R: f64[64,64]) {{\n    T1[i,j] = A[i,k] * A[k,j];\n{statements}    R = T11;\n}}\n" for n in range(5)))
    command = (support.ARGS.tdslc, "p.tdsl", "-w", "--effort=12", "-o", "p.c")
    text, status = on_terminal(*command)
    assert status == 0 and re.search(r"\rfuse: f\d, kernel \d of 5, \d+ of at most \d+ nests, \d+ s\033\[K", text), text[-500:]
    assert text.endswith("\r\033[K"), text[-200:]
    equal(on_terminal(support.ARGS.tdslc, "p.tdsl", "-w", "--kernel=f1", "--effort=12", "-o", "p.c", term="dumb"), ("", 0))


if __name__ == "__main__":
    sys.exit(main())
