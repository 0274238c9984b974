/* SPDX-License-Identifier: Apache-2.0 */
/* The random graphs of tests/nest. */
#include "../nest/support_graphs.c"
