# SPDX-License-Identifier: Apache-2.0
"""Kernels for two cores (--lnc=2): both do half of an index, or one does all; the emulator runs one after the other and finds what
is not half.

    cores.py --bin DIR"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

from harness import Failure, check_prediction, compile_for, emulated, fill, read_manifest, run, share

OPTIONS = argparse.ArgumentParser()
OPTIONS.add_argument("--bin", required=True)
OPTIONS, sys.argv[1:] = OPTIONS.parse_known_args()

MATMUL = "kernel k(A: {0}[{1},{1}], B: {0}[{1},{1}]) -> (C: {0}[{1},{1}]) {{ C[i,j] = A[i,l] * B[l,j]; }}"
BATCHES = "kernel k(A: bf16[32,1024,1024], B: bf16[32,1024,1024]) -> (C: bf16[32,1024,1024]) { C[b,i,j] = A[b,i,l] * B[b,l,j]; }"
HEADS = ("kernel k(Q: f32[4,256,64], K: f32[4,256,64], V: f32[4,256,64]) -> (O: f32[4,256,64]) "
         "{ S[h,q,k] = Q[h,q,e] * K[h,k,e] / 8.0; W[h,q,k] = exp(S[h,q,k] - max[l](S[h,q,l])); "
         "O[h,q,e] = W[h,q,k] * V[h,k,e] / sum[k](W[h,q,k]); }")
SOFTMAXES = ("kernel k(X: f32[64,48]) -> (P: f32[64,48], Q: f32[64,48]) { E[i,j] = exp(X[i,j] - max[k](X[i,k])); P[i,j] = E[i,j] / sum[k](E[i,k]); "
             "F[i,j] = exp(2*X[i,j] - max[k](2*X[i,k])); Q[i,j] = F[i,j] / sum[k](F[i,k]); }")


def with_numbers(text):
    """A printed module, with the numbers that its names of steps stand for."""
    if found := re.search(r"^    ((?:(?:TILE|BLOCK)_\w+(?:, )?)+) = ([\d, ]+)\n", text, re.M):
        text = text.replace(found[0], "")
        for name, size in zip(found[1].split(", "), found[2].split(", "), strict=True):
            text = re.sub(rf"\b{name}\b", size, text)
    return text


def softmax(x):
    w = np.exp(x - x.max(1, keepdims=True))
    return w / w.sum(1, keepdims=True)


def attention(q, k, v):
    w = np.exp((s := q @ k.transpose(0, 2, 1) / 8) - s.max(2, keepdims=True))
    return w @ v / w.sum(2, keepdims=True)


def convolution(x, w):
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
    return np.einsum("cijab,ocab->oij", windows, w)


# name, program, what NumPy makes of the arguments, their shapes, options, programs; where halves lie in the text
HALVES = [
    ("rows", "kernel k(A: f32[256,90], B: f32[90,129]) -> (C: f32[256,129]) { C[i,j] = A[i,l] * B[l,j]; }",
     lambda a, b: a @ b, [(256, 90), (90, 129)], [], 1, r"C\[128 \* core"),
    ("rows or columns", MATMUL.format("f32", 256), lambda a, b: a @ b, [(256, 256)] * 2, [], 1, "core = nl"),
    ("odd rows", "kernel k(A: f32[7,300], B: f32[300,24]) -> (C: f32[7,24]) { C[i,j] = A[i,l] * B[l,j]; }",
     lambda a, b: a @ b, [(7, 300), (300, 24)], [], 1, r"C\[0:7, 12 \* core:12 \* core \+ 12\]"),
    ("its own transpose", "kernel k(A: f32[200,40]) -> (C: f32[200,200]) { C[i,j] = A[i,l] * A[j,l]; }",
     lambda a: a @ a.T, [(200, 40)], [], 1, r"core = nl"),
    ("batches", "kernel k(A: f32[6,40,50], B: f32[6,50,30]) -> (C: f32[6,40,30]) { C[b,i,j] = A[b,i,l] * B[b,l,j]; }",
     lambda a, b: a @ b, [(6, 40, 50), (6, 50, 30)], [], 1, r"core = nl"),
    ("epilogue", "kernel k(A: f32[300,90], B: f32[90,520]) -> (C: f32[300,520]) { T[i,j] = A[i,l] * B[l,j]; C[i,j] = 2*T[i,j] + A[i,0]; }",
     lambda a, b: 2 * (a @ b) + a[:, :1], [(300, 90), (90, 520)], [], 1, r"core = nl"),
    ("attention", HEADS, attention, [(4, 256, 64)] * 3, [], 1, r"O\[2 \* core"),
    ("two softmaxes", SOFTMAXES, lambda x: [softmax(x), softmax(2 * x)], [(64, 48)], [], 1, r"core = nl"),
    ("two products", "kernel k(A: f32[64,48], B: f32[48,80], D: f32[80,96]) -> (C: f32[64,96]) { T[i,j] = A[i,l] * B[l,j]; C[i,m] = T[i,j] * D[j,m]; }",
     lambda a, b, d: a @ b @ d, [(64, 48), (48, 80), (80, 96)], [], 1, r"core = nl"),
    ("two results", "kernel k(A: f32[64,48], B: f32[64,50]) -> (C: f32[64,48], D: f32[64]) { C[i,j] = 2*A[i,j]; D[i] = sum[j](B[i,j]); }",
     lambda a, b: [2 * a, b.sum(1)], [(64, 48), (64, 50)], [], 1, r"core = nl"),
    ("an update", "kernel k(A: f32[64,48], B: f32[48,80], C: inout f32[64,80]) { C[i,j] = 3*C[i,j] + A[i,l] * B[l,j]; }",
     lambda a, b, c: a @ b + 3 * c, [(64, 48), (48, 80), (64, 80)], [], 1, r"C_out\[32 \* core"),
    ("a window", "kernel k(x: f32[16,34,34], w: f32[24,16,3,3]) -> (y: f32[24,32,32]) { y[o,i,j] = x[c,i+a,j+b] * w[o,c,a,b]; }",
     convolution, [(16, 34, 34), (24, 16, 3, 3)], [], 1, r"core = nl"),
    ("every second row", "kernel k(x: f32[128,40]) -> (y: f32[64,40]) { y[i,j] = x[2*i,j] + x[2*i+1,j]; }",
     lambda x: x[::2] + x[1::2], [(128, 40)], [], 1, r"core = nl"),
    ("sums in double words", "kernel k(A: f32[64,1000]) -> (s: f64[64]) { s[i] = sum[j](A[i,j] * A[i,j]); }",
     lambda a: (a * a).sum(1), [(64, 1000)], [], 1, r"s\[32 \* core"),
    ("uneven rows", "kernel k(A: f32[301,70], B: f32[70,45]) -> (C: f32[301,45]) { T[i,j] = A[i,l] * B[l,j]; C[i,j] = relu(T[i,j]) + A[i,0]; }",
     lambda a, b: np.maximum(a @ b, 0) + a[:, :1], [(301, 70), (70, 45)], [], 1, r"if core == 1:"),
    ("uneven batches", "kernel k(A: f32[5,40,50], B: f32[5,50,31]) -> (C: f32[5,40,31]) { C[b,i,j] = A[b,i,l] * B[b,l,j]; }",
     lambda a, b: a @ b, [(5, 40, 50), (5, 50, 31)], [], 1, r"core = nl"),
    ("an uneven transpose", "kernel k(A: f32[201,41]) -> (C: f32[201,201]) { C[i,j] = A[i,l] * A[j,l]; }",
     lambda a: a @ a.T, [(201, 41)], [], 1, r"if core == 1:"),
    ("a vector", "kernel k(x: f32[9000], y: f32[9000]) -> (z: f32[9000]) { z[i] = x[i] + 2*y[i]; }",
     lambda x, y: x + 2 * y, [(9000,), (9000,)], [], 1, r"4500 \* core"),
    # Programs have rows of the result, so cores share its columns.
    ("columns in programs", "kernel k(A: f32[1300,700], B: f32[2600,700]) -> (C: f32[1300,2600]) { C[row,col] = A[row,l] * B[col,l]; }",
     lambda a, b: a @ b.T, [(1300, 700), (2600, 700)], ["--max-instructions=300"], 2, r", 1300 \* core"),
    ("programs that hand something on", "kernel k(A: f32[256,256], B: f32[256,256], D: f32[256,256]) -> (C: f32[256,256]) "
     "{ T[i,j] = A[i,l] * B[l,j]; C[i,m] = relu(T[i,m]) + D[i,l] * B[l,m]; }",
     lambda a, b, d: np.maximum(a @ b, 0) + d @ b, [(256, 256)] * 3, ["--max-instructions=16"], 2, r"core = nl"),
]
UNEVEN = next(row for row in HALVES if row[0] == "uneven rows")
# One core does all of it: name, program, NumPy, shapes, why
ALONE = [
    ("a number", "kernel k(A: f32[64,48]) -> (s: f32) { s = sum[i,j](A[i,j]); }", lambda a: a.sum(), [(64, 48)], "its results are single numbers"),
    ("one position", "kernel k(A: f32[1]) -> (B: f32[1]) { B[i] = 2*A[i]; }", lambda a: 2 * a, [(1,)], "its extent is 1"),
    ("and a number", "kernel k(A: f32[64,48]) -> (B: f32[64,48], s: f32) { B[i,j] = 2*A[i,j]; s = sum[i,j](A[i,j]); }",
     lambda a: [2 * a, a.sum()], [(64, 48)], "a result does not have it"),
    ("positions as values", "kernel k(A: f32[64]) -> (B: f32[64]) { B[i] = A[i] * index(i); }",
     lambda a: a * np.arange(64), [(64,)], "its positions are values"),
    ("a scan", "kernel k(A: f32[64]) -> (B: f32[64]) { B[i] = sum[j <= i](A[j]); }", np.cumsum, [(64,)], "a sum, maximum or scan runs over it"),
    ("backwards", "kernel k(A: f32[64]) -> (B: f32[64]) { B[i] = A[63 - i]; }", lambda a: a[::-1], [(64,)], "read backwards"),
]
# Bound by their engines: half takes at most so much of the time of all.
FASTER = [("2048^3", MATMUL.format("bf16", 2048), 0.55), ("a^T b", "kernel k(A: bf16[2048,2048], B: bf16[2048,2048]) -> (C: bf16[2048,2048]) "
          "{ C[i,j] = A[l,i] * B[l,j]; }", 0.55), ("8192^3", MATMUL.format("bf16", 8192), 0.55), ("batches", BATCHES, 0.55)]
# What somebody might break in the text of `rows or columns`: a pattern, what it becomes, the rule that finds it.
FAULTS = [
    ("halves overlap", r"(dst=C\[.*)128 \* core:128 \* core \+ 128", r"\g<1>96 * core:96 * core + 128", "H6"),
    ("both do one half", r"core = nl.program_id\(axis=0\)", r"core = 0 * nl.program_id(axis=0)", "H6"),
    ("a half is missed", r"(nisa.dma_copy\(dst=C\[.*)", r"if core == 0:\n        \1", "G15"),
    ("it is for one core", r"assert nl.num_programs\(axes=0\) == 2", "assert nl.num_programs(axes=0) == 1", "H3"),
    ("a store into an input", r"dst=C\[", "dst=A[", "D10"),
]


class Cores(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = self.scratch.name

    def tearDown(self):
        self.scratch.cleanup()

    def path(self, name):
        return os.path.join(self.folder, name)

    def compile(self, text, *words, out="out", target="trn2"):
        with open(self.path("p.tdsl"), "w", encoding="utf-8") as stream:
            stream.write(text)
        return compile_for(OPTIONS.bin, target, self.path(out), [self.path("p.tdsl"), *words])["k"]

    def texts(self, out="out"):
        return "".join(with_numbers(open(os.path.join(self.path(out), f), encoding="utf-8").read())
                       for f in sorted(os.listdir(self.path(out))) if re.fullmatch(r"k(_part\d+)?\.py", f))

    def right(self, manifest, function, shapes, target="trn2"):
        arrays = [fill(shape, 5 + i) for i, shape in enumerate(shapes)]
        got, result = emulated(manifest, arrays, target, ranges="warn")
        wanted = function(*arrays)
        for x, y in zip(got, wanted if isinstance(wanted, list) else [wanted], strict=True):
            np.testing.assert_allclose(x, np.reshape(y, x.shape), rtol=2e-5, atol=2e-5 if function is attention else 0)
        if manifest.parts:
            for number, one in enumerate(result.results):
                check_prediction(read_manifest(os.path.join(self.path("out"), f"k_part{number + 1}.json")), one)
        else:
            check_prediction(manifest, result)
        return result

    def test_both_cores_do_half(self):
        for number, (name, text, function, shapes, words, programs, place) in enumerate(share(HALVES, 3)):
            for target in share(("trn2", "trn3"), 2, number, gate=2):
                with self.subTest(kernel=name, target=target):
                    self.tearDown()
                    self.setUp()
                    manifest = self.compile(text, "--lnc=2", *words, target=target)
                    self.assertEqual(manifest.lnc, 2)
                    self.assertGreaterEqual(max(len(manifest.parts), 1), programs)
                    self.assertRegex(self.texts(), place)
                    result = self.right(manifest, function, shapes, target)
                    for one in getattr(result, "results", [result]):
                        instructions = [len(p) for p in one.programs]
                        self.assertGreater(min(instructions), 0)
                        if "uneven" not in name:
                            self.assertEqual(*instructions)

    def test_one_core_does_what_cannot_be_halved(self):
        for name, text, function, shapes, why in ALONE:
            with self.subTest(kernel=name):
                self.tearDown()
                self.setUp()
                manifest = self.compile(text, "--lnc=2")
                self.assertIn("if nl.program_id(axis=0) == 0:", self.texts())
                result = self.right(manifest, function, shapes)
                self.assertEqual(result.programs[1], [])
                status, _, said = run([os.path.join(OPTIONS.bin, "tdslc"), self.path("p.tdsl"), "--target=trn2", "--lnc=2", "-o", self.path("o")])
                self.assertEqual(status, 0)
                self.assertIn("[-Wcores]", said)
                self.assertIn(why, said)

    def test_half_takes_little_more_than_half_of_the_time(self):
        for number, (name, text, most) in enumerate(FASTER):
            with self.subTest(kernel=name):
                us = []
                for lnc in (1, 2):
                    self.compile(text, f"--lnc={lnc}", out=f"{number}_{lnc}")
                    with open(os.path.join(self.path(f"{number}_{lnc}"), "k.json"), encoding="utf-8") as stream:
                        us.append(json.load(stream)["predicted"]["predicted_us"])
                self.assertLessEqual(us[1], most * us[0])

    def test_planted_faults_are_found(self):
        _, program, function, shapes, *_ = HALVES[1]
        manifest = self.compile(program, "--lnc=2")
        text = self.texts()
        for name, pattern, becomes, rule in FAULTS:
            with self.subTest(fault=name):
                broken, count = re.subn(pattern, becomes, text)
                self.assertGreater(count, 0)
                with open(manifest.file, "w", encoding="utf-8") as stream:
                    stream.write(broken)
                with self.assertRaisesRegex(Failure, rf"\[{rule}\]"):
                    self.right(manifest, function, shapes)

    def test_a_dump_of_the_legal_form_has_the_cores(self):
        for number, (text, *words) in enumerate([(HALVES[0][1],), (HALVES[-2][1], "--max-instructions=300"), (ALONE[0][1],), (UNEVEN[1],)]):
            with self.subTest(number):
                self.compile(text, "--lnc=2", *words, out=f"a{number}")
                status, dump, said = run([os.path.join(OPTIONS.bin, "tdslc"), self.path("p.tdsl"), "--target=trn2", "--lnc=2", "-w", *words, "--dump=legal"])
                self.assertEqual(status, 0, said)
                self.assertRegex(dump, r"for \$core in 0\.\.[12] step 1 parallel")
                with open(self.path("d.dump"), "w", encoding="utf-8") as stream:
                    stream.write(dump)
                compile_for(OPTIONS.bin, "trn2", self.path(f"b{number}"), [self.path("d.dump")])
                same = [re.sub(r"# line.*|Made from.*", "", self.texts(f"{x}{number}")) for x in "ab"]
                self.assertEqual(*same)

    def test_who_has_one_core_says_so(self):
        with open(self.path("p.tdsl"), "w", encoding="utf-8") as stream:
            stream.write(HALVES[0][1])
        for words in (["--target=trn1"], ["--target=c"]):
            done = subprocess.run([os.path.join(OPTIONS.bin, "tdslc"), self.path("p.tdsl"), "--lnc=2", *words, "-o", self.path("x")],
                                  capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("have one core", done.stderr)
            self.assertFalse(os.path.exists(self.path("x")))


unittest.main(argv=sys.argv[:1])
