/* SPDX-License-Identifier: Apache-2.0 */
/* Instruction sets as generated C names them, and the types of their vectors with what is done with these. */
#include <string.h>

#include "backend/c/emit.h"
#include "backend/c/isa.h"

/* ---- vectors and their parts ---- */

/* In plain C the vectors of a tile's function are single numbers. */
static const char plain_vectors[] = "#else\n"
                                    "#define TDSL_AT(T, p) (*(const T *)(const void *)(p))\n"
                                    "#define TDSL_TO(T, p) (*(T *)(void *)(p))\n";
static const char plain_folds[] =
    "#define TDSL_FOLD(T, old, new, sign) \\\n"
    "    do { \\\n"
    "        const T new_ = (new); \\\n"
    "        (old) = new_ sign (old) || !(new_ <= new_) ? new_ : (old); \\\n"
    "    } while (0)\n"
    "#define TDSL_LEAST(T, old, new) TDSL_FOLD(T, old, new, <)\n"
    "#define TDSL_MOST(T, old, new) TDSL_FOLD(T, old, new, >)\n";
static const char plain_magnitude[] = "#define TDSL_ABS_f32(T, x) ((x) <= 0 ? 0 - (x) : (x))\n"
                                      "#define TDSL_ABS_f64 TDSL_ABS_f32\n";

static const char about_prefetch[] =
    "#if TDSL_ROWS & TDSL_ISA_plain\n#define TDSL_PREFETCH(...) (void)0\n"
    "#else\n#define TDSL_PREFETCH __builtin_prefetch\n#endif\n";
static const char about_hold[] =
    "/* Loaded once, into a register: compilers would read it again for each product. */\n"
    "#if defined(TDSL_HOLD)\n#elif TDSL_ROWS & TDSL_ISA_plain\n#define TDSL_HOLD(x) (void)(x)\n"
    "#elif defined(__x86_64__)\n#define TDSL_HOLD(x) __asm__(\"\" : \"+v\"(x))\n"
    "#elif defined(__aarch64__)\n#define TDSL_HOLD(x) __asm__(\"\" : \"+w\"(x))\n"
    "#else\n#define TDSL_HOLD(x) (void)(x)\n#endif\n";

/* Loops whose counts are numbers: compilers are told to unroll them, so that arrays that they index become registers. */
static const char about_each[] =
    "#if defined(__clang__)\n#define TDSL_UNROLL _Pragma(\"unroll\")\n"
    "#elif defined(__GNUC__) && __GNUC__ >= 8\n#define TDSL_UNROLL _Pragma(\"GCC unroll "
    "1024\")\n"
    "#else\n#define TDSL_UNROLL\n#endif\n"
    "#define TDSL_EACH(i, n, step) TDSL_UNROLL for (int64_t i = 0; i < n; i += step)\n";

static void vector_types_emit(const Helpers *h, Text *out, bool single)
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
    text_put(out, single ? "#define TDSL_LANE(x, l) (x)[l]\n" : "");
    folds_emit(h, out);
    text_put(out, plain_vectors);
    text_put(out, single ? "#define TDSL_LANE(x, l) (x)\n" : "");
    text_put(out, h->least || h->most ? plain_folds : "");
    text_put(out, h->magnitude ? plain_magnitude : "");
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
    "    __attribute__((aligned(64), optimize(\"O2\", TDSL_TEXT(fp-contract=TDSL_FP_CONTRACT), "
    "\"no-tree-loop-vectorize\")))\n"
    "#define TDSL_CONTRACT\n#else\n#define TDSL_TILE\n#define TDSL_CONTRACT\n#endif\n";

/* Where one of them is taken, the row that it stands on has functions of other tiles alone. */
static const char about_dots[] =
    "#if defined(TDSL_ISA) && TDSL_ROWS >= 32\n#define TDSL_ONLY_DOTS 1\n#else\n#define "
    "TDSL_ONLY_DOTS 0\n#endif\n";

static const char about_lanes[] =
    "\n/* Loops that compilers make vectors of: nothing is contracted, so that a position has "
    "the same bits in each of\n * these instruction sets, wherever it stands in a vector. */\n"
    "#if defined(__clang__)\n#define TDSL_LANES __attribute__((unused))\n"
    "#define TDSL_EXACT _Pragma(\"clang fp contract(off)\")\n"
    "#elif defined(__GNUC__)\n"
    "#define TDSL_LANES \\\n    __attribute__((unused, optimize(\"O3\", \"fp-contract=off\", "
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
    if (t->shapes.n == 0 && t->fold.n == 0 && !t->turns && t->role == FILE_ALONE) {
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
    text_put(out, strstr(functions, "TDSL_EACH(") != NULL ? about_each : "");
    vector_types_emit(t->help, out, strstr(functions, "TDSL_LANE(") != NULL);
    text_put(out, strstr(functions, "TDSL_HOLD(") != NULL ? about_hold : "");
    text_put(out, strstr(functions, "TDSL_PREFETCH(") != NULL ? about_prefetch : "");
    pairs_emit(t, out);
}
