/* SPDX-License-Identifier: Apache-2.0 */
/* The context: owner of everything the runtime holds. Creation reads the configuration and the
 * environment once; destruction gives all of it back in reverse order. All memory goes through the
 * context's two functions, so a program can count it, bound it, or take it from where it likes. */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *default_allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    return aligned_alloc(alignment, bytes);
}

static void default_release(void *user, void *memory, size_t bytes)
{
    (void)user;
    (void)bytes;
    free(memory);
}

static void default_log(void *user, const char *message)
{
    (void)user;
    (void)fprintf(stderr, "libtdsl: %s\n", message);
}

static size_t allocation_bytes(size_t bytes)
{
    size_t rest = bytes % WORKSPACE_ALIGNMENT;
    return bytes == 0  ? WORKSPACE_ALIGNMENT
           : rest == 0 ? bytes
                       : bytes + WORKSPACE_ALIGNMENT - rest;
}

void *tdsl_context_allocate(tdsl_context *context, size_t bytes)
{
    if (bytes > (size_t)PTRDIFF_MAX - WORKSPACE_ALIGNMENT) {
        return NULL;
    }
    return context->allocate(context->user, allocation_bytes(bytes), WORKSPACE_ALIGNMENT);
}

void tdsl_context_release(tdsl_context *context, void *memory, size_t bytes)
{
    if (memory != NULL) {
        context->release(context->user, memory, allocation_bytes(bytes));
    }
}

char *tdsl_context_copy_text(tdsl_context *context, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = tdsl_context_allocate(context, bytes);
    if (copy != NULL) {
        memcpy(copy, text, bytes);
    }
    return copy;
}

void tdsl_context_release_text(tdsl_context *context, char *text)
{
    if (text != NULL) {
        tdsl_context_release(context, text, strlen(text) + 1);
    }
}

static tdsl_status config_check(const tdsl_config *config, tdsl_report *report)
{
    if (config->struct_size != sizeof *config) {
        return tdsl_fail(
            report, TDSL_E_ABI,
            "tdsl_context_create: configuration of %u bytes, expected %zu: start from "
            "TDSL_CONFIG_INIT",
            (unsigned)config->struct_size, sizeof *config);
    }
    if ((config->allocate == NULL) != (config->release == NULL)) {
        return tdsl_fail(report, TDSL_E_ARGUMENT,
                         "tdsl_context_create: allocate and release must be given together");
    }
    return TDSL_OK;
}

/* Both locks, or neither. */
static bool locks_create(tdsl_context *context)
{
    if (pthread_mutex_init(&context->registry_lock, NULL) != 0) {
        return false;
    }
    if (pthread_mutex_init(&context->device_lock, NULL) != 0) {
        (void)pthread_mutex_destroy(&context->registry_lock);
        return false;
    }
    return true;
}

tdsl_status tdsl_context_create(const tdsl_config *config, tdsl_context **context,
                                tdsl_report *report)
{
    static const tdsl_config defaults = TDSL_CONFIG_INIT;
    if (!tdsl_report_begin(report, NULL)) {
        return TDSL_E_ABI;
    }
    if (context == NULL) {
        return tdsl_fail(report, TDSL_E_ARGUMENT, "tdsl_context_create: context is null");
    }
    config = config != NULL ? config : &defaults;
    tdsl_status status = config_check(config, report);
    if (status != TDSL_OK) {
        return status;
    }
    tdsl_context fresh;
    memset(&fresh, 0, sizeof fresh);
    fresh.user = config->user;
    fresh.allocate = config->allocate != NULL ? config->allocate : default_allocate;
    fresh.release = config->release != NULL ? config->release : default_release;
    fresh.log = config->log != NULL ? config->log : default_log;
    tdsl_context *made = tdsl_context_allocate(&fresh, sizeof fresh);
    if (made == NULL) {
        return tdsl_fail(report, TDSL_E_MEMORY, "tdsl_context_create: no memory");
    }
    *made = fresh;
    status = tdsl_settings_read(made, config, report);
    if (status == TDSL_OK && !locks_create(made)) {
        status = tdsl_fail(report, TDSL_E_MEMORY, "tdsl_context_create: no mutex to be had");
    }
    if (status != TDSL_OK) {
        tdsl_settings_release(made);
        tdsl_context_release(&fresh, made, sizeof fresh);
        return status;
    }
    *context = made;
    return TDSL_OK;
}

void tdsl_context_destroy(tdsl_context *context)
{
    if (context == NULL) {
        return;
    }
    tdsl_device_close(context);
    for (size_t i = context->n_kernels; i-- > 0;) {
        tdsl_kernel_free(context->kernels[i]);
    }
    tdsl_context_release(context, context->kernels,
                         context->kernel_capacity * sizeof(tdsl_kernel *));
    tdsl_settings_release(context);
    (void)pthread_mutex_destroy(&context->device_lock);
    (void)pthread_mutex_destroy(&context->registry_lock);
    tdsl_context self = *context;
    tdsl_context_release(&self, context, sizeof *context);
}
