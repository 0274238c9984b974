/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel on ranks needs and moves, at typical extents: the plan's table, made here as the C file has it, is walked without a
 * communicator, so that bytes are those of a call. */
#include <math.h>
#include <string.h>

#include <tdsl/dist.h>

#include "driver/mesh.h"
#include "driver/report/report.h"

/* More ranks than these are not tried for less memory. */
#define RANKS_TRIED 65536

/* Ranks that are looked at: blocks of others are as these. */
#define SAMPLED      64
#define SAMPLED_MANY 8 /* of more than so many: */
#define MANY         4096

/* ---- the table ---- */

static size_t no_workspace(const int64_t *dims, int32_t threads)
{
    (void)dims;
    (void)threads;
    return 0;
}

static tdsl_dist_dim dim_of(Dim d, int32_t cut)
{
    return (tdsl_dist_dim){cut >= 0 ? -1 : d.sym, cut, d.n};
}

static const int32_t *numbers_of(Arena *a, uint32_t n, const uint32_t *from)
{
    int32_t *to = ARENA_ARRAY(a, (size_t)n + 1, int32_t);
    for (uint32_t k = 0; k < n; k++) {
        to[k] = (int32_t)from[k];
    }
    return to;
}

/* A kernel as far as a walk asks: dims are those of the graph's table, computed ones as if they were given. */
static const tdsl_kernel_info *kernel_of(Arena *a, const Graph *g, bool local)
{
    tdsl_kernel_info *k = ARENA_NEW(a, tdsl_kernel_info);
    DistHead head = dist_head(a, g);
    tdsl_arg_info *args = ARENA_ARRAY(a, (size_t)head.n_args + 1, tdsl_arg_info);
    for (uint32_t i = 0; i < head.n_args; i++) {
        tdsl_extent *extents = ARENA_ARRAY(a, (size_t)head.arg[i].rank + 1, tdsl_extent);
        for (uint32_t d = 0; d < head.arg[i].rank; d++) {
            Dim e = head.arg[i].shape[d];
            extents[d] = (tdsl_extent){e.sym, 0, e.n};
        }
        bool inout = false;
        for (uint32_t r = 0; r < g->results.n; r++) {
            inout |= g->results.at[r].param == (int32_t)i;
        }
        args[i] = (tdsl_arg_info){.name = head.arg[i].name->text,
                                  .role = head.arg[i].result     ? TDSL_OUT
                                          : inout                ? TDSL_INOUT
                                          : head.arg[i].rank > 0 ? TDSL_IN
                                                                 : TDSL_SCALAR,
                                  .dtype = (int32_t)head.arg[i].dtype,
                                  .rank = (int32_t)head.arg[i].rank,
                                  .extents = extents};
    }
    k->abi_version = TDSL_ABI_VERSION;
    k->n_dims = (int32_t)(local ? dims_given(&g->dims) : g->dims.list.n);
    k->n_args = (int32_t)head.n_args;
    k->args = args;
    k->workspace_bytes_threads = no_workspace;
    return k;
}

static const tdsl_dist_arg *args_of(Arena *a, const DistPlan *plan)
{
    tdsl_dist_arg *args = ARENA_ARRAY(a, (size_t)plan->n_args + 1, tdsl_dist_arg);
    for (uint32_t k = 0; k < plan->n_args; k++) {
        const DistArg *from = &plan->arg[k];
        tdsl_dist_piece *pieces = ARENA_ARRAY(a, (size_t)from->n_pieces + 1, tdsl_dist_piece);
        for (uint32_t i = 0; i < from->n_pieces; i++) {
            pieces[i] = (tdsl_dist_piece){(int32_t)from->piece[i].axis,
                                          (int32_t)from->piece[i].dim, from->piece[i].leaves};
        }
        args[k] = (tdsl_dist_arg){from->partial ? 1 : 0, (int32_t)from->n_pieces, pieces};
    }
    return args;
}

static const tdsl_dist_value *values_of(Arena *a, const DistPlan *plan)
{
    tdsl_dist_value *values = ARENA_ARRAY(a, (size_t)plan->values.n + 1, tdsl_dist_value);
    for (uint32_t k = 0; k < plan->values.n; k++) {
        const DistValue *v = &plan->values.at[k];
        tdsl_dist_dim *extents = ARENA_ARRAY(a, (size_t)v->rank + 1, tdsl_dist_dim);
        for (uint32_t d = 0; d < v->rank; d++) {
            extents[d] = dim_of(v->shape[d], -1);
        }
        values[k] =
            (tdsl_dist_value){.dtype = (int32_t)v->dtype,
                              .rank = (int32_t)v->rank,
                              .extents = extents,
                              .cuts = v->cut,
                              .fold = v->fold == OP_COPY ? TDSL_FOLD_NONE : TDSL_FOLD_SUM,
                              .n_over = (int32_t)v->n_over,
                              .over = numbers_of(a, v->n_over, v->over),
                              .spread = v->spread};
    }
    return values;
}

static const Graph *graph_named(const Module *m, Sym name)
{
    for (uint32_t k = 0; k < m->graphs.n; k++) {
        if (m->graphs.at[k]->name == name) {
            return m->graphs.at[k];
        }
    }
    return NULL;
}

static const tdsl_dist_step *steps_of(Arena *a, const Module *m, const DistPlan *plan)
{
    static const int32_t kind[] = {[DIST_READ] = TDSL_STEP_READ,
                                   [DIST_LOCAL] = TDSL_STEP_LOCAL,
                                   [DIST_REDUCE] = TDSL_STEP_REDUCE,
                                   [DIST_WRITE] = TDSL_STEP_WRITE};
    tdsl_dist_step *steps = ARENA_ARRAY(a, (size_t)plan->steps.n + 1, tdsl_dist_step);
    for (uint32_t k = 0; k < plan->steps.n; k++) {
        const DistStep *s = &plan->steps.at[k];
        const Graph *local = s->kind == DIST_LOCAL ? graph_named(m, s->kernel) : NULL;
        tdsl_dist_dim *dims = ARENA_ARRAY(a, (size_t)s->n_dims + 1, tdsl_dist_dim);
        if (s->kind == DIST_LOCAL && local == NULL) {
            return NULL;
        }
        for (uint32_t d = 0; d < s->n_dims; d++) {
            dims[d] = dim_of(s->dim[d], s->block[d]);
        }
        steps[k] = (tdsl_dist_step){.kind = kind[s->kind],
                                    .arg = (int32_t)s->arg,
                                    .value = (int32_t)s->value,
                                    .complete = (int32_t)s->complete,
                                    .kernel = local == NULL ? NULL : kernel_of(a, local, true),
                                    .dims = dims,
                                    .values = numbers_of(a, s->n_values, s->values),
                                    .over = numbers_of(a, s->n_over, s->over),
                                    .n_over = (int32_t)s->n_over,
                                    .by_leaf = s->by_leaf ? 1 : 0};
        if (local != NULL && (steps[k].kernel->n_dims != (int32_t)s->n_dims ||
                              steps[k].kernel->n_args != (int32_t)s->n_values)) {
            return NULL;
        }
    }
    return steps;
}

static bool table_of(Arena *a, const Module *m, const Graph *g, const DistPlan *plan,
                     tdsl_dist_info *t)
{
    tdsl_dist_cut *cuts = ARENA_ARRAY(a, (size_t)plan->cuts.n + 1, tdsl_dist_cut);
    for (uint32_t k = 0; k < plan->cuts.n; k++) {
        const DistCut *cut = &plan->cuts.at[k];
        cuts[k] =
            (tdsl_dist_cut){dim_of(cut->extent, -1), cut->leaves,         (int32_t)cut->axis,
                            (int32_t)cut->mate,      (int32_t)cut->group, 0};
    }
    *t = (tdsl_dist_info){.struct_size = sizeof *t,
                          .version = TDSL_DIST_VERSION,
                          .kernel = kernel_of(a, g, false),
                          .n_axes = (int32_t)plan->n_axes,
                          .n_cuts = (int32_t)plan->cuts.n,
                          .n_values = (int32_t)plan->values.n,
                          .n_steps = (int32_t)plan->steps.n,
                          .n_grid = (int32_t)plan->n_grid,
                          .args = args_of(a, plan),
                          .cuts = cuts,
                          .values = values_of(a, plan),
                          .steps = steps_of(a, m, plan)};
    return t->steps != NULL;
}

/* ---- lower bound ---- */

/* Words that some rank receives at least in a product of m x n x k on P ranks, one copy of the data lying anywhere (Al Daas et al. 2022). */
static double product_bound(double m, double n, double k, double ranks)
{
    double size[3] = {m, n, k};
    for (int i = 0; i < 2; i++) {
        for (int j = i + 1; j < 3; j++) {
            double x = size[i], y = size[j];
            size[i] = x > y ? x : y;
            size[j] = x > y ? y : x;
        }
    }
    double a = size[0], b = size[1], c = size[2];
    double all = (a * b + b * c + a * c) / ranks, least;
    if (ranks <= a / b) {
        least = (a * b + a * c) / ranks + b * c;
    } else if (ranks <= a * b / (c * c)) {
        least = 2 * sqrt(a * b * c * c / ranks) + a * b / ranks;
    } else {
        least = 3 * pow(a * b * c / ranks, 2.0 / 3);
    }
    return least > all ? least - all : 0;
}

/* In bytes, of one contraction. Rows of one tensor with each other: of N rows of x numbers. Labels of both operands and the result are shared out for nothing. */
static double node_bound(const Graph *g, const Node *n, double ranks)
{
    double batch = 1, rows = 1, columns = 1, sum = 1;
    const Node *x = graph_node(g, n->operand[0]), *y = graph_node(g, n->operand[1]);
    for (uint32_t l = 0; l < n->n_labels; l++) {
        bool in[2] = {false, false};
        double size = (double)dim_typical(&g->dims, n->extent[l]);
        for (uint32_t k = 0; k < 2; k++) {
            for (uint32_t d = 0; d < n->access[k].rank; d++) {
                in[k] |= n->access[k].index[d].label == (int32_t)l;
            }
        }
        bool out = !node_reduces(n, (int32_t)l);
        batch *= in[0] && in[1] && out ? size : 1;
        sum *= in[0] && in[1] && !out ? size : 1;
        rows *= in[0] && !in[1] ? size : 1;
        columns *= in[1] && !in[0] ? size : 1;
    }
    if (batch >= ranks || rows * columns * sum < 1) {
        return 0;
    }
    double bytes = (double)dtype_bytes(n->dtype), share = ranks / batch;
    bool same = x->op == OP_INPUT && y->op == OP_INPUT && x->param == y->param;
    if (same) {
        double words = rows * sum / sqrt(share) - rows * sum / share;
        return words > 0 ? words * bytes : 0;
    }
    return product_bound(rows, columns, sum, share) * bytes;
}

static uint64_t kernel_bound(const Graph *g, double ranks)
{
    double most = 0;
    int64_t work = -1;
    int64_t *typical = ARENA_ARRAY(g->arena, (size_t)g->dims.list.n + 1, int64_t);
    for (uint32_t d = 0; d < g->dims.list.n; d++) {
        typical[d] = g->dims.list.at[d].typical;
    }
    for (NodeRef r = 0; r < g->nodes.n; r++) {
        const Node *n = graph_node(g, r);
        bool pair = op_info(n->op)->kind == OPKIND_CONTRACT && node_factors(n) >= 2;
        if (pair && node_multiply_adds(n, typical) > work) {
            work = node_multiply_adds(n, typical);
            most = node_bound(g, n, ranks);
        }
    }
    return ranks <= 1 || most < 1 ? 0 : most < 9e18 ? (uint64_t)most : UINT64_MAX;
}

/* ---- all of it ---- */

/* Is the cut dealt leaf by leaf together with others: as pairs or as slices? */
static bool is_dealt_by_leaf(const DistPlan *plan, uint32_t cut)
{
    return plan->cuts.at[cut].mate > 0 || plan->cuts.at[cut].group > 0;
}

/* Calls of such leaves that a rank has of a step; 0: it has others. */
static double leaf_calls(const DistPlan *plan, const DistStep *s, const tdsl_dist_count *count)
{
    uint32_t paired = 0, sliced = 0, own = 0;
    for (uint32_t k = 0; k < plan->steps.n; k++) {
        const DistStep *step = &plan->steps.at[k];
        uint32_t way = 0;
        for (uint32_t i = 0; i < step->n_over; i++) {
            way |= plan->cuts.at[step->over[i]].mate > 0 ? 1 : 0;
            way |= plan->cuts.at[step->over[i]].group > 0 ? 2 : 0;
        }
        paired += way & 1; /* each such step has as many calls */
        sliced += way >> 1;
        own = step == s ? way : own;
    }
    return (own & 2) != 0   ? (double)count->slices / sliced
           : (own & 1) != 0 ? (double)count->pairs / paired
                            : 0;
}

/* The positions of a leaf of a cut, rounded up. */
static int64_t leaf_extent(const DistPlan *plan, int32_t cut, const int64_t *dims)
{
    const DistCut *c = &plan->cuts.at[cut];
    int64_t n = c->extent.sym < 0 ? c->extent.n : dims[c->extent.sym];
    int64_t leaves = n < c->leaves ? n : c->leaves;
    return leaves < 1 ? 0 : (n + leaves - 1) / leaves;
}

/* Multiply-adds of one rank: those of local kernels are linear in each block. */
static double rank_work(Arena *a, const Module *m, const DistPlan *plan,
                        const tdsl_dist_info *table, const tdsl_mesh *mesh, int32_t rank,
                        const int64_t *dims, const tdsl_dist_count *count)
{
    double work = 0;
    for (uint32_t k = 0; k < plan->steps.n; k++) {
        const DistStep *s = &plan->steps.at[k];
        const Graph *g = s->kind == DIST_LOCAL ? graph_named(m, s->kernel) : NULL;
        if (g == NULL) {
            continue;
        }
        int64_t *given = ARENA_ARRAY(a, (size_t)s->n_dims + 1, int64_t);
        for (uint32_t d = 0; d < s->n_dims; d++) {
            given[d] = s->block[d] >= 0
                           ? tdsl_dist_part(table, mesh, rank, dims, s->block[d]).count
                       : s->dim[d].sym < 0 ? s->dim[d].n
                                           : dims[s->dim[d].sym];
        }
        double calls = leaf_calls(plan, s, count);
        for (uint32_t d = 0; calls > 0 && d < s->n_dims;
             d++) { /* one of them, as in the mean */
            bool leaf = s->block[d] >= 0 && is_dealt_by_leaf(plan, (uint32_t)s->block[d]);
            given[d] = leaf ? leaf_extent(plan, s->block[d], dims) : given[d];
        }
        double own = 0;
        const int64_t *all = dims_complete(a, &g->dims, given);
        for (NodeRef r = 0; r < g->nodes.n; r++) {
            own += (double)node_multiply_adds(graph_node(g, r), all);
        }
        work += calls > 0 ? own * calls : own;
    }
    return work;
}

static const char *mesh_text(Arena *a, const MeshAxes *axes)
{
    Text t = text_new(a);
    for (uint32_t k = 0; k < axes->n; k++) {
        text_printf(&t, "%s%s%s%d", k > 0 ? "," : "", axes->name[k],
                    axes->name[k][0] == '\0' ? "" : ":", (int)axes->size[k]);
    }
    return t.at;
}

static int64_t workspace_of(const Compilation *c, const DistPlan *plan)
{
    int64_t most = 0;
    for (uint32_t k = 0; k < plan->steps.n; k++) {
        const TextLength *length =
            plan->steps.at[k].kind != DIST_LOCAL
                ? NULL
                : output_length(&c->outputs, plan->steps.at[k].kernel->text);
        most = length != NULL && length->workspace > most ? length->workspace : most;
    }
    return most;
}

/* ---- which grid ---- */

typedef struct LocalWork {
    const Compilation *c;
    const DistPlan *plan;
    const tdsl_dist_info *table;
} LocalWork;

/* Multiply-adds of a call, of the graph that the kernel is of. */
static double local_work(void *user, const tdsl_kernel_info *kernel, const int64_t *dims)
{
    const LocalWork *w = user;
    const Graph *g = NULL;
    double work = 0;
    for (uint32_t k = 0; k < w->plan->steps.n; k++) {
        g = w->table->steps[k].kernel == kernel
                ? graph_named(w->c->module, w->plan->steps.at[k].kernel)
                : g;
    }
    const int64_t *all = dims_complete(w->c->arena, &g->dims, dims);
    for (NodeRef r = 0; r < g->nodes.n; r++) {
        work += (double)node_multiply_adds(graph_node(g, r), all);
    }
    return work;
}

/* 1000 leaves of slices 40 x 40 */
static void put_slices(Arena *a, const DistPlan *plan, const DimTable *dims, uint32_t first,
                       Text *out)
{
    int64_t leaves = 1;
    for (uint32_t k = first; k < plan->cuts.n && plan->cuts.at[k].group == first + 1; k++) {
        int64_t typical = dim_typical(dims, plan->cuts.at[k].extent);
        leaves *= typical < plan->cuts.at[k].leaves ? typical : plan->cuts.at[k].leaves;
    }
    text_printf(out, "%lld leaves of slices", (long long)leaves);
    for (uint32_t k = first; k < plan->cuts.n && plan->cuts.at[k].group == first + 1; k++) {
        text_printf(out, "%s%s", k > first ? " x " : " ",
                    dim_written(a, dims, plan->cuts.at[k].extent));
    }
}

static const char *grid_text(Arena *a, const Compilation *c, const ReportRanks *r,
                             const tdsl_grid *grid)
{
    Text t = text_new(a);
    const DimTable *dims = &c->module->graphs.at[r->kernel]->dims;
    for (uint32_t k = 0; k < r->plan->cuts.n; k++) {
        const DistCut *cut = &r->plan->cuts.at[k];
        if ((cut->mate > 0 && cut->mate <= k) || (cut->group > 0 && cut->group <= k) ||
            grid->size[cut->axis] == 1) {
            continue; /* said with its mate, with the first of its slices */
        }
        if (cut->group > 0) {
            text_printf(&t, "%s%d parts of ", t.n > 0 ? ", " : "", (int)grid->size[cut->axis]);
            put_slices(a, r->plan, dims, k, &t);
            continue;
        }
        text_printf(&t, "%s%d parts of %s%s", t.n > 0 ? ", " : "", (int)grid->size[cut->axis],
                    cut->mate > 0 ? "the pairs of " : "", dim_written(a, dims, cut->extent));
    }
    text_put(&t, t.n > 0               ? ""
                 : r->plan->cuts.n > 0 ? "one rank computes all"
                                       : "each computes all");
    return t.at;
}

/* The best grid, and the next best ones. */
static bool choose(Arena *a, const Compilation *c, const DistPlan *plan,
                   const tdsl_dist_info *table, tdsl_mesh *mesh, const int64_t *dims,
                   ReportRanks *out)
{
    tdsl_dist_machine machine = TDSL_DIST_NODE;
    tdsl_dist_choice best[1 + REPORT_GRIDS];
    LocalWork work = {c, plan, table};
    int32_t n = 0;
    uint64_t room = 0, local = (uint64_t)workspace_of(c, plan),
             limit = (uint64_t)c->mesh.memory;
    room = limit == 0 ? 0 : limit > local ? limit - local : 1;
    machine.work = local_work;
    machine.user = &work;
    if (tdsl_dist_choose(table, mesh, dims, room, &machine, 1 + REPORT_GRIDS, best, &n) !=
            TDSL_OK ||
        n == 0) {
        return false;
    }
    mesh->grid = best[0].grid;
    out->moving = best[0].moving;
    out->computing = best[0].computing;
    out->grid = grid_text(a, c, out, &best[0].grid);
    for (int32_t k = 1; k < n; k++) {
        const char *text = grid_text(a, c, out, &best[k].grid);
        bool again = strcmp(text, out->grid) == 0;
        for (uint32_t i = 0; i < out->n_other; i++) {
            again |= strcmp(text, out->other[i].grid) == 0; /* with the axes in another order */
        }
        double seconds = best[k].moving + best[k].computing;
        if (!again && seconds < 4 * (best[0].moving + best[0].computing)) {
            out->other[out->n_other++] = (struct ReportGrid){text, seconds};
        }
    }
    return true;
}

static bool measure(Arena *a, const Compilation *c, const DistPlan *plan,
                    const tdsl_dist_info *table, tdsl_mesh *mesh, ReportRanks *out)
{
    const Graph *g = c->module->graphs.at[out->kernel];
    int64_t *dims = ARENA_ARRAY(a, (size_t)g->dims.list.n + 1, int64_t);
    double total = 0, most = 0;
    for (uint32_t d = 0; d < dims_given(&g->dims); d++) {
        dims[d] = g->dims.list.at[d].typical;
    }
    dims = dims_complete(a, &g->dims, dims);
    if (!choose(a, c, plan, table, mesh, dims, out)) {
        return false;
    }
    int32_t n = out->ranks > MANY ? SAMPLED_MANY : out->ranks < SAMPLED ? out->ranks : SAMPLED;
    for (int32_t k = 0; k < n; k++) {
        int32_t rank = (int32_t)((int64_t)k * out->ranks / n);
        tdsl_dist_count count;
        if (tdsl_dist_measure(table, mesh, rank, dims, &count) != TDSL_OK) {
            return false;
        }
        double work = rank_work(a, c->module, plan, table, mesh, rank, dims, &count);
        uint64_t memory = count.arguments + count.workspace;
        out->memory = memory > out->memory ? memory : out->memory;
        out->received = count.received > out->received ? count.received : out->received;
        work = count.calls > 0 ? work : 0;
        total += work;
        most = work > most ? work : most;
    }
    out->memory += (uint64_t)workspace_of(c, plan);
    out->imbalance = total > 0 ? most * n / total : 1;
    out->bound = kernel_bound(g, out->ranks);
    return true;
}

static bool report_mesh(const Compilation *c, uint32_t kernel, const MeshWish *wish,
                        ReportRanks *out)
{
    const Graph *g = c->module->graphs.at[kernel];
    Arena *a = c->arena;
    *out = (ReportRanks){.kernel = kernel, .ranks = 1};
    DistHead head = dist_head(a, g);
    const DistPlan *plan =
        dist_planned(&g->ranks) ? dist_read(c->ctx, a, &head, &g->ranks) : NULL;
    tdsl_dist_info table;
    tdsl_mesh mesh = {0};
    if (plan == NULL || plan->n_axes > TDSL_DIST_AXES ||
        !table_of(a, c->module, g, plan, &table)) {
        return false;
    }
    const char **axis = ARENA_ARRAY(a, (size_t)plan->n_axes + 1, const char *);
    for (uint32_t k = 0; k < plan->n_axes; k++) {
        axis[k] = plan->axis[k] == NULL ? "" : plan->axis[k]->text;
    }
    MeshAxes axes;
    if (!mesh_sizes(a, wish, plan->n_axes, axis, &axes, &out->why)) {
        return true;
    }
    mesh.n_axes = (int32_t)axes.n;
    for (int32_t k = 0; k < mesh.n_axes; k++) {
        mesh.size[k] = axes.size[k];
        out->ranks *= mesh.size[k];
    }
    out->mesh = mesh_text(a, &axes);
    out->plan = plan;
    if (!measure(a, c, plan, &table, &mesh, out)) {
        out->why = "sizes beyond 64 bits";
    }
    return true;
}

bool report_ranks(const Compilation *c, uint32_t kernel, ReportRanks *out)
{
    return mesh_is_asked(&c->mesh) && report_mesh(c, kernel, &c->mesh, out);
}

/* Of the numbers of ranks up to RANKS_TRIED, the least with which a rank of the kernel has enough memory; 0: none. */
static int64_t least_ranks(const Compilation *c, uint32_t kernel)
{
    int64_t too_few = 0, enough = 1;
    ReportRanks r;
    for (;; enough *= 2) {
        MeshWish wish = {.ranks = enough};
        if (enough > RANKS_TRIED || !report_mesh(c, kernel, &wish, &r) || r.why != NULL) {
            return 0;
        }
        if (r.memory <= (uint64_t)c->mesh.memory) {
            break;
        }
        too_few = enough;
    }
    while (enough - too_few > 1) {
        MeshWish wish = {.ranks = too_few + (enough - too_few) / 2};
        bool fits = report_mesh(c, kernel, &wish, &r) && r.why == NULL &&
                    r.memory <= (uint64_t)c->mesh.memory;
        too_few = fits ? too_few : wish.ranks;
        enough = fits ? wish.ranks : enough;
    }
    return enough;
}

bool report_ranks_fit(const Compilation *c)
{
    bool ok = true;
    for (uint32_t k = 0; c->mesh.memory > 0 && k < c->module->graphs.n; k++) {
        const Graph *g = c->module->graphs.at[k];
        ReportRanks r;
        if (!report_ranks(c, k, &r) || r.why != NULL || r.memory <= (uint64_t)c->mesh.memory) {
            continue;
        }
        int64_t least = least_ranks(c, k);
        Text need = text_new(c->arena);
        report_bytes(&need, (int64_t)r.memory);
        Diagnostic *e = diag_limit(&c->ctx->diags, E_LIMIT_SIZE, g->span,
                                   "a rank of %d needs %s (%llu bytes) for '%s', "
                                   "--rank-memory is %lld",
                                   (int)r.ranks, need.at, (unsigned long long)r.memory,
                                   g->name->text, (long long)c->mesh.memory);
        if (least > 0) {
            diag_help(e, "%lld ranks are enough", (long long)least);
        } else {
            diag_help(e, "more ranks do not help: what all of them hold is larger");
        }
        ok = false;
    }
    return ok;
}

/* n and m cut, all computed by each */
static void put_cuts(const Compilation *c, const ReportRanks *r, uint32_t n, const DistCut *cut,
                     Text *out)
{
    const DimTable *dims = &c->module->graphs.at[r->kernel]->dims;
    for (uint32_t k = 0; k < n; k++) {
        if (cut[k].mate > 0 && cut[k].mate <= k) {
            continue; /* said with its mate */
        }
        text_printf(out, "%s%s%s", k > 0 ? ", " : "", cut[k].mate > 0 ? "pairs of " : "",
                    dim_written(c->arena, dims, cut[k].extent));
    }
    text_put(out, n == 0 ? "all computed by each" : n == 1 ? " alone cut" : " cut");
}

void report_ranks_text(const Compilation *c, uint32_t kernel, Text *out)
{
    ReportRanks r;
    if (!report_ranks(c, kernel, &r)) {
        return;
    }
    if (r.why != NULL) {
        text_printf(out, "  ranks: %s\n", r.why);
        return;
    }
    text_printf(out, "  %d ranks, %s: %s\n    a rank has ", (int)r.ranks, r.mesh, r.grid);
    report_bytes(out, (int64_t)r.memory);
    text_put(out, ", receives ");
    report_bytes(out, (int64_t)r.received);
    text_put(out, ", of which ");
    report_bytes(out, (int64_t)r.bound);
    text_printf(out,
                " by any plan; %.3g s at 2.5 Tflop/s and 12.5 GB/s, %.3g of them moving, "
                "imbalance %.3g\n",
                r.moving + r.computing, r.moving, r.imbalance);
    for (uint32_t k = 0; k < r.n_other; k++) {
        text_printf(out, "%s%s, %.3g s%s", k == 0 ? "    next best: " : "; ", r.other[k].grid,
                    r.other[k].seconds, k + 1 == r.n_other ? "\n" : "");
    }
    for (uint32_t k = 0; k < r.plan->others.n; k++) {
        const DistOther *other = &r.plan->others.at[k];
        text_put(out, k == 0 ? "    instead, on 64 ranks: " : "; ");
        put_cuts(c, &r, other->n_cuts, other->cut, out);
        text_printf(out, ", %.3g times as long", other->percent / 100.0);
    }
    text_put(out, r.plan->others.n > 0 ? "\n" : "");
}

void report_ranks_json(const Compilation *c, uint32_t kernel, Text *out)
{
    ReportRanks r;
    if (!report_ranks(c, kernel, &r)) {
        return;
    }
    if (r.why != NULL) {
        text_member(out, ", \"ranks\": {\"refused\": ", r.why);
        text_char(out, '}');
        return;
    }
    text_printf(out, ", \"ranks\": {\"count\": %d, \"mesh\": ", (int)r.ranks);
    text_json(out, r.mesh);
    text_member(out, ", \"grid\": ", r.grid);
    text_printf(out,
                ", \"memory\": %llu, \"received\": %llu, \"bound\": %llu, \"seconds\": %.9g, "
                "\"moving\": %.9g, \"imbalance\": %.4g, \"grids\": [",
                (unsigned long long)r.memory, (unsigned long long)r.received,
                (unsigned long long)r.bound, r.moving + r.computing, r.moving, r.imbalance);
    for (uint32_t k = 0; k < r.n_other; k++) {
        text_member(out, k > 0 ? ", {\"grid\": " : "{\"grid\": ", r.other[k].grid);
        text_printf(out, ", \"seconds\": %.9g}", r.other[k].seconds);
    }
    text_put(out, "], \"next_best\": [");
    for (uint32_t k = 0; k < r.plan->others.n; k++) {
        const DistOther *other = &r.plan->others.at[k];
        Text cuts = text_new(c->arena);
        put_cuts(c, &r, other->n_cuts, other->cut, &cuts);
        text_member(out, k > 0 ? ", {\"cuts\": " : "{\"cuts\": ", cuts.at);
        text_printf(out, ", \"times\": %.4g}", other->percent / 100.0);
    }
    text_put(out, "]}");
}
