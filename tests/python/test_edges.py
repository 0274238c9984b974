# SPDX-License-Identifier: Apache-2.0
"""Names that meet those of the package, what goes to other processes, and arguments that are none: every error is a tdsl.Error."""
import os
import pickle
import runpy
import sys
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


class Packages(unittest.TestCase):
    def test_there_is_no_source_distribution_and_it_says_so(self):
        """The backend of pyproject.toml, with a stand-in for scikit-build-core."""
        stand_in = types.ModuleType("scikit_build_core.build")
        stand_in.__all__, stand_in.build_wheel = ["build_wheel"], lambda *_: "a wheel"
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "runtime", "python")
        with mock.patch.dict(sys.modules, {"scikit_build_core": types.ModuleType("scikit_build_core"), "scikit_build_core.build": stand_in}):
            backend = runpy.run_path(os.path.join(folder, "_build.py"))
        self.assertEqual(backend["build_wheel"](folder), "a wheel")
        with self.assertRaisesRegex(SystemExit, "no source distribution"):
            backend["build_sdist"](folder)
        with open(os.path.join(folder, "pyproject.toml"), encoding="utf-8") as f:
            self.assertIn('build-backend = "_build"', f.read())


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
