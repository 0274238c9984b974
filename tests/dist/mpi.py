#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tdsl-run-mpi on 2 to 4 processes has the bits of tdsl-run on one rank; a failed command writes nothing and ends.

usage: mpi.py TDSL-RUN TDSL-RUN-MPI MPIRUN"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = """
kernel mp2(B: f64[o, v, x] shard(o), eo: f64[o], ev: f64[v]) -> (E: f64) {
    T[i,a,j,b] = B[i,a,P] * B[j,b,P];
    E = sum[i,j,a,b](T[i,a,j,b] * (2*T[i,a,j,b] - T[i,b,j,a]) / (eo[i] + eo[j] - ev[a] - ev[b]));
}
kernel gemm(A: f64[m, k] shard(r(m), c(k)), B: f64[k, n] shard(r(k), c(n)), C: inout f64[m, n] shard(r(m), c(n))) { C[i,j] += A[i,p] * B[p,j]; }
kernel j(E: f64[n, n, x] shard(x), D: f64[n, n] shard(1)) -> (J: f64[n, n], s: f64[x] shard(x)) { s[P] = sum[k,l](E[k,l,P] * D[k,l]); J[i,j] = E[i,j,P] * s[P]; }
"""
CALLS = [
    ("mp2", ["-D", "o=7", "-D", "v=9", "-D", "x=5", "B=random:1", "eo=random:2", "ev=random:3"], ["E"], [(3, []), (7, [])]),
    ("gemm", ["-D", "m=13", "-D", "n=11", "-D", "k=17", "A=random:1", "B=random:2", "C=random:3"], ["C"], [(4, ["--mesh", "r:2,c:2"])]),
    ("j", ["-D", "n=100", "-D", "x=6", "E=random:1", "D=random:2"], ["J", "s"], [(2, []), (4, [])]),
]


def launch(mpirun, ranks):
    """The beginning of a command on that many ranks, more than there are cores."""
    version = subprocess.run([mpirun, "--version"], env=environment(), capture_output=True, text=True).stdout
    more = ["--oversubscribe"] if re.search("Open ?(MPI|RTE)", version) else []
    return [mpirun, *more, "-n", str(ranks)]


def environment():
    return {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def main():
    run, over, mpirun = sys.argv[1:4]
    env = environment()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "mpi.tdsl").write_text(PROGRAM)
        for kernel, values, results, meshes in CALLS:
            def outputs(name):
                return [word for r in results for word in ("-o", f"{r}={folder / name}.{r}.npy")]
            common = [folder / "mpi.tdsl", f"--kernel={kernel}", "-w", *values]
            subprocess.run([run, *common, *outputs("one")], check=True)
            for n, mesh in meshes:
                done = subprocess.run([*launch(mpirun, n), over, *common, *mesh, *outputs("many")], env=env, timeout=100)
                assert done.returncode == 0, (kernel, n)
                for r in results:
                    one, many = (folder / f"one.{r}.npy").read_bytes(), (folder / f"many.{r}.npy").read_bytes()
                    assert one == many, f"{kernel} on {n}: {r} has other bits"
        bad = [*launch(mpirun, 2), over, folder / "mpi.tdsl", "--kernel=mp2", "--mesh", "o:3", *CALLS[0][1], "-o", f"E={folder / 'none.npy'}"]
        done = subprocess.run(bad, env=env, timeout=60, capture_output=True, text=True)
        assert done.returncode != 0 and "ranks" in done.stderr and not (folder / "none.npy").exists(), done
    print("as on one rank")


if __name__ == "__main__":
    main()
