/* SPDX-License-Identifier: Apache-2.0 */
/* Which graph a program becomes: build/NAME.tdsl against build/NAME.graph, before any pass; and that the checked
 * program, printed, becomes the same graph. Target `bless` writes the .graph files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/build.h"
#include "support.h"
#include "support/golden.h"

#define FOLDER "tests/graph/build/"

static IncludeStatus read_include(void *user, const char *path, Str *text, const char **why)
{
    Bench *b = user;
    (void)why;
    text->at = file_text(&b->ctx.arena, str_format(&b->ctx.arena, FOLDER "%s", path), &text->n);
    return text->at == NULL ? INCLUDE_ABSENT : INCLUDE_READ;
}

static Program *check(Bench *b, const char *name, const char *text, const FrontDefine *d,
                      uint32_t n)
{
    FrontOptions o = {.defines = d, .n_defines = n, .reader = read_include, .user = b};
    uint32_t source = source_add(&b->ctx.sources, name, str_from(text), (Span){0});
    Program *p = program_check(&b->ctx, source, &o);
    if (b->ctx.diags.n_errors > 0) {
        fail_msg("%s", bench_messages(b));
    }
    return p;
}

/* The dump of the module without places, which differ between a source and its print (as do the names of what
 * einsum strings inside an expression give), and without what labels are called, which is not what is computed. */
static const char *dump(Bench *b, const Program *p, bool names)
{
    Module *m = module_build(&b->ctx, &b->ctx.arena, p, NULL);
    assert_non_null(m);
    for (uint32_t k = 0; k < m->graphs.n; k++) {
        Graph *g = m->graphs.at[k];
        assert_true(graph_verify(&b->ctx, g, "build"));
        g->span = (Span){0};
        g->signature = "";
        g->statements = (SourceStatements){0, NULL};
        for (uint32_t n = 0; n < g->nodes.n; n++) {
            g->nodes.at[n].span = (Span){0};
            g->nodes.at[n].name = names ? g->nodes.at[n].name : NULL;
            g->nodes.at[n].label_name = NULL;
        }
        for (uint32_t n = 0; n < g->params.n; n++) {
            g->params.at[n].span = (Span){0};
        }
        for (uint32_t n = 0; n < g->results.n; n++) {
            g->results.at[n].span = (Span){0};
        }
        for (uint32_t n = 0; n < g->dims.list.n; n++) {
            g->dims.list.at[n].span = (Span){0};
        }
    }
    Text t;
    text_init(&t, &b->ctx.arena);
    module_dump(m, &t);
    return t.at;
}

static void golden(const char *name, const FrontDefine *d, uint32_t n_defines)
{
    Bench *b = bench_new();
    size_t n = 0;
    const char *file = str_format(&b->ctx.arena, "%s.tdsl", name);
    const char *text =
        file_text(&b->ctx.arena, str_format(&b->ctx.arena, FOLDER "%s", file), &n);
    assert_non_null(text);
    Program *p = check(b, file, text, d, n_defines);
    assert_golden(&b->ctx.arena, str_format(&b->ctx.arena, FOLDER "%s.graph", name),
                  dump(b, p, true));
    const char *graph = dump(b, p, false);

    Text printed, again;
    text_init(&printed, &b->ctx.arena);
    program_dump(&b->ctx, p, &printed);
    Program *q = check(b, file, printed.at, NULL, 0);
    text_init(&again, &b->ctx.arena);
    program_dump(&b->ctx, q, &again);
    assert_same_text(again.at, printed.at);
    assert_same_text(dump(b, q, false), graph);

    Text ast;
    text_init(&ast, &b->ctx.arena);
    ast_dump(&p->ast, &ast);
    Program *r = check(b, file, ast.at, d, n_defines);
    Text ast_again;
    text_init(&ast_again, &b->ctx.arena);
    ast_dump(&r->ast, &ast_again);
    assert_same_text(ast_again.at, ast.at);
    assert_same_text(dump(b, r, false), graph);
    bench_free(b);
}

static void products_become_einsums_and_maps(void **state)
{
    golden("products", NULL, 0);
}

static void updates_scale_what_they_update(void **state)
{
    golden("updates", NULL, 0);
}

static void sums_run_in_the_type_of_the_result(void **state)
{
    golden("dtypes", NULL, 0);
}

static void every_elementwise_op_has_a_spelling(void **state)
{
    golden("elementwise", NULL, 0);
}

static void einsum_strings_and_whole_tensors_mix(void **state)
{
    golden("whole", NULL, 0);
}

static void dims_are_bound_by_defines_and_includes(void **state)
{
    const FrontDefine d[] = {{"v", 7, false}, {"q", 3, false}};
    golden("dims", d, 2);
}

static void the_tour_of_the_language_builds(void **state)
{
    golden("tour", NULL, 0);
}

static void public_programs_build(void **state)
{
    golden("programs", NULL, 0);
}

static const char *product_kernel(Bench *b, const char *type, const char *left,
                                  const char *right)
{
    return str_format(
        &b->ctx.arena,
        "kernel f(A: f64[n, m], B: f64[m, k], B2: f64[k, n], C: f64[n, n], s: f64) -> "
        "(R: f64%s) { %s = %s; }",
        type, left, right);
}

static void both_notations_give_the_same_graph(void **state)
{
    static const char *const pairs[][2] = {
        {"einsum(\"ij,jk->ik\", A, B)", "A[i,p] * B[p,k]"},
        {"einsum(\"ij,jk->k\", A, B)", "A[i,p] * B[p,k]"},
        {"einsum(\"ij->ji\", A)", "A[i,j]"},
        {"einsum(\"ij,ij->ij\", A, A)", "A[i,j] * A[i,j]"},
        {"einsum(\"ij->\", A)", "A[i,j]"},
        {"einsum(\"ii->\", C)", "C[i,i]"},
        {"einsum(\"ii->i\", C)", "C[i,i]"},
        {"einsum(\",ij->ij\", s, A)", "s * A[i,j]"},
        {"einsum(\"ij,jk,kl->il\", A, B, B2)", "A[i,j] * B[j,k] * B2[k,l]"},
    };
    static const char *const left[] = {"R[i,k]", "R[k]", "R[j,i]", "R[i,j]", "R",
                                       "R",      "R[i]", "R[i,j]", "R[i,l]"};
    static const char *const type[] = {"[n, k]", "[k]", "[m, n]", "[n, m]", "",
                                       "",       "[n]", "[n, m]", "[n, n]"};
    for (size_t k = 0; k < sizeof pairs / sizeof pairs[0]; k++) {
        Bench *b = bench_new();
        b->ctx.diags.no_warnings = true;
        const char *strings = product_kernel(b, type[k], "R", pairs[k][0]);
        const char *indices = product_kernel(b, type[k], left[k], pairs[k][1]);
        const char *first = dump(b, check(b, "f", strings, NULL, 0), true);
        assert_same_text(first, dump(b, check(b, "f", indices, NULL, 0), true));
        bench_free(b);
    }
}

TESTS(TEST(products_become_einsums_and_maps), TEST(updates_scale_what_they_update),
      TEST(sums_run_in_the_type_of_the_result), TEST(every_elementwise_op_has_a_spelling),
      TEST(einsum_strings_and_whole_tensors_mix), TEST(dims_are_bound_by_defines_and_includes),
      TEST(the_tour_of_the_language_builds), TEST(public_programs_build),
      TEST(both_notations_give_the_same_graph))
