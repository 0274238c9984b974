/* SPDX-License-Identifier: Apache-2.0 */
/* What a target is, and no target's name. The middle of the compiler reads `Machine` and calls
 * the functions of `Target`; a back end is a folder that fills them in. */
#ifndef TARGET_TARGET_H
#define TARGET_TARGET_H

#include "base/ctx.h"
#include "op/types.h"

/* Stands in the first comment of every generated file that can hold one: docs/generated-code.md
 * says it in full. */
#define GENERATED_TERMS                                                                        \
    "Its terms of use are yours: TDSL's licence asks nothing of generated files."

/* Where a buffer of a kernel lives. The words are the middle's; a back end says what they are
 * on its machine (C: caller's arrays, workspace, cache-sized block of the workspace, registers;
 * Trainium: HBM, HBM, SBUF, PSUM). */
typedef enum Space {
    SPACE_ARGUMENT,  /* the caller's memory: parameters and results */
    SPACE_WORKSPACE, /* memory, for values that outlive their group */
    SPACE_TILE,      /* on chip, for blocks inside a group's loops */
    SPACE_ACC,       /* accumulators */
    SPACE_COUNT
} Space;

const char *space_name(Space s); /* "arg", "workspace", "tile", "acc" */
bool space_from_name(Str name, Space *out);

typedef struct SpaceInfo {
    const char *name;   /* the machine's own word: "L2", "SBUF" */
    int64_t capacity;   /* bytes; 0: no limit */
    int64_t partitions; /* size of a partition dimension (128), or 0: flat memory */
    int64_t max_free;   /* bytes per partition of one tile, or 0 */
} SpaceInfo;

/* A machine as numbers. Times are in seconds, rates per second; 0 means unknown or unlimited.
 */
typedef struct Machine {
    SpaceInfo space[SPACE_COUNT];
    bool open_extents;    /* may extents stay open until run time? */
    uint32_t dtypes;      /* bit per DType that arguments may have */
    int64_t vector_bytes; /* width of a vector register the schedule plans for, 0: none */
    int64_t tile_m, tile_n,
        tile_k; /* block of one contraction step: 128, 512, 128 on a systolic array */
    int64_t max_instructions; /* of one device program; longer kernels are cut; 0: no limit */
    int64_t acc_tiles;        /* accumulator tiles of tile_m x tile_n at once */
    double multiply_adds_per_second;
    double bytes_per_second; /* main memory */
} Machine;

struct Kernel; /* loop/loop.h */
struct KernelModule;
struct OutputSet;

/* One file a back end wants written; the driver writes all or none. */
typedef struct OutputFile {
    const char
        *suffix;      /* what kind: ".c", ".h", ".py", ".json": the driver maps it to a path */
    const char *name; /* base name without suffix, or null: the compilation's own */
    Str text;
} OutputFile;

/* How much text a kernel became: its own functions or programs, without what kernels share. */
typedef struct TextLength {
    const char *kernel;
    int64_t bytes, lines;
} TextLength;

typedef struct OutputSet {
    Arena *arena;
    VEC(OutputFile) files;
    VEC(TextLength) lengths; /* by kernel */
} OutputSet;

/* Counts `text` to the kernel's; called by back ends for each piece of it that they print. */
void output_count(OutputSet *set, const char *kernel, Str text);
/* Null: nothing was printed of it. */
const TextLength *output_length(const OutputSet *set, const char *kernel);

/* What the driver tells a back end beside the kernels. */
typedef struct EmitOptions {
    const char *source_name;
    const char *header_name; /* how the .c includes its .h, or null: one file */
    const char *tool_version;
} EmitOptions;

/* Several targets may share functions (one back end, several machines), so each is handed the target it works for. */
typedef struct Target Target;
struct Target {
    const char *name;    /* as in --target= */
    const char *summary; /* for --help */
    const char *suffix;  /* of its one file, ".c"; null: it writes a folder of files */
    const Machine *machine;
    /* What kernel `name` is called in the emitted text, where users link to it. Null: as it is.
     */
    const char *(*symbol)(Arena *, const char *name);
    /* TILED -> LEGAL. Null result: reported as unsupported, with the construct's span. */
    struct Kernel *(*legalise)(const Target *, Ctx *, Arena *, const struct Kernel *);
    /* The target's own rules on a LEGAL kernel, beyond loop_verify. */
    bool (*verify)(const Target *, Ctx *, const struct Kernel *);
    /* LEGAL kernels -> files in memory. */
    bool (*emit)(const Target *, Ctx *, const struct KernelModule *, const EmitOptions *,
                 OutputSet *);
};

#endif
