# SPDX-License-Identifier: Apache-2.0
"""Every kernel of the examples and tests that has open dims, called with extents of 0, 1 and 2 on arrays and a workspace of exactly the bytes that
were asked for, under sanitizers: what is written is what is counted, whichever blocks the extents leave out.

    exact.py --tdslc PATH --tree FOLDER [FILE.tdsl ...]        only these files
"""
import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import quick  # noqa: E402
import steps  # noqa: E402

FLAGS = ["-std=c11", "-O0", "-w", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
WORTH = "    crew = crew > most ? (int32_t)most : crew;\n"
MAIN = pathlib.Path(__file__).resolve().parent / "exact.c"
# Sums whose conditions depend on an extent beside buffers that do not: kernels that once wrote more than they had asked for.
HERE = """
dim n, m, k;
kernel layer(x: f64[n,k], w: f64[k,m], b: f64[m]) -> (y: f64[n,m]) { t[i,j] = x[i,p]*w[p,j]; y[i,j] = relu(t[i,j] + b[j]); }
kernel gemm(alpha: f64, A: f64[m,k], B: f64[k,n], beta: f64, C: inout f64[m,n]) { C[i,j] = alpha * A[i,p] * B[p,j] + beta * C[i,j]; }
kernel softmax(x: f32[n,m]) -> (y: f32[n,m]) { e[i,j] = exp(x[i,j] - max[c](x[i,c])); y[i,j] = e[i,j] / sum[c](e[i,c]); }
kernel chain(a: f32[n,k], b: f32[k,m], c: f32[m,n]) -> (y: f32[n,n]) { t[i,j] = a[i,p]*b[p,j]; y[i,l] = tanh(sum[j](t[i,j]*c[j,l])); }
kernel energy(a: c64[n,k], b: c64[m,k]) -> (e: c64) { t[i,j] = a[i,p]*b[j,p]; e = sum[i,j](t[i,j]*t[i,j]); }
kernel triangle(a: f64[n,k]) -> (r: f64[n]) { r[i] = sum[p <= i](a[i,p]*a[i,p]); }
"""


def sources(tree):
    """Files of programs, each text once; those of the fuzzers' corpus are made of them."""
    seen = set()
    for path in sorted([*tree.glob("examples/**/*.tdsl"), *tree.glob("tests/**/*.tdsl")]):
        text = path.read_bytes()
        digest = hashlib.sha256(text).hexdigest()
        if digest not in seen and "fuzz" not in path.parts:
            seen.add(digest)
            yield path


def number_of_calls(tdslc, path, folder):
    """None: the program is refused, or none of its kernels has an open dim."""
    path = pathlib.Path(path)
    made = subprocess.run([os.path.abspath(tdslc), "-w", path.name, "-o", folder / "k.c"], cwd=path.parent, capture_output=True, check=False, timeout=300)
    if made.returncode != 0:
        assert 0 < made.returncode < 64, steps.report("tdslc", made.args, made)
        return None
    header, text = (folder / "k.h").read_text(), (folder / "k.c").read_text()
    if "int32_t tdsl_pieces(" in text:  # small calls stay in one thread: here they do not
        assert WORTH in text, f"{path}: no {WORTH.strip()}"
        (folder / "k.c").write_text(text.replace(WORTH, "    (void)most;\n"))
    if not re.search(r"_workspace_bytes\(int64_t|_WORKSPACE_BYTES \(\(size_t\)[1-9]", header):
        return None
    kernels = re.search(r"extern const tdsl_kernel_info \*const (\w+)\[\];", header)[1]
    steps.run(f"{path}: C compiler", ["gcc", *FLAGS, f'-DHEADER="{folder}/k.h"', f"-DKERNELS={kernels}", MAIN, folder / "k.c", "-o", folder / "k", "-lm"])
    done = subprocess.run([folder / "k"], capture_output=True, text=True, check=False, timeout=300,
                          env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=0"})
    if done.returncode != 0:
        lines = done.stderr.splitlines()
        where = max([k for k, line in enumerate(lines) if " at " in line and " = " in line], default=0)
        raise SystemExit(f"{path}: " + "\n".join(lines[where:where + 12]))
    return int(done.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tdslc", required=True)
    parser.add_argument("--tree", required=True, type=pathlib.Path)
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        here = pathlib.Path(name) / "here.tdsl"
        here.write_text(HERE)
        files = options.files or [here, *quick.share(sources(options.tree), 60, 3, gate=8)]

        def one(k):
            folder = pathlib.Path(name) / str(k)
            folder.mkdir()
            return number_of_calls(options.tdslc, files[k], folder)
        with concurrent.futures.ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // (2 if quick.QUICK else 1))) as pool:
            counts = list(pool.map(one, range(len(files))))
    assert counts[0], f"{files[0]}: refused"
    calls = [n for n in counts if n is not None]
    print(f"{len(calls)} files, {sum(calls)} sets of extents")


main()
