/* SPDX-License-Identifier: Apache-2.0 */
/* Scans (nest/scan.h): a loop along the scanned index that adds an element to what there is so far, and stores that. Loops over
 * the result's dimensions before it stand around it; those behind it are a block that is added to as one. Sums that round are
 * added up in blocks, so that no number goes through more than BLOCK + n / BLOCK additions. */
#include "lower/build.h"
#include "nest/scan.h"

#define BLOCK 512

static Stmt *scan_loop(Builder *b, const Node *n, const char *name, Range range, int64_t step)
{
    Stmt *loop = ARENA_NEW(b->arena, Stmt);
    *loop = (Stmt){.kind = STMT_FOR,
                   .span = n->span,
                   .var = kernel_var(b->k, &b->ctx->syms, name, true),
                   .range = range,
                   .step = step,
                   .part = FOR_ALL};
    return loop;
}

static void scan_body(Builder *b, Stmt *loop, Block body, Block *to)
{
    loop->body = body.list.at;
    loop->n_body = body.list.n;
    vec_push(b->arena, &to->list, loop);
}

/* A block over the local labels behind the scanned one. */
typedef struct Running {
    BufRef buf;
    const Affine *at; /* where the node's element is in it */
} Running;

static Running running_new(Builder *b, Block *to, const Node *n, uint32_t first,
                           const Position *pos, const char *hint)
{
    Dim *extent = ARENA_ARRAY(b->arena, n->rank, Dim);
    Affine *at = ARENA_ARRAY(b->arena, n->rank, Affine);
    uint32_t rank = 0;
    for (uint32_t d = first; d < n->rank; d++) {
        const Position *p = &pos[n->out[d]];
        if (p->local) {
            extent[rank] = p->range.span == 0 ? n->shape[d] : dim_fixed(p->range.span);
            at[rank++] = affine_add(b->arena, p->at, -1, p->range.start);
        }
    }
    BufRef buf = kernel_buffer(b->k, &b->ctx->syms, hint, n->acc, SPACE_TILE, rank, extent);
    b->k->bufs.at[buf].span = n->span;
    build_alloc(b, to, buf);
    return (Running){buf, at};
}

static Stmt *running_stmt(Builder *b, Block *to, const Node *n, Running sum,
                          const Position *pos, bool all)
{
    Stmt *s = build_tile(b, to, n, pos, all);
    s->dst = sum.buf;
    s->at = sum.at;
    return s;
}

static void running_fill(Builder *b, Block *to, const Node *n, Running sum, const Position *pos)
{
    Stmt *s = running_stmt(b, to, n, sum, pos, false);
    s->value = expr_const(b->arena, op_neutral(n->op, n->acc));
}

static const Expr *running_load(Builder *b, Running sum)
{
    return expr_load(b->arena, b->k, sum.buf, sum.at);
}

/* The result where the scan is: what there is, and what its last block has added. */
static void running_store(Builder *b, Block *to, NodeRef node, Running sum, const Running *part,
                          const Position *pos)
{
    const Node *n = graph_node(b->g, node);
    Stmt *s = build_tile(b, to, n, pos, false);
    build_dst(b, s, node, b->storage[node], pos);
    const Expr *value = running_load(b, sum);
    if (part != NULL) {
        const Expr *both[2] = {value, running_load(b, *part)};
        value = expr_op(b->arena, OP_ADD, n->acc, 2, both);
    }
    s->value = expr_cast(b->arena, value, n->dtype);
}

/* One position: its element joins `into`, before or after the result is stored. */
static void scan_step(Builder *b, Block *to, NodeRef node, const Scan *scan, Running sum,
                      const Running *part, const Position *pos)
{
    const Node *n = graph_node(b->g, node);
    if (scan->exclusive) {
        running_store(b, to, node, sum, part, pos);
    }
    Stmt *s = running_stmt(b, to, n, part != NULL ? *part : sum, pos, true);
    s->value = expr_cast(b->arena, build_expr(b, scan->value, scan->access, pos), n->acc);
    s->fold = n->op;
    if (!scan->exclusive) {
        running_store(b, to, node, sum, part, pos);
    }
}

/* Along the scanned dimension `d`. */
static void scan_along(Builder *b, Block *to, NodeRef node, const Scan *scan, Position *pos,
                       uint32_t d)
{
    const Node *n = graph_node(b->g, node);
    bool blocks = n->op == OP_SUM && !dtype_is_int(n->acc);
    Position *p = &pos[scan->along];
    Range range = p->range;
    Block outer = {0}, body = {0};
    Stmt *block = blocks ? scan_loop(b, n, "block", range, BLOCK) : NULL;
    if (blocks) {
        range.start = affine_var(b->arena, block->var);
        range.span = BLOCK;
        range.clipped = true;
        range.limit = n->extent[scan->along];
    }
    Stmt *loop = scan_loop(b, n, build_name(b, node, (uint32_t)scan->along, "x"), range, 1);
    Affine here = affine_var(b->arena, loop->var);
    if (scan->reverse) {
        here = affine_add(b->arena, affine_extent(b->arena, n->extent[scan->along]), -1, here);
        here.base -= 1;
    }
    *p = (Position){.at = here};
    pos[scan->folded] = *p;
    Running sum = running_new(b, to, n, d + 1, pos, "scan"), part = sum;
    running_fill(b, to, n, sum, pos);
    if (blocks) {
        part = running_new(b, &outer, n, d + 1, pos, "part");
        running_fill(b, &outer, n, part, pos);
    }
    scan_step(b, &body, node, scan, sum, blocks ? &part : NULL, pos);
    scan_body(b, loop, body, blocks ? &outer : to);
    if (blocks) {
        Stmt *s = running_stmt(b, &outer, n, sum, pos, false);
        s->value = running_load(b, part);
        s->fold = n->op;
        scan_body(b, block, outer, to);
    }
}

/* Dimensions of the result from `d` on up to the scanned one. */
static void scan_from(Builder *b, Block *to, NodeRef node, const Scan *scan, Position *pos,
                      uint32_t d)
{
    const Node *n = graph_node(b->g, node);
    Position *p = &pos[n->out[d]];
    if (n->out[d] == scan->along) {
        scan_along(b, to, node, scan, pos, d);
    } else if (!p->local) {
        scan_from(b, to, node, scan, pos, d + 1);
    } else {
        Block body = {0};
        Stmt *loop =
            scan_loop(b, n, build_name(b, node, (uint32_t)n->out[d], "x"), p->range, 1);
        *p = (Position){.at = affine_var(b->arena, loop->var)};
        scan_from(b, &body, node, scan, pos, d + 1);
        scan_body(b, loop, body, to);
    }
}

void build_scan(Builder *b, Block *to, NodeRef node, uint32_t scope)
{
    Scan scan;
    CHECK(nest_scan(b->arena, b->nest, b->nest->values, node, &scan));
    scan_from(b, to, node, &scan, build_positions(b, node, scope), 0);
}
