# SPDX-License-Identifier: Apache-2.0
"""tdsl.nki: folders of tdslc --target=trn2 as functions, in the emulator and through stand-ins of the frameworks of a Neuron host."""
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import warnings
from unittest import mock

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
RUNTIME = os.path.join(HERE, "..", "runtime")
EMULATOR = os.path.join(HERE, "..", "..", "runtime", "nki_emulator", "run.py")
sys.path[:0] = [os.path.join(RUNTIME, "fake_frameworks")]
import tdsl  # noqa: E402
import tdsl.nki  # noqa: E402
from tdsl import _nki_devices, _nki_dispatch, _tools  # noqa: E402

ODD = """
kernel odd(x: f32[n, m], lambda: f32, W: f32[1, 1]) -> (R: f32[n], E: f32, Q: f32[1, 1]) {
    R[i] = lambda * sum[j](x[i,j]);
    E = sum[i,j](x[i,j]);
    Q[i,j] = 2 * W[i,j];
}
kernel bytes(x: u8[n], q: i8[n, m], W: f8e5m2[n, m], c: inout u16[n]) -> (R: f8e4m3[n, m], S: i16[n]) {
    R[i,j] = f8e4m3(f32(W[i,j]) * f32(q[i,j]));
    S[i] = i16(x[i] - sum[j](q[i,j]));
    c[i] = u16(c[i] + 65535);
}
kernel large(u: u32[n]) -> (h: u32[n]) { h[i] = u32(u[i] / 2); }
kernel class(C: inout f32[n], E: inout f32) { C[i] = 2 * C[i]; E += 1; }
"""
rng = np.random.default_rng(5)


def integers(*shape, dtype="f4"):
    """Small ones, so that every sum is exact."""
    a = rng.integers(-3, 4, shape)
    return (a + 1j * rng.integers(-3, 4, shape) if dtype == "c8" else a).astype(dtype)


def bf16(values):
    """As the package gives it: V2, or ml_dtypes' own."""
    bits = (np.asarray(values, "f4").view("u4") >> 16).astype("u2")
    return bits.view(tdsl._arrays.dtype_of("bf16"))


def modules(names):
    """A stand-in for nki, and of the frameworks only those named."""
    found = {name: None for name in ("torch", "torch_neuronx", "jax", "nki") if name not in names}
    return mock.patch.dict(sys.modules, found)


class Nki(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        source = os.path.join(RUNTIME, "end_to_end")
        cls.kernels, cls.parts = (os.path.join(source, name + ".tdsl") for name in ("kernels", "parts"))
        odd = os.path.join(cls.folder, "odd.tdsl")
        with open(odd, "w", encoding="utf-8") as f:
            f.write("dim n, m;" + ODD)

        os.mkdir(os.path.join(cls.folder, "all"))

        def compile_for(path, out, *words):
            subprocess.run([_tools.tdslc(), path, "--target=trn2", "-w", *words, "-o", os.path.join(cls.folder, out)], check=True)
            return os.path.join(cls.folder, out)
        cls.k40 = compile_for(cls.kernels, "all/k40", "-Dm=40", "-Dk=30", "-Dn=50")
        cls.k9 = compile_for(cls.kernels, "all/k9", "-Dm=9", "-Dk=30", "-Dn=5")
        cls.p = compile_for(cls.parts, "parts", "-Dk=30", "-Dn=50", "-Dp=300", "-Dq=260", "--max-instructions=20")
        cls.odd = compile_for(odd, "odd", "-Dn=8", "-Dm=4")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def setUp(self):
        _nki_dispatch.found.__init__()
        for name in ("TDSL_BACKEND", "TDSL_REQUIRE_NKI", "TDSL_MIN_NKI_FLOPS", "TDSL_USE_SIMULATOR", "NEURON_LOGICAL_NC_CONFIG"):
            os.environ.pop(name, None)

    def host(self, *frameworks, device="1"):
        """A Neuron host with these frameworks."""
        import importlib.util
        folder = os.path.join(RUNTIME, "fake_neuron", "nki")
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        fake = {}
        for name, file in (("nki", "__init__"), ("nki.isa", "isa"), ("nki.language", "language")):
            spec = importlib.util.spec_from_file_location(name, os.path.join(folder, file + ".py"),
                                                          submodule_search_locations=[folder] if name == "nki" else None)
            fake[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(fake[name])
        stack.enter_context(mock.patch.dict(sys.modules, fake))
        stack.enter_context(modules(("nki", *frameworks)))
        stack.enter_context(mock.patch.object(_nki_devices, "neuron_devices", lambda: ["/dev/neuron0"]))
        stack.enter_context(mock.patch.dict(os.environ, {"FAKE_DEVICE": device, "FAKE_EMULATOR": EMULATOR}))
        return stack

    def check_all(self, p, parts, odd, backend, complex_too=True):
        """Every kind of kernel, exactly."""
        a, b = integers(40, 30), integers(30, 50)
        np.testing.assert_array_equal(p.product(a, B=b), a @ b)
        self.assertEqual((p.product.last.backend, p.product.last.reason), (backend, "forced"))
        small = integers(9, 30), integers(30, 5)
        np.testing.assert_array_equal(p.product(*small), small[0] @ small[1])
        r, s = p.softened(c := integers(40, 50), d := integers(50), 3)
        np.testing.assert_array_equal(r, 3 * c + d)
        self.assertEqual(s, (r + c).sum())
        self.assertIs(type(s), np.float32)
        for order in "CF":
            was = np.asarray(integers(40, 50), order=order)
            now = was.copy(order=order)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.assertIsNone(p.update(now, a, b))
            np.testing.assert_array_equal(now, was + a @ b)
        ca, cb, cc = integers(40, 30, dtype="c8"), integers(30, 50, dtype="c8"), integers(40, 50, dtype="c8")
        now = cc.copy()
        p.summed(now, ca, cb)
        np.testing.assert_array_equal(now, cc + ca @ cb)
        r, s = p.turned(ca, cb[:, 0].copy(), 2 + 1j)
        np.testing.assert_array_equal(r, ca @ cb[:, 0])
        self.assertEqual(s, (2 + 1j) ** 2)
        total, rows, product = p.totals(a, b)
        squares = a.astype("f8") ** 2
        self.assertEqual(total, 3001 * squares.sum() - b.sum())
        self.assertGreater(total, 2 ** 22)
        self.assertEqual((type(total), rows.dtype, product.dtype), (np.float64, np.float64, np.float64))
        np.testing.assert_array_equal(rows, 4097 * squares.sum(1))
        np.testing.assert_array_equal(product, a @ b)
        a3, b3, d3 = integers(300, 30), integers(30, 260), integers(260)
        np.testing.assert_array_equal(parts.tall(a3, b3), a3 @ b3)
        self.assertGreater(len(parts.scaled_wide._dispatch.forms[0].programs), 1)
        np.testing.assert_array_equal(parts.wide(a3, b3), a3 @ b3)
        np.testing.assert_array_equal(parts.scaled_wide(a3, b3, s=2, D=d3), 2 * a3 @ b3 + d3)
        d4 = integers(260, 50)
        np.testing.assert_array_equal(parts.twice_wide(a3, b3, d4), a3 @ b3 @ d4)
        a5, b5 = integers(300, 260), integers(260, 30)
        np.testing.assert_array_equal(parts.centred(a5, b5), (4 * a5 - a5.sum(0)) @ b5)
        x = integers(8, 4)
        got = odd.odd(x, **{"lambda": 2}, W=np.full((1, 1), 3, "f4"))
        np.testing.assert_array_equal(got.R, 2 * x.sum(1))
        self.assertEqual((got.E, got.Q.shape, got.Q[0, 0]), (x.sum(), (1, 1), 6))
        c, e = np.arange(8, dtype="f4"), np.array(4, "f4")
        odd["class"](c, e)
        np.testing.assert_array_equal(c, 2 * np.arange(8))
        self.assertEqual(e, 5)

    def check_halves(self, p):
        a, b = integers(40, 30, dtype="f2"), integers(30)
        r, t = p.halves(a, bf16(b))
        np.testing.assert_array_equal(r, a.sum(1))
        self.assertEqual(t.tobytes(), bf16(2 * b).tobytes())

    def load_all(self, **options):
        return [tdsl.nki.load(folder, **options) for folder in (os.path.join(self.folder, "all"), self.p, self.odd)]

    def test_emulator(self):
        programs = self.load_all(backend="emulator")
        self.check_all(*programs, "emulator")
        p = tdsl.nki.load(self.k40, use_simulator=True, require_nki=True)
        self.check_halves(p)
        self.assertEqual((p.halves.last.backend, p.halves.last.reason), ("emulator", "required"))

    def test_bytes(self):
        """Short types in the emulator: u8 is no bool, and a float of 8 bits is that of ml_dtypes, or its pattern."""
        odd = tdsl.nki.load(self.odd)
        x, q, c = (rng.integers(0, 200, 8).astype("u1"), rng.integers(-5, 6, (8, 4)).astype("i1"), np.arange(8, dtype="u2"))
        wide = np.array([0.5, 1, 2, -4], "f4")
        patterns = np.array([0x38, 0x3C, 0x40, 0xC4], "u1")
        W = np.tile(patterns, (8, 1)).view(tdsl._arrays.dtype_of("f8e5m2"))
        R, S = odd.bytes(x, q, W, c)
        self.assertEqual(S.dtype, np.dtype("i2"))
        np.testing.assert_array_equal(S, x.astype(int) - q.astype(int).sum(axis=1))
        np.testing.assert_array_equal(c, (np.arange(8) + 65535).astype("u2"))
        size = np.abs(wide * q)             # of e4m3: 8 to a power of two
        exponent = np.where(size > 0, np.floor(np.log2(np.maximum(size, 1e-9))), 0)
        bits = np.where(size > 0, (exponent + 7) * 8 + (size / 2 ** exponent - 1) * 8, 0).astype("u1") | np.where(np.signbit(wide * q), 128, 0).astype("u1")
        np.testing.assert_array_equal(np.asarray(R).view("u1"), bits)
        with self.assertRaisesRegex(tdsl.Error, r"4194305 is beyond 2\^22"):
            odd.large(np.full(8, 2 ** 22 + 1, "u4"))

    def test_torch(self):
        self.host("torch", "torch_neuronx")
        import torch
        import torch_neuronx
        torch_neuronx.ops.clear()
        programs = self.load_all(backend="nki")
        self.check_all(*programs, "nki")
        self.check_halves(tdsl.nki.load(self.k40, backend="nki"))
        self.assertTrue(any("scaled_wide_part2" in name for name in torch_neuronx.ops), list(torch_neuronx.ops))
        self.check_resident(programs[0], lambda a: torch.from_numpy(a).to("neuron"), lambda t: t.cpu().numpy())
        now, a, b = integers(40, 50), integers(40, 30), integers(30, 50)
        t = torch.from_numpy(now).to("neuron")
        self.assertIsNone(programs[0].update(t, a, torch.from_numpy(b).to("neuron")))
        np.testing.assert_array_equal(t.cpu().numpy(), now + a @ b)

    def test_jax(self):
        self.host("jax")
        import jax
        programs = self.load_all(backend="nki")
        self.check_all(*programs, "nki")
        self.check_resident(programs[0], lambda a: jax.device_put(a, jax.devices("neuron")[0]), np.asarray)
        with self.assertRaisesRegex(tdsl.ArgumentError, "'C' of update.*in place") as caught:
            programs[0].update(jax.device_put(integers(40, 50), jax.devices("neuron")[0]), integers(40, 30), integers(30, 50))
        self.assertEqual(caught.exception.argument, "C")

    def check_resident(self, p, put, get):
        """Tensors of the device stay there, whatever the threshold."""
        a, b = integers(40, 30), integers(30, 50)
        c = p.product(put(a), put(b))
        self.assertIs(type(c), type(put(a)))
        self.assertEqual(p.product.last.reason, "resident")
        r, s = p.softened(c, put(integers(50) * 0), 2)
        np.testing.assert_array_equal(get(r), 2 * (a @ b))
        self.assertEqual((get(s).shape, get(s)), ((), 3 * (a @ b).sum()))
        z = integers(40, 30, dtype="c8"), integers(30, dtype="c8")
        r, s = p.turned(put(z[0].view("f4").reshape(40, 30, 2)), z[1], 1j)
        np.testing.assert_array_equal(get(r).view("c8")[:, 0], z[0] @ z[1])
        self.assertEqual(get(s).tolist(), [-1, 0])
        now, was = integers(40, 50), integers(40, 50)
        now[...] = was
        p.update(now, put(a), b)
        np.testing.assert_array_equal(now, was + a @ b)
        for wrong, kind, argument in ((put(integers(40, 31)), tdsl.ShapeError, "A"), (put(integers(40, 30, dtype="f2")), tdsl.DtypeError, "A")):
            with self.assertRaises(kind) as caught:
                p.product(wrong, put(b))
            self.assertEqual(caught.exception.argument or argument, argument)

    def test_nki_alone(self):
        self.host()
        self.check_all(*self.load_all(backend="nki"), "nki")
        self.assertTrue(tdsl.nki.has_nki())

    def test_rows_that_programs_hand_on(self):
        device, ten = _nki_devices.Arrays(), np.arange(10)
        pieces = [(6, 4, ten[6:].reshape(2, 2)), (0, 4, ten[:4].reshape(2, 2)), (4, 2, ten[4:6])]
        for first in range(10):
            for size in range(1, 11 - first):
                got = device.flat(_nki_dispatch.piece(device, pieces, first, size))
                np.testing.assert_array_equal(got, ten[first:first + size])
        with self.assertRaisesRegex(RuntimeError, "elements 4 to 8"):
            _nki_dispatch.piece(device, pieces[:2], 2, 6)

    def test_two_cores(self):
        folder = os.path.join(self.folder, "two_cores")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tdsl.nki.compile(self.kernels, folder, lnc=2, m=40, k=30, n=50)
        a, b = integers(40, 30), integers(30, 50)
        for frameworks, backend in ((None, "emulator"), ((), "nki"), (("jax",), "nki"), (("torch", "torch_neuronx"), "nki")):
            os.environ.pop("NEURON_LOGICAL_NC_CONFIG", None)
            _nki_dispatch.found.__init__()
            with self.host(*frameworks) if frameworks is not None else contextlib.nullcontext():
                product = tdsl.nki.load(folder, backend=backend).product
                np.testing.assert_array_equal(product(a, b), a @ b)
                self.assertEqual(product.last.backend, backend)

    def test_wrong_arguments(self):
        p, both = tdsl.nki.load(self.k40, backend="emulator"), tdsl.nki.load(self.k40, self.k9, backend="emulator")
        a, b = integers(40, 30), integers(30, 50)
        for call, kind, argument, words in (
                (lambda: p.product(a, integers(31, 50)), tdsl.ShapeError, "B", "axis 0 of 'B' is 31, not 30"),
                (lambda: p.product(a, b[0]), tdsl.ShapeError, "B", "1 dimensions, not 2"),
                (lambda: both.product(integers(41, 30), b), tdsl.ShapeError, "A", "m=41, n=50; its forms are for m=40, k=30, n=50 and for m=9"),
                (lambda: p.product(a.astype("f8"), b), tdsl.DtypeError, "A", "is f32, not float64"),
                (lambda: p.turned(a, b[:, 0].copy(), 1), tdsl.DtypeError, "A", "is c64, not float32"),
                (lambda: p.softened(integers(40, 50), integers(50), a), tdsl.ArgumentError, "s", "is a scalar"),
                (lambda: p.update(b[:0], a, b), tdsl.ShapeError, "C", "axis 0 of 'C' is 0"),
                (lambda: p.product(a, b, out=a), tdsl.ShapeError, "C", "axis 1"),
                (lambda: p.product(a), TypeError, None, "argument 'B' is missing")):
            with self.assertRaisesRegex(kind, words) as caught:
                call()
            self.assertEqual(getattr(caught.exception, "argument", None), argument)

    def test_choice_and_fallback(self):
        a, b = integers(40, 30), integers(30, 50)
        chosen = lambda p, *x: (lambda r: (r.backend, r.reason))(p.product.explain(*(x or (a, b))))
        load = lambda **options: tdsl.nki.load(self.k40, program=self.kernels, **options)
        with self.host("jax"):
            self.assertEqual(chosen(load()), ("c", "below_threshold"))
            self.assertEqual(chosen(load(min_nki_flops=120000)), ("nki", "above_threshold"))
            self.assertEqual(chosen(load(min_nki_flops=120001)), ("c", "below_threshold"))
            self.assertEqual(chosen(load(), a[:7], b), ("c", "other_extents"))
            self.assertEqual(chosen(load(backend="c")), ("c", "forced"))
            self.assertEqual(chosen(tdsl.nki.load(self.k40)), ("nki", "no_c_form"))
            self.assertEqual(chosen(load(require_nki=True)), ("nki", "required"))
            with self.assertRaises(tdsl.ShapeError):
                load(require_nki=True).product(a[:7], b)
            os.environ["TDSL_BACKEND"] = "emulator"
            self.assertEqual(chosen(load()), ("emulator", "forced"))
            os.environ["TDSL_BACKEND"] = "Nki"
            self.assertRaisesRegex(tdsl.ArgumentError, "'Nki' is no backend", load)
        self.setUp()
        p = load()
        self.assertIsNone(p.product._planned)  # for other sizes the form in C is not compiled past what chooses
        np.testing.assert_array_equal(p.product(a[:7], b), a[:7] @ b)
        self.assertIn("C, because its NKI forms were built for other extents", str(p.product.last))
        for _ in range(2):
            p.product(a, b)
            self.assertEqual(p.product.last.reason, "below_threshold")
            p.product(a[:7], b)
            self.assertEqual(p.product.last.reason, "other_extents")
        p = load(min_nki_flops=1)  # no device
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for _ in range(2):
                np.testing.assert_array_equal(p.product(a, b), a @ b)
        self.assertEqual([(w.category, w.filename) for w in told], [(tdsl.nki.FallbackWarning, __file__)])
        self.assertEqual((p.product.last.backend, p.product.last.reason), ("c", "unavailable"))
        self.assertIn("no Neuron device", p.product.last.cause)
        p = tdsl.nki.load(self.k40)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a question is not a call
            self.assertEqual(chosen(p), ("emulator", "unavailable"))
        with self.assertWarnsRegex(tdsl.SlowWarning, "the emulator runs it"):
            np.testing.assert_array_equal(p.product(a, b), a @ b)
        self.assertEqual((p.product.last.backend, p.product.last.reason), ("emulator", "unavailable"))
        with self.assertRaisesRegex(tdsl.nki.DeviceError, "no Neuron device"):
            tdsl.nki.load(self.k40, backend="nki").product(a, b)
        self.assertFalse(tdsl.nki.has_nki())

    def test_device_that_fails(self):
        self.host("torch", "torch_neuronx", device="broken")
        import torch_neuronx
        torch_neuronx.ops.clear()
        a, b, c = integers(40, 30), integers(30, 50), integers(40, 50)
        p = tdsl.nki.load(self.k40, program=tdsl.load(self.kernels), min_nki_flops=1)
        now = c.copy()
        with self.assertWarnsRegex(tdsl.nki.FallbackWarning, "lost its clock; the C form runs"):
            p.update(now, a, b)
        np.testing.assert_array_equal(now, c + a @ b)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            p.update(now, a, b)  # it was told
        self.assertEqual((p.update.last.backend, p.update.last.reason), ("c", "device_failed"))
        now = c.copy()
        with self.assertRaisesRegex(tdsl.nki.DeviceError, "update: torch-neuronx: the device lost its clock"):
            tdsl.nki.load(self.k40, program=self.kernels, require_nki=True).update(now, a, b)
        np.testing.assert_array_equal(now, c)
        os.environ["NEURON_LOGICAL_NC_CONFIG"] = "2"
        _nki_dispatch.found.__init__()
        with self.assertRaisesRegex(tdsl.nki.DeviceError, "NEURON_LOGICAL_NC_CONFIG is 2"):
            tdsl.nki.load(self.k40, require_nki=True).product(a, b)

    def test_compile(self):
        program = tdsl.compile("dim n;" + ODD[:ODD.index("kernel class")].replace("m]", "4]"))
        p = tdsl.nki.compile(program, os.path.join(self.folder, "compiled"), target="trn1", n=8)
        self.assertEqual(p.odd._dispatch.forms[0].target, "trn1")
        self.assertIs(p.c_program, program)
        x = integers(8, 4)
        np.testing.assert_array_equal(p.odd(x, 2, np.ones((1, 1), "f4")).R, 2 * x.sum(1))
        with self.assertRaises(tdsl.CompileError):
            tdsl.nki.compile(tdsl.compile("kernel f(x: f64[3]) -> (y: f64) { y = sum[i](x[i]); }"), os.path.join(self.folder, "none"))

    def test_many_threads_and_a_folder_that_is_written_again(self):
        self.host("torch", "torch_neuronx")
        import torch_neuronx
        torch_neuronx.ops.clear()
        from concurrent.futures import ThreadPoolExecutor
        folder, a, b = os.path.join(self.folder, "again2"), integers(6, 4), integers(4, 5)
        for factor in 2, 3:
            p = tdsl.compile("kernel f(A: f32[6, 4], B: f32[4, 5]) -> (C: f32[6, 5]) { C[i,j] = %d * A[i,l] * B[l,j]; }" % factor)
            p = tdsl.nki.compile(p, folder)
            p = tdsl.nki.load(folder, backend="nki")
            with ThreadPoolExecutor(8) as pool:
                for got in pool.map(lambda _, p=p: p.f(a, b), range(24)):
                    np.testing.assert_array_equal(got, factor * (a @ b))
        self.assertEqual(len(torch_neuronx.ops), 2)

    def test_a_file_that_is_not_its_manifests_is_not_run(self):
        folder = os.path.join(self.folder, "changed")
        tdsl.nki.compile(self.kernels, folder, m=40, k=30, n=50)
        file = os.path.join(folder, "product.py")
        with open(file, encoding="utf-8") as f:
            text = f.read()
        with modules({"nki"}):
            tdsl.nki.load(folder)["product"]._dispatch.forms[0].programs[0].check()
            for changed in text + "import os\n", text.replace("\nimport nki\n", "\nimport os\nimport nki\n", 1):
                with open(file, "w", encoding="utf-8") as f:
                    f.write(changed)
                program = tdsl.nki.load(folder)["product"]._dispatch.forms[0].programs[0]
                with self.assertRaisesRegex(tdsl.Error, "SHA-256"):
                    _nki_devices.kernel_of(program)
        with open(os.path.join(folder, "product.json"), encoding="utf-8") as f:
            manifest = f.read()
        with open(os.path.join(folder, "product.json"), "w", encoding="utf-8") as f:
            f.write(manifest.replace('"product.py"', '"../product.py"'))
        with self.assertRaisesRegex(tdsl.Error, "beside it"):
            tdsl.nki.load(folder)

    def test_folders(self):
        for wrong, kind, words in (("nowhere", FileNotFoundError, "nowhere"), (HERE, tdsl.ArgumentError, "has no manifests")):
            with self.assertRaisesRegex(kind, words):
                tdsl.nki.load(wrong)
        with self.assertRaisesRegex(tdsl.ArgumentError, "the program's kernel 'product' is"):
            tdsl.nki.load(self.k40, program=tdsl.compile("kernel product(A: f64[m, k]) -> (C: f64[m]) { C[i] = sum[j](A[i,j]); } dim m, k;"))
        with tempfile.TemporaryDirectory() as folder:
            for text in ('{"args": [], "target": "trn2"}', "{"):
                with open(os.path.join(folder, "x.json"), "w", encoding="utf-8") as f:
                    f.write(text)
                with self.assertRaisesRegex(tdsl.Error, "x.json"):
                    tdsl.nki.load(folder)
            with open(os.path.join(self.k40, "product.json"), encoding="utf-8") as f:
                newer = f.read().replace('"format": 1', '"format": 2').replace('"compiler": "tdslc', '"compiler": "tdslc 9, not')
            with open(os.path.join(folder, "x.json"), "w", encoding="utf-8") as f:
                f.write(newer)
            with self.assertRaisesRegex(tdsl.Error, "x.json is of format 2, by tdslc 9, not .*; this version reads format 1"):
                tdsl.nki.load(folder)
        again = shutil.copytree(self.k40, os.path.join(self.folder, "again"))
        self.assertIn("again", tdsl.nki.load(self.k40, again).product._dispatch.find(()).path)  # the latest
        p = tdsl.nki.load(self.k40, program=self.kernels)
        self.assertEqual(p.product.forms, ["m=40, k=30, n=50"])
        self.assertIn("product", p.report())
        self.assertRaisesRegex(tdsl.Error, "no C form", tdsl.nki.load(self.k40).report)


unittest.main()
