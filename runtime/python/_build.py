# SPDX-License-Identifier: Apache-2.0
"""The build backend of the package: scikit-build-core, but for source distributions. The compiler lies outside of this folder, so one has
the parts of the checkout that a wheel is built of, and a pyproject.toml that finds them."""
import gzip
import io
import os
import re
import tarfile

from scikit_build_core.build import *  # noqa: F403
from scikit_build_core.build import __all__  # noqa: F401

_HERE = os.path.dirname(os.path.abspath(__file__))
_TOP = os.path.normpath(os.path.join(_HERE, "..", ".."))
_PARTS = "CMakeLists.txt", "LICENSE", "README.md", "compiler", "docs", "grammar", "runtime"
_LEFT_OUT = {"__pycache__", ".mypy_cache", ".ruff_cache"}
_MADE_HERE = {"build", "dist"}  # by pip and build


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
