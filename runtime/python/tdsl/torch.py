# SPDX-License-Identifier: Apache-2.0
"""einsum on tensors of torch in the host's memory, with gradients of any order, and in graphs of torch.compile.

    import tdsl.torch
    C = tdsl.torch.einsum("ij,jk->ik", A, B)
"""
import functools

import torch

from ._arrays import dtype_of
from ._einsum import einsum as _einsum
from ._errors import ArgumentError, DtypeError
from ._explicit import explicit, gradient_string, split

__all__ = ["einsum", "from_numpy", "to_numpy"]


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


def from_numpy(array):
    """The tensor that shares an array's memory; of bf16 too."""
    import numpy as np
    if array.dtype == dtype_of("bf16"):
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


_library = torch.library.Library("tdsl", "DEF")
_library.define("einsum(str equation, Tensor[] operands) -> Tensor")


def _sizes(terms, operands):
    return {label: n for term, x in zip(terms, operands) for label, n in zip(term, x.shape)}


def _compute(equation, operands):
    import numpy as np
    return from_numpy(np.asarray(_einsum(equation, *(to_numpy(x.contiguous()) for x in operands))))


def _fake(equation, operands):
    terms, output = split(equation)
    sizes = _sizes(terms, operands)
    return operands[0].new_empty([sizes[label] for label in output])


def _keep(ctx, inputs, output):
    del output
    ctx.equation, operands = inputs
    ctx.save_for_backward(*operands)


def _gradient(equation, k, grad, operands):
    """That of operand k: an einsum of the result's gradient and the other operands. Labels of k that nothing else has are stretched to, those that it has
    twice are put on a diagonal."""
    terms, _ = split(equation)
    others = [n for n in range(len(terms)) if n != k]
    string, once, known = gradient_string(equation, k)
    result = torch.ops.tdsl.einsum(string, [grad, *(operands[n].conj().resolve_conj() for n in others)])
    for place, label in enumerate(once):
        if label not in known:
            result = result.unsqueeze(place)
    sizes = _sizes([terms[k]], [operands[k]])
    result = result.expand([sizes[label] for label in once])
    return result if once == terms[k] else _spread(result, once, terms[k])


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


def _backward(ctx, grad):
    operands = ctx.saved_tensors
    needed = ctx.needs_input_grad[1]
    needed = needed if isinstance(needed, (list, tuple)) else [needed] * len(operands)
    grads = [_gradient(ctx.equation, k, grad, operands) if needed[k] and x.requires_grad else None for k, x in enumerate(operands)]
    return None, grads


_library.impl("einsum", _compute, "CPU")
torch.library.register_fake("tdsl::einsum", _fake, lib=_library)
torch.library.register_autograd("tdsl::einsum", _backward, setup_context=_keep, lib=_library)


_explicit_kept = functools.lru_cache(maxsize=4096)(explicit)


def einsum(equation, *operands):
    """`torch.einsum` of tensors in the host's memory and of one type: f64, f32, f16, bf16, c64, c128, i64, i32, bool.

    Differentiable, as often as wanted; torch.compile and torch.export take it as one operation, `torch.ops.tdsl.einsum`. Copies what is not contiguous.
    Raises DtypeError for other tensors, ShapeError, ArgumentError, CompileError for strings.
    """
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    if not operands:
        raise ArgumentError("einsum: no operands")
    for k, x in enumerate(operands):
        if x.dtype != operands[0].dtype:
            raise DtypeError(f"einsum: operand {k} is {x.dtype}, the first {operands[0].dtype}", k)
        if x.device.type not in ("cpu", "meta"):
            raise DtypeError(f"einsum: operand {k} is on {x.device}; kernels take tensors in the host's memory", k)
    ones = tuple(tuple(n for n, size in enumerate(x.shape) if size == 1) for x in operands)
    rewrite = explicit if torch.compiler.is_compiling() else _explicit_kept
    text, drop = rewrite(equation, tuple(x.dim() for x in operands), ones)
    tensors = [x.squeeze(gone) if gone else x for x, gone in zip(operands, drop)]
    return torch.ops.tdsl.einsum(text, tensors)
