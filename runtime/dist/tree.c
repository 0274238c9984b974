/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves are combined as a binary tree over their numbers, which is the same whoever has which: a node of level k holds 2^k leaves from a
 * multiple of that on, and what is left at the end is combined from behind. */
#include "walk.h"

#include <stdlib.h>
#include <string.h>

#include "fold.h"

static bool joins(const TreeNode *a, const TreeNode *b)
{
    return a->level == b->level && (a->first >> a->level & 1) == 0 &&
           b->first == a->first + ((int64_t)1 << a->level);
}

int64_t tdsl_tree_push(const tdsl_dist_value *v, TreeNode *nodes, int64_t n, TreeNode node,
                       int64_t count)
{
    nodes[n++] = node;
    while (n > 1 && joins(&nodes[n - 2], &nodes[n - 1])) {
        if (nodes[n - 2].data != NULL) {
            tdsl_fold(v->dtype, v->fold, nodes[n - 2].data, nodes[n - 1].data, count);
        }
        nodes[n - 2].level++;
        n--;
    }
    return n;
}

int64_t tdsl_tree_nodes(const Setting *s, const tdsl_dist_value *v, int32_t rank,
                        TreeNode *nodes, int64_t *most)
{
    int64_t lo[TDSL_DIST_AXES], hi[TDSL_DIST_AXES], all[TDSL_DIST_AXES], at[TDSL_DIST_AXES],
        n = 0;
    *most = 0;
    for (int32_t k = 0; k < v->n_over; k++) {
        const tdsl_dist_cut *cut = &s->dist->cuts[v->over[k]];
        tdsl_cut_leaves(s, v->over[k], rank, &lo[k], &hi[k]);
        all[k] = tdsl_leaves_in(tdsl_extent_of(s, cut->extent), cut->leaves);
        at[k] = lo[k];
        if (lo[k] == hi[k]) {
            return 0;
        }
    }
    for (int32_t k = v->n_over - 1; k >= 0;) {
        TreeNode leaf = {0, 0, NULL};
        for (int32_t i = 0; i < v->n_over; i++) {
            leaf.first = leaf.first * all[i] + at[i];
        }
        *most = n + 1 > *most ? n + 1 : *most;
        n = tdsl_tree_push(v, nodes, n, leaf, 0);
        for (k = v->n_over - 1; k >= 0 && ++at[k] == hi[k]; k--) {
            at[k] = lo[k];
        }
    }
    return n;
}

static int compare(const void *x, const void *y)
{
    const TreeNode *a = x, *b = y;
    return (a->first > b->first) - (a->first < b->first);
}

void tdsl_tree_fold(const tdsl_dist_value *v, TreeNode *nodes, int64_t n, int64_t count)
{
    int64_t made = 0;
    qsort(nodes, (size_t)n, sizeof *nodes, compare);
    for (int64_t k = 0; k < n; k++) {
        made = tdsl_tree_push(v, nodes, made, nodes[k], count);
    }
    for (; made > 1; made--) {
        tdsl_fold(v->dtype, v->fold, nodes[made - 2].data, nodes[made - 1].data, count);
    }
}
