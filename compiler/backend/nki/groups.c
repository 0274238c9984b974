/* SPDX-License-Identifier: Apache-2.0 */
/* Which matmuls of the text open their group of sums, and which add to it: always, never, or when
 * some of the loops around them are in their first iteration. A walk finds in which iterations
 * each statement opens one; a rule is kept only where it is true of all of them. */
#include "backend/nki/nki.h"

#include <string.h>

#include "loop/walk.h"

typedef struct Seen {
    int64_t runs, opens,
        both; /* executions; that open; with all loops of the rule at their first value */
} Seen;

typedef struct Groups {
    const Kernel *k;
    NkiGroup *at;
    Seen *seen;
    bool **open; /* [bufs][elements / bank or one]: filled, nothing added yet */
    bool check;  /* the second walk */
} Groups;

/* Loops around each matmul, in the order of places. */
static void find_loops(Groups *g, Stmt *const *body, uint32_t n, NkiGroup around,
                       uint32_t *place)
{
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *s = body[i];
        if (s->kind == STMT_TILE) {
            g->at[(*place)++] = around;
            continue;
        }
        NkiGroup inside = around;
        bool numbers = s->kind == STMT_FOR && s->range.start.n == 0;
        if (numbers && !s->parallel && around.n < NKI_GROUP_LOOPS) {
            inside.loop[inside.n] = s;
            inside.start[inside.n++] = s->range.start.base;
        }
        for (uint32_t x = 0; x < s->n_guards; x++) {
            for (uint32_t d = 0; d < inside.n; d++) {
                bool here = inside.loop[d]->var == s->guard[x].var;
                inside.start[d] = here ? s->guard[x].lo : inside.start[d];
            }
        }
        if (stmt_has_body(s)) {
            find_loops(g, s->body, s->n_body, inside, place);
        }
    }
}

static bool *open_of(Groups *g, const Operand *o)
{
    const Buffer *b = &g->k->bufs.at[o->buf];
    if (g->open[o->buf] == NULL) {
        g->open[o->buf] = ARENA_ARRAY(g->k->arena, (size_t)b->extent[1].n + 1, bool);
    }
    return &g->open[o->buf][o->f];
}

static bool note(void *user, const Instr *i)
{
    Groups *g = user;
    if (!i->dst.on_chip || g->k->bufs.at[i->dst.buf].space != SPACE_ACC) {
        return true;
    }
    int64_t bank = nki_bank(g->k, i->dst.buf), end = i->dst.f + i->dst.nf;
    for (Operand o = i->dst; i->kind == INSTR_NOTHING && o.f < end; o.f += bank) {
        *open_of(g, &o) = true; /* one in each bank */
        end = bank == 0 ? o.f : end;
    }
    if (i->kind != INSTR_MATMUL) {
        return true;
    }
    bool *open = open_of(g, &i->dst), first = true;
    NkiGroup *at = &g->at[i->place];
    Seen *seen = &g->seen[i->place];
    for (uint32_t d = 0; d < at->n; d++) {
        bool begins = i->env[at->loop[d]->var] == at->start[d];
        at->first[d] = g->check ? at->first[d] : at->first[d] && (begins || !*open);
        first &= begins || !at->first[d];
    }
    seen->runs += !g->check;
    seen->opens += *open && !g->check;
    seen->both += g->check && first && *open;
    seen->both -= g->check && first && !*open;
    *open = false;
    return true;
}

NkiGroup *nki_groups(const Kernel *k)
{
    uint32_t n = instr_places(k), place = 0;
    const Stmt *bad = NULL;
    const char *why = NULL;
    Groups g = {.k = k};
    g.at = ARENA_ARRAY(k->arena, n + 1, NkiGroup);
    g.seen = ARENA_ARRAY(k->arena, n + 1, Seen);
    find_loops(&g, k->body, k->n_body, (NkiGroup){0}, &place);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t d = 0; d < NKI_GROUP_LOOPS; d++) {
            g.at[i].first[d] = true;
        }
    }
    for (int walk = 0; walk < 2; walk++) {
        g.open = (bool **)arena_array(k->arena, k->bufs.n + 1, sizeof *g.open);
        g.check = walk > 0;
        CHECK(instr_walk_cores(k, note, &g, &bad, &why));
    }
    for (uint32_t i = 0; i < n; i++) {
        const Seen *s = &g.seen[i];
        bool never = s->opens == 0, always = s->opens == s->runs;
        g.at[i].known = never || always || s->both == s->opens;
        g.at[i].adds = never;
        g.at[i].n = never || always ? 0 : g.at[i].n;
    }
    return g.at;
}
