/* SPDX-License-Identifier: Apache-2.0 */
/* Contraction order. A problem is a list of operands (label lists), an output and an extent for each label;
 * its answer is a binary tree of contractions and, under a memory limit, the labels that become outer loops.
 * The core knows nothing of programs, machines or files: the graph pass, the command line and the
 * benchmark all come through this header.
 *
 *   problem --prepare--> networks (connected, reduced) --strategy--> trees --join--> tree, slices --account--> costs
 *
 * What is free of charge and what counts:
 *   size-1 labels are dropped, a label repeated inside one operand is collapsed, and a label that occurs in one
 *   operand only and not in the output is summed there: all free, before the first step. A step that contracts
 *   A and B costs the product of the extents of all labels of A and B (its multiply-adds) and writes the product of the
 *   extents of those that are still needed. A sliced label has extent 1 inside a slice; totals are over all slices.
 *
 * Searches count steps, never seconds: the answer depends on the problem, the options and the seed only. */
#ifndef PATH_PATH_H
#define PATH_PATH_H

#include <signal.h>

#include "base/ctx.h"

typedef struct PathLabels {
    const uint32_t *at;
    uint32_t n;
} PathLabels;

typedef struct PathProblem {
    uint32_t n_operands;
    const PathLabels *operands;
    PathLabels output;
    uint32_t n_labels;
    const int64_t *sizes;     /* by label, 0 or more; typical sizes for symbolic extents */
    const char *const *names; /* by label; null: labels are numbers */
    bool typical;             /* some sizes are only typical: the report says so */
    const uint32_t *
        place; /* by operand: which of the n_given of the equation it is; the others are scalars, factors of
                              the result. Null: all of them, in their order */
    uint32_t n_given;
    const char *equation; /* as it was written; null: it is made from the labels */
} PathProblem;

/* Operands are tensors 0 .. n_leaves - 1, step k makes tensor n_leaves + k, each tensor is used once ("SSA"). */
typedef struct PathStep {
    uint32_t a, b;
} PathStep;

typedef struct PathTree {
    uint32_t n_leaves;
    uint32_t n_steps; /* n_leaves - 1, or 0 */
    PathStep *steps;
} PathTree;

typedef enum PathObjective {
    PATH_FLOPS,   /* multiply-adds */
    PATH_SIZE,    /* the largest tensor; among equals, multiply-adds */
    PATH_WRITE,   /* elements written */
    PATH_COMBO,   /* multiply-adds + factor * elements written */
    PATH_ROOFLINE /* per step the larger of multiply-adds and factor * (elements read and
                     written) */
} PathObjective;

typedef struct PathProgress {
    const char *strategy;
    double log10_cost; /* best so far, of the network at hand, in the unit of the objective */
    double log2_largest;
    uint64_t steps_done, steps_planned;
} PathProgress;

typedef struct PathOptions {
    PathObjective objective;
    double factor;        /* of combo and roofline, above 0; 0: 64 */
    int64_t memory_limit; /* elements of the largest tensor within one slice; 0: none */
    const char *search;   /* a name of the strategy table; null: "auto" */
    uint64_t seed;
    uint32_t effort; /* budget of the iterative searches; 0: the first plan only, 1: default */
    bool portable;   /* without the processor's special instructions: the same numbers */
    const volatile sig_atomic_t
        *interrupt; /* non-null and non-zero: stop soon, keep the best */
    void (*progress)(void *user, const PathProgress *now);
    void *user;
} PathOptions;

/* Exact, by big integers: decimal digits without sign or leading zeros. */
typedef struct PathCosts {
    const char *multiply_adds; /* over all slices */
    const char *written;       /* elements of all results, over all slices */
    const char *largest;       /* elements, within one slice, inputs included */
    const char
        *peak; /* most elements alive at once within one slice, in the order of the steps */
    const char *slices;
    const char *naive; /* multiply-adds of one loop nest over all labels */
    double log10_multiply_adds, log2_largest, log2_written,
        log2_peak; /* 0 where the count is 0 */
} PathCosts;

typedef struct PathResult {
    PathTree tree;
    uint32_t *sliced; /* labels of the problem, ascending */
    uint32_t n_sliced;
    const char *strategy; /* the row that found the tree (of the costliest network) */
    bool proved;          /* optimal for the objective, outer products allowed */
    bool interrupted;
    PathCosts costs;
} PathResult;

typedef struct Search Search; /* path/search.h: what a strategy is given */
typedef struct Net Net;       /* path/net.h: a prepared, connected network */

/* A strategy leaves net->n - 1 steps in `out` and returns whether it found a tree. */
typedef struct PathStrategy {
    const char *name;
    const char *summary;
    bool (*search)(Search *s, const Net *net, PathStep *out);
} PathStrategy;

extern const PathStrategy path_strategies[];
extern const uint32_t path_strategy_count;
const PathStrategy *path_strategy_find(const char *name); /* null: none */

/* False after a diagnostic: an unknown search, or one for fewer operands. */
bool path_search(const PathProblem *p, const PathOptions *o, Ctx *ctx, PathResult *out);

/* A decision from outside instead of a search: `tree` and `sliced` are checked against the problem (and the limit of
 * the options), then accounted for. False after a diagnostic. */
bool path_accept(const PathProblem *p, const PathOptions *o, PathTree tree, PathLabels sliced,
                 Ctx *ctx, PathResult *out);

/* "(0,1)(0,1)", also "[(0, 1), (0, 1)]" and NumPy's "['einsum_path', (0, 1), (0, 1)]": opt_einsum's linear convention. A last step of more than two positions
 * is contracted from the left. False after a diagnostic. */
bool path_parse_linear(const char *text, uint32_t n_operands, Ctx *ctx, PathTree *out);
/* The same; messages begin with `who`. */
bool path_parse_from(const char *text, const char *who, uint32_t n_operands, Ctx *ctx,
                     PathTree *out);
/* The linear positions of each step, smaller first; 2 * n_steps numbers. O(n log n). */
uint32_t *path_linear(const PathTree *t, Arena *arena);
/* Each tensor used once, before it exists never. */
bool path_tree_valid(const PathTree *t, uint32_t n_operands);

/* Sorts the steps for the least peak (optimal over all orders of this tree), renumbering results. */
void path_order_for_peak(const PathProblem *p, PathTree *t, PathLabels sliced, Arena *arena);
/* Exact costs of a tree. */
void path_account(const PathProblem *p, const PathTree *t, PathLabels sliced, Arena *arena,
                  PathCosts *out);

/* A tensor of a tree: an operand or what a step makes, within one slice. */
typedef struct PathTensor {
    double elements, multiply_adds; /* of the step; 0 of an operand */
    const char *labels, *kind;      /* "ij"; "gemm"; of an operand null */
} PathTensor;
/* [n_leaves + n_steps] */
PathTensor *path_tensors(const PathProblem *p, const PathResult *r, Arena *arena);

/* One JSON object; one step per line for people. */
void path_report_json(Text *out, const PathProblem *p, const PathResult *r, double seconds,
                      Arena *arena);
void path_report_text(Text *out, const PathProblem *p, const PathResult *r, double seconds,
                      Arena *arena);

/* The plan file: text, holds the whole problem beside the decision; reading compares it. */
void path_plan_write(Text *out, const PathProblem *p, const PathResult *r, Arena *arena);
bool path_plan_read(Str text, const PathProblem *p, Ctx *ctx, PathTree *tree,
                    PathLabels *sliced);

/* A network file: {"inputs": [[0, 1], ...], "output": [...], "sizes": [...]}. `source` has been added to ctx. */
bool path_problem_from_json(Str text, Span place, Ctx *ctx, PathProblem *out);
/* The same from one already parsed value (jansson's json_t), for files of many networks. */
bool path_problem_from_value(const void *json, Span place, Ctx *ctx, PathProblem *out);

#endif
