/* SPDX-License-Identifier: Apache-2.0 */
/* Elements at positions that are values, where these are the same in an inner loop: they are computed and tested before it, and where all
 * lie inside the loop reads a row as it reads any array, which C compilers copy and make vectors of. */
#include "backend/c/emit.h"

/* The gathers of a value that are in no position of another. */
typedef struct Rows {
    Emitter *e;
    const Stmt *s;
    uint32_t n, depth; /* loops outside of which no position is computed */
    uint32_t n_named;  /* positions that are values, so far */
    const Expr *gather[GATHERED_ROWS];
    const Affine
        *at[GATHERED_ROWS]; /* where the element lies, positions that are values by a name */
    VEC(const char *) inside;
} Rows;

static bool is_gather(const Expr *e)
{
    return e->kind == EXPR_OP && e->op == OP_GATHER;
}

static void note_depth(Rows *r, const Expr *position)
{
    for (uint32_t i = r->depth; i < r->s->n_index; i++) {
        if (expr_uses(r->e->w.k, position, r->s->index[i].var)) {
            r->depth = i + 1;
        }
    }
}

static bool find_rows(Rows *r)
{
    ExprWalk w;
    for (const Expr *x = expr_first(&w, r->s->value); x != NULL; x = expr_next(&w)) {
        if (!is_gather(x)) {
            continue;
        }
        if (r->n == GATHERED_ROWS) {
            return false;
        }
        r->gather[r->n++] = x;
        for (uint32_t d = 0; d < x->n_args; d++) {
            if (x->arg[d]->kind != EXPR_INDEX) {
                note_depth(r, x->arg[d]);
            }
        }
        expr_skip(&w);
    }
    return r->n > 0 && r->depth < r->s->n_index;
}

/* A position's name, as that of a variable of the kernel which nothing else has. */
static Affine name_position(Rows *r, const Expr *position, Dim below)
{
    CWriter *w = &r->e->w;
    const char *text = expr_text(w, position).at, *name = names_take(&w->names, "at");
    line_printf(w, "const int64_t %s = %s;", name, text);
    vec_push(w->arena, &r->inside,
             str_format(w->arena, "(uint64_t)%s < (uint64_t)%s", name, c_dim_text(w, below)));
    VarRef var = w->k->vars.n + r->n_named++;
    w->var[var] = name;
    return affine_var(w->arena, var);
}

static void name_positions(Rows *r)
{
    for (uint32_t g = 0; g < r->n; g++) {
        const Expr *x = r->gather[g];
        Affine *at = ARENA_ARRAY(r->e->w.arena, x->n_args, Affine);
        const Buffer *b = &r->e->w.k->bufs.at[x->buf];
        for (uint32_t d = 0; d < x->n_args; d++) {
            bool index = x->arg[d]->kind == EXPR_INDEX; /* verified to lie inside */
            at[d] = index ? x->arg[d]->at[0] : name_position(r, x->arg[d], b->extent[d]);
        }
        r->at[g] = at;
    }
}

/* A copy of the value with loads in the place of gathers. */
static const Expr *with_loads(const Rows *r, const Expr *value)
{
    CWriter *w = &r->e->w;
    for (uint32_t g = 0; g < r->n; g++) {
        if (r->gather[g] == value) {
            return expr_load(w->arena, w->k, value->buf, r->at[g]);
        }
    }
    if (value->kind != EXPR_OP) {
        return value;
    }
    Expr *copy = arena_copy(w->arena, value, sizeof *value);
    const Expr **arg = ARENA_ARRAY(w->arena, value->n_args, const Expr *);
    for (uint32_t i = 0; i < value->n_args; i++) {
        arg[i] = with_loads(r, value->arg[i]);
    }
    copy->arg = arg;
    return copy;
}

static void loops_put(Rows *r, const Expr *value)
{
    CWriter *w = &r->e->w;
    Stmt one = *r->s;
    one.value = value;
    for (uint32_t i = r->depth; i < one.n_index; i++) {
        loop_begin(w, one.index[i].var, one.index[i].range, 1, FOR_ALL);
    }
    assign_put(w, &one);
    for (uint32_t i = r->depth; i < one.n_index; i++) {
        scope_end(w);
    }
}

bool gather_emit(Emitter *e, const Stmt *s)
{
    Rows r = {.e = e, .s = s};
    CWriter *w = &e->w;
    if (!find_rows(&r)) {
        return false;
    }
    loops_begin(w, s->index, r.depth);
    scope_printf(w, "{");
    name_positions(&r);
    Text inside;
    text_init(&inside, w->arena);
    for (uint32_t i = 0; i < r.inside.n; i++) {
        text_printf(&inside, i == 0 ? "%s" : " && %s", r.inside.at[i]);
    }
    scope_printf(w, "if (%s) {", r.inside.n == 0 ? "1" : inside.at);
    loops_put(&r, with_loads(&r, s->value));
    scope_else(w);
    loops_put(&r, s->value);
    scope_end(w);
    scopes_end(w, r.depth + 1);
    return true;
}
