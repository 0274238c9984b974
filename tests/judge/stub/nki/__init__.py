# SPDX-License-Identifier: Apache-2.0
# Stands in for the vendor's package while the second judge reads a kernel; see judge.py.


def jit(f=None, **kw):
    return f
