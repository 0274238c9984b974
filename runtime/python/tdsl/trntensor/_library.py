# SPDX-License-Identifier: Apache-2.0
"""The settings of trntensor's functions."""
from .._trnsci import Library

library = Library("trntensor")
