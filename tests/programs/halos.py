# SPDX-License-Identifier: Apache-2.0
"""The kernels of halos.tdsl: what is read at shifted positions is in a block on chip; with tiles of several lengths the interpreter and
C give what NumPy gives, exactly, where extents are 0, less than a window, and no multiples; nests and blocks whose margins are short are refused.

usage: halos.py TDSLC TDSL-RUN [KERNEL...]"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from quick import CFLAGS, share  # noqa: E402

PROGRAM = Path(__file__).resolve().parent / "halos.tdsl"


def conv(x, k):
    n = x.shape[1] - k.shape[2] + 1
    return sum(k[:, :, a] @ x[:, a:a + n] for a in range(k.shape[2]))


def three(u):
    return u[:-2] + u[1:-1] + u[2:]


def three_steps(u):
    n, v = len(u) - 9, three(u)
    x = v[:-3] + 2 * v[1:-2] + v[3:]
    return x[1:n + 1] + v[6:n + 6] + x[4:n + 4]


def five(u):
    return u[1:-1, 1:-1] + 2 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1])


def correlation(u):
    v = u[:-2] * u[1:-1] * u[2:]
    return (v[:-2] * v[2:]).sum()


# of each kernel: its result and what that is, the shapes of its arguments, and what its nest says of axes
CASES = {
    "stencil_twice": ("w", lambda u: three(three(u)), lambda n, m: dict(u=(n + 4,)), ["[%5[a:3], %10[a]]"]),
    "three_steps": ("w", three_steps, lambda n, m: dict(u=(n + 9,)), ["[%5[a+1:7], %12[a+1:4], %17[a]]"]),
    "five_twice": ("w", lambda u: five(five(u)), lambda n, m: dict(u=(n + 4, m + 4)), ["[%14[b:3], %26[b]]", "[%14[a:3], %26[a]]"]),
    "conv_twice": ("y", lambda x, k, b, l: conv(np.maximum(b[:, None] + conv(x, k), 0), l),
                   lambda n, m: dict(x=(16, n + 4), k=(32, 16, 3), b=(32,), l=(32, 32, 3)), ["[%5[d:3], %8[b:3], %10[d]]"]),
    "correlation": ("e", correlation, lambda n, m: dict(u=(n + 4,)), ["[%5[a:3], %8[a]]"]),
}
# lengths of the loops' tiles, outermost first; none: those of the compiler
STEPS = ([], [1], [3, 2], [16, 5])
# of both dimensions; smaller than the window, not divided by tiles
EXTENTS = {"interp": ((0, 3), (1, 1), (2, 5), (7, 9)), "c": ((0, 2), (1, 3), (37, 20), (130, 67))}


def nest_of(tdslc, name):
    return subprocess.run([tdslc, "--dump=nest", "--threads~1", "-w", f"--kernel={name}", PROGRAM], capture_output=True, text=True, check=True).stdout


def with_steps(nest, steps):
    """The nest with other tiles; how contractions are cut in them is chosen again."""
    if steps:
        left = iter(steps * 9)
        nest = re.sub(r"step \d+", lambda _: f"step {next(left)}", nest)
        nest = re.sub(r" rows \[.* levels \[.*?\]", "", nest)
    return nest


def run(tool, name, target, nest, extents, folder, program=None):
    result, of, shapes, _ = CASES[name]
    random = np.random.default_rng(3)
    arrays = {p: random.integers(-3, 4, s).astype(float) for p, s in shapes(*extents).items()}
    command = [tool, program or PROGRAM, f"--target={target}", "-w", CFLAGS, "-o", f"{result}={folder}/out.npy"]
    command += [] if program else [f"--kernel={name}", f"--nest={nest}"]
    for p, array in arrays.items():
        np.save(f"{folder}/{p}.npy", array)
        command.append(f"{p}={folder}/{p}.npy")
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        return f"status {done.returncode}\n{done.stderr}"
    got, want = np.load(f"{folder}/out.npy"), np.asarray(of(**arrays))
    if got.shape != want.shape or not (got == want).all():
        return f"shapes {got.shape}, {want.shape}, or other numbers"
    return None


def faults(tdslc, tool, name, nest, folder):
    """Each edit that takes something from a margin, or adds to one, is refused: of the nest, of a block; of a statement by the interpreter."""
    path = Path(folder) / "short.dump"
    path.write_text(with_steps(nest, [3, 2]))
    loop = subprocess.run([tdslc, path, "--dump=loop", "-w"], capture_output=True, text=True, check=True).stdout
    edits = [(nest, m, f"{m[1]}:{int(m[2]) + by}]") for m in re.finditer(r"(\[\w[+\d]*):(\d+)\]", nest) for by in (-1, 1)]
    edits += [(nest, m, m[1] + "]") for m in re.finditer(r"(\[\w)(\+\d+)?:\d+\]", nest)]
    edits += [(nest, m, f"{m[1]}+{int(m[2] or 0) + 1}:") for m in re.finditer(r"(\[\w)(?:\+(\d+))?:(?=\d)", nest)]
    edits += [(loop, m, f"{m[1]}{int(m[2]) - 1}{m[3]}") for m in re.finditer(r"(alloc @v : f64\[)(\d+)([],])", loop)]
    edits += [(loop, m, f"{m[1]}{int(m[2]) - 1}<") for m in re.finditer(r"(map \[[^\n]*in [^,:]*:)(\d+)<(?=[^\n]* as v )", loop)]
    for text, at, word in edits:
        path.write_text(text[:at.start()] + word + text[at.end():])
        if run(tool, name, "interp", path, (7, 4), folder, path) is None:
            yield f"'{at[0]}' became '{word}', and nothing was said"
    if sum(text is nest for text, *_ in edits) < 4 or sum(text is loop for text, *_ in edits) < 2:
        yield f"{len(edits)} places to edit\n{loop}"


def problems(tdslc, tool, name, folder):
    nest = nest_of(tdslc, name)
    for axis in CASES[name][3]:
        if axis not in nest:
            yield f"no loop over {axis}\n{nest}"
    report = subprocess.run([tdslc, "--threads~1", "--report", "-w", f"--kernel={name}", PROGRAM, "-o", f"{folder}/a.c"], capture_output=True, text=True).stdout
    if "workspace" in nest or not re.search(r"^\s*v\b.*\b(tile|block)\b", report, re.M):
        yield f"v is not on chip\n{report}"
    yield from faults(tdslc, tool, name, nest, folder)
    for steps in share(STEPS, 1, gate=2):
        path = Path(folder) / "nest.dump"
        path.write_text(with_steps(nest, steps))
        for target, all_extents in EXTENTS.items():
            for extents in all_extents:
                problem = run(tool, name, target, path, extents, folder)
                if problem is not None:
                    yield f"tiles {steps}, extents {extents} by {target}: {problem}"


def main():
    tdslc, tool, only = sys.argv[1], sys.argv[2], set(sys.argv[3:])
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in CASES:
            for problem in problems(tdslc, tool, name, folder) if not only or name in only else ():
                failed += 1
                print(f"FAILED {name}: {problem}")
    print(f"{len(CASES)} kernels, {failed} failures")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
