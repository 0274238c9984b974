# SPDX-License-Identifier: Apache-2.0
"""Factors of matrices of NumPy, f32 or f64: triangles by dense steps of the language, and drivers in NumPy whose steps are kernels."""
import functools

from ._arrays import name_of
from ._errors import ArgumentError, DefiniteError, Error

_TRIANGLES = """dim n ~ 512, k ~ 64;
kernel cholesky(S: T[n, n]) -> (L: T[n, n]) { L[i,j] = cholesky[i,j](S[i,j]); }
kernel forward(L: T[n, n] lower(0, 1), B: T[n, k]) -> (X: T[n, k]) { X[j,c] = solve[i](L[i,j], B[i,c]); }
kernel forward_unit(L: T[n, n], B: T[n, k]) -> (X: T[n, k]) { U[i,j] = select(index(i) == index(j), 1, L[i,j]); X = forward(U, B); }
kernel backward(L: T[n, n] lower(0, 1), B: T[n, k]) -> (X: T[n, k]) { X[j,c] = solve[i](L[j,i], B[i,c]); }
kernel backward_upper(U: T[n, n] upper(0, 1), B: T[n, k]) -> (X: T[n, k]) { X[j,c] = solve[i](U[i,j], B[i,c]); }
kernel subtract(C: inout T[m, k], A: T[m, b], B: T[b, k]) { C[i,j] -= A[i,p] * B[p,j]; }
"""
_SOLVE = "kernel solve_spd(L: T[n, n] lower(0, 1), B: T[n, k]) -> (X: T[n, k]) { Y[j,c] = solve[i](L[i,j], B[i,c]); X[j,c] = solve[i](L[j,i], Y[i,c]); }\n"
_QR = "include <linalg.tdsl>;\nkernel qr(A: T[m, n]) -> (Q: T[m, n], R: T[n, n]) { (Q, R) = qr2(A); }\n"

# A round of Jacobi's method on pairs of rows p[k], q[k] of A = Z[:,0], which is V times the matrix, and of V = Z[:,1]: each pair is turned so that it has no
# product left, and stands at k of both halves then. The other factor of a product, OTHER, is V for eigenvalues of a symmetric matrix, and A for singular values.
_ROUND = """dim n ~ 128, m ~ 128, h ~ 64;
kernel turn(Z: T[n, 2, m], p: i64[h], q: i64[h], floor: T, left: inout T[1]) -> (X: T[2, h, 2, m]) {
    a[k] = sum[j](Z[p[k],0,j] * Z[p[k],OTHER,j]);
    b[k] = sum[j](Z[q[k],0,j] * Z[q[k],OTHER,j]);
    g[k] = sum[j](Z[p[k],0,j] * Z[q[k],OTHER,j]);
    z[k] = (b[k] - a[k]) / select(g[k] == 0, 1, 2*g[k]);
    t[k] = select(g[k] == 0, 0, select(z[k] < 0, -1, 1) / (abs(z[k]) + sqrt(1 + z[k]*z[k])));
    c[k] = 1 / sqrt(1 + t[k]*t[k]);
    s[k] = t[k] * c[k];
    X[0,k,w,j] = c[k]*Z[p[k],w,j] - s[k]*Z[q[k],w,j];
    X[1,k,w,j] = s[k]*Z[p[k],w,j] + c[k]*Z[q[k],w,j];
    left[i] = max(left[i], max[k](abs(g[k]) / max(MEASURE, floor)));
}
"""
_MOST_SWEEPS = 40
_PANEL = 48


@functools.lru_cache(maxsize=64)
def _program(text, kind):
    from ._trnsci import program_of, text_for
    return program_of(text_for(text, kind))


def _kernels(a, text=_TRIANGLES):
    return _program(text, name_of(a.dtype))


def square(name, A, argument="A"):
    """Raises ArgumentError where A is no square matrix."""
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ArgumentError(f"{name}: {argument} has shape {tuple(A.shape)}, and is a square matrix", argument)


def cholesky(name, A):
    """The lower triangle L with A = L L^T; ArgumentError where A is not positive definite."""
    square(name, A)
    try:
        return _kernels(A).cholesky(A)
    except DefiniteError as error:
        raise ArgumentError(f"{name}: A is not positive definite: its leading minor of order {error.pivot + 1} is not", "A") from None


def solve_cholesky(L, B):
    """X of L L^T X = B."""
    return _kernels(L, "dim n ~ 512, k ~ 64;\n" + _SOLVE).solve_spd(L, B)


def solve_triangle(which, A, B):
    """X of A X = B: "forward" for a lower triangle, "forward_unit" of which the diagonal is 1, "backward" for its transpose, "backward_upper" for an upper one."""
    return _kernels(A)[which](A, B)


def lu(A):
    """(P, LU): A[P] = L U, of which L is below the diagonal and has ones on it. Panels of columns are taken one by one, what is right of them by kernels."""
    import numpy as np
    A, n = np.array(A, order="C"), len(A)
    kernels, order = _kernels(A), np.arange(n)
    for first in range(0, n, _PANEL):
        last = min(first + _PANEL, n)
        panel = np.array(A[first:, first:last].T, order="C")  # columns as rows
        for j in range(last - first):
            row = panel[j]
            best = j + int(np.abs(row[j:]).argmax())
            if best != j:
                panel[:, [j, best]] = panel[:, [best, j]]
                for swapped in (A[:, :first], A[:, last:]):
                    swapped[[first + j, first + best]] = swapped[[first + best, first + j]]
                order[[first + j, first + best]] = order[[first + best, first + j]]
            if row[j] != 0:
                row[j + 1:] /= row[j]
                panel[j + 1:, j + 1:] -= np.multiply.outer(panel[j + 1:, j], row[j + 1:])
        A[first:, first:last] = panel.T
        if last < n:
            upper = kernels.forward_unit(np.ascontiguousarray(A[first:last, first:last]), np.ascontiguousarray(A[first:last, last:]))
            A[first:last, last:] = upper
            rest = np.ascontiguousarray(A[last:, last:])
            kernels.subtract(rest, np.ascontiguousarray(A[last:, first:last]), upper)
            A[last:, last:] = rest
    return order, A


def solve(A, B):
    """X of A X = B, by `lu`; ArgumentError where A is singular."""
    import numpy as np
    order, factors = lu(A)
    if not np.diagonal(factors).all():
        raise ArgumentError("solve: A is singular", "A")
    Y = _kernels(factors).forward_unit(factors, np.ascontiguousarray(B[order]))
    return _kernels(factors).backward_upper(factors, Y)


def qr(A):
    """(Q, R), by two factors of Cholesky (qr2 of linalg.tdsl): ArgumentError where columns depend on each other to within rounding."""
    import numpy as np
    m, n = A.shape
    first = np.ascontiguousarray(A[:, :m])
    try:
        Q, R = _kernels(A, _QR).qr(first)
        wrong = not np.isfinite(R).all() or np.abs(Q.T @ Q - np.eye(Q.shape[1])).max(initial=0) > 1e-3
    except DefiniteError:
        wrong = True
    if wrong:
        raise ArgumentError("qr: columns of A depend on each other, to within the rounding of products of two of them; numpy.linalg.qr takes such a matrix", "A")
    if m < n:
        R = np.concatenate([R, np.triu(Q.T @ A[:, m:], -m)], 1).astype(A.dtype, copy=False)
    return Q, R


def _rounds(name, W, V, other, measure, floor, small):
    """Turns pairs of rows of W and V, which has as many columns or fewer, until no product of two, by its measure, is larger than `small`. Every sweep has each pair once."""
    import numpy as np
    (n, m), half = W.shape, len(W) // 2
    top, bottom = np.arange(half), np.arange(half, n)
    following = np.concatenate([top[:1], bottom[:1], top[1:-1], bottom[1:], top[-1:]]) if half > 1 else np.arange(n)
    pairs, next_pairs = (top, bottom), (following[:half].copy(), following[half:].copy())
    turn = _program(_ROUND.replace("OTHER", other).replace("MEASURE", measure), name_of(W.dtype)).turn
    Z, X = np.zeros((n, 2, m)), np.empty((n, 2, m))
    Z[:, 0], Z[:, 1, :V.shape[1]] = W, V
    for _ in range(_MOST_SWEEPS):
        left = np.zeros(1)
        for _ in range(max(n - 1, 1)):
            turn(Z, *pairs, floor, left, out=X.reshape(2, half, 2, m))
            Z, X, pairs = X, Z, next_pairs
        if not left[0] > small:
            break
    else:
        raise Error(f"{name}: {_MOST_SWEEPS} sweeps over all pairs leave {left[0]:.1e}, more than {small:.1e}")
    if not np.isfinite(left[0]):
        raise ArgumentError(f"{name}: A has infinities or NaN", "A")
    return Z[:, 0].copy(), Z[:, 1, :V.shape[1]].copy()


def eigh(A, tolerance):
    """(values, vectors) of a symmetric matrix, ascending, by Jacobi's method, in f64."""
    import numpy as np
    n = len(A)
    even = n + n % 2
    W = np.zeros((even, even))  # with one more row of zeros where n is odd, which stays by itself
    W[:n, :n] = A
    W = (W + W.T) / 2
    V = np.eye(even)
    norm = float(np.sqrt((W ** 2).sum()))
    if n > 1 and norm != 0:
        W, V = _rounds("eigh", W, V, "1", "0", norm, max(tolerance, 4e-16))
    rows = np.flatnonzero(V[:, n] == 0) if n % 2 else np.arange(n)
    values = np.einsum("ij,ij->i", W, V)[rows]
    order = np.argsort(values, kind="stable")
    return values[order].astype(A.dtype, copy=False), np.ascontiguousarray(V[rows[order]][:, :n].T.astype(A.dtype))


def svd(A):
    """(U, s, Vh) with the singular values descending, by Jacobi's method on columns, in f64; vectors of singular value 0 are chosen perpendicular to the others."""
    import numpy as np
    m, n = A.shape
    if m < n:
        U, s, Vh = svd(np.ascontiguousarray(A.T))
        return np.ascontiguousarray(Vh.T), s, np.ascontiguousarray(U.T)
    even = n + n % 2
    W, V, eps = np.zeros((even, m)), np.eye(even, n), float(np.finfo(np.float64).eps)
    W[:n] = A.T
    norm = float(np.sqrt((W ** 2).sum()))
    if n > 1 and norm != 0:
        W, V = _rounds("svd", W, V, "0", "sqrt(a[k]*b[k])", eps * norm ** 2, m ** 0.5 * eps)
    s = np.sqrt((W ** 2).sum(1))
    order = np.argsort(-s, kind="stable")
    rows = order[[bool(V[k].any()) for k in order]] if n % 2 else order
    s = s[rows]
    known = s > eps * max(s[:1].max(initial=0.0), 0) * max(m, n)
    U = np.zeros((m, n))
    U[:, known] = (W[rows[known]] / s[known, None]).T
    complete(U, np.flatnonzero(~known))
    return U.astype(A.dtype), s.astype(A.dtype), V[rows].astype(A.dtype)


def complete(U, columns):
    """Fills columns of U, which are 0, so that all are orthonormal."""
    import numpy as np
    for k in columns:
        distance = 1 - (U ** 2).sum(1)
        x = np.zeros(len(U), U.dtype)
        x[distance.argmax()] = 1
        for _ in range(2):
            x -= U @ (U.T @ x)
        U[:, k] = x / np.sqrt((x * x).sum())
