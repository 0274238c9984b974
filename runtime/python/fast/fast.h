/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of compiled kernels without Python code in between. Arrays are read by the buffer protocol (given.c); the call
 * that was prepared for their shapes and types is looked up (calls.c); results are made, the kernel runs (run.c). Whatever
 * is not exactly as prepared goes back to the Python code of the package, which has the same meaning and raises the
 * errors. Stable ABI of Python 3.11. */
#ifndef TDSL_PYTHON_FAST_H
#define TDSL_PYTHON_FAST_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include "tdsl/abi.h"

enum {
    MOST_ARGS = 32,  /* of a kernel; those with more are called by ctypes */
    MOST_WORDS = 160 /* of a key */
};

/* NOT_PREPARED: nothing happened, the Python code is to be called. RAISED: an exception is set. */
typedef enum outcome { DONE, NOT_PREPARED, RAISED } outcome;

/* From numpy and the package; null until something is prepared. */
extern PyObject *fast_ndarray, *fast_empty;

/* A kernel with its extents. */
typedef struct run {
    PyObject_HEAD tdsl_status (*call)(const int64_t *, void *const *, void *, size_t,
                                      const tdsl_threads *);
    int64_t *dims;
    size_t workspace;
    tdsl_threads threads;
    bool releases; /* the GIL, as there is much to compute */
    int n_args;
    /* r: read, w: updated in place, s: a number, n: a new result, o: a result that the caller gives; R, O: by the strides with
     * which the call was prepared */
    char role[MOST_ARGS];
    char dtype[MOST_ARGS]; /* tdsl_dtype */
    PyObject *results;     /* for each argument with role n the arguments of numpy.empty */
    PyObject *gather;      /* the type of several results, or None */
    PyObject *keep;        /* the library that the kernel is in */
} run;

/* What a call gives. */
typedef struct given {
    int n; /* arrays and numbers, an `out` the last */
    bool has_out;
    PyObject *object[MOST_ARGS]; /* borrowed */
    Py_buffer view[MOST_ARGS];
    int n_views;
    bool is_array[MOST_ARGS], in_order[MOST_ARGS];
    char dtype[MOST_ARGS];
    void *first[MOST_ARGS];      /* the lowest address of an array */
    Py_ssize_t bytes[MOST_ARGS]; /* from there to its end */
    int n_words;
    uint64_t hash;
    int64_t words
        [MOST_WORDS]; /* threads, count, and for each array its type, shape, and strides if it is not in C order */
} given;

/* Reads the objects of `g`, and `out` and `threads`, which may be None. False where they are not for this module. Views
 * are held until drop_views, in any case. */
bool read_given(given *g, PyObject *out, PyObject *threads, uint64_t seed);
void drop_views(given *g);

/* Calls a kernel on arguments of which fits(r, g). */
bool fits(const run *r, const given *g);
outcome run_call(const run *r, given *g, PyObject **result);
bool run_begin(void);
void free_object(PyObject *self);

extern PyType_Spec run_spec, calls_spec;

#endif
