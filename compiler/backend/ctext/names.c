/* SPDX-License-Identifier: Apache-2.0 */
/* Names of generated C. A word is changed only when it has to be, and always in the same way, so that the names in a
 * header are those of the source wherever possible and never depend on anything but the source. */
#include "backend/ctext/names.h"

#include <stdio.h>
#include <string.h>

#define NAME_MAX_LENGTH 100
#define NAME_KEPT       80

/* Searched as " word ". */
static const char *const reserved =
    /* keywords of C11 and C++20, and of GNU C without underscores */
    " alignas alignof and and_eq asm atomic_cancel atomic_commit atomic_noexcept auto bitand "
    "bitor bool break case "
    "catch char char8_t char16_t char32_t class compl concept const consteval constexpr "
    "constinit const_cast "
    "continue co_await co_return co_yield decltype default delete do double dynamic_cast else "
    "enum explicit export "
    "extern false final float for friend goto if import inline int long module mutable "
    "namespace new noexcept not not_eq "
    "nullptr operator or or_eq override private protected public reflexpr register "
    "reinterpret_cast requires restrict "
    "return short signed sizeof static static_assert static_cast struct switch synchronized "
    "template this "
    "thread_local throw true try typedef typeid typename typeof union unsigned using virtual "
    "void volatile wchar_t "
    "while xor xor_eq "
    /* macros that compilers or the headers used define, and variables of theirs */
    " linux unix i386 I NULL NAN INFINITY HUGE HUGE_VAL HUGE_VALF HUGE_VALL SIZE_MAX errno "
    "signgam "
    "math_errhandling complex imaginary isnan isinf isfinite isnormal signbit fpclassify "
    "isgreater isgreaterequal "
    "isless islessequal islessgreater isunordered offsetof assert stdin stdout stderr NDEBUG "
    "DOMAIN SING OVERFLOW "
    "UNDERFLOW PLOSS TLOSS X_TLOSS noreturn PTRDIFF_MAX PTRDIFF_MIN SIG_ATOMIC_MIN "
    "SIG_ATOMIC_MAX WCHAR_MIN "
    "WCHAR_MAX WINT_MIN WINT_MAX _ "
    /* types */
    " int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t "
    "intmax_t uintmax_t "
    "size_t ptrdiff_t ssize_t max_align_t float_t double_t std "
    /* parameters and locals of the generated text */
    " workspace workspace_bytes threads args dims status ";

/* Functions: variables may have these names, kernels may not. */
static const char *const functions =
    " main abort abs acos acosf acosh acoshf asin asinf asinh asinhf atan atan2 atan2f atanf "
    "atanh atanhf atexit "
    "atof atoi atol bsearch cabs cabsf cacos cacosh calloc carg casin casinh catan catanh cbrt "
    "cbrtf ccos ccosf "
    "ccosh ceil ceilf cexp cexpf cimag cimagf clock clog clogf conj conjf copysign copysignf "
    "cos cosf cosh coshf cpow "
    "cpowf cproj creal crealf csin csinf csinh csqrt csqrtf ctan ctanh ctanhf dlclose dlopen "
    "dlsym div drem erf erfc "
    "erfcf erff exit exp exp10 exp2 exp2f expf expm1 expm1f fabs fabsf fclose fdim fdimf "
    "fflush finite floor floorf "
    "fma fmaf fmax fmaxf fmin fminf fmod fmodf fopen fork fprintf fputs fread free frexp "
    "frexpf fscanf fseek ftell fwrite "
    "gamma gammaf getc getenv gets hypot hypotf ilogb index j0 j1 jn kill labs ldexp ldexpf "
    "ldiv lgamma lgammaf "
    "link llabs llrint llround log log10 log10f log1p log1pf log2 log2f logb logf longjmp "
    "lrint lround malloc memchr "
    "memcmp memcpy memmove memset modf modff nan nanf nearbyint nearbyintf nextafter "
    "nexttoward open pipe pow powf "
    "printf putc puts qsort raise rand read realloc remainder remquo remove rename rewind "
    "rindex rint rintf round "
    "roundf scalb scalbln scalbn scanf select setjmp signal significand sin sincos sinf sinh "
    "sinhf sleep sprintf sqrt sqrtf srand "
    "sscanf strcat strchr strcmp strcpy strlen strtod strtol system tan tanf tanh tanhf tgamma "
    "time trunc truncf "
    "ungetc unlink wait write y0 y1 yn ";

static bool word_in(const char *list, const char *word, size_t n)
{
    for (const char *at = strstr(list, word); at != NULL; at = strstr(at + 1, word)) {
        if (at[-1] == ' ' && at[n] == ' ') {
            return true;
        }
    }
    return false;
}

static bool ends_with(const char *word, size_t n, const char *tail)
{
    size_t m = strlen(tail);
    return n >= m && memcmp(word + n - m, tail, m) == 0;
}

/* Whole families: what the implementation keeps for itself, and what ours defines. */
static bool family_reserved(const char *word, size_t n)
{
    bool implementation =
        word[0] == '_' && (word[1] == '_' || (word[1] >= 'A' && word[1] <= 'Z'));
    bool ours = strncmp(word, "tdsl_", 5) == 0 || strncmp(word, "TDSL_", 5) == 0;
    bool limit =
        (strncmp(word, "INT", 3) == 0 || strncmp(word, "UINT", 4) == 0) &&
        (ends_with(word, n, "_C") || ends_with(word, n, "_MIN") || ends_with(word, n, "_MAX"));
    bool math = strncmp(word, "M_", 2) == 0 || strncmp(word, "FP_", 3) == 0 ||
                strncmp(word, "MATH_", 5) == 0;
    return implementation || ours || limit || math;
}

bool c_name_reserved(const char *word)
{
    size_t n = strlen(word);
    return word_in(reserved, word, n) || family_reserved(word, n);
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
static bool has_our_ending(const char *word, size_t n)
{
    return ends_with(word, n, "_info") || ends_with(word, n, "_workspace_bytes") ||
           ends_with(word, n, "_kernels");
}

const char *c_symbol(Arena *a, const char *name)
{
    name = shortened(a, name);
    char *stem =
        str_format(a, "%s", name); /* exp and exp_ must stay different: exp_ and exp__ */
    size_t n = strlen(stem);
    while (n > 1 && stem[n - 1] == '_') {
        stem[--n] = '\0';
    }
    if (family_reserved(stem, n)) {
        return str_format(a, "k_%s", name);
    }
    if (word_in(reserved, stem, n) || word_in(functions, stem, n) || has_our_ending(stem, n)) {
        return str_format(a, "%s_", name);
    }
    return name;
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
