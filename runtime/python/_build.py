# SPDX-License-Identifier: Apache-2.0
"""The build backend of the package: scikit-build-core, but for source distributions, and for what is said meanwhile.

The compiler lies outside of this folder, so a source distribution has the parts of the checkout that a wheel is built of, and a pyproject.toml that finds them. A
build compiles some hundred files of C; pip shows nothing of it, so it is said on the terminal, a line for each quarter (TDSL_PROGRESS=0: not at all).
"""
import contextlib
import gzip
import io
import os
import re
import sys
import tarfile
import tempfile
import threading
import time

from scikit_build_core import build as _backend
from scikit_build_core.build import *  # noqa: F403
from scikit_build_core.build import __all__  # noqa: F401

_HERE = os.path.dirname(os.path.abspath(__file__))
_TOP = os.path.normpath(os.path.join(_HERE, "..", ".."))
_PARTS = "CMakeLists.txt", "LICENSE", "README.md", "compiler", "docs", "grammar", "runtime"
_LEFT_OUT = {"__pycache__", ".mypy_cache", ".ruff_cache"}
_MADE_HERE = {"build", "dist"}  # by pip and build


class _Said:
    """Lines for who waits: on the terminal that pip runs on, else among what pip keeps for itself."""

    def __init__(self):
        self.out = None
        if os.environ.get("TDSL_PROGRESS") != "0":
            try:
                self.out = open("/dev/tty", "w", encoding="utf-8")
            except OSError:
                self.out = sys.stdout

    def line(self, text):
        if self.out is not None:
            print(f"{'' if self.out is sys.stdout else chr(10)}  tdsl: {text}", end="\n" if self.out is sys.stdout else "", file=self.out, flush=True)

    def close(self):
        if self.out is not None and self.out is not sys.stdout:
            print(file=self.out)
            self.out.close()


def _planned(folder):
    """How many files Ninja is to compile, or None: not known (yet)."""
    try:
        with open(os.path.join(folder, "build.ninja"), encoding="utf-8") as f:
            return sum(": C_COMPILER" in line for line in f) or None
    except OSError:
        return None


def _compiled(folder):
    return sum(name.endswith(".o") for _, _, names in os.walk(folder) for name in names)


def _follow(folder, said, over):
    """Says how many files are compiled, until `over`."""
    start, planned, quarter = time.monotonic(), None, 0
    while not over.wait(0.5):
        if planned is None:
            planned = _planned(folder)
            if planned is not None:
                cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
                said.line(f"compiling {planned} files of C on {cpus} CPU{'s' if cpus > 1 else ''}")
        else:
            share = 4 * _compiled(folder) // planned
            if quarter < share < 4:
                quarter = share
                said.line(f"{25 * quarter} % of {planned} files, {time.monotonic() - start:.0f} s")


@contextlib.contextmanager
def _told(config_settings):
    """The settings of a build that is followed; a build folder of their own stays theirs."""
    settings = dict(config_settings or {})
    said, over = _Said(), threading.Event()
    with tempfile.TemporaryDirectory(prefix="tdsl-build-") as made:
        folder = settings.setdefault("build-dir", made)
        said.line("building the compiler, the runtime and the module of Python: about a minute on two CPUs")
        thread = threading.Thread(target=_follow, args=(folder, said, over), daemon=True)
        start = time.monotonic()
        thread.start()
        try:
            yield settings
            said.line(f"built in {time.monotonic() - start:.0f} s")
        finally:
            over.set()
            thread.join()
            said.close()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """As scikit-build-core does it."""
    with _told(config_settings) as settings:
        return _backend.build_wheel(wheel_directory, settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """As scikit-build-core does it."""
    with _told(config_settings) as settings:
        return _backend.build_editable(wheel_directory, settings, metadata_directory)


def _files():
    """Paths below the top of the checkout, sorted."""
    for part in _PARTS:
        path = os.path.join(_TOP, part)
        if os.path.isfile(path):
            yield part
        for folder, folders, names in os.walk(path):
            folders[:] = sorted(f for f in folders if f not in _LEFT_OUT and not f.endswith(".egg-info") and not (folder == _HERE and f in _MADE_HERE))
            for name in sorted(names):
                if not name.endswith((".pyc", ".so", "~")):
                    yield os.path.relpath(os.path.join(folder, name), _TOP)


def _project():
    """pyproject.toml for the top of the archive, and the description of the package."""
    with open(os.path.join(_HERE, "pyproject.toml"), encoding="utf-8") as f:
        text = f.read()
    moved = text.replace('backend-path = ["."]', 'backend-path = ["runtime/python"]').replace('readme = "README.md"', 'readme = "runtime/python/README.md"')
    moved = moved.replace('cmake.source-dir = "../.."', 'cmake.source-dir = "."').replace('wheel.packages = ["tdsl"]', 'wheel.packages = ["runtime/python/tdsl"]')
    say = lambda name: re.search(rf'^{name} = "(.*)"', text, re.M)[1]
    with open(os.path.join(_HERE, "README.md"), encoding="utf-8") as f:
        about = f.read()
    head = [f"Metadata-Version: 2.1\nName: {say('name')}\nVersion: {say('version')}\nSummary: {say('description')}\nRequires-Python: {say('requires-python')}\n"
            "License: Apache-2.0\nDescription-Content-Type: text/markdown\n"]
    head += [f"Classifier: {c}\n" for c in re.findall(r'^    "(.* :: .*)",$', text, re.M)]
    return say("name"), say("version"), moved, "".join(head) + "\n" + about


def build_sdist(sdist_directory, config_settings=None):
    """An archive with the same bytes for the same files."""
    del config_settings
    name, version, project, about = _project()
    folder = f"{name}-{version}"
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as archive:
        def add(path, data, mode=0o644):
            info = tarfile.TarInfo(f"{folder}/{path}")
            info.size, info.mode, info.mtime = len(data), mode, 315532800  # 1980, the first year that a wheel can have
            archive.addfile(info, io.BytesIO(data))
        add("PKG-INFO", about.encode())
        add("pyproject.toml", project.encode())
        for path in _files():
            full = os.path.join(_TOP, path)
            with open(full, "rb") as f:
                add(path, f.read(), 0o755 if os.access(full, os.X_OK) else 0o644)
    with open(os.path.join(sdist_directory, f"{folder}.tar.gz"), "wb") as f:
        f.write(gzip.compress(made.getvalue(), mtime=0))
    return f"{folder}.tar.gz"
