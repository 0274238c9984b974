/* SPDX-License-Identifier: Apache-2.0 */
/* See clauses.h. */
#include "loop/clauses.h"

#define OF_TILE                  STMT_TILE, false
#define OF_MORE                  STMT_TILE, true
#define OF_ALLOC                 STMT_ALLOC, false
#define OPERAND_FLAG(s, field)   .flag = &(s)->field
#define OPERAND_NUMBER(s, field) .number = &(s)->field
#define OPERAND_INDEX(s, field)  .index = &(s)->field
#define OPERAND_BUFFER(s, field) .buf = &(s)->field
#define OPERAND_ACCESS(s, field) .buf = &(s)->field, .at = &(s)->field##_at
#define OPERAND_LOOPS(s, field)  .n_loops = &(s)->n_##field, .loop = &(s)->field

void clauses_all(Stmt *s, Buffer *declared, Clauses *out)
{
    Buffer none = {0};
    Buffer *b = s->kind == STMT_ALLOC ? declared : &none;
    const Clause all[] = {
#define BUFFER_CLAUSE(word, operand, field, expected)                                          \
    {OF_ALLOC, 0, word, expected, OPERAND_##operand(b, field)},
#define STMT_CLAUSE(of, word, operand, field, expected, problem)                               \
    {OF_##of, 0, word, expected, OPERAND_##operand(s, field)},
#include "loop/clauses.def"
    };
    out->n = 0;
    for (uint32_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i].of == s->kind) {
            CHECK(out->n < CLAUSES_LIMIT);
            out->at[out->n] = all[i];
            out->at[out->n++].row = i;
        }
    }
}

static bool is_there(const Clause *c)
{
    const uint32_t *number = c->index != NULL ? c->index : c->buf != NULL ? c->buf : c->n_loops;
    return c->flag != NULL ? *c->flag : c->number != NULL ? *c->number != 0 : *number != 0;
}

void clauses_of(const Kernel *k, const Stmt *s, Clauses *out)
{
    uint32_t n = 0;
    bool there = false;
    clauses_all((Stmt *)(uintptr_t)s, s->kind == STMT_ALLOC ? &k->bufs.at[s->buf] : NULL, out);
    for (uint32_t i = 0; i < out->n; i++) {
        there = (there || !out->at[i].more) && is_there(&out->at[i]);
        if (there) {
            out->at[n++] = out->at[i];
        }
    }
    out->n = n;
}
