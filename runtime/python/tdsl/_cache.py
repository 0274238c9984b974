# SPDX-License-Identifier: Apache-2.0
"""Compiled C on disk.

Below the folder, an entry is a folder named by the SHA-256 of what it is made from: the C text, the compiler (its path, size
and time), its flags. It holds kernel.c, kernel.so and meta.json, is written aside and published by one rename, so that a reader
sees all of it or nothing, and is used only if the SHA-256 of kernel.so is the one in meta.json.
"""
from __future__ import annotations

import atexit
import ctypes
import os
import shutil
import stat
import time

from . import _process, _progress
from ._errors import CCompilerError, Error, SlowWarning, warn
from ._locks import Lock

FORMAT = "v1"
_LIMIT = 1 << 30
_STALE = 3600  # seconds after which what a killed process left is removed
_lock = Lock()
_private = None  # a folder of this process, where there is no other
_counts = {"hits": 0, "compiled": 0}
_told: set[str] = set()


def compiler():
    """The C compiler and its first flags, or None: TDSL_CC, CC, cc, gcc, clang, tcc."""
    for variable in ("TDSL_CC", "CC"):
        words = os.environ.get(variable, "").split()
        if words:
            found = shutil.which(words[0])
            if found is None and variable == "TDSL_CC":
                if required():
                    raise CCompilerError(f"TDSL_CC is {words[0]}, which is not a program, and TDSL_REQUIRE_CC is set")
                return None
            if found is not None:
                return [found, *words[1:]]
    for name in ("cc", "gcc", "clang", "tcc"):
        found = shutil.which(name)
        if found is not None:
            return [found]
    if required():
        raise CCompilerError("there is no C compiler, and TDSL_REQUIRE_CC is set")
    return None


def required():
    """Does the user refuse to run without a C compiler?"""
    return os.environ.get("TDSL_REQUIRE_CC", "0") not in ("", "0")


def warn_once(what, message):
    """SlowWarning, once in a process for each `what`."""
    with _lock:
        known = what in _told
        _told.add(what)
    if not known:
        warn(message, SlowWarning)


def _limit():
    """TDSL_CACHE_BYTES, a number that may end in K, M, G or T, of 1024 each."""
    import re
    text = os.environ.get("TDSL_CACHE_BYTES", "").strip()
    read = re.fullmatch(r"(\d{1,18})\s*(?:([kmgt])(?:i?b)?)?", text, re.I | re.A)
    if read is None:
        if text:
            warn_once("bytes", f"TDSL_CACHE_BYTES is {text!r}, which is no number of bytes (1073741824, 1024M, 1G): it is taken as 1G")
        return _LIMIT
    return int(read[1]) << 10 * " kmgt".index((read[2] or " ").lower())


def _is_ours(folder):
    status = os.stat(folder, follow_symlinks=False)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and status.st_mode & 0o077 == 0


def folder():
    """Where entries are: TDSL_CACHE_DIR, else tdsl in XDG_CACHE_HOME or ~/.cache; a private one where that cannot be."""
    global _private
    if _private is not None and _private[1] == os.getpid():
        return _private[0]
    top = os.environ.get("TDSL_CACHE_DIR")
    if not top:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        top = os.path.join(home, "tdsl")
    path = os.path.join(os.path.abspath(top), FORMAT)
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            pass
        if _is_ours(path) and os.access(path, os.W_OK | os.X_OK):
            return path
        why = "is not a folder of this user alone"
    except OSError as error:
        why = error.strerror
    return _private_folder(path, why)


def _private_folder(path, why):
    """A folder for this process, as `path` cannot be used: `why`. Error where that cannot be made either."""
    global _private
    import tempfile
    with _lock:
        if _private is None or _private[1] != os.getpid():
            try:
                _private = (tempfile.mkdtemp(prefix="tdsl-"), os.getpid())
            except OSError as error:
                raise Error(f"compiled code can be kept nowhere: {path} {why}, and a temporary folder cannot be made: {error.strerror}") from None
            atexit.register(_remove, *_private)
    warn_once("folder", f"{path} {why}: what is compiled is kept for this process only")
    return _private[0]


def _remove(path, process):
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)


def _digest(path):
    import hashlib
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def _load(entry, shared=False):
    """The library of an entry that is whole, or None; shared: one that is only read, whose owner was looked at."""
    import json
    try:
        with open(os.path.join(entry, "meta.json"), encoding="utf-8") as f:
            meta = json.load(f)
        path = os.path.join(entry, "kernel.so")
        if (shared or _is_ours(entry)) and _digest(path) == meta["sha256"]:
            library = ctypes.CDLL(path)
            if not shared:
                os.utime(entry)
            return library
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def _compile(command, text, aside):
    import json
    import tempfile
    with open(os.path.join(aside, "kernel.c"), "w", encoding="utf-8") as f:
        f.write(text)
    path = os.path.join(aside, "kernel.so")
    # the compiler's own files go with the folder, whatever ends it
    with tempfile.TemporaryDirectory(dir=aside) as own, _progress.Compiling() as tick:
        status, _, messages, _ = _process.run([*command, "-shared", "-fPIC", "-o", path, os.path.join(aside, "kernel.c"), "-lm"],
                                              env={**os.environ, "TMPDIR": own}, tick=tick)
    if status != 0:
        raise CCompilerError(f"{' '.join(command)}: exit status {status}\n{messages}".rstrip())
    os.chmod(path, 0o600)
    meta = {"sha256": _digest(path), "command": command}
    with open(os.path.join(aside, "meta.json"), "w", encoding="utf-8") as f:
        json.dump(meta, f)


def _publish(aside, entry):
    """One rename. What another process has published meanwhile stands, unless it is damaged."""
    for _ in range(8):
        try:
            os.rename(aside, entry)
            return
        except OSError:
            if _load(entry) is not None:
                return
            _discard(entry)


def _discard(entry):
    """An entry is moved away at once, and then removed."""
    import tempfile
    gone = tempfile.mkdtemp(prefix="tmp-", dir=os.path.dirname(entry))
    try:
        os.rename(entry, os.path.join(gone, "entry"))
    except OSError:
        pass
    shutil.rmtree(gone, ignore_errors=True)


def _size(entry):
    total = 0
    try:
        for f in os.scandir(entry):
            total += f.stat(follow_symlinks=False).st_size
    except OSError:
        pass
    return total


def _entries(top):
    """(time of last use, size, path) of entries; what killed processes left is removed."""
    found = []
    for e in os.scandir(top):
        try:
            used = e.stat(follow_symlinks=False).st_mtime
        except OSError:
            continue
        if len(e.name) == 64:
            found.append((used, _size(e.path), e.path))
        elif e.name.startswith("tmp-") and used < time.time() - _STALE:
            shutil.rmtree(e.path, ignore_errors=True)
    return sorted(found)


def _evict(top, keep):
    """Entries that were not used for longest go, until the rest is within the limit."""
    entries = _entries(top)
    total, limit = sum(size for _, size, _ in entries), _limit()
    for _, size, path in entries:
        if total <= limit:
            break
        if path != keep:
            _discard(path)
            total -= size


def has_complex(cc):
    """Does a C compiler have the complex numbers of C, which tcc has not?"""
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "complex.c")
        with open(path, "w", encoding="utf-8") as f:
            f.write("#include <complex.h>\ndouble f(double x) { double _Complex z = x; return creal(z * z); }\n")
        return _process.run([*cc, "-w", "-c", "-o", path + ".o", path])[0] == 0


_no_openmp: set[tuple[str, ...]] = set()  # C compilers


def library(text, cc, openmp):
    """The loaded library of a C text, with OpenMP if that is asked for and the C compiler has it."""
    if openmp and tuple(cc) not in _no_openmp:
        try:
            return _library(text, cc, True)
        except (CCompilerError, OSError):
            made = _library(text, cc, False)  # its faults are those of the text
            _no_openmp.add(tuple(cc))
            return made
    return _library(text, cc, False)


def _library(text, cc, openmp):
    """Compiled at most once for all processes of this user."""
    import hashlib
    import json
    program = os.stat(cc[0])
    flags = [*cc[1:], *os.environ.get("TDSL_CFLAGS", "-O2").split(), "-w"] + (["-fopenmp"] if openmp else [])
    key = json.dumps([FORMAT, os.path.realpath(cc[0]), program.st_size, program.st_mtime_ns, flags])
    name = hashlib.sha256(key.encode() + b"\0" + text.encode()).hexdigest()
    top = folder()
    loaded = _load(os.path.join(top, name))
    if loaded is None and os.environ.get("TDSL_CACHE_PATH"):
        from . import _shared
        entry = _shared.find(FORMAT, name)
        loaded = _load(entry, True) if entry is not None else None
    if loaded is not None:
        _counts["hits"] += 1
        return loaded
    try:
        return _make([cc[0], *flags], text, top, name)
    except _Unusable as first:
        if _private is not None and top == _private[0]:
            raise CCompilerError(f"{top} {first}, and there is no other folder for compiled code: TDSL_CACHE_DIR may name one") from None
        top = _private_folder(top, str(first))
    try:
        return _make([cc[0], *flags], text, top, name)
    except _Unusable as second:
        raise CCompilerError(f"{top} {second}, and there is no other folder for compiled code: TDSL_CACHE_DIR may name one") from None


class _Unusable(Exception):
    """A folder in which nothing can be made, or from which nothing can be loaded."""


def _is_full(top):
    """Can a file not be written there, or not all of it?"""
    import tempfile
    try:
        with tempfile.TemporaryFile(dir=top) as f:
            f.write(bytes(1 << 18))
            f.flush()
            os.fsync(f.fileno())
    except OSError:
        return True
    return False


def _make(command, text, top, name):
    """Compiles, loads and publishes an entry. _Unusable where that is for the folder."""
    import tempfile
    entry = os.path.join(top, name)
    try:
        aside = tempfile.mkdtemp(prefix="tmp-", dir=top)
    except OSError as error:
        raise _Unusable(f"cannot be written ({error.strerror})") from None
    try:
        _compile(command, text, aside)
        _counts["compiled"] += 1
        try:
            private = ctypes.CDLL(os.path.join(aside, "kernel.so"))  # whatever becomes of the entry
        except OSError as error:
            raise _Unusable(f"has code that cannot be loaded (mounted noexec? {error})") from None
        _publish(aside, entry)
    except OSError as error:
        raise _Unusable(f"cannot be written ({error.strerror})") from None
    except CCompilerError:
        if _is_full(top):
            raise _Unusable("cannot be written (No space left on device)") from None
        raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    _evict(top, entry)
    return private


def compiled():
    """How many kernels' files this process has compiled."""
    return _counts["compiled"]


def cache_info() -> dict[str, int | str]:
    """What is kept: the folder of compiled code, its entries and bytes, and since this process started how often code
    was found there (`hits`) and compiled; `calls`: einsums of strings, shapes and types that need no look there."""
    from . import _einsum
    top = folder()
    entries = _entries(top)
    return {"folder": top, "entries": len(entries), "bytes": sum(size for _, size, _ in entries), "limit": _limit(),
            "calls": len({id(plan) for plan in _einsum._plans.values()}), **_counts}


def cache_clear() -> None:
    """Forgets all that was compiled, on disk too. Kernels that are in use go on working."""
    from . import _einsum
    _einsum._forget()
    for _, _, path in _entries(folder()):
        _discard(path)
