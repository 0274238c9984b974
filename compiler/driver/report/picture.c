/* SPDX-License-Identifier: Apache-2.0 */
/* The pictures of the page: the nest as boxes in boxes, what lives at each level of memory as bars, and who reads whom as arcs. All of
 * them are bounded: a kernel of a thousand statements shows its first some hundred, and says how many there are. */
#include <string.h>

#include "driver/report/report.h"

#define ITEMS_SHOWN  400
#define VALUES_SHOWN 400
#define ROWS_SHOWN   160

static const char *const residence_class[RESIDE_COUNT] = {
    [RESIDE_ARGUMENT] = "argument", [RESIDE_VIEW] = "argument",
    [RESIDE_RESULT] = "result",     [RESIDE_INLINE] = "register",
    [RESIDE_TILE] = "tile",         [RESIDE_WORKSPACE] = "workspace",
    [RESIDE_INTO] = "result",
};

static void put_more(Text *out, const char *tag, uint32_t n, const char *what,
                     const char *where)
{
    text_printf(out, "<%s class=\"more\">and %u more %s; %s</%s>\n", tag, n, what, where, tag);
}

static void put_name(Text *out, const ReportValue *v)
{
    text_put(out, "<code>");
    html_text(out, v->name);
    html_text(out, v->indices);
    text_put(out, "</code>");
}

/* ---- the nest ---- */

/* Blocks by the loop that they live in, chained. */
typedef struct Homes {
    const ReportKernel *r;
    uint32_t *first; /* [items + 1]: 1 + value; the last is the kernel's */
    uint32_t *next;  /* [values] */
} Homes;

static void homes_init(Homes *h, const ReportKernel *r)
{
    uint32_t n = r->nest->n_items;
    h->r = r;
    h->first = ARENA_ARRAY(r->c->arena, (size_t)n + 1, uint32_t);
    h->next = ARENA_ARRAY(r->c->arena, r->values.n, uint32_t);
    for (uint32_t k = r->values.n; k-- > 0;) {
        const NestValue *v = &r->nest->values[r->values.at[k].node];
        if (v->residence == RESIDE_TILE) {
            uint32_t at = v->alloc_loop == NEST_NONE ? n : v->alloc_loop;
            h->next[k] = h->first[at];
            h->first[at] = k + 1;
        }
    }
}

static void put_held(const Homes *h, uint32_t at, const char *words, Text *out)
{
    uint32_t shown = 0;
    for (uint32_t k = h->first[at]; k != 0; k = h->next[k - 1]) {
        const ReportValue *v = &h->r->values.at[k - 1];
        if (shown++ == 0) {
            text_printf(out, "<p class=\"held\">%s ", words);
        }
        if (shown <= 12) {
            text_put(out, "<span class=\"pill tile\">");
            html_text(out, v->name);
            text_char(out, ' ');
            report_bytes(out, v->bytes);
            text_put(out, "</span> ");
        }
    }
    if (shown > 12) {
        text_printf(out, "and %u more", shown - 12);
    }
    text_put(out, shown > 0 ? "</p>\n" : "");
}

static void put_loop(const ReportKernel *r, uint32_t k, Text *out)
{
    const NestItem *item = &r->nest->items[k];
    const ReportItem *to = &r->items[k];
    html_in(out, "<p class=\"for\"><b>for <code>", to->index, "</code></b> of ");
    html_text(out, to->extent);
    if (r->nest->axes[item->axis].extent.sym >= 0) {
        text_printf(out, " ~ %lld", (long long)to->typical);
    }
    text_printf(out, " by %lld", (long long)item->tile);
    text_put(out, item->parallel ? " <span class=\"mark parallel\">parallel</span>" : "");
    text_put(out, item->online ? " <span class=\"mark online\">online: one pass</span>" : "");
    if (to->from != NULL) {
        html_in(out, " <span class=\"mark pairs\">from <code>", to->from,
                "</code>: each pair once</span>");
    }
    text_put(out, "</p>\n");
}

static void put_leaf(const ReportKernel *r, uint32_t k, Text *out)
{
    const NestItem *item = &r->nest->items[k];
    const ReportValue *v = &r->values.at[r->items[k].value];
    const NestValue *at = &r->nest->values[item->node];
    text_put(out, "<code class=\"what\"><b>");
    html_text(out, v->name);
    html_text(out, v->indices);
    text_put(out, "</b> = ");
    html_text(out, v->computes);
    text_printf(out, "</code>\n<span class=\"where\"><span class=\"pill %s\">%s",
                residence_class[v->residence], v->lives);
    if (v->bytes > 0) {
        text_char(out, ' ');
        report_bytes(out, v->bytes);
    }
    text_put(out, "</span>");
    if (v->in_place != NULL) {
        html_in(out, " in place of <code>", v->in_place, "</code>");
    }
    if (at->fold != NEST_NONE) {
        html_in(out, " adds up over loop <code>", r->items[at->fold].index, "</code>");
    }
    text_put(out, item->recompute ? " computed again" : "");
    if (report_line_is_shown(r, v->line)) {
        text_printf(out, " <a href=\"#k%u-%u\">line %u</a>", r->kernel, v->line, v->line);
    }
    text_put(out, "</span>");
    if (v->levels != NULL) {
        html_in(out, "<span class=\"levels\">", v->levels, "</span>");
    }
}

void report_picture_nest(const ReportKernel *r, Text *out)
{
    const Nest *nest = r->nest;
    Homes homes;
    homes_init(&homes, r);
    uint32_t open = NEST_NONE,
             shown = nest->n_items < ITEMS_SHOWN ? nest->n_items : ITEMS_SHOWN;
    put_held(&homes, nest->n_items, "held all the time:", out);
    text_put(out, "<ol class=\"nest\">\n");
    for (uint32_t k = 0; k <= shown; k++) {
        while (open != NEST_NONE && (nest->items[open].end <= k || k == shown)) {
            text_put(out, "</ol></li>\n");
            open = nest->items[open].parent;
        }
        if (k == shown) {
            break;
        }
        const NestItem *item = &nest->items[k];
        const ReportItem *to = &r->items[k];
        text_printf(out, "<li class=\"%s\">",
                    nest_is_loop(item) ? "loop"
                                       : residence_class[r->values.at[to->value].residence]);
        if (item->parent == NEST_NONE) {
            text_printf(out, "<span class=\"group\">%u</span>", to->group);
        }
        if (nest_is_loop(item)) {
            put_loop(r, k, out);
            put_held(&homes, k, "holds", out);
            text_put(out, "<ol>\n");
            open = k;
        } else {
            put_leaf(r, k, out);
            text_put(out, "</li>\n");
        }
    }
    text_put(out, "</ol>\n");
    for (uint32_t k = 0; k < r->late.n && k < VALUES_SHOWN; k++) {
        html_in(out, "<p class=\"held\">at the end: <code>", r->late.at[k].name, " = ");
        html_text(out, r->late.at[k].computes);
        text_put(out, "</code></p>\n");
    }
    if (shown < nest->n_items) {
        put_more(out, "p", nest->n_items - shown, "loops and values",
                 "--dump=nest has all of them");
    }
}

/* ---- levels of memory ---- */

/* What a value takes where it lives: an argument is whole there. */
static int64_t bytes_there(const ReportValue *v)
{
    return v->residence == RESIDE_ARGUMENT ? v->whole : v->bytes;
}

static void put_bar(Text *out, const char *class, int64_t bytes, int64_t most)
{
    double part = most > 0 ? 100.0 * (double)bytes / (double)most : 0.0;
    text_printf(out,
                "<span class=\"bar\"><span class=\"%s\" style=\"width:%.1f%%\"></span></span>",
                class, bytes > 0 && part < 0.5 ? 0.5 : part);
}

/* In a line of its own, if there is something to say. */
static void put_fact(Text *out, const char **apart, const char *before, const char *fact,
                     const char *after)
{
    if (fact != NULL) {
        text_printf(out, "%s%s", *apart, before);
        html_text(out, fact);
        text_put(out, after);
        *apart = "<br>";
    }
}

static void put_value_row(const ReportValue *v, int64_t most, Text *out)
{
    text_put(out, "<tr><th scope=\"row\">");
    put_name(out, v);
    text_put(out, "</th><td><code>");
    html_text(out, v->type);
    text_printf(out, "</code></td><td><span class=\"pill %s\">%s</span>",
                residence_class[v->residence], v->lives);
    if (v->in_place != NULL) {
        html_in(out, " in place of <code>", v->in_place, "</code>");
    }
    text_put(out, "</td><td class=\"n\">");
    if (v->residence != RESIDE_INLINE) {
        report_bytes(out, bytes_there(v));
    }
    text_put(out, "</td><td>");
    if (v->residence != RESIDE_INLINE) {
        put_bar(out, residence_class[v->residence], bytes_there(v), most);
    }
    text_put(out, "</td><td>");
    const char *apart = "";
    put_fact(out, &apart, "<code>", v->residence == RESIDE_INLINE ? v->computes : NULL,
             "</code>");
    put_fact(out, &apart, "symmetric: <code>", v->symmetry, "</code>");
    put_fact(out, &apart, "", v->reason, "");
    put_fact(out, &apart, "<b>What helps:</b> ", v->remedy, "");
    text_put(out, "</td></tr>\n");
}

/* The values whose level has this name. */
static void put_level(const ReportKernel *r, const char *level, int64_t capacity,
                      uint32_t *left, Text *out)
{
    int64_t most = capacity, all = 0;
    uint32_t n = 0;
    for (uint32_t k = 0; k < r->values.n; k++) {
        const ReportValue *v = &r->values.at[k];
        if (strcmp(v->level, level) == 0) {
            most = bytes_there(v) > most ? bytes_there(v) : most;
            all = sat_add(all, bytes_there(v));
            n++;
        }
    }
    if (n == 0) {
        return;
    }
    text_put(out, "<tbody><tr class=\"level\"><th scope=\"rowgroup\" colspan=\"6\">");
    html_text(out, level);
    if (capacity > 0) {
        text_put(out, ", which holds ");
        report_bytes(out, capacity);
        text_put(out, ": blocks, not all of them at once");
    } else if (all > 0) {
        text_put(out, ": ");
        report_bytes(out, all);
    }
    text_put(out, "</th></tr>\n");
    for (uint32_t k = 0; k<r->values.n && * left> 0; k++) {
        if (strcmp(r->values.at[k].level, level) == 0) {
            put_value_row(&r->values.at[k], most, out);
            --*left;
        }
    }
    text_put(out, "</tbody>\n");
}

void report_picture_memory(const ReportKernel *r, Text *out)
{
    const Machine *m = r->c->target->machine;
    uint32_t left = VALUES_SHOWN;
    text_put(out, "<table class=\"memory\"><thead><tr><th scope=\"col\">value</th><th "
                  "scope=\"col\">type</th>"
                  "<th scope=\"col\">lives as</th><th scope=\"col\">bytes</th><th "
                  "scope=\"col\">share</th>"
                  "<th scope=\"col\">why, and what is known</th></tr></thead>\n");
    for (uint32_t k = 0; k < m->n_levels; k++) {
        put_level(r, m->level[k].name, m->level[k].capacity, &left, out);
    }
    if (m->n_levels == 0) {
        put_level(r, "memory", 0, &left, out);
    }
    put_level(r, "registers", 0, &left, out);
    text_put(out, "</table>\n");
    if (r->values.n > VALUES_SHOWN) {
        put_more(out, "p", r->values.n - VALUES_SHOWN, "values",
                 "--report=json has all of them");
    }
}

/* ---- who reads whom ---- */

#define ROW   24
#define ARCS  300 /* the widest */
#define WIDTH 1100

typedef struct Rows {
    const ReportKernel *r;
    uint32_t *value;  /* in the order in which they are there */
    uint32_t *row_of; /* [values]: 1 + row */
    uint32_t n, all;
    uint32_t names; /* where names begin; arcs are to the left of them */
} Rows;

static void rows_add(Rows *t, uint32_t value)
{
    t->all++;
    if (t->n < ROWS_SHOWN && t->row_of[value] == 0) {
        t->value[t->n++] = value;
        t->row_of[value] = t->n;
    }
}

static void rows_init(Rows *t, const ReportKernel *r)
{
    *t = (Rows){.r = r, .value = ARENA_ARRAY(r->c->arena, ROWS_SHOWN, uint32_t)};
    t->row_of = ARENA_ARRAY(r->c->arena, r->values.n, uint32_t);
    for (uint32_t k = 0; k < r->values.n; k++) {
        if (r->values.at[k].residence == RESIDE_ARGUMENT) {
            rows_add(t, k);
        }
    }
    for (uint32_t k = 0; k < r->nest->n_items; k++) {
        if (!nest_is_loop(&r->nest->items[k])) {
            rows_add(t, r->items[k].value);
        }
    }
}

static uint32_t middle(uint32_t row)
{
    return row * ROW + ROW / 2;
}

static void put_bands(const Rows *t, Text *out)
{
    for (uint32_t from = 0, to; from < t->n; from = to) {
        uint32_t group = t->r->values.at[t->value[from]].group;
        for (to = from; to < t->n && t->r->values.at[t->value[to]].group == group; to++) {
        }
        text_printf(
            out,
            "<rect class=\"band%s\" x=\"0\" y=\"%u\" width=\"%d\" height=\"%u\" rx=\"6\"/>\n",
            group == 0 ? " outside" : "", from * ROW + 1, WIDTH, (to - from) * ROW - 2);
        if (group == 0) {
            text_printf(out,
                        "<text class=\"quiet\" x=\"%u\" y=\"%u\" "
                        "text-anchor=\"end\">arguments</text>\n",
                        WIDTH - 10, middle(from) + 5);
        } else {
            text_printf(out,
                        "<text class=\"quiet\" x=\"%u\" y=\"%u\" text-anchor=\"end\">loop "
                        "group %u</text>\n",
                        WIDTH - 10, middle(from) + 5, group);
        }
    }
}

static uint32_t arc_width(const Rows *t, uint32_t span)
{
    return 26 + span * ARCS / (t->n < 20 ? 20 : t->n);
}

/* From the value to its reader, to the left of the names; the further, the wider. */
static void put_arc(const Rows *t, uint32_t from, uint32_t to, Text *out)
{
    const ReportValue *v = &t->r->values.at[t->value[from]];
    uint32_t wide = arc_width(t, to > from ? to - from : from - to);
    text_printf(out, "<path class=\"arc %s\" d=\"M%u %uC%u %u %u %u %u %u\"/>\n",
                residence_class[v->residence], t->names, middle(from), t->names - wide,
                middle(from), t->names - wide, middle(to), t->names, middle(to));
    text_printf(out, "<path class=\"head %s\" d=\"M%u %ul-7 -4v8z\"/>\n",
                residence_class[v->residence], t->names + 1, middle(to));
}

static void put_rows(const Rows *t, Text *out)
{
    for (uint32_t k = 0; k < t->n; k++) {
        const ReportValue *v = &t->r->values.at[t->value[k]];
        text_printf(out,
                    "<circle class=\"%s\" cx=\"%u\" cy=\"%u\" r=\"5\"/><text x=\"%u\" "
                    "y=\"%u\"><tspan class=\"name\">",
                    residence_class[v->residence], t->names + 10, middle(k), t->names + 22,
                    middle(k) + 5);
        html_text(out, v->name);
        html_text(out, v->indices);
        text_put(out, "</tspan><tspan class=\"quiet\" dx=\"10\">");
        html_text(out, v->type);
        text_printf(out, ", %s ", v->lives);
        report_bytes(out, bytes_there(v));
        text_put(out, "</tspan></text>\n");
    }
}

static void put_readers_table(const Rows *t, Text *out)
{
    text_put(
        out,
        "<details><summary>The same as a table</summary>\n<table><thead><tr><th "
        "scope=\"col\">value</th>"
        "<th scope=\"col\">loop group</th><th scope=\"col\">reads</th></tr></thead><tbody>\n");
    for (uint32_t k = 0; k < t->n; k++) {
        const ReportValue *v = &t->r->values.at[t->value[k]];
        text_put(out, "<tr><th scope=\"row\">");
        put_name(out, v);
        text_put(out, "</th><td>");
        if (v->group > 0) {
            text_printf(out, "%u", v->group);
        } else {
            text_put(out, "argument");
        }
        text_put(out, "</td><td><code>");
        for (uint32_t x = 0; x < v->reads.list.n && x < 40; x++) {
            text_put(out, x == 0 ? "" : ", ");
            html_text(out,
                      report_value_name(t->r->g, v->reads.list.at[x].node, t->r->c->arena));
        }
        text_put(out, v->reads.list.n > 40 ? ", ..." : "");
        text_put(out, "</code></td></tr>\n");
    }
    text_put(out, "</tbody></table></details>\n");
}

void report_picture_graph(const ReportKernel *r, Text *out)
{
    Rows t;
    rows_init(&t, r);
    t.names = arc_width(&t, t.n) + 10;
    uint32_t drawn = 0;
    text_printf(out,
                "<div class=\"graph\"><svg role=\"img\" viewBox=\"0 0 %d %u\" "
                "aria-labelledby=\"k%u-graph\"><title "
                "id=\"k%u-graph\">Arcs lead from "
                "each value to those that read it; the table below says the same</title>\n",
                WIDTH, t.n * ROW + 2, r->kernel, r->kernel);
    put_bands(&t, out);
    for (uint32_t k = 0; k < t.n; k++) {
        const ReportValue *v = &r->values.at[t.value[k]];
        for (uint32_t x = 0; x < v->reads.list.n && drawn < 4 * ROWS_SHOWN; x++) {
            NodeRef p = v->reads.list.at[x].node;
            uint32_t from = r->value_of[p] == 0 ? 0 : t.row_of[r->value_of[p] - 1];
            bool again = from == 0;
            for (uint32_t y = 0; y < x && !again; y++) {
                again = v->reads.list.at[y].node == p;
            }
            if (!again) {
                put_arc(&t, from - 1, k, out);
                drawn++;
            }
        }
    }
    put_rows(&t, out);
    text_put(out, "</svg></div>\n");
    if (t.all > t.n) {
        put_more(out, "p", t.all - t.n, "values", "--emit=dot has all of them");
    }
    put_readers_table(&t, out);
}
