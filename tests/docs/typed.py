#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""typed.py --tdslc PATH [--sections] PAGE.md: a page is followed as a reader would. Fenced blocks whose info string has a second word are files of that
name; blocks `sh` are typed, line by line, in one folder (--sections: one for each section); a block `text` after one is what it prints. `sh if=PROGRAM`
is left out where that is missing. A name below examples/ is a file of the tree, where the lines of the block stand, in their order. Kernels of tdsl-run lines also run by the interpreter and print the same."""
import argparse
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import steps  # noqa: E402


def parts(text, sections):
    return re.split(r"^(?=## )", text, flags=re.M) if sections else [text]


def is_there(program, env):
    if program == "python3-numpy":
        return subprocess.run([sys.executable, "-c", "import numpy"], capture_output=True, check=False).returncode == 0
    return shutil.which(program, path=env["PATH"]) is not None


def typed(lines, folder, env):
    done = subprocess.run(["sh", "-e"], input=lines, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode or done.stderr:
        sys.exit(steps.report(lines, done.args, done))
    return done.stdout


def same(got, want):
    """Word by word; numbers to the five digits that an f32 has on every machine."""
    def near(x, y):
        try:
            return abs(float(x) - float(y)) <= 1e-5 * max(1, abs(float(y)))
        except ValueError:
            return x == y
    words, wanted = (re.split(r"([\s,\[\]()]+)", text) for text in (got, want))
    return len(words) == len(wanted) and all(map(near, words, wanted))


def interpreted(lines, folder, env):
    """tdsl-run of files, without what it writes or measures."""
    for line in lines.splitlines():
        words = shlex.split(line)
        if words[:1] == ["tdsl-run"] and words[1].endswith(".tdsl") and not {"-o", "--time", "--target=c"} & set(words):
            on_one = re.sub(r" --(ranks|mesh)[= ][\w:,]+", "", line)  # ranks are for C
            compiled, walked = (typed(f"{text} --target={target}", folder, env) for text, target in ((line, "c"), (on_one, "interp")))
            if not same(compiled, walked):
                sys.exit(f"{line}\nin C:\n{compiled}\nby the interpreter:\n{walked}")


def check_excerpt(name, body, tree):
    lines = iter((tree / name).read_text(encoding="utf-8").splitlines())
    for line in body.splitlines():
        if line not in lines:
            sys.exit(f"{name} has no line, after those before it in the page:\n{line}")


def follow(part, env, tree):
    """Blocks that were typed."""
    count, said = 0, None
    blocks = re.findall(r"^```(\S[^\n]*)?\n(.*?)^```$", part, re.M | re.S)
    with tempfile.TemporaryDirectory() as folder:
        for info, body in blocks:
            words = (info or "").split()
            if len(words) == 2 and words[1].startswith("examples/"):
                check_excerpt(words[1], body, tree)
            elif len(words) == 2 and "=" not in words[1]:
                pathlib.Path(folder, words[1]).write_text(body, encoding="utf-8")
            elif words[:1] == ["sh"]:
                needs = [word[3:] for word in words[1:] if word.startswith("if=")]
                missing = [program for program in needs if not is_there(program, env)]
                print(*[f"skipped: no {program}" for program in missing], sep="\n", end="\n" if missing else "")
                said = None if missing else typed(body, folder, env)
                count += not missing
                if not missing:
                    interpreted(body, folder, env)
            elif words == ["text"] and said is not None:
                if not same(said, body):
                    sys.exit(f"printed:\n{said}\nthe page has:\n{body}")
                said = None
    return count


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--tdslc", type=pathlib.Path, required=True)
    p.add_argument("--sections", action="store_true")
    p.add_argument("page", type=pathlib.Path)
    a = p.parse_args()
    text = a.page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as programs:
        os.symlink(sys.executable, os.path.join(programs, "python3"))  # the one that has NumPy
        tree, built = a.page.resolve().parent.parent, a.tdslc.resolve().parent.parent / "runtime"
        libraries = f"{built}:{built / 'mpi'}"  # as if they were installed
        env = dict(os.environ, PATH=f"{programs}:{a.tdslc.resolve().parent}:{os.environ['PATH']}", OMP_NUM_THREADS="2",
                   CPATH=f"{tree}/runtime/include:{tree}/runtime/mpi/include", LIBRARY_PATH=libraries, LD_LIBRARY_PATH=libraries,
                   PYTHONPATH=f"{tree}/runtime/python", PYTHONDONTWRITEBYTECODE="1", TDSL_TDSLC=str(a.tdslc.resolve()), TDSL_CACHE_DIR=programs,
                   OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1")
        count = sum(follow(part, env, tree) for part in parts(text, a.sections))
    total = len(re.findall(r"^```sh\b(?! examples/)", text, re.M))
    print(f"{count} of {total} blocks typed")
    missing = [place for place in re.findall(r"\]\(#([\w-]+)\)", text) if place not in headings(text)]
    sys.exit(f"no heading for {missing}" if missing else 0 if count else 1)


def headings(text):
    """As links name them."""
    return {re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-") for line in re.findall(r"^#+ (.*)$", text, re.M)}


if __name__ == "__main__":
    main()
