# SPDX-License-Identifier: Apache-2.0
"""Makes the virtual environment of the tests of hooks and judges, once, and adds what it lacks.

It lies in TDSL_TESTS_ENVIRONMENT, default ~/.cache/tdsl-tests, for all checkouts. Packages come by name from the index that pip is set up for. What
cannot be had is named with the reason, and the rest goes on: the tests that need it are skipped then. Says nothing where all is there.
"""
import fcntl
import glob
import json
import os
import re
import subprocess
import sys

FOLDER = os.environ.get("TDSL_TESTS_ENVIRONMENT") or os.path.expanduser("~/.cache/tdsl-tests")
PYTHON = os.path.join(FOLDER, "bin", "python")

# An MPI with the standard ABI of MPI 5, apart, so that mpi4py goes on with the system's.
MPI = os.path.join(FOLDER, "mpi-5")

# What is imported, and what pip is given for it, each line by a call of its own. torch's own list of dependencies has three gigabytes of libraries
# for GPUs, so those that a host needs are named here.
WANTED = [("numpy", ["numpy"]), ("opt_einsum", ["opt_einsum", "pytest"]), ("cotengra", ["cotengra"]), ("ml_dtypes", ["ml_dtypes"]), ("jax", ["jax"]), ("pyscf", ["pyscf"]), ("onnx", ["onnx"]),
          ("klr", ["klr-lang==0.0.9"]), ("mypy", ["mypy"]), ("mpi4py", ["mpi4py"]), ("matplotlib", ["matplotlib"]), ("mpich", ["--prefix", MPI, "--no-deps", "mpich>=5"]),
          ("torch", ["filelock", "typing-extensions", "setuptools", "sympy", "networkx", "jinja2", "fsspec"], ["--no-deps", "torch"])]


def run(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


def tried(name):
    """A package of Python is imported; MPI is no such."""
    return run(*([os.path.join(MPI, "bin", "mpicc_abi"), "-show"] if name == "mpich" else [PYTHON, "-c", f"import {name}"]))


def imports(name):
    return tried(name).returncode == 0


def last_line(text):
    return ([line.strip() for line in text.splitlines() if line.strip()] or ["no message"])[-1]


def stand_ins(folder):
    """Empty libraries in the place of CUDA's, without which torch cannot be loaded. On a host without a GPU nothing of them is called, but for the list of
    kernels that torch makes when it is loaded, and questions whether there is a GPU: every function returns 100, "no device", and of that list 0."""
    needed, versions, functions = set(), {}, set()
    for library in glob.glob(os.path.join(folder, "*.so")):
        text = run("objdump", "-p", library).stdout
        needed.update(re.findall(r"NEEDED +(lib(?:cu|nccl|nv)\S+)", text))
        for name, rest in re.findall(r"required from (\S+):\n((?:    0x.*\n)*)", text):
            versions.setdefault(name, set()).update(re.findall(r"\S+$", rest, re.M))
        functions.update(re.findall(r" [Uw] ((?:__cuda|cu|nccl|nv)[^@\s]*)", run("nm", "-D", "--undefined-only", library).stdout))
    source, script = os.path.join(folder, "stand_in.c"), os.path.join(folder, "stand_in.map")
    with open(source, "w", encoding="utf-8") as f:
        f.writelines(f"void *{name}(void) {{ return (void *){0 if name.startswith('__') else 100}; }}\n" for name in sorted(functions))
    for name in sorted(n for n in needed if not os.path.exists(os.path.join(folder, n))):
        with open(script, "w", encoding="utf-8") as f:
            f.writelines(f"{version} {{ *; }};\n" for version in sorted(versions.get(name, ())))
        done = run("gcc", "-shared", "-fPIC", "-w", f"-Wl,-soname={name}", "-o", os.path.join(folder, name), source,
                   *([f"-Wl,--version-script={script}"] if name in versions else []))
        if done.returncode != 0:
            return f"no stand-in for {name}: {last_line(done.stdout)}"
    return None


def install(name, *steps):
    """Why the package cannot be had, or None."""
    for words in steps:
        done = run(PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--retries", "1", *words)
        if done.returncode != 0:
            return last_line(done.stdout)
    if name == "torch" and not imports(name):
        (folder,) = glob.glob(os.path.join(FOLDER, "lib", "python*", "site-packages", "torch", "lib"))
        why = stand_ins(folder)
        if why:
            return why
    done = tried(name)
    return None if done.returncode == 0 else last_line(done.stdout)


def main():
    os.makedirs(os.path.dirname(FOLDER) or ".", exist_ok=True)
    stamp = os.path.join(FOLDER, "tdsl-tests.json")
    with open(FOLDER + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            with open(stamp, encoding="utf-8") as f:
                have = json.load(f)
        except (OSError, ValueError):
            have = []
        rows = [list(row) for row in WANTED]
        if not os.access(PYTHON, os.X_OK):
            have = []
        if have == rows:
            return 0
        print(f"Python packages of the tests go into {FOLDER}", file=sys.stderr, flush=True)
        if not have:
            done = run(sys.executable, "-m", "venv", "--clear", FOLDER)
            if done.returncode != 0:
                print(f"no virtual environment, so tests of hooks and judges are skipped: {last_line(done.stdout)}", file=sys.stderr)
                return 0
        kept = []
        for row in rows:
            why = None if row in have else install(*row)
            if why is None:
                kept.append(row)
            else:
                print(f"no {row[0]}, so what tests it is skipped: {why}", file=sys.stderr, flush=True)
            with open(stamp, "w", encoding="utf-8") as f:
                json.dump(kept, f)
    return 0


sys.exit(main())
