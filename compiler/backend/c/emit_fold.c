/* SPDX-License-Identifier: Apache-2.0 */
/* Macros by which vectors take the least or the largest of two, and magnitudes. C has no operator for either. On x86 both are an
 * instruction, but a NaN among its operands gives the second one: so the old element is second, which wins over an equal one as well,
 * and a new NaN is put back. With TDSL_NO_BUILTINS defined vectors of any machine do it. */
#include "backend/c/emit.h"

static const char folds_text[] =
    "/* The new element where it wins over the old one; a NaN wins. */\n"
    "#define TDSL_FOLD(T, old, new, sign, op) \\\n"
    "    do { \\\n"
    "        const T new_ = (new); \\\n"
    "        const __typeof__(new_ > new_) wins_ = (new_ sign (old)) | ~(new_ <= new_); \\\n"
    "        (old) = (T)((wins_ & (__typeof__(new_ > new_))new_) | \\\n"
    "                    (~wins_ & (__typeof__(new_ > new_))(old))); \\\n"
    "    } while (0)\n"
    "#define TDSL_LEAST(T, old, new) TDSL_FOLD_##T(T, old, new, <, min)\n"
    "#define TDSL_MOST(T, old, new) TDSL_FOLD_##T(T, old, new, >, max)\n";

/* d: pd or ps, M: the type of their masks in gcc; 4: exceptions as they are set. */
static const char x86_text[] =
    "#if defined(__clang__)\n"
    "#define TDSL_FOLD_512(new, old, op, d, lanes, M) \\\n"
    "    __builtin_ia32_select##d##_512( \\\n"
    "        __builtin_ia32_cmp##d##512_mask(new, new, 7, lanes, 4), \\\n"
    "        __builtin_ia32_##op##d##512(new, old, 4), new)\n"
    "#else\n"
    "#define TDSL_FOLD_512(new, old, op, d, lanes, M) \\\n"
    "    __builtin_ia32_##op##d##512_mask(new, old, new, \\\n"
    "        (M)__builtin_ia32_cmp##d##512_mask(new, new, 7, lanes, 4), 4)\n"
    "#endif\n"
    "#define TDSL_FOLD_64(T, old, new, op, d, lanes, M) \\\n"
    "    do { \\\n"
    "        const T new_ = (new); \\\n"
    "        (old) = TDSL_FOLD_512(new_, old, op, d, lanes, M); \\\n"
    "    } while (0)\n"
    "#define TDSL_FOLD_32(T, old, new, op, d, lanes, M) \\\n"
    "    do { \\\n"
    "        const T new_ = (new), ordered_ = __builtin_ia32_##op##d##256(new_, old); \\\n"
    "        (old) = __builtin_ia32_blendv##d##256(ordered_, new_, (T)(new_ != new_)); \\\n"
    "    } while (0)\n"
    "#define TDSL_FOLD_16(T, old, new, op, d, lanes, M) \\\n"
    "    do { \\\n"
    "        const T new_ = (new), ordered_ = __builtin_ia32_##op##d(new_, old); \\\n"
    "        const __typeof__(new_ > new_) nan_ = new_ != new_; \\\n"
    "        (old) = (T)((nan_ & (__typeof__(new_ > new_))new_) | \\\n"
    "                    (~nan_ & (__typeof__(new_ > new_))ordered_)); \\\n"
    "    } while (0)\n";

static const char magnitude_text[] =
    "#define TDSL_ABS_f32(T, x) ((T)((__typeof__((x) > (x)))(x) & INT32_MAX))\n"
    "#define TDSL_ABS_f64(T, x) ((T)((__typeof__((x) > (x)))(x) & INT64_MAX))\n";

void folds_emit(const Helpers *h, Text *out)
{
    static const DType types[2] = {DTYPE_F32, DTYPE_F64};
    Text here, elsewhere;
    text_init(&here, h->arena);
    text_init(&elsewhere, h->arena);
    text_put(out, h->magnitude ? magnitude_text : "");
    if (!h->least && !h->most) {
        return;
    }
    for (uint32_t bit = 0; bit < 16; bit++) { /* as vector_type has them */
        DType t = types[bit / 8];
        long long lanes = 1ll << (bit % 8), bytes = lanes * (long long)dtype_bytes(t);
        if ((h->vectors >> bit & 1u) == 0) {
            continue;
        }
        if (bytes >= 16 && bytes <= 64) {
            text_printf(
                &here,
                "#define TDSL_FOLD_tdsl_%sx%lld(T, old, new, sign, op) TDSL_FOLD_%lld(T, "
                "old, new, op, %s)\n",
                dtype_name(t), lanes, bytes,
                t == DTYPE_F64 ? "pd, 255, unsigned char" : "ps, 65535, short");
        } else {
            text_printf(&here, "#define TDSL_FOLD_tdsl_%sx%lld TDSL_FOLD\n", dtype_name(t),
                        lanes);
        }
        text_printf(&elsewhere, "#define TDSL_FOLD_tdsl_%sx%lld TDSL_FOLD\n", dtype_name(t),
                    lanes);
    }
    text_put(out, folds_text);
    text_put(out,
             "#if defined(__x86_64__) && defined(__GNUC__) && !defined(TDSL_NO_BUILTINS)\n");
    text_put(out, x86_text);
    text_put(out, here.at);
    text_put(out, "#else\n");
    text_put(out, elsewhere.at);
    text_put(out, "#endif\n");
}
