#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Declared symmetry as a user meets it: what is checked, what is made, what is refused. See cli.py."""
import itertools
import sys

from support import *
from support import np

PROJECT = """kernel project(B: f64[m, n], S: f64[n, n] symmetric(0, 1)) -> (X: f64[m, m] symmetric(0, 1)) {
    X[i,j] = B[i,k] * S[k,l] * B[j,l];
}
"""
CHECK = ["--check-symmetry", "--checksum"]


def copy(dtype, attributes, shape="n, n"):
    return f"kernel twice(A: {dtype}[{shape}] {attributes}) -> (R: {dtype}[{shape}]) {{ R = A + A; }}\n"


def run_on(text, array, **named):
    write("k.tdsl", text)
    save("a.npy", array)
    return tdsl_run("k.tdsl", *CHECK, "A=a.npy", "--target=interp", **named)


@test
def an_argument_that_breaks_the_promise_is_found_at_its_first_place():
    for dtype, numpy in (("f64", "f8"), ("f32", "f4"), ("i32", "i4"), ("i64", "i8"), ("c64", "c8"), ("c128", "c16")):
        a = fill((5, 5), 0, numpy)
        good = a + a.T
        run_on(copy(dtype, "symmetric(0, 1)"), good)
        good[3, 1] += 1
        bad = run_on(copy(dtype, "symmetric(0, 1)"), good, status=1)
        assert "error[E0803]: argument 'A' is not as symmetric as it is declared: A[1,3] is" in bad.messages, bad.messages
        assert " and A[3,1] is" in bad.messages
        good = a - a.T
        run_on(copy(dtype, "antisymmetric(0, 1)"), good)
        good[2, 2] = 1
        bad = run_on(copy(dtype, "antisymmetric(0, 1)"), good, status=1)
        assert "A[2,2] is" in bad.messages


@test
def every_class_of_dimensions_is_checked():
    rng = np.random.default_rng(1)
    a = rng.integers(-4, 5, (3, 3, 3, 2, 2)).astype("f8")
    good = sum(np.transpose(a, p + (3, 4)) for p in itertools.permutations(range(3)))
    good = good - np.transpose(good, (0, 1, 2, 4, 3))
    declared = "symmetric(1, 0) antisymmetric(3, 4) symmetric(2, 1)"
    run_on(copy("f64", declared, "3, 3, 3, 2, 2"), good)
    for at in ((0, 1, 2, 0, 1), (1, 1, 2, 0, 1), (2, 2, 2, 1, 1), (0, 0, 1, 1, 0)):
        bad = good.copy()
        bad[at] += 1
        run_on(copy("f64", declared, "3, 3, 3, 2, 2"), bad, status=1)


@test
def conjugates_and_groups_of_dimensions_are_checked():
    rng = np.random.default_rng(2)
    z = rng.integers(-4, 5, (4, 4)) + 1j * rng.integers(-4, 5, (4, 4))
    for dtype, numpy in (("c64", "c8"), ("c128", "c16")):
        for declared, good in (("hermitian(0, 1)", z + z.conj().T), ("antihermitian(0, 1)", z - z.conj().T)):
            good = good.astype(numpy)
            run_on(copy(dtype, declared), good)
            for at, by in (((0, 1), 1j), ((3, 1), 1), ((2, 2), 1j if declared[0] == "h" else 1)):
                bad = good.copy()
                bad[at] += by
                run_on(copy(dtype, declared), bad, status=1)
    g = rng.integers(-4, 5, (3, 2, 3, 2)).astype("f8")
    good = g + g.transpose(2, 3, 0, 1)
    run_on(copy("f64", "symmetric((0, 1), (2, 3))", "3, 2, 3, 2"), good)
    good[0, 1, 2, 0] += 1
    bad = run_on(copy("f64", "symmetric((0, 1), (2, 3))", "3, 2, 3, 2"), good, status=1)
    assert "A[0,1,2,0] is" in bad.messages and "and A[2,0,0,1] is" in bad.messages, bad.messages


@test
def numbers_are_compared_as_numbers():
    run_on(copy("f64", "symmetric(0, 1)"), np.array([[1, -0.0], [0.0, np.nan]]))
    run_on(copy("f64", "symmetric(0, 1)"), np.array([[1, np.nan], [np.nan, 2]]))
    run_on(copy("f64", "symmetric(0, 1)"), np.array([[1, np.nan], [0, 2]]), status=1)
    run_on(copy("f64", "antisymmetric(0, 1)"), np.array([[-0.0, np.inf], [-np.inf, 0]]))
    least = np.iinfo(np.int32).min
    run_on(copy("i32", "antisymmetric(0, 1)"), np.array([[0, least], [least, 0]], "i4"))
    near = np.array([[1, 0.1 + 0.2], [0.3, 1]])
    bad = run_on(copy("f64", "symmetric(0, 1)"), near, status=1)
    assert "A[0,1] is 0.30000000000000004 and A[1,0] is 0.3" in bad.messages


@test
def nothing_is_said_without_being_asked_or_of_nothing():
    write("k.tdsl", copy("f64", "symmetric(0, 1)"))
    save("a.npy", fill((5, 5), 0))
    tdsl_run("k.tdsl", "--checksum", "A=a.npy")
    for n in (0, 1):
        run_on(copy("f64", "symmetric(0, 1)"), fill((n, n), 0))
    write("k.tdsl", "kernel f(A: f64[n, n]) -> (R: f64[n, n]) { R = A + A; }")
    tdsl_run("k.tdsl", *CHECK, "A=a.npy")


@test
def a_result_that_is_not_what_is_declared_is_found_after_the_call():
    write("k.tdsl", "kernel f(A: f64[n, n]) -> (R: f64[n, n] symmetric(0, 1)) { R = A + A; }")
    a = fill((4, 4), 0)
    save("a.npy", a + a.T), save("b.npy", a)
    for target in ("c", "interp"):
        done = tdsl_run("k.tdsl", *CHECK, f"--target={target}", "A=a.npy")
        assert ("[-Wsymmetry]" in done.messages) == (target == "c") and "R" in done.text
        bad = tdsl_run("k.tdsl", *CHECK, f"--target={target}", "A=b.npy", status=1)
        assert "error[E0803]: result 'R' is not as symmetric as it is declared: R[0,1] is" in bad.messages
        assert bad.text == ""
    write("k.tdsl", "kernel f(A: inout f64[n, n] symmetric(0, 1), B: f64[n, n]) { A[i,j] += B[i,j]; }")
    tdsl_run("k.tdsl", *CHECK, "A=a.npy", "B=a.npy")
    bad = tdsl_run("k.tdsl", *CHECK, "A=a.npy", "B=b.npy", status=1)
    assert "result 'A'" in bad.messages
    bad = tdsl_run("k.tdsl", *CHECK, "A=b.npy", "B=a.npy", status=1)
    assert "argument 'A'" in bad.messages


@test
def words_make_what_is_declared():
    write("k.tdsl", PROJECT)
    for word in ("random:3", "fill", "ones", "zeros"):
        tdsl_run("k.tdsl", *CHECK, "-D", "m=7", "-D", "n=6", "B=fill", f"S={word}", "--target=interp",
                 status=None if word == "random:3" else 0)
    eight = "symmetric(0, 1) symmetric(2, 3) symmetric((0, 1), (2, 3))"
    for dtype, declared, shape in (("f64", "antisymmetric(0, 1)", "n, n"), ("f64", "symmetric(1, 0)", "n, n"),
                                   ("c128", "hermitian(0, 1)", "n, n"), ("c64", "antihermitian(0, 1)", "n, n"), ("f64", eight, "n, n, n, n")):
        write("k.tdsl", copy(dtype, declared, shape))
        for word in ("random:3", "fill"):
            tdsl_run("k.tdsl", *CHECK, "-D", "n=6", f"A={word}")


@test
def the_promise_is_kept_from_stage_to_stage():
    write("k.tdsl", PROJECT)
    save("b.npy", fill((5, 4), 0))
    s = fill((4, 4), 1)
    save("s.npy", s)
    for stage in STAGES:
        tdslc("k.tdsl", f"--dump={stage}", "-o", "k.dump")
        tdslc("k.dump", f"--dump={stage}", "-o", "again.dump")
        assert read("k.dump") == read("again.dump")
        bad = tdsl_run("k.dump", *CHECK, "B=b.npy", "S=s.npy", status=1)
        assert "argument 'S' is not as symmetric as it is declared: S[0,1] is" in bad.messages, stage
    tdslc("k.tdsl", "-o", "k.c")
    assert "symmetric(0, 1)" in read("k.h").decode()
    assert read("k.c").decode().count("(const tdsl_exchange[]){{(const int32_t[]){1, 0}, 1, 0}}, 1}") == 2


@test
def decisions_that_need_a_promise_are_not_taken_for_a_kernel_without_it():
    write("k.tdsl", PROJECT)
    write("other.tdsl", PROJECT.replace("S: f64[n, n] symmetric(0, 1)", "S: f64[n, n]"))
    tdslc("k.tdsl", "--dump=nest", "-o", "k.nest")
    tdslc("k.tdsl", "--nest=k.nest", "-o", "k.c")
    bad = tdslc("other.tdsl", "--nest=k.nest", "-o", "other.c", status=1)
    assert "parameter 'S' is f64[n,n] here, f64[n,n] sym(0 1) there" in bad.messages, bad.messages


@test
def every_pass_keeps_the_meaning_under_the_promise():
    write("k.tdsl", """kernel f(B: f64[m, n], S: f64[n, n] symmetric(0, 1), W: f64[n, n] antisymmetric(0, 1)) -> (X: f64[m, m], e: f64) {
        X[i,j] = B[i,k] * S[k,l] * B[j,l];
        e = sum[k,l](S[k,l] * S[l,k] * W[k,l] * W[l,k]);
    }
    """)
    tdslc("k.tdsl", "--check-each", "-o", "k.c")


# ---- half is computed, half is copied

STORED = """dim n ~ 256, k ~ 256;
kernel syrk(A: f64[n, k]) -> (X: f64[n, n]) { X[i,j] = A[i,p] * A[j,p]; }
kernel further(B: f64[n, 3, k]) -> (X: f64[n, 3, n, 3]) { X[i,a,j,b] = B[i,a,p] * B[j,b,p]; }
kernel batched(B: f64[2, n, k]) -> (X: f64[2, n, n]) { X[h,i,j] = B[h,i,p] * B[h,j,p]; }
kernel terms(A: f64[n, k], B: f64[n, k]) -> (X: f64[n, n]) { X[i,j] = A[i,p] * A[j,p] + B[i,p] * B[j,p]; }
kernel epilogue(A: f64[n, k], s: f64[n]) -> (X: f64[n, n]) { X[i,j] = abs(sum[p](A[i,p] * A[j,p])) + s[i] * s[j]; }
kernel skew(A: f64[n, k], W: f64[k, k] antisymmetric(0, 1)) -> (X: f64[n, n] antisymmetric(0, 1)) { X[i,j] = A[i,p] * W[p,q] * A[j,q]; }
kernel project(A: f64[n, k], S: f64[k, k] symmetric(0, 1)) -> (X: f64[n, n] symmetric(0, 1)) { X[i,j] = A[i,p] * S[p,q] * A[j,q]; }
kernel energy(A: f64[n, k]) -> (X: f64[n, n], e: f64) { X[i,j] = A[i,p] * A[j,p]; e = sum[i,j](X[i,j] * X[i,j]); }
kernel single(A: f32[n, k]) -> (X: f32[n, n]) { X[i,j] = A[i,p] * A[j,p]; }
"""
NEAR = """dim n ~ 256, k ~ 64;
kernel other(A: f64[n, k], B: f64[n, k]) -> (X: f64[n, n]) { X[i,j] = A[i,p] * B[j,p]; }
kernel turned(A: f64[n, n]) -> (X: f64[n, n]) { X[i,j] = A[i,p] * A[p,j]; }
kernel scaled(A: f64[n, k], S: f64[k, k]) -> (X: f64[n, n]) { X[i,j] = A[i,p] * S[p,q] * A[j,q]; }
kernel dims(A: f64[n, k], B: f64[v, k]) -> (X: f64[n, v]) { X[i,j] = A[i,p] * B[j,p]; }
"""


def stored(name, n, k):
    a, b, w = fill((n, k), 0), fill((n, k), 1), fill((k, k), 1)
    c, d = fill((n, 3, k), 0), fill((2, n, k), 0)
    lower = np.tril(np.ones((k, k), bool), -1)
    s, skew = np.where(lower, w.T, w), np.where(lower, -w.T, w)
    np.fill_diagonal(skew, 0)
    x = a @ a.T
    return {"syrk": [x], "further": [np.einsum("iap,jbp->iajb", c, c)], "batched": [d @ d.transpose(0, 2, 1)],
            "terms": [x + b @ b.T], "epilogue": [np.abs(x) + np.outer(fill((n,), 1), fill((n,), 1))],
            "skew": [a @ skew @ a.T], "project": [a @ s @ a.T], "energy": [x, np.array((x * x).sum())],
            "single": [x.astype("f4")]}[name]


def kernels(text):
    return re.findall(r"kernel (\w+)\((.*?)\) ->", text)


@test
def half_of_a_mirrored_value_is_computed_and_every_element_of_it_right():
    write("k.tdsl", STORED)
    for name, head in kernels(STORED):
        # with 256 to plan for
        tdslc("k.tdsl", f"--kernel={name}", "-w", "--check-each", "--dump=nest", "-o", "k.nest")
        nest = read("k.nest").decode()
        assert " both" in nest and " from i" in nest, name
        values = [f"{p}=fill" for p in re.findall(r"(\w+): ", head)]
        results = ["X", "e"] if name == "energy" else ["X"]
        for n, k in ((0, 3), (1, 3), (31, 3), (32, 3), (33, 70), (64, 3), (65, 5), (127, 3), (129, 9), (257, 4)):
            outputs = [f"-o{r}={r}.npy" for r in results]
            tdsl_run("k.nest", "--check-symmetry", "-D", f"n={n}", "-D", f"k={k}", *outputs, *values)
            for r, want in zip(results, stored(name, n, k)):
                same(np.load(f"{r}.npy"), want)


@test
def threads_share_a_triangle_and_change_no_bit():
    write("k.tdsl", STORED)
    for name in ("syrk", "project", "terms"):
        text = [tdsl_run("k.tdsl", f"--kernel={name}", "-w", "--cflags=-O1", "-D", "n=301", "-D", "k=65",
                         f"--threads={t}", "--checksum", "A=random:1",
                         *{"project": ["S=random:2"], "terms": ["B=random:2"]}.get(name, [])).text for t in (1, 3)]
        assert text[0] == text[1] != ""


@test
def near_misses_are_computed_whole():
    write("k.tdsl", NEAR)
    for name, _ in kernels(NEAR):
        out = tdslc("k.tdsl", f"--kernel={name}", "-w", "-D", "n=256", *(["-D", "k=64"] if name != "turned" else []),
                    "--dump=nest", status=None).text
        assert "result 0" in out and " from " not in out.split("nest {")[1].replace("read from", ""), (name, out)


@test
def the_report_says_what_it_saves_and_no_symmetry_saves_nothing():
    write("k.tdsl", STORED)
    bound = ["k.tdsl", "--kernel=syrk", "-D", "n=512", "-D", "k=512", "--stop-after=nest"]
    text = tdslc(*bound, "--report").text
    saved = int(re.search(r"symmetry: pairs count once in X, half of which is copied; (\d+) multiply-adds saved", text)[1])
    done = int(re.search(r"spilled 0 B; (\d+) multiply-adds", text)[1])
    assert saved + done == 512 ** 3 and saved > 0.4 * 512 ** 3
    assert "symmetry" not in tdslc(*bound, "--report", "--no-symmetry").text


if __name__ == "__main__":
    sys.exit(main())
