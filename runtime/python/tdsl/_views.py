# SPDX-License-Identifier: Apache-2.0
"""Operands that are views of other arrays, transposed, sliced or broadcast, read where they lie.

A view whose elements are those of a C-order array in another order of axes is that array: its labels change places in the string. An axis of stride 0 is
left out, as nothing changes along it. What has other strides is read by a program with positions, `a[200*i + 2*j]`.
"""
import math

from ._explicit import explicit, sizes_of, split

_TYPES = "f64", "f32", "c64", "c128", "i64", "i32"  # of programs with positions; others have rules of their own for sums


class Views:
    """An einsum of arrays as one of their memory: `equation` and `shapes` for operands in C order, or the `text` of a program.

    layouts: for each operand None, or (index, order of axes), which make the array in memory; out: the same of the result; strided: of
    each operand, whether what is in memory is not in C order; dims: extents that the text leaves open, by name.
    """

    def __init__(self, equation, shapes, layouts, strided, out, text=None, dims=()):
        self.equation, self.shapes, self.layouts, self.strided, self.out, self.text, self.dims = equation, shapes, layouts, strided, out, text, dims
        self.opened = None  # makes the same with open extents, or None where that cannot be

    def memory(self, arrays):
        """Arrays that begin where the kernel is to read."""
        return [a if layout is None else _place(a, *layout) for a, layout in zip(arrays, self.layouts)]

    def memory_of_out(self, out):
        return out if self.out is None or out is None else _place(out, *self.out)


def _place(a, index, order):
    a = a[(*index, ...)]  # an array, of one element too
    return a if order is None else a.transpose(order)


class _Memory:
    """Where the elements of an array lie: its axes of different addresses by falling strides, in elements."""

    def __init__(self, a, labels, dropped):
        self.index = tuple(0 if n in dropped or (stride == 0 and size > 1) else slice(None, None, -1) if stride < 0 and size > 1 else slice(None)
                           for n, (size, stride) in enumerate(zip(a.shape, a.strides)))
        kept = [n for n, index in enumerate(self.index) if index != 0]
        labels = dict(zip([n for n in range(a.ndim) if n not in dropped], labels))
        order = sorted(kept, key=lambda n: -abs(a.strides[n]) if a.shape[n] > 1 else -math.inf)
        self.order = tuple(kept.index(n) for n in order)
        self.labels = "".join(labels[n] for n in order)
        self.shape = tuple(a.shape[n] for n in order)
        self.strides = [a.strides[n] // a.itemsize if a.shape[n] > 1 else 0 for n in order]
        self.whole = all(a.strides[n] % a.itemsize == 0 for n in order)  # elements, that is
        step, self.dense = 1, True
        for size, stride in zip(self.shape[::-1], self.strides[::-1]):
            self.dense = self.dense and (size == 1 or stride == step)
            step *= size
        self.layout = self.index, None if not self.dense or self.order == tuple(range(len(order))) else self.order

    @property
    def length(self):
        """Elements from the first to the last in memory."""
        return 1 + sum((n - 1) * abs(s) for n, s in zip(self.shape, self.strides))

    def rows(self):
        """The extents of the array of which it is the first elements of each row, the last axis without gaps; None where there is none."""
        steps = [abs(s) for n, s in zip(self.shape, self.strides) if n > 1]
        if len(steps) != len(self.shape) or len(set(self.labels)) < len(self.labels) or steps[-1] != 1:
            return None
        extents = [self.shape[0], *(outer // inner for outer, inner in zip(steps, steps[1:]))]
        whole = all(outer % inner == 0 for outer, inner in zip(steps, steps[1:]))
        return extents if whole and all(n <= extent for n, extent in zip(self.shape, extents)) else None

    def position(self, names):
        """The position of an element in what begins at the lowest address, given the names of indices."""
        factors, start = {}, 0
        for label, n, stride in zip(self.labels, self.shape, self.strides):
            factors[label] = factors.get(label, 0) + stride
            start -= min(0, (n - 1) * stride)
        return " + ".join([f"{factor}*{names[label]}" for label, factor in factors.items() if factor] + [str(start)] * (start != 0 or not any(factors.values())))


def views_of(equation, arrays, readable, out, type_name):
    """The Views of an einsum of these arrays, or None where all are in C order, or are to be copied. readable: of each, whether a kernel can read its elements;
    out: an array that may be in another order of axes, or None."""
    if all(a.flags.c_contiguous or not good for a, good in zip(arrays, readable)) and (out is None or out.flags.c_contiguous):
        return None  # what is not in C order is converted
    if any(a.size == 0 for a in arrays):
        return None
    ones = [tuple(n for n, size in enumerate(a.shape) if size == 1) for a in arrays]
    text, drop = explicit(equation, [a.ndim for a in arrays], ones)
    terms, output = split(text)
    full = [tuple(n for k, n in enumerate(a.shape) if k not in gone) for a, gone in zip(arrays, drop)]
    sizes = sizes_of(terms, full)
    memories = [_Memory(a, term, gone) if good else None for a, term, gone, good in zip(arrays, terms, drop, readable)]
    place = None
    if out is not None and not out.flags.c_contiguous and out.shape == tuple(sizes[label] for label in output):
        place = _Memory(out, output, ())
        if not place.dense or len(place.labels) < len(output):
            place = None
    labels = [term if m is None else m.labels for term, m in zip(terms, memories)]
    left = set("".join(labels))
    needs_text = not set(sizes) <= left or any(m is not None and not m.dense for m in memories)
    layouts = [None if m is None else m.layout for m in memories]
    for k, (a, gone) in enumerate(zip(arrays, drop)):
        if memories[k] is None and gone:
            layouts[k] = tuple(0 if n in gone else slice(None) for n in range(a.ndim)), None
    shapes = [shape if m is None else m.shape for shape, m in zip(full, memories)]
    result = output if place is None else place.labels
    if not needs_text:
        return Views(",".join(labels) + "->" + result, tuple(shapes), layouts, [False] * len(arrays), place and place.layout)
    if type_name not in _TYPES or not all(m is None or m.whole for m in memories):
        return None
    return _program(labels, shapes, memories, sizes, result, type_name, layouts, place)


def _program(labels, shapes, memories, sizes, result, type_name, layouts, place):
    """The Views of a program with positions: with numbers, and with `opened` for extents and strides that are open."""
    names = {label: f"i{k}" for k, label in enumerate(sizes)}
    strided = [m is not None and not m.dense for m in memories]

    def views(shapes, heads, positions, extent, dims):
        head = [f"a{k}: {type_name}[{', '.join(map(str, h))}]" if h else f"a{k}: {type_name}" for k, h in enumerate(heads)]
        product = " * ".join(f"a{k}[{at}]" if at else f"a{k}" for k, at in enumerate(positions))
        ranges = lambda some: ", ".join(f"{names[label]} < {extent(label)}" for label in some)
        summed = [label for label in sizes if label not in result]
        value = f"sum[{ranges(summed)}]({product})" if summed else product
        shape, left = (f"[{', '.join(str(extent(label)) for label in result)}]", f"[{ranges(result)}]") if result else ("", "")
        text = f"kernel einsum({', '.join(head)}) -> (R: {type_name}{shape}) {{ R{left} = {value}; }}\n"
        return Views(None, tuple(map(tuple, shapes)), layouts, strided, place and place.layout, text, dims)

    plain = [", ".join(names[label] for label in term) for term in labels]
    flat = [(m.length,) if is_strided else shape for m, is_strided, shape in zip(memories, strided, shapes)]
    made = views(flat, flat, [m.position(names) if is_strided else at for m, is_strided, at in zip(memories, strided, plain)], sizes.get, ())

    def opened():
        rows = [m.rows() if is_strided else shape for m, is_strided, shape in zip(memories, strided, shapes)]
        if any(r is None for r in rows):
            return None
        size = {label: f"n{k}" for k, label in enumerate(sizes)}
        dims = {size[label]: n for label, n in sizes.items()}
        heads, positions = [], []
        for k, (term, m, is_strided) in enumerate(zip(labels, memories, strided)):
            heads.append([size[label] for label in term])
            if is_strided:
                inner = {f"q{k}_{n}": extent for n, extent in enumerate(rows[k]) if n > 0}
                dims.update(inner)
                heads[-1][1:] = inner
            turned = [stride < 0 for stride in m.strides] if is_strided else [False] * len(term)
            positions.append(", ".join(f"{size[label]} - 1 - {names[label]}" if back else names[label] for label, back in zip(term, turned)))
        return views(rows, heads, positions, size.get, tuple(dims.items()))
    made.opened = opened
    return made
