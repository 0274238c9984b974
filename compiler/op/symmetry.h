/* SPDX-License-Identifier: Apache-2.0 */
/* Symmetry of tensors: exchanges of dimensions under which a tensor stays as it is, or becomes its negative or its conjugate; and
 * what is declared of it, an attribute for each class of dimensions, or of groups of dimensions that go together. */
#ifndef OP_SYMMETRY_H
#define OP_SYMMETRY_H

#include "base/arena.h"
#include "op/types.h"

/* Permutations that all that is known or declared of one value makes, at most. */
#define SYMMETRY_LIMIT 128

/* The value read with dimension to[d] in the place of each dimension d is itself, times the sign, and conjugated where `conj`.
 * Generators exchange dimensions in pairs, to[to[d]] is d; their products, which are such too, need not. */
typedef struct Generator {
    const uint32_t *to; /* [rank]: not all are their own */
    int sign;           /* 1 or -1 */
    bool conj;          /* of complex values only */
} Generator;

/* What one attribute says: any two of `n` groups of `width` dimensions each may be exchanged. */
typedef struct SymmetryClass {
    uint32_t n, width;
    const uint32_t *dim; /* [n][width] */
    int sign;
    bool conj;
} SymmetryClass;

/* What is declared of a tensor, as symmetry_with makes it; a null pointer is nothing. */
typedef struct Symmetry {
    uint32_t n;
    const SymmetryClass *at;
} Symmetry;

/* `s`, which may be null, and the class as well: classes of single dimensions with one sign that share a dimension become one,
 * dimensions of a class ascend, groups by their first one. */
const Symmetry *symmetry_with(Arena *arena, const Symmetry *s, const SymmetryClass *c);
const Symmetry *symmetry_copy(Arena *arena, const Symmetry *s);
bool symmetry_eq(const Symmetry *a, const Symmetry *b);
/* "symmetric", "antisymmetric", "hermitian", "antihermitian"; of dumps "sym", "antisym", "herm", "antiherm". */
const char *symmetry_word(int sign, bool conj);
const char *symmetry_short_word(int sign, bool conj);
/* The class that a word names, without dimensions: false when it names none. */
bool symmetry_from_word(const char *word, SymmetryClass *out);
bool symmetry_from_short_word(const char *word, SymmetryClass *out);

/* The k-th exchange of two neighbouring groups of a class, which make all others; false when there are not so many. `to` has
 * room for the rank. */
bool symmetry_generator(const Symmetry *s, uint32_t rank, uint32_t k, uint32_t *to,
                        Generator *out);

/* What exchanges make: all permutations, the identity first. */
typedef struct SymmetryGroup {
    uint32_t n; /* SYMMETRY_LIMIT + 1: those, or more */
    Generator at[SYMMETRY_LIMIT + 1];
    bool zero, real,
        imaginary; /* for which numbers alone some permutation has two of its forms */
} SymmetryGroup;
void symmetry_group(Arena *arena, uint32_t rank, uint32_t n, const Generator *generator,
                    SymmetryGroup *out);
/* The same of what is declared. */
void symmetry_declared_group(Arena *arena, uint32_t rank, const Symmetry *s,
                             SymmetryGroup *out);

/* What is wrong with what is declared of a tensor of this type, or null. */
const char *symmetry_problem(Arena *scratch, DType dtype, uint32_t rank, const Dim *shape,
                             const Symmetry *s);

#endif
