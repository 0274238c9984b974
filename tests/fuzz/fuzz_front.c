/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a TDSL program, as far as its graphs. What is accepted builds well-formed graphs, and its tree and its
 * checked form print as texts that are accepted again and print the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "graph/build.h"

static const Program *check(Ctx *c, const char *text, size_t n)
{
    uint32_t source = source_add(&c->sources, "fuzz", (Str){text, n}, (Span){0, 0, 0});
    return program_check(c, source, NULL);
}

static const char *print(Ctx *c, const Program *p, bool checked)
{
    Text out;
    text_init(&out, &c->arena);
    if (checked) {
        program_dump(c, p, &out);
    } else {
        ast_dump(&p->ast, &out);
    }
    return out.at;
}

static void check_reads_back(Ctx *c, const Program *p, bool checked)
{
    const char *once = print(c, p, checked);
    const Program *again = check(c, once, strlen(once));
    if (c->diags.n_errors > 0 || strcmp(print(c, again, checked), once) != 0) {
        Text messages;
        text_init(&messages, &c->arena);
        diags_render(&c->diags, &messages, false);
        fprintf(stderr, "%s\n%s\n%s", once, print(c, again, checked), messages.at);
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Ctx c;
    ctx_init(&c);
    const char *text = str_dup(&c.arena, (Str){(const char *)data, size});
    const Program *p = check(&c, text, size);
    if (c.diags.n_errors == 0) {
        const Module *m = module_build(&c, &c.arena, p, NULL);
        MUST((m == NULL) == (c.diags.n_errors > 0));
        for (uint32_t k = 0; m != NULL && k < m->graphs.n; k++) {
            MUST(graph_verify(&c, m->graphs.at[k], "build"));
        }
        if (m != NULL) {
            check_reads_back(&c, p, false);
            check_reads_back(&c, p, true);
        }
    }
    Text out;
    text_init(&out, &c.arena);
    tokens_dump(&c, 1, &out);
    diags_render(&c.diags, &out, false);
    ctx_release(&c);
    return 0;
}
