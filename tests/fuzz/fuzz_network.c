/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a network file: refused with a message, or planned and accounted for. */
#include "fuzz/fuzz.h"
#include "path/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Ctx c;
    ctx_init(&c);
    Str text = {str_dup(&c.arena, (Str){(const char *)data, size}), size};
    uint32_t source = source_add(&c.sources, "network.json", text, (Span){0, 0, 0});
    PathProblem p = {0};
    bool ok = path_problem_from_json(text, (Span){source, 0, 0}, &c, &p);
    CHECK(ok == (c.diags.n_errors == 0));
    if (ok && p.n_operands <= 200 && p.n_labels <= 2000) {
        PathOptions o = {.effort = 0};
        PathResult r = {0};
        CHECK(path_search(&p, &o, &c, &r) == (c.diags.n_errors == 0));
    }
    ctx_release(&c);
    return 0;
}
