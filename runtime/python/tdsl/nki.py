# SPDX-License-Identifier: Apache-2.0
"""Kernels that `tdslc --target=trn2` wrote, as functions of arrays.

    import tdsl.nki
    p = tdsl.nki.load("out", program="kernels.tdsl")
    C = p.matmul(A, B)
    print(p.matmul.last)        # what ran, and why

On a Neuron host they run through the framework that is installed (torch-neuronx, jax, or nki alone), elsewhere in the emulator; with
`program` the C form runs where the device is not worth its cost or not there. docs/python.md of TDSL has examples.
"""
from __future__ import annotations

import os

from . import _tools
from ._arrays import plain
from ._errors import ArgumentError, DtypeError, Error
from ._nki_dispatch import DeviceError, Dispatch, FallbackWarning, Report, Settings, found, get, has_nki
from ._nki_forms import forms_of, head_of
from ._program import _OPTIONS, Kernel, Program, bind
from ._program import load as load_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["DeviceError", "FallbackWarning", "NkiKernel", "NkiProgram", "Report", "compile", "has_nki", "load"]


class _OnDevice:
    """Shape of a tensor as the kernel's head has it."""

    def __init__(self, tensor, pairs):
        self.shape = tuple(tensor.shape)[:-1] if pairs else tuple(tensor.shape)
        self.ndim = len(self.shape)


class NkiKernel(Kernel):
    """A kernel as a function of arrays, as those of `tdsl.load`.

    Tensors on a Neuron device (torch, jax) are taken there and results left there, complex numbers as pairs of f32 along a last axis,
    f64 results as two f32 whose sums they are, numbers as tensors without dimensions; `inout` ones of torch are updated in place.
    """

    def __init__(self, source, head, dispatch):
        super().__init__(source, head)
        self._dispatch = dispatch

    def __reduce__(self):
        return _kernel_again, (*self._source.made_of, self.name)

    @property
    def last(self) -> Report | None:
        """The Report of this thread's last call, or None."""
        return self._dispatch.last

    @property
    def forms(self) -> list[str]:
        """What each of its NKI forms is bound to, as text."""
        return [f.describe() for f in self._dispatch.forms]

    def explain(self, /, *given: Any, dims: dict[str, int] | None = None, **named: Any) -> Report:
        """The Report of a call with these arguments, which is not made."""
        _, dims, *_, named = self._sort({**dict.fromkeys(_OPTIONS), "dims": dims}, named)
        values = self._by_name(given, named)
        arrays = {arg.name: self._read(arg, values[arg.name]) for arg in self._in}
        return self._dispatch.choose(bind(self._dispatch, arrays, dims), tell=False)[2]

    def __call__(self, /, *given, **named):
        for x in (*given, *named.values()):
            device = found.owner(x)
            if device is not None:
                out, dims, _, comm, _, _, named = self._sort({option: named.pop(option, None) for option in _OPTIONS}, named)
                if comm is not None:
                    raise ArgumentError(f"{self.name}: ranks have arrays of the host, and an argument is on the device", "comm")
                return self._resident(device, self._by_name(given, named), out, dims)
        return super().__call__(*given, **named)

    def _resident(self, device, values, out, dims):
        if out is not None:
            raise ArgumentError(f"{self.name}: out is of the host, and an argument is on the device", "out")
        arrays, tensors = {}, []
        for arg in self.args:
            x = values.get(arg.name)
            if arg.role == "out":
                tensors.append(None)
                continue
            if not device.owns(x):
                arrays[arg.name] = plain(self._read(arg, x), 3)
                tensors.append(arrays[arg.name])
                continue
            pairs = arg.type == "c64"
            if device.type_of(x) != ("f32" if pairs else arg.type) or (pairs and (x.ndim == 0 or x.shape[-1] != 2)):
                wanted = "pairs of f32 along a last axis on the device, as it is c64" if pairs else arg.type
                raise DtypeError(f"argument {arg.name!r} of {self.name} is {wanted}, not {device.type_of(x)} {list(x.shape)}", arg.name)
            if arg.role == "inout" and not hasattr(device, "update"):
                raise ArgumentError(f"argument {arg.name!r} of {self.name} is updated in place, which arrays of {device.name} cannot be", arg.name)
            arrays[arg.name] = _OnDevice(x, pairs)
            tensors.append(x)
        form, made = self._dispatch.run_resident(device, bind(self._dispatch, arrays, dims), tensors)
        results = []
        for arg, row, x, new in zip(self.args, form.results, tensors, made):
            if arg.role == "out":
                results.append(new if arg.shape else device.shaped(new, (2,) if row.pairs else ()))
            elif new is not None and device.owns(x):
                device.update(x, device.shaped(new, tuple(x.shape)))
            elif new is not None:
                values[arg.name][...] = get(device, row, new, x.dtype, x.shape)
        return None if not results else results[0] if self._tuple is None else self._tuple(*results)


class _Source:
    """What Kernel asks for its kernels."""

    def __init__(self, dispatches, made_of):
        self._dispatches, self.made_of = dispatches, made_of

    def kernels(self, threads):
        del threads
        return self._dispatches


def _same(head, args):
    kind = lambda a: (a.name, "in" if a.role == "scalar" else a.role, a.type, len(a.shape))
    return [kind(a) for a in head] == [kind(a) for a in args]


class NkiProgram(Program):
    """The kernels of folders: attributes of their names, or `program["name"]`. `c_program` has their C forms, or is None."""

    def __init__(self, forms, c_program, settings, made_of):  # pylint: disable=super-init-not-called
        self.c_program = c_program
        by_name = {}
        for form in forms:
            by_name.setdefault(form.name, []).append(form)
        heads = {name: head_of(of_it) for name, of_it in by_name.items()}
        in_c = c_program.kernels if c_program is not None else {}
        for name, kernel in in_c.items():
            if name in heads and not _same(kernel.args, heads[name][3]):
                raise ArgumentError(f"the program's kernel {name!r} is {kernel.signature}; the folder's is {heads[name][1]}", "program")
            heads[name] = (name, kernel.signature, kernel.dims, kernel.args)
        dispatches = {name: Dispatch(head, by_name.get(name, []), c_program._source if name in in_c else None, settings)
                      for name, head in heads.items()}
        self._source = _Source(dispatches, made_of)
        self.kernels = {name: NkiKernel(self._source, heads[name], dispatches[name]) for name in heads}

    def __reduce__(self):
        return _program_again, self._source.made_of

    def _c_form(self):
        if self.c_program is None:
            raise Error("there is no C form: tdsl.nki.load(folder, program=FILE) gives one")
        return self.c_program

    def report(self, form="text"):
        """Of the C form, as `tdsl.load(...).report()`."""
        return self._c_form().report(form)

    def dump(self, stage="nest"):
        """Of the C form, as `tdsl.load(...).dump()`."""
        return self._c_form().dump(stage)

    @property
    def c(self):
        """The C of the C form."""
        return self._c_form().c


def compile(program: Program | str | os.PathLike[str], folder: str | os.PathLike[str], target: str = "trn2", lnc: int = 1, **dims: int) -> NkiProgram:  # noqa: A001
    """`tdslc --target=trn2 -o FOLDER` for a .tdsl file, or for what tdsl.load or tdsl.compile gave; then `load` with both forms.

    dims: numbers for all open dims; target: "trn1", "trn2", "trn3"; lnc: 2 for kernels that two physical cores share. Raises CompileError.
    """
    if not isinstance(program, Program):
        program = load_program(program)
    source = program._source
    bound = [f"-D{name}={int(n)}" for name, n in dims.items()]
    _tools.run(_tools.tdslc(), [f"--target={target}", f"--lnc={int(lnc)}", *bound, *source.arguments, "-o", os.path.abspath(os.fspath(folder))], source.text, warn=True)
    return load(folder, program=program)


def load(*folders: str | os.PathLike[str], program: Program | str | os.PathLike[str] | None = None, backend: str | None = None,
         require_nki: bool | None = None, min_nki_flops: float | None = None, use_simulator: bool | None = None) -> NkiProgram:
    """The kernels of folders that `tdslc --target=trn2 -o FOLDER` wrote, as functions of arrays.

    folders: each is one choice of extents, or holds such folders; a call takes the form whose extents its arrays have. program: a .tdsl
    file, or what tdsl.load or tdsl.compile gave: the C form of the same kernels, for calls with other extents, with too little work, or
    without a device. backend: "auto", "c", "nki", "emulator" (default TDSL_BACKEND, else auto); require_nki: a call that the NKI form
    cannot serve fails (TDSL_REQUIRE_NKI); min_nki_flops: below it the C form runs (TDSL_MIN_NKI_FLOPS, 2e9, counted as 2 per
    multiply-add); use_simulator: the emulator in place of the device (TDSL_USE_SIMULATOR).

    Without a device and without a C form the emulator runs, with one SlowWarning. Raises ArgumentError, FileError; calls raise
    what those of `tdsl.load` do, and DeviceError.
    """
    if not folders:
        raise ArgumentError("tdsl.nki.load: which folder?", "folders")
    forms = [form for folder in folders for form in forms_of(folder)]
    if program is not None and not isinstance(program, Program):
        program = load_program(program)
    made_of = tuple(os.path.abspath(os.fspath(folder)) for folder in folders), program, (backend, require_nki, min_nki_flops, use_simulator)
    return NkiProgram(forms, program, Settings(*made_of[2]), made_of)


def _program_again(folders, program, settings):
    return load(*folders, program=program, **dict(zip(("backend", "require_nki", "min_nki_flops", "use_simulator"), settings)))


def _kernel_again(folders, program, settings, name):
    return _program_again(folders, program, settings)[name]
