# SPDX-License-Identifier: Apache-2.0
"""What the page asks of a program: messages and report, the view of a tab, a timed run. Each is a run of tdslc or tdsl-run, with a limit of time."""
from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
from typing import Any, Callable

from .. import _process, _tools
from .._errors import Error

COMPILE_SECONDS = 10.0
RUN_SECONDS = 30.0
_TICK = 0.02  # seconds: how soon a tool ends that nobody waits for
_SHOWN = 6000  # lines of a view
_TARGETS = ("trn1", "trn2", "trn3")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Refused(Error):
    """A request that the page does not make."""


class Overrun(Error):
    """A tool took longer than it may."""


class Question:
    """A program, and the sizes of its open dims, as the page sends them; `gone()` raises when nobody waits for the answer any more."""

    def __init__(self, asked: Any, folder: str, scratch: str, gone: Callable[[], None]) -> None:
        def text(name: str, default: str) -> str:
            value = asked.get(name, default)
            if not isinstance(value, str):
                raise Refused(f"'{name}' is no text")
            return value
        if not isinstance(asked, dict):
            raise Refused("not a JSON object")
        self.program, self.tab, self.kernel, self.target = text("program", ""), text("tab", ""), text("kernel", ""), text("target", "trn2")
        self.f32 = asked.get("f32") is True
        sizes = asked.get("sizes", {})
        if not isinstance(sizes, dict) or not all(_NAME.fullmatch(n) and type(v) is int and 0 <= v < 2**31 for n, v in sizes.items()):
            raise Refused("'sizes' are no numbers by name of a dim")
        if self.target not in _TARGETS or (self.kernel and not _NAME.fullmatch(self.kernel)):
            raise Refused("no such target, or no name of a kernel")
        self.sizes: dict[str, int] = sizes
        self.folder, self.scratch, self._gone = folder, scratch, gone

    def tool(self, program: str, *arguments: str, seconds: float = COMPILE_SECONDS) -> tuple[int, str, str]:
        """(exit status, what it prints, its messages)."""
        end = time.monotonic() + seconds

        def tick() -> None:
            self._gone()
            if time.monotonic() > end:
                raise Overrun(f"{os.path.basename(program)} was ended after {seconds:g} s")
        self._gone()
        status, out, messages, _ = _process.run([program, *arguments], self.program, env={**os.environ, "TMPDIR": self.scratch, "TDSL_PROGRESS": "0"},
                                                tick=tick, every=_TICK, cwd=self.folder)
        return status, out.decode(errors="replace"), messages

    def tdslc(self, *arguments: str) -> tuple[int, str, str]:
        """Of the program; a fault of tdslc leaves no script that repeats it."""
        return self.tool(_tools.tdslc(), "-", "--reproducer=/dev/null", *arguments)

    def planned(self) -> list[str]:
        return [f"-D{name}~{n}" for name, n in self.sizes.items()]

    def chosen(self) -> list[str]:
        return [f"--kernel={self.kernel}"] if self.kernel else []


def _units(data: bytes, end: int) -> int:
    """A place in UTF-8 as one in UTF-16, in which a browser counts."""
    return len(data[:end].decode(errors="ignore").encode("utf-16-le")) // 2


def _messages(text: str, program: str) -> list[dict[str, Any]]:
    """The messages of --diagnostics=json, with `at`, the place in the program as the browser counts, where they have one there."""
    found, data = [], program.encode(errors="replace")
    for line in text.splitlines():
        try:
            message = json.loads(line)
        except ValueError:
            message = {"level": "error", "code": None, "message": line, "place": None, "note": None, "help": None}
        if message["code"] == "-Wdefine":  # the size of a dim that was there a moment ago
            continue
        place = message["place"]
        if place and place["file"] in ("<stdin>", "-") and place.get("bytes"):
            message["at"] = [_units(data, place["bytes"][0]), _units(data, place["bytes"][1])]
        found.append(message)
    return found


def _lines(text: str) -> dict[str, Any]:
    """Lines of a text, each with the line of the program that it is of, or 0."""
    lines = text.splitlines()
    return {"lines": [[line, 0] for line in lines[:_SHOWN]], "left": max(0, len(lines) - _SHOWN)}


_HASH_LINE = re.compile(r'#line (\d+) "(.*)"$')


def _c_lines(text: str) -> dict[str, Any]:
    """C with #line, taken out: what stands behind one of the program is of that line; behind others, of included files and of the C itself, of none."""
    lines, of = [], 0
    for line in text.splitlines():
        mark = _HASH_LINE.match(line)
        if mark:
            of = int(mark[1]) if mark[2] == "<stdin>" else 0
        else:
            lines.append([line, of])
    return {"lines": lines[:_SHOWN], "left": max(0, len(lines) - _SHOWN)}


def _nki_lines(text: str) -> dict[str, Any]:
    """An NKI program: a comment says the line of the program that the statements behind it are of."""
    lines, of = [], 0
    for line in text.splitlines():
        mark = re.match(r"\s*# line (\d+):", line)
        of = int(mark[1]) if mark else of
        lines.append([line, of])
    return {"lines": lines[:_SHOWN], "left": max(0, len(lines) - _SHOWN)}


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def _nki(q: Question, typical: dict[str, int], made: str) -> tuple[int, str, str]:
    """NKI programs of a kernel at the sizes of the page: (exit status, messages, their folder)."""
    bound = [f"-D{name}={q.sizes.get(name, n)}" for name, n in typical.items()]
    folder = os.path.join(made, "nki")
    status, _, said = q.tdslc("-w", *bound, *q.chosen(), *(["--f64=f32"] if q.f32 else []), f"--target={q.target}", "-o", folder)
    return status, said, folder


def _view(q: Question, typical: dict[str, int]) -> dict[str, Any]:
    """What a tab shows; {"failed": words} where the compiler refuses it."""
    with tempfile.TemporaryDirectory(dir=q.scratch) as made:
        if q.tab == "report":
            status, out, said = q.tdslc("-w", *q.planned(), *q.chosen(), "--report=html")
            view = {"html": out.replace("&lt;stdin&gt;", "The program")}
        elif q.tab == "nest":
            status, out, said = q.tdslc("-w", *q.planned(), *q.chosen(), "--dump=nest")
            view = _lines(out)
        elif q.tab == "c":
            path = os.path.join(made, "kernel.c")
            status, out, said = q.tdslc("-w", *q.planned(), *q.chosen(), "--emit=c-lines", "-o", path)
            view = _c_lines(_read(path)) if status == 0 else {}
            for mark in view.get("lines", ()):
                mark[0] = mark[0].replace(made + os.sep, "")
        elif q.tab == "nki":
            status, said, folder = _nki(q, typical, made)
            view = _nki_lines("\n".join(_read(os.path.join(folder, name)) for name in sorted(os.listdir(folder))
                                        if name.endswith(".py") and name != "build_neff.py")) if status == 0 else {}
        else:
            return {}
    return view if status == 0 else {"failed": said.strip()}


def look(q: Question) -> dict[str, Any]:
    """Messages of the program, its report where it is right, and the view of the tab."""
    start = time.perf_counter()
    status, out, said = q.tdslc("--diagnostics=json", "--report=json", *q.planned())
    answer: dict[str, Any] = {"messages": _messages(said, q.program), "report": None, "view": None, "seconds": 0.0}
    if status == 0:
        answer["report"] = json.loads(out)
        kernels = answer["report"]["kernels"]
        mine = next((k for k in kernels if k["name"] == q.kernel), kernels[0] if kernels else {"name": "", "typical": {}})
        q.kernel = mine["name"]
        try:
            answer["view"] = _view(q, mine["typical"])
        except Overrun as error:
            answer["view"] = {"failed": str(error)}
    answer["seconds"] = time.perf_counter() - start
    return answer


def layout(q: Question) -> dict[str, Any]:
    """The program as `tdslc fmt` lays it out."""
    status, out, said = q.tool(_tools.tdslc(), "fmt", "-")
    return {"program": out} if status == 0 else {"failed": said.strip()}


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


_TIME = re.compile(r"^time median=(\S+) min=(\S+) ", re.M)


class _Failed(Exception):
    """What a tool says is wrong."""


def _told(done: tuple[int, str, str]) -> str:
    status, out, said = done
    if status != 0:
        raise _Failed(said.strip() or f"exit status {status}")
    return out


def _call(q: Question, *words: str) -> tuple[dict[str, Any], dict[str, Any], str]:
    """One kernel on random data, at the sizes of the page: its report, what the page is told of the call, and what tdsl-run prints."""
    kernel = json.loads(_told(q.tdslc("-w", "--report=json", *q.planned(), *q.chosen())))["kernels"][0]
    head = json.loads(_told(q.tdslc("-w", "--emit=manifest", *q.planned(), *q.chosen())))["kernels"][0]
    sizes = {d["name"]: q.sizes.get(d["name"], d["typical"]) for d in head["dims"]}
    needed = kernel["bytes_parameters"] + kernel["bytes_results"] + kernel["bytes_spilled"]
    if needed > _memory() // 2:
        raise _Failed(f"the arrays need {needed / 1e9:.3g} GB, more than half of this machine's memory: make the sizes smaller")
    calls = max(1, min(50, int(0.3 / max(kernel["seconds"], 1e-9))))
    given = [a for a in head["arguments"] if a["role"] != "out"]
    for whole in ("random", "zeros"):  # random whole numbers may be positions that lie outside
        values = [f"{a['name']}={'random:' + str(k + 1) if a['dtype'][0] in 'fbc' or whole == 'random' else whole}" for k, a in enumerate(given)]
        said = [f"--kernel={head['name']}", *[f"-D{n}={v}" for n, v in sizes.items()], *values, f"--repeat={calls}"]
        done = q.tool(_tools.tdsl_run(), "-", "-w", *said, *words, seconds=RUN_SECONDS)
        if "E0804" not in done[2]:
            break
    shell = " ".join(["tdsl-run FILE.tdsl", *said, *[w for w in words if "=" not in w]])
    return kernel, {"kernel": head["name"], "sizes": sizes, "calls": calls, "zeros": whole == "zeros", "command": shell}, _told(done)


def run(q: Question) -> dict[str, Any]:
    """Time of one kernel on random data, and what tdsl-run says of the results."""
    try:
        kernel, told, out = _call(q, "--time")
    except _Failed as failed:
        return {"failed": str(failed)}
    timed = _TIME.search(out)
    if timed is None:
        return {"failed": out.strip()}
    return {**told, "seconds": float(timed[2]), "median": float(timed[1]), "multiply_adds": kernel["multiply_adds"], "predicted": kernel["seconds"], "said": out[:20000].strip()}


def profile(q: Question) -> dict[str, Any]:
    """Where the time of one kernel goes on random data, on one thread: what tdsl-run --profile says."""
    with tempfile.TemporaryDirectory(dir=q.scratch) as made:
        path = os.path.join(made, "profile.json")
        try:
            _, told, _ = _call(q, "--profile", f"--profile={path}")
        except _Failed as failed:
            return {"failed": str(failed)}
        return {**told, **json.loads(_read(path))}


def _spans(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Of a trace: what the engines of the first core do, by statement: [track, statement, start, length], neighbours of one statement as one."""
    tracks = [e["args"]["name"] for e in events if e["name"] == "thread_name" and e["pid"] == 0]
    work = [e for e in events if e["ph"] == "X" and e["pid"] == 0]
    end = max((e["ts"] + e["dur"] for e in work), default=0.0)
    statements = sorted({e["args"].get("source", "") for e in work}, key=lambda s: (int(s[5:].split(":")[0]) if s else 0, s))
    last: dict[int, list[float]] = {}
    spans: list[list[float]] = []
    for e in work:
        track, statement, before = e["tid"] - 1, statements.index(e["args"].get("source", "")), last.get(e["tid"])
        if before is not None and before[1] == statement and e["ts"] - before[2] - before[3] < end / 1000:
            before[3] = e["ts"] + e["dur"] - before[2]
        else:
            last[e["tid"]] = [track, statement, e["ts"], e["dur"]]
            spans.append(last[e["tid"]])
    busy = [sum(e["dur"] for e in work if e["tid"] - 1 == k) for k in range(len(tracks))]
    return {"tracks": tracks, "statements": statements, "spans": spans, "busy": busy, "end": end}


def schedule(q: Question) -> dict[str, Any]:
    """What the engines of a Trainium core do over time, as the emulator's model predicts it, on synthetic data."""
    from .. import _nki_devices
    with tempfile.TemporaryDirectory(dir=q.scratch) as made:
        try:
            kernel = json.loads(_told(q.tdslc("-w", "--report=json", *q.planned(), *q.chosen())))["kernels"][0]
            status, said, folder = _nki(q, kernel["typical"], made)
            _told((status, "", said))
            path = os.path.join(made, "trace.json")
            _told(q.tool(sys.executable, "-B", os.path.join(_nki_devices.emulator_folder(), "run.py"), "-", "--manifest", os.path.join(folder, kernel["name"] + ".json"),
                         "--synthetic", "--ranges", "warn", "--timeline", path, seconds=RUN_SECONDS))
        except (_Failed, _nki_devices.Unavailable) as failed:
            return {"failed": str(failed)}
        return {**_spans(json.loads(_read(path))["traceEvents"]), "kernel": kernel["name"], "target": q.target}
