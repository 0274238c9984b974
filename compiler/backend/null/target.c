/* SPDX-License-Identifier: Apache-2.0 */
/* The null target: no machine, and the kernel's own text as its output. It is the smallest back
 * end there is, always built and tested, so that the interface cannot come to fit one back end
 * only; and it is the template for the next one. Copy the folder, and write
 *
 *   - the machine: what is known of it as numbers, which is all that the middle of the compiler
 * looks at;
 *   - passes, of which there may be several: here one, legalise: a new kernel with only what the printer can say (the old one is not changed;
 * kernel_like copies its head, and statements that stay as they are may be shared). A construct
 * that cannot be done is reported by diag_unsupported at the statement's span, with a null
 * result;
 *   - verify: the rules of the machine that loop_verify does not know, on the legal kernel;
 *   - emit: the legal kernels as files in memory, straight from the statements, without
 * decisions.
 *
 * Nothing outside the folder changes: the build finds target.c and makes the driver's table
 * from what it finds. */
#include "loop/walk.h"
#include "loop/copy.h"
#include "loop/loop_text.h"
#include "target/target.h"

extern const Target target_null;

static const Machine machine = {
    .n_levels = 1,
    .level = {{.name = "memory", .bytes_per_second = 1e10}},
    .tile =
        {.types = 1u << DTYPE_F32, .line = 32, .bytes = 256, .rows = 8, .sum = 8, .columns = 8},
    .complex_numbers = true,
    .gathers = true,
    .functions = true,
    .doubles = true,
    .open_extents = true,
    .overwrites = true,
    .online = true,
    .pairs = true,
    .mirrors = true,
};

/* Levels are decisions for a back end to obey; nothing of them is left in a legal kernel. */
static void drop_levels(Stmt *const *body, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        body[i]->schedule = NULL;
        if (stmt_has_body(body[i])) {
            drop_levels(body[i]->body, body[i]->n_body);
        }
    }
}

static Kernel *legalise(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k)
{
    (void)ctx; /* nothing is refused */
    Kernel *legal = kernel_like(arena, k);
    BufRef *buf = ARENA_ARRAY(arena, k->bufs.n, BufRef);
    VarRef *var = ARENA_ARRAY(arena, k->vars.n, VarRef);
    for (uint32_t b = 0; b < k->bufs.n; b++) {
        buf[b] = b;
    }
    for (uint32_t v = 0; v < k->vars.n; v++) {
        var[v] = v;
    }
    StmtCopy copy = {.arena = arena, .from = k, .buf = buf, .var = var};
    legal->body = stmts_copy(&copy, k->body, k->n_body);
    drop_levels(legal->body, legal->n_body);
    legal->form = LOOP_LEGAL;
    legal->target = target->name;
    return legal;
}

static bool verify(const Target *target, Ctx *ctx, const Kernel *k)
{
    (void)target;
    (void)ctx;
    (void)k;
    return true; /* a machine without rules */
}

static bool emit(const Target *target, Ctx *ctx, const KernelModule *m,
                 const EmitOptions *options, OutputSet *out)
{
    (void)target;
    (void)ctx;
    (void)options; /* the text names neither a header nor a version */
    Text text;
    text_init(&text, out->arena);
    kernel_module_dump(m, &text);
    for (uint32_t k = 0; k < m->kernels.n; k++) {
        Text one;
        text_init(&one, out->arena);
        kernel_dump(m->kernels.at[k], &one);
        output_count(out, m->kernels.at[k]->name->text, text_str(&one));
    }
    OutputFile file = {.suffix = ".tir", .text = text_str(&text)};
    vec_push(out->arena, &out->files, file);
    return true;
}

static const TargetPass passes[] = {
    {"legalise", "statements that the printer can print", false, legalise, false},
    {0},
};

const Target target_null = {
    .name = "null",
    .summary = "no machine: the kernels' own text, for reading and as a template",
    .suffix = ".tir",
    .machine = &machine,
    .passes = passes,
    .verify = verify,
    .emit = emit,
};
