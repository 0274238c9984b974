# SPDX-License-Identifier: Apache-2.0
"""Caches of compiled code that others made and this process only reads: the folders of TDSL_CACHE_PATH, each what was a TDSL_CACHE_DIR."""
import os
import stat

from ._errors import SlowWarning, warn

_told = set()


def folders():
    """Those that the variable names."""
    return [os.path.abspath(f) for f in os.environ.get("TDSL_CACHE_PATH", "").split(os.pathsep) if f]


def _why_not(path, owners):
    """Why somebody else than `owners` could change what a path leads to, or None."""
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        return f"{path} is a link"
    if status.st_uid not in owners:
        return f"{path} belongs to user {status.st_uid}"
    if status.st_mode & 0o022 and not (stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX):
        return f"{path} can be written by others"
    return None


def _wrong(folder, entry):
    """The first thing on the way to an entry that others could change. The owner of the folder that the user named is trusted, as root is, and the user."""
    owners = {0, os.getuid(), os.stat(folder).st_uid}
    path, above = folder, []
    while path != os.path.dirname(path):
        path = os.path.dirname(path)
        above.append(path)
    inside = [folder, os.path.dirname(entry), entry, *(os.path.join(entry, name) for name in ("meta.json", "kernel.so"))]
    return next(filter(None, (_why_not(p, owners) for p in [*reversed(above), *inside])), None)


def find(format, name):  # noqa: A002
    """The path of an entry that may be loaded, or None; one that may not is told of once, and compiled anew."""
    for folder in folders():
        entry = os.path.join(folder, format, name)
        if not os.path.isfile(os.path.join(entry, "kernel.so")):
            continue
        try:
            wrong = _wrong(folder, entry)
        except OSError as error:
            wrong = f"{error.filename}: {error.strerror}"
        if wrong is None:
            return entry
        if folder not in _told:
            _told.add(folder)
            warn(f"the cache {folder} of TDSL_CACHE_PATH is not read: {wrong}", SlowWarning)
    return None
