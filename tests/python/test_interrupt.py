# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C: a path search gives the best so far, everything else ends; no process and no file is left."""
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

SEARCH = """
import random, tdsl
rng, n = random.Random(3), 60
edges = [(i, j) for i in range(n) for j in range(i) if rng.random() < 0.08]
terms = ["".join(chr(0x4e00 + k) for k, e in enumerate(edges) if i in e) for i in range(n)]
terms = [t for t in terms if t]
print("begin", flush=True)
path = tdsl.path(",".join(terms) + "->", *[(2,) * len(t) for t in terms], effort=1000000)
print(path.interrupted, len(path) == len(terms) - 1, path.multiply_adds > 0)
"""
COMPILE = """
import numpy as np, tdsl
print("begin", flush=True)
try:
    tdsl.einsum("ij->i", np.ones((3, 4)))
except KeyboardInterrupt:
    print("interrupted", flush=True)
    del __import__("os").environ["TDSL_CC"]
    print(tdsl.einsum("ij->i", np.ones((3, 4))).tolist())  # the package goes on working
"""


RUN = """
import time, numpy as np, tdsl
a = np.ones((9000, 9000), "f4")
f = tdsl.expression("ij,jk->ik", a, a, threads=1)
p = tdsl.compile("kernel f(A: f32[m, k], B: f32[k, n]) -> (C: f32[m, n]) { C[i,j] = A[i,p] * B[p,j]; }")
tdsl.warm([f, p.f], threads=1)
print("begin", flush=True)
try:
    CALL
    print("done")
except KeyboardInterrupt:
    print("interrupted", (tdsl.einsum("ij,jk->ik", np.ones((3, 4)), np.ones((4, 2)), threads=1) == 4).all(), flush=True)
"""


def processes_with(word, variable):
    """Numbers of processes whose environment says so."""
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{number}/environ", "rb") as f:
                if f"{variable}={word}".encode() in f.read().split(b"\0"):
                    found.append(int(number))
        except OSError:
            pass
    return found


class Interrupts(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.files = os.path.join(self.folder, "files")
        os.mkdir(self.files)

    def interrupt(self, text, whole_group, wait=0.7, **environment):
        """What the program prints that is interrupted some time after it has begun."""
        env = {**os.environ, "TMPDIR": self.files, "TDSL_CACHE_DIR": os.path.join(self.folder, "cache"), "TDSL_MARK": self.folder, **environment}
        process = subprocess.Popen([sys.executable, "-B", "-c", text], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True)
        self.assertEqual(process.stdout.readline(), "begin\n")
        time.sleep(wait)
        (os.killpg if whole_group else os.kill)(process.pid, signal.SIGINT)
        began = time.time()
        out, told = process.communicate(timeout=60)
        self.assertLess(time.time() - began, 20, told)
        self.assertEqual(process.returncode, 0, told)
        self.assertEqual(processes_with(self.folder, "TDSL_MARK"), [])
        self.assertEqual(os.listdir(self.files), [])
        return out.split("\n")[:-1]

    def test_a_search_gives_the_best_so_far(self):
        for whole_group in False, True:  # a notebook's interrupt, and a terminal's
            self.assertEqual(self.interrupt(SEARCH, whole_group), ["True True True"])

    def test_a_long_kernel_is_left(self):
        for call in "f(a, a)", "p.f(a, a, threads=1)":
            began = time.time()
            self.assertEqual(self.interrupt(RUN.replace("CALL", call), True, wait=1.5), ["interrupted True"])
            self.assertLess(time.time() - began, 30)

    def test_what_others_have_is_written_to_its_end(self):
        text = RUN.replace("9000", "3000").replace("CALL", "out = np.zeros_like(a); f(a, a, out=out)").replace('print("interrupted"', 'print("interrupted", (out == 3000).all()')
        self.assertIn(self.interrupt(text, True, wait=0.3), (["interrupted True True"], ["done"]))

    def test_a_c_compiler_that_is_ended_leaves_nothing(self):
        slow = os.path.join(self.folder, "slow-cc")
        with open(slow, "w", encoding="utf-8") as f:
            f.write('#!/bin/sh\n: > "$TMPDIR/left"\nsleep 100 &\nsleep 100\n')
        os.chmod(slow, stat.S_IRWXU)
        for whole_group in False, True:
            self.assertEqual(self.interrupt(COMPILE, whole_group, wait=1.5, TDSL_CC=slow), ["interrupted", "[4.0, 4.0, 4.0]"])
            entries = os.listdir(os.path.join(self.folder, "cache", "v1"))
            self.assertEqual([len(name) for name in entries], [64])


unittest.main()
