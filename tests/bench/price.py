#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the model says that a kernel takes beside what it takes: every program of tests/programs, with its nest as it was chosen and
without fusion, in turn on one thread; CPU time, the least of many calls, with arguments in caches and out of them.

    python3 tests/bench/price.py [--tdslc build/bin/tdslc] [--size small|medium] [--seconds 1] [PROGRAM...]

Columns: milliseconds by the model, measured from memory and from caches; their ratio, by what is nearer (the model knows not where arguments
are), marked when it is off by more than 2; what fusion gains by the model, and measured. A program that is marked is a fault of the model."""
import argparse
import json
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import steps  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = HERE / "tests/programs/programs.tdsl"


def made(a, folder, name, form, extents):
    """The shared object, and the seconds that the report says."""
    place = os.path.join(folder, form)
    command = [a.tdslc, str(PROGRAMS), "-w", f"--kernel={name}"] + [f"-D{d}={n}" for d, n in extents.items()]
    command += ["--no-fuse"] if form == "unfused" else []
    report = steps.run("report", command + ["--report=json", "--stop-after=nest"])
    steps.run("tdslc", command + ["-o", place + ".c"])
    steps.run("compile", [a.cc, *a.cflags.split(), "-shared", "-fPIC", place + ".c", "-o", place + ".so", "-lm"])
    return place + ".so", json.loads(report)["kernels"][0]["model"]["chosen"]["total_seconds"]


def nearest(model, measured):
    """The ratio of the model to what was measured, 1 between the two."""
    low, high = min(measured), max(measured)
    return model / high if model > high else model / low if model < low else 1.0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tdslc", default=str(HERE / "build/bin/tdslc"))
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--cflags", default="-O2")
    parser.add_argument("--size", default="small,medium")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("programs", nargs="*")
    a = parser.parse_args()
    sizes = {k: v for k, v in json.loads((HERE / "tests/programs/sizes.json").read_text()).items() if k != "meta"}
    off = count = 0
    print(f"{'program':22} {'size':6} {'form':8} {'model ms':>10} {'memory ms':>10} {'caches ms':>10} {'ratio':>6}   gain: model  measured")
    with tempfile.TemporaryDirectory() as folder:
        timer = os.path.join(folder, "timer")
        steps.run("compile the timer", [a.cc, "-O2", "-I", str(HERE / "runtime/include"), str(HERE / "tests/bench/price_timer.c"), "-o", timer, "-ldl"])
        for name in a.programs or sizes:
            for size in a.size.split(","):
                files, model = zip(*(made(a, folder, name, form, sizes[name][size]) for form in ("chosen", "unfused")))
                out = steps.run("time", [timer, str(a.seconds), name, *files], timeout=None)
                times = [[float(t) for t in line.split()] for line in out.splitlines()]
                for k, form in enumerate(("chosen", "unfused")):
                    ratio = nearest(model[k], times[k])
                    wrong = not 0.5 <= ratio <= 2
                    off, count = off + wrong, count + 1
                    gain = f"   {model[1] / model[0]:11.2f} {times[1][1] / times[0][1]:9.2f}" if k else ""
                    print(f"{name:22} {size:6} {form:8} {model[k] * 1e3:10.4g} {times[k][1] * 1e3:10.4g} {times[k][0] * 1e3:10.4g} {ratio:6.2f}"
                          f"{' *' if wrong else '  '}{gain}", flush=True)
    print(f"{count} forms, {off} off by more than 2")


if __name__ == "__main__":
    sys.exit(main())
