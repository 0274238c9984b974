# SPDX-License-Identifier: Apache-2.0
"""Complex kernels on the device: compiled, run as text in the emulator, compared.

    complex.py programs|split|einsum|judge --bin DIR [--only NAME]

programs  tests/backend/nki/complex.tdsl against the interpreter, for each generation: exactly, unless marked `close`;
          every array is read and written once, with long runs
split     the same on trn2, cut into several device programs
einsum    cases of tests/data/einsum.json in c64: each operand times a complex number, so sums are known exactly
judge     the programs before the second judge (tests/judge); 77 where it cannot be had
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

from harness import Failure, HERE, ROOT, Refused, compare, compile_for, einsum_cases, emulated, generations, kernels_of, run, share

PROGRAMS = os.path.join(HERE, "complex.tdsl")
FACTORS = (1 + 1j, 1 - 1j, 1 + 2j, 2 - 1j)
# Kernels with short runs by their nature: vectors over partitions, short last extents.
SHORT_RUNS = {"matvec", "dot", "inner", "outer", "sums", "norms", "scalars", "many_labels", "batch_inside", "permuted",
              "trace_and_diagonal", "matmul_one", "four_by_four", "matmul_small", "long_vectors_and_an_element"}


def cases():
    """(kernel, {dim: n}, close)"""
    with open(PROGRAMS, encoding="utf-8") as stream:
        text = stream.read()
    notes = dict(zip(re.findall(r"^kernel (\w+)", text, re.M), re.findall(r"^//: (.*)$", text, re.M)))
    for kernel in kernels_of(text):
        words = notes[kernel.name].split()
        yield kernel, {w.split("=")[0]: int(w.split("=")[1]) for w in words if "=" in w}, "close" in words


def words_of(kernel, dims):
    return [PROGRAMS, f"--kernel={kernel.name}", *[w for d, n in dims.items() for w in ("-D", f"{d}={n}")]]


def make(kernel, dims):
    """Small integers for every parameter."""
    rng = np.random.default_rng(5)
    arrays = []
    for p in kernel.params:
        shape = [dims[d] if d in dims else int(d) for d in p.dims]
        array = rng.integers(-3, 4, shape).astype(np.float64)
        arrays.append(array + 1j * rng.integers(-3, 4, shape) if p.dtype == "c64" else array)
    return arrays


def interpret(options, kernel, words, arrays, folder):
    command = [os.path.join(options.bin, "tdsl-run"), *words, "-w", "--target=interp"]
    for p, array in zip(kernel.params, arrays):
        path = os.path.join(folder, f"in_{p.name}.npy")
        np.save(path, array.astype(np.complex64 if p.dtype == "c64" else np.float32))
        command.append(f"{p.name}={path}")
    paths = [os.path.join(folder, f"ref_{p.name}.npy") for p in kernel.outputs]
    for p, path in zip(kernel.outputs, paths):
        command += ["-o", f"{p.name}={path}"]
    status, _, text = run(command)
    if status != 0:
        raise Failure(f"tdsl-run ends with {status}: {text[-2000:]}")
    return [np.load(path) for path in paths]


def check_traffic(kernel, dims, result):
    """Each array once, in runs that are no single elements."""
    dma = result.cost["dma"]
    if kernel.name in SHORT_RUNS:
        return
    if dma["bytes"] / dma["descriptors"] < 100 and dma["bytes"] > 20000:
        raise Failure(f"{dma['bytes']} bytes go in {dma['descriptors']} descriptors")
    inout = any(p.inout for p in kernel.params)
    if result.cost["traffic_ratio"] > (2.0 if inout else 1.35):
        raise Failure(f"{result.cost['traffic_ratio']:.2f} times the compulsory bytes")


def check_program(options, kernel, dims, close, target, *more):
    """How many device programs it is."""
    with tempfile.TemporaryDirectory() as folder:
        words = [*words_of(kernel, dims), *more]
        out = os.path.join(folder, "out")
        manifest = compile_for(options.bin, target, out, words)[kernel.name]
        with open(os.path.join(out, kernel.name + ".json"), encoding="utf-8") as stream:
            said = json.load(stream)
        rows = said["args"]
        for row, p in zip(rows, kernel.params + kernel.outputs):
            whole = {"dtype": "complex64", "shape": [dims.get(d) for d in p.dims]} if p.dtype == "c64" else None
            if row.get("of") != whole or row["dtype"] != "float32":
                raise Failure(f"the manifest says {row}")
        arrays = make(kernel, dims)
        got, result = emulated(manifest, arrays, target)
        wanted = interpret(options, kernel, words, arrays, folder)
        wanted = [w.reshape(g.shape) for g, w in zip(got, wanted)]
        compare([p.name for p in kernel.outputs], got, wanted, [2e-5 * (1 + np.abs(w)) if close else 0 for w in wanted])
        if not more:
            check_traffic(kernel, dims, result)
        return len(said.get("parts", [])) or 1


def split_one(options, kernel, dims, close):
    """How many programs with the first of a few limits at which the kernel is cut; 1: none cuts it."""
    for limit in (200, 100, 50, 24, 12, 6, 3):
        try:
            n = check_program(options, kernel, dims, close, "trn2", f"--max-instructions={limit}")
        except Refused as error:
            if "E0602" not in str(error):
                raise
            continue
        if n > 1:
            return n
    return 1


def split(options):
    failed = done = 0
    chosen = [case for case in share(cases(), 4, gate=2) if options.only in (None, case[0].name)]
    for kernel, dims, close in chosen:
        try:
            done += split_one(options, kernel, dims, close) > 1
        except Exception as error:                           # noqa: BLE001
            failed += 1
            print(f"FAILED {kernel.name}: {type(error).__name__}: {error}"[:300])
    print(f"{done} of {len(chosen)} complex kernels give the interpreter's results in several programs")
    return failed + (done < len(chosen) / 2)


def programs(options):
    failed = done = 0
    for number, (kernel, dims, close) in share(enumerate(cases()), 2):
        if options.only not in (None, kernel.name):
            continue
        for target in generations(number):
            done += 1
            try:
                check_program(options, kernel, dims, close, target)
            except Exception as error:                       # noqa: BLE001 (a wrong shape is a failure as well)
                failed += 1
                print(f"FAILED {kernel.name} {target}: {type(error).__name__}: {error}"[:300])
    print(f"{done - failed} of {done} complex kernels give the interpreter's results")
    return failed + (done == 0)


def einsum(options):
    return einsum_cases(options.bin, "c64", FACTORS, options.space, options.only)


def judge(options):
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for kernel, dims, _ in cases():
            out = os.path.join(folder, kernel.name)
            compile_for(options.bin, "trn2", out, words_of(kernel, dims))
            paths.append(os.path.join(out, kernel.name + ".json"))
        command = [sys.executable, "-B", os.path.join(ROOT, "tests/judge/judge.py"), "--no-planted", *paths]
        return subprocess.run(command, timeout=800, check=False).returncode


def main():
    parser = argparse.ArgumentParser(description="Complex kernels in the emulator.")
    parser.add_argument("part", choices=("programs", "split", "einsum", "judge"))
    parser.add_argument("--bin", required=True)
    parser.add_argument("--only")
    parser.add_argument("--space", type=int, default=4000)
    options = parser.parse_args()
    if options.part == "judge":
        return judge(options)
    return 1 if globals()[options.part](options) else 0


sys.exit(main())
