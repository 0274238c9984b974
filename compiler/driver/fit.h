/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that come from outside, checked: one that an element type cannot hold is refused, not wrapped, truncated or
 * stripped of its imaginary part. Floats may round. */
#ifndef DRIVER_FIT_H
#define DRIVER_FIT_H

#include "base/text.h"
#include "op/number.h"

/* Null when a cast loses no more than what rounding does, whatever the number is; else why not. */
const char *fit_types(DType from, DType to);
/* The same for one number: `v` as `to` in *out, or why it does not fit. */
const char *fit_number(Number v, DType to, Number *out);
/* An argument of the command line. As for a literal of the language, no number becomes an infinity, and none but 0
 * becomes 0. */
const char *fit_text(const char *text, DType to, Number *out);
/* Is it the text of a scalar: a number, one with an imaginary part (2j, 1-2j), true or false? */
bool fit_is_text(const char *text);

#endif
