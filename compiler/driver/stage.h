/* SPDX-License-Identifier: Apache-2.0 */
/* The stages a program passes through, from the table pipeline.def. What is in a stage, and how it is dumped, read,
 * verified and run, is compile.h's business. */
#ifndef DRIVER_STAGE_H
#define DRIVER_STAGE_H

#include <stdbool.h>

typedef enum Stage {
#define STAGE(id, ...) STAGE_##id,
#include "driver/pipeline.def"
    STAGE_COUNT,
    STAGE_NONE = STAGE_COUNT
} Stage;

typedef enum StageForm { FORM_TEXT, FORM_GRAPH, FORM_KERNEL, FORM_FILES } StageForm;

const char *stage_name(Stage s);
StageForm stage_form(Stage s);
/* False when no stage that can be printed has this name. */
bool stage_from_name(const char *name, Stage *out);

#endif
