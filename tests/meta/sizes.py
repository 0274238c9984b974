# SPDX-License-Identifier: Apache-2.0
"""Files stay under 800 lines and say what they are; long functions are listed (advice, not a failure)."""
import re
import tree

FILE_LIMIT = 800
FUNCTION_LIMIT = 60
SPDX = "SPDX-License-Identifier: Apache-2.0"


def long_functions(text):
    """(line, length) of each function body that is longer than the limit: '{' and '}' in column 0."""
    start = None
    for number, line in enumerate(text.split("\n"), 1):
        if line == "{":
            start = number
        elif line == "}" and start is not None:
            if number - start - 1 > FUNCTION_LIMIT:
                yield start, number - start - 1
            start = None


def main():
    a = tree.arguments()
    found, n = [], 0
    for path in tree.files(a.root, "compiler", "runtime", "grammar", "tests", "examples",
                           ends=(".c", ".h", ".def", ".l", ".y", ".py", ".cmake", "CMakeLists.txt")):
        if "/data/" in path or "/corpus/" in path:
            continue
        text = tree.read(a.root, path)
        if text == "":
            continue
        n += 1
        lines = text.count("\n")
        if lines > FILE_LIMIT:
            found.append(f"{path}: {lines} lines, the limit is {FILE_LIMIT}")
        if SPDX not in "\n".join(text.split("\n")[:5]):
            found.append(f"{path}: no SPDX line at the top")
        if path.endswith(".c") and not re.search(r"/\*.*\w.*", text.split("\n", 1)[1][:200]):
            found.append(f"{path}: does not begin by saying what it is")
        for line, length in long_functions(text):
            print(f"advice: {path}:{line}: a function of {length} lines")
    tree.verdict(found, n)


main()
