/* SPDX-License-Identifier: Apache-2.0 */
/* The table that describes a kernel, and the line from which a macro makes its exported functions (shared.c). */
#include "backend/c/interface/entry.h"

#include "loop/loop_text.h"

/* Of multiply-adds: the number of dims that are factors, the product of fixed ones, the dims. */
static void work_factor(Emitter *e, Dim d, Text *dims, uint32_t *n)
{
    const DimInfo *info = d.sym < 0 ? NULL : &e->w.k->dims.list.at[d.sym];
    if (info != NULL && info->n_factors == 0) {
        text_printf(dims, ", %d", dim_number(e, d));
        (*n)++;
    }
    for (uint32_t f = 0; info != NULL && f < info->n_factors; f++) {
        work_factor(e, info->factor[f], dims, n);
    }
}

static int64_t fixed_factor(const Kernel *k, Dim d)
{
    if (d.sym < 0) {
        return d.n;
    }
    int64_t fixed = 1;
    const DimInfo *info = &k->dims.list.at[d.sym];
    for (uint32_t f = 0; f < info->n_factors; f++) {
        fixed = sat_mul(fixed, fixed_factor(k, info->factor[f]));
    }
    return fixed;
}

/* Of a kernel without open dims: the number itself. */
static const char *work_fixed(const Emitter *e)
{
    const Kernel *k = e->w.k;
    uint64_t total = 0;
    for (uint32_t i = 0; i < k->n_work; i++) {
        int64_t fixed = 1;
        for (uint32_t f = 0; f < k->work[i].n; f++) {
            fixed = sat_mul(fixed, fixed_factor(k, k->work[i].factor[f]));
        }
        total = total > UINT64_MAX - (uint64_t)fixed ? UINT64_MAX : total + (uint64_t)fixed;
    }
    return str_format(e->w.arena, "UINT64_C(%llu)", (unsigned long long)total);
}

/* The expression of the number; its table comes before, where there are open dims. */
static const char *work_emit(Emitter *e)
{
    const Kernel *k = e->w.k;
    Text t;
    if (n_dims(k) == 0) {
        return work_fixed(e);
    }
    text_init(&t, e->w.arena);
    for (uint32_t i = 0; i < k->n_work; i++) {
        int64_t fixed = 1;
        uint32_t n = 0;
        Text dims;
        text_init(&dims, e->w.arena);
        for (uint32_t f = 0; f < k->work[i].n; f++) {
            fixed = sat_mul(fixed, fixed_factor(k, k->work[i].factor[f]));
            work_factor(e, k->work[i].factor[f], &dims, &n);
        }
        text_printf(&t, "%u, %lld%s, ", n, (long long)fixed, dims.at);
    }
    line_printf(&e->w, "static const int64_t tdsl_products_%s[] = {%s-1};", e->symbol, t.at);
    if (e->n_computed > 0) {
        return str_format(e->w.arena, "tdsl_work_of(&tdsl_table_%s, tdsl_products_%s, dims)",
                          e->symbol, e->symbol);
    }
    return str_format(e->w.arena, "tdsl_multiply_adds(tdsl_products_%s, dims)", e->symbol);
}

static const char *role_text(ArgRole role)
{
    switch (role) {
    case ARG_IN:
        return "TDSL_IN";
    case ARG_INOUT:
        return "TDSL_INOUT";
    case ARG_SCALAR:
        return "TDSL_SCALAR";
    case ARG_RESULT:
        return "TDSL_OUT";
    }
    UNREACHABLE();
}

const char *c_dtype_text(DType t)
{
    return t == DTYPE_NONE ? "0" : dtype_info(t)->abi;
}

/* What is declared of an argument's symmetry; arguments of which nothing is have zeros there. */
static void exchanges_emit(Text *out, uint32_t rank, const Symmetry *declared)
{
    uint32_t to[RANK_LIMIT], n = 0;
    Generator exchange;
    for (; symmetry_generator(declared, rank, n, to, &exchange); n++) {
        text_put(out, n == 0 ? ", (const tdsl_exchange[]){" : ", ");
        text_put(out, "{(const int32_t[]){");
        for (uint32_t d = 0; d < rank; d++) {
            text_printf(out, "%s%u", d > 0 ? ", " : "", to[d]);
        }
        text_printf(out, "}, %d, %d}", exchange.sign, exchange.conj ? 1 : 0);
    }
    if (n > 0) {
        text_printf(out, "}, %u", n);
    } else {
        text_put(out, ", NULL, 0");
    }
}

static void args_emit(Emitter *e)
{
    Text *out = e->w.out;
    const Kernel *k = e->w.k;
    text_printf(out, "static const tdsl_arg_info tdsl_args_%s[] = {\n", e->symbol);
    for (uint32_t i = 0; i < k->args.n; i++) {
        const Buffer *b = arg_buffer(k, i);
        ArgShape shape = arg_shape(k, i);
        text_put(out, "    {");
        text_literal(out, b->name->text);
        text_printf(out, ", %s, %s, %u, 0, ", role_text(k->args.at[i].role),
                    c_dtype_text(b->dtype), shape.rank);
        text_put(out, shape.rank == 0 ? "NULL" : "(const tdsl_extent[]){");
        for (uint32_t d = 0; d < shape.rank; d++) {
            text_printf(out, "%s{%d, 0, %lld}", d > 0 ? ", " : "",
                        dim_number(e, shape.extent[d]), (long long)shape.extent[d].n);
        }
        text_put(out, shape.rank == 0 ? "" : "}");
        exchanges_emit(out, shape.rank, k->args.at[i].symmetry);
        text_put(out, "},\n");
    }
    text_put(out, "};\n");
}

static void tables_emit(Emitter *e)
{
    Text *out = e->w.out;
    const Kernel *k = e->w.k;
    text_put(out, "\n");
    if (n_dims(k) > 0) {
        text_printf(out, "static const tdsl_dim_info tdsl_dims_%s[] = {", e->symbol);
        for (uint32_t d = 0; d < n_dims(k); d++) {
            const DimInfo *info = &k->dims.list.at[d];
            text_put(out, d > 0 ? ", {" : "{");
            text_literal(out, info->name->text);
            text_printf(out, ", %lld}", (long long)info->typical);
        }
        text_put(out, "};\n");
    }
    computed_emit(e);
    if (k->args.n > 0) {
        args_emit(e);
    }
}

/* Of the plan as it is dumped, without places: equal plans have equal digests, wherever they came from. */
static const char *digest_text(const Emitter *e)
{
    Text t;
    Kernel plan = *e->w.k;
    plan.sources = NULL;
    text_init(&t, e->w.arena);
    kernel_dump(&plan, &t);
    uint64_t a = hash_bytes(1, t.at, t.n), b = hash_bytes(2, t.at, t.n);
    return str_format(e->w.arena, "%016llx%016llx", (unsigned long long)a,
                      (unsigned long long)b);
}

/* Arguments of the loops, from arrays of dims and of pointers. */
static const char *loops_arguments(Emitter *e)
{
    const Kernel *k = e->w.k;
    Text t;
    text_init(&t, e->w.arena);
    text_put(&t, dims_arguments(e, true, ", "));
    for (uint32_t i = 0; i < k->args.n; i++) {
        const Arg *a = &k->args.at[i];
        const char *type = c_type(arg_buffer(k, i)->dtype);
        if (a->role == ARG_SCALAR) {
            text_printf(&t, "*(const %s *)args[%u], ", type, i);
        } else {
            text_printf(&t, "args[%u], ", i);
        }
    }
    text_put(&t, rest_text(e, false));
    return list_text(e, t.at, "");
}

/* Pointers to the arguments of the entry that others link to. */
static const char *pointers_text(const Emitter *e)
{
    const Kernel *k = e->w.k;
    Text t;
    text_init(&t, e->w.arena);
    for (uint32_t i = 0; i < k->args.n; i++) {
        const Arg *a = &k->args.at[i];
        text_printf(&t,
                    a->role == ARG_SCALAR   ? "&%s, "
                    : is_read_only(a->role) ? "TDSL_READ(%s), "
                                            : "%s, ",
                    e->w.buf[a->buf]);
    }
    return t.at;
}

/* Of a kernel without a workspace: calls go to the loops after these tests, without a table. `given`: of dims and arguments as
 * they are given, else in arrays. */
static const char *fast_text(Emitter *e, bool given)
{
    const Kernel *k = e->w.k;
    Arena *a = e->w.arena;
    int digits = safe_digits(e);
    Text test, call, more;
    text_init(&test, a);
    text_init(&more, a);
    text_init(&call, a);
    const char *computed = has_sizes(k) || digits < 8 ? "" : computed_tests(e, &more);
    if (has_sizes(k) || digits < 8 || k->positions != NULL || (!given && computed[0] != '\0')) {
        return "";
    }
    text_put(&test, n_dims(k) == 0 ? "1" : "sizeof(size_t) >= 8");
    for (uint32_t d = 0; d < n_dims(k); d++) {
        text_printf(&test, " && (uint64_t)%s - 1 < %lld",
                    given ? e->w.dim[d] : str_format(a, "dims[%u]", d), 1ll << digits);
        text_printf(&call, "%s, ", e->w.dim[d]);
    }
    Text *last = computed[0] == '\0' ? &test : &more;
    for (uint32_t i = 0; i < k->args.n; i++) {
        const char *name = e->w.buf[k->args.at[i].buf];
        text_printf(&call, "%s, ", name);
        if (!given) {
            text_printf(&test, " && args[%u] != NULL", i);
        } else if (k->args.at[i].role != ARG_SCALAR) {
            text_printf(last, last->n == 0 ? "%s != NULL" : " && %s != NULL", name);
        }
    }
    text_put(&call, e->n_parts > 0 ? "NULL, 1, " : "");
    const char *loops =
        given ? str_format(a, "tdsl_loops_%s(%s)", e->symbol, list_text(e, call.at, ""))
              : str_format(a, "tdsl_run_%s(dims, args, NULL, NULL, 1, 0)", e->symbol);
    const char *inner =
        str_format(a, "if (%s) { %s; return TDSL_OK; }", last->n == 0 ? "1" : last->at, loops);
    return last == &test ? inner : str_format(a, "if (%s) { %s%s }", test.at, computed, inner);
}

void kernel_info_emit(Emitter *e, const char *source)
{
    Text *out = e->w.out;
    const Kernel *k = e->w.k;
    const char *s = e->symbol, *dims = n_dims(k) == 0 ? "" : dims_parameters(e);
    Arena *a = e->w.arena;
    tables_emit(e);
    const char *work = work_emit(e);
    int64_t bytes = 0;
    text_printf(out, "TDSL_KERNEL(%s,\n    ", s);
    text_literal(out, k->name->text);
    text_put(out, ", ");
    text_literal(out, source);
    text_put(out, ",\n    ");
    text_literal(out, k->signature != NULL ? k->signature : k->name->text);
    text_printf(out, ",\n    \"%s\",\n", digest_text(e));
    out->indent++;
    line_printf(&e->w, "%u, %s, %u, %s, %s, %s, (%s),", n_dims(k),
                n_dims(k) == 0 ? "NULL" : str_format(a, "tdsl_dims_%s", s), k->args.n,
                k->args.n == 0 ? "NULL" : str_format(a, "tdsl_args_%s", s),
                sizes_fixed(k, &bytes) ? str_format(a, "(NULL, %lld)", (long long)bytes)
                                       : str_format(a, "(tdsl_sizes_%s, 0)", s),
                work, dims_parameters(e));
    if (e->file_computes) {
        line_printf(&e->w, e->n_computed == 0 ? "(NULL, 0)," : "(tdsl_computed_%s, %u),", s,
                    e->n_computed);
    }
    if (e->file_requires) {
        line_printf(&e->w, k->positions == NULL ? "NULL," : "tdsl_outside_%s,", s);
    }
    if (e->file_factors) {
        line_put(out, kernel_indefinite(k) == BUF_NONE ? "0," : "1,");
    }
    line_printf(&e->w, "(%s),", fast_text(e, true));
    line_printf(&e->w, "(%s),", fast_text(e, false));
    line_printf(&e->w, "(%s%s), (%s),", dims, dims[0] == '\0' ? "" : ", ",
                dims_arguments(e, false, ", "));
    line_printf(&e->w, "(%s), (%s),", args_parameters(e), pointers_text(e));
    line_printf(&e->w, "(%s))", loops_arguments(e));
    out->indent--;
}
