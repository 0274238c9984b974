# SPDX-License-Identifier: Apache-2.0
"""Every C file is laid out as .clang-format says, by the version of clang-format that has always done it: others differ."""
import os
import shutil
import subprocess
import sys
import tree

VERSION = "version 14."


def main():
    a = tree.arguments()
    tool = shutil.which("clang-format-14") or shutil.which("clang-format")
    version = subprocess.run([tool, "--version"], capture_output=True, text=True).stdout if tool else "none"
    if VERSION not in version:
        print(f"skipped: clang-format 14 is wanted, here is {version.strip()}")
        sys.exit(77)
    paths = list(tree.files(a.root, "compiler", "runtime", "tests", "examples", ends=(".c", ".h")))
    result = subprocess.run([tool, "--dry-run", "--Werror", *[os.path.join(a.root, p) for p in paths]],
                            capture_output=True, text=True)
    breaches = sorted({line.split(": error", 1)[0] for line in result.stderr.split("\n") if ": error" in line})
    if result.returncode != 0 and not breaches:
        breaches = [result.stderr.strip() or f"clang-format ended with {result.returncode}"]
    tree.verdict(breaches, len(paths))


main()
