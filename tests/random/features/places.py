# SPDX-License-Identifier: Apache-2.0
"""Statements with positions that are values: elements read there, added or stored there, and folds by a key."""
import numpy as np

from expressions import ATOM, FOLDS, Affine, Expression, Extent, Rejected, at, binary, bounded, call, number, reduce
from kernel import SHORT, Value, bracketed


def keys(kernel, extents, table, shift=0, outside=0):
    """A parameter of positions in a dimension of extent `table`, less `shift`; up to so many before and behind it."""
    arrays = []
    for sizes in kernel.sets:
        most, shape = table.size(sizes), [extent.size(sizes) for extent in extents]
        if min(shape, default=0) < 0 or most < 0 or (most + 2 * outside <= 0 and np.prod(shape) > 0):
            raise Rejected
        arrays.append(kernel.arrays.integers(-outside, max(most + outside, 1 - outside), shape).astype(float) - shift)
    numbers = np.concatenate([array.ravel() for array in arrays] + [[0]])
    fit = [name for name, (least, most) in SHORT.items() if numbers.min() >= least and numbers.max() <= most]
    value = Value(kernel.fresh("q"), list(extents), kernel.random.choice(["i32", "i32", "i64", *fit[:2]]), arrays, [np.abs(array) for array in arrays])
    value.used = True
    kernel.parameters.append(value)
    return value


class Place:
    """A position that is a value: an element of a parameter plus a constant."""

    def __init__(self, value, indices, shift):
        self.value_of, self.indices, self.shift = value, indices, shift

    def __str__(self):
        scalar = not self.indices
        return f"{self.value_of.name}{bracketed(self.indices)}" + (f" + {self.shift}" if self.shift or scalar else "")

    def uses(self, index):
        return index in self.indices

    def is_shifted(self, _index):
        return False

    is_index = is_shifted

    def value(self, space, sizes, number_of_set):
        grids = [space.grid(index, sizes) for index in self.indices]
        array = self.value_of.arrays[number_of_set]
        if any(grid.size == 0 for grid in grids):
            return np.zeros(np.broadcast_shapes(space.ones(), *[grid.shape for grid in grids]), np.int64)
        return (array[tuple(grids)] if grids else array.reshape(space.ones())).astype(np.int64) + self.shift


def place(kernel, space, indices, table):
    """A position in a dimension, of some of these indices."""
    draw = kernel.random
    some = [index for index in indices if draw.random() < 0.6] or draw.sample(indices, min(1, len(indices)))
    shift = draw.choice([0, 0, 0, 1, 2])
    return Place(keys(kernel, [space.extents[index] for index in some], table, shift), some, shift)


def gathered(kernel):
    """A result or a local value of elements at positions that are values, perhaps times others, perhaps summed."""
    draw = kernel.random
    kernel.choose_type()
    space, left = kernel.space(*[kernel.extent() for _ in range(draw.choice([1, 1, 2]))])
    reduced = [space.add(kernel.fresh("r"), kernel.extent())] if draw.random() < 0.5 else []
    extents = [kernel.extent() for _ in range(draw.choice([1, 2, 2, 3]))]
    keyed = draw.randrange(len(extents))
    positions = []
    for axis, extent in enumerate(extents):
        if axis == keyed or draw.random() < 0.3:
            positions.append(place(kernel, space, left + reduced, extent))
        else:
            index = draw.choice(left + reduced)
            shift = draw.choice([0, 0, 1])
            extents[axis] = space.extents[index] + shift
            positions.append(Affine([(1, index)], shift))
    local = [value for value in kernel.values if value.extents == extents]
    value = draw.choice(local) if local and draw.random() < 0.5 else kernel.parameter(extents)
    expression = kernel.read(value, positions)
    if reduced or draw.random() < 0.4:
        order = [index for index in left + reduced if draw.random() < 0.6 or index in reduced]
        factor = kernel.read(kernel.parameter([space.extents[index] for index in order]), at(*order))
        expression = binary("*", expression, factor)
    if reduced:
        expression = reduce("sum", reduced, [f"{index} < {space.extents[index]}" for index in reduced], [], expression)
    kernel.assign(space, left, expression, is_result=draw.random() < 0.6)
    kernel.features.add("gather")


def changed(kernel):
    """A parameter or a result that is added to, or stored to, at positions that are values."""
    draw = kernel.random
    kernel.choose_type()
    stores = draw.random() < 0.35
    extents = [kernel.extent() for _ in range(draw.choice([1, 2, 2, 3]))]
    keyed = {draw.randrange(len(extents))} | {axis for axis in range(len(extents)) if draw.random() < 0.2}
    space, left = kernel.space(*[extent for axis, extent in enumerate(extents) if axis not in keyed])
    summed = [] if stores else [space.add(kernel.fresh("r"), kernel.extent()) for _ in range(draw.choice([1, 1, 2]))]
    plain = iter(left)
    positions = [place(kernel, space, left + summed, extent) if axis in keyed else Affine([(1, next(plain))]) for axis, extent in enumerate(extents)]
    used = [index for index in summed if any(position.uses(index) for position in positions)]
    if used != summed:
        raise Rejected  # an index that no position has is a sum of the right side
    target = _target(kernel, extents)
    order = [index for index in left + summed if draw.random() < 0.8]
    expression = kernel.read(kernel.parameter([space.extents[index] for index in order]), at(*order))
    if draw.random() < 0.3:
        expression = binary("*", expression, number(draw.choice([2, 3])))
    if target.name.startswith("p") and draw.random() < 0.2 and len(extents) == len(left) + len(summed) and [space.extents[i] for i in left + summed] == extents:
        expression = binary("+", expression, kernel.read(target, at(*left, *summed)))     # what was there before the statement
    operator = "=" if stores else draw.choice(["+=", "+=", "-="])
    kernel.statements.append(f"{target.name}{bracketed(positions)} {operator} {expression.text};")
    target.arrays, target.magnitudes = [array.copy() for array in target.arrays], [array.copy() for array in target.magnitudes]
    for k, sizes in enumerate(kernel.sets):
        if kernel.refused[k] is not None:
            continue
        full = [space.size(index, sizes) for index in space.extents]
        value, magnitude = (np.broadcast_to(array, bounded(full)) for array in expression.evaluate(space, sizes, k))
        where = tuple(np.broadcast_to(position.value(space, sizes, k), full) for position in positions)
        if stores:
            target.arrays[k][where], target.magnitudes[k][where] = value, magnitude
        else:
            np.add.at(target.arrays[k], where, value if operator == "+=" else -value)
            np.add.at(target.magnitudes[k], where, magnitude)
        kernel.check_exact(target.arrays[k], target.magnitudes[k])
    if target.name.startswith("p"):
        kernel.finish_update(target)
    else:
        kernel.values.append(target)
    kernel.features.add("store" if stores else "scatter")


def _target(kernel, extents):
    """An inout parameter, or a result that is written before."""
    if kernel.random.random() < 0.6:
        return kernel.updated_parameter(extents)
    space, left = kernel.space(*extents)
    source = kernel.read(kernel.parameter(extents), at(*left)) if kernel.random.random() < 0.5 else number(kernel.random.choice([0, 1]))
    result = kernel.assign(space, left, source, is_result=True)
    kernel.values.remove(result)
    return result


def by_key(kernel):
    """R[v,e] = sum[n, key[n] == v](x[n,e]), and Y[n,e] = sum[v, key[n] == v](W[v,e]): of keys outside there is nothing."""
    draw = kernel.random
    kernel.choose_type()
    places, others = kernel.extent(), [kernel.extent() for _ in range(draw.choice([0, 1, 1]))]
    elements = [kernel.extent() for _ in range(draw.choice([1, 1, 2]))]
    looks_up = draw.random() < 0.3
    space, left = kernel.space(*(elements if looks_up else [places]), *others)
    n_own = len(elements) if looks_up else 1
    own, rest = left[:n_own], left[n_own:]
    folded = [space.add(kernel.fresh("r"), extent) for extent in ([places] if looks_up else elements)]
    of_place, of_key = (folded, own) if looks_up else (own, folded)
    key = keys(kernel, elements, places, outside=2)
    order = (of_place if looks_up else of_key) + rest
    body = kernel.read(kernel.parameter([space.extents[index] for index in order]), at(*order))
    if draw.random() < 0.3:
        body = binary("*", body, kernel.read(kernel.parameter([space.extents[index] for index in of_key]), at(*of_key)))
    operator = draw.choice(["sum", "sum", "sum", "max", "min"])
    fold, empty = FOLDS[operator]

    def evaluate(space, sizes, number_of_set):
        value, magnitude = body.evaluate(space, sizes, number_of_set)
        hit = Place(key, of_key, 0).value(space, sizes, number_of_set) == space.grid(of_place[0], sizes)
        full = bounded([space.size(index, sizes) for index in space.extents])
        hit, axes = np.broadcast_to(hit, full), tuple(space.axis(index) for index in folded)
        bound = np.sum if operator == "sum" else np.max
        return (fold(np.where(hit, value, empty), axes, keepdims=True, initial=empty),
                bound(np.where(hit, magnitude, 0), axes, keepdims=True, initial=0))
    ranged = [f"{index} < {space.extents[index]}" for index in folded]
    text = f"{operator}[{', '.join(ranged)}, {key.name}{bracketed(of_key)} == {of_place[0]}]({body.text})"
    expression = Expression(text, ATOM, evaluate, body.accesses)
    if operator != "sum":
        expression = call(operator, expression, number(-20 if operator == "max" else 20))
    kernel.assign(space, left, expression, is_result=draw.random() < 0.6)
    kernel.features.add("lookup" if looks_up else "fold by key")
