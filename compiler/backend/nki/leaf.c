/* SPDX-License-Identifier: Apache-2.0 */
/* How long a leaf of a nest keeps each engine busy: what contract.c and evaluate.c will make of it, before there is a statement. An
 * instruction takes a cycle for each element of a partition; how many instructions an expression is follows from its shape: two operations
 * with numbers or columns are one, and a function takes a scale and a bias along. */
#include "nest/engines.h"
#include "backend/nki/price.h"

#define LANES     ((double)NKI_PARTITIONS)
#define PIECE     ((double)NKI_PSUM_BANK / 4) /* elements of a partition that one matmul sets */
#define KEPT      2048.0 /* elements of a block that stays where matmuls leave it */
#define ACROSS    16.0   /* passes of a maximum over partitions */
#define SHARE     0.25   /* of what may be packed: one block */
#define STATEMENT 1e-7   /* seconds until an engine begins with a statement, */
#define PRODUCT   2e-7   /* ... and the Tensor engine with a contraction */

typedef struct Leaf {
    const NkiChip *chip;
    const NestLeaf *is;
    const Nest *nest;
    const Graph *g;
    NodeRef ref;
    const Node *n;
    const UseList *uses;
    const double *extent; /* of its labels */
    Engines *to;
    double lanes;       /* partitions that an expression fills */
    uint32_t functions; /* one after the other */
} Leaf;

static double most(double x, double y)
{
    return x > y ? x : y;
}

static double ceiling(double x)
{
    return (double)(int64_t)x < x ? (double)((int64_t)x + 1) : x;
}

static double on_lanes(double rows)
{
    return rows < 1.0 ? 1.0 : rows < LANES ? rows : LANES;
}

static bool is_made(const Leaf *l, NodeRef n)
{
    return l->nest->values[n].item != NEST_NONE;
}

static bool is_block(const Leaf *l, NodeRef n)
{
    return l->nest->values[n].residence == RESIDE_TILE;
}

/* The label of the leaf that lies on partitions where the operand was made; or -1. */
static int32_t label_lying(const Leaf *l, const Use *u)
{
    int32_t on = is_made(l, u->node) ? l->is->on[u->node] : -1;
    return on < 0 ? -1 : u->access.index[on].label;
}

static double elements_of(const Leaf *l, const Access *a)
{
    double count = 1.0;
    for (uint32_t d = 0; d < a->rank; d++) {
        count *= a->index[d].label < 0 ? 1.0 : l->extent[a->index[d].label];
    }
    return count;
}

static double kept_elements(const Leaf *l)
{
    double count = 1.0;
    for (uint32_t d = 0; d < l->n->rank; d++) {
        count *= l->extent[l->n->out[d]];
    }
    return count;
}

static void add_array(Leaf *l, DType t, double count, double columns, bool transposes)
{
    l->to->tensor += count * price_array(l->chip, t, columns, transposes);
}

static DType dtype_of(const Leaf *l, NodeRef n)
{
    return graph_node(l->g, n)->dtype;
}

static bool is_function(const Node *n)
{
    OpRule rule = op_info(n->op)->rule;
    return (rule == RULE_FLOAT || rule == RULE_RFLOAT) && n->n_operands == 1;
}

/* ---- expressions ---- */

/* Elements of a partition. */
static double columns_of(const Leaf *l, uint32_t rank, const double *dim)
{
    double count = 1.0;
    for (uint32_t d = 0; d < rank; d++) {
        count *= dim[d];
    }
    return count / l->lanes;
}

static bool is_inline(const Leaf *l, NodeRef n)
{
    return l->is->f->residence[n] == RESIDE_INLINE && graph_node(l->g, n)->op != OP_CONST;
}

/* Columns of an operand, and the extents of its dimensions, for those of its reader's labels. */
static double operand_columns(const Leaf *l, const Access *a, const double *label, double *dim)
{
    for (uint32_t d = 0; d < a->rank; d++) {
        dim[d] = a->index[d].label < 0 ? 1.0 : label[a->index[d].label];
    }
    return columns_of(l, a->rank, dim);
}

static void count_node(Leaf *l, NodeRef ref, const double *dim, uint32_t taken);

/* The operands of a node; `taken`: so many operations of the first that has all its elements go with it. */
static void count_operands(Leaf *l, const Node *n, const double *label, double full,
                           uint32_t taken)
{
    for (uint32_t k = 0; k < n->n_operands; k++) {
        double dim[RANK_LIMIT];
        if (is_inline(l, n->operand[k])) {
            bool all = operand_columns(l, &n->access[k], label, dim) >= full;
            count_node(l, n->operand[k], dim, all ? taken : 0);
            taken = all ? 0 : taken;
        }
    }
}

/* Operands that have all elements of the node. */
static uint32_t full_operands(const Leaf *l, const Node *n, const double *label, double full)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < n->n_operands; k++) {
        double dim[RANK_LIMIT];
        bool again = k > 0 && n->operand[k] == n->operand[0];
        bool all = operand_columns(l, &n->access[k], label, dim) >= full;
        count += all && (full > 1.0 || k == 0) && !again;
    }
    return count;
}

/* Is an operand read where matmuls leave it, in one order alone? The other one then comes from elsewhere, and both are read at once. */
static bool reads_product(const Leaf *l, const Node *n)
{
    bool any = false;
    for (uint32_t k = 0; k < n->n_operands; k++) {
        NodeRef x = n->operand[k];
        uint32_t orders = 0;
        for (uint32_t i = 0; i < l->uses->list.n; i++) {
            orders += l->uses->list.at[i].node == x;
        }
        any |= orders == 1 && is_made(l, x) && is_block(l, x) &&
               l->nest->values[x].fold == NEST_NONE &&
               op_info(graph_node(l->g, x)->op)->kind == OPKIND_CONTRACT;
    }
    return any;
}

/* Each piece of a join is a statement of its own. */
static void count_pieces(Leaf *l, const Node *join)
{
    for (uint32_t k = 0; k < join->n_operands; k++) {
        const Node *piece = graph_node(l->g, join->operand[k]);
        double dim[RANK_LIMIT];
        for (uint32_t d = 0; d < piece->rank; d++) {
            dim[d] = (double)nest_typical(l->g, piece->shape[d]);
        }
        if (is_inline(l, join->operand[k])) {
            count_node(l, join->operand[k], dim, 0);
        } else {
            l->to->copies += columns_of(l, piece->rank, dim);
        }
    }
}

static void count_node(Leaf *l, NodeRef ref, const double *dim, uint32_t taken)
{
    const Node *n = graph_node(l->g, ref);
    double label[RANK_LIMIT], full = columns_of(l, n->rank, dim);
    if (op_info(n->op)->kind == OPKIND_LEAF || n->n_labels > RANK_LIMIT || n->op == OP_VIEW) {
        return;
    }
    for (uint32_t k = 0; k < n->n_labels; k++) {
        label[k] = 1.0;
    }
    for (uint32_t d = 0; d < n->rank; d++) {
        label[n->out[d]] = dim[d];
    }
    if (n->op == OP_CAST || n->op == OP_COPY) {
        count_operands(l, n, label, full, taken);
    } else if (node_is_whole(n)) {
        count_pieces(l, n);
    } else if (is_function(n)) {
        l->to->scalar += full;
        l->functions++;
        count_operands(l, n, label, full, 2);
    } else if (n->n_operands == 2 && full_operands(l, n, label, full) <= 1) {
        bool scales = n->op == OP_MUL || n->op == OP_DIV; /* either engine */
        *(scales ? &l->to->copies : &l->to->vector) += taken > 0 ? 0.0 : full;
        count_operands(l, n, label, full, taken > 0 ? taken - 1 : 1);
    } else {
        bool quotient = n->op == OP_DIV && graph_node(l->g, n->operand[1])->op != OP_CONST;
        l->to->vector += n->n_operands > 1 && !reads_product(l, n) ? 2.0 * full : full;
        l->to->scalar += quotient ? full : 0.0;
        count_operands(l, n, label, full, 1);
    }
}

/* Does the leaf follow, among leaves that read the same, the one that makes the only block it reads, a function? Then one pass makes both. */
static bool goes_along(const Leaf *l)
{
    const Nest *nest = l->nest;
    NodeRef made = uses_count(l->uses) == 1 ? l->uses->list.at[0].node : NODE_NONE;
    bool plain = l->n->op == OP_CAST || l->n->op == OP_SUM;
    if (made == NODE_NONE || !plain || !is_made(l, made) || l->n->operand[0] != made) {
        return false;
    }
    const Node *m = graph_node(l->g, made);
    uint32_t at = nest->values[made].item, item = l->is->item;
    if (!is_function(m) || m->dtype != DTYPE_F32 ||
        nest->items[at].parent != nest->items[item].parent || item > at + 2) {
        return false;
    }
    uint32_t casts = 0, sums = 0;
    for (uint32_t k = at + 1; k < nest->n_items && k <= at + 2; k++) {
        const Node *r =
            nest_is_loop(&nest->items[k]) ? NULL : graph_node(l->g, nest->items[k].node);
        if (r != NULL && r->n_operands == 1 && r->operand[0] == made) {
            casts += r->op == OP_CAST;
            sums += r->op == OP_SUM;
        }
    }
    return sums > 0 && (l->n->op == OP_SUM || casts > 0);
}

static void count_expression(Leaf *l)
{
    double dim[RANK_LIMIT];
    for (uint32_t d = 0; d < l->n->rank; d++) {
        dim[d] = l->extent[l->n->out[d]];
    }
    double columns = columns_of(l, l->n->rank, dim);
    count_node(l, l->ref, dim, 0);
    l->to->copies += l->to->vector + l->to->scalar + l->to->copies > 0.0 ? 0.0 : columns;
    l->to->trips = columns / NKI_ROW;
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

/* A fold by the engines for vectors; `on`: the label on partitions. */
static void count_fold(Leaf *l, int32_t on)
{
    const Node *n = l->n;
    double columns = columns_of(l, n->n_labels, l->extent);
    bool product = uses_count(l->uses) == 2 && n->n_operands == 2;
    count_operands(l, n, l->extent, columns, 1);
    bool halves = n->op == OP_RMAX && !is_inline(l, n->operand[0]) &&
                  dtype_of(l, n->operand[0]) == DTYPE_BF16;
    bool spread = product && n->n_labels == 2 && n->rank == 1 && /* a vector, in PSUM */
                  n->operand[0] != n->operand[1] && full_operands(l, n, l->extent, columns) < 2;
    bool squares = product && multiplies_itself(n), sum = n->op == OP_SUM;
    double passes = squares   ? 0.0
                    : spread  ? 1.0
                    : product ? 2.0
                    : sum     ? 0.0
                    : halves  ? 0.5
                              : 1.0;
    bool across = on >= 0 && node_reduces(n, on); /* partitions, which are turned for it */
    l->to->vector += passes * columns;
    l->to->scalar += squares ? columns : 0.0; /* with their sums */
    l->to->copies += (product && !spread && !squares) || sum ? columns : 0.0;
    l->to->copies += across ? (sum ? 2.0 : ACROSS) * columns : 0.0;
    l->to->trips = columns / NKI_ROW;
}

/* What is made in the nest, and lies on partitions by another label than the leaf wants, is turned by the Tensor engine, and copied. */
static void count_turned(Leaf *l, int32_t label)
{
    for (uint32_t i = 0; i < l->uses->list.n && label >= 0; i++) {
        const Use *u = &l->uses->list.at[i];
        if (is_made(l, u->node) && is_block(l, u->node) && l->is->on[u->node] >= 0 &&
            label_lying(l, u) != label) {
            double elements = elements_of(l, &u->access);
            add_array(l, dtype_of(l, u->node), most(elements / (LANES * LANES), 1.0), LANES,
                      true);
            l->to->copies += elements / LANES;
        }
    }
}

/* ---- contractions ---- */

static double role_extent(const Leaf *l, ScheduleRole r)
{
    const Schedule *b = l->is->schedule;
    double all = 1.0;
    for (uint32_t i = 0; i < b->n_labels[r]; i++) {
        all *= l->extent[b->label[r][i]];
    }
    return all;
}

/* Batches of few multiply-adds each: the engine for vectors takes them side by side, a batch on each partition, and adds up products. */
static bool count_tiny(Leaf *l)
{
    double batches = role_extent(l, ROLE_BATCH);
    double each = role_extent(l, ROLE_M) * role_extent(l, ROLE_N) * role_extent(l, ROLE_K);
    if (each > NKI_TINY || batches < 2.0) {
        return false;
    }
    double columns = batches * each / on_lanes(batches);
    l->to->vector = 2.0 * 2.0 * columns;
    l->to->trips = columns / NKI_ROW;
    return true;
}

/* Cycles of the matmuls: of a block on chip one label of the rows, or of the sum, lies on partitions, and others are taken one by one;
 * where none of the sum does, the block is turned, and they share. */
static void count_matmuls(Leaf *l)
{
    const Schedule *b = l->is->schedule;
    bool made = false;
    for (uint32_t i = 0; i < 2; i++) {
        const Use *u = &l->uses->list.at[i];
        int32_t lies = label_lying(l, u);
        made |= is_made(l, u->node) && is_block(l, u->node) &&
                (lies < 0 || node_reduces(l->n, lies));
    }
    double rows = role_extent(l, ROLE_M), sums = role_extent(l, ROLE_K);
    double columns = role_extent(l, ROLE_N), tiles = ceiling(columns / PIECE);
    double row = is_block(l, l->ref) ? l->extent[b->label[ROLE_M][0]] : rows;
    double sum = made ? l->extent[b->label[ROLE_K][0]] : sums;
    add_array(l, dtype_of(l, l->uses->list.at[0].node),
              role_extent(l, ROLE_BATCH) * rows / row * ceiling(row / LANES) * tiles *
                  (sums / sum) * ceiling(sum / LANES),
              columns / tiles, false);
}

static bool is_batch(const Leaf *l, int32_t label)
{
    const Schedule *b = l->is->schedule;
    bool batch = false;
    for (uint32_t i = 0; i < b->n_labels[ROLE_BATCH]; i++) {
        batch = batch || (int32_t)b->label[ROLE_BATCH][i] == label;
    }
    return batch;
}

/* Of what one execution turns of an operand, the part that is not there from the one before; or from any before, where all of it
 * fits and the loops are not over batches, which are turned one by one. */
static double fresh(const Leaf *l, const Use *u)
{
    const Nest *nest = l->nest;
    double runs = 1.0;
    uint32_t made = nest->values[u->node].item; /* none of an argument */
    int64_t bytes =
        made == NEST_NONE ? nest_node_bytes(l->g, u->node) : nest->values[u->node].bytes;
    bool fits = (double)bytes <= SHARE * (double)l->chip->machine.systolic.packed;
    for (uint32_t at = nest->items[l->is->item].parent; at != NEST_NONE;
         at = nest->items[at].parent) {
        int32_t label = nest_loop_label(nest, at, l->ref);
        bool inside = nest_is_in(nest, made, at);
        bool moves = label >= 0 && access_has_label(&u->access, label);
        if (inside || label < 0 || (moves && (!fits || is_batch(l, label)))) {
            break;
        }
        double extent = (double)nest_loop_extent(nest, at);
        runs *= moves ? 1.0 : most(1.0, extent / (double)nest->items[at].tile);
    }
    return 1.0 / runs;
}

/* Operands whose rows do not lie along the sum are turned, by one transpose for each batch, or more. */
static void count_transposes(Leaf *l)
{
    double sum = on_lanes(l->extent[l->is->schedule->label[ROLE_K][0]]);
    for (uint32_t i = 0; i < 2; i++) {
        const Use *u = &l->uses->list.at[i];
        const Access *a = &u->access;
        int32_t last = a->rank > 0 ? a->index[a->rank - 1].label : -1;
        int32_t lies = label_lying(l, u);
        bool turned = is_made(l, u->node)
                          ? node_is_expression(graph_node(l->g, u->node)) &&
                                !(lies >= 0 && node_reduces(l->n, lies))
                          : last >= 0 && node_reduces(l->n, last) && a->rank > 1;
        if (turned) {
            double part = fresh(l, u), rows = elements_of(l, a) / sum;
            double count = most(rows / LANES, role_extent(l, ROLE_BATCH));
            add_array(l, dtype_of(l, u->node), part * count, rows / count, true);
            l->to->copies += part * rows;
        }
    }
}

/* Is what the contraction makes read from where it is made, by what is none? */
static bool stays(const Leaf *l)
{
    const Nest *nest = l->nest;
    const NestValue *v = &nest->values[l->ref];
    bool reads = v->residence == RESIDE_TILE;
    double all = 1.0;
    for (uint32_t d = 0; d < l->n->rank && reads; d++) {
        double length = (double)nest_block_extent(nest, l->ref, v->alloc_loop, d);
        bool row = l->n->out[d] == (int32_t)l->is->schedule->label[ROLE_M][0];
        all *= row ? most(1.0, length / LANES) : length;
    }
    for (uint32_t k = l->is->item + 1; k <= v->last && k < nest->n_items && reads; k++) {
        NodeRef r = nest->items[k].node;
        const UseList *u = nest_is_loop(&nest->items[k]) ? NULL : &l->is->f->uses[r];
        for (uint32_t i = 0; u != NULL && i < u->list.n; i++) {
            reads &= u->list.at[i].node != l->ref || uses_count(u) != 2 ||
                     node_is_expression(graph_node(l->g, r));
        }
    }
    return reads && all <= KEPT;
}

/* Is it read alone by the statement after it, element by element? Then tiles are read where they are made. */
static bool is_followed(const Leaf *l)
{
    const Nest *nest = l->nest;
    uint32_t next = l->is->item + 1;
    return next < nest->n_items && !nest_is_loop(&nest->items[next]) &&
           nest->items[next].parent == nest->items[l->is->item].parent &&
           nest->values[l->ref].last == next &&
           nest->values[l->ref].residence != RESIDE_RESULT &&
           node_is_expression(graph_node(l->g, nest->items[next].node));
}

static void count_product(Leaf *l)
{
    if (count_tiny(l)) {
        return;
    }
    count_matmuls(l);
    count_transposes(l);
    double rows = is_block(l, l->ref) /* in memory several labels share the partitions */
                      ? l->extent[l->is->schedule->label[ROLE_M][0]]
                      : role_extent(l, ROLE_M);
    double columns = kept_elements(l) / on_lanes(rows);
    bool folds = l->nest->values[l->ref].fold != NEST_NONE;
    l->to->trips = columns / PIECE;
    l->to->vector += folds ? columns : 0.0;
    l->to->copies += folds || (!stays(l) && !is_followed(l)) ? columns : 0.0;
}

/* A product of complex numbers has no schedule: each row of the result has both parts, and where both operands are complex there are two
 * products of either part of the sum. Copies are those out of PSUM, and of what is negated. */
static void count_complex(Leaf *l)
{
    const Use *use = l->uses->list.at;
    double products = 0.5, batch = 1.0, sum = 1.0, own[2] = {1.0, 1.0};
    uint32_t moves = 0; /* the operand that does: it has the last label of the result */
    for (uint32_t i = 0; i < 2; i++) {
        products *= dtype_is_complex(dtype_of(l, use[i].node)) ? 2.0 : 1.0;
    }
    for (uint32_t k = 0; k < l->n->n_labels; k++) {
        bool a = access_has_label(&use[0].access, (int32_t)k),
             b = access_has_label(&use[1].access, (int32_t)k);
        *(!(a && b)                        ? &own[b ? 1 : 0]
          : node_reduces(l->n, (int32_t)k) ? &sum
                                           : &batch) *= l->extent[k];
        moves =
            b && !a && l->n->rank > 0 && (int32_t)k == l->n->out[l->n->rank - 1] ? 1 : moves;
    }
    double rows = most(own[1 - moves] / LANES, 1.0), columns = 2.0 * own[moves];
    double matmuls = most(columns / PIECE, 1.0), sums = most(sum / LANES, 1.0);
    add_array(l, dtype_of(l, use[0].node), batch * rows * sums * products * matmuls,
              columns / matmuls, false);
    l->to->copies = batch * columns * (rows + (products > 1.0 ? sums : 0.0));
}

/* ---- all of it ---- */

/* The label that lies on partitions: of a contraction's rows, of the longest that a fold keeps, or of what an expression is made of. */
static int32_t label_on_partitions(const Leaf *l)
{
    const Schedule *b = l->is->schedule;
    int32_t label = b != NULL ? (int32_t)b->label[ROLE_M][0] : -1;
    for (uint32_t i = 0; b == NULL && i < l->uses->list.n && label < 0; i++) {
        const Use *u = &l->uses->list.at[i];
        bool result = l->nest->values[u->node].residence == RESIDE_RESULT;
        label = result ? -1 : label_lying(l, u);
    }
    bool folds = b == NULL && label < 0 && !node_is_expression(l->n);
    for (uint32_t d = 0; d < l->n->rank && folds; d++) {
        bool longer = label < 0 || l->extent[l->n->out[d]] > l->extent[label];
        label = longer ? l->n->out[d] : label;
    }
    return label;
}

static int32_t dim_of(const Node *n, int32_t label)
{
    for (uint32_t d = 0; d < n->rank && label >= 0; d++) {
        if (n->out[d] == label) {
            return (int32_t)d;
        }
    }
    return -1;
}

/* A block of which a partition's share is more than blocks may take goes through memory. */
static double memory_seconds(const Leaf *l, int32_t on)
{
    const NestValue *v = &l->nest->values[l->ref];
    double rows = v->residence != RESIDE_TILE || on < 0
                      ? LANES
                      : (double)nest_block_extent(l->nest, l->ref, v->alloc_loop, (uint32_t)on);
    rows = rows < LANES ? rows : LANES;
    bool fits =
        (double)v->bytes / rows <= SHARE * (double)l->chip->machine.systolic.packed / LANES;
    return v->residence != RESIDE_TILE || fits
               ? 0.0
               : 2.0 * (double)v->bytes / (l->chip->dma_both_gbps * 1e9);
}

static void set_seconds(Leaf *l, double row)
{
    const double vector = 1 / (l->chip->vector_ghz * 1e9),
                 scalar = 1 / (l->chip->scalar_ghz * 1e9);
    const double cycle[3] = {vector, scalar, 0.5 * (vector + scalar)};
    double *each[3] = {&l->to->vector, &l->to->scalar, &l->to->copies};
    for (uint32_t i = 0; i < 3; i++) {
        double passes = row > 0.0 ? price_least(*each[i]) : *each[i];
        passes += row > 0.0 ? NKI_START_CYCLES * ceiling(passes / row) : 0.0;
        *each[i] = *each[i] > 0.0 ? passes * cycle[i] : 0.0;
    }
    l->to->tensor *= LANES * LANES * l->chip->machine.time.multiply_add;
    l->to->scalar += l->functions > 1 ? l->functions * NKI_TABLE_US * 1e-6 : 0.0;
}

void nki_leaf(const void *chip, const NestLeaf *is, Engines *out)
{
    NodeRef ref = is->nest->items[is->item].node;
    const UseList *uses = &is->f->uses[ref];
    Leaf l = {.chip = chip,
              .is = is,
              .nest = is->nest,
              .g = is->f->g,
              .ref = ref,
              .n = graph_node(is->f->g, ref),
              .uses = uses,
              .extent = is->extent,
              .to = out};
    *out = (Engines){.trips = 1.0};
    bool expression = node_is_expression(l.n);
    if (is->schedule == NULL && !expression && uses_count(uses) == 2 && l.n->n_operands == 2 &&
        dtype_is_complex(l.n->acc)) {
        count_complex(&l);
        set_seconds(&l, 0.0);
        out->tensor += PRODUCT;
        return;
    }
    int32_t label = label_on_partitions(&l);
    is->on[ref] = dim_of(l.n, label);
    out->memory = memory_seconds(&l, is->on[ref]);
    if (is->schedule != NULL) {
        count_product(&l);
        set_seconds(&l, PIECE);
        out->tensor += out->tensor > 0.0 ? PRODUCT : 0.0;
        return;
    }
    double longest = label >= 0 ? l.extent[label] : 1.0;
    for (uint32_t k = 0; k < l.n->n_labels && label < 0; k++) {
        longest = most(longest, l.extent[k]);
    }
    l.lanes = on_lanes(longest);
    if (goes_along(&l)) {
        return;
    }
    if (expression) {
        count_expression(&l);
    } else {
        count_fold(&l, label);
    }
    count_turned(&l, label);
    set_seconds(&l, NKI_ROW);
    *(out->scalar > out->vector ? &out->scalar : &out->vector) += STATEMENT;
}
