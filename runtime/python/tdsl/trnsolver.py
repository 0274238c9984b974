# SPDX-License-Identifier: Apache-2.0
"""The names and signatures of trnsolver: `import tdsl.trnsolver as trnsolver`. docs/trnsolver.md of TDSL says what differs.

Tensors are arrays of NumPy, or of torch on the CPU, and results of the same kind. Triangles are dense steps of the language; what needs
repeated steps is a driver in NumPy whose steps are kernels.
"""
from . import _factor, trnblas
from ._errors import ArgumentError, DtypeError, ShapeError
from ._trnsci import Library, array_of, back, from_xla, kind_of, to_xla

__all__ = ["HAS_NKI", "block_jacobi_preconditioner", "cg", "cholesky", "eigh", "eigh_generalized", "from_xla", "get_backend", "gmres", "inv_spd", "inv_sqrt_spd",
           "inv_sqrt_spd_ns", "jacobi_preconditioner", "lu", "pinv", "qr", "set_backend", "solve", "solve_spd", "ssor_preconditioner", "svd", "to_xla"]
__version__ = "0.9.0"  # of trnsolver, whose names these are

_library = Library("trnsolver")
set_backend, get_backend, __getattr__ = _library.set_backend, _library.get_backend, _library.attribute


def _read(name, *tensors):
    """(arrays of f32 or f64, a function that gives tensors of the kind and the type back). Of 16-bit types all is computed in f32."""
    import numpy as np
    _library.choose(name, lambda: 0, "", False, "a dense step")
    kind = kind_of(tensors)
    arrays = [array_of(x, k) for k, x in enumerate(tensors)]
    dtype = np.result_type(*(a.dtype for a in arrays))
    narrow = dtype.itemsize == 2 and dtype.kind in "fV"
    if not narrow and dtype not in (np.float32, np.float64):
        raise DtypeError(f"{name}: {dtype}, not f64, f32, f16 or bf16", 0)
    compute = np.dtype(np.float32) if narrow else dtype
    return [np.ascontiguousarray(a.astype(compute, copy=False)) for a in arrays], lambda a: back(np.asarray(a).astype(dtype, copy=False), kind)


def _matrix(name, A):
    if A.ndim != 2:
        raise ShapeError(f"{name}: A has shape {tuple(A.shape)}, and is a matrix", "A")


def _system(name, A, B):
    """B as a matrix, and a function that brings the solution into its shape."""
    _factor.square(name, A)
    if B.ndim not in (1, 2) or len(B) != len(A):
        raise ShapeError(f"{name}: B has shape {tuple(B.shape)}, not ({len(A)},) or ({len(A)}, any)", "B")
    return B.reshape(len(A), -1), lambda X: X.reshape(B.shape)


# Factors

def cholesky(A, upper=False):
    """L with A = L L^T of a symmetric positive definite A, of which the lower triangle is read; with `upper` its transpose."""
    (A,), give = _read("cholesky", A)
    L = _factor.cholesky("cholesky", A)
    return give(L.T.copy() if upper else L)


def lu(A):
    """(P, L, U) with A = P L U, by partial pivoting: a driver over panels of columns."""
    import numpy as np
    (A,), give = _read("lu", A)
    _factor.square("lu", A)
    order, factors = _factor.lu(A)
    P = np.zeros_like(A)
    P[order, np.arange(len(A))] = 1
    return give(P), give(np.tril(factors, -1) + np.eye(len(A), dtype=A.dtype)), give(np.triu(factors))


def qr(A):
    """(Q, R) with A = Q R, the diagonal of R above 0. ArgumentError where columns depend on each other to within rounding."""
    (A,), give = _read("qr", A)
    _matrix("qr", A)
    Q, R = _factor.qr(A)
    return give(Q), give(R)


def svd(A, full_matrices=False):
    """(U, s, Vh) with A = U diag(s) Vh, s descending, by Jacobi's method."""
    import numpy as np
    (A,), give = _read("svd", A)
    _matrix("svd", A)
    U, s, Vh = _factor.svd(A)
    if full_matrices:
        whole = []
        for Q, n in ((U, A.shape[0]), (Vh.T, A.shape[1])):
            full = np.zeros((n, n), A.dtype)
            full[:, :Q.shape[1]] = Q
            _factor.complete(full, range(Q.shape[1], n))
            whole.append(full)
        U, Vh = whole[0], whole[1].T.copy()
    return give(U), give(s), give(Vh)


def pinv(A, rcond=None):
    """The pseudoinverse, by `svd`: singular values up to rcond times the largest count as 0 (default: the type's rounding times the larger extent)."""
    import numpy as np
    (A,), give = _read("pinv", A)
    _matrix("pinv", A)
    U, s, Vh = _factor.svd(A)
    rcond = float(np.finfo(A.dtype).eps) * max(A.shape) if rcond is None else rcond
    kept = s > rcond * s[:1].max(initial=0)
    return give(trnblas.gemm(1.0, np.ascontiguousarray(Vh[kept] / s[kept, None]), np.ascontiguousarray(U[:, kept]), transA=True, transB=True))


# Systems

def solve(A, B):
    """X of A X = B, for a vector or columns B, by `lu`. ArgumentError where A is singular."""
    (A, B), give = _read("solve", A, B)
    columns, shaped = _system("solve", A, B)
    return give(shaped(_factor.solve(A, columns)))


def solve_spd(A, B, iterative_refinement=False):
    """X of A X = B, of a symmetric positive definite A, by its triangle. With iterative_refinement, once more for what is left of B, computed in f64."""
    import numpy as np
    (A, B), give = _read("solve_spd", A, B)
    columns, shaped = _system("solve_spd", A, B)
    L = _factor.cholesky("solve_spd", A)
    X = _factor.solve_cholesky(L, columns)
    if iterative_refinement:
        left = columns.astype(np.float64) - A.astype(np.float64) @ X.astype(np.float64)
        X = X + _factor.solve_cholesky(L, left.astype(A.dtype))
    return give(shaped(X))


def inv_spd(A):
    """The inverse of a symmetric positive definite matrix."""
    import numpy as np
    (A,), give = _read("inv_spd", A)
    return give(_factor.solve_cholesky(_factor.cholesky("inv_spd", A), np.eye(len(A), dtype=A.dtype)))


def _scaled_vectors(name, A, function):
    """V function(values) V^T"""
    import numpy as np
    _factor.square(name, A)
    values, V = _factor.eigh(A, 0.0)
    return trnblas.gemm(1.0, V * function(np.maximum(values, 1e-12)), V, transB=True)


def inv_sqrt_spd(A):
    """A^-1/2 of a symmetric positive definite matrix, by `eigh`; eigenvalues below 1e-12 count as that."""
    import numpy as np
    (A,), give = _read("inv_sqrt_spd", A)
    return give(_scaled_vectors("inv_sqrt_spd", A, lambda values: 1 / np.sqrt(values)))


def inv_sqrt_spd_ns(A, *, max_iters=20, tol=1e-7):
    """(A^-1/2, iterations, residual) by the coupled iteration of Newton and Schulz: products of matrices alone."""
    import numpy as np
    (A,), give = _read("inv_sqrt_spd_ns", A)
    _factor.square("inv_sqrt_spd_ns", A)
    n, scale = len(A), float(np.sqrt((A.astype(np.float64) ** 2).sum()))
    one = np.eye(n, dtype=A.dtype)
    Y, Z, residual, k = A / A.dtype.type(scale), one, float("inf"), 0
    while k < max_iters and residual >= tol:
        step = trnblas.gemm(-0.5, Z, Y, 1.5, one)
        Y, Z, k = trnblas.gemm(1.0, Y, step), trnblas.gemm(1.0, step, Z), k + 1
        residual = float(trnblas.nrm2(trnblas.gemm(1.0, Y, Z, -1.0, one))) / n ** 0.5
    return give(Z / A.dtype.type(scale ** 0.5)), k, residual


# Eigenvalues

def eigh(A, tol=1e-10):
    """(values, vectors) of a symmetric matrix, values ascending, vectors as columns, by Jacobi's method: until no element beside the diagonal is above `tol`
    times the norm of A, or two roundings of the type."""
    (A,), give = _read("eigh", A)
    _factor.square("eigh", A)
    values, vectors = _factor.eigh(A, float(tol))
    return give(values), give(vectors)


def eigh_generalized(A, B, tol=1e-10):
    """(values, vectors) of A x = value * B x, of symmetric A and positive definite B."""
    import numpy as np
    (A, B), give = _read("eigh_generalized", A, B)
    _factor.square("eigh_generalized", A)
    L = _factor.cholesky("eigh_generalized", B)
    half = _factor.solve_triangle("forward", L, A)
    values, vectors = _factor.eigh(_factor.solve_triangle("forward", L, np.ascontiguousarray(half.T)), float(tol))
    return give(values), give(_factor.solve_triangle("backward", L, vectors))


# Iterations

def jacobi_preconditioner(A):
    """A function that divides by the diagonal of A."""
    import numpy as np
    (A,), _ = _read("jacobi_preconditioner", A)
    _factor.square("jacobi_preconditioner", A)
    diagonal = _diagonal("jacobi_preconditioner", A)
    return _on_tensors("jacobi_preconditioner", lambda r: r / diagonal.astype(np.result_type(r.dtype, diagonal.dtype)))


def _diagonal(name, A):
    import numpy as np
    diagonal = np.diagonal(A).copy()
    if (np.abs(diagonal) < 1e-15).any():
        raise ArgumentError(f"{name}: an element of the diagonal of A is 0, or nearly", "A")
    return diagonal


def _on_tensors(name, function):
    """The function of arrays as one of tensors."""
    def apply(r):
        (r,), give = _read(name, r)
        return give(function(r))
    return apply


def block_jacobi_preconditioner(A, block_size=16):
    """A function that solves with the blocks on the diagonal of A; ArgumentError where one is not positive definite."""
    import numpy as np
    (A,), _ = _read("block_jacobi_preconditioner", A)
    _factor.square("block_jacobi_preconditioner", A)
    bounds = [(first, min(first + block_size, len(A))) for first in range(0, len(A), block_size)]
    blocks = [_factor.cholesky(f"block_jacobi_preconditioner, block {i}", np.ascontiguousarray(A[i:k, i:k])) for i, k in bounds]

    def apply(r):
        return np.concatenate([_factor.solve_cholesky(L, np.ascontiguousarray(r[i:k, None], dtype=L.dtype))[:, 0] for L, (i, k) in zip(blocks, bounds)])
    return _on_tensors("block_jacobi_preconditioner", apply)


def ssor_preconditioner(A, omega=1.0):
    """A function that applies symmetric successive over-relaxation of a symmetric positive definite A, omega between 0 and 2."""
    import numpy as np
    if not 0.0 < omega < 2.0:
        raise ArgumentError(f"ssor_preconditioner: omega is {omega}, not between 0 and 2", "omega")
    (A,), _ = _read("ssor_preconditioner", A)
    _factor.square("ssor_preconditioner", A)
    diagonal = _diagonal("ssor_preconditioner", A)
    L = np.ascontiguousarray(np.tril(A, -1) * A.dtype.type(omega) + np.diag(diagonal))
    scale = A.dtype.type(omega * (2.0 - omega)) * diagonal

    def apply(r):
        t = _factor.solve_triangle("forward", L, np.ascontiguousarray(r[:, None], dtype=L.dtype))
        return _factor.solve_triangle("backward", L, scale[:, None] * t)[:, 0]
    return _on_tensors("ssor_preconditioner", apply)


def _operator(A, kind, dtype, name):
    """A function of arrays from a matrix, or from a function of tensors; None for None."""
    import numpy as np
    if A is None:
        return None
    if callable(A):
        return lambda x: np.asarray(array_of(A(back(x, kind)), name)).astype(dtype, copy=False)
    matrix = np.ascontiguousarray(array_of(A, name).astype(dtype, copy=False))
    return lambda x: trnblas.gemv(1.0, matrix, x)


def _dot(x, y):
    import numpy as np
    return float(x.astype(np.float64) @ y.astype(np.float64))


def _start(name, A, b, x0):
    import numpy as np
    (b,), give = _read(name, b)
    kind = kind_of([x for x in (b, x0) if x is not None])
    x = np.zeros_like(b) if x0 is None else array_of(x0, "x0").astype(b.dtype)
    return b, x, give, kind


def cg(A, b, x0=None, tol=1e-6, maxiter=1000, M=None):
    """(x, iterations, relative residual) of A x = b by conjugate gradients, of a symmetric positive definite A: a matrix, or a function that multiplies by it. M: the
    same of an approximate inverse."""
    kind = kind_of([b])
    b, x, give, _ = _start("cg", A, b, x0)
    multiply, precondition = _operator(A, kind, b.dtype, "A"), _operator(M, kind, b.dtype, "M") or (lambda r: r)
    norm = _dot(b, b) ** 0.5
    if norm < 1e-15:
        return give(x), 0, 0.0
    r = b - multiply(x)
    z = precondition(r)
    p, rz = z, _dot(r, z)
    for k in range(maxiter):
        Ap = multiply(p)
        curvature = _dot(p, Ap)
        if abs(curvature) < 1e-30:
            break
        step = b.dtype.type(rz / curvature)
        x, r = x + step * p, r - step * Ap
        residual = _dot(r, r) ** 0.5 / norm
        if residual < tol:
            return give(x), k + 1, residual
        z = precondition(r)
        rz, before = _dot(r, z), rz
        p = z + b.dtype.type(rz / before) * p
    return give(x), maxiter, _dot(r, r) ** 0.5 / norm


def gmres(A, b, x0=None, tol=1e-6, maxiter=100, restart=30):
    """(x, products with A, relative residual) of A x = b, for any A, by GMRES: restarted after `restart` vectors, at most maxiter times."""
    import numpy as np
    kind = kind_of([b])
    b, x, give, _ = _start("gmres", A, b, x0)
    multiply, norm, products = _operator(A, kind, b.dtype, "A"), _dot(b, b) ** 0.5, 0
    if norm < 1e-15:
        return give(x), 0, 0.0
    for _ in range(maxiter):
        r = b - multiply(x)
        size = _dot(r, r) ** 0.5
        if size / norm < tol:
            return give(x), products, size / norm
        V, H = [r / b.dtype.type(size)], np.zeros((min(restart, len(b)) + 1, min(restart, len(b))))
        for j in range(H.shape[1]):
            w, products = multiply(V[j]), products + 1
            for i, v in enumerate(V):
                H[i, j] = _dot(w, v)
                w = w - b.dtype.type(H[i, j]) * v
            H[j + 1, j] = _dot(w, w) ** 0.5
            if H[j + 1, j] < 1e-14:
                break
            V.append(w / b.dtype.type(H[j + 1, j]))
        used = j + 1
        y = np.linalg.lstsq(H[:used + 1, :used], np.eye(used + 1)[0] * size, rcond=None)[0]
        x = x + sum(b.dtype.type(c) * v for c, v in zip(y, V))
    r = b - multiply(x)
    return give(x), products, _dot(r, r) ** 0.5 / norm
