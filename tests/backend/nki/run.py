# SPDX-License-Identifier: Apache-2.0
"""Kernels printed for the device: compiled, run as text in the emulator, compared.

    run.py programs|split|cores|einsum|refused|golden|judge --bin DIR [--only NAME] [--bless]

programs  tests/backend/nki/programs.tdsl against `tdsl-run --target=interp`, for each generation
einsum    cases of tests/data/einsum.json against NumPy, exactly
split     the same programs as several device programs
cores     the same for two cores
refused   what the device does not have is refused with a code, and says so
golden    the text of a few kernels
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

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, os.path.join(ROOT, "runtime"))
from nki_emulator.emulate import emulate            # noqa: E402
from nki_emulator.errors import RuleError as Broken  # noqa: E402
from nki_emulator.manifest import read_manifest     # noqa: E402
from nki_emulator.parts import emulate_parts         # noqa: E402
from harness import check_prediction, einsum_cases, generations, load, run, share   # noqa: E402

PROGRAMS = os.path.join(HERE, "programs.tdsl")


def cases():
    """(kernel, {dim: n}, {operand: word}, close)"""
    found, notes = [], None
    with open(PROGRAMS, encoding="utf-8") as stream:
        for line in stream:
            if line.startswith("//:"):
                notes = line[3:].split()
            elif line.startswith("kernel "):
                name = re.match(r"kernel (\w+)", line).group(1)
                dims = {w.split("=")[0]: int(w.split("=")[1]) for w in notes
                        if re.fullmatch(r"\w+=\d+", w)}
                data = {w.split("=")[0]: w.split("=")[1] for w in notes
                        if re.fullmatch(r"\w+=[a-z]+", w)}
                found.append((name, dims, data, "close" in notes))
    return found


def compile_kernel(options, name, dims, target, folder, *more):
    define = [w for d, n in dims.items() for w in ("-D", f"{d}={n}")]
    status, _, text = run([os.path.join(options.bin, "tdslc"), PROGRAMS, f"--kernel={name}", "-w",
                           f"--target={target}", "-o", folder, *define, *more])
    if status != 0:
        raise RuntimeError(f"tdslc ends with {status}:\n{text}")
    return read_manifest(os.path.join(folder, name + ".json"))


def bfloat16_bits(values):
    word = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return (word >> 16).astype(np.uint16)


def from_bits(values):
    return (values.astype(np.uint32) << 16).view(np.float32)


def make_inputs(manifest, words):
    """Small integers (exact in every type), in float32."""
    rng = np.random.default_rng(7)
    arrays = []
    for a in manifest.inputs:
        word = words.get(a.name, "")
        low, high = {"positive": (1, 5), "negative": (-9, -4)}.get(word, (-3, 4))
        arrays.append(rng.integers(low, high, a.shape).astype(np.float32))
        if word == "infinite":
            arrays[-1] = np.where(np.abs(arrays[-1]) < 2, arrays[-1], np.copysign(np.inf, arrays[-1]))
    if words:                                      # energies: virtual ones above zero
        for at, a in enumerate(manifest.inputs):
            if a.name == "ev":
                arrays[at] = np.abs(arrays[at]) + 1
    return arrays


def outside(array, dtype):
    if dtype.name == "bfloat16":
        return bfloat16_bits(array)
    return array.astype(dtype.outside)


def interpret(options, name, dims, manifest, arrays, folder):
    """The results of the reference interpreter, in float32."""
    words = []
    scalars = {}
    with open(PROGRAMS, encoding="utf-8") as stream:
        head = re.search(r"kernel %s\((.*?)\)\s*(?:->\s*\((.*?)\))?\s*\{" % name, stream.read(), re.S)
    for param in re.findall(r"(\w+):\s*(?:inout )?(\w+)(\[)?", head.group(1)):
        scalars[param[0]] = param[2] == ""
    for a, array in zip(manifest.inputs, arrays):
        if scalars.get(a.name):
            words.append(f"{a.name}={float(array.reshape(-1)[0])}")
            continue
        path = os.path.join(folder, a.name + "_in.npy")
        np.save(path, array)
        words.append(f"{a.name}={path}")
    outs = [a.name[:-4] if a.name.endswith("_out") else a.name for a in manifest.outputs]
    paths = [os.path.join(folder, n + "_ref.npy") for n in outs]
    define = [w for d, n in dims.items() for w in ("-D", f"{d}={n}")]
    types = {p[1] for p in re.findall(r"(\w+):\s*(?:inout )?(\w+)", head.group(1))}
    cast = [f"--dtype={t}" for t in types if t in ("bf16", "f16")]
    status, _, text = run([os.path.join(options.bin, "tdsl-run"), PROGRAMS, f"--kernel={name}", "-w",
                           "--target=interp", *define, *cast, *words,
                           *[w for n, p in zip(outs, paths) for w in ("-o", f"{n}={p}")]])
    if status != 0:
        raise RuntimeError(f"tdsl-run ends with {status}:\n{text}")
    return [load(p) for p in paths]


def plain(array, dtype):
    return from_bits(array) if dtype.name == "bfloat16" else array.astype(np.float32)


def emulate_kernel(manifest, arrays, target):
    if manifest.parts:
        return emulate_parts(manifest, arrays, target)
    with open(manifest.file, encoding="utf-8") as stream:
        text = stream.read()
    return emulate(text, arrays, manifest, target=target, path=manifest.file)


def check_program(options, case, target, *more):
    name, dims, words, close = case
    with tempfile.TemporaryDirectory() as folder:
        manifest = compile_kernel(options, name, dims, target, folder, *more)
        arrays = make_inputs(manifest, words)
        result = emulate_kernel(
            manifest, [outside(x, a.dtype) for x, a in zip(arrays, manifest.inputs)], target)
        if not manifest.parts:
            check_prediction(manifest, result)
        wanted = interpret(options, name, dims, manifest, arrays, folder)
    for a, got, want in zip(manifest.outputs, result.outputs, wanted):
        got = plain(got, a.dtype)
        want = plain(want, a.dtype) if want.dtype == np.uint16 else want.astype(np.float32)
        want = want.reshape(got.shape)
        same = np.allclose(got, want, rtol=2e-5, atol=2e-5) if close else np.array_equal(got, want)
        if not same:
            at = np.unravel_index(np.argmax(np.abs(got - want)), got.shape)
            raise RuntimeError(f"{a.name}{list(map(int, at))} is {got[at]!r}, the interpreter has "
                               f"{want[at]!r} ({int((got != want).sum())} of {got.size} differ)")
    return result


def programs(options):
    failed = 0
    for number, case in share(enumerate(cases()), 4, 1):
        if options.only and options.only != case[0]:
            continue
        for target in generations(number):
            try:
                check_program(options, case, target)
                print(f"passed {case[0]} {target}")
            except (RuntimeError, Broken, OSError, ValueError, KeyError) as error:
                failed += 1
                print(f"FAILED {case[0]} {target}: {error}")
    return failed


# Kernels that no part of their instructions cuts: a word of the reason.
UNCUT = {
    "dot": "a single number", "outer": "a row of it", "compare": "a row of it", "axpy": "a row of it", "update_read_in_part": "what another has changed",
    "update_of_what_is_read": "what another has changed", "overwrite_rows": "a row of it",
    "batches_packed": "a row of it", "sum_of_select": "a row of it",
}


def split_one(options, case):
    """(instructions, parts) with the smallest limit of a few at which the kernel is cut."""
    name, dims = case[0], case[1]
    with tempfile.TemporaryDirectory() as folder:
        count = compile_kernel(options, name, dims, "trn2", folder).counts["instructions"]
    reason = ""
    for limit in (count // 3 + 1, count // 2 + 1, count * 3 // 5 + 1, count * 2 // 3 + 1, count - 1, count // 5 + 1, count // 20 + 1):
        try:
            result = check_program(options, case, "trn2", f"--max-instructions={limit}")
            if len(getattr(result, "results", [])) < 2:
                continue
            return count, len(result.results)
        except RuntimeError as error:
            if "E0602" not in str(error):
                raise
            reason += str(error)
    raise RuntimeError(reason or "it is not cut")


DESCRIPTORS = 2 ** 24 - 16      # rule D11


def split_for_descriptors(options):
    """Stores of single elements, in few instructions, which take more descriptors than a program may."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, "p.tdsl"), os.path.join(folder, "out")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write("kernel k(A: f32[5000,2000]) -> (B: f32[5000,2000,2]) { B[i,j,0] = A[i,j]; B[i,j,1] = 0; }")
        status, _, said = run([os.path.join(options.bin, "tdslc"), path, "--target=trn2", "-o", out])
        counts = []
        for part in (1, 2) if status == 0 else ():
            with open(os.path.join(out, f"k_part{part}.json"), encoding="utf-8") as stream:
                counts.append(json.load(stream)["predicted"]["dma_descriptors"])
    if len(counts) == 2 and max(counts) <= DESCRIPTORS < sum(counts) and f"more than {DESCRIPTORS} DMA descriptors" in said:
        return 0
    print(f"FAILED descriptors: status {status}, {counts}, {said}")
    return 1


def split(options):
    """The same programs where a device program has fewer instructions: several parts, the same
    results."""
    failed = split_for_descriptors(options)
    for case in share(cases(), 10):
        name = case[0]
        if options.only and options.only != name:
            continue
        try:
            print(f"passed {name}: %d instructions, %d parts" % split_one(options, case))
            failed += name in UNCUT
        except (RuntimeError, Broken, OSError, ValueError, KeyError) as error:
            if name in UNCUT and "E0602" in str(error) and UNCUT[name] in str(error):
                print(f"refused {name}: {UNCUT[name]}")
                continue
            failed += 1
            print(f"FAILED {name}: {error}")
    return failed


# Of these one core does all: single numbers, and an index that meets itself.
ALONE = {
    "dot", "mp2_energy", "mp2_loops", "weighted_pairs", "trace_and_diagonal", "update_read_in_part", "update_of_what_is_read", "diagonal_of_a_block",
    "long_vectors", "sums", "extremes", "extremes_so_far",
}


def cores(options):
    failed = 0
    for case in share(cases(), 10):
        name = case[0]
        if options.only and options.only != name:
            continue
        try:
            cores_used = [len(p) > 0 for p in check_program(options, case, "trn2", "--lnc=2").programs]
            if cores_used != [True, name not in ALONE]:
                raise RuntimeError(f"cores that have something to do: {cores_used}")
            print(f"passed {name}")
        except (RuntimeError, Broken, OSError, ValueError, KeyError) as error:
            failed += 1
            print(f"FAILED {name}: {error}")
    return failed


def einsum(options):
    return einsum_cases(options.bin, "f32", (1,), options.space, options.only)


REFUSED = [
    ("kernel k(A: f64[4]) -> (B: f64[4]) { B[i] = 2 * A[i]; }", [], "E0501", "--f64=f32 reads f64 as f32, arrays too, --f64=sums all but f64 results"),
    ("kernel k(A: i32[4]) -> (B: i32[4]) { B[i] = A[i] * A[i]; }", [], "E0501", "one here may be 17592186044416"),
    ("kernel k(A: c128[4]) -> (B: c128[4]) { B[i] = 2 * A[i]; }", [], "E0501", "or write c64"),
    ("kernel k(A: c64[4]) -> (B: c64[4]) { B[i] = log(A[i]); }", [], "E0501", "log of complex numbers"),
    ("dim n; kernel k(A: f32[n]) -> (B: f32[n]) { B[i] = 2 * A[i]; }", [], "E0501", "'n'"),
    ("kernel k(A: c64[4]) -> (B: c64[4]) { B[i] = sin(A[i]); }", [], "E0501", "sin of complex numbers"),
    ("kernel k(A: f32[20000000]) -> (B: f32[20000000]) { B[i] = A[i] * index(i); }", [], "E0501", "positions beyond 2^24"),
    ("kernel k(A: f32[9000,9000]) -> (B: f32[9000,9000]) { B[i,j] = A[i,j] * (index(i) * index(j)); }", [], "E0501", "beyond 2^24"),
    ("kernel k(A: f32[9]) -> (B: f32[9]) { B[i] = select(index(i) / 2 < 3.5, A[i], 0); }", [], "E0501", "f64 here"),
    ("kernel k(A: f32[4000,4000], B: f32[4000,4000]) -> (t: f32) { t = sum[i,j](A[i,j] * B[j,i]); }",
     ["--max-instructions=100"], "E0602", "a single number"),
    ("kernel k(x: f32[300,500,40]) -> (p: f32[300,500,40]) { p[l,i,j] = max[k <= l](x[k,i,j]); }",
     ["--max-instructions=20"], "E0602", "goes from row to row"),
]


def refused(options):
    failed = 0
    for text, defines, code, word in REFUSED:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "p.tdsl")
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(text)
            out = os.path.join(folder, "out")
            status, _, said = run([os.path.join(options.bin, "tdslc"), path, "--target=trn2", "-w",
                                   "-o", out, *defines])
            if status not in (1, 4) or code not in said or word not in said or os.path.exists(out):
                failed += 1
                print(f"FAILED {text!r}: status {status}, {said!r}")
    return failed


# name, files, options
WHOLE = ("{}.py", "{}.json", "{}.hlo.txt")
GOLDEN = [("matmul_small", WHOLE, []), ("matmul_blocks", WHOLE, []), ("bias_relu", WHOLE, []),
          ("mp2_energy", WHOLE, []), ("matmul_tn", ("{}.py", "{}.json"), ["--lnc=2"]),
          ("outer_product_mean", ("{}.json", "{}_part2.py", "{}_part6.py", "programs_trn2.c"),
           ["--max-instructions=11"])]


def golden(options):
    failed = 0
    dims = {name: d for name, d, _, _ in cases()}
    for name, files, more in GOLDEN:
        with tempfile.TemporaryDirectory() as folder:
            compile_kernel(options, name, dims[name], "trn2", folder, *more)
            for file in files:
                file = file.format(name)
                with open(os.path.join(folder, file), encoding="utf-8") as stream:
                    text = re.sub(r"Made from .* by tdslc \S+ ", "Made from programs.tdsl by tdslc ",
                                  stream.read())
                    text = re.sub(r'"compiler": "tdslc [^"]*"', '"compiler": "tdslc"', text)
                path = os.path.join(HERE, "golden", file + ".txt")
                if options.bless:
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    with open(path, "w", encoding="utf-8") as stream:
                        stream.write(text)
                with open(path, encoding="utf-8") as stream:
                    if stream.read() != text:
                        failed += 1
                        print(f"FAILED {file}: the text changed (cmake --build build -t bless)")
    return failed


def judge(options):
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, dims, _, _ in cases():
            compile_kernel(options, name, dims, "trn2", os.path.join(folder, name))
            paths.append(os.path.join(folder, name, name + ".json"))
        command = [sys.executable, "-B", os.path.join(ROOT, "tests/judge/judge.py"), "--no-planted", *paths]
        return subprocess.run(command, timeout=800, check=False).returncode


def main():
    parser = argparse.ArgumentParser(description="Printed kernels in the emulator.")
    parser.add_argument("part", choices=("programs", "split", "cores", "einsum", "refused", "golden", "judge"))
    parser.add_argument("--bin", required=True)
    parser.add_argument("--only")
    parser.add_argument("--bless", action="store_true")
    parser.add_argument("--space", type=int, default=20000)
    options = parser.parse_args()
    if options.part == "judge":
        return judge(options)
    return 1 if globals()[options.part](options) else 0


sys.exit(main())
