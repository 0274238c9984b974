/* SPDX-License-Identifier: Apache-2.0 */
/* The C that `tdsl-run --profile` runs: a counter for each statement of the program. While kernels are printed, the marks of emit_line.c
 * hold the number of a counter; when all is printed, a call stands in the place of each mark, which gives the ticks since the last one
 * to the counter that was on. Counter 0 has what is of no statement. For one thread. */
#include <stdlib.h>
#include <string.h>

#include "backend/c/emit.h"

uint32_t counter_of(Counters *c, const char *text, uint32_t line)
{
    for (uint32_t k = 0; k < c->n; k++) {
        if (c->at[k].line == line && strcmp(c->at[k].text, text) == 0) {
            return k + 1;
        }
    }
    vec_push(c->arena, c, ((Counter){text, line}));
    return c->n;
}

/* Compilers keep statements on their side of a volatile asm. */
static const char clock_text[] =
    "#include <stdint.h>\n"
    "#include <string.h>\n"
    "#include <time.h>\n"
    "\n"
    "static inline uint64_t tdsl_ticks(void)\n"
    "{\n"
    "#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))\n"
    "    uint32_t low, high;\n"
    "    __asm__ volatile(\"rdtsc\" : \"=a\"(low), \"=d\"(high) : : \"memory\");\n"
    "    return (uint64_t)high << 32 | low;\n"
    "#elif defined(__GNUC__) && defined(__aarch64__)\n"
    "    uint64_t ticks;\n"
    "    __asm__ volatile(\"mrs %0, cntvct_el0\" : \"=r\"(ticks) : : \"memory\");\n"
    "    return ticks;\n"
    "#else\n"
    "    struct timespec t;\n"
    "    (void)timespec_get(&t, TIME_UTC);\n"
    "    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;\n"
    "#endif\n"
    "}\n"
    "\n"
    "static uint32_t tdsl_counter;\n"
    "static uint64_t tdsl_since;\n"
    "\n"
    "static inline void tdsl_count(uint32_t next)\n"
    "{\n"
    "    const uint64_t now = tdsl_ticks();\n"
    "    tdsl_profile_ticks[tdsl_counter] += now - tdsl_since;\n"
    "    tdsl_profile_runs[next]++;\n"
    "    tdsl_counter = next;\n"
    "    tdsl_since = now;\n"
    "}\n"
    "\n"
    "void tdsl_profile_begin(void)\n"
    "{\n"
    "    memset(tdsl_profile_ticks, 0, sizeof tdsl_profile_ticks);\n"
    "    memset(tdsl_profile_runs, 0, sizeof tdsl_profile_runs);\n"
    "    tdsl_counter = 0;\n"
    "    tdsl_since = tdsl_ticks();\n"
    "}\n"
    "\n"
    "void tdsl_profile_end(void)\n"
    "{\n"
    "    tdsl_count(0);\n"
    "}\n"
    "\n"
    "void tdsl_profile_probe(void)\n"
    "{\n"
    "    for (int k = 0; k < 1000; k++) {\n"
    "        tdsl_count(0);\n"
    "    }\n"
    "}\n\n";

static void tables_put(Text *out, const Counters *c)
{
    text_printf(out,
                "uint64_t tdsl_profile_ticks[%u], tdsl_profile_runs[%u];\n"
                "const uint32_t tdsl_profile_counters = %u;\n"
                "const uint32_t tdsl_profile_lines[] = {0",
                c->n + 1, c->n + 1, c->n + 1);
    for (uint32_t k = 0; k < c->n; k++) {
        text_printf(out, ", %u", c->at[k].line);
    }
    text_put(out, "};\nconst char *const tdsl_profile_texts[] = {\"\"");
    for (uint32_t k = 0; k < c->n; k++) {
        text_put(out, ",\n    ");
        text_literal(out, c->at[k].text);
    }
    text_put(out, "};\n\n");
}

void counters_emit(Arena *arena, Text *out, const Counters *c)
{
    Text all;
    text_init(&all, arena);
    text_reserve(&all, out->n + out->n / 4);
    text_put(&all, "#include <stdint.h>\n");
    tables_put(&all, c);
    text_put(&all, clock_text);
    for (const char *at = out->at; *at != '\0';) {
        size_t n = strcspn(at, "\n"), blanks = strspn(at, " ");
        if (at[blanks] == LINE_MARK) {
            text_printf(&all, "%*stdsl_count(%lu);\n", (int)blanks, "",
                        n == blanks + 1 ? 0 : strtoul(at + blanks + 1, NULL, 10));
        } else {
            text_put_n(&all, at, n);
            text_put(&all, "\n");
        }
        at += n + (at[n] == '\n');
    }
    *out = all;
}
