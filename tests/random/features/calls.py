# SPDX-License-Identifier: Apache-2.0
"""Calls the compiled kernels of a shared library as the runtime does, each array and the workspace beside pages that nobody may touch."""
import ctypes
import multiprocessing
import os
import sys
import zlib

import numpy as np

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
sys.path[:0] = [os.path.join(ROOT, "runtime/python"), os.path.join(ROOT, "tests/support")]
from arrays import bfloat16_bits, bfloat16_values   # noqa: E402
from tdsl import _table                             # noqa: E402

SHAPE = -2                  # TDSL_E_SHAPE
NO_WORKSPACE = 2 ** 64 - 1  # SIZE_MAX: these sizes are refused
STORED = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "i32": np.int32, "i64": np.int64,
          "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16, "u32": np.uint32}
PAGE = 4096
READ_WRITE, PRIVATE_ANONYMOUS = 3, 0x22
SECONDS = 300
UNWRITTEN = 77.0            # in every result before a call


class Guarded:
    """Memory whose end (or beginning) is that of a page, with a page after and one before that end the process when they are touched."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

    def __init__(self, size, at_beginning):
        self.mapped = (-(-size // PAGE) + 2) * PAGE
        self.base = self.libc.mmap(None, self.mapped, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0)
        last = self.base + self.mapped - PAGE
        self.libc.mprotect(self.base, PAGE, 0)
        self.libc.mprotect(last, PAGE, 0)
        self.size, self.address = size, self.base + PAGE if at_beginning else last - size

    def read(self):
        return ctypes.string_at(self.address, self.size)

    def write(self, content):
        ctypes.memmove(self.address, content, self.size)

    def free(self):
        self.libc.munmap(self.base, self.mapped)


def encode(array, dtype):
    """As the element type stores it."""
    array = np.asarray(array)
    return np.ascontiguousarray((bfloat16_bits(array) if dtype == "bf16" else array.astype(STORED[dtype]))).reshape(array.shape)


def decode(content, dtype, shape):
    stored = np.frombuffer(content, np.uint16 if dtype == "bf16" else STORED[dtype]).reshape(shape)
    return bfloat16_values(stored) if dtype == "bf16" else stored.astype(float)


def difference(got, wanted):
    """Where two arrays differ first, or None."""
    if np.array_equal(got, wanted):
        return None
    where = tuple(int(axis) for axis in np.argwhere(got != wanted)[0])
    return f"{list(where)} is {got[where]}, right is {wanted[where]}; {int((got != wanted).sum())} of {got.size} are wrong"


class Call:
    """One call: what the kernel answers, and its arguments afterwards."""

    def __init__(self, library, kernel, sizes, arrays, threads):
        info = _table._Info.in_dll(library, f"{kernel.name}_info")
        values = kernel.parameters + kernel.results
        assert info.n_args == len(values), f"{kernel.name} has {info.n_args} arguments"
        names = [_table._Dim.from_address(info.dims + k * info.dim_size).name.decode() for k in range(info.n_dims)]
        dims = (ctypes.c_int64 * max(1, len(names)))(*[sizes[name] for name in names])
        at_beginning = threads == 2
        self.before = {value: encode(array, value.dtype).tobytes() for value, array in zip(values, arrays)}
        memory = {value: Guarded(len(content), at_beginning) for value, content in self.before.items()}
        for value, content in self.before.items():
            memory[value].write(content)
        need = _table._WORKSPACE(info.workspace_bytes_threads)(dims, threads)
        workspace = Guarded(0 if need == NO_WORKSPACE else need, at_beginning)
        workspace.write(b"\xff" * workspace.size)
        pointers = (ctypes.c_void_p * max(1, len(values)))(*[memory[value].address for value in values])
        call = _table._CALL(info.call_threads)
        self.status = call(dims, pointers, workspace.address, workspace.size, ctypes.byref(_table._Threads(threads, 0, None, None)))
        self.after = {value: block.read() for value, block in memory.items()}
        for block in [*memory.values(), workspace]:
            block.free()

    def changed(self, values):
        return [value for value in values if self.before[value] != self.after[value]]


def check_exact(call, kernel, number):
    """What is wrong with one call of integers, a sentence each."""
    refused = kernel.refused[number]
    if refused:
        if call.status == 0 and refused.certain:
            yield f"status 0, though {refused}"
        if call.status not in (0, SHAPE):
            yield f"status {call.status}, though {refused}"
        if call.status != 0 and call.changed(kernel.outputs):
            yield "it is refused, but results were written"
        return
    if call.status != 0:
        yield f"status {call.status}"
        return
    for value in call.changed([value for value in kernel.parameters if value not in kernel.updated]):
        yield f"input {value.name} was written"
    for value in kernel.outputs:
        wrong = difference(decode(call.after[value], value.dtype, value.arrays[number].shape), value.arrays[number])
        if wrong:
            yield value.name + wrong


def check_kernel(library, kernel):
    """(calls, faults): every set of sizes with one thread and more; then reals, which must give the same bits with any number of threads."""
    calls, faults = 0, []
    for number, sizes in enumerate(kernel.sets):
        integers = [value.given[number] for value in kernel.parameters]
        integers += [np.full(value.arrays[number].shape, UNWRITTEN) for value in kernel.results]
        for threads in (1, 2, 3) if kernel.is_large else (1, 2):
            call = Call(library, kernel, sizes, integers, threads)
            faults += [f"{sizes}, {threads} threads: {wrong}" for wrong in check_exact(call, kernel, number)]
            calls += 1
    number = 1
    if kernel.base.startswith("i") or kernel.refused[number]:
        return calls, faults
    reals = []
    for value in kernel.parameters + kernel.results:
        if value.dtype.startswith("i"):     # positions
            reals.append(value.given[number])
            continue
        reals.append(np.random.default_rng(zlib.crc32(value.name.encode())).standard_normal(value.arrays[number].shape))
    one = Call(library, kernel, kernel.sets[number], reals, 1)
    for threads in (2, 3):
        more = Call(library, kernel, kernel.sets[number], reals, threads)
        faults += [f"{kernel.sets[number]}: {value.name} has other bits with {threads} threads than with 1"
                   for value in kernel.outputs if one.after[value] != more.after[value]]
    return calls + 3, faults


def check_library(path, kernels):
    """(calls, faults by kernel), found by a child process for each kernel, so that one that crashes or hangs is named."""
    calls, faults = 0, {}
    for kernel in kernels:
        receiver, sender = multiprocessing.Pipe(duplex=False)
        child = multiprocessing.get_context("fork").Process(target=lambda k=kernel, s=sender: s.send(check_kernel(ctypes.CDLL(path), k)))
        child.start()
        sender.close()
        try:
            n, found = receiver.recv() if receiver.poll(SECONDS) else (0, [f"takes more than {SECONDS} s"])
        except EOFError:
            child.join()
            n, found = 0, [f"ends the process with {child.exitcode}"]
        child.kill()
        child.join()
        calls += n
        if found:
            faults[kernel] = found
    return calls, faults
