# SPDX-License-Identifier: Apache-2.0
"""The cases of the test data through the device's back end: compiled, emulated, compared, judged.

    cases.py run   --bin DIR [--all] [--judge] [--only TEXT] [--dtype T] [--target T] [--part K/N]
    cases.py table --bin DIR [--check docs/trainium.md | --write docs/trainium.md]

run    einsum cases (tests/data/einsum.json), seed cases (tests/data/seed.json, seed.tdsl) and the programs of tests/programs, in
       the device's element types. Without --all a sample: the cases whose name hashes to 0, of at most 20000 points.
       --judge gives the trn2 kernels to the second judge as well (77: it cannot be had here, and nothing else failed).
table  which of all these the compiler refuses, with code and reason, as Markdown; --check compares it with what a document has.

Operands are integers so small that all sums are exact in the element type, where that can be; then results must be equal. The other
programs are compared with C in double precision.
"""
import argparse
import json
import os
import re
import sys
import tempfile
import zlib

import numpy as np

import harness
from harness import EXACT, ROOT, STEP, Failure, Refused, compare, compile_for, emulated, kernels_of, reference, share

SAMPLE_POINTS = 20000
MOST_POINTS = 5 * 10 ** 8         # larger einsum cases are compiled and verified, not emulated
WIDE = {"f32": "f64", "f16": "f64", "bf16": "f64", "c64": "c128"}


def hashed(text):
    return zlib.crc32(text.encode())


# ---- equations ----

def fill(shape, k):
    """The data the recorded sums are of."""
    n = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
    return ((7 * n + 13 * k + 3) % 11 - 5).astype(np.float64)


def terms_of(eq, operands):
    """(labels of each operand, labels of the result), the ellipsis spelled out."""
    from numpy.core.einsumfunc import _parse_einsum_input
    left, right, _ = _parse_einsum_input((eq, *operands))
    return left.split(","), right


def largest_sum(terms, out, operands):
    """A bound on every value and partial sum of every intermediate of any order of contraction."""
    size = [np.abs(x) for x in operands]
    worst = 0.0
    for chosen in range(1, 1 << len(size)):
        here = [k for k in range(len(size)) if chosen >> k & 1]
        others = set("".join(terms[k] for k in range(len(size)) if not chosen >> k & 1)) | set(out)
        keep = "".join(dict.fromkeys(c for k in here for c in terms[k] if c in others))
        length = {c: n for k in here for c, n in zip(terms[k], size[k].shape)}
        if np.prod([float(length[c]) for c in keep]) > 2e6:          # too large to hold
            worst = max(worst, float(np.prod([size[k].max(initial=0) for k in here]) *
                                     np.prod([float(n) for c, n in length.items() if c not in keep])))
            continue
        words = ",".join(terms[k] for k in here) + "->" + keep
        worst = max(worst, float(np.einsum(words, *[size[k] for k in here], optimize=True).max(initial=0)))
    return worst


def exact_operands(row, dtype, first):
    """Small integers, thinned out until all is exact in the type; None where that leaves nothing or is not known."""
    shapes, limit = row["shapes"], EXACT.get(dtype, 2 ** 24)
    terms, out = terms_of(row["eq"], first)
    if len(shapes) > 6:
        return None                                      # too many orders of contraction
    if largest_sum(terms, out, first) <= limit and dtype != "c64":
        return first
    rng = np.random.default_rng(hashed(row["id"]))
    for density in (1.0, 0.6, 0.3, 0.15, 0.08, 0.04, 0.02, 0.01):
        operands = []
        for s in shapes:
            values = rng.choice((-2.0, -1.0, 1.0, 2.0), s) * (rng.random(s) < density)
            if dtype == "c64":
                values = values + 1j * rng.choice((-1.0, 0.0, 1.0), s) * (rng.random(s) < density)
            operands.append(np.asarray(values))
        if largest_sum(terms, out, operands) * (2 ** len(shapes) if dtype == "c64" else 1) <= limit:
            return operands
    return None


class EinsumCase:
    def __init__(self, row, dtype, target):
        self.row, self.dtype, self.target = row, dtype, target
        self.name = f"{row['id']} {row['eq']!r} {dtype} {target}"
        self.points = row.get("iter_space") or 0

    def words(self, folder):
        shape = [w for s in self.row["shapes"] for w in ("--shape", "x".join(map(str, s)))]
        if not self.row.get("same"):
            return ["-e", self.row["eq"], *shape, f"--dtype={self.dtype}"]
        # one tensor for all operands
        path = os.path.join(folder, "same.tdsl")
        first = self.row["shapes"][0]
        out = self.row["eq"].split("->")[1]
        size = dict(zip(self.row["eq"].split(",")[0], first))
        size.update(zip(self.row["eq"].split("->")[0].split(",")[1], first))
        with open(path, "w", encoding="utf-8") as stream:
            stream.write("kernel einsum(A: %s[%s]) -> (C: %s[%s]) { C = einsum(\"%s\", A, A); }\n" % (
                self.dtype, ",".join(map(str, first)), self.dtype, ",".join(str(size[c]) for c in out), self.row["eq"]))
        return [path]

    def run(self, tools, folder):
        row = self.row
        out = os.path.join(folder, "out")
        manifest = compile_for(tools, self.target, out, self.words(folder))["einsum"]
        if self.points > MOST_POINTS:
            return None
        first = [fill(s, 0 if row.get("same") else k) for k, s in enumerate(row["shapes"])]
        operands = exact_operands(row, self.dtype, first)
        exact = operands is not None
        operands = operands or first
        if row.get("same"):
            operands = [operands[0]] * 2
        got, _ = emulated(manifest, operands[:len(manifest.inputs)], self.target)
        wide = [x.astype(np.complex128 if self.dtype == "c64" else np.float64) for x in operands]
        wanted = np.einsum(row["eq"], *wide, optimize=len(wide) > 2)
        bound = 0
        if not exact:            # a rounding for every factor and every level of summation
            terms = np.einsum(row["eq"], *[np.abs(x) for x in wide], optimize=True)
            bound = 4 * len(wide) * STEP[self.dtype] * np.abs(terms).max(initial=0)
        compare(["result"], got, [np.asarray(wanted)], [bound])
        if exact and operands is first and "sum" in row:
            flat = np.rint(got[0]).astype(np.int64).reshape(-1)
            sums = (int(flat.sum()), int((flat * (np.arange(flat.size) % 97 + 1)).sum()))
            if sums != (row["sum"], row["wsum"]):
                raise Failure(f"sums {sums}, recorded are {(row['sum'], row['wsum'])}")
        return manifest


# ---- programs ----

# Divisions, functions, and sums beyond 2^24: compared with a bound.
CLOSE = {"dfmp2_energy", "dfmp2_density", "attention", "attention_gqa", "mp2_energy", "ao_to_mo_mp2", "mp2_reduce_chunk", "mp2_pair",
         "mp2_all_pairs"}


def retyped(text, real, complex_):
    return re.sub(r"\bc(?:64|128)\b", complex_, re.sub(r"\bf(?:32|64)\b", real, text))


class ProgramCase:
    def __init__(self, name, kernel, dims, dtype, target, points=0):
        self.kernel, self.dims, self.dtype, self.target = kernel, dims, dtype, target
        self.name = f"{name} {dtype} {target}"
        self.points = points
        self.close = kernel.name in CLOSE

    def define(self):
        used = {d for p in self.kernel.params + self.kernel.results for d in p.dims}
        return [w for d, n in self.dims.items() if d in used for w in ("-D", f"{d}={n}")]

    def source(self, folder, real, complex_):
        path = os.path.join(folder, f"{real}.tdsl")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(retyped(self.kernel.text, real, complex_))
        return [path, *self.define()]

    def words(self, folder):
        return self.source(folder, self.dtype, "c64")

    def arrays(self):
        rng = np.random.default_rng(hashed(self.kernel.name))
        found = []
        for p in self.kernel.params:
            shape = tuple(int(self.dims.get(d, d)) for d in p.dims)
            if p.name in ("eo", "ec", "e"):                       # energies: no pole
                found.append(np.sort(-rng.random(shape) - 1.0, axis=None).reshape(shape))
            elif p.name == "ev":
                found.append(rng.random(shape) + 0.5)
            elif self.close and self.kernel.name.startswith("attention"):
                found.append(rng.integers(-2, 3, shape) * 0.5)
            else:
                values = rng.choice((-1.0, 1.0), shape) * (rng.random(shape) < 0.7)
                found.append(values + 1j * rng.integers(-1, 2, shape) if p.dtype.startswith("c") else values)
            found[-1] = np.asarray(found[-1])
            if not np.iscomplexobj(found[-1]):
                found[-1] = found[-1].astype(np.float16 if self.dtype == "f16" else np.float32).astype(np.float64)
                if self.dtype == "bf16":
                    found[-1] = harness.plain(harness.bfloat16_bits(found[-1]), True).reshape(shape)
        return found

    def run(self, tools, folder):
        out = os.path.join(folder, "out")
        manifest = compile_for(tools, self.target, out, self.words(folder))[self.kernel.name]
        arrays = self.arrays()
        got, _ = emulated(manifest, arrays, self.target)
        wanted = self.reference(tools, folder, arrays)
        bounds = []
        for name, b in zip(self.kernel.outputs, wanted):
            most = np.abs(b).max(initial=0)
            if self.dtype in ("bf16", "f16"):
                # each statement rounds once, to half a step of its terms' magnitude
                terms = self.reference(tools, folder, [np.abs(x) for x in arrays]) if not self.close else [b]
                most = max(most, *(np.abs(t).max(initial=0) for t in terms))
                bounds.append((self.kernel.text.count(";") + 2) * (4 if self.close else 1) * STEP[self.dtype] * most)
            elif self.close or most >= EXACT["f32"]:
                bounds.append(2e-5 * most)
            else:
                bounds.append(0)
        if self.dtype == "f16":                                    # beyond 65504 is infinity
            with np.errstate(over="ignore"):
                wanted = [np.where(np.abs(b) > 65504, b.astype(np.float16), b) for b in wanted]
        compare([p.name for p in self.kernel.outputs], got, wanted, bounds)
        return manifest

    def reference(self, tools, folder, arrays):
        """By C, in double precision; tiny ones by the interpreter."""
        return reference(tools, folder, self.source(folder, "f64", "c128"), self.kernel, arrays,
                         dtype="c128" if "c" in {p.dtype[0] for p in self.kernel.params} else "f64",
                         target="c" if self.points else "interp")


# ---- all of them ----

def read_json(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as stream:
        return json.load(stream)


def read_text(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as stream:
        return stream.read()


def einsum_rows(largest):
    for row in read_json("tests", "data", "einsum.json")["cases"]:
        if row["status"] in ("ok", "perf-only") and all(n <= largest for s in row["shapes"] for n in s):
            yield row
    for row in read_json("tests", "data", "seed.json")["einsum"]:
        sizes = {}
        for term, shape in zip(row["eq"].split("->")[0].replace("...", "").split(","), row["shapes"]):
            sizes.update(zip(term, shape))
        yield {**row, "iter_space": int(np.prod([float(n) for n in sizes.values()]))}


def program_rows():
    """(name, kernel, dims, is it small enough for a quick run)"""
    sizes = read_json("tests", "programs", "sizes.json")
    for kernel in kernels_of(read_text("tests", "programs", "programs.tdsl")):
        for size in ("tiny", "small"):
            yield f"{kernel.name} {size}", kernel, sizes[kernel.name][size], size == "tiny"
    seed = {k.name: k for k in kernels_of(read_text("tests", "backend", "nki", "seed.tdsl"))}
    for row in read_json("tests", "data", "seed.json")["fused"]:
        points = np.prod([float(n) for n in row["dims"].values()])
        yield f"{row['id']} {row['kernel']}", seed[row["kernel"]], row["dims"], points <= 5000


def all_cases():
    """Every case in every element type it is tried in, on trn2; some also on the other generations."""
    for row in einsum_rows(600):
        if any(0 in s for s in row["shapes"]):
            continue                                     # refused: see the table
        types = ("c64",) if row.get("dtype") == "c64" else ("f32", "bf16", "f16", "c64")
        for dtype in types:
            if dtype != types[0] and ((row.get("iter_space") or 0) > SAMPLE_POINTS or len(row["shapes"]) > 4):
                continue
            yield EinsumCase(row, dtype, "trn2")
        other = ("trn1", "trn3")[hashed(row["id"]) % 2]
        if hashed(row["id"]) // 2 % 3 == 0 and (row.get("iter_space") or 0) <= SAMPLE_POINTS:
            yield EinsumCase(row, types[0], other)
    for name, kernel, dims, quick in program_rows():
        complex_ = any(p.dtype.startswith("c") for p in kernel.params)
        for dtype in ("f32",) if complex_ or not quick else ("f32", "bf16", "f16"):
            for target in ("trn2", "trn1", "trn3") if quick and dtype == "f32" else ("trn2",):
                yield ProgramCase(name, kernel, dims, dtype, target, 0 if quick else 10 ** 9)


def in_sample(case):
    if isinstance(case, ProgramCase):
        return case.points == 0 and case.dtype != "f16"
    return case.points <= SAMPLE_POINTS and hashed(case.name) % 16 == 0


def chosen_cases(options):
    part, parts = (int(n) for n in options.part.split("/"))
    for case in all_cases():
        wanted = options.all or options.only or in_sample(case)
        if wanted and (not options.only or options.only in case.name) and \
                (not options.dtype or options.dtype == case.dtype) and \
                (not options.target or options.target == case.target) and hashed(case.name) % parts == part:
            yield case


def run_cases(options):
    count = failed = refused = unrun = 0
    judged = []
    with tempfile.TemporaryDirectory() as top:
        for case in share(chosen_cases(options), 8):
            count += 1
            folder = os.path.join(top, str(count))
            os.makedirs(folder)
            problem = None
            try:
                manifest = case.run(options.bin, folder)
                unrun += manifest is None
                if options.judge and case.target == "trn2" and manifest is not None:
                    judged += [p.manifest for p in manifest.parts] or [os.path.splitext(manifest.file)[0] + ".json"]
            except Refused as no:
                refused += 1
                if not expected_refusal(case, no):
                    problem = f"refused: {no}"
            except (Failure, ValueError, OSError) as error:
                problem = f"{type(error).__name__}: {error}"
            if problem:
                failed += 1
                print(f"FAILED {case.name}: {problem}", flush=True)
            elif options.verbose:
                print(f"passed {case.name}", flush=True)
        print(f"{count - failed - refused - unrun} of {count} cases are right, {refused} refused, {failed} failed" +
              (f", {unrun} compiled but too large to emulate" if unrun else ""))
        status = 1 if failed or count == 0 else 0
        return judge(options, judged) or status if options.judge else status


# ---- the table of what is refused ----

BEGIN, END = "<!-- cases.py table -->", "<!-- end of the table -->"


def table_cases():
    """(group, name, words or ProgramCase) of everything that the test data has, compiled only."""
    for row in einsum_rows(600):
        if (row.get("iter_space") or 0) > MOST_POINTS:
            continue
        dtype = row.get("dtype", "f32")
        group = "seed cases" if "sources" not in row else "einsum cases with an extent of 0" \
            if any(0 in s for s in row["shapes"]) else "einsum cases, extents to 600, at most 5e8 points"
        yield group, row["id"], EinsumCase(row, dtype, "trn2")
    for name, kernel, dims, _ in program_rows():
        group = "seed cases" if name.split("-")[0] in ("fused", "update") else "programs, tiny and small"
        dtype = "f32"
        yield group, name, ProgramCase(name, kernel, dims, dtype, "trn2")
    matmul = {"id": "matmul", "eq": "ij,jk->ik", "shapes": [[8, 8], [8, 8]]}
    for dtype in ("f64", "c128", "i32", "i64", "bool"):
        yield "element types", dtype, EinsumCase(matmul, dtype, "trn2")


def reason_of(text):
    """The message without names and places."""
    found = re.search(r"error\[E\d+\]: (?:unsupported|limit): (.*)", text)
    said = found.group(1) if found else text.strip().splitlines()[-1]
    said = re.sub(r"target 'trn2' does not have ", "no ", said)
    said = re.sub(r" \(of '\w+'\)| \('\w+' has .*?\)", "", said)
    return re.sub(r"kernel '\w+' takes", "takes", said).replace(" for target 'trn2'", "")


def make_table(options):
    groups, refused, split = {}, {}, {}
    for group, name, case in table_cases():
        if options.only and options.only not in name:
            continue
        groups[group] = groups.get(group, 0) + 1
        with tempfile.TemporaryDirectory() as folder:
            try:
                made = compile_for(options.bin, "trn2", os.path.join(folder, "out"), case.words(folder))
                if any(m.parts for m in made.values()):
                    split.setdefault(group, []).append(name)
            except Refused as no:
                refused.setdefault((group, no.code, reason_of(no.text)), []).append(name)
    lines = ["| cases | number | refused | code | why |", "|---|---:|---|---|---|"]
    for group, count in groups.items():
        rows = [(k[1], k[2], v) for k, v in refused.items() if k[0] == group]
        for at, (code, why, names) in enumerate(rows):
            shown = ", ".join(names) if len(names) <= 8 else f"{len(names)}: {', '.join(names[:6])}, ..."
            lines.append(f"| {group if at == 0 else ''} | {count if at == 0 else ''} | {shown} | {code} | {why} |")
        if not rows:
            lines.append(f"| {group} | {count} | none | | |")
    several = [f"{len(v)} of the {k}" for k, v in split.items()]
    if several:
        lines += ["", "Compiled to several device programs: " + "; ".join(several) + "."]
    return "\n".join(lines) + "\n"


def table(options):
    made = make_table(options)
    path = options.check or options.write
    if path is None:
        print(made, end="")
        return 0
    with open(path, encoding="utf-8") as stream:
        text = stream.read()
    if BEGIN not in text or END not in text:
        print(f"{path} has no place for the table: {BEGIN} ... {END}")
        return 1
    head, rest = text.split(BEGIN, 1)
    wanted = head + BEGIN + "\n" + made + END + rest.split(END, 1)[1]
    if options.write:
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(wanted)
        return 0
    if wanted != text:
        print(f"the table of {path} is not what is refused now (cases.py table --write makes it anew):\n{made}")
    return wanted != text


def expected_refusal(case, no):
    """Limits of size for large cases; element types the target says that it does not have."""
    if no.code == "E0602":
        return case.points > SAMPLE_POINTS
    return no.code == "E0501" and re.search(r"does not have c(64|128) ", no.text) is not None


def judge(options, manifests):
    if not manifests:
        return 0
    command = [sys.executable, "-B", os.path.join(ROOT, "tests/judge/judge.py"), "--no-planted", *manifests]
    done = harness.subprocess.run(command, timeout=3000, check=False, capture_output=True, text=True)
    lines = [x for x in done.stdout.splitlines() if not x.startswith("passed") and (options.verbose or not x.startswith("skipped "))]
    print("\n".join(lines[-200:]), done.stderr, sep="\n")
    return done.returncode


def main():
    parser = argparse.ArgumentParser(description="The cases of the test data on the device's back end.")
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--bin", required=True)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--judge", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--dtype")
    parser.add_argument("--target")
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--check")
    parser.add_argument("--write")
    options = parser.parse_args()
    return run_cases(options) if options.what == "run" else table(options)


if __name__ == "__main__":
    sys.exit(main())
