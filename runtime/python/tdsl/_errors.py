# SPDX-License-Identifier: Apache-2.0
"""Errors and warnings. Every error is a `tdsl.Error`, and also what Python calls its kind."""
from __future__ import annotations



class Error(Exception):
    """Base of all errors of this package."""


class CompileError(Error, ValueError):
    """A program or an equation is refused.

    code: as `tdslc --explain` takes it ("E0203"), or "" where the message has none; line, column: of the place, from 1, or
    None; text: the messages as `tdslc` prints them, the line at fault and a caret under the place included.
    """

    def __init__(self, text: str, code: str = "", line: int | None = None, column: int | None = None) -> None:
        super().__init__(text)
        self.text, self.code, self.line, self.column = text, code, line, column


class ArgumentError(Error, ValueError):
    """A call is wrong; `argument` names the argument, or is None."""

    def __init__(self, message: str, argument: str | int | None = None) -> None:
        super().__init__(message)
        self.argument = argument


class ShapeError(ArgumentError):
    """A rank or an extent differs from the kernel's, or from another argument's."""


class PositionError(ArgumentError, IndexError):
    """A position that is a value, `tok[n]` in `W[tok[n], e]`, lies outside of the array that it is a position of.

    argument: that array; dimension: of it; position: the value; extent: what it is not below; text: the position as the program has it;
    place: the indices with which it is, {"n": 3}.
    """

    def __init__(self, message: str, argument: str, dimension: int, position: int, extent: int, text: str, place: dict[str, int]) -> None:
        super().__init__(message, argument)
        self.dimension, self.position, self.extent, self.text, self.place = dimension, position, extent, text, place


class DefiniteError(ArgumentError, ArithmeticError):
    """A matrix that a cholesky factors is not positive definite. NumPy's LinAlgError is a ValueError too.

    matrix: its number in the batch, in C order; pivot: the first that is not above 0.
    """

    def __init__(self, message: str, matrix: int, pivot: int) -> None:
        super().__init__(message)
        self.matrix, self.pivot = matrix, pivot


class OverlapError(ArgumentError):
    """A result shares memory with another argument of the kernel."""


class ConversionError(Error, ValueError):
    """A model or a list that a door of `tdsl.convert` reads holds what has no translation. `unknown`: all of it, as (what, where)."""

    def __init__(self, message: str, unknown: list[tuple[str, str]] | None = None) -> None:
        super().__init__(message)
        self.unknown = unknown or []


class CallError(Error, TypeError):
    """Arguments of a call are missing, too many, or of names that there are not."""


class FileError(Error, FileNotFoundError):
    """A file cannot be read or written."""


class DtypeError(Error, TypeError):
    """An element type that the kernel does not take; `argument` names the argument, or is None."""

    def __init__(self, message: str, argument: str | int | None = None) -> None:
        super().__init__(message)
        self.argument = argument


class WorkspaceError(Error, MemoryError):
    """There is no memory for a kernel's intermediates, or their size does not fit 64 bits."""


class CCompilerError(Error, RuntimeError):
    """There is no C compiler where one is required, or it failed."""


class PeerError(Error, RuntimeError):
    """Another rank of a call failed. `rank`: its number; `status`: why, a number of tdsl/abi.h."""

    def __init__(self, message: str, rank: int, status: int) -> None:
        super().__init__(message)
        self.rank, self.status = rank, status


class RankTimeoutError(Error, TimeoutError):
    """Another rank did not come; its communicator cannot be used again."""


class CopyWarning(UserWarning):
    """An array was copied, as the kernel cannot read it where it lies."""


class SlowWarning(UserWarning):
    """Kernels run much slower than they could here."""


class CompileWarning(UserWarning):
    """A warning of `tdslc` about a program, as it prints it."""


def warn(message: str, category: type[Warning]) -> None:
    """Warns of what the caller of this package does: its line is named."""
    import sys
    import warnings
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "tdsl":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def raise_position(kernel: str, array: str, dimension: int, position: int, extent: int, text: str, place: dict[str, int]) -> None:
    """Raises PositionError."""
    at = ", ".join(f"{name} = {n}" for name, n in place.items())
    raise PositionError(f"{kernel}: dimension {dimension} of '{array}' has {extent} positions, and {text} is {position}{' at ' if at else ''}{at}",
                        array, dimension, position, extent, text, place)


def raise_definite(kernel: str, matrix: int, pivot: int) -> None:
    """Raises DefiniteError."""
    raise DefiniteError(f"{kernel}: matrix {matrix} of a cholesky is not positive definite: pivot {pivot}", matrix, pivot)


def raise_status(status: int, kernel: str) -> None:
    """Raises what a status of tdsl/abi.h means, below 0."""
    if status in (-6, -10):
        raise WorkspaceError(f"{kernel}: no memory for its workspace")
    if status == -7:
        raise WorkspaceError(f"{kernel}: a size computed from the extents does not fit 64 bits")
    if status == -2:
        raise ShapeError(f"{kernel}: an extent is negative")
    if status == -8:
        raise ArgumentError(f"{kernel}: an argument is not as symmetric as the kernel's head says")
    if status == -11:
        raise ArgumentError(f"{kernel}: a matrix is not positive definite")
    if status == -9:
        raise ArgumentError(f"{kernel}: a position lies outside of what it is a position of")
    raise ArgumentError(f"{kernel}: status {status}")
