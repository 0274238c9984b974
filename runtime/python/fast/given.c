/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the arguments of a call: element types, shapes, addresses, and a hash of them. */
#include "fast.h"

/* The element type of a view, 0 where kernels have no such. */
static int dtype_of(const Py_buffer *view)
{
    const char *format = view->format != NULL ? view->format : "B";
    if (format[0] == 'Z' && format[1] != '\0' && format[2] == '\0') {
        return format[1] == 'd' ? TDSL_C128 : format[1] == 'f' ? TDSL_C64 : 0;
    }
    if (format[0] == '\0' || format[1] != '\0') {
        return 0;
    }
    switch (format[0]) {
    case 'd':
        return TDSL_F64;
    case 'f':
        return TDSL_F32;
    case 'e':
        return TDSL_F16;
    case '?':
        return TDSL_BOOL;
    case 'b':
        return TDSL_I8;
    case 'B':
        return TDSL_U8;
    case 'h':
        return TDSL_I16;
    case 'H':
        return TDSL_U16;
    case 'i':
    case 'l':
    case 'q':
        return view->itemsize == 8 ? TDSL_I64 : view->itemsize == 4 ? TDSL_I32 : 0;
    case 'I':
    case 'L':
        return view->itemsize == 4 ? TDSL_U32 : 0;
    default:
        return 0;
    }
}

static bool is_aligned(const Py_buffer *view, int dtype)
{
    static const unsigned char alignment[] = {1, 8, 4, 2, 2, 4, 8, 1, 4,
                                              8, 1, 1, 2, 2, 4, 1, 1, 1};
    return ((uintptr_t)view->buf & (alignment[dtype] - 1U)) == 0;
}

static void add_word(given *g, int64_t word)
{
    g->words[g->n_words++] = word;
    g->hash = (g->hash ^ (uint64_t)word) * UINT64_C(0x9E3779B97F4A7C15);
    g->hash ^= g->hash >> 32;
}

/* Where the bytes of a view begin and how many there are to its last; whether it is in C order. */
static bool read_layout(given *g, int k, const Py_buffer *view)
{
    int64_t below = 0, above = 0, step = view->itemsize;
    bool in_order = true, empty = view->len == 0;
    for (int axis = view->ndim - 1; axis >= 0; axis--) {
        int64_t n = view->shape[axis], stride = view->strides[axis];
        in_order = in_order && (n == 1 || stride == step);
        step *= n;
        below += stride < 0 ? (n - 1) * stride : 0;
        above += stride > 0 ? (n - 1) * stride : 0;
    }
    g->first[k] = (char *)view->buf + (in_order || empty ? 0 : below);
    g->bytes[k] = in_order || empty ? view->len : above - below + view->itemsize;
    return in_order || empty;
}

/* Arrays that are aligned, floats and ints: others are not for here. */
static bool read_object(given *g, int k)
{
    PyObject *x = g->object[k];
    g->is_array[k] = (PyObject *)Py_TYPE(x) == fast_ndarray;
    if (!g->is_array[k]) {
        bool real = PyFloat_Check(x);
        if (!real && !PyLong_CheckExact(x)) {
            return false;
        }
        if (g->n_words >= MOST_WORDS) {
            return false;
        }
        g->dtype[k] = 0;
        add_word(g, real ? -1 : -2);
        return true;
    }
    Py_buffer *view = &g->view[g->n_views];
    if (PyObject_GetBuffer(x, view, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
        PyErr_Clear();
        return false;
    }
    g->n_views++;
    int dtype = dtype_of(view);
    if (dtype == 0 || !is_aligned(view, dtype) ||
        g->n_words + 1 + 2 * view->ndim > MOST_WORDS) {
        return false;
    }
    g->dtype[k] = (char)dtype;
    g->in_order[k] = read_layout(g, k, view);
    add_word(g, dtype | (int64_t)view->ndim << 8 | (int64_t)!g->in_order[k] << 16);
    for (int axis = 0; axis < view->ndim; axis++) {
        add_word(g, view->shape[axis]);
    }
    for (int axis = 0; axis < view->ndim && !g->in_order[k]; axis++) {
        add_word(g, view->strides[axis]);
    }
    return true;
}

bool read_given(given *g, PyObject *out, PyObject *threads, uint64_t seed)
{
    long count = 0;
    g->n_views = g->n_words = 0;
    g->hash = seed;
    if (fast_ndarray == NULL || g->n + 1 > MOST_ARGS) {
        return false;
    }
    if (threads != Py_None) {
        int overflow;
        count = PyLong_CheckExact(threads) ? PyLong_AsLongAndOverflow(threads, &overflow) : 0;
        if (count <= 0) {
            return false;
        }
    }
    g->has_out = out != Py_None;
    if (g->has_out) {
        if ((PyObject *)Py_TYPE(out) != fast_ndarray) {
            return false;
        }
        g->object[g->n++] = out;
    }
    add_word(g, count);
    add_word(g, g->n | (int64_t)g->has_out << 8);
    for (int k = 0; k < g->n; k++) {
        if (!read_object(g, k)) {
            return false;
        }
    }
    return true;
}

void drop_views(given *g)
{
    for (int k = 0; k < g->n_views; k++) {
        PyBuffer_Release(&g->view[k]);
    }
}
