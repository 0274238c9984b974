# SPDX-License-Identifier: Apache-2.0
"""`python -m tdsl`, and what is said where something is missing."""
import os
import subprocess
import sys
import unittest
import warnings

import tdsl


def doctor(**variables):
    """(exit status, output) of python -m tdsl."""
    done = subprocess.run([sys.executable, "-B", "-m", "tdsl"], env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


class Main(unittest.TestCase):
    def test_all_is_well(self):
        status, said = doctor()
        self.assertEqual(status, 0, said)
        for line in (r"^tdsl +0\.1\.0 in /", r"^tdslc +/.*: tdslc \d", r"^tdsl-run +/.*: tdsl-run \d", r"^calls +by ", r"^cache +/.* entries", r"^Trainium .*emulator is here$",
                     r"^a try +tdsl\.einsum.* is right"):
            self.assertRegex(said, "(?m)" + line)

    def test_without_a_compiler(self):
        status, said = doctor(TDSL_CC="no-such-compiler")
        self.assertEqual(status, 0, said)
        self.assertRegex(said, "(?m)^C compiler  none: kernels are interpreted")
        status, said = doctor(TDSL_CC="no-such-compiler", TDSL_REQUIRE_CC="1")
        self.assertEqual(status, 1)
        self.assertIn("Not working: C compiler, a try.", said)

    def test_without_the_module(self):
        status, said = doctor(TDSL_NO_MODULE="1")
        self.assertEqual(status, 0, said)
        self.assertIn("by ctypes, some microseconds slower each; TDSL_NO_MODULE is set", said)

    def test_without_tdslc(self):
        status, said = doctor(TDSL_TDSLC="/none")
        self.assertEqual(status, 1)
        self.assertIn("tdslc       FAILED: TDSL_TDSLC is /none, which is not a program", said)
        self.assertIn("Not working: tdslc, a try.", said)

    def test_warnings_of_the_compiler_name_the_callers_line(self):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            tdsl.compile("kernel f(A: f64[3], unread: f64[2]) -> (C: f64) { C = sum[i](A[i]); }")
        self.assertEqual([(w.category, w.filename) for w in told], [(tdsl.CompileWarning, __file__)])

    def test_slips_are_told(self):
        p = tdsl.compile("kernel energy(A: f64[3]) -> (C: f64) { C = sum[i](A[i]); }")
        self.assertRaisesRegex(AttributeError, "no kernel 'enrgy'; it has energy", lambda: p.enrgy)
        self.assertRaisesRegex(tdsl.CompileError, "tdsl.load reads files", tdsl.compile, "kernels.tdsl")
        self.assertRaisesRegex(FileNotFoundError, "tdsl.compile takes the text", tdsl.load, "kernel f(A: f64) -> (C: f64) { C = A; }")
        code = "import tdsl, sys; assert 'nki' in dir(tdsl) and 'tdsl.nki' not in sys.modules; tdsl.nki.load"
        subprocess.run([sys.executable, "-c", code], check=True)


unittest.main()
