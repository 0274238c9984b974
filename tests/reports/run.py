#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the files beside it, each a small program (or none) whose comments say how it is run and what is right.

usage: run.py FOLDER-OF-TOOLS [FILE...]

    // npy NAME EXPRESSION      writes NAME.npy, what EXPRESSION is in NumPy (np)
    // on TARGET...             the targets that the commands below run on (interp c emulator); none: as it stands
    // $ tdsl-run FILE ...      a command, with FILE for the file itself; every target in turn
    // TEXT                     what the command prints, exactly; `status N` ends with N; `... TEXT ...` a part of a line
"""
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent


def commands(path):
    """(arrays, [(targets, command, expected lines)])"""
    arrays, runs, targets = [], [], [None]
    for line in path.read_text().splitlines():
        if not line.startswith("// "):
            continue
        line = line[3:]
        if line.startswith("npy "):
            name, text = line[4:].split(" ", 1)
            arrays.append((name, text))
        elif line.startswith("on "):
            targets = line[3:].split()
        elif line.startswith("$ "):
            runs.append((targets, line[2:], []))
        elif runs:
            runs[-1][2].append(line)
    return arrays, runs


def check(path, command, target, expected, folder, environment):
    words = [str(path) if w == "FILE" else w for w in shlex.split(command)]
    if target is not None:
        words.append(f"--target={target}")
    result = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
    printed = (result.stdout + result.stderr).splitlines()
    status = 0
    faults = []
    for line in expected:
        if line.startswith("status "):
            status = int(line[7:])
        elif line.startswith("... "):
            if not any(line[4:-4] in p for p in printed):
                faults.append(line)
        elif line not in [p.strip() for p in printed]:
            faults.append(line)
    if result.returncode != status:
        faults.append(f"status {status}, not {result.returncode}")
    if faults:
        print(f"{path.name}: {shlex.join(words)}\n  expected " + "\n  expected ".join(faults))
        print("  printed  " + "\n           ".join(printed[:12]))
    return not faults


def main():
    environment = dict(os.environ, PATH=f"{Path(sys.argv[1]).resolve()}{os.pathsep}{os.environ['PATH']}")
    files = [Path(f).resolve() for f in sys.argv[2:]] or sorted(HERE.glob("*.tdsl"))
    ran = failed = 0
    for path in files:
        arrays, runs = commands(path)
        if not runs or not all(r[2] for r in runs):
            sys.exit(f"{path.name} says no command, or not what is right")
        with tempfile.TemporaryDirectory() as folder:
            for name, text in arrays:
                np.save(Path(folder) / f"{name}.npy", eval(text, {"np": np}))
            for targets, command, expected in runs:
                for target in targets:
                    ran += 1
                    failed += not check(path, command, target, expected, folder, environment)
    print(f"{ran - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
