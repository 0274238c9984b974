# SPDX-License-Identifier: Apache-2.0
"""Arrays of others: the buffer protocol, __array_interface__, DLPack; what is on another device is refused. torch, jax and ml_dtypes where they are installed."""
import array
import importlib.util
import unittest

import numpy as np
import tdsl

DATA = np.arange(6.0).reshape(2, 3)


class Dlpack:
    """DLPack and nothing else, on a device of choice."""

    def __init__(self, a, device=1):
        self._a, self._device = a, device
        self.shape, self.dtype = a.shape, a.dtype

    def __dlpack_device__(self):
        return self._device, 0

    def __dlpack__(self, **named):
        return self._a.__dlpack__(**named)


class Interface:
    """__array_interface__ and nothing else."""

    def __init__(self, a):
        self._a, self.__array_interface__ = a, a.__array_interface__


class Cuda(Interface):
    """As cupy's arrays present themselves to NumPy."""

    __cuda_array_interface__ = {}

    def __array__(self, *_, **__):
        raise TypeError("implicit conversion to a NumPy array")


class Exchange(unittest.TestCase):
    def test_what_is_in_the_hosts_memory(self):
        for make in (Dlpack, Interface, memoryview, lambda a: Dlpack(a, 3)):
            with self.subTest(make):
                self.assertEqual(tdsl.einsum("ij->i", make(DATA.copy())).tolist(), [3, 12])
        self.assertEqual(tdsl.einsum("i,i->", array.array("d", [1, 2]), [3.0, 4.0]), 11)
        kernel = tdsl.compile("kernel f(x: f64[n, m]) -> (y: f64[n]) { y[i] = sum[j](x[i,j]); }").f
        for make in (Dlpack, Interface, memoryview):
            self.assertEqual(kernel(make(DATA.copy())).tolist(), [3, 12])

    def test_nothing_is_copied(self):
        seen = []
        from tdsl import _arrays
        for make in (Dlpack, Interface, memoryview):
            a = DATA.copy()
            seen.append(_arrays.as_array(make(a), 0).__array_interface__["data"][0] == a.__array_interface__["data"][0])
        self.assertEqual(seen, [True] * 3)

    def test_other_devices_are_refused(self):
        kernel = tdsl.compile("kernel f(x: f64[n, m]) -> (y: f64[n]) { y[i] = sum[j](x[i,j]); }").f
        for bad in (Dlpack(DATA, 2), Dlpack(DATA, 10), Dlpack(DATA, 8), Cuda(DATA)):
            for call in (lambda a: tdsl.einsum("ij->i", a), kernel, lambda a: tdsl.contract("ij->i", a), lambda a: tdsl.tensordot(a, DATA.T.copy(), 1)):
                with self.assertRaisesRegex(tdsl.DtypeError, "device; kernels take arrays in the host's memory"):
                    call(bad)

    @unittest.skipIf(importlib.util.find_spec("torch") is None, "torch is not installed")
    def test_torch(self):
        import torch
        from tdsl import _arrays
        a = torch.arange(6.0).reshape(2, 3)
        self.assertEqual(_arrays.as_array(a, 0).__array_interface__["data"][0], a.data_ptr())
        self.assertEqual(tdsl.einsum("ij->i", a).tolist(), [3, 12])
        self.assertEqual(tdsl.einsum("ij,ij->i", a, DATA).tolist(), [5, 50])
        got = tdsl.einsum("ij->i", a.to(torch.bfloat16))
        self.assertEqual(got.dtype.itemsize, 2)
        self.assertEqual(tdsl.torch.from_numpy(got).tolist(), [3, 12])
        for dtype in (torch.float32, torch.bfloat16):
            with self.assertRaises((RuntimeError, TypeError)):
                tdsl.einsum("i->", torch.ones(2, dtype=dtype, requires_grad=True))
        self.assertRaises((TypeError, ValueError, NotImplementedError), tdsl.einsum, "i->", torch.ones(2, device="meta"))

    @unittest.skipIf(importlib.util.find_spec("jax") is None, "jax is not installed")
    def test_jax(self):
        import jax.numpy as jnp
        from tdsl import _arrays
        a = jnp.arange(6.0).reshape(2, 3)
        self.assertEqual(_arrays.as_array(a, 0).__array_interface__["data"][0], a.unsafe_buffer_pointer())
        self.assertEqual(tdsl.einsum("ij->i", a).tolist(), [3, 12])

    @unittest.skipIf(importlib.util.find_spec("ml_dtypes") is None, "ml_dtypes is not installed")
    def test_ml_dtypes(self):
        import ml_dtypes
        got = tdsl.einsum("ij->i", DATA.astype(ml_dtypes.bfloat16))
        self.assertEqual((got.dtype, got.tolist()), (ml_dtypes.bfloat16, [3, 12]))


unittest.main()
