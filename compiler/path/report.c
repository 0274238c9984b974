/* SPDX-License-Identifier: Apache-2.0 */
/* Reports: JSON for programs, with numbers that follow from its path alone, and text for people, in the words and the
 * order that a user of opt_einsum knows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "path/prepare.h"
#include "path/search.h"

#define STEPS_SHOWN 200

static void put_label(Text *out, const PathProblem *p, uint32_t l)
{
    if (p->names != NULL) {
        text_put(out, p->names[l]);
    } else {
        text_printf(out, "%u", l);
    }
}

static void put_fixed(Text *out, double v)
{
    text_printf(out, "%.6f", v); /* digits and a point only: no locale is ever set */
}

static void json_path(Text *out, const PathProblem *p, const PathResult *r, Arena *arena)
{
    PathTree all = path_tree_given(p, &r->tree, arena);
    const uint32_t *linear = path_linear(&all, arena);
    text_put(out, "{\n  \"path\": [");
    for (uint32_t k = 0; k < all.n_steps; k++) {
        text_printf(out, "%s[%u, %u]", k > 0 ? ", " : "", linear[2 * k], linear[2 * k + 1]);
    }
    text_put(out, all.n_leaves == 1 ? "[0]],\n  \"sliced\": [" : "],\n  \"sliced\": [");
    for (uint32_t i = 0; i < r->n_sliced; i++) {
        uint32_t l = r->sliced[i];
        text_put(out, i > 0 ? ", [" : "[");
        if (p->names != NULL) {
            text_json(out, p->names[l]);
        } else {
            text_printf(out, "%u", l);
        }
        text_printf(out, ", %lld]", (long long)p->sizes[l]);
    }
    text_put(out, "],\n");
}

void path_report_json(Text *out, const PathProblem *p, const PathResult *r, double seconds,
                      Arena *arena)
{
    const PathCosts *c = &r->costs;
    json_path(out, p, r, arena);
    text_printf(out,
                "  \"multiply_adds\": \"%s\",\n  \"log10_multiply_adds\": ", c->multiply_adds);
    put_fixed(out, c->log10_multiply_adds);
    text_printf(out, ",\n  \"naive_multiply_adds\": \"%s\",\n  \"slices\": %s,\n", c->naive,
                c->slices);
    text_printf(out, "  \"largest\": %s,\n  \"log2_largest\": ", c->largest);
    put_fixed(out, c->log2_largest);
    text_printf(out, ",\n  \"written\": %s,\n  \"peak\": %s,\n  \"seconds\": ", c->written,
                c->peak);
    put_fixed(out, seconds);
    text_printf(out,
                ",\n  \"strategy\": \"%s\",\n  \"proved\": %s,\n  \"interrupted\": %s,\n  "
                "\"typical\": %s\n}\n",
                r->strategy, r->proved ? "true" : "false", r->interrupted ? "true" : "false",
                p->typical ? "true" : "false");
}

/* Is one of them more than one character, so that they cannot stand side by side? */
static bool names_are_long(const PathProblem *p)
{
    for (uint32_t l = 0; p->names != NULL && l < p->n_labels; l++) {
        uint32_t characters = 0;
        for (const char *c = p->names[l]; *c != '\0'; c++) {
            characters += ((unsigned char)*c & 0xc0) != 0x80;
        }
        if (characters > 1) {
            return true;
        }
    }
    return p->names == NULL;
}

typedef struct Lines {
    Text *out;
    const PathProblem *p;
    const uint32_t *origin;
    bool apart;
} Lines;

static void put_legs(const Lines *s, const uint32_t *legs, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        text_put(s->out, s->apart && i > 0 ? "." : "");
        put_label(s->out, s->p, s->origin[legs[i]]);
    }
}

static const char *step_kind(uint32_t shared_kept, uint32_t shared_summed, uint32_t only_a,
                             uint32_t only_b)
{
    if (shared_summed == 0) {
        return only_a > 0 && only_b > 0 ? (shared_kept > 0 ? "outer*" : "outer") : "multiply";
    }
    if (only_a > 0 && only_b > 0) {
        return shared_kept > 0 ? "gemm*" : "gemm";
    }
    if (only_a > 0 || only_b > 0) {
        return shared_kept > 0 ? "gemv*" : "gemv";
    }
    return shared_kept > 0 ? "dot*" : "dot";
}

static const char *kind_of(const Live *v, PathStep step)
{
    uint32_t a = step.a, b = step.b, kept = 0, summed = 0;
    for (uint32_t i = 0, j = 0; i < v->n_legs[a] && j < v->n_legs[b];) {
        uint32_t x = v->legs[a][i], y = v->legs[b][j];
        if (x == y) {
            kept += v->holders[x] > 2;
            summed += v->holders[x] == 2;
        }
        i += x <= y;
        j += y <= x;
    }
    return step_kind(kept, summed, v->n_legs[a] - kept - summed, v->n_legs[b] - kept - summed);
}

static void put_step(const Lines *s, Live *v, uint32_t k, PathStep step, uint32_t position_a,
                     uint32_t position_b)
{
    uint32_t a = step.a, b = step.b;
    double result, both = live_sizes(v, a, b, &result);
    double moved = exp2(v->size[a]) + exp2(v->size[b]) + exp2(result);
    char where[48];
    snprintf(where, sizeof where, "(%u,%u)", position_a, position_b);
    text_printf(s->out, "%5u  %-9s %-14s %10.3e %10.3e %8.2f  ", k + 1, kind_of(v, step), where,
                exp2(both), exp2(result), exp2(both) / moved);
    put_legs(s, v->legs[a], v->n_legs[a]);
    text_put(s->out, ",");
    put_legs(s, v->legs[b], v->n_legs[b]);
    text_put(s->out, "->");
    uint32_t made = live_merge(v, a, b);
    put_legs(s, v->legs[made], v->n_legs[made]);
    text_put(s->out, "\n");
}

/* The network within a slice, before its first step. */
static void within_slice(Lines *s, const PathResult *r, Arena *arena, Live *v)
{
    uint8_t *skip = ARENA_ARRAY(arena, s->p->n_labels, uint8_t);
    for (uint32_t i = 0; i < r->n_sliced; i++) {
        skip[r->sliced[i]] = 1;
    }
    Prepared *within = ARENA_ARRAY(arena, 1, Prepared);
    net_prepare(s->p, skip, arena, within);
    s->origin = within->origin;
    live_init(v, &within->net, arena);
}

static const char *legs_text(Lines *s, const Live *v, uint32_t tensor, Arena *arena)
{
    Text text = text_new(arena);
    s->out = &text;
    put_legs(s, v->legs[tensor], v->n_legs[tensor]);
    return text_str(&text).n == 0 ? "" : text.at;
}

PathTensor *path_tensors(const PathProblem *p, const PathResult *r, Arena *arena)
{
    Lines s = {NULL, p, NULL, names_are_long(p)};
    const PathTree *t = &r->tree;
    PathTensor *out = ARENA_ARRAY(arena, (size_t)t->n_leaves + t->n_steps, PathTensor);
    Live v;
    within_slice(&s, r, arena, &v);
    for (uint32_t k = 0; k < t->n_leaves; k++) {
        out[k] = (PathTensor){exp2(v.size[k]), 0, legs_text(&s, &v, k, arena), NULL};
    }
    for (uint32_t k = 0; k < t->n_steps; k++) {
        const char *kind = kind_of(&v, t->steps[k]);
        double result, both = live_sizes(&v, t->steps[k].a, t->steps[k].b, &result);
        uint32_t made = live_merge(&v, t->steps[k].a, t->steps[k].b);
        out[t->n_leaves + k] =
            (PathTensor){exp2(result), exp2(both), legs_text(&s, &v, made, arena), kind};
    }
    return out;
}

static void put_steps(Lines *s, const PathResult *r, Arena *arena)
{
    Live v;
    within_slice(s, r, arena, &v);
    PathTree all = path_tree_given(s->p, &r->tree, arena);
    const uint32_t *linear = path_linear(&all, arena);
    text_put(s->out,
             " step  kind      operands       multiply-adds  result mul/elem  expression\n");
    for (uint32_t k = 0; k < r->tree.n_steps && k < STEPS_SHOWN; k++) {
        put_step(s, &v, k, r->tree.steps[k], linear[2 * k], linear[2 * k + 1]);
    }
    if (r->tree.n_steps > STEPS_SHOWN) {
        text_printf(s->out, "  ... %u more steps\n", r->tree.n_steps - STEPS_SHOWN);
    }
}

static void put_equation(Text *out, const PathProblem *p)
{
    if (p->equation != NULL) {
        text_put(out, p->equation);
        return;
    }
    if (p->names == NULL || p->n_operands > 40) {
        text_printf(out, "%u operands, %u labels", p->n_operands, p->n_labels);
        return;
    }
    bool apart = names_are_long(p);
    for (uint32_t k = 0; k < p->n_operands; k++) {
        text_put(out, k > 0 ? "," : "");
        for (uint32_t i = 0; i < p->operands[k].n; i++) {
            text_put(out, apart && i > 0 ? "." : "");
            put_label(out, p, p->operands[k].at[i]);
        }
    }
    text_put(out, "->");
    for (uint32_t i = 0; i < p->output.n; i++) {
        text_put(out, apart && i > 0 ? "." : "");
        put_label(out, p, p->output.at[i]);
    }
}

/* Labels of the largest step, for "scaling". */
static uint32_t scaling_of(const PathProblem *p, const PathResult *r, Arena *arena,
                           uint32_t *naive)
{
    Prepared full;
    net_prepare(p, NULL, arena, &full);
    Live v;
    live_init(&v, &full.net, arena);
    *naive = full.net.n_labels;
    uint32_t most = 0;
    for (uint32_t k = 0; k < r->tree.n_steps; k++) {
        uint32_t a = r->tree.steps[k].a, b = r->tree.steps[k].b, n = v.n_legs[a] + v.n_legs[b];
        for (uint32_t i = 0, j = 0; i < v.n_legs[a] && j < v.n_legs[b];) {
            uint32_t x = v.legs[a][i], y = v.legs[b][j];
            n -= x == y;
            i += x <= y;
            j += y <= x;
        }
        most = n > most ? n : most;
        live_merge(&v, a, b);
    }
    return most;
}

void path_report_text(Text *out, const PathProblem *p, const PathResult *r, double seconds,
                      Arena *arena)
{
    const PathCosts *c = &r->costs;
    uint32_t naive, most = scaling_of(p, r, arena, &naive);
    double fast = strtod(c->multiply_adds, NULL), slow = strtod(c->naive, NULL);
    text_put(out, "    Complete contraction:  ");
    put_equation(out, p);
    text_printf(out, "\n           Naive scaling:  %u\n       Optimized scaling:  %u\n", naive,
                most);
    text_printf(out,
                "     Naive multiply-adds:  %.4e\n Optimized multiply-adds:  %.4e  (10^%.4f)\n",
                slow, fast, c->log10_multiply_adds);
    if (fast > 0.0 && slow < 1e300) {
        text_printf(out, "     Theoretical speedup:  %.4g\n", slow / fast);
    }
    text_printf(out, "          Largest tensor:  %s elements (2^%.2f)\n", c->largest,
                c->log2_largest);
    text_printf(out, "             Peak memory:  %s elements (2^%.2f)\n", c->peak,
                c->log2_peak);
    text_printf(out, "        Elements written:  %s\n", c->written);
    if (r->n_sliced > 0) {
        text_printf(out, "                  Sliced:  %s slices:", c->slices);
        for (uint32_t i = 0; i < r->n_sliced; i++) {
            text_put(out, " ");
            put_label(out, p, r->sliced[i]);
            text_printf(out, "=%lld", (long long)p->sizes[r->sliced[i]]);
        }
        text_put(out, "\n");
    }
    text_printf(out, "                  Search:  %s%s%s, %.3f s\n", r->strategy,
                r->proved ? ", proved best" : "", r->interrupted ? ", interrupted" : "",
                seconds);
    if (p->typical) {
        text_put(
            out,
            "                          open extents are planned with their typical sizes\n");
    }
    text_put(
        out,
        "--------------------------------------------------------------------------------\n");
    Lines s = {out, p, NULL, names_are_long(p)};
    put_steps(&s, r, arena);
}
