/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of one kernel. Nodes are in sections: what needs a sum over a cut label complete is a section behind it. A section is
 * a local kernel for the sums over each set of cuts, called leaf by leaf, their reductions, and one for all that is complete,
 * called once for a rank's block. */
#include <string.h>

#include "dist/parts.h"

/* Pairs of classes that are tried. */
#define PAIRS 4u
/* Groups of slices that are tried. */
#define SLICES 8u

typedef struct Plan {
    LocalBuild b;
    Classes classes;
    Choice choice;
    uint32_t *section; /* [nodes] */
    uint32_t *over;    /* [nodes] cuts that it is partial over */
    uint32_t *stored;
    uint32_t last;
} Plan;

/* ---- sections ---- */

/* Does a node stand outside of the loops over slices in which its reader stands? It is computed once, before them. */
static bool is_outside(const Plan *p, NodeRef n, NodeRef reader)
{
    for (uint32_t i = 0; is_fold(graph_node(p->b.from, n)) && i < p->choice.n; i++) {
        if (p->choice.group[i] == i + 1 &&
            slices_told_apart(&p->classes, &p->choice, i, reader) > 1 &&
            slices_told_apart(&p->classes, &p->choice, i, n) <= 1) {
            return true;
        }
    }
    return false;
}

static void find_sections(Plan *p)
{
    const Graph *g = p->b.from;
    for (NodeRef r = 0; r < g->nodes.n; r++) {
        const Node *n = graph_node(g, r);
        p->over[r] = partial_over(&p->classes, &p->choice, r);
        for (uint32_t k = 0; k < n->n_operands; k++) {
            NodeRef o = n->operand[k];
            uint32_t behind = p->section[o] + (p->over[o] != 0 || is_outside(p, o, r) ? 1 : 0);
            p->section[r] = behind > p->section[r] ? behind : p->section[r];
        }
        p->last = p->section[r] > p->last ? p->section[r] : p->last;
    }
}

/* Is the node kept for later sections? Sums are, and what is made of pieces; the rest is computed again. */
static bool *find_kept(Plan *p)
{
    const Graph *g = p->b.from;
    bool *kept = ARENA_ARRAY(p->b.arena, (size_t)g->nodes.n + 1, bool);
    for (NodeRef r = 0; r < g->nodes.n; r++) {
        const Node *n = graph_node(g, r);
        for (uint32_t k = 0; k < n->n_operands; k++) {
            const Node *o = graph_node(g, n->operand[k]);
            bool worth = is_fold(o) || node_is_whole(o);
            kept[n->operand[k]] |= worth && p->section[r] > p->section[n->operand[k]];
        }
    }
    return kept;
}

/* ---- values ---- */

static Op fold_of(const Node *n)
{
    if (op_info(n->op)->kind == OPKIND_REDUCE) {
        return n->op;
    }
    return n->dtype == DTYPE_BOOL ? OP_ANY : OP_SUM;
}

/* A whole value of this shape. */
static uint32_t whole_value(Plan *p, DType t, uint32_t rank, const Dim *shape)
{
    int32_t *cut = ARENA_ARRAY(p->b.arena, rank, int32_t);
    for (uint32_t d = 0; d < rank; d++) {
        cut[d] = -1;
    }
    DistValue v = {.dtype = t, .rank = rank, .shape = shape, .cut = cut, .fold = OP_COPY};
    vec_push(p->b.arena, &p->b.plan->values, v);
    return p->b.plan->values.n - 1;
}

/* The shape in which the caller has a result that is the node, which is whole then (classes.c); null: that of the node. */
static const Dim *shape_of(const Plan *p, NodeRef r, uint32_t *rank)
{
    const Graph *g = p->b.from;
    const Dim *shape = NULL;
    for (uint32_t k = 0; shape == NULL && k < g->results.n; k++) {
        if (g->results.at[k].node == r) {
            shape = result_shape(g, &g->results.at[k], rank);
        }
    }
    return shape;
}

static uint32_t value_of(Plan *p, NodeRef r, bool partial)
{
    const Node *n = graph_node(p->b.from, r);
    uint32_t rank = 0;
    const Dim *shape = p->over[r] == 0 ? shape_of(p, r, &rank) : NULL;
    if (shape != NULL) {
        return whole_value(p, n->dtype, rank, shape);
    }
    int32_t *cut = ARENA_ARRAY(p->b.arena, n->rank, int32_t);
    uint32_t *over = ARENA_ARRAY(p->b.arena, DIST_CUTS, uint32_t);
    for (uint32_t d = 0; d < n->rank; d++) {
        cut[d] =
            n->out == NULL ? -1 : choice_cut(&p->choice, class_of(&p->classes, r, n->out[d]));
    }
    DistValue v = {.dtype = p->over[r] != 0 ? n->acc : n->dtype,
                   .rank = n->rank,
                   .shape = n->shape,
                   .cut = cut,
                   .fold = partial ? fold_of(n) : OP_COPY,
                   .over = over};
    for (uint32_t i = 0; partial && i < p->choice.n; i++) {
        if ((p->over[r] >> i & 1) != 0) {
            over[v.n_over++] = i;
        }
    }
    vec_push(p->b.arena, &p->b.plan->values, v);
    return p->b.plan->values.n - 1;
}

/* ---- steps ---- */

/* The next set of cuts after `over` that something in a section is summed over; false: there is none. */
static bool next_over(const Plan *p, uint32_t section, uint32_t *over)
{
    uint32_t next = 0;
    for (NodeRef r = 0; r < p->b.from->nodes.n; r++) {
        bool later = p->section[r] == section && p->over[r] > *over;
        next = later && (next == 0 || p->over[r] < next) ? p->over[r] : next;
    }
    *over = next;
    return next != 0;
}

/* The sums of a section over one set of cuts, and their reductions. */
static void add_sums(Plan *p, Module *m, uint32_t section, uint32_t over)
{
    const Graph *g = p->b.from;
    NodeRef *wanted = ARENA_ARRAY(p->b.arena, g->nodes.n, NodeRef);
    uint32_t *values = ARENA_ARRAY(p->b.arena, g->nodes.n, uint32_t);
    uint32_t n = 0;
    for (NodeRef r = 0; r < g->nodes.n; r++) {
        if (p->section[r] == section && p->over[r] == over) {
            wanted[n] = r;
            values[n++] = value_of(p, r, true);
        }
    }
    if (n == 0) {
        return;
    }
    local_build(&p->b, m, n, wanted, values, over, true);
    for (uint32_t k = 0; k < n; k++) {
        p->stored[wanted[k]] = value_of(p, wanted[k], false);
        DistStep step = {
            .kind = DIST_REDUCE, .value = values[k], .complete = p->stored[wanted[k]]};
        vec_push(p->b.arena, &p->b.plan->steps, step);
    }
}

/* The cut of slices of which each leaf has a part of the node's value, as a bit; 0: none. */
static uint32_t owned_over(const Plan *p, NodeRef r)
{
    const Node *n = graph_node(p->b.from, r);
    for (uint32_t d = 0; n->out != NULL && d < n->rank; d++) {
        int32_t cut = choice_cut(&p->choice, class_of(&p->classes, r, n->out[d]));
        if (cut >= 0 && p->choice.group[cut] == (uint32_t)cut + 1 &&
            slices_all(&p->choice, (uint32_t)cut) == p->choice.leaves[cut]) {
            return 1u << cut;
        }
    }
    return 0;
}

/* What a section has complete, of leaves that own their parts or of none: results, and what later ones need. */
static void add_complete(Plan *p, Module *m, uint32_t section, const bool *kept, uint32_t over)
{
    const Graph *g = p->b.from;
    NodeRef *wanted = ARENA_ARRAY(p->b.arena, g->nodes.n, NodeRef);
    uint32_t *values = ARENA_ARRAY(p->b.arena, g->nodes.n, uint32_t);
    uint32_t n = 0;
    for (NodeRef r = 0; r < g->nodes.n; r++) {
        bool result = false;
        for (uint32_t k = 0; k < g->results.n; k++) {
            result |= g->results.at[k].node == r;
        }
        bool leaf = graph_node(g, r)->op == OP_INPUT;
        if (p->section[r] == section && p->over[r] == 0 && !leaf && (result || kept[r]) &&
            owned_over(p, r) == over) {
            wanted[n] = r;
            values[n] = value_of(p, r, false);
            n++;
        }
    }
    if (n > 0) {
        local_build(&p->b, m, n, wanted, values, over, false);
        for (uint32_t k = 0; k < n; k++) {
            p->stored[wanted[k]] = values[k];
        }
    }
}

/* A sum of another type than it is added up in, which is a result as it stands, is rounded in a section of its own. */
static void round_results(Plan *p, Module *m)
{
    const Graph *g = p->b.from;
    for (uint32_t k = 0; k < g->results.n; k++) {
        NodeRef r = g->results.at[k].node;
        const Node *n = graph_node(g, r);
        bool summed = n->op != OP_INPUT && p->over[r] != 0;
        if (!summed || p->b.plan->values.at[p->stored[r]].dtype == n->dtype) {
            continue;
        }
        DistValue v = p->b.plan->values.at[p->stored[r]];
        v.dtype = n->dtype;
        uint32_t value = p->b.plan->values.n;
        vec_push(p->b.arena, &p->b.plan->values, v);
        p->b.at = p->last + 1;
        local_build(&p->b, m, 1, &r, &value, 0, false);
        p->stored[r] = value;
    }
}

/* A result that is an argument as it came. */
static uint32_t passed_value(Plan *p, uint32_t param)
{
    const Param *a = &p->b.from->params.at[param];
    DistStep step = {
        .kind = DIST_READ, .arg = param, .value = whole_value(p, a->dtype, a->rank, a->shape)};
    vec_push(p->b.arena, &p->b.plan->steps, step);
    return step.value;
}

/* Of each result the value that is written: of its own shape, which a local kernel gives it where another result, or the sum that it is, has not. */
static const uint32_t *result_values(Plan *p, Module *m)
{
    const Graph *g = p->b.from;
    uint32_t *values = ARENA_ARRAY(p->b.arena, g->results.n + 1, uint32_t);
    for (uint32_t k = 0; k < g->results.n; k++) {
        const Result *result = &g->results.at[k];
        const Node *n = graph_node(g, result->node);
        uint32_t rank = n->rank;
        const Dim *own = result_shape(g, result, &rank), *shape = own != NULL ? own : n->shape;
        values[k] = n->op == OP_INPUT ? passed_value(p, n->param) : p->stored[result->node];
        if (!value_has_shape(&p->b.plan->values.at[values[k]], rank, shape)) {
            values[k] = whole_value(p, n->dtype, rank, shape);
            p->b.at = p->last + 1;
            local_build(&p->b, m, 1, &result->node, &values[k], 0, false);
        }
    }
    return values;
}

static void add_results(Plan *p, const uint32_t *values)
{
    const Graph *g = p->b.from;
    for (uint32_t k = 0; k < g->results.n; k++) {
        const DistArg *arg = arg_named(p->b.plan, g->results.at[k].name);
        DistStep step = {
            .kind = DIST_WRITE, .arg = (uint32_t)(arg - p->b.plan->arg), .value = values[k]};
        vec_push(p->b.arena, &p->b.plan->steps, step);
    }
}

/* ---- sums that nobody needs whole ---- */

/* Does a step read the value, but to write it to an argument? */
static bool is_needed_here(const DistPlan *plan, uint32_t value)
{
    for (uint32_t s = 0; s < plan->steps.n; s++) {
        const DistStep *step = &plan->steps.at[s];
        for (uint32_t k = 0; step->kind == DIST_LOCAL && k < step->n_values; k++) {
            if (step->values[k] == value) {
                return true;
            }
        }
    }
    return false;
}

/* The dimension of the result that lies cut over most axes. */
static uint32_t spread_along(const Plan *p, uint32_t value)
{
    const Graph *g = p->b.from;
    uint32_t best = 0, most = 0;
    for (uint32_t k = 0; k < g->results.n; k++) {
        const DistArg *arg = arg_named(p->b.plan, g->results.at[k].name);
        for (uint32_t i = 0; p->stored[g->results.at[k].node] == value && i < arg->n_pieces;
             i++) {
            uint32_t axes = 0;
            for (uint32_t j = 0; j < arg->n_pieces; j++) {
                axes += arg->piece[j].dim == arg->piece[i].dim ? 1 : 0;
            }
            best = axes > most ? arg->piece[i].dim : best;
            most = axes > most ? axes : most;
        }
    }
    return best;
}

/* Large sums that are results only are spread over the ranks that added them up: each has a part, and sends it where it belongs. */
static void spread_sums(const Plan *p)
{
    DistPlan *plan = p->b.plan;
    for (uint32_t s = 0; s < plan->steps.n; s++) {
        const DistStep *step = &plan->steps.at[s];
        DistValue *v = &plan->values.at[step->complete];
        if (step->kind == DIST_REDUCE &&
            (double)dtype_bytes(v->dtype) * typical_positions(p->b.from, v->rank, v->shape) >
                LARGE_BYTES &&
            !is_needed_here(plan, step->complete)) {
            v->over = plan->values.at[step->value].over;
            v->n_over = plan->values.at[step->value].n_over;
            v->spread = spread_along(p, step->complete);
        }
    }
}

/* ---- all of it ---- */

/* Large results are made by few leaves. */
static uint32_t leaves_of(const Plan *p, uint32_t cut)
{
    const Graph *g = p->b.from;
    bool large = false, summed = p->choice.mate[cut] > 0;
    for (NodeRef r = 0; r < g->nodes.n; r++) {
        const Node *n = graph_node(g, r);
        bool over = (p->over[r] >> cut & 1) != 0;
        summed |= over;
        large |= over && node_bytes(g, n) > LARGE_BYTES;
    }
    return p->choice.mate[cut] > 0 ? LEAVES
           : large                 ? LEAVES_LARGE
           : summed                ? LEAVES
                                   : LEAVES_ROWS;
}

static void add_cuts(Plan *p)
{
    for (uint32_t i = 0; i < p->choice.n; i++) {
        bool sliced = p->choice.group[i] > 0;
        DistCut cut = {p->classes.extent[p->choice.root[i]], p->choice.axis[i],
                       sliced ? p->choice.leaves[i] : leaves_of(p, i), p->choice.mate[i],
                       p->choice.group[i]};
        vec_push(p->b.arena, &p->b.plan->cuts, cut);
    }
}

/* A dimension of an argument that is read by blocks of a cut that something is summed over is dealt as that is, so that nothing moves. Few leaves would
 * leave ranks without any. */
static void deal_args(Plan *p)
{
    DistPlan *plan = p->b.plan;
    for (uint32_t s = 0; s < plan->steps.n; s++) {
        const DistStep *step = &plan->steps.at[s];
        bool moves = step->kind == DIST_READ || step->kind == DIST_WRITE;
        const DistArg *arg = moves ? &plan->arg[step->arg] : NULL;
        const DistValue *v = &plan->values.at[step->value];
        for (uint32_t i = 0; moves && i < arg->n_pieces; i++) {
            DistPiece *piece = (DistPiece *)&arg->piece[i];
            int32_t cut = piece->dim < v->rank ? v->cut[piece->dim] : -1;
            if (cut >= 0 && plan->cuts.at[cut].leaves < LEAVES_ROWS) {
                piece->leaves = LEAVES;
            }
        }
    }
}

/* Operands of large sums come in panels: each leaf of the sum needs its own. */
static void read_panels(Plan *p)
{
    DistPlan *plan = p->b.plan;
    for (uint32_t s = 0; s < plan->steps.n; s++) {
        DistStep *step = &plan->steps.at[s];
        bool large = false;
        if (step->kind != DIST_READ) {
            continue;
        }
        const DistValue *v = &plan->values.at[step->value];
        for (uint32_t d = 0; d < v->rank; d++) {
            large |= v->cut[d] >= 0 && plan->cuts.at[v->cut[d]].leaves == LEAVES_LARGE;
        }
        step->by_leaf = large && can_read_by_leaf(plan, step);
    }
}

bool dist_plan(Ctx *ctx, Arena *arena, Graph *g, Module *m)
{
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        if (op_info(graph_node(g, n)->op)->kind == OPKIND_DENSE) {
            diag_unsupported(
                &ctx->diags, E_NOT_YET, g->span,
                "a kernel with a dense step on ranks is not compiled by this version");
            return false;
        }
    }
    if (g->recurrences.n > 0) {
        diag_unsupported(&ctx->diags, E_NOT_YET, g->span,
                         "a kernel with a recurrence on ranks is not compiled by this version");
        return false;
    }
    DistHead head = dist_head(arena, g);
    DistPlan *plan = dist_read(ctx, arena, &head, &g->ranks);
    if (plan == NULL) {
        return false;
    }
    if (plan->n_axes == 0) { /* all ranks have all arguments */
        plan->axis = ARENA_ARRAY(arena, 1, Sym);
        plan->n_axes = 1;
    }
    Plan p = {.b = {.ctx = ctx, .arena = arena, .from = g, .plan = plan}};
    classes_find(arena, g, &p.classes);
    PairOfClasses pair[PAIRS];
    uint32_t n_pairs = pairs_find(ctx, g, &p.classes, pair, PAIRS);
    SliceGroup group[SLICES];
    uint32_t n_groups = slices_find(g, &p.classes, group, SLICES);
    Together together = {n_pairs, n_groups, pair, group};
    p.choice = choose_cuts(arena, &p.classes, plan, &together);
    p.section = ARENA_ARRAY(arena, (size_t)g->nodes.n + 1, uint32_t);
    p.over = ARENA_ARRAY(arena, (size_t)g->nodes.n + 1, uint32_t);
    p.stored = ARENA_ARRAY(arena, (size_t)g->nodes.n + 1, uint32_t);
    memset(p.stored, 0xff, ((size_t)g->nodes.n + 1) * sizeof *p.stored);
    find_sections(&p);
    add_cuts(&p);
    plan->n_grid = p.choice.n_grid;
    p.b.classes = &p.classes;
    p.b.choice = &p.choice;
    p.b.section = p.section;
    p.b.stored = p.stored;
    const bool *kept = find_kept(&p);
    for (uint32_t s = 0; s <= p.last; s++) {
        p.b.at = s;
        for (uint32_t over = 0; next_over(&p, s, &over);) {
            add_sums(&p, m, s, over);
        }
        add_complete(&p, m, s, kept, 0);
        for (uint32_t i = 0; i < p.choice.n; i++) {
            if (p.choice.group[i] == i + 1) {
                add_complete(&p, m, s, kept, 1u << i);
            }
        }
    }
    round_results(&p, m);
    const uint32_t *values = result_values(&p, m);
    spread_sums(&p);
    add_results(&p, values);
    deal_args(&p);
    read_panels(&p);
    g->ranks = dist_write(arena, &head, plan);
    return true;
}
