/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments from the command line: .npy files, words that make data, numbers; and the open dims they imply. */
#include <string.h>

#include "base/map.h"
#include "driver/fit.h"
#include "driver/run/npy.h"
#include "driver/run/run.h"
#include "front/check.h"

/* How many bytes of one array tdsl-run reads or makes. */
#define ARRAY_LIMIT ((size_t)1 << 36)

static bool is_word(const char *text)
{
    return strncmp(text, "random:", 7) == 0 || strcmp(text, "zeros") == 0 ||
           strcmp(text, "ones") == 0 || strcmp(text, "fill") == 0;
}

/* An array of which ranks read their own blocks. */
static bool open_array(Arena *arena, RunValue *v, DType cast)
{
    v->file = npy_open(arena, v->text);
    if (v->file == NULL || (cast != DTYPE_NONE && cast != v->file->dtype)) {
        v->file = NULL;
        return false;
    }
    v->array = ARENA_NEW(arena, Tensor);
    *v->array = (Tensor){
        .dtype = v->file->dtype, .rank = v->file->rank, .extent = v->file->extent, .count = 1};
    for (uint32_t d = 0; d < v->file->rank; d++) {
        v->array->count *= v->file->extent[d];
    }
    return true;
}

static bool read_array(Ctx *ctx, Arena *arena, RunValue *v, DType cast, bool narrow)
{
    Str bytes = {0};
    const char *why = NULL;
    if (!file_read(arena, v->text, ARRAY_LIMIT, &bytes, &why)) {
        return diag_refuse(&ctx->diags, E_FILE, (Span){0}, "%s", why);
    }
    v->array = npy_parse(ctx, arena, v->text, bytes, cast);
    if (narrow && v->array != NULL && dtype_narrower(v->array->dtype) != v->array->dtype) {
        v->array = npy_parse(ctx, arena, v->text, bytes, dtype_narrower(v->array->dtype));
    }
    return v->array != NULL;
}

bool run_values_read(Ctx *ctx, Arena *arena, const Options *o, bool named, DType cast,
                     bool by_ranks, RunValues *out)
{
    FrontNarrow narrow = NARROW_NONE;
    bool ok = input_narrow(ctx, o, &narrow);
    uint32_t unnamed = 0;
    for (uint32_t k = named ? 1 : 0; k < o->positional.n; k++) {
        const char *text = o->positional.at[k];
        RunValue v = {.text = text};
        const char *equals = named ? strchr(text, '=') : NULL;
        v.number = unnamed;
        unnamed += equals == NULL ? 1 : 0;
        if (equals != NULL) {
            v.name = (Str){text, (size_t)(equals - text)};
            v.text = equals + 1;
        }
        bool is_file = !is_word(v.text) && !fit_is_text(v.text);
        bool parts =
            is_file && by_ranks && narrow == NARROW_NONE && open_array(arena, &v, cast);
        if (is_file && !parts) {
            ok &= read_array(ctx, arena, &v, cast, narrow != NARROW_NONE);
        }
        vec_push(arena, &out->list, v);
    }
    return ok;
}

/* ---- making data ---- */

static Number small_number(DType t, int64_t v)
{
    return dtype_is_exact(t) ? number_int(t, t == DTYPE_BOOL ? v != 0 : v)
                             : number_real(t, (double)v);
}

static Number random_number(Rng *r, DType t)
{
    if (dtype_is_exact(t)) {
        return small_number(t, (int64_t)rng_below(r, t == DTYPE_BOOL ? 2 : 11) -
                                   (t == DTYPE_BOOL ? 0 : 5));
    }
    Number n = number_real(t, 2 * rng_unit(r) - 1);
    if (dtype_is_complex(t)) {
        n.im = 2 * rng_unit(r) - 1;
    }
    return n;
}

/* The first elements again and again, up to the end. */
static void repeat(Tensor *t, int64_t period)
{
    size_t size = (size_t)dtype_bytes(t->dtype);
    for (int64_t n = period; n > 0 && n < t->count;) {
        int64_t more = n < t->count - n ? n : t->count - n;
        memcpy((char *)t->data + (size_t)n * size, t->data, (size_t)more * size);
        n += more;
    }
}

/* `k` is the number of the tensor among the kernel's tensors. */
static bool make_data(Ctx *ctx, const char *word, uint32_t k, Tensor *t)
{
    Rng rng = {0};
    bool random = strncmp(word, "random:", 7) == 0;
    int64_t seed = 0;
    if (random && (!parse_i64(word + 7, &seed) || seed < 0)) {
        return diag_refuse(&ctx->diags, E_ARGUMENT_VALUE, (Span){0},
                           "'%s': the seed is a whole number from 0", word);
    }
    rng.state = hash_mix((uint64_t)seed, k);
    bool fill = strcmp(word, "fill") == 0, ones = strcmp(word, "ones") == 0;
    int64_t period = random ? t->count : fill ? 11 : ones ? 1 : 0; /* a new tensor is zeros */
    for (int64_t n = 0; n < t->count && n < period; n++) {
        Number v =
            random ? random_number(&rng, t->dtype)
                   : small_number(t->dtype, fill ? (7 * n + 13 * (int64_t)k + 3) % 11 - 5 : 1);
        tensor_set(t, n, v);
    }
    repeat(t, period);
    return true;
}

/* ---- binding ---- */

/* Null where there is none. One that is given twice is an error. */
static RunValue *find_value(Ctx *ctx, RunValues *values, const Param *p, uint32_t at)
{
    RunValue *found = NULL;
    for (uint32_t k = 0; k < values->list.n; k++) {
        RunValue *v = &values->list.at[k];
        bool match = v->name.at == NULL ? v->number == at : str_eq_cstr(v->name, p->name->text);
        if (match && found != NULL) {
            diag_error(&ctx->diags, E_ARGUMENT_VALUE, p->span,
                       "'%s' is given twice, as %s and as %s", p->name->text, found->text,
                       v->text);
            v->used = true;
            return found;
        }
        if (match) {
            v->used = true;
            found = v;
        }
    }
    return found;
}

/* What the array's extents say of the dims that a call gives; true when one became known. */
static bool solve_array_dims(Arena *arena, const Head *h, const Param *p, const Tensor *t,
                             int64_t *dims, const char **from)
{
    bool any = false;
    for (uint32_t d = 0; t->rank == p->rank && d < p->rank; d++) {
        int32_t sym = p->shape[d].sym;
        if (sym >= 0 && dims_solve(arena, h->dims, sym, t->extent[d], dims)) {
            any = true;
            for (uint32_t k = 0; k < dims_given(h->dims); k++) {
                from[k] = dims[k] >= 0 && from[k] == NULL ? p->name->text : from[k];
            }
        }
    }
    return any;
}

/* Would the extent say what one dim must be, which the others leave open, if any number were right? */
static bool says_one_dim(const Head *h, const int64_t *all, int32_t dim)
{
    for (;;) {
        const DimInfo *info = &h->dims->list.at[dim];
        uint32_t unknown = 0, n = info->n_terms > 0 ? info->n_terms : info->n_factors;
        bool nothing = info->divisor > 1; /* and a product with 0 */
        for (uint32_t i = 0; i < n; i++) {
            Dim d = info->n_terms > 0 ? info->term[i].dim : info->factor[i];
            int64_t value = d.sym < 0 ? d.n : all[d.sym];
            nothing = nothing || (info->n_factors > 0 && value == 0);
            unknown += value < 0 ? 1 : 0;
            dim = value < 0 ? d.sym : dim;
        }
        if (unknown != 1 || nothing || dim_is_given(&h->dims->list.at[dim])) {
            return unknown == 1 && !nothing;
        }
    }
}

static void check_array_dims(Ctx *ctx, const Head *h, const Param *p, const Tensor *t,
                             const int64_t *all, const char *const *from)
{
    if (t->rank != p->rank) {
        diag_error(&ctx->diags, E_ARGUMENT_VALUE, p->span,
                   "'%s' has %u dimensions, its array %u", p->name->text, p->rank, t->rank);
        return;
    }
    for (uint32_t d = 0; d < p->rank; d++) {
        Dim dim = p->shape[d];
        int64_t want = dim.sym < 0 ? dim.n : all[dim.sym];
        bool computed = dim.sym >= 0 && !dim_is_given(&h->dims->list.at[dim.sym]);
        if (computed && says_one_dim(h, all, dim.sym)) {
            diag_error(&ctx->diags, E_ARGUMENT_VALUE, p->span,
                       "dimension %u of '%s' is %s, its array has %lld, which that cannot be",
                       d, p->name->text, dim_written(ctx->diags.arena, h->dims, dim),
                       (long long)t->extent[d]);
            return;
        }
        if (want == t->extent[d] || (want < 0 && computed)) {
            continue; /* what is not known is said later */
        }
        Diagnostic *e = diag_error(&ctx->diags, E_ARGUMENT_VALUE, p->span,
                                   "dimension %u of '%s' is %lld, its array has %lld", d,
                                   p->name->text, (long long)want, (long long)t->extent[d]);
        if (dim.sym >= 0 && (uint32_t)dim.sym < dims_given(h->dims)) {
            diag_help(e, "'%s' is %lld because of '%s'", h->dims->list.at[dim.sym].name->text,
                      (long long)want, from[dim.sym]);
        } else if (dim.sym >= 0) {
            diag_help(e, "the kernel's %s is %lld",
                      dim_written(ctx->diags.arena, h->dims, dim_open(dim.sym)),
                      (long long)want);
        }
        return;
    }
}

static Tensor *make_argument(Ctx *ctx, Arena *arena, const Head *h, const Param *p,
                             const RunValue *v, uint32_t tensor, const int64_t *dims)
{
    if (v->array != NULL) {
        if (v->array->dtype == DTYPE_U8 && dtype_is_half(p->dtype) &&
            dtype_bytes(p->dtype) == 1) {
            v->array->dtype = p->dtype; /* files have patterns */
        }
        if (v->array->dtype != p->dtype) {
            Diagnostic *e = diag_error(&ctx->diags, E_ARGUMENT_VALUE, p->span,
                                       "'%s' is %s, its array is %s", p->name->text,
                                       dtype_name(p->dtype), dtype_name(v->array->dtype));
            diag_help(e, "--dtype=%s casts the arrays", dtype_name(p->dtype));
            return NULL;
        }
        return v->array;
    }
    int64_t *extent = ARENA_ARRAY(arena, p->rank, int64_t);
    for (uint32_t d = 0; d < p->rank; d++) {
        Dim dim = p->shape[d];
        extent[d] = dim.sym < 0 ? dim.n : dims[dim.sym];
        if (extent[d] < 0) {
            const char *name = dim_written(arena, h->dims, dim_open(dim.sym));
            Diagnostic *e =
                diag_error(&ctx->diags, E_ARGUMENT_VALUE, p->span,
                           "the extent '%s' of '%s' is not known", name, p->name->text);
            bool given = dim_is_given(&h->dims->list.at[dim.sym]);
            diag_help(e, "give %s with -D%s, or an array that has it",
                      given ? "it" : "its dims", given ? str_format(arena, " %s=N", name) : "");
            return NULL;
        }
    }
    bool word = is_word(v->text);
    if (!word && p->rank > 0) {
        diag_error(
            &ctx->diags, E_ARGUMENT_VALUE, p->span,
            "'%s' is a tensor: a .npy file, random:SEED, zeros, ones or fill is expected",
            p->name->text);
        return NULL;
    }
    Tensor *t = tensor_new(ctx, arena, p->dtype, p->rank, extent);
    if (t == NULL || (word && !make_data(ctx, v->text, tensor, t))) {
        return NULL;
    }
    if (word) {
        tensor_make_symmetric(arena, t, p->symmetry);
        return t;
    }
    Number number = {0};
    const char *why = fit_text(v->text, p->dtype, &number);
    if (why != NULL) {
        diag_error(&ctx->diags, E_ARGUMENT_VALUE, p->span, "'%s' is %s, which cannot be %s: %s",
                   p->name->text, dtype_name(p->dtype), v->text, why);
        return NULL;
    }
    tensor_set(t, 0, number);
    return t;
}

static void refuse_unused(Ctx *ctx, const Head *h, const RunValues *values, bool equation)
{
    for (uint32_t k = 0; k < values->list.n; k++) {
        const RunValue *v = &values->list.at[k];
        if (v->used) {
            continue;
        }
        if (v->name.at == NULL) {
            uint32_t given = 0;
            for (uint32_t i = 0; i < values->list.n; i++) {
                given += values->list.at[i].name.at == NULL ? 1 : 0;
            }
            diag_error(&ctx->diags, E_ARGUMENT_VALUE, (Span){0},
                       equation ? "%u operands are given, the equation has %u"
                                : "%u values without a name are given, the kernel has %u "
                                  "parameters",
                       given, h->n_params);
            return;
        }
        Diagnostic *e = diag_error(&ctx->diags, E_ARGUMENT_VALUE, (Span){0},
                                   "kernel '%s' has no parameter '%.*s'", h->name->text,
                                   (int)v->name.n, v->name.at);
        for (uint32_t p = 0; p < h->n_params; p++) {
            Sym name = h->params[p].name;
            if (str_distance(v->name, (Str){name->text, name->n}, 2) <= 2) {
                diag_help(e, "did you mean '%s'?", name->text);
                break;
            }
        }
    }
}

/* The dims that -D binds. Of a program they are numbers by now, and the front end has said which
 * names are of no dim. */
static bool bind_defines(const Input *in, const Head *h, int64_t *dims, const char **from)
{
    FrontDefine *defines = NULL;
    uint32_t n = 0;
    if (!input_defines(in->ctx, in->arena, in->options, &defines, &n)) {
        return false;
    }
    for (uint32_t k = 0; k < n; k++) {
        bool found = in->program != NULL || defines[k].planned;
        for (uint32_t d = 0; d < dims_given(h->dims); d++) {
            if (!defines[k].planned &&
                strcmp(defines[k].name, h->dims->list.at[d].name->text) == 0) {
                dims[d] = defines[k].value;
                from[d] = "-D";
                found = true;
            }
        }
        if (!found) {
            diag_warning(&in->ctx->diags, W_DEFINE, (Span){0}, "-D %s: there is no such dim",
                         defines[k].name);
        }
    }
    return true;
}

/* `n=3` of no parameter is the extent of the dim, as -D n=3. */
static void bind_words(Ctx *ctx, const Head *h, RunValues *values, int64_t *dims,
                       const char **from)
{
    for (uint32_t k = 0; k < values->list.n; k++) {
        RunValue *v = &values->list.at[k];
        int64_t extent = 0;
        for (uint32_t d = 0; v->name.at != NULL && !v->used && d < dims_given(h->dims); d++) {
            const char *name = h->dims->list.at[d].name->text;
            if (str_eq_cstr(v->name, name) && parse_i64(v->text, &extent) && extent >= 0 &&
                extent <= SIZE_LIMIT) {
                v->used = true;
                dims[d] = extent;
                from[d] = name;
                diags_tell(&ctx->diags, "'%s=%s' is taken for -D %s=%s", name, v->text, name,
                           v->text);
            }
        }
    }
}

bool run_bind(const Input *in, const Head *h, RunValues *values, RunArguments *out)
{
    Ctx *ctx = in->ctx;
    Arena *arena = in->arena;
    uint32_t errors = ctx->diags.n_errors;
    uint32_t n_dims = dims_given(h->dims);
    out->dims = ARENA_ARRAY(arena, n_dims, int64_t);
    out->args = ARENA_ARRAY(arena, h->n_params, Tensor *);
    out->files = ARENA_ARRAY(arena, h->n_params, const NpyFile *);
    out->n_args = h->n_params;
    const char **from = ARENA_ARRAY(arena, n_dims, const char *);
    RunValue **value = ARENA_ARRAY(arena, h->n_params, RunValue *);
    for (uint32_t d = 0; d < n_dims; d++) {
        out->dims[d] = -1;
    }
    if (!bind_defines(in, h, out->dims, from)) {
        return false;
    }
    for (uint32_t k = 0; k < h->n_params; k++) {
        const Param *p = &h->params[k];
        value[k] = find_value(ctx, values, p, k);
        if (value[k] == NULL) {
            diag_error(&ctx->diags, E_ARGUMENT_VALUE, p->span, "no value is given for '%s'",
                       p->name->text);
        }
    }
    bind_words(ctx, h, values, out->dims, from);
    for (bool more = true; more;) {
        more = false;
        for (uint32_t k = 0; k < h->n_params; k++) {
            more |= value[k] != NULL && value[k]->array != NULL &&
                    solve_array_dims(arena, h, &h->params[k], value[k]->array, out->dims, from);
        }
    }
    const int64_t *all = dims_complete(arena, h->dims, out->dims);
    for (uint32_t k = 0; k < h->n_params; k++) {
        if (value[k] != NULL && value[k]->array != NULL) {
            check_array_dims(ctx, h, &h->params[k], value[k]->array, all, from);
        }
    }
    bool equation = option_given(in->options, OPT_EQUATION);
    refuse_unused(ctx, h, values, equation);
    uint32_t tensor = 0;
    for (uint32_t k = 0; k < h->n_params && ctx->diags.n_errors == errors; k++) {
        const Param *p = &h->params[k];
        out->args[k] = make_argument(ctx, arena, h, p, value[k], tensor, all);
        out->files[k] = value[k]->file;
        tensor += p->role == PARAM_SCALAR && !equation ? 0 : 1; /* there they are operands */
    }
    for (uint32_t d = 0; d < n_dims && ctx->diags.n_errors == errors; d++) {
        if (out->dims[d] < 0) {
            const char *name = h->dims->list.at[d].name->text;
            diag_error(&ctx->diags, E_ARGUMENT_VALUE, h->dims->list.at[d].span,
                       "the extent '%s' is not known: give it with -D %s=N", name, name);
        }
    }
    all = out->dims = dims_complete(arena, h->dims, out->dims);
    for (uint32_t d = n_dims; d < h->dims->list.n && ctx->diags.n_errors == errors; d++) {
        if (all[d] < 0) {
            diag_error(&ctx->diags, E_ARGUMENT_VALUE, h->dims->list.at[d].span,
                       "the extent %s would be below 0",
                       dim_written(arena, h->dims, dim_open((int32_t)d)));
        }
    }
    return ctx->diags.n_errors == errors;
}
