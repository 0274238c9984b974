# SPDX-License-Identifier: Apache-2.0
"""Contractions cut in other ways than the compiler would: levels at random, written into nests.

    levels.py --tdslc PATH [--target=c|trn1|trn2|trn3] [--count=N] [--seed=S]

Whatever the levels are, a kernel computes the same sums of small integers, exactly: every pass is checked by running the
program after it (`--check-each`). What a target cannot do is refused with a message, and nothing is written. For Trainium the
traffic that the manifest counts is what the levels say.
"""
import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
from quick import QUICK  # noqa: E402

EQUATIONS = [  # parameters, result, statement; letters are extents
    ("A: {t}[{a}, {k}], B: {t}[{k}, {b}]", "C: {t}[{a}, {b}]", "C[i,j] = A[i,k] * B[k,j];"),
    ("A: {t}[{k}, {a}], B: {t}[{b}, {k}]", "C: {t}[{b}, {a}]", "C[j,i] = A[k,i] * B[j,k];"),
    ("A: {t}[{c}, {a}, {k}], B: {t}[{c}, {k}, {b}]", "C: {t}[{c}, {a}, {b}]", "C[h,i,j] = A[h,i,k] * B[h,k,j];"),
    ("A: {t}[{a}, {c}, {k}], B: {t}[{b}, {k}]", "C: {t}[{a}, {b}, {c}]", "C[i,j,h] = A[i,h,k] * B[j,k];"),
    ("A: {t}[{a}, {k}, {c}], B: {t}[{c}, {k}, {b}]", "C: {t}[{a}, {b}]", "C[i,j] = A[i,k,h] * B[h,k,j];"),
    ("A: {t}[{a}, {k}], B: {t}[{k}, {b}, {c}]", "C: {t}[{c}, {a}, {b}]", "C[h,i,j] = A[i,k] * B[k,j,h];"),
    ("A: {t}[{a}, {k}, {d}, {e}], B: {t}[{e}, {b}, {k}, {c}]", "C: {t}[{b}, {d}, {a}, {c}]", "C[j,h,i,g] = A[i,k,h,l] * B[l,j,k,g];"),
    ("A: {t}[{d}, {a}, {e}], B: {t}[{e}, {c}, {b}]", "C: {t}[{b}, {a}, {c}, {d}]", "C[j,i,g,h] = A[h,i,l] * B[l,g,j];"),
    ("A: {t}[{k}, {d}, {e}, {c}], B: {t}[{k}, {e}, {c}, {b}]", "C: {t}[{b}, {d}]", "C[j,i] = A[k,i,l,m] * B[k,l,m,j];"),
]
BYTES = {"f32": 4, "f64": 8, "i32": 4, "i64": 8, "c64": 8, "c128": 16}
SMALL = "kernel k(A: f32[37, 53], B: f32[53, 70]) -> (C: f32[37, 70]) { C[i,j] = A[i,k] * B[k,j]; }\n"
DEEP = "kernel k(A: f32[60000, 128], B: f32[60000, 130]) -> (C: f32[128, 130]) { C[i,j] = A[k,i] * B[k,j]; }\n"
PAIRS = "kernel k(A: c64[37, 53], B: c64[53, 70]) -> (C: c64[37, 70]) { C[i,j] = A[i,k] * B[k,j]; }\n"
REFUSED = [  # levels, a part of the message
    ("rows 8, columns 32 pack", "packs both operands once each, or none"),
    ("rows 80 pack, columns 32 pack", "has no registers for so large a tile"),
    ("rows 8", "levels are of rows and columns at least"),
    ("rows 8 pack, columns 12, columns 5 pack", "cut again only into equal, smaller ones"),
    ("rows 0 pack, columns 8 pack", "cut again only into equal, smaller ones"),
    ("rows 13, columns 16", "has no registers for so large a tile"),
    ("sum 900000000000, rows 8 pack, columns 32 pack, rows 4, columns 8", None),
    ("sum 4 pack, rows 8, columns 32", "rows and columns are packed"),
    ("rows 8 pack, columns 32 [4, 8] pack", "one step for each label"),
    ("rows 8 pack, columns 32 [40] pack", "together no more than its tile"),
    ("rows 8 [0] pack, columns 32 pack", "1 or more each"),
    ("rows 8 pack, columns 32 pack, sum 8 [8], columns 16 [16]", "by its numbers, not by steps across them"),
]
REFUSED_NKI = [
    ("rows 256 pack, columns 512 pack, sum 128", "has tiles of at most 128 rows, 512 columns and 128 of the sum"),
    ("rows 128 pack, columns 1024 pack, sum 128", "has tiles of at most 128 rows"),
    ("rows 128 pack, columns 512 pack, sum 256", "has tiles of at most 128 rows"),
    ("rows 128 pack, columns 512 pack", "has tiles of at most 128 rows"),
    ("sum 128, rows 128, columns 512", "has rows and columns outside of the sum"),
    ("sum 256, rows 128 pack, columns 512 pack, sum 128", "packs outside of the sum"),
    ("rows 128 pack, columns 512 pack, sum 128, sum 64", "cuts the sum once"),
    ("rows 256 pack, rows 128 pack, columns 512 pack, sum 128", "packs an operand once"),
    ("rows 1024 pack, columns 512 pack, sum 128, rows 128", "has 4 banks of PSUM here"),
    ("rows 64, columns 70, sum 5, columns 35, rows 32", None),
]


def kernel(rng, n):
    parameters, result, statement = rng.choice(EQUATIONS)
    t = rng.choice(list(BYTES))
    extent = {x: rng.choice([0, 1, 2, 5, 8, 13, 31, 40]) for x in "abk"} | {x: rng.choice([1, 2, 3, 4, 7]) for x in "cde"}
    free = [x for x in "abk" if rng.random() < 0.3]
    names = {x: f"{x}{n}" if x in free else extent[x] for x in extent}
    head = "".join(f"dim {x}{n} ~ {extent[x]};\n" for x in free)
    return f"{head}kernel k{n}({parameters.format(t=t, **names)}) -> ({result.format(t=t, **names)}) {{ {statement} }}\n", BYTES[t], "k" in free


def levels(rng, size, sum_first):
    """Any order of levels that C always has: panels have as many rows as the sum that is left to them, which must be known; tiles
    that cross labels are cut after both operands are packed."""
    if rng.random() < 0.1:
        return ""
    mr = rng.randint(1, 12)
    nr = rng.randint(1, 128 // size)
    place = {}
    for role, tile in (("rows", mr), ("columns", nr)):
        tiles = [tile]
        while rng.random() < 0.5 and len(tiles) < 3:
            tiles.insert(0, tiles[0] * rng.randint(2, 4))
        packed = rng.randrange(len(tiles))
        place[role] = [f"{role} {x}{' pack' if i == packed else ''}" for i, x in enumerate(tiles)]
    sums = [f"sum {rng.randint(1, 24)}"] if sum_first or rng.random() < 0.6 else []
    place["sum"] = [] if sum_first else sums
    out = sums if sum_first else []
    packs = {r: any("pack" in x for x in place[r]) for r in place}
    while any(place.values()):
        role = rng.choice([r for r in place if place[r] and (r == "sum" or packs[r] or not any(packs.values()))])
        out.append(place[role].pop(0))
        packs[role] = packs[role] and "pack" not in out[-1]
    return ", ".join(out)


LEVELS = re.compile(r"(rows .*?)levels \[((?:[^][]|\[[^]]*\])*)\]")


def with_steps(rng, roles, text):
    """Boxes of several labels for some of the levels down to the one that packs; `roles`: the labels by role, as the nest says."""
    labels = {role: len(names.split(",")) for role, names in re.findall(r"(\w+) \[([^]]*)\]", roles)}
    packed, out = set(), []
    for level in text.split(", ") if text else []:
        role, tile = level.split()[:2]
        if labels.get(role, 1) > 1 and role not in packed and "pack" in text and rng.random() < 0.7:
            left, steps = int(tile), []
            for _ in range(labels[role]):
                steps.append(rng.randint(1, left))
                left //= steps[-1]
            level = level.replace(f"{role} {tile}", f"{role} {tile} {steps}", 1)
        packed |= {role, "sum"} if "pack" in level else set()
        out.append(level)
    return ", ".join(out)


def kernel_nki(rng, n):
    parameters, result, statement = rng.choice(EQUATIONS)
    extent = {x: rng.choice([1, 2, 5, 13, 40, 70, 130, 150]) for x in "abk"} | {x: rng.choice([1, 3]) for x in "cde"}
    t = rng.choice(["f32", "f32", "bf16", "f16"])
    twice = rng.choice(["", "", " D[i,j] = 2 * C[i,j];" if "[h" not in result and ", {c}" not in result else ""])
    result = result.format(t=t, **extent)
    if twice and statement.startswith("C[i,j]"):
        result, statement = result.replace("C:", "D:"), statement + twice
    return f"kernel k{n}({parameters.format(t=t, **extent)}) -> ({result}) {{ {statement} }}\n", extent


def levels_nki(rng, extent):
    """Any order of levels that the device has, with as many banks as it always has."""
    strips, place = 1, {}
    for role, most in (("rows", 128), ("columns", 512), ("sum", 128)):
        n = max(extent.values())
        place[role] = [min(most, rng.choice([most, n, n // 2 + 1, n // 3 + 1]))]
    inside = []
    for role in ("rows", "columns"):
        tiles = place[role]
        times = rng.choice([x for x in (1, 2, 3, 4) if strips * x <= 4])
        strips *= times
        if times > 1:
            tiles.insert(0, tiles[0] * times)
            inside.append(f"{role} {tiles.pop()}")
        while rng.random() < 0.5 and len(tiles) < 3:
            tiles.insert(0, tiles[0] * rng.randint(2, 4))
        packed = rng.randrange(-1, len(tiles))
        place[role] = [f"{role} {x}{' pack' if i == packed else ''}" for i, x in enumerate(tiles)]
    rng.shuffle(inside)
    out, outside = [], [r for r in ("rows", "columns") for _ in place[r]]
    rng.shuffle(outside)
    for role in outside:
        out.append(place[role].pop(0))
    return ", ".join([*out, f"sum {place['sum'][0]}", *inside])


def run(tdslc, folder, *args):
    return subprocess.run([tdslc, *args], cwd=folder, capture_output=True, text=True, timeout=600, check=False)


def check(tdslc, target, seed, count):
    rng = random.Random(seed)
    make, cut = (kernel, levels) if target == "c" else (kernel_nki, levels_nki)
    with tempfile.TemporaryDirectory() as folder:
        made = [make(rng, n) for n in range(count)]
        with open(os.path.join(folder, "k.tdsl"), "w", encoding="utf-8") as f:
            f.write("".join(k[0] for k in made))
        nest = run(tdslc, folder, "k.tdsl", "-w", f"--target={target}", "--dump=nest")
        if nest.returncode != 0:
            return nest.stderr or f"tdslc ends with {nest.returncode}"
        parts = re.split(r"(?=^kernel )", nest.stdout, flags=re.M)
        changed = 0
        for i, part in enumerate(parts[1:], 1):
            other = cut(rng, *made[i - 1][1:])
            parts[i], n = LEVELS.subn(lambda m: f"{m[1]}levels [{with_steps(rng, m[1], other) if target == 'c' else other}]", part)
            changed += n
        if changed < count // 2:
            return f"only {changed} of {count} kernels have levels"
        with open(os.path.join(folder, "k.dump"), "w", encoding="utf-8") as f:
            f.write("".join(parts))
        done = run(tdslc, folder, "k.dump", "-w", f"--target={target}", "--check-each", "-o", "k.c")
        again = run(tdslc, folder, "k.dump", "-w", f"--target={target}", "--dump=nest")
        if done.returncode != 0:
            return f"{done.stderr}\n{''.join(parts)}"
        return "" if again.stdout == "".join(parts) else "a nest with other levels is not printed as it was read"


ONCE = [  # a program whose tiles are whole, is its result written once?
    ("A: f32[24, 48], B: f32[48, 64]", "C: f32[24, 64]", "C[i,j] = A[i,k] * B[k,j];", True),
    ("A: f32[8, 24, 10, 24], B: f32[10, 4, 20, 24]", "C: f32[4, 10, 20, 10, 24, 8]", "C[a,b,c,d,e,f] = A[f,g,b,e] * B[d,a,c,g];", True),
    ("A: f32[9, 5, 40], B: f32[40, 7, 6]", "C: f32[9, 7, 5, 6]", "C[a,d,b,e] = A[a,b,c] * B[c,d,e];", True),
    ("A: f32[48, 4000], B: f32[4000, 64]", "C: f32[48, 64]", "C[i,j] = A[i,k] * B[k,j];", True),
    ("A: f32[48, 400000], B: f32[400000, 64]", "C: f32[48, 64]", "C[i,j] = A[i,k] * B[k,j];", False),
]


def written_once(tdslc):
    """Tiles store the first block of a sum into the result: nothing puts zeros there first, but where the sum is cut into parts for its rounding."""
    for parameters, result, statement, once in ONCE:
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "k.tdsl"), "w", encoding="utf-8") as f:
                f.write(f"kernel k({parameters}) -> ({result}) {{ {statement} }}\n")
            done = run(tdslc, folder, "k.tdsl", "-w", "--threads~1", "--check-each", "-o", "k.c")
            with open(os.path.join(folder, "k.c"), encoding="utf-8") as f:
                zeros = re.search(r"\bC\[.*\] = 0\.0f;|tdsl_zero_f32\(C,", f.read())
        if done.returncode != 0 or (zeros is None) != once:
            return f"{statement}: {done.stderr or zeros}"
    return ""


def with_levels(tdslc, target, folder, program, text):
    """Compiles the program with these levels to `k.c`, a file or a folder."""
    with open(os.path.join(folder, "k.tdsl"), "w", encoding="utf-8") as f:
        f.write(program)
    nest = run(tdslc, folder, "k.tdsl", f"--target={target}", "--dump=nest").stdout
    nest = nest.replace("result 0 ; C", "result 0 rows [a] columns [c] sum [b] levels [] ; C")
    with open(os.path.join(folder, "k.dump"), "w", encoding="utf-8") as f:
        f.write(LEVELS.sub(lambda m: f"{m[1]}levels [{text}]", nest))
    return run(tdslc, folder, "k.dump", f"--target={target}", "-o", "k.c")


def refusals(tdslc, target):
    rows = REFUSED if target == "c" else REFUSED_NKI
    cases = [(SMALL, *row) for row in rows]
    if target != "c":
        cases.append((DEEP, "rows 128 pack, columns 512 pack, sum 128", "has no room in SBUF for what is packed"))
        cases.append((DEEP, "rows 128, columns 512, sum 128", None))
        cases.append((PAIRS, "rows 128 pack, columns 512 pack, sum 128", "does not have levels of a contraction of complex numbers"))
    for program, text, message in cases:
        with tempfile.TemporaryDirectory() as folder:
            done = with_levels(tdslc, target, folder, program, text)
            written = os.path.exists(os.path.join(folder, "k.c"))
            if done.returncode != (0 if message is None else 1) or (message or "") not in done.stderr or written != (message is None):
                return f"levels [{text}]: exit {done.returncode}, {done.stderr}"
    return ""


def stores(tdslc, target):
    """What is gathered from a whole sum is the result, from parts of it joins what is there, but for the first; lines of the result are written one by one."""
    program = "kernel k(A: f32[9, 5, 40], B: f32[40, 7, 6]) -> (C: f32[9, 7, 5, 6]) { C[a,d,b,e] = A[a,b,c] * B[c,d,e]; }\n"
    for text, kinds in (("columns 64 [6, 7] pack, rows 32 [5, 6] pack, rows 8, columns 16", ["copy"]), ("sum 16, columns 64 [6, 7] pack, rows 32 [5, 6] pack, rows 8, columns 16", ["reduce"])):
        with tempfile.TemporaryDirectory() as folder:
            with_levels(tdslc, target, folder, program, text)
            legal = run(tdslc, folder, "k.dump", f"--target={target}", "--dump=legal").stdout
        found = re.findall(r"(\w+) \[[^]]*\] @C\[([^]]*)\]", legal)
        if [kind for kind, _ in found] != kinds:
            return f"levels [{text}]: the result is written by {found}"
        order = re.findall(r"(\w+) in", re.search(kinds[-1] + r" \[([^]]*)\] @C", legal)[1])
        if order != [x for x in found[-1][1].split(",") if x in order]:
            return f"levels [{text}]: the result [{found[-1][1]}] is written in the order of {order}"
    return ""


def lines(tdslc, target):
    """The first column lies along lines of the result, the second along those of the operand."""
    program = "kernel k(A: f32[24, 20, 84, 48], B: f32[84, 24]) -> (C: f32[48, 20, 24, 24]) { C[d,c,b,a] = A[a,c,e,d] * B[e,b]; }\n"
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "k.tdsl"), "w", encoding="utf-8") as f:
            f.write(program)
        nest = run(tdslc, folder, "k.tdsl", f"--target={target}", "--dump=nest").stdout
    return "" if "columns [a, d, b] sum [c]" in nest else f"not in the order of lines: {nest}"


def traffic(tdslc, target):
    """What is packed is read once where its level is, what is not is read in each block at most: it is kept where there is room."""
    a, b, rows, columns = 600 * 1300 * 4, 1300 * 1400 * 4, 5, 3    # operands' bytes; tiles of 128 and 512
    program = "kernel k(A: f32[1300, 600], B: f32[1300, 1400]) -> (C: f32[600, 1400]) { C[i,j] = A[k,i] * B[k,j]; }\n"
    for text, read, banks in (
            ("rows 640 pack, columns 1536 pack, rows 128, columns 512, sum 128", a + b, 1),
            ("columns 512, rows 128, sum 128", columns * a + rows * b, 1),
            ("columns 512 pack, rows 128, sum 128", columns * a + b, 1),
            ("rows 128 pack, columns 512, sum 128", a + rows * b, 1),
            ("columns 1536 pack, rows 128 pack, columns 512, sum 128", a + b, 1),
            ("rows 256, columns 1024, sum 128, columns 512, rows 128", 2 * a + 3 * b, 4),
            ("rows 512, columns 1024, sum 128, columns 512, rows 128", 2 * a + 2 * b, 8)):
        with tempfile.TemporaryDirectory() as folder:
            done = with_levels(tdslc, target, folder, program, text)
            if done.returncode != 0:
                return f"levels [{text}]: {done.stderr}"
            with open(os.path.join(folder, "k.c", "k.json"), encoding="utf-8") as f:
                said = json.load(f)["predicted"]
        if not a + b <= said["hbm_read_bytes"] <= read or said["psum_banks"] != banks:
            return f"levels [{text}]: {said['hbm_read_bytes']} bytes read, not {read}; {said['psum_banks']} banks, not {banks}"
    return ""


def tiles(tdslc, target):
    """A matmul has the innermost tiles, and stationary is the operand that has the rows."""
    program = "kernel k(A: f32[53, 60], B: f32[53, 70]) -> (C: f32[60, 70]) { C[i,j] = A[k,i] * B[k,j]; }\n"
    for roles, rows, columns, stationary in (("rows [b] columns [c]", 20, 30, "a"), ("rows [c] columns [b]", 14, 60, "b")):
        with tempfile.TemporaryDirectory() as folder:
            with_levels(tdslc, target, folder, program, f"rows {rows} pack, columns {columns} pack, sum 16")
            with open(os.path.join(folder, "k.dump"), encoding="utf-8") as f:
                nest = f.read()
            with open(os.path.join(folder, "k.dump"), "w", encoding="utf-8") as f:
                f.write(nest.replace("rows [b] columns [c]", roles))
            legal = run(tdslc, folder, "k.dump", f"--target={target}", "--dump=legal")
        first = rf"matmul \[p in 0..{rows}, f in 0..{columns}, k\d* in 0..16\] @acc\[p,f\] \+= mul\(@{stationary}_tiles?\["
        if not re.search(first, legal.stdout):
            return f"{roles}: {legal.stderr}{legal.stdout}"
    return ""


def uneven(tdslc):
    """A loop whose tile is no whole number of the blocks that a sum down columns has, nor these of vectors."""
    program = "kernel k(x: f64[40, 5001]) -> (r: f64[5001]) { r[j] = sum[i](x[i,j]); }\n"
    loop = "nest {\n  axis i [%1[b]] ; 5001\n  for i step 2500 {\n    %1 result 0 ; r\n  }\n}\n"
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "k.tdsl"), "w", encoding="utf-8") as f:
            f.write(program)
        nest = run(tdslc, folder, "k.tdsl", "--dump=nest").stdout
        with open(os.path.join(folder, "k.dump"), "w", encoding="utf-8") as f:
            f.write(nest[:nest.index("nest {\n")] + loop)
        done = run(tdslc, folder, "k.dump", "--check-each", "-o", "k.c")
    return done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tdslc", required=True)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", default="c")
    options = parser.parse_args()
    tdslc = os.path.abspath(options.tdslc)
    problem = check(tdslc, options.target, options.seed, options.count // (3 if QUICK else 1)) or refusals(tdslc, options.target)
    if options.target == "c":
        problem = problem or stores(tdslc, options.target) or written_once(tdslc) or uneven(tdslc) or lines(tdslc, options.target)
    else:
        problem = problem or traffic(tdslc, options.target) or tiles(tdslc, options.target)
    print(problem)
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
