/* SPDX-License-Identifier: Apache-2.0 */
/* The stub libnrt in tests: copies of it, files for it, and a matmul to run on it. */
#include "support_stub.h"

#include "../../runtime/src/sha256.h"
#include "support_neff.h"
#include "support/places.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

void file_make(char *path, const void *bytes, size_t size)
{
    const char *folder = getenv("TMPDIR");
    (void)snprintf(path, 256, "%.200s/tdsl-test-XXXXXX", folder != NULL ? folder : "/tmp");
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, bytes, size), size);
    assert_int_equal(close(file), 0);
}

const char *numpy_python(void)
{
    static const char *const names[] = {"python3", "/usr/bin/python3"};
    char command[128];
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(command, sizeof command, "%s -c 'import numpy' 2>/dev/null", names[i]);
        if (system(command) == 0) {
            return names[i];
        }
    }
    return NULL;
}

static unsigned char *file_read(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        print_error("%s is not built\n", path);
        fail();
    }
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *size = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(*size);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    assert_int_equal(fclose(file), 0);
    return bytes;
}

/* Spoils a symbol's name wherever it stands alone in the file. */
static void symbol_remove(unsigned char *bytes, size_t size, const char *symbol)
{
    size_t length = strlen(symbol);
    int found = 0;
    for (size_t i = 1; i + length < size; i++) {
        if (bytes[i - 1] == 0 && bytes[i + length] == 0 &&
            memcmp(bytes + i, symbol, length) == 0) {
            bytes[i] ^= 1; /* not its end, which another name may share */
            found++;
        }
    }
    assert_true(found > 0);
}

static void *control(const Stub *stub, const char *name)
{
    void *address = dlsym(stub->handle, name);
    assert_non_null(address);
    return address;
}

void stub_open(Stub *stub, const char *missing)
{
    size_t size = 0;
    unsigned char *bytes = file_read(build_file("tests/stub_nrt/libnrt.so.1"), &size);
    if (missing != NULL) {
        symbol_remove(bytes, size, missing);
    }
    file_make(stub->path, bytes, size);
    free(bytes);
    stub->handle = dlopen(stub->path, RTLD_NOW | RTLD_LOCAL);
    if (stub->handle == NULL) {
        print_error("%s\n", dlerror());
    }
    assert_non_null(stub->handle);
#define CONTROL(member, symbol)                                                                \
    do {                                                                                       \
        void *address = control(stub, symbol);                                                 \
        memcpy(&stub->member, &address, sizeof address);                                       \
    } while (0)
    CONTROL(script, "stub_nrt_script");
    CONTROL(calls, "stub_nrt_calls");
    CONTROL(calls_of, "stub_nrt_calls_of");
    CONTROL(call_name, "stub_nrt_call_name");
    CONTROL(live, "stub_nrt_live");
    CONTROL(misused, "stub_nrt_misused");
    CONTROL(misuse, "stub_nrt_misuse");
    CONTROL(let_go, "stub_nrt_let_go");
#undef CONTROL
    stub->script("");
}

void stub_close(Stub *stub)
{
    if (stub->misused() != 0) {
        print_error("the stub was misused: %s\n", stub->misuse());
    }
    assert_int_equal(stub->misused(), 0);
    assert_int_equal(stub->live(), 0);
    assert_int_equal(unlink(stub->path), 0);
    (void)dlclose(stub->handle);
}

static void be_quiet(void *user, const char *message)
{
    (void)user;
    (void)message;
}

tdsl_config stub_config(const Stub *stub)
{
    tdsl_config config = TDSL_CONFIG_INIT;
    config.ignore_environment = 1;
    config.nrt_library = stub->path;
    config.min_nki_flops = 1;
    config.device_timeout_ms = 20000;
    config.log = be_quiet;
    return config;
}

const int64_t stub_dims[3] = {2, 3, 2};
const char stub_matmul_text[] = "program\tbuiltin\tmatmul\n"
                                "input\tA\t10\t2\t3\n"
                                "input\tB\t10\t3\t2\n"
                                "output\toutput_0\t10\t2\t2\n";

void stub_neff_open(StubNeff *neff, const char *text, const int64_t *dims)
{
    neff->bytes = neff_make(text, &neff->size);
    assert_non_null(neff->bytes);
    tdsl_sha256_hex(neff->bytes, neff->size, neff->sha256);
    neff->form = (tdsl_nki_form)TDSL_NKI_FORM_INIT;
    neff->form.target = "trn2";
    neff->form.dims = dims;
    neff->form.parts = &neff->part;
    neff->form.n_parts = 1;
    neff->part = (tdsl_nki_part)TDSL_NKI_PART_INIT;
    neff->part.neff = neff->bytes;
    neff->part.neff_bytes = neff->size;
    neff->part.neff_sha256 = neff->sha256;
}

void stub_neff_close(StubNeff *neff)
{
    free(neff->bytes);
}

void matmul_args(MatmulArgs *m)
{
    static const int64_t shape[3][2] = {{2, 3}, {3, 2}, {2, 2}};
    memcpy(m->shape, shape, sizeof shape);
    for (int i = 0; i < 6; i++) {
        m->a[i] = (float)(i + 1);
        m->b[i] = (float)(i - 2);
    }
    for (int i = 0; i < 4; i++) {
        m->r[i] = -77;
    }
    m->args[0] = tdsl_view(TDSL_F32, m->a, 2, m->shape[0]);
    m->args[1] = tdsl_view(TDSL_F32, m->b, 2, m->shape[1]);
    m->args[2] = tdsl_view(TDSL_F32, m->r, 2, m->shape[2]);
}

bool matmul_done(const MatmulArgs *m)
{
    return m->r[0] == 4 && m->r[1] == 10 && m->r[2] == 4 && m->r[3] == 19;
}

bool matmul_untouched(const MatmulArgs *m)
{
    return m->r[0] == -77 && m->r[1] == -77 && m->r[2] == -77 && m->r[3] == -77;
}
