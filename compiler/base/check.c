/* SPDX-License-Identifier: Apache-2.0 */
/* Checked and saturating 64-bit arithmetic, written without overflow so that no compiler builtin is needed,
 * and the end of the road for broken invariants. */
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

static const char *check_tool = "tdsl";
static void (*check_hook)(void *user);
static void *check_user;

void check_on_failure(const char *tool, void (*hook)(void *user), void *user)
{
    check_tool = tool;
    check_hook = hook;
    check_user = user;
}

NORETURN void check_failed(const char *file, int line, const char *what)
{
    fprintf(stderr,
            "%s: internal error: %s:%d: check failed: %s\n"
            "%s: this is a defect of the compiler, not of your program; please report it\n",
            check_tool, file, line, what, check_tool);
    fflush(stderr);
    void (*hook)(void *) = check_hook;
    check_hook = NULL; /* it may fail itself */
    if (hook != NULL) {
        hook(check_user);
        fflush(stderr);
    }
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    abort(); /* a fuzzer takes a signal for a finding, an exit for an end */
#else
    _Exit(70);
#endif
}

bool size_mul(int64_t a, int64_t b, int64_t *out)
{
    CHECK(a >= 0 && a <= SIZE_LIMIT && b >= 0 && b <= SIZE_LIMIT);
    if (b != 0 && a > SIZE_LIMIT / b) {
        return false;
    }
    *out = a * b;
    return true;
}

int64_t sat_add(int64_t a, int64_t b)
{
    if (b > 0 && a > INT64_MAX - b) {
        return INT64_MAX;
    }
    if (b < 0 && a < INT64_MIN - b) {
        return INT64_MIN;
    }
    return a + b;
}

int64_t sat_mul(int64_t a, int64_t b)
{
    if (a == 0 || b == 0) {
        return 0;
    }
    bool negative = (a < 0) != (b < 0);
    uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
    uint64_t y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
    uint64_t most = negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
    if (x > most / y) {
        return negative ? INT64_MIN : INT64_MAX;
    }
    uint64_t p = x * y;
    if (!negative) {
        return (int64_t)p;
    }
    return p == most ? INT64_MIN : -(int64_t)p;
}

int64_t round_up(int64_t n, int64_t unit)
{
    int64_t over = n % unit;
    return over == 0 ? n : sat_add(n, unit - over);
}

int64_t divisor_at_most(int64_t n, int64_t most)
{
    for (int64_t d = most < n ? most : n; d > 1; d--) {
        if (n % d == 0) {
            return d;
        }
    }
    return 1;
}

int64_t gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a < 0 ? -a : a;
}
