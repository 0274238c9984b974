/* SPDX-License-Identifier: Apache-2.0 */
/* NEFF-shaped test files: the 1024-byte header of a NEFF, then a tar archive with one member, stub.txt,
 * whose lines have fields separated by tabs:
 *
 *     program builtin matmul
 *     program emulator PYTHON RUN.PY PROGRAM.PY FUNCTION TARGET
 *     input  NAME DTYPE EXTENT ...        DTYPE is the number of nrt_dtype_t
 *     output NAME DTYPE EXTENT ...
 */
#include "stub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER    1024
#define TAR_BLOCK 512

static uint64_t little_endian(const unsigned char *at)
{
    uint64_t value = 0;
    for (size_t i = 8; i-- > 0;) {
        value = value << 8 | at[i];
    }
    return value;
}

static size_t dtype_bytes(int32_t dtype)
{
    switch (dtype) {
    case NRT_DTYPE_INT8:
    case NRT_DTYPE_UINT8:
        return 1;
    case NRT_DTYPE_BFLOAT16:
    case NRT_DTYPE_FLOAT16:
        return 2;
    case NRT_DTYPE_INT64:
        return 8;
    default:
        return 4;
    }
}

/* Splits a line at tabs, in place. */
static int fields_split(char *line, char **fields, int most)
{
    int n = 0;
    for (char *at = line; at != NULL && n < most; n++) {
        fields[n] = at;
        at = strchr(at, '\t');
        if (at != NULL) {
            *at++ = '\0';
        }
    }
    return n;
}

static bool arg_read(StubModel *model, char **fields, int n)
{
    if (model->n_args == STUB_ARGS || n < 3 || n > 3 + 8) {
        return false;
    }
    StubArg *arg = &model->args[model->n_args++];
    (void)snprintf(arg->name, sizeof arg->name, "%s", fields[1]);
    arg->usage =
        strcmp(fields[0], "output") == 0 ? NRT_TENSOR_USAGE_OUTPUT : NRT_TENSOR_USAGE_INPUT;
    arg->dtype = (int32_t)strtol(fields[2], NULL, 10);
    arg->bytes = dtype_bytes(arg->dtype);
    for (int i = 3; i < n; i++) {
        arg->shape[arg->ndim] = (uint32_t)strtoul(fields[i], NULL, 10);
        arg->bytes *= arg->shape[arg->ndim++];
    }
    return true;
}

static bool line_read(StubModel *model, char *line)
{
    char *fields[16];
    int n = fields_split(line, fields, 16);
    if (strcmp(fields[0], "program") == 0 && n - 1 <= 6) {
        model->n_words = n - 1;
        for (int i = 1; i < n; i++) {
            (void)snprintf(model->program[i - 1], sizeof model->program[0], "%s", fields[i]);
        }
        return n > 2;
    }
    return (strcmp(fields[0], "input") == 0 || strcmp(fields[0], "output") == 0) &&
           arg_read(model, fields, n);
}

bool stub_model_read(const unsigned char *file, size_t bytes, StubModel *model)
{
    if (bytes < HEADER + TAR_BLOCK || little_endian(file + 8) != HEADER ||
        little_endian(file + 16) != bytes - HEADER) {
        return false;
    }
    const unsigned char *tar = file + HEADER;
    char size_text[13] = {0};
    memcpy(size_text, tar + 124, 12);
    size_t size = strtoull(size_text, NULL, 8);
    if (strcmp((const char *)tar, "stub.txt") != 0 || size > bytes - HEADER - TAR_BLOCK) {
        return false;
    }
    char *text = malloc(size + 1);
    if (text == NULL) {
        return false;
    }
    memcpy(text, tar + TAR_BLOCK, size);
    text[size] = '\0';
    bool good = true;
    for (char *line = text; good && *line != '\0';) {
        char *end = strchr(line, '\n');
        char *next = end != NULL ? end + 1 : line + strlen(line);
        if (end != NULL) {
            *end = '\0';
        }
        good = *line == '\0' || line_read(model, line);
        line = next;
    }
    free(text);
    return good && model->n_words > 0;
}
