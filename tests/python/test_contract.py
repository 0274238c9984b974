# SPDX-License-Identifier: Apache-2.0
"""tdsl.contract, tensordot and transpose beside NumPy's. What needs opt_einsum itself is in test_hook_opt_einsum.py."""
import subprocess
import sys
import unittest

import numpy as np
import tdsl

A, B, C = (np.random.default_rng(k).random(shape) for k, shape in enumerate([(5, 6), (6, 7), (7, 3)]))


class Contract(unittest.TestCase):
    def test_it_is_the_product(self):
        for optimize in (True, False, None, "auto", "optimal", "greedy", "tdsl", "bisect", [(1, 2), (0, 1)], ["einsum_path", (0, 1), (0, 1)][1:]):
            with self.subTest(optimize):
                np.testing.assert_allclose(tdsl.contract("ij,jk,kl->li", A, B, C, optimize=optimize), (A @ B @ C).T)

    def test_labels_may_be_anything(self):
        got = tdsl.contract(A, ["site", "bond"], B, ["bond", "x"], C, ["x", "y"], ["y", "site"])
        np.testing.assert_allclose(got, (A @ B @ C).T)
        np.testing.assert_allclose(tdsl.contract(A, [Ellipsis, "p"], B, ["p", "q"], [Ellipsis, "q"]), A @ B)
        with self.assertRaises(TypeError):
            tdsl.contract(A, [1, "b"], B, ["b", 2])

    def test_memory_is_limited(self):
        x = np.random.default_rng(3).random((4, 4, 4, 4))
        want = np.einsum("abcd,cdef,efgh,ghij->abij", x, x, x, x, optimize=True)
        for limit in (256, 64, "max_input", -1, None):
            np.testing.assert_allclose(tdsl.contract("abcd,cdef,efgh,ghij->abij", x, x, x, x, memory_limit=limit), want)
        for limit in (0, -2, "all"):
            with self.assertRaises(tdsl.ArgumentError):
                tdsl.contract("ij,jk,kl", A, B, C, memory_limit=limit)

    def test_a_limit_reaches_the_compiler(self):
        with self.assertRaises(tdsl.CompileError):
            tdsl.contract("ij,jk,kl->il", A, B, C, optimize=[(0, 1), (0, 1)], memory_limit=20)

    def test_out_and_types(self):
        out = np.empty((5, 3))
        self.assertIs(tdsl.contract("ij,jk,kl->il", A, B, C, out=out), out)
        np.testing.assert_allclose(out, A @ B @ C)
        self.assertEqual(tdsl.contract("ij,jk", A, B, dtype="f4", casting="same_kind").dtype, np.float32)

    def test_other_backends_are_refused(self):
        with self.assertRaises(tdsl.ArgumentError):
            tdsl.contract("ij,jk", A, B, backend="torch")


class Tensordot(unittest.TestCase):
    def test_it_is_numpys(self):
        x, y = np.random.default_rng(1).random((3, 4, 5)), np.random.default_rng(2).random((5, 4, 3))
        for axes in (0, 1, ([1], [1]), ([1, 2], [1, 0]), ((-2, 0), (-2, 2)), (0, 2), ([], [])):
            got = tdsl.tensordot(x, y, axes)
            np.testing.assert_allclose(got, np.tensordot(x, y, axes))
            self.assertTrue(got.flags.c_contiguous)
        np.testing.assert_allclose(tdsl.tensordot(x, y.transpose(2, 1, 0).copy(), 3), (x * y.T).sum())

    def test_wrong_axes_are_refused(self):
        for axes in (3, -1, ([0], [0, 1]), ([2], [0]), ([0, 0], [0, 1])):
            with self.assertRaises(tdsl.ShapeError):
                tdsl.tensordot(A, B, axes)

    def test_transpose(self):
        x = np.arange(24.0).reshape(2, 3, 4)
        for axes in (None, (0, 1, 2), (2, 0, 1), (-1, 0, 1)):
            got = tdsl.transpose(x, axes)
            np.testing.assert_array_equal(got, np.transpose(x, axes))
            self.assertTrue(got.flags.c_contiguous)
        for axes in ((0, 1), (0, 0, 1), (0, 1, 3)):
            with self.assertRaises(tdsl.ShapeError):
                tdsl.transpose(x, axes)


class Import(unittest.TestCase):
    def test_nothing_large_is_imported(self):
        others = "numpy", "opt_einsum", "cotengra", "torch", "jax", "pyscf", "ml_dtypes"
        said = subprocess.run([sys.executable, "-c", f"import sys, tdsl; print([m for m in {others} if m in sys.modules])"],
                              capture_output=True, text=True, check=True).stdout
        self.assertEqual(said, "[]\n")


unittest.main()
