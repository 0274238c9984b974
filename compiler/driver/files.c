/* SPDX-License-Identifier: Apache-2.0 */
/* See files.h. POSIX. */
#include "driver/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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
    PendingFile file = {path, text, NULL};
    vec_push(f->arena, &f->list, file);
}

static bool write_all(int fd, Str text)
{
    size_t done = 0;
    while (done < text.n) {
        ssize_t put = write(fd, text.at + done, text.n - done);
        if (put < 0 && errno != EINTR) {
            return false;
        }
        done += put > 0 ? (size_t)put : 0;
    }
    return true;
}

static bool is_unchanged(Arena *arena, const PendingFile *file)
{
    struct stat st;
    if (stat(file->path, &st) != 0 || !S_ISREG(st.st_mode) ||
        (size_t)st.st_size != file->text.n) {
        return false;
    }
    Str old = {0};
    const char *why = NULL;
    return file_read(arena, file->path, FILE_LIMIT, &old, &why) && str_eq(old, file->text);
}

/* A device or pipe is written straight: renaming over it would replace it. */
static bool is_special(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static bool write_temporary(Arena *arena, PendingFile *file, const char **why)
{
    for (unsigned attempt = 0; attempt < 100; attempt++) {
        file->temporary =
            str_format(arena, "%s.tmp%ld-%u", file->path, (long)getpid(), attempt);
        int fd =
            open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (fd < 0 && errno == EEXIST) {
            continue;
        }
        bool ok = fd >= 0 && write_all(fd, file->text);
        int error = errno;
        if (fd >= 0 && close(fd) != 0) {
            error = errno;
            ok = false;
        }
        if (!ok) {
            *why = str_format(arena, "cannot write '%s': %s", file->path, strerror(error));
            if (fd < 0) {
                file->temporary = NULL;
            }
        }
        return ok;
    }
    file->temporary = NULL;
    *why = str_format(arena, "cannot write '%s': no free temporary name", file->path);
    return false;
}

static bool write_special(Arena *arena, const PendingFile *file, const char **why)
{
    bool standard = strcmp(file->path, "-") == 0;
    int fd = standard ? STDOUT_FILENO : open(file->path, O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write_all(fd, file->text);
    if (!ok) {
        *why = str_format(arena, "cannot write '%s': %s",
                          standard ? "standard output" : file->path, strerror(errno));
    }
    if (fd >= 0 && !standard) {
        (void)close(fd);
    }
    return ok;
}

/* What renaming would only find when other files are in place already: a folder of that name,
 * one file twice. */
static bool check_places(const Files *f, const char **why)
{
    for (uint32_t k = 0; k < f->list.n; k++) {
        const char *path = f->list.at[k].path;
        struct stat st, other;
        bool there = strcmp(path, "-") != 0 && stat(path, &st) == 0;
        if (there && S_ISDIR(st.st_mode)) {
            *why = str_format(f->arena, "cannot write '%s': it is a folder", path);
            return false;
        }
        for (uint32_t j = 0; j < k && strcmp(path, "-") != 0; j++) {
            const char *before = f->list.at[j].path;
            bool same = strcmp(path, before) == 0 ||
                        (there && S_ISREG(st.st_mode) && stat(before, &other) == 0 &&
                         st.st_dev == other.st_dev && st.st_ino == other.st_ino);
            if (same) {
                *why = str_format(f->arena, "'%s' would be written twice", path);
                return false;
            }
        }
    }
    return true;
}

bool files_commit(Files *f, const char **why)
{
    bool ok = check_places(f, why);
    for (uint32_t k = 0; ok && k < f->list.n; k++) {
        PendingFile *file = &f->list.at[k];
        bool special = strcmp(file->path, "-") == 0 || is_special(file->path);
        if (!special && !is_unchanged(f->arena, file)) {
            ok = write_temporary(f->arena, file, why);
        }
    }
    for (uint32_t k = 0; ok && k < f->list.n; k++) {
        PendingFile *file = &f->list.at[k];
        bool special = strcmp(file->path, "-") == 0 || is_special(file->path);
        if (special) {
            ok = write_special(f->arena, file, why);
        }
    }
    for (uint32_t k = 0; ok && k < f->list.n; k++) {
        PendingFile *file = &f->list.at[k];
        if (file->temporary != NULL && rename(file->temporary, file->path) != 0) {
            *why = str_format(f->arena, "cannot write '%s': %s", file->path, strerror(errno));
            ok = false;
        } else {
            file->temporary = NULL;
        }
    }
    for (uint32_t k = 0; k < f->list.n; k++) {
        if (f->list.at[k].temporary != NULL) {
            (void)unlink(f->list.at[k].temporary);
        }
    }
    return ok;
}
