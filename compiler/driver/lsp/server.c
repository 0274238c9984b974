/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of the server: messages in, in their order, answers out. Requests that wait for a price are answered when that is there
 * or takes too long. Texts are looked at when no message waits, or one asks. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/lsp/answers.h"
#include "driver/lsp/lsp.h"
#include "driver/lsp/tokens.h"

/* Seconds that the price of a kernel may take, and that a request waits for it. */
#define PRICE_SECONDS 20.0
#define PRICE_WAIT    1.0

/* ---- prices ---- */

typedef struct Priced {
    LspServer *s;
    LspText text;
    const char *kernel;
} Priced;

static json_t *price(void *user, Ctx *ctx, Arena *arena, Text *more)
{
    (void)more;
    Priced *p = user;
    return lsp_prices(p->s->tool, ctx, arena, &p->text, p->kernel);
}

static void start_price(LspServer *s, LspDocument *d, const char *kernel)
{
    if (s->priced == d && strcmp(s->kernel, kernel) == 0) {
        return;
    }
    lsp_task_stop(&s->price);
    free(s->kernel);
    s->kernel = malloc(strlen(kernel) + 1);
    CHECK(s->kernel != NULL);
    memcpy(s->kernel, kernel, strlen(kernel) + 1);
    Priced p = {s, lsp_document_text(s, d), s->kernel};
    s->priced = lsp_task_start(&s->price, price, &p, PRICE_SECONDS) ? d : NULL;
}

static void answer_hover(LspServer *s, json_t *id, json_t *params, bool wait)
{
    LspFault fault = {0};
    const char *wants = NULL;
    json_t *result = lsp_hover(s, params, &fault, &wants);
    if (fault.code != 0) {
        json_decref(result);
        lsp_refuse(s, id, fault.code, fault.message);
        return;
    }
    LspDocument *d = lsp_document(s, lsp_text(json_object_get(params, "textDocument"), "uri"));
    if (wait && wants != NULL && d != NULL) {
        start_price(s, d, wants);
    }
    if (wait && wants != NULL && s->priced != NULL) {
        LspWaiting w = {json_incref(id), json_incref(params), d, tool_clock() + PRICE_WAIT};
        vec_push(&s->tool->arena, &s->waiting, w);
        json_decref(result);
        return;
    }
    lsp_answer(s, id, result);
}

static void drop_waiting(LspServer *s, uint32_t k)
{
    json_decref(s->waiting.at[k].id);
    json_decref(s->waiting.at[k].params);
    s->waiting.at[k] = s->waiting.at[--s->waiting.n];
}

/* Answers who waits for what is there now, or has waited long enough. */
static void answer_waiting(LspServer *s)
{
    double now = tool_clock();
    for (uint32_t k = s->waiting.n; k-- > 0;) {
        LspWaiting w = s->waiting.at[k];
        if (s->priced == NULL || s->priced != w.document || now >= w.until) {
            answer_hover(s, w.id, w.params, false);
            drop_waiting(s, k);
        }
    }
}

static void take_price(LspServer *s, double wait)
{
    json_t *result = NULL;
    const char *why = NULL;
    char *more = NULL;
    if (s->priced == NULL ||
        !lsp_task_step(&s->price, &s->scratch, wait, &result, &more, &why)) {
        return;
    }
    free(more);
    json_object_set_new(s->priced->prices, s->kernel, result == NULL ? json_null() : result);
    s->priced = NULL;
}

/* ---- requests ---- */

static json_t *tokens(LspServer *s, const json_t *params, LspFault *fault)
{
    LspDocument *d = lsp_which(s, params, fault);
    const char *text = d == NULL ? NULL : d->meaning.tokens;
    json_t *made = json_array();
    for (const char *at = text; at != NULL && *at != '\0';) {
        char *end = NULL;
        json_array_append_new(made, json_integer((json_int_t)strtoul(at, &end, 10)));
        at = *end == ',' ? end + 1 : end;
    }
    return json_pack("{s:o}", "data", made);
}

static const struct {
    const char *method;
    json_t *(*answer)(LspServer *s, const json_t *params, LspFault *fault);
} requests[] = {
    {"textDocument/definition", lsp_definition},
    {"textDocument/references", lsp_references},
    {"textDocument/documentHighlight", lsp_highlights},
    {"textDocument/documentSymbol", lsp_outline},
    {"textDocument/prepareRename", lsp_prepare_rename},
    {"textDocument/rename", lsp_rename},
    {"textDocument/formatting", lsp_format},
    {"textDocument/codeAction", lsp_actions},
    {"textDocument/completion", lsp_complete},
    {"textDocument/semanticTokens/full", tokens},
};

static const struct {
    const char *method;
    void (*take)(LspServer *s, const json_t *params);
} notices[] = {
    {"textDocument/didOpen", lsp_open},
    {"textDocument/didChange", lsp_change},
    {"textDocument/didClose", lsp_close},
};

static json_t *capabilities(void)
{
    return json_pack(
        "{s:{s:b,s:i}, s:b, s:b, s:b, s:b, s:b, s:b, s:{s:[s]}, s:{s:[s,s]}, s:{s:b}, "
        "s:{s:o, s:b}, s:s}",
        "textDocumentSync", "openClose", 1, "change", 2, "hoverProvider", 1,
        "definitionProvider", 1, "referencesProvider", 1, "documentHighlightProvider", 1,
        "documentSymbolProvider", 1, "documentFormattingProvider", 1, "codeActionProvider",
        "codeActionKinds", "quickfix", "completionProvider", "triggerCharacters", "<", "[",
        "renameProvider", "prepareProvider", 1, "semanticTokensProvider", "legend",
        lsp_token_legend(), "full", 1, "positionEncoding", "utf-16");
}

static void initialize(LspServer *s, json_t *id, const json_t *params)
{
    if (s->initialized) {
        lsp_refuse(s, id, LSP_INVALID_REQUEST, "initialize comes once");
        return;
    }
    const json_t *symbols = json_object_get(
        json_object_get(json_object_get(params, "capabilities"), "textDocument"),
        "documentSymbol");
    s->flat = !json_is_true(json_object_get(symbols, "hierarchicalDocumentSymbolSupport"));
    s->initialized = true;
    lsp_answer(s, id,
               json_pack("{s:o, s:{s:s, s:s}}", "capabilities", capabilities(), "serverInfo",
                         "name", "tdslc", "version", TDSL_VERSION));
}

static void take_request(LspServer *s, const char *method, json_t *id, json_t *params)
{
    LspFault fault = {0};
    if (strcmp(method, "initialize") == 0 && !s->shutdown) {
        initialize(s, id, params);
        return;
    }
    if (!s->initialized || s->shutdown) {
        lsp_refuse(s, id, s->shutdown ? LSP_INVALID_REQUEST : LSP_NOT_INITIALIZED,
                   s->shutdown ? "after shutdown there is only exit"
                               : "initialize comes first");
        return;
    }
    if (strcmp(method, "shutdown") == 0) {
        s->shutdown = true;
        lsp_answer(s, id, json_null());
        return;
    }
    if (strcmp(method, "textDocument/hover") == 0) {
        answer_hover(s, id, params, true);
        return;
    }
    for (size_t k = 0; k < sizeof requests / sizeof requests[0]; k++) {
        if (strcmp(method, requests[k].method) == 0) {
            json_t *result = requests[k].answer(s, params, &fault);
            if (fault.code != 0) {
                json_decref(result);
                lsp_refuse(s, id, fault.code, fault.message);
            } else {
                lsp_answer(s, id, result);
            }
            return;
        }
    }
    lsp_refuse(s, id, LSP_METHOD_NOT_FOUND,
               str_format(&s->scratch, "there is no '%s'", method));
}

static void take_notice(LspServer *s, const char *method, const json_t *params)
{
    if (strcmp(method, "exit") == 0) {
        s->done = true;
        return;
    }
    for (size_t k = 0; k < sizeof notices / sizeof notices[0]; k++) {
        if (s->initialized && !s->shutdown && strcmp(method, notices[k].method) == 0) {
            notices[k].take(s, params);
        }
    }
}

static void take_message(LspServer *s, const json_t *message)
{
    json_t *id = json_object_get(message, "id"), *params = json_object_get(message, "params");
    const char *method = lsp_text(message, "method");
    bool answers = method == NULL && json_is_object(message) && id != NULL &&
                   (json_object_get(message, "result") != NULL ||
                    json_object_get(message, "error") != NULL);
    if (answers) {
        return; /* of a request of ours: there are none */
    }
    bool known = json_is_integer(id) || json_is_string(id);
    if (method == NULL || (id != NULL && !known)) {
        lsp_refuse(s, known ? id : NULL, LSP_INVALID_REQUEST, "this is no request");
    } else if (id != NULL) {
        take_request(s, method, id, params);
    } else {
        take_notice(s, method, params);
    }
}

/* ---- messages in ---- */

static void cancel(LspServer *s, const json_t *id)
{
    for (uint32_t k = s->first; k < s->queue.n; k++) {
        json_t *of = json_object_get(s->queue.at[k], "id");
        if (of != NULL && json_equal(of, id)) {
            lsp_refuse(s, of, LSP_CANCELLED, "cancelled");
            json_decref(s->queue.at[k]);
            s->queue.at[k] = NULL;
            return;
        }
    }
    for (uint32_t k = 0; k < s->waiting.n; k++) {
        if (json_equal(s->waiting.at[k].id, id)) {
            lsp_refuse(s, s->waiting.at[k].id, LSP_CANCELLED, "cancelled");
            drop_waiting(s, k);
            return;
        }
    }
}

static void queue_body(LspServer *s, const char *body, size_t n)
{
    json_error_t error;
    json_t *message = json_loadb(body, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    const char *method = lsp_text(message, "method");
    if (message == NULL) {
        lsp_refuse(s, NULL, LSP_PARSE_ERROR, error.text);
    } else if (method != NULL && strcmp(method, "$/cancelRequest") == 0) {
        const json_t *id = json_object_get(json_object_get(message, "params"), "id");
        if (id != NULL) {
            cancel(s, id);
        }
        json_decref(message);
    } else {
        if (s->first == s->queue.n) {
            s->first = s->queue.n = 0;
        }
        vec_push(&s->tool->arena, &s->queue, message);
    }
}

static void read_messages(LspServer *s)
{
    const char *body = NULL;
    size_t n = 0;
    lsp_frames_read(&s->in);
    for (LspFrame f; (f = lsp_frames_next(&s->in, &body, &n)) != LSP_FRAME_NONE;) {
        if (f == LSP_FRAME_BAD) {
            lsp_refuse(s, NULL, LSP_PARSE_ERROR, body);
        } else {
            queue_body(s, body, n);
        }
    }
}

/* Is there input, within so many seconds (below 0: any time)? */
static bool input_waits(LspServer *s, double seconds)
{
    struct pollfd p[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = -1}};
    if (s->priced != NULL) {
        p[1] = (struct pollfd){.fd = s->price.fd, .events = POLLIN};
    }
    int wait = seconds < 0 ? -1 : (int)(seconds * 1e3) + (seconds > 0 ? 1 : 0);
    return !s->in.ended && poll(p, 2, wait) > 0 && p[0].revents != 0;
}

static LspDocument *next_dirty(const LspServer *s)
{
    for (uint32_t k = 0; k < s->documents.n; k++) {
        if (s->documents.at[k]->dirty) {
            return s->documents.at[k];
        }
    }
    return NULL;
}

static void take_next(LspServer *s)
{
    json_t *message = s->queue.at[s->first++];
    if (message != NULL) {
        ArenaMark mark = arena_mark(&s->scratch);
        take_message(s, message);
        arena_reset(&s->scratch, mark);
        json_decref(message);
    }
}

static void wait_for_more(LspServer *s)
{
    double until = s->priced == NULL ? -1 : s->price.end - tool_clock();
    for (uint32_t k = 0; k < s->waiting.n; k++) {
        double left = s->waiting.at[k].until - tool_clock();
        until = until < 0 || left < until ? left : until;
    }
    bool waits = s->priced != NULL || s->waiting.n > 0;
    ArenaMark mark = arena_mark(&s->scratch);
    if (input_waits(s, waits && until < 0 ? 0 : until)) {
        read_messages(s);
    } else if (s->in.ended) {
        take_price(s, 0.1);
    }
    take_price(s, 0);
    answer_waiting(s);
    arena_reset(&s->scratch, mark);
}

bool lsp_serve(ToolRun *tool)
{
    LspServer s = {.tool = tool, .in = {.fd = STDIN_FILENO}};
    arena_init(&s.scratch, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    if (isatty(STDIN_FILENO)) {
        (void)fputs("tdslc: --lsp waits for an editor on standard input (docs/editors); Ctrl-D "
                    "ends it\n",
                    stderr);
    }
    check_on_failure("tdslc", NULL,
                     NULL); /* a fault is the task's, and no file is written for it */
    while (!s.done && !s.gone) {
        LspDocument *dirty = NULL;
        if (input_waits(&s, 0)) {
            read_messages(&s);
        }
        if (s.first < s.queue.n) {
            take_next(&s);
        } else if ((dirty = next_dirty(&s)) != NULL) {
            ArenaMark mark = arena_mark(&s.scratch);
            lsp_look(&s, dirty);
            arena_reset(&s.scratch, mark);
        } else if (s.in.ended && s.waiting.n == 0) {
            break;
        } else {
            wait_for_more(&s);
        }
    }
    lsp_task_stop(&s.price);
    for (uint32_t k = s.first; k < s.queue.n; k++) {
        json_decref(s.queue.at[k]);
    }
    while (s.waiting.n > 0) {
        drop_waiting(&s, 0);
    }
    while (s.documents.n > 0) {
        lsp_document_free(s.documents.at[--s.documents.n]);
    }
    free(s.kernel);
    free(s.in.at);
    arena_release(&s.scratch);
    return s.shutdown;
}
