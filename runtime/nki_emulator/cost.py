# SPDX-License-Identifier: Apache-2.0
"""The cost model: engine cycles, DMA bytes and efficiency, predicted time, roofline.

Everything is computed from the call trace. Cycles per instruction are the vendor's published
averages for back-to-back instructions (N elements per partition, at least 64 cycles), and what
kernels timed on a trn1 show beside: 64 cycles of each instruction of the vector and scalar
engines, loads of weights that a float32 matmul waits for (machine.py). A copy is cut into descriptors, one for each run that is contiguous on both sides; a descriptor below
512 bytes is charged as 512. A transposing copy is charged twice for 2-byte types, and element
by element for wider ones. Three figures come out of it:

    bound      the largest of the engines' busy times and the DMA time: no schedule beats it
    predicted  a schedule: every engine runs its instructions in program order, an instruction
               waits for the columns it reads and overwrites (plus a semaphore delay across
               engines), a tile waits until SBUF bytes or PSUM banks are free; loads and stores
               are two queues, each with a bandwidth, that share a larger one. Never below the
               bound
    launch     what one launch costs on the device besides, not part of the other two

It is a model. Of sixteen kernels timed on a trn1 it is within a factor of 1.3 for fifteen
(tests/emulator/test_calibration.py); nobody has compared it with a trn2 or trn3, or in bfloat16.
"""

import bisect
import heapq
from math import prod

import numpy as np

from .dtype import TYPES

MIN_CYCLES = 64
INSTRUCTION_CYCLES = 64         # of each on the vector and scalar engines, beside its elements
FP32_PASSES = 4
DESCRIPTOR_BYTES = 512
DESCRIPTORS = 2 ** 24 - 16      # of a program: what a queue of the public Neuron driver holds
DMA_LATENCY_US = 1.3
SEMAPHORE_CYCLES = 64
TABLE_SWITCH_US = 1.283
NO_TABLE = ("nl.copy", "nl.square", "nl.relu")  # functions that leave the loaded table as it is
PARTITION_REDUCE_US = 110.0
ENGINES = ("tensor", "vector", "scalar", "gpsimd")


def _elements(operand):
    return prod(operand["shape"][1:])


def _array_cycles(columns, passes, wide, machine):
    """Of the tensor engine, with so many columns moving through it."""
    beside = machine.matmul_f32_cycles if wide else machine.matmul_cycles
    return (passes if wide else 1) * max(MIN_CYCLES, columns) + beside


def _matmul_cycles(record, machine):
    moving = record["operands"]["moving"]
    return _array_cycles(_elements(moving), FP32_PASSES, moving["dtype"] == "float32", machine)


def _transpose_cycles(record, machine):
    data = record["operands"]["data"]
    if record["engine"] == "vector":
        return max(MIN_CYCLES, _elements(data)) + INSTRUCTION_CYCLES
    return _array_cycles(data["shape"][0], machine.transpose_passes, data["dtype"] == "float32",
                         machine)


def _row_cycles(cycles):
    """Of the vector and scalar engines: those of the elements, and each instruction's own."""
    return lambda record, machine: cycles(record) + INSTRUCTION_CYCLES


def _tensor_tensor_cycles(record):
    operands, n = record["operands"], _elements(record["operands"]["dst"])
    inputs = (operands["data1"], operands["data2"])
    fast = record["constants"]["op"] in ("nl.add", "nl.subtract", "nl.multiply")
    plain = all(o["dtype"] == "bfloat16" and o["space"] == "sbuf" and o["strides"][-1] == 1
                for o in operands.values())
    if any(o["space"] == "psum" for o in inputs) or (fast and plain):
        return max(MIN_CYCLES, n)
    return max(MIN_CYCLES, 2 * n)


def _reduce_cycles(record):
    data = record["operands"]["data"]
    half = data["dtype"] == "bfloat16" and record["constants"]["op"] in ("nl.add", "nl.maximum")
    return max(MIN_CYCLES, _elements(data) // (2 if half else 1))


def _memset_cycles(record):
    dst = record["operands"]["dst"]
    half = record["constants"]["value"] == 0 and dst["dtype"] in ("bfloat16", "float16")
    return max(MIN_CYCLES, _elements(dst) // (2 if half else 1))


def _predicated_cycles(record):
    spaces = {record["operands"]["src"]["space"], record["operands"]["predicate"]["space"]}
    return max(MIN_CYCLES, _elements(record["operands"]["dst"]) * (1 if len(spaces) > 1 else 2))


def _per_element(factor, fixed=0):
    return lambda record: max(MIN_CYCLES, factor * _elements(record["operands"]["dst"])) + fixed


def _activation_cycles(record):
    sums = MIN_CYCLES if "reduce_res" in record["operands"] else 0
    return max(MIN_CYCLES, _elements(record["operands"]["dst"])) + sums


def _reciprocal_cycles(record, machine):
    elements = _elements(record["operands"]["dst"])
    return int(max(MIN_CYCLES, machine.reciprocal_cycles * elements)) + INSTRUCTION_CYCLES


def _position_cycles(record, machine):
    return _elements(record["operands"]["dst"]) + 150


_ROWS = {
    "tensor_tensor": _tensor_tensor_cycles, "tensor_reduce": _reduce_cycles,
    "memset": _memset_cycles, "tensor_copy_predicated": _predicated_cycles,
    "activation": _activation_cycles, "activation_reduce": _per_element(1, MIN_CYCLES),
    "tensor_scalar": _per_element(1), "tensor_copy": _per_element(1),
    "nc_stream_shuffle": _per_element(1), "scalar_tensor_tensor": _per_element(2),
    "select_reduce": _per_element(2), "tensor_tensor_scan": _per_element(2),
}
_CYCLES = {
    **{name: _row_cycles(cycles) for name, cycles in _ROWS.items()},
    "nc_matmul": _matmul_cycles, "nc_transpose": _transpose_cycles,
    "reciprocal": _reciprocal_cycles, "iota": _position_cycles,
    "affine_select": _position_cycles,
    "tensor_partition_reduce":
        lambda record, machine: int(PARTITION_REDUCE_US * machine.gpsimd_ghz * 1000),
}


def instruction_cycles(record, machine):
    """Engine cycles of one record that is not a copy."""
    return _CYCLES[record["op"]](record, machine)


BYTES = {name: dtype.size for name, dtype in TYPES.items()}


def _run_elements(operand):
    """Elements of the longest run of consecutive addresses; partitions never join."""
    first = 1 if operand["space"] in ("sbuf", "psum") else 0
    run = 1
    for size, stride in zip(reversed(operand["shape"][first:]),
                            reversed(operand["strides"][first:])):
        if size == 1:
            continue
        if stride != run:
            break
        run *= size
    return run


def copy_cost(record):
    """(bytes, charged bytes, descriptors, bytes read from HBM, bytes written to HBM)."""
    dst = record["operands"]["dst"]
    src = record["operands"]["src"]
    count = prod(dst["shape"])
    size = max(BYTES[dst["dtype"]], BYTES[src["dtype"]])
    run = min(_run_elements(dst), _run_elements(src))
    charge = 1
    if record["op"] == "dma_transpose" and size > 2:
        run = 1                     # element by element: the hardware transposes 2-byte types
    elif record["op"] == "dma_transpose":
        run, charge = _run_elements(src), 2
    descriptors = -(-count // run)
    read = count * BYTES[src["dtype"]] if src["space"] not in ("sbuf", "psum") else 0
    written = count * BYTES[dst["dtype"]] if dst["space"] not in ("sbuf", "psum") else 0
    charged = charge * descriptors * max(run * size, DESCRIPTOR_BYTES)
    return count * size, charged, descriptors, read, written


def copy_beyond(records, descriptors):
    """The first copy with which there are more than so many descriptors."""
    for record in records:
        descriptors -= copy_cost(record)[2] if record["engine"] == "dma" else 0
        if descriptors < 0:
            return record
    return None


def _ghz(machine, engine):
    return {"tensor": machine.tensor_ghz, "vector": machine.vector_ghz,
            "scalar": machine.scalar_ghz, "gpsimd": machine.gpsimd_ghz}[engine]


class _Pool:
    """Capacity of a space over predicted time: a tile waits for the tiles that died."""

    def __init__(self, capacity):
        self.free, self.dying = capacity, []

    def take(self, amount):
        """The earliest time `amount` is free, given the deaths noted so far."""
        ready = 0.0
        while self.free < amount and self.dying:
            at, given = heapq.heappop(self.dying)
            ready, self.free = max(ready, at), self.free + given
        self.free -= amount
        return ready

    def give(self, amount, at):
        heapq.heappush(self.dying, (at, amount))


class _Line:
    """The DMA engines' common bandwidth: loads and stores are two queues on it. A transfer takes
    what earlier ones (in program order) have left free from its start on, and is no quicker than
    its own direction alone."""

    def __init__(self):
        self.starts, self.ends = [], []           # disjoint busy intervals, ascending

    def take(self, start, duration):
        """When a transfer that may begin at `start` begins and ends."""
        at = bisect.bisect_right(self.ends, start)
        first, now, left, begin = at, start, duration, None
        while at < len(self.starts):
            gap = self.starts[at] - now
            if gap > 0:
                begin = now if begin is None else begin
                if gap >= left:
                    break
                left -= gap
            now = self.ends[at]
            at += 1
        begin = now if begin is None else begin
        end = now + left
        low, high = begin, end
        if first > 0 and self.ends[first - 1] >= begin:
            first -= 1
        if first < at:
            low = min(low, self.starts[first])
        if at < len(self.starts) and self.starts[at] <= end:
            high, at = self.ends[at], at + 1
        self.starts[first:at], self.ends[first:at] = [low], [high]
        return begin, end


class _Times:
    """When the elements of one tensor were last used, per element of a partition's row. HBM
    tensors have one cell. `queues` are those that ever used it."""

    def __init__(self, operand):
        on_chip = operand["space"] in ("sbuf", "psum")
        self.cells = np.zeros(prod(operand["tensor_shape"][1:]) if on_chip else 1)
        self.queues = set()

    def _window(self, operand):
        if len(self.cells) == 1:
            return self.cells
        low = operand["offset"] % len(self.cells)
        return self.cells[low:low + 1 + sum((n - 1) * s for n, s in zip(
            operand["shape"][1:], operand["strides"][1:]))]

    def latest(self, operand):
        return float(self._window(operand).max())

    def use(self, operand, queue, time):
        window = self._window(operand)
        np.maximum(window, time, out=window)
        self.queues.add(queue)


class _Schedule:
    """Program order per engine, dependencies by elements, capacity by pools. Times in us."""

    def __init__(self, records, machine):
        self.machine = machine
        self.clock = dict.fromkeys((*ENGINES, "load", "store"), 0.0)
        self.written, self.read = {}, {}          # tensor -> _Times
        self.pools = {"sbuf": _Pool(machine.sbuf_bytes), "psum": _Pool(machine.psum_banks)}
        self.last_use = {o["tensor"]: i for i, r in enumerate(records)
                         for o in r["operands"].values()}
        self.alive, self.line = set(), _Line()
        self.first, self.last = {}, {}            # queue -> start and end of its work
        self.end = 0.0

    def _room(self, operand):
        row = prod(operand["tensor_shape"][1:]) * BYTES[operand["dtype"]]
        return -(-row // self.machine.bank_bytes) if operand["space"] == "psum" else \
            -(-row // 4) * 4

    def _after(self, queue, times, operand, in_order):
        """The earliest start with regard to earlier uses of the same elements. A queue needs
        no semaphore with itself, and where order alone is enough (`in_order`) no wait."""
        if times is None:
            return 0.0
        alone = times.queues == {queue}
        if alone and in_order:
            return 0.0
        delay = 0.0 if alone else SEMAPHORE_CYCLES / (self.machine.vector_ghz * 1000)
        latest = times.latest(operand)
        return latest + delay if latest else 0.0

    def add(self, at, record, queue, duration, shared=0.0, latency=0.0):
        """Place one instruction; `duration` occupies its queue, `shared` the line of all copies,
        `latency` delays its result. When it starts, leaves its queue free, and its result is there."""
        start = self.clock[queue]
        for key, operand in record["operands"].items():
            tensor = operand["tensor"]
            if operand["space"] in self.pools and tensor not in self.alive:
                self.alive.add(tensor)
                start = max(start, self.pools[operand["space"]].take(self._room(operand)))
            result = key in ("dst", "reduce_res")
            if result and operand["space"] not in self.pools:
                continue                    # stores go to different parts of an HBM tensor
            start = max(start, self._after(queue, self.written.get(tensor), operand, result))
            if result:
                start = max(start, self._after(queue, self.read.get(tensor), operand, True))
        end = start + duration
        if queue in ("load", "store"):
            start, free = self.line.take(start, shared)
            end = max(end, free)
        self.clock[queue] = self.last[queue] = end
        self.first.setdefault(queue, start)
        done = end + latency
        self.end = max(self.end, done)
        for key, operand in record["operands"].items():
            tensor = operand["tensor"]
            table = self.written if key in ("dst", "reduce_res") else self.read
            if tensor not in table:
                table[tensor] = _Times(operand)
            table[tensor].use(operand, queue, done)
            if self.last_use[tensor] == at and operand["space"] in self.pools:
                self.pools[operand["space"]].give(self._room(operand), done)
                self.last_use[tensor] = -1
        return start, end, done


def _queue_of(record):
    if record["engine"] != "dma":
        return record["engine"]
    return "load" if record["operands"]["dst"]["space"] in ("sbuf", "psum") else "store"


def cost_report(records, machine, compulsory_bytes=0, placed=None):
    """The report as plain data; see the module's text for what the figures mean. To the list `placed` goes of each record (queue, start, end, when its
    result is there)."""
    placed = [] if placed is None else placed
    engines = {e: {"instructions": 0, "cycles": 0, "us": 0.0} for e in ENGINES}
    dma = {"transfers": 0, "descriptors": 0, "bytes": 0, "charged_bytes": 0,
           "hbm_read_bytes": 0, "hbm_written_bytes": 0}
    charged_to = {"load": 0, "store": 0}
    schedule, macs, ideal_us, table, switches = _Schedule(records, machine), 0, 0.0, None, 0
    for at, record in enumerate(records):
        queue = _queue_of(record)
        if record["engine"] == "dma":
            size, charged, descriptors, read, written = copy_cost(record)
            for key, value in (("transfers", 1), ("descriptors", descriptors), ("bytes", size),
                               ("charged_bytes", charged), ("hbm_read_bytes", read),
                               ("hbm_written_bytes", written)):
                dma[key] += value
            charged_to[queue] += charged
            placed.append((queue, *schedule.add(at, record, queue, charged / (machine.dma_gbps * 1000),
                                                charged / (machine.dma_both_gbps * 1000), DMA_LATENCY_US)))
            continue
        cycles = instruction_cycles(record, machine)
        row = engines[record["engine"]]
        us = cycles / (_ghz(machine, record["engine"]) * 1000)
        if record["engine"] == "scalar":
            function = record["constants"].get("op", "nl.copy")
            if function not in (*NO_TABLE, table):
                table, switches, us = function, switches + 1, us + TABLE_SWITCH_US
        row["instructions"] += 1
        row["cycles"] += cycles
        row["us"] += us
        if "macs" in record:
            macs += record["macs"]
            passes = FP32_PASSES if record["operands"]["moving"]["dtype"] == "float32" else 1
            ideal_us += passes * record["macs"] / (128 * 128 * machine.tensor_ghz * 1000)
        placed.append((queue, *schedule.add(at, record, queue, us)))
    dma["us"] = max(*(n / (machine.dma_gbps * 1000) for n in charged_to.values()),
                    dma["charged_bytes"] / (machine.dma_both_gbps * 1000))
    return _summary(engines, dma, schedule, machine, macs, ideal_us, switches,
                    compulsory_bytes, len(records))


def _summary(engines, dma, schedule, machine, macs, ideal_us, switches, compulsory, count):
    hbm = dma["hbm_read_bytes"] + dma["hbm_written_bytes"]
    dma["efficiency"] = dma["bytes"] / dma["charged_bytes"] if dma["charged_bytes"] else 1.0
    busy = {e: engines[e]["us"] for e in ENGINES}
    busy["dma"] = max(dma["us"], hbm / (machine.hbm_gbps * 1000))
    bound_by = max(busy, key=lambda e: busy[e])
    bound = busy[bound_by]
    predicted = max(schedule.end, bound)
    flops = 2 * macs
    passes = ideal_us * 128 * 128 * machine.tensor_ghz * 1000 / macs if macs else 1.0
    peak = machine.peak_tflops / passes
    bandwidth = min(machine.dma_both_gbps, machine.hbm_gbps) / 1000     # TB/s
    start, end = schedule.first.get("tensor", 0.0), schedule.last.get("tensor", 0.0)
    intensity = flops / hbm if hbm else 0.0
    return {
        "target": machine.name, "instructions": count, "macs": macs, "flops": flops,
        "engines": engines, "activation_table_switches": switches, "dma": dma,
        "hbm_bytes": hbm, "compulsory_bytes": compulsory,
        "traffic_ratio": hbm / compulsory if compulsory else 0.0,
        "bound_us": bound, "bound_by": bound_by, "predicted_us": predicted,
        "launch_us": machine.launch_us, "tensor_ideal_us": ideal_us,
        "tensor_utilisation": busy["tensor"] / predicted if predicted else 0.0,
        "tensor_prologue_us": start, "tensor_epilogue_us": max(0.0, predicted - end),
        "tensor_busy_between": busy["tensor"] / (end - start) if end > start else 0.0,
        "roofline": {
            "intensity_flop_per_byte": intensity, "ridge_flop_per_byte": peak / bandwidth,
            "peak_tflops": peak,
            "attainable_tflops": min(peak, intensity * bandwidth) if hbm else 0.0,
            "predicted_tflops": flops / predicted / 1e6 if predicted else 0.0},
    }


def _bar(share):
    return "#" * int(round(30 * min(1.0, share)))


def cost_text(report, memory=None):
    """The report for a person."""
    lines = [f"target {report['target']}, {report['instructions']} instructions, "
             f"{report['macs']} multiply-adds",
             f"{'engine':8} {'instr':>7} {'cycles':>12} {'us':>11}  share of predicted"]
    predicted = report["predicted_us"] or 1.0
    for name, row in report["engines"].items():
        lines.append(f"{name:8} {row['instructions']:7d} {row['cycles']:12d} {row['us']:11.3f}"
                     f"  {_bar(row['us'] / predicted)} {100 * row['us'] / predicted:.1f}%")
    dma = report["dma"]
    lines.append(f"{'dma':8} {dma['transfers']:7d} {'-':>12} {dma['us']:11.3f}"
                 f"  {_bar(dma['us'] / predicted)} {100 * dma['us'] / predicted:.1f}%")
    lines.append(f"dma: {dma['bytes']} bytes in {dma['descriptors']} descriptors, "
                 f"efficiency {100 * dma['efficiency']:.1f}%")
    lines.append(f"hbm: {report['hbm_bytes']} bytes, {report['traffic_ratio']:.2f}x the "
                 f"compulsory {report['compulsory_bytes']}")
    lines.append(f"bound {report['bound_us']:.3f} us by {report['bound_by']}, predicted "
                 f"{report['predicted_us']:.3f} us, launch {report['launch_us']:.0f} us more")
    roof = report["roofline"]
    lines.append(f"roofline: {roof['intensity_flop_per_byte']:.2f} flop/B (ridge "
                 f"{roof['ridge_flop_per_byte']:.1f}), attainable "
                 f"{roof['attainable_tflops']:.3f} of {roof['peak_tflops']:.1f} TFLOP/s, "
                 f"predicted {roof['predicted_tflops']:.3f}")
    if memory:
        lines.append(f"sbuf: {memory['sbuf_bytes_peak']} of {memory['sbuf_bytes_limit']} bytes "
                     f"per partition; psum: {memory['psum_banks_peak']} of "
                     f"{memory['psum_banks_limit']} banks")
    return "\n".join(lines) + "\n"
