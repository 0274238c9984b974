# SPDX-License-Identifier: Apache-2.0
"""CP, Tucker and tensor trains of arrays: drivers in NumPy whose steps are kernels."""
import functools

from ._einsum import einsum
from ._errors import ShapeError
from ._trnsci import program_of

_LETTERS = "abcdefghijklmnopqrstuvw"


def _cp_text(order, kind):
    """The kernels of alternating least squares: for each mode the matrix and the right hand side of its normal equations, the
    multiplicative update of factors that stay positive, the tensor of factors, and its squared distance."""
    dims = [f"n{k}" for k in range(order)]
    labels = _LETTERS[:order]
    tensor = f"T: {kind}[{', '.join(dims)}]"
    factor = lambda k: f"F{k}: {kind}[{dims[k]}, r]"
    read = lambda k: f"F{k}[{labels[k]},x]"
    every = ",".join(labels)
    text = [f"dim {', '.join(dims)}, r;"]
    for mode in range(order):
        others = [k for k in range(order) if k != mode]
        text.append(f"kernel step{mode}({', '.join([tensor, *map(factor, others)])}) -> (M: {kind}[n{mode}, r], G: {kind}[r, r]) {{")
        text.append(f"    M[{labels[mode]},x] = T[{every}] * {' * '.join(map(read, others))};")
        text += [f"    G{k}[x,y] = F{k}[{labels[k]},x] * F{k}[{labels[k]},y];" for k in others]
        text.append(f"    G[x,y] = {' * '.join(f'G{k}[x,y]' for k in others)};\n}}")
    text.append(f"kernel update(F: {kind}[n0, r], M: {kind}[n0, r], G: {kind}[r, r]) -> (U: {kind}[n0, r]) {{")
    text.append("    P[a,x] = F[a,y] * G[y,x];\n    U[a,x] = F[a,x] * max(M[a,x], 0.0) / (P[a,x] + 1e-12);\n}")
    factors = [f"w: {kind}[r]", *map(factor, range(order))]
    product = f"w[x] * {' * '.join(map(read, range(order)))}"
    text.append(f"kernel distance({', '.join([tensor, *factors])}) -> (E: f64) {{")
    text.append(f"    spill R;\n    R[{every}] = {product};\n    E = sum[{every}]((T[{every}] - R[{every}]) * (T[{every}] - R[{every}]));\n}}")
    return "\n".join(text) + "\n"


@functools.lru_cache(maxsize=64)
def cp_program(order, kind):
    """The kernels for tensors of an order and a type, all extents open."""
    return program_of(_cp_text(order, kind))


def _scaled(factor):
    import numpy as np
    norms = np.sqrt((factor * factor).sum(axis=0))
    return factor / np.where(norms > 0, norms, 1), norms


def cp(tensor, rank, max_iter, tol, nonneg, factors, random):
    """(factors, weights) of an array of f32 or f64; `random(shape)` gives what factors start from."""
    import numpy as np
    order, kind = tensor.ndim, "f32" if tensor.dtype == np.float32 else "f64"
    if not 2 <= order <= len(_LETTERS):
        raise ShapeError(f"cp_decompose: a tensor of {order} dimensions", "tensor")
    if factors is None:
        factors = [random((n, rank)) for n in tensor.shape]
    elif [f.shape for f in factors] != [(n, rank) for n in tensor.shape]:
        raise ShapeError(f"cp_decompose: factors have shapes {[f.shape for f in factors]}, not {[(n, rank) for n in tensor.shape]}", "factors")
    factors = [np.array(np.abs(f) if nonneg else f, tensor.dtype, order="C") for f in factors]
    weights = np.ones(rank, tensor.dtype)
    program = cp_program(order, kind)
    size = float(np.sqrt((tensor.astype(np.float64) ** 2).sum()))
    if not nonneg:
        factors = [_scaled(f)[0] for f in factors]
    for _ in range(max_iter):
        for mode in range(order):
            others = [f for k, f in enumerate(factors) if k != mode]
            right, matrix = program[f"step{mode}"](tensor, *others)
            if nonneg:
                factors[mode] = program.update(factors[mode], right, matrix)
                continue
            try:
                solved = np.linalg.solve(matrix.astype(np.float64), right.T.astype(np.float64)).T
            except np.linalg.LinAlgError:
                solved = right.astype(np.float64) @ np.linalg.pinv(matrix.astype(np.float64))
            if not np.isfinite(solved).all():
                solved = right.astype(np.float64) @ np.linalg.pinv(matrix.astype(np.float64))
            scaled, norms = _scaled(solved)
            factors[mode], weights = (np.ascontiguousarray(a, dtype=tensor.dtype) for a in (scaled, norms))
        if np.sqrt(program.distance(tensor, weights, *factors)) < tol * size or size == 0:
            break
    if nonneg:
        pairs = [_scaled(f) for f in factors]
        factors = [np.ascontiguousarray(f) for f, _ in pairs]
        weights = functools.reduce(np.multiply, [n for _, n in pairs]).astype(tensor.dtype)
    return factors, weights


def cp_tensor(factors, weights):
    """The tensor of CP factors."""
    labels = _LETTERS[:len(factors)]
    return einsum("z," + ",".join(f"{n}z" for n in labels) + "->" + labels, weights, *factors)


def _unfold(tensor, mode):
    import numpy as np
    return np.moveaxis(tensor, mode, 0).reshape(tensor.shape[mode], -1)


def tucker(tensor, ranks):
    """(core, factors) by the singular vectors of each unfolding."""
    import numpy as np
    if len(ranks) != tensor.ndim:
        raise ShapeError(f"tucker_decompose: {len(ranks)} ranks for a tensor of {tensor.ndim} dimensions", "ranks")
    factors = [np.ascontiguousarray(np.linalg.svd(_unfold(tensor, k), full_matrices=False)[0][:, :rank]) for k, rank in enumerate(ranks)]
    small, large = _LETTERS[:tensor.ndim], _LETTERS[:tensor.ndim].upper()
    string = small + "," + ",".join(a + b for a, b in zip(small, large)) + "->" + large
    return einsum(string, tensor, *(f.conj() for f in factors)), factors


def tucker_tensor(core, factors):
    """The tensor of a core and factors."""
    small, large = _LETTERS[:core.ndim], _LETTERS[:core.ndim].upper()
    return einsum(large + "," + ",".join(a + b for a, b in zip(small, large)) + "->" + small, core, *factors)


def tensor_train(tensor, max_rank):
    """Cores [left rank, extent, right rank] by one singular value decomposition after the other."""
    import numpy as np
    if max_rank < 1 or tensor.ndim == 0:
        raise ShapeError(f"tt_decompose: max_rank {max_rank} for a tensor of {tensor.ndim} dimensions", "max_rank")
    cores, rest, left = [], tensor, 1
    for n in tensor.shape[:-1]:
        u, s, v = np.linalg.svd(rest.reshape(left * n, -1), full_matrices=False)
        right = min(max_rank, len(s))
        cores.append(np.ascontiguousarray(u[:, :right]).reshape(left, n, right))
        rest, left = einsum("r,rn->rn", s[:right].astype(tensor.dtype), np.ascontiguousarray(v[:right])), right
    cores.append(np.ascontiguousarray(rest).reshape(left, tensor.shape[-1], 1))
    return cores


def tensor_of_train(cores):
    """The tensor of a train."""
    terms = [_LETTERS[k].upper() + _LETTERS[k] + _LETTERS[k + 1].upper() for k in range(len(cores))]
    return einsum(",".join(terms) + "->" + _LETTERS[:len(cores)], *cores)
