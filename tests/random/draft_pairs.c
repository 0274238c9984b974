/* SPDX-License-Identifier: Apache-2.0 */
/* Right sides that read one tensor twice: products of it with itself, which are symmetric, and terms that stay as they are,
 * or change the sign, where two of their indices are exchanged. See draft.h. */
#include "draft.h"

#include <stdio.h>
#include <string.h>

/* "A0[i,k,j]" */
static void put_read(const RandomTensor *r, const uint32_t *label, char *to, size_t room)
{
    to[0] = '\0';
    append(to, room, "%s[", r->name);
    for (uint32_t d = 0; d < r->rank; d++) {
        append(to, room, "%s%c", d == 0 ? "" : ",", letters[label[d]]);
    }
    append(to, room, "]");
}

static uint32_t new_label(Labels *l, uint32_t dim, uint32_t used)
{
    l->dim[l->n] = dim;
    l->used[l->n] = used;
    return l->n++;
}

/* B[i,a,k] * B[j,b,k] -> [i,a,j,b], or with other labels in the output. */
bool draft_square(Gen *g, Draft *d, uint32_t *out, uint32_t *n_out, bool *in_output)
{
    RandomTensor *r = pick(g, d->dtype);
    uint32_t first[MAX_RANK], second[MAX_RANK], own = 0;
    char x[32], y[32];
    if (r == NULL || r->rank == 0) {
        return false;
    }
    for (uint32_t k = 0; k < r->rank; k++) {
        bool shared = chance(g, 50) || 2 * (own + 1) > MAX_RANK;
        first[k] = new_label(&d->labels, r->dim[k], shared ? 2 : 1);
        second[k] = shared ? first[k] : new_label(&d->labels, r->dim[k], 1);
        own += shared ? 0 : 1;
    }
    put_read(r, first, x, sizeof x);
    put_read(r, second, y, sizeof y);
    bool conj = dtype_is_complex(r->dtype) && chance(g, 50);
    append(d->right, sizeof d->right, conj ? "%s * conj(%s)" : "%s * %s", x, y);
    note_read(g, d, r);
    d->bound = r->bound * r->bound;
    if (chance(g, 40)) {
        *n_out = choose_output(g, &d->labels, 60, out, in_output);
        return true;
    }
    *n_out = 0;
    for (uint32_t side = 0; side < 2; side++) {
        for (uint32_t k = 0; k < r->rank; k++) {
            if (first[k] != second[k]) {
                out[(*n_out)++] = side == 0 ? first[k] : second[k];
                in_output[out[*n_out - 1]] = true;
            }
        }
    }
    return true;
}

/* A tensor with two axes of one dim, and these axes; those declared symmetric and the last ones more often. Null: none. */
static RandomTensor *pick_pair(Gen *g, DType t, uint32_t axis[2])
{
    RandomTensor *best = NULL;
    for (uint32_t attempt = 0; attempt < 8 && (best == NULL || best->sign == 0); attempt++) {
        RandomTensor *r = pick(g, t);
        uint32_t a = r == NULL || r->rank < 2 ? 0 : below(g, r->rank);
        uint32_t b = r == NULL || r->rank < 2 ? 0 : below(g, r->rank);
        if (a != b && r->dim[a] == r->dim[b]) {
            best = r;
            axis[0] = a;
            axis[1] = b;
        }
    }
    return best;
}

/* T[i,a,j,b] * (2 * T[i,a,j,b] - T[i,b,j,a]) and the like. */
bool draft_pairs(Gen *g, Draft *d)
{
    static const struct {
        const char
            *text[4];      /* before, between and after reads: of the one, of the other, ... */
        const char *order; /* x: as it is, y: exchanged */
        uint32_t power, factor; /* of the bound */
    } forms[] = {
        /* the last two of real numbers */
        {{"", " * (2 * ", " - ", ")"}, "xxy", 2, 3}, {{"(", " + ", ")", ""}, "xy", 1, 2},
        {{"(", " - ", ")", ""}, "xy", 1, 2},         {{"(", " * ", ")", ""}, "yx", 2, 1},
        {{"abs(", " - ", ")", ""}, "xy", 1, 2},      {{"max(", ", ", ")", ""}, "xy", 1, 1},
    };
    static const char *const bools[] = {" && ", " || ", " == "};
    uint32_t axis[2], label[MAX_RANK], other[MAX_RANK];
    RandomTensor *r = pick_pair(g, d->dtype, axis);
    char x[32], y[32], image[48];
    if (r == NULL) {
        return false;
    }
    for (uint32_t k = 0; k < r->rank; k++) {
        label[k] = other[k] = new_label(&d->labels, r->dim[k], 2);
    }
    other[axis[0]] = label[axis[1]];
    other[axis[1]] = label[axis[0]];
    if (r->sign != 0 && r->with[0] != r->with[1] && chance(g, 60)) { /* as it is declared */
        for (uint32_t k = 0; k < r->rank; k++) {
            other[k] = label[k];
        }
        for (uint32_t k = 0; k < 2; k++) {
            other[r->pair[k]] = label[r->pair[1 - k]];
            other[r->with[k]] = label[r->with[1 - k]];
        }
    }
    put_read(r, label, x, sizeof x);
    put_read(r, other, y, sizeof y);
    bool conj = dtype_is_complex(r->dtype) && chance(g, 50);
    image[0] = '\0';
    append(image, sizeof image, conj ? "conj(%s)" : "%s", y);
    note_read(g, d, r);
    d->bound = 1;
    if (d->dtype == DTYPE_BOOL) {
        append(d->right, sizeof d->right, "(%s%s%s)", x, bools[below(g, 3)], y);
        return true;
    }
    uint32_t f = below(g, dtype_is_complex(d->dtype) ? 4 : 6), k = 0;
    for (; forms[f].order[k] != '\0'; k++) {
        append(d->right, sizeof d->right, "%s%s", forms[f].text[k],
               forms[f].order[k] == 'x' ? x : image);
    }
    append(d->right, sizeof d->right, "%s", forms[f].text[k]);
    d->bound = forms[f].factor * (forms[f].power == 2 ? r->bound * r->bound : r->bound);
    return true;
}
