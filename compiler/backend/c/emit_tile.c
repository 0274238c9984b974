/* SPDX-License-Identifier: Apache-2.0 */
/* Register tiles that are no products (emit_product.c). The statements that use an accumulator of rank >= 1 become a
 * function, in which each vector of the accumulator is a variable with a name. It is printed once for each width of
 * vectors that an instruction set has, and once as plain C. */
#include <string.h>

#include "backend/c/emit.h"
#include "backend/c/isa.h"

/* ---- vectors and their parts ---- */

const char *element_type(DType t)
{
    return t == DTYPE_I32 ? "uint32_t" : t == DTYPE_I64 ? "uint64_t" : c_type(t);
}

int64_t vector_part(int64_t bytes, DType t, int64_t span)
{
    int64_t size = dtype_bytes(t);
    for (; bytes >= 16; bytes /= 2) {
        if (bytes / size <= span) {
            return bytes / size;
        }
    }
    return 1;
}

/* Lanes of the part that starts at `at` of `span` lanes. */
static int64_t part_lanes(const Emitter *e, DType t, int64_t at, int64_t span)
{
    return vector_part(e->vector_bytes, t, span - at);
}

static uint32_t log2_of(int64_t n)
{
    uint32_t k = 0;
    while (n > 1) {
        n /= 2;
        k++;
    }
    return k;
}

const char *vector_type(Helpers *h, DType t, int64_t lanes)
{
    if (dtype_is_complex(t)) {
        return vector_type(h, dtype_part(t), 2 * lanes);
    }
    uint32_t row = t == DTYPE_F32 ? 0 : t == DTYPE_F64 ? 1 : t == DTYPE_I32 ? 2 : 3;
    h->vectors |= 1u << (row * 8 + log2_of(lanes));
    return str_format(h->arena, "tdsl_%sx%lld", dtype_name(t), (long long)lanes);
}

static const char *part_type(Emitter *e, DType t, int64_t lanes)
{
    return lanes == 1 ? element_type(t) : vector_type(e->w.help, t, lanes);
}

static void vector_types_emit(const Helpers *h, Text *out)
{
    static const DType types[4] = {DTYPE_F32, DTYPE_F64, DTYPE_I32, DTYPE_I64};
    text_put(out,
             "\n/* Vectors; V_at is V as it stands in arrays, aligned as its elements are. */\n"
             "#if !(TDSL_ROWS & TDSL_ISA_plain)\n"
             "#define TDSL_VECTOR(T, V, BYTES) \\\n"
             "    typedef T V __attribute__((vector_size(BYTES))); \\\n"
             "    typedef T V##_at __attribute__((vector_size(BYTES), aligned(sizeof(T)), "
             "may_alias));\n");
    for (uint32_t bit = 0; bit < 32; bit++) {
        if ((h->vectors >> bit & 1u) == 0) {
            continue;
        }
        DType t = types[bit / 8];
        long long lanes = 1ll << (bit % 8), size = (long long)dtype_bytes(t);
        text_printf(out, "TDSL_VECTOR(%s, tdsl_%sx%lld, %lld)\n", element_type(t),
                    dtype_name(t), lanes, lanes * size);
    }
    text_put(out, "#define TDSL_AT(T, p) (*(const T##_at *)(const void *)(p))\n"
                  "#define TDSL_TO(T, p) (*(T##_at *)(void *)(p))\n");
    text_put(
        out,
        "/* Loaded once, into a register: compilers would read it again for each product. */\n"
        "#if defined(TDSL_HOLD)\n#elif defined(__x86_64__)\n#define TDSL_HOLD(x) __asm__(\"\" "
        ": \"+v\"(x))\n"
        "#elif defined(__aarch64__)\n#define TDSL_HOLD(x) __asm__(\"\" : \"+w\"(x))\n"
        "#else\n#define TDSL_HOLD(x) (void)(x)\n#endif\n");
    folds_emit(h, out);
    text_put(out, "#endif\n");
}

static const char about_rows[] =
    "\n/* Functions of register tiles are there for each of these instruction sets that the "
    "compiler "
    "has, and what the\n"
    " * processor has is found at the first call; TDSL_ISA (-DTDSL_ISA=avx2) takes one "
    "without asking. */\n";

static const char about_choice[] =
    "#define TDSL_PASTE_(x, y) x##y\n#define TDSL_PASTE(x, y) TDSL_PASTE_(x, y)\n"
    "#if defined(TDSL_ISA)\n#define TDSL_ROWS TDSL_PASTE(TDSL_ISA_, TDSL_ISA)\n#else\n"
    "#define TDSL_ROWS (TDSL_ISA_vectors | TDSL_ISA_avx2 | TDSL_ISA_avx512%s)\n#endif\n"
    "#if TDSL_ROWS == 0\n#error \"TDSL_ISA is none of plain, vectors, neon, avx2, avx512%s\"\n"
    "#endif\n";

/* `optimize` and the pragma say it to compilers that do not contract, or not across statements, by themselves. What is
 * left of loops over elements in a tile is not made vectors: gcc 12 with 64-byte vectors loads past the last of them. They begin
 * at a line, so that how fast they are does not depend on what stands before them. */
static const char about_tiles[] =
    "\n/* Register tiles: products are fused multiply-adds where there are any, whatever -std "
    "and "
    "-ffp-contract say, but\n * not with TDSL_NO_FMA. */\n"
    "#if defined(TDSL_NO_FMA)\n#define TDSL_FP_CONTRACT off\n#else\n"
    "#define TDSL_FP_CONTRACT fast\n#endif\n"
    "#define TDSL_TEXT_(x) #x\n#define TDSL_TEXT(x) TDSL_TEXT_(x)\n"
    "#if defined(__clang__)\n#define TDSL_TILE __attribute__((aligned(64)))\n"
    "#define TDSL_CONTRACT _Pragma(TDSL_TEXT(clang fp contract(TDSL_FP_CONTRACT)))\n"
    "#elif defined(__GNUC__)\n"
    "#define TDSL_TILE \\\n"
    "    __attribute__((aligned(64), optimize(TDSL_TEXT(fp-contract=TDSL_FP_CONTRACT), "
    "\"no-tree-loop-vectorize\")))\n"
    "#define TDSL_CONTRACT\n#else\n#define TDSL_TILE\n#define TDSL_CONTRACT\n#endif\n";

/* Where one of them is taken, the row that it stands on has functions of other tiles alone. */
static const char about_dots[] =
    "#if defined(TDSL_ISA) && TDSL_ROWS >= 32\n#define TDSL_ONLY_DOTS 1\n#else\n#define "
    "TDSL_ONLY_DOTS 0\n#endif\n";

static const char about_lanes[] =
    "\n/* Loops that compilers make vectors of: nothing is contracted, so that a position has "
    "the same bits in each of\n * these instruction sets, wherever it stands in a vector. */\n"
    "#if defined(__clang__)\n#define TDSL_LANES\n"
    "#define TDSL_EXACT _Pragma(\"clang fp contract(off)\")\n"
    "#elif defined(__GNUC__)\n"
    "#define TDSL_LANES \\\n    __attribute__((optimize(\"O3\", \"fp-contract=off\", "
    "\"no-trapping-math\", \"no-math-errno\")))\n"
    "#define TDSL_EXACT\n#else\n#define TDSL_LANES\n#define TDSL_EXACT\n#endif\n";

/* Rows of dot products: numbers behind those of the others, and which of them the compiler has. */
static void dot_names_emit(Text *out)
{
    const char *plus = "";
    Text all;
    text_init(&all, out->arena);
    for (uint32_t d = 0; d < ISA_DOT_COUNT; d++) {
        const IsaDotRow *row = &isa_dot_table[d];
        const char *name = row->isa.name;
        text_printf(
            out, "#define TDSL_DOTS_%s %u\n#define TDSL_ISA_%s (TDSL_DOTS_%s | TDSL_ISA_%s)\n",
            name, 1u << (ISA_COUNT + d), name, name, isa_table[row->base].name);
        if (row->compiler != NULL) {
            text_printf(out,
                        "#if %s\n#define TDSL_HAS_%s TDSL_DOTS_%s\n#else\n#define TDSL_HAS_%s "
                        "0\n#endif\n",
                        row->compiler, name, name, name);
            text_printf(&all, "%sTDSL_HAS_%s", plus, name);
            plus = " | ";
        }
    }
    text_printf(out, "#define TDSL_DOT_ROWS (%s)\n", all.at);
}

static void isa_attribute_emit(const Isa *isa, Text *out)
{
    text_printf(
        out, isa->attribute[0] != '\0' ? "#define TDSL_FOR_%s %s\n" : "#define TDSL_FOR_%s%s\n",
        isa->name, isa->attribute);
}

/* The instruction set that the compiler says there is, if it is a row and says so. */
static void promise_emit(const Isa *isa, const char **word, Text *out)
{
    if (isa != NULL && isa->promised != NULL) {
        text_printf(out, "%s %s\n#define TDSL_ISA %s\n", *word, isa->promised, isa->name);
        *word = "#elif";
    }
}

void isa_names_emit(const Tiles *t, Text *out, const char *functions)
{
    if (strstr(functions, "TDSL_LANES") != NULL) {
        text_put(out, about_lanes);
    }
    if (t->shapes.n == 0 && t->fold_names.n == 0 && !t->turns) {
        return;
    }
    bool dots = tiles_have_dots(t);
    text_put(out, about_rows);
    for (uint32_t r = 0; r < ISA_COUNT; r++) {
        text_printf(out, "#define TDSL_ISA_%s %u\n", isa_table[r].name, 1u << r);
    }
    const char *word = "#if";
    if (dots) {
        dot_names_emit(out);
    }
    text_put(out, "#if !defined(TDSL_ISA)\n");
    for (uint32_t i = 0; i < ISA_COUNT; i++) {
        uint32_t r = i == 0 ? 0 : ISA_COUNT - i; /* plain C, else the best */
        for (uint32_t d = 0; dots && d < ISA_DOT_COUNT; d++) {
            promise_emit(isa_dot_table[d].base == r ? &isa_dot_table[d].isa : NULL, &word, out);
        }
        promise_emit(&isa_table[r], &word, out);
    }
    text_put(out, "#endif\n#endif\n");
    text_printf(out, about_choice, dots ? " | TDSL_DOT_ROWS" : "",
                dots ? ", dotprod, avxvnni, avx512vnni" : "");
    text_put(out, dots ? about_dots : "");
    for (uint32_t r = 0; r < ISA_COUNT; r++) {
        isa_attribute_emit(&isa_table[r], out);
    }
    for (uint32_t d = 0; dots && d < ISA_DOT_COUNT; d++) {
        isa_attribute_emit(&isa_dot_table[d].isa, out);
    }
    if (strstr(functions, "TDSL_TILE ") != NULL) {
        text_put(out, about_tiles);
    }
    vector_types_emit(t->help, out);
    pairs_emit(t, out);
}

/* ---- one statement, unrolled ---- */

/* Where an unrolled statement stands: indices replaced by numbers or positions. */
typedef struct Unrolled {
    const Stmt *s;
    Affine *by;    /* [n_index] */
    uint32_t vec;  /* the vector index, or n_index */
    int64_t lanes; /* of the part, 1 without a vector index */
    DType t;
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
    for (uint32_t d = 0; u->vec < u->s->n_index && d < e->w.k->bufs.at[buf].rank; d++) {
        if (affine_uses(at[d], u->s->index[u->vec].var)) {
            return true;
        }
    }
    return false;
}

/* The variable that holds accumulator elements [.., from, from + lanes). */
static const char *part_name(Emitter *e, BufRef buf, int64_t row, int64_t from)
{
    uint64_t key = (uint64_t)buf << 32 | (uint64_t)(row << 16 | from);
    uint32_t at = 0;
    if (!map_get(&e->part_at, key, &at)) {
        at = e->part_names.n;
        map_put(&e->part_at, key, at);
        const char *name =
            e->w.k->bufs.at[buf].rank == 1
                ? str_format(e->w.arena, "%s_%lld", e->w.buf[buf], (long long)from)
                : str_format(e->w.arena, "%s_%lld_%lld", e->w.buf[buf], (long long)row,
                             (long long)from);
        vec_push(e->w.arena, &e->part_names, names_take(&e->w.names, name));
    }
    return e->part_names.at[at];
}

/* An element, or a part, of a named accumulator. All positions are numbers by now. */
static const char *acc_text(Emitter *e, BufRef buf, const Affine *at)
{
    const Buffer *b = &e->w.k->bufs.at[buf];
    int64_t row = 0, last = at[b->rank - 1].base, extent = b->extent[b->rank - 1].n, from = 0;
    for (uint32_t d = 0; d < b->rank; d++) {
        CHECK(at[d].n == 0);
        row = d + 1 < b->rank ? row * b->extent[d].n + at[d].base : row;
    }
    int64_t lanes = part_lanes(e, b->dtype, from, extent);
    while (from + lanes <= last) {
        from += lanes;
        lanes = part_lanes(e, b->dtype, from, extent);
    }
    const char *name = part_name(e, buf, row, from);
    e->acc_lane = lanes > 1 ? last - from : -1;
    return name;
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

/* A loaded value under a name of its own, so that equal loads are written once. */
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

static const char *lane_text(Emitter *e, DType t, const char *vector, int64_t lane)
{
    if (!dtype_is_complex(t)) {
        return str_format(e->w.arena, "%s[%lld]", vector, (long long)lane);
    }
    const char *make =
        help_fixed(e->w.help, t == DTYPE_C64 ? "tdsl_make_c64" : "tdsl_make_c128");
    return str_format(e->w.arena, "%s(%s[%lld], %s[%lld])", make, vector, (long long)(2 * lane),
                      vector, (long long)(2 * lane + 1));
}

/* The value of a part: text, and whether it is a vector. */
typedef struct PartText {
    CText text;
    bool vector;
} PartText;

static PartText part_load(Emitter *e, const Unrolled *u, const Expr *x)
{
    const Affine *at = unrolled_at(e, u, x->buf, x->at);
    bool vector = uses_vector(e, u, x->buf, x->at) && u->lanes > 1;
    const char *type = element_type(x->dtype);
    if (is_named(e, x->buf)) {
        const char *name = acc_text(e, x->buf, at);
        bool lane = !vector && e->acc_lane >= 0;
        return (PartText){{lane ? lane_text(e, x->dtype, name, e->acc_lane) : name, BIND_ATOM},
                          vector};
    }
    const char *element = element_text(&e->w, x->buf, at);
    if (vector) {
        const char *part = part_type(e, x->dtype, u->lanes);
        const char *text = str_format(e->w.arena, "TDSL_AT(%s, &%s)", part, element);
        return (PartText){{loaded(e, part, text), BIND_ATOM}, true};
    }
    bool cast = dtype_is_int(x->dtype);
    const char *text = cast ? str_format(e->w.arena, "(%s)%s", type, element) : element;
    return (PartText){
        {e->w.scalar[x->buf] && !cast ? element : loaded(e, type, text), BIND_ATOM}, false};
}

static PartText part_expr(Emitter *e, const Unrolled *u, const Expr *x);

/* ---- vectors of complex numbers: real and imaginary parts by turns ---- */

/* The value under a name, if it has none yet: it is read twice. */
static const char *named_text(Emitter *e, const char *type, const char *text)
{
    return strpbrk(text, " ([") == NULL ? text : loaded(e, type, text);
}

/* A vector in which all elements are `x`. */
static const char *complex_spread(Emitter *e, const Unrolled *u, DType t, const char *x)
{
    const char *one = named_text(e, c_type(t), x);
    Text all;
    text_init(&all, e->w.arena);
    for (int64_t i = 0; i < u->lanes; i++) {
        text_printf(&all, "%s%s(%s), %s(%s)", i > 0 ? ", " : "", help_part(e->w.help, t, false),
                    one, help_part(e->w.help, t, true), one);
    }
    return str_format(e->w.arena, "((%s){%s})", part_type(e, t, u->lanes), all.at);
}

/* re(a) b + im(a) i b, where at least b is a vector. */
static const char *complex_product(Emitter *e, const Unrolled *u, DType t, PartText a,
                                   const char *b)
{
    const char *type = pairs_type(e->tiles, dtype_part(t), 2 * u->lanes);
    const char *part[2];
    const char *vector = part_type(e, t, u->lanes);
    const char *of = named_text(e, a.vector ? vector : c_type(t), a.text.at);
    b = named_text(e, vector, b);
    for (int i = 0; i < 2; i++) {
        part[i] = a.vector
                      ? str_format(e->w.arena, "TDSL_%s_%s(%s)", i == 0 ? "RE" : "IM", type, of)
                      : str_format(e->w.arena, "%s(%s)", help_part(e->w.help, t, i == 1), of);
    }
    return str_format(e->w.arena, "%s * %s + %s * TDSL_TIMES_I_%s(%s)", part[0], b, part[1],
                      type, b);
}

static PartText complex_op(Emitter *e, const Unrolled *u, const Expr *x)
{
    DType t = x->dtype;
    PartText a = part_expr(e, u, x->arg[0]);
    PartText b = x->n_args > 1 ? part_expr(e, u, x->arg[1]) : a;
    if (!a.vector && !b.vector) {
        const char *f = help_op(e->w.help, x->op, t, t);
        return (PartText){{x->n_args > 1
                               ? str_format(e->w.arena, "%s(%s, %s)", f, a.text.at, b.text.at)
                               : str_format(e->w.arena, "%s(%s)", f, a.text.at),
                           BIND_ATOM},
                          false};
    }
    const char *va = a.vector ? in_parens(&e->w, a.text, BIND_ATOM) : NULL;
    const char *vb = b.vector ? in_parens(&e->w, b.text, BIND_ATOM) : NULL;
    switch ((int)x->op) {
    case OP_NEG:
        return (PartText){{str_format(e->w.arena, "-%s", va), BIND_UNARY}, true};
    case OP_CONJ:
        return (PartText){
            {str_format(e->w.arena, "TDSL_CONJ_%s(%s)",
                        pairs_type(e->tiles, dtype_part(t), 2 * u->lanes), a.text.at),
             BIND_ATOM},
            true};
    case OP_MUL:
        return (PartText){
            {vb != NULL ? complex_product(e, u, t, a, vb) : complex_product(e, u, t, b, va),
             BIND_SUM},
            true};
    default: /* a sum or a difference */
        CHECK(x->op == OP_ADD || x->op == OP_SUB);
        return (PartText){{str_format(e->w.arena, "%s %s %s",
                                      va != NULL ? va : complex_spread(e, u, t, a.text.at),
                                      x->op == OP_ADD ? "+" : "-",
                                      vb != NULL ? vb : complex_spread(e, u, t, b.text.at)),
                           BIND_SUM},
                          true};
    }
}

static PartText part_op(Emitter *e, const Unrolled *u, const Expr *x)
{
    if (dtype_is_complex(x->dtype)) {
        return complex_op(e, u, x);
    }
    PartText a = part_expr(e, u, x->arg[0]);
    if (x->op == OP_NEG) {
        return (PartText){
            {str_format(e->w.arena, "-%s", in_parens(&e->w, a.text, BIND_ATOM)), BIND_UNARY},
            a.vector};
    }
    PartText b = part_expr(e, u, x->arg[1]);
    bool product = x->op == OP_MUL || x->op == OP_DIV;
    const char *sign = x->op == OP_ADD   ? "+"
                       : x->op == OP_SUB ? "-"
                       : x->op == OP_MUL ? "*"
                                         : "/";
    const char *text = str_format(
        e->w.arena, "%s %s %s", in_parens(&e->w, a.text, product ? BIND_PRODUCT : BIND_SUM),
        sign, in_parens(&e->w, b.text, product ? BIND_UNARY : BIND_PRODUCT));
    return (PartText){{text, product ? BIND_PRODUCT : BIND_SUM}, a.vector || b.vector};
}

/* As deep as expressions may be; verify has seen that there is nothing else in them. */
static PartText part_expr(Emitter *e, const Unrolled *u, const Expr *x)
{
    switch (x->kind) {
    case EXPR_CONST: {
        const char *text = number_text(&e->w, x->value);
        if (dtype_is_int(x->dtype)) {
            text = str_format(e->w.arena, "(%s)%s", element_type(x->dtype), text);
        }
        return (PartText){{text, text[0] == '-' || text[0] == '(' ? BIND_UNARY : BIND_ATOM},
                          false};
    }
    case EXPR_EXTENT:
        return (PartText){
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

/* The part as something that can be assigned. */
static const char *part_target(Emitter *e, const Unrolled *u)
{
    const Stmt *s = u->s;
    const Affine *at = unrolled_at(e, u, s->dst, s->at);
    if (is_named(e, s->dst)) {
        return acc_text(e, s->dst, at);
    }
    const char *element = element_text(&e->w, s->dst, at);
    if (u->lanes == 1) {
        return element;
    }
    return str_format(e->w.arena, "TDSL_TO(%s, &%s)", part_type(e, u->t, u->lanes), element);
}

/* Adds the part's assignment to `row`; what it loads is printed at once. */
static void part_emit(Emitter *e, const Unrolled *u, Text *row)
{
    const Stmt *s = u->s;
    PartText value = part_expr(e, u, s->value);
    const char *text = value.text.at;
    const char *target = part_target(e, u);
    if (u->lanes > 1 && !value.vector) {
        bool zero = s->value->kind == EXPR_CONST && number_is_zero(s->value->value);
        text = !zero && dtype_is_complex(u->t)
                   ? complex_spread(e, u, u->t, text)
                   : str_format(e->w.arena, zero ? "(%s){0}" : "(%s){0} + %s",
                                part_type(e, u->t, u->lanes),
                                in_parens(&e->w, value.text, BIND_PRODUCT));
    }
    if (dtype_is_complex(u->t) && u->lanes == 1 && s->fold == OP_SUM) {
        text_printf(row, "%s%s = %s(%s, %s);", row->n > 0 ? " " : "", target,
                    help_op(e->w.help, OP_ADD, u->t, u->t), target, text);
        return;
    }
    bool narrow = u->lanes == 1 && dtype_is_int(u->t) && !is_named(e, s->dst);
    if (narrow) { /* a signed element among unsigned arithmetic */
        const char *sign = s->fold == OP_SUM ? "+" : "*";
        const char *old =
            str_format(e->w.arena, "(%s)%s %s ", element_type(u->t), target, sign);
        text_printf(row, "%s%s = (%s)(%s%s);", row->n > 0 ? " " : "", target, c_type(u->t),
                    s->fold == OP_COPY ? "" : old,
                    s->fold == OP_COPY ? text : in_parens(&e->w, value.text, BIND_UNARY));
        return;
    }
    if (s->fold == OP_RMIN || s->fold == OP_RMAX) {
        const char *space = row->n > 0 ? " " : "";
        if (u->lanes > 1) {
            e->w.help->least |= s->fold == OP_RMIN;
            e->w.help->most |= s->fold == OP_RMAX;
            text_printf(row, "%sTDSL_%s(%s, %s, %s);", space,
                        s->fold == OP_RMIN ? "LEAST" : "MOST", part_type(e, u->t, u->lanes),
                        target, text);
        } else {
            CText folded =
                fold_text(&e->w, s->fold, u->t, (CText){target, BIND_ATOM}, value.text);
            text_printf(row, "%s%s = %s;", space, target, folded.at);
        }
        return;
    }
    text_printf(row, "%s%s %s= %s;", row->n > 0 ? " " : "", target,
                s->fold == OP_COPY  ? ""
                : s->fold == OP_SUM ? "+"
                                    : "*",
                text);
}

/* Next combination of the unrolled indices; false after the last. */
static bool unroll_next(const Stmt *s, uint32_t vec, int64_t *at)
{
    for (uint32_t i = s->n_index; i-- > 0;) {
        if (i == vec || s->index[i].mode != MODE_UNROLL) {
            continue;
        }
        if (++at[i] < s->index[i].range.span) {
            return true;
        }
        at[i] = 0;
    }
    return false;
}

void unrolled_emit(Emitter *e, const Stmt *s)
{
    Unrolled u = {.s = s, .vec = s->n_index, .lanes = 1, .t = e->w.k->bufs.at[s->dst].dtype};
    u.by = ARENA_ARRAY(e->w.arena, (size_t)s->n_index + 1, Affine);
    int64_t *at = ARENA_ARRAY(e->w.arena, (size_t)s->n_index + 1, int64_t);
    int64_t span = 1;
    e->loads.n = 0;
    for (uint32_t i = 0; i < s->n_index; i++) {
        if (s->index[i].mode == MODE_VECTOR) {
            u.vec = i;
            span = s->index[i].range.span;
        }
    }
    do {
        for (uint32_t i = 0; i < s->n_index; i++) {
            u.by[i] = affine_add(e->w.arena, s->index[i].range.start, 1, affine_const(at[i]));
        }
        Text row;
        text_init(&row, e->w.arena);
        for (int64_t from = 0; from < span; from += u.lanes) {
            u.lanes = u.vec < s->n_index ? part_lanes(e, u.t, from, span) : 1;
            if (u.vec < s->n_index) {
                u.by[u.vec] =
                    affine_add(e->w.arena, s->index[u.vec].range.start, 1, affine_const(from));
            }
            part_emit(e, &u, &row);
        }
        line_put(e->w.out, row.at);
    } while (unroll_next(s, u.vec, at));
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

/* Variables for all parts of an accumulator (an array in plain C). */
void acc_declare(Emitter *e, BufRef buf)
{
    const Buffer *b = &e->w.k->bufs.at[buf];
    int64_t rows = 1, extent = b->extent[b->rank - 1].n;
    for (uint32_t d = 0; d + 1 < b->rank; d++) {
        rows *= b->extent[d].n;
    }
    if (e->vector_bytes == 0) {
        line_printf(&e->w, "%s %s[%lld];", c_type(b->dtype), e->w.buf[buf],
                    (long long)(rows * extent));
        return;
    }
    for (int64_t row = 0; row < rows; row++) {
        Text t;
        text_init(&t, e->w.arena);
        for (int64_t from = 0, lanes = 1; from < extent; from += lanes) {
            lanes = part_lanes(e, b->dtype, from, extent);
            text_printf(&t, "%s%s %s;", t.n > 0 ? " " : "", part_type(e, b->dtype, lanes),
                        part_name(e, buf, row, from));
        }
        line_put(e->w.out, t.at);
    }
}

bool stmt_has_lanes(const Stmt *s)
{
    return s->kind == STMT_TILE && s->n_index > 0 &&
           s->index[s->n_index - 1].mode == MODE_LANES;
}
