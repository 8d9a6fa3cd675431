#include "daemon/pipeline/pipeline_rows.h"

#include <errno.h>

#include "daemon/base/machine/mapped.h"
#include "daemon/pipeline/batch.h"
#include "daemon/pipeline/desk/desk.h"
#include "daemon/pipeline/workers/function_result.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define READ_AFTER_MISS  4096u /* samples that are read one by one after a row was not in memory */
#define BYTES_AHEAD      1024u /* of the next piece; measured: 256 and 4096 gain half as much */
#define PIECES_AT_ONCE   128u
#define ROWS_FAR         6u
#define ROWS_NEAR        3u
#define CACHE_LINE       64u
#define ROWS_LOOKED_AT   3u /* of a task; each costs a system call for each piece, */
#define PIECES_LOOKED_AT 8u /* of which this many are looked at */

static bool are_mapped(const struct feed *feed, const struct program *program, const struct source *source) {
        for (uint32_t i = 0; i < program_n_fields(program); i++) {
                const struct codec *codec = program_codec(program, i);

                if (feed->layout.fields[i].form.how != COLLATE_STACK || feed->layout.fields[i].varies)
                        return false;
                if (program_after(program, i) || !codec_is_row(codec) ||
                    (codec_is_stored(codec) && !source_is_mapped(source, codec_field(codec))))
                        return false;
        }
        return true;
}

/* A part without samples has nothing that could be mapped, and nothing that would be read. */
bool rows_are_mapped(const struct feed *feed) {
        for (uint32_t k = 0; k < programs_n_parts(feed->programs); k++) {
                const struct source *source = programs_source(feed->programs, k);

                if (source->growth) /* of which a sample may be broken: each is looked at */
                        return false;
                if (source->n_samples > 0 && !are_mapped(feed, programs_part(feed->programs, k), source))
                        return false;
        }
        return true;
}

uint32_t rows_at_once(struct feed *feed) {
        uint32_t n_to_read;

        if (!feed->has_rows)
                return 1;
        n_to_read = atomic_load_explicit(&feed->n_to_read, memory_order_relaxed);
        if (n_to_read == 0)
                return desk_has_samples(feed->desk) ? desk_run(feed->desk) : TASK_ROWS_MAX;
        /* A worker may set it to READ_AFTER_MISS at the same time, and this store may undo that. The worker's next miss
         * sets it again. */
        atomic_store_explicit(&feed->n_to_read, n_to_read - 1, memory_order_relaxed);
        return 1;
}

static const struct codec *pipeline_rows_codec_of(const struct feed *feed, uint32_t idx_field, uint64_t sample) {
        return program_codec(programs_with(feed->programs, sample), idx_field);
}

static bool pipeline_rows_next_piece(const struct feed *feed, uint32_t idx_field, uint64_t sample,
                                     struct source_piece *piece) {
        return source_next_piece(dataset_source(feed->dataset->dataset), sample,
                                 codec_field(pipeline_rows_codec_of(feed, idx_field, sample)), piece);
}

static bool is_resident(const struct feed *feed, uint32_t idx_field, uint64_t sample) {
        struct source_piece piece = { 0 };

        for (uint32_t i = 0; i < PIECES_LOOKED_AT && pipeline_rows_next_piece(feed, idx_field, sample, &piece); i++)
                if (piece.bytes && !mapped_is_resident(piece.bytes, piece.n_bytes))
                        return false;
        return true;
}

/* Checks only a few rows of the task: they stand for all. */
static bool are_resident(const struct task *task) {
        const struct feed *feed = task->batch->feed;

        for (uint32_t i = 0; i < ROWS_LOOKED_AT; i++) {
                uint64_t sample = task->rows[i * (task->n_rows - 1) / (ROWS_LOOKED_AT - 1)].index;

                for (uint32_t k = 0; k < feed->layout.n_fields; k++)
                        if (codec_is_stored(pipeline_rows_codec_of(feed, k, sample)) && !is_resident(feed, k, sample))
                                return false;
        }
        return true;
}

static bool were_there_in(const struct program *program, const struct source *source) {
        for (uint32_t i = 0; i < program_n_fields(program); i++)
                if (codec_is_stored(program_codec(program, i)) &&
                    !source_rows_were_there(source, codec_field(program_codec(program, i))))
                        return false;
        return true;
}

/* In all parts of the dataset: a task has rows of several. */
static bool were_there(const struct task *task) {
        const struct programs *programs = task->batch->feed->programs;

        for (uint32_t k = 0; k < programs_n_parts(programs); k++)
                if (programs_source(programs, k)->n_samples > 0 &&
                    !were_there_in(programs_part(programs, k), programs_source(programs, k)))
                        return false;
        return true;
}

/* ---- copying -------------------------------------------------------------------------------------------------- */

/* Pieces of rows that follow one another. Finding a piece waits for memory, and copying it does. When many are found
 * before the first is copied, those waits overlap, and rows of three pieces come half as fast again. */
struct found_pieces {
        struct {
                const struct codec *codec;
                const uint8_t *bytes;
                uint8_t *row;
                uint64_t n_bytes, n_before;
                uint32_t dtype, idx_row;
        } pieces[PIECES_AT_ONCE];
        uint32_t n;
        uint32_t idx_failed; /* the first row of which a piece has to be read; UINT32_MAX: none */
};

/* The first bytes of each piece come from memory, and a copy would wait for them. The processor brings the rest of it
 * by itself. */
static void prefetch(const uint8_t *bytes, uint64_t n_bytes) {
        for (uint64_t at = 0; at < n_bytes && at < BYTES_AHEAD; at += CACHE_LINE)
                __builtin_prefetch(bytes + at);
}

static void copy_pieces(struct found_pieces *found) {
        for (uint32_t i = 0; i < found->n && found->idx_failed == UINT32_MAX; i++) {
                struct source_piece piece = {
                        .bytes = found->pieces[i].bytes,
                        .n_bytes = found->pieces[i].n_bytes,
                        .n_before = found->pieces[i].n_before,
                        .dtype = found->pieces[i].dtype,
                };

                if (i + 1 < found->n)
                        prefetch(found->pieces[i + 1].bytes, found->pieces[i + 1].n_bytes);
                if (codec_copy_piece(found->pieces[i].codec, &piece, found->pieces[i].row) < 0)
                        found->idx_failed = found->pieces[i].idx_row;
        }
        found->n = 0;
}

/* What a function is given lies in a place of its own if it delivers something of another form. */
static uint8_t *pipeline_rows_place_of(const struct task *task, uint32_t idx_field, uint32_t idx_row) {
        const struct collating *collating = &task->batch->collating;
        const struct field_layout *field = &task->batch->feed->layout.fields[idx_field];
        uint32_t idx_sample = task->idx_sample + idx_row;

        if (field->form.input.n_bytes > 0)
                return collating->slot + field->input_offset + field->input_bytes * idx_sample;
        return collating_row(collating, idx_field, idx_sample);
}

static void pipeline_rows_find_field(const struct task *task, uint32_t idx_row, uint32_t idx_field,
                                     struct found_pieces *found) {
        const struct feed *feed = task->batch->feed;
        const struct codec *codec = pipeline_rows_codec_of(feed, idx_field, task->rows[idx_row].index);
        uint8_t *row = pipeline_rows_place_of(task, idx_field, idx_row);
        struct source_piece piece = { 0 };

        while (found->idx_failed == UINT32_MAX &&
               pipeline_rows_next_piece(feed, idx_field, task->rows[idx_row].index, &piece)) {
                if (found->n == PIECES_AT_ONCE || !piece.bytes)
                        copy_pieces(found);
                if (!piece.bytes && found->idx_failed == UINT32_MAX)
                        found->idx_failed = idx_row;
                if (!piece.bytes)
                        return;
                found->pieces[found->n].codec = codec;
                found->pieces[found->n].bytes = piece.bytes;
                found->pieces[found->n].row = row;
                found->pieces[found->n].n_bytes = piece.n_bytes;
                found->pieces[found->n].n_before = piece.n_before;
                found->pieces[found->n].dtype = piece.dtype;
                found->pieces[found->n++].idx_row = idx_row;
        }
}

/* What is needed to find the pieces of a row is prefetched in two steps, since the second depends on the first. */
static void prefetch_places(const struct task *task, uint32_t idx_row) {
        const struct source *source = dataset_source(task->batch->feed->dataset->dataset);

        if (idx_row + ROWS_FAR < task->n_rows)
                source_prefetch(source, task->rows[idx_row + ROWS_FAR].index, false);
        if (idx_row + ROWS_NEAR < task->n_rows)
                source_prefetch(source, task->rows[idx_row + ROWS_NEAR].index, true);
}

static void pipeline_rows_settle(const struct task *task, uint32_t n_rows) {
        const struct feed *feed = task->batch->feed;

        for (uint32_t i = 0; i < feed->layout.n_fields; i++) {
                for (uint32_t k = 0; k < n_rows; k++) {
                        const struct codec *codec = pipeline_rows_codec_of(feed, i, task->rows[k].index);
                        uint8_t *row = pipeline_rows_place_of(task, i, k);

                        if (codec_is_stored(codec))
                                codec_settle_row(codec, row);
                        else
                                source_value(dataset_source(feed->dataset->dataset), task->rows[k].index,
                                             codec_field(codec), row);
                }
        }
}

/* Copies rows until one has to be read. Returns how many are complete. */
static uint32_t pipeline_rows_copy_rows(const struct task *task) {
        const struct feed *feed = task->batch->feed;
        struct found_pieces found;
        uint32_t n;

        found.n = 0;
        found.idx_failed = UINT32_MAX;
        for (uint32_t i = 0; i < task->n_rows && found.idx_failed == UINT32_MAX; i++) {
                prefetch_places(task, i);
                for (uint32_t k = 0; k < feed->layout.n_fields; k++)
                        if (codec_is_stored(pipeline_rows_codec_of(feed, k, task->rows[i].index)))
                                pipeline_rows_find_field(task, i, k, &found);
        }
        copy_pieces(&found);
        n = found.idx_failed == UINT32_MAX ? task->n_rows : found.idx_failed;
        pipeline_rows_settle(task, n);
        return n;
}

static void rows_served(struct worker *worker, struct task *task, uint32_t n) {
        for (uint32_t i = 0; i < n && task->batch->samples; i++)
                task->batch->samples[task->idx_sample + i] = task_row_sample(&task->rows[i]);
        for (uint32_t i = 0; i < n; i++)
                batch_served(task->batch, task->idx_sample + i, task->rows[i].index, task->rows[i].index, NULL);
        counter_add(&worker->counters->n_samples, n);
        tally_add(worker_tally(worker, task->batch), &(struct tally_counts){ .n_samples = n });
}

/* Copies what it can. Returns how many of the task's samples are in their places: all, or the next one is to be read.
 * They have been served unless functions follow, which get all of a run, or one after the other. */
static uint32_t rows_serve(struct worker *worker, struct task *task) {
        uint64_t begin_ns = clock_now_ns(), queued_ns = begin_ns - task->arrived_ns;
        struct tally *tally = worker_tally(worker, task->batch);
        struct tally_counts took;
        struct batch *batch = task->batch;
        bool has_functions = desk_has_samples(batch->feed->desk), is_fine = are_resident(task);
        uint32_t n = is_fine ? pipeline_rows_copy_rows(task) : 0;

        is_fine = is_fine && were_there(task);
        if (!is_fine) {
                atomic_store_explicit(&batch->feed->n_to_read, READ_AFTER_MISS, memory_order_relaxed);
                n = 0;
        }
        if (has_functions && n < task->n_rows)
                n = 0;
        if (!has_functions)
                rows_served(worker, task, n);
        worker->serving_ns = clock_now_ns() - begin_ns;
        counter_add(&worker->counters->decode_ns, worker->serving_ns);
        counter_add(&worker->counters->queued_ns, queued_ns * n);
        batch_took(batch, 0, queued_ns * n, worker->serving_ns);
        if (trace_is_on()) {
                struct trace_subject subject = batch_subject(batch);

                subject.sample = task->rows[0].index;
                trace_write(&subject, DLP_TRACE_ROWS, 0, begin_ns, begin_ns + worker->serving_ns, n);
        }
        took = (struct tally_counts){ .queued_ns = queued_ns * n, .serving_ns = worker->serving_ns };
        tally_add(tally, &took);
        stage_sums_add(&tally->stages, STAGE_COPY, worker->serving_ns);
        return n;
}

/* The first n samples have ended, and are not the last of their batch; the task goes on with the next one, alone. */
static void end_some(struct worker *worker, struct task *task, uint32_t n) {
        if (n > 0)
                batch_samples_done(task->batch, n, worker->counters);
        task_go_to_row(task, n);
}

/* From the first one that cannot be copied on, they are read one by one. */
enum sample_state rows_copy(struct worker *worker, struct task *task) {
        uint32_t n = rows_serve(worker, task);

        if (n == task->n_rows)
                return desk_has_samples(task->batch->feed->desk) ? SAMPLE_RUN : SAMPLE_END;
        end_some(worker, task, n);
        return SAMPLE_LOCATE;
}

/* If it is not served as a whole, its first samples are, and the task is with the next one, which has the outcome. */
enum sample_state rows_function(struct worker *worker, struct task *task) {
        enum function_state state = task->function.state;
        struct trouble *trouble;
        uint32_t n = state == FUNCTION_DONE ? task->n_rows : task->function.n_done;

        rows_served(worker, task, n);
        if (n == task->n_rows) {
                task->function.state = FUNCTION_NONE;
                return SAMPLE_END;
        }
        trouble = TAKE_PTR(task->trouble);
        end_some(worker, task, n);
        task->function.state = state;
        task->trouble = trouble;
        return function_result_take(worker, task);
}
