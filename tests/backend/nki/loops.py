# SPDX-License-Identifier: Apache-2.0
"""Kernels whose loops stay loops: the text has them, by the names of the source, does what the program says, remainders and
programs of several parts with it, and takes what the manifest says.

    loops.py --bin DIR"""
import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

from harness import Failure, Refused, check_prediction, compile_for, emulated, fill, read_manifest, share


def doubled(a, b):
    return 2 * (a @ b) + a[:, :1]


def exchange(b):
    t = np.einsum("iap,jbp->iajb", b, b).astype(float)
    return (t * (2 * t - t.transpose(0, 3, 2, 1))).sum()


def softmax(q, k, v):
    w = np.exp((s := q @ k.transpose(0, 2, 1) / 8) - s.max(2, keepdims=True))
    return w @ v / w.sum(2, keepdims=True)


def masked(keep, q, k, v):
    """Attention whose query q sees the keys for which keep(key, query)."""
    at = np.arange(q.shape[1])
    s = np.where(keep(at[None, :], at[:, None]), q @ k.transpose(0, 2, 1) / 8, -np.inf)
    w = np.exp(s - s.max(2, keepdims=True))
    return w @ v / w.sum(2, keepdims=True)


def attention(mask, s, h=4):
    return (f'kernel k(Q: f32[{h},{s},64], K: f32[{h},{s},64], V: f32[{h},{s},64]) -> (O: f32[{h},{s},64]) '
            f'{{ S[head,q,k] = select({mask}, sum[e](Q[head,q,e] * K[head,k,e]) / 8.0, -inf); W[head,q,k] = exp(S[head,q,k] - max[l](S[head,q,l])); '
            'O[head,q,e] = sum[k](W[head,q,k] * V[head,k,e]) / sum[k](W[head,q,k]); }')


# The nest of causal attention with tiles of keys, as somebody wrote it.
TILES = """nest {
  axis i [%5[b], %10[b], %12[b], %13[b], %14[b], %15[b]]
  axis j [%12[c], %13[c], %14[c]]
  for i step 128 parallel {
    %5 tile
    %10 tile
    for j step 128 {
      %12 tile
      %14 tile
      %13 tile
    }
    %15 result 0
  }
}
"""

ROWS = """nest {
  axis i [%3[a], %5[a], %6[a]]
  axis j [%5[b], %6[b]]
  for i step 256 parallel {
    %3 tile
    for j step 256 {
      %5 tile
      %6 result 0
    }
  }
}
"""


def product(a, b, c, *extents):
    return "kernel k(A: f32[%s], B: f32[%s]) -> (C: f32[%s]) { C[%s] = A[%s] * B[%s]; }" % (*extents, c, a, b)


TRANSFORM = ('kernel k(G: f32[144,144,384], A: f32[144,16], B: f32[144,128]) -> (C: f32[16,128,384]) '
             '{ C = einsum("mi,na,mnP->iaP", A, B, G); }')

# (name, program, NumPy's equation or function, shapes of the arguments, options, a loop that must be there, by its name)
CASES = [
    ("columns", "kernel k(A: f32[1300,700], B: f32[2600,700]) -> (C: f32[1300,2600]) { C[row,col] = A[row,l] * B[col,l]; }",
     "ik,jk->ij", [(1300, 700), (2600, 700)], ["--max-instructions=600"], "(row|col)"),
    ("batches", "kernel k(A: f32[36,300,260], B: f32[36,260,600]) -> (C: f32[36,300,600]) { C[batch,i,j] = A[batch,i,l] * B[batch,l,j]; }",
     "sik,skj->sij", [(36, 300, 260), (36, 260, 600)], ["--max-instructions=600"], "batch"),
    ("rows", "kernel k(A: f32[3200,2100], x: f32[3200]) -> (y: f32[2100]) { y[row] = A[l,row] * x[l]; }",
     "ki,k->i", [(3200, 2100), (3200,)], ["--max-instructions=700"], "row"),
    ("sum", "kernel k(A: f32[300,17000], B: f32[70,17000]) -> (C: f32[300,70]) { C[i,j] = A[i,term] * B[j,term]; }",
     "ik,jk->ij", [(300, 17000), (70, 17000)], ["--max-instructions=3000"], "term"),
    ("epilogue", "kernel k(A: f32[1300,700], B: f32[700,2600]) -> (C: f32[1300,2600]) "
     "{ T[row,j] = A[row,l] * B[l,j]; C[row,j] = 2*T[row,j] + A[row,0]; }",
     doubled, [(1300, 700), (700, 2600)], ["--max-instructions=450"], ""),
    ("energy", "kernel k(B: f32[24,130,8]) -> (E: f32) { T[occ,a,other,b] = B[occ,a,P] * B[other,b,P]; E = sum[occ,other,a,b](T[occ,a,other,b] * T[occ,b,other,a]); }",
     "iaP,jbP,ibQ,jaQ->", [(24, 130, 8)], ["--max-instructions=1500"], "(occ|other)"),
    # Each pair of occ and other once: a loop that begins with the tile of the one around it.
    ("pairs", "kernel k(B: f32[12,130,8]) -> (E: f32) { T[occ,a,other,b] = B[occ,a,P] * B[other,b,P]; E = sum[occ,other,a,b](T[occ,a,other,b] * (2*T[occ,a,other,b] - T[occ,b,other,a])); }",
     exchange, [(12, 130, 8)], [], r"(occ|other)\w* in range\((occ|other), \d+\):"),
    ("pairs in programs", "kernel k(B: f32[12,130,8]) -> (E: f32) { T[occ,a,other,b] = B[occ,a,P] * B[other,b,P]; E = sum[occ,other,a,b](T[occ,a,other,b] * (2*T[occ,a,other,b] - T[occ,b,other,a])); }",
     exchange, [(12, 130, 8)], ["--max-instructions=700"], r"(occ|other)\w* in range\((occ|other), \d+\):"),
    # Where the Tensor engine is busy all the time, which turns the weights in f32, iterations stay as they are.
    ("stages", "kernel k(Q: f32[4,1024,64], K: f32[4,1024,64], V: f32[4,1024,64]) -> (O: f32[4,1024,64]) "
     "{ S[head,q,k] = Q[head,q,e] * K[head,k,e] / 8.0; W[head,q,k] = exp(S[head,q,k] - max[l](S[head,q,l])); "
     "O[head,q,e] = W[head,q,k] * V[head,k,e] / sum[k](W[head,q,k]); }",
     softmax, [(4, 1024, 64)] * 3, [], r"q\w* in range\(4\):"),
    # Two chunks of rows at once, where a statement is over blocks that lie so.
    ("rows in chunks", "kernel k(Q: f32[256,16], K: f32[8192,16], V: f32[8192,16]) -> (O: f32[256,16]) "
     "{ S[q,k] = sum[e](Q[q,e]*K[k,e])/8.0; W[q,k] = exp(S[q,k] - max[l](S[q,l])); O[q,e] = sum[k](W[q,k]*V[k,e])/sum[k](W[q,k]); }",
     lambda *x: softmax(*[a[None] for a in x])[0], [(256, 16), (8192, 16), (8192, 16)], [], r"k\w* in range\([\s\S]*tensor_scalar\(dst=before, "),
    # What an iteration does first stands beside what the two before do later: eight iterations are ten.
    ("three stages", "kernel k(Q: f32[256,128], K: f32[8192,128], V: f32[8192,128]) -> (O: f32[256,128]) "
     "{ S[q,k] = sum[e](Q[q,e]*K[k,e])/8.0; W[q,k] = exp(S[q,k] - max[l](S[q,l])); O[q,e] = sum[k](W[q,k]*V[k,e])/sum[k](W[q,k]); }",
     lambda *x: softmax(*[a[None] for a in x])[0], [(256, 128), (8192, 128), (8192, 128)], [], r"k\w* in range\(10\):[\s\S]*if k\w* < 8:[\s\S]*if k\w* >= 2:"),
    # Stages of a loop that begins with the tile of the one around it; a piece of the body is two iterations late.
    ("pairs in stages", "kernel k(B: f32[20,100,64]) -> (E: f32) { T[occ,a,other,b] = B[occ,a,P] * B[other,b,P]; E = sum[occ,other,a,b](T[occ,a,other,b] * (2*T[occ,a,other,b] - T[occ,b,other,a])); }",
     exchange, [(20, 100, 64)], [], r"other\w* in range\(occ, 12\):\n +if other\w* < 10:\n[\s\S]*if other\w* >= occ \+ 2:"),
    # Two iterations of a chain from engine to engine and back at a time, and one that is left over.
    ("interleaved", "kernel k(X: f32[1408,2048], Z: f32[1408,2048]) -> (Y: f32[1408,2048]) { W[i,j] = Z[i,j] * Z[i,j]; Y[i,j] = X[i,j] / (sqrt(W[i,j]) + 2) + exp(-X[i,j]); }",
     lambda x, z: x / (np.abs(z) + 2) + np.exp(-x), [(1408, 2048)] * 2, [], r"i in range\(5\):(\n.*){6,9}for u in range\(2\):"),
    # Positions of a sum that are neighbours lie on one partition, whose rows are loaded together.
    ("short rows of a sum", product("k,i", "k,j", "i,j", "16384,64", "16384,48", "64,48"), "ki,kj->ij", [(16384, 64), (16384, 48)], [],
     r"i\w* in range\(\d+\):(\n.*){1,2}pattern=\[\[\d+, 128\], \[(64|48), \d+\], \[1, (64|48)\]\]"),
    ("short rows in batches", product("b,k,i", "b,k,j", "b,i,j", "6,2048,32", "6,2048,24", "6,32,24"), "bki,bkj->bij", [(6, 2048, 32), (6, 2048, 24)], [], r"b\w* in range\(6\):"),
    ("short rows behind batches", product("k,b,i", "k,b,j", "b,i,j", "896,2,22", "896,2,11", "2,22,11"), "kbi,kbj->bij", [(896, 2, 22), (896, 2, 11)], [], r"i\w* in range\("),
    ("short rows behind one", product("k,b,i", "k,b,j", "b,i,j", "512,1,31", "512,1,76", "1,31,76"), "kbi,kbj->bij", [(512, 1, 31), (512, 1, 76)], [], r"i\w* in range\("),
    ("long sum of short rows", product("k,i", "k,j", "i,j", "131072,64", "131072,8", "64,8"), "ki,kj->ij", [(131072, 64), (131072, 8)], [], r"k\w* in range\(16\):"),
    # All tiles of a contraction: a strip of either operand is made when it is first needed, what is turned a piece before it is multiplied.
    ("panels", product("k,i", "k,j", "i,j", "1024,1024", "1024,2048", "1024,2048"), "ki,kj->ij", [(1024, 1024), (1024, 2048)], [], r"k\w* in range\(12|if \w+ == 0:"),
    ("panels turned", product("i,k", "k,j", "i,j", "2048,512", "512,2048", "2048,2048"), "ik,kj->ij", [(2048, 512), (512, 2048)], [], r"\w+ in range\(4\):\n *if"),
    ("panels both turned", product("i,k", "j,k", "i,j", "1024,512", "1024,512", "1024,1024"), "ik,jk->ij", [(1024, 512), (1024, 512)], [], r"k\w* in range\("),
    ("panels in batches", product("b,i,k", "b,k,j", "b,i,j", "5,1024,512", "5,512,1024", "5,1024,1024"), "bik,bkj->bij",
     [(5, 1024, 512), (5, 512, 1024)], [], r"k\w* in range\("),
    ("panels with an epilogue", "kernel k(A: f32[512,1024], B: f32[512,1024]) -> (C: f32[1024,1024]) { T[i,j] = A[l,i] * B[l,j]; C[i,j] = 2*T[i,j] + A[0,j] - B[7,i]; }",
     lambda a, b: 2 * (a.T @ b) + a[0] - b[7][:, None], [(512, 1024), (512, 1024)], [], r"l\w* in range\("),
    # A mask leaves out tiles: loops end where it does, and the tiles that it cuts stand by themselves.
    ("causal", attention("index(k) <= index(q)", 1024), lambda *x: masked(lambda k, q: k <= q, *x), [(4, 1024, 64)] * 3,
     ["--max-instructions=4000", TILES], r"k\w* in range\(q\w*\):"),
    ("causal in strips", attention("index(k) <= index(q)", 2048, 2), lambda *x: masked(lambda k, q: k <= q, *x), [(2, 2048, 64)] * 3,
     [], r"q\w* in range\(4\):(\n.*){,9}q\w* in range\(4\):"),
    # A mask that leaves something in the last rows alone, of which the middle one has none.
    ("late mask", "kernel k(Q: f32[2,2048,64], K: f32[2,2048,64], V: f32[2,2048,64]) -> (O: f32[2,2048,64]) "
     "{ S[head,q,k] = select(index(q) - 1400 >= index(k), sum[e](Q[head,q,e]*K[head,k,e]), 0); O[head,q,e] = S[head,q,k]*V[head,k,e]; }",
     lambda q, k, v: np.tril(q @ k.transpose(0, 2, 1), -1400) @ v, [(2, 2048, 64)] * 3, [], r"(q|k)\w* in range\("),
    # Rows of a mask in two strips, of which each takes the positions that it leaves: those before the strip without the mask.
    ("masked strips", attention("index(k) <= index(q)", 1024, 2), lambda *x: masked(lambda k, q: k <= q, *x), [(2, 1024, 64)] * 3,
     [], r"q\w* in range\([45]\):[\s\S]*for q\w* in range\([45]\):"),
    ("sliding", attention("index(k) <= index(q) && index(k) > index(q) - 300", 2048, 2),
     lambda *x: masked(lambda k, q: (k <= q) & (k > q - 300), *x), [(2, 2048, 64)] * 3, [], r"q\w* in range\(1[34]\):"),
    # What each part would turn again is turned once, in memory.
    ("turned once", 'kernel k(A: f32[96,3,20,96], B: f32[20,20,40,96]) -> (C: f32[3,20,40,96]) { C = einsum("fdea,cebf->dcba", A, B); }',
     "fdea,cebf->dcba", [(96, 3, 20, 96), (20, 20, 40, 96)], ["--max-instructions=300"], ""),
    # Rows that are short whichever way an operand is loaded.
    ("short rows", 'kernel k(A: f32[16,16,257], B: f32[257,16,40]) -> (C: f32[257,16,40]) { C = einsum("abc,cad->cbd", A, B); }', "abc,cad->cbd",
     [(16, 16, 257), (257, 16, 40)], [], ""),
    # Loops around two statements, of which the second adds to the result: each in its own, and the result is stored once.
    ("apart", TRANSFORM, "mnP,mi,na->iaP", [(144, 144, 384), (144, 16), (144, 128)], [], ""),
    # A result that a loop inside of the programs' own adds to in memory: each program stores its rows.
    ("rows added up in programs", 'kernel k(A: f32[1024,130], B: f32[130,768], C: f32[768,260]) -> (D: f32[1024,260]) '
     '{ T[i,k] = A[i,j] * B[j,k]; R[i,k] = relu(T[i,k]) * T[i,k]; D[i,l] = R[i,k] * C[k,l]; }',
     lambda a, b, c: np.maximum(a @ b, 0) * (a @ b) @ c, [(1024, 130), (130, 768), (768, 260)], ["--max-instructions=160", ROWS], "(j|k)"),
    ("apart in programs", TRANSFORM, "mnP,mi,na->iaP", [(144, 144, 384), (144, 16), (144, 128)], ["--max-instructions=900"], ""),
]


def wanted(equation, arrays):
    if callable(equation):
        return equation(*arrays)
    terms = equation.split("->")[0].split(",")
    return np.einsum(equation, *(arrays * len(terms))[:len(terms)], optimize=True)


def check(options, case):
    """Loops over the indices, by program."""
    name, text, equation, shapes, more, loop = case
    arrays = [np.sign(fill(shape, 5 + i)) for i, shape in enumerate(shapes)]
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, "p.tdsl"), os.path.join(folder, "out")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        nests = [m for m in more if m.startswith("nest {")]
        for nest in nests:
            dump = subprocess.run([os.path.join(options.bin, "tdslc"), path, "--target=trn2", "--dump=nest"], capture_output=True, text=True, check=True)
            with open(os.path.join(folder, "p.nest"), "w", encoding="utf-8") as stream:
                stream.write(dump.stdout[:dump.stdout.index("nest {")] + nest)
        more = [m for m in more if m not in nests] + ["--nest=" + os.path.join(folder, "p.nest") for _ in nests]
        manifest = compile_for(options.bin, "trn2", out, [path, *more])["k"]
        programs = [open(f, encoding="utf-8").read() for f in sorted(glob.glob(os.path.join(out, "k*.py")))]
        results, result = emulated(manifest, arrays, "trn2", ranges="warn")
        if manifest.parts:
            for number, one in enumerate(result.results):
                check_prediction(read_manifest(os.path.join(out, f"k_part{number + 1}.json")), one)
        else:
            check_prediction(manifest, result)
    found = sum(len(re.findall(rf"for {loop}" + r"\w* in range\(" * (" in range" not in loop), text)) for text in programs)
    if found == 0:
        raise Failure(f"{name}: no loop of the source is in the text")
    if max(text.count("\n") for text in programs) > 800:
        raise Failure(f"{name}: a text of {max(text.count(chr(10)) for text in programs)} lines")
    want = wanted(equation, arrays)
    if not np.allclose(np.asarray(results[0]).reshape(want.shape), want, *({"energy": (1e-6, 0), "pairs": (1e-6, 0), "pairs in programs": (1e-6, 0), "interleaved": (1e-5, 1e-6), "pairs in stages": (1e-6, 0), "three stages": (1e-4, 1e-5), "stages": (1e-4, 1e-5), "rows in chunks": (1e-4, 1e-5), "causal": (1e-4, 1e-5), "causal in strips": (1e-4, 1e-5), "masked strips": (1e-4, 1e-5), "sliding": (1e-4, 1e-5)}.get(name, (0, 0)))):
        raise Failure(f"{name}: other results than NumPy's")
    return found, len(programs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    options = parser.parse_args()
    failed = 0
    for case in share(CASES, 6):
        try:
            print("passed %s: %d loops in %d programs" % (case[0], *check(options, case)))
        except (Failure, Refused) as error:
            failed += 1
            print(f"FAILED {case[0]}: {error}")
    return 1 if failed else 0


sys.exit(main())
