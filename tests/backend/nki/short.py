# SPDX-License-Identifier: Apache-2.0
"""Elements of 8 and 16 bits, and u32: programs (short.tdsl) and all casts, printed for each device, run by the emulator, and compared with the
interpreter, bit for bit but where a program divides or takes exponentials.

    short.py --bin DIR [--only NAME]
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../../../runtime"), os.path.join(HERE, "../../support")]
from nki_emulator.dtype import TYPES as DEVICE, cast, to_outside    # noqa: E402
from quick import share                                             # noqa: E402

DIMS = dict(n=130, k=300, m=70, e=64, b=4, v=300)
OWN = {"qmm": dict(k=1000), "qmm_long": dict(k=4096), "norms": dict(k=2100), "sums": dict(k=2100), "image": dict(n=9), "attention": dict(n=140, m=260), "codebook": dict(n=12, m=20), "codebook_bytes": dict(v=500), "histogram": dict(n=20)}
NEAR = {"attention": 2.0 ** -6, "labels": 1e-5}     # beside the interpreter, of the largest
BELOW = {"code": 256, "id": "v", "t": "k"}
TARGETS = ("--target=trn1", "--target=trn2", "--target=trn3", "--target=trn2 --lnc=2")
NUMPY = {"i8": "i1", "u8": "u1", "i16": "i2", "u16": "u2", "u32": "u4", "i32": "i4", "i64": "i8", "f32": "f4", "f16": "f2", "bf16": "V2",
         "f8e4m3": "V1", "f8e5m2": "V1", "bool": "?"}
NKI = {"bf16": "bfloat16", "f8e4m3": "float8_e4m3", "f8e5m2": "float8_e5m2"}
REFUSED = [
    ("kernel f(x: f8e4m3fn[n]) -> (y: f32[n]) { y[i] = f32(x[i]); }", "does not have f8e4m3fn (of 'x')"),
    ("kernel f(x: i32[n]) -> (y: u32[n]) { y[i] = u32(x[i]); }", "one here may be 4294967295"),
    ("kernel f(x: i16[n], w: i16[n]) -> (y: i8[n]) { y[i] = i8(x[i] * w[i]); }", "one here may be 1073741824"),
    ("kernel f(x: u16[n]) -> (y: i32) { y = sum[i](x[i] * x[i]); }", "one here may be"),
    ("kernel f(x: i8[n, 200000]) -> (y: f32[n]) { s: i32[n] = sum[k](x[n,k] * x[n,k]); y[n] = f32(s[n]); }", "one here may be 3276800000"),
]


def kernels():
    with open(os.path.join(HERE, "short.tdsl"), encoding="utf-8") as stream:
        for name, params, results in re.findall(r"^kernel (\w+)\((.*?)\)\s*(?:-> \((.*?)\))? \{", stream.read(), re.MULTILINE | re.DOTALL):
            yield name, *([p.split(": ") for p in re.split(r",\s+(?=\w+:)", list_of)] if list_of else [] for list_of in (params, results))


def stored(values, word):
    """f32 as elements of a float type."""
    return to_outside(cast(np.asarray(values, np.float32), DEVICE[NKI[word]]), DEVICE[NKI[word]]).view(NUMPY[word]) if word in NKI else np.asarray(values, NUMPY[word])


def array_of(rng, kernel, name, kind, dims):
    word, _, extents = kind.removeprefix("inout ").partition("[")
    shape = tuple(int(dims.get(d, d)) for d in extents.rstrip("]").split(", ")) if extents else ()
    if word[0] in "fb":
        halves = rng.integers(-8, 9, shape) / 2
        if kernel in ("quantise", "quantise_bytes", "narrow", "audio") and name != "s":
            halves = (rng.standard_normal(shape) * np.exp2(rng.integers(-12, 20, shape))).astype(np.float32)
            halves.flat[:9] = [np.nan, np.inf, -np.inf, 0.5, 248, 61440, -61439, -129.5, -0.0]
        if kernel == "dynamic" and name == "x":
            halves[:, 0] = 4                    # so that scales are powers of two
        return stored(np.exp2(rng.integers(-3, 4, shape)) if name in ("s", "g") else halves, word)
    info = np.iinfo(NUMPY[word])
    below = BELOW.get(name)
    lo, hi = (0, dims.get(below, below) - 1) if below else (max(info.min, -2 ** 22), min(info.max, 2 ** 22))
    a = rng.integers(lo, hi + 1, shape, dtype=np.int64).astype(NUMPY[word])
    if a.size > 2:
        a.flat[:2] = lo, hi
    if kernel in ("qmm_long", "norms", "sums") and a.ndim == 2:     # the largest sums
        a[0] = lo
    return a


def run(options, folder, text, kernel, arrays, outputs, target, dims):
    words = [os.path.join(options.bin, "tdsl-run"), text, f"--kernel={kernel}", *target.split(), "-Wno-define"]
    words += [w for d, n in dims.items() for w in ("-D", f"{d}={n}")]
    for name, array in arrays.items():
        np.save(os.path.join(folder, f"{name}.npy"), array)
        words.append(f"{name}={os.path.join(folder, name)}.npy")
    for name in outputs:
        words += ["-o", f"{name}={os.path.join(folder, name)}.out.npy"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    return done.stderr if done.returncode else [np.load(os.path.join(folder, f"{name}.out.npy")) for name in outputs]


def values_of(array):
    """Of bf16, whose bits NumPy has."""
    return (array.view("u2").astype(np.uint32) << 16).view(np.float32) if array.dtype == "V2" else array


def differ(a, b, near):
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{a.dtype}{list(a.shape)} and {b.dtype}{list(b.shape)}"
    if a.dtype.itemsize == 1:
        a, b = a.view("u1"), b.view("u1")       # NaN of 8 bits has one pattern here
    a, b = values_of(a), values_of(b)
    with np.errstate(invalid="ignore"):
        size = np.nanmax(np.where(np.isfinite(b), np.abs(b.astype(np.float64)), 0), initial=0) if near else 0
        wrong = ~((a == b) | ((a != a) & (b != b)) | (np.abs(a.astype(np.float64) - b.astype(np.float64)) <= near * size))
    return f"{wrong.sum()} of {a.size}: {a[wrong][:4]}, expected {b[wrong][:4]}" if wrong.any() else None


def check_program(options, kernel, params, results):
    dims = {**DIMS, **OWN.get(kernel, {})}
    rng = np.random.default_rng(len(kernel))
    arrays = {name: array_of(rng, kernel, name, kind, dims) for name, kind in params}
    outputs = [name for name, kind in params if kind.startswith("inout ")] + [name for name, _ in results]
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        text = os.path.join(HERE, "short.tdsl")
        wanted = run(options, folder, text, kernel, arrays, outputs, "--target=interp", dims)
        for target in TARGETS:
            got = run(options, folder, text, kernel, arrays, outputs, target, dims)
            words = [x for x in (wanted, got) if isinstance(x, str)] or [differ(a, b, NEAR.get(kernel, 0)) for a, b in zip(got, wanted)]
            wrong += [f"{kernel} {target}: {w}" for w in words if w]
    return wrong


def all_of(word):
    """All values of up to 16 bits; of others many, and edges. Whole numbers within 2^22, as devices ask for."""
    kind, rng = np.dtype(NUMPY[word]), np.random.default_rng(3)
    if word == "bool":
        return np.array([False, True])
    if kind.itemsize == 1:
        return np.arange(256, dtype="u1").view(kind)
    if kind.itemsize == 2 and word not in ("f16", "bf16"):
        return np.arange(65536).astype("u2").view(kind)
    edges = [0, 1, 127, 128, 129, 255, 256, 32767, 32768, 65535, 65536, 2 ** 22]
    if kind.kind in "iu":
        least = 0 if kind.kind == "u" else -2 ** 22
        return np.concatenate([rng.integers(least, 2 ** 22, 3000), edges, np.maximum(np.negative(edges), least)]).astype(kind)
    values = rng.standard_normal(4000) * np.exp2(rng.integers(-24, 15 if word == "f16" else 20, 4000))
    edges = np.array(edges[:-1], float) + np.array([[0], [0.5], [-0.5], [0.4375]])
    values = np.concatenate([values, np.rint(values), edges.ravel(), -edges.ravel(), [-0.0, np.nan, 240, 248, 247.5, 57344, 61440, 61439, 59392]])
    return stored(np.append(values, [] if word == "f16" else [1e6, -1e6]), word)


def check_casts(options, word):
    """A kernel with a result of each type that has what becomes of those values."""
    values = all_of(word)
    signed, real = word[0] == "i", word[0] == "f" or word == "bf16"
    to = [t for t in NUMPY if t != word and not (t == "u32" and (signed or real)) and not (t in ("i64", "i32") and real)]
    results = ", ".join(f"y_{t}: {t}[{values.size}]" for t in to)
    text = f"kernel f(x: {word}[{values.size}]) -> ({results}) {{ {' '.join(f'y_{t}[i] = {t}(x[i]);' for t in to)} }}\n"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "f.tdsl")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        got, wanted = (run(options, folder, path, "f", {"x": values}, [f"y_{t}" for t in to], target, {}) for target in ("--target=emulator", "--target=interp"))
    words = [x for x in (wanted, got) if isinstance(x, str)] or [w and f"as {t}: {w}" for t, w in zip(to, map(lambda a, b: differ(a, b, 0), got, wanted))]
    return [f"{word} {w}" for w in words if w]


def check_refused(options, text, words):
    done = subprocess.run([os.path.join(options.bin, "tdslc"), "-", "--target=trn2", "-D", "n=200", "--dump=legal"], input=text, capture_output=True, text=True, timeout=60)
    return [] if done.returncode == 1 and "E0501" in done.stderr and words in done.stderr else [f"{text}: {done.returncode} {done.stderr}"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--only")
    options = parser.parse_args()
    wrong, count = [], 0
    for name, params, results in share(kernels(), 1, gate=2):
        if options.only in (None, name):
            wrong += check_program(options, name, params, results)
            count += 1
    for word in NUMPY:
        if options.only in (None, word):
            wrong += check_casts(options, word)
            count += 1
    for text, words in REFUSED if options.only is None else []:
        wrong += check_refused(options, text, words)
    for w in wrong:
        print(f"FAILED {w}"[:600])
    print(f"{count} programs and types, {len(REFUSED)} that are refused, {len(wrong)} failures")
    return len(wrong) > 0 or count == 0


if __name__ == "__main__":
    sys.exit(main())
