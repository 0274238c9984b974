/* SPDX-License-Identifier: Apache-2.0 */
/* Network files: a JSON object with `inputs` (lists of label numbers), `output` and `sizes` (by label number, a list or
 * an object with numbers as keys); other fields are ignored. Every number is checked before it is used. */
#include <jansson.h>
#include <string.h>

#include "path/path.h"

#define LABELS_MOST 100000000

enum { HELD = 1, TAKEN }; /* a label that an input has; one that the output has too */

static bool complain(Ctx *ctx, Span place, const char *what, size_t at)
{
    diag_error(&ctx->diags, E_JSON, place, "network: %s (entry %zu)", what, at);
    return false;
}

static bool refuse(Ctx *ctx, Span place, const char *what)
{
    diag_limit(&ctx->diags, E_LIMIT_SIZE, place, "network: %d %s or more", LABELS_MOST, what);
    return false;
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

static bool read_labels(const json_t *list, Span place, Ctx *ctx, const PathProblem *p,
                        PathLabels *out, size_t at)
{
    if (!json_is_array(list)) {
        return complain(ctx, place, "labels are not a list", at);
    }
    size_t n = json_array_size(list);
    uint32_t *to = ARENA_ARRAY(&ctx->arena, n, uint32_t);
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(list, i);
        json_int_t l = json_integer_value(v);
        if (!json_is_integer(v) || l < 0 || l >= p->n_labels || p->sizes[l] < 0) {
            return complain(ctx, place, "a label has no size", at);
        }
        to[i] = (uint32_t)l;
    }
    *out = (PathLabels){to, (uint32_t)n};
    return true;
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
    if (!json_is_array(inputs) || !json_is_array(output)) {
        return complain(ctx, place, "'inputs' or 'output' is missing", 0);
    }
    if (!read_sizes(json_object_get(root, "sizes"), place, ctx, out)) {
        return false;
    }
    size_t n = json_array_size(inputs);
    if (n >= LABELS_MOST) {
        return refuse(ctx, place, "operands");
    }
    PathLabels *operands = ARENA_ARRAY(&ctx->arena, n, PathLabels);
    uint8_t *held = ARENA_ARRAY(&ctx->arena, out->n_labels, uint8_t);
    for (size_t k = 0; k < n; k++) {
        if (!read_labels(json_array_get(inputs, k), place, ctx, out, &operands[k], k)) {
            return false;
        }
        for (uint32_t i = 0; i < operands[k].n; i++) {
            held[operands[k].at[i]] = HELD;
        }
    }
    if (!read_labels(output, place, ctx, out, &out->output, 0)) {
        return false;
    }
    for (uint32_t i = 0; i < out->output.n; i++) {
        uint8_t *state = &held[out->output.at[i]];
        if (*state != HELD) {
            diag_error(&ctx->diags, E_EINSUM_OUTPUT, place, "network: label %u of 'output' %s",
                       out->output.at[i], *state == 0 ? "is in no input" : "is there twice");
            return false;
        }
        *state = TAKEN;
    }
    out->operands = operands;
    out->n_operands = (uint32_t)n;
    return true;
}

bool path_problem_from_json(Str text, Span place, Ctx *ctx, PathProblem *out)
{
    json_error_t error;
    const char *nul = text.n == 0 ? NULL : memchr(text.at, '\0', text.n);
    if (nul != NULL) { /* jansson skips one after a number */
        Span at = place;
        at.hi = at.lo = (uint32_t)(nul - text.at);
        diag_error(&ctx->diags, E_JSON, at, "network: a NUL byte");
        return false;
    }
    json_t *root = json_loadb(text.at, text.n, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL) {
        Span at = place;
        at.lo = error.position >= 0 && (size_t)error.position <= text.n
                    ? (uint32_t)error.position
                    : 0;
        at.hi = at.lo;
        diag_error(&ctx->diags, E_JSON, at, "network: %s", error.text);
        return false;
    }
    bool ok = path_problem_from_value(root, place, ctx, out);
    json_decref(root);
    return ok;
}
