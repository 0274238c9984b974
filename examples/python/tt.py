#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tensor train by TT-SVD: a tensor of any number of axes as a chain of cores, cut off one after the other. The contractions are kernels (tt.tdsl).

    tt.py [--shape 12 11 10 9] [--tolerance 1e-6]"""
import argparse
import pathlib

import numpy as np
import tdsl

kernels = tdsl.load(pathlib.Path(__file__).with_name("tt.tdsl"))


def decompose(T, tolerance=1e-6, max_rank=None, told=lambda cut, rank, error: None):
    """The cores, of shape (rank before, extent, rank after), whose product differs from T by at most tolerance (relative; not below
    1e-7, as singular values are found from squares), if max_rank allows that."""
    square = np.vdot(T, T)
    budget = max(tolerance, 1e-7) ** 2 * square / max(1, T.ndim - 1)
    cores, rank, rest, dropped = [], 1, T, 0.0
    for cut, extent in enumerate(T.shape[:-1], 1):
        X = rest.reshape(rank * extent, -1)
        values, vectors = np.linalg.eigh(kernels.gram(X))         # ascending: squares of the singular values
        lost = np.cumsum(np.maximum(values, 0))                   # if the first of them are dropped
        keep = min(max(1, int((lost > budget).sum())), max_rank or len(values))
        dropped += lost[-keep - 1] if keep < len(values) else 0.0
        U = np.ascontiguousarray(vectors[:, :-keep - 1:-1])
        cores.append(U.reshape(rank, extent, keep))
        rest, rank = kernels.project(U, X), keep
        told(cut, rank, float(np.sqrt(dropped / square)))
    return [*cores, rest.reshape(rank, T.shape[-1], 1)]


def join(cores):
    """The tensor of a train."""
    X = cores[0].reshape(cores[0].shape[1], -1)
    for core in cores[1:]:
        X = kernels.join(X.reshape(-1, core.shape[0]), core.reshape(core.shape[0], -1))
    return X.reshape([core.shape[1] for core in cores])


def error(T, cores):
    """Relative, of the train as a whole."""
    left = kernels.residual(T.reshape(len(T), -1), join(cores).reshape(len(T), -1))
    return float(np.sqrt(left.E / left.N))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--shape", type=int, nargs="+", default=(12, 11, 10, 9))
    p.add_argument("--tolerance", type=float, default=1e-6)
    a = p.parse_args()
    # 1 / (1 + i + j + ...) has small ranks, which grow with the accuracy
    T = 1 / (1 + sum(np.arange(n).reshape([-1 if k == axis else 1 for k in range(len(a.shape))]) for axis, n in enumerate(a.shape)))
    for tolerance in sorted({1e-1, 1e-2, 1e-4, a.tolerance}, reverse=True):
        print(f"tolerance {tolerance:g}")
        cores = decompose(T, tolerance, told=lambda cut, rank, bound: print(f"  cut {cut}: rank {rank}, error at most {bound:.3e}"))
        found = error(T, cores)
        print(f"  error {found:.3e}, {sum(c.size for c in cores)} numbers in place of {T.size}")
    return found > a.tolerance


if __name__ == "__main__":
    raise SystemExit(main())
