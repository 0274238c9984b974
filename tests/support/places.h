/* SPDX-License-Identifier: Apache-2.0 */
/* Files of this checkout and of the folder it is built in, by absolute path wherever a test is run. */
#ifndef SUPPORT_PLACES_H
#define SUPPORT_PLACES_H

/* The path of a file, named from the top; it stays where it is. */
const char *source_file(const char *name);
const char *build_file(const char *name);

#endif
