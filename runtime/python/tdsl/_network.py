# SPDX-License-Identifier: Apache-2.0
"""Contraction orders of networks whose labels are any hashable things, as other packages hand them over."""
import json

from . import _tools
from ._path import Path


def search(inputs, output, sizes, memory_limit=None, slices=True, **options):
    """The Path of a network: `inputs`, a collection of labels for each operand; `output`, one; `sizes`, the extent of each label.

    options: as `tdsl.path` has them. memory_limit: the most elements of a tensor. What does not fit is sliced, and `sliced` has the labels;
    without slices the last step takes all operands that are left at once, as opt_einsum does it.
    """
    labels = list(dict.fromkeys(label for term in inputs for label in term))
    number = {label: k for k, label in enumerate(labels)}
    network = {"inputs": [[number[label] for label in term] for term in inputs], "output": sorted(number[label] for label in output),
               "sizes": [int(sizes[label]) for label in labels]}
    if memory_limit is not None:
        options["memory_limit"] = int(memory_limit)
    words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items() if value is not None]
    text = _tools.run(_tools.tdslc(), ["--emit=path", "--report=json", "-w", *words, "--network=-"], json.dumps(network))
    found = Path(json.loads(text))
    found.sliced = [labels[pair[0]] for pair in found.sliced]
    if found.sliced and not slices:
        found.path, found.sliced = _cut(found.path, inputs, output, sizes, memory_limit), []
    return found


def _cut(path, inputs, output, sizes, memory_limit):
    """The steps until a result has more elements than the limit, and one for the rest."""
    terms = [frozenset(term) for term in inputs]
    for k, step in enumerate(path[:-1]):
        taken = [terms.pop(n) for n in sorted(step, reverse=True)]
        kept = frozenset().union(*taken) & frozenset(output).union(*terms)
        elements = 1
        for label in kept:
            elements *= sizes[label]
        if elements > memory_limit:
            return path[:k] + [tuple(range(len(terms) + len(taken)))]
        terms.append(kept)
    return path
