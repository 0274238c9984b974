/* SPDX-License-Identifier: Apache-2.0 */
/* Registration and choice of NKI forms. */
#include "forms.h"

#include <string.h>

static bool form_serves(const NkiForm *form, int32_t backend)
{
    bool serves = true;
    for (size_t p = 0; p < form->n_parts; p++) {
        const NkiPart *part = &form->parts[p];
        serves = serves && (backend == TDSL_BACKEND_EMULATOR
                                ? part->program != NULL
                                : part->neff != NULL || part->neff_path != NULL);
    }
    return serves;
}

NkiForm *tdsl_forms_find(tdsl_kernel *kernel, int32_t backend, const int64_t *dims,
                         const char *target, NkiForm **other)
{
    size_t dims_bytes = (size_t)kernel->info->n_dims * sizeof *dims;
    *other = NULL;
    NkiForm *form = atomic_load_explicit(&kernel->forms, memory_order_acquire);
    for (; form != NULL; form = form->next) {
        if (!form_serves(form, backend) ||
            (target != NULL && strcmp(form->target, target) != 0)) {
            continue;
        }
        if (dims_bytes == 0 || memcmp(form->dims, dims, dims_bytes) == 0) {
            return form;
        }
        *other = form;
    }
    return NULL;
}

static tdsl_status form_register(tdsl_context *context, const char *name,
                                 const tdsl_nki_form *form, const char *folder,
                                 tdsl_report *report)
{
    tdsl_kernel *kernel = NULL;
    tdsl_status status = tdsl_find(context, name, &kernel, report);
    if (status != TDSL_OK) {
        return status;
    }
    NkiForm *made = tdsl_form_make(kernel, form, folder, report, &status);
    if (made == NULL) {
        return status;
    }
    (void)pthread_mutex_lock(&context->registry_lock);
    made->next = atomic_load_explicit(&kernel->forms, memory_order_relaxed);
    atomic_store_explicit(&kernel->forms, made, memory_order_release);
    (void)pthread_mutex_unlock(&context->registry_lock);
    return TDSL_OK;
}

tdsl_status tdsl_register_nki(tdsl_context *context, const char *name,
                              const tdsl_nki_form *form, tdsl_report *report)
{
    return form_register(context, name, form, NULL, report);
}

tdsl_status tdsl_register_nki_all(tdsl_context *context, const tdsl_nki_form *const *forms,
                                  const char *folder, tdsl_report *report)
{
    if (!tdsl_report_begin(report, NULL)) {
        return TDSL_E_ABI;
    }
    if (forms == NULL) {
        return tdsl_fail(report, TDSL_E_ARGUMENT,
                         "tdsl_register_nki_all: the list of forms is null");
    }
    tdsl_status status = TDSL_OK;
    for (size_t i = 0; status == TDSL_OK && forms[i] != NULL; i++) {
        if (forms[i]->struct_size != sizeof **forms || forms[i]->kernel == NULL) {
            return tdsl_fail(report, TDSL_E_ABI,
                             "tdsl_register_nki_all: form %zu is of another version, or of no "
                             "kernel",
                             i);
        }
        status = form_register(context, forms[i]->kernel, forms[i], folder, report);
    }
    return status;
}

void tdsl_forms_free(tdsl_kernel *kernel)
{
    NkiForm *form = atomic_load(&kernel->forms);
    while (form != NULL) {
        NkiForm *next = form->next;
        tdsl_form_free(form);
        form = next;
    }
}
