/* SPDX-License-Identifier: Apache-2.0 */
/* The engines of a systolic machine. An instruction takes a cycle for each element of a partition; how many instructions an
 * expression is follows from its shape: two operations with numbers or columns are one, and a function takes a scale and a bias
 * along. */
#include "nest/engines.h"

#include "nest/levels.h"

#define LANES  128.0
#define TINY   512.0   /* multiply-adds of a batch (backend/nki/batch.c) */
#define PIECE  512.0   /* elements of a partition that one matmul sets */
#define ROW    2048.0  /* of one that an elementwise instruction sets, at most */
#define KEPT   2048.0  /* of a block that stays where matmuls leave it, of so many bytes */
#define ACROSS 16.0    /* passes of a maximum over partitions */
#define SHARE  0.25    /* of what may be packed: one block */
#define LATER  0.05    /* engines wait for each other now and then */
#define CHAIN  0.25e-6 /* from one statement to the next, which waits for it */
#define ALONE  1.0e-6  /* the same where nothing else goes on */

static double most(double x, double y)
{
    return x > y ? x : y;
}

static double count_of(uint32_t rank, const double *dim)
{
    double count = 1.0;
    for (uint32_t d = 0; d < rank; d++) {
        count *= dim[d];
    }
    return count;
}

/* Partitions that positions fill with dimension `on` there, or with the longest of them. */
static double lanes_of(uint32_t rank, const double *dim, int32_t on)
{
    double longest = on >= 0 ? dim[on] : 1.0;
    for (uint32_t d = 0; d < rank && on < 0; d++) {
        longest = most(longest, dim[d]);
    }
    return longest < 1.0 ? 1.0 : longest < LANES ? longest : LANES;
}

typedef struct Counter {
    const NestFacts *f;
    const Nest *nest;
    NodeRef leaf; /* whose expression it is */
    Engines *to;
    double lanes;
    uint32_t functions; /* one after the other */
} Counter;

/* Elements of a partition. */
static double columns_of(const Counter *c, uint32_t rank, const double *dim)
{
    return count_of(rank, dim) / c->lanes;
}

static bool is_inline(const Counter *c, NodeRef n)
{
    return c->f->residence[n] == RESIDE_INLINE && graph_node(c->f->g, n)->op != OP_CONST;
}

/* Extents of an operand's dimensions, for those of its reader's labels. */
static void operand_dims(const Node *n, uint32_t k, const double *label, double *dim)
{
    const Access *a = &n->access[k];
    for (uint32_t d = 0; d < a->rank; d++) {
        dim[d] = a->index[d].label < 0 ? 1.0 : label[a->index[d].label];
    }
}

/* The labels of a node from the extents of its dimensions. */
static void node_labels(const Node *n, const double *dim, double *label)
{
    for (uint32_t l = 0; l < n->n_labels && l < RANK_LIMIT; l++) {
        label[l] = 1.0;
    }
    for (uint32_t d = 0; d < n->rank; d++) {
        label[n->out[d]] = dim[d];
    }
}

static void count_node(Counter *c, NodeRef ref, const double *dim, uint32_t taken);

/* The operands of a node; `taken`: so many operations of the first that has all its elements go with it. */
static void count_operands(Counter *c, const Node *n, const double *label, double full,
                           uint32_t taken)
{
    for (uint32_t k = 0; k < n->n_operands; k++) {
        double dim[RANK_LIMIT];
        if (is_inline(c, n->operand[k])) {
            operand_dims(n, k, label, dim);
            bool all = columns_of(c, n->access[k].rank, dim) >= full;
            count_node(c, n->operand[k], dim, all ? taken : 0);
            taken = all ? 0 : taken;
        }
    }
}

/* Operands that have all elements of the node. */
static uint32_t full_operands(const Counter *c, const Node *n, const double *label, double full)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < n->n_operands; k++) {
        double dim[RANK_LIMIT];
        operand_dims(n, k, label, dim);
        bool again = k > 0 && n->operand[k] == n->operand[0];
        count +=
            columns_of(c, n->access[k].rank, dim) >= full && (full > 1.0 || k == 0) && !again;
    }
    return count;
}

/* Are both operands of the product the same elements? */
static bool multiplies_itself(const Node *n)
{
    bool same = n->operand[0] == n->operand[1];
    for (uint32_t d = 0; d < n->access[0].rank && same; d++) {
        same = n->access[0].index[d].label == n->access[1].index[d].label;
    }
    return same;
}

/* Is an operand read where matmuls leave it, in one order alone? The other one then comes from elsewhere, and both are read at once. */
static bool reads_product(const Counter *c, const Node *n)
{
    const UseList *u = &c->f->uses[c->leaf];
    bool any = false;
    for (uint32_t k = 0; k < n->n_operands; k++) {
        const NestValue *v = &c->nest->values[n->operand[k]];
        uint32_t orders = 0;
        for (uint32_t i = 0; i < u->list.n; i++) {
            orders += u->list.at[i].node == n->operand[k];
        }
        any |= orders == 1 && v->item != NEST_NONE && v->residence == RESIDE_TILE &&
               v->fold == NEST_NONE &&
               op_info(graph_node(c->f->g, n->operand[k])->op)->kind == OPKIND_CONTRACT;
    }
    return any;
}

/* Each piece of a join is a statement of its own. */
static void count_pieces(Counter *c, const Node *join)
{
    for (uint32_t k = 0; k < join->n_operands; k++) {
        const Node *piece = graph_node(c->f->g, join->operand[k]);
        double dim[RANK_LIMIT];
        for (uint32_t d = 0; d < piece->rank; d++) {
            dim[d] = (double)nest_typical(c->f->g, piece->shape[d]);
        }
        if (is_inline(c, join->operand[k])) {
            count_node(c, join->operand[k], dim, 0);
        } else {
            c->to->copies += columns_of(c, piece->rank, dim);
        }
    }
}

static void count_node(Counter *c, NodeRef ref, const double *dim, uint32_t taken)
{
    const Node *n = graph_node(c->f->g, ref);
    const OpInfo *info = op_info(n->op);
    double label[RANK_LIMIT], full = columns_of(c, n->rank, dim);
    if (info->kind == OPKIND_LEAF || n->n_labels > RANK_LIMIT || n->op == OP_VIEW) {
        return;
    }
    node_labels(n, dim, label);
    if (n->op == OP_CAST || n->op == OP_COPY) {
        count_operands(c, n, label, full, taken);
        return;
    }
    if (node_is_whole(n)) {
        count_pieces(c, n);
        return;
    }
    bool function = info->rule == RULE_FLOAT || info->rule == RULE_RFLOAT;
    uint32_t operands = full_operands(c, n, label, full);
    bool quotient = n->op == OP_DIV && graph_node(c->f->g, n->operand[1])->op != OP_CONST;
    if (function && n->n_operands == 1) {
        c->to->scalar += full;
        c->functions++;
        count_operands(c, n, label, full, 2);
    } else if (n->n_operands == 2 && operands <= 1) {
        bool scales = n->op == OP_MUL || n->op == OP_DIV; /* either engine */
        *(scales ? &c->to->copies : &c->to->vector) += taken > 0 ? 0.0 : full;
        count_operands(c, n, label, full, taken > 0 ? taken - 1 : 1);
    } else {
        c->to->vector += n->n_operands > 1 && !reads_product(c, n) ? 2.0 * full : full;
        c->to->scalar += quotient ? full : 0.0;
        count_operands(c, n, label, full, 1);
    }
}

/* Does the leaf follow, among leaves that read the same, the one that makes the only block it reads, a function? Then one pass makes both. */
static bool goes_along(const NestFacts *f, const Nest *nest, uint32_t item)
{
    NodeRef node = nest->items[item].node;
    const UseList *u = &f->uses[node];
    const Node *n = graph_node(f->g, node);
    NodeRef made = uses_count(u) == 1 ? u->list.at[0].node : NODE_NONE;
    bool plain = n->op == OP_CAST || n->op == OP_SUM;
    if (made == NODE_NONE || !plain || nest->values[made].item == NEST_NONE ||
        n->operand[0] != made) {
        return false;
    }
    const Node *m = graph_node(f->g, made);
    const OpInfo *info = op_info(m->op);
    bool function = (info->rule == RULE_FLOAT || info->rule == RULE_RFLOAT) &&
                    m->n_operands == 1 && m->dtype == DTYPE_F32;
    uint32_t at = nest->values[made].item;
    if (!function || nest->items[at].parent != nest->items[item].parent || item > at + 2) {
        return false;
    }
    uint32_t casts = 0, sums = 0;
    for (uint32_t k = at + 1; k < nest->n_items && k <= at + 2; k++) {
        if (!nest_is_loop(&nest->items[k]) &&
            graph_node(f->g, nest->items[k].node)->n_operands == 1 &&
            graph_node(f->g, nest->items[k].node)->operand[0] == made) {
            casts += graph_node(f->g, nest->items[k].node)->op == OP_CAST;
            sums += graph_node(f->g, nest->items[k].node)->op == OP_SUM;
        }
    }
    return sums > 0 && (n->op == OP_SUM || casts > 0);
}

/* Is what the contraction makes read from where it is made, by what is none? */
static bool stays(const NestFacts *f, const Nest *nest, uint32_t item, const Schedule *b)
{
    NodeRef node = nest->items[item].node;
    const Node *n = graph_node(f->g, node);
    const NestValue *v = &nest->values[node];
    bool reads = v->residence == RESIDE_TILE && v->fold == NEST_NONE;
    double all = 1.0;
    for (uint32_t d = 0; d < n->rank && reads; d++) {
        double length = (double)nest_block_extent(nest, node, v->home, d);
        bool row = n->out[d] == (int32_t)b->label[ROLE_M][0];
        all *= row ? most(1.0, length / LANES) : length;
    }
    for (uint32_t k = item + 1; k <= v->last && k < nest->n_items && reads; k++) {
        NodeRef r = nest->items[k].node;
        const UseList *u = nest_is_loop(&nest->items[k]) ? NULL : &f->uses[r];
        for (uint32_t i = 0; u != NULL && i < u->list.n; i++) {
            reads &= u->list.at[i].node != node || uses_count(u) != 2 ||
                     node_is_expression(graph_node(f->g, r));
        }
    }
    return reads && all <= KEPT;
}

/* Is it read alone by the statement after it, element by element? Then tiles are read where they are made. */
static bool is_followed(const NestFacts *f, const Nest *nest, uint32_t item)
{
    NodeRef n = nest->items[item].node;
    uint32_t next = item + 1;
    return next < nest->n_items && !nest_is_loop(&nest->items[next]) &&
           nest->items[next].parent == nest->items[item].parent &&
           nest->values[n].last == next && nest->values[n].residence != RESIDE_RESULT &&
           nest->values[n].fold == NEST_NONE &&
           node_is_expression(graph_node(f->g, nest->items[next].node));
}

/* Of what one execution turns of an operand, the part that is not there from the one before; or from any before, where all of it
 * fits. */
static double fresh(const NestFacts *f, const Machine *machine, const Nest *nest, uint32_t item,
                    const Use *u)
{
    double runs = 1.0;
    uint32_t made = nest->values[u->node].item; /* none of an argument */
    int64_t bytes =
        made == NEST_NONE ? nest_node_bytes(f->g, u->node) : nest->values[u->node].bytes;
    bool fits = (double)bytes <= SHARE * (double)machine->systolic.packed;
    for (uint32_t at = nest->items[item].parent; at != NEST_NONE; at = nest->items[at].parent) {
        const NestAxis *axis = &nest->axes[nest->items[at].axis];
        int32_t label = nest_axis_label(axis, nest->items[item].node);
        bool inside = made != NEST_NONE && made > at && made < nest->items[at].end;
        if (inside || label < 0 || (!fits && access_has_label(&u->access, label))) {
            break;
        }
        if (access_has_label(&u->access, label)) {
            continue;
        }
        double extent = (double)nest_typical(f->g, axis->extent);
        runs *= most(1.0, extent / (double)nest->items[at].tile);
    }
    return 1.0 / runs;
}

static double role_extent(const Schedule *b, ScheduleRole r, const double *extent)
{
    double all = 1.0;
    for (uint32_t i = 0; i < b->n_labels[r]; i++) {
        all *= extent[b->label[r][i]];
    }
    return all;
}

static double ceiling(double x)
{
    return (double)(int64_t)x < x ? (double)((int64_t)x + 1) : x;
}

/* Cycles of the matmuls: of a block on chip one label of the rows, or of the sum, lies on partitions, and others are taken one by one;
 * where none of the sum does, the block is turned, and they share. */
static double matmul_cycles(const NestFacts *f, const Machine *machine, const Nest *nest,
                            uint32_t item, const Schedule *b, const double *extent,
                            const int32_t *on)
{
    NodeRef node = nest->items[item].node;
    bool chip = nest->values[node].residence == RESIDE_TILE, made = false;
    for (uint32_t i = 0; i < 2; i++) {
        const Use *u = &f->uses[node].list.at[i];
        int32_t lies = on[u->node] >= 0 ? u->access.index[on[u->node]].label : -1;
        made |= nest->values[u->node].item != NEST_NONE &&
                nest->values[u->node].residence == RESIDE_TILE &&
                (lies < 0 || node_reduces(graph_node(f->g, node), lies));
    }
    double rows = role_extent(b, ROLE_M, extent), sums = role_extent(b, ROLE_K, extent);
    double columns = role_extent(b, ROLE_N, extent), batches = 1.0;
    for (uint32_t i = 0; i < b->n_labels[ROLE_BATCH]; i++) {
        batches *= extent[b->label[ROLE_BATCH][i]];
    }
    double row = chip ? extent[b->label[ROLE_M][0]] : rows;
    double sum = made ? extent[b->label[ROLE_K][0]] : sums;
    double tiles = ceiling(columns / PIECE);
    double count = batches * rows / row * ceiling(row / LANES) * tiles * (sums / sum) *
                   ceiling(sum / LANES);
    DType t = graph_node(f->g, f->uses[node].list.at[0].node)->dtype;
    return count * systolic_matmul(machine, t, columns / tiles, false);
}

/* Batches of few multiply-adds each: the engine for vectors takes them side by side, a batch on each partition, and adds up products. */
static bool count_tiny(const Schedule *b, const double *extent, Engines *out)
{
    double batches = role_extent(b, ROLE_BATCH, extent), each = 1.0;
    for (ScheduleRole r = 0; r < ROLE_BATCH; r++) {
        each *= role_extent(b, r, extent);
    }
    if (each > TINY || batches < 2.0) {
        return false;
    }
    double columns = batches * each / (batches < LANES ? batches : LANES);
    out->vector = 2.0 * 2.0 * columns;
    out->trips = columns / ROW;
    return true;
}

static void count_product(const NestFacts *f, const Machine *machine, const Nest *nest,
                          uint32_t item, const Schedule *b, const double *extent,
                          const int32_t *on, Engines *out)
{
    NodeRef node = nest->items[item].node;
    const Node *n = graph_node(f->g, node);
    if (count_tiny(b, extent, out)) {
        return;
    }
    double cycle = LANES * LANES * machine->time.multiply_add;
    double sum = extent[b->label[ROLE_K][0]];
    sum = sum < 1.0 ? 1.0 : sum < LANES ? sum : LANES;
    out->tensor =
        machine->time.product + cycle * matmul_cycles(f, machine, nest, item, b, extent, on);
    for (uint32_t i = 0; i < 2; i++) {
        const Use *u = &f->uses[node].list.at[i];
        const Access *a = &u->access;
        int32_t last = a->rank > 0 ? a->index[a->rank - 1].label : -1;
        bool there = nest->values[u->node].item != NEST_NONE;
        int32_t lies = there && on[u->node] >= 0 ? a->index[on[u->node]].label : -1;
        bool summed = lies >= 0 && node_reduces(n, lies);
        bool turned = there ? node_is_expression(graph_node(f->g, u->node)) && !summed
                            : last >= 0 && node_reduces(n, last) && a->rank > 1;
        double elements = 1.0;
        for (uint32_t d = 0; d < a->rank; d++) {
            elements *= a->index[d].label < 0 ? 1.0 : extent[a->index[d].label];
        }
        if (turned) { /* by one transpose for each batch, or more */
            double part = fresh(f, machine, nest, item, u), rows = elements / sum;
            double count = most(rows / LANES, role_extent(b, ROLE_BATCH, extent));
            DType t = graph_node(f->g, u->node)->dtype;
            out->tensor +=
                cycle * part * count * systolic_matmul(machine, t, rows / count, true);
            out->copies += part * rows;
        }
    }
    double dim[RANK_LIMIT];
    for (uint32_t d = 0; d < n->rank; d++) {
        dim[d] = extent[n->out[d]];
    }
    double rows =
        role_extent(b, ROLE_M, extent); /* in memory several labels share the partitions */
    bool chip = nest->values[node].residence == RESIDE_TILE;
    double lanes = chip ? lanes_of(n->rank, dim, on[node]) : lanes_of(1, &rows, 0);
    double columns = count_of(n->rank, dim) / lanes;
    out->trips = columns / PIECE;
    if (nest->values[node].fold != NEST_NONE) {
        out->vector += columns;
        out->copies += columns;
    } else if (!stays(f, nest, item, b) && !is_followed(f, nest, item)) {
        out->copies += columns;
    }
}

/* Which dimension of what the leaf makes lies on partitions: that of a contraction's rows, the longest that a fold keeps, or as what it
 * is made of lies. */
static int32_t dim_on_partitions(const NestFacts *f, const Nest *nest, uint32_t item,
                                 const Schedule *b, const double *extent, const int32_t *on,
                                 int32_t *label)
{
    NodeRef node = nest->items[item].node;
    const Node *n = graph_node(f->g, node);
    const UseList *u = &f->uses[node];
    *label = b != NULL ? (int32_t)b->label[ROLE_M][0] : -1;
    for (uint32_t i = 0; b == NULL && i < u->list.n && *label < 0; i++) {
        NodeRef made = u->list.at[i].node;
        bool there = nest->values[made].item != NEST_NONE && on[made] >= 0 &&
                     nest->values[made].residence != RESIDE_RESULT;
        *label = there ? u->list.at[i].access.index[on[made]].label : -1;
    }
    bool folds = b == NULL && *label < 0 && !node_is_expression(n);
    for (uint32_t d = 0; d < n->rank && folds; d++) { /* what is folded lies along rows */
        bool longer = *label < 0 || extent[n->out[d]] > extent[*label];
        *label = longer ? n->out[d] : *label;
    }
    for (uint32_t d = 0; d < n->rank && *label >= 0; d++) {
        if (n->out[d] == *label) {
            return (int32_t)d;
        }
    }
    return -1;
}

/* Is a partition's share of the block more than blocks may take? Then it goes through memory. */
static bool is_too_long(const Machine *machine, const Nest *nest, NodeRef node, int32_t on)
{
    const NestValue *v = &nest->values[node];
    double rows = v->residence != RESIDE_TILE || on < 0
                      ? LANES
                      : (double)nest_block_extent(nest, node, v->home, (uint32_t)on);
    rows = rows < LANES ? rows : LANES;
    return v->residence == RESIDE_TILE &&
           (double)v->bytes / rows > SHARE * (double)machine->systolic.packed / LANES;
}

/* What is made in the nest, and lies on partitions by another label than the leaf wants, is turned by the Tensor engine, and copied. */
static void count_turned(const NestFacts *f, const Machine *machine, const Nest *nest,
                         NodeRef node, const double *extent, const int32_t *on, int32_t label,
                         Engines *out)
{
    const UseList *u = &f->uses[node];
    for (uint32_t i = 0; i < u->list.n && label >= 0; i++) {
        const Access *a = &u->list.at[i].access;
        NodeRef made = u->list.at[i].node;
        if (nest->values[made].item == NEST_NONE || on[made] < 0 ||
            nest->values[made].residence != RESIDE_TILE || a->index[on[made]].label == label) {
            continue;
        }
        double elements = 1.0;
        for (uint32_t d = 0; d < a->rank; d++) {
            elements *= a->index[d].label < 0 ? 1.0 : extent[a->index[d].label];
        }
        DType t = graph_node(f->g, made)->dtype;
        double tiles = most(elements / (LANES * LANES), 1.0);
        out->tensor += LANES * LANES * machine->time.multiply_add * tiles *
                       systolic_matmul(machine, t, LANES, true);
        out->copies += elements / LANES;
    }
}

void engines_of_leaf(const NestFacts *f, const Machine *machine, const Nest *nest,
                     uint32_t item, const Schedule *schedule, const double *extent, int32_t *on,
                     Engines *out)
{
    NodeRef node = nest->items[item].node;
    const Node *n = graph_node(f->g, node);
    const MachineTimes *t = &machine->time;
    double dim[RANK_LIMIT], all[RANK_LIMIT];
    int32_t label = -1;
    Counter c = {f, nest, node, out, 1.0, 0};
    *out = (Engines){.trips = 1.0};
    for (uint32_t d = 0; d < n->rank; d++) {
        dim[d] = extent[n->out[d]];
    }
    for (uint32_t l = 0; l < n->n_labels && l < RANK_LIMIT; l++) {
        all[l] = extent[l];
    }
    on[node] = dim_on_partitions(f, nest, item, schedule, extent, on, &label);
    c.lanes = lanes_of(n->n_labels, all, label);
    if (is_too_long(machine, nest, node, on[node])) {
        out->memory =
            2.0 * (double)nest->values[node].bytes / machine->level[0].bytes_per_second;
    }
    if (schedule != NULL) {
        count_product(f, machine, nest, item, schedule, extent, on, out);
    } else if (goes_along(f, nest, item)) {
        return;
    } else if (node_is_expression(n)) {
        double columns = columns_of(&c, n->rank, dim);
        count_node(&c, node, dim, 0);
        out->copies += out->vector + out->scalar + out->copies > 0.0 ? 0.0 : columns;
        out->trips = columns / ROW;
    } else {
        double columns = columns_of(&c, n->n_labels, all);
        bool product = uses_count(&f->uses[node]) == 2 && n->n_operands == 2;
        count_operands(&c, n, extent, columns, 1);
        bool halves = n->op == OP_RMAX && !is_inline(&c, n->operand[0]) &&
                      graph_node(f->g, n->operand[0])->dtype == DTYPE_BF16;
        bool spread = product && n->n_labels == 2 && n->rank == 1 && /* a vector, in PSUM */
                      n->operand[0] != n->operand[1] &&
                      full_operands(&c, n, extent, columns) < 2;
        bool squares = product && multiplies_itself(n);
        double passes = squares           ? 0.0
                        : spread          ? 1.0
                        : product         ? 2.0
                        : n->op == OP_SUM ? 0.0
                        : halves          ? 0.5
                                          : 1.0;
        out->vector += passes * columns;
        out->scalar += squares ? columns : 0.0; /* with their sums */
        bool adds = (product && !spread && !squares) || n->op == OP_SUM;
        out->copies += adds ? columns : 0.0; /* either engine */
        bool across =
            label >= 0 && node_reduces(n, label); /* partitions, which are turned for it */
        out->copies += across ? (n->op == OP_SUM ? 2.0 : ACROSS) * columns : 0.0;
        out->trips = columns / ROW;
    }
    if (schedule == NULL) {
        count_turned(f, machine, nest, node, extent, on, label, out);
    }
    double *each[3] = {&out->vector, &out->scalar, &out->copies};
    const SystolicCycles *cycles = &machine->systolic.cycles;
    double row = schedule != NULL ? PIECE : ROW; /* elements of an instruction */
    for (uint32_t i = 0; i < 3; i++) {
        double passes = most(*each[i], (double)cycles->least);
        passes += (double)cycles->instruction * ceiling(passes / row);
        *each[i] = *each[i] > 0.0 ? passes : 0.0;
    }
    out->vector *= LANES * t->op;
    out->scalar *= LANES * t->exp;
    out->copies *= LANES * 0.5 * (t->op + t->exp);
    out->scalar += c.functions > 1 ? c.functions * cycles->table : 0.0; /* each loads its own */
    *(out->scalar > out->vector ? &out->scalar : &out->vector) +=
        schedule == NULL ? t->statement : 0.0;
}

void engines_add(Engines *sum, const Engines *one, double times)
{
    sum->tensor += times * one->tensor;
    sum->vector += times * one->vector;
    sum->scalar += times * one->scalar;
    sum->copies += times * one->copies;
    sum->memory += one->memory;
    sum->chain += times * CHAIN;
}

double engines_seconds(const Engines *e)
{
    double both = 0.5 * (e->vector + e->scalar + e->copies);
    double slow = most(e->vector, e->scalar), busy = most(slow, both);
    double longest = most(most(most(busy, e->tensor), e->memory), e->chain);
    double all = e->tensor + e->memory + e->vector + e->scalar + e->copies;
    all += (ALONE / CHAIN) * e->chain;
    double trips = most(e->trips, 1.0);
    double others = e->tensor + e->memory + 2.0 * both;
    others = others > longest ? LATER * (others - longest) : 0.0;
    return longest * (1.0 + 0.5 * LATER) + others +
           (all > longest ? (all - longest) / trips : 0.0);
}
