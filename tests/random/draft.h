/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the generator, and the right sides it makes. A draft is a statement before its
 * left side: text, labels with the dim of each, and a bound on every value. Drafts fail where
 * labels, tensors or text run out; the caller tries another. */
#ifndef TESTS_RANDOM_DRAFT_H
#define TESTS_RANDOM_DRAFT_H

#include "generate.h"

typedef struct Gen {
    Rng rng;
    RandomProgram *p;
    DType dtype; /* of most tensors */
    DType other; /* of some */
    bool device;
    bool chain;    /* statements go on from the last value */
    double points; /* of a statement, at most: the interpreter visits every combination */
} Gen;

/* Indices of one statement: a letter each, bound to a dim. */
#define MAX_LABELS 12

typedef struct Labels {
    uint32_t n;
    uint32_t dim[MAX_LABELS];
    uint32_t used[MAX_LABELS]; /* times, on the right */
    bool inner[MAX_LABELS];    /* of a reduction inside the expression */
} Labels;

extern const char letters[]; /* of the labels */

typedef struct Draft {
    char right[400];
    Labels labels;
    uint32_t reads;
    double bound;
    DType dtype;
    bool all_in_output; /* elementwise: nothing may be summed */
    bool einsum;
    char terms[3][64];
    uint32_t n_terms;
} Draft;

uint32_t below(Gen *g, uint32_t n);
bool chance(Gen *g, uint32_t percent);
/* The largest integer up to which all are exact. */
double exact_limit(DType t);
PRINTF_LIKE(3, 4)
void append(char *to, size_t room, const char *format, ...);
RandomTensor *new_tensor(Gen *g, TensorKind kind, char letter, DType t);
/* A defined tensor of the type, or null. */
RandomTensor *pick(Gen *g, DType t);
void note_read(Gen *g, Draft *d, const RandomTensor *r);
/* How many combinations the labels have that are not in the output. */
double label_count(const Gen *g, const Labels *l, const bool *in_output);
/* Which labels the target has, in what order. */
uint32_t choose_output(Gen *g, const Labels *l, uint32_t keep_percent, uint32_t *out,
                       bool *in_output);
/* A product of one to three tensors, as an einsum string or in index notation. */
bool draft_product(Gen *g, Draft *d);
/* A sum of contractions with a factor in common; chooses the output. */
bool draft_sum(Gen *g, Draft *d, uint32_t *out, uint32_t *n_out, bool *in_output);
/* One tensor read twice: a product of it with itself (chooses the output), and a term that keeps its value or changes its
 * sign, mostly, when two indices are exchanged. See draft_pairs.c. */
bool draft_square(Gen *g, Draft *d, uint32_t *out, uint32_t *n_out, bool *in_output);
bool draft_pairs(Gen *g, Draft *d);
/* An elementwise expression of tensors, all of whose indices are kept or reduced by name. */
bool draft_elementwise(Gen *g, Draft *d, uint32_t depth);
/* Goes on from a value made before: a product with new parameters or other values over its
 * labels and more (then *product is set), or an elementwise expression over them, which reads
 * values in any order of their labels, casts, and reduces inside. See draft_follow.c. */
bool draft_follow(Gen *g, Draft *d, bool *product);
/* Wraps the expression so that the indices which are not kept are reduced by name. */
void reduce_by_name(Gen *g, Draft *d, const bool *in_output, double count);
/* The extents -inf of an empty max would not be integers: such programs are not made. */
bool empty_extremum(const Gen *g, const Draft *d, const bool *in_output);

#endif
