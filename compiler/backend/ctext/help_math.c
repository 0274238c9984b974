/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of real numbers of our own. They have no branches, so that loops over them become vectors, and use only
 * what rounds the same everywhere: no fused multiply-adds, no libm. So an element has the same bits wherever it stands
 * and for each instruction set. Every f32 is tested (tests/backend/c/every_f32.py); docs/language.md has the bounds. */
#include <string.h>

#include "backend/ctext/help.h"

static const FixedHelper math_helpers[] = {
    /* exp(x) = 2^n * exp(r), r = x - n * log 2 in [-0.35, 0.35], log 2 in two parts of which n *
     * the first is exact (Cody and Waite 1980). n comes out of the low bits of x / log 2 + 1.5 *
     * 2^23 (2^52), and 2^n is two factors, so that subnormal results and those next to infinity
     * are right. f32: the polynomial is that of Cephes (expf.c); f64: Taylor's series to r^13 /
     * 13!, whose rest is under 2^-57, even and odd powers apart. */
    {"tdsl_exp_f32", "tdsl_bits_of_float tdsl_float_of_bits", false,
     "/* At most 0.8 units in the last place off. */\n"
     "TDSL_HELPER float tdsl_exp_f32(float x)\n{\n"
     "#if defined(__clang__)\n#pragma clang fp contract(off)\n#endif\n"
     "    const float top = x > 89.0f ? 89.0f : x, c = top < -104.0f ? -104.0f : top;\n"
     "    const float shifted = c * 1.44269504088896341f + 12582912.0f;\n"
     "    const float n = shifted - 12582912.0f;\n"
     "    const float high = c - n * 0.693359375f, low = n * 2.12194440e-4f;\n"
     "    const float r = high + low, one = 1.0f + r;\n"
     "    const float lost = ((1.0f - one) + r) + ((high - r) + low);\n"
     "    float p = 1.9875691500e-4f;\n"
     "    p = p * r + 1.3981999507e-3f;\n    p = p * r + 8.3334519073e-3f;\n"
     "    p = p * r + 4.1665795894e-2f;\n    p = p * r + 1.6666665459e-1f;\n"
     "    p = p * r + 5.0000001201e-1f;\n    p = one + (lost + p * (r * r));\n"
     "    const uint32_t k = tdsl_bits_of_float(shifted) - 0x4b400000u;\n"
     "    const uint32_t half = ((k + 256u) >> 1) - 128u;\n"
     "    return p * tdsl_float_of_bits((half + 127u) << 23) *\n"
     "           tdsl_float_of_bits((k - half + 127u) << 23);\n}\n"},
    {"tdsl_exp_rest_f64", NULL, false,
     "/* (exp(r) - 1 - r) / r^2 for r in [-0.35, 0.35]. */\n"
     "TDSL_HELPER double tdsl_exp_rest_f64(double r)\n"
     "{\n"
     "#if defined(__clang__)\n"
     "#pragma clang fp contract(off)\n"
     "#endif\n"
     "    const double z = r * r;\n"
     "    double p = 1.0 / 479001600.0, q = 1.0 / 6227020800.0;\n"
     "    p = p * z + 1.0 / 3628800.0;\n"
     "    q = q * z + 1.0 / 39916800.0;\n"
     "    p = p * z + 1.0 / 40320.0;\n"
     "    q = q * z + 1.0 / 362880.0;\n"
     "    p = p * z + 1.0 / 720.0;\n"
     "    q = q * z + 1.0 / 5040.0;\n"
     "    p = p * z + 1.0 / 24.0;\n"
     "    q = q * z + 1.0 / 120.0;\n"
     "    p = p * z + 0.5;\n"
     "    q = q * z + 1.0 / 6.0;\n"
     "    return p + q * r;\n"
     "}\n"},
    {"tdsl_exp_f64", "tdsl_bits_of_double tdsl_double_of_bits tdsl_exp_rest_f64", false,
     "/* At most 0.8 units in the last place off. */\n"
     "TDSL_HELPER double tdsl_exp_f64(double x)\n"
     "{\n"
     "#if defined(__clang__)\n"
     "#pragma clang fp contract(off)\n"
     "#endif\n"
     "    const double top = x > 710.0 ? 710.0 : x, c = top < -746.0 ? -746.0 : top;\n"
     "    const double shifted = c * 1.4426950408889634074 + 6755399441055744.0;\n"
     "    const double n = shifted - 6755399441055744.0;\n"
     "    const double high = c - n * 6.93145751953125e-1, low = n * "
     "-1.42860682030941723212e-6;\n"
     "    const double r = high + low, one = 1.0 + r;\n"
     "    const double lost = ((1.0 - one) + r) + ((high - r) + low);\n"
     "    const double p = one + (lost + tdsl_exp_rest_f64(r) * (r * r));\n"
     "    const uint64_t k = tdsl_bits_of_double(shifted) - UINT64_C(0x4338000000000000);\n"
     "    const uint64_t half = ((k + 2048u) >> 1) - 1024u;\n"
     "    return p * tdsl_double_of_bits((half + 1023u) << 52) *\n"
     "           tdsl_double_of_bits((k - half + 1023u) << 52);\n"
     "}\n"},
    /* For what is computed in double and rounded to f32: the polynomial of (exp(r) - 1) / r is the best one. */
    {"tdsl_exp_short", "tdsl_bits_of_double tdsl_double_of_bits", false,
     "/* exp(y) for y in [-40, 0] is this and *scale, a power of 2, within 2^-32. */\n"
     "TDSL_HELPER double tdsl_exp_short(double y, double *scale)\n"
     "{\n"
     "#if defined(__clang__)\n"
     "#pragma clang fp contract(off)\n"
     "#endif\n"
     "    const double shifted = y * 1.4426950408889634074 + 6755399441055744.0;\n"
     "    const double r = y - (shifted - 6755399441055744.0) * 0.69314718055994530942;\n"
     "    double p = 0.00019914539676201982;\n"
     "    p = p * r + 0.0013941139239994219;\n"
     "    p = p * r + 0.008333270943101502;\n"
     "    p = p * r + 0.041666352480767783;\n"
     "    p = p * r + 0.16666666843421593;\n"
     "    p = p * r + 0.5000000047242618;\n"
     "    p = p * r + 0.9999999999916271;\n"
     "    *scale = tdsl_double_of_bits((tdsl_bits_of_double(shifted) << 52) +\n"
     "                                 UINT64_C(0x3ff0000000000000));\n"
     "    return *scale * (r * p);\n"
     "}\n"},
    /* Declared so, a call sets no errno, and is an instruction. */
    {"tdsl_sqrt_f32", NULL, true,
     "#if defined(__GNUC__)\nfloat sqrtf(float) __attribute__((const));\n#endif\n"
     "TDSL_HELPER float tdsl_sqrt_f32(float x)\n{\n    return sqrtf(x);\n}\n"},
    {"tdsl_sqrt_f64", NULL, true,
     "#if defined(__GNUC__)\ndouble sqrt(double) __attribute__((const));\n#endif\n"
     "TDSL_HELPER double tdsl_sqrt_f64(double x)\n{\n    return sqrt(x);\n}\n"},
    /* x = 2^n * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)]; log(1 + f) by s = f / (2 + f) as fdlibm has it (e_log.c,
     * e_logf.c), polynomials included. Subnormal numbers are scaled first. */
    {"tdsl_log_f32", "tdsl_bits_of_float tdsl_float_of_bits", false,
     "/* At most 0.8 units in the last place off. */\n"
     "TDSL_HELPER float tdsl_log_f32(float x)\n"
     "{\n"
     "#if defined(__clang__)\n"
     "#pragma clang fp contract(off)\n"
     "#endif\n"
     "    const float up = x < 0x1p-126f ? x * 0x1p25f : x;\n"
     "    const uint32_t bits = tdsl_bits_of_float(up) + (0x3f800000u - 0x3f3504f3u);\n"
     "    const float n = tdsl_float_of_bits((bits >> 23) + 0x4b400000u) -\n"
     "                    (x < 0x1p-126f ? 12583064.0f : 12583039.0f);\n"
     "    const float f = tdsl_float_of_bits((bits & 0x7fffffu) + 0x3f3504f3u) - 1.0f;\n"
     "    const float s = f / (2.0f + f), z = s * s, w = z * z, half = 0.5f * f * f;\n"
     "    const float even = z * (0.66666662693f + w * 0.28498786688f);\n"
     "    const float odd = w * (0.40000972152f + w * 0.24279078841f);\n"
     "    const float sum = s * (half + (even + odd)) + n * 9.0580006145e-6f;\n"
     "    const float y = sum - half + f + n * 6.9313812256e-1f;\n"
     "    const float at_0 = x <= 0.0f ? tdsl_float_of_bits(0xff800000u) : x;\n"
     "    const float below = x < 0.0f ? tdsl_float_of_bits(0x7fc00000u) : at_0;\n"
     "    return x > 0.0f && x <= 3.40282346639e38f ? y : below;\n"
     "}\n"},
    {"tdsl_log_f64", "tdsl_bits_of_double tdsl_double_of_bits", false,
     "/* At most 0.9 units in the last place off. */\n"
     "TDSL_HELPER double tdsl_log_f64(double x)\n"
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
     "    const double sum = s * (half + (even + odd)) + n * 1.90821492927058770002e-10;\n"
     "    const double y = sum - half + f + n * 6.93147180369123816490e-1;\n"
     "    const double at_0 = x <= 0.0 ? tdsl_double_of_bits(UINT64_C(0xfff0000000000000)) : "
     "x;\n"
     "    const double below = x < 0.0 ? tdsl_double_of_bits(UINT64_C(0x7ff8000000000000)) : "
     "at_0;\n"
     "    return x > 0.0 && x <= 1.7976931348623157e308 ? y : below;\n"
     "}\n"},
    /* tanh(|x|) = (1 - e) / (1 + e), e = exp(-2 |x|) as the sum of a part for which 1 - e is exact and the small
     * rest. f32: in double. f64: both sides of the fraction are sums of two numbers, and the quotient is corrected
     * once by what it is off (Dekker's product). */
    {"tdsl_tanh_f32", "tdsl_bits_of_float tdsl_float_of_bits tdsl_exp_short", false,
     "/* At most 0.51 units in the last place off. */\n"
     "TDSL_HELPER float tdsl_tanh_f32(float x)\n"
     "{\n"
     "#if defined(__clang__)\n"
     "#pragma clang fp contract(off)\n"
     "#endif\n"
     "    const uint32_t sign = tdsl_bits_of_float(x) & 0x80000000u;\n"
     "    const float size = tdsl_float_of_bits(tdsl_bits_of_float(x) - sign);\n"
     "    double e = 0.0;\n"
     "    const double m = tdsl_exp_short(size > 20.0f ? -40.0 : -2.0 * (double)size, &e);\n"
     "    const float y = (float)(((1.0 - e) - m) / ((1.0 + e) + m));\n"
     "    return tdsl_float_of_bits(tdsl_bits_of_float(y) | sign);\n"
     "}\n"},
    {"tdsl_tanh_f64", "tdsl_bits_of_double tdsl_double_of_bits tdsl_exp_rest_f64", false,
     "/* At most 0.9 units in the last place off. */\n"
     "TDSL_HELPER double tdsl_tanh_f64(double x)\n"
     "{\n"
     "#if defined(__clang__)\n"
     "#pragma clang fp contract(off)\n"
     "#endif\n"
     "    const uint64_t sign = tdsl_bits_of_double(x) & UINT64_C(0x8000000000000000);\n"
     "    const double size = tdsl_double_of_bits(tdsl_bits_of_double(x) - sign);\n"
     "    const double y = size > 40.0 ? -80.0 : -2.0 * size;\n"
     "    const double shifted = y * 1.4426950408889634074 + 6755399441055744.0;\n"
     "    const double n = shifted - 6755399441055744.0;\n"
     "    const double high = y - n * 6.93145751953125e-1, low = n * "
     "-1.42860682030941723212e-6;\n"
     "    const double r = high + low, one = 1.0 + r;\n"
     "    const double lost = ((1.0 - one) + r) + ((high - r) + low);\n"
     "    const double scale = tdsl_double_of_bits((tdsl_bits_of_double(shifted) << 52) +\n"
     "                                             UINT64_C(0x3ff0000000000000));\n"
     "    const double e = scale * one, f = scale * (lost + tdsl_exp_rest_f64(r) * (r * r));\n"
     "    const double a = 1.0 - e, b = 1.0 + e;\n"
     "    const double a_low = ((1.0 - a) - e) - f, b_low = ((1.0 - b) + e) + f;\n"
     "    const double top = a + a_low, top_low = (a - top) + a_low;\n"
     "    const double under = b + b_low, under_low = (b - under) + b_low;\n"
     "    const double inverse = 1.0 / under, q = top * inverse;\n"
     "    const double q_cut = q * 134217729.0, q_high = q_cut - (q_cut - q), q_low = q - "
     "q_high;\n"
     "    const double u_cut = under * 134217729.0, u_high = u_cut - (u_cut - under);\n"
     "    const double u_low = under - u_high, product = q * under;\n"
     "    const double rest = ((q_high * u_high - product) + q_high * u_low + q_low * u_high) "
     "+\n"
     "                        q_low * u_low;\n"
     "    const double off = ((top - product) - rest) + (top_low - q * under_low);\n"
     "    return tdsl_double_of_bits(tdsl_bits_of_double(q + off * inverse) | sign);\n"
     "}\n"},
    /* Near 0 x times a polynomial in x^2, else 1 - exp(-g(x)), g = -log(erfc(x)) being almost a parabola; both the
     * best polynomials of their degree, their coefficients chosen by where x lies. */
    {"tdsl_erf_f32", "tdsl_bits_of_float tdsl_float_of_bits tdsl_exp_short", false,
     "/* At most 0.52 units in the last place off. */\n"
     "TDSL_HELPER float tdsl_erf_f32(float x)\n"
     "{\n"
     "#if defined(__clang__)\n"
     "#pragma clang fp contract(off)\n"
     "#endif\n"
     "    const uint32_t sign = tdsl_bits_of_float(x) & 0x80000000u;\n"
     "    const float size = tdsl_float_of_bits(tdsl_bits_of_float(x) - sign);\n"
     "    const double a = size > 4.0f ? 4.0 : (double)size;\n"
     "    const int small = a < 1.0;\n"
     "    const double u = small ? a * a : a, z = u * u;\n"
     "    double p = small ? 7.889037606021738e-05 : -0.0004413029095611434;\n"
     "    double q = small ? 0.0 : 2.1684167761548544e-05;\n"
     "    p = p * z + (small ? 0.005189532545575904 : -0.025207774697450325);\n"
     "    q = q * z + (small ? -0.0008020816648526244 : 0.004204388748788105);\n"
     "    p = p * z + (small ? 0.11283600138744103 : 0.633220631685068);\n"
     "    q = q * z + (small ? -0.026854443104612113 : 0.1084177959015944);\n"
     "    p = p * z + (small ? 1.1283791659129774 : -0.0001879596222003482);\n"
     "    q = q * z + (small ? -0.37612627132116994 : 1.1295780467962684);\n"
     "    p = p + q * u;\n"
     "    double e = 0.0;\n"
     "    const double m = tdsl_exp_short(small ? 0.0 : -p, &e);\n"
     "    const float y = (float)(small ? a * p : (1.0 - e) - m);\n"
     "    return tdsl_float_of_bits(tdsl_bits_of_float(y) | sign);\n"
     "}\n"},
    {"tdsl_erf_f64", "tdsl_bits_of_double tdsl_double_of_bits tdsl_exp_f64", false,
     "/* At most 2 units in the last place off. */\n"
     "TDSL_HELPER double tdsl_erf_f64(double x)\n"
     "{\n"
     "#if defined(__clang__)\n"
     "#pragma clang fp contract(off)\n"
     "#endif\n"
     "    const uint64_t sign = tdsl_bits_of_double(x) & UINT64_C(0x8000000000000000);\n"
     "    const double size = tdsl_double_of_bits(tdsl_bits_of_double(x) - sign);\n"
     "    const double a = size > 6.0 ? 6.0 : size;\n"
     "    const int small = a < 1.2;\n"
     "    const double u = small ? a * a : a, z = u * u;\n"
     "    double p = small ? 0.0 : 1.9680861778196585e-10;\n"
     "    double q = small ? 0.0 : -7.845793552976857e-09;\n"
     "    p = p * z + (small ? 4.835793478811902e-11 : 1.4633479395827123e-07);\n"
     "    q = q * z + (small ? -1.0584233755538576e-09 : -1.695372145804626e-06);\n"
     "    p = p * z + (small ? 1.4414737694399292e-08 : 1.3638117787742351e-05);\n"
     "    q = q * z + (small ? -1.630616477988233e-07 : -8.038556925290601e-05);\n"
     "    p = p * z + (small ? 1.6455912592138192e-06 : 0.00035434262555897496);\n"
     "    q = q * z + (small ? -1.4925204942377005e-05 : -0.0011477916923810364);\n"
     "    p = p * z + (small ? 0.00012055310999077595 : 0.0024251671822272595);\n"
     "    q = q * z + (small ? -0.0008548326294666905 : -0.000943911821674167);\n"
     "    p = p * z + (small ? 0.005223977609908831 : -0.018565994762603486);\n"
     "    q = q * z + (small ? -0.026866170643158785 : 0.1024558971785513);\n"
     "    p = p * z + (small ? 0.11283791670942102 : 0.6367435232343615);\n"
     "    q = q * z + (small ? -0.37612638903183415 : 1.1283491933461396);\n"
     "    p = p * z + (small ? 0.12837916709551256 : 3.388782651803544e-06);\n"
     "    p = p + q * u;\n"
     "    const double y = small ? a + a * p : 1.0 - tdsl_exp_f64(small ? 0.0 : -p);\n"
     "    return tdsl_double_of_bits(tdsl_bits_of_double(y) | sign);\n"
     "}\n"},
};

const FixedHelper *math_helper(const char *name)
{
    for (size_t k = 0; k < sizeof math_helpers / sizeof *math_helpers; k++) {
        if (strcmp(math_helpers[k].name, name) == 0) {
            return &math_helpers[k];
        }
    }
    return NULL;
}
