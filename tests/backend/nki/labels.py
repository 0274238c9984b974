# SPDX-License-Identifier: Apache-2.0
"""Programs with labels, lengths, masks, keys and positions (labels.tdsl): printed for each device, run by the emulator, and compared with
the interpreter; whole numbers exactly.

    labels.py --bin DIR [--only NAME] [--all]
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from arrays import bfloat16_bits    # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
DIMS = dict(v=150, e=48, b=4, s=30, n=140, c=20, h=2, d=32, t=130, g=2, r=4, pages=20, u=16, m=9, x=8, f=40, z=260, k=8, o=10, q=20, a=4, l=12, w=16)
# Of whole numbers that are positions, lengths or keys: below which dim, or a pair of numbers; of others -4 to 4.
BELOW = {"tok": "v", "label": "c", "len": "t", "table": "pages", "at": "t", "src": "n", "dst": "n", "col": "m", "row": "n", "seen": "o", "irreducible": "q", "node": "n",
         "hops": (0, 9), "doc": (0, 3), "id": "v", "w": (5, 60)}
OWN = {("padded_cross_entropy", "label"): (-3, 20), ("padded_embedding", "tok"): (-1, 150), ("relabel", "x"): "c", ("paged_decode", "len"): (1, 144), ("bag", "len"): (0, 13), ("relabel", "best"): (-99, 99), ("hops", "next"): "n",
       ("offsets", "len"): (-4, 5000), ("decode", "len"): (1, 131)}
# With which a DMA reads rows by itself, where the device has that.
LARGE = {"embedding": dict(v=3000, e=160, b=3, s=150), "bag": dict(v=4000, e=100, b=140, l=12), "paged_decode": dict(pages=6000), "hops": dict(n=3000, f=7),
         "sparse_rows": dict(n=300, k=5, m=9000), "relabel": dict(c=9000, n=3000), "padded_embedding": dict(v=3000, e=300, b=3, s=150)}
TARGETS = ("--target=trn2", "--target=trn1", "--target=trn3", "--target=trn2 --lnc=2")
TYPES = {"f32": np.float32, "i32": np.int32, "i64": np.int64}


def kernels():
    with open(os.path.join(HERE, "labels.tdsl"), encoding="utf-8") as stream:
        for name, params, results in re.findall(r"^kernel (\w+)\((.*?)\)\s*(?:-> \((.*?)\))? \{", stream.read(), re.MULTILINE | re.DOTALL):
            yield name, *([p.split(": ") for p in re.split(r",\s+(?=\w+:)", list_of)] if list_of else [] for list_of in (params, results))


def shape_of(kind, dims):
    extents = kind.partition("[")[2].rstrip("]")
    return tuple(dims[d] for d in extents.split(", ")) if extents else ()


def array_of(rng, kernel, name, kind, dims):
    word, shape = kind.removeprefix("inout ").partition("[")[0], shape_of(kind, dims)
    if word[0] == "f" or word == "bf16":
        a = rng.standard_normal(shape).astype(np.float32)
        a = np.abs(a) + 0.1 if (kernel, name) in (("forward_step", "a"), ("forward_step", "T"), ("forward_step", "E")) else np.abs(a) if kernel == "histogram" else a
        return bfloat16_bits(a).view("V2") if word == "bf16" else a
    range_of = OWN.get((kernel, name), BELOW.get(name, (-4, 5)))
    lo, hi = (0, dims[range_of]) if isinstance(range_of, str) else range_of
    return np.asarray(rng.integers(lo, hi, shape), TYPES[word])


def run(options, folder, kernel, params, outputs, target, tag, dims):
    words = [os.path.join(options.bin, "tdsl-run"), os.path.join(HERE, "labels.tdsl"), f"--kernel={kernel}", *target.split()]
    text = " ".join(k for _, k in params) + " ".join(k for _, k in outputs)
    words += [w for d, n in dims.items() if re.search(rf"[\[ ]{d}[\],]", text) for w in ("-D", f"{d}={n}")]
    words += [f"{name}={os.path.join(folder, name)}.npy" for name, _ in params]
    for name, _ in outputs:
        words += ["-o", f"{name}={os.path.join(folder, name)}.{tag}.npy"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    return done.stderr if done.returncode else [np.load(f"{os.path.join(folder, name)}.{tag}.npy") for name, _ in outputs]


def reads_rows(options, kernel, target, dims):
    """Does the text read rows at positions in a tile?"""
    words = [os.path.join(options.bin, "tdslc"), os.path.join(HERE, "labels.tdsl"), f"--kernel={kernel}", *target.split(), "-Wno-define"]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*words, *[w for d, n in dims.items() for w in ("-D", f"{d}={n}")], "-o", folder + "/"], check=True, capture_output=True, timeout=300)
        with open(os.path.join(folder, kernel + ".py"), encoding="utf-8") as stream:
            return "vector_offset=" in stream.read()


def check(options, kernel, params, results, target, dims):
    rng = np.random.default_rng(len(kernel))
    outputs = [p for p in params if p[1].startswith("inout ")] + results
    with tempfile.TemporaryDirectory() as folder:
        for name, kind in params:
            np.save(os.path.join(folder, name + ".npy"), array_of(rng, kernel, name, kind, dims))
        wanted = run(options, folder, kernel, params, outputs, "--target=interp", "interp", dims)
        got = run(options, folder, kernel, params, outputs, target, "got", dims)
    for w in (wanted, got):
        if isinstance(w, str):
            return w
    for (name, kind), a, b in zip(outputs, wanted, got):
        whole = a.dtype.kind in "ib"
        off = 0 if np.array_equal(a, b) else np.abs(a.astype(np.float64) - b).max() / max(np.abs(a).max(), 1e-9)
        if a.dtype != b.dtype or not off <= (0 if whole else 2e-2 if "bf16" in str(params) else 2e-5):
            return f"{name} is off by {off}"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--only")
    parser.add_argument("--all", action="store_true", help="each program for each device")
    options = parser.parse_args()
    failed = count = 0
    for number, (kernel, params, results) in enumerate(kernels()):
        sizes = [DIMS, DIMS | LARGE[kernel]] if kernel in LARGE else [DIMS]
        for target, dims in [(t, d) for t in (TARGETS if options.all else [TARGETS[number % len(TARGETS)]]) for d in sizes]:
            if options.only not in (None, kernel):
                continue
            wrong = check(options, kernel, params, results, target, dims)
            if dims is not DIMS and not wrong and reads_rows(options, kernel, target, dims) != ("trn1" not in target):
                wrong = "rows are read otherwise"
            count += 1
            failed += wrong is not None
            if wrong:
                print(f"FAILED {kernel} {target} {'large' if dims is not DIMS else ''}: {wrong}", flush=True)
    print(f"{count} programs, {failed} failures")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
