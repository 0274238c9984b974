# SPDX-License-Identifier: Apache-2.0
"""Programs from other notations: each function returns a `Converted`, whose text is a .tdsl to be edited. docs/python.md has a section on them."""
from ._jaxpr import from_jaxpr
from ._text import Converted

__all__ = ["Converted", "from_jaxpr"]
