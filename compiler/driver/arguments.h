/* SPDX-License-Identifier: Apache-2.0 */
/* @FILE on a command line: the words of a file in its place. */
#ifndef DRIVER_ARGUMENTS_H
#define DRIVER_ARGUMENTS_H

#include "driver/options.h"

/* Replaces *argv by one where no word before "--" begins with '@'. False after a message. */
bool arguments_expand(Arena *arena, int *argc, char ***argv, Usage *usage);

#endif
