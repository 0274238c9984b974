/* SPDX-License-Identifier: Apache-2.0 */
/* See symmetry.h. */
#include "op/symmetry.h"

#include <string.h>

/* ---- words ---- */

static const struct {
    const char *word, *short_word;
    int sign;
    bool conj;
} words[] = {{"symmetric", "sym", 1, false},
             {"antisymmetric", "antisym", -1, false},
             {"hermitian", "herm", 1, true},
             {"antihermitian", "antiherm", -1, true}};

#define N_WORDS (sizeof words / sizeof words[0])

static size_t word_number(int sign, bool conj)
{
    return (sign < 0 ? 1u : 0u) + (conj ? 2u : 0u);
}

const char *symmetry_word(int sign, bool conj)
{
    return words[word_number(sign, conj)].word;
}

const char *symmetry_short_word(int sign, bool conj)
{
    return words[word_number(sign, conj)].short_word;
}

static bool from_word(const char *word, bool is_short, SymmetryClass *out)
{
    for (size_t k = 0; k < N_WORDS; k++) {
        if (strcmp(word, is_short ? words[k].short_word : words[k].word) == 0) {
            *out = (SymmetryClass){.sign = words[k].sign, .conj = words[k].conj};
            return true;
        }
    }
    return false;
}

bool symmetry_from_word(const char *word, SymmetryClass *out)
{
    return from_word(word, false, out);
}

bool symmetry_from_short_word(const char *word, SymmetryClass *out)
{
    return from_word(word, true, out);
}

/* ---- what is declared ---- */

static bool share_dimension(const SymmetryClass *a, const SymmetryClass *b)
{
    for (uint32_t i = 0; i < a->n * a->width; i++) {
        for (uint32_t k = 0; k < b->n * b->width; k++) {
            if (a->dim[i] == b->dim[k]) {
                return true;
            }
        }
    }
    return false;
}

static bool same_kind(const SymmetryClass *a, const SymmetryClass *b)
{
    return a->width == b->width && a->sign == b->sign && a->conj == b->conj;
}

static void swap_places(SymmetryClass *c, uint32_t *dim, uint32_t p, uint32_t q)
{
    for (uint32_t g = 0; g < c->n; g++) {
        uint32_t x = dim[g * c->width + p];
        dim[g * c->width + p] = dim[g * c->width + q];
        dim[g * c->width + q] = x;
    }
}

static void swap_groups(const SymmetryClass *c, uint32_t *dim, uint32_t a, uint32_t b)
{
    for (uint32_t p = 0; p < c->width; p++) {
        uint32_t x = dim[a * c->width + p];
        dim[a * c->width + p] = dim[b * c->width + p];
        dim[b * c->width + p] = x;
    }
}

/* Orders the places in all groups so that the group with the least dimension ascends, then the groups by their first one. */
static void sort_class(SymmetryClass *c, uint32_t *dim)
{
    uint32_t least = 0;
    for (uint32_t k = 0; k < c->n * c->width; k++) {
        least = dim[k] < dim[least] ? k : least;
    }
    const uint32_t *first = dim + least / c->width * c->width;
    for (uint32_t p = 0; p < c->width; p++) {
        for (uint32_t q = p + 1; q < c->width; q++) {
            if (first[q] < first[p]) {
                swap_places(c, dim, p, q);
            }
        }
    }
    for (uint32_t a = 0; a < c->n; a++) {
        for (uint32_t b = a + 1; b < c->n; b++) {
            if (dim[b * c->width] < dim[a * c->width]) {
                swap_groups(c, dim, a, b);
            }
        }
    }
    c->dim = dim;
}

/* Adds the single dimensions of `c` to those of `to`, each once. */
static void join_class(SymmetryClass *to, uint32_t *dim, const SymmetryClass *c)
{
    for (uint32_t k = 0; k < c->n; k++) {
        uint32_t known = 0;
        while (known < to->n && dim[known] != c->dim[k]) {
            known++;
        }
        dim[known] = c->dim[k];
        to->n += known == to->n ? 1 : 0;
    }
}

static int compare_u32(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

/* Below 0: `a` stands before `b`. */
static int compare_classes(const SymmetryClass *a, const SymmetryClass *b)
{
    int order = compare_u32(a->dim[0], b->dim[0]);
    order = order != 0 ? order : compare_u32(a->width, b->width);
    order = order != 0 ? order : compare_u32(a->n, b->n);
    for (uint32_t k = 0; order == 0 && k < a->n * a->width; k++) {
        order = compare_u32(a->dim[k], b->dim[k]);
    }
    order = order != 0 ? order : compare_u32(a->conj, b->conj);
    return order != 0 ? order : b->sign - a->sign;
}

const Symmetry *symmetry_with(Arena *arena, const Symmetry *s, const SymmetryClass *c)
{
    uint32_t n = s == NULL ? 0 : s->n, room = c->n * c->width, made = 0;
    for (uint32_t k = 0; k < n; k++) {
        room += s->at[k].n * s->at[k].width;
    }
    uint32_t *dim = ARENA_ARRAY(arena, room, uint32_t);
    SymmetryClass *all = ARENA_ARRAY(arena, n + 1, SymmetryClass), joined = *c;
    memcpy(dim, c->dim, (size_t)c->n * c->width * sizeof *dim);
    for (uint32_t k = 0; k < n; k++) {
        const SymmetryClass *old = &s->at[k];
        if (same_kind(old, c) && c->width == 1 && share_dimension(old, c)) {
            join_class(&joined, dim, old);
        } else {
            all[made++] = *old;
        }
    }
    sort_class(&joined, dim);
    uint32_t at = made++;
    for (; at > 0 && compare_classes(&all[at - 1], &joined) > 0; at--) {
        all[at] = all[at - 1];
    }
    all[at] = joined;
    if (at > 0 && compare_classes(&all[at - 1], &joined) == 0) { /* said twice */
        memmove(&all[at], &all[at + 1], (--made - at) * sizeof *all);
    }
    Symmetry *out = ARENA_NEW(arena, Symmetry);
    *out = (Symmetry){made, all};
    return out;
}

const Symmetry *symmetry_copy(Arena *arena, const Symmetry *s)
{
    if (s == NULL) {
        return NULL;
    }
    Symmetry *out = ARENA_NEW(arena, Symmetry);
    SymmetryClass *at = arena_copy(arena, s->at, s->n * sizeof *at);
    for (uint32_t k = 0; k < s->n; k++) {
        at[k].dim =
            arena_copy(arena, at[k].dim, (size_t)at[k].n * at[k].width * sizeof *at->dim);
    }
    *out = (Symmetry){s->n, at};
    return out;
}

bool symmetry_eq(const Symmetry *a, const Symmetry *b)
{
    uint32_t n = a == NULL ? 0 : a->n;
    if (n != (b == NULL ? 0 : b->n)) {
        return false;
    }
    for (uint32_t k = 0; k < n; k++) {
        const SymmetryClass *x = &a->at[k], *y = &b->at[k];
        if (compare_classes(x, y) != 0) {
            return false;
        }
    }
    return true;
}

/* ---- exchanges ---- */

bool symmetry_generator(const Symmetry *s, uint32_t rank, uint32_t k, uint32_t *to,
                        Generator *out)
{
    for (uint32_t i = 0; s != NULL && i < s->n; i++) {
        const SymmetryClass *c = &s->at[i];
        if (k + 1 >= c->n) {
            k -= c->n - 1;
            continue;
        }
        for (uint32_t d = 0; d < rank; d++) {
            to[d] = d;
        }
        const uint32_t *one = c->dim + k * c->width, *next = one + c->width;
        for (uint32_t p = 0; p < c->width; p++) {
            to[one[p]] = next[p];
            to[next[p]] = one[p];
        }
        *out = (Generator){to, c->sign, c->conj};
        return true;
    }
    return false;
}

/* Notes the product of two permutations, if it is new. */
static void add_product(Arena *arena, uint32_t rank, Generator a, Generator b,
                        SymmetryGroup *out)
{
    uint32_t *to = ARENA_ARRAY(arena, rank, uint32_t), known = 0;
    Generator product = {to, a.sign * b.sign, a.conj != b.conj};
    for (uint32_t d = 0; d < rank; d++) {
        to[d] = a.to[b.to[d]];
    }
    while (known < out->n && memcmp(out->at[known].to, to, rank * sizeof *to) != 0) {
        known++;
    }
    if (known == out->n) {
        out->at[out->n++] = product;
        return;
    }
    bool sign = out->at[known].sign != product.sign, conj = out->at[known].conj != product.conj;
    out->zero = out->zero || (sign && !conj);
    out->real = out->real || (conj && !sign);
    out->imaginary = out->imaginary || (conj && sign);
}

void symmetry_group(Arena *arena, uint32_t rank, uint32_t n, const Generator *generator,
                    SymmetryGroup *out)
{
    uint32_t *same = ARENA_ARRAY(arena, rank, uint32_t);
    for (uint32_t d = 0; d < rank; d++) {
        same[d] = d;
    }
    *out = (SymmetryGroup){.n = 1, .at = {{same, 1, false}}};
    for (uint32_t k = 0; k < out->n; k++) {
        for (uint32_t i = 0; i < n && out->n <= SYMMETRY_LIMIT; i++) {
            add_product(arena, rank, out->at[k], generator[i], out);
        }
    }
}

void symmetry_declared_group(Arena *arena, uint32_t rank, const Symmetry *s, SymmetryGroup *out)
{
    uint32_t n = 0;
    Generator one;
    uint32_t *to = ARENA_ARRAY(arena, rank, uint32_t);
    while (symmetry_generator(s, rank, n, to, &one)) {
        n++;
    }
    Generator *list = ARENA_ARRAY(arena, n, Generator);
    for (uint32_t k = 0; k < n; k++) {
        (void)symmetry_generator(s, rank, k, ARENA_ARRAY(arena, rank, uint32_t), &list[k]);
    }
    symmetry_group(arena, rank, n, list, out);
}

/* ---- what may be declared ---- */

static const char *class_problem(DType dtype, uint32_t rank, const Dim *shape,
                                 const SymmetryClass *c)
{
    uint64_t seen = 0;
    if (c->n < 2 || c->width == 0) {
        return "an exchange is of two dimensions or more";
    }
    for (uint32_t k = 0; k < c->n * c->width; k++) {
        if (c->dim[k] >= rank || (seen >> c->dim[k] & 1) != 0) {
            return "a dimension is none of the tensor's, or named twice";
        }
        seen |= UINT64_C(1) << c->dim[k];
        if (!dim_eq(shape[c->dim[k]], shape[c->dim[k % c->width]])) {
            return "dimensions of different extents are exchanged";
        }
    }
    if (c->sign < 0 && dtype == DTYPE_BOOL) {
        return "a truth value has no negative";
    }
    return c->conj && !dtype_is_complex(dtype) ? "a real number is its own conjugate" : NULL;
}

const char *symmetry_problem(Arena *scratch, DType dtype, uint32_t rank, const Dim *shape,
                             const Symmetry *s)
{
    for (uint32_t k = 0; s != NULL && k < s->n; k++) {
        const char *problem = class_problem(dtype, rank, shape, &s->at[k]);
        if (problem != NULL) {
            return problem;
        }
    }
    if (s == NULL) {
        return NULL;
    }
    ArenaMark mark = arena_mark(scratch);
    SymmetryGroup group;
    symmetry_declared_group(scratch, rank, s, &group);
    arena_reset(scratch, mark);
    return group.n > SYMMETRY_LIMIT ? "it has too many exchanges"
           : group.zero             ? "only 0 has it"
           : group.real             ? "only real numbers have it"
           : group.imaginary        ? "only imaginary numbers have it"
                                    : NULL;
}
