# SPDX-License-Identifier: Apache-2.0
"""Kernels whose extents are arithmetic with open dims: calls, new results of computed shapes, and what is refused with both numbers."""
import os
import tempfile
import unittest

import numpy as np
import tdsl
import tdsl.nki

TEXT = """
kernel second(x: f64[n]) -> (y: f64[n - 2]) { y[i] = x[i] - 2*x[i + 1] + x[i + 2]; }
kernel fir(w: f64[k], x: f64[n + k - 1]) -> (y: f64[n]) { y[i] = w[d] * x[i + d]; }
kernel conv(x: f64[n + 2*p], w: f64[k]) -> (y: f64[(n + 2*p - k)/2 + 1]) { y[i] = x[2*i + d] * w[d]; }
kernel heads(X: f64[s, h*dh], g: f64[h]) -> (y: f64[s, h*dh], z: f64[h, dh]) { y[i,j] = X[i,j] * 2; z[a,b < dh] = g[a]; }
kernel inside(x: f64[n]) -> (s: f64) { s = sum[i < n - 2](x[i] * x[i + 2]); }
kernel plain(x: f64[n]) -> (y: f64[n]) { y[i] = x[i] + 1; }
"""
X = np.arange(7.0) ** 2


class Extents(unittest.TestCase):
    def setUp(self):
        self.p = tdsl.compile(TEXT)

    def equal(self, got, wanted):
        self.assertEqual(got.shape, wanted.shape)
        np.testing.assert_array_equal(got, wanted)

    def test_results_have_computed_shapes(self):
        for _ in range(3):  # the later ones by calls that were prepared
            for n in (2, 3, 7):
                self.equal(self.p.second(X[:n]), np.diff(X[:n], 2))
                for k in (1, 2):
                    self.equal(self.p.fir(X[1:1 + k], X[:n]), np.convolve(X[:n], X[1:1 + k][::-1], "valid"))
            y, z = self.p.heads(np.ones((2, 6)), np.arange(3.0))
            self.equal(y, np.full((2, 6), 2.0))
            self.equal(z, np.repeat([[0.0], [1.0], [2.0]], 2, 1))
            self.equal(self.p.conv(X, np.ones(3), dims={"p": 2}), np.array([X[k:k + 3].sum() for k in (0, 2, 4)]))
            self.assertEqual(self.p.inside(X[:5]), (X[:3] * X[2:5]).sum())
            self.assertEqual(self.p.inside(X[:2]), 0)
            self.equal(self.p.plain(X[:1]), np.ones(1))
        out = np.zeros(5)
        self.assertIs(self.p.second(X, out=out), out)
        self.equal(out, np.diff(X, 2))

    def test_the_signature_is_the_head(self):
        self.assertEqual(repr(self.p.fir), "<kernel fir(w: f64[k], x: f64[n + k - 1]) -> (y: f64[n])>")
        self.assertEqual(self.p.fir.dims, ["k", "n"])
        self.assertEqual(self.p.heads.args[0].shape, ("s", "h*dh"))
        self.assertEqual(self.p.conv.args[2].shape, ("(n + 2*p + 2 - k)/2",))

    def test_what_disagrees_is_a_shape_error(self):
        p, ones = self.p, np.ones
        for call, words, argument in (
                (lambda: p.second(ones(1)), "the extent n - 2 would be -1", None),
                (lambda: p.second(X, out=ones(4)), "axis 0 of 'y' is 4, not 5 (n - 2)", "y"),
                (lambda: p.fir(ones(9), ones(7)), "axis 0 of 'x' is 7, which k + n - 1 cannot be", "x"),
                (lambda: p.fir(ones(2), X, out=ones(5)), "axis 0 of 'x' is 7, not 6 (k + n - 1)", "x"),
                (lambda: p.fir(ones(2), X, dims={"n": 8}), "axis 0 of 'x' is 7, not 9 (k + n - 1)", "x"),
                (lambda: p.heads(ones((2, 7)), ones(3)), "axis 1 of 'X' is 7, which h*dh cannot be", "X"),
                (lambda: p.heads(ones((2, 6)), ones(3), out={"y": ones((2, 8))}), "axis 1 of 'y' is 8, not 6 (h*dh in axis 1 of 'X')", "y"),
                (lambda: p.inside(ones(1)), "the extent n - 2 would be -1", None)):
            with self.assertRaises(tdsl.ShapeError) as caught:
                call()
            self.assertIn(words, str(caught.exception))
            self.assertEqual(caught.exception.argument, argument)
        for call, words in ((lambda: p.conv(X, ones(3)), "no array says how large n is"),
                            (lambda: p.heads(ones((2, 0)), ones(0)), "no array says how large dh is")):
            with self.assertRaisesRegex(tdsl.ArgumentError, words):
                call()
        y, z = p.heads(ones((2, 0)), ones(0), dims={"dh": 4})
        self.assertEqual((y.shape, z.shape), ((2, 0), (0, 4)))


HEADS = "kernel heads(X: f32[s, h*dh - 1], g: f32[h, dh]) -> (y: f32[s, h*dh - 1], z: f32[h, dh]) { y[i,j] = X[i,j] * 2; z[a,b] = g[a,b] + 1; }"


class Devices(unittest.TestCase):
    def test_forms_are_of_numbers(self):
        x, g = np.arange(60, dtype="f4").reshape(4, 15), np.ones((2, 8), "f4")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "heads.tdsl")
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(HEADS)
            tdsl.nki.compile(path, os.path.join(folder, "out"), s=4, h=2, dh=8)
            for program in (None, path):
                p = tdsl.nki.load(os.path.join(folder, "out"), program=program, backend="emulator")
                y, z = p.heads(x, g)
                np.testing.assert_array_equal(y, 2 * x)
                np.testing.assert_array_equal(z, g + 1)
                with self.assertRaisesRegex(tdsl.ShapeError, "axis 1 of 'X' is 14, not 15"):
                    p.heads(x[:, :14].copy(), g)
            p = tdsl.nki.load(os.path.join(folder, "out"), program=path)
            self.assertEqual(p.heads(x[:3, :5].copy(), g[:, :3].copy())[0].shape, (3, 5))
            self.assertEqual((p.heads.last.backend, p.heads.last.reason), ("c", "other_extents"))


class Interpreted(Extents):
    """The same where there is no C compiler."""

    def setUp(self):
        saved = os.environ.get("TDSL_CC")

        def restore():
            os.environ.pop("TDSL_CC")
            if saved is not None:
                os.environ["TDSL_CC"] = saved
        os.environ["TDSL_CC"] = "no-such-compiler"
        self.addCleanup(restore)
        super().setUp()


if __name__ == "__main__":
    unittest.main(warnings="ignore")
