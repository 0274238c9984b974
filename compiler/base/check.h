/* SPDX-License-Identifier: Apache-2.0 */
/* Checked 64-bit arithmetic on sizes, and CHECK for what must hold if the compiler is right. A failed
 * CHECK is our fault, never the user's: it prints where, and ends with exit code 70. */
#ifndef BASE_CHECK_H
#define BASE_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__GNUC__)
#define NORETURN               __attribute__((noreturn))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define NORETURN
#define PRINTF_LIKE(fmt, args)
#endif

NORETURN void check_failed(const char *file, int line, const char *what);
/* Who says it, "tdsl" unless set, and what is done before the end; the second failure of a process does nothing more. */
void check_on_failure(const char *tool, void (*hook)(void *user), void *user);

#define CHECK(cond)                                                                            \
    do {                                                                                       \
        if (!(cond)) {                                                                         \
            check_failed(__FILE__, __LINE__, #cond);                                           \
        }                                                                                      \
    } while (0)
#define UNREACHABLE() check_failed(__FILE__, __LINE__, "unreachable")

/* The largest extent and the largest size in bytes the compiler handles. */
#define SIZE_LIMIT ((int64_t)1 << 62)

/* False, and *out untouched, when the result leaves [0, SIZE_LIMIT] (operands must be in it). */
bool size_mul(int64_t a, int64_t b, int64_t *out);

/* Saturating at INT64_MAX: for costs and counts, where an overflow only has to compare as "very many". */
int64_t sat_add(int64_t a, int64_t b);
int64_t sat_mul(int64_t a, int64_t b);
/* To whole units; saturating. */
int64_t round_up(int64_t n, int64_t unit);
/* The greatest common divisor, of both 0 that is 0. */
int64_t gcd(int64_t a, int64_t b);
/* The largest divisor of n that is at most `most`. */
int64_t divisor_at_most(int64_t n, int64_t most);

#endif
