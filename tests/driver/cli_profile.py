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


MORE = {
    "attention": "kernel attention(Q: f32[s,d], K: f32[t,d], V: f32[t,d]) -> (O: f32[s,d]) {\n    S[q,k] = Q[q,e] * K[k,e];\n    M[q] = max[k](S[q,k]);\n"
                 "    W[q,k] = exp(S[q,k] - M[q]);\n    Z[q] = sum[k](W[q,k]);\n    O[q,e] = W[q,k] * V[k,e] / Z[q];\n}\n",
    "steps": "kernel steps(a: f64[t,n], b: f64[t,n], h0: f64[n]) -> (h: f64[t,n]) {\n    h[-1,n] = h0[n];\n    h[t,n] = a[t,n] * h[t - 1,n] + b[t,n];\n}\n",
    "rows": "kernel rows(W: f32[v,d], tok: i64[t]) -> (R: f32[t,d], s: f32) {\n    R[i,j] = W[tok[i],j];\n    s = sum[i,j](R[i,j] * R[i,j]);\n}\n",
    "complex": "kernel complex(A: c128[s,d], B: c128[d,t]) -> (C: c128[s,t]) {\n    C[i,j] = conj(A[i,k]) * B[k,j];\n}\n",
    "update": "kernel update(A: f32[s,d], X: inout f32[s,s]) {\n    X[i,j] = X[i,j] + A[i,k] * A[j,k];\n}\n",
    "factor": "kernel factor(A: f64[n,n]) -> (L: f64[n,n]) {\n    L[i,j] = cholesky[i,j](A[i,j]);\n}\n",
}
EXTENTS = {"s": 37, "t": 50, "d": 33, "n": 24, "v": 11}


def values(head):
    """Words for the arguments of a kernel; positions are 0."""
    named = re.findall(r"(\w+): (?:inout )?(\w+)\[([^]]*)\]", head.split("->")[0])
    dims = {d for _, _, shape in named for d in shape.split(",")}
    return [f"-D{d}={EXTENTS[d]}" for d in sorted(dims)] + [f"{name}={'zeros' if dtype == 'i64' else 'fill'}" for name, dtype, _ in named]


@test
def counters_change_no_result_and_add_up():
    for name, text in MORE.items():
        write("k.tdsl", text)
        args = ["k.tdsl", "-w", "--checksum", *values(text.split("{")[0])]
        if name == "factor":
            write_identity("A.npy", EXTENTS["n"])
            args[-1] = "A=A.npy"
        plain = tdsl_run(*args, "--threads=1").text
        said = tdsl_run(*args, "--profile", "--repeat=3", "--cflags=-O2 -Wall -Wextra -Werror").text
        assert said.startswith(plain), (name, said)
        rows = re.findall(r"^ *([\d.]+) % +([\d.]+) (us|ms)  (#*) +(\d*)", said[len(plain):], re.M)
        total = re.search(r"profile of a call on one thread, +([\d.]+) (us|ms); the counters take about (\d+) % of it\n", said)
        scale = {"us": 1, "ms": 1000}
        equal(len(rows), said[len(plain):].count("\n") - 1)
        whole = float(total[1]) * scale[total[2]]
        assert 0.98 * whole - 0.01 <= sum(float(r[1]) * scale[r[2]] for r in rows) <= 1.1 * whole + 0.01, said
        assert all(abs(len(r[3]) - 0.3 * min(100, float(r[0]))) <= 0.6 for r in rows), said
        for line in [k for k, l in enumerate(text.split("\n"), 1) if " = " in l and "[-1" not in l]:
            assert f"line {line}: " in said, (name, line, said)


@test
def a_profile_is_json_too():
    write("p.tdsl", PRODUCT)
    done = tdsl_run("p.tdsl", *SIZES, "--profile=p.json", "--repeat=2", "--time")
    assert done.text.split("\n")[0] == tdsl_run("p.tdsl", *SIZES).text.strip() and "time median=" in done.text and "profile" not in done.text, done.text
    said = json.loads(read("p.json"))
    equal((said["version"], said["kernel"], said["calls"]), (1, "product", 2))
    (row,) = said["statements"]
    equal((row["line"], row["text"]), (2, "C[i,j] = sum[l](A[i,l] * B[l,j])"))
    assert row["runs"] > 0 and 0 < row["seconds"] <= 1.1 * said["seconds"], said
    said = tdsl_run("-e", "ij,jk,kl->il", "--shape=9x8", "--shape=8x7", "--shape=7x6", "fill", "fill", "fill", "--profile").text
    assert "line 1: " in said, said
    tdslc("p.tdsl", "--dump=loop", "-o", "p.dump")
    assert "C[i,j] = " in tdsl_run("p.dump", *SIZES, "--profile").text


@test
def a_profile_of_what_has_none_is_refused():
    write("p.tdsl", PRODUCT)
    for words in (["--target=interp"], ["--threads=2"], ["--ranks=2"]):
        assert "--profile" in tdsl_run("p.tdsl", *words, *SIZES, "--profile", status=2).messages
    tdsl_run("p.tdsl", *SIZES, "--profile", "--threads=1")


def write_identity(path, n):
    """A symmetric matrix with no zero on its diagonal, as .npy, without NumPy."""
    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({n}, {n}), }}"
    head = head + " " * (117 - len(head)) + "\n"
    data = b"".join(struct.pack("<d", n if i == j else 1 / (1 + i + j)) for i in range(n) for j in range(n))
    pathlib.Path(path).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)


if __name__ == "__main__":
    sys.exit(main())
