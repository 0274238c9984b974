/* SPDX-License-Identifier: Apache-2.0 */
/* The text of clauses and hints (loop_dump.h). */
#include "loop/clauses.h"
#include "loop/loop_dump.h"

void clauses_dump(const Kernel *k, const Stmt *s, Text *out)
{
    Clauses has;
    clauses_of(k, s, &has);
    for (const Clause *c = has.at; c < has.at + has.n; c++) {
        text_printf(out, " %s", c->word);
        if (c->number != NULL) {
            text_printf(out, " %lld", (long long)*c->number);
        } else if (c->index != NULL) {
            text_char(out, ' ');
            dump_name(out, k->vars.at[s->index[*c->index - 1].var].name);
        } else if (c->at != NULL) {
            text_char(out, ' ');
            loop_text_access(k, *c->buf - 1, *c->at, out);
        } else if (c->buf != NULL) {
            text_put(out, " @");
            dump_name(out, k->bufs.at[*c->buf - 1].name);
        }
        for (uint32_t i = 0; c->loop != NULL && i < *c->n_loops; i++) {
            text_put(out, i == 0 ? " $" : ", $");
            dump_name(out, k->vars.at[(*c->loop)[i]].name);
        }
    }
}

/* 8, 0.5 */
static void put_count(double x, Text *out)
{
    bool whole = x < 1e15 && (double)(int64_t)x == x;
    dump_number(out, whole ? number_int(DTYPE_I64, (int64_t)x) : number_real(DTYPE_F64, x));
}

void hints_dump_threads(const Kernel *k, const Threads *threads, Text *out)
{
    for (uint32_t i = 0; threads != NULL && i < threads->n; i++) {
        text_put(out, i == 0 ? " threads " : " + ");
        put_count(threads->term[i].number, out);
        for (uint32_t f = 0; f < threads->term[i].n; f++) {
            WorthFactor x = threads->term[i].factor[f];
            text_put(out, x.most > 0 ? "*min(" : "*");
            dump_dim(out, &k->dims, dim_open(x.dim));
            if (x.most > 0) {
                text_printf(out, ", %lld)", (long long)x.most);
            }
        }
    }
    text_put(out, threads != NULL && threads->dealt ? " dealt" : "");
    if (threads != NULL && threads->cut > 0) {
        text_printf(out, " cut %lld", (long long)threads->cut);
    }
    text_put(out, threads != NULL && threads->flat ? " flat" : "");
}

void hints_dump_alloc(const Kernel *k, const Prefetch *p, Text *out)
{
    if (p == NULL) {
        return;
    }
    text_put(out, " prefetch ");
    loop_text_access(k, p->buf, p->at, out);
    if (p->past != NULL) {
        text_put(out, " past $");
        dump_name(out, k->vars.at[p->var].name);
        text_char(out, ' ');
        loop_text_access(k, p->buf, p->past, out);
    }
    for (uint32_t i = 0; i < p->n; i++) {
        text_printf(out, "%s%lld by %lld", i == 0 ? " groups [" : ", ", (long long)p->count[i],
                    (long long)p->step[i]);
    }
    text_printf(out, "] lines by %lld turn %lld reach %lld", (long long)p->each,
                (long long)p->turn, (long long)p->reach);
}
