/* SPDX-License-Identifier: Apache-2.0 */
/* Faults planted on purpose, of the kind that fusers have: in the text of a good nest, in what
 * was derived from it, and in the kernel that it becomes. Each row says who must find it; a row
 * that nobody finds fails the test, and so does one that another finds (then the table is
 * mended). The nests are first shown to be good. */
#include "support/faults.h"

#include <stdlib.h>
#include <string.h>

#include "graph/eval.h"
#include "lower/lower.h"
#include "loop/loop_eval.h"
#include "loop/loop_text.h"
#include "loop/loop_verify.h"
#include "nest/verify.h"

typedef enum Finder {
    BY_NEST,    /* nest_verify refuses it */
    BY_KERNEL,  /* loop_verify refuses its kernel */
    BY_RUNNING, /* loop_eval stops: what is read was not written */
    BY_NUMBERS  /* it runs, and computes something else */
} Finder;

static const char *const finder_names[] = {"nest_verify", "loop_verify", "loop_eval",
                                           "the numbers"};

#define SQUARE                                                                                 \
    "  dim m ~ 8\n  dim n ~ 8\n  param in @A : i64[m,n]\n  %0 = input @A : i64[m,n]\n"         \
    "  %1 = einsum %0[a,b], %0[c,b] -> [a,c] : i64[m,m] sym(a c)\n"

#define TERMS(ROLE)                                                                            \
    "  dim m ~ 8\n  dim n ~ 8\n  param in @A : i64[m,n]\n  param in @B : i64[n,m]\n"           \
    "  param " ROLE " @W : i64[m,m]\n  %0 = input @A : i64[m,n]\n  %1 = input @B : i64[n,m]\n" \
    "  %2 = input @W : i64[m,m]\n  %3 = const -1 : i64[]\n"

/* A copy of W, and W itself. */
#define COPIED                                                                                 \
    TERMS("in")                                                                                \
    "  %4 = copy %2[a,b] -> [a,b] : i64[m,m]\n"                                                \
    "  %5 = einsum %0[a,b], %1[b,c] onto %4[a,c] -> [a,c] : i64[m,m]\n"                        \
    "  %6 = einsum %0[a,b], %1[b,c], %3[] onto %5[c,a] -> [c,a] : i64[m,m]\n"
#define CHANGED                                                                                \
    TERMS("inout")                                                                             \
    "  %4 = einsum %0[a,b], %1[b,c] onto %2[a,c] -> [a,c] : i64[m,m]\n"                        \
    "  %5 = einsum %0[a,b], %1[b,c], %3[] onto %4[c,a] -> [c,a] : i64[m,m]\n"
#define CHANGED_AND_READ                                                                       \
    CHANGED "  %6 = neg %2[a,b] -> [a,b] : i64[m,m]\n  update @W = %5\n  result @S = %6\n"

static const FaultGood goods[] = {
    {"terms", COPIED "  result @R = %6\n",
     "nest {\n  %4 into %5\n  %5 into %6\n  %6 result 0\n}\n"},
    {"terms of an argument", CHANGED "  update @W = %5\n",
     "nest {\n  %4 into %5\n  %5 result 0\n}\n"},
    {"terms of an argument that is read before", CHANGED_AND_READ,
     "nest {\n  %6 result 1\n  %4 into %5\n  %5 result 0\n}\n"},
    {"terms of an argument that is read later", CHANGED_AND_READ,
     "nest {\n  %4 into %5\n  %6 result 1\n  %5 workspace\n}\n"},
    {"terms in a block",
     COPIED "  %7 = einsum %6[a,b], %0[b,c] -> [a,c] : i64[m,n]\n  result @R = %7\n",
     "nest {\n  axis i [%4[a], %5[a], %6[c], %7[a]]\n  for i step 3 parallel {\n"
     "    %4 into %5\n    %5 into %6\n    %6 tile\n    %7 result 0\n  }\n}\n"},
    {"terms in loops of their own", COPIED "  result @R = %6\n",
     "nest {\n  axis i [%5[b]]\n  axis j [%6[a]]\n  %4 into %5\n  for i step 3 {\n"
     "    %5 into %6\n  }\n  for j step 2 {\n    %6 result 0\n  }\n}\n"},
    {"terms in one loop", COPIED "  result @R = %6\n",
     "nest {\n  axis i [%5[a], %6[c]]\n  %4 into %5\n  for i step 3 {\n    %5 into %6\n"
     "    %6 result 0\n  }\n}\n"},
    {"squares folded in one loop",
     TERMS("in") "  %4 = copy %2[a,b] -> [a,b] : i64[m,m]\n"
                 "  %5 = einsum %2[a,b], %2[b,c] onto %4[a,c] -> [a,c] : i64[m,m]\n"
                 "  %6 = einsum %2[a,b], %2[b,c], %3[] onto %5[c,a] -> [c,a] : i64[m,m]\n"
                 "  result @R = %6\n",
     "nest {\n  axis i [%5[b], %6[b]]\n  %4 into %5\n  for i step 3 {\n    %5 into %6\n"
     "    %6 result 0\n  }\n}\n"},
    {"terms folded in one loop", COPIED "  result @R = %6\n",
     "nest {\n  axis i [%5[b], %6[b]]\n  %4 into %5\n  for i step 3 {\n    %5 into %6\n"
     "    %6 result 0\n  }\n}\n"},
    {"a beginning that is read elsewhere", COPIED "  result @R = %6\n  result @S = %4\n",
     "nest {\n  axis i [%5[b]]\n  %4 result 1\n  for i step 3 {\n    %5 into %6\n  }\n"
     "  %6 result 0\n}\n"},
    /* %1 labels a, c of m and b of n; %2 keeps the first */
    {"chain", SQUARE "  %2 = einsum %1[a,b], %0[b,c] -> [a,c] : i64[m,n]\n  result @R = %2\n",
     "nest {\n  axis i [%1[a], %2[a]]\n  for i step 4 {\n    %1 tile\n    %2 result 0\n  }\n"
     "}\n"},
    /* %2 folds what the loop cuts */
    {"fold", SQUARE "  %2 = einsum %1[a,b], %0[a,c] -> [b,c] : i64[m,n]\n  result @R = %2\n",
     "nest {\n  axis i [%1[a], %2[a]]\n  for i step 4 {\n    %1 tile\n    %2 result 0\n  }\n"
     "}\n"},
    {"leaves", SQUARE "  %2 = einsum %1[a,b], %0[a,c] -> [b,c] : i64[m,n]\n  result @R = %2\n",
     "nest {\n  axis i [%1[a], %2[a]]\n  for i step 3 parallel {\n    %1 tile\n    %2 result "
     "0\n"
     "  }\n}\n"},
    {"product", SQUARE "  result @R = %1\n",
     "nest {\n  %1 result 0 rows [a] columns [c] sum [b] levels [rows 4 parallel, columns 4]\n"
     "}\n"},
    /* the fold lives in the outer loop */
    {"fold inside",
     SQUARE "  %2 = einsum %1[a,b], %0[b,c] -> [a,c] : i64[m,n]\n"
            "  %3 = einsum %2[a,b], %2[a,b] -> [a] : i64[m]\n  result @R = %3\n",
     "nest {\n  axis i [%1[a], %2[a], %3[a]]\n  axis j [%1[c], %2[b]]\n"
     "  for i step 2 {\n    for j step 4 {\n      %1 tile\n      %2 tile\n    }\n"
     "    %3 result 0\n  }\n}\n"},
    /* read in two orders: the first label agrees, the second does not */
    {"two orders",
     "  dim o ~ 4\n  dim v ~ 4\n  param in @B : i64[o,v]\n  %0 = input @B : i64[o,v]\n"
     "  %1 = einsum %0[a,b], %0[c,d] -> [a,b,c,d] : i64[o,v,o,v]\n"
     "  %2 = einsum %1[a,b,c,d], %1[a,d,c,b] -> [a,c] : i64[o,o]\n  result @R = %2\n",
     "nest {\n  axis i [%1[a], %2[a]]\n  axis j [%1[c], %2[c]]\n"
     "  for i step 2 {\n    for j step 1 {\n      %1 tile\n      %2 result 0\n    }\n  }\n}\n"},
    {"update",
     "  dim m ~ 8\n  param inout @C : i64[m,m]\n  %0 = input @C : i64[m,m]\n"
     "  %1 = reduce.sum %0[a,b] -> [b] : i64[m]\n"
     "  %2 = add %0[a,b], %1[b] -> [a,b] : i64[m,m]\n  update @C = %2\n",
     "nest {\n  axis i [%2[a]]\n  %1 workspace\n"
     "  for i step 2 {\n    %2 result 0\n  }\n}\n"},
    {"again",
     SQUARE "  %2 = einsum %1[a,b], %0[b,c] -> [a,c] : i64[m,n]\n"
            "  %3 = reduce.sum %0[a,b] -> [a] : i64[m]\n  result @R = %2\n  result @S = %3\n",
     "nest {\n  axis i [%2[c]]\n  for i step 4 {\n    %1 tile again\n    %2 result 0\n  }\n"
     "  %3 result 1\n}\n"},
    /* %2 in the place of %1 */
    {"in place",
     SQUARE "  %2 = neg %1[a,b] -> [a,b] : i64[m,m]\n"
            "  %3 = einsum %2[a,b], %0[b,c] -> [a,c] : i64[m,n]\n  result @R = %3\n",
     "nest {\n  axis i [%1[a], %2[a], %3[a]]\n  for i step 2 {\n    %1 tile\n"
     "    %2 tile in %1\n    %3 result 0\n  }\n}\n"},
    {"in two places",
     SQUARE "  %2 = neg %1[a,b] -> [a,b] : i64[m,m]\n"
            "  %3 = einsum %2[a,b], %1[b,c] -> [a,c] : i64[m,m]\n  result @R = %3\n",
     "nest {\n  %1 tile\n  %2 tile\n  %3 result 0\n}\n"},
    {"turned",
     SQUARE "  %2 = neg %1[a,b] -> [b,a] : i64[m,m]\n"
            "  %3 = einsum %2[a,b], %0[b,c] -> [a,c] : i64[m,n]\n  result @R = %3\n",
     "nest {\n  %1 tile\n  %2 tile\n  %3 result 0\n}\n"},
    /* %2 in the place of %1, over the iterations of a loop */
    {"in memory, in a loop",
     SQUARE "  %2 = neg %1[a,b] -> [a,b] : i64[m,m]\n"
            "  %3 = reduce.sum %1[a,b] -> [b] : i64[m]\n"
            "  %4 = einsum %2[a,b], %3[a] -> [b] : i64[m]\n  result @R = %4\n",
     "nest {\n  axis i [%2[a]]\n  %1 workspace\n  %3 workspace\n  for i step 2 {\n"
     "    %2 workspace in %1\n  }\n  %4 result 0\n}\n"},
    {"read in a loop",
     SQUARE "  %2 = neg %1[a,b] -> [a,b] : i64[m,m]\n"
            "  %3 = reduce.sum %1[a,b] -> [b] : i64[m]\n"
            "  %4 = einsum %2[a,b], %3[a] -> [b] : i64[m]\n  result @R = %4\n",
     "nest {\n  axis i [%2[a], %3[b]]\n  %1 workspace\n  for i step 2 {\n    %3 workspace\n"
     "    %2 workspace\n  }\n  %4 result 0\n}\n"},
    {"made in a loop",
     SQUARE "  %2 = neg %1[a,b] -> [a,b] : i64[m,m]\n"
            "  %3 = reduce.sum %1[a,b] -> [a] : i64[m]\n"
            "  %4 = einsum %2[a,b], %3[a] -> [b] : i64[m]\n  result @R = %4\n",
     "nest {\n  axis i [%1[a], %2[a]]\n  for i step 2 {\n    %1 workspace\n"
     "    %2 workspace\n  }\n  %3 workspace\n  %4 result 0\n}\n"},
    /* the terms of %2 stay with a and b exchanged */
    {"pairs",
     SQUARE "  %2 = einsum %1[a,b], %1[a,b] -> [] : i64[] terms(a b)\n  result @R = %2\n",
     "nest {\n  axis i [%1[a], %2[a]]\n  axis j [%1[c], %2[b]]\n  for i step 2 {\n"
     "    for j step 2 from i {\n      %1 tile\n      %2 result 0\n    }\n  }\n}\n"},
    {"scan",
     "  dim m ~ 8\n  param in @x : i64[m]\n  %0 = input @x : i64[m]\n  %1 = index : i64[m]\n"
     "  %2 = le %1[a], %1[b] -> [b,a] : bool[m,m]\n  %3 = const 0 : i64[]\n"
     "  %4 = select %2[a,b], %0[b], %3[] -> [a,b] : i64[m,m]\n"
     "  %5 = reduce.sum %4[a,b] -> [a] : i64[m]\n  result @R = %5\n",
     "nest {\n  %5 result 0 scan\n}\n"},
    {"pieces",
     "  param in @x : i64[2,3]\n  param in @y : i64[2,3]\n  %0 = input @x : i64[2,3]\n"
     "  %1 = input @y : i64[2,3]\n  %2 = join %0[a,b], %1[a+2,b] -> [a,b] : i64[4,3]\n"
     "  result @R = %2\n",
     "nest {\n  %2 result 0\n}\n"},
    {"two folds",
     SQUARE "  %2 = einsum %1[a,b], %1[a,b] -> [] : i64[] terms(a b)\n"
            "  %3 = reduce.max %1[a,b] -> [] : i64[]\n  result @R = %2\n  result @S = %3\n",
     "nest {\n  axis i [%1[a], %2[a], %3[a]]\n  axis j [%1[c], %2[b], %3[b]]\n"
     "  for i step 2 {\n    for j step 2 {\n      %1 tile\n      %2 result 0\n"
     "      %3 result 1\n    }\n  }\n}\n"},
    /* %1 is its own mirror image, %2 the negative of its own */
    {"both", SQUARE "  result @R = %1\n",
     "nest {\n  axis i [%1[a]]\n  axis j [%1[c]]\n  for i step 2 {\n    for j step 4 from i {\n"
     "      %1 result 0 both\n    }\n  }\n}\n"},
    {"both, parallel", SQUARE "  result @R = %1\n",
     "nest {\n  axis i [%1[a]]\n  axis j [%1[c]]\n  for i step 2 parallel {\n"
     "    for j step 4 from i {\n      %1 result 0 both\n    }\n  }\n}\n"},
    {"both, with a sign",
     "  dim m ~ 8\n  param in @A : i64[m,m]\n  %0 = input @A : i64[m,m]\n"
     "  %1 = sub %0[a,b], %0[b,a] -> [a,b] : i64[m,m] antisym(a b)\n  result @R = %1\n",
     "nest {\n  axis i [%1[a]]\n  axis j [%1[b]]\n  for i step 2 {\n"
     "    for j step 2 from i {\n      %1 result 0 both\n    }\n  }\n}\n"},
    {"both, and read",
     SQUARE "  %2 = reduce.sum %1[a,b] -> [a] : i64[m]\n  result @R = %1\n  result @S = %2\n",
     "nest {\n  axis i [%1[a], %2[a]]\n  axis j [%1[c]]\n  for i step 2 {\n    for j step 4 {\n"
     "      %1 result 0\n    }\n    %2 result 1\n  }\n}\n"},
    {"both, in place",
     SQUARE "  %2 = neg %1[a,b] -> [a,b] : i64[m,m] sym(a b)\n"
            "  %3 = einsum %2[a,b], %0[b,c] -> [a,c] : i64[m,n]\n  result @R = %3\n",
     "nest {\n  axis i [%2[a]]\n  axis j [%2[b]]\n  %1 workspace\n  for i step 2 {\n"
     "    for j step 2 {\n      %2 workspace in %1\n    }\n  }\n  %3 result 0\n}\n"},
    {"both, an update",
     "  dim m ~ 8\n  param inout @C : i64[m,m] sym(0 1)\n  %0 = input @C : i64[m,m]\n"
     "  %1 = neg %0[a,b] -> [a,b] : i64[m,m] sym(a b)\n  update @C = %1\n",
     "nest {\n  axis i [%1[a]]\n  axis j [%1[b]]\n  for i step 2 {\n    for j step 2 {\n"
     "      %1 result 0\n    }\n  }\n}\n"},
    {"its own mirror image in one of two pairs of indices",
     "  dim m ~ 8\n  param in @A : i64[m,m]\n  %0 = input @A : i64[m,m]\n"
     "  %1 = mul %0[a,b], %0[c,b] -> [a,b,c] : i64[m,m,m] sym(a c)\n  result @R = %1\n",
     "nest {\n  axis i [%1[a]]\n  axis j [%1[c]]\n  axis k [%1[b]]\n  for i step 2 {\n"
     "    for j step 2 from i {\n      for k step 2 {\n        %1 result 0 both\n      }\n    "
     "}\n"
     "  }\n}\n"},
    {"tile of a tile",
     SQUARE "  %2 = einsum %1[a,b], %0[b,c] -> [a,c] : i64[m,n]\n  result @R = %2\n",
     "nest {\n  axis i [%1[a], %2[a]]\n  for i step 4 {\n    %1 tile\n    for i step 2 {\n"
     "      %2 result 0\n    }\n  }\n}\n"},
};

/* The fault in the text of a nest, or of its kernel. */
typedef struct Fault {
    const char *what, *good, *from, *to;
    Finder finder;
    const char *why; /* in the message of nest_verify */
} Fault;

static const Fault nest_faults[] = {
    {"a reader before the loop of its writer's fold has ended", "chain", "[%1[a], %2[a]]",
     "[%1[b], %2[c]]", BY_NEST, "before its loops have completed it"},
    {"an axis along which the reader reads elsewhere", "chain", "[%1[a], %2[a]]",
     "[%1[c], %2[a]]", BY_NEST, "at other indices"},
    {"one extent for writer and reader that have two", "chain", "[%1[a], %2[a]]",
     "[%1[a], %2[c]]", BY_NEST, "another extent"},
    {"a writer without the axis, once for all positions", "chain", "[%1[a], %2[a]]", "[%2[a]]",
     BY_NEST, "lacks the axis"},
    {"a reader before its writer", "chain", "    %1 tile\n    %2 result 0\n",
     "    %2 result 0\n    %1 tile\n", BY_NEST, "before it is computed"},
    {"a block in memory", "chain", "%1 tile", "%1 workspace", BY_NEST, "shares a loop with it"},
    {"a term in parts", "terms in loops of their own", "step 3 {", "step 3 parallel {", BY_NEST,
     "at the same time"},
    {"a sum whose iterations run at the same time", "product", "levels [rows 4 parallel",
     "levels [sum 4 parallel, rows 4", BY_NEST, "not parallel"},
    {"two parallel loops of one product", "product", "columns 4]", "columns 4 parallel]",
     BY_NEST, "one loop is parallel"},
    {"parallel inside a fold's loop", "fold inside", "step 4 {", "step 4 parallel {", BY_NEST,
     "at the same time"},
    {"a fold read in its loop", "fold inside", "    }\n    %3 result 0\n  }\n",
     "    %3 result 0\n    }\n  }\n", BY_NEST, "lacks the axis"},
    {"a fold read in its loop, again and again", "fold inside", "    }\n    %3 result 0\n  }\n",
     "    %3 result 0 again\n    }\n  }\n", BY_NEST, "before its loops have completed it"},
    {"a value in two orders, shared where they disagree", "two orders", "axis j [%1[c], %2[c]]",
     "axis j [%1[b], %2[b]]", BY_NEST, "at other indices"},
    {"the two orders of another label", "two orders", "axis j [%1[c], %2[c]]",
     "axis j [%1[d], %2[b]]", BY_NEST, "at other indices"},
    {"one label on two axes", "two orders", "axis j [%1[c], %2[c]]", "axis j [%1[a], %2[c]]",
     BY_NEST, "one index on two axes"},
    {"a parameter overwritten while each iteration reads it all", "update",
     "  %1 workspace\n  for i step 2 {\n", "  for i step 2 {\n    %1 tile again\n", BY_NEST,
     "still read"},
    {"what is computed again is read outside", "again", "    %2 result 0\n  }\n  %3 result 1\n",
     "    %3 result 1 again\n  }\n  %2 result 0\n", BY_NEST,
     "outside of the loop that computes it again"},
    {"a result in a loop that may have no position", "again", "  }\n  %3 result 1\n",
     "    %3 result 1 again\n  }\n", BY_NEST, "may never compute"},
    {"computed again and not said so", "again", "%1 tile again", "%1 tile", BY_NEST,
     "lacks the axis"},
    {"computed once and said to be again", "chain", "%1 tile", "%1 tile again", BY_NEST,
     "computed again and is not"},
    {"a scan along a loop", "scan", "  %5 result 0 scan\n",
     "  axis i [%5[a]]\n  for i step 2 {\n    %5 result 0 scan\n  }\n", BY_NEST, "is no scan"},
    {"a part of what is put together of pieces", "pieces", "  %2 result 0\n",
     "  axis i [%2[b]]\n  for i step 1 {\n    %2 result 0\n  }\n", BY_NEST, "a loop cuts it"},
    {"a scan of pieces", "pieces", "%2 result 0", "%2 result 0 scan", BY_NEST, "is no scan"},
    {"a scan of what no mask restricts", "fold", "%2 result 0", "%2 result 0 scan", BY_NEST,
     "is no scan"},
    {"a scatter of what has no key", "fold", "%2 result 0", "%2 result 0 scatter", BY_NEST,
     "is no scatter"},
    {"pairs of tiles that do not meet", "pairs", "j step 2 from", "j step 3 from", BY_NEST,
     "no tile of a loop like it"},
    {"parallel over pairs", "pairs", "from i {", "from i parallel {", BY_NEST,
     "no tile of a loop like it"},
    {"pairs of what is no sum", "two folds", "j step 2 {", "j step 2 from i {", BY_NEST,
     "no sum over these"},
    {"half of a value that is not stored twice", "both", " both", "", BY_NEST,
     "is no sum over these"},
    {"stored twice without a loop over pairs", "both", " from i", "", BY_NEST,
     "is said to be stored twice"},
    {"a mirror image in other indices", "its own mirror image in one of two pairs of indices",
     "axis j [%1[c]]\n  axis k [%1[b]]", "axis j [%1[b]]\n  axis k [%1[c]]", BY_NEST,
     "is not its own mirror image"},
    {"tiles that do not meet behind the diagonal", "both", "j step 4", "j step 3", BY_NEST,
     "no tile of a loop like it"},
    {"read before the mirrored half is there", "both, and read",
     "j step 4 {\n      %1 result 0", "j step 4 from i {\n      %1 result 0 both", BY_NEST,
     "before all of it is stored"},
    {"stored at the mirrored place of another value", "both, in place",
     "j step 2 {\n      %2 workspace in %1", "j step 2 from i {\n      %2 workspace in %1 both",
     BY_NEST, "where another value is"},
    {"an update of a mirrored place", "both, an update", "j step 2 {\n      %1 result 0",
     "j step 2 from i {\n      %1 result 0 both", BY_NEST, "where another value is"},
    {"pairs in pairs", "pairs", "%1 tile\n", "for i step 1 {\n %1 tile\n }\n", BY_NEST,
     "the only loop over its axes"},
    {"a tile of a tile, uneven", "tile of a tile", "step 2", "step 3", BY_NEST,
     "does not divide the tile of the loop around it"},
    {"a tile of a tile, longer", "tile of a tile", "step 2", "step 8", BY_NEST,
     "does not divide the tile of the loop around it"},
    {"a tile of a tile, the same", "tile of a tile", "step 2", "step 4", BY_NEST,
     "is that of the loop around it"},
    {"not in the place of the sum that begins with it", "terms", "%4 into %5", "%4 workspace",
     BY_NEST, "and not there"},
    {"in the place of a later sum", "terms", "%4 into %5", "%4 into %6", BY_NEST,
     "does not begin with it"},
    {"in the place of what begins with nothing", "chain", "%1 tile", "%1 into %2", BY_NEST,
     "does not begin with it"},
    {"in the place of one of two readers", "a beginning that is read elsewhere", "%4 result 1",
     "%4 into %5", BY_NEST, "read elsewhere"},
    {"a beginning after what begins with it", "terms", "  %4 into %5\n  %5 into %6\n",
     "  %5 into %6\n  %4 into %5\n", BY_NEST, "before it is computed"},
    {"added into an argument that is read later", "terms of an argument that is read before",
     "  %6 result 1\n  %4 into %5\n", "  %4 into %5\n  %6 result 1\n", BY_NEST, "still read"},
    {"an argument that is read later is the place of its sum",
     "terms of an argument that is read later", "%5 workspace", "%5 result 0", BY_NEST,
     "still read"},
    {"a beginning in a loop that has begun", "terms in loops of their own",
     "  %4 into %5\n  for i step 3 {\n", "  for i step 3 {\n    %4 into %5 again\n", BY_NEST,
     "begins with a value that its loops compute"},
    {"a beginning by the tiles of a loop that has begun", "squares folded in one loop",
     "[%5[b]", "[%5[a]", BY_NEST, "begins with a value that its loops compute"},
    {"a beginning at other indices", "terms in one loop", "%6[c]", "%6[a]", BY_NEST,
     "at other indices"},
    {"threads that add to one place", "terms folded in one loop", "step 3 {",
     "step 3 parallel {", BY_NEST, "run at the same time"},
    {"in the place of a parameter", "in place", "in %1", "in %0", BY_NEST, "like its own"},
    {"in the place of what is made later", "in place", "in %1", "in %3", BY_NEST,
     "like its own"},
    {"in the place of a value that is read later", "in two places", "%2 tile", "%2 tile in %1",
     BY_NEST, "still read"},
    {"in the place of a value read in another order", "turned", "%2 tile", "%2 tile in %1",
     BY_NEST, "still read"},
    {"in the place of memory that a result needs later", "in memory, in a loop",
     "  %3 workspace\n  for i step 2 {\n    %2 workspace in %1\n  }\n",
     "  for i step 2 {\n    %2 workspace in %1\n  }\n  %3 workspace\n", BY_NEST, "still read"},
    {"in the place of memory one iteration early", "read in a loop", "    %2 workspace\n",
     "    %2 workspace in %1\n", BY_NEST, "still read"},
    {"in the place of memory that the loop still makes", "made in a loop", "    %2 workspace\n",
     "    %2 workspace in %1\n", BY_NEST, "still computes"},
};

static const Fault kernel_faults[] = {
    {"nothing to begin with", "terms", "  copy [a in 0..m, b in 0..m] @R[a,b] = @W[a,b]\n", "",
     BY_RUNNING, NULL},
    {"a later term that begins", "terms", "@B[b,c]))\n", "@B[b,c])) begins\n", BY_NUMBERS,
     NULL},
    {"a term added that is subtracted", "terms", "mul(-1, ", "mul(1, ", BY_NUMBERS, NULL},
    {"zeros over an argument that is added to", "terms of an argument", "  matmul [",
     "  fill [x in 0..m, y in 0..m] @W[x,y] = 0\n  matmul [", BY_NUMBERS, NULL},
    {"an argument that is read later added to", "terms of an argument that is read later",
     "  alloc @t : i64[m,m] workspace\n", "  alloc @t : i64[m,m] workspace over @W\n",
     BY_KERNEL, NULL},
    {"begun again in each iteration", "a beginning that is read elsewhere",
     "  copy [a in 0..m, c in 0..m] @R[a,c] = @S[a,c]\n  for $i in 0..n step 3 {\n",
     "  for $i in 0..n step 3 {\n    copy [a in 0..m, c in 0..m] @R[a,c] = @S[a,c]\n",
     BY_NUMBERS, NULL},
    {"begun by the second of two that fold", "terms folded in one loop",
     "mul(@A[a,b], @B[b,c]))\n", "mul(@A[a,b], @B[b,c])) begins\n", BY_NUMBERS, NULL},
    {"a block sized by the tile of the inner loop", "tile of a tile", "i64[4,m] tile",
     "i64[2,m] tile", BY_KERNEL, NULL},
    {"a block indexed from the start of the inner loop", "tile of a tile", "@t[a-$i,b]",
     "@t[a-$j,b]", BY_NUMBERS, NULL},
    {"pairs counted twice in the diagonal tile", "pairs", "@weight[] = 1\n", "@weight[] = 2\n",
     BY_NUMBERS, NULL},
    {"pairs counted once off the diagonal", "pairs", "      fill [] @weight[] = 2\n", "",
     BY_NUMBERS, NULL},
    {"pairs without the diagonal", "pairs", "$j in $i..m", "$j in $i+2..m", BY_NUMBERS, NULL},
    {"mirrored without what lies behind the first tile", "both", "c in $i+2..m", "c in $i+4..m",
     BY_RUNNING, NULL},
    {"mirrored in the diagonal's tile too", "both", "c in $i+2..m", "c in $i..m", BY_KERNEL,
     NULL},
    {"nothing mirrored", "both", "    copy [a in $i:2<m, c in $i+2..m] @R[c,a] = @R[a,c]\n", "",
     BY_RUNNING, NULL},
    {"mirrored with one index exchanged", "both", "@R[c,a] = @R[a,c]", "@R[a,c] = @R[c,a]",
     BY_RUNNING, NULL},
    {"mirrored without its sign", "both, with a sign", "= neg(@R[a,b])", "= abs(@R[a,b])",
     BY_NUMBERS, NULL},
    {"a triangle without the diagonal", "both", "$j in $i..m", "$j in $i+2..m", BY_RUNNING,
     NULL},
    {"rows of the triangle that meet", "both, parallel", "$j in $i..m", "$j in 0..m", BY_KERNEL,
     NULL},
    {"mirrored into the iteration before", "both, parallel", "@R[c,a] = @R[a,c]",
     "@R[c,a-$i] = @R[a,c]", BY_KERNEL, NULL},
    {"pairs twice", "pairs", "$j in $i..m", "$j in 0..m", BY_NUMBERS, NULL},
    {"a weight that is not set again for the next tile", "pairs",
     "  for $i in 0..m step 2 {\n    alloc @weight : i64[] tile\n    fill [] @weight[] = 1\n",
     "  alloc @weight : i64[] tile\n  fill [] @weight[] = 1\n  for $i in 0..m step 2 {\n",
     BY_NUMBERS, NULL},
    {"a weight that is not there", "pairs", "    fill [] @weight[] = 1\n", "", BY_RUNNING,
     NULL},
    {"a tile of a tile from 0", "tile of a tile", "$j in $i:4<m", "$j in 0..m", BY_KERNEL,
     NULL},
    {"a tile of a tile that runs over", "tile of a tile", "$j in $i:4<m", "$j in $i:5<m",
     BY_KERNEL, NULL},
    {"the neutral element written inside the folded loop", "fold",
     "  fill [b in 0..m, c in 0..n] @R[b,c] = 0\n  for $i in 0..m step 4 {\n",
     "  for $i in 0..m step 4 {\n    fill [b in 0..m, c in 0..n] @R[b,c] = 0\n", BY_NUMBERS,
     NULL},
    {"the neutral element not written", "fold", "  fill [b in 0..m, c in 0..n] @R[b,c] = 0\n",
     "", BY_RUNNING, NULL},
    {"a block that loops carry filled again", "fold inside",
     "      alloc @t2 : i64[2,4] tile\n",
     "      alloc @t2 : i64[2,4] tile\n"
     "      fill [a in $i:2<m, c in 0..n] @t[a-$i,c] = 0\n",
     BY_NUMBERS, NULL},
    {"a block that loops carry filled outside of its home's loop", "fold inside",
     "  for $i in 0..m step 2 {\n    alloc @t : i64[2,n] tile\n"
     "    fill [a in $i:2<m, c in 0..n] @t[a-$i,c] = 0\n",
     "  alloc @t : i64[2,n] tile\n  fill [a in 0..2, c in 0..n] @t[a,c] = 0\n"
     "  for $i in 0..m step 2 {\n",
     BY_NUMBERS, NULL},
    {"a home one loop too deep", "fold inside",
     "    alloc @t : i64[2,n] tile\n    fill [a in $i:2<m, c in 0..n] @t[a-$i,c] = 0\n"
     "    for $j in 0..m step 4 {\n",
     "    for $j in 0..m step 4 {\n    alloc @t : i64[2,n] tile\n"
     "    fill [a in $i:2<m, c in 0..n] @t[a-$i,c] = 0\n",
     BY_KERNEL, NULL},
    {"parallel over what is folded", "fold", "step 4 {", "step 4 parallel {", BY_KERNEL, NULL},
    {"a scan without the elements themselves", "scan", " scan a begins\n",
     " scan a exclusive begins\n", BY_NUMBERS, NULL},
    {"a scan of one position alone", "scan", " scan a begins\n", " begins\n", BY_NUMBERS, NULL},
    {"a scan that what is there begins", "scan", "= @x[a] scan a", "= add(@x[a], @R[a]) scan a",
     BY_KERNEL, NULL},
    {"a scan of another position", "scan", "@x[a] scan", "@x[0] scan", BY_NUMBERS, NULL},
    {"a leaf joined twice", "leaves", "l in 0..m_3] @R[b,c] += @leaves[l,b,c]",
     "l in 0..m_3, l2 in 0..2] @R[b,c] += @leaves[l,b,c]", BY_NUMBERS, NULL},
    {"a leaf that is not joined", "leaves", "l in 0..m_3] @R", "l in 1..m_3] @R", BY_NUMBERS,
     NULL},
    {"the beginning of a leaf lost", "leaves", "@A[a,c]) begins\n", "@A[a,c])\n", BY_RUNNING,
     NULL},
    {"the beginning of all leaves' sum lost", "leaves", "@leaves[l,b,c] begins",
     "@leaves[l,b,c]", BY_RUNNING, NULL},
    {"a fold over a loop that begins in each iteration", "fold", "@A[a,c])\n",
     "@A[a,c]) begins\n", BY_NUMBERS, NULL},
    {"leaves in one place", "leaves", "@leaves[$i,b,c] =", "@leaves[0,b,c] =", BY_KERNEL, NULL},
    {"a leaf short by one position", "leaves", "a in 3*$i:3<m] @leaf", "a in 3*$i:2<m] @leaf",
     BY_NUMBERS, NULL},
    {"too few leaves", "leaves", "@leaves : i64[m_3,m,n]", "@leaves : i64[2,m,n]", BY_KERNEL,
     NULL},
    {"the reader's extent for the writer", "chain", "c in 0..m, b in 0..n] @t",
     "c in 0..n, b in 0..n] @t", BY_KERNEL, NULL},
    {"the writer's tile one short", "chain", "a in $i:4<m, c in 0..m, b in 0..n] @t",
     "a in $i:3<m, c in 0..m, b in 0..n] @t", BY_RUNNING, NULL},
    {"a parameter overwritten while each iteration reads it all", "update",
     "  reduce [b in 0..m, a in 0..m] @t[b] += @C[a,b] begins\n  for $i in 0..m step 2 {\n",
     "  for $i in 0..m step 2 {\n    reduce [b in 0..m, a in 0..m] @t[b] += @C[a,b] begins\n",
     BY_NUMBERS, NULL},
    {"memory overwritten one iteration early", "read in a loop",
     "  alloc @t3 : i64[m,m] workspace\n", "  alloc @t3 : i64[m,m] workspace over @t\n",
     BY_KERNEL, NULL},
    {"a value in the place of another one iteration early", "read in a loop", "@t3[a,b] = neg",
     "@t[a,b] = neg", BY_RUNNING, NULL},
    {"a value in two orders, read in one", "two orders", "@t[a-$i,d,b]", "@t[a-$i,b,d]",
     BY_NUMBERS, NULL},
};

/* What was derived is of another value. */
typedef struct Derived {
    const char *what, *good;
    NodeRef node;
    uint32_t alloc_loop, fold; /* UINT32_MAX - 1: as it is */
} Derived;

#define AS_IT_IS (NEST_NONE - 1)

static const Derived derived_faults[] = {
    {"a home one loop too deep", "fold inside", 2, 1, AS_IT_IS},
    {"a home too far out", "fold inside", 1, 0, AS_IT_IS},
    {"a block that lives in the kernel", "chain", 1, NEST_NONE, AS_IT_IS},
    {"a fold that is none", "fold inside", 2, AS_IT_IS, NEST_NONE},
    {"a fold from too far out", "fold inside", 2, AS_IT_IS, 0},
    {"a fold where there is none", "chain", 2, AS_IT_IS, 0},
};

typedef struct Run {
    Ctx ctx;
    const FaultGood *good;
    Graph *g;
    Nest *nest;
    Kernel *k;
} Run;

static void show(Run *r, const char *what)
{
    Text out;
    text_init(&out, &r->ctx.arena);
    diags_render(&r->ctx.diags, &out, false);
    if (r->k != NULL) {
        kernel_dump(r->k, &out);
    }
    print_error("%s: %s", what, out.at);
}

static Run *run_new(const char *name)
{
    Run *r = calloc(1, sizeof *r);
    ctx_init(&r->ctx);
    r->good = fault_good(goods, sizeof goods / sizeof goods[0], name);
    r->g = fault_graph(&r->ctx, r->good->graph);
    if (r->g == NULL) {
        show(r, name);
    }
    assert_non_null(r->g);
    return r;
}

static void run_free(Run *r)
{
    ctx_release(&r->ctx);
    free(r);
}

/* False when the nest is refused. */
static bool read_nest(Run *r, const char *text)
{
    r->nest = fault_nest(&r->ctx, r->g, text);
    return r->nest != NULL;
}

static int64_t number(uint32_t a, int64_t k)
{
    return k * k % 7 + 1 + a;
}

/* The arguments and all results of as many elements: parameters first. */
static Finder compare(Run *r, const int64_t *dims, bool *same)
{
    Arena *arena = &r->ctx.arena;
    Tensor *arg[3], *expected[2], *got[2];
    fault_arguments(&r->ctx, r->g, dims, number, arg);
    assert_true(graph_eval(&r->ctx, arena, r->g, dims, arg, expected));
    *same = loop_eval(&r->ctx, arena, r->k, dims, arg, got);
    if (!*same) {
        return BY_RUNNING;
    }
    *same = fault_same_results(r->g, expected, got);
    return BY_NUMBERS;
}

/* Who finds a fault in what the kernel is now: loop_verify, or running it. */
static bool find(Run *r, Finder *finder)
{
    bool same = true;
    *finder = BY_KERNEL;
    if (!loop_verify(&r->ctx, r->k, "test")) {
        return true;
    }
    for (size_t k = 0; same && k < FAULT_SETS; k++) {
        *finder = compare(r, fault_extents[k], &same);
    }
    return !same;
}

static void good_nests_are_good(void **state)
{
    for (size_t k = 0; k < sizeof goods / sizeof goods[0]; k++) {
        Run *r = run_new(goods[k].name);
        Finder finder = BY_NEST;
        bool bad = !read_nest(r, goods[k].nest);
        if (!bad) {
            r->k = nest_lower(&r->ctx, &r->ctx.arena, r->nest);
            bad = find(r, &finder);
        }
        if (bad) {
            show(r, goods[k].name);
        }
        assert_false(bad);
        run_free(r);
    }
}

static void a_fault_in_a_nest_is_found(void **state)
{
    for (size_t k = 0; k < sizeof nest_faults / sizeof nest_faults[0]; k++) {
        const Fault *f = &nest_faults[k];
        Run *r = run_new(f->good);
        if (read_nest(r,
                      fault_planted(&r->ctx.arena, r->good->nest, f->what, f->from, f->to))) {
            fail_msg("%s: nobody finds it", f->what);
        }
        assert_true(f->finder == BY_NEST && r->ctx.diags.list.n == 1);
        const char *message = r->ctx.diags.list.at[0]->message;
        if (strstr(message, f->why) == NULL) {
            fail_msg("%s: '%s' is not in '%s'", f->what, f->why, message);
        }
        run_free(r);
    }
}

static void what_is_derived_wrong_is_found(void **state)
{
    for (size_t k = 0; k < sizeof derived_faults / sizeof derived_faults[0]; k++) {
        const Derived *f = &derived_faults[k];
        Run *r = run_new(f->good);
        assert_true(read_nest(r, r->good->nest));
        NestValue *values =
            arena_copy(&r->ctx.arena, r->nest->values, r->g->nodes.n * sizeof *r->nest->values);
        NestValue *v = &values[f->node];
        v->alloc_loop = f->alloc_loop == AS_IT_IS ? v->alloc_loop : f->alloc_loop;
        v->fold = f->fold == AS_IT_IS ? v->fold : f->fold;
        r->nest->values = values;
        if (nest_verify(&r->ctx, r->nest, "test")) {
            fail_msg("%s: nest_verify does not find it", f->what);
        }
        run_free(r);
    }
}

static void a_fault_of_lowering_is_found(void **state)
{
    for (size_t k = 0; k < sizeof kernel_faults / sizeof kernel_faults[0]; k++) {
        const Fault *f = &kernel_faults[k];
        Run *r = run_new(f->good);
        assert_true(read_nest(r, r->good->nest));
        r->k = nest_lower(&r->ctx, &r->ctx.arena, r->nest);
        Kernel *broken = fault_kernel(&r->ctx, r->k, f->what, f->from, f->to);
        Finder finder = BY_KERNEL;
        bool found = broken == NULL;
        if (!found) {
            r->k = broken;
            found = find(r, &finder);
        }
        if (!found || finder != f->finder) {
            show(r, f->what);
            fail_msg("%s: found by %s", f->what, found ? finder_names[finder] : "nobody");
        }
        run_free(r);
    }
}

TESTS(TEST(good_nests_are_good), TEST(a_fault_in_a_nest_is_found),
      TEST(what_is_derived_wrong_is_found), TEST(a_fault_of_lowering_is_found))
