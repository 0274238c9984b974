#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden tests: a text file whose first line (of a dump, the second) says how tdslc is run on it, and beside it what that prints.

    // run: --dump=graph            (; run: in a dump)          sums.tdsl, sums.tdsl.out

golden.py --tdslc PATH [--bless] [FOLDER or FILE ...]

tdslc runs in the file's folder with the options of the line (shell quoting) and the file's name, which is left out when
the options have -e or --network. Several lines of that form are several runs. The .out file holds, for each, standard output,
then `--- messages` and standard error if there is any, then `--- exit N` if N is not 0. --bless rewrites
it; read the difference before you keep it. A file without such a line is an include of others.

`run each:` is a run for each kernel of a dump by itself, from standard input. `run sweep:` is two runs for each word of the file
(after a line `; sweep` if there is one), without that word and with another, and of each the first message, or a hash of what is printed. The word FOLDER in the options is a new folder, and the files left there are printed after the rest, by name. THIS is the
file's name, when it is not to stand last. A line that ends
in `| digest` is for output too long to keep: of each function or kernel its name, its lines and a hash; of each file
in the folder the same. When one changes, run tdslc before and after the change and compare.
"""
import argparse
import difflib
import hashlib
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

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


def digest_line(name, text):
    return f"{name}: {text.count(chr(10)) + 1} lines, {hashlib.sha256(text.encode()).hexdigest()[:12]}\n"


def digest(text):
    """One line for each function, with what stands before it."""
    out, before = [], []
    for stretch in re.split(r"\n\n+", text.strip("\n")):
        before.append(stretch)
        if title(stretch) is not None:
            out.append((title(stretch), "\n\n".join(before)))
            before = []
    out += [("rest", "\n\n".join(before))] if before else []
    return "".join(digest_line(name, text) for name, text in out)


def run(tdslc, path, options, kernel=None):
    """What the .out file should hold for one run; of a dump with this kernel only when one is given."""
    short = options[-2:] == ["|", "digest"]
    options = options[:-2] if short else options
    with tempfile.TemporaryDirectory() as folder:
        command = [tdslc, *(word.replace("FOLDER", folder).replace("THIS", path.name) for word in options)]
        if kernel is not None:
            command.append("-")
        elif not any(word.startswith(("-e", "--network")) or "THIS" in word for word in options):
            command.append(path.name)
        done = subprocess.run(command, cwd=path.parent, input=(kernel or "").encode(), timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        text = TIMES.sub(r"\1...", done.stdout.decode("utf-8", "backslashreplace"))
        if short and text:
            text = digest(text) if kernel is None else digest_line(title(kernel), text)
        for file in sorted(pathlib.Path(folder).rglob("*")):
            if file.is_file():
                body = file.read_text(encoding="utf-8")
                name = file.relative_to(folder)
                text += digest_line(name, body) if short else f"--- file {name}\n{body}"
    messages = done.stderr.decode("utf-8", "backslashreplace")
    if messages:
        text += "--- messages\n" + messages
    if done.returncode != 0:
        text += f"--- exit {done.returncode}\n"
    return text


def sweep(tdslc, path, options):
    """The file with one fault after the other."""
    text = path.read_text(encoding="utf-8")
    start = max(m.end() for m in re.finditer(r"^(?:tdsl-dump|; run|; sweep|//).*\n", text, re.M))
    for word in re.finditer(r"\w+|[^\w\s]", text[start:]):
        lo, hi, old = start + word.start(), start + word.end(), word.group()
        other = str(int(old) + 1) if old.isdecimal() else "zz" if re.match(r"\w", old) else "?"
        line, column = text.count("\n", 0, lo) + 1, lo - text.rfind("\n", 0, lo)
        for new in ("", other):
            said = run(tdslc, path, options, text[:lo] + new + text[hi:])
            message = re.search(r"^--- exit (?!1$|4$).*|^(?!.*warning).*error.*$", said, re.M)
            said = message.group() if message else "prints " + hashlib.sha256(said.encode()).hexdigest()[:12]
            yield f"{line}:{column} {old} -> {new or 'nothing'}: {said}\n"


def run_all(tdslc, path):
    for options, each in runs_of(path):
        if each is None:
            yield run(tdslc, path, options)
        elif each == " sweep":
            yield from sweep(tdslc, path, options)
        else:
            head, *kernels = re.split(r"^(?=kernel )", path.read_text(encoding="utf-8"), flags=re.M)
            for kernel in kernels:
                yield run(tdslc, path, options, head + kernel)


def check(tdslc, path, bless):
    """True when the file's runs print what is expected."""
    got = "".join(run_all(tdslc, path))
    out = path.with_name(path.name + ".out")
    want = out.read_text(encoding="utf-8") if out.exists() else None
    if got == want:
        return True
    if bless:
        out.write_text(got, encoding="utf-8")
        print(f"blessed {out}")
        return True
    print(f"FAIL {path}")
    sys.stdout.writelines(difflib.unified_diff(
        (want or "").splitlines(True), got.splitlines(True), "expected", "printed"))
    return False


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
    for path in files_of(args.paths):
        path = path.resolve()
        if runs_of(path):
            count += 1
            failed += not check(tdslc, path, args.bless)
    print(f"{count} files, {failed} failed")
    if count == 0:
        sys.exit("golden.py: no tests found")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
