# SPDX-License-Identifier: Apache-2.0
"""Kernels, parameters, dims and indices with every name that C or its library knows, and with names of generated text: each kernel
computes its own value, through the table and as a symbol, also where an earlier library defines the symbols of the file; the
headers compile as C and C++ after those of the system.

    names.py --tdslc PATH --tdsl-run PATH --names known_names.list
"""
import argparse
import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
from quick import share  # noqa: E402

LANGUAGE = {"const", "and", "or", "not", "true", "false"}  # words of TDSL that C has too
OURS = ["_", "__", "_x", "_X", "__x", "tdsl", "TDSL", "tdsl_", "tdsl_min", "tdsl_status", "TDSL_OK", "TDSL_ABI_H", "tdsl_call_f", "f", "f_call", "f_par",
        "f_threads", "f_info", "f_kernels", "f_workspace_bytes", "f_workspace_bytes_threads", "F", "F_WORKSPACE_BYTES", "threads_f",
        "call_f", "bytes_f", "threaded_f", "entry_f", "part1_f", "tile1_f", "names_kernels", "names", "exp_", "exp__", "error_", "errno_",
        "workspace", "workspace_bytes", "threads", "args", "dims", "status", "bytes", "size", "need", "ws", "isa", "crew", "INT8_C", "INT_FAST8_MAX",
        "PRIdLEAST8", "SCNuMAX", "M_PI", "FP_NAN", "MATH_ERRNO", "a" * 100, "b" * 101, "c" * 300]
REAL = ["", "f", "l", "f32", "f32x", "f64", "f64x", "f128"]  # functions of each real type
FLAGS = ["-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Wmissing-prototypes", "-Werror"]
C_HEADERS = ["assert", "complex", "ctype", "errno", "fenv", "float", "inttypes", "iso646", "limits", "locale", "math", "setjmp", "signal", "stdarg",
             "stdbool", "stddef", "stdint", "stdio", "stdlib", "string", "time", "wchar", "wctype", "unistd", "sys/stat", "sys/times"]
CPP_HEADERS = ["cassert", "cctype", "cerrno", "cfloat", "cmath", "complex", "cstdio", "cstdlib", "cstring", "ctime", "string", "vector", "unistd.h", "sys/times.h"]


class Info(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint32) for n in ("size", "version", "dim", "arg", "extent", "none")] + \
        [(n, ctypes.c_char_p) for n in ("name", "source", "signature", "digest")] + \
        [("n_dims", ctypes.c_int32), ("n_args", ctypes.c_int32)] + \
        [(n, ctypes.c_void_p) for n in ("dims", "args", "bytes", "work", "call", "bytes_threads", "call_threads")]


def run(*command, cwd=None):
    r = subprocess.run(command, capture_output=True, text=True, cwd=cwd)
    if r.returncode != 0:
        sys.exit(f"FAILED {' '.join(command)[:300]}\n{r.stderr[:3000]}")
    return r.stderr


def write(path, text):
    with open(path, "w") as f:
        f.write(text)
    return path


def kernel(number, name, word):
    """A kernel `name` that multiplies by its number; all names inside are `word`."""
    return f"kernel {name}({word}: f64[{word}], {word}{word}: f64) -> (r: f64[{word}]) {{ r[{word}] = {number} * {word}[{word}] + {word}{word}; }}\n"


def exported(header):
    """Functions and tables that the header declares."""
    return set(re.findall(r"\b(\w+)\(\n? ", header)) | set(re.findall(r"size_t (\w+)\(", header)), \
        set(re.findall(r"extern const tdsl_kernel_info (\w+);", header))


def call(info, what):
    """The kernel's value of x = [2, 3], y = 1, by one of its entries."""
    x, y, r, n = (ctypes.c_double * 2)(2, 3), ctypes.c_double(1), (ctypes.c_double * 2)(), (ctypes.c_int64 * 1)(2)
    arguments = (ctypes.c_void_p * 3)(ctypes.addressof(x), ctypes.addressof(y), ctypes.addressof(r))
    size = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p)(info.bytes)(n)
    more = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int32)(info.bytes_threads)(n, 1)
    kinds = [ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    if what == "call":
        status = ctypes.CFUNCTYPE(*kinds)(info.call)(n, arguments, None, 0)
    else:
        status = ctypes.CFUNCTYPE(*kinds, ctypes.c_void_p)(info.call_threads)(n, arguments, None, 0, None)
    return (status, size, more, r[0], r[1])


def batch(a, folder, names, words, prefix, interposed):
    first = 1000
    write(f"{folder}/names.tdsl", "".join(kernel(first + k, n, w) for k, (n, w) in enumerate(zip(names, words))))
    run(os.path.abspath(a.tdslc), "names.tdsl", "-o", "names.c", "-w", *([f"--prefix={prefix}"] if prefix else []), cwd=folder)
    header = open(f"{folder}/names.h").read()
    run("gcc", *FLAGS, "-O0", "-shared", "-fPIC", "-o", f"{folder}/k.so", f"{folder}/names.c", "-lm")
    if interposed:
        functions, tables = exported(header)
        text = "#include <stdlib.h>\n" + "".join(f"void {f}(void);\nvoid {f}(void) {{ abort(); }}\n" for f in sorted(functions))
        text += "".join(f"extern const int {t}[40];\nconst int {t}[40] = {{0}};\n" for t in sorted(tables))
        write(f"{folder}/first.c", text)
        run("gcc", "-w", "-fno-builtin", "-shared", "-fPIC", "-o", f"{folder}/first.so", f"{folder}/first.c")
        assert len(functions) >= 4 * len(names) and len(tables) == len(names), (len(functions), len(tables), len(names))
    # in a process of its own: what is loaded stays
    child = os.fork()
    if child == 0:
        os._exit(check_library(folder, names, first, prefix, interposed))
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
        sys.exit(f"FAILED {names[0]} ... {names[-1]}, prefix {prefix!r}, interposed {interposed}")
    if prefix == "":
        all_c = "".join(f"#include <{h}.h>\n" for h in C_HEADERS)
        write(f"{folder}/u.c", all_c + '#include "names.h"\n')
        run("gcc", "-std=gnu11", "-Wall", "-Werror", "-fsyntax-only", f"{folder}/u.c")
        if shutil.which("clang"):
            run("clang", *FLAGS, "-fsyntax-only", f"{folder}/names.c")
        if shutil.which("g++"):
            write(f"{folder}/u.cpp", "".join(f"#include <{h}>\n" for h in CPP_HEADERS) + '#include "names.h"\n')
            run("g++", "-std=c++20", "-Wall", "-Werror", "-fsyntax-only", f"{folder}/u.cpp")


def check_library(folder, names, first, prefix, interposed):
    if interposed:
        ctypes.CDLL(f"{folder}/first.so", os.RTLD_NOW | os.RTLD_GLOBAL)
    library = ctypes.CDLL(f"{folder}/k.so", os.RTLD_NOW | os.RTLD_LOCAL)
    table = (ctypes.POINTER(Info) * (len(names) + 1)).in_dll(library, f"{prefix}names_kernels")
    wrong = [] if not table[len(names)] else ["the list goes on"]
    for k, name in enumerate(names):
        info = table[k].contents
        want = (0, 0, 0, 2.0 * (first + k) + 1, 3.0 * (first + k) + 1)
        if info.name.decode() != name or info.version != 6:
            wrong.append(f"{name}: table of {info.name}")
            continue
        wrong += [f"{name}, {what}: {got}, not {want}" for what in ("call", "call_threads") for got in [call(info, what)] if got != want]
    print("\n".join(wrong[:10]), end="\n" if wrong else "", flush=True)
    return 1 if wrong else 0


def run_reports(a, folder):
    """Inputs of users; tdsl-run warns of no name, since nobody links to what it makes."""
    for name, text, arguments, want in [
            ("error", "(p: f64[n], q: f64[n]) -> (e: f64) { e = sum[i]((p[i] - q[i]) * (p[i] - q[i])); }", ["p=ones", "q=zeros", "-Dn=4"], "e : f64[] = 4"),
            ("step", "(x: f64[n], g: f64[n], lr: f64) -> (y: f64[n]) { y[i] = x[i] - lr * g[i]; }", ["x=ones", "g=ones", "lr=0.5", "-Dn=3"], "0.5  0.5  0.5"),
            ("tdsl", "(x: f64[n]) -> (y: f64[n]) { y[i] = 2 * x[i]; }", ["x=ones", "-Dn=3"], "2  2  2"),
            ("times", "(x: f64[n], y: f64[n]) -> (z: f64[n]) { z[i] = x[i] * y[i]; }", ["x=ones", "y=ones", "-Dn=3"], "1  1  1"),
            ("environ", "(x: f64[n]) -> (y: f64[n]) { y[i] = 2 * x[i]; }", ["x=ones", "-Dn=3"], "2  2  2"),
            ("_", "(x: f64[n]) -> (y: f64[n]) { y[i] = 2 * x[i]; }", ["x=ones", "-Dn=3"], "2  2  2")]:
        write(f"{folder}/report.tdsl", f"kernel {name}{text}\n")
        r = subprocess.run([os.path.abspath(a.tdsl_run), "report.tdsl", "--target=c", *arguments], capture_output=True, text=True, cwd=folder)
        if r.returncode != 0 or want not in r.stdout or r.stderr != "":
            sys.exit(f"FAILED kernel {name}: {r.stdout}{r.stderr}")


def collisions(a, folder):
    """Two kernels of one exported name: an error that shows both."""
    path = write(f"{folder}/two.tdsl", kernel(1, "k_tdsl_x", "x") + kernel(2, "tdsl_x", "x"))
    r = subprocess.run([a.tdslc, path, "-o", f"{folder}/two.c", "-w"], capture_output=True, text=True)
    if r.returncode != 1 or ":2:8: error[E0202]" not in r.stderr or ":1:8: note: so is kernel" not in r.stderr:
        sys.exit(f"FAILED two kernels of one name: {r.returncode} {r.stderr}")
    same = write(f"{folder}/abi.tdsl", kernel(1, "f", "x"))  # a file called like our own header
    run(a.tdslc, same, "-o", f"{folder}/abi.c", "-Werror")
    run("gcc", *FLAGS, "-c", f"{folder}/abi.c", "-o", f"{folder}/abi.o")
    for prefix in ("_x", "9x", "", "x-", "p" * 41):
        if subprocess.run([a.tdslc, same, "-o", f"{folder}/abi.c", f"--prefix={prefix}"], capture_output=True).returncode != 2:
            sys.exit(f"FAILED --prefix={prefix}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--tdslc", required=True)
    p.add_argument("--tdsl-run", required=True)
    p.add_argument("--names", required=True)
    a = p.parse_args()
    lines = [line.split() for line in open(a.names) if line[0] != "#"]
    if lines != sorted(lines) or len({w for w, _ in lines}) != len(lines):
        sys.exit("FAILED known_names.list is not sorted")
    known = [w + end for w, kind in lines if w not in LANGUAGE for end in (REAL if kind == "r" else [""])]
    names = OURS + share(known, 1, gate=24)
    step = 500
    with tempfile.TemporaryDirectory() as folder:
        run_reports(a, folder)
        collisions(a, folder)
        for at in range(0, len(names), step):
            some = names[at:at + step]
            batch(a, folder, some, some, "", False)
            batch(a, folder, some, ["x"] * len(some), "", True)
        some = [n for n in names[:step] if len(n) < 60]
        batch(a, folder, some, some, "my_", True)
    print(f"{len(names)} names")


main()
