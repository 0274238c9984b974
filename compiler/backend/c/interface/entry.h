/* SPDX-License-Identifier: Apache-2.0 */
/* Within the interface: arguments and dims of a kernel as text. */
#ifndef BACKEND_C_INTERFACE_ENTRY_H
#define BACKEND_C_INTERFACE_ENTRY_H

#include "backend/c/interface/interface.h"

const Buffer *arg_buffer(const Kernel *k, uint32_t i);
bool is_read_only(ArgRole role);

/* Open dims that a caller gives. */
uint32_t n_dims(const Kernel *k);
/* "int64_t o, int64_t v", or "void". */
const char *dims_parameters(const Emitter *e);
/* "dims[0], dims[1]" or "o, v", with `after` behind it if there are any. */
const char *dims_arguments(const Emitter *e, bool by_pointer, const char *after);
/* "const double *TDSL_RESTRICT A, double alpha, " */
const char *args_parameters(const Emitter *e);
/* What the loops get beside dims and arguments: with types, or as the caller has it. */
const char *rest_text(Emitter *e, bool types);
/* Without ", " at its end; `empty` for nothing. */
const char *list_text(Emitter *e, const char *text, const char *empty);
/* Must a call be checked: for extents that are too large, or for its workspace? */
bool has_sizes(const Kernel *k);
/* Does a call need these bytes of workspace whatever its dims and threads are? Else a function says how many. */
bool sizes_fixed(const Kernel *k, int64_t *bytes);
/* "TDSL_F64" */
const char *c_dtype_text(DType t);

/* const int64_t o = dims[0]; of those named in `text`. */
void dims_emit(Emitter *e, const char *text);

/* ---- computed.c ---- */
/* What a caller hands over for an argument. */
typedef struct ArgShape {
    uint32_t rank;
    const Dim *extent;
} ArgShape;

ArgShape arg_shape(const Kernel *k, uint32_t arg);
/* How many extents the table of the kernel computes. */
uint32_t computed_count(Arena *scratch, const Kernel *k);
/* What the kernel's table says for an extent: -1, an open dim, or one that is computed. */
int32_t dim_number(const Emitter *e, Dim d);
/* const int64_t m_n = ...; of computed dims that are named in `text`. */
void dims_computed_emit(Emitter *e, const char *text);
void computed_emit(Emitter *e); /* the table */
/* How many binary digits open extents may have so that no argument's size and no computed extent overflows. */
int safe_digits(const Emitter *e);
/* The variables of computed extents that may be below 1 although all open dims are 1 or more, which are small; tests that they are
 * not. */
const char *computed_tests(Emitter *e, Text *test);

#endif
