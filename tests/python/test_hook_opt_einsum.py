# SPDX-License-Identifier: Apache-2.0
"""opt_einsum and cotengra with our searches and our functions. Exits 77 without opt_einsum."""
import subprocess
import sys
import unittest

import numpy as np
import tdsl

try:
    import opt_einsum
except ImportError as error:
    print(f"skipped: {error}: `.ci/setup test` puts it into ~/.cache/tdsl-tests")
    sys.exit(77)
import tdsl.opt_einsum
from opt_einsum.testing import rand_equation

try:
    import cotengra
    import tdsl.cotengra
except ImportError:
    cotengra = None

RNG = np.random.default_rng(1)
A, B, C = RNG.random((50, 6)), RNG.random((6, 70)), RNG.random((70, 3))


class OptEinsum(unittest.TestCase):
    def test_import_tdsl_is_enough_in_either_order(self):
        for first in "tdsl, opt_einsum", "opt_einsum, tdsl", "opt_einsum.paths, tdsl", "tdsl, opt_einsum.paths":
            text = f'import {first}, opt_einsum; x = opt_einsum.contract_path("ij,jk,kl->il", (5, 6), (6, 7), (7, 3), shapes=True, optimize="tdsl")'
            subprocess.run([sys.executable, "-c", text], check=True)

    def test_the_search(self):
        self.assertEqual(opt_einsum.contract_path("ij,jk,kl->il", A, B, C, optimize="tdsl")[0], [(1, 2), (0, 1)])
        self.assertEqual(opt_einsum.contract_path("ij,jk,kl->il", A, B, C, optimize=tdsl.opt_einsum.Optimizer(search="greedy"))[0], [(1, 2), (0, 1)])

    def test_no_order_is_cheaper_than_ours(self):
        for seed in range(20):
            text, shapes = rand_equation(7, 3, n_out=2, seed=seed)[:2]
            cost = [opt_einsum.contract_path(text, *shapes, shapes=True, optimize=o)[1].opt_cost for o in ("tdsl", "optimal")]
            # opt_einsum counts an outer product as half a contraction, which ours does not
            self.assertLessEqual(cost[0], 1.5 * float(cost[1]))

    def test_a_memory_limit_holds_until_the_last_step(self):
        x = RNG.random((4, 4, 4, 4))
        steps, info = opt_einsum.contract_path("abcd,cdef,efgh,ghij->abij", x, x, x, x, optimize="tdsl", memory_limit=64)
        self.assertEqual(steps, [(0, 1, 2, 3)])
        self.assertLessEqual(info.largest_intermediate, 256)
        steps, _ = opt_einsum.contract_path("abcd,cdef,efgh,ghij->abij", x, x, x, x, optimize="tdsl", memory_limit=256)
        self.assertEqual(len(steps), 3)

    def test_the_backend(self):
        got = opt_einsum.contract("ij,jk,kl->li", A, B, C, optimize="tdsl", backend="tdsl")
        np.testing.assert_allclose(got, (A @ B @ C).T)
        self.assertIs(opt_einsum.backends.dispatch.get_func("tensordot", "tdsl"), tdsl.tensordot)
        f = opt_einsum.contract_expression("ij,jk,kl->li", A.shape, B.shape, C.shape)
        np.testing.assert_allclose(f(A, B, C, backend="tdsl"), (A @ B @ C).T)

    def test_contract_takes_optimizers(self):
        got = tdsl.contract("ij,jk,kl->li", A, B, C, optimize=opt_einsum.RandomGreedy(max_repeats=2))
        np.testing.assert_allclose(got, (A @ B @ C).T)
        got = tdsl.contract("ij,jk,kl->li", A, B, C, optimize=tdsl.opt_einsum.Optimizer(search="greedy"))
        np.testing.assert_allclose(got, (A @ B @ C).T)


@unittest.skipIf(cotengra is None, "cotengra is not installed")
class Cotengra(unittest.TestCase):
    def setUp(self):
        self.inputs, self.output, shapes, self.sizes = cotengra.utils.rand_equation(20, 3, seed=1, d_max=3)
        self.arrays = [RNG.random(s) for s in shapes]

    def test_the_preset(self):
        tree = cotengra.array_contract_tree(self.inputs, self.output, self.sizes, optimize="tdsl")
        want = cotengra.array_contract(self.arrays, self.inputs, self.output, optimize="greedy")
        np.testing.assert_allclose(tree.contract(self.arrays), want)
        np.testing.assert_allclose(tree.contract(self.arrays, implementation=tdsl.cotengra.implementation), want)
        np.testing.assert_allclose(cotengra.array_contract(self.arrays, self.inputs, self.output, optimize="tdsl"), want)

    def test_slices(self):
        tree = tdsl.cotengra.Optimizer(memory_limit=27).search(self.inputs, self.output, self.sizes)
        self.assertLessEqual(tree.max_size(), 27)
        self.assertGreater(len(tree.sliced_inds), 0)
        want = cotengra.array_contract(self.arrays, self.inputs, self.output, optimize="greedy")
        np.testing.assert_allclose(tree.contract(self.arrays), want)


unittest.main()
