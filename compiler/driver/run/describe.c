/* SPDX-License-Identifier: Apache-2.0 */
/* tdsl-run --describe: what a kernel takes and gives, and a command line that runs it. */
#include "driver/run/run.h"

static const char *type_text(Arena *arena, const DimTable *dims, DType t, uint32_t rank,
                             const Dim *shape)
{
    Text out = text_new(arena);
    text_put(&out, dtype_name(t));
    for (uint32_t d = 0; d < rank; d++) {
        text_put(&out, d == 0 ? "[" : ", ");
        dim_put(&out, dims, shape[d], NULL);
    }
    text_put(&out, rank > 0 ? "]" : "");
    return out.at;
}

static void put_row(Text *out, const char *name, const char *type, const char *what)
{
    text_printf(out, "  %-12s %-28s %s\n", name, type, what);
}

static void put_dims(const DimTable *dims, Text *out)
{
    for (uint32_t d = 0; d < dims_given(dims); d++) {
        const DimInfo *info = &dims->list.at[d];
        text_printf(out, "  %-12s %-28s open, planned for %lld\n", info->name->text, "dim",
                    (long long)info->typical);
    }
}

/* Arrays by their names; a dim that no array has alone is found from others, or given by -D. */
static void put_command(Arena *arena, const Head *h, const char *input, const char *kernel,
                        Text *out)
{
    Text t = text_new(arena);
    text_printf(&t, "tdsl-run %s%s%s", input,
                kernel == NULL ? "" : " --kernel=", kernel == NULL ? "" : kernel);
    for (uint32_t k = 0; k < h->n_params; k++) {
        const Param *p = &h->params[k];
        text_printf(&t, p->role == PARAM_SCALAR ? " %s=NUMBER" : " %s=%s.npy", p->name->text,
                    p->name->text);
    }
    for (uint32_t r = 0; r < h->n_results; r++) {
        text_printf(&t, " -o %s=%s%s.npy", h->results[r].name->text,
                    h->results[r].param >= 0 ? "new_" : "", h->results[r].name->text);
    }
    text_printf(out, "  %s\n", t.at);
}

void run_describe(Arena *arena, const Head *h, const char *input, bool alone, Text *out)
{
    text_printf(out, "%skernel %s\n", out->n > 0 ? "\n" : "", h->name->text);
    for (uint32_t k = 0; k < h->n_params; k++) {
        const Param *p = &h->params[k];
        put_row(out, p->name->text, type_text(arena, h->dims, p->dtype, p->rank, p->shape),
                p->role == PARAM_INOUT    ? "parameter, changed"
                : p->role == PARAM_SCALAR ? "number"
                                          : "parameter");
    }
    for (uint32_t r = 0; r < h->n_results; r++) {
        const HeadResult *x = &h->results[r];
        if (x->param < 0) {
            put_row(out, x->name->text, type_text(arena, h->dims, x->dtype, x->rank, x->shape),
                    "result");
        }
    }
    put_dims(h->dims, out);
    put_command(arena, h, input, alone ? NULL : h->name->text, out);
}
