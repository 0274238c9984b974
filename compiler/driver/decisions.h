/* SPDX-License-Identifier: Apache-2.0 */
/* The options that set decisions, alike in both tools: what they say, the nest that --nest brings, and whether there is
 * anything left to decide. */
#ifndef DRIVER_DECISIONS_H
#define DRIVER_DECISIONS_H

#include "driver/compile.h"
#include "driver/tool.h"

/* Was a stage, or a part of one, read from a file (--nest, --plan-in)? */
bool decisions_given(const Options *o);
/* The files that given decisions, and the machine, are read from; how many. */
#define DECISION_FILES 3
uint32_t decisions_files(const Options *o, const char *file[DECISION_FILES]);

/* How the contraction order is searched. False after a message (exit 2). */
bool decisions_path(ToolRun *t, const Target *target, PathOptions *out);

/* What they say is said to `c`. False after a message or a diagnostic. */
bool decisions_read(ToolRun *t, Compilation *c);
/* The target as --max-instructions and --lnc have it; null after reporting. */
const Target *decisions_target(ToolRun *t, const Target *target);

/* compilation_start, from the nest of --nest where there is one. An option whose decision the input holds already is refused
 * (exit 2). False after a message or a diagnostic. */
bool decisions_start(ToolRun *t, Compilation *c, Input *in);

/* compilation_run_to. Searches of a contraction order are watched; Ctrl-C ends one with the best so far, which is said, and
 * anything else as always. */
bool decisions_make(ToolRun *t, Compilation *c, uint32_t end);

/* The stage that the options are obeyed in at the latest; STAGE_NONE: none is given. */
Stage decisions_stage(const ToolRun *t, const Compilation *c);

#endif
