# SPDX-License-Identifier: Apache-2.0
"""The names and signatures of trnblas: `import tdsl.trnblas as trnblas`. docs/trnblas.md of TDSL says what differs.

Tensors are arrays of NumPy, or of torch on the CPU; each function is one kernel, and gives a new tensor of their kind.
"""
import functools
import math

from . import _trnsci
from ._errors import ArgumentError
from ._trnsci import Library, from_xla, to_xla

__all__ = ["HAS_NKI", "asum", "axpy", "batched_gemm", "dot", "from_xla", "gemm", "gemv", "ger", "get_backend", "iamax", "nrm2", "scal", "set_backend", "symm", "symv",
           "syrk", "to_xla", "trmm", "trmv", "trsm"]
__version__ = "0.5.4"  # of trnblas, whose names these are

_library = Library("trnblas")
set_backend, get_backend, __getattr__ = _library.set_backend, _library.get_backend, _library.attribute
_REAL = "f64", "f32"


def _is(name, argument, value, words):
    if value not in words:
        raise ArgumentError(f"{name}: {argument} is {value!r}, not {' or '.join(map(repr, words))}", argument)
    return value == words[0]


@functools.lru_cache(maxsize=1024)
def _kernel(name, parameters, result, places, expression, plain):
    """The text of a kernel with one statement: of 16-bit types the numbers are f32, and one rounding follows."""
    indices = f"[{places}]" if places else ""
    body = f"{result[0]}{indices} = {expression};" if plain else f"t: S{indices} = {expression}; {result[0]}{indices} = T(t{indices});"
    return f"dim m ~ 512, n ~ 512, k ~ 512, b ~ 64;\nkernel {name}({', '.join(parameters)}) -> ({result}) {{ {body} }}\n"


def _call(name, shapes, tensors, result, places, expression, numbers=None, **named):
    """One statement on tensors, whose shapes are given as text; numbers by their names."""
    numbers = numbers or {}
    plain = not numbers or not any(str(x.dtype).endswith(("float16", "V2")) for x in tensors)
    parameters = (*(f"{argument}: T{shape}" for argument, shape in shapes), *(f"{argument}: S" for argument in numbers))
    text = _kernel(name, parameters, result, places, expression, plain)
    return _trnsci.run(_library, name, text, dict(zip((argument for argument, _ in shapes), tensors)), list(numbers.values()), **named)


def _update(name, shapes, tensors, result, places, product, alpha, beta=0.0, added=None, **named):
    """alpha * product + beta * (what is added): its name, shape and tensor, and how it is read."""
    if added is None or added[2] is None or beta == 0:
        return _call(name, shapes, tensors, result, places, f"alpha * {product}", {"alpha": alpha}, **named)
    argument, shape, tensor, read = added
    return _call(name, [*shapes, (argument, shape)], [*tensors, tensor], result, places, f"alpha * {product} + beta * {read}", {"alpha": alpha, "beta": beta}, **named)


# Level 1

def axpy(alpha, x, y):
    """alpha * x + y, of any equal shapes."""
    return _trnsci.shaped(_call("axpy", [("x", "[n]"), ("y", "[n]")], [_trnsci.flat(x), _trnsci.flat(y)], "r: T[n]", "i", "alpha * x[i] + y[i]", {"alpha": alpha}), x)


def dot(x, y):
    """The sum of x * y, a tensor without dimensions."""
    return _call("dot", [("x", "[n]"), ("y", "[n]")], [_trnsci.flat(x), _trnsci.flat(y)], "r: T", "", "x[i] * y[i]")


def nrm2(x):
    """The root of the sum of squares: where that leaves the range of the type, of x relative to its largest element."""
    x = _trnsci.flat(x)
    result = _call("nrm2", [("x", "[n]")], [x], "r: W", "", "norm[i](x[i])")
    value = float(result)
    if 1e-15 < value < math.inf or math.isnan(value) or not len(x):
        return result
    largest = _call("largest", [("x", "[n]")], [x], "r: W", "", "max[i](abs(x[i]))")
    if not 0 < float(largest) < math.inf:
        return largest
    return largest * _call("relative", [("x", "[n]")], [x], "r: W", "", "norm[i](x[i] / s)", {"s": float(largest)})


def scal(alpha, x):
    """alpha * x"""
    return _trnsci.shaped(_call("scal", [("x", "[n]")], [_trnsci.flat(x)], "r: T[n]", "i", "alpha * x[i]", {"alpha": alpha}), x)


def asum(x):
    """The sum of absolute values."""
    return _call("asum", [("x", "[n]")], [_trnsci.flat(x)], "r: W", "", "sum[i](abs(x[i]))")


def iamax(x):
    """The position of the element that is largest in absolute value, the first of several."""
    if not math.prod(x.shape):
        raise ArgumentError("iamax: x has no elements", "x")
    return int(_call("iamax", [("x", "[n]")], [_trnsci.flat(x)], "r: i64", "", "argmax[i](abs(x[i]))"))


# Level 2

def gemv(alpha, A, x, beta=0.0, y=None, trans=False):
    """alpha * op(A) x + beta * y, op(A) being A or its transpose."""
    shape, read = ("[n, m]", "A[j,i]") if trans else ("[m, n]", "A[i,j]")
    return _update("gemv", [("A", shape), ("x", "[n]")], [A, x], "r: T[m]", "i", f"{read} * x[j]", alpha, beta, ("y", "[m]", y, "y[i]"))


def symv(alpha, A, x, beta=0.0, y=None, uplo="upper"):
    """alpha * A x + beta * y, of a symmetric A of which one triangle is read."""
    here, there = (">=", "<") if _is("symv", "uplo", uplo, ("upper", "lower")) else ("<=", ">")
    product = f"(sum[j {here} i](A[i,j] * x[j]) + sum[j {there} i](A[j,i] * x[j]))"
    return _update("symv", [("A", "[n, n]"), ("x", "[n]")], [A, x], "r: T[n]", "i", product, alpha, beta, ("y", "[n]", y, "y[i]"))


def _triangle(name, uplo, trans, diag):
    """Is op(A) an upper triangle, how A[i,j] of it is read, and is its diagonal ones?"""
    upper = _is(name, "uplo", uplo, ("upper", "lower")) != bool(trans)
    return upper, "A[j,i]" if trans else "A[i,j]", _is(name, "diag", diag, ("unit", "nonunit"))


def trmv(A, x, uplo="upper", trans=False, diag="nonunit"):
    """op(A) x, of a triangle A."""
    upper, read, unit = _triangle("trmv", uplo, trans, diag)
    condition = ("j > i" if upper else "j < i") if unit else ("j >= i" if upper else "j <= i")
    product = f"{'x[i] + ' * unit}sum[{condition}]({read} * x[j])"
    return _call("trmv", [("A", "[n, n]"), ("x", "[n]")], [A, x], "r: T[n]", "i", product)


def ger(alpha, x, y, A=None):
    """alpha * x y^T + A"""
    return _update("ger", [("x", "[m]"), ("y", "[n]")], [x, y], "R: T[m, n]", "i,j", "x[i] * y[j]", alpha, 1.0, ("A", "[m, n]", A, "A[i,j]"))


# Level 3

def _product_work(dims):
    return math.prod(dims.values())


def gemm(alpha, A, B, beta=0.0, C=None, transA=False, transB=False):
    """alpha * op(A) op(B) + beta * C; with beta 0, C is not read."""
    a, b = ("[k, m]", "A[p,i]") if transA else ("[m, k]", "A[i,p]"), ("[n, k]", "B[j,p]") if transB else ("[k, n]", "B[p,j]")
    return _update("gemm", [("A", a[0]), ("B", b[0])], [A, B], "R: T[m, n]", "i,j", f"{a[1]} * {b[1]}", alpha, beta, ("C", "[m, n]", C, "C[i,j]"), work=_product_work)


def batched_gemm(alpha, A, B, beta=0.0, C=None, transA=False, transB=False):
    """`gemm` of each of A[b], B[b], C[b]."""
    a, b = ("[b, k, m]", "A[s,p,i]") if transA else ("[b, m, k]", "A[s,i,p]"), ("[b, n, k]", "B[s,j,p]") if transB else ("[b, k, n]", "B[s,p,j]")
    return _update("batched_gemm", [("A", a[0]), ("B", b[0])], [A, B], "R: T[b, m, n]", "s,i,j", f"{a[1]} * {b[1]}", alpha, beta, ("C", "[b, m, n]", C, "C[s,i,j]"),
                   work=_product_work)


def symm(alpha, A, B, beta=0.0, C=None, side="left", uplo="upper"):
    """alpha * A B + beta * C, or B A, of a symmetric A of which one triangle is read."""
    here, there = (">=", "<") if _is("symm", "uplo", uplo, ("upper", "lower")) else ("<=", ">")
    shape = "[m, n]"
    if _is("symm", "side", side, ("left", "right")):
        product = f"(sum[j {here} i](A[i,j] * B[j,c]) + sum[j {there} i](A[j,i] * B[j,c]))"
        places, read = "i,c", "C[i,c]"
        sizes = "[m, m]"
    else:
        product = f"(sum[j {there} i](A[j,i] * B[c,j]) + sum[j {here} i](A[i,j] * B[c,j]))"
        places, read = "c,i", "C[c,i]"
        sizes = "[n, n]"
    return _update("symm", [("A", sizes), ("B", shape)], [A, B], "R: T[m, n]", places, product, alpha, beta, ("C", shape, C, read),
                   work=lambda dims: dims["m"] * dims["n"] * dims["m" if side == "left" else "n"])


def syrk(alpha, A, beta=0.0, C=None, trans=False, uplo="upper"):
    """alpha * A A^T + beta * (C + C^T) / 2, or A^T A: the whole matrix, of which a half is computed."""
    _is("syrk", "uplo", uplo, ("upper", "lower"))
    shape, product = ("[k, n]", "A[p,i] * A[p,j]") if trans else ("[n, k]", "A[i,p] * A[j,p]")
    return _update("syrk", [("A", shape)], [A], "R: T[n, n]", "i,j", product, alpha, beta, ("C", "[n, n]", C, "(0.5 * C[i,j] + 0.5 * C[j,i])"),
                   work=lambda dims: dims["n"] * dims["n"] * dims["k"] // 2)


def trsm(alpha, A, B, side="left", uplo="upper", trans=False, diag="nonunit"):
    """X of op(A) X = alpha * B, or of X op(A) = alpha * B, of a triangle A of which the other half, and with diag "unit" the diagonal, is not read."""
    _triangle("trsm", uplo, trans, diag)
    left = _is("trsm", "side", side, ("left", "right"))
    # sum over j of M[i,j] X[j,c] = B[i,c], where M is op(A), or from the right its transpose
    read = "A[j,i]" if left == bool(trans) else "A[i,j]"
    shape, x, b = ("[n, m]", "X[j,c]", "B[i,c]") if left else ("[m, n]", "X[c,j]", "B[c,i]")
    parameters = f"A: T[n, n] {uplo}(0, 1), B: T{shape}, alpha: S"
    solve = f"dim n ~ 512, m ~ 512;\nkernel {{}}({parameters}) -> (X: T{shape}) {{{{ {x} = solve[i]({read}, alpha * {b}); }}}}\n"
    text = solve.format("trsm")
    if diag == "unit":
        text = solve.format("triangle") + f"kernel trsm(A: T[n, n], B: T{shape}, alpha: S) -> (X: T{shape}) {{\n" \
            "    U[i,j] = select(index(i) == index(j), 1, A[i,j]);\n    X = triangle(U, B, alpha);\n}\n"
    return _trnsci.run(_library, "trsm", text, {"A": A, "B": B}, [alpha], types=_REAL, no_form="a solution of triangles")


def trmm(alpha, A, B, side="left", uplo="upper", trans=False, diag="nonunit"):
    """alpha * op(A) B, or B op(A), of a triangle A of which the other half is not read."""
    upper, read, unit = _triangle("trmm", uplo, trans, diag)
    left = _is("trmm", "side", side, ("left", "right"))
    if not left:  # R[c,i] is the sum of B[c,j] op(A)[j,i]
        upper, read = not upper, "A[i,j]" if trans else "A[j,i]"
    condition = ("j > i" if upper else "j < i") if unit else ("j >= i" if upper else "j <= i")
    size, x, b = ("[m, m]", "i,c", "B[j,c]") if left else ("[n, n]", "c,i", "B[c,j]")
    product = f"sum[{condition}]({read} * {b})"
    return _call("trmm", [("A", size), ("B", "[m, n]")], [A, B], "R: T[m, n]", x, f"alpha * (B[{x}] + {product})" if unit else f"alpha * {product}", {"alpha": alpha},
                 work=lambda dims: dims["m"] * dims["n"] * dims["m" if left else "n"] // 2)
