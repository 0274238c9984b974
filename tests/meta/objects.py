# SPDX-License-Identifier: Apache-2.0
"""No macro on a compiler's command line holds an absolute path, but for one file: every other object is the same in every checkout, and so
comes from ccache."""
import json
import os
import re
import shlex
import tree

PLACES = {"tests/support/places.c"}


def main():
    a = tree.arguments()
    with open(os.path.join(os.path.dirname(a.generated), "compile_commands.json"), encoding="utf-8") as f:
        commands = json.load(f)
    found = []
    for entry in commands:
        file = os.path.relpath(entry["file"], a.root)
        for word in shlex.split(entry["command"]):
            if re.match(r'-D\w+="?/', word) and file not in PLACES:
                found.append(f"{file}: {word}")
    tree.verdict(found, len(commands))


main()
