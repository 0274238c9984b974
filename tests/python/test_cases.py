# SPDX-License-Identifier: Apache-2.0
"""The cases of tests/data/einsum.json through tdsl.einsum: all of them interpreted, every 40th compiled. What is refused there and
accepted here stands in tests/einsum/divergent.txt."""
import json
import os
import re
import tempfile
import unittest
import warnings

import numpy as np
import tdsl
from tdsl import _einsum

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
COMPILER = os.environ["TDSL_CC"] if "TDSL_CC" in os.environ else "cc"


def operand(k, shape):
    n = int(np.prod(shape))
    return (((7 * np.arange(n) + 13 * k + 3) % 11) - 5).astype("i8").reshape(shape)


def read():
    with open(os.path.join(TESTS, "data", "einsum.json"), encoding="utf-8") as f:
        cases = json.load(f)["cases"]
    with open(os.path.join(TESTS, "einsum", "divergent.txt"), encoding="utf-8") as f:
        accepted = dict(re.findall(r"^(E\d+) accepted sum=(-?\d+)", f.read(), re.M))
    return [c for c in cases if c["status"] != "perf-only"], accepted


class Cases(unittest.TestCase):
    def one(self, case, accepted):
        arrays = [operand(k, s) for k, s in enumerate(case["shapes"])]
        if case["status"].startswith("ok"):
            got = tdsl.einsum(case["eq"], *arrays)
            self.assertEqual(list(np.shape(got)), case["out_shape"])
            if "sum" in case:
                flat = np.ravel(got)
                self.assertEqual(int(flat.sum()), case["sum"])
                self.assertEqual(int((flat * (np.arange(flat.size) % 97 + 1)).sum()), case["wsum"])
        elif case["id"] in accepted:
            self.assertEqual(int(np.sum(tdsl.einsum(case["eq"], *arrays))), int(accepted[case["id"]]))
        else:
            with self.assertRaises(ValueError):
                tdsl.einsum(case["eq"], *arrays)

    def test_all_interpreted(self):
        cases, accepted = read()
        self.assertGreater(len(cases), 700)
        os.environ["TDSL_CC"] = "no-such-compiler"
        with tempfile.TemporaryDirectory(), warnings.catch_warnings():
            warnings.simplefilter("ignore", tdsl.SlowWarning)
            for case in cases:
                with self.subTest(case["id"], eq=case["eq"]):
                    self.one(case, accepted)

    def test_some_compiled(self):
        cases, accepted = read()
        os.environ["TDSL_CC"] = COMPILER
        _einsum._forget()
        for case in cases[::40]:
            with self.subTest(case["id"], eq=case["eq"]):
                self.one(case, accepted)


unittest.main()
