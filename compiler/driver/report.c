/* SPDX-License-Identifier: Apache-2.0 */
/* --report: for every kernel, where each value lives and why, in what type it is computed,
 * which values share loops, what must and what does move through memory, and the order of each
 * contraction. Numbers are for typical extents, and say so. The report is collected once and
 * printed as text or JSON. */
#include <string.h>

#include "driver/compile.h"
#include "dump/text.h"

typedef struct Traffic {
    int64_t compulsory; /* every argument read or written once */
    int64_t spilled;    /* every value in the workspace written and read once per reader */
    int64_t multiply_adds;
    int64_t executed; /* with what slices compute again */
} Traffic;

static int64_t type_bytes(const Graph *g, DType t, uint32_t rank, const Dim *shape)
{
    int64_t bytes = dtype_bytes(t);
    for (uint32_t d = 0; d < rank; d++) {
        bytes = sat_mul(bytes, dim_typical(&g->dims, shape[d]));
    }
    return bytes;
}

/* Bytes of the value where it lives: a block for the tiles of its group's schedule. */
int64_t report_value_bytes(const Partition *p, const Schedule *s, NodeRef n)
{
    const Graph *g = p->graph;
    const Node *node = graph_node(g, n);
    if (p->residence[n] != RESIDE_TILE) {
        return type_bytes(g, node->dtype, node->rank, node->shape);
    }
    const Group *group = &p->groups[p->group_of[n]];
    const GroupSchedule *plan = &s->groups[p->group_of[n]];
    uint32_t at = 0;
    while (group->nodes[at] != n) {
        at++;
    }
    int64_t bytes = dtype_bytes(node->dtype);
    for (uint32_t d = 0; d < node->rank; d++) {
        int64_t extent = dim_typical(&g->dims, node->shape[d]);
        for (uint32_t x = 0; x < plan->n_axes; x++) {
            if (group->axes[plan->axes[x].axis].label[at] == node->out[d] &&
                plan->axes[x].tile < extent) {
                extent = plan->axes[x].tile;
            }
        }
        bytes = sat_mul(bytes, extent);
    }
    return bytes;
}

/* How often the node is computed: once for each position of the loops around it whose axes it
 * lacks. */
static int64_t repetitions(const Schedule *s, NodeRef n)
{
    uint32_t number = s->partition->group_of[n], at = 0;
    int64_t count = 1;
    if (number == NODE_NONE) {
        return 1;
    }
    const Group *group = &s->partition->groups[number];
    while (group->nodes[at] != n) {
        at++;
    }
    for (uint32_t x = 0; x < schedule_depth(s, number, at); x++) {
        const GroupAxis *axis = &group->axes[s->groups[number].axes[x].axis];
        if (axis->label[at] < 0) {
            count = sat_mul(count, dim_typical(&s->partition->graph->dims, axis->extent));
        }
    }
    return count;
}

static Traffic measure(const Schedule *s)
{
    const Partition *p = s->partition;
    const Graph *g = p->graph;
    Traffic t = {0};
    for (uint32_t k = 0; k < g->params.n; k++) {
        const Param *param = &g->params.at[k];
        t.compulsory =
            sat_add(t.compulsory, type_bytes(g, param->dtype, param->rank, param->shape));
    }
    int64_t *open = ARENA_ARRAY(g->arena, g->dims.list.n, int64_t);
    for (uint32_t d = 0; d < g->dims.list.n; d++) {
        open[d] = g->dims.list.at[d].typical;
    }
    for (uint32_t k = 0; k < g->results.n; k++) {
        const Node *n = graph_node(g, g->results.at[k].node);
        t.compulsory = sat_add(t.compulsory, type_bytes(g, n->dtype, n->rank, n->shape));
    }
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        if (p->residence[n] == RESIDE_WORKSPACE) {
            t.spilled = sat_add(t.spilled, sat_mul(2, fuse_node_bytes(g, n)));
        }
        if (p->residence[n] != RESIDE_NONE) {
            int64_t work = node_multiply_adds(graph_node(g, n), open);
            t.multiply_adds = sat_add(t.multiply_adds, work);
            t.executed = sat_add(t.executed, sat_mul(work, repetitions(s, n)));
        }
    }
    return t;
}

static void put_bytes(Text *out, int64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    uint32_t u = 0;
    double v = (double)bytes;
    while (v >= 1024 && u < 6) {
        v /= 1024;
        u++;
    }
    text_printf(out, u == 0 ? "%.0f %s" : "%.1f %s", v, units[u]);
}

const char *report_value_name(const Graph *g, NodeRef n, Arena *arena)
{
    const Node *node = graph_node(g, n);
    if (node->op == OP_INPUT) {
        return g->params.at[node->param].name->text;
    }
    return node->name != NULL ? node->name->text : str_format(arena, "%%%u", n);
}

/* ---- text ---- */

static void report_values(const Compilation *c, uint32_t k, Text *out)
{
    const Partition *p = c->partitions[k];
    const Graph *g = p->graph;
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        const Node *node = graph_node(g, n);
        Residence r = p->residence[n];
        bool leaf = node->op == OP_CONST || node->op == OP_EXTENT;
        if (r == RESIDE_NONE || leaf) {
            continue;
        }
        text_printf(out, "  %-12s ", report_value_name(g, n, c->arena));
        Text type;
        text_init(&type, c->arena);
        dump_type(&type, &g->dims, node->dtype, node->rank, node->shape);
        text_printf(out, "%-22s %-10s ", type.at, residence_name(r));
        if (residence_is_stored(r)) {
            put_bytes(out, report_value_bytes(p, c->schedules[k], n));
        }
        if (p->group_of[n] != NODE_NONE) {
            text_printf(out, ", group %u", p->group_of[n]);
        }
        if (node->acc != node->dtype) {
            text_printf(out, ", accumulated in %s", dtype_name(node->acc));
        }
        if (p->reason[n] != NULL) {
            text_printf(out, "; %s", p->reason[n]);
        }
        text_char(out, '\n');
    }
}

static void report_groups(const Compilation *c, uint32_t k, Text *out)
{
    const Partition *p = c->partitions[k];
    const Graph *g = p->graph;
    for (uint32_t i = 0; i < p->n_groups; i++) {
        const GroupSchedule *plan = &c->schedules[k]->groups[i];
        text_printf(out, "  group %u:", i);
        for (uint32_t at = 0; at < p->groups[i].n_nodes; at++) {
            text_printf(out, "%s %s", at == 0 ? "" : ",",
                        report_value_name(g, p->groups[i].nodes[at], c->arena));
        }
        for (uint32_t x = 0; x < plan->n_axes; x++) {
            text_put(out, x == 0 ? "; loops over " : ", ");
            dump_dim(out, &g->dims, p->groups[i].axes[plan->axes[x].axis].extent);
            text_printf(out, " by %lld", (long long)plan->axes[x].tile);
        }
        text_char(out, '\n');
    }
}

static bool has_open_dims(const Graph *g)
{
    return g->dims.list.n > 0;
}

static void report_together(const PathTogether *t, Text *out)
{
    text_printf(out,
                "contractions of kernel %s planned together: %s multiply-adds, one by one %s\n",
                t->kernel->text, t->together, t->separate);
    for (uint32_t k = 0; k < t->shared.n; k++) {
        text_printf(out, "  computed once: %s\n", t->shared.at[k]);
    }
    for (uint32_t k = 0; k < t->factored.n; k++) {
        text_printf(out, "  added first: %s\n", t->factored.at[k]);
    }
}

void compilation_report(const Compilation *c, Text *out)
{
    for (uint32_t k = 0; k < c->module->graphs.n; k++) {
        const Graph *g = c->module->graphs.at[k];
        Traffic t = measure(c->schedules[k]);
        text_printf(out, "kernel %s for %s%s\n", g->name->text, c->target->name,
                    has_open_dims(g) ? ", at typical extents" : "");
        for (uint32_t d = 0; d < g->dims.list.n; d++) {
            text_printf(out, "%s%s ~ %lld%s", d == 0 ? "  " : ", ",
                        g->dims.list.at[d].name->text, (long long)g->dims.list.at[d].typical,
                        d + 1 == g->dims.list.n ? "\n" : "");
        }
        report_values(c, k, out);
        report_groups(c, k, out);
        text_put(out, "  memory: arguments and results ");
        put_bytes(out, t.compulsory);
        text_put(out, ", spilled ");
        put_bytes(out, t.spilled);
        text_printf(out, "; %lld multiply-adds", (long long)t.multiply_adds);
        if (t.executed != t.multiply_adds) {
            text_printf(out, ", %lld with what slices compute again", (long long)t.executed);
        }
        text_char(out, '\n');
    }
    for (uint32_t k = 0; k < c->decisions.together.n; k++) {
        report_together(&c->decisions.together.at[k], out);
    }
    for (uint32_t k = 0; k < c->decisions.list.n; k++) {
        const PathDecision *d = &c->decisions.list.at[k];
        text_printf(out, "contraction order in kernel %s\n", d->kernel->text);
        path_report_text(out, &d->problem, &d->result, d->seconds, c->arena);
    }
}

/* ---- JSON ---- */

static void json_value(const Compilation *c, uint32_t k, NodeRef n, Text *out)
{
    const Partition *p = c->partitions[k];
    const Node *node = graph_node(p->graph, n);
    text_put(out, "{\"name\": ");
    text_json(out, report_value_name(p->graph, n, c->arena));
    text_printf(out, ", \"dtype\": \"%s\", \"accumulator\": \"%s\", \"shape\": [",
                dtype_name(node->dtype), dtype_name(node->acc));
    for (uint32_t d = 0; d < node->rank; d++) {
        Text dim;
        text_init(&dim, c->arena);
        dump_dim(&dim, &p->graph->dims, node->shape[d]);
        text_put(out, d == 0 ? "" : ", ");
        if (node->shape[d].sym < 0) {
            text_put(out, dim.at);
        } else {
            text_json(out, dim.at);
        }
    }
    text_printf(out, "], \"residence\": \"%s\", \"bytes\": %lld",
                residence_name(p->residence[n]),
                (long long)(residence_is_stored(p->residence[n])
                                ? report_value_bytes(p, c->schedules[k], n)
                                : 0));
    if (p->group_of[n] != NODE_NONE) {
        text_printf(out, ", \"group\": %u", p->group_of[n]);
    }
    if (p->reason[n] != NULL) {
        text_put(out, ", \"reason\": ");
        text_json(out, p->reason[n]);
    }
    text_char(out, '}');
}

static void json_groups(const Compilation *c, uint32_t k, Text *out)
{
    const Partition *p = c->partitions[k];
    text_put(out, "], \"groups\": [");
    for (uint32_t i = 0; i < p->n_groups; i++) {
        const GroupSchedule *plan = &c->schedules[k]->groups[i];
        text_put(out, i == 0 ? "{\"values\": [" : ", {\"values\": [");
        for (uint32_t at = 0; at < p->groups[i].n_nodes; at++) {
            text_put(out, at == 0 ? "" : ", ");
            text_json(out, report_value_name(p->graph, p->groups[i].nodes[at], c->arena));
        }
        text_put(out, "], \"loops\": [");
        for (uint32_t x = 0; x < plan->n_axes; x++) {
            text_put(out, x == 0 ? "{\"extent\": \"" : ", {\"extent\": \"");
            dump_dim(out, &p->graph->dims, p->groups[i].axes[plan->axes[x].axis].extent);
            text_printf(out, "\", \"tile\": %lld}", (long long)plan->axes[x].tile);
        }
        text_put(out, "]}");
    }
}

static void json_list(Text *out, const char *name, const char *const *list, uint32_t n)
{
    text_printf(out, ", \"%s\": [", name);
    for (uint32_t k = 0; k < n; k++) {
        text_put(out, k == 0 ? "" : ", ");
        text_json(out, list[k]);
    }
    text_char(out, ']');
}

static void json_together(const Compilation *c, Text *out)
{
    text_put(out, "\n], \"planned_together\": [");
    for (uint32_t k = 0; k < c->decisions.together.n; k++) {
        const PathTogether *t = &c->decisions.together.at[k];
        text_put(out, k == 0 ? "\n{\"kernel\": " : ",\n{\"kernel\": ");
        text_json(out, t->kernel->text);
        text_printf(out, ", \"multiply_adds\": \"%s\", \"one_by_one\": \"%s\"", t->together,
                    t->separate);
        json_list(out, "computed_once", t->shared.at, t->shared.n);
        json_list(out, "added_first", t->factored.at, t->factored.n);
        text_char(out, '}');
    }
}

void compilation_report_json(const Compilation *c, Text *out)
{
    text_printf(out, "{\"target\": \"%s\", \"kernels\": [", c->target->name);
    for (uint32_t k = 0; k < c->module->graphs.n; k++) {
        const Graph *g = c->module->graphs.at[k];
        Traffic t = measure(c->schedules[k]);
        text_put(out, k == 0 ? "\n{\"name\": " : ",\n{\"name\": ");
        text_json(out, g->name->text);
        text_put(out, ", \"typical\": {");
        for (uint32_t d = 0; d < g->dims.list.n; d++) {
            text_put(out, d == 0 ? "" : ", ");
            text_json(out, g->dims.list.at[d].name->text);
            text_printf(out, ": %lld", (long long)g->dims.list.at[d].typical);
        }
        text_put(out, "}, \"values\": [");
        bool first = true;
        for (NodeRef n = 0; n < g->nodes.n; n++) {
            Op op = graph_node(g, n)->op;
            if (c->partitions[k]->residence[n] == RESIDE_NONE || op == OP_CONST ||
                op == OP_EXTENT) {
                continue;
            }
            text_put(out, first ? "\n" : ",\n");
            json_value(c, k, n, out);
            first = false;
        }
        json_groups(c, k, out);
        text_printf(
            out,
            "], \"bytes_compulsory\": %lld, \"bytes_spilled\": %lld, \"multiply_adds\": %lld, "
            "\"multiply_adds_executed\": %lld}",
            (long long)t.compulsory, (long long)t.spilled, (long long)t.multiply_adds,
            (long long)t.executed);
    }
    json_together(c, out);
    text_put(out, "\n], \"contractions\": [");
    for (uint32_t k = 0; k < c->decisions.list.n; k++) {
        const PathDecision *d = &c->decisions.list.at[k];
        text_put(out, k == 0 ? "\n" : ",\n");
        path_report_json(out, &d->problem, &d->result, d->seconds, c->arena);
    }
    text_put(out, "\n]}\n");
}
