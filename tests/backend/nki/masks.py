# SPDX-License-Identifier: Apache-2.0
"""Random attentions whose keys a condition restricts, with softmax or without, of more rows than one strip has (masked_strips.c, windows.c):
conditions written in several ways, with offsets that leave out whole strips, and extents that are no multiples of tiles.

    masks.py --bin DIR [--count=N] [--seed=S]"""
import random
import sys

import numpy as np

from harness import Failure, Refused, run_predicted, seeds_asked, share

CONDITIONS = [  # with offset c, and what is added to that for k <= q + c
    ("index(k) <= index(q) + {c}", 0), ("index(k) < index(q) + {c}", -1), ("index(q) + {c} >= index(k)", 0), ("index(k) - index(q) <= {c}", 0)]


def program(choose):
    """The text, the shape of its arguments, whether there is a softmax, and the last key of query 0."""
    heads, rows, wide = choose.choice((1, 2, 3)), choose.choice((1024, 1100, 1280, 1536, 2048, 2048, 2048)), choose.choice((32, 64, 128))
    text, more = choose.choice(CONDITIONS)
    offset = choose.choice((0, 0, 0, 0, 1, -1, 3, 130, 600, -130, -700))
    last = offset + more
    softmax = last >= 0 and choose.random() < 0.8
    condition = text.format(c=offset).replace("+ -", "- ")
    arrays = ", ".join(f"{x}: f32[{heads},{rows},{wide}]" for x in "QKV")
    scores = "sum[d](Q[h,q,d] * K[h,k,d])"
    body = f"S[h,q,k] = select({condition}, {scores}, 0); O[h,q,d] = S[h,q,k] * V[h,k,d];"
    if softmax:
        body = (f"S[h,q,k] = select({condition}, {scores} / 8, -inf); W[h,q,k] = exp(S[h,q,k] - max[l](S[h,q,l])); "
                "O[h,q,d] = W[h,q,k] * V[h,k,d] / sum[l](W[h,q,l]);")
    return f"kernel k({arrays}) -> (O: f32[{heads},{rows},{wide}]) {{ {body} }}", (heads, rows, wide), softmax, last


def wanted(softmax, last, q, k, v):
    at = np.arange(q.shape[1])
    keep, scores = at[None, :] <= at[:, None] + last, q @ k.transpose(0, 2, 1)
    if not softmax:
        return np.where(keep, scores, 0) @ v
    scores = np.where(keep, scores / 8, -np.inf)
    weights = np.exp(scores - scores.max(2, keepdims=True))
    return weights @ v / weights.sum(2, keepdims=True)


def check(options, seed):
    text, shape, softmax, last = program(random.Random(seed))
    numbers = np.random.default_rng(seed)
    arrays = [numbers.integers(-1, 2, shape).astype(np.float32) for _ in range(3)]
    results = run_predicted(options.bin, text, arrays)
    got, want = np.asarray(results[0]).reshape(shape), wanted(softmax, last, *arrays)
    if not (np.allclose(got, want, 1e-4, 1e-5) if softmax else np.array_equal(got, want)):
        raise Failure(f"other results than NumPy's: {text}")


def main():
    options = seeds_asked()
    failed = refused = 0
    for seed in share(range(options.seed, options.seed + options.count), 10, 1):
        try:
            check(options, seed)
        except Refused as error:    # too many tiles of a window that lies across them
            refused += error.code == "E0602"
            failed += error.code != "E0602"
        except Failure as error:
            failed += 1
            print(f"FAILED {seed}: {error}")
    print(f"{options.count} masks, {failed} failed, {refused} refused")
    return 1 if failed or refused * 10 > options.count else 0


sys.exit(main())
