/* SPDX-License-Identifier: Apache-2.0 */
/* See format_tool.h. */
#include "driver/format_tool.h"

#include <string.h>

#include "front/format.h"

static bool is_dump(Str text)
{
    static const char head[] = "tdsl-dump ";
    return text.n >= sizeof head - 1 && memcmp(text.at, head, sizeof head - 1) == 0;
}

/* With --check: the place where the layout begins to differ. */
static void check_layout(ToolRun *t, uint32_t source, Str text, Str wanted)
{
    size_t same = 0;
    while (same < text.n && same < wanted.n && text.at[same] == wanted.at[same]) {
        same++;
    }
    if (same == text.n && same == wanted.n) {
        return;
    }
    Span at = {source, (uint32_t)same, (uint32_t)same};
    Diagnostic *d =
        diag_error(&t->ctx.diags, E_LAYOUT, at, "the layout is another from here on");
    diag_help(d, "'tdslc fmt' makes it");
}

static bool format_file(ToolRun *t, const char *path)
{
    Str text;
    Text out;
    if (!tool_read(t, path, &text)) {
        return false;
    }
    if (is_dump(text)) {
        return diag_refuse(&t->ctx.diags, E_DUMP, (Span){0},
                           "'%s' is a dump: only programs are laid out", path);
    }
    text_init(&out, &t->arena);
    uint32_t source = source_add(&t->ctx.sources, path, text, (Span){0});
    if (!source_format(&t->ctx, source, &out)) {
        return false;
    }
    if (option_given(&t->options, OPT_CHECK)) {
        check_layout(t, source, text, text_str(&out));
    } else {
        files_add(&t->files, option_last(&t->options, OPT_OUTPUT, path), text_str(&out));
    }
    return true;
}

bool format_tool(ToolRun *t)
{
    const Options *o = &t->options;
    uint32_t n = o->positional.n;
    if (n == 0 || (n > 1 && option_given(o, OPT_OUTPUT))) {
        return usage_error(&t->usage, "fmt: %s",
                           n == 0 ? "no input: FILE.tdsl ..., or '-'" : "-o is for one input");
    }
    if (option_given(o, OPT_CHECK) && option_given(o, OPT_OUTPUT)) {
        return usage_error(&t->usage, "fmt: --check writes nothing: not with -o");
    }
    bool ok = true;
    for (uint32_t k = 0; k < n; k++) {
        ok = format_file(t, o->positional.at[k]) && ok;
    }
    return ok;
}
