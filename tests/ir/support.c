/* SPDX-License-Identifier: Apache-2.0 */
/* Dumps in and out for the tests of ir. */
#include "ir/support.h"

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
