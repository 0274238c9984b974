/* SPDX-License-Identifier: Apache-2.0 */
/* What may be typed at a place. The place is found from the text before it, which need not parse; names are those of the text
 * as it is, and of the last one that parsed. */
#include <string.h>

#include "base/map.h"
#include "driver/lsp/answers.h"

typedef enum Spot {
    SPOT_NONE, /* a comment, a string, a name that is new */
    SPOT_ITEM,
    SPOT_DERIVATIVE, /* behind `kernel g =` */
    SPOT_LIBRARY,
    SPOT_TYPE,
    SPOT_ATTRIBUTE,
    SPOT_EXTENT,
    SPOT_STATEMENT,
    SPOT_INDEX,
    SPOT_VALUE
} Spot;

typedef struct Word {
    uint32_t lo, n;
} Word;

/* What stands before the place. */
typedef struct Before {
    const char *text;
    Word kernel; /* the name behind the last `kernel` */
    bool in_head, in_body, in_include, defined;
    uint32_t statement; /* where it begins */
    char open[64];      /* brackets */
    Word call[64];      /* and the name before each */
    uint32_t depth;
    char last;  /* the last sign or, of a word, a letter; */
    Word word;  /* the last word */
    bool colon; /* of this parameter, or of this statement before its '=' */
    bool typed; /* a type follows it */
} Before;

static bool word_is(const Before *b, Word w, const char *text)
{
    return strlen(text) == w.n && memcmp(b->text + w.lo, text, w.n) == 0;
}

static void begin_statement(Before *b, uint32_t at)
{
    b->statement = at;
    b->depth = 0;
    b->colon = b->typed = false;
}

static void take_word(Before *b, Word w)
{
    if (word_is(b, w, "kernel")) {
        b->in_head = true;
        b->in_body = b->colon = b->typed = b->defined = false;
        b->depth = 0;
        b->kernel = (Word){0, 0};
    } else if (word_is(b, w, "include")) {
        b->in_include = true;
    } else if (b->in_head && b->kernel.n == 0) {
        b->kernel = w;
    } else if (b->colon && !word_is(b, w, "inout")) {
        b->typed = true;
    }
    b->word = w;
    b->last = 'a';
}

static void take_sign(Before *b, char c, uint32_t at)
{
    switch (c) {
    case '(':
    case '[':
        b->call[b->depth % 64] = b->last == 'a' || b->last == ']' ? b->word : (Word){0, 0};
        b->open[b->depth % 64] = c;
        b->depth++;
        break;
    case ')':
    case ']':
        b->depth -= b->depth > 0 ? 1 : 0;
        break;
    case '{':
        b->in_body = true;
        b->in_head = false;
        begin_statement(b, at + 1);
        break;
    case '}':
        b->in_body = b->in_head = false;
        begin_statement(b, at + 1);
        break;
    case ';':
        b->in_head = b->in_include = false;
        begin_statement(b, at + 1);
        break;
    case ':':
        b->colon = true;
        b->typed = false;
        break;
    case ',':
        b->colon = b->colon && !(b->in_head && b->depth <= 1);
        break;
    case '=':
        b->defined = b->in_head;
        b->colon = b->typed = false;
        break;
    default:
        break;
    }
    b->last = c;
}

/* Reads up to the place; false: it is in a comment or a string. */
static bool read_before(Before *b, uint32_t end)
{
    const char *t = b->text;
    for (uint32_t k = 0; k < end;) {
        uint32_t from = k;
        if (t[k] == '/' && k + 1 < end && t[k + 1] == '/') {
            while (k < end && t[k] != '\n') {
                k++;
            }
            if (k == end) {
                return false;
            }
        } else if (t[k] == '/' && k + 1 < end && t[k + 1] == '*') {
            for (k += 2; k < end && (t[k - 1] != '/' || t[k - 2] != '*' || k - 2 < from + 2);
                 k++) {
            }
            if (k == end && !(end >= from + 4 && t[end - 1] == '/' && t[end - 2] == '*')) {
                return false;
            }
        } else if (t[k] == '"') {
            for (k++; k < end && t[k] != '"' && t[k] != '\n'; k++) {
            }
            if (k == end) {
                return b->in_include;
            }
            k++;
            b->last = '"';
        } else if (lsp_is_letter(t[k])) {
            while (k < end && lsp_is_letter(t[k])) {
                k++;
            }
            if (k < end) { /* else it is what is typed */
                take_word(b, (Word){from, k - from});
            }
        } else {
            if (strchr(" \t\r\n\f\v", t[k]) == NULL || t[k] == '\0') {
                take_sign(b, t[k], k);
            }
            k++;
        }
    }
    return true;
}

static Spot spot_of(const Before *b)
{
    char open = b->depth == 0 ? '\0' : b->open[(b->depth - 1) % 64];
    Word call = b->depth == 0 ? (Word){0, 0} : b->call[(b->depth - 1) % 64];
    if (b->in_include) {
        return SPOT_LIBRARY;
    }
    if (b->in_head) {
        return b->defined                    ? SPOT_DERIVATIVE
               : open == '[' || b->depth > 1 ? SPOT_EXTENT
               : b->colon && !b->typed       ? SPOT_TYPE
               : b->colon                    ? SPOT_ATTRIBUTE
                                             : SPOT_NONE;
    }
    if (!b->in_body) {
        return b->last == ';' || b->last == '}' || b->last == '\0' ? SPOT_ITEM : SPOT_EXTENT;
    }
    if (b->colon && b->depth == 0 && !b->typed) {
        return SPOT_TYPE;
    }
    if (open == '[' || word_is(b, call, "index")) {
        return SPOT_INDEX;
    }
    if (word_is(b, call, "extent")) {
        return SPOT_EXTENT;
    }
    return b->last == ';' || b->last == '{' ? SPOT_STATEMENT : SPOT_VALUE;
}

/* ---- items ---- */

typedef struct Offer {
    LspServer *s;
    json_t *items;
    json_t *seen; /* labels */
} Offer;

/* Numbers of the protocol's CompletionItemKind. */
static int item_kind(LspKind kind)
{
    static const int of[] = {
        [LSP_PARAMETER] = 6, [LSP_RESULT] = 6,     [LSP_VALUE] = 6,  [LSP_INDEX] = 5,
        [LSP_DIM] = 25,      [LSP_CONSTANT] = 21,  [LSP_KERNEL] = 3, [LSP_FUNCTION] = 3,
        [LSP_TYPE] = 22,     [LSP_ATTRIBUTE] = 10, [LSP_AXIS] = 25,  [LSP_FILE] = 17,
        [LSP_WORD] = 14};
    return of[kind];
}

/* `rank`: those of less come first. */
static void offer(Offer *o, LspKind kind, const char *name, const char *detail, int rank)
{
    if (json_object_get(o->seen, name) != NULL) {
        return;
    }
    json_object_set_new(o->seen, name, json_true());
    json_t *item =
        json_pack("{s:o, s:i, s:o}", "label", uri_string(name), "kind", item_kind(kind),
                  "sortText", uri_string(str_format(&o->s->scratch, "%d%s", rank, name)));
    if (detail != NULL) {
        json_object_set_new(item, "detail", uri_string(detail));
    }
    json_array_append_new(o->items, item);
}

static void offer_words(Offer *o, LspKind kind, const char *const *only)
{
    LspWord w;
    for (uint32_t k = 0; lsp_word(&o->s->scratch, k, &w); k++) {
        bool wanted = w.name != NULL && w.kind == kind;
        for (uint32_t i = 0; wanted && only != NULL; i++) {
            if (only[i] == NULL) {
                wanted = false;
            } else if (strcmp(only[i], w.name) == 0) {
                break;
            }
        }
        if (wanted) {
            offer(o, kind, w.name, w.detail == NULL ? w.about : w.detail, 4);
        }
    }
}

/* The symbols of these kinds (bits) that the kernel sees. */
static void offer_symbols(Offer *o, const LspMeaning *m, uint32_t kinds, const char *kernel,
                          int rank)
{
    for (uint32_t k = 0; k < m->symbols.n; k++) {
        const LspFound *f = &m->symbols.at[k];
        if ((kinds >> f->kind & 1) == 0) {
            continue;
        }
        const char *of = f->kind == LSP_KERNEL ? NULL : lsp_kernel_name(m, f->kernel);
        if (f->kind == LSP_CONSTANT && f->hi == 0 && f->uri == NULL &&
            (kinds >> LSP_DIM & 1) != 0) {
            continue; /* pi is no extent */
        }
        if (of == NULL || (kernel != NULL && strcmp(of, kernel) == 0)) {
            offer(o, f->kind, f->name, f->detail, of == NULL ? rank + 1 : rank);
        }
    }
}

/* Names between the brackets of the statement around. */
static void offer_indices(Offer *o, const char *text, uint32_t from)
{
    int brackets = 0;
    for (uint32_t k = from; text[k] != '\0' && text[k] != ';' && text[k] != '}';) {
        uint32_t word = k;
        brackets += text[k] == '[' ? 1 : text[k] == ']' ? -1 : 0;
        while (lsp_is_letter(text[k])) {
            k++;
        }
        bool name = k > word && (text[word] < '0' || text[word] > '9') && text[k] != '(' &&
                    text[k] != '[' && brackets > 0 && k - word < 100;
        if (name) {
            offer(o, LSP_INDEX,
                  str_format(&o->s->scratch, "%.*s", (int)(k - word), text + word),
                  "index of this statement", 1);
        }
        k += k == word ? 1 : 0;
    }
}

#define BIT(kind) (1u << (kind))

static void offer_at(Offer *o, const LspDocument *d, const Before *b, Spot spot)
{
    static const char *const item_words[] = {"kernel", "dim", "const", "include", NULL};
    static const char *const inout[] = {"inout", NULL}, *const spill[] = {"spill", NULL};
    static const char *const truth[] = {"true", "false", NULL};
    const char *kernel = b->kernel.n == 0 ? NULL
                                          : str_format(&o->s->scratch, "%.*s", (int)b->kernel.n,
                                                       b->text + b->kernel.lo);
    uint32_t values = BIT(LSP_PARAMETER) | BIT(LSP_RESULT) | BIT(LSP_VALUE);
    uint32_t kinds = spot == SPOT_EXTENT       ? BIT(LSP_DIM) | BIT(LSP_CONSTANT)
                     : spot == SPOT_STATEMENT  ? values | BIT(LSP_KERNEL)
                     : spot == SPOT_INDEX      ? BIT(LSP_DIM) | BIT(LSP_CONSTANT)
                     : spot == SPOT_VALUE      ? values | BIT(LSP_CONSTANT) | BIT(LSP_KERNEL)
                     : spot == SPOT_DERIVATIVE ? BIT(LSP_KERNEL)
                                               : 0;
    if (spot == SPOT_INDEX) {
        offer_indices(o, d->text, b->statement);
    }
    offer_symbols(o, &d->meaning, kinds, kernel, 1);
    offer_symbols(o, &d->whole, kinds, kernel, 1);
    if (spot == SPOT_ITEM) {
        offer_words(o, LSP_WORD, item_words);
    } else if (spot == SPOT_TYPE) {
        offer_words(o, LSP_TYPE, NULL);
        offer_words(o, LSP_WORD, inout);
    } else if (spot == SPOT_ATTRIBUTE) {
        offer_words(o, LSP_ATTRIBUTE, NULL);
    } else if (spot == SPOT_STATEMENT) {
        offer_words(o, LSP_WORD, spill);
    } else if (spot == SPOT_VALUE) {
        offer_words(o, LSP_FUNCTION, NULL);
        offer_words(o, LSP_TYPE, NULL);
        offer_words(o, LSP_WORD, truth);
    } else if (spot == SPOT_DERIVATIVE) {
        offer(o, LSP_WORD, "grad", "kernel dE = grad E(x) with E;", 0);
        offer(o, LSP_WORD, "vjp", "kernel back = vjp f(x);", 0);
    } else if (spot == SPOT_LIBRARY) {
        static const char *const libraries[] = {"nn.tdsl", "chem.tdsl", "linalg.tdsl"};
        for (int k = 0; k < 3; k++) {
            offer(o, LSP_FILE, libraries[k], "a library of the compiler", 0);
        }
    }
}

json_t *lsp_complete(LspServer *s, const json_t *params, LspFault *fault)
{
    uint32_t byte = 0;
    LspDocument *d = lsp_where(s, params, &byte, fault);
    if (d == NULL) {
        return NULL;
    }
    Before b = {.text = d->text};
    Offer o = {s, json_array(), json_object()};
    if (read_before(&b, byte)) {
        offer_at(&o, d, &b, spot_of(&b));
    }
    json_decref(o.seen);
    return json_pack("{s:b, s:o}", "isIncomplete", 0, "items", o.items);
}
