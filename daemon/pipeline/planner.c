#include "daemon/pipeline/planner.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/thread.h"
#include "daemon/pipeline/batch.h"

#define CHUNK_SAMPLES     8u /* planned for one stream before looking who is the most urgent: a tenth of a usual batch */
#define EVENTS_MAX        64
#define MAKING_GUESS_NS   100000000ull /* before a batch has been made */
#define LARGE_BUFFER_KEEP (4ull << 20) /* bytes; what is above is given back when the task is free again */

/* ---- asked from outside --------------------------------------------------------------------------------------------
 */

void planner_wake(struct planner *planner) {
        uint64_t one = 1;

        if (write(planner->wake_fd, &one, sizeof(one)) < 0)
                return; /* cannot be: only after 2^64 wake-ups */
}

void planner_command(struct planner *planner, struct stream *stream, enum stream_command command) {
        pthread_mutex_lock(&planner->lock);
        if (stream->commands == 0)
                TAILQ_INSERT_TAIL(&planner->commands, stream, commanded);
        stream->commands |= command;
        pthread_mutex_unlock(&planner->lock);
        planner_wake(planner);
}

uint64_t planner_seek(struct planner *planner, struct stream *stream, uint64_t epoch, uint64_t step) {
        uint64_t number;

        pthread_mutex_lock(&planner->lock);
        number = atomic_fetch_add_explicit(&stream->number, 1, memory_order_relaxed) + 1;
        stream->seek_epoch = epoch;
        stream->seek_step = step;
        pthread_mutex_unlock(&planner->lock);
        planner_command(planner, stream, STREAM_SEEK);
        return number;
}

void planner_return(struct planner *planner, struct task *task) {
        bool wake;

        pthread_mutex_lock(&planner->lock);
        STAILQ_INSERT_TAIL(&planner->returned, task, entry);
        planner->n_returned++;
        wake = planner->wake_at && planner->n_returned >= planner->wake_at;
        if (wake)
                planner->wake_at = 0;
        pthread_mutex_unlock(&planner->lock);
        if (wake)
                planner_wake(planner);
}

void planner_retry(struct planner *planner, struct task *task) {
        pthread_mutex_lock(&planner->lock);
        STAILQ_INSERT_TAIL(&planner->again, task, entry);
        pthread_mutex_unlock(&planner->lock);
        planner_wake(planner);
}

/* ---- tasks ---------------------------------------------------------------------------------------------------------
 */

static void large_buffer_free(struct planner *planner, struct task *task) {
        if (!task->large_buffer)
                return;
        free(task->large_buffer);
        budget_release(planner->options.budget, task->large_bytes);
        task->large_buffer = NULL;
        task->large_bytes = 0;
}

/* Finds room for `n_bytes`. Most files fit the registered buffer. */
static int task_buffer(struct planner *planner, struct task *task, uint64_t n_bytes, struct why *why) {
        struct read_request *request = &task->request;
        int r;

        if (n_bytes <= TASK_BUFFER_BYTES) {
                request->buffer = task->own_buffer;
                request->capacity = TASK_BUFFER_BYTES;
                request->idx_buffer = (int32_t)task->idx;
                return 0;
        }
        if (n_bytes > planner->options.budget->limit_bytes)
                return why_set(why, -EFBIG, "is %llu bytes, more than memory_limit", (unsigned long long)n_bytes);
        if (n_bytes > task->large_bytes) {
                large_buffer_free(planner, task);
                r = budget_reserve(planner->options.budget, n_bytes, "a large file's buffer", why);
                if (r < 0)
                        return r;
                task->large_buffer = malloc(n_bytes);
                if (!task->large_buffer) {
                        budget_release(planner->options.budget, n_bytes);
                        return why_errno(why, -ENOMEM, "a buffer of %llu bytes", (unsigned long long)n_bytes);
                }
                task->large_bytes = n_bytes;
        }
        request->buffer = task->large_buffer;
        request->capacity = task->large_bytes;
        request->idx_buffer = -1;
        return 0;
}

/* Where the bytes of the candidate lie, and room for them. */
static int task_locate(struct planner *planner, struct task *task) {
        struct dataset *dataset = task->batch->stream->dataset->dataset;
        struct read_request *request = &task->request;
        struct index_place place;

        index_path(dataset_index(dataset), task->candidate, 0, task->path);
        index_locate(dataset_index(dataset), task->candidate, 0, &place);
        request->dir_fd = dataset_root_fd(dataset);
        request->path = task->path;
        request->offset = place.offset;
        if (place.flags & INDEX_FILE_NOT_REGULAR)
                return why_set(&request->why, -EINVAL, "is no regular file");
        if (place.flags & INDEX_FILE_UNREACHABLE) {
                /* The index could not learn a length: perhaps it can be read now, if it fits. */
                request->length = READER_LENGTH_UNKNOWN;
                return task_buffer(planner, task, TASK_BUFFER_BYTES, &request->why);
        }
        request->length = place.length;
        /* One byte more than the index says, so that a file that grew is noticed. */
        return task_buffer(planner, task, place.length + 1, &request->why);
}

/* Sends the task's candidate to be read. What fails here fails as a read would: the worker hears of it. */
static void task_read(struct planner *planner, struct task *task) {
        int r = task_locate(planner, task);

        if (r < 0) {
                task->request.result = r;
                work_queue_push(planner->options.ready, task);
        } else {
                reader_submit(planner->options.reader, &task->request);
        }
}

static struct task *task_take(struct planner *planner) {
        struct task *task = STAILQ_FIRST(&planner->free_tasks);

        if (task)
                STAILQ_REMOVE_HEAD(&planner->free_tasks, entry);
        return task;
}

/* ---- streams -------------------------------------------------------------------------------------------------------
 */

/* Will an order's memory come free by itself? That of this rank's last batches, or one that ranks of its job behind it
 * still use. Who waits holds no order, so the last of them never waits for the others. */
static bool stream_may_get_memory(const struct planner *planner, const struct stream *stream) {
        const struct stream *other;

        if (stream->n_tasks > 0)
                return true;
        TAILQ_FOREACH(other, &planner->streams, entry)
                if (other->job == stream->job && other->order && other->order_epoch < stream->epoch && !other->is_ended)
                        return true;
        return false;
}

static void stream_begin_epoch(struct planner *planner, struct stream *stream) {
        struct order_spec spec;
        struct why why;

        if (stream->order && stream->order_epoch == stream->epoch)
                return;
        if (stream->order)
                order_table_put(stream->order);
        stream->order = NULL;
        if (stream->next_order && stream->order_epoch + 1 == stream->epoch) {
                stream->order = stream->next_order;
                stream->next_order = NULL;
        }
        if (stream->next_order)
                order_table_put(stream->next_order);
        stream->next_order = NULL;

        spec = stream_order_spec(stream, stream->epoch);
        if (!stream->order && order_table_get(planner->options.tables, &spec, &stream->order, &why) < 0) {
                if (stream_may_get_memory(planner, stream))
                        stream->needs_order = true;
                else
                        job_fail(stream->job, why.text); /* waiting for memory that may never come would be a hang */
                return;
        }
        stream->order_epoch = stream->epoch;
        /* Made in the background while this epoch is consumed; without memory for it, it is made when it is due. */
        if (stream->epoch + 1 < stream->end_epoch) {
                spec = stream_order_spec(stream, stream->epoch + 1);
                order_table_get(planner->options.tables, &spec, &stream->next_order, NULL);
        }
}

static void stream_next_step(struct stream *stream) {
        stream->batch = NULL;
        stream->idx_sample = 0;
        stream->is_ended = stream->drains;
        if (++stream->step < stream->rank_batches)
                return;
        stream->step = 0;
        if (++stream->epoch >= stream->end_epoch)
                stream->is_ended = true;
}

/* When will the client want the batch that is planned next? After eating what lies before it, counted from its last
 * release. A rank that starves has released nothing for long, so its wish lies in the past and grows older than
 * everybody else's; one that eats slowly wants its next batch far in the future; a new one wants it since it came.
 * Nobody eats faster than we cook: without that floor one hungry rank would have all its slots filled before the other
 * gets one. It is one floor for all, or who was served late would be taken for one who can wait. */
static uint64_t stream_wanted_at_ns(const struct planner *planner, const struct stream *stream) {
        const struct ring *ring = stream->ring;
        uint64_t n_ahead = ring->next_sequence - ring->n_released - (stream->batch ? 1 : 0);

        return ring->released_at_ns +
               n_ahead * (ring->eating_ns > planner->making_ns ? ring->eating_ns : planner->making_ns);
}

/* Takes a slot for the next batch. Returns false if there is none. */
static bool stream_begin_batch(struct planner *planner, struct stream *stream) {
        struct slot *slot;
        int r;

        r = ring_take(stream->ring, &slot);
        if (r == RING_NO_SLOT) {
                ring_watch(stream->ring, true);
                r = ring_take(stream->ring, &slot); /* it may have been released before it saw the watch */
        }
        if (r == RING_NO_SLOT) {
                stream->is_full = true;
                return false;
        }
        if (r < 0) {
                stream->is_ended = true;
                atomic_store_explicit(&stream->broken, true, memory_order_relaxed);
                planner->options.broken(planner->options.userdata, stream);
                return false;
        }
        ring_watch(stream->ring, false);
        if (stream->ring->making_ns > 0)
                planner->making_ns = (7 * planner->making_ns + stream->ring->making_ns) / 8;
        stream->batch = &stream->batches[slot->idx];
        stream->idx_sample = 0;
        batch_begin(stream->batch, stream, stream->order);
        return true;
}

/* The job has failed elsewhere: this rank is told in its turn, with a batch that is nothing but the reason. */
static void stream_end_failed(struct planner *planner, struct stream *stream) {
        struct why failure;

        if (stream->batch) { /* its planned samples are under way; the rest never comes */
                batch_abandon(stream->batch, stream->idx_sample, planner->options.counters);
                stream->batch = NULL;
        }
        if (!stream_begin_batch(planner, stream))
                return;
        job_failure(stream->job, &failure);
        batch_fail_whole(stream->batch, &failure, planner->options.counters);
        stream->batch = NULL;
        stream->is_ended = true;
}

/* Plans one sample. Returns false if this stream can go no further now. */
static bool stream_plan_sample(struct planner *planner, struct stream *stream, struct task *task) {
        struct batch *batch = stream->batch;
        uint64_t position, index;

        position = dlp_order_position(batch->step * stream->job->terms.batch_size + stream->idx_sample,
                                      stream->job->terms.world, stream->rank);
        if (order_table_at(batch->order, position % stream->n_samples, &index) != 0) {
                stream->needs_order = true;
                return false;
        }

        task->batch = batch;
        task->idx_sample = stream->idx_sample;
        task->position = position % stream->n_samples;
        task->index = task->candidate = index;
        task->n_tries = 0;
        task->reason.text[0] = '\0';
        stream->n_tasks++;
        if (++stream->idx_sample == batch->n_samples)
                stream_next_step(stream);
        task_read(planner, task);
        return true;
}

static bool stream_is_runnable(const struct stream *stream) {
        return !stream->is_ended && !stream->needs_order && (stream->batch || !stream->is_full);
}

/* Gets the stream as far as having a batch to plan. */
static bool stream_prepare(struct planner *planner, struct stream *stream) {
        if (atomic_load_explicit(&stream->job->failed, memory_order_acquire)) {
                stream_end_failed(planner, stream);
                return false;
        }
        if (stream->batch)
                return true;
        stream_begin_epoch(planner, stream);
        if (!stream->order)
                return false;
        return stream_begin_batch(planner, stream);
}

static struct stream *most_urgent(struct planner *planner) {
        struct stream *stream, *best = NULL;

        TAILQ_FOREACH(stream, &planner->streams, entry)
                if (stream_is_runnable(stream) &&
                    (!best || stream_wanted_at_ns(planner, stream) < stream_wanted_at_ns(planner, best)))
                        best = stream;
        return best;
}

/* Plans until nobody can take more or all tasks are under way. */
static void planner_plan(struct planner *planner) {
        struct stream *stream;

        while ((stream = most_urgent(planner)))
                for (uint32_t i = 0; i < CHUNK_SAMPLES && stream_is_runnable(stream); i++) {
                        struct task *task;

                        if (STAILQ_EMPTY(&planner->free_tasks))
                                return;
                        if (!stream_prepare(planner, stream))
                                break;
                        task = task_take(planner);
                        if (!stream_plan_sample(planner, stream, task)) {
                                STAILQ_INSERT_HEAD(&planner->free_tasks, task, entry);
                                break;
                        }
                }
}

/* ---- what came back ------------------------------------------------------------------------------------------------
 */

static void stream_destroy(struct planner *planner, struct stream *stream) {
        TAILQ_REMOVE(&planner->streams, stream, entry);
        stream_free(stream);
        planner->options.freed(planner->options.userdata);
}

/* Removed streams go when the last of their samples is back and nobody works on their memory. */
static void planner_bury(struct planner *planner) {
        struct stream *stream, *next;

        TAILQ_FOREACH_SAFE(stream, &planner->streams, entry, next)
        if (stream->is_removed && stream->n_tasks == 0 &&
            atomic_load_explicit(&stream->is_touched, memory_order_acquire))
                stream_destroy(planner, stream);
}

static void task_retire(struct planner *planner, struct task *task) {
        struct stream *stream = task->batch->stream;

        if (task->large_bytes > LARGE_BUFFER_KEEP)
                large_buffer_free(planner, task);
        task->batch = NULL;
        STAILQ_INSERT_HEAD(&planner->free_tasks, task, entry); /* its buffer is still in the caches */
        stream->n_tasks--;
}

/* The next sample of the order takes the damaged one's place; the rule knows nothing but the order. */
static void task_substitute(struct planner *planner, struct task *task) {
        struct stream *stream = task->batch->stream;
        uint64_t position = (task->position + task->n_tries) % stream->n_samples;

        if (order_table_at(task->batch->order, position, &task->candidate) != 0)
                STAILQ_INSERT_TAIL(&planner->retries, task, entry);
        else
                task_read(planner, task);
}

static void stream_apply(struct planner *planner, struct stream *stream, uint32_t commands, uint64_t number,
                         uint64_t epoch, uint64_t step) {
        struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.ptr = stream };

        if (commands & STREAM_ADD) {
                TAILQ_INSERT_TAIL(&planner->streams, stream, entry);
                /* Without it a full ring would never be looked at again: better no job than one that hangs. */
                if (epoll_ctl(planner->epoll_fd, EPOLL_CTL_ADD, stream->release_fd, &event) < 0)
                        job_fail(stream->job,
                                 "the daemon cannot watch another ring (out of memory, or fs.epoll limits)");
        }
        if (commands & STREAM_SEEK) {
                if (stream->batch) {
                        batch_abandon(stream->batch, stream->idx_sample, planner->options.counters);
                        stream->batch = NULL;
                }
                stream->planned_number = number;
                stream->epoch = epoch;
                stream->step = step;
                stream->idx_sample = 0;
                if (stream->end_epoch <= epoch)
                        stream->end_epoch = epoch + 1;
                stream->is_ended = stream->drains || step >= stream->rank_batches;
        }
        if (commands & STREAM_DRAIN) {
                stream->drains = true;
                stream->is_ended |= !stream->batch;
        }
        if (commands & STREAM_REMOVE) {
                epoll_ctl(planner->epoll_fd, EPOLL_CTL_DEL, stream->release_fd, NULL);
                stream->is_ended = true;
                stream->is_removed = true;
                stream->batch = NULL; /* never published: nobody listens */
        }
}

static void planner_obey(struct planner *planner) {
        for (;;) {
                struct stream *stream;
                uint32_t commands;
                uint64_t number, epoch, step;

                pthread_mutex_lock(&planner->lock);
                stream = TAILQ_FIRST(&planner->commands);
                if (!stream) {
                        pthread_mutex_unlock(&planner->lock);
                        return;
                }
                TAILQ_REMOVE(&planner->commands, stream, commanded);
                commands = stream->commands;
                stream->commands = 0;
                number = atomic_load_explicit(&stream->number, memory_order_relaxed);
                epoch = stream->seek_epoch;
                step = stream->seek_step;
                pthread_mutex_unlock(&planner->lock);
                stream_apply(planner, stream, commands, number, epoch, step);
        }
}

static void planner_collect(struct planner *planner) {
        struct tasks returned = STAILQ_HEAD_INITIALIZER(returned), again = STAILQ_HEAD_INITIALIZER(again);
        struct task *task;

        pthread_mutex_lock(&planner->lock);
        STAILQ_CONCAT(&returned, &planner->returned);
        STAILQ_CONCAT(&again, &planner->again);
        planner->n_returned = 0;
        planner->wake_at = 0;
        pthread_mutex_unlock(&planner->lock);

        while ((task = STAILQ_FIRST(&returned))) {
                STAILQ_REMOVE_HEAD(&returned, entry);
                task_retire(planner, task);
        }
        while ((task = STAILQ_FIRST(&again))) {
                STAILQ_REMOVE_HEAD(&again, entry);
                task_substitute(planner, task);
        }
}

/* After a wake-up any order may have come further. */
static void planner_retry_orders(struct planner *planner) {
        struct tasks retries = STAILQ_HEAD_INITIALIZER(retries);
        struct stream *stream;
        struct task *task;

        STAILQ_CONCAT(&retries, &planner->retries);
        while ((task = STAILQ_FIRST(&retries))) {
                STAILQ_REMOVE_HEAD(&retries, entry);
                task_substitute(planner, task);
        }
        TAILQ_FOREACH(stream, &planner->streams, entry)
                stream->needs_order = false;
}

/* How many tasks must come back before it is worth waking up: a quarter while there is work for all of them, so that a
 * wake-up serves many samples; any, when somebody waits for a stream's last one: to be removed, or for the memory of
 * its order. Returns true if there are so many already. */
static bool planner_arm(struct planner *planner) {
        bool out_of_tasks = STAILQ_EMPTY(&planner->free_tasks), waiting = false;
        struct stream *stream;
        bool now;

        TAILQ_FOREACH(stream, &planner->streams, entry)
                waiting |= stream->is_removed || (!stream->order && !stream->is_ended);

        pthread_mutex_lock(&planner->lock);
        planner->wake_at = waiting ? 1 : out_of_tasks ? (planner->options.n_tasks + 3) / 4 : 0;
        now = planner->wake_at && planner->n_returned >= planner->wake_at;
        pthread_mutex_unlock(&planner->lock);
        return now;
}

static void *planner_main(void *userdata) {
        struct planner *planner = userdata;
        struct epoll_event events[EVENTS_MAX];

        while (!atomic_load_explicit(&planner->stopping, memory_order_acquire)) {
                int n;

                planner_obey(planner);
                planner_collect(planner);
                planner_bury(planner);
                planner_retry_orders(planner);
                planner_plan(planner);
                if (planner_arm(planner))
                        continue;

                n = epoll_wait(planner->epoll_fd, events, EVENTS_MAX, -1);
                for (int i = 0; i < n; i++) {
                        struct stream *stream = events[i].data.ptr;

                        if (stream)
                                stream->is_full = false;
                }
        }
        planner_collect(planner);
        return NULL;
}

/* ---- begin and end -------------------------------------------------------------------------------------------------
 */

int planner_start(struct planner *planner, const struct planner_options *options) {
        struct epoll_event event = { .events = EPOLLIN | EPOLLET };
        int r;

        planner->options = *options;
        planner->making_ns = MAKING_GUESS_NS;
        STAILQ_INIT(&planner->free_tasks);
        STAILQ_INIT(&planner->retries);
        STAILQ_INIT(&planner->returned);
        STAILQ_INIT(&planner->again);
        TAILQ_INIT(&planner->streams);
        TAILQ_INIT(&planner->commands);
        pthread_mutex_init(&planner->lock, NULL);
        for (uint32_t i = 0; i < options->n_tasks; i++)
                STAILQ_INSERT_TAIL(&planner->free_tasks, &options->tasks[i], entry);

        planner->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        planner->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (planner->epoll_fd < 0 || planner->wake_fd < 0 ||
            epoll_ctl(planner->epoll_fd, EPOLL_CTL_ADD, planner->wake_fd, &event) < 0)
                return -errno;
        r = thread_start(&planner->thread, "planner", planner_main, planner);
        return r;
}

void planner_stop(struct planner *planner) {
        atomic_store_explicit(&planner->stopping, true, memory_order_release);
        planner_wake(planner);
        thread_join(planner->thread);
        close(planner->epoll_fd);
        close(planner->wake_fd);
        for (uint32_t i = 0; i < planner->options.n_tasks; i++)
                large_buffer_free(planner, &planner->options.tasks[i]);
        pthread_mutex_destroy(&planner->lock);
}
