#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The .npy files of tdsl-run: which are read, and as what; which are refused, and why; what is written.

    npy.py --tdslc PATH --tdsl-run PATH [--only TEXT]
"""
import itertools
import pathlib
import struct
import sys

from support import *
from support import np

LANGUAGE = {"f64": "f8", "f32": "f4", "f16": "f2", "i32": "i4", "i64": "i8", "bool": "?", "c64": "c8", "c128": "c16",
            "i8": "i1", "u8": "u1", "i16": "i2", "u16": "u2", "u32": "u4"}


def copy(name, dtype=None, rank=2):
    """What tdsl-run makes of the file."""
    labels = "ijklm"[:rank]
    cast = [] if dtype is None else ["--dtype=" + dtype]
    tdsl_run("-e", f"{labels}->{labels}", *cast, "--target=interp", "-o", "r.npy", name)
    return np.load("r.npy")


def refused(name, *parts, dtype=None):
    cast = [] if dtype is None else ["--dtype=" + dtype]
    text = tdsl_run("-e", "i->i", *cast, "--target=interp", "-o", "no.npy", name, status=1).messages
    for part in (name, *parts):
        assert part in text, f"{part!r} is not in {text!r}"
    assert not pathlib.Path("no.npy").exists()


def bf16(values):
    """Bits of floats that bf16 holds."""
    return (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def raw(name, descr, shape, data, order=False, version=(1, 0)):
    head = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    length = struct.pack("<H" if version == (1, 0) else "<I", len(head))
    pathlib.Path(name).write_bytes(b"\x93NUMPY" + bytes(version) + length + head + data)


@test
def every_order_of_bytes_and_of_dimensions_is_read():
    for name, kind in LANGUAGE.items():
        for byte, order, version in share(itertools.product("<>", "CF", ((1, 0), (2, 0), (3, 0))), 5, len(kind) + ord(kind[-1])):
            want = fill((2, 3, 4), 1).astype(kind)
            if kind[0] == "c":
                want += 1j * fill((2, 3, 4), 2).astype(kind)
            save("a.npy", np.array(want, np.dtype(kind).newbyteorder(byte), order=order), version)
            got = copy("a.npy", rank=3)
            same(got, want)


@test
def scalars_and_empty_arrays_of_every_type_are_read():
    for kind in [*LANGUAGE.values(), ">f8", ">c16", ">i4"]:
        for shape in ((), (0,), (0, 3), (3, 0), (1, 1)):
            want = np.ones(shape, kind)
            save("a.npy", want)
            same(copy("a.npy", rank=len(shape)), want.astype(np.dtype(kind).newbyteorder("=")))


@test
def bf16_is_what_ml_dtypes_saves():
    """ml_dtypes saves an array of its bfloat16 with the descr '<V2'; NumPy, which loads it as two bytes without a meaning, with '|V2'."""
    values = fill((2, 3), 0, np.float32)
    for descr in ("'<V2'", "'|V2'"):
        raw("a.npy", descr, (2, 3), bf16(values).tobytes())
        tdsl_run("-e", "ij->ij", "--target=interp", "-o", "r.npy", "a.npy")
        same(load("r.npy"), bf16(values))
        assert b"'<V2'" in read("r.npy")
        same(copy("r.npy", "f32"), values)
    raw("a.npy", "'>V2'", (2, 3), bf16(values).byteswap().tobytes())
    same(copy("a.npy", "f32"), values)
    raw("f.npy", "'<V2'", (2, 3), bf16(values).tobytes("F"), True)
    same(copy("f.npy", "f32"), values)
    raw("s.npy", "'<V2'", (), bf16(3.0).tobytes())
    same(copy("s.npy", "f64", 0), np.array(3.0))
    raw("e.npy", "'<V2'", (0, 2), b"")
    same(copy("e.npy", "f64"), np.zeros((0, 2)))
    for descr in ("'<V4'", "'|V3'"):
        raw("a.npy", descr, (0,), b"")
        refused("a.npy", descr)


@test
def a_bf16_kernel_reads_its_results_again():
    write("k.tdsl", "kernel k(x: bf16[n]) -> (R: bf16[n]) { R[i] = 2 * x[i]; }\n")
    for target in ("interp", "c"):
        tdsl_run("k.tdsl", "--target=" + target, "-D", "n=5", "x=fill", "-o", "r.npy")
        tdsl_run("k.tdsl", "--target=" + target, "x=r.npy", "-o", "r.npy")
        same(copy("r.npy", "f32", 1), 4 * fill((5,), 0, np.float32))


@test
def other_integers_are_read_with_a_type_that_holds_them():
    for kind in ("i1", "u1", "i2", "u2", "u4", "u8"):
        info = np.iinfo(kind)
        for byte, (name, wanted) in share(itertools.product("<>", LANGUAGE.items()), 4, info.bits // 8 + info.min):
            for value in (0, 1, 5, int(info.min), int(info.max), int(info.max) // 2 + 1):
                save("a.npy", np.array([1, value], np.dtype(kind).newbyteorder(byte)))
                fits = value in (0, 1) if wanted == "?" else wanted[0] not in "iu" or np.iinfo(wanted).min <= value <= np.iinfo(wanted).max
                if fits:
                    with np.errstate(all="ignore"):
                        same(copy("a.npy", name, 1), np.array([1, value], kind).astype(wanted))
                else:
                    refused("a.npy", f"element [1] is {value}", dtype=name)
    save("a.npy", np.zeros((3,), "u8"))
    refused("a.npy", "u8", "--dtype=T")
    save("a.npy", np.array([[1, 2, 3], [4, 5, 300]], order="F", dtype="u2"))
    same(copy("a.npy", "i32"), np.array([[1, 2, 3], [4, 5, 300]], "i4"))
    save("big.npy", np.array([2 ** 63 + 2 ** 39, 2 ** 63 + 2 ** 39 + 1, 2 ** 64 - 1, 2 ** 63 + 3 * 2 ** 39], "u8"))
    same(copy("big.npy", "f32", 1), np.array([2.0 ** 63, 2.0 ** 63 + 2 ** 40, 2.0 ** 64, 2.0 ** 63 + 2 ** 41], "f4"))


@test
def a_value_that_does_not_fit_is_refused():
    for value, kind, dtype, why in ((2 ** 31, "i8", "i32", "2147483647"), (-2 ** 31 - 1, "i8", "i32", "-2147483648"),
                                    (1.5, "f8", "i32", "whole"), (1e300, "f8", "i64", "i64 is from"),
                                    (2.0 ** 63, "f4", "i64", "i64 is from"), (np.nan, "f8", "i64", "nan"), (-np.inf, "f2", "i32", "-inf"),
                                    (2, "i4", "bool", "0 or 1"), (0.5, "f4", "bool", "whole"), (np.nan, "f4", "bool", "0 or 1")):
        save("a.npy", np.array([1, value], kind))
        refused("a.npy", "element [1]", why, dtype=dtype)
    for value, kind, dtype in ((-2 ** 31, "i8", "i32"), (-2.0 ** 63, "f8", "i64"), (1, "f4", "bool"), (True, "?", "f32"),
                               (1e300, "f8", "f32"), (np.nan, "f8", "f16"), (2 ** 62 + 1, "i8", "f32"), (7, "i4", "c64")):
        save("a.npy", np.array([1, value], kind))
        with np.errstate(all="ignore"):
            same(copy("a.npy", dtype, 1)[1:].view("u1"), np.array([value], kind).astype(LANGUAGE[dtype]).view("u1"))
    save("m.npy", np.array([[1, 2], [3, 2 ** 40]]))
    text = tdsl_run("-e", "ij->", "--dtype=i32", "m.npy", status=1).messages
    assert "element [1,1] is 1099511627776" in text, text


@test
def complex_numbers_become_no_real_ones():
    save("z.npy", np.array([1 + 0j]))
    for dtype in ("f64", "f32", "f16", "bf16", "i32", "i64", "bool"):
        refused("z.npy", "c128", "re, im or abs", dtype=dtype)
    same(copy("z.npy", "c64", 1), np.array([1], "c8"))


@test
def headers_of_python_2_are_read():
    data = fill((2, 3), 0)
    raw("a.npy", "'<f8'", "(2L, 3L)", data.tobytes())
    same(copy("a.npy"), data)
    raw("a.npy", "'<f8'", "(6L,)", data.tobytes())
    same(copy("a.npy", rank=1), data.reshape(6))
    for bad in ("(L,)", "(6LL,)", "(6l,)", "(6 L,)", "(6J,)"):
        raw("a.npy", "'<f8'", bad, data.tobytes())
        refused("a.npy", "malformed")


@test
def other_elements_are_refused_by_their_type():
    for array in (np.zeros(3, [("a", "f4")]), np.zeros(3, [("a", "f4", (2, 2)), ("b'(", [("c", "i8")])]), np.zeros(0, [("a", "f4")])):
        save("a.npy", array)
        refused("a.npy", 'structured type [["a", "<f4"', "one field")
    for kind in ("U3", "S3", "M8[s]", "m8[ns]", "g"):
        save("a.npy", np.zeros(3, kind))
        refused("a.npy", "elements of type '", np.dtype(kind).str)
    for descr in ("'|f8'", "'=f8'", "'f8'", "''", "'<'", "'<f3'", "'<c4'"):
        raw("a.npy", descr, (0,), b"")
        refused("a.npy", "elements of type " + descr)
    for descr in ("[", "[(", "[('a', '<f4')", "[('a)]", "(]", "None", "[" * 9000):
        raw("a.npy", descr, (0,), b"")
        refused("a.npy")
    raw("a.npy", "[('" + "x" * 5000 + "', '<f4')]", (0,), b"")
    refused("a.npy", "xxx...")


@test
def a_truncated_file_says_what_is_missing():
    for version, kind in itertools.product(((1, 0), (2, 0), (3, 0)), ("<f8", ">f8", "u1")):
        save("whole.npy", np.ones(4, kind), version)
        whole = read("whole.npy")
        for n in share((n for n in range(len(whole) - 1) if n % 7 == 0 or n < 14 or n > len(whole) - 9), 5, len(whole)):
            pathlib.Path("a.npy").write_bytes(whole[:n])
            refused("a.npy", dtype="f64")
        pathlib.Path("a.npy").write_bytes(whole[:-1])
        refused("a.npy", f"the shape needs {4 * np.dtype(kind).itemsize} bytes of data, the file has {4 * np.dtype(kind).itemsize - 1}")


@test
def nan_is_printed_without_a_sign():
    save("a.npy", np.array([-np.nan, np.nan]))
    save("z.npy", np.array([complex(-np.nan, -np.nan)]))
    for name, dtypes in (("a.npy", ("f64", "f32", "f16", "bf16", "c64")), ("z.npy", ("c64", "c128"))):
        for dtype, more in itertools.product(dtypes, ([], ["--checksum"])):
            for labels in ("i->i", "i->"):
                text = tdsl_run("-e", labels, "--dtype=" + dtype, "--target=interp", *more, name).text
                assert "nan" in text and "-nan" not in text, text


@test
def what_is_given_twice_is_refused():
    write("k.tdsl", "kernel k(x: f64[n, m], s: f64) -> (R: f64[n, m]) { R[i,j] = s * x[i,j]; }\n")
    dims = ["-D", "n=2", "-Dm=3"]
    tdsl_run("k.tdsl", *dims, "x=ones", "s=1")
    for more in (["s=1"], ["s=2"], ["x=fill"]):
        for values in (["x=ones", "s=1", *more], [*more, "x=ones", "s=1"]):
            text = tdsl_run("k.tdsl", *dims, *values, status=1).messages
            assert "given twice" in text, text
    for tool, more in ((tdsl_run, ["x=ones", "s=1"]), (tdslc, ["-o", "k.c"]), (tdslc, ["--dump=graph"]), (tdslc, ["--report", "-o", "k.c"])):
        for again in ("n=3", "n=2", "m=3"):
            text = tool("k.tdsl", *dims, "-D", again, *more, status=1).messages
            assert f"'{again[0]}' is given twice" in text, text
    for more in ([], ["--emit=path"]):
        text = tdslc("-e", "i->i", "--shape=2", "-Dn=1", "-Dn=2", *more, "-o", "k.c", status=1).messages
        assert "'n' is given twice" in text, text
    assert not pathlib.Path("k.c").exists()


sys.exit(main())
