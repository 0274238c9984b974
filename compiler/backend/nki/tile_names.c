/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/nki/tile_names.h"

#include <string.h>

#define LENGTH_MOST 16 /* letters of a variable */

/* The variable without its number, in capitals; null: it is no name of the program, as the roller's are not. */
static const char *loop_of(const char *var, char *out)
{
    size_t n = strlen(var);
    while (n > 1 && var[n - 1] >= '0' && var[n - 1] <= '9') {
        n--;
    }
    if (n > LENGTH_MOST || (n == 1 && strchr("uvwx", var[0]) != NULL)) {
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        bool small = var[i] >= 'a' && var[i] <= 'z', big = var[i] >= 'A' && var[i] <= 'Z';
        bool other = (var[i] >= '0' && var[i] <= '9') || var[i] == '_';
        if (!small && !big && !other) {
            return NULL;
        }
        out[i] = small ? (char)(var[i] - 'a' + 'A') : var[i];
    }
    out[n] = 0;
    return out;
}

static TileName *find(TileNames *t, const char *loop, int64_t size)
{
    for (uint32_t i = 0; i < t->n; i++) {
        if (t->at[i].size == size && strcmp(t->at[i].loop, loop) == 0) {
            return &t->at[i];
        }
    }
    return NULL;
}

void tile_names_note(TileNames *t, Arena *a, const char *var, int64_t size)
{
    char text[LENGTH_MOST + 1];
    const char *loop = loop_of(var, text);
    if (loop == NULL || size < 2 || t->n == TILE_NAMES_MOST || find(t, loop, size) != NULL) {
        return;
    }
    uint32_t at = t->n++; /* in order of loops, larger steps first */
    for (; at > 0; at--) {
        int order = strcmp(t->at[at - 1].loop, loop);
        if (order < 0 || (order == 0 && t->at[at - 1].size > size)) {
            break;
        }
        t->at[at] = t->at[at - 1];
    }
    t->at[at] = (TileName){str_format(a, "%s", loop), size, NULL};
}

static bool is_taken(const Kernel *k, const char *name)
{
    bool taken = false;
    for (uint32_t b = 0; b < k->bufs.n; b++) {
        taken |= strcmp(nki_param(k, b), name) == 0 || strcmp(nki_result(k, b), name) == 0;
    }
    return taken;
}

void tile_names_choose(TileNames *t, const Kernel *k)
{
    for (uint32_t i = 0; i < t->n; i++) {
        TileName *x = &t->at[i];
        bool first = i == 0 || strcmp(t->at[i - 1].loop, x->loop) != 0;
        bool last = i + 1 == t->n || strcmp(t->at[i + 1].loop, x->loop) != 0;
        const char *name =
            str_format(k->arena, first && !last ? "BLOCK_%s" : "TILE_%s", x->loop);
        x->name = (first || last) && !is_taken(k, name) ? name : NULL;
    }
}

const char *tile_name(const TileNames *t, const char *var, int64_t size)
{
    char text[LENGTH_MOST + 1];
    const char *loop = loop_of(var, text);
    for (uint32_t i = 0; i < t->n && loop != NULL; i++) {
        if (t->at[i].size == size && strcmp(t->at[i].loop, loop) == 0) {
            return t->at[i].name;
        }
    }
    return NULL;
}

void tile_names_print(const TileNames *t, Text *out)
{
    for (int sizes = 0; sizes < 2; sizes++) {
        bool any = false;
        for (uint32_t i = 0; i < t->n; i++) {
            if (t->at[i].name == NULL) {
                continue;
            }
            text_put(out, any ? ", " : sizes > 0 ? " = " : "");
            if (sizes > 0) {
                text_i64(out, t->at[i].size);
            } else {
                text_put(out, t->at[i].name);
            }
            any = true;
        }
        text_put(out, any && sizes > 0 ? "\n" : "");
    }
}
