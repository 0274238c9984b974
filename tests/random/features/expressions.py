# SPDX-License-Identifier: Apache-2.0
"""Extents, positions and expressions: the text of each, and its value by NumPy.

All values are integers in float64. Beside the value of an expression stands its magnitude, the same expression of absolute values: a bound on every
intermediate result in whatever order a compiler computes. While it is below the largest integer that an element type counts to, results are exact.
"""
import numpy as np

SUM, PRODUCT, ATOM = 1, 2, 3    # precedence; a comparison has 0
MOST_ELEMENTS = 5e6             # of an array in the middle of an expression
COMPARISONS = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal}


class Rejected(Exception):
    """What was drawn is no program of the kind that is wanted; draw again."""


class OutOfRange(Exception):
    """A position lies outside of its tensor for the sizes of this call. `certain`: it does even though no loop is empty."""

    def __init__(self, certain):
        super().__init__("a position lies outside of its tensor")
        self.certain = certain


class Extent:
    """A sum of multiples of dims and a constant; or the product of two extents (`factors`): rows that lie side by side in one dimension."""

    def __init__(self, coefficients=(), constant=0, factors=None):
        self.coefficients = tuple(sorted(dict(coefficients).items()))
        self.constant, self.factors = constant, factors

    def _key(self):
        return self.coefficients, self.constant, self.factors

    def __eq__(self, other):
        return self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __add__(self, more):
        if self.factors:
            raise Rejected
        if not isinstance(more, Extent):
            return Extent(self.coefficients, self.constant + more)
        sums = dict(self.coefficients)
        for dim, coefficient in more.coefficients:
            sums[dim] = sums.get(dim, 0) + coefficient
        return Extent(sums, self.constant + more.constant)

    def times(self, factor):
        if self.factors:
            raise Rejected
        return Extent({dim: coefficient * factor for dim, coefficient in self.coefficients}, self.constant * factor)

    def size(self, sizes):
        if self.factors:
            return self.factors[0].size(sizes) * self.factors[1].size(sizes)
        return sum(sizes[dim] * coefficient for dim, coefficient in self.coefficients) + self.constant

    def is_one_dim(self):
        """Of one dim at most, plus a constant."""
        return not self.factors and len(self.coefficients) <= 1

    def __str__(self):
        if self.factors:
            return "*".join(f"({factor})" if factor.constant and factor.coefficients else str(factor) for factor in self.factors)
        return _sum_text([(coefficient, dim) for dim, coefficient in self.coefficients], self.constant)


def _sum_text(terms, constant):
    """`2*n + i - 1`, a positive term first where there is one."""
    terms = [(coefficient, f"{abs(coefficient)}*{name}" if abs(coefficient) != 1 else name) for coefficient, name in terms]
    if constant or not terms:
        terms.append((constant, str(abs(constant))))
    terms.sort(key=lambda term: term[0] < 0)
    first, *others = terms
    return ("-" if first[0] < 0 else "") + first[1] + "".join((" + " if c >= 0 else " - ") + text for c, text in others)


class Affine:
    """A position: multiples of indices and of dims, and a constant."""

    def __init__(self, terms=(), constant=0, dims=()):
        self.terms, self.constant, self.dims = tuple(terms), constant, tuple(dims)     # (coefficient, name)

    def __str__(self):
        return _sum_text(list(self.dims) + list(self.terms), self.constant)

    def uses(self, index):
        return any(name == index for _, name in self.terms)

    def is_shifted(self, index):
        """The index plus a constant, nothing else."""
        return self.terms == ((1, index),) and not self.dims

    def is_index(self, index):
        return self.is_shifted(index) and self.constant == 0

    def value(self, space, sizes, _number=None):
        total = np.full(space.ones(), self.constant, np.int64)
        for coefficient, dim in self.dims:
            total = total + coefficient * sizes[dim]
        for coefficient, index in self.terms:
            total = total + coefficient * space.grid(index, sizes)
        return total


class RowPosition:
    """row*width + column, in a dimension whose extent is a product."""

    def __init__(self, row, width, column):
        self.row, self.width, self.column = row, width, column

    def __str__(self):
        return f"{self.row}*{self.width} + {self.column}"

    def uses(self, index):
        return index in (self.row, self.column)

    def is_shifted(self, _index):
        return False

    is_index = is_shifted

    def value(self, space, sizes, _number=None):
        return space.grid(self.row, sizes) * self.width.size(sizes) + space.grid(self.column, sizes)


def at(*indices):
    """Each of these indices alone between its commas."""
    return [Affine([(1, index)]) for index in indices]


class Space:
    """The indices of a statement with their extents. Each is an axis of the arrays that an expression is computed with."""

    def __init__(self):
        self.extents = {}       # in the order of axes

    def add(self, index, extent):
        self.extents[index] = extent
        return index

    def axis(self, index):
        return list(self.extents).index(index)

    def ones(self):
        return (1,) * len(self.extents)

    def size(self, index, sizes):
        return max(self.extents[index].size(sizes), 0)

    def is_empty(self, sizes):
        return any(self.size(index, sizes) == 0 for index in self.extents)

    def grid(self, index, sizes):
        shape = list(self.ones())
        shape[self.axis(index)] = self.size(index, sizes)
        return np.arange(self.size(index, sizes), dtype=np.int64).reshape(shape)


class Expression:
    """`evaluate(space, sizes, number)` gives value and magnitude for set `number` of sizes; of a comparison no magnitude."""

    def __init__(self, text, precedence, evaluate, accesses=()):
        self.text, self.precedence, self.evaluate = text, precedence, evaluate
        self.accesses = list(accesses)      # (value, positions)

    def within(self, precedence):
        """Its text in a place for operands of at least this precedence."""
        return self.text if self.precedence >= precedence else f"({self.text})"

    def uses(self, index):
        return any(position.uses(index) for _, positions in self.accesses for position in positions)


def bounded(shape):
    if np.prod(shape, dtype=float) > MOST_ELEMENTS:
        raise Rejected
    return shape


def number(constant):
    def evaluate(space, _sizes, _number):
        return np.full(space.ones(), float(constant)), np.full(space.ones(), abs(float(constant)))
    return Expression(str(constant), ATOM if constant >= 0 else SUM, evaluate)


def access(value, positions, cast=None):
    """An element of a tensor, converted to element type `cast`."""
    text = f"{value.name}[{', '.join(map(str, positions))}]" if positions else value.name

    def evaluate(space, sizes, number_of_set):
        array, magnitude = value.arrays[number_of_set], value.magnitudes[number_of_set]
        if not positions:
            return array.reshape(space.ones()), magnitude.reshape(space.ones())
        places = [position.value(space, sizes, number_of_set) for position in positions]
        if any(place.size and (place.min() < 0 or place.max() >= extent) for place, extent in zip(places, array.shape)):
            raise OutOfRange(certain=not space.is_empty(sizes))
        shape = bounded(np.broadcast_shapes(*[place.shape for place in places]))
        if any(place.size == 0 for place in places):
            return np.zeros(shape), np.zeros(shape)
        return array[tuple(places)], magnitude[tuple(places)]
    value.used = True
    return Expression(f"{cast}({text})" if cast else text, ATOM, evaluate, [(value, positions)])


def binary(operator, left, right):
    precedence = PRODUCT if operator == "*" else SUM

    def evaluate(space, sizes, number_of_set):
        x, x_magnitude = left.evaluate(space, sizes, number_of_set)
        y, y_magnitude = right.evaluate(space, sizes, number_of_set)
        bounded(np.broadcast_shapes(x.shape, y.shape))
        if operator == "*":
            return x * y, x_magnitude * y_magnitude
        return x + y if operator == "+" else x - y, x_magnitude + y_magnitude
    text = f"{left.within(precedence)} {operator} {right.within(precedence + 1)}"
    return Expression(text, precedence, evaluate, left.accesses + right.accesses)


FUNCTIONS = {"max": np.maximum, "min": np.minimum, "abs": np.abs, "relu": lambda x: np.maximum(x, 0), "select": np.where}


def call(name, *arguments):
    def evaluate(space, sizes, number_of_set):
        found = [argument.evaluate(space, sizes, number_of_set) for argument in arguments]
        magnitude = 0
        for _, more in found:
            magnitude = magnitude if more is None else np.maximum(magnitude, more)
        return FUNCTIONS[name](*[value for value, _ in found]), magnitude
    text = f"{name}({', '.join(argument.text for argument in arguments)})"
    return Expression(text, ATOM, evaluate, [a for argument in arguments for a in argument.accesses])


def index_of(position):
    def evaluate(space, sizes, _number):
        value = position.value(space, sizes).astype(float)
        return value, np.abs(value)
    return Expression(f"index({position})", ATOM, evaluate)


def compare_positions(left, operator, right):
    """`index(i) < index(j + 1)`; of a constant without the word."""
    def evaluate(space, sizes, _number):
        return COMPARISONS[operator](left.value(space, sizes), right.value(space, sizes)), None
    words = [f"index({side})" if side.terms else str(side) for side in (left, right)]
    return Expression(f"{words[0]} {operator} {words[1]}", 0, evaluate)


# Of a reduction: NumPy's function and what it gives for no elements.
FOLDS = {"sum": (np.sum, 0), "max": (np.max, -np.inf), "min": (np.min, np.inf)}


def reduce(operator, indices, items, conditions, body):
    """`items` is what stands between the brackets; `conditions` are (position, operator, position) of those that restrict."""
    fold, empty = FOLDS[operator]

    def evaluate(space, sizes, number_of_set):
        value, magnitude = body.evaluate(space, sizes, number_of_set)
        mask = np.ones(space.ones(), bool)
        for left, comparison, right in conditions:
            mask = mask & COMPARISONS[comparison](left.value(space, sizes), right.value(space, sizes))
        shape = list(np.broadcast_shapes(value.shape, mask.shape, magnitude.shape))
        axes = tuple(space.axis(index) for index in indices)
        for index, axis in zip(indices, axes):
            shape[axis] = space.size(index, sizes)
        mask = np.broadcast_to(mask, bounded(shape))
        value = np.where(mask, value, empty)
        magnitude = np.where(mask, magnitude, 0)
        bound = np.sum if operator == "sum" else np.max
        return fold(value, axes, keepdims=True, initial=empty), bound(magnitude, axes, keepdims=True, initial=0)
    return Expression(f"{operator}[{', '.join(items)}]({body.text})", ATOM, evaluate, body.accesses)
