/* SPDX-License-Identifier: Apache-2.0 */
/* Compilers and programs that a test starts: where one fails, the test says which step ended how and what it printed. */
#ifndef SUPPORT_COMMAND_H
#define SUPPORT_COMMAND_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "support/test.h"

/* A shell reports a command that was ended by signal n as 128 + n. */
static inline void print_ending(int status)
{
    int number = WIFSIGNALED(status)                              ? WTERMSIG(status)
                 : WIFEXITED(status) && WEXITSTATUS(status) > 128 ? WEXITSTATUS(status) - 128
                                                                  : 0;
    if (number > 0) {
        print_error("ended by signal %d (%s)\n", number, strsignal(number));
    } else {
        print_error("ended with exit status %d\n", WEXITSTATUS(status));
    }
}

/* False with a message where the shell's command fails. */
static inline bool command_succeeds(const char *step, const char *command)
{
    char line[5000], printed[8192];
    (void)snprintf(line, sizeof line, "{ %s\n} 2>&1", command);
    FILE *f = popen(line, "r");
    if (f == NULL) {
        print_error("%s: no process could be started\n%s\n", step, command);
        return false;
    }
    size_t n = fread(printed, 1, sizeof printed - 1, f);
    printed[n] = '\0';
    while (fread(line, 1, sizeof line, f) > 0) { /* the rest is read, not kept */
    }
    int status = pclose(f);
    if (status != 0) {
        print_error("%s: %s\n", step, command);
        print_ending(status);
        print_error("%s", n > 0 ? printed : "and printed nothing\n");
    }
    return status == 0;
}

#endif
