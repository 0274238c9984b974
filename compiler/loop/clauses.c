/* SPDX-License-Identifier: Apache-2.0 */
/* See clauses.h. */
#include "loop/clauses.h"

#include "loop/places.h"
#include "loop/term.h"

#define OF_TILE                  STMT_TILE, false
#define OF_MORE                  STMT_TILE, true
#define OF_ALLOC                 STMT_ALLOC, false
#define OPERAND_FLAG(s, field)   .flag = &(s)->field
#define OPERAND_NUMBER(s, field) .number = &(s)->field
#define OPERAND_INDEX(s, field)  .index = &(s)->field
#define OPERAND_BUFFER(s, field) .buf = &(s)->field
#define OPERAND_ACCESS(s, field) .buf = &(s)->field, .at = &(s)->field##_at
#define OPERAND_LOOPS(s, field)  .n_loops = &(s)->n_##field, .loop = &(s)->field

/* All clauses of the statement's kind, there or not. */
static void all_clauses(Stmt *s, Buffer *declared, Clauses *out)
{
    Buffer none = {0};
    Buffer *b = s->kind == STMT_ALLOC ? declared : &none;
    const Clause all[] = {
#define BUFFER_CLAUSE(word, operand, field, expected)                                          \
    {OF_ALLOC, word, expected, no_problem, OPERAND_##operand(b, field)},
#define STMT_CLAUSE(of, word, operand, field, expected, problem)                               \
    {OF_##of, word, expected, problem, OPERAND_##operand(s, field)},
#include "loop/clauses.def"
    };
    out->n = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i].of == s->kind) {
            CHECK(out->n < CLAUSES_LIMIT);
            out->at[out->n++] = all[i];
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
    all_clauses((Stmt *)(uintptr_t)s, s->kind == STMT_ALLOC ? &k->bufs.at[s->buf] : NULL, out);
    for (uint32_t i = 0; i < out->n; i++) {
        there = (there || !out->at[i].more) && is_there(&out->at[i]);
        if (there) {
            out->at[n++] = out->at[i];
        }
    }
    out->n = n;
}

void clauses_dump(const Kernel *k, const Stmt *s, Text *out)
{
    Clauses has;
    clauses_of(k, s, &has);
    for (const Clause *c = has.at; c < has.at + has.n; c++) {
        text_printf(out, " %s", c->word);
        if (c->number != NULL) {
            text_printf(out, " %lld", (long long)*c->number);
        } else if (c->index != NULL) {
            text_char(out, ' ');
            dump_name(out, k->vars.at[s->index[*c->index - 1].var].name);
        } else if (c->at != NULL) {
            text_char(out, ' ');
            loop_text_access(k, *c->buf - 1, *c->at, out);
        } else if (c->buf != NULL) {
            text_put(out, " @");
            dump_name(out, k->bufs.at[*c->buf - 1].name);
        }
        for (uint32_t i = 0; c->loop != NULL && i < *c->n_loops; i++) {
            text_put(out, i == 0 ? " $" : ", $");
            dump_name(out, k->vars.at[(*c->loop)[i]].name);
        }
    }
}

static bool read_index(LoopReader *r, const Term *t, const Stmt *s, uint32_t *out)
{
    VarRef v = 0;
    if (!reader_find_var(r, t, &v)) {
        return false;
    }
    for (*out = 1; *out <= s->n_index && s->index[*out - 1].var != v; ++*out) {
    }
    return *out <= s->n_index ||
           dump_refuse(r->ctx, t->span, "this is an index of the statement");
}

static bool read_loops(LoopReader *r, Cursor *c, Clause *x)
{
    VEC(VarRef) loops = {0};
    do {
        const Term *t = cursor_expect(c, TERM_VAR, NULL, x->expected);
        VarRef v = 0;
        if (t == NULL || !reader_find_var(r, t, &v)) {
            return false;
        }
        vec_push(r->arena, &loops, v);
    } while (cursor_take(c, TERM_PUNCT, ","));
    *x->n_loops = loops.n;
    *x->loop = loops.at;
    return true;
}

static bool read_operand(LoopReader *r, Cursor *c, const Stmt *s, Clause *x)
{
    if (x->flag != NULL) {
        *x->flag = true;
        return true;
    }
    if (x->loop != NULL) {
        return read_loops(r, c, x);
    }
    TermKind kind = x->number != NULL  ? TERM_INT
                    : x->index != NULL ? TERM_NAME
                    : x->at != NULL    ? TERM_INDEX
                                       : TERM_AT;
    const Term *t = cursor_expect(c, kind, NULL, x->expected);
    if (t == NULL || x->index != NULL) {
        return t != NULL && read_index(r, t, s, x->index);
    }
    if (x->number != NULL) {
        *x->number = t->value;
        return t->value >= 1 || dump_refuse(r->ctx, t->span, "%s is 1 or more", x->expected);
    }
    bool ok =
        x->at != NULL ? reader_access(r, t, x->buf, x->at) : reader_find_buffer(r, t, x->buf);
    ++*x->buf;
    return ok;
}

bool clauses_read(LoopReader *r, Cursor *c, Stmt *s, Buffer *declared)
{
    Clauses all;
    bool there = false;
    all_clauses(s, declared, &all);
    for (Clause *x = all.at; x < all.at + all.n; x++) {
        there = (there || !x->more) && cursor_take(c, TERM_NAME, x->word);
        if (there && !read_operand(r, c, s, x)) {
            return false;
        }
    }
    return true;
}

const char *clauses_problem(const ClauseContext *x, const Stmt *s)
{
    const char *problem = NULL;
    Clauses has;
    clauses_of(x->k, s, &has);
    for (uint32_t i = 0; problem == NULL && i < has.n; i++) {
        problem = has.at[i].problem(x, s);
    }
    return problem;
}

const char *no_problem(const ClauseContext *x, const Stmt *s)
{
    (void)x;
    (void)s;
    return NULL;
}

const char *scan_problem(const ClauseContext *x, const Stmt *s)
{
    (void)x;
    bool scan = s->fold != OP_COPY && s->begins && s->n_first == 0 && s->schedule == NULL &&
                expr_load_of(s->value, s->dst) == NULL;
    return scan
               ? NULL
               : "a scan is a fold that always begins, is no product and reads nothing that it "
                 "writes";
}

const char *decays_problem(const ClauseContext *x, const Stmt *s)
{
    (void)x;
    bool product = s->value->kind == EXPR_OP && s->value->op == OP_MUL;
    return s->scan > 0 && s->fold == OP_SUM && !s->exclusive && product
               ? NULL
               : "what decays is a running sum of products";
}

const char *sums_problem(const ClauseContext *x, const Stmt *s)
{
    const Kernel *k = x->k;
    BufRef buf = s->sums - 1;
    DType t = k->bufs.at[buf].dtype, made = DTYPE_NONE;
    if (tile_kind(s) != TILE_MAP || s->schedule != NULL || buf == s->dst) {
        return "only a map has sums beside it, in another buffer";
    }
    if (!buffer_is_writable(k, buf)) {
        return "a map adds up into what is only read by this kernel";
    }
    if (expr_load_of(s->value, buf) != NULL) {
        return "a map reads the sums that it adds to";
    }
    bool sums = op_result_type(OP_SUM, &t, 1, &made) && made == t;
    return sums && tile_summed(k, s)->dtype == t
               ? NULL
               : "the values of a map and its sums are of two types";
}

/* The loops that it begins with stand around it, and run in order. */
const char *begins_problem(const ClauseContext *x, const Stmt *s)
{
    for (uint32_t i = 0; i < s->n_first; i++) {
        if (!bounds_in_scope(x->bounds, s->first[i])) {
            return "a fold begins with what is no loop around it";
        }
        for (uint32_t p = 0; p < x->n_parallel; p++) {
            if (x->parallel[p]->loop->var == s->first[i]) {
                return "a fold begins with a loop whose iterations run at the same time";
            }
        }
    }
    return s->fold == OP_COPY && s->sums == 0 ? "what begins is no fold" : NULL;
}

const char *places_problem(const ClauseContext *x, const Stmt *s)
{
    Scattered places;
    return stmt_places(x->scratch, x->k, s, &places)
               ? NULL
               : "the value is not what belongs to one position of an index alone";
}

const char *hint_problem(const ClauseContext *x, const Stmt *s)
{
    (void)s;
    return x->k->form == LOOP_LEGAL ? NULL
                                    : "only statements of form legal say how they are run";
}

const char *specialised_problem(const ClauseContext *x, const Stmt *s)
{
    FoldTerm term;
    bool product = tile_kind(s) == TILE_MATMUL || fold_term(x->k, s->fold, s->value, &term);
    return product ? hint_problem(x, s) : "only products are specialised";
}

bool buffer_is_writable(const Kernel *k, BufRef buf)
{
    int32_t param = k->bufs.at[buf].param;
    return param < 0 || k->args.at[param].role == ARG_INOUT ||
           k->args.at[param].role == ARG_RESULT;
}
