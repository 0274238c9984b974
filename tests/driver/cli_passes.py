#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The passes of the pipeline by name: what each leaves is printed, read back and compiled on from, and those that are not needed may be left out.
See cli.py."""
import itertools
import re
import sys

from support import *
from support import np

# Something for each pass that may be left out, but `online` and `orders`: identities, terms to factor, open dims side by side, narrow operands, a symmetric result,
# values that share loops, sizes that differ, long sums, panels for a whole loop, buffers one after the other.
PROGRAM = """dim n ~ 40, m ~ 600;
kernel f(A: f64[n,m], B: f64[m,n], C: f64[n,n], D: f64[n,m]) -> (R: f64[n,n], S: f64[n,n], s: f64, t: f64) {
    R[i,j] = A[i,k] * B[k,j] + D[i,k] * B[k,j];
    T[i,j] = A[i,k] * A[j,k];
    S[i,j] = -(-abs(1 * (T[i,j] + C[j,i])));
    s = sum[i,j](A[i,j]);
    t = max[i](T[i,i]);
}
kernel o(A: f64[a,b,m], B: f64[m,c,d], X: f32[n,m], Y: f32[m,n]) -> (R: f64[a,b,c,d], Z: f64[n,n]) {
    R[a,b,c,d] = A[a,b,k] * B[k,c,d];
    Z[i,j] = sum[k](f64(X[i,k]) * f64(Y[k,j]));
}
kernel g(A: f64[20,300], B: f64[300,30], C: f64[30,20]) -> (R: f64[20,20], U: f64[30,20]) {
    V[i,k] = A[i,j] * B[j,k];
    R[i,l] = V[i,k] * C[k,l];
    U[k,i] = V[i,k] + C[k,i];
}
kernel mp(K: f64[o,v,o,v], e: f64[o]) -> (E: f64) {
    T[i,j,a,b] = K[i,a,j,b] * 2 - K[i,b,j,a];
    E = sum[i,j,a,b](T[i,j,a,b] * K[i,a,j,b] * (e[i] + e[j]));
}
"""
# What statements of legal kernels say of how they are run: stores past the caches, short sums, prefetches.
HINTS = """kernel transposed(A: f32[m, n]) -> (R: f32[n, m]) {
    R[j,i] = A[i,j];
}
kernel brief(A: f32[24, 8], B: f32[8, 32]) -> (R: f32[24, 32]) {
    R[i,j] = A[i,k] * B[k,j];
}
kernel wide(A: f32[96, 72, 96], B: f32[96, 24]) -> (R: f32[72, 24, 96]) {
    R[i,j,k] = A[k,i,l] * B[l,j];
}
"""
# A value that is better made for each order in which it is read.
# What counts one of each two equal pairs.
SHARDED = "kernel k(A: f64[n, m] shard(n), x: f64[m]) -> (y: f64[n]) { y[i] = A[i,j] * x[j]; }\n"
CHOSEN = """dim n ~ 640, d ~ 64, f ~ 64, g ~ 8;
kernel chosen(x: f32[n, d], p: i32[n], W: f32[g, d, f]) -> (y: f32[n, f]) { y[n,f] = x[n,d] * W[p[n], d, f]; }
"""
MIRRORED = """kernel energy(B: f64[9, 70, 40]) -> (E: f64) {
    T[i,a,j,b] = B[i,a,p] * B[j,b,p];
    E = sum[i,j,a,b](T[i,a,j,b] * (2 * T[i,a,j,b] - T[i,b,j,a]));
}
"""
SPELLED = """kernel s(A: f64[9, 70], D: f64[9, 70], B: f64[70, 5], x: f64[5]) -> (R: f64[9], S: f64[9, 5]) {
    S[i,j] = sum[k](A[i,k] * B[k,j] / (1 + pow(D[i,k], 2)));
    T[i,j] = A[i,k] * B[k,j];
    R[i] = T[i,j] * x[j];
}
"""
ORDERS = """kernel triples(V: f64[8, 16, 16, 16], T: f64[8, 8, 16, 16]) -> (E: f64) {
    W[i,j,k,a,b,c] = sum[d](V[i,a,b,d] * T[k,j,c,d]) + sum[d](V[j,b,c,d] * T[i,k,a,d]) + sum[d](V[k,c,a,d] * T[j,i,b,d]);
    E = sum[i,j,k,a,b,c](W[i,j,k,a,b,c] * W[i,j,k,a,b,c]);
}
"""
# Where one pass is better than two.
ATTENTION = """dim s ~ 4096, t ~ 200000, d ~ 64;
kernel attention(Q: f32[s, d], K: f32[t, d], V: f32[t, d]) -> (O: f32[s, d]) {
    S[q,k] = Q[q,e] * K[k,e];
    M[q]   = max[k](S[q,k]);
    W[q,k] = exp(S[q,k] - M[q]);
    Z[q]   = sum[k](W[q,k]);
    O[q,e] = W[q,k] * V[k,e] / Z[q];
}
"""
VALUES = {"f": ["A=fill", "B=fill", "C=fill", "D=fill", "-Dn=21", "-Dm=700"],
          "o": ["A=fill", "B=fill", "X=fill", "Y=fill", "-Da=3", "-Db=2", "-Dc=4", "-Dd=3", "-Dm=70", "-Dn=19"],
          "g": ["A=fill", "B=fill", "C=fill"], "mp": ["K=fill", "e=fill", "-Do=5", "-Dv=7"]}
SPELLINGS = {"--no-fuse": "fuse", "--no-online": "online", "--one-nest": "sizes", "--no-symmetry": "symmetry", "--no-factor": "factor"}


def passes(target="c"):
    """name -> (stage, may it be left out), in their order."""
    rows = [line.split(None, 3) for line in tdslc("--list-passes", "--target=" + target).text.splitlines()]
    assert all(len(row) == 4 and row[2] in ("needed", "optional") for row in rows), rows
    return {name: (stage, kind == "optional") for name, stage, kind, _ in rows}


def optional(target="c"):
    return [name for name, (_, may) in passes(target).items() if may]


def write_programs():
    write("p.tdsl", PROGRAM)
    write("t.tdsl", TOUR)
    write("a.tdsl", ATTENTION)
    return "p.tdsl", "a.tdsl", "t.tdsl"


@test
def every_pass_has_a_name_of_its_own_and_a_stage():
    for target in ("c", "trn2", "null"):
        table = passes(target)
        assert not set(table) & set(STAGES), table
        order = [([*STAGES, "output"]).index(stage) for stage, _ in table.values()]
        equal(order, sorted(order), target)
    assert {"legalise", "sums", "hoist", "share"} <= set(passes()) and "sums" not in passes("trn2")
    tdslc("--list-passes", "--target=tea", status=2)
    listed = re.search(r"<!-- tdslc --list-passes -->\n```\n(.*?)```", (ROOT / "docs/tools.md").read_text(), re.S)
    equal(listed[1], tdslc("--list-passes").text, "docs/tools.md")


@test
def what_a_pass_leaves_reads_back_and_gives_the_same_c():
    table = {name: stage for name, (stage, _) in passes().items() if name not in ("factor", "emit")}
    for program in write_programs():
        tdslc(program, "-w", "-o", "want.c", "--header=k.h")
        last = {}
        for name, stage in table.items():
            tdslc(program, "-w", "--dump=" + name, "-o", "d.dump")
            equal(tdslc("d.dump", "-w", "--dump=" + name).out, read("d.dump"), f"{name} of its dump")
            tdslc("d.dump", "-w", "-o", "got.c", "--header=k.h")
            assert read("got.c") == read("want.c"), f"C from what {name} leaves of {program} differs"
            last[stage] = name
        for stage, name in last.items():
            equal(tdslc(program, "-w", "--dump=" + name).out, tdslc(program, "-w", "--dump=" + stage).out, f"{name} is the last of {stage}")
        for name, stage in table.items():
            says = f"\nafter {name}\n" in tdslc(program, "-w", "--dump=" + name).text
            equal(says, name != last[stage], f"{name} says what it is after")


@test
def what_a_pass_leaves_runs_as_it_stands():
    write("p.tdsl", PROGRAM)
    want = tdsl_run("p.tdsl", "-w", "--kernel=g", "--checksum", *VALUES["g"]).text
    for name in passes():
        if name not in ("factor", "emit"):
            tdslc("p.tdsl", "-w", "--dump=" + name, "-o", "d.dump")
            for target in ("c", "interp"):
                equal(tdsl_run("d.dump", "-w", "--kernel=g", "--checksum", *VALUES["g"], "--target=" + target).text, want, name + target)


@test
def a_dump_goes_on_behind_its_pass_only():
    write("p.tdsl", PROGRAM)
    tdslc("p.tdsl", "-w", "--dump=sums", "-o", "d.dump")
    assert "past pass 'legalise' already" in tdslc("d.dump", "--dump=legalise", status=1).messages
    assert "past stage 'loop' already" in tdslc("d.dump", "--dump=loop", status=1).messages
    tdslc("d.dump", "--stop-after=hoist")
    tdslc("p.tdsl", "-w", "--stop-after=fuse")
    tdslc("p.tdsl", "-w", "--stop-after=fuse", "--dump=orders", status=2)
    text = read("d.dump").decode()
    assert "\nafter sums\n" in text
    for wrong in ("fuse", "tea", "factor", "lower", '"sums"', "", "sums hoist"):
        write("w.dump", text.replace("\nafter sums\n", f"\nafter {wrong}\n"))
        assert "E0401" in tdslc("w.dump", "-o", "k.c", status=1).messages, wrong
    for name, wrong in itertools.product(("fuse", "orders"), ("steps -1", "steps", "steps x", "steps 1 2")):
        text = tdslc("p.tdsl", "-w", "--dump=" + name).text
        assert re.search(r"nest steps \d+ \{", text), name
        write("w.dump", re.sub(r"steps \d+", wrong, text))
        assert "E0401" in tdslc("w.dump", "-o", "k.c", status=1).messages, wrong
    assert "steps" not in tdslc("p.tdsl", "-w", "--dump=nest").text
    for bad in ("factor", "emit", "output", "tea", ""):
        tdslc("p.tdsl", "-w", "--dump=" + bad, status=2)
        tdslc("p.tdsl", "-w", "--stop-after=" + bad, status=2)


@test
def every_pass_that_is_not_needed_may_be_left_out():
    """Values stay, and the text says that it was obeyed."""
    names = optional()
    programs = (*write_programs(), write("h.tdsl", HINTS), write("r.tdsl", ORDERS), write("s.tdsl", SPELLED), write("m.tdsl", MIRRORED),
                write("d.tdsl", SHARDED), write("c.tdsl", CHOSEN))
    want = {k: tdsl_run("p.tdsl", "-w", "--kernel=" + k, "--checksum", *VALUES[k]).text for k in VALUES}
    plain = {p: tdslc(p, "-w", "--header=k.h", "-o", "-").text for p in programs}
    stages = {name: stage for name, (stage, _) in passes().items()}
    for number, name in enumerate([*names, ",".join(names)]):
        checked = share([p for p in programs if p != "r.tdsl"], 3, number, gate=3)
        for kernel, values in VALUES.items():
            for target in ("c", "interp"):
                got = tdsl_run("p.tdsl", "-w", "--kernel=" + kernel, "--checksum", "--without=" + name, *values, "--target=" + target).text
                equal(got, want[kernel], f"{kernel} without {name}, {target}")
        left = [tdslc(p, "-w", *(["--check-each"] if p in checked else []), "--without=" + name, "-o", "-", "--header=k.h").text != plain[p]
                for p in programs]
        assert any(left), f"--without={name} changes nothing"
        if "," not in name and name != "factor":
            before = list(stages)[list(stages).index(name) - 1]
            if before != "factor" and stages[before] == stages[name] and name not in ("symmetry", "online", "sizes"):
                for p in share(programs, 3, number, gate=3):
                    a, b = (re.sub("after \\w+\n", "", tdslc(p, "-w", f"--without={name}", "--dump=" + x).text) for x in (before, name))
                    equal(a, b, f"{name} does nothing where it is left out")


@test
def the_older_options_are_spellings():
    for program in write_programs():
        for option, name in SPELLINGS.items():
            equal(tdslc(program, "-w", option, "-o", "-").text, tdslc(program, "-w", "--without=" + name, "-o", "-").text, option)
        both = ["--without=fuse", "--without=online,symmetry"]
        equal(tdslc(program, "-w", *both, "-o", "-").text,
              tdslc(program, "-w", "--no-fuse", "--no-online", "--no-symmetry", "-o", "-").text, "together")


@test
def needed_passes_stay_and_the_message_says_which_may_go():
    write("p.tdsl", PROGRAM)
    for target in ("c", "trn2"):
        list_of = " ".join(optional(target))
        wrong = [name for name, (_, may) in passes(target).items() if not may] + ["tea", "", "fuse,", "fuse,,online", "graph"]
        for name in wrong:
            for done in (tdslc("p.tdsl", "--target=" + target, "--without=" + name, "-o", "k.c", status=2),
                         tdsl_run("p.tdsl", "--kernel=g", *VALUES["g"], "--target=" + target, "--without=" + name, status=2)):
                assert "--without=" in done.messages and f"can be left out: {list_of}\n" in done.messages, done.messages
                assert done.messages.count("\n") == 1, done.messages
    assert "no such pass" in tdslc("p.tdsl", "--target=trn2", "--without=sums", "-o", "k", status=2).messages
    assert "without this pass" in tdslc("p.tdsl", "--without=lower", "-o", "k.c", status=2).messages


@test
def a_pass_that_a_dump_is_past_cannot_be_left_out():
    write("p.tdsl", PROGRAM)
    order = list(passes())
    tdslc("p.tdsl", "-w", "--dump=nest", "-o", "n.nest")
    for at in ("simplify", "collapse", "fuse", "legalise", "hoist"):
        tdslc("p.tdsl", "-w", "--dump=" + at, "-o", "d.dump")
        for name in optional():
            past = order.index(name) <= order.index(at)
            done = tdslc("d.dump", "-w", "--without=" + name, "-o", "k.c", status=2 if past else 0)
            equal("has nothing to decide" in done.messages, past, f"{name} after {at}")
    for name in optional():
        past = order.index(name) < order.index("lower")
        tdslc("p.tdsl", "-w", "--nest=n.nest", "--without=" + name, "-o", "k.c", status=2 if past else 0)
    tdslc("p.tdsl", "--tune", "--without=fuse", status=2)


@test
def each_pass_is_checked_and_timed():
    for program in write_programs()[::2]:
        done = tdslc(program, "-w", "--check-each", "--time", "-o", "k.c")
        equal([line.split()[-1] for line in done.messages.splitlines()], [x for x in passes() if x != "factor"])


if __name__ == "__main__":
    sys.exit(main())
