/* SPDX-License-Identifier: Apache-2.0 */
/* What is shown of the name under the pointer: its declaration, what it is, and where the kernel was priced, where it lives and
 * what its line costs. */
#include <string.h>

#include "driver/lsp/answers.h"

/* The types of a value of a text that does not check are those of the last one that did. */
static const char *detail_of(const LspDocument *d, const LspFound *f)
{
    if (f->detail != NULL) {
        return f->detail;
    }
    const char *kernel = lsp_kernel_name(&d->meaning, f->kernel);
    uint32_t k = lsp_named(&d->whole, f->name, strlen(f->name), kernel);
    return k != UINT32_MAX && d->whole.symbols.at[k].kind == f->kind
               ? d->whole.symbols.at[k].detail
               : NULL;
}

static void put_head(const LspDocument *d, const LspFound *f, const char *kernel, Text *out)
{
    const char *detail = detail_of(d, f);
    bool own = f->kind == LSP_FUNCTION || f->kind == LSP_TYPE || f->kind == LSP_ATTRIBUTE ||
               f->kind == LSP_WORD;
    text_printf(out, "```tdsl\n%s\n```\n%s", detail == NULL ? f->name : detail,
                lsp_kind_word(f->kind));
    if (f->kind != LSP_KERNEL && kernel != NULL) {
        text_printf(out, " of `%s`", kernel);
    } else if (own) {
        text_put(out, " of the language");
    }
    text_printf(out, "%s%s\n", f->about == NULL ? "" : ": ", f->about == NULL ? "" : f->about);
}

static void put_prices(const json_t *prices, const LspFound *f, uint32_t line, Text *out)
{
    const char *home = lsp_text(json_object_get(prices, "values"), f->name);
    char number[12];
    (void)snprintf(number, sizeof number, "%u", line + 1);
    const char *price = lsp_text(json_object_get(prices, "lines"), number);
    const char *all = lsp_text(prices, "about");
    bool value = f->kind == LSP_PARAMETER || f->kind == LSP_RESULT || f->kind == LSP_VALUE;
    if (value && home != NULL) {
        text_printf(out, "\n%s\n", home);
    }
    if (price != NULL) {
        text_printf(out, "\nthis line: %s, by the model\n", price);
    }
    if (f->kind == LSP_KERNEL && all != NULL) {
        text_printf(out, "\n%s, by the model\n", all);
    }
}

json_t *lsp_hover(LspServer *s, const json_t *params, LspFault *fault, const char **wants)
{
    uint32_t byte = 0;
    bool old = false;
    *wants = NULL;
    LspDocument *d = lsp_where(s, params, &byte, fault);
    const LspFound *f = d == NULL ? NULL : lsp_find(d, byte, &old);
    if (f == NULL) {
        return json_null();
    }
    const LspMeaning *m = old ? &d->whole : &d->meaning;
    const char *kernel = lsp_kernel_name(m, f->kernel);
    Text out = text_new(&s->scratch);
    put_head(d, f, kernel, &out);
    /* The kernel around the line, or the one that is named. */
    int32_t around = f->kind == LSP_KERNEL ? f->kernel : lsp_kernel_at(&d->meaning, byte);
    const char *priced = old ? NULL : lsp_kernel_name(&d->meaning, around);
    json_t *prices = priced == NULL ? NULL : json_object_get(d->prices, priced);
    if (json_is_object(prices)) {
        put_prices(prices, f, lsp_place(&d->lines, byte).line, &out);
    } else if (prices == NULL) {
        *wants = priced;
    }
    json_t *answer = json_pack("{s:{s:s, s:o}}", "contents", "kind", "markdown", "value",
                               uri_string(out.at));
    uint32_t use = lsp_use_at(&d->meaning, byte);
    if (use != UINT32_MAX) {
        const LspUsed *u = &d->meaning.uses.at[use];
        json_object_set_new(answer, "range", lsp_range(&d->lines, u->lo, u->hi));
    }
    return answer;
}
