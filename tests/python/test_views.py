# SPDX-License-Identifier: Apache-2.0
"""Operands that are views: transposed, sliced, reversed, broadcast, windows. What is read where it lies, what is copied, and with which warning."""
import ctypes
import mmap
import os
import random
import sys
import unittest
import warnings
from unittest import mock

import numpy as np
import tdsl
from tdsl._einsum import _calls


def exact(rng, shape, dtype="f8"):
    """Whole numbers, whose sums are the same in any order."""
    return rng.integers(-4, 5, shape).astype(dtype)


def random_view(pick, rng, shape, dtype):
    """A view of the shape: axes in any order in memory, with gaps, backwards, or broadcast."""
    order = pick.sample(range(len(shape)), len(shape))
    steps = [pick.choice([1, 1, 1, 2, -1, -2, 0]) for _ in shape]
    sizes = [1 if step == 0 else n * abs(step) + pick.choice([0, 0, 1]) for n, step in zip(shape, steps)]
    a = exact(rng, [sizes[n] for n in order], dtype).transpose(np.argsort(order))
    a = a[tuple(slice(None) if step == 0 else slice(None, n * step, step) if step > 0 else slice(None, -n * abs(step) - 1, step)
                for n, step in zip(shape, steps))]
    return np.broadcast_to(a, shape)


class Views(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(3)
        tdsl._einsum._forget()  # how many sets of strides were seen

    def same(self, equation, *arrays, copies=0, **named):
        for door in (lambda: tdsl.einsum(equation, *arrays, **named)), (lambda: tdsl.expression(equation, *arrays)(*arrays, **named)):
            for _ in range(3):
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    got = door()
                np.testing.assert_array_equal(got, np.einsum(equation, *arrays))
                self.assertEqual([w.category for w in told], [tdsl.CopyWarning] * copies)
                self.assertTrue(got.flags.c_contiguous or "out" in named)

    def test_axes_in_another_order(self):
        a, t, b = exact(self.rng, (6, 4)), exact(self.rng, (3, 4, 5, 2)), exact(self.rng, (6, 4))
        for x in a.T, np.asfortranarray(a.T.copy()):
            self.same("ij,j->i", x, b[:, 0].copy())
            self.same("ij->", x)
            self.same("ij->ji", x)
            self.same("ij,jk->ik", x, b)
            self.same("ij,kj", x, x)
            self.same("...j,j", x, b[:, 0].copy())
        self.same("abcd,ae->dbce", t.transpose(2, 0, 3, 1), exact(self.rng, (5, 3)))
        self.same("ii->i", exact(self.rng, (5, 5)).T)
        self.same("ij,ij->ij", a.T, exact(self.rng, (1, 6)))

    def test_broadcast(self):
        x = exact(self.rng, 4)
        wide, tall = np.broadcast_to(x, (6, 4)), np.broadcast_to(x[:, None], (4, 6))
        self.same("ij,jk->ik", tall, exact(self.rng, (6, 3)))
        for equation in "ij->", "ij->i", "ij->j", "ij->ji", "ij,ij->j":
            self.same(equation, *[wide] * (1 + equation.count(",")))
        self.same("ii->i", np.broadcast_to(x, (4, 4)))
        self.same("ijk->k", np.broadcast_to(np.array(2.0), (3, 4, 5)))
        self.same("ij->j", np.broadcast_to(np.array(2, "i4"), (3, 4)))

    def test_slices(self):
        a, b = exact(self.rng, (12, 10)), exact(self.rng, (12, 10))
        for view in a[::2], a[:, :5], a[:, ::2], a[::-1], a[:, ::-1], a[::-3, 1::2], a.T[1::2], a[2:7, 3:8].T:
            tdsl._einsum._forget()
            self.same("ij->i", view)
            self.same("ij,ij->", view, view)
            self.same("ij,kj->ik", view, exact(self.rng, (3, view.shape[1])))
        windows = np.lib.stride_tricks.sliding_window_view(a[0], 3)
        self.same("ij,j->i", windows, exact(self.rng, 3))
        self.same("ii->", a[:4, :4])

    def test_after_some_sets_of_strides_extents_are_open(self):
        a, b = exact(self.rng, (12, 10)), exact(self.rng, (9, 12, 10))
        compiled = set()
        for n in range(1, 9):
            with warnings.catch_warnings():
                warnings.simplefilter("error", tdsl.CopyWarning)
                np.testing.assert_array_equal(tdsl.einsum("ij->i", a[:, :n]), a[:, :n].sum(1))
                np.testing.assert_array_equal(tdsl.einsum("ij->i", a[:n].T), a[:n].sum(0))
                np.testing.assert_array_equal(tdsl.einsum("ij,jk->ik", a[:n, :n], a[-n:, 3:]), a[:n, :n] @ a[-n:, 3:])
                np.testing.assert_array_equal(tdsl.einsum("ijk,jk->i", b[::-1, :n, 1:n + 2], a[:n, 1:n + 2]), np.einsum("ijk,jk->i", b[::-1, :n, 1:n + 2], a[:n, 1:n + 2]))
            compiled.add(len(tdsl._einsum._sources))
        self.assertLess(len(compiled), 8)

    def test_views_without_a_last_axis_in_order_are_copied_then(self):
        a = exact(self.rng, (12, 20))
        for n in range(1, 9):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                np.testing.assert_array_equal(tdsl.einsum("ij->i", a[:, : 2 * n + 2: 2]), a[:, : 2 * n + 2: 2].sum(1))
            self.assertEqual(len(told), 1 if n > tdsl._einsum._MOST_STRIDES else 0)

    def test_what_is_copied_is_told_of(self):
        field = np.zeros(5, [("x", "i1"), ("y", "f8")])
        field["y"] = 1, 2, 3, 4, 5
        self.same("i,i->i", field["y"], np.ones(5), copies=1)
        pair = np.zeros(5, [("x", "f4"), ("y", "f8")])  # strides of 12 bytes
        self.same("i->", pair["y"], copies=1)
        self.same("ij->i", exact(self.rng, (4, 4), ">f8"), copies=1)
        self.same("ij->i", exact(self.rng, (8, 4), "f2")[::2], copies=1)

    def test_kernels(self):
        p = tdsl.compile("""kernel product(A: f64[m, k], B: f64[k, n]) -> (C: f64[m, n]) { C[i,j] = A[i,p] * B[p,j]; }
            kernel two(x: f64[n, m], s: f64) -> (y: f64[n - 4, m], t: f64) { y[i,j] = x[i,j]*s + x[i + 4,j]; t = sum[i,j](x[i,j]); }
            kernel fixed(A: f64[m, 5]) -> (C: f64[m]) { C[i] = sum[p](A[i,p]); }
            kernel changed(A: f64[m, n], C: inout f64[m]) { C[i] = C[i] + sum[p](A[i,p]); }
            kernel lookup(W: f64[v, e], t: i64[n]) -> (R: f64[n, e]) { R[n,e] = W[t[n],e]; }
            kernel promised(S: f64[n, n] symmetric(0, 1), x: f64[n]) -> (y: f64[n]) { y[i] = S[i,j] * x[j]; }""")
        a, b, x, y = (exact(self.rng, s) for s in ((8, 6), (6, 5), (12, 7), (5, 9)))
        with warnings.catch_warnings():
            warnings.simplefilter("error", tdsl.CopyWarning)
            for _ in range(3):
                for A in a, np.asfortranarray(a), np.hstack([a, a])[:, :6], np.vstack([a, a])[15:7:-1], np.broadcast_to(a[0], (8, 6)):
                    for B in b, np.asfortranarray(b):
                        np.testing.assert_array_equal(p.product(A, B), A @ B)
                        np.testing.assert_array_equal(p.product(B=B, A=A, out=np.empty((8, 5))), A @ B)
                for X in x, np.asfortranarray(x), np.hstack([x, x])[:, 3:10]:
                    got = p.two(X, 2.0)
                    np.testing.assert_array_equal(got.y, 2 * X[:8] + X[4:])
                    self.assertEqual(got.t, X.sum())
                np.testing.assert_array_equal(p.fixed(y.T), y.sum(0))
        memory = exact(self.rng, (16, 8))
        for A, out in (memory[:8].T[:6].T, memory[8:, :5]), (memory[:6].T, memory[2:10, :5]):
            wanted = A @ b
            try:
                np.testing.assert_array_equal(p.product(A, b, out=out), wanted)
            except tdsl.OverlapError:
                self.assertTrue(np.may_share_memory(A, out))
        with self.assertRaisesRegex(tdsl.ShapeError, "axis 0 of 'B' is 6, not 8"):
            p.product(a.T, b)
        for call in (lambda: p.changed(y.T, np.ones(9))), (lambda: p.lookup(y.T, np.array([8, 0]))), (lambda: p.promised(np.ones((4, 8))[:, ::2], np.ones(4))):
            with self.assertWarns(tdsl.CopyWarning):
                call()
        np.testing.assert_array_equal(p.lookup(y.T, np.array([8, 0])), y.T[[8, 0]])
        with self.assertRaises(tdsl.PositionError):
            p.lookup(y.T, np.array([9]))

    def test_types(self):
        for t in "f8", "f4", "f2", "i8", "i4", "i2", "u4", "c16", "c8", "?":
            a = exact(self.rng, (6, 4), t)
            wanted = np.einsum("ij,kj->ik", a.T, a.T)
            with warnings.catch_warnings():
                warnings.simplefilter("error", tdsl.CopyWarning)
                for _ in range(2):
                    got = tdsl.einsum("ij,kj->ik", a.T, a.T)
                    self.assertEqual(got.dtype, wanted.dtype)
                    np.testing.assert_array_equal(got, wanted)

    def test_results_in_another_order(self):
        a, b = exact(self.rng, (4, 4)), exact(self.rng, (4, 4))
        memory = exact(self.rng, (8, 4))
        for out in np.empty((4, 4), order="F"), np.empty((4, 8))[:, ::2], memory[4:].T, memory[::-2]:
            for _ in range(2):
                self.same("ij,jk->ik", a, b.T, out=out)
        for x, out in (memory[:4], memory[2:6].T), (memory[:4].T, memory[1:5]), (memory[:4].T, memory[:4].T), (memory[::2].T, memory[1::2]), (memory[3::-1], memory[:4]):
            for _ in range(2):
                wanted = x @ a
                tdsl.einsum("ij,jk->ik", x, a, out=out)
                np.testing.assert_array_equal(out, wanted)
        out = np.asfortranarray(a)
        tdsl.einsum("ij,jk->ik", a.T, b, out=out, alpha=2, beta=-1)
        np.testing.assert_array_equal(out, 2 * a.T @ b - a)
        wrong = np.empty((3, 4)).T
        with self.assertRaises(tdsl.ShapeError):
            tdsl.einsum("ij,jk->ik", a[:3].T[:3], b[:3, :3].T, out=wrong)

    def test_mistakes_are_told_of_the_string_as_it_was_given(self):
        a = exact(self.rng, (3, 4))
        for equation in "ij,jk->ix", "ij,kj->ik", "ij", "ij,jk->i?", "ij.,jk":
            said = []
            for x in a.T, np.ascontiguousarray(a.T):
                with self.assertRaises(tdsl.CompileError) as raised:
                    tdsl.einsum(equation, x, np.ones((4, 2)))
                said.append(str(raised.exception))
            self.assertEqual(*said)

    def test_without_a_c_compiler(self):
        a = exact(self.rng, (5, 6))
        p = tdsl.compile("kernel f(A: f64[m, n]) -> (R: f64[m]) { R[i] = sum[j](A[i,j]); }")
        with mock.patch.dict(os.environ, {"TDSL_CC": "no-such-compiler"}), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for x in a.T, a[::2], a[:, 1:4], np.broadcast_to(a[0], (3, 6)), a[::-1]:
                np.testing.assert_array_equal(tdsl.einsum("ij->i", x), x.sum(1))
                np.testing.assert_array_equal(p.f(x), x.sum(1))
        tdsl._einsum._forget()

    def test_open_expressions(self):
        f = tdsl.expression("ij,jk->ik", (None, 4), (4, None))
        a = exact(self.rng, (4, 9))
        for n in range(1, 5):
            np.testing.assert_array_equal(f(a[:, :n].T, a[:, n:]), a[:, :n].T @ a[:, n:])
        with self.assertRaises(tdsl.ShapeError):
            f(a, a)

    def test_prepared_views_of_other_strides(self):
        base = exact(self.rng, (40, 40))
        before = _calls._count()
        tdsl.einsum("ij,jk->ki", base, base)
        for _ in range(2):
            for view in base[:6, :6], base[:6, :6].T, base[:12:2, :6], base[5::-1, :6], np.ascontiguousarray(base[:6, :6]):
                np.testing.assert_array_equal(tdsl.einsum("ij,jk->ki", view, view), (view @ view).T)
        self.assertLessEqual(_calls._count() - before, 6)

    @unittest.skipUnless(sys.platform == "linux", "mprotect of Linux")
    def test_nothing_is_read_beyond_a_view(self):
        """The last element lies before a page that cannot be read, the first behind one."""
        page, libc = mmap.PAGESIZE, ctypes.CDLL(None)
        libc.mprotect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        for columns, first in ((37, 20), (130, 33)):
            for most in 0, 4:  # with open extents, and with numbers
                tdsl._einsum._forget()
                tdsl._einsum._MOST_STRIDES = most
                self.addCleanup(setattr, tdsl._einsum, "_MOST_STRIDES", 4)
                need = (23 * columns + first) * 8
                inner = -(-need // page) * page
                memory = mmap.mmap(-1, inner + 2 * page)
                start = np.frombuffer(memory, "u1").ctypes.data
                for guard in start, start + page + inner:
                    self.assertEqual(libc.mprotect(guard, page, 0), 0)
                for offset in page, page + inner - need:
                    flat = np.frombuffer(memory, "f8", need // 8, offset)
                    flat[...] = np.arange(need // 8) % 7
                    view = np.lib.stride_tricks.as_strided(flat, (24, first), (8 * columns, 8))
                    for x in view, view.T, view[::-1], view[:, ::-1], view[::2, ::3]:
                        with warnings.catch_warnings():
                            warnings.simplefilter("ignore", tdsl.CopyWarning)
                            np.testing.assert_array_equal(tdsl.einsum("ij->i", x), x.sum(1))
                            np.testing.assert_array_equal(tdsl.einsum("ij,kj->ik", x, x), x @ x.T)
                            np.testing.assert_array_equal(tdsl.einsum("ij->ji", x), x.T)

    def test_any_views(self):
        pick = random.Random(7)
        strings = ["ij,jk->ik", "ij,ij->j", "ijk,kj->i", "ij->ij", "iji->j", "ij,kj,k->i", "...i,...i->...", "ij,jk", "abc->bca", "i,j->ij", "ijk->", "ij,i,i->j"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tdsl.CopyWarning)
            for n in range(80):
                tdsl._einsum._forget()
                equation = pick.choice(strings)
                sizes = {label: pick.choice([1, 2, 3, 4]) for label in "abcijk"}
                shapes = [tuple(sizes[label] for label in term.replace("...", "ab")) for term in equation.split("->")[0].split(",")]
                arrays = [random_view(pick, self.rng, shape, pick.choice(["f8", "f8", "f4", "i4"])) for shape in shapes]
                if n % 2:  # with open extents
                    tdsl._einsum._MOST_STRIDES = 0
                    self.addCleanup(setattr, tdsl._einsum, "_MOST_STRIDES", 4)
                else:
                    tdsl._einsum._MOST_STRIDES = 4
                for _ in range(2):
                    with self.subTest(n, equation=equation, strides=[a.strides for a in arrays], shapes=shapes):
                        np.testing.assert_array_equal(tdsl.einsum(equation, *arrays), np.einsum(equation, *arrays))


unittest.main()
