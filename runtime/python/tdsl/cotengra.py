# SPDX-License-Identifier: Apache-2.0
"""Contraction trees for cotengra. Importing this module makes `optimize="tdsl"` a preset of cotengra, and of opt_einsum if that is installed.

    import tdsl.cotengra
    tree = cotengra.array_contract_tree(inputs, output, size_dict, optimize="tdsl")
    tree.contract(arrays, implementation=tdsl.cotengra.implementation)
"""
import cotengra

from . import _network
from ._contract import tensordot
from ._einsum import einsum

__all__ = ["Optimizer", "implementation", "register"]

# What cotengra's `implementation=` takes.
implementation = (einsum, tensordot)


class Optimizer:
    """A search as cotengra's `optimize=` takes it, with the options of `tdsl.path`: `Optimizer(memory_limit=2**27)`, whose trees are sliced
    so that no tensor has more elements."""

    def __init__(self, **options):
        self.options = options

    def __call__(self, inputs, output, size_dict, memory_limit=None):
        """Pairs of positions; memory_limit as in opt_einsum."""
        return tuple(_network.search(inputs, output, size_dict, memory_limit, slices=False, **self.options).path)

    def search(self, inputs, output, size_dict):
        """A ContractionTree, its slices included."""
        found = _network.search(inputs, output, size_dict, **self.options)
        tree = cotengra.ContractionTree.from_path(inputs, output, size_dict, path=found.path)
        for label in found.sliced:
            tree.remove_ind_(label)
        return tree


def register(name="tdsl", **options):
    """Makes `optimize=name` a preset; options as of `tdsl.path`."""
    optimizer = Optimizer(**options)
    cotengra.register_preset(name, optimizer, optimizer.search)


register()
