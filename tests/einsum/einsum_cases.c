/* SPDX-License-Identifier: Apache-2.0 */
/* Every case of tests/data/einsum.json: what NumPy, opt_einsum and torch agree on must be
 * computed exactly, by the graph interpreter and by the compiled C; what they refuse must be
 * refused with a message. Where they disagree (status error-divergent, extension) what we do is
 * in divergent.txt beside this file: accepted with its sums, or refused with a code.
 *
 *     einsum_cases DATA.json DIVERGENT.txt [--print-divergent]
 *
 * Cases are compiled in batches, one C file each. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "driver/run/c_library.h"
#include "driver/compile.h"
#include "driver/input.h"
#include "driver/run/npy.h"
#include "driver/run/run.h"
#include "driver/targets.h"
#include "graph/eval.h"

#define BATCH           50
#define INTERPRET_LIMIT 20000000 /* iterations of one case */

typedef struct Case {
    json_t *json;
    const char *id, *eq, *status;
    Graph *graph;
    Tensor **args, *result;
} Case;

typedef struct Batch {
    Ctx ctx;
    Arena arena;
    Options options;
    VEC(Case) cases;
} Batch;

typedef struct Tally {
    int checked, failed, refused, only_compiled;
} Tally;

static const char *messages(Batch *b)
{
    Text out;
    text_init(&out, &b->arena);
    b->ctx.diags.no_warnings = true;
    diags_render(&b->ctx.diags, &out, false);
    return out.n == 0 ? "no message" : out.at;
}

static void batch_init(Batch *b)
{
    *b = (Batch){0};
    ctx_init(&b->ctx);
    b->ctx.diags.no_warnings = true;
    arena_init(&b->arena, &b->ctx.budget);
}

static void batch_release(Batch *b)
{
    arena_release(&b->arena);
    ctx_release(&b->ctx);
}

/* The case as a module of one kernel named after it; null with messages in the batch. */
static Module *case_module(Batch *b, json_t *json)
{
    json_t *shapes = json_object_get(json, "shapes");
    uint32_t n = (uint32_t)json_array_size(shapes);
    TensorType *types = ARENA_ARRAY(&b->arena, n, TensorType);
    for (uint32_t k = 0; k < n; k++) {
        json_t *shape = json_array_get(shapes, k);
        uint32_t rank = (uint32_t)json_array_size(shape);
        Dim *dims = ARENA_ARRAY(&b->arena, rank, Dim);
        for (uint32_t d = 0; d < rank; d++) {
            dims[d] = dim_fixed(json_integer_value(json_array_get(shape, d)));
        }
        types[k] = (TensorType){DTYPE_F64, rank, dims};
    }
    Options o = {0};
    vec_push(&b->arena, &o.given[OPT_EQUATION].at,
             json_string_value(json_object_get(json, "eq")));
    vec_push(&b->arena, &o.given[OPT_NAME].at, json_string_value(json_object_get(json, "id")));
    Input in = {.ctx = &b->ctx, .arena = &b->arena, .options = &o};
    return input_read(&in, types, n) ? input_build(&in, NULL) : NULL;
}

static void fill(Tensor *t, uint32_t k)
{
    for (int64_t n = 0; n < t->count; n++) {
        tensor_set(
            t, n,
            number_real(t->dtype, (double)((7 * (n % 11) + 13 * (int64_t)k + 3) % 11 - 5)));
    }
}

static void make_arguments(Batch *b, Case *c)
{
    c->args = ARENA_ARRAY(&b->arena, c->graph->params.n, Tensor *);
    for (uint32_t k = 0; k < c->graph->params.n; k++) {
        const Param *p = &c->graph->params.at[k];
        int64_t extent[RANK_LIMIT];
        for (uint32_t d = 0; d < p->rank; d++) {
            extent[d] = p->shape[d].n;
        }
        c->args[k] = tensor_new(&b->ctx, &b->arena, p->dtype, p->rank, extent);
        fill(c->args[k], k);
    }
}

/* "sum=S wsum=W", as tsdl-run --checksum prints it. */
static const char *sums(Batch *b, const Tensor *t)
{
    Text out;
    text_init(&out, &b->arena);
    run_print_checksum("", t, &out);
    return str_format(&b->arena, "%.*s", (int)(out.n - 2), out.at + 1);
}

static bool matches(Batch *b, const Case *c, const Tensor *t, const char *how)
{
    json_t *shape = json_object_get(c->json, "out_shape");
    bool ok = shape == NULL || json_array_size(shape) == t->rank;
    for (uint32_t d = 0; ok && shape != NULL && d < t->rank; d++) {
        ok = json_integer_value(json_array_get(shape, d)) == t->extent[d];
    }
    const char *got = sums(b, t);
    json_t *sum = json_object_get(c->json, "sum"), *wsum = json_object_get(c->json, "wsum");
    if (ok && sum != NULL && wsum != NULL) {
        ok = strcmp(got, str_format(&b->arena,
                                    "sum=%" JSON_INTEGER_FORMAT " wsum=%" JSON_INTEGER_FORMAT,
                                    json_integer_value(sum), json_integer_value(wsum))) == 0;
    }
    if (!ok) {
        printf("FAILED %s '%s' by %s: %s\n", c->id, c->eq, how, got);
    }
    return ok;
}

static bool run_batch(Batch *b, Tally *tally)
{
    Compilation c;
    Module m = {.arena = &b->arena, .source_name = "einsum.json"};
    for (uint32_t k = 0; k < b->cases.n; k++) {
        vec_push(&b->arena, &m.graphs, b->cases.at[k].graph);
    }
    compilation_init(&c, &b->ctx, &b->arena, target_find("c"));
    c.module = &m;
    c.stage = STAGE_CHECKED;
    c.emit.source_name = "einsum.json";
    c.emit.tool_version = "test";
    bool compiled = compilation_run(&c, STAGE_OUTPUT);
    compilation_release(&c);
    if (!compiled) {
        printf("FAILED to compile: %s\n", messages(b));
        return false;
    }
    Str text = {0};
    for (uint32_t k = 0; k < c.outputs.files.n; k++) {
        text =
            strcmp(c.outputs.files.at[k].suffix, ".c") == 0 ? c.outputs.files.at[k].text : text;
    }
    CLibrary library;
    bool ok = c_library_open(&library, &b->ctx, &b->arena, text, "gcc", "-O1");
    for (uint32_t k = 0; ok && k < b->cases.n; k++) {
        Case *one = &b->cases.at[k];
        Tensor *result = NULL;
        CTiming timing = {0};
        const char *symbol =
            c.target->symbol == NULL ? one->id : c.target->symbol(&b->arena, one->id);
        Head head = head_of_graph(&b->arena, one->graph);
        ok = c_library_call(&library, &head, symbol, NULL, one->args, &result, &timing);
        if (ok && !matches(b, one, result, "compiled C")) {
            tally->failed++;
        }
    }
    c_library_close(&library);
    if (!ok) {
        printf("FAILED to run: %s\n", messages(b));
    }
    b->cases.n = 0;
    return ok;
}

static bool add_case(Batch *b, json_t *json, Tally *tally)
{
    Case c = {.json = json,
              .id = json_string_value(json_object_get(json, "id")),
              .eq = json_string_value(json_object_get(json, "eq")),
              .status = json_string_value(json_object_get(json, "status"))};
    Module *m = case_module(b, json);
    if (m == NULL) {
        printf("FAILED %s '%s' is refused: %s\n", c.id, c.eq, messages(b));
        return false;
    }
    c.graph = m->graphs.at[0];
    if (strcmp(c.status, "perf-only") == 0) {
        tally->only_compiled++;
        return true; /* too large to run here: that it is accepted is all */
    }
    make_arguments(b, &c);
    if (!graph_eval(&b->ctx, &b->arena, c.graph, NULL, c.args, &c.result)) {
        printf("FAILED %s '%s': %s\n", c.id, c.eq, messages(b));
        return false;
    }
    tally->checked++;
    vec_push(&b->arena, &b->cases, c);
    return matches(b, &c, c.result, "the interpreter");
}

static bool run_good(json_t *cases, Tally *tally)
{
    Batch b;
    batch_init(&b);
    for (size_t k = 0; k < json_array_size(cases); k++) {
        json_t *json = json_array_get(cases, k);
        const char *status = json_string_value(json_object_get(json, "status"));
        if (strcmp(status, "ok") != 0 && strcmp(status, "perf-only") != 0) {
            continue;
        }
        if (!add_case(&b, json, tally)) {
            tally->failed++;
            batch_release(&b);
            batch_init(&b);
            continue;
        }
        if (b.cases.n == BATCH) {
            bool ok = run_batch(&b, tally);
            batch_release(&b);
            if (!ok) {
                return false;
            }
            batch_init(&b);
        }
    }
    bool ok = run_batch(&b, tally);
    batch_release(&b);
    return ok;
}

/* What becomes of a case nobody agrees on: "refused E0304" or "accepted sum=.. wsum=..". */
static const char *decide(Batch *b, json_t *json)
{
    Module *m = case_module(b, json);
    if (m == NULL) {
        return b->ctx.diags.list.n == 0
                   ? "refused without a message"
                   : str_format(&b->arena, "refused %s",
                                diag_code_text(b->ctx.diags.list.at[0]->code));
    }
    Case c = {.json = json, .graph = m->graphs.at[0]};
    make_arguments(b, &c);
    if (!graph_eval(&b->ctx, &b->arena, c.graph, NULL, c.args, &c.result)) {
        return "accepted, too large to run";
    }
    return str_format(&b->arena, "accepted %s", sums(b, c.result));
}

/* One line of divergent.txt: the id, the decision, the equation. */
static bool is_listed(FILE *list, const char *line)
{
    char at[512];
    rewind(list);
    while (fgets(at, sizeof at, list) != NULL) {
        at[strcspn(at, "\n")] = '\0';
        if (strcmp(at, line) == 0) {
            return true;
        }
    }
    return false;
}

static void run_others(json_t *cases, FILE *list, bool print, Tally *tally)
{
    for (size_t k = 0; k < json_array_size(cases); k++) {
        json_t *json = json_array_get(cases, k);
        const char *status = json_string_value(json_object_get(json, "status"));
        if (strcmp(status, "ok") == 0 || strcmp(status, "perf-only") == 0) {
            continue;
        }
        Batch b;
        batch_init(&b);
        const char *decision = decide(&b, json);
        const char *id = json_string_value(json_object_get(json, "id"));
        const char *eq = json_string_value(json_object_get(json, "eq"));
        const char *line = str_format(&b.arena, "%s %s '%s'", id, decision, eq);
        tally->refused += strncmp(decision, "refused E", 9) == 0;
        if (strcmp(status, "error") == 0) {
            if (strncmp(decision, "refused E", 9) != 0) {
                printf("FAILED %s (an error elsewhere)\n", line);
                tally->failed++;
            }
        } else if (print) {
            printf("%s\n", line);
        } else if (!is_listed(list, line)) {
            printf("FAILED %s: not in the list of decisions\n", line);
            tally->failed++;
        }
        batch_release(&b);
    }
}

int main(int argc, char **argv)
{
    json_error_t error;
    json_t *data = argc > 2 ? json_load_file(argv[1], 0, &error) : NULL;
    FILE *list = argc > 2 ? fopen(argv[2], "r") : NULL;
    if (data == NULL || list == NULL) {
        fprintf(stderr, "usage: einsum_cases DATA.json DIVERGENT.txt [--print-divergent]\n");
        return 2;
    }
    json_t *cases = json_object_get(data, "cases");
    Tally tally = {0};
    bool print = argc > 3;
    run_others(cases, list, print, &tally);
    bool ok = print || run_good(cases, &tally);
    if (!print) {
        printf("%d cases computed by interpreter and C, %d refused, %d accepted only, %d "
               "failures\n",
               tally.checked, tally.refused, tally.only_compiled, tally.failed);
    }
    (void)fclose(list);
    json_decref(data);
    return ok && tally.failed == 0 ? 0 : 1;
}
