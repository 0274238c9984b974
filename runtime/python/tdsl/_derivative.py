# SPDX-License-Identifier: Apache-2.0
"""The kernels that give derivatives of others, for the hooks of torch and jax: `kernel K_back = vjp K(..);` behind the program's text."""
import functools
import os

from ._errors import ArgumentError, DtypeError, ShapeError
from ._extents import complete, computed_in, sizes

FLOATS = "f64", "f32", "f16", "bf16", "c64", "c128"


def check(kernel):
    from ._program import Kernel
    if not isinstance(kernel, Kernel):
        raise DtypeError(f"function takes a kernel, tdsl.compile(text).name or tdsl.load(path).name, not {type(kernel).__name__}", "kernel")
    for arg in kernel.args:
        if arg.role == "inout":
            raise ArgumentError(f"{kernel.name} changes {arg.name!r}, and is no function", arg.name)
    return kernel


def parameters(kernel):
    return [arg for arg in kernel.args if arg.role != "out"]


def results(kernel):
    return [arg for arg in kernel.args if arg.role == "out"]


@functools.lru_cache(maxsize=256)
def _backward(arguments, text, name, wanted):
    from ._program import Program
    *options, path = arguments
    if text is None:  # what a file includes is looked for beside it
        folder, file = os.path.split(path)
        text, options = f'include "{file}";\n', [*options, f"-I{folder}"]
    program = Program([*options, "-"], f"{text}\nkernel {name}_back = vjp {name}({', '.join(wanted)});\n")
    return program[f"{name}_back"]


def backward(kernel, wanted):
    """The kernel of the derivatives of `kernel` by the parameters that are named: it takes the parameters, then what each element of each result of floats counts."""
    return _backward(*kernel._source.made_of, kernel.name, tuple(wanted))


def results_of(kernel, arrays):
    """What the kernel makes of arrays, those of rank 0 as numbers, as a tuple."""
    made = kernel(*(x if x.ndim else x.item() for x in arrays))
    return made if isinstance(made, tuple) else (made,)


def result_shapes(kernel, shapes):
    """Those of the results, from the shapes of the parameters."""
    values, origin = {}, {}
    for arg, shape in zip(parameters(kernel), shapes):
        if len(shape) != len(arg.shape):
            raise ShapeError(f"argument {arg.name!r} of {kernel.name} has {len(shape)} dimensions, not {len(arg.shape)}", arg.name)
        for extent, wanted in zip(shape, arg.shape):
            fixed = values.setdefault(wanted, int(extent)) if isinstance(wanted, str) else wanted
            if fixed != extent:
                raise ShapeError(f"{kernel.name}: {arg.name!r} has an extent {extent}, not {fixed} ({wanted})", arg.name)
            if isinstance(wanted, str):
                origin.setdefault(wanted, (f"{arg.name!r}", arg.name))
    frame = _Frame(kernel)
    complete(frame, values, origin)
    size = sizes(frame, tuple(values[name] for name in kernel.dims))
    return [tuple(size.get(e, e) for e in arg.shape) for arg in results(kernel)]


class _Frame:
    """What `complete` asks of a kernel."""

    def __init__(self, kernel):
        self.name, self.dims, self.computed = kernel.name, kernel.dims, computed_in(kernel.args)
