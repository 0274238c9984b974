# SPDX-License-Identifier: Apache-2.0
"""Transforms of tensors of torch that are followed for derivatives: the derivative of a transform is a transform. Of any order."""
import functools

from .complex import ComplexTensor


def followed(tensor):
    """Is it, or a part of it, a tensor of torch with a derivative?"""
    parts = [p for p in (*(tensor._planes or ()), tensor._whole) if p is not None] if isinstance(tensor, ComplexTensor) else [tensor]
    if type(parts[0]).__module__.partition(".")[0] != "torch":
        return False
    from ..torch import has_derivative
    return any(has_derivative(p) for p in parts)


def differentiable(function):
    """The function, and for tensors that are followed the one of its name here."""
    @functools.wraps(function)
    def call(input, *args, **kwargs):
        if followed(input) and function.__name__ in _FOLLOWED:
            return _FOLLOWED[function.__name__](input, *args, **kwargs)
        return function(input, *args, **kwargs)
    return call


@functools.lru_cache(maxsize=None)
def _function():
    import torch

    from .api import fft, ifft

    class Transform(torch.autograd.Function):
        """Along the last dimension. With g the derivatives by the parts of the result, those by the parts of the input are F^H g."""

        @staticmethod
        def forward(ctx, real, imag, inverse):
            ctx.inverse = inverse
            made = (ifft if inverse else fft)(ComplexTensor(real.detach(), imag.detach()))
            return made.real, made.imag

        @staticmethod
        def backward(ctx, real, imag):
            scale = 1 / real.shape[-1] if ctx.inverse else real.shape[-1]
            real, imag = Transform.apply(real, imag, not ctx.inverse)
            return real * scale, imag * scale, None
    return Transform


def _along(x, inverse, n=None, axis=-1):
    """As of `api`, of parts of torch."""
    real, imag = (_resized(p.movedim(axis, -1), n) for p in (x.real, x.imag))
    real, imag = _function().apply(real.contiguous(), imag.contiguous(), inverse)
    return ComplexTensor(real.movedim(-1, axis), imag.movedim(-1, axis))


def _resized(p, n):
    from torch.nn.functional import pad
    size = p.shape[-1]
    return p if n is None or n == size else p[..., :n] if n < size else pad(p, (0, n - size))


def _complex(x):
    return x if isinstance(x, ComplexTensor) else ComplexTensor(x)


def _rfft(x, n=None, axis=-1):
    n = x.shape[axis] if n is None else n
    made = _along(ComplexTensor(x), False, n, axis)
    return ComplexTensor(*(p.movedim(axis, -1)[..., :n // 2 + 1].movedim(-1, axis) for p in (made.real, made.imag)))


def _irfft(x, n=None, axis=-1):
    import torch
    n = 2 * (x.shape[axis] - 1) if n is None else n
    real, imag = (_resized(p.movedim(axis, -1), n // 2 + 1) for p in (x.real, x.imag))
    inner = (n - 1) // 2  # numbers whose images are not given
    keep = torch.ones(n // 2 + 1, dtype=imag.dtype)
    keep[0] = 0
    if n % 2 == 0:
        keep[-1] = 0
    imag = imag * keep
    whole = ComplexTensor(torch.cat([real, real[..., 1:1 + inner].flip(-1)], -1), torch.cat([imag, -imag[..., 1:1 + inner].flip(-1)], -1))
    return _along(whole, True).real.movedim(-1, axis)


def _axes(x, s, dim):
    rank = len(x.shape)
    if dim is None:
        dim = range(rank) if s is None else range(rank - len(s), rank)
    dim = [d % rank for d in dim]
    return dim, [x.shape[d] for d in dim] if s is None else list(s)


def _many(x, s, dim, inverse):
    x = _complex(x)
    for axis, n in zip(*_axes(x, s, dim)):
        x = _along(x, inverse, n, axis)
    return x


def _rfftn(x, s=None, dim=None):
    dim, s = _axes(x, s, dim)
    made = _rfft(x, s[-1], dim[-1])
    for axis, n in zip(dim[:-1], s):
        made = _along(made, False, n, axis)
    return made


def _irfftn(x, s=None, dim=None):
    last = None if s is None else s[-1]
    dim, s = _axes(x, s, dim)
    for axis, n in zip(dim[:-1], s):
        x = _along(x, True, n, axis)
    return _irfft(x, last, dim[-1])


def _stft(x, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False, onesided=True):
    import torch
    length = n_fft if win_length is None else win_length
    window = torch.hann_window(length, dtype=x.dtype) if window is None else window
    before = (n_fft - length) // 2
    window = torch.nn.functional.pad(window, (before, n_fft - length - before))
    if center:
        flat = x.reshape(1, -1, x.shape[-1])
        x = torch.nn.functional.pad(flat, (n_fft // 2, n_fft // 2), mode=pad_mode).reshape(*x.shape[:-1], -1)
    frames = x.unfold(-1, n_fft, n_fft // 4 if hop_length is None else hop_length) * window
    made = (_rfft(frames) if onesided else _along(ComplexTensor(frames), False)).transpose(-2, -1)
    return made * n_fft ** -0.5 if normalized else made


_FOLLOWED = {
    "fft": lambda x, n=None: _along(_complex(x), False, n),
    "ifft": lambda x, n=None: _along(_complex(x), True, n),
    "rfft": _rfft,
    "irfft": _irfft,
    "fftn": lambda x, s=None, dim=None: _many(x, s, dim, False),
    "ifftn": lambda x, s=None, dim=None: _many(x, s, dim, True),
    "fft2": lambda x, s=None: _many(x, s, (-2, -1), False),
    "rfftn": _rfftn,
    "irfftn": _irfftn,
    "stft": _stft,
}
