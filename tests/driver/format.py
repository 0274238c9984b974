#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tdslc fmt: the programs of this tree have its layout, and it changes nothing but blanks. See cli.py."""
import random
import re
import sys

from support import *

# Text that tests the reader of texts keeps the layout that it has.
AS_WRITTEN = ("tests/golden/", "tests/graph/build/", "tests/fuzz/")
TOKEN = re.compile(rb"//[^\n]*|/\*.*?\*/|\"[^\"\n]*\"|[A-Za-z_]\w*|[\d.]+(?:[eE][+-]?\d+)?|[-+!=<>]=|->|&&|\|\||[^\s\w]", re.S)


def programs():
    return sorted(p for p in ROOT.rglob("*.tdsl") if "build" not in p.relative_to(ROOT).parts[0])


def pieces(text):
    """Tokens and comments, without the blanks at the ends of lines."""
    text = text.removeprefix(b"\xef\xbb\xbf")
    return [re.sub(rb"[ \t\r]+(?=\n)|[ \t\r]+$", b"", piece) for piece in TOKEN.findall(text)]


@test
def the_programs_of_this_tree_have_the_one_layout():
    names = [str(p) for p in programs() if not str(p.relative_to(ROOT)).startswith(AS_WRITTEN)]
    assert len(names) > 20, names
    done = tdslc("fmt", "--check", *names, status=None)
    equal(done.messages, "", "to be laid out by tdslc fmt")
    equal(done.status, 0)


@test
def a_layout_has_the_same_tokens_and_comments_and_is_its_own_layout():
    tried = 0
    for path in share(programs(), 4):
        done = tdslc("fmt", "-", stdin=path.read_bytes(), status=None)
        if done.status:
            assert done.status in (1, 4), done.messages
            continue
        tried += 1
        equal(pieces(done.out), pieces(path.read_bytes()), str(path))
        equal(tdslc("fmt", "-", stdin=done.out).out, done.out, str(path))
        assert b" \n" not in done.out and not done.out.startswith(b"\n")
    assert tried > (25 if QUICK else 100), tried


@test
def blanks_and_comments_anywhere_change_nothing_else():
    chance = random.Random(7)
    text = (ROOT / "tests/programs/programs.tdsl").read_bytes()
    tokens = [t for t in pieces(text) if not t.startswith((b"//", b"/*"))]
    once = tdslc("fmt", "-", stdin=b"\n".join(tokens)).out
    for _ in range(5):
        blanks = [chance.choice([b" ", b"\n", b"\t", b" \r\n  "]) for _ in tokens]
        again = tdslc("fmt", "-", stdin=b"".join(t + b for t, b in zip(tokens, blanks))).out
        # An empty line and a kernel on one line are the writer's choice; nothing else is.
        equal(re.sub(rb"\s*([{}])\s*", rb"\1", re.sub(rb"\n+", b"\n", again)),
              re.sub(rb"\s*([{}])\s*", rb"\1", re.sub(rb"\n+", b"\n", once)))
        more = b"".join(t + chance.choice([b" ", b"\n", b" /* a */", b" // b\n", b"\n// c\n", b" /* d\n  e */", b"\n\n\n"])
                        for t in tokens)
        out = tdslc("fmt", "-", stdin=more).out
        equal(pieces(out), pieces(more))
        equal(tdslc("fmt", "-", stdin=out).out, out)


@test
def a_file_is_changed_in_place_and_checked_without():
    write("a.tdsl", "kernel f(x:f64[n])->(R:f64[n]){\nR[i]=2*x[i];}")
    before = read("a.tdsl")
    assert tdslc("fmt", "--check", "a.tdsl", status=1).messages.startswith("a.tdsl:1:12: error[E0107]: ")
    equal(read("a.tdsl"), before)
    tdslc("fmt", "a.tdsl")
    equal(read("a.tdsl"), b"kernel f(x: f64[n]) -> (R: f64[n]) {\n    R[i] = 2 * x[i];\n}\n")
    time = os.stat("a.tdsl").st_mtime_ns
    tdslc("fmt", "a.tdsl")
    equal(os.stat("a.tdsl").st_mtime_ns, time)
    equal(tdslc("fmt", "--check", "a.tdsl").messages, "")
    tdslc("fmt", "a.tdsl", "-o", "b.tdsl")
    equal(read("b.tdsl"), read("a.tdsl"))
    equal(tdslc("fmt", "-", stdin=before).out, read("a.tdsl"))
    assert "usage: tdslc fmt" in tdslc("fmt", "--help").text


@test
def what_is_no_program_is_refused_and_stays():
    write("bad.tdsl", "kernel f(x: f64[n] -> (R: f64[n]) { R[i] = x[i]; }")
    write("good.tdsl", "dim   n;")
    before = read("good.tdsl")
    assert "E0101" in tdslc("fmt", "good.tdsl", "bad.tdsl", status=1).messages
    equal(read("good.tdsl"), before)
    write("one.tdsl", ONE)
    tdslc("--dump=graph", "one.tdsl", "-o", "one.dump")
    assert "is a dump" in tdslc("fmt", "one.dump", status=1).messages
    tdslc("fmt", "none.tdsl", status=3)
    tdslc("fmt", status=2)
    tdslc("fmt", "--check", "good.tdsl", "-o", "b.tdsl", status=2)
    tdslc("fmt", "good.tdsl", "one.tdsl", "-o", "b.tdsl", status=2)


def words(pattern, path):
    return set(re.search(pattern, (ROOT / path).read_text(), re.M)[1].replace("|", " ").split())


@test
def the_editors_know_the_words_of_the_language():
    scanner = (ROOT / "grammar/tdsl.l").read_text()
    keywords = set(re.findall(r'^"(\w+)" +\{ (?:BEGIN\(PATH\); )?return T_', scanner, re.M))
    types = set(re.findall(r'^TYPE\(\w+, "(\w+)"', (ROOT / "compiler/op/types.def").read_text(), re.M))
    vim, code = "docs/editors/vim/syntax/tdsl.vim", "docs/editors/vscode/syntaxes/tdsl.tmLanguage.json"
    equal(words(r"^syntax keyword tdslKeyword (.*)$", vim), keywords)
    equal(words(r'keyword.control.tdsl",\s*"match": ".*\((.*)\)', code), keywords)
    equal(words(r"^syntax keyword tdslType (.*)$", vim), types)
    equal(words(r'storage.type.tdsl",\s*"match": ".*\((.*)\)', code), types)
    functions = words(r"^syntax keyword tdslFunction (.*)$", vim)
    equal(words(r'support.function.tdsl",\s*"match": "[^(]*\(([^)]*)\)', code), functions)
    for name in functions:
        write("t.tdsl", f"kernel f(x: f64[n]) -> (R: f64[n]) {{ R[i] = {name}(x[i]); }}\n")
        assert "there is no function" not in tdslc("t.tdsl", "--stop-after=graph", status=None).messages, name


sys.exit(main())
