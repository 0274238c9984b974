/* SPDX-License-Identifier: Apache-2.0 */
/* Names of generated C. A word is changed only when it has to be, and always in the same way, so that the names in a
 * header are those of the source wherever possible and never depend on anything but the source. */
#include "backend/ctext/names.h"

#include <stdio.h>
#include <string.h>

#define NAME_MAX_LENGTH 100
#define NAME_KEPT       80

typedef struct KnownName {
    const char *word;
    char kind;
} KnownName;

/* Sorted: known_names.list. */
static const KnownName known_names[] = {
#include "backend/ctext/known_names.inc"
};

/* Parameters and locals of the generated text. */
static const char *const own_words[] = {"workspace", "workspace_bytes", "threads", "args",
                                        "dims",      "status"};

/* The letter in known_names.list, or 0. */
static char listed_kind(const char *word, size_t n)
{
    size_t low = 0, high = sizeof known_names / sizeof known_names[0];
    while (low < high) {
        size_t at = low + (high - low) / 2;
        int order = strncmp(word, known_names[at].word, n);
        order = order == 0 && known_names[at].word[n] != '\0' ? -1 : order;
        if (order == 0) {
            return known_names[at].kind;
        }
        low = order < 0 ? low : at + 1;
        high = order < 0 ? at : high;
    }
    return 0;
}

static bool ends_with(const char *word, const char *tail)
{
    size_t n = strlen(word), m = strlen(tail);
    return n >= m && memcmp(word + n - m, tail, m) == 0;
}

static bool begins_with(const char *word, const char *head)
{
    return strncmp(word, head, strlen(head)) == 0;
}

/* The same; a function of one real type, sinf, is listed as those of all, sin. */
static char known_kind(const char *word)
{
    static const char *const types[] = {"f", "l", "f32", "f32x", "f64", "f64x", "f128"};
    char kind = listed_kind(word, strlen(word));
    for (size_t k = 0; kind == 0 && k < sizeof types / sizeof types[0]; k++) {
        bool real = ends_with(word, types[k]) &&
                    listed_kind(word, strlen(word) - strlen(types[k])) == 'r';
        kind = real ? 'r' : 0;
    }
    return kind == 'r' ? 'f' : kind;
}

/* Families of macros of the standard headers. */
static bool is_macro_family(const char *word)
{
    bool limit = (begins_with(word, "INT") || begins_with(word, "UINT")) &&
                 (ends_with(word, "_C") || ends_with(word, "_MIN") || ends_with(word, "_MAX"));
    bool format = (begins_with(word, "PRI") || begins_with(word, "SCN")) && word[3] != '\0' &&
                  strchr("dioxuX", word[3]) != NULL;
    return limit || format || begins_with(word, "M_") || begins_with(word, "FP_") ||
           begins_with(word, "MATH_");
}

static bool is_ours(const char *word)
{
    return begins_with(word, "tdsl_") || begins_with(word, "TDSL_") ||
           strcmp(word, "tdsl") == 0 || strcmp(word, "TDSL") == 0 ||
           ends_with(word, "_WORKSPACE_BYTES");
}

bool c_name_reserved(const char *word)
{
    bool implementation =
        word[0] == '_' && (word[1] == '_' || (word[1] >= 'A' && word[1] <= 'Z'));
    for (size_t i = 0; i < sizeof own_words / sizeof own_words[0]; i++) {
        if (strcmp(word, own_words[i]) == 0) {
            return true;
        }
    }
    char kind = known_kind(word);
    return implementation || strcmp(word, "_") == 0 || is_ours(word) || is_macro_family(word) ||
           kind == 'k' || kind == 'u' || kind == 'm';
}

/* Names so long that a line of C could not hold a few of them keep their beginning. */
static const char *shortened(Arena *a, const char *word)
{
    size_t n = strlen(word);
    if (n <= NAME_MAX_LENGTH) {
        return word;
    }
    return str_format(a, "%.*s_%016llx", NAME_KEPT, word,
                      (unsigned long long)hash_bytes(0, word, n));
}

/* What else is defined for each kernel, and for a file. */
static bool has_our_ending(const char *word)
{
    return ends_with(word, "_info") || ends_with(word, "_workspace_bytes") ||
           ends_with(word, "_threads") || ends_with(word, "_kernels");
}

/* Why no symbol that a file exports may be `word`; null: it may. */
static const char *why_not_exported(const char *word)
{
    switch (known_kind(word)) {
    case 'k':
        return "a keyword of C or C++";
    case 'm':
        return "a macro of C's headers";
    case 'u':
    case 't':
        return "a type of the C library";
    case 'f':
        return "a function of the C library";
    case 'v':
        return "a variable of the C library";
    default:
        return is_macro_family(word)   ? "a macro of C's headers"
               : has_our_ending(word)  ? "what TDSL calls something else beside a kernel"
               : c_name_reserved(word) ? "a name that generated code uses"
                                       : NULL;
    }
}

/* exp and exp_ must stay different, as exp_ and exp__: what is looked up are names without underscores at their end. */
static const char *stem_of(Arena *a, const char *name)
{
    char *stem = str_format(a, "%s", name);
    size_t n = strlen(stem);
    while (n > 1 && stem[n - 1] == '_') {
        stem[--n] = '\0';
    }
    return stem;
}

const char *c_symbol(Arena *a, const char *name)
{
    name = shortened(a, name);
    const char *stem = stem_of(a, name);
    if (stem[0] == '_' || is_ours(stem)) {
        return str_format(a, "k_%s", name);
    }
    return why_not_exported(stem) != NULL ? str_format(a, "%s_", name) : name;
}

const char *c_symbol_why(Arena *a, const char *name)
{
    if (strlen(name) > NAME_MAX_LENGTH) {
        return str_format(a, "it is longer than %d characters", NAME_MAX_LENGTH);
    }
    const char *stem = stem_of(a, name);
    const char *what = is_ours(stem) ? "a name of TDSL's own"
                       : stem[0] == '_'
                           ? "a name that C keeps for itself, as it begins with '_'"
                           : why_not_exported(stem);
    return what == NULL ? NULL : str_format(a, "'%s' is %s", stem, what);
}

void names_init(Names *n, Arena *arena)
{
    *n = (Names){.arena = arena};
    map_init(&n->at, arena);
}

/* *key: where the word is, or would be. */
static bool find(const Names *names, const char *word, size_t n, uint64_t *key,
                 uint32_t *number)
{
    *key = hash_bytes(0, word, n);
    for (; map_get(&names->at, *key, number); ++*key) {
        const char *name = names->list.at[*number];
        if (strncmp(name, word, n) == 0 && name[n] == '\0') {
            return true;
        }
    }
    return false;
}

bool names_find(const Names *names, const char *word, size_t n, uint32_t *number)
{
    uint64_t key = 0;
    return find(names, word, n, &key, number);
}

bool names_claim(Names *n, const char *word)
{
    uint64_t key = 0;
    uint32_t number = 0;
    if (find(n, word, strlen(word), &key, &number)) {
        return false;
    }
    map_put(&n->at, key, n->list.n);
    vec_push(n->arena, &n->list, word);
    vec_push(n->arena, &n->next, 2);
    return true;
}

const char *names_take(Names *n, const char *wish)
{
    wish = shortened(n->arena, wish);
    const char *word = c_name_reserved(wish)
                           ? str_format(n->arena, wish[0] == '_' ? "v%s_" : "%s_", wish)
                           : wish;
    const char *tried = word;
    uint32_t number = 0;
    (void)names_find(n, word, strlen(word), &number);
    while (!names_claim(n, tried)) {
        tried = str_format(n->arena, "%s_%u", word, n->next.at[number]++);
    }
    return tried;
}

void text_comment(Text *out, Str s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.at[i];
        char next = i + 1 < s.n ? s.at[i + 1] : '\0';
        bool closes = (c == '*' && next == '/') || (c == '/' && next == '*');
        bool opens = c == '/' && (next == '/' || (i > 0 && s.at[i - 1] == '*'));
        if (c < ' ' || c > '~' || c == '?' || c == '\\' || closes || opens) {
            text_printf(out, "<%02x>", c);
        } else {
            text_char(out, (char)c);
        }
    }
}

void text_literal(Text *out, const char *s)
{
    text_char(out, '"');
    for (size_t i = 0; s[i] != '\0'; i++) {
        unsigned char c = (unsigned char)s[i];
        if (i > 0 && i % 500 == 0) {
            text_put(out, "\" \"");
        }
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     (c >= '0' && c <= '9') ||
                     (c != '\0' && strchr(" _.,-:;()[]{}<>=+*/@", c) != NULL);
        if (plain) {
            text_char(out, (char)c);
        } else {
            text_printf(out, "\\%03o", c);
        }
    }
    text_char(out, '"');
}
