/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as lines of a kernel's head, in terms of the dump language:
 *
 *     axes [r,c]                             of the mesh
 *     @A shard(r(0), c(1))                   of the program: how arguments lie
 *     leaves @A [64,64]                      in how many leaves these dimensions are dealt
 *     cut m over 0 in 64                     cut 0, 1, ...: an extent, an axis of the grid, leaves
 *     cut m over 0 in 64 with 0              both as pairs of leaves: a sum over both counts pairs of different ones twice
 *     cut 2 over 0 in 2 sliced               of slices: a leaf is one of this cut, and ...
 *     cut 2 over 0 in 2 sliced with 0        ... one of each that is sliced with it
 *     instead [n] over [0] costs 145         for those who read: the next best cuts, in percent of the chosen ones' time
 *     value %0 : f64[m,k] cut [0,_]          what a rank holds, the cut of each dimension
 *     value %2 : f64[] cut [] fold reduce.sum over [0]
 *     value %3 : f64[m,n] cut [0,1] spread 0 over [2]   rows of a block are dealt once more, over the axis of cut 2
 *     read @A -> %0
 *     read @B -> %1 by leaf                  what each call of the local kernel needs, when it needs it
 *     local gemm_part0 dims [block(0),k,n] values [%0,%1,%2] over [0]
 *     reduce %2 -> %3
 *     write %3 -> @C
 */
#include <string.h>

#include "dist/parts.h"

/* ---- what lines say without being read ---- */

static bool begins(const char *line, const char *word)
{
    return strncmp(line, word, strlen(word)) == 0;
}

Str dist_owner(const TextLines *lines)
{
    static const char word[] = "local of ";
    return lines->n > 0 && begins(lines->at[0], word) ? str_from(lines->at[0] + sizeof word - 1)
                                                      : (Str){0};
}

bool dist_planned(const TextLines *lines)
{
    return lines->n > 0 && begins(lines->at[lines->n - 1], "write ");
}

bool dist_wanted(const TextLines *lines)
{
    return lines->n > 0 && dist_owner(lines).at == NULL && !dist_planned(lines);
}

DistHead dist_head(Arena *arena, const Graph *g)
{
    struct DistHeadArg *arg =
        ARENA_ARRAY(arena, (size_t)g->params.n + g->results.n + 1, struct DistHeadArg);
    uint32_t n = 0;
    for (uint32_t k = 0; k < g->params.n; k++) {
        const Param *p = &g->params.at[k];
        arg[n++] = (struct DistHeadArg){p->name, false, p->dtype, p->rank, p->shape};
    }
    for (uint32_t k = 0; k < g->results.n; k++) {
        const Result *r = &g->results.at[k];
        const Node *node = graph_node(g, r->node);
        bool shaped = r->shape != NULL;
        if (r->param < 0) {
            arg[n++] =
                (struct DistHeadArg){r->name, true, node->dtype, shaped ? r->rank : node->rank,
                                     shaped ? r->shape : node->shape};
        }
    }
    return (DistHead){.span = g->span, .dims = &g->dims, .n_args = n, .arg = arg};
}

/* ---- reading leaf by leaf ---- */

/* How often the value is among those that a step has. */
static uint32_t count_uses(const DistStep *s, uint32_t value)
{
    uint32_t n = (s->kind == DIST_REDUCE || s->kind == DIST_WRITE) && s->value == value ? 1 : 0;
    for (uint32_t k = 0; s->kind == DIST_LOCAL && k < s->n_values; k++) {
        n += s->values[k] == value ? 1 : 0;
    }
    return n;
}

bool can_read_by_leaf(const DistPlan *plan, const DistStep *read)
{
    const DistValue *v = &plan->values.at[read->value];
    const DistStep *reader = NULL;
    uint32_t uses = 0, dims = 0;
    for (uint32_t s = 0; s < plan->steps.n; s++) {
        uint32_t n = count_uses(&plan->steps.at[s], read->value);
        reader = n > 0 ? &plan->steps.at[s] : reader;
        uses += n;
    }
    if (uses != 1 || reader->kind != DIST_LOCAL || reader->n_over != 1 ||
        plan->arg[read->arg].partial) {
        return false;
    }
    for (uint32_t d = 0; d < v->rank; d++) {
        dims += v->cut[d] == (int32_t)reader->over[0] ? 1 : 0;
        if (v->cut[d] >= 0 &&
            (plan->cuts.at[v->cut[d]].mate > 0 || plan->cuts.at[v->cut[d]].group > 0)) {
            return false;
        }
    }
    return dims == 1;
}

/* ---- writing ---- */

typedef struct Lines {
    Arena *arena;
    VEC(const char *) list;
    Text line;
} Lines;

static void end_line(Lines *l)
{
    vec_push(l->arena, &l->list, l->line.at);
    text_init(&l->line, l->arena);
}

static void put_axis(Text *out, const DistPlan *plan, uint32_t axis)
{
    Sym name = plan->axis[axis];
    if (name == NULL) {
        text_char(out, '_');
    } else if (str_eq_cstr((Str){name->text, name->n}, "_")) {
        text_put(out, "\"_\""); /* a program may call it so */
    } else {
        dump_name(out, name);
    }
}

static void put_numbers(Text *out, const char *word, uint32_t n, const uint32_t *number,
                        const char *before)
{
    text_printf(out, " %s [", word);
    for (uint32_t k = 0; k < n; k++) {
        text_printf(out, "%s%s%u", k > 0 ? "," : "", before, number[k]);
    }
    text_char(out, ']');
}

static void put_layout(Text *out, const DistPlan *plan, const DistArg *arg)
{
    text_char(out, '@');
    dump_name(out, arg->name);
    for (uint32_t k = 0; k < arg->n_pieces; k++) {
        const DistPiece *piece = &arg->piece[k];
        text_put(out, k == 0 ? " shard(" : ", ");
        if (plan->axis[piece->axis] == NULL) {
            text_printf(out, "%u", piece->dim);
        } else {
            dump_name(out, plan->axis[piece->axis]);
            text_printf(out, "(%u)", piece->dim);
        }
        text_put(out, k + 1 == arg->n_pieces ? ")" : "");
    }
    text_put(out, arg->partial ? " partial" : "");
}

static void put_value(Text *out, const DistHead *head, uint32_t number, const DistValue *v)
{
    text_printf(out, "value %%%u : ", number);
    dump_type(out, head->dims, v->dtype, v->rank, v->shape);
    text_put(out, " cut [");
    for (uint32_t d = 0; d < v->rank; d++) {
        text_put(out, d > 0 ? "," : "");
        if (v->cut[d] < 0) {
            text_char(out, '_');
        } else {
            text_printf(out, "%d", (int)v->cut[d]);
        }
    }
    text_char(out, ']');
    if (v->fold != OP_COPY) {
        text_printf(out, " fold %s", op_info(v->fold)->name);
    } else if (v->n_over > 0) {
        text_printf(out, " spread %u", v->spread);
    }
    if (v->fold != OP_COPY || v->n_over > 0) {
        put_numbers(out, "over", v->n_over, v->over, "");
    }
}

static void put_local(Text *out, const DistHead *head, const DistStep *s)
{
    text_put(out, "local ");
    dump_name(out, s->kernel);
    text_put(out, " dims [");
    for (uint32_t k = 0; k < s->n_dims; k++) {
        text_put(out, k > 0 ? "," : "");
        if (s->block[k] >= 0) {
            text_printf(out, "block(%d)", (int)s->block[k]);
        } else {
            dump_dim(out, head->dims, s->dim[k]);
        }
    }
    text_char(out, ']');
    put_numbers(out, "values", s->n_values, s->values, "%");
    put_numbers(out, "over", s->n_over, s->over, "");
}

static void put_step(Text *out, const DistHead *head, const DistPlan *plan, const DistStep *s)
{
    switch (s->kind) {
    case DIST_READ:
        text_put(out, "read @");
        dump_name(out, plan->arg[s->arg].name);
        text_printf(out, " -> %%%u%s", s->value, s->by_leaf ? " by leaf" : "");
        return;
    case DIST_WRITE:
        text_printf(out, "write %%%u -> @", s->value);
        dump_name(out, plan->arg[s->arg].name);
        return;
    case DIST_REDUCE:
        text_printf(out, "reduce %%%u -> %%%u", s->value, s->complete);
        return;
    case DIST_LOCAL:
        put_local(out, head, s);
        return;
    }
}

TextLines dist_write(Arena *arena, const DistHead *head, const DistPlan *plan)
{
    Lines l = {.arena = arena};
    text_init(&l.line, arena);
    for (uint32_t a = 0; a < plan->n_axes; a++) {
        text_put(&l.line, a == 0 ? "axes [" : ",");
        put_axis(&l.line, plan, a);
    }
    text_char(&l.line, ']');
    end_line(&l);
    for (uint32_t k = 0; k < plan->n_args; k++) {
        if (plan->arg[k].n_pieces > 0 || plan->arg[k].partial) {
            put_layout(&l.line, plan, &plan->arg[k]);
            end_line(&l);
        }
    }
    for (uint32_t k = 0; k < plan->n_args; k++) {
        const DistArg *arg = &plan->arg[k];
        for (uint32_t i = 0; i < arg->n_pieces; i++) {
            text_put(&l.line, i == 0 ? "leaves @" : ",");
            if (i == 0) {
                dump_name(&l.line, arg->name);
                text_put(&l.line, " [");
            }
            text_printf(&l.line, "%u", arg->piece[i].leaves);
        }
        if (arg->n_pieces > 0) {
            text_char(&l.line, ']');
            end_line(&l);
        }
    }
    for (uint32_t k = 0; k < plan->cuts.n; k++) {
        text_put(&l.line, "cut ");
        dump_dim(&l.line, head->dims, plan->cuts.at[k].extent);
        text_printf(&l.line, " over %u in %u", plan->cuts.at[k].axis, plan->cuts.at[k].leaves);
        if (plan->cuts.at[k].group > 0) {
            text_put(&l.line, " sliced");
        }
        if (plan->cuts.at[k].group > 0 && plan->cuts.at[k].group <= k) {
            text_printf(&l.line, " with %u", plan->cuts.at[k].group - 1);
        }
        if (plan->cuts.at[k].mate > 0 && plan->cuts.at[k].mate <= k) {
            text_printf(&l.line, " with %u", plan->cuts.at[k].mate - 1);
        }
        end_line(&l);
    }
    for (uint32_t k = 0; k < plan->others.n; k++) {
        const DistOther *other = &plan->others.at[k];
        text_put(&l.line, "instead [");
        for (uint32_t i = 0; i < other->n_cuts; i++) {
            text_put(&l.line, i > 0 ? "," : "");
            dump_dim(&l.line, head->dims, other->cut[i].extent);
        }
        text_put(&l.line, "] over [");
        for (uint32_t i = 0; i < other->n_cuts; i++) {
            text_printf(&l.line, "%s%u", i > 0 ? "," : "", other->cut[i].axis);
        }
        text_printf(&l.line, "] costs %u", other->percent);
        end_line(&l);
    }
    for (uint32_t k = 0; k < plan->values.n; k++) {
        put_value(&l.line, head, k, &plan->values.at[k]);
        end_line(&l);
    }
    for (uint32_t k = 0; k < plan->steps.n; k++) {
        put_step(&l.line, head, plan, &plan->steps.at[k]);
        end_line(&l);
    }
    return (TextLines){(uint32_t)l.list.n, l.list.at};
}
