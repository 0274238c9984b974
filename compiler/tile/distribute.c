/* SPDX-License-Identifier: Apache-2.0 */
/* Loop distribution: loops around several statements become loops around each, blocks on chip whole values in memory. It is what is left where the
 * iterations of such loops cannot be shared by programs, since they write parts of rows; each statement by itself has rows. */
#include "tile/tile.h"

typedef struct Distribution {
    Arena *arena;
    Kernel *to;
    const Stmt *loop[LOOP_DEPTH_LIMIT]; /* around the statement at hand */
    uint32_t n_loops;
    const Stmt **loop_of; /* [vars] of the loops of the nest */
    uint32_t *
        alloc_depth; /* [bufs] loops around its allocation, and one; 0: it is none of the nest's */
    bool *written;    /* [bufs] of others */
    bool complex;     /* has the kernel complex numbers? */
    const Stmt *nest; /* the outermost loop */
    VEC(Stmt *) out;
} Distribution;

/* The loop that says where the tiles of a range lie, or null. */
static const Stmt *loop_of_range(const Distribution *p, const Range *r)
{
    if (!affine_is_var(r->start)) {
        return NULL;
    }
    const Stmt *loop = p->loop_of[r->start.term[0].var];
    return loop != NULL && r->span == loop->step ? loop : NULL;
}

/* All values of a range over all iterations; false: they are not tiles that lie side by side. */
static bool widen(const Distribution *p, Range *r)
{
    while (r->start.n > 0) {
        const Stmt *loop = loop_of_range(p, r);
        if (loop == NULL) {
            return false;
        }
        *r = loop->range;
    }
    return r->span == 0 && r->limit.sym < 0;
}

/* The index of a position `index`, or `index - $loop`; null: it is neither. *loop: or null. */
static const TileIndex *index_of(const Distribution *p, const Stmt *s, Affine at,
                                 const Stmt **loop)
{
    const TileIndex *found = NULL;
    *loop = NULL;
    for (uint32_t t = 0; t < at.n; t++) {
        const Stmt *of = p->loop_of[at.term[t].var];
        for (uint32_t i = 0; i < s->n_index; i++) {
            bool here = s->index[i].var == at.term[t].var && at.term[t].coef == 1;
            found = here ? &s->index[i] : found;
        }
        *loop = of != NULL && at.term[t].coef == -1 ? of : *loop;
    }
    bool tile = *loop == NULL || (found != NULL && loop_of_range(p, &found->range) == *loop);
    return at.base == 0 && at.n == 1u + (*loop != NULL) && tile ? found : NULL;
}

/* ---- may it be done? ---- */

static bool names_loops(const Distribution *p, Affine x)
{
    for (uint32_t t = 0; t < x.n; t++) {
        if (p->loop_of[x.term[t].var] != NULL) {
            return true;
        }
    }
    return false;
}

/* Positions of the nest's own values are those of whole ones then; others name no loop. */
static bool access_is_plain(const Distribution *p, const Stmt *s, BufRef buf, const Affine *at)
{
    bool plain = true;
    const Stmt *loop = NULL;
    for (uint32_t d = 0; d < p->to->bufs.at[buf].rank; d++) {
        bool own = p->alloc_depth[buf] > 0;
        plain &=
            own ? at[d].n == 0 || index_of(p, s, at[d], &loop) != NULL : !names_loops(p, at[d]);
    }
    return plain;
}

/* Of what the nest writes, does the statement read only what the same iteration of each loop around writes? */
static bool reads_iteration(const Distribution *p, const Stmt *s, const Expr *e)
{
    StmtWalk walk;
    uint32_t rank = p->to->bufs.at[e->buf].rank;
    bool own = true;
    for (const Stmt *w = tile_first(&walk, p->nest->body, p->nest->n_body); w != NULL && own;
         w = tile_next(&walk)) {
        for (uint32_t d = 0; w->dst == e->buf && d < p->n_loops && own; d++) {
            own = false;
            for (uint32_t at = 0; at < rank; at++) {
                own |= position_is_tiled(w, w->at[at], p->loop[d]) &&
                       position_is_tiled(s, e->at[at], p->loop[d]);
            }
        }
    }
    return own;
}

static bool loads_are_plain(const Distribution *p, const Stmt *s)
{
    ExprWalk w;
    bool plain = true;
    for (const Expr *e = expr_first(&w, s->value); e != NULL; e = expr_next(&w)) {
        plain &= e->kind != EXPR_INDEX;
        plain &=
            e->kind != EXPR_LOAD || (access_is_plain(p, s, e->buf, e->at) &&
                                     (p->alloc_depth[e->buf] > 0 || reads_iteration(p, s, e)));
    }
    return plain;
}

/* Does an iteration of each loop around it, from number `from` on, write places of its own, or add to them? */
static bool is_apart(const Distribution *p, const Stmt *s)
{
    bool adds = s->fold == OP_SUM && (!s->begins || s->n_first > 0);
    uint32_t own = p->alloc_depth[s->dst];
    for (uint32_t d = 0; d < p->n_loops; d++) {
        bool moves = false;
        for (uint32_t i = 0; i < s->n_index; i++) {
            Range r = s->index[i].range;
            bool by = false;
            while (r.start.n > 0 && !by) {
                const Stmt *loop = loop_of_range(p, &r);
                by = loop == p->loop[d];
                r = loop == NULL ? (Range){0} : loop->range;
            }
            moves |= by && access_uses(p->to, s->dst, s->at, s->index[i].var);
        }
        bool inside = own == 0 || d + 1 >= own; /* of the allocation */
        if (!moves && !(adds && inside)) {
            return false;
        }
    }
    return true;
}

static bool body_may(Distribution *p, Stmt *const *body, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *s = body[i];
        Range r = s->range;
        bool may = s->kind == STMT_ALLOC;
        if (s->kind == STMT_ALLOC) {
            p->alloc_depth[s->buf] = p->n_loops + 1;
        } else if (s->kind == STMT_FOR && p->n_loops < LOOP_DEPTH_LIMIT) {
            p->loop_of[s->var] = s;
            p->loop[p->n_loops++] = s;
            may = s->part == FOR_ALL && s->window == NULL && widen(p, &r) &&
                  body_may(p, s->body, s->n_body);
            p->n_loops--;
        } else if (s->kind == STMT_TILE) {
            may =
                access_is_plain(p, s, s->dst, s->at) && loads_are_plain(p, s) && is_apart(p, s);
            for (uint32_t x = 0; x < s->n_index; x++) {
                Range range = s->index[x].range;
                may = may && widen(p, &range);
            }
            p->written[s->dst] |= p->alloc_depth[s->dst] == 0;
        }
        if (!may) {
            return false;
        }
    }
    return true;
}

/* ---- doing it ---- */

/* The dimensions of a value in the order of its first reader's result, what that sums before the last; as they are where there are complex
 * numbers, whose parts stay last. */
static void order_dims(const Distribution *p, const Stmt *loop, BufRef buf, uint32_t *order)
{
    StmtWalk w;
    const Expr *load = NULL;
    const Stmt *s = tile_first(&w, loop->body, loop->n_body);
    while (s != NULL && (load = expr_load_of(s->value, buf)) == NULL) {
        s = tile_next(&w);
    }
    uint32_t rank = p->to->bufs.at[buf].rank, key[TILE_DIMS] = {0};
    for (uint32_t d = 0; d < rank; d++) {
        const Stmt *unused = NULL;
        const TileIndex *index = s == NULL ? NULL : index_of(p, s, load->at[d], &unused);
        uint32_t n = s == NULL ? 0 : p->to->bufs.at[s->dst].rank;
        key[d] = index == NULL || n == 0 ? 0 : 2 * n - 3;
        for (uint32_t e = 0; e < n && index != NULL; e++) {
            key[d] = affine_uses(s->at[e], index->var) ? 2 * e : key[d];
        }
        uint32_t at = d;
        for (; at > 0 && key[order[at - 1]] > key[d] && !p->complex; at--) {
            order[at] = order[at - 1];
        }
        order[at] = d;
    }
}

typedef struct Whole {
    Distribution *p;
    const Stmt *loop, *s;
} Whole;

static const Affine *whole_at(const Whole *w, BufRef buf, const Affine *at)
{
    Distribution *p = w->p;
    uint32_t rank = p->to->bufs.at[buf].rank, order[TILE_DIMS];
    if (p->alloc_depth[buf] == 0 || rank == 0) {
        return at;
    }
    Affine *out = ARENA_ARRAY(p->arena, rank, Affine);
    order_dims(p, w->loop, buf, order);
    for (uint32_t d = 0; d < rank; d++) {
        const Stmt *loop = NULL;
        const TileIndex *index = index_of(p, w->s, at[order[d]], &loop);
        out[d] = index == NULL ? at[order[d]] : affine_var(p->arena, index->var);
    }
    return out;
}

static void whole_load(void *user, Expr *load)
{
    if (load->kind == EXPR_LOAD) {
        load->at = whole_at(user, load->buf, load->at);
    }
}

/* The extents of the value: those of the index that moves in each dimension of what writes it. */
static void enlarge(Distribution *p, const Stmt *loop, const Stmt *s)
{
    Buffer *b = &p->to->bufs.at[s->dst];
    uint32_t order[TILE_DIMS];
    Dim *extent = ARENA_ARRAY(p->arena, b->rank + 1, Dim);
    order_dims(p, loop, s->dst, order);
    for (uint32_t d = 0; d < b->rank; d++) {
        const Stmt *unused = NULL;
        const TileIndex *index = index_of(p, s, s->at[order[d]], &unused);
        Range r = index == NULL ? range_whole(b->extent[order[d]]) : index->range;
        (void)widen(p, &r);
        extent[d] = r.limit;
    }
    b->extent = extent;
}

static void put_body(Distribution *p, const Stmt *loop, Stmt *const *body, uint32_t n,
                     bool *enlarged)
{
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *s = body[i];
        if (s->kind == STMT_FOR) {
            put_body(p, loop, s->body, s->n_body, enlarged);
            continue;
        }
        Stmt *t = arena_copy(p->arena, s, sizeof *s);
        vec_push(p->arena, &p->out, t);
        if (s->kind != STMT_TILE) {
            continue;
        }
        Whole w = {p, loop, s};
        TileIndex *index = arena_copy(p->arena, s->index, s->n_index * sizeof *s->index);
        for (uint32_t x = 0; x < s->n_index; x++) {
            (void)widen(p, &index[x].range);
        }
        t->index = index;
        t->at = whole_at(&w, s->dst, s->at);
        t->value = expr_with_places(p->arena, s->value, whole_load, &w);
        t->schedule = NULL; /* it was for a tile */
        t->n_first = 0;
        if (p->alloc_depth[s->dst] > 0 && !enlarged[s->dst]) {
            enlarge(p, loop, s);
            enlarged[s->dst] = true;
        }
    }
}

/* A fill right before the only sum into what it fills is how that begins. */
static void merge_fills(Distribution *p)
{
    for (uint32_t i = 0; i < p->out.n; i++) {
        const Stmt *fill = p->out.at[i];
        Stmt *sum = NULL;
        uint32_t writers = 0;
        bool zero = fill->kind == STMT_TILE && fill->fold == OP_COPY &&
                    fill->value->kind == EXPR_CONST && !(fill->value->value.re < 0) &&
                    !(fill->value->value.re > 0);
        for (uint32_t j = i + 1; j < p->out.n && zero; j++) {
            Stmt *s = p->out.at[j];
            bool writes = s->kind == STMT_TILE && s->dst == fill->dst;
            zero &= s->kind != STMT_TILE || expr_load_of(s->value, fill->dst) == NULL;
            sum = writes ? s : sum;
            writers += writes;
        }
        if (zero && writers == 1 && sum->fold == OP_SUM && p->written[fill->dst]) {
            sum->begins = true;
            for (uint32_t j = i; j + 1 < p->out.n; j++) {
                p->out.at[j] = p->out.at[j + 1];
            }
            p->out.n--;
            i--;
        }
    }
}

/* ---- loops of single positions ---- */

/* A loop that takes positions one by one, as one over tiles of one position: what is allocated in it has a dimension for the loop, and
 * statements have an index for its variable.
 *
 *     for $i in 0..n step 1 { alloc @t : f32[m]    ..[j] @t[j] = @A[$i,j] }
 *  -> for $i in 0..n step 1 { alloc @t : f32[1,m]  ..[j, i in $i:1] @t[i-$i,j] = @A[i,j] }
 */
typedef struct OneByOne {
    Ctx *ctx;
    Arena *arena;
    Kernel *to;
    const Stmt *loop;
    bool *own;   /* [bufs] allocated in the loop, without a dimension for it */
    Affine tile; /* of the statement at hand: its index, from the loop's variable on */
} OneByOne;

static const Affine *with_tile(const OneByOne *x, BufRef buf, const Affine *at)
{
    uint32_t rank = x->to->bufs.at[buf].rank; /* with the new one */
    if (!x->own[buf]) {
        return at;
    }
    Affine *out = ARENA_ARRAY(x->arena, rank, Affine);
    out[0] = x->tile;
    for (uint32_t d = 1; d < rank; d++) {
        out[d] = at[d - 1];
    }
    return out;
}

static void place_tile(void *user, Expr *place)
{
    if (place->kind == EXPR_LOAD) {
        place->at = with_tile(user, place->buf, place->at);
    }
}

/* The index of the statement that takes the loop's position alone, or null. */
static const TileIndex *index_over(const Stmt *s, const Stmt *loop)
{
    const TileIndex *found = NULL;
    for (uint32_t i = 0; i < s->n_index; i++) {
        const Range *r = &s->index[i].range;
        found = affine_is(r->start, loop->var) && r->span == 1 ? &s->index[i] : found;
    }
    return found;
}

/* Does a dimension of an access lie in the loop's tile? */
static bool has_tile(const OneByOne *x, const Stmt *s, BufRef buf, const Affine *at)
{
    const TileIndex *index = index_over(s, x->loop);
    bool has = false;
    for (uint32_t d = 0; d < x->to->bufs.at[buf].rank && index != NULL; d++) {
        has |= at[d].n == 2 && affine_uses(at[d], index->var) &&
               affine_coef(at[d], x->loop->var) == -1;
    }
    return has;
}

static void note_tiles(OneByOne *x, const Stmt *s)
{
    ExprWalk w;
    x->own[s->dst] &= !has_tile(x, s, s->dst, s->at);
    for (const Expr *e = load_first(&w, s->value); e != NULL; e = load_next(&w)) {
        x->own[e->buf] &= !has_tile(x, s, e->buf, e->at);
    }
}

static bool touches(const OneByOne *x, const Stmt *s)
{
    ExprWalk w;
    VarRef v = x->loop->var;
    bool any = x->own[s->dst] || access_uses(x->to, s->dst, s->at, v);
    for (const Expr *e = load_first(&w, s->value); e != NULL; e = load_next(&w)) {
        any |= x->own[e->buf] || access_uses(x->to, e->buf, e->at, v);
    }
    return any;
}

/* The statement's index over the loop, made if there is none, which takes the place of the loop's variable. */
static void name_index(OneByOne *x, Stmt *s)
{
    Arena *a = x->arena;
    VarRef loop = x->loop->var;
    if (index_over(s, x->loop) == NULL) {
        VarRef v = kernel_var(x->to, &x->ctx->syms, x->to->vars.at[loop].wish->text, false);
        TileIndex *index = ARENA_ARRAY(a, s->n_index + 1, TileIndex);
        for (uint32_t i = 0; i < s->n_index; i++) {
            index[i] = s->index[i];
        }
        index[s->n_index++] = (TileIndex){
            .var = v,
            .range = {.start = affine_var(a, loop), .span = 1, .limit = dim_fixed(0)},
            .mode = MODE_LOOP};
        s->index = index;
        Subst by = {loop, affine_var(a, v)};
        s->at = access_subst(a, x->to->bufs.at[s->dst].rank, s->at, &by, 1);
        s->value = expr_subst(a, x->to, s->value, &by, 1);
    }
}

static void add_dim(const OneByOne *x, Buffer *b)
{
    Dim *extent = ARENA_ARRAY(x->arena, b->rank + 1, Dim);
    extent[0] = dim_fixed(1);
    for (uint32_t d = 0; d < b->rank; d++) {
        extent[d + 1] = b->extent[d];
    }
    b->extent = extent;
    b->rank++;
}

/* False: a value would have too many dimensions. */
static bool take_loop(OneByOne *x)
{
    StmtWalk w;
    Stmts named = {0};
    x->own = ARENA_ARRAY(x->arena, x->to->bufs.n + 1, bool);
    for (const Stmt *s = stmt_first(&w, x->loop->body, x->loop->n_body); s != NULL;
         s = stmt_next(&w)) {
        if (s->kind == STMT_ALLOC) {
            x->own[s->buf] = true;
            if (x->to->bufs.at[s->buf].rank == TILE_DIMS) {
                return false;
            }
        } else if (s->kind == STMT_TILE) {
            note_tiles(x, s);
        }
    }
    for (const Stmt *s = tile_first(&w, x->loop->body, x->loop->n_body); s != NULL;
         s = tile_next(&w)) {
        if (touches(x, s)) {
            vec_push(x->arena, &named, (Stmt *)(uintptr_t)s); /* of a copy */
            name_index(x, named.at[named.n - 1]);
        }
    }
    for (uint32_t b = 0; b < x->to->bufs.n; b++) {
        if (x->own[b]) {
            add_dim(x, &x->to->bufs.at[b]);
        }
    }
    for (uint32_t i = 0; i < named.n; i++) {
        Stmt *s = named.at[i];
        Affine index = affine_var(x->arena, index_over(s, x->loop)->var);
        x->tile = affine_add(x->arena, index, -1, affine_var(x->arena, x->loop->var));
        s->at = with_tile(x, s->dst, s->at);
        s->value = expr_with_places(x->arena, s->value, place_tile, x);
    }
    return true;
}

const Kernel *tile_distribute(Ctx *ctx, Arena *arena, const Kernel *k)
{
    bool any = false;
    for (uint32_t i = 0; i < k->n_body; i++) {
        any |= k->body[i]->kind == STMT_FOR;
    }
    if (!any) {
        return NULL;
    }
    OneByOne x = {.ctx = ctx, .arena = arena, .to = kernel_changeable(arena, k)};
    StmtWalk w;
    k = x.to;
    for (x.loop = stmt_first(&w, k->body, k->n_body); x.loop != NULL; x.loop = stmt_next(&w)) {
        if (x.loop->kind == STMT_FOR && x.loop->step == 1 && !take_loop(&x)) {
            return NULL;
        }
    }
    Distribution p = {.arena = arena, .to = kernel_like(arena, k)};
    p.to->bufs.at = arena_copy(arena, k->bufs.at, k->bufs.n * sizeof *k->bufs.at);
    p.loop_of = (const Stmt **)arena_array(arena, k->vars.n + 1, sizeof *p.loop_of);
    p.alloc_depth = ARENA_ARRAY(arena, k->bufs.n + 1, uint32_t);
    p.written = ARENA_ARRAY(arena, k->bufs.n + 1, bool);
    bool *enlarged = ARENA_ARRAY(arena, k->bufs.n + 1, bool);
    for (uint32_t b = 0; b < k->bufs.n; b++) {
        p.complex |= buffer_has_parts(k, b);
    }
    for (uint32_t i = 0; i < k->n_body; i++) {
        p.nest = k->body[i];
        if (k->body[i]->kind == STMT_FOR && !body_may(&p, &k->body[i], 1)) {
            return NULL;
        }
        if (k->body[i]->kind == STMT_FOR) {
            put_body(&p, k->body[i], &k->body[i], 1, enlarged);
        } else {
            vec_push(arena, &p.out, k->body[i]);
        }
    }
    merge_fills(&p);
    p.to->body = p.out.at;
    p.to->n_body = p.out.n;
    return p.to;
}
