/* SPDX-License-Identifier: Apache-2.0 */
/* See npy.h. The header is a Python dictionary literal with three keys; it is read by a strict scanner, since the file may
 * be hostile, and sizes are checked against the file's length before any memory is taken. */
#include "driver/npy.h"

#include <string.h>

typedef struct Scan {
    const char *at, *end;
} Scan;

static void skip_blanks(Scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\n')) {
        s->at++;
    }
}

static bool take(Scan *s, char c)
{
    skip_blanks(s);
    if (s->at < s->end && *s->at == c) {
        s->at++;
        return true;
    }
    return false;
}

static bool take_word(Scan *s, const char *word)
{
    skip_blanks(s);
    size_t n = strlen(word);
    if ((size_t)(s->end - s->at) >= n && memcmp(s->at, word, n) == 0) {
        s->at += n;
        return true;
    }
    return false;
}

static bool take_string(Scan *s, Str *out)
{
    skip_blanks(s);
    if (s->at >= s->end || (*s->at != '\'' && *s->at != '"')) {
        return false;
    }
    char quote = *s->at++;
    out->at = s->at;
    while (s->at < s->end && *s->at != quote) {
        s->at++;
    }
    out->n = (size_t)(s->at - out->at);
    return take(s, quote);
}

static bool take_extent(Scan *s, int64_t *v)
{
    skip_blanks(s);
    const char *start = s->at;
    *v = 0;
    while (s->at < s->end && *s->at >= '0' && *s->at <= '9') {
        if (*v > SIZE_LIMIT / 10 - 1) {
            return false;
        }
        *v = *v * 10 + (*s->at++ - '0');
    }
    return s->at > start;
}

typedef struct NpyHeader {
    Str descr;
    bool fortran;
    uint32_t rank;
    int64_t extent[RANK_LIMIT];
} NpyHeader;

static bool take_shape(Scan *s, NpyHeader *h)
{
    if (!take(s, '(')) {
        return false;
    }
    while (!take(s, ')')) {
        if (h->rank == RANK_LIMIT || !take_extent(s, &h->extent[h->rank])) {
            return false;
        }
        h->rank++;
        if (!take(s, ',')) {
            return take(s, ')');
        }
    }
    return true;
}

static bool parse_header(Scan *s, NpyHeader *h)
{
    int seen = 0;
    if (!take(s, '{')) {
        return false;
    }
    while (!take(s, '}')) {
        Str key = {0};
        int bit = 0;
        bool ok = take_string(s, &key) && take(s, ':');
        if (ok && str_eq_cstr(key, "descr")) {
            bit = 1;
            ok = take_string(s, &h->descr);
        } else if (ok && str_eq_cstr(key, "fortran_order")) {
            bit = 2;
            h->fortran = take_word(s, "True");
            ok = h->fortran || take_word(s, "False");
        } else if (ok && str_eq_cstr(key, "shape")) {
            bit = 4;
            ok = take_shape(s, h);
        }
        if (!ok || bit == 0 || (seen & bit) != 0) {
            return false;
        }
        seen |= bit;
        if (!take(s, ',')) {
            if (!take(s, '}')) {
                return false;
            }
            break;
        }
    }
    skip_blanks(s);
    return seen == 7 && s->at == s->end;
}

static const struct {
    const char *descr;
    DType dtype;
} descrs[] = {
    {"<f8", DTYPE_F64}, {"<f4", DTYPE_F32},  {"<f2", DTYPE_F16}, {"<i4", DTYPE_I32},
    {"<i8", DTYPE_I64}, {"|b1", DTYPE_BOOL}, {"<c8", DTYPE_C64}, {"<c16", DTYPE_C128},
};

static DType dtype_of(Str descr)
{
    for (size_t k = 0; k < sizeof descrs / sizeof descrs[0]; k++) {
        if (str_eq_cstr(descr, descrs[k].descr)) {
            return descrs[k].dtype;
        }
    }
    return DTYPE_NONE;
}

static Tensor *refuse(Ctx *ctx, const char *path, const char *what)
{
    diag_error(&ctx->diags, E_NPY, (Span){0}, "'%s': %s", path, what);
    return NULL;
}

/* Fortran order: the first index runs fastest in the file. */
static void copy_fortran(Tensor *t, const char *from, size_t bytes)
{
    int64_t index[RANK_LIMIT] = {0};
    int64_t stride[RANK_LIMIT];
    int64_t step = 1;
    for (uint32_t d = t->rank; d-- > 0;) {
        stride[d] = step;
        step *= t->extent[d];
    }
    int64_t at = 0;
    for (int64_t k = 0; k < t->count; k++) {
        memcpy((char *)t->data + (size_t)at * bytes, from + (size_t)k * bytes, bytes);
        for (uint32_t d = 0; d < t->rank; d++) {
            at += stride[d];
            if (++index[d] < t->extent[d]) {
                break;
            }
            at -= stride[d] * t->extent[d];
            index[d] = 0;
        }
    }
}

Tensor *npy_parse(Ctx *ctx, Arena *arena, const char *path, Str bytes)
{
    if (bytes.n < 10 || memcmp(bytes.at, "\x93NUMPY", 6) != 0) {
        return refuse(ctx, path, "not a .npy file");
    }
    const uint8_t *b = (const uint8_t *)bytes.at;
    uint32_t major = b[6];
    if (major < 1 || major > 3 || b[7] != 0 || (major > 1 && bytes.n < 12)) {
        return refuse(ctx, path, "a .npy version that is not 1.0, 2.0 or 3.0");
    }
    size_t start = major == 1 ? 10 : 12;
    size_t length = (size_t)b[8] | (size_t)b[9] << 8;
    length |= major == 1 ? 0 : (size_t)b[10] << 16 | (size_t)b[11] << 24;
    if (length > bytes.n - start) {
        return refuse(ctx, path, "the header is longer than the file");
    }
    Scan s = {bytes.at + start, bytes.at + start + length};
    NpyHeader *h = ARENA_NEW(arena, NpyHeader);
    if (!parse_header(&s, h)) {
        return refuse(ctx, path, "a malformed .npy header");
    }
    DType dtype = dtype_of(h->descr);
    if (dtype == DTYPE_NONE) {
        char *descr = str_dup(arena, h->descr.n > 20 ? (Str){h->descr.at, 20} : h->descr);
        return refuse(
            ctx, path,
            str_format(arena,
                       "elements of type '%s'; read are <f8 <f4 <f2 <i4 <i8 |b1 <c8 <c16",
                       descr));
    }
    int64_t want = dtype_bytes(dtype);
    bool zero = false;
    for (uint32_t d = 0; d < h->rank; d++) {
        zero |= h->extent[d] == 0;
    }
    for (uint32_t d = 0; d < h->rank && !zero; d++) {
        if (!size_mul(want, h->extent[d], &want)) {
            return refuse(ctx, path, "a shape whose size overflows");
        }
    }
    want = zero ? 0 : want;
    size_t have = bytes.n - start - length;
    if ((uint64_t)want != have) {
        return refuse(ctx, path,
                      str_format(arena, "the shape needs %lld bytes of data, the file has %zu",
                                 (long long)want, have));
    }
    Tensor *t = tensor_new(ctx, arena, dtype, h->rank, h->extent);
    if (t == NULL) {
        return NULL;
    }
    const char *data = bytes.at + start + length;
    if (have == 0) {
        return t;
    }
    if (h->fortran && h->rank > 1) {
        copy_fortran(t, data, (size_t)dtype_bytes(dtype));
    } else {
        memcpy(t->data, data, have);
    }
    if (dtype == DTYPE_BOOL) {
        for (int64_t k = 0; k < t->count; k++) {
            ((uint8_t *)t->data)[k] =
                ((uint8_t *)t->data)[k] != 0; /* any other byte is no C bool */
        }
    }
    return t;
}

Str npy_format(Arena *arena, const Tensor *t)
{
    const char *descr = "<u2"; /* bf16 has no NumPy type: its bit patterns */
    for (size_t k = 0; k < sizeof descrs / sizeof descrs[0]; k++) {
        descr = descrs[k].dtype == t->dtype ? descrs[k].descr : descr;
    }
    Text header;
    text_init(&header, arena);
    text_printf(&header, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (uint32_t d = 0; d < t->rank; d++) {
        text_printf(&header, "%s%lld%s", d == 0 ? "" : ", ", (long long)t->extent[d],
                    t->rank == 1 ? "," : "");
    }
    text_put(&header, "), }");
    while ((10 + header.n + 1) % 64 != 0) {
        text_char(&header, ' ');
    }
    text_char(&header, '\n');
    size_t data = (size_t)(t->count * dtype_bytes(t->dtype));
    char *out = arena_alloc(arena, 10 + header.n + data + 1);
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (char)(header.n & 0xff);
    out[9] = (char)(header.n >> 8);
    memcpy(out + 10, header.at, header.n);
    if (data > 0) {
        memcpy(out + 10 + header.n, t->data, data);
    }
    return (Str){out, 10 + header.n + data};
}
