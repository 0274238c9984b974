/* SPDX-License-Identifier: Apache-2.0 */
/* Work of the compiler in a process of its own, which hands back JSON: a fault, a limit of memory and a search that does not end
 * are that process's. */
#ifndef DRIVER_LSP_TASK_H
#define DRIVER_LSP_TASK_H

#include <jansson.h>
#include <sys/types.h>

#include "base/ctx.h"

/* What is long is text in `more`, without a NUL: JSON would take as long to write and to read as a text takes to be looked at. */
typedef json_t *(*LspWork)(void *user, Ctx *ctx, Arena *arena, Text *more);

typedef struct LspTask {
    pid_t child; /* 0: nothing runs */
    int fd;
    char *at;
    size_t n, cap;
    double end; /* by tool_clock: it is stopped */
    bool late;
} LspTask;

/* False: no process can be made. */
bool lsp_task_start(LspTask *t, LspWork work, void *user, double seconds);
/* Takes what there is; waits so long for it. True: it has ended, with *result, or null and *why. *more, which the caller frees, ends in NUL. */
bool lsp_task_step(LspTask *t, Arena *arena, double wait, json_t **result, char **more,
                   const char **why);
void lsp_task_stop(LspTask *t);
/* Starts, and waits to the end. */
json_t *lsp_task_run(LspWork work, void *user, Arena *arena, double seconds, char **more,
                     const char **why);

#endif
