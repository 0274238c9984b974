# SPDX-License-Identifier: Apache-2.0
"""What the command-line tests share: running the tools, comparing, and the list of tests. See cli.py."""
import argparse
import json
import math
import os
import pathlib
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback

try:
    import numpy as np
except ImportError:
    class NoNumpy:
        """Tests that do not come to use NumPy need none; the first that does ends as skipped."""

        def __getattr__(self, name):
            print("skipped: NumPy is not here (python3-numpy)")
            sys.exit(77)
    np = NoNumpy()

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
import steps  # noqa: E402
from arrays import load  # noqa: E402
from quick import QUICK, share  # noqa: E402
TESTS = []
ARGS = None
# A shell lets what it runs in the background ignore these, and the tools would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
STRICT = "-std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Wvla -Werror -O2 -c".split()
STAGES = "tokens ast checked graph path nest loop legal".split()

TOUR = """// two results, an inout, open dims
dim n ~ 8, m ~ 12;
kernel product(A: f64[n, m], B: f64[m, n]) -> (C: f64[n, n], s: f64) {
    C[i, j] = A[i, k]
              * B[k, j];

    s = sum[i, j](C[i, j]);
}
kernel scaled(X: inout f32[n, m], Y: f32[n, m], alpha: f32) {
    X[i, j] = alpha * Y[i, j] + X[i, j];
}
"""
ONE = "dim n ~ 8;\nkernel twice(A: f64[n, n]) -> (R: f64[n, n]) {\n    R[i, j] = 2 * A[i, j];\n}\n"
CHAIN = ["-e", "ab,bc,cd,de->ae", "--shape=5x7", "--shape=7x3", "--shape=3x11", "--shape=11x2"]


def test(function):
    TESTS.append(function)
    return function


class Done:
    """One finished command."""

    def __init__(self, command, status, out, err):
        self.command, self.status, self.out, self.err = command, status, out, err

    @property
    def text(self):
        return self.out.decode()

    @property
    def messages(self):
        return self.err.decode("utf-8", "replace")


def run(tool, *args, status=0, stdin=b""):
    program = {"tdslc": ARGS.tdslc, "tdsl-run": ARGS.tdsl_run}.get(tool, tool)
    command = [program, *map(str, args)]
    done = subprocess.run(command, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    if status is not None:
        allowed = status if isinstance(status, tuple) else (status,)
        assert done.returncode in allowed, \
            steps.report(f"not exit status {status}", command, done)
        assert done.returncode == 0 or done.stderr, f"{' '.join(command)}\nfailed without a message"
    return Done(command, done.returncode, done.stdout, done.stderr)


def tdslc(*args, **more):
    return run("tdslc", *args, **more)


def tdsl_run(*args, **more):
    """Quick C unless the test says otherwise."""
    return run("tdsl-run", "--cflags=-O0", *args, **more)


def on_terminal(tool, *args, term="xterm"):
    """What a command writes on a terminal that is its standard error, and its exit status."""
    master, slave = pty.openpty()
    child = subprocess.Popen([tool, *args], stderr=slave, stdout=subprocess.DEVNULL, env={**os.environ, "TERM": term})
    os.close(slave)
    text = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        text += part
    os.close(master)
    return text.decode(), child.wait(60)


def equal(got, want, what=""):
    assert got == want, f"{what}: got {got!r}, expected {want!r}"


def same(got, want):
    assert got.dtype == want.dtype, f"{got.dtype}, expected {want.dtype}"
    assert got.shape == want.shape, f"shape {got.shape}, expected {want.shape}"
    assert np.array_equal(got, want), f"{got}\nexpected\n{want}"


def fill(shape, k, dtype="f8"):
    n = np.arange(math.prod(shape), dtype=np.int64)
    return (((7 * n + 13 * k + 3) % 11) - 5).reshape(shape).astype(dtype)


def save(name, array, version=(1, 0)):
    with open(name, "wb") as file:
        np.lib.format.write_array(file, array, version=version)


def files():
    return sorted(str(p) for p in pathlib.Path(".").rglob("*") if p.is_file())


def write(name, text):
    pathlib.Path(name).write_text(text)
    return name


def read(name):
    return pathlib.Path(name).read_bytes()


def main():
    global ARGS
    parser = argparse.ArgumentParser()
    parser.add_argument("--tdslc", required=True, type=os.path.abspath)
    parser.add_argument("--tdsl-run", required=True, type=os.path.abspath)
    parser.add_argument("--only", default="")
    ARGS = parser.parse_args()
    failed = 0
    chosen = [t for t in TESTS if ARGS.only in t.__name__]
    for function in chosen:
        folder = tempfile.mkdtemp(prefix="tdsl-cli-")
        here = os.getcwd()
        os.chdir(folder)
        start = time.monotonic()
        try:
            function()
            print(f"ok   {function.__name__}  {time.monotonic() - start:.1f} s", flush=True)
        except Exception as error:
            failed += 1
            where = [f"line {f.lineno}" for f in traceback.extract_tb(error.__traceback__) if f.name == function.__name__]
            print(f"FAIL {function.__name__} ({', '.join(where)})\n     {type(error).__name__}: {error}", flush=True)
        os.chdir(here)
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{len(chosen)} tests, {failed} failed")
    return 1 if failed or not chosen else 0
