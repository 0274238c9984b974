/* SPDX-License-Identifier: Apache-2.0 */
/* Element types, extents and tensor types: what the checker reasons about and every later stage keeps. */
#ifndef OP_TYPES_H
#define OP_TYPES_H

#include <stdbool.h>

#include "base/check.h"
#include "base/source.h"
#include "base/text.h"
#include "base/vec.h"

/* The numbers are tdsl_dtype of runtime/include/tdsl/abi.h (tests/meta/elements.py). */
typedef enum DType {
    DTYPE_NONE = 0, /* poison: already reported */
#define TYPE(id, ...) DTYPE_##id,
#include "op/types.def"
    DTYPE_COUNT
} DType;
/* Of a number that came from outside. */
static inline bool dtype_known(DType t)
{
    return (int)t > DTYPE_NONE && (int)t < DTYPE_COUNT;
}

typedef enum DTypeIs {
    DTYPE_IS_NONE,
    DTYPE_IS_FLOAT,
    DTYPE_IS_INT,
    DTYPE_IS_UINT,
    DTYPE_IS_BOOL,
    DTYPE_IS_COMPLEX
} DTypeIs;

/* What becomes of a number beyond the largest. */
typedef enum DTypeBeyond {
    BEYOND_WRAPS,
    BEYOND_INFINITE,
    BEYOND_SATURATES,
    BEYOND_FINITE
} DTypeBeyond;

/* A row of types.def, which says what each column is. */
typedef struct DTypeInfo {
    const char *name;
    DTypeIs is;
    int64_t bytes;
    int exponent, fraction;
    DTypeBeyond beyond;
    DType computes, sums;
    const char *range, *abi, *c, *numpy, *nki, *hlo, *fortran, *rust;
} DTypeInfo;

const DTypeInfo *dtype_info(DType t);
const char *dtype_name(DType t); /* "f64", ... */
bool dtype_from_name(Str name, DType *out);
/* What is meant by a name of NumPy, C or another language, or null. */
const char *dtype_meant(Str name);
/* The names of all, with blanks between, for messages. */
const char *dtype_names(void);
int64_t dtype_bytes(DType t);
bool dtype_is_float(DType t); /* real: f64 f32 f16 bf16 */
bool dtype_is_int(DType t);
bool dtype_is_exact(DType t);   /* integers and bool, whose numbers are Number.i */
bool dtype_is_half(DType t);    /* floats that are storage: f16 bf16 */
bool dtype_is_storage(DType t); /* floats and integers that compute in another type: i8 too */
bool dtype_is_complex(DType t);
/* The type in which expressions of `t` compute: f32 for f16 and bf16, else `t`. */
DType dtype_computes(DType t);
/* Of its parts: f32 of c64, f64 of c128; any other type itself. */
DType dtype_part(DType t);
/* Complex numbers whose parts hold these real floats. */
DType dtype_complex(DType t);
/* The largest finite number of a float type, the distance of those next to 1, and the exponent of the smallest above 0; of complex
 * numbers those of a component. */
double dtype_most(DType t);
double dtype_epsilon(DType t);
int dtype_unit(DType t);
/* The least and the largest of an exact type. */
int64_t dtype_lowest(DType t);
int64_t dtype_highest(DType t);
/* Is every value of `from` one of `to`, which is of its kind or complex? Then it becomes one without a cast. */
bool dtype_widens(DType from, DType to);
/* Does a value of type `from` become one of type `to` with the same relative error, however large or small it is: exactly, or f32 as bf16? */
bool dtype_keeps_range(DType from, DType to);
/* The type sums of `t` are accumulated in unless said otherwise: f32 for f16 and bf16, else `t`. */
DType dtype_accumulator(DType t);
/* How many neighbouring products of elements of these types instructions for dot products add to one of type `sum`: of operands that
 * fill a word of 32 bits. 1: there are none. */
int64_t dtype_dot_group(DType a, DType b, DType sum);
/* f32 for f64, c64 for c128, else `t`: what --f64=f32 reads. */
DType dtype_narrower(DType t);

/* An extent: a number, or an open dimension of the kernel's DimTable, bound at each call. */
typedef struct Dim {
    int32_t sym; /* -1: fixed */
    int64_t n;   /* fixed extent; 0 when open */
} Dim;

static inline Dim dim_fixed(int64_t n)
{
    return (Dim){-1, n};
}

static inline Dim dim_open(int32_t sym)
{
    return (Dim){sym, 0};
}

/* The extent in another table; `map` has the open dims of this one there. Null: the same. */
static inline Dim dim_mapped(const Dim *map, Dim d)
{
    return d.sym < 0 || map == NULL ? d : map[d.sym];
}

static inline bool dim_eq(Dim a, Dim b)
{
    return a.sym == b.sym && a.n == b.n;
}

static inline bool dim_is(Dim d, int64_t n)
{
    return d.sym < 0 && d.n == n;
}

typedef struct DimTerm {
    Dim dim; /* open */
    int64_t coef;
} DimTerm;

/* A call gives its value; or it is computed from others, which come before it: the product of some, rounded up to a
 * multiple of the divisor and divided by it, or a sum, divided by it and rounded down. */
typedef struct DimInfo {
    Sym name;
    int64_t typical; /* planned for: given by `~`, else DIM_TYPICAL_DEFAULT */
    Span span;
    uint32_t n_factors; /* of a product */
    const Dim *factor;
    uint32_t n_terms; /* of a sum: base + coef * dim + ..., by ascending dims */
    const DimTerm *term;
    int64_t base;
    int64_t divisor; /* 0: 1 */
} DimInfo;

static inline bool dim_is_given(const DimInfo *d)
{
    return d->n_factors == 0 && d->n_terms == 0;
}

#define DIM_TYPICAL_DEFAULT 64

/* Those that a call gives, then those that are computed from them. */
typedef struct DimTable {
    VEC(DimInfo) list;
} DimTable;

/* How many a call gives. */
uint32_t dims_given(const DimTable *t);
/* The values of all, from those that a call gives; products and sums beyond SIZE_LIMIT are SIZE_LIMIT + 1, sums below 0 are -1,
 * and so is all that is made of what is -1. */
int64_t *dims_complete(Arena *arena, const DimTable *t, const int64_t *given);

/* What follows for those that a call gives, of which -1 is not known yet, from one of all being `value`: sets what one unknown
 * factor or term must be. True when something became known. */
bool dims_solve(Arena *scratch, const DimTable *t, int32_t dim, int64_t value, int64_t *given);

/* The dim that is the product of these, of which each is a number or a dim of the table: a number, if all are; else it is
 * added to the table, in `arena`, unless it is there. */
Dim dims_product(Arena *scratch, Arena *arena, SymTable *syms, DimTable *t, Span span,
                 uint32_t n, const Dim *factor);
/* How many blocks of `step` >= 1 positions cover `n`, likewise. */
Dim dims_quotient(Arena *scratch, Arena *arena, SymTable *syms, DimTable *t, Span span, Dim n,
                  int64_t step);

/* The dim that is (base + the sum of the terms) / divisor, rounded down, likewise; the terms are of open dims, each once, and no
 * coefficient is 0. With no terms it is a number, -1 if that is below 0. */
Dim dims_sum(Arena *scratch, Arena *arena, SymTable *syms, DimTable *t, Span span, int64_t base,
             uint32_t n, const DimTerm *term, int64_t divisor);

/* map [from]: the dims of the other table in this one, which has those that a call gives in common with it; what is computed there is
 * added, unless it is there. */
void dims_import(Arena *scratch, Arena *arena, SymTable *syms, DimTable *t,
                 const DimTable *from, Dim *map);
/* A computed dim with its factors and terms in another table. */
DimInfo dim_info_mapped(Arena *arena, const Dim *map, DimInfo info);

/* "n + k - 1", "(2*n - 1)/3", "h*dh", "n", "16": the extent as it would be written, with a name for each dim that a call gives; null:
 * those of the table. */
void dim_put(Text *out, const DimTable *t, Dim d, const char *const *names);
/* The same as a text, with the table's names. */
const char *dim_written(Arena *arena, const DimTable *t, Dim d);

/* What is wrong with a dim that is computed, or with its place; null: nothing. */
const char *dim_problem(const DimTable *t, uint32_t dim);

/* The number to plan with: the extent itself, or the typical size. */
int64_t dim_typical(const DimTable *t, Dim d);

/* Some sizes of an open dim: least <= size <= most. */
typedef struct DimTest {
    int32_t dim;
    int64_t least, most; /* DIM_ANY_SIZE: all above */
} DimTest;

#define DIM_ANY_SIZE INT64_MAX

static inline bool dim_test_holds(const DimTest *test, int64_t size)
{
    return test->least <= size && size <= test->most;
}

/* What the tests lack that exactly one of them holds for each size of one dim, in ascending
 * order; null: nothing. */
const char *dim_tests_problem(const DimTable *t, uint32_t n, const DimTest *const *test);

/* Highest rank of a tensor and deepest nesting anywhere (language.md, limits). */
#define RANK_LIMIT    64
#define NESTING_LIMIT 256

typedef struct TensorType {
    DType dtype;
    uint32_t rank;
    const Dim *dims;
} TensorType;

#endif
