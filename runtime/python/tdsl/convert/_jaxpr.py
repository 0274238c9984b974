# SPDX-License-Identifier: Apache-2.0
"""The door for jaxprs."""
from __future__ import annotations

import ast
import linecache
import os
import re
from typing import Any, Iterable

from .._errors import ConversionError
from . import _elements as e
from ._graph import Code, Contract, Crosses, Iota, Kernel, Lookup, Node, Number, Pieces, Pos, Reduce, Running, Size, Stored, View, broadcast, cut, reshape, transpose
from ._text import TYPES, Converted, Poly, bounded
from ._window import Window

# Names of jax's primitives that are elementwise, by what _elements calls them.
ELEMENTWISE = {**{name: name for name in ("add", "sub", "mul", "neg", "max", "min", "pow", "atan2", "eq", "ne", "lt", "le", "gt", "ge", "exp", "exp2", "expm1", "log", "log1p",
                                           "sqrt", "rsqrt", "sin", "cos", "tan", "tanh", "erf", "erfc", "cosh", "sign", "floor", "ceil", "atan", "conj", "square")},
               "add_any": "add", "logistic": "sigmoid", "is_finite": "finite", "real": "re", "imag": "im"}
REDUCTIONS = {"reduce_sum": "sum", "reduce_max": "max", "reduce_min": "min", "reduce_prod": "prod", "reduce_and": "all", "reduce_or": "any"}
RUNNING = {"cumsum": "sum", "cummax": "max", "cummin": "min", "cumprod": "prod"}
INLINED = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr", "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr",
           "custom_vjp_call_jaxpr": "fun_jaxpr", "remat": "jaxpr", "remat2": "jaxpr", "checkpoint": "jaxpr", "custom_lin": "call_jaxpr"}
SAME = {"copy", "copy_p", "stop_gradient", "reduce_precision_none", "optimization_barrier", "sharding_constraint", "name", "pvary"}


FOLDED = {"div", "rem", "abs", "round", "integer_pow", "convert_element_type", "select_n", "and", "or", "not", "xor"}


class Unknown(Exception):
    """An operation, or a form of one, that has no translation; said in words."""


def extent_of(n: Any) -> Any:
    """An int, or of a symbolic dimension of jax.export its polynomial."""
    try:
        return int(n)
    except Exception:  # noqa: BLE001  (jax raises an error of its own for symbolic dimensions)
        pass

    def value(node: ast.AST) -> Any:
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)):
            a, b = value(node.left), value(node.right)
            return a + b if isinstance(node.op, ast.Add) else a - b if isinstance(node.op, ast.Sub) else a * b
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return value(node.operand) * -1
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.Name):
            return Poly.name(node.id)
        raise Unknown(f"the extent {n}")
    return value(ast.parse(str(n), mode="eval").body)


def base_of(node: Node) -> Node:
    """What a view is a view of."""
    while node.view:
        node = node.operands[0]
    return node


def number_of(node: Node) -> Number | None:
    """The number that all elements of a tensor are, where that is plain."""
    node = base_of(node)
    return node if isinstance(node, Number) else None


def positions_along(node: Node) -> int | None:
    """The axis along which a tensor counts, where that is plain."""
    if node.__class__ is Iota:
        return node.axis  # type: ignore[attr-defined]
    if isinstance(node, View) and node.axes_of is not None:
        inner = positions_along(node.operands[0])
        return node.axes_of[inner] if inner is not None else None
    return None


def simple(name: str, x: list[Node], numbers: list[Number | None]) -> Node | None:
    """What needs no operation: the lower bound of a maximum, 0 added to integers, a mask that is chosen from true and false."""
    values = [n.value if n is not None else None for n in numbers]
    if name in ("max", "min"):
        nothing = float("-inf") if name == "max" else float("inf")
        return x[1] if values[0] == nothing else x[0] if values[1] == nothing else None
    if x and x[0].kind == "bool" and (name, True) in (("ne", False in values), ("eq", True in values)):
        return x[0] if values[1] is not None else x[1]
    if name == "mul" and 1 in values:
        return x[0] if values[1] == 1 else x[1]
    if name == "lt" and values[1] == 0 and base_of(x[0]).__class__ is Iota:  # positions are not below 0
        return broadcast(Number(False, "bool"), x[0].shape, [])
    if name in ("add", "sub") and x[0].kind[0] in "iu":
        return x[0] if values[1] == 0 else x[1] if values[0] == 0 and name == "add" else None
    if name == "select_n" and x[0].kind == "bool":
        if values[0] is not None:
            return x[2] if values[0] else x[1]
        return x[0] if x[1].kind == "bool" and values[1:] == [False, True] else None
    return None


class Reader:
    """One jaxpr."""

    def __init__(self, kernel: Kernel) -> None:
        self.k = kernel
        self.env: dict[Any, Node] = {}
        self.lines: list[tuple[str, str | None, Node]] = []
        self.same: dict[Any, Node] = {}
        self.kept: list[Node] = []  # so that the id of each goes on being its own

    # ---- values and places ----

    def kind(self, aval: Any) -> str:
        name = str(getattr(aval, "dtype", aval))
        if name not in TYPES:
            raise Unknown(f"the element type {name}")
        return TYPES[name]

    def shape(self, extents: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(extent_of(n) for n in extents)

    def value(self, atom: Any) -> Node:
        if hasattr(atom, "val"):
            return Number(atom.val if not hasattr(atom.val, "item") else atom.val[()] if hasattr(atom.val, "shape") else atom.val, self.kind(atom.aval))
        return self.env[atom]

    def constant(self, value: Any) -> Node:
        """What a function closes over: a number, or a parameter that brings its value along."""
        import numpy
        array = numpy.asarray(value)
        kind = self.kind(array)
        if array.ndim == 0:
            return Number(array[()], kind)
        if array.size and array.size <= 1 << 20 and (array == array.flat[0]).all():
            return broadcast(Number(array.flat[0], kind), array.shape, [])
        found = self.k.parameter("c", array.shape, kind, "a constant of the function")
        self.k.arrays[found.text] = array
        return found

    def place(self, eqn: Any) -> tuple[str, str | None]:
        """(file, line and text of the user's program, the name that is assigned there, or where a function that returns there is called)."""
        traceback, found = getattr(eqn.source_info, "traceback", None), None
        for frame in traceback.frames if traceback is not None else []:
            file = frame.file_name
            if f"{os.sep}jax{os.sep}" in file or f"{os.sep}jaxlib{os.sep}" in file or file == __file__:
                continue
            line = getattr(frame, "line_num", 0) or getattr(frame, "start_line", 0)
            text = linecache.getline(file, line).strip()
            target = None if "lambda" in text else re.match(r"([A-Za-z]\w*)(?:\s*:[^=]*)?\s*[-+*/@]?=(?!=)", text)
            found = found or (f"{os.path.basename(file)}:{line}: {text}" if text else f"{os.path.basename(file)}:{line}")
            if target or not text.startswith("return "):
                return found, target[1] if target else None
        return found or eqn.primitive.name, None

    # ---- equations ----

    def run(self, jaxpr: Any, consts: list[Node], arguments: list[Node], inherited: tuple[str, str | None] | None = None) -> list[Node]:
        outer, self.env = self.env, {}
        self.env.update(zip(jaxpr.constvars, consts))
        self.env.update(zip(jaxpr.invars, arguments))
        for eqn in jaxpr.eqns:
            where = self.place(eqn)
            if ":" not in where[0] and inherited:
                where = inherited
            try:
                made = self.equation(eqn, where)
            except Crosses:
                made = None
                self.k.refused.add(f"{eqn.primitive.name} from {self.tensor(eqn.invars[0].aval)} to {self.tensor(eqn.outvars[0].aval)}: the axes have no factors in common", where[0])
            except Unknown as error:
                made = None
                self.k.refused.add(str(error), where[0])
            if made is None:  # go on, so that all that is unknown is told at once
                made = [self.stand_in(v.aval) for v in eqn.outvars]
            self.env.update(zip(eqn.outvars, made))
        results = [self.value(v) for v in jaxpr.outvars]
        self.env = outer
        return results

    @staticmethod
    def tensor(aval: Any) -> str:
        return f"{getattr(aval, 'dtype', '')}[{','.join(str(n) for n in getattr(aval, 'shape', ()))}]"

    def stand_in(self, aval: Any) -> Node:
        try:
            return Stored(self.shape(getattr(aval, "shape", ())), self.kind(aval), "unknown")
        except Unknown:
            return Stored((), "f32", "unknown")

    def equation(self, eqn: Any, where: tuple[str, str | None]) -> list[Node]:
        name, params = eqn.primitive.name, eqn.params
        if name in INLINED and INLINED[name] in params:
            inner = params[INLINED[name]]
            inner, consts = (inner.jaxpr, inner.consts) if hasattr(inner, "jaxpr") else (inner, [])
            return self.run(inner, [self.constant(c) for c in consts], [self.value(v) for v in eqn.invars], where)
        if name == "split":
            starts, axis = [0] * len(eqn.invars[0].aval.shape), int(params["axis"])
            found: list[Node] = []
            for v in eqn.outvars:
                found.append(cut(self.value(eqn.invars[0]), self.shape(v.aval.shape), starts, [1] * len(starts)))
                starts = [n + (found[-1].shape[axis] if k == axis else 0) for k, n in enumerate(starts)]
                self.k.add(found[-1], where[0])
            return found
        if name in SAME:
            return [self.value(v) for v in eqn.invars]
        out = eqn.outvars[0].aval
        x, shape, kind = [self.value(v) for v in eqn.invars], self.shape(out.shape), self.kind(out)
        numbers = [number_of(each) for each in x]
        if x and len(eqn.outvars) == 1 and all(n is not None for n in numbers) and (name in ELEMENTWISE or name in FOLDED):
            return [broadcast(self.folded(eqn, numbers), shape, []) if shape else self.folded(eqn, numbers)]
        node = simple(name, x, numbers)
        if node is not None and node.shape == shape and node.kind == kind:
            return [node]
        key = (name, str(params), *(("number", n.value, n.kind) if n is not None else id(each) for each, n in zip(x, numbers)))
        if key in self.same:  # jax computes a mean twice, of which a user wrote one
            return [self.same[key]]
        node = self.same[key] = self.operation(name, params, x, shape, kind)
        self.kept += x
        if not node.leaf:
            self.k.add(node, where[0])
            self.lines.append((*where, node))
        return [node]

    @staticmethod
    def folded(eqn: Any, numbers: list[Any]) -> Node:
        """What jax makes of numbers."""
        import numpy
        value = numpy.asarray(eqn.primitive.bind(*(numpy.asarray(n.value).astype(v.aval.dtype) for n, v in zip(numbers, eqn.invars)), **eqn.params))
        return Number(value[()], TYPES[str(value.dtype)])

    def operation(self, name: str, p: dict[str, Any], x: list[Node], shape: tuple[Any, ...], kind: str) -> Node:  # noqa: C901
        if name in ELEMENTWISE:
            write, twice = e.PLAIN[ELEMENTWISE[name]]
            return e.elementwise(shape, kind, x, write, twice)
        if name in ("and", "or", "xor", "not") and kind == "bool":
            return e.elementwise(shape, kind, x, *e.PLAIN[name])
        if name == "div":
            return e.elementwise(shape, kind, x, e.divide)
        if name == "rem":
            return e.elementwise(shape, kind, x, *e.PLAIN["irem" if kind[0] in "iu" else "rem"])
        if name == "abs":
            return e.elementwise(shape, kind, x, *e.PLAIN["abs" if kind == x[0].kind else "cabs"])
        if name == "complex":
            return e.elementwise(shape, kind, x, e.complex_of)
        if name == "round":
            if int(p["rounding_method"]) != 1:
                raise Unknown("round to the nearest, ties away from zero (the language rounds ties to even)")
            return e.elementwise(shape, kind, x, *e.PLAIN["round"])
        if name == "integer_pow":
            y = int(p["y"])
            if kind[0] in "iu" and y < 1:
                raise Unknown(f"integer_pow of integers with exponent {y}")
            return e.elementwise(shape, kind, x, lambda ctx, node, a: e.power(ctx, node, a, y), y in (2, 3) or kind[0] in "iu")
        if name == "convert_element_type":
            return e.elementwise(shape, kind, x, e.cast) if kind != x[0].kind else x[0]
        if name == "select_n":
            if x[0].kind == "bool":
                return e.elementwise(shape, kind, [x[0], x[2], x[1]], e.select)
            found = x[-1]
            for n in range(len(x) - 3, -1, -1):
                test = e.elementwise(x[0].shape, "bool", [x[0], Number(n, x[0].kind)], e.both(e.COMPARE, "=="))
                found = e.elementwise(shape, kind, [test, x[n + 1], found], e.select)
            return found
        if name == "clamp":
            low = e.elementwise(shape, kind, [x[1], x[0]], e.call("max"))
            return e.elementwise(shape, kind, [low, x[2]], e.call("min"))
        if name == "iota":
            axis = int(p["dimension"])
            return Iota(shape, axis, kind) if shape[axis] != 1 else broadcast(Number(0, kind), shape, [])
        if name == "dim_as_value":
            return Size(extent_of(p["dim"]), kind)
        if name in REDUCTIONS:
            axes = [int(k) for k in p["axes"]]
            if all(x[0].shape[k] == 1 for k in axes) and kind == x[0].kind:
                return reshape(x[0], shape)
            return Reduce(REDUCTIONS[name], x[0], axes, kind, True)
        if name in ("argmax", "argmin"):
            return Reduce(name, x[0], p["axes"], kind, True)
        if name in RUNNING:
            return Running(RUNNING[name], x[0], int(p["axis"]), bool(p["reverse"]))
        if name == "dot_general":
            return self.dot(p, x, kind)
        if name == "broadcast_in_dim":
            return broadcast(x[0], shape, p["broadcast_dimensions"])
        if name == "transpose":
            return transpose(x[0], p["permutation"])
        if name == "squeeze":
            return reshape(x[0], shape)
        if name in ("reshape", "expand_dims"):
            if p.get("dimensions") is not None:
                raise Unknown("reshape of axes in another order")
            return reshape(x[0], shape) if x[0].shape else broadcast(x[0], shape, [])
        if name == "stack":
            axis = int(p["axis"])
            return self.joined([reshape(each, (*each.shape[:axis], 1, *each.shape[axis:])) for each in x], shape, axis)
        if name == "tile":
            reps = [int(n) for n in p["reps"]]
            return reshape(broadcast(x[0], [n for pair in zip(reps, x[0].shape) for n in pair], range(1, 2 * len(reps), 2)), shape)
        if name == "slice":
            return cut(x[0], shape, [int(n) for n in p["start_indices"]], [int(n) for n in p["strides"] or [1] * len(shape)])
        if name == "rev":
            turned = [int(d) for d in p["dimensions"]]
            return cut(x[0], shape, [n - 1 if d in turned else 0 for d, n in enumerate(shape)], [-1 if d in turned else 1 for d in range(len(shape))])
        if name == "concatenate":
            return self.joined(x, shape, int(p["dimension"]))
        if name == "pad":
            return self.padded(p, x, shape)
        if name == "conv_general_dilated":
            return self.convolved(p, x, shape, kind)
        if name == "gather":
            return self.gathered(p, x, shape)
        if name == "scatter-add":
            return self.scattered(p, x, shape)
        raise Unknown(f"the operation {name}")

    def dot(self, p: dict[str, Any], x: list[Node], kind: str) -> Node:
        (left, right), (left_batch, right_batch) = p["dimension_numbers"]
        a = [f"a{k}" for k in range(len(x[0].shape))]
        b = [f"b{k}" for k in range(len(x[1].shape))]
        for i, j in (*zip(left, right), *zip(left_batch, right_batch)):
            b[j] = a[i]
        output = [a[i] for i in left_batch] + [a[i] for i in range(len(a)) if i not in left and i not in left_batch] + \
            [b[j] for j in range(len(b)) if j not in right and j not in right_batch]
        return Contract(x, [a, b], output, kind)

    def joined(self, x: list[Node], shape: Any, axis: int) -> Node:
        starts, start = [], 0
        for each in x:
            starts.append([start if k == axis else 0 for k in range(len(shape))])
            start = start + each.shape[axis]
        return Pieces(shape, x, starts)

    def padded(self, p: dict[str, Any], x: list[Node], shape: Any) -> Node:
        low, high, inside = zip(*[(extent_of(a), extent_of(b), extent_of(c)) for a, b, c in p["padding_config"]])
        if any(inside) or any(isinstance(n, int) and n < 0 for n in low + high):
            raise Unknown("pad between elements, or by less than nothing")
        if not (isinstance(x[1], Number) and x[1].value == 0):
            raise Unknown("pad with another number than 0")
        return Pieces(shape, [x[0]], [list(low)])

    def convolved(self, p: dict[str, Any], x: list[Node], shape: Any, kind: str) -> Node:
        numbers = p["dimension_numbers"]
        if int(p["feature_group_count"]) != 1 or int(p["batch_group_count"]) != 1 or any(int(n) != 1 for n in p["lhs_dilation"]):
            raise Unknown("conv_general_dilated with groups, or of a dilated image")
        image, space = x[0], numbers.lhs_spec[2:]
        padding = [(int(a), int(b)) for a, b in p["padding"]]
        if any(a or b for a, b in padding):
            extents, starts = list(image.shape), [0] * len(image.shape)
            for axis, (a, b) in zip(space, padding):
                if a < 0 or b < 0:
                    raise Unknown("conv_general_dilated with padding below 0")
                extents[axis], starts[axis] = extents[axis] + a + b, a
            image = Pieces(extents, [image], [starts])
        return Window(image, x[1], (numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec), [int(n) for n in p["window_strides"]], [int(n) for n in p["rhs_dilation"]], shape, kind)

    def parts_of(self, index: Node, count: int) -> list[Node]:
        """The positions along each axis that is looked up; they lie beside each other in the last axis of the index."""
        shape = index.shape[:-1]
        if isinstance(index, Pieces) and all(each.shape[-1] == 1 for each in index.operands):
            return [reshape(each, shape) for each in index.operands]
        return [reshape(cut(index, (*shape, 1), [0] * len(shape) + [n], [1] * len(index.shape)), shape) for n in range(count)]

    def scattered(self, p: dict[str, Any], x: list[Node], shape: Any) -> Node:
        """Rows, or elements, that are added where positions say: each element is the sum of those that have its position. What lies outside is left out."""
        d, (target, index, updates) = p["dimension_numbers"], x
        looked, inserted = [int(k) for k in d.scatter_dims_to_operand_dims], [int(k) for k in d.inserted_window_dims]
        rest = [k for k in range(len(shape)) if k not in inserted]
        if getattr(d, "operand_batching_dims", ()) or sorted(looked) != sorted(inserted) or "CLIP" in str(p.get("mode")) or \
                any(updates.shape[int(u)] != shape[k] for u, k in zip(d.update_window_dims, rest)):
            raise Unknown("scatter-add of other things than whole rows (x.at[index].add, the gradient of x[index])")
        found = Scattered(updates, self.parts_of(index, len(looked)), looked, rest, [int(u) for u in d.update_window_dims], shape)
        begins = number_of(target)
        return found if begins is not None and begins.value == 0 else e.elementwise(shape, target.kind, [target, found], e.sign_of("+"))

    def gathered(self, p: dict[str, Any], x: list[Node], shape: Any) -> Node:
        """Rows, or elements, at positions: whole slices of the other axes."""
        d, sizes = p["dimension_numbers"], [extent_of(n) for n in p["slice_sizes"]]
        source, index = x
        looked = [int(k) for k in d.start_index_map]
        paired = [int(k) for k in getattr(d, "operand_batching_dims", ())]
        rest = [k for k in range(len(source.shape)) if k not in d.collapsed_slice_dims and k not in paired]
        if sorted(looked) != sorted(d.collapsed_slice_dims) or any(sizes[k] != source.shape[k] for k in rest):
            raise Unknown("gather of other things than whole rows (x[index], jnp.take)")
        mode = str(p.get("mode"))
        batch = [k for k in range(len(shape)) if k not in d.offset_dims]
        kind = index.kind
        parts = self.parts_of(index, len(looked))

        def place(ctx: Any, at: list[Pos]) -> list[Any]:
            words: list[Any] = [None] * len(source.shape)
            for axis, k in zip(rest, d.offset_dims):
                words[axis] = at[k]
            for axis, k in zip(paired, getattr(d, "start_indices_batching_dims", ())):
                words[axis] = at[batch[k]]
            for part, axis in zip(parts, looked):
                along = positions_along(part)
                if along is not None and part.shape[along] == source.shape[axis]:
                    words[axis] = at[batch[along]]
                    continue
                text = part.code(ctx, [at[k] for k in batch]).text
                words[axis] = f"max(min({text}, {source.shape[axis]} - 1), 0)" if "CLIP" in mode else text if re.search(r"\W", text) else f"{text} + 0"
            return words
        found: Node = Lookup(shape, source, parts, place)
        if "FILL" in mode or mode.endswith("1"):
            fill = p.get("fill_value")
            inside: Node | None = None
            for part, axis in zip(parts, looked):
                at = broadcast(part, shape, batch)
                for op, bound in ((">=", 0), ("<", source.shape[axis])):
                    limit: Node = Number(bound, kind) if isinstance(bound, int) else Size(bound, kind)
                    test = e.elementwise(shape, "bool", [at, limit], e.both(e.COMPARE, op))
                    inside = test if inside is None else e.elementwise(shape, "bool", [inside, test], e.both(e.AND, "&&"))
            empty = Number(fill if fill is not None else float("nan") if source.kind[0] in "fbc" and source.kind != "bool" else False if source.kind == "bool" else
                           -(1 << (int(source.kind[1:]) - 1)) if source.kind[0] == "i" else (1 << int(source.kind[1:])) - 1, source.kind)
            assert inside is not None
            return e.elementwise(shape, source.kind, [inside, found, empty], e.select)
        return found


class Scattered(Node):
    """Updates added up by their positions. Where an axis of the updates counts along one of the result, it is that one."""
    fold = True

    def __init__(self, updates: Node, parts: list[Node], looked: list[int], rest: list[int], window: list[int], shape: Any) -> None:
        super().__init__(shape, updates.kind)
        self.operands, self.looked, self.rest, self.window = [updates, *parts], looked, rest, window

    def own_digits(self, axis: int) -> list[Any]:
        return self.operands[0].digits(self.window[self.rest.index(axis)]) if axis in self.rest else [self.shape[axis]]

    def own_code(self, ctx: Any, at: list[Pos]) -> Code:
        updates, *parts = self.operands
        batch = [k for k in range(len(updates.shape)) if k not in self.window]
        place: list[Any] = [None] * len(updates.shape)
        for axis, k in zip(self.rest, self.window):
            place[k] = at[axis]
        tests = []
        for part, axis in zip(parts, self.looked):
            along = positions_along(part)
            if along is not None and place[batch[along]] is None and updates.shape[batch[along]] == self.shape[axis]:
                place[batch[along]] = at[axis]
            else:
                tests.append((part, axis))
        names = []
        for k in batch:
            if place[k] is None:
                place[k] = ctx.digits([updates.shape[k]])
                names += [name for _, name in place[k].terms]
        code = ctx.close(updates.code(ctx, place))
        said = [f"{part.code(ctx, [place[k] for k in batch]).within(e.SUM)} == {at[axis].terms[0][1] if names and len(at[axis].terms) == 1 else f'index({at[axis]})'}" for part, axis in tests]
        if not names:
            return Code(f"select({' && '.join(said)}, {code.text}, 0)", e.ATOM, code.kind) if said else code
        return Code(f"sum[{', '.join([*(ctx.listed(name) for name in names), *said])}]({code.text})", e.ATOM, code.kind)


def from_jaxpr(jaxpr: Any, name: str = "", results: Iterable[str] | None = None) -> Converted:
    """The program of a jaxpr, `tdsl.from_jaxpr(jax.make_jaxpr(f)(x, y))`: one kernel, with a comment on the line that each statement comes from.

    name: of the kernel, else that of the function; results: names of what it gives. Raises ConversionError, which names all operations that are unknown.
    """
    inner, consts = (jaxpr.jaxpr, jaxpr.consts) if hasattr(jaxpr, "consts") else (jaxpr, [])
    if not hasattr(inner, "eqns"):
        raise ConversionError(f"from_jaxpr takes what jax.make_jaxpr(f)(...) gives, not {type(jaxpr).__name__}")
    debug = getattr(inner, "debug_info", None)
    source = str(getattr(debug, "func_src_info", "") or "")
    function = name or re.sub(r"\W+", "_", source.split(" at ")[0]).strip("_") or "kernel_of_jax"
    kernel = Kernel(re.sub(r"^(?=\d)", "k", function), "jaxpr")
    reader = Reader(kernel)
    said = list(getattr(debug, "arg_names", None) or [])
    arguments: list[Node] = []
    for n, v in enumerate(inner.invars):
        try:
            wanted = said[n] if n < len(said) and said[n] else f"x{n + 1}"
            arguments.append(kernel.parameter(wanted, reader.shape(v.aval.shape), reader.kind(v.aval)))
        except Unknown as error:
            kernel.refused.add(str(error), f"argument {n + 1}")
            arguments.append(reader.stand_in(v.aval))
    constants = []
    for value in consts:
        try:
            constants.append(reader.constant(value))
        except Unknown as error:
            kernel.refused.add(str(error), "a constant")
            constants.append(Stored((), "f32", "unknown"))
    with bounded("jaxpr"):
        found = reader.run(inner, constants, arguments)
        named = name_by_lines(reader.lines)
        wanted_results = list(results or [])
        if wanted_results and len(wanted_results) != len(found):
            raise ConversionError(f"results has {len(wanted_results)} names, and the function gives {len(found)}")
        names = wanted_results or [named.get(id(node)) or f"y{n + 1 if len(found) > 1 else ''}" for n, node in enumerate(found)]
        for node in {id(node): node for node in found}.values():
            node.name = None
        return kernel.write(list(zip(names, found)), f"jax: {source or function}")


def name_by_lines(lines: list[tuple[str, str | None, Node]]) -> dict[int, str]:
    """The last operation of a line that assigns to a name has that name."""
    found = {}
    for k, (origin, target, node) in enumerate(lines):
        if target and (k + 1 == len(lines) or lines[k + 1][:2] != (origin, target)):
            node.name = found[id(node)] = target
    return found
