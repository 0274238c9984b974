/* SPDX-License-Identifier: Apache-2.0 */
/* Extents that a kernel's table computes from open dimensions: what follows from them for open dimensions that nothing else says,
 * and their values. Kernels without any pay nothing. */
#include "internal.h"

#include <stdio.h>

#define MOST (INT64_MAX / 4) /* as in generated C: sums of two such fit */

/* The value from those before it, none of which is unknown. */
static ExtentFault value_of(const tdsl_computed *x, const int64_t *dims, int64_t *value)
{
    *value = x->base;
    for (int32_t t = 0; t < x->n_terms; t++) {
        int64_t extent = dims[x->terms[t].dim];
        int64_t by = x->product != 0 ? *value : x->terms[t].coefficient;
        if (*value > MOST || *value < -MOST ||
            (extent > 0 && (by > MOST / extent || by < -MOST / extent))) {
            return EXTENT_OVERFLOW;
        }
        *value = x->product != 0 ? by * extent : *value + by * extent;
    }
    if (*value < 0 || *value > MOST) {
        return *value < 0 ? EXTENT_NEGATIVE : EXTENT_OVERFLOW;
    }
    *value /= x->divisor;
    return EXTENT_GOOD;
}

/* The only term that is unknown; -1: there is none, or several. */
static int32_t unknown_term(const tdsl_computed *x, const int64_t *dims)
{
    int32_t found = -1;
    for (int32_t t = 0; t < x->n_terms; t++) {
        if (dims[x->terms[t].dim] == DIM_UNBOUND) {
            if (found >= 0) {
                return -1;
            }
            found = t;
        }
    }
    return found;
}

static bool all_known(const tdsl_computed *x, const int64_t *dims)
{
    bool known = true;
    for (int32_t t = 0; t < x->n_terms; t++) {
        known = known && dims[x->terms[t].dim] != DIM_UNBOUND;
    }
    return known;
}

/* What unknown term number `at` must be so that the extent is `value`. EXTENT_UNKNOWN: that does not say it. */
static ExtentFault solve(const tdsl_computed *x, int64_t *dims, int32_t at, int64_t value)
{
    const tdsl_term *unknown = &x->terms[at];
    tdsl_term rest[TDSL_MAX_DIMS];
    int64_t known = 0, by = unknown->coefficient;
    for (int32_t t = 0, n = 0; t < x->n_terms; t++) {
        if (t != at) {
            rest[n++] = x->terms[t];
        }
    }
    tdsl_computed others = {x->base, 1, x->product, x->n_terms - 1, rest};
    ExtentFault fault = value_of(&others, dims, &known); /* of a sum it may be below 0 */
    if (fault == EXTENT_OVERFLOW || x->divisor != 1 || value > MOST ||
        (x->product != 0 && known == 0) || known < -MOST) {
        return EXTENT_UNKNOWN;
    }
    by = x->product != 0 ? known : by;
    value -= x->product != 0 ? 0 : known;
    if (by == 0 || by < -MOST || value % by != 0 || value / by < 0) {
        return EXTENT_IMPOSSIBLE;
    }
    dims[unknown->dim] = value / by;
    return EXTENT_GOOD;
}

/* Open dimensions that extents of arguments say by what is computed from them. */
static ExtentFault solve_all(const tdsl_kernel_info *info, int64_t *dims, int32_t *dim)
{
    for (bool more = true; more;) {
        more = false;
        for (int32_t c = 0; c < info->n_computed; c++) {
            const tdsl_computed *x = &info->computed[c];
            int64_t *own = &dims[info->n_dims + c], value = 0;
            if (*own == DIM_UNBOUND) {
                if (all_known(x, dims) && value_of(x, dims, &value) == EXTENT_GOOD) {
                    *own = value;
                    more = true;
                }
                continue;
            }
            int32_t at = unknown_term(x, dims);
            ExtentFault fault = at < 0 ? EXTENT_UNKNOWN : solve(x, dims, at, *own);
            if (fault == EXTENT_IMPOSSIBLE) {
                *dim = info->n_dims + c;
                return fault;
            }
            more = more || fault == EXTENT_GOOD;
        }
    }
    return EXTENT_GOOD;
}

ExtentFault tdsl_extents_complete(const tdsl_kernel_info *info, int64_t *dims, int32_t *dim,
                                  int64_t *value)
{
    ExtentFault fault = solve_all(info, dims, dim);
    for (int32_t d = 0; fault == EXTENT_GOOD && d < info->n_dims; d++) {
        if (dims[d] == DIM_UNBOUND) {
            *dim = d;
            fault = EXTENT_UNKNOWN;
        }
    }
    for (int32_t c = 0; fault == EXTENT_GOOD && c < info->n_computed; c++) {
        int64_t *own = &dims[info->n_dims + c];
        *dim = info->n_dims + c;
        fault = value_of(&info->computed[c], dims, value);
        fault = fault == EXTENT_GOOD && *own != DIM_UNBOUND && *own != *value ? EXTENT_DIFFERS
                                                                              : fault;
        *own = fault == EXTENT_GOOD ? *value : *own;
    }
    return fault;
}

/* --- as text --- */

typedef struct Writer {
    char *at;
    size_t left;
} Writer;

static void wrote(Writer *w, int count)
{
    size_t n = count < 0 ? 0 : (size_t)count < w->left ? (size_t)count : w->left - 1;
    w->at += n;
    w->left -= n;
}

static void put(Writer *w, const char *text)
{
    wrote(w, snprintf(w->at, w->left, "%s", text));
}

static void put_number(Writer *w, int64_t number)
{
    wrote(w, snprintf(w->at, w->left, "%lld", (long long)number));
}

static void put_extent(Writer *w, const tdsl_kernel_info *info, int64_t dim, bool inner);

static void put_sum(Writer *w, const tdsl_kernel_info *info, const tdsl_computed *x)
{
    bool first = true;
    for (int pass = 0; pass < 2; pass++) { /* what is added, then what is taken away */
        for (int32_t t = 0; t < x->n_terms; t++) {
            int64_t by = x->terms[t].coefficient;
            if ((by < 0) != (pass == 1)) {
                continue;
            }
            put(w, first ? (by < 0 ? "-" : "") : by < 0 ? " - " : " + ");
            if (by != 1 && by != -1) {
                put_number(w, by < 0 ? -by : by);
                put(w, "*");
            }
            put_extent(w, info, x->terms[t].dim, true);
            first = false;
        }
        if (pass == 0 && x->base > 0) {
            put(w, first ? "" : " + ");
            put_number(w, x->base);
            first = false;
        }
    }
    if (x->base < 0) {
        put(w, " - ");
        put_number(w, -x->base);
    }
}

static void put_product(Writer *w, const tdsl_kernel_info *info, const tdsl_computed *x)
{
    if (x->base != 1 || x->n_terms == 0) {
        put_number(w, x->base);
    }
    for (int32_t t = 0; t < x->n_terms; t++) {
        put(w, t > 0 || x->base != 1 ? "*" : "");
        put_extent(w, info, x->terms[t].dim, true);
    }
}

/* A text that is full ends all of it. */
static void put_extent(Writer *w, const tdsl_kernel_info *info, int64_t dim, bool inner)
{
    if (dim < info->n_dims) {
        put(w, info->dims[dim].name);
        return;
    }
    const tdsl_computed *x = &info->computed[dim - info->n_dims];
    if (w->left <= 1) {
        return;
    }
    if (x->product != 0) {
        put_product(w, info, x);
        return;
    }
    bool parts = inner || x->divisor != 1;
    put(w, parts ? "(" : "");
    put_sum(w, info, x);
    put(w, parts ? ")" : "");
    if (x->divisor != 1) {
        put(w, "/");
        put_number(w, x->divisor);
    }
}

const char *tdsl_extent_text(const tdsl_kernel_info *info, int32_t dim, char *text,
                             size_t bytes)
{
    Writer w = {text, bytes};
    text[0] = '\0';
    put_extent(&w, info, dim, false);
    return text;
}

/* --- of a call --- */

/* Which argument bound a dimension: looked for again only when a message needs it. */
static size_t dim_binder(const Call *call, int32_t dim, int32_t *axis)
{
    for (size_t i = 0; i < (size_t)call->info->n_args; i++) {
        const tdsl_arg_info *arg = &call->info->args[i];
        for (*axis = 0; *axis < arg->rank; ++*axis) {
            if (arg->extents[*axis].dim == dim) {
                return i;
            }
        }
    }
    *axis = -1; /* none */
    return 0;
}

tdsl_status tdsl_extent_fail(const Call *call, size_t arg, int32_t axis, int64_t extent)
{
    const tdsl_extent *want = &call->info->args[arg].extents[axis];
    if (want->dim < 0) {
        return tdsl_arg_fail(call, arg, TDSL_E_SHAPE,
                             "extent of axis %d is %lld, the kernel's is %lld", (int)axis,
                             (long long)extent, (long long)want->fixed);
    }
    char name[EXTENT_BYTES];
    int32_t other = 0;
    long long bound = (long long)call->dims[want->dim];
    (void)tdsl_extent_text(call->info, want->dim, name, sizeof name);
    if (want->dim >= call->info->n_dims) {
        return tdsl_arg_fail(call, arg, TDSL_E_SHAPE,
                             "extent of axis %d is %lld, the kernel's %s is %lld", (int)axis,
                             (long long)extent, name, bound);
    }
    if (call->options != NULL && call->options->dims != NULL) {
        return tdsl_arg_fail(call, arg, TDSL_E_SHAPE,
                             "extent of axis %d is %lld, but dimension '%s' was given as %lld",
                             (int)axis, (long long)extent, name, bound);
    }
    size_t binder = dim_binder(call, want->dim, &other);
    return tdsl_arg_fail(
        call, arg, TDSL_E_SHAPE,
        "extent of axis %d is %lld, but dimension '%s' is %lld in argument '%s'", (int)axis,
        (long long)extent, name, bound, call->info->args[binder].name);
}

static tdsl_status extents_fail(const Call *call, ExtentFault fault, int32_t dim, int64_t value)
{
    char text[EXTENT_BYTES];
    int32_t axis = 0;
    size_t binder = dim_binder(call, dim, &axis);
    (void)tdsl_extent_text(call->info, dim, text, sizeof text);
    if (axis < 0 && (fault == EXTENT_DIFFERS || fault == EXTENT_IMPOSSIBLE)) {
        return tdsl_call_fail(
            call, TDSL_E_SHAPE,
            "its extent %s would be %lld for these arguments, which it cannot be", text,
            (long long)call->dims[dim]);
    }
    switch (fault) {
    case EXTENT_UNKNOWN:
        return tdsl_call_fail(
            call, TDSL_E_SHAPE,
            "dimension '%s' does not follow from the extents of the arguments: "
            "give its value in the options' dims",
            text);
    case EXTENT_NEGATIVE:
        return tdsl_call_fail(call, TDSL_E_SHAPE, "its extent %s would be below 0", text);
    case EXTENT_OVERFLOW:
        return tdsl_call_fail(call, TDSL_E_OVERFLOW, "its extent %s does not fit 64 bits",
                              text);
    case EXTENT_DIFFERS:
        return tdsl_arg_fail(call, binder, TDSL_E_SHAPE,
                             "extent of axis %d is %lld, the kernel's %s is %lld", (int)axis,
                             (long long)call->dims[dim], text, (long long)value);
    default:
        return tdsl_arg_fail(call, binder, TDSL_E_SHAPE,
                             "extent of axis %d is %lld, which the kernel's %s cannot be",
                             (int)axis, (long long)call->dims[dim], text);
    }
}

tdsl_status tdsl_extents_check(Call *call)
{
    int32_t dim = 0;
    int64_t value = 0;
    ExtentFault fault = tdsl_extents_complete(call->info, call->dims, &dim, &value);
    return fault == EXTENT_GOOD ? TDSL_OK : extents_fail(call, fault, dim, value);
}
