# SPDX-License-Identifier: Apache-2.0
"""The manifest of a kernel: what its parameters and results are, as JSON.

Fields read here (any other field is ignored, so that a compiler may say more):

    {"format":   1,                        # optional; what has another is refused
     "kernel":   "mm",                     # optional, a name for messages
     "file":     "mm.py",                  # optional: the module, relative to the manifest
     "function": "mm",                     # the @nki.jit function
     "target":   "trn2",                   # optional: trn1, trn2 or trn3
     "lnc": 2,                             # optional: cores that run it together, 1 or 2
     "instructions": 29,                   # optional: nki.isa calls executed by the first core; checked (H3)
     "matmul_macs": 42000000,              # optional: multiply-adds of nc_matmul; checked (H3)
     "args": [                             # parameters in order, then results in return order
        {"name": "a", "role": "input",  "dtype": "bfloat16", "shape": [300, 200]},
        {"name": "c", "role": "output", "dtype": "float32",  "shape": [300, 700]}]}

A kernel of several device programs has, in place of `file` and `function`, the parts in order:

     "temporaries": [{"name": "t", "dtype": "float32", "shape": [9, 9]}],
     "parts": [{"manifest": "mm_part1.json",
                "operands": [{"role": "input", "tensor": "a", "first": 0, "shape": [300, 200]},
                             {"role": "output", "tensor": "c", "first": 0, "shape": [128, 700]}]}]

where an operand is `shape` consecutive elements of a tensor from element `first`.

Every parameter and every result has a row; `name` of an input is the parameter's name. dtype
is a name of nki.language. A row may say which argument of the caller it is, "argument": 0; an
input and a result of the same one are an argument that the kernel updates, and only such a
result may be stored again after it was read (H5). A row may say that its elements are the parts of complex numbers,
along a last dimension of 2: "of": {"dtype": "complex64", "shape": [300]} beside "float32" and
"shape": [300, 2] ([1, 2] for a single number), or the low and the high word of 64-bit integers: "int64" beside "int32". The device has neither; who has the
array as complex64 or int64 gives and gets it so (as_device, as_caller). A result may have "of": {"dtype": "float64", ..}
in the same way: the last dimension has two float32 whose sum, in float64, is the caller's number. Where there is no manifest, one
is made from the arrays given.
"""

import json
import os

import numpy as np

from .dtype import TYPES
from .errors import FileError, UsageError
from .machine import machine_named


FORMAT = 1


class Argument:
    def __init__(self, name, role, dtype, shape, whole=None, number=None):
        self.name, self.role, self.dtype, self.shape = name, role, dtype, tuple(shape)
        self.whole = whole              # the shape in complex numbers or float64, or None
        self.words = False              # float64, as sums of two float32
        self.number = number            # of the caller's argument, or None

    def __str__(self):
        return f"{self.name}: {self.dtype.name} {list(self.shape)}"


class PartOperand:
    def __init__(self, role, tensor, first, shape):
        self.role, self.tensor, self.first, self.shape = role, tensor, first, tuple(shape)


class Part:
    """One device program of several: its manifest's path, and its tensors in order."""

    def __init__(self, manifest, operands):
        self.manifest = manifest
        self.inputs = [o for o in operands if o.role == "input"]
        self.outputs = [o for o in operands if o.role == "output"]


class Manifest:
    parts, temporaries, path, lnc = (), (), None, 1

    def __init__(self, function, inputs, outputs=None, target=None, file=None, counts=None):
        self.function, self.inputs, self.outputs = function, inputs, outputs
        self.target, self.file = target, file
        self.counts = counts or {}          # "instructions", "matmul_macs": what must come out

    def updates(self, output):
        """Whether an output is what the kernel makes of an argument that it also reads."""
        return output.number is not None and output.number in [a.number for a in self.inputs]


def _argument(at, row):
    if not isinstance(row, dict):
        raise UsageError(f"manifest: args[{at}] is not an object")
    name, role = row.get("name"), row.get("role")
    dtype, shape = row.get("dtype"), row.get("shape")
    if not isinstance(name, str) or not name:
        raise UsageError(f"manifest: args[{at}] has no name")
    if role not in ("input", "output"):
        raise UsageError(f"manifest: '{name}' has role {role!r}, not input or output")
    if dtype not in TYPES:
        raise UsageError(f"manifest: '{name}' has dtype {dtype!r}")
    if (not isinstance(shape, list) or not shape or
            not all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in shape)):
        raise UsageError(f"manifest: '{name}' has shape {shape!r}")
    number = row.get("argument")
    if number is not None:
        _whole_number(number, f"'argument' of '{name}'")
    made = Argument(name, role, TYPES[dtype], shape, _whole(name, role, dtype, shape, row.get("of")), number)
    made.words = made.whole is not None and row["of"]["dtype"] == "float64"
    return made


def _whole(name, role, dtype, shape, of):
    """The shape in complex numbers or float64 of a row that has "of"."""
    if of is None:
        return None
    whole = of.get("shape") if isinstance(of, dict) else None
    parts = {"complex64": "float32", "int64": "int32", **({"float64": "float32"} if role == "output" else {})}
    if (not isinstance(whole, list) or dtype != parts.get(of.get("dtype")) or
            shape != (whole or [1]) + [2]):
        raise UsageError(f"manifest: '{name}' does not hold the parts of {of!r}")
    return tuple(whole)


def as_device(array, argument):
    """An array of complex numbers or int64 as the pairs a kernel takes for such an argument; any other as it is."""
    whole = np.dtype(np.int64 if argument.dtype.is_int else np.complex64)
    if argument.whole is None or array.dtype.kind != whole.kind or array.dtype.itemsize < whole.itemsize:
        return array
    if array.shape != argument.whole:
        raise UsageError(f"'{argument.name}' has shape {list(array.shape)}, the kernel's is "
                         f"{list(argument.whole)}")
    pairs = np.ascontiguousarray(array, whole).reshape(-1).view(argument.dtype.held)
    return pairs.reshape(argument.shape)


def as_caller(array, argument):
    """What a kernel delivers for the parts of complex numbers or int64, as these; for two words, their sums."""
    if argument.whole is None:
        return array
    if argument.dtype.is_int:
        return np.ascontiguousarray(array, np.int32).reshape(-1).view(np.int64).reshape(argument.whole)
    single = np.ascontiguousarray(array, np.float32)
    if argument.words:
        return single.astype(np.float64).sum(axis=-1).reshape(argument.whole)
    return single.reshape(-1).view(np.complex64).reshape(argument.whole)


def _whole_number(value, what):
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise UsageError(f"manifest: {what} is {value!r}")
    return value


def _operand(row):
    if (not isinstance(row, dict) or row.get("role") not in ("input", "output") or
            not isinstance(row.get("tensor"), str) or not isinstance(row.get("shape"), list)):
        raise UsageError("manifest: an operand has no role, tensor or shape")
    shape = [_whole_number(n, "an extent") for n in row["shape"]]
    return PartOperand(row["role"], row["tensor"], _whole_number(row.get("first"), "'first'"),
                       shape)


def _parts(data):
    """The parts of a manifest, and the temporaries they hand to each other."""
    parts, temporaries = data.get("parts", []), data.get("temporaries", [])
    if not isinstance(parts, list) or not isinstance(temporaries, list):
        raise UsageError("manifest: 'parts' and 'temporaries' are lists")
    for part in parts:
        if (not isinstance(part, dict) or not isinstance(part.get("manifest"), str) or
                not isinstance(part.get("operands"), list)):
            raise UsageError("manifest: a part has no manifest or no operands")
    return ([Part(p["manifest"], [_operand(o) for o in p["operands"]]) for p in parts],
            [_argument(at, dict(t, role="input") if isinstance(t, dict) else t)
             for at, t in enumerate(temporaries)])


def manifest_from(data):
    """A Manifest of parsed JSON; UsageError says which field is wrong."""
    if not isinstance(data, dict) or not isinstance(data.get("args"), list):
        raise UsageError("manifest: an object with a list 'args' is needed")
    if data.get("format", FORMAT) != FORMAT:
        raise UsageError(f"manifest: format {data['format']!r}, made by "
                         f"{data.get('compiler', 'an unknown compiler')}; this emulator reads format {FORMAT}")
    parts, temporaries = _parts(data)
    function = data.get("kernel" if parts else "function")
    if not isinstance(function, str) or not function.isidentifier():
        raise UsageError("manifest: 'function' is not a name")
    target = data.get("target")
    if target is not None and (not isinstance(target, str) or machine_named(target) is None):
        raise UsageError(f"manifest: target {target!r} is not known")
    rows = [_argument(at, row) for at, row in enumerate(data["args"])]
    names = [row.name for row in rows]
    if len(set(names)) != len(names):
        raise UsageError("manifest: two args have one name")
    counts = {key: data[key] for key in ("instructions", "matmul_macs") if key in data}
    for key, value in counts.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise UsageError(f"manifest: {key} is {value!r}")
    file = data.get("file")
    if file is not None and not isinstance(file, str):
        raise UsageError("manifest: 'file' is not a string")
    made = Manifest(function, [r for r in rows if r.role == "input"],
                    [r for r in rows if r.role == "output"], target, file, counts)
    made.parts, made.temporaries = parts, temporaries
    made.lnc = data.get("lnc", 1)
    if made.lnc not in (1, 2) or isinstance(made.lnc, bool):
        raise UsageError(f"manifest: lnc is {made.lnc!r}, not 1 or 2")
    return made


def read_manifest(path):
    """Read and check a manifest file."""
    try:
        with open(path, encoding="utf-8") as stream:
            data = json.load(stream)
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}")
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path}: not JSON: {error}")
    manifest = manifest_from(data)
    manifest.path = path
    for part in manifest.parts:
        part.manifest = os.path.join(os.path.dirname(path), part.manifest)
    if manifest.file is not None:
        manifest.file = os.path.join(os.path.dirname(path), manifest.file)
    return manifest
