# SPDX-License-Identifier: Apache-2.0
"""DF-MP2 for PySCF, and PySCF's own einsum with our kernels.

    import tdsl.pyscf
    energy = tdsl.pyscf.dfmp2(mf)
    with tdsl.pyscf.patch():
        cc.CCSD(mf).run()
"""
import contextlib
import functools
import warnings

from pyscf.lib import numpy_helper

from ._einsum import einsum
from ._errors import ArgumentError, CopyWarning
from ._program import compile as compile_program

__all__ = ["Energy", "dfmp2", "patch"]

# T and the denominators are never in memory as a whole; of orbitals of one spin only pairs i <= j are computed.
_TEXT = """
dim o ~ 16, v ~ 128, p ~ 16, w ~ 128, x ~ 384;
kernel closed(B: f64[o, v, x], eo: f64[o], ev: f64[v]) -> (opposite: f64, same: f64) {
    T[i,a,j,b] = B[i,a,P] * B[j,b,P];
    D[i,a,j,b] = eo[i] + eo[j] - ev[a] - ev[b];
    opposite = sum[i,j,a,b]( T[i,a,j,b] * T[i,a,j,b] / D[i,a,j,b] );
    same = sum[i,j,a,b]( T[i,a,j,b] * (T[i,a,j,b] - T[i,b,j,a]) / D[i,a,j,b] );
}
kernel like(B: f64[o, v, x], eo: f64[o], ev: f64[v]) -> (same: f64) {
    T[i,a,j,b] = B[i,a,P] * B[j,b,P];
    D[i,a,j,b] = eo[i] + eo[j] - ev[a] - ev[b];
    same = sum[i,j,a,b]( T[i,a,j,b] * (T[i,a,j,b] - T[i,b,j,a]) / D[i,a,j,b] );
}
kernel unlike(A: f64[o, v, x], B: f64[p, w, x], eo: f64[o], ev: f64[v], fo: f64[p], fv: f64[w]) -> (opposite: f64) {
    T[i,a,j,b] = A[i,a,P] * B[j,b,P];
    opposite = sum[i,j,a,b]( T[i,a,j,b] * T[i,a,j,b] / (eo[i] + fo[j] - ev[a] - fv[b]) );
}
"""


class Energy(float):
    """A correlation energy in Hartree, and its parts of pairs of opposite and of the same spin under PySCF's names: e_corr_os, e_corr_ss."""

    def __new__(cls, opposite, same):
        self = float.__new__(cls, opposite + same)
        self.e_corr_os, self.e_corr_ss = float(opposite), float(same)
        return self


@functools.lru_cache(maxsize=None)
def _program():
    return compile_program(_TEXT)


def _threads(threads):
    from pyscf import lib
    return threads or lib.num_threads()


def dfmp2(mf, frozen=None, mo_coeff=None, mo_occ=None, mo_energy=None, with_df=None, threads=None):
    """The MP2 correlation energy of a mean field of PySCF (RHF or UHF, or an object of pyscf.mp.dfmp2 or dfump2) with density fitting, as an Energy.

    frozen, mo_coeff, mo_occ, mo_energy: as PySCF's DFMP2 takes them; with_df: a pyscf.df.DF, default what DFMP2 takes. Integrals and their
    transformation are PySCF's, the energy is ours; B[i, a, P] is held in memory (of both spins for UHF), amplitudes are not made. threads: default lib.num_threads().
    """
    import numpy as np
    from pyscf.mp import dfmp2 as restricted
    from pyscf.mp import dfump2 as unrestricted
    if isinstance(mf, (restricted.DFRMP2, unrestricted.DFUMP2)):
        mp = mf
    else:
        from pyscf import scf
        if isinstance(mf, (scf.rohf.ROHF, scf.ghf.GHF)) or not isinstance(mf, (scf.hf.RHF, scf.uhf.UHF)):
            raise ArgumentError(f"dfmp2: a mean field of RHF or UHF, not {type(mf).__name__}", "mf")
        make = unrestricted.DFUMP2 if isinstance(mf, scf.uhf.UHF) else restricted.DFRMP2
        mp = make(mf, frozen=frozen, mo_coeff=mo_coeff, mo_occ=mo_occ, mo_energy=mo_energy)
    if with_df is not None:
        mp.with_df = with_df
    energies = mp.split_mo_energy()  # of each spin: frozen, occupied, virtual, frozen
    spins = energies if isinstance(mp, unrestricted.DFUMP2) else [energies]
    pairs = [len(e[1]) * len(e[2]) for e in spins]
    if not any(pairs):
        return Energy(0, 0)  # and PySCF does not make integrals of nothing
    eris = mp.ao2mo()
    count, program = _threads(threads), _program()
    whole = lambda a: np.ascontiguousarray(a, dtype=np.float64)
    if not isinstance(mp, unrestricted.DFUMP2):
        eo, ev = energies[1:3]
        B = whole(eris.ovL).reshape(len(eo), len(ev), -1)
        return Energy(*program.closed(B, whole(eo), whole(ev), threads=count))
    eo, ev = [whole(e[1]) for e in energies], [whole(e[2]) for e in energies]
    if not all(pairs):
        k = pairs.index(max(pairs))
        return Energy(0, program.like(whole(eris.ovL[k]).reshape(len(eo[k]), len(ev[k]), -1), eo[k], ev[k], threads=count) / 2)
    B = [whole(b).reshape(len(o), len(v), -1) for b, o, v in zip(eris.ovL, eo, ev)]
    same = sum(program.like(b, o, v, threads=count) for b, o, v in zip(B, eo, ev)) / 2
    return Energy(program.unlike(B[0], B[1], eo[0], ev[0], eo[1], ev[1], threads=count), same)


def _multiply_adds(subscripts, a, b):
    sizes = {}
    for term, x in zip(subscripts.replace(" ", "").split("->")[0].split(","), (a, b)):
        sizes.update(zip(term, x.shape))
    count = 1
    for n in sizes.values():
        count *= n
    return count


@contextlib.contextmanager
def patch(least=1e6, threads=None):
    """Within it pyscf.lib.einsum and pyscf.lib.contract take our kernels for pairs of arrays with at least so many multiply-adds; smaller ones stay
    PySCF's, for a new string costs a compilation. For the whole process: not for several threads that enter and leave it. Copies of arrays that are not
    in C order are silent."""
    from pyscf import lib
    name = "_contract" if hasattr(numpy_helper, "_contract") else "contract"
    theirs, count = getattr(numpy_helper, name), _threads(threads)

    @functools.wraps(theirs)
    def contract(subscripts, *tensors, alpha=1, beta=0, out=None, **kwargs):
        if len(tensors) != 2 or kwargs or "." in subscripts or not all(hasattr(t, "shape") for t in tensors) or \
                _multiply_adds(subscripts, *tensors) < least or (beta != 0 and out is None):
            if (alpha, beta, out) != (1, 0, None):
                kwargs.update(alpha=alpha, beta=beta, out=out)
            return theirs(subscripts, *tensors, **kwargs)
        scaled = {} if (alpha, beta) == (1, 0) else {"alpha": alpha, "beta": beta}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CopyWarning)
            return einsum(subscripts, *tensors, out=out, threads=count, **scaled)

    also = [(place, key) for place in (lib, numpy_helper) for key in ("contract", "_contract") if getattr(place, key, None) is theirs]
    for place, key in also:
        setattr(place, key, contract)
    try:
        yield
    finally:
        for place, key in also:
            setattr(place, key, theirs)
