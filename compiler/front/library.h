/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels that the compiler brings along: `include <nn.tdsl>`. Their texts stand in compiler/library. */
#ifndef FRONT_LIBRARY_H
#define FRONT_LIBRARY_H

#define LIBRARY_NAMES "<nn.tdsl>, <chem.tdsl> and <linalg.tdsl>"

/* Null when there is none of this name. */
const char *library_text(const char *name);

#endif
