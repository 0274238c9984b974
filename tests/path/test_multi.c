/* SPDX-License-Identifier: Apache-2.0 */
/* Terms planned together: recorded equation sets, counts against references, and by numbers
 * that steps of one value are equal tensors and that steps of one apply go on alike whatever is
 * put in. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "path/multi.h"
#include "support/test.h"

typedef struct Set {
    PathMulti multi;
    const char *name;
    const json_t *reference;
} Set;

static Ctx ctx;
static json_t *file;

/* Letters are labels: a..h virtual, i..p occupied. */
static PathLabels letters(const char *at, size_t n)
{
    uint32_t *to = ARENA_ARRAY(&ctx.arena, n, uint32_t);
    for (size_t i = 0; i < n; i++) {
        to[i] = (uint32_t)(at[i] - 'a');
    }
    return (PathLabels){to, (uint32_t)n};
}

static uint32_t number_of(const char *name)
{
    return sym_cstr(&ctx.syms, name)->id;
}

static PathTerm term_of(const json_t *t, const char *sum)
{
    const char *eq = json_string_value(json_object_get(t, "eq")), *arrow = strstr(eq, "->");
    const json_t *names = json_object_get(t, "operands"),
                 *perm = json_object_get(t, "permutations");
    uint32_t n = (uint32_t)json_array_size(names);
    uint32_t *tensor = ARENA_ARRAY(&ctx.arena, n, uint32_t);
    PathLabels *operands = ARENA_ARRAY(&ctx.arena, n, PathLabels);
    for (uint32_t k = 0; k < n; k++) {
        size_t length = strcspn(eq, ",-");
        tensor[k] = number_of(json_string_value(json_array_get(names, k)));
        operands[k] = letters(eq, length);
        eq += length + 1;
    }
    const char *key = sum; /* terms under other permutations are other sums */
    for (size_t i = 0; i < json_array_size(perm); i++) {
        key = str_format(&ctx.arena, "%s %s", key, json_string_value(json_array_get(perm, i)));
    }
    return (PathTerm){n, tensor, operands, letters(arrow + 2, strlen(arrow + 2)),
                      number_of(key)};
}

static Set set_of(size_t index, int64_t o, int64_t v, bool factor)
{
    const json_t *s = json_array_get(json_object_get(file, "sets"), index);
    Set set = {.name = json_string_value(json_object_get(s, "name")),
               .reference = json_object_get(s, "reference")};
    VEC(PathTerm) terms = {0};
    size_t i, k;
    json_t *sum, *term;
    json_array_foreach(json_object_get(s, "sums"), i, sum)
    {
        json_array_foreach(json_object_get(sum, "terms"), k, term)
        {
            vec_push(&ctx.arena, &terms,
                     term_of(term, json_string_value(json_object_get(sum, "name"))));
        }
    }
    int64_t *sizes = ARENA_ARRAY(&ctx.arena, 26, int64_t);
    for (int l = 0; l < 26; l++) {
        sizes[l] = l < 8 ? v : o;
    }
    set.multi = (PathMulti){terms.n, terms.at, 26, sizes, factor};
    return set;
}

static void test_reuse_is_at_least_as_good_as_the_reference(void **state)
{
    (void)state;
    size_t n = json_array_size(json_object_get(file, "sets"));
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++) {
        const char *key;
        json_t *at;
        json_object_foreach((json_t *)(uintptr_t)set_of(i, 1, 1, false).reference, key, at)
        {
            long o = 0, v = 0;
            sscanf(key, "o=%ld,v=%ld", &o, &v);
            PathMultiResult plain, factored;
            Set set = set_of(i, o, v, false);
            assert_true(path_multi(&set.multi, &ctx, &plain));
            set = set_of(i, o, v, true);
            assert_true(path_multi(&set.multi, &ctx, &factored));
            double separate = json_number_value(json_object_get(at, "per_term_optimal"));
            double reuse =
                json_number_value(json_object_get(at, "plus_identical_intermediate_reuse"));
            print_message("%s %s: separate %s, shared %s, factored %s (reference %.6g, %.6g)\n",
                          set.name, key, plain.separate, plain.shared, factored.shared,
                          separate, reuse);
            assert_true(strtod(plain.separate, NULL) <= separate * (1 + 1e-9));
            assert_true(strtod(plain.shared, NULL) <= reuse * (1 + 1e-9));
            assert_true(strtod(factored.shared, NULL) <=
                        strtod(plain.shared, NULL) * (1 + 1e-9));
        }
    }
}

/* ---- by numbers ---- */

typedef struct Tensor {
    PathLabels legs;
    double *at;
} Tensor;

static size_t count(const PathMulti *m, PathLabels legs)
{
    size_t n = 1;
    for (uint32_t i = 0; i < legs.n; i++) {
        n *= (size_t)m->sizes[legs.at[i]];
    }
    return n;
}

static size_t offset(const PathMulti *m, PathLabels legs, const int64_t *at)
{
    size_t n = 0;
    for (uint32_t i = 0; i < legs.n; i++) {
        n = n * (size_t)m->sizes[legs.at[i]] + (size_t)at[legs.at[i]];
    }
    return n;
}

/* result[legs] = sum over the other labels of a * b (b may be null), one loop over all labels
 * met. */
static Tensor contract(const PathMulti *m, const Tensor *a, const Tensor *b, PathLabels legs)
{
    Tensor r = {legs, ARENA_ARRAY(&ctx.arena, count(m, legs), double)};
    int64_t at[26] = {0};
    bool met[26] = {false};
    for (uint32_t i = 0; i < a->legs.n; i++) {
        met[a->legs.at[i]] = true;
    }
    for (uint32_t i = 0; b != NULL && i < b->legs.n; i++) {
        met[b->legs.at[i]] = true;
    }
    for (;;) {
        double x = a->at[offset(m, a->legs, at)];
        r.at[offset(m, legs, at)] += b != NULL ? x * b->at[offset(m, b->legs, at)] : x;
        uint32_t l = 0;
        while (l < 26 && (!met[l] || ++at[l] == m->sizes[l])) {
            at[l] = 0;
            l++;
        }
        if (l == 26) {
            return r;
        }
    }
}

static Tensor filled(const PathMulti *m, PathLabels legs, uint64_t seed)
{
    Tensor t = {legs, ARENA_ARRAY(&ctx.arena, count(m, legs), double)};
    Rng rng = {seed};
    for (size_t i = 0; i < count(m, legs); i++) {
        t.at[i] = rng_unit(&rng) - 0.5;
    }
    return t;
}

/* Labels as axes: operands are filled by axis, so that equal tensors get equal numbers.
 * Evaluates the term; from step `from` on when `put` is given, which is then that step's
 * operand a. Returns the result in output order. */
static Tensor evaluate(const PathMulti *m, const PathTerm *t, const PathTermStep *steps,
                       uint32_t from, const Tensor *put, Tensor *made)
{
    Tensor all[2 * MULTI_MOST];
    for (uint32_t k = 0; k < t->n_operands; k++) {
        all[k] = filled(m, t->operands[k], 1000 + t->tensor[k]);
    }
    for (uint32_t k = 0; k + 1 < t->n_operands; k++) {
        const Tensor *a = put != NULL && k == from ? put : &all[steps[k].a];
        all[t->n_operands + k] = contract(m, a, &all[steps[k].b], steps[k].legs);
        made[k] = all[t->n_operands + k];
    }
    return contract(m, &all[2 * t->n_operands - 2], NULL, t->output);
}

static void expect_equal(const PathMulti *m, const Tensor *x, const Tensor *y)
{
    assert_int_equal(count(m, x->legs), count(m, y->legs));
    for (size_t i = 0; i < count(m, x->legs); i++) {
        assert_true(x->at[i] - y->at[i] < 1e-9 && y->at[i] - x->at[i] < 1e-9);
    }
}

static void test_steps_of_one_value_are_one_tensor_and_applies_go_on_alike(void **state)
{
    (void)state;
    uint32_t shared_values = 0, shared_applies = 0;
    for (size_t i = 0; i < json_array_size(json_object_get(file, "sets")); i++) {
        Set set = set_of(i, 2, 3, true);
        const PathMulti *m = &set.multi;
        PathMultiResult r;
        assert_true(path_multi(m, &ctx, &r));
        Map value, apply;
        map_init(&value, &ctx.arena);
        map_init(&apply, &ctx.arena);
        VEC(Tensor) values = {0}, results = {0};
        for (uint32_t t = 0; t < m->n_terms; t++) {
            Tensor made[MULTI_MOST], again[MULTI_MOST];
            const PathTerm *term = &m->terms[t];
            evaluate(m, term, r.steps[t], 0, NULL, made);
            for (uint32_t k = 0; k + 1 < term->n_operands; k++) {
                const PathTermStep *s = &r.steps[t][k];
                uint32_t at;
                if (map_get(&value, s->value, &at)) {
                    expect_equal(m, &made[k], &values.at[at]);
                    shared_values++;
                } else {
                    map_put(&value, s->value, values.n);
                    vec_push(&ctx.arena, &values, made[k]);
                }
                if (s->apply == PATH_NONE) {
                    continue;
                }
                Tensor put = filled(m, s->apply_legs, 7 + s->apply);
                Tensor result = evaluate(m, term, r.steps[t], k, &put, again);
                if (map_get(&apply, s->apply, &at)) {
                    expect_equal(m, &result, &results.at[at]);
                    shared_applies++;
                } else {
                    map_put(&apply, s->apply, results.n);
                    vec_push(&ctx.arena, &results, result);
                }
            }
        }
    }
    assert_true(shared_values > 20);
    assert_true(shared_applies > 5);
}

static int set_up(void **state)
{
    (void)state;
    ctx_init(&ctx);
    file = json_load_file(TDSL_SOURCE_DIR "/tests/data/multi.json", 0, NULL);
    return file == NULL;
}

static int tear_down(void **state)
{
    (void)state;
    json_decref(file);
    ctx_release(&ctx);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reuse_is_at_least_as_good_as_the_reference),
        cmocka_unit_test(test_steps_of_one_value_are_one_tensor_and_applies_go_on_alike),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
