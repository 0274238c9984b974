/* SPDX-License-Identifier: Apache-2.0 */
/* See npy.h. The header is a Python dictionary literal with three keys, which is read as JSON; since the file may be hostile, sizes
 * are checked against the file's length before any memory is taken. Elements are put into C order and
 * this machine's order of bytes first, then converted. */
#include "driver/run/npy.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver/fit.h"

/* Of a header of version 1, at most: longer ones are read with the whole file. */
#define HEADER_MOST (10 + 65536)

/* Longer headers are of nobody. */
#define HEADER_LIMIT ((size_t)1 << 20)

typedef struct NpyHeader {
    Str descr; /* of a structured type its fields */
    bool structured;
    bool fortran;
    uint32_t rank;
    int64_t extent[RANK_LIMIT];
} NpyHeader;

/* A dictionary of Python as an object of JSON, character by character: tuples are lists, a comma before the end of one is none, and
 * the L that Python 2 wrote behind some integers goes. */
static char *as_json(Arena *arena, Str text)
{
    char *out = str_dup(arena, text), quote = '\0';
    for (size_t k = 0; k < text.n; k++) {
        char c = text.at[k], before = k > 0 ? text.at[k - 1] : '\0';
        size_t next = k + 1;
        while (c == ',' && next < text.n && strchr(" \t\n", text.at[next]) != NULL) {
            next++;
        }
        bool ends = c == ',' && next < text.n && strchr(")]}", text.at[next]) != NULL;
        if (quote != '\0') {
            out[k] = c == quote ? '"' : c == '"' ? '\'' : c;
            quote = c == quote ? '\0' : quote;
        } else if (c == '\'' || c == '"') {
            out[k] = '"';
            quote = c;
        } else if ((ends && before != '(') || (c == 'L' && before >= '0' && before <= '9')) {
            out[k] = ' ';
        } else {
            out[k] = c == '(' ? '[' : c == ')' ? ']' : c == 'T' ? 't' : c == 'F' ? 'f' : c;
        }
    }
    return out;
}

static bool take_shape(const json_t *shape, NpyHeader *h)
{
    h->rank = (uint32_t)json_array_size(shape);
    bool ok = json_is_array(shape) && json_array_size(shape) <= RANK_LIMIT;
    for (uint32_t d = 0; ok && d < h->rank; d++) {
        const json_t *extent = json_array_get(shape, d);
        h->extent[d] = (int64_t)json_integer_value(extent);
        ok = json_is_integer(extent) && h->extent[d] >= 0 && h->extent[d] <= SIZE_LIMIT;
    }
    return ok;
}

static bool parse_header(Arena *arena, Str text, NpyHeader *h)
{
    json_t *all = json_loadb(as_json(arena, text), text.n, JSON_REJECT_DUPLICATES, NULL);
    const json_t *descr = json_object_get(all, "descr"),
                 *order = json_object_get(all, "fortran_order");
    h->structured = json_is_array(descr);
    h->fortran = json_is_true(order);
    bool ok = json_object_size(all) == 3 && (h->structured || json_is_string(descr)) &&
              json_is_boolean(order) && take_shape(json_object_get(all, "shape"), h);
    if (ok) {
        char *fields = h->structured ? json_dumps(descr, 0) : NULL;
        h->descr = str_from(str_format(arena, "%s",
                                       h->structured ? fields == NULL ? "" : fields
                                                     : json_string_value(descr)));
        free(fields);
    }
    json_decref(all);
    return ok;
}

/* What a descr says behind its first character, the order of bytes. */
typedef struct NpyType {
    const char *name;
    DType dtype;    /* of tensors with such elements; DTYPE_NONE: read with --dtype only */
    uint8_t bytes;  /* of an element */
    uint8_t number; /* of one number: complex ones are two */
    bool is_signed;
} NpyType;

static const NpyType types[] = {
    {"V1", DTYPE_U8, 1, 1, false}, /* floats of 8 bits: of which type, the file does not say */
#define TYPE(id, name, class_, bytes, exponent, fraction, beyond, range, computes, sums, c,    \
             numpy, ...)                                                                       \
    {numpy, DTYPE_##id, bytes, DTYPE_IS_##class_ == DTYPE_IS_COMPLEX ? bytes / 2 : bytes,      \
     DTYPE_IS_##class_ == DTYPE_IS_INT},
#include "op/types.def"
    {"u8", DTYPE_NONE, 8, 8, false},
};
#define TYPES_READ                                                                             \
    "f8 f4 f2 V2 (bf16) i8 i4 i2 i1 u4 u2 u1 b1 c8 c16, V1 (floats of 8 bits), and with "      \
    "--dtype u8"

static const NpyType *type_of(const NpyHeader *h)
{
    bool order = !h->structured && h->descr.n > 1 && strchr("<>|", h->descr.at[0]) != NULL;
    Str name = {h->descr.at + 1, h->descr.n - 1};
    for (size_t k = 0; order && k < sizeof types / sizeof types[0]; k++) {
        bool bytes = h->descr.at[0] != '|' || types[k].bytes == 1 || types[k].name[0] == 'V';
        if (bytes && str_eq_cstr(name, types[k].name)) {
            return &types[k];
        }
    }
    return NULL;
}

static Tensor *refuse(Ctx *ctx, const char *path, const char *what)
{
    diag_error(&ctx->diags, E_NPY, (Span){0}, "'%s': %s", path, what);
    return NULL;
}

static Tensor *refuse_type(Ctx *ctx, Arena *arena, const char *path, const NpyHeader *h)
{
    bool cut = h->descr.n > 60;
    const char *type =
        str_format(arena, "%s%s", str_dup(arena, cut ? (Str){h->descr.at, 60} : h->descr),
                   cut ? "..." : "");
    if (h->structured) {
        Diagnostic *e = diag_error(&ctx->diags, E_NPY, (Span){0},
                                   "'%s': elements of the structured type %s", path, type);
        diag_help(e, "an array has elements of one type: save one field, numpy.save(FILE, "
                     "array[FIELD])");
    } else {
        Diagnostic *e = diag_error(&ctx->diags, E_NPY, (Span){0}, "'%s': elements of type '%s'",
                                   path, type);
        diag_help(e, "read are " TYPES_READ);
    }
    return NULL;
}

/* Fortran order: the first index runs fastest in the file. */
static void copy_fortran(char *to, const NpyHeader *h, const char *from, int64_t count,
                         size_t bytes)
{
    int64_t index[RANK_LIMIT] = {0};
    int64_t stride[RANK_LIMIT];
    int64_t step = 1;
    for (uint32_t d = h->rank; d-- > 0;) {
        stride[d] = step;
        step *= h->extent[d];
    }
    int64_t at = 0;
    for (int64_t k = 0; k < count; k++) {
        memcpy(to + (size_t)at * bytes, from + (size_t)k * bytes, bytes);
        for (uint32_t d = 0; d < h->rank; d++) {
            at += stride[d];
            if (++index[d] < h->extent[d]) {
                break;
            }
            at -= stride[d] * h->extent[d];
            index[d] = 0;
        }
    }
}

/* Numbers of `width` bytes whose most significant byte comes first. */
static void swap_bytes(char *data, size_t bytes, size_t width)
{
    for (size_t n = 0; n < bytes; n += width) {
        for (size_t k = 0; k < width / 2; k++) {
            char c = data[n + k];
            data[n + k] = data[n + width - 1 - k];
            data[n + width - 1 - k] = c;
        }
    }
}

/* ---- conversion ---- */

/* An element that does not become one of type `to`. `at` is its place in C order. */
static bool refuse_element(Ctx *ctx, Arena *arena, const char *path, const Tensor *t,
                           int64_t at, const char *value, const char *why)
{
    Text place = text_new(arena);
    int64_t step = t->count;
    for (uint32_t d = 0; d < t->rank; d++) {
        step /= t->extent[d];
        text_printf(&place, "%s%lld", d == 0 ? "[" : ",", (long long)(at / step));
        at %= step;
    }
    text_put(&place, t->rank > 0 ? "]" : "");
    Diagnostic *e = diag_error(&ctx->diags, E_NPY, (Span){0}, "'%s': element%s%s is %s", path,
                               t->rank > 0 ? " " : "", place.at, value);
    diag_help(e, "--dtype=%s: %s", dtype_name(t->dtype), why);
    return false;
}

static const char *number_text(Arena *arena, Number v)
{
    Text text = text_new(arena);
    if (dtype_is_float(v.dtype)) {
        text_f64(&text, v.re);
    } else {
        text_i64(&text, v.i);
    }
    return text.at;
}

/* Elements of a type that tensors have, as those of another. */
static bool cast_elements(Ctx *ctx, Arena *arena, const char *path, const Tensor *from,
                          Tensor *to)
{
    const char *why = fit_types(from->dtype, to->dtype);
    if (why != NULL) {
        return diag_refuse(&ctx->diags, E_NPY, (Span){0}, "'%s': %s becomes no %s: %s", path,
                           dtype_name(from->dtype), dtype_name(to->dtype), why);
    }
    for (int64_t k = 0; k < to->count; k++) {
        Number v = tensor_get(from, k);
        why = fit_number(v, to->dtype, &v);
        if (why != NULL) {
            return refuse_element(ctx, arena, path, to, k,
                                  number_text(arena, tensor_get(from, k)), why);
        }
        tensor_set(to, k, v);
    }
    return true;
}

/* Integers of a type that tensors do not have. */
static bool convert_integers(Ctx *ctx, Arena *arena, const char *path, const NpyType *type,
                             const char *data, Tensor *to)
{
    int unused = 64 - 8 * type->bytes;
    for (int64_t k = 0; k < to->count; k++) {
        uint64_t u = 0;
        memcpy(&u, data + k * type->bytes, type->bytes);
        bool negative = type->is_signed && (u >> (8 * type->bytes - 1) & 1) != 0;
        bool large = !type->is_signed && u > INT64_MAX;
        Number v = {.dtype = DTYPE_I64};
        if (negative) {
            v.i = -(int64_t)((~u << unused >> unused) + 1);
        } else { /* of a large one half, the lowest bit as sticky as rounding needs it */
            v.i = (int64_t)(large ? u >> 1 | (u & 1) : u);
        }
        Number out = {0};
        const char *why = fit_number(v, to->dtype, &out);
        if (large && (dtype_is_exact(to->dtype))) {
            why = fit_number(number_real(DTYPE_F64, 0x1p63), to->dtype, &out);
        }
        if (why != NULL) {
            const char *value = large ? str_format(arena, "%llu", (unsigned long long)u)
                                      : number_text(arena, v);
            return refuse_element(ctx, arena, path, to, k, value, why);
        }
        out.re *= large ? 2 : 1;
        tensor_set(to, k, out);
    }
    return true;
}

/* The header; *data is what follows it. Why not, or null. */
static const char *read_header(Arena *arena, Str bytes, NpyHeader *h, Str *data)
{
    if (bytes.n < 10 || memcmp(bytes.at, "\x93NUMPY", 6) != 0) {
        return "not a .npy file";
    }
    const uint8_t *b = (const uint8_t *)bytes.at;
    uint32_t major = b[6];
    if (major < 1 || major > 3 || b[7] != 0 || (major > 1 && bytes.n < 12)) {
        return "a .npy version that is not 1.0, 2.0 or 3.0";
    }
    size_t start = major == 1 ? 10 : 12;
    size_t length = (size_t)b[8] | (size_t)b[9] << 8;
    length |= major == 1 ? 0 : (size_t)b[10] << 16 | (size_t)b[11] << 24;
    if (length > bytes.n - start) {
        return "the header is longer than the file";
    }
    if (length > HEADER_LIMIT || !parse_header(arena, (Str){bytes.at + start, length}, h)) {
        return "a malformed .npy header";
    }
    *data = (Str){bytes.at + start + length, bytes.n - start - length};
    return NULL;
}

/* Bytes of the elements; false: too many. */
static bool data_bytes(const NpyHeader *h, const NpyType *type, int64_t *want)
{
    bool zero = false;
    *want = type->bytes;
    for (uint32_t d = 0; d < h->rank; d++) {
        zero |= h->extent[d] == 0;
    }
    for (uint32_t d = 0; d < h->rank && !zero; d++) {
        if (!size_mul(*want, h->extent[d], want)) {
            return false;
        }
    }
    *want = zero ? 0 : *want;
    return true;
}

/* Is the file as long as its shape says? */
static bool check_size(Ctx *ctx, Arena *arena, const char *path, const NpyHeader *h,
                       const NpyType *type, size_t have)
{
    int64_t want = 0;
    if (!data_bytes(h, type, &want)) {
        (void)refuse(ctx, path, "a shape whose size overflows");
        return false;
    }
    if ((uint64_t)want != have) {
        (void)refuse(ctx, path,
                     str_format(arena, "the shape needs %lld bytes of data, the file has %zu",
                                (long long)want, have));
        return false;
    }
    return true;
}

/* The beginning of a file, and how long it is; n is 0 where it cannot be read by parts. */
static Str read_start(Arena *arena, const char *path, int64_t *bytes)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = 0;
    char *start = arena_alloc(arena, HEADER_MOST);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        *bytes = st.st_size;
        n = pread(fd, start, HEADER_MOST, 0);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return (Str){start, n < 0 ? 0 : (size_t)n};
}

const NpyFile *npy_open(Arena *arena, const char *path)
{
    NpyHeader *h = ARENA_NEW(arena, NpyHeader);
    NpyFile *file = ARENA_NEW(arena, NpyFile);
    int64_t bytes = 0, want = 0;
    Str start = read_start(arena, path, &bytes), data = {0};
    if (read_header(arena, start, h, &data) != NULL) {
        return NULL;
    }
    const NpyType *type = type_of(h);
    *file = (NpyFile){.path = path,
                      .rank = h->rank,
                      .extent = h->extent,
                      .at = (int64_t)(data.at - start.at)};
    bool as_it_is = type != NULL && type->dtype != DTYPE_NONE && h->descr.at[0] != '>' &&
                    !(h->fortran && h->rank > 1);
    if (!as_it_is || !data_bytes(h, type, &want) || want != bytes - file->at) {
        return NULL;
    }
    file->dtype = type->dtype;
    return file;
}

Tensor *npy_parse(Ctx *ctx, Arena *arena, const char *path, Str bytes, DType cast)
{
    NpyHeader *h = ARENA_NEW(arena, NpyHeader);
    Str data = {0};
    const char *why = read_header(arena, bytes, h, &data);
    if (why != NULL) {
        return refuse(ctx, path, why);
    }
    const NpyType *type = type_of(h);
    if (type == NULL) {
        return refuse_type(ctx, arena, path, h);
    }
    if (!check_size(ctx, arena, path, h, type, data.n)) {
        return NULL;
    }
    if (type->dtype == DTYPE_NONE && cast == DTYPE_NONE) {
        Diagnostic *e = diag_error(&ctx->diags, E_NPY, (Span){0}, "'%s': elements of type '%s'",
                                   path, type->name);
        diag_help(e, "--dtype=T reads them as T, one of the language's types that holds them");
        return NULL;
    }
    bool bits = cast != DTYPE_NONE && strcmp(dtype_info(cast)->numpy, type->name) == 0;
    DType has = bits ? cast : type->dtype;
    Tensor *plain = has == DTYPE_NONE ? NULL : tensor_new(ctx, arena, has, h->rank, h->extent);
    if (plain == NULL && has != DTYPE_NONE) {
        return NULL;
    }
    char *elements = plain != NULL ? plain->data : arena_alloc(arena, data.n + 1);
    if (h->fortran && h->rank > 1) {
        copy_fortran(elements, h, data.at, (int64_t)(data.n / type->bytes), type->bytes);
    } else if (data.n > 0) {
        memcpy(elements, data.at, data.n);
    }
    if (h->descr.at[0] == '>') {
        swap_bytes(elements, data.n, type->number);
    }
    for (size_t k = 0; type->dtype == DTYPE_BOOL && k < data.n; k++) {
        elements[k] = elements[k] != 0; /* any other byte is no C bool */
    }
    if (plain != NULL && (cast == DTYPE_NONE || cast == has)) {
        return plain;
    }
    Tensor *t = tensor_new(ctx, arena, cast, h->rank, h->extent);
    bool ok =
        t != NULL && (plain != NULL ? cast_elements(ctx, arena, path, plain, t)
                                    : convert_integers(ctx, arena, path, type, elements, t));
    return ok ? t : NULL;
}

Str npy_header(Arena *arena, DType dtype, uint32_t rank, const int64_t *extent)
{
    const char *name = dtype_info(dtype)->numpy;
    Text header = text_new(arena);
    text_printf(&header, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                dtype_bytes(dtype) == 1 ? '|' : '<', name);
    for (uint32_t d = 0; d < rank; d++) {
        text_printf(&header, "%s%lld%s", d == 0 ? "" : ", ", (long long)extent[d],
                    rank == 1 ? "," : "");
    }
    text_put(&header, "), }");
    while ((10 + header.n + 1) % 64 != 0) {
        text_char(&header, ' ');
    }
    text_char(&header, '\n');
    char *out = arena_alloc(arena, 10 + header.n + 1);
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (char)(header.n & 0xff);
    out[9] = (char)(header.n >> 8);
    memcpy(out + 10, header.at, header.n);
    return (Str){out, 10 + header.n};
}

Str npy_format(Arena *arena, const Tensor *t)
{
    Str header = npy_header(arena, t->dtype, t->rank, t->extent);
    size_t data = (size_t)(t->count * dtype_bytes(t->dtype));
    char *out = arena_alloc(arena, header.n + data + 1);
    memcpy(out, header.at, header.n);
    if (data > 0) {
        memcpy(out + header.n, t->data, data);
    }
    return (Str){out, header.n + data};
}
