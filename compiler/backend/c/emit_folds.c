/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of single statements, those that are no products, in the tables of the instruction sets. */
#include <string.h>

#include "backend/c/emit.h"
#include "backend/c/isa.h"
#include "backend/c/micro.h"

/* ", TDSL_V, TDSL_L, TDSL_V2, TDSL_L2", or with other letters. */
const char *vector_parameters(Arena *a, uint32_t n, const char *vector, const char *lanes)
{
    Text t;
    text_init(&t, a);
    for (uint32_t i = 0; i < n; i++) {
        const char *number = i == 0 ? "" : str_format(a, "%u", i + 1);
        text_printf(&t, ", %s%s, %s%s", vector, number, lanes, number);
    }
    return t.at;
}

/* The types of vectors and numbers of lanes that all macros get. */
static uint32_t all_vectors(const Tiles *t, TileVector *v)
{
    uint32_t n = 0;
    for (uint32_t f = 0; f < t->fold.n; f++) {
        for (uint32_t i = 0; i < t->fold.at[f].n; i++) {
            TileVector x = t->fold.at[f].vector[i];
            uint32_t at = 0;
            while (at < n && (v[at].t != x.t || v[at].most != x.most)) {
                at++;
            }
            v[at] = x;
            n += at == n ? 1 : 0;
        }
    }
    return n;
}

#define MOST_VECTORS 24 /* element types by numbers of lanes: 2, 4, 8, 16 */

void folds_macro(const Tiles *t, Text *out)
{
    TileVector all[MOST_VECTORS];
    uint32_t n = all_vectors(t, all), made = 0;
    Text lines;
    lines_init(&lines, t->arena, 1);
    for (uint32_t f = 0; f < t->fold.n; f++) {
        const TileFold *x = &t->fold.at[f];
        Text call;
        text_init(&call, t->arena);
        for (uint32_t i = 0; i < x->n; i++) {
            uint32_t at = 0;
            while (all[at].t != x->vector[i].t || all[at].most != x->vector[i].most) {
                at++;
            }
            text_printf(&call, at == 0 ? ", V, L" : ", V%u, L%u", at + 1, at + 1);
        }
        if (x->macro != NULL) {
            made++;
            line_put(&lines, str_format(t->arena, "%s(ISA%s)", x->macro, call.at));
        }
    }
    if (made > 0) {
        text_put(out, "\n");
        macro_put(
            out,
            str_format(t->arena, "TDSL_TILES(ISA%s)", vector_parameters(t->arena, n, "V", "L")),
            lines.at);
    }
}

static const char *vectors_text(Tiles *t, const Isa *isa, const TileVector *v, uint32_t n)
{
    Text all;
    text_init(&all, t->arena);
    for (uint32_t i = 0; i < n; i++) {
        text_printf(&all, ", %s, %lld", isa_vector(t, isa, v[i]),
                    (long long)isa_lanes(isa, v[i]));
    }
    return all.at;
}

void folds_of(Tiles *t, const Isa *isa, Text *out)
{
    TileVector all[MOST_VECTORS];
    uint32_t n = all_vectors(t, all), made = 0;
    for (uint32_t f = 0; f < t->fold.n; f++) {
        made += t->fold.at[f].macro != NULL ? 1 : 0;
    }
    if (made > 0) {
        text_printf(out, "TDSL_TILES(%s%s)\n", isa->name, vectors_text(t, isa, all, n));
    }
}
