# SPDX-License-Identifier: Apache-2.0
"""The models of the peer's kernels compute what the peer computes, under all rules."""

import unittest

import numpy as np
from seed_models import aomo_specs, aomo_text, mp2_specs, mp2_text, run_model


class SeedModels(unittest.TestCase):
    def test_mp2_model_gives_pair_energies(self):
        result, (b, eo, ev) = run_model(mp2_text(3, 10, 20), mp2_specs(3, 10, 20))
        b = b.astype(np.float64)
        t = np.einsum("iak,jbk->ijab", b, b)
        d = eo[0][:, None, None, None] + eo[0][None, :, None, None] \
            - ev[0][None, None, :, None] - ev[0][None, None, None, :]
        want = (t * (2 * t - t.transpose(0, 1, 3, 2)) / d).sum((2, 3))
        np.testing.assert_allclose(result.outputs[0], want, rtol=1e-5)

    def test_aomo_model_gives_the_transform_with_k_tiles(self):
        result, (eri, co, cv) = run_model(aomo_text(140, 4, 6, 3), aomo_specs(140, 4, 6, 3))
        want = np.einsum("mnp,mi,na->iap", eri, co, cv, dtype=np.float64)
        np.testing.assert_allclose(result.outputs[0], want, rtol=1e-6)

    def test_the_generous_variants_are_the_cheaper_ones(self):
        for text, specs in (((mp2_text, (2, 64, 64)), mp2_specs),
                            ((aomo_text, (128, 4, 8, 2)), aomo_specs)):
            make, sizes = text
            cost = []
            for generous in (False, True):
                extra = (True,) if generous and make is mp2_text else ()
                # a generous AO->MO model writes x in another order: all of it all the same
                result, _ = run_model(make(*sizes, generous), specs(*sizes, *extra))
                cost.append(result.cost["predicted_us"])
            self.assertLess(cost[1], cost[0])


if __name__ == "__main__":
    unittest.main()
