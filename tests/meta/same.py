# SPDX-License-Identifier: Apache-2.0
"""Numbers that stand in several languages are the same in all of them."""
import ast
import os
import re
import sys

# What it is: files, and what stands before the number there.
NUMBERS = {
    "bound of integer arguments on a device": (
        ("compiler/lower/integers.h", r"#define INTEGERS_EXACT (.+)", 1 / 4),
        ("runtime/src/integers.c", r"#define INTEGERS_GIVEN (.+)", 1),
        ("runtime/python/tdsl/_nki_dispatch.py", r"^_INTEGERS = ([^#]+)", 1),
    ),
}


def number(root, path, before):
    with open(os.path.join(root, path), encoding="utf-8") as stream:
        found = re.search(before, stream.read(), re.MULTILINE)
    if found is None:
        return f"{path}: nothing like {before}"
    left, _, right = re.sub(r"\w+\((\d+)\)", r"\1", found.group(1).strip(" ()")).partition("<<")
    return ast.literal_eval(left.strip()) << int(right or 0)


def main():
    wrong = 0
    for name, places in NUMBERS.items():
        values = [number(sys.argv[1], path, before) for path, before, _ in places]
        if any(isinstance(v, str) for v in values) or len({v * by for v, (_, _, by) in zip(values, places)}) != 1:
            wrong += 1
            print(f"{name}: {dict(zip([p for p, _, _ in places], values))}")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
