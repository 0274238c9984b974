# SPDX-License-Identifier: Apache-2.0
"""What else lists the element types has those of compiler/op/types.def, in their order: the ABI's numbers, libtdsl and the Python
package. (tests/driver/format.py compares the editors' grammars.)"""
import re
import tree


def main():
    a = tree.arguments()
    rows = [re.findall(r'"[^"]*"|[^\s,()]+', row) for row in re.findall(r"^TYPE\((.*)\)$", tree.read(a.root, "compiler/op/types.def"), re.M)]
    names = [row[1].strip('"') for row in rows]
    found = []

    def same(path, what, there, wanted):
        if there != wanted:
            found.append(f"{path}: {what} {there}, and op/types.def has {wanted}")

    abi = tree.read(a.root, "runtime/include/tdsl/abi.h")
    abi = re.findall(r"TDSL_(\w+) = (\d+)", abi[abi.index("typedef enum tdsl_dtype"):abi.index("} tdsl_dtype")])
    same("runtime/include/tdsl/abi.h", "tdsl_dtype", abi, [(row[0], str(k + 1)) for k, row in enumerate(rows)])
    library = re.findall(r'\[TDSL_(\w+)\] = \{"(\w+)", (\d+), \d+\}', tree.read(a.root, "runtime/src/dtype.c"))
    same("runtime/src/dtype.c", "the rows", library, [(row[0], name, row[3]) for row, name in zip(rows, names)])
    arrays = tree.read(a.root, "runtime/python/tdsl/_arrays.py")
    same("runtime/python/tdsl/_arrays.py", "NAMES", re.findall(r'(\d+): "(\w+)"', re.search(r"^NAMES = \{(.*?)\}", arrays, re.M | re.S)[1]),
         [(str(k + 1), name) for k, name in enumerate(names)])
    tree.verdict(found, len(rows))


main()
