/* One sample's way to the reader: where its bytes lie, and room for them. */
#include "daemon/pipeline/task.h"

#include <errno.h>

#include "daemon/base/clock.h"
#include "daemon/pipeline/planner.h"

_Static_assert(TASK_BUFFER_BYTES % READER_ALIGN == 0 && LARGE_BUFFER_ALIGN % READER_ALIGN == 0,
               "buffers are what reading past the page cache asks for");

/* Finds room for `n_bytes`. Most files fit the registered buffer. -EAGAIN: others of its stream have it, or are in line
 * before it. */
static int task_buffer(struct planner *planner, struct task *task, uint64_t n_bytes, struct why *why) {
        struct stream *stream = task->batch->stream;
        struct read_request *request = &task->request;
        int r;

        if (n_bytes <= TASK_BUFFER_BYTES) {
                request->buffer = task->own_buffer;
                request->capacity = TASK_BUFFER_BYTES;
                request->idx_buffer = task->idx < planner->options.n_depth ? (int32_t)task->idx : -1;
                return 0;
        }
        if (n_bytes > stream->large_max)
                return why_set(why, -EFBIG, "is %llu bytes, %llu can be read (a quarter of memory_limit)",
                               (unsigned long long)n_bytes, (unsigned long long)stream->large_max);
        if (!task->large || task->large->n_bytes < n_bytes) {
                task_trim(planner, task);
                if (!STAILQ_EMPTY(&stream->large_waiting))
                        return -EAGAIN;
                r = large_buffers_take(&stream->large, n_bytes, &task->large, why);
                if (r == -ENOMEM && budget_used(&stream->large_budget) > 0)
                        return -EAGAIN;
                if (r < 0)
                        return r;
        }
        request->buffer = task->large->bytes;
        request->capacity = task->large->n_bytes;
        request->idx_buffer = -1;
        return 0;
}

/* A packed sample: whole blocks of its shard, which all samples of the dataset share. */
static int task_locate_part(struct planner *planner, struct task *task, const struct index_place *place) {
        struct read_request *request = &task->request;

        request->path = place->shard;
        request->length = place->length;
        request->is_part = true;
        request->owner = task->batch->stream->dataset->dataset;
        request->idx_file = place->idx_shard;
        request->past_cache = task->batch->stream->past_cache;
        return task_buffer(planner, task, (place->length + READER_ALIGN - 1) / READER_ALIGN * READER_ALIGN,
                           &request->why);
}

/* Where the bytes of the candidate lie, and room for them. */
static int task_locate(struct planner *planner, struct task *task) {
        struct dataset *dataset = task->batch->stream->dataset->dataset;
        struct read_request *request = &task->request;
        struct index_place place;

        index_path(dataset_index(dataset), task->candidate, 0, task->path);
        index_locate(dataset_index(dataset), task->candidate, 0, &place);
        request->dir_fd = dataset_root_fd(dataset);
        request->share = &task->batch->stream->job->reading;
        request->may_hang = task->batch->stream->may_hang;
        request->offset = place.offset;
        if (place.shard)
                return task_locate_part(planner, task, &place);
        request->path = task->path;
        request->is_part = false;
        request->owner = NULL;
        request->past_cache = false;
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

void task_arrived(struct task *task, struct fair_queue *ready) {
        task->arrived_ns = clock_now_ns();
        atomic_store_explicit(&task->reading_ns, 0, memory_order_relaxed);
        fair_queue_push(ready, &task->batch->stream->job->share, &task->ready);
}

void task_read(struct planner *planner, struct task *task) {
        int r = task_locate(planner, task);

        task->asked_ns = clock_now_ns();
        if (r == -EAGAIN) {
                STAILQ_INSERT_TAIL(&task->batch->stream->large_waiting, task, entry);
        } else if (r < 0) {
                task->request.result = r;
                task_arrived(task, planner->options.ready);
        } else {
                atomic_store_explicit(&task->reading_ns, task->asked_ns, memory_order_relaxed);
                reader_submit(planner->options.reader, &task->request);
        }
}

void task_read_waiting(struct planner *planner, struct stream *stream) {
        struct tasks waiting = STAILQ_HEAD_INITIALIZER(waiting);
        struct task *task;

        STAILQ_CONCAT(&waiting, &stream->large_waiting);
        while ((task = STAILQ_FIRST(&waiting))) { /* the first that must wait again keeps those after it in line */
                STAILQ_REMOVE_HEAD(&waiting, entry);
                task_read(planner, task);
        }
}

uint64_t task_reading_ns(const struct task *task, uint64_t now_ns) {
        uint64_t since_ns = atomic_load_explicit(&task->reading_ns, memory_order_relaxed);

        return since_ns != 0 && now_ns > since_ns ? now_ns - since_ns : 0;
}

void task_trim(struct planner *planner, struct task *task) {
        (void)planner;
        if (task->large)
                large_buffers_put(&task->batch->stream->large, task->large);
        task->large = NULL;
}
