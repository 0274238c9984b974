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

/* One level of memory, seen from the level inside of it. */
typedef struct MemoryLevel {
    const char *name; /* the machine's own word: "memory", "L2", "SBUF" */
    int64_t capacity; /* bytes; 0: no limit */
    /* Of all but the innermost: */
    double bytes_per_second; /* from it to the level inside of it */
    int64_t granule; /* bytes whose time every run of contiguous ones costs beside its own */
} MemoryLevel;

#define MACHINE_LEVELS 4

/* What the inside of one contraction is cut into: a register tile, over a packed block of the
 * columns' operand. */
typedef struct ContractionTiles {
    uint32_t types; /* that have register tiles: bit 1 << DType of what is added up; 0: none */
    int64_t line;   /* bytes of a register tile's row: columns; an eighth of it is the least */
    int64_t bytes;  /* of a register tile, at most */
    int64_t rows;   /* at most */
    int64_t sum, columns; /* positions of a packed block */
    int64_t panels;       /* bytes of one of columns; more than `columns` of them where sums are
                             short */
    int64_t shared_panels; /* of one that threads fill together, and then share rows */
    int64_t block;         /* bytes of one of rows */
    int64_t gathered;      /* bytes of the results of a block, where tiles cross labels */
    int64_t direct;        /* elements of an operand up to which nothing is packed */
} ContractionTiles;

struct NestLeaf; /* nest/engines.h */
struct Engines;

/* The same of an engine for matrices: labels of a role share a tile, and both operands are of one type. */
typedef struct SystolicTiles {
    int64_t
        live; /* register tiles that live at once: the sum is cut inside of them, in steps of ContractionTiles.sum */
    int64_t
        live_busy; /* ... where the operands are turned, or tiles do not leave as they are */
    int64_t live_rows; /* tiles of rows of these, at most */
    int64_t packed;    /* bytes of packed operands, at most */
    int64_t
        slab; /* bytes of rows that are loaded together, though few positions of each are used at a time */
    /* What one execution of a leaf keeps each engine busy (nest/engines.h), by the back end's own table of times, `chip`. */
    const void *chip;
    void (*leaf)(const void *chip, const struct NestLeaf *, struct Engines *out);
} SystolicTiles;

/* What contractions run on: vectors behind caches, cut as Goto and van de Geijn do, or an engine whose operands are placed
 * by hand. */
typedef enum MachineKind { MACHINE_CACHES, MACHINE_SYSTOLIC } MachineKind;

/* Seconds of one element (f32; wider ones in proportion), of one execution. */
typedef struct MachineTimes {
    double multiply_add; /* in a full register tile */
    double
        dot; /* the same of integers of 8 bits, by instructions for dot products; of 16 bits twice that; 0: there are none */
    double pack,
        pack_line;  /* into a panel along lines of memory, and one line for each element */
    double convert; /* beside that, of one that has another type */
    double row;     /* a run of elements of a panel or a register tile, however short */
    double loop;    /* and of a plain innermost loop, */
    double fold;    /* beside that, where it leaves a vector that is folded into one number */
    double join, join_edge;  /* of a register tile into the result, once for each block of k:
                               where its columns are full, and where they are not */
    double op, scalar_op;    /* an addition, as vectors and one by one */
    double divide, function; /* a division or square root; a function of the libraries */
    double exp;              /* and others that run as vectors: OpLanes */
    double tile;             /* a register tile, whatever its depth */
    double
        start; /* of a call, before the first operands are there and after the last result was made */
    double statement,
        product; /* an elementwise statement or a contraction of operands in place, one that packs, whatever its
                                  size */
    double
        piece; /* work that is worth a thread of its own; 0: loops need no worth to be parallel */
    double region; /* threads begin to share a loop, and all have ended */
} MachineTimes;

/* Multiply-adds in whose time an element of a statement that is no product comes from memory and goes there, where threads are asked
 * whether they are worth it. */
#define THREADS_ELEMENT 16.0

/* A machine as numbers. */
typedef struct Machine {
    uint32_t n_levels;
    MemoryLevel level[MACHINE_LEVELS]; /* outermost first */
    uint32_t tile_level;               /* the level that holds SPACE_TILE: blocks of the nest */
    bool reads_before_writing;         /* does what is written to a level come from it first? */
    MachineKind kind;
    ContractionTiles tile;
    SystolicTiles systolic; /* of that kind */
    MachineTimes time;
    bool complex_numbers; /* has it any? else kernels compute with pairs of reals */
    bool
        gathers; /* does it read at positions that are values? else that is a product with rows of one 1 */
    bool row_gathers; /* ...: but rows of an argument, at positions that another one has */
    bool
        functions; /* has it all functions of the language? else some are written with others */
    bool doubles;  /* has it f64? else f64 results are sums of f32 terms, kept as two f32 */
    bool open_extents; /* may extents stay open until run time? */
    bool pairs;        /* may a loop begin where one around it is? */
    bool
        mirrors; /* is a value worth storing at the mirrored place too, rather than computed there? */
    bool overwrites; /* may a value in memory be overwritten by another? */
    bool
        adds; /* may a contraction begin with what another one, or a caller, has left in memory? */
    bool narrow;  /* do contractions convert operands of narrower types? */
    bool alike;   /* do they take operands of one type of 16 bits, and add them up in f32? */
    bool domains; /* are its functions wrong, without a word, outside of some range? */
    bool masks;  /* is 0 times what a condition leaves out 0, whatever that is? (docs say so) */
    bool online; /* has it infinities, which maxima over loops begin with? */
    int64_t max_instructions; /* of one device program; longer kernels are cut; 0: no limit */
    int64_t threads; /* that nests are made for, of those that a caller may give; 0: none do */
    int64_t cores;   /* physical cores that run one program together; */
    int64_t cores_most; /* as many as can; 0: a program has one */
} Machine;

/* Capacity of the level that holds blocks; 0: no limit. */
static inline int64_t machine_tile_capacity(const Machine *m)
{
    return m->n_levels == 0 ? 0 : m->level[m->tile_level].capacity;
}

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
    int64_t workspace; /* bytes that a caller gives it, for typical extents; -1: none are asked
                          for */
    /* Of a call of what was printed, by the target's own model; 0: it has none. `moved`: bytes to and from memory. */
    double seconds, arithmetic, moved;
    const char *binds; /* what takes most of it */
} TextLength;

typedef struct OutputSet {
    Arena *arena;
    VEC(OutputFile) files;
    VEC(TextLength) lengths; /* by kernel */
} OutputSet;

/* Counts `text` to the kernel's; called by back ends for each piece of it that they print. */
void output_count(OutputSet *set, const char *kernel, Str text);
void output_workspace(OutputSet *set, const char *kernel, int64_t bytes);
/* What a call of a program takes by the target's model: `arithmetic`, its busiest engine; `moved`, bytes to and from memory. Programs of
 * one kernel are added up. */
void output_predict(OutputSet *set, const char *kernel, double seconds, double arithmetic,
                    double moved, const char *binds);
/* Null: nothing was printed of it. */
const TextLength *output_length(const OutputSet *set, const char *kernel);

/* What the driver tells a back end beside the kernels. */
typedef struct EmitOptions {
    const char *source_name;
    const char *header_name; /* how the .c includes its .h, or null: one file */
    const char *tool_version;
    const char *prefix; /* before all exported names; null: none */
    const char
        *wrapper; /* the name of one of the target's, to be printed instead; null: none */
    const char *
        shared; /* the header of what files of one build share; null: the file has all itself */
    bool profile; /* C with a counter for each statement; for one thread */
    bool
        warn_names; /* of kernels that are not called as in the program: somebody is to link to them */
} EmitOptions;

/* A step on the way from a TILED kernel to the one that is printed. The first passes of a target may rewrite TILED kernels; the next one takes
 * such a kernel and gives a LEGAL one, and the others take and give LEGAL ones. What each gives is verified, and can be printed, read back and
 * run. */
typedef struct Target Target;
typedef struct TargetPass {
    const char *name;
    const char *summary;
    bool optional; /* may be left out: results stay right */
    /* A new kernel, the old one is not changed; or the old one, where there is nothing to do. Null: reported as unsupported, with the construct's span. */
    struct Kernel *(*run)(const Target *, Ctx *, Arena *, const struct Kernel *);
    bool tiled; /* gives TILED kernels */
} TargetPass;

/* What callers in another language use: a file of its own (--emit=NAME). */
typedef struct TargetWrapper {
    const char *name, *suffix;
} TargetWrapper;

/* Several targets may share functions (one back end, several machines), so each is handed the target it works for. */
struct Target {
    const char *name;    /* as in --target= */
    const char *summary; /* for --help */
    const char *suffix;  /* of its one file, ".c"; null: it writes a folder of files */
    const Machine *machine;
    bool ranks; /* kernels on ranks: local kernels and a table of steps are emitted */
    /* What kernel `name` is called in the emitted text, where users link to it. Null: as it is.
     */
    const char *(*symbol)(Arena *, const char *name);
    const TargetWrapper *wrappers; /* ends with a null name; null: none */
    const TargetPass *passes;      /* in the order in which they run; ends with a null name */
    /* The target's own rules on a LEGAL kernel, beyond loop_verify. */
    bool (*verify)(const Target *, Ctx *, const struct Kernel *);
    /* LEGAL kernels -> files in memory. */
    bool (*emit)(const Target *, Ctx *, const struct KernelModule *, const EmitOptions *,
                 OutputSet *);
};

#endif
