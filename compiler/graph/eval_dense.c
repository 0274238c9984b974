/* SPDX-License-Identifier: Apache-2.0 */
/* Dense steps as textbooks have them, in f64, rounded in the end. */
#include <math.h>

#include "graph/eval.h"

/* The lower triangle of a matrix of n rows, row by row, in its place. The first pivot that is not above 0, or n. */
static int64_t cholesky(double *a, int64_t n)
{
    int64_t bad = n;
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = j; i < n; i++) {
            double sum = a[i * n + j];
            for (int64_t k = 0; k < j; k++) {
                sum -= a[i * n + k] * a[j * n + k];
            }
            a[i * n + j] = i == j ? sqrt(sum) : sum / a[j * n + j];
            bad = i == j && !(sum > 0) && j < bad ? j : bad;
        }
    }
    return bad;
}

/* A triangle: its equation p is sum over q of at(p, q) * x[q] = b[p]. */
typedef struct Equations {
    const Tensor *of;
    int64_t from, n; /* where the matrix begins, and how many rows it has */
    bool upper, transposed;
} Equations;

static double element(const Equations *t, int64_t p, int64_t q)
{
    return tensor_get(t->of, t->from + (t->transposed ? q * t->n + p : p * t->n + q)).re;
}

static void solve(const Equations *t, double *x)
{
    bool backward = t->upper != t->transposed;
    for (int64_t k = 0; k < t->n; k++) {
        int64_t p = backward ? t->n - 1 - k : k;
        double sum = x[p];
        for (int64_t i = 0; i < k; i++) {
            int64_t q = backward ? t->n - 1 - i : i;
            sum -= element(t, p, q) * x[q];
        }
        x[p] = sum / element(t, p, p);
    }
}

void dense_eval(Ctx *ctx, Arena *scratch, Op op, const Tensor *matrix, const Tensor *right,
                Tensor *to)
{
    int64_t n = matrix->extent[matrix->rank - 1];
    int64_t batch = n == 0 ? 0 : matrix->count / (n * n);
    int64_t columns = batch == 0 ? 0 : to->count / (batch * n);
    double *x = ARENA_ARRAY(scratch, (size_t)(op == OP_CHOLESKY ? n * n : n), double);
    for (int64_t b = 0; b < batch && op == OP_CHOLESKY; b++) {
        for (int64_t i = 0; i < n * n; i++) {
            x[i] = tensor_get(matrix, b * n * n + i).re;
        }
        int64_t pivot = cholesky(x, n), code = b << 31 | pivot;
        ctx->indefinite = pivot < n && code < ctx->indefinite ? code : ctx->indefinite;
        for (int64_t i = 0; i < n * n; i++) {
            tensor_set(to, b * n * n + i, number_real(to->dtype, i % n > i / n ? 0 : x[i]));
        }
    }
    for (int64_t b = 0; b < batch && op != OP_CHOLESKY; b++) {
        const Equations t = {matrix, b * n * n, n, op_info(op)->upper, op_info(op)->transposed};
        for (int64_t c = 0; c < columns; c++) {
            for (int64_t i = 0; i < n; i++) {
                x[i] = tensor_get(right, (b * n + i) * columns + c).re;
            }
            solve(&t, x);
            for (int64_t i = 0; i < n; i++) {
                tensor_set(to, (b * n + i) * columns + c, number_real(to->dtype, x[i]));
            }
        }
    }
}
