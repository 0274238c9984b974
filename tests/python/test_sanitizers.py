# SPDX-License-Identifier: Apache-2.0
"""Calls under sanitizers: the C module and the kernels are built with them, Python is not.

ThreadSanitizer: eight threads call the same expression; it sees what they do while the GIL is released, and between threads that hold
it in turn. AddressSanitizer and UndefinedBehaviorSanitizer: all of test_calls.py.
"""
import glob
import os
import subprocess
import sys
import sysconfig
import tempfile
import unittest

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
CC = os.environ.get("TDSL_CC", "cc")
CALLS = """
import threading
import numpy as np, tdsl
from tdsl import _calls
assert _calls.fast is not None
f = tdsl.expression("ij,jk,kl->il", (None, None), (None, None), (None, None))
wrong = []
def work(seed):
    rng = np.random.default_rng(seed)
    for k in range(25):
        m = int(rng.integers(20, 90))
        a, b, c = (rng.integers(-3, 4, s).astype("f8") for s in ((m, 60), (60, 70), (70, m)))
        if not np.array_equal(f(a, b, c), np.dot(np.dot(a, b), c)):
            wrong.append(m)
        tdsl.einsum("ij,jk->ik", a, b)
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
for t in threads:
    t.start()
for t in threads:
    t.join()
assert wrong == []
print("all right")
"""


def preloaded(*names):
    """The paths of the sanitizers' libraries, or None where this compiler does not have them."""
    found = []
    for name in names:
        done = subprocess.run([CC, f"-print-file-name={name}"], capture_output=True, text=True, check=False)
        if done.returncode != 0 or not os.path.isabs(done.stdout.strip()):
            return None
        found.append(done.stdout.strip())
    return " ".join(found)


class Sanitizers(unittest.TestCase):
    def run_with(self, kind, libraries, *command, **environment):
        """Runs Python with the module and the kernels built for these sanitizers."""
        include, library = sysconfig.get_path("include"), preloaded(*libraries)
        if sys.version_info < (3, 11) or os.environ.get("TDSL_NO_MODULE") == "1":
            self.skipTest("no C module here")
        if library is None or not os.path.exists(os.path.join(include, "Python.h")):
            self.skipTest("no libraries of sanitizers, or no Python.h")
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "bin"))
            os.mkdir(os.path.join(folder, "python"))
            for tool in "tdslc", "tdsl-run":
                os.symlink(os.path.join(os.path.dirname(os.environ["TDSL_TDSLC"]), tool), os.path.join(folder, "bin", tool))
            os.symlink(os.path.join(TOP, "runtime", "python", "tdsl"), os.path.join(folder, "tdsl"))
            flags = ["-O1", "-g", f"-fsanitize={kind}", "-fno-sanitize-recover=all"]
            subprocess.run([CC, *flags, "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-fPIC", "-shared", f"-I{TOP}/runtime/include", f"-I{include}",
                            *glob.glob(f"{TOP}/runtime/python/fast/*.c"), "-o", os.path.join(folder, "python", "_fast.abi3.so")], check=True)
            env = {**os.environ, "LD_PRELOAD": library, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": folder,
                   "TDSL_TDSLC": os.path.join(folder, "bin", "tdslc"), **environment}
            done = subprocess.run([sys.executable, "-B", *command], env=env, capture_output=True, text=True, timeout=500, check=False)
        if "unexpected memory mapping" in done.stderr or "Shadow memory range interleaves" in done.stderr:
            self.skipTest("the sanitizer does not run on this system")
        self.assertEqual(done.returncode, 0, done.stderr[-4000:])
        return done

    def test_eight_threads(self):
        done = self.run_with("thread", ["libtsan.so"], "-c", CALLS, TSAN_OPTIONS="exitcode=66 ignore_noninstrumented_modules=1",
                             TDSL_CFLAGS="-O1 -g -fsanitize=thread")
        self.assertEqual(done.stdout, "all right\n")
        self.assertNotIn("WARNING: ThreadSanitizer", done.stderr)

    def test_every_kind_of_call(self):
        calls = os.path.join(TOP, "tests", "python", "test_calls.py")
        done = self.run_with("address,undefined", ["libasan.so", "libubsan.so"], calls, PYTHONMALLOC="malloc",
                             ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1")
        self.assertIn("OK", done.stderr)


unittest.main()
