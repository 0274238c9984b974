/* SPDX-License-Identifier: Apache-2.0 */
/* One compilation: what is known, which stage it has reached, and the passes that take it further. A library of functions
 * without files or exits; main.c and run/main.c are its users. */
#ifndef DRIVER_COMPILE_H
#define DRIVER_COMPILE_H

#include "dist/dist.h"
#include "driver/input.h"
#include "driver/mesh.h"
#include "driver/passes.h"
#include "driver/targets.h"
#include "graph/tensor.h"
#include "loop/loop.h"
#include "nest/nest.h"
#include "opt/opt.h"
#include "path/apply.h"

typedef struct PassTime {
    const char *pass;
    double seconds;
} PassTime;

typedef struct Compilation {
    Ctx *ctx;
    Arena *arena;
    /* how */
    const Target *target;
    PathControl path;
    uint64_t without; /* a bit for each place of a pass that is left out */
    bool check_each;
    MeshWish mesh;         /* not null: kernels without `shard` get a plan for ranks, too */
    double (*clock)(void); /* null: times are 0 */
    EmitOptions emit;
    /* what: filled from the stage the input is of, and on */
    Stage stage;
    uint32_t next;           /* the place of the pass to run next */
    Input *in;               /* the program; null when only a module was given */
    const char *only_kernel; /* of the program; null: all */
    const char *source_name;
    Module *module;
    Arena *graphs; /* of the module's graphs, when a pass here made them: released when the next
                      has its own */
    const Nest **nests; /* [kernels] */
    KernelModule *tiled, *legal;
    OutputSet outputs;
    PathDecisions decisions;
    VEC(PassTime) times;
    struct Checker *checker; /* of --check-each */
} Compilation;

void compilation_init(Compilation *c, Ctx *ctx, Arena *arena, const Target *target);

/* Frees what the passes hold beyond the arena. The module's graphs are gone. */
void compilation_release(Compilation *c);

/* One row of pipeline.def: what can be done with a stage, kernel by kernel. */
typedef struct StageInfo {
    Stage onto;
    void (*put)(const Compilation *, uint32_t kernel, Text *out);
    bool (*take)(Compilation *, uint32_t kernel, DumpReader *r, const DumpLine *line);
    bool (*verify)(Compilation *, uint32_t kernel, const char *pass);
    /* Results in the order of the graph's. */
    bool (*eval)(Compilation *, uint32_t kernel, const int64_t *dims, Tensor *const *args,
                 Tensor **results);
} StageInfo;

const StageInfo *stage_info(Stage s);

/* Starts from what was read: a program, whose graphs the first pass makes, or a dump. False after a diagnostic. */
bool compilation_start(Compilation *c, Input *in, const char *only_kernel);

/* Takes a dump of any stage, told by its first line. False after a diagnostic. */
bool compilation_read_dump(Compilation *c, uint32_t source, const char *stage);

/* At stage NEST: one kernel of `c` with this nest, which is of its graph, as a compilation of its own in `arena`. */
void compilation_alone(Compilation *alone, const Compilation *c, Arena *arena, uint32_t kernel,
                       const Nest *nest);

/* Is this pass left out? */
bool compilation_without(const Compilation *c, PassId pass);
/* The graph after pass "onto", with its symmetry and online sums known as those of `g` are. */
Graph *compilation_onto(Compilation *c, Arena *arena, Graph *g);

/* Runs the passes up to this place, which is no more of them: each result is verified, and run when check_each is set. False after a diagnostic. */
bool compilation_run_to(Compilation *c, uint32_t end);
/* ... until `stage` is reached. */
bool compilation_run(Compilation *c, Stage stage);

/* Every kernel of stage `s`, which has been reached, by its verifier; `pass` made it. */
bool compilation_verify(Compilation *c, Stage s, const char *pass);

/* Prints the stage that has been reached (or STAGE_GRAPH .. of what is kept); the stages of FORM_TEXT need a program. */
void compilation_dump(const Compilation *c, Stage stage, Text *out);

/* check.c: --check-each. Runs the program on small integers and compares with the first run; false (E_PASS_BROKE) names `pass`. */
bool compilation_check(Compilation *c, Stage stage, const char *pass);

/* report/report.c: residence, traffic, contraction order. */
void compilation_report(const Compilation *c, Text *out);
void compilation_report_json(const Compilation *c, Text *out); /* report/json.c */
void compilation_report_html(const Compilation *c, Text *out); /* report/page.c */
/* report/dot.c: values and loops for Graphviz. */
void compilation_dot(const Compilation *c, Text *out);

/* report/ranks.c. False after a diagnostic: a rank of some kernel needs more than --rank-memory, at typical extents. */
bool report_ranks_fit(const Compilation *c);

#endif
