/* SPDX-License-Identifier: Apache-2.0 */
/* The price of dense steps (lower/dense.c): what lies in a block on the diagonal is computed row by row, the rest by products.
 *
 *     multiply-adds of n rows in blocks of B    factored         solved           all
 *     cholesky                                  n * B * B / 6    n * n * B / 4    n * n * n / 6
 *     solve, of each right side                 0                n * B / 2        n * n / 2 */
#include <math.h>

#include "nest/estimate.h"
#include "nest/price_leaf.h"

/* Seconds of a multiply-add within a block, in those of one in a full register tile: rows of a triangle are short, and each waits for
 * the one before. Measured: cholesky and as many right sides of 64 to 1024 rows, and thousands of 16 x 16, f64. */
#define FACTORED 6.0
#define SOLVED   2.5

typedef struct Work {
    double batches, rows, columns; /* right sides; of a cholesky 0 */
} Work;

static Work work_of(const Graph *g, const Node *n)
{
    const Node *matrix = graph_node(g, n->operand[0]);
    Work w = {1.0, (double)nest_typical(g, matrix->shape[matrix->rank - 1]), 0.0};
    for (uint32_t d = 0; d + 2 < matrix->rank; d++) {
        w.batches *= (double)nest_typical(g, n->shape[d]);
    }
    if (n->op != OP_CHOLESKY) {
        w.columns = 1.0;
        for (uint32_t d = matrix->rank - 1; d < n->rank; d++) {
            w.columns *= (double)nest_typical(g, n->shape[d]);
        }
    }
    return w;
}

double dense_seconds(const Machine *m, const Graph *g, const Node *n)
{
    Work w = work_of(g, n);
    double block = fmin(w.rows, DENSE_BLOCK), all, solved, factored = 0.0;
    if (n->op == OP_CHOLESKY) {
        all = w.rows * w.rows * w.rows / 6.0;
        factored = w.rows * block * block / 6.0;
        solved = (w.rows - block) * w.rows * block / 4.0;
    } else {
        all = w.rows * w.rows * w.columns / 2.0;
        solved = w.rows * block * w.columns / 2.0;
    }
    double each = m->time.multiply_add * (double)dtype_bytes(n->acc) / 4.0;
    double products = fmax(all - solved - factored, 0.0);
    return m->time.statement +
           w.batches * (products + SOLVED * solved + FACTORED * factored) * each;
}

double dense_path(const Machine *m, const Graph *g, const Node *n, double seconds)
{
    Work w = work_of(g, n);
    double blocks = ceil(w.rows / DENSE_BLOCK);
    if (w.batches > 1.0) {
        return price_shared(m, seconds, 1.0, w.batches);
    }
    if (n->op ==
        OP_CHOLESKY) { /* behind each block its panel, and then what is right of that */
        return price_shared(m, seconds, 2.0 * blocks, blocks / 2.0);
    }
    return price_shared(m, seconds, 1.0, ceil(w.columns / DENSE_BLOCK));
}

const char *dense_share(const Graph *g, const Node *n)
{
    Work w = work_of(g, n);
    return w.batches > 1.0        ? "batches"
           : n->op == OP_CHOLESKY ? "rows behind each block"
                                  : "right sides";
}
