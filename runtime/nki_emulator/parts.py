# SPDX-License-Identifier: Apache-2.0
"""A kernel of several device programs, its parts: each is emulated in order.

The kernel's manifest lists them, and the tensors of each: arguments of the kernel, temporaries,
or consecutive elements of either. What is checked here is what no part can see: nothing is read
that no part has written, nothing is written twice, and all of every result is written (H3).
"""

import math

import numpy as np

from .dtype import to_outside
from .emulate import check_arrays, emulate
from .errors import FileError, broken
from .manifest import read_manifest


class Parts:
    """What a run of all parts produced; `results` are those of the parts, in order."""

    def __init__(self, kernel, results, outputs, output_types):
        self.kernel, self.results = kernel, results
        self.outputs, self.output_types = outputs, output_types
        self.warnings = [w for r in results for w in r.warnings]

    def report(self):
        return {"kernel": self.kernel, "parts": [r.report() for r in self.results]}


class _Store:
    """The tensors of the kernel, flat, with what of them has been written."""

    def __init__(self, manifest):
        self.path, self.values, self.written, self.types = manifest.path, {}, {}, {}
        for argument in manifest.outputs + manifest.temporaries:
            size = math.prod(argument.shape)
            self.types[argument.name] = argument.dtype
            self.values[argument.name] = np.zeros(size, argument.dtype.outside)
            self.written[argument.name] = np.zeros(size, bool)

    def put(self, argument, array):
        self.types[argument.name] = argument.dtype
        self.values[argument.name] = np.ascontiguousarray(array).reshape(-1)
        self.written[argument.name] = np.ones(array.size, bool)

    def _place(self, operand):
        size = math.prod(operand.shape)
        end = operand.first + size
        if operand.tensor not in self.values or end > self.values[operand.tensor].size:
            broken("H3", f"an operand is no part of a tensor '{operand.tensor}'", path=self.path)
        return slice(operand.first, end)

    def read(self, operand):
        place = self._place(operand)
        if not self.written[operand.tensor][place].all():
            broken("H3", f"'{operand.tensor}' is read before all of it is written",
                   path=self.path)
        return self.values[operand.tensor][place].reshape(operand.shape)

    def write(self, operand, array):
        place = self._place(operand)
        if self.written[operand.tensor][place].any():
            broken("H3", f"'{operand.tensor}' is written twice", path=self.path)
        self.values[operand.tensor][place] = array.reshape(-1)
        self.written[operand.tensor][place] = True


def _text(path):
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read()
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}")


def emulate_parts(manifest, arrays, target="trn2", max_instructions=20000, ranges="error"):
    """Check and run every part of a kernel; arrays are in their outside form."""
    store, results = _Store(manifest), []
    for argument, held in zip(manifest.inputs, check_arrays(manifest, arrays)):
        store.put(argument, to_outside(held, argument.dtype))
    for part in manifest.parts:
        own = read_manifest(part.manifest)
        result = emulate(_text(own.file), [store.read(o) for o in part.inputs], own,
                         target=target, path=own.file, max_instructions=max_instructions,
                         ranges=ranges)
        if len(result.outputs) != len(part.outputs):
            broken("H3", f"{len(result.outputs)} results, its operands are "
                         f"{len(part.outputs)}", path=part.manifest)
        for operand, array in zip(part.outputs, result.outputs):
            store.write(operand, array)
        results.append(result)
    for argument in manifest.outputs:
        if not store.written[argument.name].all():
            broken("H3", f"no part writes all of '{argument.name}'", path=manifest.path)
    return Parts(manifest.function, results,
                 [store.values[a.name].reshape(a.shape) for a in manifest.outputs],
                 [a.dtype for a in manifest.outputs])


__all__ = ["Parts", "emulate_parts"]
