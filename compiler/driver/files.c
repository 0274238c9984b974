/* SPDX-License-Identifier: Apache-2.0 */
/* Reading, and the list of what is to be written; see files.h. POSIX. */
#include "driver/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool file_read(Arena *arena, const char *path, size_t limit, Str *out, const char **why)
{
    bool standard = strcmp(path, "-") == 0;
    int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        *why = str_format(arena, "cannot read '%s': %s", path, strerror(errno));
        return false;
    }
    struct stat st;
    bool ok = fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode);
    size_t cap = ok && S_ISREG(st.st_mode) ? (size_t)st.st_size + 1 : 65536;
    if (!ok) {
        *why = str_format(arena, "cannot read '%s': it is a folder", path);
    } else if (cap > limit) {
        *why = str_format(arena, "'%s' is larger than %zu bytes", path, limit);
        ok = false;
    }
    char *text = ok ? arena_alloc(arena, cap + 1) : NULL;
    size_t n = 0;
    while (ok) {
        ssize_t got = read(fd, text + n, cap - n);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            *why = str_format(arena, "cannot read '%s': %s", path, strerror(errno));
            ok = false;
        }
        if (got <= 0) {
            break;
        }
        n += (size_t)got;
        if (n == cap) {
            ok = cap * 2 <= limit;
            *why = ok ? NULL : str_format(arena, "'%s' is larger than %zu bytes", path, limit);
            char *more = ok ? arena_alloc(arena, cap * 2 + 1) : NULL;
            if (ok) {
                memcpy(more, text, n);
                text = more;
                cap *= 2;
            }
        }
    }
    if (!standard) {
        (void)close(fd);
    }
    *out = (Str){text, n};
    return ok;
}

void files_add(Files *f, const char *path, Str text)
{
    PendingFile file = {path, text};
    vec_push(f->arena, &f->list, file);
}

void files_folder(Files *f, const char *path)
{
    vec_push(f->arena, &f->folders, path);
}

void files_input(Files *f, const char *path)
{
    vec_push(f->arena, &f->inputs, path);
}
