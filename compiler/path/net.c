/* SPDX-License-Identifier: Apache-2.0 */
/* Preparation, all of it exact: the free steps (extent 1, repeats, lone labels), then multiplying operands of equal
 * label sets, which some best tree always begins with (moving such an operand next to its twin never raises the
 * cost of another step, and its own step cannot be cheaper), then the split into connected parts. */
#include "path/net.h"

#include <math.h>
#include <string.h>

#include "base/map.h"
#include "base/union_find.h"

static void labels_sort(uint32_t *at, uint32_t n, uint32_t *room)
{
    for (uint32_t width = 1; width < n; width *= 2) {
        for (uint32_t lo = 0; lo < n; lo += 2 * width) {
            uint32_t mid = n - lo < width ? n : lo + width;
            uint32_t hi = n - lo < 2 * width ? n : lo + 2 * width;
            uint32_t i = lo, j = mid, k = lo;
            while (k < hi) {
                bool left = i < mid && (j >= hi || at[i] <= at[j]);
                room[k++] = left ? at[i++] : at[j++];
            }
        }
        memcpy(at, room, n * sizeof *at);
    }
}

/* In multiples of 2^-36, so that sums are exact in any order. */
static double weight_of(int64_t size)
{
    double grain = 68719476736.0;
    return size <= 1 ? 0.0 /* nothing to gain from an extent of 0 */
                     : floor(log2((double)size) * grain + 0.5) / grain;
}

typedef struct Census {
    uint8_t *open;     /* by label of the problem */
    uint32_t *holders; /* operands that hold it */
    uint32_t *last;    /* last operand seen + 1, to skip repeats */
} Census;

static Census census_of(const PathProblem *p, Arena *arena)
{
    Census c = {ARENA_ARRAY(arena, p->n_labels, uint8_t),
                ARENA_ARRAY(arena, p->n_labels, uint32_t),
                ARENA_ARRAY(arena, p->n_labels, uint32_t)};
    for (uint32_t i = 0; i < p->output.n; i++) {
        c.open[p->output.at[i]] = 1;
    }
    for (uint32_t k = 0; k < p->n_operands; k++) {
        for (uint32_t i = 0; i < p->operands[k].n; i++) {
            uint32_t l = p->operands[k].at[i];
            if (c.last[l] != k + 1) {
                c.last[l] = k + 1;
                c.holders[l]++;
            }
        }
    }
    memset(c.last, 0, p->n_labels * sizeof *c.last);
    return c;
}

void net_prepare(const PathProblem *p, const uint8_t *skip, Arena *arena, Prepared *out)
{
    Census c = census_of(p, arena);
    uint32_t *number = ARENA_ARRAY(arena, p->n_labels, uint32_t);
    uint32_t n_kept = 0;
    for (uint32_t l = 0; l < p->n_labels; l++) {
        bool keep = p->sizes[l] != 1 && (skip == NULL || !skip[l]) && c.holders[l] > 0 &&
                    c.holders[l] + c.open[l] >= 2;
        number[l] = keep ? n_kept++ : UINT32_MAX;
    }
    double *weight = ARENA_ARRAY(arena, n_kept, double);
    uint8_t *open = ARENA_ARRAY(arena, n_kept, uint8_t);
    out->origin = ARENA_ARRAY(arena, n_kept, uint32_t);
    for (uint32_t l = 0; l < p->n_labels; l++) {
        if (number[l] != UINT32_MAX) {
            weight[number[l]] = weight_of(p->sizes[l]);
            open[number[l]] = c.open[l];
            out->origin[number[l]] = l;
        }
    }
    size_t total = 0;
    for (uint32_t k = 0; k < p->n_operands; k++) {
        total += p->operands[k].n;
    }
    uint32_t *label = ARENA_ARRAY(arena, total, uint32_t);
    uint32_t *room = ARENA_ARRAY(arena, total, uint32_t);
    uint32_t *start = ARENA_ARRAY(arena, (size_t)p->n_operands + 1, uint32_t);
    uint32_t at = 0;
    for (uint32_t k = 0; k < p->n_operands; k++) {
        start[k] = at;
        for (uint32_t i = 0; i < p->operands[k].n; i++) {
            uint32_t l = p->operands[k].at[i];
            if (number[l] != UINT32_MAX && c.last[l] != k + 1) {
                c.last[l] = k + 1;
                label[at++] = number[l];
            }
        }
        labels_sort(label + start[k], at - start[k], room);
    }
    start[p->n_operands] = at;
    out->net = (Net){p->n_operands, n_kept, start, label, weight, open};
}

/* The tensors alive while equal ones are multiplied: lists shrink in place as labels become lone. */
typedef struct Alive {
    uint32_t n;
    uint32_t *tensor; /* number in the tree */
    uint32_t **legs;
    uint32_t *n_legs;
    uint32_t *holders; /* by label, the output counts as one */
} Alive;

static Alive alive_of(const Net *net, Arena *arena)
{
    Alive a = {net->n, ARENA_ARRAY(arena, net->n, uint32_t),
               ARENA_ARRAY(arena, net->n, uint32_t *), ARENA_ARRAY(arena, net->n, uint32_t),
               ARENA_ARRAY(arena, net->n_labels, uint32_t)};
    uint32_t *copy = ARENA_ARRAY(arena, net->start[net->n], uint32_t);
    for (uint32_t l = 0; l < net->n_labels; l++) {
        a.holders[l] = net->open[l];
    }
    for (uint32_t k = 0; k < net->n; k++) {
        a.tensor[k] = k;
        a.legs[k] = copy + net->start[k];
        a.n_legs[k] = net_degree(net, k);
        for (uint32_t i = 0; i < a.n_legs[k]; i++) {
            a.legs[k][i] = net_legs(net, k)[i];
            a.holders[a.legs[k][i]]++;
        }
    }
    return a;
}

/* One round: twins become one, lone labels go. False when nothing changed. */
static bool alive_merge_twins(Alive *a, uint32_t n_leaves, Reduced *out, Arena *arena)
{
    Map seen;
    map_init(&seen, arena);
    bool changed = false;
    uint32_t kept = 0;
    for (uint32_t k = 0; k < a->n; k++) {
        uint64_t key = hash_bytes(a->n_legs[k], a->legs[k], a->n_legs[k] * sizeof(uint32_t));
        uint32_t twin = 0;
        bool found = map_get(&seen, key, &twin) && a->n_legs[twin] == a->n_legs[k] &&
                     memcmp(a->legs[twin], a->legs[k], a->n_legs[k] * sizeof(uint32_t)) == 0;
        if (found) {
            out->steps[out->n_steps] = (PathStep){a->tensor[twin], a->tensor[k]};
            a->tensor[twin] = n_leaves + out->n_steps++;
            for (uint32_t i = 0; i < a->n_legs[k]; i++) {
                a->holders[a->legs[k][i]]--;
            }
            changed = true;
            continue;
        }
        a->tensor[kept] = a->tensor[k];
        a->legs[kept] = a->legs[k];
        a->n_legs[kept] = a->n_legs[k];
        map_put(&seen, key, kept++);
    }
    a->n = kept;
    for (uint32_t k = 0; changed && k < a->n; k++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < a->n_legs[k]; i++) {
            if (a->holders[a->legs[k][i]] > 1) {
                a->legs[k][n++] = a->legs[k][i];
            }
        }
        a->n_legs[k] = n;
    }
    return changed;
}

/* Numbers of connected parts by tensor, in order of first tensors. */
static uint32_t *parts_of(const Alive *a, uint32_t n_labels, bool split, uint32_t *n_parts,
                          Arena *arena)
{
    uint32_t *parent = union_new(arena, a->n);
    uint32_t *first = ARENA_ARRAY(arena, n_labels, uint32_t);
    for (uint32_t k = 0; k < a->n; k++) {
        for (uint32_t i = 0; i < a->n_legs[k]; i++) {
            uint32_t l = a->legs[k][i];
            if (first[l] == 0) {
                first[l] = k + 1;
            } else {
                uint32_t r = first[l] - 1, s = k;
                (void)union_join(parent, &r, &s);
            }
        }
    }
    uint32_t *part = ARENA_ARRAY(arena, a->n, uint32_t);
    *n_parts = 0;
    for (uint32_t k = 0; k < a->n; k++) {
        uint32_t r =
            split ? union_find(parent, k) : 0; /* the least member, so already numbered */
        part[k] = r == k ? (*n_parts)++ : part[r];
    }
    return part;
}

/* Representatives: rep[l] = the least label with the same occurrences, or l itself. */
static uint32_t *fuse_labels(const Alive *a, const Net *net, bool fuse, Arena *arena)
{
    uint32_t *rep = ARENA_ARRAY(arena, net->n_labels, uint32_t);
    uint64_t *sign = ARENA_ARRAY(arena, net->n_labels, uint64_t);
    uint64_t *check = ARENA_ARRAY(arena, net->n_labels, uint64_t);
    for (uint32_t k = 0; k < a->n; k++) {
        for (uint32_t i = 0; i < a->n_legs[k]; i++) {
            uint32_t l = a->legs[k][i];
            sign[l] = hash_mix(sign[l], k + 1);
            check[l] += hash_mix(0x51ed2701, k + 1);
        }
    }
    Map seen;
    map_init(&seen, arena);
    for (uint32_t l = 0; l < net->n_labels; l++) {
        rep[l] = l;
        uint64_t key = hash_mix(hash_mix(sign[l], check[l]), net->open[l]);
        uint32_t other;
        if (!fuse || sign[l] == 0) {
            continue;
        }
        if (map_get(&seen, key, &other)) {
            rep[l] = other;
        } else {
            map_put(&seen, key, l);
        }
    }
    return rep;
}

typedef struct Split {
    const Alive *alive;
    const Net *net;
    const uint32_t *part, *rep;
    uint32_t *number; /* by prepared label: number inside its part + 1 */
} Split;

/* Fills part `out`, whose tensors are member[0 .. n). */
static void part_build(Split *s, const uint32_t *member, uint32_t n, Part *out, Arena *arena)
{
    size_t total = 0;
    for (uint32_t k = 0; k < n; k++) {
        total += s->alive->n_legs[member[k]];
    }
    uint32_t *label = ARENA_ARRAY(arena, total, uint32_t);
    uint32_t *room = ARENA_ARRAY(arena, total, uint32_t);
    uint32_t *start = ARENA_ARRAY(arena, (size_t)n + 1, uint32_t);
    uint32_t *names = ARENA_ARRAY(arena, total, uint32_t);
    out->operand = ARENA_ARRAY(arena, n, uint32_t);
    uint32_t n_labels = 0, at = 0;
    for (uint32_t k = 0; k < n; k++) {
        start[k] = at;
        out->operand[k] = s->alive->tensor[member[k]];
        for (uint32_t i = 0; i < s->alive->n_legs[member[k]]; i++) {
            uint32_t l = s->alive->legs[member[k]][i];
            if (s->rep[l] == l) {
                if (s->number[l] == 0) {
                    names[n_labels++] = l;
                    s->number[l] = n_labels;
                }
                label[at++] = s->number[l] - 1;
            }
        }
        labels_sort(label + start[k], at - start[k], room);
    }
    start[n] = at;
    double *weight = ARENA_ARRAY(arena, n_labels, double);
    uint8_t *open = ARENA_ARRAY(arena, n_labels, uint8_t);
    for (uint32_t i = 0; i < n_labels; i++) {
        open[i] = s->net->open[names[i]];
    }
    out->label = names;
    out->net = (Net){n, n_labels, start, label, weight, open};
}

void net_reduce(const Net *net, bool simplify, bool split, Arena *arena, Reduced *out)
{
    *out = (Reduced){ARENA_ARRAY(arena, net->n, PathStep), 0, NULL, 0};
    Alive a = alive_of(net, arena);
    for (int round = 0; simplify && round < 64 && alive_merge_twins(&a, net->n, out, arena);
         round++) {
    }
    Split s = {&a, net, parts_of(&a, net->n_labels, split, &out->n_parts, arena),
               fuse_labels(&a, net, simplify, arena),
               ARENA_ARRAY(arena, net->n_labels, uint32_t)};
    uint32_t *first = ARENA_ARRAY(arena, (size_t)out->n_parts + 2, uint32_t);
    uint32_t *member = ARENA_ARRAY(arena, a.n, uint32_t);
    for (uint32_t k = 0; k < a.n; k++) {
        first[s.part[k] + 2]++;
    }
    for (uint32_t i = 2; i < out->n_parts + 2; i++) {
        first[i] += first[i - 1];
    }
    for (uint32_t k = 0; k < a.n; k++) {
        member[first[s.part[k] + 1]++] = k;
    }
    out->parts = ARENA_ARRAY(arena, out->n_parts, Part);
    for (uint32_t i = 0; i < out->n_parts; i++) {
        part_build(&s, member + first[i], first[i + 1] - first[i], &out->parts[i], arena);
    }
    /* Fused labels weigh together; each part's weights were left at zero. */
    double *sum = ARENA_ARRAY(arena, net->n_labels, double);
    for (uint32_t l = 0; l < net->n_labels; l++) {
        sum[s.rep[l]] += net->weight[l];
    }
    for (uint32_t i = 0; i < out->n_parts; i++) {
        Part *part = &out->parts[i];
        double *weight = ARENA_ARRAY(arena, part->net.n_labels, double);
        for (uint32_t l = 0; l < part->net.n_labels; l++) {
            weight[l] = sum[part->label[l]];
        }
        part->net.weight = weight;
    }
}

void net_holders(const Net *net, Arena *arena, const uint32_t **start, const uint32_t **holder)
{
    uint32_t *first = ARENA_ARRAY(arena, (size_t)net->n_labels + 2, uint32_t);
    uint32_t *all = ARENA_ARRAY(arena, net->start[net->n], uint32_t);
    for (uint32_t i = 0; i < net->start[net->n]; i++) {
        first[net->label[i] + 2]++;
    }
    for (uint32_t l = 2; l < net->n_labels + 2; l++) {
        first[l] += first[l - 1];
    }
    for (uint32_t k = 0; k < net->n; k++) {
        for (uint32_t i = 0; i < net_degree(net, k); i++) {
            all[first[net_legs(net, k)[i] + 1]++] = k;
        }
    }
    *start = first;
    *holder = all;
}
