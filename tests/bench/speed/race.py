# SPDX-License-Identifier: Apache-2.0
"""Who is fastest: every contestant of a case called in turn, round after round, so that what else the machine does meets all alike; and the limits
of the machine, measured in the same process."""
import dataclasses
import statistics
import tempfile
import time

import numpy as np

from speed.native import DTYPES, Failed, Kernel

OURS = "tdsl"
COPY = "memcpy"                                 # no peer: what moving as many bytes takes
MOVING = ("transposes", "reductions", "elementwise")
SAMPLE = 3e-4                                   # seconds of a sample, at least
LONG = 3.0
SETS = [1 << k for k in range(14, 30, 2)]       # bytes, for bandwidth


@dataclasses.dataclass
class Times:
    least: float
    median: float
    samples: int


@dataclasses.dataclass
class Row:
    """What a case gave. Times by contestant; `wrong`: whose results are not what they should be, and how far off they are."""
    group: str
    name: str
    dtype: str
    flops: int
    read: int
    written: int
    times: dict
    wrong: dict
    share: float = 0.0                          # of a processor that the process had: well below 1, others were at work
    note: str = ""

    @property
    def best(self):
        """The fastest peer that computes what it should, or None."""
        peers = [name for name in self.times if name not in (OURS, COPY) and name not in self.wrong]
        return min(peers, key=lambda name: self.times[name].least, default=None)

    def ratio(self, peer, what="least"):
        """How many times faster ours is."""
        return getattr(self.times[peer], what) / getattr(self.times[OURS], what)


class Limits:
    """The best that this machine was seen to do: flop a second in registers by type, bytes a second from and to sets by size."""

    def __init__(self, native, seconds):
        self.native = native
        self.peaks = {wide: native.peak(wide, seconds) for wide in (False, True)}
        self.rates = {size: [native.bandwidth(writes, size, seconds / 8) for writes in (False, True)] for size in SETS}
        for larger, size in zip(SETS[::-1], SETS[-2::-1]):      # what a larger set gets, a smaller one could, had nothing disturbed it
            self.rates[size] = list(map(max, self.rates[size], self.rates[larger]))

    def peak(self, dtype):
        return self.peaks[dtype in ("f64", "c128")]

    def look_again(self, dtype):
        wide = dtype in ("f64", "c128")
        self.peaks[wide] = max(self.peaks[wide], self.native.peak(wide, 0))

    @staticmethod
    def size(case):
        """The largest set measured that is no larger than operands and result together."""
        return max([s for s in SETS if s <= case.read + case.written], default=SETS[0])

    def look_at_memory(self, case):
        size = self.size(case)
        self.rates[size] = [max(rate, self.native.bandwidth(writes, size, 0)) for writes, rate in zip((False, True), self.rates[size])]

    def roofline(self, row):
        """Least seconds: multiply-adds at the peak, or operands read and the result written once at the rates of their size, whichever is longer."""
        read, write = self.rates[self.size(row)]
        return max(row.flops / self.peak(row.dtype), row.read / read + row.written / write)


def contestants(case, operands, options, native, libraries, folder):
    """{name: (run, result)} and what is to be said of one that is not there; ours comes first."""
    c_libraries, python = libraries
    dtype = DTYPES[case.result or case.dtype]
    found = {}

    def add(name, prepare):
        out = np.full(case.out, -99 if dtype == np.int32 else np.nan, dtype)
        run = prepare(out)
        if run is not None:
            found[name] = run, lambda: out
    kernel = Kernel(case.source, options, folder, native, case.dims)
    others = {name: Kernel(source, options, folder, native, name=name) for name, source in case.beside.items()}    # of other names: those are loaded
    add(OURS, lambda out: kernel.run([*operands, out]))
    for name, other in others.items():
        add(name, lambda out, other=other: other.run([*operands, out]))
    for library in c_libraries if case.calls else []:
        def prepare(out, library=library):
            calls = case.calls(library, operands, out)
            return native.calls(calls) if all(calls) else None
        add(library.name, prepare)
    for name in case.extra(native, c_libraries, operands, np.empty(case.out, dtype)) if case.extra else []:
        add(name, lambda out, name=name: case.extra(native, c_libraries, operands, out)[name])
    for library in python:
        try:
            run, result = library.prepared(case.formula, operands)
            run(1)
            found[library.name] = run, result
        except NotImplementedError:
            pass
    if case.group in MOVING:
        found[COPY] = native.copy(max(1, (case.read + case.written) // 2)), lambda: None
    return found


def raced(runs, seconds, between):
    """({name: Times}, the processors that this process had meanwhile). Samples are as many calls as take SAMPLE seconds; the order turns by one each round. Three rounds at least, where each
    takes less than LONG seconds."""
    first = {name: run(1) for name, run in runs.items()}
    first = {name: t if t > LONG else run(1) for (name, run), t in zip(runs.items(), first.values())}
    least = 1 if sum(first.values()) > LONG else 3
    calls = {name: max(1, int(SAMPLE / max(t, 1e-9))) for name, t in first.items()}
    samples = {name: [] for name in runs}
    names, begin, used, rounds = list(runs), time.perf_counter(), time.process_time(), 0
    while rounds < least or (time.perf_counter() - begin < seconds and rounds < 1000):
        for name in names[rounds % len(names):] + names[:rounds % len(names)]:
            samples[name].append(runs[name](calls[name]))
        between()
        rounds += 1
    share = (time.process_time() - used) / (time.perf_counter() - begin)
    return {name: Times(min(s), statistics.median(s), len(s)) for name, s in samples.items()}, share


def distance(result, value, bound):
    """None where a result is right, else how far off it is."""
    result = np.asarray(result)
    if result.size != value.size:
        return f"{result.size} elements, not {value.size}"
    off = np.abs(result.reshape(value.shape) - value)
    if np.all(off <= bound):                    # a NaN is not
        return None
    return f"off by {np.nanmax(off):.3g} at most, {np.count_nonzero(~(off <= bound))} of {off.size} elements"


def measured(case, options, native, libraries, limits, seconds):
    """The row of a case."""
    operands = case.operands()
    row = Row(case.group, case.name, case.dtype, case.flops, case.read, case.written, {}, {})
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = contestants(case, operands, options, native, libraries, folder)
        except Failed as failure:
            row.wrong[OURS] = row.note = str(failure)
            return row
    limits.look_at_memory(case)
    try:
        row.times, row.share = raced({name: run for name, (run, _) in found.items()}, seconds, lambda: limits.look_again(case.dtype))
    except Failed as failure:
        row.wrong[OURS] = row.note = str(failure)
        return row
    numpy = libraries[1][0]
    value, bound = case.reference(operands) if case.reference else (np.asarray(case.formula(numpy, np, *operands)), 0)
    for name, (_, result) in found.items():
        off = distance(result(), value, bound) if name != COPY else None
        if off:
            row.wrong[name] = off
    return row
