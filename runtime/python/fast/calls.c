/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of prepared calls, by equation, shapes, types and options. einsum has one; each kernel and expression is one. */
#include <stdlib.h>
#include <string.h>
#include "fast.h"

static PyObject *slow_name;

typedef struct entry {
    struct entry *next;  /* of the same bucket */
    struct entry *newer; /* in the order in which they came */
    uint64_t hash;
    PyObject *equation, *options; /* or null */
    run *r;
    int n_words;
    int64_t words[];
} entry;

enum { BUCKETS = 1024 };

/* einsum has one of these, and each kernel and each expression is one. */
typedef struct calls {
    PyObject_HEAD PyObject *names; /* of a kernel's parameters, or null */
    Py_ssize_t count, most;
    uint64_t changes;
    entry *oldest, *newest;
    entry **bucket; /* made with the first entry */
} calls;

static void free_entry(entry *e)
{
    Py_XDECREF(e->equation);
    Py_XDECREF(e->options);
    Py_XDECREF((PyObject *)e->r);
    free(e);
}

static void remove_oldest(calls *c)
{
    entry *e = c->oldest, **at = &c->bucket[e->hash % BUCKETS];
    while (*at != e) {
        at = &(*at)->next;
    }
    *at = e->next;
    c->oldest = e->newer;
    if (c->oldest == NULL) {
        c->newest = NULL;
    }
    c->count--;
    c->changes++;
    free_entry(e);
}

static PyObject *calls_clear(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    while (((calls *)self)->oldest != NULL) {
        remove_oldest((calls *)self);
    }
    return Py_NewRef(Py_None);
}

static void calls_free(PyObject *self)
{
    calls *c = (calls *)self;
    Py_XDECREF(calls_clear(self, NULL));
    free(c->bucket);
    Py_XDECREF(c->names);
    free_object(self);
}

static bool same_equation(const entry *e, PyObject *equation)
{
    return e->equation == equation || (e->equation != NULL && equation != NULL &&
                                       PyUnicode_Compare(e->equation, equation) == 0);
}

/* The run for what is given, borrowed, or null. */
static run *find(calls *c, const given *g, PyObject *equation, PyObject *options)
{
    if (c->bucket == NULL) {
        return NULL;
    }
    for (entry *e = c->bucket[g->hash % BUCKETS]; e != NULL; e = e->next) {
        if (e->hash != g->hash || e->n_words != g->n_words || !same_equation(e, equation) ||
            memcmp(e->words, g->words, (size_t)g->n_words * sizeof g->words[0]) != 0) {
            continue;
        }
        run *r = e->r;
        if (e->options == options) {
            return r;
        }
        if (e->options == NULL || options == NULL) {
            continue;
        }
        /* The comparison may run Python code, which may change the table. */
        uint64_t before = c->changes;
        int same = PyObject_RichCompareBool(e->options, options, Py_EQ);
        if (same < 0 || before != c->changes) {
            PyErr_Clear();
            return NULL;
        }
        if (same == 1) {
            return r;
        }
    }
    return NULL;
}

/* A hash to begin with; false where something has none, or is of another type. */
static bool seed_of(PyObject *equation, PyObject *options, uint64_t *seed)
{
    *seed = 0;
    if (equation != NULL) {
        if (!PyUnicode_CheckExact(equation)) {
            return false;
        }
        *seed = (uint64_t)PyObject_Hash(equation);
    }
    if (options != NULL) {
        Py_hash_t hash = PyObject_Hash(options);
        if (hash == -1) {
            PyErr_Clear();
            return false;
        }
        *seed += 31 * (uint64_t)hash;
    }
    return true;
}

static outcome attempt(calls *c, given *g, PyObject *equation, PyObject *out, PyObject *threads,
                       PyObject *options, PyObject **result)
{
    uint64_t seed;
    if (!seed_of(equation, options, &seed)) {
        return NOT_PREPARED;
    }
    outcome end = NOT_PREPARED;
    if (read_given(g, out, threads, seed)) {
        run *r = find(c, g, equation, options);
        if (r != NULL) {
            Py_INCREF((PyObject *)r); /* whatever others do with the table meanwhile */
            end = run_call(r, g, result);
            Py_DECREF((PyObject *)r);
        }
    }
    drop_views(g);
    return end;
}

static bool objects_of(PyObject *tuple, given *g)
{
    Py_ssize_t n = PyTuple_Size(tuple);
    if (n < 0 || n >= MOST_ARGS) {
        PyErr_Clear();
        return false;
    }
    g->n = (int)n;
    for (int k = 0; k < g->n; k++) {
        g->object[k] = PyTuple_GetItem(tuple, k);
    }
    return true;
}

static PyObject *none_is_null(PyObject *x)
{
    return x == Py_None ? NULL : x;
}

/* _find(equation, arrays, out, threads, options): the result, or None where no call is prepared. */
static PyObject *calls_find(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    if (n != 5) {
        PyErr_SetString(PyExc_TypeError, "_find takes 5 arguments");
        return NULL;
    }
    given g;
    PyObject *result = NULL;
    outcome end = NOT_PREPARED;
    if (objects_of(args[1], &g)) {
        end = attempt((calls *)self, &g, none_is_null(args[0]), args[2], args[3],
                      none_is_null(args[4]), &result);
    }
    return end == NOT_PREPARED ? Py_NewRef(Py_None) : result;
}

static bool add_entry(calls *c, const given *g, PyObject *equation, PyObject *options, run *r)
{
    if (c->bucket == NULL) {
        c->bucket = calloc(BUCKETS, sizeof(entry *));
    }
    size_t bytes = (size_t)g->n_words * sizeof g->words[0];
    entry *e = c->bucket != NULL ? malloc(sizeof *e + bytes) : NULL;
    if (e == NULL) {
        return false;
    }
    *e = (entry){
        .hash = g->hash, .n_words = g->n_words, .r = (run *)(void *)Py_NewRef((PyObject *)r)};
    e->equation = Py_XNewRef(equation);
    e->options = Py_XNewRef(options);
    memcpy(e->words, g->words, bytes);
    while (c->count >= c->most && c->oldest != NULL) {
        remove_oldest(c);
    }
    e->next = c->bucket[e->hash % BUCKETS];
    c->bucket[e->hash % BUCKETS] = e;
    if (c->newest != NULL) {
        c->newest->newer = e;
    } else {
        c->oldest = e;
    }
    c->newest = e;
    c->count++;
    c->changes++;
    return true;
}

/* _add(equation, arrays, out, threads, options, run): prepares such calls; whether that can be. */
static PyObject *calls_add(PyObject *self, PyObject *args)
{
    PyObject *equation, *arrays, *out, *threads, *options, *r;
    if (!PyArg_ParseTuple(args, "OO!OOOO", &equation, &PyTuple_Type, &arrays, &out, &threads,
                          &options, &r)) {
        return NULL;
    }
    given g;
    uint64_t seed;
    bool added = false;
    equation = none_is_null(equation);
    options = none_is_null(options);
    if (objects_of(arrays, &g) && seed_of(equation, options, &seed)) {
        if (read_given(&g, out, threads, seed) && fits((run *)r, &g)) {
            added = find((calls *)self, &g, equation, options) != NULL ||
                    add_entry((calls *)self, &g, equation, options, (run *)r);
        }
        drop_views(&g);
    }
    return PyBool_FromLong(added);
}

/* _take(names, most): the names of parameters, and how many calls may be prepared. */
static PyObject *calls_take(PyObject *self, PyObject *args)
{
    calls *c = (calls *)self;
    PyObject *names;
    if (!PyArg_ParseTuple(args, "O!n", &PyTuple_Type, &names, &c->most)) {
        return NULL;
    }
    Py_XDECREF(c->names);
    c->names = Py_NewRef(names);
    return Py_NewRef(Py_None);
}

/* _count(): how many calls are prepared. */
static PyObject *calls_count(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    return PyLong_FromSsize_t(((calls *)self)->count);
}

/* Puts arguments given by name into their places; false where Python has to look. */
static bool place_named(const calls *c, given *g, PyObject *named, PyObject **out,
                        PyObject **threads)
{
    Py_ssize_t at = 0, n_names = c->names != NULL ? PyTuple_Size(c->names) : 0;
    PyObject *name, *value;
    int positional = g->n;
    bool taken[MOST_ARGS] = {false};
    if (n_names >= MOST_ARGS || g->n > n_names) {
        return false;
    }
    while (PyDict_Next(named, &at, &name, &value)) {
        int k = 0;
        while (k < n_names && PyUnicode_Compare(PyTuple_GetItem(c->names, k), name) != 0) {
            k++;
        }
        if (k < n_names) { /* a parameter may be called like an option */
            if (k < positional || taken[k]) {
                return false;
            }
            g->object[k] = value;
            taken[k] = true;
            g->n++;
        } else if (PyUnicode_CompareWithASCIIString(name, "out") == 0) {
            *out = value;
        } else if (PyUnicode_CompareWithASCIIString(name, "threads") == 0) {
            *threads = value;
        } else {
            return false;
        }
    }
    for (int k = positional; k < g->n; k++) {
        if (!taken[k]) {
            return false;
        }
    }
    return true;
}

static PyObject *calls_call(PyObject *self, PyObject *args, PyObject *named)
{
    calls *c = (calls *)self;
    given g;
    PyObject *out = Py_None, *threads = Py_None, *result = NULL;
    if (objects_of(args, &g) && (named == NULL || place_named(c, &g, named, &out, &threads))) {
        outcome end = attempt(c, &g, NULL, out, threads, NULL, &result);
        if (end != NOT_PREPARED) {
            return result;
        }
    }
    if (slow_name == NULL) {
        slow_name = PyUnicode_InternFromString("_slow");
    }
    PyObject *slow = slow_name != NULL ? PyObject_GetAttr(self, slow_name) : NULL;
    if (slow != NULL) {
        result = PyObject_Call(slow, args, named);
        Py_DECREF(slow);
    }
    return result;
}

static PyMethodDef calls_methods[] = {
    {"_find", (PyCFunction)(void (*)(void))calls_find, METH_FASTCALL, NULL},
    {"_add", calls_add, METH_VARARGS, NULL},
    {"_take", calls_take, METH_VARARGS, NULL},
    {"_count", calls_count, METH_NOARGS, NULL},
    {"_forget", calls_clear, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyObject *calls_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    (void)args;
    (void)named;
    calls *c = (calls *)(void *)PyType_GenericAlloc(type, 0);
    if (c != NULL) {
        c->most = 256;
    }
    return (PyObject *)c;
}

static int calls_init(PyObject *self, PyObject *args, PyObject *named)
{
    (void)self;
    (void)args;
    (void)named;
    return 0;
}

static PyType_Slot calls_slots[] = {
    {Py_tp_new, (void *)calls_new},      {Py_tp_init, (void *)calls_init},
    {Py_tp_dealloc, (void *)calls_free}, {Py_tp_call, (void *)calls_call},
    {Py_tp_methods, calls_methods},      {0, NULL}};
PyType_Spec calls_spec = {"tdsl._fast.Calls", sizeof(calls), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, calls_slots};
