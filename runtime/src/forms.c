/* SPDX-License-Identifier: Apache-2.0 */
/* Registration and choice of NKI forms. What can be judged without touching a file is judged
 * here: a digest that is none, dimensions below 0. The file itself is read when it is first
 * needed. */
#include "forms.h"

#include "sha256.h"

#include <string.h>

static bool form_serves(const NkiForm *form, int32_t backend)
{
    if (backend == TDSL_BACKEND_EMULATOR) {
        return form->program != NULL;
    }
    return form->neff != NULL || form->neff_path != NULL;
}

NkiForm *tdsl_forms_find(tdsl_kernel *kernel, int32_t backend, const int64_t *dims,
                         NkiForm **other)
{
    size_t dims_bytes = (size_t)kernel->info->n_dims * sizeof *dims;
    *other = NULL;
    NkiForm *form = atomic_load_explicit(&kernel->forms, memory_order_acquire);
    for (; form != NULL; form = form->next) {
        if (!form_serves(form, backend)) {
            continue;
        }
        if (dims_bytes == 0 || memcmp(form->dims, dims, dims_bytes) == 0) {
            return form;
        }
        *other = form;
    }
    return NULL;
}

static bool is_digest(const char *text)
{
    return strlen(text) == SHA256_HEX_BYTES - 1 &&
           strspn(text, "0123456789abcdefABCDEF") == SHA256_HEX_BYTES - 1;
}

static tdsl_status form_check(const tdsl_kernel_info *info, const tdsl_nki_form *given,
                              tdsl_report *report)
{
    bool neff = given->neff != NULL || given->neff_path != NULL;
    if (given->struct_size != sizeof *given) {
        return tdsl_fail(
            report, TDSL_E_ABI,
            "kernel '%s': NKI form of another version: start from TDSL_NKI_FORM_INIT",
            info->name);
    }
    if (!neff && given->program == NULL) {
        return tdsl_fail(report, TDSL_E_ARGUMENT,
                         "kernel '%s': an NKI form needs a NEFF or a program", info->name);
    }
    if (given->neff != NULL && given->neff_path != NULL) {
        return tdsl_fail(report, TDSL_E_ARGUMENT,
                         "kernel '%s': NEFF given as bytes and as a path: which one?",
                         info->name);
    }
    if (given->target == NULL || strncmp(given->target, "trn", 3) != 0) {
        return tdsl_fail(report, TDSL_E_ARGUMENT,
                         "kernel '%s': target '%s' of the NKI form is none of trn1, trn2, trn3",
                         info->name, given->target != NULL ? given->target : "");
    }
    if (neff && (given->neff_sha256 == NULL || !is_digest(given->neff_sha256))) {
        return tdsl_fail(report, TDSL_E_NEFF,
                         "kernel '%s': the SHA-256 of its NEFF must be 64 hexadecimal digits",
                         info->name);
    }
    for (int32_t d = 0; d < info->n_dims; d++) {
        if (given->dims == NULL || given->dims[d] < 0) {
            return tdsl_fail(
                report, TDSL_E_ARGUMENT,
                "kernel '%s': the NKI form does not say what dimension '%s' is bound to",
                info->name, info->dims[d].name);
        }
    }
    return TDSL_OK;
}

static void form_free(tdsl_context *context, NkiForm *form)
{
    if (form == NULL) {
        return;
    }
    tdsl_context_release(context, form->dims,
                         (size_t)form->kernel->info->n_dims * sizeof(int64_t));
    tdsl_context_release_text(context, form->manifest);
    tdsl_context_release_text(context, form->function);
    tdsl_context_release_text(context, form->program);
    tdsl_context_release_text(context, form->neff_sha256);
    tdsl_context_release_text(context, form->neff_path);
    tdsl_context_release_text(context, form->target);
    tdsl_context_release(context, form, sizeof *form);
}

static bool text_copy(tdsl_context *context, char **to, const char *from)
{
    *to = from != NULL ? tdsl_context_copy_text(context, from) : NULL;
    return from == NULL || *to != NULL;
}

/* Null without memory. */
static NkiForm *form_copy(tdsl_kernel *kernel, const tdsl_nki_form *given)
{
    tdsl_context *context = kernel->context;
    size_t dims_bytes = (size_t)kernel->info->n_dims * sizeof(int64_t);
    const char *function = given->function != NULL ? given->function : kernel->info->name;
    NkiForm *form = tdsl_context_allocate(context, sizeof *form);
    if (form == NULL) {
        return NULL;
    }
    memset(form, 0, sizeof *form);
    form->kernel = kernel;
    form->neff = given->neff;
    form->neff_bytes = given->neff_bytes;
    bool whole = text_copy(context, &form->target, given->target) &&
                 text_copy(context, &form->neff_path, given->neff_path) &&
                 text_copy(context, &form->neff_sha256, given->neff_sha256) &&
                 text_copy(context, &form->program, given->program) &&
                 text_copy(context, &form->function, function) &&
                 text_copy(context, &form->manifest, given->manifest);
    form->dims = whole ? tdsl_context_allocate(context, dims_bytes) : NULL;
    if (form->dims == NULL) {
        form_free(context, form);
        return NULL;
    }
    if (dims_bytes > 0) {
        memcpy(form->dims, given->dims, dims_bytes);
    }
    return form;
}

tdsl_status tdsl_register_nki(tdsl_context *context, const char *name,
                              const tdsl_nki_form *form, tdsl_report *report)
{
    tdsl_kernel *kernel = NULL;
    tdsl_status status = tdsl_find(context, name, &kernel, report);
    if (status != TDSL_OK) {
        return status;
    }
    if (form == NULL) {
        return tdsl_fail(report, TDSL_E_ARGUMENT, "kernel '%s': NKI form is null", name);
    }
    status = form_check(kernel->info, form, report);
    if (status != TDSL_OK) {
        return status;
    }
    NkiForm *made = form_copy(kernel, form);
    if (made == NULL) {
        return tdsl_fail(report, TDSL_E_MEMORY, "kernel '%s': no memory for its NKI form",
                         name);
    }
    (void)pthread_mutex_lock(&context->registry_lock);
    made->next = atomic_load_explicit(&kernel->forms, memory_order_relaxed);
    atomic_store_explicit(&kernel->forms, made, memory_order_release);
    (void)pthread_mutex_unlock(&context->registry_lock);
    return TDSL_OK;
}

void tdsl_forms_free(tdsl_kernel *kernel)
{
    NkiForm *form = atomic_load(&kernel->forms);
    while (form != NULL) {
        NkiForm *next = form->next;
        form_free(kernel->context, form);
        form = next;
    }
}
