# SPDX-License-Identifier: Apache-2.0
"""No target is named outside its folder: what a target can do is numbers in its Machine, never an `if` on a
name. The op table alone may hold a column per target language."""
import os
import re
import tree

# A back end is a folder with a target.c. It is looked for as an include and as a function prefix; and by the words in the
# words.list of its folder, one pattern a line, which are its own.
ALLOWED = {"compiler/op/ops.def", "compiler/op/op.h", "compiler/op/op.c", "compiler/op/types.def", "compiler/op/types.h", "compiler/op/types.c"}


def words_of(folder):
    path = os.path.join(folder, "words.list")
    return open(path, encoding="utf-8").read().split() if os.path.exists(path) else []


def patterns(home, backends):
    for b in backends:
        words = words_of(os.path.join(home, b))
        yield b, re.compile(rf'#\s*include\s+"backend/{b}/')
        yield b, re.compile(rf"\b(?:target_{b}|{b}_target)\b")
        if words:
            yield b, re.compile(rf"(?<![A-Za-z])(?:{'|'.join(words)})(?![a-z])", re.I)


def main():
    a = tree.arguments()
    home = os.path.join(a.root, "compiler/backend")
    backends = [b for b in sorted(os.listdir(home)) if os.path.exists(os.path.join(home, b, "target.c"))]
    rules = list(patterns(home, backends))
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
