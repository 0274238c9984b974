# SPDX-License-Identifier: Apache-2.0
"""tdsl.trntensor on arrays of NumPy: the cases of tests/data/seed.json. With torch: test_hook_torch.py."""
import importlib.util
import json
import os
import subprocess
import sys
import unittest

import numpy as np
import tdsl.trntensor as trntensor

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "..", "data", "seed.json"), encoding="utf-8") as f:
    SEED = json.load(f)
LIMIT = 1 << 24  # multiply-adds of a case
GROUPS = "unit", "multi", "path", "scale", "dtype", "plan_exec", "blog", "umbrella", "docs", "known"
# What trntensor's tests decompose, and how near they want it.
DECOMPOSITIONS = [
    {"op": "cp", "shape": [4, 5, 3], "rank": 1, "err": 0.01}, {"op": "cp", "shape": [8, 6, 4], "rank": 3, "err": 0.05},
    {"op": "cp", "shape": [5, 4, 3], "rank": 2, "max_iter": 5}, {"op": "cp", "shape": [4, 5, 3], "rank": 2, "init": "zeros", "atol": 1e-5},
    {"op": "cp", "shape": [3, 4, 5], "rank": 6}, {"op": "cp", "shape": [6, 5, 4], "rank": 2, "err": 0.05},
    {"op": "cp", "shape": [3, 4], "rank": 2, "err": 0.05}, {"op": "cp", "shape": [3, 4, 2, 5], "rank": 2, "err": 0.05},
    {"op": "cp_nonneg", "shape": [4, 5, 3], "rank": 3}, {"op": "cp_nonneg", "shape": [5, 4, 3], "rank": 4, "err": 0.5},
    {"op": "cp_warm", "shape": [4, 5, 3], "rank": 2}, {"op": "tucker", "shape": [4, 3, 5], "ranks": [4, 3, 5], "atol": 1e-4},
    {"op": "tucker", "shape": [10, 8, 6], "ranks": [3, 3, 3], "err": 1.0}, {"op": "tucker", "shape": [8, 6, 4], "ranks": [3, 3, 3]},
    {"op": "tucker", "shape": [10, 8, 6], "ranks": [4, 3, 2]}, {"op": "tt", "shape": [4, 5, 3], "max_rank": 10},
    {"op": "tt", "shape": [5, 6, 4], "max_rank": 2}, {"op": "tt", "shape": [4, 5, 3], "max_rank": 20, "err": 0.01},
    {"op": "tt", "shape": [4, 5, 3], "max_rank": 1, "init": "rank 1", "err": 1e-4}, {"op": "tt", "shape": [3, 4, 5, 2], "max_rank": 6},
]
STUB = os.environ.get("TDSL_STUB", "")


def normal(*shape, scale=1.0):
    return (np.random.standard_normal(shape) * scale).astype(np.float32)


def energy(B, eo, ev):
    """DF-MP2 by NumPy in f64."""
    T = np.einsum("iap,jbp->iajb", *[np.asarray(B, np.float64)] * 2, optimize=True)
    eo, ev = np.asarray(eo, np.float64), np.asarray(ev, np.float64)
    D = eo[:, None, None, None] + eo[None, None, :, None] - ev[None, :, None, None] - ev[None, None, None, :]
    return (T * (2 * T - T.transpose(0, 3, 2, 1)) / D).sum()


class Names(unittest.TestCase):
    def test_there_are_all(self):
        theirs = """ShardedTensor scatter gather shard_boundaries einsum multi_einsum ContractionPlan plan_contraction estimate_flops clear_plan_cache plan_cache_info cp_decompose cp_reconstruct
            tucker_decompose tucker_reconstruct tt_decompose tt_reconstruct HAS_NKI set_backend get_backend to_xla from_xla mp2_energy ao_to_mo_transform""".split()
        self.assertEqual(sorted(theirs), sorted(trntensor.__all__))
        for name in theirs:
            getattr(trntensor, name)


    def test_modules(self):
        import tdsl.trntensor.nki.dispatch as dispatch
        from tdsl.trntensor.decompose import cp_decompose
        from tdsl.trntensor.einsum import einsum
        from tdsl.trntensor.nki import HAS_NKI, get_backend, set_backend
        from tdsl.trntensor.plan import ContractionPlan, plan_contraction
        from tdsl.trntensor.quantum import ao_to_mo_transform, mp2_energy
        for made in (cp_decompose, einsum, ContractionPlan, plan_contraction, ao_to_mo_transform, mp2_energy):
            self.assertIs(made, getattr(trntensor, made.__name__))
        self.assertEqual((trntensor.__version__, HAS_NKI, dispatch.HAS_NKI), ("0.4.0", trntensor.HAS_NKI, trntensor.HAS_NKI))
        self.assertEqual((dispatch._MIN_NKI_FLOPS, dispatch._MIN_NKI_FLOPS_PINNED, dispatch._REQUIRE_NKI), (2e9, 1e9, False))
        set_backend("pytorch")
        self.assertEqual((trntensor.get_backend(), get_backend(), dispatch.get_backend()), ("pytorch",) * 3)
        set_backend("auto")
        a, b = normal(3, 4, 5), normal(3, 5, 2)
        np.testing.assert_allclose(dispatch.nki_batched_matmul(a, b), a @ b, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(dispatch.nki_matmul(a[0], b[0]), a[0] @ b[0], rtol=1e-4, atol=1e-5)


class Einsum(unittest.TestCase):
    def setUp(self):
        np.random.seed(1)

    def test_the_cases(self):
        """Those of trntensor's own tests and documents, and the strings that it gets wrong ("known")."""
        ran = 0
        for case in SEED["einsum"]:
            if case["id"].partition("-")[0] not in GROUPS or np.prod([float(n) for s in case["shapes"] for n in s]) > LIMIT:
                continue
            with self.subTest(case["id"]):
                arrays = [normal(*s) for s in case["shapes"]]
                want = np.einsum(case["eq"], *(a.astype(np.float64) for a in arrays), optimize=True)
                np.testing.assert_allclose(trntensor.einsum(case["eq"], *arrays), want, rtol=1e-4, atol=1e-4)
            ran += 1
        self.assertGreater(ran, 60)

    def test_alpha_and_beta(self):
        a, b, c = normal(4, 3), normal(3, 5), normal(4, 5)
        for alpha, beta in ((2.0, 0.0), (1.0, 0.5), (2.0, 0.5), (1.0, 1.0)):
            np.testing.assert_allclose(trntensor.einsum("ij,jk->ik", a, b, alpha=alpha, beta=beta, out=c), alpha * (a @ b) + beta * c, rtol=1e-4, atol=1e-5)

    def test_types(self):
        a, b = normal(8, 6), normal(6, 10)
        for word, near in (("fp16", 0.02), ("float16", 0.02), ("f32", 1e-4), ("float32", 1e-4), (np.float64, 1e-4), ("bf16", 0.1), ("bfloat16", 0.1)):
            if word in ("bf16", "bfloat16") and importlib.util.find_spec("ml_dtypes") is None:
                continue
            got = trntensor.einsum("ij,jk->ik", a, b, dtype=word)
            self.assertEqual(got.dtype.itemsize, {"f32": 4, "float32": 4, np.float64: 8}.get(word, 2))
            np.testing.assert_allclose(got.astype(np.float64), a @ b, atol=near * 3)

    def test_out_is_not_written_and_not_read_for_beta_0(self):
        a, b, out = normal(4, 3), normal(3, 5), np.full((4, 5), np.nan, np.float32)
        np.testing.assert_allclose(trntensor.einsum("ij,jk->ik", a, b, out=out), a @ b, rtol=1e-5)
        self.assertTrue(np.isnan(out).all())
        with self.assertRaises(ValueError):
            trntensor.einsum("ij,jk->ik", a, b, beta=1, out=out[:3])

    def test_what_is_refused(self):
        for string, *shapes in (("ij,jk->ik", (4, 3), (3, 5), (5, 2)), ("ij,jkl->ikl", (4, 3), (3, 5)), ("ij,jk->ik", (4, 3), (5, 6)),
                                ("i$j,jk->ik", (4, 3), (3, 5)), ("ij,jk->ix", (4, 3), (3, 5)), ("ij,jk->iik", (4, 3), (3, 5))):
            with self.subTest(string), self.assertRaises(ValueError):
                trntensor.einsum(string, *[normal(*s) for s in shapes])
        a, b = normal(4, 3), normal(3, 5)
        for named, error in (({"dtype": "foo"}, ValueError), ({"precision": "super"}, ValueError), ({"precision": "dd"}, NotImplementedError)):
            with self.subTest(named), self.assertRaises(error):
                trntensor.einsum("ij,jk->ik", a, b, **named)
        for message, call in (("2 operand terms, and there are 1", lambda: trntensor.einsum("ij,jk->ik", a)), ("operand 1 has shape", lambda: trntensor.einsum("ij,jkl->il", a, b)),
                              ("index 'j' is 3 in operand 0 and 5 in operand 1", lambda: trntensor.plan_contraction("ij,kj->ik", a, b)),
                              ("invalid characters: '1'", lambda: trntensor.einsum("i1,1k->ik", a, b)), ("unknown dtype", lambda: trntensor.einsum("ij->ji", a, dtype="foo")),
                              ("precision must be", lambda: trntensor.plan_contraction("ij->ji", a, precision="x")), ("B must be 3D", lambda: trntensor.mp2_energy(a, a, a)),
                              ("first two dims must match", lambda: trntensor.ao_to_mo_transform(normal(6, 7, 8), normal(6, 2), normal(6, 3))),
                              ("warm-start", lambda: trntensor.cp_decompose(a, 2, factors=[normal(4, 3), normal(3, 3)]))):
            with self.subTest(message), self.assertRaisesRegex(ValueError, message):
                call()
        for precision in ("dd", "sr"):
            with self.assertRaisesRegex(NotImplementedError, "kahan"):
                trntensor.einsum("ij,jk->ik", a, b, precision=precision)
        B, E, C = normal(3, 4, 5), normal(6, 6, 8), normal
        for call in (lambda: trntensor.mp2_energy(normal(3, 4), normal(3), normal(4)), lambda: trntensor.mp2_energy(B, normal(2), normal(4)),
                     lambda: trntensor.mp2_energy(B, normal(3), normal(5)), lambda: trntensor.ao_to_mo_transform(normal(6, 7, 8), C(6, 2), C(6, 3)),
                     lambda: trntensor.ao_to_mo_transform(E, C(5, 2), C(6, 3)), lambda: trntensor.ao_to_mo_transform(E, C(6, 2), C(7, 3))):
            with self.assertRaises(ValueError):
                call()

    def test_kahan_is_f64_within(self):
        a, b = np.full((1, 512), 1e6, np.float32), normal(512, 1, scale=1e-3)
        got = trntensor.einsum("ij,jk->ik", a, b, precision="kahan")
        self.assertEqual(got.dtype, np.float32)
        np.testing.assert_allclose(got, (a.astype(np.float64) @ b).astype(np.float32), rtol=1e-7)

    def test_multi_einsum(self):
        a, b = normal(4, 3), normal(3, 5)
        one, two = trntensor.multi_einsum(("ij,jk->ik", a, b), ("ij,ij->", a, a))
        np.testing.assert_allclose(one, a @ b, rtol=1e-5)
        np.testing.assert_allclose(two, (a * a).sum(), rtol=1e-5)


class Chunks(unittest.TestCase):
    """einsum of tensors in chunks, by small integers: exact."""
    CASES = [  # string, shapes, (chunks, dimension) by operand, dimension of the result that is in chunks
        ("ij,jk->ik", [(5, 7), (7, 3)], {0: (3, 0)}, 0),
        ("ij,jk->ik", [(5, 7), (7, 3)], {0: (3, 1), 1: (3, 0)}, None),
        ("ij,jk->ki", [(5, 7), (7, 3)], {0: (2, 0), 1: (3, 1)}, 0),
        ("ij,jk,ki->i", [(5, 7), (7, 3), (3, 5)], {0: (2, 0), 1: (3, 0)}, 0),
        ("iap,jbp->iajb", [(3, 4, 5), (3, 4, 5)], {0: (4, 0)}, 0),
        ("ij->", [(5, 6)], {0: (3, 1)}, None),
        ("...j,jk->...k", [(2, 5, 7), (7, 3)], {0: (2, 1)}, 1),
        ("ij,ij->ij", [(5, 1), (5, 4)], {0: (2, 0), 1: (2, 0)}, 0),
        ("ii,ij->j", [(5, 5), (5, 4)], {0: (2, 0)}, None),
        ("ij,jk", [(2, 7), (7, 3)], {0: (4, 0)}, 0),
        ("ij,jk->ik", [(5, 0), (0, 3)], {0: (2, 1)}, None),
    ]

    def operands(self, shapes, chunks, dtype="f4"):
        rng = np.random.default_rng(1)
        whole = [rng.integers(-4, 5, shape).astype(dtype) for shape in shapes]
        return whole, [trntensor.scatter(x, *chunks[k]) if k in chunks else x for k, x in enumerate(whole)]

    def test_results(self):
        for equation, shapes, chunks, dimension in self.CASES:
            whole, operands = self.operands(shapes, chunks)
            with self.subTest(equation, chunks=chunks):
                got = trntensor.einsum(equation, *operands)
                self.assertEqual(getattr(got, "partition_dim", None), dimension)
                np.testing.assert_array_equal(trntensor.gather(got), np.einsum(equation, *whole))

    def test_bits_do_not_depend_on_chunks(self):
        a, b = normal(40, 300), normal(300, 30)
        results = [trntensor.einsum("ij,jk->ik", trntensor.scatter(a, n, 1), b) for n in (1, 2, 3, 7)]
        for other in results[1:]:
            np.testing.assert_array_equal(results[0], other)

    def test_chunks_of_any_lengths(self):
        a, b = normal(7, 5), normal(5, 3)
        mine = trntensor.ShardedTensor([a[:1], a[1:1], a[1:6], a[6:]])
        self.assertEqual((mine.shape, mine.num_shards, mine.boundaries), ((7, 5), 4, [0, 1, 1, 6, 7]))
        got = trntensor.einsum("ij,jk->ik", mine, b)
        self.assertEqual([c.shape for c in got.chunks], [(2, 3), (2, 3), (2, 3), (1, 3)])
        np.testing.assert_allclose(trntensor.gather(got), a @ b, rtol=1e-5, atol=1e-5)

    def test_alpha_beta_and_types(self):
        (a, b), (chunks, _) = self.operands([(5, 7), (7, 3)], {0: (2, 0)})
        out = np.ones((5, 3), np.float32)
        got = trntensor.einsum("ij,jk->ik", chunks, b, alpha=2, beta=-3, out=out)
        np.testing.assert_array_equal(trntensor.gather(got), 2 * (a @ b) - 3)
        again = trntensor.einsum("ij,jk->ik", a, b, beta=1, out=got)
        np.testing.assert_array_equal(again, 3 * (a @ b) - 3)
        self.assertEqual(trntensor.einsum("ij,jk->ik", chunks, b, dtype="f64").dtype, np.float64)
        self.assertEqual(trntensor.einsum("ij,jk->ik", chunks, b, precision="kahan").dtype, np.float32)

    def test_what_is_refused(self):
        a = np.ones((4, 6), np.float32)
        for call in (lambda: trntensor.ShardedTensor([]), lambda: trntensor.ShardedTensor([a, a[:, :5]]), lambda: trntensor.ShardedTensor([a], 2),
                     lambda: trntensor.scatter(a, 0), lambda: trntensor.scatter(a, 2, -3),
                     lambda: trntensor.einsum("ij,kj->ik", trntensor.scatter(a, 2, 1), trntensor.scatter(a, 3, 1)),
                     lambda: trntensor.einsum("ij,k->ik", trntensor.scatter(a, 2), a),
                     lambda: trntensor.einsum("ij->ij", trntensor.scatter(a, 2), beta=1, out=a[:3])):
            with self.assertRaises(ValueError):
                call()
        with self.assertRaises(TypeError):
            trntensor.mp2_energy(trntensor.scatter(np.ones((2, 3, 4)), 2), np.ones(2), np.ones(3))
        self.assertIs(trntensor.gather(a), a)


class Plans(unittest.TestCase):
    def test_what_a_plan_says(self):
        plan = trntensor.plan_contraction("ap,bp->ab", normal(19, 72), normal(19, 72))
        self.assertEqual((plan.strategy, plan.backend, plan.transA, plan.transB), ("matmul", "c", False, True))
        self.assertEqual((plan.contraction_indices, plan.batch_indices, plan.output_indices), (["p"], [], ["a", "b"]))
        self.assertEqual(plan.estimated_flops, 19 * 19 * 72)
        plan = trntensor.plan_contraction("bij,bjk->bik", normal(2, 3, 4), normal(2, 4, 5))
        self.assertEqual((plan.strategy, plan.contraction_indices, plan.batch_indices), ("bmm", ["j"], ["b"]))
        self.assertEqual(trntensor.plan_contraction("ij,jk->i", normal(3, 4), normal(4, 5)).strategy, "einsum")

    def test_orders_are_the_best(self):
        for string, sizes, best in (("ij,jk,kl->il", {"i": 100, "j": 200, "k": 5, "l": 50}, 125000), ("ij,jk,kl,lm->im", {"i": 100, "j": 200, "k": 5, "l": 50, "m": 3}, 63750),
                                    ("mi,na,mnP->iaP", {"m": 512, "n": 512, "i": 64, "a": 448, "P": 1536}, 48318382080)):
            shapes = [tuple(sizes[c] for c in t) for t in string.split("->")[0].split(",")]
            plan = trntensor.plan_contraction(string, *[np.broadcast_to(np.float32(0), s) for s in shapes])
            self.assertEqual(plan.strategy, "path")
            self.assertLessEqual(plan.estimated_flops, best)

    def test_estimate_flops_and_cache(self):
        trntensor.clear_plan_cache()
        self.assertEqual(trntensor.estimate_flops("ij,jk,kl->il", normal(2, 3), normal(3, 4), normal(4, 5)), 120)
        trntensor.plan_contraction("ij,jk->ik", normal(2, 3), normal(3, 4))
        trntensor.plan_contraction("ij,jk->ik", normal(2, 3), normal(3, 4))
        self.assertEqual(trntensor.plan_cache_info(), {"size": 1})
        a, b = normal(2, 3), normal(3, 4)
        plan = trntensor.plan_contraction("ij,jk->ik", a, b)
        self.assertIs(plan, trntensor.plan_contraction("ij,jk->ik", b[:2, :3] * 0, b))
        other = trntensor.plan_contraction("ij,jk->ik", a, b, precision="kahan")
        self.assertEqual((plan.precision, other.precision), ("fast", "kahan"))
        self.assertEqual(trntensor.plan_cache_info(), {"size": 2})

    def test_backends(self):
        try:
            for backend in ("pytorch", "c", "auto"):
                trntensor.set_backend(backend)
                self.assertEqual(trntensor.get_backend(), backend)
            for error in (ValueError, AssertionError):
                with self.assertRaises(error):
                    trntensor.set_backend("gpu")
            if not trntensor.HAS_NKI:
                for call in (lambda: trntensor.set_backend("nki"), lambda: trntensor.to_xla(normal(2))):
                    with self.assertRaises(RuntimeError):
                        call()
        finally:
            trntensor.set_backend("auto")


class Chemistry(unittest.TestCase):
    def test_the_cases(self):
        np.random.seed(1)
        ran = 0
        for case in SEED["fused"]:
            n = case["dims"]
            if case["kernel"] not in ("mp2_energy", "ao_to_mo") or n.get("n", 0) > 200:
                continue
            with self.subTest(case["id"]):
                if case["kernel"] == "ao_to_mo":
                    eri, co, cv = normal(n["n"], n["n"], n["x"], scale=0.1), normal(n["n"], n["o"]), normal(n["n"], n["v"])
                    want = np.einsum("mi,na,mnP->iaP", co, cv, eri, optimize=True)
                    np.testing.assert_allclose(trntensor.ao_to_mo_transform(eri, co, cv), want, rtol=1e-3, atol=1e-3)
                else:
                    B = normal(n["o"], n["v"], n["x"], scale=0.1)
                    eo, ev = -np.sort(np.random.random(n["o"])).astype("f4") - 0.5, np.sort(np.random.random(n["v"])).astype("f4") + 0.1
                    got = trntensor.mp2_energy(B, eo, ev)
                    self.assertEqual((got.shape, got.dtype), ((), np.float32))
                    np.testing.assert_allclose(got, energy(B, eo, ev), rtol=1e-5)
                    np.testing.assert_allclose(trntensor.mp2_energy(*(x.astype(np.float64) for x in (B, eo, ev))), energy(B, eo, ev), rtol=1e-10)
            ran += 1
        self.assertGreaterEqual(ran, 10)


class Decompositions(unittest.TestCase):
    def setUp(self):
        np.random.seed(3)

    def test_the_cases(self):
        error = lambda got, want: np.linalg.norm(got - want) / np.linalg.norm(want)
        for case in DECOMPOSITIONS:
            shape = case["shape"]
            with self.subTest(case):
                if case["op"].startswith("cp"):
                    rank = case["rank"]
                    nonneg = case["op"] == "cp_nonneg"
                    make = (lambda n: np.random.random((n, rank))) if nonneg else (lambda n: np.random.standard_normal((n, rank)))
                    X = np.zeros(shape) if case.get("init") == "zeros" else trntensor.cp_reconstruct([make(n) for n in shape], np.ones(rank))
                    start = [np.random.standard_normal((n, rank)) for n in shape] if case["op"] == "cp_warm" else None
                    factors, weights = trntensor.cp_decompose(X, rank, max_iter=case.get("max_iter", 300), nonneg=nonneg, factors=start)
                    self.assertEqual([f.shape for f in factors], [(n, rank) for n in shape])
                    self.assertTrue(np.isfinite(weights).all())
                    got = trntensor.cp_reconstruct(factors, weights)
                    norms = np.array([np.linalg.norm(f, axis=0) for f in factors])
                    self.assertTrue(((abs(norms - 1) < 1e-5) | (norms == 0)).all())
                    if "err" in case:
                        self.assertLess(error(got, X), case["err"])
                    if "atol" in case:
                        np.testing.assert_allclose(got, X, atol=case["atol"])
                    if nonneg:
                        self.assertTrue(all((f >= 0).all() for f in factors))
                elif case["op"] == "tucker":
                    X = normal(*shape)
                    core, factors = trntensor.tucker_decompose(X, ranks=tuple(case["ranks"]))
                    got = trntensor.tucker_reconstruct(core, factors)
                    for f in factors:
                        np.testing.assert_allclose(f.T @ f, np.eye(f.shape[1]), atol=1e-5)
                    self.assertLess(error(got, X), case.get("err", 1.0))
                    if "atol" in case:
                        np.testing.assert_allclose(got, X, atol=case["atol"])
                else:
                    X = np.einsum("a,b,c->abc", *(normal(n) for n in shape)) if "init" in case else normal(*shape)
                    cores = trntensor.tt_decompose(X, max_rank=case["max_rank"])
                    self.assertEqual((cores[0].shape[0], cores[-1].shape[2], len(cores)), (1, 1, len(shape)))
                    self.assertTrue(all(c.shape[2] <= case["max_rank"] for c in cores))
                    if "err" in case:
                        self.assertLess(error(trntensor.tt_reconstruct(cores), X), case["err"])

    def test_types_are_kept(self):
        for dtype in (np.float32, np.float64):
            factors, weights = trntensor.cp_decompose(normal(4, 5, 3).astype(dtype), rank=2, max_iter=2)
            self.assertEqual({a.dtype for a in [*factors, weights]}, {np.dtype(dtype)})
        with self.assertRaises(TypeError):
            trntensor.tt_decompose(np.ones((2, 2), int), max_rank=1)


@unittest.skipIf(not os.path.exists(STUB), "there is no stub of libnrt")
class Device(unittest.TestCase):
    def test_tensors_go_there_and_back(self):
        text = """if True:
            import numpy as np, tdsl.trntensor as t
            a = np.random.standard_normal((4, 5)).astype("f4")
            d = t.to_xla(a)
            a[0] = 0   # the device has a copy
            assert t.HAS_NKI and t.to_xla(d) is d and t.from_xla(a) is a and t.from_xla(d)[0].any()
            r = t.einsum("ij,kj->ik", d, d)
            back = t.from_xla(d)
            assert type(r) is type(d) and np.allclose(t.from_xla(r), back @ back.T, atol=1e-5)
            assert type(t.einsum("ij,ij->", d, back)) is not type(d)
            t.set_backend("nki")
            assert t.plan_contraction("ij,kj->ik", back, back).backend == "nki"
            print("good")"""
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=dict(os.environ, TDSL_NRT_LIBRARY=STUB), check=False)
        self.assertEqual((done.stdout, done.stderr), ("good\n", ""))


class Emulated(unittest.TestCase):
    def test_the_emulator_computes_it(self):
        text = """if True:
            import numpy as np, tdsl.trntensor as t, tdsl._trnsci
            t.set_backend("nki")
            a, b = (np.random.standard_normal((128, 128)).astype("f4") for _ in range(2))
            assert np.allclose(t.einsum("ij,kj->ik", a, b), a @ b.T, atol=1e-3)
            B, eo, ev = a.reshape(4, 32, 128) * np.float32(0.1), -np.ones(4, "f4"), np.ones(32, "f4")
            got = t.mp2_energy(B, eo, ev)
            assert [k.last.backend for p in tdsl._trnsci._programs.values() for k in p.kernels.values() if getattr(k, "last", None)] == ["emulator"] * 2
            t.set_backend("c")
            assert np.allclose(got, t.mp2_energy(B, eo, ev), rtol=1e-4), (got, t.mp2_energy(B, eo, ev))
            print("good")"""
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", text], capture_output=True, text=True,
                              env=dict(os.environ, TRNTENSOR_USE_SIMULATOR="1"), check=False)
        self.assertEqual(done.stdout, "good\n", done.stderr)


unittest.main()
