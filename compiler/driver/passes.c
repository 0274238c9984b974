/* SPDX-License-Identifier: Apache-2.0 */
/* See passes.h. */
#include "driver/passes.h"

#include <string.h>

#include "base/check.h"

static const Pass rows[PASS_COUNT] = {
#define PASS(id, name, from, to, run, without, summary)                                        \
    {name, summary, STAGE_##from, STAGE_##to, WITHOUT_##without, PASS_##id, NULL},
#include "driver/pipeline.def"
};

static const struct {
    const char *name;
    StageForm form;
} stages[STAGE_COUNT] = {
#define STAGE(id, name, form, ...) {name, FORM_##form},
#include "driver/pipeline.def"
};

const char *stage_name(Stage s)
{
    return stages[s].name;
}

StageForm stage_form(Stage s)
{
    return stages[s].form;
}

bool stage_from_name(const char *name, Stage *out)
{
    for (Stage s = 0; s < STAGE_COUNT; s++) {
        if (stages[s].form != FORM_FILES && strcmp(name, stages[s].name) == 0) {
            *out = s;
            return true;
        }
    }
    return false;
}

static uint32_t own_count(const Target *target)
{
    uint32_t n = 0;
    while (target->passes[n].name != NULL) {
        n++;
    }
    return n;
}

uint32_t pass_count(const Target *target)
{
    return PASS_COUNT - 1 + own_count(target);
}

Pass pass_at(const Target *target, uint32_t place)
{
    uint32_t n = own_count(target);
    CHECK(place < PASS_COUNT - 1 + n);
    if (place < PASS_TARGET || place >= PASS_TARGET + n) {
        return rows[place < PASS_TARGET ? place : place - n + 1];
    }
    const TargetPass *own = &target->passes[place - PASS_TARGET];
    Pass pass = rows[PASS_TARGET];
    pass.name = own->name;
    pass.summary = own->summary;
    pass.to = own->tiled ? STAGE_LOOP : STAGE_LEGAL;
    pass.from = place == PASS_TARGET || own[-1].tiled ? STAGE_LOOP : STAGE_LEGAL;
    pass.without = own->optional ? WITHOUT_SKIPPED : WITHOUT_NEEDED;
    pass.own = own;
    return pass;
}

uint32_t pass_find(const Target *target, const char *name)
{
    uint32_t place = 0, n = pass_count(target);
    while (place < n && strcmp(pass_at(target, place).name, name) != 0) {
        place++;
    }
    return place;
}

uint32_t passes_until(const Target *target, Stage s)
{
    uint32_t place = 0, n = pass_count(target);
    while (place < n && pass_at(target, place).to <= s) {
        place++;
    }
    return place;
}

uint32_t passes_from(const Target *target, Stage s)
{
    if (s == STAGE_NEST || s == STAGE_LEGAL) {
        return passes_until(target, s);
    }
    uint32_t place = 0, n = pass_count(target);
    while (place < n && pass_at(target, place).from < s) {
        place++;
    }
    return place;
}

const char *passes_after(const Target *target, uint32_t next)
{
    while (next > 0 && pass_at(target, next - 1).without == WITHOUT_PART) {
        next--;
    }
    if (next == 0) {
        return NULL;
    }
    Pass last = pass_at(target, next - 1);
    for (uint32_t place = next; place < pass_count(target); place++) {
        Pass p = pass_at(target, place);
        if (p.to == last.to && p.without != WITHOUT_PART) {
            return last.name;
        }
    }
    return NULL;
}

const char *passes_optional(Arena *a, const Target *target)
{
    Text t = text_new(a);
    for (uint32_t place = 0; place < pass_count(target); place++) {
        Pass p = pass_at(target, place);
        if (p.without != WITHOUT_NEEDED) {
            text_printf(&t, " %s", p.name);
        }
    }
    return t.at;
}

void passes_list(const Target *target, Text *out)
{
    for (uint32_t place = 0; place < pass_count(target); place++) {
        Pass p = pass_at(target, place);
        text_printf(out, "%-10s %-7s %-9s %s\n", p.name, stage_name(p.to),
                    p.without == WITHOUT_NEEDED ? "needed" : "optional", p.summary);
    }
}
