# SPDX-License-Identifier: Apache-2.0
"""Finds and runs tdslc and tdsl-run, and reads their messages."""
import os
import re
import shutil
import sys

from . import _process
from ._errors import CompileError, CompileWarning, Error, FileError, raise_position, warn as warn_caller

HERE = os.path.dirname(os.path.abspath(__file__))
_MESSAGE = re.compile(r"^(?P<file>.*?)(?::(?P<line>\d+):(?P<column>\d+))?: (?P<kind>error|warning)(?:\[(?P<code>[^]]*)\])?: ", re.M)


def package_folders():
    """Where the package's files are: one folder, or two where it is installed editable, sources here and what was built there."""
    return [*dict.fromkeys([HERE, *getattr(sys.modules[__package__], "__path__", [])])]


def _find(name, variable):
    """The variable says it, else it is in the package, in the build tree of a checkout, or on the path."""
    said = os.environ.get(variable)
    if said:
        if not os.access(said, os.X_OK):
            raise Error(f"{variable} is {said}, which is not a program")
        return said
    for folder in (*[os.path.join(f, "bin") for f in package_folders()], os.path.join(HERE, "..", "..", "..", "build", "bin")):
        program = os.path.join(folder, name)
        if os.access(program, os.X_OK):
            return os.path.normpath(program)
    found = shutil.which(name)
    if found is None:
        raise Error(f"{name} is not in the package (pip install puts it there), not in build/bin of a checkout (examples/run builds it), "
                    f"not on PATH; {variable} may name it. `python -m tdsl` shows what is found")
    return found


def libtdsl():
    """The library: TDSL_LIBRARY says it, else it is in the package, in the build tree of a checkout, or where the system looks."""
    import ctypes
    said = os.environ.get("TDSL_LIBRARY")
    places = [said] if said else [os.path.join(HERE, "lib", "libtdsl.so"), os.path.join(HERE, "..", "..", "..", "build", "runtime", "libtdsl.so"), "libtdsl.so"]
    for place in places:
        try:
            return ctypes.CDLL(place)
        except OSError as error:
            cause = error
    raise Error(f"libtdsl cannot be loaded: {cause}")


def tdslc():
    """The path of tdslc."""
    return _find("tdslc", "TDSL_TDSLC")


def tdsl_run():
    """The path of tdsl-run: beside tdslc, where TDSL_TDSLC names that."""
    if "TDSL_RUN" not in os.environ and os.environ.get("TDSL_TDSLC"):
        beside = os.path.join(os.path.dirname(os.environ["TDSL_TDSLC"]), "tdsl-run")
        if os.access(beside, os.X_OK):
            return beside
    return _find("tdsl-run", "TDSL_RUN")


def run(program, arguments, text=None, warn=False):
    """Runs a tool; returns what it prints. Errors are raised, warnings are warned of if asked; a number for a dim that there is
    not is an error then."""
    status, out, messages, _ = _process.run([program, *arguments], text)
    if status != 0:
        _raise(program, status, messages)
    if warn:
        starts = [m.start() for m in _MESSAGE.finditer(messages)]
        for start, end in zip(starts, starts[1:] + [len(messages)]):
            if "[-Wdefine]" in messages[start:end]:
                raise CompileError(messages[start:end].rstrip())
            warn_caller(messages[start:end].rstrip(), CompileWarning)
    return out.decode()


def run_search(arguments):
    """Runs tdslc for a path: what it prints, and whether an interrupt ended the search, which gives the best so far."""
    program = tdslc()
    status, out, messages, interrupted = _process.run([program, *arguments], keeps_best=True)
    if status != 0:
        _raise(program, status, messages)
    return out.decode(), interrupted


_POSITION = re.compile(r"dimension (\d+) of '(.*)' has (\d+) positions, and (.*) is (-?\d+)(?: at (\w+ = \d+(?:, \w+ = \d+)*))?$", re.M)


def _raise_position(program, messages):
    """Of what tdsl-run says of a position outside."""
    found = _POSITION.search(messages)
    at = [pair.split(" = ") for pair in found[6].split(", ")] if found[6] else []
    raise_position(program, found[2], int(found[1]), int(found[5]), int(found[3]), found[4], {name: int(n) for name, n in at})


def _raise(program, status, messages):
    first = next((m for m in _MESSAGE.finditer(messages) if m["kind"] == "error"), None)
    text = messages.strip() or f"{os.path.basename(program)}: exit status {status}"
    if status == 3:
        raise FileError(text)
    if status not in (1, 2, 4):
        raise Error(text)
    if first and first["code"] == "E0804":
        _raise_position(os.path.basename(program), messages)
    number = lambda name: int(first[name]) if first and first[name] else None
    raise CompileError(text, first["code"] or "" if first else "", number("line"), number("column"))
