/* SPDX-License-Identifier: Apache-2.0 */
/* A static count over a LEGAL kernel: instructions, cycles of each engine, DMA bytes and
 * descriptors, peaks of SBUF and PSUM. The numbers are the vendor's published averages, and what
 * kernels timed on a trn1 show beside (chip.c); a descriptor below 512 bytes is charged as 512. */
#include "backend/nki/price.h"
#include "loop/walk.h"

const char *const nki_engine_names[NKI_ENGINES] = {"tensor", "vector", "scalar", "gpsimd",
                                                   "dma"};

const char *nki_dtype(DType t)
{
    return dtype_info(t)->nki;
}

static int64_t at_least(int64_t n)
{
    return n < NKI_LEAST_CYCLES ? NKI_LEAST_CYCLES : n;
}

static DType dtype_of(const Kernel *k, const Operand *o)
{
    return k->bufs.at[o->buf].dtype;
}

static bool in_psum(const Kernel *k, const Operand *o)
{
    return k->bufs.at[o->buf].space == SPACE_ACC;
}

static int64_t tensor_cycles(const Kernel *k, const Instr *i)
{
    int64_t n = i->dst.nf;
    bool fast = i->op == OP_ADD || i->op == OP_SUB || i->op == OP_MUL;
    bool plain = dtype_of(k, &i->a) == DTYPE_BF16 && dtype_of(k, &i->b) == DTYPE_BF16 &&
                 dtype_of(k, &i->dst) == DTYPE_BF16 && !in_psum(k, &i->dst) &&
                 operand_has_runs(&i->a) && operand_has_runs(&i->b) &&
                 operand_has_runs(&i->dst);
    return at_least(in_psum(k, &i->a) || in_psum(k, &i->b) || (fast && plain) ? n : 2 * n);
}

#define POSITION_CYCLES 150 /* before the first position */

/* May either engine run it, so that the one with less to do does? A copy, plain or times a factor, a square, and a sum of rows, which
 * the Scalar engine makes beside a copy of these onto themselves. */
static bool may_choose(const Kernel *k, const Instr *i)
{
    bool sum = i->kind == INSTR_REDUCE && i->op == OP_SUM && !in_psum(k, &i->a) &&
               dtype_of(k, &i->a) == DTYPE_F32 && dtype_of(k, &i->dst) == DTYPE_F32 &&
               i->dst.nf == 1 && i->a.nf > NKI_LEAST_CYCLES;
    bool scaled = i->kind == INSTR_SCALAR && i->s0.op == OP_MUL && !i->s1.given &&
                  dtype_of(k, &i->a) == DTYPE_F32 && i->dst.nf > NKI_LEAST_CYCLES;
    bool square =
        instr_squares(i) && dtype_of(k, &i->dst) == DTYPE_F32 && i->dst.nf > NKI_LEAST_CYCLES;
    return i->kind == INSTR_COPY || sum || scaled || square;
}

/* Two i32, with which no other engine is exact. */
static bool of_words(const Kernel *k, const Instr *i)
{
    return dtype_of(k, &i->a) == DTYPE_I32 && dtype_of(k, &i->b) == DTYPE_I32;
}

/* Which engine, and its cycles for the elements. */
static int element_cycles(const Kernel *k, const NkiChip *chip, const Instr *i, bool scalar,
                          int64_t *cycles)
{
    int64_t n = i->dst.nf;
    bool power = (i->kind == INSTR_SCALAR &&
                  (i->s0.op == OP_POW || (i->s1.given && i->s1.op == OP_POW))) ||
                 (i->kind == INSTR_TENSOR && (i->op == OP_POW || of_words(k, i)));
    switch (i->kind) {
    case INSTR_MATMUL:
        *cycles = (int64_t)price_array(chip, dtype_of(k, &i->b), (double)i->b.nf, false);
        return NKI_TENSOR;
    case INSTR_TRANSPOSE:
        *cycles = (int64_t)price_array(chip, dtype_of(k, &i->a), (double)i->a.np, true);
        return NKI_TENSOR;
    case INSTR_ACTIVATION:
        if (nki_vector_reciprocal(i)) {
            *cycles = at_least((int64_t)(chip->reciprocal * (double)n));
            return NKI_VECTOR;
        }
        *cycles = at_least(n) + (i->sums ? NKI_LEAST_CYCLES : 0);
        return NKI_SCALAR;
    case INSTR_COPY:
        *cycles = at_least(n);
        return scalar ? NKI_SCALAR : NKI_VECTOR;
    case INSTR_MEMSET: {
        DType t = dtype_of(k, &i->dst);
        bool half = !(i->value < 0) && !(i->value > 0) && (t == DTYPE_BF16 || t == DTYPE_F16);
        *cycles = at_least(half ? n / 2 : n);
        return NKI_VECTOR;
    }
    case INSTR_SCALAR:
        *cycles = at_least(n);
        return scalar ? NKI_SCALAR : power ? NKI_GPSIMD : NKI_VECTOR;
    case INSTR_TENSOR:
        *cycles = scalar ? at_least(n) : tensor_cycles(k, i);
        return scalar ? NKI_SCALAR : power ? NKI_GPSIMD : NKI_VECTOR;
    case INSTR_BOTH:
    case INSTR_SCAN:
        *cycles = at_least(2 * n);
        return NKI_VECTOR;
    case INSTR_IOTA:
    case INSTR_AFFINE:
        *cycles = POSITION_CYCLES + n;
        return NKI_GPSIMD;
    case INSTR_PREDICATED:
        *cycles = at_least(in_psum(k, &i->a) != in_psum(k, &i->b) ? n : 2 * n);
        return NKI_VECTOR;
    case INSTR_REDUCE: {
        if (scalar) {
            *cycles = at_least(i->a.nf) + NKI_LEAST_CYCLES;
            return NKI_SCALAR;
        }
        bool half = dtype_of(k, &i->a) == DTYPE_BF16 && i->op != OP_PROD && i->op != OP_RMIN;
        *cycles = at_least(half ? i->a.nf / 2 : i->a.nf);
        return NKI_VECTOR;
    }
    case INSTR_DMA:
    case INSTR_ALLOC:
        break;
    }
    *cycles = 0;
    return -1;
}

int nki_instr_cycles(const Kernel *k, const NkiChip *chip, const Instr *i, bool scalar,
                     int64_t *cycles)
{
    int engine = element_cycles(k, chip, i, scalar, cycles);
    bool position = i->kind == INSTR_IOTA || i->kind == INSTR_AFFINE;
    bool row = engine >= 0 && engine != NKI_TENSOR && !position;
    *cycles += row ? NKI_START_CYCLES : 0;
    return engine;
}

double nki_table_us(int *table, const Instr *i)
{
    int function = i->recip ? -1 : (int)i->op + 1;
    if (i->kind != INSTR_ACTIVATION || nki_vector_reciprocal(i) || function == *table ||
        (!i->recip && (i->op == OP_COPY || i->op == OP_MUL || i->op == OP_RELU))) {
        return 0.0;
    }
    *table = function;
    return NKI_TABLE_US;
}

#define LOOP_PLACES                                                                            \
    40 /* statements of a loop in which engines have more than one thing to do */

static uint32_t count_places(const Stmt *loop)
{
    StmtWalk w;
    uint32_t n = 0;
    for (const Stmt *s = tile_first(&w, loop->body, loop->n_body); s != NULL;
         s = tile_next(&w)) {
        n++;
    }
    return n;
}

/* How often each statement of the text runs, and in which loop that is in no other. */
static void count_trips(NkiBalance *b, Stmt *const *body, uint32_t n, int64_t times,
                        uint32_t *place, uint32_t loop, uint32_t *loops)
{
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *s = body[i];
        if (s->kind == STMT_TILE) {
            b->loop[*place] = loop;
            b->trips[(*place)++] = times;
        } else if (stmt_has_body(s)) {
            bool is_loop = s->kind == STMT_FOR && !s->parallel;
            int64_t inside = is_loop ? s->range.limit.n - s->range.start.base : 1;
            bool outer = is_loop && loop == 0 && count_places(s) >= LOOP_PLACES;
            uint32_t own = outer ? ++*loops : loop;
            count_trips(b, s->body, s->n_body, sat_mul(times, inside), place, own, loops);
        }
    }
}

typedef struct Fixed {
    const Kernel *k;
    const NkiChip *chip;
    NkiBalance *b;
} Fixed;

/* What has its engine. */
static bool count_fixed(void *user, const Instr *i)
{
    Fixed *f = user;
    if (i->kind == INSTR_DMA || i->kind == INSTR_ALLOC || may_choose(f->k, i) ||
        f->b->loop[i->place] == 0) {
        return true;
    }
    int64_t cycles = 0;
    int engine = nki_instr_cycles(f->k, f->chip, i, false, &cycles);
    int64_t *vector = &f->b->of_loop[f->b->loop[i->place]].vector,
            *scalar = &f->b->of_loop[f->b->loop[i->place]].scalar;
    *vector = engine == NKI_VECTOR ? sat_add(*vector, sat_mul(i->times, cycles)) : *vector;
    *scalar = engine == NKI_SCALAR ? sat_add(*scalar, sat_mul(i->times, cycles)) : *scalar;
    return true;
}

NkiBalance nki_balance(const Kernel *k, const NkiChip *chip)
{
    uint32_t n = instr_places(k), place = 0, loops = 0;
    NkiBalance b = {.chosen = ARENA_ARRAY(k->arena, n + 1, uint8_t),
                    .trips = ARENA_ARRAY(k->arena, n + 1, int64_t),
                    .loop = ARENA_ARRAY(k->arena, n + 1, uint32_t)};
    count_trips(&b, k->body, k->n_body, 1, &place, 0, &loops);
    b.of_loop = arena_array(k->arena, loops + 1, sizeof *b.of_loop);
    Fixed fixed = {k, chip, &b};
    const Stmt *bad = NULL;
    const char *why = NULL;
    if (loops > 0) {
        (void)instr_walk_brief(k, count_fixed, &fixed, &bad, &why);
    }
    return b;
}

bool nki_on_scalar(NkiBalance *b, const Kernel *k, const NkiChip *chip, const Instr *i)
{
    uint8_t *chosen = &b->chosen[i->place];
    uint32_t loop = b->loop[i->place];
    if (*chosen != 0) {
        return *chosen == 2;
    }
    int64_t cycles = 0, moved = 0, trips = b->trips[i->place];
    int engine = nki_instr_cycles(k, chip, i, false, &cycles);
    bool may = may_choose(k, i);
    cycles = sat_mul(cycles, trips);
    if (may) {
        (void)nki_instr_cycles(k, chip, i, true, &moved);
        moved = sat_mul(moved, trips);
    }
    int64_t *vector = loop > 0 ? &b->of_loop[loop].vector : &b->vector,
            *scalar = loop > 0 ? &b->of_loop[loop].scalar : &b->scalar;
    *chosen = may && (double)(*scalar + moved) / chip->scalar_ghz <
                          (double)(*vector + cycles) / chip->vector_ghz
                  ? 2
                  : 1;
    if (may || loop == 0) {
        *vector += *chosen == 1 && engine == NKI_VECTOR ? cycles : 0;
        *scalar += *chosen == 2 ? moved : !may && engine == NKI_SCALAR ? cycles : 0;
    }
    return *chosen == 2;
}

/* ---- copies ---- */

/* Elements that follow each other in memory at the end of an operand's row-major order. */
static int64_t run_of(const Kernel *k, const Operand *o)
{
    if (o->on_chip) {
        const FreeDim *last = o->n_free > 0 ? &o->free[o->n_free - 1] : NULL;
        return last == NULL || last->step != 1 ? 1 : last->n;
    }
    const Buffer *b = &k->bufs.at[o->buf];
    int64_t run = 1, flat = 1;
    if (o->pattern) {
        for (uint32_t i = o->n; i-- > 0;) {
            if (o->count[i] != 1 && o->stride[i] != run) {
                break;
            }
            run *= o->count[i];
        }
        return run;
    }
    for (uint32_t d = o->n; d-- > 0;) {
        if (o->count[d] > 1) {
            if (o->stride[d] * flat != run) {
                break;
            }
            run *= o->count[d];
        }
        flat *= b->extent[d].n;
    }
    return run;
}

double nki_dma_charge(const Kernel *k, const Instr *i, int64_t *bytes, int64_t *descriptors)
{
    const Operand *chip = i->dst.on_chip ? &i->dst : &i->a;
    int64_t count = chip->np * chip->nf;
    int64_t size = dtype_bytes(dtype_of(k, &i->dst));
    int64_t a = run_of(k, &i->dst), b = run_of(k, &i->a);
    int64_t run = a < b ? a : b;
    const Buffer *memory = &k->bufs.at[i->dst.on_chip ? i->a.buf : i->dst.buf];
    *bytes = count * dtype_bytes(buffer_stored(memory));
    *descriptors = (count + run - 1) / run;
    int64_t each = run * size < NKI_SHORT_RUN ? NKI_SHORT_RUN : run * size;
    return (double)*descriptors * (double)each;
}

/* ---- the count ---- */

typedef struct Life {
    BufRef buf;
    int64_t born, died; /* by instruction, 1-based; 0: unused */
} Life;

typedef struct Count {
    const Kernel *k;
    const NkiChip *chip;
    NkiCost *out;
    NkiBalance *balance;
    Life *life;            /* [bufs][banks]: the tile each is now; SBUF tiles are in bank 0 */
    VEC(Life) ended;       /* the tiles they were */
    double loaded, stored; /* bytes that DMAs charge */
    double tables_us;
    int table;
    int64_t now; /* instructions that were walked */
} Count;

int64_t nki_bank(const Kernel *k, BufRef buf)
{
    const Buffer *b = &k->bufs.at[buf];
    bool list = b->space == SPACE_ACC && b->rank == 2 &&
                sat_mul(b->extent[1].n, dtype_bytes(b->dtype)) > NKI_PSUM_BANK;
    return list ? NKI_PSUM_BANK / dtype_bytes(b->dtype) : 0;
}

/* The tile that a buffer was is no longer; a new one begins. */
static void end_life(Count *c, BufRef buf)
{
    for (uint32_t bank = 0; bank < NKI_PSUM_BANKS; bank++) {
        Life *life = &c->life[buf * NKI_PSUM_BANKS + bank];
        if (life->born != 0) {
            life->buf = buf;
            vec_push(c->k->arena, &c->ended, *life);
            *life = (Life){0};
        }
    }
}

static void touch(Count *c, const Operand *o)
{
    if (o->on_chip) {
        int64_t bank = nki_bank(c->k, o->buf) > 0 ? o->f / nki_bank(c->k, o->buf) : 0;
        bank = bank >= 0 && bank < NKI_PSUM_BANKS ? bank : 0;
        Life *life = &c->life[o->buf * NKI_PSUM_BANKS + (uint32_t)bank];
        life->born = life->born == 0 ? c->now : life->born;
        life->died = c->now;
    }
}

static bool count_instr(void *user, const Instr *i)
{
    Count *c = user;
    NkiCost *o = c->out;
    if (i->kind == INSTR_ALLOC) {
        end_life(c, i->dst.buf);
        return true;
    }
    o->instructions += i->times;
    c->now++;
    touch(c, &i->dst);
    if (instr_reads(i)) {
        touch(c, &i->a);
    }
    if (instr_reads_two(i)) {
        touch(c, &i->b);
    }
    if (i->s0.given && i->s0.is_tile) {
        touch(c, &i->s0.tile);
    }
    if (i->s1.given && i->s1.is_tile) {
        touch(c, &i->s1.tile);
    }
    if (i->sums) {
        touch(c, &i->sum);
    }
    if (i->kind == INSTR_DMA) {
        int64_t bytes = 0, descriptors = 0;
        double charged = (double)i->times * nki_dma_charge(c->k, i, &bytes, &descriptors);
        *(i->dst.on_chip ? &c->loaded : &c->stored) += charged;
        o->transfers += i->times;
        o->descriptors += i->times * descriptors;
        o->read_bytes += i->a.on_chip ? 0 : i->times * bytes;
        o->written_bytes += i->dst.on_chip ? 0 : i->times * bytes;
        return true;
    }
    bool scalar = nki_on_scalar(c->balance, c->k, c->chip, i);
    int64_t cycles = 0;
    int engine = nki_instr_cycles(c->k, c->chip, i, scalar, &cycles);
    o->cycles[engine] += i->times * cycles;
    c->tables_us += (double)i->times * nki_table_us(&c->table, i);
    if (i->kind == INSTR_MATMUL) {
        o->matmul_macs += i->times * i->a.np * i->a.nf * i->b.nf;
    }
    return true;
}

/* Peak of what lives at once: each tile from its first to its last instruction. */
static void peaks(Count *c)
{
    int64_t n = c->now + 2;
    for (uint32_t space = 0; space < 2; space++) {
        int64_t *change = ARENA_ARRAY(c->k->arena, (size_t)n + 1, int64_t);
        for (uint32_t b = 0; b < c->ended.n; b++) {
            const Life *life = &c->ended.at[b];
            const Buffer *buf = &c->k->bufs.at[life->buf];
            if ((buf->space == SPACE_ACC) != (space == 1)) {
                continue;
            }
            int64_t bank = nki_bank(c->k, life->buf);
            int64_t bytes = (bank > 0 ? bank : buf->extent[1].n) * dtype_bytes(buf->dtype);
            int64_t size =
                space == 1 ? (bytes + NKI_PSUM_BANK - 1) / NKI_PSUM_BANK : (bytes + 3) / 4 * 4;
            change[life->born] += size;
            change[life->died + 1] -= size;
        }
        int64_t live = 0, peak = 0;
        for (int64_t i = 0; i <= n; i++) {
            live += change[i];
            peak = live > peak ? live : peak;
        }
        if (space == 1) {
            c->out->psum_peak = peak;
        } else {
            c->out->sbuf_peak = peak;
        }
    }
}

bool nki_count(const Kernel *k, const NkiChip *chip, NkiBalance *balance, NkiCost *out)
{
    *out = (NkiCost){0};
    Count c = {.k = k, .chip = chip, .out = out, .balance = balance};
    c.life = ARENA_ARRAY(k->arena, (size_t)(k->bufs.n + 1) * NKI_PSUM_BANKS, Life);
    const Stmt *bad = NULL;
    const char *why = NULL;
    if (!instr_walk_brief(k, count_instr, &c, &bad, &why)) {
        return false;
    }
    for (uint32_t b = 0; b < k->bufs.n; b++) {
        end_life(&c, b);
    }
    peaks(&c);
    for (uint32_t i = 0; i < k->args.n; i++) {
        const Buffer *b = &k->bufs.at[k->args.at[i].buf];
        int64_t bytes = dtype_bytes(b->dtype);
        for (uint32_t d = 0; d < b->rank; d++) {
            bytes = sat_mul(bytes, b->extent[d].n);
        }
        bool copied = nki_copied(k, k->args.at[i].buf, NULL);
        out->compulsory_bytes += bytes * (copied ? 2 : 1);
        if (copied) { /* the printed kernel begins with a copy, one run of HBM to another */
            out->instructions++;
            out->transfers++;
            out->descriptors++;
            out->read_bytes += bytes;
            out->written_bytes += bytes;
            c.stored += (double)(bytes < NKI_SHORT_RUN ? NKI_SHORT_RUN : bytes);
        }
    }
    out->charged_bytes = (int64_t)(c.loaded + c.stored);
    const double ghz[4] = {chip->tensor_ghz, chip->vector_ghz, chip->scalar_ghz,
                           chip->gpsimd_ghz};
    for (int e = 0; e < 4; e++) {
        out->busy_us[e] = (double)out->cycles[e] / (ghz[e] * 1000);
    }
    out->busy_us[NKI_SCALAR] += c.tables_us;
    double hbm = (double)(out->read_bytes + out->written_bytes) / (chip->hbm_gbps * 1000);
    double one = (c.loaded > c.stored ? c.loaded : c.stored) / (chip->dma_gbps * 1000);
    double both = (c.loaded + c.stored) / (chip->dma_both_gbps * 1000);
    double dma = one > both ? one : both;
    out->busy_us[NKI_DMA] = hbm > dma ? hbm : dma;
    for (int e = 1; e < 5; e++) {
        out->bound_by = out->busy_us[e] > out->busy_us[out->bound_by] ? e : out->bound_by;
    }
    return true;
}

bool nki_cost(const Kernel *k, const NkiChip *chip, NkiCost *out)
{
    ArenaMark before = arena_mark(k->arena);
    NkiBalance balance = nki_balance(k, chip);
    bool ok = nki_count(k, chip, &balance, out);
    arena_reset(k->arena, before);
    return ok;
}
