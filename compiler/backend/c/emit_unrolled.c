/* SPDX-License-Identifier: Apache-2.0 */
/* Statements of a register tile that are unrolled. Their text is one for all instruction sets: a vector is of the type TDSL_V, of TDSL_L
 * lanes, which are parameters of the macro that the tile's function is (emit_variants.c). Accumulators are arrays of vectors, which
 * stand in registers once compilers have unrolled the loops over them, as TDSL_EACH tells them:
 *
 *     TDSL_V sums[2][8 / TDSL_L];
 *     TDSL_EACH(u, 2, 1) TDSL_EACH(v, 8, TDSL_L) sums[u][v / TDSL_L] += TDSL_AT(TDSL_V, &A[8 * u + v + k]); */
#include <string.h>

#include "backend/c/emit.h"
#include "backend/c/isa.h"

#define VECTOR_BYTES 64 /* of the widest */

/* ---- vectors ---- */

/* Lanes of the widest vector that rows of so many elements are made of, of numbers; 1: none is. */
static int64_t widest_lanes(DType t, int64_t elements)
{
    int64_t size = dtype_bytes(dtype_part(t)), lanes = VECTOR_BYTES / size;
    int64_t numbers = dtype_is_complex(t) ? 2 * elements : elements;
    while (numbers % lanes != 0) {
        lanes /= 2;
    }
    return lanes * size < 16 ? 1 : lanes;
}

/* The vectors of rows of so many elements, as the function being printed names them. */
typedef struct Row {
    const char *type, *lanes; /* null: there are none */
    TileVector vector;
} Row;

static Row row_vectors(Emitter *e, DType t, int64_t elements)
{
    Arena *a = e->tiles->arena;
    TileVector v = {t, widest_lanes(t, elements)};
    uint32_t i = 0;
    if (v.most == 1) {
        return (Row){NULL, NULL, v};
    }
    if (e->isa != NULL) {
        return (Row){isa_vector(e->tiles, e->isa, v),
                     str_format(a, "%lld", (long long)isa_lanes(e->isa, v)), v};
    }
    while (i < e->vectors.n && (e->vectors.at[i].t != v.t || e->vectors.at[i].most != v.most)) {
        i++;
    }
    if (i == e->vectors.n) {
        vec_push(a, &e->vectors, v);
    }
    return i == 0
               ? (Row){"TDSL_V", "TDSL_L", v}
               : (Row){str_format(a, "TDSL_V%u", i + 1), str_format(a, "TDSL_L%u", i + 1), v};
}

/* ---- one statement ---- */

/* Where it stands: each index is its start and a counter of its name. */
typedef struct Unrolled {
    const Stmt *s;
    Affine *by;   /* [n_index] */
    uint32_t vec; /* the vector index, or n_index */
    Row row;      /* of the vector index */
    DType t;
    bool named; /* loads get names */
} Unrolled;

static const Affine *unrolled_at(Emitter *e, const Unrolled *u, BufRef buf, const Affine *at)
{
    uint32_t rank = e->w.k->bufs.at[buf].rank;
    Affine *out = ARENA_ARRAY(e->w.arena, (size_t)rank + 1, Affine);
    for (uint32_t d = 0; d < rank; d++) {
        out[d] = at[d];
        for (uint32_t i = 0; i < u->s->n_index; i++) {
            out[d] = affine_subst(e->w.arena, out[d], u->s->index[i].var, u->by[i]);
        }
    }
    return out;
}

static bool uses_vector(const Emitter *e, const Unrolled *u, BufRef buf, const Affine *at)
{
    return u->row.type != NULL && access_uses(e->w.k, buf, at, u->s->index[u->vec].var);
}

static bool is_named(const Emitter *e, BufRef buf)
{
    return e->w.k->bufs.at[buf].space == SPACE_ACC && e->w.k->bufs.at[buf].rank > 0;
}

const char *loaded_name(Emitter *e, uint32_t number)
{
    while (e->load_names.n <= number) {
        const char *wish = str_format(e->w.arena, "r%u", e->load_names.n);
        vec_push(e->w.arena, &e->load_names, names_take(&e->w.names, wish));
    }
    return e->load_names.at[number];
}

/* A value that is loaded, where there are more of them under a name of its own, so that equal loads are written once. */
static const char *loaded(Emitter *e, const char *type, const char *text)
{
    for (uint32_t i = 0; i < e->loads.n; i++) {
        if (strcmp(e->loads.at[i].text, text) == 0) {
            return e->loads.at[i].name;
        }
    }
    const char *name = loaded_name(e, e->loads.n);
    vec_push(e->w.arena, &e->loads, ((Temp){text, name}));
    line_printf(&e->w, "const %s %s = %s;", type, name, text);
    return name;
}

/* The macros of complex numbers are used for these vectors, of each instruction set. */
static void pairs_use(Emitter *e, const Row *row)
{
    for (uint32_t r = 0; r < ISA_COUNT; r++) {
        if (isa_table[r].vector_bytes > 0) {
            pairs_note(e->tiles, dtype_part(row->vector.t),
                       isa_lanes(&isa_table[r], row->vector));
        }
    }
}

/* An element of a named accumulator, or the vector that it stands in. */
static const char *acc_text(Emitter *e, BufRef buf, const Affine *at, bool vector)
{
    const Buffer *b = &e->w.k->bufs.at[buf];
    Row row = row_vectors(e, b->dtype, b->extent[b->rank - 1].n);
    Text t;
    text_init(&t, e->w.arena);
    text_put(&t, e->w.buf[buf]);
    for (uint32_t d = 0; d + 1 < b->rank; d++) {
        text_printf(&t, "[%s]", affine_text(&e->w, at[d], BIND_LOOSE));
    }
    const char *last = affine_text(&e->w, at[b->rank - 1], BIND_PRODUCT);
    if (row.type == NULL) {
        text_printf(&t, "[%s]", last);
        return t.at;
    }
    const char *twice = dtype_is_complex(b->dtype) ? "2 * " : "";
    text_printf(&t, "[%s%s / %s]", twice, last, row.lanes);
    if (vector) {
        return t.at;
    }
    const char *lane = str_format(e->w.arena, "%s%s %% %s", twice, last, row.lanes);
    if (!dtype_is_complex(b->dtype)) {
        return str_format(e->w.arena, "TDSL_LANE(%s, %s)", t.at, lane);
    }
    pairs_use(e, &row);
    return str_format(e->w.arena, "TDSL_NUMBER(%s, %s, %s)", help_make(e->w.help, b->dtype),
                      t.at, lane);
}

static VectorText part_load(Emitter *e, const Unrolled *u, const Expr *x)
{
    const Affine *at = unrolled_at(e, u, x->buf, x->at);
    bool vector = uses_vector(e, u, x->buf, x->at);
    if (is_named(e, x->buf)) {
        return (VectorText){{acc_text(e, x->buf, at, vector), BIND_ATOM}, vector};
    }
    const char *type = vector ? u->row.type : element_type(x->dtype);
    const char *text = element_text(&e->w, x->buf, at);
    bool cast = !vector && dtype_is_int(x->dtype);
    if (vector) {
        text = vector_at(e->w.arena, type, str_format(e->w.arena, "&%s", text));
    } else if (cast) {
        text = str_format(e->w.arena, "(%s)%s", type, text);
    }
    bool name = u->named && (vector || cast || !e->w.scalar[x->buf]);
    return (VectorText){
        {name ? loaded(e, type, text) : text, cast && !name ? BIND_UNARY : BIND_ATOM}, vector};
}

static VectorText part_expr(Emitter *e, const Unrolled *u, const Expr *x);

/* ---- vectors of complex numbers: real and imaginary parts by turns ---- */

/* The value under a name, if it has none yet: it is read twice. */
static const char *named_text(Emitter *e, const char *type, const char *text)
{
    return strpbrk(text, " ([") == NULL ? text : loaded(e, type, text);
}

/* A vector in which all elements are `x`. */
static const char *complex_spread(Emitter *e, const Unrolled *u, const char *x)
{
    const char *one = named_text(e, c_type(u->t), x);
    pairs_use(e, &u->row);
    return str_format(e->w.arena, "((%s)TDSL_BY_TURNS(%s, %s(%s), %s(%s)))", u->row.type,
                      u->row.type, help_part(e->w.help, u->t, false), one,
                      help_part(e->w.help, u->t, true), one);
}

/* re(a) b + im(a) i b, where at least b is a vector. */
static const char *complex_product(Emitter *e, const Unrolled *u, VectorText a, const char *b)
{
    const char *type = u->row.type, *part[2];
    const char *of = named_text(e, a.vector ? type : c_type(u->t), a.text.at);
    b = named_text(e, type, b);
    pairs_use(e, &u->row);
    for (int i = 0; i < 2; i++) {
        part[i] =
            a.vector ? str_format(e->w.arena, "TDSL_%s(%s, %s)", i == 0 ? "RE" : "IM", type, of)
                     : str_format(e->w.arena, "%s(%s)", help_part(e->w.help, u->t, i == 1), of);
    }
    return str_format(e->w.arena, "%s * %s + %s * TDSL_TIMES_I(%s, %s)", part[0], b, part[1],
                      type, b);
}

static VectorText complex_op(Emitter *e, const Unrolled *u, const Expr *x)
{
    DType t = x->dtype;
    VectorText a = part_expr(e, u, x->arg[0]);
    VectorText b = x->n_args > 1 ? part_expr(e, u, x->arg[1]) : a;
    if (!a.vector && !b.vector) {
        const char *f = help_op(e->w.help, x->op, t, t);
        return (VectorText){{x->n_args > 1
                                 ? str_format(e->w.arena, "%s(%s, %s)", f, a.text.at, b.text.at)
                                 : str_format(e->w.arena, "%s(%s)", f, a.text.at),
                             BIND_ATOM},
                            false};
    }
    const char *va = a.vector ? in_parens(&e->w, a.text, BIND_ATOM) : NULL;
    const char *vb = b.vector ? in_parens(&e->w, b.text, BIND_ATOM) : NULL;
    switch ((int)x->op) {
    case OP_NEG:
        return (VectorText){{str_format(e->w.arena, "-%s", va), BIND_UNARY}, true};
    case OP_CONJ:
        pairs_use(e, &u->row);
        return (VectorText){
            {str_format(e->w.arena, "TDSL_CONJ(%s, %s)", u->row.type, a.text.at), BIND_ATOM},
            true};
    case OP_MUL:
        return (VectorText){
            {vb != NULL ? complex_product(e, u, a, vb) : complex_product(e, u, b, va),
             BIND_SUM},
            true};
    default: /* a sum or a difference */
        CHECK(x->op == OP_ADD || x->op == OP_SUB);
        return (VectorText){{str_format(e->w.arena, "%s %s %s",
                                        va != NULL ? va : complex_spread(e, u, a.text.at),
                                        x->op == OP_ADD ? "+" : "-",
                                        vb != NULL ? vb : complex_spread(e, u, b.text.at)),
                             BIND_SUM},
                            true};
    }
}

static VectorText part_op(Emitter *e, const Unrolled *u, const Expr *x)
{
    if (dtype_is_complex(x->dtype)) {
        return complex_op(e, u, x);
    }
    VectorText a = part_expr(e, u, x->arg[0]);
    VectorText b = x->n_args > 1 ? part_expr(e, u, x->arg[1]) : a;
    return vector_arithmetic(&e->w, x->op, a, b);
}

/* As deep as expressions may be; verify has seen that there is nothing else in them. */
static VectorText part_expr(Emitter *e, const Unrolled *u, const Expr *x)
{
    switch (x->kind) {
    case EXPR_CONST: {
        const char *text = number_text(&e->w, x->value);
        if (dtype_is_int(x->dtype)) {
            text = str_format(e->w.arena, "(%s)%s", element_type(x->dtype), text);
        }
        return (VectorText){{text, text[0] == '-' || text[0] == '(' ? BIND_UNARY : BIND_ATOM},
                            false};
    }
    case EXPR_EXTENT:
        return (VectorText){
            {str_format(e->w.arena, "(%s)%s", element_type(x->dtype), e->w.dim[x->dim]),
             BIND_UNARY},
            false};
    case EXPR_INDEX: /* verify has seen that there is none */
        break;
    case EXPR_LOAD:
        return part_load(e, u, x);
    case EXPR_OP:
        return part_op(e, u, x);
    }
    UNREACHABLE();
}

/* What is assigned to. */
static const char *part_target(Emitter *e, const Unrolled *u)
{
    const Stmt *s = u->s;
    const Affine *at = unrolled_at(e, u, s->dst, s->at);
    if (is_named(e, s->dst)) {
        return acc_text(e, s->dst, at, u->row.type != NULL);
    }
    const char *element = element_text(&e->w, s->dst, at);
    return u->row.type == NULL
               ? element
               : vector_to(e->w.arena, u->row.type, str_format(e->w.arena, "&%s", element));
}

/* A value that is no vector, as one. */
static const char *spread_text(Emitter *e, const Unrolled *u, CText value)
{
    const Expr *x = u->s->value;
    bool zero = x->kind == EXPR_CONST && number_is_zero(x->value);
    return !zero && dtype_is_complex(u->t)
               ? complex_spread(e, u, value.at)
               : vector_spread(e->w.arena, u->row.type,
                               zero ? NULL : in_parens(&e->w, value, BIND_PRODUCT));
}

/* A signed element among unsigned arithmetic. */
static const char *narrow_text(Emitter *e, const Unrolled *u, const char *target, CText value)
{
    const char *type = element_type(u->t);
    if (u->s->fold == OP_COPY) {
        return str_format(e->w.arena, "%s = (%s)(%s);", target, c_type(u->t), value.at);
    }
    return str_format(e->w.arena, "%s = (%s)((%s)%s %s %s);", target, c_type(u->t), type,
                      target, u->s->fold == OP_SUM ? "+" : "*",
                      in_parens(&e->w, value, BIND_UNARY));
}

/* The assignment; what it loads under names is printed before. */
static const char *assign_text(Emitter *e, const Unrolled *u)
{
    const Stmt *s = u->s;
    Arena *a = e->w.arena;
    bool vector = u->row.type != NULL;
    VectorText value = part_expr(e, u, s->value);
    const char *text = vector && !value.vector ? spread_text(e, u, value.text) : value.text.at;
    const char *target = part_target(e, u);
    if (dtype_is_complex(u->t) && !vector && s->fold == OP_SUM) {
        return str_format(a, "%s = %s(%s, %s);", target, help_op(e->w.help, OP_ADD, u->t, u->t),
                          target, text);
    }
    if (!vector && dtype_is_int(u->t) && !is_named(e, s->dst)) {
        return narrow_text(e, u, target, value.text);
    }
    if (!vector && (s->fold == OP_RMIN || s->fold == OP_RMAX)) {
        CText folded = fold_text(&e->w, s->fold, u->t, (CText){target, BIND_ATOM}, value.text);
        return str_format(a, "%s = %s;", target, folded.at);
    }
    return vector_fold(a, e->w.help, s->fold, u->row.type, target, text);
}

static bool loads_many(const Emitter *e, const Stmt *s)
{
    ExprWalk w;
    uint32_t n = 0;
    for (const Expr *x = load_first(&w, s->value); x != NULL; x = load_next(&w)) {
        n += is_named(e, x->buf) ? 0 : 1;
    }
    return n > 1;
}

/* Positions of the indices, and the loops over those that have more than one. */
static const char *loops_text(Emitter *e, Unrolled *u)
{
    const Stmt *s = u->s;
    Arena *a = e->w.arena;
    Text t;
    text_init(&t, a);
    for (uint32_t i = 0; i < s->n_index; i++) {
        Range r = s->index[i].range;
        u->by[i] = r.start;
        if (r.span > 1) {
            bool vector = i == u->vec && u->row.type != NULL;
            u->by[i] = affine_add(a, r.start, 1, affine_var(a, s->index[i].var));
            text_printf(&t, "TDSL_EACH(%s, %lld, %s%s) ", e->w.var[s->index[i].var],
                        (long long)r.span, vector ? u->row.lanes : "1",
                        vector && dtype_is_complex(u->t) ? " / 2" : "");
        }
    }
    return t.at;
}

void unrolled_emit(Emitter *e, const Stmt *s)
{
    Unrolled u = {.s = s, .vec = s->n_index, .t = e->w.k->bufs.at[s->dst].dtype};
    u.by = ARENA_ARRAY(e->w.arena, (size_t)s->n_index + 1, Affine);
    u.named = dtype_is_complex(u.t) || loads_many(e, s);
    for (uint32_t i = 0; i < s->n_index; i++) {
        if (s->index[i].mode == MODE_VECTOR) {
            u.vec = i;
            u.row = row_vectors(e, u.t, s->index[i].range.span);
        }
    }
    const char *loops = loops_text(e, &u);
    e->loads.n = 0;
    if (!u.named) {
        line_printf(&e->w, "%s%s", loops, assign_text(e, &u));
        return;
    }
    scope_printf(&e->w, "%s{", loops);
    line_put(e->w.out, assign_text(e, &u));
    scope_end(&e->w);
}

bool is_unrolled(const Stmt *s)
{
    for (uint32_t i = 0; i < s->n_index; i++) {
        if (s->index[i].mode == MODE_UNROLL || s->index[i].mode == MODE_VECTOR) {
            return true;
        }
    }
    return false;
}

void acc_declare(Emitter *e, BufRef buf)
{
    const Buffer *b = &e->w.k->bufs.at[buf];
    int64_t extent = b->extent[b->rank - 1].n;
    Text t;
    text_init(&t, e->w.arena);
    for (uint32_t d = 0; d + 1 < b->rank; d++) {
        text_printf(&t, "[%lld]", (long long)b->extent[d].n);
    }
    Row row = row_vectors(e, b->dtype, extent);
    if (row.type == NULL) {
        line_printf(&e->w, "%s %s%s[%lld];", element_type(b->dtype), e->w.buf[buf], t.at,
                    (long long)extent);
        return;
    }
    line_printf(&e->w, "%s %s%s[%lld / %s];", row.type, e->w.buf[buf], t.at,
                (long long)(dtype_is_complex(b->dtype) ? 2 * extent : extent), row.lanes);
}
