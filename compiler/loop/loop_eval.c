/* SPDX-License-Identifier: Apache-2.0 */
/* The reference interpreter of kernels: one element at a time, in the order of the text. It
 * believes nothing: each index is compared with its buffer's extent when it is used, and each
 * element of a result or an alloc must have been written before it is read, and each of a
 * result at the end. Parallel loops run backwards, so that a program which depends on their
 * order is found out. Work is counted and limited. */
#include "loop/loop_eval.h"

#include <string.h>

#include "graph/eval.h"
#include "op/affine.h"
#include "loop/cascade.h"
#include "loop/loop_text.h"
#include "loop/term.h"
#include "loop/walk.h"

/* Parts of values evaluated, in all; some ten seconds. */
#define LOOP_WORK_LIMIT ((int64_t)1 << 29)

typedef struct Memory {
    Tensor *tensor;
    uint8_t *written; /* [count]; null: all of it */
    bool taken;       /* another buffer lies there now */
    Cascade *cascade; /* [count]; null: it is none */
} Memory;

typedef struct Interpreter {
    Ctx *ctx;
    Arena *arena; /* of results */
    Arena scratch;
    const Kernel *k;
    const int64_t *dims;
    int64_t *var; /* [vars] */
    int64_t *
        least; /* [vars] of loops: the first value, of those that pass the tests of blocks around */
    Memory *memory; /* [bufs] */
    const Stmt *at;
    int64_t work;
    LoopCounts *counts; /* or null */
} Interpreter;

/* ---- failures ---- */

static bool fail(Interpreter *m, const char *what)
{
    Text stmt = text_new(&m->scratch);
    Span span = m->k->span;
    if (m->at != NULL) {
        text_put(&stmt, ", in `");
        loop_text_stmt(m->k, m->at, &stmt);
        text_char(&stmt, '`');
        span = m->at->span.source != 0 ? m->at->span : span;
    }
    return diag_refuse(&m->ctx->diags, E_RUN, span, "running kernel '%.60s': %.300s%.300s",
                       m->k->name->text, what, stmt.at);
}

static bool fail_access(Interpreter *m, BufRef buf, const Affine *at, const char *what)
{
    Text t = text_new(&m->scratch);
    text_char(&t, '`');
    loop_text_access(m->k, buf, at, &t);
    text_printf(&t, "` %s", what);
    const char *before = " (";
    for (VarRef v = 0; v < m->k->vars.n; v++) {
        bool used = false;
        for (uint32_t d = 0; d < m->k->bufs.at[buf].rank; d++) {
            used = used || affine_uses(at[d], v);
        }
        if (used) {
            text_printf(&t, "%s%s = %lld", before, m->k->vars.at[v].name->text,
                        (long long)m->var[v]);
            before = ", ";
        }
    }
    text_put(&t, before[0] == ',' ? ")" : "");
    return fail(m, t.at);
}

static bool work(Interpreter *m, int64_t amount)
{
    m->work = sat_add(m->work, amount);
    if (m->work > LOOP_WORK_LIMIT) {
        return diag_refuse_limit(&m->ctx->diags, E_LIMIT_SIZE, m->k->span,
                                 "interpreting kernel '%s' takes more than %lld steps",
                                 m->k->name->text, (long long)LOOP_WORK_LIMIT);
    }
    return true;
}

/* ---- positions ---- */

static int64_t extent_of(const Interpreter *m, Dim d)
{
    return d.sym < 0 ? d.n : m->dims[d.sym];
}

static bool position(Interpreter *m, Affine x, int64_t *out)
{
    int64_t sum = x.base;
    for (uint32_t i = 0; i < x.n; i++) {
        int64_t part = 0;
        VarRef v = x.term[i].var;
        int64_t value = affine_is_dim(v) ? m->dims[affine_sym(v)] : m->var[v];
        if (!i64_try_mul(x.term[i].coef, value, &part) || !i64_try_add(sum, part, &sum)) {
            return fail(m, "a position does not fit 64 bits");
        }
    }
    *out = sum;
    return true;
}

static bool interval(Interpreter *m, const Range *r, int64_t *lo, int64_t *end)
{
    if (!position(m, r->start, lo)) {
        return false;
    }
    if (*lo < -SIZE_LIMIT || *lo > SIZE_LIMIT) {
        return fail(m, "the start of a range is out of range");
    }
    *end = INT64_MAX;
    if (r->span > 0 && !i64_try_add(*lo, r->span, end)) {
        return fail(m, "the end of a range does not fit 64 bits");
    }
    if (r->clipped && extent_of(m, r->limit) < *end) {
        *end = extent_of(m, r->limit);
    }
    return true;
}

static bool element(Interpreter *m, BufRef buf, const Affine *at, int64_t *out)
{
    const Tensor *t = m->memory[buf].tensor;
    int64_t offset = 0;
    if (t == NULL) {
        return fail_access(m, buf, at, "is used before its alloc");
    }
    if (m->memory[buf].taken) {
        return fail_access(m, buf, at, "is used when another buffer has its place");
    }
    for (uint32_t d = 0; d < t->rank; d++) {
        int64_t index = 0;
        if (!position(m, at[d], &index)) {
            return false;
        }
        if (index < 0 || index >= t->extent[d]) {
            return fail_access(m, buf, at, "is outside the buffer");
        }
        offset = offset * t->extent[d] + index;
    }
    *out = offset;
    return true;
}

static void count_access(Interpreter *m, BufRef buf, int64_t offset, bool stores)
{
    LoopCounts *c = m->counts;
    if (c != NULL) {
        (stores ? c->stored : c->loaded)[buf] += dtype_bytes(m->k->bufs.at[buf].dtype);
        if (c->access != NULL) {
            c->access(c->user, m->at, buf, offset, stores);
        }
    }
}

static bool load(Interpreter *m, BufRef buf, const Affine *at, Number *out)
{
    int64_t offset = 0;
    if (!element(m, buf, at, &offset)) {
        return false;
    }
    const Memory *memory = &m->memory[buf];
    if (memory->cascade != NULL) {
        *out = cascade_total(&memory->cascade[offset], memory->tensor->dtype);
        count_access(m, buf, offset, false);
        return true;
    }
    if (memory->written != NULL && !memory->written[offset]) {
        return fail_access(m, buf, at, "is read before it is written");
    }
    *out = tensor_get(memory->tensor, offset);
    count_access(m, buf, offset, false);
    return true;
}

/* ---- values ---- */

static bool value_of(Interpreter *m, const Expr *e, Number *out);

/* 0 outside. */
static bool gather(Interpreter *m, const Expr *e, Number *out)
{
    const Memory *from = &m->memory[e->buf];
    const Tensor *t = from->tensor;
    int64_t offset = 0;
    bool inside = true;
    if (t == NULL || from->taken) {
        return fail(m, "a gather from what is not there");
    }
    for (uint32_t d = 0; d < e->n_args; d++) {
        Number at;
        if (!value_of(m, e->arg[d], &at)) {
            return false;
        }
        inside = inside && at.i >= 0 && at.i < t->extent[d];
        offset = inside ? offset * t->extent[d] + at.i : 0;
    }
    if (inside && from->written != NULL && !from->written[offset]) {
        return fail(m, "a gather of what has not been written");
    }
    *out = inside ? tensor_get(t, offset) : number_int(e->dtype, 0);
    if (inside) {
        count_access(m, e->buf, offset, false);
    }
    return true;
}

static bool value_of(Interpreter *m, const Expr *e, Number *out)
{
    Number arg[3] = {{.dtype = DTYPE_NONE}};
    m->work++;
    switch (e->kind) {
    case EXPR_CONST:
        *out = e->value;
        return true;
    case EXPR_EXTENT:
        *out = number_cast(number_int(DTYPE_I64, m->dims[e->dim]), e->dtype);
        return true;
    case EXPR_INDEX: {
        int64_t at = 0;
        bool fits = position(m, e->at[0], &at);
        *out = number_cast(number_int(DTYPE_I64, at), e->dtype);
        return fits;
    }
    case EXPR_LOAD:
        return load(m, e->buf, e->at, out);
    case EXPR_OP:
        break;
    }
    if (e->op == OP_GATHER) {
        return gather(m, e, out);
    }
    for (uint32_t i = 0; i < e->n_args; i++) { /* as deep as loop_verify allows */
        if (i == 1 && e->op == OP_SCALE && number_is_zero(arg[0])) {
            arg[1] = arg[0]; /* scaled by 0: what is there is not looked at */
            break;
        }
        if (!value_of(m, e->arg[i], &arg[i])) {
            return false;
        }
    }
    *out = e->op == OP_CAST ? number_cast(arg[0], e->dtype) : op_value(e->op, e->dtype, arg);
    return true;
}

/* ---- statements ---- */

static bool fold_into(Interpreter *m, BufRef buf, const Affine *at, Op fold, Number value)
{
    int64_t offset = 0;
    if (!element(m, buf, at, &offset) || !work(m, 1)) {
        return false;
    }
    Memory *to = &m->memory[buf];
    if (to->cascade != NULL) {
        cascade_add(&to->cascade[offset], value);
    } else if (fold != OP_COPY) {
        Number before;
        if (!load(m, buf, at, &before)) {
            return false;
        }
        value = op_fold(fold, to->tensor->dtype, before, value);
    }
    tensor_set(to->tensor, offset, value);
    count_access(m, buf, offset, true);
    if (to->written != NULL) {
        to->written[offset] = 1;
    }
    return true;
}

/* One value of all local indices. */
static bool run_element(Interpreter *m, const Stmt *s)
{
    Number value;
    const Expr *summed = s->sums > 0 ? tile_summed(m->k, s) : s->value;
    if (!value_of(m, summed, &value) ||
        (s->sums > 0 && !fold_into(m, s->sums - 1, s->sums_at, OP_SUM, value))) {
        return false;
    }
    value = summed == s->value ? value : number_cast(value, s->value->dtype);
    if (!fold_into(m, s->dst, s->at, s->fold, value)) {
        return false;
    }
    if (m->counts != NULL && tile_multiplies(s)) {
        m->counts->multiply_adds++;
    }
    return true;
}

static bool begins(const Interpreter *m, const Stmt *s)
{
    bool all = s->begins;
    for (uint32_t i = 0; i < s->n_first; i++) {
        all = all && m->var[s->first[i]] == m->least[s->first[i]];
    }
    return all;
}

/* The neutral element for all values of the indices that the destination has. */
static bool begin_tile(Interpreter *m, const Stmt *s, const int64_t *lo, const int64_t *end)
{
    BufRef buf = s->sums > 0 ? s->sums - 1 : s->dst;
    const Affine *at = s->sums > 0 ? s->sums_at : s->at;
    Op fold = s->sums > 0 ? OP_SUM : s->fold;
    Number neutral = op_neutral(fold, m->k->bufs.at[buf].dtype);
    Memory *to = &m->memory[buf];
    bool any = true;
    for (uint32_t i = 0; i < s->n_index; i++) {
        any = any && (lo[i] < end[i] || !access_uses(m->k, buf, at, s->index[i].var));
    }
    while (any) {
        int64_t offset = 0;
        if (!element(m, buf, at, &offset) || !work(m, 1)) {
            return false;
        }
        tensor_set(to->tensor, offset, neutral);
        count_access(m, buf, offset, true);
        if (to->written != NULL) {
            to->written[offset] = 1;
        }
        uint32_t i = s->n_index;
        for (; i > 0; i--) {
            VarRef v = s->index[i - 1].var;
            if (access_uses(m->k, buf, at, v) && ++m->var[v] < end[i - 1]) {
                break;
            }
            m->var[v] = lo[i - 1];
        }
        any = i > 0;
    }
    return true;
}

/* One way along the scanned index. */
static bool run_scan(Interpreter *m, const Stmt *s, int64_t lo, int64_t end)
{
    Memory *to = &m->memory[s->dst];
    DType t = m->k->bufs.at[s->dst].dtype;
    Number sum = op_neutral(s->fold, t);
    VarRef v = s->index[s->scan - 1].var;
    for (m->var[v] = lo; m->var[v] < end; m->var[v]++) {
        Number value;
        int64_t offset = 0;
        if (s->decays) {
            if (!value_of(m, s->value->arg[0], &value)) {
                return false;
            }
            const Number both[2] = {value, sum};
            sum = op_value(OP_MUL, t, both);
        }
        const Expr *added = s->decays ? s->value->arg[1] : s->value;
        if (!value_of(m, added, &value) || !element(m, s->dst, s->at, &offset) || !work(m, 1)) {
            return false;
        }
        Number after = op_fold(s->fold, t, sum, value);
        tensor_set(to->tensor, offset, s->exclusive ? sum : after);
        count_access(m, s->dst, offset, true);
        if (to->written != NULL) {
            to->written[offset] = 1;
        }
        sum = after;
    }
    m->var[v] = lo;
    return true;
}

/* To what a window leaves of it. */
static bool narrow(Interpreter *m, const Window *w, int64_t *lo, int64_t *end)
{
    int64_t least = 0, most = 0;
    if (!position(m, w->lo, &least) || !position(m, w->hi, &most)) {
        return false;
    }
    *lo = w->has_lo && least > *lo ? least : *lo;
    *end = w->has_hi && most < *end ? most : *end;
    return true;
}

/* All values of the local indices, the last one fastest. */
static bool run_tile(Interpreter *m, const Stmt *s)
{
    ArenaMark mark = arena_mark(&m->scratch);
    int64_t *lo = ARENA_ARRAY(&m->scratch, s->n_index, int64_t);
    int64_t *end = ARENA_ARRAY(&m->scratch, s->n_index, int64_t);
    bool ok = true;
    bool any = true;
    for (uint32_t i = 0; ok && i < s->n_index; i++) {
        ok = interval(m, &s->index[i].range, &lo[i], &end[i]);
        any = any && lo[i] < end[i];
        ok = ok &&
             (s->index[i].window == NULL || narrow(m, s->index[i].window, &lo[i], &end[i]));
        any = any && lo[i] < end[i];
        m->var[s->index[i].var] = lo[i];
    }
    if (ok && s->scan == 0 && begins(m, s)) {
        ok = begin_tile(m, s, lo, end);
    }
    while (ok && any) {
        uint32_t scan = s->scan;
        ok = scan > 0 ? run_scan(m, s, lo[scan - 1], end[scan - 1]) : run_element(m, s);
        uint32_t i = s->n_index;
        for (; i > 0 && (i == scan || ++m->var[s->index[i - 1].var] == end[i - 1]); i--) {
            m->var[s->index[i - 1].var] = lo[i - 1];
        }
        any = i > 0;
    }
    if (ok) { /* a failure's text lives in the scratch arena until it is reported: it was */
        arena_reset(&m->scratch, mark);
    }
    return ok;
}

static bool new_memory(Interpreter *m, BufRef buf, Arena *arena)
{
    const Buffer *b = &m->k->bufs.at[buf];
    int64_t extent[RANK_LIMIT];
    for (uint32_t d = 0; d < b->rank; d++) {
        extent[d] = extent_of(m, b->extent[d]);
    }
    Tensor *t = tensor_new(m->ctx, arena, b->dtype, b->rank, extent);
    if (t == NULL) {
        return false;
    }
    m->memory[buf].tensor = t;
    m->memory[buf].written = ARENA_ARRAY(&m->scratch, (size_t)t->count, uint8_t);
    m->memory[buf].cascade =
        b->cascade ? ARENA_ARRAY(&m->scratch, (size_t)t->count, Cascade) : NULL;
    return true;
}

/* The buffer is the same at each alloc, its content is not. */
static bool run_alloc(Interpreter *m, const Stmt *s)
{
    Memory *memory = &m->memory[s->buf];
    memory->taken = false;
    if (s->over > 0) {
        m->memory[s->over - 1].taken = true;
    }
    if (memory->tensor == NULL) {
        return new_memory(m, s->buf, &m->scratch);
    }
    memset(memory->written, 0, (size_t)memory->tensor->count);
    for (int64_t i = 0; memory->cascade != NULL && i < memory->tensor->count; i++) {
        memory->cascade[i].n = 0;
    }
    return work(m, 1 + memory->tensor->count / 16);
}

static bool run_block(Interpreter *m, Stmt *const *body, uint32_t n);

static bool run_iteration(Interpreter *m, const Stmt *s, int64_t at)
{
    m->var[s->var] = at;
    if (m->counts != NULL && m->counts->iteration != NULL) {
        m->counts->iteration(m->counts->user, s);
    }
    return work(m, 1) && run_block(m, s->body, s->n_body);
}

static bool run_for(Interpreter *m, const Stmt *s)
{
    int64_t lo = 0;
    int64_t end = 0;
    if (!interval(m, &s->range, &lo, &end)) {
        return false;
    }
    if (lo >= end) {
        return true;
    }
    int64_t full = (end - lo) / s->step;   /* tiles that fit */
    bool rest = lo + full * s->step < end; /* and one that does not */
    int64_t first = s->part == FOR_REST ? full : 0;
    int64_t count = full + (rest && s->part != FOR_FULL ? 1 : 0) - first;
    m->least[s->var] = lo + first * s->step;
    for (int64_t i = 0; i < count; i++) {
        int64_t tile = first + (s->parallel ? count - 1 - i : i);
        int64_t least = 0, most = 0;
        if (s->window != NULL &&
            (!position(m, s->window->lo, &least) || !position(m, s->window->hi, &most))) {
            return false;
        }
        if (s->window != NULL && ((s->window->has_lo && lo + (tile + 1) * s->step <= least) ||
                                  (s->window->has_hi && lo + tile * s->step >= most))) {
            continue;
        }
        if (!run_iteration(m, s, lo + tile * s->step)) {
            return false;
        }
    }
    return true;
}

/* A block whose tests from `at` on, if they hold, say in which iteration of their loops it is run first. */
static bool run_guarded(Interpreter *m, const Stmt *s, uint32_t at)
{
    if (at == s->n_guards) {
        return run_block(m, s->body, s->n_body);
    }
    VarRef v = s->guard[at].var;
    int64_t around = m->least[v], least = guard_least(&s->guard[at], m->var);
    m->least[v] = least > around ? least : around;
    bool ok = run_guarded(m, s, at + 1);
    m->least[v] = around;
    return ok;
}

static bool run_stmt(Interpreter *m, const Stmt *s)
{
    m->at = s;
    switch (s->kind) {
    case STMT_FOR:
        return run_for(m, s);
    case STMT_BLOCK:
        return (s->when != NULL && !dim_test_holds(s->when, m->dims[s->when->dim])) ||
               !stmt_guards_hold(s, m->var) || run_guarded(m, s, 0);
    case STMT_ALLOC:
        return run_alloc(m, s);
    case STMT_TILE:
        return run_tile(m, s);
    }
    UNREACHABLE();
}

static bool run_block(Interpreter *m, Stmt *const *body, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!run_stmt(m, body[i])) {
            return false;
        }
    }
    return true;
}

/* ---- arguments and results ---- */

/* The caller's tensor as the kernel's buffer has it: the same bytes. */
static Tensor *as_buffer(Interpreter *m, const Arg *arg, Tensor *t)
{
    const Buffer *b = &m->k->bufs.at[arg->buf];
    if (arg->whole == DTYPE_NONE || t == NULL || t->dtype != arg->whole ||
        t->rank != arg->whole_rank) {
        return t;
    }
    uint32_t rank = arg->shape != NULL ? arg->rank : b->rank;
    int64_t *extent = ARENA_ARRAY(&m->scratch, rank, int64_t);
    for (uint32_t d = 0; d < rank; d++) {
        Dim all = arg->shape != NULL ? arg->shape[d] : b->extent[d];
        extent[d] = d < t->rank ? t->extent[d] : extent_of(m, all);
    }
    Tensor *out = ARENA_NEW(&m->scratch, Tensor);
    *out = (Tensor){b->dtype, rank, extent, 2 * t->count, t->data};
    return out;
}

/* The same numbers as elements of another type. */
static Tensor *converted(Arena *arena, DType to, const Tensor *t)
{
    Tensor *out = ARENA_NEW(arena, Tensor);
    *out = *t;
    out->dtype = to;
    out->data = arena_alloc(arena, (size_t)(t->count * dtype_bytes(to)) + 1);
    for (int64_t i = 0; i < t->count; i++) {
        tensor_set(out, i, tensor_get(t, i));
    }
    return out;
}

/* And back; two words are added. */
static Tensor *as_whole(Interpreter *m, const Arg *arg, Tensor *t)
{
    if (arg->whole == DTYPE_NONE) {
        return t;
    }
    int64_t *extent = ARENA_ARRAY(m->arena, arg->whole_rank, int64_t);
    for (uint32_t d = 0; d < arg->whole_rank; d++) {
        extent[d] = t->extent[d];
    }
    Tensor *out = ARENA_NEW(m->arena, Tensor);
    *out = (Tensor){arg->whole, arg->whole_rank, extent, t->count / 2, t->data};
    if (arg->whole == DTYPE_F64) {
        const float *word = (const float *)t->data;
        double *sum = ARENA_ARRAY(m->arena, (size_t)(t->count / 2 + 1), double);
        for (int64_t i = 0; i < t->count / 2; i++) {
            sum[i] = (double)word[2 * i] + (double)word[2 * i + 1];
        }
        out->data = sum;
    }
    return out;
}

static bool fits(const Interpreter *m, const Buffer *b, const Tensor *t)
{
    bool same = t != NULL && t->dtype == b->dtype && t->rank == b->rank;
    for (uint32_t d = 0; same && d < b->rank; d++) {
        same = t->extent[d] == extent_of(m, b->extent[d]);
    }
    return same;
}

/* As the caller has it, and as the buffer does. */
static Tensor *from_caller(Interpreter *m, const Arg *arg, Tensor *t)
{
    const Buffer *b = &m->k->bufs.at[arg->buf];
    bool fits = t != NULL && t->rank == arg->rank;
    for (uint32_t d = 0; fits && arg->shape != NULL && d < arg->rank; d++) {
        fits = t->extent[d] == extent_of(m, arg->shape[d]);
    }
    return arg->shape == NULL || !fits ? t
                                       : tensor_as(m->arena, t, b->rank, b->extent, m->dims);
}

static bool bind_args(Interpreter *m, Tensor *const *args)
{
    for (uint32_t i = 0; i < m->k->args.n; i++) {
        Arg arg = m->k->args.at[i];
        Memory *memory = &m->memory[arg.buf];
        if (arg.role == ARG_RESULT) {
            if (!new_memory(m, arg.buf, m->arena)) {
                return false;
            }
            continue;
        }
        const Buffer *b = &m->k->bufs.at[arg.buf];
        Tensor *given = from_caller(m, &arg, as_buffer(m, &arg, args[i]));
        if (given != NULL && given->dtype == b->stored) {
            given = converted(&m->scratch, b->dtype, given);
        }
        if (!fits(m, b, given)) {
            return diag_refuse(&m->ctx->diags, E_ARGUMENT_VALUE, m->k->span,
                               "argument '%s' of kernel '%s' has another type or shape",
                               b->name->text, m->k->name->text);
        }
        memory->tensor = given;
        if (arg.role == ARG_INOUT) { /* the caller's is not changed */
            if (!new_memory(m, arg.buf, m->arena)) {
                return false;
            }
            memcpy(memory->tensor->data, given->data,
                   (size_t)(given->count * dtype_bytes(b->dtype)));
            memory->written = NULL;
        }
    }
    return true;
}

static bool take_results(Interpreter *m, Tensor **results)
{
    m->at = NULL;
    for (uint32_t i = 0; i < m->k->args.n; i++) {
        Arg arg = m->k->args.at[i];
        const Memory *memory = &m->memory[arg.buf];
        if (arg.role != ARG_RESULT && arg.role != ARG_INOUT) {
            continue;
        }
        for (int64_t at = 0; memory->written != NULL && at < memory->tensor->count; at++) {
            if (!memory->written[at]) {
                return fail(m, str_format(&m->scratch,
                                          "element %lld of result '%s' is never written",
                                          (long long)at, m->k->bufs.at[arg.buf].name->text));
            }
        }
        Tensor *made = memory->tensor;
        made =
            arg.shape == NULL ? made : tensor_as(m->arena, made, arg.rank, arg.shape, m->dims);
        made = as_whole(m, &arg, made);
        DType stored = m->k->bufs.at[arg.buf].stored;
        *results++ = stored == DTYPE_NONE ? made : converted(m->arena, stored, made);
    }
    return true;
}

bool loop_eval_counted(Ctx *ctx, Arena *arena, const Kernel *k, const int64_t *dims,
                       Tensor *const *args, Tensor **results, LoopCounts *counts)
{
    Interpreter m = {.ctx = ctx, .arena = arena, .k = k, .dims = dims, .counts = counts};
    arena_init(&m.scratch, &ctx->budget);
    m.dims = dims_complete(&m.scratch, &k->dims, dims);
    m.var = ARENA_ARRAY(&m.scratch, k->vars.n, int64_t);
    m.least = ARENA_ARRAY(&m.scratch, k->vars.n, int64_t);
    m.memory = ARENA_ARRAY(&m.scratch, k->bufs.n, Memory);
    bool ok =
        bind_args(&m, args) && run_block(&m, k->body, k->n_body) && take_results(&m, results);
    BufRef indefinite = kernel_indefinite(k);
    if (ok && indefinite != BUF_NONE) {
        int64_t code = tensor_get(m.memory[indefinite].tensor, 0).i;
        ctx->indefinite = code < ctx->indefinite ? code : ctx->indefinite;
    }
    arena_release(&m.scratch);
    return ok;
}

bool loop_eval(Ctx *ctx, Arena *arena, const Kernel *k, const int64_t *dims,
               Tensor *const *args, Tensor **results)
{
    return loop_eval_counted(ctx, arena, k, dims, args, results, NULL);
}
