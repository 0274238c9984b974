# SPDX-License-Identifier: Apache-2.0
"""Faults planted in printed kernels, one at a time: each bound of a guard, a loop or a slice off by one, groups of sums that begin
elsewhere or are added to in turn, stores into an input. The emulator must refuse each of them, or the results be wrong; the few that
change nothing are counted.

    planted.py --bin DIR [-v] [--every=N]"""
import argparse
import os
import re
import sys
import tempfile

import numpy as np

from harness import Failure, compile_for, emulated, share

ATTENTION = ("kernel k(Q: f32[6,64,16], K: f32[6,64,16], V: f32[6,64,16]) -> (O: f32[6,64,16]) "
             "{ S[h,q,k] = Q[h,q,e] * K[h,k,e]; W[h,q,k] = exp(0.1 * S[h,q,k] - max[l](0.1 * S[h,q,l])); "
             "O[h,q,e] = W[h,q,k] * V[h,k,e] / sum[k](W[h,q,k]); }")


def attention(q, k, v):
    w = np.exp((s := q @ k.transpose(0, 2, 1) * 0.1) - s.max(2, keepdims=True))
    return w @ v / w.sum(2, keepdims=True)


# name, program, NumPy, shapes, options
KERNELS = [
    ("remainders", "kernel k(A: f32[300,260], B: f32[260,700]) -> (C: f32[300,700]) { C[i,j] = A[i,l] * B[l,j]; }",
     lambda a, b: a @ b, [(300, 260), (260, 700)], []),
    ("loops", "kernel k(A: f32[1024,300], B: f32[300,1030]) -> (C: f32[1024,1030]) { C[i,j] = A[i,l] * B[l,j]; }",
     lambda a, b: a @ b, [(1024, 300), (300, 1030)], []),
    ("guards", "kernel k(A: f32[2048,128], B: f32[128,1024]) -> (C: f32[2048,1024]) { C[i,j] = A[i,l] * B[l,j]; }",
     lambda a, b: a @ b, [(2048, 128), (128, 1024)], []),
    ("batches", "kernel k(A: f32[9,20,30], B: f32[9,30,25]) -> (C: f32[9,20,25]) { C[b,i,j] = A[b,i,l] * B[b,l,j]; }",
     lambda a, b: a @ b, [(9, 20, 30), (9, 30, 25)], []),
    ("rows", "kernel k(X: f32[300,90]) -> (R: f32[300,90]) { m[i] = max[j](X[i,j]); R[i,j] = X[i,j] - m[i]; }",
     lambda x: x - x.max(1, keepdims=True), [(300, 90)], []),
    ("patterns", "kernel k(A: f32[20,4,6], B: f32[20,6,5]) -> (C: f32[20,4,5]) { C[s,i,j] = A[s,i,l] * B[s,l,j]; }", lambda a, b: a @ b, [(20, 4, 6), (20, 6, 5)], []),
    ("a number", "kernel k(X: f32[70000]) -> (s: f32) { s = sum[i](X[i] * X[i]); }", lambda x: (x * x).sum(), [(70000,)], []),
    ("attention", ATTENTION, attention, [(6, 64, 16)] * 3, []),
    ("two cores", "kernel k(A: f32[512,200], B: f32[200,300]) -> (C: f32[512,300]) { C[i,j] = A[i,l] * B[l,j]; }",
     lambda a, b: a @ b, [(512, 200), (200, 300)], ["--lnc=2"]),
]
SAME = 0.02  # of the mutants, at most: a tile that is asked for again, a guard that holds in all iterations


def faults(text):
    """(what, line, the text with it)"""
    lines = text.split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith("def "))

    def with_line(at, new):
        return "\n".join(lines[:at] + [new] + lines[at + 1:])

    inputs = re.findall(r"\w+", lines[start].split("(")[1])
    for at in range(start + 1, len(lines)):
        line = lines[at]
        code = line.split("#")[0]
        head = code.strip()
        if not head.startswith(("if ", "for ", "nisa.")):
            continue
        what = "guard" if head.startswith("if ") else "loop" if head.startswith("for ") else "slice"
        spans = [m.span() for m in re.finditer(r"(?<![\w.])\d+(?![\w.])", code)]
        if what == "slice":  # numbers in slices and patterns
            spans = [m.span(1) for m in re.finditer(r"(?:[:+\-,[] ?|\* )(\d+)(?=[:\],])", code)]
        for begin, end in spans:
            for by in (-1, 1):
                number = int(code[begin:end]) + by
                if number >= 0:
                    yield what, at, with_line(at, line[:begin] + str(number) + line[end:])
        group = re.search(r"accumulate=([^,)]*)\)", code)
        if group is not None:
            for other in {"True", "False"} - {group.group(1)}:
                yield "group", at, with_line(at, line[:group.start(1)] + other + line[group.end(1):])
        store = re.match(r"\s*nisa\.dma_copy\(dst=([A-Z]\w*)", code)
        if store is not None:
            for name in inputs[:1]:
                yield "store", at, with_line(at, line.replace(f"dst={store.group(1)}", f"dst={name}", 1))


def survives(manifest, text, arrays, wanted, rounds):
    with open(manifest.file, "w", encoding="utf-8") as stream:
        stream.write(text)
    try:
        got = emulated(manifest, arrays, "trn2")[0]
    except Failure:
        return False
    close = (lambda x, y: np.allclose(x, y, rtol=2e-5, atol=2e-5)) if rounds else np.array_equal
    return all(close(x, np.reshape(y, x.shape)) for x, y in zip(got, wanted))


def check(options, kernel):
    name, text, function, shapes, words = kernel
    rng = np.random.default_rng(5)
    arrays = [rng.integers(-3, 4, shape).astype(np.float64) for shape in shapes]
    if name == "rows":  # one maximum in each row, anywhere
        arrays = [rng.integers(-8000000, 8000000, shapes[0]).astype(np.float64)]
    wanted = [function(*arrays)]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "p.tdsl")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        manifest = compile_for(options.bin, "trn2", os.path.join(folder, "out"), [path, *words])["k"]
        with open(manifest.file, encoding="utf-8") as stream:
            printed = stream.read()
        if not survives(manifest, printed, arrays, wanted, function is attention):
            raise Failure(f"{name}: wrong without a fault")
        counts, same = {}, []
        slices = 0
        for what, line, broken in faults(printed):
            slices += what == "slice"
            if what == "slice" and slices % options.every != 0:
                continue
            counts[what] = counts.get(what, 0) + 1
            if survives(manifest, broken, arrays, wanted, function is attention):
                same.append((what, broken.split("\n")[line].strip()))
    total = sum(counts.values())
    for what, line in same if options.v else []:
        print(f"    {what}: {line[:170]}")
    kinds = ", ".join(f"{n} of a {what}" for what, n in sorted(counts.items()))
    if len(same) > max(1, SAME * total):
        raise Failure(f"{name}: {len(same)} of {total} faults are not found ({kinds}); -v lists them")
    return f"{name}: {total} faults ({kinds}), {len(same)} change nothing"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("-v", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--every", type=int, default=1, help="of slices, this one of so many")
    options = parser.parse_args()
    failed = 0
    for kernel in share(KERNELS, 3):
        if options.only in (None, kernel[0]):
            try:
                print(check(options, kernel), flush=True)
            except Failure as error:
                failed += 1
                print(f"FAILED {error}", flush=True)
    return 1 if failed else 0


sys.exit(main())
