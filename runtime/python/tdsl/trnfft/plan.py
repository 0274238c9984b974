# SPDX-License-Identifier: Apache-2.0
"""How a length is transformed."""
import dataclasses
import enum
import functools

from .. import _fft
from .._errors import ArgumentError



class FFTAlgorithm(enum.Enum):
    """COOLEY_TUKEY: a chain of steps, one for each factor; BLUESTEIN: a convolution of a longer length."""
    COOLEY_TUKEY = 1
    BLUESTEIN = 2


@dataclasses.dataclass(frozen=True)
class FFTPlan:
    """radices: the factors of n, or of padded_n where the algorithm is BLUESTEIN."""
    n: int
    algorithm: FFTAlgorithm
    inverse: bool
    padded_n: "int | None" = None
    radices: "tuple[int, ...]" = ()

    @property
    def is_power_of_2(self):
        """Is n one?"""
        return self.n & (self.n - 1) == 0

    @property
    def multiply_adds(self):
        """Of complex numbers, for one row, those with roots included."""
        steps = sum(self.radices) + len(self.radices) - 1
        return self.n * steps if self.padded_n is None else self.padded_n * (2 * steps + 1) + 2 * self.n


@functools.lru_cache(maxsize=4096)
def _plan(n, inverse):
    radices = _fft.factors(n)
    if radices is not None:
        return FFTPlan(n, FFTAlgorithm.COOLEY_TUKEY, inverse, None, radices)
    m = _fft.padded(n)
    return FFTPlan(n, FFTAlgorithm.BLUESTEIN, inverse, m, _fft.factors(m))


def create_plan(n, inverse=False):
    """The FFTPlan of a length, the same object each time."""
    if n < 1:
        raise ArgumentError(f"create_plan: n is {n}", "n")
    return _plan(int(n), bool(inverse))


def clear_plan_cache():
    """Forgets plans and the tables of roots of unity."""
    _plan.cache_clear()
    _fft.forget()
