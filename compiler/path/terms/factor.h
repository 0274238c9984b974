/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a sum of contractions as planned: what several of them are contracted with is taken out,
 * what is added in several orders of axes is made once. */
#ifndef PATH_TERMS_FACTOR_H
#define PATH_TERMS_FACTOR_H

#include "path/terms/share.h"

/* The node of `to` for sum `sum` of the plan. map: nodes of `to` by node of `from`. The
 * contractions' orders are added to `out`. */
NodeRef factor_sum(Ctx *ctx, Sharing *s, const Graph *from, Graph *to, const NodeRef *map,
                   uint32_t sum, PathDecisions *out);

#endif
