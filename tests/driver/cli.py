#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tdslc and tdsl-run as a user meets them: command lines, files, exit statuses.

    cli.py --tdslc PATH --tdsl-run PATH [--only TEXT]

Every test is a function whose name is the sentence it proves; each runs in an empty folder of its own. Expected
values come from NumPy, from tests/data/einsum.json, or from arithmetic on Python's integers, never from the tools.
"""
import json
import os
import pathlib
import re
import struct
import sys

from support import *
from support import np

# ---- tdsl-run -e

@test
def an_equation_on_arrays_gives_numpys_result():
    a, b = fill((4, 3), 0), fill((3, 5), 1)
    save("a.npy", a), save("b.npy", b)
    for target in ([], ["--target=c"], ["--target=interp"]):
        tdsl_run("-e", "ik,kj->ij", *target, "-o", "r.npy", "a.npy", "b.npy")
        same(np.load("r.npy"), a @ b)
    tdsl_run("a.npy", "-e", "ik,kj->ji", "b.npy", "-or.npy")
    same(np.load("r.npy"), np.ascontiguousarray((a @ b).T))


@test
def every_npy_version_order_and_type_is_read():
    for version in ((1, 0), (2, 0), (3, 0)):
        for dtype in ("f4", "f8", "i4", "i8", "c8", "c16"):
            for order in "CF":
                a, b = fill((3, 2, 4), 0, dtype), fill((4, 5), 1, dtype)
                save("a.npy", np.array(a, order=order), version)
                save("b.npy", np.array(b, order=order), version)
                tdsl_run("--target=interp", "-e", "xyk,kz->xyz", "-o", "r.npy", "a.npy", "b.npy")
                same(np.load("r.npy"), np.einsum("xyk,kz->xyz", a, b))


@test
def booleans_and_small_floats_are_read():
    a = np.array([[True, False], [False, True]])
    save("a.npy", a)
    tdsl_run("-e", "ij->ji", "-o", "r.npy", "a.npy")
    same(np.load("r.npy"), np.ascontiguousarray(a.T))
    half = fill((2, 3), 0, np.float16)
    save("h.npy", half)
    tdsl_run("--dtype=f32", "-e", "ij->ji", "-o", "r.npy", "h.npy")
    same(np.load("r.npy"), np.ascontiguousarray(half.T).astype(np.float32))


@test
def what_is_written_is_version_1_in_c_order():
    save("a.npy", np.asfortranarray(fill((3, 2), 0)), (3, 0))
    tdsl_run("-e", "ij->ij", "-o", "r.npy", "a.npy")
    raw = read("r.npy")
    equal(raw[:8], b"\x93NUMPY\x01\x00", "magic")
    length = struct.unpack("<H", raw[8:10])[0]
    equal((10 + length) % 64, 0, "alignment")
    header = eval(raw[10:10 + length])
    equal(header, {"descr": "<f8", "fortran_order": False, "shape": (3, 2)})
    equal(raw[10 + length:], fill((3, 2), 0).tobytes(), "data")


@test
def a_scalar_result_is_an_array_without_dimensions():
    save("a.npy", fill((6,), 0))
    tdsl_run("-e", "i->", "-o", "r.npy", "a.npy")
    same(np.load("r.npy"), np.array(fill((6,), 0).sum()))
    save("s.npy", np.array(3.0))
    tdsl_run("-e", ",i->i", "-o", "r.npy", "s.npy", "a.npy")
    same(np.load("r.npy"), 3 * fill((6,), 0))


@test
def arrays_without_elements_work():
    save("a.npy", np.zeros((0, 3))), save("b.npy", np.zeros((3, 2)))
    tdsl_run("-e", "ik,kj->ij", "-o", "r.npy", "a.npy", "b.npy")
    same(np.load("r.npy"), np.zeros((0, 2)))
    save("a.npy", np.zeros((2, 0))), save("b.npy", np.zeros((0, 2)))
    tdsl_run("-e", "ik,kj->ij", "-o", "r.npy", "a.npy", "b.npy")
    same(np.load("r.npy"), np.zeros((2, 2)))


@test
def words_make_operands_whose_extents_are_given():
    shape = ["--shape=3x4", "--shape=4"]
    tdsl_run("-e", "ij,j->i", *shape, "--dtype=f64", "-o", "r.npy", "fill", "fill")
    same(np.load("r.npy"), fill((3, 4), 0) @ fill((4,), 1))
    tdsl_run("-e", "ij,j->i", *shape, "--dtype=f64", "-o", "r.npy", "fill", "ones")
    same(np.load("r.npy"), fill((3, 4), 0).sum(1))
    tdsl_run("-e", "ij,j->i", *shape, "-o", "r.npy", "fill", "zeros")
    same(np.load("r.npy"), np.zeros(3, np.float32))
    save("b.npy", fill((4,), 5, np.float32))
    tdsl_run("-e", "ij,j->i", *shape, "-o", "r.npy", "ones", "b.npy")
    same(np.load("r.npy"), np.full(3, fill((4,), 5).sum(), np.float32))
    tdsl_run("-e", "ij,->ij", "--shape=2x2", "--shape=", "-o", "r.npy", "ones", "7")
    same(np.load("r.npy"), np.full((2, 2), 7, np.float32))


@test
def random_data_depend_on_the_seed_and_the_operand_only():
    def draw(*words):
        tdsl_run("--target=interp", "-e", "i,j->ij", "--shape=4", "--shape=5", "-o", "r.npy", *words)
        return np.load("r.npy")
    same(draw("random:1", "ones"), draw("random:1", "ones"))
    assert not np.array_equal(draw("random:1", "ones"), draw("random:2", "ones"))
    assert not np.array_equal(draw("random:1", "ones")[:, 0], draw("ones", "random:1")[0, :4])


@test
def dtype_casts_operands():
    save("a.npy", fill((3, 4), 0, np.int32)), save("b.npy", fill((4, 2), 1, np.float64))
    want = fill((3, 4), 0) @ fill((4, 2), 1)
    done = tdsl_run("-e", "ik,kj->ij", "a.npy", "b.npy", status=1)
    assert "--dtype" in done.messages
    for name, dtype in (("f32", "f4"), ("f64", "f8"), ("i64", "i8"), ("c64", "c8"), ("c128", "c16")):
        tdsl_run("--dtype=" + name, "-e", "ik,kj->ij", "-o", "r.npy", "a.npy", "b.npy")
        same(np.load("r.npy"), want.astype(dtype))


@test
def checksums_are_those_of_the_einsum_cases():
    cases = json.loads((ROOT / "tests/data/einsum.json").read_text())["cases"]
    picked = [c for c in cases if c["status"] == "ok" and c.get("sum") is not None]
    step = max(1, len(picked) // 40)
    assert len(picked[::step]) >= 30
    for case in picked[::step]:
        shapes = ["--shape=" + "x".join(map(str, s)) for s in case["shapes"]]
        done = tdsl_run("--target=interp", "--checksum", "--dtype=i64", "-e", case["eq"], *shapes,
                        *["fill"] * len(shapes))
        found = re.fullmatch(r"\w+ sum=(-?\d+) wsum=(-?\d+)\n", done.text)
        assert found, f"{case['eq']!r} {shapes} {done.text!r} {done.messages}"
        equal((int(found[1]), int(found[2])), (int(case["sum"]), int(case["wsum"])), case["eq"])


@test
def checksums_of_large_whole_floats_are_exact_digits():
    a = np.full((5,), 2.0 ** 80)
    a[0] = -3
    save("a.npy", a)
    done = tdsl_run("-e", "i->i", "--checksum", "-o", "r.npy", "a.npy")
    total = sum(int(x) for x in a)
    weighted = sum(int(x) * (k + 1) for k, x in enumerate(a))
    equal(done.text.split(" ", 1)[1], f"sum={total} wsum={weighted}\n")
    assert os.path.exists("r.npy")


@test
def the_summary_says_name_type_shape_range_sum_and_first_elements():
    save("a.npy", fill((3, 4), 0))
    text = tdsl_run("-e", "ij->ij", "a.npy").text
    a = fill((3, 4), 0)
    for part in ("f64", "3, 4", f"min {a.min():g}", f"max {a.max():g}", f"sum {a.sum():g}",
                 "  ".join(f"{x:g}" for x in a.flat[:8])):
        assert part in text, f"{part!r} is not in {text!r}"
    write("t.tdsl", TOUR)
    text = tdsl_run("t.tdsl", "--kernel=product", "-D", "n=2", "-Dm=3", "A=ones", "B=ones").text
    assert re.search(r"^C : f64\[2, 2\].*sum 12\b", text, re.M), text
    assert re.search(r"^s : f64\[\] = 12$", text, re.M), text


@test
def time_is_one_line_and_counts_what_is_performed():
    done = tdsl_run("-e", "ik,kj->ij", "--shape=6x7", "--shape=7x5", "--repeat=3", "--time", "ones", "ones")
    lines = [x for x in done.text.splitlines() if x.startswith("time ")]
    equal(len(lines), 1)
    found = re.fullmatch(r"time median=(\S+) min=(\S+) multiply_adds=(\d+)", lines[0])
    assert found, lines
    assert 0 < float(found[2]) <= float(found[1]) < 1
    equal(int(found[3]), 6 * 7 * 5)
    tdsl_run("-e", "i->", "--shape=2", "--repeat=0", "--time", "ones", status=2)


# ---- tdsl-run FILE

@test
def a_file_runs_with_named_values_and_outputs():
    write("t.tdsl", TOUR)
    a, b = fill((4, 6), 0), fill((6, 4), 1)
    save("a.npy", a), save("b.npy", b)
    tdsl_run("t.tdsl", "--kernel=product", "A=a.npy", "B=b.npy", "-o", "C=c.npy", "-o", "s=s.npy")
    same(np.load("c.npy"), a @ b)
    same(np.load("s.npy"), np.array((a @ b).sum()))
    done = tdsl_run("t.tdsl", "--kernel=product", "A=a.npy", "B=fill", "-o", "C=c.npy", "--checksum")
    same(np.load("c.npy"), a @ b)
    equal(done.text.splitlines()[1], f"s sum={int((a @ b).sum())} wsum={int((a @ b).sum())}")


@test
def an_inout_parameter_leaves_its_input_file_alone():
    write("t.tdsl", TOUR)
    x, y = fill((2, 3), 4, np.float32), fill((2, 3), 5, np.float32)
    save("x.npy", x), save("y.npy", y)
    before = read("x.npy")
    tdsl_run("t.tdsl", "--kernel=scaled", "X=x.npy", "Y=y.npy", "alpha=3", "-o", "X=r.npy")
    equal(read("x.npy"), before, "input file")
    same(np.load("r.npy"), (3 * y + x).astype(np.float32))
    tdsl_run("t.tdsl", "--target=interp", "--kernel=scaled", "X=x.npy", "Y=y.npy", "alpha=-0.5", "-o", "X=r.npy")
    same(np.load("r.npy"), (-0.5 * y + x).astype(np.float32))


@test
def f64_is_read_as_f32_where_asked():
    write("t.tdsl", "kernel f(A: f64[n], z: c128, k: i64[n]) -> (R: f64[n], c: c128) { t: f64[i] = f64(k[i]); R[i] = A[i] + t[i]; c = 2*z; }")
    graph = tdslc("t.tdsl", "--f64=f32", "--dump=graph").text
    assert "f64" not in graph and "c128" not in graph and "i64[n]" in graph and '"kernel f(A: f32[n], z: c64, k: i64[n]) -> (R: f32[n], c: c64)"' in graph, graph
    save("a.npy", fill((3,), 0))
    save("k.npy", np.array([1 << 30, 2, 3], np.int64))
    tdsl_run("t.tdsl", "--f64=f32", "A=a.npy", "k=k.npy", "z=3", "-o", "R=r.npy")
    got = load("r.npy")
    assert got.dtype == np.float32 and got[1] == np.float32(fill((3,), 0)[1]) + 2, got
    assert "f32[3]" in tdslc("-e", "i->i", "--shape=3", "--dtype=f64", "--f64=f32", "--dump=graph").text
    assert "f32 or not at all" in tdslc("t.tdsl", "--f64=f16", status=1).messages
    graph = tdslc("t.tdsl", "--f64=sums", "--dump=graph").text
    assert '"kernel f(A: f32[n], z: c64, k: i64[n]) -> (R: f64[n], c: c64)"' in graph, graph
    tdsl_run("t.tdsl", "--f64=sums", "A=a.npy", "k=k.npy", "z=3", "-o", "R=r.npy")
    assert load("r.npy").dtype == np.float64


@test
def dtype_casts_the_arrays_of_a_file():
    write("t.tdsl", ONE)
    save("a.npy", fill((3, 3), 0, np.int32))
    assert "--dtype=f64" in tdsl_run("t.tdsl", "A=a.npy", status=1).messages
    tdsl_run("t.tdsl", "--dtype=f64", "A=a.npy", "-o", "R=r.npy")
    same(np.load("r.npy"), 2 * fill((3, 3), 0))
    tdsl_run("t.tdsl", "--dtype=f64", "A=a.npy", "-o", "r.npy")


@test
def computed_extents_are_solved_and_checked():
    write("t.tdsl", """kernel fir(w: f64[k], x: f64[n + k - 1]) -> (y: f64[n]) { y[i] = w[d] * x[i + d]; }
        kernel less(x: f64[n]) -> (y: f64[n - 2]) { y[i] = x[i] + x[i + 2]; }
        kernel heads(X: f64[s, h*dh - 1], g: f64[h]) -> (y: f64[s, h*dh - 1], z: f64[h, dh]) { y[i,j] = 2*X[i,j]; z[a,b < dh] = g[a]; }""")
    save("w.npy", fill((3,), 0)), save("x.npy", fill((9,), 1)), save("one.npy", fill((1,), 2)), save("m.npy", fill((2, 5), 3)), save("even.npy", fill((2, 4), 3))
    x, w = np.load("x.npy"), np.load("w.npy")
    for target in "c", "interp":
        kernel = lambda name: ["t.tdsl", f"--kernel={name}", f"--target={target}"]
        tdsl_run(*kernel("fir"), "w=w.npy", "x=x.npy", "-o", "r.npy")
        same(np.load("r.npy"), np.array([sum(w * x[i:i + 3]) for i in range(7)]))
        tdsl_run(*kernel("less"), "x=x.npy", "-o", "r.npy")
        same(np.load("r.npy"), x[:-2] + x[2:])
        tdsl_run(*kernel("heads"), "X=m.npy", "g=w.npy", "-o", "z=r.npy")
        same(np.load("r.npy"), np.repeat(w[:, None], 2, 1))
        assert "the extent n - 2 would be below 0" in tdsl_run(*kernel("less"), "x=one.npy", status=1).messages
        assert "'x' is k + n - 1, its array has 1, which" in tdsl_run(*kernel("fir"), "w=w.npy", "x=one.npy", status=1).messages
        assert "'h' is 2 because of 'X'" in tdsl_run(*kernel("heads"), "-D", "dh=3", "X=m.npy", "g=w.npy", status=1).messages
        assert "'X' is h*dh - 1, its array has 4, which" in tdsl_run(*kernel("heads"), "X=even.npy", "g=w.npy", status=1).messages
        assert "'h' of 'g' is not known" in tdsl_run(*kernel("heads"), "X=even.npy", "g=ones", status=1).messages


@test
def wrong_values_are_refused_with_the_reason():
    write("t.tdsl", TOUR)
    save("a.npy", fill((4, 6), 0)), save("b.npy", fill((5, 4), 1)), save("f.npy", fill((4, 6), 0, "f4"))
    k = ["t.tdsl", "--kernel=product"]
    assert "because of 'A'" in tdsl_run(*k, "A=a.npy", "B=b.npy", status=1).messages
    assert "no value" in tdsl_run(*k, "A=a.npy", status=1).messages
    assert "-D n=N" in tdsl_run(*k, "A=ones", "B=ones", status=1).messages
    assert "f32" in tdsl_run(*k, "A=f.npy", "B=fill", status=1).messages
    assert "'A' is given twice" in tdsl_run(*k, "A=a.npy", "ones", status=1).messages
    assert "parameter 'X'" in tdsl_run(*k, "A=a.npy", "B=fill", "X=ones", status=1).messages
    assert "absent.npy" in tdsl_run(*k, "A=absent.npy", "B=fill", status=3).messages
    assert "tensor" in tdsl_run(*k, "A=a.npy", "B=7", status=1).messages
    assert "product" in tdsl_run("t.tdsl", "A=a.npy", status=2).messages
    assert "no result 'Q'" in tdsl_run(*k, "A=a.npy", "B=fill", "-o", "Q=q.npy", status=2).messages
    tdsl_run("-e", "ij->i", "a.npy", "a.npy", status=1)
    tdsl_run("-e", "ij,jk->ik", "a.npy", status=1)
    tdsl_run("-e", "ij->i", "ones", status=2)
    tdsl_run("--target=trn9", "-e", "ij->i", "a.npy", status=2)
    equal([f for f in files() if f.endswith("q.npy")], [])


@test
def broken_npy_files_are_refused():
    save("good.npy", fill((2, 3), 0))
    good = read("good.npy")
    size = struct.unpack("<H", good[8:10])[0]

    def with_header(text, data=good[10 + size:], version=b"\x01\x00"):
        body = text.encode()
        return b"\x93NUMPY" + version + struct.pack("<H", len(body)) + body + data
    head = "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }\n"
    bad = [b"", good[:5], good[:9], good[:20], good[:-1], good + b"x", b"PK\x03\x04" + good[4:],
           good[:6] + b"\x04\x00" + good[8:], good[:6] + b"\x01\x01" + good[8:],
           good[:8] + b"\xff\xff" + good[10:], with_header(head % (">f3", False, (2, 3))),
           with_header(head % ("|O", False, (2, 3))), with_header(head % ("<f8", "maybe", (2, 3))),
           with_header(head % ("<f8", False, "(2, -3)")), with_header(head % ("<f8", False, "2")),
           with_header(head % ("<f8", False, (2 ** 40, 2 ** 40))), with_header(head % ("<f8", False, (2 ** 70, 3))),
           with_header(head % ("<f8", False, "(" + "1," * 70 + ")")), with_header("{}"), with_header("{" * 60000),
           with_header(head % ("<f8", False, (10 ** 9, 10))),
           b"\x93NUMPY\x02\x00" + b"\xff\xff\xff\xff" + good[10:], b"\x93NUMPY\x02\x00\x10"]
    for data in bad:
        pathlib.Path("bad.npy").write_bytes(data)
        for target in ("c", "interp"):
            done = tdsl_run("--target=" + target, "-e", "ij->i", "-o", "r.npy", "bad.npy", status=(1, 4))
            assert "bad.npy" in done.messages, done.messages
    assert not os.path.exists("r.npy")


# ---- tdslc: what is written

@test
def c_is_written_with_its_header_beside_it():
    write("t.tdsl", ONE)
    tdslc("t.tdsl", "-o", "one.c")
    equal(files(), ["one.c", "one.h", "t.tdsl"])
    assert b'#include "one.h"' in read("one.c") and b"twice" in read("one.h")
    os.mkdir("inc")
    tdslc("t.tdsl", "-o", "two.c", "--header=inc/deep.h")
    assert b'#include "deep.h"' in read("two.c") and not os.path.exists("two.h")
    tdslc("t.tdsl", "-o", "odd.name")
    assert os.path.exists("odd.name.h")


@test
def a_dash_is_standard_input_and_output():
    write("t.tdsl", ONE)
    tdslc("t.tdsl", "-o", "one.c")
    text = tdslc("t.tdsl", "-o", "-").out
    equal(text, tdslc("t.tdsl").out)
    assert b"twice" in text
    write("alone.c", text.decode())
    run("gcc", *STRICT, "alone.c", "-o", "alone.o")
    from_stdin = tdslc("-", "-o", "-", stdin=ONE.encode()).out
    assert from_stdin.startswith(b"/* Generated by tdslc") and b" twice(" in from_stdin
    write("alone.c", from_stdin.decode())
    run("gcc", *STRICT, "alone.c", "-o", "alone.o")
    dump = tdslc("t.tdsl", "--dump=graph").out
    equal(tdslc("-", "-o", "-", stdin=dump).out, text)
    equal(tdsl_run("-", "A=ones", "-Dn=2", stdin=ONE.encode()).status, 0)


@test
def kernels_of_their_own_compile_without_a_warning():
    """A helper with one call is compiled for its numbers."""
    for shapes in share((["ab->ba", "24x1000"], ["ab->ba", "20x144384"], ["ab->ba", "1000x24"], ["abc->cba", "24x5x300"],
                   ["acd,db->cba", "96x72x96", "96x24"], ["ab,cb->ac", "8x600", "600x600"], ["ab,cb->ca", "70x33", "20x33"],
                   ["ab,a->b", "4096x4096", "4096"], ["ab,bc->ac", "4096x8", "8x4096"]), 3):
        tdslc("-e", shapes[0], *[f"--shape={shape}" for shape in shapes[1:]], "-w", "-o", "alone.c")
        run("gcc", *STRICT, "alone.c", "-o", "alone.o")


@test
def two_compilations_link_into_one_program():
    write("t.tdsl", TOUR)
    tdslc("t.tdsl", "-o", "first.c")
    tdslc("-e", "ij,jk->ik", "--shape=2x3", "--shape=3x2", "--dtype=f64", "--name=second", "-o", "second.c")
    write("main.c", '#include "first.h"\n#include "second.h"\n#include <stdio.h>\n'
          "int main(void) {\n    double a[6] = {1, 2, 3, 4, 5, 6}, r[4];\n"
          "    if (second(a, a, r, NULL, 0) != 0) { return 1; }\n"
          '    printf("%g %g %g %g\\n", r[0], r[1], r[2], r[3]);\n    return 0;\n}\n')
    run("gcc", "-O1", "main.c", "first.c", "second.c", "-lm", "-o", "main")
    equal(run("./main").text, "22 28 49 64\n")


@test
def an_equation_is_named_and_typed_as_asked():
    for name, want in ((None, "einsum"), ("my_kernel", "my_kernel")):
        tdslc(*CHAIN, "--dtype=f32", *([] if name is None else ["--name=" + name]), "-o", "k.c")
        assert re.search(rf"\b{want}\(", read("k.h").decode())
    assert b"float" in read("k.h")
    tdslc(*CHAIN, "--dtype=i64", "-o", "k.c")
    assert b"int64_t *" in read("k.h") or b"int64_t *restrict" in read("k.h")
    for name in ("1x", "a b", "", "a-b", "é"):
        tdslc(*CHAIN, "--name=" + name, "-o", "bad.c", status=(1, 2))
    assert not os.path.exists("bad.c")


@test
def open_extents_are_leading_int64_arguments():
    tdslc("-e", "ij,jk->ik", "--shape=?x3", "--shape=3x?", "-o", "k.c")
    header = read("k.h").decode()
    assert re.search(r"\beinsum\(\s*int64_t \w+,\s*int64_t \w+,", header), header
    tdslc("-e", "ij,jk->ik", "--shape=4x3", "--shape=3x2", "-o", "k.c")
    assert not re.search(r"\beinsum\(\s*int64_t \w+", read("k.h").decode())


@test
def open_dims_stand_in_the_order_of_their_first_use_whatever_is_declared():
    kernel = "kernel g(A: f64[n, k], B: f64[k, m], E: f64[p]) -> (C: f64[n, m], D: f64[p]) {\n    C[i,j] = A[i,l] * B[l,j];\n    D[i] = E[i];\n}\n"
    interfaces = set()
    for declared in ("", "dim m ~ 4000;", "dim p, m ~ 4000, k, n ~ 3;", "dim k ~ 7; dim n;"):
        write("g.tdsl", declared + "\n" + kernel)
        tdslc("g.tdsl", "-o", "g.c")
        header = re.sub(r"/\*.*?\*/", "", read("g.h").decode(), flags=re.S)
        assert re.search(r"\bg\(\s*int64_t n,\s*int64_t k,\s*int64_t m,\s*int64_t p,", header), header
        interfaces.add(header)
    equal(len(interfaces), 1, "interfaces")


@test
def a_bound_dim_is_no_argument():
    write("t.tdsl", ONE)
    tdslc("t.tdsl", "-o", "open.c")
    tdslc("t.tdsl", "-D", "n=4", "-o", "bound.c")
    assert re.search(r"\btwice\(\s*int64_t n", read("open.h").decode())
    assert not re.search(r"\btwice\(\s*int64_t n", read("bound.h").decode())
    for bad in ("n", "n=", "n=-1", "n=x", "=3", "n=99999999999999999999"):
        tdslc("t.tdsl", "-D", bad, "-o", "bad.c", status=(1, 2))
    assert not os.path.exists("bad.c")


@test
def dependency_files_name_everything_read():
    os.mkdir("inc")
    write("inc/part.tdsl", ONE)
    write("main.tdsl", 'include "part.tdsl";\nkernel k(A: f64[2]) -> (R: f64[2]) { R[i] = A[i]; }\n')
    tdslc("main.tdsl", "-I", "inc", "-o", "out.c", "-MD", "-MF", "deps.d")
    text = read("deps.d").decode().replace("\\\n", " ").split()
    equal(text, ["out.c:", "main.tdsl", "inc/part.tdsl"])
    tdslc("main.tdsl", "-Iinc", "-o", "out.c", "-MD")
    equal(read("out.c.d"), read("deps.d"))
    tdslc("main.tdsl", "-I", "inc", "-o", "out.c", "--header=a b.h", "-MD", "-MP", "-MF", "rules.d")
    after = b"a\\ b.h: main.tdsl \\\n  inc/part.tdsl\ninc/part.tdsl:\n"
    equal(read("rules.d"), read("deps.d") + after)
    tdslc("main.tdsl", "-I", "inc", "--dump=graph", "-o", "out.dump", "-MD", "-MP")
    equal(read("out.dump.d").split(b"\n")[-2:], [b"inc/part.tdsl:", b""])


@test
def outputs_that_would_not_change_are_not_written():
    write("t.tdsl", ONE)
    tdslc("t.tdsl", "-o", "k.c", "-MD", "-MF", "k.d")
    names = ["k.c", "k.h", "k.d"]
    for name in names:
        os.utime(name, (1000, 1000))
    tdslc("t.tdsl", "-o", "k.c", "-MD", "-MF", "k.d")
    equal([os.stat(n).st_mtime for n in names], [1000.0] * 3)
    tdslc("t.tdsl", "-o", "k.c", "-MD", "-MF", "k.d", "--touch")
    equal([os.stat(n).st_mtime == 1000.0 for n in names], [False] * 3)
    for name in names:
        os.utime(name, (1000, 1000))
    write("t.tdsl", ONE.replace("2 *", "3 *"))
    tdslc("t.tdsl", "-o", "k.c", "-MD", "-MF", "k.d")
    equal([os.stat(n).st_mtime == 1000.0 for n in names], [False, True, True])
    save("a.npy", fill((2, 2), 0))
    tdsl_run("t.tdsl", "A=a.npy", "-o", "r.npy")
    os.utime("r.npy", (1000, 1000))
    tdsl_run("t.tdsl", "A=a.npy", "-o", "r.npy")
    equal(os.stat("r.npy").st_mtime, 1000.0)


# ---- failures

@test
def a_failed_command_leaves_no_file():
    write("t.tdsl", ONE)
    write("bad.tdsl", ONE.replace("A[i, j]", "B[i, j]"))
    os.mkdir("folder")
    tries = [(1, ["bad.tdsl", "-o", "k.c", "-MD"]), (3, ["absent.tdsl", "-o", "k.c"]),
             (3, ["t.tdsl", "-o", "missing/k.c"]), (3, ["t.tdsl", "-o", "k.c", "--header=missing/k.h"]),
             (3, ["t.tdsl", "-o", "k.c", "--header=folder"]), (3, ["t.tdsl", "-o", "k.c", "-MD", "-MF", "missing/d"]),
             (3, ["t.tdsl", "-o", "k.c", "-MF", "folder"]), (3, ["t.tdsl", "-o", "folder"]),
             (2, ["t.tdsl", "-o", "k.c", "--header=k.c"]), (2, ["t.tdsl", "-o", "k.c", "--header=./k.c", "-MF", "k.c"]),
             (3, ["folder", "-o", "k.c"]), (3, ["t.tdsl", "--dump=graph", "-o", "missing/d"]),
             (2, ["t.tdsl", "--target=none", "-o", "k.c"]), (2, ["t.tdsl", "t.tdsl", "-o", "k.c"]),
             (2, ["-o", "k.c"]), (2, ["t.tdsl", "--bogus", "-o", "k.c"]), (2, ["t.tdsl", "-o"]),
             (2, ["t.tdsl", "--dump=nothing", "-o", "k.c"]), (2, ["t.tdsl", "--emit=tea", "-o", "k.c"]),
             ((1, 2), ["t.tdsl", "--kernel=absent", "-o", "k.c"])]
    if os.path.exists("/dev/full"):
        tries += [(3, ["t.tdsl", "-o", "k.c", "--header=/dev/full"]), (3, ["t.tdsl", "-o", "/dev/full"])]
    for status, args in tries:
        tdslc(*args, status=status)
        equal(files(), ["bad.tdsl", "t.tdsl"], " ".join(args))
    save("a.npy", fill((2, 2), 0))
    for status, args in [(3, ["-o", "missing/r.npy"]), (3, ["-o", "folder"]), (2, ["-o", "Q=r.npy"]),
                         (2, ["-o", "R=r.npy", "-o", "R=r.npy"]), (3, ["-o", "R=r.npy", "-o", "R=folder"])]:
        tdsl_run("t.tdsl", "A=a.npy", *args, status=status)
        equal(files(), ["a.npy", "bad.tdsl", "t.tdsl"], " ".join(args))


@test
def a_failed_command_leaves_existing_outputs_as_they_were():
    write("t.tdsl", ONE)
    tdslc("t.tdsl", "-o", "k.c")
    before = read("k.c"), read("k.h")
    write("t.tdsl", ONE.replace("2 *", "3 *"))
    os.mkdir("folder")
    tdslc("t.tdsl", "-o", "k.c", "--header=folder", status=3)
    tdslc("t.tdsl", "-o", "k.c", "-MF", "missing/k.d", status=3)
    write("t.tdsl", ONE.replace("2 *", "3 $"))
    tdslc("t.tdsl", "-o", "k.c", status=1)
    equal((read("k.c"), read("k.h")), before)


@test
def exit_statuses_tell_whose_fault_it_is():
    write("t.tdsl", ONE)
    save("a.npy", fill((2, 2), 0))
    tdslc("-e", "ij,jk->ik", "--shape=2x3", "--shape=4x5", status=1)
    tdslc("-e", "ij,jk->ik", "--shape=2x3", status=1)
    tdslc("-e", "ij->i", "--shape=2xq", status=1)
    tdslc("-e", "ij->i", "--shape=2x3", "--dtype=f31", status=(1, 2))
    tdslc("--effort=x", *CHAIN, status=2)
    tdslc("absent", status=3)
    tdslc("-e", "i->i", "--shape=" + "x".join(["1"] * 100), status=(1, 4))
    tdsl_run("t.tdsl", "A=a.npy", "--cc=/nowhere/cc", status=5)
    tdsl_run("t.tdsl", "A=a.npy", "--cflags=-no-such-flag", status=5)
    for tool in ("tdslc", "tdsl-run"):
        assert run(tool, "--version").text.startswith(tool + " ")
        assert "--target" in run(tool, "--help").text
        run(tool, status=2)
    equal(tdslc("--explain=E0101").text.startswith("E0101"), True)
    tdslc("--explain=E9999", status=2)


# ---- dumps

@test
def two_kernels_of_one_name_and_a_cut_dump_are_refused():
    write("t.tdsl", ONE)
    for stage in STAGES[3:]:
        tdslc("t.tdsl", "--dump=" + stage, "-o", "d.dump")
        lines = read("d.dump").decode().splitlines(keepends=True)
        start = next(k for k, line in enumerate(lines) if line.startswith("kernel "))
        write("two.dump", "".join(lines + lines[start:]))
        assert "two kernels called" in tdslc("two.dump", status=1).err.decode(), stage
        end = lines.index("}\n") + 1
        if end < len(lines):  # an overlay is missing
            write("cut.dump", "".join(lines[:end]))
            assert "the dump ends before" in tdslc("cut.dump", status=1).err.decode(), stage


@test
def a_dump_of_an_equation_gives_the_same_c():
    args = [*CHAIN[:2], "--shape=5x?", "--shape=?x3", "--shape=3x11", "--shape=11x2", "--dtype=f64"]
    tdslc(*args, "-o", "want.c", "--header=k.h")
    for stage in STAGES[3:]:
        tdslc(*args, "--dump=" + stage, "-o", "d.dump")
        equal(tdslc("d.dump", "--dump=" + stage).out, read("d.dump"), stage)
        tdslc("d.dump", "-o", "got.c", "--header=k.h")
        assert read("got.c") == read("want.c"), f"C from the {stage} dump differs"


@test
def tdsl_run_takes_dumps_too():
    write("t.tdsl", ONE)
    want = tdsl_run("t.tdsl", "A=fill", "-Dn=3").text
    for stage in STAGES[:STAGES.index("loop")]:
        tdslc("t.tdsl", "--dump=" + stage, "-o", "d.dump")
        bound = ["-Dn=3"] if stage in STAGES[:3] else []
        save("a.npy", fill((3, 3), 0))
        equal(tdsl_run("d.dump", *bound, "A=a.npy").text, want, stage)


@test
def what_is_said_of_a_program_is_said_of_its_dump():
    """-D, --kernel: for a dump of any stage as for the program."""
    write("t.tdsl", TOUR)
    args = ["--kernel=product", "-Dn=2", "-D", "m=3", "A=ones", "B=ones"]
    want = tdsl_run("t.tdsl", *args).text
    for stage in share(STAGES[:STAGES.index("loop")], 2):
        tdslc("t.tdsl", "--dump=" + stage, "-o", "d.dump")
        done = tdsl_run("d.dump", *args)
        equal((done.text, done.err), (want, b""), stage)
        tdsl_run("d.dump", "A=ones", "B=ones", "-Dn=2", "-Dm=3", status=2)
        done = tdsl_run("d.dump", *args, "-Dzz=3")
        assert b"-D zz: there is no such dim" in done.err, stage
        save("a.npy", fill((2, 5), 0))
        assert "because of '-D'" in tdsl_run("d.dump", *args[:-2], "A=a.npy", "B=ones", status=1).messages or stage in STAGES[:3]
        assert "no kernel 'other'" in tdsl_run("d.dump", "--kernel=other", "A=ones", "B=ones", status=1).messages
        tdsl_run("d.dump", *args[:-4], "-Dm=x", "A=ones", "B=ones", status=1)
        equal(tdsl_run("d.dump", *args, "--target=interp").text, want, stage)
    for stage in STAGES:
        tdslc("t.tdsl", "--dump=" + stage, "-o", "d.dump")
        tdslc("d.dump", "--kernel=scaled", "-o", "got.c", "--header=k.h")
        tdslc("t.tdsl", "--kernel=scaled", "-o", "want.c", "--header=k.h")
        equal(read("got.c"), read("want.c"), stage)
        tdslc("d.dump", "--kernel=other", "-o", "k.c", status=1)
    assert b"stay as they are" in tdslc("d.dump", "-Dn=2", "-o", "got.c").err
    equal(tdsl_run("-e", "ij->i", "--shape=?x3", "-Di=2", "ones").text, tdsl_run("-e", "ij->i", "--shape=2x3", "ones").text)
    assert b"--shape" in tdslc("-e", "ij->i", "--shape=?x3", "-Di=2").err


@test
def names_of_programs_survive_in_dumps():
    name = 'a "b" \\ \té.tdsl'
    write(name, ONE)
    tdslc(name, "-o", "want.c", "--header=k.h")
    for stage in STAGES:
        tdslc(name, "--dump=" + stage, "-o", "d.dump")
        tdslc("d.dump", "-o", "got.c", "--header=k.h")
        assert read("got.c") == read("want.c"), stage
    for first in ('// tdsl-dump ast 1', '// tdsl-dump ast 1 "', '// tdsl-dump ast 1 "\\', '// tdsl-dump ast 1 "\\x"',
                  '// tdsl-dump ast 1 ""', '// tdsl-dump "\\x4'):
        write("odd.dump", first + "\n" + ONE)
        tdslc("odd.dump", "-o", "got.c")


@test
def stop_after_writes_nothing():
    write("t.tdsl", ONE)
    for stage in STAGES:
        done = tdslc("t.tdsl", "--stop-after=" + stage)
        equal((done.out, done.err), (b"", b""), stage)
    equal(files(), ["t.tdsl"])
    tdslc("t.tdsl", "--stop-after=tea", status=2)


@test
def a_report_says_how_long_the_text_of_each_kernel_is():
    write("t.tdsl", TOUR.replace("f64", "f32"))
    for target, more, suffix in (("c", [], ".c"), ("null", [], ".tir"), ("trn2", ["-Dn=128", "-Dm=128", "--max-instructions=9"], "")):
        args = ["t.tdsl", "--target=" + target, *more, "-w"]
        whole = json.loads(tdslc(*args, "--report=json").text)["kernels"]
        equal([k["name"] for k in whole], ["product", "scaled"])
        text = tdslc(*args, "--report").text
        page = tdslc(*args, "--report=html").text
        out = "out" + suffix
        again = json.loads(tdslc(*args, "--emit=c", "--report=json", "-o", out).text)["kernels"]
        for kernel, same_kernel in zip(whole, again):
            lines, size = kernel["text_lines"], kernel["text_bytes"]
            equal((same_kernel["text_lines"], same_kernel["text_bytes"]), (lines, size), target)
            assert f"  printed as {lines} lines, " in text and f"  printed as {lines} lines, " in page, text
            if target == "trn2":  # the programs of the kernel
                programs = [read(p) for p in files() if re.fullmatch(rf"out/{kernel['name']}(_part\d+)?\.py", p)]
                equal((lines, size), (sum(p.count(b"\n") for p in programs), sum(map(len, programs))), str(files()))
                assert len(programs) > 1 or kernel["name"] == "scaled"
            else:  # all but the head, which is that of a program without kernels, and what they share
                data = read(out)
                assert 20 < lines < data.count(b"\n") or target == "null", (lines, data.count(b"\n"))
                assert sum(k["text_bytes"] for k in whole) < len(data)
    one, both = (json.loads(tdslc("t.tdsl", "--report=json", *more).text)["kernels"] for more in (["--kernel=scaled"], []))
    equal(one[0]["text_bytes"], both[1]["text_bytes"])
    assert "text_lines" not in json.loads(tdslc("t.tdsl", "--report=json", "--stop-after=legal").text)["kernels"][0]


@test
def reports_dot_and_json_are_printed():
    write("t.tdsl", TOUR)
    assert "product" in tdslc("t.tdsl", "--report").text
    assert isinstance(json.loads(tdslc("t.tdsl", "--report=json").text), (dict, list))
    page = tdslc("t.tdsl", "--report=html").text
    assert page.startswith("<!DOCTYPE html>") and "register" in page and "<script" not in page
    assert isinstance(json.loads(tdslc("t.tdsl", "--emit=json").text), (dict, list))
    assert tdslc("t.tdsl", "--emit=dot").text.startswith("digraph")
    tdslc("t.tdsl", "--check-each", "-o", "k.c")
    assert "ms" in tdslc("t.tdsl", "--time", "-o", "k.c").messages


# ---- decisions from outside

def load_npz_run(args, dump):
    write("d.dump", dump)
    for k, shape in enumerate(((5, 7), (7, 3), (3, 11), (11, 2))):
        save(f"{k}.npy", fill(shape, k, np.float32))
    names = re.findall(r"param in @(\w+)", dump)
    tdsl_run("d.dump", *[f"{n}={k}.npy" for k, n in enumerate(names)], *args)


@test
def a_nest_edited_by_hand_gives_the_same_numbers():
    write("t.tdsl", """kernel f(A: f64[64,96], B: f64[96,80], C: f64[80,40]) -> (R: f64[64,40]) {
    T: f64[i,k] = A[i,j] * B[j,k];
    R[i,l] = T[i,k] * C[k,l];
}""")
    nest = tdslc("t.tdsl", "--dump=nest").text
    head, tree = nest[:nest.index("nest {")], nest[nest.index("nest {"):]
    leaves = re.findall(r"(%\d+) (?:tile|workspace|result)", tree)
    assert len(leaves) == 2, tree
    first, last = leaves
    shapes = [(64, 96), (96, 80), (80, 40)]
    for k, shape in enumerate(shapes):
        save(f"{k}.npy", fill(shape, k))
    want = fill(shapes[0], 0) @ fill(shapes[1], 1) @ fill(shapes[2], 2)
    T = re.search(rf"{first} = einsum \S+\[(.)(.)\], \S+\[(.)(.)\] -> \[(.),(.)\]".replace("(.)(.)", "(.),(.)"), head).groups()
    R = re.search(rf"{last} = einsum {first}\[(.),(.)\], \S+\[(.),(.)\] -> \[(.),(.)\]", head).groups()
    made = []
    for tile in (1, 7, 32, 100):
        write("e.dump", head + f"""nest {{
  axis rows [{first}[{T[0]}], {last}[{R[0]}]]
  axis k [{first}[{T[3]}], {last}[{R[1]}]]
  for rows step {tile} parallel {{
    for k step 16 {{
      {first} tile
      {last} result 0
    }}
  }}
}}
}}"""[:-2])
        tdsl_run("e.dump", "A=0.npy", "B=1.npy", "C=2.npy", "-o", "r.npy")
        same(np.load("r.npy"), want)
        tdslc("--nest=e.dump", "t.tdsl", "-o", "e.c")
        made.append(read("e.c"))
    assert len(set(made)) == len(made)
    write("junk", "no nest")
    tdslc("--nest=junk", *CHAIN, "-o", "j.c", status=1)
    assert not os.path.exists("j.c")


@test
def a_given_path_and_a_plan_are_obeyed():
    for path in ("(0,1)(0,1)(0,1)", "(2,3)(1,2)(0,1)"):
        dump = tdslc(*CHAIN, "--path", path, "--dump=path").text
        load_npz_run(["-o", "r.npy"], dump)
        want = fill((5, 7), 0) @ fill((7, 3), 1) @ fill((3, 11), 2) @ fill((11, 2), 3)
        same(np.load("r.npy"), want.astype(np.float32))
    right = tdslc(*CHAIN, "--path=(2,3)(1,2)(0,1)", "--dump=path").out
    assert right != tdslc(*CHAIN, "--path=(0,3)(0,1)(0,1)", "--dump=path").out
    for bad in ("(0,9)(0,1)(0,1)", "(0,1)", "(0,0)(0,1)(0,1)", "junk", "(0,1)(0,1)(0,1)(0,1)"):
        tdslc(*CHAIN, "--path", bad, "-o", "k.c", status=(1, 2))
    tdslc(*CHAIN, "--path=(2,3)(1,2)(0,1)", "--plan-out=plan", "-o", "a.c", "--header=k.h")
    tdslc(*CHAIN, "--plan-in=plan", "-o", "b.c", "--header=k.h")
    equal(read("a.c"), read("b.c"), "C from a plan")
    tdslc("--emit=path", *CHAIN, "--plan-in=plan", "--plan-out=again")
    equal(json.loads(tdslc("--emit=path", "--report=json", *CHAIN, "--plan-in=plan").text)["path"],
          json.loads(tdslc("--emit=path", "--report=json", *CHAIN, "--plan-in=again").text)["path"])
    write("bad", "nonsense")
    tdslc(*CHAIN, "--plan-in=bad", "-o", "k.c", status=1)
    tdslc(*CHAIN, "--plan-in=absent", "-o", "k.c", status=3)
    assert not os.path.exists("k.c")


@test
def a_sliced_kernel_computes_little_again_and_gives_numpys_result():
    equation, n = "ab,acd,ce,bfg,dfhi,ehj,gk,ikl,jl->", 3
    inputs = equation[:-2].split(",")
    base = ["-e", equation, *("--shape=" + "x".join([str(n)] * len(x)) for x in inputs), "--dtype=f64",
            "--memory-limit=27", "-w"]
    report = json.loads(tdslc(*base, "--report=json", "-o", "k.c").text)
    kernel, path = report["kernels"][0], report["contractions"][0]
    assert path["sliced"]
    assert kernel["multiply_adds"] < int(path["multiply_adds"])
    arrays = [fill((n,) * len(x), k) for k, x in enumerate(inputs)]
    for k, a in enumerate(arrays):
        save(f"{k}.npy", a)
    write("d.dump", tdslc(*base, "--dump=nest").text)
    names = re.findall(r"param in @(\w+)", read("d.dump").decode())
    tdsl_run("d.dump", *[f"{x}={k}.npy" for k, x in enumerate(names)], "-o", "r.npy")
    same(np.load("r.npy"), np.einsum(equation, *arrays, optimize=True))
    tdslc(*base, "--check-each", "-o", "k.c")


@test
def values_that_f32_does_not_hold_exactly_are_no_broken_pass():
    write("t.tdsl", """kernel f(Z: f32[n], A: f32[m, m, n, n, n], B: f32[n, m, n]) -> (R: f32[n]) {
    T[n,m] = A[j,i,l,n,m] * B[n,i,m] * A[i,j,n,l,m];
    R[j] = T[k,j] * T[i,k];
}
""")
    tdslc("t.tdsl", "--check-each", "-o", "k.c")


@test
def an_update_by_its_own_transpose_that_is_read_again_is_copied_at_the_end():
    write("t.tdsl", "kernel f(C: inout i32[m, m]) -> (T: i32[m, m]) { C[x,b] -= C[b,x]; T = 7 * C; }\n")
    tdslc("t.tdsl", "--check-each", "-o", "k.c")
    write("d.dump", tdslc("t.tdsl", "--dump=nest").text)
    equal(tdslc("d.dump", "--dump=nest").out, read("d.dump"))
    c = fill((5, 5), 0, np.int32)
    save("c.npy", c)
    tdsl_run("t.tdsl", "C=c.npy", "-o", "C=r.npy", "-o", "T=t.npy")
    same(np.load("r.npy"), c - c.T)
    same(np.load("t.npy"), 7 * (c - c.T))


@test
def sums_are_factored_unless_forbidden_and_reported():
    write("t.tdsl", """kernel f(a: f64[6,7], b: f64[7,8], c: f64[6,7]) -> (R: f64[6,8]) {
    R[i,j] = a[i,k] * b[k,j];
    R[i,j] -= 2 * c[i,k] * b[k,j];
}
""")
    report = json.loads(tdslc("t.tdsl", "--report=json", "-o", "k.c").text)
    together = report["planned_together"][0]
    equal((together["multiply_adds"], together["one_by_one"]), (str(6 * 7 * 8), str(2 * 6 * 7 * 8)))
    equal(together["added_first"], ["(a - 2 * c) * b"])
    assert "added first: (a - 2 * c) * b" in tdslc("t.tdsl", "--report", "-o", "k.c").text
    plain = json.loads(tdslc("t.tdsl", "--no-factor", "--report=json", "-o", "k.c").text)
    equal((plain["planned_together"], plain["kernels"][0]["multiply_adds"]), ([], 2 * 6 * 7 * 8))
    a, b, c = fill((6, 7), 0), fill((7, 8), 1), fill((6, 7), 2)
    save("a.npy", a), save("b.npy", b), save("c.npy", c)
    tdsl_run("t.tdsl", "a=a.npy", "b=b.npy", "c=c.npy", "-o", "r.npy")
    same(np.load("r.npy"), (a - 2 * c) @ b)
    tdslc("t.tdsl", "--check-each", "-o", "k.c")


# ---- docs/tools.md

@test
def the_table_of_options_in_docs_is_what_help_prints():
    text = (ROOT / "docs/tools.md").read_text()
    for tool in ("tdslc", "tdsl-run", "tdslc fmt"):
        found = re.search(rf"<!-- {tool} --help -->\n```\n(.*?)```", text, re.S)
        assert found, tool
        equal(found[1], run(*tool.split(), "--help").text, f"docs/tools.md, {tool} --help")


if __name__ == "__main__":
    sys.exit(main())
