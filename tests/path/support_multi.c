/* SPDX-License-Identifier: Apache-2.0 */
/* See support_multi.h. */
#include "path/support_multi.h"

#include <stdlib.h>
#include <string.h>

#include "support/places.h"

#define LETTERS 26

json_t *multi_file_load(void)
{
    return json_load_file(source_file("tests/data/multi.json"), 0, NULL);
}

int64_t *multi_sizes(Ctx *ctx, int64_t o, int64_t v)
{
    int64_t *sizes = ARENA_ARRAY(&ctx->arena, LETTERS, int64_t);
    for (int l = 0; l < LETTERS; l++) {
        sizes[l] = l < 8 ? v : o;
    }
    return sizes;
}

static PathLabels letters(const char *at, size_t n, Ctx *ctx)
{
    uint32_t *to = ARENA_ARRAY(&ctx->arena, n + 1, uint32_t);
    for (size_t i = 0; i < n; i++) {
        to[i] = (uint32_t)(at[i] - 'a');
    }
    return (PathLabels){to, (uint32_t)n};
}

/* P(x,y)...: each factor doubles the list. */
static void read_orders(const char *at, double coef, PathSummand *s, Ctx *ctx)
{
    PathLabels out = s->term.output;
    uint32_t n = 1;
    for (const char *p = at; (p = strchr(p, 'P')) != NULL; p++) {
        n *= 2;
    }
    PathOrder *list = ARENA_ARRAY(&ctx->arena, n, PathOrder);
    uint32_t *same = ARENA_ARRAY(&ctx->arena, out.n + 1, uint32_t);
    for (uint32_t d = 0; d < out.n; d++) {
        same[d] = d;
    }
    list[0] = (PathOrder){coef, same};
    n = 1;
    for (const char *p = at; (p = strchr(p, 'P')) != NULL; p++, n *= 2) {
        uint32_t x = (uint32_t)(p[2] - 'a'), y = (uint32_t)(p[4] - 'a'), at_x = 0, at_y = 0;
        for (uint32_t d = 0; d < out.n; d++) {
            at_x = out.at[d] == x ? d : at_x;
            at_y = out.at[d] == y ? d : at_y;
        }
        for (uint32_t i = 0; i < n; i++) {
            uint32_t *axis = ARENA_ARRAY(&ctx->arena, out.n + 1, uint32_t);
            for (uint32_t d = 0; d < out.n; d++) {
                uint32_t a = list[i].axis[d];
                axis[d] = a == at_x ? at_y : a == at_y ? at_x : a;
            }
            list[n + i] = (PathOrder){-list[i].coef, axis};
        }
    }
    s->n_orders = n;
    s->orders = list;
}

/* COEFFICIENT OPERANDS EQUATION [P(x,y)...] */
static PathSummand read_term(const char *text, uint32_t result, Ctx *ctx)
{
    char *at;
    double coef = strtod(text, &at);
    const char *names = at + 1, *eq = strchr(names, ' ') + 1, *arrow = strstr(eq, "->");
    uint32_t n = 1;
    for (const char *c = names; *c != ' '; c++) {
        n += *c == ',' ? 1 : 0;
    }
    uint32_t *tensor = ARENA_ARRAY(&ctx->arena, n, uint32_t);
    PathLabels *operands = ARENA_ARRAY(&ctx->arena, n, PathLabels);
    for (uint32_t k = 0; k < n; k++) {
        size_t name = strcspn(names, ", "), labels = strcspn(eq, ",-");
        tensor[k] = sym_intern(&ctx->syms, names, name)->id;
        operands[k] = letters(eq, labels, ctx);
        names += name + 1;
        eq += labels + 1;
    }
    size_t out = strcspn(arrow + 2, " ");
    PathSummand s = {.term = {n, tensor, operands, letters(arrow + 2, out, ctx), result}};
    read_orders(arrow + 2 + out, coef, &s, ctx);
    return s;
}

MultiSet multi_set_read(const json_t *file, size_t index, Ctx *ctx)
{
    const json_t *s = json_array_get(json_object_get(file, "sets"), index);
    MultiSet set = {.name = json_string_value(json_object_get(s, "name")),
                    .reference = json_object_get(s, "reference")};
    VEC(PathSummand) list = {0};
    size_t i, k;
    json_t *sum, *term;
    json_array_foreach(json_object_get(s, "sums"), i, sum)
    {
        json_array_foreach(json_object_get(sum, "terms"), k, term)
        {
            vec_push(&ctx->arena, &list, read_term(json_string_value(term), (uint32_t)i, ctx));
        }
    }
    set.n = list.n;
    set.summands = list.at;
    return set;
}

PathMulti multi_plain(const MultiSet *set, const int64_t *sizes, Ctx *ctx)
{
    PathTerm *terms = ARENA_ARRAY(&ctx->arena, set->n, PathTerm);
    for (uint32_t t = 0; t < set->n; t++) {
        const PathSummand *s = &set->summands[t];
        const char *key = str_format(&ctx->arena, "sum %u", s->term.sum);
        for (uint32_t i = 0; i < s->n_orders; i++) {
            bool minus = (s->orders[i].coef < 0.0) != (s->orders[0].coef < 0.0);
            key = str_format(&ctx->arena, "%s %c", key, minus ? '-' : '+');
            for (uint32_t d = 0; d < s->term.output.n; d++) {
                key = str_format(&ctx->arena, "%s%u", key, s->orders[i].axis[d]);
            }
        }
        terms[t] = s->term;
        terms[t].sum = sym_cstr(&ctx->syms, key)->id;
    }
    return (PathMulti){.n_terms = set->n, .terms = terms, .n_labels = LETTERS, .sizes = sizes};
}

PathMulti multi_of_merged(const PathMerged *merged, const int64_t *sizes)
{
    return (PathMulti){.n_terms = merged->n_terms,
                       .terms = merged->terms,
                       .n_labels = LETTERS,
                       .sizes = sizes,
                       .factor = true,
                       .n_choices = merged->n_choices,
                       .choices = merged->choices};
}
