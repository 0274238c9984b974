#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random einsum strings whose extents are often 0 or 1, through every stage, report and target: each command ends
soon, says nothing of a fault of ours, and its JSON has no number that JSON lacks.

usage: extents.py --tdslc=PROGRAM [--count=N] [--seed=S]
"""
import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

EXTENTS = [0, 0, 0, 1, 1, 1, 2, 3, 5, 8, 40, 200]
SECONDS = 20


def equation(r):
    """(string, shapes): labels may be repeated, summed alone, or stretched; a scalar now and then."""
    letters = r.sample("abcghijklmMN", r.randint(1, 6))
    extent = {x: r.choice(EXTENTS) for x in letters}
    terms = []
    for _ in range(r.choice([1, 2, 2, 3, 3, 3, 4, 5])):
        terms.append("".join(r.choices(letters, k=r.randint(0, 3)) if r.random() < 0.2
                             else r.sample(letters, min(len(letters), r.randint(0, 3)))))
    used = sorted(set("".join(terms)))
    output = "".join(r.sample(used, r.randint(0, min(3, len(used)))))
    shapes = []
    for term in terms:
        stretched = {x: 1 if r.random() < 0.15 else extent[x] for x in term}
        shapes.append("x".join(str(stretched[x]) for x in term))
    return f"{','.join(terms)}->{output}", shapes


def whole_number_or_real(text):
    raise ValueError(f"{text} is no JSON")


def run(command, folder):
    """What is wrong, or None."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"takes more than {SECONDS} s"
    if done.returncode not in (0, 1, 4):
        return f"status {done.returncode}\n{done.stderr[:2000]}"
    if done.returncode != 0 and "unsupported" not in done.stderr and "limit" not in done.stderr:
        return done.stderr[:2000]
    if "runtime error" in done.stderr:
        return done.stderr[:2000]
    text = done.stdout
    if "--report=json" in command and done.returncode == 0:
        try:
            json.loads(text, parse_constant=whole_number_or_real)
        except ValueError as e:
            return f"{e}\n{text[:2000]}"
    if any(c.startswith("--report") for c in command):
        words = text.replace("<", " ").replace(">", " ").replace("&", " ").replace("(", " ").split()
        if any(w.lstrip("-").rstrip(",;") in ("nan", "inf") for w in words):
            return f"prints nan or inf\n{text[:2000]}"
    return None


def commands(tdslc, r, text, shapes):
    base = [tdslc, "-e", text] + [f"--shape={s}" for s in shapes] + ["-w", f"--dtype={r.choice(['f32', 'f64', 'c64', 'i64', 'f16'])}"]
    for stage in ("graph", "path", "nest", "loop", "legal"):
        yield base + [f"--dump={stage}"]
    for form in ("", "=json", "=html"):
        yield base + [f"--report{form}", "-o", "out.c"]
    limit = f"--memory-limit={r.choice([1, 2, 7, 100])}"
    for search in ("exact", "greedy", "random-greedy", "eliminate", "bisect", "anneal"):
        yield base + ["--emit=path", "--report=json", f"--search={search}"]
    yield base + ["--emit=path", "--report=json", limit]
    yield base + ["--emit=path", "--report", f"--objective={r.choice(['size', 'write', 'combo', 'roofline'])}"]
    yield base + ["--report=json", limit, "-o", "out.c"]
    yield base[:-1] + ["--dtype=f32", "--target=trn2", "--report=json", "-o", "device"]


def exchange(tdslc, r, text, shapes, folder):
    """The path tool and the kernel write one plan, and take each other's. What is wrong, or None."""
    base = [tdslc, "-w", "-e", text] + [f"--shape={s}" for s in shapes]
    searched = r.choice([[], [], [f"--memory-limit={r.choice([1, 5, 50])}"], ["--search=greedy"], ["--search=exact"], ["--objective=size"]])
    tool, kernel = Path(folder, "tool.plan"), Path(folder, "kernel.plan")
    for command in (base + searched + ["--emit=path", f"--plan-out={tool}", "-o", "tool.txt"],
                    base + searched + [f"--plan-out={kernel}", "-o", "out.c"],
                    base + searched + [f"--plan-in={tool}", "-o", "out.c"],
                    base + searched + ["--emit=path", f"--plan-in={kernel}", "-o", "tool.txt"]):
        wrong = run(command, folder)
        if wrong is not None:
            return f"{' '.join(command)}\n  {wrong}"
    if tool.read_bytes() != kernel.read_bytes():
        return f"{' '.join(base + searched)}\n  two plans\n{tool.read_text()}\n{kernel.read_text()}"
    return None


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--tdslc", required=True)
    p.add_argument("--count", type=int, default=20)
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    ran = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(a.seed, a.seed + a.count):
            r = random.Random(seed)
            text, shapes = equation(r)
            for command in commands(str(Path(a.tdslc).resolve()), r, text, shapes):
                ran += 1
                wrong = run(command, folder)
                if wrong is not None:
                    failed += 1
                    print(f"seed {seed}: {' '.join(command)}\n  {wrong}")
            ran += 1
            wrong = exchange(str(Path(a.tdslc).resolve()), r, text, shapes, folder)
            if wrong is not None:
                failed += 1
                print(f"seed {seed}: {wrong}")
    print(f"{ran - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
