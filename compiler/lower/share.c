/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers of one block that do not live together get the same bytes. A buffer lives from its
 * alloc to the last statement of that block that names it, itself or inside; the largest buffer
 * is placed first, each in the smallest place that is large enough and free while it lives (as
 * XLA and TVM do; here a place begins and ends with the block, so that it has one address for
 * any extents). Sizes are compared for typical extents, and a place is as large as the largest
 * buffer in it, whatever the extents are.
 *
 * Buffers of different element types stay apart: C compilers take it that pointers to two types
 * do not meet. Accumulators are registers, and what is allocated after one in its block goes
 * with them; single elements are variables. */
#include <stdlib.h>

#include "loop/walk.h"
#include "lower/lower.h"

/* One buffer of the block at hand. */
typedef struct Life {
    BufRef buf;
    uint32_t first, last; /* statements of the block */
    int64_t bytes;
} Life;

/* Buffers that share bytes, in the order of their allocs. */
typedef struct Room {
    int64_t bytes; /* of the largest */
    DType dtype;
    VEC(Life) lives;
} Room;

typedef struct Share {
    Arena *arena;   /* of the kernel */
    Arena *scratch; /* of this pass */
    const Kernel *k;
    uint32_t *depth;                   /* [bufs]: blocks around its alloc */
    uint32_t *last;                    /* [bufs]: last statement of that block that names it */
    uint32_t at[LOOP_DEPTH_LIMIT + 2]; /* the statement at hand in each of the open blocks */
} Share;

static int64_t typical_bytes(const Kernel *k, BufRef buf)
{
    const Buffer *b = &k->bufs.at[buf];
    int64_t bytes = dtype_bytes(b->dtype);
    for (uint32_t d = 0; d < b->rank; d++) {
        bytes = sat_mul(bytes, dim_typical(&k->dims, b->extent[d]));
    }
    return bytes < SIZE_LIMIT >> 16 ? bytes : SIZE_LIMIT >> 16; /* sums of them fit */
}

static int by_size(const void *x, const void *y)
{
    const Life *a = x, *b = y;
    if (a->bytes != b->bytes) {
        return a->bytes > b->bytes ? -1 : 1;
    }
    return a->first < b->first ? -1 : a->first > b->first;
}

/* Where the buffer goes among those of the room, or UINT32_MAX: one of them lives then. */
static uint32_t place_in(const Room *room, const Life *life)
{
    uint32_t at = 0;
    while (at < room->lives.n && room->lives.at[at].first < life->first) {
        at++;
    }
    bool free = (at == 0 || room->lives.at[at - 1].last < life->first) &&
                (at == room->lives.n || life->last < room->lives.at[at].first);
    return free ? at : UINT32_MAX;
}

static void room_add(Share *s, Room *room, uint32_t at, const Life *life)
{
    vec_push(s->scratch, &room->lives, *life);
    for (uint32_t i = room->lives.n - 1; i > at; i--) {
        room->lives.at[i] = room->lives.at[i - 1];
    }
    room->lives.at[at] = *life;
}

/* How high the stack of a block is: what begins at or before each statement, and what inner
 * blocks put on top there. */
static int64_t stack_height(const int64_t *begins, const int64_t *inner, uint32_t n)
{
    int64_t height = 0, most = 0;
    for (uint32_t i = 0; i < n; i++) {
        height = sat_add(height, begins[i]);
        most = sat_add(height, inner[i]) > most ? sat_add(height, inner[i]) : most;
    }
    return most;
}

/* May the room begin with this buffer? It is kept from there on, which may cost more than bytes
 * of the buffer's own: inner blocks in between are put on top of it. */
static bool may_begin(const Room *room, const Life *life, int64_t *begins, const int64_t *inner,
                      uint32_t n)
{
    uint32_t first = room->lives.at[0].first;
    begins[life->first] += life->bytes;
    int64_t own = stack_height(begins, inner, n);
    begins[life->first] += room->bytes - life->bytes;
    begins[first] -= room->bytes;
    int64_t joined = stack_height(begins, inner, n);
    begins[life->first] -= room->bytes;
    begins[first] += room->bytes;
    return joined <= own;
}

/* Rooms for the buffers of a block, unless they were better apart; returns how high its stack
 * is. */
static int64_t make_rooms(Share *s, Stmt **body, uint32_t n, Life *lives, uint32_t n_lives,
                          const int64_t *inner)
{
    VEC(Room) rooms = {0};
    int64_t *begins = ARENA_ARRAY(s->scratch, n + 1, int64_t);
    qsort(lives, n_lives, sizeof *lives, by_size);
    for (uint32_t k = 0; k < n_lives; k++) {
        const Life *life = &lives[k];
        DType t = s->k->bufs.at[life->buf].dtype;
        uint32_t best = UINT32_MAX, place = 0;
        for (uint32_t r = rooms.n; r-- > 0 && best == UINT32_MAX;) { /* the last are smallest */
            const Room *room = &rooms.at[r];
            uint32_t at = room->dtype == t ? place_in(room, life) : UINT32_MAX;
            if (at != UINT32_MAX && (at > 0 || may_begin(room, life, begins, inner, n))) {
                best = r;
                place = at;
            }
        }
        if (best == UINT32_MAX) {
            Room fresh = {.bytes = life->bytes, .dtype = t};
            best = rooms.n;
            vec_push(s->scratch, &rooms, fresh);
        } else if (place == 0) {
            begins[rooms.at[best].lives.at[0].first] -= rooms.at[best].bytes;
        }
        room_add(s, &rooms.at[best], place, life);
        if (place == 0) {
            begins[life->first] += rooms.at[best].bytes;
        }
    }
    int64_t *own = ARENA_ARRAY(s->scratch, n + 1, int64_t);
    for (uint32_t k = 0; k < n_lives; k++) {
        own[lives[k].first] = lives[k].bytes;
    }
    int64_t height = stack_height(begins, inner, n), apart = stack_height(own, inner, n);
    for (uint32_t r = 0; r < rooms.n && height <= apart; r++) {
        const Room *room = &rooms.at[r];
        for (uint32_t i = 1; i < room->lives.n; i++) {
            body[room->lives.at[i].first]->over = 1 + room->lives.at[i - 1].buf;
        }
    }
    return height < apart ? height : apart;
}

static void name_buffer(Share *s, BufRef buf)
{
    if (s->depth[buf] > 0) {
        s->last[buf] = s->at[s->depth[buf]];
    }
}

static void name_all(Share *s, const Stmt *tile)
{
    ExprWalk w;
    name_buffer(s, tile->dst);
    for (const Expr *x = read_first(&w, tile->value); x != NULL; x = read_next(&w)) {
        name_buffer(s, x->buf);
    }
}

/* A copy of the block in which buffers share bytes; `*height`: of its stack. As deep as
 * loop_verify allows: what is deeper it will refuse. */
static Stmt **share_block(Share *s, Stmt *const *body, uint32_t n, uint32_t depth,
                          bool registers, int64_t *height)
{
    Stmt **out = ARENA_ARRAY(s->arena, n, Stmt *);
    int64_t *inner = ARENA_ARRAY(s->scratch, n + 1, int64_t);
    Life *lives = ARENA_ARRAY(s->scratch, n + 1, Life);
    uint32_t n_lives = 0;
    for (uint32_t i = 0; i < n; i++) {
        s->at[depth] = i;
        out[i] = arena_copy(s->arena, body[i], sizeof *body[i]);
        if (stmt_has_body(body[i]) && depth <= LOOP_DEPTH_LIMIT) {
            out[i]->body =
                share_block(s, body[i]->body, body[i]->n_body, depth + 1, registers, &inner[i]);
        } else if (body[i]->kind == STMT_TILE) {
            name_all(s, body[i]);
        } else if (body[i]->kind == STMT_ALLOC) {
            const Buffer *b = &s->k->bufs.at[body[i]->buf];
            registers = registers || (b->space == SPACE_ACC && b->rank > 0);
            out[i]->over = 0;
            if (b->space != SPACE_ACC && !b->cascade && !registers && b->rank > 0) {
                s->depth[body[i]->buf] = depth;
                s->last[body[i]->buf] = i;
                lives[n_lives++] =
                    (Life){body[i]->buf, i, i, typical_bytes(s->k, body[i]->buf)};
            }
        }
    }
    for (uint32_t i = 0; i < n_lives; i++) {
        lives[i].last = s->last[lives[i].buf];
        s->depth[lives[i].buf] = 0;
    }
    *height = make_rooms(s, out, n, lives, n_lives, inner);
    return out;
}

void kernel_share(Ctx *ctx, Kernel *k)
{
    Arena scratch;
    int64_t height = 0;
    arena_init(&scratch, &ctx->budget);
    Share s = {.arena = k->arena, .scratch = &scratch, .k = k};
    s.depth = ARENA_ARRAY(&scratch, k->bufs.n, uint32_t);
    s.last = ARENA_ARRAY(&scratch, k->bufs.n, uint32_t);
    k->body = share_block(&s, k->body, k->n_body, 1, false, &height);
    arena_release(&scratch);
}
