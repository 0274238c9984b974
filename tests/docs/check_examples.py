#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples of a document are compiled: check_examples.py --tdslc PATH DOC.md ...

Each fenced block whose info string begins with `tdsl` goes through `tdslc --stop-after=graph`, and must pass without
a message. More words in the info string: `error=E0203` it must be refused, with that code (several codes, commas
between: with each of them); `warning=silent-sum` that warning must be given; `same` it must have the same graph
as the block before. A block `sh` whose lines begin with `tdslc ` is run: `# E0302` at the end of a line names the error, else it passes.
"""
import argparse
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile


def blocks_of(path):
    """(line, words of the info string, text) of each fenced block."""
    fence, lines = None, []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if line.startswith("```"):
            if fence is None:
                fence, lines = (number, line[3:].split()), []
            else:
                yield (*fence, "\n".join(lines) + "\n")
                fence = None
        elif fence is not None:
            lines.append(line)


def compile_text(tdslc, text, *options):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "example.tdsl"
        file.write_text(text, encoding="utf-8")
        return subprocess.run([tdslc, *options, file.name], cwd=folder, timeout=60,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def graph_lines(done):
    """A graph dump without what differs between two spellings: places, names of indices, signatures and statements."""
    kept = [re.sub(r"( named \[[^\]]*\])?( at .*)?$", "", line) for line in done.stdout.split("\n")]
    return [line for line in kept if not line.lstrip().startswith(("signature", "statement"))]


def judge(done, words):
    """None, or what is wrong."""
    wanted = dict(word.split("=", 1) for word in words if "=" in word)
    if "error" in wanted:
        missing = [c for c in wanted["error"].split(",") if f"[{c}]" not in done.stderr]
        if done.returncode not in (1, 4) or missing:
            return f"expected {wanted['error']}, exit 1 or 4"
    elif done.returncode != 0:
        return "refused"
    elif "warning" in wanted:
        if f"[-W{wanted['warning']}]" not in done.stderr:
            return f"expected a warning {wanted['warning']}"
    elif done.stderr:
        return "unexpected message"
    return None


def run_shell(tdslc, text):
    """Runs the tdslc lines of a shell block."""
    count = 0
    for line in text.split("\n"):
        if not line.startswith("tdslc "):
            continue
        command, _, code = line.partition(" # ")
        done = subprocess.run([tdslc, *shlex.split(command)[1:], "--stop-after=graph"], timeout=60,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        wrong = judge(done, [f"error={code.strip()}"] if code else ["warning=silent-sum"]
                      if "[-W" in done.stderr else [])
        count += 1
        if wrong:
            print(f"  {line}\n  {wrong}\n{done.stderr}")
            return count, wrong
    return count, None


def check(tdslc, path):
    failed = count = 0
    before = None
    for line, words, text in blocks_of(path):
        if words[:1] == ["sh"]:
            ran, wrong = run_shell(tdslc, text)
            count += ran
        elif words[:1] == ["tdsl"]:
            done = compile_text(tdslc, text, "--dump=graph", "--stop-after=graph")
            wrong = judge(done, words)
            graph = graph_lines(done)
            if not wrong and "same" in words and graph != before:
                wrong = "not the same graph as the block before"
            before = graph
            count += 1
            if wrong:
                print(done.stderr)
        else:
            continue
        if wrong:
            failed += 1
            print(f"FAIL {path}:{line}: {' '.join(words)}: {wrong}")
    print(f"{path}: {count} examples, {failed} failed")
    return count > 0 and failed == 0


def main():
    parser = argparse.ArgumentParser(description="compiles the examples of documents")
    parser.add_argument("--tdslc", required=True)
    parser.add_argument("documents", nargs="+")
    args = parser.parse_args()
    tdslc = str(pathlib.Path(args.tdslc).resolve())
    results = [check(tdslc, pathlib.Path(document)) for document in args.documents]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
