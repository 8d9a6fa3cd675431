#include "daemon/pipeline/worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/base/thread.h"
#include "daemon/collate/packing.h"
#include "daemon/collate/padding.h"
#include "daemon/pipeline/after.h"
#include "daemon/pipeline/batch.h"
#include "daemon/pipeline/desk/desk.h"
#include "daemon/pipeline/failure/failure.h"
#include "daemon/pipeline/rows.h"
#include "daemon/pipeline/whole.h"
#include "proto/base/clock.h"

/* ---- reserving scratch memory -------------------------------------------------------------------------------- */

static bool has_scratch(const struct worker *worker, const struct task *task, uint64_t need) {
        return need <= worker->own_bytes || need <= task->n_scratch_bytes;
}

int worker_reserve(struct worker *worker, struct task *task, uint64_t need) {
        if (need == 0 || codec_tools_bytes(worker->tools) + need <= worker->own_bytes)
                return 0;
        codec_tools_trim(worker->tools);
        if (has_scratch(worker, task, need))
                return 0;
        if (need > worker->scratch->n_bytes)
                return -EFBIG;
        scratch_give(worker->scratch, task, clock_now_ns()); /* a task that waits holds no scratch */
        fair_item_refund(&task->ready); /* before it waits: another worker may have the task a moment later */
        if (scratch_take(worker->scratch, task, need, clock_now_ns()) == SCRATCH_WAITS) {
                counter_add(&worker->counters->n_scratch_waits, 1);
                return SAMPLE_WAITS;
        }
        return 0;
}

/* More memory is worth having, and nobody waits for it: a picture that is decoded alone has the same pixels. */
static bool may_share(struct worker *worker, struct task *task, const struct codec_opened *opened) {
        return has_scratch(worker, task, opened->need_bytes) ||
               (task->n_scratch_bytes == 0 && scratch_try(worker->scratch, task, opened->need_bytes, clock_now_ns()));
}

static int refuse_memory(struct worker *worker, const struct task *task, uint32_t idx_field,
                         const struct codec_opened *opened, struct why *why) {
        uint64_t allowed = worker->scratch->n_bytes;

        if (rendering_is_for(task, idx_field) && !codec_is_plugged(program_codec(task->program, idx_field)))
                return rendering_refuse_memory(&worker->rendering, idx_field, allowed, why);
        return codec_refuse_memory(program_codec(task->program, idx_field), worker->tools, opened, allowed, why);
}

/* How much scratch this field needs in total is known once it is open. The memory kept from earlier fields is counted
 * in addition: it may have the wrong shape for this one. */
static int worker_charge(struct worker *worker, struct task *task, uint32_t idx_field, struct codec_opened *opened,
                         struct why *why) {
        uint64_t need = opened->need_bytes;
        int r;

        if (need == 0 || codec_tools_bytes(worker->tools) + need <= worker->own_bytes)
                return 0;
        codec_tools_trim(worker->tools);
        if (opened->alone_bytes > 0) {
                if (may_share(worker, task, opened))
                        return 0;
                codec_decode_alone(worker->tools);
                opened->need_bytes = opened->alone_bytes;
        }
        r = worker_reserve(worker, task, opened->need_bytes);
        return r == -EFBIG ? refuse_memory(worker, task, idx_field, opened, why) : r;
}

/* Gives back what the task was granted, whether it was needed or not. This comes after the memory itself has been
 * freed. */
void worker_settle(struct worker *worker, struct task *task) {
        if (task->n_scratch_bytes == 0)
                return;
        codec_tools_trim(worker->tools);
        scratch_give(worker->scratch, task, clock_now_ns());
}

/* ---- one sample ---------------------------------------------------------------------------------------------- */

static void count_decoded(struct worker *worker, struct codec_counts counts) {
        if (counts.n_decoded[DECODED_BY_BASELINE] > 0)
                counter_add(&worker->counters->n_jpeg_own, counts.n_decoded[DECODED_BY_BASELINE]);
        if (counts.n_decoded[DECODED_BY_LIBJPEG] > 0)
                counter_add(&worker->counters->n_jpeg_libjpeg, counts.n_decoded[DECODED_BY_LIBJPEG]);
        if (counts.n_shared > 0)
                counter_add(&worker->counters->n_shared, counts.n_shared);
        if (counts.n_handed_over > 0)
                counter_add(&worker->counters->n_jpeg_handed_over, counts.n_handed_over);
}

static void worker_count_decoded(struct worker *worker) {
        count_decoded(worker, codec_tools_take_counts(worker->tools));
        count_decoded(worker, worker->rendering.counts);
        worker->rendering.counts = (struct codec_counts){ 0 };
        if (worker->rendering.n_ended > 0)
                counter_add(&worker->counters->n_decoder_ends, worker->rendering.n_ended);
        worker->rendering.n_ended = 0;
}

/* ---- fields, here or in a cell --------------------------------------------------------------------------------- */

static int open_field(struct worker *worker, struct task *task, uint32_t idx_field, const struct codec_input *input,
                      struct codec_opened *ret_opened, struct why *why) {
        if (rendering_is_for(task, idx_field))
                return rendering_open(&worker->rendering, idx_field, ret_opened, why);
        return codec_open(program_codec(task->program, idx_field), worker->tools, input, ret_opened, why);
}

static void close_field(struct worker *worker, const struct task *task, uint32_t idx_field) {
        if (!rendering_is_for(task, idx_field))
                codec_close(program_codec(task->program, idx_field), worker->tools);
}

/* Where an open field goes: all of it, or a piece if n_kept_bytes is not 0. */
struct destination {
        uint8_t *out;
        uint64_t n_skipped_bytes, n_kept_bytes;
};

/* A cell makes what the plug-ins get. */
static int write_plugged(struct worker *worker, struct task *task, uint32_t idx_field, const struct codec_input *input,
                         uint64_t allowed_bytes, const struct destination *to, struct why *why) {
        const uint8_t *before;
        int r = rendering_write_before(&worker->rendering, idx_field, allowed_bytes, &before, why);

        if (r != 0)
                return r;
        return codec_render_plugins(program_codec(task->program, idx_field), worker->tools, input, before,
                                    to->n_skipped_bytes, to->n_kept_bytes, to->out, why);
}

static int write_field(struct worker *worker, struct task *task, uint32_t idx_field, const struct codec_input *input,
                       const struct codec_opened *opened, const struct destination *to, struct why *why) {
        const struct codec *codec = program_codec(task->program, idx_field);
        uint64_t allowed = opened->need_bytes <= worker->own_bytes ? worker->own_bytes : task->n_scratch_bytes;

        if (rendering_is_for(task, idx_field) && codec_is_plugged(codec))
                return write_plugged(worker, task, idx_field, input, allowed, to, why);
        if (rendering_is_for(task, idx_field))
                return rendering_write(&worker->rendering, idx_field, to->out,
                                       to->n_kept_bytes > 0 ? to->n_kept_bytes : opened->n_bytes, to->n_skipped_bytes,
                                       to->n_kept_bytes, allowed, why);
        if (to->n_kept_bytes > 0)
                return codec_render_piece(codec, worker->tools, input, opened->n_bytes, to->n_skipped_bytes,
                                          to->n_kept_bytes, to->out, why);
        return codec_render(codec, worker->tools, input, to->out, why);
}

/* The fields that are served after it, and show parts of the same stored picture. */
static uint32_t find_sharers(const struct task *task, uint32_t idx_field, struct codec_sharer *sharers) {
        uint32_t n = 0;

        while ((idx_field = program_sharer(task->program, idx_field)) != CODEC_NONE) {
                const struct codec *codec = program_codec(task->program, idx_field);

                sharers[n++] = (struct codec_sharer){ codec, task_seed(task, codec_draws(codec)) };
        }
        return n;
}

/* Must it lose its end to fit? Only a padded field may. */
static bool is_too_long(const struct field_layout *field, const struct codec_opened *opened) {
        return field->form.how == COLLATE_PADDED && field->form.pad.truncates && field->form.input.n_bytes == 0 &&
               (uint64_t)opened->shape[0] > field->padded.limits[0];
}

/* Is only a part of it wanted, so that the whole needs memory beside that? */
static bool is_cut(const struct task *task, const struct field_layout *field, const struct codec_opened *opened) {
        if (field->form.how == COLLATE_PACKED)
                return task->batch->packs[task->idx_sample].n_elements < (uint64_t)opened->shape[0];
        return is_too_long(field, opened);
}

/* A packed field may be only a piece of the sample. */
static int render_packed(struct worker *worker, struct task *task, uint32_t idx_field, const struct codec_input *input,
                         const struct codec_opened *opened, uint8_t *out, struct why *why) {
        const struct field_layout *field = &task->batch->stream->layout.fields[idx_field];
        const struct pack_place *place = &task->batch->packs[task->idx_sample];
        struct destination to = { .out = out };
        uint64_t size = dlp_dtype_bytes(field->form.dtype);
        int r = packing_check(place, (uint64_t)opened->shape[0], why);

        if (r < 0)
                return r;
        if (place->n_elements < place->length)
                to = (struct destination){ out, place->skip * size, place->n_elements * size };
        return write_field(worker, task, idx_field, input, opened, &to, why);
}

/* What a sample has room for, for messages: before a function, if one is applied to it. */
static uint64_t room_of(const struct field_layout *field) {
        uint64_t most = field->form.max_bytes, room = field->sample_bytes; /* which is aligned, or not known */

        if (field->form.input.n_bytes > 0)
                return field->form.input.n_bytes;
        return most > 0 && (room == 0 || most < room) ? most : room;
}

/* A function of the trainer's makes the field of this, or steps after it do: it lies in a place of its own. */
static int render_input(struct worker *worker, struct task *task, uint32_t idx_field, const struct codec_input *input,
                        const struct codec_opened *opened, struct why *why) {
        const struct collating *collating = &task->batch->collating;
        const struct field_layout *field = &collating->layout->fields[idx_field];
        struct destination to = { collating->slot + field->input_offset + field->input_bytes * task->idx_sample, 0, 0 };

        if (field->form.input.n_bytes == 0) {
                to.out = collating->slot + field->result_offset + field->result_bytes * task->idx_sample;
                return write_field(worker, task, idx_field, input, opened, &to, why);
        }
        if (opened->n_bytes > field->form.input.n_bytes)
                return codec_refuse_room(program_codec(task->program, idx_field), opened, room_of(field), why);
        memcpy(task->inputs[idx_field], opened->shape, sizeof(task->inputs[idx_field]));
        if (field->input_shape_at > 0)
                memcpy(to.out + field->input_shape_at, opened->shape, field->form.input.n_dims * sizeof(int64_t));
        return write_field(worker, task, idx_field, input, opened, &to, why);
}

/* Asks collation for the field's place, and writes the field there. */
static int place_and_render(struct worker *worker, struct task *task, uint32_t idx_field,
                            const struct codec_input *input, const struct codec_opened *opened, struct why *why) {
        struct stream *stream = task->batch->stream;
        const struct codec *codec = program_codec(task->program, idx_field);
        const struct field_layout *field = &stream->layout.fields[idx_field];
        int64_t shape[FIELD_DIMS_MAX], other[FIELD_DIMS_MAX];
        struct destination to = { 0 };
        uint8_t *out = NULL;
        int r;

        if (field->form.input.n_bytes > 0 || field->form.result.n_bytes > 0)
                return render_input(worker, task, idx_field, input, opened, why);
        memcpy(shape, opened->shape, sizeof(shape));
        if (field->form.how == COLLATE_PADDED && padding_fit(field, shape) < 0)
                return padding_refuse(field, shape, why);
        r = collating_place(&task->batch->collating, idx_field, task->idx_sample, shape, opened->n_bytes, &out, other);
        if (r == -EFBIG)
                return codec_refuse_room(codec, opened, room_of(field), why);
        if (r == COLLATE_DIFFERS)
                return codec_refuse_shape(codec, opened, other, why);
        to.out = out;
        if (is_too_long(field, opened))
                to.n_kept_bytes = (uint64_t)shape[0] * field->padded.element_bytes;
        r = field->form.how == COLLATE_PACKED ? render_packed(worker, task, idx_field, input, opened, out, why)
                                              : write_field(worker, task, idx_field, input, opened, &to, why);
        if (r == 0)
                collating_hide(&task->batch->collating, idx_field, task->idx_sample, out, codec_seed(codec, input),
                               input->epoch, input->sample);
        return r;
}

static bool is_ragged(const struct stream *stream, uint32_t idx_field) {
        return stream->layout.fields[idx_field].form.how == COLLATE_RAGGED;
}

/* Only what is not stacked may be absent, and that for which no function waits. */
static int leave_out(struct task *task, uint32_t idx_field, struct why *why) {
        const struct field_form *form = &task->batch->stream->layout.fields[idx_field].form;

        if (form->how == COLLATE_STACK || form->how == COLLATE_PACKED || form->input.n_bytes > 0)
                return why_set(why, -EBADMSG, "the sample does not have it");
        collating_leave_out(&task->batch->collating, idx_field, task->idx_sample);
        return 0;
}

/* Fields that are served later in this sample may need the picture's size. */
static void note_size(struct task *task, uint32_t idx_field, const struct codec_opened *opened) {
        if (codec_is_picture(program_codec(task->program, idx_field)))
                task->sizes[idx_field] = (struct picture_size){ opened->width, opened->height };
}

/* Returns 0, SAMPLE_WAITS, or a negative errno for what is wrong. */
static int serve_field(struct worker *worker, struct task *task, uint32_t idx_field, struct why *why) {
        const struct codec *codec = program_codec(task->program, idx_field);
        struct codec_input input = task_input(task, idx_field);
        struct codec_sharer sharers[DLP_TENSORS_MAX];
        struct codec_opened opened;
        int r;

        input.sharers = sharers;
        input.n_sharers = find_sharers(task, idx_field, sharers);
        if (codec_is_boxes(codec) && codec_drops_boxes(codec))
                task->kept.is_known = false;
        if (task->fields[idx_field].is_absent)
                return leave_out(task, idx_field, why);
        r = open_field(worker, task, idx_field, &input, &opened, why);
        if (r == 0 && opened.is_absent) {
                close_field(worker, task, idx_field);
                return leave_out(task, idx_field, why);
        }
        if (r == 0)
                note_size(task, idx_field, &opened);
        if (r == 0 && is_cut(task, &task->batch->stream->layout.fields[idx_field], &opened))
                opened.need_bytes += opened.n_bytes;
        if (r == 0)
                r = worker_charge(worker, task, idx_field, &opened, why);
        if (r == 0)
                r = place_and_render(worker, task, idx_field, &input, &opened, why);
        close_field(worker, task, idx_field);
        return r;
}

/* Would this field fail? A ragged field that is not spread gets its place once, so nothing may fail after the first
 * ragged field of a sample has got its place. */
static int check_ragged(struct worker *worker, struct task *task, uint32_t idx_field, struct why *why) {
        const struct stream *stream = task->batch->stream;
        const struct codec *codec = program_codec(task->program, idx_field);
        const struct field_layout *field = &stream->layout.fields[idx_field];
        struct codec_input input = task_input(task, idx_field);
        struct codec_opened opened;
        int r = open_field(worker, task, idx_field, &input, &opened, why);

        close_field(worker, task, idx_field);
        if (r != 0)
                return r;
        return opened.n_bytes > field->sample_bytes ? codec_refuse_room(codec, &opened, room_of(field), why) : 0;
}

/* Remembers which field failed, whichever view of it. The message names it, unless it is the only stored one, which is
 * the sample's file. */
static void name_field(struct task *task, uint32_t idx_field, struct why *why) {
        const struct schema *schema = &dataset_source(task->batch->stream->dataset->dataset)->schema;
        struct why bare = *why;
        uint32_t n_stored = 0;

        task->bad_field = schema->fields[codec_field(program_codec(task->program, idx_field))].name;
        for (uint32_t i = 0; i < schema->n_fields; i++)
                n_stored += schema->fields[i].is_stored;
        if (n_stored > 1 || !codec_is_stored(program_codec(task->program, idx_field)))
                why_set(why, 0, "field %s: %s", task->bad_field, bare.text);
}

/* A failed read is named after its field if it was to bring one field alone. */
static const char *only_read(const struct task *task) {
        const struct stream *stream = task->batch->stream;
        const char *name = NULL;

        for (uint32_t i = 0; i < stream->layout.n_fields; i++) {
                const struct codec *codec = program_codec(task->program, i);

                if (!codec_is_stored(codec) || codec_is_again(codec) || task->fields[i].is_absent ||
                    task->fields[i].idx_read != task->idx_read)
                        continue;
                if (name)
                        return NULL;
                name = stream->layout.fields[i].form.name;
        }
        return name;
}

/* Is it placed once, after all that may fail? */
static bool is_last(const struct stream *stream, uint32_t idx_field) {
        return is_ragged(stream, idx_field) && !stream->layout.fields[idx_field].is_spread;
}

/* A gathered field has its place already, like all rows. */
static int put_piece(const struct task *task, uint32_t idx_field, struct why *why) {
        return codec_put_piece(program_codec(task->program, idx_field), &task->piece, task->request.buffer,
                               collating_row(&task->batch->collating, idx_field, task->idx_sample), why);
}

/* All fields that this read brought: first those that may fail halfway, then those that are only copied. A field that
 * had to wait for memory continues where it was. */
static int serve_fields(struct worker *worker, struct task *task, struct why *why) {
        const struct stream *stream = task->batch->stream;
        uint32_t i;
        int r = rendering_begin(&worker->rendering, task, why);

        if (r != 0)
                return r;
        for (; task->idx_field < stream->layout.n_fields; task->idx_field++) {
                i = program_serving(task->program, task->idx_field);
                if (task->fields[i].idx_read != task->idx_read)
                        continue;
                if (codec_is_gathered(program_codec(task->program, i)))
                        r = put_piece(task, i, why);
                else if (!is_last(stream, i))
                        r = serve_field(worker, task, i, why);
                else
                        r = task->fields[i].is_absent ? 0 : check_ragged(worker, task, i, why);
                if (r > 0) /* the task is no longer this worker's, or nobody wants the sample */
                        return r;
                if (r < 0) {
                        name_field(task, i, why);
                        return r;
                }
        }
        for (i = 0; i < stream->layout.n_fields && stream->layout.n_ragged > 0; i++)
                if (is_last(stream, i))
                        r = serve_field(worker, task, i, why);
        return r;
}

struct tally *worker_tally(const struct worker *worker, const struct batch *batch) {
        return &batch->stream->job->tallies[worker->idx % TALLIES];
}

/* From now on this worker's stages are parts of this sample. */
static void trace_sample(struct worker *worker, const struct task *task) {
        if (!trace_is_on())
                return;
        worker->subject = batch_subject(task->batch);
        worker->subject.sample = task->candidate;
        worker->subject.lane = (uint16_t)task->idx;
        trace_set_subject(&worker->subject);
}

/* The task may be another thread's by now. */
static void trace_sample_end(struct worker *worker, enum dlp_trace_outcome outcome, uint64_t begin_ns, uint64_t end_ns,
                             uint64_t n_bytes) {
        if (trace_is_on())
                trace_write(&worker->subject, DLP_TRACE_SAMPLE, (uint8_t)outcome, begin_ns, end_ns, n_bytes);
        trace_set_subject(NULL);
}

static void trace_read(struct worker *worker, const struct task *task, uint64_t begin_ns) {
        uint8_t outcome = task->request.result < 0 ? DLP_TRACE_FAILED : DLP_TRACE_DONE;

        if (!trace_is_on())
                return;
        if (task->request.path)
                trace_write(&worker->subject, DLP_TRACE_READ, outcome, task->asked_ns, task->arrived_ns,
                            task->request.n_bytes);
        trace_write(&worker->subject, DLP_TRACE_QUEUED, DLP_TRACE_DONE, task->arrived_ns, begin_ns, 0);
}

/* Counts where the time of this read's sample went: in its batch, its job, and this worker. */
static void count_time(struct worker *worker, struct task *task, uint64_t begin_ns) {
        bool was_read = task->request.path != NULL;
        struct tally_counts took = { .n_reads = was_read,
                                     .n_bytes_read = task->request.n_bytes,
                                     .read_ns = task->arrived_ns - task->asked_ns,
                                     .queued_ns = begin_ns - task->arrived_ns,
                                     .serving_ns = worker->serving_ns };

        trace_read(worker, task, begin_ns);
        batch_took(task->batch, took.read_ns, took.queued_ns, took.serving_ns);
        tally_add(worker_tally(worker, task->batch), &took);
        counter_add(&worker->counters->read_ns, took.read_ns);
        counter_add(&worker->counters->queued_ns, took.queued_ns);
        counter_add(&worker->counters->decode_ns, took.serving_ns);
}

/* Returns 0, SAMPLE_WAITS, RENDERING_DROPPED, or a negative errno for what is wrong with the sample. */
static int serve(struct worker *worker, struct task *task, struct why *why) {
        struct stage_clock *clock = codec_tools_clock(worker->tools);
        uint64_t begin_ns = stage_clock_start(clock, STAGE_OTHER);
        bool is_isolated = task->batch->stream->isolated != NULL;
        int r;

        trace_sample(worker, task);
        task->bad_field = NULL;
        if (task->request.result < 0) {
                task->bad_field = only_read(task);
                *why = task->request.why;
                stage_clock_drop(clock);
                count_time(worker, task, begin_ns);
                trace_sample_end(worker, DLP_TRACE_FAILED, begin_ns, clock_now_ns(), 0);
                return task->request.result;
        }
        counter_add(&worker->counters->n_bytes_read, task->request.n_bytes);

        codec_tools_begin_sample(worker->tools);
        r = serve_fields(worker, task, why);
        codec_tools_begin_sample(worker->tools); /* it needs no memory that is returned now */
        worker_count_decoded(worker);
        if (r == SAMPLE_WAITS || r == RENDERING_DROPPED) { /* what it has begun is begun again */
                stage_clock_drop(clock);
                trace_sample_end(worker, DLP_TRACE_POSTPONED, begin_ns, clock_now_ns(), 0);
                return r;
        }
        worker_settle(worker, task);
        worker->serving_ns = stage_clock_stop(clock) - begin_ns +
                             (is_isolated ? rendering_took_ns(&worker->rendering) : 0);
        stage_clock_harvest(clock, &worker_tally(worker, task->batch)->stages);
        count_time(worker, task, begin_ns);
        trace_sample_end(worker,
                         r < 0                                ? DLP_TRACE_FAILED
                         : task->idx_read + 1 < task->n_reads ? DLP_TRACE_MORE
                                                              : DLP_TRACE_DONE,
                         begin_ns, begin_ns + worker->serving_ns, task->request.n_bytes);
        return r;
}

/* ---- the loop ------------------------------------------------------------------------------------------------ */

/* All its fields are in the slot: functions of the trainer's come next. */
static void put_on_desk(struct worker *worker, struct task *task) {
        struct stream *stream = task->batch->stream;
        const struct planner_options *options = &worker->planner->options;

        if (desk_put(stream->desk, task)) /* the stream may be gone after that if its rank has left: see desk_filled */
                options->desk_filled(options->userdata, stream);
}

/* So many of the task's rows have ended: all, or the next one is the task's from now on. */
static void end_rows(struct worker *worker, struct task *task, uint32_t n) {
        bool is_all = n == task->n_rows;

        if (n > 0 && batch_samples_are_last(task->batch, n, worker->counters)) {
                whole_begin(worker, task);
                return;
        }
        if (!is_all) {
                planner_retry(worker->planner, task);
                return;
        }
        task->idx_row = n - 1;
        planner_return(worker->planner, task);
}

static void drop_rows(struct worker *worker, struct task *task) {
        counter_add(&worker->counters->n_dropped, task->n_rows);
        fair_item_done(&task->ready, 0);
        end_rows(worker, task, task->n_rows);
}

/* Samples that are only copied. From the first one that cannot be copied on, they are read one by one. */
static void copy_rows(struct worker *worker, struct task *task) {
        bool has_desk = desk_has_samples(task->batch->stream->desk);
        uint32_t n = rows_serve(worker, task);

        fair_item_done(&task->ready, worker->serving_ns);
        if (!has_desk)
                end_rows(worker, task, n);
        else if (task->is_copied)
                put_on_desk(worker, task);
        else /* that have not been copied: nothing is lost if all are read */
                end_rows(worker, task, 0);
}

/* If it is no longer wanted, an empty batch is published, which the client passes over. */
static void serve_again(struct worker *worker, struct task *task) {
        struct stage_clock *clock = codec_tools_clock(worker->tools);
        struct batch *batch = task->batch;

        if (batch_is_wanted(batch)) {
                uint64_t begin_ns = stage_clock_start(clock, STAGE_COLLATE);

                replay_serve(batch);
                worker->serving_ns = stage_clock_stop(clock) - begin_ns;
                stage_clock_harvest(clock, &worker_tally(worker, batch)->stages);
        }
        fair_item_done(&task->ready, worker->serving_ns);
        batch_sample_done(batch, worker->counters);
        planner_return(worker->planner, task);
}

#define SAMPLE_ENDS_JOB 2 /* and not because of its own bytes */
#define SAMPLE_AGAIN    3 /* to be made again from its bytes */

/* What has become of the sample on its stream's desk: 0, one of these, or a negative errno. */
static int own_outcome(struct task *task, struct why *why) {
        *why = task->own.why;
        task->bad_field = NULL;
        switch (task->own.state) {
        case OWN_FAILED:
                return -EBADMSG;
        case OWN_AGAIN:
                return SAMPLE_AGAIN;
        case OWN_ENDED:
                return SAMPLE_ENDS_JOB;
        default:
                return 0;
        }
}

/* A run has come back from the desk. Returns true if it is served as a whole; else its first samples are, and the task
 * is with the next one, which has the outcome. */
static bool take_back_rows(struct worker *worker, struct task *task) {
        struct own own = task->own;
        uint32_t n = own.state == OWN_DONE ? task->n_rows : own.n_done;

        rows_served(worker, task, n);
        if (n == task->n_rows) {
                task->own.state = OWN_NONE;
                fair_item_done(&task->ready, 0);
                end_rows(worker, task, n);
                return true;
        }
        if (n > 0)
                batch_samples_done(task->batch, n, worker->counters); /* not the last ones of the batch */
        rows_go_to(task, n);
        task->own.state = own.state;
        return false;
}

/* If it was made again for a function that gets the whole batch, all is known already, unless it has a substitute now.
 */
static void note_served(struct worker *worker, struct task *task) {
        struct batch *batch = task->batch;

        if (batch->samples)
                batch->samples[task->idx_sample] = (struct batch_sample){ task->position, task->index, task->candidate,
                                                                          task->n_tries };
        if (task->carried.is_again && !task->reason.text[0])
                return;
        batch_served(batch, task->idx_sample, task->index, task->candidate, &task->reason);
        if (task->reason.text[0])
                counter_add(&worker->counters->n_substituted, 1);
        if (task->carried.is_again)
                return;
        counter_add(&worker->counters->n_samples, 1);
        tally_add(worker_tally(worker, batch), &(struct tally_counts){ .n_samples = 1 });
}

static void worker_do(struct worker *worker, struct task *task) {
        struct batch *batch = task->batch;
        struct why why;
        int r;

        worker->serving_ns = 0;
        if (task->is_replay) {
                serve_again(worker, task);
                return;
        }
        if (task->is_copied && !batch_is_wanted(batch)) {
                drop_rows(worker, task);
                return;
        }
        if (task->is_copied && task->own.state == OWN_NONE) {
                copy_rows(worker, task);
                return;
        }
        if (task->is_copied && take_back_rows(worker, task))
                return;
        if (desk_is_whole(task)) {
                whole_came_back(worker, task);
                return;
        }
        if (!batch_is_wanted(batch)) {
                worker_settle(worker, task);
                task->own.state = OWN_NONE;
                counter_add(&worker->counters->n_dropped, 1);
                fair_item_done(&task->ready, 0);
        } else {
                bool was_on_desk = task->own.state != OWN_NONE;

                r = was_on_desk ? own_outcome(task, &why) : serve(worker, task, &why);
                if (r == 0 && was_on_desk)
                        r = after_serve(worker, task, &why);
                if (r == SAMPLE_WAITS)
                        return;
                if (r == RENDERING_DROPPED) {
                        worker_settle(worker, task);
                        counter_add(&worker->counters->n_dropped, 1);
                }
                task->own.state = OWN_NONE;
                fair_item_done(&task->ready, worker->serving_ns);
                if (r == SAMPLE_AGAIN || (r < 0 && failure_handle(task, r, &why, worker->counters) != FAILURE_ENDS)) {
                        task->own.n_tries = r < 0 ? 0 : task->own.n_tries;
                        task->idx_read = 0;
                        planner_retry(worker->planner, task);
                        return;
                }
                if (r == SAMPLE_ENDS_JOB)
                        batch_failed(batch, task->idx_sample, EINVAL, &why);
                if (r == 0 && !was_on_desk && task->idx_read + 1 < task->n_reads) {
                        task->idx_read++;
                        planner_retry(worker->planner, task);
                        return;
                }
                if (r == 0 && desk_has_samples(batch->stream->desk) && !was_on_desk) {
                        put_on_desk(worker, task);
                        return;
                }
                if (r == 0)
                        note_served(worker, task);
        }
        if (task->carried.is_again) {
                whole_next(worker, task);
                return;
        }
        if (batch_samples_are_last(batch, 1, worker->counters)) {
                whole_begin(worker, task);
                return;
        }
        if (atomic_load_explicit(&batch->stream->job->failed, memory_order_relaxed))
                planner_wake(worker->planner); /* so that the other ranks of the job learn of it */
        if (rows_next(task))
                planner_retry(worker->planner, task); /* without delay: returned tasks may wait for more */
        else
                planner_return(worker->planner, task);
}

/* ---- start and stop ------------------------------------------------------------------------------------------ */

static int worker_equip(struct worker *worker) {
        int r;

        worker->tid = gettid();
        if (worker->nice > 0)
                worker_set_nice(worker, worker->nice); /* raising the nice value is always allowed */
        r = codec_tools_new(&worker->limits, worker->decode_jpeg, &worker->tools, &worker->why);
        if (r == 0)
                worker->rendering.clock = codec_tools_clock(worker->tools);
        return r;
}

static uint64_t cpu_time_of(clockid_t clock) {
        struct timespec time;

        return clock_gettime(clock, &time) < 0 ? 0 : (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Of a worker that has left, its counters have it. One that leaves at this moment may have no clock any more. */
uint64_t worker_cpu_ns(struct worker *worker) {
        clockid_t clock;
        uint64_t ns;

        if (atomic_load_explicit(&worker->has_left, memory_order_acquire))
                return 0;
        ns = pthread_getcpuclockid(worker->thread, &clock) == 0 ? cpu_time_of(clock) : 0;
        return ns > counter_get(&worker->counters->worker_cpu_ns) ? ns - counter_get(&worker->counters->worker_cpu_ns)
                                                                  : 0;
}

/* Its first cell lives as long as it does, and has the worker's scratch: the worker needs next to none. */
static uint64_t cell_bytes(const struct isolation *isolation) {
        return isolation ? ISOLATION_CELL_BYTES : 0;
}

static void worker_strip(struct worker *worker) {
        counter_add(&worker->counters->worker_cpu_ns, cpu_time_of(CLOCK_THREAD_CPUTIME_ID));
        booths_fini(&worker->rendering.booths);
        codec_tools_free(worker->tools);
        budget_release(worker->budget, worker->own_bytes + cell_bytes(worker->rendering.booths.isolation));
}

#define LEFT_TO_OTHERS 4u /* samples of a job, so that no worker is idle beside one that has several */

/* Where a cell decodes, more samples of the same job come along if they wait: they are ordered together. */
static void take_turns(struct worker *worker, struct task *task) {
        struct task *tasks[RENDER_SAMPLES_MAX] = { task };
        struct fair_item *item;
        uint32_t n = 1;

        while (n < RENDER_SAMPLES_MAX && rendering_may_gather(task) &&
               (item = fair_queue_pop_beside(worker->ready, &task->ready, LEFT_TO_OTHERS)))
                tasks[n++] = task_of_ready(item);
        if (n > 1)
                rendering_gather(&worker->rendering, tasks, n);
        for (uint32_t k = 0; k < n; k++)
                worker_do(worker, tasks[k]);
        if (n > 1)
                rendering_forget(&worker->rendering);
}

/* CPU time that processes took for the worker's last samples. Nobody asks if there is no ceiling. */
static uint64_t beside_ns(struct worker *worker) {
        if (!pace_is_set(worker->pace))
                return 0;
        return rendering_cpu_ns(&worker->rendering) + codec_tools_beside_ns(worker->tools);
}

static void *worker_main(void *userdata) {
        struct worker *worker = userdata;
        struct fair_item *item;
        char name[16];

        snprintf(name, sizeof(name), "worker-%u", worker->idx % 1000000);
        trace_thread_begin(&worker->traced, name);
        worker->result = worker_equip(worker);
        sem_post(&worker->began);
        while (worker->result == 0 && (item = fair_queue_pop(worker->ready))) {
                take_turns(worker, task_of_ready(item));
                pace_rest(worker->pace, &worker->clock_ns, beside_ns(worker)); /* it holds no sample here */
        }
        worker_strip(worker);
        trace_thread_end(&worker->traced);
        atomic_store_explicit(&worker->has_left, true, memory_order_release);
        return NULL;
}

static struct worker *worker_new(const struct worker_options *options, uint32_t idx) {
        struct worker *worker = aligned_alloc(_Alignof(struct worker), sizeof(*worker));

        if (!worker)
                return NULL;
        *worker = (struct worker){
                .idx = idx,
                .ready = options->ready,
                .planner = options->planner,
                .budget = options->budget,
                .pace = options->pace,
                .limits = options->limits,
                .decode_jpeg = options->decode_jpeg,
                .nice = options->nice,
                .counters = &worker->counted,
                .scratch = options->scratch,
                .own_bytes = options->scratch_bytes,
        };
        booths_init(&worker->rendering.booths, options->isolation, options->budget, options->scratch_bytes);
        sem_init(&worker->began, 0, 0);
        return worker;
}

static void worker_free(struct worker *worker) {
        sem_destroy(&worker->began);
        free(worker);
}

static void wait_until_begun(struct worker *worker) {
        while (sem_wait(&worker->began) < 0) /* EINTR: only with a debugger */
                continue;
}

int worker_start(const struct worker_options *options, uint32_t idx, struct worker **ret_worker, struct why *why) {
        struct worker *worker;
        uint64_t n_bytes;
        char name[16];
        int r;

        n_bytes = options->scratch_bytes + cell_bytes(options->isolation);
        r = budget_reserve(options->budget, n_bytes, "a worker's scratch", why);
        if (r < 0)
                return r;
        worker = worker_new(options, idx);
        snprintf(name, sizeof(name), "worker-%u", idx % 1000000);
        r = worker ? thread_start(&worker->thread, name, worker_main, worker) : -ENOMEM;
        if (r < 0) {
                if (worker)
                        worker_free(worker);
                budget_release(options->budget, n_bytes);
                return why_errno(why, r, "worker %u", idx);
        }
        wait_until_begun(worker);
        if (worker->result < 0) {
                r = why_set(why, worker->result, "%s", worker->why.text);
                worker_join(worker);
                return r;
        }
        *ret_worker = worker;
        return 0;
}

void worker_join(struct worker *worker) {
        thread_join(worker->thread);
        worker_free(worker);
}

int worker_set_nice(struct worker *worker, int nice) {
        return setpriority(PRIO_PROCESS, (id_t)worker->tid, nice) < 0 ? -errno : 0; /* applies to a thread */
}
