# SPDX-License-Identifier: Apache-2.0
"""Says which tests were skipped, and why: skipped.py FILE.xml..., as `ctest --output-junit` writes them. The reason is the last line that a test printed with
the word "skipped" or "no", else the last one. Programs of unittest that passed with tests left out are named too."""
import re
import sys
import xml.etree.ElementTree as ElementTree


def reason(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if re.match(r"(skipped|no)\b", line)]
    return (told or lines or ["it does not say why"])[-1]


def skipped_in(path):
    """(test, reason) of each."""
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        text = case.findtext("system-out") or ""
        if case.find("skipped") is not None:
            yield case.get("name"), reason(text)
        elif re.search(r"^OK \(skipped=\d+\)$", text, re.M):
            yield case.get("name"), "passed but for: " + "; ".join(sorted(set(re.findall(r"\bskipped ['\"](.*)['\"]$", text, re.M))) or ["some tests"])


def main(paths):
    found = {}
    for path in paths:
        found.update(skipped_in(path))
    if found:
        print(f"== skipped: {len(found)} tests")
    for name, why in sorted(found.items()):
        print(f"   {name}: {why}")


if __name__ == "__main__":
    main(sys.argv[1:])
