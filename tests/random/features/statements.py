# SPDX-License-Identifier: Apache-2.0
"""Statements without a plan: sums of terms. A term is a product of tensors read at positions of all kinds; what is not on the left is reduced over,
with restrictions and masks, or is a running sum."""
from expressions import (COMPARISONS, PRODUCT, Affine, Expression, Extent, Rejected, RowPosition, at, binary, call, compare_positions, index_of,
                         number, reduce)

ORDERS = ["<=", "<", ">=", ">"]
INDICES_MOST = 6
RANK_MOST = 4


class Term:
    """One term while it is written: its statement's space and left indices, and the indices it reduces over."""

    def __init__(self, kernel, space, left):
        self.kernel, self.random, self.space, self.left = kernel, kernel.random, space, left
        self.reduced = []
        self.operands = []      # (value, positions)

    def new_index(self, extent):
        if len(self.space.extents) >= INDICES_MOST - self.kernel.is_large:
            raise Rejected
        index = self.space.add(self.kernel.fresh("r"), extent)
        self.reduced.append(index)
        return index

    # ---- positions ----

    def row_index(self, extent, other=None):
        same = [index for index in self.left + self.reduced if self.space.extents[index] == extent and index != other]
        return self.random.choice(same) if same and self.random.random() < 0.7 else self.new_index(extent)

    def positions_of(self, index, extent):
        """(weight, position) of all ways to read a dimension of this extent by a left index; a whole number is the width of a window."""
        own, draw = self.space.extents[index], self.random
        if own.factors:
            return
        backwards = [(coefficient, dim) for dim, coefficient in own.coefficients]
        slack = extent.constant - own.constant
        if own == extent:
            yield 6, Affine([(1, index)])
            yield 1, Affine([(-1, index)], own.constant - 1, backwards)
        elif own.coefficients == extent.coefficients and slack > 0:
            shift = draw.randint(1, slack)
            yield 4, Affine([(1, index)], shift)
            yield 1, Affine([(-1, index)], own.constant - 1 + shift, backwards)
            if own.coefficients and slack <= 6:
                yield 2, slack + 1
        elif own.coefficients:
            for stride in (2, 3):
                strided = own.times(stride)
                slack = extent.constant - strided.constant + stride - 1
                if strided.coefficients == extent.coefficients and slack >= 0:
                    yield 4, Affine([(stride, index)], draw.randint(0, slack))

    def position(self, extent):
        draw, features = self.random, self.kernel.features
        if extent.factors:
            row = self.row_index(extent.factors[0])
            features.add("rows")
            return RowPosition(row, extent.factors[1], self.row_index(extent.factors[1], other=row))
        ways = []
        for index in self.left:
            ways += [(weight, index, way) for weight, way in self.positions_of(index, extent)]
        if not extent.coefficients and extent.constant > 0 and draw.random() < 0.3:
            ways.append((1, None, Affine([], draw.randint(0, extent.constant - 1))))
        ways += [(2, index, Affine([(1, index)])) for index in self.reduced if self.space.extents[index] == extent]
        if not ways or draw.random() < 0.15:
            return Affine([(1, self.new_index(extent))])
        _, index, way = draw.choices(ways, [weight for weight, _, _ in ways])[0]
        if isinstance(way, int):
            features.add("window")
            return Affine([(1, index), (1, self.new_index(Extent((), way)))])
        if way.terms and not way.is_index(index):
            factor = way.terms[0][0]
            features.add("backward" if factor < 0 else "stride" if factor > 1 else "shift")
        return way

    # ---- operands ----

    def fitting_extent(self, extent):
        """The extent of a new parameter that an index of this extent reads alone, shifted, strided or as rows."""
        draw = self.random
        kind = draw.choices(["same", "longer", "strided", "rows"], [55, 25, 15, 5])[0]
        if extent.factors or kind == "same":
            return extent
        if kind == "longer":
            return extent + draw.choice([1, 2, 3])
        if extent.coefficients and kind == "strided":
            return extent.times(draw.choice([2, 2, 3])) + draw.choice([0, 0, 1])
        if extent.coefficients and extent.is_one_dim():
            return Extent(factors=(extent, Extent((), draw.choice([3, 4]))))
        return extent

    def operand(self):
        draw = self.random
        if self.kernel.values and draw.random() < 0.6:
            value = draw.choice(self.kernel.values[-6:])
        else:
            extents = [self.fitting_extent(self.space.extents[index]) for index in self.left if draw.random() < 0.8]
            if draw.random() < 0.35 or not extents:
                extents.append(self.kernel.extent())
            draw.shuffle(extents)
            value = self.kernel.parameter(extents[:3])
        if len(value.extents) > RANK_MOST:
            raise Rejected
        positions = [self.position(extent) for extent in value.extents]
        self.operands.append((value, positions))
        return self.kernel.read(value, positions)

    # ---- reductions ----

    def running(self, body):
        """A running sum, maximum or minimum along a left index, alone or times what was there; None where no index is fit for it."""
        draw, kernel = self.random, self.kernel
        along = draw.choice(self.left)
        extent = self.space.extents[along]
        if not extent.is_one_dim() or not extent.coefficients:
            return None
        index = self.new_index(extent)
        others = [other for other in self.left if other != along and draw.random() < 0.7]
        value = kernel.parameter([self.space.extents[other] for other in others] + [extent])
        order = draw.choice(ORDERS)
        operator = draw.choice(["sum", "sum", "sum", "max", "min"])
        fold = reduce(operator, [index], [f"{index} {order} {along}"], [(at(index)[0], order, at(along)[0])], kernel.read(value, at(*others, index)))
        if operator != "sum":
            fold = call(operator, fold, number(-9 if operator == "max" else 9))     # where there are none it is infinite
        kernel.features.add("scan")
        return binary("*", body, fold) if draw.random() < 0.5 else fold

    def stands_alone(self, index):
        return any(position.is_index(index) for _, positions in self.operands for position in positions)

    def items(self):
        """What stands between the brackets of the reduction, and the restrictions among it."""
        draw, items, restrictions = self.random, [], []
        rows = any(isinstance(position, RowPosition) for _, positions in self.operands for position in positions)
        for number_of, index in enumerate(self.reduced):
            alone, ranged = self.stands_alone(index), f"{index} < {self.space.extents[index]}"
            if not self.left or draw.random() >= 0.3:
                items.append(index if alone and not rows and draw.random() < 0.8 else ranged)
                continue
            other = draw.choice(self.left + self.reduced[:number_of])
            bound, order = Affine([(1, other)], draw.choice([0, 0, 0, 1, -1, 2])), draw.choice(ORDERS)
            if not alone or draw.random() < 0.2:
                items.append(ranged)
            items.append(f"{index} {order} {bound}")
            restrictions.append((at(index)[0], order, bound))
            self.kernel.features.add("restricted")
            if draw.random() < 0.2:
                low = Affine([(1, other)], -draw.choice([2, 3, 4]))
                items.append(f"{low} < {index}")
                restrictions.append((low, "<", at(index)[0]))
                self.kernel.features.add("band")
        return items, restrictions

    def masked(self, body):
        draw = self.random
        bound = Affine([(1, draw.choice(self.left))], draw.choice([0, 0, 1]))
        condition = compare_positions(at(draw.choice(self.reduced))[0], draw.choice(list(COMPARISONS)), bound)
        self.kernel.features.add("mask")
        return call("select", condition, body, number(draw.choice([0, 0, 1])))

    def expression(self, may_be_implicit):
        """The term, and whether its sum is not written: then it is the whole right side."""
        draw = self.random
        body = self.operand()
        if draw.random() < 0.55:
            body = binary("*", body, self.operand())
        if not self.reduced:
            scan = self.running(body) if self.left and draw.random() < 0.12 else None
            return scan or body, False
        items, restrictions = self.items()
        if self.left and draw.random() < 0.15:
            body = self.masked(body)
        operator = draw.choice(["sum"] * 8 + ["max", "min"])
        plain_product = body.precedence == PRODUCT and all(value.dtype == self.kernel.computes for value, _ in self.operands)
        implicit = may_be_implicit and operator == "sum" and plain_product and items == self.reduced and draw.random() < 0.5
        total = reduce(operator, self.reduced, items, restrictions, body)
        if implicit:
            self.kernel.features.add("implicit sum")
            return Expression(body.text, PRODUCT, total.evaluate, total.accesses), True
        if operator != "sum":
            total = call(operator, total, number(-20 if operator == "max" else 20))
        return total, False


def decorated(kernel, left, expression):
    """With index(i), a select by indices, a function of one value, a clamp: each now and then."""
    draw = kernel.random
    if left and draw.random() < 0.12:
        expression = binary(draw.choice("+-*"), expression, index_of(Affine([(1, draw.choice(left))], draw.choice([0, 1]))))
        kernel.features.add("index")
    if left and draw.random() < 0.15:
        other = Affine([(1, draw.choice(left))], draw.choice([0, 1])) if draw.random() < 0.7 else Affine([], draw.randint(0, 4))
        condition = compare_positions(at(draw.choice(left))[0], draw.choice(list(COMPARISONS)), other)
        expression = call("select", condition, expression, number(draw.choice([0, 1, -2])))
        kernel.features.add("select")
    if draw.random() < 0.12:
        expression = call(draw.choice(["abs", "relu"]), expression)
    if draw.random() < 0.08:
        expression = call(draw.choice(["min", "max"]), expression, number(draw.choice([-3, 0, 5])))
    return expression


def plain(kernel):
    """A result or a local value of one to three terms."""
    draw = kernel.random
    kernel.choose_type()
    n_left = 0 if draw.random() < 0.1 else draw.choice([1, 2, 2] if kernel.is_large else [1, 1, 2, 2, 2, 3])
    space, left = kernel.space(*[kernel.extent() for _ in range(n_left)])
    n_terms = draw.choice([1, 1, 2, 3])
    expression, implicit = Term(kernel, space, left).expression(may_be_implicit=draw.random() < 0.3)
    if not implicit:
        for _ in range(n_terms - 1):
            term, _ = Term(kernel, space, left).expression(may_be_implicit=False)
            if draw.random() < 0.3:
                term = binary("*", number(draw.choice([2, 3])), term)
            expression = binary(draw.choice("+-"), expression, term)
        expression = decorated(kernel, left, expression)
    kernel.assign(space, left, expression, is_result=draw.random() < 0.45)
