/* SPDX-License-Identifier: Apache-2.0 */
/* Positions that must lie inside: the function that looks for one that does not, before a call computes anything. One loop for each says
 * whether there is one, which compilers make vectors of; another finds the first. */
#include "backend/c/interface/entry.h"

/* Of the function: what it is given, and its variables. */
typedef struct Search {
    Emitter *e; /* of the kernel that computes positions */
    const Kernel *k;
    const char *first, *found, *at;
} Search;

/* `(uint64_t)at >= (uint64_t)v`: negative ones are large. */
static const char *outside_text(const Search *s, const Requirement *r, const char *at)
{
    CWriter *w = &s->e->w;
    const char *below = c_dim_text(w, r->below);
    const char *test = str_format(w->arena, "(uint64_t)%s >= (uint64_t)%s", at, below);
    return r->guarded ? str_format(w->arena, "(%s) & (%s != INT64_MIN)", test, at) : test;
}

static void search_begin(const Search *s, const Stmt *t)
{
    loops_begin(&s->e->w, t->index, t->n_index);
    const char *value = expr_text(&s->e->w, t->value).at;
    line_printf(&s->e->w, "const int64_t %s = %s;", s->at, value);
}

static void describe(const Search *s, const Requirement *r, const Stmt *t)
{
    CWriter *w = &s->e->w;
    Text literal;
    text_init(&literal, w->arena);
    text_literal(&literal, r->array->text);
    line_printf(w, "%s->array = %s;", s->first, literal.at);
    text_clear(&literal);
    text_literal(&literal, r->text);
    line_printf(w, "%s->text = %s;", s->first, literal.at);
    text_clear(&literal);
    text_literal(&literal, r->indices);
    line_printf(w, "%s->indices = %s;", s->first, literal.at);
    line_printf(w, "%s->dimension = %u;", s->first, r->dimension);
    line_printf(w, "%s->n_indices = %u;", s->first, t->n_index);
    line_printf(w, "%s->position = %s;", s->first, s->at);
    line_printf(w, "%s->extent = %s;", s->first, c_dim_text(w, r->below));
    for (uint32_t i = 0; i < t->n_index; i++) {
        line_printf(w, "%s->index[%u] = %s;", s->first, i, w->var[t->index[i].var]);
    }
}

static void search_emit(const Search *s, const Requirement *r, const Stmt *t)
{
    CWriter *w = &s->e->w;
    comment_put(w->out, str_format(w->arena, "%s in %s", r->text, r->array->text));
    search_begin(s, t);
    line_printf(w, "%s |= %s;", s->found, outside_text(s, r, s->at));
    scopes_end(&s->e->w, t->n_index);
}

static void first_emit(const Search *s, const Requirement *r, const Stmt *t)
{
    CWriter *w = &s->e->w;
    search_begin(s, t);
    scope_printf(w, "if (%s) {", outside_text(s, r, s->at));
    describe(s, r, t);
    line_printf(w, "return 1;");
    scope_end(w);
    scopes_end(&s->e->w, t->n_index);
}

/* Braces around, as loops over no index have none. */
static void scoped(const Search *s, uint32_t k,
                   void (*emit)(const Search *, const Requirement *, const Stmt *))
{
    line_put(s->e->w.out, "{");
    scope_begin(&s->e->w);
    emit(s, &s->k->required[k], kernel_position(s->k, k));
    scope_end(&s->e->w);
}

/* Those that positions are made of. */
static void arguments_emit(const Search *s)
{
    CWriter *w = &s->e->w;
    bool *used = ARENA_ARRAY(w->arena, w->k->bufs.n, bool);
    for (uint32_t r = 0; r < s->k->n_required; r++) {
        expr_mark_loads(kernel_position(s->k, r)->value, used);
    }
    for (uint32_t i = 0; i < w->k->args.n; i++) {
        const Arg *a = &w->k->args.at[i];
        const char *name = w->buf[a->buf], *type = c_type(arg_buffer(w->k, i)->dtype);
        if (used[a->buf]) {
            line_printf(w,
                        a->role == ARG_SCALAR ? "const %s %s = *(const %s *)args[%u];"
                                              : "const %s *const %s = (const %s *)args[%u];",
                        type, name, type, i);
        }
    }
}

void required_emit(Emitter *e, const Kernel *k)
{
    Text *out = e->w.out, body, products;
    Search s = {.e = e, .k = k};
    s.first = names_take(&e->w.names, "first");
    s.found = names_take(&e->w.names, "found");
    s.at = names_take(&e->w.names, "at");
    text_printf(out,
                "\n/* Is a position outside of what it is a position of? */\n"
                "static int32_t tdsl_outside_%s(const int64_t *dims, void *const *args, "
                "tdsl_outside *%s)\n{\n",
                e->symbol, s.first);
    lines_init(&body, e->w.arena, 1); /* which arguments and dims it needs is known then */
    e->w.out = &body;
    line_printf(&e->w, "int32_t %s = 0;", s.found);
    for (uint32_t r = 0; r < k->n_required; r++) {
        scoped(&s, r, search_emit);
    }
    line_printf(&e->w, "if (%s == 0 || %s == NULL) {", s.found, s.first);
    line_printf(&e->w, "    return %s;", s.found);
    line_printf(&e->w, "}");
    for (uint32_t r = 0; r < k->n_required; r++) {
        scoped(&s, r, first_emit);
    }
    line_printf(&e->w, "return 0;");
    lines_init(&products, e->w.arena, 1);
    e->w.out = &products;
    dims_computed_emit(e, body.at);
    e->w.out = out;
    out->indent++;
    dims_emit(e, str_format(e->w.arena, "%s%s", products.at, body.at));
    arguments_emit(&s);
    line_put(out, "(void)dims; (void)args;");
    out->indent--;
    text_put(out, products.at);
    text_put(out, body.at);
    text_put(out, "}\n");
}
