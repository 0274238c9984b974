/* SPDX-License-Identifier: Apache-2.0 */
/* Looking up what is known of a text: the name at a place, its symbol, the kernel around it. */
#include <stdlib.h>
#include <string.h>

#include "driver/lsp/server.h"

/* ---- reading ---- */

/* The text up to `end`, which becomes its NUL; *at goes behind it. Empty at the end of all. */
static char *field(char **at, char end)
{
    char *from = *at, *to = strchr(from, end);
    if (to == NULL) {
        *at = from + strlen(from);
        return from;
    }
    *to = '\0';
    *at = to + 1;
    return from;
}

static uint32_t number(char **at)
{
    uint32_t n = 0;
    char *c = *at;
    for (; *c >= '0' && *c <= '9'; c++) {
        n = 10 * n + (uint32_t)(*c - '0');
    }
    *at = *c == '\0' ? c : c + 1;
    return n;
}

static const char *or_null(const char *text)
{
    return text[0] == '\0' ? NULL : text;
}

static LspFound read_symbol(char *line)
{
    char *at = line;
    LspFound f = {0};
    uint32_t kind = number(&at);
    f.kind = kind < LSP_KINDS ? (LspKind)kind : LSP_WORD;
    f.kernel = (int32_t)number(&at) - 1;
    f.lo = number(&at);
    f.hi = number(&at);
    f.from = number(&at);
    f.to = number(&at);
    f.name = field(&at, '\t');
    f.detail = or_null(field(&at, '\t'));
    f.about = or_null(field(&at, '\t'));
    f.uri = or_null(field(&at, '\t'));
    for (int k = 0; k < 2; k++) {
        f.place[k].line = number(&at);
        f.place[k].unit = number(&at);
    }
    return f;
}

void lsp_meaning_read(LspMeaning *m, json_t *root, char *text)
{
    *m = (LspMeaning){.root = root, .text = text};
    arena_init(&m->arena, NULL);
    m->damaged = json_is_true(json_object_get(root, "damaged"));
    m->includes = json_is_true(json_object_get(root, "includes"));
    char *symbols = field(&text, LSP_SECTION), *uses = field(&text, LSP_SECTION);
    char *kernels = field(&text, LSP_SECTION);
    m->tokens = text;
    while (*symbols != '\0') {
        vec_push(&m->arena, &m->symbols, read_symbol(field(&symbols, '\n')));
    }
    while (*kernels != '\0') {
        char *line = field(&kernels, '\n');
        LspKernelText k = {.name = field(&line, '\t')};
        k.lo = number(&line);
        k.hi = number(&line);
        vec_push(&m->arena, &m->kernels, k);
    }
    while (*uses != '\0') {
        LspUsed u = {.lo = number(&uses)};
        u.hi = number(&uses);
        u.symbol = number(&uses);
        u.writes = number(&uses) != 0;
        if (u.symbol < m->symbols.n) {
            vec_push(&m->arena, &m->uses, u);
        }
    }
}

void lsp_meaning_free(LspMeaning *m)
{
    if (m->root != NULL) {
        json_decref(m->root);
        free(m->text);
        arena_release(&m->arena);
    }
    *m = (LspMeaning){0};
}

/* ---- by place ---- */

uint32_t lsp_use_at(const LspMeaning *m, uint32_t byte)
{
    uint32_t lo = 0, hi = m->uses.n;
    while (lo < hi) { /* the first that begins behind the byte */
        uint32_t middle = lo + (hi - lo) / 2;
        if (m->uses.at[middle].lo <= byte) {
            lo = middle + 1;
        } else {
            hi = middle;
        }
    }
    return lo > 0 && byte <= m->uses.at[lo - 1].hi ? lo - 1 : UINT32_MAX;
}

int32_t lsp_kernel_at(const LspMeaning *m, uint32_t byte)
{
    for (uint32_t k = 0; k < m->kernels.n; k++) {
        if (m->kernels.at[k].lo <= byte && byte < m->kernels.at[k].hi) {
            return (int32_t)k;
        }
    }
    return -1;
}

const char *lsp_kernel_name(const LspMeaning *m, int32_t kernel)
{
    return kernel >= 0 && kernel < (int64_t)m->kernels.n ? m->kernels.at[kernel].name : NULL;
}

json_t *lsp_found_location(LspDocument *d, const LspFound *f)
{
    if (f->uri != NULL) {
        const LspPlace *p = f->place;
        return json_pack("{s:s, s:{s:{s:i, s:i}, s:{s:i, s:i}}}", "uri", f->uri, "range",
                         "start", "line", (int)p[0].line, "character", (int)p[0].unit, "end",
                         "line", (int)p[1].line, "character", (int)p[1].unit);
    }
    return f->hi == 0 ? NULL
                      : json_pack("{s:s, s:o}", "uri", d->uri, "range",
                                  lsp_range(&d->lines, f->lo, f->hi));
}

/* ---- by name ---- */

uint32_t lsp_named(const LspMeaning *m, const char *name, size_t n, const char *kernel)
{
    for (uint32_t k = 0; k < m->symbols.n; k++) {
        const LspFound *f = &m->symbols.at[k];
        if (strncmp(f->name, name, n) != 0 || f->name[n] != '\0') {
            continue;
        }
        const char *of = f->kind == LSP_KERNEL ? NULL : lsp_kernel_name(m, f->kernel);
        if (of == kernel || (of != NULL && kernel != NULL && strcmp(of, kernel) == 0)) {
            return k;
        }
    }
    return UINT32_MAX;
}

/* The name behind the last `kernel` before the byte; empty: there is none, or it is long. */
static void kernel_before(const char *text, uint32_t byte, char *out, size_t room)
{
    static const char word[] = "kernel ";
    const uint32_t n = sizeof word - 1;
    out[0] = '\0';
    for (uint32_t at = byte; at-- > 0;) {
        size_t length = 0;
        if (at + n > byte || memcmp(text + at, word, n) != 0 ||
            (at > 0 && lsp_is_letter(text[at - 1]))) {
            continue;
        }
        while (lsp_is_letter(text[at + n + length])) {
            length++;
        }
        if (length < room) {
            memcpy(out, text + at + n, length);
            out[length] = '\0';
        }
        return;
    }
}

const LspFound *lsp_find(const LspDocument *d, uint32_t byte, bool *old)
{
    const LspMeaning *m = &d->meaning;
    uint32_t use = lsp_use_at(m, byte), from = byte, to = byte;
    *old = false;
    if (use != UINT32_MAX) {
        return &m->symbols.at[m->uses.at[use].symbol];
    }
    while (from > 0 && lsp_is_letter(d->text[from - 1])) {
        from--;
    }
    while (lsp_is_letter(d->text[to])) {
        to++;
    }
    if (from == to || !m->damaged) {
        return NULL;
    }
    const LspMeaning *const known[] = {m, &d->whole};
    char kernel[256];
    kernel_before(d->text, byte, kernel, sizeof kernel);
    for (int k = 0; k < 4; k++) {
        *old = k % 2 == 1;
        uint32_t s = lsp_named(known[k % 2], d->text + from, to - from, k < 2 ? kernel : NULL);
        if (s != UINT32_MAX) {
            return &known[k % 2]->symbols.at[s];
        }
    }
    return NULL;
}
