# SPDX-License-Identifier: Apache-2.0
"""sin and cos on the device: with a table of one period, arguments are off by less than 2^-19 for |x| to 25000, near odd multiples of
pi too, where the rounded number of turns may be one too many; exact enough to be equal to float32's rounding below pi.

    periods.py --bin DIR"""
import argparse
import os
import sys
import tempfile

import numpy as np

from harness import compile_for, emulated

TEXT = """kernel waves(A: f32[128,1000]) -> (S: f32[128,1000], C: f32[128,1000]) {
    S[i,j] = sin(A[i,j]);
    C[i,j] = cos(A[i,j]);
}
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    options = parser.parse_args()
    rng = np.random.default_rng(3)
    x = rng.uniform(-25000, 25000, (128, 1000))
    turns = rng.integers(-3900, 3900, (40, 1000))
    x[:40] = 2 * np.pi * (turns + 0.5) + rng.uniform(-1e-3, 1e-3, turns.shape)
    x[40:80] = 2 * np.pi * (turns + 0.25) + rng.uniform(-1e-3, 1e-3, turns.shape)
    x[80:90] = rng.uniform(-3.14, 3.14, (10, 1000))
    x = x.astype(np.float32).astype(np.float64)
    failed = 0
    for target in ("trn1", "trn2", "trn3"):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "waves.tdsl")
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(TEXT)
            manifest = compile_for(options.bin, target, os.path.join(folder, "out"), [path])["waves"]
            (s, c), _ = emulated(manifest, [x], target)
        worst = np.abs(s - np.sin(x)).max(), np.abs(c - np.cos(x)).max(), np.abs(s - np.sin(x))[80:90].max()
        good = worst[0] < 2 ** -19 and worst[1] < 2 ** -19 and worst[2] <= 2 ** -25
        print(f"{target}: sin is off by {worst[0]:.3g}, cos by {worst[1]:.3g}, sin below pi by {worst[2]:.3g}")
        failed += not good
    return 1 if failed else 0


sys.exit(main())
