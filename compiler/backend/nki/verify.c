/* SPDX-License-Identifier: Apache-2.0 */
/* The device's rules on a LEGAL kernel, before anything is printed: every statement is an
 * instruction; partitions, start partitions, tile limits, spaces and types of each;
 * accumulation groups that begin with an overwrite and end before they are read; capacity of
 * SBUF and PSUM with live ranges; the numbers of instructions and of DMA descriptors. */
#include "backend/nki/cores.h"
#include "backend/nki/part.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { GROUP_ADDING, GROUP_READ };

/* An accumulation group: a region of a PSUM tile, several of which may lie side by side. */
typedef struct PsumGroup {
    uint8_t state;
    bool closed; /* another group of its bank has been added to since */
    Operand at;  /* where its tile is, and how matmuls walk it */
} PsumGroup;

#define NO_GROUP    0
#define OTHER_WRITE (-1) /* set by something else than a matmul */

typedef struct Verifier {
    Ctx *ctx;
    const Kernel *k;
    const NkiChip *chip;
    int32_t **owner; /* [bufs][elements]: NO_GROUP, OTHER_WRITE or number + 1 of a group */
    int32_t *last;   /* [bufs][banks]: number + 1 of the group that was added to last */
    VEC(PsumGroup) groups;
} Verifier;

static bool refuse(Ctx *ctx, const Kernel *k, const char *rule, const char *what, int64_t have,
                   int64_t most)
{
    diag_unsupported(&ctx->diags, E_TARGET, k->span,
                     "rule %s of target '%s' is broken in '%s': %s: %lld, at most %lld", rule,
                     k->target, k->name->text, what, (long long)have, (long long)most);
    return false;
}

static bool broken(Verifier *v, const Instr *i, const char *rule, const char *what)
{
    diag_unsupported(&v->ctx->diags, E_TARGET, i->stmt->span,
                     "rule %s of target '%s' is broken in '%s': %s ('@%s')", rule, v->k->target,
                     v->k->name->text, what, v->k->bufs.at[i->dst.buf].name->text);
    return false;
}

static Space space_of(const Verifier *v, const Operand *o)
{
    return v->k->bufs.at[o->buf].space;
}

static DType dtype_of(const Verifier *v, const Operand *o)
{
    return v->k->bufs.at[o->buf].dtype;
}

/* Dimensions of the free axis that the engine walks. */
static uint32_t most_dims(const Instr *i, const Operand *o)
{
    bool four = (i->kind == INSTR_REDUCE && o == &i->a) || i->kind == INSTR_IOTA ||
                i->kind == INSTR_AFFINE;
    return four ? 4 : 3;
}

static bool check_operand(Verifier *v, const Instr *i, const Operand *o, bool dma)
{
    const Buffer *b = &v->k->bufs.at[o->buf];
    if (!o->on_chip) {
        return dma || broken(v, i, "A4", "an engine does not reach HBM");
    }
    if (o->np < 1 || o->np > NKI_PARTITIONS || b->extent[0].n > NKI_PARTITIONS) {
        return broken(v, i, "G1", "1 to 128 partitions");
    }
    if (b->space == SPACE_ACC && b->extent[1].n > NKI_PSUM_BANKS * NKI_PSUM_BANK / 2) {
        return broken(v, i, "G4", "a tile of more than all of PSUM");
    }
    if (o->p < 0 || o->p + o->np > b->extent[0].n || o->f < 0 ||
        o->f + operand_reach(o) >= b->extent[1].n) {
        return broken(v, i, "G11", "a slice leaves its tile");
    }
    if (dma) {
        return b->space == SPACE_TILE || broken(v, i, "D1", "a copy from or to PSUM");
    }
    int64_t bank = nki_bank(v->k, o->buf);
    if (bank > 0 && (o->p != 0 || o->f % bank != 0 || o->nf > bank || !operand_is_run(o) ||
                     b->extent[1].n % bank != 0 || b->extent[1].n > NKI_PSUM_BANKS * bank)) {
        return broken(v, i, "G4",
                      "of several PSUM banks, an instruction uses one, from where it begins");
    }
    int64_t unit = o->np > 64 ? NKI_PARTITIONS : o->np > 32 ? 64 : 32;
    if (o->p % unit != 0) {
        return broken(v, i, "G5", "partitions start where no engine can");
    }
    if (o->nf > (b->space == SPACE_ACC ? 4096 : 65536)) {
        return broken(v, i, "G8", "more elements of a partition than an instruction sees");
    }
    bool fits = o->n_free <= most_dims(i, o);
    for (uint32_t d = 0; d < o->n_free; d++) {
        fits &= o->free[d].n <= 65535 && o->free[d].step <= 32767;
    }
    return fits || broken(v, i, "G9", "size, stride or number of free dimensions");
}

/* The group of each element of a tile. */
static int32_t *owners(Verifier *v, BufRef buf)
{
    if (v->owner[buf] == NULL) {
        v->owner[buf] =
            ARENA_ARRAY(v->k->arena, (size_t)v->k->bufs.at[buf].extent[1].n, int32_t);
    }
    return v->owner[buf];
}

/* Groups of sums lie side by side in a bank, but one at a time is added to. */
static bool alone_in_bank(Verifier *v, const Instr *i, int32_t owner)
{
    uint32_t bank = (uint32_t)(i->dst.f * 4 / NKI_PSUM_BANK);
    int32_t *last = &v->last[i->dst.buf * NKI_PSUM_BANKS + bank];
    if (*last > 0 && *last != owner) {
        v->groups.at[*last - 1].closed = true;
    }
    *last = owner;
    return !v->groups.at[owner - 1].closed ||
           broken(v, i, "M8", "two accumulation groups are open in one PSUM bank");
}

/* A matmul that begins opens a group; its elements must be new. */
static bool open_group(Verifier *v, const Instr *i)
{
    const Operand *o = &i->dst;
    int32_t *owner = owners(v, o->buf);
    PsumGroup g = {GROUP_ADDING, false, *o};
    vec_push(v->k->arena, &v->groups, g);
    for (int64_t n = 0; n < o->nf; n++) {
        int32_t *of = &owner[o->f + operand_element(o, n)];
        if (*of != NO_GROUP) {
            return broken(v, i, "M9", "each accumulation group has PSUM elements of its own");
        }
        *of = (int32_t)v->groups.n;
    }
    return true;
}

static bool check_matmul(Verifier *v, const Instr *i)
{
    if (space_of(v, &i->dst) != SPACE_ACC || space_of(v, &i->a) != SPACE_TILE ||
        space_of(v, &i->b) != SPACE_TILE) {
        return broken(v, i, "M1", "a matmul reads SBUF and writes PSUM");
    }
    if (i->a.nf > NKI_STATIONARY || i->b.nf > NKI_PSUM_BANK / 4) {
        return broken(v, i, "M2", "at most 128 stationary and 512 moving columns");
    }
    if (i->a.np != i->b.np || i->a.p != i->b.p || i->dst.np != i->a.nf ||
        i->dst.nf != i->b.nf) {
        return broken(v, i, "M2", "shapes of a matmul");
    }
    DType a = dtype_of(v, &i->a), b = dtype_of(v, &i->b);
    if (dtype_of(v, &i->dst) != DTYPE_F32 || a == DTYPE_BOOL || b == DTYPE_BOOL ||
        (a == DTYPE_F32) != (b == DTYPE_F32)) {
        return broken(v, i, "M4", "types of a matmul");
    }
    int64_t last = i->dst.f + operand_reach(&i->dst);
    if (i->dst.f * 4 / NKI_PSUM_BANK != last * 4 / NKI_PSUM_BANK) {
        return broken(v, i, "G4", "a result crosses a PSUM bank");
    }
    if (i->begins && !open_group(v, i)) {
        return false;
    }
    int32_t owner = owners(v, i->dst.buf)[i->dst.f];
    const PsumGroup *g = owner > 0 ? &v->groups.at[owner - 1] : NULL;
    if (g == NULL || g->state != GROUP_ADDING) {
        return broken(v, i, "M9", "each accumulation group has a PSUM tile of its own");
    }
    if (g->at.p != i->dst.p || g->at.f != i->dst.f || !operand_walks_alike(&g->at, &i->dst)) {
        return broken(v, i, "M8", "all of a group is added to one region");
    }
    return alone_in_bank(v, i, owner);
}

static bool check_transpose(Verifier *v, const Instr *i)
{
    if (space_of(v, &i->a) != SPACE_TILE || space_of(v, &i->dst) != SPACE_ACC ||
        i->a.np > 128 || i->a.nf > 128 || dtype_of(v, &i->a) != dtype_of(v, &i->dst) ||
        i->dst.np != i->a.nf || i->dst.nf != i->a.np) {
        return broken(v, i, "M10",
                      "a transpose of more than 128 x 128, or between wrong spaces");
    }
    return dtype_of(v, &i->dst) == DTYPE_F32 || i->dst.f % 2 == 0 ||
           broken(v, i, "G14", "a 2-byte PSUM tile starts within a word");
}

/* All inputs of an instruction: same partitions and elements, not both in PSUM. */
static bool check_same(Verifier *v, const Instr *i, const Operand *o)
{
    return (o->np == i->dst.np && o->nf == i->dst.nf && o->p == i->a.p) ||
           broken(v, i, "E1", "operands of one instruction differ in shape or start partition");
}

static bool check_column(Verifier *v, const Instr *i, const ScalarOperand *s)
{
    if (!s->given || !s->is_tile) {
        return true;
    }
    return check_operand(v, i, &s->tile, false) &&
           ((s->tile.np == i->dst.np && s->tile.nf == 1 && s->tile.p == i->a.p &&
             dtype_of(v, &s->tile) == DTYPE_F32) ||
            broken(v, i, "E2", "a column of another height, start or type than float32"));
}

/* A read closes the group; what nothing was written to has no value. */
static bool note_read(Verifier *v, const Instr *i, const Operand *o)
{
    if (!o->on_chip || space_of(v, o) != SPACE_ACC) {
        return true;
    }
    const int32_t *owner = owners(v, o->buf);
    for (int64_t n = 0; n < o->nf; n++) {
        int32_t number = owner[o->f + operand_element(o, n)];
        if (number == NO_GROUP) {
            return broken(v, i, "M9", "a part of PSUM is read that nothing was written to");
        }
        if (number > 0) {
            v->groups.at[number - 1].state = GROUP_READ;
        }
    }
    return true;
}

static bool check_elementwise(Verifier *v, const Instr *i)
{
    bool two = i->kind == INSTR_TENSOR || i->kind == INSTR_BOTH ||
               i->kind == INSTR_PREDICATED || i->kind == INSTR_SCAN;
    if (!check_same(v, i, &i->a) || (two && !check_same(v, i, &i->b))) {
        return false;
    }
    if (two && space_of(v, &i->a) == SPACE_ACC && space_of(v, &i->b) == SPACE_ACC) {
        return broken(v, i, "E1", "both operands lie in PSUM");
    }
    if (i->kind == INSTR_ACTIVATION && v->chip->gen < 3 && i->s1.given &&
        (!i->s1.is_tile || i->recip)) {
        return broken(v, i, "E4", "this bias is not for generation 2");
    }
    if (i->sums && (!check_operand(v, i, &i->sum, false) || i->sum.np != i->dst.np ||
                    i->sum.nf != 1 || i->sum.p != i->dst.p)) {
        return broken(v, i, "E4", "row sums that are no column beside their rows");
    }
    return check_column(v, i, &i->s0) && check_column(v, i, &i->s1);
}

/* Positions: in SBUF, in f32, and exact there. */
static bool check_positions(Verifier *v, const Instr *i)
{
    bool select = i->kind == INSTR_AFFINE;
    if (space_of(v, &i->dst) != SPACE_TILE ||
        (select && (space_of(v, &i->a) != SPACE_TILE || !check_same(v, i, &i->a)))) {
        return broken(v, i, "E8", "positions are made in SBUF");
    }
    int64_t most = i->base < 0 ? -i->base : i->base;
    most = sat_add(most, sat_mul(i->down < 0 ? -i->down : i->down, i->dst.np));
    for (uint32_t d = 0; d < i->n_along; d++) {
        int64_t step = i->along[d].step;
        most = sat_add(most, sat_mul(step < 0 ? -step : step, i->along[d].n));
    }
    return most < INT32_MAX || broken(v, i, "E8", "a position that int32 does not hold");
}

/* Is it what fills a tile: a number of f32, or an infinity? */
static bool fills(double x)
{
    return fabs(x) <= FLT_MAX || isinf(x);
}

/* The text has words for numbers of f32, and infinities where they fill tiles; none for NaN. */
static bool check_numbers(Verifier *v, const Instr *i)
{
    bool fine = (i->kind != INSTR_MEMSET && i->kind != INSTR_AFFINE) || fills(i->value);
    const ScalarOperand *s[2] = {&i->s0, &i->s1};
    for (int k = 0; k < 2; k++) {
        fine &= !s[k]->given || s[k]->is_tile || fabs(s[k]->number) <= FLT_MAX;
    }
    return fine || broken(v, i, "P8", "a number that is not finite");
}

static bool verify_instr(void *user, const Instr *i)
{
    Verifier *v = user;
    bool dma = i->kind == INSTR_DMA;
    bool two = instr_reads_two(i);
    if (i->kind == INSTR_ALLOC) {
        memset(v->last + (size_t)i->dst.buf * NKI_PSUM_BANKS, 0,
               NKI_PSUM_BANKS * sizeof(int32_t));
        if (v->owner[i->dst.buf] != NULL) { /* a new tile */
            size_t n = (size_t)v->k->bufs.at[i->dst.buf].extent[1].n;
            memset(v->owner[i->dst.buf], 0, n * sizeof(int32_t));
        }
        return true;
    }
    if (!check_numbers(v, i) || !check_operand(v, i, &i->dst, dma) ||
        (instr_reads(i) && !check_operand(v, i, &i->a, dma)) ||
        (two && !check_operand(v, i, &i->b, false))) {
        return false;
    }
    if (i->kind == INSTR_MATMUL) {
        return check_matmul(v, i);
    }
    if (i->dst.on_chip && space_of(v, &i->dst) == SPACE_ACC) {
        int32_t *owner = owners(v, i->dst.buf);
        for (int64_t n = 0; n < i->dst.nf; n++) {
            owner[i->dst.f + operand_element(&i->dst, n)] = OTHER_WRITE;
        }
    }
    if ((instr_reads(i) && !note_read(v, i, &i->a)) || (two && !note_read(v, i, &i->b))) {
        return false;
    }
    switch (i->kind) {
    case INSTR_TRANSPOSE:
        return check_transpose(v, i);
    case INSTR_REDUCE:
        return i->dst.np == i->a.np ||
               broken(v, i, "E5", "a reduction into a tile of another height");
    case INSTR_COPY:
    case INSTR_ACTIVATION:
    case INSTR_SCALAR:
    case INSTR_TENSOR:
    case INSTR_BOTH:
    case INSTR_SCAN:
    case INSTR_PREDICATED:
        return check_elementwise(v, i);
    case INSTR_IOTA:
    case INSTR_AFFINE:
        return check_positions(v, i);
    case INSTR_DMA:
    case INSTR_MEMSET:
    case INSTR_ALLOC:
    case INSTR_MATMUL:
        break;
    }
    return true;
}

static bool verify_instructions(Ctx *ctx, const Kernel *k, const NkiChip *chip)
{
    Verifier v = {.ctx = ctx, .k = k, .chip = chip};
    v.owner = ARENA_ARRAY(k->arena, k->bufs.n + 1, int32_t *);
    v.last = ARENA_ARRAY(k->arena, (size_t)(k->bufs.n + 1) * NKI_PSUM_BANKS, int32_t);
    const Stmt *bad = NULL;
    const char *why = NULL;
    if (!instr_walk_cores(k, verify_instr, &v, &bad, &why)) {
        if (bad != NULL) {
            bool tile = bad->kind == STMT_TILE;
            diag_unsupported(&ctx->diags, E_TARGET, bad->span, "target '%s': %s%s%s%s",
                             k->target, why, tile ? " ('@" : "",
                             tile ? k->bufs.at[bad->dst].name->text : "", tile ? "')" : "");
        }
        return false;
    }
    NkiCost cost;
    CHECK(nki_cost(k, chip, &cost));
    if (cost.instructions > NKI_INSTRUCTIONS) {
        return refuse(ctx, k, "2.6", "instructions", cost.instructions, NKI_INSTRUCTIONS);
    }
    if (cost.sbuf_peak > chip->sbuf_bytes) {
        return refuse(ctx, k, "G3", "bytes of a partition of SBUF live at once", cost.sbuf_peak,
                      chip->sbuf_bytes);
    }
    if (cost.descriptors > NKI_DESCRIPTORS) {
        return refuse(ctx, k, "D11", "DMA descriptors", cost.descriptors, NKI_DESCRIPTORS);
    }
    return cost.psum_peak <= NKI_PSUM_BANKS ||
           refuse(ctx, k, "G4", "PSUM banks live at once", cost.psum_peak, NKI_PSUM_BANKS);
}

/* The rules of one device program: of a kernel, or of a part of one. */
static bool verify_program(Ctx *ctx, const Kernel *k, const NkiChip *chip)
{
    ArenaMark before = arena_mark(k->arena);
    bool ok = verify_instructions(ctx, k, chip);
    arena_reset(k->arena, before);
    return ok;
}

bool nki_verify(const Target *target, Ctx *ctx, const Kernel *k)
{
    (void)target; /* the kernel names its chip */
    const NkiChip *chip = nki_chip(k->target);
    if (chip == NULL || k->dims.list.n > 0) {
        diag_unsupported(&ctx->diags, E_TARGET, k->span,
                         "'%s' is no legal kernel of this target", k->name->text);
        return false;
    }
    if (!nki_cores_sound(k) || (nki_lnc(k) > 1 && chip->gen < 3)) {
        diag_unsupported(
            &ctx->diags, E_TARGET, k->span,
            "rule H6 of target '%s' is broken in '%s': a loop over cores is all of "
            "a program, of generation 3 or later",
            k->target, k->name->text);
        return false;
    }
    if (nki_parts(k) < 2) {
        return verify_program(ctx, k, chip);
    }
    for (uint32_t i = 0; i < k->n_body; i++) {
        Kernel part = *k;
        part.body = k->body[i]->body;
        part.n_body = k->body[i]->n_body;
        if (k->body[i]->kind == STMT_BLOCK && !verify_program(ctx, &part, chip)) {
            return false;
        }
    }
    if (!nki_parts_sound(k)) {
        diag_unsupported(
            &ctx->diags, E_TARGET, k->span,
            "rule H3 of target '%s' is broken in '%s': a part reads of a tensor it "
            "writes what other parts write",
            k->target, k->name->text);
        return false;
    }
    return true;
}
