#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden tests: a text file whose first line (of a dump, the second) says how tdslc is run on it, and beside it what that prints.

    // run: --dump=graph            (; run: in a dump)          sums.tdsl, sums.tdsl.out

golden.py --tdslc PATH [--bless] [FOLDER or FILE ...]

tdslc runs in the file's folder with the options of the line (shell quoting) and the file's name, which is left out when
the options have -e or --network. Several lines of that form are several runs. The .out file holds, for each, standard output,
then `--- messages` and standard error if there is any, then `--- exit N` if N is not 0; there is none where all is empty. --bless rewrites
it; read the difference before you keep it. A file without such a line is an include of others.

`run each:` is a run for each kernel of a dump by itself, from standard input. `run sweep:` is two runs for each word of the file
(after a line `; sweep` if there is one), without that word and with another, and of each the first message, or that it is accepted.
The word FOLDER in the options is a new folder, and the files left there are printed after the rest, by name. THIS is the
file's name, when it is not to stand last.

A line that ends in `| figures` is for output too long to read: of each function, kernel or file figures.txt of the folder
holds a row: the file, the number of its run, the name; lines, loops, branches, calls, and words without those of comments.
`| figures but NAME NAME` keeps these whole in the .out file; `| only NAME NAME` keeps
these whole, and nothing of the others. Where figures change, the rows that grew most are printed; the texts themselves by tdslc before and after.
"""
import argparse
import difflib
import itertools
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from quick import QUICK, share                         # noqa: E402
from tables import changes_of, print_changes, rows_of  # noqa: E402

RUN = re.compile(r"^(?://|;) run( each| sweep)?: ?(.*)$")
TIMES = re.compile(r"(Search:.*, |\"seconds\": )[0-9.]+")
SUFFIXES = (".tdsl", ".dump")


def runs_of(path):
    """Of each run line at the head of the file the options, and what it is of: None, " each" or " sweep"."""
    runs = []
    for line in re.sub(rb"\Atdsl-dump \w+ 1\n", b"", path.read_bytes()).split(b"\n"):
        match = RUN.match(line.decode("utf-8", "replace"))
        if not match:
            break
        runs.append((shlex.split(match.group(2)), match.group(1)))
    return runs


def title(stretch):
    """The name of the function or of the kernel that stands there; None: neither."""
    found = re.search(r"^(?:[^/ *#\n].*\n? +|[^/ *#\n].*?)(\w+)\(.*(?:\n .*)*\)\n\{|^kernel (\w+)", stretch, re.M)
    return found and (found.group(1) or found.group(2))


def functions_of(text):
    """Name and text of each function, from what stands before it to the line that closes it."""
    name, body = None, []
    for stretch in re.split(r"\n\n+", text.strip("\n")):
        body.append(stretch)
        name = name or title(stretch)
        if name and re.search(r"^\}", stretch, re.M):
            yield name, "\n\n".join(body)
            name, body = None, []
    if body:
        yield name or "rest", "\n\n".join(body)


def figures_of(text):
    """How long a text in C, or a dump, is."""
    code = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    figures = {"lines": text.count("\n") + 1, "loops": len(re.findall(r"\bfor\b", code)), "branches": len(re.findall(r"\bif\b", code)),
               "calls": len(re.findall(r"\w\(", code)), "words": len(re.findall(r"\w+|[^\w\s]", code))}
    return " ".join(f"{key} {number}" for key, number in figures.items())


class Printed:
    """What the runs of one file printed: for its .out file, and rows for figures.txt of its folder."""

    def __init__(self, path):
        self.path, self.text, self.figures, self.run, self.sweep = path, "", {}, 0, False

    def measure(self, name, text):
        row = first = f"{self.path.name} {self.run} {name}"
        for again in itertools.count(2):
            if row not in self.figures:
                break
            row = f"{first} {again}"
        self.figures[row] = figures_of(text)


def run(tdslc, path, options, kernel=None):
    """What tdslc prints, what it leaves in FOLDER by name, and what it says; of a dump with this kernel only when one is given."""
    with tempfile.TemporaryDirectory() as folder:
        command = [tdslc, *(word.replace("FOLDER", folder).replace("THIS", path.name) for word in options)]
        if kernel is not None:
            command.append("-")
        elif not any(word.startswith(("-e", "--network")) or "THIS" in word for word in options):
            command.append(path.name)
        done = subprocess.run(command, cwd=path.parent, input=(kernel or "").encode(), timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode < 0:
            raise RuntimeError(f"{' '.join(command)}: ended by signal {-done.returncode}")
        files = {str(file.relative_to(folder)): file.read_text(encoding="utf-8")
                 for file in sorted(pathlib.Path(folder).rglob("*")) if file.is_file()}
    text = TIMES.sub(r"\1...", done.stdout.decode("utf-8", "backslashreplace"))
    messages = done.stderr.decode("utf-8", "backslashreplace")
    said = ("--- messages\n" + messages if messages else "") + (f"--- exit {done.returncode}\n" if done.returncode else "")
    return text, files, said


def keep(printed, tdslc, options, kernel=None):
    """Adds one run to what is printed: whole, or as figures."""
    bar = options.index("|") if "|" in options else len(options)
    text, files, said = run(tdslc, printed.path, options[:bar], kernel)
    if bar == len(options):
        printed.text += text + "".join(f"--- file {name}\n{body}" for name, body in files.items()) + said
        return
    kind = options[bar + 1:bar + 3]
    only = kind[:1] == ["only"]
    if not only and kind not in (["figures"], ["figures", "but"]):
        sys.exit(f"golden.py: {printed.path}: {' '.join(options[bar:])}")
    whole = set(options[bar + (2 if only else 3):])
    within = f"{title(kernel)}/" if kernel is not None else ""
    pieces = [] if not text else functions_of(text) if kernel is None else [(title(kernel), text)]
    for name, body in [*pieces, *((within + name, body) for name, body in files.items())]:
        if name in whole:
            printed.text += f"--- {name}\n" + body.rstrip("\n") + "\n"
            whole.discard(name)
        elif not only:
            printed.measure(name, body)
    printed.text += said + "".join(f"--- no {name}\n" for name in sorted(whole) if kernel is None)


def printed_instead(before, after):
    """The first line of a text that the other has not, and how many more there are."""
    lines = [line[2:].strip() for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line.startswith("+ ")]
    return ", prints the same" if not lines else f", prints {lines[0]}" + (f" and {len(lines) - 1} more other lines" if lines[1:] else "")


def sweep(printed, tdslc, options):
    """The file with one fault after the other: the first message, or what is printed otherwise than of the file as it stands."""
    text = printed.path.read_text(encoding="utf-8")
    start = max(m.end() for m in re.finditer(r"^(?:tdsl-dump|; run|; sweep|//).*\n", text, re.M))
    whole = run(tdslc, printed.path, options, text)[0]
    printed.sweep = True
    for word in share(re.finditer(r"\w+|[^\w\s]", text[start:]), 12):
        lo, hi, old = start + word.start(), start + word.end(), word.group()
        other = str(int(old) + 1) if old.isdecimal() else "zz" if re.match(r"\w", old) else "?"
        line, column = text.count("\n", 0, lo) + 1, lo - text.rfind("\n", 0, lo)
        for new in ("", other):
            output, _, said = run(tdslc, printed.path, options, text[:lo] + new + text[hi:])
            message = re.search(r"^--- exit (?!1$|4$).*|^(?!.*warning).*error.*$", output + said, re.M)
            accepted = "accepted" + (printed_instead(whole, output) if whole else "")
            printed.text += f"{line}:{column} {old} -> {new or 'nothing'}: {message.group() if message else accepted}\n"


def run_all(tdslc, path):
    printed = Printed(path)
    for printed.run, (options, each) in enumerate(runs_of(path), 1):
        if each is None:
            keep(printed, tdslc, options)
        elif each == " sweep":
            sweep(printed, tdslc, options)
        else:
            head, *kernels = re.split(r"^(?=kernel )", path.read_text(encoding="utf-8"), flags=re.M)
            for kernel in kernels:
                keep(printed, tdslc, options, head + kernel)
    return printed


def read(path):
    """The text of a file, empty where there is none."""
    return path.read_text(encoding="utf-8") if path.exists() else ""


def write(path, text):
    """A file that would be empty is none."""
    print(f"blessed {path}")
    if text:
        path.write_text(text, encoding="utf-8")
    else:
        path.unlink()


def differences(want, got, context):
    return "".join(difflib.unified_diff(want.splitlines(True), got.splitlines(True), "expected", "printed", n=context))


def check_text(printed, bless):
    """True when the .out file holds what the file's runs print."""
    out = printed.path.with_name(printed.path.name + ".out")
    want = read(out)
    if printed.sweep:  # of which the quick set has a share
        faults = {line.split(": ")[0] for line in printed.text.splitlines()}
        want = "".join(line for line in want.splitlines(True) if not QUICK or line.split(": ")[0] in faults)
    if printed.text != want and not bless:
        print(f"FAIL {printed.path}\n" + differences(want, printed.text, 3), end="")
        return False
    if printed.text != want:
        write(out, printed.text)
    return True


def check_figures(folder, all_printed, bless):
    """How many of these files of a folder have other figures than figures.txt says, or are run no longer."""
    place = folder / "figures.txt"
    kept = rows_of(read(place))
    file_of = {row: row.split(" ", 1)[0] for row in kept}
    run_now = {name for name in set(file_of.values()) if (folder / name).exists() and runs_of(folder / name)}
    tried = {printed.path.name for printed in all_printed}
    made = {row: figures for row, figures in kept.items() if file_of[row] in run_now - tried}
    for printed in all_printed:
        made.update(printed.figures)
    changes = changes_of(kept, made)
    if changes:
        print(("" if bless else "FAIL ") + f"{place}: {len(changes)} of {len(made)} rows changed")
        print_changes(changes)
    if changes and bless:
        write(place, "".join(f"{row}: {made[row]}\n" for row in sorted(made, key=lambda row: row.split(" ", 1)[0])))
    return len({name.split(" ", 1)[0] for name, _, _ in changes}) if not bless else 0


def files_of(arguments):
    for argument in arguments:
        path = pathlib.Path(argument)
        if path.is_dir():
            yield from sorted(p for p in path.rglob("*") if p.suffix in SUFFIXES)
        else:
            yield path


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description="golden tests of tdslc")
    parser.add_argument("--tdslc", required=True)
    parser.add_argument("--bless", action="store_true")
    parser.add_argument("paths", nargs="*", default=[str(here)])
    args = parser.parse_args()
    tdslc = str(pathlib.Path(args.tdslc).resolve())
    failed = count = 0
    folders = {}
    for path in files_of(args.paths):
        path = path.resolve()
        if runs_of(path):
            count += 1
            printed = run_all(tdslc, path)
            failed += not check_text(printed, args.bless)
            folders.setdefault(path.parent, []).append(printed)
    for folder, printed in folders.items():
        failed += check_figures(folder, printed, args.bless)
    print(f"{count} files, {failed} differences")
    if count == 0:
        sys.exit("golden.py: no tests found")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
