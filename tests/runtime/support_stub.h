/* SPDX-License-Identifier: Apache-2.0 */
/* The stub libnrt in tests. Each test takes a copy of the file, so that each has a library of its own:
 * one that hung is of no use to the next. */
#ifndef SUPPORT_STUB_H
#define SUPPORT_STUB_H

#include "check.h"

typedef struct Stub {
    char path[256];
    void *handle;
    void (*script)(const char *script);
    long (*calls)(void);
    long (*calls_of)(const char *function);
    const char *(*call_name)(long number);
    long (*live)(void);
    long (*misused)(void);
    const char *(*misuse)(void);
    void (*let_go)(void);
} Stub;

/* A fresh copy, opened for its controls. With `missing`, the copy lacks that symbol. */
void stub_open(Stub *stub, const char *missing);
/* Nothing lives, nothing was misused; removes the copy. */
void stub_close(Stub *stub);
/* Copies a file into a fresh one of the folder for temporary files; `path` has 256 bytes. */
void file_make(char *path, const void *bytes, size_t size);
/* A Python with NumPy, or null. */
const char *numpy_python(void);

/* Configuration for a context that uses the stub: any amount of work goes to the device. */
tdsl_config stub_config(const Stub *stub);

/* A NEFF-shaped file for support_kernels.h's matmul with m = 2, k = 3, n = 2, and its form. */
typedef struct StubNeff {
    unsigned char *bytes;
    size_t size;
    char sha256[65];
    tdsl_nki_part part; /* the form's one */
    tdsl_nki_form form;
} StubNeff;

extern const int64_t stub_dims[3];
extern const char stub_matmul_text[];
void stub_neff_open(StubNeff *neff, const char *text, const int64_t *dims);
void stub_neff_close(StubNeff *neff);

/* Arguments of that matmul, and whether its result is there or untouched. */
typedef struct MatmulArgs {
    float a[6];
    float b[6];
    float r[4];
    int64_t shape[3][2];
    tdsl_tensor args[3];
} MatmulArgs;

void matmul_args(MatmulArgs *m);
bool matmul_done(const MatmulArgs *m);
bool matmul_untouched(const MatmulArgs *m);

#endif
