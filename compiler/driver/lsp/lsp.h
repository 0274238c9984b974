/* SPDX-License-Identifier: Apache-2.0 */
/* `tdslc --lsp`: the language server protocol on standard input and output. The server keeps texts and answers; what the compiler
 * has to say of a text comes from a process for each version of it (task.h). */
#ifndef DRIVER_LSP_LSP_H
#define DRIVER_LSP_LSP_H

#include "driver/tool.h"

/* Until `exit`, or the end of the input. False: `exit` without `shutdown`, or the input ended. */
bool lsp_serve(ToolRun *tool);

#endif
