#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels of the repository compiled for Trainium, with extents as they are typical, small, odd, 0 and missing, for each generation, one
core and two, f64 as it stands, as sums and as f32: tdslc ends with a code that it documents, never by a signal, never with a fault of its own
(E0401), and in time.

    sweep.py --bin DIR [--seed N] [--count N] [--seconds S] [FILE.tdsl ..]

A sample of --count at each run, all of them with --count=0."""
import argparse
import glob
import json
import os
import random
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
from quick import GATE  # noqa: E402

FOLDERS = ("tests/backend/nki", "tests/programs", "tests/reports", "tests/data", "tests/random", "examples/**")
OWN = os.path.join(HERE, "sweep.tdsl")
TARGETS = [["--target=trn2"], ["--target=trn2", "--lnc=2"], ["--target=trn3", "--lnc=2", "--f64=sums"], ["--target=trn1", "--f64=f32"],
           ["--target=trn1", "--f64=sums"]]
STATUS = (0, 1, 4)   # docs/tools.md: made, refused, beyond a limit


def kernels_of(tdslc, file):
    """Of some files only a part compiles without more options; of our own all do."""
    done = subprocess.run([tdslc, file, "-w", "--emit=manifest"], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0 and file == OWN:
        sys.exit(f"FAILED {file}: {done.stderr}")
    return json.loads(done.stdout)["kernels"] if done.returncode == 0 else []


def extents_of(kernel):
    dims = kernel["dims"]
    yield "typical", [f"-D{d['name']}={d['typical']}" for d in dims]
    if dims:
        yield "small", [f"-D{d['name']}={min(d['typical'], 24)}" for d in dims]
        yield "odd", [f"-D{d['name']}={5 + 2 * i}" for i, d in enumerate(dims)]
        yield "zero", [f"-D{d['name']}={0 if i == 0 else 3}" for i, d in enumerate(dims)]
        yield "missing", []


def fault(command, seconds):
    """What is wrong with how the command ends; empty: nothing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return f"takes more than {seconds} s"
    if done.returncode < 0:
        return f"ends by signal {-done.returncode}"
    if "E0401" in done.stderr:
        return f"its own check refuses it: {done.stderr[:300]}"
    return "" if done.returncode in STATUS else f"ends with {done.returncode}: {done.stderr[:300]}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    tdslc = os.path.join(options.bin, "tdslc")
    files = options.files or sorted({f for folder in FOLDERS for f in glob.glob(os.path.join(ROOT, folder, "*.tdsl"), recursive=True)})
    tries = [(file, kernel["name"], how, [*target, *words]) for file in files for kernel in kernels_of(tdslc, file)
             for how, words in extents_of(kernel) for target in TARGETS]
    always = [t for t in tries if t[0] == OWN]
    others = [t for t in tries if t[0] != OWN]
    if options.count:
        others = random.Random(options.seed).sample(others, min(options.count // (2 if GATE else 1), len(others)))
    failed = 0
    for file, kernel, how, words in always + others:
        why = fault([tdslc, file, "-w", f"--kernel={kernel}", "--stop-after=legal", *words], options.seconds)
        if why:
            failed += 1
            print(f"FAILED {os.path.relpath(file, ROOT)} {kernel}, extents {how}, {' '.join(words)}: {why}")
    print(f"{len(always) + len(others)} of {len(tries)} compilations, {failed} wrong")
    if len(tries) < (1000 if not options.files else 1):
        print("FAILED: too few kernels were found")
        failed += 1
    return 1 if failed else 0


sys.exit(main())
