# SPDX-License-Identifier: Apache-2.0
"""tdsl.trnblas against NumPy, in the shapes of trnblas's own tests too; what is not read of triangles is NaN. With torch where it is installed."""
import importlib.util
import itertools
import os
import subprocess
import sys
import unittest

import numpy as np
import tdsl
import tdsl.trnblas as trnblas

TYPES = "f4", "f8", "c8", "c16"
RANDOM = np.random.default_rng(1)


def normal(dtype, *shape):
    a = RANDOM.standard_normal(shape)
    return (a + 1j * RANDOM.standard_normal(shape) if dtype[0] == "c" else a).astype(dtype)


def near(got, want, dtype="f4"):
    np.testing.assert_equal(got.shape, want.shape)
    tolerance = 2e-4 if dtype in ("f4", "c8") else 1e-11
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def halves(A, uplo, diag="nonunit"):
    """The triangle of A, and A with NaN where it is not read."""
    triangle, other = (np.triu(A), np.tril(A, -1)) if uplo == "upper" else (np.tril(A), np.triu(A, 1))
    hidden = triangle.copy()
    hidden[other != 0] = np.nan
    if diag == "unit":
        np.fill_diagonal(triangle, 1)
        np.fill_diagonal(hidden, np.nan)
    return triangle, hidden


class Vectors(unittest.TestCase):
    def test_level_1(self):
        for dtype in TYPES:
            with self.subTest(dtype):
                x, y, a = normal(dtype, 1000), normal(dtype, 1000), normal(dtype, 7, 5)
                near(trnblas.axpy(-1.5, x, y), y - np.array(1.5, dtype) * x, dtype)
                near(trnblas.axpy(2, a, a), 3 * a, dtype)
                near(trnblas.scal(0.5, a), np.array(0.5, dtype) * a, dtype)
                near(trnblas.dot(x, y), x @ y, dtype)
                near(trnblas.asum(a), abs(a).sum(), dtype)
                near(trnblas.nrm2(a), np.linalg.norm(a), dtype)
                self.assertEqual(trnblas.iamax(a), abs(a).argmax())
                self.assertIsInstance(trnblas.iamax(x), int)
                self.assertEqual(trnblas.nrm2(x).dtype, abs(x).dtype)
        with self.assertRaises(tdsl.ArgumentError):
            trnblas.iamax(np.zeros(0))

    def test_norms_beyond_the_range(self):
        for dtype, sizes in (("f4", (1e30, 1e-30, 1e-37)), ("f8", (1e200, 1e-200, 1e-300))):
            for size in sizes:
                x = (np.array([3, 0, -4]) * size).astype(dtype)
                self.assertAlmostEqual(float(trnblas.nrm2(x)) / size, 5, 5)
        self.assertEqual(trnblas.nrm2(np.zeros(3)), 0)
        self.assertEqual(trnblas.nrm2(np.zeros(0)), 0)
        self.assertEqual(trnblas.nrm2(np.array([1, -np.inf])), np.inf)
        self.assertTrue(np.isnan(trnblas.nrm2(np.array([1, np.nan, 0]))))

    def test_level_2(self):
        for dtype in TYPES:
            A, x, y = normal(dtype, 70, 50), normal(dtype, 50), normal(dtype, 70)
            near(trnblas.gemv(2, A, x, -1, y), 2 * A @ x - y, dtype)
            near(trnblas.gemv(2, A, y, trans=True), 2 * A.T @ y, dtype)
            near(trnblas.ger(2, y, x, A), 2 * np.outer(y, x) + A, dtype)
            near(trnblas.ger(2, x, y), 2 * np.outer(x, y), dtype)
            square = normal(dtype, 50, 50)
            for uplo in ("upper", "lower"):
                triangle, hidden = halves(square, uplo)
                symmetric = triangle + triangle.T - np.diag(np.diag(triangle))
                near(trnblas.symv(2, hidden, x, 3, x, uplo=uplo), 2 * symmetric @ x + 3 * x, dtype)
                for trans, diag in itertools.product((False, True), ("unit", "nonunit")):
                    triangle, hidden = halves(square, uplo, diag)
                    near(trnblas.trmv(hidden, x, uplo, trans, diag), (triangle.T if trans else triangle) @ x, dtype)


class Matrices(unittest.TestCase):
    def test_gemm(self):
        for m, k, n in ((32, 16, 24), (128, 128, 128), (200, 137, 400), (1, 1, 1), (3, 0, 2)):
            A, B, C = normal("f4", m, k), normal("f4", k, n), normal("f4", m, n)
            near(trnblas.gemm(1.0, A, B), A @ B)
            near(trnblas.gemm(2.0, A, B, 0.5, C), 2 * A @ B + np.float32(0.5) * C)
            near(trnblas.gemm(2.0, A.T.copy(), B, transA=True), 2 * A @ B)
            near(trnblas.gemm(2.0, A.T.copy(), B.T.copy(), 1, C, transA=True, transB=True), 2 * A @ B + C)
        near(trnblas.gemm(1, A, B, 0.0, np.full_like(C, np.nan)), A @ B)
        A, B, C = normal("c16", 8, 20, 13), normal("c16", 8, 13, 40), normal("c16", 8, 20, 40)
        near(trnblas.batched_gemm(2 - 1j, A, B, 0.5j, C), (2 - 1j) * A @ B + 0.5j * C, "f8")
        near(trnblas.batched_gemm(1, A.transpose(0, 2, 1).copy(), B.transpose(0, 2, 1), transA=True, transB=True), A @ B, "f8")

    def test_symmetric(self):
        for dtype, (m, n) in itertools.product(TYPES, ((16, 16), (130, 70))):
            S, B, C = normal(dtype, m, m), normal(dtype, m, n), normal(dtype, n, m)
            for uplo in ("upper", "lower"):
                triangle, hidden = halves(S, uplo)
                symmetric = triangle + triangle.T - np.diag(np.diag(triangle))
                near(trnblas.symm(2, hidden, B, -1, B, uplo=uplo), 2 * symmetric @ B - B, dtype)
                near(trnblas.symm(2, hidden, C, -1, C, side="right", uplo=uplo), 2 * C @ symmetric - C, dtype)
            R = trnblas.syrk(2, B)
            near(R, 2 * B @ B.T, dtype)
            np.testing.assert_array_equal(R, R.T)
            near(trnblas.syrk(2, C, 0.5, S, trans=True), 2 * C.T @ C + np.array(0.25, dtype) * (S + S.T), dtype)

    def test_half_the_work(self):
        """Of syrk a half is computed and the other copied."""
        from tdsl._trnsci import program_of, text_for
        texts = {name: trnblas._kernel(name, parameters, "R: T[n, n]", "i,j", product, True) for name, parameters, product in (
            ("syrk", ("A: T[n, k]", "alpha: S"), "alpha * A[i,p] * A[j,p]"), ("gemm", ("A: T[n, k]", "B: T[n, k]", "alpha: S"), "alpha * A[i,p] * B[j,p]"))}
        work = {name: program_of(text_for(text, "f32")).report("json")["kernels"][0]["multiply_adds"] for name, text in texts.items()}
        self.assertLess(work["syrk"], 0.6 * work["gemm"])

    def test_triangles(self):
        for dtype, (m, n) in itertools.product(("f4", "f8"), ((16, 5), (150, 40))):
            S = (normal(dtype, m, m) / m + 2 * np.eye(m)).astype(dtype)
            B, C = normal(dtype, m, n), normal(dtype, n, m)
            for uplo, trans, diag in itertools.product(("upper", "lower"), (False, True), ("unit", "nonunit")):
                triangle, hidden = halves(S, uplo, diag)
                op = triangle.T if trans else triangle
                near(trnblas.trmm(2, hidden, B, "left", uplo, trans, diag), 2 * op @ B, dtype)
                near(trnblas.trmm(2, hidden, C, "right", uplo, trans, diag), 2 * C @ op, dtype)
                near(op @ trnblas.trsm(2, hidden, B, "left", uplo, trans, diag), 2 * B, dtype)
                near(trnblas.trsm(2, hidden, C, "right", uplo, trans, diag) @ op, 2 * C, dtype)

    def test_what_is_refused(self):
        a = np.ones((3, 3), np.float32)
        for call, argument in ((lambda: trnblas.trsm(1, a, a, uplo="Upper"), "uplo"), (lambda: trnblas.trmm(1, a, a, side="L"), "side"),
                               (lambda: trnblas.trmv(a, a[0], diag=True), "diag"), (lambda: trnblas.gemm(1, a, a[:2]), "B"),
                               (lambda: trnblas.gemv(1, a, a), "x"), (lambda: trnblas.syrk(1, a, 1, a[:2]), "C"), (lambda: trnblas.trsm(1, a[:2], a), "A"),
                               (lambda: trnblas.gemm(1j, a, a), "alpha"), (lambda: trnblas.trsm(1, a + 1j, a), "A"), (lambda: trnblas.set_backend("gpu"), "backend")):
            with self.assertRaises(tdsl.Error) as caught:
                call()
            self.assertEqual(caught.exception.argument, argument, caught.exception)


class Tensors(unittest.TestCase):
    @unittest.skipIf(importlib.util.find_spec("torch") is None, "torch is not installed")
    def test_torch(self):
        import torch
        for kind in (torch.float32, torch.float16, torch.bfloat16):
            A, B = torch.randn(20, 30).to(kind), torch.randn(30, 10).to(kind)
            got = trnblas.gemm(0.1, A, B)
            self.assertEqual(got.dtype, kind)
            torch.testing.assert_close(got.float(), 0.1 * A.float() @ B.float(), rtol=1e-2, atol=1e-2)
            self.assertEqual(trnblas.iamax(A), A.abs().reshape(-1).argmax().item())
            self.assertEqual((trnblas.dot(B, B).shape, trnblas.scal(2, A).shape), ((), A.shape))
        L = torch.linalg.cholesky(torch.eye(30) * 40 + torch.ones(30, 30))
        torch.testing.assert_close(L.T @ trnblas.trsm(1.0, L, B.float(), uplo="lower", trans=True), B.float(), rtol=1e-4, atol=1e-4)

    def test_the_emulator(self):
        text = """if True:
            import numpy as np, tdsl, tdsl.trnblas as t
            from tdsl import _trnsci
            t.set_backend("nki")
            r = np.random.default_rng(1)
            A, B, C, x = (r.standard_normal(s).astype("f4") for s in ((130, 70), (70, 150), (130, 150), (70,)))
            S = A[:70]
            near = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)
            near(t.gemm(2, A, B, 0.5, C), 2 * A @ B + 0.5 * C)
            near(t.syrk(2, A, trans=True), 2 * A.T @ A)
            near(t.symm(1, S, B), (np.triu(S) + np.triu(S, 1).T) @ B)
            near(t.trmm(1, S, B, uplo="lower", diag="unit"), (np.tril(S, -1) + np.eye(70)) @ B)
            near(t.batched_gemm(1, np.stack([A, -A]), np.stack([B, B])), np.stack([A @ B, -A @ B]))
            near(t.axpy(2, x, x), 3 * x)
            assert all(k.last.backend == "emulator" for p in _trnsci._programs.values() for k in p.kernels.values() if getattr(k, "last", None))
            try:
                t.trsm(1, S, B)
            except RuntimeError as error:
                print(error)"""
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", text], capture_output=True, text=True, env=dict(os.environ, TRNBLAS_USE_SIMULATOR="1"), check=False)
        self.assertEqual(done.stdout, "trsm (a solution of triangles; backend 'nki') has no NKI form, and one is required\n", done.stderr)


unittest.main()
