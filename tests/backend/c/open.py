# SPDX-License-Identifier: Apache-2.0
"""Contractions whose extents are open, called with extents far from those that are planned.

    open.py --tdslc PATH [--cc=PROGRAM] [--count=N] [--seed=S]

Of one to three labels as rows, columns, sum and batch, in any order in each array; half of the programs are two contractions, one of what the other gives.
Arrays are small integers, so every order of adding gives the same numbers, which are compared with NumPy's. For each instruction set that runs here.
"""
import argparse
import ctypes
import os
import random
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import steps  # noqa: E402

TYPES = {"f64": np.float64, "f32": np.float32, "i64": np.int64, "c64": np.complex64}
EXTENTS = [0, 1, 1, 2, 3, 3, 4, 5, 7, 9, 17, 33]
LONG = [260, 300, 513]  # more than one block of a sum


class Contraction:
    """name(labels), name(labels) -> name(labels)"""

    def __init__(self, rng, first, left=None):
        letters = iter(chr(ord(first) + k) for k in range(12))
        groups = [[next(letters) for _ in range(n)] for n in
                  (rng.choice((0, 0, 1)), rng.choice((1, 1, 2, 2, 3)), rng.choice((1, 1, 2, 2, 3)), rng.choice((1, 1, 2, 3)))]
        batch, rows, columns, summed = groups
        if left is not None:  # of labels that there are
            labels = list(left)
            rng.shuffle(labels)
            cut = rng.randint(1, len(labels) - 1) if len(labels) > 1 else 0
            batch, rows, summed = [], labels[:cut], labels[cut:]
        self.a = left if left is not None else self.shuffled(rng, batch + rows + summed)
        self.b = self.shuffled(rng, batch + summed + columns)
        self.out = self.shuffled(rng, batch + rows + columns)

    @staticmethod
    def shuffled(rng, labels):
        labels = list(labels)
        if rng.random() < 0.6:
            rng.shuffle(labels)
        return "".join(labels)


def make_program(rng, k):
    dtype = rng.choice(list(TYPES))
    first = Contraction(rng, "a")
    second = Contraction(rng, "m", first.out) if k % 2 == 1 and len(first.out) > 1 else None
    labels = sorted(set(first.a + first.b + first.out + (second.b + second.out if second else "")))

    def of(name, letters):
        return f"{name}: {dtype}[{', '.join('d' + c for c in letters)}]"
    head = [of("A", first.a), of("B", first.b)] + ([of("D", second.b)] if second else [])
    text = f"C = einsum(\"{first.a},{first.b}->{first.out}\", A, B); "
    out = first.out
    if second:
        text += f"R = einsum(\"{second.a},{second.b}->{second.out}\", C, D);"
        out = second.out
    else:
        text = text.replace("C =", "R =")
    dims = ", ".join(f"d{c} ~ {rng.choice((2, 8, 20, 40, 300))}" for c in labels)
    return {"name": f"k{k}", "dtype": dtype, "first": first, "second": second, "labels": labels,
            "text": f"kernel k{k}({', '.join(head)}) -> ({of('R', out)}) {{ {text} }}\n", "dims": dims, "out": out}


def check(library, p, rng):
    order = []  # open dims stand in the order of their first use in the head
    for letters in (p["first"].a, p["first"].b, p["second"].b if p["second"] else "", p["out"]):
        order += [c for c in letters if c not in order]
    size = {c: rng.choice(EXTENTS if len(order) < 6 else EXTENTS[:9]) for c in order}
    if len(order) < 6 and rng.random() < 0.3:
        size[rng.choice(order)] = rng.choice(LONG)
    t = TYPES[p["dtype"]]

    def array(letters):
        a = np.random.default_rng(rng.randrange(1 << 30)).integers(-2, 3, [size[c] for c in letters])
        return np.ascontiguousarray((a + 1j * a[..., ::-1]) if p["dtype"] == "c64" else a, dtype=t)
    a, b = array(p["first"].a), array(p["first"].b)
    wanted = np.einsum(f"{p['first'].a},{p['first'].b}->{p['first'].out}", a, b)
    arrays = [a, b]
    if p["second"]:
        d = array(p["second"].b)
        wanted = np.einsum(f"{p['second'].a},{p['second'].b}->{p['second'].out}", wanted, d)
        arrays.append(d)
    got = np.full([size[c] for c in p["out"]], 77, dtype=t)
    dims = [ctypes.c_int64(size[c]) for c in order]
    need = getattr(library, p["name"] + "_workspace_bytes")
    need.restype = ctypes.c_size_t
    bytes_ = need(*dims)
    workspace = np.full(bytes_ + 64, 0x5a, np.uint8)
    call = getattr(library, p["name"])
    status = call(*dims, *[ctypes.c_void_p(x.ctypes.data) for x in arrays + [got]],
                  ctypes.c_void_p(workspace.ctypes.data), ctypes.c_size_t(bytes_))
    fine = status == 0 and np.array_equal(got, wanted) and (workspace[bytes_:] == 0x5a).all()
    if not fine:
        print(f"FAILED {p['text']}  dim {p['dims']};\n  status {status} at {size}", file=sys.stderr)
    return fine


def run(command):
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tdslc", required=True)
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    programs = [make_program(rng, k) for k in range(options.count)]
    flags = open("/proc/cpuinfo", encoding="utf-8").read() if os.path.exists("/proc/cpuinfo") else ""
    sets = ["plain", "vectors"] + (["avx2"] if " avx2 " in flags else []) + (["avx512"] if " avx512bw " in flags else [])
    failed = calls = 0
    with tempfile.TemporaryDirectory() as folder:
        for p in programs:
            path = os.path.join(folder, p["name"] + ".tdsl")
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(f"dim {p['dims']};\n{p['text']}")
            made = run([options.tdslc, "-w", "--check-each", path, "-o", path[:-5] + ".c"])
            if made.returncode != 0:
                print(steps.report(p["text"], made.args, made), file=sys.stderr)
                failed += 1
                continue
            for isa in sets:
                name = f"{path[:-5]}_{isa}.so"
                made = run([options.cc, "-std=c11", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Wconversion", "-Werror",
                            f"-DTDSL_ISA={isa}", path[:-5] + ".c", "-o", name, "-lm"])
                if made.returncode != 0:
                    print(steps.report(p["text"], made.args, made), file=sys.stderr)
                    failed += 1
                    break
                library = ctypes.CDLL(name)
                for _ in range(10):
                    calls += 1
                    failed += 0 if check(library, p, rng) else 1
    print(f"{len(programs)} programs, {calls} calls, {failed} failed")
    return failed > 0


sys.exit(main())
