#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stages.py --tdslc PATH PAGE.md: each block `text stage=STAGE` of a page shows lines of what tdslc prints at that stage (`c`: of the C) for the program of
the page, in their order. Places (`at 4:12`), names (`named [...]`), symmetries and ends of long lines may be left out."""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile


def plain(line):
    return re.sub(r"\s+", " ", re.sub(r" (as \w+|named \[[^]]*\]|at \d+:\d+|sym\([^)]*\))", "", line)).strip()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--tdslc", type=pathlib.Path, required=True)
    p.add_argument("page", type=pathlib.Path)
    a = p.parse_args()
    text = a.page.read_text(encoding="utf-8")
    name, program = re.search(r"^```tdsl (\S+)\n(.*?)^```$", text, re.M | re.S).groups()
    wrong, count = [], 0
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, name).write_text(program, encoding="utf-8")
        for stage, shown in re.findall(r"^```text stage=(\w+)\n(.*?)^```$", text, re.M | re.S):
            options = [] if stage == "c" else [f"--dump={stage}"]
            done = subprocess.run([a.tdslc.resolve(), name, *options], cwd=folder, capture_output=True, text=True, check=True)
            printed = iter([plain(line) for line in done.stdout.splitlines()])
            for line in shown.splitlines():
                count += 1
                start = plain(line).rstrip("{ ")
                if not any(found.startswith(start) for found in printed):
                    wrong.append(f"{stage}: not there, or not in this order: {line.strip()}")
                    break
    print(*wrong, f"{count} lines looked for", sep="\n")
    sys.exit(1 if wrong or count < 40 else 0)


main()
