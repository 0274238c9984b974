# SPDX-License-Identifier: Apache-2.0
"""What the libraries of trnsci have in common under their names here: backends and the variables that set them, tensors, and kernels that run in C or on the device."""
import functools
import os
import re
import tempfile

from ._arrays import as_array, name_of
from ._device import DeviceTensor, present
from ._errors import ArgumentError, DtypeError, Error
from ._locks import Lock
from ._nki_dispatch import DeviceError
from ._sharded import ShardedTensor

BACKENDS = {"auto": "auto", "pytorch": "c", "c": "c", "nki": "nki"}
_NKI_TYPES = "f32", "f16", "bf16"
_ON = "1", "true", "yes", "on"
_present = []
_programs = {}
_lock = Lock()


class UnsupportedError(Error, NotImplementedError):
    """What a library of trnsci has, and this package has not."""


class BackendError(ArgumentError, AssertionError):
    """A backend that there is not: the libraries raise AssertionError."""


@functools.lru_cache(maxsize=None)
def _files():
    return tempfile.TemporaryDirectory(prefix="tdsl-nki-")


def has_nki():
    """Is there a device? Asked once."""
    if not _present:
        _present.append(present())
    return _present[0]


class Library:
    """The settings of one of the libraries: what set_backend was given, else what the variables NAME_... say."""

    def __init__(self, name):
        self.name, self._prefix = name, name.upper() + "_"
        self.backend = self._variable("FORCE_BACKEND") or "auto"
        if self.backend not in BACKENDS:
            raise ArgumentError(f"{self._prefix}FORCE_BACKEND is {self.backend!r}, not one of {', '.join(BACKENDS)}")

    def _variable(self, name):
        return os.environ.get(self._prefix + name, "")

    def simulated(self):
        """Does the emulator take the device's place?"""
        return self._variable("USE_SIMULATOR").lower() in _ON

    def required(self):
        """Is it an exception that something does not run on the device?"""
        return self._variable("REQUIRE_NKI").lower() in _ON

    def threshold(self, resident):
        """In multiply-adds, as trntensor counts them."""
        for name in ("MIN_NKI_FLOPS_PINNED",) * resident + ("MIN_NKI_FLOPS",):
            text = self._variable(name)
            if text:
                try:
                    return float(text)
                except ValueError:
                    raise ArgumentError(f"{self._prefix}{name}: {text!r} is no number of multiply-adds, such as 2e9") from None
        return 1e9 if resident else 2e9

    def set_backend(self, backend):
        """"auto", "pytorch" (compiled C; also "c"), or "nki", which raises RuntimeError where there is neither a device nor NAME_USE_SIMULATOR=1."""
        if backend not in BACKENDS:
            raise BackendError(f"set_backend: {backend!r} is not one of {', '.join(BACKENDS)}", "backend")
        if backend == "nki" and not self.simulated() and not has_nki():
            raise DeviceError(f"set_backend: there is no Neuron device here, with or without neuronxcc; {self._prefix}USE_SIMULATOR=1 takes the emulator")
        self.backend = backend

    def get_backend(self):
        """What set_backend was given last, or NAME_FORCE_BACKEND."""
        return self.backend

    def attribute(self, name):
        """`__getattr__` of the library's module: HAS_NKI is asked for when it is read."""
        if name == "HAS_NKI":
            return has_nki()
        raise AttributeError(f"module 'tdsl.{self.name}' has no attribute {name!r}")

    def choose(self, what, multiply_adds, type_name, resident, no_form=None):
        """"c" or "nki" for `what` of a type; no_form: why it has no form for the device, if it has none. Raises DeviceError where one is required."""
        backend = BACKENDS[self.backend]
        if no_form is None and type_name not in _NKI_TYPES:
            no_form = type_name
        if backend == "c" or no_form is not None:
            if self.required() or backend == "nki":
                raise DeviceError(f"{what} ({no_form or type_name}; backend {self.backend!r}) has no NKI form, and one is required")
            return "c"
        if backend == "nki" or self.required():
            return "nki"
        return "nki" if (self.simulated() or has_nki()) and multiply_adds() >= self.threshold(resident) else "c"

    def on_device(self, key, make, name, arrays, **dims):
        """Calls a kernel that is compiled for the device and these extents and run by tdsl.nki; "auto" may fall back to C, with its warning."""
        from . import nki
        key = (self.name, *key, self.backend, self.required(), self.simulated())
        with _lock:
            program = _programs.get(key)
            if program is None:
                folder = os.path.join(_files().name, str(len(_programs)))
                made = make()
                nki.compile(made, folder, **dims)
                backend = "emulator" if self.simulated() else "nki" if self.backend == "nki" else "auto"
                program = _programs[key] = nki.load(folder, program=made, backend=backend, require_nki=self.required(), min_nki_flops=0)
        return program[name](*arrays)


# Tensors

def kind_of(tensors):
    """"torch" where one of them is torch's, else None."""
    for x in tensors:
        if isinstance(x, ShardedTensor):
            x = x.chunks[0]
        if (x.kind if isinstance(x, DeviceTensor) else type(x).__module__.partition(".")[0]) == "torch":
            return "torch"
    return None


def array_of(x, k):
    """An ndarray of a tensor, copied where it is not in C order: bf16 as ml_dtypes has it. Derivatives would be lost."""
    import numpy as np
    if isinstance(x, DeviceTensor):
        return x.numpy()
    if isinstance(x, ShardedTensor):
        raise DtypeError(f"tensor {k!r} is in chunks, which einsum takes; `gather` puts it together", k)
    if type(x).__module__.partition(".")[0] == "torch":
        from .torch import has_derivative, to_numpy
        if has_derivative(x):
            raise DtypeError(f"tensor {k!r} is followed for derivatives, which are not computed here: call it in torch.no_grad(), .detach() it, or use tdsl.torch.einsum", k)
        return to_numpy(x.contiguous())
    return np.asarray(as_array(x, k), order="C")


def back(array, kind):
    """A tensor of a kind that shares the array's memory."""
    import numpy as np
    if kind == "torch":
        from .torch import from_numpy
        return from_numpy(np.asarray(array))
    return array


def to_xla(tensor):
    """The tensor in device memory; what is there already is returned as it is. RuntimeError without a device."""
    if isinstance(tensor, DeviceTensor):
        return tensor
    try:
        return DeviceTensor(array_of(tensor, 0), kind_of([tensor]))
    except DeviceError as error:
        raise DeviceError(f"to_xla: the NKI runtime cannot be used here: {error}") from None


def from_xla(tensor):
    """The tensor in the host's memory, of the kind that to_xla was given; others are returned as they are."""
    return back(tensor.numpy(), tensor.kind) if isinstance(tensor, DeviceTensor) else tensor


def flat(x):
    """The elements of a tensor, one after the other."""
    return x if len(x.shape) == 1 else x.numpy().reshape(-1) if isinstance(x, DeviceTensor) else x.reshape(-1)


def shaped(result, x):
    """A result in the shape of a tensor."""
    return result if len(x.shape) == 1 else result.reshape(x.shape)


# Kernels

@functools.lru_cache(maxsize=1024)
def program_of(text):
    """The program of a text of our own, whose warnings tell a caller nothing."""
    from ._program import Program
    return Program(["-w", "-"], text)


_SCALARS = {"f16": "f32", "bf16": "f32"}
_REALS = {"c64": "f32", "c128": "f64"}
_WORDS = re.compile(r"\b[TSW]\b")


@functools.lru_cache(maxsize=1024)
def text_for(text, type_name):
    """A kernel's text for a type: T is the type, S that of numbers beside it, W the real one."""
    words = {"T": type_name, "S": _SCALARS.get(type_name, type_name), "W": _REALS.get(type_name, type_name)}
    return _WORDS.sub(lambda m: words[m[0]], text)


def run(library, name, text, tensors, numbers=(), work=0, types=None, no_form=None):
    """Calls the kernel `name` of a text on tensors by their names, and numbers: by the library's backend, and with a result of the tensors' kind.

    types: the element types that there are, all where it is None; work: a function of the extents by name that gives multiply-adds; no_form: why there is no
    form for the device."""
    import numpy as np
    kind = kind_of(tensors.values())
    arrays = [array_of(x, argument) for argument, x in tensors.items()]
    dtype = arrays[0].dtype
    if any(a.dtype != dtype for a in arrays):
        dtype = np.result_type(*(a.dtype for a in arrays))
        arrays = [a.astype(dtype, copy=False) for a in arrays]
    type_name = name_of(dtype)
    if type_name is None or (types is not None and type_name not in types):
        raise DtypeError(f"{name}: {dtype}, not one of {', '.join(types)}" if types else f"{name}: {dtype} is no element type of kernels", next(iter(tensors)))
    text = text_for(text, type_name)
    resident = [isinstance(x, DeviceTensor) for x in tensors.values()]
    kernel = program_of(text)[name]
    dims = {}
    for arg, a in zip(kernel.args, arrays):
        dims.update((n, extent) for n, extent in zip(arg.shape, a.shape) if isinstance(n, str))
    chosen = library.choose(name, lambda: work(dims) if work else 0, type_name, any(resident), no_form)
    if chosen == "nki":
        result = library.on_device((text, tuple(dims.items())), lambda: program_of(text), name, [*arrays, *numbers], **dims)
    else:
        result = kernel(*arrays, *numbers)
    if resident and all(resident):
        return DeviceTensor(np.asarray(result), kind)
    return back(result, kind)

