/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzz targets of whole programs share: text of a program or of any dump, through every pass, to C. */
#ifndef FUZZ_PIPELINE_H
#define FUZZ_PIPELINE_H

#include <setjmp.h>

#include "driver/compile.h"
#include "driver/input.h"
#include "driver/targets.h"

/* Memory one input may take; past it the input ends as it would in the tools, with a stated limit. */
#define FUZZ_MEMORY ((size_t)512 << 20)

static jmp_buf fuzz_out_of_memory;

static void fuzz_trap(void *user, size_t bytes)
{
    (void)user;
    (void)bytes;
    longjmp(fuzz_out_of_memory, 1);
}

/* Compiles `text`; a text that is refused has a message, one that is accepted becomes C. */
static void fuzz_compile(Str bytes, bool equation)
{
    static Ctx c; /* survive the longjmp */
    static Arena arena;
    static Compilation job;
    job = (Compilation){0};
    ctx_init(&c);
    c.budget.limit = FUZZ_MEMORY;
    c.budget.trap = fuzz_trap;
    arena_init(&arena, &c.budget);
    if (setjmp(fuzz_out_of_memory) == 0) {
        Options options = {0};
        Input in = {.ctx = &c, .arena = &arena, .options = &options};
        Str text = {str_dup(&arena, bytes), bytes.n};
        bool ok = false;
        if (equation) {
            TensorType two[2] = {{DTYPE_F32, 2, (const Dim[]){dim_fixed(2), dim_fixed(3)}},
                                 {DTYPE_F32, 2, (const Dim[]){dim_fixed(3), dim_fixed(3)}}};
            vec_push(&arena, &options.given[OPT_EQUATION].at, text.at);
            ok = input_read(&in, two, 2);
        } else {
            ok = input_text(&in, "fuzz", text);
        }
        compilation_init(&job, &c, &arena, target_find("c"));
        job.emit.source_name = "fuzz";
        job.emit.tool_version = "fuzz";
        ok = ok && compilation_start(&job, &in, NULL) && compilation_run(&job, STAGE_OUTPUT);
        CHECK(ok == (c.diags.n_errors == 0));
        Text out;
        text_init(&out, &arena);
        diags_render(&c.diags, &out, false);
    }
    compilation_release(&job);
    arena_release(&arena);
    ctx_release(&c);
}

#endif
