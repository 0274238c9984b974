# SPDX-License-Identifier: Apache-2.0
"""No target is named outside its folder: what a target can do is numbers in its Machine, never an `if` on a
name. The op table alone may hold a column per target language."""
import os
import re
import tree

# Words that belong to a back end, beside the folder's own name. A folder with a name too common to search for
# (c, null) is looked for as an include and as a function prefix only.
WORDS = {"nki": r"nki|trn[0-9]\w*|neuron\w*|sbuf|psum"}
ALLOWED = {"compiler/op/ops.def", "compiler/op/op.h", "compiler/op/op.c"}


def patterns(backends):
    for b in backends:
        yield b, re.compile(rf'#\s*include\s+"backend/{b}/')
        yield b, re.compile(rf"\b(?:target_{b}|{b}_target)\b")
        if b in WORDS:
            yield b, re.compile(rf"(?<![A-Za-z])(?:{WORDS[b]})(?![a-z])", re.I)


def main():
    a = tree.arguments()
    home = os.path.join(a.root, "compiler/backend")
    backends = sorted(os.listdir(home)) if os.path.isdir(home) else []
    rules = list(patterns(sorted(set(backends) | set(WORDS))))
    found, n = [], 0
    for path in tree.files(a.root, "compiler", ends=(".c", ".h", ".def")):
        if path in ALLOWED:
            continue
        n += 1
        for number, line in enumerate(tree.without_comments(tree.read(a.root, path)).split("\n"), 1):
            for backend, rule in rules:
                if path.startswith(f"compiler/backend/{backend}/"):
                    continue
                if rule.search(line):
                    found.append(f"{path}:{number}: names {backend}: {line.strip()}")
    tree.verdict(found, n)


main()
