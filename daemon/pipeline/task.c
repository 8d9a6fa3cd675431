/* One sample's way to the reader: where its bytes lie, and room for them. */
#include "daemon/pipeline/task.h"

#include <errno.h>

#include "daemon/pipeline/planner.h"
#include "proto/base/clock.h"

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

/* ---- where its bytes lie --------------------------------------------------------------------------------------- */

/* What one read brings: fields that lie in one file, and whatever is between them. */
struct span {
        struct extent first; /* of the fields, in the sequence of the program */
        uint32_t n_fields;
        uint64_t begin, end;
};

static struct field_bytes field_of(const struct extent *extent, const struct span *span) {
        if (extent->flags & EXTENT_ABSENT)
                return (struct field_bytes){ .is_absent = true };
        return (struct field_bytes){ .offset = extent->offset - span->begin, .n_bytes = extent->length };
}

static bool is_same_file(const struct extent *one, const struct extent *other) {
        if (!one->shard || !other->shard)
                return !one->shard && !other->shard && one->file == other->file;
        return one->idx_shard == other->idx_shard;
}

/* The fields that are read, each counted from where the read begins. Those of a sample lie side by side in a shard, so
 * that one read brings them all. */
static int span_fields(struct task *task, struct span *span, struct why *why) {
        const struct program *program = task->batch->stream->program;
        const struct source *source = dataset_source(task->batch->stream->dataset->dataset);
        struct extent extents[DLP_TENSORS_MAX];

        *span = (struct span){ .begin = UINT64_MAX };
        for (uint32_t i = 0; i < program_n_fields(program); i++) {
                const struct codec *codec = program_codec(program, i);
                struct extent *extent = &extents[i];

                if (!codec_is_stored(codec))
                        continue;
                source_locate(source, task->candidate, codec_field(codec), extent);
                if (extent->flags & EXTENT_ABSENT)
                        continue;
                if (span->n_fields++ == 0)
                        span->first = *extent;
                else if (!is_same_file(extent, &span->first))
                        return why_set(why, -ENOTSUP, "its fields lie in several files");
                span->begin = extent->offset < span->begin ? extent->offset : span->begin;
                span->end = extent->offset + extent->length > span->end ? extent->offset + extent->length : span->end;
        }
        for (uint32_t i = 0; i < program_n_fields(program); i++)
                task->fields[i] = codec_is_stored(program_codec(program, i)) ? field_of(&extents[i], span)
                                                                             : (struct field_bytes){ 0 };
        return 0;
}

/* A part of a shard: whole blocks of a file which all samples of the dataset share. */
static int task_locate_part(struct planner *planner, struct task *task, const struct span *span) {
        struct read_request *request = &task->request;

        request->path = span->first.shard;
        request->offset = span->begin;
        request->length = span->end - span->begin;
        request->is_part = true;
        request->owner = task->batch->stream->dataset->dataset;
        request->idx_file = span->first.idx_shard;
        request->past_cache = task->batch->stream->past_cache;
        return task_buffer(planner, task, (request->length + READER_ALIGN - 1) / READER_ALIGN * READER_ALIGN,
                           &request->why);
}

/* A file of its own. */
static int task_locate_file(struct planner *planner, struct task *task, const struct extent *extent) {
        struct read_request *request = &task->request;

        request->path = task->path;
        request->offset = extent->offset;
        request->is_part = false;
        request->owner = NULL;
        request->past_cache = false;
        if (extent->flags & EXTENT_NOT_REGULAR)
                return why_set(&request->why, -EINVAL, "is not a regular file");
        if (extent->flags & EXTENT_UNREACHABLE) {
                /* The index could not learn a length: perhaps it can be read now, if it fits. */
                request->length = READER_LENGTH_UNKNOWN;
                return task_buffer(planner, task, TASK_BUFFER_BYTES, &request->why);
        }
        request->length = extent->length;
        /* One byte more than the index says, so that a file that grew is noticed. */
        return task_buffer(planner, task, extent->length + 1, &request->why);
}

/* Positive outcome: nothing has to be read, all that is asked for is known. */
#define TASK_KNOWN 1

/* Where the bytes of the candidate lie, and room for them. */
static int task_locate(struct planner *planner, struct task *task) {
        struct dataset *dataset = task->batch->stream->dataset->dataset;
        struct read_request *request = &task->request;
        struct span span;
        int r;

        source_name(dataset_source(dataset), task->candidate, task->path);
        request->dir_fd = dataset_root_fd(dataset);
        request->share = &task->batch->stream->job->reading;
        request->may_hang = task->batch->stream->may_hang;
        r = span_fields(task, &span, &request->why);
        if (r < 0)
                return r;
        if (span.n_fields == 0)
                return TASK_KNOWN;
        return span.first.shard ? task_locate_part(planner, task, &span) : task_locate_file(planner, task, &span.first);
}

/* ---- on its way ------------------------------------------------------------------------------------------------ */

void task_arrived(struct task *task, struct fair_queue *ready) {
        task->arrived_ns = clock_now_ns();
        atomic_store_explicit(&task->reading_ns, 0, memory_order_relaxed);
        fair_queue_push(ready, &task->batch->stream->job->share, &task->ready);
}

void task_read(struct planner *planner, struct task *task) {
        int r = task_locate(planner, task);

        task->asked_ns = clock_now_ns();
        task->idx_field = 0;
        if (r == -EAGAIN) {
                STAILQ_INSERT_TAIL(&task->batch->stream->large_waiting, task, entry);
        } else if (r < 0 || r == TASK_KNOWN) {
                task->request.result = r < 0 ? r : 0;
                task->request.n_bytes = 0;
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
