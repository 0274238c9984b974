/* SPDX-License-Identifier: Apache-2.0 */
/* See tune.h. Of each kernel the model's nest is run first, then other trees of loops, then, from the best so far, other
 * levels of its contractions, until there are none or time is up. Each one is compiled as tdsl-run does it, gives the
 * results of the first, and takes turns with the best so far: what slows the machine down slows down both. */
#include "driver/tune/tune.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "driver/run/c_library.h"
#include "driver/progress.h"
#include "driver/report/report.h"
#include "driver/trial.h"
#include "nest/text.h"
#include "nest/variants.h"
#include "nest/verify.h"

/* Seconds of a race, and turns in it at least and at most. */
#define RACE       0.4
#define TURNS      4
#define MOST_TURNS 40
/* Seconds after the end that are left to finish one. */
#define GRACE 1.0
/* Seconds of one turn: short kernels are called several times, up to so many. */
#define TURN       2e-4
#define MOST_CALLS 10000
/* What is this much slower needs no further turn; what is to replace the best is this much faster, twice. */
#define SLOWER 1.2
#define FASTER 0.98

typedef struct Runner {
    const Nest *nest;
    const char *what;
    Arena arena;
    CLibrary library;
    CCall call;
    int64_t calls;  /* of a turn */
    double least;   /* seconds of one call */
    uint32_t entry; /* in the record, when it has been measured */
    bool open;
} Runner;

/* What was tried, as it was measured. */
typedef struct Record {
    const char *what;
    uint32_t from; /* the entry that it is a change of; of the first itself */
    double
        of_first; /* its time as a share of the first one's, by way of those it took turns with */
    bool best;    /* for a while */
} Record;

typedef struct Tuner {
    Compilation *c;
    CCompiler with;
    Arena arena; /* of this kernel, but for nests: one of them stays */
    uint32_t kernel;
    const Graph *graph;
    Head head;
    Trial trial;
    Tensor **args;
    double end;
    Progress *progress;
    int32_t threads;
    VEC(Record) record; /* in the order in which they were tried */
    Map seen;           /* nests by their text */
    const Runner *from; /* the nest that those now tried are changes of */
    Runner *first;      /* the model's choice: the others' results are its */
    Runner *best;
    uint32_t tried, refused;
    double log_sum, low, high; /* of predicted over measured */
} Tuner;

static bool time_is_up(const Tuner *u)
{
    if (progress_due(u->progress)) {
        fprintf(stderr, "\r%s: %u nests tried, %.0f of %.0f s\033[K", u->head.name->text,
                u->tried, progress_elapsed(u->progress), u->end - u->progress->start);
        (void)fflush(stderr);
    }
    return progress_interrupted() || tool_clock() >= u->end;
}

bool tune_start(Compilation *c)
{
    if (c->module == NULL) {
        c->module = input_build(c->in, c->only_kernel);
    }
    for (uint32_t k = 0; c->module != NULL && k < c->module->graphs.n; k++) {
        Graph *g = c->module->graphs.at[k];
        if (c->stage < STAGE_NEST && g->program == NULL) {
            g->program = graph_digest(c->arena, g);
        }
    }
    return c->module != NULL;
}

/* ---- one nest as a program ---- */

/* The C of this kernel with this nest. *refused: the target has no such levels, which is said to nobody. */
static bool print_c(Tuner *u, Runner *r, Str *text, bool *refused)
{
    Compilation *c = u->c;
    Diags *diags = &c->ctx->diags, before = *diags;
    Compilation one;
    compilation_alone(&one, c, &r->arena, u->kernel, r->nest);
    diags->no_warnings = true;
    bool ok = nest_verify(c->ctx, r->nest, "--tune") && compilation_run(&one, STAGE_OUTPUT);
    *refused = !ok;
    for (uint32_t k = before.list.n; k < diags->list.n; k++) {
        Severity s = diags->list.at[k]->severity;
        *refused &= s == SEVERITY_UNSUPPORTED || s == SEVERITY_LIMIT;
    }
    diags->no_warnings = before.no_warnings;
    if (ok || (*refused && u->first != NULL)) {
        *diags = before;
    }
    if (ok) {
        *text = c_library_text(&one.outputs);
    }
    return ok;
}

static void runner_close(Runner *r)
{
    if (r->open) {
        c_call_close(&r->call);
        c_library_close(&r->library);
        arena_release(&r->arena);
        r->open = false;
    }
}

static double real_of(Number v)
{
    return dtype_is_exact(v.dtype) ? (double)v.i : unsigned_nan(v.re);
}

/* Results that differ from the first one's are a fault of ours. */
static void check_results(const Tuner *u, const Runner *r)
{
    for (uint32_t k = 0; u->first != NULL && !u->trial.unknown && k < u->head.n_results; k++) {
        const Tensor *want = u->first->call.results[k], *got = r->call.results[k];
        int64_t at = trial_difference(&u->trial, k, want, got);
        if (at >= 0) {
            fprintf(
                stderr,
                "tdslc: kernel '%s' with the nest '%s': element %lld of '%s' is %g, not %g\n",
                u->head.name->text, r->what, (long long)at, u->head.results[k].name->text,
                real_of(tensor_get(got, at)), real_of(tensor_get(want, at)));
            check_failed(__FILE__, __LINE__, "a nest that was tried computes something else");
        }
    }
}

static bool has_inout(const Head *h)
{
    for (uint32_t k = 0; k < h->n_results; k++) {
        if (h->results[k].param >= 0) {
            return true;
        }
    }
    return false;
}

/* Compiled, called once, and its results compared. */
static bool runner_open(Tuner *u, Runner *r, bool *refused)
{
    Ctx *ctx = u->c->ctx;
    Str text = {0};
    double seconds = 0;
    arena_init(&r->arena, &ctx->budget);
    r->open = true;
    if (!print_c(u, r, &text, refused)) {
        return false;
    }
    r->call = (CCall){.head = &u->head,
                      .dims = u->trial.dims,
                      .args = u->args,
                      .results = ARENA_ARRAY(&r->arena, u->head.n_results, Tensor *),
                      .threads = u->threads,
                      .clock = u->threads > 1 ? tool_clock : tool_thread_clock};
    const char *symbol = target_symbol(&r->arena, u->c->target, u->head.name->text);
    if (!c_library_open_threads(&r->library, ctx, &r->arena, text, &u->with, u->threads,
                                true) ||
        !c_call_open(&r->call, &r->library, symbol) || !c_call_run(&r->call, 1, &seconds)) {
        return false;
    }
    check_results(u, r);
    double calls = TURN / (seconds > 1e-9 ? seconds : 1e-9);
    r->calls = has_inout(&u->head) || calls < 1 ? 1
               : calls > MOST_CALLS             ? MOST_CALLS
                                                : (int64_t)calls;
    return true;
}

/* ---- races ---- */

static bool take_turn(Runner *r)
{
    double seconds = 0;
    bool ok = c_call_run(&r->call, r->calls, &seconds);
    seconds /= (double)r->calls;
    r->least = r->least == 0 || seconds < r->least ? seconds : r->least;
    return ok;
}

/* Turn by turn; `other` null: alone. Leaves the least of this race in both. */
static bool race(const Tuner *u, Runner *r, Runner *other)
{
    double start = tool_clock(), now = start;
    r->least = 0;
    for (int k = 0; k < MOST_TURNS; k++, now = tool_clock()) {
        bool slow = other != NULL && r->least > SLOWER * other->least;
        bool enough = k >= TURNS && (now - start > RACE || slow || now > u->end);
        if (enough || (k > 0 && (progress_interrupted() || now > u->end + GRACE))) {
            break;
        }
        if (k == 0 && other != NULL) {
            other->least = 0;
        }
        if (!take_turn(r) || (other != NULL && !take_turn(other))) {
            return false;
        }
    }
    return true;
}

/* Seconds of a call by the model, on so many threads by Amdahl's law. */
static double predict(const Tuner *u, const Nest *nest)
{
    double machine = (double)u->c->target->machine->threads, gain = report_gain(nest);
    double serial = machine > 1 && gain > 1 ? (machine / gain - 1) / (machine - 1) : 1;
    return nest->cost.seconds * (serial + (1 - serial) / u->threads);
}

static void say(Tuner *u, Runner *r, bool best)
{
    double predicted = predict(u, r->nest),
           ratio = predicted / (r->least > 0 ? r->least : 1e-9);
    double of_first = 1; /* those that take turns with the best have its share too */
    if (u->best != NULL && u->best->least > 0) {
        of_first = r->least / u->best->least * u->record.at[u->best->entry].of_first;
    }
    r->entry = u->record.n;
    Record entry = {r->what, u->from != NULL ? u->from->entry : r->entry, of_first, best};
    vec_push(&u->arena, &u->record, entry);
    u->tried++;
    u->log_sum += log(ratio > 0 ? ratio : 1e-9);
    u->low = u->tried == 1 || ratio < u->low ? ratio : u->low;
    u->high = ratio > u->high ? ratio : u->high;
    progress_clear(u->progress);
    fprintf(stderr, "%s %3u: predicted %.4g ms, measured %.4g ms, ratio %.2f%s: %s\n",
            u->head.name->text, u->tried, predicted * 1e3, r->least * 1e3, ratio,
            best ? ", best" : "", r->what);
}

/* ---- which ---- */

static bool is_new(Tuner *u, const Nest *nest)
{
    Arena scratch;
    uint32_t was = 0;
    arena_init(&scratch, &u->c->ctx->budget);
    Text text = text_new(&scratch);
    nest_dump(nest, &text);
    uint64_t key = hash_bytes(0, text.at, text.n);
    arena_release(&scratch);
    if (map_get(&u->seen, key, &was)) {
        return false;
    }
    map_put(&u->seen, key, 1);
    return true;
}

/* The new one takes turns with the best so far, and once more where it seems to win. */
static bool beats(Tuner *u, Runner *r, bool *wins)
{
    *wins = false;
    if (!race(u, r, u->best)) {
        return false;
    }
    if (r->least < FASTER * u->best->least) {
        if (!race(u, r, u->best)) {
            return false;
        }
        *wins = r->least < FASTER * u->best->least;
    }
    return true;
}

/* False after a diagnostic. *wins: it is the best now. */
static bool try_nest(Tuner *u, const NestVariant *v, bool *wins)
{
    bool refused = false;
    Runner *r = ARENA_NEW(&u->arena, Runner);
    *wins = false;
    *r = (Runner){.nest = v->nest, .what = v->what};
    Diags *diags = &u->c->ctx->diags, before = *diags;
    bool ok = runner_open(u, r, &refused);
    if (!ok && progress_interrupted() &&
        u->first != NULL) { /* the C compiler was stopped too */
        *diags = before;
        runner_close(r);
        return true;
    }
    if (!ok && refused && u->first != NULL) {
        u->refused++;
        runner_close(r);
        return true;
    }
    if (ok && u->first == NULL) {
        ok = race(u, r, NULL);
        *wins = true;
    } else if (ok) {
        ok = beats(u, r, wins);
    }
    if (ok) {
        say(u, r, *wins);
    }
    if (ok && *wins) {
        if (u->best != u->first) {
            runner_close(u->best);
        }
        u->first = u->first == NULL ? r : u->first;
        u->best = r;
    } else {
        runner_close(r);
    }
    return ok;
}

/* Ascending in what the model says, as they came where it says the same. */
static void sort_variants(NestVariants *v)
{
    for (uint32_t k = 1; k < v->list.n; k++) {
        NestVariant at = v->list.at[k];
        uint32_t i = k;
        for (; i > 0 && at.nest->cost.seconds < v->list.at[i - 1].nest->cost.seconds; i--) {
            v->list.at[i] = v->list.at[i - 1];
        }
        v->list.at[i] = at;
    }
}

/* Tries them in turn, until one wins if `leave` says so. */
static bool try_all(Tuner *u, NestVariants *v, bool leave, bool *won)
{
    *won = false;
    sort_variants(v);
    for (uint32_t k = 0; k < v->list.n && !time_is_up(u); k++) {
        bool wins = false;
        if (!is_new(u, v->list.at[k].nest)) {
            continue;
        }
        if (!try_nest(u, &v->list.at[k], &wins)) {
            return false;
        }
        *won |= wins;
        if (wins && leave) {
            break;
        }
    }
    return true;
}

static bool search(Tuner *u, const Nest *chosen)
{
    Ctx *ctx = u->c->ctx;
    const Machine *machine = u->c->target->machine;
    NestVariant own = {chosen, "the model's choice"};
    NestVariants trees = {0};
    bool won = false;
    if (!is_new(u, chosen) || !try_nest(u, &own, &won)) {
        return false;
    }
    u->from = u->first;
    nest_other_trees(ctx, u->c->arena, machine, chosen, &trees);
    bool ok = try_all(u, &trees, false, &won);
    for (won = true; ok && won && !time_is_up(u);) {
        NestVariants levels = {0};
        u->from = u->best;
        nest_other_levels(ctx, u->c->arena, machine, u->best->nest, &levels);
        ok = try_all(u, &levels, true, &won);
    }
    return ok;
}

/* ---- what was tried ---- */

/* A nest, and below it those that were made from it: " 0.95  |  +- 7 T: sum 128, best". */
static void print_tree(const Tuner *u, uint32_t at, const char *margin)
{
    const Record *r = &u->record.at[at];
    uint32_t left = 0;
    fprintf(stderr, "%5.2f  %s%u %s%s\n", r->of_first, margin, at + 1, r->what,
            r->best ? ", best" : "");
    for (uint32_t k = 0; k < u->record.n; k++) {
        left += k != at && u->record.at[k].from == at ? 1 : 0;
    }
    Arena scratch;
    arena_init(&scratch, &u->c->ctx->budget);
    size_t n = strlen(margin);
    const char *above = n < 3 ? margin
                        : strncmp(margin + n - 3, "+- ", 3) == 0
                            ? str_format(&scratch, "%.*s|  ", (int)(n - 3), margin)
                            : str_format(&scratch, "%.*s   ", (int)(n - 3), margin);
    for (uint32_t k = 0; left > 0 && k < u->record.n; k++) {
        if (k != at && u->record.at[k].from == at) {
            left--;
            print_tree(u, k, str_format(&scratch, "%s%s", above, left > 0 ? "+- " : "`- "));
        }
    }
    arena_release(&scratch);
}

/* ---- a kernel ---- */

/* Once more beside the model's choice, which stands unless it loses again. */
static bool finish(Tuner *u)
{
    const char *name = u->head.name->text;
    progress_clear(u->progress);
    if (!progress_interrupted() && u->best != u->first && !race(u, u->best, u->first)) {
        return false;
    }
    if (u->best != u->first && u->best->least < u->first->least) {
        fprintf(stderr, "%s: the best takes %.2f of the model's choice: %s\n", name,
                u->best->least / u->first->least, u->best->what);
    } else {
        fprintf(stderr, "%s: the model's choice stands\n", name);
        if (u->best != u->first) {
            runner_close(u->best);
        }
        u->best = u->first;
    }
    fprintf(stderr,
            "%s: %u nests tried, %u not for this target; predicted / measured %.2f to %.2f, "
            "geometric mean %.2f\n",
            name, u->tried, u->refused, u->low, u->high, exp(u->log_sum / u->tried));
    if (u->tried > 1) {
        fprintf(
            stderr,
            "%s: which was made from which, with the time as a share of the model's choice:\n",
            name);
        print_tree(u, 0, "");
    }
    return true;
}

static bool make_arguments(Tuner *u)
{
    const Graph *g = u->graph;
    int64_t *dims = ARENA_ARRAY(&u->arena, g->dims.list.n, int64_t);
    for (uint32_t d = 0; d < g->dims.list.n; d++) {
        dims[d] = g->dims.list.at[d].typical;
    }
    dims = dims_complete(&u->arena, &g->dims, dims);
    trial_choose(&u->arena, g, dims, true, &u->trial);
    u->args = ARENA_ARRAY(&u->arena, g->params.n, Tensor *);
    return trial_arguments(u->c->ctx, &u->arena, g, &u->trial, u->args);
}

static bool tune_kernel(ToolRun *t, Compilation *c, uint32_t kernel, double end,
                        int32_t threads, Progress *progress)
{
    Tuner u = {.c = c,
               .threads = threads,
               .kernel = kernel,
               .graph = c->module->graphs.at[kernel],
               .end = end,
               .progress = progress};
    arena_init(&u.arena, &c->ctx->budget);
    map_init(&u.seen, &u.arena);
    u.with = c_compiler(&u.arena, &t->options);
    u.head = head_of_graph(&u.arena, u.graph);
    bool ok = make_arguments(&u) && search(&u, c->nests[kernel]) && finish(&u);
    if (ok) {
        c->nests[kernel] = u.best->nest;
    }
    if (u.best != u.first && u.best != NULL) {
        runner_close(u.best);
    }
    if (u.first != NULL) {
        runner_close(u.first);
    }
    arena_release(&u.arena);
    return ok;
}

bool tune(ToolRun *t, Compilation *c, double seconds, int32_t threads)
{
    double now = tool_clock(), end = now + seconds;
    uint32_t n = c->module->graphs.n, done = 0;
    bool ok = true;
    Progress progress;
    progress_begin(&progress);
    for (; ok && done < n && !progress_interrupted(); done++, now = tool_clock()) {
        double share = end > now ? (end - now) / (n - done) : 0;
        ok = tune_kernel(t, c, done, now + share, threads, &progress);
    }
    progress_end(&progress, ok); /* not ok: nothing was measured */
    if (progress_interrupted() && ok) {
        fprintf(stderr, "tdslc: stopped: the best nests so far are written");
        if (done < n) {
            fprintf(stderr, ", the model's choice for %u kernel%s", n - done,
                    n - done == 1 ? "" : "s");
        }
        fputs("\n", stderr);
    }
    return ok;
}
