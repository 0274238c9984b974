# SPDX-License-Identifier: Apache-2.0
"""Kernels of programs as functions of arrays: arguments, results, open extents, in place, errors, reports, the interpreter."""
import os
import tempfile
import unittest
import warnings

import numpy as np
import tdsl

TEXT = """
dim m ~ 40, times;
kernel gemm(A: f32[m, k], B: f32[k, n], C: inout f32[m, n], alpha: f32, beta: f32) {
    C[i,j] = alpha * A[i,p] * B[p,j] + beta * C[i,j];
}
kernel stats(x: f64[m, 3]) -> (mean: f64[3], largest: f64) {
    mean[j] = sum[i](x[i,j]) / extent(m);
    largest = max[i,j](x[i,j]);
}
kernel total(x: f64[m]) -> (R: f64) { R = sum[i](x[i]); }
kernel spread(x: f64) -> (R: f64) { R = x * extent(times); }
kernel integers(k: i64, b: bool, z: c64) -> (R: i64, S: c64) { R = select(b, 2 * k, k); S = z * z; }
"""


class Positions(unittest.TestCase):
    TEXT = "kernel embed(W: f32[v, e], tok: i32[n, 2]) -> (Y: f32[n, 2, e]) { Y[n,k,e] = W[tok[n,k],e]; }"

    def test_a_position_outside_is_an_index_error(self):
        W = np.arange(12, dtype=np.float32).reshape(4, 3)
        tok = np.array([[0, 3], [1, 2]], np.int32)
        embed = tdsl.compile(self.TEXT).embed
        out = np.full((2, 2, 3), 7, np.float32)
        for _ in range(3):  # the later ones by what was prepared
            np.testing.assert_array_equal(embed(W, tok), W[tok])
            for at, extent in ((4, 4), (-1, 4)):
                bad = tok.copy()
                bad[1, 0] = at
                with self.assertRaisesRegex(IndexError, r"dimension 0 of .W. has 4 positions, and tok\[n,k\] is -?\d at n = 1, k = 0") as caught:
                    embed(W, bad, out=out)
                error = caught.exception
                self.assertIsInstance(error, tdsl.PositionError)
                self.assertEqual((error.argument, error.dimension, error.position, error.extent, error.place), ("W", 0, at, extent, {"n": 1, "k": 0}))
                self.assertTrue((out == 7).all(), "something was written")


class Definite(unittest.TestCase):
    TEXT = """kernel factor(S: f64[b, n, n]) -> (L: f64[b, n, n]) { L[b,i,j] = cholesky[i,j](S[b,i,j]); }
        kernel solved(A: inout f64[n, n], x: inout f64[n]) { A[i,j] = cholesky[i,j](A[i,j]); x[j] = solve[i](A[i,j], x[i]); }"""

    def test_a_matrix_that_is_not_positive_definite_is_named(self):
        p = tdsl.compile(self.TEXT)
        for n in (3, 70):
            S = np.eye(n)[None].repeat(5, 0) * 4
            S[3, 2, 2] = S[4, 1, 1] = -1
            for _ in range(3):  # the later ones by what was prepared
                with self.assertRaisesRegex(tdsl.DefiniteError, "factor: matrix 3 of a cholesky is not positive definite: pivot 2") as caught:
                    p.factor(S)
                self.assertEqual((caught.exception.matrix, caught.exception.pivot), (3, 2))
                np.testing.assert_array_equal(p.factor(np.abs(S)), np.sqrt(np.abs(S)))

    def test_a_matrix_of_a_step_is_named(self):
        text = """kernel steps(R: f64[t, n, n], x0: f64[n]) -> (x: f64[t, n]) {
            x[-1,i] = x0[i];
            L[t,i,j] = cholesky[i,j](R[t,i,j] + select(index(i) == index(j), 0*x[t - 1,i], 0));
            x[t,j] = solve[i](L[t,i,j], x[t - 1,i]);
        }"""
        run = tdsl.compile(text).steps
        for n in (4, 70):
            R = np.eye(n)[None].repeat(5, 0) * 4
            np.testing.assert_array_equal(run(R, np.ones(n)), 0.5 ** np.arange(1, 6)[:, None] * np.ones(n))
            R[3, 2, 2] = -1
            with self.assertRaises(tdsl.DefiniteError) as caught:
                run(R, np.ones(n))
            self.assertEqual((caught.exception.matrix, caught.exception.pivot), (0, 2))

    def test_arguments_are_as_they_were(self):
        solved = tdsl.compile(self.TEXT).solved
        for n in (4, 130):
            A, x = np.eye(n) * 4, np.ones(n)
            A[n - 1, n - 1] = 0
            was = A.copy()
            with self.assertRaises(tdsl.DefiniteError) as caught:
                solved(A, x)
            self.assertEqual((caught.exception.matrix, caught.exception.pivot), (0, n - 1))
            np.testing.assert_array_equal(A, was)
            np.testing.assert_array_equal(x, 1)
            A[n - 1, n - 1] = 4
            solved(A, x)
            np.testing.assert_array_equal(x, 0.5)


class Kernels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cls.p = tdsl.compile(TEXT)

    def test_arguments_by_position_and_name_and_inout_in_place(self):
        a, b = np.ones((2, 3), "f4"), np.ones((3, 4), "f4")
        nothing = np.full((40, 50), 3, "f4")  # an extent of 0: a sum of no terms, which needs a workspace all the same
        self.assertIsNone(self.p.gemm(np.ones((40, 0), "f4"), np.ones((0, 50), "f4"), nothing, alpha=2, beta=1))
        self.assertTrue((nothing == 3).all())
        for order in "CF":
            c = np.full((2, 4), 5, "f4", order=order)
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                self.assertIsNone(self.p.gemm(a, b, C=c, alpha=2, beta=1))
            self.assertEqual([w.category for w in told], [tdsl.CopyWarning] if order == "F" else [])
            np.testing.assert_array_equal(c, 11)
        c = np.full((2, 4), np.nan, "f4")
        self.p["gemm"](B=b, A=a, beta=0, alpha=np.float32(1), C=c)
        np.testing.assert_array_equal(c, 3)

    def test_results_are_returned(self):
        x = np.arange(12.0).reshape(4, 3)
        got = self.p.stats(x)
        np.testing.assert_array_equal(got.mean, x.mean(0))
        self.assertEqual(got.largest, 11)
        self.assertIs(type(got.largest), np.float64)
        mean = np.empty(3)
        self.assertIs(self.p.stats(x, out={"mean": mean}).mean, mean)
        np.testing.assert_array_equal(mean, x.mean(0))
        self.assertEqual(self.p.total([1.0, 2.0]), 3)
        self.assertEqual(self.p.total(np.empty(0)), 0)
        self.assertEqual(self.p.integers(4, True, 1j), (8, -1))
        out = np.empty(())
        self.assertIs(self.p.total([1.0, 2.0], out=out), out)
        self.assertEqual(out, 3)

    def test_an_extent_that_no_array_has(self):
        self.assertEqual(self.p.spread(2.0, dims={"times": 3}), 6)
        with self.assertRaisesRegex(tdsl.ArgumentError, "how large times is"):
            self.p.spread(2.0)
        with self.assertRaises(tdsl.ArgumentError):
            self.p.spread(2.0, dims={"n": 3})
        for n in -1, 1 << 64:
            with self.assertRaises(tdsl.ShapeError):
                self.p.spread(2.0, dims={"times": n})

    def test_threads_give_the_same(self):
        x = np.arange(3000.0).reshape(1000, 3)
        np.testing.assert_array_equal(self.p.stats(x, threads=2).mean, self.p.stats(x).mean)

    def test_errors_name_the_argument(self):
        a, b, c = np.ones((2, 3), "f4"), np.ones((3, 4), "f4"), np.ones((2, 4), "f4")
        square = np.ones((3, 3), "f4")
        fixed = np.ones((2, 4), "f4")
        fixed.flags.writeable = False
        p = self.p
        cases = [(tdsl.ShapeError, "B", lambda: p.gemm(a, b[:2], c, 1, 1)), (tdsl.ShapeError, "A", lambda: p.gemm(a[0], b, c, 1, 1)),
                 (tdsl.ShapeError, "x", lambda: p.stats(np.ones((2, 4)))), (tdsl.DtypeError, "A", lambda: p.gemm(a.astype("f8"), b, c, 1, 1)),
                 (tdsl.DtypeError, "C", lambda: p.gemm(a, b, c.tolist(), 1, 1)), (tdsl.ArgumentError, "C", lambda: p.gemm(a, b, fixed, 1, 1)),
                 (tdsl.OverlapError, "C", lambda: p.gemm(square, square.copy(), square, 1, 1)),
                 (tdsl.DtypeError, "alpha", lambda: p.gemm(a, b, c, 1j, 1)), (tdsl.DtypeError, "k", lambda: p.integers(1.5, True, 0)),
                 (tdsl.ArgumentError, "k", lambda: p.integers(1 << 64, True, 0)), (tdsl.DtypeError, "b", lambda: p.integers(1, 1, 0)),
                 (tdsl.ArgumentError, "alpha", lambda: p.gemm(a, b, c, np.ones(2, "f4"), 1))]
        for kind, name, call in cases:
            with self.subTest(name=name, kind=kind), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with self.assertRaises(kind) as raised:
                    call()
                self.assertEqual(raised.exception.argument, name)
                self.assertIn(repr(name), str(raised.exception))
        for call in (lambda: p.gemm(a, b), lambda: p.gemm(a, b, c, 1, 1, 1), lambda: p.gemm(a, b, c, 1, 1, A=a), lambda: p.total(y=1)):
            self.assertRaises(TypeError, call)
        self.assertTrue(issubclass(tdsl.WorkspaceError, MemoryError))

    def test_mistakes_of_a_program(self):
        with self.assertRaises(tdsl.CompileError) as raised:
            tdsl.compile("kernel f(A: f64[2]) -> (R: f64[2]) {\n    R[i] = A[j];\n}")
        e = raised.exception
        self.assertEqual((e.code, e.line, e.column), ("E0206", 2, 7))
        self.assertIn("\n      |       ^", str(e))
        self.assertIsInstance(e, ValueError)
        with self.assertRaisesRegex(tdsl.CompileError, "no such dim"):
            tdsl.compile(TEXT, q=3)
        with self.assertWarnsRegex(tdsl.CompileWarning, "silent-sum"):
            tdsl.compile("kernel f(A: f64[2]) -> (R: f64) { R = A[i]; }")

    def test_a_file_with_an_include_and_a_bound_dim(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "d.tdsl"), "w", encoding="utf-8") as f:
                f.write("dim n;\n")
            path = os.path.join(folder, "f.tdsl")
            with open(path, "w", encoding="utf-8") as f:
                f.write('include "d.tdsl";\nkernel f(x: f64[n]) -> (R: f64[n]) { R[i] = 2 * x[i]; }\n')
            p = tdsl.load(path, n=3)
            np.testing.assert_array_equal(p.f([1.0, 2, 3]), [2, 4, 6])
            self.assertRaises(tdsl.ShapeError, p.f, [1.0])
            self.assertRaises(FileNotFoundError, tdsl.load, os.path.join(folder, "none.tdsl"))

    def test_report_and_dump(self):
        self.assertIn("gemm", self.p.report())
        self.assertIn("<iframe", self.p.report()._repr_html_())
        self.assertEqual({k["name"] for k in self.p.report("json")["kernels"]}, set(self.p.kernels))
        again = tdsl.compile(self.p.dump("nest"))
        self.assertEqual(again.total([1.0, 2.0]), 3)
        self.assertIn("total", dir(self.p))
        self.assertEqual(repr(self.p.total), "<kernel total(x: f64[m]) -> (R: f64)>")

    def test_the_interpreter_where_there_is_no_compiler(self):
        saved = os.environ.get("TDSL_CC")
        os.environ["TDSL_CC"] = "no-such-compiler"
        try:
            with self.assertWarns(tdsl.SlowWarning):
                p = tdsl.compile(TEXT)
                c = np.full((2, 4), 5, "f4")
                p.gemm(np.ones((2, 3), "f4"), np.ones((3, 4), "f4"), c, 2, 1)
            np.testing.assert_array_equal(c, 11)
            self.assertEqual(p.stats(np.ones((2, 3))).largest, 1)
            self.assertEqual(p.spread(2.0, dims={"times": 3}), 6)
            self.assertEqual(p.integers(4, True, 1j), (8, -1))
            with self.assertRaises(tdsl.PositionError) as caught:
                tdsl.compile(Positions.TEXT).embed(np.ones((4, 3), "f4"), np.array([[1, -5]], "i4"))
            self.assertEqual((caught.exception.argument, caught.exception.position, caught.exception.place), ("W", -5, {"n": 0, "k": 1}))
            os.environ["TDSL_REQUIRE_CC"] = "1"
            with self.assertRaisesRegex(tdsl.CCompilerError, "TDSL_REQUIRE_CC"):
                tdsl.compile(TEXT).total([1.0])
        finally:
            os.environ.pop("TDSL_REQUIRE_CC", None)
            os.environ.pop("TDSL_CC")
            if saved is not None:
                os.environ["TDSL_CC"] = saved


unittest.main()
