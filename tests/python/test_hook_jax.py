# SPDX-License-Identifier: Apache-2.0
"""tdsl.jax beside jax.numpy. Exits 77 without jax."""
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

try:
    import jax
except ImportError as error:
    print(f"skipped: {error}: `.ci/setup test` puts it into ~/.cache/tdsl-tests")
    sys.exit(77)
import numpy as np
import tdsl
import tdsl.jax

jax.config.update("jax_enable_x64", True)
from jax import numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

STRINGS = [("ij,jk->ik", (3, 4), (4, 5)), ("ij,jk", (3, 4), (4, 5)), ("ij->j", (3, 4)), ("ii->i", (3, 3)), ("iij->j", (3, 3, 2)), ("iii,j->ij", (3, 3, 3), (2,)),
           ("...ij,...jk->...ik", (2, 3, 4), (4, 2)), ("bij,bjk->bik", (1, 3, 4), (5, 4, 2)), ("i,i->", (3,), (3,)), ("iijj->ij", (2, 2, 3, 3)),
           ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)), ("ijij->", (2, 3, 2, 3)), ("i,j->", (3,), (4,))]
TWICE = "ij,jk->ik", "iii,j->ij", "bij,bjk->bik"  # second derivatives of these


def operands(shapes, dtype=np.float64):
    rng = np.random.default_rng(1)
    made = [rng.standard_normal(s) for s in shapes]
    return [jnp.asarray(a + 1j * a[::-1] if dtype == np.complex128 else a, dtype) for a in made]


class Jax(unittest.TestCase):
    def test_values(self):
        for text, *shapes in STRINGS:
            for dtype in (np.float32, np.float64, np.complex128):
                with self.subTest(text, dtype=dtype):
                    x = operands(shapes, dtype)
                    got = tdsl.jax.einsum(text, *x)
                    self.assertEqual(got.dtype, dtype)
                    np.testing.assert_allclose(got, np.einsum(text, *x), rtol=1e-4, atol=1e-5)
                    if dtype == np.float64:
                        np.testing.assert_allclose(jax.jit(lambda *y, t=text: tdsl.jax.einsum(t, *y))(*x), got)

    def test_derivatives(self):
        for text, *shapes in STRINGS:
            with self.subTest(text):
                check_grads(lambda *y, t=text: tdsl.jax.einsum(t, *y), operands(shapes), order=2 if text in TWICE else 1, modes=("fwd", "rev"), atol=1e-5, rtol=1e-5)

    def test_gradients_of_complex_numbers_are_jaxs(self):
        x = operands([(3, 4), (4, 5)], np.complex128)
        for f, g in ((tdsl.jax.einsum, jnp.einsum),):
            loss = lambda e: lambda a, b: jnp.abs(e("ij,jk->ki", a, b)).sum()
            for ours, theirs in zip(jax.grad(loss(f), (0, 1))(*x), jax.grad(loss(g), (0, 1))(*x)):
                np.testing.assert_allclose(ours, theirs, rtol=1e-10)

    def test_vmap(self):
        a, b = operands([(6, 3, 4), (4, 5)])
        got = jax.vmap(lambda x: tdsl.jax.einsum("ij,jk->ik", x, b))(a)
        np.testing.assert_allclose(got, np.asarray(a) @ np.asarray(b))
        got = jax.vmap(jax.grad(lambda x: tdsl.jax.einsum("ij,jk->", x, b)))(a)
        np.testing.assert_allclose(got, np.broadcast_to(np.asarray(b).sum(1), a.shape))

    def test_it_is_in_compiled_code(self):
        a, b = operands([(30, 40), (40, 50)], np.float32)
        step = jax.jit(jax.value_and_grad(lambda x: (tdsl.jax.einsum("ij,jk->ik", x, b) ** 2).sum()))
        value, grad = step(a)
        np.testing.assert_allclose(value, ((a @ b) ** 2).sum(), rtol=1e-4)
        np.testing.assert_allclose(grad, 2 * (a @ b) @ b.T, rtol=1e-3, atol=1e-2)

    def test_compiled_code_calls_no_python(self):
        for dtype, target in (np.float32, True), (np.float16, True), (jnp.bfloat16, True), (np.int8, False), (bool, True):
            a = jnp.asarray(np.arange(12).reshape(3, 4) % 3, dtype)
            f = jax.jit(lambda x: tdsl.jax.einsum("ij,kj->ik", x, x))
            text = f.lower(a).as_text()
            self.assertEqual(("@tdsl_einsum" in text, "python" in text and "callback" in text), (target, not target))
            self.assertEqual(f(a).dtype, dtype)
            wanted = np.asarray(a, float) @ np.asarray(a, float).T
            np.testing.assert_array_equal(f(a).astype(float), wanted > 0 if dtype is bool else wanted)
        donated = jax.jit(lambda x: tdsl.jax.einsum("ij,jk->ik", x, x), donate_argnums=0)
        np.testing.assert_array_equal(donated(jnp.ones((5, 5))), np.full((5, 5), 5.0))
        big = jnp.ones((300, 300))  # with a workspace
        np.testing.assert_array_equal(jax.jit(lambda x: tdsl.jax.einsum("ij,jk,kl->il", x, x, x))(big), np.full((300, 300), 90000.0))
        self.assertEqual(jax.jit(lambda x: tdsl.jax.einsum("ij,jk->ik", x, x.T))(jnp.ones((3, 0))).tolist(), [[0.0] * 3] * 3)

    def test_without_a_c_compiler_it_is_a_callback(self):
        text = """
import warnings, jax, numpy as np, tdsl, tdsl.jax
warnings.simplefilter("ignore", tdsl.SlowWarning)
f = jax.jit(lambda x: tdsl.jax.einsum("ij,kj->ik", x, x))
a = np.arange(6, dtype="f4").reshape(2, 3)
assert "@tdsl_einsum" not in f.lower(a).as_text() and (f(a) == a @ a.T).all()
"""
        done = subprocess.run([sys.executable, "-B", "-c", text], env={**os.environ, "TDSL_CC": "no-such-compiler"}, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_export(self):
        f = jax.jit(jax.grad(lambda x, y: (tdsl.jax.einsum("ij,jk->ik", x, y) ** 2).sum()))
        a, b = operands([(3, 4), (4, 5)], np.float32)
        exported = jax.export.export(f, disabled_checks=tdsl.jax.export_checks())(a, b)
        np.testing.assert_allclose(exported.call(a, b), f(a, b))
        if importlib.util.find_spec("flatbuffers") is None:
            return  # which serialize() needs
        with tempfile.NamedTemporaryFile() as file:
            file.write(exported.serialize())
            file.flush()
            text = """
import sys, jax, jax.export, numpy as np, tdsl.jax
f = jax.export.deserialize(bytearray(open(sys.argv[1], "rb").read()))
print(np.asarray(f.call(np.ones((3, 4), "f4"), np.ones((4, 5), "f4"))).tolist())
"""
            done = subprocess.run([sys.executable, "-B", "-c", text, file.name], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, f"{[[40.0] * 4] * 3}\n")

    def test_kernels_have_derivatives(self):
        program = tdsl.compile("""
kernel loss(W: f32[v, e], x: f32[n, e], t: i32[n]) -> (E: f32) {
    z[n,v] = x[n,e] * W[v,e];
    E = sum[n](logsumexp[v](z[n,v]) - z[n,t[n]]);
}
kernel complexes(z: c64[n], w: c64[n]) -> (y: c64[n], s: c64) { y[i] = exp(z[i]) * conj(w[i]); s = sum[i](z[i] * w[i]); }
""")
        W, x = operands([(7, 3), (5, 3)], np.float32)
        t = jnp.array([0, 6, 6, 1, 2], jnp.int32)
        ours = tdsl.jax.function(program.loss)
        theirs = lambda W, x, t: -jnp.take_along_axis(jax.nn.log_softmax(x @ W.T), t[:, None], 1).sum()
        for got, wanted in zip(jax.jit(jax.grad(ours, argnums=(0, 1)))(W, x, t), jax.grad(theirs, argnums=(0, 1))(W, x, t)):
            np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=1e-4)
        z, w = (jnp.asarray(a + 1j * b, jnp.complex64) for a, b in (operands([(4,), (4,)], np.float32), operands([(4,), (4,)], np.float32)))
        count = lambda f: jax.grad(lambda *v: jnp.real(f(*v)[0].sum() * (1 + 2j) + f(*v)[1] * 3j), argnums=(0, 1))(z, w)
        for got, wanted in zip(count(tdsl.jax.function(program.complexes)), count(lambda z, w: (jnp.exp(z) * jnp.conj(w), (z * w).sum()))):
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
        self.assertIn("@tdsl_kernel", jax.jit(ours).lower(W, x, t).as_text())
        for transform in (lambda l: jax.vmap(jax.grad(l), in_axes=(None, 0, None))(W, jnp.stack([x, 2 * x]), t), lambda l: jax.jacrev(jax.grad(l))(W, x, t),
                          lambda l: jax.grad(lambda v: (jax.grad(l)(v, x, t) ** 2).sum())(W)):
            np.testing.assert_allclose(transform(ours), transform(theirs), rtol=1e-3, atol=1e-4)
        exported = jax.export.export(jax.jit(jax.grad(ours)), disabled_checks=tdsl.jax.export_checks())(W, x, t)
        np.testing.assert_allclose(exported.call(W, x, t), jax.grad(theirs)(W, x, t), rtol=1e-3, atol=1e-4)
        with self.assertRaisesRegex(Exception, "has 7 positions, and t.n. is 9 at n = 4"):
            jax.block_until_ready(jax.jit(ours)(W, x, t + jnp.asarray([0, 0, 0, 0, 7], jnp.int32)))
        with self.assertRaises(tdsl.ShapeError):
            jax.eval_shape(ours, W, jnp.ones((5, 4), jnp.float32), t)

    def test_shapes_are_looked_at_while_tracing(self):
        for call in (lambda: jax.eval_shape(lambda x, y: tdsl.jax.einsum("ij,jk->ik", x, y), jnp.ones((2, 3)), jnp.ones((4, 5))),
                     lambda: jax.jit(lambda x: tdsl.jax.einsum("ii->i", x))(jnp.ones((2, 3)))):
            with self.assertRaises(tdsl.ShapeError):
                call()

    def test_other_forms_and_keywords(self):
        a, b = operands([(3, 4), (4, 5)], np.float32)
        np.testing.assert_allclose(tdsl.jax.einsum(a, [0, 1], b, [1, 2], [0, 2]), a @ b, rtol=1e-5)
        got = tdsl.jax.einsum("ij,jk->ik", a, b, optimize="optimal", precision="highest", preferred_element_type=jnp.float64)
        self.assertEqual(got.dtype, np.float64)
        np.testing.assert_allclose(got, np.asarray(a, np.float64) @ np.asarray(b, np.float64), rtol=1e-13)
        self.assertEqual(tdsl.jax.einsum("ij->", a, preferred_element_type=jnp.bfloat16).dtype, jnp.bfloat16)
        with self.assertRaises(tdsl.ArgumentError):
            tdsl.jax.einsum("ij->", a, out=a)

    def test_types_promote_and_mistakes_are_told(self):
        got = tdsl.jax.einsum("i,i->i", jnp.ones(3, jnp.float32), jnp.ones(3, jnp.int32))
        self.assertEqual(got.dtype, jnp.result_type(jnp.float32, jnp.int32))
        for call in (lambda: tdsl.jax.einsum("ij", jnp.ones(3)), lambda: tdsl.jax.einsum("i->j", jnp.ones(3)), lambda: tdsl.jax.einsum("i,i", jnp.ones(3))):
            with self.assertRaises(ValueError):
                call()

    def test_arrays_of_jax_go_to_tdsl_einsum(self):
        a = jnp.arange(6.0).reshape(2, 3)
        self.assertEqual(tdsl.einsum("ij->i", a).tolist(), [3, 12])
        self.assertEqual(tdsl.einsum("i,i->", jnp.ones(3, jnp.bfloat16), jnp.ones(3, jnp.bfloat16)), 3)


unittest.main()
