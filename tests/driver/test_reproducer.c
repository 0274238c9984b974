/* SPDX-License-Identifier: Apache-2.0 */
/* A fault of the compiler leaves a script that repeats the run, and never replaces one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/reproducer.h"
#include "support/test.h"

/* The exit status of a run in which a check fails. */
static int fail_in_a_child(int argc, char **argv)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        ToolRun t = {0};
        ctx_init(&t.ctx);
        arena_init(&t.arena, &t.ctx.budget);
        t.files.arena = &t.arena;
        usage_init(&t.usage, &t.arena, "tdslc");
        if (!options_parse(&t.options, &t.arena, TOOL_TDSLC, argc, argv, &t.usage)) {
            _Exit(1);
        }
        source_add(&t.ctx.sources, "k.tdsl", str_from("kernel"), (Span){0});
        check_on_failure("tdslc", reproducer_on_failure, &t);
        check_failed("here.c", 1, "it holds");
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* A pass that breaks an invariant: `user` says whether the stage came from a file. */
static bool break_a_form(ToolRun *t)
{
    source_add(&t->ctx.sources, "k.tdsl", str_from("kernel"), (Span){0});
    t->stages_are_ours = !option_given(&t->options, OPT_NEST);
    diag_error(&t->ctx.diags, E_DUMP, (Span){0}, "legalise: kernel 'k': it does not hold");
    return false;
}

static int run_in_a_child(Tool tool, int argc, char **argv)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _Exit(tool_main(tool, argc, argv, NULL, break_a_form));
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void expect_script(const char *path)
{
    char text[4096] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    assert_int_equal(fclose(file), 0);
    assert_non_null(strstr(text, "cat > 'k.tdsl' <<'END_OF_FILE'\nkernel\nEND_OF_FILE\n"));
    assert_non_null(strstr(text, "\"${1:-tdslc}\" -- 'k.tdsl'\n"));
}

static void a_failed_check_leaves_a_script(void **state)
{
    char folder[] = "/tmp/reproducer-XXXXXX";
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    char *plain[] = {"tdslc", "k.tdsl", NULL},
         *named[] = {"tdslc", "k.tdsl", "--reproducer=named.sh", NULL};
    assert_int_equal(fail_in_a_child(2, plain), 70);
    expect_script("tdslc-failure.sh");
    FILE *file = fopen("tdslc-failure.sh", "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(fail_in_a_child(2, plain), 70);
    file = fopen("tdslc-failure.sh", "r");
    assert_non_null(file);
    assert_int_equal(fgetc(file), EOF);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(fail_in_a_child(3, named), 70);
    expect_script("named.sh");
    assert_int_equal(unlink("named.sh") + unlink("tdslc-failure.sh"), 0);
    assert_int_equal(chdir("/") + rmdir(folder), 0);
}

static void a_form_that_is_broken_is_our_fault_unless_a_file_brought_it(void **state)
{
    char folder[] = "/tmp/reproducer-XXXXXX";
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    char *plain[] = {"tdslc", "k.tdsl", NULL}, *nest[] = {"tdslc", "k.tdsl", "--nest=n", NULL};
    assert_int_equal(run_in_a_child(TOOL_TDSLC, 3, nest), 1);
    assert_int_equal(access("tdslc-failure.sh", F_OK), -1);
    assert_int_equal(run_in_a_child(TOOL_TDSLC, 2, plain), 70);
    expect_script("tdslc-failure.sh");
    assert_int_equal(unlink("tdslc-failure.sh"), 0);
    assert_int_equal(run_in_a_child(TOOL_RUN, 2, plain), 70);
    assert_int_equal(access("tdslc-failure.sh", F_OK), -1);
    assert_int_equal(chdir("/") + rmdir(folder), 0);
}

TESTS(TEST(a_failed_check_leaves_a_script),
      TEST(a_form_that_is_broken_is_our_fault_unless_a_file_brought_it))
