# SPDX-License-Identifier: Apache-2.0
"""Arrays and figures for the example.

    water.py prepare FOLDER OUT    the integrals of FOLDER as f32; B with the metric J = L L^T applied (in f64)
    water.py figures M.json ...    what the manifests predict
    water.py compare A.npy B.npy NAME TOLERANCE
"""
import json
import os
import sys

import numpy as np


def prepare(folder, out):
    arrays = {name: np.load(os.path.join(folder, name + ".npy"))
              for name in ("eri3", "Co", "Cv", "eo", "ev", "J")}
    b0 = np.einsum("mi,na,mnP->iaP", arrays["Co"], arrays["Cv"], arrays["eri3"], optimize=True)
    lower = np.linalg.cholesky(arrays["J"])
    arrays["B"] = np.linalg.solve(lower, b0.reshape(-1, len(lower)).T).T.reshape(b0.shape)
    rng = np.random.default_rng(3)
    arrays["A"] = rng.standard_normal((256, 256))
    arrays["M"] = rng.standard_normal((256, 256))
    for name, array in arrays.items():
        np.save(os.path.join(out, name + ".npy"), np.ascontiguousarray(array, np.float32))
    n, o = arrays["Co"].shape
    print(f"-D n={n} -D o={o} -D v={arrays['Cv'].shape[1]} -D x={len(lower)}")


def figures(paths):
    print(f"{'kernel':12} {'instr.':>7} {'multiply-adds':>14} {'HBM bytes':>11} {'compulsory':>11} "
          f"{'bound us':>9}  by")
    for path in paths:
        with open(path, encoding="utf-8") as stream:
            m = json.load(stream)
        p = m["predicted"]
        print(f"{m['kernel']:12} {m['instructions']:7d} {m['multiply_adds']:14d} "
              f"{p['hbm_read_bytes'] + p['hbm_written_bytes']:11d} {p['compulsory_bytes']:11d} "
              f"{p['bound_us']:9.3f}  {p['bound_by']}"
              + (f"  (spills: {', '.join(m['spills'])})" if m["spills"] else ""))


def compare(first, second, name, tolerance):
    a, b = np.load(first).astype(np.float64), np.load(second).astype(np.float64)
    scale = np.abs(a).max()
    error = np.abs(a - b.reshape(a.shape)).max() / scale
    shown = f", {float(a.reshape(-1)[0]):.6f} and {float(b.reshape(-1)[0]):.6f}" if a.size == 1 else ""
    good = bool(error <= float(tolerance))
    print(f"  {name}: C and emulator differ by {error:.1e} of the largest element{shown}"
          + ("" if good else "  TOO MUCH"))
    return 0 if good else 5


def main():
    if sys.argv[1] == "prepare":
        return prepare(*sys.argv[2:])
    if sys.argv[1] == "figures":
        return figures(sys.argv[2:])
    return compare(*sys.argv[2:])


sys.exit(main())
