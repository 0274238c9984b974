/* SPDX-License-Identifier: Apache-2.0 */
/* tdsl-run */
#include "driver/run/run.h"

int main(int argc, char **argv)
{
    return tool_main(TOOL_RUN, argc, argv, NULL, run_tool);
}
