/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrences in the text of a graph, before its values:
 *
 *     recurrence 0 of t given 1 backward operands 3 {
 *       param state 0
 *       param each 1 along 0
 *       param whole 2
 *       param number
 *       first 0 1
 *       kernel step {
 *         ...
 *       }
 *     }
 *
 * `first`: of each result, the operands at the positions that are given. */
#include "graph/recurrence.h"

static const char *const role_names[] = {[STEPS_STATE] = "state",
                                         [STEPS_PRIOR] = "prior",
                                         [STEPS_EACH] = "each",
                                         [STEPS_WHOLE] = "whole",
                                         [STEPS_NUMBER] = "number"};

void recurrence_dump(const Graph *g, uint32_t number, Text *out)
{
    const Recurrence *r = g->recurrences.at[number];
    text_printf(out, "recurrence %u of ", number);
    dump_dim(out, &g->dims, r->extent);
    if (r->given > 0) {
        text_printf(out, " given %u", r->given);
    }
    text_put(out, r->backward ? " backward" : "");
    text_printf(out, " operands %u {\n", r->n_operands);
    out->indent++;
    for (uint32_t k = 0; k < r->body->params.n; k++) {
        const StepsParam *p = &r->param[k];
        text_printf(out, "param %s", role_names[p->role]);
        if (p->role != STEPS_NUMBER) {
            text_printf(out, " %u", p->operand);
        }
        if (p->role == STEPS_EACH) {
            text_printf(out, " along %u", p->dim);
        }
        if (p->role == STEPS_PRIOR) {
            text_printf(out, " result %u lag %u", p->result, p->lag);
        }
        text_char(out, '\n');
    }
    for (uint32_t k = 0; k < r->body->results.n * r->given; k++) {
        text_printf(out, k == 0 ? "first %u" : " %u", r->first[k]);
    }
    text_put(out, r->given > 0 ? "\n" : "");
    graph_dump(r->body, out);
    out->indent--;
    text_put(out, "}\n");
}

/* ---- the way back ---- */

static bool read_number_below(DumpReader *in, Cursor *c, int64_t most, uint32_t *out)
{
    const Term *t = cursor_expect(c, TERM_INT, NULL, "a number");
    if (t != NULL && (t->value < 0 || t->value >= most)) {
        return dump_refuse(in->ctx, t->span, "this number is too large");
    }
    *out = t == NULL ? 0 : (uint32_t)t->value;
    return t != NULL;
}

static bool read_head(DumpReader *in, const DumpLine *line, Graph *g, Recurrence *r)
{
    Cursor c = cursor_line(in->ctx, line);
    uint32_t number = 0;
    (void)cursor_take(&c, TERM_NAME, "recurrence");
    if (!read_number_below(in, &c, UINT32_MAX, &number) ||
        cursor_expect(&c, TERM_NAME, "of", "'of'") == NULL) {
        return false;
    }
    if (number != g->recurrences.n) {
        return dump_refuse(in->ctx, line->span, "recurrences are numbered in order");
    }
    const Term *t = cursor_peek(&c);
    if (t == NULL || !read_dim(in, t, &r->extent)) {
        return t != NULL ||
               dump_refuse(in->ctx, cursor_place(&c), "an extent is expected here");
    }
    c.at++;
    if (cursor_take(&c, TERM_NAME, "given") &&
        !read_number_below(in, &c, STEPS_LAG + 1, &r->given)) {
        return false;
    }
    r->backward = cursor_take(&c, TERM_NAME, "backward");
    return cursor_expect(&c, TERM_NAME, "operands", "'operands'") != NULL &&
           read_number_below(in, &c, UINT32_MAX, &r->n_operands) && cursor_expect_end(&c);
}

static bool read_param(DumpReader *in, Cursor *c, StepsParam *p)
{
    p->role = STEPS_STATE;
    while (p->role <= STEPS_NUMBER && !cursor_take(c, TERM_NAME, role_names[p->role])) {
        p->role++;
        if (p->role > STEPS_NUMBER) {
            return dump_refuse(in->ctx, cursor_place(c),
                               "state, prior, each, whole or number is expected here");
        }
    }
    if (p->role != STEPS_NUMBER && !read_number_below(in, c, UINT32_MAX, &p->operand)) {
        return false;
    }
    if (p->role == STEPS_PRIOR && (cursor_expect(c, TERM_NAME, "result", "'result'") == NULL ||
                                   !read_number_below(in, c, UINT32_MAX, &p->result) ||
                                   cursor_expect(c, TERM_NAME, "lag", "'lag'") == NULL ||
                                   !read_number_below(in, c, STEPS_LAG + 1, &p->lag))) {
        return false;
    }
    return (p->role != STEPS_EACH || (cursor_expect(c, TERM_NAME, "along", "'along'") != NULL &&
                                      read_number_below(in, c, RANK_LIMIT, &p->dim))) &&
           cursor_expect_end(c);
}

typedef struct Read {
    VEC(StepsParam) param;
    VEC(uint32_t) first;
} Read;

static bool read_body_line(DumpReader *in, Arena *scratch, const DumpLine *line, Read *read,
                           Recurrence *r)
{
    Cursor c = cursor_line(in->ctx, line);
    if (line->has_block) {
        if (r->body != NULL) {
            return dump_refuse(in->ctx, line->span, "a recurrence has one body");
        }
        DimTable *dims = in->dims;
        Map number = in->dim_number;
        uint32_t home = in->home;
        r->body = graph_read(in, scratch, line);
        in->dims = dims;
        in->dim_number = number;
        in->home = home;
        return r->body != NULL;
    }
    if (cursor_take(&c, TERM_NAME, "param")) {
        StepsParam p = {.role = STEPS_STATE};
        bool ok = read_param(in, &c, &p);
        vec_push(in->arena, &read->param, p);
        return ok;
    }
    if (cursor_expect(&c, TERM_NAME, "first", "param, first or the kernel of a step") == NULL) {
        return false;
    }
    while (!cursor_done(&c)) {
        uint32_t operand = 0;
        if (!read_number_below(in, &c, UINT32_MAX, &operand)) {
            return false;
        }
        vec_push(in->arena, &read->first, operand);
    }
    return true;
}

bool recurrence_read(DumpReader *in, Arena *scratch, Graph *g, const DumpLine *line)
{
    Recurrence *r = ARENA_NEW(in->arena, Recurrence);
    Read read = {0};
    bool ok = read_head(in, line, g, r);
    for (uint32_t k = 0; ok && k < line->n_body; k++) {
        ok = read_body_line(in, scratch, line->body[k], &read, r);
    }
    if (!ok) {
        return false;
    }
    if (r->body == NULL || read.param.n != r->body->params.n ||
        read.first.n != r->body->results.n * r->given) {
        return dump_refuse(in->ctx, line->span,
                           "a recurrence has a kernel of one step, and says of each of its "
                           "parameters what it is and of each result how it begins");
    }
    r->param = read.param.at;
    r->first = read.first.at;
    vec_push(g->arena, &g->recurrences, r);
    return true;
}
