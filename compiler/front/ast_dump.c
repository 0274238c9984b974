/* SPDX-License-Identifier: Apache-2.0 */
/* The AST as TDSL in one layout: a statement a line, blanks around binary operators, parentheses where the tree needs
 * them. Included files stand where they were included. Printing what was read from such a text gives the same text. */
#include "front/ast.h"

typedef struct Print {
    const Ast *ast;
    Text *out;
} Print;

/* How strongly a node binds: what is weaker than its place gets parentheses. */
static int strength(const AstNode *n)
{
    bool infix = n->kind == AST_CHAIN || n->kind == AST_COMPARE || n->kind == AST_UNARY;
    return infix ? op_info(n->op)->level : LEVEL_CALL;
}

static void print_expr(Print *p, AstId id, int place);

static void print_list(Print *p, const AstNode *n, uint32_t from)
{
    for (uint32_t k = from; k < n->n; k++) {
        text_put(p->out, k > from ? ", " : "");
        print_expr(p, n->child[k], 0);
    }
}

static void print_operands(Print *p, const AstNode *n)
{
    int own = strength(n);
    for (uint32_t k = 0; k < n->n; k++) {
        if (k > 0) {
            text_printf(p->out, " %s ",
                        op_info(n->kind == AST_CHAIN ? (Op)n->link[k] : n->op)->symbol);
        }
        print_expr(p, n->child[k], own + (k > 0 || n->kind == AST_COMPARE));
    }
}

static void print_bare(Print *p, const AstNode *n)
{
    Text *t = p->out;
    switch (n->kind) {
    case AST_INT:
        text_i64(t, n->value.i);
        break;
    case AST_FLOAT:
        text_f64(t, n->value.f);
        break;
    case AST_IMAGINARY:
        text_f64(t, n->value.f);
        text_char(t, 'i');
        break;
    case AST_BOOL:
        text_put(t, n->value.i ? "true" : "false");
        break;
    case AST_STRING:
        text_printf(t, "\"%s\"", n->name->text);
        break;
    case AST_NAME:
        text_put(t, n->name->text);
        break;
    case AST_INDEXED:
        print_expr(p, n->child[0], 7);
        text_char(t, '[');
        print_list(p, n, 1);
        text_char(t, ']');
        break;
    case AST_GROUP:
        text_char(t, '(');
        print_list(p, n, 0);
        text_char(t, ')');
        break;
    case AST_CALL:
        text_printf(t, "%s(", n->name->text);
        print_list(p, n, 0);
        text_char(t, ')');
        break;
    case AST_REDUCE:
        text_printf(t, "%s[", n->name->text);
        print_list(p, n, 1);
        text_put(t, "](");
        if (ast_node(p->ast, n->child[0])->kind == AST_LIST) {
            print_list(p, ast_node(p->ast, n->child[0]), 0);
        } else {
            print_expr(p, n->child[0], 0);
        }
        text_char(t, ')');
        break;
    case AST_UNARY:
        text_put(t, op_info(n->op)->symbol);
        print_expr(p, n->child[0], 6);
        break;
    case AST_COMPARE:
    case AST_CHAIN:
        print_operands(p, n);
        break;
    case AST_NONE:
    case AST_BROKEN:
    case AST_FILE:
    case AST_INCLUDE:
    case AST_DIM:
    case AST_CONST:
    case AST_KERNEL:
    case AST_GRADIENT:
    case AST_LIST:
    case AST_PARAM:
    case AST_TYPE:
    case AST_ATTRIBUTE:
    case AST_ASSIGN:
    case AST_SPILL:
    case AST_KIND_COUNT:
        text_put(t, "?");
        break;
    }
}

static void print_expr(Print *p, AstId id, int place)
{
    const AstNode *n = ast_node(p->ast, id);
    bool parens = strength(n) < place;
    text_put(p->out, parens ? "(" : "");
    print_bare(p, n);
    text_put(p->out, parens ? ")" : "");
}

/* ---- heads ---- */

static void print_type(Print *p, AstId id)
{
    const AstNode *n = ast_node(p->ast, id);
    if (n->kind != AST_TYPE) {
        text_put(p->out, "?");
        return;
    }
    text_put(p->out, n->name->text);
    if (n->flag) {
        text_char(p->out, '[');
        print_list(p, n, 0);
        text_char(p->out, ']');
    }
}

static void print_param(Print *p, AstId id)
{
    const AstNode *n = ast_node(p->ast, id);
    if (n->kind != AST_PARAM) {
        return;
    }
    text_printf(p->out, "%s: %s", n->name->text, n->flag ? "inout " : "");
    print_type(p, n->child[0]);
    for (uint32_t a = 1; a < n->n; a++) {
        const AstNode *attr = ast_node(p->ast, n->child[a]);
        text_printf(p->out, " %s", attr->name != NULL ? attr->name->text : "?");
        if (attr->n > 0) {
            text_char(p->out, '(');
            print_list(p, attr, 0);
            text_char(p->out, ')');
        }
    }
}

static void print_params(Print *p, AstId id)
{
    const AstNode *n = ast_node(p->ast, id);
    text_char(p->out, '(');
    for (uint32_t k = 0; k < n->n; k++) {
        text_put(p->out, k > 0 ? ", " : "");
        print_param(p, n->child[k]);
    }
    text_char(p->out, ')');
}

void ast_dump_head(const Ast *a, AstId kernel, Text *out)
{
    Print p = {a, out};
    const AstNode *n = ast_node(a, kernel);
    text_printf(out, "kernel %s", n->name->text);
    if (n->kind == AST_GRADIENT) {
        text_printf(out, " = %s %s(", ast_node(a, n->child[0])->name->text,
                    ast_node(a, n->child[1])->name->text);
        print_list(&p, ast_node(a, n->child[2]), 0);
        text_char(out, ')');
        if (n->n == 5) {
            text_printf(out, " %s ", ast_node(a, n->child[3])->name->text);
            print_list(&p, ast_node(a, n->child[4]), 0);
        }
        return;
    }
    print_params(&p, n->child[0]);
    if (ast_node(a, n->child[1])->n > 0) {
        text_put(out, " -> ");
        print_params(&p, n->child[1]);
    }
}

/* ---- statements and items ---- */

static void print_statement(Print *p, AstId id)
{
    const AstNode *n = ast_node(p->ast, id);
    if (n->kind == AST_SPILL) {
        text_put(p->out, "spill ");
        print_list(p, n, 0);
    } else if (n->kind == AST_ASSIGN) {
        const AstNode *left = ast_node(p->ast, n->child[0]);
        if (left->kind == AST_GROUP && left->n == 0) { /* a call alone */
            print_expr(p, n->child[1], 0);
            text_put(p->out, ";\n");
            return;
        }
        if (n->n == 3) { /* S: f32[q,k] */
            text_printf(p->out, "%s: %s", left->name->text,
                        ast_node(p->ast, n->child[2])->name->text);
            if (left->kind == AST_INDEXED) {
                text_char(p->out, '[');
                print_list(p, left, 1);
                text_char(p->out, ']');
            }
        } else {
            print_expr(p, n->child[0], 0);
        }
        text_put(p->out, n->op == OP_ADD ? " += " : n->op == OP_SUB ? " -= " : " = ");
        print_expr(p, n->child[1], 0);
    } else {
        return;
    }
    text_put(p->out, ";\n");
}

static void print_kernel(Print *p, AstId id)
{
    const AstNode *n = ast_node(p->ast, id);
    const AstNode *body = ast_node(p->ast, n->child[2]);
    ast_dump_head(p->ast, id, p->out);
    text_put(p->out, " {\n");
    p->out->indent++;
    for (uint32_t k = 0; k < body->n; k++) {
        print_statement(p, body->child[k]);
    }
    p->out->indent--;
    text_put(p->out, "}\n");
}

static void print_file(Print *p, AstId file, uint32_t depth);

static void print_item(Print *p, AstId id, uint32_t depth)
{
    const AstNode *n = ast_node(p->ast, id);
    if (n->kind == AST_KERNEL) {
        print_kernel(p, id);
    } else if (n->kind == AST_GRADIENT) {
        ast_dump_head(p->ast, id, p->out);
        text_put(p->out, ";\n");
    } else if (n->kind == AST_DIM) {
        text_printf(p->out, "dim %s", n->name->text);
        if (n->op != OP_EXTENT) {
            text_put(p->out, n->op == OP_CONST ? " = " : " ~ ");
            print_expr(p, n->child[0], 4);
        }
        text_put(p->out, ";\n");
    } else if (n->kind == AST_CONST) {
        text_printf(p->out, "const %s", n->name->text);
        if (n->child[0] != 0) {
            text_put(p->out, ": ");
            print_type(p, n->child[0]);
        }
        text_put(p->out, " = ");
        print_expr(p, n->child[1], 0);
        text_put(p->out, ";\n");
    } else if (n->kind == AST_INCLUDE && n->flag) {
        text_printf(p->out, "include <%s>;\n", n->name->text);
    } else if (n->kind == AST_INCLUDE && n->n > 0) { /* child: the file, where it was read */
        print_file(p, n->child[0], depth + 1);
    }
}

static void print_file(Print *p, AstId file, uint32_t depth)
{
    const AstNode *n = ast_node(p->ast, file);
    for (uint32_t k = 0; k < n->n; k++) {
        print_item(p, n->child[k], depth);
    }
}

void ast_dump(const Ast *a, Text *out)
{
    Print p = {a, out};
    text_put(out, "// tdsl-dump ast 1\n");
    if (a->files.n > 0) {
        print_file(&p, a->files.at[0], 0);
    }
}
