/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a schedule, its reading, and what is wrong with one. */
#include "schedule/schedule.h"

const char *schedule_role_name(ScheduleRole role)
{
    static const char *const names[] = {
        [ROLE_M] = "rows", [ROLE_N] = "columns", [ROLE_K] = "sum", [ROLE_BATCH] = "batch"};
    return names[role];
}

const ScheduleLevel *schedule_innermost(const Schedule *b, ScheduleRole role)
{
    for (uint32_t i = b->n_levels; i-- > 0;) {
        if (b->level[i].role == role) {
            return &b->level[i];
        }
    }
    return NULL;
}

const ScheduleLevel *schedule_outermost(const Schedule *b, ScheduleRole role)
{
    for (uint32_t i = 0; i < b->n_levels; i++) {
        if (b->level[i].role == role) {
            return &b->level[i];
        }
    }
    return NULL;
}

void schedule_dump(const Schedule *b, ScheduleLabel *put, void *user, Text *out)
{
    const char *space = "";
    for (ScheduleRole r = 0; r < ROLE_COUNT; r++) {
        if (b->n_labels[r] == 0) {
            continue;
        }
        text_printf(out, "%s%s [", space, schedule_role_name(r));
        space = " ";
        for (uint32_t i = 0; i < b->n_labels[r]; i++) {
            text_put(out, i == 0 ? "" : ", ");
            put(user, b->label[r][i], out);
        }
        text_put(out, r == ROLE_BATCH && b->parallel_batches ? "] parallel" : "]");
    }
    text_put(out, " levels [");
    for (uint32_t i = 0; i < b->n_levels; i++) {
        const ScheduleLevel *l = &b->level[i];
        text_printf(out, "%s%s %lld", i == 0 ? "" : ", ", schedule_role_name(l->role),
                    (long long)l->tile);
        for (uint32_t d = 0; l->step != NULL && d < b->n_labels[l->role]; d++) {
            text_printf(out, "%s%lld%s", d == 0 ? " [" : ", ", (long long)l->step[d],
                        d + 1 == b->n_labels[l->role] ? "]" : "");
        }
        text_printf(out, "%s%s", l->pack ? " pack" : "", l->parallel ? " parallel" : "");
    }
    text_put(out, b->needed ? "] needed" : "]");
}

/* ---- reading ---- */

static bool take_role(Cursor *c, ScheduleRole *out)
{
    for (ScheduleRole r = 0; r < ROLE_COUNT; r++) {
        if (cursor_take(c, TERM_NAME, schedule_role_name(r))) {
            *out = r;
            return true;
        }
    }
    return false;
}

static bool read_labels(Cursor *c, Arena *arena, ScheduleNumber *number, void *user,
                        ScheduleRole role, Schedule *b)
{
    const Term *list = cursor_expect(c, TERM_LIST, NULL, "a list of labels");
    if (list == NULL) {
        return false;
    }
    if (list->n == 0 || b->n_labels[role] > 0) {
        return dump_refuse(c->ctx, list->span, "each role is named once, with its labels");
    }
    uint32_t *label = ARENA_ARRAY(arena, list->n, uint32_t);
    for (uint32_t i = 0; i < list->n; i++) {
        int64_t n = list->child[i]->kind == TERM_NAME ? number(user, list->child[i]) : -1;
        if (n < 0) {
            return dump_refuse(c->ctx, list->child[i]->span,
                               "a label of the contraction is expected");
        }
        label[i] = (uint32_t)n;
    }
    b->n_labels[role] = list->n;
    b->label[role] = label;
    b->parallel_batches |= role == ROLE_BATCH && cursor_take(c, TERM_NAME, "parallel");
    return true;
}

/* The steps of a level, if a list stands there. */
static bool read_steps(Cursor *c, Arena *arena, const Schedule *b, ScheduleLevel *out)
{
    const Term *list = cursor_peek(c);
    if (!cursor_take(c, TERM_LIST, NULL)) {
        return true;
    }
    if (list->n != b->n_labels[out->role]) {
        return dump_refuse(c->ctx, list->span,
                           "a level has one step for each label of its role");
    }
    int64_t *step = ARENA_ARRAY(arena, list->n, int64_t);
    for (uint32_t i = 0; i < list->n; i++) {
        if (list->child[i]->kind != TERM_INT) {
            return dump_refuse(c->ctx, list->child[i]->span,
                               "a number of positions is expected");
        }
        step[i] = list->child[i]->value;
    }
    out->step = step;
    return true;
}

static bool read_level(Cursor *line, Arena *arena, const Schedule *b, Term *t,
                       ScheduleLevel *out)
{
    Cursor c = cursor_seq(line->ctx, t);
    if (!take_role(&c, &out->role) || out->role == ROLE_BATCH) {
        return dump_refuse(line->ctx, t->span,
                           "rows, columns or sum and a tile size are expected");
    }
    const Term *tile = cursor_expect(&c, TERM_INT, NULL, "a tile size");
    if (tile == NULL) {
        return false;
    }
    out->tile = tile->value;
    if (!read_steps(&c, arena, b, out)) {
        return false;
    }
    out->pack = cursor_take(&c, TERM_NAME, "pack");
    if (out->pack && out->role == ROLE_K) {
        return dump_refuse(line->ctx, t->span,
                           "rows and columns are packed, the sum is part of both");
    }
    out->parallel = cursor_take(&c, TERM_NAME, "parallel");
    if (out->parallel && out->role == ROLE_K) {
        return dump_refuse(line->ctx, t->span,
                           "iterations of a sum write the same places: it is not parallel");
    }
    return cursor_expect_end(&c);
}

bool schedule_read(Cursor *c, Arena *arena, ScheduleNumber *number, void *user,
                   const Schedule **out)
{
    Schedule *b = ARENA_NEW(arena, Schedule);
    ScheduleRole role = ROLE_COUNT;
    bool any = false;
    while (take_role(c, &role)) {
        any = true;
        if (!read_labels(c, arena, number, user, role, b)) {
            return false;
        }
    }
    *out = NULL;
    if (!any) {
        return true;
    }
    const Term *list = NULL;
    if (cursor_expect(c, TERM_NAME, "levels", "'levels'") == NULL ||
        (list = cursor_expect(c, TERM_LIST, NULL, "a list of levels")) == NULL) {
        return false;
    }
    ScheduleLevel *level = ARENA_ARRAY(arena, list->n, ScheduleLevel);
    for (uint32_t i = 0; i < list->n; i++) {
        if (!read_level(c, arena, b, list->child[i], &level[i])) {
            return false;
        }
    }
    b->n_levels = list->n;
    b->level = level;
    b->given = true;
    b->needed = cursor_take(c, TERM_NAME, "needed");
    *out = b;
    return true;
}

/* ---- checking ---- */

ScheduleRole schedule_role(bool in_result, bool in_left, bool in_right, bool rows_in_left)
{
    if (!in_result) {
        return ROLE_K;
    }
    return in_left == in_right ? ROLE_BATCH : in_left == rows_in_left ? ROLE_M : ROLE_N;
}

static const char *labels_problem(const Schedule *b, uint32_t n, const ScheduleRole *role)
{
    uint32_t count = 0, want = 0;
    for (uint32_t l = 0; l < n; l++) {
        want += role[l] != ROLE_COUNT ? 1 : 0;
    }
    for (ScheduleRole r = 0; r < ROLE_COUNT; r++) {
        for (uint32_t i = 0; i < b->n_labels[r]; i++) {
            uint32_t l = b->label[r][i];
            if (l >= n || role[l] != r) {
                return "a label is not of the role that it is given";
            }
            for (uint32_t j = 0; j < i; j++) {
                if (b->label[r][j] == l) {
                    return "a label is there twice";
                }
            }
            count++;
        }
    }
    return count == want ? NULL : "a label has no role";
}

static bool steps_fit(const ScheduleLevel *l, uint32_t n)
{
    int64_t count = 1;
    for (uint32_t i = 0; l->step != NULL && i < n; i++) {
        if (l->step[i] < 1) {
            return false;
        }
        count = sat_mul(count, l->step[i]);
    }
    return count <= l->tile;
}

const char *schedule_problem(const Schedule *b, uint32_t n, const ScheduleRole *role)
{
    const char *problem = labels_problem(b, n, role);
    int64_t last[ROLE_COUNT] = {0};
    for (uint32_t i = 0; problem == NULL && i < b->n_levels; i++) {
        const ScheduleLevel *l = &b->level[i];
        if (l->role >= ROLE_BATCH || b->n_labels[l->role] == 0) {
            return "a level is of a role that has no labels";
        }
        int64_t outer = last[l->role];
        if (l->parallel && l->role == ROLE_K) {
            return "a sum is not parallel";
        }
        if (l->tile < 1 || (outer > 0 && (outer <= l->tile || outer % l->tile != 0))) {
            return "a tile is cut again only into equal, smaller ones";
        }
        if (!steps_fit(l, b->n_labels[l->role])) {
            return "the steps of a level are 1 or more each, and together no more than its "
                   "tile";
        }
        last[l->role] = l->tile;
    }
    uint32_t parallel = b->parallel_batches ? 1 : 0;
    for (uint32_t i = 0; i < b->n_levels; i++) {
        parallel += b->level[i].parallel ? 1 : 0;
    }
    if (problem == NULL && parallel > 1) {
        return "of one contraction one loop is parallel";
    }
    bool tile = last[ROLE_M] > 0 && last[ROLE_N] > 0;
    return problem == NULL && b->n_levels > 0 && !tile
               ? "levels are of rows and columns at least, or there are none"
               : problem;
}
