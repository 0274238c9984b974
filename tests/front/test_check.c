/* SPDX-License-Identifier: Apache-2.0 */
/* What goldens cannot show: messages come once and without followers, sizes stay in proportion,
 * and includes go through the caller. The texts of messages are in tests/golden/diag. */
#include <stdio.h>
#include <string.h>

#include "front/check.h"
#include "front/equation.h"
#include "support/test.h"

static const Program *check_with(Ctx *c, const char *text, const FrontOptions *o)
{
    return program_check(c, source_add(&c->sources, "main.tdsl", str_from(text), (Span){0}), o);
}

/* The program has exactly these errors, given as codes in the order in which they are found. */
static void assert_errors(const char *text, const char *codes)
{
    Ctx c;
    ctx_init(&c);
    (void)check_with(&c, text, NULL);
    Text all;
    text_init(&all, &c.arena);
    for (uint32_t k = 0; k < c.diags.list.n; k++) {
        if (c.diags.list.at[k]->severity != SEVERITY_WARNING) {
            text_printf(&all, "%s%s", all.n > 0 ? " " : "",
                        diag_code_text(c.diags.list.at[k]->code));
        }
    }
    assert_string_equal(all.n > 0 ? all.at : "", codes);
    ctx_release(&c);
}

static void poison_never_causes_a_second_message(void **state)
{
    assert_errors("kernel f(A: f64[n]) -> (R: f64[n]) { T[i] = nope[i]; U[i] = T[i] * A[i]; "
                  "V[i] = exp(U[i]) + T[i]; R = einsum(\"i->i\", V); }",
                  "E0201");
    assert_errors("kernel f(A: f65[n]) -> (R: f64[n]) { R[i] = A[i] + 1; S[j] = A[i,j]; }",
                  "E0201");
    assert_errors("const c = 1 / 0; kernel f(A: f64[n]) -> (R: f64[n]) { R[i] = c * A[i]; }",
                  "E0104");
    assert_errors("dim d = -1; kernel f(A: f64[d]) -> (R: f64[d]) { R = A; }", "E0211");
    assert_errors("kernel f(A: f64[n]) -> (R: f64[n]) { T[i] = A[i] +; R[i] = T[i]; }",
                  "E0101");
    assert_errors("kernel f(A: f64[n]) -> (R: f64[n]) { R[i] += A[i]; S[i] = R[i] * R[i]; }",
                  "E0214");
    assert_errors("kernel f(A: f64[n], B: f64[m]) -> (R: f64[n], Q: f64) { T[i] = A[i] + B[i]; "
                  "R[i] = T[i]; Q = T[i] * T[i]; }",
                  "E0203");
}

static void several_kernels_report_their_own_mistakes(void **state)
{
    assert_errors("kernel f(A f64) { } kernel g(A: f64) -> (R: f64) { R = B; } "
                  "kernel h(A: f64) -> (R: f64) { R = A A; } kernel h2(A: f64) -> (R: f64) { }",
                  "E0101 E0101 E0201 E0209");
}

static void both_scopes_of_an_index_are_apart(void **state)
{
    assert_errors("kernel f(A: f64[n, m], B: f64[n, k]) -> (R: f64[n], S: f64[n, n]) {"
                  " R[i] = sum[j](A[i,j]) / sum[j](B[i,j]);"
                  " S[i,j] = A[i,p] * A[j,p] + B[i,p] * B[j,p]; }",
                  "");
    assert_errors("kernel f(A: f64[n, m]) -> (R: f64[n]) { R[i] = sum[j](A[i,j]) * A[i,j]; }",
                  "");
    assert_errors("kernel f(A: f64[n, m]) -> (R: f64[n]) { R[i] = sum[j](sum[j](A[i,j])); }",
                  "E0210");
}

static void an_extent_of_1_stretches_to_that_of_other_terms(void **state)
{
    assert_errors("kernel f(x: f64[1], y: f64[3], z: f64[3]) -> (R: f64) {"
                  " R = z[v]*z[v] - x[v]*x[v] + y[v]*y[v]; }",
                  "");
    assert_errors("kernel f(x: f64[1], y: f64[3], z: f64[n]) -> (R: f64) {"
                  " R = z[v]*z[v] - x[v]*x[v] + y[v]*y[v]; }",
                  "E0203");
    assert_errors("kernel f(x: f64[1], y: f64[3]) -> (R: f64) { R = x[v] + x[v]*y[v]; }",
                  "E0212");
    assert_errors("kernel f(x: f64[1], y: f64[1]) -> (R: f64) { R = x[v] + x[v]*y[v]; }", "");
}

typedef struct File {
    const char *path, *text;
} File;

static IncludeStatus read_from(void *user, const char *path, Str *text, const char **why)
{
    for (const File *f = user; f->path != NULL; f++) {
        if (strcmp(f->path, path) == 0) {
            *why = "it is a folder";
            *text = str_from(f->text == NULL ? "" : f->text);
            return f->text == NULL ? INCLUDE_REFUSED : INCLUDE_READ;
        }
    }
    return INCLUDE_ABSENT;
}

static uint32_t include_errors(File *files, const char *text)
{
    Ctx c;
    ctx_init(&c);
    const char *dirs[] = {"lib", "other"};
    FrontOptions o = {
        .reader = read_from, .user = files, .include_dirs = dirs, .n_include_dirs = 2};
    (void)check_with(&c, text, &o);
    uint32_t n = c.diags.n_errors;
    ctx_release(&c);
    return n;
}

static void includes_are_found_once_and_never_outside_their_roots(void **state)
{
    File files[] = {{"a.tdsl", "const a = 2; include \"sub/b.tdsl\";"},
                    {"sub/b.tdsl", "include \"c.tdsl\"; const b = 3;"},
                    {"sub/c.tdsl", "const c = 4;"},
                    {"other/far.tdsl", "const far = 5;"},
                    {"loop.tdsl", "include \"loop.tdsl\";"},
                    {"folder", NULL},
                    {"../up.tdsl", "const up = 1;"},
                    {NULL, NULL}};
    const char *kernel =
        "kernel f(A: f64[n]) -> (R: f64[n]) { R[i] = a * b * c * far * A[i]; }";
    char text[512];
    snprintf(text, sizeof text,
             "include \"a.tdsl\"; include \"far.tdsl\"; include \"a.tdsl\"; %s", kernel);
    assert_int_equal(include_errors(files, text), 0);
    const char *bad[] = {"loop.tdsl",     "folder", "../up.tdsl", "/a.tdsl",
                         "sub/../a.tdsl", "",       "none"};
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        snprintf(text, sizeof text,
                 "include \"%s\"; kernel f(A: f64[n]) -> (R: f64[n]) { R = A; }", bad[k]);
        assert_int_equal(include_errors(files, text), 1);
    }
}

static void open_extents_of_an_equation_agree(void **state)
{
    Ctx c;
    ctx_init(&c);
    const Dim a[] = {DIM_WILD(0), DIM_WILD(0)}, b[] = {{-1, 3}, DIM_WILD(0)};
    const TensorType operand[] = {{DTYPE_F32, 2, a}, {DTYPE_F32, 2, b}};
    Equation e = {source_add(&c.sources, "-e", str_from("ij,jQ->iQ"), (Span){0}), 2, operand,
                  DTYPE_F32, "mm"};
    const Program *p = equation_check(&c, &e);
    assert_non_null(p);
    const CheckedKernel *k = p->kernels.at[0];
    assert_string_equal(
        k->signature,
        "kernel mm(A: f32[i, 3], B: f32[3, d_Q]) -> (R: f32[i, d_Q]) = einsum(\"ij,jQ->iQ\")");
    assert_int_equal(k->dims.list.n, 2);
    ctx_release(&c);
}

TESTS(TEST(poison_never_causes_a_second_message),
      TEST(several_kernels_report_their_own_mistakes), TEST(both_scopes_of_an_index_are_apart),
      TEST(an_extent_of_1_stretches_to_that_of_other_terms),
      TEST(includes_are_found_once_and_never_outside_their_roots),
      TEST(open_extents_of_an_equation_agree))
