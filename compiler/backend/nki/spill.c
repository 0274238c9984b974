/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings of values that the nest keeps on chip and this target does not: which statement wants what only a DMA can, or how much
 * room is missing. The nest has warned of the others. */
#include "backend/nki/legalise.h"

typedef struct Reason {
    const Stmt *reader; /* or null */
    const char *why, *avoid;
} Reason;

static void warn(const Lower *l, BufRef buf, Reason r)
{
    const Buffer *b = &l->from->bufs.at[buf];
    if (b->space != SPACE_TILE || b->may_spill) {
        return;
    }
    int64_t bytes = dtype_bytes(b->dtype);
    for (uint32_t d = 0; d < b->rank; d++) {
        bytes = sat_mul(bytes, b->extent[d].n);
    }
    Diagnostic *d = diag_warning(&l->ctx->diags, W_SPILL, b->span,
                                 "'%s' goes to memory on target '%s': %lld bytes",
                                 b->name->text, l->target->name, (long long)bytes);
    if (r.reader != NULL && r.reader->span.source != 0) {
        diag_mark(d, r.reader->span, "read here");
    }
    diag_because(d, "%s", r.why);
    diag_help(d, "%s%s'spill %s;' in the kernel or -Wno-spill silences this",
              r.avoid == NULL ? "" : r.avoid, r.avoid == NULL ? "" : "; ", b->name->text);
}

static const char *reader_name(const Lower *l, const Stmt *s)
{
    return s == NULL ? "a statement"
                     : str_format(l->arena, "'%s'",
                                  s->name != NULL ? s->name->text
                                                  : l->from->bufs.at[s->dst].name->text);
}

static Reason away(const Lower *l, const Away *a)
{
    static const char *const what[] = {
        [AWAY_DIAGONAL] = "reads a diagonal of it",
        [AWAY_ACROSS] = "reads rows as one that lie in two groups of 128 partitions",
        [AWAY_BOOL] = "wants booleans turned",
        [AWAY_SUM] = "reads or writes it at sums or multiples of indices",
        [AWAY_STEPS] = "reads or writes other partitions of it in each iteration of a loop",
        [AWAY_OTHER] = "wants other indices of it on partitions",
    };
    static const char *const avoid[] = {
        [AWAY_DIAGONAL] = "compute the diagonal by a statement of its own",
        [AWAY_ACROSS] = "steps of loops that divide 128, by --nest",
        [AWAY_BOOL] = "a number instead of the boolean",
        [AWAY_SUM] = "nothing: an access pattern over HBM is what the device has for that",
        [AWAY_STEPS] = "a dimension more, which the loop does not move along",
        [AWAY_OTHER] = "the same order of indices where it is made and where it is read",
    };
    return (Reason){a->stmt,
                    str_format(l->arena, "%s %s, which only a DMA from memory can",
                               reader_name(l, a->stmt), what[a->kind]),
                    avoid[a->kind]};
}

static Reason no_room(const Lower *l, const Home *h)
{
    if (h->wanted == 0) {
        return (Reason){NULL,
                        "a long vector that is used by one index only is quicker there, cut as "
                        "one likes",
                        NULL};
    }
    return (Reason){
        NULL,
        str_format(l->arena,
                   "it takes %lld bytes of a partition of %s, blocks may have %lld, "
                   "of which %lld are left",
                   (long long)h->wanted,
                   l->target->machine->level[l->target->machine->tile_level].name,
                   (long long)l->room.home_limit, (long long)h->left),
        "smaller extents, or smaller tiles by --nest"};
}

void spill_warn_all(const Lower *l)
{
    for (uint32_t i = 0; !l->tried.failed && i < l->from->bufs.n; i++) {
        if (l->home[i].made && !l->home[i].on_chip) {
            warn(l, i, l->tried.away[i] ? away(l, &l->tried.why[i]) : no_room(l, &l->home[i]));
        }
    }
}

void spill_warn_crossing(const Lower *l, BufRef buf)
{
    warn(l, buf,
         (Reason){
             NULL, "one program of the kernel hands it to another",
             str_format(l->arena,
                        "smaller extents, so that one program of %lld instructions is enough",
                        (long long)l->task.most)});
}
