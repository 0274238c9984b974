# SPDX-License-Identifier: Apache-2.0
"""Programs made from jaxprs give what jax gives: of whole numbers the same, of others within a bound of their roundings. What is unknown is named."""
import importlib.util
import sys
import unittest

import numpy as np

import tdsl

if importlib.util.find_spec("jax") is None:
    print("skipped: jax is not installed")
    sys.exit(77)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

RANDOM = np.random.default_rng(1)


def whole(*shape, dtype=np.float32, low=-5, high=6):
    return RANDOM.integers(low, high, shape).astype(dtype)


X, Y = whole(3, 4), whole(4, 5)
ROWS, ELEMENTS = np.array([2, 0, 1, 1], np.int32), np.array([[2, 0], [1, 1], [3, 2]], np.int32)
SHORT = {"dtype": np.int8, "low": -100, "high": 100}
EXACT = [
    (lambda x, y: x @ y, X, Y), (lambda x: x.T, X), (lambda x: x, X), (lambda x: x[1:, ::2], X), (lambda x: x[::-1] + 1, X), (lambda x: (x * 2).reshape(12)[3:7], X),
    (lambda x: jnp.concatenate([x, 2 * x], 1), X), (lambda x: jnp.concatenate([x, 2 * x], 1).sum(0), X), (lambda x: jnp.stack([x, x + 1]), X), (lambda x: jnp.tile(x, (2, 3)), X),
    (lambda x: jnp.pad(x, ((1, 0), (0, 2))), X), (lambda x: jnp.pad(x, ((1, 0), (0, 2))) * 2, X), (lambda x: jnp.repeat(x, 2, axis=0), X), (lambda x: jnp.roll(x, 1, axis=0), X),
    (lambda x: jnp.cumsum(x[:, ::-1], 1), X), (lambda x: jax.lax.cummax(x, axis=0, reverse=True), X), (lambda x: jnp.argmax(x, 1), X), (lambda x: jnp.argmax(x), X),
    (lambda x: x.reshape(2, 6), X), (lambda x: x.reshape(2, 2, 3).sum((0, 2)), X), (lambda x: jnp.ravel(x @ x.T), X), (lambda x: jnp.outer(x[0], x[1]).reshape(-1).cumsum(), X),
    (lambda x: (x * 2).reshape(12) + jnp.arange(12.0), X), (lambda x: jnp.where(x > 0, x, -1), X), (lambda x: (x > 0) & ~(x < 3), X), (lambda x: x.astype(jnp.int32) // 3, X),
    (lambda x: x.astype(jnp.int32) % 3, X), (lambda x: x % 3, X), (lambda x: x**3 + x**2 - x**4, X), (lambda x: jnp.clip(x, -1, 2), X), (lambda x: sum(jnp.split(x, 2, axis=1)), X),
    (lambda x: (x.sum(), x.max(1), x.min(0), x[:2, :3].prod(), (x > 0).any(), (x > 0).all(1)), X), (lambda x: jnp.eye(4)[:3] * x, X), (lambda x: jnp.tril(x[:, :3]) @ jnp.triu(x[:, 1:]), X),
    (lambda x, i: x[i], X, ROWS), (lambda x, i: x[:, i], X, ROWS), (lambda x, i: jnp.take(x, i - 2, axis=1, mode="clip"), X, 3 * ROWS), (lambda x, i, j: x[i, j], X, ROWS, ROWS[::-1].copy()),
    (lambda x, i: jnp.take(x, 2 * i - 1, axis=0, mode="fill"), X, ROWS), (lambda x, i: jnp.take_along_axis(x, i, 1), X, ELEMENTS), (lambda i: jax.nn.one_hot(i, 5), ROWS),
    (lambda x, w, b: jax.nn.relu(x @ w + b), X, Y, whole(5)), (lambda x, w, b: x @ w + (b + 2 * (x @ w)), X, Y, whole(5)), (lambda x, w, b: -(x @ w - b) * 2, X, Y, whole(5)),
    (lambda x, w, b: b - (x @ w + b), X, Y, whole(5)), (lambda x, w: (x @ w) * (x @ w) - x @ w, X, Y), (lambda x, w, b: jnp.where(x @ w + b > 0, b, x @ w), X, Y, whole(5)), (lambda a, b: a @ b + a @ b, whole(3, 4, **SHORT), whole(4, 3, **SHORT)),
    (lambda x, w, b: jnp.abs(b / 1 - x @ w), X, Y, whole(5)), (lambda x, w, b: jnp.maximum(b - x @ w - x @ w.T[:4].T @ jnp.eye(4, 5), 0), X, Y, whole(5)),
    (lambda x, k: jax.lax.conv_general_dilated(x, k, (1, 1), "SAME"), whole(2, 3, 5, 6), whole(4, 3, 3, 3)), (lambda x, k: jnp.convolve(x, k), whole(7), whole(3)),
    (lambda x, k: jax.lax.conv_general_dilated(x, k, (2, 1), "VALID", rhs_dilation=(1, 2), dimension_numbers=("NHWC", "HWIO", "NHWC")), whole(2, 5, 9, 3), whole(3, 2, 3, 4)),
    (lambda a, b: jnp.einsum("bij,bjk,kl->lbi", a, b, b[0].T), whole(2, 3, 4), whole(2, 4, 5)), (lambda a: jnp.einsum("ii->i", a), whole(3, 3)), (lambda a: jnp.trace(a), whole(3, 3)),
    (lambda a: jnp.squeeze(a, 1)[:, None, :, None] * 2, whole(3, 1, 4)), (lambda a, b: a + b, whole(3, 1), whole(1, 4)), (lambda a, b: jnp.kron(a, b), whole(2, 3), whole(4, 2)),
    (lambda a: a.astype(jnp.float32).sum(1), whole(3, 4, dtype=np.int8)), (lambda a, b: a + b * 3, whole(3, 4, **SHORT), whole(3, 4, **SHORT)),
    (lambda a, b: a - b * 3, whole(3, 4, dtype=np.uint32, low=0), whole(3, 4, dtype=np.uint32, low=0)), (lambda a: a.astype(jnp.bfloat16) * 2, X), (lambda a: a.sum(0), whole(0, 3)),
    (lambda a, b: jax.lax.dot(a, b, preferred_element_type=jnp.int32), whole(3, 4, **SHORT), whole(4, 3, **SHORT)), (lambda a, b: a @ b, whole(3, 4, dtype=np.complex64), whole(4, 3, dtype=np.complex64)),
    (lambda a: (jnp.conj(a), a.real, a.imag * 2), whole(3, 4, dtype=np.complex64)), (lambda a, b: jax.lax.complex(a, b), X, X), (lambda a, b: jnp.cross(a, b), whole(5, 3), whole(5, 3)),
    (jax.grad(lambda x, i: jnp.sum(x[i] ** 2)), X, ROWS), (jax.grad(lambda x, i: jnp.sum(x[jnp.arange(3), i] ** 2)), X, ROWS[1:].copy()), (lambda x, i, u: x.at[:, i].add(u), X, ROWS - 2, whole(3, 4)),
    (lambda x, i, j, u: x.at[i, j].add(u, mode="drop"), X, 2 * ROWS, ROWS, whole(4)), (lambda x: x.sum(0, keepdims=True).sum(0), X),
    (jax.vmap(lambda a, b: a @ b), whole(2, 3, 4), whole(2, 4, 5)), (jax.grad(lambda w, x: jnp.sum((x @ w) ** 2)), whole(4, 2), X), (lambda a: jnp.full((2, 3), 7.0) + a[0], X[:, :3].copy()),
]
# Numbers of at most 5 in size. A path from an argument to a result has at most 60 operations, each with a rounding of 3 units or less of what is at most
# 5 times the result's scale (sums here have up to 20 terms of one sign or bounded by that); exp turns an absolute error of its operand into a relative one, at most 5
# roundings more. So 60 * 3 * 5 * 2**-24 of the scale is never reached.
BOUND = 60 * 3 * 5 * 2.0**-24
ROUNDED = [
    (lambda a: jax.nn.silu(a) + jax.nn.gelu(a, approximate=False) + jax.nn.gelu(a) + jax.nn.softplus(a) + jax.nn.relu(a) + jax.nn.sigmoid(a), X), (lambda a: jax.nn.log_softmax(a), X),
    (lambda a: jnp.exp2(a) + jnp.expm1(a) + jnp.log1p(abs(a)) + jnp.sin(a) + jnp.cos(a) + jnp.arctan2(a, a + 9) + jnp.sqrt(abs(a)), X), (lambda a: jnp.abs(a), whole(3, 4, dtype=np.complex64)),
    (lambda a: jax.lax.rsqrt(abs(a) + 1) + jnp.floor(a / 2) + jnp.sign(a) + jnp.isfinite(a / a) + jnp.isnan(a / a) + jnp.power(abs(a) + 1, a / 4) + jnp.tanh(a), X),
    (lambda a: jnp.mean(a) + jnp.std(a) + jnp.linalg.norm(a), X), (jax.grad(lambda w, x: jnp.sum(jnp.tanh(x @ w) ** 2)), whole(4, 2) / 8, X / 8), (jax.grad(jax.nn.logsumexp), X),
    (jax.grad(lambda w, x, t: -jnp.mean(jax.nn.log_softmax(x @ w)[jnp.arange(x.shape[0]), t])), whole(4, 3) / 8, X / 8, ROWS[:3].copy()),
    (lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True), *(whole(2, 5, 3, 4) / 4 for _ in range(3))),
]


def chain(random):
    """A function of x[2,3,4] and w[4,6] of some random operations, none of which makes numbers too large to be exact."""
    steps = [int(n) for n in random.integers(0, 14, 7)]
    orders = [random.random() for _ in steps]

    def f(x, w):
        for n, r in zip(steps, orders):
            if n == 0:
                x = jnp.transpose(x, np.argsort((np.arange(x.ndim) * (1 + r) * 7) % 3))
            elif n == 1 and x.size % 4 == 0:
                x = x.reshape(4, -1) if r < 0.5 else x.reshape(-1, 2, 2)
            elif n == 2 and x.ndim > 1:
                x = x.reshape(-1, x.shape[-1])
            elif n == 3 and x.ndim > 1:
                x = x.sum(int(r * x.ndim)) % 7
            elif n == 4 and x.shape[-1] == 4:
                x = (x @ w) % 5
            elif n == 5:
                x = x[tuple(slice(None, None, -1) if (k + n) % 2 else slice(int(m > 2), None) for k, m in enumerate(x.shape))]
            elif n == 6:
                x = jnp.where(x > 0, x, 1 - x) + (x * x) % 3
            elif n == 7:
                x = jnp.concatenate([x, 2 * x], int(r * x.ndim))
            elif n == 8:
                x = x[:, None] * jnp.ones((1, 2) + (1,) * (x.ndim - 1), x.dtype)
            elif n == 9:
                x = jnp.cumsum(x, int(r * x.ndim)) % 11
            elif n == 10:
                x = x + jnp.arange(x.shape[-1])
            elif n == 12:
                x = jnp.take(x, jnp.arange(x.shape[-1])[::-1] // 2, axis=-1)
            elif n == 13:
                x = jax.grad(lambda y: (y[..., :1] * y[..., 1:] * jnp.sign(y[..., jnp.arange(1, y.shape[-1])])).sum())(x) % 9 if x.shape[-1] > 1 else x
            elif n == 11:
                x = jnp.einsum("...i,...j->...ij", x, x[..., :2]) % 13 if x.ndim < 4 else x.max(-1)
        return x
    return f


def attention(q, k, v):
    s = q @ k.T / 8
    p = jax.nn.softmax(s)
    return p @ v


def heads(x, wq, wk, wo):
    q = (x @ wq).reshape(5, 2, 4)
    k = (x @ wk).reshape(5, 2, 4)
    s = jnp.einsum("qhd,khd->hqk", q, k)
    s = jnp.where(jnp.tril(jnp.ones((5, 5), bool)), s, 0)
    o = jnp.einsum("hqk,khd->qhd", s, k).reshape(5, 8)
    return x + o @ wo


class Jaxpr(unittest.TestCase):
    def all_of(self, cases):
        """Of each result of each case: what the program gives, what jax gives, and the program. All are compiled as one."""
        made = [tdsl.from_jaxpr(jax.make_jaxpr(f)(*arrays), name=f"f{n}") for n, (f, *arrays) in enumerate(cases)]
        program = tdsl.compile("\n".join(m.text for m in made))
        for n, (f, *arrays) in enumerate(cases):
            got = program[f"f{n}"](*arrays, **made[n].arrays)
            want = [np.asarray(w) for w in jax.tree_util.tree_leaves(f(*map(jnp.asarray, arrays)))]
            got = [np.asarray(g) for g in (got if isinstance(got, tuple) else (got,))]
            self.assertEqual([(g.shape, g.dtype) for g in got], [(w.shape, w.dtype) for w in want], made[n])
            yield from zip(got, want, [made[n]] * len(got))

    def test_whole_numbers(self):
        for got, want, made in self.all_of(EXACT):
            np.testing.assert_array_equal(got, want, str(made))

    def test_roundings(self):
        for got, want, made in self.all_of(ROUNDED):
            np.testing.assert_allclose(got, want, rtol=BOUND, atol=BOUND * np.abs(want).max(), err_msg=str(made))

    def test_random_chains(self):
        """Views, sums, products and elementwise operations in any order: what is left of an axis is read where it is stored."""
        cases = [(chain(np.random.default_rng(seed)), whole(2, 3, 4), whole(4, 6)) for seed in range(20, 44)]
        for got, want, made in self.all_of(cases):
            np.testing.assert_array_equal(got, want, str(made))

    def test_deep_programs_end(self):
        def doubled(x):
            for _ in range(100):
                x = x + x
            return x.reshape(-1)[2:5]

        def counted(x):
            i = jnp.arange(4)
            for _ in range(60):
                i = i + i
            return x * i

        def turned(x):
            for _ in range(3000):
                x = x.T
            return x
        for f in doubled, counted:
            self.assertLess(len(tdsl.from_jaxpr(jax.make_jaxpr(f)(X)).text), 20000)
        self.assertRaisesRegex(tdsl.ConversionError, "nested too deep", tdsl.from_jaxpr, jax.make_jaxpr(turned)(X))

    def test_text(self):
        line = attention.__code__.co_firstlineno
        made = tdsl.from_jaxpr(jax.make_jaxpr(attention)(np.ones((3, 4), np.float32), np.ones((5, 4), np.float32), np.ones((5, 6), np.float32)))
        self.assertEqual(made.text.split("\n", 1)[1], f"""\
kernel attention(q: f32[3, 4], k: f32[5, 4], v: f32[5, 6]) -> (y: f32[3, 6]) {{
    // test_convert_jaxpr.py:{line + 1}: s = q @ k.T / 8
    s[i,j] = q[i,l] * k[j,l] / 8;
    // test_convert_jaxpr.py:{line + 2}: p = jax.nn.softmax(s)
    largest[i] = max[j](s[i,j]);
    t[i,j] = exp(s[i,j] - largest[i]);
    total[i] = sum[j](t[i,j]);
    p[i,j] = t[i,j] / total[i];
    // test_convert_jaxpr.py:{line + 3}: return p @ v
    y[i,j] = p[i,l] * v[l,j];
}}
""")

    def test_heads_are_digits(self):
        arrays = whole(5, 8), whole(8, 8), whole(8, 8), whole(8, 8)
        made = tdsl.from_jaxpr(jax.make_jaxpr(heads)(*arrays))
        self.assertIn("q[i,j < 2,k < 4] = x[i,l] * wq[l,4*j + k];", made.text)
        self.assertIn("select(index(j) >= index(l), s[i,j,l], 0)", made.text)
        np.testing.assert_array_equal(made.compile().heads(*arrays), heads(*arrays) * 1.0)

    def test_open_dims(self):
        m, n, k = jax.export.symbolic_shape("m, n, k")
        shaped = [jax.ShapeDtypeStruct(s, np.float32) for s in ((m, n), (k, n), (k, n))]
        program = tdsl.from_jaxpr(jax.make_jaxpr(lambda q, k, v: ((q @ k.T) @ v, q.reshape(m * n), k.sum() * q.shape[0]))(*shaped), name="f").compile()
        self.assertEqual(program.f.signature, "kernel f(q: f32[m, n], k: f32[k, n], v: f32[k, n]) -> (y1: f32[m, n], y2: f32[m * n], y3: f32)")
        q, k, v = whole(2, 3), whole(4, 3), whole(4, 3)
        for got, want in zip(program.f(q, k, v), ((q @ k.T) @ v, q.reshape(6), k.sum() * 2)):
            np.testing.assert_array_equal(got, want)

    def test_constants_come_along(self):
        table = whole(4, 3)
        made = tdsl.from_jaxpr(jax.make_jaxpr(lambda x: x @ table + np.float32(2))(X), name="f", results=["out"])
        self.assertEqual(list(made.arrays), ["c"])
        np.testing.assert_array_equal(made.compile().f(X, **made.arrays), X @ table + 2)
        self.assertIn("-> (out: f32[3, 3])", made.text)

    def test_unknown(self):
        def f(x):
            a = jnp.sort(x)
            b = jnp.linalg.qr(x)[0]
            return a + b, jax.lax.scan(lambda c, r: (c + r, c), x[0], x)[1], jnp.round(x)
        line = f.__code__.co_firstlineno
        with self.assertRaises(tdsl.ConversionError) as caught:
            tdsl.from_jaxpr(jax.make_jaxpr(f)(X[:, :3]))
        here = "test_convert_jaxpr.py"
        self.assertEqual(str(caught.exception), f"""\
jaxpr: 3 things have no translation into the language:
  {here}:{line + 1}: a = jnp.sort(x): the operation sort
  {here}:{line + 2}: b = jnp.linalg.qr(x)[0]: the operation qr
  {here}:{line + 3}: return a + b, jax.lax.scan(lambda c, r: (c + r, c), x[0], x)[1], jnp.round(x): the operation scan""")
        self.assertEqual(len(caught.exception.unknown), 3)
        self.assertRaisesRegex(tdsl.ConversionError, "takes what jax.make_jaxpr.* gives, not int", tdsl.from_jaxpr, 3)
        self.assertRaisesRegex(tdsl.ConversionError, "2 names, and the function gives 1", tdsl.from_jaxpr, jax.make_jaxpr(jnp.sin)(1.0), results=["a", "b"])


unittest.main()
