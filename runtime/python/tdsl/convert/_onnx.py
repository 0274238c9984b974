# SPDX-License-Identifier: Apache-2.0
"""The door for ONNX models, which the package onnx reads."""
from __future__ import annotations

import math
import os
import re
from typing import Any, Iterable

from .._errors import ConversionError, Error, FileError
from . import _elements as e
from ._graph import Contract, Crosses, Iota, Kernel, Lookup, Node, Number, Pieces, Pos, Reduce, Running, Stored, broadcast, cut, reshape, transpose
from ._text import TYPES, Converted, Names, Poly, bounded
from ._window import Window

BINARY = {"Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Pow": "pow", "Equal": "eq", "Less": "lt", "LessOrEqual": "le", "Greater": "gt", "GreaterOrEqual": "ge",
          "And": "and", "Or": "or", "Xor": "xor"}
UNARY = {"Abs": "abs", "Neg": "neg", "Exp": "exp", "Log": "log", "Sqrt": "sqrt", "Sin": "sin", "Cos": "cos", "Tan": "tan", "Atan": "atan", "Cosh": "cosh", "Tanh": "tanh", "Erf": "erf",
         "Sigmoid": "sigmoid", "Relu": "relu", "Floor": "floor", "Ceil": "ceil", "Round": "round", "Sign": "sign", "Not": "not", "IsNaN": "isnan"}
# Formulas of one operand, which they read as often as they say; attributes stand under their names.
FORMULAS = {"Reciprocal": ("1 / {0}", e.PRODUCT), "Softplus": ("max({0}, 0) + log1p(exp(-abs({0})))", e.SUM), "Softsign": ("{0} / (1 + abs({0}))", e.PRODUCT),
            "Elu": ("select({0} < 0, {alpha=1.0} * expm1({0}), {0})", e.ATOM), "LeakyRelu": ("select({0} < 0, {alpha=0.01} * {0}, {0})", e.ATOM),
            "Selu": ("{gamma=1.05070102214813232421875} * select({0} <= 0, {alpha=1.67326319217681884765625} * expm1({0}), {0})", e.PRODUCT),
            "Celu": ("max({0}, 0) + min({alpha=1.0} * expm1({0} / {alpha=1.0}), 0)", e.SUM), "ThresholdedRelu": ("select({0} > {alpha=1.0}, {0}, 0)", e.ATOM),
            "HardSigmoid": ("max(0, min(1, {alpha=0.2} * {0} + {beta=0.5}))", e.ATOM), "HardSwish": ("{0} * max(0, min(1, {0} / 6 + 0.5))", e.PRODUCT),
            "Mish": ("{0} * tanh(max({0}, 0) + log1p(exp(-abs({0}))))", e.PRODUCT), "Swish": ("{0} * sigmoid({alpha=1.0} * {0})", e.PRODUCT)}
REDUCE = {"ReduceSum": "sum", "ReduceMax": "max", "ReduceMin": "min", "ReduceProd": "prod"}
SAME = {"Identity", "Dropout"}
LARGE = {"ConstantOfShape", "Range", "Expand", "Tile"}
# What is computed while the model is read, where all operands are known.
FOLDED = {*LARGE, *BINARY, "Constant", "Cast", "Concat", "Gather", "Slice", "Squeeze", "Unsqueeze", "Reshape", "Transpose", "Identity", "Where", "Mod", "Max", "Min", "Not", "Neg", "Abs", "Sqrt",
          "Reciprocal", "Floor", "Ceil", "Exp", "Log", "ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "Shape"}


class Unknown(Exception):
    """An operator, or a form of one, that has no translation; said in words."""


class Tensor:
    """What a name of the model stands for: a tensor of the program, and its value where that is known, as an array or as a list of extents."""

    def __init__(self, node: Node | None, value: Any = None) -> None:
        self.node, self.value = node, value


class Reader:
    """One model."""

    def __init__(self, onnx: Any, model: Any, kernel: Kernel) -> None:
        import numpy
        self.onnx, self.np, self.k, self.names = onnx, numpy, kernel, Names()
        self.opset = max([i.version for i in model.opset_import if i.domain in ("", "ai.onnx")], default=1)
        self.env: dict[str, Tensor] = {}

    # ---- values ----

    def kind(self, number: int) -> str:
        name = str(self.onnx.helper.tensor_dtype_to_np_dtype(number)) if number else "none"
        if name not in TYPES:
            raise Unknown(f"the element type {self.onnx.TensorProto.DataType.Name(number)}")
        return TYPES[name]

    def node(self, name: str, what: str = "") -> Node:
        """The tensor. An array that is known becomes a parameter when it is first read as one, a single number stays a number."""
        tensor = self.env[name]
        if tensor.node is None:
            if isinstance(tensor.value, list):
                raise Unknown("extents as a tensor")
            array = self.np.asarray(tensor.value)
            if str(array.dtype) not in TYPES:
                raise Unknown(f"the element type {array.dtype}")
            kind = TYPES[str(array.dtype)]
            if array.size == 1:
                number = Number(array.reshape(())[()], kind)
                tensor.node = broadcast(number, array.shape, []) if array.ndim else number
            else:
                tensor.node = self.k.parameter(plain(name, what or "c"), array.shape, kind)
                self.k.arrays[tensor.node.text] = array  # type: ignore[attr-defined]
        return tensor.node

    def known(self, name: str, what: str) -> Any:
        value = self.env[name].value if name else None
        if value is None:
            raise Unknown(f"{what} that is computed by the model")
        return value

    def whole(self, name: str, what: str) -> list[Any]:
        """Whole numbers, or extents, that have to be known."""
        value = self.known(name, what)
        return value if isinstance(value, list) else [int(n) for n in self.np.asarray(value).reshape(-1)]

    # ---- building ----

    def shape(self, *nodes: Node) -> tuple[Any, ...]:
        """NumPy's broadcasting."""
        rank = max(len(x.shape) for x in nodes)
        found: list[Any] = [1] * rank
        for x in nodes:
            for k, n in enumerate(x.shape, rank - len(x.shape)):
                if n != 1 and found[k] not in (1, n):
                    raise Unknown(f"extents {found[k]} and {n}, which are not the same")
                found[k] = n if n != 1 else found[k]
        return tuple(found)

    def fit(self, x: Node, rank: int) -> Node:
        return x if len(x.shape) in (0, rank) else broadcast(x, (1,) * (rank - len(x.shape)) + x.shape, range(rank - len(x.shape), rank))

    def apply(self, write: Any, *nodes: Node, kind: str = "", twice: bool = False) -> Node:
        shape = self.shape(*nodes)
        return e.elementwise(shape, kind or nodes[0].kind, [self.fit(x, len(shape)) for x in nodes], write, twice)

    def do(self, name: str, *nodes: Node) -> Node:
        write, twice = e.PLAIN[name]
        return self.apply(write, *nodes, twice=twice, kind="bool" if name in ("eq", "ne", "lt", "le", "gt", "ge", "isnan", "not", "and", "or", "xor") else "")

    def number(self, value: float, kind: str) -> Node:
        return Number(self.np.float32(value) if kind in ("f32", "f16", "bf16") else value, kind)

    def reduce(self, op: str, x: Node, axes: list[int], keep: bool, kind: str = "") -> Node:
        axes = sorted(axis % len(x.shape) for axis in axes)
        found = Reduce(op, x, axes, kind or x.kind, True)
        return reshape(found, [1 if k in axes else n for k, n in enumerate(x.shape)]) if keep and found.shape != x.shape else found

    def mean(self, x: Node, axes: list[int], keep: bool) -> Node:
        from ._graph import Size
        count: Any = 1
        for axis in axes:
            count = count * x.shape[axis]
        return self.do("div", self.reduce("sum", x, axes, keep), Number(float(count), x.kind) if isinstance(count, int) else Size(count, x.kind))

    # ---- the graph ----

    def run(self, graph: Any) -> None:
        for initializer in graph.initializer:
            self.env[initializer.name] = Tensor(None, self.onnx.numpy_helper.to_array(initializer))
        if graph.sparse_initializer:
            self.k.refused.add("sparse initializers", graph.name or "the graph")
        for each in graph.input:
            if each.name in self.env:
                continue
            try:
                self.env[each.name] = Tensor(self.parameter(each))
            except Unknown as error:
                self.k.refused.add(str(error), f"input {each.name}")
                self.env[each.name] = Tensor(Stored((), "f32", "unknown"))
        for node in graph.node:
            outputs = [name for name in node.output if name]
            where = f"{node.op_type} {node.name or (outputs[0] if outputs else '')}".strip()
            try:
                found = self.operator(node, {a.name: self.onnx.helper.get_attribute_value(a) for a in node.attribute})
            except Crosses:
                self.k.refused.add("an axis that is split in two ways of which none is a part of the other", where)
                found = None
            except Unknown as error:
                if not any(name in self.unknown for name in node.input):  # what follows from it is not told again
                    self.k.refused.add(str(error), where)
                found = None
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                self.k.refused.add(f"operands or attributes that do not fit ({type(error).__name__}: {error})", where)
                found = None
            for k, name in enumerate(node.output):
                if not name:
                    continue
                if found is None or k >= len(found):
                    self.unknown.add(name)
                    self.env[name] = Tensor(Stored((), "f32", "unknown"))
                    if found is not None:
                        self.k.refused.add(f"output {k + 1} of it", where)
                    continue
                self.env[name] = found[k]
                made = found[k].node
                if made is not None and not made.leaf:
                    self.k.add(made, where, plain(name, node.op_type.lower()))

    unknown: set[str] = set()

    def parameter(self, each: Any) -> Node:
        tensor = each.type.tensor_type
        if not each.type.HasField("tensor_type") or not tensor.HasField("shape"):
            raise Unknown("an input without a shape")
        shape: list[Any] = []
        for k, d in enumerate(tensor.shape.dim):
            if d.HasField("dim_value"):
                if d.dim_value < 0:
                    raise Unknown(f"an extent of {d.dim_value}")
                shape.append(int(d.dim_value))
            else:
                name = re.sub(r"\W+", "_", d.dim_param).strip("_") if d.dim_param else f"{plain(each.name, 'x')}_{k}"
                shape.append(Poly.name(name if not name[:1].isdigit() else "n" + name))
        return self.k.parameter(plain(each.name, "x"), shape, self.kind(tensor.elem_type))

    def folded(self, node: Any) -> list[Tensor] | None:
        """What a node gives whose operands are all known arrays, by onnx's own reference."""
        if node.op_type in ("Shape", "Size") or not all(not n or self.env[n].value is not None and not isinstance(self.env[n].value, list) and self.np.asarray(self.env[n].value).size <= 4096
                                                        for n in node.input):
            return None
        if node.domain not in ("", "ai.onnx") or node.op_type not in FOLDED:
            return None
        if node.op_type in LARGE:  # whose results may have any size
            sizes = [int(abs(v)) for n in node.input if n for v in self.np.asarray(self.env[n].value).reshape(-1)[:64] if float(v) == float(v) and abs(v) < 1e18]
            if math.prod(max(v, 1) for v in sizes) > 1 << 20:
                return None
        from onnx.reference import ReferenceEvaluator
        inputs = [n for n in node.input if n]
        helper = self.onnx.helper
        make = lambda name: helper.make_value_info(name, self.onnx.TypeProto())
        graph = helper.make_graph([node], "one", [make(n) for n in dict.fromkeys(inputs)], [make(n) for n in node.output if n])
        try:
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
            values = ReferenceEvaluator(model).run(None, {n: self.np.asarray(self.env[n].value) for n in inputs})
        except Exception as error:  # noqa: BLE001  (whatever the reference says of a wrong node)
            raise Unknown(f"onnx cannot compute it: {str(error).splitlines()[0] if str(error) else type(error).__name__}") from None
        return [Tensor(None, v) for v in values]

    def operator(self, node: Any, a: dict[str, Any]) -> list[Tensor]:
        if node.domain not in ("", "ai.onnx"):
            raise Unknown(f"the operator {node.domain}.{node.op_type}")
        for name in node.input:
            if name and name not in self.env:
                raise Unknown(f"its operand {name}, which nothing gives")
        if any(name in self.unknown for name in node.input):
            raise Unknown("an operand that is unknown")
        done = self.folded(node)
        if done is not None:
            return done
        done = self.of_extents(node, a)
        if done is not None:
            return done
        found = self.tensors(node.op_type, a, list(node.input), list(node.output))
        return [Tensor(each) for each in (found if isinstance(found, list) else [found])]

    def of_extents(self, node: Any, a: dict[str, Any]) -> list[Tensor] | None:
        """Shapes, and what is computed of them."""
        op, inputs = node.op_type, list(node.input)
        if op == "Shape":
            shape = self.node(inputs[0]).shape
            return [Tensor(None, list(shape[a.get("start", 0):a.get("end", len(shape))]))]
        if not any(n and isinstance(self.env[n].value, list) for n in inputs):
            return None
        if op in ("Reshape", "Expand", "ConstantOfShape", "Tile") or op == "Slice" and not isinstance(self.env[inputs[0]].value, list):
            return None
        values = [self.whole(n, "an operand") for n in inputs if n]
        if op == "Gather":
            return [Tensor(None, [values[0][k] for k in values[1]])]
        if op in ("Unsqueeze", "Squeeze", "Cast", "Identity"):
            return [Tensor(None, values[0])]
        if op == "Concat":
            return [Tensor(None, [n for v in values for n in v])]
        if op == "Slice":
            return [Tensor(None, values[0][slice(values[1][0], values[2][0], values[4][0] if len(values) > 4 else 1)])]
        if op in ("Mul", "Add", "Sub") and len(values) == 2:
            count = max(len(v) for v in values)
            x, y = ((v * count)[:count] for v in values)
            return [Tensor(None, [m * n if op == "Mul" else m + n if op == "Add" else m - n for m, n in zip(x, y)])]
        raise Unknown(f"{op} of extents")

    def tensors(self, op: str, a: dict[str, Any], names: list[str], outputs: list[str]) -> Any:  # noqa: C901
        x = lambda k=0: self.node(names[k], "weight")
        given = lambda k: len(names) > k and bool(names[k])
        if op in SAME:
            if len([n for n in outputs if n]) > 1:
                raise Unknown(f"the second output of {op}")
            return x()
        if op == "Reshape":
            return self.reshaped(x(), self.whole(names[1], "a shape"), bool(a.get("allowzero", 0)))
        if op in BINARY:
            left, right = x(0), x(1)
            if op == "Pow":
                power = self.exponent(names[1])
                if power is not None:
                    return self.apply(lambda ctx, n, c: e.power(ctx, n, c, power), left, twice=power in (2, 3) or left.kind[0] in "iu")
                if left.kind != right.kind:
                    raise Unknown(f"Pow of {left.kind} and {right.kind}")
            if left.kind != right.kind:
                raise Unknown(f"operands of {left.kind} and {right.kind}")
            return self.do(BINARY[op], left, right)
        if op in UNARY:
            return self.do(UNARY[op], x())
        if op in FORMULAS:
            text, binds = FORMULAS[op]
            text = re.sub(r"\{(\w+)=([\d.]+)\}", lambda m: str(self.np.float32(a.get(m[1], float(m[2])))), text)
            return self.apply(e.form(text, binds), x(), twice=text.count("{0}") > 1)
        if op in ("Max", "Min", "Sum", "Mean"):
            found = x(0)
            for k in range(1, len(names)):
                found = self.do({"Max": "max", "Min": "min"}.get(op, "add"), found, x(k))
            return self.do("div", found, self.number(len(names), found.kind)) if op == "Mean" else found
        if op == "Mod":
            if a.get("fmod", 0):
                return self.do("irem" if x().kind[0] in "iu" else "rem", x(0), x(1))
            return self.apply(e.call("mod"), x(0), x(1))
        if op == "IsInf":
            return self.apply(e.truth("abs({0}) == inf"), x(), kind="bool")
        if op == "Gelu":
            if a.get("approximate", b"none") == b"tanh":
                return self.apply(e.form("0.5 * {0} * (1 + tanh(0.7978845608028654 * ({0} + 0.044715 * {0} * {0} * {0})))", e.PRODUCT), x(), twice=True)
            return self.do("gelu", x())
        if op == "PRelu":
            return self.apply(e.form("select({0} < 0, {1} * {0}, {0})"), x(0), x(1), twice=True)
        if op == "Clip":
            found = x()
            low, high = (x(1) if given(1) else None, x(2) if given(2) else None) if self.opset >= 11 else \
                (self.number(a["min"], found.kind) if "min" in a else None, self.number(a["max"], found.kind) if "max" in a else None)
            found = self.do("max", found, low) if low is not None else found
            return self.do("min", found, high) if high is not None else found
        if op in ("Cast", "CastLike"):
            kind = self.kind(a["to"]) if op == "Cast" else x(1).kind
            return x() if kind == x().kind else self.apply(e.cast, x(), kind=kind)
        if op == "Where":
            return self.apply(e.select, x(0), x(1), x(2), kind=x(1).kind)
        if op in ("MatMul", "Gemm", "Einsum"):
            return self.product(op, a, [x(k) for k in range(len(names)) if given(k)])
        if op == "Softmax" or op == "LogSoftmax":
            return self.softmax(op, x(), a.get("axis", -1 if self.opset >= 13 else 1))
        if op in ("LayerNormalization", "RMSNormalization", "InstanceNormalization", "BatchNormalization"):
            return self.normalised(op, a, names, outputs)
        if op in REDUCE or op in ("ReduceMean", "ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"):
            return self.reduced(op, a, names)
        if op in ("ArgMax", "ArgMin"):
            if a.get("select_last_index", 0):
                raise Unknown(f"{op} that gives the last of several")
            return self.reduce(op.lower(), x(), [self.axis(a.get("axis", 0), len(x().shape))], bool(a.get("keepdims", 1)), "i64")
        if op == "CumSum":
            if a.get("exclusive", 0):
                raise Unknown("CumSum without the element itself")
            return Running("sum", x(), self.whole(names[1], "an axis")[0] % len(x().shape), bool(a.get("reverse", 0)))
        if op in ("Conv", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"):
            return self.windows(op, a, names, outputs)
        return self.moved(op, a, names, outputs)

    def exponent(self, name: str) -> int | None:
        value = self.env[name].value
        if value is None or isinstance(value, list) or self.np.asarray(value).size != 1:
            return None
        number = float(self.np.asarray(value).reshape(()))
        return int(number) if number.is_integer() and 1 <= number <= 16 else None

    def axes(self, a: dict[str, Any], names: list[str], k: int, rank: int) -> list[int]:
        said = self.whole(names[k], "axes") if len(names) > k and names[k] else [int(n) for n in a.get("axes", [])]
        return [self.axis(int(n), rank) for n in said]

    def reduced(self, op: str, a: dict[str, Any], names: list[str]) -> Node:
        x = self.node(names[0])
        axes, keep = self.axes(a, names, 1, len(x.shape)), bool(a.get("keepdims", 1))
        if not axes:
            if a.get("noop_with_empty_axes", 0):
                return x
            axes = list(range(len(x.shape)))
        if op in REDUCE:
            return self.reduce(REDUCE[op], x, axes, keep)
        if op == "ReduceMean":
            return self.mean(x, axes, keep)
        if op in ("ReduceSumSquare", "ReduceL2"):
            total = self.reduce("sum", self.do("square", x), axes, keep)
            return total if op == "ReduceSumSquare" else self.do("sqrt", total)
        if op == "ReduceL1":
            return self.reduce("sum", self.do("abs", x), axes, keep)
        if op == "ReduceLogSum":
            return self.do("log", self.reduce("sum", x, axes, keep))
        largest = self.reduce("max", x, axes, True)
        total = self.reduce("sum", self.do("exp", self.do("sub", x, largest)), axes, True)
        found = self.do("add", self.do("log", total), largest)
        return found if keep else reshape(found, [n for k, n in enumerate(x.shape) if k not in axes])

    @staticmethod
    def axis(said: int, rank: int) -> int:
        if not -rank <= said < rank:
            raise Unknown(f"axis {said} of {rank}")
        return said % rank

    def softmax(self, op: str, x: Node, axis: int) -> Node:
        axis = self.axis(axis, len(x.shape))
        if self.opset < 13 and axis != len(x.shape) - 1:
            raise Unknown(f"{op} over several axes at once, as opset {self.opset} has it")
        moved = self.do("sub", x, self.reduce("max", x, [axis], True))
        if op == "LogSoftmax":
            return self.do("sub", moved, self.do("log", self.reduce("sum", self.do("exp", moved), [axis], True)))
        weights = self.do("exp", moved)
        return self.do("div", weights, self.reduce("sum", weights, [axis], True))

    def normalised(self, op: str, a: dict[str, Any], names: list[str], outputs: list[str]) -> Node:
        x, epsilon = self.node(names[0]), float(self.np.float32(a.get("epsilon", 1e-5)))
        if len([n for n in outputs if n]) > 1 or a.get("training_mode", 0):
            raise Unknown(f"{op} with statistics as outputs, as in training")
        rank = len(x.shape)
        scale, bias = (self.node(names[k], w) if len(names) > k and names[k] else None for k, w in ((1, "scale"), (2, "bias")))
        along = lambda t: broadcast(t, (1, *t.shape, *([1] * (rank - 2))), [1])
        if op == "BatchNormalization":
            mean, variance = along(self.node(names[3], "mean")), along(self.node(names[4], "variance"))
            centred = self.do("sub", x, mean)
        else:
            axes = list(range(2, rank)) if op == "InstanceNormalization" else list(range(a.get("axis", -1) % rank, rank))
            centred = x if op == "RMSNormalization" else self.do("sub", x, self.mean(x, axes, True))
            variance = self.mean(self.do("square", centred), axes, True)
        found = self.do("div", centred, self.do("sqrt", self.do("add", variance, self.number(epsilon, x.kind))))
        if op in ("InstanceNormalization", "BatchNormalization"):
            scale, bias = (along(t) if t is not None else None for t in (scale, bias))
        found = self.do("mul", found, scale) if scale is not None else found
        return self.do("add", found, bias) if bias is not None else found

    def product(self, op: str, a: dict[str, Any], x: list[Node]) -> Node:
        if op == "Gemm":
            labels = [["k", "i"] if a.get("transA", 0) else ["i", "k"], ["j", "k"] if a.get("transB", 0) else ["k", "j"]]
            found: Node = Contract(x[:2], labels, ["i", "j"], x[0].kind)
            alpha, beta = a.get("alpha", 1.0), a.get("beta", 1.0)
            found = self.do("mul", self.number(alpha, found.kind), found) if alpha != 1 else found
            if len(x) == 3 and beta != 0:
                found = self.do("add", found, self.do("mul", self.number(beta, found.kind), x[2]) if beta != 1 else x[2])
            return found
        if op == "MatMul":
            left, right = (len(t.shape) for t in x)
            batch = [f"b{k}" for k in range(max(left, right) - 2, 0, -1)]
            one = [*batch[max(0, len(batch) - left + 2):], "i", "k"] if left > 1 else ["k"]
            two = [*batch[max(0, len(batch) - right + 2):], "k", "j"] if right > 1 else ["k"]
            out = [label for label in (*batch, "i", "j") if label in one or label in two]
            return self.contract(x, [one, two], out)
        equation = a["equation"].decode().replace(" ", "")
        words, arrow, result = equation.partition("->")
        terms = words.split(",")
        if len(terms) != len(x):
            raise Unknown(f"'{equation}' with {len(x)} operands")
        of: list[list[str]] = []
        dots = 0
        for term, t in zip(terms, x):
            before, ellipsis, after = term.partition("...")
            more = len(t.shape) - len(before) - len(after)
            if more < 0 or more > 0 and not ellipsis:
                raise Unknown(f"'{equation}': an operand of {len(t.shape)} axes at '{term}'")
            dots = max(dots, more)
            of.append([*before, *(f"...{k}" for k in range(more, 0, -1)), *after])
        if not arrow:
            flat = [c for own in of for c in own]
            result = "..." + "".join(sorted(c for c in set(flat) if len(c) == 1 and flat.count(c) == 1))
        before, ellipsis, after = result.partition("...")
        return self.contract(x, of, [*before, *((f"...{k}" for k in range(dots, 0, -1)) if ellipsis else ()), *after])

    def contract(self, x: list[Node], labels: list[list[str]], out: list[str]) -> Node:
        extents: dict[str, Any] = {}
        for t, own in zip(x, labels):
            for n, label in zip(t.shape, own):
                if n != 1 and extents.setdefault(label, n) != n:
                    raise Unknown(f"extents {extents[label]} and {n}, which are not the same")
        if len({t.kind for t in x}) > 1:
            raise Unknown("operands of two element types")
        return Contract(x, labels, out, x[0].kind)

    def reshaped(self, x: Node, wanted: list[Any], zeros: bool) -> Node:
        shape = [x.shape[k] if n == 0 and not zeros and isinstance(n, int) else n for k, n in enumerate(wanted)]
        if -1 in [n for n in shape if isinstance(n, int)]:
            from ._text import divided
            total: Any = 1
            for n in x.shape:
                total = total * n
            rest: Any = 1
            for n in shape:
                rest = rest * n if n != -1 else rest
            left = divided(total, rest)
            if left is None:
                raise Unknown(f"a shape whose -1 is {total} / {rest}")
            shape[shape.index(-1)] = left
        if _product(shape) != _product(x.shape):
            raise Unknown(f"a reshape from {[str(n) for n in x.shape]} to {[str(n) for n in shape]}")
        return reshape(x, shape)

    def moved(self, op: str, a: dict[str, Any], names: list[str], outputs: list[str]) -> Any:  # noqa: C901
        """What moves elements, and the rest."""
        if op in ("ConstantOfShape",):
            value = self.onnx.numpy_helper.to_array(a["value"]).reshape(())[()] if "value" in a else self.np.float32(0)
            return broadcast(Number(value, TYPES[str(self.np.asarray(value).dtype)]), self.whole(names[0], "a shape"), [])
        x = self.node(names[0]) if names else None
        if x is None:
            raise Unknown(f"the operator {op}")
        rank = len(x.shape)
        if op == "Transpose":
            return transpose(x, a.get("perm", range(rank - 1, -1, -1)))
        if op == "Flatten":
            axis = a.get("axis", 1)
            product = lambda extents: math.prod(extents) if all(isinstance(n, int) for n in extents) else _product(extents)
            axis = axis + rank if axis < 0 else axis
            return reshape(x, [product(x.shape[:axis]), product(x.shape[axis:])])
        if op == "Squeeze":
            axes = self.axes(a, names, 1, rank) or [k for k, n in enumerate(x.shape) if n == 1]
            return reshape(x, [n for k, n in enumerate(x.shape) if k not in axes])
        if op == "Unsqueeze":
            count = len(self.whole(names[1], "axes") if len(names) > 1 else a["axes"])
            axes, left = self.axes(a, names, 1, rank + count), list(x.shape)
            shape = [1 if k in axes else left.pop(0) for k in range(rank + count)]
            return reshape(x, shape) if x.shape else broadcast(x, shape, [])
        if op == "Expand":
            wanted = Stored(tuple(self.whole(names[1], "a shape")), x.kind, "")
            wide = self.shape(x, wanted)
            return broadcast(x, wide, range(len(wide) - rank, len(wide)))
        if op == "Slice":
            return self.sliced(x, a, names)
        if op == "Concat":
            parts, axis, start, starts = [self.node(n) for n in names], self.axis(a["axis"], rank), 0, []
            for part in parts:
                if part.kind != x.kind or len(part.shape) != rank or any(k != axis and m != n for k, (m, n) in enumerate(zip(part.shape, x.shape))):
                    raise Unknown(f"Concat of {list(x.shape)} and {list(part.shape)} along axis {axis}")
                starts.append([start if k == axis else 0 for k in range(rank)])
                start = start + part.shape[axis]
            return Pieces([start if k == axis else n for k, n in enumerate(x.shape)], parts, starts)
        if op == "Split":
            axis = self.axis(a.get("axis", 0), rank)
            sizes = self.whole(names[1], "sizes") if len(names) > 1 and names[1] else [int(n) for n in a.get("split", [])]
            if not sizes:
                n, count = x.shape[axis], len(outputs)
                if not isinstance(n, int):
                    raise Unknown(f"Split of an axis of {n}")
                each = -(-n // count)
                sizes = [min(each, n - each * k) for k in range(count)]
            parts, start = [], 0
            for size in sizes:
                parts.append(cut(x, [size if k == axis else n for k, n in enumerate(x.shape)], [start if k == axis else 0 for k in range(rank)], [1] * rank))
                start += size
            return parts
        if op == "Tile":
            reps = self.whole(names[1], "repeats")
            return reshape(broadcast(x, [n for pair in zip(reps, x.shape) for n in pair], range(1, 2 * rank, 2)), [m * n for m, n in zip(reps, x.shape)])
        if op == "Pad":
            return self.padded(x, a, names)
        if op == "Gather":
            return self.gathered(x, self.node(names[1]), self.axis(a.get("axis", 0), rank))
        if op == "GatherElements":
            return self.gathered(x, self.node(names[1]), self.axis(a.get("axis", 0), rank), True)
        if op == "Trilu":
            diagonal = self.whole(names[1], "a diagonal")[0] if len(names) > 1 and names[1] else 0
            i, j = Iota(x.shape, rank - 2, "i64"), Iota(x.shape, rank - 1, "i64")
            test = self.do("ge" if a.get("upper", 1) else "le", j, self.apply(e.sign_of("+"), i, Number(diagonal, "i64")) if diagonal else i)
            return self.apply(e.select, test, x, Number(0, x.kind), kind=x.kind)
        raise Unknown(f"the operator {op}")

    def sliced(self, x: Node, a: dict[str, Any], names: list[str]) -> Node:
        part = lambda k, what: self.whole(names[k], what) if len(names) > k and names[k] else None
        starts = part(1, "starts") or [int(n) for n in a.get("starts", [])]
        ends = part(2, "ends") or [int(n) for n in a.get("ends", [])]
        axes = part(3, "axes") or [int(n) for n in a.get("axes", range(len(starts)))]
        steps = part(4, "steps") or [1] * len(starts)
        shape, start, step = list(x.shape), [0] * len(x.shape), [1] * len(x.shape)
        for first, end, axis, by in zip(starts, ends, axes, steps):
            axis = self.axis(axis, len(shape))
            n = shape[axis]
            if isinstance(n, int) and isinstance(first, int) and isinstance(end, int):
                places = range(n)[slice(first, None if by < 0 and end < -n else end, by)]
                shape[axis], start[axis], step[axis] = len(places), places.start if len(places) else 0, by
            elif first == 0 and by == 1 and (isinstance(end, int) and end > 1 << 30 or end == n):
                pass
            elif by == 1 and isinstance(first, int) and first >= 0 and isinstance(end, int) and (end > 1 << 30 or end < 0):
                shape[axis], start[axis] = n - first - (0 if end > 1 << 30 else -end), first
            elif by == 1 and first == 0 and not isinstance(end, int):
                shape[axis] = end
            else:
                raise Unknown(f"a slice [{first}:{end}:{by}] of an axis of {n}")
        return cut(x, shape, start, step)

    def padded(self, x: Node, a: dict[str, Any], names: list[str]) -> Node:
        rank = len(x.shape)
        pads = self.whole(names[1], "pads") if len(names) > 1 else [int(n) for n in a["pads"]]
        axes = self.axes({}, names, 3, rank) if len(names) > 3 and names[3] else list(range(rank))
        value = self.env[names[2]].value if len(names) > 2 and names[2] else a.get("value", 0.0)
        if a.get("mode", b"constant") != b"constant" or value is None or float(self.np.asarray(value).reshape(())) != 0 or any(n < 0 for n in pads):
            raise Unknown("Pad with something else than zeros")
        low, high = [0] * rank, [0] * rank
        for k, axis in enumerate(axes):
            low[axis], high[axis] = pads[k], pads[k + len(axes)]
        return Pieces([n + p + q for n, p, q in zip(x.shape, low, high)], [x], [low])

    def gathered(self, x: Node, index: Node, axis: int, elements: bool = False) -> Node:
        """Rows at positions; ONNX counts those below 0 from the end."""
        n = x.shape[axis]
        shape = index.shape if elements else (*x.shape[:axis], *index.shape, *x.shape[axis + 1:])
        if isinstance(index, Number) or index.view and isinstance(index.operands[0], Number):
            base = index if isinstance(index, Number) else index.operands[0]
            at = int(base.value) + (n if int(base.value) < 0 else 0)  # type: ignore[attr-defined]
            return reshape(cut(x, [1 if k == axis else m for k, m in enumerate(x.shape)], [at if k == axis else 0 for k in range(len(x.shape))], [1] * len(x.shape)), shape)

        def place(ctx: Any, at: list[Pos]) -> list[Any]:
            of_index = at if elements else at[axis:axis + len(index.shape)]
            text = index.code(ctx, of_index).text
            word = f"select({text} < 0, {text} + {n}, {text})"
            return [word if k == axis else at[k] if k < axis or elements else at[k + len(index.shape) - 1] for k in range(len(x.shape))]
        return Lookup(shape, x, [index], place)

    def windows(self, op: str, a: dict[str, Any], names: list[str], outputs: list[str]) -> Node:
        x = self.node(names[0])
        space = len(x.shape) - 2
        if space < 1:
            raise Unknown(f"{op} of {len(x.shape)} axes")
        if op.startswith("Global"):
            axes = list(range(2, space + 2))
            return self.mean(x, axes, True) if "Average" in op else self.reduce("max", x, axes, True)
        window = self.node(names[1], "filter") if op == "Conv" else None
        if window is not None and (len(window.shape) != len(x.shape) or window.shape[1] != x.shape[1]) and a.get("group", 1) == 1:
            raise Unknown(f"Conv of {list(x.shape)} with a filter {list(window.shape)}")
        sizes = [int(n) for n in a["kernel_shape"]] if window is None else list(window.shape[2:])
        strides, dilations = ([int(n) for n in a.get(word, [1] * space)] for word in ("strides", "dilations"))
        pads = [int(n) for n in a.get("pads", [0] * 2 * space)]
        auto = a.get("auto_pad", b"NOTSET").decode()
        if auto not in ("NOTSET", "VALID", "") or a.get("group", 1) != 1 or a.get("ceil_mode", 0) or len([n for n in outputs if n]) > 1:
            raise Unknown(f"{op} with " + ("auto_pad" if auto not in ("NOTSET", "VALID", "") else "groups" if a.get("group", 1) != 1 else "ceil_mode or indices"))
        low, high = pads[:space], pads[space:]
        if any(pads):
            if op != "Conv":
                raise Unknown(f"{op} with padding")
            x = Pieces([*x.shape[:2], *(n + p + q for n, p, q in zip(x.shape[2:], low, high))], [x], [[0, 0, *low]])
        out = []
        for n, k, stride, dilation in zip(x.shape[2:], sizes, strides, dilations):
            if not isinstance(n, int) or not isinstance(k, int):
                raise Unknown(f"{op} of open extents")
            out.append((n - dilation * (k - 1) - 1) // stride + 1)
        plain_order = list(range(space + 2))
        if window is None:
            found: Node = Window(x, None, (plain_order, None, plain_order), strides, dilations, (*x.shape[:2], *out), x.kind, sizes, "max" if op == "MaxPool" else "sum")
            return found if op == "MaxPool" else self.do("div", found, self.number(math.prod(sizes), x.kind))
        found = Window(x, window, (plain_order, plain_order, plain_order), strides, dilations, (x.shape[0], window.shape[0], *out), x.kind)
        if len(names) > 2 and names[2]:
            bias = self.node(names[2], "bias")
            found = self.do("add", found, broadcast(bias, (1, *bias.shape, *([1] * space)), [1]))
        return found


def _product(extents: Any) -> Any:
    total: Any = 1
    for n in extents:
        total = total * n
    return total


def plain(name: str, other: str) -> str:
    """A name of the model as one of the program: what a path leads to, without what exporters add."""
    name = re.sub(r"_output_\d+$", "", name)
    name = re.sub(r"\W+", "_", name.rstrip("/").split("/")[-1].split("::")[-1], flags=re.ASCII).strip("_")
    return other if not name or name.isdigit() else name


def from_onnx(model: Any, name: str = "", results: Iterable[str] | None = None) -> Converted:
    """The kernel of an ONNX model: a path, its bytes, or a ModelProto. Initializers are parameters, whose values are `arrays`; single numbers are written out.

    name: of the kernel, else that of the graph; results: names of the outputs. Raises ConversionError, which names all operators that are unknown.
    """
    try:
        import onnx
    except ImportError:
        raise Error("from_onnx needs the package onnx: pip install onnx") from None
    try:
        if isinstance(model, (bytes, bytearray)):
            model = onnx.load_from_string(bytes(model))
        elif isinstance(model, (str, os.PathLike)):
            model = onnx.load(os.fspath(model))
    except OSError as error:
        raise FileError(f"{error.filename or model}: {error.strerror or error}") from None
    except Exception as error:  # noqa: BLE001  (protobuf's errors are of no common class)
        raise ConversionError(f"onnx: this is no ONNX model: {error}") from None
    if not hasattr(model, "graph"):
        raise ConversionError(f"from_onnx takes a path, bytes or a model, not {type(model).__name__}")
    if not model.graph.output:
        raise ConversionError("onnx: the model gives nothing")
    graph = model.graph
    kernel = Kernel(plain(name or graph.name, "model") if not plain(name or graph.name, "model")[0].isdigit() else "model", "onnx")
    if model.functions:
        kernel.refused.add(f"functions of its own ({', '.join(f.name for f in list(model.functions)[:5])}); onnx.inliner writes them out", "the model")
    reader = Reader(onnx, model, kernel)
    reader.unknown = set()
    with bounded("onnx"):
        reader.run(graph)
    wanted = list(results or [])
    if wanted and len(wanted) != len(graph.output):
        raise ConversionError(f"results has {len(wanted)} names, and the model gives {len(graph.output)}")
    found: list[tuple[str, Node]] = []
    for k, each in enumerate(graph.output):
        try:
            if each.name not in reader.env:
                raise Unknown("nothing gives it")
            found.append((wanted[k] if wanted else plain(each.name, f"y{k + 1}"), reader.node(each.name)))
        except Unknown as error:
            kernel.refused.add(str(error), f"output {each.name}")
    names: dict[str, int] = {}
    for k, (each, node) in enumerate(found):  # two outputs of one name after it was made plain
        names[each] = names.get(each, 0) + 1
        if names[each] > 1:
            found[k] = (f"{each}_{names[each]}", node)
    with bounded("onnx"):
        return kernel.write(found, f"onnx: {graph.name or name or 'a model'}, opset {reader.opset}")
