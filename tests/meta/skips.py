# SPDX-License-Identifier: Apache-2.0
"""A test that may be skipped says why: next to where it ends with 77 it prints a line that begins with "skipped" or "no". And the end of the gate finds these lines."""
import os
import re
import subprocess
import sys
import tempfile
import tree

END = re.compile(r"\b(?:exit\(|return )(?:77|SKIPPED)\b")
SAYS = re.compile(r"""(?:print|write)\(f?["'](?:skipped|no )|else "no |== SKIPPED:""")
RESULTS = """<testsuite>
<testcase name="a.passed" status="run"><system-out>skipped: only a word
1 passed</system-out></testcase>
<testcase name="b.skipped" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/><system-out>begin
skipped: no gdb
</system-out></testcase>
<testcase name="c.silent" status="notrun"><skipped/><system-out></system-out></testcase>
<testcase name="d.units" status="run"><system-out>test_x ... skipped 'no torch'
OK (skipped=1)
</system-out></testcase>
</testsuite>"""
WANTED = """== skipped: 3 tests
   b.skipped: skipped: no gdb
   c.silent: it does not say why
   d.units: passed but for: no torch
"""


def silent(lines):
    """Lines that end as skipped without a reason in the six lines before."""
    for k, line in enumerate(lines):
        if END.search(line) and not any(SAYS.search(near) for near in lines[max(0, k - 6):k + 1]):
            yield k + 1


def main():
    a = tree.arguments()
    paths = [path for path in tree.files(a.root, "tests", ends=".py") if os.path.basename(path) != os.path.basename(__file__)]
    breaches = [f"{path}:{line}: skipped without a reason" for path in paths for line in silent(tree.read(a.root, path).splitlines())]
    with tempfile.NamedTemporaryFile("w", suffix=".xml", encoding="utf-8") as f:
        f.write(RESULTS)
        f.flush()
        said = subprocess.run([sys.executable, "-B", os.path.join(a.root, "tests/support/skipped.py"), f.name], capture_output=True, text=True, check=True).stdout
    if said != WANTED:
        breaches.append(f"tests/support/skipped.py says {said!r}")
    tree.verdict(breaches, len(paths))


main()
