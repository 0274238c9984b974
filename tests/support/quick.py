# SPDX-License-Identifier: Apache-2.0
"""How much of its work a long test does: all of it, the gate's share (tests/run sets TDSL_GATE), or the share of the quick set
(ctest --preset quick sets TDSL_QUICK)."""
import os

QUICK = "TDSL_QUICK" in os.environ
GATE = QUICK or "TDSL_GATE" in os.environ
# Where only values are compared: a quarter of the C compiler's time. `backend.c.*` compile as users do.
CFLAGS = "--cflags=-O0" if GATE else "--cflags=-O2"


def share(items, quick, first=0, gate=1):
    """Every `quick`th item in the quick set, every `gate`th in the gate, beginning with one of the first of them; else all."""
    step = quick if QUICK else gate if GATE else 1
    return list(items)[first % step::step]
