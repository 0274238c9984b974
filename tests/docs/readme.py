#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""readme.py --tree TOP --bin FOLDER --cc CC: what README.md tells a user to type after its first command is typed, line by line, as it
stands there, in a folder that looks like the tree with the tools built; and what README.md and docs/ link to is there."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import steps  # noqa: E402


def lines_to_type(text):
    after = text[re.search(r"^After the first, .*:$", text, re.M).end():]
    block = re.match(r"\n\n((?:    .*\n)+)", after).group(1)
    return [line[4:] for line in block.splitlines()]


def first_command(text):
    return re.search(r"^    (\S+) +# the DF-MP2", text, re.M).group(1)


def type_lines(lines, tree, tools, cc):
    """What was wrong, as lines."""
    with tempfile.TemporaryDirectory() as top:
        os.symlink(tree / "examples", os.path.join(top, "examples"))
        os.mkdir(os.path.join(top, "build"))
        os.symlink(tools, os.path.join(top, "build", "bin"))
        script = "".join(f"{line}\necho \"@@ $?\"\n" for line in lines)
        done = subprocess.run(["sh"], input=script, cwd=top, capture_output=True, text=True, check=False, timeout=300)
        statuses = re.findall(r"^@@ (\d+)$", done.stdout, re.M)
        wrong = [f"{line}: exit status {status}" for line, status in zip(lines, statuses) if status != "0"]
        if len(statuses) != len(lines) or wrong or done.stderr:
            return [*wrong, f"{len(statuses)} of {len(lines)} lines ran", steps.report("the lines", done.args, done)]
        build = os.path.join(top, "build")
        made = sorted(name for name in os.listdir(build) if name != "bin")
        if made != ["A.npy", "C.npy", "mp2.c", "mp2.h", "mp2.tdsl", "trn2"]:
            return [f"the lines made {made}"]
        compiled = subprocess.run([cc, "-c", "mp2.c"], cwd=build, capture_output=True, text=True, check=False)
        return [steps.report("compile", compiled.args, compiled)] if compiled.returncode else []


def missing_links(tree):
    """Links of the documents that lead to no file."""
    for document in [tree / "README.md", *sorted((tree / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\(([\w./-]+\.md)(?:#[^)]*)?\)", document.read_text(encoding="utf-8")):
            if not (document.parent / target).exists():
                yield f"{document.name}: no {target}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tree", type=pathlib.Path, required=True)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--cc", default="cc")
    a = parser.parse_args()
    text = (a.tree / "README.md").read_text(encoding="utf-8")
    lines = lines_to_type(text)
    wrong = [] if first_command(text) == "examples/run" else ["the first command is another"]
    wrong += type_lines(lines, a.tree.resolve(), a.bin.resolve(), a.cc)
    wrong += missing_links(a.tree)
    print(*wrong, f"{len(lines)} lines typed, {len(wrong)} complaints", sep="\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
