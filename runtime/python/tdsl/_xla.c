/* SPDX-License-Identifier: Apache-2.0 */
/* What XLA calls for an einsum, and for a kernel of a program: its typed foreign function interface, in C. _xla.py puts the #include of jaxlib's header before this text and compiles it
 * once. A call is looked up by its string or program, types and extents; the first of its kind asks Python, which compiles the kernel. */
#include <stdint.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_ARGS = 64,
    MOST_WORDS = 512,
    BUCKETS = 1024,
    KEPT_SPACE = 1 << 26,
    MESSAGE_SIZE = 1024
};

/* As _xla.py has them. */
typedef struct prepared {
    int32_t (*call)(const int64_t *dims, void *const *args, void *workspace, size_t bytes,
                    const void *threads);
    const int64_t *dims;
    size_t workspace;
    const void *threads;
} prepared;

typedef struct request {
    const char *text;
    int64_t length;
    const int64_t *
        words; /* how many arguments; of each, results the last: XLA's number of its type, its rank, its extents */
    char *message; /* of MESSAGE_SIZE bytes, for what is wrong */
} request;

typedef const prepared *(*question)(const request *r);

/* What a status of a kernel means, into `message`. */
typedef void (*explanation)(const prepared *p, int32_t status, void *const *args,
                            char *message);

static question ask_python;
static explanation explain_by_python;

void tdsl_xla_begin(question ask, explanation explain)
{
    ask_python = ask;
    explain_by_python = explain;
}

typedef struct entry {
    struct entry *next;
    uint64_t hash;
    const prepared *p;
    char *text;
    size_t length;
    int64_t n_words, words[];
} entry;

static entry *bucket[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

typedef struct key {
    const char *text;
    size_t length;
    uint64_t hash;
    int64_t n_words, words[MOST_WORDS];
} key;

static void hash_word(key *k, uint64_t word)
{
    k->hash = (k->hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    k->hash ^= k->hash >> 32;
}

static int add_word(key *k, int64_t word)
{
    if (k->n_words == MOST_WORDS) {
        return 0;
    }
    k->words[k->n_words++] = word;
    hash_word(k, (uint64_t)word);
    return 1;
}

static int add_buffer(key *k, const XLA_FFI_Buffer *b)
{
    int fits = add_word(k, (int64_t)b->dtype) && add_word(k, b->rank);
    for (int64_t axis = 0; fits && axis < b->rank; axis++) {
        fits = add_word(k, b->dims[axis]);
    }
    return fits;
}

static const entry *find(const key *k)
{
    for (const entry *e = __atomic_load_n(&bucket[k->hash % BUCKETS], __ATOMIC_ACQUIRE);
         e != NULL; e = e->next) {
        if (e->hash == k->hash && e->n_words == k->n_words && e->length == k->length &&
            memcmp(e->text, k->text, k->length) == 0 &&
            memcmp(e->words, k->words, (size_t)k->n_words * sizeof k->words[0]) == 0) {
            return e;
        }
    }
    return NULL;
}

static void keep(const key *k, const prepared *p)
{
    size_t bytes = (size_t)k->n_words * sizeof k->words[0];
    entry *e = malloc(sizeof *e + bytes + k->length);
    if (e == NULL) {
        return; /* and Python is asked again */
    }
    e->hash = k->hash;
    e->p = p;
    e->length = k->length;
    e->n_words = k->n_words;
    e->text = (char *)e->words + bytes;
    memcpy(e->words, k->words, bytes);
    memcpy(e->text, k->text, k->length);
    pthread_mutex_lock(&lock);
    entry **first = &bucket[k->hash % BUCKETS];
    e->next = *first;
    __atomic_store_n(first, e, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
}

static XLA_FFI_Error *error_of(const XLA_FFI_CallFrame *frame, XLA_FFI_Error_Code code,
                               const char *message)
{
    XLA_FFI_Error_Create_Args args = {
        .struct_size = XLA_FFI_Error_Create_Args_STRUCT_SIZE, .message = message, .errc = code};
    return frame->api->XLA_FFI_Error_Create(&args);
}

static _Thread_local struct {
    char *bytes;
    size_t size;
} kept;

static XLA_FFI_Error *run(const XLA_FFI_CallFrame *frame, const prepared *p,
                          void *const *address)
{
    char *temporary = NULL, *space = kept.bytes;
    if (p->workspace > kept.size) {
        space = malloc(p->workspace);
        if (space == NULL) {
            return error_of(frame, XLA_FFI_Error_Code_RESOURCE_EXHAUSTED,
                            "tdsl: no memory for the workspace of a kernel");
        }
        if (p->workspace > (size_t)KEPT_SPACE) {
            temporary = space;
        } else {
            free(kept.bytes);
            kept.bytes = space;
            kept.size = p->workspace;
        }
    }
    int32_t status =
        p->call(p->dims, address, p->workspace == 0 ? NULL : space, p->workspace, p->threads);
    free(temporary);
    if (status == 0) {
        return NULL;
    }
    char message[MESSAGE_SIZE] = "tdsl: a kernel failed";
    explain_by_python(p, status, address, message);
    return error_of(frame, XLA_FFI_Error_Code_INTERNAL, message);
}

XLA_FFI_Error *tdsl_xla_call(XLA_FFI_CallFrame *frame)
{
    if (frame->extension_start != NULL &&
        frame->extension_start->type == XLA_FFI_Extension_Metadata) {
        XLA_FFI_Metadata *m = ((XLA_FFI_Metadata_Extension *)frame->extension_start)->metadata;
        m->api_version.major_version = XLA_FFI_API_MAJOR;
        m->api_version.minor_version = XLA_FFI_API_MINOR;
        return NULL;
    }
    if (frame->stage != XLA_FFI_ExecutionStage_EXECUTE) {
        return NULL;
    }
    int64_t n = frame->args.size;
    int64_t all = n + frame->rets.size;
    if (all > MOST_ARGS || frame->attrs.size != 1 ||
        frame->attrs.types[0] != XLA_FFI_AttrType_STRING) {
        return error_of(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                        "tdsl: a call has at most 64 arrays, and one attribute");
    }
    key k;
    k.n_words = 0;
    k.hash = 0;
    const XLA_FFI_ByteSpan *text = frame->attrs.attrs[0];
    k.text = text->ptr;
    k.length = text->len;
    for (size_t at = 0; at < k.length; at++) {
        k.hash = (k.hash ^ (unsigned char)k.text[at]) * UINT64_C(0x100000001B3);
    }
    void *address[MOST_ARGS];
    int fits = add_word(&k, all);
    for (int64_t a = 0; a < all; a++) {
        const XLA_FFI_Buffer *b = a < n ? frame->args.args[a] : frame->rets.rets[a - n];
        fits = fits && add_buffer(&k, b);
        address[a] = b->data;
    }
    if (!fits) {
        return error_of(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                        "tdsl: too many dimensions for a call by XLA");
    }
    const entry *e = find(&k);
    if (e != NULL) {
        return run(frame, e->p, address);
    }
    char message[MESSAGE_SIZE] = "tdsl: the kernel could not be compiled";
    request r = {k.text, (int64_t)k.length, k.words, message};
    const prepared *p = ask_python(&r);
    if (p == NULL) {
        return error_of(frame, XLA_FFI_Error_Code_INTERNAL, message);
    }
    keep(&k, p);
    return run(frame, p, address);
}
