/* SPDX-License-Identifier: Apache-2.0 */
/* --emit=fortran: a module with an interface to each C function, and a subroutine that takes assumed-shape arrays. The same bytes are
 * A[m][k] in C and a(k, m) in Fortran, so axes are in the reverse order. Beside them stands the text of callers/support.f90. */
#include <string.h>

#include "backend/c/interface/caller.h"

extern const char call_support_f90[]; /* callers/support.f90, embedded by the build */

#define MOST_RANK    15  /* of an array in Fortran */
#define MOST_COLUMNS 110 /* of a line that goes on */

static void axis_put(Text *out, const char *array, uint32_t axis)
{
    text_printf(out, "size(%s, %u, c_int64_t)", array, axis);
}

static void number_put(Text *out, int64_t n)
{
    text_printf(out, "%lld_c_int64_t", (long long)n);
}

static const char *const taken[] = {"threads",
                                    "status",
                                    "state",
                                    "need",
                                    "size",
                                    "shape",
                                    "take",
                                    "fail",
                                    "prepare",
                                    "divide",
                                    "begin_call",
                                    "end_call",
                                    "call_state",
                                    "tdsl_threads",
                                    "c_int64_t",
                                    "c_int32_t",
                                    "c_int16_t",
                                    "c_int8_t",
                                    "c_size_t",
                                    "c_double",
                                    "c_float",
                                    "c_bool",
                                    "c_ptr",
                                    "c_funptr",
                                    "c_null_ptr",
                                    "c_null_funptr",
                                    "c_double_complex",
                                    "c_float_complex",
                                    "workspace",
                                    "workspace_bytes",
                                    "if",
                                    "end",
                                    "call",
                                    "iso_c_binding",
                                    NULL};
static const Dialect dialect = {.taken = taken,
                                .axis = axis_put,
                                .number = number_put,
                                .divide = "divide",
                                .lower = true,
                                .reversed = true};

static const char *intent(const Caller *c, uint32_t arg)
{
    ArgRole role = c->k->args.at[arg].role;
    return role == ARG_RESULT ? "out" : role == ARG_INOUT ? "inout" : "in";
}

/* Too many axes: the interface alone is printed, public. */
static bool is_wrapped(const Caller *c)
{
    for (uint32_t i = 0; i < c->k->args.n; i++) {
        if (arg_shape(c->k, i).rank > MOST_RANK) {
            return false;
        }
    }
    return true;
}

/* Names, one a line, as all of a line may be 132 characters. */
static void list_put(Text *out, const char *indent, const char *name)
{
    text_printf(out, " &\n%s%s,", indent, name);
}

static void interface_put(const Caller *c, Text *out)
{
    const Kernel *k = c->k;
    static const char in[] = "        ";
    text_printf(out, "    integer(c_int32_t) function c_%s(", c->name);
    for (uint32_t d = 0; d < dims_given(&k->dims); d++) {
        list_put(out, in, c->dim[d]);
    }
    for (uint32_t i = 0; i < k->args.n; i++) {
        list_put(out, in, c->arg[i]);
    }
    text_printf(out,
                " &\n%sworkspace, workspace_bytes, threads) &\n%sbind(C, name='%s_threads')\n",
                in, in, c->symbol);
    text_put(out, "      import\n");
    for (uint32_t d = 0; d < dims_given(&k->dims); d++) {
        text_printf(out, "      integer(c_int64_t), value :: %s\n", c->dim[d]);
    }
    for (uint32_t i = 0; i < k->args.n; i++) {
        const char *type = dtype_info(caller_buffer(c, i)->dtype)->fortran;
        if (k->args.at[i].role == ARG_SCALAR) {
            text_printf(out, "      %s, value :: %s\n", type, c->arg[i]);
        } else {
            text_printf(out, "      %s, intent(%s) :: %s%s\n", type, intent(c, i), c->arg[i],
                        caller_is_number(c, i) ? "" : "(*)");
        }
    }
    text_put(out, "      integer(c_int8_t) :: workspace(*)\n      integer(c_size_t), value :: "
                  "workspace_bytes\n"
                  "      type(tdsl_threads), intent(in) :: threads\n    end function\n");
    text_printf(out, "    integer(c_size_t) function c_%s_bytes(", c->name);
    for (uint32_t d = 0; d < dims_given(&k->dims); d++) {
        list_put(out, in, c->dim[d]);
    }
    text_printf(
        out, " &\n%sthreads) &\n%sbind(C, name='%s_workspace_bytes_threads')\n      import\n",
        in, in, c->symbol);
    for (uint32_t d = 0; d < dims_given(&k->dims); d++) {
        text_printf(out, "      integer(c_int64_t), value :: %s\n", c->dim[d]);
    }
    text_put(out, "      integer(c_int32_t), value :: threads\n    end function\n");
}

/* "(:,:)  ! a(k, m)" */
static void shape_put(const Caller *c, Text *out, uint32_t arg)
{
    ArgShape s = arg_shape(c->k, arg);
    for (uint32_t d = 0; d < s.rank; d++) {
        text_put(out, d == 0 ? "(:" : ", :");
    }
    text_printf(out, ")\n    ! %s(", c->arg[arg]);
    for (uint32_t d = s.rank; d-- > 0;) {
        text_printf(out, "%.60s%s", caller_written(c, s.extent[d]), d == 0 ? ")\n" : ", ");
    }
}

static void declarations_put(const Caller *c, Text *out)
{
    const Kernel *k = c->k;
    for (uint32_t d = 0; d < dims_given(&k->dims); d++) {
        text_printf(out, "    integer(c_int64_t)%s :: %s\n",
                    c->value[d] == NULL ? ", intent(in)" : "", c->dim[d]);
    }
    for (uint32_t i = 0; i < k->args.n; i++) {
        bool number = caller_is_number(c, i);
        text_printf(out, "    %s, intent(%s)%s :: %s",
                    dtype_info(caller_buffer(c, i)->dtype)->fortran, intent(c, i),
                    number ? "" : ", contiguous", c->arg[i]);
        if (number) {
            text_put(out, "\n");
        } else {
            shape_put(c, out, i);
        }
    }
    text_put(out, "    integer, intent(in), optional :: threads\n    integer, intent(out), "
                  "optional :: status\n"
                  "    integer(c_size_t) :: need\n    type(call_state) :: state\n");
}

static void takes_put(const Caller *c, Text *out)
{
    for (uint32_t i = 0; i < c->k->args.n; i++) {
        ArgShape s = arg_shape(c->k, i);
        if (s.rank == 0) {
            continue;
        }
        text_printf(
            out,
            "    call take(state, '%s', &\n      shape(%s, c_int64_t), [integer(c_int64_t) ::",
            c->arg[i], c->arg[i]);
        for (uint32_t d = s.rank; d-- > 0;) {
            text_printf(out, " &\n      %s%s", caller_extent(c, s.extent[d]),
                        d == 0 ? "]" : ",");
        }
        text_put(out, ", &\n      '(");
        Text shape;
        text_init(&shape, c->arena);
        for (uint32_t d = s.rank; d-- > 0;) {
            text_printf(&shape, "%s%s", caller_written(c, s.extent[d]), d == 0 ? "" : ", ");
        }
        text_printf(out, "%.100s)')\n", shape.at);
    }
}

static void call_put(const Caller *c, Text *out)
{
    const Kernel *k = c->k;
    text_printf(out, "    need = c_%s_bytes(", c->name);
    for (uint32_t d = 0; d < dims_given(&k->dims); d++) {
        list_put(out, "      ", c->dim[d]);
    }
    text_printf(out,
                " &\n      state%%threads%%count)\n    call prepare(state, need)\n"
                "    if (state%%status == 0) state%%status = c_%s(",
                c->name);
    for (uint32_t d = 0; d < dims_given(&k->dims); d++) {
        list_put(out, "      ", c->dim[d]);
    }
    for (uint32_t i = 0; i < k->args.n; i++) {
        list_put(out, "      ", c->arg[i]);
    }
    text_put(out, " &\n      state%workspace, need, state%threads)\n");
}

static void wrapper_put(const Caller *c, Text *out)
{
    const Kernel *k = c->k;
    text_printf(out, "\n  subroutine %s(", c->name);
    for (uint32_t d = 0; d < dims_given(&k->dims); d++) {
        if (c->value[d] == NULL) {
            list_put(out, "      ", c->dim[d]);
        }
    }
    for (uint32_t i = 0; i < k->args.n; i++) {
        list_put(out, "      ", c->arg[i]);
    }
    text_put(out, " &\n      threads, status)\n");
    declarations_put(c, out);
    text_printf(out, "    call begin_call(state, '%s', threads)\n", c->name);
    for (uint32_t f = 0; f < c->n_found; f++) {
        text_printf(out, "    %s = %s\n", c->dim[c->found[f]], c->value[c->found[f]]);
    }
    takes_put(c, out);
    call_put(c, out);
    text_put(out, "    call end_call(state, status)\n  end subroutine\n");
}

/* Lines of 132 characters at most: a longer one goes on in the next. */
static void lines_put(Text *out, const char *text)
{
    while (*text != '\0') {
        size_t n = strcspn(text, "\n"), cut = MOST_COLUMNS;
        const char *first = text + strspn(text, " ");
        if (n > MOST_COLUMNS + 10 && *first != '!') {
            while (cut > 40 && text[cut] != ' ') {
                cut--;
            }
            text_put_n(out, text, cut);
            text_put(out, " &\n     ");
            text += cut;
            continue;
        }
        text_put_n(out, text, n < MOST_COLUMNS + 10 ? n : MOST_COLUMNS);
        text_put(out, "\n");
        text += n + (text[n] == '\n');
    }
}

static const char types[] =
    "  type, bind(C) :: tdsl_threads\n    integer(c_int32_t) :: count = 1, reserved = 0\n"
    "    type(c_funptr) :: run = c_null_funptr\n    type(c_ptr) :: pool = c_null_ptr\n  end "
    "type\n"
    "  type :: call_state\n    character(:), allocatable :: name, message\n"
    "    integer(c_int32_t) :: status = 0\n    type(tdsl_threads) :: threads\n"
    "    integer(c_int8_t), allocatable :: workspace(:)\n  end type\n";

static void module_put(const CallFile *f, Text *out)
{
    Names module;
    Caller *all = ARENA_ARRAY(f->arena, (size_t)f->m->kernels.n + 1, Caller);
    names_init(&module, f->arena);
    const char *own = str_format(f->arena, "%.50s_kernels", f->stem);
    (void)names_claim(&module, own);
    text_printf(
        out, "module %s\n  use, intrinsic :: iso_c_binding\n  implicit none\n  private\n", own);
    for (uint32_t i = 0; i < f->m->kernels.n; i++) {
        caller_init(&all[i], f->arena, f->m->kernels.at[i], f->name[i].symbol, &dialect,
                    &module);
        text_printf(out, "  public :: %s%s\n", is_wrapped(&all[i]) ? "" : "c_", all[i].name);
    }
    text_put(out, types);
    text_put(out, f->m->kernels.n > 0 ? "  interface\n" : "");
    for (uint32_t i = 0; i < f->m->kernels.n; i++) {
        interface_put(&all[i], out);
    }
    text_put(out, f->m->kernels.n > 0 ? "  end interface\n" : "");
    text_put(out, "contains\n");
    for (uint32_t i = 0; i < f->m->kernels.n; i++) {
        text_put(out,
                 is_wrapped(&all[i]) ? "" : "\n  ! More than 15 dimensions: no wrapper.\n");
        if (is_wrapped(&all[i])) {
            wrapper_put(&all[i], out);
        }
    }
    text_put(out, strchr(call_support_f90, '\n') + 1); /* after the licence of the original */
    text_put(out, "\nend module\n");
}

void fortran_emit(const CallFile *f, Text *out)
{
    Text all;
    text_init(&all, f->arena);
    module_put(f, &all);
    lines_put(out, all.at);
}
