# SPDX-License-Identifier: Apache-2.0
"""There is no trnsparse here: importing this says why, and what to use."""
raise ImportError("tdsl has no trnsparse: its kernels take dense arrays, and a format of sparse matrices would be a layer around them that scipy.sparse has. In kernels sparse "
                  "matrices are arrays of positions, `Y[row[k],e] += a[k] * X[col[k],e]`, blocks and masks; docs/trnsparse.md of TDSL has a kernel for each of its functions")
