# SPDX-License-Identifier: Apache-2.0
"""Kernels with `shard` on ranks: thread ranks in this process, and processes of mpi4py where it and an mpirun are."""
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np
import tdsl

TEXT = """
kernel mp2(B: f64[o, v, x] shard(o), eo: f64[o], ev: f64[v]) -> (E: f64) {
    T[i,a,j,b] = B[i,a,P] * B[j,b,P];
    E = sum[i,j,a,b](T[i,a,j,b] * (2*T[i,a,j,b] - T[i,b,j,a]) / (eo[i] + eo[j] - ev[a] - ev[b]));
}
kernel gemm(A: f64[m, k] shard(r(m), c(k)), B: f64[k, n] shard(r(k), c(n)), alpha: f64, C: inout f64[m, n] shard(r(m), c(n))) { C[i,j] += alpha * A[i,p] * B[p,j]; }
kernel j(E: f64[n, n, x] shard(x), D: f64[n, n] shard(1)) -> (J: f64[n, n], s: f64[x] shard(x), t: f64[n] partial) {
    s[P] = sum[k,l](E[k,l,P] * D[k,l]); J[i,j] = E[i,j,P] * s[P]; t[i] = J[i,i];
}
kernel alone(x: f64[n]) -> (s: f64) { s = sum[i](x[i]); }
kernel named(comm: f64[n] shard(n)) -> (mesh: f64[n] shard(n)) { mesh[i] = 2 * comm[i]; }
"""
MPIRUN = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
try:
    import mpi4py  # noqa: F401
except ImportError:
    mpi4py = None

# Each of the processes of mpirun runs this, with TEXT before it.
PROCESS = """
import sys, numpy as np, tdsl
from mpi4py import MPI
comm, m = MPI.COMM_WORLD, tdsl.compile(TEXT)
rng = np.random.default_rng(1)
B, eo, ev = rng.random((7, 5, 6)), -rng.random(7), rng.random(5)
E = m.mp2(B=B[m.mp2.cut("B", comm, dims=dict(o=7, v=5, x=6))], eo=eo, ev=ev, comm=comm)
blocks = tdsl.scatter(m.gemm, comm, **(dict(A=B[:, :, 0], B=B[1, :, :], alpha=2.0, C=np.ones((7, 6))) if comm.rank == 0 else {}))
m.gemm(**blocks, comm=comm)
C = tdsl.gather(m.gemm, comm, C=blocks["C"])
try:
    m.mp2(B=B[:1] if comm.rank == 1 else B[:2], eo=eo if comm.rank != 1 else eo.astype("f4"), ev=ev, comm=comm)
    print("no error")
except tdsl.PeerError as error:
    assert comm.rank != 1 and error.rank == 1, error
except tdsl.DtypeError:
    assert comm.rank == 1
if comm.rank == 0:
    print(repr(float(E)), repr(C.tolist()))
"""


def arrays():
    rng = np.random.default_rng(1)
    return rng.random((7, 5, 6)), -rng.random(7), rng.random(5)


class Ranks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.m = tdsl.compile(TEXT)

    def mp2(self, comm):
        B, eo, ev = arrays()
        return self.m.mp2(B=B[self.m.mp2.cut("B", comm, dims={"o": 7, "v": 5, "x": 6})], eo=eo, ev=ev, comm=comm)

    def gemm(self, comm, **more):
        B, _, _ = arrays()
        whole = {"A": B[:, :, 0].copy(), "B": B[1], "alpha": 2.0, "C": np.ones((7, 6))} if comm.rank == 0 else {}
        blocks = tdsl.scatter(self.m.gemm, comm, **whole, **more)
        self.assertIsNone(self.m.gemm(**blocks, comm=comm, **more))
        return tdsl.gather(self.m.gemm, comm, C=blocks["C"], **more)

    def test_blocks_of_one_sharded_dimension_give_the_bits_of_one_rank(self):
        one, = tdsl.thread_ranks(1, self.mp2)
        B, eo, ev = arrays()
        np.testing.assert_allclose(one, self.m.mp2(B, eo, ev), rtol=1e-13)
        for ranks in (2, 3, 4, 9):  # 9: some have nothing
            self.assertEqual(tdsl.thread_ranks(ranks, self.mp2), [one] * ranks)

    def test_scatter_and_gather_put_whole_arrays_on_a_mesh_and_back(self):
        one, = tdsl.thread_ranks(1, self.gemm)
        B, _, _ = arrays()
        np.testing.assert_allclose(one, 1 + 2 * B[:, :, 0] @ B[1])
        for ranks, mesh in ((4, None), (6, {"r": 2, "c": 3}), (5, {"c": 5}), (4, {"r": 1, "c": 2, "copies": 2})):
            got = tdsl.thread_ranks(ranks, lambda comm, mesh=mesh: self.gemm(comm, mesh=mesh))
            self.assertEqual([a is None for a in got], [False] + [True] * (ranks - 1))
            np.testing.assert_array_equal(got[0], one)

    def test_results_are_blocks_and_may_be_given(self):
        B, _, _ = arrays()
        E, D = B[:5, :5, :4].copy(), B[:5, :5, 4].copy()

        def rank(comm):
            j, dims = self.m.j, {"n": 5, "x": 4}
            s = np.empty(E[:, :, j.cut("E", comm, dims=dims)[2]].shape[2])
            got = j(E=E[j.cut("E", comm, dims=dims)].copy(), D=D[j.cut("D", comm, dims=dims)].copy(), comm=comm, out={"s": s}, threads=2)
            self.assertIs(got.s, s)
            return tdsl.gather(j, comm, root=comm.size - 1, J=got.J, s=s, t=got.t)
        want_s = np.einsum("klP,kl->P", E, D)
        one = tdsl.thread_ranks(1, rank)[0]
        np.testing.assert_allclose(one["s"], want_s)
        np.testing.assert_allclose(one["J"], E @ want_s)
        np.testing.assert_allclose(one["t"], np.diag(E @ want_s))
        for name, a in tdsl.thread_ranks(3, rank)[2].items():
            np.testing.assert_array_equal(a, one[name])

    def test_arguments_may_be_called_as_options_are(self):
        def rank(comm):
            return self.m.named(np.arange(4.0)[self.m.named.cut("comm", comm, dims={"n": 4})], comm_=comm)
        np.testing.assert_array_equal(np.concatenate(tdsl.thread_ranks(3, rank)), 2 * np.arange(4.0))

    def failing(self, wrong, error, **more):
        """All ranks fail: rank 1 with its own error, the others as it is another's; and the next call works."""
        def rank(comm):
            B, eo, ev = arrays()
            good = {"B": B[self.m.mp2.cut("B", comm, dims={"o": 7, "v": 5, "x": 6})], "eo": eo, "ev": ev}
            with self.assertRaises(error if comm.rank == 1 or error is tdsl.ArgumentError else tdsl.PeerError) as caught:
                self.m.mp2(**(dict(good, **wrong) if comm.rank == 1 else good), comm=comm, **more)
            if isinstance(caught.exception, tdsl.PeerError):
                self.assertEqual(caught.exception.rank, 1)
            return self.mp2(comm)
        begin = time.monotonic()
        self.assertEqual(len(set(tdsl.thread_ranks(3, rank))), 1)
        self.assertLess(time.monotonic() - begin, 20)

    def test_a_rank_that_refuses_is_heard_of_by_all(self):
        self.failing({"eo": np.zeros(7, "f4")}, tdsl.DtypeError)
        self.failing({"ev": np.zeros((5, 1))}, tdsl.ShapeError)
        self.failing({"B": np.zeros((5, 5, 6))}, tdsl.ShapeError, dims={"o": 7, "v": 5, "x": 6})
        self.failing({"nothing": 1}, tdsl.CallError)

    def test_a_rank_that_does_not_come(self):
        def leaves(comm):
            return self.mp2(comm) if comm.rank != 1 else None

        def sleeps(comm):
            if comm.rank == 1:
                return time.sleep(3)
            B, eo, ev = arrays()
            with self.assertRaises(tdsl.RankTimeoutError):
                self.m.mp2(B, eo, ev, comm=comm, timeout=0.5)
            begin = time.monotonic()
            with self.assertRaises(tdsl.PeerError):  # the communicator is lost
                self.m.mp2(B, eo, ev, comm=comm)
            self.assertLess(time.monotonic() - begin, 0.5)
        with self.assertRaises(tdsl.PeerError):
            tdsl.thread_ranks(3, leaves)
        tdsl.thread_ranks(3, sleeps)

    def test_what_is_refused_on_all_ranks(self):
        B, eo, ev = arrays()
        for error, call in ((tdsl.ArgumentError, lambda comm: self.m.alone(B[0, 0], comm=comm)),
                            (tdsl.ArgumentError, lambda comm: self.m.mp2(B, eo, ev, comm=3)),
                            (tdsl.ArgumentError, lambda comm: self.m.mp2(B, eo, ev, comm=comm, timeout=0)),
                            (tdsl.ArgumentError, lambda comm: self.gemm(comm, mesh={"r": 2})),
                            (tdsl.ArgumentError, lambda comm: self.gemm(comm, mesh={"q": 3})),
                            (tdsl.ArgumentError, lambda comm: self.m.mp2(B, eo, ev, mesh={"r": 3})),
                            (tdsl.CallError, lambda comm: self.m.mp2.cut("C", comm, dims={"o": 1, "v": 1, "x": 1})),
                            (tdsl.ShapeError, lambda comm: self.m.mp2(B[:, :comm.rank + 1], eo, ev, comm=comm)),
                            (tdsl.CallError, lambda comm: tdsl.gather(self.m.mp2, comm, **({"eo": eo} if comm.rank == 0 else {"ev": ev})))):
            def rank(comm, error=error, call=call):
                with self.assertRaises(error):
                    call(comm)
            tdsl.thread_ranks(3, rank)

    @unittest.skipIf(mpi4py is None or MPIRUN is None, "no mpi4py, or no mpirun")
    def test_processes_of_mpi4py_have_the_same_bits(self):
        env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "process.py")
            with open(path, "w", encoding="utf-8") as f:
                f.write(f"TEXT = '''{TEXT}'''\n{PROCESS}")
            for ranks in (2, 4):
                done = subprocess.run([MPIRUN, "-n", str(ranks), sys.executable, path], env=env, capture_output=True, text=True, timeout=120, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                want = tdsl.thread_ranks(1, self.mp2)[0], tdsl.thread_ranks(1, self.gemm)[0].tolist()
                self.assertEqual(done.stdout.strip(), f"{float(want[0])!r} {want[1]!r}")


unittest.main()
