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
    for declared in ("antisymmetric(0, 1)", "symmetric(1, 0)"):
        write("k.tdsl", copy("f64", declared))
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
    assert "symmetric(0, 1)" in read("k.h").decode() and "{1, 1, 0},\n    {1, 1, 0},\n" in read("k.c").decode()


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


if __name__ == "__main__":
    sys.exit(main())
