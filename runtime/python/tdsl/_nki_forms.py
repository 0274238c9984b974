# SPDX-License-Identifier: Apache-2.0
"""What `tdslc --target=trn2` wrote into a folder, read from its manifests: kernels, each bound to extents, of one or several device programs."""
import functools
import hashlib
import json
import math
import os
import re

from ._errors import ArgumentError, Error, FileError
from ._table import Argument

FORMAT = 1  # of manifests
_NAME = r"[^\W\d]\w*"
_HEAD = re.compile(rf"kernel ({_NAME})\(")
_PARAM = re.compile(rf"({_NAME}): (inout )?(\w+)(?:\[([^]]*)\])?")
_TYPES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "complex64": "c64", "float64": "f64",
          "int32": "i32", "int64": "i64", "uint8": "bool", "int8": "i8", "int16": "i16", "uint16": "u16", "uint32": "u32",
          "float8_e4m3": "f8e4m3", "float8_e5m2": "f8e5m2"}


class Row:
    """A tensor as device programs have it: a number is of shape (1, 1), complex numbers are pairs of f32 along a last axis, i64 pairs of i32,
    f64 results (`words`) two f32 whose sums they are."""

    def __init__(self, row):
        self.name, self.shape = row["name"], tuple(row["shape"])
        self.type, self.size = _TYPES.get(row["dtype"], row["dtype"]), math.prod(row["shape"])
        self.pairs = "of" in row
        self.words = self.pairs and row["of"]["dtype"] == "float64"


class Operand:
    """What a device program reads or writes: consecutive elements of a tensor of the kernel."""

    def __init__(self, role, tensor, first, shape):
        self.reads, self.tensor, self.first, self.shape = role == "input", tensor, first, tuple(shape)
        self.size = math.prod(shape)


class DeviceProgram:
    """One device program: the printed file, the function in it, its manifest, its operands in order."""

    def __init__(self, manifest, data, operands):
        self.manifest, self.function = manifest, data["function"]
        if os.path.basename(data["file"]) != data["file"]:
            raise Error(f"{manifest}: its program is a file beside it, not {data['file']!r}")
        self.file = os.path.join(os.path.dirname(manifest), data["file"])
        self.digest = data.get("sha256")
        self.inputs = [o for o in operands if o.reads]
        self.outputs = [o for o in operands if not o.reads]

    @functools.cached_property
    def unique(self):
        """A name that no other program has, nor another text in the same place."""
        with open(self.file, "rb") as stream:
            return f"{self.function}_{hashlib.sha256(self.file.encode() + stream.read()).hexdigest()[:12]}"

    def check(self):
        """Error where the file's code is not that of the manifest's digest: for whoever is going to run it. Before its imports, where the digest begins, it
        has a docstring only."""
        import ast
        with open(self.file, encoding="utf-8") as stream:
            head, _, code = stream.read().partition("\nimport nki\n")
        try:
            statements = ast.parse(head).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            statements = [None]
        is_text = all(isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) for s in statements)
        if not is_text or hashlib.sha256(("import nki\n" + code).encode()).hexdigest() != self.digest:
            raise Error(f"{self.file} is not what tdslc wrote with {self.manifest}: its SHA-256 is another, and it is not run; compile the folder again")


class Form:
    """A kernel for one choice of its extents. `args`: as callers see them; `inputs`, `results`: for each the Row of the device, or None."""

    def __init__(self, path, data, read):
        if isinstance(data.get("format", FORMAT), int) and data.get("format", FORMAT) > FORMAT:
            raise Error(f"{path} is of format {data['format']}, by {data.get('compiler')}; this version reads format {FORMAT}: compile the folder again, "
                        "or install a newer tdsl")
        try:
            self._fill(path, data, read)
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise Error(f"{path} is no manifest of this version of tdslc ({type(error).__name__}: {error}); compile the folder again") from None

    def _fill(self, path, data, read):
        self.path, self.signature, self.compiler = path, data["signature"], data["compiler"]
        self.name = _HEAD.match(self.signature)[1]
        self.target, self.lnc, self.multiply_adds = data["target"], data["lnc"], data["multiply_adds"]
        params = _PARAM.findall(self.signature, self.signature.index("("))
        self.extents = [[e.strip() for e in extents.split(",") if e.strip()] for *_, extents in params]
        self.args, self.inputs, self.results = [], [None] * len(params), [None] * len(params)
        for row in data["args"]:
            (self.inputs if row["role"] == "input" else self.results)[row["argument"]] = Row(row)
        rows = {row["argument"]: row for row in data["args"]}
        for k, (name, inout, word, _) in enumerate(params):
            of = rows[k].get("of", rows[k])
            shape = of["shape"] if self.extents[k] else ()
            if len(shape) != len(self.extents[k]):
                raise TypeError(f"the rank of {name}")
            role = "inout" if inout else "out" if self.inputs[k] is None else "in" if shape else "scalar"
            self.args.append(Argument(name, role, word if word == "u8" else _TYPES[of["dtype"]], shape))
        self.temporaries = [Row(row) for row in data.get("temporaries", [])]
        if "parts" not in data:
            whole = [Operand(row["role"], row["name"], 0, row["shape"]) for row in data["args"]]
            self.programs = [DeviceProgram(path, data, whole)]
            return
        self.programs = []
        for part in data["parts"]:
            manifest = os.path.join(os.path.dirname(path), part["manifest"])
            operands = [Operand(o["role"], o["tensor"], o["first"], o["shape"]) for o in part["operands"]]
            self.programs.append(DeviceProgram(manifest, read(manifest), operands))

    def describe(self):
        """ "m=40, k=30": what the dims of the head are bound to; a head of numbers alone has none."""
        bound = {}
        for names, arg in zip(self.extents, self.args):
            bound.update((e, n) for e, n in zip(names, arg.shape) if not e.isdigit())
        return ", ".join(f"{e}={n}" for e, n in bound.items())


def _read(path):
    try:
        with open(path, encoding="utf-8") as stream:
            return json.load(stream)
    except ValueError as error:
        raise Error(f"{path}: not JSON: {error}") from None


def forms_of(folder):
    """The forms in a folder; in the folders in it, where it has none itself."""
    folder = os.path.abspath(os.fspath(folder))
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise FileError(f"{folder} cannot be read: {error.strerror}") from None
    data = {name: _read(os.path.join(folder, name)) for name in names if name.endswith(".json")}
    data = {name: d for name, d in data.items() if isinstance(d, dict) and "args" in d and "target" in d}
    parts = {p["manifest"] for d in data.values() for p in d.get("parts", [])}
    found = [Form(os.path.join(folder, name), d, _read) for name, d in data.items() if name not in parts]
    if not found:
        inner = [os.path.join(folder, name) for name in names if os.path.isdir(os.path.join(folder, name))]
        found = [f for path in inner for f in (forms_of(path) if any(n.endswith(".json") for n in os.listdir(path)) else [])]
    if not found:
        raise ArgumentError(f"{folder} has no manifests: give a folder that `tdslc FILE --target=trn2 -o FOLDER` wrote", "folders")
    return found


def head_of(forms):
    """(name, signature, dims, arguments) of a kernel in several forms: an extent that is equal in all of them is that number."""
    first = forms[0]
    for form in forms[1:]:
        if form.signature != first.signature:
            raise ArgumentError(f"{form.path} is of another kernel {first.name!r} than {first.path}: {form.signature}", "folders")
    values = {}
    for form in forms:
        for names, arg in zip(form.extents, form.args):
            for name, n in zip(names, arg.shape):
                values.setdefault(name, set()).add(n)
    dims = [name for name, all_of_it in values.items() if len(all_of_it) > 1]
    args = [Argument(a.name, a.role, a.type, [name if name in dims else n for name, n in zip(names, a.shape)])
            for names, a in zip(first.extents, first.args)]
    return first.name, first.signature, dims, args
