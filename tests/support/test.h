/* SPDX-License-Identifier: Apache-2.0 */
/* What every unit test includes: cmocka with the headers it forgets, and a list that names a
 * test by the sentence it proves. */
#ifndef SUPPORT_TEST_H
#define SUPPORT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>

#include <cmocka.h>

#define TESTS(...)                                                                             \
    int main(void)                                                                             \
    {                                                                                          \
        const struct CMUnitTest tests[] = {__VA_ARGS__};                                       \
        cmocka_set_test_filter(getenv("CMOCKA_TEST_FILTER"));                                  \
        return cmocka_run_group_tests(tests, NULL, NULL);                                      \
    }
#define TEST(name) cmocka_unit_test(name)

/* The same where all tests of the file share its `static Ctx ctx`. */
#define TESTS_IN_CTX(...)                                                                      \
    static int set_up(void **state)                                                            \
    {                                                                                          \
        ctx_init(&ctx);                                                                        \
        return 0;                                                                              \
    }                                                                                          \
    static int tear_down(void **state)                                                         \
    {                                                                                          \
        ctx_release(&ctx);                                                                     \
        return 0;                                                                              \
    }                                                                                          \
    int main(void)                                                                             \
    {                                                                                          \
        const struct CMUnitTest tests[] = {__VA_ARGS__};                                       \
        cmocka_set_test_filter(getenv("CMOCKA_TEST_FILTER"));                                  \
        return cmocka_run_group_tests(tests, set_up, tear_down);                               \
    }

#endif
