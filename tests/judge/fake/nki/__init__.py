# SPDX-License-Identifier: Apache-2.0
"""Stands in for the vendor's package in tests of simulate.py: nki.simulate runs our emulator on the kernel's own file.

It behaves as the vendor documents it where simulate.py depends on that: kernels are functions of importable files, the target is
read from the environment at import, results are one array or a tuple. TDSL_FAKE_NKI chooses a fault: wrong, few, raise."""
import inspect
import os

import numpy as np

_TARGET = os.environ.get("NEURON_PLATFORM_TARGET_OVERRIDE", "trn3")
_PRECISE = os.environ.get("NKI_PRECISE_FP") == "1"


class Kernel:
    def __init__(self, function, cores=1):
        self.function, self.cores, self.__name__ = function, cores, function.__name__

    def __getitem__(self, cores):
        return Kernel(self.function, cores)


def jit(function=None, mode="auto", **_):
    """What the name is bound to; with a grid of cores in brackets."""
    return Kernel(function) if function is not None else jit


def simulate(kernel):
    cores, kernel = kernel.cores, kernel.function

    def call(*arrays):
        from nki_emulator.emulate import emulate
        fault = os.environ.get("TDSL_FAKE_NKI", "")
        if fault == "raise":
            raise RuntimeError("the simulator gives up")
        assert _PRECISE and all(isinstance(a, np.ndarray) for a in arrays)
        file = inspect.getsourcefile(kernel)
        assert kernel.__name__ in inspect.getsource(kernel)
        with open(file, encoding="utf-8") as stream:
            text = stream.read()
        outputs = emulate(text, list(arrays), target=_TARGET, path=file, ranges="warn",
                          lnc=cores).outputs
        if fault == "wrong":
            outputs = [2 * o + 1 for o in outputs]
        outputs = outputs[:-1] if fault == "few" else outputs
        return outputs[0] if len(outputs) == 1 else tuple(outputs)
    return call
