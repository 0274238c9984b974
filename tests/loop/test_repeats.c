/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles that are computed once. */
#include "support.h"

#include "loop/repeats.h"
#include "loop/walk.h"

/* The tiles that are allocated and what is written, in the order of the text. */
static const char *summary(Ctx *c, const Kernel *k)
{
    Text out;
    StmtWalk w;
    text_init(&out, &c->arena);
    for (const Stmt *s = stmt_first(&w, k->body, k->n_body); s != NULL; s = stmt_next(&w)) {
        if (s->kind == STMT_ALLOC) {
            text_printf(&out, "+%s ", k->bufs.at[s->buf].name->text);
        } else if (s->kind == STMT_TILE) {
            text_printf(&out, "%s", k->bufs.at[s->dst].name->text);
            ExprWalk e;
            for (const Expr *x = load_first(&e, s->value); x != NULL; x = load_next(&e)) {
                text_printf(&out, "<%s", k->bufs.at[x->buf].name->text);
            }
            text_put(&out, " ");
        }
    }
    return out.at;
}

static void what_two_tiles_hold_is_computed_once(void **state)
{
    Ctx c;
    ctx_init(&c);
    const KernelModule *m = read_text(&c, kernel_text(&c.arena, "repeats"));
    assert_non_null(m);
    const Kernel *k = m->kernels.at[0];
    const Kernel *fewer = kernel_without_repeats(&c.arena, k);
    assert_non_null(fewer);
    /* not `part`, which has another range, nor `y2`, since Y is written in between */
    assert_string_equal(summary(&c, fewer),
                        "+t t<X +e e<t +part part<X part Y<e<part +y y<Y Y<y<e "
                        "+y2 y2<Y Z<y<y2 ");
    Run before, after;
    assert_true(run_kernel(&c, k, NULL, 1, &before));
    assert_true(run_kernel(&c, fewer, NULL, 1, &after));
    for (uint32_t r = 0; r < 2; r++) {
        assert_memory_equal(before.results[r]->data, after.results[r]->data,
                            8 * 16 * sizeof(float));
    }
    assert_null(kernel_without_repeats(&c.arena, fewer));
    ctx_release(&c);
}

TESTS(TEST(what_two_tiles_hold_is_computed_once))
