# SPDX-License-Identifier: Apache-2.0
"""Every operation computes what NumPy computes, exactly on small integers."""

import math
import pathlib
import re
import unittest

import numpy as np
from support import TYPES, arrays_of, cast, emulate, kernel_text, run_body, tile
from nki_emulator.alu import ACTIVATIONS, ARITHMETIC, RANGES
from nki_emulator.optable import OPERATIONS

F = np.float32


def load(name, shape, dtype="float32", source=None):
    full = ", ".join(f"0:{n}" for n in shape)
    return tile(f"{name}s", shape, dtype) + \
        f"nisa.dma_copy(dst={name}s[{full}], src={source or name}[{full}])\n"


def store(name, shape, dtype="float32"):
    full = ", ".join(f"0:{n}" for n in shape)
    return (f"out = nl.ndarray(shape={tuple(shape)}, dtype=nl.{dtype}, buffer=nl.shared_hbm)\n"
            f"nisa.dma_copy(dst=out[{full}], src={name}[{full}])\nreturn out\n")


class Operations(unittest.TestCase):
    def check(self, body, specs, expect, shape, dtype="float32", target="trn2", seed=7,
              exact=True):
        """Run a body that leaves its result in tile `r`; expect(plain arrays) is the answer."""
        result, plain = run_body(body, specs, store("r", shape, dtype), target)
        wanted = np.asarray(expect(*plain)).reshape(shape)
        held = result.outputs[0]
        if dtype == "bfloat16":
            held = (held.astype(np.uint32) << 16).view(np.float32)
        if exact:
            np.testing.assert_array_equal(held, wanted)
        else:
            np.testing.assert_allclose(held, wanted, rtol=3e-7, atol=1e-7)
        return result

    def test_nc_matmul_multiplies_and_accumulates_in_one_group(self):
        body = (load("x", (128, 96)) + load("y", (128, 200)) +
                tile("p", (96, 200), space="psum") +
                "for i in range(3):\n    nisa.nc_matmul(dst=p[0:96, 0:200], "
                "stationary=xs[0:128, 0:96], moving=ys[0:128, 0:200])\n" +
                tile("r", (96, 200)) + "nisa.tensor_copy(dst=r[...], src=p[...])\n")
        self.check(body, "x:float32:128x96 y:float32:128x200", lambda x, y: 3 * (x.T @ y),
                   (96, 200))

    def test_nc_matmul_takes_every_float_type(self):
        for dtype in ("bfloat16", "float16", "float32", "tfloat32"):
            body = (load("x", (40, 7), dtype) + load("y", (40, 5), dtype) +
                    tile("p", (7, 5), space="psum") + "nisa.nc_matmul(dst=p[...], "
                    "stationary=xs[...], moving=ys[...])\n" + tile("r", (7, 5)) +
                    "nisa.tensor_copy(dst=r[...], src=p[...])\n")
            self.check(body, f"x:{dtype}:40x7 y:{dtype}:40x5", lambda x, y: x.T @ y, (7, 5))

    def test_nc_matmul_spelled_accumulation_overwrites_then_adds(self):
        body = (load("x", (8, 8)) + tile("p", (8, 8), space="psum") +
                "".join(f"nisa.nc_matmul(dst=p[...], stationary=xs[...], moving=xs[...], "
                        f"accumulate={flag})\n" for flag in (False, True, False, True)) +
                tile("r", (8, 8)) + "nisa.tensor_copy(dst=r[...], src=p[...])\n")
        self.check(body, "x:float32:8x8", lambda x: 2 * (x.T @ x), (8, 8))

    def test_nc_matmul_keeps_two_groups_in_two_halves_of_a_tile(self):
        body = (load("x", (8, 8)) + tile("p", (8, 16), space="psum") +
                "for i in range(2):\n    nisa.nc_matmul(dst=p[0:8, 0:8], stationary=xs[...], "
                "moving=xs[...])\nfor i in range(3):\n    nisa.nc_matmul(dst=p[0:8, 8:16], "
                "stationary=xs[...], moving=xs[...])\n" + tile("r", (8, 16)) +
                "nisa.tensor_copy(dst=r[...], src=p[...])\n")
        self.check(body, "x:float32:8x8",
                   lambda x: np.concatenate([2 * (x.T @ x), 3 * (x.T @ x)], 1), (8, 16))

    def test_nc_matmul_row_tiles_take_operands_from_their_rows(self):
        body = (load("x", (64, 8)) + load("y", (64, 8)) + tile("p", (8, 8), space="psum") +
                "nisa.nc_matmul(dst=p[...], stationary=xs[32:64, 0:8], moving=ys[32:64, 0:8], "
                "tile_position=(32, 0), tile_size=(32, 128))\n" + tile("r", (8, 8)) +
                "nisa.tensor_copy(dst=r[...], src=p[...])\n")
        self.check(body, "x:float32:64x8 y:float32:64x8", lambda x, y: x[32:].T @ y[32:],
                   (8, 8))

    def test_nc_transpose_on_both_engines(self):
        body = (load("x", (100, 70), "bfloat16") + tile("p", (70, 100), "bfloat16", "psum") +
                "nisa.nc_transpose(dst=p[...], data=xs[...])\n" + tile("r", (70, 100)) +
                "nisa.tensor_copy(dst=r[...], src=p[...])\n")
        self.check(body, "x:bfloat16:100x70", lambda x: x.T, (70, 100))
        body = (load("x", (32, 20), "int32") + tile("r", (20, 32), "int32") +
                "nisa.nc_transpose(dst=r[...], data=xs[...], engine=nisa.engine.vector)\n")
        self.check(body, "x:int32:32x20", lambda x: x.T, (20, 32), "int32")

    def test_tensor_tensor_does_every_operator(self):
        table = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply,
                 "maximum": np.maximum, "minimum": np.minimum, "equal": np.equal,
                 "not_equal": np.not_equal, "greater": np.greater, "less": np.less,
                 "greater_equal": np.greater_equal, "less_equal": np.less_equal,
                 "logical_and": np.logical_and, "logical_or": np.logical_or,
                 "logical_xor": np.logical_xor}
        for name, function in table.items():
            body = (load("x", (8, 9)) + load("y", (8, 9)) + tile("r", (8, 9)) +
                    f"nisa.tensor_tensor(dst=r[...], data1=xs[...], data2=ys[...], "
                    f"op=nl.{name})\n")
            self.check(body, "x:float32:8x9 y:float32:8x9", lambda x, y: function(x, y), (8, 9))

    def test_tensor_tensor_on_integers(self):
        table = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or,
                 "bitwise_xor": np.bitwise_xor, "left_shift": np.left_shift,
                 "right_shift": np.right_shift, "add": np.add}
        for name, function in table.items():
            body = (load("x", (8, 9), "uint16") + load("y", (8, 9), "uint16") +
                    tile("r", (8, 9), "uint16") + f"nisa.tensor_tensor(dst=r[...], "
                    f"data1=xs[...], data2=ys[...], op=nl.{name})\n")
            self.check(body, "x:uint16:8x9 y:uint16:8x9", lambda x, y: function(x, y), (8, 9),
                       "uint16")

    def test_tensor_tensor_adds_int32_exactly_on_gpsimd(self):
        body = (tile("x", (1, 1), "int32") + "nisa.memset(dst=x[...], value=16777217)\n" +
                tile("r", (1, 1), "int32") + "nisa.tensor_tensor(dst=r[...], data1=x[...], "
                "data2=x[...], op=nl.add)\n")
        result = self.check(body, "", lambda: 33554434, (1, 1), "int32")
        self.assertEqual(result.records[1]["engine"], "gpsimd")

    def test_tensor_tensor_power_runs_on_gpsimd(self):
        body = (load("x", (8, 9)) + tile("e", (8, 9)) + "nisa.memset(dst=e[...], value=2.0)\n" +
                tile("r", (8, 9)) + "nisa.tensor_tensor(dst=r[...], data1=xs[...], "
                "data2=e[...], op=nl.power)\n")
        result = self.check(body, "x:float32:8x9", lambda x: x * x, (8, 9))
        self.assertEqual(result.records[2]["engine"], "gpsimd")

    def test_tensor_scalar_with_scalars_columns_and_reversal(self):
        body = (load("x", (8, 9)) + load("c", (8, 1)) + tile("r", (8, 9)) +
                "nisa.tensor_scalar(dst=r[...], data=xs[...], op0=nl.subtract, operand0=2.0, "
                "reverse0=True, op1=nl.multiply, operand1=cs[0:8, 0:1])\n")
        self.check(body, "x:float32:8x9 c:float32:8x1", lambda x, c: (2 - x) * c, (8, 9))
        body = (load("x", (8, 9), "int32") + tile("r", (8, 9), "int32") +
                "nisa.tensor_scalar(dst=r[...], data=xs[...], op0=nl.bitwise_and, operand0=1, "
                "op1=nl.left_shift, operand1=3)\n")
        self.check(body, "x:int32:8x9", lambda x: (x & 1) << 3, (8, 9), "int32")

    def test_tensor_scalar_on_the_scalar_engine(self):
        body = (load("x", (8, 9)) + tile("r", (8, 9)) + "nisa.tensor_scalar(dst=r[...], "
                "data=xs[...], op0=nl.multiply, operand0=3.0, op1=nl.add, operand1=-1.0, "
                "engine=nisa.engine.scalar)\n")
        self.check(body, "x:float32:8x9", lambda x: 3 * x - 1, (8, 9))

    def test_scalar_tensor_tensor(self):
        body = (load("x", (8, 9)) + load("y", (8, 9)) + load("c", (8, 1)) + tile("r", (8, 9)) +
                "nisa.scalar_tensor_tensor(dst=r[...], data=xs[...], op0=nl.multiply, "
                "operand0=cs[...], op1=nl.subtract, operand1=ys[...], reverse1=True)\n")
        self.check(body, "x:float32:8x9 y:float32:8x9 c:float32:8x1",
                   lambda x, y, c: y - x * c, (8, 9))

    def test_activation_scales_adds_the_bias_and_sums(self):
        body = (load("x", (8, 9)) + load("c", (8, 1)) + tile("u", (8, 9)) + tile("r", (8, 1)) +
                "nisa.activation(dst=u[...], op=nl.square, data=xs[...], bias=cs[...], "
                "scale=2.0, reduce_op=nl.add, reduce_res=r[...], "
                "reduce_cmd=nisa.reduce_cmd.reset_reduce)\n"
                "nisa.activation(dst=u[...], op=nl.copy, data=xs[...], scale=cs[...], "
                "reduce_op=nl.add, reduce_res=r[...], reduce_cmd=nisa.reduce_cmd.reduce)\n")
        self.check(body, "x:float32:8x9 c:float32:8x1",
                   lambda x, c: (((2 * x + c) ** 2).sum(1) + (x * c).sum(1)), (8, 1))

    def test_activation_reduce(self):
        body = (load("x", (8, 9)) + tile("u", (8, 9)) + tile("r", (8, 1)) +
                "nisa.activation_reduce(dst=u[...], op=nl.relu, data=xs[...], "
                "reduce_op=nl.add, reduce_res=r[...], bias=1.0)\n")
        self.check(body, "x:float32:8x9", lambda x: np.maximum(x + 1, 0).sum(1), (8, 1))

    def test_every_activation_function_is_the_one_its_name_says(self):
        erf = np.vectorize(math.erf)

        def sig(x):
            return 1 / (1 + np.exp(-x))

        table = {
            "copy": lambda x: x, "square": lambda x: x * x, "sigmoid": sig,
            "relu": lambda x: x * (x > 0), "gelu": lambda x: x / 2 * (1 + erf(x / 2 ** 0.5)),
            "gelu_apprx_sigmoid": lambda x: x * sig(1.702 * x),
            "gelu_apprx_tanh": lambda x: x / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * (
                x + 0.044715 * x ** 3))),
            "silu": lambda x: x * sig(x), "tanh": np.tanh,
            "softplus": lambda x: np.log(1 + np.exp(x)),
            "mish": lambda x: x * np.tanh(np.log(1 + np.exp(x))), "erf": erf, "exp": np.exp,
            "sign": np.sign, "abs": np.abs, "log": np.log, "sin": np.sin,
            "arctan": np.arctan, "sqrt": np.sqrt, "rsqrt": lambda x: x ** -0.5,
            "reciprocal": lambda x: 1 / x}
        # Derivatives are compared with central differences of what they derive.
        for name, of in (("gelu_dx", "gelu"), ("silu_dx", "silu"), ("erf_dx", "erf"),
                         ("gelu_apprx_sigmoid_dx", "gelu_apprx_sigmoid")):
            table[name] = lambda x, f=table[of]: (f(x + 1e-5) - f(x - 1e-5)) / 2e-5
        self.assertEqual(sorted(table), sorted(ACTIVATIONS))
        for name, function in table.items():
            positive = name in ("log", "sqrt", "rsqrt", "reciprocal", "arctan")
            low, high = (0.25, 1.5) if positive else (-3.0, 3.0)
            x = np.linspace(low, high, 64, dtype=F).reshape(8, 8)
            got = ACTIVATIONS[name](x.astype(np.float64))
            np.testing.assert_allclose(got, function(x.astype(np.float64)), rtol=1e-6,
                                       atol=1e-6, err_msg=name)
        self.assertTrue(set(RANGES) <= set(table))

    def test_reciprocal(self):
        body = (tile("x", (8, 9)) + "nisa.memset(dst=x[...], value=4.0)\n" +
                tile("r", (8, 9)) + "nisa.reciprocal(dst=r[...], data=x[...])\n")
        self.check(body, "", lambda: np.full((8, 9), 0.25, F), (8, 9))

    def test_tensor_copy_casts_and_every_engine_copies(self):
        for engine in ("vector", "scalar", "gpsimd", "unknown"):
            body = (load("x", (8, 9), "bfloat16") + tile("r", (8, 9)) +
                    f"nisa.tensor_copy(dst=r[...], src=xs[...], engine=nisa.engine.{engine})\n")
            self.check(body, "x:bfloat16:8x9", lambda x: x, (8, 9))
        body = (tile("x", (1, 4)) + "".join(
            f"nisa.memset(dst=x[0:1, {i}:{i + 1}], value={v})\n"
            for i, v in enumerate((0.5, 1.5, -2.5, 300.0))) + tile("r", (1, 4), "uint8") +
            "nisa.tensor_copy(dst=r[...], src=x[...])\n")
        self.check(body, "", lambda: [0, 2, 0, 255], (1, 4), "uint8")

    def test_tensor_copy_of_int32_is_exact(self):
        body = (tile("x", (1, 1), "int32") + "nisa.memset(dst=x[...], value=2147483647)\n" +
                tile("r", (1, 1), "int32") + "nisa.tensor_copy(dst=r[...], src=x[...])\n")
        self.check(body, "", lambda: 2147483647, (1, 1), "int32")

    def test_tensor_copy_predicated_writes_only_where_asked(self):
        for reverse in (False, True):
            body = (load("x", (8, 9)) + load("m", (8, 9), "uint8") + tile("r", (8, 9)) +
                    "nisa.memset(dst=r[...], value=50.0)\nnisa.tensor_copy_predicated("
                    f"dst=r[...], src=xs[...], predicate=ms[...], reverse_pred={reverse})\n")
            self.check(body, "x:float32:8x9 m:uint8:8x9",
                       lambda x, m: np.where((m != 0) != reverse, x, 50), (8, 9))

    def test_select_reduce_selects(self):
        body = (load("x", (8, 9)) + load("m", (8, 9), "uint8") + load("c", (8, 1)) +
                tile("r", (8, 9)) + "nisa.select_reduce(dst=r[...], predicate=ms[...], "
                "on_true=xs[...], on_false=cs[...])\n")
        self.check(body, "x:float32:8x9 m:uint8:8x9 c:float32:8x1",
                   lambda x, m, c: np.where(m != 0, x, c), (8, 9))

    def test_tensor_reduce_every_reducer_and_several_axes(self):
        for name, function in (("add", np.sum), ("maximum", np.max), ("minimum", np.min),
                               ("multiply", np.prod)):
            body = (load("x", (8, 9)) + tile("r", (8, 1)) + f"nisa.tensor_reduce(dst=r[...], "
                    f"op=nl.{name}, data=xs[...], axis=(1,))\n")
            self.check(body, "x:float32:8x9", lambda x: function(x, axis=1), (8, 1))
        body = (load("x", (8, 3, 4, 5)) + tile("r", (8, 3)) + "nisa.tensor_reduce(dst=r[...], "
                "op=nl.add, data=xs[...], axis=[2, 3], negate=True)\n")
        self.check(body, "x:float32:8x3x4x5", lambda x: -x.sum((2, 3)), (8, 3))

    def test_tensor_reduce_accumulates_in_single_precision_in_order(self):
        body = (tile("x", (1, 3)) + "nisa.memset(dst=x[0:1, 0:1], value=16777216.0)\n"
                "nisa.memset(dst=x[0:1, 1:3], value=1.0)\n" + tile("r", (1, 1)) +
                "nisa.tensor_reduce(dst=r[...], op=nl.add, data=x[...], axis=1)\n")
        self.check(body, "", lambda: 16777216.0, (1, 1))

    def test_tensor_partition_reduce(self):
        body = (load("x", (100, 9)) + tile("r", (1, 9)) + "nisa.tensor_partition_reduce("
                "dst=r[...], op=nl.maximum, data=xs[...])\n")
        self.check(body, "x:float32:100x9", lambda x: x.max(0), (1, 9))

    def test_tensor_tensor_scan_is_a_recurrence(self):
        body = (load("x", (8, 9)) + load("y", (8, 9)) + load("c", (8, 1)) + tile("r", (8, 9)) +
                "nisa.tensor_tensor_scan(dst=r[...], data0=xs[...], data1=ys[...], "
                "initial=cs[...], op0=nl.multiply, op1=nl.add)\n")

        def expect(x, y, c):
            state, out = c[:, 0], []
            for j in range(9):
                state = x[:, j] * state + y[:, j]
                out.append(state)
            return np.stack(out, 1)
        self.check(body, "x:float32:8x9 y:float32:8x9 c:float32:8x1", expect, (8, 9))

    def test_memset_fills_part_of_a_tile(self):
        body = (tile("r", (8, 9), "bfloat16") + "nisa.memset(dst=r[...], value=1.0)\n"
                "nisa.memset(dst=r[0:8, 3:9:2], value=-2.5, engine=nisa.engine.gpsimd)\n")

        def expect():
            r = np.ones((8, 9), F)
            r[:, 3:9:2] = -2.5
            return r
        self.check(body, "", expect, (8, 9), "bfloat16")

    def test_iota_counts_by_pattern_and_partition(self):
        body = (tile("r", (8, 6), "int32") + "nisa.iota(dst=r[...], pattern=[[10, 2], [1, 3]], "
                "offset=5, channel_multiplier=100)\n")
        self.check(body, "", lambda: 5 + 100 * np.arange(8)[:, None] +
                   np.array([0, 1, 2, 10, 11, 12]), (8, 6), "int32")

    def test_affine_select_keeps_a_triangle(self):
        body = (load("x", (8, 8)) + tile("r", (8, 8)) + "nisa.affine_select(dst=r[...], "
                "pattern=[[-1, 8]], channel_multiplier=1, on_true_tile=xs[...], "
                "on_false_value=-9.0, cmp_op=nl.greater_equal)\n")
        self.check(body, "x:float32:8x8", lambda x: np.where(np.tri(8) > 0, x, -9), (8, 8))

    def test_tiles_are_filled_with_infinities(self):
        for word in ("float('inf')", "np.inf"):
            for dtype in ("float32", "bfloat16"):
                body = (tile("r", (8, 8), dtype) + f"nisa.memset(dst=r[...], value=-{word})\n"
                        f"nisa.affine_select(dst=r[...], pattern=[[-1, 8]], channel_multiplier=1, on_true_tile=r[...], "
                        f"on_false_value={word}, cmp_op=nl.greater_equal)\n")
                text = "import numpy as np\n" + kernel_text(body, "", store("r", (8, 8), dtype))
                held = emulate(text, [], types={}, target="trn2", path="k.py").outputs[0]
                held = (held.astype(np.uint32) << 16).view(np.float32) if dtype == "bfloat16" else held
                with self.subTest(word=word, dtype=dtype):
                    np.testing.assert_array_equal(held, np.where(np.tri(8) > 0, -np.inf, np.inf))

    def test_nc_stream_shuffle_broadcasts_and_keeps(self):
        mask = [0] * 31 + [255]
        body = (load("x", (64, 9)) + tile("r", (64, 9)) + "nisa.memset(dst=r[...], value=7.0)\n"
                f"nisa.nc_stream_shuffle(dst=r[...], src=xs[...], shuffle_mask={mask})\n")

        def expect(x):
            r = np.repeat(x[::32], 32, 0)
            r[31::32] = 7
            return r
        self.check(body, "x:float32:64x9", expect, (64, 9))

    def test_dma_copy_casts_and_pairs_row_major(self):
        body = (tile("r", (6, 20), "bfloat16") +
                "nisa.dma_copy(dst=r[0:6, 0:20], src=x[1, 0:6, 0:4, 0:5])\n")
        self.check(body, "x:float32:2x6x4x5", lambda x: x[1].reshape(6, 20), (6, 20),
                   "bfloat16")

    def test_dma_copy_broadcasts_a_row_by_a_pattern(self):
        body = (tile("r", (100, 9)) + "nisa.dma_copy(dst=r[...], "
                "src=x.ap(pattern=[[0, 100], [1, 9]], offset=9))\n")
        self.check(body, "x:float32:2x9", lambda x: np.repeat(x[1:2], 100, 0), (100, 9))

    def test_dma_copy_moves_any_partition(self):
        body = (load("x", (50, 9)) + tile("r", (3, 9)) +
                "nisa.dma_copy(dst=r[0:3, 0:9], src=xs[45:48, 0:9])\n")
        self.check(body, "x:float32:50x9", lambda x: x[45:48], (3, 9))

    def test_dma_copy_through_scratch(self):
        body = (load("x", (4, 8)) + tile("h", (32,), space="private_hbm") +
                "g = h.reshape(shape=(4, 8))\nnisa.dma_copy(dst=g, src=xs[...])\n" +
                tile("r", (8, 4)) + "nisa.dma_copy(dst=r[...], "
                "src=h.ap(pattern=[[4, 8], [1, 4]], offset=0))\n")
        self.check(body, "x:float32:4x8", lambda x: x.reshape(8, 4), (8, 4))

    def test_dma_transpose(self):
        body = (tile("r", (9, 8)) + "nisa.dma_transpose(dst=r[...], src=x[0:8, 0:9])\n")
        self.check(body, "x:float32:8x9", lambda x: x.T, (9, 8))
        body = (tile("r", (9, 3, 8)) + "nisa.dma_transpose(dst=r[...], src=x[0:8, 0:3, 0:9], "
                "axes=(2, 1, 0))\n")
        self.check(body, "x:float32:8x3x9", lambda x: x.transpose(2, 1, 0), (9, 3, 8))

    def test_a_strided_slice_of_a_parameter(self):
        body = (tile("r", (4, 3)) + "nisa.dma_copy(dst=r[0:4, 0:3], src=x[0:8:2, 1:9:3])\n")
        self.check(body, "x:float32:8x9", lambda x: x[0:8:2, 1:9:3], (4, 3))

    def test_every_operation_of_the_table_is_tested_here(self):
        with open(__file__, encoding="utf-8") as stream:
            text = stream.read()
        self.assertEqual([n for n in OPERATIONS if f"nisa.{n}(" not in text], [])


class Rounding(unittest.TestCase):
    def test_bfloat16_rounds_to_nearest_even_on_the_pattern(self):
        word = np.array([0x3F808000, 0x3F818000, 0x3F808001, 0x3F807FFF, 0x7F7FFFFF, 0xBF808000,
                         0x00008000, 0x00018000], np.uint32)
        want = np.array([0x3F800000, 0x3F820000, 0x3F810000, 0x3F800000, 0x7F800000, 0xBF800000,
                         0x00000000, 0x00020000], np.uint32)
        got = cast(word.view(np.float32), TYPES["bfloat16"]).view(np.uint32)
        np.testing.assert_array_equal(got, want)

    def test_bfloat16_keeps_nan_and_infinity(self):
        got = cast(np.array([np.nan, np.inf, -np.inf], F), TYPES["bfloat16"])
        self.assertTrue(np.isnan(got[0]) and got[1] == np.inf and got[2] == -np.inf)
        tiny = np.array([0x7F800001], np.uint32).view(F)
        self.assertTrue(np.isnan(cast(tiny, TYPES["bfloat16"])[0]))

    def test_bfloat16_agrees_with_exact_rounding_on_random_values(self):
        rng = np.random.default_rng(3)
        x = rng.standard_normal(20000).astype(F) * F(2.0) ** rng.integers(-30, 30, 20000)
        x = x.astype(F)
        mantissa, exponent = np.frexp(x.astype(np.float64))
        exact = np.ldexp(np.rint(mantissa * 256), exponent - 8)     # rint is nearest even
        np.testing.assert_array_equal(cast(x, TYPES["bfloat16"]), exact.astype(F))

    def test_float16_and_integers_round_to_nearest_even(self):
        x = np.array([2049.0, 2051.0, 1e30, -0.5, 1.5, 2.5], F)
        np.testing.assert_array_equal(cast(x, TYPES["float16"]),
                                      [2048, 2052, np.inf, -0.5, 1.5, 2.5])
        np.testing.assert_array_equal(cast(x, TYPES["int8"]), [127, 127, 127, 0, 2, 2])

    def test_what_a_tile_stores_is_rounded_to_its_type(self):
        body = (tile("r", (1, 1), "bfloat16") + "nisa.memset(dst=r[...], value=1.00390625)\n"
                "nisa.tensor_scalar(dst=r[...], data=r[...], op0=nl.add, "
                "operand0=0.01171875)\n")
        result, _ = run_body(body, "", store("r", (1, 1), "bfloat16"))
        # memset: 1.00390625 -> 1.0 (tie to even); 1.01171875 is a tie to even of 1.0078125
        # and 1.015625: 1.015625
        got = (result.outputs[0].astype(np.uint32) << 16).view(F)
        self.assertEqual(float(got[0, 0]), 1.015625)

    def test_the_words_of_the_compilers_op_table_are_in_the_dialect(self):
        table = pathlib.Path(__file__).parents[2] / "compiler/op/ops.def"
        rows = re.findall(r'^MAP\(\w+, "(\w+)", (\d),[^\n]*?(?:\n [^\n]*?)?"(\w*)"\)$', table.read_text(), re.M)
        self.assertEqual(len(rows), table.read_text().count("\nMAP("))
        for name, arity, word in rows:
            known = ACTIVATIONS if arity == "1" else ARITHMETIC
            self.assertTrue(word == "" or word in known, f"{name}: nl.{word}")

    def test_arrays_of_support_are_the_values_they_say(self):
        arrays, _, plain = arrays_of("x:bfloat16:2x3")
        np.testing.assert_array_equal((arrays[0].astype(np.uint32) << 16).view(F), plain[0])


if __name__ == "__main__":
    unittest.main()
