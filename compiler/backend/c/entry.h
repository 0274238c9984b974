/* SPDX-License-Identifier: Apache-2.0 */
/* What emit_entry.c and emit_info.c share: arguments and dims of a kernel as text. */
#ifndef BACKEND_C_ENTRY_H
#define BACKEND_C_ENTRY_H

#include "backend/c/emit.h"

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

/* emit_required.c: the function that looks for positions outside, of a kernel that requires some; `e` is of the kernel that computes
 * them. */
void required_emit(Emitter *e, const Kernel *k);

/* emit_ranks.c: the table of a kernel with a plan for ranks, whose dims have numbers; local kernels are among those of `m`. False after
 * a diagnostic. */
bool ranks_emit(Emitter *e, const KernelModule *m, const ExportedName *name, Text *out);

#endif
