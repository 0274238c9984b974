# SPDX-License-Identifier: Apache-2.0
"""Contraction orders for opt_einsum. `import tdsl` makes `optimize="tdsl"` a choice of opt_einsum by this module; its `backend="tdsl"` needs nothing.

    import tdsl
    opt_einsum.contract("ij,jk,kl->il", A, B, C, optimize="tdsl", backend="tdsl")
"""
from opt_einsum.paths import PathOptimizer, get_path_fn, register_path_fn

from . import _network

__all__ = ["Optimizer", "path", "register"]


class Optimizer(PathOptimizer):
    """A search as opt_einsum's `optimize=` takes it: `Optimizer(objective="size", effort=4)`, with the options of `tdsl.path`."""

    def __init__(self, **options):
        self.options = options

    def __call__(self, inputs, output, size_dict, memory_limit=None):
        """Pairs of positions. memory_limit: the most elements of an intermediate, inputs included; what does not fit is contracted at
        once, as opt_einsum's own searches do it."""
        return _network.search(inputs, output, size_dict, memory_limit, slices=False, **self.options).path


path = Optimizer()


def register(name="tdsl"):
    """Makes `optimize=name` a choice of opt_einsum."""
    try:
        get_path_fn(name)
    except KeyError:
        register_path_fn(name, path)


register()
