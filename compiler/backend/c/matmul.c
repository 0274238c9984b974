/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a product that is cut by levels: its indices, which become loops, its operands, blocks of the sum, and the statement itself. */
#include "backend/c/matmul.h"

#define ENOUGH_ITERATIONS 8

void matmul_subst(Matmul *m, uint32_t index, Affine by)
{
    m->subst[m->n_subst++] = (Subst){matmul_var(m, index), by};
}

Affine matmul_loop(Matmul *m, uint32_t index, Range range)
{
    Affine v = affine_var(m->l->arena, loop_open(m->l, "x", range, 1, FOR_ALL));
    matmul_subst(m, index, v);
    return v;
}

void matmul_share(Matmul *m, const StmtBlock *outside)
{
    Stmt *best = NULL;
    int64_t most = 1;
    for (StmtBlock *at = m->l->block; at != outside; at = at->outer) {
        Stmt *s = at->owner;
        if (s == NULL || s->kind != STMT_FOR) {
            continue;
        }
        int64_t n = (range_typical(m->l->k, s->range) + s->step - 1) / s->step;
        if (n >= most || n >= ENOUGH_ITERATIONS) { /* from the innermost outwards */
            best = s;
            most = n;
        }
    }
    if (best != NULL) {
        best->parallel = true;
    }
}

const Expr *matmul_load(const Matmul *m, ScheduleRole side)
{
    bool conj = false;
    return expr_factor(m->term.operand[side], &conj);
}

DType matmul_panel_type(const Matmul *m, ScheduleRole side)
{
    if (m->group != 0) {
        return m->group == 2 ? DTYPE_I16 : matmul_load(m, side)->dtype;
    }
    return dtype_is_complex(matmul_load(m, side)->dtype) ? m->t : dtype_part(m->t);
}

const Expr *matmul_packed(Matmul *m, ScheduleRole side)
{
    const Expr *load =
        expr_subst(m->l->arena, m->l->k, matmul_load(m, side), m->subst, m->n_subst);
    return expr_cast(m->l->arena, load, matmul_panel_type(m, side));
}

const Expr *matmul_factor(Matmul *m, ScheduleRole side, const Expr *held)
{
    bool conj = false;
    (void)expr_factor(m->term.operand[side], &conj);
    const Expr *x = expr_cast(m->l->arena, held, m->t);
    return conj && dtype_is_complex(held->dtype) ? expr_op(m->l->arena, OP_CONJ, m->t, 1, &x)
                                                 : x;
}

void matmul_refuse(Matmul *m, const char *problem)
{
    Legaliser *l = m->l;
    diag_unsupported(&l->ctx->diags, E_TARGET, m->s->span,
                     "levels of a contraction: target '%s' %s", l->k->target, problem);
    l->failed = true;
}

bool matmul_sum_is_one(const Matmul *m, Range sum)
{
    return m->group != 0 || range_most(sum) <= SUM_MOST;
}

Range matmul_sum_block(Matmul *m, Range sum)
{
    if (matmul_sum_is_one(m, sum)) {
        return sum;
    }
    /* Blocks end where the span does: what is clipped is so at the end of all. */
    bool whole = sum.span == 0 || (sum.clipped && sum.span % SUM_BLOCK == 0);
    int64_t step = whole ? SUM_BLOCK : divisor_at_most(sum.span, SUM_BLOCK);
    VarRef v = loop_open(m->l, "pc", sum, step, FOR_ALL);
    return range_at(affine_var(m->l->arena, v), step, &sum);
}

static void mark_vars(bool *used, Affine x)
{
    for (uint32_t i = 0; i < x.n; i++) {
        if (!affine_is_dim(x.term[i].var)) {
            used[x.term[i].var] = true;
        }
    }
}

/* Loops over parts of the sum are those that do not move in the destination. */
void matmul_begins(Matmul *m)
{
    Legaliser *l = m->l;
    Stmt *out = l->block->list.at[l->block->list.n - 1];
    uint32_t rank = l->k->bufs.at[out->dst].rank;
    bool *used = ARENA_ARRAY(l->arena, l->k->vars.n, bool);
    VEC(VarRef) first = {0};
    for (uint32_t d = 0; d < rank; d++) {
        mark_vars(used, out->at[d]);
    }
    for (uint32_t i = 0; i < out->n_index; i++) {
        if (used[out->index[i].var]) {
            mark_vars(used, out->index[i].range.start);
        }
    }
    for (StmtBlock *b = l->block; b != m->around; b = b->outer) {
        const Stmt *s = b->owner;
        if (s == NULL || s->kind != STMT_FOR) {
            continue;
        }
        if (used[s->var]) {
            mark_vars(used, s->range.start);
        } else {
            vec_push(l->arena, &first, s->var);
        }
    }
    out->begins = true;
    out->n_first = first.n;
    out->first = first.at;
}

void matmul_product(Matmul *m, const VarRef var[3], const Range range[3], BufRef dst,
                    const Affine *at, const Expr *a, const Expr *b, MatmulBegins begins)
{
    static const IndexMode mode[3] = {MODE_UNROLL, MODE_VECTOR, MODE_LOOP};
    TileIndex index[3];
    for (ScheduleRole r = ROLE_M; r <= ROLE_K; r++) {
        index[r] = index_of(var[r], range[r], mode[r]);
    }
    const Expr *pair[2] = {a, b};
    FoldTerm term = m->term;
    term.by = dst == m->s->dst ? term.by : NULL;
    const Expr *value = fold_term_of(m->l->arena, m->l->k, &term, pair);
    if (term.condition != NULL) {
        CHECK(begins == BEGINS_NOT);
        where_product(m, var, range, dst, at, value);
        return;
    }
    tile_add(m->l, 3, index, dst, at, m->s->fold, value);
    if (begins == BEGINS_ALWAYS) {
        m->l->block->list.at[m->l->block->list.n - 1]->begins = true;
    } else if (begins == BEGINS_FIRST) {
        matmul_begins(m);
    }
}
