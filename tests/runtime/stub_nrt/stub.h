/* SPDX-License-Identifier: Apache-2.0 */
/* A libnrt.so.1 for tests: the documented calls with host memory behind them, faithful to the
 * ABI and stricter than the real one about misuse. It runs NEFF-shaped test files
 * (stub_file.h), and does what a script tells it to at any call.
 *
 * A script is a list of items separated by commas; the first that fits a call decides it:
 *
 *     nrt_execute=1202      this function always returns 1202
 *     nrt_execute:2=1202    its second call since the script was set does
 *     nrt_load=nothing      it returns 0 and does nothing
 *     #17=hang              the 17th call of any function does not return until stub_nrt_let_go
 *     version=3             nrt_get_version says 3.0
 *     family=2              nrt_get_instance_info says so; 5, a trn2, else
 *
 * It is set by stub_nrt_script, or taken from TDSL_STUB_NRT when the library is first called.
 */
#ifndef STUB_NRT_H
#define STUB_NRT_H

#include "../../../runtime/src/nrt_abi.h"

#include <stdbool.h>

#define STUB_API __attribute__((visibility("default")))

/* For the tests, found by dlsym. */
STUB_API void stub_nrt_script(const char *script); /* sets the counts to 0 */
STUB_API long stub_nrt_calls(void);                /* since the script was set */
STUB_API long stub_nrt_calls_of(const char *function);
STUB_API const char *stub_nrt_call_name(long number); /* from 1 */
STUB_API long stub_nrt_live(void);          /* handles not given back, open sessions */
STUB_API long stub_nrt_misused(void);       /* calls the documentation forbids */
STUB_API const char *stub_nrt_misuse(void); /* the first of them, or "" */
STUB_API void stub_nrt_let_go(void);        /* ends every hang, now and later */

/* Within the stub. */
NrtStatus stub_enter(const char *function); /* counts the call; what the script says of it */
unsigned long long stub_number(const char *name, unsigned long long otherwise);

typedef struct StubTensor {
    char name[NRT_TENSOR_NAME_MAX];
    unsigned char *data;
    size_t bytes;
    int in_sets;
    struct StubTensor *source; /* of a slice */
    int slices;
} StubTensor;

typedef struct StubArg {
    char name[NRT_TENSOR_NAME_MAX];
    int32_t usage;
    int32_t dtype;
    uint32_t ndim;
    uint32_t shape[8];
    size_t bytes;
} StubArg;

#define STUB_ARGS    64
#define STUB_NOTHING (-4711) /* verdict of stub_enter: return 0 and do nothing */

/* A NEFF-shaped file, read. */
typedef struct StubModel {
    char program[6][1024]; /* words of its program line */
    int n_words;
    int n_args;
    StubArg args[STUB_ARGS];
} StubModel;

bool stub_model_read(const unsigned char *file, size_t bytes, StubModel *model);
/* The tensors in the order of the model's args. */
NrtStatus stub_model_run(const StubModel *model, StubTensor *const *tensors);

#endif
