# SPDX-License-Identifier: Apache-2.0
"""examples/python: the decompositions converge on small data, by every door; the picture is one."""
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

import numpy as np

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "python")
sys.path.insert(0, FOLDER)
import cp  # noqa: E402
import tt  # noqa: E402
import tucker  # noqa: E402


def run(script, *options):
    done = subprocess.run([sys.executable, "-B", os.path.join(FOLDER, script), *map(str, options)], capture_output=True, text=True, check=False)
    if done.returncode or done.stderr:
        raise AssertionError(done.stdout + done.stderr)
    return done.stdout


class Examples(unittest.TestCase):
    def test_cp(self):
        rng = np.random.default_rng(3)
        factors = [rng.standard_normal((n, 3)) for n in (9, 8, 7)]
        T = np.einsum("is,js,ks->ijk", *factors)
        found, errors = cp.decompose(T, 3)
        self.assertLess(errors[-1], 1e-8)
        self.assertLess(np.diff(errors).max(), 1e-9)
        np.testing.assert_allclose(np.einsum("is,js,ks->ijk", *found), T, atol=1e-6)
        out = run("cp.py", "--shape", 9, 8, 7, "--rank", 2)
        self.assertRegex(out, r"\Asweep 1: error \d\.\d+e-0\d\n(sweep .*\n)*sweep \d+: error \d\.\d+e-09\n\Z")

    def test_tucker(self):
        rng = np.random.default_rng(3)
        T = np.einsum("abc,ia,jb,kc->ijk", rng.standard_normal((3, 2, 2)), *(rng.standard_normal((n, r)) for n, r in ((9, 3), (8, 2), (7, 2))))
        (S, (A, B, C)), errors = tucker.decompose(T, (3, 2, 2))
        self.assertLess(errors[-1], 1e-7)
        np.testing.assert_allclose(np.einsum("abc,ia,jb,kc->ijk", S, A, B, C), T, atol=1e-5)
        for factor in A, B, C:
            np.testing.assert_allclose(factor.T @ factor, np.eye(factor.shape[1]), atol=1e-12)
        noisy = T + 0.1 * rng.standard_normal(T.shape)
        _, errors = tucker.decompose(noisy, (3, 2, 2), tolerance=1e-13, sweeps=100)
        self.assertLess(np.diff(errors).max(), 1e-9)
        out = run("tucker.py", "--shape", 12, 10, 9, "--ranks", 3, 2, 2)
        self.assertLess(float(re.findall(r"error (\S+)", out)[-1]), 0.05)

    def test_tt(self):
        rng = np.random.default_rng(3)
        cores = [rng.standard_normal(shape) for shape in ((1, 5, 2), (2, 4, 3), (3, 6, 2), (2, 3, 1))]
        T = tt.join([np.ascontiguousarray(c) for c in cores])
        np.testing.assert_allclose(T, np.einsum("zia,ajb,bkc,cly->ijkl", *cores))
        found = tt.decompose(T)
        self.assertEqual([c.shape for c in found], [c.shape for c in cores])
        self.assertLess(tt.error(T, found), 1e-6)
        bounds = []
        short = tt.decompose(T, max_rank=1, told=lambda cut, rank, bound: bounds.append(bound))
        self.assertEqual([c.shape[2] for c in short], [1, 1, 1, 1])
        self.assertLessEqual(tt.error(T, short), bounds[-1] * (1 + 1e-9))
        self.assertGreater(tt.error(T, short), 0.01)
        self.assertIn("in place of 120", run("tt.py", "--shape", 5, 4, 3, 2))

    def test_sizes(self):
        with tempfile.TemporaryDirectory() as folder:
            picture = os.path.join(folder, "s.svg")
            out = run("sizes.py", "--largest", 8, "-o", picture)
            self.assertEqual(len(re.findall(r"n = +8: tdsl \d.*numpy \d", out)), 3)
            root = ElementTree.parse(picture).getroot()
            lines = [e for e in root.iter() if e.tag.endswith("polyline")]
            self.assertGreaterEqual(len(lines), 6)
            self.assertTrue(all(len(line.get("points").split()) == 2 for line in lines))


unittest.main()
