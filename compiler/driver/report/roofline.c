/* SPDX-License-Identifier: Apache-2.0 */
/* Two pictures of the model's numbers: the roofline, rates of the nests over the multiply-adds that they do for each byte, under what
 * the machine has at most; and what moves between levels of memory. */
#include <math.h>

#include "driver/report/report.h"

#define WIDTH  1100
#define HEIGHT 330
#define LEFT   70 /* of the plot */
#define RIGHT  860
#define TOP    24
#define BOTTOM 286

#define SHOWN 3 /* forms: chosen, without fusion, turned down */

static const char *const form_words[SHOWN] = {"chosen", "without fusion", "turned down"};
static const char *const form_class[SHOWN] = {"tile", "workspace", "argument"};

/* ---- roofline ---- */

/* Decades of both axes. */
typedef struct Plot {
    double x0, x1, y0, y1;
    Text *out;
} Plot;

static double plot_x(const Plot *p, double intensity)
{
    return LEFT + (log10(intensity) - p->x0) / (p->x1 - p->x0) * (RIGHT - LEFT);
}

static double plot_y(const Plot *p, double flops)
{
    return BOTTOM - (log10(flops) - p->y0) / (p->y1 - p->y0) * (BOTTOM - TOP);
}

static void plot_include(double *low, double *high, double value)
{
    double at = log10(value);
    *low = floor(at) < *low ? floor(at) : *low;
    *high = ceil(at) > *high ? ceil(at) : *high;
}

static double flops_of(const NestCost *cost)
{
    return 2.0 * (double)cost->multiply_adds;
}

/* 21 GF/s */
static void put_rate(Text *out, double per_second, const char *unit)
{
    bool tera = per_second >= 1e12;
    text_printf(out, "%.3g %s%s/s", per_second / (tera ? 1e12 : 1e9), tera ? "T" : "G", unit);
}

static void put_axes(const Plot *p)
{
    for (double d = p->x0; d <= p->x1; d++) {
        double x = plot_x(p, pow(10, d));
        text_printf(p->out,
                    "<path class=\"rule\" d=\"M%.1f %d V%d\"/><text class=\"quiet\" x=\"%.1f\" "
                    "y=\"%d\" text-anchor=\"middle\">%g</text>\n",
                    x, TOP, BOTTOM, x, BOTTOM + 18, pow(10, d));
    }
    for (double d = p->y0; d <= p->y1; d++) {
        double y = plot_y(p, pow(10, d));
        text_printf(p->out,
                    "<path class=\"rule\" d=\"M%d %.1f H%d\"/><text class=\"quiet\" x=\"%d\" "
                    "y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                    LEFT, y, RIGHT, LEFT - 6, y + 4, pow(10, d) / 1e9);
    }
    text_printf(p->out,
                "<text class=\"quiet\" x=\"%d\" y=\"%d\" text-anchor=\"end\">flops for each "
                "byte that a level moves</text><text class=\"quiet\" x=\"%d\" "
                "y=\"%d\">GF/s</text>\n",
                RIGHT, BOTTOM + 38, LEFT - 34, TOP - 8);
}

/* Below its bandwidth times the intensity, and below the peak. */
static void put_roof(const Plot *p, const MemoryLevel *level, double peak)
{
    double ridge = peak / level->bytes_per_second, from = pow(10, p->x0);
    double start = level->bytes_per_second * from;
    if (start < pow(10, p->y0)) {
        start = pow(10, p->y0);
        from = start / level->bytes_per_second;
    }
    text_printf(p->out, "<path class=\"roof\" d=\"M%.1f %.1f L%.1f %.1f\"/>\n", plot_x(p, from),
                plot_y(p, start), plot_x(p, ridge), plot_y(p, peak));
    double middle = sqrt(from * ridge),
           slope = -atan2((BOTTOM - TOP) / (p->y1 - p->y0), (RIGHT - LEFT) / (p->x1 - p->x0));
    text_printf(p->out,
                "<text class=\"quiet\" transform=\"translate(%.1f %.1f) rotate(%.1f)\" "
                "text-anchor=\"middle\" dy=\"-5\">",
                plot_x(p, middle), plot_y(p, middle * level->bytes_per_second),
                slope * 57.29578);
    html_text(p->out, level->name);
    text_char(p->out, ' ');
    put_rate(p->out, level->bytes_per_second, "B");
    text_put(p->out, "</text>\n");
}

static void put_mark(const Plot *p, const char *class, uint32_t level, double x, double y)
{
    if (level == 0) {
        text_printf(p->out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"6\"/>\n", class,
                    x, y);
    } else {
        text_printf(p->out,
                    "<rect class=\"fill %s\" x=\"%.1f\" y=\"%.1f\" width=\"10\" "
                    "height=\"10\"/>\n",
                    class, x - 5, y - 5);
    }
}

/* A mark for each level, joined, since all of them have the rate of the nest. */
static void put_nest_rate(const Plot *p, const Machine *m, uint32_t form, const NestCost *cost)
{
    double rate = flops_of(cost) / cost->seconds, y = plot_y(p, rate), x0 = 0, x1 = 0;
    for (uint32_t v = 0; v + 1 < m->n_levels; v++) {
        double x = cost->bytes[v] > 0 ? plot_x(p, flops_of(cost) / cost->bytes[v]) : 0;
        x0 = x > 0 && (x0 <= 0 || x < x0) ? x : x0;
        x1 = x > x1 ? x : x1;
    }
    text_printf(p->out, "<path class=\"joint %s\" d=\"M%.1f %.1f H%.1f\"/>\n", form_class[form],
                x0, y, x1);
    for (uint32_t v = 0; v + 1 < m->n_levels; v++) {
        if (cost->bytes[v] > 0) {
            put_mark(p, form_class[form], v, plot_x(p, flops_of(cost) / cost->bytes[v]), y);
        }
    }
    text_printf(p->out, "<text x=\"%d\" y=\"%u\"><tspan class=\"fill %s\">&#9632;</tspan> %s: ",
                RIGHT + 16, TOP + 70 + 24 * form, form_class[form], form_words[form]);
    put_rate(p->out, rate, "F");
    text_put(p->out, "</text>\n");
}

static void put_key(const Plot *p, const Machine *m)
{
    for (uint32_t v = 0; v + 1 < m->n_levels; v++) {
        put_mark(p, "argument", v, RIGHT + 23, TOP + 160 + 22 * v);
        text_printf(p->out, "<text class=\"quiet\" x=\"%d\" y=\"%u\">bytes of ", RIGHT + 36,
                    TOP + 164 + 22 * v);
        html_text(p->out, m->level[v].name);
        text_put(p->out, "</text>\n");
    }
}

static bool has_rates(const ReportKernel *r, const ReportForm *form)
{
    const Machine *m = r->c->target->machine;
    return m->kind == MACHINE_CACHES && m->n_levels > 1 && form->cost != NULL &&
           form->cost->seconds > 0 && form->cost->multiply_adds > 0 && form->cost->bytes[0] > 0;
}

void report_picture_roofline(const ReportKernel *r, Text *out)
{
    const Machine *m = r->c->target->machine;
    double peak = 2 * report_peak(r);
    ReportForm form[REPORT_FORMS];
    NestCost printed = {0};
    report_forms(r, &printed, form);
    if (!has_rates(r, &form[0]) || peak <= 0) {
        return;
    }
    Plot p = {log10(peak), -99, floor(log10(peak)) - 1, ceil(log10(peak)), out};
    p.x0 = 99;
    for (uint32_t v = 0; v + 1 < m->n_levels; v++) {
        plot_include(&p.x0, &p.x1, peak / m->level[v].bytes_per_second / 4);
    }
    for (uint32_t f = 0; f < SHOWN; f++) {
        if (has_rates(r, &form[f])) {
            plot_include(&p.y0, &p.y1, flops_of(form[f].cost) / form[f].cost->seconds);
        }
        for (uint32_t v = 0; has_rates(r, &form[f]) && v + 1 < m->n_levels; v++) {
            if (form[f].cost->bytes[v] > 0) {
                plot_include(&p.x0, &p.x1, flops_of(form[f].cost) / form[f].cost->bytes[v]);
            }
        }
    }
    p.x1 = p.x1 > p.x0 ? p.x1 : p.x0 + 1;
    text_printf(
        out,
        "<h3>Roofline, by the model</h3>\n<div class=\"graph\"><svg class=\"roofline\" "
        "viewBox=\"0 0 %d %d\" role=\"img\" aria-labelledby=\"k%u-roofline\"><title "
        "id=\"k%u-roofline\">Rates of the nests over their flops for each byte, below what "
        "the machine has at most; the table below has the numbers</title>\n",
        WIDTH, HEIGHT, r->kernel, r->kernel);
    put_axes(&p);
    for (uint32_t v = 0; v + 1 < m->n_levels; v++) {
        put_roof(&p, &m->level[v], peak);
    }
    text_printf(out,
                "<path class=\"roof\" d=\"M%.1f %.1f H%d\"/><text class=\"quiet\" x=\"%d\" "
                "y=\"%.1f\">full register tiles: ",
                plot_x(&p, peak / m->level[m->n_levels - 2].bytes_per_second), plot_y(&p, peak),
                RIGHT, RIGHT + 16, plot_y(&p, peak) + 4);
    put_rate(out, peak, "F");
    text_put(out, "</text>\n");
    for (uint32_t f = SHOWN; f-- > 0;) {
        if (has_rates(r, &form[f])) {
            put_nest_rate(&p, m, f, form[f].cost);
        }
    }
    put_key(&p, m);
    text_put(out, "</svg></div>\n");
}

/* ---- what moves ---- */

#define BOX   150
#define ROOM  64 /* of a form */
#define THICK 34 /* of the widest band */

static void put_band(Text *out, const char *class, double x0, double x1, double y, double thick)
{
    thick = thick < 1.5 ? 1.5 : thick;
    text_printf(out,
                "<rect class=\"fill %s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                "height=\"%.1f\"/>\n",
                class, x0, y - thick / 2, x1 - x0, thick);
}

static void put_moves(const ReportKernel *r, uint32_t form, const NestCost *cost, double most,
                      double top, Text *out)
{
    const Machine *m = r->c->target->machine;
    double gap = (double)(WIDTH - 130 - BOX * (int)m->n_levels) / (m->n_levels - 1),
           y = top + ROOM - THICK / 2.0;
    text_printf(out, "<text x=\"0\" y=\"%.1f\">%s</text>\n", y + 5, form_words[form]);
    for (uint32_t v = 0; v + 1 < m->n_levels; v++) {
        double x0 = 130 + v * (BOX + gap) + BOX, x1 = x0 + gap;
        put_band(out, form_class[form], x0, x1, y, THICK * cost->bytes[v] / most);
        if (v == 0) {
            put_band(out, "result", x0, x1, y, THICK * r->nest->compulsory / most);
        }
        text_printf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", (x0 + x1) / 2,
                    y - THICK / 2.0 - 5);
        report_bytes(out, report_whole(cost->bytes[v]));
        text_printf(out, "<tspan class=\"quiet\" dx=\"8\">%.3g ms</tspan></text>\n",
                    1e3 * cost->bytes[v] / m->level[v].bytes_per_second);
    }
}

void report_picture_moves(const ReportKernel *r, Text *out)
{
    const Machine *m = r->c->target->machine;
    ReportForm form[REPORT_FORMS];
    NestCost printed = {0};
    double most = 0;
    uint32_t n = 0;
    report_forms(r, &printed, form);
    for (uint32_t f = 0; f < SHOWN; f++) {
        for (uint32_t v = 0; form[f].cost != NULL && v + 1 < m->n_levels; v++) {
            most = form[f].cost->bytes[v] > most ? form[f].cost->bytes[v] : most;
        }
        n += form[f].cost != NULL;
    }
    if (most <= 0 || m->n_levels < 2 || r->nest->cost.seconds <= 0) {
        return;
    }
    text_printf(out,
                "<h3>What moves between levels, by the model</h3>\n<div class=\"graph\"><svg "
                "class=\"moves\" viewBox=\"0 0 %d %u\" role=\"img\" "
                "aria-labelledby=\"k%u-moves\"><title id=\"k%u-moves\">Bytes between levels of "
                "memory; the table below has the numbers</title>\n",
                WIDTH, 36 + n * ROOM, r->kernel, r->kernel);
    double gap = (double)(WIDTH - 130 - BOX * (int)m->n_levels) / (m->n_levels - 1);
    for (uint32_t v = 0; v < m->n_levels; v++) {
        double x = 130 + v * (BOX + gap);
        text_printf(out,
                    "<rect class=\"band\" x=\"%.1f\" y=\"1\" width=\"%d\" height=\"%u\" "
                    "rx=\"6\"/><text x=\"%.1f\" y=\"20\" text-anchor=\"middle\">",
                    x, BOX, 34 + n * ROOM, x + BOX / 2.0);
        html_text(out, m->level[v].name);
        if (m->level[v].capacity > 0) {
            text_put(out, ", ");
            report_bytes(out, m->level[v].capacity);
        }
        text_put(out, "</text>\n");
    }
    double top = 26;
    for (uint32_t f = 0; f < SHOWN; f++) {
        if (form[f].cost != NULL) {
            put_moves(r, f, form[f].cost, most, top, out);
            top += ROOM;
        }
    }
    text_put(out,
             "</svg></div>\n<p class=\"quiet\">Bands are as wide as what moves; within those "
             "of the outermost level, in blue, what every nest moves: arguments and results "
             "once. Times are those of the bytes alone.</p>\n");
}
