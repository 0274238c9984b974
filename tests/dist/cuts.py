#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random layouts on thread ranks: kernels of tests/programs and einsum cases get random `shard` and `partial` attributes, are compiled together,
and run on every mesh of 1 to 8 ranks at several extents (cuts.c compares).

With --slices, random networks under a memory limit, most of which have slices.

usage: cuts.py TDSLC CUTS CC [--layouts=N] [--slices] [--seed=N] [--most=RANKS] [--keep=FOLDER]"""
import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from compiled import compiled, dims_of

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from quick import QUICK, share  # noqa: E402

INEXACT = {"dfmp2_energy", "dfmp2_density", "attention", "attention_gqa", "ccsd_t", "mp3_pp", "mp3_ring", "lt_sos_mp2", "conv1x1_bn"}
OWN = """
kernel ranks_norm(x: f64[n, m]) -> (y: f64[n, m], s: f64[n]) { s[i] = sum[j](x[i,j] * x[i,j]); y[i,j] = x[i,j] * s[i] + s[i]; }
kernel ranks_softmax(x: f32[n, m], v: f32[m, k]) -> (y: f32[n, k]) {
    w[i,j] = exp(x[i,j] - max[l](x[i,l]));
    y[i,c] = w[i,j] * v[j,c] / sum[j](w[i,j]);
}
kernel ranks_update(A: f64[m, k], B: f64[k, n], C: inout f64[m, n], alpha: f64, beta: f64) { C[i,j] = alpha * A[i,p] * B[p,j] + beta * C[i,j]; }
kernel ranks_folds(x: i32[n, m], b: bool[n, m]) -> (lo: i32[m], hi: i32, p: i64[n], any_: bool[n], all_: bool[m]) {
    lo[j] = min[i](x[i,j]); hi = max[i,j](x[i,j]); p[i] = prod[j](i64(x[i,j])); any_[i] = any[j](b[i,j]); all_[j] = all[i](b[i,j]);
}
kernel ranks_halves(A: f16[m, k], B: f16[k, n]) -> (C: f16[m, n], s: f16[n]) { C[i,j] = A[i,p] * B[p,j]; s[j] = sum[p](B[p,j]); }
kernel ranks_views(x: f64[n + 2, m], y: f64[k, m]) -> (d: f64[n, m], r: f64[n + 2], j: f64[n + 2 + k, m]) {
    d[i,a] = x[i,a] - 2*x[i + 1,a] + x[i + 2,a]; r[i] = sum[a](x[i,a]); j[i,a] = x[i,a]; j[i + n + 2,a] = y[i,a];
}
kernel ranks_causal(x: f64[n, m]) -> (c: f64[n, m], t: f64[n]) { c[i,a] = sum[j <= i](x[j,a]); t[i] = sum[j < i, a](x[j,a] * x[i,a]); }
kernel ranks_pass(x: f64[n], y: inout f64[n]) -> (r: f64[n], s: f64[n], q: f64) { r = x; s = y; y[i] += x[i]; q = 3; }
kernel ranks_chain(A: f64[m, k], B: f64[k, n], C: f64[n, m]) -> (t: f64, D: f64[m, m]) { D[i,l] = A[i,p] * B[p,j] * C[j,l]; t = sum[i](D[i,i]); }
kernel ranks_fixed(A: c128[5, k], B: c128[k, 3]) -> (C: c128[5, 3], D: c128[3]) { C[i,j] = A[i,p] * B[p,j]; D[j] = sum[i](conj(C[i,j]) * C[i,j]); }
kernel ranks_first(x: f64[n, m + 2], b: bool[n]) -> (y: f64[n, m + 2], s: f64[n], e: f64[m + 2]) { y[i,j] = 2 * x[i,j]; s[i] = select(b[i], x[i,0], x[i,1]); e[j] = sum[i](x[i,j] * x[i,0]); }
kernel ranks_rows(X: f64[s, n*dh], w: f64[n]) -> (A: f64[s, n, s]) { A[q,g,k] = sum[e](X[q, g*dh + e] * X[k, g*dh + e]) * w[g]; }
"""


# Dealt as pairs of leaves, as its extents are planned to be large; in each run, with layouts that are always the same.
PAIRS = """
kernel ranks_pairs(x: i64[big, big_m, big_k], w: i64[big], s: i64[big_k]) -> (e: i64, r: i64[2], d: i64[big]) {
    T[i,a,j,b] = x[i,a,P] * x[j,b,P] * s[P];
    e = sum[i,j,a,b](T[i,a,j,b] * (2*T[i,a,j,b] - T[i,b,j,a]) * (w[i] + w[j])); r[c] = e * i64(index(c)); d[i] = sum[a,P](x[i,a,P]);
}
"""


# Products of large matrices, whose sums are cut, come in panels, and are spread over ranks; in each run, too.
PANELS = """
kernel ranks_panels(A: f64[large_m, large_k], B: f64[large_k, large_n]) -> (C: f64[large_m, large_n]) { C[i,j] = A[i,p] * B[p,j]; }
"""
# Columns by vectors and one by one: how many of either a rank has depends on its block.
COLUMNS = """
kernel ranks_columns(x: f64[p, big_n], v: f64[p]) -> (y: f64[big_n]) { y[j] = x[i,j] * v[i]; }
"""
# Results that the caller has with dimensions together, in several shapes and after a cut sum.
HEADS = """
kernel ranks_heads(X: f64[s, n*dh], C: inout f64[s, n*dh], w: f64[n]) -> (Y: f64[s, n*dh], Z: f64[s, n, dh], T: f64[s*n, dh], t: f64[s]) {
    Y[row, head*dh + lane] = X[row, head*dh + lane] * w[head]; Z[row,head,lane] = X[row, head*dh + lane] * w[head]; T[row*n + head, lane] = X[row, head*dh + lane] * w[head];
    t[row] = sum[head,lane](X[row, head*dh + lane] * w[head] * C[row, head*dh + lane]); C[row, head*dh + lane] = 2 * X[row, head*dh + lane] + w[head];
}
"""
GRAM = """
kernel ranks_gram(B: f16[k, s], A: f16[k, n, dh]) -> (O: f16[s, n*dh], P: f16[s*n, dh]) {
    O[row, head*dh + lane] = sum[at](B[at,row] * A[at,head,lane]); P[row*n + head, lane] = sum[at](B[at,row] * A[at,head,lane]);
}
"""
FIXED = [
    (HEADS, {"X: f64[s, n*dh]": "shard(0)", "Z: f64[s, n, dh]": "shard(1)", "t: f64[s]": "shard(0)"}),
    (HEADS, {"C: inout f64[s, n*dh]": "shard(1)", "Y: f64[s, n*dh]": "shard(0)", "T: f64[s*n, dh]": "shard(1)"}),
    (GRAM, {"B: f16[k, s]": "shard(0)", "A: f16[k, n, dh]": "shard(0)", "O: f16[s, n*dh]": "shard(1)"}),
    (COLUMNS, {"x: f64[p, big_n]": "shard(1)", "y: f64[big_n]": "shard(0)"}),
    (PAIRS, {"x: i64[big, big_m, big_k]": "shard(0)", "d: i64[big]": "shard(0)"}),
    (PAIRS, {"x: i64[big, big_m, big_k]": "shard(r(0), c(2))", "e: i64": "partial"}),
    (PANELS, {"A: f64[large_m, large_k]": "shard(0)", "B: f64[large_k, large_n]": "shard(1)", "C: f64[large_m, large_n]": "shard(0)"}),
    (PANELS, {"A: f64[large_m, large_k]": "shard(r(0), d(1), c(1))", "B: f64[large_k, large_n]": "shard(d(0), r(0), c(1))", "C: f64[large_m, large_n]": "shard(r(0), c(1), d(1))"}),
    (PANELS, {"A: f64[large_m, large_k]": "shard(r(0), c(1))", "B: f64[large_k, large_n]": "partial", "C: f64[large_m, large_n]": "shard(c(1)) partial"}),
]


def kernels(text):
    """Of each kernel its head, and the text behind it."""
    for m in re.finditer(r"^kernel (\w+)\(((?:[^()]|\([^()]*\))*)\)(\s*->\s*\(((?:[^()]|\([^()]*\))*)\))?\s*\{", text, re.M):
        depth, end = 1, m.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        yield m.group(1), m.group(2), m.group(4), text[m.end():end]


def split(params):
    """At commas outside of brackets."""
    parts, depth, at = [], 0, 0
    for i, c in enumerate(params):
        depth += {"[": 1, "(": 1, "]": -1, ")": -1}.get(c, 0)
        if c == "," and depth == 0:
            parts.append(params[at:i])
            at = i + 1
    return [p.strip() for p in parts + [params[at:]] if p.strip()]


def attributes(rng, param, axes, is_result):
    """The parameter with a random layout."""
    m = re.match(r"\w+:\s*(inout\s+)?(\w+)(?:\[(.*)\])?$", param, re.S)
    if not m or "symmetric" in param:
        return param
    rank = len(split(m.group(3))) if m.group(3) else 0
    cuts = [f"{axis}({rng.randrange(rank)})" if axis else str(rng.randrange(rank)) for axis in axes if rank and rng.random() < 0.7]
    text = param + (f" shard({', '.join(cuts)})" if cuts else "")
    can = m.group(2) != "bool" and not m.group(1) and (rank or is_result)
    return text + (" partial" if can and rng.random() < 0.15 else "")


def with_layout(rng, name, params, results, body):
    axes = rng.choice([[""], ["r", "c"], ["r", "c"], ["r", "c", "z"]])
    head = ", ".join(attributes(rng, p, axes, False) for p in split(params))
    tail = ", ".join(attributes(rng, r, axes, True) for r in split(results or ""))
    return f"kernel {name}({head})" + (f" -> ({tail})" if results else "") + " {" + body


def einsum_kernel(name, case):
    """An equation with open extents as a kernel; None where it has more than letters."""
    inputs, _, output = case["eq"].replace(" ", "").partition("->")
    terms = inputs.split(",")
    if not re.fullmatch(r"[a-zA-Z,]*->[a-zA-Z]*", case["eq"].replace(" ", "")) or len(terms) != len(case["shapes"]):
        return None
    size = {}
    for term, shape in zip(terms, case["shapes"]):
        if len(term) != len(shape):
            return None
        for letter, n in zip(term, shape):
            if size.setdefault(letter, n) != n or n == 1:
                return None
    if not set(output) <= set(size) or len(set(output)) < len(output) or not all(terms):
        return None
    params = ", ".join(f"x{k}: f64[{', '.join('d' + c for c in t)}]" for k, t in enumerate(terms))
    result = f"y: f64[{', '.join('d' + c for c in output)}]" if output else "y: f64"
    operands = ", ".join(f"x{k}" for k in range(len(terms)))
    return name, params, result, f' y = einsum("{inputs}->{output}", {operands}); }}'


def network(rng, name):
    """A ring of tensors with chords, fixed extents of 2 to 4 or open ones, and up to two labels of the result; at times its result is used once more."""
    n, labels = rng.randint(3, 6), {}
    tensors = [[] for _ in range(n)]
    pairs = [(k, (k + 1) % n) for k in range(n)] + [tuple(rng.sample(range(n), 2)) for _ in range(rng.randint(0, 3))]
    for k, (a, b) in enumerate(pairs):
        label = chr(ord("a") + k)
        labels[label] = rng.choice(["2", "2", "3", "4", "n", "m"])
        tensors[a].append(label)
        tensors[b].append(label)
    out = rng.sample(sorted(labels), rng.choice([0, 0, 1, 2]))
    dtype = rng.choice(["f64", "f64", "c128", "i64"])
    shape = lambda term: f"[{', '.join(labels[c] for c in term)}]" if term else ""
    params = ", ".join(f"x{k}: {dtype}{shape(t)}" for k, t in enumerate(tensors))
    product = " * ".join(f"x{k}[{','.join(t)}]" for k, t in enumerate(tensors))
    where = f"[{','.join(out)}]" if out else ""
    if rng.random() < 0.3:  # what follows needs the sum over slices complete
        return name, params, f"y: {dtype}{shape(out)}, z: {dtype}{shape(out)}", f" y{where} = {product}; z{where} = y{where} * y{where}; }}"
    return name, params, f"y: {dtype}{shape(out)}", f" y{where} = {product}; }}"


def largest(head, values):
    """Elements of the largest argument; a dim that an extent is computed from counts as a factor."""
    most = 1
    for shape in re.findall(r"\[([^\]]*)\]", head):
        count = 1
        for extent in shape.split(","):
            for name in re.findall(r"[a-zA-Z_]\w*", extent):
                count *= values.get(name, 1)
        most = max(most, count)
    return most


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tdslc")
    parser.add_argument("cuts")
    parser.add_argument("cc")
    parser.add_argument("--layouts", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=int, default=8)
    parser.add_argument("--slices", action="store_true")
    parser.add_argument("--keep")
    a = parser.parse_args()
    a.layouts = len(share(range(a.layouts), 3, gate=2))
    a.most = 4 if QUICK else a.most
    rng = random.Random(a.seed)
    all_kernels = list(kernels((HERE.parent / "programs/programs.tdsl").read_text())) + list(kernels(OWN)) * 2
    for k, case in enumerate(json.loads((HERE.parent / "data/einsum.json").read_text())["cases"]):
        made = einsum_kernel(f"einsum{k}", case) if case["status"] != "error" else None
        all_kernels += [made] if made else []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(a.keep or scratch)
        texts, chosen, heads = [], [], {}
        for k in range(a.layouts):
            name, params, results, body = network(rng, f"network{k}") if a.slices else rng.choice(all_kernels)
            chosen.append((f"k{k}", name))
            heads[f"k{k}"] = params + "," + (results or "")
            whole = a.slices and rng.random() < 0.5  # without `shard`
            texts.append(f"kernel k{k}({params}) -> ({results}) {{{body}" if whole else with_layout(rng, f"k{k}", params, results, body))
        for text, layout in () if a.slices else FIXED:
            name, (own, head, _, _) = f"k{len(chosen)}", next(kernels(text))
            for param, attribute in layout.items():
                text = text.replace(param, f"{param} {attribute}")
            chosen.append((name, own))
            heads[name] = head
            texts.append(text.replace(own, name))
        names = sorted(set(re.findall(r"[a-zA-Z_]\w*", " ".join(re.findall(r"\[([^\]]*)\]", " ".join(heads.values()))))))
        typical = ", ".join(f"{n} ~ {5000 if n.startswith('large') else 100 if n.startswith('big') else rng.choice([8, 100, 1000])}" for n in names)  # which labels are cut depends on them
        (folder / "cuts.tdsl").write_text(f"dim {typical};\n" + "\n".join(texts) + "\n")
        source = folder / "cuts.tdsl"
        if a.slices:
            plans = subprocess.run([a.tdslc, source, "--memory-limit=40", "--ranks=2", "--dump=dist"], check=True, capture_output=True, text=True).stdout
            assert len(re.findall(r"cut .* sliced\"", plans)) > a.layouts // 3 and (a.layouts < 50 or " sliced with " in plans), "few kernels are cut into slices"
            source = folder / "cuts.dist"  # as read back
            source.write_text(plans)
        made = compiled(a.tdslc, a.cc, source)
        plans = subprocess.run([a.tdslc, folder / "cuts.tdsl", "-w", "--dump=dist"], check=True, capture_output=True, text=True).stdout
        for word in () if a.slices else ("with 0", "by leaf", "spread"):
            assert word in plans, f"no plan has '{word}'"
        header = (folder / "cuts.h").read_text()
        lines = []
        for symbol, name in chosen:
            if f" {symbol}_dist;" not in header:
                continue # no layout by chance
            dims = dims_of(made, symbol)
            exact = "float" if name in INEXACT or name in ("ranks_softmax", "ranks_halves") else "exact"
            sets = [[rng.choice([1, 2, 3, 4, 5, 6, 7, 8, 9, 11]) for _ in dims], [rng.choice([0, 1, 2, 3, 13, 17]) for _ in dims]]
            if len(dims) <= 3:
                sets.append([rng.choice([16, 31, 67, 70]) for _ in dims])
            for values in sets:
                if largest(heads[symbol], dict(zip(dims, values))) <= 60000:
                    lines.append(" ".join([symbol, exact, str(len(dims)), *map(str, values)]))
        (folder / "lines").write_text("\n".join(lines) + "\n")
        done = subprocess.run([a.cuts, made, str(a.most)], input="\n".join(lines) + "\n", text=True, capture_output=True)
        print(done.stdout[-6000:], done.stderr[-2000:])
        if done.returncode != 0:
            bad = sorted({line.split()[0] for line in done.stdout.splitlines() if ":" in line}, key=lambda s: (len(s), s))
            for symbol in bad[:8]:
                print(dict(chosen).get(symbol), *[t for t in texts if t.startswith(f"kernel {symbol}(")])
        sys.exit(done.returncode)


main()
