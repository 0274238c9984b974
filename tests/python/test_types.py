# SPDX-License-Identifier: Apache-2.0
"""mypy, where it is installed, accepts right uses of the public functions and the package itself, and refuses wrong uses. Every
public function has annotations and a docstring in any case."""
import importlib.util
import inspect
import os
import subprocess
import sys
import tempfile
import unittest

import tdsl

PACKAGE = os.path.dirname(os.path.abspath(tdsl.__file__))
RIGHT = '''
import numpy as np
import tdsl

a = np.ones((3, 4))
c = tdsl.einsum("ij,kj->ik", a, a, out=np.empty((3, 3)), threads=2, optimize=[(0, 1)])
f: tdsl.Expression = tdsl.expression("ij,jk->ik", (None, 4), a.T, dtype="f64")
r = f(a, a.T, out=c)
p: tdsl.Program = tdsl.compile("kernel k(x: f64[n]) -> (y: f64[n]) { y[i] = x[i]; }", n=3)
k: tdsl.Kernel = p.k
y = k(a, out=None, dims={"n": 3}, threads=1)
text: str = p.dump("nest") + p.c + k.name + k.signature
path: tdsl.Path = tdsl.path("ij,jk", (3, 4), a, memory_limit=100, effort=1)
words: str = path.report() + tdsl.einsum_path("ij,jk", a, (4, 5), optimize=("greedy", 1000))[1]
compiled: int = tdsl.warm([("ij->i", (3, 4)), ("ij->j", a)], jobs=2)
tdsl.background(False)
n: int = path.multiply_adds + sum(step[0] for step in path)
try:
    tdsl.cache_clear()
except tdsl.CompileError as error:
    print(error.code, error.line, error.column, error.text)
except tdsl.ShapeError as error:
    print(error.argument)
'''
WRONG = ['tdsl.einsum("i", threads="2")', 'tdsl.path("i", effort=1.5)', 'tdsl.expression("i", (2,)).nothing', "tdsl.nothing",
         'tdsl.compile("", n="3")', "tdsl.load(3)"]


class Types(unittest.TestCase):
    def mypy(self, *arguments):
        if importlib.util.find_spec("mypy") is None:
            self.skipTest("mypy is not installed")
        env = dict(os.environ)
        if os.path.basename(os.path.dirname(PACKAGE)) != "site-packages":  # where mypy looks itself, and wants to alone
            env["MYPYPATH"] = os.path.dirname(PACKAGE)
        return subprocess.run([sys.executable, "-m", "mypy", "--no-incremental", *arguments], env=env, capture_output=True, text=True, check=False)

    def check(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "use.py")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            return self.mypy("--strict", "--follow-imports=silent", path)

    def test_right_uses(self):
        done = self.check(RIGHT)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_wrong_uses(self):
        done = self.check("import tdsl\n" + "\n".join(WRONG) + "\n")
        self.assertEqual({int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line}, set(range(2, len(WRONG) + 2)), done.stdout)

    def test_the_package(self):
        parts = "_einsum", "_program", "_path", "_errors", "_cache", "_calls", "bench", "nki", "convert._graph", "convert._elements", "convert._jaxpr", "convert._onnx", "convert._equations", \
            "convert._einsum_list", "convert._pdaggerq", "convert.__main__"
        done = self.mypy("--follow-imports=silent", *[word for part in parts for word in ("-m", "tdsl." + part)])
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_annotations_and_docstrings(self):
        for name in tdsl.__all__:
            value = getattr(tdsl, name)
            with self.subTest(name):
                self.assertTrue(value.__doc__)
                if inspect.isfunction(value) and value.__module__ in ("tdsl._einsum", "tdsl._program", "tdsl._path", "tdsl._cache"):
                    parameters = inspect.signature(value).parameters
                    self.assertEqual([p for p in parameters if parameters[p].annotation is inspect.Parameter.empty], [])
                    self.assertIsNot(inspect.signature(value).return_annotation, inspect.Signature.empty)


unittest.main()
