/* SPDX-License-Identifier: Apache-2.0 */
/* The tests of opt read, run and print graphs as those of ir do. */
#include "../graph/support.c"
