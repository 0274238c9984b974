/* SPDX-License-Identifier: Apache-2.0 */
/* make_stub_neff OUT < LINES: a NEFF-shaped file for the stub libnrt, from the lines of stub_file.c. Prints
 * its SHA-256, which a program registering it must give. */
#include "../../../runtime/src/sha256.h"
#include "../support_neff.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    static char text[65536];
    char digest[SHA256_HEX_BYTES];
    size_t bytes = 0;
    size_t got = fread(text, 1, sizeof text - 1, stdin);
    FILE *file = NULL;
    text[got] = '\0';
    unsigned char *neff = neff_make(text, &bytes);
    if (argc == 2 && neff != NULL) {
        file = fopen(argv[1], "wb");
    }
    if (file == NULL) {
        (void)fprintf(stderr, "usage: make_stub_neff OUT.neff < LINES\n");
        free(neff);
        return 2;
    }
    size_t wrote = fwrite(neff, 1, bytes, file);
    if (fclose(file) != 0 || wrote != bytes) {
        (void)fprintf(stderr, "make_stub_neff: cannot write %s\n", argv[1]);
        free(neff);
        return 3;
    }
    tdsl_sha256_hex(neff, bytes, digest);
    (void)printf("%s\n", digest);
    free(neff);
    return 0;
}
