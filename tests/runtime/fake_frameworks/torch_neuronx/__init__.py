# SPDX-License-Identifier: Apache-2.0
"""Stands for torch-neuronx of SDK 2.33 in tests: nki_op holds a function to what torch's schemas ask for, wrap_nki gives kernels tensors
of the device only."""
import inspect
import re

import torch

ops = {}


class Wrapped:
    def __init__(self, kernel, lnc=None):
        self.kernel, self.lnc = kernel, lnc

    def __getitem__(self, lnc):
        return Wrapped(self.kernel, lnc)

    def __call__(self, *tensors):
        assert self.lnc in (1, 2) and all(type(t) is torch.Tensor and t.device.type == "neuron" for t in tensors)
        return self.kernel[self.lnc](*tensors)


def wrap_nki(kernel):
    return Wrapped(kernel)


def nki_op(name, mutates_args):
    def register(function):
        assert re.fullmatch(r"\w+::\w+", name) and name not in ops and mutates_args == {}
        signature = inspect.signature(function)
        assert all(p.annotation is torch.Tensor for p in signature.parameters.values())
        one = signature.return_annotation is torch.Tensor

        def op(*tensors):
            signature.bind(*tensors)
            made = function(*tensors)
            assert one == isinstance(made, torch.Tensor) and (one or len(made) == len(signature.return_annotation.__args__))
            return made
        ops[name] = op
        return op
    return register
