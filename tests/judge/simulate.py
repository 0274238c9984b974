# SPDX-License-Identifier: Apache-2.0
"""The vendor's simulator as a judge: kernels through nki.simulate, where `nki` can be imported.

    simulate.py [MANIFEST.json ...]

Results of the simulator and of our emulator are compared on small integers. The package is
not on public indexes, so most machines skip: exit status 77 with the reason; 0 equal, 1 not.
A placeholder package called nki, or our own stub, counts as absent. Written from the vendor's
documentation and never run against the product by us.
"""

import glob
import importlib.util
import os
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
    if not hasattr(nki, "simulate"):
        return None, "the nki that is installed has no simulate"
    return nki, None


def simulate_one(nki, path):
    """None if simulator and emulator agree, else a sentence."""
    import numpy as np
    from judge import Judged, _close, _plain
    from nki_emulator.emulate import emulate
    kernel = Judged(path, os.curdir, 0)
    manifest = kernel.manifest
    if any(a.dtype.name == "bfloat16" for a in manifest.inputs):
        try:
            from ml_dtypes import bfloat16
        except ImportError:
            return "bfloat16 inputs need the package ml_dtypes"
    arrays = kernel.inputs()
    ours = emulate(kernel.text, arrays, manifest, target=manifest.target or "trn2",
                   path=manifest.file, ranges="warn")
    given = [a.view(bfloat16) if w.dtype.name == "bfloat16" else a
             for a, w in zip(arrays, manifest.inputs)]
    spec = importlib.util.spec_from_file_location(manifest.function, manifest.file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    theirs = nki.simulate(getattr(module, manifest.function))(*given)
    theirs = theirs if isinstance(theirs, (tuple, list)) else [theirs]
    if len(theirs) != len(ours.outputs):
        return f"{len(theirs)} results, the emulator has {len(ours.outputs)}"
    for at, (a, b, dtype) in enumerate(zip(ours.outputs, theirs, ours.output_types)):
        if not _close(_plain(a, dtype), np.asarray(b).astype(np.float64), dtype):
            return f"result {at} differs from the emulator's"
    return None


def main():
    sys.dont_write_bytecode = True
    nki, reason = vendor_package()
    if nki is None:
        print(f"skipped: {reason}")
        return SKIPPED
    sys.path[:0] = [HERE, os.path.join(ROOT, "runtime")]
    os.environ.setdefault("NEURON_PLATFORM_TARGET_OVERRIDE", "trn2")
    os.environ.setdefault("NKI_PRECISE_FP", "1")
    paths = sys.argv[1:] or sorted(glob.glob(
        os.path.join(ROOT, "tests", "emulator", "kernels", "*.json")))
    failed = 0
    for path in paths:
        problem = simulate_one(nki, path)
        failed += problem is not None
        print(f"{'FAILED' if problem else 'passed'} {path}" + (f": {problem}" if problem else
                                                               ""))
    print(f"{len(paths) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
