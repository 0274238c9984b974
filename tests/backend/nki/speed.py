# SPDX-License-Identifier: Apache-2.0
"""What the cost model predicts for printed kernels, against what it should be: the target numbers.

    speed.py --bin DIR [--target trn2] [--table]

Each row says which kernel, and what must hold of its report. --table prints the figures (docs/trainium.md) for every
kernel, and more that nothing is asked of.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, os.path.join(ROOT, "runtime"))
from nki_emulator.emulate import emulate                 # noqa: E402
from nki_emulator.manifest import read_manifest          # noqa: E402


def report(options, kernel, extents):
    """The cost report of a kernel of speed.tdsl; the results of small ones are compared with NumPy's."""
    with tempfile.TemporaryDirectory() as folder:
        define = [w for d, n in extents.items() for w in ("-D", f"{d}={n}")]
        subprocess.run([os.path.join(options.bin, "tdslc"), os.path.join(HERE, "speed.tdsl"), "-w", *define,
                        f"--kernel={kernel}", f"--target={options.target}", "-o", folder], check=True)
        manifest = read_manifest(os.path.join(folder, kernel + ".json"))
        rng = np.random.default_rng(3)
        arrays = [rng.integers(-1, 2, a.shape).astype(np.float32) for a in manifest.inputs]
        inputs = [(x.view(np.uint32) >> 16).astype(np.uint16) if a.dtype.name == "bfloat16" else x
                  for x, a in zip(arrays, manifest.inputs)]
        with open(manifest.file, encoding="utf-8") as stream:
            result = emulate(stream.read(), inputs, manifest, target=options.target, path=manifest.file, ranges="warn")
    if result.cost["macs"] > 2 ** 31:
        return result.cost                               # minutes of NumPy; the smaller ones are compared
    equation = EQUATIONS[kernel.removesuffix("_f32")]
    got = result.outputs[0]
    if kernel in NEAR:
        got = (got.astype(np.uint32) << 16).view(np.float32) if got.dtype == np.uint16 else got
        if not np.allclose(got, equation(*arrays), *NEAR[kernel]):
            raise RuntimeError(f"{kernel} {extents}: {got} and not {equation(*arrays)}")
        return result.cost
    if callable(equation):
        want = equation(*arrays)
    else:
        operands = arrays if len(arrays) == equation.count(",") + 1 else arrays * 2
        want = np.einsum(equation, *operands, optimize=True)
    if got.dtype == np.uint16:
        got = (got.astype(np.uint32) << 16).view(np.float32)
        want = want.astype(np.float32)
        close = np.abs(got - want) <= np.abs(want) / 256
    else:
        close = got == want
    if not close.all():
        raise RuntimeError(f"{kernel} {extents}: {int((~close).sum())} of {close.size} results differ")
    return result.cost


def exchange(b, e, f):
    t = np.einsum("iap,jbp->iajb", b, b, optimize=True).astype(float)
    return (t * (2 * t - t.transpose(0, 3, 2, 1)) / (9 + e[:, None, None, None] + e[:, None] - f[:, None, None] - f)).sum()


def decode(q, k, v):
    w = np.exp(np.einsum("hge,hke->hgk", q, k) * np.float32(0.125))
    return np.einsum("hgk,hke->hge", w, v) / w.sum(2)[:, :, None]


def windows(equation, *extents):
    """Of the first operand by the positions of a filter along its last dimensions."""
    def value(x, k):
        axes = range(x.ndim - len(extents), x.ndim)
        return np.einsum(equation, np.lib.stride_tricks.sliding_window_view(x, extents, tuple(axes)), k, optimize=True)
    return value


EQUATIONS = {"convolution": windows("bcijpq,fcpq->bfij", 3, 3), "channels": windows("cijpq,cpq->cij", 3, 3), "channels_1d": windows("cit,ct->ci", 4),
             "exchange": exchange, "decode": decode, "tn": "ki,kj->ij", "nn": "ik,kj->ij", "nt": "ik,jk->ij", "tt": "ki,jk->ij",
             "batch_nn": "bik,bkj->bij", "batch_nt": "bik,bjk->bij", "batch_tn": "bki,bkj->bij",
             "batch_last": "ikb,kjb->ijb", "syrk": "ik,jk->ij", "syrk_t": "ki,kj->ij", "rows": "mkn,kb->mnb",
             "sums": "mnk,mnb->kb", "exchanged": "bmn->bnm", "moved": "mnk->kmn", "points": "mx,m->mx", "moment": "mx,m->x",
             "between": "mkn,kb->nmb", "last_three": "bnkx,bkm->bnmx", "small_products": "bxz,bzy->bxy",
             "six": "agfd,cbeg->fedcba", "weighted_points": "i,i,ijk,ilk->ijl"}
NEAR = {"exchange": (1e-5, 0), "decode": (0.02, 0.005)}     # relative and absolute error
CUBE = {"m": 2048, "n": 2048, "k": 2048}
HALF = {"m": 1024, "n": 1024, "k": 1024}

# (kernel, extents, {figure: at most}); `lost` is predicted over the bound less one, `idle` the Tensor engine's idle share
# between its first and last instruction, `traffic` HBM bytes over the compulsory ones.
ROWS = [
    ("tn", CUBE, {"lost": 0.025, "idle": 0.005, "traffic": 1.001, "instructions": 1300}),
    ("nn", CUBE, {"lost": 0.04, "idle": 0.016, "traffic": 1.001, "instructions": 1700}),
    ("nt", CUBE, {"lost": 0.045, "idle": 0.028, "traffic": 1.001, "instructions": 2100}),
    ("nt_f32", CUBE, {"lost": 0.03, "idle": 0.025, "traffic": 1.1}),
    ("nn", HALF, {"lost": 0.28, "traffic": 1.001}),
    ("batch_nn", {"b": 64, "m": 16, "n": 16, "k": 16}, {"predicted": 24, "instructions": 160}),
    ("batch_nn", {"b": 64, "m": 64, "n": 64, "k": 64}, {"predicted": 28, "instructions": 280}),
    ("batch_nt", {"b": 64, "m": 64, "n": 64, "k": 64}, {"predicted": 36, "instructions": 300}),
    ("batch_last", {"b": 32, "m": 16, "n": 16, "k": 16}, {"predicted": 12, "instructions": 60}),
    ("syrk", {"m": 1024, "k": 1024}, {"predicted": 102, "traffic": 1.001}),
    ("syrk_t", {"m": 1024, "k": 1024}, {"predicted": 87, "traffic": 1.001}),
    ("syrk", CUBE, {"predicted": 730, "traffic": 1.001}),
    ("exchanged", {"b": 64, "m": 128, "n": 64}, {"predicted": 21, "traffic": 1.001}),
    ("moved", {"m": 200, "n": 130, "k": 100}, {"predicted": 75, "traffic": 1.001}),
    ("points", {"m": 100000}, {"predicted": 15, "instructions": 30}),
    ("between", {"m": 96, "k": 64, "n": 60, "b": 40}, {"predicted": 29}),
    ("moment", {"m": 100000}, {"predicted": 15}),
    ("last_three", {"b": 100, "n": 50, "k": 50, "m": 150}, {"predicted": 175, "instructions": 1300}),
    ("small_products", {"b": 50000}, {"predicted": 55}),
    ("weighted_points", {"m": 50000}, {"predicted": 65}),
    ("six", {"s": 3, "t": 10}, {"predicted": 140, "instructions": 700}),
    ("exchange", {"o": 16, "v": 128, "x": 128}, {"predicted": 113, "instructions": 940}),
    ("decode", {"h": 8, "g": 4, "t": 8192, "d": 128}, {"predicted": 195, "traffic": 1.001, "instructions": 3600}),
    ("experts", {"n": 512, "d": 512, "g": 8, "f": 1024}, {"predicted": 138, "traffic": 1.001, "instructions": 950}),
    ("gated", {"n": 2048, "c": 1024, "f": 4096}, {"predicted": 795, "instructions": 4500}),
    ("convolution", {"b": 4, "k": 64, "m": 64, "n": 56}, {"predicted": 45, "traffic": 2}),
    ("convolution", {"b": 4, "k": 256, "m": 256, "n": 28}, {"predicted": 70, "traffic": 1.2}),
    ("channels", {"m": 128, "n": 56}, {"predicted": 25, "traffic": 1.1}),
    ("channels_1d", {"m": 2048, "n": 2048}, {"predicted": 70, "traffic": 1.01}),
    ("rows", {"m": 40, "n": 50, "k": 128, "b": 200}, {"predicted": 14.8, "instructions": 105}),
    ("sums", {"m": 40, "n": 50, "k": 128, "b": 200}, {"predicted": 11.6, "instructions": 65}),
]
MORE = [
    ("tt", CUBE), ("tn_f32", CUBE), ("nn_f32", CUBE), ("tt_f32", CUBE), ("tn", HALF), ("nt", HALF), ("tt", HALF), ("tn_f32", HALF), ("nn_f32", HALF),
    ("batch_nn", {"b": 256, "m": 8, "n": 8, "k": 8}), ("batch_tn", {"b": 64, "m": 64, "n": 64, "k": 64}),
    ("batch_nt", {"b": 16, "m": 128, "n": 512, "k": 64}), ("batch_nn", {"b": 16, "m": 128, "n": 128, "k": 64}),
]


def large(options):
    """Operands that do not fit SBUF: what is read again, from the manifest alone."""
    with tempfile.TemporaryDirectory() as folder:
        define = [w for d in "mnk" for w in ("-D", f"{d}=4096")]
        subprocess.run([os.path.join(options.bin, "tdslc"), os.path.join(HERE, "speed.tdsl"), "-w", *define, "--kernel=tn",
                        "--target=trn2", "-o", folder], check=True)
        with open(os.path.join(folder, "tn.json"), encoding="utf-8") as stream:
            predicted = json.load(stream)["predicted"]
    ratio = (predicted["hbm_read_bytes"] + predicted["hbm_written_bytes"]) / predicted["compulsory_bytes"]
    if ratio > 1.35:
        print(f"FAILED tn 4096^3: {ratio:.2f} times the compulsory bytes, at most 1.35 was wanted")
    return ratio > 1.35


def unlike(options):
    """Kernels whose nest the search prices otherwise than the printed program, by more than a quarter."""
    failed = 0
    for kernel, extents in [("tn", CUBE), ("nn", CUBE), ("nt", CUBE), ("nn_f32", CUBE), ("tn_f32", HALF), ("batch_nn", {"b": 16, "m": 256, "n": 256, "k": 256})]:
        with tempfile.TemporaryDirectory() as folder:
            define = [w for d, n in extents.items() for w in ("-D", f"{d}={n}")]
            made = subprocess.run([os.path.join(options.bin, "tdslc"), os.path.join(HERE, "speed.tdsl"), "-w", *define, f"--kernel={kernel}",
                                   "--target=trn2", "--report=json", "-o", folder], check=True, capture_output=True, text=True)
        model = json.loads(made.stdout)["kernels"][0]["model"]
        ratio = model["chosen"]["total_seconds"] / model["printed"]["total_seconds"]
        if not 0.8 <= ratio <= 1.25:
            failed += 1
            print(f"FAILED {kernel}: the search has {ratio:.2f} times the printed program's price")
    return failed


def figures(cost):
    return {"lost": cost["predicted_us"] / cost["bound_us"] - 1, "idle": 1 - cost["tensor_busy_between"],
            "traffic": cost["traffic_ratio"], "instructions": cost["instructions"], "predicted": cost["predicted_us"]}


def main():
    parser = argparse.ArgumentParser(description="Predicted figures of printed kernels.")
    parser.add_argument("--bin", required=True)
    parser.add_argument("--target", default="trn2")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    failed = int(large(options)) + unlike(options)
    if options.table:
        print(f"{'kernel':12} {'extents':34} {'instr.':>6} {'predicted':>9} {'bound':>8} {'by':7} {'first':>6} {'last':>6} "
              f"{'busy':>6} {'traffic':>7}")
    for kernel, extents, limits in ROWS + [(*row, {}) for row in MORE if options.table]:
        cost = report(options, kernel, extents)
        sys.stdout.flush()
        have = figures(cost)
        text = " ".join(f"{d}={n}" for d, n in extents.items())
        if options.table:
            print(f"{kernel:12} {text:34} {cost['instructions']:6d} {cost['predicted_us']:9.1f} {cost['bound_us']:8.1f} "
                  f"{cost['bound_by']:7} {cost['tensor_prologue_us']:6.2f} {cost['tensor_epilogue_us']:6.2f} "
                  f"{cost['tensor_busy_between']:6.3f} {cost['traffic_ratio']:7.3f}")
        for name, most in limits.items():
            if options.target == "trn2" and have[name] > most:
                failed += 1
                print(f"FAILED {kernel} {text}: {name} is {have[name]:.4g}, at most {most} was wanted")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
