/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a lowering: which buffer lives where, and what a try finds out for the next one. Each of these ends the try. */
#include "backend/nki/lower.h"

bool lower_refuse(Lower *l, Span span, const char *what)
{
    if (!l->tried.failed) {
        diag_unsupported(&l->ctx->diags, E_TARGET, span, "target '%s' does not have %s",
                         l->target->name, what);
    }
    l->tried.failed = true;
    return false;
}

uint32_t moving_depth(const Lower *l, Affine moves)
{
    uint32_t depth = l->loops.depth;
    while (depth > 0 && !affine_uses(moves, l->loops.open[depth - 1].var)) {
        depth--;
    }
    return depth;
}

void retry_unrolled(Lower *l, Affine moves)
{
    uint32_t depth = moving_depth(l, moves);
    if (depth > 0) {
        const Stmt *s = l->loops.open[depth - 1].stmt;
        uint32_t at = s->kind == STMT_FOR ? s->var : l->from->vars.n; /* nothing is cut */
        l->loops.concrete[at] = true;
        l->tried.again = l->tried.failed = true;
    }
}

void retry_away(Lower *l, BufRef buf, AwayKind kind)
{
    l->tried.away[buf] = l->tried.again = l->tried.failed = true;
    l->tried.why[buf] = (Away){kind, l->now.stmt};
}

void retry_copied(Lower *l, BufRef buf)
{
    l->tried.copied[buf] = l->tried.again = l->tried.failed = true;
}

BufRef home_of(const Lower *l, BufRef made)
{
    uint32_t b = 0;
    while (b < l->from->bufs.n && !(l->home[b].made && l->home[b].buf == made)) {
        b++;
    }
    return b < l->from->bufs.n ? b : LOWER_NONE;
}

bool home_is_spread(const Lower *l, BufRef made)
{
    BufRef buf = home_of(l, made);
    return buf != LOWER_NONE && l->home[buf].spread;
}

void retry_copied_pieces(Lower *l, BufRef made)
{
    BufRef buf = nki_bank(l->to, made) > 0 ? home_of(l, made) : LOWER_NONE;
    if (buf != LOWER_NONE) {
        retry_copied(l, buf);
    }
}
