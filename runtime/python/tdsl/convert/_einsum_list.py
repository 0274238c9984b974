# SPDX-License-Identifier: Apache-2.0
"""The door for lists of einsum calls, as strings and names or as lines of Python."""
from __future__ import annotations

import ast
import math
import re
import textwrap
from typing import Any, Iterable

from .._errors import ConversionError
from ._equations import Factor, Statement, Term, write
from ._text import RESERVED, Converted, Names, Refused

LETTERS = "ijklmnopqrstuvwxyzabcdefgh"


class Unknown(Exception):
    """Something in a statement that has no translation; said in words."""


class Value:
    """A sum of terms with the labels of its axes, or None where these are those of whatever it is assigned to."""

    def __init__(self, labels: Any, terms: list[Term]) -> None:
        self.labels, self.terms = labels, terms

    def times(self, number: float) -> "Value":
        if not math.isfinite(number):
            raise Unknown("a factor that is not finite")
        return Value(self.labels, [Term(t.number * number, t.factors) for t in self.terms])


class Reader:
    """Statements of Python, one after the other. A name that is assigned again is another value from then on."""

    def __init__(self, refused: Refused, spoken_for: Iterable[str]) -> None:
        self.refused = refused
        self.letters = [c for c in LETTERS + LETTERS.upper() if c not in spoken_for]
        self.labels: dict[str, tuple[str, ...]] = {}  # as the source last wrote them
        self.statements: list[Statement] = []
        self.current: dict[str, str] = {}
        self.names = Names()   # those that the source has, and those that are made beside them
        self.used: set[str] = set()
        self.ranks: dict[str, int] = {}
        self.zero: set[str] = set()
        self.blocks: dict[tuple[str, int], str] = {}
        self.results: list[str] | None = None
        self.kernel = ""
        self.origin = ""

    def read(self, text: str, first: str = "line ") -> None:
        try:
            tree = ast.parse(textwrap.dedent(text))
        except SyntaxError as error:
            self.refused.add(f"no statement of Python: {error.msg}", f"{first}{error.lineno}" if error.lineno else "the text")
            return
        except (ValueError, MemoryError, RecursionError) as error:
            self.refused.add(f"no statement of Python: {error or 'nested too deep'}", first.rstrip(" ,line") or "the text")
            return
        self.names.taken.update(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
        self.body(tree.body, textwrap.dedent(text), first)

    def labels_of(self, name: str) -> tuple[str, ...]:
        """Labels for a tensor that is named without: those that it had, else letters that mean no extent."""
        known = self.labels.get(name, ())
        return known if len(set(known)) == len(known) == self.ranks[name] else tuple(self.letters[:self.ranks[name]])

    def fresh(self, wanted: str) -> str:
        """The name, if nothing has it yet, else one that nothing in the source has."""
        found = wanted if wanted not in self.used and wanted not in RESERVED else self.names.new(wanted)
        self.used.add(found)
        self.names.taken.add(found)
        return found

    def body(self, statements: list[ast.stmt], text: str, first: str) -> None:
        for s in statements:
            segment = (ast.get_source_segment(text, s) or "").split("\n")
            self.origin = " ".join(part.strip() for part in segment)
            where = f"{first}{s.lineno}: {segment[0].strip()}"
            try:
                self.statement(s, text, first)
            except Unknown as error:
                self.refused.add(str(error), where)
            except RecursionError:
                self.refused.add("an expression that is nested too deep", where[:80])

    def statement(self, s: ast.stmt, text: str, first: str) -> None:
        if isinstance(s, ast.FunctionDef):
            self.kernel = self.kernel or s.name
            self.body(s.body, text, first)
        elif isinstance(s, (ast.Import, ast.ImportFrom, ast.Pass)) or isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant):
            pass
        elif isinstance(s, ast.Return):
            wanted = s.value.elts if isinstance(s.value, ast.Tuple) else [s.value]
            self.results = []
            for each in wanted:
                if isinstance(each, ast.Name):
                    self.results.append(self.current.get(each.id, each.id))
                elif each is not None:
                    self.results.append(self.assign("result", "=", self.value(each)))
        elif isinstance(s, (ast.Assign, ast.AnnAssign)) and s.value is not None:
            targets = s.targets if isinstance(s, ast.Assign) else [s.target]
            if len(targets) != 1 or not isinstance(targets[0], ast.Name):
                raise Unknown("an assignment to something else than one name")
            if is_zero(s.value):
                self.current[targets[0].id] = self.fresh(targets[0].id)
                self.zero.add(self.current[targets[0].id])
            else:
                self.assign(targets[0].id, "=", self.value(s.value))
        elif isinstance(s, ast.AugAssign) and isinstance(s.op, (ast.Add, ast.Sub)) and isinstance(s.target, ast.Name):
            self.assign(s.target.id, "+=" if isinstance(s.op, ast.Add) else "-=", self.value(s.value))
        else:
            raise Unknown(f"a statement of this kind ({type(s).__name__})")

    def assign(self, target: str, op: str, value: Value) -> str:
        """Adds the statement; gives the name of what it makes."""
        name = self.current.get(target)
        if op == "=" or name is None:
            if op != "=":  # what is changed and was not made is the caller's
                name = self.current[target] = self.fresh(target)
            elif name is None or name not in self.zero:
                name = self.fresh(target)
        labels = value.labels
        if labels is None:
            rank = max((self.ranks[f.name] for t in value.terms for f in t.factors if f.name in self.ranks), default=self.ranks.get(name, None))
            if rank is None and any(t.factors for t in value.terms):
                raise Unknown(f"how many axes {', '.join(dict.fromkeys(f.name for t in value.terms for f in t.factors))} has is not said before")
            labels = self.labels_of(name) if name in self.ranks else tuple(self.letters[:rank or 0])
        if name in self.zero:
            if op == "-=":
                value = value.times(-1)
            op = "="
            self.zero.discard(name)
        for t in value.terms:
            for f in t.factors:
                f.labels = labels if f.labels is None else f.labels
                self.ranks.setdefault(f.name, len(f.labels))
        self.ranks[name] = len(labels)
        self.labels[name] = tuple(labels)
        self.statements.append(Statement(name, labels, op, value.terms, self.origin))
        if op == "=":
            self.current[target] = name
        return name

    def name(self, node: ast.AST) -> str:
        """A tensor: a name, or a block of one, `f[o,v]`, which is a parameter of its own."""
        if isinstance(node, ast.Name):
            if node.id not in self.current:
                self.current[node.id] = self.fresh(node.id)
            return self.current[node.id]
        if isinstance(node, ast.Attribute) and node.attr != "T":
            return self.current.setdefault(ast.unparse(node), self.names.new(ast.unparse(node).replace(".", "_")))
        if isinstance(node, ast.Subscript) and isinstance(node.value, (ast.Name, ast.Attribute)):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            if all(isinstance(p, ast.Name) for p in parts):
                key = ast.unparse(node)
                if key not in self.current:
                    words = [p.id for p in parts]  # type: ignore[attr-defined]
                    self.current[key] = self.names.new(f"{ast.unparse(node.value).replace('.', '_')}_{''.join(words)}")
                    self.blocks.update({(self.current[key], k): word for k, word in enumerate(words)})
                    self.ranks[self.current[key]] = len(words)
                return self.current[key]
        raise Unknown(f"{ast.unparse(node)} as a tensor")

    def value(self, node: ast.AST) -> Value:
        number = constant(node)
        if number is not None:
            return Value((), [Term(number, [])])
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            return self.value(node.operand).times(-1 if isinstance(node.op, ast.USub) else 1)
        if isinstance(node, ast.BinOp):
            return self.binary(node)
        if isinstance(node, ast.Call):
            return self.call(node)
        if isinstance(node, ast.Attribute) and node.attr == "T":
            return self.turned(self.value(node.value), None)
        name = self.name(node)
        if name in self.zero:
            raise Unknown(f"{ast.unparse(node)}, which is zero here")
        labels = self.labels_of(name) if name in self.ranks else None
        return Value(labels, [Term(1, [Factor(name, labels)])])

    def binary(self, node: ast.BinOp) -> Value:
        a, b = constant(node.left), constant(node.right)
        if isinstance(node.op, ast.Mult) and (a is not None or b is not None):
            return self.value(node.right).times(a) if a is not None else self.value(node.left).times(b or 0)
        if isinstance(node.op, ast.Div) and b:
            return self.value(node.left).times(1 / b)
        if isinstance(node.op, (ast.Add, ast.Sub)):
            left, right = self.value(node.left), self.value(node.right)
            right = right.times(-1) if isinstance(node.op, ast.Sub) else right
            if left.labels is None:
                left, right = Value(right.labels, left.terms), right
            elif right.labels is not None:
                right = relabelled(right, left.labels)
            return Value(left.labels, left.terms + right.terms)
        if isinstance(node.op, (ast.Mult, ast.Div)):  # element by element
            left, right = self.value(node.left), self.value(node.right)
            if len(left.terms) != 1 or len(right.terms) != 1 or any(f.inverse for f in right.terms[0].factors):
                raise Unknown(f"{ast.unparse(node)}: a product of sums")
            if left.labels is not None and right.labels is not None and left.labels and right.labels:
                right = relabelled(right, left.labels)
            if isinstance(node.op, ast.Div) and (len(right.terms[0].factors) != 1 or left.labels is not None and right.labels is not None and len(right.labels) not in (0, len(left.labels))):
                raise Unknown(f"{ast.unparse(node)}: a quotient by something else than one tensor")
            number = left.terms[0].number * (right.terms[0].number if isinstance(node.op, ast.Mult) else 1 / right.terms[0].number)
            below = [Factor(f.name, f.labels, isinstance(node.op, ast.Div), f.conjugate) for f in right.terms[0].factors]
            labels = left.labels if left.labels or right.labels is None else right.labels
            return Value(labels, [Term(number, left.terms[0].factors + below)])
        raise Unknown(f"{ast.unparse(node)}: the operation {type(node.op).__name__}")

    def call(self, node: ast.Call) -> Value:
        what = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""
        if what in ("einsum", "contract"):
            odd = [k.arg for k in node.keywords if k.arg not in ("optimize", "backend", "memory_limit")]
            if odd:
                raise Unknown(f"the keyword {odd[0]} of einsum")
            if not node.args or not isinstance(node.args[0], ast.Constant) or not isinstance(node.args[0].value, str):
                raise Unknown("an einsum whose string is not written out")
            operands = []
            for operand in node.args[1:]:
                try:
                    operands.append((self.name(operand), False))
                except Unknown:
                    operands.append(self.operand(operand))
            return self.einsum(node.args[0].value, operands)
        if isinstance(node.func, ast.Attribute) and what == "transpose":
            base = node.func.value
            if isinstance(base, ast.Name) and base.id in ("np", "numpy", "jnp"):
                value, orders = self.value(node.args[0]), node.args[1:]
            else:
                value, orders = self.value(base), node.args
            order = ast.literal_eval(orders[0]) if len(orders) == 1 else tuple(ast.literal_eval(o) for o in orders) or None
            return self.turned(value, order)
        if isinstance(node.func, ast.Attribute) and what in ("copy", "conj", "conjugate") and not node.args:
            value = self.value(node.func.value)
            return value if what == "copy" else Value(value.labels, [Term(t.number, [Factor(f.name, f.labels, f.inverse, not f.conjugate) for f in t.factors]) for t in value.terms])
        raise Unknown(f"the call {ast.unparse(node.func)}")

    def operand(self, node: ast.AST) -> tuple[str, bool]:
        """An operand that is an expression: a statement of its own."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("conj", "conjugate") and isinstance(node.func.value, ast.Name):
            return self.name(node.func.value), True
        return self.assign(self.names.new("t"), "=", self.value(node)), False

    def turned(self, value: Value, order: Any) -> Value:
        if value.labels is None:
            raise Unknown("a transpose of what has not been said to have axes")
        order = list(range(len(value.labels)))[::-1] if order is None else list(order)
        return Value(tuple(value.labels[k] for k in order), value.terms)

    def einsum(self, equation: str, operands: list[tuple[str, bool]]) -> Value:
        words, arrow, out = equation.replace(" ", "").partition("->")
        inputs = words.split(",")
        if "." in equation:
            raise Unknown("an ellipsis: the axes under it have no labels")
        if len(inputs) != len(operands):
            raise Unknown(f"'{equation}' has {len(inputs)} operands, and {len(operands)} are given")
        if not arrow:
            out = "".join(sorted(c for c in set(words) - {","} if words.count(c) == 1))
        odd = [c for c in equation if not (c.isascii() and c.isalpha() or c in ",-> ")]
        if odd or len(set(out)) != len(out) or set(out) - set(words):
            raise Unknown(f"the string '{equation}'")
        for (name, _), labels in zip(operands, inputs):
            if name in self.zero:
                raise Unknown(f"{name}, which is zero here")
            if self.ranks.setdefault(name, len(labels)) != len(labels):
                raise Unknown(f"{name} has {self.ranks[name]} axes, and '{labels}' has {len(labels)}")
            self.labels.setdefault(name, tuple(labels))
        return Value(tuple(out), [Term(1, [Factor(name, tuple(labels), False, conjugate) for (name, conjugate), labels in zip(operands, inputs)])])


def constant(node: ast.AST) -> float | None:
    """The number that an expression of numbers is, else None."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        return float(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        a = constant(node.operand)
        return a if a is None or isinstance(node.op, ast.UAdd) else -a
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div)):
        a, b = constant(node.left), constant(node.right)
        if a is None or b is None:
            return None
        if isinstance(node.op, ast.Div) and b == 0:
            raise Unknown(f"the number {ast.unparse(node)}")
        return a + b if isinstance(node.op, ast.Add) else a - b if isinstance(node.op, ast.Sub) else a * b if isinstance(node.op, ast.Mult) else a / b
    return None


def is_zero(node: ast.AST) -> bool:
    """A 0, or zeros of NumPy: what the next statement adds to."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in ("zeros", "zeros_like")
    return constant(node) == 0


def relabelled(value: Value, labels: Any) -> Value:
    """The value with other labels of its axes; what it sums keeps clear of them."""
    if len(value.labels) != len(labels):
        if not value.labels:
            return value
        raise Unknown(f"a sum or a product of {len(labels)} axes and {len(value.labels)}")
    if value.labels == tuple(labels):
        inner = {c for t in value.terms for f in t.factors for c in f.labels or ()}
        if not inner - set(labels):
            return value
    other = dict(zip(value.labels, labels))
    terms = []
    for t in value.terms:
        mine, free = dict(other), [c for c in LETTERS + LETTERS.upper() if c not in labels]
        for f in t.factors:
            for c in f.labels or ():
                if c not in mine:
                    mine[c] = c if c in free and c not in mine.values() else next(x for x in free if x not in mine.values())
        terms.append(Term(t.number, [Factor(f.name, f.labels and [mine[c] for c in f.labels], f.inverse, f.conjugate) for f in t.factors]))
    return Value(tuple(labels), terms)


def from_einsum_list(steps: Any, name: str = "", dims: dict[str, Any] | None = None, dtype: str = "f64", results: Iterable[str] | None = None) -> Converted:
    """The kernel of a list of einsum calls.

    steps: pairs (equation, names), the operands and then the result, `("ij,jk->ik", ["A", "B", "C"])`; or a text, or a list, of statements of Python,
    `R += 0.5 * np.einsum("ijab,abcd->ijcd", t, W)`, also a whole function. What is read and never made is a parameter, what is made and never read a result, unless
    `results` names them. dims: the extents of labels, {"ijkl": "o", "abcd": 100}; without one, an extent is called after the first label that has it.
    Raises ConversionError, which names all that is unknown.
    """
    refused = Refused("einsum list")
    reader = Reader(refused, "".join(dims or {}))
    if isinstance(steps, str):
        reader.read(steps)
    else:
        for number, step in enumerate(steps, 1):
            if isinstance(step, str):
                reader.read(step, f"step {number}, line ")
                continue
            where = f"step {number}: {step!r}"
            try:
                equation, names = step
                names = [re.sub(r"\W+", "_", str(n)) for n in (names.split() if isinstance(names, str) else names)]
            except (TypeError, ValueError):
                refused.add("neither a pair (equation, names) nor a statement", where)
                continue
            operands = len(str(equation).partition("->")[0].split(","))
            if len(names) != operands + 1:
                refused.add(f"the string has {operands} operands, so {operands + 1} names are needed, the last that of the result", where)
                continue
            reader.origin = f"{names[-1]} = {equation}: {', '.join(names[:-1])}"
            try:
                reader.assign(names[-1], "=", reader.einsum(str(equation), [(reader.name(ast.Name(n)), False) for n in names[:-1]]))
            except Unknown as error:
                refused.add(str(error), where)
    refused.check()
    if not reader.statements:
        raise ConversionError("einsum list: no statements")
    of = {label: str(value) for labels, value in (dims or {}).items() for label in labels}
    named = {place: str((dims or {}).get(word, word)) for place, word in reader.blocks.items()}
    wanted = [reader.current.get(r, r) for r in results] if results is not None else reader.results
    if wanted is not None:
        changed = {s.target for s in reader.statements} - {s.target for s in reader.statements if s.op == "="}
        wanted = [w for w in wanted if w not in changed]
    count = len(reader.statements)
    return write(reader.statements, name or reader.kernel or "contractions", "einsum list", refused, dtype, wanted, lambda label, tensor: of.get(label),
                 f"einsum list: {count} statement{'s' if count > 1 else ''}", named)
