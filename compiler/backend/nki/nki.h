/* SPDX-License-Identifier: Apache-2.0 */
/* The NKI back end. A kernel of form LEGAL is a list of tile statements, and of loops of
 * literal bounds around them, each of which is one instruction of the device; `instr_decode`
 * says which. Spaces: argument and workspace are HBM, tile is SBUF, acc is PSUM. A buffer on
 * chip is [partitions <= 128, elements]; one that is allocated in a loop is a new tile in each
 * iteration. The first matmul of a group of sums `begins`, and overwrites what is
 * there, as a reduction does. A map of a function may add its rows up. A kernel for two cores is a loop over them: cores.h. */
#ifndef BACKEND_NKI_NKI_H
#define BACKEND_NKI_NKI_H

#include "tile/tile.h"

#define NKI_PARTITIONS TILE_ROWS
#define NKI_SHORT_RUN                                                                          \
    512 /* bytes: a shorter contiguous run in HBM is charged as one of this length */
#define NKI_SLAB                                                                               \
    65536 /* bytes of a partition, of a load of which only every n-th element is used at a time */
#define NKI_F32_PASSES   4   /* of the Tensor engine for an f32 operand */
#define NKI_STATIONARY   128 /* free size of a stationary tile */
#define NKI_PSUM_BANK    2048
#define NKI_PSUM_BANKS   8
#define NKI_INSTRUCTIONS 20000
/* DMA descriptors of a program, which the runtime may write into a queue before the program starts: a queue of the public Neuron
 * driver holds 2^24 of 16 bytes, less 256 bytes for its alignment (rule D11). */
#define NKI_DESCRIPTORS  (((int64_t)1 << 24) - 16)
#define NKI_TENSOR_BYTES ((int64_t)1 << 32) /* a tensor in HBM has less */

/* What differs between generations, as numbers; rates in Gcycles/s and GB/s. The emulator has the same table
 * (runtime/nki_emulator/machine.py), and says which of it was measured. */
typedef struct NkiChip {
    const char *target; /* its name */
    int gen;
    int64_t sbuf_bytes; /* usable per partition */
    double tensor_ghz, vector_ghz, scalar_ghz, gpsimd_ghz;
    double dma_gbps, dma_both_gbps; /* loads or stores alone, and together */
    double hbm_gbps, launch_us;
    double transpose_passes; /* of the Tensor engine, of f32 */
    double reciprocal;       /* cycles of the Vector engine for an element */
    Machine machine;
} NkiChip;

extern const NkiChip nki_chips[3]; /* chip.c */
/* The chip of a target of this folder, by name. */
const NkiChip *nki_chip(const char *target);

typedef enum InstrKind {
    INSTR_ALLOC, /* no instruction: the tile dst.buf begins */
    INSTR_DMA,
    INSTR_COPY,
    INSTR_MEMSET,
    INSTR_MATMUL,
    INSTR_TRANSPOSE,
    INSTR_ACTIVATION, /* fn(data * scale + bias); of OP_MUL: the square of the data */
    INSTR_SCALAR,     /* (data op0 operand0) op1 operand1 */
    INSTR_TENSOR,     /* a op b */
    INSTR_BOTH,       /* (data op0 operand0) op1 tensor */
    INSTR_PREDICATED, /* dst = predicate ? src : dst */
    INSTR_IOTA,       /* base + down * partition + steps of `along` with the element */
    INSTR_AFFINE,     /* dst = that op 0 ? a : value */
    INSTR_REDUCE,
    INSTR_SCAN /* along rows, b op what there is so far; of sums times a */
} InstrKind;

#define NKI_DIMS      TILE_DIMS
#define NKI_FREE_DIMS 4 /* of an operand on chip; most engines walk three */

/* Elements that an engine walks at equal steps. */
typedef struct FreeDim {
    int64_t step, n;
} FreeDim;

/* One operand. On chip: partitions [p, p+np), and of each `nf` elements from f on, which the dimensions of `free` walk, the last the
 * fastest: those of one position are left out, and neighbours that run on are one. A step of 0 reads an element again. In HBM: one slice per
 * dimension, or strides. Where it begins is a sum of variables of loops, `at`, and a number in the iteration at hand. */
typedef struct Operand {
    BufRef buf;
    bool on_chip;
    int64_t p, np, f, nf;
    uint32_t n_free;
    FreeDim free[NKI_FREE_DIMS];
    bool pattern; /* HBM: not a slice; an access pattern */
    int64_t offset;
    uint32_t n;                      /* pairs of a pattern, or dims of a slice */
    int64_t *start, *count, *stride; /* in HBM: in the instruction's `dims` */
    struct {
        Affine p, f, offset, *start;
    } at;
} Operand;

/* The second operand of a scalar operation: a number or a (P, 1) tile. */
typedef struct ScalarOperand {
    bool given, is_tile, reverse;
    double number;
    Operand tile;
    Op op;
} ScalarOperand;

typedef struct Instr {
    InstrKind kind;
    const Stmt *stmt;
    Operand dst, a, b;
    Op op;        /* activation, tensor operation or reduction */
    bool reverse; /* BOTH: operand1 op (..) */
    bool recip;   /* ACTIVATION: the reciprocal */
    ScalarOperand s0, s1;
    bool sums; /* ACTIVATION: its rows are added up as well, into `sum` */
    bool adds; /* to what is in `sum` */
    Operand sum;
    bool gathers;       /* DMA: rows of `a` at the positions that column `b` has */
    bool begins;        /* of a walk, MATMUL: overwrites what is in dst */
    uint32_t fold_from; /* REDUCE: the first dimension of `a` that is folded */
    double value;       /* memset; AFFINE: elsewhere */
    int64_t base, down;
    uint32_t n_along;
    FreeDim along[NKI_FREE_DIMS];
    Affine base_at;
    double scale;
    uint32_t place; /* number of the statement in the text, the same in each iteration */
    struct {
        int64_t start[NKI_DIMS], count[NKI_DIMS], stride[NKI_DIMS];
        Affine at[NKI_DIMS];
    } dims;             /* of the operand that is in HBM */
    const int64_t *env; /* of a walk: loop variables, by variable */
    int64_t times; /* of a walk in brief: iterations that are like this one, with it; else 1 */
} Instr;

/* The last element of a partition that the operand has, beside the first. */
static inline int64_t operand_reach(const Operand *o)
{
    int64_t reach = 0;
    for (uint32_t d = 0; d < o->n_free; d++) {
        reach += (o->free[d].n - 1) * o->free[d].step;
    }
    return reach;
}

/* Its n-th element, beside the first. */
static inline int64_t operand_element(const Operand *o, int64_t n)
{
    int64_t at = 0;
    for (uint32_t d = o->n_free; d-- > 0; n /= o->free[d].n) {
        at += n % o->free[d].n * o->free[d].step;
    }
    return at;
}

/* Do its elements follow each other? */
static inline bool operand_is_run(const Operand *o)
{
    return o->n_free == 0 || (o->n_free == 1 && o->free[0].step == 1);
}

/* Do the elements that it walks fastest follow each other? */
static inline bool operand_has_runs(const Operand *o)
{
    return o->n_free == 0 || o->free[o->n_free - 1].step == 1;
}

/* Do both walk their partitions in the same way? */
static inline bool operand_walks_alike(const Operand *x, const Operand *y)
{
    bool alike = x->n_free == y->n_free && x->np == y->np;
    for (uint32_t d = 0; d < x->n_free && alike; d++) {
        alike = x->free[d].n == y->free[d].n && x->free[d].step == y->free[d].step;
    }
    return alike;
}

/* Does it read `a`; and `b`? */
static inline bool instr_reads(const Instr *i)
{
    return i->kind != INSTR_MEMSET && i->kind != INSTR_IOTA;
}

static inline bool instr_reads_two(const Instr *i)
{
    return i->kind == INSTR_MATMUL || i->kind == INSTR_TENSOR || i->kind == INSTR_BOTH ||
           i->kind == INSTR_PREDICATED || i->kind == INSTR_SCAN || i->gathers;
}

/* Does it multiply a tile by itself? Either engine may. */
bool instr_squares(const Instr *i);

/* Which instruction a statement of a LEGAL kernel is, with loop variables at the values in `env` (by variable). False: none; *why is then a
 * phrase. */
bool instr_decode(const Kernel *k, const Stmt *s, const int64_t *env, Instr *out,
                  const char **why);
/* May it add up the rows that it makes? */
bool instr_may_sum(const Instr *i);
/* Do operands move over partitions from one iteration to another? Then which instruction it is may depend on these. */
bool instr_moves_partitions(const Instr *i);
/* Where an operand begins, as a sum of variables of loops. */
typedef struct InstrMove {
    int64_t *to; /* in the instruction */
    Affine by;
} InstrMove;
#define INSTR_MOVES (2 * 6 + NKI_DIMS + 1)
/* What has another value in another iteration, at most INSTR_MOVES; returns how many. */
uint32_t instr_moves(Instr *i, InstrMove *out);

/* The first value of a loop that passes a test, which is `around` without it: the larger one, or a walk refuses the block. */
Affine instr_least(Affine around, const Guard *g);

/* Calls `visit` for every instruction in program order, loops unrolled, and where tiles begin (ALLOC); stops when it returns false. */
typedef bool (*InstrVisit)(void *user, const Instr *i);
bool instr_walk(const Kernel *k, InstrVisit visit, void *user, const Stmt **bad,
                const char **why);
/* The same in brief: of a loop whose iterations differ in positions alone (no guard asks which it is, and its PSUM tiles begin in
 * it) the first two and the last. */
bool instr_walk_brief(const Kernel *k, InstrVisit visit, void *user, const Stmt **bad,
                      const char **why);

/* The same as the first of these, of another core (cores.h): the walks above are those of the first core. */
bool instr_walk_core(const Kernel *k, int64_t core, InstrVisit visit, void *user,
                     const Stmt **bad, const char **why);
/* Of all cores, one after the other; and that in brief. */
bool instr_walk_all(const Kernel *k, InstrVisit visit, void *user, const Stmt **bad,
                    const char **why);
bool instr_walk_cores(const Kernel *k, InstrVisit visit, void *user, const Stmt **bad,
                      const char **why);

/* ---- leaf.c: the time of a leaf of a nest ---- */
struct NestLeaf;
struct Engines;
void nki_leaf(const void *chip, const struct NestLeaf *, struct Engines *out);

/* What has queues of its own. */
typedef enum NkiEngine {
    NKI_TENSOR,
    NKI_VECTOR,
    NKI_SCALAR,
    NKI_GPSIMD,
    NKI_DMA,
    NKI_ENGINES
} NkiEngine;
extern const char *const nki_engine_names[NKI_ENGINES];

/* What a kernel does and costs (on one core, where it is for two), from its statements alone. */
typedef struct NkiCost {
    int64_t instructions, matmul_macs;
    int64_t cycles[4]; /* tensor, vector, scalar, gpsimd */
    int64_t read_bytes, written_bytes, charged_bytes, descriptors, transfers;
    int64_t compulsory_bytes;
    int64_t sbuf_peak; /* bytes per partition */
    int64_t psum_peak; /* banks */
    double busy_us[5]; /* as cycles, then dma */
    int bound_by;
    double predicted_us; /* nki_measure alone */
} NkiCost;

bool nki_cost(const Kernel *k, const NkiChip *chip, NkiCost *out);
/* The same, and how long the kernel takes, as the emulator's schedule has it (predict.c). */
bool nki_measure(const Kernel *k, const NkiChip *chip, NkiCost *out);
/* Which engine runs a copy from PSUM or SBUF, or a sum of rows: the one with less to do when its statement is
 * first reached, all that statements before it do counted; in a loop, of what that does, all that has its engine and what was chosen
 * before it. Kept by printer and cost alike. */
typedef struct NkiBalance {
    int64_t vector, scalar; /* of statements in no loop */
    uint8_t *chosen;        /* [instr_places]: 0 not yet, 1 vector or no choice, 2 scalar */
    int64_t *trips;         /* [instr_places] */
    uint32_t *loop;         /* [instr_places] the loop around all others, from 1; 0: none */
    struct {
        int64_t vector, scalar;
    } * of_loop;
} NkiBalance;
uint32_t instr_places(const Kernel *k); /* statements of the text */
NkiBalance nki_balance(const Kernel *k, const NkiChip *chip);
/* nki_cost with a balance that is used on. */
bool nki_count(const Kernel *k, const NkiChip *chip, NkiBalance *balance, NkiCost *out);
bool nki_on_scalar(NkiBalance *b, const Kernel *k, const NkiChip *chip, const Instr *i);
int nki_instr_cycles(const Kernel *k, const NkiChip *chip, const Instr *i, bool scalar,
                     int64_t *cycles);
/* Is it a reciprocal of few columns, which the Vector engine takes, so that the Scalar engine's table stays? */
bool nki_vector_reciprocal(const Instr *i);
/* What an activation waits for whose function is not in the Scalar engine's table: *table, 0 at first. */
double nki_table_us(int *table, const Instr *i);
double nki_dma_charge(const Kernel *k, const Instr *i, int64_t *bytes, int64_t *descriptors);

/* A PSUM buffer of more than a bank is a list of tiles, each a bank, that are used one at a
 * time: elements of one; 0: the buffer is one tile. */
int64_t nki_bank(const Kernel *k, BufRef buf);

const char *nki_dtype(DType t);
/* ---- walk.c ---- */
static inline bool nki_on_chip(const Kernel *k, BufRef b)
{
    return k->bufs.at[b].space == SPACE_TILE || k->bufs.at[b].space == SPACE_ACC;
}
/* The value without its casts. */
static inline const Expr *nki_bare(const Expr *e)
{
    while (e->kind == EXPR_OP && e->op == OP_CAST) {
        e = e->arg[0];
    }
    return e;
}

/* A kernel that takes more instructions than a device program may have (NKI_INSTRUCTIONS, or
 * what the user says) is a list of blocks, its parts, after the allocations of what they hand
 * to each other, which is in HBM. */
struct Kernel *nki_legalise(const Target *, Ctx *, Arena *, const Kernel *);
/* TILED to TILED, before all other passes (gathers.c). */
struct Kernel *nki_gathers(const Target *, Ctx *, Arena *, const Kernel *);
/* How many parts a kernel has: 1, or as many as there are blocks in that list. */
uint32_t nki_parts(const Kernel *k);
/* The same instructions in loops; null where that cannot be. */
struct Kernel *nki_roll(Ctx *, Arena *, const Kernel *, const NkiChip *, uint32_t parts);
bool nki_verify(const Target *, Ctx *, const Kernel *);
bool nki_emit(const Target *, Ctx *, const KernelModule *, const EmitOptions *, OutputSet *);
/* `note`: a line for the head, or null. */
void nki_print_kernel(const Kernel *k, const NkiCost *cost, const EmitOptions *o,
                      const char *note, Text *out);
struct NkiPart;      /* part.h */
#define NKI_FORMAT 1 /* of manifests: grows when a member goes or means something else */
void nki_print_build_script(Text *out); /* script.c */
/* table.c: the C table of the forms of a module, whose list is called `list`_forms. */
const char *nki_table_name(Arena *arena, const char *source, const char *target);
void nki_print_table(Ctx *, const KernelModule *m, const char *list, Text *out);
/* plan.c: heads of modules; `(2, 3)`; asserts about arguments and cores */
void nki_print_plan(const Kernel *k, const NkiCost *cost, Text *out);
void nki_print_shape(const Kernel *k, BufRef buf, Text *out);
void nki_print_asserts(const Kernel *k, Text *out);
void nki_print_ranges(const Kernel *k, Text *out);
const char *nki_function(const Kernel *k);
const char *nki_param(const Kernel *k, BufRef buf);
/* The shape of a buffer in the text: an argument's as the caller has it. */
uint32_t nki_shape(const Kernel *k, BufRef buf, const Dim **extent);
bool nki_is_collapsed(const Kernel *k, BufRef buf);
/* What stores call a buffer: an inout argument is a result of another name. */
const char *nki_result(const Kernel *k, BufRef buf);
/* Does the printed kernel begin with a copy of an inout argument to that result? Not where it
 * writes all of it, and each statement reads either what came in or what was written; those
 * that read what came in are then set in `came_in`, [instr_places] or null. */
bool nki_copied(const Kernel *k, BufRef buf, bool *came_in);

#endif
