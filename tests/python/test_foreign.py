# SPDX-License-Identifier: Apache-2.0
"""Arrays of other packages: einsum defers to those with a NumPy protocol of their own, and what would lose its meaning is refused. Packages that are not
installed have stand-ins, or are left out."""
import importlib.util
import unittest

import numpy as np
import tdsl

A, B = np.arange(12.0).reshape(3, 4), np.arange(20.0).reshape(4, 5)


class Metres:
    """An array with a unit, by NumPy's protocol."""

    def __init__(self, values, power=1):
        self.values, self.power = values, power

    dtype, shape = A.dtype, (3, 4)

    def __array__(self, dtype=None, copy=None):
        return self.values

    def __array_function__(self, function, types, args, kwargs):
        assert function is np.einsum
        equation, *arrays = args
        return Metres(np.einsum(equation, *[x.values for x in arrays], **kwargs), sum(x.power for x in arrays))


class Foreign(unittest.TestCase):
    def test_a_protocol_is_deferred_to(self):
        got = tdsl.einsum("ij,kj->ik", Metres(A), Metres(A), optimize=True)
        self.assertEqual((type(got), got.power), (Metres, 2))
        np.testing.assert_array_equal(got.values, A @ A.T)
        self.assertEqual(tdsl.contract("ij,kj->ik", Metres(A), Metres(A)).power, 2)

    def test_where_nobody_can_defer_it_is_refused(self):
        f = tdsl.expression("ij->i", (3, 4))
        kernel = tdsl.compile("kernel f(A: f64[m, n]) -> (R: f64[m]) { R[i] = sum[j](A[i,j]); }").f
        for call in f, kernel, lambda x: tdsl.einsum("ij->i", x, alpha=2), lambda x: tdsl.einsum("ij->i", x, out=np.empty(3)):
            with self.assertRaisesRegex(tdsl.DtypeError, "Metres, which is no array in memory"):
                call(Metres(A))

    def test_labels_are_not_lost_in_silence(self):
        DataArray = type("DataArray", (), {"__module__": "xarray.core.dataarray", "__array__": lambda self, dtype=None, copy=None: A, "dtype": A.dtype, "shape": A.shape})
        with self.assertRaisesRegex(tdsl.DtypeError, "tdsl.xarray.dot"):
            tdsl.einsum("ij->i", DataArray())

    @unittest.skipUnless(importlib.util.find_spec("dask"), "dask is not installed")
    def test_dask(self):
        import dask.array as da
        x, y = da.from_array(A, chunks=2), da.from_array(B, chunks=(3, 2))
        for equation, *arrays in (("ij,jk->ik", x, y), ("ij,jk->ik", x, B), ("ij->", x), ("ij->ji", x), ("ij,jk", x, y), ("...j,jk->...k", x, y), ("ij,jk,k->i", x, y, np.ones(5))):
            got = tdsl.einsum(equation, *arrays)
            self.assertIsInstance(got, da.Array)
            self.assertIsInstance(tdsl.contract(equation, *arrays, backend="dask"), da.Array)
            np.testing.assert_array_equal(got.compute(), np.einsum(equation, *map(np.asarray, arrays)))

    @unittest.skipUnless(importlib.util.find_spec("xarray"), "xarray is not installed")
    def test_xarray(self):
        import tdsl.xarray
        import xarray
        p = xarray.DataArray(A, dims=("x", "y"), coords={"x": [1, 2, 3], "y": [0, 1, 2, 3]})
        q = xarray.DataArray(B, dims=("y", "z"), coords={"y": [0, 1, 2, 3]})
        for arrays in (p, q), (p[::-1, 1:], q), (p, q, p), (p.variable, q.variable):
            for dim in None, "y", ["x", "y"], ..., []:
                got, wanted = tdsl.xarray.dot(*arrays, dim=dim), xarray.dot(*arrays, dim=dim)
                xarray.testing.assert_identical(got, wanted)
        with self.assertRaises(tdsl.DtypeError):
            tdsl.einsum("ij->i", p)
        with self.assertRaises(tdsl.ArgumentError):
            tdsl.xarray.dot(A, B)


unittest.main()
