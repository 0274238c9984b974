# SPDX-License-Identifier: Apache-2.0
"""The settings of trnfft's functions."""
from .._trnsci import Library

library = Library("trnfft")
