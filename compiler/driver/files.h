/* SPDX-License-Identifier: Apache-2.0 */
/* Files: read whole with a limit, written all or none. Outputs are collected in memory until
 * the run has succeeded (files_commit, in commit.c). What a name means:
 *
 *   "-", /dev/stdout, /dev/fd/N   the open descriptor
 *   a device or a pipe            is opened and written
 *   a symbolic link               what it leads to, there or not, is the output; the link stays
 *   a file that is there          is replaced by a new one of the same mode (and owner and
 *                                 group, where that is allowed); its other hard links keep the
 *                                 old bytes. One that may not be written is refused, one whose
 *                                 bytes would not change is not touched, unless `touch` is set
 *   a new one                     gets its mode from the umask
 *
 * Two outputs at one place, and an output that is an input, are refused. */
#ifndef DRIVER_FILES_H
#define DRIVER_FILES_H

#include "base/ctx.h"

#define FILE_LIMIT ((size_t)1 << 30)

/* Keeps the bytes in `arena`, a NUL after them. "-" is standard input. On failure *why says so. */
bool file_read(Arena *arena, const char *path, size_t limit, Str *out, const char **why);

/* False with errno set. */
bool file_write_all(int fd, Str text);

typedef struct PendingFile {
    const char *path;
    Str text;
} PendingFile;

typedef struct Files {
    Arena *arena;
    VEC(PendingFile) list;
    VEC(const char *) folders; /* made when they are not there */
    VEC(const char *) inputs;  /* no output may be one of these */
    bool touch;                /* unchanged ones are replaced too */
} Files;

void files_add(Files *f, const char *path, Str text);
void files_folder(Files *f, const char *path);
void files_input(Files *f, const char *path);

/* Behind its last slash. */
const char *path_last_part(const char *path);
/* The descriptor that `path` names, or -1: "-" is standard output. */
int file_descriptor(const char *path);
/* Nothing stands beside it: a descriptor, a device, a pipe. */
bool file_is_stream(const char *path);

typedef enum FilesStatus {
    FILES_WRITTEN,
    FILES_REFUSED, /* the names contradict each other: the command line is wrong */
    FILES_FAILED
} FilesStatus;

/* Writes all, or leaves everything as it was and says *why. A signal that comes meanwhile takes
 * effect afterwards, the unfinished outputs being gone. What a stream was given cannot be taken
 * back: streams come after everything that is likely to fail. */
FilesStatus files_commit(Files *f, const char **why);

#endif
