/* SPDX-License-Identifier: Apache-2.0 */
/* One line of a program: which blanks stand between its pieces, and where it breaks when it is too long. A line breaks at
 * all places of its outermost kind: before '->', before the terms of a sum, after commas; what is still too long, further
 * inside. Terms of a sum get a line each, what commas separate is filled into lines. */
#include "front/format_parts.h"

bool piece_is(const Piece *piece, const char *text)
{
    return str_eq_cstr(piece->text, text) &&
           (piece->kind == PIECE_SIGN || piece->kind == PIECE_NAME);
}

static bool is_word(const Piece *p)
{
    return p->kind == PIECE_NAME || p->kind == PIECE_NUMBER || p->kind == PIECE_STRING;
}

static bool is_comment(const Piece *p)
{
    return p->kind == PIECE_COMMENT || p->kind == PIECE_LINE;
}

static bool is_one_of(const Piece *p, const char *const *texts)
{
    for (; *texts != NULL; texts++) {
        if (piece_is(p, *texts)) {
            return true;
        }
    }
    return false;
}

static bool opens(const Piece *p)
{
    return piece_is(p, "(") || piece_is(p, "[");
}

static bool closes(const Piece *p)
{
    return piece_is(p, ")") || piece_is(p, "]");
}

static bool is_sum(const Piece *p)
{
    return !p->unary && (piece_is(p, "+") || piece_is(p, "-"));
}

static bool is_product(const Piece *p)
{
    return piece_is(p, "*") || piece_is(p, "/");
}

static const char *const keywords[] = {"include", "dim",   "const", "kernel",
                                       "inout",   "spill", NULL};

/* ---- places ---- */

/* `A[i,j]`: indices that are names and numbers stand without blanks between them; extents of the head's types have them. */
static void find_tight(Pieces *p, uint32_t open, uint32_t close)
{
    bool tight = p->at.at[open].in_index;
    for (uint32_t k = open + 1; tight && k < close; k++) {
        const Piece *x = &p->at.at[k];
        tight = is_word(x) || piece_is(x, ",");
    }
    for (uint32_t k = open + 1; tight && k < close; k++) {
        p->at.at[k].tight_comma = true;
    }
}

typedef struct Open {
    uint32_t at, group;
    bool boxed;
} Open;

void format_places(Pieces *p, Arena *arena)
{
    VEC(Open) open = {0};
    uint32_t group = 0;
    bool boxed = false; /* inside of '[' */
    bool head = false;  /* between `kernel` and '{' brackets hold extents */
    vec_push(arena, &p->sums, false);
    const Piece *before = NULL;
    for (uint32_t k = 0; k < p->at.n; k++) {
        Piece *x = &p->at.at[k];
        if (is_comment(x)) {
            x->depth = open.n;
            x->group = group;
            x->boxed = boxed;
            continue;
        }
        head = piece_is(x, "kernel") || (head && !piece_is(x, "{"));
        x->unary = (piece_is(x, "-") || piece_is(x, "!")) &&
                   (before == NULL || (before->kind == PIECE_SIGN && !closes(before)));
        if (closes(x) && open.n > 0) {
            group = open.at[--open.n].group;
            boxed = open.at[open.n].boxed;
            find_tight(p, open.at[open.n].at, k);
        }
        x->depth = open.n;
        x->group = group;
        x->boxed = boxed;
        if (is_sum(x)) {
            p->sums.at[group] = true;
        }
        if (opens(x)) {
            x->in_index = piece_is(x, "[") && !head;
            vec_push(arena, &open, ((Open){k, group, boxed}));
            boxed = boxed || piece_is(x, "[");
        }
        if (opens(x) || piece_is(x, ",") || piece_is(x, ";") || piece_is(x, "{") ||
            piece_is(x, "=") || piece_is(x, "+=") || piece_is(x, "-=")) {
            group = p->sums.n;
            vec_push(arena, &p->sums, false);
        }
        before = x;
    }
}

/* ---- blanks ---- */

/* Operators of products stand close in indices and extents; a number and what it multiplies do in a sum. */
static bool is_close(const Pieces *p, uint32_t k)
{
    const Piece *x = &p->at.at[k];
    bool counts = k > 0 && p->at.at[k - 1].kind == PIECE_NUMBER && piece_is(x, "*") &&
                  p->sums.at[x->group] && (k < 2 || !is_product(&p->at.at[k - 2]));
    return is_product(x) && (counts || x->boxed);
}

/* Is there a blank before piece k, which is not the first of its line? */
static bool blank_before(const Pieces *p, uint32_t k)
{
    const Piece *x = &p->at.at[k], *before = x - 1;
    if (is_comment(x) || is_comment(before)) {
        return !opens(before) || is_comment(before);
    }
    if (piece_is(x, ";") || piece_is(x, ",") || piece_is(x, ":") || closes(x) ||
        opens(before) || before->unary) {
        return false;
    }
    if (piece_is(before, ",")) {
        return !before->tight_comma;
    }
    if (opens(x) && !is_product(before)) {
        bool call =
            (before->kind == PIECE_NAME && !is_one_of(before, keywords)) || closes(before);
        return !call;
    }
    if (is_product(x) || is_product(before)) {
        return !is_close(p, is_product(x) ? k : k - 1);
    }
    return true;
}

/* ---- widths ---- */

static uint32_t text_width(Str s)
{
    uint32_t width = 0;
    for (size_t k = 0; k < s.n; k++) {
        width += ((unsigned char)s.at[k] & 0xc0) != 0x80;
    }
    return width;
}

uint32_t format_width(const Pieces *p, uint32_t from, uint32_t to)
{
    uint64_t width = 0;
    for (uint32_t k = from; k < to; k++) {
        const Piece *x = &p->at.at[k];
        if (x->kind == PIECE_LINE && k + 1 < to) {
            return UINT32_MAX;
        }
        width += text_width(x->text) + (k > from && blank_before(p, k) ? 1 : 0);
    }
    return width < UINT32_MAX ? (uint32_t)width : UINT32_MAX - 1;
}

/* ---- breaks ---- */

enum {
    BREAK_FORCED,
    BREAK_ARROW,
    BREAK_COMMA,
    BREAK_OR,
    BREAK_AND,
    BREAK_COMPARE,
    BREAK_SUM,
    BREAK_PRODUCT,
    BREAKS
};

static const char *const compares[] = {"==", "!=", "<", "<=", ">", ">=", NULL};

/* How a line may break before piece k, from the outermost kind; UINT32_MAX: not at all. */
static uint32_t break_rank(const Pieces *p, uint32_t k)
{
    const Piece *x = &p->at.at[k], *before = x - 1;
    if (before->kind == PIECE_LINE || x->own_line) {
        return BREAK_FORCED;
    }
    int kind = piece_is(x, "->")                         ? BREAK_ARROW
               : piece_is(x, "||")                       ? BREAK_OR
               : piece_is(x, "&&")                       ? BREAK_AND
               : is_one_of(x, compares)                  ? BREAK_COMPARE
               : is_sum(x)                               ? BREAK_SUM
               : is_product(x)                           ? BREAK_PRODUCT
               : piece_is(before, ",") && !is_comment(x) ? BREAK_COMMA
                                                         : BREAKS;
    if (kind == BREAKS) {
        return UINT32_MAX;
    }
    uint32_t depth = kind == BREAK_COMMA ? before->depth : x->depth;
    bool boxed = kind == BREAK_COMMA ? before->boxed : x->boxed;
    return (depth + (boxed ? 1000000 : 0)) * BREAKS + (uint32_t)kind;
}

static void put_flat(const Pieces *p, uint32_t from, uint32_t to, Text *out)
{
    for (uint32_t k = from; k < to; k++) {
        if (k > from && blank_before(p, k)) {
            text_char(out, ' ');
        }
        text_put_n(out, p->at.at[k].text.at, p->at.at[k].text.n);
    }
}

static void new_line(Text *out, uint32_t indent)
{
    text_char(out, '\n');
    for (uint32_t k = 0; k < indent; k++) {
        text_char(out, ' ');
    }
}

typedef struct Layout {
    const Pieces *p;
    Text *out;
    uint32_t column; /* of the next character */
} Layout;

/* [from, to) from the present column on, with room for `tail` columns behind; lines that it begins have `indent` blanks. */
static void put_range(Layout *l, uint32_t from, uint32_t to, uint32_t indent, uint32_t tail)
{
    const Pieces *p = l->p;
    uint32_t width = format_width(p, from, to), best = UINT32_MAX;
    if (width > FORMAT_WIDTH || l->column + width + tail > FORMAT_WIDTH) {
        for (uint32_t k = from + 1; k < to; k++) {
            uint32_t rank = break_rank(p, k);
            best = rank < best ? rank : best;
        }
    }
    if (best == UINT32_MAX) {
        put_flat(p, from, to, l->out);
        l->column += width;
        return;
    }
    bool fill = best % BREAKS == BREAK_COMMA || best % BREAKS == BREAK_PRODUCT;
    for (uint32_t at = from, end; at < to; at = end) {
        for (end = at + 1; end < to && break_rank(p, end) != best; end++) {
        }
        uint32_t blank = at > from && blank_before(p, at) ? 1 : 0;
        uint32_t behind = end == to ? tail : 0, piece = format_width(p, at, end);
        bool fits = piece < FORMAT_WIDTH && l->column + blank + piece + behind <= FORMAT_WIDTH;
        if (at > from && !(fill && fits)) {
            new_line(l->out, indent);
            l->column = indent;
        } else if (blank != 0) {
            text_char(l->out, ' ');
            l->column++;
        }
        put_range(l, at, end, indent + 4, behind);
    }
}

void format_line(const Pieces *p, uint32_t from, uint32_t to, uint32_t indent, Text *out)
{
    Layout l = {p, out, indent};
    put_range(&l, from, to, indent + 4, 0);
}
