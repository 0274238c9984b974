#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Figures of the NKI texts of all kernels, against those of figures.txt: what a change of the compiler does to them, as a table.

    figures.py --bin DIR [--bless] [--only WORD] [--all]

figures.txt has a line for each kernel of tests and examples that is compiled for Trainium: lines of its texts, instructions that they
run and how many of each kind, predicted time, bytes that DMAs move, programs; or the error where it is refused. A text may change as long as its
line stays; that it computes the right thing is for the other tests. The kinds are counted by running the text, with functions that
count and compute nothing. --bless writes the file; the table is printed then, too, and belongs in the message of the commit.

The kernels are those of tests/golden/nki/*.dump, which only a change of the back end changes, for each generation and two cores,
and those of the programs in FOLDERS, of which the quick set takes a share and the gate half: with the extents of a line `//: m=3` before the kernel,
those of speed.py, or typical ones, and with f64 as f32 where they are not written for Trainium.
"""
import argparse
import concurrent.futures
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
from tables import MOST, changes_of, print_changes, rows_of as rows_in  # noqa: E402
from quick import GATE, share                                           # noqa: E402

RECORDED = os.path.join(HERE, "figures.txt")
FOLDERS = ("tests/backend/nki", "tests/programs", "tests/reports", "examples/**")
# Files of tests/golden/nki, with the options that each is compiled with.
DUMPS = {"kernels.dump": [[], ["--target=trn1"], ["--target=trn3"], ["--lnc=2"]],
         "complex.dump": [[], ["--target=trn1"], ["--target=trn3"]],
         "extents.dump": [[]], "statements.dump": [[]], "parts.dump": [["--max-instructions=12"]]}
EXPRESSIONS = [("ji,jk->ik", "1024x64", "1024x1024"), ("hij,jk->hik", "2x256x256", "256x1024"), ("hij,kj->hik", "3x256x256", "1024x256"),
               ("hij,hjk->hik", "2x256x256", "2x256x1024")]
FIGURES = ("lines", "instructions", "us", "bytes", "programs")


class Case:
    """One compilation. Its rows are called `first`, the kernel, `rest`."""

    def __init__(self, first, words, rest=(), kernel=""):
        self.first, self.words, self.rest, self.kernel = first, words, rest, kernel

    def row(self, kernel):
        return " ".join([self.first, kernel, *self.rest])


def cases_of_dumps():
    for file, variants in DUMPS.items():
        for words in variants:
            yield Case(f"golden/nki/{file}", [os.path.join(ROOT, "tests/golden/nki", file), *words],
                       [w.split("=", 1)[1] if "target" in w else w[2:] for w in words])


def cases_of_speed():
    from speed import MORE, ROWS          # with NumPy, which the other cases need not
    for kernel, extents in sorted({(row[0], tuple(row[1].items())) for row in ROWS + MORE}):
        yield Case("backend/nki/speed.tdsl", [os.path.join(HERE, "speed.tdsl"), f"--kernel={kernel}", *(f"-D{d}={n}" for d, n in extents)],
                   [f"{d}={n}" for d, n in extents], kernel)


def cases_of_program(tdslc, file):
    """None of a file that needs more options."""
    done = subprocess.run([tdslc, file, "-w", "--emit=manifest"], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        return
    with open(file, encoding="utf-8") as stream:
        notes = {name: dict(w.split("=") for w in words.split() if re.fullmatch(r"\w+=\d+", w))
                 for words, name in re.findall(r"^//:(.*)\nkernel (\w+)", stream.read(), re.M)}
    for kernel in json.loads(done.stdout)["kernels"]:
        name = kernel["name"]
        extents = notes.get(name) or {d["name"]: d["typical"] for d in kernel["dims"]}
        for cores in ([], ["--lnc=2"]) if "tests/programs" in file else ([],):
            yield Case(os.path.relpath(file, ROOT).removeprefix("tests/"),
                       [file, f"--kernel={name}", *cores, *([] if HERE in file else ["--f64=f32"]), *(f"-D{d}={n}" for d, n in extents.items())],
                       [w[2:] for w in cores], name)


def all_cases(tdslc):
    yield from share(cases_of_dumps(), 4)
    for equation, *shapes in EXPRESSIONS:
        yield Case(f"-e {equation}", ["-e", equation, *(f"--shape={s}" for s in shapes)], shapes)
    files = {f for folder in FOLDERS for f in glob.glob(os.path.join(ROOT, folder, "*.tdsl"), recursive=True)}
    programs = list(cases_of_speed())
    for file in sorted(files - {os.path.join(HERE, "speed.tdsl")}):
        programs += cases_of_program(tdslc, file)
    yield from share(programs, 32, first=7, gate=2)


class Anything:
    """A tensor, a type, a function: whatever is asked of it is there, and is all that is asked for."""

    def __getattr__(self, name):
        return self

    def __call__(self, *args, **named):
        return args[0] if len(args) == 1 and callable(args[0]) and not isinstance(args[0], Anything) else self

    def __getitem__(self, at):
        return self

    def __eq__(self, other):
        return True


class Language(Anything):
    """nki.language, as one core sees it."""

    def __init__(self, core):
        self.core = core

    def program_id(self, axis):
        return self.core


class Instruction(Anything):
    """A function of nki.isa, or an enumeration there: counts its calls."""

    def __init__(self, kinds, name):
        self.kinds, self.name = kinds, name

    def __call__(self, *args, **named):
        self.kinds[self.name] = self.kinds.get(self.name, 0) + 1


class Isa:
    """nki.isa."""

    def __init__(self):
        self.kinds = {}

    def __getattr__(self, name):
        return Instruction(self.kinds, name)


def run_text(path, cores):
    """Lines of a program, and how many instructions of each kind each core runs."""
    with open(path, encoding="utf-8") as stream:
        text = re.sub(r"^import nki\b.*$", "", stream.read(), flags=re.M)
    code = compile(text, path, "exec")
    kinds = []
    for core in range(cores):
        isa = Isa()
        names = {"nki": Anything(), "nisa": isa, "nl": Language(core)}
        exec(code, names)
        kernel = names[os.path.basename(path)[:-3]]
        try:
            kernel(*[Anything()] * kernel.__code__.co_argcount)
        except (TypeError, NameError, AssertionError) as error:
            raise RuntimeError(f"{os.path.basename(path)} cannot be run: {error}") from error
        kinds.append(isa.kinds)
    return text.rstrip("\n").count("\n") + 1, kinds


def figures_of(folder, name):
    """The row of what lies in the folder."""
    with open(os.path.join(folder, name + ".json"), encoding="utf-8") as stream:
        manifest = json.load(stream)
    programs = [os.path.join(folder, part["manifest"][:-5]) for part in manifest.get("parts", [])] or [os.path.join(folder, name)]
    lines, first, kinds = 0, 0, {}
    for program in programs:
        more, counts = run_text(program + ".py", manifest["lnc"])
        lines += more
        first += sum(counts[0].values())
        for kind, n in (item for core in counts for item in core.items()):
            kinds[kind] = kinds.get(kind, 0) + n
    if first != manifest["instructions"]:   # which the manifest says of the first core
        raise RuntimeError(f"{name}: {first} instructions are run, the manifest has {manifest['instructions']}")
    said = manifest["predicted"]
    figures = {"lines": lines, "instructions": sum(kinds.values()), "us": said["predicted_us"],
               "bytes": said["hbm_read_bytes"] + said["hbm_written_bytes"], "programs": len(programs)}
    return " ".join(f"{key} {figures[key]}" for key in FIGURES) + "; " + " ".join(f"{k} {n}" for k, n in sorted(kinds.items()))


def rows_of(tdslc, case):
    with tempfile.TemporaryDirectory() as place:
        folder = os.path.join(place, "out")
        done = subprocess.run([tdslc, "-w", "--target=trn2", *case.words, "-o", folder], capture_output=True, text=True, timeout=300, check=False)
        if done.returncode in (1, 4) and case.kernel:
            return {case.row(case.kernel): "refused: " + re.search(r"error.{,100}", done.stderr).group()}
        if done.returncode != 0:
            raise RuntimeError(f"{case.first} {case.kernel}: tdslc ends with {done.returncode}: {done.stderr[-2000:]}")
        names = [f[:-5] for f in os.listdir(folder) if f.endswith(".json") and not re.search(r"_part\d+\.json$", f)]
        return {case.row(name): figures_of(folder, name) for name in names}


def main():
    parser = argparse.ArgumentParser(description="Figures of the NKI texts of all kernels.")
    parser.add_argument("--bin", required=True)
    parser.add_argument("--bless", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--all", action="store_true", help="print all rows that changed")
    options = parser.parse_args()
    tdslc = os.path.join(options.bin, "tdslc")
    cases = [case for case in all_cases(tdslc) if options.only in case.row(case.kernel)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        made = {}
        for rows in pool.map(lambda case: rows_of(tdslc, case), cases):
            if made.keys() & rows.keys():
                sys.exit(f"FAILED: two rows of one name: {made.keys() & rows.keys()}")
            made.update(rows)
    if not made:
        sys.exit("FAILED: no kernel")
    text = ""
    if os.path.exists(RECORDED):
        with open(RECORDED, encoding="utf-8") as stream:
            text = stream.read()
    kept = rows_in(text)
    partial = GATE or options.only
    names = sorted(made if partial else made.keys() | kept.keys())
    changes = changes_of(kept, made, names)
    if changes:
        print_changes(changes, len(changes) if options.all else MOST)
    print(f"{len(changes)} of {len(made)} rows changed")
    if changes and options.bless:
        rows = kept | made if partial else made
        with open(RECORDED, "w", encoding="utf-8") as stream:
            stream.writelines(f"{name}: {rows[name]}\n" for name in sorted(rows))
        print(f"blessed {os.path.relpath(RECORDED, ROOT)}")
    elif changes:
        print("FAILED: figures changed. If that is meant: cmake --build build -t bless")
        return 1
    return 0


sys.exit(main())
