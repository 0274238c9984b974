/* SPDX-License-Identifier: Apache-2.0 */
/* Writing what all dumps share (text.h): heads, dims, types, numbers. */
#include "dump/text.h"

void dump_head(Text *out, const char *stage, const char *source_name, const char *after)
{
    text_printf(out, "tdsl-dump %s 1\n", stage);
    if (source_name != NULL) {
        text_put(out, "source ");
        text_quoted(out, str_from(source_name));
        text_char(out, '\n');
    }
    if (after != NULL) {
        text_printf(out, "after %s\n", after);
    }
}

static void put_quoted(Text *out, const char *word, const char *text)
{
    text_printf(out, "%s ", word);
    text_quoted(out, str_from(text));
}

void dump_kernel_head(Text *out, Sources *sources, const KernelHead *head)
{
    text_put(out, "kernel ");
    dump_name(out, head->name);
    dump_span(out, sources, head->span, 0);
    text_put(out, " {\n");
    out->indent++;
    if (head->signature[0] != '\0') {
        put_quoted(out, "signature", head->signature);
        text_char(out, '\n');
    }
    for (uint32_t k = 0; k < head->statements.n; k++) {
        put_quoted(out, "statement", head->statements.at[k].text);
        dump_span(out, sources, head->statements.at[k].span, head->span.source);
        text_char(out, '\n');
    }
    for (uint32_t k = 0; k < head->ranks.n; k++) {
        put_quoted(out, "ranks", head->ranks.at[k]);
        text_char(out, '\n');
    }
}

void dump_label(Text *out, int32_t label)
{
    if (label < 26) {
        text_char(out, (char)('a' + label));
    } else if (label < 52) {
        text_char(out, (char)('A' + label - 26));
    } else {
        text_printf(out, "l%d", (int)label);
    }
}

/* The number of a label by its printed name (dump_label), or -1. */
int32_t dump_label_number(Sym name)
{
    const char *t = name->text;
    if (name->n == 1 && t[0] >= 'a' && t[0] <= 'z') {
        return t[0] - 'a';
    }
    if (name->n == 1 && t[0] >= 'A' && t[0] <= 'Z') {
        return t[0] - 'A' + 26;
    }
    int32_t v = 0;
    for (uint32_t k = 1; k < name->n; k++) {
        if (t[0] != 'l' || t[k] < '0' || t[k] > '9' || v > 100000000) {
            return -1;
        }
        v = v * 10 + (t[k] - '0');
    }
    return name->n > 1 && v >= 52 ? v : -1;
}

void dump_dim(Text *out, const DimTable *dims, Dim d)
{
    if (d.sym < 0) {
        text_i64(out, d.n);
    } else {
        dump_name(out, dims->list.at[d.sym].name);
    }
}

void dump_type(Text *out, const DimTable *dims, DType dtype, uint32_t rank, const Dim *shape)
{
    text_put(out, dtype_name(dtype));
    dump_shape(out, dims, rank, shape);
}

void dump_shape(Text *out, const DimTable *dims, uint32_t rank, const Dim *shape)
{
    text_char(out, '[');
    for (uint32_t d = 0; d < rank; d++) {
        text_put(out, d == 0 ? "" : ",");
        dump_dim(out, dims, shape[d]);
    }
    text_char(out, ']');
}

void dump_symmetry(Text *out, const Symmetry *declared)
{
    for (uint32_t k = 0; declared != NULL && k < declared->n; k++) {
        const SymmetryClass *c = &declared->at[k];
        text_printf(out, " %s(", symmetry_short_word(c->sign, c->conj));
        for (uint32_t p = 0; p < c->width; p++) {
            for (uint32_t g = 0; g < c->n; g++) {
                text_printf(out, "%s%u",
                            g > 0   ? " "
                            : p > 0 ? ", "
                                    : "",
                            c->dim[g * c->width + p]);
            }
        }
        text_char(out, ')');
    }
}

void dump_dim_test(Text *out, const DimTable *dims, const DimTest *test)
{
    text_put(out, "when ");
    if (test->least > 0) {
        text_printf(out, "%lld < ", (long long)test->least - 1);
    }
    dump_dim(out, dims, dim_open(test->dim));
    if (test->most != DIM_ANY_SIZE) {
        text_printf(out, " < %lld", (long long)test->most + 1);
    }
}

void dump_number(Text *out, Number v)
{
    if (v.dtype == DTYPE_BOOL) {
        text_put(out, v.i != 0 ? "true" : "false");
    } else if (dtype_is_int(v.dtype)) {
        if (v.i == INT64_MIN) { /* its magnitude is no INT of the dump language */
            text_put(out, "-9223372036854775807 - 1");
        } else {
            text_i64(out, v.i);
        }
    } else if (dtype_is_complex(v.dtype)) {
        text_put(out, "complex(");
        text_f64(out, v.re);
        text_put(out, ", ");
        text_f64(out, v.im);
        text_char(out, ')');
    } else {
        text_f64(out, v.re);
    }
}

/* " - 3", " + 3", " 3" */
static void put_signed(Text *out, int64_t n, bool plus)
{
    uint64_t size = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
    text_printf(out, "%s %llu", n < 0 ? " -" : plus ? " +" : "", (unsigned long long)size);
}

void dump_dims(Text *out, const DimTable *dims)
{
    for (uint32_t k = 0; k < dims->list.n; k++) {
        text_put(out, "dim ");
        const DimInfo *info = &dims->list.at[k];
        dump_name(out, info->name);
        text_printf(out, " ~ %lld", (long long)info->typical);
        for (uint32_t i = 0; i < info->n_factors; i++) {
            text_put(out, i == 0 ? " = " : " * ");
            dump_dim(out, dims, info->factor[i]);
        }
        for (uint32_t i = 0; i < info->n_terms; i++) {
            text_put(out, i == 0 ? " = sum" : "");
            put_signed(out, info->term[i].coef, i > 0);
            text_put(out, " * ");
            dump_dim(out, dims, info->term[i].dim);
        }
        if (info->n_terms > 0) {
            put_signed(out, info->base, true);
        }
        if (info->divisor > 1) {
            text_printf(out, " / %lld", (long long)info->divisor);
        }
        text_char(out, '\n');
    }
}

void dump_value(Text *out, uint32_t value)
{
    text_printf(out, "%%%u", value);
}

void dump_requirement(Text *out, const DimTable *dims, Sources *sources, uint32_t home,
                      const Requirement *r)
{
    text_char(out, ' ');
    text_quoted(out, str_from(r->text));
    if (r->indices[0] != '\0') {
        text_put(out, " at ");
        text_quoted(out, str_from(r->indices));
    }
    text_put(out, " of @");
    dump_name(out, r->array);
    text_printf(out, " %u below ", r->dimension);
    dump_dim(out, dims, r->below);
    text_put(out, r->guarded ? " guarded" : "");
    dump_span(out, sources, r->span, home);
    text_char(out, '\n');
}
