# SPDX-License-Identifier: Apache-2.0
"""Compiles a kernel for the device, runs its text in the emulator, and has a reference for it.

A case is a TDSL text (or an equation), extents, data; what comes back is an Outcome: refused with a code, or results beside those of
the reference. The reference is `tdsl-run` of the same program, by the interpreter in the same element type or as C in a wider one.
Arrays are float64 or complex128 here, small integers mostly, and become the kernel's types on the way in.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path[:0] = [os.path.join(ROOT, "runtime"), os.path.join(ROOT, "tests/support")]
from nki_emulator.emulate import emulate             # noqa: E402
from nki_emulator.errors import RuleError            # noqa: E402
from nki_emulator.parts import emulate_parts         # noqa: E402
import steps                                                          # noqa: E402
from arrays import bfloat16_bits, bfloat16_values, load                # noqa: E402
from quick import share                                               # noqa: E402
from nki_emulator.manifest import as_caller, as_device, read_manifest     # noqa: E402

EXACT = {"f32": 2 ** 24, "f16": 2 ** 11, "bf16": 2 ** 8}     # integers up to here are exact
STEP = {"f32": 2.0 ** -23, "f16": 2.0 ** -10, "bf16": 2.0 ** -7, "c64": 2.0 ** -23}


class Failure(RuntimeError):
    """What a kernel did wrong, as a sentence."""


class Refused(Exception):
    """The compiler said no: `code` and `text`."""

    def __init__(self, code, text):
        super().__init__(f"{code}: {text}")
        self.code, self.text = code, text


class Param:
    def __init__(self, name, dtype, dims, inout=False):
        self.name, self.dtype, self.dims, self.inout = name, dtype, dims, inout


class Kernel:
    """A kernel of a TDSL text, as far as its signature tells."""

    def __init__(self, match):
        self.name, self.text = match.group(1), match.group(0)
        self.params = _params(match.group(2))
        self.results = _params(match.group(3) or "")

    @property
    def outputs(self):
        """In the order a printed kernel returns them."""
        return [p for p in self.params if p.inout] + self.results

    def unwritten(self, param):
        """An inout parameter that no statement gives a value: it is returned as it came."""
        body = self.text[self.text.index("{") + 1:]
        return param.inout and not re.search(r"^\s*%s\s*(\[[^\]]*\])?\s*[+-]?=" % re.escape(param.name), body, re.M)


def _params(text):
    found = []
    for name, inout, dtype, dims in re.findall(r"(\w+)\s*:\s*(inout )?(\w+)(?:\[([^\]]*)\])?", text):
        found.append(Param(name, dtype, [d.strip() for d in dims.split(",")] if dims else [], bool(inout)))
    return found


def kernels_of(text):
    """All kernels of a text; each begins in column 0."""
    parts = re.split(r"^(?=kernel )", text, flags=re.M)[1:]
    inside = r"\(((?:[^()]|\([^()]*\))*)\)"  # an extent may have brackets
    head = re.compile(rf"kernel (\w+){inside}\s*(?:->\s*{inside})?\s*\{{.*\}}", re.S)
    return [Kernel(head.match(part)) for part in parts]


def run(command, seconds=300):
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL)
    if done.returncode < 0 or done.returncode >= 70:
        raise Failure(steps.report("run", command, done)[-4000:])
    return done.returncode, done.stdout, done.stderr


def compile_for(tools, target, folder, words):
    """Manifests of what `tdslc words` makes for the target, by kernel; Refused where it says so."""
    status, _, text = run([os.path.join(tools, "tdslc"), *words, "-w", f"--target={target}", "-o", folder])
    if status != 0:
        code = re.search(r"\[?(E\d{4})\]?", text)
        if status not in (1, 4) or code is None or os.path.exists(folder):
            raise Failure(f"tdslc ends with {status}: {text[-2000:]}")
        raise Refused(code.group(1), text)
    found = {f[:-5]: read_manifest(os.path.join(folder, f)) for f in sorted(os.listdir(folder)) if f.endswith(".json")}
    return {name: manifest for name, manifest in found.items() if not re.search(r"_part\d+$", name)}


def outside(array, dtype):
    """An array in the form the emulator takes for an argument."""
    if dtype.name == "bfloat16":
        return bfloat16_bits(array)
    return np.ascontiguousarray(array).astype(dtype.outside)


def plain(array, bfloat16):
    if bfloat16:
        return bfloat16_values(array)
    return array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)


def emulated(manifest, arrays, target, ranges="error"):
    """Results as float64 and the emulator's Result."""
    given = [outside(as_device(x, a).reshape(a.shape), a.dtype) for x, a in zip(arrays, manifest.inputs)]
    try:
        if manifest.parts:
            result = emulate_parts(manifest, given, target, ranges=ranges)
        else:
            with open(manifest.file, encoding="utf-8") as stream:
                text = stream.read()
            result = emulate(text, given, manifest, target=target, path=manifest.file, ranges=ranges)
    except RuleError as error:
        raise Failure(f"the emulator refuses it: {error}")
    results = [as_caller(x, a) for x, a in zip(result.outputs, manifest.outputs)]
    return [plain(x, t.name == "bfloat16") for x, t in zip(results, result.output_types)], result


def check_prediction(manifest, result):
    """The compiler's figures are those that the emulator finds in the text."""
    with open(os.path.splitext(manifest.file)[0] + ".json", encoding="utf-8") as stream:
        said = json.load(stream)["predicted"]
    dma = result.cost["dma"]
    found = {f"{e}_cycles": v["cycles"] for e, v in result.cost["engines"].items()}
    found.update(hbm_read_bytes=dma["hbm_read_bytes"], hbm_written_bytes=dma["hbm_written_bytes"],
                 dma_descriptors=dma["descriptors"])
    wrong = {k: (said[k], v) for k, v in found.items() if said[k] != v}
    wrong.update((k, (said[k], result.cost[k])) for k in ("bound_us", "predicted_us") if abs(said[k] - result.cost[k]) > 0.002)
    if wrong:
        raise Failure(f"predictions of the manifest and of the emulator: {wrong}")


def run_predicted(tools, text, arrays):
    """Results of kernel `k` of a text on trn2; its figures are checked, too, unless it is several programs."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, "p.tdsl"), os.path.join(folder, "out")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text + "\n")
        manifest = compile_for(tools, "trn2", out, [path])["k"]
        results, result = emulated(manifest, arrays, "trn2", ranges="warn")
        if not manifest.parts:
            check_prediction(manifest, result)
    return results


def seeds_asked():
    """The options of a test of random programs: --bin DIR [--count=N] [--seed=S]."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def reference(tools, folder, words, kernel, arrays, dtype=None, target="interp"):
    """Results of tdsl-run, in float64. `dtype` casts all arguments."""
    params = kernel.params
    outputs = [p for p in kernel.outputs if not kernel.unwritten(p)]
    command = [os.path.join(tools, "tdsl-run"), *words, "-w", f"--target={target}"]
    if dtype is not None:
        command.append(f"--dtype={dtype}")
    for p, array in zip(params, arrays):
        if not p.dims and not np.iscomplexobj(array):
            command.append(f"{p.name}={float(array.reshape(-1)[0])}")
            continue
        path = os.path.join(folder, f"in_{p.name}.npy")
        wide = dtype in ("f64", "c128") or p.dtype in ("f64", "c128")
        real = np.float64 if wide else np.float32
        np.save(path, array.astype((np.complex128 if wide else np.complex64) if np.iscomplexobj(array) else real))
        command.append(f"{p.name}={path}")
    paths = [os.path.join(folder, f"ref_{p.name}.npy") for p in outputs]
    for p, path in zip(outputs, paths):
        command += ["-o", f"{p.name}={path}"]
    status, _, text = run(command)
    if status != 0:
        raise Failure(f"tdsl-run ends with {status}: {text[-2000:]}")
    found = {p.name: plain(load(path), (dtype or p.dtype) == "bf16") for p, path in zip(outputs, paths)}
    found.update((p.name, x) for p, x in zip(params, arrays) if kernel.unwritten(p))
    return [found[p.name] for p in kernel.outputs]


def compare(names, got, wanted, bounds):
    """Failure unless |got - wanted| <= bound for every result; a bound of 0 asks for equality."""
    for name, a, b, bound in zip(names, got, wanted, bounds):
        b = b.reshape(a.shape)
        with np.errstate(invalid="ignore"):
            wrong = ~((np.abs(a - b) <= bound) | (a == b) | (np.isnan(a) & np.isnan(b)))
        if wrong.any():
            at = np.unravel_index(np.argmax(np.where(wrong, np.abs(a - b), 0)), a.shape)
            raise Failure(f"{name}{list(map(int, at))} is {a[at]!r}, expected {b[at]!r} ({int(wrong.sum())} of {a.size} differ"
                          f"{'' if np.ndim(bound) == 0 and bound == 0 else f', bound {float(np.max(bound)):.3g}'})")


def generations(number):
    """The devices that kernel `number` is for: all, in the quick set one of them in turn."""
    return share(["trn2", "trn1", "trn3"], 3, number)


class Clock:
    """Stops a suite that has a time to keep; what was not reached is said, never passed off as done."""

    def __init__(self, seconds):
        self.end = None if seconds is None else time.monotonic() + seconds

    def over(self):
        return self.end is not None and time.monotonic() > self.end


# ---- the cases of tests/data/einsum.json: small integers, times a factor for each operand, so that sums are known exactly ----

def fill(shape, k):
    """The data that the cases' sums are of."""
    n = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
    return ((7 * n + 13 * k + 3) % 11 - 5).astype(np.float64)


def einsum_case(tools, row, dtype, factors):
    shapes = row["shapes"]
    with tempfile.TemporaryDirectory() as folder:
        shape = [w for s in shapes for w in ("--shape", "x".join(map(str, s)))]
        out = os.path.join(folder, "out")
        manifest = compile_for(tools, "trn2", out, ["-e", row["eq"], *shape, f"--dtype={dtype}"])["einsum"]
        factors = [factors[k % len(factors)] for k in range(len(shapes))]
        operands = [fill(s, k) * f for k, (s, f) in enumerate(zip(shapes, factors))]
        flat = emulated(manifest, operands, "trn2")[0][0].reshape(-1)
        weights = np.arange(flat.size) % 97 + 1
        got = (flat.sum(), (flat * weights).sum())
        wanted = (row["sum"] * np.prod(factors), row["wsum"] * np.prod(factors))
        if np.abs(flat).max(initial=0) < 2 ** 23 and any(abs(a - b) > 0.5 for a, b in zip(got, wanted)):
            raise Failure(f"sums {got}, expected {wanted}")


def einsum_cases(tools, dtype, factors, space, only=None):
    """How many of the cases with at most so many points failed; 1 when there is none."""
    with open(os.path.join(ROOT, "tests/data/einsum.json"), encoding="utf-8") as stream:
        rows = json.load(stream)["cases"]
    done = failed = 0

    def good(row):
        shapes = row["shapes"]
        return (row["status"] == "ok" and "sum" in row and all(s and min(s) > 0 for s in shapes) and
                (row["iter_space"] or 0) <= space and all(n <= 600 for s in shapes for n in s) and only in (None, row["id"]))

    for row in share(filter(good, rows), 8):
        done += 1
        try:
            einsum_case(tools, row, dtype, factors)
        except Exception as error:                           # noqa: BLE001 (a wrong shape is a failure as well)
            failed += 1
            print(f"FAILED {row['id']} {row['eq']!r} {row['shapes']}: {type(error).__name__}: {error}"[:300])
    print(f"{done - failed} of {done} einsum cases are exact in {dtype}")
    return failed + (done == 0)
