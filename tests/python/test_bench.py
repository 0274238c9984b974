# SPDX-License-Identifier: Apache-2.0
"""`python -m tdsl.bench` prints every row; what it measures is no part of the test, but for bars that are missed by ten times."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

from tdsl import bench


class Bench(unittest.TestCase):
    def test_json_and_table(self):
        with tempfile.NamedTemporaryFile() as wheel:
            wheel.write(b"x" * 1000000)
            wheel.flush()
            done = subprocess.run([sys.executable, "-B", "-m", "tdsl.bench", "--json", "--quick", "--wheel", wheel.name], capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        table = bench.rows(found)
        names = [row[0] for row in table]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(found["calls"]["module"], os.environ.get("TDSL_NO_MODULE") != "1" and bench_has_module())
        self.assertFalse(found["calls_ctypes"]["module"])
        for what, _, value, bar, numpy in table:
            self.assertTrue(-100 < value < 10 * (bar or 1e9), (what, value))
            self.assertTrue(numpy is None or 0 < numpy < 100)
        for word in "einsum of a string seen before (ctypes)", "import tdsl", "first einsum of a new string", "the same in a new process", "wheel":
            self.assertIn(word, names)
        self.assertEqual(found["missed"], [what for what, _, value, bar, _ in table if bar is not None and value > bar])


def bench_has_module():
    from tdsl import _calls
    return _calls.fast is not None


unittest.main()
