/* SPDX-License-Identifier: Apache-2.0 */
/* Faults planted on purpose: each row is a good kernel with one mistake of the kind that a
 * scheduler, a builder or a back end can make, and says who must find it. A row that nobody
 * finds fails the test, and so does a row that is found by another than it says (someone became
 * weaker, or stronger: then the table is mended). */
#include "support.h"

typedef enum Finder {
    BY_VERIFY,  /* loop_verify refuses it */
    BY_RUNNING, /* loop_eval stops: an element not written, outside a buffer, ... */
    BY_NUMBERS  /* it runs, and the result is not the reference's */
} Finder;

typedef struct Fault {
    const char *what;
    const char *kernel;
    const char *from;
    uint32_t nth; /* occurrence, from 0 */
    const char *to;
    Finder finder;
} Fault;

static const Fault faults[] = {
    /* ranges and tails */
    {"the tail of a tile is not clipped", "matmul", "j in $s:8<n, l", 0, "j in $s:8, l",
     BY_VERIFY},
    {"the tail of the result is not clipped", "matmul", "copy [i in $r:4<m", 0,
     "copy [i in $r:4", BY_VERIFY},
    {"the tail of an operand is not clipped", "matmul", "l in $t:16<k", 0, "l in $t:16",
     BY_VERIFY},
    {"the tail is missing", "matmul", "$r in 0..m step 4", 0, "$r in 0..m step 4 full",
     BY_RUNNING},
    {"only the tail is there", "matmul", "$s in 0..n step 8", 0, "$s in 0..n step 8 rest",
     BY_RUNNING},
    {"the last block of a sum is missing", "matmul", "$t in 0..k step 16", 0,
     "$t in 0..k step 16 full", BY_NUMBERS},
    {"a range starts one late", "matmul", "$t in 0..k", 0, "$t in 1..k", BY_NUMBERS},
    {"a range starts one late where it is written", "matmul", "copy [i in $r:4<m", 0,
     "copy [i in $r+1:4<m", BY_VERIFY},
    {"a tile is one short", "matmul", "l in $t:16<k", 0, "l in $t:15<k", BY_NUMBERS},
    {"a tile is one long", "matmul", "l in $t:16<k", 0, "l in $t:17<k", BY_NUMBERS},
    {"a step is shorter than its tile", "matmul", "0..k step 16", 0, "0..k step 8", BY_NUMBERS},
    {"a step is longer than its tile", "matmul", "0..n step 8", 0, "0..n step 9", BY_RUNNING},
    {"the wrong limit", "matmul", "i in $r:4<m, j in $s:8<n, l", 0,
     "i in $r:4<k, j in $s:8<n, l", BY_VERIFY},
    {"the wrong extent is looped over", "matmul", "$r in 0..m", 0, "$r in 0..n", BY_RUNNING},
    {"the rest runs as a whole tile", "matmul_legal", "step 8 rest", 0, "step 8 full",
     BY_RUNNING},
    {"the full part runs over the tail too", "matmul_legal", "step 8 full", 0, "step 8",
     BY_VERIFY},
    {"the rest is left out", "matmul_legal", "step 4 rest parallel", 0, "step 4 full parallel",
     BY_RUNNING},
    {"a vector over a tail", "matmul_legal", "j in $s:8<n]", 0, "j in $s:8<n vector]",
     BY_VERIFY},
    {"a reduced index misses its first value", "matmul_legal", "l in 0..k", 0, "l in 1..k",
     BY_NUMBERS},
    /* indices */
    {"swapped indices of an operand", "matmul", "@A[i,l]", 0, "@A[l,i]", BY_VERIFY},
    {"swapped indices of a block", "matmul", "@acc[i-$r,j-$s] +=", 0,
     "@acc[j-$s,i-$r] +=", BY_VERIFY},
    {"swapped indices of a square block", "mp2", "@T[b,a]", 0, "@T[a,b]", BY_NUMBERS},
    {"the same index twice", "mp2", "@B[$j,b,p]", 0, "@B[$j,a,p]", BY_NUMBERS},
    {"the other loop's index", "mp2", "@B[$j,b,p]", 0, "@B[$i,b,p]", BY_NUMBERS},
    {"an index is off by one", "mlp", "@X[i,k]", 0, "@X[i,k+1]", BY_VERIFY},
    {"an index is off by one towards the front", "mlp", "@b[j]", 0, "@b[j-1]", BY_VERIFY},
    {"a wrong stride", "mlp", "@W[k,j]", 0, "@W[k,2*j]", BY_VERIFY},
    {"a wrong stride inside the buffer", "mlp", "j in 0..20] @Y", 0, "j in 0:10] @Y",
     BY_RUNNING},
    {"the position in the whole where the block's is meant", "mlp", "@acc[i-$m,j] +=", 0,
     "@acc[i,j] +=", BY_VERIFY},
    {"the position in the block where the whole's is meant", "mlp", "@Y[i,j]", 0, "@Y[i-$m,j]",
     BY_VERIFY},
    {"always the first row", "mlp", "@X[i,k]", 0, "@X[i-$m,k]", BY_NUMBERS},
    {"reversed indices", "mlp", "@b[j]", 0, "@b[-j+19]", BY_NUMBERS},
    /* folds and values */
    {"a fill is missing", "zeros", "    fill [i in $m:8<o, j in 0..20] @acc[i-$m,j] = 0.0\n", 0,
     "", BY_RUNNING},
    {"a fill that is wrong", "zeros", "@acc[i-$m,j] = 0.0", 0, "@acc[i-$m,j] = 1.0",
     BY_NUMBERS},
    {"a fold that goes on with nothing", "mlp", " begins", 0, "", BY_RUNNING},
    {"a fold over a loop that begins anew", "mp2", " as E", 1, " begins as E", BY_NUMBERS},
    {"a fill outside its loop", "mp2", "  for $j in 0..o step 1 {\n", 0,
     "  for $j in 0..o step 1 {\n      fill [] @E[] = 0.0\n", BY_NUMBERS},
    {"the wrong fold", "attention", "matmul [q in $m:4<s, e in 0..d, k in 0..t] @U[q-$m,e] +=",
     0, "reduce [q in $m:4<s, e in 0..d, k in 0..t] @U[q-$m,e] reduce.prod=", BY_NUMBERS},
    {"a maximum instead of a sum", "attention",
     "matmul [q in $m:4<s, e in 0..d, k in 0..t] @U[q-$m,e] +=", 0,
     "reduce [q in $m:4<s, e in 0..d, k in 0..t] @U[q-$m,e] reduce.max=", BY_NUMBERS},
    {"a product instead of a sum", "mp2", "reduce [a in 0..v, b in 0..v] @E[] +=", 0,
     "reduce [a in 0..v, b in 0..v] @E[] reduce.prod=", BY_NUMBERS},
    {"assigned instead of summed", "matmul",
     "matmul [i in $r:4<m, j in $s:8<n, l in $t:16<k] "
     "@acc[i-$r,j-$s] +=",
     0, "map [i in $r:4<m, j in $s:8<n, l in $t:16<k] @acc[i-$r,j-$s] =", BY_VERIFY},
    {"a dropped term", "mp2", "sub(mul(f32(2.0), @T[a,b]), @T[b,a])", 0,
     "mul(f32(2.0), @T[a,b])", BY_NUMBERS},
    {"a dropped factor", "mp2", "mul(f32(2.0), @T[a,b])", 0, "@T[a,b]", BY_NUMBERS},
    {"operands of a difference swapped", "attention", "sub(@S[q-$m,k], @M[q-$m])", 0,
     "sub(@M[q-$m], @S[q-$m,k])", BY_NUMBERS},
    {"operands of a quotient swapped", "attention", "div(@U[q-$m,e], @Z[q-$m])", 0,
     "div(@Z[q-$m], @U[q-$m,e])", BY_NUMBERS},
    {"the wrong function", "mlp", "relu(", 0, "abs(", BY_NUMBERS},
    {"the extent of another dim", "attention", "extent(d)", 0, "extent(t)", BY_NUMBERS},
    {"a narrow accumulator", "mp2", "cast.f64(", 0, "cast.f32(", BY_VERIFY},
    /* folds that begin */
    {"a guard begins one early", "guards", "$s in 1..3", 0, "$s in 0..3", BY_NUMBERS},
    {"a guard ends one early", "guards", "$s in 1..3", 0, "$s in 1..2", BY_NUMBERS},
    {"a guard ends one late", "guards", "$s in 1..3", 0, "$s in 1..4", BY_NUMBERS},
    {"one of two guards is missing", "guards", ", $t in 1..2", 0, "", BY_NUMBERS},
    {"a guard that never holds", "guards", "$s in 0..1", 0, "$s in 0..0", BY_VERIFY},
    {"a fold that goes on in a guard", "guards", " begins with $s, $t", 0, "", BY_NUMBERS},
    {"a fold that begins in each run of a guard", "guards", " begins with $s, $t", 0,
     " begins with $t", BY_NUMBERS},
    {"a fold that always begins", "begins", " begins with $u, $t", 0, " begins", BY_NUMBERS},
    {"a fold that begins with one of two loops", "begins", " begins with $u, $t", 0,
     " begins with $t", BY_NUMBERS},
    {"a fold that never begins", "begins", " begins with $u, $t", 0, "", BY_RUNNING},
    {"a fold that begins with a loop over its result", "begins", " begins with $u, $t", 0,
     " begins with $u, $t, $r", BY_RUNNING},
    {"a fold that begins with a parallel loop", "begins", "$t in 0..k step 16 {", 0,
     "$t in 0..k step 16 parallel {", BY_VERIFY},
    {"zeros for a sum of nothing are missing", "begins",
     "    fill [i in 0..m, j in 0..n] @C[i,j] = 0.0\n", 0, "", BY_RUNNING},
    /* blocks and statements */
    {"a block is one short", "matmul", "f32[4,8]", 0, "f32[4,7]", BY_VERIFY},
    {"a block allocated in another loop only", "matmul_legal",
     "      alloc @acc : f32[4,8] acc\n", 1, "", BY_VERIFY},
    {"a block that is allocated anew where it should be kept", "matmul",
     "      for $t in 0..k step 16 at 2:5 {\n", 0,
     "      for $t in 0..k step 16 at 2:5 {\n        alloc @acc : f32[4,8] acc\n", BY_VERIFY},
    {"a statement twice", "mlp", "    map [i in $m:8<o, j in 0..20] @Y", 0,
     "    matmul [i in $m:8<o, j in 0..20, k in 0..24] @acc[i-$m,j] += mul(@X[i,k], @W[k,j])\n"
     "    map [i in $m:8<o, j in 0..20] @Y",
     BY_NUMBERS},
    {"statements in the wrong order", "attention",
     "      matmul [q in $m:4<s, e in 0..d, k in 0..t] @U[q-$m,e] += mul(@S[q-$m,k], "
     "@V[$g,k,e]) begins\n",
     0, "", BY_RUNNING},
    {"a map that adds nothing up", "attention", " sums @Z[q-$m] begins", 0, "", BY_RUNNING},
    {"a map's sum that goes on with nothing", "attention", " sums @Z[q-$m] begins", 0,
     " sums @Z[q-$m]", BY_RUNNING},
    {"a map's sum in another place", "attention", " sums @Z[q-$m]", 0, " sums @Z[0]",
     BY_RUNNING},
    {"a map's sum that the map reads", "attention", " sums @Z[q-$m]", 0, " sums @M[q-$m]",
     BY_VERIFY},
    {"a map's sum in its result", "attention", " sums @Z[q-$m]", 0, " sums @S[q-$m,k]",
     BY_VERIFY},
    {"a map's sum in an operand", "attention", " sums @Z[q-$m]", 0, " sums @Q[$g,q,0]",
     BY_VERIFY},
    {"a map's sum that all iterations share", "attention", " sums @Z[q-$m]", 0,
     " sums @O[0,0,0]", BY_VERIFY},
    {"a map's sum past the end", "attention", " sums @Z[q-$m]", 0, " sums @Z[q-$m+1]",
     BY_VERIFY},
    {"a gather past the end of its argument", "gather", "index(j)", 0, "index(j+1)", BY_VERIFY},
    {"a gather with an index of another dimension", "gather", "index(j)", 0, "index(i)",
     BY_VERIFY},
    {"a gather from what its statement writes", "gather", "gather(@W[]", 0, "gather(@Y[]",
     BY_VERIFY},
    {"an operand is written", "mlp", "@Y[i,j] = relu", 0, "@X[i,j] = relu", BY_VERIFY},
    {"a parallel loop over a sum", "mp2", "$i in 0..o step 1", 0, "$i in 0..o step 1 parallel",
     BY_VERIFY},
    {"a block shared by parallel iterations", "mlp",
     "  for $m in 0..o step 8 parallel {\n    alloc @acc : f32[8,20] tile\n", 0,
     "  alloc @acc : f32[8,20] tile\n  for $m in 0..o step 8 parallel {\n", BY_VERIFY},
    {"overlapping tiles in parallel", "mlp", "0..o step 8 parallel", 0, "0..o step 7 parallel",
     BY_VERIFY},
    {"an update in place that reads its neighbour", "attention", "mul(@S[q-$m,k], rsqrt", 0,
     "mul(@S[0,k], rsqrt", BY_VERIFY},
    /* long sums */
    {"a long sum joins its result in its loop", "cascade", "+= @s[]\n", 0,
     "+= @s[]\n      reduce [] @C[$r] += @sum[]\n", BY_VERIFY},
    {"a long sum joins its result twice", "cascade", "@C[$r] += @sum[]\n", 0,
     "@C[$r] += @sum[]\n    reduce [] @C[$r] += @sum[]\n", BY_VERIFY},
    {"a long sum is added to after it was read", "cascade", "@C[$r] += @sum[]\n", 0,
     "@C[$r] += @sum[]\n    reduce [] @sum[] += @A[$r,0]\n", BY_VERIFY},
    {"a long sum is lost", "cascade", "    reduce [] @C[$r] += @sum[]\n", 0, "", BY_VERIFY},
    {"a long sum is assigned", "cascade", "reduce [] @sum[] += @s[]", 0,
     "copy [] @sum[] = @s[]", BY_VERIFY},
    {"a part of a long sum is lost", "cascade", "$t in 0..k", 0, "$t in 2..k", BY_NUMBERS},
    {"a part of a long sum is added twice", "cascade", "      reduce [] @sum[] += @s[]\n", 0,
     "      reduce [] @sum[] += @s[]\n      reduce [] @sum[] += @s[]\n", BY_NUMBERS},
};

static const struct {
    const char *name;
    Reference reference;
    int64_t dims[2][4];
} kernels[] = {
    {"matmul", reference_matmul, {{9, 37, 19}, {30, 20, 7}}},
    {"matmul_legal", reference_matmul, {{9, 17, 19}, {7, 20, 30}}},
    {"begins", reference_matmul, {{9, 37, 5}, {7, 0, 3}}},
    {"guards", reference_matmul, {{9, 37, 5}, {7, 1, 3}}},
    {"cascade", reference_cascade, {{3, 37}, {1, 64}}},
    {"mlp", reference_mlp, {{13}, {16}}},
    {"zeros", reference_mlp, {{13}, {16}}},
    {"mp2", reference_mp2, {{3, 5, 7}, {2, 6, 4}}},
    {"attention", reference_attention, {{2, 9, 6, 5}, {1, 7, 3, 6}}},
};

/* Runs the kernel for both sets of dims. False when a run stopped; *right tells whether all
 * numbers are the reference's. */
static bool runs(Ctx *ctx, const Kernel *k, const char *name, bool *right)
{
    *right = true;
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        if (strcmp(kernels[i].name, name) != 0) {
            continue;
        }
        for (int set = 0; set < 2; set++) {
            const int64_t *dims = kernels[i].dims[set];
            Run run;
            if (!run_kernel(ctx, k, dims, 5 + (uint64_t)set, &run)) {
                return false;
            }
            *right = *right &&
                     agrees(run.results[0], kernels[i].reference(&ctx->arena, dims, run.args));
        }
        return true;
    }
    fail_msg("there is no reference for '%s'", name);
    return false;
}

static const char *const finder_name[] = {"loop_verify", "loop_eval", "the numbers", "nobody"};

static int finder_of(Ctx *ctx, const Fault *f)
{
    const char *good = kernel_text(&ctx->arena, f->kernel);
    KernelModule *m = read_text(ctx, replaced(&ctx->arena, good, f->from, f->nth, f->to));
    bool right = false;
    if (m == NULL) {
        if (strstr(messages(ctx), "read: kernel") == NULL) {
            fail_msg("'%s' is no kernel at all:\n%s", f->what, messages(ctx));
        }
        return BY_VERIFY;
    }
    if (!runs(ctx, m->kernels.at[0], f->kernel, &right)) {
        return BY_RUNNING;
    }
    return right ? 3 : BY_NUMBERS;
}

static void every_planted_fault_is_found(void **state)
{
    int missed = 0;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        Ctx ctx;
        ctx_init(&ctx);
        int finder = finder_of(&ctx, &faults[i]);
        if (finder != (int)faults[i].finder) {
            print_error("%s: found by %s, expected %s\n%s", faults[i].what, finder_name[finder],
                        finder_name[faults[i].finder], messages(&ctx));
            missed++;
        }
        ctx_release(&ctx);
    }
    assert_int_equal(missed, 0);
}

static void the_kernels_without_a_fault_are_right(void **state)
{
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        Ctx ctx;
        ctx_init(&ctx);
        KernelModule *m = read_text(&ctx, kernel_text(&ctx.arena, kernels[i].name));
        bool right = false;
        assert_true(m != NULL && runs(&ctx, m->kernels.at[0], kernels[i].name, &right) &&
                    right);
        ctx_release(&ctx);
    }
}

TESTS(TEST(the_kernels_without_a_fault_are_right), TEST(every_planted_fault_is_found))
