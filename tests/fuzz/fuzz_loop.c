/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a dump of kernels. What reads prints as a text that reads and prints the same,
 * numbering it anew keeps it well-formed, and when it is small it runs without leaving a
 * buffer: that was proved. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "loop/copy.h"
#include "loop/loop.h"
#include "loop/loop_eval.h"
#include "loop/loop_text.h"
#include "loop/loop_verify.h"

#define EXTENT     5 /* of open dims */
#define WORK_LIMIT 20000

static const char *module_text(Ctx *c, const KernelModule *m)
{
    Text out;
    text_init(&out, &c->arena);
    kernel_module_dump(m, &out);
    return out.at;
}

static void check_round_trip(Ctx *c, const KernelModule *m)
{
    const char *once = module_text(c, m);
    uint32_t source = source_add(&c->sources, "again", str_from(once), (Span){0, 0, 0});
    const KernelModule *again = kernel_module_read(c, source);
    MUST(again != NULL);
    MUST(strcmp(module_text(c, again), once) == 0);
}

static int64_t extent(Dim d)
{
    return d.sym < 0 ? d.n : EXTENT;
}

/* At most so many values; starts may be below 0, but not far without being refused when it
 * runs. */
static int64_t range_size(const Range *r)
{
    int64_t size = r->span > 0 ? r->span : INT64_MAX;
    if (r->clipped && r->start.n == 0 && r->start.base >= 0 && extent(r->limit) < size) {
        size = extent(r->limit);
    }
    return size;
}

static int64_t work_of(const Kernel *k, Stmt *const *body, uint32_t n)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *s = body[i];
        int64_t work = 1;
        if (s->kind == STMT_FOR) {
            work = sat_mul(range_size(&s->range), 1 + work_of(k, s->body, s->n_body));
        } else if (s->kind == STMT_BLOCK) {
            work = 1 + work_of(k, s->body, s->n_body);
        } else if (s->kind == STMT_ALLOC) {
            for (uint32_t d = 0; d < k->bufs.at[s->buf].rank; d++) {
                work = sat_mul(work, extent(k->bufs.at[s->buf].extent[d]) + 1);
            }
        } else {
            for (uint32_t x = 0; x < s->n_index; x++) {
                work = sat_mul(work, range_size(&s->index[x].range));
            }
        }
        sum = sat_add(sum, work);
    }
    return sum;
}

static void check_runs(Ctx *c, const Kernel *k)
{
    int64_t *dims = ARENA_ARRAY(&c->arena, k->dims.list.n, int64_t);
    Tensor **args = ARENA_ARRAY(&c->arena, k->args.n, Tensor *);
    Tensor **results = ARENA_ARRAY(&c->arena, k->args.n, Tensor *);
    for (uint32_t d = 0; d < k->dims.list.n; d++) {
        dims[d] = EXTENT;
    }
    for (uint32_t a = 0; a < k->args.n; a++) {
        const Buffer *b = &k->bufs.at[k->args.at[a].buf];
        int64_t shape[RANK_LIMIT], count = 1;
        for (uint32_t d = 0; d < b->rank; d++) {
            shape[d] = extent(b->extent[d]);
            count = sat_mul(count, shape[d] + 1);
        }
        if (count > WORK_LIMIT) {
            return;
        }
        args[a] = tensor_new(c, &c->arena, b->dtype, b->rank, shape);
    }
    if (!loop_eval(c, &c->arena, k, dims, args, results)) {
        const Diagnostic *last = c->diags.list.at[c->diags.list.n - 1];
        MUST(strstr(last->message, "outside the buffer") == NULL);
        MUST(strstr(last->message, "before its alloc") == NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Ctx c;
    ctx_init(&c);
    Str text = {str_dup(&c.arena, (Str){(const char *)data, size}), size};
    uint32_t source = source_add(&c.sources, "fuzz", text, (Span){0, 0, 0});
    const KernelModule *m = kernel_module_read(&c, source);
    MUST((m == NULL) == (diags_exit_code(&c.diags) != 0));
    if (m != NULL) {
        check_round_trip(&c, m);
        for (uint32_t i = 0; i < m->kernels.n; i++) {
            const Kernel *k = m->kernels.at[i];
            MUST(loop_verify(&c, kernel_numbered(&c.arena, k), "number"));
            if (work_of(k, k->body, k->n_body) < WORK_LIMIT) {
                check_runs(&c, k);
            }
        }
    }
    ctx_release(&c);
    return 0;
}
