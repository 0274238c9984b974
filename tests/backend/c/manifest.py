#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""manifest.py --tdslc PATH --tree TOP: --emit=manifest follows docs/manifest.schema.json, names the functions that the header declares, and says how large a
workspace is where that is a number."""
import argparse
import json
import pathlib
import re
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE / "../../support"))
import json_schema  # noqa: E402
import steps  # noqa: E402
from steps import expect  # noqa: E402

SOURCE = """dim o ~ 10;
kernel conv(x: f64[n + k - 1], w: f64[k], alpha: f64) -> (y: f64[n], e: f64) { y[i] = alpha * x[i + d] * w[d]; e = sum[i](y[i]); }
kernel exp(A: c64[2, 3], b: bool[3], t: inout i32) -> (R: c64[3, 2]) { R[j,i] = A[i,j]; t += sum[j](i32(b[j])); }
"""


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--tdslc", type=pathlib.Path, required=True)
    p.add_argument("--tree", type=pathlib.Path, required=True)
    a = p.parse_args()
    schema = json.loads((a.tree / "docs/manifest.schema.json").read_text(encoding="utf-8"))
    expect("a document that is wrong", sorted(json_schema.complaints(schema, {"version": 2, "tool": 3, "source": "", "header": "", "more": 1})),
           ["$.tool: 3 is no string", "$.version: 2 is none of [1]", "$: 'more' is not in the schema", "$: no 'kernels'"])
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "k.tdsl").write_text(SOURCE, encoding="utf-8")
        tdslc = a.tdslc.resolve()
        steps.run("tdslc", [tdslc, "k.tdsl", "-w", "--prefix=p_", "-o", "k.c"], cwd=folder)
        made = json.loads(steps.run("tdslc", [tdslc, "k.tdsl", "-w", "--prefix=p_", "--emit=manifest", "--header=k.h"], cwd=folder))
        header = pathlib.Path(folder, "k.h").read_text(encoding="utf-8")
        said = json.loads(steps.run("tdslc", [tdslc, (a.tree / "examples/mp2/mp2.tdsl").resolve(), "-w", "--emit=manifest"], cwd=folder))
        expect("the schema, of an example", list(json_schema.complaints(schema, said)), [])
    expect("the schema", list(json_schema.complaints(schema, made)), [])
    expect("the header", made["header"], "k.h")
    expect("functions", all(re.search(rf"tdsl_status {k['symbol']}\(", header) for k in made["kernels"]), True)
    conv, exp = made["kernels"]
    expect("names", [(k["name"], k["symbol"]) for k in made["kernels"]], [("conv", "p_conv"), ("exp", "p_exp")])
    expect("dims in the order of the call", ([d["name"] for d in conv["dims"]], exp["dims"]), (["n", "k"], []))
    expect("arguments", [(x["name"], x["role"], x["dtype"], x["shape"]) for x in conv["arguments"]],
           [("x", "in", "f64", ["n + k - 1"]), ("w", "in", "f64", ["k"]), ("alpha", "scalar", "f64", []), ("y", "out", "f64", ["n"]), ("e", "out", "f64", [])])
    expect("others", [(x["role"], x["dtype"], x["shape"]) for x in exp["arguments"]],
           [("in", "c64", ["2", "3"]), ("in", "bool", ["3"]), ("inout", "i32", []), ("out", "c64", ["3", "2"])])
    size = int(re.search(r"P_EXP_WORKSPACE_BYTES \(\(size_t\)(\d+)\)", header).group(1))
    expect("workspaces", (conv["workspace_bytes"], exp["workspace_bytes"]), (None, size))


main()
