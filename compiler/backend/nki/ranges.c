/* SPDX-License-Identifier: Apache-2.0 */
/* The device evaluates functions by tables that hold on a range of inputs; outside, results are
 * wrong without a sign of it. The compiler neither clamps nor checks values: a clamp costs an
 * instruction for every tile and gives another wrong result. It says the ranges in the head of
 * the text, and the emulator reports an input outside (rule E14). */
#include "backend/nki/nki.h"

typedef struct TableRange {
    Op op;
    const char *name, *range;
} TableRange;

static const TableRange tables[] = {
    {OP_LOG, "log", "2^-64 to 2^64"},
    {OP_SQRT, "sqrt", "2^-116 to 2^118"},
    {OP_RSQRT, "rsqrt", "2^-87 to 2^97"},
    {OP_DIV, "reciprocal", "2^-42 to 2^42, either sign"},
};

#define TABLES (sizeof tables / sizeof tables[0])

static bool note(void *user, const Instr *i)
{
    bool *used = user;
    for (size_t t = 0; i->kind == INSTR_ACTIVATION && t < TABLES; t++) {
        used[t] |= i->recip ? tables[t].op == OP_DIV : tables[t].op == i->op;
    }
    return true;
}

void nki_print_ranges(const Kernel *k, Text *out)
{
    bool used[TABLES] = {false}, any = false;
    const Stmt *bad = NULL;
    const char *why = NULL;
    if (!instr_walk_brief(k, note, used, &bad, &why)) {
        return;
    }
    for (size_t t = 0; t < TABLES; t++) {
        if (used[t]) {
            text_printf(out, "%s%s %s",
                        any ? "; " : "Right for inputs in range: ", tables[t].name,
                        tables[t].range);
            any = true;
        }
    }
    text_put(out, any ? ".\n" : "");
}
