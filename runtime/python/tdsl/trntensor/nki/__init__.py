# SPDX-License-Identifier: Apache-2.0
"""The backend of trntensor."""
from .dispatch import get_backend, set_backend

__all__ = ["HAS_NKI", "get_backend", "set_backend"]


def __getattr__(name):
    from . import dispatch
    return getattr(dispatch, name)
