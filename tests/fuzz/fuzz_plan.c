/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a plan file, and as a linear path, for one fixed problem: refused with a message, or a tree of it. */
#include "fuzz/fuzz.h"
#include "path/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t ab[] = {0, 1}, bc[] = {1, 2}, cd[] = {2, 3}, out[] = {0, 3};
    static const PathLabels operands[] = {{ab, 2}, {bc, 2}, {cd, 2}};
    static const int64_t sizes[] = {4, 5, 6, 7};
    const PathProblem p = {.n_operands = 3,
                           .operands = operands,
                           .output = {out, 2},
                           .n_labels = 4,
                           .sizes = sizes};
    Ctx c;
    ctx_init(&c);
    Str text = {str_dup(&c.arena, (Str){(const char *)data, size}), size};
    PathTree tree = {0};
    PathLabels sliced = {0};
    PathOptions o = {.effort = 1};
    PathResult r = {0};
    if (path_plan_read(text, &p, &c, &tree, &sliced)) {
        CHECK(path_accept(&p, &o, tree, sliced, &c, &r) == (c.diags.n_errors == 0));
    } else {
        CHECK(c.diags.n_errors > 0);
    }
    uint32_t before = c.diags.n_errors;
    if (path_parse_linear(text.at, p.n_operands, &c, &tree)) {
        CHECK(path_tree_valid(&tree, p.n_operands));
    } else {
        CHECK(c.diags.n_errors > before || c.diags.more_errors > 0);
    }
    ctx_release(&c);
    return 0;
}
