/* SPDX-License-Identifier: Apache-2.0 */
/* A tree with label bitsets, for the searches that move subtrees about. Words are laid out by weight: labels of equal
 * weight share words, so that a size is a population count times a weight; the few words at the end hold
 * labels of rare weights, weighed bit by bit. Sliced labels are left out of all sets. */
#include <string.h>

#include "base/bits.h"
#include "path/search.h"

#define RUN_LEAST   12 /* labels of one weight that earn words of their own */
#define SPARSE_FROM 24 /* words from which empty ones are worth knowing */

void tree_mark(Tree *t, uint32_t node)
{
    if (!t->sparse) {
        return;
    }
    const uint64_t *legs = tree_legs(t, node);
    uint64_t some = 0;
    for (uint32_t w = 0; w < t->words; w++) {
        some |= legs[w] != 0 ? (uint64_t)1 << (w / t->block) : 0;
    }
    t->some[node] = some;
}

double tree_weigh(const Tree *t, const uint64_t *set)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < t->n_runs; i++) {
        uint32_t bits = 0;
        for (uint32_t w = t->run[i].from; w < t->run[i].to; w++) {
            bits += word_bits(set[w]);
        }
        sum += t->run[i].weight * bits;
    }
    for (uint32_t w = t->mixed; w < t->words; w++) {
        for (uint64_t x = set[w]; x != 0; x &= x - 1) {
            sum += t->bit_weight[w * 64 + (uint32_t)__builtin_ctzll(x)];
        }
    }
    return sum;
}

/* Labels by (weight, number). */
static void sort_by_weight(const Net *net, uint32_t *at, uint32_t *room)
{
    uint32_t n = net->n_labels;
    for (uint32_t i = 0; i < n; i++) {
        at[i] = i;
    }
    for (uint32_t width = 1; width < n; width *= 2) {
        for (uint32_t lo = 0; lo < n; lo += 2 * width) {
            uint32_t mid = n - lo < width ? n : lo + width,
                     hi = n - lo < 2 * width ? n : lo + 2 * width;
            uint32_t i = lo, j = mid, k = lo;
            while (k < hi) {
                bool first = i < mid && (j >= hi || net->weight[at[i]] <= net->weight[at[j]]);
                room[k++] = first ? at[i++] : at[j++];
            }
        }
        memcpy(at, room, n * sizeof *at);
    }
}

static void tree_layout(Tree *t, const Net *net, Arena *arena)
{
    uint32_t n = net->n_labels;
    uint32_t *by = ARENA_ARRAY(arena, n, uint32_t), *room = ARENA_ARRAY(arena, n, uint32_t);
    sort_by_weight(net, by, room);
    t->bit = ARENA_ARRAY(arena, n, uint32_t);
    t->run = ARENA_ARRAY(arena, n / RUN_LEAST + 1, Run);
    uint32_t n_mixed = 0;
    for (uint32_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && net->weight[by[j]] <= net->weight[by[i]]; j++) {
        }
        if (j - i < RUN_LEAST) {
            for (uint32_t k = i; k < j; k++) {
                room[n_mixed++] = by[k];
            }
            continue;
        }
        Run run = {t->words, t->words + bits_words(j - i), 0, net->weight[by[i]]};
        for (uint32_t k = i; k < j; k++) {
            t->bit[by[k]] = run.from * 64 + (k - i);
        }
        t->words = run.to;
        t->run[t->n_runs++] = run;
    }
    t->mixed = t->words;
    for (uint32_t k = 0; k < n_mixed; k++) {
        t->bit[room[k]] = t->mixed * 64 + k;
    }
    t->words += (n_mixed + 63) / 64;
    t->words = t->words == 0 ? 1 : t->words;
    t->mixed = t->mixed > t->words ? t->words : t->mixed;
    t->sparse = t->words >= SPARSE_FROM;
    t->block = (t->words + 63) / 64;
    for (uint32_t i = 0; i < t->n_runs; i++) {
        for (uint32_t w = t->run[i].from; w < t->run[i].to; w++) {
            t->run[i].blocks |= (uint64_t)1 << (w / t->block);
        }
    }
}

void tree_init(Tree *t, const Net *net, Arena *arena)
{
    memset(t, 0, sizeof *t);
    t->n = net->n;
    tree_layout(t, net, arena);
    t->label = ARENA_ARRAY(arena, (size_t)t->words * 64, uint32_t);
    t->bit_weight = ARENA_ARRAY(arena, (size_t)t->words * 64, double);
    t->open = ARENA_ARRAY(arena, t->words, uint64_t);
    t->keep = ARENA_ARRAY(arena, t->words, uint64_t);
    memset(t->label, 0xff, (size_t)t->words * 64 * sizeof *t->label);
    for (uint32_t l = 0; l < net->n_labels; l++) {
        uint32_t bit = t->bit[l];
        t->label[bit] = l;
        t->bit_weight[bit] = net->weight[l];
        bits_set(t->keep, bit);
        if (net->open[l]) {
            bits_set(t->open, bit);
        }
    }
    size_t nodes = (size_t)net->n * 2;
    t->left = ARENA_ARRAY(arena, nodes, uint32_t);
    t->right = ARENA_ARRAY(arena, nodes, uint32_t);
    t->legs = ARENA_ARRAY(arena, nodes * t->words, uint64_t);
    t->leaf = ARENA_ARRAY(arena, (size_t)net->n * t->words, uint64_t);
    t->size = ARENA_ARRAY(arena, nodes, double);
    t->cost = ARENA_ARRAY(arena, nodes, double);
    t->both = ARENA_ARRAY(arena, nodes, double);
    t->some = ARENA_ARRAY(arena, nodes, uint64_t);
    uint8_t *holders = ARENA_ARRAY(arena, net->n_labels, uint8_t);
    t->edges = true;
    for (uint32_t k = 0; k < net->n; k++) {
        for (uint32_t i = 0; i < net_degree(net, k); i++) {
            uint32_t l = net_legs(net, k)[i];
            bits_set(t->leaf + (size_t)k * t->words, t->bit[l]);
            t->edges = t->edges && holders[l] + net->open[l] < 2;
            holders[l]++;
        }
    }
}

void tree_copy(Tree *to, const Tree *from)
{
    size_t nodes = (size_t)from->n * 2;
    memcpy(to->keep, from->keep, from->words * sizeof *to->keep);
    memcpy(to->left, from->left, nodes * sizeof *to->left);
    memcpy(to->right, from->right, nodes * sizeof *to->right);
    memcpy(to->legs, from->legs, nodes * from->words * sizeof *to->legs);
    memcpy(to->size, from->size, nodes * sizeof *to->size);
    memcpy(to->cost, from->cost, nodes * sizeof *to->cost);
    memcpy(to->both, from->both, nodes * sizeof *to->both);
    memcpy(to->some, from->some, nodes * sizeof *to->some);
}

Tree tree_clone(const Tree *t, Arena *arena)
{
    Tree c = *t;
    size_t nodes = (size_t)t->n * 2;
    c.keep = ARENA_ARRAY(arena, t->words, uint64_t);
    c.left = ARENA_ARRAY(arena, nodes, uint32_t);
    c.right = ARENA_ARRAY(arena, nodes, uint32_t);
    c.legs = ARENA_ARRAY(arena, nodes * t->words, uint64_t);
    c.size = ARENA_ARRAY(arena, nodes, double);
    c.cost = ARENA_ARRAY(arena, nodes, double);
    c.both = ARENA_ARRAY(arena, nodes, double);
    c.some = ARENA_ARRAY(arena, nodes, uint64_t);
    tree_copy(&c, t);
    return c;
}

void tree_postorder(const Tree *t, uint32_t *order, uint32_t *stack)
{
    uint32_t depth = 0, at = t->n - 1;
    if (t->n < 2) {
        return;
    }
    stack[depth++] = 2 * t->n - 2;
    while (depth >
           0) { /* a preorder with right before left, written backwards, is a postorder */
        uint32_t x = stack[--depth];
        order[--at] = x;
        if (t->left[x] >= t->n) {
            stack[depth++] = t->left[x];
        }
        if (t->right[x] >= t->n) {
            stack[depth++] = t->right[x];
        }
    }
}

static void node_refresh(Tree *t, const Model *m, uint32_t x, uint64_t *left_over)
{
    uint64_t *legs = tree_legs(t, x);
    const uint64_t *a = tree_legs(t, t->left[x]), *b = tree_legs(t, t->right[x]);
    for (uint32_t w = 0; w < t->words; w++) {
        left_over[w] = a[w] | b[w];
    }
    t->both[x] = tree_weigh(t, left_over);
    tree_mark(t, x);
    t->size[x] = tree_weigh(t, legs);
    t->cost[x] =
        model_step(m, t->both[x], t->size[t->left[x]], t->size[t->right[x]], t->size[x]);
}

/* Top down: what is open at a node is open below it or shared between its children; holders need no count. */
void tree_refresh(Tree *t, const Model *m, Arena *scratch)
{
    ArenaMark mark = arena_mark(scratch);
    uint32_t *order = ARENA_ARRAY(scratch, t->n, uint32_t);
    uint32_t *stack = ARENA_ARRAY(scratch, (size_t)t->n + 1, uint32_t);
    uint64_t *inside = ARENA_ARRAY(scratch, (size_t)t->n * 2 * t->words, uint64_t);
    uint64_t *outside = ARENA_ARRAY(scratch, (size_t)t->n * 2 * t->words, uint64_t);
    uint64_t *both = ARENA_ARRAY(scratch, t->words, uint64_t);
    uint32_t words = t->words, root = 2 * t->n - 2;
    tree_postorder(t, order, stack);
    for (uint32_t k = 0; k < t->n; k++) {
        for (uint32_t w = 0; w < words; w++) {
            tree_legs(t, k)[w] = t->leaf[(size_t)k * words + w] & t->keep[w];
        }
        memcpy(inside + (size_t)k * words, tree_legs(t, k), words * sizeof *inside);
        tree_mark(t, k);
        t->size[k] = tree_weigh(t, tree_legs(t, k));
    }
    for (uint32_t i = 0; i + 1 < t->n; i++) {
        uint32_t x = order[i];
        for (uint32_t w = 0; w < words; w++) {
            inside[(size_t)x * words + w] = inside[(size_t)t->left[x] * words + w] |
                                            inside[(size_t)t->right[x] * words + w];
        }
    }
    for (uint32_t w = 0; w < words; w++) {
        outside[(size_t)root * words + w] = t->open[w] & t->keep[w];
    }
    for (uint32_t i = t->n - 1; i-- > 0;) {
        uint32_t x = order[i], a = t->left[x], b = t->right[x];
        for (uint32_t w = 0; w < words; w++) {
            uint64_t o = outside[(size_t)x * words + w];
            outside[(size_t)a * words + w] = o | inside[(size_t)b * words + w];
            outside[(size_t)b * words + w] = o | inside[(size_t)a * words + w];
            tree_legs(t, x)[w] = inside[(size_t)x * words + w] & o;
        }
    }
    for (uint32_t i = 0; i + 1 < t->n; i++) {
        node_refresh(t, m, order[i], both);
    }
    arena_reset(scratch, mark);
}

static void node_recost(Tree *t, const Model *m, uint32_t x)
{
    if (x >= t->n) {
        t->cost[x] =
            model_step(m, t->both[x], t->size[t->left[x]], t->size[t->right[x]], t->size[x]);
    }
}

void tree_slice(Tree *t, const Model *m, uint32_t bit)
{
    uint32_t last = 2 * t->n - 2;
    double weight = t->bit_weight[bit];
    bits_clear(t->keep, bit);
    for (uint32_t x = t->n; x <= last; x++) {
        bool held =
            bits_has(tree_legs(t, t->left[x]), bit) || bits_has(tree_legs(t, t->right[x]), bit);
        t->both[x] -= held ? weight : 0.0;
    }
    for (uint32_t x = 0; x <= last; x++) {
        if (bits_has(tree_legs(t, x), bit)) {
            bits_clear(tree_legs(t, x), bit);
            t->size[x] -= weight;
            tree_mark(t, x);
        }
    }
    for (uint32_t x = t->n; x <= last; x++) {
        node_recost(t, m, x);
    }
}

void tree_unslice(Tree *t, const Model *m, uint32_t bit, Arena *scratch)
{
    ArenaMark mark = arena_mark(scratch);
    uint32_t *order = ARENA_ARRAY(scratch, t->n, uint32_t), last = 2 * t->n - 2;
    uint8_t *inside = ARENA_ARRAY(scratch, (size_t)last + 1, uint8_t);
    uint8_t *outside = ARENA_ARRAY(scratch, (size_t)last + 1, uint8_t);
    double weight = t->bit_weight[bit];
    tree_postorder(t, order, ARENA_ARRAY(scratch, (size_t)t->n + 1, uint32_t));
    bits_set(t->keep, bit);
    for (uint32_t k = 0; k < t->n; k++) {
        inside[k] = bits_has(t->leaf + (size_t)k * t->words, bit);
    }
    for (uint32_t i = 0; i + 1 < t->n; i++) {
        inside[order[i]] = inside[t->left[order[i]]] | inside[t->right[order[i]]];
    }
    outside[last] = bits_has(t->open, bit);
    for (uint32_t i = t->n - 1; i-- > 0;) {
        uint32_t x = order[i], a = t->left[x], b = t->right[x];
        outside[a] = outside[x] | inside[b];
        outside[b] = outside[x] | inside[a];
    }
    for (uint32_t x = 0; x <= last; x++) { /* a leaf holds its labels whatever is outside */
        if (inside[x] && (outside[x] || x < t->n)) {
            bits_set(tree_legs(t, x), bit);
            t->size[x] += weight;
            tree_mark(t, x);
        }
    }
    for (uint32_t i = 0; i + 1 < t->n; i++) {
        uint32_t x = order[i];
        bool held =
            bits_has(tree_legs(t, t->left[x]), bit) || bits_has(tree_legs(t, t->right[x]), bit);
        t->both[x] += held ? weight : 0.0;
    }
    for (uint32_t i = 0; i + 1 < t->n; i++) {
        node_recost(t, m, order[i]);
    }
    arena_reset(scratch, mark);
}

void tree_set(Tree *t, const Model *m, const PathStep *steps, Arena *scratch)
{
    for (uint32_t k = 0; k + 1 < t->n; k++) {
        t->left[t->n + k] = steps[k].a;
        t->right[t->n + k] = steps[k].b;
    }
    tree_refresh(t, m, scratch);
}

void tree_get(const Tree *t, PathStep *steps, Arena *scratch)
{
    ArenaMark mark = arena_mark(scratch);
    uint32_t *order = ARENA_ARRAY(scratch, t->n, uint32_t);
    uint32_t *number = ARENA_ARRAY(scratch, (size_t)t->n * 2, uint32_t);
    tree_postorder(t, order, ARENA_ARRAY(scratch, (size_t)t->n + 1, uint32_t));
    for (uint32_t k = 0; k < t->n; k++) {
        number[k] = k;
    }
    for (uint32_t k = 0; k + 1 < t->n; k++) {
        uint32_t x = order[k];
        steps[k] = (PathStep){number[t->left[x]], number[t->right[x]]};
        number[x] = t->n + k;
    }
    arena_reset(scratch, mark);
}

Score tree_total(const Tree *t, const Model *m)
{
    LogSum sum = LOGSUM_ZERO;
    double largest = 0.0;
    for (uint32_t k = 0; k < 2 * t->n - 1; k++) {
        largest = t->size[k] > largest ? t->size[k] : largest;
        if (k >= t->n) {
            logsum_add(&sum, model_part(m, t->cost[k], t->both[k]));
        }
    }
    return model_score(m, sum, largest);
}

double tree_energy(const Tree *t)
{
    LogSum sum = LOGSUM_ZERO;
    for (uint32_t x = t->n; x < 2 * t->n - 1; x++) {
        logsum_add(&sum, t->cost[x]);
    }
    return logsum_value(sum);
}
