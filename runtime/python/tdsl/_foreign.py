# SPDX-License-Identifier: Apache-2.0
"""Arrays of other packages that are more than numbers in memory: chunks that are not computed yet, labels, units, zeros that are left out.

einsum defers to what has a NumPy protocol of its own (`__array_function__`); of dask's arrays chunks are contracted by tdsl. Labelled arrays are refused with what to do.
"""
import sys

from ._errors import DtypeError

_LABELLED = {"xarray": "tdsl.xarray.dot(a, b, dim=..) keeps them; .values is the array alone"}


def _package(x):
    return type(x).__module__.partition(".")[0]


def defers(x):
    """Has it a NumPy protocol of its own?"""
    own = getattr(type(x), "__array_function__", None)
    if own is None or "numpy" not in sys.modules:
        return False
    import numpy as np
    return own is not np.ndarray.__array_function__ and not hasattr(x, "__cuda_array_interface__")


def refuse(x, argument):
    """DtypeError for what would lose its meaning as an array of NumPy."""
    package = _package(x)
    if package in _LABELLED:
        raise DtypeError(f"argument {argument!r} is a {package}.{type(x).__name__}, whose labels arrays of NumPy do not have: {_LABELLED[package]}", argument)
    if defers(x):
        raise DtypeError(f"argument {argument!r} is a {type(x).__module__}.{type(x).__name__}, which is no array in memory: make one of NumPy of it first (.compute(), .todense(), .value); "
                         "einsum with out=None, alpha=None and beta=None defers to its package", argument)


def einsum(equation, arrays, dtype, optimize, casting):
    """By the package of the arrays, of dask by tdsl for each chunk."""
    import numpy as np
    if all(_package(x) == "dask" or type(x) is np.ndarray for x in arrays) and isinstance(equation, str):
        return _of_dask(equation, arrays, dtype, optimize)
    named = {name: value for name, value, plain in (("dtype", dtype, None), ("optimize", optimize, None), ("casting", casting, "safe")) if value != plain}
    return np.einsum(equation, *arrays, **named)


def _chunk(*blocks, equation, contracted, named):
    from ._einsum import einsum as of_numpy
    made = of_numpy(equation, *blocks, **named)
    return made.reshape(made.shape + (1,) * contracted)


def _of_dask(equation, arrays, dtype, optimize):
    """Chunks are contracted, then added along the labels that are summed."""
    import dask.array as da
    import numpy as np

    from ._explicit import explicit, split
    text, drop = explicit(equation, [x.ndim for x in arrays], [[n for n, size in enumerate(x.shape) if size == 1] for x in arrays])
    terms, output = split(text)
    arrays = [da.asarray(x)[tuple(0 if n in gone else slice(None) for n in range(x.ndim))] for x, gone in zip(arrays, drop)]
    dtype = np.result_type(*arrays) if dtype is None else np.dtype(dtype)
    contracted = "".join(sorted(set("".join(terms)) - set(output)))
    pairs = [part for x, term in zip(arrays, terms) for part in (x, term)]
    made = da.blockwise(_chunk, output + contracted, *pairs, adjust_chunks={label: 1 for label in contracted}, dtype=dtype, equation=text, contracted=len(contracted),
                        named={"dtype": dtype.name, "optimize": optimize}, meta=np.empty((0,) * len(output + contracted), dtype))
    return made.sum(axis=tuple(range(len(output), made.ndim)), dtype=dtype) if contracted else made
