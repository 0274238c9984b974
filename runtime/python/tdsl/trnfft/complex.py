# SPDX-License-Identifier: Apache-2.0
"""Complex tensors as two real ones."""
from .._arrays import to_dtype
from .._einsum import einsum
from .._errors import ArgumentError, DtypeError, ShapeError
from .._trnsci import array_of, back, kind_of


def _is_torch(x):
    return type(x).__module__.partition(".")[0] == "torch"


def _is_complex(x):
    return x.is_complex() if _is_torch(x) else x.dtype.kind == "c"


def _tensor(x):
    return x if _is_torch(x) else array_of(x, "tensor")


def _contiguous(x):
    import numpy as np
    return x.contiguous() if _is_torch(x) else np.ascontiguousarray(x)


class ComplexTensor:
    """`real` and `imag`, two real tensors of one shape and type, of NumPy or of torch. Made of both, of a real tensor alone, or of one of complex numbers."""

    __slots__ = "_planes", "_whole"
    __array_ufunc__ = None  # so that an array of NumPy on the left leaves the operation to this class

    def __init__(self, real, imag=None):
        real = _tensor(real)
        self._planes = self._whole = None
        if imag is None and _is_complex(real):
            self._whole = real
        elif imag is None:
            self._planes = _contiguous(real), _contiguous(real * 0) if not _is_torch(real) else real.new_zeros(real.shape)
        else:
            imag = _tensor(imag)
            if tuple(real.shape) != tuple(imag.shape):
                raise ShapeError(f"ComplexTensor: real has shape {tuple(real.shape)}, imag {tuple(imag.shape)}", "imag")
            if real.dtype != imag.dtype or _is_complex(real):
                raise DtypeError(f"ComplexTensor: real is {real.dtype}, imag {imag.dtype}: real numbers of one type", "imag")
            self._planes = _contiguous(real), _contiguous(imag)

    def _both(self):
        if self._planes is None:
            whole = self._whole.resolve_conj() if _is_torch(self._whole) else self._whole
            self._planes, self._whole = (_contiguous(whole.real), _contiguous(whole.imag)), None
        return self._planes

    @property
    def real(self):
        """The real parts."""
        return self._both()[0]

    @real.setter
    def real(self, value):
        self._planes = value, self._both()[1]

    @property
    def imag(self):
        """The imaginary parts."""
        return self._both()[1]

    @imag.setter
    def imag(self, value):
        self._planes = self._both()[0], value

    @property
    def _first(self):
        return self._whole if self._planes is None else self._planes[0]

    @property
    def shape(self):
        """Of either part."""
        return self._first.shape

    @property
    def dtype(self):
        """Of either part."""
        return self.real.dtype

    @property
    def device(self):
        """Where torch has it; "cpu" for arrays of NumPy."""
        return getattr(self._first, "device", "cpu")

    @classmethod
    def from_polar(cls, magnitude, phase):
        """magnitude * exp(i phase)"""
        import numpy as np
        cos, sin = (phase.cos(), phase.sin()) if _is_torch(phase) else (np.cos(phase), np.sin(phase))
        return cls(magnitude * cos, magnitude * sin)

    def array(self):
        """One array of NumPy of complex numbers, of c64 for parts of 16 bits; not to be written."""
        import numpy as np
        if self._planes is None:
            return array_of(self._whole, "tensor")
        real, imag = (array_of(x, "tensor") for x in self._planes)
        made = np.empty(real.shape, np.complex128 if real.dtype.itemsize == 8 else np.complex64)
        made.real, made.imag = real, imag
        return made

    def to_torch_complex(self):
        """A tensor of complex numbers, of torch if the parts are, else an array of NumPy."""
        if self._planes is None:
            return self._whole
        if _is_torch(self._planes[0]):
            import torch
            return torch.complex(*self._planes)
        return self.array()

    def abs(self):
        """The absolute values, without overflow between."""
        import numpy as np
        return self.real.hypot(self.imag) if _is_torch(self.real) else np.hypot(self.real, self.imag)

    def angle(self):
        """The phases."""
        import numpy as np
        return self.imag.atan2(self.real) if _is_torch(self.real) else np.arctan2(self.imag, self.real)

    def conj(self):
        """The complex conjugate."""
        return ComplexTensor(self.real, -self.imag)

    def _operand(self, other):
        """The parts of an operand; of a number or a real tensor the imaginary one is None."""
        if isinstance(other, ComplexTensor):
            return other.real, other.imag
        if isinstance(other, complex):
            return other.real, other.imag
        if isinstance(other, (int, float)) or (hasattr(other, "shape") and not _is_complex(other)):
            return other, None
        if hasattr(other, "shape"):
            return ComplexTensor(other)._both()
        return None

    def __add__(self, other):
        parts = self._operand(other)
        if parts is None:
            return NotImplemented
        real = self.real + parts[0]
        return ComplexTensor(real, self.imag + (real * 0 if parts[1] is None else parts[1]))

    __radd__ = __add__

    def __sub__(self, other):
        parts = self._operand(other)
        if parts is None:
            return NotImplemented
        real = self.real - parts[0]
        return ComplexTensor(real, self.imag - (real * 0 if parts[1] is None else parts[1]))

    def __rsub__(self, other):
        return -(self - other)

    def __mul__(self, other):
        parts = self._operand(other)
        if parts is None:
            return NotImplemented
        if parts[1] is None:
            return ComplexTensor(self.real * parts[0], self.imag * parts[0])
        return ComplexTensor(self.real * parts[0] - self.imag * parts[1], self.real * parts[1] + self.imag * parts[0])

    __rmul__ = __mul__

    def __matmul__(self, other):
        return complex_matmul(self, other) if isinstance(other, ComplexTensor) else NotImplemented

    def __neg__(self):
        return ComplexTensor(-self.real, -self.imag)

    def __getitem__(self, key):
        return ComplexTensor(self.real[key], self.imag[key])

    def __setitem__(self, key, value):
        self.real[key], self.imag[key] = value.real, value.imag

    def __len__(self):
        return len(self._first)

    def __repr__(self):
        return f"ComplexTensor(shape={tuple(self.shape)}, dtype={self.dtype})"

    def _each(self, function):
        return ComplexTensor(function(self.real), function(self.imag))

    def to(self, *args, **kwargs):
        """`to` of torch's tensors on both parts; of arrays of NumPy `to(dtype)`."""
        return self._each(lambda x: x.to(*args, **kwargs) if _is_torch(x) else x.astype(to_dtype(*args)))

    def clone(self):
        """A copy."""
        return self._each(lambda x: x.clone() if _is_torch(x) else x.copy())

    def reshape(self, *shape):
        """Both parts in another shape."""
        return self._each(lambda x: x.reshape(*shape))

    def transpose(self, dim0, dim1):
        """Two dimensions exchanged."""
        return self._each(lambda x: x.transpose(dim0, dim1) if _is_torch(x) else x.swapaxes(dim0, dim1))

    def unsqueeze(self, dim):
        """With a dimension of extent 1 more."""
        import numpy as np
        return self._each(lambda x: x.unsqueeze(dim) if _is_torch(x) else np.expand_dims(x, dim))

    def squeeze(self, dim=None):
        """Without dimensions of extent 1, or without one of them."""
        return self._each(lambda x: x.squeeze() if dim is None else x.squeeze(dim))


def of_array(array, kind, dtype=None):
    """A ComplexTensor of a kind from an array of complex numbers; dtype: of its parts, where that is another."""
    import numpy as np
    if dtype is not None and np.dtype(dtype) != array.real.dtype:
        return ComplexTensor(*(back(np.ascontiguousarray(x.astype(dtype)), kind) for x in (array.real, array.imag)))
    return ComplexTensor(back(array, kind))


def _followed(x):
    from ._derivative import followed
    return followed(x)


def complex_matmul(a, b):
    """The product of matrices, or of stacks of them, by one kernel."""
    for x, name in ((a, "a"), (b, "b")):
        if not isinstance(x, ComplexTensor):
            raise ArgumentError(f"complex_matmul: {name} is a {type(x).__name__}, not a ComplexTensor", name)
    if _is_torch(a._first) and (_followed(a) or _followed(b)):
        from ..torch import einsum as torch_einsum
        return ComplexTensor(torch_einsum("...ij,...jk->...ik", a.to_torch_complex(), b.to_torch_complex()))
    narrow = array_of(a._first[:0], "a").dtype if a._planes is not None else None
    return of_array(einsum("...ij,...jk->...ik", a.array(), b.array()), kind_of([a._first, b._first]), narrow)
