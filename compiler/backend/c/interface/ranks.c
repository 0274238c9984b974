/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a kernel on ranks (tdsl/dist_abi.h): its plan (compiler/dist) as data. Local kernels are printed as any kernel is. */
#include <string.h>

#include "backend/c/interface/entry.h"
#include "dist/dist.h"

typedef struct Ranks {
    Emitter *e;
    const KernelModule *m;
    const ExportedName *name;
    const DistPlan *plan;
    Text *out;
    bool ok;
} Ranks;

static DistHead head_of(Arena *arena, const Kernel *k)
{
    struct DistHeadArg *arg = ARENA_ARRAY(arena, (size_t)k->args.n + 1, struct DistHeadArg);
    for (uint32_t i = 0; i < k->args.n; i++) {
        ArgShape shape = arg_shape(k, i);
        const Buffer *b = arg_buffer(k, i);
        arg[i] = (struct DistHeadArg){b->name, k->args.at[i].role == ARG_RESULT, b->dtype,
                                      shape.rank, shape.extent};
    }
    return (DistHead){.span = k->span, .dims = &k->dims, .n_args = k->args.n, .arg = arg};
}

static void refuse(Ranks *r, const char *what)
{
    if (r->ok) {
        diag_error(&r->e->ctx->diags, E_DUMP, r->e->w.k->span, "of a plan for ranks: %s", what);
    }
    r->ok = false;
}

/* ---- is a local kernel what its step says? ---- */

static int32_t find_kernel(const Ranks *r, Sym name)
{
    for (uint32_t k = 0; k < r->m->kernels.n; k++) {
        if (r->m->kernels.at[k]->name == name) {
            return (int32_t)k;
        }
    }
    return -1;
}

/* Is extent `d` of the local kernel dimension `at` of the value? */
static bool same_extent(const Ranks *r, const Kernel *local, const DistStep *s, Dim d,
                        const DistValue *v, uint32_t at)
{
    const DimTable *whole = &r->e->w.k->dims;
    bool given = d.sym >= 0 && (uint32_t)d.sym < s->n_dims;
    if (v->cut[at] >= 0) {
        bool over = false;
        for (uint32_t i = 0; i < s->n_over; i++) {
            over |= (int32_t)s->over[i] == v->cut[at];
        }
        if (over && d.sym < 0) {
            return d.n == 1 && dist_cut_is_single(&r->plan->cuts.at[v->cut[at]]);
        }
        return given && s->block[d.sym] == v->cut[at];
    }
    if (given) {
        return s->block[d.sym] < 0 && dim_eq(s->dim[d.sym], v->shape[at]);
    }
    return strcmp(dim_written(r->e->w.arena, &local->dims, d),
                  dim_written(r->e->w.arena, whole, v->shape[at])) == 0;
}

static void check_local(Ranks *r, const Kernel *local, const DistStep *s, bool *made)
{
    bool same = local->args.n == s->n_values && n_dims(local) == s->n_dims;
    for (uint32_t i = 0; same && i < s->n_values; i++) {
        const DistValue *v = &r->plan->values.at[s->values[i]];
        ArgShape shape = arg_shape(local, i);
        ArgRole role = local->args.at[i].role;
        same = shape.rank == v->rank && arg_buffer(local, i)->dtype == v->dtype &&
               role == (made[s->values[i]] ? (v->rank == 0 ? ARG_SCALAR : ARG_IN) : ARG_RESULT);
        for (uint32_t d = 0; same && d < v->rank; d++) {
            same = same_extent(r, local, s, shape.extent[d], v, d);
        }
        made[s->values[i]] = true;
    }
    if (!same) {
        refuse(r, "a local kernel has other arguments than its step");
    }
}

/* ---- printing ---- */

static void put_dim(Ranks *r, Dim d, int32_t cut)
{
    if (cut < 0 && d.sym >= 0 && r->e->number[d.sym] < 0) {
        refuse(r, "an extent that the kernel's table does not have");
        return;
    }
    text_printf(r->out, "{%d, %d, %lld}", cut >= 0 ? -1 : dim_number(r->e, d), (int)cut,
                cut >= 0 ? 0ll : (long long)d.n);
}

static void put_numbers(Ranks *r, const char *type, uint32_t n, const uint32_t *number)
{
    text_put(r->out, n == 0 ? "NULL" : "(const ");
    for (uint32_t k = 0; k < n; k++) {
        text_printf(r->out, k == 0 ? "%s[]){" : "%s", k == 0 ? type : ", ");
        text_printf(r->out, "%u", number[k]);
    }
    text_put(r->out, n == 0 ? "" : "}");
}

static void args_emit(Ranks *r)
{
    text_printf(r->out, "static const tdsl_dist_arg tdsl_dist_args_%s[] = {\n", r->e->symbol);
    for (uint32_t k = 0; k < r->plan->n_args; k++) {
        const DistArg *arg = &r->plan->arg[k];
        text_printf(r->out, "    {%d, %u, ", arg->partial ? 1 : 0, arg->n_pieces);
        text_put(r->out, arg->n_pieces == 0 ? "NULL" : "(const tdsl_dist_piece[]){");
        for (uint32_t i = 0; i < arg->n_pieces; i++) {
            const DistPiece *piece = &arg->piece[i];
            text_printf(r->out, "%s{%u, %u, %u}", i > 0 ? ", " : "", piece->axis, piece->dim,
                        piece->leaves);
        }
        text_put(r->out, arg->n_pieces == 0 ? "},\n" : "}},\n");
    }
    text_put(r->out, "};\n");
}

static void cuts_emit(Ranks *r)
{
    if (r->plan->cuts.n == 0) {
        return;
    }
    text_printf(r->out, "static const tdsl_dist_cut tdsl_dist_cuts_%s[] = {\n", r->e->symbol);
    for (uint32_t k = 0; k < r->plan->cuts.n; k++) {
        const DistCut *cut = &r->plan->cuts.at[k];
        text_put(r->out, "    {");
        put_dim(r, cut->extent, -1);
        text_printf(r->out, ", %u, %u, %u, %u, 0},\n", cut->leaves, cut->axis, cut->mate,
                    cut->group);
    }
    text_put(r->out, "};\n");
}

static const char *dist_fold(Op fold)
{
    switch (fold) {
    case OP_COPY:
        return "TDSL_FOLD_NONE";
    case OP_PROD:
        return "TDSL_FOLD_PROD";
    case OP_RMIN:
        return "TDSL_FOLD_MIN";
    case OP_RMAX:
        return "TDSL_FOLD_MAX";
    case OP_ANY:
        return "TDSL_FOLD_ANY";
    case OP_ALL:
        return "TDSL_FOLD_ALL";
    default:
        return "TDSL_FOLD_SUM";
    }
}

static void values_emit(Ranks *r)
{
    if (r->plan->values.n == 0) {
        return;
    }
    text_printf(r->out, "static const tdsl_dist_value tdsl_dist_values_%s[] = {\n",
                r->e->symbol);
    for (uint32_t k = 0; k < r->plan->values.n; k++) {
        const DistValue *v = &r->plan->values.at[k];
        text_printf(r->out, "    {%s, %u, ", c_dtype_text(v->dtype), v->rank);
        text_put(r->out, v->rank == 0 ? "NULL, NULL" : "(const tdsl_dist_dim[]){");
        for (uint32_t d = 0; d < v->rank; d++) {
            text_put(r->out, d > 0 ? ", " : "");
            put_dim(r, v->shape[d], -1);
        }
        for (uint32_t d = 0; d < v->rank; d++) {
            text_printf(r->out, "%s%d", d > 0 ? ", " : "}, (const int32_t[]){", (int)v->cut[d]);
        }
        text_printf(r->out, "%s, %s, %u, ", v->rank == 0 ? "" : "}", dist_fold(v->fold),
                    v->n_over);
        put_numbers(r, "int32_t", v->n_over, v->over);
        text_printf(r->out, ", %u},\n", v->spread);
    }
    text_put(r->out, "};\n");
}

static void local_emit(Ranks *r, const DistStep *s, bool *made)
{
    int32_t local = find_kernel(r, s->kernel);
    if (local < 0) {
        refuse(r, "a local kernel is missing");
        return;
    }
    check_local(r, r->m->kernels.at[local], s, made);
    text_printf(r->out, "    {TDSL_STEP_LOCAL, -1, -1, -1, &tdsl_table_%s,\n     ",
                r->name[local].symbol);
    text_put(r->out, s->n_dims == 0 ? "NULL" : "(const tdsl_dist_dim[]){");
    for (uint32_t k = 0; k < s->n_dims; k++) {
        text_put(r->out, k > 0 ? ", " : "");
        put_dim(r, s->dim[k], s->block[k]);
    }
    text_printf(r->out, "%s, ", s->n_dims == 0 ? "" : "}");
    put_numbers(r, "int32_t", s->n_values, s->values);
    text_put(r->out, ", ");
    put_numbers(r, "int32_t", s->n_over, s->over);
    text_printf(r->out, ", %u, 0},\n", s->n_over);
}

static void steps_emit(Ranks *r)
{
    bool *made = ARENA_ARRAY(r->e->w.arena, (size_t)r->plan->values.n + 1, bool);
    text_printf(r->out, "static const tdsl_dist_step tdsl_dist_steps_%s[] = {\n", r->e->symbol);
    for (uint32_t k = 0; k < r->plan->steps.n; k++) {
        const DistStep *s = &r->plan->steps.at[k];
        static const char rest[] = "NULL, NULL, NULL, NULL, 0, ";
        switch (s->kind) {
        case DIST_READ:
            text_printf(r->out, "    {TDSL_STEP_READ, %u, %u, -1, %s%d},\n", s->arg, s->value,
                        rest, s->by_leaf ? 1 : 0);
            made[s->value] = true;
            break;
        case DIST_WRITE:
            text_printf(r->out, "    {TDSL_STEP_WRITE, %u, %u, -1, %s0},\n", s->arg, s->value,
                        rest);
            break;
        case DIST_REDUCE:
            text_printf(r->out, "    {TDSL_STEP_REDUCE, -1, %u, %u, %s0},\n", s->value,
                        s->complete, rest);
            made[s->complete] = true;
            break;
        case DIST_LOCAL:
            local_emit(r, s, made);
            break;
        }
    }
    text_put(r->out, "};\n");
}

static void info_emit(Ranks *r)
{
    const DistPlan *p = r->plan;
    const char *s = r->e->symbol;
    text_printf(r->out, "const tdsl_dist_info %s_dist = {\n", s);
    text_printf(
        r->out,
        "    (uint32_t)sizeof(tdsl_dist_info), TDSL_DIST_VERSION, &tdsl_table_%s, %u, %u, "
        "%u, %u, %u, 0,\n    (const char *const[]){",
        s, p->n_axes, p->cuts.n, p->values.n, p->steps.n, p->n_grid);
    for (uint32_t a = 0; a < p->n_axes; a++) {
        text_put(r->out, a > 0 ? ", " : "");
        text_literal(r->out, p->axis[a] == NULL ? "" : p->axis[a]->text);
    }
    text_printf(r->out, "%s}, tdsl_dist_args_%s, ", p->n_axes == 0 ? "NULL" : "", s);
    text_printf(r->out, p->cuts.n == 0 ? "NULL, " : "tdsl_dist_cuts_%s, ", s);
    text_printf(r->out, p->values.n == 0 ? "NULL, " : "tdsl_dist_values_%s, ", s);
    text_printf(r->out, "tdsl_dist_steps_%s,\n};\n", s);
}

/* What callers need who bring their own communication: the same arithmetic as libtdsl's. */
static const char cut_text[] =
    "\nstatic int64_t tdsl_extent_value(const tdsl_kernel_info *kernel, int32_t dim, "
    "const int64_t *dims)\n"
    "{\n"
    "    const tdsl_computed *x = dim < kernel->n_dims ? NULL : &kernel->computed[dim - "
    "kernel->n_dims];\n"
    "    int64_t value = x == NULL ? dims[dim] : x->base;\n"
    "    for (int32_t t = 0; x != NULL && t < x->n_terms; t++) {\n"
    "        int64_t term = tdsl_extent_value(kernel, (int32_t)x->terms[t].dim, dims);\n"
    "        value = x->product != 0 ? value * term : value + x->terms[t].coefficient * term;\n"
    "    }\n"
    "    return x == NULL ? value : value / x->divisor;\n"
    "}\n"
    "\n/* Where leaf `leaf` of `leaves` begins, of n positions. */\n"
    "static int64_t tdsl_leaf_begin(int64_t n, int64_t leaves, int64_t leaf)\n"
    "{\n"
    "    return leaf * (n / leaves) + (leaf * (n % leaves) + leaves - 1) / leaves;\n"
    "}\n"
    "\nstatic tdsl_range tdsl_range_of(const tdsl_dist_info *dist, int32_t arg, int32_t dim, "
    "const int64_t *dims,\n"
    "                            const tdsl_mesh *mesh, int32_t rank)\n"
    "{\n"
    "    const tdsl_extent *extent = &dist->kernel->args[arg].extents[dim];\n"
    "    int64_t n = extent->dim < 0 ? extent->fixed : tdsl_extent_value(dist->kernel, "
    "extent->dim, dims);\n"
    "    int64_t parts = 1, part = 0, leaves = 0;\n"
    "    for (int32_t k = 0; k < dist->args[arg].n_pieces; k++) {\n"
    "        const tdsl_dist_piece *piece = &dist->args[arg].pieces[k];\n"
    "        int32_t at = rank;\n"
    "        for (int32_t a = mesh->n_axes - 1; a > piece->axis; a--) {\n"
    "            at /= mesh->size[a];\n"
    "        }\n"
    "        if (piece->dim == dim) {\n"
    "            part = part * mesh->size[piece->axis] + at % mesh->size[piece->axis];\n"
    "            parts *= mesh->size[piece->axis];\n"
    "            leaves = leaves == 0 ? piece->leaves : leaves;\n"
    "        }\n"
    "    }\n"
    "    tdsl_range cut = {0, n};\n"
    "    if (leaves > 0) {\n"
    "        int64_t all = n < leaves ? n : leaves;\n"
    "        all = all < 1 ? 1 : all;\n"
    "        cut.first = tdsl_leaf_begin(n, all, tdsl_leaf_begin(all, parts, part));\n"
    "        cut.count = tdsl_leaf_begin(n, all, tdsl_leaf_begin(all, parts, part + 1)) - "
    "cut.first;\n"
    "    }\n"
    "    return cut;\n"
    "}\n";

static void cut_emit(Ranks *r)
{
    text_printf(
        r->out,
        "\ntdsl_range %s_cut(int32_t arg, int32_t dim, const int64_t *dims, const tdsl_mesh "
        "*mesh, int32_t rank)\n{\n    return tdsl_range_of(&%s_dist, arg, dim, dims, mesh, "
        "rank);\n}\n",
        r->e->symbol, r->e->symbol);
}

bool ranks_emit(Emitter *e, const KernelModule *m, const ExportedName *name, Text *out)
{
    const Kernel *k = e->w.k;
    DistHead head = head_of(e->w.arena, k);
    const DistPlan *plan = dist_read(e->ctx, e->w.arena, &head, &k->ranks);
    Ranks r = {.e = e, .m = m, .name = name, .plan = plan, .out = out, .ok = plan != NULL};
    if (plan != NULL && plan->steps.n > 0) {
        text_put(out, out->n == 0 ? cut_text : ""); /* once in a file */
        text_char(out, '\n');
        args_emit(&r);
        cuts_emit(&r);
        values_emit(&r);
        steps_emit(&r);
        info_emit(&r);
        cut_emit(&r);
    }
    return r.ok;
}
