/* SPDX-License-Identifier: Apache-2.0 */
/* `tdslc fmt`: one layout of a program. Tokens and comments stay as they are, and in their order; blanks, line breaks and
 * empty lines are made. What it prints it leaves as it is when it reads it again. */
#ifndef FRONT_FORMAT_H
#define FRONT_FORMAT_H

#include "base/ctx.h"

/* False after a message: a text that does not follow the grammar has no layout. */
bool source_format(Ctx *ctx, uint32_t source, Text *out);

#endif
