# SPDX-License-Identifier: Apache-2.0
"""What runs device programs: a framework of a Neuron host (torch-neuronx, jax, or nki alone), or the emulator of NKI here.

Each has `put` (an array of NumPy to a tensor of its own), `get` (back), `run` (a device program, a list of tensors), and the few
functions of tensors that handing rows from one program to another takes.
"""
import glob
import importlib.util
import os
import shutil
import sys

from . import _tools
from ._arrays import is_bf16
from ._locks import Lock


class Unavailable(Exception):
    """A device that cannot be used here, and why."""


def neuron_devices():
    """The device files of a Neuron host; without one no framework is imported to be asked."""
    return glob.glob("/dev/neuron[0-9]*")


class Arrays:
    """Tensors that are arrays of NumPy."""
    name, moves = "numpy", True

    def owns(self, x):
        """Is x a tensor on this device?"""
        del x
        return False

    def put(self, a):
        return a

    def get(self, t):
        import numpy as np
        return np.asarray(t)

    def flat(self, t):
        return t.reshape(-1)

    def shaped(self, t, shape):
        return t.reshape(shape)

    def joined(self, flat):
        import numpy as np
        return np.concatenate(flat)

    def run(self, program, tensors, lnc):
        """The program's results, in order."""
        raise NotImplementedError


def emulator_folder():
    """Where the emulator's package is: of the variable, in this package or checkout, in an installed tree."""
    said = os.environ.get("TDSL_NKI_EMULATOR")
    places = [os.path.dirname(said)] if said else [
        os.path.join(_tools.HERE, "share", "tdsl", "nki_emulator"), os.path.join(_tools.HERE, "..", "..", "nki_emulator")]
    tdslc = shutil.which("tdslc")
    if tdslc is not None and not said:  # an installed tree
        places.append(os.path.join(os.path.dirname(os.path.realpath(tdslc)), "..", "share", "tdsl", "nki_emulator"))
    for place in places:
        folder = os.path.realpath(place)
        if os.path.isfile(os.path.join(folder, "__init__.py")):
            return folder
    raise Unavailable("where is the NKI emulator? TDSL_NKI_EMULATOR must name its run.py")


def _import_emulator():
    if "nki_emulator" in sys.modules:
        return
    folder = emulator_folder()
    spec = importlib.util.spec_from_file_location("nki_emulator", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder])
    module = importlib.util.module_from_spec(spec)
    sys.modules["nki_emulator"] = module
    spec.loader.exec_module(module)


class Emulator(Arrays):
    """The emulator, in this process, one program at a time. bf16 is its 16 bits there, a float of 8 bits its byte."""
    name = "the NKI emulator"
    _lock = Lock()  # of all: the emulator keeps the program that runs in a global

    def __init__(self):
        _import_emulator()

    def put(self, a):
        return a.view("u2") if is_bf16(a.dtype) else a.view("u1") if a.dtype.name.startswith("float8") else a

    def run(self, program, tensors, lnc):
        del lnc
        from nki_emulator.emulate import FileError, RuleError, UsageError, emulate
        from nki_emulator.manifest import read_manifest
        with open(program.file, encoding="utf-8") as stream:
            text = stream.read()
        try:
            with self._lock:
                manifest = read_manifest(program.manifest)
                return emulate(text, tensors, manifest, target=manifest.target or "trn2", path=program.file).outputs
        except (RuleError, UsageError, FileError) as error:
            raise RuntimeError(str(error)) from None


_loading = Lock()


def kernel_of(program):
    """The function that @nki.jit made: imported from its file, as the vendor's compiler reads its text there."""
    name = f"tdsl_kernel_{program.unique}"
    with _loading:
        if name not in sys.modules:
            program.check()
            spec = importlib.util.spec_from_file_location(name, program.file)
            module = importlib.util.module_from_spec(spec)
            sys.modules[name] = module
            try:
                spec.loader.exec_module(module)
            except BaseException:
                del sys.modules[name]
                raise
        return getattr(sys.modules[name], program.function)


# Of tensors that lie on a device, where they are as a kernel takes them.
_TYPES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "int8": "i8", "uint8": "u8", "int16": "i16", "uint16": "u16",
          "float8_e4m3": "f8e4m3", "float8_e5m2": "f8e5m2"}


def _tuple(results):
    return tuple(results) if isinstance(results, (tuple, list)) else (results,)


def _ml_bf16(a):
    """bf16 of ml_dtypes, which the frameworks know, from V2 too."""
    if not is_bf16(a.dtype) or a.dtype.name == "bfloat16":
        return a
    import ml_dtypes
    return a.view(ml_dtypes.bfloat16)


def launched(program, lnc):
    """The kernel, with a grid where two cores run it."""
    kernel = kernel_of(program)
    return kernel[lnc] if lnc > 1 else kernel


class Nki(Arrays):
    """No framework: nki alone compiles and runs a kernel that is called with arrays of NumPy."""
    name = "nki"

    def __init__(self):
        import nki
        if not callable(getattr(nki, "jit", None)):
            raise ImportError("the nki that is installed has no jit")

    def put(self, a):
        return _ml_bf16(a)

    def run(self, program, tensors, lnc):
        try:
            return _tuple(launched(program, lnc)(*tensors))
        except SystemExit as error:
            raise RuntimeError(f"nki gave up: {error}") from None


class Torch(Arrays):
    """torch-neuronx: each device program is a custom op of torch, tdsl::..., so that torch.compile takes calls as they are. Before
    SDK 2.33, which has no nki_op, a kernel is called directly, on the device of torch-xla."""
    name = "torch-neuronx"

    def __init__(self):
        import torch
        import torch_neuronx
        self.torch, self.neuronx, self._ops = torch, torch_neuronx, {}
        if hasattr(torch_neuronx, "nki_op"):
            self.device = torch.device("neuron")
        else:
            from torch_xla.core import xla_model
            self.device = xla_model.xla_device()
        torch.zeros(1).to(self.device)

    def owns(self, x):
        return isinstance(x, self.torch.Tensor) and x.device.type == self.device.type

    def put(self, a):
        bf16 = is_bf16(a.dtype)
        a = a if a.flags.writeable else a.copy()  # torch warns of others
        tensor = self.torch.from_numpy(a.view("i2") if bf16 else a)
        return (tensor.view(self.torch.bfloat16) if bf16 else tensor).to(self.device)

    def get(self, t):
        t = t.cpu()
        return t.view(self.torch.int16).numpy() if t.dtype is self.torch.bfloat16 else t.numpy()

    def joined(self, flat):
        return self.torch.cat(flat)

    def update(self, t, new):
        t.copy_(new)

    def type_of(self, t):
        return _TYPES.get(str(t.dtype).removeprefix("torch."), str(t.dtype))

    def _op(self, program, lnc):
        import inspect
        kernel = kernel_of(program)
        if not hasattr(self.neuronx, "nki_op"):
            return launched(program, lnc)
        wrapped, tensor = self.neuronx.wrap_nki(kernel)[lnc], self.torch.Tensor

        def call(*tensors):
            return wrapped(*tensors)
        names = [f"x{k}" for k in range(len(program.inputs))]  # an op's schema is read off the annotations
        returns = tensor if len(program.outputs) == 1 else tuple[(tensor,) * len(program.outputs)]
        call.__annotations__ = {**dict.fromkeys(names, tensor), "return": returns}
        call.__signature__ = inspect.Signature([inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=tensor) for n in names],
                                               return_annotation=returns)
        call.__name__ = call.__qualname__ = program.unique
        return self.neuronx.nki_op(f"tdsl::{call.__name__}", mutates_args={})(call)

    def run(self, program, tensors, lnc):
        with _loading:
            if program.unique not in self._ops:
                self._ops[program.unique] = self._op(program, lnc)
        return _tuple(self._ops[program.unique](*tensors))


class Jax(Arrays):
    """jax with the Neuron plugin: nki.jit makes a custom call of a kernel that is called with arrays of jax."""
    name = "jax"

    def __init__(self):
        import jax
        self.jax, self.device = jax, jax.devices("neuron")[0]

    def owns(self, x):
        return isinstance(x, self.jax.Array) and getattr(next(iter(x.devices())), "platform", "") == "neuron"

    def put(self, a):
        return self.jax.device_put(_ml_bf16(a), self.device)

    def joined(self, flat):
        return self.jax.numpy.concatenate(flat)

    def type_of(self, t):
        return _TYPES.get(str(t.dtype), str(t.dtype))

    def run(self, program, tensors, lnc):
        return _tuple(launched(program, lnc)(*tensors))


def framework(lnc):
    """The framework of this host: torch-neuronx, jax, nki; what is imported already first. Raises Unavailable, which says why not."""
    if not neuron_devices():
        raise Unavailable("this host has no Neuron device (/dev/neuron*)")
    if os.environ.setdefault("NEURON_LOGICAL_NC_CONFIG", str(lnc)) != str(lnc):
        raise Unavailable(f"NEURON_LOGICAL_NC_CONFIG is {os.environ['NEURON_LOGICAL_NC_CONFIG']}; these programs are for {lnc}")
    kinds = [("torch_neuronx", Torch), ("jax", Jax), ("nki", Nki)]
    why = []
    for module, kind in sorted(kinds, key=lambda k: k[0] not in sys.modules):
        try:
            return kind()
        except Exception as error:  # noqa: BLE001  (a framework without its device raises what it likes)
            why.append(f"{module}: {error}")
    raise Unavailable("; ".join(why))

