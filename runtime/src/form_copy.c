/* SPDX-License-Identifier: Apache-2.0 */
/* A program's description of an NKI form, checked and copied. What can be judged without
 * touching a file is judged here: digests that are none, dimensions below 0, operands that are
 * no part of a tensor, elements read before they are written or written twice. All memory of a
 * form hangs on one list of blocks. */
#include "forms.h"
#include "sha256.h"

#include <stdio.h>
#include <string.h>

#define MAX_PARTS 1024

struct FormBlock {
    FormBlock *next;
    size_t bytes; /* with this header, which takes one alignment unit */
};

typedef struct Making {
    NkiForm *form;
    const char *folder; /* of relative paths, or null */
    tdsl_report *report;
    tdsl_status status; /* the first failure */
} Making;

#define MAKING_FAIL(m, code, ...)                                                              \
    ((m)->status = tdsl_fail((m)->report, code, __VA_ARGS__), false)

static const char *kernel_name(const Making *m)
{
    return m->form->kernel->info->name;
}

/* Zeroed memory that lives as long as the form; null, and a failure, without any. */
static void *keep(Making *m, size_t count, size_t size)
{
    tdsl_context *context = m->form->kernel->context;
    size_t bytes = 0;
    FormBlock *block = NULL;
    if (size_multiply(count, size, &bytes) &&
        bytes < (size_t)PTRDIFF_MAX - WORKSPACE_ALIGNMENT) {
        bytes += WORKSPACE_ALIGNMENT;
        block = tdsl_context_allocate(context, bytes);
    }
    if (block == NULL) {
        (void)MAKING_FAIL(m, TDSL_E_MEMORY, "kernel '%s': no memory for its NKI form",
                          kernel_name(m));
        return NULL;
    }
    memset(block, 0, bytes);
    block->bytes = bytes;
    block->next = m->form->blocks;
    m->form->blocks = block;
    return (unsigned char *)block + WORKSPACE_ALIGNMENT;
}

/* A null text stays null. */
static bool keep_text(Making *m, const char **to, const char *from)
{
    *to = NULL;
    if (from == NULL) {
        return true;
    }
    char *copy = keep(m, strlen(from) + 1, 1);
    if (copy != NULL) {
        memcpy(copy, from, strlen(from));
    }
    *to = copy;
    return copy != NULL;
}

static bool keep_path(Making *m, const char **to, const char *from)
{
    if (from == NULL || from[0] == '/' || m->folder == NULL || m->folder[0] == '\0') {
        return keep_text(m, to, from);
    }
    size_t bytes = strlen(m->folder) + strlen(from) + 2;
    char *path = keep(m, bytes, 1);
    if (path != NULL) {
        (void)snprintf(path, bytes, "%s/%s", m->folder, from);
    }
    *to = path;
    return path != NULL;
}

/* --- head --- */

static bool head_check(Making *m, const tdsl_nki_form *given)
{
    static const char *const targets[] = {"trn1", "trn2", "trn3"};
    bool known = false;
    if (given == NULL) {
        return MAKING_FAIL(m, TDSL_E_ARGUMENT, "kernel '%s': NKI form is null", kernel_name(m));
    }
    if (given->struct_size != sizeof *given || given->version != TDSL_NKI_VERSION) {
        return MAKING_FAIL(
            m, TDSL_E_ABI,
            "kernel '%s': NKI form of another version: start from TDSL_NKI_FORM_INIT",
            kernel_name(m));
    }
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        known = known || (given->target != NULL && strcmp(given->target, targets[i]) == 0);
    }
    if (!known) {
        return MAKING_FAIL(
            m, TDSL_E_ARGUMENT,
            "kernel '%s': target '%.40s' of the NKI form is none of trn1, trn2, trn3",
            kernel_name(m), given->target != NULL ? given->target : "");
    }
    if (given->n_parts < 1 || given->n_parts > MAX_PARTS || given->parts == NULL ||
        given->n_temporaries < 0 || (given->n_temporaries > 0 && given->temporaries == NULL)) {
        return MAKING_FAIL(
            m, TDSL_E_ARGUMENT,
            "kernel '%s': an NKI form of %d parts and %d temporaries, or without "
            "their tables",
            kernel_name(m), (int)given->n_parts, (int)given->n_temporaries);
    }
    return true;
}

static bool dims_fail(Making *m, const char *name)
{
    return MAKING_FAIL(m, TDSL_E_ARGUMENT,
                       "kernel '%s': the NKI form does not say what dimension '%s' is bound to",
                       kernel_name(m), name);
}

/* Dimensions (unbound so far) from the extents of the arguments, which must fit the kernel's.
 */
static bool dims_deduce(Making *m, const tdsl_nki_form *given, int64_t *dims)
{
    const tdsl_kernel_info *info = m->form->kernel->info;
    int32_t at = 0;
    for (int32_t i = 0; i < info->n_args; i++) {
        for (int32_t axis = 0; axis < info->args[i].rank; axis++) {
            const tdsl_extent *want = &info->args[i].extents[axis];
            int64_t extent = at < given->n_extents ? given->extents[at++] : -1;
            if (want->dim >= 0 && dims[want->dim] == DIM_UNBOUND) {
                dims[want->dim] = extent;
            }
            if (extent < 0 || extent != (want->dim < 0 ? want->fixed : dims[want->dim])) {
                return MAKING_FAIL(m, TDSL_E_ARGUMENT,
                                   "kernel '%s', argument '%s': its NKI form was built for "
                                   "another extent of axis %d (%lld)",
                                   info->name, info->args[i].name, (int)axis,
                                   (long long)extent);
            }
        }
    }
    return at == given->n_extents ||
           MAKING_FAIL(m, TDSL_E_ARGUMENT,
                       "kernel '%s': its NKI form has arguments of another rank", info->name);
}

static bool dims_make(Making *m, const tdsl_nki_form *given)
{
    const tdsl_kernel_info *info = m->form->kernel->info;
    int32_t n = info->n_dims + info->n_computed, dim = 0;
    int64_t *dims = keep(m, (size_t)n, sizeof *dims), value = 0;
    bool good = dims != NULL;
    m->form->dims = dims;
    for (int32_t d = 0; good && d < n; d++) {
        bool is_given = given->dims != NULL && d < info->n_dims && given->dims[d] >= 0;
        dims[d] = is_given ? given->dims[d] : DIM_UNBOUND;
    }
    if (good && given->dims == NULL && given->extents != NULL) {
        good = dims_deduce(m, given, dims);
    }
    ExtentFault fault = good ? tdsl_extents_complete(info, dims, &dim, &value) : EXTENT_GOOD;
    if (fault == EXTENT_UNKNOWN) {
        return dims_fail(m, info->dims[dim].name);
    }
    if (fault != EXTENT_GOOD) {
        char text[EXTENT_BYTES];
        return MAKING_FAIL(m, TDSL_E_ARGUMENT,
                           "kernel '%s': its NKI form was built for other extents than its %s",
                           info->name, tdsl_extent_text(info, dim, text, sizeof text));
    }
    return good;
}

/* --- tensors --- */

/* Bytes of a tensor, or false. */
static bool extents_bytes(int32_t dtype, int32_t rank, const int64_t *extents, size_t *bytes)
{
    bool fits = rank >= 0 && rank <= TDSL_MAX_RANK && (rank == 0 || extents != NULL);
    size_t product = tdsl_dtype_bytes(dtype);
    for (int32_t axis = 0; fits && axis < rank; axis++) {
        fits = extents[axis] >= 0 && size_multiply(product, (size_t)extents[axis], &product);
    }
    *bytes = product;
    return fits && tdsl_dtype_bytes(dtype) != 0 && product <= (size_t)PTRDIFF_MAX;
}

static bool extents_keep(Making *m, const int64_t **to, int32_t rank, const int64_t *from)
{
    int64_t *copy = keep(m, (size_t)rank, sizeof *copy);
    if (copy != NULL && rank > 0) {
        memcpy(copy, from, (size_t)rank * sizeof *copy);
    }
    *to = copy;
    return copy != NULL;
}

static bool argument_make(Making *m, size_t i)
{
    const tdsl_arg_info *arg = &m->form->kernel->info->args[i];
    NkiTensor *tensor = &m->form->tensors[i];
    int64_t *extents = keep(m, (size_t)arg->rank, sizeof *extents);
    for (int32_t axis = 0; extents != NULL && axis < arg->rank; axis++) {
        const tdsl_extent *extent = &arg->extents[axis];
        extents[axis] = extent->dim < 0 ? extent->fixed : m->form->dims[extent->dim];
    }
    *tensor = (NkiTensor){
        .name = arg->name, .dtype = arg->dtype, .rank = arg->rank, .extents = extents};
    if (extents != NULL &&
        !extents_bytes(tensor->dtype, tensor->rank, extents, &tensor->bytes)) {
        return MAKING_FAIL(m, TDSL_E_OVERFLOW,
                           "kernel '%s', argument '%s': its size for the NKI form's dimensions "
                           "does not fit an address",
                           kernel_name(m), arg->name);
    }
    return extents != NULL;
}

static bool temporary_make(Making *m, size_t at, const tdsl_nki_temporary *given)
{
    NkiTensor *tensor = &m->form->tensors[at];
    tensor->dtype = given->dtype;
    tensor->rank = given->rank;
    if (given->name == NULL || given->name[0] == '\0' ||
        !extents_bytes(given->dtype, given->rank, given->extents, &tensor->bytes)) {
        return MAKING_FAIL(m, TDSL_E_ARGUMENT,
                           "kernel '%s': temporary '%.64s' of its NKI form is no tensor",
                           kernel_name(m), given->name != NULL ? given->name : "");
    }
    return keep_text(m, &tensor->name, given->name) &&
           extents_keep(m, &tensor->extents, given->rank, given->extents);
}

static bool tensors_make(Making *m, const tdsl_nki_form *given)
{
    size_t n_args = (size_t)m->form->kernel->info->n_args;
    m->form->n_tensors = n_args + (size_t)given->n_temporaries;
    m->form->tensors = keep(m, m->form->n_tensors, sizeof *m->form->tensors);
    bool good = m->form->tensors != NULL;
    for (size_t i = 0; good && i < n_args; i++) {
        good = argument_make(m, i);
    }
    for (size_t t = 0; good && t < (size_t)given->n_temporaries; t++) {
        good = temporary_make(m, n_args + t, &given->temporaries[t]);
    }
    return good;
}

/* --- operands --- */

static void operand_whole(const NkiForm *form, int32_t role, size_t tensor, NkiOperand *operand)
{
    const NkiTensor *t = &form->tensors[tensor];
    *operand = (NkiOperand){.name = t->name,
                            .role = role,
                            .tensor = (int32_t)tensor,
                            .dtype = t->dtype,
                            .rank = t->rank,
                            .extents = t->extents,
                            .bytes = t->bytes,
                            .whole = true};
}

static bool operand_fail(Making *m, size_t number, const char *what)
{
    return MAKING_FAIL(m, TDSL_E_ARGUMENT,
                       "kernel '%s': operand %zu of a part of its NKI form %s", kernel_name(m),
                       number, what);
}

static bool operand_make(Making *m, const tdsl_nki_operand *given, size_t number,
                         NkiOperand *operand)
{
    if ((given->role != TDSL_IN && given->role != TDSL_OUT) || given->tensor < 0 ||
        (size_t)given->tensor >= m->form->n_tensors) {
        return operand_fail(m, number, "names no tensor or no role");
    }
    NkiTensor *tensor = &m->form->tensors[given->tensor];
    operand_whole(m->form, given->role, (size_t)given->tensor, operand);
    operand->words = given->words != 0;
    tensor->words = tensor->words || operand->words;
    if ((given->words != 0 && given->words != 2) ||
        (operand->words && (operand->dtype != TDSL_F64 || given->role != TDSL_OUT))) {
        return operand_fail(m, number, "has two words, and is no f64 result");
    }
    if (given->name != NULL && !keep_text(m, &operand->name, given->name)) {
        return false;
    }
    if (given->extents == NULL) {
        return true;
    }
    size_t offset = 0;
    size_t whole = operand->bytes;
    operand->whole = false;
    operand->rank = given->rank;
    if (given->offset < 0 ||
        !size_multiply((size_t)given->offset, tdsl_dtype_bytes(operand->dtype), &offset) ||
        !extents_bytes(operand->dtype, given->rank, given->extents, &operand->bytes) ||
        offset > whole || operand->bytes > whole - offset) {
        return operand_fail(m, number, "lies outside its tensor");
    }
    operand->offset = offset;
    return extents_keep(m, &operand->extents, given->rank, given->extents);
}

/* The arguments that are read, then those that are written. */
static bool operands_default(Making *m, NkiPart *part)
{
    const tdsl_kernel_info *info = m->form->kernel->info;
    part->operands = keep(m, 2 * (size_t)info->n_args, sizeof *part->operands);
    for (int side = 0; part->operands != NULL && side < 2; side++) {
        for (size_t i = 0; i < (size_t)info->n_args; i++) {
            if (side == 0 ? role_is_read(info->args[i].role)
                          : role_is_result(info->args[i].role)) {
                operand_whole(m->form, side == 0 ? TDSL_IN : TDSL_OUT, i,
                              &part->operands[part->n_operands++]);
            }
        }
    }
    return part->operands != NULL;
}

static bool operands_make(Making *m, const tdsl_nki_part *given, NkiPart *part)
{
    if (given->operands == NULL) {
        return operands_default(m, part);
    }
    if (given->n_operands < 1 || given->n_operands > 4 * TDSL_MAX_ARGS) {
        return MAKING_FAIL(m, TDSL_E_ARGUMENT,
                           "kernel '%s': a part of its NKI form has %d operands",
                           kernel_name(m), (int)given->n_operands);
    }
    part->n_operands = (size_t)given->n_operands;
    part->operands = keep(m, part->n_operands, sizeof *part->operands);
    bool good = part->operands != NULL;
    for (size_t i = 0; good && i < part->n_operands; i++) {
        good = operand_make(m, &given->operands[i], i, &part->operands[i]);
    }
    return good;
}

/* --- parts --- */

static bool is_digest(const char *text)
{
    return strlen(text) == SHA256_HEX_BYTES - 1 &&
           strspn(text, "0123456789abcdefABCDEF") == SHA256_HEX_BYTES - 1;
}

static bool part_check(Making *m, const tdsl_nki_part *given)
{
    bool neff = given->neff != NULL || given->neff_path != NULL;
    if (!neff && given->program == NULL) {
        return MAKING_FAIL(m, TDSL_E_ARGUMENT,
                           "kernel '%s': an NKI form needs a NEFF or a program",
                           kernel_name(m));
    }
    if (given->neff != NULL && given->neff_path != NULL) {
        return MAKING_FAIL(m, TDSL_E_ARGUMENT,
                           "kernel '%s': NEFF given as bytes and as a path: which one?",
                           kernel_name(m));
    }
    if (neff && (given->neff_sha256 == NULL || !is_digest(given->neff_sha256))) {
        return MAKING_FAIL(m, TDSL_E_NEFF,
                           "kernel '%s': the SHA-256 of its NEFF must be 64 hexadecimal digits",
                           kernel_name(m));
    }
    return true;
}

static bool part_make(Making *m, const tdsl_nki_part *given, NkiPart *part)
{
    part->form = m->form;
    part->neff = given->neff;
    part->neff_bytes = given->neff_bytes;
    return part_check(m, given) && keep_path(m, &part->neff_path, given->neff_path) &&
           keep_text(m, &part->neff_sha256, given->neff_sha256) &&
           keep_path(m, &part->program, given->program) &&
           keep_text(m, &part->function,
                     given->function != NULL ? given->function : kernel_name(m)) &&
           keep_path(m, &part->manifest, given->manifest) && operands_make(m, given, part);
}

/* --- order --- */

/* Bytes of [from, from + bytes) of a tensor that operands before `end` (a part and an operand)
 * write, overlaps counted as often as they occur. */
static size_t written_bytes(const NkiForm *form, int32_t tensor, size_t from, size_t bytes,
                            size_t end_part, size_t end_operand)
{
    size_t sum = 0;
    for (size_t p = 0; p <= end_part && p < form->n_parts; p++) {
        const NkiPart *part = &form->parts[p];
        size_t end = p < end_part ? part->n_operands : end_operand;
        for (size_t i = 0; i < end && i < part->n_operands; i++) {
            const NkiOperand *o = &part->operands[i];
            if (o->role == TDSL_OUT && o->tensor == tensor) {
                size_t low = o->offset > from ? o->offset : from;
                size_t high =
                    o->offset + o->bytes < from + bytes ? o->offset + o->bytes : from + bytes;
                sum += high > low ? high - low : 0;
            }
        }
    }
    return sum;
}

static bool operand_in_order(Making *m, size_t p, size_t i)
{
    const NkiForm *form = m->form;
    const tdsl_kernel_info *info = form->kernel->info;
    NkiOperand *o = &form->parts[p].operands[i];
    bool argument = o->tensor < info->n_args;
    int32_t role = argument ? info->args[o->tensor].role : TDSL_OUT;
    if (o->role == TDSL_OUT) {
        if (!role_is_result(role)) {
            return operand_fail(m, i, "writes an argument that is only read");
        }
        return written_bytes(form, o->tensor, o->offset, o->bytes, p, i) == 0 ||
               operand_fail(m, i, "writes what was written before");
    }
    size_t written = written_bytes(form, o->tensor, o->offset, o->bytes, p, 0);
    o->written = written != 0 || !role_is_read(role);
    form->tensors[o->tensor].read = form->tensors[o->tensor].read || !o->written;
    return !o->written || written == o->bytes ||
           operand_fail(m, i, "reads what is not, or not wholly, written before");
}

/* Every element of a result is written once, and nothing is read before that. */
static bool order_check(Making *m)
{
    const NkiForm *form = m->form;
    bool good = true;
    for (size_t p = 0; good && p < form->n_parts; p++) {
        for (size_t i = 0; good && i < form->parts[p].n_operands; i++) {
            good = operand_in_order(m, p, i);
        }
    }
    for (size_t t = 0; good && t < (size_t)form->kernel->info->n_args; t++) {
        const NkiTensor *tensor = &form->tensors[t];
        if (role_is_result(form->kernel->info->args[t].role) &&
            written_bytes(form, (int32_t)t, 0, tensor->bytes, form->n_parts, 0) !=
                tensor->bytes) {
            return MAKING_FAIL(m, TDSL_E_ARGUMENT,
                               "kernel '%s': its NKI form does not write all of result '%s'",
                               kernel_name(m), tensor->name);
        }
    }
    return good;
}

static bool form_fill(Making *m, const tdsl_nki_form *given)
{
    NkiForm *form = m->form;
    if (!keep_text(m, &form->target, given->target) || !dims_make(m, given) ||
        !tensors_make(m, given)) {
        return false;
    }
    form->n_parts = (size_t)given->n_parts;
    form->parts = keep(m, form->n_parts, sizeof *form->parts);
    bool good = form->parts != NULL;
    for (size_t p = 0; good && p < form->n_parts; p++) {
        good = part_make(m, &given->parts[p], &form->parts[p]);
    }
    return good && order_check(m);
}

NkiForm *tdsl_form_make(tdsl_kernel *kernel, const tdsl_nki_form *given, const char *folder,
                        tdsl_report *report, tdsl_status *status)
{
    NkiForm draft;
    memset(&draft, 0, sizeof draft);
    draft.kernel = kernel;
    Making m = {&draft, folder, report, TDSL_OK};
    if (!head_check(&m, given)) {
        *status = m.status;
        return NULL;
    }
    NkiForm *form = tdsl_context_allocate(kernel->context, sizeof *form);
    if (form == NULL) {
        *status = tdsl_fail(report, TDSL_E_MEMORY, "kernel '%s': no memory for its NKI form",
                            kernel->info->name);
        return NULL;
    }
    *form = draft;
    m.form = form;
    if (!form_fill(&m, given)) {
        tdsl_form_free(form);
        *status = m.status;
        return NULL;
    }
    *status = TDSL_OK;
    return form;
}

void tdsl_form_free(NkiForm *form)
{
    tdsl_context *context = form->kernel->context;
    while (form->blocks != NULL) {
        FormBlock *next = form->blocks->next;
        tdsl_context_release(context, form->blocks, form->blocks->bytes);
        form->blocks = next;
    }
    tdsl_context_release(context, form, sizeof *form);
}
