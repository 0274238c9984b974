# SPDX-License-Identifier: Apache-2.0
"""Kernels where there is no C compiler: tdsl-run interprets them, with files between."""
import math
import os

from . import _tools
from ._cache import warn_once
from ._extents import Extent
from ._table import Argument


class Head(tuple):
    """(name, signature, dims, arguments) of a kernel. `computed`: all extents that it computes; `typical`: what its dims are planned for; `looks_up`: has it
    positions that are values?"""
    computed, typical, looks_up = (), None, False


def heads(described):
    """(name, signature, dims, arguments) of each kernel of a program, from what --emit=json says."""
    found = []
    for k in described["kernels"]:
        known = {}
        for e in k.get("computed", ()):
            terms = e["product"] if "product" in e else e["sum"]
            numbers = [name for name, _ in terms if isinstance(name, int)]  # in products
            terms = [(known.get(name, name), c) for name, c in terms if not isinstance(name, int)]
            known[e["extent"]] = Extent(e["extent"], math.prod([e["base"], *numbers]), e["divisor"], "product" in e, terms)
        shape = lambda extents: [known.get(n, n) for n in extents]
        args = [Argument(p["name"], p["role"], p["dtype"], shape(p["shape"])) for p in k["params"]]
        names = {a.name for a in args if a.role == "inout"}
        for r in k["results"]:
            node = k["nodes"][r["node"]]
            if r["name"] not in names:
                args.append(Argument(r["name"], "out", node["dtype"], shape(node["shape"])))
        found.append(Head((k["name"], k["signature"], [d["name"] for d in k["dims"]], args)))
        found[-1].computed = list(known.values())
        found[-1].looks_up = any(node["op"] in ("gather", "scatter") for node in k["nodes"])
        found[-1].typical = [d["typical"] for d in k["dims"]]
    return found


class InterpretedKernel:
    """A kernel that tdsl-run runs. `source`: the arguments of tdsl-run that say which program; `text`: what it reads from standard input."""

    def __init__(self, head, source, text=None):
        self.name, self.signature, self.dims, self.args = head
        self.computed = head.computed
        self._source, self._text = source, text

    def _unsaid(self):
        """Dims that no array says: -D says them, which binds dims of the same name in all kernels."""
        known = {extent for arg in self.args if arg.role not in ("out", "scalar") for extent in arg.shape}
        for extent in (*self.computed[::-1], *self.computed):  # what is made of others comes last
            unknown = [name for name, _ in extent.terms if name not in known]
            if extent in known and len(unknown) == 1 and extent.divisor == 1 and not extent.product:
                known.add(unknown[0])
        return [name for name in self.dims if name not in known]

    def prepare(self, dims, threads):
        """A function of arrays in C order, one for each argument, for these open extents."""
        del threads
        warn_once("interpreter", "there is no C compiler: kernels are interpreted, some hundred times slower")
        unsaid = self._unsaid()
        bind = [f"-D{name}={value}" for name, value in zip(self.dims, dims) if name in unsaid] if "-e" not in self._source else []

        def run(arrays, fresh=False):
            del fresh
            import tempfile

            import numpy as np
            with tempfile.TemporaryDirectory(prefix="tdsl-") as folder:
                values, outputs = [], []
                for arg, a in zip(self.args, arrays):
                    path = os.path.join(folder, f"{len(values) + len(outputs)}.npy")
                    if arg.role != "out":
                        np.save(path, a if a.dtype.name != "bfloat16" else a.view("V2"))
                        values.append(path if "-e" in self._source else f"{arg.name}={path}")
                    if arg.role in ("out", "inout"):
                        outputs.append((arg, a, path.replace(".npy", "_out.npy")))
                said = [word for arg, _, path in outputs for word in ("-o", f"{arg.name}={path}")]
                _tools.run(_tools.tdsl_run(), ["--target=interp", "-w", *self._source, *bind, *values, *said], self._text)
                for _, a, path in outputs:
                    a[...] = np.load(path).view(a.dtype)
        return run
