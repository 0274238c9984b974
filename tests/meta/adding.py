#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adding an element type, a kind of leaf or a clause is adding a row and a file or two: a copy of the tree gets one of each, made up. tdslc and
tdsl-run are built of it; it casts the type to and from every other one (tests/backend/c/elements.py), runs programs with it, and one whose
nest has the leaf, which sets the clause: both are printed, read back and refused where they do not belong.

    adding.py --tree FOLDER --cc PROGRAM
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import steps  # noqa: E402

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is not here (python3-numpy)")
    sys.exit(77)

# 3 bits of exponent, 4 of fraction: the largest number is 15.5.
NAME = "f8e3m4"
ROW = f'TYPE(F8E3M4, "{NAME}", FLOAT, 1, 3, 4, INFINITE, "", F32, F32, "uint8_t", "V1", "", "", "integer(c_int8_t)", "u8")\n'
PROGRAMS = {
    "product": f"kernel k(X: {NAME}[n, p], W: {NAME}[p, m]) -> (R: f32[n, m]) {{ R[i,j] = X[i,p] * W[p,j]; }}",
    "scaled": f"kernel k(X: {NAME}[n, p], W: {NAME}[p, m]) -> (R: {NAME}[n, p], S: f32) {{ r[i] = max[p](abs(X[i,p])); R[i,p] = X[i,p] / r[i]; S = sum[p,j](W[p,j]); }}",
    "places": f"kernel k(X: {NAME}[n, p], W: {NAME}[p, m]) -> (R: {NAME}[m], S: {NAME}[p, m]) {{ R[j] = X[i64(abs(W[0,j])), 1]; S[p,j] = select(W[p,j] > 0, W[p,j], -1); }}",
}

# What moves elements without a computation is a leaf of its own, whose statement says that its indices may run backwards.
ADDED = {
    "compiler/nest/leaf_move.c": """#include "nest/leaves.h"

bool leaf_is_move(Arena *arena, const Machine *machine, const Nest *nest, const NestValue *values, NodeRef n, LeafShape *out)
{
    (void)arena, (void)machine, (void)values;
    out->whole = true;
    return graph_node(nest->graph, n)->op == OP_COPY;
}
""",
    "compiler/lower/leaf_move.c": """#include "lower/build.h"

void build_move(Builder *b, Block *to, NodeRef node, uint32_t scope)
{
    build_at_positions(b, to, node, scope, build_positions(b, node, scope))->reversed = true;
}
""",
    "compiler/loop/reversed.c": """#include "loop/loop_verify_clauses.h"

const char *reversed_problem(const ClauseContext *x, const Stmt *s)
{
    (void)x;
    return s->fold == OP_COPY ? NULL : "a fold has one order";
}
""",
}
ROWS = [
    ("compiler/op/types.def", "#undef TYPE", ROW),
    ("compiler/nest/leaves.def", "#undef LEAF", 'LEAF(MOVE, "moves", leaf_is_move, build_move, "moves nothing, or a loop cuts it")\n'),
    ("compiler/loop/clauses.def", "\n/* The last dimension", 'STMT_CLAUSE(TILE, "reversed", FLAG, reversed, "", reversed_problem)\n'),
]
MOVES = "kernel k(X: f32[n, p]) -> (R: f32[p, n], S: f32[n]) { R[j,i] = X[i,j]; S[i] = sum[j](X[i,j]); }"


def copied(tree, to):
    """The tree without what was built, with the rows and the files."""
    shutil.copytree(tree, to, symlinks=True, ignore=lambda folder, names: [n for n in names if n in (".git", "build", "__pycache__")])
    for name, text in ADDED.items():
        (to / name).write_text(text)
    for name, before, row in ROWS:
        text = (to / name).read_text()
        at = text.index(before) if before else len(text)
        (to / name).write_text(text[:at] + row + text[at:])
    abi = to / "runtime/include/tdsl/abi.h"
    text = abi.read_text()
    number = text[text.index("typedef enum tdsl_dtype"):text.index("} tdsl_dtype")].count(" = ") + 1
    abi.write_text(text.replace("} tdsl_dtype;", f"    , TDSL_{NAME.upper()} = {number}\n}} tdsl_dtype;"))


def results(tool, folder, text, target):
    (folder / "k.tdsl").write_text(text + "\n")
    given = [f"{name}={folder / name}.npy" for name in "XW"]
    return steps.run(f"{target}: {text}", [tool, folder / "k.tdsl", f"--target={target}", "-w", "--checksum", *given])


def refused(tool, file, text, message):
    file.write_text(text)
    done = subprocess.run([tool, file, "-o", file.with_suffix(".c")], capture_output=True, text=True, check=False)
    steps.expect(f"refused: {message}", (done.returncode, message in done.stderr), (1, True))


def check_leaf(tdslc, run, folder):
    """The program by its nest and by its kernel gives the same text, and results do not depend on the leaf."""
    program = folder / "moves.tdsl"
    program.write_text(MOVES + "\n")
    c = steps.run("C", [tdslc, program, "-o", "-"])
    for stage, words, wrong, message in (("nest", "%1 result 0 moves", (" result 1", " result 1 moves"), "moves nothing, or a loop cuts it"),
                                         ("loop", "@R[j,i] = @X[i,j] reversed as R", (" begins as S", " begins reversed as S"), "a fold has one order")):
        dump = folder / f"moves.{stage}"
        text = steps.run(stage, [tdslc, program, f"--dump={stage}"])
        dump.write_text(text)
        steps.expect(f"the {stage} says `{words}`", words in text and wrong[0] in text, True)
        steps.expect(f"the {stage} reads back", steps.run(stage, [tdslc, dump, f"--dump={stage}"]), text)
        steps.expect(f"C of the {stage}", steps.run("C", [tdslc, dump, "-o", "-"]), c)
        refused(tdslc, dump, text.replace(*wrong), message)
    np.save(folder / "X.npy", np.arange(6.0, dtype=np.float32).reshape(2, 3))
    given = [program, "-w", "--checksum", f"X={folder / 'X.npy'}"]
    steps.expect("results", steps.run("c", [run, *given, "--target=c"]), steps.run("interp", [run, *given, "--target=interp"]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tree", required=True)
    parser.add_argument("--cc", required=True)
    a = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tdsl-adding-") as place:
        folder = Path(place)
        tree, build = folder / "tree", folder / "build"
        copied(a.tree, tree)
        steps.run("configure", ["cmake", "-S", tree, "-B", build, f"-DCMAKE_C_COMPILER={a.cc}", "-DCMAKE_BUILD_TYPE=None", "-DCMAKE_C_FLAGS=-O0"])
        steps.run("build", ["cmake", "--build", build, "--target", "tdsl-run", "tdslc", "-j", str(min(4, os.cpu_count() or 1))], timeout=1500)
        tool = build / "bin/tdsl-run"
        print(steps.run("casts", [sys.executable, "-B", tree / "tests/backend/c/elements.py", "--tdsl-run", tool, "--only", NAME], timeout=600).strip())
        rng = np.random.default_rng(1)
        np.save(folder / "X.npy", rng.integers(1, 0x6f, (33, 40), dtype=np.uint8))
        np.save(folder / "W.npy", rng.integers(0x10, 0x60, (40, 17), dtype=np.uint8) | (rng.integers(0, 2, (40, 17), dtype=np.uint8) << 7))
        for name, text in PROGRAMS.items():
            wanted = results(tool, folder, text, "interp")
            steps.expect(f"{name} of {NAME}", results(tool, folder, text, "c"), wanted)
        check_leaf(build / "bin/tdslc", tool, folder)


if __name__ == "__main__":
    main()
