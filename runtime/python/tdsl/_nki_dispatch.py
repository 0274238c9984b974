# SPDX-License-Identifier: Apache-2.0
"""Chooses for each call of a kernel between its NKI forms and its C form, as libtdsl does, and runs the programs of a form in order."""
from __future__ import annotations

import os
import threading

from . import _nki_devices as devices
from ._errors import ArgumentError, Error, ShapeError, SlowWarning, warn
from ._extents import computed_in, sizes
from ._locks import Lock


class DeviceError(Error, RuntimeError):
    """The device cannot be used, or failed, and nothing else may run instead."""


class FallbackWarning(UserWarning):
    """A call that was meant for the device runs elsewhere; told once for each kernel and cause."""


class Report:
    """What ran, or would run, and why: kernel; backend: "c", "nki" or "emulator"; device: its name; reason: "forced", "required",
    "resident", "no_nki_form", "other_extents", "no_c_form", "above_threshold", "below_threshold", "unavailable", "device_failed";
    cause: of the last two, the device's words; multiply_adds: of the call, or None; min_nki_flops: the threshold they, counted as 2
    each, were held to."""

    def __init__(self, kernel: str, backend: str, reason: str, cause: str = "", multiply_adds: int | None = None,
                 min_nki_flops: float | None = None, device: str = "") -> None:
        self.kernel, self.backend, self.reason, self.cause = kernel, backend, reason, cause
        self.multiply_adds, self.min_nki_flops, self.device = multiply_adds, min_nki_flops, device

    def __str__(self):
        held = f"its {2 * (self.multiply_adds or 0)} flops (2 per multiply-add) {{}} the threshold of {self.min_nki_flops or 0:.0f}"
        why = {"forced": "the backend setting says so", "required": "TDSL_REQUIRE_NKI is set", "no_c_form": "it has no C form",
               "resident": "an argument is on the device already", "no_nki_form": "it has no NKI form",
               "other_extents": "its NKI forms were built for other extents", "above_threshold": held.format("reach"),
               "below_threshold": held.format("are below"), "unavailable": f"the device cannot be used: {self.cause}",
               "device_failed": f"the device failed: {self.cause}"}[self.reason]
        what = {"c": "C", "nki": f"the device ({self.device})", "emulator": "the NKI emulator"}[self.backend]
        return f"kernel {self.kernel!r}: {what}, because {why}"

    def __repr__(self):
        return f"<{self}>"


def _flag(given, name):
    if given is not None:
        return bool(given)
    text = os.environ.get(name) or "0"
    if text not in ("0", "1"):
        raise ArgumentError(f"{name}: {text!r} is neither 0 nor 1", name)
    return text == "1"


class Settings:
    """What a caller of `load` says, else the environment, as libtdsl reads it."""

    def __init__(self, backend, require_nki, min_nki_flops, use_simulator):
        self.backend = backend or os.environ.get("TDSL_BACKEND") or "auto"
        if self.backend not in ("auto", "c", "nki", "emulator"):
            raise ArgumentError(f"TDSL_BACKEND: {self.backend!r} is no backend; use auto, c, nki or emulator", "backend")
        self.require = _flag(require_nki, "TDSL_REQUIRE_NKI")
        if self.require and self.backend == "c":
            raise ArgumentError("TDSL_REQUIRE_NKI: contradicts TDSL_BACKEND=c, which never uses NKI", "require_nki")
        self.emulate = self.backend == "emulator" or _flag(use_simulator, "TDSL_USE_SIMULATOR")
        text = os.environ.get("TDSL_MIN_NKI_FLOPS") or "2e9" if min_nki_flops is None else min_nki_flops
        try:
            self.min_flops = float(text)
        except ValueError:
            raise ArgumentError(f"TDSL_MIN_NKI_FLOPS: {text!r} is no number of floating-point operations, such as 2e9", "min_nki_flops") from None


class Devices:
    """The devices of a process, made when first asked for; what could not be had is not tried again."""

    def __init__(self):
        self._lock, self._made = Lock(), {}

    def get(self, key, make):
        with self._lock:
            if key not in self._made:
                try:
                    self._made[key] = make()
                except devices.Unavailable as error:
                    self._made[key] = error
                except Exception as error:  # noqa: BLE001
                    self._made[key] = devices.Unavailable(f"{key[0]}: {error}")
            made = self._made[key]
        if isinstance(made, devices.Unavailable):
            raise made
        return made

    def framework(self, lnc):
        return self.get(("framework", lnc), lambda: devices.framework(lnc))

    def emulator(self):
        return self.get(("emulator",), devices.Emulator)

    def owner(self, x):
        """The device whose memory x is in, or None."""
        kind = {"torch": devices.Torch, "jax": devices.Jax, "jaxlib": devices.Jax}.get(type(x).__module__.split(".")[0])
        if kind is None or not devices.neuron_devices():
            return None
        try:
            device = self.framework(1)
            device = device if type(device) is kind else self.get((kind.__name__, 1), kind)
        except devices.Unavailable:
            return None
        return device if device.owns(x) else None


found = Devices()


def has_nki() -> bool:
    """Can kernels run on a Neuron device here?"""
    try:
        found.framework(1)
    except devices.Unavailable:
        return False
    return True


def piece(device, pieces, first, size):
    """Consecutive elements of a tensor, of which there are `pieces`: (first, size, tensor)."""
    for at, n, tensor in pieces:
        if (at, n) == (first, size):
            return tensor
    cut, end = [], first
    for at, n, tensor in sorted(pieces, key=lambda p: p[0]):
        if at <= end < min(at + n, first + size):
            cut.append(device.flat(tensor)[end - at:min(n, first + size - at)])
            end = at + n
    if end < first + size:
        raise RuntimeError(f"elements {end} to {first + size} of a tensor are read, and no program wrote them")
    return cut[0] if len(cut) == 1 else device.joined(cut)


def chain(device, form, inputs):
    """Runs the programs of a form in order. inputs, and what is returned: for each argument a tensor of the device, or None."""
    pieces = {row.name: [] for row in [*form.results, *form.temporaries] if row is not None}
    pieces.update((row.name, [(0, row.size, t)]) for row, t in zip(form.inputs, inputs) if row is not None)
    for program in form.programs:
        given = [device.shaped(piece(device, pieces[o.tensor], o.first, o.size), o.shape) for o in program.inputs]
        made = device.run(program, given, form.lnc)
        if len(made) != len(program.outputs):
            raise RuntimeError(f"{program.function} gave {len(made)} results, not {len(program.outputs)}")
        for o, tensor in zip(program.outputs, made):
            pieces[o.tensor].append((o.first, o.size, tensor))
    return [None if row is None else device.shaped(piece(device, pieces[row.name], 0, row.size), row.shape) for row in form.results]


_INTEGERS = 1 << 22  # a device computes whole numbers in f32, and programs are made for arguments between -2^22 and 2^22


def put(device, row, a):
    """An array as the device has it."""
    import numpy as np
    if a.dtype.kind in "iu" and a.size and (int(a.min()) < -_INTEGERS or int(a.max()) > _INTEGERS):
        raise OverflowError(f"{row.name}: {max(int(a.max()), -int(a.min()))} is beyond 2^22, up to which the device computes with whole numbers")
    part = np.int32 if a.dtype.kind == "i" else np.float32
    return device.put((a.reshape(-1).view(part) if row.pairs else a).reshape(row.shape))


def get(device, row, tensor, dtype, shape):
    import numpy as np
    a = np.ascontiguousarray(device.get(tensor))
    if row.words:
        return a.reshape(-1, 2).astype(dtype).sum(axis=1).reshape(shape)
    return (a.reshape(-1).view(dtype) if row.pairs or a.dtype != dtype else a).reshape(shape)


class Dispatch:
    """A kernel in NKI forms and perhaps in C: chooses at each call, as libtdsl does."""

    def __init__(self, head, forms, c_source, settings):
        self.name, _, self.dims, self.args = head
        self.computed = computed_in(self.args)
        self.forms, self._c, self._settings, self._told = forms, c_source, settings, set()
        self._last = threading.local()

    @property
    def last(self):
        """The report of this thread's last call, or None."""
        return getattr(self._last, "report", None)

    def find(self, extents):
        """The form for these values of the open dims, the latest of several, or None."""
        size = sizes(self, extents)
        shapes = [tuple(size.get(e, e) for e in a.shape) for a in self.args]
        return next((f for f in reversed(self.forms) if [a.shape for a in f.args] == shapes), None)

    def no_form(self, extents):
        """The error of a call that no form serves."""
        size = sizes(self, extents)
        shapes = [tuple(size.get(e, e) for e in a.shape) for a in self.args]
        differ = lambda f: [a.name for a, s in zip(f.args, shapes) if a.shape != s]
        where = min((differ(f) for f in self.forms), key=len, default=[None])[0]
        called = ", ".join(f"{name}={n}" for name, n in size.items())
        if not self.forms:
            return DeviceError(f"{self.name} has no NKI form")
        return ShapeError(f"{self.name}: called with {called}; its forms are for {' and for '.join(f.describe() for f in self.forms)}", where)

    def _report(self, backend, reason, form, cause="", device=""):
        return Report(self.name, backend, reason, cause, form.multiply_adds if form else None, self._settings.min_flops, device)

    def choose(self, extents, tell=True):
        """(device or None for C, form, Report); a fallback is told of if it is to happen."""
        s, has_c = self._settings, self._c is not None
        if s.backend == "c":
            if not has_c:
                raise DeviceError(f"{self.name}: the backend is c, and it has no C form: tdsl.nki.load(folder, program=FILE) gives one")
            return None, None, self._report("c", "forced", self.find(extents))
        strict = s.backend != "auto" or s.require
        form = self.find(extents)
        if form is None:
            if strict or not has_c:
                raise self.no_form(extents)
            return None, None, self._report("c", "other_extents" if self.forms else "no_nki_form", None)
        reason = "forced" if s.backend != "auto" else "required" if s.require else "no_c_form" if not has_c else \
            "above_threshold" if 2 * form.multiply_adds >= s.min_flops else "below_threshold"
        if reason == "below_threshold":
            return None, form, self._report("c", reason, form)
        try:
            device = found.emulator() if s.emulate else found.framework(form.lnc)
            return device, form, self._report("emulator" if s.emulate else "nki", reason, form, device=device.name)
        except devices.Unavailable as error:
            cause = str(error)
        if strict or (s.emulate and not has_c):
            raise DeviceError(f"{self.name}: {cause}")
        if has_c:
            if tell:
                self._tell(FallbackWarning, "unavailable", f"{self.name}: {cause}; the C form runs instead")
            return None, form, self._report("c", "unavailable", form, cause)
        try:
            device = found.emulator()
        except devices.Unavailable as error:
            raise DeviceError(f"{self.name}: {cause}; {error}") from None
        if tell:
            self._tell(SlowWarning, "emulated", f"{self.name}: {cause}; the emulator runs it, many thousand times slower than a device")
        return device, form, self._report("emulator", "unavailable", form, cause, device.name)

    def _tell(self, category, what, message):
        if what not in self._told:
            self._told.add(what)
            warn(message, category)

    def prepare(self, extents, threads):
        """A function of arrays in C order, one for each argument, for these open extents."""
        device, form, report = self.choose(extents)
        c_run = None

        def in_c(places):
            nonlocal c_run
            if c_run is None:
                kernel, size = self._c.kernels(threads)[self.name], dict(zip(self.dims, extents))
                c_run = kernel.prepare(tuple(size[name] for name in kernel.dims), threads)
            c_run(places)

        def run(places, fresh=False):
            del fresh
            self._last.report = report
            if device is None:
                return in_c(places)
            try:
                inputs = [None if row is None else put(device, row, a) for row, a in zip(form.inputs, places)]
                made = [None if t is None else get(device, row, t, a.dtype, a.shape)
                        for row, t, a in zip(form.results, chain(device, form, inputs), places)]
            except Exception as error:  # noqa: BLE001  (whatever a framework raises)
                if self._c is None or self._settings.backend != "auto" or self._settings.require:
                    raise DeviceError(f"{self.name}: {device.name}: {error}") from error
                self._tell(FallbackWarning, type(error).__name__, f"{self.name}: {device.name}: {error}; the C form runs instead")
                self._last.report = self._report("c", "device_failed", form, str(error), device.name)
                return in_c(places)
            for a, new in zip(places, made):
                if new is not None:
                    a[...] = new
            return None
        return run

    def run_resident(self, device, extents, tensors):
        """Results for tensors on a device; nothing else can run them."""
        form = self.find(extents)
        if form is None:
            raise self.no_form(extents)
        if self._settings.backend in ("c", "emulator"):
            raise DeviceError(f"{self.name}: the backend is {self._settings.backend}, and an argument is on the device")
        self._last.report = self._report("nki", "resident", form, device=device.name)
        inputs = [None if row is None else t if device.owns(t) and tuple(t.shape) == row.shape else
                  device.shaped(t, row.shape) if device.owns(t) else put(device, row, t) for row, t in zip(form.inputs, tensors)]
        try:
            return form, chain(device, form, inputs)
        except Exception as error:  # noqa: BLE001
            raise DeviceError(f"{self.name}: {device.name}: {error}") from error
