# SPDX-License-Identifier: Apache-2.0
"""One run of one kernel: its machine, tensors, instructions and complaints.

The text of a kernel calls `nisa.dma_copy(...)` with no handle on anything, so the run in
progress is found through `current()`; there is at most one per process, entered with `with`.
"""

import math

import numpy as np

from .errors import RuleError, broken
from .memory import HBM_SPACES, Tensor, full_view

_active = []
HBM_LIMIT = 2 ** 31             # bytes a kernel may allocate in HBM while being emulated
STEPS_PER_INSTRUCTION = 50      # loop iterations a kernel may make for each legal instruction


class Session:
    """State of a run. `records` is the call trace (see trace.py), in program order."""

    def __init__(self, machine, path="<kernel>", max_instructions=20000, ranges="error",
                 first=None, programs=1):
        """`first` is the session of the other core, where this is the second of two."""
        self.machine, self.path = machine, path
        self.program, self.programs = 0 if first is None else 1, programs
        self.first, self.shared = first, []       # views of shared_hbm, in order of allocation
        self.max_instructions, self.ranges = max_instructions, ranges
        self.tensors, self.records, self.warnings = [], [], []
        self.names = {}
        self._groups_read = {}
        self.hbm_bytes, self.steps = 0, 0

    def __enter__(self):
        if _active:
            raise RuntimeError("a kernel is already being emulated in this process")
        _active.append(self)
        return self

    def __exit__(self, *_):
        _active.pop()

    def name_tensor(self, name, line):
        """G17; an unnamed tensor gets a name no text can spell."""
        if not name:
            return f"%{len(self.tensors)}"
        if not isinstance(name, str):
            broken("A4", "name is a string", op="nl.ndarray")
        if name in self.names:
            broken("G17", f"tensor name '{name}' is already in use (line {self.names[name]})",
                   op="nl.ndarray")
        self.names[name] = line
        return name

    def add_tensor(self, shape, dtype, space, name="", line=None, role="local", values=None):
        tensor = Tensor(self.name_tensor(name, line), shape, dtype, space, len(self.tensors),
                        line, role)
        self.tensors.append(tensor)
        tensor.program = self.program
        if space != "shared_hbm":
            return full_view(tensor, values)
        view = full_view(tensor, values, self._store_of_first(tensor))
        self.shared.append(view)
        return view

    def _store_of_first(self, tensor):
        """The memory of the shared tensor that the other core allocated at this place."""
        if self.first is None:
            return None
        at, made = len(self.shared), self.first.shared
        same = at < len(made) and made[at].tensor.shape == tensor.shape and \
            made[at].dtype is tensor.dtype
        if not same:
            broken("H6", f"{tensor} is not what the other core allocates here", op="nl.ndarray")
        return made[at].store

    def place_in_grid(self, op, axis):
        """H6 for a question that a kernel on one core has no answer to."""
        if axis != 0 or isinstance(axis, bool):
            broken("A4", f"axis is {axis!r}, the grid has axis 0 only", op=op)
        if self.programs < 2:
            broken("H6", "the kernel is launched for one core, without a grid", op=op)

    def allocate(self, shape, dtype, space, name, address, line):
        """nl.ndarray: every rule a declaration alone can break."""
        op = "nl.ndarray"
        if not isinstance(shape, (tuple, list)) or not shape:
            broken("G2" if isinstance(shape, (tuple, list)) else "A4",
                   "shape is a tuple of integers", op=op)
        for extent in shape:
            if isinstance(extent, bool) or not isinstance(extent, int):
                broken("A4", f"extent {extent!r} is not an integer", op=op)
            if extent < 1:
                broken("G11", f"extent {extent} in shape {tuple(shape)}", op=op)
        if space in HBM_SPACES:
            self.hbm_bytes += math.prod(shape) * dtype.size
            if self.hbm_bytes > HBM_LIMIT:
                broken("H4", f"{self.hbm_bytes} bytes of HBM, limit {HBM_LIMIT}", op=op)
        else:
            self._check_tile(shape, dtype, space, op)
        view = self.add_tensor(shape, dtype, space, name, line)
        if address is not None:
            view.tensor.address = self._check_address(view.tensor, address, op)
        return view

    def _check_tile(self, shape, dtype, space, op):
        if len(shape) < 2:
            broken("G2", "SBUF and PSUM tensors must have at least 2 dimensions "
                         f"(partition and free): {tuple(shape)}", op=op)
        if len(shape) > 5:
            broken("G9", f"{len(shape)} dimensions, limit 5", op=op)
        if shape[0] > 128:
            broken("G1", f"{shape[0]} partitions, limit 128", op=op)
        row = dtype.size
        for extent in shape[1:]:
            row *= extent
        limit = self.machine.sbuf_bytes
        if space == "psum":
            limit = self.machine.psum_banks * self.machine.bank_bytes
        if row > limit:
            broken("G4" if space == "psum" else "G3",
                   f"{row} bytes per partition, {space.upper()} of {self.machine.name} has "
                   f"{limit}", op=op)

    def _check_address(self, tensor, address, op):
        if not tensor.on_chip:
            broken("G13", "an address is for SBUF and PSUM tiles", op=op)
        if (not isinstance(address, (tuple, list)) or len(address) != 2 or
                any(isinstance(a, bool) or not isinstance(a, int) for a in address)):
            broken("G13", "address is (partition, byte offset)", op=op)
        partition, offset = address
        if partition not in (0, 32, 64, 96) or partition + tensor.shape[0] > 128:
            broken("G13", f"partition {partition} for {tensor.shape[0]} partitions", op=op)
        if partition != 0:
            broken("A1", "tiles placed at a partition other than 0 are not emulated", op=op)
        if offset < 0 or offset % 4 != 0:
            broken("G13", f"byte offset {offset} is not aligned to 4", op=op)
        if tensor.space == "psum" and offset % self.machine.bank_bytes != 0:
            broken("G13", f"byte offset {offset} is not the start of a PSUM bank", op=op)
        limit = (self.machine.sbuf_bytes if tensor.space == "sbuf" else
                 self.machine.psum_banks * self.machine.bank_bytes)
        if offset + tensor.row_bytes > limit:
            broken("G13", f"bytes {offset}..{offset + tensor.row_bytes} of {limit}", op=op)
        return (partition, offset)

    def begin_instruction(self, op):
        if len(self.records) >= self.max_instructions:
            broken("H2", f"more than {self.max_instructions} instructions", op=op)
        return len(self.records)

    def step(self, count=1):
        """One loop iteration, or work like `count` of them: a kernel that only loops ends too."""
        self.steps += count
        if self.steps > STEPS_PER_INSTRUCTION * self.max_instructions:
            broken("H2", f"more than {self.steps - count} loop iterations")

    def touch(self, view, at):
        """An instruction uses a tensor: its live range grows."""
        tensor = view.tensor
        if tensor.born is None:
            tensor.born = at
        tensor.died = at
        if tensor.stored_again and tensor.stored_again_at is None:
            tensor.stored_again_at = at

    def note_read(self, view):
        """An instruction read PSUM: its accumulation groups are closed (rule M9)."""
        if view.group is not None:
            self._groups_read.setdefault(view.tensor.serial, set()).update(
                int(g) for g in np.unique(view.group))

    def groups_read(self, tensor):
        return self._groups_read.get(tensor.serial, set())

    def range_complaint(self, text, op, line):
        """E14 is an error, or with ranges='warn' a note in the report."""
        if self.ranges == "error":
            broken("E14", text, op=op)
        self.warnings.append(str(_located("E14", text, op, line, self.path)))


def _located(rule, text, op, line, path):
    try:
        broken(rule, text, op=op, line=line, path=path)
    except RuleError as error:
        return error


def is_active():
    return bool(_active)


def current():
    if not _active:
        raise RuntimeError("no kernel is being emulated; use nki_emulator.emulate")
    return _active[-1]
