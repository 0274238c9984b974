# SPDX-License-Identifier: Apache-2.0
"""native.c, compiled and loaded; kernels of tdslc, compiled as a user does and called through their tables."""
import ctypes
import os
import pathlib
import subprocess

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ABI = HERE.parents[2] / "runtime/include"
DTYPES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128, "i8": np.int8, "u8": np.uint8, "i16": np.int16, "i32": np.int32}
CODES = {"f32": 0, "f64": 1, "c64": 2, "c128": 3}
CBLAS_GEMM, CBLAS_GEMV, CBLAS_TRANSPOSE, DNNL_GEMM = range(4)


class Failed(Exception):
    """A tool that ended with an error, or a kernel that did."""


def tool(command):
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    except OSError as error:
        raise Failed(f"{command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))}\n{done.stderr[:2000]}")
    return done.stdout


def address(array):
    return array.ctypes.data


class Call(ctypes.Structure):
    """One call of a library: `Call` of native.c."""
    _fields_ = ([("run", ctypes.c_void_p), ("a", ctypes.c_void_p), ("b", ctypes.c_void_p), ("c", ctypes.c_void_p)] +
                [(name, ctypes.c_int64) for name in "m n k lda ldb ldc batch step_a step_b step_c".split()] +
                [(name, ctypes.c_int32) for name in "kind type trans_a trans_b".split()])


class Native:
    """Functions of native.c; rates are flop and bytes a second."""

    def __init__(self, cc, folder, threads):
        self.threads = threads
        place, unit = os.path.join(folder, "native.so"), os.path.join(folder, "native.o")
        tool([cc, "-O3", "-march=native", "-ffast-math", "-w", "-fPIC", f"-I{ABI}", "-c", HERE / "native.c", "-o", unit])
        tool([cc, "-shared", "-pthread", unit, "-o", place])    # not with -ffast-math, which would make subnormals 0 for all of the process
        self.library = ctypes.CDLL(place)
        for name in "kernel calls copy map_f32 map_f64 mp2_f32 mp2_f64 peak bandwidth".split():
            getattr(self.library, "bench_" + name).restype = ctypes.c_double
        self.library.bench_workspace.restype = ctypes.c_size_t

    def peak(self, wide, seconds):
        return self.library.bench_peak(ctypes.c_int32(wide), ctypes.c_int32(self.threads), ctypes.c_double(seconds))

    def bandwidth(self, writes, size, seconds):
        return self.library.bench_bandwidth(ctypes.c_int32(writes), ctypes.c_int32(self.threads), ctypes.c_size_t(size), ctypes.c_double(seconds))

    def copy(self, size):
        """memcpy of so many bytes, at places where it is fast: some processors are many times slower where the two are near each other in their pages."""
        space = np.ones(2 * size + 3 * 4096, np.uint8)
        source = (address(space) + 4095) // 4096 * 4096
        to = (source + size + 4095) // 4096 * 4096 + 512
        return lambda n, kept=space: self.library.bench_copy(ctypes.c_void_p(to), ctypes.c_void_p(source), ctypes.c_size_t(size), ctypes.c_int64(n))

    def calls(self, calls):
        """Runs a list of `Call`."""
        table = (Call * len(calls))(*calls)
        return lambda n: self.library.bench_calls(table, ctypes.c_int64(len(table)), ctypes.c_int64(n))

    @staticmethod
    def libm(name):
        """The address of a function of libm."""
        return ctypes.cast(getattr(ctypes.CDLL("libm.so.6"), name), ctypes.c_void_p).value

    def map(self, function, x, y):
        """A function of libm over an array, one element after the other."""
        run = getattr(self.library, "bench_map_" + ("f64" if x.dtype == np.float64 else "f32"))
        return lambda n: run(ctypes.c_void_p(function), ctypes.c_void_p(address(x)), ctypes.c_void_p(address(y)), ctypes.c_int64(x.size), ctypes.c_int64(n))

    def mp2(self, gemm, inputs, out):
        o, v, x = inputs[0].shape
        run = getattr(self.library, "bench_mp2_" + ("f64" if out.dtype == np.float64 else "f32"))
        scratch = np.zeros((v, v), out.dtype)
        pointers = [ctypes.c_void_p(p) for p in (gemm, *map(address, inputs))]
        sizes = [ctypes.c_int64(n) for n in (o, v, x)]
        return lambda n: run(*pointers, *sizes, ctypes.c_void_p(address(scratch)), ctypes.c_void_p(address(out)), ctypes.c_int64(n))


class Kernel:
    """A kernel called `bench`, from its source to a loaded object; `dims`: the values of its open dims."""

    def __init__(self, source, options, folder, native, dims=(), name="kernel"):
        tdsl, c, library = (os.path.join(folder, f"{name}.{ending}") for ending in ("tdsl", "c", "so"))
        pathlib.Path(tdsl).write_text(source, encoding="utf-8")
        tool([options.tdslc, tdsl, "-w", "-o", c])
        openmp = ["-fopenmp"] if native.threads > 1 else []
        tool([options.cc, *options.cflags.split(), *openmp, "-shared", "-fPIC", c, "-o", library, "-lm"])
        self.text = os.path.getsize(c)
        self.native = native
        self.library = ctypes.CDLL(library)
        os.unlink(library)                      # the next one has the same name, and must not be taken for this
        self.info = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(self.library, "bench_info")))
        self.dims = (ctypes.c_int64 * len(dims))(*dims)
        self.bytes = native.library.bench_workspace(self.info, self.dims, ctypes.c_int32(native.threads))
        self.workspace = np.zeros(self.bytes + 64, np.uint8)

    def run(self, arrays):
        """Seconds a call, as a function of the number of calls."""
        pointers = (ctypes.c_void_p * len(arrays))(*map(address, arrays))
        place = ctypes.c_void_p((address(self.workspace) + 63) // 64 * 64)
        rest = (place, ctypes.c_size_t(self.bytes), ctypes.c_int32(self.native.threads))

        def timed(n):
            seconds = self.native.library.bench_kernel(self.info, self.dims, pointers, *rest, ctypes.c_int64(n))
            if seconds < 0:
                raise Failed("the kernel refused its arguments")
            return seconds
        return timed
