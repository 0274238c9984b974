/* SPDX-License-Identifier: Apache-2.0 */
/* Whole numbers as floats, and remainders. */

#include "backend/ctext/help.h"

const FixedHelper round_helpers[] = {
    {"tdsl_round_f32", "tdsl_bits_of_float tdsl_float_of_bits", false,
     "/* Adding 2^23 leaves no digits behind the point. */\n"
     "TDSL_HELPER float tdsl_round_f32(float x)\n"
     "{\n"
     "    const uint32_t bits = tdsl_bits_of_float(x), size = bits & 0x7fffffffu;\n"
     "    const float a = tdsl_float_of_bits(size), near = (a + 8388608.0f) - 8388608.0f;\n"
     "    return tdsl_float_of_bits(tdsl_bits_of_float(a < 8388608.0f ? near : a) | (bits - "
     "size));\n"
     "}\n"},
    {"tdsl_floor_f32", "tdsl_bits_of_float tdsl_float_of_bits tdsl_round_f32", false,
     "TDSL_HELPER float tdsl_floor_f32(float x)\n"
     "{\n"
     "    const uint32_t bits = tdsl_bits_of_float(x), sign = bits - (bits & 0x7fffffffu);\n"
     "    const float near = tdsl_round_f32(x), y = near > x ? near - 1.0f : near;\n"
     "    return tdsl_float_of_bits((tdsl_bits_of_float(y) & 0x7fffffffu) | sign);\n"
     "}\n"},
    {"tdsl_ceil_f32", "tdsl_bits_of_float tdsl_float_of_bits tdsl_round_f32", false,
     "TDSL_HELPER float tdsl_ceil_f32(float x)\n"
     "{\n"
     "    const uint32_t bits = tdsl_bits_of_float(x), sign = bits - (bits & 0x7fffffffu);\n"
     "    const float near = tdsl_round_f32(x), y = near < x ? near + 1.0f : near;\n"
     "    return tdsl_float_of_bits((tdsl_bits_of_float(y) & 0x7fffffffu) | sign);\n"
     "}\n"},
    {"tdsl_mod_f32", NULL, true,
     "/* The remainder of floor(x / y), exactly; of 0 with the sign of y. */\n"
     "TDSL_HELPER float tdsl_mod_f32(float x, float y)\n"
     "{\n"
     "    const float rest = fmodf(x, y), other = (rest < 0) != (y < 0) ? rest + y : rest;\n"
     "    return rest < 0 || rest > 0 ? other : isnan(rest) ? rest : copysignf(0, y);\n"
     "}\n"},
    {"tdsl_round_f64", "tdsl_bits_of_double tdsl_double_of_bits", false,
     "/* Adding 2^52 leaves no digits behind the point. */\n"
     "TDSL_HELPER double tdsl_round_f64(double x)\n"
     "{\n"
     "    const uint64_t bits = tdsl_bits_of_double(x), size = bits & "
     "UINT64_C(0x7fffffffffffffff);\n"
     "    const double a = tdsl_double_of_bits(size), near = (a + 4503599627370496.0) - "
     "4503599627370496.0;\n"
     "    return tdsl_double_of_bits(tdsl_bits_of_double(a < 4503599627370496.0 ? near : a) | "
     "(bits - size));\n"
     "}\n"},
    {"tdsl_floor_f64", "tdsl_bits_of_double tdsl_double_of_bits tdsl_round_f64", false,
     "TDSL_HELPER double tdsl_floor_f64(double x)\n"
     "{\n"
     "    const uint64_t bits = tdsl_bits_of_double(x), sign = bits - (bits & "
     "UINT64_C(0x7fffffffffffffff));\n"
     "    const double near = tdsl_round_f64(x), y = near > x ? near - 1.0 : near;\n"
     "    return tdsl_double_of_bits((tdsl_bits_of_double(y) & UINT64_C(0x7fffffffffffffff)) | "
     "sign);\n"
     "}\n"},
    {"tdsl_ceil_f64", "tdsl_bits_of_double tdsl_double_of_bits tdsl_round_f64", false,
     "TDSL_HELPER double tdsl_ceil_f64(double x)\n"
     "{\n"
     "    const uint64_t bits = tdsl_bits_of_double(x), sign = bits - (bits & "
     "UINT64_C(0x7fffffffffffffff));\n"
     "    const double near = tdsl_round_f64(x), y = near < x ? near + 1.0 : near;\n"
     "    return tdsl_double_of_bits((tdsl_bits_of_double(y) & UINT64_C(0x7fffffffffffffff)) | "
     "sign);\n"
     "}\n"},
    {"tdsl_mod_f64", NULL, true,
     "/* The remainder of floor(x / y), exactly; of 0 with the sign of y. */\n"
     "TDSL_HELPER double tdsl_mod_f64(double x, double y)\n"
     "{\n"
     "    const double rest = fmod(x, y), other = (rest < 0) != (y < 0) ? rest + y : rest;\n"
     "    return rest < 0 || rest > 0 ? other : isnan(rest) ? rest : copysign(0, y);\n"
     "}\n"},
    {0},
};
