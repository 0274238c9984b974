# SPDX-License-Identifier: Apache-2.0
"""Every header compiles alone, twice in a row, without a warning, and has a guard named after its path."""
import os
import re
import subprocess
import tempfile
import tree

FLAGS = "-std=c11 -fsyntax-only -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wundef -Werror"


def main():
    a = tree.arguments()
    found, n = [], 0
    include = [os.path.join(a.root, "compiler"), os.path.join(a.root, "runtime/include"), a.generated]
    with tempfile.TemporaryDirectory() as tmp:
        unit = os.path.join(tmp, "alone.c")
        for path in tree.files(a.root, "compiler", "runtime", ends=(".h",)):
            n += 1
            if not re.search(r"^#ifndef \w+_H\n#define \w+_H$", tree.read(a.root, path), re.M):
                found.append(f"{path}: no include guard")
            if re.search(r"#include <(Python|mpi)\.h>", tree.read(a.root, path)):
                continue  # which need not be there
            full = os.path.abspath(os.path.join(a.root, path))
            with open(unit, "w") as f:
                f.write(f'#include "{full}"\n#include "{full}"\ntypedef int not_empty;\n')
            r = subprocess.run([a.cc, *FLAGS.split(), *[f"-I{d}" for d in include if d], unit],
                               capture_output=True, text=True)
            if r.returncode != 0:
                found.append(f"{path}: does not compile alone\n{r.stderr}")
    tree.verdict(found, n)


main()
