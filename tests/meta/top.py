# SPDX-License-Identifier: Apache-2.0
"""The top of the repository holds what docs/architecture.md names and nothing else."""
import os
import shutil
import subprocess
import sys
import tree

TOP = {"CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md", "compiler", "runtime", "grammar", "examples", "tests", "docs"}


def main():
    a = tree.arguments()
    if not os.path.exists(os.path.join(a.root, ".git")) or not shutil.which("git"):
        print("skipped: no git checkout, or no git; so what is a stray and what a user's file cannot be told")
        sys.exit(77)
    listed = subprocess.run(["git", "-c", "safe.directory=*", "-C", a.root, "ls-files", "-z"], capture_output=True, text=True, check=True).stdout
    names = {path.split("/", 1)[0] for path in listed.split("\0") if path}
    tree.verdict([f"{name}: not of the top folder" for name in sorted(names - TOP) if not name.startswith(".")], len(names))


main()
