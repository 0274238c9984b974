# SPDX-License-Identifier: Apache-2.0
"""Our kernels beside hand-written ones, under one cost model: the table of docs/trainium.md.

    peers.py --bin DIR [--target trn2]

The peers are kernels of the structure that is described in public (the vendor's fully blocked matmul: blocks of
16 x 2 x 8 tiles, partial sums in SBUF; the peer library's MP2 energy and AO to MO transform, see
tests/emulator/seed_models.py), written here in our dialect; their own text is not used.
"""
import argparse
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path[:0] = [os.path.join(ROOT, "runtime"), os.path.join(ROOT, "tests", "emulator")]
from nki_emulator.emulate import emulate                 # noqa: E402
from nki_emulator.manifest import manifest_from, read_manifest          # noqa: E402


def blocked_matmul(size, target):
    """(text, inputs) of c = a^T b, bfloat16: n and k in blocks of 1024, all of m at once."""
    import numpy as np
    lines = ["import nki", "import nki.isa as nisa", "import nki.language as nl", "", "", "@nki.jit",
             "def blocked(a, b):",
             f"    c = nl.ndarray(shape=({size}, {size}), dtype=nl.bfloat16, buffer=nl.shared_hbm)"]

    def new(name, shape, dtype, space):
        lines.append(f"    {name} = nl.ndarray(shape={shape}, dtype=nl.{dtype}, buffer=nl.{space})")

    for n in range(0, size, 1024):
        for m in range(0, size, 128):
            new(f"s{n}_{m}", (128, 1024), "float32", "sbuf")
        for k in range(0, size, 1024):
            for t in range(8):
                new(f"b{n}_{k}_{t}", (128, 1024), "bfloat16", "sbuf")
                lines.append(f"    nisa.dma_copy(dst=b{n}_{k}_{t}[0:128, 0:1024], "
                             f"src=b[{k + t * 128}:{k + t * 128 + 128}, {n}:{n + 1024}])")
                new(f"a{n}_{k}_{t}", (128, size), "bfloat16", "sbuf")
                lines.append(f"    nisa.dma_copy(dst=a{n}_{k}_{t}[0:128, 0:{size}], "
                             f"src=a[{k + t * 128}:{k + t * 128 + 128}, 0:{size}])")
            for h in (0, 512):
                for m in range(0, size, 128):
                    psum = f"p{n}_{k}_{h}_{m}"
                    new(psum, (128, 512), "float32", "psum")
                    for t in range(8):
                        lines.append(f"    nisa.nc_matmul(dst={psum}[0:128, 0:512], "
                                     f"stationary=a{n}_{k}_{t}[0:128, {m}:{m + 128}], "
                                     f"moving=b{n}_{k}_{t}[0:128, {h}:{h + 512}])")
                    part = f"s{n}_{m}[0:128, {h}:{h + 512}]"
                    lines.append(f"    nisa.tensor_copy(dst={part}, src={psum}[0:128, 0:512])" if k == 0 else
                                 f"    nisa.tensor_tensor(dst={part}, data1={part}, "
                                 f"data2={psum}[0:128, 0:512], op=nl.add)")
        for m in range(0, size, 128):
            new(f"r{n}_{m}", (128, 1024), "bfloat16", "sbuf")
            lines.append(f"    nisa.tensor_copy(dst=r{n}_{m}[0:128, 0:1024], src=s{n}_{m}[0:128, 0:1024])")
            lines.append(f"    nisa.dma_copy(dst=c[{m}:{m + 128}, {n}:{n + 1024}], src=r{n}_{m}[0:128, 0:1024])")
    lines.append("    return c")
    ones = np.full((size, size), 0x3F80, np.uint16)
    return "\n".join(lines) + "\n", [ones, ones]


def figures(text, inputs, manifest, target, path):
    result = emulate(text, inputs, manifest, target=target, path=path, ranges="warn")
    report = result.cost
    return report["instructions"], report["hbm_bytes"], report["predicted_us"]


def row(name, values):
    print(f"{name:44} {values[0]:7d} {values[1]:11d} {values[2]:10.1f}")


def ours(options, kernel, defines):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([os.path.join(options.bin, "tdslc"), os.path.join(HERE, "peers.tdsl"), "-w",
                        f"--kernel={kernel}", f"--target={options.target}", *defines, "-o", folder], check=True)
        import numpy as np
        manifest = read_manifest(os.path.join(folder, kernel + ".json"))
        inputs = []
        for a in manifest.inputs:
            small = np.ones(a.shape, np.float32)
            inputs.append(np.full(a.shape, 0x3F80, np.uint16) if a.dtype.name == "bfloat16" else
                          small * (-3 if a.name == "eo" else 1))
        with open(manifest.file, encoding="utf-8") as stream:
            return figures(stream.read(), inputs, manifest, options.target, manifest.file)


def main():
    parser = argparse.ArgumentParser(description="Our kernels beside hand-written ones.")
    parser.add_argument("--bin", required=True)
    parser.add_argument("--target", default="trn2")
    options = parser.parse_args()
    print(f"{'':44} {'instr.':>7} {'HBM bytes':>11} {'predicted us':>12}")
    text, inputs = blocked_matmul(2048, options.target)
    manifest = manifest_from({"function": "blocked", "args": [
        {"name": n, "role": r, "dtype": "bfloat16", "shape": [2048, 2048]}
        for n, r in (("a", "input"), ("b", "input"), ("c", "output"))]})
    row("matmul 2048^3 bf16, fully blocked (vendor's)", figures(text, inputs, manifest, options.target, "blocked.py"))
    row("matmul 2048^3 bf16, ours, a^T b", ours(options, "matmul_tn", ["-D", "m=2048", "-D", "n=2048", "-D", "k=2048"]))
    row("matmul 2048^3 bf16, ours, a b", ours(options, "matmul_nn", ["-D", "m=2048", "-D", "n=2048", "-D", "k=2048"]))
    row("MP2 energy 16 x 128 x 128, ours", ours(options, "mp2_energy", ["-D", "o=16", "-D", "v=128", "-D", "x=128"]))
    row("AO to MO n 256, o 16, v 32, x 32, ours",
        ours(options, "ao_to_mo", ["-D", "n=256", "-D", "o=16", "-D", "v=32", "-D", "x=32"]))
    sys.stdout.flush()
    subprocess.run([sys.executable, "-B", os.path.join(ROOT, "tests/emulator/seed_models.py"), options.target],
                   check=True)


main()
