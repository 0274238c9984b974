/* SPDX-License-Identifier: Apache-2.0 */
/* See part.h. What a part writes of a tensor is found by walking its instructions: from the
 * first row to the last. */
#include "backend/nki/part.h"
#include "loop/copy.h"
#include "loop/walk.h"

#include <string.h>

uint32_t nki_parts(const Kernel *k)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->n_body; i++) {
        const Stmt *s = k->body[i];
        bool shared =
            s->kind == STMT_ALLOC && k->bufs.at[s->buf].space == SPACE_WORKSPACE && n == 0;
        if (!shared && s->kind != STMT_BLOCK) {
            return 1;
        }
        n += s->kind == STMT_BLOCK;
    }
    return n > 1 ? n : 1;
}

bool nki_temporary(const Kernel *k, uint32_t i, BufRef *out)
{
    if (nki_parts(k) < 2 || i >= k->n_body || k->body[i]->kind != STMT_ALLOC) {
        return false;
    }
    *out = k->body[i]->buf;
    return true;
}

/* ---- what a part touches ---- */

typedef struct Extent {
    int64_t lo, hi; /* elements; hi < 0: none */
} Extent;

typedef struct Reach {
    const Kernel *k;
    Extent *read, *written; /* [bufs] */
} Reach;

static void reach_operand(const Kernel *k, const Operand *o, Extent *to)
{
    const Buffer *b = &k->bufs.at[o->buf];
    int64_t lo = o->pattern ? o->offset : 0, hi = lo;
    for (uint32_t d = 0; d < o->n; d++) {
        int64_t flat = o->pattern ? 1 : buffer_elements(b, d + 1);
        int64_t count = o->count[d] == 0 ? 1 : o->count[d];
        lo = sat_add(lo, o->pattern ? 0 : sat_mul(flat, o->start[d]));
        hi = sat_add(hi, o->pattern ? 0 : sat_mul(flat, o->start[d]));
        hi = sat_add(hi, sat_mul(sat_mul(flat, o->stride[d]), count - 1));
    }
    if (to->hi < 0) {
        *to = (Extent){lo, hi};
    }
    to->lo = lo < to->lo ? lo : to->lo;
    to->hi = hi > to->hi ? hi : to->hi;
}

static bool reach_instr(void *user, const Instr *i)
{
    Reach *r = user;
    if (i->kind == INSTR_DMA && !i->dst.on_chip) {
        reach_operand(r->k, &i->dst, &r->written[i->dst.buf]);
    }
    if (i->kind == INSTR_DMA && !i->a.on_chip) {
        reach_operand(r->k, &i->a, &r->read[i->a.buf]);
    }
    if (i->gathers) { /* any row */
        r->read[i->a.buf] = (Extent){0, buffer_elements(&r->k->bufs.at[i->a.buf], 0) - 1};
    }
    return true;
}

/* ---- the part's kernel ---- */

static const Stmt *part_block(const Kernel *k, uint32_t number)
{
    for (uint32_t i = 0; i < k->n_body; i++) {
        if (k->body[i]->kind == STMT_BLOCK && number-- == 0) {
            return k->body[i];
        }
    }
    UNREACHABLE();
}

uint32_t nki_row_dim(const Buffer *b)
{
    uint32_t d = 0;
    while (d + 1 < b->rank && b->extent[d].n == 1) {
        d++;
    }
    return d;
}

/* An output becomes its rows alone. */
static void take_rows(const Kernel *k, Kernel *part, BufRef buf, const Extent *written,
                      PartOperand *operand, struct StmtShift *shift)
{
    Buffer *b = &part->bufs.at[buf];
    if (b->rank == 0) {
        return;
    }
    uint32_t d = nki_row_dim(b);
    int64_t row = buffer_elements(b, d + 1);
    int64_t lo = written->lo / row, hi = written->hi / row + 1;
    Dim *extent = arena_copy(part->arena, b->extent, b->rank * sizeof *b->extent);
    extent[d] = dim_fixed(hi - lo);
    b->extent = extent;
    operand->first = lo * row;
    operand->rows = hi - lo < k->bufs.at[buf].extent[d].n;
    *shift = (struct StmtShift){d, lo};
}

static void add_operand(NkiPart *out, const Kernel *k, BufRef buf, ArgRole role,
                        const Extent *written, struct StmtShift *shift)
{
    Kernel *p = out->kernel;
    PartOperand operand = {.whole = buf, .output = role == ARG_RESULT};
    operand.inout = role == ARG_INOUT;
    if (role != ARG_IN) {
        take_rows(k, p, buf, written, &operand, shift);
    }
    p->bufs.at[buf].space = SPACE_ARGUMENT;
    p->bufs.at[buf].param = (int32_t)p->args.n;
    Arg arg = {.role = role, .buf = buf};
    vec_push(p->arena, &p->args, arg);
    vec_push(p->arena, &out->operands, operand);
}

static bool is_inout(const Kernel *k, BufRef buf)
{
    for (uint32_t i = 0; i < k->args.n; i++) {
        if (k->args.at[i].buf == buf && k->args.at[i].role == ARG_INOUT) {
            return true;
        }
    }
    return false;
}

static bool walk_reach(const Kernel *k, const Stmt *block, Reach *r)
{
    Kernel part = *k;
    part.body = block->body;
    part.n_body = block->n_body;
    *r = (Reach){.k = k};
    r->read = ARENA_ARRAY(k->arena, k->bufs.n, Extent);
    r->written = ARENA_ARRAY(k->arena, k->bufs.n, Extent);
    for (uint32_t b = 0; b < k->bufs.n; b++) {
        r->read[b].hi = r->written[b].hi = -1;
    }
    const Stmt *bad = NULL;
    const char *why = NULL;
    return instr_walk_cores(&part, reach_instr, r, &bad, &why);
}

/* Are all elements that a part reads of what it writes in rows it writes? */
static bool reads_own_rows(const Kernel *k, BufRef buf, const Reach *r)
{
    const Extent *read = &r->read[buf], *written = &r->written[buf];
    if (read->hi < 0 || (written->hi < 0 && !is_inout(k, buf))) {
        return true;
    }
    int64_t row = buffer_elements(&k->bufs.at[buf], nki_row_dim(&k->bufs.at[buf]) + 1);
    return written->hi >= 0 && read->lo / row >= written->lo / row &&
           read->hi / row <= written->hi / row;
}

/* The rows that a part writes of a tensor; none: hi < 0. */
static Extent written_rows(const Kernel *k, BufRef buf, const Reach *r)
{
    int64_t row = buffer_elements(&k->bufs.at[buf], nki_row_dim(&k->bufs.at[buf]) + 1);
    Extent w = r->written[buf];
    return w.hi < 0 ? w : (Extent){w.lo / row, w.hi / row};
}

static bool meet(Extent x, Extent y)
{
    return x.hi >= 0 && y.hi >= 0 && x.lo <= y.hi && y.lo <= x.hi;
}

bool nki_parts_sound(const Kernel *k)
{
    uint32_t parts = nki_parts(k);
    Extent *rows = ARENA_ARRAY(k->arena, (size_t)parts * k->bufs.n + 1, Extent);
    bool *shared = ARENA_ARRAY(k->arena, k->bufs.n, bool);
    bool *written = ARENA_ARRAY(k->arena, k->bufs.n, bool);
    BufRef temporary = 0;
    for (uint32_t i = 0; nki_temporary(k, i, &temporary); i++) {
        shared[temporary] = true;
    }
    for (uint32_t p = 0; p < parts; p++) {
        Reach r;
        if (!walk_reach(k, part_block(k, p), &r)) {
            return false;
        }
        for (uint32_t b = 0; b < k->bufs.n; b++) {
            bool whole = shared[b] || k->bufs.at[b].space == SPACE_ARGUMENT;
            rows[p * k->bufs.n + b] = written_rows(k, b, &r);
            for (uint32_t q = 0; q < p && whole; q++) {
                if (meet(rows[p * k->bufs.n + b], rows[q * k->bufs.n + b])) {
                    return false;
                }
            }
            if (whole && !reads_own_rows(k, b, &r)) {
                return false;
            }
            written[b] |= r.written[b].hi >= 0;
        }
    }
    for (uint32_t b = 0; b < k->bufs.n; b++) {
        if (is_inout(k, b) && !written[b]) {
            return false;
        }
    }
    return true;
}

/* Is something called so that is no tile: a variable, or a tensor in memory? */
static bool is_taken(const Kernel *p, Sym name)
{
    bool taken = false;
    for (uint32_t i = 0; i < p->bufs.n; i++) {
        const Buffer *b = &p->bufs.at[i];
        taken |= b->name == name && b->space != SPACE_TILE && b->space != SPACE_ACC;
    }
    for (uint32_t i = 0; i < p->vars.n; i++) {
        taken |= p->vars.at[i].name == name;
    }
    return taken;
}

/* Tiles are numbered in each part from the start, in the order in which they begin. */
static void number_tiles(Arena *arena, SymTable *syms, Kernel *p)
{
    Map last; /* number by name without one */
    StmtWalk w;
    map_init(&last, arena);
    for (const Stmt *s = stmt_first(&w, p->body, p->n_body); s != NULL; s = stmt_next(&w)) {
        Space space = s->kind == STMT_ALLOC ? p->bufs.at[s->buf].space : SPACE_ARGUMENT;
        if (space != SPACE_TILE && space != SPACE_ACC) {
            continue;
        }
        const char *old = p->bufs.at[s->buf].name->text;
        size_t n = strlen(old);
        while (n > 1 && old[n - 1] >= '0' && old[n - 1] <= '9') {
            n--;
        }
        uint64_t key = hash_bytes(1, old, n);
        uint32_t number = 0;
        Sym name = NULL;
        (void)map_get(&last, key, &number);
        do {
            number++;
            name =
                sym_cstr(syms, number == 1 ? str_format(arena, "%.*s", (int)n, old)
                                           : str_format(arena, "%.*s%u", (int)n, old, number));
        } while (is_taken(p, name));
        map_put(&last, key, number);
        p->bufs.at[s->buf].name = name;
    }
}

void nki_part(Arena *arena, SymTable *syms, const Kernel *k, uint32_t number, NkiPart *out)
{
    const Stmt *block = part_block(k, number);
    Kernel *p = kernel_like(arena, k);
    *out = (NkiPart){.kernel = p, .number = number + 1, .of = nki_parts(k)};
    p->name = sym_cstr(syms, str_format(arena, "%s_part%u", k->name->text, number + 1));
    p->bufs.at = arena_copy(arena, k->bufs.at, k->bufs.n * sizeof *k->bufs.at);
    p->args.at = NULL;
    p->args.n = p->args.cap = 0;
    p->body = block->body;
    p->n_body = block->n_body;
    p->n_work = 0;
    Reach r;
    CHECK(walk_reach(k, block, &r));
    BufRef *same = ARENA_ARRAY(arena, k->bufs.n, BufRef);
    bool *own = ARENA_ARRAY(arena, k->bufs.n, bool);
    for (uint32_t b = 0; b < k->bufs.n; b++) {
        same[b] = b;
        own[b] = k->bufs.at[b].space != SPACE_ARGUMENT;
        p->bufs.at[b].param = -1;
    }
    BufRef temporary = 0;
    for (uint32_t i = 0; nki_temporary(k, i, &temporary); i++) {
        own[temporary] = false;
    }
    VarRef *var = ARENA_ARRAY(arena, k->vars.n, VarRef);
    for (uint32_t v = 0; v < k->vars.n; v++) {
        var[v] = v;
    }
    struct StmtShift *shift = ARENA_ARRAY(arena, k->bufs.n, struct StmtShift);
    for (int side = 0; side < 2; side++) {
        for (uint32_t i = 0; side == 1 && i < out->operands.n; i++) {
            PartOperand result = out->operands.at[i];
            if (result.inout && !result.output) { /* it is given back as well */
                result.output = true;
                vec_push(arena, &out->operands, result);
            }
        }
        for (uint32_t b = 0; b < k->bufs.n; b++) {
            bool output = !own[b] && r.written[b].hi >= 0;
            bool input = !own[b] && !output && r.read[b].hi >= 0;
            bool inout = output && is_inout(k, b);
            if (side == 0 ? input || inout : output && !inout) {
                ArgRole role = inout ? ARG_INOUT : side == 0 ? ARG_IN : ARG_RESULT;
                add_operand(out, k, b, role, &r.written[b], &shift[b]);
            }
        }
    }
    StmtCopy copy = {.arena = arena, .from = k, .buf = same, .var = var, .shift = shift};
    p->body = stmts_copy(&copy, block->body, block->n_body);
    number_tiles(arena, syms, p);
}

NkiCost nki_most_descriptors(const Kernel *k, const NkiChip *chip)
{
    NkiCost most = {0}, cost;
    uint32_t parts = nki_parts(k);
    for (uint32_t i = 0; i < parts; i++) {
        Kernel part = *k;
        if (parts > 1) {
            part.body = part_block(k, i)->body;
            part.n_body = part_block(k, i)->n_body;
        }
        if (nki_cost(&part, chip, &cost) && cost.descriptors > most.descriptors) {
            most = cost;
        }
    }
    return most;
}

double nki_programs_us(Ctx *ctx, Arena *a, const Kernel *k, const NkiChip *chip)
{
    NkiCost cost;
    double us = 0;
    if (nki_parts(k) < 2) {
        return nki_measure(k, chip, &cost) ? cost.predicted_us : 0;
    }
    for (uint32_t i = 0; i < nki_parts(k); i++) {
        NkiPart part;
        nki_part(a, &ctx->syms, k, i, &part);
        us += nki_measure(part.kernel, chip, &cost) ? cost.predicted_us : 0;
        us += i > 0 ? chip->launch_us : 0;
    }
    return us;
}
