#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Long sums stay within the bound of docs/language.md ("Reductions"): in C, for each way a sum is compiled, and by the interpreter.

usage: sums.py --tdslc TDSLC --tdsl-run TDSL-RUN [--only TEST]

A sum of numbers with exact value S is off by at most d * u / (1 - d * u) times the sum of their absolute values, plus one rounding of
the result; d is how many additions a number passes through. The data are chosen to err: all equal and not exact, so that each
rounding of a running sum goes the same way for long. Two promises about single operations are here too: what scalars of 0 keep out,
and which flags of the C compiler leave the bits alone."""
from fractions import Fraction
from math import prod

from support import load, main, np, same, save, tdsl_run, test, write

UNIT = {"f32": 2.0 ** -24, "f64": 2.0 ** -53, "c64": 2.0 ** -24, "c128": 2.0 ** -53, "f16": 2.0 ** -24, "bf16": 2.0 ** -24}
RESULT = {**UNIT, "f16": 2.0 ** -11, "bf16": 2.0 ** -8}  # of the type that is stored
DTYPE = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128, "f16": np.float16}
LENGTHS = (1, 31, 129, 1000, 4097, 32768, 100003, 1 << 20, 3000017)


def additions(n, further=()):
    """d for one summed index of n positions, and for further ones."""
    return 256 + n / 2 ** 15 + sum(256 + m / 2 ** 8 for m in further)


def additions_to_one(n, further=()):
    """The same for all of a tensor, added up to a single number."""
    return min(additions(n, further), 640)


def products(k):
    """d for a product of matrices."""
    return 768 + k / 2 ** 16


def exact_sum(numbers):
    """As whole numbers of a common unit: floats are exact that way."""
    total = Fraction(0)
    values, counts = np.unique(numbers, return_counts=True)
    for v, n in zip(values.tolist(), counts.tolist()):
        total += Fraction(v) * n
    return total


def within(got, exact, size, d, kind, what):
    """One real number, the exact value as a fraction, the sum of absolute values."""
    d *= UNIT[kind]
    bound = float(size) * d / (1 - d)
    bound += (abs(float(exact)) + bound) * RESULT[kind]
    error = abs(float(Fraction(float(got)) - exact))
    assert error <= bound, f"{what}: {got} is off by {error:.3g}, the bound is {bound:.3g}"


def compute(text, kind, arrays, target="c", defines=()):
    write("k.tdsl", text)
    values = []
    for name, array in arrays.items():
        save(f"{name}.npy", array)
        values.append(f"{name}={name}.npy")
    casts = [f"--dtype={kind}"] if kind == "bf16" else []
    tdsl_run("k.tdsl", "-w", f"--target={target}", "--cflags=-O1", *casts, *(f"-D{d}" for d in defines), *values, "-o", "R=R.npy")
    result = load("R.npy")
    if kind == "bf16":
        return (np.atleast_1d(result).astype(np.uint32) << 16).view(np.float32).reshape(result.shape)
    return result


def held(value, kind):
    """A number as the type holds it."""
    if kind == "bf16":
        bits = np.array([value], np.float32).view(np.uint32)
        return ((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000).astype(np.uint32).view(np.float32)[0]
    return DTYPE[kind](value)


def tenths(n, kind):
    if kind[0] == "c":
        return np.full(n, held(0.1 - 0.7j, kind))
    return np.full(n, held(0.1, kind))


def check_total(kind, target, lengths, defines=False):
    text = f"kernel k(x: {kind}[n]) -> (R: {kind}) {{ R = sum[i](x[i]); }}"
    for n in lengths:
        x = tenths(n, kind)
        got = compute(text, kind, {"x": x}, target, [f"n={n}"] if defines else [])
        for part in (np.real, np.imag) if kind[0] == "c" else (np.real,):
            numbers = part(x).astype(np.float64)
            d = 1 if target == "interp" and UNIT[kind] > 1e-12 else n if target == "interp" else additions_to_one(n)
            within(part(got), exact_sum(numbers), exact_sum(abs(numbers)), d, kind, f"{target}: {n} of {kind}")


@test
def sums_of_f32_are_within_the_bound():
    check_total("f32", "c", LENGTHS)
    check_total("f32", "c", LENGTHS[-2:], defines=True)


@test
def sums_of_f64_are_within_the_bound():
    check_total("f64", "c", LENGTHS)


@test
def sums_of_complex_numbers_are_within_the_bound():
    check_total("c64", "c", LENGTHS)
    check_total("c128", "c", LENGTHS[-1:])


@test
def sums_of_16_bit_numbers_run_in_f32_within_the_bound():
    check_total("bf16", "c", LENGTHS)
    check_total("f16", "c", LENGTHS[:-2])


@test
def the_interpreter_keeps_its_bound():
    for kind in ("f32", "f64", "c64", "bf16"):
        check_total(kind, "interp", (1000, 100003))


@test
def ten_million_tenths_are_a_million():
    text = "kernel k(x: f32[n]) -> (R: f32) { R = sum[i](x[i]); }"
    got = compute(text, "f32", {"x": tenths(10 ** 7, "f32")})
    assert abs(float(got) - 1e6) < 2, got


SHAPES = [  # what R is, its index and extent, the shape of x, what is summed of it
    ("sum[i,j](x[i,j])", "", "", (3, 1000003), (0, 1)),
    ("sum[i,j](x[i,j])", "", "", (100003, 30), (0, 1)),
    ("sum[i,j](x[i,j])", "", "", (1009, 1013), (0, 1)),
    ("sum[i,j,k](x[i,j,k])", "", "", (101, 103, 107), (0, 1, 2)),
    ("sum[i](x[i,a])", "[a]", "[m]", (1000003, 3), (0,)),
    ("sum[i](x[i,a])", "[a]", "[m]", (20011, 67), (0,)),
    ("sum[i](x[i,a])", "[a]", "[m]", (20011, 300), (0,)),
    ("sum[i,j](x[i,j,a])", "[a]", "[l]", (33, 1009, 130), (0, 1)),
    ("sum[i](x[a,i])", "[a]", "[n]", (3, 1000003), (1,)),
    ("sum[i,j](x[i,a,j])", "[a]", "[m]", (1009, 3, 331), (0, 2)),
]


@test
def sums_over_several_axes_and_other_than_the_last_are_within_the_bound():
    for kind in ("f32", "c64"):
        for value, index, extent, shape, axes in SHAPES:
            rank = ",".join("nml"[:len(shape)])
            text = f"kernel k(x: {kind}[{rank}]) -> (R: {kind}{extent}) {{ R{index} = {value}; }}"
            x = tenths(prod(shape), kind).reshape(shape)
            got = np.atleast_1d(compute(text, kind, {"x": x}))
            summed = sorted(shape[a] for a in axes)
            for part in (np.real, np.imag) if kind == "c64" else (np.real,):
                exact = Fraction(float(part(x.flat[0]))) * prod(summed)
                for r in part(got).tolist():
                    d = (additions if extent else additions_to_one)(summed[-1], summed[:-1])
                    within(r, exact, abs(exact), d, kind, f"{text} {shape}")


FUSED = [  # several values of which the last is R; what one element of x adds to R, how many there are
    ("R = sum[i](2 * x[i] + 1);", "", lambda x: 2 * x + 1),
    ("T[i] = 2 * x[i]; U[i] = T[i] + 1; R = sum[i](T[i] * U[i]);", "", lambda x: 2 * x * (2 * x + 1)),
    ("T[i] = 2 * x[i]; R = sum[i](T[i]); S[i] = T[i];", "S: {t}[n]", lambda x: 2 * x),
    ("R = sum[i](select(x[i] > 0, x[i], -x[i]));", "", abs),
    ("R = sum[i](sqrt(x[i] * x[i]));", "", abs),
]


@test
def sums_of_expressions_and_in_fused_kernels_are_within_the_bound():
    for kind in ("f32", "f64"):
        for body, more, value in FUSED:
            for n in (1000, 1000003):
                text = f"kernel k(x: {kind}[n]) -> (R: {kind}{', ' + more.format(t=kind) if more else ''}) {{ {body} }}"
                x = tenths(n, kind)
                exact = value(Fraction(float(x[0]))) * n
                got = compute(text, kind, {"x": x})
                within(got, exact, abs(exact), additions(n) + 5, kind, f"{text} {n}")


def check_product(text, kind, shapes, k, d, defines=()):
    arrays = {name: tenths(prod(shape), kind).reshape(shape) for name, shape in shapes.items()}
    got = compute(text, kind, arrays, defines=defines)
    a, b = (complex(array.flat[0]) for array in arrays.values())
    parts = {"re": (np.real, Fraction(a.real) * Fraction(b.real) - Fraction(a.imag) * Fraction(b.imag)),
             "im": (np.imag, Fraction(a.real) * Fraction(b.imag) + Fraction(a.imag) * Fraction(b.real))}
    size = Fraction(abs(a.real) + abs(a.imag)) * Fraction(abs(b.real) + abs(b.imag)) * k
    for part, exact in [parts["re"]] + [parts["im"]] * (kind[0] == "c"):
        for r in np.unique(part(got)).tolist():
            within(r, exact * k, size, d + 3, kind, f"{text} {shapes} {defines}")


@test
def contractions_over_a_long_index_are_within_the_bound():
    for kind in ("f32", "f64", "c64", "bf16"):
        for k in (1000, 100003, 1000003):
            vectors = f"kernel k(A: {kind}[k], B: {kind}[k]) -> (R: {kind}) {{ R = A[p] * B[p]; }}"
            check_product(vectors, kind, {"A": (k,), "B": (k,)}, k, additions(k))
            rows = f"kernel k(A: {kind}[m,k], B: {kind}[k]) -> (R: {kind}[m]) {{ R[i] = A[i,p] * B[p]; }}"
            check_product(rows, kind, {"A": (2, k), "B": (k,)}, k, additions(k))
            columns = f"kernel k(A: {kind}[k,m], B: {kind}[k]) -> (R: {kind}[m]) {{ R[i] = A[p,i] * B[p]; }}"
            check_product(columns, kind, {"A": (k, 2), "B": (k,)}, k, additions(k))


@test
def products_of_matrices_over_a_long_index_are_within_the_bound():
    for kind in ("f32", "c64", "f64", "bf16"):
        for m, n, k in ((3, 5, 1000003), (17, 33, 100003), (2, 40, 262147)):
            text = f"kernel k(A: {kind}[m,k], B: {kind}[k,n]) -> (R: {kind}[m,n]) {{ R[i,j] = A[i,p] * B[p,j]; }}"
            check_product(text, kind, {"A": (m, k), "B": (k, n)}, k, products(k), [f"m={m}", f"n={n}", f"k={k}"])
    text = "dim k ~ 1000000; kernel k(A: f32[m,k], B: f32[k,n]) -> (R: f32[m,n]) { R[i,j] = A[i,p] * B[p,j]; }"
    check_product(text, "f32", {"A": (3, 1000003), "B": (1000003, 5)}, 1000003, products(1000003))
    text = text.replace(" ~ 1000000", "")  # longer than planned for: blocks of 256 one after the other
    check_product(text, "f32", {"A": (3, 1000003), "B": (1000003, 5)}, 1000003, 256 + 1000003 / 256)


@test
def infinities_and_nans_come_through_blocks():
    text = "kernel k(x: f32[n]) -> (R: f32) { R = sum[i](x[i]); }"
    for at in (0, 5000, 99999):
        for value in (np.inf, -np.inf, np.nan):
            x = np.ones(100000, np.float32)
            x[at] = value
            got = compute(text, "f32", {"x": x})
            assert np.array_equal(got, np.float32(value), equal_nan=True), (at, value, got)


@test
def whole_numbers_are_added_exactly():
    for kind in ("f32", "i64"):
        for shape in ((1 << 20,), (1000003,)):
            text = f"kernel k(x: {kind}[n]) -> (R: {kind}) {{ R = sum[i](x[i]); }}"
            x = (np.arange(shape[0]) % 11 - 4).astype(np.float32 if kind == "f32" else np.int64)
            assert compute(text, kind, {"x": x}) == x.astype(np.int64).sum(), (kind, shape)


@test
def a_scalar_of_0_keeps_out_whatever_the_older_value_is():
    """It came in, or the kernel computed it before: docs/language.md, Assignment."""
    write("t.tdsl", "kernel older(C: inout f32[128], D: inout f32[128], X: f32[128], s: f32) -> (R: f32[128]) {\n"
                    "    C[i] += X[i];\n    C[i] = s * C[i] + 1;\n    D[i] = 2 * s * D[i] + 3;\n"
                    "    R[i] = X[i];\n}\n")
    write("z.tdsl", "kernel z(C: inout f64[n], s: f64) {\n    C[i] -= C[i] / s;\n    C[i] = s * C[i] + 1;\n}\n")
    x = np.ones(128, np.float32)
    x[::3], x[1::3] = np.nan, np.inf
    save("x.npy", x), save("z.npy", np.array([0.0, 1.0, -2.0]))
    for target in ("interp", "c", "emulator"):
        for s, c, d in ((0, np.full(128, 1), np.full(128, 3)), (2, 4 * x + 1, 4 * x + 3)):
            tdsl_run("t.tdsl", f"--target={target}", "C=x.npy", "D=x.npy", "X=x.npy", f"s={s}", "-o", "C=c.npy", "-o", "D=d.npy")
            for name, want in (("c.npy", c), ("d.npy", d)):
                assert np.array_equal(np.load(name), want.astype(np.float32), equal_nan=True), (target, s, name, np.load(name))
        if target != "emulator":
            tdsl_run("z.tdsl", f"--target={target}", "C=z.npy", "s=0", "-o", "C=r.npy")
            same(np.load("r.npy"), np.ones(3))


VARIANTS = {  # docs/using.md, "What decides the bits"
    "as this machine takes it": [],
    "16-byte vectors": ["-DTDSL_ISA=vectors"],
    "16-byte vectors, more registers": ["-DTDSL_ISA=neon"],
    "32-byte vectors anywhere": ["-DTDSL_ISA=avx2", "-Dtarget(x)=", "-DTDSL_HOLD(x)=(void)(x)", "-Wno-psabi"],
    "no vectors": ["-DTDSL_ISA=plain"],
    "64-byte vectors anywhere": ["-Dtarget(x)=", "-DTDSL_HOLD(x)=(void)(x)", "-D__builtin_cpu_supports(x)=1", "-Wno-psabi"],
    "not optimized": ["-O0"],
}


@test
def without_contraction_every_variant_gives_the_same_bits():
    rng = np.random.default_rng(3)
    text = "kernel k(A: {t}[m,k], B: {t}[k,n]) -> (R: {t}[m,n], S: {t}, T: {t}[k]) {{\n" \
           "R[i,j] = A[i,p] * B[p,j]; S = sum[i,j](R[i,j]); T[p] = sum[i](A[i,p]); }}"
    for kind in ("f32", "f64"):
        write("k.tdsl", text.format(t=kind))
        save("A.npy", rng.standard_normal((37, 1031)).astype(DTYPE[kind]))
        save("B.npy", rng.standard_normal((1031, 45)).astype(DTYPE[kind]))
        results = {}
        for what, flags in VARIANTS.items():
            tdsl_run("k.tdsl", "--cflags=" + " ".join(["-O2", "-ffp-contract=off", "-DTDSL_NO_FMA", *flags]), "A=A.npy", "B=B.npy",
                     "-o", "R=R.npy", "-o", "S=S.npy", "-o", "T=T.npy")
            results[what] = [np.load(f"{name}.npy").tobytes() for name in "RST"]
        first = next(iter(results.values()))
        assert all(r == first for r in results.values()), [what for what, r in results.items() if r != first]


if __name__ == "__main__":
    raise SystemExit(main())
