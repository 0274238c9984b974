#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tdsl-run-mpi on 2 to 7 processes has the bits of tdsl-run on one rank; each reads and writes its own blocks of files; a failed command writes nothing and ends.

usage: mpi.py TDSL-RUN TDSL-RUN-MPI MPIRUN"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

PROGRAM = """
kernel mp2(B: f64[o, v, x] shard(o), eo: f64[o], ev: f64[v]) -> (E: f64) {
    T[i,a,j,b] = B[i,a,P] * B[j,b,P];
    E = sum[i,j,a,b](T[i,a,j,b] * (2*T[i,a,j,b] - T[i,b,j,a]) / (eo[i] + eo[j] - ev[a] - ev[b]));
}
kernel gemm(A: f64[m, k] shard(r(m), c(k)), B: f64[k, n] shard(r(k), c(n)), C: inout f64[m, n] shard(r(m), c(n))) { C[i,j] += A[i,p] * B[p,j]; }
kernel wide(x: f64[n, m] shard(n), b: bool[n] shard(n)) -> (y: f64[n, m] shard(n), s: f64[n] shard(n)) { y[i,j] = 2 * x[i,j]; s[i] = select(b[i], x[i,0], 0); }
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


def files(folder, run, over, mpirun):
    """Each rank reads and writes its own blocks of files, other ones are read whole, and no rank has memory for a whole array."""
    rng = np.random.default_rng(1)
    arrays = {"A": rng.random((13, 17)), "B": np.asfortranarray(rng.random((17, 11))), "C": rng.random((13, 11)).astype(">f8")}
    for name, a in arrays.items():
        np.save(folder / f"{name}.npy", a)
    values = [f"{name}={folder / name}.npy" for name in arrays]
    common = [folder / "mpi.tdsl", "--kernel=gemm", "-w", *values]
    subprocess.run([run, *common, "-o", folder / "one.npy"], check=True)
    (folder / "old.npy").write_text("old")
    (folder / "old.npy").chmod(0o640)
    (folder / "link.npy").symlink_to("old.npy")
    for more in (["-o", folder / "link.npy"], ["-o", folder / "many.npy", "--checksum"]):
        subprocess.run([*launch(mpirun, 6), over, *common, "--mesh", "r:3,c:2", *more], env=environment(), timeout=100, check=True, stdout=subprocess.DEVNULL)
    one = (folder / "one.npy").read_bytes()
    assert (folder / "link.npy").is_symlink() and (folder / "old.npy").stat().st_mode & 0o777 == 0o640
    assert (folder / "old.npy").read_bytes() == one == (folder / "many.npy").read_bytes()
    failed = subprocess.run([*launch(mpirun, 3), over, *common, "--mesh", "r:3", "-o", folder / "no" / "C.npy"], env=environment(), timeout=100, capture_output=True, text=True)
    assert failed.returncode != 0 and "cannot write" in failed.stderr, failed
    assert not [p for p in folder.iterdir() if "unfinished" in p.name]


def memory(folder, over, mpirun):
    """The largest resident size of a rank, in MiB, beyond that of the same call on nothing."""
    script = ("import resource, subprocess, sys\n"
              "status = subprocess.run(sys.argv[1:], close_fds=False).returncode\n"
              "print('', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024, '')\n"
              "sys.exit(status)\n")
    (folder / "peak.py").write_text(script)
    peaks = {}
    for n in (4, 40000):
        np.save(folder / "x.npy", np.ones((n, 400)))
        np.save(folder / "b.npy", np.arange(n) % 2 == 0)
        command = [sys.executable, folder / "peak.py", over, folder / "mpi.tdsl", "--kernel=wide", "-w", f"x={folder / 'x.npy'}", f"b={folder / 'b.npy'}",
                   "-o", f"y={folder / 'y.npy'}", "-o", f"s={folder / 's.npy'}"]
        done = subprocess.run([*launch(mpirun, 4), *command], env=environment(), timeout=200, capture_output=True, text=True, check=True)
        peaks[n] = max(int(line) for line in done.stdout.split())
        assert (np.load(folder / "y.npy") == 2).all() and (np.load(folder / "s.npy") == np.load(folder / "b.npy")).all()
    whole = 40000 * 400 * 8 >> 20  # 122 MiB, of which a rank has a quarter, of x and of y
    assert peaks[40000] - peaks[4] < 0.6 * whole, peaks


def checkpoint(folder, run, over, mpirun):
    """A run on 3 processes, of which leaves are lost, and a run on 2 that computes these; a damaged leaf is one rank's failure and that of all."""
    (folder / "net.tdsl").write_text("kernel net(A: f64[6, 7], B: f64[7, 3], C: f64[3, 6]) -> (t: f64) { t = A[i,j] * B[j,k] * C[k,i]; }\n")
    parts, common = folder / "parts", [folder / "net.tdsl", "-w", "--memory-limit=3", "A=random:1", "B=random:2", "C=random:3"]
    subprocess.run([run, *common, "--ranks=1", "-o", folder / "one.npy"], check=True)
    call = lambda n: subprocess.run([*launch(mpirun, n), over, *common, f"--checkpoint={parts}", "-o", folder / "many.npy"],
                                    env=environment(), timeout=100, capture_output=True, text=True)
    for n, there in ((3, 0), (2, 37)):
        done = call(n)
        assert done.returncode == 0 and f"{there} leaves found in '{parts}', {42 - there} computed" in done.stderr, done
        assert (folder / "many.npy").read_bytes() == (folder / "one.npy").read_bytes(), f"other bits on {n} processes"
        whole = sorted(parts.glob("leaf-*.part"))
        for path in whole[:5]:
            path.unlink()
    whole[20].write_bytes(b"TDSLLEAF and no more")
    (folder / "many.npy").unlink()
    done = call(3)
    assert done.returncode != 0 and f"'{whole[20]}' is no leaf" in done.stderr and not (folder / "many.npy").exists(), done


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
        files(folder, run, over, mpirun)
        for command, threads in (([*launch(mpirun, 2), over], 3), ([run, "--ranks=2"], 1)):  # a process has its own, ranks of one share them
            done = subprocess.run([*command, folder / "mpi.tdsl", "--mesh", "r:2", "--kernel=gemm", "-w", "-D", "m=400", "-D", "n=400", "-D", "k=400", "A=fill", "B=fill", "C=fill", "--time"], env={**env, "OMP_NUM_THREADS": "3"},
                                  timeout=100, capture_output=True, text=True, check=True)
            assert f"threads={threads}" in done.stdout, done
        memory(folder, over, mpirun)
        checkpoint(folder, run, over, mpirun)
        bad = [*launch(mpirun, 2), over, folder / "mpi.tdsl", "--kernel=mp2", "--mesh", "o:3", *CALLS[0][1], "-o", f"E={folder / 'none.npy'}"]
        done = subprocess.run(bad, env=env, timeout=60, capture_output=True, text=True)
        assert done.returncode != 0 and "ranks" in done.stderr and not (folder / "none.npy").exists(), done
    print("as on one rank")


if __name__ == "__main__":
    main()
