/* SPDX-License-Identifier: Apache-2.0 */
/* See term.h. */
#include "loop/term.h"

/* ---- the kind of a statement ---- */

/* A load, perhaps converted to the type the product is made in, or conjugated. */
static bool is_load(const Expr *e)
{
    bool conj = false;
    return expr_factor(e, &conj)->kind == EXPR_LOAD;
}

static bool is_product_of_two(Op fold, const Expr *e)
{
    if (e->kind == EXPR_OP && e->op == OP_CAST) {
        e = e->arg[0]; /* rounded to its own type, then summed in a wider one */
    }
    if (e->kind != EXPR_OP || e->n_args != 2) {
        return false;
    }
    bool product = (fold == OP_SUM && e->op == OP_MUL) || (fold == OP_ANY && e->op == OP_AND);
    return product && is_load(e->arg[0]) && is_load(e->arg[1]);
}

TileKind tile_kind(const Stmt *tile)
{
    CHECK(tile->kind == STMT_TILE);
    if (tile->fold != OP_COPY) {
        return tile->scan == 0 && is_product_of_two(tile->fold, tile->value) ? TILE_MATMUL
                                                                             : TILE_REDUCE;
    }
    switch (tile->value->kind) {
    case EXPR_CONST:
        return TILE_FILL;
    case EXPR_LOAD:
        return TILE_COPY;
    case EXPR_EXTENT:
    case EXPR_INDEX:
    case EXPR_OP:
        return TILE_MAP;
    }
    UNREACHABLE();
}

bool tile_multiplies(const Stmt *tile)
{
    const Expr *factor = NULL;
    return tile->fold != OP_COPY &&
           is_product_of_two(tile->fold, expr_product(tile->value, &factor));
}

const Expr *tile_summed(const Kernel *k, const Stmt *map)
{
    const Expr *e = map->value;
    bool converts = e->kind == EXPR_OP && e->op == OP_CAST;
    return converts && e->dtype != k->bufs.at[map->sums - 1].dtype ? e->arg[0] : e;
}

const char *tile_kind_name(TileKind kind)
{
    static const char *const names[] = {[TILE_FILL] = "fill",
                                        [TILE_COPY] = "copy",
                                        [TILE_MAP] = "map",
                                        [TILE_REDUCE] = "reduce",
                                        [TILE_MATMUL] = "matmul"};
    return names[kind];
}

/* ---- terms ---- */

static bool is_product(const Kernel *k, Op fold, const Expr *value, FoldTerm *out)
{
    const Expr *by = NULL, *condition = NULL,
               *e = expr_product(expr_under(fold, value, &condition), &by);
    bool product = fold == OP_SUM && e->kind == EXPR_OP && e->op == OP_MUL &&
                   is_load(e->arg[0]) && is_load(e->arg[1]) &&
                   (by == NULL || expr_is_scalar(k, by));
    *out = (FoldTerm){.by = by, .condition = condition};
    for (uint32_t i = 0; product && i < 2; i++) {
        out->operand[i] = e->arg[i];
    }
    return product;
}

static const Expr *other_operand(const Kernel *k, const FoldTerm *t, const Expr *load)
{
    uint32_t i = 0;
    while (i < 2 && t->operand[i] != NULL && !expr_eq(k, t->operand[i], load)) {
        i++;
    }
    return i == 2 ? NULL : t->operand[i] == NULL ? load : t->operand[i];
}

bool fold_term(const Kernel *k, Op fold, const Expr *value, FoldTerm *out)
{
    ExprWalk w;
    uint32_t ops = 0;
    DType t = value->dtype;
    if (is_product(k, fold, value, out)) {
        return true;
    }
    *out = (FoldTerm){.value = value};
    if (!op_folds_terms(fold, t)) {
        return false;
    }
    for (const Expr *e = expr_first(&w, value); e != NULL; e = expr_next(&w)) {
        bool load = expr_uncast(e)->kind == EXPR_LOAD;
        const Expr *operand = load ? other_operand(k, out, e) : NULL;
        if (e->dtype != t || (load && operand == NULL) ||
            (!load && (e->kind != EXPR_OP || !op_is_in_terms(e->op, t) || ++ops > TERM_OPS))) {
            return false;
        }
        if (load) {
            out->operand[out->operand[0] != NULL && operand != out->operand[0] ? 1 : 0] =
                operand;
            expr_skip(&w);
        }
    }
    return out->operand[1] != NULL;
}

const Expr *fold_term_of(Arena *a, const Kernel *k, const FoldTerm *t,
                         const Expr *const with[2])
{
    if (t->value == NULL) {
        const Expr *product = expr_op(a, OP_MUL, with[0]->dtype, 2, with);
        const Expr *times[2] = {t->by, product};
        return t->by == NULL ? product : expr_op(a, OP_MUL, product->dtype, 2, times);
    }
    const Expr *e = t->value, *arg[3];
    for (uint32_t i = 0; i < 2; i++) {
        if (expr_eq(k, e, t->operand[i])) {
            return with[i];
        }
    }
    for (uint32_t i = 0; i < e->n_args; i++) { /* TERM_OPS deep at most */
        FoldTerm part = *t;
        part.value = e->arg[i];
        arg[i] = fold_term_of(a, k, &part, with);
    }
    return expr_op(a, e->op, e->dtype, e->n_args, arg);
}

const char *fold_schedule_problem(Arena *scratch, const Kernel *k, const Stmt *s)
{
    const Schedule *b = s->schedule;
    FoldTerm term;
    if (b == NULL) {
        return NULL;
    }
    if (!fold_term(k, s->fold, s->value, &term) || k->form != LOOP_TILED ||
        b->n_labels[ROLE_M] == 0 || b->n_labels[ROLE_N] == 0 || b->n_labels[ROLE_K] == 0 ||
        b->label[ROLE_M][0] >= s->n_index) {
        return "only a fold of terms of two operands, with rows, columns and a sum, has levels";
    }
    VarRef row = s->index[b->label[ROLE_M][0]].var;
    bool rows_in_left = expr_uses(k, term.operand[0], row);
    ScheduleRole *role = ARENA_ARRAY(scratch, s->n_index, ScheduleRole);
    for (uint32_t i = 0; i < s->n_index; i++) {
        VarRef x = s->index[i].var;
        role[i] =
            schedule_role(access_uses(k, s->dst, s->at, x), expr_uses(k, term.operand[0], x),
                          expr_uses(k, term.operand[1], x), rows_in_left);
    }
    return schedule_problem(b, s->n_index, role);
}
