/* SPDX-License-Identifier: Apache-2.0 */
/* The one object of the tests that knows where checkout and build lie: ccache shares all others between checkouts. */
#include "support/places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of each path one copy, which the list keeps. */
typedef struct Place {
    struct Place *next;
    char path[];
} Place;

static const char *kept(const char *folder, const char *name)
{
    static Place *places;
    size_t size = strlen(folder) + 1 + strlen(name) + 1;
    Place *new = malloc(sizeof(Place) + size);
    if (new == NULL) {
        abort();
    }
    (void)snprintf(new->path, size, "%s/%s", folder, name);
    for (const Place *p = places; p != NULL; p = p->next) {
        if (strcmp(p->path, new->path) == 0) {
            free(new);
            return p->path;
        }
    }
    new->next = places;
    places = new;
    return new->path;
}

const char *source_file(const char *name)
{
    return kept(TDSL_SOURCE_DIR, name);
}

const char *build_file(const char *name)
{
    return kept(TDSL_BINARY_DIR, name);
}
