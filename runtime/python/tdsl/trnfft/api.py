# SPDX-License-Identifier: Apache-2.0
"""The transforms."""
from .. import _fft
from .._errors import ArgumentError, ShapeError
from .._trnsci import array_of, back, kind_of, program_of
from ._derivative import differentiable
from ._library import library
from .complex import ComplexTensor, of_array
from .plan import create_plan
from .precision import get_precision

_PAD = {"reflect": "reflect", "constant": "constant", "replicate": "edge", "circular": "wrap"}


class _Call:
    """A tensor as an array in the type in which it is computed, and what brings results back."""

    def __init__(self, name, tensor, real=False):
        import numpy as np
        self.name = name
        if isinstance(tensor, ComplexTensor):
            if real:
                raise ArgumentError(f"{name}: the input is of real numbers, not a ComplexTensor", "input")
            self.kind = kind_of([tensor._first])
            array, self.part = tensor.array(), array_of(tensor._first[:0] if len(tensor.shape) else tensor._first, "input").real.dtype
        else:
            self.kind = kind_of([tensor])
            array = array_of(tensor, "input")
            if array.dtype.kind in "iub":
                array = array.astype(np.float32 if self.kind == "torch" else np.float64)
            if real and array.dtype.kind == "c":
                raise ArgumentError(f"{name}: the input is of real numbers, not {array.dtype}", "input")
            self.part = array.real.dtype if array.dtype.kind in "fc" else array.dtype
        if not array.ndim:
            raise ShapeError(f"{name}: the input has no dimensions", "input")
        wide = self.part.itemsize == 8 or get_precision() != "fast"
        kinds = (np.float64, np.float32) if real else (np.complex128, np.complex64)
        self.array = array.astype(kinds[0] if wide else kinds[1], copy=False)

    def give(self, array):
        """A ComplexTensor, or of real numbers a tensor."""
        import numpy as np
        if array.dtype.kind == "c":
            return of_array(array, self.kind, self.part)
        return back(np.ascontiguousarray(array.astype(self.part, copy=False)), self.kind)


def _run(rows, n):
    """What runs chains on the device, or None where kernels in C do."""
    if library.choose("this transform", lambda: 4 * len(rows) * create_plan(n).multiply_adds, "f32" if rows.dtype.char in "Ff" else "f64", False) == "c":
        return None

    def run(x, radices, constants):
        text = _fft.text(radices, "c64")
        return library.on_device((text, len(x)), lambda: program_of(text), "fft", [x, *constants], b=len(x))
    return run


def _resized(x, n, axis):
    """The first n along an axis, zeros behind where there are fewer."""
    import numpy as np
    if n < 1:
        raise ArgumentError(f"a transform of {n} numbers", "n")
    size = x.shape[axis]
    if size == n:
        return x
    index = [slice(None)] * x.ndim
    if size > n:
        index[axis] = slice(n)
        return x[tuple(index)]
    shape = list(x.shape)
    shape[axis] = n
    made = np.zeros(shape, x.dtype)
    index[axis] = slice(size)
    made[tuple(index)] = x
    return made


def _along(function, x, axis, n=None):
    """A function of rows, along an axis of an array that is brought to n numbers there."""
    import numpy as np
    if axis == -1 and (n is None or n == x.shape[-1]) and x.flags.c_contiguous:
        made = function(x.reshape(-1, x.shape[-1]) if x.ndim != 2 else x)
        return made if x.ndim == 2 else made.reshape(*x.shape[:-1], made.shape[-1])
    x = _resized(x, x.shape[axis] if n is None else n, axis)
    moved = np.moveaxis(x, axis, -1)
    rows = np.ascontiguousarray(moved).reshape(-1, moved.shape[-1])
    made = function(rows)
    return np.moveaxis(made.reshape(*moved.shape[:-1], made.shape[-1]), -1, axis)


def _transform(inverse):
    return lambda rows: _fft.transform(rows, inverse, _run(rows, rows.shape[1]))


def _real(rows):
    return _fft.real_transform(rows, _run(rows, rows.shape[1]))


def _real_inverse(n):
    return lambda rows: _fft.real_inverse(rows, n, _run(rows, n))


def _length(name, n, halves):
    n = 2 * (halves - 1) if n is None else n
    if n < 1:
        raise ArgumentError(f"{name}: a transform of {n} numbers", "n")
    return n


@differentiable
def fft(input, n=None):
    """The transform along the last dimension, of n numbers: cut, or filled with zeros."""
    call = _Call("fft", input)
    return call.give(_along(_transform(False), call.array, -1, n))


@differentiable
def ifft(input, n=None):
    """Its inverse, with 1/n."""
    call = _Call("ifft", input)
    return call.give(_along(_transform(True), call.array, -1, n))


@differentiable
def rfft(input, n=None):
    """Of real numbers, the n // 2 + 1 numbers that say all."""
    call = _Call("rfft", input, real=True)
    return call.give(_along(_real, call.array, -1, n))


@differentiable
def irfft(input, n=None):
    """n real numbers from n // 2 + 1 of their transform; default 2 * (numbers - 1)."""
    call = _Call("irfft", input)
    n = _length("irfft", n, call.array.shape[-1])
    return call.give(_along(_real_inverse(n), call.array, -1, n // 2 + 1))


def hfft(input, n=None):
    """The transform, n real numbers, of a signal with x[-k] = conj(x[k]), of which n // 2 + 1 numbers are given."""
    call = _Call("hfft", input)
    n = _length("hfft", n, call.array.shape[-1])
    return call.give(_along(_real_inverse(n), call.array.conj(), -1, n // 2 + 1) * n)


def ihfft(input, n=None):
    """The inverse of hfft, of real numbers."""
    call = _Call("ihfft", input, real=True)
    made = _along(_real, call.array, -1, n)
    return call.give(made.conj() / made.real.dtype.type(call.array.shape[-1] if n is None else n))


def _axes(call, s, dim):
    rank = call.array.ndim
    if dim is None:
        dim = range(rank) if s is None else range(rank - len(s), rank)
    for d in dim:
        if not -rank <= d < rank:
            raise ArgumentError(f"{call.name}: dim {d} of a tensor of {rank} dimensions", "dim")
    dim = tuple(d % rank for d in dim)
    if s is not None and len(s) != len(dim):
        raise ArgumentError(f"{call.name}: s has {len(s)} lengths for {len(dim)} dimensions", "s")
    return dim, tuple(call.array.shape[d] for d in dim) if s is None else tuple(s)


def _many(name, input, s, dim, inverse):
    call = _Call(name, input)
    x = call.array
    for axis, n in zip(*_axes(call, s, dim)):
        x = _along(_transform(inverse), x, axis, n)
    return call.give(x)


@differentiable
def fftn(input, s=None, dim=None):
    """The transform along several dimensions, default all, of lengths s."""
    return _many("fftn", input, s, dim, False)


@differentiable
def ifftn(input, s=None, dim=None):
    """Its inverse."""
    return _many("ifftn", input, s, dim, True)


@differentiable
def fft2(input, s=None):
    """The transform along the last two dimensions."""
    return _many("fft2", input, s, (-2, -1), False)


@differentiable
def rfftn(input, s=None, dim=None):
    """Of real numbers; the last of the dimensions has n // 2 + 1 numbers then."""
    call = _Call("rfftn", input, real=True)
    dim, s = _axes(call, s, dim)
    x = _along(_real, call.array, dim[-1], s[-1])
    for axis, n in zip(dim[:-1], s):
        x = _along(_transform(False), x, axis, n)
    return call.give(x)


def rfft2(input, s=None):
    """rfftn along the last two dimensions."""
    return rfftn(input, s, (-2, -1))


@differentiable
def irfftn(input, s=None, dim=None):
    """The inverse of rfftn; the last length is 2 * (numbers - 1) by default."""
    call = _Call("irfftn", input)
    given = s
    dim, s = _axes(call, s, dim)
    last = _length("irfftn", None if given is None else s[-1], s[-1])
    x = call.array
    for axis, n in zip(dim[:-1], s):
        x = _along(_transform(True), x, axis, n)
    return call.give(_along(_real_inverse(last), x, dim[-1], last // 2 + 1))


def irfft2(input, s=None):
    """irfftn along the last two dimensions."""
    return irfftn(input, s, (-2, -1))


def _window(name, window, win_length, n_fft, dtype):
    """The window in the middle of n_fft numbers; Hann's by default."""
    import numpy as np
    win_length = n_fft if win_length is None else win_length
    if not 0 < win_length <= n_fft:
        raise ArgumentError(f"{name}: win_length is {win_length}, and n_fft {n_fft}", "win_length")
    if window is None:
        window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(win_length) / win_length)
    else:
        window = array_of(window, "window")
        if window.shape != (win_length,):
            raise ShapeError(f"{name}: window has shape {tuple(window.shape)}, not ({win_length},)", "window")
    before = (n_fft - win_length) // 2
    return np.pad(window.astype(dtype), (before, n_fft - win_length - before))


@differentiable
def stft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False, onesided=True):
    """The transforms of windows of n_fft numbers, hop_length apart: [.., frequency, time], as torch.stft gives them."""
    import numpy as np
    call = _Call("stft", input, real=True)
    x, hop = call.array, n_fft // 4 if hop_length is None else hop_length
    if hop < 1:
        raise ArgumentError(f"stft: hop_length is {hop}", "hop_length")
    if center:
        if pad_mode not in _PAD:
            raise ArgumentError(f"stft: pad_mode is {pad_mode!r}, not one of {', '.join(_PAD)}", "pad_mode")
        if pad_mode == "reflect" and n_fft // 2 >= x.shape[-1]:
            raise ShapeError(f"stft: {x.shape[-1]} numbers are too few to be reflected for n_fft {n_fft}", "input")
        x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(n_fft // 2, n_fft // 2)], mode=_PAD[pad_mode])
    if x.shape[-1] < n_fft:
        raise ShapeError(f"stft: {x.shape[-1]} numbers are fewer than n_fft, {n_fft}", "input")
    frames = np.lib.stride_tricks.sliding_window_view(x, n_fft, -1)[..., ::hop, :] * _window("stft", window, win_length, n_fft, x.dtype)
    made = _along(_real if onesided else lambda rows: _transform(False)(rows.astype(np.result_type(rows, np.complex64))), frames, -1)
    made = np.ascontiguousarray(made.swapaxes(-2, -1))
    return call.give(made * made.real.dtype.type(n_fft ** -0.5) if normalized else made)


def istft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=True, length=None):
    """The signal of such transforms: windows are added up and divided by the sum of their squares."""
    import numpy as np
    call = _Call("istft", input)
    x, hop = call.array.swapaxes(-2, -1), n_fft // 4 if hop_length is None else hop_length
    wanted = n_fft // 2 + 1 if onesided else n_fft
    if call.array.ndim < 2 or x.shape[-1] != wanted:
        raise ShapeError(f"istft: the input has shape {tuple(call.array.shape)}, not (.., {wanted}, times)", "input")
    frames = _along(_real_inverse(n_fft), x, -1) if onesided else _along(_transform(True), x, -1).real
    if normalized:
        frames = frames * frames.dtype.type(n_fft ** 0.5)
    window = _window("istft", window, win_length, n_fft, frames.dtype)
    count = frames.shape[-2]
    total = n_fft + (count - 1) * hop
    made, weight = np.zeros((*frames.shape[:-2], total), frames.dtype), np.zeros(total, frames.dtype)
    frames = frames * window
    for k in range(count):
        made[..., k * hop:k * hop + n_fft] += frames[..., k, :]
        weight[k * hop:k * hop + n_fft] += window * window
    made /= np.where(weight > 1e-11, weight, 1)
    first = n_fft // 2 if center else 0
    last = total - first if length is None else first + length
    made = made[..., first:last]
    if length is not None and made.shape[-1] < length:
        made = _resized(made, length, -1)
    return call.give(made)
