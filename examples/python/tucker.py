#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tucker decomposition by higher-order orthogonal iteration: a small core and three orthonormal factors. The contractions are kernels
(tucker.tdsl).

    tucker.py [--shape 60 50 40] [--ranks 6 5 4] [--noise 0.05] [--sweeps 50]"""
import argparse
import pathlib

import numpy as np
import tdsl

kernels = tdsl.load(pathlib.Path(__file__).with_name("tucker.tdsl"))


def leading(G, rank):
    """The eigenvectors of the largest eigenvalues."""
    return np.ascontiguousarray(np.linalg.eigh(G)[1][:, :-rank - 1:-1])


def decompose(T, ranks, sweeps=50, tolerance=1e-10, seed=0, told=lambda sweep, error: None):
    """(S, (A, B, C)), and the relative error after each sweep; ends when a sweep gains less than the tolerance."""
    rng = np.random.default_rng(seed)
    A, B, C = (np.linalg.qr(rng.standard_normal((n, r)))[0] for n, r in zip(T.shape, ranks))
    errors = []
    for sweep in range(1, sweeps + 1):
        A = leading(kernels.for_a(T, B, C), ranks[0])
        B = leading(kernels.for_b(T, A, C), ranks[1])
        C = leading(kernels.for_c(T, A, B), ranks[2])
        made = kernels.core(T, A, B, C)
        errors.append(float(np.sqrt(made.E / made.N)))
        told(sweep, errors[-1])
        if sweep > 1 and errors[-2] - errors[-1] < tolerance:
            break
    return (made.S, (A, B, C)), errors


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--shape", type=int, nargs=3, default=(60, 50, 40))
    p.add_argument("--ranks", type=int, nargs=3, default=(6, 5, 4))
    p.add_argument("--noise", type=float, default=0.05)
    p.add_argument("--sweeps", type=int, default=50)
    a = p.parse_args()
    rng = np.random.default_rng(1)
    factors = [rng.standard_normal((n, r)) for n, r in zip(a.shape, a.ranks)]
    T = tdsl.einsum("abc,ia,jb,kc->ijk", rng.standard_normal(a.ranks), *factors)
    noise = rng.standard_normal(a.shape)
    T += a.noise * np.linalg.norm(T) / np.linalg.norm(noise) * noise
    _, errors = decompose(T, a.ranks, a.sweeps, told=lambda sweep, error: print(f"sweep {sweep}: error {error:.6e} (noise {a.noise:g})"))
    return errors[-1] > a.noise + 1e-6


if __name__ == "__main__":
    raise SystemExit(main())
