#include "daemon/io/reader.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/threads/thread.h"
#include "daemon/io/reader_private.h"
#include "proto/base/clock.h"

#define THREADS_DEFAULT       8u /* files at once: where a local SSD's throughput levels off */
#define THREADS_MAX           1024u
#define STALL_MS_DEFAULT      5000u  /* far above a slow disk's read: only a read that never ends takes this long */
#define STOP_LIMIT_MS_DEFAULT 10000u /* twice a stall, and well below the time that systemd waits */

/* ---- threads and completion, for the backends ---------------------------------------------------------------- */

int reader_thread_start(struct reader *reader, pthread_t *ret_thread, const char *name, void *(*main)(void *),
                        void *argument) {
        int r;

        /* Counted before it runs: the thread may leave before this function returns. */
        pthread_mutex_lock(&reader->lock);
        reader->n_running++;
        pthread_mutex_unlock(&reader->lock);

        r = thread_start(ret_thread, name, main, argument);
        if (r < 0)
                reader_thread_leaves(reader);
        return r;
}

void reader_thread_leaves(struct reader *reader) {
        pthread_mutex_lock(&reader->lock);
        assert(reader->n_running > 0);
        if (--reader->n_running == 0)
                pthread_cond_signal(&reader->emptied);
        pthread_mutex_unlock(&reader->lock);
}

void reader_finish(struct reader *reader, struct read_request *request) {
        uint32_t before;

        if (request->result != -ECANCELED) {
                reader_count(&reader->counts.n_reads, 1);
                reader_count(&reader->counts.n_bytes, request->n_bytes);
                reader_count(&reader->counts.n_errors, request->result < 0);
        }

        /* Before done(), which may submit the next request in place of this one. */
        before = atomic_fetch_sub(&reader->n_outstanding, 1);
        assert(before > 0);
        (void)before;
        reader->options.done(request);
}

int reader_cancelled(struct read_request *request) {
        return why_set(&request->why, -ECANCELED, "%s: not read: the reader was stopped", request->path);
}

void reader_cancel(struct reader *reader, struct read_request *request) {
        request->n_bytes = 0;
        request->result = reader_cancelled(request);
        reader_finish(reader, request);
}

/* ---- start --------------------------------------------------------------------------------------------------- */

static int check_options(struct reader_options *options, struct why *why) {
        if (!options->backend)
                options->backend = "auto";
        if (strcmp(options->backend, "auto") != 0 && strcmp(options->backend, "io_uring") != 0 &&
            strcmp(options->backend, "threads") != 0)
                return why_set(why, -EINVAL, "reader: \"%s\" is not allowed; choose one of: auto io_uring threads",
                               options->backend);
        if (options->depth < 1 || options->depth > READER_DEPTH_MAX)
                return why_set(why, -EINVAL, "reader: a depth of %" PRIu32 " is not between 1 and %u", options->depth,
                               READER_DEPTH_MAX);
        if (options->n_threads > THREADS_MAX)
                return why_set(why, -EINVAL, "reader: %" PRIu32 " threads are more than %u", options->n_threads,
                               THREADS_MAX);

        if (options->n_threads == 0)
                options->n_threads = THREADS_DEFAULT;
        if (options->stall_ms == 0)
                options->stall_ms = STALL_MS_DEFAULT;
        if (options->stop_limit_ms == 0)
                options->stop_limit_ms = STOP_LIMIT_MS_DEFAULT;
        return 0;
}

static int start_backend(struct reader *reader, const struct reader_backend *backend, struct why *why) {
        int r = backend->start(reader, why);

        if (r < 0)
                return r;
        reader->backend = backend;
        reader->report.backend = backend->name;
        return 0;
}

/* Tries the better backend first. The reason why it was refused goes into the report, unless no other may be used. */
static int choose_backend(struct reader *reader, struct why *why) {
        struct reader_report *report = &reader->report;
        int r;

        if (strcmp(reader->options.backend, "threads") == 0) {
                why_set(&report->backend_why, 0, "threads were asked for");
                return start_backend(reader, &reader_threads, why);
        }

        r = start_backend(reader, &reader_uring, &report->backend_why);
        if (r == 0)
                return 0;
        if (strcmp(reader->options.backend, "io_uring") == 0)
                return why_set(why, r, "reader: %s", report->backend_why.text);
        return start_backend(reader, &reader_threads, why);
}

static void reader_free(struct reader *reader) {
        kept_files_fini(&reader->kept);
        pthread_cond_destroy(&reader->emptied);
        pthread_mutex_destroy(&reader->lock);
        free(reader);
}

int reader_start(const struct reader_options *options, struct reader **ret_reader, struct why *why) {
        struct reader *reader;
        int r;

        assert(options->done);
        assert(options->n_buffers == 0 || (options->buffers && options->buffer_bytes > 0));

        reader = calloc(1, sizeof(*reader));
        if (!reader)
                return why_set(why, -ENOMEM, "reader: no memory");
        pthread_mutex_init(&reader->lock, NULL);
        pthread_cond_init(&reader->emptied, NULL);

        reader->options = *options;
        r = check_options(&reader->options, why);
        if (r == 0 && kept_files_init(&reader->kept) < 0)
                r = why_set(why, -ENOMEM, "reader: no memory for the table of open files");
        if (r == 0)
                r = choose_backend(reader, why);
        if (r < 0) {
                reader_free(reader);
                return r;
        }
        reader->options.backend = reader->report.backend; /* the caller's text may not live as long */

        *ret_reader = reader;
        return 0;
}

/* ---- use ----------------------------------------------------------------------------------------------------- */

static void check_request(const struct reader *reader, const struct read_request *request) {
        const struct reader_options *options = &reader->options;
        const uint8_t *first;

        assert(request->path && request->buffer);
        assert(request->is_part || (request->offset == 0 && !request->owner));
        assert(request->owner || !request->past_cache);
        if (request->idx_buffer < 0)
                return;

        assert((uint32_t)request->idx_buffer < options->n_buffers);
        first = options->buffers + (size_t)request->idx_buffer * options->buffer_bytes;
        assert(request->buffer >= first && request->buffer + request->capacity <= first + options->buffer_bytes);
        (void)first;
}

void reader_submit(struct reader *reader, struct read_request *request) {
        uint32_t before = atomic_fetch_add(&reader->n_outstanding, 1);

        assert(before < reader->options.depth);
        (void)before;
        check_request(reader, request);

        request->result = 0;
        request->n_bytes = 0;
        request->why.text[0] = '\0';
        reader->backend->submit(reader, request);
}

void reader_tend(struct reader *reader) {
        reader_pool_tend(reader);
}

void reader_forget(struct reader *reader, const void *owner) {
        if (kept_files_forget(&reader->kept, owner))
                reader_pool_close_files(reader);
}

const struct reader_report *reader_report(const struct reader *reader) {
        return &reader->report;
}

void reader_counts(const struct reader *reader, struct reader_counts *ret_counts) {
        *ret_counts = (struct reader_counts){
                .n_reads = atomic_load_explicit(&reader->counts.n_reads, memory_order_relaxed),
                .n_bytes = atomic_load_explicit(&reader->counts.n_bytes, memory_order_relaxed),
                .n_errors = atomic_load_explicit(&reader->counts.n_errors, memory_order_relaxed),
                .n_slow = atomic_load_explicit(&reader->counts.n_slow, memory_order_relaxed),
                .n_direct = atomic_load_explicit(&reader->counts.n_direct, memory_order_relaxed),
                .n_short = atomic_load_explicit(&reader->counts.n_short, memory_order_relaxed),
        };
}

/* ---- stop ---------------------------------------------------------------------------------------------------- */

static bool wait_until_left(struct reader *reader) {
        uint64_t deadline_ns = clock_now_ns() + reader->options.stop_limit_ms * 1000000ull;
        bool has_left;
        int r = 0;

        pthread_mutex_lock(&reader->lock);
        while (reader->n_running > 0 && r == 0)
                r = thread_wait_until(&reader->emptied, &reader->lock, deadline_ns);
        has_left = reader->n_running == 0;
        pthread_mutex_unlock(&reader->lock);
        return has_left;
}

int reader_stop(struct reader *reader) {
        if (!reader)
                return 0;

        atomic_store(&reader->is_stopping, true);
        reader->backend->leave(reader);
        if (!wait_until_left(reader))
                return -ETIMEDOUT;

        /* From here on this is the only thread. */
        reader->backend->fini(reader);
        assert(atomic_load(&reader->n_outstanding) == 0);
        reader_free(reader);
        return 0;
}
