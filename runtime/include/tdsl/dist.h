/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels on ranks: walks the table of a kernel with `shard` (NAME_dist of its header) over a communicator. All ranks call
 * tdsl_dist_call with the same kernel, mesh and open dimensions, each with its own blocks of the arrays.
 *
 * A communicator is a few functions that move bytes; tdsl_dist_threads makes one of threads, in this process. Results have the
 * same bits on every mesh and with every communicator: sums over ranks are added here, leaf by leaf in a fixed tree. */
#ifndef TDSL_DIST_H
#define TDSL_DIST_H

#include "tdsl/tdsl.h"

#include "tdsl/dist_abi.h"

TDSL_BEGIN

typedef struct tdsl_dist_bytes {
    void *data;
    int64_t bytes;
} tdsl_dist_bytes;

/* What a rank has of its communicator. Both functions are called by all ranks, in the same order. */
typedef struct tdsl_comm {
    void *state;
    int32_t rank, size;
    /* Sends send[r] to each rank r and receives receive[r] from it, [size] each; sizes agree. Nothing goes to the rank itself. */
    tdsl_status (*exchange)(void *state, const tdsl_dist_bytes *send,
                            const tdsl_dist_bytes *receive);
    /* Each of the numbers becomes the least that a rank has. */
    tdsl_status (*agree)(void *state, int64_t *numbers, int32_t n);
} tdsl_comm;

/* What rank `rank` of the mesh has of dimension `dim` of argument `arg`. */
TDSL_API tdsl_range tdsl_dist_block(const tdsl_dist_info *dist, const tdsl_mesh *mesh,
                                    int32_t rank, const int64_t *dims, int32_t arg,
                                    int32_t dim);

/* What the rank has of cut number `cut` of the table. */
TDSL_API tdsl_range tdsl_dist_part(const tdsl_dist_info *dist, const tdsl_mesh *mesh,
                                   int32_t rank, const int64_t *dims, int32_t cut);

/* What a call needs and moves, of one rank. */
typedef struct tdsl_dist_count {
    uint64_t arguments; /* bytes of its arrays */
    uint64_t
        workspace; /* bytes beside them: values of the kernel, messages, workspace of local kernels */
    uint64_t received; /* bytes from other ranks */
    uint64_t sent;
    uint64_t calls;  /* of local kernels */
    uint64_t pairs;  /* of these, for pairs of leaves */
    uint64_t slices; /* of these, for leaves of slices */
    double moving,
        computing; /* seconds of a call: bytes from and to others, waiting for them included; local kernels, and their leaves added up */
} tdsl_dist_count;

/* What time is predicted by. */
typedef struct tdsl_dist_machine {
    double rate;      /* multiply-adds of a rank in a second */
    double bandwidth; /* bytes from other ranks */
    double latency;   /* seconds of a message */
    double memory;    /* bytes of its own memory, of leaves that are added up */
    /* Multiply-adds of a call of a local kernel; null: as the kernel's table says. */
    double (*work)(void *user, const tdsl_kernel_info *kernel, const int64_t *dims);
    void *user;
} tdsl_dist_machine;

/* A node of a cluster: 2.5 Tflop/s, 12.5 GB/s. */
#define TDSL_DIST_NODE                                                                         \
    {                                                                                          \
        1.25e12, 12.5e9, 2e-6, 1e11, 0, 0                                                      \
    }

typedef struct tdsl_dist_choice {
    tdsl_grid grid;
    double moving, computing; /* seconds predicted of the rank that has most */
} tdsl_dist_choice;

/* The grids of least time for this mesh of ranks, the best first: `most` of them at most, *n. With `limit` (0: none) only those of which a rank
 * needs no more bytes, arguments included, or if there is none the one of least bytes. `machine` null: TDSL_DIST_NODE. */
TDSL_API TDSL_NODISCARD tdsl_status tdsl_dist_choose(
    const tdsl_dist_info *dist, const tdsl_mesh *mesh, const int64_t *dims, uint64_t limit,
    const tdsl_dist_machine *machine, int32_t most, tdsl_dist_choice *out, int32_t *n);

/* What is predicted of the grid of the mesh. */
TDSL_API TDSL_NODISCARD tdsl_status tdsl_dist_predict(const tdsl_dist_info *dist,
                                                      const tdsl_mesh *mesh,
                                                      const int64_t *dims,
                                                      const tdsl_dist_machine *machine,
                                                      tdsl_dist_choice *out);

/* With one thread in a local kernel. TDSL_E_SHAPE, TDSL_E_OVERFLOW: of these dims; TDSL_E_ARGUMENT: of this mesh. */
TDSL_API TDSL_NODISCARD tdsl_status tdsl_dist_measure(const tdsl_dist_info *dist,
                                                      const tdsl_mesh *mesh, int32_t rank,
                                                      const int64_t *dims,
                                                      tdsl_dist_count *count);

/* A call of a local kernel for one leaf, whose inputs and results do not depend on how many ranks there are: what a store keeps. */
typedef struct tdsl_dist_leaf {
    int32_t step;           /* of the table */
    int64_t number, leaves; /* of so many, of all ranks */
    int32_t n_inputs, n_results;
    const tdsl_dist_bytes *inputs, *results;
} tdsl_dist_leaf;

/* Keeps results of leaves for a later call, on as many ranks as that has. Each rank has its own; both functions are called between `tdsl_dist_call` and its
 * return, by its thread. A failure is that of a local kernel. tdsl/checkpoint.h has one that keeps them in a folder. */
typedef struct tdsl_dist_store {
    void *state;
    /* Sets *found to 1 and fills the results, if the leaf is there; else to 0. */
    tdsl_status (*find)(void *state, const tdsl_dist_leaf *leaf, int32_t *found);
    tdsl_status (*keep)(void *state, const tdsl_dist_leaf *leaf);
} tdsl_dist_store;

/* `dims` are the open dimensions of the kernel, `args` one pointer for each of its arguments to what this rank has. `workspace` has
 * `bytes`, as many as tdsl_dist_measure says, and up to 63 more where it is not aligned to 64; null: it is allocated. `threads`: of each
 * call of a local kernel, as many as the workspace has room for; null: the caller's alone. `count`, which may be null, is what was moved. A failure of one rank before anything has moved is the failure of all: its own status there, TDSL_E_PEER on the
 * others, whose `bad_rank` it is. */
typedef struct tdsl_dist_options {
    void *workspace;
    size_t bytes;
    const tdsl_threads *threads;
    tdsl_status before; /* what this rank has found to be wrong already: all are told */
    int32_t bad_rank;   /* set after a failure */
    const tdsl_dist_store *store; /* null: each leaf is computed */
} tdsl_dist_options;

TDSL_API TDSL_NODISCARD tdsl_status tdsl_dist_call(
    const tdsl_comm *comm, const tdsl_dist_info *dist, const tdsl_mesh *mesh,
    const int64_t *dims, void *const *args, tdsl_dist_options *options, tdsl_dist_count *count);

/* After TDSL_E_TIMEOUT the communicator may still read arguments, and read and write the workspace, until the program ends MPI. */

/* For a rank that has failed before it could call: stands in the place of tdsl_dist_call, so that the others hear of it. */
TDSL_API void tdsl_dist_refuse(const tdsl_comm *comm, tdsl_status status);

/* Runs `rank` on so many threads, each with its communicator; returns after the last has, with the least status. A rank that returns while others
 * wait for it ends their waiting with TDSL_E_PEER. */
TDSL_API tdsl_status tdsl_dist_threads(int32_t ranks,
                                       tdsl_status (*rank)(void *user, const tdsl_comm *comm),
                                       void *user);

TDSL_END

#endif
