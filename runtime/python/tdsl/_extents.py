# SPDX-License-Identifier: Apache-2.0
"""Extents that are computed from open dims: `n + k - 1`, `h*dh`."""
from ._errors import ArgumentError, ShapeError


class Extent(str):
    """A computed extent as it is written, which also is its name among the values of a call. `terms`: names and numbers; with `product`
    the base and the values of the terms are multiplied, else it is (base + coefficient * value + ...) // divisor."""

    def __new__(cls, text, base, divisor, product, terms):
        self = str.__new__(cls, text)
        self.base, self.divisor, self.product, self.terms = base, divisor, product, tuple(terms)
        return self

    def value(self, values):
        """Its value, below 0 where it is of no array, or None where something is not known."""
        if any(name not in values for name, _ in self.terms):
            return None
        total = self.base
        for name, coefficient in self.terms:
            total = total * values[name] if self.product else total + coefficient * values[name]
        return -(-total // self.divisor) if self.product else total // self.divisor

    def solve(self, values):
        """(name, value) of its only term that is not known: the value is None where there is none; or None where that says nothing."""
        unknown = [(name, coefficient) for name, coefficient in self.terms if name not in values]
        if len(unknown) != 1 or self.divisor != 1:
            return None
        (name, by), rest = unknown[0], self.base
        for other, coefficient in self.terms:
            if other != name:
                rest = rest * values[other] if self.product else rest + coefficient * values[other]
        if self.product:
            by, rest = rest, 0
        if by == 0:
            return None
        found, left = divmod(values[self] - rest, by)
        return name, found if left == 0 and found >= 0 else None


def text_of(base, divisor, product, terms):
    """As tdslc writes it: `n + k - 1`, `(n - 1)/2`, `h*dh`."""
    inner = lambda name: f"({name})" if isinstance(name, Extent) and not name.product and name.divisor == 1 else name
    if product:
        return "*".join([*([str(base)] if base != 1 or not terms else []), *map(inner, (name for name, _ in terms))])
    parts = [(c, inner(name) if abs(c) == 1 else f"{abs(c)}*{inner(name)}") for name, c in terms if c > 0]
    parts += [(base, str(base))] if base > 0 else []
    parts += [(c, inner(name) if abs(c) == 1 else f"{abs(c)}*{inner(name)}") for name, c in terms if c < 0]
    parts += [(base, str(-base))] if base < 0 else []
    text = "".join((" - " if sign < 0 else " + ") + part for sign, part in parts)
    text = text[3:] if parts and parts[0][0] > 0 else "-" + text[3:]
    return f"({text})/{divisor}" if divisor != 1 else text


def complete(kernel, values, origin):
    """Adds what follows from computed extents of arrays to the values of open dims, and the values of all computed extents, which are checked.
    `origin` says where a value is from: (place, argument)."""
    more = True
    while more:
        more = False
        for extent in kernel.computed:
            if extent not in values:
                found = extent, extent.value(values)
                if found[1] is None or found[1] < 0:
                    continue
            else:
                found = extent.solve(values)
                if found is None:
                    continue
                if found[1] is None:
                    place, name = origin[extent]
                    raise ShapeError(f"{kernel.name}: {place} is {values[extent]}, which {extent} cannot be", name)
            values[found[0]], origin[found[0]], more = found[1], origin.get(extent, (str(extent), None)), True
    missing = [name for name in kernel.dims if name not in values]
    if missing:
        raise ArgumentError(f"{kernel.name}: no array says how large {missing[0]} is; dims={{{missing[0]!r}: N}} does", missing[0])
    for extent in kernel.computed:
        value = extent.value(values)
        place, name = origin.get(extent, (str(extent), None))
        if value < 0:
            raise ShapeError(f"{kernel.name}: the extent {extent} would be {value}", name)
        if values[extent] != value:
            raise ShapeError(f"{kernel.name}: {place} is {values[extent]}, not {value} ({extent})", name)


def sizes(kernel, dims):
    """The values of all names in shapes, from those of the open dims."""
    values = dict(zip(kernel.dims, dims))
    for extent in kernel.computed:
        values[extent] = extent.value(values)
    return values


def computed_in(args):
    """The computed extents that shapes of arguments need, each behind those that it is made of."""
    found = {}

    def add(extent):
        if isinstance(extent, Extent) and extent not in found:
            for name, _ in extent.terms:
                add(name)
            found[extent] = extent
    for arg in args:
        for extent in arg.shape:
            add(extent)
    return list(found)
