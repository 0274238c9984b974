/* SPDX-License-Identifier: Apache-2.0 */
/* Ways to compute a contraction, and how long they take (roles.c, staged.c): estimates, in nanoseconds. */
#ifndef BACKEND_NKI_ROLES_H
#define BACKEND_NKI_ROLES_H

#include "backend/nki/contract.h"

/* The contraction as it is shaped. `run`: elements that are stored together, where a stage collects them; or 0. */
double contract_price(const Contraction *c, int64_t run);
/* The label that has the partitions where a stage is quicker than *ns, and how long that takes; LABELS: none. */
uint32_t stage_row(Lower *l, const Stmt *s, double *ns);

#endif
