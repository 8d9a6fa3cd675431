/* io/threads.c: the pread pool.
 *
 * Each thread reads one file at a time, so n_threads is the depth that the disk sees. io_uring keeps a small pool as
 * well: there a file of unknown length, or one whose chain failed, may block as long as it likes. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/base/thread.h"
#include "daemon/io/reader_private.h"

static void *pool_main(void *argument) {
        struct reader *reader = argument;
        struct read_request *request;

        while ((request = work_queue_pop(&reader->pool_queue))) {
                if (atomic_load(&reader->is_stopping)) {
                        reader_cancel(reader, request);
                } else {
                        if (request->owner)
                                read_part(reader, request);
                        else
                                read_file(request);
                        reader_finish(reader, request);
                }
        }

        reader_thread_leaves(reader);
        return NULL;
}

int reader_pool_start(struct reader *reader, uint32_t n_threads, struct why *why) {
        char name[THREAD_NAME_MAX + 1];
        int r;

        reader->pool_threads = calloc(n_threads, sizeof(*reader->pool_threads));
        if (!reader->pool_threads)
                return why_set(why, -ENOMEM, "reader: no memory for %" PRIu32 " threads", n_threads);

        r = work_queue_init(&reader->pool_queue, reader->options.depth);
        if (r < 0) {
                reader_pool_fini(reader);
                return why_set(why, r, "reader: no memory for %" PRIu32 " requests", reader->options.depth);
        }

        while (reader->n_pool_threads < n_threads) {
                snprintf(name, sizeof(name), "dl-read-%" PRIu32, reader->n_pool_threads % 100000);
                r = reader_thread_start(reader, &reader->pool_threads[reader->n_pool_threads], name, pool_main, reader);
                if (r < 0) {
                        why_errno(why, r, "reader: thread %" PRIu32 " of %" PRIu32, reader->n_pool_threads + 1,
                                  n_threads);
                        reader_pool_leave(reader);
                        reader_pool_fini(reader);
                        return r;
                }
                reader->n_pool_threads++;
        }

        reader->report.n_threads = n_threads;
        return 0;
}

void reader_pool_submit(struct reader *reader, struct read_request *request) {
        work_queue_push(&reader->pool_queue, request);
}

void reader_pool_leave(struct reader *reader) {
        work_queue_stop(&reader->pool_queue);
}

void reader_pool_fini(struct reader *reader) {
        struct read_request *request;

        for (uint32_t i = 0; i < reader->n_pool_threads; i++)
                thread_join(reader->pool_threads[i]);
        while (reader->pool_queue.items && (request = work_queue_pop_nowait(&reader->pool_queue)))
                reader_cancel(reader, request);

        work_queue_fini(&reader->pool_queue);
        free(reader->pool_threads);
        reader->pool_threads = NULL;
        reader->n_pool_threads = 0;
        reader->report.n_threads = 0;
}

static int threads_start(struct reader *reader, struct why *why) {
        why_set(&reader->report.buffers_why, 0, "only io_uring registers buffers");
        return reader_pool_start(reader, reader->options.n_threads, why);
}

const struct reader_backend reader_threads = {
        .name = "threads",
        .start = threads_start,
        .submit = reader_pool_submit,
        .leave = reader_pool_leave,
        .fini = reader_pool_fini,
};
