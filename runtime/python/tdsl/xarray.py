# SPDX-License-Identifier: Apache-2.0
"""`xarray.dot` by einsum: dimensions are contracted by their names.

    import tdsl.xarray
    tdsl.xarray.dot(a, b, dim="time")
"""
import xarray

from ._einsum import einsum
from ._errors import ArgumentError

__all__ = ["dot"]


def dot(*arrays, dim=None, **kwargs):
    """The sum of products of DataArrays over the dimensions `dim` (a name or several; default those that more than one has; `...`: all), as one kernel. Coordinates are aligned as
    xarray.dot does it, and kept. kwargs: of `tdsl.einsum`."""
    if not arrays or not all(isinstance(a, (xarray.DataArray, xarray.Variable)) for a in arrays):
        raise ArgumentError("dot takes DataArrays or Variables of xarray")
    every = list(dict.fromkeys(name for a in arrays for name in a.dims))
    if dim is None:
        summed = {name for name in every if sum(name in a.dims for a in arrays) > 1}
    else:
        summed = set(every) if dim is ... else {dim} if isinstance(dim, str) else set(dim)
    kept = [name for name in every if name not in summed]
    number = {name: k for k, name in enumerate(every)}
    inputs = [[name for name in a.dims if name in summed] for a in arrays]

    def compute(*values):  # of each the dimensions that are summed come last, and before them the last ones of those that are kept
        terms = [[number[name] for name in (*kept[len(kept) - value.ndim + len(last):], *last)] for value, last in zip(values, inputs)]
        return einsum(*[part for pair in zip(values, terms) for part in pair], [number[name] for name in kept], **kwargs)
    return xarray.apply_ufunc(compute, *arrays, input_core_dims=inputs, join=xarray.get_options()["arithmetic_join"], dask="allowed")
