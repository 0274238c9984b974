/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the C target as files: warnings at every level of optimisation, C++ headers, one file or two, names that mean
 * something in C, text that wants to be code, what entries refuse, and what verify refuses before. */
#include "support.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/ctext/names.h"
#include "tdsl/abi.h"
#include "support/command.h"
#include "support/places.h"
#include "support/quick.h"
#include "loop/loop_text.h"

static const char sample[] =
    "tdsl-dump loop 1\n"
    "kernel mixed {\n"
    "  signature \"kernel mixed */ int evil; /* ?\?/ \\\\ (\\n#define x 1\"\n  form tiled\n"
    "  dim m ~ 64\n  dim k ~ 64\n  dim n ~ 64\n"
    "  arg @A : f32[m,k] in\n  arg @B : f32[k,n] in\n  arg @alpha : f32[] scalar\n  arg @z : "
    "c64[] scalar\n"
    "  arg @b : bool[m] in\n  arg @C : f32[m,n] inout\n  arg @D : c64[m] result\n  arg @E : "
    "f64[] result\n"
    "  work [m,n,k]\n"
    "  alloc @H : f32[m,n] workspace\n"
    "  fill [i in 0..m, j in 0..n] @H[i,j] = 0.0\n"
    "  matmul [i in 0..m, j in 0..n, p in 0..k] @H[i,j] += mul(@A[i,p], @B[p,j]) as H\n"
    "  map [i in 0..m, j in 0..n] @C[i,j] = add(mul(@alpha[], @H[i,j]), scale(@alpha[], "
    "@C[i,j])) as C\n"
    "  map [i in 0..m] @D[i] = select(@b[i], mul(@z[], @z[]), @z[])\n"
    "  fill [] @E[] = 0.0\n"
    "  reduce [i in 0..m, j in 0..n] @E[] += cast.f64(exp(@C[i,j]))\n"
    "}\n"
    "kernel exp {\n  form tiled\n  dim for ~ 4\n  dim need ~ 4\n"
    "  arg @int : i32[for,need] in\n  arg @workspace : i64[need] in\n  arg @I : i32[] scalar\n "
    " arg @tdsl_min : i32[for] result\n"
    "  arg @M_PI : i64[for,need] result\n"
    "  for $size in 0..for step 4 {\n    alloc @bytes : i32[4] tile\n"
    "    fill [dims in $size:4<for] @bytes[dims-$size] = 1\n"
    "    reduce [dims in $size:4<for, status in 0..need] @bytes[dims-$size] += "
    "@int[dims,status]\n"
    "    map [dims in $size:4<for] @tdsl_min[dims] = add(@bytes[dims-$size], @I[])\n  }\n"
    "  copy [t1 in 0..for, main in 0..need] @M_PI[t1,main] = @workspace[main]\n"
    "}\n"
    "kernel fixed {\n  form tiled\n  arg @A : f64[20,30] in\n  arg @B : f64[30,50] in\n  arg "
    "@C : f64[20,50] result\n"
    "  fill [i in 0..20, j in 0..50] @C[i,j] = 0.0\n"
    "  matmul [i in 0..20, j in 0..50, p in 0..30] @C[i,j] += mul(@A[i,p], @B[p,j])\n}\n";

static KernelModule *legal_module(Ctx *ctx, const char *text)
{
    KernelModule *m = read_module(ctx, text);
    for (uint32_t i = 0; i < m->kernels.n; i++) {
        m->kernels.at[i] = c_legal(ctx, &ctx->arena, m->kernels.at[i]);
        assert_true(target_c.verify(&target_c, ctx, m->kernels.at[i]));
    }
    return m;
}

static void nothing_is_warned_of_at_any_level(void **state)
{
    (void)state;
    Ctx ctx;
    ctx_init(&ctx);
    Str c, h;
    KernelModule *m = legal_module(&ctx, sample);
    emit_module(&ctx, m, true, &c, &h);
    static const char *const compilers[] = {"gcc", "clang"};
    static const char *const levels[] = {"-O0", "-O3", "-O2 -std=gnu17", "-O2 -march=native",
                                         "-O3 -DTDSL_ISA=plain"};
    char library[600];
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = one_of(2) > 1 ? k : 0; i < sizeof levels / sizeof *levels;
             i += one_of(4)) {
            if (compile_text(compilers[k], levels[i], c, h, "levels", library,
                             sizeof library) != 0) {
                fail_msg("%s %s is not content", compilers[k], levels[i]);
            }
        }
    }
    Str one, none = {0};
    emit_module(&ctx, m, false, &one, &none);
    assert_int_equal(compile_text("gcc", "-O1", one, none, "one", library, sizeof library), 0);
    char command[1200];
    (void)snprintf(command, sizeof command,
                   "! c++ --version >/dev/null 2>&1 || c++ -std=c++17 -pedantic -Wall -Wextra "
                   "-Werror -fsyntax-only -x c++ "
                   "'%s'",
                   build_file("tests/c-levels/kernels.h"));
    assert_true(command_succeeds("compile as C++", command));
    ctx_release(&ctx);
}

/* Without libc's headers, which a machine of 64 bits need not have for one of 32. */
static void sizes_beyond_a_size_t_of_32_bits_are_refused_there(void **state)
{
    (void)state;
    Ctx ctx;
    ctx_init(&ctx);
    Str c, h;
    char library[600];
    const char *wide =
        "tdsl-dump loop 1\nkernel k {\n  form tiled\n  dim n ~ 8\n  arg @A : f64[n] in\n"
        "  arg @B : f64[n] result\n  alloc @W : f64[60000,60000] workspace\n"
        "  alloc @V : f64[n] workspace\n  alloc @U : f64[60000,60000] workspace\n"
        "  copy [i in 0..n] @V[i] = @A[i]\n  fill [i in 0..60000] @W[i,i] = 0.0\n"
        "  fill [i in 0..60000] @U[i,i] = 0.0\n  copy [i in 0..n] @B[i] = @V[i]\n}\n";
    emit_module(&ctx, legal_module(&ctx, wide), true, &c, &h);
    assert_int_equal(compile_text("gcc", "-O1", c, h, "wide", library, sizeof library), 0);
    assert_non_null(strstr(c.at,
                           "#if SIZE_MAX / 2 < 57600000000\n    (void)dims; (void)threads;\n"
                           "    return SIZE_MAX;\n#else\n"));
#if defined(__x86_64__)
    assert_int_equal(compile_text("gcc", "-m32 -ffreestanding -fsyntax-only", c, h, "wide",
                                  library, sizeof library),
                     0);
#endif
    ctx_release(&ctx);
}

static void the_same_kernels_give_the_same_bytes(void **state)
{
    (void)state;
    Str c[2], h[2];
    Ctx ctx[2];
    for (int k = 0; k < 2; k++) {
        ctx_init(&ctx[k]);
        emit_module(&ctx[k], legal_module(&ctx[k], sample), true, &c[k], &h[k]);
    }
    assert_true(str_eq(c[0], c[1]));
    assert_true(str_eq(h[0], h[1]));
    /* and so does the dump of the legal form */
    Text dump;
    text_init(&dump, &ctx[0].arena);
    kernel_module_dump(legal_module(&ctx[0], sample), &dump);
    Str again, header;
    emit_module(&ctx[0], read_module(&ctx[0], dump.at), true, &again, &header);
    assert_true(str_eq(c[0], again));
    ctx_release(&ctx[0]);
    ctx_release(&ctx[1]);
}

static void text_of_the_user_stays_in_comments_and_strings(void **state)
{
    (void)state;
    Ctx ctx;
    ctx_init(&ctx);
    Str c, h;
    emit_module(&ctx, legal_module(&ctx, sample), true, &c, &h);
    assert_null(strstr(h.at, "*/ int evil"));
    assert_null(strstr(h.at, "?\?/"));
    assert_null(strstr(h.at, "\n#define x"));
    assert_null(strstr(c.at, "?\?/"));
    assert_null(strstr(c.at, "\n#define x"));
    assert_non_null(strstr(h.at, "<2a><2f> int evil"));
    /* names that mean something are changed, others are not */
    assert_non_null(strstr(h.at, "tdsl_status exp_("));
    assert_non_null(strstr(h.at, "int64_t for_,"));
    assert_non_null(strstr(h.at, "int64_t need,"));
    assert_non_null(strstr(h.at, "TDSL_RESTRICT int_,"));
    assert_non_null(strstr(h.at, "const float *TDSL_RESTRICT A,"));
    ctx_release(&ctx);
}

static void names_are_unique_and_never_reserved(void **state)
{
    (void)state;
    Ctx ctx;
    ctx_init(&ctx);
    Names n;
    names_init(&n, &ctx.arena);
    assert_string_equal(names_take(&n, "x"), "x");
    assert_string_equal(names_take(&n, "x"), "x_2");
    assert_string_equal(names_take(&n, "x_2"), "x_2_2");
    assert_string_equal(names_take(&n, "int"), "int_");
    assert_string_equal(names_take(&n, "int_"), "int__2");
    assert_string_equal(names_take(&n, "class"), "class_");
    assert_string_equal(names_take(&n, "exp"), "exp"); /* only a kernel must not be called so */
    assert_string_equal(c_symbol(&ctx.arena, "exp"), "exp_");
    assert_string_equal(c_symbol(&ctx.arena, "exp_"), "exp__");
    assert_string_equal(c_symbol(&ctx.arena, "gemm_info"), "gemm_info_");
    assert_string_equal(c_symbol(&ctx.arena, "main"), "main_");
    assert_string_equal(c_symbol(&ctx.arena, "gemm"), "gemm");
    assert_string_equal(c_symbol(&ctx.arena, "environ"), "environ_");
    assert_string_equal(c_symbol(&ctx.arena, "errno"), "errno_");
    assert_string_equal(c_symbol(&ctx.arena, "requires"), "requires_");
    assert_string_equal(c_symbol(&ctx.arena, "gemm_threads"), "gemm_threads_");
    assert_string_equal(c_symbol(&ctx.arena, "_"), "k__");
    assert_string_equal(c_symbol(&ctx.arena, "_x"), "k__x");
    assert_string_equal(c_symbol(&ctx.arena, "tdsl"), "k_tdsl");
    assert_string_equal(c_symbol(&ctx.arena, "tdsl_x"), "k_tdsl_x");
    assert_string_equal(c_symbol_why(&ctx.arena, "environ"),
                        "'environ' is a variable of the C library");
    assert_string_equal(c_symbol_why(&ctx.arena, "exp_"),
                        "'exp' is a function of the C library");
    assert_null(c_symbol_why(&ctx.arena, "gemm"));
    assert_true(c_name_reserved("_X") && c_name_reserved("__x") && c_name_reserved("tdsl_x") &&
                c_name_reserved("INT8_MAX"));
    assert_false(c_name_reserved("X") || c_name_reserved("in") || c_name_reserved("i"));
    ctx_release(&ctx);
}

typedef tdsl_status (*MixedEntry)(int64_t, int64_t, int64_t, const float *, const float *,
                                  float, float _Complex, const uint8_t *, float *,
                                  float _Complex *, double *, void *, size_t);

static void entries_refuse_what_they_cannot_compute(void **state)
{
    (void)state;
    Ctx ctx;
    ctx_init(&ctx);
    Str c, h;
    emit_module(&ctx, legal_module(&ctx, sample), true, &c, &h);
    char library[600];
    assert_int_equal(compile_text("gcc", "-O1", c, h, "refuse", library, sizeof library), 0);
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(handle);
    const tdsl_kernel_info *info = dlsym(handle, "mixed_info");
    assert_non_null(info);
    const tdsl_kernel_info *const *list = dlsym(handle, "kernels_kernels");
    assert_non_null(list);
    assert_string_equal(list[0]->digest, info->digest); /* a copy, bound to this file */
    assert_true(list[0]->call == info->call && list[0]->call_threads == info->call_threads);
    assert_string_equal(list[1]->name, "exp");
    assert_null(list[3]);
    assert_int_equal(info->struct_size, sizeof *info);
    assert_int_equal(info->abi_version, TDSL_ABI_VERSION);
    assert_int_equal(info->args[4].dtype, TDSL_BOOL);
    assert_int_equal(info->args[3].dtype, TDSL_C64);
    assert_int_equal(info->args[5].role, TDSL_INOUT);
    assert_int_equal(info->args[6].dtype, TDSL_C64);
    assert_int_equal(info->args[7].dtype, TDSL_F64);
    MixedEntry mixed;
    *(void **)&mixed = dlsym(handle, "mixed");
    static float A[6], B[6], C[4];
    static float _Complex D[2];
    static uint8_t b[2];
    double E = 0;
    int64_t dims[3] = {2, 3, 2};
    size_t bytes = info->workspace_bytes(dims);
    assert_true(bytes >= 64 && bytes != SIZE_MAX);
    assert_int_equal(info->multiply_adds(dims), 12);
    unsigned char *ws = malloc(bytes + 63);
    for (size_t from = 0; from < 64; from++) { /* any address will do */
        assert_int_equal(mixed(2, 3, 2, A, B, 1, 1, b, C, D, &E, ws + from, bytes), TDSL_OK);
    }
    assert_int_equal(mixed(-1, 3, 2, A, B, 1, 1, b, C, D, &E, ws, bytes), TDSL_E_SHAPE);
    assert_int_equal(mixed(2, 3, INT64_MIN, A, B, 1, 1, b, C, D, &E, ws, bytes), TDSL_E_SHAPE);
    assert_int_equal(
        mixed((int64_t)1 << 40, (int64_t)1 << 40, 2, A, B, 1, 1, b, C, D, &E, ws, bytes),
        TDSL_E_OVERFLOW);
    assert_int_equal(mixed(0, INT64_MAX, INT64_MAX, A, B, 1, 1, b, C, D, &E, ws, bytes),
                     TDSL_E_OVERFLOW);
    assert_int_equal(mixed(2, 3, 2, NULL, B, 1, 1, b, C, D, &E, ws, bytes), TDSL_E_ARGUMENT);
    assert_int_equal(mixed(2, 3, 2, A, B, 1, 1, b, C, D, NULL, ws, bytes), TDSL_E_ARGUMENT);
    assert_int_equal(mixed(2, 3, 2, A, B, 1, 1, b, C, D, &E, ws, bytes - 1), TDSL_E_WORKSPACE);
    assert_int_equal(mixed(2, 3, 2, A, B, 1, 1, b, C, D, &E, NULL, bytes), TDSL_E_WORKSPACE);
    const int64_t huge[3] = {(int64_t)1 << 40, (int64_t)1 << 40, 2}, negative[3] = {2, -1, 2};
    assert_true(info->workspace_bytes(huge) == SIZE_MAX);
    assert_true(info->workspace_bytes(negative) == SIZE_MAX);
    free(ws);
    assert_int_equal(dlclose(handle), 0);
    ctx_release(&ctx);
}

/* A legal kernel with one register tile; #: the statements. */
#define LEGAL(alloc, body)                                                                     \
    "tdsl-dump loop 1\nkernel k {\n  form legal \"c\"\n  dim n ~ 8\n  arg @A : f32[n,64] in\n" \
    "  arg @B : f32[64,n] in\n  arg @C : f32[n,64] result\n"                                   \
    "  fill [i in 0..n, j in 0..64] @C[i,j] = 0.0\n"                                           \
    "  for $r in 0..n step 1 {\n    alloc @c : f32[" alloc "] acc\n" body "  }\n}\n"

/* A loop over a buffer in panels of 16, inside of which `n` elements at `at` make a register tile. */
#define PANEL(range, step, at, n)                                                              \
    "tdsl-dump loop 1\nkernel k {\n  form legal \"c\"\n  arg @C : f32[16] result\n"            \
    "  fill [i in 0..16] @C[i] = 0.0\n  alloc @b : f32[3,80] tile panels 16\n"                 \
    "  fill [i in 0..3, j in 0..80] @b[i,j] = 1.0\n  for $p in " range " step " #step          \
    " full {\n"                                                                                \
    "    alloc @c : f32[" #n "] acc\n    copy [v in 0:" #n " vector] @c[v] = @b[2," at "]\n"   \
    "    reduce [v in 0:" #n " vector] @C[v] += @c[v]\n  }\n}\n"

static void verify_refuses_what_cannot_be_printed(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message; /* null: fine */
    } rows[] = {
        {LEGAL("64", "    fill [v in 0:64 vector] @c[v] = 0.0\n    copy [v in 0:64 vector] "
                     "@C[$r,v] = @c[v]\n"),
         NULL},
        {LEGAL("64", "    fill [v in 0:64] @c[v] = 0.0\n"), "without unrolled"},
        {LEGAL("64", "    fill [v in 0:32 vector] @c[v] = 0.0\n"), "whole row"},
        {LEGAL("64", "    fill [v in 0:64 vector] @c[v] = 0.0\n    copy [v in 0:64 vector] "
                     "@C[$r,v] = @B[v,$r]\n"),
         "side by side"},
        {LEGAL("64", "    fill [v in 0:64 vector] @c[v] = 0.0\n    map [v in 0:64 vector] "
                     "@C[$r,v] = exp(@c[v])\n"),
         "more than arithmetic"},
        {LEGAL("64", "    fill [v in 0:64 vector] @c[v] = 0.0\n    reduce [v in 0:64 vector] "
                     "@C[$r,0] += @c[v]\n"),
         "folded"},
        {LEGAL("64,64", "    fill [u in 0:64 unroll, v in 0:64 vector] @c[u,v] = 0.0\n"),
         "does not fit"},
        {LEGAL("4,4", "    for $q in 0:4 step 1 {\n      fill [v in 0:4 vector] @c[$q,v] = "
                      "0.0\n    }\n"),
         "by a loop"},
        /* the vector is not the first index */
        {LEGAL("4,16",
               "    fill [u in 0:4 unroll, v in 0:16 vector] @c[u,v] = 0.0\n    copy [u in "
               "0:1 unroll, v in 0:16 vector] @C[$r+u,v] = @c[u,v]\n"),
         NULL},
        {LEGAL("4,16", "    fill [u in 0:4 unroll, v in 0:8 vector] @c[u,v] = 0.0\n"),
         "whole row"},
        {LEGAL("4,16",
               "    fill [u in 0:4 unroll, v in 0:16 vector] @c[u,v] = 0.0\n    copy [u in "
               "0:1 unroll, v in 0:8 vector] @C[$r+u,v] = @B[v,u]\n"),
         "side by side"},
        {LEGAL("4,16",
               "    fill [u in 0:4 unroll, v in 0:16 vector] @c[u,v] = 0.0\n    reduce [u in "
               "0:1 unroll, v in 0:16 vector] @C[$r+u,0] += @c[u,v]\n"),
         "folded"},
        {LEGAL("4,16", "    fill [u in 0:4 unroll, v in 0:16] @c[u,v] = 0.0\n"), "too much"},
        /* the vector is all of the last axis, once, with one index of length 1 beside it */
        {LEGAL("16,4", "    fill [v in 0:16 vector, u in 0:4 unroll] @c[v,u] = 0.0\n"),
         "whole row"},
        {LEGAL("16", "    fill [u in 0:1 unroll, v in 0:16 vector] @c[v+u] = 0.0\n"), NULL},
        {LEGAL(
             "16",
             "    fill [u in 0:1 unroll, w in 0:1 unroll, v in 0:16 vector] @c[v+u+w] = 0.0\n"),
         "whole row"},
        {LEGAL("16", "    fill [v in 1:16 vector] @c[v-1] = 0.0\n"), NULL},
        {LEGAL("31", "    fill [v in 0:16 vector] @c[2*v] = 0.0\n"), "whole row"},
        {LEGAL("4,16", "    fill [q in 0..4, v in 0:16 vector] @c[q,v] = 0.0\n"), "too much"},
        /* panels */
        {PANEL("0:64", 16, "$p+v", 16), NULL},
        {PANEL("0:64", 16, "$p+v", 8), NULL},
        {PANEL("0:64", 8, "$p+v", 16), "not in one panel"},
        {PANEL("0:64", 16, "$p+v+4", 8), "not in one panel"},
        {PANEL("8:40", 16, "$p+v", 16), "not in one panel"},
        {PANEL("8:40", 16, "$p+v-8", 16), NULL},
        {PANEL("0:60", 12, "$p+v", 8), "not in one panel"},
        {LEGAL("4,16", "    fill [u in 0:4 vector, v in 0:16 vector] @c[u,v] = 0.0\n"),
         "too much"},
        {LEGAL("4,16", "    fill [u in 0:4 unroll, v in 0..16 vector] @c[u,v] = 0.0\n"),
         "constant length"},
        {LEGAL("64", "    map [v in 0..64 lanes] @C[$r,v] = exp(@A[$r,v])\n"), NULL},
        {LEGAL("64", "    map [u in 0:1 lanes, v in 0..64] @C[$r+u,v] = exp(@A[$r,v])\n"),
         "innermost"},
        {LEGAL("64", "    map [u in 0:1 lanes, v in 0..64 lanes] @C[$r+u,v] = exp(@A[$r,v])\n"),
         "innermost"},
        {LEGAL("64",
               "    map [u in 0:1 unroll, v in 0..64 lanes] @C[$r+u,v] = exp(@A[$r,v])\n"),
         "innermost"},
        {LEGAL("64", "    reduce [v in 0..64 lanes] @C[$r,0] += exp(@A[$r,v])\n"), "innermost"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Ctx ctx;
        ctx_init(&ctx);
        const Kernel *k = read_module(&ctx, rows[i].text)->kernels.at[0];
        bool fine = target_c.verify(&target_c, &ctx, k);
        if (fine != (rows[i].message == NULL)) {
            fail_msg("%s was %s", rows[i].text, fine ? "accepted" : "refused");
        }
        if (!fine && strstr(messages(&ctx), rows[i].message) == NULL) {
            fail_msg("'%s' is not in %s", rows[i].message, messages(&ctx));
        }
        ctx_release(&ctx);
    }
}

/* Statements of the first kernel and of the second; what is said, null: nothing. */
static void more_statements_than_a_file_takes_are_a_limit(void **state)
{
    (void)state;
    static const struct {
        int n[2];
        bool fits;
    } rows[] = {{{100001, 1}, false}, {{1, 100000}, false}, {{70000, 30000}, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Ctx ctx;
        ctx_init(&ctx);
        Text t;
        text_init(&t, &ctx.arena);
        text_put(&t, "tdsl-dump loop 1\n");
        for (int k = 0; k < 2; k++) {
            text_printf(&t, "kernel k%d {\n  form legal \"c\"\n  arg @s : f64[] result\n", k);
            text_put(&t, "  arg @n : f64[] result\n  for $i in 0..2 step 1 {\n");
            for (int n = 1; n < rows[i].n[k]; n++) {
                text_put(&t, "    fill [] @s[] = 1.0\n");
            }
            text_put(&t, "  }\n  fill [] @n[] = 1.0\n}\n");
        }
        OutputSet set = {.arena = &ctx.arena};
        EmitOptions options = {.source_name = "test.tdsl", .tool_version = "0"};
        KernelModule *m = read_module(&ctx, t.at);
        assert_int_equal(target_c.emit(&target_c, &ctx, m, &options, &set), rows[i].fits);
        assert_true(rows[i].fits || strstr(messages(&ctx), "more than 100000 tile statements"));
        ctx_release(&ctx);
    }
}

TESTS(TEST(nothing_is_warned_of_at_any_level),
      TEST(sizes_beyond_a_size_t_of_32_bits_are_refused_there),
      TEST(the_same_kernels_give_the_same_bytes),
      TEST(text_of_the_user_stays_in_comments_and_strings),
      TEST(names_are_unique_and_never_reserved), TEST(entries_refuse_what_they_cannot_compute),
      TEST(verify_refuses_what_cannot_be_printed),
      TEST(more_statements_than_a_file_takes_are_a_limit))
