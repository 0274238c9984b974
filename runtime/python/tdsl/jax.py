# SPDX-License-Identifier: Apache-2.0
"""einsum on arrays of jax in the host's memory, as a target of XLA: with derivatives of any order, under jit and vmap.

    import tdsl.jax
    C = jax.jit(lambda A, B: tdsl.jax.einsum("ij,jk->ik", A, B))(A, B)
"""
import functools

import jax
import jax.export
import jax.numpy as jnp
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from . import _derivative as derivatives, _xla
from ._einsum import einsum as _einsum
from ._equation import interleaved
from ._errors import ArgumentError
from ._explicit import batched, explicit, gradient_string, shape_of, split

__all__ = ["einsum", "export_checks", "function"]

# einsum is linear in each operand: its derivative is a sum of einsums, and so is the transpose of that, which reverse mode wants.
_einsum_p = Primitive("tdsl_einsum")


def _shape(equation, operands):
    return shape_of(equation, [x.shape for x in operands])


def _on_host(equation, *operands):
    import numpy as np
    return np.asarray(_einsum(equation, *(np.asarray(x) for x in operands)))


def _call(*operands, equation):
    result = jax.ShapeDtypeStruct(_shape(equation, operands), operands[0].dtype)
    return jax.pure_callback(functools.partial(_on_host, equation), result, *operands, vmap_method="sequential")


_by_callback = mlir.lower_fun(_call, multiple_results=False)
_is_target = functools.cache(_xla.register)


def _is_small(avals):
    """As many arrays and dimensions as the target takes."""
    return sum(2 + a.ndim for a in avals) < 500 and len(avals) < 64


def _lowered(context, *operands, equation):
    """On the CPU: a target of XLA where a kernel computes in the operands' type, else a callback."""
    avals = (*context.avals_in, *context.avals_out)
    direct = all(a.dtype.name in _xla.OF_EINSUM and a.dtype == avals[0].dtype for a in avals)
    if direct and all(isinstance(n, int) for a in avals for n in a.shape) and _is_small(avals) and _is_target():
        return jax.ffi.ffi_lowering(_xla.EINSUM)(context, *operands, equation=equation)
    return _by_callback(context, *operands, equation=equation)


@functools.lru_cache(maxsize=4096)
def _compiled(equation):
    return jax.jit(lambda *operands: _einsum_p.bind(*operands, equation=equation))


def _derivative(primals, tangents, *, equation):
    terms = []
    for k, tangent in enumerate(tangents):
        if type(tangent) is not ad.Zero:
            terms.append(_einsum_p.bind(*primals[:k], tangent, *primals[k + 1:], equation=equation))
    out = _einsum_p.bind(*primals, equation=equation)
    if not terms:
        return out, ad.Zero(ShapedArray(out.shape, out.dtype))
    return out, functools.reduce(ad.add_jaxvals, terms)


def _transposed(cotangent, *operands, equation):
    k = next(n for n, x in enumerate(operands) if ad.is_undefined_primal(x))
    aval = operands[k].aval
    if type(cotangent) is ad.Zero:
        return [ad.Zero(aval) if n == k else None for n in range(len(operands))]
    string, once, known = gradient_string(equation, k)
    made = _einsum_p.bind(cotangent, *(x for n, x in enumerate(operands) if n != k), equation=string)
    term = split(equation)[0][k]
    places = [term.index(label) for label in once if label in known]
    made = jax.lax.broadcast_in_dim(made, aval.shape, places)
    for n, label in enumerate(term):
        if term.index(label) != n:  # a diagonal
            on = jax.lax.broadcasted_iota(int, aval.shape, n) == jax.lax.broadcasted_iota(int, aval.shape, term.index(label))
            made = jnp.where(on, made, jnp.zeros_like(made))
    return [made if n == k else None for n in range(len(operands))]


def _batched(operands, dims, *, equation):
    moved = [x if d is None else jnp.moveaxis(x, d, 0) for x, d in zip(operands, dims)]
    return _einsum_p.bind(*moved, equation=batched(equation, [d is not None for d in dims])), 0


_einsum_p.def_impl(lambda *operands, equation: _compiled(equation)(*operands))
_einsum_p.def_abstract_eval(lambda *operands, equation: ShapedArray(_shape(equation, operands), operands[0].dtype))
mlir.register_lowering(_einsum_p, _by_callback)
mlir.register_lowering(_einsum_p, _lowered, platform="cpu")
ad.primitive_jvps[_einsum_p] = _derivative
ad.primitive_transposes[_einsum_p] = _transposed
batching.primitive_batchers[_einsum_p] = _batched


def einsum(equation, *operands, out=None, optimize="auto", precision=None, preferred_element_type=None):
    """`jax.numpy.einsum` of arrays in the host's memory; other types are promoted to the common one.

    Compiled code calls the kernel as a target of XLA, `tdsl_einsum`, or where there is no C compiler by a callback; jvp, grad and vmap work, of any order. The interleaved form is taken too. preferred_element_type: of the result, and computed
    in where it is the wider one. optimize and precision change nothing: the order is always searched for, and sums are those of full precision. out: None, as in jax.
    Raises ShapeError, while tracing too, ArgumentError, CompileError for strings.
    """
    del optimize, precision
    if out is not None:
        raise ArgumentError("einsum: arrays of jax cannot be written: there is no out=", "out")
    if not isinstance(equation, str):
        equation, operands = interleaved((equation, *operands))
    if not operands:
        raise ArgumentError("einsum: no operands")
    operands = [jnp.asarray(x) for x in operands]
    dtype = jnp.result_type(*operands)
    result = dtype if preferred_element_type is None else jnp.dtype(preferred_element_type)
    dtype = jnp.promote_types(dtype, result)
    ones = tuple(tuple(n for n, size in enumerate(x.shape) if size == 1) for x in operands)
    text, drop = explicit(equation, tuple(x.ndim for x in operands), ones)
    return _einsum_p.bind(*(jnp.squeeze(x, gone).astype(dtype) for x, gone in zip(operands, drop)), equation=text).astype(result)


def export_checks():
    """`jax.export.export(f, disabled_checks=tdsl.jax.export_checks())`: einsum and kernels are not among the targets that jax knows itself. Where what was exported is called,
    `tdsl.jax` has to be imported, and what a kernel's file includes has to be there."""
    return [jax.export.DisabledSafetyCheck.custom_call(target) for target in (_xla.EINSUM, _xla.KERNEL)]


def _kernel_on_host(kernel, types, *given):
    import numpy as np
    arrays = [np.asarray(a, arg.dtype) for a, arg in zip(given, derivatives.parameters(kernel))]
    return tuple(np.asarray(a, t) for a, t in zip(derivatives.results_of(kernel, arrays), types))


_kernel_p = Primitive("tdsl_kernel")
_kernel_p.multiple_results = True


def _results(given, kernel):
    """Types of 64 bits are those of 32 where jax has no others (jax_enable_x64)."""
    shapes = derivatives.result_shapes(kernel, [x.shape for x in given])
    return [ShapedArray(shape, jax.dtypes.canonicalize_dtype(arg.dtype)) for shape, arg in zip(shapes, derivatives.results(kernel))]


def _call_kernel(*given, kernel):
    made = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in _results(given, kernel)]
    return jax.pure_callback(functools.partial(_kernel_on_host, kernel, [a.dtype for a in made]), tuple(made), *given, vmap_method="sequential")


_kernel_by_callback = mlir.lower_fun(_call_kernel, multiple_results=True)


def _lowered_kernel(context, *operands, kernel):
    avals = (*context.avals_in, *context.avals_out)
    direct = all(a.dtype == arg.dtype and arg.type in _xla.TYPES.values() for a, arg in zip(avals, kernel.args))
    if direct and all(isinstance(n, int) for a in avals for n in a.shape) and _is_small(avals) and _is_target():
        return jax.ffi.ffi_lowering(_xla.KERNEL)(context, *operands, program=_xla.program_of(kernel))
    return _kernel_by_callback(context, *operands, kernel=kernel)


def _batched_kernel(operands, dims, *, kernel):
    """One call for each element of the batch."""
    moved = [x if d is None else jnp.moveaxis(x, d, 0) for x, d in zip(operands, dims)]

    def one(parts):
        parts = iter(parts)
        return _kernel_p.bind(*[x if d is None else next(parts) for x, d in zip(moved, dims)], kernel=kernel)
    made = jax.lax.map(one, [x for x, d in zip(moved, dims) if d is not None])
    return made, [0] * len(made)


@functools.lru_cache(maxsize=256)
def _compiled_kernel(kernel):
    return jax.jit(lambda *operands: _kernel_p.bind(*operands, kernel=kernel))


_kernel_p.def_impl(lambda *operands, kernel: _compiled_kernel(kernel)(*operands))
_kernel_p.def_abstract_eval(lambda *operands, kernel: _results(operands, kernel))
mlir.register_lowering(_kernel_p, _kernel_by_callback)
mlir.register_lowering(_kernel_p, _lowered_kernel, platform="cpu")
batching.primitive_batchers[_kernel_p] = _batched_kernel


@functools.lru_cache(maxsize=256)
def _differentiable(kernel):
    """The kernel with derivatives in reverse mode, those of them too."""
    import numpy as np
    parameters, results = derivatives.parameters(kernel), derivatives.results(kernel)
    differ = [k for k, arg in enumerate(parameters) if arg.type in derivatives.FLOATS]
    counted = [k for k, arg in enumerate(results) if arg.type in derivatives.FLOATS]

    @jax.custom_vjp
    def apply(*given):
        return tuple(_kernel_p.bind(*given, kernel=kernel))

    def forward(*given):
        return apply(*given), given

    def backward(given, counts):
        back = _differentiable(derivatives.backward(kernel, [parameters[k].name for k in differ]))
        # jax's derivative of a complex number is the conjugate of ours
        made = iter(back(*given, *(jnp.conj(counts[k]) for k in counted)))
        return tuple(jnp.conj(next(made)) if k in differ else np.zeros(x.shape, jax.dtypes.float0) for k, x in enumerate(given))

    apply.defvjp(forward, backward)
    return apply


def function(kernel):
    """A kernel of `tdsl.compile` or `tdsl.load` as a function of arrays in the host's memory, a target of XLA as einsum is, with derivatives in reverse mode by the kernels that
    `vjp` makes of it, up to the third order, which are compiled when they are first wanted. Returns an array, or a tuple of them. Forward mode is not there.

    Raises DtypeError for what is no kernel, ArgumentError for one that changes a parameter.
    """
    derivatives.check(kernel)
    parameters = derivatives.parameters(kernel)
    apply = _differentiable(kernel)

    @functools.wraps(kernel, updated=())
    def call(*given, **named):
        values = kernel._by_name(given, named)
        made = apply(*(jnp.asarray(values[arg.name], arg.dtype) for arg in parameters))
        return made[0] if len(made) == 1 else made
    return call
