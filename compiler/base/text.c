/* SPDX-License-Identifier: Apache-2.0 */
/* The text writer. Indentation is written when the first character of a line arrives, so empty lines stay
 * empty and the level may change in between. Floating-point numbers are the shortest digits that read back as
 * the same value, laid out by our own rules, so neither libc's taste nor a locale shows. */
#include "base/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Text text_new(Arena *arena)
{
    const size_t cap = 64;
    return (Text){.arena = arena,
                  .at = arena_alloc(arena, cap),
                  .cap = cap,
                  .indent_width = 2,
                  .line_start = true};
}

void text_init(Text *t, Arena *arena)
{
    *t = text_new(arena);
}

void text_clear(Text *t)
{
    t->n = 0;
    t->at[0] = '\0';
    t->indent = 0;
    t->line_start = true;
}

void text_reserve(Text *t, size_t n)
{
    if (n < t->cap - t->n) {
        return;
    }
    size_t cap = t->cap;
    while (n >= cap - t->n) { /* bytes that memory holds already: no overflow */
        cap *= 2;
    }
    char *at = arena_alloc(t->arena, cap);
    memcpy(at, t->at, t->n);
    arena_drop(t->arena, t->at, t->cap);
    t->at = at;
    t->cap = cap;
}

static void text_raw(Text *t, const char *s, size_t n)
{
    if (n != 0) {
        text_reserve(t, n);
        memcpy(t->at + t->n, s, n);
        t->n += n;
        t->at[t->n] = '\0';
    }
}

/* One line or a part of one, without its newline. */
static void text_in_line(Text *t, const char *s, size_t n)
{
    if (n == 0) {
        return;
    }
    if (t->line_start && t->indent > 0) {
        size_t blanks = (size_t)t->indent * (size_t)t->indent_width;
        text_reserve(t, blanks);
        memset(t->at + t->n, ' ', blanks);
        t->n += blanks;
    }
    t->line_start = false;
    text_raw(t, s, n);
}

void text_put_n(Text *t, const char *s, size_t n)
{
    const char *end = s + n;
    while (s < end) {
        const char *newline = memchr(s, '\n', (size_t)(end - s));
        text_in_line(t, s, (size_t)((newline == NULL ? end : newline) - s));
        if (newline == NULL) {
            return;
        }
        text_raw(t, "\n", 1);
        t->line_start = true;
        s = newline + 1;
    }
}

void text_put(Text *t, const char *s)
{
    text_put_n(t, s, strlen(s));
}

void text_char(Text *t, char c)
{
    text_put_n(t, &c, 1);
}

void text_printf(Text *t, const char *format, ...)
{
    char small[256];
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(small, sizeof small, format, args);
    va_end(args);
    CHECK(n >= 0);
    if ((size_t)n < sizeof small) {
        text_put_n(t, small, (size_t)n);
    } else {
        char *large = arena_alloc(t->arena, (size_t)n + 1);
        vsnprintf(large, (size_t)n + 1, format, again);
        text_put_n(t, large, (size_t)n);
    }
    va_end(again);
}

void text_i64(Text *t, int64_t v)
{
    char digits[24];
    size_t at = sizeof digits;
    uint64_t left = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do {
        digits[--at] = (char)('0' + left % 10);
        left /= 10;
    } while (left != 0);
    if (v < 0) {
        digits[--at] = '-';
    }
    text_put_n(t, digits + at, sizeof digits - at);
}

void text_bytes(Text *t, int64_t bytes, const char *one)
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    uint32_t u = 0;
    double v = (double)bytes;
    while (v >= 1024 && u < 6) {
        v /= 1024;
        u++;
    }
    text_printf(t, u == 0 ? "%.0f %s" : "%.1f %s", v, u == 0 ? one : units[u]);
}

/* 0.d1 d2 ... dn times 10^exponent */
typedef struct Decimal {
    char digit[20];
    int n;
    int exponent;
} Decimal;

/* v rounded correctly to n digits. */
static Decimal decimal_of(double v, int n)
{
    char buffer[40];
    Decimal d = {.n = 0};
    snprintf(buffer, sizeof buffer, "%.*e", n - 1, v);
    const char *p = buffer;
    for (; *p != 'e'; p++) {
        if (*p >= '0' && *p <= '9') { /* whatever the locale's point is, it is no digit */
            d.digit[d.n++] = *p;
        }
    }
    d.exponent = (int)strtol(p + 1, NULL, 10) + 1;
    return d;
}

/* The value the digits read as. They are given to strtod without a point, so the locale does not matter. */
static double decimal_value(const Decimal *d)
{
    char buffer[48];
    snprintf(buffer, sizeof buffer, "%.*se%d", d->n, d->digit, d->exponent - d->n);
    return strtod(buffer, NULL);
}

/* One more in the last place. */
static Decimal decimal_next(Decimal d)
{
    int i = d.n - 1;
    while (i >= 0 && d.digit[i] == '9') {
        d.digit[i--] = '0';
    }
    if (i >= 0) {
        d.digit[i]++;
    } else {
        d.digit[0] = '1';
        d.exponent++;
    }
    return d;
}

/* The fewest digits that read back as v (finite, positive). Where the shortest has at most 15 digits it is v at 15
 * digits without trailing zeros, except for the smallest numbers, which carry fewer digits. Just below a
 * power of two values lie twice as dense as above it, so there the farther neighbour may still be v. */
static Decimal decimal_shortest(double v)
{
    Decimal d;
    int n = v < 1e-290 ? 1 : 15;
    for (;; n++) {
        d = decimal_of(v, n);
        if (n >= 17 || decimal_value(&d) == v) {
            break;
        }
        Decimal up = decimal_next(d);
        if (decimal_value(&up) == v) {
            d = up;
            break;
        }
    }
    while (d.n > 1 && d.digit[d.n - 1] == '0') {
        d.n--;
    }
    return d;
}

static void text_decimal(Text *t, const Decimal *d)
{
    int e = d->exponent;
    if (e > 0 && e <= 16) { /* ddd.ddd */
        for (int i = 0; i < e || i < d->n; i++) {
            if (i == e) {
                text_char(t, '.');
            }
            text_char(t, i < d->n ? d->digit[i] : '0');
        }
        if (d->n <= e) {
            text_put(t, ".0");
        }
    } else if (e <= 0 && e > -4) { /* 0.000ddd */
        text_put(t, "0.");
        text_put_n(t, "0000", (size_t)-e);
        text_put_n(t, d->digit, (size_t)d->n);
    } else { /* d.ddde-dd */
        text_char(t, d->digit[0]);
        if (d->n > 1) {
            text_char(t, '.');
            text_put_n(t, d->digit + 1, (size_t)d->n - 1);
        }
        text_char(t, 'e');
        text_i64(t, e - 1);
    }
}

double unsigned_nan(double v)
{
    return isnan(v) ? fabs(v) : v;
}

void text_f64(Text *t, double v)
{
    if (isnan(v)) {
        text_put(t, "nan");
        return;
    }
    if (signbit(v)) {
        text_char(t, '-');
        v = -v;
    }
    if (isinf(v)) {
        text_put(t, "inf");
    } else if (v == 0) {
        text_put(t, "0.0");
    } else {
        Decimal d = decimal_shortest(v);
        text_decimal(t, &d);
    }
}

void text_quoted(Text *t, Str s)
{
    static const char hex[] = "0123456789abcdef";
    text_char(t, '"');
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.at[i];
        if (c == '"' || c == '\\') {
            text_char(t, '\\');
            text_char(t, (char)c);
        } else if (c == '\n') {
            text_put(t, "\\n");
        } else if (c == '\t') {
            text_put(t, "\\t");
        } else if (c < 0x20 || c >= 0x7f) {
            char escape[4] = {'\\', 'x', hex[c >> 4], hex[c & 15]};
            text_put_n(t, escape, 4);
        } else {
            text_char(t, (char)c);
        }
    }
    text_char(t, '"');
}

void text_shell_quoted(Text *t, const char *s, const char *escaped)
{
    for (const char *c = s; *c != '\0'; c++) {
        if (*c == '\'') {
            text_put(t, "'\\''");
        } else {
            text_put(t, strchr(escaped, *c) != NULL ? "\\" : "");
            text_char(t, *c);
        }
    }
}

Str text_str(const Text *t)
{
    return (Str){t->at, t->n};
}

void text_json(Text *t, const char *s)
{
    text_char(t, '"');
    for (; *s != '\0'; s++) {
        if (*s == '"' || *s == '\\') {
            text_char(t, '\\');
            text_char(t, *s);
        } else if ((unsigned char)*s < 0x20 || *s == 0x7f) {
            text_printf(t, "\\u%04x", (unsigned)(unsigned char)*s);
        } else {
            text_char(t, *s);
        }
    }
    text_char(t, '"');
}

void text_member(Text *t, const char *before, const char *s)
{
    text_put(t, before);
    if (s == NULL) {
        text_put(t, "null");
    } else {
        text_json(t, s);
    }
}
