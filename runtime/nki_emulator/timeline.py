# SPDX-License-Identifier: Apache-2.0
"""The schedule that the cost model predicts, as trace events: the JSON that Perfetto (ui.perfetto.dev) and chrome://tracing read.

A process for each core, a track for each engine and for each of the two DMA queues, an event for each instruction, with its line of the program, what of the
source that is, its operands, and its bytes or multiply-adds. Two counters say what of SBUF and PSUM holds tiles that are still used. Times are us.
"""

import re
from math import prod

from .cost import BYTES, cost_report

TRACKS = {"tensor": "Tensor", "vector": "Vector", "scalar": "Scalar", "gpsimd": "GpSimd", "load": "DMA: loads", "store": "DMA: stores"}


def _source(text):
    """Of each line of a program, from 1: its text, and what of the source it computes, as comments say."""
    found, said = [("", None)], None
    for line in text.split("\n"):
        comment = re.match(r"\s*# (line \d+: .*)", line)
        said = comment.group(1) if comment else said
        found.append((line, said))
    return found


def _name(key, operand, line):
    """A tensor as the text calls it: most have no name of their own."""
    said = re.search(rf"\b{key}=(\w+)", line)
    return said.group(1) if said and operand["name"].startswith("%") else operand["name"]


def _event(record, queue, start, end, source, core):
    line, said = source[record["line"]] if record["line"] is not None and record["line"] < len(source) else ("", None)
    names = {key: _name(key, o, line) for key, o in record["operands"].items()}
    args = {"line": record["line"], **{key: f"{names[key]}: {o['dtype']}{o['shape']} in {o['space']}" for key, o in record["operands"].items()}}
    if said:
        args["source"] = said
    if "macs" in record:
        args["multiply_adds"] = record["macs"]
    if record["engine"] == "dma":
        dst = record["operands"]["dst"]
        args["bytes"] = prod(dst["shape"]) * BYTES[dst["dtype"]]
    name = record["op"] + (f" to {names['dst']}" if "dst" in names else "")
    return {"name": name, "cat": "instruction", "ph": "X", "pid": core, "tid": list(TRACKS).index(queue) + 1, "ts": start, "dur": end - start, "args": args}


def _counters(records, placed, machine, at, core):
    """SBUF bytes of a partition, and PSUM banks, of tiles from their first use to their last."""
    lives = {}
    for record, (_, start, _, done) in zip(records, placed):
        for operand in record["operands"].values():
            if operand["space"] in ("sbuf", "psum"):
                row = prod(operand["tensor_shape"][1:]) * BYTES[operand["dtype"]]
                room = row if operand["space"] == "sbuf" else -(-row // machine.bank_bytes)
                first, _, _, _ = lives.get(operand["tensor"], (start, 0, 0, 0))
                lives[operand["tensor"]] = (min(first, start), done, room, operand["space"])
    for space, name, unit in (("sbuf", "SBUF of a partition", "bytes"), ("psum", "PSUM", "banks")):
        changes = {}
        for first, last, room, where in lives.values():
            if where == space:
                changes[first] = changes.get(first, 0) + room
                changes[last] = changes.get(last, 0) - room
        used = 0
        for time in sorted(changes):
            used += changes[time]
            yield {"name": name, "ph": "C", "pid": core, "ts": at + time, "args": {unit: used}}


def timeline(results):
    """The trace of programs that run one after the other, each a Result of emulate()."""
    events, at = [], 0.0
    for result in results:
        source = _source(result.text)
        for core, records in enumerate(result.programs):
            placed = []
            cost_report(records, result.machine, placed=placed)
            events += [_event(r, queue, at + start, at + end, source, core) for r, (queue, start, end, _) in zip(records, placed)]
            events += _counters(records, placed, result.machine, at, core)
        at += result.cost["predicted_us"]
    cores = max(len(r.programs) for r in results)
    names = [{"name": "process_name", "ph": "M", "pid": core, "args": {"name": f"{results[0].machine.name}, core {core}" if cores > 1 else results[0].machine.name}}
             for core in range(cores)]
    for core in range(cores):
        for number, name in enumerate(TRACKS.values(), 1):
            names.append({"name": "thread_name", "ph": "M", "pid": core, "tid": number, "args": {"name": name}})
            names.append({"name": "thread_sort_index", "ph": "M", "pid": core, "tid": number, "args": {"sort_index": number}})
    return {"traceEvents": names + sorted(events, key=lambda e: e["ts"]), "displayTimeUnit": "ns",
            "otherData": {"what": "a model's prediction, not a measurement", "kernels": ", ".join(r.kernel for r in results), "predicted_us": at}}


__all__ = ["timeline"]
