/* cuda/ledger.c: what happened, for tests of this process and of others. */
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/cuda/inside.h"

void violation(const char *format, ...) {
        va_list arguments;

        if (the.counts.n_violations++ > 0)
                return;
        va_start(arguments, format);
        vsnprintf(the.counts.first_violation, sizeof(the.counts.first_violation), format, arguments);
        va_end(arguments);
}

void dlt_cuda_counts(struct dlt_cuda_counts *ret_counts) {
        pthread_mutex_lock(&the_lock);
        *ret_counts = the.counts;
        pthread_mutex_unlock(&the_lock);
}

uint64_t dlt_cuda_calls(const char *name) {
        uint64_t n = 0;

        pthread_mutex_lock(&the_lock);
        for (uint32_t i = 0; i < N_CALLS; i++)
                if (strcmp(CALL_TYPES[i].name, name) == 0 || strcmp(CALL_TYPES[i].symbol, name) == 0)
                        n = the.n_calls[i];
        pthread_mutex_unlock(&the_lock);
        return n;
}

#define FIELD(name)                                                                                                    \
        { #name, offsetof(struct dlt_cuda_counts, name) }

static const struct {
        const char *name;
        size_t offset;
} FIELDS[] = {
        FIELD(n_calls),
        FIELD(n_failed),
        FIELD(n_contexts),
        FIELD(n_streams),
        FIELD(n_events),
        FIELD(n_modules),
        FIELD(n_allocations),
        FIELD(bytes_allocated),
        FIELD(max_bytes_allocated),
        FIELD(n_host_allocations),
        FIELD(n_registrations),
        FIELD(bytes_registered),
        FIELD(max_bytes_registered),
        FIELD(n_left),
        FIELD(n_images),
        FIELD(n_launches),
        FIELD(n_copies_late),
        FIELD(n_copies_staged),
        FIELD(bytes_to_device),
        FIELD(bytes_to_host),
        FIELD(bytes_on_device),
        FIELD(n_violations),
};

static_assert(sizeof(struct dlt_cuda_counts) == sizeof(FIELDS) / sizeof(FIELDS[0]) * sizeof(uint64_t) + DLT_CUDA_TEXT,
              "each number has its line in the report");

void report_write(void) {
        FILE *file;

        if (!the.settings.report[0])
                return;
        file = fopen(the.settings.report, "we");
        if (!file) {
                fprintf(stderr, "libcuda stand-in: cannot write %s: %m\n", the.settings.report);
                return;
        }
        for (size_t i = 0; i < ARRAY_SIZE(FIELDS); i++)
                fprintf(file, "%s %" PRIu64 "\n", FIELDS[i].name,
                        *(const uint64_t *)((const char *)&the.counts + FIELDS[i].offset));
        if (the.counts.n_violations > 0)
                fprintf(file, "first_violation %s\n", the.counts.first_violation);
        for (uint32_t i = 0; i < N_CALLS; i++)
                if (the.n_calls[i] > 0)
                        fprintf(file, "calls.%s %" PRIu64 "\n", CALL_TYPES[i].name, the.n_calls[i]);
        fclose(file);
}

void dlt_cuda_restart(void) {
        pthread_mutex_lock(&the_lock);
        context_drain(NULL);
        streams_end(NULL);
        objects_destroy(NULL);
        blocks_free(NULL);
        pinned_free(NULL);
        contexts_restart();
        memset(&the.counts, 0, sizeof(the.counts));
        memset(the.n_calls, 0, sizeof(the.n_calls));
        the.started = the.sticky = false;
        settings_read(&the.settings);
        pthread_mutex_unlock(&the_lock);
}
