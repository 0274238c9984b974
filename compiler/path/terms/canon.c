/* SPDX-License-Identifier: Apache-2.0 */
/* Canonical keys of small networks. Colours of operands are refined over shared labels until they settle; operands in
 * order of colour name the labels in order of first use, which gives a text; where colours tie, all orders inside the
 * ties are tried (up to a bound: past it keys stay sound, only some equalities go unseen) and the least text wins. */
#include <string.h>

#include "base/map.h"
#include "path/terms/multi.h"

#define ORDERS_MOST 5040

typedef struct Canon {
    const PathMulti *m;
    const PathTerm *t;
    uint32_t n;                   /* operands in the text */
    uint32_t operand[MULTI_MOST]; /* of the term */
    uint64_t colour[MULTI_MOST];
    uint32_t n_labels;
    uint32_t *label;  /* distinct labels met */
    uint32_t *mark;   /* by label met: what the outside sees of it */
    uint64_t *shade;  /* by label met: colour */
    uint32_t *number; /* by label of the problem: place in `label` + 1 */
    uint32_t *name;   /* by label met: name in the text at hand + 1 */
    uint32_t *best_name;
    Text text;
    char *best;
    uint32_t best_order[MULTI_MOST]; /* operands of the term */
    size_t best_n;
} Canon;

static void label_meet(Canon *c, uint32_t l)
{
    if (c->number[l] == 0) {
        c->label[c->n_labels] = l;
        c->number[l] = ++c->n_labels;
    }
}

static void canon_refine(Canon *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        c->colour[i] = hash_mix(c->t->tensor[c->operand[i]], c->t->operands[c->operand[i]].n);
    }
    for (uint32_t round = 0; round <= c->n; round++) {
        for (uint32_t k = 0; k < c->n_labels; k++) {
            c->shade[k] = hash_mix(c->mark[k], (uint64_t)c->m->sizes[c->label[k]]);
        }
        for (uint32_t i = 0; i < c->n; i++) {
            PathLabels at = c->t->operands[c->operand[i]];
            for (uint32_t k = 0; k < at.n; k++) {
                c->shade[c->number[at.at[k]] - 1] +=
                    hash_mix(c->colour[i], k + 1) * 0x9e3779b97f4a7c15u;
            }
        }
        for (uint32_t i = 0; i < c->n; i++) {
            PathLabels at = c->t->operands[c->operand[i]];
            for (uint32_t k = 0; k < at.n; k++) {
                c->colour[i] = hash_mix(c->colour[i], c->shade[c->number[at.at[k]] - 1]);
            }
        }
    }
}

static void name_label(Canon *c, uint32_t met, uint32_t *names)
{
    if (c->name[met] == 0) {
        c->name[met] = ++*names;
        text_printf(&c->text, "%u:%lld:%u", *names, (long long)c->m->sizes[c->label[met]],
                    c->mark[met]);
    } else {
        text_printf(&c->text, "%u", c->name[met]);
    }
}

/* The text of one order; kept if it is the least so far. */
static void canon_write(Canon *c, const uint32_t *order)
{
    uint32_t names = 0;
    c->text.n = 0;
    memset(c->name, 0, c->n_labels * sizeof *c->name);
    for (uint32_t i = 0; i < c->n; i++) {
        uint32_t k = c->operand[order[i]];
        text_printf(&c->text, "%u(", c->t->tensor[k]);
        for (uint32_t x = 0; x < c->t->operands[k].n; x++) {
            text_put(&c->text, x > 0 ? "," : "");
            name_label(c, c->number[c->t->operands[k].at[x]] - 1, &names);
        }
        text_put(&c->text, ")");
    }
    /* Labels that no operand here has: in order of their marks, which differ. */
    for (;;) {
        uint32_t pick = UINT32_MAX;
        for (uint32_t k = 0; k < c->n_labels; k++) {
            if (c->name[k] == 0 && (pick == UINT32_MAX || c->mark[k] < c->mark[pick])) {
                pick = k;
            }
        }
        if (pick == UINT32_MAX) {
            break;
        }
        text_put(&c->text, ";");
        name_label(c, pick, &names);
    }
    if (c->best == NULL || c->text.n < c->best_n ||
        (c->text.n == c->best_n && memcmp(c->text.at, c->best, c->best_n) < 0)) {
        c->best = str_dup(c->text.arena, (Str){c->text.at, c->text.n});
        c->best_n = c->text.n;
        for (uint32_t i = 0; i < c->n; i++) {
            c->best_order[i] = c->operand[order[i]];
        }
        memcpy(c->best_name, c->name, c->n_labels * sizeof *c->name);
    }
}

/* Next order inside runs of equal colours; false after the last. */
static bool order_next(const Canon *c, uint32_t *order)
{
    for (uint32_t hi = c->n; hi > 0;) {
        uint32_t lo = hi - 1;
        while (lo > 0 && c->colour[order[lo - 1]] == c->colour[order[hi - 1]]) {
            lo--;
        }
        uint32_t i = hi - 1;
        while (i > lo && order[i - 1] > order[i]) {
            i--;
        }
        if (i > lo) { /* the standard next permutation of this run */
            uint32_t j = hi - 1;
            while (order[j] < order[i - 1]) {
                j--;
            }
            uint32_t x = order[i - 1];
            order[i - 1] = order[j];
            order[j] = x;
        }
        for (uint32_t a = i, b = hi - 1; a < b; a++, b--) {
            uint32_t x = order[a];
            order[a] = order[b];
            order[b] = x;
        }
        if (i > lo) {
            return true;
        }
        hi = lo;
    }
    return false;
}

/* Marks: 1 + output position (context) or 1 (open), and one bit for labels of the unknown tensor. */
static void canon_marks(Canon *c, uint32_t member, bool context)
{
    const PathTerm *t = c->t;
    for (uint32_t k = 0; k < t->n_operands; k++) {
        bool inside = ((member >> k) & 1) != 0;
        for (uint32_t i = 0; i < t->operands[k].n; i++) {
            uint32_t at = c->number[t->operands[k].at[i]];
            if (at > 0 && inside == context) {
                c->mark[at - 1] |= 1;
            }
        }
    }
    for (uint32_t i = 0; i < t->output.n; i++) {
        uint32_t at = c->number[t->output.at[i]];
        if (at > 0) {
            c->mark[at - 1] |= context ? (i + 1) * 2 : 1;
        }
    }
}

static void canon_legs(const Canon *c, const PathTerm *t, uint32_t member, Arena *arena,
                       PathLabels *legs)
{
    uint32_t *list = ARENA_ARRAY(arena, c->n_labels, uint32_t), n = 0;
    for (uint32_t name = 1; name <= c->n_labels; name++) {
        for (uint32_t k = 0; k < c->n_labels; k++) {
            if (c->best_name[k] != name) {
                continue;
            }
            bool in = false, out = false;
            for (uint32_t o = 0; o < t->n_operands; o++) {
                for (uint32_t i = 0; i < t->operands[o].n; i++) {
                    bool has = t->operands[o].at[i] == c->label[k];
                    in = in || (has && ((member >> o) & 1) != 0);
                    out = out || (has && ((member >> o) & 1) == 0);
                }
            }
            for (uint32_t i = 0; i < t->output.n; i++) {
                out = out || t->output.at[i] == c->label[k];
            }
            if (in && out) {
                list[n++] = c->label[k];
            }
        }
    }
    *legs = (PathLabels){list, n};
}

Sym canon_key(SymTable *table, const PathMulti *m, const PathTerm *t, uint32_t member,
              bool context, Arena *arena, PathLabels *legs, uint32_t *operands)
{
    Canon c = {.m = m, .t = t};
    uint32_t axes = t->output.n;
    for (uint32_t k = 0; k < t->n_operands; k++) {
        axes += t->operands[k].n;
    }
    c.label = ARENA_ARRAY(arena, axes, uint32_t);
    c.mark = ARENA_ARRAY(arena, axes, uint32_t);
    c.shade = ARENA_ARRAY(arena, axes, uint64_t);
    c.name = ARENA_ARRAY(arena, axes, uint32_t);
    c.best_name = ARENA_ARRAY(arena, axes, uint32_t);
    c.number = ARENA_ARRAY(arena, m->n_labels, uint32_t);
    text_init(&c.text, arena);
    for (uint32_t k = 0; k < t->n_operands; k++) {
        if ((((member >> k) & 1) != 0) != context) {
            c.operand[c.n++] = k;
            for (uint32_t i = 0; i < t->operands[k].n; i++) {
                label_meet(&c, t->operands[k].at[i]);
            }
        }
    }
    for (uint32_t i = 0; context && i < t->output.n; i++) {
        label_meet(&c, t->output.at[i]);
    }
    canon_marks(&c, member, context);
    canon_refine(&c);
    uint32_t order[MULTI_MOST], tries = 0;
    for (uint32_t i = 0; i < c.n; i++) {
        uint32_t k = i;
        while (k > 0 && c.colour[order[k - 1]] > c.colour[i]) {
            order[k] = order[k - 1];
            k--;
        }
        order[k] = i;
    }
    do {
        canon_write(&c, order);
    } while (++tries < ORDERS_MOST && order_next(&c, order));
    if (legs != NULL) {
        canon_legs(&c, t, member, arena, legs);
    }
    if (operands != NULL) {
        memcpy(operands, c.best_order, sizeof c.best_order);
    }
    const char *text = context ? str_format(arena, "%u|%s", t->sum, c.best) : c.best;
    return sym_cstr(table, text);
}
