/* SPDX-License-Identifier: Apache-2.0 */
/* Sums that nobody has written. */
#ifndef FRONT_CHECK_SUMS_H
#define FRONT_CHECK_SUMS_H

#include "front/check_types.h"

/* ---- check_sums.c ---- */
/* Wraps the silent sums of a term in a reduction; `lone`: the term is the whole right side. */
CheckedExpr *sums_explicit(Kern *k, CheckedExpr *term, uint32_t first_label, bool lone);
/* Over these labels, which are kept; of bool it is whether any is true. */
CheckedExpr *sum_over(Kern *k, CheckedExpr *e, int32_t *label, uint32_t n);
/* Of indices that occur once and are summed silently, in a statement that is right otherwise. */
void sums_warn(Kern *k);
/* After the last of several terms: an index that one sums with extent 1 stretches to its extent in others. False after a
 * report. */
bool sums_agree(Kern *k);

#endif
