# SPDX-License-Identifier: Apache-2.0
"""Names, paths and command lines that a careless or hostile user writes, on the device's back end: what works, works; what does not
says why, with its exit status, and leaves no file. usage: hostile.py BIN-FOLDER"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import harness

BIN = os.path.abspath(sys.argv.pop(1))


class Hostile(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = self.scratch.name

    def tearDown(self):
        self.scratch.cleanup()

    def path(self, name):
        return os.path.join(self.folder, name)

    def tool(self, name, *words):
        done = subprocess.run([os.path.join(BIN, name), *words], capture_output=True, text=True, cwd=self.folder, timeout=120,
                              stdin=subprocess.DEVNULL, env={**os.environ, "TDSL_PYTHON": sys.executable})
        self.assertGreaterEqual(done.returncode, 0, harness.steps.report(name, done.args, done))
        self.assertLess(done.returncode, 70, harness.steps.report(name, done.args, done))
        return done.returncode, done.stdout, done.stderr

    def compile(self, text, *words, target="trn2", out="out"):
        with open(self.path("p.tdsl"), "w", encoding="utf-8") as stream:
            stream.write(text)
        return self.tool("tdslc", "p.tdsl", f"--target={target}", "-o", out, *words)

    def files(self, out="out"):
        return sorted(os.listdir(self.path(out))) if os.path.isdir(self.path(out)) else []

    def same_as_interpreter(self, text, kernel, *words):
        with open(self.path("p.tdsl"), "w", encoding="utf-8") as stream:
            stream.write(text)
        common = ("p.tdsl", f"--kernel={kernel}", "-w", "--checksum", *words)
        wanted = self.tool("tdsl-run", *common, "--target=interp")
        got = self.tool("tdsl-run", *common, "--target=emulator")
        self.assertEqual((wanted[0], wanted[1]), (got[0], got[1]), got[2])
        self.assertEqual(got[0], 0, got[2])

    # ---- names ----

    def test_names_that_python_or_nki_has_are_changed_in_the_text_alone(self):
        for name in ("lambda", "nki_foo", "json", "_x", "build_neff"):
            text = f"kernel {name}(A: f32[4]) -> (B: f32[4]) {{ B[i] = 2 * A[i]; }}\n"
            self.same_as_interpreter(text, name, "A=fill")
        for name in ("lambda", "nki", "nl", "k1", "p", "q0", "c_tile", "acc"):
            text = (f"kernel k1({name}: f32[4], C: f32[4,5]) -> (B: f32[5]) "
                    f"{{ B[j] = {name}[i] * C[i,j]; }}\n")
            self.same_as_interpreter(text, "k1", f"{name}=fill", "C=fill")

    def test_names_that_would_meet_in_the_text_stay_apart(self):
        text = """kernel k(C: inout f32[4], C_out: f32[4], C_out_: f32[4], nl: f32[4], v_nl: f32[4], k: f32[4], v_k: f32[4],
  A: f32[4,4], A_0: f32[4], a_tile: f32[4], t: f32[4], acc: f32[4]) -> (B: f32[4], T: f32[4]) {
    B[i] = C[i] + 2*C_out[i] + 3*C_out_[i] + 4*nl[i] + 5*v_nl[i] + 6*k[i] + 7*v_k[i] + A_0[i] + 8*a_tile[i] + 9*t[i] + acc[i];
    C[i] += A[j,i] * B[j];
    T[i] = C[i] - B[i];
}
"""
        names = re.findall(r"(\w+): ", text)[:12]
        self.same_as_interpreter(text, "k", *[f"{n}=fill" for n in names])

    def test_two_kernels_that_would_have_one_file_are_refused(self):
        status, _, said = self.compile("kernel lambda(A: f32[4]) -> (B: f32[4]) { B[i] = 2*A[i]; }\n"
                                       "kernel k_lambda(A: f32[4]) -> (B: f32[4]) { B[i] = 3*A[i]; }\n")
        self.assertEqual(status, 1)
        self.assertIn("2:8: error[E0202]: kernel 'k_lambda' would be called 'k_lambda' in Python", said)
        self.assertIn("1:8: note: so is kernel 'lambda'", said)
        self.assertEqual(self.files(), [])

    def test_names_too_long_for_a_file_are_said_and_nothing_is_left(self):
        name = "a" * 300
        status, _, said = self.compile(f"kernel {name}(A: f32[4]) -> (B: f32[4]) {{ B[i] = 2*A[i]; }}\n")
        self.assertEqual(status, 3)
        self.assertIn("File name too long", said)
        self.assertEqual(self.files(), [])
        self.same_as_interpreter(f"kernel {'b' * 200}({'c' * 2000}: f32[4]) -> (B: f32[4]) {{ B[i] = 2*{'c' * 2000}[i]; }}\n",
                                 "b" * 200, f"{'c' * 2000}=fill")

    def test_comments_of_any_bytes_stay_out_of_the_text(self):
        status, text, _ = self.compile('kernel e(A: f32[4]) -> (B: f32[4]) { B[i] = 2*A[i]; } // \u00fc """ \\ #\n', out="-")
        self.assertEqual(status, 0)
        self.assertTrue(text.isascii())
        compile(text, "e.py", "exec")

    # ---- where files go ----

    def test_the_folder_is_made_and_holds_all_kernels(self):
        two = ("kernel one(A: f32[4]) -> (B: f32[4]) { B[i] = 2*A[i]; }\n"
               "kernel two(A: f32[4]) -> (B: f32[4]) { B[i] = 3*A[i]; }\n")
        self.assertEqual(self.compile(two, out="new/")[0], 0)
        self.assertEqual(self.compile(two, out="new")[0], 0)      # again, into the same
        for file in ("one.py", "one.json", "one.hlo.txt", "two.py", "two.json", "two.hlo.txt", "build_neff.py"):
            self.assertIn(file, self.files("new"))
        status, text, said = self.compile(two, out="-")
        self.assertEqual((status, text), (2, ""))
        self.assertIn("--kernel=", said)
        status, text, _ = self.compile(two, "--kernel=two", out="-")
        self.assertEqual(status, 0)
        self.assertIn("def two(A):", text)

    def test_places_that_are_no_folder_are_refused_and_left_alone(self):
        one = "kernel one(A: f32[4]) -> (B: f32[4]) { B[i] = 2*A[i]; }\n"
        with open(self.path("file"), "w", encoding="utf-8") as stream:
            stream.write("mine")
        for out, status in (("file", 3), ("no/such/place", 3), ("", 3), ("/proc/x", 3), ("k.py", 2)):
            got, _, said = self.compile(one, out=out)
            self.assertEqual(got, status, said)
            self.assertNotEqual(said, "")
        with open(self.path("file"), encoding="utf-8") as stream:
            self.assertEqual(stream.read(), "mine")
        self.assertEqual(self.compile(one, "--header=x.h")[0], 2)
        self.assertEqual(self.files(), [])
        self.assertFalse(os.path.exists(self.path("x.h")))

    def test_one_kernel_that_is_refused_leaves_nothing_of_the_others(self):
        status, _, said = self.compile("kernel one(A: f32[4]) -> (B: f32[4]) { B[i] = 2*A[i]; }\n"
                                       "kernel two(A: f64[4]) -> (B: f64[4]) { B[i] = 3*A[i]; }\n")
        self.assertEqual(status, 1)
        self.assertIn("p.tdsl:2:12: error[E0501]", said)
        self.assertFalse(os.path.exists(self.path("out")))

    def test_the_depfile_of_an_equation_is_a_rule(self):
        status, _, said = self.tool("tdslc", "-e", "ij,jk->ik", "--shape=2x3", "--shape=3x4", "--target=trn2", "-o", "out",
                                    "-MD", "-MF", "out.d")
        self.assertEqual(status, 0, said)
        with open(self.path("out.d"), encoding="utf-8") as stream:
            self.assertEqual(stream.read().split()[0], "out:")

    # ---- extents ----

    def test_the_emulator_takes_open_extents_from_the_arrays(self):
        np.save(self.path("A.npy"), np.arange(35, dtype=np.float32).reshape(5, 7))
        np.save(self.path("B.npy"), np.ones((7, 3), np.float32))
        self.same_as_interpreter("dim m;\nkernel mm(A: f32[m, k], B: f32[k, n]) -> (C: f32[m, n]) { C[i,j] = A[i,l] * B[l,j]; }\n",
                                 "mm", "A=A.npy", "B=B.npy")
        self.same_as_interpreter("dim m;\nkernel mm(A: f32[m, k], B: f32[k, n]) -> (C: f32[m, n]) { C[i,j] = A[i,l] * B[l,j]; }\n",
                                 "mm", "A=A.npy", "B=fill", "-D", "n=2")
        words = ("-e", "ij,jk->ik", "--shape=5x?", "--shape=?x3", "A.npy", "B.npy", "--checksum")
        self.assertEqual(self.tool("tdsl-run", *words, "--target=trn1"), self.tool("tdsl-run", *words, "--target=interp"))
        status, _, said = self.tool("tdsl-run", "p.tdsl", "--target=emulator", "A=A.npy", "B=A.npy")
        self.assertEqual(status, 1)
        self.assertIn("'k' is 7 because of 'A'", said)
        status, _, said = self.tool("tdsl-run", "p.tdsl", "--target=emulator", "A=A.npy", "B=fill")
        self.assertEqual(status, 1)
        self.assertIn("'n' of 'B' is not known", said)

    def test_an_inout_argument_that_is_not_written_is_no_result(self):
        self.same_as_interpreter("kernel k(A: f32[4], C: inout f32[4], D: inout f32[4]) -> (T: f32[4]) "
                                 "{ D[i] += A[i]; T[i] = A[i] + C[i]; }\n", "k", "A=fill", "C=fill", "D=ones")

    # ---- what the device has not ----

    def test_what_the_device_does_not_have_is_named_at_its_place(self):
        for text, place, code, words in (
                ("kernel k(A: f64[4]) -> (C: f64[4]) { C[i] = A[i]; }", "1:10", "E0501", "f64 (of 'A')"),
                ("kernel k(A: i32[4]) -> (C: i32[4]) { C[i] = A[i] * A[i]; }", "1:45", "E0501", "whole numbers beyond 2^24"),
                ("kernel k(A: i64[4]) -> (C: i64[4]) { C[i] = A[i] * A[i]; }", "1:45", "E0501", "whole numbers beyond 2^24"),
                ("kernel k(A: f8e4m3fn[4]) -> (C: f32[4]) { C[i] = f32(A[i]); }", "1:10", "E0501", "f8e4m3fn (of 'A')"),
                ("kernel k(A: i32[4]) -> (C: f32[4]) { C[i] = f32(u8(A[i] * A[i])); }", "1:45", "E0501", "whole numbers beyond 2^24"),
                ("kernel k(A: c128[4]) -> (C: c128[4]) { C[i] = A[i]; }", "1:10", "E0501", "c128 (of 'A')"),
                ("kernel k(A: f32[0]) -> (C: f32[0]) { C[i] = A[i]; }", "1:10", "E0501", "empty tensors ('A' has extent 0)"),
                ("kernel k(A: c64[4]) -> (C: c64[4]) { C[i] = log(A[i]); }", "1:45", "E0501", "log of complex numbers"),
                ("kernel k(A: f32[n]) -> (C: f32[n]) { C[i] = A[i]; }", "1:8", "E0501", "'n'")):
            status, _, said = self.compile(text + "\n")
            self.assertEqual(status, 1, text)
            self.assertIn(f"p.tdsl:{place}: error[{code}]", said, text)
            self.assertIn(words, said, text)
            self.assertFalse(os.path.exists(self.path("out")))

    def test_what_stays_in_psum_is_no_spill(self):
        status, _, said = self.compile("dim n; kernel k(A: bf16[n, n], B: bf16[n, n]) -> (C: bf16[n, n]) { C[i,j] = A[i,k] * B[k,j]; }\n",
                                       "-D", "n=2048")
        self.assertEqual((status, said), (0, ""))

    def test_scalars_are_taken(self):
        self.same_as_interpreter("kernel k(a: f32, b: f32) -> (c: f32, d: f32) { c = a * b; d = a - b; }\n", "k", "a=3", "b=5")

    # ---- spills ----

    DIAGONAL = ("kernel k(A: f32[4,4,16], B: f32[4]) -> (C: f32[4]) {%s T[j,i] = A[i,j,k] * B[j]; C[i] = T[i,i]; }\n")

    def test_what_goes_to_memory_is_warned_of_unless_the_user_allows_it(self):
        status, _, said = self.compile(self.DIAGONAL % "", "-Wno-silent-sum")
        self.assertEqual(status, 0, said)
        self.assertIn("'T' goes to memory on target 'trn2': 64 bytes [-Wspill]", said)
        with open(self.path("out/k.json"), encoding="utf-8") as stream:
            self.assertRegex(stream.read(), r'"spills": \["\w+"\]')
        for allowed, words in ((" spill T;", ()), ("", ("-Wno-spill",))):
            status, _, said = self.compile(self.DIAGONAL % allowed, "-Wno-silent-sum", *words)
            self.assertEqual((status, said), (0, ""))
        self.assertNotEqual(self.compile(self.DIAGONAL % "", "-Wno-silent-sum", "-Werror")[0], 0)


if __name__ == "__main__":
    assert harness.ROOT
    unittest.main()
