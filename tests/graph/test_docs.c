/* SPDX-License-Identifier: Apache-2.0 */
/* docs/ir.md is true: its graphs read and print as themselves, its table of operations is the op table. */
#include "graph/support.h"
#include "support/places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *file_text(const char *name)
{
    FILE *f = fopen(source_file(name), "rb");
    assert_non_null(f);
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    size_t n = fread(text, 1, (1 << 20) - 1, f);
    assert_true(n > 0 && feof(f));
    fclose(f);
    return text;
}

static void graphs_in_the_documentation_read_and_print_as_themselves(void **state)
{
    char *text = file_text("docs/ir.md");
    int n = 0;
    static const char fence[] = "\n```graph\n";
    for (char *at = text; (at = strstr(at, fence)) != NULL; n++) {
        at += sizeof fence - 1;
        char *end = strstr(at, "```");
        assert_non_null(end);
        *end = '\0';
        assert_round_trip(at);
        at = end + 3;
    }
    assert_int_equal(n, 3);
    free(text);
}

static const char *const kinds[] = {
    [OPKIND_LEAF] = "leaf",        [OPKIND_VIEW] = "view",
    [OPKIND_JOIN] = "join",        [OPKIND_GATHER] = "gather",
    [OPKIND_STEPS] = "recurrence", [OPKIND_CONTRACT] = "contraction",
    [OPKIND_DENSE] = "dense",      [OPKIND_MAP] = "elementwise",
    [OPKIND_REDUCE] = "reduction"};
static const char *const rules[] = {
    [RULE_ANY] = "any",       [RULE_FLOAT] = "float",   [RULE_REAL] = "real",
    [RULE_RFLOAT] = "rfloat", [RULE_NUMBER] = "number", [RULE_ORDER] = "order",
    [RULE_EQUAL] = "equal",   [RULE_LOGIC] = "logic",   [RULE_SELECT] = "select",
    [RULE_PART] = "part",     [RULE_CAST] = "cast"};

/* The row of one op; '|' would end a cell of the table and is written as HTML. */
static void op_row(Op op, char *row, size_t size)
{
    const OpInfo *info = op_info(op);
    char operands[16], meaning[200] = "";
    snprintf(operands, sizeof operands, "%d", info->arity);
    if (info->arity == ARITY_ANY) {
        strcpy(operands, "1 or more");
    }
    size_t n = 0;
    bool folds = info->kind == OPKIND_CONTRACT || info->kind == OPKIND_REDUCE;
    const char *text = info->kind == OPKIND_MAP ? info->c
                       : folds                  ? op_info(info->by[0])->name
                                                : "";
    for (const char *c = text; *c != '\0' && n + 8 < sizeof meaning; c++) {
        n += (size_t)snprintf(meaning + n, sizeof meaning - n, "%.*s", *c == '|' ? 6 : 1,
                              *c == '|' ? "&#124;" : c);
    }
    snprintf(row, size, "| `%s` | %s | %s | %s | %s%s%s |\n", info->name, kinds[info->kind],
             operands, rules[info->rule], n > 0 ? "<code>" : "", meaning,
             n > 0 ? "</code>" : "");
}

static void the_documented_operations_are_the_op_table(void **state)
{
    char *text = file_text("docs/ir.md");
    char row[400];
    int missing = 0, rows = 0;
    for (int op = 0; op < OP_COUNT; op++) {
        op_row((Op)op, row, sizeof row);
        if (strstr(text, row) == NULL) {
            print_error("missing: %s", row);
            missing++;
        }
    }
    assert_int_equal(missing, 0);
    char *table = strstr(text, "| operation | kind |");
    assert_non_null(table);
    for (char *at = table; (at = strstr(at, "\n| `")) != NULL; at++) {
        rows++;
    }
    assert_int_equal(rows, OP_COUNT);
    free(text);
}

TESTS(TEST(graphs_in_the_documentation_read_and_print_as_themselves),
      TEST(the_documented_operations_are_the_op_table))
