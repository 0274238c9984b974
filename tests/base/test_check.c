/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes against arithmetic in 128 bits, at and around every limit; and what a failed CHECK does
 * to a process. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "support/test.h"

__extension__ typedef __int128 Wide;

static const int64_t values[] = {0,
                                 1,
                                 2,
                                 3,
                                 1000003,
                                 ((int64_t)1 << 31) - 1,
                                 (int64_t)1 << 31,
                                 ((int64_t)1 << 31) + 1,
                                 SIZE_LIMIT / 3,
                                 SIZE_LIMIT / 2,
                                 SIZE_LIMIT - 1,
                                 SIZE_LIMIT,
                                 SIZE_LIMIT + 1,
                                 INT64_MAX - 1,
                                 INT64_MAX};
#define N (sizeof values / sizeof *values)

static void test_sizes_end_at_their_limit(void **state)
{
    for (size_t i = 0; i < N; i++) {
        for (size_t k = 0; k < N && values[i] <= SIZE_LIMIT; k++) {
            int64_t a = values[i], b = values[k], out = -7;
            if (b > SIZE_LIMIT) {
                break;
            }
            Wide product = (Wide)a * b;
            assert_int_equal(size_mul(a, b, &out), product <= SIZE_LIMIT);
            assert_true(out == (product <= SIZE_LIMIT ? (int64_t)product : -7));
        }
    }
}

static int64_t saturated(Wide x)
{
    return x > INT64_MAX ? INT64_MAX : x < INT64_MIN ? INT64_MIN : (int64_t)x;
}

static void test_costs_saturate_with_their_sign(void **state)
{
    for (size_t i = 0; i < 2 * N; i++) {
        for (size_t k = 0; k < 2 * N; k++) {
            int64_t a = i < N ? values[i] : -values[i - N] - 1;
            int64_t b = k < N ? values[k] : -values[k - N] - 1;
            assert_true(sat_add(a, b) == saturated((Wide)a + b));
            assert_true(sat_mul(a, b) == saturated((Wide)a * b));
        }
    }
}

static void test_a_failed_check_says_where_and_ends_with_70(void **state)
{
    int out[2];
    assert_int_equal(pipe(out), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)dup2(out[1], STDERR_FILENO);
        CHECK(1 + 1 == 3);
        _exit(0);
    }
    close(out[1]);
    char text[600] = "";
    size_t n = 0;
    for (ssize_t got = 1; got > 0 && n < sizeof text - 1; n += (size_t)got) {
        got = read(out[0], text + n, sizeof text - 1 - n);
        assert_true(got >= 0);
    }
    close(out[0]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 70);
    assert_non_null(strstr(text, "tdsl: internal error: "));
    assert_non_null(strstr(text, "test_check.c:"));
    assert_non_null(strstr(text, "check failed: 1 + 1 == 3\n"));
    assert_non_null(strstr(text, "please report it\n"));
}

TESTS(TEST(test_sizes_end_at_their_limit), TEST(test_costs_saturate_with_their_sign),
      TEST(test_a_failed_check_says_where_and_ends_with_70))
