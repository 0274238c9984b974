/* SPDX-License-Identifier: Apache-2.0 */
/* What measuring would try instead of a nest, by name and price, to the digit: variants.txt. Target `bless` writes it. That each computes the
 * same is tests/driver/test_variants.c. */
#include "nest/plan.h"
#include "nest/variants.h"

#include "support/golden.h"
#include "support_graphs.h"

#define FOUND "tests/nest/variants.txt"

static const Machine machine = {UNCOMMON_MACHINE(200000, 9000, 768, 200, 96, 3000)};

/* A product of two operands. */
typedef struct Product {
    const char *name, *dims, *shape[3], *label[3];
} Product;

static const Product products[] = {
    {"large", "", {"f32[190,700]", "f32[700,370]", "f32[190,370]"}, {"a,b", "b,c", "a,c"}},
    {"small", "", {"f64[70,19]", "f64[37,70]", "f64[37,19]"}, {"a,b", "c,a", "c,b"}},
    {"least", "", {"f64[3,63]", "f64[63,2]", "f64[3,2]"}, {"a,b", "b,c", "a,c"}},
    {"open", "  dim n ~ 400\n", {"f32[n,n]", "f32[n,n]", "f32[n,n]"}, {"a,b", "b,c", "a,c"}},
    {"batches",
     "",
     {"f32[6,90,5,70]", "f32[70,100,90,6]", "f32[100,5,6]"},
     {"a,b,c,d", "d,e,b,a", "e,c,a"}},
};

static const char two[] = /* one reads the other */
    "kernel two {\n  form binary\n  param in @A : f32[80,64]\n  param in @B : f32[64,90]\n"
    "  %0 = input @A : f32[80,64]\n  %1 = input @B : f32[64,90]\n"
    "  %2 = einsum %0[a,b], %1[b,c] -> [a,c] : f32[80,90] as T\n"
    "  %3 = einsum %2[a,c], %0[a,b] -> [c,b] : f32[90,64] as C\n  result @C = %3\n}\n";

static Module *module_of_graphs(Ctx *ctx)
{
    Text t;
    text_init(&t, &ctx->arena);
    text_put(&t, "tdsl-dump graph 1\n");
    for (size_t k = 0; k < sizeof products / sizeof *products; k++) {
        const Product *p = &products[k];
        text_printf(&t, "kernel %s {\n  form binary\n%s", p->name, p->dims);
        text_printf(&t, "  param in @A : %s\n  param in @B : %s\n", p->shape[0], p->shape[1]);
        text_printf(&t, "  %%0 = input @A : %s\n  %%1 = input @B : %s\n", p->shape[0],
                    p->shape[1]);
        text_printf(&t, "  %%2 = einsum %%0[%s], %%1[%s] -> [%s] : %s as C\n", p->label[0],
                    p->label[1], p->label[2], p->shape[2]);
        text_put(&t, "  result @C = %2\n}\n");
    }
    text_put(&t, two);
    return module_read(ctx, source_add(&ctx->sources, "dump", str_from(t.at), (Span){0, 0, 0}));
}

static void put_variant(const Nest *nest, const char *what, Text *out)
{
    uint32_t place = 0;
    while (nest_at(nest, place) != nest) {
        place++;
    }
    text_printf(out, "  %.9g s, %u of %u: %s\n", nest->cost.seconds, (unsigned)place + 1,
                (unsigned)nest_count(nest), what);
}

static void variants_are_what_they_were(void **state)
{
    Ctx ctx;
    Text out;
    ctx_init(&ctx);
    text_init(&out, &ctx.arena);
    Module *m = module_of_graphs(&ctx);
    assert_non_null(m);
    for (uint32_t k = 0; k < m->graphs.n; k++) {
        Graph *g = m->graphs.at[k];
        NestVariants v = {0};
        Nest *nest = nest_choose(&ctx, &ctx.arena, g, &machine, 1);
        text_printf(&out, "%s\n", g->name->text);
        NestSize sizes[2] = {{.nest = nest_unfused(&ctx, &ctx.arena, g, &machine)},
                             {.nest = nest}};
        nest->n_sizes = g->dims.list.n > 0 ? 2 : 0;
        nest->sizes = sizes;
        put_variant(nest, "chosen", &out);
        nest_other_trees(&ctx, &ctx.arena, &machine, nest, &v);
        nest_other_levels(&ctx, &ctx.arena, &machine, nest, &v);
        for (uint32_t i = 0; i < v.list.n; i++) {
            put_variant(v.list.at[i].nest, v.list.at[i].what, &out);
        }
    }
    assert_golden(&ctx.arena, FOUND, out.at);
    ctx_release(&ctx);
}

TESTS(TEST(variants_are_what_they_were))
