# SPDX-License-Identifier: Apache-2.0
"""A kernel while it is written: parameters, values of its own, statements as text, and what each value is for each set of sizes."""
import random

import numpy as np

from expressions import Extent, OutOfRange, Rejected, Space, access

# The largest integer that sums in an element type may reach and stay exact. 2^50 leaves float64, which computes what is right, some bits.
MOST = {"f64": 2.0 ** 50, "f32": 2.0 ** 24, "f16": 2.0 ** 11, "bf16": 2.0 ** 8, "i32": 2.0 ** 31 - 1, "i64": 2.0 ** 50}
SHORT = {"i8": (-128, 127), "u8": (0, 255), "i16": (-2 ** 15, 2 ** 15 - 1), "u16": (0, 2 ** 16 - 1), "u32": (0, 2 ** 32 - 1)}  # computed with in i32 or i64
DIMS = ["n", "m", "k", "s"]
ELEMENT_TYPES = ["f32"] * 5 + ["f64"] * 3 + ["i32", "i64", "f16", "bf16"]
TRIES = 60              # of statements, until a kernel has as many as it wants
RESULTS_MOST = 8


class Value:
    """A parameter, a local value or a result. `arrays` holds what it is at the end, `given` what the caller passes: one for each set of sizes."""

    def __init__(self, name, extents, dtype, arrays, magnitudes):
        self.name, self.extents, self.dtype, self.arrays, self.magnitudes = name, extents, dtype, arrays, magnitudes
        self.given = arrays
        self.used = False


class Kernel:
    """Drawn from `seed`. With `most`, only the first statements of what the seed gives."""

    def __init__(self, seed, name, forms, most=None):
        self.random = random.Random(seed)
        draw = self.random
        self.arrays = np.random.default_rng(draw.randrange(1 << 30))
        self.name = name
        self.is_large = draw.random() < 0.12
        self.dims = draw.sample(DIMS, draw.choice([1, 2, 2, 3]))
        self.sets = self._sets()
        self.base = draw.choice(ELEMENT_TYPES)      # the type of parameters
        self.computes = self.base                   # the type of the statement that is written
        self.parameters, self.results, self.updated, self.values, self.statements = [], [], [], [], []
        self.refused = [None] * len(self.sets)      # OutOfRange, where a call with these sizes must be refused
        self.features = set()
        self.names = 0
        self._build(forms, most)

    def _sets(self):
        """Sizes of the dims: small ones, greater ones, and such with 0 and 1."""
        draw = self.random
        if self.is_large:
            choices = [range(2, 7), [60, 100, 130, 257]]
        else:
            choices = [range(1, 10), [10, 17, 24, 33], [0, 1, 1, 2, 3, 5]]
        return [{dim: draw.choice(some) for dim in self.dims} for some in choices]

    def fresh(self, prefix):
        self.names += 1
        return f"{prefix}{self.names}"

    # ---- extents and parameters ----

    def extent(self):
        draw = self.random
        if draw.random() < 0.25:
            return Extent((), draw.choice([3, 4, 8] if self.is_large else [1, 2, 3, 4, 5, 7, 8, 16]))
        return self.dim() + (draw.choice([0, 0, 0, 0, 1, 2]) if draw.random() < 0.5 else 0)

    def dim(self):
        return Extent({self.random.choice(self.dims): 1})

    def parameter(self, extents, dtype=None):
        arrays = []
        for sizes in self.sets:
            shape = [extent.size(sizes) for extent in extents]
            if min(shape, default=0) < 0 or np.prod([max(size, 1) for size in shape], dtype=float) > (3e6 if self.is_large else 2e5):
                raise Rejected
            arrays.append(self.arrays.integers(-3, 4, shape).astype(float))
        stored = self.random.choice(["i8", "i16"]) if dtype is None and self.base in ("i32", "i64") and self.random.random() < 0.4 else self.base
        value = Value(self.fresh("p"), list(extents), dtype or stored, arrays, [np.abs(array) for array in arrays])
        self.parameters.append(value)
        self.values.append(value)
        return value

    def updated_parameter(self, extents):
        """An inout parameter, which statements may read after `finish_update`."""
        value = self.parameter(extents, self.computes)
        value.given = [array.copy() for array in value.arrays]
        self.values.remove(value)
        return value

    def finish_update(self, value):
        value.used = True
        self.updated.append(value)
        self.values.append(value)

    def choose_type(self):
        """The element type that the next statement computes in: that of the parameters or a wider one, never less than what values have."""
        draw = self.random
        wider = [value.dtype for value in self.values if value.dtype != self.base and value.dtype not in SHORT]
        if wider:
            self.computes = wider[0]
        elif self.base in ("f16", "bf16"):
            self.computes = draw.choice([self.base, "f32"])
        elif self.base == "f32":
            self.computes = draw.choice(["f32"] * 7 + ["f64"])
        elif self.base == "i32":
            self.computes = draw.choice(["i32"] * 6 + ["i64"])

    def read(self, value, positions):
        widens = value.dtype in SHORT and self.random.random() < 0.5  # without a cast
        return access(value, positions, self.computes if value.dtype != self.computes and not widens else None)

    # ---- statements ----

    def space(self, *extents):
        """The space of a statement with these extents on its left, and the names of these indices."""
        space = Space()
        return space, [space.add(self.fresh("i"), extent) for extent in extents]

    def evaluate(self, space, left, expression):
        """Arrays and magnitudes over the left indices for each set of sizes; zeros where a call is refused."""
        arrays, magnitudes = [], []
        for number, sizes in enumerate(self.sets):
            if any(extent.size(sizes) < 0 for extent in space.extents.values()):
                raise Rejected
            shape = [space.size(index, sizes) for index in left]
            value = magnitude = np.zeros(space.ones())
            if self.refused[number] is None:
                try:
                    value, magnitude = expression.evaluate(space, sizes, number)
                except OutOfRange as why:
                    self.refused[number] = why
            full = [space.size(index, sizes) if index in left else 1 for index in space.extents]
            order = [space.axis(index) for index in left] + [space.axis(index) for index in space.extents if index not in left]
            value, magnitude = (np.broadcast_to(array, full).transpose(order).reshape(shape) for array in (value, magnitude))
            self.check_exact(value, magnitude)
            arrays.append(np.array(value))
            magnitudes.append(np.array(magnitude))
        return arrays, magnitudes

    def check_exact(self, value, magnitude):
        if magnitude.size and (magnitude.max() >= MOST[self.computes] or not np.isfinite(value).all()):
            raise Rejected

    def must_give_range(self, space, left, expression, index):
        """Whether a left index of a local value must be written with its range, since what it reads does not give that."""
        alone, ends = False, []
        for value, positions in expression.accesses:
            for position, extent in zip(positions, value.extents):
                if not position.uses(index):
                    continue
                if not position.is_shifted(index) or extent.factors:
                    return True
                alone |= position.constant == 0
                ends.append(extent + -position.constant)
        if not ends:
            return True
        if alone and all(end == ends[0] for end in ends) and ends[0] == space.extents[index]:
            return self.random.random() < 0.15
        same_dims = all(end.coefficients == space.extents[index].coefficients for end in ends)
        return not same_dims or min(end.constant for end in ends) != space.extents[index].constant or self.random.random() < 0.3

    def assign(self, space, left, expression, is_result):
        """Writes a statement that makes a result or a local value, now and then a declared one."""
        arrays, magnitudes = self.evaluate(space, left, expression)
        value = Value(self.fresh("R" if is_result else "t"), [space.extents[index] for index in left], self.computes, arrays, magnitudes)
        declared = ""
        if is_result:
            ranged = [index for index in left if not expression.uses(index)]
            self.results.append(value)
        else:
            ranged = [index for index in left if self.must_give_range(space, left, expression, index)]
            if left and self.random.random() < 0.3:
                declared = f": {self.computes}"
                self.features.add("declared local")
        items = [f"{index} < {space.extents[index]}" if index in ranged else index for index in left]
        self.statements.append(f"{value.name}{declared}{bracketed(items)} = {expression.text};")
        self.values.append(value)
        return value

    # ---- the whole ----

    def _build(self, forms, most):
        draw = self.random
        wanted, made = draw.choice([1, 2, 2, 3, 3, 4, 5]), 0
        self.n_statements = wanted
        for _ in range(TRIES):
            if made == min(wanted, most or wanted):
                break
            before = self._snapshot()
            try:
                draw.choices(list(forms), list(forms.values()))[0](self)
                made += 1
            except (Rejected, OutOfRange):
                self._restore(before)
        self._return_unused()
        self.parameters = [value for value in self.parameters if value.used or value in self.updated]
        if not self.results and not self.updated:
            raise Rejected

    def _snapshot(self):
        lists = [list(x) for x in (self.parameters, self.results, self.updated, self.values, self.statements, self.refused)]
        return lists, [value.used for value in self.values]

    def _restore(self, before):
        lists, used = before
        self.parameters, self.results, self.updated, self.values, self.statements, self.refused = lists
        for value, was in zip(self.values, used):
            value.used = was

    def _return_unused(self):
        """Local values that nothing reads become results."""
        for value in list(self.values):
            if value.used or value in self.parameters or value in self.results or len(self.results) > RESULTS_MOST:
                continue
            indices = [f"i{axis}" for axis in range(len(value.extents))]
            result = Value(self.fresh("R"), value.extents, value.dtype, value.arrays, value.magnitudes)
            self.statements.append(f"{result.name}{bracketed(indices)} = {value.name}{bracketed(indices)};")
            self.results.append(result)
            value.used = True

    @property
    def outputs(self):
        return self.results + self.updated

    def text(self):
        def head(value):
            return f"{value.name}: {'inout ' if value in self.updated else ''}{value.dtype}{bracketed(value.extents)}"
        results = f" -> ({', '.join(map(head, self.results))})" if self.results else ""
        body = "".join(f"    {statement}\n" for statement in self.statements)
        return f"kernel {self.name}({', '.join(map(head, self.parameters))}){results} {{\n{body}}}\n"


def bracketed(items):
    return f"[{', '.join(map(str, items))}]" if items else ""
