# SPDX-License-Identifier: Apache-2.0
"""Discrete Fourier transforms of arrays of NumPy, along their last dimension.

A transform of n = r0 * r1 * ... numbers is a chain of products with matrices of Fourier, one for each factor: x is taken as [b, r0, r1, ...], and a step sums over
one of these dimensions, multiplies by roots of unity, and puts the new dimension last. With factors near 16 that is n * (r0 + r1 + ...) multiply-adds, of
which the chain is one kernel. A prime factor above 128 is brought to a convolution (Bluestein).
"""
import collections
import functools
import math

from ._locks import Lock

MOST_DIRECT = 128  # a factor that is one step
_STEP = 20  # what a step costs beside its multiply-adds, in units of a factor
_MOST_FIXED = 4  # lengths with a kernel of their own, for each number of steps and type; the others share one
_MOST_TABLES = 1024
_MOST_BYTES = 1 << 28
_fixed = {}
_tables = collections.OrderedDict()
_lock = Lock()


@functools.lru_cache(maxsize=4096)
def _cheapest(n, most):
    """(cost, factors) of n; None where a prime factor is above `most`."""
    if n <= 1:
        return 0, ()
    best = None
    for r in range(2, min(n, most) + 1):
        if n % r == 0:
            rest = _cheapest(n // r, r)  # larger factors first
            if rest is not None and (best is None or r + _STEP + rest[0] < best[0]):
                best = r + _STEP + rest[0], (r, *rest[1])
    return best


@functools.lru_cache(maxsize=4096)
def factors(n, most=MOST_DIRECT):
    """What n is taken apart into, larger factors first: the cheapest choice; None where a prime factor is above `most`."""
    found = _cheapest(n, most)
    return None if found is None else found[1] or (1,)


@functools.lru_cache(maxsize=4096)
def padded(n):
    """A length of at least 2 n - 1 that has cheap factors."""
    sizes = range(2 * n - 1, 2 * n + max(2 * n // 8, 2))
    found = [(_cheapest(m, 16), m) for m in sizes if m % 8 == 0 or m < 64]
    return min((cost[0] * m, m) for cost, m in found if cost is not None)[1]


def _text(radices, type_name, extents, batch):
    """The kernel of a chain: F are matrices of Fourier, T roots of unity."""
    steps = len(radices)
    before, after = [f"j{i}" for i in range(steps)], [f"k{i}" for i in range(steps)]
    parameters, statements, source, indices = [], [], "x", ["b", *before]
    for i in range(steps):
        result = ["b", *before[i + 1:], after[i], *after[:i][::-1]]
        step = f"F{i}[{after[i]},{before[i]}] * {source}[{','.join(indices)}]"
        parameters.append(f"F{i}: {type_name}[{extents[i]}, {extents[i]}]")
        target = "y" if i == steps - 1 else f"v{i}"
        if i < steps - 1:
            parameters.append(f"T{i}: {type_name}[{', '.join(map(str, extents[i + 1:]))}, {extents[i]}]")
            step = f"T{i}[{','.join([*before[i + 1:], after[i]])}] * sum[{before[i]}]({step})"
        statements.append(f"    {target}[{','.join(result)}] = {step};\n")
        source, indices = target, result
    shape = lambda names: f"{type_name}[b, {', '.join(map(str, names))}]"
    dims = ", ".join([f"b ~ {batch}", *(f"{e} ~ 16" for e in extents if isinstance(e, str))])
    return f"dim {dims};\nkernel fft(x: {shape(extents)}, {', '.join(parameters)}) -> (y: {shape(extents[::-1])}) {{\n{''.join(statements)}}}\n"


def text(radices, type_name, batch=8):
    """The kernel for these factors alone."""
    return _text(radices, type_name, radices, batch)


@functools.lru_cache(maxsize=4096)
def _kernel(radices, type_name):
    from ._trnsci import program_of
    with _lock:
        fixed = _fixed.setdefault((len(radices), type_name), set())
        if len(radices) > 1 and len(fixed) < _MOST_FIXED:
            fixed.add(radices)
        own = radices in fixed
    return program_of(text(radices, type_name) if own else _text(radices, type_name, [f"r{i}" for i in range(len(radices))], 8)).fft


def _roots(numbers, n, sign):
    """exp(sign * 2 pi i * numbers / n), to the last digit: the angles are less than a turn."""
    import numpy as np
    return np.exp((sign * 2j * np.pi / n) * (numbers % n))


def _table(key, make):
    """What belongs to a length and a type, kept for the next call: of what was used last, as much as _MOST_BYTES."""
    with _lock:
        if key in _tables:
            _tables.move_to_end(key)
            return _tables[key][0]
    made = make()
    arrays = [made] if hasattr(made, "nbytes") else made[-1] if made is not None else []
    with _lock:
        _tables[key] = made, sum(a.nbytes for a in arrays)
        while len(_tables) > 1 and (len(_tables) > _MOST_TABLES or sum(size for _, size in _tables.values()) > _MOST_BYTES):
            _tables.popitem(last=False)
    return made


def forget():
    """Forgets tables."""
    with _lock:
        _tables.clear()


def tables(radices, dtype, inverse):
    """The matrices and roots of a chain; those of an inverse transform have 1/n in them."""
    import numpy as np
    made, rest, sign = [], math.prod(radices), 1 if inverse else -1
    scale = 1 / rest if inverse else 1
    for i, r in enumerate(radices):
        rest //= r
        matrix = _roots(np.multiply.outer(np.arange(r), np.arange(r)), r, sign)
        made.append((matrix * scale if i == len(radices) - 1 else matrix).astype(dtype))
        if i < len(radices) - 1:
            roots = _roots(np.multiply.outer(np.arange(rest), np.arange(r)), rest * r, sign)
            made.append(roots.reshape(*radices[i + 1:], r).astype(dtype))
    return made


def transform(x, inverse, run=None):
    """The transform of rows [b, n] of complex numbers. run: what calls a chain of (x, factors, tables), in place of the kernel in C."""
    import numpy as np
    b, n = x.shape
    if n <= 1 or b == 0:
        return x.copy()
    if run is None:
        chain = _chain(n, x.dtype, inverse)
        if chain is None:
            return _bluestein(x, inverse, run)
        kernel, shape, constants = chain
        return kernel(x.reshape(shape), *constants).reshape(b, n)
    if factors(n) is None:
        return _bluestein(x, inverse, run)
    radices = device_factors(n)
    return np.asarray(run(x.reshape(b, *radices), radices, _table((radices, x.dtype.char, inverse), lambda: (radices, tables(radices, x.dtype, inverse)))[1])).reshape(b, n)


def _chain(n, dtype, inverse):
    """(kernel, the shape it takes rows in, its other arguments), or None where a prime factor is too large."""
    def make():
        radices = factors(n)
        if radices is None:
            return None
        return _kernel(radices, "c64" if dtype.itemsize == 8 else "c128"), (-1, *radices), tables(radices, dtype, inverse)
    return _table((n, dtype.char, inverse), make)


def device_factors(n):
    """As few factors as can be: the device takes matrices of 128 rows as fast as those of 16, and moving data between steps is what it is slow at."""
    if n <= MOST_DIRECT:
        return (n,)
    pairs = [(n // r, r) for r in range(2, MOST_DIRECT + 1) if n % r == 0 and r <= n // r <= MOST_DIRECT]
    return min(pairs) if pairs else factors(n)


def _bluestein(x, inverse, run):
    """As a convolution with exp(pi i k^2 / n)."""
    import numpy as np
    b, n = x.shape
    m = padded(n)

    def chirp():
        k = np.arange(n, dtype=np.int64)
        return _roots(k * k % (2 * n), 2 * n, -1).astype(x.dtype)

    def spectrum():
        a = np.zeros((1, m), np.complex128)
        k = np.arange(n, dtype=np.int64)
        a[0, :n] = _roots(k * k % (2 * n), 2 * n, 1)
        a[0, m - n + 1:] = a[0, 1:n][::-1]
        return transform(a, False)[0].astype(x.dtype)
    w, spectrum = _table(("chirp", n, x.dtype.char), chirp), _table(("spectrum", n, x.dtype.char), spectrum)
    a = np.zeros((b, m), x.dtype)
    np.multiply(x.conj() if inverse else x, w, out=a[:, :n])
    product = transform(a, False, run)
    product *= spectrum
    y = transform(product, True, run)[:, :n] * w
    return y.conj() / x.real.dtype.type(n) if inverse else y


_HALVES = """dim b ~ 8, h ~ 512;
kernel unpack(z: C[b, h], w: C[h + 1]) -> (y: C[b, h + 1]) {
    y[b,k] = 0.5 * (z[b,mod(k, h)] + conj(z[b,mod(h - k, h)])) - 0.5i * w[k] * (z[b,mod(k, h)] - conj(z[b,mod(h - k, h)]));
}
kernel pack(y: C[b, h + 1], w: C[h + 1]) -> (z: C[b, h]) {
    z[b,k] = 0.5 * (y[b,k] + conj(y[b,h - k])) + 0.5i * conj(w[k]) * (y[b,k] - conj(y[b,h - k]));
}
"""


@functools.lru_cache(maxsize=None)
def _halves(dtype):
    from ._trnsci import program_of
    return program_of(_HALVES.replace("C[", "c64[" if dtype.itemsize == 8 else "c128["))


def _half_roots(n, dtype):
    import numpy as np
    return _table(("half", n, dtype.char), lambda: _roots(np.arange(n // 2 + 1), n, -1).astype(dtype))


def real_transform(x, run=None):
    """The first n // 2 + 1 numbers of the transform of real rows: those of an even length as complex numbers of half the length."""
    import numpy as np
    b, n = x.shape
    dtype = np.dtype(np.complex64 if x.dtype == np.float32 else np.complex128)
    if n % 2 or n < 4 or b == 0:
        return np.ascontiguousarray(transform(x.astype(dtype), False, run)[:, :n // 2 + 1])
    return _halves(dtype).unpack(transform(x.view(dtype), False, run), _half_roots(n, dtype))


def real_inverse(y, n, run=None):
    """Real rows of length n from the first n // 2 + 1 numbers of their transform; the imaginary parts of the first and, of an even n, the last one do not count."""
    import numpy as np
    b = len(y)
    real = np.float32 if y.dtype == np.complex64 else np.float64
    if n % 2 or n < 4 or b == 0:
        whole = np.empty((b, n), y.dtype)
        whole[:, :y.shape[1]] = y
        whole[:, 0] = y[:, 0].real
        if n % 2 == 0:
            whole[:, n // 2] = y[:, n // 2].real
        whole[:, n // 2 + 1:] = y[:, 1:(n + 1) // 2][:, ::-1].conj()
        return np.ascontiguousarray(transform(whole, True, run).real)
    y = y.copy()
    y[:, 0], y[:, -1] = y[:, 0].real, y[:, -1].real
    return transform(_halves(y.dtype).pack(y, _half_roots(n, y.dtype)), True, run).view(real)
