/* SPDX-License-Identifier: Apache-2.0 */
/* Writing and reading of .npy files. bf16 has no name there and travels as its 16 bits, unsigned. */
#include "npy.h"

#include <stdio.h>
#include <string.h>

#define MAGIC       "\x93NUMPY\x01\x00"
#define MAGIC_BYTES 8
#define HEADER_MAX  4096

static const char *dtype_descr(int32_t dtype)
{
    static const char *const descrs[] = {
        [TDSL_F64] = "<f8",  [TDSL_F32] = "<f4", [TDSL_F16] = "<f2",
        [TDSL_BF16] = "<u2", [TDSL_I32] = "<i4", [TDSL_I64] = "<i8",
        [TDSL_BOOL] = "|u1", [TDSL_C64] = "<c8", [TDSL_C128] = "<c16",
    };
    return descrs[dtype];
}

/* The header with its length and padding; 0 when it does not fit. */
static size_t header_make(char header[HEADER_MAX], int32_t dtype, int32_t rank,
                          const int64_t *extents)
{
    int at = snprintf(header + 10, HEADER_MAX - 10,
                      "{'descr': '%s', 'fortran_order': False, 'shape': (", dtype_descr(dtype));
    for (int32_t axis = 0; axis < rank && at > 0 && at < HEADER_MAX - 128; axis++) {
        at += snprintf(header + 10 + at, 32, "%lld,", (long long)extents[axis]);
    }
    if (at <= 0 || at >= HEADER_MAX - 128) {
        return 0;
    }
    at += snprintf(header + 10 + at, 8, "), }");
    size_t used = 10 + (size_t)at + 1;
    size_t total = (used + 63) / 64 * 64;
    memset(header + used - 1, ' ', total - used);
    header[total - 1] = '\n';
    memcpy(header, MAGIC, MAGIC_BYTES);
    header[8] = (char)((total - 10) & 0xff);
    header[9] = (char)((total - 10) >> 8);
    return total;
}

bool tdsl_npy_write(const char *path, int32_t dtype, int32_t rank, const int64_t *extents,
                    const void *data, size_t bytes, Fault *fault)
{
    char header[HEADER_MAX];
    size_t header_bytes = header_make(header, dtype, rank, extents);
    FILE *file = header_bytes > 0 ? fopen(path, "wbxe") : NULL;
    if (file == NULL) {
        return tdsl_fault_set(fault, TDSL_E_DEVICE, "'%s' cannot be written", path);
    }
    bool good = fwrite(header, 1, header_bytes, file) == header_bytes &&
                (bytes == 0 || fwrite(data, 1, bytes, file) == bytes);
    good = fclose(file) == 0 && good;
    return good ||
           tdsl_fault_set(fault, TDSL_E_DEVICE, "'%s' cannot be written to its end", path);
}

/* Leaves the file at the first element; false when it is no array of such elements. */
static bool header_read(FILE *file, int32_t dtype)
{
    unsigned char head[10];
    char text[HEADER_MAX];
    if (fread(head, 1, sizeof head, file) != sizeof head ||
        memcmp(head, MAGIC, MAGIC_BYTES) != 0) {
        return false;
    }
    size_t length = (size_t)head[8] | (size_t)head[9] << 8;
    if (length >= sizeof text || fread(text, 1, length, file) != length) {
        return false;
    }
    text[length] = '\0';
    bool same = strstr(text, dtype_descr(dtype)) != NULL;
    if (dtype == TDSL_BOOL) {
        same = same || strstr(text, "'|b1'") != NULL || strstr(text, "'|i1'") != NULL;
    }
    return same && strstr(text, "'fortran_order': False") != NULL;
}

bool tdsl_npy_read(const char *path, int32_t dtype, void *data, size_t bytes, Fault *fault)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        return tdsl_fault_set(fault, TDSL_E_DEVICE, "the emulator left no result '%s'", path);
    }
    bool header = header_read(file, dtype);
    bool whole =
        header && (bytes == 0 || fread(data, 1, bytes, file) == bytes) && fgetc(file) == EOF;
    (void)fclose(file);
    if (!whole) {
        return tdsl_fault_set(fault, TDSL_E_DEVICE,
                              header
                                  ? "the emulator's result '%s' is not of %zu bytes"
                                  : "the emulator's result '%s' has another element type (%zu "
                                    "bytes wanted)",
                              path, bytes);
    }
    return true;
}
