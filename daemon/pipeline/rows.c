#include "daemon/pipeline/rows.h"

#include <errno.h>

#include "daemon/base/machine/mapped.h"
#include "daemon/pipeline/batch.h"
#include "proto/base/clock.h"

#define READ_AFTER_MISS  4096u /* samples that are read one by one after a row was not in memory */
#define BYTES_AHEAD      1024u /* of the next row; measured: 256 and 4096 gain half as much */
#define ROWS_FAR         6u
#define ROWS_NEAR        3u
#define CACHE_LINE       64u
#define ROWS_LOOKED_AT   3u /* of a task; each costs a system call for each piece, */
#define PIECES_LOOKED_AT 8u /* of which this many are looked at */

bool rows_are_mapped(const struct stream *stream) {
        const struct source *source = dataset_source(stream->dataset->dataset);

        for (uint32_t i = 0; i < program_n_fields(stream->program); i++) {
                const struct codec *codec = program_codec(stream->program, i);

                if (stream->layout.fields[i].form.how != COLLATE_STACK || stream->layout.fields[i].varies)
                        return false;
                if (!codec_is_row(codec) || (codec_is_stored(codec) && !source_is_mapped(source, codec_field(codec))))
                        return false;
        }
        return true;
}

uint32_t rows_at_once(struct stream *stream) {
        uint32_t n_to_read;

        if (!stream->has_rows)
                return 1;
        n_to_read = atomic_load_explicit(&stream->n_to_read, memory_order_relaxed);
        if (n_to_read == 0)
                return TASK_ROWS_MAX;
        /* A worker may set it to READ_AFTER_MISS at the same time, and this store may undo that. The worker's next miss
         * sets it again. */
        atomic_store_explicit(&stream->n_to_read, n_to_read - 1, memory_order_relaxed);
        return 1;
}

static void go_to(struct task *task, uint32_t idx_row) {
        task_begin(task, task->batch, task->idx_sample + idx_row - task->idx_row, &task->rows[idx_row]);
        task->idx_row = idx_row;
        task->is_copied = false;
}

bool rows_next(struct task *task) {
        if (task->idx_row + 1 >= task->n_rows)
                return false;
        go_to(task, task->idx_row + 1);
        return true;
}

/* Calls is_so() for each stored field, until one call returns false. */
static bool all_stored(const struct task *task, bool (*is_so)(const struct task *task, uint32_t idx_field)) {
        const struct stream *stream = task->batch->stream;

        for (uint32_t i = 0; i < stream->layout.n_fields; i++)
                if (codec_is_stored(program_codec(stream->program, i)) && !is_so(task, i))
                        return false;
        return true;
}

static bool next_piece(const struct stream *stream, uint32_t idx_field, uint64_t sample, struct source_piece *piece) {
        return source_next_piece(dataset_source(stream->dataset->dataset), sample,
                                 codec_field(program_codec(stream->program, idx_field)), piece);
}

static bool is_resident(const struct stream *stream, uint32_t idx_field, uint64_t sample) {
        struct source_piece piece = { 0 };

        for (uint32_t i = 0; i < PIECES_LOOKED_AT && next_piece(stream, idx_field, sample, &piece); i++)
                if (piece.bytes && !mapped_is_resident(piece.bytes, piece.n_bytes))
                        return false;
        return true;
}

/* Checks only a few rows of the task: they stand for all. */
static bool are_resident(const struct task *task, uint32_t idx_field) {
        for (uint32_t i = 0; i < ROWS_LOOKED_AT; i++) {
                uint64_t sample = task->rows[i * (task->n_rows - 1) / (ROWS_LOOKED_AT - 1)].index;

                if (!is_resident(task->batch->stream, idx_field, sample))
                        return false;
        }
        return true;
}

static bool were_there(const struct task *task, uint32_t idx_field) {
        const struct stream *stream = task->batch->stream;

        return source_rows_were_there(dataset_source(stream->dataset->dataset),
                                      codec_field(program_codec(stream->program, idx_field)));
}

/* Returns false if a piece of it has to be read. */
static bool copy_field(const struct stream *stream, uint32_t idx_field, uint64_t sample, uint8_t *out) {
        const struct codec *codec = program_codec(stream->program, idx_field);
        struct source_piece piece = { 0 };

        while (next_piece(stream, idx_field, sample, &piece))
                if (!piece.bytes || codec_copy_piece(codec, &piece, out) < 0)
                        return false;
        codec_settle_row(codec, out);
        return true;
}

/* Returns false if one of the fields has to be read. */
static bool copy_fields(struct batch *batch, uint32_t idx_sample, uint64_t sample) {
        const struct stream *stream = batch->stream;
        const struct source *source = dataset_source(stream->dataset->dataset);

        for (uint32_t i = 0; i < stream->layout.n_fields; i++) {
                const struct codec *codec = program_codec(stream->program, i);
                uint8_t *out = collating_row(&batch->collating, i, idx_sample);

                if (!codec_is_stored(codec))
                        source_value(source, sample, codec_field(codec), out);
                else if (!copy_field(stream, i, sample, out))
                        return false;
        }
        return true;
}

static void prefetch(const uint8_t *bytes, uint64_t n_bytes) {
        for (uint64_t at = 0; at < n_bytes && at < BYTES_AHEAD; at += CACHE_LINE)
                __builtin_prefetch(bytes + at);
}

/* Rows of a shuffled epoch lie anywhere, so the first bytes of each come from memory, and a copy would wait for them.
 * The processor brings the rest of a row by itself. */
static void prefetch_row(const struct task *task, uint32_t idx_row) {
        const struct stream *stream = task->batch->stream;

        for (uint32_t i = 0; i < stream->layout.n_fields; i++) {
                struct source_piece piece = { 0 };

                if (!codec_is_stored(program_codec(stream->program, i)))
                        continue;
                while (piece.number < PIECES_LOOKED_AT && next_piece(stream, i, task->rows[idx_row].index, &piece))
                        if (piece.bytes)
                                prefetch(piece.bytes, piece.n_bytes);
        }
}

/* What is needed to find the pieces of a row is prefetched in two steps, since the second depends on the first. */
static void prefetch_ahead(const struct task *task, uint32_t idx_row) {
        const struct source *source = dataset_source(task->batch->stream->dataset->dataset);

        if (idx_row + ROWS_FAR < task->n_rows)
                source_prefetch(source, task->rows[idx_row + ROWS_FAR].index, false);
        if (idx_row + ROWS_NEAR < task->n_rows)
                source_prefetch(source, task->rows[idx_row + ROWS_NEAR].index, true);
        if (idx_row + 1 < task->n_rows)
                prefetch_row(task, idx_row + 1);
}

uint32_t rows_serve(struct worker *worker, struct task *task) {
        static const struct why NONE = { 0 };
        uint64_t begin_ns = clock_now_ns(), queued_ns = begin_ns - task->arrived_ns;
        struct batch *batch = task->batch;
        bool is_fine = all_stored(task, are_resident);
        uint32_t n = 0;

        while (is_fine && n < task->n_rows) {
                prefetch_ahead(task, n);
                if (!copy_fields(batch, task->idx_sample + n, task->rows[n].index))
                        break;
                n++;
        }
        is_fine = is_fine && all_stored(task, were_there);
        if (!is_fine) {
                atomic_store_explicit(&batch->stream->n_to_read, READ_AFTER_MISS, memory_order_relaxed);
                n = 0;
        }
        for (uint32_t i = 0; i < n; i++)
                batch_served(batch, task->idx_sample + i, task->rows[i].index, task->rows[i].index, &NONE);
        worker->serving_ns = clock_now_ns() - begin_ns;
        counter_add(&worker->counters->decode_ns, worker->serving_ns);
        counter_add(&worker->counters->n_samples, n);
        batch_took(batch, 0, queued_ns * n, worker->serving_ns);
        if (n < task->n_rows)
                go_to(task, n);
        return n;
}
