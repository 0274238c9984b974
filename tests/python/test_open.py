# SPDX-License-Identifier: Apache-2.0
"""Kernels with open extents far from those planned: what packed panels hold beyond an operand's end is zero, whatever their memory held before."""
import itertools
import unittest

import numpy as np
import tdsl

# what is planned for, and extents to call with
CASES = (("ijk,jr,kr->ir", "ijkr", 64, ((1, 13, 64), (1, 9, 17), (5, 63, 65, 130), (11, 16, 40))),
         ("akb,kc->abc", "akbc", 64, ((1, 7, 65), (3, 64, 70), (5, 63, 64, 65), (1, 17, 70))),
         ("kab,klc,l->abc", "kablc", 32, ((3, 31), (5, 33), (1, 31, 33), (2, 31, 40), (1, 17))))


class Open(unittest.TestCase):
    def test_beside_what_was_there_before(self):
        rng = np.random.default_rng(1)
        for equation, labels, typical, extents in CASES:
            terms = equation.split("->")[0].split(",")
            head = ", ".join(f"A{k}: f64[{', '.join(t)}]" for k, t in enumerate(terms))
            result = equation.split("->")[1]
            text = (f"dim {', '.join(f'{x} ~ {typical}' for x in labels)}; kernel f({head}) -> (R: f64[{', '.join(result)}]) "
                    f"{{ R = einsum(\"{equation}\", {', '.join(f'A{k}' for k in range(len(terms)))}); }}")
            kernel = tdsl.compile(text).f
            largest = {x: max(ns) for x, ns in zip(labels, extents)}
            poison = [np.full([largest[x] for x in t], np.nan) for t in terms]
            for ns in itertools.product(*extents):
                size = dict(zip(labels, ns))
                arrays = [rng.integers(-3, 4, [size[x] for x in t]).astype(float) for t in terms]
                kernel(*poison)  # leaves NaN in the workspace
                np.testing.assert_array_equal(kernel(*arrays), np.einsum(equation, *arrays, optimize=True), f"{equation} {size}")


    def test_sizes_that_a_call_has_are_planned_for(self):
        p = tdsl.compile("""dim m ~ 30; kernel f(A: f64[m, k], B: f64[k, n]) -> (C: f64[m, n]) { C[i,j] = A[i,p] * B[p,j]; }
                            kernel g(A: f64[n, n]) -> (E: f64) { E = sum[i,j](A[i,j]); }""")
        f = tdsl.expression("ij,jk->ik", (None, 3), (3, None))
        for m, k, n in (5, 3, 7), (3000, 3, 20), (300, 3, 2), (5, 3, 20000), (40, 3, 60):
            a, b = np.ones((m, k)), np.arange(k * n).reshape(k, n).astype(float)
            for call in p.f, f:
                np.testing.assert_array_equal(call(a, b), a @ b)
        typical = p.f._planned._typical
        self.assertEqual(typical["m"], 30)  # as the program says
        self.assertEqual(typical["n"], 16384)
        self.assertEqual(f._planned._typical, {(0, 0): 4, (1, 1): 16384})
        self.assertEqual(p.g(np.ones((300, 300))), 90000)
        self.assertEqual(p.g._planned._typical, {"n": 256})


if __name__ == "__main__":
    import warnings
    warnings.simplefilter("ignore", tdsl.CompileWarning)
    unittest.main(warnings="ignore")
