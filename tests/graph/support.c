/* SPDX-License-Identifier: Apache-2.0 */
/* Dumps in and out for the tests of graph. */
#include "graph/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

Bench *bench_new(void)
{
    Bench *b = calloc(1, sizeof *b);
    assert_non_null(b);
    ctx_init(&b->ctx);
    return b;
}

void bench_free(Bench *b)
{
    ctx_release(&b->ctx);
    free(b);
}

uint32_t bench_source(Bench *b, const char *text)
{
    return source_add(&b->ctx.sources, "test.dump", str_from(text), (Span){0, 0, 0});
}

const char *bench_messages(Bench *b)
{
    Text out;
    text_init(&out, &b->ctx.arena);
    diags_render(&b->ctx.diags, &out, false);
    return out.at;
}

Module *bench_module(Bench *b, const char *text)
{
    Module *m = module_read(&b->ctx, bench_source(b, text));
    if (m == NULL) {
        print_error("%s", bench_messages(b));
    }
    assert_non_null(m);
    return m;
}

static const char *kernel_text(Bench *b, const char *lines)
{
    return str_format(&b->ctx.arena, "tdsl-dump graph 1\n\nkernel k {\n%s\n}\n", lines);
}

Graph *bench_graph(Bench *b, const char *lines)
{
    return bench_module(b, kernel_text(b, lines))->graphs.at[0];
}

const char *bench_dump(Bench *b, const Graph *g)
{
    Text out;
    text_init(&out, &b->ctx.arena);
    graph_dump(g, &out);
    return out.at;
}

void assert_refused(const char *text, const char *message)
{
    Bench *b = bench_new();
    Module *m = module_read(&b->ctx, bench_source(b, text));
    const char *messages = bench_messages(b);
    if (m != NULL || strstr(messages, message) == NULL) {
        print_error("for:\n%.2000s\nexpected: %s\ngot: %s\n", text, message, messages);
        fail();
    }
    assert_true(diags_exit_code(&b->ctx.diags) != 0);
    bench_free(b);
}

void assert_lines_refused(const char *lines, const char *message)
{
    Bench *b = bench_new();
    assert_refused(kernel_text(b, lines), message);
    bench_free(b);
}

void assert_round_trip(const char *text)
{
    Bench *b = bench_new();
    Module *m = bench_module(b, text);
    Text out;
    text_init(&out, &b->ctx.arena);
    module_dump(m, &out);
    assert_string_equal(out.at, text);
    bench_free(b);
}

/* ---- running ---- */

Tensor *bench_tensor(Bench *b, DType dtype, const char *text)
{
    int64_t extent[RANK_LIMIT];
    uint32_t rank = 0;
    char *at = (char *)(uintptr_t)text;
    assert_int_equal(*at, '[');
    at++;
    while (*at != ']') {
        extent[rank++] = strtoll(at, &at, 10);
        at += *at == ',';
    }
    at++;
    Tensor *t = tensor_new(&b->ctx, &b->ctx.arena, dtype, rank, extent);
    assert_non_null(t);
    for (int64_t i = 0; i < t->count; i++) {
        Number v = {.dtype = dtype};
        char *end = at;
        if (dtype_is_exact(dtype)) {
            v.i = strtoll(at, &end, 10);
        } else {
            v.re = strtod(at, &end);
            if (dtype_is_complex(dtype)) {
                v.im = strtod(end, &end);
            }
        }
        assert_true(end != at);
        at = end;
        tensor_set(t, i, v);
    }
    return t;
}

const char *bench_print(Bench *b, const Tensor *t)
{
    Text out;
    text_init(&out, &b->ctx.arena);
    text_char(&out, '[');
    for (uint32_t d = 0; d < t->rank; d++) {
        text_printf(&out, "%s%lld", d == 0 ? "" : ",", (long long)t->extent[d]);
    }
    text_char(&out, ']');
    for (int64_t i = 0; i < t->count; i++) {
        Number v = tensor_get(t, i);
        if (dtype_is_exact(v.dtype)) {
            text_printf(&out, " %lld", (long long)v.i);
        } else if (dtype_is_complex(v.dtype)) {
            text_printf(&out, " %.9g %.9g", v.re, v.im);
        } else {
            if (isnan(v.re)) {
                text_put(&out, " nan");
            } else {
                text_printf(&out, " %.9g", v.re);
            }
        }
    }
    return out.at;
}

Tensor **bench_eval(Bench *b, const Graph *g, const int64_t *dims, const char *const *args)
{
    Tensor **tensors = ARENA_ARRAY(&b->ctx.arena, g->params.n, Tensor *);
    for (uint32_t k = 0; k < g->params.n; k++) {
        tensors[k] = bench_tensor(b, g->params.at[k].dtype, args[k]);
    }
    Tensor **results = ARENA_ARRAY(&b->ctx.arena, g->results.n, Tensor *);
    return graph_eval(&b->ctx, &b->ctx.arena, g, dims, tensors, results) ? results : NULL;
}

void assert_evaluates(const char *lines, const char *const *args, const char *expected)
{
    Bench *b = bench_new();
    const Graph *g = bench_graph(b, lines);
    Tensor **results = bench_eval(b, g, NULL, args);
    if (results == NULL) {
        print_error("%s", bench_messages(b));
    }
    assert_non_null(results);
    const char *got = bench_print(b, results[0]);
    if (strcmp(got, expected) != 0) {
        print_error("for: %s\n", lines);
    }
    assert_string_equal(got, expected);
    bench_free(b);
}
