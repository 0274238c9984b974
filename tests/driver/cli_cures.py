#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What people type who know other tools is answered with what is meant; colours, environment, @file. See cli.py."""
import json
import os
import re
import subprocess
import sys

import support
from support import *

# ---- command lines of other tools

@test
def options_of_other_tools_are_answered_with_ours():
    for given, cure in ((["-v"], "--version"), (["-O3"], "--effort"), (["-O"], "--effort"), (["-S"], "cc -S"), (["-c"], "cc -c"),
                        (["-M"], "-MD"), (["-MM"], "-MD"), (["-march=native"], "C compiler"), (["-fopenmp"], "C compiler"),
                        (["--output=k.c"], "-o"), (["--threads=2"], "OMP_NUM_THREADS"), (["--dump-ir=all"], "--dump-dir"),
                        (["--verbose"], "--report"), (["--shap=2"], "'--shape'"), (["-MG"], "option '-MG'")):
        done = tdslc(*given, "t.tdsl", status=2)
        assert cure in done.messages, (given, done.messages)
        assert "'--MD'" not in done.messages, done.messages
    assert "--cflags=-O3" in tdsl_run("-O3", status=2).messages


@test
def the_output_of_a_c_compiler_is_not_written_as_c():
    write("t.tdsl", ONE)
    for out, cure in (("mp2.so", "cc -O2 -shared -fPIC -o mp2.so mp2.c"), ("mp2.o", "cc -O2 -c -o mp2.o mp2.c"), ("mp2.py", "-o FOLDER"),
                      ("a/mp2.a", "tdsl_add_library"), ("mp2.npy", "tdsl-run"), ("mp2.json", "--report=json"), ("mp2.html", "--report=html"),
                      ("mp2.dot", "--emit=dot"), ("mp2.h", "--header"), ("mp2.d", "-MD"), ("mp2.tdsl", "--dump")):
        done = tdslc("t.tdsl", "-o", out, status=2)
        assert cure in done.messages, (out, done.messages)
    equal(files(), ["t.tdsl"])
    tdslc("t.tdsl", "--emit=c", "-o", "mp2.so")
    assert read("mp2.so").startswith(b"/*")
    tdslc("t.tdsl", "-o", "mp2.inc")


@test
def a_value_that_is_none_of_a_list_is_answered_with_the_list():
    write("t.tdsl", ONE)
    done = tdslc("t.tdsl", "--dump=all", status=2).messages
    assert all(stage in done for stage in STAGES) and "--list-passes" in done and "--dump-dir" in done, done
    done = tdslc("t.tdsl", "--emit=asm", status=2).messages
    assert "c path dot json" in done and "cc -S" in done, done
    assert "'f64'" in tdslc("-e", "i", "--shape=2", "--dtype=float64", status=1).messages
    assert "f64 f32 f16 bf16 i32 i64 bool c64 c128 i8 u8 i16 u16 u32 f8e4m3 f8e5m2 f8e4m3fn" in tdslc("-e", "i", "--shape=2", "--dtype=u9", status=1).messages
    assert "'f32'" in tdsl_run("-e", "i", "--shape=2", "--dtype=float32", "ones", status=2).messages
    assert "-D n=512" in tdslc("-D", "n", "512", "t.tdsl", status=2).messages
    assert "DIM=N" in tdslc("-D", "n", "t.tdsl", status=2).messages
    assert "-D n=512" in tdsl_run("t.tdsl", "-Dn", "512", "A=ones", status=2).messages
    save("a.npy", fill((2, 3), 0))
    done = tdslc("-e", "ij->ji", "a.npy", status=2).messages
    assert "tdsl-run" in done and "--shape" in done, done
    assert "auto, always or never" in tdslc("t.tdsl", "--color=yes", status=2).messages


# ---- colour and environment

def coloured(*args, **environment):
    environment = {**{k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "CLICOLOR_FORCE")}, **environment}
    done = subprocess.run([support.ARGS.tdslc, "none.tdsl", *args], capture_output=True, env=environment, check=False)
    return b"\033[" in done.stderr


@test
def no_color_and_clicolor_force_are_obeyed():
    assert not coloured()
    assert coloured(CLICOLOR_FORCE="1")
    assert not coloured(CLICOLOR_FORCE="0") and not coloured(CLICOLOR_FORCE="")
    assert not coloured(CLICOLOR_FORCE="1", NO_COLOR="1")
    assert coloured(CLICOLOR_FORCE="1", NO_COLOR="")
    assert coloured("--color=always", NO_COLOR="1")
    assert not coloured("--color=never", CLICOLOR_FORCE="1")


@test
def every_variable_that_is_read_is_in_the_help():
    names = set()
    for path in (ROOT / "compiler").rglob("*.c"):
        names |= set(re.findall(r'getenv\("(\w+)"\)', path.read_text()))
    assert {"CC", "TMPDIR", "NO_COLOR"} <= names, names
    for tool in ("tdslc", "tdsl-run"):
        text = run(tool, "--help=env").text
        names -= set(re.findall(r"^  (\w+)", text, re.M))
        run(tool, "--help=all", status=2)
    equal(names, set())


@test
def messages_of_a_tool_begin_with_its_name():
    write("t.tdsl", ONE)
    for tool in ("tdslc", "tdsl-run"):
        for args in (["none.tdsl"], ["--nothing"], ["t.tdsl", "--target=tea"]):
            assert run(tool, *args, status=None).messages.startswith(tool + ": error"), (tool, args)


# ---- what the tool is

@test
def the_version_and_the_targets_are_there_for_programs():
    for tool in ("tdslc", "tdsl-run"):
        version = json.loads(run(tool, "--version=json").text)
        equal(f"{version['tool']} {version['version']}\n", run(tool, "--version").text)
    text = tdslc("--list-targets").text
    equal([line.split()[0] for line in text.splitlines()], version["targets"])
    for name in version["targets"]:
        tdslc("--list-passes", f"--target={name}")
    tdslc("--version=xml", status=2)


# ---- messages for programs

@test
def every_message_is_a_json_object_for_programs():
    write("t.tdsl", "kernel f(x: f64[n], y: f64[m]) -> (R: f64[n]) {\n    R[i] = foo(x[i]);\n}\n")
    for tool, args in (("tdslc", ["t.tdsl"]), ("tdslc", ["none.tdsl"]), ("tdslc", ["--emit=tea", "t.tdsl"]), ("tdsl-run", ["t.tdsl"])):
        lines = [json.loads(line) for line in run(tool, *args, "--diagnostics=json", status=(1, 2, 3)).messages.splitlines()]
        assert lines and all({"level", "kind", "code", "message", "place", "marks", "rows", "note", "help"} <= set(line) for line in lines)
        assert any(line["level"] == "error" for line in lines)
    found = json.loads(tdslc("t.tdsl", "-w", "--diagnostics=json", status=1).messages)
    equal(found["code"], "E0201")
    place = found["place"]
    equal((place["file"], place["line"], place["column"], place["end_line"], place["end_column"]), ("t.tdsl", 2, 12, 2, 15))
    equal(read("t.tdsl")[slice(*place["bytes"])], b"foo")
    tdslc("t.tdsl", "--diagnostics=xml", status=2)


HEAD = "kernel f(A: f64[n, m], x: f64[m]) -> (R: f64[n]) {"
# A program with one mistake, and how the part of it that is wrong reads when the fix is made.
FIXES = [
    (HEAD + "\n    R[i] = A[i,j] * x[j]\n}", "x[j];"),
    ("kernel f(A: f64[n, m], xs: f64[m]) -> (R: f64[n]) { R[i] = A[i,j] * xz[j]; }", "A[i,j] * xs[j]"),
    (HEAD + "\n    R[i] = ep(A[i,0]);\n}", "exp(A"),
    (HEAD + "\n    R[i] = A[i,0] * i;\n}", "* index(i)"),
    (HEAD + "\n    R[i] = A[i,0] * n;\n}", "* extent(n)"),
    (HEAD + "\n    R[i] = A[i,0] * extent(m2);\n}", "extent(m)"),
    (HEAD + "\n    R[i] = A[i,0] * Inf;\n}", "* inf"),
    (HEAD + "\n    R[i] = sum[j](A[i,j];\n}", "A[i,j]);"),
    (HEAD + "\n    R[i] = 2 A[i,0];\n}", "2* A"),
    (HEAD + "\n    R[i] = float64(A[i,0]);\n}", "f64(A"),
    ("kernel f(x: f64[n] y: f64[n]) -> (R: f64[n]) { R[i] = x[i] + y[i]; }", "f64[n] , y"),
    ("kernel f(x: double[n]) -> (R: f64[n]) { R[i] = x[i]; }", "x: f64[n]"),
    ("kernel f(x: f64[n]) -> (R: i64[n]) { R[i] = x[i]; }", "i64(x[i])"),
    ("kernel g(x: f32[n]) -> (R: f32) { R = sum[i](x[i]); }\nkernel f(x: f64[n]) -> (R: f32) { R = g[i](x[i]); }", "g[i](f32(x[i]))"),
    ("kernel f(x: f64[n, m]) -> (R: f64[m, n]) { R = einsum(\"ij→ji\", x); }", "ij->ji"),
    ("kernal f(x: f64[n]) -> (R: f64[n]) { R[i] = x[i]; }", "kernel f"),
    ("kernel f(x: f64[n, n]) -> (R: f64[n]) { D[i,j] = x[i,j];\n spil D; R[i] = sum[j](D[i,j]); }", "spill D"),
    ("kernel f(x: f64[rows] shard(rowz)) -> (R: f64[rows]) { R[i] = x[i]; }", "shard(rows)"),
]


@test
def a_fix_makes_the_program_right():
    for program, cured in FIXES:
        write("t.tdsl", program + "\n")
        found = json.loads(tdslc("t.tdsl", "-w", "--diagnostics=json", "--stop-after=graph", status=1).messages.splitlines()[0])
        assert found["fixes"], (program, found)
        text = read("t.tdsl")
        first, last = found["fixes"][0]["place"]["bytes"]
        text = text[:first] + found["fixes"][0]["text"].encode() + text[last:]
        assert cured.encode() in text, (cured, text)
        write("t.tdsl", text.decode())
        tdslc("t.tdsl", "-w", "--stop-after=graph")


@test
def a_wrong_command_line_is_a_json_object_without_the_tools_name():
    for args, message, help in ((["--repot", "--diagnostics=json"], "unknown option '--repot'", "did you mean '--report'?"),
                                (["--diagnostics=json", "-D", "n", "5"], "'-D n': DIM=N is expected", "-D n=5"),
                                (["--diagnostics=json", "--explain=E9999"], "no message has the code 'E9999'", None)):
        found = json.loads(tdslc(*args, status=2).messages)
        equal((found["kind"], found["message"], found["help"]), ("usage", message, help))


# ---- all dumps

@test
def a_folder_has_what_every_pass_leaves():
    write("t.tdsl", TOUR)
    tdslc("-w", "t.tdsl", "--dump-dir=d", "-o", "k.c")
    tdslc("-w", "t.tdsl", "-o", "same.c", "--header=k.h")
    equal(read("k.c"), read("same.c"))
    names = sorted(os.listdir("d"))
    assert len(names) > 10 and names[0].endswith("-build.dump"), names
    for name in names:
        equal(read("d/" + name).decode(), tdslc("-w", "t.tdsl", f"--dump={name[3:-5]}").text, name)


# ---- reproducers

@test
def a_reproducer_repeats_the_run_with_all_that_was_read():
    os.makedirs("lib/in")
    write("lib/in/sizes.tdsl", "dim other = 3;\n// END_OF_FILE")
    write("lib/t.tdsl", 'include "in/sizes.tdsl";\n' + ONE)
    for words, status in (([os.path.abspath("lib/t.tdsl"), "--stop-after=nest"], 0), (["lib/../lib/t.tdsl", "--dump=graph"], 0),
                          (["lib/t.tdsl", "--dump=grap"], 2), (["-e", "ij,jk->ik'", "--shape=2x2"], 1),
                          (["-e", "ij,jk->ik", "--shape=2x3", "--shape=3x4", "--dump=path"], 0)):
        first = tdslc("-w", *words, "--reproducer=again.sh", status=None)
        equal(first.status, status, first.messages)
        if status == 2:
            assert not os.path.exists("again.sh")
            continue
        done = subprocess.run(["sh", os.path.abspath("again.sh"), support.ARGS.tdslc], capture_output=True, check=False, cwd="/")
        equal((done.returncode, done.stdout), (status, first.out), done.stderr.decode())
        os.remove("again.sh")
    done = tdslc("-w", "-", "--dump=graph", "--reproducer=again.sh", stdin=ONE.encode())
    equal(subprocess.run(["sh", "again.sh", support.ARGS.tdslc], capture_output=True, check=True).stdout, done.out)


# ---- manual pages and completions

@test
def manual_pages_and_completions_have_every_option():
    for words in (["tdslc"], ["tdsl-run"], ["tdslc", "fmt"]):
        names = re.findall(r"^  (--?[\w-]+)", run(*words, "--help").text, re.M)
        assert len(names) > 5, names
        for form in ("man", "bash", "zsh", "fish"):
            if form != "man" and words[-1] == "fmt":
                continue
            text = run(*words, f"--help={form}").text
            for name in names:
                spelled = {"man": name.replace("-", r"\-"), "fish": name.lstrip("-")}.get(form, name)
                assert spelled in text, (words, form, name)
            if form == "bash":
                write("c.bash", text)
                run("bash", "-n", "c.bash")
                for line, want in (("--he", "--help"), ("-w --target=", "c"), ("--color=al", "always"), ("-o c.b", "c.bash"), ("--cc=c.b", "c.bash")):
                    for breaks, before in (("=", ""), (":", line.split(" ")[-1].partition("=")[0] + "=" if "=" in line else "")):
                        said = run("bash", "-c", f". ./c.bash; COMP_WORDBREAKS='{breaks}'; COMP_LINE='x {line}'; COMP_POINT=${{#COMP_LINE}}; "
                                   f"_{words[0].replace('-', '_')} 2> /dev/null; echo ${{COMPREPLY[@]}}").text
                        assert before + want in said.split(), (line, breaks, said)


# ---- @file

@test
def words_of_a_file_stand_in_its_place():
    write("t.tdsl", ONE)
    write("args", "--dump=graph\n -D  n=3\t\n")
    equal(tdslc("@args", "t.tdsl").text, tdslc("--dump=graph", "-D", "n=3", "t.tdsl").text)
    write("more", "@args t.tdsl")
    equal(tdslc("@more").text, tdslc("--dump=graph", "-D", "n=3", "t.tdsl").text)
    write("a b.tdsl", ONE)
    for word in ("'a b.tdsl'", '"a b.tdsl"', r"a\ b.tdsl", "a' 'b.tdsl", r'"a b"\.tdsl'):
        write("quoted", word)
        tdslc("--stop-after=graph", "@quoted")
    write("empty", " \n")
    tdslc("@empty", "--stop-after=graph", "t.tdsl")
    write("shapes", "-e ij->ji --shape=2x3 --dump=graph")
    equal(tdslc("@shapes").text, tdslc("-e", "ij->ji", "--shape=2x3", "--dump=graph").text)


@test
def a_file_that_holds_itself_or_is_not_there_is_refused():
    write("self", "@self")
    assert "'@self'" in tdslc("@self", status=2).messages
    assert "'@none'" in tdslc("@none", "--version", status=2).messages
    write("@t.tdsl", ONE)
    tdslc("--stop-after=graph", "--", "@t.tdsl")


sys.exit(main())
