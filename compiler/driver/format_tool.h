/* SPDX-License-Identifier: Apache-2.0 */
/* tdslc fmt: programs in their one layout (front/format.h). */
#ifndef DRIVER_FORMAT_TOOL_H
#define DRIVER_FORMAT_TOOL_H

#include "driver/tool.h"

bool format_tool(ToolRun *t);

#endif
