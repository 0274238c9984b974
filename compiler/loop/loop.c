/* SPDX-License-Identifier: Apache-2.0 */
/* Making kernels: names made unique, variables, buffers, expressions. A kernel is put together
 * bottom-up by whoever builds it; nothing here decides anything. */
#include "loop/loop.h"

#include <string.h>

#include "op/factors.h"

Kernel *kernel_new(Arena *arena, Sym name)
{
    Kernel *k = ARENA_NEW(arena, Kernel);
    k->arena = arena;
    k->name = name;
    k->form = LOOP_TILED;
    k->signature = "";
    return k;
}

/* A list of its own: one that grows gives back what it has outgrown. */
#define OWN_LIST(arena, v)                                                                     \
    do {                                                                                       \
        (v)->at = arena_copy((arena), (v)->at, (v)->n * sizeof *(v)->at);                      \
        (v)->cap = (v)->n;                                                                     \
    } while (0)

Kernel *kernel_like(Arena *arena, const Kernel *k)
{
    Kernel *copy = ARENA_NEW(arena, Kernel);
    *copy = *k;
    copy->arena = arena;
    OWN_LIST(arena, &copy->dims.list);
    OWN_LIST(arena, &copy->vars);
    OWN_LIST(arena, &copy->bufs);
    OWN_LIST(arena, &copy->args);
    copy->names = (Map){0};
    copy->n_named_vars = copy->n_named_bufs = 0;
    return copy;
}

static Stmt **changeable(Arena *arena, Stmt *const *body, uint32_t n)
{
    Stmt **out = ARENA_ARRAY(arena, n, Stmt *);
    for (uint32_t i = 0; i < n; i++) {
        out[i] = arena_copy(arena, body[i], sizeof *body[i]);
        if (stmt_has_body(out[i])) {
            out[i]->body = changeable(arena, out[i]->body, out[i]->n_body);
        }
    }
    return out;
}

Kernel *kernel_changeable(Arena *arena, const Kernel *k)
{
    Kernel *copy = kernel_like(arena, k);
    copy->body = changeable(arena, k->body, k->n_body);
    return copy;
}

Kernel *kernel_alone(Arena *arena, const Kernel *k, uint32_t n)
{
    Kernel *alone = kernel_like(arena, k);
    uint32_t seen = 0;
    alone->body = ARENA_ARRAY(arena, k->n_body + 1, Stmt *);
    alone->n_body = 0;
    for (uint32_t i = 0; i < k->n_body; i++) {
        bool tested = k->body[i]->kind == STMT_BLOCK && k->body[i]->when != NULL;
        if (!tested || seen == n) {
            Stmt *s = arena_copy(arena, k->body[i], sizeof *s);
            s->when = NULL;
            alone->body[alone->n_body++] = s;
        }
        seen += tested ? 1 : 0;
    }
    return seen > n ? alone : NULL;
}

static bool is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_';
}

/* An identifier as near to `hint` as there is: hints may be labels of einsum strings, which may
 * be any character. */
static char *word_from(Arena *a, const char *hint)
{
    size_t n = hint == NULL ? 0 : strlen(hint);
    char *word = ARENA_ARRAY(a, n + 2, char);
    size_t at = 0;
    if (n == 0 || (hint[0] >= '0' && hint[0] <= '9')) {
        word[at++] = '_';
    }
    for (size_t i = 0; i < n; i++) {
        word[at++] = is_word_char(hint[i]) ? hint[i] : '_';
    }
    return word;
}

/* Names are entered in the kernel's index when they are first looked for: readers and copies make lists of their own. The
 * value is the number to try next when the name is wished for again. */
static void index_names(Kernel *k)
{
    if (k->names.arena == NULL) {
        map_init(&k->names, k->arena);
    }
    for (; k->n_named_vars < k->vars.n; k->n_named_vars++) {
        map_put(&k->names, k->vars.at[k->n_named_vars].name->id, 2);
    }
    for (; k->n_named_bufs < k->bufs.n; k->n_named_bufs++) {
        map_put(&k->names, k->bufs.at[k->n_named_bufs].name->id, 2);
    }
}

/* Variables and buffers share one name space, so that printers may use the names as they are.
 */
static Sym name_unique(Kernel *k, SymTable *syms, const char *hint)
{
    char *word = word_from(k->arena, hint);
    Sym wish = sym_cstr(syms, word), name = wish;
    uint32_t count = 0, other = 0;
    index_names(k);
    if (!map_get(&k->names, wish->id, &count)) {
        return name;
    }
    do {
        name = sym_cstr(syms, str_format(k->arena, "%s%u", word, count++));
    } while (map_get(&k->names, name->id, &other));
    map_put(&k->names, wish->id, count);
    return name;
}

VarRef kernel_var(Kernel *k, SymTable *syms, const char *hint, bool is_loop)
{
    Var v = {name_unique(k, syms, hint), is_loop, sym_cstr(syms, hint)};
    vec_push(k->arena, &k->vars, v);
    return k->vars.n - 1;
}

void kernel_name_vars(Kernel *k, SymTable *syms)
{
    uint32_t n = k->vars.n;
    k->vars.n = k->n_named_vars = k->n_named_bufs = 0;
    k->names = (Map){0};
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < n; i++) {
            Var *v = &k->vars.at[i];
            if (v->is_loop == (pass == 0)) {
                v->name = v->wish = name_unique(k, syms, v->wish->text);
                map_put(&k->names, v->name->id, 2);
            }
        }
    }
    k->vars.n = k->n_named_vars = n;
}

BufRef kernel_buffer(Kernel *k, SymTable *syms, const char *hint, DType t, Space s,
                     uint32_t rank, const Dim *extent)
{
    Buffer b = {0};
    b.name = name_unique(k, syms, hint);
    b.dtype = t;
    b.space = s;
    b.rank = rank;
    b.extent = rank == 0 ? NULL : arena_copy(k->arena, extent, rank * sizeof *extent);
    b.param = -1;
    vec_push(k->arena, &k->bufs, b);
    return k->bufs.n - 1;
}

BufRef kernel_buffer_like(Kernel *k, SymTable *syms, const char *hint, const Buffer *like)
{
    BufRef made =
        kernel_buffer(k, syms, hint, like->dtype, like->space, like->rank, like->extent);
    k->bufs.at[made].stored = like->stored;
    k->bufs.at[made].param = like->param;
    k->bufs.at[made].span = like->span;
    return made;
}

BufRef kernel_indefinite(const Kernel *k)
{
    for (BufRef b = 0; b < k->bufs.n; b++) {
        if (k->bufs.at[b].indefinite) {
            return b;
        }
    }
    return BUF_NONE;
}

Range range_whole(Dim extent)
{
    return (Range){affine_const(0), 0, true, extent};
}

int64_t range_most(Range r)
{
    int64_t most = r.span > 0 ? r.span : INT64_MAX;
    if (r.clipped && r.limit.sym < 0 && r.start.n == 0 && r.limit.n - r.start.base < most) {
        most = r.limit.n - r.start.base;
    } else if (r.clipped && r.limit.sym < 0 && r.limit.n < most) {
        most = r.limit.n;
    }
    return most < 0 ? 0 : most;
}

bool range_is_whole(const Range *r)
{
    return r->start.n == 0 && r->start.base == 0 && r->span == 0 && r->limit.sym < 0;
}

bool range_eq(const Range *x, const Range *y)
{
    return affine_eq(x->start, y->start) && x->span == y->span && x->clipped == y->clipped &&
           dim_eq(x->limit, y->limit);
}

Expr *expr_const(Arena *a, Number v)
{
    Expr *e = ARENA_NEW(a, Expr);
    e->kind = EXPR_CONST;
    e->dtype = v.dtype;
    e->value = v;
    return e;
}

Expr *expr_index(Arena *a, DType t, Affine at)
{
    Expr *e = ARENA_NEW(a, Expr);
    *e = (Expr){.kind = EXPR_INDEX, .dtype = t, .at = arena_copy(a, &at, sizeof at)};
    return e;
}

Expr *expr_load(Arena *a, const Kernel *k, BufRef buf, const Affine *at)
{
    CHECK(buf < k->bufs.n);
    uint32_t rank = k->bufs.at[buf].rank;
    Expr *e = ARENA_NEW(a, Expr);
    e->kind = EXPR_LOAD;
    e->dtype = k->bufs.at[buf].dtype;
    e->buf = buf;
    e->at = rank == 0 ? NULL : arena_copy(a, at, rank * sizeof *at);
    return e;
}

Expr *expr_gather(Arena *a, const Kernel *k, BufRef buf, const Expr *const *at)
{
    const Buffer *b = &k->bufs.at[buf];
    Expr *e = ARENA_NEW(a, Expr);
    e->kind = EXPR_OP;
    e->op = OP_GATHER;
    e->dtype = b->dtype;
    e->buf = buf;
    e->n_args = b->rank;
    e->arg = arena_copy(a, at, b->rank * sizeof *at);
    return e;
}

Expr *expr_op(Arena *a, Op op, DType t, uint32_t n, const Expr *const *arg)
{
    CHECK(op_info(op)->kind == OPKIND_MAP);
    CHECK(op_info(op)->arity == (int)n);
    Expr *e = ARENA_NEW(a, Expr);
    e->kind = EXPR_OP;
    e->dtype = t;
    e->op = op;
    e->n_args = n;
    e->arg = arena_copy(a, arg, n * sizeof *arg);
    return e;
}

Expr *expr_cast(Arena *a, const Expr *e, DType t)
{
    if (e->dtype == t) {
        return (Expr *)(uintptr_t)e;
    }
    return expr_op(a, OP_CAST, t, 1, &e);
}

uint32_t arg_rank(const Kernel *k, const Arg *arg)
{
    return arg->whole == DTYPE_NONE ? k->bufs.at[arg->buf].rank : arg->whole_rank;
}

void arg_set_whole(Arena *a, Arg *arg, DType whole, uint32_t rank)
{
    arg->whole = whole;
    arg->whole_rank = rank;
    if (arg->shape != NULL) {
        Dim *shape = ARENA_ARRAY(a, arg->rank + 1, Dim);
        for (uint32_t d = 0; d < arg->rank; d++) {
            shape[d] = arg->shape[d];
        }
        shape[arg->rank] = dim_fixed(2);
        arg->whole_rank = arg->rank++;
        arg->shape = shape;
    }
}

void buffer_set_pairs(Arena *a, Buffer *b)
{
    uint32_t rank = b->rank == 0 ? 1 : b->rank;
    Dim *extent = ARENA_ARRAY(a, rank + 1, Dim);
    for (uint32_t d = 0; d < rank; d++) {
        extent[d] = b->rank == 0 ? dim_fixed(1) : b->extent[d];
    }
    extent[rank] = dim_fixed(2);
    b->extent = extent;
    b->rank = rank + 1;
}

const Affine *pair_at(Arena *a, uint32_t rank, const Affine *at, Affine part)
{
    uint32_t n = 0;
    Affine *out = ARENA_ARRAY(a, rank + 2, Affine);
    for (uint32_t d = 0; d < rank; d++) {
        out[n++] = at[d];
    }
    if (rank == 0) {
        out[n++] = affine_const(0);
    }
    out[n] = part;
    return out;
}

bool arg_fits(const Kernel *k, const Arg *arg)
{
    const Buffer *b = &k->bufs.at[arg->buf];
    DType whole = arg->whole == DTYPE_NONE ? b->dtype : arg->whole;
    uint32_t rank = arg_rank(k, arg);
    bool fits =
        arg->shape != NULL
            ? arg->symmetry == NULL && dims_same_elements(k->arena, &k->dims, arg->rank,
                                                          arg->shape, b->rank, b->extent)
            : rank <= b->rank &&
                  symmetry_problem(k->arena, whole, rank, b->extent, arg->symmetry) == NULL;
    if (!fits) {
        return false;
    }
    if (arg->whole == DTYPE_NONE) {
        return arg->whole_rank == 0;
    }
    bool words = arg->whole == DTYPE_F64 && arg->role == ARG_RESULT;
    bool typed = ((arg->whole == DTYPE_C64 || words) && b->dtype == DTYPE_F32) ||
                 (arg->whole == DTYPE_C128 && b->dtype == DTYPE_F64) ||
                 (arg->whole == DTYPE_I64 && b->dtype == DTYPE_I32);
    if (!typed || b->rank == 0 || !dim_is(b->extent[b->rank - 1], 2)) {
        return false;
    }
    if (arg->shape != NULL) {
        return arg->whole_rank + 1 == arg->rank && dim_is(arg->shape[arg->whole_rank], 2);
    }
    return arg->whole_rank == 0 ? b->rank == 2 && dim_is(b->extent[0], 1)
                                : arg->whole_rank + 1 == b->rank;
}

DType buffer_stored(const Buffer *b)
{
    return b->stored == DTYPE_NONE ? b->dtype : b->stored;
}

int64_t buffer_elements(const Buffer *b, uint32_t from)
{
    int64_t n = 1;
    for (uint32_t d = from; d < b->rank; d++) {
        n = sat_mul(n, b->extent[d].n);
    }
    return n;
}

bool buffer_has_parts(const Kernel *k, BufRef buf)
{
    const Buffer *b = &k->bufs.at[buf];
    return b->parts || (b->param >= 0 && k->args.at[b->param].whole != DTYPE_NONE);
}

int64_t kernel_multiply_adds(const Kernel *k, const int64_t *dims)
{
    int64_t count = 0;
    for (uint32_t i = 0; i < k->n_work; i++) {
        int64_t term = 1;
        for (uint32_t f = 0; f < k->work[i].n; f++) {
            Dim d = k->work[i].factor[f];
            term = sat_mul(term, d.sym < 0 ? d.n : dims[d.sym]);
        }
        count = sat_add(count, term);
    }
    return count;
}

bool buffer_is_writable(const Kernel *k, BufRef buf)
{
    int32_t param = k->bufs.at[buf].param;
    return param < 0 || k->args.at[param].role == ARG_INOUT ||
           k->args.at[param].role == ARG_RESULT;
}
