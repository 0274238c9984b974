# SPDX-License-Identifier: Apache-2.0
"""Sizes that open dims are planned for: of those that the program says nothing of, those with which a kernel is called."""
import math

UNSAID = 64  # what tdslc plans for where nothing is said
_FAR = 4  # times larger
_LEAST = 50000  # elements of all arrays, below which a call is over before a plan counts
_MOST_PLANS = 3


def near(n):
    """The power of two nearest to it, so that calls of like sizes share what is compiled."""
    return 1 << max(0, round(math.log2(max(n, 1))))


class Planned:
    """What a kernel with open dims is compiled for, in the course of its calls. `make`: gives a source for sizes by dim; `source`: that for the sizes of
    the program; `typical`: its sizes by dim."""

    def __init__(self, source, typical, make):
        self._source, self._make, self._plans = source, make, 0
        self._typical = dict(typical)
        self._unsaid = {name for name, n in self._typical.items() if n == UNSAID}

    def source_for(self, sizes, elements):
        """The source for a call with these open extents and as many elements in its arrays."""
        unsaid = {name: n for name, n in sizes.items() if name in self._unsaid}
        larger = any(n >= _FAR * self._typical[name] for name, n in unsaid.items())
        if elements >= _LEAST and self._plans < _MOST_PLANS and larger:
            self._plans += 1
            self._typical.update({name: near(max(n, self._typical[name] if self._plans > 1 else 1)) for name, n in unsaid.items()})
            self._source = self._make({name: self._typical[name] for name in sorted(self._unsaid)})
        return self._source
