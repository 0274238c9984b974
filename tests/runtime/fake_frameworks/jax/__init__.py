# SPDX-License-Identifier: Apache-2.0
"""Stands for jax with the Neuron plugin in tests, as far as tdsl.nki needs it: arrays cannot be changed, and know their devices."""
import numpy as np


class Device:
    platform = "neuron"


_device = Device()


class Array:
    def __init__(self, bits):
        self.bits = bits.copy()
        self.bits.flags.writeable = False

    made = classmethod(lambda cls, bits, dtype: cls(bits))
    shape = property(lambda self: self.bits.shape)
    ndim = property(lambda self: self.bits.ndim)
    dtype = property(lambda self: self.bits.dtype)

    def devices(self):
        return {_device}

    def __array__(self, dtype=None, copy=None):
        return self.bits

    def reshape(self, shape):
        return Array(self.bits.reshape(shape))

    def __getitem__(self, k):
        return Array(self.bits[k])


class numpy:
    @staticmethod
    def concatenate(arrays):
        return Array(np.concatenate([a.bits for a in arrays]))


def devices(platform):
    assert platform == "neuron"
    return [_device]


def device_put(a, device):
    assert device is _device
    return Array(a)
