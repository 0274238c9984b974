#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CP decomposition by alternating least squares: a tensor as a sum of `rank` products of three vectors. The contractions are kernels (cp.tdsl).

    cp.py [--shape 60 50 40] [--rank 5] [--sweeps 200] [--tolerance 1e-8]"""
import argparse
import pathlib

import numpy as np
import tdsl

kernels = tdsl.load(pathlib.Path(__file__).with_name("cp.tdsl"))


def decompose(T, rank, sweeps=200, tolerance=1e-8, seed=0, told=lambda sweep, error: None):
    """(A, B, C), and the relative error after each sweep; ends when the error, or what a sweep gains of it, is below the tolerance."""
    rng = np.random.default_rng(seed)
    A, B, C = (rng.standard_normal((n, rank)) for n in T.shape)

    def solve(sides):
        # G is singular where columns are parallel; a little on its diagonal keeps them apart, and is too small to be seen in the error
        G = sides.G + 1e-14 * np.trace(sides.G) * np.eye(rank)
        return np.ascontiguousarray(np.linalg.solve(G, sides.M.T).T)

    errors = []
    for sweep in range(1, sweeps + 1):
        A = solve(kernels.for_a(T, B, C))
        B = solve(kernels.for_b(T, A, C))
        C = solve(kernels.for_c(T, A, B))
        left = kernels.residual(T, A, B, C)
        errors.append(float(np.sqrt(left.E / left.N)))
        told(sweep, errors[-1])
        if errors[-1] < tolerance or (sweep > 1 and errors[-2] - errors[-1] < tolerance * errors[-1]):
            break
    return (A, B, C), errors


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--shape", type=int, nargs=3, default=(60, 50, 40))
    p.add_argument("--rank", type=int, default=5)
    p.add_argument("--sweeps", type=int, default=200)
    p.add_argument("--tolerance", type=float, default=1e-8)
    a = p.parse_args()
    rng = np.random.default_rng(1)
    T = tdsl.einsum("is,js,ks->ijk", *(rng.standard_normal((n, a.rank)) for n in a.shape))
    _, errors = decompose(T, a.rank, a.sweeps, a.tolerance, told=lambda sweep, error: print(f"sweep {sweep}: error {error:.3e}"))
    return errors[-1] > max(a.tolerance, 1e-6)


if __name__ == "__main__":
    raise SystemExit(main())
