/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the NEFF-shaped files that the stub libnrt runs: the header of a NEFF, then a tar archive. */
#include "support_neff.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER ((size_t)1024)
#define BLOCK  ((size_t)512)

static void put(unsigned char *at, uint64_t value)
{
    for (size_t i = 0; i < 8; i++) {
        at[i] = (unsigned char)(value >> 8 * i);
    }
}

static void tar_header(unsigned char *block, const char *name, size_t size)
{
    unsigned sum = 0;
    memcpy(block, name, strlen(name));
    memcpy(block + 100, "0000644", 7);
    memcpy(block + 108, "0000000", 7);
    memcpy(block + 116, "0000000", 7);
    (void)snprintf((char *)block + 124, 12, "%011o", (unsigned)size);
    memcpy(block + 136, "00000000000", 11);
    memset(block + 148, ' ', 8);
    block[156] = '0';
    memcpy(block + 257, "ustar", 6);
    memcpy(block + 263, "00", 2);
    for (size_t i = 0; i < BLOCK; i++) {
        sum += block[i];
    }
    (void)snprintf((char *)block + 148, 7, "%06o", sum);
}

unsigned char *neff_make(const char *text, size_t *bytes)
{
    size_t size = strlen(text);
    size_t data = BLOCK + (size + BLOCK - 1) / BLOCK * BLOCK + 2 * BLOCK;
    unsigned char *file = calloc(1, HEADER + data);
    if (file == NULL) {
        return NULL;
    }
    put(file, 2);          /* pkg_version */
    put(file + 8, HEADER); /* header_size */
    put(file + 16, data);  /* data_size */
    put(file + 24, 2);     /* neff_version */
    memcpy(file + 40, "stub", 4);
    tar_header(file + HEADER, "stub.txt", size);
    memcpy(file + HEADER + BLOCK, text, size);
    *bytes = HEADER + data;
    return file;
}
