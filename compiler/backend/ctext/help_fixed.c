/* SPDX-License-Identifier: Apache-2.0 */
/* The helper functions whose text is fixed: sizes, 16-bit floats, conversions that C leaves
 * undefined. (help_math.c has more.) One is defined when something first asks for its name, after those it needs itself. */
#include <string.h>

#include "backend/ctext/ctext.h"
#include "backend/ctext/help.h"

static const FixedHelper fixed_helpers[] = {
    {"tdsl_max", NULL, false,
     "TDSL_HELPER int64_t tdsl_max(int64_t x, int64_t y)\n{\n    return x > y ? x : y;\n}\n"},
    {"tdsl_min", NULL, false,
     "TDSL_HELPER int64_t tdsl_min(int64_t x, int64_t y)\n{\n    return x < y ? x : y;\n}\n"},
    {"tdsl_near", NULL, false,
     "/* A hint: the bytes are changed soon. */\n"
     "TDSL_HELPER void tdsl_near(const void *at, int64_t bytes)\n{\n"
     "#if defined(__GNUC__)\n"
     "    for (int64_t i = -(int64_t)((uintptr_t)at & 63); i < bytes; i += 64) {\n"
     "        __builtin_prefetch((const char *)at + i, 1);\n    }\n"
     "#else\n    (void)at;\n    (void)bytes;\n#endif\n}\n"},
    {"tdsl_pad", NULL, false,
     "/* Rounded up to whole lines of 64 bytes. */\n"
     "TDSL_HELPER size_t tdsl_pad(int64_t bytes)\n{\n    return ((size_t)bytes + 63) & "
     "~(size_t)63;\n}\n"},
    {"tdsl_grow", NULL, false,
     "/* size * extent, or -1 when that is too large for one object. An extent of 0 counts as "
     "1: strides must be in\n"
     " * range too. */\n"
     "TDSL_HELPER int64_t tdsl_grow(int64_t size, int64_t extent)\n{\n"
     "    const int64_t most = (int64_t)(PTRDIFF_MAX / 2);\n"
     "    if (extent < 1) {\n        return size;\n    }\n"
     "    return size < 0 || size > most / extent ? -1 : size * extent;\n}\n"},
    {"tdsl_plus", NULL, false,
     "/* x + y, or SIZE_MAX when that is too large. */\n"
     "TDSL_HELPER size_t tdsl_plus(size_t x, size_t y)\n{\n    return x > SIZE_MAX - y ? "
     "SIZE_MAX : x + y;\n}\n"},
    {"tdsl_larger", NULL, false,
     "TDSL_HELPER size_t tdsl_larger(size_t x, size_t y)\n{\n    return x < y ? y : x;\n}\n"},
    {"tdsl_count", NULL, false,
     "/* count * extent, or UINT64_MAX when that is too large. */\n"
     "TDSL_HELPER uint64_t tdsl_count(uint64_t count, int64_t extent)\n{\n"
     "    if (extent <= 0) {\n        return 0;\n    }\n"
     "    return count > UINT64_MAX / (uint64_t)extent ? UINT64_MAX : count * "
     "(uint64_t)extent;\n}\n"},
    {"tdsl_tally", NULL, false,
     "/* x + y, or UINT64_MAX when that is too large. */\n"
     "TDSL_HELPER uint64_t tdsl_tally(uint64_t x, uint64_t y)\n{\n    return x > UINT64_MAX - "
     "y ? UINT64_MAX : x + y;\n}\n"},
    {"tdsl_steps", NULL, false,
     "TDSL_HELPER int64_t tdsl_steps(int64_t from, int64_t to, int64_t step)\n{\n"
     "    return from < to ? (to - from - 1) / step + 1 : 0;\n}\n"},
    {"tdsl_first", NULL, false,
     "/* Where piece `number` begins. */\n"
     "TDSL_HELPER int64_t tdsl_first(const tdsl_cut *cut, int32_t number)\n{\n"
     "    const int64_t more = cut->count % cut->pieces;\n"
     "    return cut->count / cut->pieces * number + (number < more ? number : more);\n}\n"},
    {"tdsl_even", NULL, false,
     "/* Positions of an iteration, a multiple of `unit` and at most `step`, such that `count` "
     "of them are alike. */\n"
     "TDSL_HELPER int64_t tdsl_even(int64_t count, int64_t step, int64_t unit)\n{\n"
     "    const int64_t n = count > step ? (count - 1) / step + 1 : 1;\n"
     "    return n > 1 ? ((count - 1) / n / unit + 1) * unit : step;\n}\n"},
    {"tdsl_deal", NULL, false,
     "/* The iteration that is run as number `i`: by turns from both ends, so that equal "
     "pieces of a loop whose work\n"
     " * grows or falls are equal work. */\n"
     "TDSL_HELPER int64_t tdsl_deal(int64_t count, int64_t i)\n{\n"
     "    return i % 2 == 0 ? i / 2 : count - 1 - i / 2;\n}\n"},
    {"tdsl_crew", NULL, false,
     "/* The threads of a call. */\n"
     "TDSL_HELPER int32_t tdsl_crew(const tdsl_threads *threads)\n{\n"
     "    const int32_t n = threads == NULL || threads->count < 1 ? 1 : threads->count;\n"
     "#if defined(_OPENMP)\n    return n;\n#else\n"
     "    return n > 1 && threads->run == NULL ? 1 : n;\n#endif\n}\n"},
    {"tdsl_pieces", NULL, false,
     "/* Into how many pieces a loop of `count` iterations is cut; `most` are worth a thread. "
     "*/\n"
     "TDSL_HELPER int32_t tdsl_pieces(int32_t crew, int64_t count, double most)\n{\n"
     "    crew = crew > count ? (int32_t)count : crew;\n"
     "    crew = crew > most ? (int32_t)most : crew;\n"
     "    return crew < 1 ? 1 : crew;\n}\n"},
    {"tdsl_fitting", NULL, false,
     "/* The pieces that there is memory for, `each` bytes a piece; for one there is. */\n"
     "TDSL_HELPER int32_t tdsl_fitting(int32_t pieces, size_t bytes, size_t each)\n{\n"
     "    return each > 0 && bytes / each < (size_t)pieces ? (int32_t)(bytes / each) : "
     "pieces;\n}\n"},
    {"tdsl_most", NULL, false,
     "/* The most positions that an iteration has of a loop with `count` places where it may "
     "be cut, `cut` apart. */\n"
     "TDSL_HELPER int64_t tdsl_most(int64_t count, int32_t pieces, int64_t step, int64_t "
     "cut)\n{\n"
     "    const int64_t n = count > 0 ? ((count - 1) / pieces + 1) * cut : 0;\n"
     "    return n < step ? n : step;\n}\n"},
    {"tdsl_fitting_cut", "tdsl_most", false,
     "/* The same where each piece needs `line` bytes more for each position of an iteration. "
     "*/\n"
     "TDSL_HELPER int32_t tdsl_fitting_cut(int32_t pieces, size_t bytes, size_t each, size_t "
     "line,\n"
     "    int64_t count, int64_t step, int64_t cut)\n{\n"
     "    while (pieces > 1 &&\n"
     "        bytes / (each + line * (size_t)tdsl_most(count, pieces, step, cut)) < "
     "(size_t)pieces) {\n"
     "        --pieces;\n    }\n    return pieces;\n}\n"},
    {"tdsl_room_cut", NULL, false,
     "/* bytes, and `line` for each position of an iteration of each piece, or SIZE_MAX when "
     "that is too large. */\n"
     "TDSL_HELPER size_t tdsl_room_cut(size_t bytes, size_t line, int32_t pieces, int64_t "
     "count,\n"
     "    int64_t step, int64_t cut)\n{\n"
     "    const int64_t all = count > 0 ? (count + pieces - 1) * cut : 0, most = pieces * "
     "step;\n"
     "    const size_t n = (size_t)(all < most ? all : most);\n"
     "    return n > (SIZE_MAX - bytes) / line ? SIZE_MAX : bytes + line * n;\n}\n"},
    {"tdsl_run", NULL, false,
     "TDSL_ALIGNED static void tdsl_run(const tdsl_threads *threads, void (*part)(void *, "
     "int32_t), void "
     "*work, "
     "int32_t pieces)\n{\n"
     "    if (pieces == 1) {\n        part(work, 0);\n        return;\n    }\n"
     "    if (threads->run != NULL) {\n"
     "        threads->run(threads->pool, part, work, pieces);\n        return;\n    }\n"
     "#if defined(_OPENMP)\n"
     "#pragma omp parallel for num_threads(pieces) schedule(static, 1)\n#endif\n"
     "    for (int32_t i = 0; i < pieces; ++i) {\n        part(work, i);\n    }\n}\n"},
    {"tdsl_room", NULL, false,
     "/* bytes + each * pieces, or SIZE_MAX when that is too large. */\n"
     "TDSL_HELPER size_t tdsl_room(size_t bytes, size_t each, int32_t pieces)\n{\n"
     "    const size_t n = (size_t)pieces;\n"
     "    return each > 0 && n > (SIZE_MAX - bytes) / each ? SIZE_MAX : bytes + each * "
     "n;\n}\n"},
    {"tdsl_product", NULL, false,
     "/* x * y, or INT64_MAX when that is too large; 0 where one is not positive. */\n"
     "TDSL_HELPER int64_t tdsl_product(int64_t x, int64_t y)\n{\n"
     "    return x < 1 || y < 1 ? 0 : x > INT64_MAX / y ? INT64_MAX : x * y;\n}\n"},
    {"tdsl_make_c64", NULL, false,
     "TDSL_HELPER tdsl_c64 tdsl_make_c64(float re, float im)\n{\n"
     "#if defined(CMPLXF)\n    return CMPLXF(re, im);\n#else\n"
     "    union {\n        float part[2];\n        tdsl_c64 whole;\n    } z;\n"
     "    z.part[0] = re;\n    z.part[1] = im;\n    return z.whole;\n#endif\n}\n"},
    {"tdsl_make_c128", NULL, false,
     "TDSL_HELPER tdsl_c128 tdsl_make_c128(double re, double im)\n{\n"
     "#if defined(CMPLX)\n    return CMPLX(re, im);\n#else\n"
     "    union {\n        double part[2];\n        tdsl_c128 whole;\n    } z;\n"
     "    z.part[0] = re;\n    z.part[1] = im;\n    return z.whole;\n#endif\n}\n"},
    {"tdsl_i32_of_f64", NULL, true,
     "/* Truncated; beyond the range the nearest end; 0 for NaN. */\n"
     "TDSL_HELPER int32_t tdsl_i32_of_f64(double x)\n{\n"
     "    if (isnan(x)) {\n        return 0;\n    }\n"
     "    if (x <= -2147483648.0) {\n        return INT32_MIN;\n    }\n"
     "    return x >= 2147483647.0 ? INT32_MAX : (int32_t)x;\n}\n"},
    {"tdsl_i64_of_f64", NULL, true,
     "/* Truncated; beyond the range the nearest end; 0 for NaN. */\n"
     "TDSL_HELPER int64_t tdsl_i64_of_f64(double x)\n{\n"
     "    if (isnan(x)) {\n        return 0;\n    }\n"
     "    if (x <= -9223372036854775808.0) {\n        return INT64_MIN;\n    }\n"
     "    return x >= 9223372036854775808.0 ? INT64_MAX : (int64_t)x;\n}\n"},
    {"tdsl_bool_of_f64", NULL, false,
     "TDSL_HELPER uint8_t tdsl_bool_of_f64(double x)\n{\n    return (uint8_t)!(x <= 0.0 && x "
     ">= 0.0);\n}\n"},
    {"tdsl_bool_of_i64", NULL, false,
     "TDSL_HELPER uint8_t tdsl_bool_of_i64(int64_t x)\n{\n    return (uint8_t)(x != 0);\n}\n"},
    {"tdsl_bits_of_float", NULL, false,
     "TDSL_HELPER uint32_t tdsl_bits_of_float(float x)\n{\n"
     "    union {\n        float x;\n        uint32_t bits;\n    } u;\n    u.x = x;\n    "
     "return u.bits;\n}\n"},
    {"tdsl_float_of_bits", NULL, false,
     "TDSL_HELPER float tdsl_float_of_bits(uint32_t bits)\n{\n"
     "    union {\n        float x;\n        uint32_t bits;\n    } u;\n    u.bits = bits;\n    "
     "return u.x;\n}\n"},
    {"tdsl_double_of_bits", NULL, false,
     "TDSL_HELPER double tdsl_double_of_bits(uint64_t bits)\n{\n"
     "    union {\n        double x;\n        uint64_t bits;\n    } u;\n    u.bits = bits;\n   "
     " "
     "return u.x;\n}\n"},
    {"tdsl_bits_of_double", NULL, false,
     "TDSL_HELPER uint64_t tdsl_bits_of_double(double x)\n{\n"
     "    union {\n        double x;\n        uint64_t bits;\n    } u;\n    u.x = x;\n    "
     "return u.bits;\n}\n"},
    {"tdsl_float_of_bf16", "tdsl_float_of_bits", false,
     "TDSL_HELPER float tdsl_float_of_bf16(uint16_t x)\n{\n    return "
     "tdsl_float_of_bits((uint32_t)x << 16);\n}\n"},
    {"tdsl_bf16_of_float", "tdsl_bits_of_float", false,
     "/* To nearest, ties to even. No branches here and below: loops over them become vectors. "
     "*/\n"
     "TDSL_HELPER uint16_t tdsl_bf16_of_float(float x)\n{\n"
     "    const uint32_t bits = tdsl_bits_of_float(x);\n"
     "    const uint32_t near = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;\n"
     "    const uint32_t nan = (bits >> 16) | 0x40u;\n"
     "    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? nan : near);\n}\n"},
    {"tdsl_float_of_f16", "tdsl_float_of_bits tdsl_bits_of_float", false,
     "TDSL_HELPER float tdsl_float_of_f16(uint16_t x)\n{\n"
     "    const uint32_t sign = (uint32_t)(x & 0x8000u) << 16, size = x & 0x7fffu;\n"
     "    const uint32_t small = tdsl_bits_of_float((float)(int32_t)size * 0x1p-24f);\n"
     "    const uint32_t large = (size << 13) + (size >= 0x7c00u ? 0x70000000u : "
     "0x38000000u);\n"
     "    return tdsl_float_of_bits(sign | (size < 0x0400u ? small : large));\n}\n"},
    {"tdsl_f16_of_float", "tdsl_float_of_bits tdsl_bits_of_float", false,
     "/* To nearest, ties to even: where the last digits are those of 1/2, adding it rounds. "
     "*/\n"
     "TDSL_HELPER uint16_t tdsl_f16_of_float(float x)\n{\n"
     "    const uint32_t bits = tdsl_bits_of_float(x), size = bits & 0x7fffffffu;\n"
     "    const uint32_t near = (size - 0x38000000u + 0xfffu + ((size >> 13) & 1u)) >> 13;\n"
     "    const uint32_t tiny = size < 0x38800000u ? size : 0u;\n"
     "    const uint32_t small = tdsl_bits_of_float(tdsl_float_of_bits(tiny) + 0.5f) - "
     "0x3f000000u;\n"
     "    const uint32_t large = size >= 0x477ff000u ? 0x7c00u : near;\n"
     "    const uint32_t value = size > 0x7f800000u ? 0x7e00u : size >= 0x38800000u ? large : "
     "small;\n"
     "    return (uint16_t)(((bits >> 16) & 0x8000u) | value);\n}\n"},
    {"tdsl_nearest_bf16", "tdsl_bf16_of_float tdsl_float_of_bf16", false,
     "TDSL_HELPER float tdsl_nearest_bf16(float x)\n{\n    return "
     "tdsl_float_of_bf16(tdsl_bf16_of_float(x));\n}\n"},
    {"tdsl_cut_to_float", "tdsl_bits_of_float tdsl_float_of_bits", false,
     "/* Cut to f32, with an odd last digit when anything was cut off: rounded from there to "
     "16 "
     "bits it\n * is x rounded. */\n"
     "TDSL_HELPER float tdsl_cut_to_float(double x)\n{\n"
     "    const float near = (float)x;\n    const double back = (double)near;\n"
     "    uint32_t bits = tdsl_bits_of_float(near);\n"
     "    if ((bits & 1u) == 0u && (back < x || back > x)) {\n"
     "        bits = (back < x) == (x > 0.0) ? bits + 1u : bits - 1u;\n    }\n"
     "    return tdsl_float_of_bits(bits);\n}\n"},
    {"tdsl_double_near", NULL, false,
     "/* Rounds to 16 bits as x does: digits that do not fit only say whether there are any. "
     "*/\n"
     "TDSL_HELPER double tdsl_double_near(int64_t x)\n{\n"
     "    const int64_t exact = INT64_C(1) << 53, low = x % 2048;\n"
     "    if (x >= -exact && x <= exact) {\n        return (double)x;\n    }\n"
     "    return (double)(x - low + (low > 0 ? 1024 : low < 0 ? -1024 : 0));\n}\n"},
    {"tdsl_nearest_f16", "tdsl_f16_of_float tdsl_float_of_f16", false,
     "TDSL_HELPER float tdsl_nearest_f16(float x)\n{\n    return "
     "tdsl_float_of_f16(tdsl_f16_of_float(x));\n}\n"},
    {0},
};

void helpers_init(Helpers *h, Arena *arena)
{
    *h = (Helpers){.arena = arena};
    names_init(&h->names, arena);
    text_init(&h->types, arena);
    text_init(&h->text, arena);
}

/* True the first time. */
bool helper_new(Helpers *h, const char *name)
{
    const char *key = name + strlen("tdsl_"); /* the scope of names refuses our own prefix */
    char *tagged = str_format(h->arena, "h_%s", key);
    return names_claim(&h->names, tagged);
}

void helper_put(Helpers *h, const char *text)
{
    text_put(&h->text, "\n");
    text_put(&h->text, text + (*text == '\n' ? 1 : 0));
}

void helper_type_put(Helpers *h, const char *text)
{
    text_put(&h->types, "\n");
    text_put(&h->types, text);
}

static const FixedHelper *find_fixed(const char *name)
{
    static const FixedHelper *const tables[] = {fixed_helpers, math_helpers, trig_helpers,
                                                pow_helpers,   more_helpers, round_helpers};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        for (const FixedHelper *f = tables[t]; f->name != NULL; f++) {
            if (strcmp(f->name, name) == 0) {
                return f;
            }
        }
    }
    return NULL;
}

bool help_is_fixed(const char *name)
{
    return find_fixed(name) != NULL;
}

const char *help_fixed(Helpers *h, const char *name)
{
    const FixedHelper *f = find_fixed(name);
    CHECK(f != NULL);
    if (helper_new(h, name)) {
        for (const char *n = f->needs; n != NULL; n = strchr(n, ' ')) {
            n += *n == ' ' ? 1 : 0;
            (void)help_fixed(h, str_format(h->arena, "%.*s", (int)strcspn(n, " "), n));
        }
        h->math |= f->math;
        helper_put(h, f->text);
    }
    return f->name;
}
