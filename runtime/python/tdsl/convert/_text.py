# SPDX-License-Identifier: Apache-2.0
"""What all doors share: names, extents, the text of a program, and what they could not translate."""
from __future__ import annotations

import contextlib
import math
import os
import re
from typing import Any, Iterable, Iterator

from .._errors import ConversionError

RESERVED = {"include", "dim", "const", "kernel", "inout", "spill", "true", "false", "inf", "nan", "pi"}
TYPES = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8",
         "uint8": "u8", "uint16": "u16", "uint32": "u32", "bool": "bool", "complex64": "c64", "complex128": "c128", "float8_e4m3": "f8e4m3",
         "float8_e5m2": "f8e5m2", "float8_e4m3fn": "f8e4m3fn"}
SHORT_INTEGERS = {"i8", "u8", "i16", "u16", "u32"}
LINE = 116


class Names:
    """Names of one space, each given once."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = {*RESERVED, *taken}

    def new(self, wanted: str, other: str = "x") -> str:
        """The name that is wanted, as an identifier, with a number behind it where it is taken."""
        name = re.sub(r"\W+", "_", wanted, flags=re.ASCII).strip("_") or other
        if name[0].isdigit():
            name = f"{other}{name}"
        found, n = name, 2
        while found in self.taken:
            found, n = f"{name}_{n}" if name[-1].isdigit() else f"{name}{n}", n + 1
        self.taken.add(found)
        return found


class Poly:
    """An extent with open dims: a sum of products of names. What has no name in it is an int, not one of these."""

    def __init__(self, terms: dict[tuple[str, ...], int]) -> None:
        self.terms = terms

    @staticmethod
    def of(extent: Any) -> "Poly":
        return extent if isinstance(extent, Poly) else Poly({(): int(extent)} if extent else {})

    @staticmethod
    def name(name: str) -> "Poly":
        return Poly({(name,): 1})

    def plain(self) -> Any:
        """This, or the number that it is."""
        terms = {names: n for names, n in self.terms.items() if n}
        return terms.get((), 0) if not terms or set(terms) == {()} else Poly(terms)

    def __add__(self, other: Any) -> Any:
        terms = dict(self.terms)
        for names, n in Poly.of(other).terms.items():
            terms[names] = terms.get(names, 0) + n
        return Poly(terms).plain()

    def __mul__(self, other: Any) -> Any:
        terms: dict[tuple[str, ...], int] = {}
        for a, n in self.terms.items():
            for b, m in Poly.of(other).terms.items():
                names = tuple(sorted(a + b))
                terms[names] = terms.get(names, 0) + n * m
        return Poly(terms).plain()

    __radd__, __rmul__ = __add__, __mul__

    def __sub__(self, other: Any) -> Any:
        return self + Poly.of(other) * -1

    def __rsub__(self, other: Any) -> Any:
        return Poly.of(other) + self * -1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Poly) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __str__(self) -> str:
        text = ""
        for names, n in sorted(self.terms.items(), key=lambda term: (not term[0], term[0])):
            product = "*".join([*([str(abs(n))] if abs(n) != 1 or not names else []), *names])
            text += (" - " if n < 0 else " + ") + product
        return text[3:] if text.startswith(" + ") else "-" + text[3:]


def divided(a: Any, b: Any) -> Any:
    """a / b where that is exact and b is one product, else None."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b and a % b == 0 else None
    (names, n), *more = Poly.of(b).terms.items()
    if more:
        return 1 if a == b else None
    found = {}
    for each, m in Poly.of(a).terms.items():
        left = list(each)
        for name in names:
            if name not in left:
                return None
            left.remove(name)
        if m % n:
            return None
        found[tuple(left)] = m // n
    return Poly(found).plain()


def factor(extent: Any) -> str:
    """The extent as a factor."""
    return f"({extent})" if isinstance(extent, Poly) and len(extent.terms) > 1 else str(extent)


def number(value: Any, kind: str) -> str:
    """A number of a type of the language, as the language writes it."""
    if kind == "bool":
        return "true" if value else "false"
    if kind[0] == "c":
        z = complex(value)
        return number(z.real, "f64") if z.imag == 0 else f"({number(z.real, 'f64')} {'-' if z.imag < 0 else '+'} {number(abs(z.imag), 'f64')}i)"
    if kind[0] in "iu":
        return str(int(value))
    x = float(value)
    if math.isnan(x):
        return "nan"
    if math.isinf(x):
        return "-inf" if x < 0 else "inf"
    if x == int(x) and abs(x) < 1e15:
        return "-0.0" if x == 0 and math.copysign(1, x) < 0 else str(int(x))
    return str(value) if type(value).__name__ == "float32" else repr(x)


class Converted:
    """A program that a door made: `text`, the name of its `kernel`, and `arrays`, the values of parameters that the model brings along."""

    def __init__(self, text: str, kernel: str, arrays: dict[str, Any] | None = None) -> None:
        self.text, self.kernel, self.arrays = text, kernel, arrays or {}

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def save(self, path: Any, arrays: Any = None) -> None:
        """Writes the program; with `arrays`, a folder, the values of parameters as NAME.npy too."""
        with open(path, "w", encoding="utf-8") as f:
            f.write(self.text)
        if arrays is not None:
            import numpy
            os.makedirs(arrays, exist_ok=True)
            for name, array in self.arrays.items():
                numpy.save(os.path.join(arrays, name + ".npy"), array)

    def compile(self, **dims: int) -> Any:
        """The program, compiled: `converted.compile().NAME(x, **converted.arrays)`."""
        from .._program import compile as compile_text
        return compile_text(self.text, **dims)


@contextlib.contextmanager
def bounded(door: str) -> Iterator[None]:
    """Python's stack ends where operations are nested some thousand deep."""
    try:
        yield
    except RecursionError:
        raise ConversionError(f"{door}: operations are nested too deep") from None


class Refused:
    """What a door does not know: all of it is told at once."""

    def __init__(self, door: str) -> None:
        self.door = door
        self.found: list[tuple[str, str]] = []

    def add(self, what: str, where: str) -> None:
        if (what, where) not in self.found:
            self.found.append((what, where))

    def check(self) -> None:
        if self.found:
            count = "one thing has" if len(self.found) == 1 else f"{len(self.found)} things have"
            raise ConversionError(f"{self.door}: {count} no translation into the language:\n" + "\n".join(f"  {where}: {what}" for what, where in self.found), self.found)


def comment(text: str) -> str:
    """A line of comment: no line ends, nothing that the language refuses in comments."""
    text = " ".join("".join(c if c.isprintable() and not 0x202a <= ord(c) <= 0x2069 and ord(c) not in (0x61c, 0x200e, 0x200f) else " " for c in text).split())
    return "// " + (text if len(text) <= 150 else text[:147] + "...")


def head(kernel: str, parameters: list[str], results: list[str]) -> str:
    """The head of a kernel, over several lines where it is long."""
    line = f"kernel {kernel}({', '.join(parameters)}) -> ({', '.join(results)}) {{"
    if len(line) <= LINE:
        return line
    rows, row = [], ""
    for k, parameter in enumerate(parameters):
        word = parameter + ("," if k + 1 < len(parameters) else ")")
        if row and len(row) + len(word) > LINE - 5:
            rows.append(row)
            row = ""
        row += (" " if row else "") + word
    rows.append(row or ")")
    return f"kernel {kernel}(\n    " + "\n    ".join(rows) + f"\n    -> ({', '.join(results)}) {{"
