/* SPDX-License-Identifier: Apache-2.0 */
/* What the runtime's tests share: cmocka, and a few checks that print the message when they fail. */
#ifndef RUNTIME_CHECK_H
#define RUNTIME_CHECK_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tdsl/tdsl.h"
#include "support/test.h"
#include "support_kernels.h"

/* `status` is what was wanted, and the message has every one of the words (up to three). */
static inline void expect_failure(tdsl_status status, tdsl_status want,
                                  const tdsl_report *report, const char *word1,
                                  const char *word2, const char *word3)
{
    const char *words[] = {word1, word2, word3};
    if (status != want || report->status != want) {
        print_error("%s, wanted %s: %s\n", tdsl_status_name(status), tdsl_status_name(want),
                    report->message);
    }
    assert_int_equal(status, want);
    assert_int_equal(report->status, want);
    for (size_t i = 0; i < 3; i++) {
        if (words[i] != NULL && strstr(report->message, words[i]) == NULL) {
            print_error("'%s' is not in: %s\n", words[i], report->message);
            fail();
        }
    }
}

static inline void expect_ok(tdsl_status status, const tdsl_report *report)
{
    if (status != TDSL_OK) {
        print_error("%s: %s\n", tdsl_status_name(status), report->message);
    }
    assert_int_equal(status, TDSL_OK);
}

static inline tdsl_context *make_context(const tdsl_config *config)
{
    tdsl_context *context = NULL;
    tdsl_report report = TDSL_REPORT_INIT;
    expect_ok(tdsl_context_create(config, &context, &report), &report);
    return context;
}

static inline tdsl_kernel *make_kernel(tdsl_context *context, const tdsl_kernel_info *info)
{
    tdsl_kernel *kernel = NULL;
    tdsl_report report = TDSL_REPORT_INIT;
    expect_ok(tdsl_register(context, info, &report), &report);
    expect_ok(tdsl_find(context, info->name, &kernel, &report), &report);
    return kernel;
}

#endif
