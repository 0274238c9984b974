#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tdslc --explain=CODE for every code: what fails there fails with that code, and what is repaired does not. See cli.py."""
import os
import re
import shlex
import subprocess
import sys

import support
from support import *

# A fault of the compiler's own: no program has it.
NONE = {"E0403"}


def codes():
    text = (ROOT / "compiler/base/diag.def").read_text()
    return re.findall(r'^DIAG\(\w+, "(E\d{4}|-W[\w-]+)"', text, re.M)


def blocks(text):
    """Indented stretches, each as program and commands."""
    for block in re.findall(r"(?:^    .*\n(?:\n(?=    ))?)+", text, re.M):
        lines = [line[4:] for line in block.splitlines()]
        commands = [line[2:] for line in lines if line.startswith("$ ")]
        program = "\n".join(line for line in lines if not line.startswith("$ ")).strip("\n")
        yield program, commands or ["tdslc k.tdsl --stop-after=legal"]


def play(program, commands):
    """What the commands say. They may fail."""
    if program:
        write("k.tdsl", program + "\n")
    said = ""
    for command in commands:
        folders = [os.path.dirname(support.ARGS.tdslc), os.path.dirname(sys.executable), os.environ["PATH"]]  # tdslc; a python3 with NumPy; cc
        environment = {**os.environ, "PATH": os.pathsep.join(folders)}
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=environment, timeout=120, check=False)
        said += done.stderr
        assert done.returncode in (0, 1, 2, 3, 4, 5), (command, done.returncode, done.stderr)
    return said, done.returncode


def wrong_with(code):
    text = tdslc(f"--explain={code}").text
    if not text.startswith(f"{code}: "):
        return [text]
    found = []
    for part, fail in zip(re.split(r"^Repaired", text, maxsplit=1, flags=re.M) + [""], (True, False)):
        tried = list(blocks(part))
        for program, commands in tried:
            said, status = play(program, commands)
            if (f"{code}]" in said) != fail or (status != 0 and not fail):
                found.append(f"{code}: {program}\n{commands}\nexit {status}\n{said}")
        if not tried:
            found.append(f"{code}: nothing {'fails' if fail else 'is repaired'}")
    return found


@test
def every_code_has_what_fails_and_what_is_repaired():
    found = [line for code in share(codes(), 2) if code not in NONE for line in wrong_with(code)]
    assert not found, "\n".join(found)


@test
def a_warning_is_found_by_its_name_too():
    for name in ("spill", "Wspill", "-Wspill"):
        equal(tdslc("--explain=" + name).text, tdslc("--explain=-Wspill").text)
    tdslc("--explain=Wnothing", status=2)
    tdslc("--explain=E9999", status=2)


@test
def the_page_of_all_messages_has_each_code_as_the_compiler_names_it():
    """docs/messages.md: `tdslc explain` prints a code's section. Rows and headings are those of compiler/base/diag.def."""
    page = (ROOT / "docs/messages.md").read_text()
    equal(tdslc("explain", "all").text, page, "docs/messages.md")
    listed = [line.split(None, 1) for line in tdslc("explain").text.splitlines()]
    equal([code for code, _ in listed], codes())
    equal(re.findall(r"^\| \[.*$", page, re.M), [f"| [`{code}`](#{code.lower()}) | {about} |" for code, about in listed])
    equal(re.findall(r"^## (.*)\n\n(.*)\.$", page, re.M), [tuple(row) for row in listed])
    for code in ("E0203", "spill", "-Wspill"):
        equal(tdslc("explain", code).text, tdslc(f"--explain={code}").text)
    assert "no message has the code" in tdslc("explain", "E9999", status=2).messages


sys.exit(main())
