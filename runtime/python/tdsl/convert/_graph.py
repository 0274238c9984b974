# SPDX-License-Identifier: Apache-2.0
"""A graph of operations on whole tensors, and the statements in index notation that it becomes.

What only moves elements (transpose, broadcast, reshape, slice) is a view: no statement, but the indices with which its operand is read. An axis that a
reshape joins or splits is read by one index for each of its digits, `x[4*i + j]`. An elementwise operation with one reader stands in the statement of
that reader.
"""
from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable

from ._text import SHORT_INTEGERS, Converted, Names, Poly, Refused, comment, divided, factor, head, number

TOP, OR, AND, COMPARE, SUM, PRODUCT, UNARY, ATOM = range(8)
INDICES = [*"ijklpqrstuwxyz", *"abcdefghmno"]


class Crosses(Exception):
    """An axis is read in two ways that have no digits in common."""


def refine(a: list[Any], b: list[Any]) -> list[Any]:
    """The digits, outermost first, that both lists of digits are made of."""
    a, b, found = [d for d in a if d != 1], [d for d in b if d != 1], []
    while a and b:
        x, y = a.pop(), b.pop()
        if x == y:
            found.append(x)
        elif divided(y, x) is not None:
            found.append(x)
            b.append(divided(y, x))
        elif divided(x, y) is not None:
            found.append(y)
            a.append(divided(x, y))
        else:
            raise Crosses
    if a or b:
        raise Crosses
    return found[::-1]


class Pos:
    """A position along an axis: a sum of indices with strides, and whether these are the digits of the axis."""

    def __init__(self, terms: list[tuple[Any, str]], const: Any = 0, digits: list[tuple[str, Any]] | None = None) -> None:
        self.terms, self.const, self.digits = terms, const, digits

    @staticmethod
    def of(digits: list[tuple[str, Any]]) -> "Pos":
        terms, stride = [], 1
        for name, extent in reversed(digits):
            terms.append((stride, name))
            stride = stride * extent
        return Pos(terms[::-1], 0, digits)

    def moved(self, factor: Any, const: Any) -> "Pos":
        if factor == 1 and const == 0:
            return self
        return Pos([(c * factor, name) for c, name in self.terms], self.const * factor + const)

    def plus(self, other: "Pos") -> "Pos":
        return Pos(self.terms + other.terms, self.const + other.const)

    def __str__(self) -> str:
        words = []
        for c, name in self.terms:
            sign, size = ("-", -c) if isinstance(c, int) and c < 0 else ("+", c)
            words.append((sign, name if size == 1 else f"{factor(size)}*{name}"))
        if self.const != 0 or not words:
            negative = isinstance(self.const, int) and self.const < 0
            words.append(("-", str(-self.const)) if negative else ("+", str(self.const)))
        words.sort(key=lambda word: word[0] == "-")  # a position begins without a sign where it can
        text = "".join(f" {sign} {word}" for sign, word in words)
        return text[3:] if text.startswith(" + ") else "-" + text[3:]


class Code:
    """Text of an expression: how tightly it binds, its type in the language (None: a number, which takes any), the indices of a product that are summed
    without a word, and of a sum of terms its text with the sums of each term named."""

    def __init__(self, text: str, binds: int = ATOM, kind: str | None = None, summed: list[tuple[str, Any]] | None = None, silent: bool = True, named: str = "") -> None:
        self.text, self.binds, self.kind, self.summed, self.silent, self.named = text, binds, kind, summed or [], silent, named

    def within(self, least: int) -> str:
        return self.text if self.binds >= least else f"({self.text})"


class Context:
    """One statement while it is written: its indices, and how tensors are read with them."""

    def __init__(self, taken: Any) -> None:
        self.names = Names(taken)
        self.extents: dict[str, Any] = {}
        self.alone: set[str] = set()
        self.moved: set[str] = set()

    def index(self, extent: Any) -> str:
        name = next((n for n in INDICES if n not in self.names.taken), None)
        name = self.names.new(name or "i")
        self.extents[name] = extent
        return name

    def digits(self, extents: list[Any]) -> Pos:
        return Pos.of([(self.index(e), e) for e in extents if e != 1])

    def read(self, pos: Pos, extent: Any) -> str:
        for c, name in pos.terms:
            whole = len(pos.terms) == 1 and c == 1 and pos.const == 0 and self.extents.get(name) == extent
            (self.alone if whole else self.moved).add(name)
        return str(pos)

    def listed(self, name: str) -> str:
        """The index where it is listed, with its range if nothing else says it."""
        return name if name in self.alone and name not in self.moved else f"{name} < {self.extents[name]}"

    def close(self, code: Code) -> Code:
        """The expression with its sums named."""
        if not code.summed:
            return code
        if code.named:
            return Code(code.named, code.binds, code.kind)
        assert code.binds >= PRODUCT
        return Code(f"sum[{', '.join(self.listed(name) for name, _ in code.summed)}]({code.text})", ATOM, code.kind)


class Node:
    """A tensor. `shape` has ints and extents with open dims, `kind` is its element type."""
    view = leaf = fold = False
    operands: list["Node"] = []

    def __init__(self, shape: Any, kind: str) -> None:
        self.shape, self.kind = tuple(shape), kind
        self.name: str | None = None  # with a name it has a statement
        self.hint = ""                # the name if it happens to have one
        self.origin = ""
        self.stored: "Stored | None" = None
        self.memo: dict[int, list[Any]] | None = {}  # digits, until statements are written
        self.of_positions = False                    # of positions and numbers alone

    def reads(self) -> "Node":
        return self.stored or self

    def digits(self, axis: int) -> list[Any]:
        if self.stored:
            return self.stored.digits(axis)
        if self.memo is None:
            return self.own_digits(axis)
        if axis not in self.memo:
            self.memo[axis] = self.own_digits(axis)
        return list(self.memo[axis])

    def code(self, ctx: Context, at: list[Pos]) -> Code:
        return self.stored.code(ctx, at) if self.stored else self.own_code(ctx, at)

    def own_digits(self, axis: int) -> list[Any]:
        return [self.shape[axis]]

    def own_code(self, ctx: Context, at: list[Pos]) -> Code:
        raise NotImplementedError


class Stored(Node):
    """A parameter, or what a statement defines: `axes` are the digits of each axis, of which each is a dimension."""
    leaf = True

    def __init__(self, shape: Any, kind: str, name: str, axes: list[list[Any]] | None = None) -> None:
        super().__init__(shape, kind)
        self.text, self.axes = name, axes

    def own_digits(self, axis: int) -> list[Any]:
        return self.axes[axis] if self.axes is not None else [self.shape[axis]]

    def own_code(self, ctx: Context, at: list[Pos]) -> Code:
        if self.axes is None:
            positions = [ctx.read(pos, n) for pos, n in zip(at, self.shape)]
        else:
            positions = [ctx.read(p, n) for pos, digits in zip(at, self.axes) for p, n in zip(split(pos, digits), [d for d in digits if d != 1])]
        return Code(f"{self.text}[{','.join(positions)}]" if positions else self.text, ATOM, self.kind)


def split(pos: Pos, digits: list[Any]) -> list[Pos]:
    """The positions of the digits, each of which may consist of smaller ones."""
    digits = [d for d in digits if d != 1]
    if len(digits) == 1:
        return [pos]
    if not digits:
        return []
    if pos.digits is None:
        raise Crosses
    left = list(pos.digits)
    found: list[Pos] = []
    for digit in reversed(digits):
        taken: list[tuple[str, Any]] = []
        size = 1
        while size != digit:
            if not left:
                raise Crosses
            taken.insert(0, left.pop())
            size = size * taken[0][1]
        found.insert(0, Pos.of(taken))
    return found


class Number(Node):
    """A number, of every shape."""
    leaf = True

    def __init__(self, value: Any, kind: str) -> None:
        super().__init__((), kind)
        self.value = value
        self.of_positions = True

    def own_code(self, ctx: Context, at: list[Pos]) -> Code:
        text = number(self.value, self.kind)
        return Code(text, UNARY if text.startswith("-") else ATOM, "bool" if self.kind == "bool" else None)


class Size(Node):
    """An extent as a number."""
    leaf = True

    def __init__(self, extent: Any, kind: str) -> None:
        super().__init__((), kind)
        self.extent = extent
        self.of_positions = True

    def own_code(self, ctx: Context, at: list[Pos]) -> Code:
        words = []
        for names, n in Poly.of(self.extent).terms.items():
            words.append("*".join([*([str(n)] if n != 1 or not names else []), *(f"extent({name})" for name in names)]))
        return Code(" + ".join(words), SUM if len(words) > 1 else PRODUCT)


class Iota(Node):
    """The positions along an axis."""
    leaf = True

    def __init__(self, shape: Any, axis: int, kind: str) -> None:
        super().__init__(shape, kind)
        self.axis = axis
        self.of_positions = True

    def own_code(self, ctx: Context, at: list[Pos]) -> Code:
        pos = at[self.axis]
        return Code(f"index({pos})" if pos.terms else "0", ATOM)


class Elementwise(Node):
    """A function of the elements at one place. `write` makes its text of those of the operands, which it may use twice where `twice` says so."""

    def __init__(self, shape: Any, kind: str, operands: list[Node], write: Callable[..., Code], twice: bool = False) -> None:
        super().__init__(shape, kind)
        self.operands, self.write, self.twice = operands, write, twice
        self.of_positions = all(x.of_positions for x in operands)

    def own_digits(self, axis: int) -> list[Any]:
        return functools.reduce(refine, [x.digits(axis) for x in self.operands if x.shape and x.shape[axis] == self.shape[axis]], [self.shape[axis]])

    def own_code(self, ctx: Context, at: list[Pos]) -> Code:
        codes = [x.code(ctx, [pos if m == n else Pos([]) for pos, m, n in zip(at, x.shape, self.shape)]) for x in self.operands]
        return self.write(ctx, self, *codes)


class View(Node):
    """What reads its operand at other positions: `place` makes the positions of the operand of its own; `own` says the digits of its axes."""
    view = True

    def __init__(self, shape: Any, operand: Node, place: Callable[[list[Pos]], list[Pos]], own: Callable[[int], list[Any]]) -> None:
        super().__init__(shape, operand.kind)
        self.operands, self.place, self.own = [operand], place, own
        self.of_positions = operand.of_positions
        self.axes_of: Any = None  # where each axis of the operand is one of the view: which

    def own_digits(self, axis: int) -> list[Any]:
        return self.own(axis)

    def own_code(self, ctx: Context, at: list[Pos]) -> Code:
        return self.operands[0].code(ctx, self.place(at))


def transpose(x: Node, order: Any) -> Node:
    order = [int(k) for k in order]
    found = View([x.shape[k] for k in order], x, lambda at: [at[order.index(k)] for k in range(len(order))], lambda axis: x.digits(order[axis]))
    found.axes_of = [order.index(k) for k in range(len(order))]
    return found


def broadcast(x: Node, shape: Any, axes: Any) -> Node:
    """The axes of x are those of the result, or of extent 1."""
    axes, shape = list(axes), tuple(shape)

    def own(axis: int) -> list[Any]:
        if axis in axes and x.shape[axes.index(axis)] == shape[axis]:
            return x.digits(axes.index(axis))
        return [shape[axis]]
    found = View(shape, x, lambda at: [at[k] if x.shape[a] == shape[k] else Pos([]) for a, k in enumerate(axes)], own)
    found.axes_of = axes
    return found


def reshape(x: Node, shape: Any) -> Node:
    """Raises Crosses where the axes of the two shapes have no digits in common."""
    shape = tuple(shape)
    if x.shape == shape:
        return x

    def grouped(common: list[Any], extents: Any) -> list[list[Any]]:
        left = list(common)
        groups: list[list[Any]] = []
        for extent in reversed(extents):
            group: list[Any] = []
            size = 1
            while size != extent:
                if not left:
                    raise Crosses
                group.insert(0, left.pop())
                size = size * group[0]
            groups.insert(0, group)
        return groups

    def common() -> list[Any]:
        return refine(refine(list(x.shape), list(shape)), [d for axis in range(len(x.shape)) for d in x.digits(axis)])
    try:
        common()
    except Crosses:  # through memory, in one row
        if isinstance(x, Row):
            raise
        return reshape(Row(x), shape)

    def place(at: list[Pos]) -> list[Pos]:
        base = refine(list(x.shape), list(shape))
        pieces: list[Pos] = []
        for pos, group in zip(at, grouped(base, shape)):
            pieces += split(pos, group)
        found: list[Pos] = []
        for group in reversed(grouped(base, x.shape)):
            mine = [pieces.pop() for _ in group][::-1]
            if all(p.digits is not None for p in mine):
                found.insert(0, Pos.of([d for p in mine for d in p.digits or []]))
            else:
                total, stride = Pos([]), 1
                for p, n in zip(reversed(mine), reversed(group)):
                    total = p.moved(stride, 0).plus(total)
                    stride = stride * n
                found.insert(0, total)
        return found
    found = View(shape, x, place, lambda axis: grouped(common(), shape)[axis])
    long = [[k for k, n in enumerate(extents) if n != 1] for extents in (x.shape, shape)]
    if [x.shape[k] for k in long[0]] == [shape[k] for k in long[1]]:  # only axes of 1 come and go
        found.axes_of = [dict(zip(*long)).get(k, 0) for k in range(len(x.shape))]
    return found


def cut(x: Node, shape: Any, starts: Any, steps: Any) -> Node:
    """Every so-many-th position from a start on; a step may be below 0."""
    starts, steps, shape = list(starts), list(steps), tuple(shape)
    x = flat(x, [k for k, n in enumerate(shape) if n != x.shape[k] or steps[k] != 1])

    def own(axis: int) -> list[Any]:
        return x.digits(axis) if shape[axis] == x.shape[axis] and steps[axis] == 1 else [shape[axis]]
    def place(at: list[Pos]) -> list[Pos]:  # digits of a part are none of the whole axis
        moved = [pos.moved(step, start) for pos, start, step in zip(at, starts, steps)]
        return [pos if n == m else Pos(pos.terms, pos.const) for pos, n, m in zip(moved, shape, x.shape)]
    return View(shape, x, place, own)


class Reduce(Node):
    """A reduction over axes."""
    fold = True

    def __init__(self, op: str, x: Node, axes: Any, kind: str, cast: bool = False) -> None:
        self.axes = sorted(int(a) for a in axes)
        super().__init__([n for k, n in enumerate(x.shape) if k not in self.axes], kind)
        self.op, self.operands, self.cast = op, [flat(x, self.axes) if op.startswith("arg") else x], cast

    def own_digits(self, axis: int) -> list[Any]:
        kept = [k for k in range(len(self.operands[0].shape)) if k not in self.axes]
        return self.operands[0].digits(kept[axis])

    def own_code(self, ctx: Context, at: list[Pos]) -> Code:
        x, rest, inner = self.operands[0], list(at), []
        for axis in range(len(x.shape)):
            inner.append(ctx.digits(x.digits(axis)) if axis in self.axes else rest.pop(0))
        code = ctx.close(x.code(ctx, inner))
        names = [name for axis in self.axes for name, _ in inner[axis].digits or []]
        if not names:
            if self.op.startswith("arg"):
                return Code(f"{self.kind}(0)", ATOM, self.kind)
            return code
        kind: str | None = "i64" if self.op.startswith("arg") else code.kind or self.kind
        text = code.text if code.kind else f"{self.kind}({code.text})"
        text = f"{self.op}[{', '.join(ctx.listed(name) for name in names)}]({text})"
        if kind in SHORT_INTEGERS and self.op in ("sum", "prod"):
            kind = "i64" if kind == "u32" else "i32"
        return Code(f"{self.kind}({text})", ATOM, self.kind) if kind != self.kind and (self.cast or self.kind in SHORT_INTEGERS) else Code(text, ATOM, kind)


class Running(Node):
    """A fold of all positions up to one, or from it on."""
    fold = True

    def __init__(self, op: str, x: Node, axis: int, reverse: bool) -> None:
        super().__init__(x.shape, x.kind)
        self.op, self.operands, self.axis, self.reverse = op, [flat(x, [axis])], axis, reverse

    def own_digits(self, axis: int) -> list[Any]:
        return [self.shape[axis]] if axis == self.axis else self.operands[0].digits(axis)

    def own_code(self, ctx: Context, at: list[Pos]) -> Code:
        inner = list(at)
        inner[self.axis] = ctx.digits([self.shape[self.axis]])
        if str(inner[self.axis]) == "0":
            return self.operands[0].code(ctx, inner)
        code = ctx.close(self.operands[0].code(ctx, inner))
        (_, name), = inner[self.axis].terms
        ranged = "" if ctx.listed(name) == name else ctx.listed(name) + ", "
        return Code(f"{self.op}[{ranged}{name} {'>=' if self.reverse else '<='} {at[self.axis]}]({code.text})", ATOM, code.kind)


class Contract(Node):
    """A product of tensors, summed over the labels that its own axes have not. Its operands are read where they are stored."""
    fold = True

    def __init__(self, operands: list[Node], labels: list[list[Any]], output: list[Any], kind: str) -> None:
        self.extent: dict[Any, Any] = {}
        for x, own in zip(operands, labels):
            for n, label in zip(x.shape, own):
                if self.extent.get(label, 1) == 1:
                    self.extent[label] = n
        super().__init__([self.extent[label] for label in output], kind)
        self.operands, self.labels, self.output = operands, labels, output

    def label_digits(self, label: Any) -> list[Any]:
        found = [self.extent[label]]
        for x, own in zip(self.operands, self.labels):
            for axis, each in enumerate(own):
                if each == label and x.shape[axis] != 1:
                    found = refine(found, x.digits(axis))
        return found

    def own_digits(self, axis: int) -> list[Any]:
        return self.label_digits(self.output[axis])

    def own_code(self, ctx: Context, at: list[Pos]) -> Code:
        place = dict(zip(self.output, at))
        summed: list[tuple[str, Any]] = []
        for label in self.extent:
            if label not in place:
                place[label] = ctx.digits(self.label_digits(label))
                summed += place[label].digits or []
        codes, count = [], {name: 0 for name, _ in summed}
        for x, own in zip(self.operands, self.labels):
            at_x = [place[label] if x.shape[axis] == self.extent[label] else Pos([]) for axis, label in enumerate(own)]
            for name in {name for pos in at_x for _, name in pos.terms}:
                if name in count:
                    count[name] += 1
            codes.append(ctx.close(x.code(ctx, at_x)))
        kinds = [c.kind for c in codes]
        silent = all(name in ctx.alone and name not in ctx.moved and n > 1 for name, n in count.items())
        code = Code(" * ".join(c.within(PRODUCT) for c in codes), PRODUCT if len(codes) > 1 else codes[0].binds, widest(kinds), summed, silent)
        return code if silent else ctx.close(code)


def widest(kinds: list[str | None]) -> str | None:
    """The type of the arithmetic of these types, as the language has it."""
    known = [k for k in kinds if k]
    if not known:
        return None
    if any(k[0] == "c" for k in known):
        return "c128" if any(k in ("c128", "f64") for k in known) else "c64"
    if any(k in SHORT_INTEGERS for k in known):
        return "i64" if "u32" in known or "i64" in known else "i32"
    order = ["bool", "i32", "i64", "f8e4m3", "f8e5m2", "f8e4m3fn", "f16", "bf16", "f32", "f64"]
    return max(known, key=order.index)


class Pieces(Node):
    """Tensors side by side along an axis, each from its start on; zeros elsewhere. Written as statements of its own."""

    def __init__(self, shape: Any, operands: list[Node], starts: list[list[Any]]) -> None:
        super().__init__(shape, operands[0].kind)
        self.operands, self.starts = operands, starts


class Row(Pieces):
    """A tensor in one row, as it lies in memory."""

    def __init__(self, x: Node) -> None:
        length = functools.reduce(lambda a, b: a * b, x.shape, 1)
        super().__init__([length], [x], [[0] * len(x.shape)])


class Lookup(Node):
    """x with the axes in `axes` read at positions that are values: `positions`, which have the leading axes of the result."""

    def __init__(self, shape: Any, x: Node, positions: list[Node], place: Callable[[Context, list[Pos]], list[Any]]) -> None:
        super().__init__(shape, x.kind)
        self.operands, self.place = [x, *positions], place

    def own_code(self, ctx: Context, at: list[Pos]) -> Code:
        x = self.operands[0].reads()
        if not isinstance(x, Stored) or x.axes is not None and any(len(digits) > 1 for digits in x.axes):
            raise Crosses
        words = [word if isinstance(word, str) else ctx.read(word, n) for k, (word, n) in enumerate(zip(self.place(ctx, at), x.shape)) if x.axes is None or x.axes[k]]
        return Code(f"{x.text}[{','.join(words)}]", ATOM, x.kind)


class Kernel:
    """Writes one kernel: parameters, then statements for what the results need."""

    def __init__(self, name: str, door: str) -> None:
        self.name, self.refused = name, Refused(door)
        self.values = Names()
        self.nodes: list[Node] = []
        self.parameters: list[tuple[str, Stored, str]] = []
        self.arrays: dict[str, Any] = {}
        self.dims: set[str] = set()
        self.lines: list[str] = []
        self.last = ""

    def parameter(self, name: str, shape: Any, kind: str, note: str = "") -> Stored:
        found = Stored(shape, kind, self.values.new(name))
        for n in shape:
            self.dims.update(name for names in Poly.of(n).terms for name in names)
        self.parameters.append((found.text, found, note))
        return found

    def add(self, node: Node, origin: str, hint: str = "") -> Node:
        """Takes a node into the graph, with what it is made of and the graph does not have yet: the place that it comes from, and a name for its statement."""
        for x in node.operands:
            if not (x.leaf or x.origin):
                self.add(x, origin)
        if not node.origin:
            node.origin, node.hint = origin, hint
            self.nodes.append(node)
            with contextlib.suppress(Crosses):  # known from now on, so that nobody has to go down a long chain
                for axis in range(len(node.shape)):
                    node.digits(axis)
        return node

    def write(self, results: list[tuple[str, Node]], top: str) -> Converted:
        """The program. Raises ConversionError with all that was refused."""
        self.refused.check()
        order = self._reached([node for _, node in results])
        for node in order:
            node.memo = None
        self._count(order, [node for _, node in results])
        first = {id(node): name for name, node in reversed(results) if not only_stored(node)}
        out, done = [], {}
        for name, node in results:
            done[name] = self.values.new(name, "y")
            out.append(f"{done[name]}: {typed(node.kind, node.shape)}")
        due: set[int] = set()
        for node in order:
            result = done[first[id(node)]] if id(node) in first else None
            if not result and not self._own_statement(node, due):
                continue
            readers = self.direct[id(node)]
            if not result and len(readers) == 1 and readers[0] is not None and readers[0].view and not grows(readers[0]) and not isinstance(node, Pieces):
                due.add(id(readers[0]))  # its view is stored in its place
                readers[0].name = readers[0].name or node.name
            else:
                self._state(node, result)
        for name, node in results:
            if first.get(id(node)) != name:
                self._copy(node, done[name])
        self.refused.check()
        heads = [f"{name}: {typed(node.kind, node.shape)}" for name, node, _ in self.parameters]
        notes = [comment(f"{name}: {note}") for name, _, note in self.parameters if note]
        text = "\n".join([comment(top), *notes, head(self.name, heads, out), *self.lines, "}", ""])
        return Converted(text, self.name, self.arrays)

    def _reached(self, results: list[Node]) -> list[Node]:
        """The nodes that results need, in the order in which they came."""
        seen: set[int] = set()
        left = list(results)
        while left:
            node = left.pop()
            if id(node) not in seen:
                seen.add(id(node))
                left += node.operands
        return [node for node in self.nodes if id(node) in seen]

    def _count(self, order: list[Node], results: list[Node]) -> None:
        """Who reads each node: directly, with None for the caller, and through views, with the views that repeat elements on the way."""
        self.direct: dict[int, list[Node | None]] = {id(node): [] for node in order}
        self.readers: dict[int, list[tuple[Node | None, bool]]] = {id(node): [] for node in order}
        for node in results:
            self.direct.setdefault(id(node), []).append(None)
            self.readers.setdefault(id(node), []).append((None, False))
        for node in reversed(order):
            for x in node.operands:
                self.direct.setdefault(id(x), []).append(node)
                found = [(r, more or grows(node)) for r, more in self.readers[id(node)]] if node.view else \
                    [(node, grows_into(x, node))] * (2 if getattr(node, "twice", False) else 1)
                self.readers.setdefault(id(x), []).extend(found)

    def _own_statement(self, node: Node, due: set[int]) -> bool:
        if id(node) in due or isinstance(node, Pieces):
            return True
        if node.view and any(isinstance(r, Lookup) and r.operands[0] is node for r in self.direct[id(node)]):
            return True  # rows are looked up in what is stored
        if node.leaf or only_stored(node):
            return False
        if only_positions(node):
            return self._length(node) > 60
        if node.name is not None:
            return True
        if node.view:
            return False
        readers = self.readers[id(node)]
        if len(readers) > 1 or any(isinstance(r, (Contract, Lookup, Pieces)) for r, _ in readers):
            return True
        if heavy(node) and any(r is not None and r.fold or more for r, more in readers):
            return True
        return self._length(node) > 90

    def _length(self, node: Node) -> int:
        """How long the text of its expression is; a long one gets a statement."""
        try:
            ctx = Context(self.dims | self.values.taken)
            return len(node.own_code(ctx, [ctx.digits(node.own_digits(k)) for k in range(len(node.shape))]).text)
        except Crosses:
            return 1 << 30

    def _say(self, origin: str) -> None:
        if origin and origin != self.last:
            self.lines.append("    " + comment(origin))
        self.last = origin

    def _state(self, node: Node, result: str | None) -> None:
        """The statement of a node, which is read as a stored value from then on."""
        self._say(node.origin or self.last)
        name = result or self.values.new(node.name or default_name(node))
        self._write(node, name, result is not None)
        if node.stored is None or result:
            node.stored = Stored(node.shape, node.kind, name, None if result or isinstance(node, Pieces) else self.axes)

    def _copy(self, node: Node, name: str) -> None:
        self._say(node.origin)
        self._write(node, name, True)

    def _write(self, node: Node, name: str, result: bool) -> None:
        """The statement. Where operands are stored with other digits than those with which it reads them, they are copied into rows first."""
        for rows in (True, False):
            try:
                if isinstance(node, Pieces) and node.stored is None:
                    return self._pieces(node, name, result)
                self.axes = [[d for d in node.digits(k) if d != 1] for k in range(len(node.shape))]
                return self._assign(node, name, result, self.axes)
            except Crosses:
                if not rows or not self._rows(node):
                    break
        self.refused.add("an axis that is split in two ways of which none is a part of the other", node.origin)
        self.axes = [[n] for n in node.shape]

    def _rows(self, node: Node) -> bool:
        """Copies what the expression reads and what has axes of several digits, so that each of these is one axis. Was there any?"""
        left, found = list(node.operands) if node.stored is None else [node], False
        while left:
            x = left.pop()
            if x.stored is None:
                left += x.operands
            elif x.stored.axes is not None and any(len(digits) > 1 for digits in x.stored.axes):
                name = self.values.new(x.stored.text)
                self._pieces(Pieces(x.shape, [x.stored], [[0] * len(x.shape)]), name, False)
                x.stored, found = Stored(x.shape, x.kind, name), True
        return found

    def _assign(self, node: Node, name: str, result: bool, axes: list[list[Any]]) -> None:
        ctx = Context(self.dims | self.values.taken)
        at = [ctx.digits(digits) for digits in axes]
        code = node.code(ctx, at)
        if not code.silent:
            code = ctx.close(code)
        text = code.text
        kind = ""
        if code.kind is None:
            text = f"{node.kind}({text})"
        elif code.kind != node.kind:
            if widens(code.kind, node.kind):
                kind = "" if result else node.kind
            else:
                text = f"{node.kind}({ctx.close(code).text})"
        words = []
        for pos, extent in zip(at, node.shape):
            if result:
                digits = pos.digits or []
                if not digits:
                    words.append(self._one(ctx))
                elif len(digits) == 1:
                    words.append(digits[0][0] if digits[0][0] in ctx.alone else f"{digits[0][0]} < {extent}")
                else:
                    words.append(str(pos))
                    if any(name_of not in ctx.alone for name_of, _ in digits):  # in pieces an index has the range that its tensors give it
                        self._state(node, None)
                        return self._assign(node, name, result, axes)
            else:
                words += [ctx.listed(n) for n, _ in pos.digits or []]
        left = name + (f": {kind}" if kind else "") + (f"[{','.join(words)}]" if words else "")
        self.lines.append(f"    {left} = {text};")

    @staticmethod
    def _one(ctx: Context) -> str:
        return f"{ctx.index(1)} < 1"

    def _pieces(self, node: Pieces, name: str, result: bool) -> None:
        whole = node.shape
        ctx = Context(self.dims | self.values.taken)
        names = [ctx.index(n) for n in whole]
        listed = ",".join(f"{i} < {n}" for i, n in zip(names, whole))
        rows = [f"    {name}[{listed}] = 0;" if result else f"    {name}: {node.kind}[{listed}] = 0;"]
        for x, starts in zip(node.operands, node.starts):
            ctx = Context(self.dims | self.values.taken)
            at = [ctx.digits(x.digits(k)) for k in range(len(x.shape))]
            code = ctx.close(x.code(ctx, at))
            if x.stored is None and any(name_of not in ctx.alone for pos in at for name_of, _ in (pos.digits or [])[1:]):
                self._state(x, None)
                return self._pieces(node, name, result)
            if isinstance(node, Row):
                at = [Pos.of([d for pos in at for d in pos.digits or []])]
            words = []
            for pos, start, n in zip(at, starts, node.shape):
                name_of = pos.terms[0][1] if pos.terms else ""
                part = start == 0 and len(pos.terms) == 1 and (ctx.extents[name_of] != n or name_of not in ctx.alone)
                words.append(f"{name_of} < {ctx.extents[name_of]}" if part else str(pos.moved(1, start)))
            text = code.text if code.kind else f"{node.kind}({code.text})"
            rows.append(f"    {name}[{','.join(words)}] += {text};")
        self.lines += rows


def grows(node: Node) -> bool:
    """Does a view repeat elements?"""
    return grows_into(node.operands[0], node)


def grows_into(x: Node, node: Node) -> bool:
    """Has a reader of x more elements than x, so that x would be computed again for each?"""
    count = lambda shape: functools.reduce(lambda a, b: a * b, shape, 1)
    return divided(count(x.shape), count(node.shape)) is None and not node.fold


def heavy(node: Node) -> bool:
    """Is a fold computed in the expression?"""
    return node.stored is None and (node.fold or isinstance(node, Lookup) or any(heavy(x) for x in node.operands))


def only_stored(node: Node) -> bool:
    """A parameter or what a statement gave, or a view of it."""
    return isinstance(node, Stored) or node.stored is not None or node.leaf and not isinstance(node, Iota) or node.view and only_stored(node.operands[0])


def flat(x: Node, axes: list[int]) -> Node:
    """x with each of these axes stored as one, for what reads it at shifted positions."""
    return Pieces(x.shape, [x], [[0] * len(x.shape)]) if any(len([d for d in x.digits(a) if d != 1]) > 1 for a in axes) else x


def only_positions(node: Node) -> bool:
    """Is it made of positions and numbers alone, and not stored?"""
    return node.of_positions and node.stored is None


def default_name(node: Node) -> str:
    while node.view and not node.hint:
        node = node.operands[0]
    if node.hint:
        return node.hint
    if isinstance(node, Reduce):
        return {"sum": "total", "max": "largest", "min": "least", "prod": "product"}.get(node.op, node.op)
    return "product" if isinstance(node, Contract) else "joined" if isinstance(node, Pieces) else "rows" if isinstance(node, Lookup) else "t"


def typed(kind: str, shape: Any) -> str:
    return f"{kind}[{', '.join(str(n) for n in shape)}]" if shape else kind


def widens(a: str, b: str) -> bool:
    """Does a value of type a become one of type b where it is assigned?"""
    steps = {"f16": ("f32", "f64"), "bf16": ("f32", "f64"), "f32": ("f64",), "i8": ("i16", "i32", "i64"), "u8": ("i16", "u16", "i32", "u32", "i64"), "i16": ("i32", "i64"),
             "u16": ("i32", "u32", "i64"), "i32": ("i64",), "u32": ("i64",), "c64": ("c128",)}
    return b in steps.get(a, ())
