# SPDX-License-Identifier: Apache-2.0
"""Names that generated C defines: each stands once in own_names.list, of one kind, and no two rows of the list can be the same name. What is
compiled for that is every operation for every element type, in kernels with and without threads, by gcc and by clang: all in a few files, and
(but for the quick set) each alone, since a file that has the others may hide what one lacks. The names that the programs of the examples and tests define are looked up too.

    defined.py --tdslc PATH --tree FOLDER
"""
import argparse
import concurrent.futures
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import quick  # noqa: E402
import steps  # noqa: E402

FLAGS = ["-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
REAL, COMPLEX, WHOLE = ["f64", "f32", "f16", "bf16"], ["c64", "c128"], ["i32", "i64"]
TYPES = [*REAL, *COMPLEX, *WHOLE, "bool"]
SHORT = ["i8", "u8", "i16"]  # products of these
RULES = {"ANY": TYPES, "FLOAT": REAL + COMPLEX, "REAL": REAL + WHOLE, "RFLOAT": REAL, "NUMBER": REAL + COMPLEX + WHOLE, "ORDER": REAL + WHOLE,
         "EQUAL": TYPES, "LOGIC": ["bool"], "SELECT": TYPES, "PART": REAL + COMPLEX + WHOLE, "CAST": TYPES}
NOT_WRITTEN = ["copy", "cast", "scale", "where"]  # operations that programs have no word for
STORED = re.findall(r'^TYPE\(\w+, "(\w+)"', (pathlib.Path(__file__).resolve().parents[3] / "compiler/op/types.def").read_text(), re.M)
HOLES = {"type": "|".join(STORED), "n": r"\d+", "isa": "plain|vectors|neon|avx2|avx512|dotprod|avxvnni|avx512vnni", "more": "[b-z]?|z[0-9]+", "shape": r"\d+x\d+\w*", "kernel": r"\w+"}


# ---- the list ----

def read_list(tree):
    """(name with holes, kind) of each row, and those of the header that callers see."""
    ops = re.findall(r'^MAP\(OP_\w+, "(\w+)"', (tree / "compiler/op/ops.def").read_text(), re.M)
    rows = [tuple(line.split()) for line in (tree / "compiler/backend/ctext/own_names.list").read_text().splitlines() if line and line[0] != "#"]
    include = tree / "runtime/include"
    headers = [definitions(["gcc", "-I", include], include / "tdsl" / name) for name in ("abi.h", "dist_abi.h")]
    rows += sorted({**headers[0], **headers[1]}.items())
    return rows, "|".join(ops)


def pattern(name, ops):
    return re.compile(re.sub(r"\{(\w+)\}", lambda m: f"({ops})" if m[1] == "op" else f"({HOLES[m[1]]})", name) + r"\Z")


def examples(name, ops):
    """Names that the row can stand for; of kernels and numbers some are enough, but for those that other rows begin with."""
    few = {"n": ["1", "32"], "more": ["", "b"], "shape": ["6x16s"], "kernel": ["k"]}
    parts = re.split(r"(\{\w+\})", name)
    choices = [(few.get(p[1:-1]) or (ops if p == "{op}" else HOLES[p[1:-1]]).split("|")) if p.startswith("{") else [p] for p in parts]
    return ["".join(words) for words in itertools.product(*choices)]


def check_list(rows, ops, tree):
    """No name is of two rows, whatever a kernel is called, and each helper with a text of its own is of one."""
    patterns = [pattern(name, ops) for name, _ in rows]
    for name in re.findall(r'^ *\{"(tdsl_\w+)", ', (tree / "compiler/backend/ctext/help_fixed.c").read_text(), re.M):
        assert any(made.match(name) for made in patterns), f"{name} of help_fixed.c is not in own_names.list"
    for k, (name, _) in enumerate(rows):
        for example in examples(name, ops):
            for other, made in zip(rows[k + 1:], patterns[k + 1:]):
                assert not made.match(example), f"own_names.list: {example} is both {name} and {other[0]}"
            for other, made in zip(rows[:k], patterns[:k]):
                assert not made.match(example), f"own_names.list: {example} is both {other[0]} and {name}"


# ---- what a file defines ----

def declarations(text):
    """Texts of declarations outside of braces, with {} for what braces hold."""
    out, depth = [], 0
    for part in re.findall(r'"(?:\\.|[^"\\])*"|[{};]|[^{};"]+', text):
        if part == "{":
            out += ["{}"] if depth == 0 else []
            depth += 1
        elif part == "}":
            depth -= 1
            whole = "".join(out)
            if depth == 0 and "(" in whole.split("{}")[0] and "=" not in whole and not whole.lstrip().startswith("typedef"):
                yield whole  # a function
                out = []
        elif depth == 0 and part == ";":
            yield "".join(out)
            out = []
        elif depth == 0:
            out.append(part)


def declared(text):
    """(name, kind) of a declaration; tags of structures are types."""
    text = re.sub(r"__attribute__\s*\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)|__extension__|_Pragma\s*\([^)]*\)", " ", text)
    text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
    for tag in re.findall(r"\b(?:struct|union|enum)\s+(\w+)\s*\{\}", text):
        yield tag, "type"
    head = re.split(r"=|\[", text)[0]
    kind = "type" if re.match(r"\s*typedef\b", head) else "function" if "(" in head else "object"
    name = re.search(r"(\w+)\s*\(" if "(" in head else r"(\w+)\s*\Z", head.strip())
    if name and not re.match(r"\s*(struct|union|enum)\s+\w+\s*(\{\})?\s*\Z", text):
        yield name[1], kind


def definitions(cc, path):
    """{name: kind} of what the C defines: macros too."""
    whole = steps.run("preprocess", [*cc, "-std=c11", "-E", "-P", path])
    names = {}
    for name, kind in itertools.chain(itertools.chain.from_iterable(map(declared, declarations(whole))),
                                      ((name, "macro") for name in re.findall(r"^\s*#\s*define (\w+)", path.read_text(), re.M)),
                                      ((name, "constant") for name in re.findall(r"\b(TDSL_\w+) = -?\d", whole))):
        if name.lower().startswith("tdsl_"):
            assert names.setdefault(name, kind) == kind, f"{path}: {name} is a {names[name]} and a {kind}"
    return names


def check_definitions(rows, ops, path):
    patterns = [(pattern(name, ops), kind) for name, kind in rows]
    for name, kind in definitions(["gcc"], path).items():
        found = [k for made, k in patterns if made.match(name)]
        assert found == [kind], f"{path}: {name}, a {kind}, is in own_names.list as {found}"


# ---- what is compiled ----

def bodies(tree):
    """(name, kernel without its head) for every operation and type that the language lets through."""
    for name, arity, rule, symbol in re.findall(r'^MAP\(OP_\w+, "(\w+)", (\d), (\w+), "([^"]*)"', (tree / "compiler/op/ops.def").read_text(), re.M):
        if name in NOT_WRITTEN:
            continue
        for t in RULES[rule]:
            out = "bool" if rule in ("ORDER", "EQUAL", "LOGIC") else {"c64": "f32", "c128": "f64"}.get(t, t) if rule == "PART" else t
            x, y = "x[i]", "y[i]"
            value = f"select(c[i], {x}, {y})" if rule == "SELECT" else f"{name}({x})" if arity == "1" and not symbol else f"{symbol}{x}" if arity == "1" else \
                f"({x} {symbol} {y})" if symbol else f"{name}({x}, {y})"
            yield f"{name}_{t}", f"(x: {t}[N], y: {t}[N], c: bool[N]) -> (r: {out}[N]) {{ r[i] = {value}; }}"
    for t, other in itertools.product(SHORT, SHORT):
        yield f"product_{t}_{other}", f"(x: {t}[N, N], y: {other}[N, N]) -> (r: i32[N, N]) {{ r[i,j] = sum[k](x[i,k] * y[k,j]); }}"
    for t in TYPES:
        for name, rule in (("sum", "NUMBER"), ("prod", "NUMBER"), ("min", "REAL"), ("max", "REAL"), ("any", "LOGIC"), ("all", "LOGIC")):
            if t in RULES[rule]:
                yield f"all_{name}_{t}", f"(x: {t}[N]) -> (r: {t}) {{ r = {name}[i](x[i]); }}"
                yield f"rows_{name}_{t}", f"(x: {t}[N, N]) -> (r: {t}[N]) {{ r[j] = {name}[i](x[i,j]); }}"
                if name in ("sum", "prod", "min", "max"):
                    yield f"scan_{name}_{t}", f"(x: {t}[N]) -> (r: {t}[N]) {{ r[i] = {name}[j <= i](x[j]); }}"
        if t != "bool":
            yield f"product_{t}", f"(x: {t}[N, N], y: {t}[N, N]) -> (r: {t}[N, N]) {{ r[i,j] = sum[k](x[i,k] * y[k,j]); }}"
            yield f"squares_{t}", f"(x: {t}[N, N]) -> (r: {t}[N, N]) {{ r[i,j] = sum[k](x[i,k] * x[j,k]); }}"
        yield f"turned_{t}", f"(x: {t}[N, N, N]) -> (r: {t}[N, N, N]) {{ r[i,j,k] = x[k,j,i]; }}"
        for other in COMPLEX if t in COMPLEX else TYPES:
            yield f"{t}_to_{other}", f"(x: {t}[N]) -> (r: {other}[N]) {{ r[i] = {other}(x[i]); }}"


def program(kernels, threads):
    return ("dim N ~ 1000000;\n" if threads else "const N = 24;\n") + "".join(f"kernel {name}{body}\n" for name, body in kernels)


def compiled(tdslc, folder, text, compilers, link=False):
    (folder / "k.tdsl").write_text(text)
    made = subprocess.run([os.path.abspath(tdslc), "-w", "k.tdsl", "-o", "k.c"], cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    assert made.returncode == 0, steps.report(text[:300], made.args, made)
    for cc in compilers:
        steps.run(text[:300], [cc, *FLAGS, *(["-O0", "-c", "-o", folder / "k.o"] if link else ["-fsyntax-only"]), folder / "k.c"])
    return folder / "k.c"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tdslc", required=True)
    parser.add_argument("--tree", required=True, type=pathlib.Path)
    options = parser.parse_args()
    rows, ops = read_list(options.tree)
    check_list(rows, ops, options.tree)
    kernels = list(bodies(options.tree))
    compilers = [cc for cc in ("gcc", "clang") if shutil.which(cc)]
    # names of kernels that once met those of the file: tdsl_work_of_k
    few = [(name, kernels[0][1]) for name in ("k", "of_k", "run_k", "k_1", "threads_k", "part1_k", "isa_k", "bytes_k", "call_k", "f64_k", "pow_f64_k")]
    with tempfile.TemporaryDirectory() as name:
        folders = (pathlib.Path(name) / str(k) for k in itertools.count())

        def one(job):
            folder = next(folders)
            folder.mkdir()
            if isinstance(job, pathlib.Path):
                if subprocess.run([options.tdslc, "-w", job, "-o", folder / "k.c"], capture_output=True, check=False, timeout=300).returncode == 0:
                    check_definitions(rows, ops, folder / "k.c")
                return
            text, link, check = job
            path = compiled(options.tdslc, folder, text, compilers, link)
            if check:
                check_definitions(rows, ops, path)
        whole = [(program(kernels, threads), False, True) for threads in (True, False)] + [(program(few, True), True, True)]
        alone = [(program([kernel], threads), False, False) for kernel in kernels for threads in (True, False)]
        programs = [*options.tree.glob("examples/**/*.tdsl"), *options.tree.glob("tests/*/**/*.tdsl")]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            done = list(pool.map(one, whole + ([] if quick.QUICK else quick.share(alone + [p for p in programs if "fuzz" not in p.parts], 1, gate=6))))
    print(f"{len(kernels)} kernels, {len(done)} files, by {' and '.join(compilers)}; {len(rows)} names in the list")


main()
