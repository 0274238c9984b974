# SPDX-License-Identifier: Apache-2.0
"""Prepared calls: every kind of array, each beside a call that is prepared for its shape and type; results, threads, errors, warnings.

Run twice: with the C module where it is built, and with TDSL_NO_MODULE=1 by ctypes.
"""
import inspect
import os
import threading
import time
import unittest
import warnings

import numpy as np
import tdsl
from tdsl import _calls

TEXT = """
dim times;
kernel product(A: f64[m, k], B: f64[k, n]) -> (C: f64[m, n]) { C[i,j] = A[i,p] * B[p,j]; }
kernel gemm(A: f64[m, k], B: f64[k, n], C: inout f64[m, n], alpha: f64, beta: f64) {
    C[i,j] = alpha * A[i,p] * B[p,j] + beta * C[i,j];
}
kernel single(A: f32[m], s: f32, t: i32) -> (R: f32[m], S: f32) { R[i] = s * A[i] + f32(t); S = sum[i](A[i]); }
kernel large(A: f64[m, n], B: f64[n, m]) -> (R: f64[m]) {
    T[i,k] = A[i,j] * B[j,k];
    S[i,k] = exp(T[i,k]) * T[k,i];
    U[i,k] = S[i,j] * S[j,k];
    R[i] = sum[k](U[i,k] * S[k,i]);
}
kernel short(x: i8[n], p: u16[n], t: i16) -> (R: i32[n], S: u8[n]) { R[i] = x[p[i]] * t; S[i] = u8(x[i] - 1); }
kernel quarter(x: f8e4m3[n], y: f8e5m2[n]) -> (R: f8e4m3[n], S: f8e5m2[n]) { R[i] = x[i] / 4; S[i] = y[i]; }
kernel spread(x: f64) -> (R: f64) { R = x * extent(times); }
"""


class Interface:
    """An array by __array_interface__ alone."""

    def __init__(self, a):
        self.kept, self.__array_interface__ = a, a.__array_interface__


class Lent:
    """An array by DLPack alone."""

    def __init__(self, a):
        self.a = a

    def __dlpack__(self, **named):
        return self.a.__dlpack__(**named)

    def __dlpack_device__(self):
        return self.a.__dlpack_device__()


class OnGpu:
    __cuda_array_interface__ = {"shape": (4, 4), "typestr": "<f8", "data": (0, False), "version": 3}
    shape, dtype = (4, 4), np.dtype("f8")


def unaligned(a):
    memory = np.empty(a.nbytes + 1, "u1")
    view = memory[1:].view(a.dtype).reshape(a.shape)
    view[...] = a
    return view


def kinds(a):
    """(name, something with the values of the 4x4 array a, whether a copy is told of: by all, or "kernels" alone) of all kinds that are taken."""
    read_only = a.copy()
    read_only.flags.writeable = False
    wide = np.empty((4, 8))
    wide[:, ::2] = a
    return [("plain", a, False), ("read-only", read_only, False), ("strided", wide[:, ::2], "kernels"),
            ("negative strides", a[::-1].copy()[::-1], False), ("Fortran order", np.asfortranarray(a), False),
            ("transposed", a.T.copy().T, False), ("big-endian", a.astype(">f8"), True), ("unaligned", unaligned(a), True),
            ("subclass", a.view(np.matrix), False), ("masked", np.ma.array(a), False), ("memoryview", memoryview(a), False),
            ("interface", Interface(a), False), ("DLPack", Lent(a), False),
            ("rows of a larger one", np.vstack([a, a])[4:], False)]


class Calls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cls.p = tdsl.compile(TEXT)
        rng = np.random.default_rng(1)
        cls.a, cls.b = rng.integers(-5, 5, (4, 4)).astype("f8"), rng.integers(-5, 5, (4, 4)).astype("f8")

    def test_the_module_loads_where_it_is_built(self):
        built = [os.path.join(folder, "_fast.abi3.so") for folder in _calls._places()]
        wanted = any(map(os.path.exists, built)) and os.environ.get("TDSL_NO_MODULE") != "1"
        if _calls.sys.version_info >= (3, 11):
            self.assertEqual(_calls.fast is not None, wanted)

    def test_every_kind_of_array_at_every_door(self):
        wanted = self.a @ self.b
        f = tdsl.expression("ij,jk->ik", (4, 4), (4, 4))
        doors = [lambda x, y: tdsl.einsum("ij,jk->ik", x, y), f, self.p.product, lambda x, y: self.p.product(B=y, A=x)]
        for n, door in enumerate(doors):
            for _ in range(2):
                np.testing.assert_array_equal(door(self.a, self.b), wanted)
            for name, x, copied in kinds(self.a):
                copied = copied and (copied is True or n >= 2)
                for first in True, False:
                    with self.subTest(name, first=first), warnings.catch_warnings(record=True) as told:
                        warnings.simplefilter("always")
                        got = door(x, self.b) if first else door(self.b, x)
                        np.testing.assert_array_equal(got, wanted if first else self.b @ self.a)
                        self.assertIs(type(got), np.ndarray)
                        self.assertEqual([w.category for w in told], [tdsl.CopyWarning] if copied else [])

    def test_what_is_not_taken(self):
        f = tdsl.expression("ij,jk->ik", (4, 4), (4, 4))
        for door in (lambda x: tdsl.einsum("ij,jk->ik", x, self.b)), (lambda x: f(x, self.b)), (lambda x: self.p.product(x, self.b)):
            door(self.a)
            for x in OnGpu(), self.a.astype(object), self.a.astype("M8[s]"), np.zeros((4, 4), [("x", "f8")]), np.zeros((4, 4), "S3"):
                with self.subTest(getattr(x, "dtype", x)), self.assertRaises(tdsl.DtypeError):
                    door(x)
        with self.assertRaisesRegex(tdsl.DtypeError, "GPU"):
            f(OnGpu(), self.b)

    def test_no_dimensions_and_no_elements(self):
        for _ in range(3):
            got = tdsl.einsum(",->", np.array(2.0), np.array(3.0))
            self.assertEqual((got, type(got)), (6.0, np.float64))
            got = tdsl.einsum("ij,ji->", self.a, self.b)
            self.assertEqual((got, type(got)), (np.einsum("ij,ji->", self.a, self.b), np.float64))
            np.testing.assert_array_equal(tdsl.einsum("ij,jk->ik", np.ones((2, 0)), np.ones((0, 3))), np.zeros((2, 3)))
            self.assertEqual(self.p.product(np.ones((0, 2)), np.ones((2, 3))).shape, (0, 3))
            self.assertEqual(tdsl.einsum("i,i->i", np.ones(0), np.ones(0)).shape, (0,))

    def test_bf16_by_its_name_in_files(self):
        bits = (np.arange(4, dtype="f4").view("u4") >> 16).astype("u2").view("V2")
        for _ in range(3):
            self.assertEqual(tdsl.einsum("i->i", bits).tobytes(), bits.tobytes())

    def test_bf16_of_ml_dtypes(self):
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("ml_dtypes is not installed")
        x = np.arange(4).astype(ml_dtypes.bfloat16)
        f = tdsl.expression("i,i->i", x, x)
        for door in (lambda y: tdsl.einsum("i,i->i", y, y)), (lambda y: f(y, y)):
            for _ in range(3):
                got = door(x)
                self.assertEqual((got.dtype, got.astype("f8").tolist()), (x.dtype, [0, 1, 4, 9]))
        self.assertEqual(f.type, "bf16")

    def test_short_integers(self):
        x, p = np.array([-128, 127, 5, 0], "i1"), np.array([3, 2, 1, 0], "u2")
        for _ in range(3):
            r, s = self.p.short(x, p, 300)
            self.assertEqual((r.dtype, r.tolist()), (np.int32, [0, 1500, 38100, -38400]))
            self.assertEqual((s.dtype, s.tolist()), (np.uint8, [127, 126, 4, 255]))
        with self.assertRaises(tdsl.ArgumentError):
            self.p.short(x, p, 40000)
        with self.assertRaises(tdsl.DtypeError):
            self.p.short(x.view("u1"), p, 1)

    def test_floats_of_8_bits(self):
        x = np.array([0x38, 0xb8, 0x40, 0x7f], "u1")  # 1, -1, 2, NaN
        for _ in range(3):
            r, s = self.p.quarter(x, x)
            self.assertEqual((r.view("u1").tolist()[:3], s.view("u1").tolist()[:3]), ([0x28, 0xa8, 0x30], x.tolist()[:3]))
        try:
            import ml_dtypes
        except ImportError:
            return
        r, s = self.p.quarter(x.view(ml_dtypes.float8_e4m3), x.view(ml_dtypes.float8_e5m2))
        self.assertEqual((r.dtype, r.astype("f4").tolist()[:3], s.dtype), (ml_dtypes.float8_e4m3, [0.25, -0.25, 0.5], ml_dtypes.float8_e5m2))

    def test_types_are_told_apart(self):
        for _ in range(2):
            for t in "f8", "f4", "f2", "i8", "i4", "i2", "u8", "c16", "c8", "?", "longlong":
                x = np.arange(4).astype(t)
                got = tdsl.einsum("i,i->i", x, x)
                self.assertEqual(got.dtype, np.einsum("i,i->i", x, x).dtype)
                np.testing.assert_array_equal(got, x * x)
        with self.assertRaises(tdsl.DtypeError):
            self.p.product(self.a.astype("f4"), self.b)

    def test_out(self):
        wanted = self.a @ self.b
        f = tdsl.expression("ij,jk->ik", (4, 4), (4, 4))
        for door in (lambda **n: tdsl.einsum("ij,jk->ik", self.a, self.b, **n)), (lambda **n: f(self.a, self.b, **n)), \
                (lambda **n: self.p.product(self.a, self.b, **n)):
            for out in np.empty((4, 4)), np.empty((4, 4)), np.empty((4, 4), order="F"), np.empty((8, 4))[::-2], np.empty((4, 4), ">f8"):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", tdsl.CopyWarning)
                    self.assertIs(door(out=out), out)
                np.testing.assert_array_equal(out, wanted)
            fixed = np.empty((4, 4))
            fixed.flags.writeable = False
            for wrong, kind in (np.empty((4, 3)), tdsl.ShapeError), (fixed, tdsl.ArgumentError):
                with self.assertRaises(kind):
                    door(out=wrong)
            self.assertEqual(door(out=None).shape, (4, 4))

    def test_an_out_that_overlaps(self):
        f = tdsl.expression("ij,jk->ik", (4, 4), (4, 4))
        for door in (lambda x, y, o: tdsl.einsum("ij,jk->ik", x, y, out=o)), (lambda x, y, o: f(x, y, out=o)):
            door(self.a, self.b, np.empty((4, 4)))
            for shift in range(5):
                memory = np.arange(32.0).reshape(8, 4)
                x, out = memory[:4], memory[shift:shift + 4]
                wanted = x @ self.b
                door(x, self.b, out)
                np.testing.assert_array_equal(out, wanted)
        self.p.product(self.a, self.b, out=np.empty((4, 4)))
        memory = np.ones((8, 4))
        for shift in range(4):
            with self.assertRaises(tdsl.OverlapError):
                self.p.product(memory[:4], self.b, out=memory[shift:shift + 4])
        self.p.product(memory[:4], self.b, out=memory[4:])

    def test_numbers_and_arrays_in_place(self):
        for alpha, beta in (2.0, 0.5), (2, 1), (np.float64(3), np.float32(0.5)), (np.array(2), 1.0), (2.0, True):
            for order in "CF", "CC":
                c = np.ones((4, 4), order=order[1])
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", tdsl.CopyWarning)
                    self.assertIsNone(self.p.gemm(self.a, self.b, c, alpha, beta))
                np.testing.assert_array_equal(c, float(alpha) * self.a @ self.b + float(beta))
        c = np.ones((4, 4))
        c.flags.writeable = False
        with self.assertRaisesRegex(tdsl.ArgumentError, "read-only"):
            self.p.gemm(self.a, self.b, c, 1.0, 1.0)
        with self.assertRaises(tdsl.OverlapError):
            self.p.gemm(self.a, self.b, self.a, 1.0, 1.0)
        for wrong in "x", 1j, None, [1.0, 2.0]:
            with self.subTest(wrong), self.assertRaises((TypeError, ValueError)):
                self.p.gemm(self.a, self.b, np.ones((4, 4)), wrong, 1.0)

    def test_numbers_that_do_not_fit(self):
        x = np.ones(3, "f4")
        for _ in range(2):
            got = self.p.single(x, 2.0, 1)
            self.assertEqual((got.R.tolist(), got.S, type(got.S), type(got).__name__), ([3.0] * 3, 3.0, np.float32, "single"))
        with self.assertRaises(tdsl.ArgumentError):
            self.p.single(x, 2.0, 1 << 31)
        with self.assertRaises(tdsl.DtypeError):
            self.p.single(x, 2.0, 1.0)
        self.assertEqual(self.p.single(x, float("inf"), 1).R[0], np.inf)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.assertEqual(self.p.single(x, 1e300, 1).R[0], np.inf)

    def test_more_shapes_and_strings_than_are_kept(self):
        f = tdsl.expression("ij,jk->ik", (None, None), (None, None))
        for _ in range(2):
            for n in range(1, 300):
                x = np.full((n, 2), float(n))
                np.testing.assert_array_equal(f(x, np.ones((2, 1))), 2 * x[:, :1])
                np.testing.assert_array_equal(tdsl.einsum("ij,jk->ik", x, np.ones((2, 1))), 2 * x[:, :1])

    def test_options_are_told_apart(self):
        x = np.arange(4.0)
        for _ in range(2):
            self.assertEqual(tdsl.einsum("i,i", x, x).dtype, np.float64)
            self.assertEqual(tdsl.einsum("i,i", x, x, dtype="c16").dtype, np.complex128)
            self.assertEqual(tdsl.einsum("i,i", x, x, dtype="f4", casting="same_kind").dtype, np.float32)
            self.assertEqual(tdsl.einsum("i,i,i", x, x, x, optimize=[(0, 1), (0, 1)]), 36)  # a list has no hash
            self.assertEqual(tdsl.einsum("i,i,i", x, x, x, optimize="greedy"), 36)
            self.assertEqual(tdsl.einsum("i,i", x, x, threads=2), 14)
        for wrong in -1, 0.5, "2":
            with self.subTest(wrong), self.assertRaises((TypeError, ValueError)):
                tdsl.einsum("i,i", x, x, threads=wrong)

    def test_arguments_of_calls(self):
        f = tdsl.expression("i,i->i", (3,), (3,))
        x = np.ones(3)
        for _ in range(2):
            self.assertEqual(f(x, x).tolist(), [1, 1, 1])
            for call in (lambda: f(x)), (lambda: f(x, x, x)), (lambda: f(x, x, threads=2)), (lambda: f(x, x, extra=x)), \
                    (lambda: self.p.product(self.a)), (lambda: self.p.product(self.a, self.b, A=self.a)), (lambda: self.p.product(self.a, C=self.b)):
                self.assertRaises(TypeError, call)
        self.assertEqual(self.p.product(self.a, self.b, dims={"m": 4}).shape, (4, 4))
        self.assertEqual(self.p.product(self.a, self.b, threads=2).shape, (4, 4))
        for n in 2, 3, 2:
            self.assertEqual(self.p.spread(2.0, dims={"times": n}), 2 * n)
        self.assertTrue(f and self.p.product)
        self.assertIn("A, B", str(inspect.signature(self.p.product)))

    def test_an_expression_of_arrays(self):
        f = tdsl.expression("ij,jk->ik", self.a, self.b)
        self.assertEqual((f.shapes, f.type), (((4, 4), (4, 4)), "f64"))
        np.testing.assert_array_equal(f(self.a, self.b), self.a @ self.b)
        single = self.a.astype("f4")
        self.assertEqual(tdsl.expression("ij,jk->ik", single, (4, None)).type, "f32")
        self.assertEqual(tdsl.expression("ij,jk->ik", single, self.b).type, "f64")
        self.assertEqual(tdsl.expression("ij,jk->ik", single, self.b, dtype="c64").type, "c64")
        np.testing.assert_array_equal(tdsl.expression(self.a, [0, 1], self.b, [1, 2], [0, 2])(self.a, self.b), self.a @ self.b)
        with self.assertRaises(tdsl.DtypeError):
            tdsl.expression("ij->i", self.a.astype("u1"))

    def test_no_memory(self):
        self.p.large(np.ones((3, 0)), np.ones((0, 3)))
        with self.assertRaises(tdsl.WorkspaceError) as raised:
            self.p.large(np.ones((1 << 22, 0)), np.ones((0, 1 << 22)))
        self.assertIsInstance(raised.exception, MemoryError)

    def test_threads_of_python(self):
        f = tdsl.expression("ij,jk,kl->il", (None, None), (None, None), (None, None))
        wrong = []

        def work(seed):
            rng = np.random.default_rng(seed)
            for _ in range(40):
                m = int(rng.integers(20, 90))  # on both sides of where the GIL is released
                x, y, z = (rng.integers(-3, 4, s).astype("f8") for s in ((m, 60), (60, 70), (70, m)))
                ok = np.array_equal(f(x, y, z), x @ y @ z) and np.array_equal(self.p.product(x, y), x @ y)
                if not (ok and np.array_equal(self.p.large(x, x.T.copy()).shape, (m,))):
                    wrong.append(m)
        workers = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        with np.errstate(all="ignore"):
            for w in workers:
                w.start()
            for k in range(20):
                tdsl._einsum._calls._forget()
            for w in workers:
                w.join()
        self.assertEqual(wrong, [])


    def test_others_go_on_while_a_long_kernel_runs(self):
        x = np.ones((1500, 1500))
        f = tdsl.expression("ij,jk,kl->il", x, x, x)
        f(x, x, x)
        worker = threading.Thread(target=f, args=(x, x, x))
        worker.start()
        steps = 0
        while worker.is_alive():
            time.sleep(0.001)
            steps += 1
        self.assertGreater(steps, 20)


class Lines(unittest.TestCase):
    """Warnings name the line of the caller."""

    def line_of(self, category, call):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            call()
        found = [(w.filename, w.lineno) for w in told if w.category is category]
        self.assertEqual(found, [(__file__, call.__code__.co_firstlineno)])

    def test_copies(self):
        x = np.ones((3, 4)).T
        y = np.ones((3, 2))
        f = tdsl.expression("ij,jk->ik", (4, 3), (3, 2))
        p = tdsl.compile("kernel g(A: f64[m, k], B: f64[k, n]) -> (C: f64[m, n]) { C[i,j] = A[i,p] * B[p,j]; }")
        swapped = x.astype(">f8")
        for _ in range(2):
            self.line_of(tdsl.CopyWarning, lambda: tdsl.einsum("ij,jk->ik", swapped, y))
            self.line_of(tdsl.CopyWarning, lambda: tdsl.einsum("ij,jk->ik", x[:2, ::2], y[:2], alpha=2))
            self.line_of(tdsl.CopyWarning, lambda: f(swapped, y))
            self.line_of(tdsl.CopyWarning, lambda: p.g(swapped, y))
            self.line_of(tdsl.CopyWarning, lambda: p.g(A=swapped, B=y))

    def test_programs_and_the_interpreter(self):
        self.line_of(tdsl.CompileWarning, lambda: tdsl.compile("kernel f(A: f64[2]) -> (R: f64) { R = A[i]; }"))
        saved, os.environ["TDSL_CC"] = os.environ.get("TDSL_CC"), "no-such-compiler"
        try:
            self.line_of(tdsl.SlowWarning, lambda: tdsl.einsum("abcd->bd", np.ones((1, 2, 3, 4))))
        finally:
            os.environ.pop("TDSL_CC")
            if saved is not None:
                os.environ["TDSL_CC"] = saved


class Errors(unittest.TestCase):
    """Each class, what it is a kind of, and what it names."""

    def test_every_class_is_raised(self):
        x = np.ones((2, 3))
        p = tdsl.compile("kernel f(A: f64[m, 3], C: inout f64[m]) { C[i] = A[i,j] * A[i,j] + C[i]; }")
        f = tdsl.expression("ij->i", (2, 3))
        cases = [(tdsl.CompileError, ValueError, lambda: tdsl.einsum("ij->k", x)), (tdsl.CompileError, ValueError, lambda: tdsl.compile("kernel")),
                 (tdsl.CompileError, ValueError, lambda: tdsl.path("ij,jk", (2, 3), (4, 5))),
                 (tdsl.ShapeError, ValueError, lambda: p.f(x.T, np.ones(3))), (tdsl.ShapeError, ValueError, lambda: f(np.ones((3, 3)))),
                 (tdsl.OverlapError, ValueError, lambda: p.f(x, x[0, :2])), (tdsl.ArgumentError, ValueError, lambda: tdsl.einsum("i")),
                 (tdsl.DtypeError, TypeError, lambda: p.f(x.astype("f4"), np.ones(2))), (tdsl.DtypeError, TypeError, lambda: f(x.astype("f4")))]
        for kind, python_kind, call in cases:
            with self.subTest(kind), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with self.assertRaises(kind) as raised:
                    call()
                self.assertIsInstance(raised.exception, python_kind)
                self.assertIsInstance(raised.exception, tdsl.Error)
                self.assertTrue(hasattr(raised.exception, "code" if kind is tdsl.CompileError else "argument"))


    def test_statuses(self):
        from tdsl._errors import raise_status
        for status, kind in (-1, tdsl.ArgumentError), (-2, tdsl.ShapeError), (-6, tdsl.WorkspaceError), (-7, tdsl.WorkspaceError), \
                (-8, tdsl.ArgumentError), (-10, tdsl.WorkspaceError):
            with self.assertRaisesRegex(kind, "^gemm: "):
                raise_status(status, "gemm")


unittest.main()
