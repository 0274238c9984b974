/* SPDX-License-Identifier: Apache-2.0 */
/* The table of targets, one row per folder of compiler/backend/ that holds a target.c (backend/targets.inc
 * is written by the build). */
#include "driver/targets.h"

#include <string.h>

#include "base/text.h"

#define TARGET(name) extern const Target target_##name;
#include "backend/targets.inc"
#undef TARGET

static const Target *const targets[] = {
#define TARGET(name) &target_##name,
#include "backend/targets.inc"
#undef TARGET
};

const Target *target_at(uint32_t number)
{
    return number < sizeof targets / sizeof targets[0] ? targets[number] : NULL;
}

const Target *target_find(const char *name)
{
    for (uint32_t i = 0; target_at(i) != NULL; i++) {
        if (strcmp(target_at(i)->name, name) == 0) {
            return target_at(i);
        }
    }
    return NULL;
}

const Target *target_limited(Arena *a, const Target *target, int64_t max_instructions,
                             int64_t cores, int64_t threads)
{
    int64_t most = target->machine->max_instructions;
    bool limits = max_instructions != 0 && max_instructions < most;
    if (!limits && cores < 2 && threads == 0) {
        return target;
    }
    Machine *machine = arena_copy(a, target->machine, sizeof *machine);
    Target *limited = arena_copy(a, target, sizeof *limited);
    machine->max_instructions = limits ? max_instructions : most;
    machine->cores = cores;
    machine->threads = threads > 0 ? threads : machine->threads;
    limited->machine = machine;
    return limited;
}

const Target *target_named(Arena *a, const char *name, Usage *usage)
{
    const Target *target = target_find(name);
    Text t = text_new(a);
    for (uint32_t i = 0; target == NULL && target_at(i) != NULL; i++) {
        text_printf(&t, "%s '%s'", i == 0 ? "" : ",", target_at(i)->name);
    }
    if (target == NULL) {
        (void)usage_error(usage, "unknown target '%s'; there are%s", name, t.at);
    }
    return target;
}

const char *target_symbol(Arena *a, const Target *target, const char *name)
{
    return target->symbol == NULL ? name : target->symbol(a, name);
}
