# SPDX-License-Identifier: Apache-2.0
"""What tdsl-bench measures: groups of cases. Operands are small whole numbers where sums of products are all there is, so that every order of adding
gives the same bits, and a result is right or wrong; elsewhere a case says how far rounding may take it."""
import dataclasses
import json
import math
import pathlib
from collections.abc import Callable

import numpy as np

from speed.native import DTYPES

DATA = pathlib.Path(__file__).resolve().parents[2] / "data"


@dataclasses.dataclass
class Case:
    group: str
    name: str
    dtype: str
    source: str                                 # a kernel `bench`
    shapes: list                                # of its operands
    out: tuple                                  # of its result
    flops: int                                  # that the task needs, not those that are done
    formula: Callable                           # (library, its functions, operands): as a user of that library writes it
    limit: int = 3                              # operands are whole numbers up to this
    data: Callable | None = None                # (random numbers) -> operands, where they are something else
    reference: Callable | None = None           # (operands) -> (result, how far off it may be); without: the formula in numpy, exactly
    calls: Callable | None = None               # (library, operands, result) -> the calls of BLAS that do it
    dims: tuple = ()                            # of the kernel's open dims
    beside: dict = dataclasses.field(default_factory=dict)     # {name: kernel} of ours to race with: the extents known, another spelling
    result: str = ""                            # its element type, if that is not the operands'
    extra: Callable | None = None               # (native, C libraries, operands, result) -> {name: run} of other programs in C

    @property
    def title(self):
        return f"{self.group}/{self.name} {self.dtype}"

    @property
    def read(self):
        return sum(math.prod(s) for s in self.shapes) * DTYPES[self.dtype]().itemsize

    @property
    def written(self):
        return math.prod(self.out) * DTYPES[self.result or self.dtype]().itemsize

    def operands(self):
        random = np.random.default_rng(1)
        if self.data:
            return [np.ascontiguousarray(x, DTYPES[self.dtype]) for x in self.data(random)]
        return [whole(random, shape, self.limit, self.dtype) for shape in self.shapes]


def whole(random, shape, limit, dtype):
    x = random.integers(-limit, limit, shape, np.int8, endpoint=True).astype(DTYPES[dtype])
    return x + 1j * random.integers(-limit, limit, shape, np.int8, endpoint=True).astype(DTYPES[dtype]) if dtype[0] == "c" else x


def head(dtype, shapes, out):
    parameters = ", ".join(f"{name}: {dtype}[{', '.join(map(str, shape))}]" for name, shape in zip("ABCD", shapes))
    return f"kernel bench({parameters}) -> (R: {dtype}{list(out) if out else ''}) "


def roundoff(array):
    return float(np.finfo(array.dtype).eps) / 2


# ---- contractions

MATMUL = ("ij,jk->ik", "bij,bjk->bik")


def contraction(group, name, equation, sizes, dtype, calls=True):
    a, b, c = equation.replace("->", ",").split(",")
    shapes, out = [tuple(sizes[x] for x in term) for term in (a, b)], tuple(sizes[x] for x in c)

    def formula(library, xp, x, y):
        return xp.matmul(x, y) if equation in MATMUL else library.einsum(equation, x, y)

    def gemm(library, operands, result):
        return [library.gemm(equation, *operands, result, dtype)]
    return Case(group, name, dtype, head(dtype, shapes, out) + f'{{ R = einsum("{equation}", A, B); }}\n', shapes, out,
                (8 if dtype[0] == "c" else 2) * math.prod(sizes.values()), formula, calls=gemm if calls else None)


def with_open_extents(case, equation, sizes):
    """The same contraction as users write it: every extent open, planned for the one that it gets."""
    a, b, c = equation.replace("->", ",").split(",")
    labels = list(dict.fromkeys(a + b + c))     # open dims stand in the order of their first use in the head
    arrays = [f"{name}: {case.dtype}[{', '.join('d' + x for x in term)}]" for name, term in zip("ABR", (a, b, c))]
    source = (f"dim {', '.join(f'd{x} ~ {sizes[x]}' for x in labels)};\n" +
              f"kernel bench({', '.join(arrays[:2])}) -> ({arrays[2]}) {{ R = einsum(\"{equation}\", A, B); }}\n")
    return dataclasses.replace(case, source=source, dims=tuple(sizes[x] for x in labels), beside={"bound": case.source})


def open_(quick):
    rows = [("ij,jk->ik", "i=500 j=500 k=500"), ("bij,bjk->bik", "b=64 i=64 j=64 k=64"), ("mnij,mnab->ijab", "m=20 n=20 i=20 j=20 a=80 b=80"),
            ("ijef,abef->ijab", "i=10 j=10 a=40 b=40 e=40 f=40"), ("iaP,jbP->iajb", "i=10 a=60 j=10 b=60 P=200"), ("mi,mnP->inP", "m=100 i=20 n=100 P=300"),
            ("bhqe,bhke->bhqk", "b=2 h=8 q=256 k=256 e=64"), ("mbej,imae->iabj", "m=8 b=32 e=32 j=8 i=8 a=32"), ("pqrs,pi->iqrs", "p=48 q=48 r=48 s=48 i=48"),
            ("abcd,ea->ebcd", "a=40 b=40 c=40 d=40 e=40"), ("xyab,abij->xyij", "x=12 y=12 a=50 b=50 i=12 j=12")]
    for equation, words in rows[1:3] if quick else rows:
        sizes = {word[0]: int(word[2:]) for word in words.split()}
        for dtype in ("f64",) if quick else ("f64", "f32"):
            yield with_open_extents(contraction("open", equation, equation, sizes, dtype, calls=False), equation, sizes)


def square(group, n, dtype, equation="ij,jk->ik"):
    plain = equation == "ij,jk->ik"
    return contraction(group, f"{n}" if plain else f"{n} {equation}", equation, dict.fromkeys("ijk", n), dtype)


def gemm(quick):
    for dtype in ("f32", "f64"):
        for n in (64, 256) if quick else (64, 128, 256, 512, 1024, 2048):
            yield square("gemm", n, dtype)
        n = 128 if quick else 512
        for equation in ("ij,kj->ik", "ji,jk->ik", "ji,kj->ik", "ij,jk->ki", "ij,kj->ki", "ji,jk->ki", "ji,kj->ki"):
            yield square("gemm", n, dtype, equation)


def integers(quick):
    """Products of short integers in i32, and one that is scaled to f32; beside the product of f32 numbers, whose peak is that of all."""
    for n in (64, 128) if quick else (256, 1024, 2048):
        yield square("integers", n, "f32")
        for dtype in ("i8", "u8", "i16"):
            yield integer(f"{n}", n, dtype, "i32", "R[i,k] = A[i,j] * B[j,k];")
        yield integer(f"{n} scaled", n, "i8", "f32", "S: i32[i,k] = A[i,j] * B[j,k]; R[i,k] = f32(S[i,k]) * 0.5;")


def integer(name, n, dtype, result, body):
    source = f"kernel bench(A: {dtype}[{n}, {n}], B: {dtype}[{n}, {n}]) -> (R: {result}[{n}, {n}]) {{ {body} }}\n"

    def formula(library, xp, a, b):
        if xp is not np:
            raise NotImplementedError
        product = xp.matmul(a.astype(np.float32), b.astype(np.float32))     # exact: sums are below 2^24
        return product.astype(np.int32) if result == "i32" else product * np.float32(0.5)
    return Case("integers", name, dtype, source, [(n, n)] * 2, (n, n), 2 * n ** 3, formula, result=result,
                data=lambda random: [random.integers(0, 3, (n, n)), random.integers(0 if dtype[0] == "u" else -3, 3, (n, n))])


def vector(n, trans):
    equation = "ij,i->j" if trans else "ij,j->i"
    case = contraction("skinny", f"{n}^2 {equation}", equation, dict.fromkeys("ij", n), "f32")
    case.formula = lambda library, xp, a, x: xp.matmul(x, a) if trans else xp.matmul(a, x)
    case.calls = lambda library, operands, result: [library.gemv(*operands, result, "f32", trans)]
    return case


def skinny(quick):
    n = 512 if quick else 4096
    for m, k, j in ((8, n, n), (n, n, 8), (n, 8, n), (64, n, 64)):
        yield contraction("skinny", f"{m}x{k} {k}x{j}", "ij,jk->ik", {"i": m, "j": k, "k": j}, "f32")
    yield vector(n, False)
    yield vector(n, True)


def small(quick):
    for dtype in ("f32", "f64"):
        for n in (4, 8, 16) if quick else (4, 8, 12, 16, 24, 32, 48, 64):
            yield square("small", n, dtype)
        for count, n in ((1000, 8),) if quick else ((1000, 4), (1000, 8), (1000, 16), (256, 32)):
            yield contraction("small", f"{count} x {n}^3", "bij,bjk->bik", {"b": count, "i": n, "j": n, "k": n}, dtype)
    heads = {"h": 8, "l": 128 if quick else 512, "m": 128 if quick else 512, "d": 64}
    for equation in ("lhd,mhd->hlm", "hlm,mhd->lhd"):
        yield contraction("small", f"heads {equation}", equation, heads, "f32")


def complex_(quick):
    for dtype in ("c64", "c128"):
        for n in (32, 64) if quick else (32, 64, 256, 512, 1024):
            yield square("complex", n, dtype)


def tccg(quick):
    """Extents as TCCG has them where that is light, else and in a quick run those of smaller tensors."""
    for row in json.loads((DATA / "tccg.json").read_text(encoding="utf-8"))["contractions"]:
        equation, sizes = row["equation"], row["sizes"]
        terms = equation.replace("->", ",").split(",")
        shrink = 64 if quick else 8 if 2 * math.prod(sizes.values()) > 5e10 else 1
        if shrink > 1:
            by = shrink ** (-1 / max(map(len, terms)))
            fastest = {term[-1] for term in terms}
            sizes = {x: max(n, round(size * by / n) * n) for x, size in sizes.items() for n in [24 if x in fastest else 4]}
        yield contraction("tccg", row["tccg"], equation, sizes, "f32", calls=False)


def aomo(quick):
    for dtype in ("f32", "f64"):
        for n in (32,) if quick else (32, 64, 128, 256, 512):
            yield one_aomo(n, n // 4, n - n // 4, dtype)


def one_aomo(n, o, v, dtype):
    shapes, out, kept = [(n, o), (n, v), (n, n, n)], (o, v, n), []

    def calls(library, operands, result):
        ci, ca, eri = operands
        half = np.zeros((o, n, n), result.dtype)
        kept.append(half)                       # as long as the calls may be made
        return [library.gemm("mi,mx->ix", ci, eri.reshape(n, n * n), half.reshape(o, n * n), dtype), library.gemm("na,inP->iaP", ca, half, result, dtype)]
    return Case("aomo", f"N={n}", dtype, head(dtype, shapes, out) + "{ X[i,n,P] = A[m,i] * C[m,n,P]; R[i,a,P] = B[n,a] * X[i,n,P]; }\n", shapes, out,
                2 * (n * o * n * n + n * o * v * n), limit=2, calls=calls,
                formula=lambda library, xp, ci, ca, eri: xp.matmul(ca.T, xp.matmul(ci.T, eri.reshape(n, n * n)).reshape(o, n, n)))


# ---- what memory decides

def permutation(equation, shape, dtype):
    order = [equation.index(x) for x in equation.split("->")[1]]
    out = tuple(shape[k] for k in order)

    def formula(library, xp, a):
        return library.permute(a, order)

    def calls(library, operands, result):
        return [library.transpose(*operands, result, dtype)]
    return Case("transposes", f"{equation} {'x'.join(map(str, shape))}", dtype, head(dtype, [shape], out) + f'{{ R = einsum("{equation}", A); }}\n', [shape], out, 0,
                formula, calls=calls if len(shape) == 2 else None)


def transposes(quick):
    n = 512 if quick else 4096
    for dtype in ("f32", "f64"):
        yield permutation("ij->ji", (n, n), dtype)
    for equation in ("abc->cba", "abc->bac", "abc->acb"):
        yield permutation(equation, (64, 64, 64) if quick else (256, 240, 272), "f32")
    for equation in ("abcd->dcba", "abcd->cdab", "abcd->adcb"):
        yield permutation(equation, (16, 16, 16, 16) if quick else (64, 60, 68, 64), "f32")


def reductions(quick):
    n = 256 if quick else 4096
    table = (("sum", "sum[i,j](A[i,j])", 1, "", lambda library, xp, a: xp.sum(a)),
             ("max", "max[i,j](A[i,j])", 1, "", lambda library, xp, a: library.max(a, (0, 1))),
             ("dot", "sum[i,j](A[i,j] * B[i,j])", 2, "", lambda library, xp, a, b: xp.dot(a.reshape(-1), b.reshape(-1))),
             ("row sums", "sum[j](A[i,j])", 1, "i", lambda library, xp, a: xp.sum(a, 1)),
             ("column sums", "sum[i](A[i,j])", 1, "j", lambda library, xp, a: xp.sum(a, 0)),
             ("row max", "max[j](A[i,j])", 1, "i", lambda library, xp, a: library.max(a, 1)),
             ("column max", "max[i](A[i,j])", 1, "j", lambda library, xp, a: library.max(a, 0)))
    for dtype in ("f32", "f64"):
        for name, body, count, kept, formula in table:
            shapes, out = [(n, n)] * count, (n,) * len(kept)
            source = head(dtype, shapes, out) + f"{{ R{f'[{kept}]' if kept else ''} = {body}; }}\n"
            yield Case("reductions", f"{name} {n}^2", dtype, source, shapes, out, 0, formula, limit=1)


def elementwise(quick):
    n = 1 << (14 if quick else 24)
    table = (("2a", "2 * A[i]", 1, lambda library, xp, a: 2 * a),
             ("a+2b", "A[i] + 2 * B[i]", 2, lambda library, xp, a, b: a + 2 * b),
             ("(ab+c)a-b", "(A[i]*B[i] + C[i])*A[i] - B[i]", 3, lambda library, xp, a, b, c: (a * b + c) * a - b),
             ("max(a,b)", "max(A[i], B[i])", 2, lambda library, xp, a, b: xp.maximum(a, b)))
    for dtype in ("f32", "f64"):
        for name, body, count, formula in table:
            yield Case("elementwise", f"{name} {n}", dtype, head(dtype, [(n,)] * count, (n,)) + f"{{ R[i] = {body}; }}\n", [(n,)] * count, (n,), 0, formula)
    rows = 64 if quick else 4096
    yield softmax(rows)
    yield layernorm(rows)


def softmax(rows):
    """Operands are sixteenths, so differences from the maximum are exact; sums of 1024 are off by 257 roundings, the rest by 40 at most."""
    source = head("f32", [(rows, 1024)], (rows, 1024)) + """{
    M[r] = max[c](A[r,c]); W[r,c] = exp(A[r,c] - M[r]); Z[r] = sum[c](W[r,c]); R[r,c] = W[r,c] / Z[r]; }\n"""

    def formula(library, xp, a):
        w = xp.exp(a - library.max(a, 1)[:, None])
        return w / xp.sum(w, 1)[:, None]

    def reference(operands):
        w = np.exp(operands[0].astype(float) - operands[0].max(1)[:, None])
        value = w / w.sum(1)[:, None]
        return value, 300 * roundoff(operands[0]) * value
    return Case("elementwise", f"softmax {rows}x1024", "f32", source, [(rows, 1024)], (rows, 1024), 0, formula,
                data=lambda random: [random.integers(-64, 64, (rows, 1024)) / 16], reference=reference)


def layernorm(rows):
    """Of whole numbers: the mean of 1024 is exact; the sum of squares is off by 257 roundings, half as many in the root."""
    shapes = [(rows, 1024), (1024,), (1024,)]
    source = head("f32", shapes, (rows, 1024)) + """{
    m[r] = sum[c](A[r,c]) / 1024; v[r] = sum[c]((A[r,c] - m[r])*(A[r,c] - m[r])) / 1024;
    R[r,c] = (A[r,c] - m[r]) / sqrt(v[r] + 0.00001) * B[c] + C[c]; }\n"""

    def formula(library, xp, a, g, b):
        d = a - (xp.sum(a, 1) / 1024)[:, None]
        return d / xp.sqrt(xp.sum(d * d, 1) / 1024 + 1e-5)[:, None] * g + b

    def reference(operands):
        value = formula(None, np, *(x.astype(float) for x in operands))
        return value, 200 * roundoff(operands[0]) * (np.abs(value) + 2 * np.abs(operands[2]))
    return Case("elementwise", f"layernorm {rows}x1024", "f32", source, shapes, (rows, 1024), 0, formula, reference=reference)


ERF = np.vectorize(math.erf, otypes=[float])


def functions(quick):
    """In a near cache, so that the function is what takes time; beside libm's, called for each element. At most 4 units in the last place off."""
    n = 1 << (10 if quick else 16)
    half = math.sqrt(0.5)
    table = (("exp", "exp(A[i])", np.exp, "exp", lambda library, xp, a: xp.exp(a)),
             ("log", "log(A[i] + 9)", lambda a: np.log(a + 9), None, lambda library, xp, a: xp.log(a + 9)),
             ("tanh", "tanh(A[i])", np.tanh, "tanh", lambda library, xp, a: xp.tanh(a)),
             ("erf", "erf(A[i])", ERF, "erf", lambda library, xp, a: library.erf(a)),
             ("sigmoid", "sigmoid(A[i])", lambda a: 1 / (1 + np.exp(-a)), None, lambda library, xp, a: 1 / (1 + xp.exp(-a))),
             ("gelu", "gelu(A[i])", lambda a: a * (0.5 + 0.5 * ERF(a * half)), None, lambda library, xp, a: a * (0.5 + 0.5 * library.erf(a * half))),
             ("rsqrt", "rsqrt(A[i] + 9)", lambda a: 1 / np.sqrt(a + 9), None, lambda library, xp, a: 1 / xp.sqrt(a + 9)))
    for dtype in ("f32", "f64"):
        for name, body, exact, libm, formula in table:
            yield function(name, n, dtype, body, exact, libm, formula)


def function(name, n, dtype, body, exact, libm, formula):
    def data(random):
        return [random.integers(-1 << 13, 1 << 13, n) / (1 << 10)]

    def reference(operands):
        a = operands[0].astype(float)
        value = exact(a)
        return value, 8 * roundoff(operands[0]) * np.maximum(np.abs(value), np.abs(a) if name == "gelu" else 0)

    def extra(native, libraries, operands, result):
        run = native.libm(libm + ("f" if dtype == "f32" else "")) if libm else None
        return {"libm": native.map(run, operands[0], result)} if run else {}
    return Case("functions", f"{name} {n}", dtype, head(dtype, [(n,)], (n,)) + f"{{ R[i] = {body}; }}\n", [(n,)], (n,), 0, formula, data=data, reference=reference,
                extra=extra)


# ---- spellings: the plain form beside the one that was fastest

def spelled(name, dtype, shapes, out, body, beside, formula, flops, data=None):
    kernels = {other: head(dtype, shapes, out) + "{ " + text + " }\n" for other, text in beside.items()}
    return Case("spellings", name, dtype, head(dtype, shapes, out) + "{ " + body + " }\n", shapes, out, flops, formula, data=data, beside=kernels)


def spellings(quick):
    n = 100 if quick else 600
    square = [(n, n)] * 2
    product, half = 2 * n**3, n**2 * (n + 1)
    for dtype in ("f64",) if quick else ("f64", "f32"):
        def lower(library, xp, a, b):
            return xp.matmul(xp.tril(a), b)
        yield spelled(f"full product {n}", dtype, square, (n, n), "R[i,k] = sum[j](A[i,j] * B[j,k]);", {}, lambda library, xp, a, b: xp.matmul(a, b), product)
        yield spelled(f"triangle {n}", dtype, square, (n, n), "R[i,k] = sum[j <= i](A[i,j] * B[j,k]);",
                      {"select": "R[i,k] = sum[j](select(index(j) <= index(i), A[i,j] * B[j,k], 0));"}, lower, half)
        yield spelled(f"masked operand {n}", dtype, square, (n, n), "L[i,j] = select(index(j) <= index(i), A[i,j], 0); R[i,k] = sum[j](L[i,j] * B[j,k]);",
                      {"restricted": "R[i,k] = sum[j <= i](A[i,j] * B[j,k]);"}, lower, half)
        yield spelled(f"half of a product {n}", dtype, square, (n, n), "R[i,k] = select(index(k) <= index(i), sum[j](A[i,j] * B[j,k]), 0);", {},
                      lambda library, xp, a, b: xp.tril(xp.matmul(a, b)), half)
        yield spelled(f"quotient {n}", dtype, [(n, n)] * 3, (n, n), "R[i,k] = sum[j](A[i,j] * B[j,k] / C[i,j]);",
                      {"named": "Q[i,j] = A[i,j] / C[i,j]; R[i,k] = sum[j](Q[i,j] * B[j,k]);"}, lambda library, xp, a, b, c: xp.matmul(a / c, b), product,
                      data=lambda random: [*(whole(random, (n, n), 3, dtype) for _ in range(2)), 2.0 ** random.integers(0, 3, (n, n))])
        yield spelled(f"distances {n}x64", dtype, [(n, 64)] * 2, (n, n), "R[i,j] = sum[d]((A[i,d] - B[j,d]) * (A[i,d] - B[j,d]));",
                      {"products": "a[i] = sum[d](A[i,d] * A[i,d]); b[j] = sum[d](B[j,d] * B[j,d]); R[i,j] = a[i] + b[j] - 2 * sum[d](A[i,d] * B[j,d]);"},
                      lambda library, xp, a, b: ((a[:, None] - b[None]) ** 2).sum(-1), 2 * n * n * 64)
        yield spelled(f"windows of 100 {n * n}", dtype, [(n * n,)], (n * n,), "R[i] = sum[j <= i, j > i - 100](A[j]);", {}, window_sums, 0)


def window_sums(library, xp, a):
    """By differences of one running sum, as it is written in NumPy."""
    if xp is not np:
        raise NotImplementedError
    sums = np.cumsum(a)
    sums[100:] -= sums[:-100].copy()
    return sums


# ---- chains

def mp2(quick):
    for dtype in ("f32", "f64"):
        for o, v, x in ((5, 19, 72),) if quick else ((5, 19, 72), (8, 64, 128), (16, 128, 128), (32, 256, 512)):
            yield one_mp2(o, v, x, dtype)


def pairs(xp, b, eo, ev, size=lambda term: term):
    """The sum of the energies of all pairs, from those with i <= j."""
    energy = 0
    for i in range(b.shape[0]):
        for j in range(i + 1):
            t = xp.matmul(b[i], b[j].T)
            energy += (1 if i == j else 2) * size(t * (2 * t - t.T) / (eo[i] + eo[j] - ev[:, None] - ev[None, :])).sum()
    return energy


def whole_tensor(library, b, eo, ev):
    """The same from one array T, as it is written where loops of Python would all be compiled."""
    t = library.einsum("iap,jbp->iajb", b, b)
    d = eo[:, None, None, None] + eo[None, None, :, None] - ev[None, :, None, None] - ev[None, None, None, :]
    return (t * (2 * t - library.permute(t, (0, 3, 2, 1))) / d).sum()


def one_mp2(o, v, x, dtype):
    """Multiply-adds of the pairs i <= j are counted. T is exact; a term is off by 8 roundings, the sum over four indices by 4 times 257."""
    shapes = [(o, v, x), (o,), (v,)]
    source = head(dtype, shapes, ()) + """{
    T[i,a,j,b] = A[i,a,P] * A[j,b,P];
    R = sum[i,j,a,b]( T[i,a,j,b] * (2*T[i,a,j,b] - T[i,b,j,a]) / (B[i] + B[j] - C[a] - C[b]) ); }\n"""

    def data(random):
        return [whole(random, (o, v, x), 3, dtype), -1 - np.arange(o) / o, 0.5 + np.arange(v) / v]

    def reference(operands):
        exact = [x.astype(float) for x in operands]
        return np.array(pairs(np, *exact)), (8 + 4 * 257) * roundoff(operands[0]) * pairs(np, *exact, size=abs)

    def extra(native, libraries, operands, result):
        runs = ((library.name, library.function("gemm", dtype)) for library in libraries if library.name == "openblas")
        return {f"C+{name} i<=j": native.mp2(run, operands, result) for name, run in runs}
    return Case("mp2", f"{o}x{v}x{x}", dtype, source, shapes, (), o * (o + 1) * v * v * x, data=data, reference=reference, extra=extra,
                formula=lambda library, xp, *operands: whole_tensor(library, *operands) if library.name == "jax" else pairs(xp, *operands))


def attention(quick):
    for heads, queries in ((2, 128),) if quick else ((8, 512), (8, 1024), (12, 1024), (1, 4096)):
        yield one_attention(heads, queries, 64)


def one_attention(h, n, d):
    """Scores are exact; products over keys are off by 768 roundings, sums of weights by 256, weights by 6 and by as many again for each of at most
    128 maxima on the way. Multiply-adds are counted, exponentials not."""
    shapes = [(h, n, d)] * 3
    source = head("f32", shapes, (h, n, d)) + f"""{{
    S[h,q,k] = A[h,q,e] * B[h,k,e] * {1 / math.sqrt(d)}; M[h,q] = max[k](S[h,q,k]); W[h,q,k] = exp(S[h,q,k] - M[h,q]);
    Z[h,q] = sum[k](W[h,q,k]); R[h,q,e] = W[h,q,k] * C[h,k,e] / Z[h,q]; }}\n"""

    def reference(operands):
        q, k, v = (x.astype(float) for x in operands)
        s = q @ k.transpose(0, 2, 1) / math.sqrt(d)
        w = np.exp(s - s.max(-1, keepdims=True))
        w /= w.sum(-1, keepdims=True)
        return w @ v, (768 + 256 + 6 * 128) * roundoff(operands[0]) * (w @ np.abs(v))
    return Case("attention", f"{h}x{n}x{d}", "f32", source, shapes, (h, n, d), 4 * h * n * n * d, limit=1, reference=reference,
                formula=lambda library, xp, q, k, v: library.attention(xp, q, k, v, np.float32(1 / math.sqrt(d)) if xp is np else 1 / math.sqrt(d)))


GROUPS = {"gemm": gemm, "integers": integers, "skinny": skinny, "small": small, "open": open_, "complex": complex_, "tccg": tccg, "transposes": transposes, "reductions": reductions,
          "elementwise": elementwise, "functions": functions, "spellings": spellings, "mp2": mp2, "aomo": aomo, "attention": attention}


def chosen(pattern, quick):
    """Cases of groups in order; `pattern` is searched in their titles."""
    return [case for make in GROUPS.values() for case in make(quick) if pattern.search(case.title)]
