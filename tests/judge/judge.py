# SPDX-License-Identifier: Apache-2.0
"""The second judge: printed kernels through klr-lang 0.0.9, an independent parser and tracer.

    judge.py [--no-planted] [MANIFEST.json ...]

For each manifest (see runtime/nki_emulator/manifest.py; `file` names the kernel) four things
must hold: the tracer accepts the text; every operation it met is one we know; its trace equals
the emulator's, call by call (operation, tensors, ranges, constants); a replay of its trace
in NumPy gives the emulator's results. Rows of `args` may carry "data": FILE.npy (inputs to use,
results to expect); otherwise inputs are small integers. Then planted errors must be refused.
Without manifests the example kernels of tests/emulator/kernels are judged.

The tracer lives in the virtual environment that `.ci/setup test` makes. TDSL_KLR_PYTHON may name
another interpreter that has klr-lang 0.0.9. Where it cannot be had, the reason is printed
and the exit status is 77 (skipped); 0 all held, 1 something did not, 2 usage. A kernel whose
spelling the tracer does not take (reshapes) is reported as skipped, by name.
"""

import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PACKAGE, VERSION = "klr-lang", "0.0.9"
SKIPPED = 77


class Skip(Exception):
    """The judge cannot be had here; the text is the reason."""


def _run(command, seconds, **options):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=seconds,
                              stdin=subprocess.DEVNULL, **options)
    except subprocess.TimeoutExpired:
        raise Skip(f"{os.path.basename(command[0])} did not end within {seconds} s")
    except OSError as error:
        raise Skip(f"{command[0]}: {error.strerror}")


def _last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"


def _version_of(python):
    """The installed version of the tracer for an interpreter, or None."""
    done = _run([python, "-c", "import importlib.metadata as m; "
                               f"print(m.version('{PACKAGE}'))"], 60)
    return done.stdout.strip() if done.returncode == 0 else None


def judge_python():
    """An interpreter with the tracer installed; Skip says why there is none."""
    given = os.environ.get("TDSL_KLR_PYTHON")
    if given:
        if _version_of(given) != VERSION:
            raise Skip(f"TDSL_KLR_PYTHON={given} has no {PACKAGE} {VERSION}")
        return given
    folder = os.environ.get("TDSL_TESTS_ENVIRONMENT") or os.path.expanduser("~/.cache/tdsl-tests")
    for python in (sys.executable, os.path.join(folder, "bin", "python")):
        if os.path.exists(python) and _version_of(python) == VERSION:
            return python
    raise Skip(f"no {PACKAGE} {VERSION} in {folder}, where `.ci/setup test` puts it")


def trace_all(python, requests, scratch):
    """One answer for each request: {"ok", "text", "hbm"}."""
    path = os.path.join(scratch, "requests.json")
    with open(path, "w", encoding="utf-8") as stream:
        json.dump(requests, stream)
    done = subprocess.run(
        [python, os.path.join(HERE, "klr_trace.py"), path], capture_output=True, text=True,
        timeout=1800, stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.path.join(HERE, "stub"),
             "PYTHONDONTWRITEBYTECODE": "1"})
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if len(answers) != len(requests):
        raise RuntimeError(f"the tracer's driver ended early: {_last_line(done.stderr)}")
    return answers


class Judged:
    """One kernel on its way through the judge."""

    def __init__(self, manifest_path, scratch, at):
        from nki_emulator.errors import UsageError
        from nki_emulator.manifest import read_manifest
        self.path = manifest_path
        self.manifest = read_manifest(manifest_path)
        if self.manifest.file is None:
            raise UsageError(f"{manifest_path}: the manifest names no file")
        with open(manifest_path, encoding="utf-8") as stream:
            self.rows = json.load(stream)["args"]
        with open(self.manifest.file, encoding="utf-8") as stream:
            self.text = stream.read()
        self.dump = os.path.join(scratch, f"dump{at}.json")

    @property
    def name(self):
        return self.manifest.function

    def request(self):
        file = os.path.abspath(self.manifest.file)
        return {"folder": os.path.dirname(file),
                "module": os.path.splitext(os.path.basename(file))[0],
                "function": self.manifest.function, "dump": self.dump,
                "inputs": [[a.name, list(a.shape), a.dtype.name]
                           for a in self.manifest.inputs]}

    def _data(self, row):
        import numpy as np
        file = row.get("data")
        return None if file is None else np.load(
            os.path.join(os.path.dirname(self.path), file), allow_pickle=False)

    def inputs(self):
        """Arrays in their outside form: the manifest's data, or small positive integers."""
        import numpy as np
        from nki_emulator.dtype import cast, to_outside
        rng = np.random.default_rng(5)
        arrays = []
        for row, argument in zip((r for r in self.rows if r["role"] == "input"),
                                 self.manifest.inputs):
            array = self._data(row)
            if array is None:
                array = to_outside(cast(rng.integers(1, 4, argument.shape), argument.dtype),
                                   argument.dtype)
            arrays.append(array)
        return arrays

    def expected(self):
        """The manifest's results, where it has them."""
        return [self._data(r) for r in self.rows if r["role"] == "output"]


def _close(got, wanted, dtype):
    """Whether two results agree up to rounding of their type and of float32 sums."""
    import numpy as np
    if got.shape != wanted.shape:
        return False
    step = {"bfloat16": 2.0 ** -7, "float16": 2.0 ** -10}.get(dtype.name, 2.0 ** -15)
    scale = np.maximum(np.abs(wanted), np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0)
                       * 1e-3)
    with np.errstate(invalid="ignore"):
        same = np.abs(got - wanted) <= step * scale
    return bool((same | (got == wanted) | (np.isnan(got) & np.isnan(wanted))).all())


def _plain(array, dtype):
    import numpy as np
    from nki_emulator.dtype import from_outside
    return from_outside(array, dtype).astype(np.float64)


def _unknown_names(text):
    """Names of the interface the tracer met that our table does not have."""
    from dump import KNOWN
    from nki_emulator.api import api_names
    from nki_emulator.optable import ENUMS
    names, unknown = api_names(), []
    for line in text.splitlines():
        if "unknown NKI API" not in line:
            continue
        name = line.rpartition(" ")[2].strip()
        root, _, last = name.rpartition(".")
        family = [f for f in names["nisa"] if last.startswith(f + "_")]
        if root == "nki.isa" and last not in KNOWN and last != "tensor_scalar_" and not family and last not in ENUMS:
            unknown.append(name)
        if root == "nki.language" and last not in names["nl"]:
            unknown.append(name)
    return unknown


def _restore_numbers(calls, ours):
    """The tracer writes numbers with six decimals: those that agree so far get back the rest, which the replay needs."""
    for call, (_, _, constants) in zip(calls, ours):
        for key, value in constants:
            theirs = call.constants.get(key)
            if isinstance(value, float) and isinstance(theirs, float) and f"{value:.6f}" == f"{theirs:.6f}":
                call.constants[key] = value


def judge_one(kernel, answer):
    """None if the judge agrees with the emulator, else a sentence."""
    import dump
    import replay
    from nki_emulator.emulate import emulate
    if not answer["ok"]:
        return "the tracer refuses it:\n" + answer["text"].rstrip()
    unknown = _unknown_names(answer["text"])
    if unknown:
        return "names outside of the table: " + ", ".join(unknown)
    arrays = kernel.inputs()
    manifest = kernel.manifest
    result = emulate(kernel.text, arrays, manifest, target=manifest.target or "trn2",
                     path=manifest.file, ranges="warn")
    with open(kernel.dump, encoding="utf-8") as stream:
        calls, results = dump.calls_of(json.load(stream), answer["hbm"])
    _restore_numbers(calls, result.normal_form())
    found = dump.difference(result.normal_form(), dump.normal_form(
        calls, [a.name for a in manifest.inputs], results))
    if found:
        return "the traces differ: " + found
    inputs = {a.name: _plain(array, a.dtype) for a, array in zip(manifest.inputs, arrays)}
    replayed = replay.replay(calls, inputs, results)
    for at, (ours, theirs, dtype) in enumerate(zip(result.outputs, replayed,
                                                   result.output_types)):
        if not _close(_plain(ours, dtype), theirs, dtype):
            return f"result {at}: the replay differs from the emulator"
        wanted = kernel.expected()[at]
        if wanted is not None and not _close(theirs, _plain(wanted, dtype), dtype):
            return f"result {at}: the replay differs from the expected data"
    return None


def judge_comparison(kernel):
    """The comparison itself notices a lost call, a shifted range and another constant."""
    import dump
    from nki_emulator.emulate import emulate
    result = emulate(kernel.text, kernel.inputs(), kernel.manifest,
                     target=kernel.manifest.target or "trn2", path=kernel.manifest.file,
                     ranges="warn")
    ours = result.normal_form()
    op, operands, constants = ours[0]
    key, tensor, dtype, shape, ranges = operands[0]
    start, end, step = ranges[0]
    shifted = ((key, tensor, dtype, shape, ((start, end - 1, step), *ranges[1:])),
               *operands[1:])
    wrong = {"a lost call": ours[1:], "a lost last call": ours[:-1],
             "another operation": [("memset", operands, constants)] + ours[1:],
             "a shifted range": [(op, shifted, constants)] + ours[1:],
             "another constant": [(op, operands, (*constants, ("value", 1.0)))] + ours[1:]}
    if dump.difference(ours, list(ours)) is not None:
        return "equal traces are told apart"
    for sentence, changed in wrong.items():
        if dump.difference(ours, changed) is None:
            return f"{sentence} is not noticed"
    return None


def _outside_of_the_tracer(text):
    """A spelling the vendor takes and this tracer does not; None if there is none."""
    for spelling in (".reshape(",):
        if spelling in text:
            return f"{spelling[:-1]} is not in this tracer's language"
    return None


def judge_kernels(python, paths, scratch):
    """(number passed, number failed, number skipped); prints a line for each kernel."""
    kernels = [Judged(path, scratch, at) for at, path in enumerate(paths)]
    skipped = 0
    for kernel in list(kernels):
        reason = _outside_of_the_tracer(kernel.text)
        if reason:
            print(f"skipped {kernel.name}: {reason}")
            kernels.remove(kernel)
            skipped += 1
    answers = trace_all(python, [k.request() for k in kernels], scratch)
    failed = 0
    for kernel, answer in zip(kernels, answers):
        try:
            problem = judge_one(kernel, answer)
        except Exception as error:          # noqa: BLE001  (a judge reports, it does not die)
            problem = f"{type(error).__name__}: {error}"
        failed += problem is not None
        print(f"{'FAILED' if problem else 'passed'} {kernel.name}" +
              (f": {problem}" if problem else ""))
    return len(kernels) - failed, failed, skipped


def judge_planted(python, scratch):
    """Planted errors are refused and the kernel without them accepted."""
    from planted import PLANTED, text_with
    requests = []
    for at, hole in enumerate([{}] + [hole for _, hole in PLANTED]):
        with open(os.path.join(scratch, f"planted{at}.py"), "w", encoding="utf-8") as stream:
            stream.write(text_with(hole))
        requests.append({"folder": scratch, "module": f"planted{at}", "function": "k",
                         "inputs": [["a", [8, 8], "float32"]],
                         "dump": os.path.join(scratch, f"planted{at}.json")})
    answers = trace_all(python, requests, scratch)
    if not answers[0]["ok"]:
        print("FAILED planted: the kernel without an error is refused:\n" + answers[0]["text"])
        return 0, 1
    failed = 0
    for (sentence, _), answer in zip(PLANTED, answers[1:]):
        if answer["ok"]:
            print(f"FAILED planted: {sentence} is accepted")
            failed += 1
    example = os.path.join(ROOT, "tests", "emulator", "kernels", "pair_energy.json")
    problem = judge_comparison(Judged(example, scratch, 0))
    if problem:
        print(f"FAILED comparison: {problem}")
        return len(PLANTED) - failed, failed + 1
    print(f"planted errors: {len(PLANTED) - failed} of {len(PLANTED)} refused")
    return len(PLANTED) - failed, failed


def main():
    parser = argparse.ArgumentParser(description="Judge kernels with klr-lang " + VERSION)
    parser.add_argument("--no-planted", action="store_true")
    parser.add_argument("manifests", nargs="*", metavar="MANIFEST.json")
    options = parser.parse_args()
    sys.dont_write_bytecode = True
    sys.path[:0] = [HERE, os.path.join(ROOT, "runtime")]
    try:
        import numpy                                  # noqa: F401  (asked for only)
    except ImportError:
        print("skipped: NumPy is not installed (python3-numpy)")
        return SKIPPED
    from nki_emulator.errors import FileError, UsageError
    paths = options.manifests or sorted(glob.glob(
        os.path.join(ROOT, "tests", "emulator", "kernels", "*.json")))
    try:
        python = judge_python()
        with tempfile.TemporaryDirectory() as scratch:
            passed, failed, skipped = judge_kernels(python, paths, scratch)
            if not options.no_planted:
                more, bad = judge_planted(python, scratch)
                passed, failed = passed + more, failed + bad
    except Skip as reason:
        print(f"skipped: {reason}")
        return SKIPPED
    except (UsageError, FileError) as error:
        print(f"judge: {error}", file=sys.stderr)
        return 2
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    if failed:
        return 1
    return 0 if passed else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
