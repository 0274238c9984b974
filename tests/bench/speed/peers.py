# SPDX-License-Identifier: Apache-2.0
"""The libraries that tdsl-bench runs beside ours, where they are installed: OpenBLAS, BLIS and oneDNN through their C functions; numpy, and
jax and torch when they can be imported. What is not here is said, and left out."""
import ctypes
import glob
import importlib
import math
import re
import time

import numpy as np

from speed.native import CBLAS_GEMM, CBLAS_GEMV, CBLAS_TRANSPOSE, CODES, DNNL_GEMM, Call, address


def opened(*names):
    """The first of these shared objects that loads: by the loader's own search, then where Debian keeps alternatives."""
    for name in names:
        for place in [name, *sorted(glob.glob(f"/usr/lib/*/*-*/{name}"))]:
            try:
                return ctypes.CDLL(place)
            except OSError:
                pass
    return None


def pointer(library, name):
    try:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    except AttributeError:
        return None


def text_of(library, name, *arguments):
    function = getattr(library, name)
    function.restype = ctypes.c_char_p
    return function(*arguments).decode()


def blas_form(equation, sizes):
    """How a GEMM computes a contraction of two operands with one label each for rows, columns and sum, and perhaps one over which it is
    repeated: (members of a `Call`, steps in elements; whether the operands change places), or None where it cannot."""
    terms = equation.replace("->", ",").split(",")
    for batch in terms[2] if len(terms[2]) == 3 else [""]:
        found = one_form([[x for x in term if x != batch] for term in terms], terms, sizes, batch)
        if found:
            return found
    return None


def one_form(own, terms, sizes, batch):
    step = [{x: math.prod(sizes[y] for y in term[at + 1:]) for at, x in enumerate(term)} for term in terms]
    summed = [x for x in own[0] if x in own[1]]
    if len(own[2]) != 2 or len(summed) != 1 or any(len(set(term)) != 2 for term in own):
        return None
    (row, col), k = own[2], summed[0]
    swap = row in own[1]
    left, right = (step[1], step[0]) if swap else (step[0], step[1])
    trans_a, trans_b = left[k] != 1, right[col] != 1
    if step[2][col] != 1 or left[row if trans_a else k] != 1 or right[k if trans_b else col] != 1:
        return None
    return {"m": sizes[row], "n": sizes[col], "k": sizes[k], "lda": left[k if trans_a else row], "ldb": right[col if trans_b else k],
            "ldc": step[2][row], "trans_a": trans_a, "trans_b": trans_b, "batch": sizes.get(batch, 1),
            "step_a": left.get(batch, 0), "step_b": right.get(batch, 0), "step_c": step[2].get(batch, 0)}, swap


class Cblas:
    """A library with the C interface of BLAS."""
    letters = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}

    def __init__(self, name, library, version):
        self.name, self.library, self.version = name, library, version

    def function(self, what, dtype):
        return pointer(self.library, f"cblas_{self.letters[dtype]}{what}")

    def gemm(self, equation, a, b, c, dtype):
        """A `Call` that computes c, or None."""
        terms = equation.replace("->", ",").split(",")
        sizes = {x: n for term, array in zip(terms, (a, b, c)) for x, n in zip(term, array.shape)}
        found, run = blas_form(equation, sizes), self.function("gemm", dtype)
        if found is None or run is None:
            return None
        form, swap = found
        steps = {s: form.pop(s) * c.itemsize for s in ("step_a", "step_b", "step_c")}
        left, right = (b, a) if swap else (a, b)
        return Call(run=run, kind=self.kind, type=CODES[dtype], a=address(left), b=address(right), c=address(c), **form, **steps)

    kind = CBLAS_GEMM

    def gemv(self, a, x, y, dtype, trans):
        run = self.function("gemv", dtype)
        return run and Call(run=run, kind=CBLAS_GEMV, type=CODES[dtype], a=address(a), b=address(x), c=address(y), m=a.shape[0], n=a.shape[1],
                            lda=a.shape[1], trans_a=trans, batch=1)

    def transpose(self, a, c, dtype):
        run = self.function("omatcopy", dtype)
        return run and Call(run=run, kind=CBLAS_TRANSPOSE, type=CODES[dtype], a=address(a), c=address(c), m=a.shape[0], n=a.shape[1], batch=1)


class Dnnl(Cblas):
    """oneDNN: a GEMM of f32."""
    kind = DNNL_GEMM

    def function(self, what, dtype):
        return pointer(self.library, "dnnl_sgemm") if what == "gemm" and dtype == "f32" else None


def openblas():
    library = opened("libopenblas.so.0", "libopenblas.so")
    return library and Cblas("openblas", library, text_of(library, "openblas_get_config"))


def blis():
    library = opened("libblis.so.4", "libblis.so")
    if library is None:
        return None
    kind = text_of(library, "bli_arch_string", library.bli_arch_query_id())
    return Cblas("blis", library, f"{text_of(library, 'bli_info_get_version_str')} {kind}")


def onednn():
    library = opened("libdnnl.so.3", "libdnnl.so.2", "libdnnl.so")
    if library is None:
        return None
    library.dnnl_version.restype = ctypes.POINTER(ctypes.c_int)
    return Dnnl("onednn", library, ".".join(str(library.dnnl_version()[k]) for k in range(3)))


class Python:
    """A library of Python. A formula is a function of it, of its functions (`xp`) and of arrays: what a user of it would write."""

    def erf(self, x):
        raise NotImplementedError

    def attention(self, xp, q, k, v, scale):
        s = xp.matmul(q, self.permute(k, (0, 2, 1))) * scale
        w = xp.exp(s - self.max(s, -1)[..., None])
        return xp.matmul(w, v) / w.sum(-1)[..., None]

    def prepared(self, formula, inputs):
        """(run, result): seconds a call as a function of the number of calls; what the last call computed."""
        arrays, last, call = [self.taken(x) for x in inputs], [None], self.compiled(formula)

        def run(n):
            begin = time.perf_counter()
            for _ in range(n):
                last[0] = call(*arrays)
            return (time.perf_counter() - begin) / n
        return run, lambda: np.asarray(last[0])


class Numpy(Python):
    name = "numpy"

    def __init__(self):
        with open("/proc/self/maps", encoding="utf-8") as maps:
            blas = sorted({line.split()[-1].rsplit("/", 2)[-2] for line in maps if re.search(r"/lib\w*blas[^/]*\.so", line)})
        self.version = np.__version__ + (f" (BLAS: {', '.join(blas)})" if blas else "")

    taken = staticmethod(lambda x: x)
    permute = staticmethod(np.transpose)
    max = staticmethod(np.amax)

    def einsum(self, equation, *arrays):
        return np.einsum(equation, *arrays, optimize=True)

    def compiled(self, formula):
        return lambda *arrays: np.ascontiguousarray(formula(self, np, *arrays))


class Jax(Python):
    name = "jax"

    def __init__(self, jax):
        jax.config.update("jax_enable_x64", True)
        self.jax, self.version = jax, jax.__version__
        self.taken, self.permute, self.max, self.einsum = jax.device_put, jax.numpy.transpose, jax.numpy.max, jax.numpy.einsum
        self.erf = jax.scipy.special.erf

    def compiled(self, formula):
        jit = self.jax.jit(lambda *arrays: formula(self, self.jax.numpy, *arrays))
        return lambda *arrays: jit(*arrays).block_until_ready()


class Torch(Python):
    name = "torch"

    def __init__(self, torch, threads):
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.torch, self.version = torch, torch.__version__
        self.taken, self.permute, self.max, self.einsum, self.erf = torch.from_numpy, torch.permute, torch.amax, torch.einsum, torch.erf

    def attention(self, xp, q, k, v, scale):
        fused = getattr(self.torch.nn.functional, "scaled_dot_product_attention", None)
        return fused(q[None], k[None], v[None])[0] if fused else super().attention(xp, q, k, v, scale)

    def compiled(self, formula):
        return lambda *arrays: formula(self, self.torch, *arrays).contiguous()


DEBIAN = {"openblas": "libopenblas0-pthread", "blis": "libblis4-pthread", "onednn": "libdnnl2"}


def found(threads, wanted):
    """(libraries with a C interface, libraries of Python, lines that say what is not here)."""
    c, python, missing = [], [Numpy()], []
    for name, find in (("openblas", openblas), ("blis", blis), ("onednn", onednn)):
        library = find() if name in wanted else None
        if library is not None:
            c.append(library)
        elif name in wanted:
            missing.append(f"{name}: not found, left out (Debian: {DEBIAN[name]})")
    for name, made in (("jax", Jax), ("torch", lambda torch: Torch(torch, threads))):
        if name in wanted:
            try:
                python.append(made(importlib.import_module(name)))
            except ImportError:
                missing.append(f"{name}: cannot be imported, left out")
    return c, python, missing
