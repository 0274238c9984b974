# SPDX-License-Identifier: Apache-2.0
"""Random kernels with positions that are sums and multiples of indices, positions as values, restricted sums and results in pieces:
compiled for each generation, emulated, compared with the interpreter exactly.

    positions.py --bin DIR [--seed N] [--count N] [--targets trn2,trn1,trn3] [--only NUMBER]
    positions.py --bin DIR --programs

--programs: those of tests/programs/positions.tdsl in f32, beside their references in NumPy instead. All values are exact integers. A kernel may be refused for its number of instructions (E0602), nothing else.
"""
import argparse
import importlib.util
import os
import random
import sys
import tempfile

from harness import ROOT, kernels_of, share
from random_kernels import check_all

FIXED = ["""kernel complex_numbers(A: c64[40, 50], x: c64[89]) -> (B: c64[40, 50], C: c64[40], D: c64[40]) {
    B[i,j] = select(index(i) <= index(j) + 2, A[i,j], x[i + j]);
    C[i] = sum[j <= i](A[i,j] * x[i + j]) + index(i);
    D[i] = A[i,j] * x[i + j];
}
""", """kernel decimals_of_positions(Q: f32[6, 4], K: f32[7, 4], x: c64[9]) -> (S: f32[6, 7], z: c64[9]) {
    S[q,k] = sum[e](Q[q,e] * K[k,e]) - 0.25*abs(index(q) - index(k)) + index(q)/4;
    z[i] = x[i] * (index(i) * 0.5);
}
""", """kernel rows_of_complex_numbers(x: c64[60], Y: c64[4, 7]) -> (X: c64[15, 4], Z: c64[105]) {
    X[k,j] = x[4*k + j];
    Z[7*k + j] = sum[l](x[4*k + l] * Y[l,j]);
}
""", """kernel triangle_in_a_triangle_of_columns(A: f32[64, 64]) -> (s: f32[64]) { s[i] = sum[j < i, k < j](A[i,j] * A[j,k]); }
""", """kernel triangle_in_a_triangle_of_most(x: f32[96]) -> (y: f32[96]) { y[i] = max[j <= i, l <= j](x[j] + x[l]); }
""", """kernel triangle_in_a_triangle(A: f32[128, 128], B: f32[128, 128]) -> (s: f32) { s = sum[i, j < i, k < j](A[i,j] * B[j,k]); }
"""]
SIZES = (1, 2, 3, 5, 8, 17, 33, 64, 127, 128, 129, 150)
NAMES = "ijkl"


class Draft:
    """One kernel, as its parameters are found while its statements are written."""

    def __init__(self, rng):
        self.rng, self.params, self.results, self.body = rng, [], [], []
        self.dtype = rng.choice(("f32", "f32", "f32", "c64", "bf16"))
        self.points = 1

    def sizes(self, n, most):
        """Extents of n indices whose product is at most `most`."""
        found = []
        for _ in range(n):
            fit = [s for s in SIZES if s <= most]
            found.append(self.rng.choice(fit))
            most //= found[-1]
        return found

    def position(self, names, size):
        """A position of some of the indices, and the extent that holds it."""
        rng = self.rng
        terms = {n: rng.choice((1, 1, 1, 1, 2, 3, -1)) for n in rng.sample(names, min(len(names), rng.choice((1, 1, 2))))}
        low = sum(min(0, c * (size[n] - 1)) for n, c in terms.items())
        high = sum(max(0, c * (size[n] - 1)) for n, c in terms.items())
        base = rng.choice((0, 0, 1, 3)) - low
        text = " + ".join(n if c == 1 else f"{c}*{n}" for n, c in terms.items())
        return (text + (f" + {base}" if base else "")).replace("+ -", "- "), high + base + 1 + rng.choice((0, 0, 2)), set(terms)

    def tensor(self, names, size, rank, dims=None):
        """An access to a new parameter; all the names are in it."""
        left, found, extents = list(names), [], []
        for d in range(rank):
            pool = left if left and d == rank - 1 else list(names)
            text, extent, used = self.position(pool, size)
            left = [n for n in left if n not in used]
            found.append(text)
            extents.append(extent)
        if left:
            return self.tensor(names, size, rank + 1)
        name = f"A{len(self.params)}"
        self.params.append(f"{name}: {self.dtype}[{', '.join(map(str, extents))}]")
        return f"{name}[{', '.join(found)}]"

    def plain(self, names, size):
        """An access to a new parameter at the names themselves, from which they have their extents."""
        name = f"A{len(self.params)}"
        self.params.append(f"{name}: {self.dtype}[{', '.join(str(size[n]) for n in names)}]")
        return f"{name}[{', '.join(names)}]"

    @staticmethod
    def left(names, size):
        return ", ".join(f"{n} < {size[n]}" for n in names)

    def result(self, name, extents):
        self.results.append(f"{name}: {self.dtype}[{', '.join(map(str, extents))}]" if extents else f"{name}: {self.dtype}")

    def condition(self, names):
        rng = self.rng
        def side():
            a = rng.choice(names)
            return rng.choice((f"index({a})", f"index({a}) + {rng.randrange(6)}", f"2*index({a})", f"index({a}) - index({rng.choice(names)})"))
        one = f"{side()} {rng.choice(('<', '<=', '>', '>=', '==', '!='))} {rng.choice((side(), str(rng.randrange(9))))}"
        return one if rng.random() < 0.7 else f"{one} && {side()} <= {side()}"

    # ---- statements ----

    def gather(self, at):
        names = list(NAMES[:self.rng.choice((1, 2, 2, 3))])
        extents = self.sizes(len(names), 8000)
        size = dict(zip(names, extents))
        terms = [self.tensor(names, size, self.rng.choice((1, 2))) for _ in range(self.rng.choice((1, 2, 3)))]
        self.result(f"R{at}", extents)
        self.body.append(f"R{at}[{self.left(names, size)}] = {' + '.join(terms)};")

    def contract(self, at):
        rng = self.rng
        names = list(NAMES[:rng.choice((2, 3, 3, 4))])
        extents = self.sizes(len(names), 20000)
        size = dict(zip(names, extents))
        kept = names[:rng.choice((1, 2))]
        summed = [n for n in names if n not in kept]
        a = self.tensor([n for n in names if n not in kept[:1]] or names, size, 2)
        b = self.tensor([n for n in names if n not in kept[1:]] or names, size, 2)
        self.result(f"R{at}", [size[n] for n in kept])
        text = f"{a} * {b}"
        if summed:
            text = f"sum[{self.left(summed, size)}]({text})"
        self.body.append(f"R{at}[{self.left(kept, size)}] = {text};")

    def masked(self, at):
        names = list(NAMES[:self.rng.choice((1, 2, 3))])
        extents = self.sizes(len(names), 8000)
        size = dict(zip(names, extents))
        x = self.tensor(names, size, 2)
        other = self.rng.choice(("0", "7", "-inf", self.tensor(names, size, 1), "index(i)"))
        self.result(f"R{at}", extents)
        self.body.append(f"R{at}[{self.left(names, size)}] = select({self.condition(names)}, {x}, {other});")

    def restricted(self, at):
        rng = self.rng
        n = rng.choice(SIZES[2:])
        m = rng.choice([s for s in SIZES if s * n <= 12000])
        size = {"i": n, "j": m}
        x, y = self.tensor(["i", "j"], size, 2), self.tensor(["j"], size, 1)
        bound = rng.choice(("j <= i", "j < i", "j < i + 2", "i - 4 <= j", "i < j"))
        op = rng.choice(("sum", "sum", "max", "min"))
        more = ", j <= i + 3" if rng.random() < 0.3 else ""
        self.result(f"R{at}", [n])
        self.body.append(f"R{at}[i < {n}] = {op}[j < {m}, {bound}{more}]({x} * {y});")

    def pieces(self, at):
        rng = self.rng
        m, n, w = (rng.choice(SIZES[:9]) for _ in range(3))
        size = {"i": m, "j": n, "k": w}
        if rng.random() < 0.5:
            self.result(f"R{at}", [m + n, w])
            self.body += [f"R{at}[i,k] = {self.plain('ik', size)};", f"R{at}[j + {m},k] = {self.plain('jk', size)};"]
        else:
            self.result(f"R{at}", [m, 2 * n])
            self.body += [f"R{at}[i,2*j] = {self.plain('ij', size)};", f"R{at}[i,2*j + 1] = {self.plain('ij', size)};"]

    def padded(self, at):
        rng = self.rng
        m, n = (rng.choice(SIZES[:9]) for _ in range(2))
        x = self.plain(["i", "j"], {"i": m, "j": n})
        self.result(f"R{at}", [m + 2, 2 * n + 1])
        self.body += [f"R{at}[k,l] = {rng.randrange(2)};", f"R{at}[i + 1,2*j + 1] {rng.choice('+-')}= {x};"]

    def window(self, at):
        """A value of the kernel that is read at sums of indices."""
        rng = self.rng
        m, n, a = rng.choice(SIZES), rng.choice(SIZES[:8]), rng.choice((2, 3))
        size = {"i": m + a - 1, "j": n}
        self.body.append(f"T{at}[{self.left('ij', size)}] = {self.tensor(['i', 'j'], size, 2)} + 1;")
        self.result(f"R{at}", [m, n])
        read = rng.choice((f"T{at}[i + k,j]", f"T{at}[i + k,{n - 1} - j]", f"T{at}[{m + a - 2} - i - k,j]"))
        self.body.append(f"R{at}[i < {m}, j < {n}] = {rng.choice(('sum', 'max')) if self.dtype != 'c64' else 'sum'}[k < {a}]({read});")

    def numbers(self, at):
        names = list(NAMES[:self.rng.choice((1, 2, 3))])
        extents = self.sizes(len(names), 5000)
        size = dict(zip(names, extents))
        c = self.rng.choice((f"index({names[-1]})", f"(index({names[0]}) + 2*index({names[-1]}))", f"abs(index({names[0]}) - index({names[-1]}))"))
        self.result(f"R{at}", extents)
        self.body.append(f"R{at}[{self.left(names, size)}] = {self.tensor(names, size, 1)} * {c} - index({names[0]});")

    def text(self, number):
        kinds = [self.gather, self.contract, self.window]
        if self.dtype != "c64":
            kinds += [self.pieces, self.padded, self.masked]
        if self.dtype == "f32":
            kinds += [self.restricted, self.numbers]
        for at in range(self.rng.choice((1, 1, 2))):
            self.rng.choice(kinds)(at)
        return f"kernel p{number}({', '.join(self.params)}) -> ({', '.join(self.results)}) {{\n    " + "\n    ".join(self.body) + "\n}\n"


def programs(options):
    """The programs of tests/programs in f32, at their small extents."""
    path = os.path.join(ROOT, "tests/programs/positions.py")
    spec = importlib.util.spec_from_file_location("programs_positions", path)
    of = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(of)
    failed = 0
    kernels = {k.name: k.text for k in kernels_of(of.PROGRAM.read_text().replace("f64", "f32"))}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "f32.tdsl")
        for number, (name, (_, _, *sizes)) in enumerate(share(of.CASES.items(), 6)):
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(kernels[name])
            for extents in share(sizes, 2, first=number, gate=2):
                wrong = of.check(os.path.join(options.bin, "tdsl-run"), name, "emulator", extents, folder, path, 1e-6, ["--dtype=f32"])
                if wrong:
                    failed += 1
                    print(f"FAILED {name} {extents}: {wrong}")
    print(f"{len(of.CASES)} programs, {failed} failures")
    return failed > 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--only", type=int)
    parser.add_argument("--programs", action="store_true")
    parser.add_argument("--targets", default="trn2,trn1,trn3")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    options.words = []
    if options.programs:
        return programs(options)
    targets = options.targets.split(",")
    numbers = [options.only] if options.only is not None else share(range(options.seed, options.seed + options.count), 30)
    numbers = list(numbers) if options.only is not None else [*share(range(-len(FIXED), 0), 6, 2), *numbers]
    texts = [(number, Draft(random.Random(number)).text(number) if number >= 0 else FIXED[number]) for number in numbers]
    return check_all(options, [(number, kernels_of(text)[0]) for number, text in texts], targets, "kernels with positions")


if __name__ == "__main__":
    sys.exit(main())
