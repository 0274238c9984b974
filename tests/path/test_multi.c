/* SPDX-License-Identifier: Apache-2.0 */
/* Terms planned together: recorded equation sets, counts against references and to the last digit against multi_found.txt,
 * and by numbers that steps of one value are equal tensors and that steps of one apply go on alike whatever is put in. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "path/support_multi.h"
#include "support/golden.h"
#include "support/test.h"

#define FOUND "tests/path/multi_found.txt"

static Ctx ctx;
static json_t *file;

#define BUDGET ((uint64_t)1 << 23)

static double number(const char *digits)
{
    return strtod(digits, NULL);
}

/* References are exact counts or three digits. */
static double reference(const json_t *at, const char *name)
{
    return json_number_value(json_object_get(at, name)) * (1 + 2e-3);
}

static void expect_counts(Text *found, const MultiSet *set, const char *key, const json_t *at)
{
    long o = 0, v = 0;
    assert_int_equal(sscanf(key, "o=%ld,v=%ld", &o, &v), 2);
    const int64_t *sizes = multi_sizes(&ctx, o, v);
    PathMulti m = multi_plain(set, sizes, &ctx);
    PathMerged merged;
    PathMultiResult plain, shared;
    m.budget = BUDGET;
    assert_int_equal(set->n, json_integer_value(json_object_get(at, "terms")));
    assert_true(path_multi(&m, &ctx, &plain));
    path_merge(&m, set->summands, set->n, &ctx, &merged);
    m = multi_of_merged(&merged, sizes);
    m.budget = BUDGET;
    assert_true(path_multi(&m, &ctx, &shared));
    text_printf(found, "%s %s: separate %s, shared %s, merged and factored %s\n", set->name,
                key, plain.separate, plain.shared, shared.shared);
    assert_true(number(plain.separate) <= reference(at, "per_term_optimal"));
    assert_true(number(plain.shared) <= reference(at, "plus_identical_intermediate_reuse"));
    assert_true(number(shared.shared) <= number(plain.shared));
    if (json_object_get(at, "published") != NULL) {
        assert_true(number(shared.shared) <= reference(at, "published"));
    }
}

static void test_reuse_is_at_least_as_good_as_the_references(void **state)
{
    size_t n = json_array_size(json_object_get(file, "sets"));
    assert_true(n >= 7);
    Text found;
    text_init(&found, &ctx.arena);
    for (size_t i = 0; i < n; i++) {
        const char *key;
        json_t *at;
        MultiSet set = multi_set_read(file, i, &ctx);
        json_object_foreach((json_t *)(uintptr_t)set.reference, key, at)
        {
            expect_counts(&found, &set, key, at);
        }
    }
    assert_golden(&ctx.arena, FOUND, found.at);
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

/* result[legs] = sum over the other labels of a * b (b may be null), one loop over all labels met. */
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

/* Labels as axes: operands are filled by axis, so that equal tensors get equal numbers. Evaluates the term; from step
 * `from` on when `put` is given, which is then that step's operand a. Returns the result in output order. */
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

typedef struct Seen {
    Map value, apply;
    VEC(Tensor) values, results;
    uint32_t shared_values, shared_applies;
} Seen;

static void expect_same(const PathMulti *m, Map *map, uint32_t key, const Tensor *made,
                        uint32_t *count_shared, Seen *seen, bool value)
{
    uint32_t at;
    if (map_get(map, key, &at)) {
        expect_equal(m, made, value ? &seen->values.at[at] : &seen->results.at[at]);
        ++*count_shared;
    } else if (value) {
        map_put(map, key, seen->values.n);
        vec_push(&ctx.arena, &seen->values, *made);
    } else {
        map_put(map, key, seen->results.n);
        vec_push(&ctx.arena, &seen->results, *made);
    }
}

static void expect_steps(const PathMulti *m, const PathTerm *term, const PathTermStep *steps,
                         Seen *seen)
{
    Tensor made[MULTI_MOST], again[MULTI_MOST];
    evaluate(m, term, steps, 0, NULL, made);
    for (uint32_t k = 0; k + 1 < term->n_operands; k++) {
        const PathTermStep *s = &steps[k];
        expect_same(m, &seen->value, s->value, &made[k], &seen->shared_values, seen, true);
        if (s->apply == PATH_NONE) {
            continue;
        }
        Tensor put = filled(m, s->apply_legs, 7 + s->apply);
        Tensor result = evaluate(m, term, steps, k, &put, again);
        expect_same(m, &seen->apply, s->apply, &result, &seen->shared_applies, seen, false);
    }
}

#define SMALL_SETS 6 /* quadruples are too large to be computed here */

static void test_steps_of_one_value_are_one_tensor_and_applies_go_on_alike(void **state)
{
    uint32_t shared_values = 0, shared_applies = 0;
    for (size_t i = 0; i < SMALL_SETS; i++) {
        MultiSet set = multi_set_read(file, i, &ctx);
        const int64_t *sizes = multi_sizes(&ctx, 2, 3);
        PathMulti m = multi_plain(&set, sizes, &ctx);
        PathMerged merged;
        PathMultiResult r;
        path_merge(&m, set.summands, set.n, &ctx, &merged);
        m = multi_of_merged(&merged, sizes);
        m.budget = BUDGET;
        assert_true(path_multi(&m, &ctx, &r));
        Seen seen = {0};
        map_init(&seen.value, &ctx.arena);
        map_init(&seen.apply, &ctx.arena);
        for (uint32_t t = 0; t < m.n_terms; t++) {
            if (r.steps[t] != NULL) {
                expect_steps(&m, &m.terms[t], r.steps[t], &seen);
            }
        }
        shared_values += seen.shared_values;
        shared_applies += seen.shared_applies;
    }
    assert_true(shared_values > 100);
    assert_true(shared_applies > 50);
}

/* The operands one after the other. */
static Tensor term_value(const PathMulti *m, const PathTerm *t)
{
    Tensor acc = filled(m, t->operands[0], 1000 + t->tensor[0]);
    for (uint32_t k = 1; k <= t->n_operands; k++) {
        uint32_t n = 0, *legs = ARENA_ARRAY(&ctx.arena, 26, uint32_t);
        for (uint32_t l = 0; l < 26; l++) {
            bool before = false, after = false;
            for (uint32_t o = 0; o <= t->n_operands; o++) {
                PathLabels at = o < t->n_operands ? t->operands[o] : t->output;
                for (uint32_t i = 0; i < at.n; i++) {
                    before |= o <= k && o < t->n_operands && at.at[i] == l;
                    after |= o > k && at.at[i] == l;
                }
            }
            if (before && after) {
                legs[n++] = l;
            }
        }
        PathLabels to = k < t->n_operands ? (PathLabels){legs, n} : t->output;
        Tensor b = k < t->n_operands ? filled(m, t->operands[k], 1000 + t->tensor[k]) : acc;
        acc = contract(m, &acc, k < t->n_operands ? &b : NULL, to);
    }
    return acc;
}

/* result += coef * the tensor in each order: axis d of the result is axis[d] of it. */
static void orders_add(const PathMulti *m, const Tensor *t, const PathOrder *orders, uint32_t n,
                       double coef, double *result)
{
    size_t size = count(m, t->legs);
    for (uint32_t k = 0; k < n; k++) {
        for (size_t at = 0; at < size; at++) {
            int64_t place[32];
            size_t rest = at, to = 0;
            for (uint32_t d = t->legs.n; d-- > 0;) {
                place[d] = (int64_t)(rest % (size_t)m->sizes[t->legs.at[d]]);
                rest /= (size_t)m->sizes[t->legs.at[d]];
            }
            for (uint32_t d = 0; d < t->legs.n; d++) {
                uint32_t axis = orders[k].axis[d];
                to = to * (size_t)m->sizes[t->legs.at[axis]] + (size_t)place[axis];
            }
            result[to] += coef * orders[k].coef * t->at[at];
        }
    }
}

#define RESULT_MOST 4096

static void expect_results(const double *x, const double *y)
{
    for (size_t i = 0; i < RESULT_MOST; i++) {
        assert_true(x[i] - y[i] < 1e-8 && y[i] - x[i] < 1e-8);
    }
}

static void choice_add(const PathMulti *m, const PathMerged *merged, uint32_t choice,
                       double *result)
{
    for (uint32_t i = 0; i < merged->choices[choice].n; i++) {
        uint32_t t = merged->choices[choice].first + i;
        const PathSumOrders *sum = &merged->sums[merged->terms[t].sum];
        Tensor value = term_value(m, &merged->terms[t]);
        orders_add(m, &value, sum->orders, sum->n_orders, merged->coef[t], result);
    }
}

static void test_merged_terms_and_every_choice_of_a_group_add_up_to_the_same(void **state)
{
    uint32_t choices = 0;
    for (size_t i = 0; i < SMALL_SETS; i++) {
        MultiSet set = multi_set_read(file, i, &ctx);
        const int64_t *sizes = multi_sizes(&ctx, 2, 3);
        PathMulti m = multi_plain(&set, sizes, &ctx);
        PathMerged merged;
        static double expected[8][RESULT_MOST], found[8][RESULT_MOST];
        memset(expected, 0, sizeof expected);
        memset(found, 0, sizeof found);
        for (uint32_t t = 0; t < set.n; t++) {
            const PathSummand *s = &set.summands[t];
            Tensor value = term_value(&m, &s->term);
            assert_true(s->term.sum < 8 && count(&m, s->term.output) <= RESULT_MOST);
            orders_add(&m, &value, s->orders, s->n_orders, 1.0, expected[s->term.sum]);
        }
        path_merge(&m, set.summands, set.n, &ctx, &merged);
        for (uint32_t c = 0; c < merged.n_choices; c++) {
            static double first[RESULT_MOST], other[RESULT_MOST];
            uint32_t sum = merged.terms[merged.choices[c].first].sum;
            double *result = found[merged.sums[sum].result];
            if (c == 0 || merged.choices[c].group != merged.choices[c - 1].group) {
                choice_add(&m, &merged, c, result);
                memset(first, 0, sizeof first);
                choice_add(&m, &merged, c, first);
                continue;
            }
            memset(other, 0, sizeof other);
            choice_add(&m, &merged, c, other);
            expect_results(first, other);
            choices++;
        }
        for (uint32_t k = 0; k < 8; k++) {
            expect_results(expected[k], found[k]);
        }
    }
    assert_true(choices > 50);
}

static int set_up(void **state)
{
    ctx_init(&ctx);
    file = multi_file_load();
    return file == NULL;
}

static int tear_down(void **state)
{
    json_decref(file);
    ctx_release(&ctx);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reuse_is_at_least_as_good_as_the_references),
        cmocka_unit_test(test_steps_of_one_value_are_one_tensor_and_applies_go_on_alike),
        cmocka_unit_test(test_merged_terms_and_every_choice_of_a_group_add_up_to_the_same),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
