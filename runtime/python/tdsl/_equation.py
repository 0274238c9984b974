# SPDX-License-Identifier: Apache-2.0
"""Einsum strings, as far as Python has to read them: tdslc does all else, messages included."""
from ._errors import ArgumentError, CallError
from ._typical import near


def symbol(number):
    """The label of a number of the interleaved form: NumPy's 52 letters, in their order, then others in theirs."""
    if not isinstance(number, int) and not hasattr(number, "__index__"):
        raise CallError(f"a label of einsum's interleaved form is a number or Ellipsis, not {number!r}")
    number = number.__index__()
    if number < 0:
        raise ArgumentError(f"a label of einsum's interleaved form is negative: {number}")
    if number < 52:
        return chr(ord("A") + number if number < 26 else ord("a") + number - 26)
    return chr(0x4E00 + number - 52)


def interleaved(arguments):
    """(string, operands) of einsum(A, [0, 1], B, [1, 2], [0, 2])."""
    def term(labels):
        try:
            labels = tuple(labels)
        except TypeError:
            raise CallError(f"einsum: a string first, or arrays with their labels in turn, not {labels!r} in the place of labels") from None
        return "".join("..." if n is Ellipsis else symbol(n) for n in labels)

    operands, terms = arguments[: len(arguments) // 2 * 2 : 2], arguments[1::2]
    text = ",".join(term(t) for t in terms)
    return (text + "->" + term(arguments[-1]) if len(arguments) % 2 else text), operands


def open_shapes(equation, shapes):
    """The shapes with None where an extent may be left open: labels whose extents are equal in all operands, and not 1, which
    stretches. What is under an ellipsis stays."""
    terms = equation.replace(" ", "").split("->")[0].split(",")
    if len(terms) != len(shapes):
        return shapes
    labels = []
    for term, shape in zip(terms, shapes):
        left, dots, right = term.partition("...")
        middle = len(shape) - len(left) - len(right)
        if middle < 0 or (middle > 0 and not dots):
            return shapes
        labels.append([*left, *[None] * middle, *right])
    extents = {}
    for names, shape in zip(labels, shapes):
        for name, n in zip(names, shape):
            extents.setdefault(name, set()).add(n)
    fixed = {name for name, sizes in extents.items() if name is None or len(sizes) > 1 or 1 in sizes}
    if len(extents) - len(fixed) + len(shapes) > 100:  # more arguments than C promises a function
        return shapes
    return tuple(tuple(n if name in fixed else None for name, n in zip(names, shape)) for names, shape in zip(labels, shapes))


def planned_shapes(shapes, seen):
    """For what to plan the extents that shapes leave open (None): the power of two nearest to the largest extent there in `seen`."""
    def planned(place, axis):
        largest = max(other[place][axis] or 1 for other in seen)
        return near(largest)
    return tuple(tuple(planned(k, d) if n is None else n for d, n in enumerate(shape)) for k, shape in enumerate(shapes))


def shapes_of(given):
    """Shapes as tuples of numbers and None."""
    try:
        return tuple(tuple(None if n is None else n.__index__() for n in shape) for shape in given)
    except (TypeError, AttributeError):
        raise CallError(f"a shape is a tuple of numbers, in which None leaves an extent open: {list(given)}") from None


def arguments(equation, shapes, planned=None):
    """What tdslc and tdsl-run take for it; `planned`: shapes that say for what open extents are planned."""
    def text(k, shape):
        extents = (f"?~{planned[k][d]}" if n is None and planned else "?" if n is None else str(int(n)) for d, n in enumerate(shape))
        return "x".join(extents)
    word = ["-e" + equation] if equation.startswith("@") else ["-e", equation]  # a word that begins with @ is a file of options
    return [*word, *[f"--shape={text(k, shape)}" for k, shape in enumerate(shapes)]]
