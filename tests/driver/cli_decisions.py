#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decisions set on the command line: tdslc and tdsl-run take the same options, and refuse the same. See cli.py."""
import re
import sys

from support import *
from support import np

PROGRAM = """dim n ~ 24, m ~ 40;
kernel f(A: f64[n,m], B: f64[m,n], C: f64[n,n], X: inout f64[n,n]) -> (R: f64[n,n], s: f64) {
    T[i,k] = A[i,j] * B[j,k] * C[k,l] * C[l,k];
    R[i,l] = T[i,k] * C[k,l] + X[l,i];
    s = max[i,j](T[i,j]);
}
"""
KERNELS = PROGRAM + "kernel g(Z: f64[n]) -> (Q: f64[n]) { Q[i] = 2 * Z[i]; }\n"
VALUES = ["A=fill", "B=fill", "C=fill", "X=fill", "-Dn=5", "-Dm=7"]


def run_program():
    return tdsl_run("p.tdsl", "-w", "--checksum", *VALUES).text


@test
def tdsl_run_takes_the_decisions_that_tdslc_takes():
    write("p.tdsl", PROGRAM)
    want = run_program()
    tdslc("p.tdsl", "-w", "--no-fuse", "--dump=nest", "-o", "flat.nest")
    tdslc("p.tdsl", "-w", *VALUES[4:], "--plan-out=plan")  # it is for these sizes
    for option in ("--no-fuse", "--no-factor", "--search=greedy", "--objective=write", "--memory-limit=100000",
                   "--seed=3", "--effort=0", "--effort=2", "--one-nest", "--plan-in=plan", "--nest=flat.nest"):
        for target in ("--target=c", "--target=interp"):
            equal(tdsl_run("p.tdsl", "-w", "--checksum", *VALUES, option, target).text, want, option + target)
    for bad in ("--seed=x", "--effort=-1", "--objective=tea", "--memory-limit=0", "--no-fuse=1", "--plan-out=p"):
        tdsl_run("p.tdsl", *VALUES, bad, status=2)
    tdsl_run("p.tdsl", *VALUES, "--plan-in=absent", status=3)
    tdsl_run("p.tdsl", *VALUES, "--nest=p.tdsl", status=1)


@test
def a_decision_is_obeyed_not_only_accepted():
    """What was performed says which order it was."""
    operands = ["-e", "ab,bc,cd->ad", "--shape=2x30", "--shape=30x4", "--shape=4x50", "ones", "ones", "ones"]
    right, wrong = 2 * 30 * 4 + 2 * 4 * 50, 30 * 4 * 50 + 2 * 30 * 50
    tdslc(*operands[:5], "--path=(1,2)(0,1)", "--plan-out=plan")
    tdslc(*operands[:5], "--path=(1,2)(0,1)", "--dump=nest", "-o", "wrong.nest")
    for options, count in (([], right), (["--path=(1,2)(0,1)"], wrong), (["--plan-in=plan"], wrong), (["--nest=wrong.nest"], wrong)):
        for target in ("c", "interp"):
            found = re.search(r"multiply_adds=(\d+)", tdsl_run(*operands, *options, "--target=" + target, "--time").text)
            as_written = target == "interp" and not options  # all operands at once
            equal(int(found[1]), 2 * 30 * 4 * 50 if as_written else count, f"{options} {target}")


@test
def dumps_of_every_stage_run_as_they_stand():
    write("p.tdsl", PROGRAM)
    want = run_program()
    for options in ([], ["--no-fuse"]):
        for stage in STAGES[STAGES.index("graph"):]:
            tdslc("p.tdsl", "-w", "--dump=" + stage, *(options if stage != "graph" else []), "-o", "d.dump")
            for target in ("c", "interp"):
                equal(tdsl_run("d.dump", "-w", "--checksum", *VALUES, "--target=" + target).text, want, f"{stage} {target}")
    write("two.tdsl", KERNELS)
    for stage in ("loop", "legal"):
        tdslc("two.tdsl", "-w", "--dump=" + stage, "-o", "d.dump")
        equal(tdsl_run("d.dump", "--kernel=f", "-w", "--checksum", *VALUES).text, want, stage)
        assert "one of f g" in tdsl_run("d.dump", *VALUES, status=2).messages
        tdsl_run("d.dump", "--kernel=h", *VALUES, status=1)
        assert "no parameter 'Y'" in tdsl_run("d.dump", "--kernel=g", "Z=ones", "Y=1", "-Dn=2", status=1).messages


@test
def a_kernel_dump_says_what_its_kernel_takes_and_gives():
    """Scalars, complex numbers, inout, arrays: known from the loops alone."""
    write("c.tdsl", "kernel f(A: c64[n,m], t: f32, X: inout c64[n]) -> (s: c64) {\n"
          "    X[i] += c64(t) * A[i,j];\n    s = sum[i](X[i]);\n}\ndim n, m;\n")
    a, x = fill((3, 4), 0, np.complex64) * (1 + 2j), fill((3,), 1, np.complex64)
    a = a.astype(np.complex64)
    save("a.npy", a), save("x.npy", x)
    for stage in ("loop", "legal"):
        tdslc("c.tdsl", "-w", "--dump=" + stage, "-o", "d.dump")
        for target in ("c", "interp"):
            tdsl_run("d.dump", "A=a.npy", "t=2", "X=x.npy", "-o", "X=r.npy", "-o", "s=s.npy", "--target=" + target)
            want = (x + 2 * a.sum(1)).astype(np.complex64)
            same(np.load("r.npy"), want)
            same(np.load("s.npy"), np.array(want.sum(), np.complex64))
        assert "has 2 dimensions" in tdsl_run("d.dump", "A=x.npy", "t=2", "X=x.npy", status=1).messages


@test
def kernel_dumps_of_a_device_run_in_the_emulator():
    write("e.tdsl", "kernel f(A: f32[20,30], B: f32[30,10], X: inout f32[20]) -> (R: f32[20,10]) {\n"
          "    R[i,k] = A[i,j] * B[j,k] + X[i];\n}\n")
    values = ["A=fill", "B=fill", "X=fill", "--target=trn2", "--checksum", "-w"]
    want = tdsl_run("e.tdsl", *values).text
    for stage in ("nest", "loop", "legal"):
        tdslc("e.tdsl", "-w", "--target=trn2", "--dump=" + stage, "-o", "d.dump")
        got = tdsl_run("d.dump", *values).text
        equal(sorted(x for x in got.splitlines() if x.startswith("R ")), want.splitlines(), stage)
    done = tdsl_run("d.dump", *values[:3], status=1)  # legal for another target
    assert "for this target" in done.messages
    write("e.tdsl", read("e.tdsl").decode().replace("20", "n") + "dim n ~ 20;\n")
    tdslc("e.tdsl", "-w", "--dump=nest", "-o", "n.nest")
    assert "'n'" in tdsl_run("e.tdsl", "--nest=n.nest", *values, "-Dn=20", status=1).messages
    equal(tdsl_run("e.tdsl", *values, "-Dn=20").text, want)


@test
def options_with_nothing_left_to_decide_are_refused_alike():
    write("p.tdsl", PROGRAM)
    tdslc("p.tdsl", "-w", "--dump=nest", "-o", "n.nest")
    order = ["--no-factor", "--search=greedy", "--objective=size", "--memory-limit=99999", "--seed=1",
             "--path=(0,1)", "--plan-in=plan"]
    loops = ["--effort=2", "--no-fuse", "--one-nest", "--nest=n.nest"]
    write("plan", "tdsl plan 1\n")
    for stage in STAGES[STAGES.index("graph"):]:
        tdslc("p.tdsl", "-w", "--dump=" + stage, "-o", "d.dump")
        late = {"graph": [], "path": order}.get(stage, order + loops)
        for option in order + loops:
            status = (0, 1, 4) if option not in late else 2
            for done in (tdslc("d.dump", "-w", option, "-o", "k.c", status=status),
                         tdsl_run("d.dump", *VALUES, "-w", option, status=status)):
                if option in late:
                    name = option.split("=")[0]
                    assert f"{name} has nothing to decide: a dump of stage '{stage}' holds its" in done.messages, done.messages
                    assert done.messages.count("\n") == 1, done.messages
    for option in order + loops[:3]:
        for done in (tdslc("p.tdsl", "--nest=n.nest", option, "-o", "k.c", status=2),
                     tdsl_run("p.tdsl", *VALUES, "--nest=n.nest", option, status=2)):
            assert "the nest of --nest holds its" in done.messages
    for done in (tdslc("p.tdsl", "--path=(0,1)", "--plan-in=plan", "-o", "k.c", status=2),
                 tdsl_run("p.tdsl", *VALUES, "--path=(0,1)", "--plan-in=plan", status=2),
                 tdslc("--emit=path", *CHAIN, "--path=(0,1)", "--plan-in=plan", status=2)):
        assert "one at a time" in done.messages


@test
def a_nest_is_of_the_program_beside_it():
    write("p.tdsl", PROGRAM)
    write("two.tdsl", KERNELS)
    want = run_program()
    tdslc("two.tdsl", "-w", "--dump=nest", "-o", "two.nest")
    tdslc("p.tdsl", "-w", "--dump=nest", "-o", "one.nest")
    tdslc("p.tdsl", "-w", "-Dn=5", "-Dm=7", "--dump=nest", "-o", "bound.nest")
    run_it = ["-w", "--checksum", *VALUES[:4]]
    equal(tdsl_run("two.tdsl", "--kernel=f", "--nest=two.nest", *run_it, *VALUES[4:]).text, want)
    equal(tdsl_run("two.tdsl", "--kernel=f", "--nest=one.nest", *run_it, *VALUES[4:]).text, want)
    equal(tdsl_run("p.tdsl", "--nest=bound.nest", *run_it).text, want)  # it knows the extents
    save("a.npy", fill((6, 7), 0))
    tdsl_run("p.tdsl", "--nest=bound.nest", "A=a.npy", *VALUES[1:4], status=1)
    tdslc("two.tdsl", "-w", "--kernel=g", "--nest=two.nest", "-o", "g.c")
    assert b" g(" in read("g.h") and b" f(" not in read("g.h")
    for old, new, said in (("A: f64", "Q: f64", "parameter 'Q'"), ("C: f64[n,n]", "C: f64[n,m]", "parameter 'C'"),
                           ("X: inout", "X:", "parameter 'X'"), ("s: f64", "u: f64", "result 'u'"),
                           ("kernel f", "kernel h", "kernel 'f'"), ("C: f64", "C: f32", "parameter 'C'")):
        head = PROGRAM.splitlines()[1].replace(old, new)
        text = f"dim n ~ 24, m ~ 40;\n{head}\n    R[i,k] = {'Q' if 'Q' in said else 'A'}[i,j] * B[j,k];\n" + \
            f"    {'u' if 'u:' in new else 's'} = max[i,j](R[i,j]);\n}}\n"
        write("other.tdsl", text)
        for done in (tdslc("other.tdsl", "-w", "--nest=one.nest", "-o", "k.c", status=1),
                     tdsl_run("other.tdsl", "-w", "--nest=one.nest", *VALUES, status=1)):
            assert "E0402" in done.messages and "of another program" in done.messages and said in done.messages, done.messages
    assert "--kernel chooses" in tdslc("two.tdsl", "-w", "--nest=one.nest", "-o", "k.c", status=1).messages
    assert not os.path.exists("k.c")


@test
def the_nests_that_a_report_prices_cost_that_when_they_are_read_back():
    programs = ROOT / "tests/programs"
    sizes = json.loads((programs / "sizes.json").read_text())
    unlike = 0
    for name, extents in sizes.items():
        if name == "meta":
            continue
        for target in ("c", "trn2"):
            command = [str(programs / "programs.tdsl"), "-w", f"--kernel={name}", f"--target={target}"]
            command += [f"-D{d}={n}" for d, n in extents["small"].items()]
            report = ["--report=json", "--stop-after=nest"]
            model = json.loads(tdslc(*command, *report).text)["kernels"][0]["model"]
            plain = json.loads(tdslc(*command, *report, "--no-fuse").text)["kernels"][0]["model"]
            priced = {key: value for key, value in plain["chosen"].items() if key != "nest"}
            equal(priced, model["unfused"], name)
            equal([plain["turned_down"], plain["bound"]], [None, None])
            dump = tdslc(*command, "--dump=nest").text
            head = dump[:dump.index("\nnest {") + 1]
            equal(head + model["chosen"]["nest"], dump, name)
            for form in ("chosen", "turned_down"):
                want = model[form]
                if want is not None:
                    write("form.nest", head + want["nest"])
                    got = json.loads(tdslc("form.nest", "-w", f"--target={target}", *report).text)["kernels"][0]["model"]
                    want.pop("because", None)
                    equal(got["chosen"], want, f"{name} {form}")
                    equal([got["unfused"], got["compulsory_bytes"]], [model["unfused"], model["compulsory_bytes"]])
            unlike += model["turned_down"] is not None and model["turned_down"]["nest"] != model["chosen"]["nest"]
            for form in ("chosen", "unfused", "turned_down"):
                got = model[form]
                if got is not None:
                    waits = got["arithmetic_seconds"] + sum(got["wait_seconds"].values())
                    assert abs(got["total_seconds"] - waits) <= 1e-6 * waits, (name, form)
                    least = model["compulsory_bytes"] * (1 - 1e-6)
                    assert all(b >= least for b in list(got["bytes"].values())[:1]), (name, form, got, least)
    assert unlike > len(sizes), unlike


@test
def a_report_says_what_known_sizes_would_give():
    write("open.tdsl", "kernel k(A: f64[m, k], B: f64[k, n]) -> (C: f64[m, n]) { C[i,j] = A[i,p] * B[p,j]; }")
    models = [json.loads(tdslc("open.tdsl", "-w", "--report=json", *bind).text)["kernels"][0]["model"] for bind in ([], ["-Dm=64", "-Dk=64", "-Dn=64"])]
    equal(models[0]["bound"]["total_seconds"], models[1]["chosen"]["total_seconds"])
    assert models[0]["bound"]["total_seconds"] < models[0]["chosen"]["total_seconds"], models[0]


@test
def integrals_are_transformed_in_one_pass():
    """Whatever the size: no pass over the integrals is a second one, and the half-transformed ones fit where they are."""
    for dtype in ("f32", "f64"):
        write("t.tdsl", f"kernel f(E: {dtype}[n,n,x], C: {dtype}[n,o], D: {dtype}[n,v]) -> (B: {dtype}[o,v,x]) {{\n"
              "    H[i,n,P] = C[m,i] * E[m,n,P];\n    B[i,a,P] = D[n,a] * H[i,n,P];\n}\n")
        for n in (64, 96, 128, 256, 400, 512):
            extents = [f"-D{d}={n}" for d in "nxov"]
            model = json.loads(tdslc("t.tdsl", "-w", *extents, "--report=json", "--stop-after=nest").text)["kernels"][0]["model"]
            bytes_moved = next(iter(model["chosen"]["bytes"].values()))
            assert bytes_moved <= 1.3 * model["compulsory_bytes"], (dtype, n, model)


@test
def open_dims_whose_sizes_differ_much_have_several_nests():
    """One of which runs; where the dim is bound, or another decision says so, there is one."""
    write("p.tdsl", "kernel f(A: f32[m,k], B: f32[k,n]) -> (C: f32[m,n]) { C[i,j] = A[i,p] * B[p,j]; }\n")
    report = ["--report=json", "--stop-after=nest"]
    kernel = json.loads(tdslc("p.tdsl", *report).text)["kernels"][0]
    nests = kernel["nests"]
    equal([n["from"] for n in nests], [0] + [n["to"] + 1 for n in nests[:-1]])
    equal(nests[-1]["to"], None)
    dim = nests[0]["dim"]
    for n in nests:
        at = str(n["made_for"])
        assert n["from"] <= n["made_for"] <= (n["to"] or 1 << 62)
        typical = next(x for x in nests if x["made_for"] == kernel["typical"][dim])
        assert n is typical or typical["seconds"][at] >= 1.3 * n["seconds"][at], nests
        if n is typical:
            assert abs(n["seconds"][at] - kernel["seconds"]) <= 1e-6 * n["seconds"][at]
    assert "one of which is chosen at the call" in tdslc("p.tdsl", "--report", "--stop-after=nest").text
    bound = ["-Dm=64", "-Dk=64", "-Dn=64"]
    for options in (bound, bound + ["--target=trn2"], ["--one-nest"], ["--no-fuse"], ["--effort=0"]):
        assert "nests" not in json.loads(tdslc("p.tdsl", *report, *options).text)["kernels"][0], options
        assert "when " not in tdslc("p.tdsl", "--dump=nest", *options).text, options
    tdslc("p.tdsl", "--dump=nest", "-o", "several.nest")
    tdslc("p.tdsl", "--dump=nest", "--one-nest", "-o", "one.nest")
    for size in [2] + [n["to"] + more for n in nests[:-1] for more in (0, 1)]:
        sizes = [f"-D{d}={size if d == dim else 3}" for d in "mkn"]
        want = tdsl_run("p.tdsl", *sizes, "A=fill", "B=fill", "--checksum", "--target=interp").text
        for program in ("several.nest", "one.nest"):
            equal(tdsl_run(program, *sizes, "A=fill", "B=fill", "--checksum").text, want, f"{program} {size}")
    tdslc("p.tdsl", "--check-each", "-o", "k.c")
    equal(tdslc("p.tdsl", "--nest=one.nest", "-o", "-").text, tdslc("p.tdsl", "--one-nest", "-o", "-").text)
    equal(tdslc("p.tdsl", "--nest=several.nest", "-o", "-").text, tdslc("p.tdsl", "-o", "-").text)


@test
def a_file_that_decides_is_not_written_over():
    write("p.tdsl", PROGRAM)
    for made, option in (("--dump=nest", "--nest"), ("--plan-out", "--plan-in")):
        tdslc("p.tdsl", "-w", *([made, "-o", "x"] if option == "--nest" else [made + "=x"]))
        before = read("x")
        tdslc("p.tdsl", "-w", option + "=x", "-o", "x", status=2)
        equal(read("x"), before)


if __name__ == "__main__":
    sys.exit(main())
