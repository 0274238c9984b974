/* SPDX-License-Identifier: Apache-2.0 */
/* Counts. How many positions a range has that ends with its block or with its extent, min(16, n - jr), is bound to a name where
 * the block begins, if it is needed more than once. */
#include <string.h>

#include "backend/c/emit.h"

/* A range, and how often a block needs its count. */
typedef struct Found {
    Range range;
    uint32_t uses;
    bool is_sum; /* a product runs over it */
} Found;

typedef struct Search {
    Emitter *e;
    bool *bound; /* [vars] by loops of the block and indices of its statements */
    VEC(Found) found;
} Search;

static void note(Search *s, Range r, bool is_sum)
{
    if (!r.clipped || r.span == 0 || (r.start.n == 0 && r.limit.sym < 0)) {
        return; /* its end is an extent or a number */
    }
    for (uint32_t i = 0; i < s->found.n; i++) {
        if (range_eq(&s->found.at[i].range, &r)) {
            s->found.at[i].uses++;
            s->found.at[i].is_sum |= is_sum;
            return;
        }
    }
    vec_push(s->e->w.arena, &s->found, ((Found){r, 1, is_sum}));
}

static void note_tile(Search *s, const Stmt *t)
{
    bool product = stmt_is_product(t);
    Product p;
    if (!product && !s->e->in_tile && stmt_has_lanes(t)) {
        return; /* a function of its own */
    }
    CHECK(!product || product_of(s->e->w.k, t, &p) == NULL);
    for (uint32_t i = 0; i < t->n_index; i++) {
        s->bound[t->index[i].var] = true;
        note(s, t->index[i].range, product && p.sum == &t->index[i]);
    }
}

/* What is printed into the function that is open: the bodies of others are left out. */
static void search_block(Search *s, Stmt *const *body, uint32_t n)
{
    Emitter *e = s->e;
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *x = body[i];
        if (x->kind == STMT_ALLOC && !e->in_tile && is_register_alloc(e->w.k, x)) {
            return;
        }
        if (x->kind == STMT_TILE) {
            note_tile(s, x);
        } else if (x->kind == STMT_FOR) {
            s->bound[x->var] = true;
            note(s, x->range, false);
        }
        if (stmt_has_body(x) && x->threads == NULL) {
            search_block(s, x->body, x->n_body);
        }
    }
}

static bool is_known(const CWriter *w, const Range *r)
{
    for (uint32_t i = 0; i < w->counts.n; i++) {
        if (range_eq(&w->counts.at[i].range, r)) {
            return true;
        }
    }
    return false;
}

/* "jc" -> "nc": of the counts of Goto's loops and of sums of products. Null: of others, whose loops compilers know as they are. */
static const char *count_name(Emitter *e, const Found *f)
{
    static const char *const names[][2] = {{"jc", "nc"}, {"jp", "np"}, {"ic", "mc"},
                                           {"ip", "mp"}, {"pc", "kc"}, {"jr", "nr"},
                                           {"ir", "mr"}};
    uint32_t n = f->range.start.n;
    const char *var = n == 0 ? "sum" : e->w.var[f->range.start.term[n - 1].var];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strncmp(var, names[i][0], 2) == 0 &&
            strspn(var + 2, "_0123456789") == strlen(var + 2)) {
            return names[i][1];
        }
    }
    return f->is_sum ? "kc" : NULL;
}

/* The wish, or the first name like it that no count in scope has. */
static const char *count_take(Emitter *e, const char *wish)
{
    CWriter *w = &e->w;
    for (uint32_t i = 0; i < e->count_names.n; i++) {
        const Temp *known = &e->count_names.at[i];
        bool free = strcmp(known->text, wish) == 0;
        for (uint32_t c = 0; free && c < w->counts.n; c++) {
            free = strcmp(w->counts.at[c].name, known->name) != 0;
        }
        if (free) {
            return known->name;
        }
    }
    const char *name = names_take(&w->names, wish);
    vec_push(w->arena, &e->count_names, ((Temp){wish, name}));
    return name;
}

static const char *new_count(Emitter *e, Range r)
{
    CWriter *w = &e->w;
    const char *rest = c_dim_text(w, r.limit);
    if (r.start.n > 0 || r.start.base != 0) {
        rest = str_format(w->arena, "%s - %s", rest, affine_text(w, r.start, BIND_PRODUCT));
    }
    return str_format(w->arena, "%s(%lld, %s)", help_fixed(w->help, "tdsl_min"),
                      (long long)r.span, rest);
}

void counts_bind(Emitter *e, Stmt *const *body, uint32_t n, bool outermost, VarRef var)
{
    CWriter *w = &e->w;
    Search s = {.e = e};
    s.bound = ARENA_ARRAY(w->arena, (size_t)w->k->vars.n + 1, bool);
    search_block(&s, body, n);
    for (uint32_t i = 0; i < s.found.n; i++) {
        const Found *f = &s.found.at[i];
        bool ready = outermost || affine_uses(f->range.start, var);
        for (uint32_t t = 0; t < f->range.start.n; t++) {
            ready &= !s.bound[f->range.start.term[t].var];
        }
        const char *wish = count_name(e, f);
        if (ready && wish != NULL && f->uses > 1 && !is_known(w, &f->range)) {
            const char *name = count_take(e, wish);
            line_printf(w, "const int64_t %s = %s;", name, new_count(e, f->range));
            vec_push(w->arena, &w->counts, ((Count){f->range, name}));
        }
    }
}

void counts_bind_cut(Emitter *e, const Stmt *loop)
{
    CWriter *w = &e->w;
    Affine start = affine_var(w->arena, loop->var);
    Found f = {.range = {start, loop->step, true, loop->range.limit}};
    const char *wish = count_name(e, &f), *name = count_take(e, wish == NULL ? "n" : wish);
    line_printf(w, "const int64_t %s = %s(%s, %s - %s);", name, help_fixed(w->help, "tdsl_min"),
                e->own.step, e->own.until, w->var[loop->var]);
    vec_push(w->arena, &w->counts, ((Count){f.range, name}));
}
