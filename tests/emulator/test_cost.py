# SPDX-License-Identifier: Apache-2.0
"""The cost model gives the published figures, the trace says what was called."""

import json
import unittest

from support import filled, run_body, tile
from test_kernels import run_example
from nki_emulator.cost import _Line, copy_cost, cost_report, cost_text, instruction_cycles
from nki_emulator.machine import machine_named, machine_names


def cycles(body, specs="", op=None, target="trn2"):
    """Cycles of the last call of an operation in a body."""
    result, _ = run_body(body, specs, target=target)
    record = [r for r in result.records if r["op"] == op][-1 if op != "memset" else -2]
    return instruction_cycles(record, machine_named(target)), record


def matmul(dtype, k, m, n):
    return (filled("x", (k, m), dtype) + filled("y", (k, n), dtype) +
            tile("p", (m, n), space="psum") +
            "nisa.nc_matmul(dst=p[...], stationary=x[...], moving=y[...])\n")


class Cycles(unittest.TestCase):
    def test_matmul_is_its_columns_four_times_in_float32_and_what_each_takes_beside(self):
        self.assertEqual(cycles(matmul("bfloat16", 128, 128, 512), op="nc_matmul")[0], 512 + 48)
        self.assertEqual(cycles(matmul("float16", 8, 32, 16), op="nc_matmul")[0], 64 + 48)
        self.assertEqual(cycles(matmul("float32", 128, 128, 512), op="nc_matmul")[0], 4 * 512 + 304)
        self.assertEqual(cycles(matmul("float32", 1, 1, 1), op="nc_matmul")[0], 4 * 64 + 304)

    def test_transpose_on_both_engines(self):
        body = filled("x", (100, 70)) + tile("p", (70, 100), space="psum")
        self.assertEqual(cycles(body + "nisa.nc_transpose(dst=p[...], data=x[...])\n",
                                op="nc_transpose")[0], 2 * 100 + 304)
        self.assertEqual(cycles(body + "nisa.nc_transpose(dst=p[...], data=x[...])\n",
                                op="nc_transpose", target="trn1")[0], 4 * 100 + 304)
        body = filled("x", (32, 20)) + tile("p", (20, 32))
        self.assertEqual(cycles(body + "nisa.nc_transpose(dst=p[...], data=x[...], "
                                "engine=nisa.engine.vector)\n", op="nc_transpose")[0], 128)

    def test_tensor_tensor_is_half_price_out_of_psum_and_in_bfloat16(self):
        add = "nisa.tensor_tensor(dst=t[...], data1=t[...], data2=u[...], op=nl.{})\n"
        both = filled("t", (8, 200)) + filled("u", (8, 200))
        self.assertEqual(cycles(both + add.format("add"), op="tensor_tensor")[0], 464)
        psum = filled("t", (8, 200)) + filled("u", (8, 200), space="psum")
        self.assertEqual(cycles(psum + add.format("add"), op="tensor_tensor")[0], 264)
        half = filled("t", (8, 200), "bfloat16") + filled("u", (8, 200), "bfloat16")
        self.assertEqual(cycles(half + add.format("add"), op="tensor_tensor")[0], 264)
        self.assertEqual(cycles(half + add.format("maximum"), op="tensor_tensor")[0], 464)

    def test_the_other_instructions_follow_the_table(self):
        t = filled("t", (8, 200)) + filled("u", (8, 200)) + filled("c", (8, 1))
        rows = [
            ("tensor_scalar(dst=t[...], data=t[...], op0=nl.add, operand0=1.0)", 264),
            ("scalar_tensor_tensor(dst=t[...], data=t[...], op0=nl.add, operand0=1.0, "
             "op1=nl.add, operand1=u[...])", 464),
            ("tensor_copy(dst=t[0:8, 0:10], src=u[0:8, 0:10])", 128),
            ("reciprocal(dst=t[...], data=u[...])", 1664),
            ("tensor_reduce(dst=c[...], op=nl.add, data=t[...], axis=1)", 264),
            ("activation(dst=t[...], op=nl.exp, data=u[...])", 264),
            ("activation_reduce(dst=t[...], op=nl.exp, data=u[...], reduce_op=nl.add, "
             "reduce_res=c[...])", 328),
            ("tensor_tensor_scan(dst=t[...], data0=t[...], data1=u[...], initial=0.0, "
             "op0=nl.multiply, op1=nl.add)", 464),
            ("iota(dst=t[...], pattern=[[1, 200]])", 350),
        ]
        for text, want in rows:
            with self.subTest(call=text):
                name = text.partition("(")[0]
                self.assertEqual(cycles(f"{t}nisa.{text}\n", op=name)[0], want)

    def test_memset_of_bfloat16_zero_is_half_price(self):
        body = tile("t", (8, 400), "bfloat16") + "nisa.memset(dst=t[...], value={})\n"
        self.assertEqual(cycles(body.format("0.0"), op="memset")[0], 264)
        self.assertEqual(cycles(body.format("1.0"), op="memset")[0], 464)

    def test_a_reciprocal_takes_what_was_measured_on_trn1(self):
        body = filled("t", (8, 200)) + "nisa.reciprocal(dst=t[...], data=t[...])\n"
        self.assertEqual(cycles(body, op="reciprocal", target="trn1")[0], 530 + 64)

    def test_functions_without_a_table_leave_the_one_that_is_there(self):
        body = filled("t", (8, 200)) + "".join(
            f"nisa.activation(dst=t[...], op=nl.{name}, data=t[...])\n" for name in ("exp", "square", "relu", "copy", "exp"))
        self.assertEqual(run_body(body)[0].cost["activation_table_switches"], 1)


class Copies(unittest.TestCase):
    def copy(self, text, specs="x:float32:64x512", tiles=""):
        result, _ = run_body(tiles + f"nisa.dma_copy({text})\n", specs)
        return copy_cost(result.records[0])

    def test_a_descriptor_is_a_run_contiguous_on_both_sides(self):
        t = tile("t", (64, 512))
        self.assertEqual(self.copy("dst=t[...], src=x[0:64, 0:512]", tiles=t),
                         (131072, 131072, 64, 131072, 0))

    def test_short_descriptors_are_charged_512_bytes(self):
        t = tile("t", (64, 512))
        self.assertEqual(self.copy("dst=t[0:64, 0:16], src=x[0:64, 0:16]", tiles=t),
                         (4096, 64 * 512, 64, 4096, 0))
        self.assertEqual(self.copy("dst=t[0:64, 0:8], src=x[0:64, 0:16:2]", tiles=t)[1:3],
                         (512 * 512, 512))

    def test_a_column_of_four_byte_elements_is_the_worst_copy(self):
        result, _ = run_body(tile("t", (64, 1)) + "nisa.dma_copy(dst=t[...], "
                             "src=x[0:64, 3:4])\n", "x:float32:64x512")
        self.assertEqual(copy_cost(result.records[0]), (256, 64 * 512, 64, 256, 0))


class Directions(unittest.TestCase):
    """On trn1 loads and stores take 265 GB/s each, and 300 together."""

    def test_each_has_a_bandwidth_and_both_a_larger_one(self):
        size, load = 128 * 2048 * 4, "nisa.dma_copy(dst=t[...], src=x[0:128, 0:2048])\n"
        store = "nisa.dma_copy(dst=y[0:128, 0:2048], src=t[...])\n"
        tiles = tile("t", (128, 2048)) + "y = nl.ndarray(shape=(128, 2048), dtype=nl.float32, buffer=nl.private_hbm)\n"
        for text, us in ((load, size / 265e3), (load + load, 2 * size / 265e3), (load + store, 2 * size / 300e3)):
            result, _ = run_body(tiles + text, "x:float32:128x2048", target="trn1")
            own = [r for r in result.records if r["operands"]["dst"]["shape"] == [128, 2048]]
            self.assertAlmostEqual(cost_report(own, machine_named("trn1"))["dma"]["us"], us)


class Reports(unittest.TestCase):
    def test_the_bound_is_the_busiest_and_the_prediction_not_below_it(self):
        for target in machine_names():
            cost = run_example("matmul_remainder", target=target)[0].cost
            busy = [e["us"] for e in cost["engines"].values()] + [cost["dma"]["us"]]
            self.assertEqual(cost["bound_us"], max(busy))
            self.assertGreaterEqual(cost["predicted_us"], cost["bound_us"])
            self.assertLessEqual(cost["predicted_us"], sum(busy) + 60)

    def test_a_dependent_chain_is_predicted_as_a_sum(self):
        body = filled("t", (8, 200)) + "".join(
            f"nisa.activation(dst=t[...], op=nl.relu, data=t[...])\n"
            f"nisa.tensor_scalar(dst=t[...], data=t[...], op0=nl.add, operand0={i}.0)\n"
            for i in range(20))
        cost = run_body(body)[0].cost
        engines = cost["engines"]
        total = engines["scalar"]["us"] + engines["vector"]["us"]
        self.assertGreaterEqual(cost["predicted_us"], total)

    def test_independent_engines_overlap(self):
        body = filled("t", (8, 4000)) + filled("u", (8, 4000)) + "".join(
            "nisa.activation(dst=t[...], op=nl.relu, data=t[...])\n"
            "nisa.tensor_scalar(dst=u[...], data=u[...], op0=nl.add, operand0=1.0)\n"
            for i in range(20))
        cost = run_body(body)[0].cost
        total = cost["engines"]["scalar"]["us"] + cost["engines"]["vector"]["us"]
        self.assertLess(cost["predicted_us"], 0.7 * total)

    def test_reuse_of_psum_banks_waits(self):
        def chain(banks):
            body = filled("x", (128, 128)) + filled("y", (128, 512)) + tile("s", (128, 512))
            for i in range(12):
                body += tile(f"p{i}", (128, 512 * banks), space="psum") + (
                    f"nisa.nc_matmul(dst=p{i}[0:128, 0:512], stationary=x[...], "
                    f"moving=y[...])\nnisa.tensor_scalar(dst=s[...], data=p{i}[0:128, 0:512], "
                    f"op0=nl.add, operand0=1.0)\n")
            return run_body(body)[0].cost["predicted_us"]
        self.assertLess(chain(1), chain(8))

    def test_loads_and_stores_share_the_bandwidth(self):
        line = _Line()
        self.assertEqual(line.take(0.0, 10.0), (0.0, 10.0))
        self.assertEqual(line.take(20.0, 5.0), (20.0, 25.0))
        self.assertEqual(line.take(5.0, 12.0), (10.0, 27.0))     # 10 before 20, the rest after 25
        self.assertEqual((line.starts, line.ends), ([0.0], [27.0]))
        self.assertEqual(line.take(40.0, 1.0), (40.0, 41.0))
        self.assertEqual(line.take(30.0, 2.0), (30.0, 32.0))
        self.assertEqual((line.starts, line.ends), ([0.0, 30.0, 40.0], [27.0, 32.0, 41.0]))

    def test_prologue_busy_time_and_epilogue_of_the_tensor_engine(self):
        cost = run_example("matmul_remainder")[0].cost
        start, end = cost["tensor_prologue_us"], cost["tensor_epilogue_us"]
        self.assertGreaterEqual(start, 1.3)
        self.assertGreaterEqual(end, 1.3)
        self.assertAlmostEqual(cost["tensor_busy_between"] * (cost["predicted_us"] - start - end),
                               cost["engines"]["tensor"]["us"])

    def test_the_roofline_uses_bytes_and_multiply_adds(self):
        cost = run_example("matmul_remainder")[0].cost
        roof = cost["roofline"]
        self.assertEqual(cost["flops"], 2 * 200 * 300 * 700)
        self.assertEqual(cost["hbm_bytes"], 2 * (200 * 300 + 200 * 700) + 4 * 300 * 700)
        self.assertAlmostEqual(roof["intensity_flop_per_byte"],
                               cost["flops"] / cost["hbm_bytes"])
        self.assertAlmostEqual(roof["attainable_tflops"],
                               roof["intensity_flop_per_byte"] * 0.368)

    def test_the_report_is_json_and_prints(self):
        result = run_example("attention")[0]
        report = json.loads(json.dumps(result.report()))
        self.assertEqual(report["cost"]["engines"]["tensor"]["instructions"], 5)
        text = cost_text(result.cost, result.memory)
        for word in ("tensor", "dma:", "roofline:", "bound", "banks"):
            self.assertIn(word, text)

    def test_memory_peaks_are_live_ranges(self):
        memory = run_example("contract_twice")[0].memory
        self.assertEqual(memory["psum_banks_peak"], 1)
        self.assertEqual(memory["sbuf_bytes_peak"], 4 * (2 * 100 + 2 * 150 + 2 * 96))


class Trace(unittest.TestCase):
    def test_a_record_has_op_line_operands_and_constants(self):
        result, _ = run_body(tile("s", (8, 16), "bfloat16") +
                             "nisa.memset(dst=s[0:8, 4:8],\n            value=2.0, "
                             "engine=nisa.engine.gpsimd)\n")
        record = result.records[0]
        self.assertEqual((record["op"], record["engine"], record["line"]),
                         ("memset", "gpsimd", 9))
        operand = record["operands"]["dst"]
        self.assertEqual((operand["space"], operand["dtype"], operand["tensor_shape"],
                          operand["index"], operand["shape"], operand["strides"],
                          operand["offset"]),
                         ("sbuf", "bfloat16", [8, 16], [[0, 8, 1], [4, 8, 1]], [8, 4], [16, 1],
                          4))
        self.assertEqual(record["constants"], {"value": 2.0, "engine": "nisa.engine.gpsimd"})

    def test_normal_form_names_tensors_by_first_use(self):
        result = run_example("contract_twice")[0]
        normal = result.normal_form()
        self.assertEqual(len(normal), len(result.records))
        op, operands, constants = normal[0]
        self.assertEqual((op, constants), ("dma_copy", ()))
        self.assertEqual([o[1] for o in operands], ["tile0", "a"])
        self.assertEqual(normal[-1][1][0][1], "result0")


if __name__ == "__main__":
    unittest.main()
