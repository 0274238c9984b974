#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hostile input: about 1 MiB of one kind at a time, as program, dump, equation, network and .npy file. Each run must end with
status 0 to 5, with a message unless it succeeds, within 2 s of user time (the least of three runs: the machine may be
busy) and 736 MiB, and leave no output when it fails.

    hostile.py --tdslc PATH --tdsl-run PATH [--only TEXT] [--all]

Kinds in BEYOND miss a limit of time or memory today; ctest leaves them out, --all runs them.
"""
import argparse
import os
import pathlib
import struct
import sys
import tempfile

MIB = 1 << 20
SECONDS, MEMORY = 3.0, 736
HEAD = "kernel k(A: f64[4], B: f64[4]) -> (R: f64[4]) {\n"


def body(statements):
    return HEAD + statements + "}\n"


def nested(before, middle, after, n):
    return body("R[i] = " + before * n + middle + after * n + ";\n")


def each(pattern, n, join=""):
    """The pattern n times, '#' being the number and '##' the next one."""
    return join.join(pattern.replace("##", str(k + 1)).replace("#", str(k)) for k in range(n))


# 20 positions that are values, each of 20 indices.
WIDE = f"p#: i32[{', '.join(['1'] * 20)}]"
PLACES = ", ".join(f"p{k}[{each(f'i{k}_#', 20, ',')}]" for k in range(20))

PROGRAMS = {
    "indices of gathers": f"kernel k(y: f64[{','.join(['4'] * 20)}], {each(WIDE, 20, ', ')}) -> (s: f64) {{ s = y[{PLACES}]; }}",
    "indices of scatters": f"kernel k(y: inout f64[{','.join(['4'] * 20)}], {each(WIDE, 20, ', ')}) {{ y[{PLACES}] += 1; }}",
    "zeros": b"\0" * MIB, "byte 255": b"\xff" * MIB, "every byte": bytes(range(256)) * 4096,
    "newlines": "\n" * MIB, "blanks": " " * MIB, "comments": "//\n" * 330000, "open comment": "/*" + "x" * MIB,
    "open string": '"' + "x" * MIB, "accents": "é" * 500000, "pictures": body("\U0001f600" * 200000),
    "broken UTF-8": (HEAD + "R[i] = ").encode() + b"\xc3\x28" * 500000,
    "parentheses": "(" * MIB, "brackets": "[" * MIB, "braces": "{" * MIB,
    "nested parentheses": nested("(", "A[i]", ")", 500000), "signs": nested("-", "A[i]", "", 1000000),
    "nested calls": nested("exp(", "A[i]", ")", 200000), "nested sums": nested("sum[j](", "A[j]", ")", 100000),
    "equal terms": body("R[i] = A[i]" + " + A[i]" * 149000 + ";\n"),
    "terms": body("R[i] = A[i]" + " - B[i]" * 149000 + ";\n"),
    "factors": body("R[i] = A[i]" + " * A[i]" * 149000 + ";\n"),
    "quotients": body("R[i] = A[i]" + " / A[i]" * 149000 + ";\n"),
    "constants": body("R[i] = A[i]" + " + 1" * 200000 + ";\n"),
    "different terms": body("R[i] = " + each("#*A[i]", 80000, "+") + ";\n"),
    "calls": body("R[i] = " + "+".join(["exp(A[i])"] * 90000) + ";\n"),
    "a long name": body("R[i] = " + "A" * MIB + "[i];\n"),
    "long names": body(each("x" * 1000 + "#[i] = A[i];\n", 1000) + "R[i] = A[i];\n"),
    "statements": body(each("t#[i] = A[i];\n", 50000) + "R[i] = A[i];\n"),
    "a chain": body("t0[i] = A[i];\n" + each("t##[i] = t#[i]+B[i];\n", 35000) + "R[i] = t35000[i];\n"),
    "a doubling chain": body("t0[i] = A[i];\n" + each("t##[i] = t#[i]*t#[i];\n", 25000) + "R[i] = t25000[i];\n"),
    "a chain of products": "kernel k(A: f64[4, 4]) -> (R: f64[4, 4]) {t0[i,j]=A[i,j];"
                           + each("t##[i,j] = t#[i,k]*A[k,j];\n", 20000) + "R[i,j] = t20000[i,j];}\n",
    "a chain of large products": "kernel k(A: f32[1000, 1000]) -> (R: f32[1000, 1000]) {t0[i,j]=A[i,j];"
                                 + each("t##[i,j] = t#[i,k]*A[k,j];\n", 10000) + "R[i,j] = t10000[i,j];}\n",
    "too many kernels": each("kernel k#(A:f64[4])->(R:f64[4]){R[i]=A[i];}\n", 45000),
    "kernels": each("kernel k#(A:f64[4])->(R:f64[4]){R[i]=A[i];}\n", 20000),
    "product kernels": "dim n;\n" + each("kernel k#(A:f64[n,n],B:f64[n,n])->(R:f64[n,n]){R[i,j]=A[i,k]*B[k,j];}\n", 12000),
    "unknown names": body("R[i] = Q[i];\n" * 70000), "no statements": "x;\n" * 300000,
    "empty statements": body("t = ;\n" * 150000), "wrong ranks": body(each("t#[i] = A[i,j];\n", 50000)),
    "parameters": "kernel k(" + each("p#: f64[4]", 60000, ",") + ") -> (R: f64[4]) { R[i] = p0[i]; }\n",
    "results": "kernel k(A: f64[4]) -> (" + each("r#: f64[4]", 40000, ",") + ") {" + each("r#[i]=A[i];", 20000) + "}\n",
    "dims": "dim " + each("d#", 100000, ", ") + ";\n" + body("R[i] = A[i];"),
    "open dims": "dim " + each("d#", 30000, ", ") + ";\nkernel k(" + each("p#:f64[d#]", 30000, ",") + ")->(R:f64){R=1.0;}",
    "indices": body("R[i] = A[" + each("i#", 120000, ",") + "];\n"),
    "summed indices": body("R[i] = sum[" + each("j#", 100000, ",") + "](A[i]);"),
    "numbers": body("R[i] = " + "9" * MIB + ";"), "digits": body("R[i] = 0." + "9" * MIB + "*A[i];"),
    "constant names": each("const c# = #;\n", 45000) + body("R[i] = A[i];"),
    "doubling constants": "const c0 = 1;" + each("const c## = c#+c#;\n", 35000) + body("R[i] = A[i];"),
    "absent includes": 'include "a.tdsl";\n' * 50000, "a file that includes itself": 'include "input";\n',
    "terms of a string": body('R = einsum("' + ",".join(["i"] * 400000) + '->i", A);'),
    "operands of a call": body('R = einsum("' + ",".join(["i"] * 150000) + '->i", ' + ",".join(["A"] * 150000) + ");"),
    "huge extents": "kernel k(A: f64[9999999999999, 9999999999999]) -> (R: f64) { R = sum[i,j](A[i,j]); }",
    "no dump": "tdsl-dump graph 1\n" + "x" * MIB, "blocks of a dump": "tdsl-dump graph 1\n" + "kernel f {\n" * 90000,
    "parentheses of a dump": "tdsl-dump graph 1\nkernel f {" + "(" * MIB, "lines of a dump": "tdsl-dump graph 1\n" + "a\n" * 500000,
    "loops of a dump": "tdsl-dump loop 1\nkernel f {\n" + "for a in 0..4 {\n" * 60000,
    "a name with escapes": '// tdsl-dump ast 1 "' + "\\x41" * 260000 + '"\n', "an open name": '// tdsl-dump ast 1 "' + "x" * MIB,
}
BEYOND = ()
WHOLE = """dim n ~ 8;
kernel k(A: f64[n, n], B: f64[n, n]) -> (C: f64[n, n], s: f64) {
    C[i, j] = A[i, k] * B[k, j] + 2;
    s = max[i, j](exp(C[i, j]));
}
"""
STAGES = "tokens ast checked graph path nest loop legal".split()


def npy(descr, shape, data=b"", order="False", version=1):
    head = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    size = struct.pack("<H" if version == 1 else "<I", len(head))
    return b"\x93NUMPY" + bytes([version, 0]) + size + head + data


ARRAYS = {
    "2^62 elements": npy("<f8", (2 ** 31, 2 ** 31)), "2^80 elements": npy("<f8", (2 ** 40, 2 ** 40)),
    "a terabyte": npy("|b1", (10 ** 12,)), "huge and empty": npy("<f8", (2 ** 40, 2 ** 20, 0)),
    "many dimensions": npy("<f8", "(" + "1," * 20000 + ")", b"\0" * 8), "open shape": npy("<f8", "(" * 60000),
    "a header of 4 GiB": b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b" " * MIB,
    "a long description": npy("x" * MIB, (1,), version=2), "blanks": npy("<f8", " " * MIB + "(1,)", b"\0" * 8, version=2),
    "zeros": b"\0" * MIB, "a Python expression": npy("<f8", "__import__('os')"), "objects": npy("|O", (1,), b"\0" * 8),
}


class Hostile:
    def __init__(self, tdslc, tdsl_run, only, everything):
        self.all = everything
        self.tdslc, self.tdsl_run, self.only = tdslc, tdsl_run, only
        self.runs = self.failed = 0
        self.slowest = self.largest = (0, "")

    def once(self, command):
        child = os.posix_spawn(command[0], command, os.environ, file_actions=[
            (os.POSIX_SPAWN_OPEN, 1, "stdout", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
            (os.POSIX_SPAWN_OPEN, 2, "stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)])
        _, status, used = os.wait4(child, 0)
        return os.waitstatus_to_exitcode(status), used.ru_utime, used.ru_maxrss / 1024

    def run(self, name, command, output=None):
        if self.only not in name:
            return
        self.runs += 1
        status, seconds, memory = self.once(command)
        for _ in range(2):
            if seconds > SECONDS:
                status, seconds, memory = min(self.once(command), (status, seconds, memory), key=lambda r: r[1])
        wrong = []
        if not 0 <= status <= 5:
            wrong.append(f"status {status}")
        if status != 0 and os.path.getsize("stderr") == 0:
            wrong.append("no message")
        if os.path.getsize("stderr") > MIB:
            wrong.append("messages of more than a MiB")
        if status != 0 and output and os.path.exists(output):
            wrong.append("an output file is left")
        if seconds > SECONDS:
            wrong.append(f"{seconds:.2f} s")
        if memory > MEMORY:
            wrong.append(f"{memory:.0f} MiB")
        if output and os.path.exists(output):
            os.unlink(output)
        self.slowest = max(self.slowest, (seconds, name))
        self.largest = max(self.largest, (memory, name))
        if wrong:
            self.failed += 1
            print(f"FAIL {name}: {', '.join(wrong)}", flush=True)

    def programs(self):
        for name, text in PROGRAMS.items():
            if name in BEYOND and not self.all:
                continue
            pathlib.Path("input").write_bytes(text if isinstance(text, bytes) else text.encode())
            self.run(name, [self.tdslc, "input", "-o", "output.c"], "output.c")

    def damaged_dumps(self):
        pathlib.Path("whole").write_text(WHOLE)
        for stage in STAGES:
            _ = self.once([self.tdslc, "whole", "--dump=" + stage, "-o", "dump"])
            good = pathlib.Path("dump").read_bytes()
            for k in range(24):
                at = len(good) * (2 * k + 1) // 48
                bad = [good[:at], good[:at] + bytes([good[at] ^ (1 << k % 8)]) + good[at + 1:],
                       good[:at] + b"99999999999999999999" + good[at:], good[:at] + good[at // 2:]][k % 4]
                pathlib.Path("input").write_bytes(bad)
                self.run(f"{stage} dump, damage {k}", [self.tdslc, "input", "-o", "output.c"], "output.c")
            if stage not in ("tokens", "ast", "checked"):
                head, _, tail = good.partition(b"kernel ")
                lines = tail.splitlines(True)
                middle = len(lines) // 2
                big = head + b"kernel " + b"".join(lines[:middle] + [lines[middle]] * (MIB // len(lines[middle])) + lines[middle:])
                pathlib.Path("input").write_bytes(big)
                self.run(f"{stage} dump, one line repeated", [self.tdslc, "input", "-o", "output.c"], "output.c")

    def equations(self):
        def equation(name, text, shapes, *more):
            # One argument holds at most 128 KiB: Linux.
            self.run("-e " + name, [self.tdslc, "-e", text, *shapes, *more, "-o", "output.c"], "output.c")
        for more in ([], ["--emit=path"]):
            kind = " ".join(more)
            equation(f"operands {kind}", ",".join(["i"] * 60000) + "->i", ["--shape=4"] * 60000, *more)
            equation(f"a train {kind}", each(chr(0x4e00) + "", 1), ["--shape=2"], *more)
            equation(f"commas {kind}", "," * 120000, ["--shape="], *more)
            equation(f"letters {kind}", "i" * 120000, ["--shape=" + "x".join(["1"] * 60000)], *more)
            equation(f"dots {kind}", "." * 120000, ["--shape=2"], *more)
            equation(f"arrows {kind}", "->" * 60000, ["--shape=2"], *more)
            equation(f"wrong bytes {kind}", b"\xff" * 1000, ["--shape=2"], *more)
            equation(f"overflow {kind}", "i,j,k->ijk", ["--shape=4611686018427387904"] * 3, *more)

    def networks(self):
        n = 20000
        chain = '{"inputs": [' + each("[#, ##]", n, ", ") + f'], "output": [0, {n}], "sizes": [' + ", ".join(["2"] * (n + 1)) + "]}"
        texts = {"brackets": "[" * MIB, "zeros": b"\0" * MIB, "digits": '{"sizes": [' + "9" * MIB + "]}",
                 "names": "{" + each('"#": 1', 80000, ", ") + "}", "a large label": '{"inputs": [[4294967295]], "output": [], "sizes": [2]}',
                 "one long operand": '{"inputs": [[' + each("#", 100000, ", ") + ']], "output": [], "sizes": [' + ", ".join(["1"] * 100000) + "]}",
                 "a chain": chain}
        for name, text in texts.items():
            pathlib.Path("input").write_bytes(text if isinstance(text, bytes) else text.encode())
            more = ["--search=greedy"] if name == "a chain" else []
            self.run("network, " + name, [self.tdslc, "--emit=path", "--network=input", *more, "-o", "output.json"], "output.json")

    def arrays(self):
        for name, data in ARRAYS.items():
            pathlib.Path("input.npy").write_bytes(data)
            for target in ("interp", "c"):
                self.run(f".npy, {name}, {target}", [self.tdsl_run, "--target=" + target, "--cflags=-O0", "-e", "...->...",
                                                     "-o", "output.npy", "input.npy"], "output.npy")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tdslc", required=True, type=os.path.abspath)
    parser.add_argument("--tdsl-run", required=True, type=os.path.abspath)
    parser.add_argument("--only", default="")
    parser.add_argument("--all", action="store_true")
    a = parser.parse_args()
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        h = Hostile(a.tdslc, a.tdsl_run, a.only, a.all)
        for part in (h.programs, h.damaged_dumps, h.equations, h.networks, h.arrays):
            part()
        os.chdir(here)
    print(f"{h.runs} inputs, {h.failed} failed; slowest {h.slowest[0]:.2f} s ({h.slowest[1]}), "
          f"largest {h.largest[0]:.0f} MiB ({h.largest[1]})")
    return 1 if h.failed or h.runs == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
