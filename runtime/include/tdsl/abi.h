/* SPDX-License-Identifier: Apache-2.0 */
/* The contract between generated kernels and everything that calls them: the one thing the
 * compiler's output and the runtime share. It needs nothing but two standard headers, allocates
 * nothing and defines no function. The compiler pastes this text, without the line above, into
 * each header it writes, so that one .c and one .h are enough: what calls need first, then the
 * kernels, then what describes them. The guards make any number of copies harmless.
 *
 * Versions: TDSL_ABI_VERSION grows when a structure grows at its end, and when a call of the same
 * kernel means something else. A kernel's table starts with the sizes of all structures it is made
 * of, so a reader may meet a newer table than the one it was built with; it refuses an older one.
 * 2: threads. 3: open dimensions in the order of their first use in the kernel's head; until then
 * declared ones came first. 4: extents that are computed from open dimensions. 5: positions that must lie inside. */
#if !defined(TDSL_ABI_H) && !defined(TDSL_ABI_CALLS_H)
#define TDSL_ABI_CALLS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define TDSL_BEGIN extern "C" {
#define TDSL_END   }
#else
#define TDSL_BEGIN
#define TDSL_END
#endif

#if defined(__cplusplus)
#define TDSL_RESTRICT
#else
#define TDSL_RESTRICT restrict
#endif

#if defined(__GNUC__)
#define TDSL_NODISCARD __attribute__((warn_unused_result))
#else
#define TDSL_NODISCARD
#endif

/* 0 is success, every failure is negative; numbers never change meaning. */
typedef int32_t tdsl_status;
#define TDSL_OK          0
#define TDSL_E_ARGUMENT  (-1) /* a null pointer, an unknown value */
#define TDSL_E_SHAPE     (-2) /* rank or extent differs from the kernel's, or is below 0 */
#define TDSL_E_DTYPE     (-3) /* element type differs */
#define TDSL_E_STRIDE    (-4) /* layout is not C order, or a pointer is misaligned */
#define TDSL_E_OVERLAP   (-5) /* a result overlaps another argument */
#define TDSL_E_WORKSPACE (-6) /* workspace too small or null */
#define TDSL_E_OVERFLOW  (-7) /* a number computed from the extents does not fit 64 bits */
#define TDSL_E_SYMMETRY  (-8) /* an argument is not as symmetric as the kernel's head says */
#define TDSL_E_INDEX                                                                           \
    (-9) /* a position that is a value lies outside of what it is a position of */
#define TDSL_E_MEMORY      (-10)
#define TDSL_E_DEFINITE    (-11) /* a matrix is not positive definite */
#define TDSL_E_NOT_FOUND   (-20) /* no kernel of that name */
#define TDSL_E_ABI         (-21) /* table of another version */
#define TDSL_E_TARGET      (-22) /* no form of the kernel runs on this machine */
#define TDSL_E_NO_LIBRARY  (-30)
#define TDSL_E_NO_SYMBOL   (-31)
#define TDSL_E_DEVICE      (-32)
#define TDSL_E_TIMEOUT     (-33)
#define TDSL_E_DEVICE_LOST (-34)
#define TDSL_E_NUMERICAL   (-35)
#define TDSL_E_NEFF        (-36) /* NEFF missing, damaged, or of another kernel */
#define TDSL_E_PEER        (-51) /* another rank failed, or did not come */
#define TDSL_E_INTERNAL    (-99)

/* The threads of one call. Which thread computes what changes no bit of the results. */
typedef struct tdsl_threads {
    int32_t count; /* at most so many, the caller's among them; 0 and 1: the caller's alone */
    int32_t reserved;
    /* Calls part(work, 0) to part(work, parts - 1), each once, in any order and at the same time
     * as it likes, and returns after the last has. Null: OpenMP does, if the kernels were compiled
     * with it, else the caller's thread computes alone. */
    void (*run)(void *pool, void (*part)(void *work, int32_t number), void *work,
                int32_t parts);
    void *pool;
} tdsl_threads;

/* The table of a kernel: below. */
typedef struct tdsl_kernel_info tdsl_kernel_info;

#endif

/* ---- what describes kernels ---- */
#ifndef TDSL_ABI_H
#define TDSL_ABI_H

#define TDSL_ABI_VERSION 6

/* Element types. Complex numbers are (real, imaginary) pairs; bool is one byte, 0 or 1; f16, bf16 and
 * floats of 8 bits are their patterns. */
typedef enum tdsl_dtype {
    TDSL_F64 = 1,
    TDSL_F32 = 2,
    TDSL_F16 = 3,
    TDSL_BF16 = 4,
    TDSL_I32 = 5,
    TDSL_I64 = 6,
    TDSL_BOOL = 7,
    TDSL_C64 = 8,  /* two f32 */
    TDSL_C128 = 9, /* two f64 */
    TDSL_I8 = 10,
    TDSL_U8 = 11,
    TDSL_I16 = 12,
    TDSL_U16 = 13,
    TDSL_U32 = 14,
    TDSL_F8E4M3 = 15, /* 8 bits: largest 240, infinities */
    TDSL_F8E5M2 = 16,
    TDSL_F8E4M3FN = 17 /* largest 448, no infinity */
} tdsl_dtype;

typedef enum tdsl_role {
    TDSL_IN = 1,    /* const pointer, read */
    TDSL_OUT = 2,   /* pointer, every element written, never read */
    TDSL_INOUT = 3, /* pointer, read and written */
    TDSL_SCALAR = 4 /* by value in the typed entry, by pointer in `call` */
} tdsl_role;

/* One extent of an argument: number `fixed` when `dim` is -1, the value of open dimension `dim` when that is below the kernel's
 * n_dims, else the value of computed extent `dim` - n_dims. */
typedef struct tdsl_extent {
    int32_t dim;
    int32_t reserved; /* before version 6: the kernel's head on symmetry, in part */
    int64_t fixed;
} tdsl_extent;

/* What the kernel's head says of an argument's symmetry: with index to[d] in the place of the index of each axis d an element is the
 * same times `sign`, 1 or -1, and the conjugate where `conjugated` is not 0. The size of this structure never changes. */
typedef struct tdsl_exchange {
    const int32_t *to; /* [rank] */
    int32_t sign;
    int32_t conjugated;
} tdsl_exchange;

/* An open dimension: bound by the caller at each call. */
typedef struct tdsl_dim_info {
    const char *name;
    int64_t typical; /* what the plan was made for */
} tdsl_dim_info;

/* A value times a number. `dim` is an open dimension, or n_dims + the number of a computed extent that comes before. The size
 * of this structure never changes. */
typedef struct tdsl_term {
    int64_t dim;
    int64_t coefficient; /* 1 in a product */
} tdsl_term;

/* An extent that is computed at each call. A sum: (base + coefficient * value + ...) / divisor, rounded down; a product:
 * base * value * ... All are computed before anything else is done, also those that only the kernel's inside needs: a sum
 * that is below 0 is TDSL_E_SHAPE; where a part of it, what it comes to part by part, or a product is 2^61 or more in size,
 * that is TDSL_E_OVERFLOW. */
typedef struct tdsl_computed {
    int64_t base;
    int64_t divisor; /* 1 or more; 1 of a product */
    int32_t product; /* 0: a sum, 1: a product */
    int32_t n_terms;
    const tdsl_term *terms; /* [n_terms] */
} tdsl_computed;

typedef struct tdsl_arg_info {
    const char *name;
    int32_t role;  /* tdsl_role */
    int32_t dtype; /* tdsl_dtype */
    int32_t rank;
    int32_t reserved;
    const tdsl_extent *extents; /* [rank], C order; null when rank is 0 */
    /* Since version 6: */
    const tdsl_exchange *exchanges; /* null when there are none */
    int64_t n_exchanges;
} tdsl_arg_info;

/* A position that is a value, and lies outside: `text`, as the program has it, is `position`, of dimension `dimension` of
 * `array`, whose extent is `extent`, where the indices called `indices`, "b,l", are index[0] to index[n_indices - 1]. */
typedef struct tdsl_outside {
    const char *array;
    const char *text;
    const char *indices;
    int32_t dimension;
    int32_t n_indices;
    int64_t position;
    int64_t extent;
    int64_t index[64];
} tdsl_outside;

/* A kernel. `call` takes the open dimensions in the order of `dims` and one pointer per
 * argument in the order of `args` (scalars by pointer); it checks nothing but sizes, as the
 * typed entry does. `workspace_bytes` gives the bytes `call` needs for these dimensions,
 * SIZE_MAX when `call` refuses them; workspace may begin at any address, as `call` aligns within it
 * what it needs aligned, and may be null when 0 bytes are needed. `multiply_adds` counts what
 * the kernel performs, saturating. `call` computes in the caller's thread, `call_threads` in as many of
 * those it is given as are worth it, and for which there is workspace: so many threads need
 * `workspace_bytes_threads`. */
struct tdsl_kernel_info {
    uint32_t struct_size;
    uint32_t abi_version;
    uint32_t dim_size; /* of one tdsl_dim_info, and so on: steps in the arrays below */
    uint32_t arg_size;
    uint32_t extent_size;
    uint32_t computed_size; /* before version 4: 0 */
    const char *name;
    const char *source;    /* file name as given to the compiler */
    const char *signature; /* the kernel's head as written in TDSL */
    const char *digest;    /* hex, of the kernel's program and plan */
    int32_t n_dims;
    int32_t n_args;
    const tdsl_dim_info *dims;
    const tdsl_arg_info *args;
    size_t (*workspace_bytes)(const int64_t *dims);
    uint64_t (*multiply_adds)(const int64_t *dims);
    tdsl_status (*call)(const int64_t *dims, void *const *args, void *workspace,
                        size_t workspace_bytes);
    /* Since version 2: */
    size_t (*workspace_bytes_threads)(const int64_t *dims, int32_t threads);
    tdsl_status (*call_threads)(const int64_t *dims, void *const *args, void *workspace,
                                size_t workspace_bytes, const tdsl_threads *threads);
    /* Since version 4: */
    const tdsl_computed *computed; /* each made of those before it; null when there are none */
    int32_t n_computed;
    int32_t reserved;
    /* Since version 5: is a position of these arguments outside? `call` looks for one before it writes anything, and returns
     * TDSL_E_INDEX; `first`, which may be null, is set to the first. Null: the kernel has no positions that are values. */
    int32_t (*outside)(const int64_t *dims, void *const *args, tdsl_outside *first);
};

/* The first members of a tdsl_kernel_info. */
#define TDSL_ABI_HEAD                                                                          \
    (uint32_t)sizeof(tdsl_kernel_info), TDSL_ABI_VERSION, (uint32_t)sizeof(tdsl_dim_info),     \
        (uint32_t)sizeof(tdsl_arg_info), (uint32_t)sizeof(tdsl_extent),                        \
        (uint32_t)sizeof(tdsl_computed)

#endif
