# SPDX-License-Identifier: Apache-2.0
"""Eight threads call the same expression under ThreadSanitizer: the C module and the kernels are built with it, Python is not, so
what is seen is what they do while the GIL is released, and between threads that hold it in turn."""
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


def sanitizer():
    """The path of libtsan, where this compiler has one."""
    done = subprocess.run([CC, "-print-file-name=libtsan.so"], capture_output=True, text=True, check=False)
    path = done.stdout.strip()
    return path if done.returncode == 0 and os.path.isabs(path) else None


class Races(unittest.TestCase):
    def build(self, folder, *flags):
        include = sysconfig.get_path("include")
        library = sanitizer()
        if sys.version_info < (3, 11) or os.environ.get("TDSL_NO_MODULE") == "1":
            self.skipTest("no C module here")
        if library is None or not os.path.exists(os.path.join(include, "Python.h")):
            self.skipTest("no libtsan, or no Python.h")
        os.mkdir(os.path.join(folder, "bin"))
        os.mkdir(os.path.join(folder, "python"))
        for tool in "tdslc", "tdsl-run":
            os.symlink(os.path.join(os.path.dirname(os.environ["TDSL_TDSLC"]), tool), os.path.join(folder, "bin", tool))
        os.symlink(os.path.join(TOP, "runtime", "python", "tdsl"), os.path.join(folder, "tdsl"))
        subprocess.run([CC, "-O1", "-g", "-fsanitize=thread", "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-fPIC", "-shared", *flags,
                        f"-I{TOP}/runtime/include", f"-I{include}", *glob.glob(f"{TOP}/runtime/python/fast/*.c"),
                        "-o", os.path.join(folder, "python", "_fast.abi3.so")], check=True)
        return library

    def test_eight_threads(self):
        with tempfile.TemporaryDirectory() as folder:
            library = self.build(folder)
            env = {**os.environ, "LD_PRELOAD": library, "TSAN_OPTIONS": "exitcode=66 ignore_noninstrumented_modules=1", "OPENBLAS_NUM_THREADS": "1",
                   "PYTHONPATH": folder, "TDSL_TDSLC": os.path.join(folder, "bin", "tdslc"), "TDSL_CFLAGS": "-O1 -g -fsanitize=thread"}
            done = subprocess.run([sys.executable, "-B", "-c", CALLS], env=env, capture_output=True, text=True, timeout=300, check=False)
            if "unexpected memory mapping" in done.stderr:
                self.skipTest("ThreadSanitizer does not run on this kernel")
            self.assertEqual((done.returncode, done.stdout), (0, "all right\n"), done.stderr[-4000:])
            self.assertNotIn("WARNING: ThreadSanitizer", done.stderr)


unittest.main()
