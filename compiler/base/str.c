/* SPDX-License-Identifier: Apache-2.0 */
/* Slices, the table of interned strings, edit distance for suggestions, and UTF-8. The symbol table is open
 * addressing over pointers; ids are dense in order of interning, so nothing depends on hash order. */
#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/map.h"

void symtable_init(SymTable *t, Arena *arena)
{
    *t = (SymTable){.arena = arena};
}

static uint32_t sym_slot(const SymTable *t, const char *text, size_t n)
{
    uint32_t at = (uint32_t)hash_bytes(0, text, n) & (t->cap - 1);
    while (t->slot[at] != NULL &&
           (t->slot[at]->n != n || (n != 0 && memcmp(t->slot[at]->text, text, n) != 0))) {
        at = (at + 1) & (t->cap - 1);
    }
    return at;
}

static void symtable_grow(SymTable *t)
{
    SymTable old = *t;
    CHECK(old.cap <= UINT32_MAX / 4);
    t->cap = old.cap == 0 ? 64 : old.cap * 2;
    t->slot = ARENA_ARRAY(t->arena, t->cap, Sym);
    for (uint32_t i = 0; i < old.cap; i++) {
        if (old.slot[i] != NULL) {
            t->slot[sym_slot(t, old.slot[i]->text, old.slot[i]->n)] = old.slot[i];
        }
    }
}

Sym sym_intern(SymTable *t, const char *text, size_t n)
{
    CHECK(n < UINT32_MAX);
    if (t->n >= t->cap / 4 * 3) {
        symtable_grow(t);
    }
    uint32_t at = sym_slot(t, text, n);
    if (t->slot[at] == NULL) {
        SymText *s = arena_alloc(t->arena, sizeof(SymText) + n + 1);
        s->n = (uint32_t)n;
        s->id = t->n++;
        if (n != 0) {
            memcpy(s->text, text, n);
        }
        t->slot[at] = s;
    }
    return t->slot[at];
}

Sym sym_cstr(SymTable *t, const char *text)
{
    return sym_intern(t, text, strlen(text));
}

Str str_from(const char *text)
{
    return (Str){text, strlen(text)};
}

bool str_eq(Str a, Str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.at, b.at, a.n) == 0);
}

bool str_eq_cstr(Str a, const char *b)
{
    return str_eq(a, str_from(b));
}

char *str_dup(Arena *a, Str s)
{
    char *to = arena_alloc(a, s.n + 1);
    if (s.n != 0) {
        memcpy(to, s.at, s.n);
    }
    return to;
}

char *str_vformat(Arena *a, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    CHECK(n >= 0);
    char *to = arena_alloc(a, (size_t)n + 1);
    vsnprintf(to, (size_t)n + 1, format, arguments);
    return to;
}

char *str_format(Arena *a, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *to = str_vformat(a, format, arguments);
    va_end(arguments);
    return to;
}

/* Longer names are only compared for equality: a suggestion for them would help nobody. */
#define DISTANCE_LONGEST 128

static int least(int a, int b)
{
    return a < b ? a : b;
}

int str_distance(Str a, Str b, int limit)
{
    size_t gap = a.n > b.n ? a.n - b.n : b.n - a.n;
    if (str_eq(a, b)) {
        return 0;
    }
    if (gap > (size_t)limit || a.n > DISTANCE_LONGEST || b.n > DISTANCE_LONGEST) {
        return limit + 1;
    }
    /* Three rows of the usual table: insert, delete, replace, swap of two neighbours. */
    int rows[3][DISTANCE_LONGEST + 1];
    int n = (int)a.n, m = (int)b.n;
    for (int j = 0; j <= m; j++) {
        rows[0][j] = j;
    }
    for (int i = 1; i <= n; i++) {
        int *now = rows[i % 3], *one = rows[(i + 2) % 3], *two = rows[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            int replace = one[j - 1] + (a.at[i - 1] != b.at[j - 1]);
            now[j] = least(replace, least(one[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a.at[i - 1] == b.at[j - 2] && a.at[i - 2] == b.at[j - 1]) {
                now[j] = least(now[j], two[j - 2] + 1);
            }
        }
    }
    return least(rows[n % 3][m], limit + 1);
}

/* The length of the valid sequence at `at`, or 0. NUL counts as invalid. */
static int utf8_length(const unsigned char *at, const unsigned char *end)
{
    unsigned char c = at[0];
    if (c < 0x80) {
        return c == 0 ? 0 : 1;
    }
    int n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
    if (c < 0xc2 || c > 0xf4 || end - at < n) {
        return 0;
    }
    for (int k = 1; k < n; k++) {
        if ((at[k] & 0xc0) != 0x80) {
            return 0;
        }
    }
    /* Overlong, surrogate, or beyond U+10FFFF: told by the second byte. */
    if ((c == 0xe0 && at[1] < 0xa0) || (c == 0xed && at[1] > 0x9f) ||
        (c == 0xf0 && at[1] < 0x90) || (c == 0xf4 && at[1] > 0x8f)) {
        return 0;
    }
    return n;
}

bool utf8_valid(Str s, size_t *bad)
{
    const unsigned char *at = (const unsigned char *)s.at;
    size_t i = 0;
    while (i < s.n) {
        int n = utf8_length(at + i, at + s.n);
        if (n == 0) {
            *bad = i;
            return false;
        }
        i += (size_t)n;
    }
    return true;
}

uint32_t utf8_decode(const char *at, const char *end, int *length)
{
    const unsigned char *p = (const unsigned char *)at;
    int n = at < end ? utf8_length(p, (const unsigned char *)end) : 0;
    *length = n == 0 ? 1 : n;
    switch (n) {
    case 1:
        return p[0];
    case 2:
        return (uint32_t)(p[0] & 0x1f) << 6 | (p[1] & 0x3fu);
    case 3:
        return (uint32_t)(p[0] & 0x0f) << 12 | (uint32_t)(p[1] & 0x3f) << 6 | (p[2] & 0x3fu);
    case 4:
        return (uint32_t)(p[0] & 0x07) << 18 | (uint32_t)(p[1] & 0x3f) << 12 |
               (uint32_t)(p[2] & 0x3f) << 6 | (p[3] & 0x3fu);
    default:
        return UTF8_BAD;
    }
}

int utf8_from_code(uint32_t code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}
