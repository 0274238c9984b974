/* SPDX-License-Identifier: Apache-2.0 */
/* The search for a cheap nest: trees are changed by small moves (moves.c), every tree that comes
 * out is priced, and the cheapest few go on: the more, the more effort. It starts from no fusion
 * and from greedy fusion. A step is a tree that was priced; steps are counted, and bound the
 * search.
 *
 * A kernel of many values is planned in windows of WINDOW of them, in program order: what
 * crosses windows is in memory. Sliced contractions have loops that no move makes: of a kernel
 * that has some no fusion and greedy fusion are priced, no more. */
#include <math.h>

#include "base/map.h"
#include "nest/contraction.h"
#include "nest/estimate.h"
#include "nest/greedy.h"
#include "nest/kinds.h"
#include "nest/make.h"
#include "nest/moves.h"
#include "nest/objective.h"
#include "nest/place.h"
#include "nest/plan.h"
#include "nest/price_leaf.h"

#define WINDOW 12
/* Trees that go on and steps of one window, at effort 1. */
#define BEAM  6
#define STEPS 1500
/* Nodes of a graph that gets all of them. */
#define SMALL 128
/* Rounds without a better tree after which a window is done. */
#define PATIENCE 2
typedef struct State {
    Tree tree;
    double seconds; /* the key: less is better */
    double one;     /* the same for one thread, */
    double time;    /* and its seconds */
    bool spilled;   /* a value is in memory, */
    bool large;     /* or many bytes of such */
    bool expanded;
} State;

typedef struct Search {
    Ctx *ctx;
    Arena *arena;   /* of the states */
    Arena *scratch; /* of one price */
    const NestFacts *facts;
    const Machine *machine;
    const MachineTraits *w;
    Pricer pricer;
    double compulsory;        /* bytes of memory that any tree moves */
    double plain_time, plain; /* seconds of no fusion, and what it counts; 0: not yet priced */
    double slower;            /* how many times these a tree may take */
    double least;             /* the least of any tree for one thread */
    uint64_t steps, most;
    uint32_t width;  /* of the beam */
    VEC(State) beam; /* ascending in price */
    State whole;     /* of those that cut no contraction the cheapest, if any, */
    State on_chip;   /* and the cheapest without values in memory */
    Map seen;
} Search;

static uint64_t tree_hash(const Tree *t)
{
    uint64_t h = 14695981039346656037u;
    for (uint32_t k = 0; k < t->list.n; k++) {
        const Draft *d = &t->list.at[k];
        uint64_t words[4] = {d->depth, d->is_loop ? (uint64_t)d->tile : d->node, d->is_loop, 0};
        for (uint32_t i = 0; d->is_loop && i < d->axis.n; i++) {
            words[3] = words[3] * 1099511628211u + d->axis.node[i] * 64u +
                       (uint64_t)d->axis.label[i] + 1;
        }
        for (uint32_t i = 0; i < 4; i++) {
            h = (h ^ words[i]) * 1099511628211u;
            h ^= h >> 29;
        }
    }
    return h;
}

/* Is there a loop around one value that cuts nothing, since it does not begin where another one is? */
static bool has_idle_loop(const Nest *nest)
{
    for (uint32_t k = 0; k < nest->n_items; k++) {
        const NestItem *item = &nest->items[k];
        if (nest_is_loop(item) && item->from == 0 && item->end == k + 2 &&
            item->tile >= nest_loop_extent(nest, k)) {
            return true;
        }
    }
    return false;
}

/* Does a loop around the leaf, item `at`, cut what makes it a contraction: a label that is summed,
 * or that one operand lacks? Labels of all operands are run position by position anyway. */
static bool is_cut_contraction(const Graph *g, const Tree *t, uint32_t at)
{
    const Draft *leaf = &t->list.at[at];
    const Node *n = graph_node(g, leaf->node);
    uint32_t depth = leaf->depth;
    for (uint32_t k = at; k-- > 0 && depth > 0;) {
        const Draft *d = &t->list.at[k];
        if (!d->is_loop || d->depth >= depth) {
            continue;
        }
        depth = d->depth;
        if (nest_is_slice(g, &d->axis)) {
            continue;
        }
        int32_t label = nest_axis_label(&d->axis, leaf->node);
        uint32_t readers = 0;
        for (uint32_t i = 0; i < 2; i++) {
            readers += access_has_label(&n->access[i], label) ? 1 : 0;
        }
        if (label < 0 || node_reduces(n, label) || readers < 2) {
            return true;
        }
    }
    return false;
}

/* Does a loop cut a contraction? */
static bool cuts_contractions(const Graph *g, const Tree *t)
{
    for (uint32_t k = 0; k < t->list.n; k++) {
        const Draft *d = &t->list.at[k];
        if (!d->is_loop && !node_is_expression(graph_node(g, d->node)) &&
            op_info(graph_node(g, d->node)->op)->kind == OPKIND_CONTRACT &&
            is_cut_contraction(g, t, k)) {
            return true;
        }
    }
    return false;
}

/* Is there a loop in which sums follow a maximum? */
static bool follows(const Nest *nest)
{
    bool online = false;
    for (uint32_t k = 0; k < nest->n_items; k++) {
        online |= nest->items[k].online;
    }
    return online;
}

/* The tree with its price; infinite when a sum cannot follow what it reads, or a loop is idle. */
static State tree_price(Search *s, const Tree *t, bool first)
{
    ArenaMark mark = arena_mark(s->scratch);
    Nest *nest = nest_placed(s->scratch, s->facts, s->machine, s->machine, t);
    State priced = {.tree = *t, .seconds = INFINITY, .spilled = true};
    if (nest_online_is_legal(s->scratch, s->facts, nest) &&
        (s->w->follows_masked || !s->pricer.masked || !follows(nest)) &&
        (first || !has_idle_loop(nest))) {
        NestMarks marks = {ARENA_ARRAY(s->scratch, nest->n_items, bool),
                           ARENA_ARRAY(s->scratch, nest->n_items, uint32_t), NULL};
        NestCost cost = nest_price(s->scratch, &s->pricer, nest, &marks);
        priced.seconds = nest_weighed(s->machine, nest, &cost, s->compulsory);
        if (s->plain == 0.0) {
            s->plain_time = cost.seconds;
            s->plain = priced.seconds;
            bool large = (double)nest_spilled_bytes(s->facts, nest) >= s->w->large;
            bool small = s->machine->threads < 2 ||
                         cost.seconds < s->w->small_pieces * s->machine->time.piece;
            bool open = nest_is_open(s->facts->g) && small;
            s->slower = large || open ? s->w->slower : s->w->even;
            s->least = INFINITY;
        }
        double ratio = s->plain_time > 0.0 ? cost.seconds / s->plain_time : 1.0;
        if (ratio > s->slower && priced.seconds < s->plain * ratio) {
            priced.seconds = s->plain * ratio;
        }
        priced.time = cost.seconds;
        priced.one = priced.seconds / nest_threads_factor(s->machine, &cost);
        s->least = priced.one < s->least ? priced.one : s->least;
        priced.spilled = nest_has_spills(s->facts, s->machine, nest);
        priced.large = (double)nest_spilled_bytes(s->facts, nest) >= s->w->large;
        if (s->w->cut > 1.0 && cuts_contractions(s->facts->g, t)) {
            priced.seconds *= s->w->cut;
        }
        for (uint32_t k = 0; s->w->loop > 1.0 && k < t->list.n; k++) {
            priced.seconds *= t->list.at[k].is_loop ? s->w->loop : 1.0;
        }
    }
    arena_reset(s->scratch, mark);
    return priced;
}

/* Trees of the same price are kept in the order in which they were found, simpler ones first. */
static bool is_before(const State *a, const State *b)
{
    return a->seconds < b->seconds ||
           (a->seconds == b->seconds && a->tree.list.n < b->tree.list.n);
}

static void keep(Search *s, State fresh)
{
    uint32_t at = s->beam.n;
    vec_push(s->arena, &s->beam, fresh);
    while (at > 0 && is_before(&fresh, &s->beam.at[at - 1])) {
        s->beam.at[at] = s->beam.at[at - 1];
        at--;
    }
    s->beam.at[at] = fresh;
    s->beam.n = s->beam.n > s->width ? s->width : s->beam.n;
}

static bool is_new(Search *s, const Tree *t)
{
    uint64_t hash = tree_hash(t);
    uint32_t was = 0;
    if (map_get(&s->seen, hash, &was)) {
        return false;
    }
    map_put(&s->seen, hash, 1);
    s->steps++;
    return true;
}

/* The state with a tree of its own. */
static State copied(Search *s, const State *from)
{
    State to = *from;
    to.tree = (Tree){0};
    for (uint32_t k = 0; k < from->tree.list.n; k++) {
        vec_push(s->arena, &to.tree.list, from->tree.list.at[k]);
    }
    return to;
}

static bool beats(const State *fresh, const State *best)
{
    return best->tree.list.n == 0 || is_before(fresh, best);
}

/* Does it take no longer than no fusion, by one thread? */
static bool is_even(const Search *s, const State *x)
{
    return x->time <= s->w->uneven * s->slower * s->plain_time;
}

static void offer(Search *s, const State *fresh)
{
    bool even = is_even(s, fresh), first = even && beats(fresh, &s->whole);
    bool chip = even && !fresh->spilled && beats(fresh, &s->on_chip);
    bool cuts = (chip || first) && cuts_contractions(s->facts->g, &fresh->tree);
    s->whole = first && !cuts ? copied(s, fresh) : s->whole;
    if (chip && (!cuts || s->w->cuts)) {
        s->on_chip = copied(s, fresh);
    }
    if (s->beam.n < s->width || is_before(fresh, &s->beam.at[s->width - 1])) {
        keep(s, copied(s, fresh));
    }
}

static void consider(void *self, const Tree *t)
{
    Search *s = self;
    if (s->steps < s->most && is_new(s, t)) {
        State fresh = tree_price(s, t, false);
        if (s->steps % 64 == 0) {
            ctx_at_step(s->ctx, s->steps, s->most);
        }
        if (fresh.seconds < INFINITY) {
            offer(s, &fresh);
        }
    }
}

static State *next_state(Search *s)
{
    for (uint32_t k = 0; k < s->beam.n; k++) {
        if (!s->beam.at[k].expanded) {
            return &s->beam.at[k];
        }
    }
    return NULL;
}

static void search_run(Search *s)
{
    uint32_t idle = 0;
    for (State *at = next_state(s);
         at != NULL && idle < PATIENCE * s->width && s->steps < s->most; at = next_state(s)) {
        double best = s->beam.at[0].seconds;
        Tree from = at->tree;
        at->expanded = true;
        moves_each(s->scratch, s->arena, s->facts, &from, consider, s);
        idle = s->beam.at[0].seconds < best ? 0 : idle + 1;
    }
}

/* ---- windows ---- */

static bool is_sliced(const NestFacts *f)
{
    for (uint32_t k = 0; k < f->n_stored; k++) {
        if (graph_slices(f->g, f->stored[k]).n > 0) {
            return true;
        }
    }
    return false;
}

/* The facts of `n` stored nodes from the first-th on: what others read of them is delivered
 * late. */
static NestFacts window_facts(Arena *arena, const NestFacts *f, uint32_t first, uint32_t n)
{
    NestFacts w = *f;
    w.stored = f->stored + first;
    w.n_stored = n;
    UseList late = {0};
    for (uint32_t i = 0; i < f->late.list.n; i++) {
        vec_push(arena, &late.list, f->late.list.at[i]);
    }
    for (uint32_t k = first + n; k < f->n_stored; k++) {
        const UseList *u = &f->uses[f->stored[k]];
        for (uint32_t i = 0; i < u->list.n; i++) {
            if (u->list.at[i].node >= w.stored[0] && u->list.at[i].node <= w.stored[n - 1]) {
                vec_push(arena, &late.list, u->list.at[i]);
            }
        }
    }
    w.late = late;
    return w;
}

/* Appends what is kept in another arena. */
static void append(Arena *arena, Tree *to, const Tree *from)
{
    for (uint32_t k = 0; k < from->list.n; k++) {
        Draft d = from->list.at[k];
        if (d.is_loop) {
            d.axis.node = arena_copy(arena, d.axis.node, d.axis.n * sizeof *d.axis.node);
            d.axis.label = arena_copy(arena, d.axis.label, d.axis.n * sizeof *d.axis.label);
            if (d.axis.halo != NULL) {
                d.axis.halo = arena_copy(arena, d.axis.halo, d.axis.n * sizeof *d.axis.halo);
            }
        }
        vec_push(arena, &to->list, d);
    }
}

/* Is there a tree, and does it take little longer by one thread than others? */
static bool is_quick(const Search *s, const State *x)
{
    bool threads = s->machine->threads > 1;
    double least = threads && s->slower < s->w->slower ? s->w->quick * s->least : INFINITY;
    return x->tree.list.n > 0 && x->one <= least && is_even(s, x);
}

/* The cheapest tree; but one that cuts contractions must win by more, since there the model is least sure, and so must any where
 * blocks are placed by hand and all values are on chip without loops. */
static const State *cheapest(Search *s, const State *none, const State *greedy)
{
    const State *whole = &s->whole;
    double worth = none->spilled ? s->w->worth : s->w->worth_chip;
    for (uint32_t k = 0; k < s->beam.n && s->beam.at[k].seconds < worth * none->seconds; k++) {
        if (is_quick(s, &s->beam.at[k])) {
            return &s->beam.at[k];
        }
    }
    if (is_quick(s, whole) &&
        whole->seconds < (none->spilled ? 1.0 : s->w->whole_chip) * none->seconds) {
        return whole;
    }
    double most = nest_is_open(s->facts->g) ? s->w->keep : 1.0;
    bool keep = !cuts_contractions(s->facts->g, &greedy->tree) && is_quick(s, greedy) &&
                greedy->seconds < most * none->seconds;
    return keep ? greedy : none;
}

/* That tree; or, when a value of it is in memory, one without that is hardly dearer. */
static const State *choose(Search *s, const State *none, const State *greedy)
{
    const State *best = cheapest(s, none, greedy);
    const State *other = &s->on_chip;
    bool alone =
        best->large && other->one <= best->one; /* threads are no reason for so much memory */
    bool chip = best->spilled && is_quick(s, other) &&
                (other->seconds < s->w->chip * best->seconds || alone);
    return chip ? &s->on_chip : best;
}

/* What loops a tree has around which leaves, whatever the order of its lines. */
static uint64_t loops_hash(const Tree *t)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < t->list.n; k++) {
        const Draft *d = &t->list.at[k];
        uint64_t leaves = 0, h = hash_mix(d->depth, (uint64_t)d->tile);
        for (uint32_t i = k + 1; i < t->list.n && t->list.at[i].depth > d->depth; i++) {
            leaves += t->list.at[i].is_loop ? 0 : hash_mix(1, t->list.at[i].node);
        }
        for (uint32_t i = 0; d->is_loop && i < d->axis.n; i++) {
            h = hash_mix(h, d->axis.node[i] * 64u + (uint64_t)d->axis.label[i]);
        }
        sum += d->is_loop ? hash_mix(h, leaves) : 0;
    }
    return sum;
}

/* What one window gives: the tree that it takes, and of those with other loops that it had in
 * hand at the end the cheapest, or an empty one. */
typedef struct Window {
    Tree taken, second;
    double loss; /* seconds by which the second is dearer */
} Window;

static void find_second(Search *s, Arena *arena, const State *none, const State *greedy,
                        const State *taken, Window *out)
{
    const State *best = NULL;
    uint64_t own = loops_hash(&taken->tree);
    for (uint32_t k = 0; k < s->beam.n + 2; k++) {
        const State *at = k < s->beam.n ? &s->beam.at[k] : k == s->beam.n ? none : greedy;
        bool less = best == NULL || at->seconds < best->seconds;
        best = less && loops_hash(&at->tree) != own ? at : best;
    }
    if (best != NULL) {
        append(arena, &out->second, &best->tree);
        out->loss = best->seconds - taken->seconds;
    }
}

/* A step takes as long as the graph is large: kernels of very many values get fewer. */
static uint64_t steps_of(const Graph *g, uint32_t effort)
{
    uint64_t steps = (uint64_t)STEPS * effort;
    return g->nodes.n <= SMALL ? steps : steps * SMALL / g->nodes.n + 2;
}

/* A tree to start from, if it is not the one before. */
static State start(Search *s, const Tree *t, const State *before)
{
    if (!is_new(s, t)) {
        return *before;
    }
    State at = tree_price(s, t, true);
    offer(s, &at);
    return at;
}

/* May loops change what the kernel costs? */
static bool has_choice(const NestFacts *f)
{
    return f->n_stored != 1 || nest_has_pairs(f) || contraction_crosses_lines(f, f->stored[0]);
}

static uint64_t search_window(Ctx *ctx, Arena *arena, const NestFacts *facts,
                              const Machine *machine, uint32_t effort, uint64_t most,
                              Window *out)
{
    Arena states, scratch;
    Tree none = {0}, greedy = {0};
    uint64_t steps = 0;
    arena_init(&states, &ctx->budget);
    arena_init(&scratch, &ctx->budget);
    const MachineTraits *kind = machine_traits(machine);
    effort = effort < UINT32_MAX / 2 ? effort * (uint32_t)kind->effort : effort;
    greedy_tree(ctx, arena, facts, machine, false, &none);
    if (!has_choice(facts) || effort == 0) {
        append(arena, &out->taken, &none);
    } else {
        Search s = {.ctx = ctx,
                    .arena = &states,
                    .scratch = &scratch,
                    .facts = facts,
                    .machine = machine,
                    .w = kind,
                    .width = BEAM * (effort < 64 ? effort : 64),
                    .most = steps_of(facts->g, effort)};
        s.most = s.most < most ? s.most : most;
        map_init(&s.seen, &states);
        pricer_init(&states, facts, machine, &s.pricer);
        s.compulsory = nest_compulsory(&states, facts, machine);
        greedy_tree(ctx, arena, facts, machine, true, &greedy);
        State plain = start(&s, &none, NULL), fused = start(&s, &greedy, &plain);
        if (!is_sliced(facts)) {
            if (kind->neighbours) {
                Tree from = plain.tree, all = fused.tree;
                moves_each(s.scratch, s.arena, s.facts, &from, consider, &s);
                moves_strips(s.scratch, s.arena, s.facts, &all, consider, &s);
            }
            search_run(&s);
        }
        const State *taken = choose(&s, &plain, &fused);
        append(arena, &out->taken, &taken->tree);
        find_second(&s, arena, &plain, &fused, taken, out);
        steps = s.steps;
    }
    arena_release(&scratch);
    arena_release(&states);
    return steps;
}

/* The second best of the window that loses least by it, the others as they are. */
static void set_second(Ctx *ctx, Arena *arena, const NestFacts *facts, const Machine *machine,
                       const Window *windows, uint32_t n, Nest *nest)
{
    uint32_t least = n;
    Tree tree = {0};
    for (uint32_t w = 0; w < n; w++) {
        bool any = windows[w].second.list.n > 0;
        least = any && (least == n || windows[w].loss < windows[least].loss) ? w : least;
    }
    if (least == n) {
        return;
    }
    for (uint32_t w = 0; w < n; w++) {
        append(arena, &tree, w == least ? &windows[w].second : &windows[w].taken);
    }
    const Nest *second = nest_with_loops(ctx, arena, facts, machine, &tree);
    double by = second->cost.seconds - nest->cost.seconds;
    nest->second = second;
    nest->turned_down = by > 0    ? "takes longer"
                        : by == 0 ? "takes as long"
                        : nest_footprint(machine, second, &second->cost) >
                                nest_footprint(machine, nest, &nest->cost)
                            ? "has values too large to stay on chip"
                        : cuts_contractions(facts->g, &tree)
                            ? "saves too little for cutting contractions"
                            : "keeps less on chip";
}

static Nest *choose_large(Ctx *ctx, Arena *arena, const Graph *g, const Machine *machine)
{
    Nest *nest = nest_greedy(ctx, arena, g, machine);
    nest_estimate(ctx, machine, nest);
    if (nest->unfused.seconds < nest->cost.seconds) {
        nest = nest_unfused(ctx, arena, g, machine);
        nest_estimate(ctx, machine, nest);
    }
    nest->steps = 2;
    return nest;
}

Nest *nest_choose(Ctx *ctx, Arena *arena, const Graph *g, const Machine *machine,
                  uint32_t effort)
{
    return nest_choose_within(ctx, arena, g, machine, effort, UINT64_MAX);
}

Nest *nest_choose_within(Ctx *ctx, Arena *arena, const Graph *g, const Machine *machine,
                         uint32_t effort, uint64_t most)
{
    if (g->nodes.n > NEST_LARGE) {
        return choose_large(ctx, arena, g, machine);
    }
    NestFacts *facts = ARENA_NEW(arena, NestFacts);
    Tree tree = {0};
    uint64_t steps = 0;
    nest_facts(arena, g, facts);
    facts->halos = machine_traits(machine)->halos;
    uint32_t n = facts->n_stored, size = is_sliced(facts) ? n : WINDOW;
    uint32_t n_windows = n == 0 ? 0 : (n + size - 1) / size;
    Window *windows = ARENA_ARRAY(arena, n_windows, Window);
    for (uint32_t w = 0; w < n_windows; w++) {
        uint32_t first = w * size, left = n - first;
        NestFacts window = *facts;
        if (n_windows > 1) {
            window = window_facts(arena, facts, first, left < size ? left : size);
        }
        steps +=
            search_window(ctx, arena, &window, machine, effort, most / n_windows, &windows[w]);
        append(arena, &tree, &windows[w].taken);
    }
    Nest *nest = nest_with_loops(ctx, arena, facts, machine, &tree);
    nest->steps = steps;
    if (most == UINT64_MAX) {
        set_second(ctx, arena, facts, machine, windows, n_windows, nest);
    }
    return nest;
}
