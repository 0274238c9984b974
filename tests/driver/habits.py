#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What people type who know compilers and other tools: dependency files, values in the order of parameters, n=3. See cli.py."""
import json
import sys

from support import *

GEMM = "kernel gemm(A: f64[m, k], B: f64[k, n], s: f64) -> (C: f64[m, n]) {\n    C[i,j] = s * A[i,p] * B[p,j];\n}\n"


# ---- dependency files

@test
def a_rule_names_what_mt_says():
    write("part.tdsl", "const two = 2;\n")
    write("k.tdsl", 'include "part.tdsl";\ninclude <nn.tdsl>;\n' + GEMM.replace("s *", "two * s *"))
    files_ = ": k.tdsl \\\n  part.tdsl\n"
    tdslc("k.tdsl", "-o", "k.c", "-MMD")
    equal(read("k.c.d").decode(), "k.c" + files_)
    tdslc("k.tdsl", "-o", "k.c", "-MD", "-MT", "obj/k.o", "-MT", "$(dir)/k.d", "-MF", "k.d")
    equal(read("k.d").decode(), "obj/k.o $(dir)/k.d" + files_)
    tdslc("k.tdsl", "-o", "-", "-MT", "k.o", "-MF", "k.d")
    equal(read("k.d").decode(), "k.o" + files_)
    tdslc("k.tdsl", "-w", "--dump=nest", "-o", "k.nest")
    tdslc("k.tdsl", "-w", "-o", "k.c", "-MMD", "--nest=k.nest")  # what was decided in files is read too
    equal(read("k.c.d").decode(), "k.c: k.tdsl \\\n  part.tdsl \\\n  k.nest\n")
    tdslc("k.tdsl", "-o", "k.c", "-MT", "k.o", status=2)
    tdslc("k.tdsl", "-o", "-", "-MMD", status=2)


# ---- targets

@test
def several_targets_are_written_in_one_run():
    write("k.tdsl", "dim m = 64, k = 64, n = 64;\n" + GEMM.replace("f64", "f32").replace("s: f32", "s: f32, unused: f32[m]"))
    done = tdslc("k.tdsl", "--target=c,trn2,trn1", "-o", "out")
    equal(done.messages.count("'unused' is never used"), 1)
    pathlib.Path("one/c").mkdir(parents=True)
    tdslc("k.tdsl", "-w", "-o", "one/c/k.c")
    for target in ("trn2", "trn1"):
        tdslc("k.tdsl", "-w", f"--target={target}", "-o", f"one/{target}")
    names = [sorted(str(p.relative_to(top)) for p in pathlib.Path(top).rglob("*") if p.is_file()) for top in ("out", "one")]
    equal(names[0], names[1])
    for name in names[0]:
        equal(read("out/" + name), read("one/" + name), name)
    tdslc("-e", "ij,jk->ik", "--shape=64x64", "--shape=64x64", "--target=c,trn2", "--name=mm", "-o", "eq")
    assert "eq/c/mm.c" in files()
    # All or none.
    write("k.tdsl", GEMM)
    assert "trn2" in tdslc("k.tdsl", "--target=c,trn2", "-o", "none", status=(1, 4)).messages
    for more in (["--target=c,tea", "-o", "none"], ["--target=c,trn2"], ["--target=c,trn2", "-o", "-"], ["--target=c,trn2", "-o", "none", "--report"],
                 ["--target=c,trn2", "-o", "none", "-MD"], ["--target=,", "-o", "none"]):
        tdslc("k.tdsl", *more, status=2)
    assert not pathlib.Path("none").exists()


# ---- completion

@test
def values_are_completed_behind_the_equals_sign():
    """By bash, and by fish where it is; of zsh the text is looked at."""
    lines = {"tdslc --report=": {"json", "html"}, "tdslc --diagnostics=s": {"sarif"}, "tdslc --color=": {"auto", "always", "never"}}
    targets = {line.split()[0] for line in tdslc("--list-targets").text.splitlines()}
    lines["tdslc --target="] = targets
    for shell in ("bash", "fish"):
        write(shell, tdslc(f"--help={shell}").text)
    for line, words_ in lines.items():
        script = f'source ./bash; COMP_LINE="{line}"; COMP_POINT={len(line)}; COMP_WORDBREAKS==; _tdslc; echo ${{COMPREPLY[@]}}'
        equal(set(run("bash", "-c", script).text.split()), words_, line)
        if shutil.which("fish"):
            found = run("fish", "-c", f"source ./fish; complete -C '{line}'").text
            equal({row.split("\t")[0].partition("=")[2] for row in found.splitlines()}, words_, line)
    zsh = tdslc("--help=zsh").text
    assert re.search(r"'\*--report=-\[.*\]::value:\(json html\)'", zsh) and re.search(r"'\*--target=\[.*\]:value:\(c ", zsh)


# ---- SARIF

def sarif(*args, tool=tdslc, status):
    found = json.loads(tool(*args, "--diagnostics=sarif", status=status).messages)
    equal((found["version"], len(found["runs"])), ("2.1.0", 1))
    run_ = found["runs"][0]
    equal(run_["columnKind"], "unicodeCodePoints")
    equal(run_["invocations"][0]["exitCode"], status)
    equal(sorted(rule["id"] for rule in run_["tool"]["driver"]["rules"]), sorted({r["ruleId"] for r in run_["results"]}))
    return run_


@test
def messages_are_one_object_of_sarif():
    write("a b.tdsl", "kernel f(x: f64[n], unused: f64[m]) -> (R: f64[n]) {\n    R[i] = /* \u00e9\U0001f600 */ foo(x[i]) + epx(x[i]);\n}\n")
    results = sarif("a b.tdsl", status=1)["results"]
    equal([(r["ruleId"], r["level"]) for r in results], [("E0201", "error"), ("E0201", "error")])
    place = results[1]["locations"][0]["physicalLocation"]
    equal(place, {"artifactLocation": {"uri": "a%20b.tdsl"}, "region": {"startLine": 2, "startColumn": 33, "endLine": 2, "endColumn": 36}})
    change = results[1]["fixes"][0]["artifactChanges"][0]
    equal(change["replacements"], [{"deletedRegion": place["region"], "insertedContent": {"text": "exp"}}])
    write("b.tdsl", ONE)
    equal(sarif("b.tdsl", "--stop-after=graph", status=0)["results"], [])
    wrong = sarif("b.tdsl", "--repot", status=2)["invocations"][0]
    assert not wrong["executionSuccessful"]
    equal(wrong["toolConfigurationNotifications"][0]["message"]["text"], "unknown option '--repot'\nhelp: did you mean '--report'?")
    taken = sarif("b.tdsl", "n=3", "--stop-after=graph", status=0)["invocations"][0]
    equal(taken["toolExecutionNotifications"], [{"level": "note", "message": {"text": "'n=3' is taken for -D n=3"}}])
    equal(sarif("none.npy", tool=tdsl_run, status=3)["results"][0]["ruleId"], "E0701")


# ---- values

@test
def values_without_names_come_in_the_order_of_parameters():
    write("k.tdsl", GEMM)
    a, b = fill((3, 4), 1), fill((4, 5), 2)
    save("A.npy", a)
    save("B.npy", b)
    for words in (["A.npy", "B.npy", "2"], ["A=A.npy", "s=2", "B=B.npy"], ["A.npy", "s=2", "B.npy"], ["A.npy", "B=B.npy", "s=2"]):
        tdsl_run("k.tdsl", "--target=interp", *words, "-o", "C.npy")
        same(load("C.npy"), 2 * a @ b)
    assert "'A' is given twice" in tdsl_run("k.tdsl", "A.npy", "B.npy", "2", "A=A.npy", status=1).messages
    assert "4 values without a name are given, the kernel has 3" in tdsl_run("k.tdsl", "A.npy", "B.npy", "2", "3", status=1).messages
    assert "no value is given for 's'" in tdsl_run("k.tdsl", "A.npy", "B.npy", status=1).messages
    # Random numbers do not depend on how a value is given.
    sums = {tdsl_run("k.tdsl", "--target=interp", "-D", "m=3", "-D", "k=4", "-D", "n=5", *words, "--checksum").text
            for words in (["random:1", "random:2", "0.5"], ["A=random:1", "B=random:2", "s=0.5"])}
    equal(len(sums), 1)


@test
def a_kernel_is_described():
    write("k.tdsl", "dim m ~ 100;\n" + GEMM + "kernel add(X: inout f32[m], s: f32) {\n    X[i] += s;\n}\n")
    text = tdsl_run("k.tdsl", "--describe").text
    equal(text, """kernel gemm
  A            f64[m, k]                    parameter
  B            f64[k, n]                    parameter
  s            f64                          number
  C            f64[m, n]                    result
  m            dim                          open, planned for 100
  k            dim                          open, planned for 64
  n            dim                          open, planned for 64
  tdsl-run k.tdsl --kernel=gemm A=A.npy B=B.npy s=NUMBER -o C=C.npy

kernel add
  X            f32[m]                       parameter, changed
  s            f32                          number
  m            dim                          open, planned for 100
  tdsl-run k.tdsl --kernel=add X=X.npy s=NUMBER -o X=new_X.npy
""")
    save("A.npy", fill((3, 4), 1))
    save("B.npy", fill((4, 5), 2))
    command = text.splitlines()[8].replace("NUMBER", "2").split()  # it is one that runs
    tdsl_run(*command[1:], "--target=interp")
    same(load("C.npy"), 2 * fill((3, 4), 1) @ fill((4, 5), 2))
    equal(tdsl_run("k.tdsl", "--describe", "--kernel=gemm").text, text.split("\n\n")[0] + "\n")
    write("k.dump", tdslc("k.tdsl", "--dump=legal", "--kernel=gemm").text)
    assert "C            f64[m, n]                    result" in tdsl_run("k.dump", "--describe").text
    assert "tdsl-run -e 'ij,jk->ik'" in tdsl_run("-e", "ij,jk->ik", "--shape=2x3", "--shape=3x4", "--describe").text


@test
def an_extent_without_d_is_taken_with_a_note():
    write("k.tdsl", GEMM)
    done = tdslc("k.tdsl", "n=3", "k~100", "--dump=graph")
    equal(done.text, tdslc("k.tdsl", "-D", "n=3", "-D", "k~100", "--dump=graph").text)
    equal(done.messages, "tdslc: note: 'n=3' is taken for -D n=3\ntdslc: note: 'k~100' is taken for -D k~100\n")
    notes = [json.loads(line) for line in tdslc("k.tdsl", "n=3", "--stop-after=graph", "--diagnostics=json").messages.splitlines()]
    equal(notes, [{"level": "note", "message": "'n=3' is taken for -D n=3"}])
    assert "-Wdefine" in tdslc("k.tdsl", "q=3", "--stop-after=graph").messages
    write("n=3", GEMM)  # a file is a file
    assert "more than one input" in tdslc("k.tdsl", "n=3", status=2).messages
    words = ["A=ones", "B=ones", "s=1", "--target=interp", "--checksum"]
    with_d = tdsl_run("k.tdsl", "-D", "m=2", "-D", "k=3", "-D", "n=4", *words)
    without = tdsl_run("k.tdsl", "m=2", "k=3", "n=4", *words)
    equal(without.text, with_d.text)
    equal(without.messages.count("is taken for -D"), 3)
    equal(tdsl_run("k.tdsl", "m=2", "k=3", "n=4", "A=ones", "B=ones", "s=1", "--checksum").text, with_d.text)
    assert "no parameter 'q'" in tdsl_run("k.tdsl", "q=3", "m=2", "k=3", "n=4", *words, status=1).messages


sys.exit(main())
