# SPDX-License-Identifier: Apache-2.0
"""Programs made from lists of einsum calls and from what pdaggerq gives compute what NumPy computes, in whole numbers exactly. What is unknown is named."""
import itertools
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import tdsl

RANDOM = np.random.default_rng(3)
SIZE = {"o": 3, "v": 4}
SPACE = {**{c: "o" for c in "ijklmno"}, **{c: "v" for c in "abcdefg"}}


def whole(*shape):
    return RANDOM.integers(-3, 4, shape).astype(np.float64)


SOURCE = '''
def residual(t, W, F, g, o, v):
    """A docstring, and a comment."""
    X = np.einsum("ikac,kbcj->ijab", t, W, optimize=True)  # a ring
    R = 2.0 * np.einsum("ijcd,cdab->ijab", t, g[v, v, v, v]) + X - X.transpose(1, 0, 2, 3)
    R -= 3 * np.einsum("ki,kjab->ijab", F, t)
    R += np.transpose(X, (1, 0, 3, 2)) / 2 + X.conj()
    X = np.einsum("ijab->ij", R)
    e = 0
    e += np.einsum("ij,ij", X, X.T)
    e -= np.einsum("ii", X)
    D = X * F / 4 + F.T.copy()
    return R, e, D
'''


class EinsumLists(unittest.TestCase):
    def test_a_function(self):
        made = tdsl.from_einsum_list(SOURCE, dims={"ijkl": "o", "abcd": "v"})
        o, v = 3, 2
        t, W, F, g = whole(o, o, v, v), whole(o, v, v, o), whole(o, o), whole(v, v, v, v)
        names = {"np": np}
        exec(SOURCE, names)
        want = names["residual"](t, W, F, {(v, v, v, v): g}, o, v)
        got = made.compile().residual(t, W, g, F)
        for mine, theirs in zip(got, want):
            np.testing.assert_array_equal(mine, theirs, made.text)
        self.assertIn('''\
kernel residual(
    t: f64[o, o, v, v], W: f64[o, v, v, o], g_vvvv: f64[v, v, v, v], F: f64[o, o])
    -> (R: f64[o, o, v, v], e: f64, D: f64[o, o]) {
    // X = np.einsum("ikac,kbcj->ijab", t, W, optimize=True)
    X[i,j,a,b] = t[i,k,a,c] * W[k,b,c,j];
    // R = 2.0 * np.einsum("ijcd,cdab->ijab", t, g[v, v, v, v]) + X - X.transpose(1, 0, 2, 3)
    R[i,j,a,b] = 2 * t[i,j,c,d] * g_vvvv[c,d,a,b] + X[i,j,a,b] - X[j,i,a,b];
''', made.text)

    def test_pairs(self):
        made = tdsl.from_einsum_list([("ij,jk->ik", ["A", "B", "T"]), ("ik,kl->il", "T C R"), "s = einsum('ij->', R)"], name="chain", dtype="f32", results=["R", "s"], dims={"k": 5})
        A, B, C = (whole(*s).astype(np.float32) for s in ((2, 3), (3, 5), (5, 4)))
        R, s = made.compile().chain(A, B, C)
        np.testing.assert_array_equal(R, A @ B @ C)
        self.assertEqual(s, (A @ B @ C).sum())
        self.assertIn("kernel chain(A: f32[ni, nj], B: f32[nj, 5], C: f32[5, nl]) -> (R: f32[ni, nl], s: f32) {", made.text)

    def test_an_argument_that_is_changed(self):
        made = tdsl.from_einsum_list("R += einsum('ij,j->i', A, x)\nS = R * R", name="f")
        A, x, R = whole(3, 4), whole(4), whole(3)
        want = R + A @ x
        np.testing.assert_array_equal(made.compile().f(A, x, R), want * want)
        np.testing.assert_array_equal(R, want)

    def test_unknown(self):
        with self.assertRaises(tdsl.ConversionError) as caught:
            tdsl.from_einsum_list("a = sorted(b)\nfor i in x:\n    pass\nR = einsum('i...->i', A)\nQ = einsum('ij,jk', A)\nx[0] = 1\nz = y*y\nw = A @ B\nu = einsum('ij', A, out=b)")
        self.assertEqual(str(caught.exception), """\
einsum list: 8 things have no translation into the language:
  line 1: a = sorted(b): the call sorted
  line 2: for i in x:: a statement of this kind (For)
  line 4: R = einsum('i...->i', A): an ellipsis: the axes under it have no labels
  line 5: Q = einsum('ij,jk', A): 'ij,jk' has 2 operands, and 1 are given
  line 6: x[0] = 1: an assignment to something else than one name
  line 7: z = y*y: how many axes y has is not said before
  line 8: w = A @ B: A @ B: the operation MatMult
  line 9: u = einsum('ij', A, out=b): the keyword out of einsum""")
        for steps, message in ((["a = ("], "step 1, line 1: no statement of Python"), ([("ij->i", ["A"])], "so 2 names are needed"), ([3], "neither a pair"), ("", "no statements"),
                               ("R = einsum('ij->i', A)\nS = einsum('i->i', A)", "A has 2 axes, and 'i' has 1"), ("R = einsum('ij->ik', A)", "the string 'ij->ik'")):
            self.assertRaisesRegex(tdsl.ConversionError, message, tdsl.from_einsum_list, steps)
        self.assertRaisesRegex(tdsl.ConversionError, "axis 0 of A has the extents o and v", tdsl.from_einsum_list, "R = einsum('ij->i', A)\nS = einsum('ab->b', A)", dims={"i": "o", "ab": "v"})


    def test_hostile_texts(self):
        for text in ("R = " + "(" * 500 + "a" + ")" * 500, "R = " + "-" * 100000 + "1", "R = a\0b", "R = " + "+".join(["einsum('i->i',A)"] * 3000), "R = " + "1/" * 50000 + "1",
                     "R = 1e999 * einsum('i->i', A)", "R = einsum('i->i', A) / 1e-320", "\xff"):
            self.assertRaises(tdsl.ConversionError, tdsl.from_einsum_list, text)


CCSD = """
    < 0 | m* n* f e e(-T) H e(T) | 0> :
['-1.00000000000000', 'P(m,n)', 'f(i,n)', 't2(e,f,m,i)']
['+1.00000000000000', 'P(e,f)', 'f(e,a)', 't2(a,f,m,n)']
['-1.00000000000000', 'P(e,f)', 'f(i,a)', 't1(e,i)', 't2(a,f,m,n)']
['+1.00000000000000', '<e,f||m,n>']
['+0.50000000000000', '<j,i||m,n>', 't2(e,f,j,i)']
['+1.00000000000000', 'P(m,n)', 'P(e,f)', '<i,e||a,n>', 't2(a,f,m,i)']
['+0.25000000000000', '<j,i||a,b>', 't2(a,b,m,n)', 't2(e,f,j,i)']
['-0.50000000000000', 'P(m,n)', '<j,i||a,b>', 't2(a,b,n,i)', 't2(e,f,m,j)']
['+1.00000000000000', '<j,i||a,b>', 't1(a,n)', 't1(b,m)', 't1(e,i)', 't1(f,j)']
['+1.00000000000000', 'PP2(m,e,n,f)', '<i,e||a,m>', 't2(a,f,i,n)']
"""


def evaluate(terms, labels, arrays):
    """The sum of the terms by NumPy, permutations written out."""
    total = 0
    for number, *words in terms:
        images, factors = [(1, {})], []
        for word in words:
            name, inside = word.rstrip(")").split("(") if "(" in word else (word, "")
            if name in ("P", "PP2", "PP3", "PP6"):
                x = inside.split(",")
                groups = [x[:1], x[1:]] if name == "P" else [x[k:k + 2] for k in range(0, len(x), 2)]
                orders = [(0, 1, 2), (1, 0, 2), (2, 1, 0)] if name == "PP3" else list(itertools.permutations(range(len(groups))))
                swaps = [(-1 if name == "P" and order == (1, 0) else 1, {a: b for k, n in enumerate(order) for a, b in zip(groups[k], groups[n])}) for order in orders]
                images = [(s * sign, {c: m.get(swap.get(c, c), swap.get(c, c)) for c in {*swap, *m}}) for s, m in images for sign, swap in swaps]
            elif word.startswith("<"):
                letters = word.strip("<>").replace("||", ",").split(",")
                factors.append(("g_" + "".join(SPACE[c] for c in letters), letters))
            else:
                letters = inside.split(",")
                factors.append((name if name[0] != "f" else "f_" + "".join(SPACE[c] for c in letters), letters))
        for sign, image in images:
            strings = ",".join("".join(image.get(c, c) for c in letters) for _, letters in factors)
            total = total + sign * float(number) * np.einsum(f"{strings}->{''.join(labels)}", *(arrays[name] for name, _ in factors))
    return total


class Pdaggerq(unittest.TestCase):
    def check(self, terms, result, labels):
        made = tdsl.from_pdaggerq(terms, result, name="f")
        program = made.compile()
        arrays = {arg.split(":")[0].strip(): None for arg in ()}
        for name, shape in self.parameters(made.text):
            arrays[name] = whole(*(SIZE[d] for d in shape))
        terms = [eval(line) for line in terms.splitlines() if line.strip().startswith("[")] if isinstance(terms, str) else terms
        np.testing.assert_array_equal(program.f(**arrays), evaluate(terms, labels, arrays), made.text)
        return made.text

    @staticmethod
    def parameters(text):
        import re
        inside = text[text.index("kernel f("):text.index("->")]
        return [(m[1], m[2].split(", ")) for m in re.finditer(r"(\w+): f64\[([^\]]*)\]", inside)]

    def test_doubles(self):
        text = self.check(CCSD, "R2(e,f,m,n)", "efmn")
        self.assertIn("""\
    // +1.00000000000000 P(m,n) P(e,f) <i,e||a,n> t2(a,f,m,i)
    R2[e,f,m,n] += antisym[m,n](antisym[e,f](sum[i,a](g_ovvo[i,e,a,n] * t2[a,f,m,i])));
    // +0.25000000000000 <j,i||a,b> t2(a,b,m,n) t2(e,f,j,i)
    R2[e,f,m,n] += 0.25 * g_oovv[j,i,a,b] * t2[a,b,m,n] * t2[e,f,j,i];
""", text)

    def test_energy_and_triples(self):
        self.check([["+1.0", "f(i,i)"], ["+1.0", "f(i,a)", "t1(a,i)"], ["-0.5", "<j,i||j,i>"], ["+0.25", "<j,i||a,b>", "t2(a,b,j,i)"]], "", "")
        self.check([["+1.0", "PP3(i,a,j,b,k,c)", "t1(a,i)", "t2(b,c,j,k)"]], "", "abcijk")
        self.check([["-2.0", "PP6(i,a,j,b,k,c)", "t1(a,i)", "t1(b,j)", "f(k,c)"]], "W(i,j,k,a,b,c)", "ijkabc")

    def test_spins_are_spaces_of_their_own(self):
        text = tdsl.from_pdaggerq([["+1.0", "f_aa(i,a)", "t1_aa(a,j)"], ["+1.0", "<i,k||a,b>_abab", "t2_abab(a,b,j,k)"]], dims={"ob": 3}).text
        self.assertIn("f_ov_aa: f64[oa, va], t1_aa: f64[va, oa], g_oovv_abab: f64[oa, 3, va, vb], t2_abab: f64[va, vb, oa, 3])\n    -> (R: f64[oa, oa])", text)

    def test_fractions(self):
        self.assertIn("R[a,i] = 1/6 * f_ov[i,a];", tdsl.from_pdaggerq([["+0.16666666666667", "f(i,a)"]]).text)

    def test_unknown(self):
        with self.assertRaises(tdsl.ConversionError) as caught:
            tdsl.from_pdaggerq([["x"], ["+1", "f(p,q)"], ["+1", "B*"], ["+1", "d(i,a)", "P(i)"]])
        self.assertEqual(str(caught.exception), """\
pdaggerq: 5 things have no translation into the language:
  term 1: x: the first string is no number
  term 2: +1 f(p,q): 'f(p,q)': p, q is neither occupied (i to o) nor virtual (a to g)
  term 3: +1 B*: 'B*'
  term 4: +1 d(i,a) P(i): 'd(i,a)': a Kronecker delta
  term 4: +1 d(i,a) P(i): 'P(i)' has 1 labels, not 2""")
        self.assertRaisesRegex(tdsl.ConversionError, "not summed are a, i, those of E none", tdsl.from_pdaggerq, [["+1", "f(i,i)"], ["+1", "f(i,a)"]])
        self.assertRaisesRegex(tdsl.ConversionError, "no terms", tdsl.from_pdaggerq, [])
        self.assertRaisesRegex(tdsl.ConversionError, "line 1 is no list", tdsl.from_pdaggerq, "['+1.0',")
        for terms in "[[[", "[1, 2]", '{"a": 1}', 3, [3], [[1, 2]], [["+nan", "t1(a,i)"]], [["+1"] + ["PP3(i,a,j,b,k,c)"] * 30 + ["t3(a,b,c,i,j,k)"]], [["+1", "<i,j||>"]], [["+1", "t1(a,i"]]:
            self.assertRaises(tdsl.ConversionError, tdsl.from_pdaggerq, terms)


class Command(unittest.TestCase):
    def run_it(self, *words, text=""):
        return subprocess.run([sys.executable, "-m", "tdsl.convert", *words], input=text, capture_output=True, text=True, check=False)

    def test_doors(self):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out.tdsl")
            done = self.run_it("--from=pdaggerq", "-", "-o", out, "--result=E0", "--name=energy", "--dim=o=5", text="['+1.0', 'f(i,i)']\n")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
            with open(out, encoding="utf-8") as f:
                self.assertEqual(f.read(), "// pdaggerq: E0, 1 term\nkernel energy(f_oo: f64[5, 5]) -> (E0: f64) {\n    // +1.0 f(i,i)\n    E0 = f_oo[i,i];\n}\n")
        done = self.run_it("--from=einsum-list", "-", "--dtype=f32", "--dim=i=n", text="y = einsum('ij,j->i', A, x)")
        self.assertIn("kernel contractions(A: f32[n, nj], x: f32[nj]) -> (y: f32[n]) {", done.stdout)

    def test_mistakes(self):
        done = self.run_it("--from=einsum-list", "-", text="y = f(x)")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, "error: einsum list: one thing has no translation into the language:\n  line 1: y = f(x): the call f\n")
        self.assertEqual(self.run_it("--from=einsum-list", "/none").returncode, 3)
        done = self.run_it("terms.txt")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--from={jaxpr,onnx,einsum-list,pdaggerq} is needed for terms.txt", done.stderr)


unittest.main()
