# SPDX-License-Identifier: Apache-2.0
"""Lists of contractions with labelled operands, and the kernel that they become: parameters are what is read and never made, extents are found from the
labels, and each term is a statement."""
from __future__ import annotations

from typing import Any

from ._text import Converted, Names, Refused, comment, head

Labels = "tuple[str, ...]"


class Factor:
    """A tensor at labels; `inverse`: divided by."""

    def __init__(self, name: str, labels: Any, inverse: bool = False, conjugate: bool = False) -> None:
        self.name, self.labels, self.inverse, self.conjugate = name, None if labels is None else tuple(labels), inverse, conjugate


class Term:
    """A number times a product, summed over the labels that the target has not. `exchanges`: ("antisym" or "perm", groups of labels), outermost first."""

    def __init__(self, number: float, factors: list[Factor], exchanges: list[tuple[str, list[Any]]] | None = None) -> None:
        self.number, self.factors, self.exchanges = number, factors, exchanges or []


class Statement:
    """target[labels] op terms."""

    def __init__(self, target: str, labels: Any, op: str, terms: list[Term], origin: str) -> None:
        self.target, self.labels, self.op, self.terms, self.origin = target, tuple(labels), op, terms, origin


def coefficient(x: float) -> str:
    """A number as it stands before a product, "" for 1: a fraction where a decimal of ten digits or more means one."""
    if x == 1:
        return ""
    for below in (1, 2, 3, 4, 6, 8, 9, 12, 16, 24, 36, 48, 72, 96, 120, 144, 720):
        if abs(x * below - round(x * below)) < 1e-9 and round(x * below) != 0:
            above = round(x * below)
            if below == 1:
                return str(above)
            decimal = repr(x)
            if len(decimal) > 8 and abs(above / below - x) < 1e-9:
                return f"{above}/{below}"
            return decimal
    return repr(x)


class Extents:
    """Which axes have one extent: all that a label joins within one statement."""

    def __init__(self) -> None:
        self.above: dict[Any, Any] = {}

    def top(self, a: Any) -> Any:
        while self.above.get(a, a) != a:
            a = self.above[a]
        return a

    def join(self, a: Any, b: Any) -> None:
        a, b = self.top(a), self.top(b)
        if a != b:
            self.above[max(a, b, key=str)] = min(a, b, key=str)


def write(statements: list[Statement], kernel: str, door: str, refused: Refused, dtype: str, results: list[str] | None, of_label: Any, top: str,
          named_axes: dict[tuple[str, int], str] | None = None) -> Converted:
    """The program. `of_label` gives the extent of a label that has one, or None; `named_axes` the extents of axes of parameters."""
    made: list[str] = []
    ranks: dict[str, int] = {}
    changed: set[str] = set()
    read: list[str] = []
    for s in statements:
        for term in s.terms:
            for f in term.factors:
                if f.labels is None:
                    f.labels = s.labels
                if ranks.setdefault(f.name, len(f.labels)) != len(f.labels):
                    refused.add(f"{f.name} has {len(f.labels)} labels here and {ranks[f.name]} elsewhere", s.origin)
                if f.name not in read:
                    read.append(f.name)
        if ranks.setdefault(s.target, len(s.labels)) != len(s.labels):
            refused.add(f"{s.target} has {len(s.labels)} labels here and {ranks[s.target]} elsewhere", s.origin)
        if s.op == "=":
            made.append(s.target)
        elif s.target not in made:
            changed.add(s.target)
    refused.check()

    extents = Extents()
    label_of: dict[Any, str] = {}
    fixed: dict[Any, str] = {}
    for n, s in enumerate(statements):
        places = [(f.name, f.labels) for term in s.terms for f in term.factors] + [(s.target, s.labels)]
        inner = [(t, f.name, f.labels) for t, term in enumerate(s.terms) for f in term.factors] + [(-1, s.target, s.labels)]
        for t, name, labels in inner:
            for axis, label in enumerate(labels or ()):
                mine = (n, -1 if label in s.labels else t, label)
                extents.join((name, axis), mine)
                label_of.setdefault((name, axis), label)
        for term in s.terms:
            for _, groups in term.exchanges:
                for group in groups[1:]:
                    for a, b in zip(groups[0], group):
                        extents.join((n, -1, a), (n, -1, b))
        for name, labels in places:
            for axis, label in enumerate(labels or ()):
                said = (named_axes or {}).get((name, axis)) or of_label(label, name)
                if said is not None and fixed.setdefault((name, axis), said) != said:
                    refused.add(f"axis {axis} of {name} has the extents {fixed[(name, axis)]} and {said}", s.origin)
    axes = [(name, axis) for name in dict.fromkeys([*read, *(s.target for s in statements)]) for axis in range(ranks[name])]
    dims: dict[Any, str] = {}
    for place in axes:
        if place in fixed:
            root = extents.top(place)
            if dims.setdefault(root, fixed[place]) != fixed[place]:
                refused.add(f"axis {place[1]} of {place[0]} has the extents {dims[root]} and {fixed[place]}", "dims")
    used = {label for s in statements for term in s.terms for f in term.factors for label in f.labels or ()} | {label for s in statements for label in s.labels}
    names = Names({*used, *(d for d in dims.values())})
    for place in axes:
        root = extents.top(place)
        if root not in dims:
            dims[root] = names.new("n" + label_of[place], "n")
    refused.check()

    values = Names()
    called = {name: values.new(name) for name in ranks}
    typed = lambda name: f"{dtype}[{', '.join(dims[extents.top((name, k))] for k in range(ranks[name]))}]" if ranks[name] else dtype
    inner_values = {t for t in made if t in read}
    given = list(results) if results is not None else [t for t in dict.fromkeys(made) if t not in inner_values] or list(dict.fromkeys(made))[-1:]
    for name in given:
        if name not in made:
            refused.add(f"the result {name} is never made", "results")
    refused.check()
    parameters = [f"{called[name]}: {'inout ' if name in changed else ''}{typed(name)}" for name in dict.fromkeys([*(r for r in read if r not in made), *sorted(changed)])]
    lines, last = [], ""
    for s in statements:
        if s.origin != last:
            lines.append("    " + comment(s.origin))
            last = s.origin
        left = called[s.target] + (f"[{','.join(s.labels)}]" if s.labels else "")
        text, sign = _right(s, called)
        op = {"=": "=", "+=": "+=", "-=": "-="}[s.op]
        if sign and op != "=":
            op, text = "-=" if op == "+=" else "+=", text
        elif sign:
            text = "-" + text
        lines.append(f"    {left} {op} {text};")
    result = [f"{called[name]}: {typed(name)}" for name in given]
    first = head(kernel, parameters, result) if result else head(kernel, parameters, ["-"]).replace(" -> (-)", "").replace("\n    -> (-)", "")
    return Converted("\n".join([comment(top), first, *lines, "}", ""]), kernel)


def _right(s: Statement, called: dict[str, str]) -> tuple[str, bool]:
    """The right side, and whether it is a lone term with a minus in front."""
    if len(s.terms) == 1:
        term = s.terms[0]
        return _term(term, s, called, abs(term.number)), term.number < 0
    text = ""
    for term in s.terms:
        sign = "-" if term.number < 0 else "+"
        text += f" {sign} {_term(term, s, called, abs(term.number))}"
    return (text[3:] if text.startswith(" + ") else "-" + text[3:]), False


def _term(term: Term, s: Statement, called: dict[str, str], number: float) -> str:
    over = [f for f in term.factors if not f.inverse]
    under = [f for f in term.factors if f.inverse]
    word = lambda f: ("conj({})" if f.conjugate else "{}").format(called[f.name] + (f"[{','.join(f.labels or ())}]" if f.labels else ""))
    count: dict[str, int] = {}
    for f in term.factors:
        for label in f.labels or ():
            count[label] = count.get(label, 0) + 1
    summed = [label for label in count if label not in s.labels]
    product = " * ".join(word(f) for f in over)
    front = coefficient(number)
    below = "".join(f" / {word(f)}" for f in under)
    if not product:
        return (front or "1") + below
    named = summed and (any(count[label] < 2 for label in summed) or term.exchanges or any(set(f.labels or ()) & set(summed) for f in under))
    if term.exchanges:
        inside = f"sum[{','.join(summed)}]({product}{below})" if summed else product + below
        for kind, groups in reversed(term.exchanges):
            listed = ("," if len(groups[0]) == 1 else ", ").join(group[0] if len(group) == 1 else f"({','.join(group)})" for group in groups)
            inside = f"{kind}[{listed}]({inside})"
        return f"{front} * {inside}" if front else inside
    if named:
        return f"{front + ' * ' if front else ''}sum[{','.join(summed)}]({product}{below})"
    return (f"{front} * " if front else "") + product + below
