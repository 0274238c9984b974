/* SPDX-License-Identifier: Apache-2.0 */
/* Parallel loops. Their iterations write disjoint places, so any thread may run any of them: a function runs a piece of the
 * range, with buffers of its own in the workspace, and what it needs from outside is handed to it. How many pieces there
 * are is found at the call: as many as it has threads and workspace for, each worth a thread. An iteration computes the
 * same in every piece, so bits do not depend on their number. A parallel loop inside of another is a plain one. */
#include <string.h>

#include "backend/c/interface/interface.h"
#include "backend/c/product.h"

static const char *worth_text(Emitter *e, const Threads *threads)
{
    Text t;
    text_init(&t, e->w.arena);
    for (uint32_t i = 0; i < threads->n; i++) {
        text_printf(&t, "%s%.3e", i > 0 ? " + " : "", threads->term[i].number);
        for (uint32_t f = 0; f < threads->term[i].n; f++) {
            WorthFactor x = threads->term[i].factor[f];
            if (x.most == 0) {
                text_printf(&t, " * (double)%s", e->w.dim[x.dim]);
            } else {
                text_printf(&t, " * (double)%s(%s, %lld)", help_fixed(e->w.help, "tdsl_min"),
                            e->w.dim[x.dim], (long long)x.most);
            }
        }
    }
    return t.n == 0 ? "0.0" : t.at;
}

bool any_split(const Kernel *k, Stmt *const *body, uint32_t n, bool with_buffers)
{
    StmtWalk w;
    for (const Stmt *s = stmt_first(&w, body, n); s != NULL; s = stmt_next(&w)) {
        if (s->kind == STMT_FOR && s->threads != NULL &&
            (!with_buffers || needs_workspace(k, (Stmt *const[]){(Stmt *)(uintptr_t)s}, 1))) {
            return true;
        }
    }
    return false;
}

/* ---- what a part needs from outside ---- */

/* The function of a part, and of what it needs: numbers, which stand together, and the others as members of a structure, as their values
 * outside, as variables in the function. */
typedef struct Part {
    const char *name; /* "1_gemm" */
    Text body, numbers, number_locals, members, values, locals;
} Part;

static void hand_over(const Emitter *e, Part *p, const Known *x, const char *name,
                      const char *type)
{
    if (x->kind == KNOWN_DIM || x->kind == KNOWN_VAR) {
        bool more = p->numbers.n > 0;
        text_printf(&p->numbers, more ? ", %s" : "%s", name);
        text_printf(&p->number_locals, more ? ", %s = %s->%s" : "%s = %s->%s", name,
                    e->own.common, name);
        return;
    }
    bool only = x->kind == KNOWN_BUF && !e->w.scalar[x->number] && !x->shares;
    text_printf(&p->members, "    %s%s;\n", type, name);
    text_printf(&p->values, ", %s", name);
    text_printf(&p->locals, "    %s%sconst %s = %s->%s;\n", type, only ? "TDSL_RESTRICT " : "",
                name, e->own.common, name);
}

/* Hands over all that the body of the part names and does not declare itself. */
static void hand_over_all(Emitter *e, Part *p, const Stmt *s)
{
    Stmt *const loop[1] = {(Stmt *)(uintptr_t)s};
    Captured used = captured_find(e, loop, 1, p->body.at);
    for (uint32_t i = 0; i < used.n; i++) {
        const Known *x = &e->known[used.at[i]];
        hand_over(e, p, x, e->w.names.list.at[used.at[i]], captured_type(e, x));
    }
}

/* ---- the function, and where it is run ---- */

static void part_begin(Emitter *e, Part *p)
{
    Text *const all[] = {&p->numbers, &p->number_locals, &p->members, &p->values, &p->locals};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        text_init(all[i], e->w.arena);
    }
    p->name = str_format(e->w.arena, "%u_%s", ++e->n_parts, e->symbol);
    e->part_streams = false;
}

static const char *steps_text(Emitter *e, const Stmt *s, int64_t step)
{
    const char *lo = range_lo(&e->w, s->range), *hi = range_hi(&e->w, s->range);
    if (s->part == FOR_FULL) { /* whole steps: as many as begin before the last begin */
        hi = str_format(e->w.arena, "%s - %lld", hi, (long long)(s->step - 1));
    }
    return str_format(e->w.arena, "%s(%s, %s, %lld)", help_fixed(e->w.help, "tdsl_steps"), lo,
                      hi, (long long)step);
}

/* A part of the range, which begins and ends where the loop may be cut, in iterations that are alike. */
static void cut_iterations_begin(Emitter *e, const Stmt *s)
{
    Arena *a = e->w.arena;
    const char *v = e->w.var[s->var], *common = e->own.common, *number = e->own.number;
    const char *first = help_fixed(e->w.help, "tdsl_first"), *from = e->own.from,
               *until = e->own.until, *step = e->own.step;
    const char *start = range_lo(&e->w, s->range), *hi = range_hi(&e->w, s->range);
    start = strcmp(start, "0") == 0 ? "" : str_format(a, "%s + ", start);
    long long cut = s->threads->cut;
    const char *by = cut == 1 ? "" : str_format(a, " * %lld", cut);
    line_printf(&e->w, "const int64_t %s = %s%s(&%s->tdsl_cut, %s)%s;", from, start, first,
                common, number, by);
    line_printf(&e->w, "const int64_t %s = %s(%s%s(&%s->tdsl_cut, %s + 1)%s, %s);", until,
                help_fixed(e->w.help, "tdsl_min"), start, first, common, number, by, hi);
    line_printf(&e->w, "const int64_t %s = %s(%s - %s, %lld, %lld);", step,
                help_fixed(e->w.help, "tdsl_even"), until, from, (long long)s->step, cut);
    line_printf(&e->w, "for (int64_t %s = %s; %s < %s; %s += %s) {", v, from, v, until, v,
                step);
    scope_begin(&e->w);
    counts_bind_cut(e, s);
}

/* A part of the sequence: from the iteration of the outer loop in which it begins; of the inner one `skip` are left out there. */
static void flat_iterations_begin(Emitter *e, const Stmt *s)
{
    const char *v = e->w.var[s->var], *common = e->own.common, *number = e->own.number;
    const char *first = help_fixed(e->w.help, "tdsl_first"), *next = e->own.next,
               *skip = e->own.skip, *count = e->own.count;
    const Stmt *inner = s->body[s->n_body - 1];
    line_printf(&e->w, "const int64_t %s = %s(&%s->tdsl_cut, %s + 1);", e->own.until, first,
                common, number);
    line_printf(&e->w, "int64_t %s = %s(&%s->tdsl_cut, %s), %s = %s;", next, first, common,
                number, skip, next);
    line_printf(&e->w, "for (int64_t %s = %s; %s < %s; %s += %lld) {", v,
                range_lo(&e->w, s->range), next, e->own.until, v, (long long)s->step);
    e->w.out->indent++;
    line_printf(&e->w, "const int64_t %s = %s;", count, steps_text(e, inner, inner->step));
    line_printf(&e->w, "if (%s >= %s) {", skip, count);
    line_printf(&e->w, "    %s -= %s;", skip, count);
    line_put(e->w.out, "    continue;");
    line_put(e->w.out, "}");
    e->flat = inner;
}

void flat_inner_begin(Emitter *e, const Stmt *s)
{
    const char *i = e->own.first, *lo = range_lo(&e->w, s->range);
    const char *start = strcmp(lo, "0") == 0 ? "" : str_format(e->w.arena, "%s + ", lo);
    const char *by = s->step == 1 ? "" : str_format(e->w.arena, " * %lld", (long long)s->step);
    line_printf(&e->w, "for (int64_t %s = %s; %s < %s && %s < %s; ++%s, ++%s, %s = 0) {", i,
                e->own.skip, i, e->own.count, e->own.next, e->own.until, i, e->own.next,
                e->own.skip);
    scope_begin(&e->w);
    line_printf(&e->w, "const int64_t %s = %s%s%s;", e->w.var[s->var], start, i, by);
    e->flat = NULL;
}

/* The iteration: the loop's own variable where it counts from 0 by 1. */
static void iterations_begin(Emitter *e, const Stmt *s)
{
    if (s->threads->cut > 0) {
        cut_iterations_begin(e, s);
        return;
    }
    if (s->threads->flat) {
        flat_iterations_begin(e, s);
        return;
    }
    const char *v = e->w.var[s->var], *i = v, *common = e->own.common, *number = e->own.number;
    const char *first = help_fixed(e->w.help, "tdsl_first"), *until = e->own.until;
    const char *start = range_lo(&e->w, s->range);
    bool zero = strcmp(start, "0") == 0, deals = s->threads->dealt;
    if (!zero || deals || s->step != 1) {
        i = e->own.first;
    }
    line_printf(&e->w, "const int64_t %s = %s(&%s->tdsl_cut, %s + 1);", until, first, common,
                number);
    line_printf(&e->w, "for (int64_t %s = %s(&%s->tdsl_cut, %s); %s < %s; ++%s) {", i, first,
                common, number, i, until, i);
    e->w.out->indent++;
    if (i == v) {
        return;
    }
    const char *turn = !deals ? i
                              : str_format(e->w.arena, "%s(%s->tdsl_cut.count, %s)",
                                           help_fixed(e->w.help, "tdsl_deal"), common, i);
    const char *steps =
        s->step == 1 ? turn : str_format(e->w.arena, "%s * %lld", turn, (long long)s->step);
    line_printf(&e->w, "const int64_t %s = %s%s%s;", v, zero ? "" : start, zero ? "" : " + ",
                steps);
}

/* Iterations outside of the window do nothing. */
static void window_skip(Emitter *e, const Stmt *s)
{
    CWriter *w = &e->w;
    const Window *by = s->window;
    const char *v = w->var[s->var];
    const char *before = str_format(w->arena, "%s + %lld <= %s", v, (long long)s->step,
                                    affine_text(w, by->lo, BIND_SUM));
    const char *behind = str_format(w->arena, "%s >= %s", v, affine_text(w, by->hi, BIND_SUM));
    scope_printf(w, "if (%s%s%s) {", by->has_lo ? before : "",
                 by->has_lo && by->has_hi ? " || " : "", by->has_hi ? behind : "");
    line_put(w->out, "continue;");
    scope_end(w);
}

static void body_emit(Emitter *e, Part *p, const Stmt *s)
{
    Text *outer = e->w.out;
    Counts counts = e->w.counts;
    Stmt *whole[1] = {arena_copy(e->w.arena, s, sizeof *s)};
    whole[0]->threads = NULL; /* in the function */
    lines_init(&p->body, e->w.arena, 1);
    e->w.out = &p->body;
    e->in_part = true;
    e->cut = s;
    e->w.counts = (Counts){0}; /* those around have no names in the function */
    counts_bind(e, whole, 1, true, 0);
    iterations_begin(e, s);
    if (s->window != NULL) {
        window_skip(e, s);
    }
    vec_push(e->w.arena, &e->w.loops, s);
    counts_bind(e, s->body, s->n_body, false, s->var);
    block_emit(e, s->body, s->n_body, (WorkspaceTop){e->own.ws, 0});
    e->w.loops.n--;
    scope_end(&e->w);
    e->w.counts = counts;
    e->in_part = false;
    e->w.out = outer;
}

static const char cut_type[] =
    "/* A loop that threads share: its iterations, the pieces that it is cut into, where their "
    "workspaces are. */\n"
    "typedef struct tdsl_cut {\n    int64_t count;\n    int32_t pieces;\n"
    "    unsigned char *memory;\n    size_t each;\n} tdsl_cut;\n";

/* The most positions that an iteration of one of the pieces has. */
static const char *most_text(Emitter *e, const Stmt *s, const char *count, const char *pieces)
{
    return str_format(e->w.arena, "%s(%s, %s, %lld, %lld)", help_fixed(e->w.help, "tdsl_most"),
                      count, pieces, (long long)s->step, (long long)s->threads->cut);
}

/* Function tdsl_part1_NAME, and the structure tdsl_captured1_NAME of what it reads from outside. */
static void function_emit(Emitter *e, const Part *p, const Stmt *s, bool buffers)
{
    Text *out = &e->parts;
    const char *common = e->own.common, *name = p->name;
    bool numbers = p->numbers.n > 0;
    if (helper_new(e->w.help, "tdsl_cut")) {
        helper_type_put(e->w.help, cut_type);
    }
    text_printf(out, "\nstruct tdsl_captured%s {\n    tdsl_cut tdsl_cut;\n", name);
    out->indent_width = 4;
    out->indent = 1;
    if (numbers) {
        line_put(out, str_format(e->w.arena, "int64_t %s;", p->numbers.at));
    }
    out->indent = 0;
    text_printf(out, "%s};\n\nstatic void tdsl_part%s(void *%s, int32_t %s)\n{\n",
                p->members.at, name, e->own.work, e->own.number);
    text_printf(out, "    const struct tdsl_captured%s *const %s = %s;\n", name, common,
                e->own.work);
    out->indent = 1;
    if (numbers) {
        line_put(out, str_format(e->w.arena, "const int64_t %s;", p->number_locals.at));
    }
    out->indent = 0;
    text_put(out, p->locals.at);
    int64_t cut = cut_bytes(e->w.k, s, e->w.k->bufs.n);
    bool rest = needs_workspace(e->w.k, s->body, s->n_body);
    if (buffers) {
        text_printf(out,
                    "    unsigned char *const %s = %s->tdsl_cut.memory + (size_t)%s * "
                    "%s->tdsl_cut.each;\n",
                    cut > 0 ? e->own.front : e->own.ws, common, e->own.number, common);
    }
    if (cut > 0 && (rest || mentions(p->body.at, e->own.most))) {
        const char *count = str_format(e->w.arena, "%s->tdsl_cut.count", common);
        const char *pieces = str_format(e->w.arena, "%s->tdsl_cut.pieces", common);
        text_printf(out, "    const size_t %s = (size_t)%s;\n", e->own.most,
                    most_text(e, s, count, pieces));
    }
    if (cut > 0 && rest) {
        text_printf(out, "    unsigned char *const %s = %s + %s * %lld;\n", e->own.ws,
                    e->own.front, e->own.most, (long long)cut);
    }
    text_put(out, p->body.at);
    text_put(out, e->part_streams ? "    TDSL_STREAMED;\n}\n" : "}\n");
}

/* How many there are to be dealt: iterations of the loop, or what lies between two places where they may be cut. */
static const char *iterations_text(Emitter *e, const Stmt *s)
{
    return steps_text(e, s, s->threads->cut > 0 ? s->threads->cut : s->step);
}

/* Prints the count of a sequence, and says what it is. */
static void count_emit(Emitter *e, const Stmt *s)
{
    const Stmt *inner = s->body[s->n_body - 1];
    const char *count = e->own.count;
    if (!s->threads->flat) {
        line_printf(&e->w, "const int64_t %s = %s;", count, iterations_text(e, s));
    } else if (!affine_uses(inner->range.start, s->var)) {
        line_printf(&e->w, "const int64_t %s = %s(%s, %s);", count,
                    help_fixed(e->w.help, "tdsl_product"), iterations_text(e, s),
                    steps_text(e, inner, inner->step));
    } else {
        line_printf(&e->w, "int64_t %s = 0;", count);
        loop_begin(&e->w, s->var, s->range, s->step, s->part);
        line_printf(&e->w, "%s += %s;", count, steps_text(e, inner, inner->step));
        scope_end(&e->w);
    }
}

/* The start without variables of loops around: nothing begins before position 0. */
static Affine start_inside(Arena *a, Affine start, VarRef own)
{
    int64_t coef = affine_coef(start, own);
    return start.n == 0 ? start
           : coef == 0  ? affine_const(0)
                        : affine_add(a, affine_const(0), coef, affine_var(a, own));
}

const char *shared_count_text(Emitter *e, const Stmt *s)
{
    Stmt first = *s;
    first.range.start = start_inside(e->w.arena, s->range.start, UINT32_MAX);
    return iterations_text(e, &first);
}

const char *shared_pieces_emit(Emitter *e, const Stmt *s)
{
    Stmt first = *s, inner;
    Stmt *last[1] = {&inner};
    if (s->threads->flat) {
        first.range.start = start_inside(e->w.arena, s->range.start, UINT32_MAX);
        inner = *s->body[s->n_body - 1];
        inner.range.start = start_inside(e->w.arena, inner.range.start, s->var);
        first.body = last;
        first.n_body = 1;
        count_emit(e, &first);
    }
    return str_format(e->w.arena, "%s(threads, %s, %s)", help_fixed(e->w.help, "tdsl_pieces"),
                      s->threads->flat ? e->own.count : shared_count_text(e, s),
                      worth_text(e, s->threads));
}

/* As many as there is memory for; `each` becomes that of each of them. */
static const char *fitting_text(Emitter *e, const Stmt *s, const char *pieces,
                                const char **each, WorkspaceTop ws)
{
    Arena *a = e->w.arena;
    const char *before = strcmp(ws.base, e->own.ws) == 0
                             ? NULL
                             : str_format(a, "(size_t)(%s - %s)", ws.base, e->own.ws);
    Text left;
    text_init(&left, a);
    text_put(&left, e->own.space);
    if (before != NULL) {
        text_printf(&left, " - %s", before);
    }
    if (ws.offset > 0) {
        text_printf(&left, " - %lld", (long long)ws.offset);
    }
    int64_t cut = cut_bytes(e->w.k, s, e->w.k->bufs.n);
    if (cut == 0) {
        return str_format(a, "%s(%s, %s, %s)", help_fixed(e->w.help, "tdsl_fitting"), pieces,
                          left.at, *each);
    }
    const char *n = names_take(&e->w.names, "pieces");
    line_printf(&e->w, "const int32_t %s = %s(%s, %s, %s, %lld, %s, %lld, %lld);", n,
                help_fixed(e->w.help, "tdsl_fitting_cut"), pieces, left.at, *each,
                (long long)cut, e->own.count, (long long)s->step, (long long)s->threads->cut);
    const char *most = most_text(e, s, e->own.count, n);
    *each = strcmp(*each, "0") == 0
                ? str_format(a, "(size_t)%s * %lld", most, (long long)cut)
                : str_format(a, "%s + (size_t)%s * %lld", *each, most, (long long)cut);
    return n;
}

void shared_loop_emit(Emitter *e, const Stmt *s, WorkspaceTop ws)
{
    Arena *a = e->w.arena;
    Stmt *const whole[1] = {(Stmt *)(uintptr_t)s};
    bool buffers = needs_workspace(e->w.k, whole, 1);
    Part p;
    part_begin(e, &p);
    body_emit(e, &p, s);
    hand_over_all(e, &p, s);
    function_emit(e, &p, s, buffers);
    const char *count = e->own.count, *each = "0";
    scope_printf(&e->w, "{");
    count_emit(e, s);
    const char *memory = !buffers ? "NULL"
                         : ws.offset == 0
                             ? ws.base
                             : str_format(a, "%s + %lld", ws.base, (long long)ws.offset);
    line_printf(&e->w, "const double %s = %s;", e->own.worth, worth_text(e, s->threads));
    const char *pieces = str_format(a, "%s(%s, %s, %s)", help_fixed(e->w.help, "tdsl_pieces"),
                                    e->own.crew, count, e->own.worth);
    if (buffers) {
        each = piece_bytes_emit(e, s);
        pieces = fitting_text(e, s, pieces, &each, ws);
    }
    line_printf(&e->w, "struct tdsl_captured%s %s = {{%s, %s, %s, %s}%s%s%s};", p.name,
                e->own.common, count, pieces, memory, each, p.numbers.n > 0 ? ", " : "",
                p.numbers.at, p.values.at);
    line_printf(&e->w, "%s(threads, tdsl_part%s, &%s, %s.tdsl_cut.pieces);",
                help_fixed(e->w.help, "tdsl_run"), p.name, e->own.common, e->own.common);
    scope_end(&e->w);
}
