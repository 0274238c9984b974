/* SPDX-License-Identifier: Apache-2.0 */
/* tdslc --emit=path: the contraction order of an equation or a network file, without any code generation. */
#ifndef DRIVER_PATH_TOOL_H
#define DRIVER_PATH_TOOL_H

#include "driver/request.h"
#include "driver/tool.h"
#include "path/path.h"

bool path_tool(ToolRun *t, const Request *request, PathOptions *options);
/* The same decision for an equation whose kernel has none to make, as it contracts fewer than three tensors: a wrong one
 * is told, and a plan file has it. */
bool path_tool_decide(ToolRun *t, const PathOptions *options, PathProblem *p, PathResult *r);

#endif
