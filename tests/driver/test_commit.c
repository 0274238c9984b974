/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs are all there or none, also when a rename fails that nothing foretold: the linker
 * hands files_commit's renames to this file, which lets so many succeed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/ctx.h"
#include "driver/files.h"

static int renames_left;

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);

int __wrap_rename(const char *from, const char *to)
{
    if (renames_left == 0) {
        renames_left = -1; /* what undoes the others succeeds */
        errno = EBUSY;
        return -1;
    }
    renames_left -= renames_left > 0 ? 1 : 0;
    return __real_rename(from, to);
}

static char folder[] = "/tmp/tdsl-commit-XXXXXX";

static const char *in_folder(Arena *a, const char *name)
{
    return str_format(a, "%s/%s", folder, name);
}

static void put(Arena *a, const char *name, const char *text)
{
    FILE *f = fopen(in_folder(a, name), "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static const char *get(Arena *a, const char *name)
{
    Str text = {0};
    const char *why = NULL;
    return file_read(a, in_folder(a, name), FILE_LIMIT, &text, &why) ? text.at : "absent";
}

static int count_entries(void)
{
    int n = -2; /* . and .. */
    DIR *d = opendir(folder);
    assert_non_null(d);
    while (readdir(d) != NULL) {
        n++;
    }
    (void)closedir(d);
    return n;
}

/* Three outputs, the second new, the third in a new folder. */
static FilesStatus write_three(Arena *a, int renames, const char **why)
{
    Files files = {.arena = a};
    files_folder(&files, in_folder(a, "deep"));
    files_add(&files, in_folder(a, "a"), str_from("new a"));
    files_add(&files, in_folder(a, "b"), str_from("new b"));
    files_add(&files, in_folder(a, "deep/c"), str_from("new c"));
    renames_left = renames;
    FilesStatus status = files_commit(&files, why);
    renames_left = -1;
    return status;
}

static void a_rename_that_fails_undoes_those_before_it(void **state)
{
    Arena *a = *state;
    for (int done = 0; done < 3; done++) {
        const char *why = NULL;
        struct stat st;
        put(a, "a", "old a");
        assert_int_equal(chmod(in_folder(a, "a"), 0640), 0);
        assert_int_equal(write_three(a, done, &why), FILES_FAILED);
        assert_non_null(strstr(why, "cannot write '"));
        assert_non_null(strstr(why, strerror(EBUSY)));
        assert_string_equal(get(a, "a"), "old a");
        assert_int_equal(stat(in_folder(a, "a"), &st), 0);
        assert_int_equal(st.st_mode & 0777, 0640);
        assert_int_equal(st.st_nlink, 1);
        assert_int_equal(count_entries(), 1);
    }
}

static void all_are_there_and_nothing_else_when_none_fails(void **state)
{
    Arena *a = *state;
    const char *why = NULL;
    put(a, "a", "old a");
    assert_int_equal(write_three(a, -1, &why), FILES_WRITTEN);
    assert_string_equal(get(a, "a"), "new a");
    assert_string_equal(get(a, "b"), "new b");
    assert_string_equal(get(a, "deep/c"), "new c");
    assert_int_equal(count_entries(), 3);
}

static int setup(void **state)
{
    static Ctx ctx;
    ctx_init(&ctx);
    *state = &ctx.arena;
    return mkdtemp(folder) == NULL;
}

static int teardown(void **state)
{
    static const char *const names[] = {"a", "b", "deep/c", "deep", "."};
    Arena *a = *state;
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        (void)remove(in_folder(a, names[k]));
    }
    (void)rmdir(folder);
    arena_release(a);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rename_that_fails_undoes_those_before_it),
        cmocka_unit_test(all_are_there_and_nothing_else_when_none_fails),
    };
    renames_left = -1;
    return cmocka_run_group_tests(tests, setup, teardown);
}
