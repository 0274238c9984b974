/* SPDX-License-Identifier: Apache-2.0 */
/* Network files: a JSON object with `inputs` (lists of label numbers), `output` and `sizes` (by label number, a list or
 * an object with numbers as keys); or with labels that are strings, and `sizes` an object. Other fields are ignored. Every number is checked before it is used. */
#include <jansson.h>
#include <string.h>

#include "base/map.h"
#include "path/path.h"

#define LABELS_MOST 100000000

enum { HELD = 1, TAKEN }; /* a label that an input has; one that the output has too */

static bool complain(Ctx *ctx, Span place, const char *what, size_t at)
{
    return diag_refuse(&ctx->diags, E_JSON, place, "network: %s (entry %zu)", what, at);
}

static bool refuse(Ctx *ctx, Span place, const char *what)
{
    return diag_refuse_limit(&ctx->diags, E_LIMIT_SIZE, place, "network: %d %s or more",
                             LABELS_MOST, what);
}

/* Labels that are strings are numbered as they come in the inputs. */
typedef struct Names {
    VEC(const char *) list;
    VEC(int64_t) sizes;
    Map of; /* name -> number */
    SymTable *syms;
} Names;

static bool has_names(const json_t *inputs)
{
    size_t k = 0, i = 0;
    json_t *operand = NULL, *label = NULL;
    json_array_foreach((json_t *)(uintptr_t)inputs, k, operand)
    {
        json_array_foreach(operand, i, label)
        {
            return json_is_string(label);
        }
    }
    return false;
}

static bool read_names(const json_t *inputs, const json_t *sizes, Span place, Ctx *ctx,
                       Names *names, PathProblem *out)
{
    size_t k = 0, i = 0;
    json_t *operand = NULL, *label = NULL;
    if (!json_is_object(sizes)) {
        return complain(ctx, place, "labels are strings, but 'sizes' is no object", 0);
    }
    json_array_foreach((json_t *)(uintptr_t)inputs, k, operand)
    {
        json_array_foreach(operand, i, label)
        {
            if (!json_is_string(label)) {
                return complain(ctx, place, "some labels are strings, some are not", k);
            }
            Sym name = sym_cstr(names->syms, json_string_value(label));
            const json_t *size = json_object_get(sizes, name->text);
            uint32_t known = 0;
            if (map_get(&names->of, name->id, &known)) {
                continue;
            }
            if (!json_is_integer(size) || json_integer_value(size) < 0 ||
                json_integer_value(size) > SIZE_LIMIT) {
                return complain(ctx, place, "a label has no whole size from 0 to 2^62", k);
            }
            map_put(&names->of, name->id, names->list.n);
            vec_push(&ctx->arena, &names->list, name->text);
            vec_push(&ctx->arena, &names->sizes, json_integer_value(size));
        }
    }
    out->names = names->list.at;
    out->sizes = names->sizes.at;
    out->n_labels = names->list.n;
    return true;
}

static bool read_sizes(const json_t *sizes, Span place, Ctx *ctx, PathProblem *out)
{
    size_t n = 0;
    const char *key;
    json_t *value;
    if (json_is_array(sizes)) {
        n = json_array_size(sizes);
    } else if (json_is_object(sizes)) {
        json_object_foreach((json_t *)(uintptr_t)sizes, key, value)
        {
            char *end;
            unsigned long l = strtoul(key, &end, 10);
            bool decimal = *key >= '0' && *key <= '9' && *end == '\0';
            if (!decimal || (*key == '0' && key[1] != '\0')) { /* one key for each label */
                return complain(ctx, place, "a key of 'sizes' is no label number", n);
            }
            n = l >= LABELS_MOST ? LABELS_MOST : l + 1 > n ? l + 1 : n;
        }
    } else {
        return complain(ctx, place, "'sizes' is missing", 0);
    }
    if (n >= LABELS_MOST) {
        return refuse(ctx, place, "labels");
    }
    int64_t *to = ARENA_ARRAY(&ctx->arena, n, int64_t);
    for (size_t l = 0; l < n; l++) {
        char name[32];
        snprintf(name, sizeof name, "%zu", l);
        const json_t *v =
            json_is_array(sizes) ? json_array_get(sizes, l) : json_object_get(sizes, name);
        if (v == NULL && json_is_object(sizes)) {
            to[l] = -1; /* a gap: an error only if the label is used */
            continue;
        }
        if (!json_is_integer(v) || json_integer_value(v) < 0 ||
            json_integer_value(v) > SIZE_LIMIT) {
            return complain(ctx, place, "a size is no whole number from 0 to 2^62", l);
        }
        to[l] = json_integer_value(v);
    }
    out->sizes = to;
    out->n_labels = (uint32_t)n;
    return true;
}

/* The number of a label; -1: it has no size. */
static int64_t label_number(const json_t *v, const PathProblem *p, const Names *names)
{
    uint32_t number = 0;
    if (p->names != NULL) {
        bool known =
            json_is_string(v) &&
            map_get(&names->of, sym_cstr(names->syms, json_string_value(v))->id, &number);
        return known ? (int64_t)number : -1;
    }
    json_int_t l = json_integer_value(v);
    return !json_is_integer(v) || l < 0 || l >= p->n_labels || p->sizes[l] < 0 ? -1 : l;
}

static bool read_labels(const json_t *list, Span place, Ctx *ctx, const PathProblem *p,
                        const Names *names, PathLabels *out, size_t at)
{
    if (!json_is_array(list)) {
        return complain(ctx, place, "labels are not a list", at);
    }
    size_t n = json_array_size(list);
    uint32_t *to = ARENA_ARRAY(&ctx->arena, n, uint32_t);
    for (size_t i = 0; i < n; i++) {
        int64_t l = label_number(json_array_get(list, i), p, names);
        if (l < 0) {
            return complain(ctx, place, "a label has no size", at);
        }
        to[i] = (uint32_t)l;
    }
    *out = (PathLabels){to, (uint32_t)n};
    return true;
}

/* `"output": null`: the labels that occur once, as in an equation without '->'. Their order costs nothing. */
static PathLabels implicit_output(Ctx *ctx, const PathProblem *p)
{
    uint32_t *count = ARENA_ARRAY(&ctx->arena, p->n_labels, uint32_t);
    uint32_t *at = ARENA_ARRAY(&ctx->arena, p->n_labels, uint32_t), n = 0;
    for (uint32_t k = 0; k < p->n_operands; k++) {
        for (uint32_t i = 0; i < p->operands[k].n; i++) {
            count[p->operands[k].at[i]]++;
        }
    }
    for (uint32_t l = 0; l < p->n_labels; l++) {
        if (count[l] == 1) {
            at[n++] = l;
        }
    }
    return (PathLabels){at, n};
}

bool path_problem_from_value(const void *json, Span place, Ctx *ctx, PathProblem *out)
{
    const json_t *root = json;
    memset(out, 0, sizeof *out);
    if (!json_is_object(root)) {
        return complain(ctx, place, "no JSON object", 0);
    }
    const json_t *inputs = json_object_get(root, "inputs"),
                 *output = json_object_get(root, "output");
    bool implicit = json_is_null(output);
    if (!json_is_array(inputs) || (!json_is_array(output) && !implicit)) {
        return complain(ctx, place, "'inputs' or 'output' is missing", 0);
    }
    const json_t *sizes = json_object_get(root, "sizes");
    Names names = {.syms = &ctx->syms};
    map_init(&names.of, &ctx->arena);
    if (has_names(inputs) ? !read_names(inputs, sizes, place, ctx, &names, out)
                          : !read_sizes(sizes, place, ctx, out)) {
        return false;
    }
    size_t n = json_array_size(inputs);
    if (n >= LABELS_MOST) {
        return refuse(ctx, place, "operands");
    }
    PathLabels *operands = ARENA_ARRAY(&ctx->arena, n, PathLabels);
    uint8_t *held = ARENA_ARRAY(&ctx->arena, out->n_labels, uint8_t);
    for (size_t k = 0; k < n; k++) {
        if (!read_labels(json_array_get(inputs, k), place, ctx, out, &names, &operands[k], k)) {
            return false;
        }
        for (uint32_t i = 0; i < operands[k].n; i++) {
            held[operands[k].at[i]] = HELD;
        }
    }
    out->operands = operands;
    out->n_operands = (uint32_t)n;
    if (implicit) {
        out->output = implicit_output(ctx, out);
        return true;
    }
    if (!read_labels(output, place, ctx, out, &names, &out->output, 0)) {
        return false;
    }
    for (uint32_t i = 0; i < out->output.n; i++) {
        uint8_t *state = &held[out->output.at[i]];
        if (*state != HELD) {
            return diag_refuse(&ctx->diags, E_EINSUM_OUTPUT, place,
                               "network: label %u of 'output' %s", out->output.at[i],
                               *state == 0 ? "is in no input" : "is there twice");
        }
        *state = TAKEN;
    }
    return true;
}

bool path_problem_from_json(Str text, Span place, Ctx *ctx, PathProblem *out)
{
    json_error_t error;
    const char *nul = text.n == 0 ? NULL : memchr(text.at, '\0', text.n);
    if (nul != NULL) { /* jansson skips one after a number */
        Span at = place;
        at.hi = at.lo = (uint32_t)(nul - text.at);
        return diag_refuse(&ctx->diags, E_JSON, at, "network: a NUL byte");
    }
    json_t *root = json_loadb(text.at, text.n, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL) {
        Span at = place;
        at.lo = error.position >= 0 && (size_t)error.position <= text.n
                    ? (uint32_t)error.position
                    : 0;
        at.hi = at.lo;
        return diag_refuse(&ctx->diags, E_JSON, at, "network: %s", error.text);
    }
    bool ok = path_problem_from_value(root, place, ctx, out);
    json_decref(root);
    return ok;
}
