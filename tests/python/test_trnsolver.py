# SPDX-License-Identifier: Apache-2.0
"""tdsl.trnsolver against NumPy. With torch where it is installed."""
import importlib.util
import unittest

import numpy as np
import tdsl
import tdsl.trnsolver as trnsolver

RANDOM = np.random.default_rng(1)
EPS = {"f4": 1.2e-7, "f8": 2.2e-16}


def normal(dtype, *shape):
    return RANDOM.standard_normal(shape).astype(dtype)


def positive(dtype, n):
    A = normal("f8", n, n)
    return (A @ A.T + n * np.eye(n)).astype(dtype)


class Case(unittest.TestCase):
    def near(self, got, want, dtype, factor=50):
        want = np.asarray(want)
        self.assertEqual(np.shape(got), want.shape)
        self.assertEqual(got.dtype, np.dtype(dtype))
        size = max(1.0, float(abs(want).max(initial=0)))
        self.assertLessEqual(float(abs(got - want).max(initial=0)) / size, factor * EPS[dtype] * max(want.shape))

    def sizes(self, *sizes):
        for dtype in ("f4", "f8"):
            for n in sizes:
                with self.subTest(dtype=dtype, n=n):
                    yield dtype, n


class Triangles(Case):
    def test_positive_definite(self):
        for dtype, n in self.sizes(1, 2, 5, 64, 130):
            A, B = positive(dtype, n), normal(dtype, n, 3)
            L = trnsolver.cholesky(A)
            self.near(L @ L.T, A, dtype)
            np.testing.assert_array_equal(L, np.tril(L))
            np.testing.assert_array_equal(trnsolver.cholesky(A, upper=True), L.T)
            self.near(trnsolver.solve_spd(A, B), np.linalg.solve(A.astype("f8"), B), dtype)
            self.near(trnsolver.solve_spd(A, B[:, 0].copy()), np.linalg.solve(A.astype("f8"), B[:, 0]), dtype)
            self.near(trnsolver.inv_spd(A), np.linalg.inv(A.astype("f8")), dtype)
            X = trnsolver.inv_sqrt_spd(A)
            self.near(X @ A @ X, np.eye(n), dtype, 200)
            Y, steps, left = trnsolver.inv_sqrt_spd_ns(A, max_iters=40, tol=1e-6)
            self.near(Y @ A @ Y, np.eye(n), dtype, 1e12 if dtype == "f8" else 2000)
            self.assertLess(steps, 40)
            self.assertLess(left, 1e-6)

    def test_refinement(self):
        Q = np.linalg.qr(normal("f8", 32, 32))[0]
        A = ((Q * np.logspace(0, 5, 32)) @ Q.T).astype("f4")
        A, b = (A + A.T) / 2, normal("f4", 32)
        left = [np.linalg.norm(A.astype("f8") @ trnsolver.solve_spd(A, b, iterative_refinement=again) - b) for again in (False, True)]
        self.assertLessEqual(left[1], left[0])

    def test_not_positive_definite(self):
        A = np.diag([1.0, 2.0, -1.0, 3.0])
        for call in (trnsolver.cholesky, trnsolver.inv_spd, lambda a: trnsolver.solve_spd(a, a), lambda a: trnsolver.eigh_generalized(a, a)):
            with self.assertRaisesRegex(ValueError, "its leading minor of order 3 is not"):
                call(A)
        with self.assertRaisesRegex(ValueError, "block 2: A is not positive definite"):
            trnsolver.block_jacobi_preconditioner(A, 2)


class General(Case):
    def test_lu(self):
        for dtype, n in self.sizes(1, 2, 5, 47, 48, 49, 150):
            A, B = normal(dtype, n, n), normal(dtype, n, 4)
            P, L, U = trnsolver.lu(A)
            self.near(P @ L @ U, A, dtype)
            np.testing.assert_array_equal(L, np.tril(L, -1) + np.eye(n))
            np.testing.assert_array_equal(U, np.triu(U))
            self.assertLessEqual(abs(L).max(), 1)
            X = trnsolver.solve(A, B)
            self.near(A.astype("f8") @ X - B, np.zeros_like(X), "f8", EPS[dtype] / EPS["f8"] * 100 * max(1, abs(X).max()))
        for wrong in (np.zeros((3, 3)), np.ones((3, 3))):
            with self.assertRaisesRegex(ValueError, "A is singular"):
                trnsolver.solve(wrong, np.ones(3))

    def test_qr(self):
        for m, n in ((8, 6), (6, 6), (4, 9), (200, 50)):
            for dtype in ("f4", "f8"):
                A = normal(dtype, m, n)
                Q, R = trnsolver.qr(A)
                self.near(Q @ R, A, dtype)
                self.near(Q.T @ Q, np.eye(min(m, n)), dtype)
                np.testing.assert_array_equal(R, np.triu(R))
        with self.assertRaisesRegex(ValueError, "numpy.linalg.qr"):
            trnsolver.qr(np.ones((5, 2)))

    def test_svd(self):
        for m, n in ((1, 1), (8, 6), (5, 9), (30, 30), (70, 33)):
            for dtype in ("f4", "f8"):
                A = normal(dtype, m, n)
                U, s, Vh = trnsolver.svd(A)
                self.near(s, np.linalg.svd(A.astype("f8"))[1], dtype)
                self.near(U * s @ Vh, A, dtype)
                self.near(U.T @ U, np.eye(min(m, n)), dtype)
                self.near(Vh @ Vh.T, np.eye(min(m, n)), dtype)
                U, _, Vh = trnsolver.svd(A, full_matrices=True)
                self.near(U.T @ U, np.eye(m), dtype)
                self.near(Vh @ Vh.T, np.eye(n), dtype)
                self.near(trnsolver.pinv(A), np.linalg.pinv(A.astype("f8")), dtype, 2000)
        low = np.outer(np.arange(1.0, 6), np.arange(3.0, 7))
        U, s, Vh = trnsolver.svd(low)
        self.near(U.T @ U, np.eye(4), "f8")
        self.near(s, [np.linalg.norm(low), 0, 0, 0], "f8")
        self.near(trnsolver.pinv(low), np.linalg.pinv(low), "f8", 1000)
        self.near(trnsolver.svd(np.zeros((3, 2)))[1], [0, 0], "f8")


class Eigenvalues(Case):
    def test_eigh(self):
        for dtype, n in self.sizes(1, 2, 3, 8, 31, 64):
            A = normal(dtype, n, n)
            A = A + A.T
            values, vectors = trnsolver.eigh(A)
            self.near(values, np.linalg.eigvalsh(A.astype("f8")), dtype)
            self.near(A @ vectors - vectors * values, np.zeros_like(A), dtype, 1000)
            self.near(vectors.T @ vectors, np.eye(n), dtype)
        for A in (np.eye(4), np.diag([4.0, 1, 3, 2, 0]), np.zeros((3, 3)), np.ones((6, 6)), np.diag([1.0, -1, 1, -1])):
            values, vectors = trnsolver.eigh(A)
            self.near(values, np.linalg.eigvalsh(A), "f8")
            self.near(vectors * values @ vectors.T, A, "f8")
        with self.assertRaisesRegex(ValueError, "infinities or NaN"):
            trnsolver.eigh(np.array([[1.0, np.nan], [np.nan, 1]]))

    def test_generalized(self):
        for dtype, n in self.sizes(2, 9, 40):
            A, B = normal(dtype, n, n), positive(dtype, n)
            A = A + A.T
            values, X = trnsolver.eigh_generalized(A, B)
            self.near(A @ X, B @ X * values, dtype, 500)
            self.near(X.T @ B @ X, np.eye(n), dtype, 500)


class Iterations(Case):
    def test_conjugate_gradients(self):
        A = positive("f8", 60) + np.diag(np.arange(60.0) ** 2)
        b = normal("f8", 60)
        want = np.linalg.solve(A, b)
        steps = {}
        for name, M in (("none", None), ("jacobi", trnsolver.jacobi_preconditioner(A)), ("blocks", trnsolver.block_jacobi_preconditioner(A, 16)),
                        ("ssor", trnsolver.ssor_preconditioner(A, 1.2)), ("matrix", np.linalg.inv(A))):
            x, steps[name], left = trnsolver.cg(A, b, tol=1e-10, M=M)
            np.testing.assert_allclose(x, want, rtol=1e-6, atol=1e-8)
            self.assertLess(left, 1e-10)
        self.assertLess(max(steps["jacobi"], steps["blocks"], steps["ssor"]), steps["none"])
        self.assertLessEqual(steps["matrix"], 2)
        x, again, _ = trnsolver.cg(lambda v: A @ v, b, x0=want, tol=1e-8)
        self.assertEqual(again, 1)
        self.assertEqual(trnsolver.cg(A, np.zeros(60))[1:], (0, 0.0))

    def test_gmres(self):
        A, b = normal("f8", 50, 50) + 10 * np.eye(50), normal("f8", 50)
        for restart in (10, 50, 80):
            x, products, left = trnsolver.gmres(A, b, tol=1e-9, restart=restart)
            np.testing.assert_allclose(x, np.linalg.solve(A, b), rtol=1e-5, atol=1e-7)
            self.assertLess(left, 1e-8)
            self.assertGreater(products, 5)

    def test_what_is_refused(self):
        A = np.eye(3)
        for call in (lambda: trnsolver.ssor_preconditioner(A, 2.0), lambda: trnsolver.jacobi_preconditioner(np.zeros((2, 2))), lambda: trnsolver.cholesky(np.ones((2, 3))),
                     lambda: trnsolver.solve(A, np.ones(4)), lambda: trnsolver.eigh(np.ones(3)), lambda: trnsolver.svd(np.ones(3))):
            with self.assertRaises(ValueError):
                call()
        for wrong in (A.astype(int), A + 1j):
            with self.assertRaises(tdsl.DtypeError):
                trnsolver.solve(wrong, wrong)


class Tensors(Case):
    @unittest.skipIf(importlib.util.find_spec("torch") is None, "torch is not installed")
    def test_torch(self):
        import torch
        A = torch.from_numpy(positive("f4", 20))
        for kind in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
            L = trnsolver.cholesky(A.to(kind))
            self.assertEqual(L.dtype, kind)
            torch.testing.assert_close(L.double() @ L.double().T, A.double(), rtol=2e-2, atol=0.5)
            values, vectors = trnsolver.eigh(A.to(kind))
            self.assertEqual((values.dtype, vectors.dtype), (kind, kind))
        x, _, _ = trnsolver.cg(lambda v: A @ v, torch.ones(20), M=trnsolver.jacobi_preconditioner(A))
        torch.testing.assert_close(A @ x, torch.ones(20), rtol=1e-3, atol=1e-3)


unittest.main()
