# SPDX-License-Identifier: Apache-2.0
"""Threads of a call: how many by default, which code is compiled for them, C compilers without OpenMP, and processes that fork."""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

BEGIN = """
import os, numpy as np, tdsl
a = np.arange(600000.0).reshape(1000, 600) % 7
def threads():
    return len(os.listdir("/proc/self/task"))
def used(**more):
    before = threads()
    s = tdsl.einsum("ij,kj->ik", a[:200], a[:300], **more)
    return s, threads() > before
"""
FORK = """
want = used(threads=2)[0]
child = os.fork()
if child == 0:
    os._exit(0 if (used(threads=2)[0] == want).all() and (used()[0] == want).all() else 3)
assert os.waitpid(child, 0)[1] == 0
"""
# The C compiler tells when it runs, and goes on when the child has computed: meanwhile the thread that waits for it holds the locks of what it compiles.
FORK_WHILE_COMPILING = """
import signal, threading, time
folder = os.environ["COMPILES"]
compiles = lambda: tdsl.einsum("ab,cb,dc->ad", np.ones((4, 5)), np.ones((6, 5)), np.ones((3, 6)))
worker = threading.Thread(target=compiles)
worker.start()
deadline = time.time() + 100
while not os.path.exists(folder + "/begun"):
    assert time.time() < deadline
    time.sleep(0.01)
child = os.fork()
if child == 0:
    signal.alarm(60)
    open(folder + "/go on", "w").close()
    os._exit(0 if tdsl.einsum("ab->b", a[:4]).shape == (600,) and compiles().shape == (4, 3) else 3)
assert os.waitpid(child, 0)[1] == 0, "the child waited for a lock"
worker.join()
"""
SLOW_COMPILER = """#!/bin/sh
touch "$COMPILES/begun"
while [ ! -e "$COMPILES/go on" ]; do sleep 0.05; done
exec cc "$@"
"""


@unittest.skipUnless(sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1, "needs two CPUs of Linux")
class Threads(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def call(self, text, **environment):
        env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "TDSL_CACHE_DIR": self.folder, **environment}
        if "OMP_NUM_THREADS" not in environment:
            env.pop("OMP_NUM_THREADS", None)
        done = subprocess.run([sys.executable, "-B", "-W", "ignore::DeprecationWarning", "-c", BEGIN + text], env=env, capture_output=True, text=True, timeout=100)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def with_openmp(self):
        """Of each entry of the cache, whether it was compiled with OpenMP."""
        found = []
        for path in glob.glob(os.path.join(self.folder, "v1", "*", "meta.json")):
            with open(path, encoding="utf-8") as f:
                found.append("-fopenmp" in json.load(f)["command"])
        return sorted(found)

    def test_all_cpus_by_default(self):
        self.call("s, more = used(); assert more; assert (s == used(threads=1)[0]).all()")
        self.assertEqual(self.with_openmp(), [False, True])

    def test_a_number_turns_it_off(self):
        self.call("assert not used(threads=1)[1]")
        self.call("assert not used()[1]", OMP_NUM_THREADS="1")
        self.call("os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); assert not used()[1]")
        self.assertEqual(self.with_openmp(), [False])
        self.call("assert used()[1]", OMP_NUM_THREADS="2,1")

    def test_small_work_needs_no_openmp(self):
        self.call("tdsl.einsum('ij,kj->ik', a[:3], a[:5], threads=2)")
        self.assertEqual(self.with_openmp(), [False])

    def test_a_compiler_without_openmp(self):
        old = os.path.join(self.folder, "old")
        with open(old, "w", encoding="ascii") as f:
            f.write('#!/bin/sh\nfor x; do [ "$x" != -fopenmp ] || { echo "what is $x?" >&2; exit 1; }; done\nexec cc "$@"\n')
        os.chmod(old, 0o755)
        self.call("assert not used()[1]; assert not used(threads=2)[1]", TDSL_CC=old)
        self.assertEqual(self.with_openmp(), [False])

    def test_a_process_that_forks(self):
        self.call(FORK)

    def test_a_process_that_forks_while_a_thread_compiles(self):
        with tempfile.TemporaryDirectory() as folder:
            compiler = os.path.join(folder, "slow-cc")
            with open(compiler, "w", encoding="utf-8") as f:
                f.write(SLOW_COMPILER)
            os.chmod(compiler, 0o755)
            self.call(FORK_WHILE_COMPILING, COMPILES=folder, TDSL_CC=compiler, TDSL_CACHE_DIR=os.path.join(folder, "cache"))


unittest.main()
