# SPDX-License-Identifier: Apache-2.0
"""Contractions cut in other ways than the compiler would: levels at random, written into nests.

    levels.py --tdslc PATH [--count=N] [--seed=S]

Whatever the levels are, a kernel computes the same sums of small integers, exactly: every pass is checked by running the
program after it (`--check-each`). What C cannot do is refused with a message, and nothing is written.
"""
import argparse
import os
import random
import re
import subprocess
import sys
import tempfile

EQUATIONS = [  # parameters, result, statement; letters are extents
    ("A: {t}[{a}, {k}], B: {t}[{k}, {b}]", "C: {t}[{a}, {b}]", "C[i,j] = A[i,k] * B[k,j];"),
    ("A: {t}[{k}, {a}], B: {t}[{b}, {k}]", "C: {t}[{b}, {a}]", "C[j,i] = A[k,i] * B[j,k];"),
    ("A: {t}[{c}, {a}, {k}], B: {t}[{c}, {k}, {b}]", "C: {t}[{c}, {a}, {b}]", "C[h,i,j] = A[h,i,k] * B[h,k,j];"),
    ("A: {t}[{a}, {c}, {k}], B: {t}[{b}, {k}]", "C: {t}[{a}, {b}, {c}]", "C[i,j,h] = A[i,h,k] * B[j,k];"),
    ("A: {t}[{a}, {k}, {c}], B: {t}[{c}, {k}, {b}]", "C: {t}[{a}, {b}]", "C[i,j] = A[i,k,h] * B[h,k,j];"),
    ("A: {t}[{a}, {k}], B: {t}[{k}, {b}, {c}]", "C: {t}[{c}, {a}, {b}]", "C[h,i,j] = A[i,k] * B[k,j,h];"),
]
BYTES = {"f32": 4, "f64": 8, "i32": 4, "i64": 8}
REFUSED = [  # levels, a part of the message
    ("rows 8, columns 32 pack", "packs both operands once each, or none"),
    ("rows 80 pack, columns 32 pack", "has no registers for so large a tile"),
    ("rows 8", "levels are of rows and columns at least"),
    ("rows 8 pack, columns 12, columns 5 pack", "cut again only into equal, smaller ones"),
    ("rows 0 pack, columns 8 pack", "cut again only into equal, smaller ones"),
    ("rows 16, columns 16", "at most eight rows"),
    ("sum 900000000000, rows 8 pack, columns 32 pack, rows 4, columns 8", None),
    ("sum 4 pack, rows 8, columns 32", "rows and columns are packed"),
]


def kernel(rng, n):
    parameters, result, statement = rng.choice(EQUATIONS)
    t = rng.choice(list(BYTES))
    extent = {x: rng.choice([0, 1, 2, 5, 8, 13, 31, 40]) for x in "abk"} | {"c": rng.choice([1, 3])}
    free = [x for x in "abk" if rng.random() < 0.3]
    names = {x: f"{x}{n}" if x in free else extent[x] for x in extent}
    head = "".join(f"dim {x}{n} ~ {extent[x]};\n" for x in free)
    return f"{head}kernel k{n}({parameters.format(t=t, **names)}) -> ({result.format(t=t, **names)}) {{ {statement} }}\n", BYTES[t], "k" in free


def levels(rng, size, sum_first):
    """Any order of levels that C has: panels have as many rows as the sum that is left to them, which must be known."""
    if rng.random() < 0.1:
        return ""
    mr = rng.randint(1, 16)
    nr = rng.randint(1, min(128, 1024 // mr) // size)
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
    while any(place.values()):
        role = rng.choice([r for r in place if place[r]])
        out.append(place[role].pop(0))
    return ", ".join(out)


def run(tdslc, folder, *args):
    return subprocess.run([tdslc, *args], cwd=folder, capture_output=True, text=True, timeout=600, check=False)


def check(tdslc, seed, count):
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        made = [kernel(rng, n) for n in range(count)]
        with open(os.path.join(folder, "k.tdsl"), "w", encoding="utf-8") as f:
            f.write("".join(k[0] for k in made))
        nest = run(tdslc, folder, "k.tdsl", "--dump=nest")
        if nest.returncode != 0:
            return nest.stderr
        parts = re.split(r"(?=^kernel )", nest.stdout, flags=re.M)
        changed = 0
        for i, part in enumerate(parts[1:], 1):
            parts[i], n = re.subn(r"levels \[.*\]", f"levels [{levels(rng, *made[i - 1][1:])}]", part)
            changed += n
        if changed < count // 2:
            return f"only {changed} of {count} kernels have levels"
        with open(os.path.join(folder, "k.dump"), "w", encoding="utf-8") as f:
            f.write("".join(parts))
        done = run(tdslc, folder, "k.dump", "--check-each", "-o", "k.c")
        again = run(tdslc, folder, "k.dump", "--dump=nest")
        if done.returncode != 0:
            return f"{done.stderr}\n{''.join(parts)}"
        return "" if again.stdout == "".join(parts) else "a nest with other levels is not printed as it was read"


def refusals(tdslc):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "k.tdsl"), "w", encoding="utf-8") as f:
            f.write("kernel k(A: f32[37, 53], B: f32[53, 70]) -> (C: f32[37, 70]) { C[i,j] = A[i,k] * B[k,j]; }\n")
        nest = run(tdslc, folder, "k.tdsl", "--dump=nest").stdout
        for text, message in REFUSED:
            with open(os.path.join(folder, "k.dump"), "w", encoding="utf-8") as f:
                f.write(re.sub(r"levels \[.*\]", f"levels [{text}]", nest))
            done = run(tdslc, folder, "k.dump", "-o", "k.c")
            if message is None:
                if done.returncode != 0:
                    return f"levels [{text}]: {done.stderr}"
            elif done.returncode != 1 or message not in done.stderr or os.path.exists(os.path.join(folder, "k.c")):
                return f"levels [{text}]: exit {done.returncode}, {done.stderr}"
            if message is None:
                os.remove(os.path.join(folder, "k.c"))
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tdslc", required=True)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    tdslc = os.path.abspath(options.tdslc)
    problem = check(tdslc, options.seed, options.count) or refusals(tdslc)
    print(problem)
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
