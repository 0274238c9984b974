/* SPDX-License-Identifier: Apache-2.0 */
/* The module tdsl._fast: its types, and what it takes from numpy. */
#include "fast.h"

enum { VERSION = 3 /* of what _calls.py expects here */ };

PyObject *fast_ndarray, *fast_empty;

static PyObject *setup(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *type, *empty;
    if (!PyArg_ParseTuple(args, "OO", &type, &empty)) {
        return NULL;
    }
    if (fast_ndarray == NULL) {
        fast_empty = Py_NewRef(empty);
        fast_ndarray = Py_NewRef(type);
    }
    return Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
    {"setup", setup, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_fast", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__fast(void);

PyMODINIT_FUNC PyInit__fast(void)
{
    PyObject *m = PyModule_Create(&module);
    PyObject *run_type = PyType_FromSpec(&run_spec), *calls_type = PyType_FromSpec(&calls_spec);
    if (!run_begin() || m == NULL || run_type == NULL || calls_type == NULL ||
        PyModule_AddObjectRef(m, "Run", run_type) != 0 ||
        PyModule_AddObjectRef(m, "Calls", calls_type) != 0 ||
        PyModule_AddIntConstant(m, "VERSION", VERSION) != 0) {
        Py_XDECREF(m);
        m = NULL;
    }
    Py_XDECREF(run_type);
    Py_XDECREF(calls_type);
    return m;
}
