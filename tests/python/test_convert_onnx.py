# SPDX-License-Identifier: Apache-2.0
"""Programs made from ONNX models give what onnx's reference evaluator gives: of whole numbers the same, of others within a bound of their roundings."""
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
import warnings

import numpy as np

import tdsl

if importlib.util.find_spec("onnx") is None:
    print("skipped: onnx is not installed")
    sys.exit(77)

import onnx  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

RANDOM = np.random.default_rng(2)


def whole(*shape, dtype=np.float32, low=-5, high=6):
    return RANDOM.integers(low, high, shape).astype(dtype)


def model_of(nodes, inputs, outputs=("y",), constants=None, opset=21, dims=None, name="m"):
    """A model of nodes (operator, operands, results, attributes)."""
    protos = [helper.make_node(op, operands.split(), results.split(), **(more[0] if more else {})) for op, operands, results, *more in nodes]
    shape = lambda k, array: (dims or {}).get(k, array.shape)
    given = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(a.dtype), shape(k, a)) for k, a in inputs.items()]
    graph = helper.make_graph(protos, name, given, [helper.make_value_info(y, onnx.TypeProto()) for y in outputs],
                              [numpy_helper.from_array(np.asarray(a), k) for k, a in (constants or {}).items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def i(*numbers):
    return np.array(numbers, np.int64)


X, Y = whole(3, 4), whole(4, 5)
N, I = {"x": X}, {"x": whole(2, 3, 6, 7)}  # noqa: E741
# (operators, inputs, constants)
EXACT = [
    ([("MatMul", "x w", "y")], {"x": whole(2, 3, 4)}, {"w": Y}), ([("MatMul", "x w", "y")], {"x": whole(4), "w": whole(2, 4, 3)}, {}), ([("MatMul", "x w", "y")], {"x": whole(2, 1, 3, 4), "w": whole(5, 4, 2)}, {}),
    ([("Gemm", "a b c", "y", {"alpha": 2.0, "beta": 3.0, "transA": 1})], {"a": whole(4, 3), "b": Y, "c": whole(5)}, {}), ([("Gemm", "a b", "y", {"transB": 1})], {"a": X, "b": whole(5, 4)}, {}),
    ([("Einsum", "a b", "y", {"equation": "bij,bjk->bki"})], {"a": whole(2, 3, 4), "b": whole(2, 4, 5)}, {}), ([("Einsum", "a b", "y", {"equation": "...ij,...jk"})], {"a": whole(2, 3, 4), "b": whole(4, 5)}, {}),
    ([("Einsum", "a", "y", {"equation": "ii->"})], {"a": whole(3, 3)}, {}), ([("Add", "x b", "t"), ("Relu", "t", "y")], N, {"b": whole(4)}), ([("Sub", "x b", "t"), ("Mul", "t t", "y")], N, {"b": whole(3, 1)}),
    ([("Transpose", "x", "y")], N, {}), ([("Reshape", "x s", "y")], N, {"s": i(2, -1)}), ([("Reshape", "x s", "t"), ("ReduceSum", "t a", "y", {"keepdims": 0})], N, {"s": i(3, 2, 2), "a": i(1)}),
    ([("Flatten", "x", "y", {"axis": 2})], I, {}), ([("Squeeze", "x a", "t"), ("Unsqueeze", "t b", "y")], {"x": whole(3, 1, 4)}, {"a": i(1), "b": i(0, 3)}), ([("Expand", "x s", "y")], {"x": whole(3, 1)}, {"s": i(2, 1, 4)}),
    ([("Slice", "x s e a t", "y")], N, {"s": i(-1, 0), "e": i(-9, 3), "a": i(0, 1), "t": i(-1, 2)}), ([("Concat", "x x w", "y", {"axis": 1})], N, {"w": whole(3, 2)}), ([("Tile", "x r", "y")], N, {"r": i(2, 3)}),
    ([("Split", "x", "u v", {"axis": 1, "num_outputs": 2}), ("Sub", "u v", "y")], N, {}), ([("Pad", "x p", "y")], N, {"p": i(1, 0, 0, 2)}), ([("Gather", "x k", "y", {"axis": 1})], {"x": X, "k": i(3, -1, 0)}, {}),
    ([("Gather", "x k", "y", {"axis": 0})], N, {"k": np.int64(-1)}), ([("GatherElements", "x k", "y", {"axis": 1})], {"x": X, "k": np.array([[0, -1], [2, 2], [1, 3]])}, {}), ([("Trilu", "x k", "y", {"upper": 0})], N, {"k": np.int64(1)}),
    ([("ReduceSum", "x", "y")], N, {}), ([("ReduceMax", "x a", "y", {"keepdims": 0})], N, {"a": i(0)}), ([("ReduceMin", "x a", "y")], N, {"a": i(-1)}), ([("ReduceProd", "x a", "y")], N, {"a": i(0)}), ([("ReduceL1", "x a", "y")], N, {"a": i(0)}),
    ([("ReduceSumSquare", "x a", "y")], N, {"a": i(1)}), ([("ArgMax", "x", "y", {"axis": 1, "keepdims": 0})], N, {}), ([("CumSum", "x a", "y", {"reverse": 1})], N, {"a": np.int64(1)}), ([("Clip", "x l h", "y")], N, {"l": np.float32(-1), "h": np.float32(2)}),
    ([("Greater", "x b", "c"), ("Where", "c x b", "y")], N, {"b": np.float32(1)}), ([("Cast", "x", "t", {"to": TensorProto.INT32}), ("Mod", "t k", "y")], N, {"k": np.int32(3)}), ([("Mod", "x k", "y", {"fmod": 1})], N, {"k": np.float32(3)}),
    ([("Max", "x b c", "y")], N, {"b": whole(4), "c": np.float32(0)}), ([("Sum", "x b x", "y")], N, {"b": whole(4)}), ([("Not", "c", "d"), ("And", "c b", "e"), ("Or", "d e", "y")], {"c": X > 0, "b": X < 3}, {}), ([("Pow", "x p", "y")], N, {"p": np.float32(3)}),
    ([("LeakyRelu", "x", "y", {"alpha": 0.5})], N, {}), ([("PRelu", "x s", "y")], N, {"s": whole(4)}), ([("Identity", "x", "t"), ("Dropout", "t", "u"), ("Neg", "u", "y")], N, {}), ([("Add", "x w", "y")], N, {"w": X}),
    ([("Conv", "x w b", "y", {"pads": [1, 0, 1, 2]})], I, {"w": whole(4, 3, 3, 2), "b": whole(4)}), ([("Conv", "x w", "y", {"strides": [2, 1], "dilations": [1, 2]})], I, {"w": whole(4, 3, 3, 2)}), ([("GlobalMaxPool", "x", "y")], I, {}),
    ([("MaxPool", "x", "y", {"kernel_shape": [2, 3], "strides": [2, 2]})], I, {}), ([("AveragePool", "x", "y", {"kernel_shape": [2, 2], "strides": [2, 1]})], I, {}), ([("Range", "a b c", "r"), ("Mul", "x r", "y")], N, {"a": np.float32(0), "b": np.float32(4), "c": np.float32(1)}),
    ([("Shape", "x", "s"), ("Gather", "s k", "n"), ("Concat", "n m", "t", {"axis": 0}), ("Reshape", "x t", "y")], N, {"k": i(1), "m": i(-1)}), ([("Mean", "x b", "y")], N, {"b": whole(4)}),
]
# As in test_convert_jaxpr.py: numbers of at most 5, at most 60 operations on a path of 3 units each, exp of an operand of at most 5.
BOUND = 60 * 3 * 5 * 2.0**-24
ROUNDED = [
    ([("Softmax", "x", "y", {"axis": 0})], N, {}), ([("LogSoftmax", "x", "y")], N, {}), ([("LayerNormalization", "x g b", "y", {"epsilon": 1e-3})], {"x": whole(2, 3, 4)}, {"g": whole(4), "b": whole(4)}), ([("ReduceMean", "x a", "y")], N, {"a": i(1)}),
    ([("BatchNormalization", "x g b m v", "y")], I, {"g": whole(3), "b": whole(3), "m": whole(3), "v": whole(3, low=1)}), ([("InstanceNormalization", "x g b", "y")], I, {"g": whole(3), "b": whole(3)}), ([("GlobalAveragePool", "x", "y")], I, {}),
    ([("Gelu", "x", "y")], N, {}), ([("Gelu", "x", "y", {"approximate": "tanh"})], N, {}), ([("ReduceLogSumExp", "x a", "y", {"keepdims": 0})], N, {"a": i(1)}), ([("ReduceL2", "x a", "y")], N, {"a": i(0)}), ([("ReduceLogSum", "p a", "y")], {"p": whole(3, 4, low=1)}, {"a": i(0)}),
    *(([("Abs", "x", "a"), ("Add", "a one", "p"), (op, "p" if op in ("Log", "Sqrt", "Reciprocal") else "x", "t"), ("Identity", "t", "y")], N, {"one": np.float32(1)}) for op in
      ("Exp", "Log", "Sqrt", "Sin", "Cos", "Atan", "Tanh", "Erf", "Sigmoid", "Reciprocal", "Softplus", "Softsign", "Elu", "Selu", "Celu", "HardSigmoid", "HardSwish", "Mish", "Floor", "Sign", "Round")),
]


def attention():
    """A block of an encoder: two heads, masks, a residual and a normalisation. Its batch is open."""
    nodes = [("MatMul", "x wq", "q0"), ("MatMul", "x wk", "k0"), ("MatMul", "x wv", "v0"), ("Reshape", "q0 split", "q1"), ("Reshape", "k0 split", "k1"), ("Reshape", "v0 split", "v1"),
             ("Transpose", "q1", "q", {"perm": [0, 2, 1, 3]}), ("Transpose", "k1", "k", {"perm": [0, 2, 3, 1]}), ("Transpose", "v1", "v", {"perm": [0, 2, 1, 3]}), ("MatMul", "q k", "s0"), ("Div", "s0 two", "s"),
             ("Softmax", "s", "p"), ("MatMul", "p v", "o0"), ("Transpose", "o0", "o1", {"perm": [0, 2, 1, 3]}), ("Reshape", "o1 join", "o"), ("MatMul", "o wo", "h"), ("Add", "h x", "r"), ("LayerNormalization", "r g b", "y")]
    constants = {"wq": whole(8, 8) / 8, "wk": whole(8, 8) / 8, "wv": whole(8, 8), "wo": whole(8, 8), "split": i(0, 0, 2, 4), "join": i(0, 0, 8), "two": np.float32(2), "g": whole(8), "b": whole(8)}
    return model_of(nodes, {"x": whole(3, 5, 8)}, constants=constants, dims={"x": ("batch", 5, 8)}, name="encoder")


class Onnx(unittest.TestCase):
    def all_of(self, cases):
        """Of each case: what the program gives, what onnx gives, and the program. All are compiled as one."""
        models = [model_of(nodes, inputs, constants=constants) for nodes, inputs, constants in cases]
        made = [tdsl.from_onnx(model, name=f"f{n}") for n, model in enumerate(models)]
        program = tdsl.compile("\n".join(m.text for m in made))
        for n, (_, inputs, _) in enumerate(cases):
            (want,) = ReferenceEvaluator(models[n]).run(None, inputs)
            got = np.asarray(program[f"f{n}"](*inputs.values(), **made[n].arrays))
            self.assertEqual((got.shape, got.dtype), (np.asarray(want).shape, np.asarray(want).dtype), made[n])
            yield got, want, made[n]

    def test_whole_numbers(self):
        for got, want, made in self.all_of(EXACT):
            np.testing.assert_array_equal(got, want, str(made))

    def test_roundings(self):
        for got, want, made in self.all_of(ROUNDED):
            np.testing.assert_allclose(got, want, rtol=BOUND, atol=BOUND * np.abs(want).max(), err_msg=str(made))

    def test_a_block_of_an_encoder(self):
        model, x = attention(), whole(3, 5, 8)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "encoder.onnx")
            onnx.save(model, path)
            made = tdsl.from_onnx(path)
            made.save(os.path.join(folder, "encoder.tdsl"), os.path.join(folder, "arrays"))
            self.assertEqual(sorted(os.listdir(os.path.join(folder, "arrays"))), [f"{name}.npy" for name in ("b", "g", "wk", "wo", "wq", "wv")])
            done = subprocess.run([sys.executable, "-m", "tdsl.convert", path], capture_output=True, text=True, check=True)
            self.assertEqual(done.stdout, made.text)
        self.assertEqual(made.text, """\
// onnx: encoder, opset 21
kernel encoder(
    x: f32[batch, 5, 8], wq: f32[8, 8], wk: f32[8, 8], wv: f32[8, 8], wo: f32[8, 8], g: f32[8], b: f32[8])
    -> (y: f32[batch, 5, 8]) {
""" + made.text.split("{\n", 1)[1])
        (want,) = ReferenceEvaluator(model).run(None, {"x": x})
        got = made.compile().encoder(x, **made.arrays)
        # sums of 8 products of numbers up to 5 * 5 / 8 before a softmax whose operand is up to 8 * 16 * 16 / 2: its error is that many roundings
        np.testing.assert_allclose(got, want, atol=1024 * 8 * 2.0**-24 * np.abs(want).max())

    @unittest.skipIf(importlib.util.find_spec("torch") is None, "torch is not installed")
    def test_models_that_torch_exports(self):
        """A convolutional network and a layer with heads, with an open batch. Weights are at most 1 and sums have at most 150 terms: roundings of 2**-24 of these, through at most
        12 layers, each of which makes an error at most 10 times as large as it was relative to the results, which are of size 1, cannot reach 1e-4."""
        import io
        import torch

        class Heads(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.q, self.k, self.v, self.o = (torch.nn.Linear(16, 16) for _ in range(4))
                self.norm, self.more = torch.nn.LayerNorm(16), torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 16))

            def forward(self, x):
                b, t, c = x.shape
                q, k, v = (w(x).view(b, t, 4, 4).transpose(1, 2) for w in (self.q, self.k, self.v))
                a = (q @ k.transpose(-1, -2) / 2).softmax(-1)
                x = self.norm(x + self.o((a @ v).transpose(1, 2).reshape(b, t, c)))
                return x + self.more(x)
        torch.manual_seed(1)
        images = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Conv2d(4, 8, 3), torch.nn.SiLU(),
                                     torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 10))
        for model, x in (Heads(), torch.randn(2, 5, 16)), (images, torch.randn(2, 3, 12, 12)):
            file = io.BytesIO()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.onnx.export(model.eval(), (x,), file, dynamo=False, input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "batch"}}, opset_version=17)
            made = tdsl.from_onnx(file.getvalue(), name="f")
            got = made.compile().f(x.numpy(), **made.arrays)
            np.testing.assert_allclose(got, model(x).detach().numpy(), rtol=0, atol=1e-4, err_msg=str(made))

    def test_unknown(self):
        model = model_of([("NonZero", "x", "a"), ("Cast", "a", "b", {"to": TensorProto.FLOAT}), ("TopK", "x k", "v p", {"axis": 0}), ("Pad", "x q", "c", {"mode": "reflect"}), ("Softmax", "x", "y")], N, ("y", "b", "v"),
                         {"k": i(1), "q": i(0, 1, 0, 1)})
        with self.assertRaises(tdsl.ConversionError) as caught:
            tdsl.from_onnx(model)
        self.assertEqual(str(caught.exception), """\
onnx: 3 things have no translation into the language:
  NonZero a: the operator NonZero
  TopK v: the operator TopK
  Pad c: Pad with something else than zeros""")
        self.assertRaisesRegex(tdsl.ConversionError, "this is no ONNX model", tdsl.from_onnx, b"\x01\x02")
        self.assertRaisesRegex(FileNotFoundError, "none.onnx", tdsl.from_onnx, "/none.onnx")
        self.assertRaisesRegex(tdsl.ConversionError, "not int", tdsl.from_onnx, 3)

    def test_models_that_do_not_fit(self):
        """Each is refused, at its node; none is computed that would fill the memory."""
        ones = np.ones((2, 5), np.float32)
        for node, constants, message in (
                (("Transpose", "x", "y", {"perm": [0, 5]}), {}, "Transpose y: operands or attributes that do not fit"), (("MatMul", "x", "y"), {}, "MatMul y: operands"),
                (("Add", "x q", "y"), {}, "its operand q, which nothing gives"), (("Gather", "x k", "y", {"axis": 9}), {"k": i(1)}, "axis 9 of 2"), (("Reshape", "x k", "y"), {"k": i(5, -1)}, "12 / 5"),
                (("Reshape", "x k", "y"), {"k": i(7)}, "from .'3', '4'. to .'7'."), (("Concat", "x k", "y", {"axis": 0}), {"k": ones}, r"Concat of \[3, 4\] and \[2, 5\]"),
                (("Range", "a k b", "y"), {"a": np.int64(0), "k": np.int64(10**12), "b": np.int64(1)}, "the operator Range"), (("Einsum", "x x", "y", {"equation": "ij,jk,kl"}), {}, "with 2 operands"),
                (("Softmax", "x", "y", {"axis": 7}), {}, "axis 7 of 2"), (("Conv", "x x", "y"), {}, "Conv of 2 axes"), (("Add", "x k", "y"), {"k": i(1, 2, 3, 4)}, "operands of f32 and i64"),
                (("MatMul", "x k", "y"), {"k": ones}, "extents 4 and 2")):
            with self.subTest(message):
                self.assertRaisesRegex(tdsl.ConversionError, message, tdsl.from_onnx, model_of([node], N, constants=constants))
        huge = model_of([("ConstantOfShape", "s", "c"), ("ReduceSum", "c", "d", {"keepdims": 0}), ("Add", "x d", "y")], N, constants={"s": i(10**6, 10**6)})
        self.assertIn("[i < 1000000, j < 1000000]", tdsl.from_onnx(huge).text)
        self.assertRaisesRegex(tdsl.ConversionError, "gives nothing", tdsl.from_onnx, b"")
        long = model_of([("Sin", f"t{k}" if k else "x", f"t{k + 1}" if k < 1999 else "y") for k in range(2000)], N)
        self.assertLess(len(tdsl.from_onnx(long).text), 100000)

    def test_without_onnx(self):
        code = "import sys; sys.modules['onnx'] = None\nimport tdsl\ntry: tdsl.from_onnx('m.onnx')\nexcept tdsl.Error as e: print(e)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "from_onnx needs the package onnx: pip install onnx\n")


unittest.main()
