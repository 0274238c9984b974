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
    fclose(f);
    return text;
}

static inline void assert_golden(Arena *arena, const char *path, const char *got)
{
    if (getenv("TDSL_BLESS") != NULL) {
        FILE *f = fopen(source_file(path), "wb");
        assert_non_null(f);
        fputs(got, f);
        fclose(f);
    }
    size_t n = 0;
    const char *want = file_text(arena, path, &n);
    assert_non_null(want);
    assert_same_text(got, want);
}

#endif
