/* SPDX-License-Identifier: Apache-2.0 */
/* See explain.h. The tests compile the examples: the first kernel gets the message, the others do not. */
#include "driver/explain.h"

#include <string.h>

static const struct {
    DiagCode code;
    const char *text;
} examples[] = {
    {W_SPILL,
     "\n"
     "    kernel fold(A: f64[900,30], B: f64[30,900], V: f64[900,30]) -> (R: f64[900,30]) {\n"
     "        X[i,j] = A[i,k] * B[k,j];\n"
     "        s = sum[i,j](X[i,j]);\n"
     "        P[i,j] = X[i,j] / s;\n"
     "        R[i,k] = P[i,j] * V[j,k];\n"
     "    }\n"
     "\n"
     "P waits for s, which is a sum over all of X: no loop makes a block of X and is done with "
     "it.\n"
     "So all of X is made first, and it is larger than what stays on chip. The note says which "
     "reader\n"
     "that is, and why. Where s is used "
     "later, on\n"
     "what is summed over X, blocks of X are enough:\n"
     "\n"
     "    kernel later(A: f64[900,30], B: f64[30,900], V: f64[900,30]) -> (R: f64[900,30]) {\n"
     "        X[i,j] = A[i,k] * B[k,j];\n"
     "        s = sum[i,j](X[i,j]);\n"
     "        P[i,k] = X[i,j] * V[j,k];\n"
     "        R[i,k] = P[i,k] / s;\n"
     "    }\n"
     "\n"
     "To have it in memory on purpose, say so in the kernel:\n"
     "\n"
     "    kernel allowed(A: f64[900,30], B: f64[30,900], V: f64[900,30]) -> (R: f64[900,30]) "
     "{\n"
     "        X[i,j] = A[i,k] * B[k,j];\n"
     "        s = sum[i,j](X[i,j]);\n"
     "        P[i,j] = X[i,j] / s;\n"
     "        R[i,k] = P[i,j] * V[j,k];\n"
     "        spill X, P;\n"
     "    }\n"
     "\n"
     "-Wno-spill silences the warning everywhere. An open dim counts with its typical size: a "
     "value that\n"
     "is small then is not warned of, and --report says up to which size it stays in which "
     "level.\n"},
};

bool explain_code(const char *code, Text *out)
{
    for (DiagCode k = 0; k < DIAG_COUNT; k++) {
        const char *text = diag_code_text(k);
        bool match = strcmp(text, code) == 0;
        if (strncmp(text, "-W", 2) == 0) {
            match |= strcmp(text + 1, code) == 0 || strcmp(text + 2, code) == 0;
        }
        if (!match) {
            continue;
        }
        text_printf(out, "%s: %s\n", text, diag_code_about(k));
        for (size_t e = 0; e < sizeof examples / sizeof examples[0]; e++) {
            text_put(out, examples[e].code == k ? examples[e].text : "");
        }
        return true;
    }
    return false;
}
