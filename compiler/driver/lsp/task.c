/* SPDX-License-Identifier: Apache-2.0 */
/* See task.h. POSIX. */
#include "driver/lsp/task.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/files.h"
#include "driver/tool.h"

/* Of one text. */
#define MEMORY_LIMIT ((size_t)2 << 30)
#define READ_SIZE    65536

static void out_of_memory(void *user, size_t bytes)
{
    (void)user;
    (void)bytes;
    _exit(4);
}

NORETURN static void work_and_end(LspWork work, void *user, int fd, double seconds)
{
    int null = open("/dev/null", O_RDWR);
    (void)dup2(null, STDIN_FILENO);
    (void)dup2(null, STDOUT_FILENO); /* which is the protocol's */
    (void)signal(SIGPIPE, SIG_DFL);
    (void)alarm((unsigned)seconds + 2); /* should the server be gone */
    Ctx ctx;
    Arena arena;
    ctx_init(&ctx);
    ctx.budget.limit = MEMORY_LIMIT;
    ctx.budget.trap = out_of_memory;
    arena_init(&arena, &ctx.budget);
    Text more = text_new(&arena);
    json_t *made = work(user, &ctx, &arena, &more);
    char *text = made == NULL ? NULL : json_dumps(made, JSON_COMPACT | JSON_ENCODE_ANY);
    bool ok = text != NULL && file_write_all(fd, (Str){text, strlen(text) + 1}) &&
              file_write_all(fd, text_str(&more));
    _exit(ok ? 0 : 1);
}

bool lsp_task_start(LspTask *t, LspWork work, void *user, double seconds)
{
    int ends[2];
    *t = (LspTask){.end = tool_clock() + seconds};
    if (pipe(ends) != 0) {
        return false;
    }
    pid_t child = fork();
    if (child == 0) {
        (void)close(ends[0]);
        work_and_end(work, user, ends[1], seconds);
    }
    (void)close(ends[1]);
    if (child < 0) {
        (void)close(ends[0]);
        return false;
    }
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    t->child = child;
    t->fd = ends[0];
    return true;
}

static int reap(LspTask *t)
{
    int status = 0;
    while (waitpid(t->child, &status, 0) < 0 && errno == EINTR) {
    }
    (void)close(t->fd);
    t->child = 0;
    return status;
}

static const char *reason(Arena *arena, const LspTask *t, int status)
{
    if (t->late) {
        return "this takes too long";
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 4) {
        return "this takes too much memory";
    }
    bool signalled = WIFSIGNALED(status);
    return str_format(arena, "the compiler failed (%s %d), which is a defect of it",
                      signalled ? "signal" : "exit status",
                      signalled ? WTERMSIG(status) : WEXITSTATUS(status));
}

static void kill_late(LspTask *t)
{
    if (tool_clock() >= t->end && !t->late) {
        t->late = true;
        (void)kill(t->child, SIGKILL);
    }
}

/* The bytes that a task has written: JSON, a NUL, and more. */
static json_t *take_result(LspTask *t, char **more)
{
    const char *end = memchr(t->at, '\0', t->n);
    if (end == NULL) {
        return NULL;
    }
    size_t n = (size_t)(end - t->at), rest = t->n - n - 1;
    *more = malloc(rest + 1);
    CHECK(*more != NULL);
    memcpy(*more, end + 1, rest);
    (*more)[rest] = '\0';
    return json_loadb(t->at, n, JSON_DECODE_ANY, NULL);
}

bool lsp_task_step(LspTask *t, Arena *arena, double wait, json_t **result, char **more,
                   const char **why)
{
    struct pollfd p = {.fd = t->fd, .events = POLLIN};
    double left = t->end - tool_clock();
    wait = wait < left ? wait : left;
    (void)poll(&p, 1, wait > 0 ? (int)(wait * 1e3) + 1 : 0);
    kill_late(t);
    for (;;) {
        if (t->cap - t->n < READ_SIZE) {
            t->cap = 2 * t->cap + READ_SIZE;
            t->at = realloc(t->at, t->cap);
            CHECK(t->at != NULL);
        }
        ssize_t got = read(t->fd, t->at + t->n, t->cap - t->n);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0 && errno == EAGAIN) {
            return false;
        }
        if (got <= 0) {
            break;
        }
        t->n += (size_t)got;
    }
    int status = reap(t);
    bool ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    *more = NULL;
    *result = ok ? take_result(t, more) : NULL;
    *why = *result == NULL ? reason(arena, t, status) : NULL;
    free(t->at);
    t->at = NULL;
    return true;
}

void lsp_task_stop(LspTask *t)
{
    if (t->child > 0) {
        (void)kill(t->child, SIGKILL);
        (void)reap(t);
        free(t->at);
        t->at = NULL;
    }
}

json_t *lsp_task_run(LspWork work, void *user, Arena *arena, double seconds, char **more,
                     const char **why)
{
    LspTask t;
    json_t *result = NULL;
    *more = NULL;
    if (!lsp_task_start(&t, work, user, seconds)) {
        *why = "no process can be started";
        return NULL;
    }
    while (!lsp_task_step(&t, arena, seconds, &result, more, why)) {
    }
    return result;
}
