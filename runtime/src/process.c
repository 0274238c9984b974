/* SPDX-License-Identifier: Apache-2.0 */
/* posix_spawn and a patient wait. The child gets a group of its own, so that when it is late it is ended
 * with whatever it started itself. */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static int64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int spawn(pid_t *child, char *const argv[], const char *errors)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&files);
    if (error != 0) {
        return error;
    }
    error = posix_spawnattr_init(&attributes);
    if (error != 0) {
        (void)posix_spawn_file_actions_destroy(&files);
        return error;
    }
    error = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    error = error != 0 ? error
                       : posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    error = error != 0 ? error
                       : posix_spawn_file_actions_addopen(&files, 2, errors,
                                                          O_WRONLY | O_CREAT | O_TRUNC, 0600);
    error = error != 0 ? error : posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    error =
        error != 0 ? error : posix_spawnp(child, argv[0], &files, &attributes, argv, environ);
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&files);
    return error;
}

static bool exit_read(const char *name, int status, int *code, Fault *fault)
{
    if (WIFEXITED(status)) {
        *code = WEXITSTATUS(status);
        return true;
    }
    return tdsl_fault_set(fault, TDSL_E_DEVICE, "'%s' was ended by signal %d", name,
                          WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

bool tdsl_process_run(char *const argv[], const char *errors, int64_t timeout_ms, int *code,
                      Fault *fault)
{
    pid_t child = 0;
    int status = 0;
    int64_t start = now_ms();
    if (spawn(&child, argv, errors) != 0) {
        return tdsl_fault_set(fault, TDSL_E_NO_LIBRARY, "'%s' cannot be started", argv[0]);
    }
    for (long pause_ms = 1;; pause_ms = pause_ms < 16 ? 2 * pause_ms : 16) {
        pid_t ended = waitpid(child, &status, WNOHANG);
        if (ended == child) {
            return exit_read(argv[0], status, code, fault);
        }
        if (ended < 0 && errno != EINTR) {
            return tdsl_fault_set(fault, TDSL_E_DEVICE, "the exit status of '%s' was lost",
                                  argv[0]);
        }
        if (now_ms() - start > timeout_ms) {
            break;
        }
        struct timespec pause = {0, pause_ms * 1000000L};
        (void)nanosleep(&pause, NULL);
    }
    (void)kill(-child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return tdsl_fault_set(fault, TDSL_E_TIMEOUT, "'%s' did not end within %lld ms", argv[0],
                          (long long)timeout_ms);
}
