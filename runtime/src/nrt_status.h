/* SPDX-License-Identifier: Apache-2.0 */
/* libnrt's statuses, each with its name, its meaning to a user, and what it means to us. */
#ifndef TDSL_RUNTIME_NRT_STATUS_H
#define TDSL_RUNTIME_NRT_STATUS_H

#include "nrt_abi.h"
#include "tdsl/abi.h"

#include <stdbool.h>

typedef struct NrtStatusRow {
    NrtStatus native;
    const char *name;
    tdsl_status status;
    bool retry; /* may go well a moment later */
    bool lost;  /* the device or its session is no use anymore */
    const char *text;
} NrtStatusRow;

/* Never null: a number nobody has told us of is a device error. */
const NrtStatusRow *tdsl_nrt_status_row(NrtStatus native);

#endif
