#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Values that are hermitian, or symmetric in groups of dimensions: density matrices, Fock matrices and transformed integrals, by the
interpreter and as C, beside NumPy, with promises about arguments and results checked.

usage: symmetry.py TDSLC TDSL-RUN
"""
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

from complex import complex_numbers
from expansions import problem, run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from quick import share  # noqa: E402

PROGRAM = pathlib.Path(__file__).parent / "symmetry.tdsl"
MIRRORED = {"density": 512, "turned": 512, "fock": 64, "coulomb": 64, "ao_to_mo": 96, "ovov": 96, "amplitudes": 96}  # n


def integrals(random, n, eightfold=True):
    g = random.integers(-2, 3, (n, n, n, n)).astype(float)
    if eightfold:
        g = g + g.transpose(1, 0, 2, 3)
        g = g + g.transpose(0, 1, 3, 2)
    return g + g.transpose(2, 3, 0, 1)


def cases(n, o, v):
    random = np.random.default_rng(n)
    C, f = complex_numbers(random, n, o), random.integers(-2, 3, o).astype(float)
    P = (C * f) @ C.conj().T
    yield "density", {"C": C, "f": f}, {"P": P, "w": P.real ** 2 + P.imag ** 2}
    H, X = complex_numbers(random, n, n), complex_numbers(random, n, n)
    H = H + H.conj().T
    yield "turned", {"H": H, "C": C, "X": X}, {"h": C.conj().T @ H @ C, "e": np.array((H * H.T).sum()), "K": X - X.conj().T}
    m = min(n, 24)
    g, h, D = integrals(random, m), random.integers(-2, 3, (m, m)).astype(float), random.integers(-2, 3, (m, m)).astype(float)
    h, D = h + h.T, D + D.T
    F = h + 2 * np.einsum("pqrs,rs->pq", g, D) - np.einsum("prqs,rs->pq", g, D)
    yield "fock", {"h": h, "g": g, "D": D}, {"F": F, "E": np.array(((h + F) * D).sum())}
    g, D = integrals(random, m, False), random.integers(-2, 3, (m, m)).astype(float)
    J = np.einsum("pqrs,rs->pq", g, D)
    yield "coulomb", {"g": g, "D": D}, {"J": J, "E": np.array((J * D).sum())}
    m, o, v = min(n, 12), min(o, 7), min(v, 9)
    g, C, V = integrals(random, m), random.integers(-2, 3, (m, o)).astype(float), random.integers(-2, 3, (m, v)).astype(float)
    yield "ao_to_mo", {"g": g, "C": C}, {"G": np.einsum("pqrs,pi,qj,rk,sl->ijkl", g, C, C, C, C, optimize=True)}
    g = integrals(random, m, False)
    G = np.einsum("pqrs,pi,qa,rj,sb->iajb", g, C, V, C, V, optimize=True)
    yield "ovov", {"g": g, "Co": C, "Cv": V}, {"G": G, "E": np.array((G * (2 * G - G.transpose(0, 3, 2, 1))).sum())}
    t = random.integers(-4, 5, (v, v, o, o)).astype(float)
    t = t - t.transpose(1, 0, 3, 2)
    yield "amplitudes", {"t": t}, {"y": 2 * t, "z": np.einsum("abij,baji->ia", t, t)}


def main():
    tdslc, tool = sys.argv[1:3]
    failed = 0
    for kernel, n in MIRRORED.items():
        # at sizes where a half is worth being left out
        nest = subprocess.run([tdslc, str(PROGRAM), f"--kernel={kernel}", "-w", "--dump=nest", f"-Dn={n}", f"-Do={n}" if kernel == "turned" else "-Do=32"],
                              check=True, capture_output=True, text=True).stdout
        if not re.search(r" both\b", nest) and kernel != "coulomb":
            failed += 1
            print(f"FAILED {kernel}: no half of a value is the image of the other")
    with tempfile.TemporaryDirectory() as folder:
        for extents in share(((40, 13, 9), (5, 3, 2), (0, 2, 1)), 1, gate=2):
            for kernel, arrays, wanted in cases(*extents):
                for target in ("interp", "c"):
                    got = run(tool, target, kernel, arrays, wanted, folder, PROGRAM, ("--check-symmetry",))
                    for name, want in wanted.items():
                        wrong = problem(got[name], want, False, 0)  # whole numbers below 2^53
                        if wrong is not None:
                            failed += 1
                            print(f"FAILED {kernel} {name} by {target} at {extents}: {wrong}")
    print(f"{failed} failures")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
