# SPDX-License-Identifier: Apache-2.0
"""Kernels for arguments that are views: a kernel of the program that takes them as they lie, and calls the one that was meant.

`kernel f_view(A: f64[k, m], B: f64[k, n]) -> (C: f64[m, n]) { A_view[x0 < m, x1 < k] = A[x1, x0]; C = f(A_view, B); }` of `f(A: f64[m, k], ..)`: the compiler puts
the one into the other, and nothing is copied.
"""
import os

from ._errors import CompileError
from ._extents import Extent

_MOST = 16  # layouts of a kernel's arguments that are compiled, before what is in none of them is copied
_PROMISES = "symmetric", "hermitian", "lower(", "upper(", "shard", "partial"  # which another head would have to repeat


class _Layout:
    """One argument as it lies: the extents of its head, the position of an element, and the open dims that it brings."""

    def __init__(self, arg, a):
        from ._views import _Memory
        letters = "abcdefghijklmnopqrstuvwxyz"[: a.ndim]
        m = _Memory(a, letters, ())
        self.memory, self.dims = m, {}
        axes = [letters.index(label) for label in m.labels]
        shape = [arg.shape[axis] for axis in axes]
        rows = None if m.dense else m.rows()
        self.fits = m.whole and (m.dense or rows is not None)
        if not self.fits:
            return
        backward = [not m.dense and stride < 0 for stride in m.strides]
        if any(back and isinstance(n, Extent) for back, n in zip(backward, shape)):
            self.fits = False
            return
        self.head, self.shape = [str(n) for n in shape], m.shape
        if not m.dense:
            self.dims = {f"{arg.name}_row{k}": n for k, n in enumerate(rows) if k > 0}
            self.head[1:] = self.dims
            self.shape = tuple(rows)
        at = ", ".join(f"{n} - 1 - x{axis}" if back else f"x{axis}" for axis, n, back in zip(axes, shape, backward))
        ranges = ", ".join(f"x{axis} < {n}" for axis, n in enumerate(arg.shape))
        self.statement = f"{arg.name}_view[{ranges}] = {arg.name}{f'[{at}]' if at else ''};"

    def place(self, a):
        index, order = self.memory.layout
        a = a[(*index, ...)]
        return a if order is None else a.transpose(order)


class OfViews:
    """What `_arrays.Ready` is, for arrays that are the views for which it was made. layouts: of each array, or None."""
    __slots__ = "run", "results", "layouts"

    def __init__(self, run, results, layouts):
        self.run, self.results, self.layouts = run, results, layouts

    def __call__(self, arrays):
        import numpy as np
        if not all(type(a) is np.ndarray and a.flags.aligned for a in arrays):
            return None
        made = [np.empty(shape, dtype) for shape, dtype in self.results]
        self.run((*(a if layout is None else layout.place(a) for a, layout in zip(arrays, self.layouts)), *made), True)
        return made


class Variants:
    """Those of one kernel."""

    def __init__(self, kernel):
        self._kernel, self._made = kernel, {}

    def find(self, arrays):
        """(a kernel, layouts, its arrays, shapes to bind, open dims; all but the first by name) for arrays of which some are not in C order, or None."""
        kernel = self._kernel
        layouts = {}
        for arg in kernel._in:
            a = arrays[arg.name]
            if arg.role == "in" and not a.flags.c_contiguous and a.flags.aligned and a.dtype == arg.dtype:
                layout = _Layout(arg, a)
                if layout.fits:
                    layouts[arg.name] = layout
        if not layouts:
            return None
        key = tuple((name, *layout.head, layout.statement) for name, layout in layouts.items())
        if key not in self._made and len(self._made) < _MOST:
            self._made[key] = self._make(layouts)
        variant = self._made.get(key)
        if variant is None:
            return None
        memory = {name: layouts[name].place(a) if name in layouts else a for name, a in arrays.items()}
        dims = {name: n for layout in layouts.values() for name, n in layout.dims.items()}
        return variant, layouts, memory, {name: layout.shape for name, layout in layouts.items()}, dims

    def _make(self, layouts):
        from ._program import Program
        kernel = self._kernel
        if any(word in kernel.signature for word in _PROMISES) or kernel._updated:
            return None
        extents = lambda arg: layouts[arg.name].head if arg.name in layouts else [str(n) for n in arg.shape]
        head = lambda args: ", ".join(f"{arg.name}: {arg.type}{'[' + ', '.join(extents(arg)) + ']' if extents(arg) else ''}" for arg in args)
        given = ", ".join(arg.name + "_view" if arg.name in layouts else arg.name for arg in kernel._in)
        left = ", ".join(arg.name for arg in kernel._out)
        name = f"{kernel.name}_view"
        statements = " ".join(layout.statement for layout in layouts.values())
        text = f"kernel {name}({head(kernel._in)}) -> ({head(kernel._out)}) {{ {statements} {left if len(kernel._out) == 1 else f'({left})'} = {kernel.name}({given}); }}\n"
        arguments, program = kernel._source.made_of
        *options, path = arguments
        if program is None:  # what a file includes is looked for beside it
            folder, file = os.path.split(path)
            program, options = f'include "{file}";\n', [*options, f"-I{folder}"]
        try:
            return Program([f"--kernel={name}", *options, "-", "-w"], f"{program}\n{text}")[name]
        except CompileError:
            return None
