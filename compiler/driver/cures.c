/* SPDX-License-Identifier: Apache-2.0 */
/* See cures.h. */
#include "driver/cures.h"

#include <string.h>

/* Rows are beginnings of what was given; "-S " with a blank is the whole word. */
static const struct {
    const char *begins;
    int tools;
    const char *cure;
} options[] = {
    {"-v ", 3, "--version prints the version, --time the time of each step"},
    {"--verbose ", 3, "--report says what was decided, --time the time of each step"},
    {"-O", 1, "there are no levels: the C compiler has them; --effort=N searches longer"},
    {"-O", 2, "--cflags=-O3 gives flags to the C compiler; --effort=N searches longer"},
    {"-S ", 1, "what is written is C: 'cc -S' makes assembly of it"},
    {"-c ", 1, "what is written is C: 'cc -c' compiles it"},
    {"-E ", 1, "--dump=checked prints the program with its includes"},
    {"-M ", 1, "-MD writes a dependency file beside -o, -MF FILE names it"},
    {"-MM ", 1, "-MD writes a dependency file beside -o, -MF FILE names it"},
    {"-MQ ", 1, "-MT NAME says what the rule makes"},
    {"-g", 3, "a flag of the C compiler, which compiles what is written"},
    {"-m", 3, "a flag of the C compiler, which compiles what is written"},
    {"-f", 3, "a flag of the C compiler, which compiles what is written"},
    {"-l", 3, "a flag of the C compiler, which compiles what is written"},
    {"-std", 3, "a flag of the C compiler, which compiles what is written"},
    {"-shared", 3, "a flag of the C compiler, which compiles what is written"},
    {"-j", 3, "tdsl-run --threads=N says how many threads a call may use"},
    {"-t ", 3, "tdsl-run --threads=N says how many threads a call may use"},
    {"--output", 3, "-o names the output"},
    {"--out ", 3, "-o names the output"},
    {"--expr", 3, "-e EQUATION"},
    {"--einsum", 3, "-e EQUATION"},
    {"--threads", 1,
     "how many threads a call uses is said when it is called (OMP_NUM_THREADS, tdsl-run "
     "--threads=N); for how many it is planned, with --threads~N"},
    {"--print-targets", 1, "--list-targets"},
    {"--print-passes", 1, "--list-passes"},
    {"--compile-to", 1, "--stop-after=STAGE, or --dump=STAGE"},
    {"--dump-ir", 1, "--dump=STAGE, or --dump-dir=DIR for all of them"},
    {"--check", 1,
     "'tdslc fmt --check' checks the layout; --stop-after=graph checks a program"},
    {"--format", 1, "'tdslc fmt FILE.tdsl'"},
};

const char *cure_option(Tool tool, const char *given)
{
    for (size_t k = 0; k < sizeof options / sizeof options[0]; k++) {
        size_t n = strlen(options[k].begins);
        bool whole = options[k].begins[n - 1] == ' ';
        size_t m = strcspn(given, "=");
        bool match = whole ? m == n - 1 && strncmp(given, options[k].begins, n - 1) == 0
                           : strncmp(given, options[k].begins, n) == 0;
        if (match && (options[k].tools & (int)tool) != 0) {
            return options[k].cure;
        }
    }
    return NULL;
}

/* %s: the name without its end. */
static const struct {
    const char *end, *cure;
} outputs[] = {
    {".so", "'-o %s.c', and 'cc -O2 -shared -fPIC -o %s.so %s.c' makes it"},
    {".dylib", "'-o %s.c', and 'cc -O2 -shared -fPIC -o %s.dylib %s.c' makes it"},
    {".dll", "'-o %s.c', and 'cc -O2 -shared -o %s.dll %s.c' makes it"},
    {".o", "'-o %s.c', and 'cc -O2 -c -o %s.o %s.c' makes it"},
    {".obj", "'-o %s.c', and 'cc -O2 -c -o %s.obj %s.c' makes it"},
    {".a", "'-o %s.c'; in CMake, tdsl_add_library makes a library"},
    {".s", "'-o %s.c', and 'cc -O2 -S -o %s.s %s.c' makes it"},
    {".py",
     "-o FOLDER with a target that writes programs of Python (--list-targets); the package "
     "'tdsl' calls kernels without a file"},
    {".npy", "tdsl-run calls a kernel and writes its results"},
    {".json", "--report=json and --emit=json write JSON"},
    {".html", "--report=html writes a page"},
    {".dot", "--emit=dot writes a graph"},
    {".tdsl", "--dump=STAGE prints a stage; 'tdslc fmt' lays a program out"},
    {".d", "-MD writes a dependency file beside -o, -MF FILE names it"},
    {".h", "-o names the C, --header=FILE its header"},
};

const char *cure_output(Arena *arena, const char *out)
{
    for (size_t k = 0; k < sizeof outputs / sizeof outputs[0]; k++) {
        size_t n = strlen(out), m = strlen(outputs[k].end);
        if (n <= m || strcmp(out + n - m, outputs[k].end) != 0) {
            continue;
        }
        Text text = text_new(arena);
        for (const char *c = outputs[k].cure; *c != '\0'; c++) {
            if (*c == '%') {
                text_put_n(&text, out, n - m);
                c++;
            } else {
                text_char(&text, *c);
            }
        }
        return text.at;
    }
    return NULL;
}
