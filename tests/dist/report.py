#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What --report says of ranks, against numbers that are counted by hand; refused meshes; tdsl-run on ranks and on one has the same bits.

usage: report.py TDSLC TDSL-RUN"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from quick import QUICK  # noqa: E402

PROGRAM = """
kernel mp2(B: f64[o, v, x] shard(o), eo: f64[o], ev: f64[v]) -> (E: f64) {
    T[i,a,j,b] = B[i,a,P] * B[j,b,P];
    E = sum[i,j,a,b](T[i,a,j,b] * (2*T[i,a,j,b] - T[i,b,j,a]) / (eo[i] + eo[j] - ev[a] - ev[b]));
}
kernel aomo(E: f64[n, n, x] shard(x), Co: f64[n, o] shard(n), Cv: f64[n, v]) -> (B: f64[o, v, x] shard(x)) {
    B = einsum("mi,na,mnP->iaP", Co, Cv, E);
}
kernel gemm(A: f64[m, k] shard(r(m), c(k)), B: f64[k, n] shard(r(k), c(n))) -> (C: f64[m, n] shard(r(m), c(n))) {
    C[i,j] = A[i,p] * B[p,j];
}
kernel gemm3(A: f64[m, k] shard(r(m), d(k), c(k)), B: f64[k, n] shard(d(k), r(k), c(n))) -> (C: f64[m, n] shard(r(m), c(n), d(n))) {
    C[i,j] = A[i,p] * B[p,j];
}
kernel add(x: f64[n, m] partial) -> (y: f64[n] shard(n)) { y[i] = sum[j](x[i,j]); }
"""


def ranks(tdslc, path, kernel, mesh, *dims):
    options = [word for d in dims for word in ("-D", d)]
    done = subprocess.run([tdslc, path, f"--kernel={kernel}", "-w", "--mesh", mesh, "--report=json", *options], capture_output=True, text=True, check=True, timeout=100)
    kernels = json.loads(done.stdout)["kernels"]
    assert [k["name"] for k in kernels] == [kernel], "local kernels are no kernels of the program"
    return kernels[0]["ranks"]


def refused(tdslc, run, path, fastest):
    """--rank-memory: to the byte, with the least number of ranks that would do; another grid where the fastest one needs more."""
    plan = [tdslc, path, "--kernel=gemm", "-w", "-D", "m=32768", "-D", "n=32768", "-D", "k=32768", "--report=json"]
    tell = lambda limit, *mesh: subprocess.run([*plan, *(mesh or ["--mesh", "r:8,c:8"]), f"--rank-memory={limit}"], capture_output=True, text=True, timeout=100)
    done = tell("600M" if QUICK else "1K")  # the latter takes two seconds, in which all numbers of ranks are tried
    memory = int(done.stderr.split(" bytes)")[0].split("(")[1])  # the least of all grids
    assert done.returncode == 4 and not done.stdout and memory < fastest and (QUICK or "more ranks do not help" in done.stderr), done
    assert tell(memory).returncode == 0
    other = json.loads(tell(fastest - 1).stdout)["kernels"][0]["ranks"]
    assert memory <= other["memory"] < fastest, other
    done = tell(memory - 1)
    least = int(done.stderr.split("help: ")[1].split()[0])
    assert done.returncode == 4 and f"({memory} bytes)" in done.stderr and not done.stdout, done
    assert tell(memory - 1, f"--ranks={least}").returncode == 0 and tell(memory - 1, f"--ranks={least - 1}").returncode == 4, least
    assert tell("many").returncode == 2 and subprocess.run([*plan, "--rank-memory=1G"], capture_output=True).returncode == 2
    call = [run, path, "--kernel=gemm", "-w", "--ranks=2", "-D", "m=20", "-D", "n=20", "-D", "k=20", "A=fill", "B=fill"]
    assert subprocess.run([*call, "--rank-memory=2M"], stdout=subprocess.DEVNULL).returncode == 0
    assert subprocess.run([*call, "--rank-memory=2K"], capture_output=True).returncode == 4


def slices(tdslc, run, path):
    """A kernel without `shard` whose order has slices: 40 x 25 leaves, of one and of one or two positions, each with the same work."""
    path.write_text("kernel ring(A: f64[40, 40], B: f64[40, 40], C: f64[40, 40], D: f64[40, 40]) -> (t: f64) { t = A[i,j] * B[j,k] * C[k,l] * D[l,i]; }\n")
    done = subprocess.run([tdslc, path, "-w", "--memory-limit=20", "--ranks=3", "--report=json"], capture_output=True, text=True, check=True, timeout=100)
    r = json.loads(done.stdout)["kernels"][0]["ranks"]
    assert r["grid"] == "3 parts of 1000 leaves of slices 40 x 40" and abs(r["imbalance"] - 334 * 3 / 1000) < 1e-4, r
    text = subprocess.run([tdslc, path, "-w", "--memory-limit=20", "--ranks=3", "--report"], capture_output=True, text=True, check=True, timeout=100).stdout
    assert f"3 ranks, 3: {r['grid']}" in text, text
    values = ["A=random:1", "B=random:2", "C=random:3", "D=random:4"]
    made = {subprocess.run([run, path, "-w", "--memory-limit=20", f"--ranks={p}", *values, "-o", f"t={path}.npy"], check=True) and Path(f"{path}.npy").read_bytes() for p in (1, 3, 7)}
    assert len(made) == 1, "other bits on other ranks"


def main():
    tdslc, run = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)  # files without folders: the C of a kernel names them, and ccache knows it again
        path = Path("ranks.tdsl")
        path.write_text(PROGRAM)
        n = 32768
        r = ranks(tdslc, path, "gemm", "r:8,c:8", f"m={n}", f"n={n}", f"k={n}")
        assert r["received"] <= 1.6 * r["bound"] and abs(r["bound"] / (2.0**30 * 1.125) - 1) < 1e-6, r
        assert r["imbalance"] == 1 and r["grids"][0]["seconds"] > r["seconds"], r
        assert r["next_best"][0]["times"] > 1 and "cut" in r["next_best"][0]["cuts"], r
        assert r["memory"] < 9 * (n // 4) ** 2 * 8 // 2, r  # two terms of C, a part of the sum, messages: no place for whole rows and columns
        two = Path("two.tdsl")  # of few numbers in a sum only m and n are cut
        two.write_text("dim m ~ 99999, n ~ 99999, k ~ 9;\n" + PROGRAM)
        r = ranks(tdslc, two, "gemm", "r:8,c:8", f"m={n}", f"n={n}", "k=64")
        block = n // 8 * 64 * 8  # rows of A, columns of B: of each 7 of 8 parts are of others
        assert r["received"] == 2 * block * 7 // 8 and r["grid"].count("8 parts") == 2, r
        r = ranks(tdslc, path, "gemm", "r:61,c:1", f"m={n}", f"n={n}", f"k={n}")  # a prime number of ranks: one has no work
        assert r["grid"] == f"5 parts of {n}, 4 parts of {n}, 3 parts of {n}" and r["imbalance"] < 1.05, r
        refused(tdslc, run, path, r["memory"])
        r = ranks(tdslc, path, "gemm3", "r:4,c:4,d:4", f"m={n}", f"n={n}", f"k={n}")
        block = n // 4 * n // 4 * 8  # of A, of B, and of the sums of C; of each 3 of 4 parts move
        assert r["received"] == 3 * block * 3 // 4 and abs(r["received"] / r["bound"] - 1) < 1e-6, r
        r = ranks(tdslc, path, "aomo", "p:8", "n=64", "o=8", "v=56", "x=256")
        assert r["received"] == r["bound"] == 64 * 8 * 8 * 7 // 8, r  # the coefficients, and nothing else
        r = ranks(tdslc, path, "mp2", "p:4", "o=16", "v=32", "x=64")
        half = 8 * 32 * 64 * 8  # rows of B, and terms of the energy of a few hundred bytes
        assert r["count"] == 4 and half < r["received"] < half + 1000, r
        r = ranks(tdslc, path, "mp2", "p:64", "o=64", "v=1024", "x=4096")  # tiles of pairs
        assert r["received"] <= 1.6 * r["bound"] and r["imbalance"] <= 1.1 and r["memory"] < 5e8, r
        r = ranks(tdslc, path, "add", "p:32768", "n=64", "m=64")  # time grows with the ranks, not with their square
        assert r["count"] == 32768, r
        slices(tdslc, run, Path("net.tdsl"))
        path.write_text(PROGRAM.replace("r(", "_("))  # the name of an axis, which dumps have for one without a name
        assert ranks(tdslc, path, "gemm", "_:2,c:2", "m=8", "n=8", "k=8")["mesh"] == "_:2,c:2"
        path.write_text(PROGRAM)
        assert "refused" in ranks(tdslc, path, "gemm", "q:2"), "no such axis"
        r = ranks(tdslc, path, "gemm", "r:4,c:4,d:4", f"m={n}", f"n={n}", f"k={n}")  # four copies of all arrays: C of each is gathered
        assert r["grid"].count("4 parts") == 3 and r["received"] < 1.3 * r["bound"], r
        small = Path("small.tdsl")  # whose next best cuts cost thousands of times as much
        small.write_text("kernel small(x: f64[n] shard(n)) -> (s: f64) { s = sum[i](x[i]); }\n")
        subprocess.run([tdslc, small, "-w", "-D", "n=10", "-o", "small.c"], check=True)
        bits = set()
        for mesh in ([], ["--ranks=1", "--threads=1"], ["--ranks=1", "--threads=4"], ["--ranks=3", "--threads=9"], ["--mesh", "p:5"]):
            out = Path("E.npy")
            values = ["-D", "o=9", "-D", "v=7", "-D", "x=5", "B=random:1", "eo=random:2", "ev=random:3"]
            subprocess.run([run, path, "--kernel=mp2", "-w", *mesh, *values, "-o", f"E={out}"], check=True)
            bits.add(out.read_bytes()[-8:])
        assert len(bits) == 1, bits
        sizes = ["-D", "m=40", "-D", "n=40", "-D", "k=40", "A=fill", "B=fill"]
        done = subprocess.run([run, path, "--kernel=gemm", "--ranks=2", *sizes, "--time", "--repeat=3"], capture_output=True, text=True, check=True)
        least, moving, computing = (float(done.stdout.split(word)[1].split()[0]) for word in ("min=", "moving=", "computing="))
        assert 0 < computing < least and 0 < moving < least, done
        done = subprocess.run([run, path, "--kernel=gemm", "--mesh", "r:2,q:3", "-D", "m=4", "-D", "n=4", "-D", "k=4", "A=fill", "B=fill"], capture_output=True, text=True)
        assert done.returncode == 1 and "the kernel has no axis 'q'" in done.stderr, done
    print("reports and runs agree")


main()
