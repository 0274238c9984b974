/* SPDX-License-Identifier: Apache-2.0 */
/* The sums of contractions of tests/nest. */
#include "../nest/support_terms.c"
