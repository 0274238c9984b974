# SPDX-License-Identifier: Apache-2.0
"""The command line: results, reports, exit codes; and `nki` is never left lying about."""

import json
import os
import subprocess
import sys
import tempfile
import types
import unittest

import numpy as np
from support import CLOSING, HEAD, KERNELS, ROOT, RUNNER, indented, kernel_text, run_body


def run(*arguments, **options):
    return subprocess.run([sys.executable, RUNNER, *map(str, arguments)], text=True,
                          capture_output=True, stdin=subprocess.DEVNULL, timeout=120, **options)


class Runner(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def save(self, name, array):
        np.save(self.path(name), array)
        return self.path(name)

    def text(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as stream:
            stream.write(text)
        return self.path(name)

    def matmul_inputs(self):
        rng = np.random.default_rng(2)
        plain = [rng.integers(-3, 4, s).astype(np.float32) for s in ((200, 300), (200, 700))]
        files = [self.save(f"i{i}.npy", (p.view(np.uint32) >> 16).astype(np.uint16))
                 for i, p in enumerate(plain)]
        return plain, files

    def kernel(self, name):
        return os.path.join(KERNELS, name)

    def test_a_manifest_drives_types_and_results_are_written(self):
        (a, b), (fa, fb) = self.matmul_inputs()
        done = run("-", "--manifest", self.kernel("matmul_remainder.json"), "--in", fa, "--in",
                   fb, "--out", self.path("c.npy"))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        np.testing.assert_array_equal(np.load(self.path("c.npy")), a.T @ b)

    def test_types_can_be_given_on_the_command_line(self):
        (a, b), (fa, fb) = self.matmul_inputs()
        done = run(self.kernel("matmul_remainder.py"), "--function", "matmul_remainder",
                   "--target", "trn1", "--in", fa, "--in", fb, "--in-dtype", "a=bfloat16",
                   "--in-dtype", "b=bfloat16", "--out", self.path("c.npy"), "--report", "json",
                   "--trace", self.path("t.json"))
        self.assertEqual(done.returncode, 0, done.stderr)
        np.testing.assert_array_equal(np.load(self.path("c.npy")), a.T @ b)
        report = json.loads(done.stdout)
        self.assertEqual(report["cost"]["target"], "trn1")
        with open(self.path("t.json"), encoding="utf-8") as stream:
            trace = json.load(stream)
        self.assertEqual(len(trace["calls"]), report["cost"]["instructions"])

    def test_complex_arrays_are_the_pairs_a_manifest_says_they_are(self):
        body = ("out = nl.ndarray(shape=(3, 2), dtype=nl.float32, buffer=nl.shared_hbm)\n"
                "t = nl.ndarray(shape=(3, 2), dtype=nl.float32, buffer=nl.sbuf)\n"
                "nisa.dma_copy(dst=t[0:3, 0:2], src=a[0:3, 0:2])\n"
                "nisa.tensor_scalar(dst=t[0:3, 1:2], data=t[0:3, 1:2], op0=nl.multiply, "
                "operand0=-1.0)\n"
                "nisa.dma_copy(dst=out[0:3, 0:2], src=t[0:3, 0:2])\n")
        self.text("k.py", kernel_text(body, "a", "return out\n"))
        pair = {"dtype": "float32", "shape": [3, 2], "of": {"dtype": "complex64", "shape": [3]}}
        manifest = {"function": "k", "file": "k.py",
                    "args": [{"name": "a", "role": "input", **pair},
                             {"name": "out", "role": "output", **pair}]}
        path = self.text("k.json", json.dumps(manifest))
        a = np.array([1 + 2j, -3j, 4], np.complex64)
        for given, wanted in ((a, a.conj()), (a.view(np.float32).reshape(3, 2), None)):
            done = run("-", "--manifest", path, "--in", self.save("a.npy", given), "--out",
                       self.path("r.npy"))
            self.assertEqual(done.returncode, 0, done.stderr)
            got = np.load(self.path("r.npy"))
            wanted = a.conj().view(np.float32).reshape(3, 2) if wanted is None else wanted
            self.assertEqual(got.dtype, wanted.dtype)
            np.testing.assert_array_equal(got, wanted)
        done = run("-", "--manifest", path, "--in", self.save("a.npy", a[:2]), "--out",
                   self.path("r2.npy"))
        self.assertEqual((done.returncode, os.path.exists(self.path("r2.npy"))), (2, False))
        self.assertIn("[2], the kernel's is [3]", done.stderr)
        manifest["args"][0]["of"]["shape"] = [4]
        done = run("-", "--manifest", self.text("bad.json", json.dumps(manifest)), "--in",
                   self.save("a.npy", a))
        self.assertEqual(done.returncode, 2)
        self.assertIn("does not hold the parts", done.stderr)

    def test_raw_files_are_bare_elements(self):
        (a, b), _ = self.matmul_inputs()
        files = []
        for name, plain in (("a", a), ("b", b)):
            files += ["--in", self.path(name + ".bin")]
            with open(files[-1], "wb") as stream:
                stream.write((plain.view(np.uint32) >> 16).astype("<u2").tobytes())
        done = run("-", "--manifest", self.kernel("matmul_remainder.json"), "--raw", *files,
                   "--out", self.path("c.bin"))
        self.assertEqual(done.returncode, 0, done.stderr)
        got = np.fromfile(self.path("c.bin"), "<f4").reshape(300, 700)
        np.testing.assert_array_equal(got, a.T @ b)
        done = run("-", "--manifest", self.kernel("matmul_remainder.json"), "--raw", files[0],
                   files[1], files[0], files[1], "--out", self.path("c.bin"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("280000", done.stderr)

    def test_synthetic_inputs_give_a_report_without_files(self):
        done = run("-", "--manifest", self.kernel("attention.json"), "--synthetic", "--report",
                   "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["kernel"], "attention")
        done = run(self.kernel("attention.py"), "--synthetic")
        self.assertEqual(done.returncode, 2)

    def test_the_text_report_names_engines(self):
        _, (fa, fb) = self.matmul_inputs()
        done = run("-", "--manifest", self.kernel("matmul_remainder.json"), "--in", fa, "--in",
                   fb, "--report", "text")
        self.assertEqual(done.returncode, 0)
        self.assertIn("roofline", done.stdout)

    def test_warnings_of_one_line_are_told_once(self):
        body = ("t = nl.ndarray(shape=(1, 1), dtype=nl.float32, buffer=nl.sbuf)\n"
                "nisa.memset(dst=t[...], value=0.0)\n"
                "for i in range(3):\n    nisa.activation(dst=t[...], op=nl.sqrt, data=t[...])\n")
        done = run(self.text("k.py", kernel_text(body)), "--ranges", "warn")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("warning: "), 1)
        self.assertTrue(done.stderr.endswith("; and 2 more of this line\n"), done.stderr)

    def test_a_broken_rule_is_status_1_with_rule_line_and_operation(self):
        kernel = self.text("k.py", kernel_text(
            "s = nl.ndarray(shape=(128, 8), dtype=nl.float32, buffer=nl.sbuf)\n"
            "nisa.memset(dst=s[48:56, 0:8], value=1.0)\n"))
        done = run(kernel, "--out", self.path("o.npy"))
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{kernel}:9: [G5] nisa.memset: ", done.stderr)
        self.assertFalse(os.path.exists(self.path("o.npy")))

    def test_usage_errors_are_status_2(self):
        good = self.text("k.py", kernel_text(""))
        array = self.save("a.npy", np.ones((2, 2)))
        bad_manifest = self.text("m.json", '{"function": "k", "args": [{"name": 3}]}')
        newer = self.text("n.json", '{"format": 2, "compiler": "tdslc 9", "function": "k", "args": []}')
        cases = [
            ((good, "--manifest", newer), "format 2, made by tdslc 9; this emulator reads format 1"),
            ((good, "--nonsense"), "nonsense"), ((), "kernel"),
            ((good, "--target", "trn9"), "trn9"), ((good, "--function", "g"), "'k', not 'g'"),
            ((good, "--in", array), "1 input arrays"),
            ((good, "--out", "a", "--out", "b"), "2 --out files for 1 results"),
            ((good, "--manifest", bad_manifest), "args[0]"), (("-",), "manifest"),
            ((good, "--in-dtype", "x"), "PARAM=TYPE"),
            ((good, "--max-instructions", "0"), "at least 1"),
        ]
        for arguments, word in cases:
            with self.subTest(arguments=arguments):
                done = run(*arguments)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(word, done.stderr)
                self.assertNotIn("Traceback", done.stderr)

    def test_an_array_that_does_not_fit_is_status_2(self):
        _, (fa, fb) = self.matmul_inputs()
        small = self.save("s.npy", np.ones((2, 2), np.uint16))
        wrong = self.save("w.npy", np.ones((200, 300), np.float64))
        for first in (small, wrong):
            done = run("-", "--manifest", self.kernel("matmul_remainder.json"), "--in", first,
                       "--in", fb)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("'a'", done.stderr)

    def test_files_that_cannot_be_used_are_status_3(self):
        good = self.text("k.py", kernel_text(""))
        cases = [
            (self.path("none.py"),), (good, "--in", self.path("none.npy")),
            (good, "--in", good), (good, "--manifest", self.path("none.json")),
            (good, "--manifest", good), (good, "--out", self.path("no/folder/o.npy")),
            (self.folder,),
        ]
        for arguments in cases:
            with self.subTest(arguments=arguments):
                done = run(*arguments)
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertNotIn("Traceback", done.stderr)

    def test_outputs_are_written_all_or_none(self):
        array = [self.save(f"{n}.npy", np.ones(s, np.float32)) for n, s in
                 (("a", (200, 100)), ("b", (200, 150)), ("d", (150, 96)))]
        done = run(self.kernel("contract_twice.py"), *[x for a in array for x in ("--in", a)],
                   "--out", self.path("c.npy"), "--out", self.path("no/t.npy"))
        self.assertEqual(done.returncode, 3)
        self.assertEqual([f for f in os.listdir(self.folder) if f.startswith("c.npy")], [])

    def test_a_manifest_that_disagrees_with_the_kernel_is_a_broken_rule(self):
        with open(self.kernel("matmul_remainder.json"), encoding="utf-8") as stream:
            manifest = json.load(stream)
        manifest["args"][2]["shape"] = [300, 701]
        path = self.text("m.json", json.dumps(manifest))
        _, (fa, fb) = self.matmul_inputs()
        done = run(self.kernel("matmul_remainder.py"), "--manifest", path, "--in", fa, "--in",
                   fb)
        self.assertEqual(done.returncode, 1)
        self.assertIn("[H3]", done.stderr)
        manifest["args"][2]["shape"] = [300, 700]
        for key in ("instructions", "matmul_macs"):
            path = self.text("m.json", json.dumps({**manifest, key: 30}))
            done = run(self.kernel("matmul_remainder.py"), "--manifest", path, "--in", fa,
                       "--in", fb)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"{key}, the manifest has 30", done.stderr)
        manifest["args"][0]["name"] = "x"
        path = self.text("m.json", json.dumps(manifest))
        done = run(self.kernel("matmul_remainder.py"), "--manifest", path, "--in", fa, "--in",
                   fb)
        self.assertEqual(done.returncode, 1)
        self.assertIn("[H3]", done.stderr)

    def test_hostile_texts_end_with_a_message(self):
        deep = "(" * 3000 + "1" + ")" * 3000
        texts = {
            "deep": HEAD + f"@nki.jit\ndef k():\n    x = {deep}\n    return x\n",
            "chain": f"{HEAD}@nki.jit\ndef k():\n    x = {'1 + ' * 20000}1\n    return x\n",
            "binary": "\0\1\2", "empty": "",
            "builtins": HEAD + "@nki.jit\ndef k():\n    __import__(name='os')\n    return 1\n",
            "attribute": HEAD + "@nki.jit\ndef k(a):\n    return a.__class__\n",
            "loops": HEAD + "@nki.jit\ndef k():\n" + "".join(
                "    " * (d + 1) + f"for i{d} in range(2147483647):\n" for d in range(15)) +
            "    " * 16 + "pass\n" + indented(CLOSING),
        }
        for name, text in texts.items():
            with self.subTest(text=name):
                done = run(self.text(f"{name}.py", text))
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertRegex(done.stderr, r"\[[A-Z]\d+\]")
                self.assertNotIn("Traceback", done.stderr)

    def test_importing_the_package_gives_nobody_a_module_named_nki(self):
        text = ("import importlib.util, sys\nimport nki_emulator.emulate\n"
                "spec = importlib.util.find_spec('nki')\n"
                "print([n for n in sys.modules if n.split('.')[0] == 'nki'], "
                "spec and list(spec.submodule_search_locations))\n")
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True,
                              cwd=self.folder, timeout=60,
                              env={**os.environ, "PYTHONPATH": os.path.join(ROOT, "runtime")})
        self.assertTrue(done.stdout.startswith("[] "), done.stdout + done.stderr)
        self.assertNotIn(ROOT + os.sep + "runtime", done.stdout)


class Isolation(unittest.TestCase):
    def test_a_vendor_package_in_the_process_is_put_back(self):
        vendor, isa = types.ModuleType("nki"), types.ModuleType("nki.isa")
        sys.modules["nki"], sys.modules["nki.isa"] = vendor, isa
        try:
            run_body("")
            self.assertIs(sys.modules["nki"], vendor)
            self.assertIs(sys.modules["nki.isa"], isa)
            self.assertNotIn("nki.language", sys.modules)
        finally:
            del sys.modules["nki"], sys.modules["nki.isa"]

    def test_nothing_is_left_after_a_run_or_a_refusal(self):
        from nki_emulator.errors import RuleError
        run_body("")
        with self.assertRaises(RuleError):
            run_body("nisa.memset(dst=1)\n")
        self.assertEqual([n for n in sys.modules if n == "nki" or n.startswith("nki.")], [])
        run_body("")                            # the session of the refused run has ended too


if __name__ == "__main__":
    unittest.main()
