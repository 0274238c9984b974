#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""conventions.py --bin FOLDER PAGE.md: every option in backticks is one of the tools', and kinds of output are those that there are."""
import argparse
import pathlib
import re
import subprocess
import sys


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--bin", type=pathlib.Path, required=True)
    p.add_argument("page", type=pathlib.Path)
    a = p.parse_args()
    known = "".join(subprocess.run([a.bin / tool, "--help"], capture_output=True, text=True, check=True).stdout for tool in ("tdslc", "tdsl-run"))
    text = a.page.read_text(encoding="utf-8")
    options = set(re.findall(r"`(--?[A-Za-z][\w-]*)", text))
    wrong = [option for option in sorted(options) if option not in ("-O", "-c", "-S") and not re.search(rf"(?<![\w-]){option}\b", known)]
    kinds = re.search(r"--emit=KIND +(.*): what", known).group(1)
    wrong += [f"--emit={kind}" for kind in re.findall(r"--emit=([\w-]+)", text) if kind not in re.split(r"\W*, ", kinds)]
    print(f"{len(options)} options", *wrong, sep="\n")
    sys.exit(1 if wrong or len(options) < 15 else 0)


main()
