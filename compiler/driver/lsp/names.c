/* SPDX-License-Identifier: Apache-2.0 */
/* See names.h. Values, dims, indices and functions are spaces of their own; which one a name is looked up in, its place
 * says, and between brackets the rule of front/check_position.c: a name there is an index if its statement has one of
 * that name, else a dim or a constant. */
#include "driver/lsp/names.h"

#include <stdlib.h>
#include <string.h>

typedef enum Place { PLACE_VALUE, PLACE_INDEX, PLACE_EXTENT } Place;

typedef struct Binder {
    Ctx *ctx;
    const Program *p;
    LspNames *out;
    bool uses; /* of the main file: note them */
    Map words, kernels, globals;
    Map checked;            /* the place of a kernel -> its number in the checked program */
    Map values, dims, axes; /* of the kernel */
    uint32_t kernel;
    Map indices; /* of the statement */
    Map is_index;
    Span statement;
    Map types;  /* of the kernel: a value's name -> its place in the checked one */
    Map labels; /* a label's name and the statement's offset -> place in `extents` */
    VEC(const char *) extents;
    bool on_left;
    AstId right; /* of the statement */
    Map times;   /* that statements of the kernel assign a value */
} Binder;

static const AstNode *node(const Binder *b, AstId id)
{
    return ast_node(&b->p->ast, id);
}

static uint32_t symbol_new(Binder *b, LspSymbol s)
{
    vec_push(&b->ctx->arena, &b->out->symbols, s);
    return b->out->symbols.n - 1;
}

static LspSymbol *symbol_at(Binder *b, uint32_t symbol)
{
    return &b->out->symbols.at[symbol];
}

static void use(Binder *b, Span at, uint32_t symbol, bool writes)
{
    if (b->uses && at.source == b->p->source && at.lo < at.hi) {
        vec_push(&b->ctx->arena, &b->out->uses, ((LspUse){at, symbol, writes}));
    }
}

static const char *source_text(Binder *b, Span span)
{
    Str text = source_get(&b->ctx->sources, span.source)->text;
    Text out = text_new(&b->ctx->arena);
    bool blank = false;
    for (uint32_t k = span.lo; k < span.hi && k < text.n && out.n < 400; k++) {
        bool space = strchr(" \t\r\n\f\v", text.at[k]) != NULL && text.at[k] != '\0';
        if (!space) {
            text_put(&out, blank && out.n > 0 ? " " : "");
            text_char(&out, text.at[k]);
        }
        blank = space;
    }
    return out.at;
}

/* ---- names of each space ---- */

static bool word_use(Binder *b, Sym name, Span at)
{
    uint32_t s = 0;
    bool known = map_get(&b->words, name->id, &s);
    if (known) {
        use(b, at, s, false);
    }
    return known;
}

static void kernel_use(Binder *b, Sym name, Span at)
{
    uint32_t s = 0;
    if (map_get(&b->kernels, name->id, &s)) {
        use(b, at, s, false);
    }
}

static void dim_use(Binder *b, Sym name, Span at)
{
    uint32_t s = 0;
    if (!map_get(&b->globals, name->id, &s) && !map_get(&b->dims, name->id, &s)) {
        s = symbol_new(b,
                       (LspSymbol){.kind = LSP_DIM,
                                   .name = name,
                                   .kernel = b->kernel,
                                   .at = at,
                                   .detail = str_format(&b->ctx->arena, "dim %s", name->text),
                                   .about = "open, of this kernel alone"});
        map_put(&b->dims, name->id, s);
    }
    use(b, at, s, false);
}

static void value_use(Binder *b, Sym name, Span at, bool writes)
{
    uint32_t s = 0;
    if (map_get(&b->values, name->id, &s) || map_get(&b->globals, name->id, &s)) {
        use(b, at, s, writes);
    } else {
        (void)word_use(b, name, at);
    }
}

static uint64_t label_key(Sym name, Span statement)
{
    return hash_mix(name->id, statement.lo);
}

static void index_use(Binder *b, Sym name, Span at)
{
    uint32_t s = 0, extent = 0;
    if (!map_get(&b->indices, name->id, &s)) {
        const char *detail = NULL;
        if (map_get(&b->labels, label_key(name, b->statement), &extent)) {
            detail = str_format(&b->ctx->arena, "%s < %s", name->text, b->extents.at[extent]);
        }
        s = symbol_new(b, (LspSymbol){.kind = LSP_INDEX,
                                      .name = name,
                                      .kernel = b->kernel,
                                      .at = at,
                                      .statement = b->statement,
                                      .detail = detail,
                                      .about = "index of this statement"});
        map_put(&b->indices, name->id, s);
    }
    use(b, at, s, false);
}

/* ---- which names of a statement are indices ---- */

static bool is_dim(const Binder *b, Sym name)
{
    uint32_t s = 0;
    return map_get(&b->dims, name->id, &s) || map_get(&b->globals, name->id, &s);
}

/* A whole number of the kernel, which may stand for a position. */
static bool is_scalar(Binder *b, Sym name)
{
    uint32_t s = 0;
    if (!map_get(&b->values, name->id, &s) || symbol_at(b, s)->detail == NULL) {
        return false;
    }
    const char *type = strchr(symbol_at(b, s)->detail, ':');
    return type != NULL && strchr(type, '[') == NULL;
}

static Sym first_index(Binder *b, AstId id)
{
    const AstNode *n = node(b, id);
    uint32_t known = 0;
    if (n->kind == AST_NAME) {
        return map_get(&b->is_index, n->name->id, &known) || !is_dim(b, n->name) ? n->name
                                                                                 : NULL;
    }
    Sym found = NULL;
    for (uint32_t c = n->kind == AST_INDEXED ? 1 : 0;
         c < n->n && found == NULL && n->kind != AST_CALL; c++) {
        found = first_index(b, n->child[c]);
    }
    return found;
}

static bool has_name(const Binder *b, AstId id, Sym name)
{
    const AstNode *n = node(b, id);
    bool any = n->kind == AST_NAME && n->name == name;
    for (uint32_t c = 0; c < n->n && !any; c++) {
        any = has_name(b, n->child[c], name);
    }
    return any;
}

/* `x[b,n] = 0;` of a value that is assigned elsewhere too: what the steps of a recurrence begin with, behind the last position. */
static bool is_last_position(const Binder *b, const AstNode *left, Sym name)
{
    uint32_t times = 0;
    return left->name != NULL && map_get(&b->times, left->name->id, &times) && times > 1 &&
           is_dim(b, name) && !has_name(b, b->right, name);
}

static void find_indices(Binder *b, AstId id, bool left)
{
    const AstNode *n = node(b, id);
    bool brackets = n->kind == AST_INDEXED || n->kind == AST_REDUCE;
    for (uint32_t c = 0; c < n->n; c++) {
        const AstNode *child = node(b, n->child[c]);
        Sym name = NULL;
        if (brackets && c > 0 && child->kind == AST_NAME) {
            bool number = n->kind == AST_INDEXED && (left ? is_last_position(b, n, child->name)
                                                          : is_scalar(b, child->name));
            name = number ? NULL : child->name;
        } else if (brackets && c > 0 && child->kind == AST_COMPARE) {
            const AstNode *first = node(b, child->child[0]);
            name = first->kind == AST_NAME ? first->name : first_index(b, child->child[0]);
        } else if (brackets && c > 0 && child->kind == AST_GROUP) {
            for (uint32_t g = 0; g < child->n; g++) {
                const AstNode *member = node(b, child->child[g]);
                if (member->kind == AST_NAME) {
                    map_put(&b->is_index, member->name->id, 1);
                }
            }
        }
        if (name != NULL) {
            map_put(&b->is_index, name->id, 1);
        }
        find_indices(b, n->child[c], n->kind == AST_ASSIGN ? c == 0 : left);
    }
}

/* ---- expressions ---- */

static void walk(Binder *b, AstId id, Place place);

static void walk_children(Binder *b, const AstNode *n, uint32_t from, Place place)
{
    for (uint32_t c = from; c < n->n; c++) {
        walk(b, n->child[c], place);
    }
}

static void walk_name(Binder *b, const AstNode *n, Place place)
{
    uint32_t known = 0;
    if (place == PLACE_VALUE) {
        value_use(b, n->name, n->at, false);
    } else if (place == PLACE_EXTENT) {
        dim_use(b, n->name, n->at);
    } else if (map_get(&b->is_index, n->name->id, &known) ||
               map_get(&b->indices, n->name->id, &known)) {
        index_use(b, n->name, n->at);
    } else if (is_dim(b, n->name) && !is_scalar(b, n->name)) {
        dim_use(b, n->name, n->at);
    } else if (is_scalar(b, n->name)) {
        value_use(b, n->name, n->at, false);
    } else if (b->on_left) {
        index_use(b, n->name, n->at);
    } else {
        value_use(b, n->name, n->at, false);
    }
}

static bool names_index(const Binder *b, AstId id)
{
    const AstNode *n = node(b, id);
    uint32_t known = 0;
    bool any = n->kind == AST_NAME && map_get(&b->indices, n->name->id, &known);
    for (uint32_t c = 0; c < n->n && !any; c++) {
        any = names_index(b, n->child[c]);
    }
    return any;
}

/* What stands between brackets. `i < n`, of an index that is new there, gives it an extent: names of indices and dims may be the same
 * (front/check_position.c, position_item). */
static void walk_listed(Binder *b, const AstNode *n, uint32_t from)
{
    for (uint32_t c = from; c < n->n; c++) {
        const AstNode *item = node(b, n->child[c]);
        const AstNode *first = item->kind == AST_COMPARE ? node(b, item->child[0]) : item;
        uint32_t known = 0;
        bool range = item->kind == AST_COMPARE && first->kind == AST_NAME &&
                     (item->op == OP_LT || item->op == OP_LE) &&
                     !map_get(&b->indices, first->name->id, &known) &&
                     !names_index(b, item->child[1]);
        if (range) {
            index_use(b, first->name, first->at);
            walk(b, item->child[1], PLACE_EXTENT);
        } else {
            walk(b, n->child[c], PLACE_INDEX);
        }
    }
}

/* In a position names of arguments are those of positions, mod(j + 1, m). */
static void walk_call(Binder *b, const AstNode *n, Place place)
{
    if (!word_use(b, n->name, n->at)) {
        kernel_use(b, n->name, n->at);
    }
    bool index = strcmp(n->name->text, "index") == 0;
    bool extent = strcmp(n->name->text, "extent") == 0;
    for (uint32_t c = 0; c < n->n; c++) {
        const AstNode *child = node(b, n->child[c]);
        if (child->kind == AST_NAME && index) {
            index_use(b, child->name, child->at);
        } else {
            walk(b, n->child[c], extent ? PLACE_EXTENT : index ? PLACE_INDEX : place);
        }
    }
}

static void walk(Binder *b, AstId id, Place place)
{
    const AstNode *n = node(b, id);
    switch (n->kind) {
    case AST_NAME:
        walk_name(b, n, place);
        return;
    case AST_INDEXED: {
        const AstNode *base = node(b, n->child[0]);
        if (base->kind == AST_NAME) {
            value_use(b, base->name, base->at, false);
        } else {
            walk(b, n->child[0], PLACE_VALUE);
        }
        walk_listed(b, n, 1);
        return;
    }
    case AST_CALL:
        walk_call(b, n, place);
        return;
    case AST_REDUCE:
        if (!word_use(b, n->name, n->at)) {
            kernel_use(b, n->name, n->at);
        }
        walk_listed(b, n, 1);
        walk(b, n->child[0], PLACE_VALUE);
        return;
    default:
        walk_children(b, n, 0, place);
    }
}

static void walk_type(Binder *b, AstId id, bool extents)
{
    const AstNode *n = node(b, id);
    if (n->kind == AST_TYPE) {
        (void)word_use(b, n->name, n->at);
        for (uint32_t c = 0; extents && c < n->n; c++) {
            walk(b, n->child[c], PLACE_EXTENT);
        }
    }
}

/* ---- statements ---- */

static void walk_left(Binder *b, AstId id)
{
    const AstNode *n = node(b, id);
    if (n->kind == AST_NAME) {
        value_use(b, n->name, n->at, true);
    } else if (n->kind == AST_INDEXED) {
        walk_left(b, n->child[0]);
        b->on_left = true;
        walk_listed(b, n, 1);
        b->on_left = false;
    } else if (n->kind == AST_GROUP) {
        for (uint32_t c = 0; c < n->n; c++) {
            walk_left(b, n->child[c]);
        }
    }
}

static void walk_statement(Binder *b, AstId id)
{
    const AstNode *n = node(b, id);
    b->statement = n->span;
    map_init(&b->indices, &b->ctx->arena);
    map_init(&b->is_index, &b->ctx->arena);
    if (n->kind == AST_SPILL) {
        walk_children(b, n, 0, PLACE_VALUE);
    } else if (n->kind == AST_ASSIGN) {
        b->right = n->child[1];
        find_indices(b, id, false);
        walk_left(b, n->child[0]);
        if (n->n > 2) { /* its extents are the indices on the left */
            walk_type(b, n->child[2], false);
        }
        walk(b, n->child[1], PLACE_VALUE);
    }
}

/* ---- heads ---- */

static void walk_attribute(Binder *b, const AstNode *n)
{
    if (n->name == NULL) {
        return;
    }
    (void)word_use(b, n->name, n->at);
    bool shard = strcmp(n->name->text, "shard") == 0;
    for (uint32_t c = 0; shard && c < n->n; c++) {
        const AstNode *child = node(b, n->child[c]);
        if (child->kind != AST_CALL) {
            walk(b, n->child[c], PLACE_EXTENT);
            continue;
        }
        uint32_t s = 0;
        if (!map_get(&b->axes, child->name->id, &s)) {
            s = symbol_new(b, (LspSymbol){.kind = LSP_AXIS,
                                          .name = child->name,
                                          .kernel = b->kernel,
                                          .at = child->at,
                                          .about = "an axis of the mesh of ranks"});
            map_put(&b->axes, child->name->id, s);
        }
        use(b, child->at, s, false);
        walk_children(b, child, 0, PLACE_EXTENT);
    }
}

static void walk_params(Binder *b, AstId id)
{
    const AstNode *list = node(b, id);
    for (uint32_t k = 0; k < list->n; k++) {
        const AstNode *n = node(b, list->child[k]);
        uint32_t s = 0;
        if (n->kind != AST_PARAM) {
            continue;
        }
        if (map_get(&b->values, n->name->id, &s)) {
            use(b, n->at, s, false);
        }
        walk_type(b, n->child[0], true);
        for (uint32_t c = 1; c < n->n; c++) {
            walk_attribute(b, node(b, n->child[c]));
        }
    }
}

static void declare_params(Binder *b, AstId id, LspKind kind)
{
    const AstNode *list = node(b, id);
    for (uint32_t k = 0; k < list->n; k++) {
        const AstNode *n = node(b, list->child[k]);
        uint32_t s = 0;
        if (n->kind == AST_PARAM && !map_get(&b->values, n->name->id, &s)) {
            s = symbol_new(b, (LspSymbol){.kind = kind,
                                          .name = n->name,
                                          .kernel = b->kernel,
                                          .at = n->at,
                                          .detail = source_text(b, n->span),
                                          .about = n->flag ? "changed by the kernel" : NULL});
            map_put(&b->values, n->name->id, s);
        }
    }
}

static const char *type_text(Binder *b, const CheckedKernel *k, const Value *value)
{
    Text t = text_new(&b->ctx->arena);
    text_printf(&t, "%s: %s", value->name->text, dtype_name(value->type.dtype));
    for (uint32_t d = 0; d < value->type.rank; d++) {
        text_put(&t, d == 0 ? "[" : ", ");
        dim_put(&t, &k->dims, value->type.dims[d], NULL);
    }
    text_put(&t, value->type.rank > 0 ? "]" : "");
    return t.at;
}

/* The first value of each name that has a type. */
static void find_types(Binder *b, const CheckedKernel *k)
{
    map_init(&b->types, &b->ctx->arena);
    for (uint32_t v = 0; k != NULL && v < k->values.n; v++) {
        const Value *value = &k->values.at[v];
        uint32_t before = 0;
        if (value->name != NULL && value->type.dtype != DTYPE_NONE &&
            !map_get(&b->types, value->name->id, &before)) {
            map_put(&b->types, value->name->id, v);
        }
    }
}

static void declare_left(Binder *b, AstId id, const CheckedKernel *k)
{
    const AstNode *n = node(b, id);
    uint32_t s = 0;
    if (n->kind == AST_GROUP) {
        for (uint32_t c = 0; c < n->n; c++) {
            declare_left(b, n->child[c], k);
        }
    }
    if ((n->kind == AST_NAME || n->kind == AST_INDEXED) && n->name != NULL &&
        !map_get(&b->values, n->name->id, &s)) {
        bool typed = map_get(&b->types, n->name->id, &s);
        const char *detail = typed ? type_text(b, k, &k->values.at[s]) : NULL;
        s = symbol_new(b, (LspSymbol){.kind = LSP_VALUE,
                                      .name = n->name,
                                      .kernel = b->kernel,
                                      .at = n->at,
                                      .detail = detail});
        map_put(&b->values, n->name->id, s);
    }
}

/* Extents of the indices of statements, as the checked kernel has them. */
static void find_extents(Binder *b, const AstNode *body, const CheckedKernel *k)
{
    map_init(&b->labels, &b->ctx->arena);
    for (uint32_t s = 0; k != NULL && s < k->statements.n; s++) {
        const CheckedStatement *st = &k->statements.at[s];
        for (uint32_t l = 0; l < st->n_labels; l++) {
            const Label *label = &st->label[l];
            uint32_t lo = 0, hi = body->n, before = 0;
            while (hi - lo > 1) { /* the statement that the label stands in */
                uint32_t middle = lo + (hi - lo) / 2;
                bool below = node(b, body->child[middle])->span.lo <= label->span.lo;
                lo = below ? middle : lo;
                hi = below ? hi : middle;
            }
            if (label->name == NULL || body->n == 0 ||
                label->span.source != node(b, body->child[lo])->span.source) {
                continue;
            }
            uint64_t key = label_key(label->name, node(b, body->child[lo])->span);
            if (!map_get(&b->labels, key, &before)) {
                Text t = text_new(&b->ctx->arena);
                dim_put(&t, &k->dims, label->extent, NULL);
                map_put(&b->labels, key, b->extents.n);
                vec_push(&b->ctx->arena, &b->extents, t.at);
            }
        }
    }
}

static void enter_kernel(Binder *b, uint32_t kernel)
{
    b->kernel = kernel;
    map_init(&b->values, &b->ctx->arena);
    map_init(&b->dims, &b->ctx->arena);
    map_init(&b->axes, &b->ctx->arena);
    map_init(&b->times, &b->ctx->arena);
    map_init(&b->indices, &b->ctx->arena);
    map_init(&b->is_index, &b->ctx->arena);
}

static void walk_kernel(Binder *b, const AstNode *n, uint32_t kernel)
{
    const CheckedKernel *checked = b->out->kernels.at[kernel].checked;
    enter_kernel(b, kernel);
    declare_params(b, n->child[0], LSP_PARAMETER);
    declare_params(b, n->child[1], LSP_RESULT);
    find_types(b, checked);
    const AstNode *body = node(b, n->child[2]);
    for (uint32_t s = 0; s < body->n; s++) {
        const AstNode *statement = node(b, body->child[s]);
        if (statement->kind == AST_ASSIGN) {
            const AstNode *left = node(b, statement->child[0]);
            uint32_t times = 0;
            if (left->name != NULL) {
                (void)map_get(&b->times, left->name->id, &times);
                map_put(&b->times, left->name->id, times + 1);
            }
            declare_left(b, statement->child[0], checked);
        }
    }
    find_extents(b, body, checked);
    walk_params(b, n->child[0]);
    walk_params(b, n->child[1]);
    for (uint32_t s = 0; s < body->n; s++) {
        walk_statement(b, body->child[s]);
    }
}

/* `kernel dE = grad E(x) with E;`: x and E are names of the kernel E. */
static void walk_gradient(Binder *b, const AstNode *n, uint32_t kernel)
{
    const AstNode *of = node(b, n->child[1]);
    uint32_t s = 0;
    enter_kernel(b, kernel);
    use(b, node(b, n->child[0])->at,
        symbol_new(b, (LspSymbol){.kind = LSP_WORD,
                                  .name = node(b, n->child[0])->name,
                                  .kernel = LSP_NO_KERNEL,
                                  .about = "the derivative of a kernel"}),
        false);
    kernel_use(b, of->name, of->at);
    if (!map_get(&b->kernels, of->name->id, &s)) {
        return;
    }
    uint32_t other = symbol_at(b, s)->kernel;
    for (uint32_t k = 0; k < b->out->symbols.n; k++) {
        const LspSymbol *x = symbol_at(b, k);
        if (x->kernel == other && (x->kind == LSP_PARAMETER || x->kind == LSP_RESULT)) {
            map_put(&b->values, x->name->id, k);
        }
    }
    walk(b, n->child[2], PLACE_VALUE);
    if (n->n == 5) {
        walk(b, n->child[4], PLACE_VALUE);
    }
}

/* ---- items ---- */

static uint64_t place_key(Span at)
{
    return (uint64_t)at.source << 32 | at.lo;
}

static const CheckedKernel *checked_kernel(const Binder *b, const AstNode *n)
{
    uint32_t k = 0;
    return map_get(&b->checked, place_key(n->at), &k) ? b->p->kernels.at[k] : NULL;
}

static void declare_item(Binder *b, AstId id)
{
    const AstNode *n = node(b, id);
    bool kernel = n->kind == AST_KERNEL || n->kind == AST_GRADIENT;
    uint32_t before = 0;
    if (n->kind == AST_INCLUDE && n->n > 0) {
        const AstNode *file = node(b, n->child[0]);
        b->out->includes = b->out->includes || !n->flag;
        for (uint32_t k = 0; k < file->n; k++) {
            declare_item(b, file->child[k]);
        }
    }
    if (n->kind != AST_DIM && n->kind != AST_CONST && !kernel) {
        return;
    }
    LspSymbol s = {.kind = kernel               ? LSP_KERNEL
                           : n->kind == AST_DIM ? LSP_DIM
                                                : LSP_CONSTANT,
                   .name = n->name,
                   .kernel = kernel ? b->out->kernels.n : LSP_NO_KERNEL,
                   .at = n->at};
    if (n->kind == AST_KERNEL) {
        Text head = text_new(&b->ctx->arena);
        ast_dump_head(&b->p->ast, id, &head);
        s.detail = head.at;
    } else {
        s.detail = str_format(&b->ctx->arena, "%s%s", n->kind == AST_DIM ? "dim " : "",
                              source_text(b, n->span));
    }
    s.about = n->kind != AST_DIM   ? NULL
              : n->op == OP_EXTENT ? "open: known at each call"
              : n->op == OP_COPY   ? "open, planned for this size"
                                   : "fixed";
    Map *map = kernel ? &b->kernels : &b->globals;
    uint32_t symbol = symbol_new(b, s);
    if (!map_get(map, n->name->id, &before)) {
        map_put(map, n->name->id, symbol);
    }
    if (kernel) {
        LspKernel k = {n->name, n->span, n->at, symbol, checked_kernel(b, n)};
        vec_push(&b->ctx->arena, &b->out->kernels, k);
    }
}

static void walk_item(Binder *b, AstId id, uint32_t *kernel)
{
    const AstNode *n = node(b, id);
    uint32_t s = 0;
    if (n->kind == AST_INCLUDE) {
        Span file = {n->n > 0 ? node(b, n->child[0])->span.source : 0, 0, 0};
        use(b, n->at,
            symbol_new(b, (LspSymbol){.kind = LSP_FILE,
                                      .name = n->name,
                                      .kernel = LSP_NO_KERNEL,
                                      .at = file,
                                      .about = n->flag ? "a library of the compiler" : NULL}),
            false);
    } else if (n->kind == AST_DIM || n->kind == AST_CONST) {
        enter_kernel(b, LSP_NO_KERNEL);
        if (map_get(&b->globals, n->name->id, &s)) {
            use(b, n->at, s, true);
        }
        for (uint32_t c = 0; c < n->n; c++) {
            walk_type(b, n->child[c], true);
            walk(b, n->child[c], n->kind == AST_DIM ? PLACE_EXTENT : PLACE_VALUE);
        }
    } else if (n->kind == AST_KERNEL || n->kind == AST_GRADIENT) {
        while (b->out->kernels.at[*kernel].at.source != n->at.source ||
               b->out->kernels.at[*kernel].at.lo != n->at.lo) {
            ++*kernel;
        }
        use(b, n->at, b->out->kernels.at[*kernel].symbol, true);
        if (n->kind == AST_KERNEL) {
            walk_kernel(b, n, *kernel);
        } else {
            walk_gradient(b, n, *kernel);
        }
    }
}

static int by_place(const void *x, const void *y)
{
    const LspUse *a = x, *b = y;
    return a->at.lo != b->at.lo ? (a->at.lo < b->at.lo ? -1 : 1) : 0;
}

static void declare_words(Binder *b)
{
    LspWord w;
    for (uint32_t k = 0; lsp_word(&b->ctx->arena, k, &w); k++) {
        if (w.name != NULL && w.kind != LSP_WORD) {
            Sym name = sym_cstr(&b->ctx->syms, w.name);
            map_put(&b->words, name->id,
                    symbol_new(b, (LspSymbol){.kind = w.kind,
                                              .name = name,
                                              .kernel = LSP_NO_KERNEL,
                                              .detail = w.detail,
                                              .about = w.about}));
        }
    }
}

void lsp_names(Ctx *ctx, const Program *p, LspNames *out)
{
    Binder b = {.ctx = ctx, .p = p, .out = out, .kernel = LSP_NO_KERNEL};
    map_init(&b.words, &ctx->arena);
    map_init(&b.kernels, &ctx->arena);
    map_init(&b.globals, &ctx->arena);
    map_init(&b.labels, &ctx->arena);
    map_init(&b.checked, &ctx->arena);
    for (uint32_t k = 0; k < p->kernels.n; k++) {
        map_put(&b.checked, place_key(p->kernels.at[k]->span), k);
    }
    declare_words(&b);
    if (p->ast.files.n == 0) {
        return;
    }
    const AstNode *file = ast_node(&p->ast, p->ast.files.at[0]);
    for (uint32_t k = 0; k < file->n; k++) {
        declare_item(&b, file->child[k]);
    }
    b.uses = true;
    uint32_t kernel = 0;
    for (uint32_t k = 0; k < file->n; k++) {
        walk_item(&b, file->child[k], &kernel);
    }
    if (out->uses.n > 0) {
        qsort(out->uses.at, out->uses.n, sizeof *out->uses.at, by_place);
    }
}
