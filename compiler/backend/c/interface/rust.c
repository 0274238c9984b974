/* SPDX-License-Identifier: Apache-2.0 */
/* --emit=rust: a module with the extern block in `c`, and for each kernel a safe function. An array is a slice and its shape. Beside them stands
 * the text of callers/support.rs. */
#include <string.h>

#include "backend/c/interface/caller.h"

extern const char call_support_rs[]; /* callers/support.rs, embedded by the build */

static void axis_put(Text *out, const char *array, uint32_t axis)
{
    text_printf(out, "Wrapping(%s.1[%u] as u64)", array, axis);
}

static void number_put(Text *out, int64_t n)
{
    text_printf(out, "Wrapping(%lld)", (long long)n);
}

/* What C does not have. */
static const char *const taken[] = {
    "as",     "async", "await",  "box",      "crate",  "dyn",     "fn",
    "gen",    "impl",  "in",     "let",      "loop",   "match",   "mod",
    "move",   "mut",   "pub",    "ref",      "self",   "Self",    "super",
    "trait",  "type",  "unsafe", "use",      "where",  "yield",   "abstract",
    "become", "final", "macro",  "override", "priv",   "unsized", "virtual",
    "c",      "take",  "run",    "wrong",    "divide", "Error",   "Wrapping",
    "std",    "need",  "bytes",  "count",    "usize",  "u64",     NULL};
static const Dialect dialect = {
    .taken = taken, .axis = axis_put, .number = number_put, .divide = "divide"};

/* By value C has a struct for complex numbers, as all calling conventions treat them. */
static const char *scalar_of_c(DType t)
{
    return t == DTYPE_C64 ? "C64" : t == DTYPE_C128 ? "C128" : dtype_info(t)->rust;
}

static void extern_put(const Caller *c, Text *out)
{
    const Kernel *k = c->k;
    text_printf(out, "        pub fn %s_threads(\n", c->symbol);
    for (uint32_t d = 0; d < dims_given(&k->dims); d++) {
        text_printf(out, "            %s: i64,\n", c->dim[d]);
    }
    for (uint32_t i = 0; i < k->args.n; i++) {
        DType t = caller_buffer(c, i)->dtype;
        if (k->args.at[i].role == ARG_SCALAR) {
            text_printf(out, "            %s: %s,\n", c->arg[i], scalar_of_c(t));
        } else {
            text_printf(out, "            %s: *%s %s,\n", c->arg[i],
                        caller_writes(c, i) ? "mut" : "const", dtype_info(t)->rust);
        }
    }
    text_put(out, "            workspace: *mut u8,\n            workspace_bytes: usize,\n"
                  "            threads: *const Threads,\n        ) -> i32;\n");
    text_printf(out, "        pub fn %s_workspace_bytes_threads(", c->symbol);
    for (uint32_t d = 0; d < dims_given(&k->dims); d++) {
        text_printf(out, "%s: i64, ", c->dim[d]);
    }
    text_put(out, "threads: i32) -> usize;\n");
}

static void parameters_put(const Caller *c, Text *out)
{
    const Kernel *k = c->k;
    for (uint32_t d = 0; d < dims_given(&k->dims); d++) {
        if (c->value[d] == NULL) {
            text_printf(out, "    %s: usize,\n", c->dim[d]);
        }
    }
    for (uint32_t i = 0; i < k->args.n; i++) {
        const char *type = dtype_info(caller_buffer(c, i)->dtype)->rust;
        const char *changed = caller_writes(c, i) ? "mut " : "";
        if (k->args.at[i].role == ARG_SCALAR) {
            text_printf(out, "    %s: %s,\n", c->arg[i], type);
        } else if (caller_is_number(c, i)) {
            text_printf(out, "    %s: &%s%s,\n", c->arg[i], changed, type);
        } else {
            text_printf(out, "    %s: (&%s[%s], [usize; %u]),\n", c->arg[i], changed, type,
                        arg_shape(k, i).rank);
        }
    }
}

static void takes_put(const Caller *c, Text *out)
{
    for (uint32_t i = 0; i < c->k->args.n; i++) {
        ArgShape s = arg_shape(c->k, i);
        if (s.rank == 0) {
            continue;
        }
        text_printf(out, "    take(\"%s\", \"%s\", %s.0.len(), &%s.1, &[", c->k->name->text,
                    c->arg[i], c->arg[i], c->arg[i]);
        for (uint32_t d = 0; d < s.rank; d++) {
            text_printf(out, "%s(%s, \"%s\")", d == 0 ? "" : ", ",
                        caller_extent(c, s.extent[d]), caller_written(c, s.extent[d]));
        }
        text_put(out, "])?;\n");
    }
}

static void dims_put(const Caller *c, Text *out)
{
    for (uint32_t d = 0; d < dims_given(&c->k->dims); d++) {
        text_printf(out, "%s.0 as i64, ", c->dim[d]);
    }
}

static void args_put(const Caller *c, Text *out)
{
    for (uint32_t i = 0; i < c->k->args.n; i++) {
        DType t = caller_buffer(c, i)->dtype;
        bool complex = dtype_is_complex(t);
        if (c->k->args.at[i].role == ARG_SCALAR) {
            const char *name = c->arg[i];
            text_put(out, complex ? str_format(c->arena, "c::%s(%s[0], %s[1]), ",
                                               scalar_of_c(t), name, name)
                                  : str_format(c->arena, "%s, ", name));
        } else if (caller_is_number(c, i)) {
            text_printf(out, "%s, ", c->arg[i]);
        } else {
            text_printf(out, "%s.0.as_%sptr(), ", c->arg[i], caller_writes(c, i) ? "mut_" : "");
        }
    }
}

static void kernel_put(const Caller *c, Text *out)
{
    const Kernel *k = c->k;
    static const char quiet[] =
        "#[allow(dead_code, non_snake_case, unused_parens, clippy::all)]\n";
    text_put(out, "\n");
    caller_head(c, out, "/// ");
    text_printf(out, "%spub fn %s(\n", quiet, c->name);
    parameters_put(c, out);
    text_printf(out, ") -> Result<(), Error> {\n    %s_threads(1", c->name);
    for (uint32_t d = 0; d < dims_given(&k->dims); d++) {
        text_printf(out, c->value[d] == NULL ? ", %s" : "", c->dim[d]);
    }
    for (uint32_t i = 0; i < k->args.n; i++) {
        text_printf(out, ", %s", c->arg[i]);
    }
    text_printf(out,
                ")\n}\n\n/// The same, on so many threads at most.\n%spub fn %s_threads(\n    "
                "threads: i32,\n",
                quiet, c->name);
    parameters_put(c, out);
    text_put(out, ") -> Result<(), Error> {\n");
    for (uint32_t d = 0; d < dims_given(&k->dims); d++) {
        if (c->value[d] == NULL) {
            text_printf(out, "    let %s = Wrapping(%s as u64);\n", c->dim[d], c->dim[d]);
        }
    }
    for (uint32_t f = 0; f < c->n_found; f++) {
        text_printf(out, "    let %s = %s;\n", c->dim[c->found[f]], c->value[c->found[f]]);
    }
    takes_put(c, out);
    text_printf(out,
                "    run(\n        \"%s\",\n        threads,\n        |count| unsafe { "
                "c::%s_workspace_bytes_threads(",
                k->name->text, c->symbol);
    dims_put(c, out);
    text_printf(out, "count) },\n        |workspace, bytes, threads| unsafe { c::%s_threads(",
                c->symbol);
    dims_put(c, out);
    args_put(c, out);
    text_put(out, "workspace, bytes, threads) },\n    )\n}\n");
}

static const char types_of_c[] = "    #[repr(C)]\n    pub struct Threads {\n        pub count: "
                                 "i32,\n        pub reserved: i32,\n"
                                 "        pub run: Option<unsafe extern \"C\" fn()>,\n        "
                                 "pub pool: *mut std::ffi::c_void,\n    }\n"
                                 "    #[repr(C)]\n    pub struct C64(pub f32, pub f32);\n"
                                 "    #[repr(C)]\n    pub struct C128(pub f64, pub f64);\n";

void rust_emit(const CallFile *f, Text *out)
{
    Names module;
    Caller *all = ARENA_ARRAY(f->arena, (size_t)f->m->kernels.n + 1, Caller);
    names_init(&module, f->arena);
    text_put(out, strchr(call_support_rs, '\n') + 1); /* after the licence of the original */
    text_put(out, "\n/// What ");
    text_comment(out, str_from(f->header));
    text_printf(out,
                " declares.\n#[allow(non_snake_case, dead_code, "
                "clippy::all)]\nmod c {\n%s\n    extern \"C\" {\n",
                types_of_c);
    for (uint32_t i = 0; i < f->m->kernels.n; i++) {
        caller_init(&all[i], f->arena, f->m->kernels.at[i], f->name[i].symbol, &dialect,
                    &module);
        extern_put(&all[i], out);
    }
    text_put(out, "    }\n}\n");
    for (uint32_t i = 0; i < f->m->kernels.n; i++) {
        kernel_put(&all[i], out);
    }
}
