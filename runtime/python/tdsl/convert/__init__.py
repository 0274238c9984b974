# SPDX-License-Identifier: Apache-2.0
"""Programs from other notations: each function returns a `Converted`, whose text is a .tdsl to be edited. docs/python.md has a section on them, and
`python -m tdsl.convert --help` is their command line."""
from ._einsum_list import from_einsum_list
from ._jaxpr import from_jaxpr
from ._onnx import from_onnx
from ._pdaggerq import from_pdaggerq
from ._text import Converted

__all__ = ["Converted", "from_einsum_list", "from_jaxpr", "from_onnx", "from_pdaggerq"]
