/* SPDX-License-Identifier: Apache-2.0 */
/* A text that a test prints, against the file that holds what it should be. With TDSL_BLESS=1
 * in the environment the file is written instead: target `bless` runs each test that calls assert_golden so. */
#ifndef SUPPORT_GOLDEN_H
#define SUPPORT_GOLDEN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "support/places.h"
#include "support/test.h"

/* Fails with the first line that differs. */
static inline void assert_same_text(const char *got, const char *want)
{
    for (int line = 1; *got != '\0' || *want != '\0'; line++) {
        int g = (int)strcspn(got, "\n"), w = (int)strcspn(want, "\n");
        if (g != w || memcmp(got, want, (size_t)g) != 0) {
            fail_msg("line %d:\n%.*s\nbut expected:\n%.*s", line, g, got, w, want);
        }
        got += g + (got[g] != '\0');
        want += w + (want[w] != '\0');
    }
}

/* Of a file of the checkout, named from its top; null where there is none. */
static inline char *file_text(Arena *a, const char *path, size_t *n)
{
    FILE *f = fopen(source_file(path), "rb");
    if (f == NULL) {
        return NULL;
    }
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    char *text = arena_alloc(a, (size_t)size + 1);
    *n = fread(text, 1, (size_t)size, f);
    text[*n] = '\0';
    fclose(f);
    return text;
}

static inline void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static inline void assert_golden(Arena *arena, const char *path, const char *got)
{
    if (getenv("TDSL_BLESS") != NULL) {
        write_text(source_file(path), got);
    }
    size_t n = 0;
    const char *want = file_text(arena, path, &n);
    assert_non_null(want);
    assert_same_text(got, want);
}

/* The same of rows of figures (tables.py): where some differ, a table of what grew most is printed first. What was found stays in the build folder. */
static inline void assert_figures(Arena *arena, const char *path, const char *got)
{
    size_t n = 0;
    const char *want = file_text(arena, path, &n), *python = getenv("TDSL_PYTHON");
    char *name = arena_copy(arena, path, strlen(path) + 1), command[4096];
    if (getenv("TDSL_EACH") != NULL) { /* other rows than the file has */
        fputs(got, stdout);
        return;
    }
    if (want != NULL && strcmp(want, got) == 0) {
        return;
    }
    for (char *c = name; *c != '\0'; c++) {
        *c = *c == '/' ? '_' : *c;
    }
    const char *now = build_file(name);
    write_text(now, got);
    snprintf(command, sizeof command, "%s '%s' '%s' '%s'", python == NULL ? "python3" : python,
             source_file("tests/support/tables.py"),
             want == NULL ? "/dev/null" : source_file(path), now);
    assert_int_equal(system(command), 0);
    if (getenv("TDSL_BLESS") == NULL) {
        fail_msg("%s: figures changed; these are in %s", path, now);
    }
    write_text(source_file(path), got);
}

#endif
