/* SPDX-License-Identifier: Apache-2.0 */
/* The stub's script and its count of calls. */
#define _POSIX_C_SOURCE 200809L
#include "stub.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOGGED 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static bool let_go;
static bool scripted;
static char script[1024];
static long calls;
static const char *names[LOGGED];

void stub_nrt_script(const char *text)
{
    (void)pthread_mutex_lock(&lock);
    (void)snprintf(script, sizeof script, "%s", text);
    scripted = true;
    calls = 0;
    (void)pthread_mutex_unlock(&lock);
}

long stub_nrt_calls(void)
{
    (void)pthread_mutex_lock(&lock);
    long count = calls;
    (void)pthread_mutex_unlock(&lock);
    return count;
}

/* The lock is held. */
static long count_of(const char *function)
{
    long count = 0;
    for (long i = 0; i < calls && i < LOGGED; i++) {
        count += strcmp(names[i], function) == 0;
    }
    return count;
}

long stub_nrt_calls_of(const char *function)
{
    (void)pthread_mutex_lock(&lock);
    long count = count_of(function);
    (void)pthread_mutex_unlock(&lock);
    return count;
}

const char *stub_nrt_call_name(long number)
{
    (void)pthread_mutex_lock(&lock);
    const char *name =
        number >= 1 && number <= calls && number <= LOGGED ? names[number - 1] : "";
    (void)pthread_mutex_unlock(&lock);
    return name;
}

void stub_nrt_let_go(void)
{
    (void)pthread_mutex_lock(&lock);
    let_go = true;
    (void)pthread_cond_broadcast(&released);
    (void)pthread_mutex_unlock(&lock);
}

/* Does the item's left side fit this call? The lock is held, the call counted. */
static bool item_fits(const char *item, size_t length, const char *function)
{
    char left[128];
    if (length >= sizeof left) {
        return false;
    }
    memcpy(left, item, length);
    left[length] = '\0';
    if (left[0] == '#') {
        return strtol(left + 1, NULL, 10) == calls;
    }
    char *colon = strchr(left, ':');
    long number = 0;
    if (colon != NULL) {
        number = strtol(colon + 1, NULL, 10);
        *colon = '\0';
    }
    return strcmp(left, function) == 0 && (number == 0 || number == count_of(function));
}

/* What the script says, or null. The lock is held. */
static const char *script_verdict(const char *function)
{
    for (const char *item = script; *item != '\0';) {
        const char *equals = strchr(item, '=');
        if (equals == NULL) {
            return NULL;
        }
        if (item_fits(item, (size_t)(equals - item), function)) {
            return equals + 1;
        }
        const char *comma = strchr(equals, ',');
        item = comma != NULL ? comma + 1 : equals + strlen(equals);
    }
    return NULL;
}

/* The lock is held. */
static void script_begin(void)
{
    const char *text = scripted ? NULL : getenv("TDSL_STUB_NRT");
    if (text != NULL) {
        (void)snprintf(script, sizeof script, "%s", text);
    }
    scripted = true;
}

NrtStatus stub_enter(const char *function)
{
    NrtStatus status = NRT_SUCCESS;
    (void)pthread_mutex_lock(&lock);
    script_begin();
    if (calls < LOGGED) {
        names[calls] = function;
    }
    calls++;
    const char *verdict = script_verdict(function);
    if (verdict != NULL && strncmp(verdict, "hang", 4) == 0) {
        while (!let_go) {
            (void)pthread_cond_wait(&released, &lock);
        }
    } else if (verdict != NULL && strncmp(verdict, "nothing", 7) == 0) {
        status = STUB_NOTHING;
    } else if (verdict != NULL) {
        status = (NrtStatus)strtol(verdict, NULL, 10);
    }
    (void)pthread_mutex_unlock(&lock);
    return status;
}

unsigned long long stub_number(const char *name, unsigned long long otherwise)
{
    (void)pthread_mutex_lock(&lock);
    const char *at = strstr(script, name);
    unsigned long long number = at != NULL ? strtoull(at + strlen(name), NULL, 10) : otherwise;
    (void)pthread_mutex_unlock(&lock);
    return number;
}
