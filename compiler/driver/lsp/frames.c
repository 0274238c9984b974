/* SPDX-License-Identifier: Apache-2.0 */
/* See frames.h. POSIX. */
#include "driver/lsp/frames.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/check.h"
#include "driver/files.h"

#define HEADER       "Content-Length:"
#define HEADER_N     (sizeof HEADER - 1)
#define HEADER_LIMIT 4096
#define READ_SIZE    65536

void lsp_frames_read(LspFrames *f)
{
    if (f->from > 0) {
        memmove(f->at, f->at + f->from, f->n - f->from);
        f->n -= f->from;
        f->from = 0;
    }
    if (f->cap - f->n < READ_SIZE) {
        f->cap = 2 * f->cap + READ_SIZE;
        f->at = realloc(f->at, f->cap);
        CHECK(f->at != NULL);
    }
    ssize_t got = read(f->fd, f->at + f->n, f->cap - f->n);
    if (got > 0) {
        f->n += (size_t)got;
    } else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
        f->ended = true;
    }
}

/* The blank line that ends a header, and what follows it; null: it is not there yet. */
static const char *header_end(const char *at, size_t n, size_t *length)
{
    for (size_t k = 0; k + 1 < n; k++) {
        if (at[k] == '\n' && at[k + 1] == '\n') {
            *length = k + 1;
            return at + k + 2;
        }
        if (k + 3 < n && memcmp(at + k, "\r\n\r\n", 4) == 0) {
            *length = k + 2;
            return at + k + 4;
        }
    }
    return NULL;
}

/* The number of `Content-Length: 17`, one line of the header; false: it is none, or it is there twice. */
static bool read_length(const char *at, size_t n, size_t *out)
{
    bool found = false;
    for (const char *end = at + n; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline == NULL ? end : newline;
        if ((size_t)(stop - at) >= HEADER_N && strncasecmp(at, HEADER, HEADER_N) == 0) {
            const char *c = at + HEADER_N;
            size_t value = 0;
            bool digits = false;
            while (c < stop && (*c == ' ' || *c == '\t')) {
                c++;
            }
            for (; c < stop && *c >= '0' && *c <= '9' && value <= LSP_BODY_LIMIT; c++) {
                value = 10 * value + (size_t)(*c - '0');
                digits = true;
            }
            bool huge = value > LSP_BODY_LIMIT;
            while (c < stop && (*c == ' ' || *c == '\t' || *c == '\r')) {
                c++;
            }
            if (found || !digits || huge || c != stop) {
                return false;
            }
            *out = value;
            found = true;
        }
        at = stop + 1;
    }
    return found;
}

/* Leaves out what stands before the next header. */
static void find_header(LspFrames *f)
{
    while (f->n - f->from >= HEADER_N) {
        if (strncasecmp(f->at + f->from, HEADER, HEADER_N) == 0) {
            f->lost = false;
            return;
        }
        f->from++;
    }
}

static LspFrame bad(LspFrames *f, size_t left_out, const char *why, const char **body)
{
    f->from += left_out;
    f->lost = true;
    *body = why;
    return LSP_FRAME_BAD;
}

LspFrame lsp_frames_next(LspFrames *f, const char **body, size_t *n)
{
    if (f->lost) {
        find_header(f);
    }
    const char *at = f->at + f->from;
    size_t left = f->n - f->from, header = 0, length = 0;
    if (f->lost || left == 0) {
        return LSP_FRAME_NONE;
    }
    const char *text = header_end(at, left, &header);
    if (text == NULL) {
        return left > HEADER_LIMIT ? bad(f, 1, "a header has no end", body) : LSP_FRAME_NONE;
    }
    if (!read_length(at, header, &length)) {
        return bad(f, (size_t)(text - at),
                   "a header needs one Content-Length that is not too large", body);
    }
    if (left - (size_t)(text - at) < length) {
        return LSP_FRAME_NONE;
    }
    *body = text;
    *n = length;
    f->from = (size_t)(text - f->at) + length;
    return LSP_FRAME_BODY;
}

bool lsp_frames_write(int fd, const char *body, size_t n)
{
    char header[40];
    int length = snprintf(header, sizeof header, HEADER " %zu\r\n\r\n", n);
    return file_write_all(fd, (Str){header, (size_t)length}) &&
           file_write_all(fd, (Str){body, n});
}
