/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the language server: its state, texts, and what is known of them. */
#ifndef DRIVER_LSP_SERVER_H
#define DRIVER_LSP_SERVER_H

#include "driver/lsp/frames.h"
#include "driver/lsp/lines.h"
#include "driver/lsp/meaning.h"
#include "driver/lsp/names.h"
#include "driver/lsp/task.h"
#include "driver/tool.h"

/* The bytes [lo, hi) are a use of the symbol. */
typedef struct LspUsed {
    uint32_t lo, hi, symbol;
    bool writes;
} LspUsed;

typedef struct LspFound {
    LspKind kind;
    int32_t kernel;                    /* or -1 */
    uint32_t lo, hi;                   /* its definition in this text, if hi > 0 */
    uint32_t from, to;                 /* the statement that an index belongs to */
    const char *name, *detail, *about; /* null: nothing to say */
    const char *uri;                   /* its definition in another file, or null: */
    LspPlace place[2];
} LspFound;

typedef struct LspKernelText {
    const char *name;
    uint32_t lo, hi; /* 0: of another file */
} LspKernelText;

/* What is known of a text (meaning.h). */
typedef struct LspMeaning {
    json_t *root;       /* null: nothing */
    char *text;         /* that names stand in, */
    const char *tokens; /* and the numbers of tokens */
    bool damaged, includes;
    VEC(LspUsed) uses;
    VEC(LspFound) symbols;
    VEC(LspKernelText) kernels;
    Arena arena;
} LspMeaning;

typedef struct LspDocument {
    char *uri, *path;
    char *text; /* NUL-terminated */
    LspLines lines;
    json_t *version;
    bool dirty;         /* the text was changed since it was looked at */
    LspMeaning meaning; /* of the text */
    LspMeaning whole;   /* of the last text that parsed, if that was another one */
    json_t *prices;     /* by kernel */
} LspDocument;

/* A request that waits for a price. */
typedef struct LspWaiting {
    json_t *id, *params;
    LspDocument *document;
    double until;
} LspWaiting;

typedef struct LspServer {
    ToolRun *tool;
    LspFrames in;
    Arena scratch; /* of the answer that is made */
    VEC(LspDocument *) documents;
    VEC(json_t *) queue; /* messages not answered yet */
    uint32_t first;      /* of them */
    VEC(LspWaiting) waiting;
    LspTask price;
    LspDocument *priced;                    /* by that task, */
    char *kernel;                           /* this kernel of it */
    bool initialized, shutdown, done, gone; /* gone: nobody reads any more */
    bool flat;                              /* document symbols have no children */
} LspServer;

/* Codes of the protocol. */
enum {
    LSP_PARSE_ERROR = -32700,
    LSP_INVALID_REQUEST = -32600,
    LSP_METHOD_NOT_FOUND = -32601,
    LSP_INVALID_PARAMS = -32602,
    LSP_NOT_INITIALIZED = -32002,
    LSP_CANCELLED = -32800,
    LSP_FAILED = -32803
};

typedef struct LspFault {
    int code; /* 0: none */
    const char *message;
} LspFault;

/* ---- send.c ---- Takes the message. */
void lsp_send(LspServer *s, json_t *message);
/* Of the request with this id; takes the result. */
void lsp_answer(LspServer *s, json_t *id, json_t *result);
void lsp_refuse(LspServer *s, json_t *id, int code, const char *why);

/* ---- documents.c ---- */
LspDocument *lsp_document(const LspServer *s, const char *uri);
void lsp_open(LspServer *s, const json_t *params);
void lsp_change(LspServer *s, const json_t *params);
void lsp_close(LspServer *s, const json_t *params);
void lsp_document_free(LspDocument *d);
/* What the front end says of it now; it is published. */
void lsp_look(LspServer *s, LspDocument *d);
LspText lsp_document_text(LspServer *s, const LspDocument *d);
/* The document and byte of `textDocument` and `position`; null after a fault. */
LspDocument *lsp_where(LspServer *s, const json_t *params, uint32_t *byte, LspFault *fault);
/* The same of `textDocument` alone. */
LspDocument *lsp_which(LspServer *s, const json_t *params, LspFault *fault);

/* ---- find.c ---- */
/* Takes the JSON and the text of meaning.h. */
void lsp_meaning_read(LspMeaning *m, json_t *root, char *text);
void lsp_meaning_free(LspMeaning *m);
/* Of its definition; null where that is in no file. */
json_t *lsp_found_location(LspDocument *d, const LspFound *f);
/* The use at this byte, or that ends there; UINT32_MAX: there is none. */
uint32_t lsp_use_at(const LspMeaning *m, uint32_t byte);
/* What the name at this byte is: by its use; else, in a text that does not parse, by its name alone, in what is known of the
 * text or (*old) of the last one that parsed. Null: it is none. */
const LspFound *lsp_find(const LspDocument *d, uint32_t byte, bool *old);
/* The symbol of this name that is of a kernel of that name (null: of none); UINT32_MAX: there is none. */
uint32_t lsp_named(const LspMeaning *m, const char *name, size_t n, const char *kernel);
/* The kernel that the byte stands in, as a number, or -1. */
int32_t lsp_kernel_at(const LspMeaning *m, uint32_t byte);
const char *lsp_kernel_name(const LspMeaning *m, int32_t kernel);

#endif
