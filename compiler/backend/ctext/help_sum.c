/* SPDX-License-Identifier: Apache-2.0 */
/* Helper functions: cascades (loop/cascade.h), of numbers and of rows of them. */
#include <string.h>

#include "backend/ctext/ctext.h"
#include "loop/cascade.h"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"

/* In both texts $ is the name's end, "f64" or "f32x32", T the type of numbers, W how many there are in a row. */
static const char of_numbers[] =
    "TDSL_HELPER void tdsl_sum_add_$(tdsl_sum_$ *s, T x)\n{\n"
    "    T *part = s->part;\n"
    "    for (uint64_t m = s->n++; (m & 1) != 0; m >>= 1) {\n        x = *part++ + x;\n    }\n"
    "    *part = x;\n}\n"
    "TDSL_HELPER T tdsl_sum_of_$(const tdsl_sum_$ *s)\n{\n"
    "    const T *part = s->part;\n    T x = 0;\n"
    "    for (uint64_t m = s->n; m != 0; m >>= 1, ++part) {\n"
    "        if ((m & 1) != 0) {\n            x = *part + x;\n        }\n    }\n"
    "    return x;\n}\n";

static const char of_rows[] =
    "TDSL_HELPER void tdsl_sum_add_$(tdsl_sum_$ *s, T *x)\n{\n"
    "    T(*part)[W] = s->part;\n"
    "    for (uint64_t m = s->n++; (m & 1) != 0; m >>= 1, ++part) {\n"
    "        for (int k = 0; k < W; ++k) {\n            x[k] = (*part)[k] + x[k];\n        }\n "
    "   }\n"
    "    for (int k = 0; k < W; ++k) {\n        (*part)[k] = x[k];\n    }\n}\n"
    "/* The total, in the place of the last row. */\n"
    "TDSL_HELPER const T *tdsl_sum_of_$(tdsl_sum_$ *s)\n{\n"
    "    T(*x)[W] = s->part;\n    uint64_t m = s->n;\n"
    "    for (int k = 0; k < W && m == 0; ++k) {\n        (*x)[k] = 0;\n    }\n"
    "    for (; m != 0 && (m & 1) == 0; m >>= 1) {\n        ++x;\n    }\n"
    "    for (T(*part)[W] = x + 1; (m >>= 1) != 0; ++part) {\n"
    "        for (int k = 0; k < W && (m & 1) != 0; ++k) {\n"
    "            (*x)[k] = (*part)[k] + (*x)[k];\n        }\n    }\n"
    "    return *x;\n}\n";

static const char *end_of(Helpers *h, const Buffer *b)
{
    return b->rank == 0 ? dtype_name(b->dtype)
                        : str_format(h->arena, "%sx%lld", dtype_name(b->dtype),
                                     (long long)b->extent[0].n);
}

static const char *functions_of(Helpers *h, const Buffer *b, const char *end)
{
    Text t;
    text_init(&t, h->arena);
    const char *type = c_type(b->dtype), *from = b->rank == 0 ? of_numbers : of_rows;
    for (const char *p = from; *p != '\0'; p++) {
        bool word = p > from && (p[-1] == '_' || (p[-1] >= 'A' && p[-1] <= 'Z'));
        bool alone = !word && strspn(p + 1, LETTERS) == 0;
        if (*p == '$') {
            text_put(&t, end);
        } else if (*p == 'T' && alone) {
            text_put(&t, type);
        } else if (*p == 'W' && alone) {
            text_printf(&t, "%lld", (long long)b->extent[0].n);
        } else {
            text_char(&t, *p);
        }
    }
    return t.at;
}

const char *help_sum(Helpers *h, const Buffer *b)
{
    const char *end = end_of(h, b), *name = str_format(h->arena, "tdsl_sum_%s", end);
    if (!helper_new(h, name)) {
        return name;
    }
    const char *row =
        b->rank == 0 ? "" : str_format(h->arena, "[%lld]", (long long)b->extent[0].n);
    helper_type_put(
        h, str_format(h->arena,
                      "/* A long sum of %s, pairwise like a binary counter: part[i] is the sum "
                      "of 2^i of them\n * if bit i of n is set. */\n"
                      "typedef struct tdsl_sum_%s {\n    uint64_t n;\n    %s part[%d]%s;\n"
                      "} tdsl_sum_%s;\n",
                      b->rank == 0 ? "numbers" : "rows", end, c_type(b->dtype), CASCADE_PARTS,
                      row, end));
    helper_put(h, functions_of(h, b, end));
    return name;
}

const char *help_sum_add(Helpers *h, const Buffer *b)
{
    (void)help_sum(h, b);
    return str_format(h->arena, "tdsl_sum_add_%s", end_of(h, b));
}

const char *help_sum_of(Helpers *h, const Buffer *b)
{
    (void)help_sum(h, b);
    return str_format(h->arena, "tdsl_sum_of_%s", end_of(h, b));
}
