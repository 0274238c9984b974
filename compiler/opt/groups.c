/* SPDX-License-Identifier: Apache-2.0 */
/* Products with matrices that rows choose, `y[n,f] = x[n,d] * W[p[n],d,f]`, by groups of the rows that choose the same one: a mixture of
 * experts. Rows are numbered in the order of their groups, each of which has whole blocks of BLOCK rows; the blocks are ordinary products,
 * and each row takes its result from its block:
 *
 *     slot[n]  = BLOCK * first[p[n]] + (rows before n that chose the same)
 *     X[b,r,d] = x[row[BLOCK*b + r], d]          rows that no slot has are 0
 *     Y[b,r,f] = X[b,r,d] * W[expert[b], d, f]
 *     y[n,f]   = Y[slot[n] / BLOCK, mod(slot[n], BLOCK), f]
 *
 * Rows before n are counted in chunks of CHUNK, and chunk by chunk. Numbers outside of 0 .. g - 1 have no slot, and read 0 as they did.
 * At most n/BLOCK + g blocks are needed: where rows are planned to be many times as many as groups, that is little more than n rows. A call
 * with few rows computes one block of each group, which is less than what was planned for. */
#include "opt/opt.h"

#define CHUNK 64
#define BLOCK 96   /* rows; a matrix is packed once a block, so of large groups twice as many */
#define LARGE 1000 /* rows planned for, of a group */
#define ROWS  64   /* least of these: else blocks are mostly empty */
#define EACH  4096 /* least elements of the matrix of a group */

/* Labels of what is made are letters. */
#define LETTERS 26

typedef struct Groups {
    Ctx *ctx;
    Graph *to;
    Arena scratch; /* reset after each node */
    Span span;
    int64_t block; /* rows of one */
    Dim extent[LETTERS];
} Groups;

/* A value and the labels it is read at. */
typedef struct Read {
    NodeRef node;
    const char *at;
} Read;

static NodeRef add_spec(Groups *m, NodeSpec s, uint32_t n, const NodeRef *operand,
                        const Access *access)
{
    s.n_operands = n;
    s.operand = operand;
    s.access = access;
    s.span = m->span;
    return graph_add(m->to, &s);
}

static Access letters_access(Groups *m, const char *at)
{
    uint32_t rank = 0;
    Index *index = ARENA_ARRAY(&m->scratch, LETTERS, Index);
    for (; at[rank] != '\0'; rank++) {
        index[rank] = (Index){.label = at[rank] - 'a'};
    }
    return (Access){rank, index};
}

/* `s` over the labels `out`: operands from `first` on are the terms. */
static NodeRef over(Groups *m, NodeSpec s, const char *out, uint32_t first, NodeRef *operand,
                    Access *access, uint32_t n, const Read *term)
{
    int32_t label[LETTERS];
    Dim shape[LETTERS];
    for (s.rank = 0; out[s.rank] != '\0'; s.rank++) {
        label[s.rank] = out[s.rank] - 'a';
        shape[s.rank] = m->extent[label[s.rank]];
    }
    for (uint32_t k = 0; k < n; k++) {
        operand[first + k] = term[k].node;
        access[first + k] = letters_access(m, term[k].at);
    }
    s.out = label;
    s.out_shape = shape;
    return add_spec(m, s, first + n, operand, access);
}

/* `op` of up to three terms, over the labels `out`. */
static NodeRef make(Groups *m, Op op, DType t, const char *out, uint32_t n, const Read *term)
{
    NodeRef operand[3];
    Access access[3];
    return over(m, (NodeSpec){.op = op, .dtype = t, .acc = t}, out, 0, operand, access, n,
                term);
}

static NodeRef two(Groups *m, Op op, const char *out, NodeRef x, const char *x_at, NodeRef y,
                   const char *y_at)
{
    bool test = op == OP_EQ || op == OP_NE || op == OP_LT || op == OP_LE || op == OP_AND;
    return make(m, op, test ? DTYPE_BOOL : DTYPE_I64, out, 2,
                (const Read[]){{x, x_at}, {y, y_at}});
}

static NodeRef pick(Groups *m, const char *out, NodeRef when, const char *when_at, NodeRef x,
                    const char *x_at, NodeRef y, const char *y_at)
{
    return make(m, OP_SELECT, DTYPE_I64, out, 3,
                (const Read[]){{when, when_at}, {x, x_at}, {y, y_at}});
}

static NodeRef sum(Groups *m, const char *out, NodeRef x, const char *at)
{
    return make(m, OP_SUM, DTYPE_I64, out, 1, &(const Read){x, at});
}

static NodeRef whole(Groups *m, int64_t n)
{
    return graph_const(m->to, number_int(DTYPE_I64, n), m->span);
}

static NodeRef positions(Groups *m, char letter)
{
    return graph_index(m->to, m->extent[letter - 'a'], DTYPE_I64, m->span);
}

/* The number of `at` where `when` is true, over the labels `out`. */
static NodeRef count(Groups *m, const char *out, NodeRef when, const char *at)
{
    NodeRef none = whole(m, 0), one = whole(m, 1);
    return sum(m, out, pick(m, at, when, at, one, "", none, ""), at);
}

/* The table at one or two positions, over the labels `out`. */
static NodeRef at_values(Groups *m, const char *out, NodeRef table, uint32_t n,
                         const Read *position)
{
    NodeRef operand[3] = {table};
    Access access[3] = {access_whole(&m->scratch, n)};
    DType t = graph_node(m->to, table)->dtype;
    return over(m, (NodeSpec){.op = OP_GATHER, .dtype = t}, out, 1, operand, access, n,
                position);
}

/* ---- the order of rows ---- */

typedef struct Order {
    NodeRef row;    /* [b,r]: of x; outside of it, where no slot is taken */
    NodeRef expert; /* [b] */
    NodeRef slot;   /* [n]: below 0, where the number is none */
} Order;

/* (base + both dims times their factors) / divisor, rounded down. */
static Dim sum_of_dims(Groups *m, int64_t base, Dim x, int64_t x_coef, Dim y, int64_t y_coef,
                       int64_t divisor)
{
    DimTerm term[2];
    uint32_t n = 0;
    base += x.sym < 0 ? x_coef * x.n : 0;
    base += y.sym < 0 ? y_coef * y.n : 0;
    if (x.sym >= 0) {
        term[n++] = (DimTerm){x, x_coef};
    }
    if (y.sym >= 0 && n == 1 && dim_eq(x, y)) {
        term[0].coef += y_coef;
    } else if (y.sym >= 0 && y_coef != 0) {
        term[n++] = (DimTerm){y, y_coef};
    }
    return dims_sum(&m->scratch, m->to->arena, &m->ctx->syms, &m->to->dims, m->span, base, n,
                    term, divisor);
}

/* Labels: n rows; c, k chunks; i, j rows of a chunk; g, h 0 for none and 1 + a group; b, r blocks and their rows; s slots. */
static void set_extents(Groups *m, Dim rows, Dim groups)
{
    Dim chunks = dims_quotient(&m->scratch, m->to->arena, &m->ctx->syms, &m->to->dims, m->span,
                               rows, CHUNK);
    Dim blocks = sum_of_dims(m, 0, rows, 1, groups, m->block, m->block);
    Dim factors[2] = {blocks, dim_fixed(m->block)};
    m->extent['n' - 'a'] = rows;
    m->extent['c' - 'a'] = m->extent['k' - 'a'] = chunks;
    m->extent['i' - 'a'] = m->extent['j' - 'a'] = dim_fixed(CHUNK);
    m->extent['g' - 'a'] = m->extent['h' - 'a'] =
        sum_of_dims(m, 1, groups, 1, dim_fixed(0), 0, 1);
    m->extent['b' - 'a'] = blocks;
    m->extent['r' - 'a'] = dim_fixed(m->block);
    m->extent['s' - 'a'] = dims_product(&m->scratch, m->to->arena, &m->ctx->syms, &m->to->dims,
                                        m->span, 2, factors);
}

/* [c,i]: 1 + the group of row CHUNK*c + i, or 0. */
static NodeRef group_of_rows(Groups *m, NodeRef choice, Dim groups, NodeRef at)
{
    NodeRef n_groups = groups.sym < 0 ? whole(m, groups.n)
                                      : graph_extent(m->to, groups.sym, DTYPE_I64, m->span);
    NodeRef low = two(m, OP_LE, "n", whole(m, 0), "", choice, "n");
    NodeRef high = two(m, OP_LT, "n", choice, "n", n_groups, "");
    NodeRef inside = two(m, OP_AND, "n", low, "n", high, "n");
    NodeRef next = two(m, OP_ADD, "n", choice, "n", whole(m, 1), "");
    NodeRef number = pick(m, "n", inside, "n", next, "n", whole(m, 0), "");
    return at_values(m, "ci", number, 1, &(const Read){at, "ci"});
}

/* [c,i]: rows of the same group before this one in its chunk. */
static NodeRef earlier_in_chunk(Groups *m, NodeRef group)
{
    NodeRef i = positions(m, 'i');
    NodeRef earlier = two(m, OP_LT, "ij", i, "j", i, "i");
    NodeRef same = two(m, OP_EQ, "cij", group, "cj", group, "ci");
    NodeRef both = two(m, OP_AND, "cij", earlier, "ij", same, "cij");
    return count(m, "ci", both, "cij");
}

/* What `x` sums up to at the positions `from` before `to`: of [k,g] to [c,g], of [h] to [g]. */
static NodeRef sum_before(Groups *m, const char *out, const char *inner, NodeRef x,
                          const char *x_at, char to, char from)
{
    char to_at[2] = {to, '\0'}, from_at[2] = {from, '\0'}, pair[3] = {from, to, '\0'};
    NodeRef position = positions(m, to);
    NodeRef before = two(m, OP_LT, pair, position, from_at, position, to_at);
    return sum(m, out, pick(m, inner, before, pair, x, x_at, whole(m, 0), ""), inner);
}

static Order order_rows(Groups *m, NodeRef choice, Dim rows, Dim groups)
{
    Order o;
    set_extents(m, rows, groups);
    NodeRef g = positions(m, 'g'), c = positions(m, 'c');
    NodeRef start = two(m, OP_MUL, "c", c, "c", whole(m, CHUNK), "");
    NodeRef at = two(m, OP_ADD, "ci", start, "c", positions(m, 'i'), "i");
    NodeRef group = group_of_rows(m, choice, groups, at);
    NodeRef hit = two(m, OP_EQ, "cig", group, "ci", g, "g");
    NodeRef in_chunks = count(m, "cg", hit, "cig");
    NodeRef before = sum_before(m, "cg", "kcg", in_chunks, "kg", 'c', 'k');
    NodeRef all = sum(m, "g", in_chunks, "cg");
    NodeRef full = two(m, OP_ADD, "g", all, "g", whole(m, m->block - 1), "");
    NodeRef blocks = two(m, OP_DIV, "g", full, "g", whole(m, m->block), "");
    NodeRef none = two(m, OP_EQ, "g", g, "g", whole(m, 0), "");
    NodeRef taken = pick(m, "g", none, "g", whole(m, 0), "", blocks, "g");
    NodeRef first = sum_before(m, "g", "hg", taken, "h", 'g', 'h');
    NodeRef first_of = at_values(m, "ci", first, 1, &(const Read){group, "ci"});
    NodeRef before_of = at_values(m, "ci", before, 2, (const Read[]){{c, "c"}, {group, "ci"}});
    NodeRef place = two(m, OP_MUL, "ci", first_of, "ci", whole(m, m->block), "");
    place = two(m, OP_ADD, "ci", place, "ci", before_of, "ci");
    place = two(m, OP_ADD, "ci", place, "ci", earlier_in_chunk(m, group), "ci");
    NodeRef no = two(m, OP_EQ, "ci", group, "ci", whole(m, 0), "");
    NodeRef slot = pick(m, "ci", no, "ci", whole(m, -m->block), "", place, "ci");

    NodeRef here = two(m, OP_EQ, "cis", slot, "ci", positions(m, 's'), "s");
    NodeRef next = two(m, OP_ADD, "ci", at, "ci", whole(m, 1), "");
    NodeRef found = pick(m, "cis", here, "cis", next, "ci", whole(m, 0), "");
    NodeRef one = whole(m, 1);
    NodeRef row = two(m, OP_SUB, "s", sum(m, "s", found, "cis"), "s", one, "");
    NodeRef b = positions(m, 'b'), n = positions(m, 'n');
    NodeRef of_block = two(m, OP_MUL, "b", b, "b", whole(m, m->block), "");
    NodeRef of_slot = two(m, OP_ADD, "br", of_block, "b", positions(m, 'r'), "r");
    o.row = at_values(m, "br", row, 1, &(const Read){of_slot, "br"});
    NodeRef some = two(m, OP_NE, "g", g, "g", whole(m, 0), "");
    NodeRef begun = two(m, OP_LE, "gb", first, "g", b, "b");
    NodeRef reached = two(m, OP_AND, "gb", some, "g", begun, "gb");
    NodeRef experts = count(m, "b", reached, "gb");
    o.expert = two(m, OP_SUB, "b", experts, "b", whole(m, 1), "");
    NodeRef chunk = two(m, OP_DIV, "n", n, "n", whole(m, CHUNK), "");
    NodeRef in_chunk = two(m, OP_MOD, "n", n, "n", whole(m, CHUNK), "");
    o.slot = at_values(m, "n", slot, 2, (const Read[]){{chunk, "n"}, {in_chunk, "n"}});
    return o;
}

/* ---- the product ---- */

/* A sum over labels of a node of one value times a matrix that a label of the result chooses. */
typedef struct Choice {
    const Node *sum;
    Access x;      /* in labels of the sum */
    NodeRef x_of;  /* in the old graph */
    Access matrix; /* label by dimension; -1: the one that is chosen */
    NodeRef table; /* in the old graph */
    uint32_t chosen;
    NodeRef choice; /* [n], in the old graph */
    int32_t rows;   /* label */
} Choice;

/* Reads the gather's dimensions as labels of the sum: all but one at indices, each its own. */
static bool is_choice(Groups *m, const Graph *g, NodeRef gather, Access read, Choice *c)
{
    const Node *n = graph_node(g, gather);
    const Node *table = graph_node(g, n->operand[0]);
    Index *label = ARENA_ARRAY(&m->scratch, (size_t)table->rank + 1, Index);
    uint32_t values = 0;
    for (uint32_t d = 0; d < table->rank; d++) {
        const Node *at = graph_node(g, n->operand[d + 1]);
        Access a = access_compose(&m->scratch, n, n->access[d + 1], read);
        bool plain = at->op == OP_INDEX && a.index[0].label >= 0 &&
                     dim_eq(at->shape[0], table->shape[d]);
        label[d] = (Index){.label = plain ? a.index[0].label : -1};
        for (uint32_t e = 0; plain && e < d; e++) {
            if (label[e].label == label[d].label) {
                return false;
            }
        }
        if (!plain) {
            bool one = a.rank == 1 && a.index[0].label >= 0 && ++values == 1;
            c->chosen = d;
            c->choice = n->operand[d + 1];
            c->rows = one ? a.index[0].label : -1;
            if (!one) {
                return false;
            }
        }
    }
    c->matrix = (Access){table->rank, label};
    c->table = n->operand[0];
    return values == 1 && !access_has_label(&c->matrix, c->rows);
}

/* Each label once, the rows' among them. */
static bool is_plain(Access a, int32_t rows)
{
    bool plain = access_has_label(&a, rows);
    for (uint32_t d = 0; d < a.rank; d++) {
        plain = plain && a.index[d].label >= 0;
        for (uint32_t e = 0; e < d; e++) {
            plain = plain && a.index[d].label != a.index[e].label;
        }
    }
    return plain;
}

static double typical(const Graph *g, Dim d)
{
    return (double)dim_typical(&g->dims, d);
}

/* A number, or what a call gives: what blocks are counted with. */
static bool is_given(const Graph *g, Dim d)
{
    return d.sym < 0 ? d.n < 1 << 30 : dim_is_given(&g->dims.list.at[d.sym]);
}

/* Is it worth blocks of rows? */
static bool is_worth(const Graph *g, const Choice *c)
{
    const Node *n = c->sum;
    Dim groups = graph_node(g, c->table)->shape[c->chosen], rows = n->extent[c->rows];
    double each = 1.0, folded = 1.0, free = 1.0;
    for (uint32_t d = 0; d < c->matrix.rank; d++) {
        int32_t label = c->matrix.index[d].label;
        if (label >= 0) {
            double size = typical(g, n->extent[label]);
            bool both = access_has_label(&c->x, label);
            each *= size;
            folded *= node_reduces(n, label) && both ? size : 1.0;
            free *= node_reduces(n, label) || both ? 1.0 : size;
        }
    }
    return is_given(g, groups) && is_given(g, rows) &&
           typical(g, rows) >= ROWS * typical(g, groups) && each >= EACH && folded >= 16.0 &&
           free >= 16.0;
}

/* Is the node such a sum? The product inside may be a node of its own. */
static bool find_choice(Groups *m, const Graph *g, NodeRef r, Choice *c)
{
    const Node *n = graph_node(g, r), *product = n;
    Access own[2], x[2];
    if ((n->op != OP_SUM && n->op != OP_EINSUM) || n->onto || n->n_labels == n->rank ||
        n->dtype == DTYPE_BOOL) {
        return false;
    }
    if (n->op == OP_SUM) {
        product = graph_node(g, n->operand[0]);
        if (product->op != OP_MUL || product->dtype != n->dtype) {
            return false;
        }
    }
    if (product->n_operands != 2) {
        return false;
    }
    for (uint32_t k = 0; k < 2; k++) {
        own[k] = product->access[k];
        x[k] =
            n == product ? own[k] : access_compose(&m->scratch, product, own[k], n->access[0]);
    }
    for (uint32_t k = 0; k < 2; k++) {
        *c = (Choice){.sum = n, .x = x[1 - k], .x_of = product->operand[1 - k]};
        const Node *o = graph_node(g, c->x_of);
        bool stored = o->op == OP_INPUT || op_info(o->op)->kind == OPKIND_MAP ||
                      op_info(o->op)->kind == OPKIND_CONTRACT ||
                      op_info(o->op)->kind == OPKIND_REDUCE;
        if (stored && graph_node(g, product->operand[k])->op == OP_GATHER &&
            is_choice(m, g, product->operand[k], x[k], c) && is_plain(c->x, c->rows) &&
            !node_reduces(n, c->rows) && is_worth(g, c)) {
            return true;
        }
    }
    return false;
}

/* The new labels: those of the sum, with that of rows as the block, and the row of a block behind all. */
static NodeRef block_of(Groups *m, const Choice *c, NodeRef table, Access a, NodeRef position,
                        bool rows)
{
    const Node *n = c->sum, *of = graph_node(m->to, table);
    int32_t row = (int32_t)n->n_labels, out[RANK_LIMIT + 1];
    Dim shape[RANK_LIMIT + 1];
    uint32_t rank = 0;
    NodeRef *operand = ARENA_ARRAY(&m->scratch, (size_t)a.rank + 1, NodeRef);
    Access *access = ARENA_ARRAY(&m->scratch, (size_t)a.rank + 1, Access);
    Index *block = ARENA_ARRAY(&m->scratch, 2, Index);
    block[0] = (Index){.label = c->rows};
    block[1] = (Index){.label = row};
    out[rank] = c->rows;
    shape[rank++] = m->extent['b' - 'a'];
    if (rows) {
        out[rank] = row;
        shape[rank++] = m->extent['r' - 'a'];
    }
    operand[0] = table;
    access[0] = access_whole(&m->scratch, a.rank);
    for (uint32_t d = 0; d < a.rank; d++) {
        int32_t label = a.index[d].label;
        bool chosen = label < 0 || label == c->rows;
        Index *own = ARENA_NEW(&m->scratch, Index);
        *own = (Index){.label = label};
        operand[d + 1] =
            chosen ? position : graph_index(m->to, of->shape[d], DTYPE_I64, m->span);
        access[d + 1] = chosen ? (Access){rows ? 2 : 1, block} : (Access){1, own};
        if (!chosen) {
            out[rank] = label;
            shape[rank++] = of->shape[d];
        }
    }
    return add_spec(
        m,
        (NodeSpec){
            .op = OP_GATHER, .dtype = of->dtype, .rank = rank, .out = out, .out_shape = shape},
        a.rank + 1, operand, access);
}

/* How block_of reads, in its labels, what it has made. */
static Access block_access(Groups *m, const Choice *c, Access a, bool rows)
{
    Index *index = ARENA_ARRAY(&m->scratch, (size_t)a.rank + 2, Index);
    uint32_t rank = 0;
    index[rank++] = (Index){.label = c->rows};
    if (rows) {
        index[rank++] = (Index){.label = (int32_t)c->sum->n_labels};
    }
    for (uint32_t d = 0; d < a.rank; d++) {
        if (a.index[d].label >= 0 && a.index[d].label != c->rows) {
            index[rank++] = a.index[d];
        }
    }
    return (Access){rank, index};
}

static NodeRef grouped(Groups *m, const Graph *g, const Choice *c, const NodeRef *map)
{
    const Node *n = c->sum;
    Dim groups = graph_node(g, c->table)->shape[c->chosen];
    m->span = n->span;
    bool large = typical(g, n->extent[c->rows]) >= LARGE * typical(g, groups);
    m->block = large ? 2 * BLOCK : BLOCK;
    Order o = order_rows(m, map[c->choice], n->extent[c->rows], groups);
    NodeRef operand[2];
    operand[0] = block_of(m, c, map[c->x_of], c->x, o.row, true);
    operand[1] = block_of(m, c, map[c->table], c->matrix, o.expert, false);
    Access access[2] = {block_access(m, c, c->x, true), block_access(m, c, c->matrix, false)};
    int32_t out[RANK_LIMIT + 1];
    uint32_t rank = 0;
    out[rank++] = c->rows;
    out[rank++] = (int32_t)n->n_labels;
    for (uint32_t d = 0; d < n->rank; d++) {
        if (n->out[d] != c->rows) {
            out[rank++] = n->out[d];
        }
    }
    NodeRef blocks = add_spec(m,
                              (NodeSpec){.op = OP_EINSUM,
                                         .dtype = n->dtype,
                                         .acc = n->acc,
                                         .rank = rank,
                                         .out = out,
                                         .allow_spill = true},
                              2, operand, access);
    NodeRef of_slot[2];
    of_slot[0] = two(m, OP_DIV, "n", o.slot, "n", whole(m, m->block), "");
    of_slot[1] = two(m, OP_MOD, "n", o.slot, "n", whole(m, m->block), "");
    NodeRef *position = ARENA_ARRAY(&m->scratch, (size_t)rank + 1, NodeRef);
    Access *read = ARENA_ARRAY(&m->scratch, (size_t)rank + 1, Access);
    position[0] = blocks;
    read[0] = access_whole(&m->scratch, rank);
    for (uint32_t d = 0; d < rank; d++) {
        Index *own = ARENA_NEW(&m->scratch, Index);
        *own = (Index){.label = d < 2 ? c->rows : out[d]};
        position[d + 1] =
            d < 2 ? of_slot[d]
                  : graph_index(m->to, graph_node(m->to, blocks)->shape[d], DTYPE_I64, m->span);
        read[d + 1] = (Access){1, own};
    }
    return add_spec(m,
                    (NodeSpec){.op = OP_GATHER,
                               .dtype = n->dtype,
                               .rank = n->rank,
                               .out = n->out,
                               .out_shape = n->shape,
                               .name = n->name,
                               .allow_spill = n->allow_spill},
                    rank + 1, position, read);
}

Graph *opt_groups(Ctx *ctx, Arena *arena, const Graph *g)
{
    Arena work;
    arena_init(&work, &ctx->budget);
    Groups m = {.ctx = ctx, .to = graph_like(&work, g)};
    arena_init(&m.scratch, &ctx->budget);
    NodeRef *made = ARENA_ARRAY(&work, (size_t)g->nodes.n + 1, NodeRef);
    bool any = false;
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        Choice c;
        ArenaMark mark = arena_mark(&m.scratch);
        bool found = find_choice(&m, g, n, &c);
        made[n] = found ? grouped(&m, g, &c, made) : graph_clone_node(m.to, g, n, made);
        any = any || found;
        arena_reset(&m.scratch, mark);
    }
    graph_copy_results(m.to, g, made);
    Graph *pruned = any ? opt_simplify(ctx, arena, m.to) : graph_prune(arena, m.to);
    arena_release(&m.scratch);
    arena_release(&work);
    return pruned;
}
