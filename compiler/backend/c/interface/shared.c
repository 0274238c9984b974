/* SPDX-License-Identifier: Apache-2.0 */
/* What all kernels of a file, or of several (emit_across.c), share beside helper functions: checks of what is given, and the macro that makes
 * a kernel's exported functions and its tables. Lines that no kernel needs are left out. */
#include "backend/c/interface/entry.h"

/* What a file must have for a piece of the text, as bits: kernels with open dims, none of them; parallel loops, none; computed extents,
 * none; positions that must lie inside, none; matrices that are factored; a workspace, none; arguments that may be empty, none. */
typedef enum Need {
    ALWAYS = 0,
    OPEN = 1 << 0,
    FIXED = 1 << 1,
    PARALLEL = 1 << 2,
    SERIAL = 1 << 3,
    COMPUTED = 1 << 4,
    PLAIN = 1 << 5,
    REQUIRES = 1 << 6,
    LAX = 1 << 7,
    FACTORS = 1 << 8,
    ROOM = 1 << 9,
    ROOMLESS = 1 << 10,
    EMPTY = 1 << 11,
    FULL = 1 << 12
} Need;
typedef struct Piece {
    int need; /* bits of Need */
    const char *text;
} Piece;

/* The list of kernels names no symbol that may be bound to another library's: each table is there twice, and all goes to
 * static functions. One function checks the arguments of all kernels: a copy in each would take compilers most of the time. */
static const Piece type_pieces[] = {
    {ALWAYS,
     "/* A kernel, as the functions below see it. */\n"
     "typedef struct tdsl_kernel {\n"
     "    const tdsl_kernel_info *info;\n"
     "    size_t (*sizes)(const int64_t *dims, int32_t threads), bytes; /* without `sizes` */\n"
     "    void (*run)(const int64_t *dims, void *const *args, unsigned char *ws,\n"
     "                const tdsl_threads *threads, int32_t crew, size_t space);\n"},
    {REQUIRES,
     "    int32_t (*outside)(const int64_t *dims, void *const *args, tdsl_outside *first); "
     "/* or null */\n"},
    {FACTORS,
     "    int32_t factors; /* the workspace begins with what was not positive definite */\n"},
    {ALWAYS, "} tdsl_kernel;\n\n"},
};

static const Piece function_pieces[] = {
    {EMPTY, "static int tdsl_has_elements(const tdsl_arg_info *a, const int64_t *dims)\n"
            "{\n"
            "    int some = 1;\n"
            "    for (int32_t d = 0; d < a->rank; ++d) {\n"},
    {OPEN, "        some &= (a->extents[d].dim < 0 ? a->extents[d].fixed : "
           "dims[a->extents[d].dim]) != 0;\n"},
    {FIXED | EMPTY, "        some &= a->extents[d].fixed != 0;\n"},
    {EMPTY, "    }\n"},
    {FIXED | EMPTY, "    (void)dims;\n"},
    {EMPTY, "    return some;\n"
            "}\n"
            "\n"},
    {OPEN, "/* Bytes of an argument, or -1 when they are too many for one object. */\n"
           "static int64_t tdsl_size(const tdsl_arg_info *a, const int64_t *dims)\n"
           "{\n"
           "    static const int64_t size[] = {0"
#define TYPE(id, name, is, bytes, ...) ", " #bytes
#include "op/types.def"
           "}; /* of each tdsl_dtype */\n"
           "    int64_t bytes = size[a->dtype];\n"
           "    for (int32_t d = 0; d < a->rank; ++d) {\n"
           "        bytes = tdsl_grow(bytes, a->extents[d].dim < 0 ? a->extents[d].fixed : "
           "dims[a->extents[d].dim]);\n"
           "    }\n"
           "    return bytes;\n"
           "}\n"
           "\n"},
    {COMPUTED,
     "/* Extents that are given and, behind them, those that are computed; are they possible? "
     "*/\n"
     "static tdsl_status tdsl_extents(const tdsl_kernel_info *info, const int64_t *dims, "
     "int64_t *all)\n"
     "{\n"
     "    const int64_t most = INT64_MAX / 4;\n"
     "    for (int32_t d = 0; d < info->n_dims; ++d) {\n"
     "        if (dims[d] < 0) {\n"
     "            return TDSL_E_SHAPE;\n"
     "        }\n"
     "        all[d] = dims[d];\n"
     "    }\n"
     "    for (int32_t c = 0; c < info->n_computed; ++c) {\n"
     "        const tdsl_computed *x = &info->computed[c];\n"
     "        int64_t value = x->base;\n"
     "        for (int32_t t = 0; t < x->n_terms; ++t) {\n"
     "            const int64_t extent = all[x->terms[t].dim];\n"
     "            const int64_t by = x->product ? value : x->terms[t].coefficient;\n"
     "            if (value > most || value < -most || (extent > 0 && (by > most / extent || "
     "by < -most / extent))) {\n"
     "                return TDSL_E_OVERFLOW;\n"
     "            }\n"
     "            value = x->product ? by * extent : value + by * extent;\n"
     "        }\n"
     "        if (value < 0 || value > most) {\n"
     "            return value < 0 ? TDSL_E_SHAPE : TDSL_E_OVERFLOW;\n"
     "        }\n"
     "        all[info->n_dims + c] = value / x->divisor;\n"
     "    }\n"
     "    return TDSL_OK;\n"
     "}\n"
     "\n"},
    {ROOM, "/* How much workspace the extents and threads need; are they possible? */\n"
           "static tdsl_status tdsl_check(const tdsl_kernel *k, const int64_t *dims, int32_t "
           "threads, size_t *need)\n"
           "{\n"},
    {OPEN, "    for (int32_t d = 0; d < k->info->n_dims; ++d) {\n"
           "        if (dims[d] < 0) {\n"
           "            return TDSL_E_SHAPE;\n"
           "        }\n"
           "    }\n"
           "    for (int32_t i = 0; k->info->n_dims > 0 && i < k->info->n_args; ++i) {\n"
           "        if (tdsl_size(&k->info->args[i], dims) < 0) {\n"
           "            return TDSL_E_OVERFLOW;\n"
           "        }\n"
           "    }\n"},
    {ROOM, "    *need = k->sizes == NULL ? k->bytes : k->sizes(dims, threads);\n"
           "    return *need == SIZE_MAX ? TDSL_E_OVERFLOW : TDSL_OK;\n"
           "}\n"
           "\n"},
    {ALWAYS,
     "static size_t tdsl_need(const tdsl_kernel *k, const int64_t *dims, int32_t threads)\n"
     "{\n"},
    {ROOM, "    size_t need = 0;\n"},
    {COMPUTED, "    int64_t all[TDSL_EXTENTS];\n"
               "    if (tdsl_extents(k->info, dims, all) != TDSL_OK) {\n"
               "        return SIZE_MAX;\n"
               "    }\n"
               "    dims = all;\n"},
    {ROOM, "    return tdsl_check(k, dims, threads, &need) == TDSL_OK ? need : SIZE_MAX;\n"},
    {ROOMLESS, "    (void)k; (void)dims; (void)threads;\n"
               "    return 0;\n"},
    {ALWAYS, "}\n"
             "\n"
             "/* Checks what is given, and runs the loops if there is an element to write. */\n"
             "static tdsl_status tdsl_call(const tdsl_kernel *k, const int64_t *dims, void "
             "*const *args,\n"
             "    void *workspace, size_t workspace_bytes, const tdsl_threads *threads)\n"
             "{\n"},
    {ROOM, "    unsigned char none[1], *ws = none; /* no arithmetic on a null pointer */\n"
           "    size_t need = 0, space = workspace_bytes;\n"},
    {OPEN, "    int written = k->info->n_dims == 0;\n"},
    {COMPUTED, "    int64_t all[TDSL_EXTENTS];\n"
               "    tdsl_status status = tdsl_extents(k->info, dims, all);\n"
               "    dims = all;\n"
               "    status = status != TDSL_OK ? status : tdsl_check(k, dims, 1, &need);\n"},
    {PLAIN | ROOM, "    const tdsl_status status = tdsl_check(k, dims, 1, &need);\n"},
    {ROOM, "    if (status != TDSL_OK) {\n"
           "        return status;\n"
           "    }\n"},
    {ALWAYS, "    for (int32_t i = 0; i < k->info->n_args; ++i) {\n"},
    {EMPTY, "        const tdsl_arg_info *a = &k->info->args[i];\n"
            "        if (args[i] == NULL && tdsl_has_elements(a, dims)) {\n"},
    {FULL, "        if (args[i] == NULL) {\n"},
    {ALWAYS, "            return TDSL_E_ARGUMENT;\n"
             "        }\n"},
    {OPEN, "        written |= (a->role == TDSL_OUT || a->role == TDSL_INOUT) && "
           "tdsl_has_elements(a, dims);\n"},
    {ALWAYS, "    }\n"},
    {ROOM, "    if (workspace_bytes < need || (need > 0 && workspace == NULL)) {\n"
           "        return TDSL_E_WORKSPACE;\n"
           "    }\n"
           "    if (need > 0) {\n"
           "        ws = (unsigned char *)workspace + (-(uintptr_t)workspace & 63u);\n"
           "        space -= -(uintptr_t)workspace & 63u;\n"
           "    }\n"},
    {REQUIRES, "    if (k->outside != NULL && k->outside(dims, args, NULL) != 0) {\n"
               "        return TDSL_E_INDEX;\n"
               "    }\n"},
    {OPEN, "    if (written) {\n"},
    {OPEN | PARALLEL, "        k->run(dims, args, ws, threads, tdsl_crew(threads), space);\n"},
    {OPEN | SERIAL, "        k->run(dims, args, ws, threads, 1, space);\n"},
    {OPEN | FACTORS,
     "        if (k->factors && *(const int64_t *)(const void *)ws != INT64_MAX) {\n"
     "            return TDSL_E_DEFINITE;\n"
     "        }\n"},
    {OPEN, "    }\n"},
    {FIXED | PARALLEL | ROOM,
     "    k->run(dims, args, ws, threads, tdsl_crew(threads), space);\n"},
    {FIXED | SERIAL | ROOM, "    k->run(dims, args, ws, threads, 1, space);\n"},
    {FIXED | PARALLEL | ROOMLESS,
     "    k->run(dims, args, workspace, threads, tdsl_crew(threads), workspace_bytes);\n"},
    {FIXED | SERIAL | ROOMLESS,
     "    k->run(dims, args, workspace, threads, 1, workspace_bytes);\n"},
    {FIXED | FACTORS,
     "    if (k->factors && *(const int64_t *)(const void *)ws != INT64_MAX) {\n"
     "        return TDSL_E_DEFINITE;\n"
     "    }\n"},
    {ALWAYS, "    return TDSL_OK;\n"
             "}\n"
             "\n"},
    {OPEN, "/* The sum of products in a list: of each the number of open dims, what is fixed, "
           "the dims; -1 ends it. */\n"
           "static uint64_t tdsl_multiply_adds(const int64_t *work, const int64_t *dims)\n"
           "{\n"
           "    uint64_t total = 0;\n"
           "    while (*work >= 0) {\n"
           "        int64_t n = *work++;\n"
           "        uint64_t count = (uint64_t)*work++;\n"
           "        while (n-- > 0) {\n"
           "            const uint64_t extent = dims[*work] < 0 ? 0 : (uint64_t)dims[*work];\n"
           "            count = extent > 0 && count > UINT64_MAX / extent ? UINT64_MAX : count "
           "* extent;\n"
           "            ++work;\n"
           "        }\n"
           "        total = total > UINT64_MAX - count ? UINT64_MAX : total + count;\n"
           "    }\n"
           "    return total;\n"
           "}\n"
           "\n"},
    {COMPUTED, "static uint64_t tdsl_work_of(const tdsl_kernel_info *info, const int64_t "
               "*work, const int64_t *dims)\n"
               "{\n"
               "    int64_t all[TDSL_EXTENTS];\n"
               "    const tdsl_status status = tdsl_extents(info, dims, all);\n"
               "    return status == TDSL_OK ? tdsl_multiply_adds(work, all) : status == "
               "TDSL_E_SHAPE ? 0 : UINT64_MAX;\n"
               "}\n"
               "\n"},
};

static const Piece macro_pieces[] = {
    {ALWAYS,
     "/* The exported functions of a kernel, and its tables. Dims and arguments are lists in "
     "parentheses; FAST\n"
     " * and FAST_TABLE are what calls that need no more checks do. */\n"
     "#define TDSL_LIST(...) __VA_ARGS__\n"
     "#define TDSL_READ(p) (void *)(uintptr_t)(p) /* an argument that is not written */\n"
     "#define TDSL_KERNEL(NAME, TEXT, SOURCE, HEAD, DIGEST, N_DIMS, DIM_INFO, N_ARGS, "
     "ARG_INFO, SIZES, WORK, \\\n"
     "                    ONLY_DIMS, "},
    {COMPUTED, "COMPUTED, "},
    {REQUIRES, "OUTSIDE, "},
    {FACTORS, "FACTORS, "},
    {ALWAYS,
     "FAST, FAST_TABLE, DIM_TYPES, DIMS, ARG_TYPES, ARGS, LOOPS) \\\n"
     "    static void tdsl_run_##NAME(const int64_t *dims, void *const *args, unsigned char "
     "*ws, \\\n"
     "        const tdsl_threads *threads, int32_t crew, size_t space) \\\n"
     "    { \\\n"
     "        (void)dims; (void)args; (void)ws; (void)threads; (void)crew; (void)space; \\\n"
     "        tdsl_loops_##NAME(TDSL_LIST LOOPS); \\\n"
     "    } \\\n"
     "    static const tdsl_kernel_info tdsl_table_##NAME; \\\n"
     "    static const tdsl_kernel tdsl_of_##NAME = {&tdsl_table_##NAME, TDSL_LIST SIZES, "
     "tdsl_run_##NAME"},
    {REQUIRES, ", OUTSIDE"},
    {FACTORS, ", FACTORS"},
    {ALWAYS,
     "}; \\\n"
     "    static uint64_t tdsl_work_of_##NAME(const int64_t *dims) \\\n"
     "    { (void)dims; return WORK; } \\\n"
     "    static size_t tdsl_threads_bytes_##NAME(const int64_t *dims, int32_t threads) \\\n"
     "    { return tdsl_need(&tdsl_of_##NAME, dims, threads); } \\\n"
     "    static size_t tdsl_bytes_##NAME(const int64_t *dims) \\\n"
     "    { return tdsl_need(&tdsl_of_##NAME, dims, 1); } \\\n"
     "    static tdsl_status tdsl_threads_call_##NAME(const int64_t *dims, void *const *args, "
     "\\\n"
     "        void *workspace, size_t workspace_bytes, const tdsl_threads *threads) \\\n"
     "    { return tdsl_call(&tdsl_of_##NAME, dims, args, workspace, workspace_bytes, "
     "threads); } \\\n"
     "    static tdsl_status tdsl_call_##NAME(const int64_t *dims, void *const *args, \\\n"
     "        void *workspace, size_t workspace_bytes) \\\n"
     "    { \\\n"
     "        TDSL_LIST FAST_TABLE \\\n"
     "        return tdsl_call(&tdsl_of_##NAME, dims, args, workspace, workspace_bytes, NULL); "
     "\\\n"
     "    } \\\n"
     "    tdsl_status NAME##_threads(TDSL_LIST DIM_TYPES TDSL_LIST ARG_TYPES \\\n"
     "        void *TDSL_RESTRICT workspace, size_t workspace_bytes, const tdsl_threads "
     "*threads) \\\n"
     "    { return tdsl_call(&tdsl_of_##NAME, (const int64_t[]){TDSL_LIST DIMS 0}, \\\n"
     "          (void *const[]){TDSL_LIST ARGS NULL}, workspace, workspace_bytes, threads); } "
     "\\\n"
     "    tdsl_status NAME(TDSL_LIST DIM_TYPES TDSL_LIST ARG_TYPES \\\n"
     "        void *TDSL_RESTRICT workspace, size_t workspace_bytes) \\\n"
     "    { \\\n"
     "        TDSL_LIST FAST \\\n"
     "        return tdsl_call(&tdsl_of_##NAME, (const int64_t[]){TDSL_LIST DIMS 0}, \\\n"
     "            (void *const[]){TDSL_LIST ARGS NULL}, workspace, workspace_bytes, NULL); \\\n"
     "    } \\\n"
     "    size_t NAME##_workspace_bytes ONLY_DIMS \\\n"
     "    { return tdsl_need(&tdsl_of_##NAME, (const int64_t[]){TDSL_LIST DIMS 0}, 1); } \\\n"
     "    size_t NAME##_workspace_bytes_threads(TDSL_LIST DIM_TYPES int32_t threads) \\\n"
     "    { return tdsl_need(&tdsl_of_##NAME, (const int64_t[]){TDSL_LIST DIMS 0}, threads); } "
     "\\\n"
     "    TDSL_INFO(static, tdsl_table_##NAME, NAME, "},
    {COMPUTED, "COMPUTED, \\\n        "},
    {REQUIRES, "OUTSIDE, \\\n        "},
    {ALWAYS, "TEXT, SOURCE, HEAD, DIGEST, N_DIMS, N_ARGS, DIM_INFO, ARG_INFO) \\\n"
             "    TDSL_INFO(, NAME##_info, NAME, "},
    {COMPUTED, "COMPUTED, \\\n        "},
    {REQUIRES, "OUTSIDE, \\\n        "},
    {ALWAYS, "TEXT, SOURCE, HEAD, DIGEST, N_DIMS, N_ARGS, DIM_INFO, ARG_INFO)\n"
             "#define TDSL_INFO(STATIC, TABLE, NAME, "},
    {COMPUTED, "COMPUTED, "},
    {REQUIRES, "OUTSIDE, "},
    {ALWAYS, "...) \\\n"
             "    STATIC const tdsl_kernel_info TABLE = { \\\n"
             "        TDSL_ABI_HEAD, __VA_ARGS__, tdsl_bytes_##NAME, tdsl_work_of_##NAME, "
             "tdsl_call_##NAME, \\\n"
             "        tdsl_threads_bytes_##NAME, tdsl_threads_call_##NAME, "},
    {COMPUTED, "TDSL_LIST COMPUTED, 0, "},
    {PLAIN, "NULL, 0, 0, "},
    {REQUIRES, "OUTSIDE};\n"},
    {LAX, "NULL};\n"},
};

/* 0: no kernel has extents that are computed, and files alone need not be ready for such (`any`). */
static uint32_t most_extents(Arena *scratch, const KernelModule *m, bool any)
{
    uint32_t most = 1;
    for (uint32_t k = 0; k < m->kernels.n; k++) {
        uint32_t computed = computed_count(scratch, m->kernels.at[k]);
        uint32_t n = dims_given(&m->kernels.at[k]->dims) + computed;
        any = any || computed > 0;
        most = n > most ? n : most;
    }
    return any ? most : 0;
}

SharedNeeds needs_of_module(Arena *scratch, const KernelModule *m, FileRole role)
{
    SharedNeeds n = {.extents = most_extents(scratch, m, role != FILE_ALONE)};
    n.requires = n.factors = role != FILE_ALONE; /* whatever other files do */
    n.open = n.parallel = role == FILE_SHARED;
    for (uint32_t k = 0; k < m->kernels.n; k++) {
        n.requires |= m->kernels.at[k]->positions != NULL;
        n.factors |= kernel_indefinite(m->kernels.at[k]) != BUF_NONE;
    }
    return n;
}

void needs_add(SharedNeeds *n, const Emitter *e)
{
    const Kernel *k = e->w.k;
    int64_t bytes = 0;
    n->open |= dims_given(&k->dims) > 0;
    n->parallel |= e->n_parts > 0;
    n->workspace |= !sizes_fixed(k, &bytes) || bytes > 0;
    for (uint32_t i = 0; i < k->args.n; i++) {
        ArgShape shape = arg_shape(k, i);
        for (uint32_t d = 0; d < shape.rank; d++) {
            n->empty |= shape.extent[d].sym < 0 && shape.extent[d].n == 0;
        }
    }
}

void shared_needs(Helpers *h, const SharedNeeds *n)
{
    if (n->open) {
        (void)help_fixed(h, "tdsl_grow");
    }
    if (n->parallel) {
        (void)help_fixed(h, "tdsl_crew");
    }
}

static void pieces_put(Text *out, const SharedNeeds *n, const Piece *piece, size_t count)
{
    /* Any extents may be too many bytes, or none. */
    const int has = (n->open ? OPEN : FIXED) | (n->parallel ? PARALLEL : SERIAL) |
                    (n->extents > 0 ? COMPUTED : PLAIN) | (n->requires ? REQUIRES : LAX) |
                    (n->factors ? FACTORS : 0) | (n->open || n->workspace ? ROOM : ROOMLESS) |
                    (n->open || n->empty ? EMPTY : FULL);
    for (size_t i = 0; i < count; i++) {
        text_put(out, (piece[i].need & ~has) == 0 ? piece[i].text : "");
    }
}

void shared_types_emit(Text *out, const SharedNeeds *n)
{
    text_put(out, "\n");
    if (n->extents > 0) {
        text_printf(out,
                    "#define TDSL_EXTENTS %u /* the most of a kernel, given and computed */\n",
                    n->extents);
    }
    pieces_put(out, n, type_pieces, sizeof type_pieces / sizeof *type_pieces);
}

void shared_functions_emit(Text *out, const SharedNeeds *n)
{
    pieces_put(out, n, function_pieces, sizeof function_pieces / sizeof *function_pieces);
}

void shared_macros_emit(Text *out, const SharedNeeds *n)
{
    pieces_put(out, n, macro_pieces, sizeof macro_pieces / sizeof *macro_pieces);
}
