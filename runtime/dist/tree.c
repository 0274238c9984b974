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

int64_t tdsl_tree_push(const tdsl_threads *threads, const tdsl_dist_value *v, TreeNode *nodes,
                       int64_t n, TreeNode node, int64_t count)
{
    nodes[n++] = node;
    while (n > 1 && joins(&nodes[n - 2], &nodes[n - 1])) {
        if (nodes[n - 2].data != NULL) {
            tdsl_fold_shared(threads, v->dtype, v->fold, nodes[n - 2].data, nodes[n - 1].data,
                             count);
        }
        nodes[n - 2].level++;
        n--;
    }
    return n;
}

int64_t tdsl_tree_nodes(const Setting *s, const tdsl_dist_value *v, int32_t rank,
                        TreeNode *nodes, int64_t *most)
{
    Leaves l;
    int64_t n = 0;
    bool any = tdsl_leaves_begin(s, v->n_over, v->over, rank, &l);
    for (*most = 0; any; any = tdsl_leaves_next(&l)) {
        TreeNode leaf = {tdsl_leaves_number(&l), 0, NULL};
        *most = n + 1 > *most ? n + 1 : *most;
        n = tdsl_tree_push(NULL, v, nodes, n, leaf, 0);
    }
    return n;
}

static int compare(const void *x, const void *y)
{
    const TreeNode *a = x, *b = y;
    return (a->first > b->first) - (a->first < b->first);
}

void tdsl_tree_fold(const tdsl_threads *threads, const tdsl_dist_value *v, TreeNode *nodes,
                    int64_t n, int64_t count)
{
    int64_t made = 0;
    qsort(nodes, (size_t)n, sizeof *nodes, compare);
    for (int64_t k = 0; k < n; k++) {
        made = tdsl_tree_push(threads, v, nodes, made, nodes[k], count);
    }
    for (; made > 1; made--) {
        tdsl_fold_shared(threads, v->dtype, v->fold, nodes[made - 2].data, nodes[made - 1].data,
                         count);
    }
}
