/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration and environment, turned into settings once, at context creation. What the program sets
 * wins; what it leaves at its default is taken from the environment; what neither says has a default
 * here. A variable that makes no sense is an error that names it: a misspelt TDSL_BACKEND must not
 * quietly mean "auto". Programs running with another user's rights read no variable. */
#define _GNU_SOURCE /* secure_getenv */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_MIN_NKI_FLOPS 2e9
#define DEFAULT_TIMEOUT_MS    60000

static const char *const backend_names[] = {"default", "auto", "c", "nki", "emulator"};

const char *tdsl_backend_name(int32_t backend)
{
    bool known =
        backend > 0 && (size_t)backend < sizeof backend_names / sizeof backend_names[0];
    return known ? backend_names[backend] : "nothing";
}

/* Null when unset or empty. */
static const char *variable(const tdsl_config *config, const char *name)
{
    const char *text = config->ignore_environment != 0 ? NULL : secure_getenv(name);
    return text != NULL && text[0] != '\0' ? text : NULL;
}

static tdsl_status backend_read(Settings *settings, const tdsl_config *config,
                                tdsl_report *report)
{
    settings->backend = TDSL_BACKEND_AUTO;
    if (config->backend < 0 || config->backend > TDSL_BACKEND_EMULATOR) {
        return tdsl_fail(report, TDSL_E_ARGUMENT, "tdsl_config.backend: %d is no backend",
                         (int)config->backend);
    }
    if (config->backend != TDSL_BACKEND_DEFAULT) {
        settings->backend = config->backend;
        return TDSL_OK;
    }
    const char *text = variable(config, "TDSL_BACKEND");
    if (text == NULL) {
        return TDSL_OK;
    }
    for (int32_t b = TDSL_BACKEND_AUTO; b <= TDSL_BACKEND_EMULATOR; b++) {
        if (strcmp(text, backend_names[b]) == 0) {
            settings->backend = b;
            return TDSL_OK;
        }
    }
    return tdsl_fail(report, TDSL_E_ARGUMENT,
                     "TDSL_BACKEND: '%.80s' is no backend; use auto, c, nki or emulator", text);
}

static tdsl_status flag_read(const tdsl_config *config, int32_t given, const char *name,
                             bool *flag, tdsl_report *report)
{
    *flag = given > 0;
    const char *text = given == 0 ? variable(config, name) : NULL;
    if (text == NULL || strcmp(text, "0") == 0) {
        return TDSL_OK;
    }
    if (strcmp(text, "1") != 0) {
        return tdsl_fail(report, TDSL_E_ARGUMENT, "%s: '%.80s' is neither 0 nor 1", name, text);
    }
    *flag = true;
    return TDSL_OK;
}

/* DIGITS[.DIGITS][e[+]DIGITS], at least one digit first; not strtod, which obeys the locale. */
static bool parse_flops(const char *text, double *value)
{
    double scale = 1;
    *value = 0;
    if (*text < '0' || *text > '9') {
        return false;
    }
    for (; *text >= '0' && *text <= '9'; text++) {
        *value = *value * 10 + (*text - '0');
    }
    if (*text == '.') {
        for (text++; *text >= '0' && *text <= '9'; text++) {
            scale /= 10;
            *value += scale * (*text - '0');
        }
    }
    if (*text == 'e' || *text == 'E') {
        text += text[1] == '+' ? 2 : 1;
        int exponent = 0;
        if (*text < '0' || *text > '9') {
            return false;
        }
        for (; *text >= '0' && *text <= '9'; text++) {
            exponent = exponent < 1000 ? exponent * 10 + (*text - '0') : exponent;
        }
        for (; exponent > 0 && *value < 1e300; exponent--) {
            *value *= 10;
        }
    }
    return *text == '\0' && *value < 1e300;
}

static tdsl_status flops_read(Settings *settings, const tdsl_config *config,
                              tdsl_report *report)
{
    settings->min_nki_flops = DEFAULT_MIN_NKI_FLOPS;
    if (config->min_nki_flops < 0) {
        return tdsl_fail(report, TDSL_E_ARGUMENT, "tdsl_config.min_nki_flops: %lld is below 0",
                         (long long)config->min_nki_flops);
    }
    if (config->min_nki_flops > 0) {
        settings->min_nki_flops = (double)config->min_nki_flops;
        return TDSL_OK;
    }
    const char *text = variable(config, "TDSL_MIN_NKI_FLOPS");
    if (text != NULL && !parse_flops(text, &settings->min_nki_flops)) {
        return tdsl_fail(
            report, TDSL_E_ARGUMENT,
            "TDSL_MIN_NKI_FLOPS: '%.80s' is no number of floating-point operations (2 "
            "per multiply-add), such as 2e9",
            text);
    }
    return TDSL_OK;
}

static tdsl_status text_read(tdsl_context *context, const tdsl_config *config,
                             const char *given, const char *name, const char *fallback,
                             char **text, tdsl_report *report)
{
    const char *chosen = given != NULL && given[0] != '\0' ? given : variable(config, name);
    *text = tdsl_context_copy_text(context, chosen != NULL ? chosen : fallback);
    return *text != NULL ? TDSL_OK
                         : tdsl_fail(report, TDSL_E_MEMORY, "tdsl_context_create: no memory");
}

static tdsl_status numbers_read(Settings *settings, const tdsl_config *config,
                                tdsl_report *report)
{
    tdsl_status status = backend_read(settings, config, report);
    if (status == TDSL_OK) {
        status = flag_read(config, config->require_nki, "TDSL_REQUIRE_NKI",
                           &settings->require_nki, report);
    }
    if (status == TDSL_OK) {
        status = flag_read(config, config->use_simulator, "TDSL_USE_SIMULATOR",
                           &settings->use_simulator, report);
    }
    if (status == TDSL_OK) {
        status = flops_read(settings, config, report);
    }
    if (status != TDSL_OK) {
        return status;
    }
    if (settings->require_nki && settings->backend == TDSL_BACKEND_C) {
        return tdsl_fail(report, TDSL_E_ARGUMENT,
                         "TDSL_REQUIRE_NKI: contradicts TDSL_BACKEND=c, which never uses NKI");
    }
    if (config->device_core < 0 || config->device_timeout_ms < 0) {
        return tdsl_fail(report, TDSL_E_ARGUMENT, "tdsl_config.%s: below 0",
                         config->device_core < 0 ? "device_core" : "device_timeout_ms");
    }
    settings->device_core = config->device_core;
    settings->device_timeout_ms =
        config->device_timeout_ms > 0 ? config->device_timeout_ms : DEFAULT_TIMEOUT_MS;
    return TDSL_OK;
}

/* Nobody named an emulator: the installed one, if it is there. */
static tdsl_status emulator_settle(tdsl_context *context, tdsl_report *report)
{
    char *found = NULL;
    if (context->settings.emulator[0] == '\0' && !tdsl_emulator_locate(context, &found)) {
        return tdsl_fail(report, TDSL_E_MEMORY, "tdsl_context_create: no memory");
    }
    if (found != NULL) {
        tdsl_context_release_text(context, context->settings.emulator);
        context->settings.emulator = found;
    }
    return TDSL_OK;
}

tdsl_status tdsl_settings_read(tdsl_context *context, const tdsl_config *config,
                               tdsl_report *report)
{
    Settings *settings = &context->settings;
    tdsl_status status = numbers_read(settings, config, report);
    if (status == TDSL_OK) {
        status = text_read(context, config, config->nrt_library, "TDSL_NRT_LIBRARY", "",
                           &settings->nrt_library, report);
    }
    if (status == TDSL_OK) {
        status = text_read(context, config, config->emulator, "TDSL_NKI_EMULATOR", "",
                           &settings->emulator, report);
    }
    if (status == TDSL_OK) {
        status = emulator_settle(context, report);
    }
    if (status == TDSL_OK) {
        status = text_read(context, config, config->python, "TDSL_PYTHON", "python3",
                           &settings->python, report);
    }
    if (status == TDSL_OK) {
        status =
            text_read(context, config, NULL, "TMPDIR", "/tmp", &settings->temporary, report);
    }
    return status;
}

void tdsl_settings_release(tdsl_context *context)
{
    tdsl_context_release_text(context, context->settings.temporary);
    tdsl_context_release_text(context, context->settings.python);
    tdsl_context_release_text(context, context->settings.emulator);
    tdsl_context_release_text(context, context->settings.nrt_library);
}
