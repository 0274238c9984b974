/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a kernel: places of its arguments, new results, workspace, and what Python gets. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "fast.h"

static PyObject *no_arguments;

static PyObject *run_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    (void)named;
    unsigned long long address;
    const char *dims, *role, *dtype;
    Py_ssize_t dims_size, n_args, n_types, workspace;
    int threads, releases;
    PyObject *results, *gather, *keep;
    if (!PyArg_ParseTuple(args, "Ky#inpy#y#O!OO", &address, &dims, &dims_size, &threads,
                          &workspace, &releases, &role, &n_args, &dtype, &n_types,
                          &PyTuple_Type, &results, &gather, &keep)) {
        return NULL;
    }
    if (n_args > MOST_ARGS || n_types != n_args || PyTuple_Size(results) != n_args) {
        PyErr_SetString(PyExc_ValueError, "too many arguments for the module");
        return NULL;
    }
    run *r = (run *)(void *)PyType_GenericAlloc(type, 0);
    if (r == NULL) {
        return NULL;
    }
    r->dims = malloc((size_t)dims_size + sizeof(int64_t));
    if (r->dims == NULL) {
        Py_DECREF((PyObject *)r);
        return PyErr_NoMemory();
    }
    memcpy(r->dims, dims, (size_t)dims_size);
    memcpy(&r->call, &(uintptr_t){(uintptr_t)address}, sizeof r->call);
    r->workspace = (size_t)workspace;
    r->threads.count = threads;
    r->releases = releases != 0;
    r->n_args = (int)n_args;
    memcpy(r->role, role, (size_t)n_args);
    memcpy(r->dtype, dtype, (size_t)n_args);
    r->results = Py_NewRef(results);
    r->gather = Py_NewRef(gather);
    r->keep = Py_NewRef(keep);
    return (PyObject *)r;
}

/* The end of an object of a type of this module. */
void free_object(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    void *slot = PyType_GetSlot(type, Py_tp_free);
    freefunc release;
    memcpy(&release, &slot, sizeof release);
    release(self);
    Py_DECREF((PyObject *)type);
}

static void run_free(PyObject *self)
{
    run *r = (run *)self;
    free(r->dims);
    Py_XDECREF(r->results);
    Py_XDECREF(r->gather);
    Py_XDECREF(r->keep);
    free_object(self);
}

enum { KEPT_SPACE = 1 << 26 /* bytes of workspace that a thread keeps between calls */ };
static pthread_key_t space_key;

typedef struct space {
    size_t size;
    char *bytes;
} space;

static void free_space(void *kept)
{
    free(((space *)kept)->bytes);
    free(kept);
}

/* The workspace of this thread, or one to be freed after the call. */
static void *take_space(size_t size, void **temporary)
{
    space *kept = pthread_getspecific(space_key);
    if (kept != NULL && kept->size >= size) {
        return kept->bytes;
    }
    char *bytes = malloc(size);
    if (bytes == NULL || size > (size_t)KEPT_SPACE) {
        return *temporary = bytes;
    }
    if (kept == NULL) {
        kept = calloc(1, sizeof *kept);
        if (kept == NULL || pthread_setspecific(space_key, kept) != 0) {
            free(kept);
            return *temporary = bytes;
        }
    }
    free(kept->bytes);
    kept->bytes = bytes;
    kept->size = size;
    return bytes;
}

typedef union number {
    double f64;
    float f32;
    int64_t i64;
    int32_t i32;
} number;

/* A float or an int as a scalar argument; false where something would be lost, or Python has to say. */
static bool store_number(PyObject *x, int dtype, number *to)
{
    if (PyFloat_Check(x)) {
        double value = PyFloat_AsDouble(x);
        if (dtype == TDSL_F32) {
            to->f32 = (float)value;
            return !isinf(to->f32) || isinf(value);
        }
        to->f64 = value;
        return dtype == TDSL_F64;
    }
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(x, &overflow);
    if (overflow != 0) {
        return false;
    }
    switch (dtype) {
    case TDSL_F64:
        to->f64 = (double)value;
        return true;
    case TDSL_F32:
        to->f32 = (float)value;
        return true;
    case TDSL_I64:
        to->i64 = value;
        return true;
    case TDSL_I32:
        to->i32 = (int32_t)value;
        return value >= INT32_MIN && value <= INT32_MAX;
    default:
        return false;
    }
}

static bool is_read(char role)
{
    return role == 'r' || role == 'R';
}

static bool is_out(char role)
{
    return role == 'o' || role == 'O';
}

typedef struct places {
    void *address[MOST_ARGS]; /* of each argument of the kernel */
    Py_ssize_t bytes[MOST_ARGS];
    number numbers[MOST_ARGS];
    PyObject *result[MOST_ARGS]; /* of those with roles n (owned) and o (borrowed) */
} places;

/* Addresses of what was given. False where Python has to say what is wrong, or copy. */
static bool place_given(const run *r, given *g, places *p)
{
    int next = 0, next_view = 0;
    for (int k = 0; k < r->n_args; k++) {
        p->result[k] = NULL;
        p->address[k] = NULL;
        p->bytes[k] = 0;
        if (r->role[k] == 'n') {
            continue;
        }
        bool out = is_out(r->role[k]);
        int from = out ? g->n - 1 : next++;
        if (r->role[k] == 's') {
            if (!store_number(g->object[from], r->dtype[k], &p->numbers[k])) {
                return false;
            }
            p->address[k] = &p->numbers[k];
            continue;
        }
        const Py_buffer *view = &g->view[out ? g->n_views - 1 : next_view++];
        if (!is_read(r->role[k]) && view->readonly) {
            return false;
        }
        p->address[k] = g->first[from];
        p->bytes[k] = view->len != 0 ? g->bytes[from] : 0;
        p->result[k] = out ? g->object[from] : NULL;
    }
    return true;
}

/* Does something that is written share bytes with another argument? New results do not. */
static bool overlaps(const run *r, const places *p)
{
    for (int k = 0; k < r->n_args; k++) {
        if ((r->role[k] != 'w' && !is_out(r->role[k])) || p->bytes[k] == 0) {
            continue;
        }
        uintptr_t first = (uintptr_t)p->address[k], end = first + (size_t)p->bytes[k];
        for (int i = 0; i < r->n_args; i++) {
            uintptr_t other = (uintptr_t)p->address[i];
            if (i != k && p->bytes[i] != 0 && first < other + (size_t)p->bytes[i] &&
                other < end) {
                return true;
            }
        }
    }
    return false;
}

static bool make_results(const run *r, places *p)
{
    for (int k = 0; k < r->n_args; k++) {
        if (r->role[k] != 'n') {
            continue;
        }
        Py_buffer view;
        PyObject *a = p->result[k] =
            PyObject_Call(fast_empty, PyTuple_GetItem(r->results, k), NULL);
        if (a == NULL || PyObject_GetBuffer(a, &view, PyBUF_WRITABLE) != 0) {
            return false;
        }
        p->address[k] = view.buf;
        PyBuffer_Release(&view); /* nobody else knows the array yet */
    }
    return true;
}

/* What the call returns: None, one result, or a tuple of them; those without dimensions as scalars of NumPy. */
static PyObject *gather_results(const run *r, places *p)
{
    PyObject *all = r->gather != Py_None ? PyList_New(0) : NULL, *one = NULL;
    for (int k = 0; k < r->n_args; k++) {
        if (r->role[k] != 'n' && !is_out(r->role[k])) {
            continue;
        }
        PyObject *result = p->result[k];
        bool is_scalar = r->role[k] == 'n' &&
                         PyTuple_Size(PyTuple_GetItem(PyTuple_GetItem(r->results, k), 0)) == 0;
        result = is_scalar ? PyObject_GetItem(result, no_arguments) : Py_NewRef(result);
        if (all == NULL) {
            one = result;
            continue;
        }
        if (result == NULL || PyList_Append(all, result) != 0) {
            Py_XDECREF(result);
            Py_DECREF(all);
            return NULL;
        }
        Py_DECREF(result);
    }
    if (r->gather == Py_None) {
        return one != NULL || PyErr_Occurred() ? one : Py_NewRef(Py_None);
    }
    PyObject *tuple = all != NULL ? PyList_AsTuple(all) : NULL;
    PyObject *named =
        tuple != NULL ? PyObject_CallFunctionObjArgs(r->gather, tuple, NULL) : NULL;
    Py_XDECREF(tuple);
    Py_XDECREF(all);
    return named;
}

/* A process that was forked has none of OpenMP's threads, and GNU's waits for them. */
static bool is_forked;

static void note_fork(void)
{
    is_forked = true;
}

/* The kernel itself. Where there is no memory for its workspace, Python says so. */
static outcome compute(const run *r, places *p)
{
    void *temporary = NULL, *workspace = NULL;
    if (r->workspace != 0) {
        workspace = take_space(r->workspace, &temporary);
        if (workspace == NULL) {
            return NOT_PREPARED;
        }
    }
    const tdsl_threads *threads = r->threads.count > 1 && !is_forked ? &r->threads : NULL;
    PyThreadState *state = r->releases ? PyEval_SaveThread() : NULL;
    tdsl_status status = r->call(r->dims, p->address, workspace, r->workspace, threads);
    if (state != NULL) {
        PyEval_RestoreThread(state);
    }
    if (status != TDSL_OK) {
        Py_XDECREF(PyObject_CallMethod(r->keep, "fail", "iKKK", (int)status,
                                       (unsigned long long)(uintptr_t)r->dims,
                                       (unsigned long long)(uintptr_t)p->address,
                                       (unsigned long long)(uintptr_t)workspace));
    }
    free(temporary);
    return status == TDSL_OK ? DONE : RAISED;
}

outcome run_call(const run *r, given *g, PyObject **result)
{
    places p;
    if (!place_given(r, g, &p) || overlaps(r, &p)) {
        return NOT_PREPARED;
    }
    outcome end = make_results(r, &p) ? compute(r, &p) : RAISED;
    if (end == DONE) {
        *result = gather_results(r, &p);
        end = *result != NULL ? DONE : RAISED;
    }
    for (int k = 0; k < r->n_args; k++) {
        if (r->role[k] == 'n') {
            Py_XDECREF(p.result[k]);
        }
    }
    return end;
}

/* Do the types of what is given fit the roles? */
bool fits(const run *r, const given *g)
{
    int next = 0;
    for (int k = 0; k < r->n_args; k++) {
        if (r->role[k] == 'n') {
            continue;
        }
        int from = is_out(r->role[k]) ? g->n - 1 : next++;
        if (from >= g->n || g->is_array[from] == (r->role[k] == 's') ||
            (g->is_array[from] &&
             (g->dtype[from] != r->dtype[k] ||
              g->in_order[from] != (r->role[k] != 'R' && r->role[k] != 'O')))) {
            return false;
        }
    }
    return next + g->has_out == g->n;
}

static PyType_Slot run_slots[] = {
    {Py_tp_new, (void *)run_new}, {Py_tp_dealloc, (void *)run_free}, {0, NULL}};
PyType_Spec run_spec = {"tdsl._fast.Run", sizeof(run), 0, Py_TPFLAGS_DEFAULT, run_slots};

/* Before the first run. */
bool run_begin(void)
{
    no_arguments = PyTuple_New(0);
    return no_arguments != NULL && pthread_key_create(&space_key, free_space) == 0 &&
           pthread_atfork(NULL, NULL, note_fork) == 0;
}
