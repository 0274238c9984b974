/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of a contraction order as a picture: operands on the left in an order in which no lines cross, contractions to their right,
 * where their operands are; and --emit=path --report=html, a page of it. */
#include "driver/report/path.h"

#include <math.h>
#include <string.h>

#include "driver/report/report.h"

#define OPERANDS 90 /* more are no picture */
#define ROW      24
#define LEFT     150 /* where the first contractions are */
#define RIGHT    880 /* and the last one */
#define WIDTH    1100

typedef struct Picture {
    const PathTree *t;
    const PathTensor *tensor;
    double *y;        /* [tensors] rows */
    uint32_t *height; /* [tensors] contractions below it, on the longest way */
    double all;       /* multiply-adds */
} Picture;

/* Rows of operands, from the last step down: a stack, since trees may be deep. */
static void place_operands(Picture *p, Arena *arena)
{
    const PathTree *t = p->t;
    uint32_t *stack = ARENA_ARRAY(arena, (size_t)t->n_leaves + t->n_steps + 1, uint32_t), n = 0,
             row = 0;
    stack[n++] = t->n_leaves + t->n_steps - 1;
    while (n > 0) {
        uint32_t at = stack[--n];
        if (at < t->n_leaves) {
            p->y[at] = row++;
            continue;
        }
        const PathStep *s = &t->steps[at - t->n_leaves];
        bool first = p->height[s->a] >= p->height[s->b];
        stack[n++] = first ? s->b : s->a;
        stack[n++] = first ? s->a : s->b;
    }
    for (uint32_t k = 0; k < t->n_steps; k++) {
        const PathStep *s = &t->steps[k];
        p->y[t->n_leaves + k] = (p->y[s->a] + p->y[s->b]) / 2;
    }
}

static double tensor_x(const Picture *p, uint32_t tensor)
{
    uint32_t most = p->height[p->t->n_leaves + p->t->n_steps - 1];
    uint32_t h = p->height[tensor];
    double each = most > 1 ? (double)(RIGHT - LEFT) / (most - 1) : 0;
    return h == 0 ? 0 : LEFT + (h - 1) * (each > 170 ? 170 : each);
}

static double tensor_y(const Picture *p, uint32_t tensor)
{
    return (p->y[tensor] + 0.5) * ROW;
}

static void put_line(const Picture *p, uint32_t from, uint32_t to, double most, Text *out)
{
    double x0 = from < p->t->n_leaves ? 118 : tensor_x(p, from), y0 = tensor_y(p, from),
           x1 = tensor_x(p, to), y1 = tensor_y(p, to), bend = x1 - 22 > x0 ? x1 - 22 : x0;
    double thick = 1 + 5 * (most > 1 ? log(1 + p->tensor[from].elements) / log(1 + most) : 0);
    text_printf(
        out,
        "<path class=\"joint argument\" style=\"stroke-width:%.1f\" d=\"M%.1f %.1f H%.1f "
        "C%.1f %.1f %.1f %.1f %.1f %.1f\"/>\n",
        thick, x0, y0, bend, (bend + x1) / 2, y0, (bend + x1) / 2, y1, x1, y1);
}

/* 3.4 M */
static void put_number(Text *out, double n)
{
    static const char *const units[] = {"", " k", " M", " G", " T", " P"};
    uint32_t k = 0;
    for (; n >= 1000 && k < 5; k++) {
        n /= 1000;
    }
    if (n >= 1000) {
        text_printf(out, "%.2e P", n);
    } else {
        text_printf(out, n == floor(n) && k == 0 ? "%.0f%s" : "%.3g%s", n, units[k]);
    }
}

/* The first so many bytes, no character cut. */
static void put_start(Text *out, const char *s, size_t most)
{
    size_t n = strlen(s);
    bool whole = n <= most;
    for (n = whole ? n : most; !whole && n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80; n--) {
    }
    html_text_n(out, (Str){s, n});
    text_put(out, whole ? "" : "...");
}

static void put_contraction(const Picture *p, uint32_t step, Text *out)
{
    uint32_t at = p->t->n_leaves + step;
    const PathTensor *c = &p->tensor[at];
    double share = p->all > 0 ? c->multiply_adds / p->all : 0;
    const char *class = share >= 0.5 ? "workspace" : share >= 0.1 ? "result" : "argument";
    double x = tensor_x(p, at), y = tensor_y(p, at);
    text_printf(out, "<g><title>step %u, %s: ", step + 1, c->kind);
    put_number(out, c->multiply_adds);
    text_printf(out, " multiply-adds, %.1f %% of all; its result has ", 100 * share);
    put_number(out, c->elements);
    text_put(out, " elements, ");
    html_text(out, c->labels);
    text_printf(out,
                "</title><circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/><text "
                "class=\"over\" x=\"%.1f\" y=\"%.1f\">",
                class, x, y, 4 + 7 * sqrt(share), x + 8 + 7 * sqrt(share), y - 4);
    put_number(out, c->multiply_adds);
    text_put(out, "<tspan class=\"quiet\" dx=\"6\">");
    put_start(out, c->labels, 14);
    text_put(out, "</tspan></text></g>\n");
}

static void put_operand(const Picture *p, const PathProblem *problem, uint32_t k, Text *out)
{
    const char *labels = p->tensor[k].labels;
    text_printf(
        out,
        "<text x=\"112\" y=\"%.1f\" text-anchor=\"end\"><tspan class=\"quiet\">%u</tspan>"
        "<tspan class=\"name\" dx=\"6\">",
        tensor_y(p, k) + 4, (problem->place == NULL ? k : problem->place[k]));
    put_start(out, labels, 12);
    text_put(out, "</tspan></text>\n");
}

void report_picture_path(const PathProblem *problem, const PathResult *r, uint32_t number,
                         Arena *arena, Text *out)
{
    const PathTree *t = &r->tree;
    uint32_t n = t->n_leaves + t->n_steps;
    if (t->n_steps == 0 || t->n_leaves > OPERANDS) {
        return;
    }
    Picture p = {t, path_tensors(problem, r, arena), ARENA_ARRAY(arena, n, double),
                 ARENA_ARRAY(arena, n, uint32_t), 0};
    double most = 0;
    for (uint32_t k = 0; k < t->n_steps; k++) {
        const PathStep *s = &t->steps[k];
        uint32_t a = p.height[s->a], b = p.height[s->b];
        p.height[t->n_leaves + k] = 1 + (a > b ? a : b);
        p.all += p.tensor[t->n_leaves + k].multiply_adds;
    }
    for (uint32_t k = 0; k < n; k++) {
        most = p.tensor[k].elements > most ? p.tensor[k].elements : most;
    }
    place_operands(&p, arena);
    text_printf(
        out,
        "<div class=\"graph\"><svg class=\"path\" viewBox=\"0 0 %d %u\" role=\"img\" "
        "aria-labelledby=\"path%u\"><title id=\"path%u\">Tree of contractions; the steps "
        "below have the numbers</title>\n",
        WIDTH, t->n_leaves * ROW, number, number);
    for (uint32_t k = 0; k < t->n_steps; k++) {
        put_line(&p, t->steps[k].a, t->n_leaves + k, most, out);
        put_line(&p, t->steps[k].b, t->n_leaves + k, most, out);
    }
    for (uint32_t k = 0; k < t->n_leaves; k++) {
        put_operand(&p, problem, k, out);
    }
    for (uint32_t k = 0; k < t->n_steps; k++) {
        put_contraction(&p, k, out);
    }
    text_printf(
        out,
        "</svg></div>\n<p class=\"quiet\">Multiply-adds of each contraction%s, and the "
        "labels of its result. <span class=\"pill workspace\">half of all, or more</span> "
        "<span class=\"pill result\">a tenth</span> Lines are as thick as tensors are "
        "large, by their logarithm.</p>\n",
        r->n_sliced > 0 ? " within a slice" : "");
}

void path_report_html(const PathProblem *p, const PathResult *r, double seconds, Arena *arena,
                      Text *out)
{
    Text words = text_new(arena);
    path_report_text(&words, p, r, seconds, arena);
    report_page_begin(out, "contraction order");
    text_put(out, "<header><h1>Contraction order</h1></header>\n<main>\n");
    report_picture_path(p, r, 0, arena, out);
    text_put(out, "<h3>Its steps</h3>\n<pre>");
    html_text_n(out, text_str(&words));
    text_put(out, "</pre>\n</main>\n</body></html>\n");
}
