/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the table, and how one covers a tile. */
#include "backend/c/isa.h"

#include <stddef.h>

const Isa isa_table[ISA_COUNT] = {
    {"plain", 0, 0, "", NULL, "!defined(__GNUC__)"},
    {"vectors", 16, 16, "", NULL, "!defined(__x86_64__)"},
    {"neon", 16, 32, "", NULL, "defined(__aarch64__)"},
    {"avx2", 32, 16, "__attribute__((target(\"avx2,fma\")))",
     "__builtin_cpu_supports(\"avx2\") && __builtin_cpu_supports(\"fma\")", NULL},
    {"avx512", 64, 32,
     "__attribute__((target(\"avx512f,avx512dq,avx512vl,avx512bw,avx2,fma\")))",
     "__builtin_cpu_supports(\"avx512f\") && __builtin_cpu_supports(\"avx512dq\") && "
     "__builtin_cpu_supports(\"avx512vl\") && __builtin_cpu_supports(\"avx512bw\") && "
     "__builtin_cpu_supports(\"fma\")",
     "defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && "
     "defined(__AVX512BW__) && defined(__FMA__)"},
};

#define AVX512 "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma"

const IsaDotRow isa_dot_table[ISA_DOT_COUNT] = {
    {{"dotprod", 16, 32, "", NULL, "defined(__aarch64__) && defined(__ARM_FEATURE_DOTPROD)"},
     2,
     DOTS_ALIKE,
     NULL},
    {{"avxvnni", 32, 16, "__attribute__((target(\"avx2,fma,avxvnni\")))",
      "__builtin_cpu_supports(\"avx2\") && __builtin_cpu_supports(\"fma\") && "
      "tdsl_has_avxvnni()",
      NULL},
     3,
     DOTS_MIXED,
     "__clang_major__ >= 12 || (!defined(__clang__) && __GNUC__ >= 11)"},
    {{"avx512vnni", 64, 32, "__attribute__((target(\"" AVX512 ",avx512vnni\")))",
      "__builtin_cpu_supports(\"avx512vnni\") && isa == &tdsl_isa_avx512",
      "defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && "
      "defined(__AVX512BW__) && defined(__FMA__) && defined(__AVX512VNNI__)"},
     4,
     DOTS_MIXED,
     "__clang_major__ >= 6 || (!defined(__clang__) && __GNUC__ >= 8)"},
};

/* Vectors of a group of columns, where not all fit: two hide the time that a load takes. */
#define GROUP 2
/* Registers beside sums and the columns' operand: an element of the rows' operand, and what compilers need to move. */
#define SPARE 2

IsaCover isa_cover(const Isa *isa, int64_t rows, int64_t vectors, int64_t sums, int64_t held)
{
    if (isa->vector_bytes == 0 || (sums * rows + 1) * vectors + 1 + held <= isa->registers) {
        return (IsaCover){rows, vectors};
    }
    int64_t group = vectors < GROUP ? vectors : GROUP;
    int64_t most = (isa->registers - SPARE - held - group) / (sums * group);
    int64_t times = (rows + most - 1) / most;
    return (IsaCover){(rows + times - 1) / times, group};
}
