# SPDX-License-Identifier: Apache-2.0
"""The example kernels give NumPy's numbers, fit the device, and stay in the profile."""

import glob
import os
import unittest

import numpy as np
from support import KERNELS, TYPES, cast, to_outside
from nki_emulator.emulate import emulate
from nki_emulator.manifest import read_manifest

F = np.float32


def run_example(name, seed=11, low=-2, high=3, target="trn2"):
    """(result, plain float64 inputs) of an example on small integers."""
    manifest = read_manifest(os.path.join(KERNELS, name + ".json"))
    rng = np.random.default_rng(seed)
    held = [cast(rng.integers(low, high, a.shape), a.dtype) for a in manifest.inputs]
    with open(manifest.file, encoding="utf-8") as stream:
        text = stream.read()
    arrays = [to_outside(h, a.dtype) for h, a in zip(held, manifest.inputs)]
    return emulate(text, arrays, manifest, target=target, path=manifest.file), \
        [h.astype(np.float64) for h in held]


class Kernels(unittest.TestCase):
    def test_matmul_with_remainders_in_every_extent(self):
        result, (a, b) = run_example("matmul_remainder")
        np.testing.assert_array_equal(result.outputs[0], a.T @ b)
        self.assertEqual(result.cost["macs"], 200 * 300 * 700)
        self.assertEqual(result.cost["traffic_ratio"], 1.0)

    def test_contract_elementwise_reduce_gives_the_energy(self):
        result, (x, y, d) = run_example("pair_energy", low=-1, high=2)
        t = x.T @ y
        self.assertEqual(float(result.outputs[0][0, 0]), (t * (2 * t - d)).sum())

    def test_contract_transpose_contract_gives_both_results(self):
        result, (a, b, d) = run_example("contract_twice")
        np.testing.assert_array_equal(result.outputs[1], a.T @ b)
        np.testing.assert_array_equal(result.outputs[0], a.T @ b @ d)

    def test_attention_gives_the_softmax_average(self):
        result, (q, k, v) = run_example("attention")
        s = 0.125 * (q.T @ k)
        p = np.exp(s - s.max(1, keepdims=True))
        want = (p / p.sum(1, keepdims=True)) @ v
        # probabilities are rounded to bfloat16 before the second contraction
        np.testing.assert_allclose(result.outputs[0], want, atol=2 * 2.0 ** -8)

    def test_small_batches_on_quadrants_with_a_spill(self):
        result, (a, b) = run_example("batch_spill")
        c = np.einsum("zkm,zkn->zmn", a, b)
        np.testing.assert_array_equal(result.outputs[0], c)
        np.testing.assert_array_equal(result.outputs[1][0], np.maximum(c, 0).sum((0, 1)))

    def test_every_example_runs_on_every_target(self):
        names = [os.path.basename(p)[:-5] for p in glob.glob(os.path.join(KERNELS, "*.json"))]
        self.assertGreaterEqual(len(names), 5)
        for name in names:
            for target in ("trn1", "trn2", "trn3"):
                if name == "batch_spill" and target == "trn1":
                    continue                # quadrants of the array need generation 3
                with self.subTest(name=name, target=target):
                    run_example(name, target=target)

    def test_quadrants_are_refused_on_generation_2(self):
        from nki_emulator.errors import M6
        with self.assertRaises(M6):
            run_example("batch_spill", target="trn1")

    def test_a_run_is_a_function_of_its_inputs(self):
        first, _ = run_example("attention")
        second, _ = run_example("attention")
        self.assertEqual(first.report(), second.report())
        self.assertEqual(first.records, second.records)
        np.testing.assert_array_equal(first.outputs[0], second.outputs[0])

    def test_the_order_of_a_random_input_changes_the_answer(self):
        first, _ = run_example("matmul_remainder", seed=1)
        second, _ = run_example("matmul_remainder", seed=2)
        self.assertFalse((first.outputs[0] == second.outputs[0]).all())

    def test_bfloat16_results_travel_as_patterns(self):
        self.assertEqual(to_outside(cast(np.ones(2), TYPES["bfloat16"]),
                                    TYPES["bfloat16"]).tolist(), [0x3F80, 0x3F80])


if __name__ == "__main__":
    unittest.main()
