# SPDX-License-Identifier: Apache-2.0
"""The door for what pdaggerq's `strings()` gives."""
from __future__ import annotations

import ast
import json
import math
import re
from typing import Any, Iterable

from .._errors import ConversionError
from ._equations import Factor, Statement, Term, write
from ._text import Converted, Refused

OCCUPIED, VIRTUAL = set("ijklmno"), set("abcdefg")
_PERMUTATION = re.compile(r"(P|PP2|PP3|PP6)\(([^()]*)\)$")
_INTEGRAL = re.compile(r"<([^<>|]*)(\|\|?)([^<>|]*)>(?:_(\w+))?$")
_TENSOR = re.compile(r"([A-Za-z]\w*[+-]?)(?:\(([^()]*)\))?$")


def space(label: str) -> str | None:
    """"o" or "v", as pdaggerq tells by the letter; None of general labels."""
    first = label[:1].lower()
    if label.lower() in OCCUPIED or len(label) > 1 and first in "oi":
        return "o"
    return "v" if label.lower() in VIRTUAL or len(label) > 1 and first in "va" else None


def read_terms(text: str) -> list[list[str]]:
    """The terms of a text: JSON, or a list of Python on each line, as `print(term)` writes them; lines of other text and comments are left out."""
    try:
        found = json.loads(text)
        if isinstance(found, list) and all(isinstance(term, list) for term in found):
            return [[str(word) for word in term] for term in found]
    except (ValueError, RecursionError):
        pass
    terms = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip().rstrip(",")
        if line.startswith("["):
            try:
                term = ast.literal_eval(line)
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                raise ConversionError(f"pdaggerq: line {number} is no list of strings: {line}", [(line, f"line {number}")]) from None
            terms += [[str(w) for w in t] for t in term] if term and isinstance(term[0], list) else [[str(w) for w in term]]
    return terms


def from_pdaggerq(strings: Any, result: str = "", name: str = "residual", dims: dict[str, Any] | None = None, dtype: str = "f64") -> Converted:
    """The kernel of a list of terms, `tdsl.from_pdaggerq(pq.strings(), "R(e,f,m,n)")`.

    strings: lists of strings, or a text with them; result: its name and labels, else `E` or `R` with the labels that are not summed, virtual ones first;
    dims: what the spaces are called or how large they are, {"o": 5, "v": "nvir"}, with a spin behind where there are spins, "oa". Integrals and f are parameters
    for each block, g_oovv. Raises ConversionError, which names all that is unknown.
    """
    try:
        terms = read_terms(strings) if isinstance(strings, str) else [list(term) for term in strings]
    except TypeError:
        raise ConversionError("from_pdaggerq takes lists of strings, or a text with them") from None
    refused = Refused("pdaggerq")
    if not terms:
        raise ConversionError("pdaggerq: no terms")
    spins: dict[str, str] = {}

    def tensor(word: str, where: str) -> Factor | None:
        integral, plain = _INTEGRAL.match(word), _TENSOR.match(word)
        if integral:
            labels = [*integral[1].split(","), *integral[3].split(",")]
            base, spin = "g" if integral[2] == "||" else "v", integral[4] or ""
        elif plain:
            labels = plain[2].split(",") if plain[2] else []
            base, spin = plain[1].replace("+", "_plus").replace("-", "_minus"), ""
            bare = re.match(r"(.*)_([ab]+)$", base)
            if bare and len(bare[2]) == len(labels):
                base, spin = bare[1], bare[2]
        else:
            refused.add(f"'{word}'", where)
            return None
        labels = [label.strip() for label in labels]
        general = [label for label in labels if space(label) is None]
        if general or not all(label.isidentifier() for label in labels):
            refused.add(f"'{word}': {', '.join(general) or word} is neither occupied (i to o) nor virtual (a to g)", where)
            return None
        if base == "d" and len(labels) == 2:
            refused.add(f"'{word}': a Kronecker delta", where)
            return None
        if spin and len(spin) == len(labels):
            for label, each in zip(labels, spin):
                if spins.setdefault(label, each) != each:
                    refused.add(f"'{word}': {label} has two spins", where)
        block = "".join(space(label) or "" for label in labels)
        if re.match(r"[a-z]+[0-9]", base):  # an amplitude says by its name which spaces it has
            return Factor("_".join(part for part in (base, spin) if part), labels)
        return Factor("_".join(part for part in (base, block, spin) if part), labels)

    read: list[tuple[float, list[Factor], list[tuple[str, list[list[str]]]], list[list[list[str]]], str]] = []
    for number, words in enumerate(terms, 1):
        where = f"term {number}: {' '.join(map(str, words))}"
        try:
            value = float(words[0])
            if not math.isfinite(value):
                raise ValueError
        except (ValueError, IndexError, TypeError):
            refused.add("the first string is no number", where)
            continue
        spins.clear()
        factors: list[Factor] = []
        exchanges: list[tuple[str, list[list[str]]]] = []
        threes: list[list[list[str]]] = []
        for word in words[1:]:
            permutation = _PERMUTATION.match(str(word).strip())
            if permutation:
                labels = [label.strip() for label in re.split("[,;]", permutation[2])]
                size = {"P": 2, "PP2": 4}.get(permutation[1], 6)
                if len(labels) != size:
                    refused.add(f"'{word}' has {len(labels)} labels, not {size}", where)
                elif permutation[1] == "P":
                    exchanges.append(("antisym", [[labels[0]], [labels[1]]]))
                else:
                    groups = [labels[k:k + 2] for k in range(0, size, 2)]
                    if permutation[1] == "PP3" and len(threes) == 3:
                        refused.add("more than three PP3", where)
                    elif permutation[1] == "PP3":
                        threes.append(groups)
                    else:
                        exchanges.append(("perm", groups))
            else:
                factor = tensor(str(word).strip(), where)
                if factor is not None:
                    factors.append(factor)
        read.append((value, factors, exchanges, threes, where))
    refused.check()

    target, labels = _result(result, read, refused)
    statements: list[Statement] = []
    for value, factors, exchanges, threes, where in read:
        free = {label for label, n in _counts(factors).items() if n == 1}
        if free != set(labels):
            refused.add(f"its labels that are not summed are {', '.join(sorted(free)) or 'none'}, those of {target} {', '.join(labels) or 'none'}", where)
            continue
        variants = [factors]
        for groups in threes:  # 1 + the first pair exchanged with each of the others
            variants = [v for base in variants for v in (base, *(_exchanged(base, groups[0], other) for other in groups[1:]))]
        statements.append(Statement(target, labels, "+=" if statements else "=", [Term(value, v, exchanges) for v in variants], where.partition(": ")[2]))
    refused.check()
    said = {key: str(value) for key, value in (dims or {}).items()}
    given = {label for s in statements for term in s.terms for f in term.factors for label in f.labels or ()}
    clash = {"o", "v"} & given

    def axes_of(factor: Factor) -> Iterable[tuple[tuple[str, int], str]]:
        spin = re.search(r"_([ab]+)$", factor.name)
        for axis, label in enumerate(factor.labels or ()):
            key = (space(label) or "") + (spin[1][axis] if spin and len(spin[1]) == len(factor.labels or ()) else "")
            yield (factor.name, axis), said.get(key, "n" + key if clash else key)
    named = {place: dim for s in statements for term in s.terms for f in term.factors for place, dim in axes_of(f)}
    open_labels = {label: dim for s in statements for term in s.terms for f in term.factors for (_, dim), label in zip(axes_of(f), f.labels or ())}
    for axis, label in enumerate(labels):
        named[(target, axis)] = open_labels[label]
    return write(statements, name, "pdaggerq", refused, dtype, [target], lambda label, tensor: None, f"pdaggerq: {target}, {len(terms)} term{'s' if len(terms) > 1 else ''}", named)


def _counts(factors: list[Factor]) -> dict[str, int]:
    count: dict[str, int] = {}
    for f in factors:
        for label in f.labels or ():
            count[label] = count.get(label, 0) + 1
    return count


def _exchanged(factors: list[Factor], a: list[str], b: list[str]) -> list[Factor]:
    other = {**dict(zip(a, b)), **dict(zip(b, a))}
    return [Factor(f.name, [other.get(label, label) for label in f.labels or ()]) for f in factors]


def _result(said: str, read: list[Any], refused: Refused) -> tuple[str, list[str]]:
    """Name and labels of the result."""
    free = sorted(label for label, n in _counts(read[0][1]).items() if n == 1)
    free.sort(key=lambda label: space(label) == "o")
    match = re.match(r"\s*([A-Za-z]\w*)\s*(?:[(\[]([^()\[\]]*)[)\]])?\s*$", said) if said else None
    if said and match is None:
        refused.add(f"the result '{said}' is not of the form R(e,f,m,n)", "result")
        refused.check()
    name = match[1] if match else "R" if free else "E"
    return name, [label.strip() for label in match[2].split(",")] if match and match[2] else free
