# SPDX-License-Identifier: Apache-2.0
"""The vendor's simulator as a judge: kernels through nki.simulate, where `nki` can be imported.

    simulate.py [MANIFEST.json ...]

Results of the simulator and of our emulator are compared on small integers. Each kernel has a
process of its own, since the simulator reads its target (NEURON_PLATFORM_TARGET_OVERRIDE) and
its precision (NKI_PRECISE_FP: 16-bit tiles hold 16 bits) when it is imported. The package is
not on public indexes, so most machines skip: exit status 77 with the reason; 0 equal, 1 not.
A placeholder package called nki, or our own stub, counts as absent. Written from the vendor's
documentation and never run against the product by us; test_simulate.py runs all of it with a
package that stands in for the vendor's.
"""

import glob
import importlib.util
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SKIPPED = 77


def vendor_package():
    """(module, None) or (None, reason)."""
    try:
        import nki
    except Exception as error:              # noqa: BLE001  (a placeholder raises what it likes)
        return None, f"nki cannot be imported: {type(error).__name__}: {error}"
    if not callable(getattr(nki, "simulate", None)):
        return None, "the nki that is installed has no simulate"
    return nki, None


def given_arrays(arrays, inputs):
    """Arrays as the simulator takes them: bfloat16 by the type that NumPy users have for it."""
    given = []
    for array, wanted in zip(arrays, inputs):
        if wanted.dtype.name == "bfloat16":
            import ml_dtypes
            array = array.view(ml_dtypes.bfloat16)
        given.append(array)
    return given


def load(manifest):
    """The kernel, from its file: the vendor's compiler reads the source text of the function."""
    name = "tdsl_kernel_" + manifest.function
    spec = importlib.util.spec_from_file_location(name, manifest.file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return getattr(module, manifest.function)


def simulate_one(nki, path):
    """None if simulator and emulator agree, else a sentence."""
    import numpy as np
    from judge import Judged, _close, _plain
    from nki_emulator.emulate import emulate
    kernel = Judged(path, os.curdir, 0)
    manifest = kernel.manifest
    arrays = kernel.inputs()
    ours = emulate(kernel.text, arrays, manifest, target=manifest.target or "trn2",
                   path=manifest.file, ranges="warn")
    made = load(manifest)
    made = made[manifest.lnc] if manifest.lnc > 1 else made     # as documented for LNC 2
    theirs = nki.simulate(made)(*given_arrays(arrays, manifest.inputs))
    theirs = theirs if isinstance(theirs, (tuple, list)) else [theirs]
    if len(theirs) != len(ours.outputs):
        return f"{len(theirs)} results, the emulator has {len(ours.outputs)}"
    for at, (a, b, dtype) in enumerate(zip(ours.outputs, theirs, ours.output_types)):
        if not _close(_plain(a, dtype), np.asarray(b).astype(np.float64), dtype):
            return f"result {at} differs from the emulator's"
    return None


def child(path):
    """One kernel (or, without a path, only the question whether there is a simulator)."""
    nki, reason = vendor_package()
    if nki is None:
        print(f"skipped: {reason}")
        return SKIPPED
    if path is None:
        return 0
    sys.path[:0] = [HERE, os.path.join(ROOT, "runtime")]
    try:
        problem = simulate_one(nki, path)
    except ImportError as error:
        print(f"skipped {path}: {error}")
        return SKIPPED
    except Exception as error:              # noqa: BLE001  (a simulator raises what it likes)
        problem = f"{type(error).__name__}: {error}"
    print(f"{'FAILED' if problem else 'passed'} {path}" + (f": {problem}" if problem else ""))
    return 1 if problem else 0


def target_of(path):
    with open(path, encoding="utf-8") as stream:
        return json.load(stream).get("target") or "trn2"


def start(*words, target="trn2"):
    env = {**os.environ, "NEURON_PLATFORM_TARGET_OVERRIDE": target, "NKI_PRECISE_FP": "1"}
    return subprocess.run([sys.executable, "-B", os.path.abspath(__file__), "--child", *words],
                          env=env, stdin=subprocess.DEVNULL, check=False).returncode


def main():
    if sys.argv[1:2] == ["--child"]:
        return child(sys.argv[2] if len(sys.argv) > 2 else None)
    if start() == SKIPPED:
        return SKIPPED
    paths = sys.argv[1:] or sorted(glob.glob(
        os.path.join(ROOT, "tests", "emulator", "kernels", "*.json")))
    status = [start(path, target=target_of(path)) for path in paths]
    passed, skipped = status.count(0), status.count(SKIPPED)
    failed = len(status) - passed - skipped
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0 if passed else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
