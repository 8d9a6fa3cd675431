#include "daemon/pipeline/planner/locate.h"

#include <errno.h>
#include <string.h>

#include "daemon/pipeline/batch.h"
#include "daemon/pipeline/catalog/catalog_remote.h"
#include "proto/base/clock.h"
#include "proto/base/shown/amounts.h"

_Static_assert(TASK_BUFFER_BYTES % READER_ALIGN == 0 && LARGE_BUFFER_ALIGN % READER_ALIGN == 0,
               "buffers are what reading past the page cache asks for");

static int locate_refuse_size(uint64_t n_bytes, uint64_t most_bytes, struct why *why) {
        char size[AMOUNT_TEXT_MAX], most[AMOUNT_TEXT_MAX];

        format_compared(size, n_bytes, most, most_bytes);
        return why_set(why, -EFBIG, "is %s, %s can be read (a quarter of memory_limit)", size, most);
}

/* Finds memory for `n_bytes`. Most files fit into the registered buffer. -EAGAIN: other tasks of the feed have the
 * memory, or wait for it in front of this one. */
static int locate_buffer(struct planner *planner, struct task *task, uint64_t n_bytes, struct why *why) {
        struct feed *feed = task->batch->feed;
        struct read_request *request = &task->request;
        int r;

        if (n_bytes <= TASK_BUFFER_BYTES) {
                request->buffer = task->own_buffer;
                request->capacity = TASK_BUFFER_BYTES;
                request->idx_buffer = task->idx < planner->options.n_depth ? (int32_t)task->idx : -1;
                return 0;
        }
        if (n_bytes > feed->large_max)
                return locate_refuse_size(n_bytes, feed->large_max, why);
        if (!task->large || task->large->n_bytes < n_bytes) {
                task_trim(task);
                if (!STAILQ_EMPTY(&feed->large_waiting))
                        return -EAGAIN;
                r = large_buffers_take(&feed->large, n_bytes, &task->large, why);
                if (r == -ENOMEM && budget_used(&feed->large_budget) > 0)
                        return -EAGAIN;
                if (r < 0)
                        return r;
        }
        request->buffer = task->large->bytes;
        request->capacity = task->large->n_bytes;
        request->idx_buffer = -1;
        return 0;
}

/* ---- where its bytes are --------------------------------------------------------------------------------------- */

/* The first read that may bring the field: not before the picture that it moves with, or the boxes that it leaves with.
 */
static uint32_t first_read(const struct task *task, uint32_t idx_field) {
        const struct codec *codec = program_codec(task->program, idx_field);
        uint32_t lead = codec_lead(codec), boxes = codec_boxes(codec);

        return boxes != CODEC_NONE  ? task->fields[boxes].idx_read
               : lead != CODEC_NONE ? task->fields[lead].idx_read
                                    : 0;
}

/* One read for each file: the fields of a sample lie side by side in a shard, but arrays have a file each. Fields that
 * are far apart in their file are read one by one, too. */
static void add_to_reads(const struct source *part, struct source_read *reads, struct task *task, uint32_t idx_field,
                         const struct extent *extent) {
        uint32_t first = first_read(task, idx_field), n = task->n_reads - first;
        uint32_t i = first + source_add_to_reads(part, extent, reads + first, &n);

        task->n_reads = first + n;

        task->fields[idx_field] =
                (struct field_bytes){ .offset = extent->offset, .n_bytes = extent->length, .idx_read = i };
}

static bool is_due(const struct task *task, uint32_t idx_field) {
        return codec_is_stored(program_codec(task->program, idx_field)) &&
               task->fields[idx_field].idx_read == task->idx_read;
}

/* The piece of a gathered field that this read brings, as an extent of its file. A read may be repeated, so the piece
 * that is kept is that of this read or of the one before it. Returns whether there are more. */
static bool find_piece(struct task *task, const struct source *source, uint32_t field, struct extent *extent) {
        struct source_piece after;

        if (task->idx_read == 0)
                task->piece = (struct source_piece){ 0 };
        while (task->piece.number <= task->idx_read)
                source_next_piece(source, task->sample.candidate, field, &task->piece);
        extent->offset = task->piece.offset;
        extent->length = task->piece.n_bytes;
        after = task->piece;
        return source_next_piece(source, task->sample.candidate, field, &after);
}

/* A gathered field is the only stored one of its source: one read for each piece. */
static void span_piece(struct task *task, uint32_t idx_field, struct source_read *ret_span) {
        const struct feed *feed = task->batch->feed;
        const struct source *source = dataset_source(feed->dataset->dataset);
        uint32_t field = codec_field(program_codec(task->program, idx_field));
        struct extent extent;
        bool has_more;

        source_locate(source, task->sample.candidate, field, &extent);
        has_more = find_piece(task, source, field, &extent);
        task->n_reads = task->idx_read + 1 + has_more;
        task->fields[idx_field] = (struct field_bytes){ .n_bytes = extent.length, .idx_read = task->idx_read };
        *ret_span =
                (struct source_read){ .first = extent, .begin = extent.offset, .end = extent.offset + extent.length };
}

/* Is the sample a part of a long sound and nothing else that has to be read? Then the first read brings the head of the
 * file, and the second one only the part, or the whole file if the head does not say where the part lies. */
static bool is_long_sound(const struct task *task, uint32_t idx_field, const struct extent *extent) {
        const struct codec *codec = program_codec(task->program, idx_field);
        struct codec_part part;

        if (extent->shard || extent->offset > 0 || extent->length <= TASK_BUFFER_BYTES ||
            extent->flags & (EXTENT_NOT_REGULAR | EXTENT_UNREACHABLE))
                return false;
        part = codec_part(codec, dataset_source(task->batch->feed->dataset->dataset), task->sample.candidate);
        return part.has_duration || part.start_s > 0;
}

static void span_long_sound(struct task *task, struct source_read *span) {
        task->is_head = task->idx_read == 0;
        if (task->is_head) {
                span->end = CODEC_EXCERPT_LOOK;
        } else if (task->excerpt.n_head_bytes > 0) {
                span->begin = task->excerpt.offset;
                span->end = span->begin + task->excerpt.n_bytes;
        }
        task->n_reads = 2;
        for (uint32_t i = 0; i < program_n_fields(task->program); i++)
                task->fields[i].idx_read = task->idx_read; /* an error of the first read is the field's, too */
}

void locate_take_head(struct task *task) {
        const struct source *source = dataset_source(task->batch->feed->dataset->dataset);
        struct codec_part part;
        struct extent extent;

        for (uint32_t i = 0; i < program_n_fields(task->program); i++) {
                const struct codec *codec = program_codec(task->program, i);

                if (!codec_is_stored(codec) || task->fields[i].is_absent)
                        continue;
                part = codec_part(codec, source, task->sample.candidate);
                source_locate(source, task->sample.candidate, codec_field(codec), &extent);
                if (!codec_excerpt(codec, &part, task->request.buffer, task->request.n_bytes, extent.length,
                                   &task->excerpt))
                        task->excerpt.n_head_bytes = 0;
        }
}

/* Finds where each field of the candidate lies, and which reads are needed. The task says how many; `ret_span` is the
 * read that comes next. The offsets of its fields are counted from its beginning. */
static void span_fields(struct task *task, struct source_read *ret_span) {
        const struct feed *feed = task->batch->feed;
        const struct source *source = dataset_source(feed->dataset->dataset);
        const struct source *part = dataset_source(dataset_with(feed->dataset->dataset, task->sample.candidate));
        struct source_read spans[DLP_TENSORS_MAX];
        uint32_t n_fields = program_n_fields(task->program), n_stored = 0;
        bool is_gathered = false, is_long = false;
        struct extent extent;

        task->n_reads = 0;
        task->is_head = false;
        if (task->idx_read == 0)
                task->excerpt.n_head_bytes = 0;
        *ret_span = (struct source_read){ 0 };
        for (uint32_t k = 0; k < n_fields; k++) {
                uint32_t i = program_serving(task->program, k);
                const struct codec *codec = program_codec(task->program, i);

                task->fields[i] = (struct field_bytes){ .idx_read = first_read(task, i) };
                if (!codec_is_stored(codec)) {
                        task->fields[i].is_absent = !source_has(source, task->sample.candidate, codec_field(codec));
                        continue;
                }
                if (codec_is_gathered(codec)) {
                        span_piece(task, i, ret_span);
                        is_gathered = true;
                        continue;
                }
                source_locate(source, task->sample.candidate, codec_field(codec), &extent);
                if (extent.flags & EXTENT_ABSENT) {
                        task->fields[i].is_absent = true;
                        continue;
                }
                add_to_reads(part, spans, task, i, &extent);
                is_long = n_stored++ == 0 && is_long_sound(task, i, &extent);
        }
        if (task->n_reads == 0 || is_gathered)
                return;
        if (is_long) {
                *ret_span = spans[0];
                span_long_sound(task, ret_span);
                return;
        }
        *ret_span = spans[task->idx_read];
        for (uint32_t i = 0; i < n_fields; i++)
                if (is_due(task, i) && !task->fields[i].is_absent)
                        task->fields[i].offset -= ret_span->begin;
}

/* A part of a shard: whole blocks of a file that all samples of the dataset share. */
static int locate_part(struct planner *planner, struct task *task, const struct source_read *span) {
        struct dataset *owner = dataset_with(task->batch->feed->dataset->dataset, task->sample.candidate);
        struct read_request *request = &task->request;

        request->path = span->first.shard;
        request->offset = span->begin;
        request->length = span->end - span->begin;
        request->is_part = true;
        request->stamp = dataset_has_stamps(owner, &request->settled_ns) ? span->first.stamp : NULL;
        request->owner = owner;
        request->idx_file = span->first.idx_shard;
        request->past_cache = task->batch->feed->past_cache;
        return locate_buffer(planner, task, (request->length + READER_ALIGN - 1) / READER_ALIGN * READER_ALIGN,
                             &request->why);
}

/* A part of a file of its own, after the head that makes it a file. */
static int locate_excerpt(struct planner *planner, struct task *task, const struct source_read *span) {
        struct read_request *request = &task->request;
        uint32_t n_head = task->excerpt.n_head_bytes;
        int r;

        request->offset = span->begin;
        request->length = span->end - span->begin;
        request->is_part = true;
        r = locate_buffer(planner, task, n_head + request->length, &request->why);
        if (r < 0)
                return r;
        memcpy(request->buffer, task->excerpt.head, n_head);
        request->buffer += n_head;
        request->capacity -= n_head;
        return 0;
}

/* A file of its own. */
static int locate_file(struct planner *planner, struct task *task, const struct source_read *span) {
        const struct extent *extent = &span->first;
        struct read_request *request = &task->request;

        extent_path(extent, task->path);
        request->path = task->path;
        request->offset = extent->offset;
        request->is_part = false;
        request->stamp = NULL;
        request->owner = NULL;
        request->past_cache = false;
        if (task->is_head || task->excerpt.n_head_bytes > 0)
                return locate_excerpt(planner, task, span);
        if (extent->flags & EXTENT_NOT_REGULAR)
                return why_set(&request->why, -EINVAL, "is not a regular file");
        if (extent->flags & EXTENT_UNREACHABLE) {
                /* The index could not learn the length. The file may be readable now; it is served if it fits. */
                request->length = READER_LENGTH_UNKNOWN;
                return locate_buffer(planner, task, TASK_BUFFER_BYTES, &request->why);
        }
        request->length = extent->length;
        /* One byte more than the index says, so that a file that has grown is noticed. */
        return locate_buffer(planner, task, extent->length + 1, &request->why);
}

/* Positive outcome: no read is needed, because all fields asked for are known already. */
#define LOCATE_KNOWN 1

/* Finds where the candidate's bytes lie, and memory for them. */
static int locate_bytes(struct planner *planner, struct task *task) {
        struct dataset *dataset = dataset_with(task->batch->feed->dataset->dataset, task->sample.candidate);
        struct read_request *request = &task->request;
        const char *broken = source_broken(dataset_source(task->batch->feed->dataset->dataset), task->sample.candidate);
        struct source_read span;

        if (broken) {
                request->path = NULL;
                request->is_part = false;
                return why_set(&request->why, -EBADMSG, "%s", broken);
        }
        request->dir_fd = dataset_root_fd(dataset);
        request->may_leave = dataset_follows_links(dataset);
        request->share = &task->batch->feed->job->reading;
        request->may_hang = task->batch->feed->may_hang;
        span_fields(task, &span);
        if (task->n_reads == 0)
                return LOCATE_KNOWN;
        return span.first.shard ? locate_part(planner, task, &span) : locate_file(planner, task, &span);
}

/* Where the candidate lies, if that is elsewhere. */
static struct remote *remote_of(const struct task *task) {
        uint64_t sample = task->sample.candidate;

        return catalog_dataset_with(task->batch->feed->dataset, &sample)->remote;
}

/* A worker that gets it drops it. */
static void leave_unread(struct task *task) {
        task->held = NULL;
        task->request.result = why_set(&task->request.why, -ECANCELED, "its rank has left");
        task->request.n_bytes = 0;
}

enum sample_state locate_fetch(struct planner *planner, struct task *task) {
        struct read_request *request = &task->request;
        struct remote *remote = remote_of(task);
        int r;

        if (!batch_is_wanted(task->batch)) {
                leave_unread(task);
                return SAMPLE_OPEN;
        }
        task->want = (struct cache_want){ .offset = request->offset,
                                          .n_bytes = request->length,
                                          .done = planner->options.fetched,
                                          .userdata = task };
        if (request->length == READER_LENGTH_UNKNOWN)
                task->want.n_bytes = TASK_BUFFER_BYTES;
        task->held = task->asked = remote->cached;
        task->asked_ns = clock_now_ns();
        atomic_store_explicit(&task->reading_ns, task->asked_ns, memory_order_relaxed);
        atomic_store_explicit(&task->is_fetching, true, memory_order_relaxed);
        r = cached_want(remote->cached, &task->want, remote->folder, request->path);
        if (r == 0)
                return SAMPLE_ELSEWHERE;
        atomic_store_explicit(&task->is_fetching, false, memory_order_relaxed);
        if (r > 0)
                return SAMPLE_READ;
        task->held = NULL;
        request->result = r; /* a worker applies the job's policy to it */
        request->n_bytes = 0;
        request->why = task->want.why;
        return SAMPLE_OPEN;
}

bool locate_leave(struct task *task) {
        if (!atomic_load_explicit(&task->is_fetching, memory_order_relaxed) || batch_is_wanted(task->batch) ||
            !cached_forget(task->asked, &task->want))
                return false;
        leave_unread(task);
        return true;
}

enum sample_state locate_sample(struct planner *planner, struct task *task) {
        int r;

        task->program = programs_with(task->batch->feed->programs, task->sample.candidate);
        task->idx_field = 0;
        r = locate_bytes(planner, task);
        if (r == -EAGAIN) {
                STAILQ_INSERT_TAIL(&task->batch->feed->large_waiting, task, entry);
                return SAMPLE_ELSEWHERE;
        }
        if (r == LOCATE_KNOWN)
                task_read_nothing(task);
        if (r == LOCATE_KNOWN)
                return SAMPLE_OPEN;
        if (r >= 0)
                return remote_of(task) ? SAMPLE_FETCH : SAMPLE_READ;
        task->request.result = r; /* a worker applies the job's policy to it */
        task->request.n_bytes = 0;
        return SAMPLE_OPEN;
}

enum sample_state locate_again(struct planner *planner, struct task *task) {
        (void)planner;
        task->idx_read = 0;
        return SAMPLE_LOCATE;
}
