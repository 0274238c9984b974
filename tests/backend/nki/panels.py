# SPDX-License-Identifier: Apache-2.0
"""Random contractions that are printed as loops over tiles (panels.c), whole ones or not: layouts of operands, batches, types, and what becomes of
a tile; small integers, which come out exactly.

    panels.py --bin DIR [--count=N] [--seed=S]"""
import random
import sys

import numpy as np

from harness import Failure, Refused, run_predicted, seeds_asked, share


def program(choose):
    """The text, its labels by operand, the extents, and what it computes from the contraction and the further arguments."""
    batch = "pq"[:choose.choice((0, 0, 1, 2))]
    whole = {"i": (128, 256, 512, 640, 1280), "j": (128, 256, 512, 1024, 1536), "k": (128, 256, 384, 512, 1024)}
    extent = {x: choose.choice((*whole[x], *(choose.randint(3, 1300) for _ in range(5)))) for x in "ijk"}
    extent.update(p=choose.choice((2, 3)), q=choose.choice((2, 4)))
    several = {x: x for x in "ijk"}  # labels of a role
    if choose.random() < 0.4:
        several = {x: x + choose.choice(("", y)) for x, y in zip("ijk", "mnl")}
        extent.update({x: choose.choice((6, 20, 24, 33, 38)) for x in "ijkmnl" if len(several.get(x, "12")) > 1})
    labels = []
    for own in ("ik", "kj", "ij"):
        own = "".join(several[x] for x in own)
        order = list(batch) + choose.sample(own, len(own))
        if batch and choose.random() < 0.2:
            choose.shuffle(order)
        labels.append("".join(order))
    a, b, c = labels
    kinds = ("plain", "plain", "epilogue", "vectors", "inout")
    kind = choose.choice(kinds if "".join(several.values()) == "ijk" else kinds[:3])
    dtype = "bf16" if kind in ("plain", "inout") and choose.random() < 0.4 else "f32"

    def array(name, of, dtype="f32"):
        return f"{name}: {dtype}[{','.join(str(extent[x]) for x in of)}]"

    def at(name, of):
        return f"{name}[{','.join(of)}]"
    product = f"{at('A', a)} * {at('B', b)}"
    head = f"{array('A', a, dtype)}, {array('B', b, dtype)}"
    if kind == "plain":
        text, more, value = f"({head}) -> ({array('C', c)}) {{ {at('C', c)} = {product}; }}", [], lambda t: t
    elif kind == "inout":
        head += f", {array('C', c)}".replace("C: ", "C: inout ")
        text, more, value = f"({head}) {{ {at('C', c)} += {product}; }}", [c], lambda t, x: t + x
    elif kind == "epilogue":
        text = f"({head}, {array('D', c)}) -> ({array('C', c)}) {{ {at('T', c)} = {product}; {at('C', c)} = 2*{at('T', c)} - {at('D', c)}; }}"
        more, value = [c], lambda t, d: 2 * t - d
    else:
        text = (f"({head}, {array('D', 'i')}, {array('E', 'j')}) -> ({array('C', c)}) "
                f"{{ {at('T', c)} = {product}; {at('C', c)} = max({at('T', c)}, 0) + D[i]*E[j]; }}")
        more = ["i", "j"]

        def value(t, d, e):
            ones = [np.ones(extent[x], np.float32) for x in batch]
            return np.maximum(t, 0) + np.einsum(",".join(["i", "j", *batch]) + "->" + c, d, e, *ones)
    return "kernel k" + text, [a, b, *more], c, extent, value


def mirrored(choose):
    """The same of a product of an operand with itself, which is its own transpose (mirrored.c)."""
    extent = {"i": choose.choice((640, 1024, 1536, 2048)), "k": choose.choice((128, 256, 512, 1024)), "p": 2}
    extent["j"] = extent["i"]
    batch = choose.choice(("", "", "p"))
    a = batch + choose.choice(("ik", "ki"))
    b, c = a.replace("i", "j"), batch + "ij"
    dtype = choose.choice(("bf16", "f32"))

    def array(name, of, dtype):
        return f"{name}: {dtype}[{','.join(str(extent[x]) for x in of)}]"
    text = (f"kernel k({array('A', a, dtype)}) -> ({array('C', c, 'f32')}) "
            f"{{ C[{','.join(c)}] = A[{','.join(a)}] * A[{','.join(b)}]; }}")
    return text, [a, b], c, extent, lambda t: t


def windows(choose):
    """A contraction that reads one operand through windows: X[.., s*i + d*p + base, ..] * K[.., p, ..], and more labels of either and of both."""
    dims = choose.choice((1, 1, 2, 2, 2, 3))
    size = {1: (60, 130, 257, 512, 700), 2: (7, 14, 28, 30, 33, 56), 3: (5, 9, 12)}[dims]
    extent = {"f": choose.choice((3, 32, 64, 128, 150)), "c": choose.choice((2, 16, 64, 70, 128, 200)), "b": choose.choice((2, 3))}
    both, x, k = choose.choice(("", "", "b")), choose.choice(("c", "c", "cb")), "fc"
    x, k, y = "".join(dict.fromkeys(x + both)), k + both, "f" + both + ("b" if "b" in x and not both else "")
    if choose.random() < 0.3:   # a filter for each channel (diagonals.c)
        extent["c"] = choose.choice((16, 64, 100, 128, 200, 256, 384))
        x, k, y = choose.choice(("c", "cb")), "c", "c"
        y += x[1:]
    at, shape = [], []
    for i, p in list(zip("ijk", "pqr"))[:dims]:
        step, apart, base = choose.choice((1, 1, 1, 2, 3)), choose.choice((1, 1, 2)), choose.choice((0, 0, 2))
        extent[i], extent[p] = choose.choice(size), choose.choice((1, 2, 3, 4, 5))
        at.append(((i, step), (p, apart), base))
        shape.append(step * (extent[i] - 1) + apart * (extent[p] - 1) + base + 1 + choose.choice((0, 0, 3)))
        k, y = k + p, y + i
    order = list(x) + list(range(dims))
    if choose.random() < 0.5:
        choose.shuffle(order)
    k, y = "".join(choose.sample(k, len(k))), "".join(choose.sample(y, len(y)) if choose.random() < 0.5 else y)
    dtype = choose.choice(("bf16", "f32"))
    at_x = ",".join(d if isinstance(d, str) else "{}*{} + {}*{} + {}".format(at[d][0][1], at[d][0][0], at[d][1][1], at[d][1][0], at[d][2]) for d in order)
    shape_x = [extent[d] if isinstance(d, str) else shape[d] for d in order]
    text = (f"kernel k(X: {dtype}[{','.join(map(str, shape_x))}], K: {dtype}[{','.join(str(extent[d]) for d in k)}]) -> "
            f"(Y: f32[{','.join(str(extent[d]) for d in y)}]) {{ Y[{','.join(y)}] = X[{at_x}] * K[{','.join(k)}]; }}")

    def value(arrays):
        array, labels = arrays[0], []
        shape, strides, offset = [], [], 0
        for d, stride in zip(order, array.strides):
            for name, by in ((d, 1),) if isinstance(d, str) else at[d][:2]:
                labels.append(name)
                shape.append(extent[name])
                strides.append(by * stride)
            offset += 0 if isinstance(d, str) else at[d][2] * stride
        view = np.lib.stride_tricks.as_strided(array.reshape(-1)[offset // array.itemsize:], shape, strides)
        return np.einsum(f"{''.join(labels)},{k}->{y}", view, arrays[1], optimize=True)
    return text, shape_x, [extent[d] for d in k], value


def check_windows(options, seed):
    text, *shapes, value = windows(random.Random(seed))
    numbers = np.random.default_rng(seed)
    arrays = [numbers.integers(-2, 3, shape).astype(np.float32) for shape in shapes]
    want = value(arrays)
    results = run_predicted(options.bin, text, arrays)
    if not np.array_equal(np.asarray(results[0]).reshape(want.shape), want):
        raise Failure(f"other results than NumPy's: {text}")


def check(options, seed):
    """Is it all loops?"""
    if seed % 3 == 0:
        check_windows(options, seed)
        return
    itself = seed % 8 == 0
    text, operands, result, extent, value = (mirrored if itself else program)(random.Random(seed))
    numbers = np.random.default_rng(seed)
    arrays = [numbers.integers(-2, 3, [extent[x] for x in of]).astype(np.float32) for of in operands]
    if itself:
        arrays[1] = arrays[0]
    results = run_predicted(options.bin, text, arrays[:1] if itself else arrays)
    want = value(np.einsum(f"{operands[0]},{operands[1]}->{result}", arrays[0], arrays[1], optimize=True), *arrays[2:])
    if not np.array_equal(np.asarray(results[0]).reshape(want.shape), want):
        raise Failure(f"other results than NumPy's: {text}")


def main():
    options = seeds_asked()
    failed = 0
    for seed in share(range(options.seed, options.seed + options.count), 3):
        try:
            check(options, seed)
        except (Failure, Refused) as error:
            failed += 1
            print(f"FAILED {seed}: {error}")
    print(f"{options.count} contractions, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
