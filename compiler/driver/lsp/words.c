/* SPDX-License-Identifier: Apache-2.0 */
/* The words of the language, with a line about each: from the tables that the front end has. */
#include <string.h>

#include "driver/lsp/names.h"

enum { FORM, REDUCTION, FOLD, DENSE, FUNCTION, FOREIGN };

static const struct {
    const char *name;
    int how;
} functions[] = {
#define NAME(kind, name, what) {name, kind},
#include "front/names.def"
};

static const struct {
    const char *name, *detail, *about;
} keywords[] = {
    {"kernel", "kernel f(x: f64[n]) -> (R: f64[n]) { R[i] = 2*x[i]; }", "one program"},
    {"dim", "dim n ~ 64;", "an extent that many kernels share: open, planned for 64"},
    {"const", "const a = 2.5;", "a number with a name"},
    {"include", "include <nn.tdsl>;", "the items of another file"},
    {"inout", "C: inout f64[m, n]", "a parameter that the kernel changes"},
    {"spill", "spill T;", "lets a value go to memory without a warning"},
    {"true", "true", "a truth value"},
    {"false", "false", "a truth value"},
};

static const struct {
    const char *name, *detail, *about;
} attributes[] = {
    {"symmetric", "symmetric(0, 1)", "equal to its transpose"},
    {"antisymmetric", "antisymmetric(0, 1)", "its transpose with the other sign"},
    {"hermitian", "hermitian(0, 1)", "the conjugate of its transpose"},
    {"antihermitian", "antihermitian(0, 1)",
     "the conjugate of its transpose with the other sign"},
    {"lower", "lower(0, 1)", "zero above the diagonal"},
    {"upper", "upper(0, 1)", "zero below the diagonal"},
    {"shard", "shard(r(m), c(k))", "a rank has a block of it"},
    {"partial", "partial", "ranks have terms of which it is the sum"},
};

static const struct {
    const char *name, *about;
} types[] = {{"float", "in a head: whatever floats the operands are"},
             {"complex", "in a head: whatever complex numbers the operands are"},
             {"int", "in a head: whatever integers the operands are"},
             {"number", "in a head: whatever numbers the operands are"}},
  numbers[] = {{"pi", "3.141592653589793"}, {"inf", "infinity"}, {"nan", "no number"}};

#define COUNT(table) (uint32_t)(sizeof(table) / sizeof(table)[0])

static LspWord function_word(Arena *arena, uint32_t k)
{
    static const char *const about[] = {
        [REDUCTION] = "folds over the indices in the brackets",
        [FOLD] = "folds over the indices in the brackets",
        [DENSE] = "a step of matrices, whose rows and columns stand in the brackets",
        [FUNCTION] = "element by element"};
    const char *name = functions[k].name;
    LspWord w = {.kind = LSP_FUNCTION, .name = name};
    if (functions[k].how != FORM) {
        w.about = about[functions[k].how];
        w.detail =
            str_format(arena, functions[k].how == FUNCTION ? "%s(x)" : "%s[i](x[i])", name);
    } else if (strcmp(name, "einsum") == 0) {
        w.detail = "einsum(\"ij,jk->ik\", A, B)";
        w.about = "a contraction as an einsum string says it";
    } else {
        bool extent = strcmp(name, "extent") == 0;
        w.detail = extent ? "extent(n)" : "index(i)";
        w.about = extent ? "the extent of a dim as a number"
                         : "the position of an index as a number, from 0";
    }
    return w;
}

static LspWord op_word(Arena *arena, Op op)
{
    static const char *const arguments[] = {"", "x", "x, y", "c, x, y"};
    const OpInfo *info = op_info(op);
    return (LspWord){.kind = LSP_FUNCTION,
                     .name = info->name,
                     .detail = str_format(arena, "%s(%s)", info->name,
                                          arguments[info->arity <= 3 ? info->arity : 0]),
                     .about = "element by element"};
}

static LspWord type_word(Arena *arena, DType t)
{
    int64_t bytes = dtype_bytes(t);
    return (LspWord){.kind = LSP_TYPE,
                     .name = dtype_name(t),
                     .about = str_format(arena, "%lld byte%s an element", (long long)bytes,
                                         bytes == 1 ? "" : "s")};
}

bool lsp_word(Arena *arena, uint32_t k, LspWord *out)
{
    *out = (LspWord){.name = NULL};
    if (k < COUNT(functions)) {
        bool ours = functions[k].how != FOREIGN;
        *out = ours ? function_word(arena, k) : *out;
        return true;
    }
    k -= COUNT(functions);
    if (k < OP_COUNT) {
        *out = op_is_function((Op)k) ? op_word(arena, (Op)k) : *out;
        return true;
    }
    k -= OP_COUNT;
    if (k < DTYPE_COUNT) {
        *out = k != DTYPE_NONE ? type_word(arena, (DType)k) : *out;
        return true;
    }
    k -= DTYPE_COUNT;
    if (k < COUNT(keywords)) {
        *out = (LspWord){LSP_WORD, keywords[k].name, keywords[k].detail, keywords[k].about};
        return true;
    }
    k -= COUNT(keywords);
    if (k < COUNT(attributes)) {
        *out = (LspWord){LSP_ATTRIBUTE, attributes[k].name, attributes[k].detail,
                         attributes[k].about};
        return true;
    }
    k -= COUNT(attributes);
    if (k < COUNT(types)) {
        *out = (LspWord){LSP_TYPE, types[k].name, NULL, types[k].about};
        return true;
    }
    k -= COUNT(types);
    if (k < COUNT(numbers)) {
        *out = (LspWord){LSP_CONSTANT, numbers[k].name, numbers[k].name, numbers[k].about};
        return true;
    }
    return false;
}

const char *lsp_kind_word(LspKind kind)
{
    static const char *const words[] = {
#define LSP_KIND(id, word, token) word,
#include "driver/lsp/kinds.def"
    };
    return words[kind];
}
