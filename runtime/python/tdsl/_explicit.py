# SPDX-License-Identifier: Apache-2.0
"""Einsum strings without ellipses and stretched dimensions, and those of their gradients, for frameworks that differentiate."""
from ._errors import ArgumentError, ShapeError


def split(equation):
    """(terms, output) of a string with an output."""
    inputs, output = equation.split("->")
    return inputs.split(","), output


def sizes_of(terms, shapes, differ=None):
    """The extent of each label. ShapeError, which names the operand, where a label has two; `differ` may take over what is no number yet (a symbol)."""
    sizes = {}
    for k, (term, shape) in enumerate(zip(terms, shapes)):
        for label, n in zip(term, shape):
            first = sizes.setdefault(label, n)
            if first is n or (type(first) is int and first == n):
                continue
            if differ is not None and not (type(first) is int and type(n) is int):
                differ(first, n)
            elif first != n:
                raise ShapeError(f"einsum: {label!r} is {first}, and {n} in operand {k} ({','.join(terms)!r})", k)
    return sizes


def shape_of(equation, shapes, differ=None):
    """The shape of the result of a string without ellipses and stretched dimensions."""
    terms, output = split(equation)
    sizes = sizes_of(terms, shapes, differ)
    return tuple(sizes[label] for label in output)


def batched(equation, is_batched):
    """The string in which the operands of `is_batched`, and the result, have one more dimension, the first."""
    terms, output = split(equation)
    new = next(chr(0x4E00 + n) for n in range(1000) if chr(0x4E00 + n) not in equation)
    return ",".join(new + term if more else term for term, more in zip(terms, is_batched)) + "->" + new + output


def gradient_string(equation, k):
    """(string, labels, known): the einsum of the result's gradient and the other operands that gives the gradient of operand k, up to labels that only k
    has, which it is then stretched to, and those that k has twice; `labels` are all of k, once each, `known` those of the string's result."""
    terms, output = split(equation)
    others = [term for n, term in enumerate(terms) if n != k]
    once = "".join(dict.fromkeys(terms[k]))
    known = set(output).union(*others)
    made = "".join(label for label in once if label in known)
    return ",".join([output, *others]) + "->" + made, once, known


def explicit(equation, ranks, stretched):
    """(string without ellipses, for each operand the dimensions to drop): `stretched` has the places of extent 1."""
    text = equation.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(ranks):
        raise ShapeError(f"einsum: {len(ranks)} operands for {len(terms)} terms of {equation!r}")
    free = iter(chr(0x3B1 + k) for k in range(1000) if chr(0x3B1 + k) not in text)
    widths = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks)]
    dots = [next(free) for _ in range(max([w for t, w in zip(terms, widths) if "..." in t], default=0))]
    for k, (term, width) in enumerate(zip(terms, widths)):
        if width < 0 or (width > 0 and "..." not in term):
            raise ShapeError(f"einsum: operand {k} has {ranks[k]} dimensions, and {term!r} in {equation!r}", k)
        terms[k] = term.replace("...", "".join(dots[len(dots) - width:]))
    if not arrow:
        every = "".join(terms)
        output = "..." + "".join(sorted(c for c in set(every) if every.count(c) == 1 and c not in dots))
    output = output.replace("...", "".join(dots))
    if len(set(output)) < len(output) or not set(output) <= set("".join(terms)):
        raise ArgumentError(f"einsum: the output of {equation!r} has a label twice, or one that is in no operand")
    large = {label for term, ones in zip(terms, stretched) for n, label in enumerate(term) if n not in ones}
    drop = [tuple(n for n, label in enumerate(term) if n in ones and label in large) for term, ones in zip(terms, stretched)]
    terms = ["".join(label for n, label in enumerate(term) if n not in gone) for term, gone in zip(terms, drop)]
    return ",".join(terms) + "->" + output, drop
