/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum strings that are easily got wrong (einsum/cases.txt): each becomes a graph or is refused, and gives its recorded
 * sums of integers. Those of public test suites are in tests/einsum. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "front/equation.h"
#include "graph/build.h"
#include "support.h"
#include "support/places.h"

#define MOST_POINTS 300000 /* of the iteration space, for the interpreter */

typedef struct Case {
    char id[16], what[16], sum[32], wsum[32], shape[256];
    uint32_t n;
    char shapes[4096];
    char *equation;
} Case;

static bool case_parse(char *line, Case *c)
{
    char *field[8];
    line[strcspn(line, "\n")] = '\0';
    if (line[0] == '#') {
        return false;
    }
    for (int k = 0; k < 8; k++) {
        field[k] = line;
        char *tab = strchr(line, '\t');
        if (k < 7) {
            assert_non_null(tab);
            *tab = '\0';
            line = tab + 1;
        }
    }
    snprintf(c->id, sizeof c->id, "%s", field[0]);
    snprintf(c->what, sizeof c->what, "%s", field[1]);
    snprintf(c->sum, sizeof c->sum, "%s", field[2]);
    snprintf(c->wsum, sizeof c->wsum, "%s", field[3]);
    snprintf(c->shape, sizeof c->shape, "%s", field[4]);
    c->n = (uint32_t)strtoul(field[5], NULL, 10);
    snprintf(c->shapes, sizeof c->shapes, "%s", field[6]);
    c->equation = field[7];
    return true;
}

static TensorType shape_parse(Arena *a, const char *text)
{
    TensorType t = {DTYPE_I64, 0, NULL};
    Dim *dims = ARENA_ARRAY(a, 64, Dim);
    for (const char *at = text; *at != '\0' && *at != '-';) {
        char *end = NULL;
        dims[t.rank++] = dim_fixed(strtoll(at, &end, 10));
        at = *end == 'x' ? end + 1 : end;
    }
    t.dims = dims;
    return t;
}

static Module *case_module(Bench *b, const Case *c)
{
    TensorType *operand = ARENA_ARRAY(&b->ctx.arena, c->n + 1, TensorType);
    char shapes[sizeof c->shapes];
    snprintf(shapes, sizeof shapes, "%s", c->shapes);
    uint32_t n = 0;
    for (char *s = strtok(shapes, " "); s != NULL; s = strtok(NULL, " ")) {
        operand[n++] = shape_parse(&b->ctx.arena, s);
    }
    assert_int_equal(n, c->n);
    Equation e = {bench_source(b, c->equation), n, operand, DTYPE_I64, NULL};
    return graph_from_equation(&b->ctx, &b->ctx.arena, &e);
}

static bool is_small(const Graph *g)
{
    for (uint32_t k = 0; k < g->nodes.n; k++) {
        int64_t points = 1;
        for (uint32_t l = 0; l < g->nodes.at[k].n_labels; l++) {
            points = sat_mul(points, g->nodes.at[k].extent[l].n);
        }
        if (points > MOST_POINTS) {
            return false;
        }
    }
    return true;
}

static void check_value(Bench *b, const Case *c, const Graph *g)
{
    Arena *a = &b->ctx.arena;
    Tensor **args = ARENA_ARRAY(a, g->params.n + 1, Tensor *);
    Tensor *result = NULL;
    for (uint32_t k = 0; k < g->params.n; k++) {
        const Param *p = &g->params.at[k];
        int64_t *extent = ARENA_ARRAY(a, p->rank + 1, int64_t);
        for (uint32_t d = 0; d < p->rank; d++) {
            extent[d] = p->shape[d].n;
        }
        args[k] = tensor_new(&b->ctx, a, DTYPE_I64, p->rank, extent);
        for (int64_t n = 0; n < args[k]->count; n++) {
            tensor_set(args[k], n,
                       number_int(DTYPE_I64, (7 * n + 13 * (int64_t)k + 3) % 11 - 5));
        }
    }
    assert_true(graph_eval(&b->ctx, a, g, NULL, args, &result));
    int64_t sum = 0, wsum = 0;
    for (int64_t i = 0; i < result->count; i++) {
        int64_t v = tensor_get(result, i).i;
        sum += v;
        wsum += v * (i % 97 + 1);
    }
    if (sum != strtoll(c->sum, NULL, 10) || wsum != strtoll(c->wsum, NULL, 10)) {
        fail_msg("%s '%s': sum %lld wsum %lld, not %s %s", c->id, c->equation, (long long)sum,
                 (long long)wsum, c->sum, c->wsum);
    }
}

static void check_shape(Bench *b, const Case *c, const Graph *g)
{
    TensorType want = shape_parse(&b->ctx.arena, c->shape);
    const Node *n = graph_node(g, g->results.at[0].node);
    assert_int_equal(n->rank, want.rank);
    for (uint32_t d = 0; d < want.rank; d++) {
        assert_true(dim_eq(n->shape[d], want.dims[d]));
    }
}

static void einsum_strings_mean_what_numpy_says(void **state)
{
    FILE *f = fopen(source_file("tests/graph/einsum/cases.txt"), "r");
    assert_non_null(f);
    static char line[1 << 16];
    int ok = 0, run = 0, refused = 0;
    while (fgets(line, sizeof line, f) != NULL) {
        static Case c;
        if (!case_parse(line, &c)) {
            continue;
        }
        Bench *b = bench_new();
        Module *m = case_module(b, &c);
        if (strcmp(c.what, "error") == 0) {
            if (m != NULL || b->ctx.diags.n_errors == 0) {
                fail_msg("%s '%s' is accepted", c.id, c.equation);
            }
            refused++;
        } else {
            if (m == NULL) {
                fail_msg("%s '%s' is refused:\n%s", c.id, c.equation, bench_messages(b));
            }
            const Graph *g = m->graphs.at[0];
            assert_true(graph_verify(&b->ctx, g, "build"));
            ok++;
            if (strcmp(c.what, "ok") == 0) {
                check_shape(b, &c, g);
                if (is_small(g)) {
                    check_value(b, &c, g);
                    run++;
                }
            }
        }
        bench_free(b);
    }
    fclose(f);
    assert_int_equal(ok, 23);
    assert_int_equal(refused, 6);
    assert_int_equal(run, 23);
}

TESTS(TEST(einsum_strings_mean_what_numpy_says))
