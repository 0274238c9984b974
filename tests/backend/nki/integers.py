# SPDX-License-Identifier: Apache-2.0
"""Random kernels that read and write integers, short ones too, floats of 8 bits, and bools, also as positions: run by the emulator, and compared with the interpreter exactly.

    integers.py --bin DIR [--seed N] [--count N] [--only NUMBER]

Every value is a small whole number, or any of a type of up to 16 bits. And a few kernels whose values may be beyond 2^24 are refused, and a call with arguments beyond 2^22 too.
"""
import argparse
import os
import random
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "runtime"))
from nki_emulator.dtype import TYPES as DEVICE, cast, to_outside    # noqa: E402

TYPES = {"i32": np.int32, "i64": np.int64, "f32": np.float32, "bool": np.bool_, "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16, "u32": np.uint32}
FLOATS = {"f8e4m3": "float8_e4m3", "f8e5m2": "float8_e5m2"}
SHORT = {"i32": ("i8", "u8", "i16", "u16"), "i64": ("i8", "u8", "i16", "u16", "u32")}     # what computes in it, or widens to it
SIZES = (1, 2, 5, 17, 64, 127, 128, 129, 200)
# Whose values may be beyond 2^24, or are made in a way that f32 has not; E0501 with these words.
REFUSED = [
    ("kernel f(t: i64[n]) -> (s: i64) { s = sum[i](t[i] * t[i]); }", "beyond 2^24"),
    ("kernel f(t: i32[n, 3]) -> (s: i32) { s = sum[i,j](t[i,j]); }", "one here may be 2516582400"),
    ("kernel f(t: i32[n], u: i32[n]) -> (s: i32[n]) { s[i] = t[i] + 4 * u[i]; }", "beyond 2^24"),
    ("kernel f(t: i32[n]) -> (s: i32[n]) { s[i] = 16777217 - t[i]; }", "beyond 2^24"),
    ("kernel f(t: i32[n]) -> (s: i32[n]) { s[i] = sum[j <= i](7 * t[j]); }", "beyond 2^24"),
    ("kernel f(t: i32[n]) -> (s: i32[n]) { s[i] = (3 * t[i]) / 3; }", "'div' of whole numbers beyond 2^22"),
    ("kernel f(x: f32[n]) -> (s: i32[n]) { s[i] = i32(x[i]) + 1; }", "beyond 2^24"),
    ("kernel f(x: f32[n]) -> (s: i64[n]) { s[i] = i64(x[i]); }", "beyond 2^24"),
    ("kernel f(t: i32[n]) -> (s: i32[n]) { s[i] = max[j < t[i]](t[j]); }", "beyond 2^24"),
]


class Draft:
    """One kernel of statements over i and j, with its parameters as they are found."""

    def __init__(self, rng):
        self.rng, self.params, self.results, self.body = rng, [], [], []
        self.n, self.m = rng.choice(SIZES), rng.choice(SIZES[:6])
        for at in range(rng.choice((1, 2, 2, 3))):
            rng.choice((self.whole, self.whole, self.chosen, self.scattered, self.counted, self.extreme, self.place, self.floats, self.added, self.flags, self.bytes, self.summed, self.product, self.looked, self.cut, self.labelled))(at)

    def param(self, kind, indices, inout=False):
        name = f"A{len(self.params)}"
        extents = [str({"i": self.n, "j": self.m}[k]) for k in indices]
        self.params.append(f"{name}: {'inout ' if inout else ''}{kind}" + (f"[{', '.join(extents)}]" if extents else ""))
        return f"{name}[{', '.join(indices)}]" if indices else name

    def result(self, kind, indices):
        name = f"R{len(self.results)}"
        self.results.append(f"{name}: {kind}" + (f"[{', '.join(str({'i': self.n, 'j': self.m}[k]) for k in indices)}]" if indices else ""))
        return f"{name}[{', '.join(indices)}]" if indices else name

    def integer(self, kind, indices, depth=0):
        """An expression of that type; all the indices are in it at depth 0."""
        rng = self.rng
        if depth == 2 or (depth > 0 and rng.random() < 0.4):
            some = [k for k in indices if rng.random() < 0.6]
            return rng.choice((self.param(kind, some), f"{kind}({self.param(rng.choice(SHORT[kind]), some)})", f"{kind}(index({rng.choice(indices)}))", str(rng.randrange(9))))
        a = f"{kind}({self.param(rng.choice((kind, *SHORT[kind])), indices)})" if depth == 0 else self.integer(kind, indices, depth + 1)
        b = self.integer(kind, indices, depth + 1)
        word = rng.choice(("{a} - {b}", "{a} / {b}", "mod({a}, {b})", "{a} / {n}", "mod({a}, {n})", "min({a}, {b})", "max({a}, {b})", "select({c}, {a}, {b})", "abs({a})", "-{a}", "{a}", "{a} - 3*{k}"))
        if word.startswith("{a} - {b}") and depth > 0:
            word = "min({a}, {b})"
        return word.format(a=a, b=b, c=self.condition(indices, depth + 1) if "{c}" in word else "", k=f"{kind}(index({rng.choice(indices)}))",
                           n=rng.choice((1, 2, 3, 7, 16, -5)))

    def condition(self, indices, depth=0):
        rng = self.rng
        kind = rng.choice(("i32", "i64"))
        one = f"{self.integer(kind, indices, 2)} {rng.choice(('<', '<=', '==', '!=', '>='))} {self.param(kind, [k for k in indices if rng.random() < 0.7])}"
        if rng.random() < 0.3:
            one = self.param("bool", [rng.choice(indices)])
        return one if depth > 0 or rng.random() < 0.7 else f"{one} {rng.choice(('&&', '||'))} {self.condition(indices, 1)}"

    def whole(self, _):
        kind, indices = self.rng.choice(("i32", "i64")), self.rng.choice((["i"], ["i", "j"], ["j", "i"]))
        value, to = self.integer(kind, indices), self.rng.choice((kind, "i8", "u8", "i16", "u16"))
        self.body.append(f"{self.result(to, indices)} = {value if to == kind else f'{to}({value})'};")

    def chosen(self, _):
        x = self.param("f32", ["i", "j"])
        self.body.append(f"{self.result('f32', ['i', 'j'])} = select({self.condition(['i', 'j'])}, {x}, {self.rng.choice(('0', '-2', 'index(j)'))});")

    def scattered(self, _):
        key, x = self.param(self.rng.choice(("i32", "i64")), ["i"]), self.param("f32", ["i"])
        self.body.append(f"{self.result('f32', ['j'])} = {self.rng.choice(('sum', 'sum', 'max'))}[i, {key} == j]({x});")

    def counted(self, _):
        condition = self.condition(["i", "j"]) + f" && {self.param('i32', ['i', 'j'])} > 1"
        self.body.append(f"{self.result('i64', ['i'])} = count[j]({condition});")

    def extreme(self, _):
        kind = self.rng.choice(("i32", "i64"))
        self.body.append(f"{self.result(kind, ['i'])} = {self.rng.choice(('max', 'min'))}[j]({self.integer(kind, ['i', 'j'])});")

    def place(self, _):
        self.body.append(f"{self.result('i64', ['i'])} = {self.rng.choice(('argmax', 'argmin'))}[j]({self.param('f32', ['i', 'j'])});")

    def floats(self, _):
        kind = self.rng.choice(("i32", "i64"))
        self.body.append(f"{self.result('f32', ['i'])} = sum[j](f32({self.param(self.rng.choice(('f32', *FLOATS)), ['i', 'j'])}) * f32({self.integer(kind, ['i', 'j'], 1)}));")

    def bytes(self, _):
        """Products of floats of 8 bits, or one that is made of others."""
        rng = self.rng
        x, y = self.param(rng.choice((*FLOATS, "i8", "f32")), ["i", "j"]), self.param(rng.choice(tuple(FLOATS)), rng.choice((["i", "j"], ["j", "i"], ["j"])))
        if rng.random() < 0.5:
            self.body.append(f"{self.result('f32', ['i'])} = sum[j](f32({x}) * f32({y}));")
        else:
            to = rng.choice((*FLOATS, "i8", "u8"))
            self.body.append(f"{self.result(to, rng.choice((['i', 'j'], ['j', 'i'])))} = {to}(f32({x}) * f32({y}) * {rng.choice((1, 9, 0.375))});")

    def added(self, _):
        kind = self.rng.choice(("i32", "i64"))
        to = self.param(kind, ["i"], inout=True)
        self.body.append(f"{to} += {self.rng.choice((self.param(kind, ['i']), 'max[j](' + self.param(kind, ['i', 'j']) + ')'))};")

    def looked(self, _):
        rng = self.rng
        count, at, table = rng.choice(SIZES), self.param(rng.choice(("i32", "i64")), ["i"]), f"A{len(self.params)}"
        self.params.append(f"{table}: f32[{count}, {self.m}]")
        value = f"select({at} >= 0 && {at} < {count}, {table}[{at}, j], 0)"
        kept = rng.choice((["i"], ["i", "j"]))
        self.body.append(f"{self.result('f32', kept)} = {value if len(kept) == 2 else f'sum[j]({value})'};")

    def labelled(self, _):
        rng = self.rng
        kind, count, at, table = rng.choice(("i32", "i64")), rng.choice(SIZES), self.param(rng.choice(("i32", "i64")), ["i"]), f"A{len(self.params)}"
        self.params.append(f"{table}: {kind}[{count}, {self.m}]")
        value = f"select({at} >= 0 && {at} < {count}, {table}[{at}, j], -1)"
        self.body.append(f"{self.result(kind, ['i', 'j'])} = {rng.choice((value, value + f' - {kind}(index(j))'))};")

    def cut(self, _):
        kind, x = self.rng.choice(("i32", "i64")), self.param("f32", ["i", "j"])
        value = f"{kind}(min(max({x} * {self.rng.choice(('0.75', '1.5', '-0.125'))}, -9), 9))"
        self.body.append(f"{self.result(kind, ['i', 'j'])} = {self.rng.choice((value, f'mod({value}, 4)'))};")

    def summed(self, _):
        """With a bound beyond 2^24, as a result and rounded to f32."""
        kind = self.rng.choice(("i32", "i64"))
        x = self.param(self.rng.choice((kind, "u16")), ["i", "j"])
        to = self.rng.choice((kind, "f32"))
        value = f"sum[j]({self.rng.choice(('{}', 'abs({})', 'max({}, 5)')).format(f'{kind}({x})')})"
        if to == "f32":
            name = f"S{len(self.body)}"
            self.body.append(f"{name}: {kind}[i] = {value};")
            value = f"f32({name}[i]) * 0.5"
        self.body.append(f"{self.result(to, ['i'])} = {value};")

    def product(self, _):
        a, b = self.rng.choice(SHORT["i32"][:2]), self.rng.choice(SHORT["i32"][:2])
        value = f"sum[j]({self.param(a, ['i', 'j'])} * {self.param(b, self.rng.choice((['j'], ['i', 'j'])))})"
        self.body.append(f"{self.result('i32', ['i'])} = {value};")

    def flags(self, _):
        value = self.condition(["i", "j"])
        name = self.result("bool", ["i", "j"]).partition("[")[0]
        self.body.append(f"{name}[i < {self.n}, j < {self.m}] = {value};")

    def text(self):
        results = f" -> ({', '.join(self.results)})" if self.results else ""
        return f"kernel f({', '.join(self.params)}){results} {{\n    " + "\n    ".join(self.body) + "\n}\n"


def array_of(rng, declared):
    kind = declared.split(": ")[1].removeprefix("inout ")
    name, _, extents = kind.partition("[")
    shape = tuple(int(n) for n in extents.rstrip("]").split(", ")) if extents else ()
    if name in ("i8", "u8", "i16", "u16"):
        info = np.iinfo(TYPES[name])
        return np.asarray(rng.integers(info.min, info.max + 1, shape), TYPES[name])
    if name in FLOATS:
        kind = DEVICE[FLOATS[name]]
        return to_outside(cast(np.asarray(rng.integers(-5, 6, shape), np.float32), kind), kind).view("V1")
    values = rng.integers(0, 2, shape) if name == "bool" else rng.integers(0, 40, shape) if name == "u32" else rng.integers(-6, 40, shape) if name != "f32" else rng.integers(-5, 6, shape)
    return np.asarray(values, TYPES[name])


def run(options, folder, draft, target, number):
    """The results in a list, or the words of a refusal."""
    rng = np.random.default_rng(number)
    words = [os.path.join(options.bin, "tdsl-run"), os.path.join(folder, "f.tdsl"), f"--target={target}"]
    outputs = []
    for declared in draft.params:
        name = declared.split(":")[0]
        path = os.path.join(folder, f"{name}.npy")
        np.save(path, array_of(rng, declared))
        words.append(f"{name}={path}")
        if ": inout " in declared:
            outputs.append(name)
    outputs += [r.split(":")[0] for r in draft.results]
    for name in outputs:
        words += ["-o", f"{name}={os.path.join(folder, name + '.out.npy')}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        return done.stderr
    return [np.load(os.path.join(folder, name + ".out.npy")) for name in outputs]


def check(options, number):
    draft = Draft(random.Random(number))
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "f.tdsl"), "w", encoding="utf-8") as stream:
            stream.write(draft.text())
        wanted = run(options, folder, draft, "interp", number)
        got = run(options, folder, draft, "emulator", number)
    if isinstance(wanted, str) or isinstance(got, str):
        return f"{wanted if isinstance(wanted, str) else got}\n{draft.text()}"
    same = [a.dtype == b.dtype and (a.tobytes() == b.tobytes() if a.dtype == "V1" else np.array_equal(a, b, equal_nan=a.dtype.kind == "f")) for a, b in zip(wanted, got)]
    return None if all(same) else f"differs: {same}\n{draft.text()}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--only", type=int)
    options = parser.parse_args()
    failed = 0
    numbers = [options.only] if options.only is not None else range(options.seed, options.seed + options.count)
    for number in numbers:
        wrong = check(options, number)
        if wrong:
            failed += 1
            print(f"FAILED {number}: {wrong}", flush=True)
    for text, words in REFUSED:
        done = subprocess.run([os.path.join(options.bin, "tdslc"), "-", "--target=trn2", "-D", "n=200", "--dump=legal"], input=text, capture_output=True,
                              text=True, timeout=60)
        if done.returncode != 1 or "E0501" not in done.stderr or words not in done.stderr:
            failed += 1
            print(f"FAILED to refuse {text}: {done.returncode} {done.stderr}")
    print(f"{len(numbers)} random kernels of integers, {len(REFUSED)} that are refused, {failed} failures")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
