# SPDX-License-Identifier: Apache-2.0
"""The python blocks of docs/python.md, docs/trntensor.md, docs/trnblas.md, docs/trnsolver.md, docs/trnfft.md,
docs/trnsparse.md and docs/distributed.md, one after the other in one namespace for each page, and that of README. Those whose info string
ends in "needs PACKAGE" run where that is installed."""
import importlib.util
import os
import re
import unittest

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


def blocks(name):
    """(line, text) of each python block."""
    with open(os.path.join(TOP, name), encoding="utf-8") as f:
        text = f.read()
    found = re.finditer(r"^```python(?: needs (\w+))?\n(.*?)^```$", text, re.M | re.S)
    return [(text.count("\n", 0, m.start(2)), m[2]) for m in found if m[1] is None or importlib.util.find_spec(m[1])]


class Docs(unittest.TestCase):
    def run_blocks(self, name, least):
        found = blocks(name)
        self.assertGreaterEqual(len(found), least)
        names = {}
        for line, text in found:
            with self.subTest(f"{name}:{line}"):
                exec(compile("\n" * line + text, name, "exec"), names)

    def test_python_md(self):
        self.run_blocks("docs/python.md", 9)

    def test_trntensor_md(self):
        self.run_blocks("docs/trntensor.md", 2)

    def test_trnblas_md(self):
        self.run_blocks("docs/trnblas.md", 2)

    def test_trnsolver_md(self):
        self.run_blocks("docs/trnsolver.md", 2)

    def test_trnfft_md(self):
        self.run_blocks("docs/trnfft.md", 2)

    def test_trnsparse_md(self):
        self.run_blocks("docs/trnsparse.md", 3)
        with self.assertRaisesRegex(ImportError, "docs/trnsparse.md"):
            import tdsl.trnsparse  # noqa: F401

    def test_distributed_md(self):
        self.run_blocks("docs/distributed.md", 1)

    def test_readme(self):
        os.chdir(TOP)
        self.run_blocks("README.md", 1)


unittest.main()
