/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions from outside: a plan file holds the whole problem and then the decision, as text; reading it compares the
 * problem byte for byte, so that a plan for anything else is refused.
 *
 *     tdsl plan 1
 *     inputs 3
 *     0 1
 *     1 2
 *     2 3
 *     output 0 3
 *     sizes 10 20 30 40
 *     path (0,1)(0,1)
 *     sliced 1
 */
#include <string.h>

#include "path/prepare.h"

static void put_labels(Text *out, PathLabels l)
{
    for (uint32_t i = 0; i < l.n; i++) {
        text_printf(out, "%s%u", i > 0 ? " " : "", l.at[i]);
    }
    text_put(out, l.n == 0 ? "-\n" : "\n");
}

static void put_problem(Text *out, const PathProblem *p)
{
    uint32_t n = p->place == NULL ? p->n_operands : p->n_given;
    text_printf(out, "tdsl plan 1\ninputs %u\n", n);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t own = p->place == NULL ? k : 0;
        while (own < p->n_operands && p->place != NULL && p->place[own] != k) {
            own++;
        }
        put_labels(out, own < p->n_operands ? p->operands[own] : (PathLabels){0});
    }
    text_put(out, "output ");
    put_labels(out, p->output);
    text_put(out, "sizes");
    for (uint32_t l = 0; l < p->n_labels; l++) {
        text_printf(out, " %lld", (long long)p->sizes[l]);
    }
    text_put(out, "\n");
}

void path_plan_write(Text *out, const PathProblem *p, const PathResult *r, Arena *arena)
{
    put_problem(out, p);
    text_put(out, "path ");
    PathTree all = path_tree_given(p, &r->tree, arena);
    const uint32_t *linear = path_linear(&all, arena);
    for (uint32_t k = 0; k < all.n_steps; k++) {
        text_printf(out, "(%u,%u)", linear[2 * k], linear[2 * k + 1]);
    }
    text_put(out, all.n_steps == 0 && all.n_leaves == 1 ? "(0)\nsliced " : "\nsliced ");
    put_labels(out, (PathLabels){r->sliced, r->n_sliced});
}

static bool refuse(Ctx *ctx, const char *what)
{
    return diag_refuse(&ctx->diags, E_PLAN, (Span){0, 0, 0}, "plan: %s", what);
}

/* The line that starts with `key` and a blank at *at, as text; moves behind it. */
static bool take_line(Str text, size_t *at, const char *key, Arena *arena, char **out)
{
    size_t n = strlen(key), lo = *at + n, hi = lo;
    if (lo > text.n || memcmp(text.at + *at, key, n) != 0) {
        return false;
    }
    while (hi < text.n && text.at[hi] != '\n') {
        hi++;
    }
    *out = str_dup(arena, (Str){text.at + lo, hi - lo});
    *at = hi < text.n ? hi + 1 : hi;
    return true;
}

static bool take_labels(const char *at, const PathProblem *p, Ctx *ctx, PathLabels *out)
{
    VEC(uint32_t) list = {0};
    while (*at != '\0' && strcmp(at, "-") != 0) {
        uint64_t v = 0;
        if (*at < '0' || *at > '9') {
            return refuse(ctx, "a label number is expected after 'sliced'");
        }
        for (; *at >= '0' && *at <= '9'; at++) {
            v = v * 10 + (uint64_t)(*at - '0');
            if (v >= p->n_labels) {
                return refuse(ctx, "a sliced label that the problem does not have");
            }
        }
        vec_push(&ctx->arena, &list, (uint32_t)v);
        at += *at == ' ';
    }
    *out = (PathLabels){list.at, list.n};
    return true;
}

bool path_plan_read(Str text, const PathProblem *p, Ctx *ctx, PathTree *tree,
                    PathLabels *sliced)
{
    size_t blank = 0;
    while (blank < text.n && (text.at[blank] == ' ' || text.at[blank] == '\n')) {
        blank++;
    }
    if (blank < text.n && (text.at[blank] == '[' ||
                           text.at[blank] == '(')) { /* as NumPy and opt_einsum print a path */
        *sliced = (PathLabels){0};
        return path_parse_given(str_dup(&ctx->arena, text), "plan", p, ctx, tree);
    }
    Text head = text_new(&ctx->arena);
    put_problem(&head, p);
    Str want = text_str(&head);
    if (text.n < 12 || memcmp(text.at, "tdsl plan 1\n", 12) != 0) {
        return refuse(ctx, "the first line is not 'tdsl plan 1'");
    }
    if (text.n < want.n || memcmp(text.at, want.at, want.n) != 0) {
        return refuse(ctx, "it is for another problem: operands, output or sizes differ");
    }
    size_t at = want.n;
    char *path, *labels;
    if (!take_line(text, &at, "path ", &ctx->arena, &path) ||
        !take_line(text, &at, "sliced ", &ctx->arena, &labels)) {
        return refuse(ctx, "the lines 'path' and 'sliced' are missing");
    }
    if (at != text.n) {
        return refuse(ctx, "text after the line 'sliced'");
    }
    return path_parse_given(path, "path", p, ctx, tree) && take_labels(labels, p, ctx, sliced);
}

bool path_accept(const PathProblem *p, const PathOptions *o, PathTree tree, PathLabels sliced,
                 Ctx *ctx, PathResult *out)
{
    memset(out, 0, sizeof *out);
    if (!path_tree_valid(&tree, p->n_operands)) {
        return refuse(ctx, "the path does not fit the operands");
    }
    uint8_t *seen = ARENA_ARRAY(&ctx->arena, p->n_labels, uint8_t);
    for (uint32_t i = 0; i < sliced.n; i++) {
        if (sliced.at[i] >= p->n_labels || seen[sliced.at[i]] || p->sizes[sliced.at[i]] < 1) {
            return refuse(ctx, "a sliced label is repeated, unknown, or of extent 0");
        }
        seen[sliced.at[i]] = 1;
    }
    out->tree = tree;
    out->sliced = ARENA_ARRAY(&ctx->arena, p->n_labels, uint32_t);
    for (uint32_t l = 0; l < p->n_labels; l++) {
        if (seen[l]) {
            out->sliced[out->n_sliced++] = l;
        }
    }
    out->strategy = "given";
    path_account(p, &out->tree, (PathLabels){out->sliced, out->n_sliced}, &ctx->arena,
                 &out->costs);
    const char *limit = str_format(&ctx->arena, "%lld", (long long)o->memory_limit);
    size_t n = strlen(out->costs.largest), m = strlen(limit);
    if (o->memory_limit > 0 && (n > m || (n == m && strcmp(out->costs.largest, limit) > 0))) {
        return diag_refuse(&ctx->diags, E_LIMIT_MEMORY, (Span){0, 0, 0},
                           "the path given has a tensor of %s elements; the memory limit is %s",
                           out->costs.largest, limit);
    }
    return true;
}
