/* cuda/settings.c: what the environment says. A value that cannot be read ends the process: a test that is misspelt must not
 * pass. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/inside.h"

__attribute__((noreturn)) static void refuse(const char *name, const char *value) {
        fprintf(stderr, "libcuda stand-in: cannot read %s=%s\n", name, value);
        abort();
}

static uint64_t read_number(const char *name, uint64_t otherwise) {
        const char *text = getenv(name);
        char *end;
        uint64_t value;

        if (!text || !*text)
                return otherwise;
        value = strtoull(text, &end, 0);
        if (*end)
                refuse(name, text);
        return value;
}

static bool is_call(const char *name) {
        for (uint32_t i = 0; i < N_CALLS; i++)
                if (strcmp(CALL_TYPES[i].name, name) == 0 || strcmp(CALL_TYPES[i].symbol, name) == 0)
                        return true;
        return false;
}

/* NAME:K:CODE or NAME:K:CODE:sticky. Returns where the next one begins. */
static const char *read_failure(const char *text, struct failure *ret_failure) {
        struct failure failure = {};
        int n = 0;

        if (sscanf(text, "%63[A-Za-z0-9_]:%" SCNu64 ":%d%n", failure.name, &failure.occurrence, &failure.code, &n) !=
                    3 ||
            !is_call(failure.name))
                refuse("DLT_CUDA_FAIL", text);
        text += n;
        if (strncmp(text, ":sticky", 7) == 0) {
                failure.sticky = true;
                text += 7;
        }
        if (*text && *text != ',')
                refuse("DLT_CUDA_FAIL", text);
        *ret_failure = failure;
        return *text ? text + 1 : text;
}

static void read_failures(struct settings *settings) {
        const char *text = getenv("DLT_CUDA_FAIL");

        while (text && *text) {
                if (settings->n_failures == MAX_FAILURES)
                        refuse("DLT_CUDA_FAIL", text);
                text = read_failure(text, &settings->failures[settings->n_failures++]);
        }
}

void settings_read(struct settings *ret_settings) {
        struct settings settings = { .major = 9 };
        const char *capability = getenv("DLT_CUDA_CAPABILITY"), *report = getenv("DLT_CUDA_REPORT");

        settings.n_devices = (int)read_number("DLT_CUDA_DEVICES", 1);
        if (settings.n_devices > MAX_DEVICES)
                refuse("DLT_CUDA_DEVICES", getenv("DLT_CUDA_DEVICES"));
        settings.version = (int)read_number("DLT_CUDA_VERSION", 12080);
        settings.memory_bytes = read_number("DLT_CUDA_MEMORY", 1u << 30);
        settings.read_only = read_number("DLT_CUDA_READ_ONLY", 0) != 0;
        settings.delay_us = read_number("DLT_CUDA_DELAY_US", 2000);
        settings.seed = read_number("DLT_CUDA_SEED", 1);
        if (capability && *capability && sscanf(capability, "%d.%d", &settings.major, &settings.minor) != 2)
                refuse("DLT_CUDA_CAPABILITY", capability);
        if (report &&
            (size_t)snprintf(settings.report, sizeof(settings.report), "%s", report) >= sizeof(settings.report))
                refuse("DLT_CUDA_REPORT", report);
        read_failures(&settings);
        *ret_settings = settings;
}
