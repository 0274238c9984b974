# SPDX-License-Identifier: Apache-2.0
"""tdsl.trnfft against numpy.fft, and against torch where it is installed."""
import importlib.util
import os
import subprocess
import sys
import unittest

import numpy as np
import tdsl
import tdsl.trnfft as trnfft
from tdsl import _fft
from tdsl.trnfft import ComplexTensor

RANDOM = np.random.default_rng(1)
HAS_TORCH = importlib.util.find_spec("torch") is not None
LENGTHS = [*range(1, 34), 64, 97, 100, 127, 128, 131, 200, 256, 262, 500, 512, 997, 1000, 1024, 2187, 4096, 8191]


def signal(dtype, *shape):
    a = RANDOM.standard_normal(shape)
    return (a + 1j * RANDOM.standard_normal(shape) if np.dtype(dtype).kind == "c" else a).astype(dtype)


class Case(unittest.TestCase):
    def near(self, got, want, single=True):
        if isinstance(got, ComplexTensor):
            self.assertEqual(got.dtype, np.float32 if single else np.float64)
            got = got.to_torch_complex()
        self.assertEqual(np.shape(got), np.shape(want))
        size = max(float(abs(want).max(initial=0)), 1e-30)
        self.assertLessEqual(float(abs(np.asarray(got) - want).max(initial=0)) / size, 1e-6 if single else 5e-15)


class Lengths(Case):
    def test_every_length(self):
        for n in LENGTHS:
            for single, dtypes in ((True, ("c8", "f4")), (False, ("c16", "f8"))):
                with self.subTest(n=n, single=single):
                    x, r = (signal(d, 3, n) for d in dtypes)
                    wide, half = x.astype("c16"), x[:, :n // 2 + 1].copy()
                    self.near(trnfft.fft(x), np.fft.fft(wide), single)
                    self.near(trnfft.ifft(ComplexTensor(x.real, x.imag)), np.fft.ifft(wide), single)
                    self.near(trnfft.rfft(r), np.fft.rfft(r.astype("f8")), single)
                    self.near(trnfft.irfft(half, n=n), np.fft.irfft(half.astype("c16"), n), single)
                    self.near(trnfft.hfft(half, n=n), np.fft.hfft(half.astype("c16"), n), single)
                    self.near(trnfft.ihfft(r), np.fft.ihfft(r.astype("f8")), single)

    def test_cut_and_padded(self):
        x = signal("c16", 2, 20)
        for n in (1, 7, 20, 33):
            self.near(trnfft.fft(x, n=n), np.fft.fft(x, n), False)
            self.near(trnfft.rfft(x.real, n=n), np.fft.rfft(x.real, n), False)
            self.near(trnfft.irfft(x, n=n), np.fft.irfft(x, n), False)
        self.near(trnfft.irfft(x), np.fft.irfft(x), False)
        self.near(trnfft.fft(np.arange(6)), np.fft.fft(np.arange(6)), False)
        self.near(trnfft.fft(np.zeros((0, 8))), np.zeros((0, 8)), False)
        self.near(trnfft.fft(x.T), np.fft.fft(x.T), False)

    def test_work_is_n_log_n(self):
        for n in (256, 4096, 1 << 16, 1 << 20, 1000, 3 ** 9, 5 * 7 * 11 * 13):
            plan = trnfft.create_plan(n)
            self.assertEqual((np.prod(plan.radices), plan.padded_n), (n, None))
            self.assertLessEqual(plan.multiply_adds, 7 * n * np.log2(n))
        plan = trnfft.create_plan(65521)
        self.assertEqual((plan.algorithm.name, plan.is_power_of_2), ("BLUESTEIN", False))
        self.assertGreaterEqual(plan.padded_n, 2 * 65521 - 1)
        self.assertLess(plan.padded_n, 1.2 * 2 * 65521)
        self.assertIs(trnfft.create_plan(100), trnfft.create_plan(100))
        self.assertIsNot(trnfft.create_plan(100), trnfft.create_plan(100, inverse=True))
        trnfft.clear_plan_cache()
        self.assertEqual(len(_fft._tables), 0)

    def test_tables_are_bounded(self):
        trnfft.clear_plan_cache()
        most, _fft._MOST_BYTES = _fft._MOST_BYTES, 100000
        for n in (1024, 2048, 4096, 256):
            x = signal("c16", n)
            self.near(trnfft.fft(x), np.fft.fft(x), False)
        _fft._MOST_BYTES = most
        self.assertLessEqual(sum(size for _, size in _fft._tables.values()), 100000)

    def test_lengths_share_kernels(self):
        for n in (15, 21, 33, 35, 39, 55, 65, 77, 91):
            trnfft.fft(signal("c16", n * 31))
        own = {key: len(radices) for key, radices in _fft._fixed.items()}
        self.assertLessEqual(max(own.values()), 4)


class Dimensions(Case):
    def test_several(self):
        x, r = signal("c8", 6, 10, 8), signal("f4", 6, 10, 8)
        for s, dim in ((None, None), (None, (0, 2)), ((4, 12), None), ((5, 16), (1, 0)), (None, (-1,))):
            axes = dim if dim is not None or s is None else tuple(range(3 - len(s), 3))
            self.near(trnfft.fftn(x, s, dim), np.fft.fftn(x.astype("c16"), s, axes))
            self.near(trnfft.ifftn(x, s, dim), np.fft.ifftn(x.astype("c16"), s, axes))
            self.near(trnfft.rfftn(r, s, dim), np.fft.rfftn(r.astype("f8"), s, axes))
            self.near(trnfft.irfftn(trnfft.rfftn(r, None, dim), None, dim), r)
        self.near(trnfft.fft2(x), np.fft.fft2(x.astype("c16")))
        self.near(trnfft.rfft2(r, (8, 8)), np.fft.rfft2(r.astype("f8"), (8, 8)))
        self.near(trnfft.irfft2(trnfft.rfft2(r)), r)

    def test_what_is_refused(self):
        x = signal("c8", 4, 4)
        for call in (lambda: trnfft.rfft(x), lambda: trnfft.rfft(ComplexTensor(x)), lambda: trnfft.fft(x, n=0), lambda: trnfft.fftn(x, (3, 3), (0,)), lambda: trnfft.fftn(x, dim=(2,)),
                     lambda: trnfft.stft(x.real, 8), lambda: trnfft.stft(x.real, 4, hop_length=0), lambda: trnfft.stft(x.real, 4, pad_mode="mirror"), lambda: trnfft.istft(x, 8),
                     lambda: trnfft.stft(x.real, 4, window=np.ones(3)), lambda: trnfft.set_precision("quad"), lambda: trnfft.set_backend("gpu"), lambda: trnfft.create_plan(0)):
            with self.assertRaises(ValueError):
                call()
        for mode in ("bf16", "bf16_refined", "ozaki", "ozaki_hq"):
            with self.assertRaises(NotImplementedError):
                trnfft.set_precision(mode)


class Precision(Case):
    def test_double(self):
        x = signal("c8", 2000)
        want = np.fft.fft(x.astype("c16"))
        error = {}
        for mode in ("fast", "kahan", "double"):
            trnfft.set_precision(mode)
            self.assertEqual(trnfft.get_precision(), mode)
            got = trnfft.fft(x)
            self.assertEqual(got.dtype, np.float32)
            error[mode] = abs(got.to_torch_complex() - want).max()
        trnfft.set_precision("fast")
        self.assertLess(error["double"], error["fast"])
        self.assertEqual(error["double"], error["kahan"])


class Signals(Case):
    def test_windows(self):
        x = signal("f8", 2, 1000)
        window = np.hanning(64)
        for options in ({}, {"hop_length": 32}, {"center": False}, {"normalized": True}, {"onesided": False}, {"win_length": 40}, {"window": window}, {"pad_mode": "constant"}):
            got = trnfft.stft(x, 64, **options)
            hop = options.get("hop_length", 16)
            padded = x if options.get("center") is False else np.pad(x, ((0, 0), (32, 32)), mode=options.get("pad_mode", "reflect"))
            length = options.get("win_length", 64)
            shape = options.get("window", np.hanning(length + 1)[:-1])
            shape = np.pad(shape, ((64 - length) // 2,))
            frames = np.stack([padded[:, k:k + 64] * shape for k in range(0, padded.shape[1] - 63, hop)], -2)
            want = np.swapaxes(np.fft.fft(frames) if options.get("onesided") is False else np.fft.rfft(frames), -1, -2) / (8 if options.get("normalized") else 1)
            self.near(got, want, False)
            if "center" not in options:
                back = trnfft.istft(got, 64, length=1000, **{k: v for k, v in options.items() if k != "pad_mode"})
                np.testing.assert_allclose(back[:, 32:-64], x[:, 32:-64], atol=1e-9)

    @unittest.skipUnless(HAS_TORCH, "torch is not installed")
    def test_torch(self):
        import torch
        x = torch.randn(3, 2000)
        window = torch.hann_window(256)
        for options in ({}, {"hop_length": 100}, {"normalized": True}, {"onesided": False}, {"center": False}):
            want = torch.stft(x, 256, window=window, return_complex=True, **options)
            got = trnfft.stft(x, 256, window=window, **options)
            self.assertEqual((got.dtype, tuple(got.shape)), (torch.float32, tuple(want.shape)))
            torch.testing.assert_close(got.to_torch_complex(), want, rtol=1e-4, atol=1e-4)
            if "center" not in options:
                torch.testing.assert_close(trnfft.istft(got, 256, window=window, length=2000, **options), x, rtol=1e-3, atol=1e-3)
        for kind in (torch.float16, torch.bfloat16):
            got = trnfft.fft(ComplexTensor(x.to(kind), x.to(kind)))
            self.assertEqual(got.real.dtype, kind)
        torch.testing.assert_close(trnfft.fft(x).to_torch_complex(), torch.fft.fft(x), rtol=1e-4, atol=1e-3)
        with self.assertRaises(tdsl.DtypeError):
            trnfft.ihfft(torch.ones(8, requires_grad=True))

    @unittest.skipUnless(HAS_TORCH, "torch is not installed")
    def test_derivatives(self):
        import torch
        window = torch.hann_window(16, dtype=torch.float64)
        theirs, complex_of = torch.fft, lambda r, i: torch.complex(r, i)
        a, b = (torch.randn(3, 8, 24, dtype=torch.float64) for _ in range(2))
        cases = [(name, lambda f, r, i: f(complex_of(r, i))) for name in ("fft", "ifft", "fft2", "fftn", "ifftn", "irfft", "irfftn")]
        cases += [(name, lambda f, r, i: f(r)) for name in ("rfft", "rfftn")]
        cases += [("fft", lambda f, r, i: f(complex_of(r, i), n=10)), ("irfft", lambda f, r, i: f(complex_of(r, i), n=31)), ("rfftn", lambda f, r, i: f(r, s=(4, 30), dim=(2, 0)))]
        cases += [("stft", lambda f, r, i: f(r[0, 0], 16, window=window) if f is trnfft.stft else f(r[0, 0], 16, window=window, return_complex=True))]
        for name, call in cases:
            with self.subTest(name):
                found = []
                for module, wrap in ((trnfft, ComplexTensor), (theirs if name != "stft" else torch, None)):
                    r, i = a.clone().requires_grad_(), b.clone().requires_grad_()
                    given = (lambda f: lambda x, *p, **k: f(ComplexTensor(x.real, x.imag) if x.is_complex() else x, *p, **k)) if wrap else (lambda f: f)
                    f = getattr(module, name)
                    made = call(f if name == "stft" else given(f), r, i)
                    made = made.to_torch_complex() if isinstance(made, ComplexTensor) else made
                    (made.abs() ** 3).sum().backward()
                    found.append((made.detach(), r.grad, i.grad))
                for mine, want in zip(*found):
                    self.assertEqual(mine is None, want is None)
                    if want is not None:
                        torch.testing.assert_close(mine, want, rtol=1e-9, atol=1e-9)
        r, i = a[0, :3, :4].clone().requires_grad_(), b[0, :3, :4].clone().requires_grad_()
        self.assertTrue(torch.autograd.gradcheck(lambda r, i: trnfft.fft(ComplexTensor(r, i)).to_torch_complex(), (r, i)))
        self.assertTrue(torch.autograd.gradgradcheck(lambda r, i: trnfft.fft(ComplexTensor(r, i)).abs(), (r, i)))
        x = ComplexTensor(r, i)
        product = trnfft.complex_matmul(x, ComplexTensor(b[0, :4, :5], a[0, :4, :5])).abs().sum()
        want = (complex_of(r, i) @ complex_of(b[0, :4, :5], a[0, :4, :5])).abs().sum()
        for mine, theirs_ in zip(torch.autograd.grad(product, (r, i)), torch.autograd.grad(want, (r, i))):
            torch.testing.assert_close(mine, theirs_)


class Complex(Case):
    def test_of_numpy(self):
        self.operations(lambda a: a, lambda a: a)

    @unittest.skipUnless(HAS_TORCH, "torch is not installed")
    def test_of_torch(self):
        import torch
        self.operations(torch.from_numpy, lambda a: a.numpy())

    def operations(self, make, read):
        x, y = signal("c8", 4, 5), signal("c8", 4, 5)
        a, b = ComplexTensor(make(x)), ComplexTensor(make(y.real.copy()), make(y.imag.copy()))
        r = make(y.real.copy())
        same = lambda got, want: np.testing.assert_allclose(read(got.real) + 1j * read(got.imag), want, rtol=1e-5, atol=1e-5)
        for got, want in ((a + b, x + y), (a - b, x - y), (a * b, x * y), (-a, -x), (a * 2.0, 2 * x), (2 * a, 2 * x), (a + 1, x + 1), (1 + a, x + 1), (a - 1, x - 1), (1 - a, 1 - x),
                          (a * r, x * y.real), (a + r, x + y.real), (a.conj(), x.conj()), (a[1], x[1]), (a[:, 2:4], x[:, 2:4]), (a.reshape(2, 10), x.reshape(2, 10)), (a * 1j, x * 1j),
                          (a.transpose(0, 1), x.T), (a.unsqueeze(0), x[None]), (a.unsqueeze(0).squeeze(0), x), (a.clone(), x), (a @ b.transpose(0, 1), x @ y.T),
                          (ComplexTensor.from_polar(a.abs(), a.angle()), x), (ComplexTensor(r), y.real), (ComplexTensor(b.to_torch_complex()), y)):
            self.assertIsInstance(got, ComplexTensor)
            same(got, want)
        np.testing.assert_allclose(read(a.abs()), abs(x), rtol=1e-6)
        c = a.clone()
        c[0] = b[0]
        same(c, np.concatenate([y[:1], x[1:]]))
        same(a, x)
        self.assertEqual((tuple(a.shape), len(a), repr(a)[:27]), ((4, 5), 4, "ComplexTensor(shape=(4, 5),"))
        for call in (lambda: ComplexTensor(r, r[:2]), lambda: ComplexTensor(make(x), r), lambda: trnfft.complex_matmul(a, r)):
            with self.assertRaises(tdsl.Error):
                call()


class Emulated(unittest.TestCase):
    def test_the_emulator(self):
        text = """if True:
            import numpy as np, tdsl.trnfft as t
            from tdsl import _trnsci
            t.set_backend("nki")
            r = np.random.default_rng(1)
            near = lambda got, want: np.testing.assert_allclose(got, want, atol=2e-6 * abs(want).max())
            for n in (97, 256, 131):
                x = (r.standard_normal((3, n)) + 1j * r.standard_normal((3, n))).astype("c8")
                near(t.fft(x).to_torch_complex(), np.fft.fft(x))
                near(t.ifft(x).to_torch_complex(), np.fft.ifft(x))
            near(t.rfft(x.real[:, :128]).to_torch_complex(), np.fft.rfft(x.real[:, :128]))
            assert all(k.last.backend == "emulator" for p in _trnsci._programs.values() for k in p.kernels.values() if getattr(k, "last", None))
            try:
                t.fft(x.astype("c16"))
            except RuntimeError as error:
                print(error)"""
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", text], capture_output=True, text=True, env=dict(os.environ, TRNFFT_USE_SIMULATOR="1"), check=False)
        self.assertEqual(done.stdout, "this transform (f64; backend 'nki') has no NKI form, and one is required\n", done.stderr)


unittest.main()
