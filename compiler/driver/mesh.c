/* SPDX-License-Identifier: Apache-2.0 */
/* See mesh.h. */
#include "driver/mesh.h"

#include <string.h>

/* 16G, 512MiB, 1000: units of 1024. */
static bool size_of(const char *text, int64_t *out)
{
    static const char units[] = "BKMGT";
    size_t digits = strspn(text, "0123456789");
    char number[24] = "";
    const char *unit = text[digits] == '\0' ? units : strchr(units, text[digits]);
    const char *rest = text + digits + (text[digits] != '\0' ? 1 : 0);
    if (digits == 0 || digits >= sizeof number || unit == NULL ||
        (strcmp(rest, "") != 0 && strcmp(rest, "B") != 0 && strcmp(rest, "iB") != 0)) {
        return false;
    }
    memcpy(number, text, digits);
    if (!parse_i64(number, out) || *out < 1) {
        return false;
    }
    for (; unit > units; unit--) {
        if (!size_mul(*out, 1024, out)) {
            return false;
        }
    }
    return true;
}

bool mesh_wish(const Options *o, int64_t most, Usage *usage, MeshWish *out)
{
    int64_t ranks = 0;
    *out = (MeshWish){.text = option_last(o, OPT_MESH, NULL)};
    if (!option_number(o, OPT_RANKS, 1, most, &ranks, usage)) {
        return false;
    }
    out->ranks = ranks;
    const char *memory = option_last(o, OPT_RANK_MEMORY, NULL);
    if (memory != NULL && !size_of(memory, &out->memory)) {
        return usage_error(usage, "'--rank-memory=%s': bytes are expected, as 16G or 512M",
                           memory);
    }
    return true;
}

/* The next `r:8` of the text; its name, null at the end or where it is none. */
static const char *next_axis(Arena *arena, const char **at, int64_t *size)
{
    size_t n = strcspn(*at, ":"), digits = 0;
    const char *name = str_dup(arena, (Str){*at, n});
    if ((*at)[n] != ':' || memchr(*at, ',', n) != NULL) {
        return NULL;
    }
    digits = strcspn(*at + n + 1, ",");
    const char *number = str_dup(arena, (Str){*at + n + 1, digits});
    if (!parse_i64(number, size) || *size < 1 || *size > RANKS_MOST) {
        return NULL;
    }
    *at += n + 1 + digits;
    *at += **at == ',' && (*at)[1] != '\0' ? 1 : 0;
    return name;
}

/* An axis that is not the kernel's, as the text has it: arrays do not lie over it. */
static bool add_axis(Arena *arena, const char *name, int64_t ranks, MeshAxes *axes,
                     const char **why)
{
    if (axes->n == MESH_AXES) {
        *why = str_format(arena, "more than %d axes", MESH_AXES);
        return false;
    }
    axes->name[axes->n] = name;
    axes->size[axes->n++] = (int32_t)ranks;
    return true;
}

static bool given_sizes(Arena *arena, const char *text, uint32_t n_axes, MeshAxes *axes,
                        const char **why)
{
    const char *other = NULL;
    for (const char *at = text; *at != '\0';) {
        int64_t ranks = 0;
        const char *name = next_axis(arena, &at, &ranks);
        uint32_t found = axes->n;
        for (uint32_t a = 0; name != NULL && a < axes->n; a++) {
            found = strcmp(axes->name[a], name) == 0 || n_axes == 1 ? a : found;
        }
        if (n_axes == 1 && name != NULL && axes->size[0] > 0 &&
            ranks <= RANKS_MOST / axes->size[0]) {
            axes->size[0] *=
                (int32_t)ranks; /* all ranks are on the only axis, whatever it is called */
            continue;
        }
        if (name == NULL || (found < axes->n && axes->size[found] != 0)) {
            *why = name == NULL ? "axes are given as r:2,c:3"
                                : str_format(arena, "axis '%s' is given twice", name);
            return false;
        }
        if (found < axes->n) {
            axes->size[found] = (int32_t)ranks;
        } else if (!add_axis(arena, name, ranks, axes, why)) {
            return false;
        }
        other = found < n_axes ? other : name;
    }
    for (uint32_t a = 0; a < n_axes; a++) {
        if (axes->size[a] == 0 && other != NULL) { /* it may be meant for this one */
            *why = str_format(arena, "the kernel has no axis '%s', and '%s' is not given",
                              other, axes->name[a]);
            return false;
        }
        axes->size[a] = axes->size[a] == 0 ? 1 : axes->size[a];
    }
    return true;
}

/* The largest divisor whose `axes`-th power is not above n. */
static int64_t share(int64_t n, uint32_t axes)
{
    int64_t best = 1;
    for (int64_t d = 1; d <= n; d++) {
        int64_t power = 1;
        for (uint32_t k = 0; k < axes && power <= n; k++) {
            power *= d;
        }
        if (power > n) {
            break;
        }
        best = n % d == 0 ? d : best;
    }
    return best;
}

bool mesh_sizes(Arena *arena, const MeshWish *wish, uint32_t n_axes, const char *const *axis,
                MeshAxes *axes, const char **why)
{
    int64_t product = 1, ranks = wish->ranks;
    *axes = (MeshAxes){.n = n_axes};
    for (uint32_t a = 0; a < n_axes; a++) {
        axes->name[a] = axis[a];
    }
    if (wish->text != NULL && !given_sizes(arena, wish->text, n_axes, axes, why)) {
        return false;
    }
    for (uint32_t a = 0; a < axes->n; a++) {
        if (wish->text == NULL) {
            axes->size[a] = (int32_t)(a + 1 == n_axes ? ranks : share(ranks, n_axes - a));
            ranks /= axes->size[a];
        }
        product *= axes->size[a];
        if (product > RANKS_MOST) {
            *why = str_format(arena, "more than %d ranks", RANKS_MOST);
            return false;
        }
    }
    if (wish->ranks > 0 && product != wish->ranks) {
        *why = str_format(arena, "the mesh has %lld ranks, --ranks says %lld",
                          (long long)product, (long long)wish->ranks);
        return false;
    }
    return true;
}
