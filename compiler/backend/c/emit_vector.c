/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors as all printed C names them: their types, how many lanes each instruction set has, loads and stores, and what is done with them.
 * In plain C a vector is a number, so that one text does for all instruction sets. */
#include "backend/c/emit.h"
#include "backend/c/isa.h"

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

int64_t isa_lanes(const Isa *isa, TileVector v)
{
    int64_t lanes = isa->vector_bytes / dtype_bytes(dtype_part(v.t));
    return lanes == 0 ? (dtype_is_complex(v.t) ? 2 : 1) : lanes < v.most ? lanes : v.most;
}

const char *isa_vector(Tiles *t, const Isa *isa, TileVector v)
{
    return isa->vector_bytes == 0 ? element_type(v.t)
                                  : vector_type(t->help, dtype_part(v.t), isa_lanes(isa, v));
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

const char *lanes_type(Helpers *h, DType t, int64_t lanes)
{
    return lanes == 1 ? element_type(t) : vector_type(h, t, lanes);
}

/* ---- loads, stores, exchanges ---- */

const char *vector_at(Arena *a, const char *type, const char *place)
{
    return str_format(a, "TDSL_AT(%s, %s)", type, place);
}

const char *vector_to(Arena *a, const char *type, const char *place)
{
    return str_format(a, "TDSL_TO(%s, %s)", type, place);
}

static const char shuffle_text[] =
    "\n#if defined(__clang__)\n"
    "#define TDSL_SHUFFLE(x, y, MASK, ...) __builtin_shufflevector(x, y, __VA_ARGS__)\n"
    "#else\n"
    "#define TDSL_SHUFFLE(x, y, MASK, ...) __builtin_shuffle(x, y, (MASK){__VA_ARGS__})\n"
    "#endif\n";

void shuffle_put(Helpers *h)
{
    if (helper_new(h, "TDSL_SHUFFLE")) {
        helper_type_put(h, shuffle_text);
    }
}

/* ---- arithmetic ---- */

const char *vector_spread(Arena *a, const char *type, const char *value)
{
    return str_format(a, value == NULL ? "(%s){0}" : "(%s){0} + %s", type, value);
}

VectorText vector_arithmetic(CWriter *w, Op op, VectorText x, VectorText y)
{
    bool product = op == OP_MUL || op == OP_DIV;
    if (op == OP_NEG) {
        const char *value = in_parens(w, x.text, BIND_ATOM);
        return (VectorText){{str_format(w->arena, "-%s", value), BIND_UNARY}, x.vector};
    }
    const char *text = str_format(
        w->arena, "%s %s %s", in_parens(w, x.text, product ? BIND_PRODUCT : BIND_SUM),
        op_info(op)->symbol, in_parens(w, y.text, product ? BIND_UNARY : BIND_PRODUCT));
    return (VectorText){{text, product ? BIND_PRODUCT : BIND_SUM}, x.vector || y.vector};
}

const char *vector_fold(Arena *a, Helpers *h, Op fold, const char *type, const char *into,
                        const char *value)
{
    bool least = fold == OP_MIN || fold == OP_RMIN, most = fold == OP_MAX || fold == OP_RMAX;
    if (least || most) {
        h->least |= least;
        h->most |= most;
        return str_format(a, "TDSL_%s(%s, %s, %s);", least ? "LEAST" : "MOST", type, into,
                          value);
    }
    const char *sign = fold == OP_COPY ? "" : fold == OP_SUM ? "+" : "*";
    return str_format(a, "%s %s= %s;", into, sign, value);
}

bool stmt_has_lanes(const Stmt *s)
{
    return s->kind == STMT_TILE && s->n_index > 0 &&
           s->index[s->n_index - 1].mode == MODE_LANES;
}
