# SPDX-License-Identifier: Apache-2.0
"""tdsl.torch, and what trntensor's pages show, with tensors of torch. Exits 77 without torch."""
import sys
import unittest
import warnings

try:
    import torch
except ImportError as error:
    print(f"skipped: {error}: `.ci/setup test` puts it into ~/.cache/tdsl-tests")
    sys.exit(77)
import tdsl
import tdsl.torch
import tdsl.trntensor as trntensor

einsum = tdsl.torch.einsum
STRINGS = [("ij,jk->ik", (3, 4), (4, 5)), ("ij,jk", (3, 4), (4, 5)), ("ij->j", (3, 4)), ("ii->i", (3, 3)), ("iij->j", (3, 3, 2)), ("iii,j->ij", (3, 3, 3), (2,)),
           ("...ij,...jk->...ik", (2, 3, 4), (4, 2)), ("bij,bjk->bik", (1, 3, 4), (5, 4, 2)), ("i,i->", (3,), (3,)), ("iijj->ij", (2, 2, 3, 3)),
           ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)), ("ijij->", (2, 3, 2, 3)), ("i,j->", (3,), (4,)), ("ij,j->i", (3, 4), (4,))]


KERNELS = """
kernel logistic(W: f64[d, c], x: f64[n, d], t: i64[n], s: f64) -> (E: f64, p: i64[n]) {
    z[n,c] = x[n,d] * W[d,c];
    E = s * sum[n](logsumexp[c](z[n,c]) - z[n,t[n]]);
    p[n] = argmax[c](z[n,c]);
}
kernel embedding(W: f32[v, e], tok: i64[n]) -> (Y: f32[n, e]) { Y[n,e] = W[tok[n],e]; }
kernel complexes(z: c128[n], w: c128[n]) -> (y: c128[n]) { y[i] = exp(z[i]) * conj(w[i]); }
kernel change(C: inout f64[n]) { C[i] += 1; }
"""


class Torch(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)

    def test_values_and_gradients(self):
        for dtype in (torch.float64, torch.complex128):
            for text, *shapes in STRINGS:
                with self.subTest(text, dtype=dtype):
                    operands = [torch.randn(*s, dtype=dtype, requires_grad=True) for s in shapes]
                    torch.testing.assert_close(einsum(text, *operands), torch.einsum(text, *operands))
                    self.assertTrue(torch.autograd.gradcheck(lambda *x, t=text: einsum(t, *x), operands))

    def test_kernels_have_derivatives(self):
        program = tdsl.compile(KERNELS)
        loss, t = tdsl.torch.function(program.logistic), torch.randint(0, 4, (5,))
        ours = [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in ((3, 4), (5, 3), ())]
        theirs = [x.detach().clone().requires_grad_() for x in ours]
        value, places = loss(*ours[:2], t, s=ours[2])
        value.backward()
        (theirs[2] * torch.nn.functional.cross_entropy(theirs[1] @ theirs[0], t, reduction="sum")).backward()
        for x, y in zip(ours, theirs):
            torch.testing.assert_close(x.grad, y.grad)
        self.assertFalse(places.requires_grad)
        table, rows = torch.randn(7, 3, requires_grad=True), torch.tensor([1, 1, 6, 0])
        other = table.detach().clone().requires_grad_()
        tdsl.torch.function(program.embedding)(table, rows).pow(2).sum().backward()
        other[rows].pow(2).sum().backward()
        self.assertTrue(torch.equal(table.grad, other.grad))
        pair = [torch.randn(3, dtype=torch.complex128, requires_grad=True) for _ in range(2)]
        self.assertTrue(torch.autograd.gradcheck(tdsl.torch.function(program.complexes), pair))
        with self.assertRaises(tdsl.ArgumentError):
            tdsl.torch.function(program.change)
        with self.assertRaises(tdsl.DtypeError):
            tdsl.torch.function(lambda x: x)

    def test_second_gradients(self):
        operands = [torch.randn(2, 3, dtype=torch.float64, requires_grad=True), torch.randn(3, 2, dtype=torch.float64, requires_grad=True)]
        self.assertTrue(torch.autograd.gradgradcheck(lambda *x: einsum("ij,jk->ki", *x), operands))

    def test_forward_derivatives(self):
        for text, *shapes in STRINGS:
            with self.subTest(text):
                operands = [torch.randn(*s, dtype=torch.float64, requires_grad=True) for s in shapes]
                self.assertTrue(torch.autograd.gradcheck(lambda *x, t=text: einsum(t, *x), operands, check_forward_ad=True, check_backward_ad=False))
        operands = [torch.randn(2, 3, dtype=torch.complex128, requires_grad=True), torch.randn(3, 2, dtype=torch.complex128, requires_grad=True)]
        self.assertTrue(torch.autograd.gradcheck(lambda *x: einsum("ij,jk->ki", *x), operands, check_forward_ad=True))
        self.assertTrue(torch.autograd.gradgradcheck(lambda *x: einsum("ij,jk->ki", *x), operands, check_fwd_over_rev=True))
        x = torch.tensor([1.0, 2.0, 3.0])
        with torch.autograd.forward_ad.dual_level():
            x = torch.autograd.forward_ad.make_dual(x, x)
            for result in einsum("i,i->", x, x), torch.ops.tdsl.einsum("i,i->", [x, x]):
                self.assertEqual(torch.autograd.forward_ad.unpack_dual(result).tangent, 28)
            for function in tdsl.einsum, trntensor.einsum:
                with self.assertRaises(tdsl.DtypeError):
                    function("i,i->", x, x)
        x = torch.ones(3, requires_grad=True)
        for function in tdsl.einsum, trntensor.einsum:
            with self.assertRaises(tdsl.DtypeError):
                function("i->", x)
            with torch.no_grad():
                self.assertEqual(function("i->", x), 3)

    def test_transforms_of_torch_func(self):
        from torch.func import grad, jacfwd, jacrev, jvp, vmap
        x, A = torch.randn(3, dtype=torch.float64), torch.randn(3, 3, 3, dtype=torch.float64)
        cubic = lambda e: lambda y: e("ijk,i,j,k->", A, y, y.sin(), y)
        for chain in ((grad,), (jacfwd,), (jacrev,), (jacfwd, jacfwd), (jacrev, jacfwd), (jacfwd, jacrev), (jacrev, jacrev), (jacfwd, jacfwd, jacfwd), (jacfwd, jacrev, jacfwd)):
            with self.subTest([c.__name__ for c in chain]):
                ours, theirs = cubic(einsum), cubic(torch.einsum)
                for transform in chain:
                    ours, theirs = transform(ours), transform(theirs)
                torch.testing.assert_close(ours(x), theirs(x))
        self.assertEqual(jvp(lambda y: einsum("i,i->", y, y), (torch.tensor([1.0, 2.0, 3.0]),), (torch.tensor([1.0, 2.0, 3.0]),))[1], 28)
        a, b = torch.randn(5, 3, 4, dtype=torch.float64), torch.randn(4, 2, dtype=torch.float64)
        product = lambda y: einsum("ij,jk->ik", y, b)
        torch.testing.assert_close(vmap(product)(a), a @ b)
        torch.testing.assert_close(vmap(product, in_dims=1, out_dims=2)(a.movedim(0, 1)), (a @ b).movedim(0, 2))
        torch.testing.assert_close(vmap(lambda y: torch.ops.tdsl.einsum("ij,jk->ik", [y, b]))(a), a @ b)
        torch.testing.assert_close(vmap(grad(lambda y: product(y).sum()))(a), b.sum(1).expand(5, 3, 4))
        torch.testing.assert_close(grad(lambda y: vmap(product)(y).sum())(a), b.sum(1).expand(5, 3, 4))
        with self.assertRaises(tdsl.Error):
            grad(lambda y: torch.ops.tdsl.einsum("i,i->", [y, y]))(x)

    def test_kernels_under_the_transforms_of_torch_func(self):
        """Derivatives forward and of second order are kernels that vjp makes of what it made."""
        ours = tdsl.torch.function(tdsl.compile("""
kernel loss(W: f64[v, e], x: f64[n, e], t: i64[n]) -> (E: f64, z: f64[n, v], t2: i64[n]) {
    z[n,v] = x[n,e] * W[v,e];
    E = sum[n](logsumexp[v](z[n,v]) - z[n,t[n]]);
    t2[n] = 2*t[n];
}""").loss)
        W, x = (torch.randn(k, 3, dtype=torch.float64) for k in (7, 5))
        t = torch.tensor([0, 6, 6, 1, 2])
        first = lambda W, x, t: ours(W, x, t)[0]
        wanted = lambda W, x, t: torch.nn.functional.cross_entropy(x @ W.T, t, reduction="sum")
        two = torch.stack([x, 2 * x])
        f = torch.func
        for transform in (lambda l: f.grad(l, argnums=(0, 1))(W, x, t), lambda l: f.vmap(l, in_dims=(None, 0, None))(W, two, t), lambda l: f.jacrev(l)(W, x, t),
                          lambda l: f.vmap(f.grad(l), in_dims=(None, 0, 0))(W, two, torch.stack([t, t])), lambda l: f.jvp(lambda *v: l(*v, t), (W, x), (W + 1, x))[1],
                          lambda l: f.jacfwd(l)(W, x, t), lambda l: f.hessian(l)(W, x, t), lambda l: f.grad(lambda v: (f.grad(l)(v, x, t) ** 2).sum())(W)):
            torch.testing.assert_close(transform(first), transform(wanted))
        v = W.clone().requires_grad_()
        self.assertTrue(torch.autograd.gradgradcheck(lambda w: ours(w, x, t)[:2], v))
        self.assertTrue(torch.autograd.gradcheck(lambda w: ours(w, x, t)[:2], v, check_forward_ad=True))
        self.assertEqual(ours(W, x, t)[2].tolist(), [0, 12, 12, 2, 4])

    def test_autocast(self):
        a, d = torch.randn(4, 6), torch.randn(4, 6, dtype=torch.float64)
        for dtype in torch.bfloat16, torch.float16:
            with torch.autocast("cpu", dtype=dtype):
                for e in einsum, torch.einsum:
                    self.assertEqual(e("ij,kj->ik", a, a.to(dtype)).dtype, dtype)
                    self.assertEqual(e("ij,kj->ik", d, d).dtype, torch.float64)
                torch.testing.assert_close(einsum("ij,kj->ik", a, a), torch.einsum("ij,kj->ik", a, a), rtol=0.02, atol=0.05)
                x = a.clone().requires_grad_()
                einsum("ij,kj->ik", x, a).sum().backward()
            self.assertEqual(x.grad.dtype, torch.float32)
            self.assertEqual(einsum("ij,kj->ik", a, a).dtype, torch.float32)

    def test_views_are_not_copied(self):
        a = torch.arange(12.0).reshape(3, 4)
        with warnings.catch_warnings():
            warnings.simplefilter("error", tdsl.CopyWarning)
            for x in a.T, a[:, ::2], a[1].expand(5, 4), a.half().T, a.half()[:, ::2], a.bfloat16()[:, ::2]:
                torch.testing.assert_close(einsum("ij,kj->ik", x, x), torch.einsum("ij,kj->ik", x, x))

    def test_the_interleaved_form(self):
        a, b = torch.randn(2, 3), torch.randn(3, 4)
        torch.testing.assert_close(einsum(a, [0, 1], b, [1, 2], [0, 2]), a @ b)
        torch.testing.assert_close(einsum(a, [..., 1], b, [1, 2]), a @ b)

    def test_shapes_are_looked_at_while_tracing(self):
        a, b, i = torch.ones(2, 3, device="meta"), torch.ones(4, 5, device="meta"), torch.ones(2, 3, device="meta")
        for call in (lambda: einsum("ij,jk->ik", a, b), lambda: einsum("ii->i", i)):
            with self.assertRaises(tdsl.ShapeError):
                call()
        with self.assertRaisesRegex(Exception, "'j' is 3, and 4 in operand 1"):
            torch.compile(lambda x, y: einsum("ij,jk->ik", x, y), backend="eager", fullgraph=True)(torch.ones(2, 3), torch.ones(4, 5))

    def test_types_and_layouts(self):
        for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.complex64):
            a, b = (torch.ones(2, 3).to(dtype), torch.ones(4, 3).to(dtype))
            got = einsum("ij,jk->ik", a, b.T)
            self.assertEqual((got.dtype, got.tolist()), (dtype, [[3] * 4] * 2))
        a = torch.randn(3, 3, dtype=torch.complex64)
        torch.testing.assert_close(einsum("ij,jk->ik", a.conj(), a), a.conj() @ a)
        torch.testing.assert_close(einsum("ij->i", a.conj().imag), -a.imag.sum(1))
        self.assertEqual(tdsl.torch.to_numpy(a.conj().imag).tolist(), (-a.imag).tolist())

    def test_what_is_refused(self):
        a = torch.ones(2, 3)
        for call, error in ((lambda: einsum("ij,jk", a, a.T.double()), TypeError), (lambda: einsum("ij,jk", a), ValueError), (lambda: einsum("i", a), ValueError),
                            (lambda: einsum("ij->k", a), ValueError), (lambda: tdsl.torch.to_numpy(torch.ones(2, device="meta")), TypeError),
                            (lambda: tdsl.torch.to_numpy(torch.eye(2).to_sparse()), TypeError)):
            with self.assertRaises(error):
                call()

    def test_a_graph_does_not_break(self):
        function = torch.compile(lambda x, y: einsum("...ij,jk", x.relu(), y).sin(), fullgraph=True, backend="aot_eager")
        for n in (3, 5, 7):
            a, b = torch.randn(2, n, 4, requires_grad=True), torch.randn(4, 5)
            result = function(a, b)
            torch.testing.assert_close(result, (a.relu() @ b).sin())
            result.sum().backward()
            self.assertEqual(a.grad.shape, a.shape)

    def test_the_operation_is_registered_well(self):
        a, b = torch.randn(3, 4, requires_grad=True), torch.randn(4, 5)
        torch.library.opcheck(torch.ops.tdsl.einsum.default, ("ij,jk->ik", [a, b]))
        self.assertEqual(einsum("ij,jk->ik", a.to("meta"), b.to("meta")).shape, (3, 5))

    def test_arrays_of_torch_go_to_tdsl_einsum(self):
        a = torch.arange(6.0).reshape(2, 3)
        self.assertEqual(tdsl.einsum("ij->i", a).tolist(), [3, 12])


class Trntensor(unittest.TestCase):
    """The calls of trntensor's README, quickstart, API pages and tutorial, as they stand there but for the import."""

    def setUp(self):
        torch.manual_seed(2)

    def near(self, got, want):
        torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-4)

    def test_readme(self):
        A, B, B_i, B_j = torch.randn(4, 5), torch.randn(5, 6), torch.randn(7, 9), torch.randn(8, 9)
        C_occ, eri, tensor = torch.randn(6, 2), torch.randn(6, 6, 8), torch.randn(6, 6, 6)
        C = trntensor.einsum("ij,jk->ik", A, B)
        T = trntensor.einsum("ap,bp->ab", B_i, B_j)
        X = trntensor.einsum("mi,mnP->inP", C_occ, eri)
        self.near(C, A @ B)
        self.near(T, B_i @ B_j.T)
        self.near(X, torch.einsum("mi,mnP->inP", C_occ, eri))
        plan = trntensor.plan_contraction("ij,jk->ik", A, B)
        flops = trntensor.estimate_flops("ij,jk->ik", A, B)
        self.assertEqual((plan.strategy, flops), ("matmul", 120))
        factors, weights = trntensor.cp_decompose(tensor, rank=10)
        self.assertEqual(trntensor.cp_reconstruct(factors, weights).shape, tensor.shape)
        core, factors = trntensor.tucker_decompose(tensor, ranks=(5, 5, 5))
        self.assertEqual(core.shape, (5, 5, 5))

    def test_quickstart(self):
        A, B = torch.randn(32, 64), torch.randn(48, 64)
        self.near(trntensor.einsum("ap,bp->ab", A, B), A @ B.T)
        Ab, Bb = torch.randn(16, 32, 64), torch.randn(16, 48, 64)
        self.near(trntensor.einsum("iap,ibp->iab", Ab, Bb), Ab @ Bb.transpose(1, 2))
        plan = trntensor.plan_contraction("ap,bp->ab", A, B)
        self.assertEqual((plan.dispatch, plan.flops), ("matmul", 32 * 48 * 64))
        X = torch.randn(16, 16, 16)
        factors = trntensor.cp_decompose(X, rank=8)
        self.assertEqual(trntensor.cp_reconstruct(factors).shape, X.shape)
        core, factors = trntensor.tucker_decompose(X, ranks=(4, 4, 4))
        self.assertEqual(trntensor.tucker_reconstruct(core, factors).shape, X.shape)
        trntensor.set_backend("pytorch")
        trntensor.set_backend("auto")
        if not trntensor.HAS_NKI:
            with self.assertRaises(RuntimeError):
                trntensor.set_backend("nki")

    def test_einsum_page(self):
        A, B, C, acc = torch.randn(4, 5), torch.randn(5, 6), torch.randn(4, 6), torch.randn(4, 6)
        self.near(trntensor.einsum("ij,jk->ik", A, B, alpha=2.0, beta=0.5, out=C), 2 * A @ B + 0.5 * C)
        self.near(trntensor.einsum("ij,jk->ik", A, B, beta=1.0, out=acc), A @ B + acc)
        self.assertEqual(trntensor.einsum("ij,jk->ik", A, B, dtype="bf16").dtype, torch.bfloat16)
        self.assertEqual(trntensor.einsum("ij,jk->ik", A, B, dtype=torch.float16).dtype, torch.float16)
        T, T2 = torch.randn(2, 2, 3, 3), torch.randn(2, 2, 3, 3)
        self.near(trntensor.einsum("ijab,ijab->", T, T2, precision="kahan"), (T * T2).sum())
        B_i, B_j, B_k = (torch.randn(5, 8) for _ in range(3))
        results = trntensor.multi_einsum(("ap,bp->ab", B_i, B_j), ("ap,bp->ab", B_i, B_k))
        self.near(results[1], B_i @ B_k.T)
        trntensor.clear_plan_cache()
        self.assertEqual(trntensor.plan_cache_info(), {"size": 0})

    def test_decompositions_page(self):
        T = torch.rand(6, 5, 4)
        factors, weights = trntensor.cp_decompose(T, rank=8, max_iter=20)
        factors_nn, _ = trntensor.cp_decompose(T, rank=8, nonneg=True, max_iter=20)
        self.assertTrue(all((f >= 0).all() for f in factors_nn))
        trntensor.cp_decompose(T, rank=8, nonneg=True, factors=factors_nn, max_iter=5)
        cores = trntensor.tt_decompose(T, max_rank=16)
        self.near(trntensor.tt_reconstruct(cores), T)
        self.assertEqual(len(factors), 3)
        self.assertEqual(weights.shape, (8,))

    def test_tutorial(self):
        nocc, nvir, naux = 5, 19, 72
        torch.manual_seed(42)
        B = torch.randn(nocc, nvir, naux) * 0.1
        eps_occ = -torch.sort(torch.rand(nocc))[0] - 0.5
        eps_vir = torch.sort(torch.rand(nvir))[0] + 0.1
        plan = trntensor.plan_contraction("ap,bp->ab", B[0], B[1])
        self.assertEqual((plan.strategy, plan.backend, plan.estimated_flops), ("matmul", "c", 19 * 19 * 72))
        plan = trntensor.plan_contraction("ij,jk->ik", torch.randn(2048, 2048), torch.randn(2048, 2048))
        self.assertEqual(plan.backend, "nki" if trntensor.HAS_NKI else "c")

        def df_mp2_energy(B, eps_occ, eps_vir):
            nocc = B.shape[0]
            e_mp2 = 0.0
            for i in range(nocc):
                for j in range(nocc):
                    T = trntensor.einsum("ap,bp->ab", B[i], B[j])
                    denom = eps_occ[i] + eps_occ[j] - eps_vir.unsqueeze(1) - eps_vir.unsqueeze(0)
                    e_mp2 += (T * (2 * T - T.T) / denom).sum().item()
            return e_mp2

        e = df_mp2_energy(B, eps_occ, eps_vir)
        E = trntensor.mp2_energy(B, eps_occ, eps_vir)
        self.assertAlmostEqual(E.item(), e, delta=1e-4 * abs(e))
        print(f"the tutorial's energy: {E.item():.4f}; its page says -50.5433")
        eri, C_occ, C_vir = torch.randn(8, 8, 12) * 0.1, torch.randn(8, 3), torch.randn(8, 5)
        B = trntensor.ao_to_mo_transform(eri, C_occ, C_vir)
        self.near(B, torch.einsum("mi,na,mnP->iaP", C_occ, C_vir, eri))
        self.assertTrue(torch.isfinite(trntensor.mp2_energy(B, eps_occ[:3], eps_vir[:5])))


unittest.main()
