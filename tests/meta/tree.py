# SPDX-License-Identifier: Apache-2.0
"""What the meta tests share: the arguments, the files of the tree, C text without comments, and the verdict."""
import argparse
import os
import re
import sys


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("root")
    p.add_argument("--cc", default="cc")
    p.add_argument("--generated", default="")
    return p.parse_args()


def files(root, *tops, ends):
    """Paths relative to root, sorted, below the given top folders."""
    for top in tops:
        for folder, subs, names in os.walk(os.path.join(root, top)):
            subs.sort()
            for name in sorted(names):
                if name.endswith(ends) and not name.startswith("."):
                    yield os.path.relpath(os.path.join(folder, name), root)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as f:
        return f.read()


TOKEN = re.compile(r"""/\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'""", re.S | re.X)


def without_comments(text):
    """Comments become blanks; lines and strings stay where they are."""
    def blank(m):
        s = m.group()
        return s if s[0] in "\"'" else re.sub(r"[^\n]", " ", s)
    return TOKEN.sub(blank, text)


def verdict(breaches, looked_at):
    for b in breaches:
        print(b)
    if looked_at == 0:
        print("nothing was looked at: the test is broken")
    print(f"{looked_at} looked at, {len(breaches)} breaches")
    sys.exit(1 if breaches or looked_at == 0 else 0)
