# SPDX-License-Identifier: Apache-2.0
"""einsum on tensors of torch in the host's memory, with gradients of any order, and in graphs of torch.compile.

    import tdsl.torch
    C = tdsl.torch.einsum("ij,jk->ik", A, B)
"""
import functools

import numpy as np
import torch
from torch.autograd import forward_ad

from . import _derivative
from ._arrays import dtype_of
from ._einsum import einsum as _einsum
from ._equation import interleaved
from ._errors import ArgumentError, DtypeError, Error
from ._explicit import batched, explicit, gradient_string, shape_of, split

__all__ = ["einsum", "from_numpy", "function", "to_numpy"]


def to_numpy(tensor):
    """The array of NumPy that shares the tensor's memory, its gradient left aside; of bf16 that of ml_dtypes, or V2."""
    if tensor.device.type != "cpu":
        raise DtypeError(f"a tensor on {tensor.device}: kernels take tensors in the host's memory: .cpu()")
    if tensor.layout != torch.strided:
        raise DtypeError(f"a tensor of layout {tensor.layout}: .to_dense()")
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(dtype_of("bf16"))
    return tensor.numpy()


def has_derivative(tensor):
    """Does something follow it for derivatives, backward or forward?"""
    return (tensor.requires_grad and torch.is_grad_enabled()) or forward_ad.unpack_dual(tensor).tangent is not None


def from_numpy(array):
    """The tensor that shares an array's memory; of bf16 too."""
    if array.dtype == dtype_of("bf16"):
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


_library = torch.library.Library("tdsl", "DEF")
_library.define("einsum(str equation, Tensor[] operands) -> Tensor")


_PLAIN = {torch.float64, torch.float32, torch.float16, torch.complex64, torch.complex128, torch.int64, torch.int32, torch.bool}  # NumPy's, of the same name
_ANY_STRIDES = _PLAIN - {torch.float16, torch.bool}  # in which kernels read any view


def _compute(equation, operands):
    return from_numpy(np.asarray(_einsum(equation, *[to_numpy(x if x.dtype in _ANY_STRIDES else x.contiguous()) for x in operands])))


_TENSORS = torch.Tensor, torch.nn.Parameter
_transforms = torch._C._functorch.peek_interpreter_stack
_modes = torch._C._len_torch_dispatch_stack


def _is_bare():
    """Does no transform of torch.func, dual number, mode or compiler look at operations?"""
    return _transforms() is None and forward_ad._current_level < 0 and _modes() == 0 and not torch.compiler.is_compiling()


def _direct(equation, operands):
    """The result where nothing but the numbers counts, or None."""
    arrays = []
    for x in operands:
        if type(x) not in _TENSORS or x.dtype not in _PLAIN or x.is_conj() or x.is_neg() or x.device.type != "cpu" or x.layout is not torch.strided:
            return None
        if x.dtype not in _ANY_STRIDES:
            x = x.contiguous()
        arrays.append(x.detach().numpy() if x.requires_grad else x.numpy())
    return torch.from_numpy(np.asarray(_einsum(equation, *arrays)))


def _same(first, second):
    """Two extents of a label, of which one is a symbol of torch.compile or torch.export."""
    torch._check(first == second, lambda: f"einsum: a label is {first}, and {second}")


def _fake(equation, operands):
    return operands[0].new_empty(shape_of(equation, [x.shape for x in operands], _same))


def _gradient(equation, k, grad, operands):
    """That of operand k: an einsum of the result's gradient and the other operands. Labels of k that nothing else has are stretched to, those that it has
    twice are put on a diagonal."""
    string, term, once, known, others = _gradient_plan(equation, k)
    result = _apply(string, [grad, *[operands[n].conj().resolve_conj() if operands[n].is_complex() else operands[n] for n in others]])
    if once == term and known.issuperset(once):
        return result
    for place, label in enumerate(once):
        if label not in known:
            result = result.unsqueeze(place)
    sizes = dict(zip(term, operands[k].shape))
    result = result.expand([sizes[label] for label in once])
    return result if once == term else _spread(result, once, term)


def _spread(result, once, term):
    """Puts each label that `term` has several times on a diagonal."""
    labels = list(once)
    for label in once:
        for _ in range(term.count(label) - 1):
            at = labels.index(label)
            result = torch.diag_embed(result.movedim(at, -1))
            del labels[at]
            labels += [label, label]
    order = []
    for label in term:
        order.append(next(n for n, name in enumerate(labels) if name == label and n not in order))
    return result.permute(order)


@functools.lru_cache(maxsize=4096)
def _gradient_plan(equation, k):
    """(string, term of k, its labels once each, those that the string gives, the other operands)."""
    terms, _ = split(equation)
    string, once, known = gradient_string(equation, k)
    return string, terms[k], once, known, [n for n in range(len(terms)) if n != k]


class _Bare(torch.autograd.Function):
    """The operation with a backward derivative alone: what torch does around `_Einsum` takes as long as a small contraction."""

    @staticmethod
    def forward(ctx, equation, *operands):
        ctx.equation = equation
        ctx.save_for_backward(*operands)
        made = _direct(equation, operands)
        if made is not None:
            return made
        with torch._C._AutoDispatchBelowAutograd():
            return torch.ops.tdsl.einsum(equation, operands)

    @staticmethod
    def backward(ctx, grad):
        return _backward(ctx, grad)


def _backward(ctx, grad):
    operands = ctx.saved_tensors
    return None, *[_gradient(ctx.equation, k, grad, operands) if ctx.needs_input_grad[k + 1] else None for k in range(len(operands))]


class _Einsum(torch.autograd.Function):
    """Backward and forward derivatives, and batches, of the operation. It is linear in each operand.

    The transforms of torch.func look for these here, and do not find them behind an operation; torch.compile wants the operation.
    """

    @staticmethod
    def forward(equation, *operands):
        with torch._C._AutoDispatchBelowAutograd():
            return torch.ops.tdsl.einsum(equation, operands)

    @staticmethod
    def setup_context(ctx, inputs, output):
        del output
        ctx.equation, *operands = inputs
        ctx.save_for_backward(*operands)
        ctx.save_for_forward(*operands)

    @staticmethod
    def backward(ctx, grad):
        return _backward(ctx, grad)

    @staticmethod
    def jvp(ctx, _, *tangents):
        with forward_ad._set_fwd_grad_enabled(True):  # torch turns it off, by which second derivatives would be 0
            operands = [forward_ad.unpack_dual(x).primal for x in ctx.saved_tensors]
            terms = [_apply(ctx.equation, [*operands[:k], t, *operands[k + 1:]]) for k, t in enumerate(tangents) if t is not None]
            return functools.reduce(torch.add, terms)

    @staticmethod
    def vmap(info, dims, equation, *operands):
        del info
        return _apply(*_in_batches(equation, operands, dims[1:])), 0


def _in_batches(equation, operands, dims):
    moved = [x if d is None else x.movedim(d, 0) for x, d in zip(operands, dims)]
    return batched(equation, [d is not None for d in dims]), moved


def _apply(equation, operands):
    if torch.compiler.is_compiling():
        return torch.ops.tdsl.einsum(equation, operands)
    if _is_bare():
        if torch.is_grad_enabled() and any([x.requires_grad for x in operands]):
            return _Bare.apply(equation, *operands)
        made = _direct(equation, operands)
        if made is not None:
            return made
    return _Einsum.apply(equation, *operands)


def _differentiable(equation, operands):
    """The operation where gradients are followed."""
    try:
        return _Einsum.apply(equation, *operands)
    except NotImplementedError:
        raise Error("transforms of torch.func inside torch.compile, and of torch.ops.tdsl.einsum itself, are not there: call tdsl.torch.einsum, and outside of it") from None


_library.impl("einsum", _compute, "CPU")
_library.impl("einsum", _differentiable, "Autograd")
torch.library.register_fake("tdsl::einsum", _fake, lib=_library)
torch.library.register_vmap("tdsl::einsum", lambda info, dims, equation, operands: (torch.ops.tdsl.einsum(*_in_batches(equation, operands, dims[1])), 0), lib=_library)


def _rewritten(equation, *shapes):
    """(string without ellipses, for each operand the dimensions to drop, nothing where there are none)."""
    text, drop = explicit(equation, [len(shape) for shape in shapes], [[n for n, size in enumerate(shape) if size == 1] for shape in shapes])
    return text, drop if any(drop) else ()


_rewritten_kept = functools.lru_cache(maxsize=4096)(_rewritten)


def _autocast(operands):
    """Floats in the type of torch.autocast, f64 aside, as torch does for products of matrices."""
    dtype = torch.get_autocast_dtype("cpu")
    return [x.to(dtype) if x.is_floating_point() and x.dtype != torch.float64 else x for x in operands]


def einsum(equation, *operands):
    """`torch.einsum` of tensors in the host's memory and of one type: f64, f32, f16, bf16, c64, c128, i64, i32, bool.

    Differentiable, backward and forward, as often as wanted, under torch.func and vmap too; torch.compile and torch.export take it as one operation, `torch.ops.tdsl.einsum`.
    The interleaved form is taken too. Raises DtypeError for other tensors, ShapeError, ArgumentError, CompileError for strings.
    """
    if not isinstance(equation, str):
        equation, operands = interleaved((equation, *operands))
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    if not operands:
        raise ArgumentError("einsum: no operands")
    if torch.is_autocast_enabled("cpu"):
        operands = _autocast(operands)
    for k, x in enumerate(operands):
        if x.dtype != operands[0].dtype:
            raise DtypeError(f"einsum: operand {k} is {x.dtype}, the first {operands[0].dtype}", k)
        if x.device.type not in ("cpu", "meta"):
            raise DtypeError(f"einsum: operand {k} is on {x.device}; kernels take tensors in the host's memory", k)
    rewrite = _rewritten if torch.compiler.is_compiling() else _rewritten_kept
    text, drop = rewrite(equation, *[x.shape for x in operands])
    return _apply(text, [x.squeeze(gone) if gone else x for x, gone in zip(operands, drop)] if drop else operands)


def _results_of(kernel, tensors):
    made = _derivative.results_of(kernel, (to_numpy(x.contiguous()) if x.dim() else x for x in tensors))
    return tuple(from_numpy(np.asarray(a)) for a in made)


class _Function(torch.autograd.Function):
    """A kernel, and the kernel of its derivatives."""

    @staticmethod
    def forward(kernel, *given):
        return _results_of(kernel, given)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.kernel, *given = inputs
        ctx.save_for_backward(*given)
        ctx.save_for_forward(*given)
        ctx.mark_non_differentiable(*(x for x in output if not (x.is_floating_point() or x.is_complex())))

    @staticmethod
    def vmap(info, dims, kernel, *given):
        """One call for each element of the batch."""
        made = []
        for n in range(info.batch_size):
            made.append(_Function.apply(kernel, *(x if d is None else x.select(d, n) for x, d in zip(given, dims[1:]))))
        return tuple(torch.stack(parts) for parts in zip(*made)), (0,) * len(made[0])

    @staticmethod
    def backward(ctx, *grads):
        kernel, given = ctx.kernel, ctx.saved_tensors
        wanted = [arg.name for arg, needed in zip(_derivative.parameters(kernel), ctx.needs_input_grad[1:]) if needed]
        counts = [g for g, arg in zip(grads, _derivative.results(kernel)) if arg.type in _derivative.FLOATS]
        made = iter(_Function.apply(_derivative.backward(kernel, wanted), *given, *counts))
        return None, *(next(made) if arg.name in wanted else None for arg in _derivative.parameters(kernel))

    @staticmethod
    def jvp(ctx, _, *tangents):
        """What the kernel of `vjp` gives is linear in what it is given for the results; its own `vjp` by that is the derivative forward."""
        kernel, given = ctx.kernel, ctx.saved_tensors
        along = [(arg.name, t) for arg, t in zip(_derivative.parameters(kernel), tangents) if t is not None]
        back = _derivative.backward(kernel, [name for name, _ in along])
        counted = [arg.name for arg in _derivative.parameters(back)[len(given):]]
        results = [arg for arg in _derivative.results(kernel) if arg.type in _derivative.FLOATS]
        shapes = dict(zip((arg.name for arg in _derivative.results(kernel)), _derivative.result_shapes(kernel, [x.shape for x in given])))
        zeros = [torch.zeros(shapes[arg.name], dtype=_torch_type(arg)) for arg in results]
        made = iter(_Function.apply(_derivative.backward(back, counted), *given, *zeros, *(t for _, t in along)))
        return tuple(next(made) if arg.type in _derivative.FLOATS else None for arg in _derivative.results(kernel))


def _torch_type(arg):
    return from_numpy(np.empty(0, dtype_of(arg.type))).dtype


def function(kernel):
    """A kernel of `tdsl.compile` or `tdsl.load` as a function of tensors in the host's memory, with derivatives backward by the kernel that `vjp` makes of it, forward and of
    second order by those that it makes of that one; they are compiled when they are first wanted. Numbers may be given for scalars. Returns a tensor, or a tuple of them.

    Raises DtypeError for what is no kernel, ArgumentError for one that changes a parameter.
    """
    _derivative.check(kernel)
    types = [dtype_of(arg.type) for arg in _derivative.parameters(kernel)]
    names = [arg.name for arg in _derivative.parameters(kernel)]

    @functools.wraps(kernel, updated=())
    def call(*given, **named):
        values = kernel._by_name(given, named)
        tensors = []
        for name, dtype in zip(names, types):
            x = values[name]
            if not isinstance(x, torch.Tensor):
                            x = torch.tensor(x) if dtype == dtype_of("bf16") else from_numpy(np.asarray(x, dtype))
            tensors.append(x)
        made = _Function.apply(kernel, *tensors)
        return made[0] if len(made) == 1 else made
    return call
