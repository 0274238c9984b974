# SPDX-License-Identifier: Apache-2.0
"""Emulate one kernel: check its text, run it, check what only a finished run shows.

`emulate` takes the text and the arrays and returns a Result with the outputs, the call trace,
memory peaks and the cost report; any broken rule is a RuleError with rule, op, line and file.
The text is parsed and checked first (subset.py) and then run by Python itself with no builtin
but `range` and no module but the emulated `nki`; the source never needs to be importable.
"""

import warnings

import numpy as np

from . import dtype as dtypes
from .api import Kernel, installed
from .capacity import check_capacity
from .cost import DESCRIPTORS, cost_report, copy_beyond
from .errors import FileError, RuleError, UsageError, broken
from .machine import machine_named
from .manifest import Argument, Manifest
from .memory import View, unwritten
from .session import Session
from .guard import guarded_tree, guards
from .subset import check_module
from .trace import normal_form

_MODULES = ("nki", "nki.isa", "nki.language", "numpy")


class Result:
    """What a run produced. `outputs` are arrays in their outside form (see dtype.py); where two
    cores run it, records, memory and cost are those of the first, `programs` has the records of
    both."""

    def __init__(self, sessions, kernel, views, memory, cost, text):
        session = sessions[0]
        self.kernel, self.machine, self.text = kernel, session.machine, text
        self.outputs = [dtypes.to_outside(v.values, v.dtype) for v in views]
        self.output_types = [v.dtype for v in views]
        self.records, self.programs = session.records, [s.records for s in sessions]
        self.warnings = [w for s in sessions for w in s.warnings]
        self.result_serials = [v.tensor.serial for v in views]
        self.memory, self.cost = memory, cost

    def normal_form(self):
        return normal_form(self.records, self.result_serials)

    def report(self):
        """Everything but arrays and trace, as plain data for JSON."""
        return {"kernel": self.kernel, "cost": self.cost, "memory": self.memory,
                "warnings": self.warnings,
                "outputs": [{"shape": list(o.shape), "dtype": t.name}
                            for o, t in zip(self.outputs, self.output_types)]}


def _import(name, globals_=None, locals_=None, fromlist=(), level=0):
    if name not in _MODULES or level != 0:
        broken("P12", f"import of {name}")
    return __import__(name, globals_, locals_, fromlist, level)


def _line_in(error, path):
    """The kernel's line an exception passed through, innermost."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _load(checked, path):
    """Run the module's top level; the result is its namespace."""
    space = {"__name__": "kernel", "__builtins__": {
        "range": range, "float": float, "__import__": _import, "AssertionError": AssertionError, **guards()}}
    with installed(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(guarded_tree(checked.tree), path, "exec"), space)  # checked: subset.py
    return space


def _guarded(path, action):
    """Run kernel code; whatever goes wrong in it becomes a RuleError with its line."""
    try:
        return action()
    except RuleError as error:
        raise error.locate(None, _line_in(error, path), path)
    except AssertionError as error:
        rule, text = "H3", f"the kernel's assertion failed: {error}"
        line = _line_in(error, path)
    except SyntaxError as error:
        rule, text, line = "P2", str(error.msg), error.lineno
    except RecursionError:
        rule, text, line = "P1", "nested too deeply", None
    except UnboundLocalError as error:
        rule, text, line = "P13", str(error), _line_in(error, path)
    except (TypeError, ValueError, AttributeError, IndexError, NameError, KeyError,
            OverflowError, MemoryError, ZeroDivisionError) as error:
        rule = "A1" if isinstance(error, AttributeError) else "A4"
        text, line = f"{type(error).__name__}: {error}", _line_in(error, path)
        if line is None:
            raise                      # our own fault, not the kernel's
    broken(rule, text, line=line, path=path)


def _returned(session, value, manifest):
    """G15, H3 and H5: what came back is what was promised, whole, written, and once. Of two cores
    both return the same; all is written when the second has run."""
    views = list(value) if isinstance(value, tuple) else [value]
    for view in views:
        if not isinstance(view, View) or view.tensor.space != "shared_hbm":
            broken("G15", "a kernel returns tensors of nl.shared_hbm")
        if not view.whole:
            broken("G15", f"{view} is part of an output; return the whole tensor")
        missing = unwritten(view) if session.program + 1 == session.programs else None
        if missing:
            broken("G15", missing, op="return", line=view.tensor.line)
    serials = [v.tensor.serial for v in views]
    if len(set(serials)) != len(serials):
        broken("G15", "an output is returned twice")
    for tensor in session.tensors:
        if tensor.space == "shared_hbm" and tensor.role == "local" and \
                tensor.serial not in serials:
            broken("G15", f"{tensor} is not returned; scratch is nl.private_hbm",
                   line=tensor.line)
    if manifest.outputs is not None:
        if len(views) != len(manifest.outputs):
            broken("H3", f"{len(views)} results, the manifest has {len(manifest.outputs)}")
        for view, wanted in zip(views, manifest.outputs):
            if view.shape != wanted.shape or view.dtype is not wanted.dtype:
                broken("H3", f"result {view.dtype.name} {list(view.shape)}, the manifest has "
                             f"{wanted}", line=view.tensor.line)
            if view.tensor.stored_again and not manifest.updates(wanted):
                again = session.records[view.tensor.stored_again_at]
                broken("H5", f"{view} is stored again, and updates no argument",
                       op=f"nisa.{again['op']}", line=again["line"])
    return views


def check_arrays(manifest, arrays):
    """The arrays against the manifest's inputs; returns held values."""
    if len(arrays) != len(manifest.inputs):
        raise UsageError(f"{len(arrays)} input arrays for {len(manifest.inputs)} parameters")
    held = []
    for array, wanted in zip(arrays, manifest.inputs):
        array = np.asarray(array)
        if array.shape != wanted.shape:
            raise UsageError(f"'{wanted.name}' has shape {list(array.shape)}, the manifest has "
                             f"{list(wanted.shape)}")
        if array.dtype != wanted.dtype.outside:
            raise UsageError(f"'{wanted.name}' is {array.dtype}, {wanted.dtype.name} travels "
                             f"as {wanted.dtype.outside}")
        held.append(dtypes.from_outside(array, wanted.dtype))
    return held


def manifest_of_arrays(function, parameters, arrays, types=None):
    """A manifest made of the arrays themselves; `types` maps parameters to type names."""
    types = types or {}
    if len(arrays) != len(parameters):
        raise UsageError(f"{len(arrays)} input arrays for parameters {', '.join(parameters)}")
    for name in types:
        if name not in parameters:
            raise UsageError(f"no parameter is named '{name}'")
    rows = []
    for name, array in zip(parameters, arrays):
        found = dtypes.TYPES.get(types[name]) if name in types else dtypes.of_numpy(array)
        if found is None:
            raise UsageError(f"'{name}': no device type for {types.get(name, array.dtype)}")
        rows.append(Argument(name, "input", found, np.shape(array)))
    return Manifest(function, rows)


def emulate(text, arrays, manifest=None, function=None, target="trn2", path="<kernel>",
            types=None, max_instructions=20000, ranges="error", lnc=None):
    """Check and run a kernel's text on arrays in their outside form; see the module's text.
    `lnc`: cores that run it, where no manifest says so."""
    machine = machine_named(target)
    if machine is None:
        raise UsageError(f"target '{target}' is not known")
    checked = check_module(text, path)
    name = checked.kernel.name
    wanted = manifest.function if manifest is not None else function
    if wanted is not None and wanted != name:
        raise UsageError(f"{path} has the kernel '{name}', not '{wanted}'")
    if manifest is None:
        manifest = manifest_of_arrays(name, checked.parameters, arrays, types)
    if [a.name for a in manifest.inputs] != checked.parameters:
        broken("H3", f"parameters {checked.parameters}, the manifest has "
                     f"{[a.name for a in manifest.inputs]}", line=checked.kernel.lineno,
               path=path)
    held = check_arrays(manifest, arrays)
    cores = manifest.lnc if lnc is None else lnc
    kernel = _guarded(path, lambda: _load(checked, path))[name]
    if not isinstance(kernel, Kernel):
        broken("P12", "the kernel is not what @nki.jit made", path=path)
    if cores > 1 and machine.gen < 3:
        broken("H6", f"programs of {machine.name} have one core", path=path)
    sessions = []
    for _ in range(cores):
        session = Session(machine, path, max_instructions, ranges,
                          sessions[0] if sessions else None, cores)
        sessions.append(session)
        with session:
            views = [session.add_tensor(a.shape, a.dtype, "hbm", a.name, checked.kernel.lineno,
                                        "input", v) for a, v in zip(manifest.inputs, held)]
            value = _guarded(path, lambda: kernel.function(*views))
            end = checked.kernel.body[-1].lineno
            try:
                results = _returned(session, value, manifest)
            except RuleError as error:
                raise error.locate("return", end, path)
    memory = [check_capacity(s) for s in sessions][0]
    # Compulsory: what is read of each input and written of each result, once.
    reads = {t.name for s in sessions for t in s.tensors if t.role == "input" and t.read_count}
    compulsory = sum(v.tensor.row_bytes * v.tensor.shape[0] for v in views if
                     v.tensor.name in reads) + \
        sum(v.tensor.row_bytes * v.tensor.shape[0] for v in results)
    costs = [cost_report(s.records, machine, compulsory) for s in sessions]
    cost = costs[0]
    for session, found in zip(sessions, costs):
        most = found["dma"]["descriptors"]
        if most > DESCRIPTORS:
            broken("D11", f"{most} DMA descriptors, limit {DESCRIPTORS}", op="nisa.dma_copy",
                   line=copy_beyond(session.records, DESCRIPTORS)["line"], path=path)
    if cores > 1:
        cost["predicted_us_by_core"] = [c["predicted_us"] for c in costs]
        cost["predicted_us"] = max(cost["predicted_us_by_core"])
    for key, found in (("instructions", cost["instructions"]), ("matmul_macs", cost["macs"])):
        if manifest.counts.get(key, found) != found:
            broken("H3", f"{found} {key}, the manifest has {manifest.counts[key]}",
                   line=checked.kernel.lineno, path=path)
    return Result(sessions, name, results, memory, cost, text)


__all__ = ["emulate", "Result", "FileError", "UsageError", "RuleError"]
