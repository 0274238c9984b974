/* SPDX-License-Identifier: Apache-2.0 */
/* See input.h. */
#include "driver/input.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/map.h"
#include "driver/files.h"
#include "front/check.h"
#include "front/einsum.h"
#include "graph/build.h"
#include "dump/tree.h"
#include "path/prepare.h"

/* An input larger than this is refused: exit 4. */
#define INPUT_LIMIT ((size_t)64 << 20)

/* ---- --shape and -D ---- */

static bool parse_shape(Ctx *ctx, Arena *arena, const char *text, DType dtype, TensorType *out)
{
    VEC(Dim) dims = {0};
    for (const char *at = text; *text != '\0'; at++) {
        const char *end = at + strcspn(at, "x");
        int64_t n = 0;
        bool open = *at == '?', planned = open && at[1] == '~';
        const char *digits = at + (planned ? 2 : open ? 1 : 0);
        bool number = planned || !open;
        char *word = str_dup(arena, (Str){digits, (size_t)(end - digits)});
        if (number ? !parse_i64(word, &n) || n < (planned ? 1 : 0) || n > SIZE_LIMIT
                   : word[0] != '\0') {
            return diag_refuse(
                &ctx->diags, E_EXTENT_RANGE, (Span){0},
                "'--shape=%s': extents from 0 to 2^62 joined by 'x', or '?', or '?~N', "
                "are expected",
                text);
        }
        if (dims.n == RANK_LIMIT) {
            return diag_refuse_limit(&ctx->diags, E_LIMIT_SIZE, (Span){0},
                                     "'--shape': more than %d dimensions", RANK_LIMIT);
        }
        vec_push(arena, &dims, open ? DIM_WILD(n) : dim_fixed(n));
        at = end;
        if (*at == '\0') {
            break;
        }
    }
    *out = (TensorType){dtype, dims.n, dims.at};
    return true;
}

bool input_shapes(Ctx *ctx, Arena *arena, const Options *o, DType dtype, TensorType **out,
                  uint32_t *n)
{
    const OptionValues *v = &o->given[OPT_SHAPE];
    *n = v->at.n;
    *out = ARENA_ARRAY(arena, *n, TensorType);
    for (uint32_t k = 0; k < *n; k++) {
        if (!parse_shape(ctx, arena, v->at.at[k], dtype, &(*out)[k])) {
            return false;
        }
    }
    return true;
}

bool input_narrow(Ctx *ctx, const Options *o, FrontNarrow *narrow)
{
    const char *to = option_last(o, OPT_F64, NULL);
    bool sums = to != NULL && strcmp(to, "sums") == 0;
    *narrow = to == NULL ? NARROW_NONE : sums ? NARROW_BUT_RESULTS : NARROW_ALL;
    if (to != NULL && !sums && strcmp(to, "f32") != 0) {
        return diag_refuse(
            &ctx->diags, E_BAD_TYPE, (Span){0},
            "'--f64=%s': f64 is read as f32 or not at all; --f64=sums leaves results", to);
    }
    return true;
}

bool input_defines(Ctx *ctx, Arena *arena, const Options *o, FrontDefine **out, uint32_t *n)
{
    const OptionValues *v = &o->given[OPT_DEFINE];
    FrontDefine *defines = ARENA_ARRAY(arena, v->at.n, FrontDefine);
    Map by_name;
    map_init(&by_name, arena);
    for (uint32_t k = 0; k < v->at.n; k++) {
        const char *equals = strpbrk(v->at.at[k], "=~");
        defines[k].planned = equals != NULL && *equals == '~';
        if (equals == NULL || equals == v->at.at[k] ||
            !parse_i64(equals + 1, &defines[k].value) ||
            defines[k].value < (defines[k].planned ? 1 : 0) || defines[k].value > SIZE_LIMIT) {
            return diag_refuse(&ctx->diags, E_EXTENT_RANGE, (Span){0},
                               "'-D %s': DIM=N with N from 0 to 2^62, or DIM~N, is expected",
                               v->at.at[k]);
        }
        Str name = {v->at.at[k], (size_t)(equals - v->at.at[k])};
        defines[k].name = str_dup(arena, name);
        uint32_t id = sym_intern(&ctx->syms, name.at, name.n)->id, first = 0;
        if (map_get(&by_name, id, &first)) {
            return diag_refuse(&ctx->diags, E_DUPLICATE_NAME, (Span){0},
                               "'%s' is given twice, by -D %s and -D %s", defines[k].name,
                               v->at.at[first], v->at.at[k]);
        }
        map_put(&by_name, id, k);
    }
    *out = defines;
    *n = v->at.n;
    return true;
}

/* -D of an equation: nothing is bound, but a mistake is one all the same. */
static bool check_defines(const Input *in)
{
    FrontDefine *defines = NULL;
    uint32_t n = 0;
    return input_defines(in->ctx, in->arena, in->options, &defines, &n);
}

/* ---- files ---- */

static IncludeStatus read_include(void *user, const char *path, Str *text, const char **why)
{
    Input *in = user;
    struct stat st;
    if (in->edited != NULL && in->edited(in->editor, path, text, why) == INCLUDE_READ) {
        return INCLUDE_READ;
    }
    if (stat(path, &st) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
        return INCLUDE_ABSENT;
    }
    if (!file_read(in->arena, path, INPUT_LIMIT, text, why)) {
        return INCLUDE_REFUSED;
    }
    vec_push(in->arena, &in->files, str_dup(in->arena, str_from(path)));
    return INCLUDE_READ;
}

/* ---- programs, and dumps that are programs ---- */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Tokens, AST and checked programs are dumped as TDSL; the first line, a comment, ends with the name of the program:
 * `// tdsl-dump ast 1 "tour.tdsl"`, quoted as text_quoted does. Null when `text` does not start so. */
static const char *dumped_name(Arena *arena, Str text)
{
    static const char head[] = "// tdsl-dump ";
    if (text.n < sizeof head - 1 || memcmp(text.at, head, sizeof head - 1) != 0) {
        return NULL;
    }
    const char *newline = memchr(text.at, '\n', text.n);
    const char *end = newline == NULL ? text.at + text.n : newline;
    const char *at = memchr(text.at, '"', (size_t)(end - text.at));
    if (at == NULL || ++at == end || end[-1] != '"') {
        return NULL;
    }
    char *name = arena_alloc(arena, (size_t)(end - at));
    for (size_t n = 0; at < end - 1; at++) {
        char c = *at;
        if (c == '\\' && at + 2 < end) {
            c = *++at == 'n' ? '\n' : *at == 't' ? '\t' : *at;
            if (c == 'x' && at + 3 < end && hex_digit(at[1]) >= 0 && hex_digit(at[2]) >= 0) {
                c = (char)(hex_digit(at[1]) << 4 | hex_digit(at[2]));
                at += 2;
            }
        }
        name[n++] = c;
    }
    return name;
}

bool input_text(Input *in, const char *name, Str text)
{
    Ctx *ctx = in->ctx;
    const char *dumped = dumped_name(in->arena, text);
    in->name = name;
    in->program_name = dumped == NULL ? name : dumped;
    in->source = source_add(&ctx->sources, name, text, (Span){0});
    Stage known = STAGE_NONE;
    const char *stage = dump_stage(text, in->arena);
    bool is_program =
        stage != NULL && stage_from_name(stage, &known) && stage_form(known) == FORM_TEXT;
    FrontDefine *defines = NULL;
    uint32_t n_defines = 0;
    if (!input_defines(ctx, in->arena, in->options, &defines, &n_defines)) {
        return false;
    }
    if (stage != NULL && !is_program) {
        in->dump = stage;
        return true;
    }
    FrontOptions options = {.reader = read_include, .user = in};
    const OptionValues *dirs = &in->options->given[OPT_INCLUDE];
    options.include_dirs = dirs->at.at;
    options.n_include_dirs = dirs->at.n;
    options.defines = defines;
    options.n_defines = n_defines;
    if (!input_narrow(ctx, in->options, &options.narrow)) {
        return false;
    }
    in->program = program_check(ctx, in->source, &options);
    return ctx->diags.n_errors == 0;
}

/* A kernel's name as a .tdsl file would have it: every later dump and text relies on that. */
static bool check_name(Input *in, const char *name)
{
    bool ok = name == NULL || ((name[0] < '0' || name[0] > '9') && name[0] != '\0');
    for (const char *at = name; ok && at != NULL && *at != '\0'; at++) {
        ok = *at == '_' || (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'z') ||
             (*at >= 'A' && *at <= 'Z');
    }
    if (!ok) {
        diag_error(&in->ctx->diags, E_ARGUMENT_VALUE, (Span){0},
                   "'--name=%s': a name of letters, digits and '_' that starts with no digit "
                   "is expected",
                   name);
    }
    return ok;
}

static bool read_equation(Input *in, const TensorType *shapes, uint32_t n_shapes)
{
    const char *text = option_last(in->options, OPT_EQUATION, "");
    const char *name = option_last(in->options, OPT_NAME, NULL);
    if (!check_name(in, name) || !check_defines(in)) {
        return false;
    }
    in->name = "-e";
    in->source = source_add(&in->ctx->sources, "-e", str_from(text), (Span){0});
    DType dtype = DTYPE_F32;
    TensorType *made = NULL;
    const char *type = option_last(in->options, OPT_DTYPE, "f32");
    FrontNarrow narrow = NARROW_NONE;
    if (!input_narrow(in->ctx, in->options, &narrow)) {
        return false;
    }
    if (shapes == NULL) {
        if (!dtype_from_name(str_from(type), &dtype)) {
            const char *meant = dtype_meant(str_from(type));
            Diagnostic *d = diag_error(&in->ctx->diags, E_BAD_TYPE, (Span){0},
                                       "unknown element type '--dtype=%s'", type);
            if (meant != NULL) {
                diag_help(d, "did you mean '%s'?", meant);
            } else {
                diag_help(d, "there are %s", dtype_names());
            }
            return false;
        }
        dtype = narrow != NARROW_NONE ? dtype_narrower(dtype) : dtype;
        if (!input_shapes(in->ctx, in->arena, in->options, dtype, &made, &n_shapes)) {
            return false;
        }
        shapes = made;
    }
    if (n_shapes > 0 && shapes != made) {
        dtype = shapes[0].dtype; /* of the arrays */
    }
    Equation equation = {in->source, n_shapes, shapes, dtype, name};
    in->module = graph_from_equation(in->ctx, in->arena, &equation);
    return in->module != NULL && in->ctx->diags.n_errors == 0;
}

bool input_read(Input *in, const TensorType *shapes, uint32_t n_shapes)
{
    if (option_given(in->options, OPT_EQUATION)) {
        return read_equation(in, shapes, n_shapes);
    }
    const char *path = in->options->positional.at[0];
    Str text = {0};
    const char *why = NULL;
    if (!file_read(in->arena, path, INPUT_LIMIT, &text, &why)) {
        return diag_refuse(&in->ctx->diags, E_FILE, (Span){0}, "%s", why);
    }
    vec_push(in->arena, &in->files, path);
    return input_text(in, strcmp(path, "-") == 0 ? "<stdin>" : path, text);
}

Module *input_build(Input *in, const char *only_kernel)
{
    if (in->module == NULL) {
        in->module = module_build(in->ctx, in->arena, in->program, only_kernel);
        if (in->module != NULL) {
            in->module->source_name = in->program_name;
        }
    }
    return in->ctx->diags.n_errors == 0 ? in->module : NULL;
}

/* ---- contraction order without a graph ---- */

bool input_path_problem(Input *in, struct PathProblem *out)
{
    Ctx *ctx = in->ctx;
    const char *text = option_last(in->options, OPT_EQUATION, "");
    in->source = source_add(&ctx->sources, "-e", str_from(text), (Span){0});
    TensorType *shapes = NULL;
    uint32_t n = 0;
    EinsumText *parsed =
        einsum_read(ctx, in->arena, (Span){in->source, 0, (uint32_t)strlen(text)});
    if (parsed == NULL || !check_defines(in) ||
        !input_shapes(ctx, in->arena, in->options, DTYPE_F64, &shapes, &n)) {
        return false;
    }
    EinsumOperand *operands = ARENA_ARRAY(in->arena, n, EinsumOperand);
    for (uint32_t k = 0; k < n; k++) {
        operands[k].type = shapes[k];
    }
    DimTable dims = {0};
    EinsumSpec *spec = einsum_resolve(ctx, in->arena, parsed, &dims, operands, n);
    if (spec == NULL) {
        return false;
    }
    PathSourceOperand *list = ARENA_ARRAY(in->arena, n, PathSourceOperand);
    uint32_t *place = ARENA_ARRAY(in->arena, n, uint32_t), tensors = 0;
    for (uint32_t k = 0; k < n; k++) {
        int32_t *label = ARENA_ARRAY(in->arena, shapes[k].rank, int32_t);
        for (uint32_t d = 0; d < shapes[k].rank; d++) {
            label[d] = dim_is(shapes[k].dims[d], 1) ? -1 : spec->axis[k][d];
        }
        if (shapes[k].rank > 0) {
            place[tensors] = k;
            list[tensors++] = (PathSourceOperand){shapes[k].rank, label};
        }
    }
    uint32_t *output = ARENA_ARRAY(in->arena, spec->rank, uint32_t);
    for (uint32_t d = 0; d < spec->rank; d++) {
        output[d] = (uint32_t)spec->out[d];
    }
    int64_t *sizes = ARENA_ARRAY(in->arena, spec->n_labels, int64_t);
    const char **names = ARENA_ARRAY(in->arena, spec->n_labels, const char *);
    PathSource source = {.n_operands = tensors,
                         .operands = list,
                         .place = place,
                         .n_given = n,
                         .rank = spec->rank,
                         .output = output,
                         .n_labels = spec->n_labels,
                         .sizes = sizes,
                         .names = names,
                         .equation = text};
    for (uint32_t l = 0; l < spec->n_labels; l++) {
        bool open = dim_is_wild(spec->label[l].extent);
        int64_t extent = spec->label[l].extent.n;
        sizes[l] = open && extent == 0 ? DIM_TYPICAL_DEFAULT : extent;
        names[l] = spec->label[l].name->text;
        source.typical |= open;
    }
    *out = path_prepare(&source, in->arena, NULL);
    return true;
}
