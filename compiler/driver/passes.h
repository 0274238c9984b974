/* SPDX-License-Identifier: Apache-2.0 */
/* The passes of a pipeline by place: those of pipeline.def, with the target's own among them. */
#ifndef DRIVER_PASSES_H
#define DRIVER_PASSES_H

#include "driver/stage.h"
#include "target/target.h"

/* Up to TARGET the number of a row is the pass' place. */
typedef enum PassId {
#define PASS(id, ...) PASS_##id,
#include "driver/pipeline.def"
    PASS_COUNT
} PassId;

typedef enum PassWithout {
    WITHOUT_NEEDED,
    WITHOUT_SKIPPED,
    WITHOUT_TOLD,
    WITHOUT_PART
} PassWithout;

typedef struct Pass {
    const char *name, *summary;
    Stage from, to;
    PassWithout without;
    PassId id;             /* its row; TARGET: one of the target's */
    const TargetPass *own; /* of the target, else null */
} Pass;

uint32_t pass_count(const Target *target);
Pass pass_at(const Target *target, uint32_t place);
/* The place of the pass called so; pass_count when there is none. */
uint32_t pass_find(const Target *target, const char *name);

/* The places before it are of passes that lead to this stage, all that give it included. */
uint32_t passes_until(const Target *target, Stage s);
/* Where a text of this stage goes on that does not say which pass has left it: with passes that find nothing to do when they come
 * again. The passes of a nest and of a legal kernel are no such: these stand. */
uint32_t passes_from(const Target *target, Stage s);
/* The name of the pass before `next`, if others that give the same stage follow; else null. */
const char *passes_after(const Target *target, uint32_t next);

/* " simplify factor ...": those that may be left out. */
const char *passes_optional(Arena *a, const Target *target);
/* All, a line each: --list-passes. */
void passes_list(const Target *target, Text *out);

#endif
