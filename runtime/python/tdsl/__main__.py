# SPDX-License-Identifier: Apache-2.0
"""`python -m tdsl`: what the package found on this machine, and whether a contraction works. Exit status 1 if it does not."""
import os
import subprocess
import sys
import time
import warnings

from . import __version__, _cache, _tools


def _first_line(*command):
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not run: {error}"
    return ((done.stdout or done.stderr).strip().splitlines() or [f"exit status {done.returncode}"])[0]


def _numpy():
    import numpy
    return f"{numpy.__version__} in {os.path.dirname(numpy.__file__)}"


def _tool(find):
    path = find()
    return f"{path}: {_first_line(path, '--version')}"


def _compiler():
    if _cache.compiler() is None:
        return "none: kernels are interpreted, hundreds of times slower (Debian: apt install gcc; or TDSL_CC=/path/of/cc)"
    words = _cache.compiler()
    return f"{' '.join(words)}: {_first_line(*words, '--version')}"


def _calls():
    from ._calls import fast
    if fast is not None:
        return f"by the C module {os.path.normpath(fast.__file__)}"
    why = "TDSL_NO_MODULE is set" if os.environ.get("TDSL_NO_MODULE", "0") not in ("", "0") else \
        "the C module needs CPython 3.11" if sys.version_info < (3, 11) or sys.implementation.name != "cpython" else \
        "the C module is not there: Python's headers, of Debian's python3-dev, were missing when the package was built"
    return f"by ctypes, some microseconds slower each; {why}"


def _kept():
    from . import cache_info
    kept = cache_info()
    return f"{kept['folder']}: {kept['entries']} entries, {kept['bytes'] / 1e6:.1f} of at most {kept['limit'] / 1e6:.0f} MB"


def _neuron():
    from . import _nki_devices
    try:
        return _nki_devices.framework(1).name
    except _nki_devices.Unavailable as error:
        why = str(error)
    try:
        _nki_devices.Emulator()
    except _nki_devices.Unavailable as error:
        return f"{why}; {error}"
    return f"{why}; the emulator is here"


def _environment():
    said = {name: value for name, value in sorted(os.environ.items()) if name.startswith("TDSL_") or name == "OMP_NUM_THREADS"}
    return ", ".join(f"{name}={value}" for name, value in said.items()) or "nothing"


def _try():
    import numpy as np

    from . import einsum
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    start = time.perf_counter()
    c = einsum("ij,jk->ik", a, b)
    took = time.perf_counter() - start
    if not np.array_equal(c, a @ b):
        raise ArithmeticError(f"einsum('ij,jk->ik') is wrong: {c.tolist()}")
    return f'tdsl.einsum("ij,jk->ik", A, B) is right, {took * 1e3:.1f} ms the first time'


def main():
    """Prints a line for each thing; a failure ends with what was wrong and where to read."""
    print(f"tdsl        {__version__} in {_tools.HERE}")
    print(f"Python      {sys.version.split()[0]}, {sys.executable}")
    failed = []
    for name, ask in (("NumPy", _numpy), ("tdslc", lambda: _tool(_tools.tdslc)), ("tdsl-run", lambda: _tool(_tools.tdsl_run)),
                      ("C compiler", _compiler), ("calls", _calls), ("cache", _kept), ("Trainium", _neuron), ("variables", _environment), ("a try", _try)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                said = ask()
            except Exception as error:  # noqa: BLE001  (all that may be wrong is to be told)
                said = f"FAILED: {error}"
                failed.append(name)
        print(f"{name:11} {said}")
    if failed:
        print(f"\nNot working: {', '.join(failed)}. docs/python.md, \"Files and caches\", has the variables that say where things are.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
