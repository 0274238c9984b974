# SPDX-License-Identifier: Apache-2.0
"""What a hand-written peer does on two programs, as kernels for the cost model.

The peer library's fused MP2 energy and its AO to MO transform are described in public; these
generators write kernels of the same structure in our dialect (the peer's own text is not
used, and parts of it would break rules M9, G10, G18 and D7). Two variants of each: `element`
charges transposed loads as what they are, four bytes a descriptor; `generous` replaces them
by plain copies, which is faster than any machine could do it and computes something else. A
comparison that holds against `generous` holds.

    python3 tests/emulator/seed_models.py [trn1|trn2|trn3]       prints predicted times
"""

import sys

import support
from support import HEAD, indented


def _tile(name, shape, space="sbuf"):
    return (f"{name} = nl.ndarray(shape={tuple(shape)}, dtype=nl.float32, "
            f"buffer=nl.{space})\n")


def _loop(variable, count, body):
    return f"for {variable} in range({count}):\n" + indented(body)


def mp2_text(nocc, nvir, naux, generous=False):
    """e[i,j] = sum_ab t (2 t - t') / d for every ordered pair; b[i] is loaded transposed for
    each i, b[j] for each (i, j); two matmuls a pair; ten passes of the vector engine."""
    v, k = nvir, naux

    def load(name, index):
        if generous:
            return f"nisa.dma_copy(dst={name}[...], src=g[{index}, 0:{k}, 0:{v}])\n"
        return (f"nisa.dma_copy(dst={name}[...], src=b.ap(pattern=[[1, {k}], [{k}, {v}]], "
                f"offset={index} * {v * k}))\n")

    pair = (
        _tile("bj", (k, v)) + load("bj", "j") +
        "".join(_tile(n, (v, v), "psum") + f"nisa.memset(dst={n}[...], value=0.0)\n"
                for n in ("t", "u")) +
        "nisa.nc_matmul(dst=t[...], stationary=bi[...], moving=bj[...], accumulate=False)\n"
        "nisa.nc_matmul(dst=u[...], stationary=bj[...], moving=bi[...], accumulate=False)\n" +
        _tile("ej", (v, 1)) +
        f"nisa.dma_copy(dst=ej[...], src=eo.ap(pattern=[[0, {v}], [1, 1]], offset=j))\n" +
        _tile("s", (v, 1)) +
        "nisa.tensor_tensor(dst=s[...], data1=ei[...], data2=ej[...], op=nl.add)\n" +
        _tile("d", (v, v)) +
        "nisa.tensor_scalar(dst=d[...], data=row[...], op0=nl.subtract, operand0=s[...], "
        "reverse0=True)\n"
        "nisa.tensor_scalar(dst=d[...], data=d[...], op0=nl.subtract, operand0=col[...])\n"
        "nisa.reciprocal(dst=d[...], data=d[...])\n" + _tile("w", (v, v)) +
        "nisa.tensor_scalar(dst=w[...], data=t[...], op0=nl.multiply, operand0=2.0)\n"
        "nisa.tensor_tensor(dst=w[...], data1=w[...], data2=u[...], op=nl.subtract)\n"
        "nisa.tensor_tensor(dst=w[...], data1=w[...], data2=t[...], op=nl.multiply)\n"
        "nisa.tensor_tensor(dst=w[...], data1=w[...], data2=d[...], op=nl.multiply)\n" +
        _tile("c", (v, 1)) +
        "nisa.tensor_reduce(dst=c[...], op=nl.add, data=w[...], axis=1)\n" +
        _tile("p", (1, 1), "psum") +
        "nisa.nc_matmul(dst=p[...], stationary=c[...], moving=ones[...])\n" +
        _tile("q", (1, 1)) + "nisa.tensor_copy(dst=q[...], src=p[...])\n"
        "nisa.dma_copy(dst=e[i, j:j + 1], src=q[0:1, 0:1])\n")
    outer = (_tile("bi", (k, v)) + load("bi", "i") + _tile("ei", (v, 1)) +
             f"nisa.dma_copy(dst=ei[...], src=eo.ap(pattern=[[0, {v}], [1, 1]], offset=i))\n" +
             _loop("j", nocc, pair))
    body = (_tile("e", (nocc, nocc), "shared_hbm") + _tile("ones", (v, 1)) +
            "nisa.memset(dst=ones[...], value=1.0)\n" + _tile("row", (v, v)) +
            f"nisa.dma_copy(dst=row[...], src=ev.ap(pattern=[[0, {v}], [1, {v}]]))\n" +
            _tile("col", (v, 1)) + f"nisa.dma_copy(dst=col[...], src=ev[0, 0:{v}])\n" +
            _loop("i", nocc, outer) + "return e\n")
    return f"{HEAD}@nki.jit\ndef mp2(b, {'g, ' if generous else ''}eo, ev):\n" + indented(body)


def mp2_specs(nocc, nvir, naux, generous=False):
    g = f"g:float32:{nocc}x{naux}x{nvir} " if generous else ""
    return (f"b:float32:{nocc}x{nvir}x{naux} {g}eo:float32:1x{nocc} ev:float32:1x{nvir}")


def _chunks(extent):
    return [(at, min(128, extent - at)) for at in range(0, extent, 128)]


def aomo_text(nbasis, nocc, nvir, naux, generous=False):
    """x[i,a,p] = sum_mn co[m,i] cv[n,a] eri[m,n,p], one auxiliary index p at a time; the half
    transformed (i,n) goes through device memory and comes back transposed; both coefficient
    matrices are loaded again for every p."""
    n, o, v = nbasis, nocc, nvir
    step = _tile("h", (o, n), "psum")
    for m0, rows in _chunks(n):
        step += (_tile("c", (rows, o)) + f"nisa.dma_copy(dst=c[...], src=co[{m0}:{m0 + rows}, "
                 f"0:{o}])\n" + _tile("r", (rows, n)))
        source = f"eri[{m0}:{m0 + rows}, 0:{n}, p]"
        if generous:
            source = f"eri.ap(pattern=[[{n}, {rows}], [1, {n}]], offset={m0 * n})"
        step += (f"nisa.dma_copy(dst=r[...], src={source})\n"
                 "nisa.nc_matmul(dst=h[...], stationary=c[...], moving=r[...])\n")
    step += (_tile("hs", (o, n)) + "nisa.tensor_copy(dst=hs[...], src=h[...])\n"
             f"nisa.dma_copy(dst=z[0:{o}, 0:{n}], src=hs[...])\n" + _tile("y", (o, v), "psum"))
    for n0, rows in _chunks(n):
        back = f"z.ap(pattern=[[{o}, {rows}], [1, {o}]], offset={n0 * o})" if generous else \
            f"z.ap(pattern=[[1, {rows}], [{n}, {o}]], offset={n0})"
        step += (_tile("t", (rows, o)) + f"nisa.dma_copy(dst=t[...], src={back})\n" +
                 _tile("cv_", (rows, v)) +
                 f"nisa.dma_copy(dst=cv_[...], src=cv[{n0}:{n0 + rows}, 0:{v}])\n"
                 "nisa.nc_matmul(dst=y[...], stationary=t[...], moving=cv_[...])\n")
    out = f"x.ap(pattern=[[{v}, {o}], [1, {v}]], offset=p * {o * v})" if generous else \
        f"x[0:{o}, 0:{v}, p]"
    step += (_tile("ys", (o, v)) + "nisa.tensor_copy(dst=ys[...], src=y[...])\n"
             f"nisa.dma_copy(dst={out}, src=ys[...])\n")
    body = (_tile("x", (o, v, naux), "shared_hbm") + _tile("z", (o, n), "private_hbm") +
            _loop("p", naux, step) + "return x\n")
    return f"{HEAD}@nki.jit\ndef aomo(eri, co, cv):\n" + indented(body)


def aomo_specs(nbasis, nocc, nvir, naux):
    return (f"eri:float32:{nbasis}x{nbasis}x{naux} co:float32:{nbasis}x{nocc} "
            f"cv:float32:{nbasis}x{nvir}")


def run_model(text, specs, target="trn2", **options):
    """(result, plain inputs) of a model on small positive integers; levels are apart."""
    arrays, types, plain = support.arrays_of(specs, low=1)
    for at, name in enumerate(types):
        if name in ("eo", "ev"):                 # occupied below virtual: no zero denominators
            arrays[at] = plain[at] = plain[at] * (-1 if name == "eo" else 2)
    return support.emulate(text, arrays, types=types, target=target, path="seed.py",
                           max_instructions=50000, **options), plain


def main():
    target = sys.argv[1] if len(sys.argv) > 1 else "trn2"
    rows = [("mp2 16x128x128", mp2_text(16, 128, 128), mp2_specs(16, 128, 128)),
            ("mp2 16x128x128, generous", mp2_text(16, 128, 128, True),
             mp2_specs(16, 128, 128, True)),
            ("ao->mo N=256 o16 v32 x32", aomo_text(256, 16, 32, 32),
             aomo_specs(256, 16, 32, 32)),
            ("ao->mo N=256 o16 v32 x32, generous", aomo_text(256, 16, 32, 32, True),
             aomo_specs(256, 16, 32, 32))]
    print(f"{'model of the peer kernel':36} {'instr':>6} {'predicted us':>13} {'tensor':>9} "
          f"{'vector':>9} {'dma':>10} {'hbm bytes':>11}   ({target})")
    for name, text, specs in rows:
        cost = run_model(text, specs, target)[0].cost
        engines = cost["engines"]
        print(f"{name:36} {cost['instructions']:6d} {cost['predicted_us']:13.1f} "
              f"{engines['tensor']['us']:9.1f} {engines['vector']['us']:9.1f} "
              f"{cost['dma']['us']:10.1f} {cost['hbm_bytes']:11d}")


if __name__ == "__main__":
    main()
