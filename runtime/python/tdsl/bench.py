# SPDX-License-Identifier: Apache-2.0
"""`python -m tdsl.bench`: what a call, an import and a first einsum cost here, beside NumPy and the bars that are promised.

--json prints the same as JSON; --wheel FILE adds that file's size; --check exits with 1 where a bar is missed.
"""
import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import timeit

_REPEAT = """#include <stddef.h>
#include <stdint.h>
typedef int32_t call_type(const int64_t *, void *const *, void *, size_t, const void *);
void tdsl_bench_repeat(call_type *call, const int64_t *dims, void *const *args, void *workspace, size_t bytes, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        (void)call(dims, args, workspace, bytes, NULL);
    }
}
"""
_PROGRAM = """kernel product(A: f64[m, k], B: f64[k, n], C: inout f64[m, n]) { C[i,j] = A[i,p] * B[p,j]; }
kernel returned(A: f64[m, k], B: f64[k, n]) -> (C: f64[m, n]) { C[i,j] = A[i,p] * B[p,j]; }
"""
_FIRST = """import time
import numpy as np
A, B = np.ones((30, 20)), np.ones((20, 10))
begin = time.perf_counter()
import tdsl
imported = time.perf_counter()
tdsl.einsum("ij,jk->ik", A, B)
print(imported - begin, time.perf_counter() - begin)
"""
_SEVERAL = """import time
import numpy as np
import tdsl
work = [(s, (20, 20, 20), (20, 20)) for s in "abc,cd->abd abc,cd->bad abc,db->acd abc,bd->acd abc,bd->adc abc,ad->bcd abc,ab->c abc,bc->a".split()]
begin = time.perf_counter()
if WARM:
    tdsl.warm(work)
for equation, *shapes in work:
    tdsl.einsum(equation, *map(np.ones, shapes))
print(time.perf_counter() - begin)
"""
_IMPORT = """import time
begin = time.perf_counter()
import tdsl
bare = time.perf_counter()
tdsl.einsum, tdsl.load
print(bare - begin, time.perf_counter() - begin)
"""


_is_quick = False  # a tenth of the measurements


def _microseconds(call, number=20000):
    """Of one call: the least of seven measurements."""
    number = number // 10 if _is_quick and number > 10 else number
    return min(timeit.repeat(call, number=number, repeat=7)) / number * 1e6


def _bare_kernel(kernel, arrays):
    """Microseconds of the kernel alone, called from C, or None where there is no C compiler."""
    from . import _cache
    cc = _cache.compiler()
    if cc is None:
        return None
    native = kernel._source.kernels(1)[kernel.name]
    dims = (ctypes.c_int64 * len(native.dims))(*[4] * len(native.dims))
    size = native.workspace([4] * len(native.dims), 1)
    space, pointers = ctypes.create_string_buffer(size + 1), (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
    library, n = _cache.library(_REPEAT, cc, False), 200000
    repeat = library.tdsl_bench_repeat
    repeat.argtypes = [ctypes.c_void_p] * 5 + [ctypes.c_int64]
    repeat.argtypes[4] = ctypes.c_size_t
    return _microseconds(lambda: repeat(native.address_of_call, dims, pointers, space, size, n), 1) / n


def calls():
    """Microseconds of each kind of call, in this process."""
    import numpy as np

    import tdsl

    from . import _calls
    a, b, c = np.random.default_rng(1).random((3, 4, 4))
    program = tdsl.compile(_PROGRAM)
    product, returned, einsum = program.product, program.returned, tdsl.einsum
    expression = tdsl.expression("ij,jk->ik", a, b)
    return {
        "module": _calls.fast is not None,
        "kernel_alone": _bare_kernel(product, (a, b, c)),
        "kernel": _microseconds(lambda: product(a, b, c)),
        "kernel_returns": _microseconds(lambda: returned(a, b)),
        "kernel_by_name": _microseconds(lambda: returned(A=a, B=b)),
        "expression": _microseconds(lambda: expression(a, b)),
        "expression_out": _microseconds(lambda: expression(a, b, out=c)),
        "einsum": _microseconds(lambda: einsum("ij,jk->ik", a, b)),
        "numpy_matmul": _microseconds(lambda: a @ b),
        "numpy_einsum": _microseconds(lambda: np.einsum("ij,jk->ik", a, b)),
        "lambda": _microseconds(lambda: None),
    }


def _of_numpy(ours, numpys):
    """(microseconds, NumPy's) of two calls, measured in turns."""
    pairs = []
    ours(), numpys()
    for _ in range(1 if _is_quick else 7):
        number = max(1, round(0.02 / max(timeit.timeit(numpys, number=1), 1e-6)))
        pairs.append([timeit.timeit(call, number=number) / number * 1e6 for call in (ours, numpys)])
    return min(p[0] for p in pairs), min(p[1] for p in pairs)


def views():
    """{what: (microseconds, NumPy's)} of einsums of views, which NumPy reads where they are."""
    import numpy as np

    import tdsl
    n = 200 if _is_quick else 2000
    a, x, small, wide = np.random.default_rng(1).random((n, n)), np.ones(n), np.ones((4, 4)).T, np.broadcast_to(np.ones(n), (n, n))
    y = np.ones(4)
    cases = {"ij,j->i of a transposed matrix": ("ij,j->i", a.T, x), "ij-> of a transposed matrix": ("ij->", a.T), "ij,j->i of every second row": ("ij,j->i", a[::2], x),
             "ij,j->i of half of the columns": ("ij,j->i", a[:, : n // 2], x[: n // 2]), "ij,j->i of every second column": ("ij,j->i", a[:, ::2], x[::2]),
             "ij,j->i of reversed rows": ("ij,j->i", a[::-1], x), "ij,ij->i with a broadcast factor": ("ij,ij->i", a, wide), "ij,j->i of a transposed 4x4": ("ij,j->i", small, y)}
    kernel = tdsl.compile("kernel f(A: f64[m, n], x: f64[n]) -> (y: f64[m]) { y[i] = A[i,j] * x[j]; }").f
    by_kernel = {"a kernel of a transposed matrix": _of_numpy(lambda: kernel(a.T, x), lambda: np.einsum("ij,j->i", a.T, x))}
    return by_kernel | {what: _of_numpy(lambda c=case: tdsl.einsum(*c), lambda c=case: np.einsum(*c)) for what, case in cases.items()}


def _of_torch():
    import torch

    import tdsl.torch
    a, b = torch.ones(4, 4), torch.ones(4, 4)
    x, y = a.clone().requires_grad_(), b.clone().requires_grad_()

    def back(einsum):
        def run():
            x.grad = y.grad = None
            einsum("ij,jk->ik", x, y).backward(a)
        return run
    forward = lambda einsum: lambda: einsum("ij,jk->ik", a, b)
    return {"tdsl.torch.einsum of 4x4": _of_numpy(forward(tdsl.torch.einsum), forward(torch.einsum)), "the same and backward()": _of_numpy(back(tdsl.torch.einsum), back(torch.einsum))}


def _of_jax():
    import jax
    import jax.numpy as jnp

    import tdsl.jax
    made = {}
    for n in 4, 64:
        x = jnp.ones((n, n))
        ours, theirs = (jax.jit(lambda a, e=e: e("ij,jk->ik", a, a)) for e in (tdsl.jax.einsum, jnp.einsum))
        made[f"tdsl.jax.einsum of {n}x{n} in jit"] = _of_numpy(lambda f=ours, x=x: f(x).block_until_ready(), lambda f=theirs, x=x: f(x).block_until_ready())
    return made


def hooks():
    """{package: {what: (microseconds, the package's own)}} of torch and jax, where they are installed."""
    from importlib.util import find_spec
    return {name: measured() for name, measured in (("torch", _of_torch), ("jax", _of_jax)) if find_spec(name)}


def _process(*arguments, **environment):
    top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = os.pathsep.join([top, *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, "PYTHONPATH": path, **environment}
    return subprocess.run([sys.executable, *arguments], env=env, check=True, stdout=subprocess.PIPE, text=True).stdout


def starts():
    """Milliseconds of imports and first calls, in processes of their own, without the import of NumPy."""
    imports = [tuple(map(float, _process("-c", _IMPORT).split())) for _ in range(1 if _is_quick else 7)]
    first, again = [], []
    for _ in range(1 if _is_quick else 3):
        with tempfile.TemporaryDirectory() as folder:
            first.append(float(_process("-c", _FIRST, TDSL_CACHE_DIR=folder).split()[1]))
            again += [float(_process("-c", _FIRST, TDSL_CACHE_DIR=folder).split()[1]) for _ in range(3)]
    several = []
    for warm in "WARM = False\n", "WARM = True\n":
        with tempfile.TemporaryDirectory() as folder:
            several.append(float(_process("-c", warm + _SEVERAL, TDSL_CACHE_DIR=folder)) * 1e3)
    return {"several": several[0], "several_warmed": several[1], "import": min(i[0] for i in imports) * 1e3, "import_parts": min(i[1] for i in imports) * 1e3, "first_einsum": min(first) * 1e3, "first_einsum_again": min(again) * 1e3}


def measure(wheel=None):
    """All numbers: {"calls": ..., "calls_ctypes": ..., "starts": ..., "views": ..., "hooks": ..., "wheel_bytes": ...}."""
    import platform

    import numpy as np
    found = {"python": platform.python_version(), "numpy": np.__version__, "machine": platform.machine(), "calls": calls(),
             "calls_ctypes": json.loads(_process("-m", "tdsl.bench", "--calls", *["--quick"] * _is_quick, TDSL_NO_MODULE="1")), "starts": starts(), "views": views(), "hooks": hooks()}
    found["wheel_bytes"] = os.path.getsize(wheel) if wheel else None
    return found


def rows(found):
    """(what, unit, value, bar, what NumPy's A @ B takes beside it or None)."""
    fast, slow, start = found["calls"], found["calls_ctypes"], found["starts"]
    table = []
    for name, c, bars in ("module", fast, (0.5, 1.5)), ("ctypes", slow, (8, 10)):
        if name == "module" and not c["module"]:
            continue
        alone, matmul = c["kernel_alone"], c["numpy_matmul"]
        beyond = lambda key, c=c, alone=alone: c[key] - (alone or 0) - c["lambda"]
        table += [(f"a kernel's checked call, three arrays, beyond the kernel ({name})", "us", beyond("kernel"), bars[0], matmul),
                  (f"the same, a new array returned ({name})", "us", beyond("kernel_returns"), bars[0], matmul),
                  (f"an expression, beyond the kernel ({name})", "us", beyond("expression"), bars[0], matmul),
                  (f"einsum of a string seen before ({name})", "us", c["einsum"] - c["lambda"], bars[1], matmul)]
    if fast["kernel_alone"]:
        table.append(("the kernel alone, 4x4x4", "us", fast["kernel_alone"], None, fast["numpy_matmul"]))
    table += [("numpy.einsum", "us", fast["numpy_einsum"] - fast["lambda"], None, fast["numpy_matmul"]),
              ("NumPy's A @ B", "us", fast["numpy_matmul"] - fast["lambda"], None, None), ("import tdsl", "ms", start["import"], 30, None),
              ("import tdsl and its parts", "ms", start["import_parts"], 30, None),
              ("first einsum of a new string", "ms", start["first_einsum"], 1000, None),
              ("the same in a new process", "ms", start["first_einsum_again"], 60, None),
              ("first einsums of eight strings, one after the other", "ms", start["several"], 8000, None),
              ("the same by tdsl.warm", "ms", start["several_warmed"], 8000, None)]
    table += [(f"{what}, of NumPy's time", "x", ours / numpys, 1.1, None) for what, (ours, numpys) in found["views"].items()]
    table += [(f"{what}, of {package}'s time", "x", ours / theirs, 1.2, None) for package, measured in found["hooks"].items() for what, (ours, theirs) in measured.items()]
    if found["wheel_bytes"]:
        table.append(("wheel", "MB", found["wheel_bytes"] / 1e6, 6, None))
    return table


def main():
    parser = argparse.ArgumentParser(prog="python -m tdsl.bench", description="What calls, imports and first einsums cost here.")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--wheel", metavar="FILE", help="the wheel whose size to state")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a bar is missed")
    parser.add_argument("--calls", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    global _is_quick
    _is_quick = options.quick
    if options.calls:
        print(json.dumps(calls()))
        return 0
    found = measure(options.wheel)
    table = rows(found)
    missed = [what for what, _, value, bar, _ in table if bar is not None and value > bar]
    if options.json:
        found["missed"] = missed
        print(json.dumps(found, indent=2))
    else:
        print(f"Python {found['python']}, NumPy {found['numpy']}, {found['machine']}; arrays of 4x4 f64; the least of seven measurements\n")
        print(f"{'':67}{'':>12}{'bar':>9}  of A @ B")
        for what, unit, value, bar, numpy in table:
            ratio = f"{value / numpy:8.2f} x" if numpy else ""
            print(f"{what:67}{value:9.2f} {unit}{'' if bar is None else f'<= {bar:g}':>9}{ratio}{'  MISSED' if what in missed else ''}")
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
