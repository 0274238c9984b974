# SPDX-License-Identifier: Apache-2.0
"""Stands for torch in tests, as far as tdsl.nki needs it: tensors on the host and on a device "neuron", which NumPy cannot read."""
import numpy

float32, float16, bfloat16, int16 = "float32", "float16", "bfloat16", "int16"


class Device:
    def __init__(self, type_):
        self.type = type_


class Tensor:
    def __init__(self, bits, dtype, where="cpu"):
        self.bits, self.dtype, self.device = bits, dtype, Device(where)

    @classmethod
    def made(cls, bits, dtype):
        """A result of a device program."""
        return cls(bits, dtype, "neuron")

    shape = property(lambda self: self.bits.shape)
    ndim = property(lambda self: self.bits.ndim)

    def __array__(self, *args, **kwargs):
        raise TypeError("can't convert a tensor to numpy")

    def to(self, where):
        return Tensor(self.bits.copy(), self.dtype, getattr(where, "type", where))

    def cpu(self):
        return self.to("cpu")

    def numpy(self):
        if self.device.type != "cpu" or self.dtype == bfloat16:
            raise TypeError(f"no array for {self.dtype} on {self.device.type}")
        return self.bits

    def view(self, dtype):
        return Tensor(self.bits.view("i2" if dtype in (int16, bfloat16) else dtype), dtype, self.device.type)

    def reshape(self, shape):
        return Tensor(self.bits.reshape(shape), self.dtype, self.device.type)

    def __getitem__(self, k):
        return Tensor(self.bits[k], self.dtype, self.device.type)

    def copy_(self, other):
        assert self.dtype == other.dtype and self.shape == other.shape
        self.bits[...] = other.bits


def device(type_):
    return Device(type_)


def from_numpy(a):
    return Tensor(a, a.dtype.name)


def zeros(*shape):
    return Tensor(numpy.zeros(shape, "f4"), float32)


def cat(tensors):
    assert len({(t.dtype, t.device.type) for t in tensors}) == 1
    return Tensor(numpy.concatenate([t.bits for t in tensors]), tensors[0].dtype, tensors[0].device.type)
