# SPDX-License-Identifier: Apache-2.0
"""First calls: kernels that are compiled side by side, or behind the caller's back, and what a terminal shows meanwhile."""
import os
import pty
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import tdsl

SLOW = '#!/bin/sh\necho >> "$LOG"\nsleep %s\nexec cc "$@"\n'
WARM = """
import time, warnings, numpy as np, tdsl
a = np.ones((6, 4))
work = [(f"ab,{x}->a{x[1]}", (3, 4), (4, n)) for n, x in enumerate(("bc", "bd", "be", "bf"), 2)]
begin = time.time()
print(tdsl.warm(work, threads=1, jobs=4), time.time() - begin < 3.2)
begin = time.time()
for equation, *shapes in work:
    tdsl.einsum(equation, *map(np.ones, shapes), threads=1)
print(time.time() - begin < 0.8)
"""
BACKGROUND = """
import time, numpy as np, tdsl
if MODE == "set":
    tdsl.background()
a = np.arange(12.0).reshape(3, 4)
out = np.empty((3, 3))
begin = time.time()
got = [tdsl.einsum("ij,kj->ik", a, a), tdsl.einsum("ij,kj->ik", a, a.T.copy().T), tdsl.einsum("ij,kj->ik", a, a, out=out), tdsl.einsum("ij->", a)]
quick = time.time() - begin < 0.8
assert got[2] is out and all((g == a @ a.T).all() for g in got[:3]) and got[3] == 66 and type(got[3]) is np.float64
try:
    tdsl.einsum("ij,kj->ix", a, a)
except tdsl.CompileError as error:
    wrong = error.code
deadline = time.time() + 60
while tdsl.cache_info()["calls"] == 0 and time.time() < deadline:
    time.sleep(0.05)
    assert (tdsl.einsum("ij,kj->ik", a, a) == a @ a.T).all()
time.sleep(0.2)
for _ in range(3):
    assert (tdsl.einsum("ij,kj->ik", a, a) == a @ a.T).all()
print(quick, wrong, tdsl.cache_info()["compiled"] > 0)
"""


class First(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def environment(self, seconds):
        compiler = os.path.join(self.folder, "cc-slow")
        if not os.path.exists(compiler):
            with open(compiler, "w", encoding="ascii") as f:
                f.write(SLOW % seconds)
            os.chmod(compiler, stat.S_IRWXU)
        log = os.path.join(self.folder, "log")
        return {**os.environ, "TDSL_CC": compiler, "LOG": log, "TDSL_CACHE_DIR": os.path.join(self.folder, "cache")}

    def call(self, text, seconds=1, **more):
        done = subprocess.run([sys.executable, "-B", "-c", text], env={**self.environment(seconds), **more}, capture_output=True, text=True, timeout=100)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split("\n")[:-1]

    def test_kernels_are_compiled_side_by_side(self):
        # two shapes of one string are compiled each for itself
        self.assertEqual(self.call(WARM), ["4 True", "True"])
        self.assertEqual(os.path.getsize(os.path.join(self.folder, "log")), 4)

    @unittest.skipUnless(len(os.sched_getaffinity(0)) > 1, "needs two CPUs")
    def test_threads_of_kernels_are_not_jobs(self):
        text = WARM.replace(", jobs=4", "").replace("3.2", "3.8")  # four seconds one after the other
        self.assertEqual(self.call(text, OMP_NUM_THREADS="1"), ["4 True", "True"])

    def test_what_is_on_disk_is_not_compiled_again(self):
        self.call(WARM)
        self.assertEqual(self.call(WARM), ["0 True", "True"])

    def test_numpy_computes_meanwhile(self):
        for text, variables in (("MODE = 'set'" + BACKGROUND, {}), ("MODE = 'variable'" + BACKGROUND, {"TDSL_BACKGROUND": "1"})):
            shutil.rmtree(os.path.join(self.folder, "cache"), ignore_errors=True)
            self.assertEqual(self.call(text, **variables), ["True E0304 True"])

    def test_a_terminal_shows_what_is_compiled(self):
        text = "import tdsl; tdsl.warm([('ij->i', (3, 4)), ('ij->j', (3, 4))], threads=1, jobs=1); print('end')"
        for variables, shows in ({}, True), ({"TDSL_PROGRESS": "0"}, False):
            shutil.rmtree(os.path.join(self.folder, "cache"), ignore_errors=True)
            ours, theirs = pty.openpty()
            process = subprocess.Popen([sys.executable, "-B", "-c", text], env={**self.environment(1.6), **variables}, stderr=theirs, stdout=subprocess.PIPE)
            os.close(theirs)
            said = b""
            while True:
                try:
                    more = os.read(ours, 4096)
                except OSError:  # all who could write have ended
                    break
                if not more:
                    break
                said += more
            os.close(ours)
            out, _ = process.communicate(timeout=60)
            self.assertEqual((process.returncode, out), (0, b"end\n"))
            if shows:
                self.assertIn(b"\rtdsl: compiling kernel 1 of 2, 1 s", said)
                self.assertIn(b"\rtdsl: compiling kernel 2 of 2, ", said)
                self.assertTrue(said.endswith(b"\r\x1b[K"))
            else:
                self.assertEqual(said, b"")

    def test_programs_kernels_expressions_and_arrays(self):
        p = tdsl.compile("kernel f(A: f64[m, n]) -> (R: f64[m]) { R[i] = sum[j](A[i,j]); } kernel g(A: f64[m]) -> (R: f64) { R = sum[i](A[i]); }")
        a = np.arange(6.0).reshape(2, 3)
        f = tdsl.expression("ij,kj->ik", (None, 3), (2, 3))
        self.assertLessEqual(tdsl.warm([p, p.f, f, ("ij,kj->ik", a, a), (a.T, [0, 1], [1]), ("ij,jk->ik", (2, 3), a.T)]), 6)
        before = tdsl.cache_info()["compiled"]
        np.testing.assert_array_equal(tdsl.einsum("ij,kj->ik", a, a), a @ a.T)
        np.testing.assert_array_equal(tdsl.einsum(a.T, [0, 1], [1]), a.sum(1))
        np.testing.assert_array_equal(f(a, a), a @ a.T)
        np.testing.assert_array_equal(p.f(a), a.sum(1))
        self.assertEqual(tdsl.cache_info()["compiled"], before)

    def test_what_was_compiled_is_logged(self):
        with self.assertLogs("tdsl", "INFO") as told:
            tdsl.einsum("qr,rs->sq", np.ones((2, 3)), np.ones((3, 4)))
        self.assertRegex(told.output[0], r"INFO:tdsl:(compiled|loaded) in \d+ ms: .*qr,rs->sq")

    def test_mistakes(self):
        for wrong, kind in ((("ij->x", (2, 3)), tdsl.CompileError), (("ij->i", (2, None)), tdsl.ShapeError), (3, tdsl.CallError), (("ij->i", 3), tdsl.CallError)):
            with self.subTest(wrong), self.assertRaises(kind):
                tdsl.warm([("ij->i", (2, 3)), wrong])
        for call in (lambda: tdsl.warm("ij->i")), (lambda: tdsl.warm([], jobs=0)):
            with self.assertRaises(tdsl.Error):
                call()
        self.assertEqual(tdsl.warm([]), 0)

    def test_the_same_kernels_in_any_order_of_work(self):
        """Which extents are open, and planned for, is decided in the order of the list."""
        names = set()
        for _ in range(3):
            shutil.rmtree(os.path.join(self.folder, "cache"), ignore_errors=True)
            self.call("import tdsl; tdsl.warm([('ij->i', (n, n)) for n in (3, 5, 70, 9, 300, 20)], threads=1, jobs=6)", seconds=0)
            names.add(tuple(sorted(os.listdir(os.path.join(self.folder, "cache", "v1")))))
        self.assertEqual(len(names), 1)
        self.assertEqual(len(names.pop()), 3)


unittest.main()
