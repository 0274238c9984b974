/* SPDX-License-Identifier: Apache-2.0 */
/* What is compiled: a .tdsl file, a dump, or an equation with shapes; read through files.h and
 * checked by the front end. Of later stages it knows the names. */
#ifndef DRIVER_INPUT_H
#define DRIVER_INPUT_H

#include "driver/options.h"
#include "driver/stage.h"
#include "front/check.h"
#include "graph/graph.h"

struct FrontDefine;
struct Program;
struct PathProblem;

typedef struct Input {
    Ctx *ctx;
    Arena *arena;
    const Options *options;
    uint32_t source;
    const char *name;         /* as given; "-e" for an equation */
    const char *program_name; /* the same, or what the first line of a token, AST or checked
                                 dump says */
    const char *dump; /* the stage, when the file is a dump to be read by later stages */
    const struct Program *program; /* a checked .tdsl program */
    Module *module;                /* of an equation */
    VEC(const char *) files;       /* all files read, for the dependency file */
    IncludeReader
        edited; /* what an editor has of a file, which it may not have written; or null */
    void *editor;
} Input;

/* Reads and checks. `shapes` (with `dtype`) are those of an equation's operands; null: from --shape and --dtype. False
 * after a diagnostic. */
bool input_read(Input *in, const TensorType *shapes, uint32_t n_shapes);

/* The same for a text that is no file. */
bool input_text(Input *in, const char *name, Str text);

/* Graphs of the program or equation; null after a diagnostic. */
Module *input_build(Input *in, const char *only_kernel);

/* --shape=2x3: extents, '?' is open. False after a diagnostic. */
bool input_shapes(Ctx *ctx, Arena *arena, const Options *o, DType dtype, TensorType **out,
                  uint32_t *n);

/* Is --f64=f32 or --f64=sums given, and which? False after a diagnostic. */
bool input_narrow(Ctx *ctx, const Options *o, FrontNarrow *narrow);

/* -D DIM=N, in the order given: the last of a name counts. False after a diagnostic. */
bool input_defines(Ctx *ctx, Arena *arena, const Options *o, struct FrontDefine **out,
                   uint32_t *n);

/* The equation of -e and its shapes as a problem of contraction order, without building a graph. */
bool input_path_problem(Input *in, struct PathProblem *out);

#endif
