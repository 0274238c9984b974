/* SPDX-License-Identifier: Apache-2.0 */
/* -Wspill: values that go to memory although nobody asked for it; why, and what would avoid it, in words. */
#include "driver/report/spill.h"

#include <string.h>

#include "driver/report/trace.h"
#include "dump/text.h"
#include "nest/facts.h"

typedef struct Words {
    Arena *arena, *scratch;
    const Nest *nest;
    const Machine *machine;
    const NestFacts *f;
    NodeRef n;
    NestSpill *out;
    GraphNames names;
} Words;

/* ---- names ---- */

/* Of the value, or of the result that it is. */
static const char *name_of(const Graph *g, NodeRef n)
{
    const Node *node = graph_node(g, n);
    for (uint32_t k = 0; k < g->results.n && node->name == NULL; k++) {
        if (g->results.at[k].node == n) {
            return g->results.at[k].name->text;
        }
    }
    return node->name == NULL ? NULL : node->name->text;
}

/* 'T', or what the value is a part of: the first one after it that has a name. */
static const char *quoted(const Words *w, NodeRef n)
{
    const Graph *g = w->nest->graph;
    NodeRef at = n;
    while (at < g->nodes.n && name_of(g, at) == NULL) {
        NodeRef next = at + 1;
        bool reads = false;
        for (; next < g->nodes.n && !reads; next++) {
            for (uint32_t k = 0; k < graph_node(g, next)->n_operands; k++) {
                reads |= graph_node(g, next)->operand[k] == at;
            }
        }
        at = reads ? next - 1 : NODE_NONE;
    }
    if (at >= g->nodes.n) {
        return "an intermediate";
    }
    return str_format(w->arena, at == n ? "'%s'" : "a part of '%s'", name_of(g, at));
}

static void put_list(Text *t, uint32_t k, uint32_t n)
{
    text_put(t, k == 0 ? "" : k + 1 == n ? " and " : ", ");
}

/* "i and j of it[i,j]" */
static void put_dims(const Words *w, const bool *which, Text *t)
{
    const Node *node = graph_node(w->nest->graph, w->n);
    const char *const *name = w->names[w->n];
    uint32_t n = 0, k = 0;
    for (uint32_t d = 0; d < node->rank; d++) {
        n += which[d];
    }
    for (uint32_t d = 0; d < node->rank; d++) {
        if (which[d]) {
            put_list(t, k++, n);
            text_put(t, name[node->out[d]]);
        }
    }
    text_printf(t, " of %s[", node->name == NULL ? "it" : node->name->text);
    for (uint32_t d = 0; d < node->rank; d++) {
        text_printf(t, "%s%s", d == 0 ? "" : ",", name[node->out[d]]);
    }
    text_put(t, "]");
}

static const MemoryLevel *tile_level(const Machine *m)
{
    return &m->level[m->tile_level];
}

/* ---- readers ---- */

/* Does the tree have a loop around the writer, outside of its fold, and the reader? */
static bool share_loop(const Nest *nest, NodeRef writer, NodeRef reader)
{
    const NestValue *v = &nest->values[writer];
    uint32_t from =
        v->fold == NEST_NONE ? nest->items[v->item].parent : nest->items[v->fold].parent;
    while (from != NEST_NONE && !nest_is_in(nest, nest->values[reader].item, from)) {
        from = nest->items[from].parent;
    }
    return from != NEST_NONE;
}

static const Use *use_of(const NestFacts *f, NodeRef reader, NodeRef n, uint32_t skip)
{
    for (uint32_t i = 0; i < f->uses[reader].list.n; i++) {
        const Use *use = &f->uses[reader].list.at[i];
        if (use->node == n && skip-- == 0) {
            return use;
        }
    }
    return NULL;
}

/* The values that read it, in order; those that share no loop with it alone when `far`. */
static uint32_t readers_of(const Words *w, bool far, NodeRef *out)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < w->f->n_stored; k++) {
        NodeRef r = w->f->stored[k];
        if (use_of(w->f, r, w->n, 0) != NULL && !(far && share_loop(w->nest, w->n, r))) {
            out[n++] = r;
        }
    }
    return n;
}

/* ---- why no loop is possible ---- */

/* "T[i,j] and T[j,i]", the first two readings that are not alike; false when all are. */
static bool put_orders(const Words *w, NodeRef reader, Text *t)
{
    const Node *node = graph_node(w->nest->graph, w->n);
    const Use *first = use_of(w->f, reader, w->n, 0), *other = NULL;
    bool differ = false;
    for (uint32_t k = 1; first != NULL && !differ; k++) {
        other = use_of(w->f, reader, w->n, k);
        if (other == NULL) {
            return false;
        }
        for (uint32_t d = 0; d < node->rank; d++) {
            differ |= other->access.index[d].label != first->access.index[d].label;
        }
    }
    const char *name = node->name == NULL ? "it" : node->name->text;
    for (uint32_t pass = 0; differ && pass < 2; pass++) {
        text_printf(t, pass == 0 ? "%s[" : " and %s[", name);
        for (uint32_t d = 0; d < node->rank; d++) {
            Index index = (pass == 0 ? first : other)->access.index[d];
            text_put(t, d == 0 ? "" : ",");
            if (index.label < 0) {
                text_i64(t, index.offset);
            } else {
                text_put(t, w->names[reader][index.label]);
            }
        }
        text_put(t, "]");
    }
    return differ;
}

static void put_barrier(const Words *w, const NestBarrier *b, NodeRef reader, const bool *dims,
                        Text *t)
{
    switch (b->kind) {
    case BARRIER_FOLD:
        text_printf(t, "%s waits for %s, which folds ", quoted(w, reader), quoted(w, b->at));
        put_dims(w, dims, t);
        break;
    case BARRIER_ORDERS:
        text_printf(t, "%s reads ", quoted(w, b->at));
        if (!put_orders(w, b->at, t)) {
            text_put(t, "it and what is made of it along different indices: ");
            put_dims(w, dims, t);
        }
        break;
    case BARRIER_DIAGONAL:
        text_printf(t, "%s reads a diagonal along ", quoted(w, b->at));
        put_dims(w, dims, t);
        break;
    case BARRIER_POSITION:
        text_printf(t, "%s reads one position of ", quoted(w, b->at));
        put_dims(w, dims, t);
        break;
    case BARRIER_MATRIX:
        text_printf(t, "%s is a step of whole matrices, which reads all of ", quoted(w, b->at));
        put_dims(w, dims, t);
        break;
    case BARRIER_NONE:
        break;
    }
}

static const char *hint_of(const Words *w, const NestBarrier *b)
{
    switch (b->kind) {
    case BARRIER_FOLD:
        return str_format(w->arena,
                          "use %s later, on a sum or contraction of what reads it now",
                          quoted(w, b->at));
    case BARRIER_DIAGONAL:
        return "compute the diagonal by a statement of its own";
    case BARRIER_MATRIX:
        return "only smaller matrices stay on chip";
    case BARRIER_ORDERS:
    case BARRIER_POSITION:
    case BARRIER_NONE:
        break;
    }
    return "read it in one order of indices";
}

/* Every barrier once, with its dimensions; three say enough. */
static void put_barriers(Words *w, const NestBarrier *dim, NodeRef reader, Text *t)
{
    uint32_t rank = graph_node(w->nest->graph, w->n)->rank, parts = 0, first = 0;
    bool *which = ARENA_ARRAY(w->scratch, rank, bool),
         *done = ARENA_ARRAY(w->scratch, rank, bool);
    for (uint32_t d = 0; d < rank && parts < 3; d++) {
        if (done[d] || dim[d].kind == BARRIER_NONE) {
            continue;
        }
        first = parts == 0 ? d : first;
        for (uint32_t e = 0; e < rank; e++) {
            which[e] = dim[e].kind == dim[d].kind && dim[e].at == dim[d].at;
            done[e] = done[e] || which[e];
        }
        text_put(t, parts++ == 0 ? "" : "; ");
        put_barrier(w, &dim[d], reader, which, t);
    }
    w->out->reader = reader;
    w->out->avoid = hint_of(w, &dim[first]);
}

static bool any_dim(const Words *w, const NestBarrier *dim, bool *free)
{
    bool any = false;
    for (uint32_t d = 0; d < graph_node(w->nest->graph, w->n)->rank; d++) {
        free[d] = dim[d].kind == BARRIER_NONE;
        any |= free[d];
    }
    return any;
}

/* Each reader could share some loop, no loop is for all: those that may not go along every dimension. */
static void put_split(Words *w, uint32_t n, const NodeRef *readers, NestBarrier *dim, Text *t)
{
    uint32_t rank = graph_node(w->nest->graph, w->n)->rank, told = 0;
    bool *free = ARENA_ARRAY(w->scratch, rank, bool);
    text_put(t, "no loop is for all that read it");
    for (uint32_t k = 0; k < n && told < 3; k++) {
        bool some =
            nest_trace(w->scratch, w->f, w->n, 1, &readers[k], dim) && any_dim(w, dim, free);
        bool all = true;
        for (uint32_t d = 0; d < rank; d++) {
            all &= free[d];
        }
        if (some && !all) {
            text_printf(t, "%s %s may go along ", told++ == 0 ? ":" : ",",
                        quoted(w, readers[k]));
            put_dims(w, free, t);
            text_put(t, " only");
        }
    }
    w->out->avoid = "let all that reads it go along one index";
}

static bool in_slices(const Nest *nest, NodeRef n)
{
    uint32_t top = nest_item_in(nest, NEST_NONE, nest->values[n].item);
    for (uint32_t k = top; k < nest->items[top].end; k++) {
        if (!nest_is_loop(&nest->items[k]) &&
            graph_slices(nest->graph, nest->items[k].node).n > 0) {
            return true;
        }
    }
    return false;
}

/* Loops are possible: over the dimensions `free`, those without a barrier. */
static void put_possible(Words *w, const NestBarrier *dim, const bool *free, NodeRef reader,
                         Text *t)
{
    const Node *node = graph_node(w->nest->graph, w->n);
    int64_t least = dtype_bytes(node->dtype), capacity = machine_tile_capacity(w->machine);
    for (uint32_t d = 0; d < node->rank; d++) {
        if (!free[d]) {
            least = sat_mul(least, dim_typical(&w->nest->graph->dims, node->shape[d]));
        }
    }
    w->out->reader = reader;
    if (in_slices(w->nest, w->n) || in_slices(w->nest, reader)) {
        text_printf(t, "nothing else runs in the loops of slices, and %s does not",
                    quoted(w, in_slices(w->nest, w->n) ? reader : w->n));
        w->out->avoid = "a larger --memory-limit needs no slices";
        return;
    }
    if (capacity > 0 && least > capacity) {
        text_put(t, "one position along ");
        put_dims(w, free, t);
        text_put(t, " is still a block of ");
        text_bytes(t, least, "bytes");
        text_printf(t, ", and %s holds ", tile_level(w->machine)->name);
        text_bytes(t, capacity, "bytes");
        text_put(t, ": ");
        put_barriers(w, dim, reader, t);
        return;
    }
    text_printf(t, "%s could share loops over ", quoted(w, reader));
    put_dims(w, free, t);
    text_put(t, ", and no such nest was found cheaper");
    w->out->avoid = "--effort=N searches longer, --nest=FILE takes a nest made by hand";
}

static bool explain_loops(Words *w, Text *t)
{
    uint32_t n_all = 0, n_far = 0;
    NodeRef *all = ARENA_ARRAY(w->scratch, w->f->n_stored, NodeRef);
    NodeRef *far = ARENA_ARRAY(w->scratch, w->f->n_stored, NodeRef);
    uint32_t rank = graph_node(w->nest->graph, w->n)->rank;
    NestBarrier *dim = ARENA_ARRAY(w->scratch, rank, NestBarrier);
    bool *free = ARENA_ARRAY(w->scratch, RANK_LIMIT, bool);
    n_all = readers_of(w, false, all);
    n_far = readers_of(w, true, far);
    for (uint32_t k = 0; k < n_far; k++) {
        if (!nest_trace(w->scratch, w->f, w->n, 1, &far[k], dim)) {
            text_printf(t, "%s is hundreds of values later", quoted(w, far[k]));
            w->out->reader = far[k];
            return true;
        }
        if (!any_dim(w, dim, free)) {
            put_barriers(w, dim, far[k], t);
            return true;
        }
    }
    if (n_far == 0) {
        return false;
    }
    if (n_all == 1 || !nest_trace(w->scratch, w->f, w->n, n_all, all, dim)) {
        (void)nest_trace(w->scratch, w->f, w->n, 1, &far[0], dim);
    }
    if (any_dim(w, dim, free)) {
        put_possible(w, dim, free, far[0], t);
    } else {
        w->out->reader = far[0];
        put_split(w, n_all, all, dim, t);
    }
    return true;
}

/* ---- updates, results ---- */

static bool explain_update(Words *w, Text *t)
{
    const Graph *g = w->nest->graph;
    int32_t k = w->f->result_of[w->n], param = k < 0 ? -1 : g->results.at[k].param;
    if (param < 0) {
        return false;
    }
    const char *name = g->params.at[param].name->text;
    for (uint32_t s = 0; s < w->f->n_stored; s++) {
        NodeRef r = w->f->stored[s];
        bool later = w->nest->values[r].item > w->nest->values[w->n].item;
        for (uint32_t i = 0; i < w->f->uses[r].list.n && (later || r == w->n); i++) {
            const Node *p = graph_node(g, w->f->uses[r].list.at[i].node);
            if (p->op == OP_INPUT && p->param == (uint32_t)param) {
                w->out->reader = r;
                text_printf(t,
                            later ? "%s reads the old '%s' after it"
                                  : "%s reads the old '%s' elsewhere than where it writes",
                            quoted(w, r), name);
                w->out->avoid = "a result of its own instead of 'inout'";
                return true;
            }
        }
    }
    text_printf(t, "the old '%s' is still read", name);
    w->out->avoid = "a result of its own instead of 'inout'";
    return true;
}

/* No search leaves a plain result to be copied, a nest made by hand may. */
static bool explain_copy(Words *w, Text *t)
{
    const Graph *g = w->nest->graph;
    int32_t k = w->f->result_of[w->n];
    if (k >= 0) {
        text_printf(t, "the nest has '%s' copied from it at the end",
                    g->results.at[k].name->text);
    }
    return k >= 0;
}

/* ---- the whole ---- */

const char *nest_stays_words(Arena *arena, const Nest *nest, const Machine *machine, NodeRef n)
{
    const Graph *g = nest->graph;
    int64_t capacity = machine_tile_capacity(machine);
    uint32_t count = 0;
    Text t = text_new(arena);
    for (uint32_t k = 0; k < g->dims.list.n && capacity > 0; k++) {
        if (nest_grows_with(nest, n, (int32_t)k)) {
            text_put(&t, count == 0 ? "stays in " : " or ");
            text_printf(&t, count++ == 0 ? "%s up to " : "", tile_level(machine)->name);
            text_printf(&t, "%s = %lld", g->dims.list.at[k].name->text,
                        (long long)nest_stays_to(nest, n, (int32_t)k, capacity));
        }
    }
    text_put(&t, count > 0 ? " (typical sizes else)" : "");
    return count == 0 ? NULL : t.at;
}

/* Why it is not whole on chip either. */
static const char *explain_size(const Words *w)
{
    int64_t capacity = machine_tile_capacity(w->machine), used = 0;
    const Graph *g = w->nest->graph;
    const char *stays = nest_stays_words(w->arena, w->nest, w->machine, w->n);
    if (stays != NULL || capacity == 0) {
        return stays;
    }
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        const NestValue *v = &w->nest->values[n];
        used = v->residence == RESIDE_TILE && v->alloc_loop == NEST_NONE
                   ? sat_add(used, v->bytes)
                   : used;
    }
    Text t = text_new(w->arena);
    text_put(&t, "all of it is ");
    text_bytes(&t, nest_node_bytes(g, w->n), "bytes");
    text_printf(&t, ", and %s has ", tile_level(w->machine)->name);
    text_bytes(&t, capacity / 2, "bytes");
    text_put(&t, " for such values");
    if (used > 0) {
        text_put(&t, ", of which ");
        text_bytes(&t, used, "bytes");
        text_put(&t, " are taken");
    }
    return t.at;
}

struct NestSpills {
    Arena *arena;
    const Nest *nest;
    const Machine *machine;
    NestFacts f;
    GraphNames names;
};

const NestSpills *nest_spills(Arena *arena, const Nest *nest, const Machine *machine)
{
    const Graph *g = nest->graph;
    NestSpills *s = ARENA_NEW(arena, NestSpills);
    *s = (NestSpills){.arena = arena, .nest = nest, .machine = machine};
    Residence *residence = ARENA_ARRAY(arena, g->nodes.n, Residence);
    for (NodeRef k = 0; k < g->nodes.n; k++) {
        Residence r = nest->values[k].residence;
        residence[k] = residence_is_stored(r) ? RESIDE_WORKSPACE : r;
    }
    nest_facts_of(arena, g, residence, &s->f);
    s->names = graph_names(arena, g);
    return s;
}

NestSpill nest_spill(const NestSpills *s, NodeRef n)
{
    NestSpill out = {.reader = NODE_NONE};
    Arena scratch; /* tables over a large graph, for each value anew */
    arena_init(&scratch, s->arena->budget);
    Words w = {s->arena, &scratch, s->nest, s->machine, &s->f, n, &out, s->names};
    Text t = text_new(s->arena);
    if (!explain_update(&w, &t) && !explain_copy(&w, &t)) {
        out.size = explain_size(&w);
        if (!explain_loops(&w, &t)) {
            text_put(&t, "the nest says so: all that read it share a loop with it");
        }
    }
    out.why = t.at;
    bool fits = s->nest->values[n].bytes <= machine_tile_capacity(s->machine);
    if (out.size != NULL && nest_grows(s->nest, n) &&
        s->nest->values[n].alloc_loop == NEST_NONE && fits) {
        out.avoid = "-D makes the extents known: what is small then stays on chip";
    }
    arena_release(&scratch);
    return out;
}

/* The last level before memory. */
static const MemoryLevel *last_level(const Machine *m)
{
    const MemoryLevel *last = tile_level(m);
    for (uint32_t k = 0; k < m->n_levels; k++) {
        last = m->level[k].capacity > last->capacity ? &m->level[k] : last;
    }
    return last;
}

/* A value that goes to memory. */
typedef struct Told {
    NodeRef n;
    bool
        block; /* a block in loops, in memory at typical extents although the nest has it on chip */
} Told;

static int64_t told_bytes(const Nest *nest, Told told)
{
    return told.block ? nest->values[told.n].bytes : nest_node_bytes(nest->graph, told.n);
}

static NestSpill told_spill(const NestSpills *s, Told told)
{
    if (!told.block) {
        return nest_spill(s, told.n);
    }
    const char *stays = nest_stays_words(s->arena, s->nest, s->machine, told.n);
    return (NestSpill){.reader = NODE_NONE,
                       .why = str_format(s->arena, "a block in loops; it %s", stays),
                       .avoid = "smaller steps of the loops around a block by --nest"};
}

static void warn_spill(Ctx *ctx, const Nest *nest, const Machine *machine, Told told)
{
    const Node *node = graph_node(nest->graph, told.n);
    const MemoryLevel *last = last_level(machine);
    Words w = {.arena = &ctx->arena, .nest = nest};
    const char *holds = !told.block ? ""
                                    : str_format(&ctx->arena, ", %s holds %lld", last->name,
                                                 (long long)last->capacity);
    Diagnostic *d = diag_warning(
        &ctx->diags, W_SPILL, node->span, "%s goes to memory: %s%lld bytes%s%s",
        quoted(&w, told.n), told.block ? "blocks of " : "", (long long)told_bytes(nest, told),
        nest_grows(nest, told.n) ? " for the typical extents" : "", holds);
    if (d == NULL || d == ctx->diags.dropped) {
        return;
    }
    NestSpill s = told_spill(nest_spills(&ctx->arena, nest, machine), told);
    if (s.reader != NODE_NONE) {
        diag_mark(d, graph_node(nest->graph, s.reader)->span, "read here");
    }
    diag_because(d, "%s%s%s", s.why, s.size == NULL ? "" : "; ", s.size == NULL ? "" : s.size);
    diag_help(d, "%s%s%s%s", s.avoid == NULL ? "" : s.avoid, s.avoid == NULL ? "" : "; ",
              node->name == NULL
                  ? ""
                  : str_format(&ctx->arena, "'spill %s;' in the kernel or ", node->name->text),
              "-Wno-spill silences this");
}

/* ---- several values of one kernel ---- */

/* How many such values have a row: more help nobody. */
#define ROWS 24

typedef struct Advice {
    Text hints, names;
    VEC(const char *) seen;
    VEC(Sym) named;
} Advice;

static void add_advice(Advice *a, Arena *arena, const Node *node, const char *hint)
{
    bool seen = hint == NULL || a->seen.n == 4;
    for (uint32_t k = 0; k < a->seen.n && !seen; k++) {
        seen = strcmp(a->seen.at[k], hint) == 0;
    }
    if (!seen) {
        vec_push(arena, &a->seen, hint);
        text_printf(&a->hints, "%s; ", hint);
    }
    bool named = node->name == NULL;
    for (uint32_t k = 0; k < a->named.n && !named; k++) {
        named = a->named.at[k] == node->name;
    }
    if (!named) {
        vec_push(arena, &a->named, node->name);
        text_printf(&a->names, "%s%s", a->named.n == 1 ? "" : ", ", node->name->text);
    }
}

#define TERM_BYTES 32
#define OPERANDS   3

#define VISITS 64 /* of nodes, which may share much */

typedef struct Operands {
    const Graph *g;
    uint32_t n, visits;
    const char *name[OPERANDS + 1];
} Operands;

/* Names of what the value is made of, the nearest first. */
static void add_operands(Operands *o, NodeRef n)
{
    const Node *node = graph_node(o->g, n);
    for (uint32_t k = node->n_operands; k-- > 0 && o->n <= OPERANDS;) {
        const char *own = name_of(o->g, node->operand[k]);
        bool seen = own == NULL;
        for (uint32_t i = 0; i < o->n && !seen; i++) {
            seen = strcmp(o->name[i], own) == 0;
        }
        if (!seen) {
            o->name[o->n++] = own;
        }
    }
    for (uint32_t k = node->n_operands; k-- > 0 && o->n <= OPERANDS && o->visits < VISITS;) {
        if (name_of(o->g, node->operand[k]) == NULL) {
            o->visits++;
            add_operands(o, node->operand[k]);
        }
    }
}

static const char *operands_of(Arena *arena, const Graph *g, NodeRef n)
{
    Operands o = {.g = g};
    Text t = text_new(arena);
    add_operands(&o, n);
    for (uint32_t k = 0; k < o.n; k++) {
        text_printf(&t, "%s%s", k == 0 ? " (of " : ", ", k < OPERANDS ? o.name[k] : "...");
    }
    text_put(&t, o.n == 0 ? "" : ")");
    return t.at;
}

/* What tells a value without a name from others of its line: its term as the program has it, " (A[i,p]*B[p,q])", where that is
 * short, else its operands. */
static const char *term_of(Ctx *ctx, const Graph *g, NodeRef n)
{
    const Node *node = graph_node(g, n);
    const Source *s =
        node->span.source == 0 ? NULL : source_get(&ctx->sources, node->span.source);
    uint32_t lo = node->span.lo, hi = node->span.hi;
    if (node->name != NULL) {
        return "";
    }
    bool fits =
        s != NULL && !s->places_only && hi <= s->text.n && lo < hi && hi - lo <= TERM_BYTES;
    for (uint32_t k = lo; k < hi && fits; k++) {
        fits = s->text.at[k] >= ' ' && s->text.at[k] <= '~';
    }
    return fits ? str_format(&ctx->arena, " (%.*s)", (int)(hi - lo), s->text.at + lo)
                : operands_of(&ctx->arena, g, n);
}

/* One warning with a row for each value, and what helps once. */
static void warn_table(Ctx *ctx, const Nest *nest, const Machine *machine, const Told *told,
                       uint32_t n_told)
{
    const Graph *g = nest->graph;
    Arena *arena = &ctx->arena;
    Words w = {.arena = arena, .nest = nest};
    int64_t bytes = 0;
    bool grows = false;
    for (uint32_t k = 0; k < n_told; k++) {
        bytes = sat_add(bytes, told_bytes(nest, told[k]));
        grows |= nest_grows(nest, told[k].n);
    }
    Diagnostic *d =
        diag_warning(&ctx->diags, W_SPILL, graph_node(g, told[0].n)->span,
                     "%u values of kernel '%s' go to memory: %lld bytes in all%s", n_told,
                     g->name->text, (long long)bytes, grows ? " for the typical extents" : "");
    if (d == NULL || d == ctx->diags.dropped) {
        return;
    }
    const NestSpills *spills = nest_spills(arena, nest, machine);
    Advice advice = {0};
    text_init(&advice.hints, arena);
    text_init(&advice.names, arena);
    for (uint32_t k = 0; k < n_told && k < ROWS; k++) {
        const Node *node = graph_node(g, told[k].n);
        NestSpill s = told_spill(spills, told[k]);
        Text size = text_new(arena);
        text_bytes(&size, told_bytes(nest, told[k]), "bytes");
        uint32_t line = 0, column = 0;
        if (node->span.source != 0) {
            source_position(&ctx->sources, node->span, &line, &column);
        }
        diag_row(d, "line %-5u %10s  %s%s: %s", line, size.at, quoted(&w, told[k].n),
                 term_of(ctx, g, told[k].n), s.why);
        add_advice(&advice, arena, node, s.avoid);
    }
    if (n_told > ROWS) {
        diag_row(d, "and %u more: --report has them all", n_told - ROWS);
    }
    if (machine_tile_capacity(machine) > 0) {
        Text holds = text_new(arena);
        text_bytes(&holds, machine_tile_capacity(machine) / 2, "bytes");
        diag_because(d, "%s has %s for values that are whole on chip",
                     tile_level(machine)->name, holds.at);
    }
    diag_help(d, "%s%s-Wno-spill silences this", advice.hints.at,
              advice.names.n == 0
                  ? ""
                  : str_format(arena, "'spill %s;' in the kernel or ", advice.names.at));
}

void nest_warn_spills(Ctx *ctx, const Nest *nest, const Machine *machine)
{
    const Graph *g = nest->graph;
    VEC(Told) told = {0};
    int64_t capacity = machine_tile_capacity(machine);
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        const Node *node = graph_node(g, n);
        const NestValue *v = &nest->values[n];
        bool grows = residence_is_stored(v->residence) && nest_grows(nest, n);
        bool small = grows && capacity > 0 && v->bytes <= capacity;
        if (node->allow_spill || node->rank == 0 || small) {
            continue;
        }
        if (v->residence == RESIDE_WORKSPACE) {
            vec_push(&ctx->arena, &told, ((Told){n, false}));
        } else if (v->residence == RESIDE_TILE && grows && capacity > 0 &&
                   v->bytes > last_level(machine)->capacity) {
            vec_push(&ctx->arena, &told, ((Told){n, true}));
        }
    }
    if (told.n > 1) {
        warn_table(ctx, nest, machine, told.at, told.n);
    } else if (told.n == 1) {
        warn_spill(ctx, nest, machine, told.at[0]);
    }
}
