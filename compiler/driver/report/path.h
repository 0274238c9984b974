/* SPDX-License-Identifier: Apache-2.0 */
/* Contraction orders as pictures. */
#ifndef DRIVER_REPORT_PATH_H
#define DRIVER_REPORT_PATH_H

#include "base/text.h"
#include "path/path.h"

/* The tree of contractions; nothing where it is too large. `number`: of the picture in its page. */
void report_picture_path(const PathProblem *p, const PathResult *r, uint32_t number,
                         Arena *arena, Text *out);
/* --emit=path --report=html */
void path_report_html(const PathProblem *p, const PathResult *r, double seconds, Arena *arena,
                      Text *out);

#endif
