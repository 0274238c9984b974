# SPDX-License-Identifier: Apache-2.0
"""Statements of a given form: values made of pieces, chains of stencils whose borders shrink, updates, padding, masked attention."""
import numpy as np

from expressions import Affine, Extent, at, binary, call, compare_positions, number, reduce
from kernel import Value, bracketed
from places import by_key, changed, gathered
from statements import Term, plain


def read_all(kernel, value, indices):
    return kernel.read(value, at(*indices))


def zeros(kernel, extents):
    arrays = [np.zeros([extent.size(sizes) for extent in extents]) for sizes in kernel.sets]
    return arrays, [array.copy() for array in arrays]


def finish_pieces(kernel, value, statements):
    kernel.statements += statements
    kernel.results.append(value)
    kernel.values.append(value)


def pieces(kernel):
    """A result whose parts along one dimension are written one after another, in any order: R[i] = .., R[n + j] = .."""
    draw = kernel.random
    kernel.choose_type()
    parts = [kernel.extent() for _ in range(draw.choice([2, 2, 3]))]
    others = [kernel.extent() for _ in range(draw.choice([0, 1, 1, 2]))]
    axis = draw.randint(0, len(others))
    whole = sum(parts[1:], parts[0])
    extents = others[:axis] + [whole] + others[axis:]
    arrays, magnitudes = zeros(kernel, extents)
    result = Value(kernel.fresh("R"), extents, kernel.computes, arrays, magnitudes)
    statements, start = [], Extent()
    for part in parts:
        space, left = kernel.space(*others[:axis], part, *others[axis:])
        index = left[axis]
        order = [index] + [other for other in left if other != index]
        expression = read_all(kernel, kernel.parameter([space.extents[i] for i in order]), order)
        if draw.random() < 0.4:
            expression = binary("*", number(2), expression)
        if draw.random() < 0.3:
            expression = binary("+", expression, read_all(kernel, kernel.parameter([part]), [index]))
        place = Affine([(1, index)], start.constant, [(coefficient, dim) for dim, coefficient in start.coefficients])
        statements.append(f"{result.name}{bracketed([place if i == index else i for i in left])} = {expression.text};")
        for k, (array, magnitude) in enumerate(zip(*kernel.evaluate(space, left, expression))):
            first = start.size(kernel.sets[k])
            where = (slice(None),) * axis + (slice(first, first + array.shape[axis]),)
            arrays[k][where], magnitudes[k][where] = array, magnitude
        start = start + part
    draw.shuffle(statements)
    finish_pieces(kernel, result, statements)
    kernel.features.add("pieces")


def strided_pieces(kernel):
    """A result whose even and odd positions, or those of every third, have statements of their own: R[2*i] = .., R[2*i + 1] = .."""
    draw = kernel.random
    kernel.choose_type()
    stride, dim = draw.choice([2, 2, 3]), kernel.dim()
    others = [kernel.extent() for _ in range(draw.choice([0, 1]))]
    extents = others + [dim.times(stride)]
    arrays, magnitudes = zeros(kernel, extents)
    result = Value(kernel.fresh("R"), extents, kernel.computes, arrays, magnitudes)
    source = kernel.parameter(extents) if draw.random() < 0.5 else None
    statements = []
    for offset in range(stride):
        space, left = kernel.space(*others, dim)
        expression = read_all(kernel, kernel.parameter([dim]), left[-1:])
        if source is not None:
            factor = kernel.read(source, at(*left[:-1]) + [Affine([(stride, left[-1])], draw.randint(0, stride - 1))])
            expression = binary("*", expression, factor)
        elif others:
            expression = binary("-", read_all(kernel, kernel.parameter(others + [dim]), left), expression)
        place = Affine([(stride, left[-1])], offset)
        statements.append(f"{result.name}{bracketed(left[:-1] + [place])} = {expression.text};")
        for k, (array, magnitude) in enumerate(zip(*kernel.evaluate(space, left, expression))):
            arrays[k][..., offset::stride], magnitudes[k][..., offset::stride] = array, magnitude
    finish_pieces(kernel, result, statements)
    kernel.features.add("strided pieces")


def halo(kernel):
    """A chain of stencils, each of which reads more positions than it makes."""
    draw = kernel.random
    kernel.choose_type()
    widths = [draw.choice([1, 2, 2, 3]) for _ in range(draw.choice([2, 2, 3]))]
    dim, others = kernel.dim(), [kernel.extent() for _ in range(draw.choice([0, 0, 1]))]
    current = kernel.parameter(others + [dim + sum(widths)])
    for step, width in enumerate(widths):
        space, left = kernel.space(*others, dim + sum(widths[step + 1:]))
        expression = None
        first = draw.choice([0, 0, draw.randint(0, width)])
        for shift in sorted({first, width, draw.randint(first, width)}):
            point = kernel.read(current, at(*left[:-1]) + [Affine([(1, left[-1])], shift)])
            if draw.random() < 0.4:
                point = binary("*", number(2), point)
            expression = binary(draw.choice("+-"), expression, point) if expression else point
        if draw.random() < 0.2:
            expression = call("max", expression, number(-3))
        is_last = step == len(widths) - 1
        current = kernel.assign(space, left, expression, is_result=is_last or draw.random() < 0.1)
    kernel.features.add("halo")


def stencil(kernel):
    """Five points of a plane; then, perhaps, the sum of squares of each row."""
    draw = kernel.random
    kernel.choose_type()
    rows, columns = kernel.dim(), kernel.dim()
    plane = kernel.parameter([rows + 2, columns + 2])
    space, (i, j) = kernel.space(rows, columns)
    expression = None
    for down, right in [(1, 1), (0, 1), (2, 1), (1, 0), (1, 2)]:
        point = kernel.read(plane, [Affine([(1, i)], down), Affine([(1, j)], right)])
        expression = binary(draw.choice("+-"), expression, point) if expression else point
    made = kernel.assign(space, [i, j], expression, is_result=draw.random() < 0.45)
    if draw.random() < 0.5:
        space, (i,) = kernel.space(rows)
        j = space.add(kernel.fresh("r"), columns)
        element = read_all(kernel, made, [i, j])
        kernel.assign(space, [i], reduce("sum", [j], [j], [], binary("*", element, element)), is_result=True)
    kernel.features.add("stencil")


def update_part(kernel, extents):
    """An inout parameter of which all but the first positions are added to."""
    draw = kernel.random
    shift, first = draw.choice([1, 2]), extents[0]
    target = kernel.updated_parameter([first + shift] + extents[1:])
    space, left = kernel.space(*extents)
    expression = read_all(kernel, kernel.parameter([first]), left[:1])
    if len(extents) > 1:
        expression = binary("*", expression, read_all(kernel, kernel.parameter(extents), left))
    operator = draw.choice("+-")
    kernel.statements.append(f"{target.name}{bracketed([Affine([(1, left[0])], shift)] + left[1:])} {operator}= {expression.text};")
    found = kernel.evaluate(space, left, expression)
    target.arrays = [array.copy() for array in target.arrays]
    for k, (array, magnitude) in enumerate(zip(*found)):
        where = slice(shift, shift + len(array))
        target.arrays[k][where] += array if operator == "+" else -array
        target.magnitudes[k][where] += magnitude
        kernel.check_exact(target.arrays[k], target.magnitudes[k])
    kernel.finish_update(target)
    kernel.features.add("inout part")


def update(kernel):
    """An inout parameter: added to, perhaps twice, or written anew from what it was."""
    draw = kernel.random
    kernel.choose_type()
    extents = [kernel.extent() for _ in range(draw.choice([1, 2, 2]))]
    if draw.random() < 0.25 and extents[0].coefficients:
        update_part(kernel, extents)
    target = kernel.updated_parameter(extents)
    for mode in draw.choice([["+="], ["-="], ["+=", "+="], ["-=", "+="], ["="], ["scaled"]]):
        space, left = kernel.space(*extents)
        change, _ = Term(kernel, space, left).expression(may_be_implicit=False)
        old = read_all(kernel, target, left)
        if mode == "=":
            new = change
        elif mode == "scaled":
            new = binary("+", change, binary("*", number(draw.choice([2, 3])), old))
        else:
            new = binary(mode[0], old, change)
        read_in = change if mode in ("+=", "-=") else new
        operator = mode if mode in ("+=", "-=") else "="
        items = [index if read_in.uses(index) else f"{index} < {space.extents[index]}" for index in left]
        kernel.statements.append(f"{target.name}{bracketed(items)} {operator} {read_in.text};")
        target.arrays, target.magnitudes = kernel.evaluate(space, left, new)
    kernel.finish_update(target)
    kernel.features.add("inout")


def padded(kernel):
    """A declared local value that is constant at its border, and a convolution of it."""
    draw = kernel.random
    kernel.choose_type()
    dim, before, after = kernel.dim(), draw.choice([1, 1, 2]), draw.choice([1, 1, 2])
    others = [kernel.extent() for _ in range(draw.choice([0, 1]))]
    source, border = kernel.parameter(others + [dim]), draw.choice([0, 0, 1])
    extents = others + [dim + (before + after)]
    arrays = [np.full([extent.size(sizes) for extent in extents], float(border)) for sizes in kernel.sets]
    value = Value(kernel.fresh("t"), extents, kernel.computes, arrays, [array.copy() for array in arrays])
    space, left = kernel.space(*others, dim)
    expression = read_all(kernel, source, left)
    for k, (array, magnitude) in enumerate(zip(*kernel.evaluate(space, left, expression))):
        where = (..., slice(before, before + array.shape[-1]))
        value.arrays[k][where] += array
        value.magnitudes[k][where] += magnitude
    ranges = [f"{kernel.fresh('i')} < {extent}" for extent in extents]
    kernel.statements.append(f"{value.name}: {value.dtype}{bracketed(ranges)} = {border};")
    kernel.statements.append(f"{value.name}{bracketed(left[:-1] + [Affine([(1, left[-1])], before)])} += {expression.text};")
    kernel.values.append(value)
    space, left = kernel.space(*others, dim + (before + after - 2))
    tap = space.add(kernel.fresh("r"), Extent((), 3))
    weights = kernel.parameter([Extent((), 3)])
    point = kernel.read(value, at(*left[:-1]) + [Affine([(1, left[-1]), (1, tap)])])
    kernel.assign(space, left, reduce("sum", [tap], [tap], [], binary("*", point, read_all(kernel, weights, [tap]))), is_result=True)
    kernel.features.add("padded")


def attention(kernel):
    """Products of rows, masked by their indices, times a third tensor."""
    draw = kernel.random
    kernel.choose_type()
    queries, keys, depth = kernel.dim(), kernel.dim(), kernel.extent()
    heads = [Extent((), draw.choice([1, 2, 3]))] if draw.random() < 0.4 else []
    q, k, v = (kernel.parameter(heads + [rows, depth]) for rows in (queries, keys, keys))
    space, left = kernel.space(*heads, queries, keys)
    *head, i, j = left
    e = space.add(kernel.fresh("r"), depth)
    scores = reduce("sum", [e], [e], [], binary("*", read_all(kernel, q, head + [i, e]), read_all(kernel, k, head + [j, e])))
    mask = compare_positions(at(j)[0], draw.choice(["<=", "<", ">="]), Affine([(1, i)], draw.choice([0, 0, 1, -1])))
    masked = kernel.assign(space, left, call("select", mask, scores, number(0)), is_result=False)
    space, left = kernel.space(*heads, queries, depth)
    *head, i, e = left
    j = space.add(kernel.fresh("r"), keys)
    rows = binary("*", read_all(kernel, masked, head + [i, j]), read_all(kernel, v, head + [j, e]))
    kernel.assign(space, left, reduce("sum", [j], [j], [], rows), is_result=True)
    kernel.features.add("masked product")


# How often each is drawn, in hundredths.
FORMS = {plain: 42, pieces: 8, strided_pieces: 6, halo: 6, update: 7, padded: 4, attention: 5, stencil: 4, gathered: 7, changed: 7, by_key: 4}
