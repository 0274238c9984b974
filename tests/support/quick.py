# SPDX-License-Identifier: Apache-2.0
"""The quick set (ctest --preset quick) sets TDSL_QUICK: long tests then do a share of their work."""
import os

QUICK = "TDSL_QUICK" in os.environ


def share(items, quick, first=0):
    """All items, or in the quick set every `quick`th, beginning with one of the first of them."""
    return list(items)[first % quick::quick] if QUICK else list(items)
