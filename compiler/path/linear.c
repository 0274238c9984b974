/* SPDX-License-Identifier: Apache-2.0 */
/* Paths as text and lists: the linear convention of numpy and opt_einsum (positions in the current list of operands,
 * removed, the result appended) to and from steps, and the test that steps are a tree. Positions are
 * counted with a Fenwick tree, so that a million steps stay cheap. */
#include <stdlib.h>
#include <string.h>

#include "path/path.h"

/* Counts of live tensors by number; tensors only die, or are born at the end. */
typedef struct Ranks {
    uint32_t *sum; /* Fenwick, 1-based */
    uint32_t n;
} Ranks;

static void ranks_add(Ranks *r, uint32_t at, uint32_t by)
{
    for (uint32_t i = at + 1; i <= r->n; i += i & (~i + 1)) {
        r->sum[i] += by; /* by may be -1 modulo 2^32 */
    }
}

static uint32_t ranks_below(const Ranks *r, uint32_t at)
{
    uint32_t sum = 0;
    for (uint32_t i = at; i > 0; i -= i & (~i + 1)) {
        sum += r->sum[i];
    }
    return sum;
}

/* The tensor with `rank` live ones below it. */
static uint32_t ranks_find(const Ranks *r, uint32_t rank)
{
    uint32_t at = 0, step = 1;
    while (step <= r->n / 2) {
        step *= 2;
    }
    for (; step > 0; step /= 2) {
        if (at + step <= r->n && r->sum[at + step] <= rank) {
            at += step;
            rank -= r->sum[at];
        }
    }
    return at;
}

static Ranks ranks_new(uint32_t n_leaves, Arena *arena)
{
    Ranks r = {NULL, 2 * n_leaves + 1};
    r.sum = ARENA_ARRAY(arena, (size_t)r.n + 1, uint32_t);
    for (uint32_t k = 0; k < n_leaves; k++) {
        ranks_add(&r, k, 1);
    }
    return r;
}

uint32_t *path_linear(const PathTree *t, Arena *arena)
{
    uint32_t *out = ARENA_ARRAY(arena, (size_t)t->n_steps * 2, uint32_t);
    Ranks r = ranks_new(t->n_leaves, arena);
    for (uint32_t k = 0; k < t->n_steps; k++) {
        uint32_t a = ranks_below(&r, t->steps[k].a), b = ranks_below(&r, t->steps[k].b);
        out[2 * k] = a < b ? a : b;
        out[2 * k + 1] = a < b ? b : a;
        ranks_add(&r, t->steps[k].a, UINT32_MAX);
        ranks_add(&r, t->steps[k].b, UINT32_MAX);
        ranks_add(&r, t->n_leaves + k, 1);
    }
    return out;
}

bool path_tree_valid(const PathTree *t, uint32_t n_operands)
{
    if (t->n_leaves != n_operands || t->n_steps != (n_operands < 2 ? 0 : n_operands - 1)) {
        return false;
    }
    /* n - 1 steps, each of two tensors that exist: a tree if none is used twice. */
    uint8_t *used = calloc((size_t)n_operands * 2 + 1, 1);
    bool ok = used != NULL;
    for (uint32_t k = 0; ok && k < t->n_steps; k++) {
        PathStep s = t->steps[k];
        ok = s.a < t->n_leaves + k && s.b < t->n_leaves + k && s.a != s.b && !used[s.a] &&
             !used[s.b];
        if (ok) {
            used[s.a] = used[s.b] = 1;
        }
    }
    free(used);
    return ok;
}

#define BLANKS " \t\r\n"

typedef struct Parser {
    const char *at, *text, *who;
    Ctx *ctx;
    Ranks ranks;
    PathTree *tree;
    uint32_t alive;
} Parser;

static bool parse_error(Parser *p, const char *what)
{
    return diag_refuse(&p->ctx->diags, E_PLAN, (Span){0, 0, 0},
                       "%s: %s at character %zu of '%s'", p->who, what,
                       (size_t)(p->at - p->text) + 1, p->text);
}

static void parse_skip(Parser *p, const char *set)
{
    p->at += strspn(p->at, set);
}

/* numpy.einsum_path puts its name before the steps. */
static void parse_name(Parser *p)
{
    size_t n = sizeof "einsum_path" - 1;
    char quote = *p->at;
    if ((quote == '\'' || quote == '"') && strncmp(p->at + 1, "einsum_path", n) == 0 &&
        p->at[n + 1] == quote) {
        p->at += n + 2;
    }
    parse_skip(p, BLANKS ",");
}

static bool parse_number(Parser *p, uint32_t *out)
{
    uint64_t v = 0;
    if (*p->at < '0' || *p->at > '9') {
        return parse_error(p, "a position is expected");
    }
    for (; *p->at >= '0' && *p->at <= '9'; p->at++) {
        v = v * 10 + (uint64_t)(*p->at - '0');
        if (v >= p->alive) {
            return diag_refuse(
                &p->ctx->diags, E_PLAN, (Span){0, 0, 0},
                "%s: position %llu, but %u operands are left at character %zu of '%s'", p->who,
                (unsigned long long)v, p->alive, (size_t)(p->at - p->text) + 1, p->text);
        }
    }
    *out = (uint32_t)v;
    return true;
}

static void parse_contract(Parser *p, uint32_t a, uint32_t b)
{
    PathTree *t = p->tree;
    t->steps[t->n_steps] = (PathStep){a, b};
    ranks_add(&p->ranks, t->n_leaves + t->n_steps, 1);
    t->n_steps++;
}

/* One group after its '('. */
static bool parse_group(Parser *p)
{
    VEC(uint32_t) group = {0};
    do {
        uint32_t position = 0;
        parse_skip(p, BLANKS);
        if (!parse_number(p, &position)) {
            return false;
        }
        uint32_t tensor = ranks_find(&p->ranks, position);
        for (uint32_t i = 0; i < group.n; i++) {
            if (group.at[i] == tensor) {
                return parse_error(p, "a position occurs twice in one step");
            }
        }
        vec_push(&p->ctx->arena, &group, tensor);
        parse_skip(p, BLANKS);
        p->at += *p->at == ',';
        parse_skip(p, BLANKS);
    } while (*p->at != ')' && *p->at != '\0');
    if (*p->at != ')') {
        return parse_error(p, "')' is expected");
    }
    p->at++;
    if (group.n == 1 && p->tree->n_leaves > 1) {
        return parse_error(p, "a single position, but there is more than one operand");
    }
    for (uint32_t i = 0; i < group.n; i++) {
        ranks_add(&p->ranks, group.at[i], UINT32_MAX);
    }
    uint32_t made = group.at[0];
    for (uint32_t i = 1; i < group.n; i++) {
        if (i > 1) {
            ranks_add(&p->ranks, made, UINT32_MAX);
        }
        parse_contract(p, made, group.at[i]);
        made = p->tree->n_leaves + p->tree->n_steps - 1;
    }
    p->alive -= group.n - 1;
    return true;
}

bool path_parse_linear(const char *text, uint32_t n_operands, Ctx *ctx, PathTree *out)
{
    return path_parse_from(text, "path", n_operands, ctx, out);
}

bool path_parse_from(const char *text, const char *who, uint32_t n_operands, Ctx *ctx,
                     PathTree *out)
{
    Parser p = {text, text, who, ctx, ranks_new(n_operands, &ctx->arena), out, n_operands};
    *out = (PathTree){n_operands, 0, ARENA_ARRAY(&ctx->arena, n_operands, PathStep)};
    uint32_t groups = 0;
    parse_skip(&p, BLANKS "[,");
    parse_name(&p);
    while (*p.at == '(') {
        p.at++;
        if (!parse_group(&p)) {
            return false;
        }
        groups++;
        if (n_operands == 1 && groups > 1) {
            return parse_error(&p, "more steps than operands");
        }
        parse_skip(&p, BLANKS ",");
    }
    parse_skip(&p, BLANKS "]");
    if (*p.at != '\0') {
        return parse_error(&p, "'(' is expected");
    }
    if (p.alive > 1) {
        return diag_refuse(&ctx->diags, E_PLAN, (Span){0, 0, 0},
                           "%s: %u operands are left after the last step of '%s'", who, p.alive,
                           text);
    }
    return true;
}
