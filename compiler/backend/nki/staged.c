/* SPDX-License-Identifier: Apache-2.0 */
/* A contraction whose tiles would be stored in short rows, because the last dimension of the result is short and belongs to one operand, and
 * the dimension before it to the other. PSUM tiles are copied side by side into a stage: a block in SBUF with the layout of the result, which
 * is stored in long rows.
 *
 *     C[f, d, (c, a)] += A[a, g, f] * B[c, d, g]      a is short
 *
 *     for d, f by 128 { stage[f | c, a];  for a { bank[f | c] = A[a, :, f] B[:, d, :];  stage[f | :, a] = bank };  C[f, d, :] = stage }
 *
 * Where f is short as well, a piece of another label of its operand shares the partitions.
 */
#include "backend/nki/make.h"
#include "backend/nki/roles.h"
#include "backend/nki/view.h"

#define STAGE_MOST 65536 /* bytes of a partition */
#define LONG_ROW   512   /* bytes: longer ones are no quicker */
#define ROWS_LEAST 16    /* partitions */

typedef struct Stage {
    Lower *l;
    const Stmt *s;
    uint32_t row; /* the label on partitions */
    uint32_t
        with; /* another one there, of the same operand, where that one is short; or LABELS */
    int64_t piece; /* positions of it at a time */
    Labels beside; /* of the stage's free axis, as the result has them */
    Labels outer;  /* labels of the loops around it */
    int64_t run;   /* elements that are stored together */
} Stage;

static bool only_one_has(const Contraction *c, uint32_t label)
{
    return place_has(&c->stationary, label) != place_has(&c->moving, label);
}

static bool is_plain(const Contraction *c)
{
    return c->final.n_terms + c->stationary.n_terms + c->moving.n_terms == 0;
}

/* Takes the longest of the outer labels of the row's operand to the partitions, or a piece of it. */
static void share_partitions(Stage *st, const Contraction *c)
{
    const Box *full = &st->l->now.full;
    const Place *own = place_has(&c->stationary, st->row) ? &c->stationary : &c->moving;
    int64_t room = NKI_PARTITIONS / full->n[st->row];
    uint32_t at = st->outer.n;
    for (uint32_t i = 0; i < st->outer.n && room > 1; i++) {
        uint32_t label = st->outer.at[i];
        bool may = place_has(own, label) && only_one_has(c, label) && full->n[label] > 1;
        at = may && (at == st->outer.n || full->n[label] > full->n[st->outer.at[at]]) ? i : at;
    }
    st->with = LABELS;
    if (at == st->outer.n) {
        return;
    }
    st->with = st->outer.at[at];
    st->piece = full->n[st->with] < room ? full->n[st->with] : room;
    st->outer.n--;
    for (; at < st->outer.n; at++) {
        st->outer.at[at] = st->outer.at[at + 1];
    }
}

/* Rows of a stage: positions of both labels on partitions. */
static int64_t rows_of(const Stage *st)
{
    const Box *full = &st->l->now.full;
    return full->n[st->row] * (st->with < LABELS ? full->n[st->with] : 1);
}

/* Which labels the stage has beside the row: those that follow it, or lie inside of it, up to long rows, and all columns of the other
 * operand while there is room. */
static bool plan(Stage *st, const Contraction *c)
{
    Lower *l = st->l;
    const Place *x = &c->final;
    const Place *other = place_has(&c->stationary, st->row) ? &c->moving : &c->stationary;
    int64_t size = dtype_bytes(l->from->bufs.at[x->buf].dtype), count = 1;
    Labels inside = {0};
    bool row = false, end = false;
    st->run = 1;
    for (uint32_t d = x->rank; d-- > 0;) {
        if (x->label[d] < 0) {
            continue;
        }
        uint32_t label = (uint32_t)x->label[d];
        int64_t n = l->now.full.n[label];
        row |= label == st->row;
        end |= row || st->run * size >= LONG_ROW;
        st->run *= end ? 1 : n;
        bool column = place_has(other, label) && only_one_has(c, label);
        bool fits = sat_mul(count, n) * size <= STAGE_MOST;
        if (label == st->row) {
            continue;
        }
        if (!end || (column && fits)) {
            inside.at[inside.n++] = (uint8_t)label;
            count = sat_mul(count, n);
        } else {
            st->outer.at[st->outer.n++] = (uint8_t)label;
        }
    }
    for (uint32_t i = inside.n; i-- > 0;) {
        st->beside.at[st->beside.n++] = inside.at[i];
    }
    share_partitions(st, c);
    return inside.n > 0 && count * size <= STAGE_MOST;
}

/* The contraction into the stage, which is the home of the result until stage_end. */
static bool begin(Stage *st, Contraction *c, TileView stage, Home *kept)
{
    Lower *l = st->l;
    *c = (Contraction){
        .l = l, .s = st->s, .overwrite = true, .with = (st->with + 1) % (LABELS + 1)};
    if (!contract_begin(c)) {
        return false;
    }
    Home *h = &l->home[c->final.buf];
    *kept = *h;
    h->on_chip = h->made = true;
    h->buf = stage.buf;
    h->chunks = 1;
    h->rows_each = st->with < LABELS ? l->now.full.n[st->with] : 1;
    h->chunk_stride = labels_count(st->beside, &l->now.full);
    Place *x = &c->final;
    int64_t step = 1;
    for (uint32_t i = st->beside.n; i-- > 0;) {
        for (uint32_t d = 0; d < x->rank; d++) {
            h->stride[d] = x->label[d] == (int32_t)st->beside.at[i] ? step : h->stride[d];
        }
        step *= l->now.full.n[st->beside.at[i]];
    }
    for (uint32_t d = 0; d < x->rank; d++) {
        int32_t label = x->label[d];
        bool here = label >= 0 &&
                    ((uint32_t)label == st->row || labels_have(st->beside, (uint32_t)label));
        h->pdim = label == (int32_t)st->row ? d : h->pdim;
        h->stride[d] = here && label != (int32_t)st->row ? h->stride[d] : 0;
        x->base[d] = here ? -l->now.full.s[label] : 0;
        x->label[d] = here ? label : -1;
    }
    x->moves = NULL;
    c->dst = *x;
    contract_shape(c);
    c->pm = labels_as_placed(l, &c->stationary, c->pm, (Labels){0}); /* any order will do */
    return true;
}

static void end(const Stage *st, BufRef buf, const Home *kept)
{
    Home *h = &st->l->home[buf];
    uint64_t version = h->version;
    *h = *kept;
    h->version = version + 1;
}

/* The stage of the labels as they are now. */
static void emit(Stage *st)
{
    Lower *l = st->l;
    BufRef buf = st->s->dst;
    DType t = l->from->bufs.at[buf].dtype;
    Place to = place_of(l, buf, st->s->at);
    TileView stage = tile_new(l, l->from->bufs.at[buf].name->text, t, SPACE_TILE, rows_of(st),
                              labels_count(st->beside, &l->now.full));
    Contraction c;
    Home kept;
    if (begin(st, &c, stage, &kept)) {
        contract_blocks(&c);
        end(st, buf, &kept);
        Box box = l->now.full;
        view_store(l, &to, c.pm, st->beside, &box, stage);
    }
}

/* The loops around it, from the `at`-th on; last those over what lies on partitions. */
static void emit_loops(Stage *st, uint32_t at)
{
    Lower *l = st->l;
    bool piece = at == st->outer.n && st->with < LABELS;
    if (at > st->outer.n + (st->with < LABELS)) {
        emit(st);
        return;
    }
    uint32_t label = at < st->outer.n ? st->outer.at[at] : piece ? st->with : st->row;
    int64_t step = at < st->outer.n ? 1 : piece ? st->piece : NKI_PARTITIONS;
    Box full = l->now.full;
    Affine moves = l->now.moves[label];
    if (full.n[label] > step && open_label(l, label, step, affine_const(0), NULL)) {
        emit_loops(st, at + 1);
        close_label(l, label, step, &full, moves);
    }
    while (l->now.full.n[label] > 0 && !l->tried.failed) {
        int64_t left = l->now.full.n[label];
        l->now.full.n[label] = left < step ? left : step;
        emit_loops(st, at + 1);
        l->now.full.s[label] += step;
        l->now.full.n[label] = left - step;
    }
    l->now.full = full;
}

static Stage stage_of(Lower *l, Stmt *s, uint32_t row)
{
    s->schedule = NULL;
    return (Stage){.l = l, .s = s, .row = row};
}

uint32_t stage_row(Lower *l, const Stmt *s, double *ns)
{
    uint32_t best = LABELS;
    Stmt as = *s;
    Contraction c = {.l = l, .s = &as, .overwrite = true};
    if (!s->begins || !contract_begin(&c) || !is_plain(&c)) {
        return best;
    }
    for (uint32_t row = 0; row < l->now.n_labels; row++) {
        Stage st = stage_of(l, &as, row);
        TileView none = {0};
        Home kept;
        if (!place_has(&c.final, row) || !only_one_has(&c, row) ||
            l->now.full.n[row] < ROWS_LEAST || !plan(&st, &c)) {
            continue;
        }
        Contraction staged;
        Box full = l->now.full;
        for (uint32_t i = 0; i < st.outer.n; i++) {
            l->now.full.n[st.outer.at[i]] = 1;
        }
        int64_t rows = full.n[row] < NKI_PARTITIONS ? full.n[row] : NKI_PARTITIONS;
        l->now.full.n[row] = rows;
        double times =
            (double)labels_count(st.outer, &full) * (double)full.n[row] / (double)rows;
        if (st.with < LABELS) {
            l->now.full.n[st.with] = st.piece;
            times *= (double)full.n[st.with] / (double)st.piece;
        }
        if (begin(&st, &staged, none, &kept)) {
            double time = times * contract_price(&staged, st.run);
            end(&st, s->dst, &kept);
            best = time < *ns ? row : best;
            *ns = time < *ns ? time : *ns;
        }
        l->now.full = full;
    }
    return best;
}

void lower_staged(Lower *l, const Stmt *s, uint32_t row)
{
    Stmt *as = arena_copy(l->arena, s, sizeof *s);
    Stage st = stage_of(l, as, row);
    Contraction c = {.l = l, .s = as, .overwrite = true};
    CHECK(contract_begin(&c) && plan(&st, &c));
    emit_loops(&st, 0);
}
