/* SPDX-License-Identifier: Apache-2.0 */
/* See caller.h. Open dims are found first where an extent is one, then by solving extents that are computed: n of `n + k - 1`, once k is
 * known. What no argument gives the caller is asked for. */
#include "backend/c/interface/caller.h"

#include <string.h>

#define NAME_KEPT 40

const Buffer *caller_buffer(const Caller *c, uint32_t arg)
{
    return arg_buffer(c->k, arg);
}

bool caller_is_number(const Caller *c, uint32_t arg)
{
    return arg_shape(c->k, arg).rank == 0;
}

bool caller_writes(const Caller *c, uint32_t arg)
{
    ArgRole role = c->k->args.at[arg].role;
    return role == ARG_INOUT || role == ARG_RESULT;
}

static const DimInfo *info_of(const Caller *c, Dim d)
{
    return &c->k->dims.list.at[d.sym];
}

/* ---- text ---- */

static const char *numeral(const Caller *c, int64_t n)
{
    Text t;
    text_init(&t, c->arena);
    c->dialect->number(&t, n);
    return t.at;
}

static const char *axis_text(const Caller *c, uint32_t arg, uint32_t axis)
{
    uint32_t rank = arg_shape(c->k, arg).rank;
    Text t;
    text_init(&t, c->arena);
    c->dialect->axis(&t, c->arg[arg], c->dialect->reversed ? rank - axis : axis);
    return t.at;
}

static const char *divided(const Caller *c, const char *value, const char *by)
{
    return str_format(c->arena, "%s(%s, %s)", c->dialect->divide, value, by);
}

/* base + the terms but for number `left_out` */
static const char *sum_text(const Caller *c, const DimInfo *info, uint32_t left_out)
{
    Text t;
    text_init(&t, c->arena);
    for (uint32_t pass = 0; pass < 2; pass++) { /* what is added, then what is subtracted */
        for (uint32_t i = 0; i < info->n_terms; i++) {
            int64_t coef = info->term[i].coef;
            if (i == left_out || (coef < 0) != (pass == 1)) {
                continue;
            }
            if (t.n == 0 && pass == 1) {
                text_put(&t, numeral(c, 0));
            }
            text_put(&t, t.n == 0 ? "" : pass == 1 ? " - " : " + ");
            if (coef != 1 && coef != -1) {
                text_printf(&t, "%s * ", numeral(c, coef < 0 ? -coef : coef));
            }
            text_put(&t, caller_extent(c, info->term[i].dim));
        }
        if (pass == 0 && info->base > 0) {
            text_printf(&t, t.n == 0 ? "%s" : " + %s", numeral(c, info->base));
        }
    }
    if (info->base < 0) {
        text_printf(&t, "%s - %s", t.n == 0 ? numeral(c, 0) : "", numeral(c, -info->base));
    }
    return t.n == 0 ? numeral(c, 0) : t.at;
}

/* The factors but for number `left_out`. */
static const char *product_text(const Caller *c, const DimInfo *info, uint32_t left_out)
{
    Text t;
    text_init(&t, c->arena);
    for (uint32_t f = 0; f < info->n_factors; f++) {
        Dim d = info->factor[f];
        if (f == left_out) {
            continue;
        }
        bool sum = d.sym >= 0 && info_of(c, d)->n_terms > 0;
        text_printf(&t, sum ? "%s(%s)" : "%s%s", t.n == 0 ? "" : " * ", caller_extent(c, d));
    }
    return t.n == 0 ? numeral(c, 1) : t.at;
}

const char *caller_extent(const Caller *c, Dim d)
{
    if (d.sym < 0) {
        return numeral(c, d.n);
    }
    const DimInfo *info = info_of(c, d);
    if (dim_is_given(info)) {
        return c->dim[d.sym];
    }
    bool sum = info->n_terms > 0;
    const char *text = sum ? sum_text(c, info, UINT32_MAX) : product_text(c, info, UINT32_MAX);
    if (info->divisor <= 1) {
        return text;
    }
    if (!sum) { /* how many blocks cover it */
        text = str_format(c->arena, "%s + %s", text, numeral(c, info->divisor - 1));
    }
    return divided(c, text, numeral(c, info->divisor));
}

const char *caller_written(const Caller *c, Dim d)
{
    return dim_written(c->arena, &c->k->dims, d);
}

void caller_head(const Caller *c, Text *out, const char *mark)
{
    text_put(out, mark);
    text_comment(out, str_from(c->k->signature != NULL ? c->k->signature : c->k->name->text));
    text_put(out, "\n");
}

/* ---- open dims ---- */

static bool is_known(const Caller *c, Dim d)
{
    if (d.sym < 0) {
        return true;
    }
    const DimInfo *info = info_of(c, d);
    bool known = !dim_is_given(info) || c->value[d.sym] != NULL;
    for (uint32_t f = 0; f < info->n_factors; f++) {
        known = known && is_known(c, info->factor[f]);
    }
    for (uint32_t i = 0; i < info->n_terms; i++) {
        known = known && is_known(c, info->term[i].dim);
    }
    return known;
}

/* `d` is `value`: does that give an open dim which is not known yet? `divides`: also where that is a quotient, which says less of what
 * is wrong. */
static bool solve(Caller *c, Dim d, const char *value, bool divides)
{
    if (is_known(c, d)) {
        return false;
    }
    const DimInfo *info = info_of(c, d);
    if (dim_is_given(info)) {
        c->value[d.sym] = value;
        c->found[c->n_found++] = (uint32_t)d.sym;
        return true;
    }
    uint32_t at = 0, unknown = 0, n = info->n_terms > 0 ? info->n_terms : info->n_factors;
    for (uint32_t i = 0; i < n; i++) {
        if (!is_known(c, info->n_terms > 0 ? info->term[i].dim : info->factor[i])) {
            at = i;
            unknown++;
        }
    }
    if (unknown != 1 || info->divisor > 1) {
        return false;
    }
    if (info->n_factors > 0) {
        return divides && solve(c, info->factor[at],
                                divided(c, value, product_text(c, info, at)), divides);
    }
    int64_t coef = info->term[at].coef;
    if (!divides && coef != 1 && coef != -1) {
        return false;
    }
    const char *rest = sum_text(c, info, at);
    value = coef < 0 ? str_format(c->arena, "%s - %s", rest, value)
                     : str_format(c->arena, "%s - (%s)", value, rest);
    if (coef != 1 && coef != -1) {
        value = divided(c, value, numeral(c, coef < 0 ? -coef : coef));
    }
    return solve(c, info->term[at].dim, value, divides);
}

static void find_dims(Caller *c)
{
    bool more = true;
    for (uint32_t pass = 0; more || pass < 3; pass++) {
        more = false;
        for (uint32_t i = 0; i < c->k->args.n; i++) {
            ArgShape s = arg_shape(c->k, i);
            for (uint32_t axis = 0; axis < s.rank; axis++) {
                Dim d = s.extent[axis];
                if (d.sym >= 0 && (pass > 0 || dim_is_given(info_of(c, d)))) {
                    more |= solve(c, d, axis_text(c, i, axis), pass > 1);
                }
            }
        }
    }
}

/* ---- names ---- */

static const char *wish(const Caller *c, const char *text)
{
    if (!c->dialect->lower) {
        return text;
    }
    size_t n = strlen(text);
    char *word = ARENA_ARRAY(c->arena, NAME_KEPT + 2, char);
    size_t at = 0;
    if (n > 0 && text[0] == '_') {
        word[at++] = 'm';
    }
    for (size_t i = 0; i < n && at < NAME_KEPT; i++) {
        bool capital = text[i] >= 'A' && text[i] <= 'Z';
        word[at++] = capital ? (char)(text[i] - 'A' + 'a') : text[i];
    }
    return word;
}

static const char *take(const Caller *c, Names *names, const char *text)
{
    const char *word = wish(c, text);
    for (const char *const *t = c->dialect->taken; *t != NULL; t++) {
        if (strcmp(word, *t) == 0) {
            word = str_format(c->arena, "%s_", word);
        }
    }
    return names_take(names, word);
}

void caller_init(Caller *c, Arena *arena, const Kernel *k, const char *symbol,
                 const Dialect *dialect, Names *module)
{
    uint32_t given = dims_given(&k->dims);
    *c = (Caller){.arena = arena, .k = k, .dialect = dialect, .symbol = symbol};
    c->dim = ARENA_ARRAY(arena, (size_t)given + 1, const char *);
    c->value = ARENA_ARRAY(arena, (size_t)given + 1, const char *);
    c->found = ARENA_ARRAY(arena, (size_t)given + 1, uint32_t);
    c->arg = ARENA_ARRAY(arena, (size_t)k->args.n + 1, const char *);
    c->name = take(c, module, symbol);
    names_init(&c->names, arena);
    (void)names_claim(&c->names, c->name);
    for (uint32_t d = 0; d < given; d++) {
        c->dim[d] = take(c, &c->names, k->dims.list.at[d].name->text);
    }
    for (uint32_t i = 0; i < k->args.n; i++) {
        c->arg[i] = take(c, &c->names, caller_buffer(c, i)->name->text);
    }
    find_dims(c);
}
