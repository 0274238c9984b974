# SPDX-License-Identifier: Apache-2.0
"""Programs as shared libraries, for the C programs of these tests."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import steps  # noqa: E402


def compiled(tdslc, cc, source, *options, optimize="-O1"):
    """The path of the library of a file, beside its C, which names it without its folder: then ccache knows the text again."""
    c, made = source.with_suffix(".c"), source.with_suffix(".so")
    steps.run("tdslc", [tdslc, "-w", source.name, "-o", c.name, *options], cwd=source.parent)
    steps.run("C compiler", [*cc.split(), optimize, "-shared", "-fPIC", "-o", made, c, "-lm"])
    return made


def dims_of(made, symbol):
    """Names of the open dims of a kernel of a library, in the order of its calls."""
    header = made.with_suffix(".h").read_text()
    return re.findall(r"int64_t (\w+)", re.search(rf"{symbol}_workspace_bytes\((.*?)\);", header, re.S).group(1))
