#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Values become f16 and bf16 in one rounding, to nearest even, whatever they come from: casts in kernels as C and by the
interpreter, and the elements of files that a kernel takes as another type.

usage: rounding.py --tdslc TDSLC --tdsl-run TDSL-RUN [--only TEST]

The exhaustive part knows its answers by construction: the middle of each pair of neighbours in the 16-bit type goes to the even one,
what lies next to the middle goes to that side. The rest is compared with a rounding in whole numbers."""
import random
from fractions import Fraction

from support import equal, load, main, np, save, tdsl_run, test, write

KINDS = {"f16": (10, 5), "bf16": (7, 8)}  # digits behind the point, bits of exponent
SOURCES = {"f64": np.float64, "f32": np.float32, "i64": np.int64, "i32": np.int32}
KERNELS = "".join(f"kernel of_{t}(x: {t}[n]) -> (h: f16[n], b: bf16[n]) {{ h[i] = f16(x[i]); b[i] = bf16(x[i]); }}\n"
                  for t in (*SOURCES, "f16", "bf16", "bool"))


def infinity(kind):
    digits, width = KINDS[kind]
    return ((1 << width) - 1) << digits


def magnitude(kind, pattern):
    """What the pattern stands for; infinity as the number that would come next."""
    digits, width = KINDS[kind]
    exponent, low = pattern >> digits, pattern & ((1 << digits) - 1)
    unit = Fraction(2) ** (max(exponent, 1) - ((1 << (width - 1)) - 1) - digits)
    return (low + ((1 << digits) if exponent else 0)) * unit


def rounded(kind, value):
    """The pattern of an exact number, in whole numbers: no type of the machine's is used."""
    digits, width = KINDS[kind]
    sign, v, least = int(value < 0) << 15, abs(Fraction(value)), 2 - (1 << (width - 1))
    if v == 0:
        return sign
    exponent = v.numerator.bit_length() - v.denominator.bit_length()
    exponent -= v < Fraction(2) ** exponent
    unit = Fraction(2) ** (max(exponent, least) - digits)
    count, rest = divmod(v, unit)
    count += rest * 2 > unit or (rest * 2 == unit and count % 2 == 1)
    pattern = int(count) if exponent < least else ((exponent - least) << digits) + int(count)
    return sign | min(pattern, infinity(kind))


def exactly(number, dtype):
    """The number in a type, or None."""
    if np.issubdtype(dtype, np.integer):
        whole = number.denominator == 1 and np.iinfo(dtype).min < number <= np.iinfo(dtype).max
        return int(number) if whole else None
    held = dtype(float(number))
    return held if Fraction(float(held)) == number else None


def beside(middle, dtype):
    if np.issubdtype(dtype, np.integer):
        return [middle - 1, middle + 1]
    return [np.nextafter(middle, dtype(0)), np.nextafter(middle, dtype(np.inf))]


def middles(kind, source):
    """Values and patterns: each middle of neighbours, and its own neighbours in the source type, with both signs."""
    dtype, values, patterns = SOURCES[source], [], []
    for low in range(infinity(kind)):
        middle = exactly((magnitude(kind, low) + magnitude(kind, low + 1)) / 2, dtype)
        if middle is not None:
            below, above = beside(middle, dtype)
            values += [below, middle, above]
            patterns += [low, low + low % 2, low + 1]
    minus = [-v for v in values]
    return np.array(values + minus, dtype), np.array(patterns + [p | 0x8000 * (v != 0) for p, v in zip(patterns, minus)])


def others(source):
    """Values of all sizes, some a few units from short ones."""
    rng = random.Random(source)
    dtype = SOURCES[source]
    if np.issubdtype(dtype, np.integer):
        top = np.iinfo(dtype).max
        some = [rng.randrange(-top, top) >> rng.randrange(60 if dtype == np.int64 else 30) for _ in range(4000)]
        some += [max(-top, min(top, (rng.randrange(512) << rng.randrange(top.bit_length() - 9)) + rng.randrange(-3, 4)))
                 for _ in range(4000)]
        return np.array(some + [top, -top, -top - 1, 16842753, 65519, 65520, 65521], dtype)
    bits = {np.float64: (64, np.uint64, 52), np.float32: (32, np.uint32, 23)}[dtype]
    some = [rng.getrandbits(bits[0]) for _ in range(2000)]
    wide = [dtype(rng.uniform(-2, 2)) * dtype(2.0) ** dtype(rng.randrange(-148, 128)) for _ in range(6000)]
    values = np.concatenate([np.array(some, bits[1]).view(dtype), np.array(wide, dtype)])
    return values[np.isfinite(values)]


def run_kernel(source, values, target):
    write("casts.tdsl", KERNELS)
    save("x.npy", values)
    tdsl_run("casts.tdsl", f"--kernel=of_{source}", f"--dtype={source}", f"--target={target}", "x=x.npy", "-o", "h=h.npy", "-o", "b=b.npy")
    return {"f16": np.load("h.npy").view(np.uint16), "bf16": load("b.npy")}


def run_file(kind, values):
    """The file's elements become the operand's type when they are read."""
    save("x.npy", values)
    tdsl_run("-e", "i->i", f"--dtype={kind}", "--target=interp", "x.npy", "-o", "r.npy")
    return np.load("r.npy").view(np.uint16)


def compare(got, want, values, what):
    wrong = np.flatnonzero(got != want)
    assert wrong.size == 0, f"{what}: {wrong.size} of {want.size} wrong, {values[wrong[0]]!r} becomes " \
                            f"{int(got[wrong[0]]):#06x}, not {int(want[wrong[0]]):#06x}"


def check_source(source):
    for kind in KINDS:
        values, want = middles(kind, source)
        assert len(values) > (180000 if source[0] == "f" else 10000 if kind == "bf16" else 2000), len(values)
        assert all(rounded(kind, Fraction(v.item())) == p for v, p in list(zip(values, want))[::97])
        for target in ("interp", "c"):
            compare(run_kernel(source, values, target)[kind], want, values, f"{target}: {kind} of {source}")
        compare(run_file(kind, values), want, values, f"file: {kind} of {source}")
    values = others(source)
    values = values[values != 0]
    want = {kind: np.array([rounded(kind, Fraction(v.item())) for v in values]) for kind in KINDS}
    for target in ("c", "interp"):
        got = run_kernel(source, values, target)
        for kind in KINDS:
            compare(got[kind], want[kind], values, f"{target}: {kind} of {source}")


@test
def casts_of_f64_round_once():
    check_source("f64")


@test
def casts_of_f32_round_once():
    check_source("f32")


@test
def casts_of_i64_round_once():
    check_source("i64")


@test
def casts_of_i32_round_once():
    check_source("i32")


def check_kind(target, source, dtype):
    """Every value of one 16-bit type in the other."""
    patterns = np.arange(1 << 16)
    patterns = patterns[(patterns & 0x7fff) <= infinity(source)]
    signs = np.where(patterns & 0x8000, -1.0, 1.0)
    values = np.array([float(magnitude(source, p & 0x7fff)) if p & 0x7fff != infinity(source) else np.inf
                       for p in patterns.tolist()]) * signs
    got = run_kernel(source, values.astype(dtype), target)
    for kind in KINDS:
        want = [p if kind == source else
                (p & 0x8000) | (infinity(kind) if np.isinf(v) else rounded(kind, Fraction(abs(v))))
                for p, v in zip(patterns.tolist(), values.tolist())]
        compare(got[kind], np.array(want), values, f"{target}: {kind} of {source}")


@test
def casts_between_the_16_bit_types_round_once():
    for target in ("c", "interp"):
        check_kind(target, "f16", np.float16)
        check_kind(target, "bf16", np.float32)


@test
def infinities_nans_zeros_and_truth_are_kept():
    inf = {"f16": 0x7c00, "bf16": 0x7f80}
    for target in ("c", "interp"):
        for source in ("f64", "f32"):
            got = run_kernel(source, np.array([np.inf, -np.inf, 0.0, -0.0], SOURCES[source]), target)
            for kind in KINDS:
                equal(got[kind].tolist(), [inf[kind], inf[kind] | 0x8000, 0, 0x8000], f"{target} {kind} of {source}")
            got = run_kernel(source, np.array([np.nan, -np.nan], SOURCES[source]), target)
            for kind in KINDS:
                assert all((got[kind] & 0x7fff) > inf[kind]), f"{target} {kind} of NaN of {source}"
        got = run_kernel("bool", np.array([False, True]), target)
        equal([got["f16"].tolist(), got["bf16"].tolist()], [[0, 0x3c00], [0, 0x3f80]], target)


if __name__ == "__main__":
    raise SystemExit(main())
