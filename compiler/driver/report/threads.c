/* SPDX-License-Identifier: Apache-2.0 */
/* In words: which loops of a kernel threads share, and why others are not shared. */
#include "driver/report/report.h"
#include "graph/recurrence.h"
#include "nest/estimate.h"
#include "nest/leaves.h"
#include "nest/parallel.h"

typedef struct Words {
    const Nest *nest;
    const Machine *machine;
    GraphNames names;
    Arena *arena;
    Text shared, alone; /* what is shared; sentences about the rest */
} Words;

static void join(Text *out, const char *between, const char *words)
{
    text_printf(out, "%s%s", out->n > 0 ? between : "", words);
}

static const char *value_name(const Words *w, NodeRef n)
{
    return report_value_name(w->nest->graph, n, w->arena);
}

/* An outermost loop that is not parallel. */
static const char *loop_reason(const Words *w, uint32_t k)
{
    const NestItem *loop = &w->nest->items[k];
    NodeRef fold = nest_fold_without_leaves(w->nest, k);
    if (nest_is_slice(w->nest->graph, &w->nest->axes[loop->axis])) {
        return "its slices are added one after the other";
    }
    if (loop->online) {
        return "each iteration goes on from the maximum so far";
    }
    if (fold != NODE_NONE) {
        return str_format(w->arena, "%s folds over it, and is %s", value_name(w, fold),
                          nest_place_of(w->nest, fold) != fold ||
                                  graph_node(w->nest->graph, fold)->onto
                              ? "added to another value"
                              : "too large for a part of it in each iteration");
    }
    return "the nest does not say that it is parallel";
}

static void put_loop(Words *w, uint32_t k)
{
    const char *index = report_loop_index(w->nest, w->names, k);
    if (w->nest->items[k].parallel) {
        join(&w->shared, ", ", str_format(w->arena, "the loop over %s", index));
    } else {
        join(&w->alone, "; ",
             str_format(w->arena, "not the loop over %s: %s", index, loop_reason(w, k)));
    }
}

/* Is the leaf alone so much work that two threads are worth it? */
static bool is_worth_threads(const Words *w, NodeRef n)
{
    const Node *node = graph_node(w->nest->graph, n);
    LeafShape shape = nest_leaf_shape(w->arena, w->nest, n);
    double positions = THREADS_ELEMENT;
    for (uint32_t l = 0; l < node->n_labels; l++) {
        positions *= leaf_is_once(&shape, (int32_t)l)
                         ? 1.0
                         : (double)nest_typical(w->nest->graph, node->extent[l]);
    }
    return positions * w->machine->time.multiply_add >= 2 * w->machine->time.piece;
}

/* A value of a recurrence: threads share the loop over a batch around its steps, or loops of each step. */
static void put_steps(Words *w, NodeRef n)
{
    const Graph *g = w->nest->graph;
    const Recurrence *r = node_recurrence(g, graph_node(g, n));
    const char *name = value_name(w, n);
    if (r->batch) {
        GraphNames names = graph_names(w->arena, r->body);
        join(&w->shared, ", ",
             str_format(w->arena, "the loop over %s around the steps of %s",
                        report_loop_index(r->nest, names, 0), name));
    } else if (is_worth_threads(w, n)) {
        join(&w->alone, "; ",
             str_format(w->arena, "not the steps of %s: each goes on from the one before",
                        name));
    }
}

static void put_leaf(Words *w, NodeRef n, bool alone)
{
    if (graph_node(w->nest->graph, n)->op == OP_STEPS) {
        put_steps(w, n);
        return;
    }
    const Graph *g = w->nest->graph;
    if (op_info(graph_node(g, n)->op)->kind == OPKIND_DENSE) {
        join(&w->shared, ", ",
             str_format(w->arena, "the %s of %s", dense_share(g, graph_node(g, n)),
                        value_name(w, n)));
        return;
    }
    const Schedule *s = w->nest->values[n].schedule;
    const char *of = s != NULL && s->parallel_batches ? "batches" : NULL;
    for (uint32_t l = 0; s != NULL && l < s->n_levels && of == NULL; l++) {
        of = s->level[l].parallel ? schedule_role_name(s->level[l].role) : NULL;
    }
    if (of != NULL) {
        join(&w->shared, ", ", str_format(w->arena, "the %s of %s", of, value_name(w, n)));
    } else if (alone && is_worth_threads(w, n) &&
               nest_leaf_shape(w->arena, w->nest, n).ranges) {
        join(&w->shared, ", ", str_format(w->arena, "the places of %s", value_name(w, n)));
    } else if (alone && is_worth_threads(w, n)) {
        join(&w->alone, "; ",
             str_format(w->arena, "not %s: the model finds no loop of it worth sharing",
                        value_name(w, n)));
    }
}

/* What is shared, and what not and why. */
static Words find_words(const Nest *nest, const Machine *machine, Arena *arena)
{
    Words w = {.nest = nest,
               .machine = machine,
               .names = graph_names(arena, nest->graph),
               .arena = arena};
    text_init(&w.shared, arena);
    text_init(&w.alone, arena);
    for (uint32_t k = 0; k < nest->n_items;) {
        const NestItem *item = &nest->items[k];
        if (!nest_is_loop(item)) {
            put_leaf(&w, item->node, item->parent == NEST_NONE);
        } else if (item->parallel || item->parent == NEST_NONE) {
            put_loop(&w, k);
        }
        k = item->parallel ? item->end : k + 1; /* what a serial loop has inside */
    }
    return w;
}

double report_gain(const Nest *nest)
{
    return nest->cost.path > 0.0 ? nest->cost.seconds / nest->cost.path : 1.0;
}

const char *report_threads(const Nest *nest, const Machine *machine, Arena *arena)
{
    Words w = find_words(nest, machine, arena);
    if (w.shared.n == 0 && nest->cost.seconds < 2 * machine->time.piece) {
        return str_format(
            arena, "share nothing: %.2g us of work, and from %.0f us on two are worth it",
            nest->cost.seconds * 1e6, 2e6 * machine->time.piece);
    }
    return str_format(arena, "share %s%s%s", w.shared.n > 0 ? w.shared.at : "nothing",
                      w.alone.n > 0 ? "; " : "", w.alone.at);
}

const char *report_gain_words(const Nest *nest, const Machine *machine, Arena *arena)
{
    double threads = (double)machine->threads, gain = report_gain(nest);
    if (threads < 2.0 || gain <= 1.0) {
        return "";
    }
    double serial = (threads / gain - 1.0) / (threads - 1.0); /* by Amdahl's law */
    return str_format(arena, "; %lld threads: %.*fx, %.0f %% serial",
                      (long long)machine->threads, gain < 9.95 ? 1 : 0, gain, 100.0 * serial);
}

/* A kernel that takes so long, and gains less than that, is warned of. */
#define SERIAL_SECONDS 2e-3
#define SERIAL_GAIN    4.0

void report_warn_serial(Ctx *ctx, const Nest *nest, const Machine *machine)
{
    double gain = report_gain(nest), most = (double)machine->threads / 2.0;
    if (machine->threads < 2 || nest->cost.seconds < SERIAL_SECONDS || gain >= SERIAL_GAIN ||
        gain >= most) {
        return;
    }
    Words w = find_words(nest, machine, &ctx->arena);
    Diagnostic *d = diag_warning(
        &ctx->diags, W_SERIAL, nest->graph->span,
        "kernel '%s' leaves threads without work: %lld of them are %.1f times as fast as one%s",
        nest->graph->name->text, (long long)machine->threads, gain,
        nest->graph->dims.list.n > 0 ? " at the typical extents" : "");
    if (w.alone.n > 0) {
        diag_because(d, "%s", w.alone.at);
    }
    diag_help(d, "--report says what they share; -Wno-serial silences this");
}
