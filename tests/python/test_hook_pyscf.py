# SPDX-License-Identifier: Apache-2.0
"""tdsl.pyscf beside PySCF. Exits 77 without PySCF."""
import sys
import unittest

import numpy as np

try:
    from pyscf import cc, df, gto, lib, mp, scf
except ImportError as error:
    print(f"skipped: {error}: `.ci/setup test` puts it into ~/.cache/tdsl-tests")
    sys.exit(77)
import tdsl
import tdsl.pyscf

WATER = "O 0 0 0; H 0 -0.757 0.587; H 0 0.757 0.587"


class Mp2(unittest.TestCase):
    def same(self, ours, theirs):
        self.assertAlmostEqual(ours, theirs.e_corr, delta=1e-9)
        self.assertAlmostEqual(ours.e_corr_os, theirs.e_corr_os, delta=1e-9)
        self.assertAlmostEqual(ours.e_corr_ss, theirs.e_corr_ss, delta=1e-9)

    def test_closed_shells(self):
        mol = gto.M(atom=WATER, basis="cc-pvdz", verbose=0)
        mf = scf.RHF(mol).run()
        self.same(tdsl.pyscf.dfmp2(mf), mp.dfmp2.DFMP2(mf).run())
        self.same(tdsl.pyscf.dfmp2(mf, frozen=2), mp.dfmp2.DFMP2(mf, frozen=2).run())
        fitted = scf.RHF(mol).density_fit().run()
        self.same(tdsl.pyscf.dfmp2(fitted), mp.dfmp2.DFMP2(fitted).run())
        with_df = df.DF(mol, auxbasis="weigend")
        self.assertAlmostEqual(tdsl.pyscf.dfmp2(mf, with_df=with_df), -0.204254500453, delta=1e-8)
        theirs = mp.dfmp2.DFMP2(mf)
        self.assertAlmostEqual(tdsl.pyscf.dfmp2(theirs), theirs.run().e_corr, delta=1e-9)

    def test_open_shells(self):
        mf = scf.UHF(gto.M(atom="O 0 0 0; O 0 0 1.2", basis="cc-pvdz", spin=2, verbose=0)).run()
        self.same(tdsl.pyscf.dfmp2(mf), mp.dfump2.DFUMP2(mf).run())

    def test_nothing_to_correlate(self):
        """No electron of one spin, or of none, no virtual orbital, all frozen."""
        unrestricted = lambda atom, basis, spin: scf.UHF(gto.M(atom=atom, basis=basis, spin=spin, verbose=0)).run()
        helium = scf.RHF(gto.M(atom="He 0 0 0", basis="sto-3g", verbose=0)).run()
        water = scf.RHF(gto.M(atom=WATER, basis="sto-3g", verbose=0)).run()
        for mf, frozen in ((unrestricted("H 0 0 0", "cc-pvdz", 1), None), (unrestricted("H 0 0 0", "sto-3g", 1), None), (unrestricted("H 0 0 0; H 0 0 1", "sto-3g", 2), None),
                           (unrestricted("He 0 0 0", "sto-3g", 0), None), (helium, None), (water, 5)):
            got = tdsl.pyscf.dfmp2(mf, frozen=frozen)
            self.assertEqual((float(got), got.e_corr_os, got.e_corr_ss), (0, 0, 0))
        for mf in unrestricted("H 0 0 0; H 0 0 1", "cc-pvdz", 2), unrestricted("Li 0 0 0", "cc-pvdz", 1):  # pairs of one spin alone; one electron of the other
            self.assertAlmostEqual(tdsl.pyscf.dfmp2(mf), mp.dfump2.DFUMP2(mf).run().e_corr, delta=1e-9)

    def test_what_is_refused(self):
        for mf in (scf.ROHF(gto.M(atom="O", spin=2, verbose=0)), None):
            with self.assertRaises(ValueError):
                tdsl.pyscf.dfmp2(mf)


class Patch(unittest.TestCase):
    def test_ccsd(self):
        mf = scf.RHF(gto.M(atom=WATER, basis="6-31g", verbose=0)).run()
        want = cc.rccsd.RCCSD(mf).run().e_corr
        calls = []
        ours, tdsl.pyscf.einsum = tdsl.pyscf.einsum, lambda *a, **k: calls.append(a[0]) or ours(*a, **k)
        try:
            with tdsl.pyscf.patch(least=3e3):
                got = cc.rccsd.RCCSD(mf).run().e_corr
        finally:
            tdsl.pyscf.einsum = ours
        self.assertAlmostEqual(got, want, delta=1e-8)
        self.assertGreater(len(set(calls)), 3)

    def test_it_ends(self):
        before = lib.numpy_helper.contract
        a = np.random.default_rng(1).random((20, 20))
        with self.assertRaises(KeyError):
            with tdsl.pyscf.patch(least=0):
                self.assertIsNot(lib.numpy_helper.contract, before)
                out = np.ones((20, 20))
                np.testing.assert_allclose(lib.einsum("ij,jk->ik", a, a), a @ a)
                np.testing.assert_allclose(lib.contract("ij,kj->ik", a, a, alpha=2, beta=1, out=out), 2 * a @ a.T + 1)
                np.testing.assert_allclose(lib.einsum("ij,jk,kl->il", a, a.T, a), a @ a.T @ a)
                raise KeyError
        self.assertIs(lib.numpy_helper.contract, before)
        self.assertIs(lib.contract, before)


unittest.main()
