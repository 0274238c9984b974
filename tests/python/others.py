# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of other packages with this one in their place, and this one's tests against those packages. Not in the gate.

    python3 tests/python/others.py [numpy] [opt_einsum] [einops] [hooks]  # OTHERS_VERBOSE=1 shows each difference
    python3 tests/python/others.py trntensor=CHECKOUT                     # also trnblas, trnfft, trnsolver, trnsparse, cotengra, quimb

Each needs its package installed, and pytest; those whose tests are in no package need a checkout, and are skipped without. Printed are versions, and how
many tests passed and differed; a difference that is not in the table below, or one there that is gone, is a failure (docs/python.md says the same to users).
The libraries of trnsci are not imported: their names stand for tdsl's modules, once in C and once in the emulator, and tests of what is inside of them
are skipped.
"""
import collections
import glob
import importlib
import importlib.metadata
import os
import pkgutil
import subprocess
import sys
import types

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(HERE, "..", "..", "runtime", "python")

# The tests that differ, by how they begin, and why.
DIFFERENT = {
    "numpy": {
        "test_einsum_errors": "TypeError, not ValueError, for a call without operands",
        "test_einsum_specific_errors": "no order=",
        "test_output_order": "no order=: results are in C order",
        "test_einsum_object_errors": "no arrays of objects",
        "test_einsum_sums_object": "no arrays of objects",
        "test_object_loop": "no arrays of objects",
        "test_einsum_sums_longdouble": "no long double",
        "test_einsum_sums_clongdouble": "no long double",
        "test_different_paths[g]": "no long double",
        "test_different_paths[G]": "no long double",
        "test_einsum_views": "a new array, never a view",
        "test_einsum_0d_out": "an out of a narrower type is refused for any optimize=",
        "test_subscript_range": "labels above 51 are taken",
        "test_path_type_input_invalid": "ValueError, not RuntimeError, for a path that does not fit",
    },
    # every search by name is ours
    "opt_einsum path": {
        "test_jax_jit_gradient": "fails without us too, with a jax whose arrays have no .flat",
        "test_path_edge_cases[": "another order, of the same cost or less",
        "test_can_optimize_outer_products[": "another order, of the same cost or less",
        "test_optimal_edge_cases": "another order, under a memory limit",
        "test_greedy_edge_cases": "another order, under a memory limit",
        "test_dp_edge_cases_dimension_1": "another order: dimensions of extent 1 cost nothing",
        "test_dp_edge_cases_all_singlet_indices": "another order: dimensions of extent 1 cost nothing",
        "test_dp_errors_when_no_contractions_found": "an order is always found",
    },
    # einsum, tensordot and transpose are ours
    "opt_einsum backend": {
        "test_jax_jit_gradient": "fails without us too, with a jax whose arrays have no .flat",
    },
    # contract is ours
    "opt_einsum contract": {
        "test_jax_jit_gradient": "fails without us too, with a jax whose arrays have no .flat",
        "test_jax_with_constants[": "arrays of NumPy only",
        "test_torch_with_constants[": "arrays of NumPy only",
        "test_object_arrays_backend[": "no arrays of objects",
        "test_bad_path_option": "CompileError, a ValueError, not KeyError, for a search that there is not",
    },
    # numpy.einsum is ours
    "einops": {},
    # what cotengra contracts pairs of arrays of NumPy with is ours
    "cotengra": {},
    "quimb": {
        "TestTensorNetwork::test_draw": "fails without us too, where matplotlib is not installed",
    },
    "trntensor": {
        "TestPlan::test_complex_falls_to_torch": "the strategy is called \"einsum\"",
        "TestPlanStrategy::test_backend_reports_nki_or_pytorch": "the backend is called \"c\"",
    },
    "trntensor emulated": {
        "TestAoToMoTransformKTiling::test_oversize_raises": "no limit of extents",
        "TestXlaResidency::": "the emulator has no device memory",
    },
    "trnblas": {},
    "trnblas emulated": {
        "TestAutotuner::": "no autotuner: kernels are compiled for their extents",
        "test_nki_dispatches_without_fallback": "looks for a warning inside of the other package",
        "TestTrsmDispatch::": "trsm has no form for the device, and says so",
    },
    "trnfft": {
        "TestBF16Precision::": "no precision \"bf16\": the device multiplies f32",
    },
    "trnfft emulated": {
        "TestNKIFFT::test_kahan_": "\"kahan\" computes in f64, which the device has not",
        "TestKahanCharacterization::": "\"kahan\" computes in f64, which the device has not",
        "TestOzakiHQCharacterization::": "no precision \"ozaki_hq\": the device multiplies f32",
    },
    "trnsolver": {},
    "trnsolver emulated": {},
}


LIBRARIES = "trntensor", "trnblas", "trnfft", "trnsolver", "trnsparse"
CHECKOUTS = *LIBRARIES, "cotengra", "quimb"
TESTS = {"cotengra": ["test_interface.py"], "quimb": ["test_tensor/test_contract.py", "test_tensor/test_tensor_core.py"]}  # those that contract
# What their tests import from inside of them: modules, and names in modules that are here.
INSIDE = {
    "trntensor": (["nki._kernels"], {"plan": ["_greedy_path_search", "_parse_subscripts", "_validate_subscripts"], "quantum": ["_cpu_mp2_energy"],
                                     "nki.dispatch": ["_nki_mp2_energy", "_nki_ao_to_mo_transform"]}),
    "trnblas": (["nki", "nki.dispatch", "level3"], {}),
    "trnfft": (["fft_core", "stockham", "nki", "nki.multicore", "nki.dispatch", "nki.butterfly", "nki.stockham", "nki.autograd", "nn"], {}),
    "trnsolver": (["nki", "nki.dispatch", "eigen", "factor"], {}),
}


class Inside(types.ModuleType):
    """A module that is not here: tests that use something of it are skipped."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "HAS_NKI":
            return False
        return skipped(f"{self.__name__}.{name}")


def skipped(name):
    """A function in the place of one that is inside of another package."""
    import pytest

    def call(*_, **__):
        pytest.skip(f"{name} is inside of the other package")
    return call


def stand_in(library):
    """tdsl's module by the name of a library of trnsci, with all its modules."""
    whole = importlib.import_module(f"tdsl.{library}")
    sys.modules[library] = whole
    for found in pkgutil.walk_packages(getattr(whole, "__path__", []), whole.__name__ + "."):
        sys.modules[found.name[len("tdsl."):]] = importlib.import_module(found.name)
    modules, names = INSIDE.get(library, ([], {}))
    for name in modules:
        made = sys.modules[f"{library}.{name}"] = Inside(f"{library}.{name}")
        above, _, last = f"{library}.{name}".rpartition(".")
        setattr(sys.modules[above], last, made)
    for module, inside in names.items():
        for name in inside:
            setattr(sys.modules[f"{library}.{module}"], name, skipped(f"{library}.{module}.{name}"))


def replace(what):
    """Puts our functions where the tests look for theirs."""
    import tdsl
    if what in ("cotengra", "quimb"):
        module = importlib.import_module("cotengra.contract")  # where quimb contracts, too
        module.einsum, module.tensordot = tdsl.einsum, tdsl.tensordot
        return
    library = what.partition(" ")[0]
    if library in LIBRARIES:
        if what.endswith("emulated"):
            import tdsl._trnsci
            tdsl._trnsci._present.append(True)
        stand_in(library)
        return
    if what in ("numpy", "einops"):
        import numpy
        numpy.einsum = tdsl.einsum
        return
    import opt_einsum
    if what == "opt_einsum path":
        import tdsl.opt_einsum
        for name in opt_einsum.paths._PATH_OPTIONS:
            opt_einsum.paths._PATH_OPTIONS[name] = tdsl.opt_einsum.path
    elif what == "opt_einsum backend":
        for name in ("einsum", "tensordot", "transpose"):
            opt_einsum.backends.dispatch._cached_funcs[name, "numpy"] = getattr(tdsl, name)
    else:
        opt_einsum.contract = tdsl.contract


class Results:
    """What became of each test."""

    def __init__(self):
        self.passed, self.failed, self.skipped = [], [], []

    def pytest_runtest_logreport(self, report):
        name = report.nodeid.split("::", 1)[-1].replace("TestEinsumPath::", "").replace("TestEinsum::", "")
        if report.failed:
            self.failed.append(name)
        elif report.skipped:
            self.skipped.append(name)
        elif report.when == "call":
            self.passed.append(name)


def child(what, folder):
    """In a process of its own: the tests in `folder` with `what` replaced."""
    import pytest
    replace(what)
    results = Results()
    files = [os.path.join(folder, name) for name in TESTS[what]] if what in TESTS else [folder]
    chosen = ["--noconftest"]
    if what.partition(" ")[0] in LIBRARIES:
        chosen = ["-m", "neuron or nki_simulator" if what.endswith("emulated") else "not neuron and not nki_simulator"]
    shown = ["-q", "--tb=short", "-ra"] if os.environ.get("OTHERS_VERBOSE") else ["-p", "no:terminal"]
    pytest.main(["-p", "no:cacheprovider", "-p", "no:warnings", *chosen, "-c", os.devnull, "--rootdir", folder if os.path.isdir(folder) else os.path.dirname(folder), *shown, *files],
                plugins=[results])
    wrong, met = [], collections.Counter()
    for name in results.failed:
        start = next((s for s in DIFFERENT[what] if name.startswith(s)), None)
        met[start] += 1
        if start is None:
            wrong.append(name)
    gone = [start for start in DIFFERENT[what] if start not in met and any(name.startswith(start) for name in results.passed)]
    print(f"{what}: {len(results.passed)} passed, {len(results.failed)} differ, {len(results.skipped)} skipped")
    for name in wrong:
        print(f"  not in the table: {name}")
    for start in gone:
        print(f"  in the table, and does not differ: {start}")
    sys.exit(1 if wrong or gone or not results.passed else 0)


def version(package):
    """Of an installed package, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def run(arguments, **variables):
    """A Python program of ours; True if it ended well."""
    environment = dict(os.environ, **variables, PYTHONPATH=os.pathsep.join([PACKAGE, *filter(None, [os.environ.get("PYTHONPATH")])]))
    return subprocess.run([sys.executable, "-B", *arguments], env=environment, check=False).returncode in (0, 77)


def main():
    import numpy
    chosen = sys.argv[1:] or ["numpy", "opt_einsum", "einops", "hooks", *CHECKOUTS]
    unknown = [word for word in chosen if word.partition("=")[0] not in ("numpy", "opt_einsum", "einops", "hooks", *CHECKOUTS)]
    if unknown:
        sys.exit(f"{unknown[0]}: not numpy, opt_einsum, einops, hooks, or one of {', '.join(CHECKOUTS)} with =CHECKOUT")
    good = True
    print("versions:", ", ".join(f"{name} {version(name) or 'not installed'}"
                                 for name in ("numpy", "opt_einsum", "cotengra", "quimb", "einops", "torch", "jax", "pyscf", "ml_dtypes")), flush=True)
    if "numpy" in chosen:
        core = "_core" if hasattr(numpy, "_core") else "core"
        good &= run([__file__, "--child", "numpy", os.path.join(os.path.dirname(numpy.__file__), core, "tests", "test_einsum.py")])
    if "opt_einsum" in chosen:
        import opt_einsum
        for part in ("path", "backend", "contract"):
            good &= run([__file__, "--child", f"opt_einsum {part}", os.path.join(os.path.dirname(opt_einsum.__file__), "tests")])
    if "einops" in chosen:
        if version("einops") is None:
            print("einops: skipped: it is not installed")
        else:
            import einops
            good &= run([__file__, "--child", "einops", os.path.join(os.path.dirname(einops.__file__), "tests", "test_einsum.py")], EINOPS_TEST_BACKENDS="numpy")
    if "hooks" in chosen:
        for path in [os.path.join(HERE, f"test_{name}.py") for name in ("contract", "exchange", "trntensor")] + sorted(glob.glob(os.path.join(HERE, "test_hook_*.py"))):
            print(os.path.basename(path), flush=True)
            good &= run([path])
    for word in chosen:
        name, _, checkout = word.partition("=")
        if name not in CHECKOUTS:
            continue
        folder = os.path.join(checkout, "tests")
        if not checkout or not os.path.isdir(folder):
            print(f"{name}: skipped: {name}=CHECKOUT names a folder with its tests")
        elif name == "trnsparse":
            print(f"{name}: not run: there is no tdsl.trnsparse (docs/trnsparse.md)")
        elif name in LIBRARIES:
            good &= run([__file__, "--child", name, folder])
            good &= run([__file__, "--child", f"{name} emulated", folder], **{f"{name.upper()}_USE_SIMULATOR": "1"})
        else:
            good &= run([__file__, "--child", name, folder])
    return 0 if good else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    sys.exit(main())
