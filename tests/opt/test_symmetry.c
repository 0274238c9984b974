/* SPDX-License-Identifier: Apache-2.0 */
/* What the analysis says of a value is true of its numbers, and what it must not say it does not. */
#include "support_random.h"

#include "opt/opt.h"

#include <string.h>

/* ---- cases ---- */

typedef struct Case {
    const char *lines; /* of a graph; its last value is what is asked for */
    const char *says;  /* all of its generators, as they are printed */
} Case;

#define PARAMS                                                                                 \
    "param in @A : f64[n,n]\nparam in @B : f64[o,v,x]\nparam in @C : f64[o,v,x]\n"             \
    "param in @e : f64[o]\nparam in @f : f64[v]\nparam in @s : f64[n]\nparam in @w : f64[m]\n" \
    "param in @S : f64[n,n] sym(0 1)\nparam in @W : f64[n,n] antisym(0 1)\n"                   \
    "param in @E : f64[n,n,n] sym(0 1 2)\n"                                                    \
    "param in @Z : c128[n,n]\nparam in @H : c128[n,n] herm(0 1)\n"                             \
    "param in @g : f64[n,n,n,n] sym(0 1) sym(0 2, 1 3) sym(2 3)\n"                             \
    "%0 = input @A : f64[n,n]\n%1 = input @B : f64[o,v,x]\n%2 = input @C : f64[o,v,x]\n"       \
    "%3 = input @e : f64[o]\n%4 = input @f : f64[v]\n%5 = input @s : f64[n]\n"

static const Case cases[] = {
    /* two reads of one value */
    {"%7 = einsum %1[i,a,P], %1[j,b,P] -> [i,a,j,b] : f64[o,v,o,v]\n", "sym(a d, b e)"},
    {"%7 = einsum %0[i,k], %0[j,k] -> [i,j] : f64[n,n]\n", "sym(a c)"},
    {"%7 = einsum %0[i,k], %0[k,j] -> [i,j] : f64[n,n]\n", ""},
    {"%7 = einsum %1[i,a,P], %2[j,b,P] -> [i,a,j,b] : f64[o,v,o,v]\n", ""},
    {"%7 = einsum %5[i], %5[j], %5[k] -> [i,j,k] : f64[n,n,n]\n", "sym(a b) sym(a c)"},
    {"%7 = mul %0[i,j], %0[j,i] -> [i,j] : f64[n,n]\n", "sym(a b)"},
    /* through a product inside: A S A', when S is symmetric */
    {"%7 = einsum %0[i,k], %0[j,k] -> [i,j] : f64[n,n]\n"
     "%8 = einsum %0[i,k], %7[k,l] -> [i,l] : f64[n,n]\n"
     "%9 = einsum %8[i,l], %0[j,l] -> [i,j] : f64[n,n]\n",
     "sym(a c)"},
    {"%8 = einsum %0[i,k], %0[k,l] -> [i,l] : f64[n,n]\n"
     "%9 = einsum %8[i,l], %0[j,l] -> [i,j] : f64[n,n]\n",
     ""},
    /* sums in any order, and their signs */
    {"%7 = add %3[i], %3[j] -> [i,j] : f64[o,o]\n"
     "%8 = sub %7[i,j], %4[a] -> [i,a,j] : f64[o,v,o]\n"
     "%9 = sub %8[i,a,j], %4[b] -> [i,a,j,b] : f64[o,v,o,v]\n",
     "sym(a c) sym(b d)"},
    {"%7 = sub %3[i], %3[j] -> [i,j] : f64[o,o]\n", "antisym(a b)"},
    {"%7 = sub %3[i], %3[j] -> [i,j] : f64[o,o]\n"
     "%8 = add %7[i,j], %4[a] -> [i,j,a] : f64[o,o,v]\n",
     ""},
    {"%7 = sub %0[i,j], %0[j,i] -> [i,j] : f64[n,n]\n"
     "%8 = mul %7[i,j], %7[j,i] -> [i,j] : f64[n,n]\n",
     "sym(a b)"},
    {"%7 = sub %0[i,j], %0[j,i] -> [i,j] : f64[n,n]\n"
     "%8 = abs %7[i,j] -> [i,j] : f64[n,n]\n",
     "sym(a b)"},
    {"%7 = sub %0[i,j], %0[j,i] -> [i,j] : f64[n,n]\n"
     "%8 = exp %7[i,j] -> [i,j] : f64[n,n]\n",
     ""},
    {"%7 = sub %0[i,j], %0[j,i] -> [i,j] : f64[n,n]\n"
     "%8 = tanh %7[i,j] -> [i,j] : f64[n,n]\n",
     "antisym(a b)"},
    {"%7 = sub %0[i,j], %0[j,i] -> [i,j] : f64[n,n]\n"
     "%8 = einsum %7[i,j], %5[k] -> [i,k,j] : f64[n,n,n]\n",
     "antisym(a b)"},
    /* what is declared of parameters */
    {"%6 = input @S : f64[n,n]\n"
     "%7 = einsum %0[i,k], %6[l,k] -> [i,l] : f64[n,n]\n"
     "%8 = einsum %7[i,l], %0[j,l] -> [i,j] : f64[n,n]\n",
     "sym(a c)"},
    {"%6 = input @W : f64[n,n]\n"
     "%7 = einsum %0[i,k], %6[l,k] -> [i,l] : f64[n,n]\n"
     "%8 = einsum %7[i,l], %0[j,l] -> [i,j] : f64[n,n]\n",
     "antisym(a c)"},
    {"%6 = input @S : f64[n,n]\n%7 = einsum %6[i,k], %0[k,j] -> [i,j] : f64[n,n]\n", ""},
    {"%6 = input @S : f64[n,n]\n%7 = mul %6[i,j], %0[i,j] -> [i,j] : f64[n,n]\n", ""},
    {"%6 = input @S : f64[n,n]\n%7 = add %6[i,j], %5[i] -> [i,j] : f64[n,n]\n", ""},
    {"%6 = input @W : f64[n,n]\n%7 = einsum %6[i,k], %6[j,k] -> [i,j] : f64[n,n]\n",
     "sym(a c)"},
    {"%6 = input @S : f64[n,n]\n%7 = einsum %6[i,k], %6[k,j] -> [i,j] : f64[n,n]\n",
     "sym(a c)"},
    {"%6 = input @W : f64[n,n]\n%7 = abs %6[j,i] -> [i,j] : f64[n,n]\n", "sym(b a)"},
    {"%6 = input @E : f64[n,n,n]\n%7 = einsum %6[i,j,k], %5[k] -> [i,j] : f64[n,n]\n",
     "sym(a b)"},
    {"%6 = input @E : f64[n,n,n]\n%7 = copy %6[j,k,i] -> [i,j,k] : f64[n,n,n]\n",
     "sym(a b) sym(c b)"},
    {"%6 = input @S : f64[n,n]\n%7 = mul %6[i,j], %0[i,j] -> [i,j] : f64[n,n]\n"
     "%8 = reduce.sum %7[i,j] -> [] : f64[]\n",
     ""},
    {"%6 = input @S : f64[n,n]\n%7 = einsum %6[i,j], %6[j,i] -> [] : f64[]\n", "terms(a b)"},
    /* conjugates */
    {"%6 = input @Z : c128[n,n]\n%7 = conj %6[a,b] -> [a,b] : c128[n,n]\n"
     "%8 = einsum %6[i,k], %7[j,k] -> [i,j] : c128[n,n]\n",
     "herm(a c)"},
    {"%6 = input @Z : c128[n,n]\n%7 = einsum %6[i,k], %6[j,k] -> [i,j] : c128[n,n]\n",
     "sym(a c)"},
    {"%6 = input @Z : c128[n,n]\n%7 = conj %6[a,b] -> [a,b] : c128[n,n]\n"
     "%8 = einsum %6[i,k], %7[k,j] -> [i,j] : c128[n,n]\n",
     ""},
    {"%6 = input @Z : c128[n,n]\n%7 = conj %6[a,b] -> [a,b] : c128[n,n]\n"
     "%8 = sub %6[i,j], %7[j,i] -> [i,j] : c128[n,n]\n",
     "antiherm(a b)"},
    {"%6 = input @Z : c128[n,n]\n%7 = conj %6[a,b] -> [a,b] : c128[n,n]\n"
     "%8 = einsum %6[i,k], %7[j,k] -> [i,j] : c128[n,n]\n"
     "%9 = re %8[i,j] -> [i,j] : f64[n,n]\n",
     "sym(a b)"},
    {"%6 = input @Z : c128[n,n]\n%7 = conj %6[a,b] -> [a,b] : c128[n,n]\n"
     "%8 = einsum %6[i,k], %7[j,k] -> [i,j] : c128[n,n]\n"
     "%9 = im %8[i,j] -> [i,j] : f64[n,n]\n",
     ""},
    {"%6 = input @H : c128[n,n]\n%7 = conj %6[a,b] -> [a,b] : c128[n,n]\n", "herm(a b)"},
    {"%6 = input @H : c128[n,n]\n%7 = input @Z : c128[n,n]\n"
     "%8 = conj %7[a,b] -> [a,b] : c128[n,n]\n"
     "%9 = einsum %6[k,l], %8[j,l] -> [k,j] : c128[n,n]\n"
     "%10 = einsum %7[i,k], %9[k,j] -> [i,j] : c128[n,n]\n",
     "herm(a c)"},
    {"%6 = input @H : c128[n,n]\n%7 = einsum %6[i,k], %6[k,j] -> [i,j] : c128[n,n]\n",
     "herm(a c)"},
    {"%6 = input @H : c128[n,n]\n%7 = mul %6[i,j], %6[j,i] -> [i,j] : c128[n,n]\n",
     "sym(a b) herm(a b)"},
    {"%6 = input @H : c128[n,n]\n%7 = exp %6[i,j] -> [i,j] : c128[n,n]\n", ""},
    /* groups of dimensions */
    {"%6 = input @g : f64[n,n,n,n]\n%7 = einsum %6[p,q,r,s], %0[r,s] -> [p,q] : f64[n,n]\n",
     "sym(a b)"},
    {"%6 = input @g : f64[n,n,n,n]\n%7 = einsum %6[p,r,q,s], %0[r,s] -> [p,q] : f64[n,n]\n",
     ""},
    {"%6 = input @g : f64[n,n,n,n]\n%7 = einsum %6[p,r,q,s], %0[r,s] -> [p,q] : f64[n,n]\n"
     "%8 = add %7[p,q], %7[q,p] -> [p,q] : f64[n,n]\n",
     "sym(a b)"},
    {"%6 = input @g : f64[n,n,n,n]\n%7 = einsum %0[a,b], %6[p,r,q,s] -> [a,b,p,q,r,s] : "
     "f64[n,n,n,n,n,n]\n",
     "sym(c d) sym(c e, d f)"},
    {"%6 = input @g : f64[n,n,n,n]\n%7 = einsum %0[i,p], %6[p,q,r,s] -> [i,q,r,s] : "
     "f64[n,n,n,n]\n%8 = einsum %0[k,r], %7[i,q,r,s] -> [i,q,k,s] : f64[n,n,n,n]\n",
     "sym(c a, d e)"},
    /* functions */
    {"%7 = max %0[i,j], %0[j,i] -> [i,j] : f64[n,n]\n", "sym(a b)"},
    {"%7 = pow %5[i], %5[j] -> [i,j] : f64[n,n]\n", ""},
    {"%7 = div %5[i], %5[j] -> [i,j] : f64[n,n]\n", ""},
    {"%7 = eq %5[i], %5[j] -> [i,j] : bool[n,n]\n"
     "%8 = exp %5[i] -> [i] : f64[n]\n"
     "%9 = mul %8[i], %8[j] -> [i,j] : f64[n,n]\n"
     "%10 = select %7[i,j], %9[i,j], %0[i,j] -> [i,j] : f64[n,n]\n",
     ""},
    /* sums over some of the labels */
    {"%7 = einsum %5[i], %5[j], %5[k] -> [i,j,k] : f64[n,n,n]\n"
     "%8 = reduce.max %7[i,j,k] -> [k,i] : f64[n,n]\n",
     "sym(c a)"},
    {"%7 = sub %0[i,j], %0[j,i] -> [i,j] : f64[n,n]\n"
     "%8 = einsum %7[i,j], %5[k], %5[l] -> [i,j,k,l] : f64[n,n,n,n]\n"
     "%9 = reduce.sum %8[i,j,k,l] -> [i,j,k] : f64[n,n,n]\n",
     "antisym(a b)"},
    {"%7 = sub %0[i,j], %0[j,i] -> [i,j] : f64[n,n]\n"
     "%8 = mul %7[i,j], %5[k] -> [i,j,k] : f64[n,n,n]\n"
     "%9 = reduce.max %8[i,j,k] -> [i,j] : f64[n,n]\n",
     ""},
    /* the terms of a sum */
    {"%7 = einsum %1[i,a,P], %1[j,b,P] -> [i,a,j,b] : f64[o,v,o,v]\n"
     "%8 = mul %7[i,a,j,b], %7[i,b,j,a] -> [i,a,j,b] : f64[o,v,o,v]\n"
     "%9 = reduce.sum %8[i,a,j,b] -> [] : f64[]\n",
     "terms(b d) terms(a c, b d)"},
    {"%7 = einsum %0[i,k], %0[j,k] -> [i,j] : f64[n,n]\n"
     "%8 = einsum %7[i,j], %7[i,j] -> [] : f64[]\n",
     "terms(a b)"},
    {"%7 = einsum %0[i,k], %0[j,k] -> [i,j] : f64[n,n]\n"
     "%8 = einsum %7[i,j], %0[i,j] -> [] : f64[]\n",
     ""},
    {"%7 = sub %0[i,j], %0[j,i] -> [i,j] : f64[n,n]\n"
     "%8 = reduce.sum %7[i,j] -> [] : f64[]\n",
     ""},
    /* equal extents are not one dim */
    {"%7 = add %5[i], %5[i] -> [i,j] : f64[n,m]\n", ""},
    /* T[iajb] T[ibja] with a vector over a alone */
    {"%7 = einsum %1[i,a,P], %1[j,b,P] -> [i,a,j,b] : f64[o,v,o,v]\n"
     "%8 = mul %7[i,a,j,b], %7[i,b,j,a] -> [i,a,j,b] : f64[o,v,o,v]\n"
     "%9 = mul %8[i,a,j,b], %4[a] -> [i,a,j,b] : f64[o,v,o,v]\n",
     "sym(a c)"},
};

static const char *said(Bench *b, const Graph *g)
{
    const Node *n = graph_node(g, g->nodes.n - 1);
    const char *text = bench_dump(b, g);
    const char *line = strstr(text, str_format(&b->ctx.arena, "%%%u =", g->nodes.n - 1));
    const char *from = strchr(strstr(line, " : "), ']') + 1, *end = strchr(line, '\n');
    if (n->n_generators + n->n_exchanges == 0) {
        return "";
    }
    from++;
    return str_format(&b->ctx.arena, "%.*s", (int)(end - from), from);
}

static Graph *case_graph(Bench *b, const char *lines)
{
    const char *at = lines, *last = lines;
    for (at = strstr(at, "\n%"); at != NULL; at = strstr(at + 1, "\n%")) {
        last = at + 1;
    }
    return bench_graph(b, str_format(&b->ctx.arena,
                                     "dim n ~ 4\ndim m ~ 4\ndim o ~ 4\ndim v ~ 4\ndim x ~ 4\n"
                                     "%s%sresult @R = %.*s",
                                     PARAMS, lines, (int)strcspn(last, " "), last));
}

static void each_case_has_what_is_said_of_it(void **state)
{
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        Bench *b = bench_new();
        Graph *g = case_graph(b, cases[k].lines);
        opt_symmetry(&b->ctx, g, true);
        assert_string_equal(said(b, g), cases[k].says);
        assert_true(graph_verify(&b->ctx, g, "symmetry"));
        assert_round_trip(
            str_format(&b->ctx.arena, "tdsl-dump graph 1\n\n%s", bench_dump(b, g)));
        opt_symmetry(&b->ctx, g, false);
        assert_string_equal(said(b, g), "");
        bench_free(b);
    }
}

/* ---- claims in a dump ---- */

static void false_claims_are_refused(void **state)
{
    static const char *const nothing = "it does not have the symmetry that is said of it";
    static const struct {
        const char *line, *message;
    } claims[] = {
        {"%1 = mul %0[a,b], %0[b,a] -> [a,b] : f64[3,3] sym(a b)", NULL},
        {"%1 = mul %0[a,b], %0[b,a] -> [a,b] : f64[3,3] antisym(a b)", nothing},
        {"%1 = mul %0[a,b], %0[a,b] -> [a,b] : f64[3,3] sym(a b)", nothing},
        {"%1 = sub %0[a,b], %0[b,a] -> [a,b] : f64[3,3] sym(a b)", nothing},
        {"%1 = sub %0[a,b], %0[b,a] -> [a,b] : f64[3,3] antisym(a b)", NULL},
        {"%1 = einsum %0[a,b], %0[c,b] -> [a,c] : f64[3,3] sym(a c)", NULL},
        {"%1 = einsum %0[a,b], %0[b,c] -> [a,c] : f64[3,3] sym(a c)", nothing},
        {"%1 = einsum %0[a,b], %0[b,a] -> [] : f64[] terms(a b)", NULL},
        {"%1 = reduce.sum %0[a,b] -> [] : f64[] terms(a b)", "its terms do not have"},
        {"%1 = reduce.max %0[a,b] -> [] : f64[] terms(a b)", "no exchange of summed"},
        {"%1 = einsum %0[a,b], %0[b,a] -> [a] : f64[3] terms(a b)", "no exchange of summed"},
        {"%1 = mul %0[a,b], %0[c,a] -> [a,b,c] : f64[3,3,3] sym(a b, b c)", "each once"},
        {"%1 = mul %0[a,b], %0[b,a] -> [a,b] : f64[3,3] sym(a c)", "each once"},
        {"%1 = mul %0[a,b], %0[b,a] -> [a,b] : f64[3,3] sym()", "each once"},
        {"%1 = copy %0[a,b] -> [a,b,c] : f64[3,3,4] sym(a c)",
         "exchanges no dimensions of equal extents"},
        {"%1 = mul %0[a,b], %0[b,a] -> [a,b] : f64[3,3] herm(a b)",
         "exchanges no dimensions of equal extents"},
        {"%1 = conj %0[a,b] -> [a,b] : c128[3,3]\n"
         "%2 = mul %0[a,b], %1[b,a] -> [a,b] : c128[3,3] herm(a b)",
         NULL},
        {"%1 = conj %0[a,b] -> [a,b] : c128[3,3]\n"
         "%2 = mul %0[a,b], %1[b,a] -> [a,b] : c128[3,3] sym(a b)",
         nothing},
        {"%1 = conj %0[a,b] -> [a,b] : c128[3,3]\n"
         "%2 = mul %0[a,b], %1[b,a] -> [a,b] : c128[3,3] antiherm(a b)",
         nothing},
        {"%1 = conj %0[a,b] -> [a,b] : c128[3,3]\n"
         "%2 = sub %0[a,b], %1[b,a] -> [a,b] : c128[3,3] antiherm(a b)",
         NULL},
        {"%1 = mul %0[a,b], %0[b,a] -> [a,b] : c128[3,3] herm(a b)", nothing},
    };
    for (size_t k = 0; k < sizeof claims / sizeof claims[0]; k++) {
        Bench *b = bench_new();
        const char *type = strstr(claims[k].line, "c128") != NULL ? "c128" : "f64";
        bool two = strstr(claims[k].line, "%2") != NULL;
        const char *lines = str_format(&b->ctx.arena,
                                       "param in @A : %s[3,3]\n%%0 = input @A : %s[3,3]\n%s\n"
                                       "result @R = %%%d",
                                       type, type, claims[k].line, two ? 2 : 1);
        if (claims[k].message == NULL) {
            bench_graph(b, lines);
        } else {
            assert_lines_refused(lines, claims[k].message);
        }
        bench_free(b);
    }
}

/* ---- numbers ---- */

/* The element of `t` at the image of element `i`. */
static int64_t image_of(const Tensor *t, const Generator *generator, int64_t i)
{
    int64_t at[RANK_LIMIT], image = 0;
    for (uint32_t d = t->rank; d-- > 0;) {
        at[d] = i % t->extent[d];
        i /= t->extent[d];
    }
    for (uint32_t d = 0; d < t->rank; d++) {
        image = image * t->extent[d] + at[generator->to[d]];
    }
    return image;
}

static void assert_symmetric(const Tensor *t, const Generator *generator)
{
    for (int64_t i = 0; i < t->count; i++) {
        Number x = tensor_get(t, i), y = tensor_get(t, image_of(t, generator, i));
        if (t->dtype == DTYPE_BOOL) {
            assert_int_equal(x.i, y.i);
        } else {
            double im = generator->conj ? -y.im : y.im;
            assert_true(x.i == generator->sign * y.i && x.re == generator->sign * y.re &&
                        x.im == generator->sign * im);
        }
    }
}

/* Every value that is said to be symmetric is computed. */
static uint32_t check_numbers(Bench *b, Graph *g, Rng *rng)
{
    uint32_t found = 0;
    VEC(NodeRef) of = {0};
    g->results.n = 0;
    for (NodeRef r = 0; r < g->nodes.n; r++) {
        if (graph_node(g, r)->n_generators > 0 || r + 1 == g->nodes.n) {
            Result result = {.name =
                                 sym_cstr(&b->ctx.syms, str_format(&b->ctx.arena, "R%u", r)),
                             .node = r,
                             .param = -1};
            vec_push(g->arena, &g->results, result);
            vec_push(&b->ctx.arena, &of, r);
        }
    }
    const int64_t dims[5] = {3, 3, 2, 3, 2};
    Tensor **args = ARENA_ARRAY(&b->ctx.arena, g->params.n, Tensor *);
    Tensor **out = ARENA_ARRAY(&b->ctx.arena, of.n, Tensor *);
    for (uint32_t p = 0; p < g->params.n; p++) {
        const Param *param = &g->params.at[p];
        int64_t extent[RANK_LIMIT];
        for (uint32_t d = 0; d < param->rank; d++) {
            extent[d] = param->shape[d].sym < 0 ? param->shape[d].n : dims[param->shape[d].sym];
        }
        args[p] = tensor_new(&b->ctx, &b->ctx.arena, param->dtype, param->rank, extent);
        for (int64_t i = 0; i < args[p]->count; i++) {
            Number x = number_int(param->dtype, (int64_t)rng_below(rng, 9) - 4);
            x.im = dtype_is_complex(param->dtype) ? (double)rng_below(rng, 5) : 0;
            tensor_set(args[p], i, x);
        }
        tensor_make_symmetric(&b->ctx.arena, args[p], param->symmetry);
    }
    assert_true(graph_eval(&b->ctx, &b->ctx.arena, g, dims, args, out));
    for (uint32_t k = 0; k < of.n; k++) {
        const Node *n = graph_node(g, of.at[k]);
        for (uint32_t i = 0; i < n->n_generators; i++) {
            assert_symmetric(out[k], &n->generator[i]);
            found++;
        }
    }
    return found;
}

static void random_values_are_as_symmetric_as_is_said(void **state)
{
    uint32_t found = 0;
    for (uint64_t seed = 1; seed <= 6000; seed++) {
        Bench *b = bench_new();
        Rng rng = {seed};
        Graph *g = random_graph(b, &rng, seed % 2 == 0 ? DTYPE_I64 : DTYPE_I32);
        opt_symmetry(&b->ctx, g, true);
        found += check_numbers(b, g, &rng);
        assert_true(graph_verify(&b->ctx, g, "symmetry"));
        bench_free(b);
    }
    assert_true(found > 100);
}

static void values_of_the_cases_are_as_symmetric_as_is_said(void **state)
{
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        Bench *b = bench_new();
        Rng rng = {k};
        Graph *g = case_graph(b, cases[k].lines);
        opt_symmetry(&b->ctx, g, true);
        if (strstr(cases[k].lines, "tanh") == NULL && strstr(cases[k].lines, "exp") == NULL) {
            check_numbers(b, g, &rng);
        }
        bench_free(b);
    }
}

/* Quadratic work, or work that grows with how often a value is reached, would not end in time. */
static void large_graphs_are_quick(void **state)
{
    enum { MANY = 10000 };
    Bench *b = bench_new();
    Text t;
    text_init(&t, &b->ctx.arena);
    text_put(&t, "dim n ~ 4\nparam in @A : f64[n,n]\n%0 = input @A : f64[n,n]\n"
                 "%1 = einsum %0[i,k], %0[j,k] -> [i,j] : f64[n,n]\n");
    for (int k = 2; k < MANY; k++) {
        const char *op = k % 5 == 0 ? "einsum" : k % 5 == 1 ? "add" : "mul";
        const char *second = k % 5 == 0 ? "[k,j]" : "[j,i]";
        text_printf(&t, "%%%d = %s %%%d[%s], %%%d%s -> [i,j] : f64[n,n]\n", k, op, k - 1,
                    k % 5 == 0 ? "i,k" : "i,j", k % 5 == 2 ? k - 2 : k - 1, second);
    }
    text_printf(&t, "result @R = %%%d", MANY - 1);
    Graph *g = bench_graph(b, t.at);
    opt_symmetry(&b->ctx, g, true);
    assert_true(graph_verify(&b->ctx, g, "symmetry"));
    bench_free(b);
}

TESTS(TEST(each_case_has_what_is_said_of_it), TEST(false_claims_are_refused),
      TEST(random_values_are_as_symmetric_as_is_said),
      TEST(values_of_the_cases_are_as_symmetric_as_is_said), TEST(large_graphs_are_quick))
