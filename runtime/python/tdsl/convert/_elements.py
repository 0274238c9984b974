# SPDX-License-Identifier: Apache-2.0
"""Elementwise operations as text, for all doors that have whole tensors."""
from __future__ import annotations

from typing import Any, Callable

from ._graph import AND, ATOM, COMPARE, OR, PRODUCT, SUM, UNARY, Code, Context, Elementwise, Node, widest
from ._text import SHORT_INTEGERS

Write = Callable[..., Code]


def kind_of(node: Node, codes: Any) -> Any:
    return widest([c.kind for c in codes])


def fitted(node: Node, text: str, binds: int, codes: Any, **more: Any) -> Code:
    """Arithmetic: of short integers it wraps around as theirs does."""
    kind = kind_of(node, codes)
    if node.kind in SHORT_INTEGERS and kind != node.kind and kind is not None:
        return Code(f"{node.kind}({text})", ATOM, node.kind)
    return Code(text, binds, kind, **more)


def typed_first(node: Node, codes: list[Code]) -> list[Code]:
    """Numbers among themselves are exact, so the first gets the type of the operation; positions and whole numbers are exact anyway."""
    if all(c.kind is None for c in codes):
        codes = [Code(f"{node.kind}({codes[0].text})", ATOM, node.kind), *codes[1:]]
    return codes


def sign_of(op: str) -> Write:
    def write(ctx: Context, node: Node, a: Code, b: Code) -> Code:
        if node.kind[0] not in "iu":
            a, b = typed_first(node, [a, b])
        if not (a.silent and b.silent) or node.kind in SHORT_INTEGERS:
            a, b = ctx.close(a), ctx.close(b)
        sign = op
        if b.kind is None and b.text.startswith("-"):
            sign, b = "-" if op == "+" else "+", Code(b.text[1:])
        if b.binds < PRODUCT or b.text.startswith("-"):  # parentheses, in which sums have names
            b = ctx.close(b)
        join = lambda x, y: f"{x.within(SUM)} {sign} {y.within(PRODUCT) if not y.text.startswith('-') else f'({y.text})'}"
        named = join(ctx.close(a), ctx.close(b)) if a.summed or b.summed else ""
        return fitted(node, join(a, b), SUM, [a, b], summed=a.summed + b.summed, silent=a.silent and b.silent, named=named)
    return write


def multiply(ctx: Context, node: Node, a: Code, b: Code) -> Code:
    if node.kind == "bool":
        return both(AND, "&&")(ctx, node, a, b)
    a, b = typed_first(node, [a, b])
    short = node.kind in SHORT_INTEGERS
    if a.summed and (b.summed or b.binds < PRODUCT or a.binds < PRODUCT or short):
        a = ctx.close(a)
    if b.summed and (a.binds < PRODUCT or b.binds < PRODUCT or short):
        b = ctx.close(b)
    right = b.within(PRODUCT) if "/" not in b.text or b.binds > PRODUCT else f"({b.text})"
    return fitted(node, f"{a.within(PRODUCT)} * {right}", PRODUCT, [a, b], summed=a.summed + b.summed, silent=a.silent and b.silent)


def divide(ctx: Context, node: Node, a: Code, b: Code) -> Code:
    a, b = typed_first(node, [a, ctx.close(b)])
    if a.binds < PRODUCT or node.kind[0] in "iu":
        a = ctx.close(a)
    return fitted(node, f"{a.within(PRODUCT)} / {b.within(UNARY)}", PRODUCT, [a, b], summed=a.summed, silent=a.silent)


def negate(ctx: Context, node: Node, a: Code) -> Code:
    if a.binds < PRODUCT or node.kind in SHORT_INTEGERS:
        a = ctx.close(a)
    return fitted(node, f"-{a.within(PRODUCT) if not a.text.startswith('-') else f'({a.text})'}", UNARY if not a.summed else PRODUCT, [a], summed=a.summed, silent=a.silent)


def both(binds: int, op: str) -> Write:
    def write(ctx: Context, node: Node, a: Code, b: Code) -> Code:
        a, b = ctx.close(a), ctx.close(b)
        return Code(f"{a.within(binds + 1 if binds == COMPARE else binds)} {op} {b.within(binds + 1)}", binds, "bool")
    return write


def call(name: str, *more: str) -> Write:
    """A function of the language; `more` are further operands."""
    def write(ctx: Context, node: Node, *codes: Code) -> Code:
        closed = typed_first(node, [ctx.close(c) for c in codes])
        return fitted(node, f"{name}({', '.join([*(c.text for c in closed), *more])})", ATOM, closed)
    return write


def logical_not(ctx: Context, node: Node, a: Code) -> Code:
    return Code(f"!{ctx.close(a).within(UNARY)}", UNARY, "bool")


def select(ctx: Context, node: Node, c: Code, x: Code, y: Code) -> Code:
    x, y = typed_first(node, [ctx.close(x), ctx.close(y)])
    kind = widest([x.kind, y.kind])
    text = f"select({ctx.close(c).text}, {x.text}, {y.text})"
    return Code(f"{node.kind}({text})", ATOM, node.kind) if kind != node.kind and node.kind in SHORT_INTEGERS else Code(text, ATOM, kind)


def cast(ctx: Context, node: Node, a: Code) -> Code:
    a = ctx.close(a)
    if a.kind == node.kind:
        return a
    if node.kind == "bool" and a.kind != "bool":
        return Code(f"{a.within(SUM)} != 0", COMPARE, "bool")
    return Code(f"{node.kind}({a.text})", ATOM, node.kind)


def form(text: str, binds: int = ATOM) -> Write:
    """A formula of `{0}`, `{1}`, ...: operands that bind as tightly as a factor."""
    def write(ctx: Context, node: Node, *codes: Code) -> Code:
        closed = typed_first(node, [ctx.close(c) for c in codes])
        return fitted(node, text.format(*(c.within(UNARY) if not c.text.startswith("-") else f"({c.text})" for c in closed)), binds, closed)
    return write


def remainder(ctx: Context, node: Node, a: Code, b: Code) -> Code:
    """With the sign of the dividend, as C has it."""
    a, b = typed_first(node, [ctx.close(a), ctx.close(b)])
    size = b.text if b.kind is None and not b.text.startswith("-") else f"abs({b.text})"
    return Code(f"sign({a.text}) * mod(abs({a.text}), {size})", PRODUCT, widest([a.kind, b.kind]))


def truth(text: str) -> Write:
    """A formula that gives a bool."""
    def write(ctx: Context, node: Node, *codes: Code) -> Code:
        return Code(text.format(*(ctx.close(c).within(UNARY) for c in codes)), COMPARE, "bool")
    return write


def real_of(name: str) -> Write:
    """A function that makes a complex number real."""
    def write(ctx: Context, node: Node, a: Code) -> Code:
        return Code(f"{name}({ctx.close(a).text})", ATOM, node.kind)
    return write


def complex_of(ctx: Context, node: Node, a: Code, b: Code) -> Code:
    return Code(f"{node.kind}({ctx.close(a).text}) + 1i*{ctx.close(b).within(UNARY)}", SUM, node.kind)


def power(ctx: Context, node: Node, a: Code, exponent: int) -> Code:
    """A whole power."""
    a = ctx.close(a)
    if node.kind[0] in "iu" or exponent in (2, 3):
        text = " * ".join([a.within(UNARY) if not a.text.startswith("-") else f"({a.text})"] * exponent)
        return fitted(node, text or "1", PRODUCT, [a])
    return fitted(node, f"pow({a.text}, {exponent})", ATOM, typed_first(node, [a]))


def elementwise(shape: Any, kind: str, operands: list[Node], write: Write, twice: bool = False) -> Node:
    return Elementwise(shape, kind, operands, write, twice)


# What other notations have under these names, or others: numbers of operands are those of the function.
PLAIN: dict[str, tuple[Write, bool]] = {
    "add": (sign_of("+"), False), "sub": (sign_of("-"), False), "mul": (multiply, False), "div": (divide, False), "neg": (negate, False),
    "max": (call("max"), False), "min": (call("min"), False), "pow": (call("pow"), False), "atan2": (call("atan2"), False),
    "eq": (both(COMPARE, "=="), False), "ne": (both(COMPARE, "!="), False), "lt": (both(COMPARE, "<"), False), "le": (both(COMPARE, "<="), False),
    "gt": (both(COMPARE, ">"), False), "ge": (both(COMPARE, ">="), False), "and": (both(AND, "&&"), False), "or": (both(OR, "||"), False),
    "xor": (both(COMPARE, "!="), False), "not": (logical_not, False),
    **{name: (call(name), False) for name in ("exp", "exp2", "expm1", "log", "log1p", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "sigmoid", "relu", "gelu", "abs", "sign",
                                               "floor", "ceil", "round", "atan", "conj")},
    "re": (real_of("re"), False), "im": (real_of("im"), False), "cabs": (real_of("abs"), False),
    "tan": (form("sin({0}) / cos({0})", PRODUCT), True), "square": (form("{0} * {0}", PRODUCT), True), "erfc": (form("1 - erf({0})", SUM), False),
    "cosh": (form("(exp({0}) + exp(-{0})) / 2", PRODUCT), True),
    "finite": (truth("abs({0}) < inf"), False), "isnan": (truth("{0} != {0}"), True),
    "rem": (remainder, True), "irem": (form("{0} - {1} * ({0} / {1})", SUM), True),
}
