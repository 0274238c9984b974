/* SPDX-License-Identifier: Apache-2.0 */
/* See path_tool.h. */
#include "driver/path_tool.h"

#include "driver/input.h"
#include "driver/progress.h"
#include "driver/report/path.h"
#include "path/prepare.h"

static bool read_problem(ToolRun *t, PathProblem *p)
{
    const char *network = option_last(&t->options, OPT_NETWORK, NULL);
    if (network != NULL) {
        Str text = {0};
        if (!tool_read(t, network, &text)) {
            return false;
        }
        files_input(&t->files, network);
        uint32_t source = source_add(&t->ctx.sources, network, text, (Span){0});
        return path_problem_from_json(text, (Span){source, 0, 0}, &t->ctx, p);
    }
    if (!option_given(&t->options, OPT_EQUATION)) {
        return usage_error(&t->usage, "--emit=path takes -e EQUATION or --network=FILE.json");
    }
    Input in = {.ctx = &t->ctx, .arena = &t->arena, .options = &t->options};
    return input_path_problem(&in, p);
}

static bool decide(ToolRun *t, const PathProblem *p, const PathOptions *o, PathResult *r)
{
    const char *linear = option_last(&t->options, OPT_PATH, NULL);
    const char *plan = option_last(&t->options, OPT_PLAN_IN, NULL);
    PathTree tree = {0};
    PathLabels sliced = {0};
    Str text = {0};
    if (plan != NULL) {
        return tool_read(t, plan, &text) && path_plan_read(text, p, &t->ctx, &tree, &sliced) &&
               path_accept(p, o, tree, sliced, &t->ctx, r);
    }
    if (linear != NULL) {
        return path_parse_given(linear, "path", p, &t->ctx, &tree) &&
               path_accept(p, o, tree, sliced, &t->ctx, r);
    }
    return path_search(p, o, &t->ctx, r);
}

bool path_tool_decide(ToolRun *t, const PathOptions *options, PathProblem *p, PathResult *r)
{
    bool quiet = t->ctx.diags.no_warnings;
    t->ctx.diags.no_warnings = true; /* the kernel has warned already */
    bool ok = read_problem(t, p) && decide(t, p, options, r);
    t->ctx.diags.no_warnings = quiet;
    return ok;
}

bool path_tool(ToolRun *t, const Request *request, PathOptions *options)
{
    PathProblem p = {0};
    PathResult r = {0};
    if (!read_problem(t, &p)) {
        return false;
    }
    Progress progress;
    progress_watch(&progress, options);
    double start = tool_clock();
    bool ok = decide(t, &p, options, &r);
    double seconds = tool_clock() - start;
    progress_end(&progress, r.interrupted);
    if (!ok) {
        return false;
    }
    Text report = text_new(&t->arena);
    if (request->form == REPORT_JSON) {
        path_report_json(&report, &p, &r, seconds, &t->arena);
    } else if (request->form == REPORT_HTML) {
        path_report_html(&p, &r, seconds, &t->arena, &report);
    } else {
        path_report_text(&report, &p, &r, seconds, &t->arena);
    }
    files_add(&t->files, request->out, text_str(&report));
    if (request->plan != NULL) {
        Text plan = text_new(&t->arena);
        path_plan_write(&plan, &p, &r, &t->arena);
        files_add(&t->files, request->plan, text_str(&plan));
    }
    return true;
}
