# SPDX-License-Identifier: Apache-2.0
"""Two kernels of quantum chemistry."""
from .._arrays import name_of
from .._device import DeviceTensor
from .._errors import DtypeError, ShapeError
from .._trnsci import array_of, back, kind_of, program_of
from ._library import library
from .plan import choose

_MP2 = """dim o ~ 16, v ~ 128, x ~ 384, n ~ 144;
kernel mp2_energy(B: TYPE[o, v, x], eo: TYPE[o], ev: TYPE[v]) -> (E: RESULT) {
    T[i,a,j,b] = B[i,a,P] * B[j,b,P];
    D[i,a,j,b] = eo[i] + eo[j] - ev[a] - ev[b];
    E = sum[i,j,a,b]( T[i,a,j,b] * (2*T[i,a,j,b] - T[i,b,j,a]) / D[i,a,j,b] );
}
kernel ao_to_mo(eri: TYPE[n, n, x], Co: TYPE[n, o], Cv: TYPE[n, v]) -> (B: TYPE[o, v, x]) {
    spill B;
    B = einsum("mi,na,mnP->iaP", Co, Cv, eri);
}
"""


def _primitive(name, tensors, multiply_adds, dims):
    import numpy as np
    arrays = [array_of(x, k) for k, x in enumerate(tensors)]
    dtype = np.result_type(*(a.dtype for a in arrays))
    if dtype not in (np.float32, np.float64):
        raise DtypeError(f"{name}: {dtype}, not f32 or f64")
    arrays = [a.astype(dtype, copy=False) for a in arrays]
    resident = [isinstance(x, DeviceTensor) for x in tensors]
    if choose(lambda: multiply_adds, name_of(dtype), any(resident), "fast") == "nki":
        from .._program import compile as compile_program
        text = _MP2.replace("TYPE", "f32").replace("RESULT", "f32")
        result = library.on_device((name, tuple(dims.items())), lambda: compile_program(text, **dims), name, arrays)
    else:
        result = program_of(_MP2.replace("TYPE", name_of(dtype)).replace("RESULT", "f64"))[name](*arrays)
    result = np.asarray(result).astype(dtype, copy=False)
    return DeviceTensor(result, kind_of(tensors)) if all(resident) else back(result, kind_of(tensors))


def _check(name, x, wanted, argument, why=""):
    if len(x.shape) != len(wanted) and len(wanted) == 3:
        raise ShapeError(f"{name}: {argument} must be 3D, and has shape {tuple(x.shape)}", argument)
    if len(x.shape) != len(wanted) or any(w is not None and n != w for n, w in zip(x.shape, wanted)):
        text = ", ".join("any" if w is None else str(w) for w in wanted)
        raise ShapeError(f"{name}: {argument} has shape {tuple(x.shape)}, not ({text}){why}", argument)


def mp2_energy(B, eps_occ, eps_vir):
    """Closed-shell DF-MP2 energy of B[i, a, P] and the orbital energies, a tensor without dimensions: the sum over i, j, a, b of T (2 T - T') / D, in one kernel
    that never holds T; sums run in f64."""
    _check("mp2_energy", B, (None, None, None), "B")
    o, v, x = (int(n) for n in B.shape)
    _check("mp2_energy", eps_occ, (o,), "eps_occ")
    _check("mp2_energy", eps_vir, (v,), "eps_vir")
    return _primitive("mp2_energy", (B, eps_occ, eps_vir), o * o * v * v * x, {"o": o, "v": v, "x": x, "n": 1})


def ao_to_mo_transform(eri, C_occ, C_vir):
    """B[i, a, P], the sum over m, n of C_occ[m, i] C_vir[n, a] eri[m, n, P], in one kernel."""
    _check("ao_to_mo_transform", eri, (None, None, None), "eri")
    n, x = int(eri.shape[0]), int(eri.shape[2])
    _check("ao_to_mo_transform", eri, (n, n, x), "eri", ": its first two dims must match")
    _check("ao_to_mo_transform", C_occ, (n, None), "C_occ")
    _check("ao_to_mo_transform", C_vir, (n, None), "C_vir")
    o, v = int(C_occ.shape[1]), int(C_vir.shape[1])
    return _primitive("ao_to_mo", (eri, C_occ, C_vir), o * n * x * (n + v), {"o": o, "v": v, "x": x, "n": n})
