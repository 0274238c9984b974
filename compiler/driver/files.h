/* SPDX-License-Identifier: Apache-2.0 */
/* Files: read whole with a limit, written all or none. Outputs are collected in memory;
 * files_commit writes each to a temporary file beside its place and renames them when all are
 * complete. A file whose bytes would not change is not touched, so nothing downstream is
 * rebuilt. */
#ifndef DRIVER_FILES_H
#define DRIVER_FILES_H

#include "base/ctx.h"

#define FILE_LIMIT ((size_t)1 << 30)

/* Keeps the bytes in `arena`, a NUL after them. "-" is standard input. On failure *why says so.
 */
bool file_read(Arena *arena, const char *path, size_t limit, Str *out, const char **why);

typedef struct PendingFile {
    const char *path; /* "-": standard output */
    Str text;
    char *temporary;
} PendingFile;

typedef struct Files {
    Arena *arena;
    VEC(PendingFile) list;
} Files;

void files_add(Files *f, const char *path, Str text);
/* False and *why when one cannot be written; then none is left behind. */
bool files_commit(Files *f, const char **why);

#endif
