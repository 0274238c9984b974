/* SPDX-License-Identifier: Apache-2.0 */
/* What a product is, and what is none. */
#include "backend/c/product.h"

#include "backend/c/legalise.h"
#include "loop/term.h"
#include "op/affine.h"

bool is_register_alloc(const Kernel *k, const Stmt *s)
{
    return s->kind == STMT_ALLOC && k->bufs.at[s->buf].space == SPACE_ACC &&
           k->bufs.at[s->buf].rank > 0;
}

bool stmt_is_product(const Stmt *s)
{
    bool loop = false, other = false;
    for (uint32_t i = 0; i < s->n_index; i++) {
        loop |= s->index[i].mode == MODE_LOOP;
        other |= s->index[i].mode == MODE_UNROLL || s->index[i].mode == MODE_VECTOR;
    }
    return s->kind == STMT_TILE && loop && other;
}

static bool load_uses(const Kernel *k, const Expr *x, const TileIndex *i)
{
    return access_uses(k, x->buf, x->at, i->var);
}

/* Has the operand elements for all positions of a tile that the range may cut? */
static bool holds_tile(const Kernel *k, const Expr *x, const TileIndex *i)
{
    const Buffer *b = &k->bufs.at[x->buf];
    if (!i->range.clipped) {
        return true;
    }
    for (uint32_t d = 0; d + 1 < b->rank; d++) {
        if (affine_uses(x->at[d], i->var)) {
            return false;
        }
    }
    if (b->panels != 0) { /* verify sees that the tile is in one */
        return true;
    }
    if (b->rank == 0 || affine_coef(x->at[b->rank - 1], i->var) != 1 ||
        !dim_is(b->extent[b->rank - 1], i->range.span)) {
        return false;
    }
    Affine last = x->at[b->rank - 1], start = i->range.start;
    bool same = last.n == start.n + 1 && last.base == -start.base; /* var - start */
    for (uint32_t n = 0; n < start.n && same; n++) {
        same = affine_coef(last, start.term[n].var) == -start.term[n].coef;
    }
    return same;
}

static const char *shape_problem(const Kernel *k, const Product *p)
{
    const Stmt *s = p->s;
    if (!access_uses(k, s->dst, s->at, p->row->var) ||
        !access_uses(k, s->dst, s->at, p->column->var) ||
        access_uses(k, s->dst, s->at, p->sum->var) || load_uses(k, p->b, p->row) ||
        load_uses(k, p->a, p->column)) {
        return "a product of which rows, columns and sum are not in their places";
    }
    if (p->group == 0 && !access_is_unit(k, p->b->buf, p->b->at, p->column->var)) {
        return "a vector does not stand side by side in memory";
    }
    return holds_tile(k, p->a, p->row) && holds_tile(k, p->b, p->column)
               ? NULL
               : "a clipped product of what is no panel";
}

/* Lines of a group of both operands, if dot products take their types; else 0. */
static int64_t common_group(const Kernel *k, const FoldTerm *term, const Expr *const arg[2],
                            DType t)
{
    int64_t group = k->bufs.at[arg[0]->buf].group;
    bool both = group == k->bufs.at[arg[1]->buf].group && term->value == NULL;
    return both && group == dtype_dot_group(arg[0]->dtype, arg[1]->dtype, t) ? group : 0;
}

const char *product_of(const Kernel *k, const Stmt *s, Product *out)
{
    FoldTerm term;
    const Expr *arg[2] = {NULL, NULL};
    bool conj[2] = {false, false};
    bool order = s->n_index == 3 && s->index[0].mode == MODE_UNROLL &&
                 s->index[1].mode == MODE_VECTOR && s->index[2].mode == MODE_LOOP;
    DType t = k->bufs.at[s->dst].dtype;
    if (!order || !fold_term(k, s->fold, s->value, &term) || !dtype_has_vectors(t)) {
        return "too much is unrolled";
    }
    for (uint32_t i = 0; i < 2; i++) {
        arg[i] = expr_factor(term.operand[i], &conj[i]);
        conj[i] = conj[i] && arg[i]->dtype == t;
    }
    int64_t group = common_group(k, &term, arg, t);
    for (uint32_t i = 0; i < 2; i++) {
        if (group == 0 && arg[i]->dtype != t &&
            (term.value != NULL || arg[i]->dtype != dtype_part(t))) {
            return "too much is unrolled";
        }
    }
    if (term.by != NULL && dtype_is_complex(t) &&
        (term.by->kind != EXPR_CONST || term.by->value.im != 0.0)) {
        return "a product with a complex factor";
    }
    if (group == 0 && arg[0]->dtype != t && arg[1]->dtype != t) {
        return "a complex product of real numbers";
    }
    uint32_t a = load_uses(k, arg[0], &s->index[0]) ? 0 : 1, b = 1 - a;
    *out = (Product){s,      t,       &s->index[0], &s->index[1], &s->index[2], arg[a],
                     arg[b], conj[a], conj[b],      term.by,      group,        term.value};
    return shape_problem(k, out);
}

bool product_is_whole(const Kernel *k, const Product *p)
{
    return range_is_exact(p->row->range) && range_is_exact(p->column->range) &&
           access_is_unit(k, p->s->dst, p->s->at, p->column->var);
}

/* Of an operand that is complex the stride in parts. */
static bool stride_of(const Kernel *k, const Product *p, const Expr *x, const TileIndex *i,
                      int64_t *out)
{
    if (!stride_known(k, x->buf, x->at, i->var, out) || *out < 0) {
        return false;
    }
    *out = sat_mul(*out, dtype_is_complex(p->t) && x->dtype == p->t ? 2 : 1);
    return *out <= INT32_MAX;
}

bool product_numbers(const Kernel *k, const Product *p, ProductNumbers *out)
{
    const Stmt *s = p->s;
    const Expr dst = {.dtype = p->t, .buf = s->dst, .at = s->at};
    Range sum = p->sum->range;
    bool known = p->sum->window == NULL &&
                 (range_is_exact(sum) || (sum.start.n == 0 && sum.limit.sym < 0));
    out->sum = known ? range_most(sum) : 0;
    return out->sum > 0 && p->group == 0 && p->by == NULL && s->n_first == 0 &&
           !(s->nontemporal && s->larger > 0) && product_is_whole(k, p) &&
           stride_of(k, p, p->a, p->sum, &out->cs_a) &&
           stride_of(k, p, p->a, p->row, &out->rs_a) &&
           stride_of(k, p, p->b, p->sum, &out->rs_b) &&
           stride_of(k, p, &dst, p->row, &out->rs_c);
}
