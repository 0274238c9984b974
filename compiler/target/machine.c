/* SPDX-License-Identifier: Apache-2.0 */
/* See machine.h. */
#include "target/machine.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"

/* A number of the file, and where it is kept: one of the two. */
typedef struct MachineNumber {
    const char *name;
    int64_t *whole;
    double *real;
    double least, most;
    const char *what;
} MachineNumber;

typedef struct MachineNumbers {
    Arena *arena;
    VEC(MachineNumber) list;
} MachineNumbers;

#define CAPACITY_LEAST 4096.0
#define CAPACITY_MOST  1099511627776.0 /* 1 TiB */

static MachineNumbers numbers_of(Arena *a, Machine *m)
{
    MachineNumbers out = {.arena = a};
    for (uint32_t i = 0; i < m->n_levels; i++) {
        MemoryLevel *l = &m->level[i];
        const MachineNumber row[3] = {{str_format(a, "%s.capacity", l->name), &l->capacity,
                                       NULL, CAPACITY_LEAST, CAPACITY_MOST, "in bytes"},
                                      {str_format(a, "%s.bytes_per_second", l->name), NULL,
                                       &l->bytes_per_second, 1e6, 1e15,
                                       "from there to the level inside of it"},
                                      {str_format(a, "%s.granule", l->name), &l->granule, NULL,
                                       16, 65536, "bytes that take as long as a run of fewer"}};
        bool innermost = i + 1 == m->n_levels;
        for (uint32_t k = i == 0 ? 1 : 0; k < (innermost ? 1 : 3); k++) {
            vec_push(a, &out.list, row[k]);
        }
    }
#define WHOLE(name, field, least, most, what)                                                  \
    vec_push(a, &out.list, ((MachineNumber){name, &m->field, NULL, least, most, what}));
#define REAL(name, field, least, most, what)                                                   \
    vec_push(a, &out.list, ((MachineNumber){name, NULL, &m->field, least, most, what}));
#include "target/machine.def"
#undef WHOLE
#undef REAL
    return out;
}

void machine_print(const Machine *m, Text *out)
{
    Machine copy = *m;
    MachineNumbers numbers = numbers_of(out->arena, &copy);
    for (uint32_t i = 0; i < numbers.list.n; i++) {
        const MachineNumber *n = &numbers.list.at[i];
        Text value = text_new(out->arena);
        if (n->whole != NULL) {
            text_i64(&value, *n->whole);
        } else {
            text_f64(&value, *n->real);
        }
        text_printf(out, "%-24s %-12s # %s\n", n->name, value.at, n->what);
    }
}

/* ---- reading ---- */

typedef struct MachineReader {
    Ctx *ctx;
    Arena *arena;
    uint32_t source;
    Str text;
    const MachineNumbers *numbers;
    bool *given; /* by number */
} MachineReader;

static Span word_span(const MachineReader *r, Str word)
{
    uint32_t lo = (uint32_t)(word.at - r->text.at);
    return (Span){r->source, lo, lo + (uint32_t)word.n};
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The words of the line that begins at `*at`, at most `most`, without its comment; `*at` goes to the next one. Returns how many
 * words there are. */
static uint32_t read_line(Str text, size_t *at, Str *word, uint32_t most)
{
    uint32_t n = 0;
    bool comment = false;
    for (; *at < text.n && text.at[*at] != '\n'; ++*at) {
        const char *c = text.at + *at;
        comment = comment || *c == '#';
        if (comment || is_blank(*c)) {
            continue;
        }
        bool begins = *at == 0 || is_blank(c[-1]) || c[-1] == '\n';
        n += begins ? 1 : 0;
        if (begins && n <= most) {
            word[n - 1] = (Str){c, 0};
        }
        if (n > 0 && n <= most) {
            word[n - 1].n = (size_t)(c + 1 - word[n - 1].at);
        }
    }
    *at += *at < text.n ? 1 : 0;
    return n;
}

/* A decimal number, as programs write it. */
static bool read_number(Arena *a, Str word, double *out)
{
    const char *text = str_dup(a, word);
    char *end = NULL;
    if (strspn(text, "0123456789.eE+-") != word.n || word.n > 40) {
        return false;
    }
    *out = strtod(text, &end);
    return end != text && *end == '\0';
}

static uint32_t find_number(const MachineReader *r, Str name)
{
    uint32_t i = 0;
    while (i < r->numbers->list.n && !str_eq_cstr(name, r->numbers->list.at[i].name)) {
        i++;
    }
    return i;
}

static void refuse_name(const MachineReader *r, Str name)
{
    const char *near = NULL;
    int least = 4;
    for (uint32_t i = 0; i < r->numbers->list.n; i++) {
        int distance = str_distance(name, str_from(r->numbers->list.at[i].name), least);
        near = distance < least ? r->numbers->list.at[i].name : near;
        least = distance < least ? distance : least;
    }
    Diagnostic *d = diag_error(&r->ctx->diags, E_MACHINE, word_span(r, name),
                               "a machine has no number '%.*s'", (int)name.n, name.at);
    if (near != NULL) {
        diag_help(d, "did you mean '%s'?", near);
    } else {
        diag_help(d, "--print-machine prints all of them");
    }
}

static void read_value(const MachineReader *r, uint32_t number, Str word)
{
    const MachineNumber *n = &r->numbers->list.at[number];
    double value = 0;
    bool ok = read_number(r->arena, word, &value) && value >= n->least && value <= n->most;
    if (!ok || (n->whole != NULL && value != (double)(int64_t)value)) {
        Text limits = text_new(r->arena);
        text_printf(&limits,
                    n->whole != NULL ? "a whole number from %.0f to %.0f"
                                     : "a number from %g to %g",
                    n->least, n->most);
        diag_error(&r->ctx->diags, E_MACHINE, word_span(r, word), "'%s' is %s", n->name,
                   limits.at);
    } else if (n->whole != NULL) {
        *n->whole = (int64_t)value;
    } else {
        *n->real = value;
    }
}

bool machine_read(Ctx *ctx, Arena *arena, uint32_t source, Str text, Machine *m)
{
    MachineNumbers numbers = numbers_of(arena, m);
    MachineReader r = {ctx,  arena,    source,
                       text, &numbers, ARENA_ARRAY(arena, (size_t)numbers.list.n + 1, bool)};
    uint32_t before = ctx->diags.n_errors;
    for (size_t at = 0; at < text.n;) {
        Str word[2];
        uint32_t n = read_line(text, &at, word, 2);
        if (n == 0) {
            continue;
        }
        uint32_t number = find_number(&r, word[0]);
        if (number == numbers.list.n) {
            refuse_name(&r, word[0]);
        } else if (n != 2) {
            diag_error(&ctx->diags, E_MACHINE, word_span(&r, word[0]),
                       "'%s' is followed by one number on its line",
                       numbers.list.at[number].name);
        } else if (r.given[number]) {
            diag_error(&ctx->diags, E_MACHINE, word_span(&r, word[0]), "'%s' is given twice",
                       numbers.list.at[number].name);
        } else {
            r.given[number] = true;
            read_value(&r, number, word[1]);
        }
    }
    return ctx->diags.n_errors == before;
}

/* ---- caches ---- */

static int64_t at_least(double bytes, int64_t least, int64_t most)
{
    return bytes < (double)least ? least : bytes > (double)most ? most : (int64_t)bytes;
}

void machine_set_caches(Machine *m, int64_t l2, int64_t l3)
{
    MemoryLevel *inner = &m->level[m->n_levels - 1], *outer = &m->level[m->n_levels - 2];
    if (l2 > 0) { /* blocks take the share of it that they have of the target's */
        double more = (double)l2 / (double)inner->capacity;
        inner->capacity = at_least((double)l2, (int64_t)CAPACITY_LEAST, (int64_t)CAPACITY_MOST);
        m->tile.block = at_least(more * (double)m->tile.block, 4096, 67108864);
        m->tile.panels = at_least(more * (double)m->tile.panels, 4096, 67108864);
    }
    if (l3 > 0) {
        outer->capacity = at_least((double)l3, (int64_t)CAPACITY_LEAST, (int64_t)CAPACITY_MOST);
    }
}
