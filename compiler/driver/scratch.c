/* SPDX-License-Identifier: Apache-2.0 */
/* See scratch.h. The program has a process group of its own: what it starts in turn is ended
 * with it. POSIX. */
#include "driver/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "driver/files.h"
#include "driver/stop.h"

/* ---- the folder ---- */

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    (void)remove(path);
    return 0;
}

static void remove_folder(const char *folder)
{
    (void)nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void out_of_memory(void *user, size_t bytes)
{
    Scratch *s = user;
    remove_folder(s->folder);
    s->trap(s->user, bytes);
}

bool scratch_open(Scratch *s, Ctx *ctx, Arena *arena)
{
    const char *base = getenv("TMPDIR");
    *s = (Scratch){
        .ctx = ctx, .arena = arena, .trap = ctx->budget.trap, .user = ctx->budget.user};
    base = base == NULL || base[0] == '\0' ? "/tmp" : base;
    char *whole = realpath(base, NULL);
    s->folder = whole == NULL ? NULL : str_format(arena, "%s/tdsl-run-XXXXXX", whole);
    int error = errno;
    free(whole);
    stop_hold();
    if (s->folder != NULL && mkdtemp(s->folder) == NULL) {
        error = errno;
        s->folder = NULL;
    }
    if (s->folder == NULL) {
        stop_release();
        Diagnostic *d =
            diag_error(&ctx->diags, E_FILE, (Span){0},
                       "cannot make a temporary folder in '%s': %s", base, strerror(error));
        diag_help(d, "the environment variable TMPDIR names where such folders are made");
        return false;
    }
    if (s->trap != NULL) {
        ctx->budget.trap = out_of_memory;
        ctx->budget.user = s;
    }
    return true;
}

void scratch_close(Scratch *s)
{
    if (s->folder == NULL) {
        return;
    }
    remove_folder(s->folder);
    s->folder = NULL;
    s->ctx->budget.trap = s->trap;
    s->ctx->budget.user = s->user;
    stop_release();
}

const char *scratch_path(const Scratch *s, const char *name)
{
    return str_format(s->arena, "%s/%s", s->folder, name);
}

bool scratch_write(const Scratch *s, const char *path, Str text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && file_write_all(fd, text);
    int error = errno;
    if (fd >= 0 && close(fd) != 0 && ok) {
        error = errno;
        ok = false;
    }
    if (!ok) {
        diag_error(&s->ctx->diags, E_FILE, (Span){0}, "cannot write '%s': %s", path,
                   strerror(error));
    }
    return ok;
}

/* ---- the program ---- */

static void wake(int number)
{
    (void)number;
}

/* In the child; does not return. */
static void become(const Scratch *s, const char *const *argv, const char *log,
                   const sigset_t *open_signals)
{
    int nowhere = open("/dev/null", O_RDONLY);
    (void)setpgid(0, 0);
    stop_forget();
    (void)signal(SIGTTOU, SIG_IGN); /* a group in the background may write its messages */
    (void)sigprocmask(SIG_SETMASK, open_signals, NULL);
    (void)dup2(nowhere, STDIN_FILENO);
    int to = log == NULL ? -1 : open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    (void)dup2(to < 0 ? STDERR_FILENO : to, STDOUT_FILENO);
    (void)dup2(STDOUT_FILENO, STDERR_FILENO);
    (void)setenv("TMPDIR", s->folder, 1);
    (void)execvp(argv[0], (char *const *)(uintptr_t)argv);
    _exit(127);
}

/* Asks the group to end, insists after a second, and leaves the child to be waited for. */
static void end_group(pid_t child)
{
    (void)kill(-child, SIGTERM);
    for (int k = 0; k < 100; k++) {
        siginfo_t info = {.si_pid = 0};
        struct timespec wait = {0, 10000000};
        if (waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            info.si_pid != 0) {
            break;
        }
        (void)nanosleep(&wait, NULL);
    }
    (void)kill(-child, SIGKILL);
}

/* The signals that matter are blocked but for the wait itself: none is missed. */
static bool wait_for(pid_t child, const sigset_t *open_signals, int *status)
{
    for (;;) {
        pid_t got = waitpid(child, status, WNOHANG);
        if (got == child || (got < 0 && errno != EINTR)) {
            return got == child;
        }
        if (stop_signal() != 0) {
            end_group(child);
            while (waitpid(child, status, 0) < 0 && errno == EINTR) {
            }
            return true;
        }
        (void)sigsuspend(open_signals);
    }
}

static void show_log(const char *log)
{
    char bytes[4096];
    int fd = open(log, O_RDONLY | O_CLOEXEC);
    for (ssize_t n = fd < 0 ? 0 : read(fd, bytes, sizeof bytes); n > 0;
         n = read(fd, bytes, sizeof bytes)) {
        (void)fwrite(bytes, 1, (size_t)n, stderr);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

bool scratch_run(const Scratch *s, const char *const *argv, const char *what, const char *log)
{
    struct sigaction action = {.sa_handler = wake}, old;
    sigset_t blocked, open_signals;
    int status = 0;
    (void)sigemptyset(&blocked);
    (void)sigaddset(&blocked, SIGCHLD);
    for (size_t k = 0; k < STOP_SIGNALS; k++) {
        (void)sigaddset(&blocked, stop_signals[k]);
    }
    (void)sigprocmask(SIG_BLOCK, &blocked, &open_signals);
    (void)sigaction(SIGCHLD, &action, &old);
    pid_t child = fork();
    if (child == 0) {
        (void)sigaction(SIGCHLD, &old, NULL);
        become(s, argv, log, &open_signals);
    }
    bool ended = false;
    if (child > 0) {
        (void)setpgid(child, child);
        ended = wait_for(child, &open_signals, &status);
    }
    (void)sigaction(SIGCHLD, &old, NULL);
    (void)sigprocmask(SIG_SETMASK, &open_signals, NULL);
    if (ended && WIFEXITED(status) && WEXITSTATUS(status) == 0 && stop_signal() == 0) {
        if (log != NULL) {
            show_log(log);
        }
        return true;
    }
    if (log != NULL) {
        return false;
    }
    const char *why =
        !ended                ? "it cannot be started"
        : WIFSIGNALED(status) ? str_format(s->arena, "signal %d ended it", WTERMSIG(status))
        : WEXITSTATUS(status) == 127 ? str_format(s->arena, "cannot run '%s'", argv[0])
                                     : "its messages are above";
    return diag_refuse(&s->ctx->diags, E_RUN, (Span){0}, "%s failed: %s", what, why);
}
