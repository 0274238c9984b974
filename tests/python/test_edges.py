# SPDX-License-Identifier: Apache-2.0
"""Names that meet those of the package, what goes to other processes, and arguments that are none: every error is a tdsl.Error."""
import os
import pickle
import pty
import re
import runpy
import subprocess
import sys
import tarfile
import tempfile
import types
import unittest
import warnings
from unittest import mock

import numpy as np
import tdsl
import tdsl.nki

A, B = np.arange(12.0).reshape(3, 4), np.arange(20.0).reshape(4, 5)
TWO = """
kernel two(x: f64[n]) -> (s: f64, m: f64) { s = sum[i](x[i]); m = max[i](x[i]); }
kernel one(x: f64[n]) -> (y: f64[n]) { y[i] = 2*x[i]; }
"""


class Names(unittest.TestCase):
    def test_parameters_called_like_options(self):
        k = tdsl.compile("kernel k(out: f64, dims: f64, threads: f64) -> (e: f64) { e = out*dims - threads; }").k
        e = np.zeros(())
        for _ in range(3):  # from the second call on it is prepared
            self.assertEqual(k(out=2.0, dims=3.0, threads=4.0), 2)
            self.assertEqual(k(2.0, threads=4.0, dims=3.0), 2)
            k(out=5.0, dims=3.0, threads=4.0, out_=e, threads_=1)
            self.assertEqual(e, 11)
        with self.assertRaises(tdsl.CallError):
            k(2.0, 3.0, 4.0, out=1.0)
        k = tdsl.compile("kernel k(self: f64) -> (e: f64) { e = 2*self; }").k
        self.assertEqual([k(self=2.0), k(self=3.0)], [4, 6])

    def test_kernels_called_like_members(self):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            program = tdsl.compile("".join(f"kernel {name}(x: f64[n]) -> (y: f64[n]) {{ y[i] = 2*x[i]; }}\n" for name in ("report", "c", "dump", "kernels", "other")))
        self.assertEqual([str(w.message).split("'")[1] for w in told], ["report", "c", "dump", "kernels"])
        self.assertEqual(program["report"](np.ones(2)).tolist(), [2, 2])
        with self.assertRaisesRegex(tdsl.ArgumentError, r"program\['report'\]"):
            program.report(np.ones(2))

    def test_words_of_python(self):
        program = tdsl.compile("kernel lambda(x: f64[n]) -> (e: f64, class: f64) { e = sum[i](x[i]); class = 2*e; }")
        self.assertEqual(tuple(getattr(program, "lambda")(np.ones(3))), (3, 6))

    def test_a_string_is_no_file(self):
        with self.assertRaisesRegex(tdsl.CompileError, "E0302"):
            tdsl.einsum("@i->i@", A)


class Pickled(unittest.TestCase):
    def again(self, x):
        return pickle.loads(pickle.dumps(x))

    def test_results(self):
        result = tdsl.compile(TWO).two(np.arange(3.0))
        again = self.again(result)
        self.assertIs(type(again), type(result))
        self.assertEqual((again, again.m), ((3, 2), 2))

    def test_programs_kernels_and_reports(self):
        program = tdsl.compile(TWO)
        self.assertEqual(self.again(program).one(np.ones(2)).tolist(), [2, 2])
        self.assertEqual(self.again(program.one)(np.ones(2)).tolist(), [2, 2])
        self.assertEqual(self.again(program.report()), program.report())

    def test_expressions_and_paths(self):
        f = self.again(tdsl.expression("ij,jk,kl->il", (None, 4), (4, 5), (5, 2), optimize="greedy"))
        np.testing.assert_allclose(f(A, B, np.ones((5, 2))), A @ B @ np.ones((5, 2)))
        p = tdsl.path("ij,jk,kl->il", (2, 3), (3, 4), (4, 5))
        self.assertEqual(self.again(p).path, p.path)


class Paths(unittest.TestCase):
    def test_what_numpy_takes(self):
        arrays = np.ones((10, 20)), np.ones((20, 5)), np.ones((5, 8))
        for optimize in True, None, "auto", "greedy", "optimal", ("greedy", 10), ["optimal", 1000]:
            path, report = tdsl.einsum_path("ij,jk,kl->il", *arrays, optimize=optimize)
            self.assertEqual(path[0], "einsum_path")
            self.assertIn("Complete contraction:  ij,jk,kl->il", report)
            for einsum in tdsl.einsum, np.einsum:
                np.testing.assert_array_equal(einsum("ij,jk,kl->il", *arrays, optimize=path), np.full((10, 8), 100.0))
        for wrong in [(0, 1)], 3, "nothing":
            with self.assertRaises(tdsl.Error):
                tdsl.einsum_path("ij,jk,kl->il", *arrays, optimize=wrong)

    def test_reports(self):
        for path in tdsl.path("ij,jk,kl->il", (10, 20), (20, 5), (5, 8)), tdsl.path("ab,bc,cd,da->", *[(30, 30)] * 4, memory_limit=300):
            self.assertIn(f"{path.largest} elements", path.report())
            self.assertIn("<pre>    Complete contraction", path._repr_html_())


class Packages(unittest.TestCase):
    def test_a_source_distribution_has_what_a_wheel_is_built_of(self):
        """The backend of pyproject.toml, with a stand-in for scikit-build-core. Of what it packs, CMake configures a build."""
        stand_in = types.ModuleType("scikit_build_core.build")
        stand_in.__all__, stand_in.build_wheel = ["build_wheel"], lambda *_: "a wheel"
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "runtime", "python")
        with mock.patch.dict(sys.modules, {"scikit_build_core": types.ModuleType("scikit_build_core"), "scikit_build_core.build": stand_in}):
            backend = runpy.run_path(os.path.join(folder, "_build.py"))
        with mock.patch.dict(os.environ, {"TDSL_PROGRESS": "0"}):
            self.assertEqual(backend["build_wheel"](folder), "a wheel")
        with tempfile.TemporaryDirectory() as made, tempfile.TemporaryDirectory() as again:
            name = backend["build_sdist"](made)
            self.assertEqual(name, f"tdsl-{tdsl.__version__}.tar.gz")
            backend["build_sdist"](again)
            with open(os.path.join(made, name), "rb") as first, open(os.path.join(again, name), "rb") as second:
                self.assertEqual(first.read(), second.read())
            with tarfile.open(os.path.join(made, name)) as archive:
                archive.extractall(made)
            top = os.path.join(made, name[:-7])
            with open(os.path.join(top, "PKG-INFO"), encoding="utf-8") as f:
                self.assertIn("Classifier: Typing :: Typed\n", f.read())
            with open(os.path.join(top, "pyproject.toml"), encoding="utf-8") as f:
                places = re.findall(r'"(\.|runtime/python[^"]*)"', f.read())
            self.assertEqual(places, ["runtime/python", "runtime/python/README.md", ".", "runtime/python/tdsl"])
            self.assertTrue(all(os.path.exists(os.path.join(top, place)) for place in places))
            listed = subprocess.run(["git", "ls-files", "CMakeLists.txt", "compiler", "docs", "grammar", "runtime"], cwd=os.path.join(folder, "..", ".."), capture_output=True, text=True)
            missing = [path for path in listed.stdout.split() if not os.path.exists(os.path.join(top, path))]
            self.assertEqual(missing, [])
            done = subprocess.run(["cmake", "-S", top, "-B", os.path.join(made, "build"), "-DTDSL_TESTS=OFF", "-DTDSL_PYTHON_MODULE=OFF"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


    def test_a_build_says_what_it_does(self):
        """On the terminal that pip runs on, although pip keeps standard output and error; not where TDSL_PROGRESS is 0. The build is a stand-in, that of four files."""
        script = """if True:
            import os, runpy, sys, time, types
            stand_in = types.ModuleType("scikit_build_core.build")
            def build_wheel(folder, settings, metadata):
                work = settings["build-dir"]
                with open(os.path.join(work, "build.ninja"), "w") as f:
                    f.write("build a.o: C_COMPILER__x a.c\\n" * 4)
                for n in range(4):
                    open(os.path.join(work, f"{n}.o"), "w").close()
                    time.sleep(0.7)
                return settings["build-dir"]
            stand_in.__all__, stand_in.build_wheel = ["build_wheel"], build_wheel
            sys.modules.update({"scikit_build_core": types.ModuleType("scikit_build_core"), "scikit_build_core.build": stand_in})
            assert not os.path.exists(runpy.run_path(sys.argv[1])["build_wheel"]("."))
        """
        backend = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "runtime", "python", "_build.py")
        for progress, wanted in ("1", ["building the compiler", "compiling 4 files of C on ", "50 % of 4 files, ", "built in "]), ("0", []):
            pid, terminal = pty.fork()
            if pid == 0:
                null = os.open(os.devnull, os.O_RDWR)
                os.dup2(null, 1)
                os.dup2(null, 2)
                os.environ["TDSL_PROGRESS"] = progress
                os.execv(sys.executable, [sys.executable, "-c", script, backend])
            said = b""
            while True:
                try:
                    part = os.read(terminal, 4096)
                except OSError:  # the other end is closed
                    break
                if not part:
                    break
                said += part
            os.close(terminal)
            self.assertEqual(os.waitpid(pid, 0)[1], 0, said)
            self.assertEqual(said.count(b"tdsl: ") > 0, bool(wanted), said)
            for words in wanted:
                self.assertIn(f"  tdsl: {words}", said.decode())


class Arguments(unittest.TestCase):
    def test_a_name_and_a_limit(self):
        for optimize in ("greedy", 1000), ["optimal", 1e6], ("greedy", -1):
            np.testing.assert_allclose(tdsl.einsum("ij,jk,lk->il", A, B, np.ones((2, 5)), optimize=optimize), A @ B @ np.ones((5, 2)))
            np.testing.assert_allclose(tdsl.contract("ij,jk->ik", A, B, optimize=optimize), A @ B)

    def test_tensordot_stretches_nothing(self):
        with self.assertRaises(tdsl.ShapeError):
            tdsl.tensordot(np.ones((3, 1)), B, axes=1)
        np.testing.assert_allclose(tdsl.tensordot(A, B, axes=((-1,), (0,))), A @ B)

    def test_every_error_is_ours(self):
        one = tdsl.compile(TWO).one
        f = tdsl.expression("i->i", (3,))
        for number, call in enumerate((
                lambda: one(), lambda: one(1, 2), lambda: one(np.ones(2), z=1), lambda: one(np.ones(2), out=[1, 2]), lambda: one(np.ones(2), dims={"n": "x"}), lambda: one(np.ones(2), dims=3),
                lambda: f(1, 2), lambda: f(np.ones(3), out=[1, 2, 3]), lambda: tdsl.expression("i->i", "abc"), lambda: tdsl.path("i->i", 3), lambda: tdsl.path("i->i", (3,), effort="x"),
                lambda: tdsl.compile(None), lambda: tdsl.compile("kernel \ud800"), lambda: tdsl.load("/no such file.tdsl"), lambda: tdsl.load("kernel {"), lambda: tdsl.nki.load("/no such folder"),
                lambda: tdsl.compile("kernel k(x: f64) -> (y: f64) { y = x; }", n="a"), lambda: tdsl.einsum("i\0j", A), lambda: tdsl.einsum("i" * 300000, A), lambda: tdsl.einsum(3),
                lambda: tdsl.einsum(A, 0), lambda: tdsl.einsum(A, ["a"]), lambda: tdsl.einsum(A, [-1, 0]), lambda: tdsl.einsum("ij->i", A, dtype="nonsense"),
                lambda: tdsl.einsum("ij->i", A, casting="x"), lambda: tdsl.einsum("ij->i", [[1, 2], [3]]), lambda: tdsl.einsum("ij->i", None), lambda: tdsl.einsum("ij->i", A, threads="x"),
                lambda: tdsl.einsum("ij->i", A, optimize=5), lambda: tdsl.einsum("ij->i", A, optimize=("a", "b", "c")), lambda: tdsl.tensordot(A, B, axes="x"),
                lambda: tdsl.tensordot(A, B, axes=((0.5,), (0,))), lambda: tdsl.transpose(A, axes=(0, "x")), lambda: tdsl.transpose(A, axes=3))):
            with self.subTest(number), self.assertRaises(tdsl.Error):
                call()


unittest.main()
