# SPDX-License-Identifier: Apache-2.0
"""Stands for the real one, as far as build_neff.py needs it: 16 bits."""
import numpy

bfloat16 = numpy.uint16
