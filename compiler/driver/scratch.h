/* SPDX-License-Identifier: Apache-2.0 */
/* A private folder, and a program that is run on what lies in it. The folder is in $TMPDIR,
 * else /tmp, and its path absolute, so that no program takes it for an option. From
 * scratch_open to scratch_close signals that end us are held (stop.h): the program is ended,
 * the folder goes, and then so do we; no other hold may come between. The folder also goes when
 * memory runs out. */
#ifndef DRIVER_SCRATCH_H
#define DRIVER_SCRATCH_H

#include "base/ctx.h"

typedef struct Scratch {
    Ctx *ctx;
    Arena *arena;
    char *folder;   /* null: there is none */
    ArenaTrap trap; /* whom to tell that memory ran out, when the folder is gone */
    void *user;
} Scratch;

/* False after a diagnostic (E_FILE); then there is nothing to close. */
bool scratch_open(Scratch *s, Ctx *ctx, Arena *arena);
const char *scratch_path(const Scratch *s, const char *name);
/* False after a diagnostic (E_FILE). */
bool scratch_write(const Scratch *s, const char *path, Str text);

/* Runs argv[0] with its output on our standard error, no input, and its own temporary files in
 * the folder. `what` is the program in messages: "the C compiler". False after a diagnostic
 * (E_RUN) when it cannot be run, fails, or a signal came meanwhile. `argv` ends with null.
 * With a `log`, a file for its output, it may fail without a word; what it says when it does not is
 * on standard error then. */
bool scratch_run(const Scratch *s, const char *const *argv, const char *what, const char *log);

/* Does not return when a signal came. */
void scratch_close(Scratch *s);

#endif
