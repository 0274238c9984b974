# SPDX-License-Identifier: Apache-2.0
"""Pictures by matplotlib, of what reports, paths, profiles and schedules say: PNG, SVG or PDF, by the name of the file."""
from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

from ._errors import ArgumentError, Error, FileError

if TYPE_CHECKING:
    from ._path import Path
    from ._program import Program

# As in --report=html: chosen, without fusion, turned down.
_FORMS = (("chosen", "chosen", "#1f8a4c"), ("unfused", "without fusion", "#c2410c"), ("turned_down", "turned down", "#6b7280"))
_OPERANDS = 90  # more are no picture
_SHOWN = 60  # characters of a statement


def _figure(width: float, height: float) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise Error(f"pictures are drawn by matplotlib, which cannot be imported: {error} (pip install matplotlib)") from None
    return Figure(figsize=(width, height), layout="constrained")


def _done(figure: Any, file: str | os.PathLike[str] | None) -> Any:
    if file is not None:
        try:
            figure.savefig(file)
        except OSError as error:
            raise FileError(f"{os.fspath(file)}: {error.strerror or error}") from None
        except ValueError as error:
            raise ArgumentError(str(error), "file") from None
    return figure


def _kernel(program: Program | dict[str, Any], kernel: str | None) -> dict[str, Any]:
    """A kernel of a report."""
    report = program if isinstance(program, dict) else program.report("json")
    kernels: list[dict[str, Any]] = report["kernels"]
    found = [k for k in kernels if kernel is None or k["name"] == kernel]
    if len(found) != 1:
        names = ", ".join(k["name"] for k in kernels)
        raise ArgumentError(f"which kernel: {names}" if kernel is None else f"there is no kernel '{kernel}', but {names}", "kernel")
    return found[0]


def _read(given: dict[str, Any] | str | os.PathLike[str], member: str, what: str) -> dict[str, Any]:
    """A dict, or the JSON of a file, with this member."""
    if not isinstance(given, dict):
        try:
            with open(given, encoding="utf-8") as f:
                given = json.load(f)
        except OSError as error:
            raise FileError(f"{os.fspath(given)}: {error.strerror}") from None  # type: ignore[arg-type]
        except ValueError as error:
            raise ArgumentError(f"not JSON: {error}", what) from None
    if not isinstance(given, dict) or member not in given:
        raise ArgumentError(f"no {what}: it has no member '{member}'", what)
    return given


def _size(n: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024:
            return f"{n:.3g} {unit}"
        n /= 1024
    return f"{n:.3g} TiB"


def roofline(program: Program | dict[str, Any], file: str | os.PathLike[str] | None = None, kernel: str | None = None) -> Any:
    """Rates of a kernel's nests, by the model, over their flops for each byte of a level of memory, below what the machine has at most.

    program: or its report("json"). file: where to, or None. kernel: which, if there are several. Returns matplotlib's Figure.
    """
    k = _kernel(program, kernel)
    most = k["model"].get("most")
    if most is None:
        raise ArgumentError(f"kernel '{k['name']}' has no roofline: it has no contraction, or its target has no caches", "program")
    figure = _figure(8, 4.5)
    axes = figure.subplots()
    peak = 2 * most["multiply_adds_per_second"]
    marks = dict(zip(most["bytes_per_second"], "osDv"))
    points = [(words, colour, 2 * f["multiply_adds"], f) for key, words, colour in _FORMS if (f := k["model"][key]) is not None]
    xs = [flops / b for _, _, flops, f in points for b in f["bytes"].values() if b > 0 and flops > 0] + [peak / b / 10 for b in most["bytes_per_second"].values()]
    low, high = min(xs) / 1.5, max(*xs, *(10 * peak / b for b in most["bytes_per_second"].values()))
    for level, bandwidth in most["bytes_per_second"].items():
        axes.plot([low, peak / bandwidth], [low * bandwidth / 1e9, peak / 1e9], color="black", linewidth=1.5)
        middle = (low * peak / bandwidth) ** 0.5
        axes.annotate(f"{level} {bandwidth / 1e9:.3g} GB/s", (middle, middle * bandwidth / 1e9), (-6, 2), textcoords="offset points", ha="right", fontsize=8)
    axes.plot([peak / max(most["bytes_per_second"].values()), high], [peak / 1e9] * 2, color="black", linewidth=1.5)
    axes.annotate(f"full register tiles: {peak / 1e9:.3g} GF/s", (high, peak / 1e9), ha="right", va="bottom", fontsize=8)
    for words, colour, flops, f in points:
        rate = flops / f["total_seconds"] / 1e9 if f["total_seconds"] else 0
        at = {level: flops / b for level, b in f["bytes"].items() if b > 0 and flops > 0}
        if rate > 0 and at:
            axes.plot(list(at.values()), [rate] * len(at), color=colour, linewidth=1, label=f"{words}: {rate:.3g} GF/s")
            for level, x in at.items():
                axes.plot([x], [rate], marks.get(level, "o"), color=colour)
    shapes = {"o": "circle", "s": "square", "D": "diamond", "v": "triangle"}
    key = ", ".join(f"{level}: {shapes[mark]}" for level, mark in marks.items())
    axes.set(xscale="log", yscale="log", xlabel=f"flops for each byte that a level moves ({key})", ylabel="GF/s", title=f"{k['name']}, by the model")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(loc="lower right", fontsize=8)
    return _done(figure, file)


def moves(program: Program | dict[str, Any], file: str | os.PathLike[str] | None = None, kernel: str | None = None) -> Any:
    """Bytes that a kernel moves between levels of memory, by the model: chosen, without fusion, turned down, and what every nest moves.

    program: or its report("json"). file: where to, or None. kernel: which, if there are several. Returns matplotlib's Figure.
    """
    k = _kernel(program, kernel)
    figure = _figure(8, 3.5)
    axes = figure.subplots()
    rows: list[tuple[str, float, str]] = []
    for level in reversed(list(k["model"]["chosen"]["bytes"])):
        rows += [(f"{level}: {words}", k["model"][key]["bytes"][level], colour) for key, words, colour in reversed(_FORMS) if k["model"][key] is not None]
    rows.append(("compulsory", k["model"]["compulsory_bytes"], "#1d5fbf"))
    bars = axes.barh([r[0] for r in rows], [r[1] for r in rows], color=[r[2] for r in rows])
    axes.bar_label(bars, [_size(r[1]) for r in rows], padding=3, fontsize=8)
    axes.margins(x=0.12)
    axes.set(title=f"{k['name']}: bytes to and from a level, by the model", xticks=[])
    return _done(figure, file)


_STEP = re.compile(r"^ +\d+ +(\S+) +\((\d+),(\d+)\) +(\S+) +(\S+) +\S+ +(\S*)->(\S*)$", re.M)


def _tree(steps: list[tuple[int, int]], leaves: int) -> tuple[list[float], list[int]]:
    """Rows and heights of the tensors of a tree; operands in an order in which no lines cross."""
    height = [0] * leaves
    for a, b in steps:
        height.append(1 + max(height[a], height[b]))
    row, stack, y = 0, [leaves + len(steps) - 1], [0.0] * (leaves + len(steps))
    while stack:
        at = stack.pop()
        if at < leaves:
            y[at] = row
            row += 1
        else:
            a, b = sorted(steps[at - leaves], key=lambda t: -height[t])
            stack += [b, a]
    for n, (a, b) in enumerate(steps):
        y[leaves + n] = (y[a] + y[b]) / 2
    return y, height


def path(path: Path, file: str | os.PathLike[str] | None = None) -> Any:
    """The tree of a contraction order, of `tdsl.path`: operands on the left, each contraction with its multiply-adds and the labels of its result.

    file: where to, or None. Returns matplotlib's Figure.
    """
    found = _STEP.findall(path.report())
    if len(found) != len(path) or not 1 <= len(found) < _OPERANDS:
        raise ArgumentError(f"a picture has 2 to {_OPERANDS} operands, and pairs of them: {len(path)} steps", "path")
    leaves = len(found) + 1
    names, alive, steps = [""] * leaves, list(range(leaves)), []
    for n, (_, i, j, _, _, operands, _) in enumerate(found):
        a, b = alive[int(i)], alive[int(j)]
        for tensor, labels in zip((a, b), operands.split(",")):
            if tensor < leaves:
                names[tensor] = labels
        alive = [t for t in alive if t not in (a, b)] + [leaves + n]
        steps.append((a, b))
    y, height = _tree(steps, leaves)
    costs = [float(f[3]) for f in found]
    figure = _figure(2 + 1.3 * height[-1], 1 + 0.3 * leaves)
    axes = figure.subplots()
    for n, (a, b) in enumerate(steps):
        for t in (a, b):
            axes.plot([height[t], height[leaves + n] - 0.2, height[leaves + n]], [y[t], y[t], y[leaves + n]], color="#9aa1ab", zorder=1)
    for t, labels in enumerate(names):
        axes.text(-0.05, y[t], f"{t}  {labels}", ha="right", va="center", fontsize=9, family="monospace")
    for n, cost in enumerate(costs):
        share = cost / sum(costs) if sum(costs) else 0
        colour = "#c2410c" if share >= 0.5 else "#1d5fbf" if share >= 0.1 else "#6b7280"
        axes.scatter([height[leaves + n]], [y[leaves + n]], s=20 + 120 * share, color=colour, zorder=2)
        axes.text(height[leaves + n] + 0.1, y[leaves + n] - 0.12, f"{cost:.3g}  {found[n][6]}", fontsize=8, va="bottom")
    axes.set(xlim=(-0.6, height[-1] + 0.9), ylim=(leaves - 0.5, -0.9), title=f"{path.multiply_adds:.3g} multiply-adds, largest tensor {path.largest} elements")
    axes.axis("off")
    return _done(figure, file)


def profile(profile: dict[str, Any] | str | os.PathLike[str], file: str | os.PathLike[str] | None = None) -> Any:
    """A bar for each statement of a kernel: what `tdsl-run --profile=FILE.json` has measured.

    profile: that file, or what it holds. file: where to, or None. Returns matplotlib's Figure.
    """
    data = _read(profile, "statements", "profile")
    rows = [(f"line {s['line']}: {s['text'][:_SHOWN]}{'...' if len(s['text']) > _SHOWN else ''}" if s["line"] else s["text"][:_SHOWN], s["seconds"]) for s in data["statements"]]
    rows.append(("the rest", data["rest_seconds"]))
    figure = _figure(9, 1.2 + 0.35 * len(rows))
    axes = figure.subplots()
    bars = axes.barh(range(len(rows)), [1e6 * seconds for _, seconds in rows], color="#1f8a4c")
    axes.set_yticks(range(len(rows)), [name for name, _ in rows], fontsize=8, family="monospace")
    axes.bar_label(bars, [f"{100 * seconds / data['seconds']:.1f} %" if data["seconds"] else "" for _, seconds in rows], padding=3, fontsize=8)
    axes.invert_yaxis()
    axes.margins(x=0.1)
    axes.set(xlabel="us of a call")
    figure.suptitle(f"{data['kernel']}: {1e6 * data['seconds']:.4g} us, of which the counters take about {1e6 * data['counters_seconds']:.2g}")
    return _done(figure, file)


def schedule(trace: dict[str, Any] | str | os.PathLike[str], file: str | os.PathLike[str] | None = None, core: int = 0) -> Any:
    """What the engines of a Trainium core do over time, by the emulator's model: what `tdsl-run --target=emulator --profile=FILE.json` has written.

    trace: that file, or what it holds. file: where to, or None. core: which. Returns matplotlib's Figure.
    """
    events = _read(trace, "traceEvents", "trace")["traceEvents"]
    tracks = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name" and e["pid"] == core}
    if not tracks:
        raise ArgumentError(f"there is no core {core} in it", "core")
    sources = sorted({e["args"].get("source", "") for e in events if e["ph"] == "X"}, key=lambda s: (int(s[5:].split(":")[0]) if s else 0, s))
    figure = _figure(11, 3.2 + 0.2 * len(sources))
    axes = figure.subplots()
    colours = [f"C{n % 10}" for n in range(len(sources))]
    for n, source in enumerate(sources):
        for tid in tracks:
            spans = [(e["ts"], e["dur"]) for e in events if e["ph"] == "X" and e["pid"] == core and e["tid"] == tid and e["args"].get("source", "") == source]
            axes.broken_barh(spans, (list(tracks).index(tid) - 0.4, 0.8), color=colours[n], linewidth=0)
        axes.plot([], [], color=colours[n], linewidth=6, label=source[:2 * _SHOWN] or "other")
    axes.set_yticks(range(len(tracks)), list(tracks.values()))
    axes.invert_yaxis()
    axes.set(xlabel="us, predicted by a model", xlim=(0, max([e["ts"] + e["dur"] for e in events if e["ph"] == "X"], default=1)))
    axes.legend(loc="upper left", bbox_to_anchor=(0, -0.2), fontsize=7)
    return _done(figure, file)
