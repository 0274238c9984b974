/* SPDX-License-Identifier: Apache-2.0 */
/* Logarithms and powers of 2, log1p, expm1 and arcs of tangents, as help_math.c has exp: no branches, no libm. Those of f32 are those of f64,
 * rounded. tests/backend/c/every_f32.py tries them. */
#include <string.h>

#include "backend/ctext/help.h"

static const FixedHelper more_helpers[] = {
    {"tdsl_exp2_f64", "tdsl_bits_of_double tdsl_double_of_bits tdsl_exp_rest_f64", false,
     "/* At most 1 unit in the last place off. */\n"
     "TDSL_HELPER double tdsl_exp2_f64(double x)\n"
     "{\n"
     "#if defined(__clang__)\n"
     "#pragma clang fp contract(off)\n"
     "#endif\n"
     "    const double top = x > 1025.0 ? 1025.0 : x, c = top < -1076.0 ? -1076.0 : top;\n"
     "    const double shifted = c + 6755399441055744.0;\n"
     "    const double f = c - (shifted - 6755399441055744.0), r = f * "
     "0.69314718055994530942;\n"
     "    const double low = f * 2.3190468138462996e-17, one = 1.0 + r;\n"
     "    const double p = one + (((1.0 - one) + r) + (low + tdsl_exp_rest_f64(r) * (r * "
     "r)));\n"
     "    const uint64_t k = tdsl_bits_of_double(shifted) - UINT64_C(0x4338000000000000);\n"
     "    const uint64_t half = ((k + 2048u) >> 1) - 1024u;\n"
     "    return p * tdsl_double_of_bits((half + 1023u) << 52) *\n"
     "           tdsl_double_of_bits((k - half + 1023u) << 52);\n"
     "}\n"},
    {"tdsl_expm1_f64", "tdsl_bits_of_double tdsl_double_of_bits tdsl_exp_rest_f64", false,
     "/* 2^n * (exp(r) - 1) + (2^n - 1): at most 1.5 units in the last place off. */\n"
     "TDSL_HELPER double tdsl_expm1_f64(double x)\n"
     "{\n"
     "#if defined(__clang__)\n"
     "#pragma clang fp contract(off)\n"
     "#endif\n"
     "    const double top = x > 710.0 ? 710.0 : x, c = top < -60.0 ? -60.0 : top;\n"
     "    const double shifted = c * 1.4426950408889634074 + 6755399441055744.0;\n"
     "    const double n = shifted - 6755399441055744.0;\n"
     "    const double high = c - n * 6.93145751953125e-1, low = n * "
     "-1.42860682030941723212e-6;\n"
     "    const double r = high + low, lost = (high - r) + low;\n"
     "    const double p = r + (lost + tdsl_exp_rest_f64(r) * (r * r));\n"
     "    const uint64_t k = tdsl_bits_of_double(shifted) - UINT64_C(0x4338000000000000);\n"
     "    const double scale = tdsl_double_of_bits((k + 1022u) << 52);\n"
     "    const double y = 2.0 * (p * scale + (scale - 0.5));\n"
     "    return x > -1e-300 && x < 1e-300 ? x : y;\n"
     "}\n"},
    {"tdsl_log2_f64", "tdsl_bits_of_double tdsl_double_of_bits tdsl_upper_digits", false,
     "/* As tdsl_log_f64, times 1 / log 2 in two parts: at most 1.3 units in the last place "
     "off. */\n"
     "TDSL_HELPER double tdsl_log2_f64(double x)\n"
     "{\n"
     "#if defined(__clang__)\n"
     "#pragma clang fp contract(off)\n"
     "#endif\n"
     "    const double up = x < 0x1p-1022 ? x * 0x1p54 : x;\n"
     "    const uint64_t bits = tdsl_bits_of_double(up) + (UINT64_C(0x3ff0000000000000) -\n"
     "                                                     UINT64_C(0x3fe6a09e667f3bcd));\n"
     "    const double n = tdsl_double_of_bits((bits >> 52) + UINT64_C(0x4338000000000000)) -\n"
     "                     (x < 0x1p-1022 ? 6755399441056821.0 : 6755399441056767.0);\n"
     "    const double f = tdsl_double_of_bits((bits & UINT64_C(0xfffffffffffff)) +\n"
     "                                         UINT64_C(0x3fe6a09e667f3bcd)) - 1.0;\n"
     "    const double s = f / (2.0 + f), z = s * s, w = z * z, half = 0.5 * f * f;\n"
     "    const double even = z * (6.666666666666735130e-1 + w * (2.857142874366239149e-1 +\n"
     "                        w * (1.818357216161805012e-1 + w * 1.479819860511658591e-1)));\n"
     "    const double odd = w * (3.999999999940941908e-1 + w * (2.222219843214978396e-1 +\n"
     "                       w * 1.531383769920937332e-1));\n"
     "    const double high = tdsl_upper_digits(f - half);\n"
     "    const double low = ((f - high) - half) + s * (half + (even + odd));\n"
     "    const double main = high * 1.44269504072144627571, sum = n + main;\n"
     "    const double side = (low + high) * 1.67517131648865118353e-10 + low * "
     "1.44269504072144627571;\n"
     "    const double y = (side + ((n - sum) + main)) + sum;\n"
     "    const double at_0 = x <= 0.0 ? tdsl_double_of_bits(UINT64_C(0xfff0000000000000)) : "
     "x;\n"
     "    const double below = x < 0.0 ? tdsl_double_of_bits(UINT64_C(0x7ff8000000000000)) : "
     "at_0;\n"
     "    return x > 0.0 && x <= 1.7976931348623157e308 ? y : below;\n"
     "}\n"},
    {"tdsl_log1p_f64", "tdsl_log_f64", false,
     "/* log(u) + (1 + x - u) / u for u = 1 + x rounded: at most 1.5 units in the last place "
     "off. */\n"
     "TDSL_HELPER double tdsl_log1p_f64(double x)\n"
     "{\n"
     "#if defined(__clang__)\n"
     "#pragma clang fp contract(off)\n"
     "#endif\n"
     "    const double u = 1.0 + x;\n"
     "    const double lost = x > 1.0 ? 1.0 - (u - x) : x - (u - 1.0), y = tdsl_log_f64(u);\n"
     "    const double sum = y + lost / u, small = x > -1e-20 && x < 1e-20 ? x : sum;\n"
     "    return u > 0.0 && u <= 1.7976931348623157e308 ? small : y;\n"
     "}\n"},
    {"tdsl_atan_within", NULL, false,
     "/* atan(t) for t in [0, 1]: of |t| <= 7/16, else about 1/2 or 1 (fdlibm's s_atan.c, "
     "polynomial included). */\n"
     "TDSL_HELPER double tdsl_atan_within(double t)\n"
     "{\n"
     "#if defined(__clang__)\n"
     "#pragma clang fp contract(off)\n"
     "#endif\n"
     "    const double near = t < 0.4375 ? 0.0 : t < 0.6875 ? 0.5 : 1.0;\n"
     "    const double high = t < 0.4375 ? 0.0 : t < 0.6875 ? 4.63647609000806093515e-1 : "
     "7.85398163397448278999e-1;\n"
     "    const double low = t < 0.4375 ? 0.0 : t < 0.6875 ? 2.26987774529616870924e-17 : "
     "3.06161699786838301793e-17;\n"
     "    const double x = (t - near) / (1.0 + near * t), z = x * x, w = z * z;\n"
     "    double even = 1.62858201153657823623e-2, odd = -3.65315727442169155270e-2;\n"
     "    even = even * w + 4.97687799461593236017e-2;\n"
     "    odd = odd * w - 5.83357013379057348645e-2;\n"
     "    even = even * w + 6.66107313738753120669e-2;\n"
     "    odd = odd * w - 7.69187620504482999495e-2;\n"
     "    even = even * w + 9.09088713343650656196e-2;\n"
     "    odd = odd * w - 1.11111104054623557880e-1;\n"
     "    even = even * w + 1.42857142725034663711e-1;\n"
     "    odd = odd * w - 1.99999999998764832476e-1;\n"
     "    even = even * w + 3.33333333333329318027e-1;\n"
     "    return high - ((x * (even * z + odd * w) - low) - x);\n"
     "}\n"},
    {"tdsl_atan_f64", "tdsl_bits_of_double tdsl_double_of_bits tdsl_atan_within", false,
     "/* At most 1.7 units in the last place off. */\n"
     "TDSL_HELPER double tdsl_atan_f64(double x)\n"
     "{\n"
     "#if defined(__clang__)\n"
     "#pragma clang fp contract(off)\n"
     "#endif\n"
     "    const uint64_t bits = tdsl_bits_of_double(x), size = bits & "
     "UINT64_C(0x7fffffffffffffff);\n"
     "    const double a = tdsl_double_of_bits(size), t = a > 1.0 ? 1.0 / a : a;\n"
     "    const double y = tdsl_atan_within(t);\n"
     "    const double turned = (1.57079632679489655800 - y) + 6.12323399573676603587e-17;\n"
     "    return tdsl_double_of_bits(tdsl_bits_of_double(a > 1.0 ? turned : y) | (bits - "
     "size));\n"
     "}\n"},
    {"tdsl_atan2_f64", "tdsl_bits_of_double tdsl_double_of_bits tdsl_atan_within", false,
     "/* At most 2 units in the last place off. */\n"
     "TDSL_HELPER double tdsl_atan2_f64(double y, double x)\n"
     "{\n"
     "#if defined(__clang__)\n"
     "#pragma clang fp contract(off)\n"
     "#endif\n"
     "    const uint64_t most = UINT64_C(0x7fffffffffffffff), of_y = tdsl_bits_of_double(y), "
     "of_x = tdsl_bits_of_double(x);\n"
     "    const double a = tdsl_double_of_bits(of_y & most), b = tdsl_double_of_bits(of_x & "
     "most);\n"
     "    const double large = a > b ? a : b, small = a > b ? b : a;\n"
     "    const double quotient = small < large ? small / large : large > 0.0 ? 1.0 : 0.0;\n"
     "    const double t = tdsl_atan_within(quotient);\n"
     "    const double up = a > b ? (1.57079632679489655800 - t) + 6.12323399573676603587e-17 "
     ": t;\n"
     "    const double back = (3.14159265358979311600 - up) + 1.22464679914735320717e-16;\n"
     "    const double r = (of_x >> 63) != 0u ? back : up, bad = x + y;\n"
     "    const double out = tdsl_double_of_bits(tdsl_bits_of_double(r) | (of_y - (of_y & "
     "most)));\n"
     "    return a <= large && b <= large ? out : bad;\n"
     "}\n"},
    {"tdsl_exp2_f32", "tdsl_exp2_f64", false,
     "/* At most 0.51 units in the last place off. */\n"
     "TDSL_HELPER float tdsl_exp2_f32(float x)\n"
     "{\n"
     "    return (float)tdsl_exp2_f64((double)x);\n"
     "}\n"},
    {"tdsl_expm1_f32", "tdsl_expm1_f64", false,
     "/* At most 0.51 units in the last place off. */\n"
     "TDSL_HELPER float tdsl_expm1_f32(float x)\n"
     "{\n"
     "    return (float)tdsl_expm1_f64((double)x);\n"
     "}\n"},
    {"tdsl_log2_f32", "tdsl_log2_f64", false,
     "/* At most 0.51 units in the last place off. */\n"
     "TDSL_HELPER float tdsl_log2_f32(float x)\n"
     "{\n"
     "    return (float)tdsl_log2_f64((double)x);\n"
     "}\n"},
    {"tdsl_log1p_f32", "tdsl_log1p_f64", false,
     "/* At most 0.51 units in the last place off. */\n"
     "TDSL_HELPER float tdsl_log1p_f32(float x)\n"
     "{\n"
     "    return (float)tdsl_log1p_f64((double)x);\n"
     "}\n"},
    {"tdsl_atan_f32", "tdsl_atan_f64", false,
     "/* At most 0.51 units in the last place off. */\n"
     "TDSL_HELPER float tdsl_atan_f32(float x)\n"
     "{\n"
     "    return (float)tdsl_atan_f64((double)x);\n"
     "}\n"},
    {"tdsl_atan2_f32", "tdsl_atan2_f64", false,
     "/* At most 0.51 units in the last place off. */\n"
     "TDSL_HELPER float tdsl_atan2_f32(float y, float x)\n"
     "{\n"
     "    return (float)tdsl_atan2_f64((double)y, (double)x);\n"
     "}\n"},
};

const FixedHelper *more_helper(const char *name)
{
    for (size_t k = 0; k < sizeof more_helpers / sizeof *more_helpers; k++) {
        if (strcmp(more_helpers[k].name, name) == 0) {
            return &more_helpers[k];
        }
    }
    return NULL;
}
