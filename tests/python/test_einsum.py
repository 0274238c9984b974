# SPDX-License-Identifier: Apache-2.0
"""tdsl.einsum beside numpy.einsum: types, layouts, scalars, empty arrays, outputs, errors."""
import threading
import unittest
import warnings

import numpy as np
import tdsl
from tdsl import _equation

TYPES = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "c16", "c8", "?"]


def array(dtype, *shape):
    """Small whole numbers, exact in every type, without zeros only."""
    n = int(np.prod(shape))
    a = (np.arange(n) * 7 + 3) % 5
    return (a % 2 if dtype == "?" else a).astype(dtype).reshape(shape)


class Einsum(unittest.TestCase):
    def same(self, got, wanted):
        self.assertEqual(np.shape(got), np.shape(wanted))
        self.assertEqual(got.dtype, wanted.dtype)
        self.assertIs(type(got), type(wanted))
        np.testing.assert_array_equal(got, wanted)

    def both(self, *arguments, **named):
        self.same(tdsl.einsum(*arguments, **named), np.einsum(*arguments, **named))

    def test_every_type_gives_numpys_values_and_type(self):
        for t in TYPES:
            with self.subTest(t):
                self.both("ij,jk->ki", array(t, 2, 3), array(t, 3, 4))

    def test_types_that_c_wraps_wrap_as_numpy_does(self):
        for t in "u1", "i1", "u4", "u8", "i8":
            big = np.array([np.iinfo(t).max, 3, np.iinfo(t).min], t)
            self.both("i,i", big, big)

    def test_types_promote(self):
        a, b = array("f4", 2, 3), array("i4", 3, 4)
        self.both("ij,jk->ki", a, b)
        self.both("ij,jk->ki", a, array("f4", 3, 4), dtype="f8")
        self.both("ij,jk->ki", a.astype("f8"), b, dtype="f4", casting="same_kind")
        with self.assertRaises(tdsl.DtypeError) as raised:
            tdsl.einsum("ij,jk", a, array("f8", 3, 4), dtype="f4")
        self.assertEqual(raised.exception.argument, 1)
        self.assertIsInstance(raised.exception, TypeError)

    def test_a_name_of_the_language_is_a_type(self):
        self.same(tdsl.einsum("i->", array("f4", 5), dtype="c128"), np.einsum("i->", array("f4", 5), dtype="c16"))

    def test_bf16_is_what_files_have(self):
        bits = lambda a: (np.asarray(a, "f4").view("u4") >> 16).astype("u2").view("V2")
        got = tdsl.einsum("i,i->i", bits([1, 2, 3]), bits([2, 4, 0.5]))
        np.testing.assert_array_equal(got.view("u2"), bits([2, 8, 1.5]).view("u2"))
        out = bits([0, 0, 0])
        tdsl.einsum("i,i->i", bits([1, 2, 3]), bits([2, 4, 0.5]), out=out)
        np.testing.assert_array_equal(out.view("u2"), bits([2, 8, 1.5]).view("u2"))

    def test_strings_of_all_forms(self):
        a, b, c = array("f8", 2, 3), array("f8", 3, 4), array("f8", 4, 4)
        self.both("ij,jk", a, b)
        self.both(" ij , jk -> ki ", a, b)
        self.both("...j,jk->k...", a, b)
        self.both("ii->i", c)
        self.both("ii", c)
        self.both("ij,jk,kk->i", a, b, c)
        self.both(",ij->ji", array("f8"), a)
        self.both("ij,ij->ij", a, array("f8", 1, 3))
        self.both(a, [0, 1], b, [1, 2], [2, 0])
        self.both(a, [27, 1], b, [1, 3])
        self.both(a, [Ellipsis, 1], b, [1, 2], [2, Ellipsis])
        self.same(tdsl.einsum(a, [0, 100], b, [100, 5]), a @ b)

    def test_scalars_empty_arrays_and_lists(self):
        self.both(",->", np.float32(2), np.array(3, "f4"))
        self.both("ij,jk->ik", array("f8", 2, 0), array("f8", 0, 3))
        self.both("ij,jk->ik", array("f8", 0, 2), array("f8", 2, 3))
        self.both("i,i", [1, 2, 3], [4, 5, 6])

    def test_new_shapes_of_one_string(self):
        for n in range(1, 7):
            self.both("ab,bc,c->a", array("f8", 2, n), array("f8", n, 3), array("f8", 3))
            self.both("ab,bc,c->a", array("f8", n, n), array("f8", n, 1), array("f8", 5))

    def test_what_is_read_may_be_read_only_and_the_same(self):
        a = array("f8", 4, 4)
        a.flags.writeable = False
        self.both("ij,jk->ik", a, a)

    def test_out_is_written_whatever_it_is(self):
        a, b = array("f8", 4, 4), array("f8", 4, 4)
        wanted = a @ b
        for out in np.empty((4, 4)), np.empty((4, 4), order="F"), np.empty((8, 4))[::2], np.empty((4, 4), "c16"), np.empty((4, 4), ">f8"):
            self.assertIs(tdsl.einsum("ij,jk->ik", a, b, out=out), out)
            np.testing.assert_array_equal(out, wanted)
        out = np.empty(())
        self.assertIs(tdsl.einsum("ij,ji->", a, b, out=out), out)
        self.assertEqual(out, np.einsum("ij,ji->", a, b))

    def test_out_may_overlap_an_operand(self):
        for pick in (lambda m: m[:4]), (lambda m: m[1:5]), (lambda m: m[3::-1]):
            memory = array("f8", 6, 4)
            wanted = memory[:4] @ memory[:4]
            tdsl.einsum("ij,jk->ik", memory[:4], memory[:4], out=pick(memory))
            np.testing.assert_array_equal(pick(memory), wanted)

    def test_alpha_and_beta(self):
        a, b = array("f8", 2, 3), array("f8", 3, 2)
        np.testing.assert_array_equal(tdsl.einsum("ij,jk->ik", a, b, alpha=2), 2 * a @ b)
        for order in "CF":
            out = np.ones((2, 2), order=order)
            tdsl.einsum("ij,jk->ik", a, b, out=out, alpha=2, beta=3)
            np.testing.assert_array_equal(out, 2 * a @ b + 3)
        out = np.full((2, 2), np.nan)
        tdsl.einsum("ij,jk->ik", a, b, out=out, beta=0)
        np.testing.assert_array_equal(out, a @ b)
        with self.assertRaises(tdsl.ArgumentError):
            tdsl.einsum("ij,jk->ik", a, b, beta=1)
        with self.assertRaises(tdsl.DtypeError):
            tdsl.einsum("ij,jk->ik", a, b, alpha=1j)

    def test_the_order_may_be_said(self):
        a, b, c = array("f8", 2, 3), array("f8", 3, 4), array("f8", 4, 5)
        for optimize in True, False, "greedy", "optimal", [(1, 2), (0, 1)], ["einsum_path", (0, 1), (0, 1)], tdsl.path("ij,jk,kl", a, b, c):
            self.same(tdsl.einsum("ij,jk,kl", a, b, c, optimize=optimize), a @ b @ c)

    def test_errors_say_what_and_where(self):
        a = array("f8", 2, 3)
        cases = [(tdsl.CompileError, "ij,jk->ix", (a, array("f8", 3, 4))), (tdsl.CompileError, "ij,jk", (a, a)),
                 (tdsl.CompileError, "ij", (a, a)), (tdsl.CompileError, "i...->i", (a,)), (tdsl.CompileError, "ijk", (a,)),
                 (tdsl.ArgumentError, "ij", ()), (TypeError, "ij", (a.astype(object),)), (TypeError, "i", (np.array(["x"]),))]
        for kind, equation, arrays in cases:
            with self.subTest(equation), self.assertRaises(kind):
                tdsl.einsum(equation, *arrays)
        with self.assertRaises(ValueError) as raised:
            tdsl.einsum("ij,jk->ix", a, array("f8", 3, 4))
        e = raised.exception
        self.assertEqual((e.code, e.line, e.column), ("E0304", 1, 9))
        self.assertIn("\n      |         ^", e.text)
        with self.assertRaises(tdsl.ShapeError):
            tdsl.einsum("ij->i", a, out=np.empty(3))
        read_only = np.empty(2)
        read_only.flags.writeable = False
        with self.assertRaises(tdsl.ArgumentError):
            tdsl.einsum("ij->i", a, out=read_only)
        with self.assertRaises(TypeError):
            tdsl.einsum("ij->i", a, out=np.empty(2, "i4"))

    def test_open_extents_are_planned_for_the_shapes_seen(self):
        shapes = ((300, 64), (64, 7))
        opened = _equation.open_shapes("ij,jk->ik", shapes)
        planned = _equation.planned_shapes(opened, [((20, 5), (5, 7)), shapes])
        self.assertEqual(_equation.arguments("ij,jk->ik", opened, planned), ["-e", "ij,jk->ik", "--shape=?~256x?~64", "--shape=?~64x?~8"])
        self.assertEqual(_equation.planned_shapes(((None, 1),), [((0, 1),)]), ((1, 1),))

    def test_an_expression_has_open_extents(self):
        f = tdsl.expression("ij,jk->ik", (None, 3), (3, None), dtype="f4")
        for n in 1, 5:
            a, b = array("f4", n, 3), array("f4", 3, 2)
            self.same(f(a, b), a @ b)
        with self.assertRaises(tdsl.ShapeError):
            f(array("f4", 2, 2), array("f4", 2, 2))
        with self.assertRaises(tdsl.DtypeError):
            f(array("f8", 2, 3), array("f8", 3, 2))

    def test_threads_of_the_caller_and_of_a_call(self):
        wrong = []
        a = array("f8", 40, 50)
        wanted = np.einsum("ij,kj->ik", a, a)

        def work():
            for _ in range(50):
                if not np.array_equal(tdsl.einsum("ij,kj->ik", a, a), wanted):
                    wrong.append(1)
        workers = [threading.Thread(target=work) for _ in range(8)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
        self.assertEqual(wrong, [])
        self.same(tdsl.einsum("ij,kj->ik", a, a, threads=2), wanted)


unittest.main()
