# SPDX-License-Identifier: Apache-2.0
"""CP, Tucker and tensor trains."""
from .. import _decompose
from .._errors import DtypeError, ShapeError
from .._trnsci import array_of, back, kind_of


def _floating(tensor, name):
    import numpy as np
    a = array_of(tensor, 0)
    if a.dtype not in (np.float32, np.float64):
        raise DtypeError(f"{name}: {a.dtype}, not f32 or f64", "tensor")
    return np.ascontiguousarray(a)


def _random(kind):
    """Normal random numbers by the kind's own generator, so that its seed counts."""
    if kind == "torch":
        import torch
        return lambda shape: torch.randn(*shape).numpy()
    import numpy as np
    return lambda shape: np.random.standard_normal(shape)


def cp_decompose(tensor, rank, max_iter=100, tol=1e-6, nonneg=False, factors=None):
    """(factors, weights) with tensor = sum over r of weights[r] times the outer product of the r-th columns, by alternating least squares; with `nonneg`
    by multiplicative updates. Ends when the relative error is below tol. factors: what to start from; default normal random numbers."""
    kind = kind_of([tensor])
    given = None if factors is None else [array_of(f, k) for k, f in enumerate(factors)]
    if given is not None and [g.shape for g in given] != [(n, int(rank)) for n in tensor.shape]:
        raise ShapeError(f"cp_decompose: warm-start factors have shapes {[g.shape for g in given]}, not {[(int(n), int(rank)) for n in tensor.shape]}", "factors")
    found, weights = _decompose.cp(_floating(tensor, "cp_decompose"), int(rank), max_iter, tol, nonneg, given, _random(kind))
    return [back(f, kind) for f in found], back(weights, kind)


def cp_reconstruct(factors, weights=None):
    """The tensor of CP factors and weights, or of the pair of both that cp_decompose returns."""
    if weights is None:
        factors, weights = factors
    return back(_decompose.cp_tensor([array_of(f, k) for k, f in enumerate(factors)], array_of(weights, 0)), kind_of(factors))


def tucker_decompose(tensor, ranks):
    """(core, factors), with orthonormal factors [extent, rank] of each dimension, by singular vectors (HOSVD)."""
    kind = kind_of([tensor])
    core, factors = _decompose.tucker(_floating(tensor, "tucker_decompose"), tuple(ranks))
    return back(core, kind), [back(f, kind) for f in factors]


def tucker_reconstruct(core, factors):
    """The tensor of a Tucker core and factors."""
    return back(_decompose.tucker_tensor(array_of(core, 0), [array_of(f, k) for k, f in enumerate(factors)]), kind_of([core]))


def tt_decompose(tensor, max_rank):
    """Cores [left rank, extent, right rank], ranks at most max_rank (TT-SVD)."""
    kind = kind_of([tensor])
    return [back(c, kind) for c in _decompose.tensor_train(_floating(tensor, "tt_decompose"), int(max_rank))]


def tt_reconstruct(cores):
    """The tensor of a train."""
    return back(_decompose.tensor_of_train([array_of(c, k) for k, c in enumerate(cores)]), kind_of(cores))
