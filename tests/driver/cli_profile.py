#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tdsl-run --profile: where the time of a kernel goes. No time is asserted. See cli.py."""
import sys

import support
from support import *

PRODUCT = "kernel product(A: f32[m,k], B: f32[k,n]) -> (C: f32[m,n]) {\n    C[i,j] = A[i,l] * B[l,j];\n}\n"
SIZES = ["-Dm=130", "-Dk=40", "-Dn=20", "A=fill", "B=fill", "--checksum"]


@test
def the_emulator_says_how_busy_engines_are():
    write("p.tdsl", PRODUCT)
    plain = tdsl_run("p.tdsl", "--target=emulator", *SIZES).text
    said = tdsl_run("p.tdsl", "--target=emulator", *SIZES, "--profile").text
    assert said.startswith(plain), said
    for word in ("target trn2, ", "tensor ", "vector ", "dma ", "roofline: ", "sbuf: "):
        assert f"\n{word}" in said, said


@test
def the_emulator_writes_the_schedule_of_engines():
    write("p.tdsl", PRODUCT)
    done = tdsl_run("p.tdsl", "--target=trn1", *SIZES, "--profile=t.json")
    equal(done.text, tdsl_run("p.tdsl", "--target=trn1", *SIZES).text)
    trace = json.loads(read("t.json"))
    instructions = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert any(e["name"].startswith("nc_matmul to ") and e["args"]["source"] == "line 2: C[i,j] = A[i,l] * B[l,j];" for e in instructions), instructions
    equal(sum(e["args"].get("multiply_adds", 0) for e in instructions), 130 * 40 * 20)
    tdsl_run("p.tdsl", "--target=trn1", *SIZES, "--profile=none/t.json", status=3)


@test
def a_profile_of_what_has_none_is_refused():
    write("p.tdsl", PRODUCT)
    assert "--profile" in tdsl_run("p.tdsl", "--target=interp", *SIZES, "--profile", status=2).messages


if __name__ == "__main__":
    sys.exit(main())
