# SPDX-License-Identifier: Apache-2.0
"""Command line of the emulator.

    run.py KERNEL.py [--function NAME] [--manifest M.json] [--target trn2]
           --in A.npy ... [--in-dtype PARAM=bfloat16] --out R.npy ... [--raw] [--synthetic]
           [--report text|json] [--report-file F] [--trace T.json] [--timeline T.json]
           [--max-instructions N] [--ranges error|warn] [--lnc 1|2]

Arrays are .npy files, given in the order of parameters and of results. bfloat16 travels as its
bit pattern in uint16; a manifest (see manifest.py) or --in-dtype says that it is one. Where the
manifest says that an argument is the parts of complex numbers, the file may hold either; with a
complex one among the inputs, such results are written as complex numbers. With a
manifest, KERNEL.py may be '-': the manifest's `file` is run, or its parts. The report goes to standard
output unless --report-file names a file. --trace is the list of calls (trace.py), --timeline the
predicted schedule of the engines for Perfetto (timeline.py). Outputs are written all or none.

With --raw, files are the bare elements, little-endian and row-major, in the types and shapes of
the manifest (which is then needed): what a C program writes without a header. With --synthetic
there are no --in files: inputs are small positive integers, for a report or a trace alone.

Exit status: 0 done, 1 a rule was broken (standard error names file, line, rule and operation),
2 usage or an array that does not fit the kernel, 3 a file that cannot be read or written.
"""

import argparse
import json
import math
import os
import re
import sys


def _package():
    """Import the package this file lies in, also when run as a script."""
    here = os.path.dirname(os.path.abspath(__file__))
    above = os.path.dirname(here)
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != here]
    if above not in sys.path:
        sys.path.append(above)


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        raise SystemExit(_complain(2, message + "\n" + self.format_usage().rstrip()))


def _complain(status, message):
    sys.stderr.write(f"nki_emulator: {message}\n")
    return status


def _parser():
    parser = _Parser(prog="run.py", description="Emulate an NKI kernel under strict rules.",
                     allow_abbrev=False)
    parser.add_argument("kernel")
    parser.add_argument("--function")
    parser.add_argument("--manifest")
    parser.add_argument("--target", help="trn1, trn2 (default) or trn3")
    parser.add_argument("--in", dest="inputs", action="append", default=[], metavar="A.npy")
    parser.add_argument("--in-dtype", dest="types", action="append", default=[],
                        metavar="PARAM=TYPE")
    parser.add_argument("--out", dest="outputs", action="append", default=[], metavar="R.npy")
    parser.add_argument("--raw", action="store_true")
    parser.add_argument("--synthetic", action="store_true")
    parser.add_argument("--as-device", action="store_true", help="float64 results stay two float32 each")
    parser.add_argument("--report", choices=("text", "json"))
    parser.add_argument("--report-file")
    parser.add_argument("--trace")
    parser.add_argument("--timeline")
    parser.add_argument("--max-instructions", type=int, default=20000)
    parser.add_argument("--lnc", type=int, choices=(1, 2), help="cores (default: the manifest's)")
    parser.add_argument("--ranges", choices=("error", "warn"), default="error")
    return parser


def _read_text(path):
    from nki_emulator.errors import FileError
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read()
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}")
    except UnicodeDecodeError:
        raise FileError(f"{path}: not UTF-8")


def _read_array(path):
    import numpy as np
    from nki_emulator.errors import FileError
    try:
        array = np.load(path, allow_pickle=False)
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}")
    except (ValueError, EOFError) as error:
        raise FileError(f"{path}: no .npy array: {error}")
    if not isinstance(array, np.ndarray):
        raise FileError(f"{path}: no .npy array")
    return array


def _read_raw(path, argument):
    """The bare elements of a manifest's input."""
    import numpy as np
    from nki_emulator.errors import FileError, UsageError
    try:
        with open(path, "rb") as stream:
            data = stream.read()
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}")
    dtype = argument.dtype.outside.newbyteorder("<")
    wanted = math.prod(argument.shape) * dtype.itemsize
    if len(data) != wanted:
        raise UsageError(f"{path}: {len(data)} bytes, '{argument.name}' has {wanted}")
    return np.frombuffer(data, dtype).reshape(argument.shape).astype(argument.dtype.outside)


def _synthetic(manifest):
    """Small positive integers for every input of a manifest."""
    import numpy as np
    from nki_emulator.dtype import cast, to_outside
    rng = np.random.default_rng(1)
    return [to_outside(cast(rng.integers(1, 4, a.shape), a.dtype), a.dtype)
            for a in manifest.inputs]


def _inputs(options, manifest):
    from nki_emulator.errors import UsageError
    if (options.raw or options.synthetic) and manifest is None:
        raise UsageError("--raw and --synthetic need a manifest")
    if options.synthetic:
        if options.inputs:
            raise UsageError("--synthetic takes no --in files")
        return _synthetic(manifest)
    if not options.raw:
        return [_read_array(p) for p in options.inputs]
    if len(options.inputs) != len(manifest.inputs):
        raise UsageError(f"{len(options.inputs)} --in files for {len(manifest.inputs)} inputs")
    return [_read_raw(p, a) for p, a in zip(options.inputs, manifest.inputs)]


def _writer(options, array):
    import numpy as np
    if options.raw:
        return lambda stream: stream.write(
            np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes())
    return lambda stream: np.save(stream, array, allow_pickle=False)


def _write_all(files):
    """Write (path, write function) pairs, all or none: temporary files renamed at the end."""
    from nki_emulator.errors import FileError
    made = []
    try:
        for path, write in files:
            temporary = f"{path}.tmp{os.getpid()}"
            made.append((temporary, path))
            with open(temporary, "wb") as stream:
                write(stream)
        for temporary, path in made:
            os.replace(temporary, path)
    except OSError as error:
        for temporary, _ in made:
            if os.path.exists(temporary):
                os.unlink(temporary)
        raise FileError(f"{path}: {error.strerror or error}")


def _types(pairs):
    from nki_emulator.errors import UsageError
    types = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name or not value:
            raise UsageError(f"--in-dtype {pair}: PARAM=TYPE is needed")
        types[name] = value
    return types


def _run_parts(options, manifest):
    from nki_emulator.cost import cost_text
    from nki_emulator.errors import UsageError
    from nki_emulator.manifest import as_caller
    from nki_emulator.parts import emulate_parts
    if options.max_instructions < 1:
        raise UsageError("--max-instructions is at least 1")
    result = emulate_parts(manifest, _inputs(options, manifest),
                           options.target or manifest.target or "trn2",
                           options.max_instructions, options.ranges)
    report = ""
    if options.report == "json":
        report = json.dumps(result.report(), indent=1) + "\n"
    elif options.report == "text":
        report = "".join(f"part {at + 1} of {len(result.results)}:\n" +
                         cost_text(r.cost, r.memory) for at, r in enumerate(result.results))
    trace = {"kernel": result.kernel, "parts": [
        {"kernel": r.kernel, "results": r.result_serials, "calls": r.records}
        for r in result.results]}
    outputs = [as_caller(x, a) if a.words and not options.as_device else x for x, a in zip(result.outputs, manifest.outputs)]
    return _deliver(options, result, result.results, outputs, report, trace)


def _joined(warnings):
    """Those of one line and rule, as of an instruction in a loop, are told once."""
    alike = {}
    for warning in warnings:
        alike.setdefault(warning.partition("] ")[0], []).append(warning)
    for same in alike.values():
        yield same[0] + (f"; and {len(same) - 1} more of this line" if len(same) > 1 else "")


def _deliver(options, result, programs, outputs, report, trace):
    """Write results, trace and report, all or none."""
    from nki_emulator.errors import UsageError
    from nki_emulator.timeline import timeline
    if options.outputs and len(options.outputs) != len(result.outputs):
        raise UsageError(f"{len(options.outputs)} --out files for "
                         f"{len(result.outputs)} results")
    files = [(p, _writer(options, o)) for p, o in zip(options.outputs, outputs)]
    if options.trace:
        files.append((options.trace, lambda stream: stream.write(json.dumps(trace).encode())))
    if options.timeline:
        files.append((options.timeline, lambda stream: stream.write(json.dumps(timeline(programs)).encode())))
    if options.report_file:
        files.append((options.report_file, lambda stream: stream.write(report.encode())))
    _write_all(files)
    for warning in _joined(result.warnings):
        sys.stderr.write(f"warning: {warning}\n")
    if report and not options.report_file:
        sys.stdout.write(report)
    return 0


def _run(options):
    from nki_emulator.cost import cost_text
    from nki_emulator.emulate import emulate
    from nki_emulator.errors import UsageError
    from nki_emulator.manifest import as_caller, as_device, read_manifest
    manifest = read_manifest(options.manifest) if options.manifest else None
    path = options.kernel
    if path == "-" and manifest is not None and manifest.parts:
        return _run_parts(options, manifest)
    if path == "-":
        if manifest is None or manifest.file is None:
            raise UsageError("'-' needs a manifest with a 'file'")
        path = manifest.file
    if manifest is not None and options.function not in (None, manifest.function):
        raise UsageError(f"--function {options.function}, the manifest has {manifest.function}")
    if options.max_instructions < 1:
        raise UsageError("--max-instructions is at least 1")
    target = options.target or (manifest.target if manifest else None) or "trn2"
    text = _read_text(path)
    arrays = _inputs(options, manifest)
    whole = manifest is not None and any(a.dtype.kind == "c" for a in arrays)
    if whole:
        arrays = [as_device(x, a) for x, a in zip(arrays, manifest.inputs)] + \
            arrays[len(manifest.inputs):]
    result = emulate(text, arrays, manifest, options.function, target, path,
                     _types(options.types), options.max_instructions, options.ranges,
                     options.lnc)
    outputs = result.outputs
    if manifest is not None:
        outputs = [as_caller(x, a) if whole or (a.words and not options.as_device) else x for x, a in zip(outputs, manifest.outputs)]
    report = ""
    if options.report == "json":
        report = json.dumps(result.report(), indent=1) + "\n"
    elif options.report == "text":
        report = cost_text(result.cost, result.memory)
    return _deliver(options, result, [result], outputs, report, {
        "kernel": result.kernel, "results": result.result_serials, "calls": result.records,
        **({"cores": result.programs} if len(result.programs) > 1 else {})})


def _statement(error):
    """What of the source the line at fault computes, as tdslc says in comments; the generated file may be gone soon."""
    try:
        with open(error.path, encoding="utf-8") as file:
            lines = file.read().split("\n")
    except (OSError, TypeError, ValueError):
        return ""
    made = next((m for m in map(re.compile(r"Made from (\S+) by tdslc").match, lines[:8]) if m), None)
    said = [m for m in map(re.compile(r"\s*# line (\d+): (.*)").match, lines[:error.line or 0]) if m]
    if made is None or not said:
        return ""
    return f"\n  in {made.group(1)}:{said[-1].group(1)}: {said[-1].group(2)}"


def main(arguments=None):
    """Run the command line; returns the exit status."""
    _package()
    try:
        import numpy                                     # noqa: F401  (asked for, used below)
    except ImportError:
        return _complain(3, "NumPy is needed (python3-numpy)")
    from nki_emulator.errors import FileError, RuleError, UsageError
    try:
        return _run(_parser().parse_args(arguments))
    except RuleError as error:
        return _complain(1, str(error) + _statement(error))
    except UsageError as error:
        return _complain(2, str(error))
    except FileError as error:
        return _complain(3, str(error))


if __name__ == "__main__":
    sys.exit(main())
