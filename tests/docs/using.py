#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""using.py --tree TOP --tdslc PATH --cc CC: what docs/using.md shows is written to files, as it stands there, and run. A fenced block
whose info string has a second word is a file of that name; a block `sh` is typed; `text` after it is what comes out. make runs the
makefile through a user's edits, and what it ran each time is counted."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import steps  # noqa: E402
from steps import expect  # noqa: E402


def blocks(text):
    """{file name or language: text} of the fenced blocks, those with a name under it."""
    found = {}
    for info, body in re.findall(r"^```(\S[^\n]*)\n(.*?)^```$", text, re.M | re.S):
        found.setdefault(info.split()[-1], body)
    return found


def shown_in_examples(tree, text):
    """Blocks whose second word is a file of the tree: their lines stand there, whatever the indentation."""
    for name, body in re.findall(r"^```\S+ (examples/\S+)\n(.*?)^```$", text, re.M | re.S):
        plain = ["\n".join(map(str.strip, part.splitlines())) for part in (body, (tree / name).read_text(encoding="utf-8"))]
        expect(f"lines of {name}", plain[0] in plain[1], True)


def run(*argv, status=0, **options):
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=120, **options)
    if done.returncode != status:
        sys.exit(steps.report(f"not exit status {status}", argv, done))
    return done.stdout


def write(folder, files, *names):
    for name in names:
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(files[name])


def call(folder, files, tdslc, cc):
    """The C call, as the page types it; then its extents bound, and its failures."""
    write(folder, files, "gram.tdsl", "main.c")
    env = dict(os.environ, PATH=f"{os.path.dirname(tdslc)}:{os.environ['PATH']}")
    expect("what the lines print", run("sh", "-e", input=files["sh"], cwd=folder, env=env), files["text"])
    header = pathlib.Path(folder, "gram.h").read_text(encoding="utf-8")
    expect("the prototype is the page's", files["gram.h"] in header, True)
    expect("and that for threads", files["threads.h"] in header, True)
    flags = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
    run(cc, *flags, "-c", "main.c", "gram.c", cwd=folder)
    run(tdslc, "gram.tdsl", "-D", "m=30", "-D", "k=20", "-D", "n=10", "-o", "fixed.c", cwd=folder)
    checks = """#include <stdio.h>
#include "HEADER"
int main(void)
{
    static unsigned char space[1 << 22];
    static double A[600], B[200], G[100];
    CHECKS
    return 0;
}
"""
    need = lambda text: f"if (!({text})) {{ return puts({chr(34)}{text}{chr(34)}); }}"
    fixed = ["GRAM_WORKSPACE_BYTES > 0", "GRAM_WORKSPACE_BYTES == gram_workspace_bytes()",
             "gram(A, B, G, space + 1, GRAM_WORKSPACE_BYTES) == TDSL_OK",
             "gram(A, B, G, space, GRAM_WORKSPACE_BYTES - 1) == TDSL_E_WORKSPACE"]
    opened = ["gram(30, 20, 10, A, NULL, G, space, sizeof space) == TDSL_E_ARGUMENT && TDSL_E_ARGUMENT == -1",
              "gram(30, 20, 0, A, NULL, NULL, space, sizeof space) == TDSL_OK && TDSL_OK == 0",
              "gram(30, -1, 10, A, B, G, space, sizeof space) == TDSL_E_SHAPE && TDSL_E_SHAPE == -2",
              "gram(30, 20, 10, A, B, G, NULL, sizeof space) == TDSL_E_WORKSPACE && TDSL_E_WORKSPACE == -6",
              "gram(INT64_MAX, 20, 10, A, B, G, space, sizeof space) == TDSL_E_OVERFLOW && TDSL_E_OVERFLOW == -7",
              "gram_workspace_bytes(INT64_MAX, 20, 10) == SIZE_MAX"]
    for name, asked in (("fixed", fixed), ("gram", opened)):
        text = checks.replace("HEADER", name + ".h").replace("CHECKS", "\n    ".join(map(need, asked)))
        write(folder, {"checks.c": text}, "checks.c")
        run(cc, "-o", "checks", "checks.c", name + ".c", "-lm", cwd=folder)
        expect(f"statuses and sizes, {name}.h", run(os.path.join(folder, "checks"), cwd=folder), "")


class Make:
    """A folder with the page's makefile; what each run of make did."""

    def __init__(self, folder, files, tdslc, cc):
        self.folder, self.command = folder, ["make", f"TDSLC={tdslc}", f"CC={cc}"]
        self.tdslc = tdslc
        write(folder, files, "gram.tdsl", "main.c", "Makefile")

    def make(self, *options):
        """(runs of tdslc, files compiled)"""
        time.sleep(0.02)  # times of files are those of the system's clock tick
        lines = run(*self.command, *options, cwd=self.folder).splitlines()
        return (sum(line.startswith(self.tdslc) for line in lines),
                sorted(word for line in lines for word in line.split() if " -c " in line and word.endswith(".c")))

    def edit(self, name, old="", new=""):
        path = pathlib.Path(self.folder, name)
        path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")

    def program(self):
        return run(os.path.join(self.folder, "app"))


def make_rule(m, text):
    nothing, both = (0, []), (1, ["gram.c", "main.c"])
    expect("make: first", m.make(), both)
    expect("make: the program", m.program(), text)
    expect("make: again", m.make(), nothing)
    m.edit("gram.tdsl")
    expect("make: the source was touched", m.make("-j2"), both)
    expect("make: again", m.make(), nothing)
    write(m.folder, {"one.tdsl": "const one: f64 = 1;\n", "two.tdsl": "dim unused;\n"}, "one.tdsl", "two.tdsl")
    m.edit("gram.tdsl", "dim m", 'include "one.tdsl";\ninclude "two.tdsl";\ndim m')
    m.edit("gram.tdsl", "C[p,j]", "C[p,j] * one")
    expect("make: includes were written", m.make(), both)
    m.edit("one.tdsl")
    expect("make: one was touched", m.make("main.o"), (1, ["main.c"]))
    expect("make: the rest", m.make(), (0, ["gram.c"]))
    m.edit("one.tdsl", "1;", "2;")
    expect("make: one was changed", m.make(), both)
    expect("make: the program of that", m.program(), "".join(f"{2 * int(a)} {2 * int(b)}\n" for a, b in map(str.split, text.splitlines())))
    m.edit("gram.tdsl", 'include "two.tdsl";\n', "")
    os.remove(os.path.join(m.folder, "two.tdsl"))
    expect("make: the other was removed", m.make(), both)
    os.remove(os.path.join(m.folder, "gram.h"))
    expect("make: the header was removed", m.make(), both)
    os.remove(os.path.join(m.folder, "gram.c"))  # the header, seen before that, comes anew with it
    expect("make: the C was removed", [m.make(), m.make()], [(1, ["gram.c"]), (0, ["main.c"])])
    expect("make: at last", m.make(), nothing)
    write(m.folder, {"other.tdsl": "kernel other(A: f64[2]) -> (R: f64[2]) { R[i] = A[i]; }\n"}, "other.tdsl")
    expect("make: a source whose files the makefile does not name", m.make("other.o"), (1, ["other.c"]))
    expect("make: again", m.make("other.o"), nothing)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tree", type=pathlib.Path, required=True)
    parser.add_argument("--tdslc", type=pathlib.Path, required=True)
    parser.add_argument("--cc", default="cc")
    a = parser.parse_args()
    text = (a.tree / "docs" / "using.md").read_text(encoding="utf-8")
    shown_in_examples(a.tree, text)
    files = blocks(text)
    tdslc = str(a.tdslc.resolve())
    with tempfile.TemporaryDirectory() as folder:
        call(folder, files, tdslc, a.cc)
    with tempfile.TemporaryDirectory() as folder:
        make_rule(Make(folder, files, tdslc, a.cc), files["text"])


if __name__ == "__main__":
    main()
