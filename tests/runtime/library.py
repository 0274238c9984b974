#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libtdsl as a user links it: what it exports is what tdsl.h and dist.h declare, it calls nothing that ends the process or writes to
standard output, its text fits 88 KiB, 20 of them for kernels on ranks, and its headers are C++ too.

    library.py LIBRARY INCLUDE [--size-limit=BYTES] [--cxx=COMPILER]"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

LIMIT = next((int(a.split("=")[1]) for a in sys.argv if a.startswith("--size-limit=")), None)
CXX = next((a.split("=")[1] for a in sys.argv if a.startswith("--cxx=")), None)
LIBRARY, INCLUDE = [a for a in sys.argv[1:] if not a.startswith("--")]

# Ends the process, prints on standard output, reads the environment of a set-user-id program, changes the process for others.
FORBIDDEN = {"abort", "exit", "_exit", "quick_exit", "__assert_fail", "raise", "printf", "puts", "putchar", "stdout", "vprintf",
             "getenv", "setenv", "putenv", "signal", "sigaction", "setlocale", "chdir", "umask", "atexit", "system", "popen",
             "fork", "vfork", "strcat", "sprintf", "gets", "strtok", "rand", "srand", "mktemp", "tmpnam"}

CPLUSPLUS = r"""
#include <tdsl/tdsl.h>
#include <tdsl/tdsl.h>
static size_t none(const int64_t *) { return 0; }
static uint64_t work(const int64_t *) { return 3; }
static tdsl_status twice(const int64_t *, void *const *args, void *, size_t)
{
    for (int i = 0; i < 3; i++) {
        static_cast<double *>(args[1])[i] = 2 * static_cast<const double *>(args[0])[i];
    }
    return TDSL_OK;
}
int main()
{
    static const tdsl_extent three[] = {{-1, 0, 3}};
    static const tdsl_arg_info args[] = {{"X", TDSL_IN, TDSL_F64, 1, 0, three, 0, 0}, {"Y", TDSL_OUT, TDSL_F64, 1, 0, three, 0, 0}};
    static const tdsl_kernel_info info = {TDSL_ABI_HEAD, "twice", "", "", "", 0, 2, nullptr, args, none, work, twice, nullptr, nullptr, nullptr, 0, 0, nullptr};
    tdsl_config config = TDSL_CONFIG_INIT;
    tdsl_report report = TDSL_REPORT_INIT;
    tdsl_nki_form form = TDSL_NKI_FORM_INIT;
    tdsl_nki_part part = TDSL_NKI_PART_INIT;
    tdsl_call_options options = TDSL_CALL_OPTIONS_INIT;
    tdsl_context *context = nullptr;
    tdsl_kernel *kernel = nullptr;
    double x[3] = {1, 2, 3}, y[3] = {0, 0, 0};
    const int64_t extents[1] = {3};
    form.parts = &part;
    config.backend = TDSL_BACKEND_C;
    if (form.parts->neff != nullptr || tdsl_context_create(&config, &context, &report) != TDSL_OK ||
        tdsl_register(context, &info, &report) != TDSL_OK ||
        tdsl_find(context, "twice", &kernel, &report) != TDSL_OK) {
        return 1;
    }
    tdsl_tensor tensors[2] = {tdsl_view(TDSL_F64, x, 1, extents), tdsl_view(TDSL_F64, y, 1, extents)};
    tdsl_status status = tdsl_call(kernel, tensors, 2, &options, &report);
    tdsl_context_destroy(context);
    return status == TDSL_OK && y[2] == 6 ? 0 : 2;
}
"""


def names(*options):
    out = subprocess.run(["nm", "-D", *options, LIBRARY], stdout=subprocess.PIPE, text=True, check=True).stdout
    return {line.split()[-1].split("@")[0] for line in out.splitlines()}


class Library(unittest.TestCase):
    def test_what_is_exported_is_what_the_header_declares(self):
        text = ""
        for header in ("tdsl.h", "dist.h"):
            with open(os.path.join(INCLUDE, "tdsl", header)) as stream:
                text += re.sub(r"/\*.*?\*/", "", stream.read(), flags=re.S)
        declared = set(re.findall(r"TDSL_API[^;(]*?\b(tdsl_\w+)\(", text))
        self.assertGreater(len(declared), 15)
        self.assertEqual(names("--defined-only"), declared)

    def test_it_calls_nothing_that_touches_the_process(self):
        used = names("--undefined-only")
        self.assertIn("dlopen", used)
        self.assertEqual(used & FORBIDDEN, set())

    @unittest.skipIf(LIMIT is None, "no release build")
    def test_its_text_fits(self):
        out = subprocess.run(["size", LIBRARY], stdout=subprocess.PIPE, text=True, check=True).stdout
        text = int(out.splitlines()[1].split()[0])
        print(f"text of libtdsl: {text} bytes", file=sys.stderr)
        self.assertLessEqual(text, LIMIT)

    @unittest.skipIf(CXX is None, "no C++ compiler here")
    def test_the_headers_are_cplusplus_too(self):
        for standard in ("c++11", "c++20"):
            with tempfile.TemporaryDirectory() as work:
                source, program = os.path.join(work, "user.cpp"), os.path.join(work, "user")
                with open(source, "w") as stream:
                    stream.write(CPLUSPLUS)
                subprocess.run([CXX, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I" + INCLUDE, source,
                                LIBRARY, "-Wl,-rpath," + os.path.dirname(os.path.abspath(LIBRARY)), "-o", program], check=True)
                subprocess.run([program], check=True)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
