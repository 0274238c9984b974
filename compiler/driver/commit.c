/* SPDX-License-Identifier: Apache-2.0 */
/* files_commit: outputs are written all or none. Each file is made beside its place under
 * another name; when all are complete, streams are written, then the new files are renamed onto
 * their places. A rename that fails all the same is undone by the backups: second names of the
 * files that were there. POSIX. */
#include "driver/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver/stop.h"

#define MOST_LINKS 40 /* from link to link: as the system has it */

/* Where one output goes. */
typedef struct Place {
    const char *path; /* as given, for messages */
    Str text;
    int fd;           /* of a stream, else -1 */
    bool opened;      /* the stream is ours to close */
    const char *file; /* canonical path; null for a stream */
    struct stat old;  /* when there */
    bool there, changed;
    const char *temporary, *backup; /* null: not made */
    bool renamed;
} Place;

typedef struct Commit {
    Files *files;
    Place *place; /* [files->list.n] */
    uint32_t n;
    VEC(const char *) made; /* folders */
    const char **why;
} Commit;

static bool fail(Commit *c, const char *path, const char *reason)
{
    *c->why = str_format(c->files->arena, "cannot write '%s': %s", path, reason);
    return false;
}

int file_descriptor(const char *path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0) {
        return STDOUT_FILENO;
    }
    if (strcmp(path, "/dev/stderr") == 0) {
        return STDERR_FILENO;
    }
    for (size_t k = 0; k < sizeof folders / sizeof folders[0]; k++) {
        size_t n = strlen(folders[k]);
        if (strncmp(path, folders[k], n) == 0 && path[n] != '\0' && strlen(path + n) < 6 &&
            strspn(path + n, "0123456789") == strlen(path + n)) {
            return atoi(path + n);
        }
    }
    return -1;
}

bool file_is_stream(const char *path)
{
    struct stat st;
    return file_descriptor(path) >= 0 ||
           (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
}

/* ---- where outputs go ---- */

const char *path_last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* The path that a link at `path` holds, seen from where we are. Null with errno set. */
static const char *follow(Arena *arena, const char *path)
{
    char to[4096];
    ssize_t n = readlink(path, to, sizeof to);
    if (n < 0 || (size_t)n >= sizeof to) {
        errno = n < 0 ? errno : ENAMETOOLONG;
        return NULL;
    }
    int folder = to[0] == '/' ? 0 : (int)(path_last_part(path) - path);
    return str_format(arena, "%.*s%.*s", folder, path, (int)n, to);
}

/* The folder without links, then the name. Null with errno set. */
static const char *canonical(Arena *arena, const char *path)
{
    const char *name = path_last_part(path);
    size_t n = (size_t)(name - path);
    if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        errno = *path == '\0' ? ENOENT : EISDIR;
        return NULL;
    }
    char *folder = realpath(n == 0   ? "."
                            : n == 1 ? "/"
                                     : str_dup(arena, (Str){path, n - 1}),
                            NULL);
    if (folder == NULL) {
        return NULL;
    }
    const char *whole =
        str_format(arena, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, name);
    free(folder);
    return whole;
}

/* Finds what the path leads to. Opens nothing. */
static bool find_place(Commit *c, Place *p)
{
    const char *path = p->path;
    for (int links = 0;; links++) {
        p->fd = file_descriptor(path);
        if (p->fd >= 0) {
            return true;
        }
        if (lstat(path, &p->old) != 0) {
            if (errno != ENOENT) {
                return fail(c, p->path, strerror(errno));
            }
            break;
        }
        if (!S_ISLNK(p->old.st_mode)) {
            p->there = true;
            break;
        }
        path = links < MOST_LINKS ? follow(c->files->arena, path) : NULL;
        if (path == NULL) {
            return fail(c, p->path, strerror(links < MOST_LINKS ? errno : ELOOP));
        }
    }
    if (p->there && S_ISDIR(p->old.st_mode)) {
        return fail(c, p->path, "it is a folder");
    }
    if (p->there && !S_ISREG(p->old.st_mode)) {
        return true; /* opened when everything else is known to be fine */
    }
    p->file = canonical(c->files->arena, path);
    return p->file != NULL ||
           fail(c, p->path, errno == EISDIR ? "it is a folder" : strerror(errno));
}

static bool same_file(const Place *x, const Place *y)
{
    return (x->fd >= 0 && x->fd == y->fd) ||
           (x->file != NULL && y->file != NULL && strcmp(x->file, y->file) == 0) ||
           (x->there && y->there && (S_ISREG(x->old.st_mode) || S_ISFIFO(x->old.st_mode)) &&
            x->old.st_dev == y->old.st_dev && x->old.st_ino == y->old.st_ino);
}

static bool is_input(const Commit *c, const Place *p)
{
    for (uint32_t k = 0; p->file != NULL && p->there && k < c->files->inputs.n; k++) {
        struct stat st;
        const char *input = c->files->inputs.at[k];
        if (strcmp(input, "-") != 0 && stat(input, &st) == 0 && st.st_dev == p->old.st_dev &&
            st.st_ino == p->old.st_ino) {
            return true;
        }
    }
    return false;
}

/* Outputs that contradict each other, or the inputs. */
static bool check_names(Commit *c)
{
    for (uint32_t k = 0; k < c->n; k++) {
        const Place *p = &c->place[k];
        const char *path = p->path;
        if (is_input(c, p)) {
            *c->why =
                str_format(c->files->arena, "the output '%s' is a file that is read", path);
            return false;
        }
        for (uint32_t j = 0; j < k; j++) {
            if (same_file(p, &c->place[j])) {
                *c->why =
                    p->fd == STDOUT_FILENO
                        ? str_format(c->files->arena, "two outputs go to standard output: "
                                                      "give one of them a file")
                        : str_format(c->files->arena, "two outputs go to '%s'", path);
                return false;
            }
        }
    }
    return true;
}

static bool is_unchanged(Arena *arena, const Place *p)
{
    Str old = {0};
    const char *why = NULL;
    return (size_t)p->old.st_size == p->text.n &&
           file_read(arena, p->file, FILE_LIMIT, &old, &why) && str_eq(old, p->text);
}

/* What is known to be impossible before anything is written. */
static bool check_writable(Commit *c, Place *p)
{
    p->changed =
        p->file != NULL && (c->files->touch || !p->there || !is_unchanged(c->files->arena, p));
    if (p->changed && p->there && faccessat(AT_FDCWD, p->file, W_OK, AT_EACCESS) != 0) {
        return fail(c, p->path, strerror(errno));
    }
    if (p->file == NULL && p->fd < 0) {
        p->fd = open(p->path, O_WRONLY | O_CLOEXEC);
        p->opened = p->fd >= 0;
        return p->opened || fail(c, p->path, strerror(errno));
    }
    return true;
}

/* ---- writing ---- */

bool file_write_all(int fd, Str text)
{
    size_t done = 0;
    while (done < text.n) {
        ssize_t put = write(fd, text.at + done, text.n - done);
        if (put < 0 && (errno != EINTR || stop_signal() != 0)) {
            return false;
        }
        done += put > 0 ? (size_t)put : 0;
    }
    return true;
}

/* A name in the folder of `file` that is not taken, different for each attempt. */
static const char *beside(Arena *arena, const char *file, unsigned attempt)
{
    return str_format(arena, "%.*s.tdsl-%ld-%u", (int)(path_last_part(file) - file), file,
                      (long)getpid(), attempt);
}

/* Owner first: changing it may take mode bits away. */
static void keep_mode(int fd, const struct stat *old)
{
    struct stat new;
    if (fstat(fd, &new) != 0) {
        return;
    }
    if ((new.st_uid != old->st_uid || new.st_gid != old->st_gid) &&
        fchown(fd, old->st_uid, old->st_gid) != 0) {
        (void)fchown(fd, (uid_t)-1, old->st_gid);
    }
    (void)fchmod(fd, old->st_mode & 0777);
}

static bool write_temporary(Commit *c, Place *p, unsigned *attempt)
{
    int fd = -1;
    for (unsigned end = *attempt + 100; fd < 0 && *attempt < end;) {
        p->temporary = beside(c->files->arena, p->file, (*attempt)++);
        /* A private file is never there for others to read, not even unfinished. */
        fd = open(p->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                  p->there ? 0600 : 0666);
        if (fd < 0 && errno != EEXIST) {
            break;
        }
    }
    if (fd < 0) {
        p->temporary = NULL;
        return fail(c, p->path, strerror(errno));
    }
    bool ok = file_write_all(fd, p->text);
    int error = errno;
    if (p->there) {
        keep_mode(fd, &p->old);
    }
    if (close(fd) != 0 && ok) {
        error = errno;
        ok = false;
    }
    return ok || fail(c, p->path, strerror(error));
}

static bool write_stream(Commit *c, const Place *p)
{
    bool ok = file_write_all(p->fd, p->text);
    bool standard = p->fd == STDOUT_FILENO;
    return ok || fail(c, standard ? "standard output" : p->path, strerror(errno));
}

static bool rename_one(Commit *c, Place *p, unsigned *attempt)
{
    if (p->there) { /* a file system without hard links goes without */
        p->backup = beside(c->files->arena, p->file, (*attempt)++);
        p->backup = link(p->file, p->backup) == 0 ? p->backup : NULL;
    }
    p->renamed = rename(p->temporary, p->file) == 0;
    if (!p->renamed) {
        return fail(c, p->path, strerror(errno));
    }
    p->temporary = NULL;
    return true;
}

static bool write_places(Commit *c)
{
    unsigned attempt = 0;
    bool ok = true;
    for (uint32_t k = 0; ok && k < c->n; k++) {
        ok = !c->place[k].changed || write_temporary(c, &c->place[k], &attempt);
    }
    for (uint32_t k = 0; ok && k < c->n; k++) {
        ok = c->place[k].fd < 0 || write_stream(c, &c->place[k]);
    }
    ok = ok && stop_signal() == 0;
    for (uint32_t k = 0; ok && k < c->n; k++) {
        ok = !c->place[k].changed || rename_one(c, &c->place[k], &attempt);
    }
    return ok;
}

static void clean_up(Commit *c, bool ok)
{
    for (uint32_t k = c->n; k-- > 0;) {
        Place *p = &c->place[k];
        if (!ok && p->renamed && p->backup != NULL && rename(p->backup, p->file) == 0) {
            p->backup = NULL;
        } else if (!ok && p->renamed && !p->there) {
            (void)unlink(p->file);
        }
        if (p->temporary != NULL) {
            (void)unlink(p->temporary);
        }
        if (p->backup != NULL) {
            (void)unlink(p->backup);
        }
        if (p->opened) {
            (void)close(p->fd);
        }
    }
    for (uint32_t k = ok ? 0 : c->made.n; k-- > 0;) {
        (void)rmdir(c->made.at[k]);
    }
}

static bool make_folders(Commit *c)
{
    for (uint32_t k = 0; k < c->files->folders.n; k++) {
        const char *path = c->files->folders.at[k];
        if (mkdir(path, 0777) == 0) {
            vec_push(c->files->arena, &c->made, path);
        } else if (errno != EEXIST) {
            *c->why = str_format(c->files->arena, "cannot make the folder '%s': %s", path,
                                 strerror(errno));
            return false;
        }
    }
    return true;
}

static FilesStatus commit(Commit *c)
{
    if (!make_folders(c)) {
        return FILES_FAILED;
    }
    for (uint32_t k = 0; k < c->n; k++) {
        const PendingFile *file = &c->files->list.at[k];
        c->place[k] = (Place){.path = file->path, .text = file->text, .fd = -1};
        if (!find_place(c, &c->place[k])) {
            return FILES_FAILED;
        }
    }
    if (!check_names(c)) {
        return FILES_REFUSED;
    }
    for (uint32_t k = 0; k < c->n; k++) {
        if (!check_writable(c, &c->place[k])) {
            return FILES_FAILED;
        }
    }
    return write_places(c) ? FILES_WRITTEN : FILES_FAILED;
}

FilesStatus files_commit(Files *f, const char **why)
{
    Commit c = {.files = f, .n = f->list.n, .why = why};
    c.place = ARENA_ARRAY(f->arena, c.n, Place);
    stop_hold();
    FilesStatus status = commit(&c);
    clean_up(&c, status == FILES_WRITTEN);
    stop_release();
    return status;
}
