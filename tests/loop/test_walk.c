/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over values and statements. */
#include "support.h"

#include "loop/copy.h"
#include "loop/loop_text.h"
#include "loop/term.h"
#include "loop/walk.h"

static const Kernel *nested(Ctx *c)
{
    const KernelModule *m = read_text(c, kernel_text(&c->arena, "nested"));
    assert_non_null(m);
    return m->kernels.at[0];
}

/* The statements as a walk meets them: loops by variable, allocs by buffer, tiles by kind. */
static void put_stmt(const Kernel *k, const Stmt *s, Text *out)
{
    text_put(out, out->n > 0 ? " " : "");
    text_put(out, s->kind == STMT_FOR     ? k->vars.at[s->var].name->text
                  : s->kind == STMT_ALLOC ? k->bufs.at[s->buf].name->text
                                          : tile_kind_name(tile_kind(s)));
}

static void put_expr(const Kernel *k, const Expr *e, Text *out)
{
    text_put(out, out->n > 0 ? " " : "");
    text_put(out, e->kind == EXPR_OP     ? op_info(e->op)->name
                  : e->kind == EXPR_LOAD ? k->bufs.at[e->buf].name->text
                                         : "1");
}

static void statements_are_met_in_the_order_of_the_text(void **state)
{
    Ctx c;
    ctx_init(&c);
    const Kernel *k = nested(&c);
    Text all, tiles, outer;
    StmtWalk w;
    text_init(&all, &c.arena);
    text_init(&tiles, &c.arena);
    text_init(&outer, &c.arena);
    for (const Stmt *s = stmt_first(&w, k->body, k->n_body); s != NULL; s = stmt_next(&w)) {
        put_stmt(k, s, &all);
    }
    for (const Stmt *s = tile_first(&w, k->body, k->n_body); s != NULL; s = tile_next(&w)) {
        put_stmt(k, s, &tiles);
    }
    for (const Stmt *s = stmt_first(&w, k->body, k->n_body); s != NULL; s = stmt_next(&w)) {
        put_stmt(k, s, &outer);
        if (w.depth > 2) {
            stmt_skip(&w); /* of a statement that is no loop: nothing */
        }
    }
    assert_string_equal(all.at, "fill a blk b copy b copy c map reduce");
    assert_string_equal(tiles.at, "fill copy copy map reduce");
    assert_string_equal(outer.at, "fill a blk b b c reduce");
    assert_null(stmt_first(&w, NULL, 0));
    ctx_release(&c);
}

static void parts_of_a_value_are_met_before_their_operands(void **state)
{
    Ctx c;
    ctx_init(&c);
    const Kernel *k = nested(&c);
    const Stmt *map = k->body[1]->body[3]->body[0];
    Text all, loads, short_of;
    ExprWalk w;
    text_init(&all, &c.arena);
    text_init(&loads, &c.arena);
    text_init(&short_of, &c.arena);
    for (const Expr *e = expr_first(&w, map->value); e != NULL; e = expr_next(&w)) {
        put_expr(k, e, &all);
    }
    for (const Expr *e = load_first(&w, map->value); e != NULL; e = load_next(&w)) {
        put_expr(k, e, &loads);
    }
    for (const Expr *e = expr_first(&w, map->value); e != NULL; e = expr_next(&w)) {
        put_expr(k, e, &short_of);
        if (e->kind == EXPR_OP && e->op == OP_LT) {
            expr_skip(&w);
        }
    }
    assert_string_equal(all.at, "select lt blk lo 1 add Y blk");
    assert_string_equal(loads.at, "blk lo Y blk");
    assert_string_equal(short_of.at, "select lt 1 add Y blk");
    assert_int_equal(expr_size(map->value, 100), 8);
    assert_int_equal(expr_size(map->value, 5), 5);
    BufRef blk = k->body[1]->body[0]->buf;
    assert_int_equal(expr_count_loads(map->value, blk), 2);
    assert_ptr_equal(expr_load_of(map->value, blk), map->value->arg[0]->arg[0]);
    assert_null(expr_load_of(map->value, k->args.at[0].buf));
    assert_true(expr_uses(k, map->value, map->index[0].var));
    assert_true(expr_uses(k, map->value, k->body[1]->var)); /* blk[i-$a] */
    assert_false(expr_uses(k, map->value, k->body[1]->body[3]->var));
    ctx_release(&c);
}

static void a_value_fits_up_to_the_limits_of_depth_and_size(void **state)
{
    Ctx c;
    ctx_init(&c);
    const Expr *e = expr_const(&c.arena, number_real(DTYPE_F32, 1));
    for (uint32_t depth = 0; depth < EXPR_DEPTH_LIMIT; depth++) {
        assert_true(expr_fits(e));
        e = expr_op(&c.arena, OP_NEG, DTYPE_F32, 1, &e);
    }
    assert_true(expr_fits(e));
    e = expr_op(&c.arena, OP_NEG, DTYPE_F32, 1, &e);
    assert_false(expr_fits(e));
    const Expr *wide = expr_const(&c.arena, number_real(DTYPE_F32, 1));
    for (uint32_t parts = 1; parts <= EXPR_SIZE_LIMIT; parts = 2 * parts + 1) {
        assert_true(expr_fits(wide)); /* one part is shared by all: it is counted each time */
        const Expr *pair[2] = {wide, wide};
        wide = expr_op(&c.arena, OP_ADD, DTYPE_F32, 2, pair);
    }
    assert_false(expr_fits(wide));
    ctx_release(&c);
}

static void a_copy_shares_nothing_and_moves_what_it_is_told_to(void **state)
{
    Ctx c;
    ctx_init(&c);
    const Kernel *k = nested(&c);
    BufRef *buf = ARENA_ARRAY(&c.arena, k->bufs.n, BufRef);
    VarRef *var = ARENA_ARRAY(&c.arena, k->vars.n, VarRef);
    struct StmtShift *shift = ARENA_ARRAY(&c.arena, k->bufs.n, struct StmtShift);
    for (uint32_t b = 0; b < k->bufs.n; b++) {
        buf[b] = b;
        shift[b] = (struct StmtShift){0, strcmp(k->bufs.at[b].name->text, "Y") == 0 ? 5 : 0};
    }
    for (uint32_t v = 0; v < k->vars.n; v++) {
        var[v] = v;
    }
    StmtCopy copy = {.arena = &c.arena, .from = k, .buf = buf, .var = var, .shift = shift};
    Kernel moved = *k;
    moved.body = stmts_copy(&copy, k->body, k->n_body);
    Text before, after;
    text_init(&before, &c.arena);
    text_init(&after, &c.arena);
    kernel_dump(k, &before);
    kernel_dump(&moved, &after);
    const char *once = replaced(&c.arena, before.at, "@Y[i]", 1, "@Y[i-5]");
    assert_string_equal(after.at, replaced(&c.arena, once, "@Y[i]", 0, "@Y[i-5]"));
    StmtWalk v, w;
    const Stmt *s = tile_first(&v, k->body, k->n_body);
    for (const Stmt *t = tile_first(&w, moved.body, moved.n_body); t != NULL;
         t = tile_next(&w), s = tile_next(&v)) {
        assert_ptr_not_equal(s, t);
        assert_ptr_not_equal(s->value, t->value);
    }
    ctx_release(&c);
}

TESTS(TEST(statements_are_met_in_the_order_of_the_text),
      TEST(parts_of_a_value_are_met_before_their_operands),
      TEST(a_value_fits_up_to_the_limits_of_depth_and_size),
      TEST(a_copy_shares_nothing_and_moves_what_it_is_told_to))
