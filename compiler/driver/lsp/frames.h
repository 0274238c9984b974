/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the language server protocol as a stream has them: a header that says how long the body is, a blank line, the body. Where
 * a header is not understood, what follows is left out up to the next one. */
#ifndef DRIVER_LSP_FRAMES_H
#define DRIVER_LSP_FRAMES_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of a body: more are refused. */
#define LSP_BODY_LIMIT ((size_t)128 << 20)

typedef struct LspFrames {
    int fd;
    char *at;
    size_t from, n, cap; /* of what was read, [from, n) is not taken yet */
    bool ended;          /* the stream */
    bool lost;           /* look for a header */
} LspFrames;

typedef enum LspFrame { LSP_FRAME_NONE, LSP_FRAME_BODY, LSP_FRAME_BAD } LspFrame;

/* Reads once what the stream has; it may wait. */
void lsp_frames_read(LspFrames *f);
/* The next message that was read whole: valid until more is read. BAD: *body says why. */
LspFrame lsp_frames_next(LspFrames *f, const char **body, size_t *n);
/* Writes a message; false: nobody reads any more. */
bool lsp_frames_write(int fd, const char *body, size_t n);

#endif
